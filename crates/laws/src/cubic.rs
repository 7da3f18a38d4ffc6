//! Linux's CUBIC call by call, as the kernel makes the calls: so that `laws/cubic.h` can be held against the kernel's
//! own, number by number (`crates/kernel/tests/cubic.rs`). Whoever wants a congestion control wants [`Law`](super::Law).

use super::{Acked, SlowStart, Window};

/// CUBIC's whole state; the names are those of the kernel's `struct bictcp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[allow(missing_docs)] // cubic.h and hystart.h say what each is
pub struct Cubic {
    slow_start: u32,
    pub delay_min: u32,
    pub round_start: u32,
    pub end_seq: u32,
    pub last_ack: u32,
    pub curr_rtt: u32,
    pub sample_cnt: u16,
    pub found: u16,
    reserved: u32,
    /// Jiffies per second.
    pub hz: u32,
    pub cnt: u32,
    pub last_max_cwnd: u32,
    pub last_cwnd: u32,
    pub last_time: u32,
    pub bic_origin_point: u32,
    pub bic_k: u32,
    pub epoch_start: u32,
    pub ack_cnt: u32,
    pub tcp_cwnd: u32,
}

unsafe extern "C" {
    fn lasthop_cubic_begin(cubic: *mut Cubic, slow_start: u32, now_us: u64, snd_nxt: u32, hz: u32);
    fn lasthop_cubic_sample(cubic: *mut Cubic, acked: *const Acked, now: u32, cushion_us: u32, window: *mut Window);
    fn lasthop_cubic_grow(cubic: *mut Cubic, acked: *const Acked, now: u32, window: *mut Window);
    fn lasthop_cubic_reduce(cubic: *mut Cubic, window: *mut Window);
    fn lasthop_cubic_reset(cubic: *mut Cubic, now_us: u64, snd_nxt: u32);
    fn lasthop_cubic_resume(cubic: *mut Cubic, now: u32, idle: u32);
    fn lasthop_cubic_root(a: u64) -> u32;
    fn lasthop_cube_root(a: u64) -> u32;
}

// SAFETY, of every call below: as in the parent module.
impl Cubic {
    /// `cubictcp_init()`. Jiffies of 1/`hz` s.
    pub fn begin(slow_start: SlowStart, now_us: u64, snd_nxt: u32, hz: u32) -> Self {
        let mut cubic = Self {
            slow_start: 0,
            delay_min: 0,
            round_start: 0,
            end_seq: 0,
            last_ack: 0,
            curr_rtt: 0,
            sample_cnt: 0,
            found: 0,
            reserved: 0,
            hz: 0,
            cnt: 0,
            last_max_cwnd: 0,
            last_cwnd: 0,
            last_time: 0,
            bic_origin_point: 0,
            bic_k: 0,
            epoch_start: 0,
            ack_cnt: 0,
            tcp_cwnd: 0,
        };
        // SAFETY: see above.
        unsafe { lasthop_cubic_begin(&mut cubic, slow_start as u32, now_us, snd_nxt, hz) };
        cubic
    }

    /// `cubictcp_acked()` at `now` in jiffies: the RTT sample of an ACK. `cushion_us` is `hystart_ack_delay()`.
    pub fn sample(&mut self, acked: &Acked, now: u32, cushion_us: u32, window: &mut Window) {
        // SAFETY: see above.
        unsafe { lasthop_cubic_sample(self, acked, now, cushion_us, window) }
    }

    /// `cubictcp_cong_avoid()` at `now` in jiffies, of a window that limits the sender.
    pub fn grow(&mut self, acked: &Acked, now: u32, window: &mut Window) {
        // SAFETY: see above.
        unsafe { lasthop_cubic_grow(self, acked, now, window) }
    }

    /// `cubictcp_recalc_ssthresh()`: sets the ssthresh that it returns in the kernel.
    pub fn reduce(&mut self, window: &mut Window) {
        // SAFETY: see above.
        unsafe { lasthop_cubic_reduce(self, window) }
    }

    /// `cubictcp_state(TCP_CA_Loss)`.
    pub fn reset(&mut self, now_us: u64, snd_nxt: u32) {
        // SAFETY: see above.
        unsafe { lasthop_cubic_reset(self, now_us, snd_nxt) }
    }

    /// `cubictcp_cwnd_event(CA_EVENT_TX_START)` at `now`, `idle` jiffies after the previous transmission.
    pub fn resume(&mut self, now: u32, idle: u32) {
        // SAFETY: see above.
        unsafe { lasthop_cubic_resume(self, now, idle) }
    }
}

/// The cube root of `cubic_rfc9438.h`, rounded down.
pub fn cube_root(a: u64) -> u32 {
    // SAFETY: see above.
    unsafe { lasthop_cube_root(a) }
}

/// The kernel's `cubic_root()`, which is a little off. Panics below 2^31, where it is never needed.
pub fn approximate_cube_root(a: u64) -> u32 {
    assert!(a >= 1 << 31, "the cube root of {a} is never approximated");
    // SAFETY: see above.
    unsafe { lasthop_cubic_root(a) }
}
