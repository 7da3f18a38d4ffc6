//! Linux's CUBIC call by call, as the kernel makes the calls. It serves to check `include/cubic.h` against the kernel's
//! own, number by number (`crates/kernel/tests/cubic.rs`). For a congestion control use [`Law`](super::Law).

use super::{Acked, Lost, SlowStart, Window, c, call};
pub use crate::c::{lh_cubic as Cubic, lh_hystart as HyStart};

impl Cubic {
    /// `cubictcp_init()`. Jiffies of 1/`hz` s.
    pub fn begin(slow_start: SlowStart, now_us: u64, snd_nxt: u32, hz: u32) -> Self {
        let mut cubic = Self::default();
        let start = c::lh_start { now_us, snd_nxt, slow_start: slow_start as u32, ..c::lh_start::default() };
        call::lh_cubic_init(&mut cubic, &start);
        cubic.hz = hz;
        cubic
    }

    /// The state of its HyStart; nothing about HyStart++, which the kernel lacks.
    pub fn hystart(&mut self) -> &mut HyStart {
        // SAFETY: both members of the union are plain integers, and HyStart's is not the longer one.
        #[allow(unsafe_code)]
        unsafe {
            &mut self.slow_start.__bindgen_anon_1.hystart
        }
    }

    /// `cubictcp_acked()` at `now` in jiffies: the RTT sample of an ACK. `cushion_us` is `hystart_ack_delay()`.
    pub fn sample(&mut self, acked: &Acked, now: u32, cushion_us: u32, window: &mut Window) {
        call::lh_cubic_sample(self, acked, now, cushion_us, window);
    }

    /// `cubictcp_cong_avoid()` at `now` in jiffies, of a window that limits the sender.
    ///
    /// # Panics
    /// If [`Cubic::begin`] has not set `hz`, or the window has no segment: CUBIC divides by them.
    pub fn grow(&mut self, acked: &Acked, now: u32, window: &mut Window) {
        assert!(self.hz > 0 && window.cwnd_segments > 0, "CUBIC divides by hz and by the window");
        call::lh_cubic_grow(self, acked, now, window);
    }

    /// `cubictcp_recalc_ssthresh()`: sets the ssthresh that it returns in the kernel.
    pub fn reduce(&mut self, window: &mut Window) {
        call::lh_cubic_lost(self, &Lost::default(), window);
    }

    /// `cubictcp_state(TCP_CA_Loss)`.
    pub fn reset(&mut self, now_us: u64, snd_nxt: u32) {
        call::lh_cubic_reset(self, now_us, snd_nxt);
    }

    /// `cubictcp_cwnd_event(CA_EVENT_TX_START)` at `now`, `idle` jiffies after the previous transmission.
    pub fn resume(&mut self, now: u32, idle: u32) {
        call::lh_cubic_resume(self, now, idle);
    }
}

/// The cube root of `cubic_rfc9438.h`, rounded down.
pub fn cube_root(a: u64) -> u32 {
    call::lh_cube_root(a)
}

/// The kernel's `cubic_root()`, which is slightly inexact. Panics below 2^31, where CUBIC never calls it.
pub fn approximate_cube_root(a: u64) -> u32 {
    assert!(a >= 1 << 31, "the cube root of {a} is never approximated");
    // SAFETY: the C function takes a number of this range.
    #[allow(unsafe_code)]
    unsafe {
        c::lh_cubic_root(a)
    }
}
