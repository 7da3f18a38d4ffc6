//! Limits put around the window of any law, and their lease: the Rust face of `laws/bound.h`.
//!
//! The header is compiled for this machine and called, not translated: the simulator and the tests run the very source
//! that the kernel runs. For what the limits mean, and the two deliberate exceptions (timeout recovery, and the first
//! segment of a fast recovery), see the header.
//!
//! ```
//! use control::bound::{Bound, LawWindow, LeasedBound};
//! use units::{Span, Time};
//!
//! let set_at = Time::from_nanos(1_000);
//! let leased = Bound { min_segments: 1, max_segments: 48 }.leased(set_at, Span::from_millis(1500));
//! let law = LawWindow { cwnd_segments: 700, in_flight_segments: 700, ..LawWindow::default() };
//! assert_eq!(leased.window(set_at, law), 48);
//! assert_eq!(leased.window(set_at + Span::from_millis(1500), law), 700); // nobody renewed the lease
//! ```
#![allow(unsafe_code)] // the C face; each block says why it is sound

use serde::{Deserialize, Serialize};
use std::ffi::c_int;
use std::fmt;
use units::{Span, Time};

/// Limits for a window, in segments. The default limits nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Bound {
    /// The window is raised to this, except in timeout recovery. 0 and 1: no lower limit.
    pub min_segments: u32,
    /// The window is cut to this. 0: no upper limit. Wins over a larger `min_segments`.
    pub max_segments: u32,
}

/// Limits that hold until a given time: past it they are as if they were not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct LeasedBound {
    expires_ns: u64,
    min_segments: u32,
    max_segments: u32,
}

/// What a law wants, and the state in which it wants it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LawWindow {
    /// The window that the law computed.
    pub cwnd_segments: u32,
    /// Segments sent and neither acknowledged nor known to be lost.
    pub in_flight_segments: u32,
    /// The connection is in timeout recovery (the kernel's `TCP_CA_Loss`): the lower limit is off.
    pub in_loss: bool,
    /// The first segment of a fast recovery has not been retransmitted yet: one beyond those in flight may go.
    pub force_retransmit: bool,
}

const LH_IN_LOSS: u32 = 1;
const LH_FORCE_RETRANSMIT: u32 = 2;

unsafe extern "C" {
    fn lasthop_bound_holds(bound: *const LeasedBound, now_ns: u64) -> c_int;
    fn lasthop_bound_window(
        bound: *const LeasedBound,
        now_ns: u64,
        cwnd_segments: u32,
        in_flight_segments: u32,
        flags: u32,
    ) -> u32;
}

impl Bound {
    /// An upper limit alone. 0 segments: no limit.
    pub const fn at_most(max_segments: u32) -> Self {
        Self { min_segments: 1, max_segments }
    }

    /// These limits from `now` on, for as long as `lease`; for ever if that is past the end of the time line.
    pub const fn leased(self, now: Time, lease: Span) -> LeasedBound {
        LeasedBound {
            expires_ns: now.saturating_add(lease).as_nanos(),
            min_segments: self.min_segments,
            max_segments: self.max_segments,
        }
    }
}

impl LeasedBound {
    /// Whether the lease still runs at `now` and anything is limited. At the moment of its end it is over.
    pub fn holds(&self, now: Time) -> bool {
        // SAFETY: LeasedBound is repr(C) with the members of struct lh_bound (the shim asserts its size); the pointer
        // comes from a reference, is only read, and is not kept.
        unsafe { lasthop_bound_holds(self, now.as_nanos()) != 0 }
    }

    /// Whether the upper limit holds back a window of this size: its law may not grow it, and is told so
    /// ([`Acked::HELD`](crate::law::Acked::HELD)).
    pub fn holds_back(&self, now: Time, cwnd_segments: u32) -> bool {
        self.max_segments != 0 && cwnd_segments >= self.max_segments && self.holds(now)
    }

    /// The window of a law, limited. Never below 1.
    pub fn window(&self, now: Time, law: LawWindow) -> u32 {
        let flags =
            if law.in_loss { LH_IN_LOSS } else { 0 } | if law.force_retransmit { LH_FORCE_RETRANSMIT } else { 0 };
        // SAFETY: as above; the other arguments are plain integers and every value of them is allowed.
        unsafe { lasthop_bound_window(self, now.as_nanos(), law.cwnd_segments, law.in_flight_segments, flags) }
    }

    /// The limits without their lease.
    pub const fn bound(&self) -> Bound {
        Bound { min_segments: self.min_segments, max_segments: self.max_segments }
    }

    /// When the lease ends.
    pub const fn expires(&self) -> Time {
        Time::from_nanos(self.expires_ns)
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.min_segments, self.max_segments) {
            (0..=1, 0) => f.write_str("no limit"),
            (0..=1, max) => write!(f, "at most {max} segments"),
            (min, 0) => write!(f, "at least {min} segments"),
            (min, max) => write!(f, "{min} to {max} segments"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SET_AT: Time = Time::from_nanos(1_000);
    const LEASE: Span = Span::from_millis(1500);

    fn window(bound: Bound, law: LawWindow) -> u32 {
        bound.leased(SET_AT, LEASE).window(SET_AT, law)
    }

    fn wants(cwnd_segments: u32) -> LawWindow {
        LawWindow { cwnd_segments, in_flight_segments: cwnd_segments, ..LawWindow::default() }
    }

    #[test]
    fn a_window_is_cut_to_the_upper_and_raised_to_the_lower_limit() {
        let bound = Bound { min_segments: 10, max_segments: 48 };
        assert_eq!(window(bound, wants(700)), 48);
        assert_eq!(window(bound, wants(48)), 48);
        assert_eq!(window(bound, wants(30)), 30);
        assert_eq!(window(bound, wants(3)), 10);
    }

    #[test]
    fn the_lease_is_over_at_the_very_nanosecond_of_its_end() {
        // Set at 1000 ns for 1.5 s: holds at 1,500,000,999 ns, not at 1,500,001,000 ns.
        let leased = Bound::at_most(20).leased(SET_AT, LEASE);
        assert_eq!(leased.expires(), Time::from_nanos(1_500_001_000));
        assert!(leased.holds(Time::from_nanos(1_500_000_999)));
        assert_eq!(leased.window(Time::from_nanos(1_500_000_999), wants(117)), 20);
        assert!(!leased.holds(Time::from_nanos(1_500_001_000)));
        assert_eq!(leased.window(Time::from_nanos(1_500_001_000), wants(117)), 117);
    }

    #[test]
    fn the_upper_limit_wins_over_a_larger_lower_limit() {
        assert_eq!(window(Bound { min_segments: 50, max_segments: 8 }, wants(2)), 8);
        assert_eq!(window(Bound { min_segments: 50, max_segments: 8 }, wants(100)), 8);
    }

    #[test]
    fn in_timeout_recovery_only_the_upper_limit_is_on() {
        let bound = Bound { min_segments: 10, max_segments: 48 };
        let recovering = |cwnd_segments| LawWindow { in_loss: true, ..wants(cwnd_segments) };
        assert_eq!(window(bound, recovering(1)), 1);
        assert_eq!(window(bound, recovering(70)), 48);
    }

    #[test]
    fn the_fast_retransmission_may_go_under_an_upper_limit_below_the_flight() {
        let law = |cwnd_segments, in_flight_segments| LawWindow {
            cwnd_segments,
            in_flight_segments,
            force_retransmit: true,
            in_loss: false,
        };
        assert_eq!(window(Bound::at_most(1), law(30, 20)), 21); // one beyond the flight of 20
        assert_eq!(window(Bound::at_most(1), law(20, 20)), 20); // but never more than the law
        assert_eq!(window(Bound::at_most(25), law(30, 20)), 25); // the flight is below the limit: the limit is enough
        assert_eq!(window(Bound::at_most(20), law(30, 20)), 21);
    }

    #[test]
    fn a_window_is_never_nothing() {
        assert_eq!(window(Bound::default(), wants(0)), 1);
        assert_eq!(window(Bound::at_most(5), wants(0)), 1);
    }

    #[test]
    fn a_flight_at_the_end_of_the_range_does_not_wrap() {
        let law = LawWindow { force_retransmit: true, ..wants(u32::MAX) };
        // in_flight + 1 wraps to 0 in C's unsigned arithmetic; the window must still not be 0.
        assert!(window(Bound::at_most(1), law) >= 1);
    }

    #[test]
    fn a_window_is_held_back_at_the_upper_limit_while_the_lease_runs() {
        let leased = Bound { min_segments: 10, max_segments: 48 }.leased(SET_AT, LEASE);
        assert!(!leased.holds_back(SET_AT, 47));
        assert!(leased.holds_back(SET_AT, 48));
        assert!(!leased.holds_back(leased.expires(), 48));
        let open = Bound { min_segments: 10, max_segments: 0 }.leased(SET_AT, LEASE);
        assert!(!open.holds_back(SET_AT, u32::MAX));
    }

    #[test]
    fn limits_print_as_one_would_say_them() {
        assert_eq!(Bound::default().to_string(), "no limit");
        assert_eq!(Bound::at_most(48).to_string(), "at most 48 segments");
        assert_eq!(Bound { min_segments: 2, max_segments: 0 }.to_string(), "at least 2 segments");
        assert_eq!(Bound { min_segments: 2, max_segments: 4 }.to_string(), "2 to 4 segments");
    }

    fn any_law() -> impl Strategy<Value = LawWindow> {
        let segments = || prop_oneof![0..2000_u32, any::<u32>()];
        (segments(), segments(), any::<bool>(), any::<bool>()).prop_map(
            |(cwnd_segments, in_flight_segments, in_loss, force_retransmit)| LawWindow {
                cwnd_segments,
                in_flight_segments,
                in_loss,
                force_retransmit,
            },
        )
    }

    proptest! {
        #[test]
        fn a_limited_window_lies_between_one_and_what_law_and_lower_limit_allow(
            min_segments in prop_oneof![0..2000_u32, any::<u32>()],
            max_segments in prop_oneof![0..2000_u32, any::<u32>()],
            law in any_law(),
        ) {
            let limited = window(Bound { min_segments, max_segments }, law);
            prop_assert!(limited >= 1);
            prop_assert!(limited <= law.cwnd_segments.max(min_segments).max(1));
            if max_segments != 0 && !law.force_retransmit {
                prop_assert!(limited <= max_segments);
            }
        }

        #[test]
        fn without_limits_or_past_the_lease_the_window_is_the_laws(
            min_segments in 0..3000_u32, max_segments in 0..3000_u32, late in any::<u64>(), law in any_law(),
        ) {
            let same = law.cwnd_segments.max(1);
            prop_assert_eq!(window(Bound::default(), law), same);
            prop_assert_eq!(window(Bound { min_segments: 1, max_segments: 0 }, law), same);
            let leased = Bound { min_segments, max_segments }.leased(SET_AT, LEASE);
            let after = leased.expires().saturating_add(Span::from_nanos(late));
            prop_assert_eq!(leased.window(after, law), same);
        }
    }
}
