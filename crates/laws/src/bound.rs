//! Limits on any law's window and pacing rate and on the advertised window, and their lease: the Rust face of
//! `laws/bound.h`.
//!
//! The header is compiled for this machine and called, not translated: the simulator and the tests run the kernel's
//! source. The header explains the limits and the deliberate exceptions: timeout recovery, the first segment of a fast
//! recovery, the least pace, and the least advertised window.
//!
//! ```
//! use lasthop_laws::bound::{Bound, LawWindow, LeasedBound};
//! use lasthop_units::{Rate, Span, Time};
//!
//! let set_at = Time::from_nanos(1_000);
//! let bound = Bound { max_segments: 48, max_pacing_rate: Rate::from_mbps(2.0), ..Bound::default() };
//! let leased = bound.leased(set_at, Span::from_millis(1500));
//! let law = LawWindow { cwnd_segments: 700, in_flight_segments: 700, ..LawWindow::default() };
//! assert_eq!(leased.window(set_at, law), 48);
//! assert_eq!(leased.pacing_rate(set_at, Some(Rate::from_mbps(25.0)), false), Some(Rate::from_mbps(2.0)));
//! assert_eq!(leased.window(set_at + Span::from_millis(1500), law), 700); // nobody renewed the lease
//! ```
/// Limits with a lease: once it ends, they limit nothing.
pub use crate::c::lh_bound as LeasedBound;
use crate::{c, call};
use lasthop_units::{About, Rate, Span, Time};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// Limits for a window, in segments, for the pacing rate, and for the window advertised to the other side. The default
/// limits nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Bound {
    /// The window is raised to this, except in timeout recovery. 0 and 1: no lower limit.
    pub min_segments: u32,
    /// The window is cut to this. 0: no upper limit. Wins over a larger `min_segments`.
    pub max_segments: u32,
    /// The pacing rate is cut to this, in bit/s of payload, retransmissions included: eight times Linux's
    /// `sk_pacing_rate`. [`Rate::ZERO`]: no limit. Kept in whole bytes per second, never below [`LEAST_PACING_RATE`].
    /// A limit paces a connection, as `paced` does.
    ///
    /// With a window of 4 or more, two segments may leave together, so the receiver acknowledges them at once. With a
    /// smaller window each segment leaves alone and waits for the previous ACK. That adds a segment's time at this rate
    /// to the RTT.
    ///
    /// Written as `max_pacing_mbps`, in Mb/s, and omitted if there is no limit.
    #[serde(rename = "max_pacing_mbps", with = "as_mbps", default, skip_serializing_if = "is_zero")]
    pub max_pacing_rate: Rate,
    /// The advertised window is cut to this, but never below two full segments, and never below what was advertised
    /// before. 0: no limit. Omitted where it is written if there is no limit.
    #[serde(default, skip_serializing_if = "is_none")]
    pub max_receive_bytes: u64,
    /// The connection is paced at TCP's own rate (Linux: 1.2 windows a smoothed round trip, 2 in the first half of slow
    /// start), but never below [`LEAST_PACING_RATE`]. Where a window opens at once its burst overflows short queues.
    /// Omitted where it is written if it is not set.
    #[serde(default, skip_serializing_if = "is_unset")]
    pub paced: bool,
    /// The whole window may go, and wait below TCP, at once: TCP small queues and TSO sizes, which follow the pacing rate,
    /// get 10 Gb/s for it, unless `paced` is set or somebody else paces the connection. Omitted where it is written if it
    /// is not set.
    #[serde(default, skip_serializing_if = "is_unset")]
    pub at_once: bool,
}

/// The lowest pace: 4000 bytes per second.
pub const LEAST_PACING_RATE: Rate = from_bytes_per_second(c::LH_MIN_PACING_RATE as u64);

/// LH_NO_RATE, which bindgen takes for -1.
const NO_RATE: u64 = u64::MAX;

/// Duration of a bound without renewal: three ticks of the policies. So it expires within 2 s of a killed agent's last
/// tick. The agent's `lease_ms` overrides it.
pub const LEASE: Span = Span::from_millis(1500);

/// The law's window, and the state of its connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LawWindow {
    /// The window that the law computed.
    pub cwnd_segments: u32,
    /// Segments sent and neither acknowledged nor known to be lost.
    pub in_flight_segments: u32,
    /// The connection is in timeout recovery (the kernel's `TCP_CA_Loss`): the lower limit is off.
    pub in_loss: bool,
    /// The first segment of a fast recovery has not been retransmitted yet. One segment beyond those in flight may go.
    pub force_retransmit: bool,
}

impl Bound {
    /// An upper limit of the window alone. 0 segments: no limit.
    pub const fn at_most(max_segments: u32) -> Self {
        Self {
            min_segments: 1,
            max_segments,
            max_pacing_rate: Rate::ZERO,
            max_receive_bytes: 0,
            paced: false,
            at_once: false,
        }
    }

    /// These limits from `now` on, for the duration `lease`; for ever if that exceeds the time line.
    pub const fn leased(self, now: Time, lease: Span) -> LeasedBound {
        LeasedBound {
            expires_ns: now.saturating_add(lease).as_nanos(),
            min_segments: self.min_segments,
            max_segments: self.max_segments,
            max_pacing_rate: self.max_pacing_rate.as_bps().div_ceil(8),
            max_receive_bytes: self.max_receive_bytes,
            paced: self.paced as u32,
            at_once: self.at_once as u32,
        }
    }
}

impl LeasedBound {
    /// Whether the lease runs at `now` and anything is limited. At its end the lease is over.
    pub fn holds(&self, now: Time) -> bool {
        call::lh_bound_holds(self, now.as_nanos()) != 0
    }

    /// Whether the upper limit holds back a window of this size. If so, the law must not grow it
    /// ([`Acked::HELD`](crate::Acked::HELD)).
    pub fn holds_back(&self, now: Time, cwnd_segments: u32) -> bool {
        self.max_segments != 0 && cwnd_segments >= self.max_segments && self.holds(now)
    }

    /// A law's window, limited. Never below 1.
    pub fn window(&self, now: Time, law: LawWindow) -> u32 {
        let in_loss = if law.in_loss { c::LH_IN_LOSS } else { 0 };
        let force_retransmit = if law.force_retransmit { c::LH_FORCE_RETRANSMIT } else { 0 };
        let flags = in_loss | force_retransmit;
        call::lh_bound_window(self, now.as_nanos(), law.cwnd_segments, law.in_flight_segments, flags)
    }

    /// Whether the sender is paced because of the bound: it has a limit of the pacing rate, or asks for TCP's own pace.
    pub fn paces(&self, now: Time) -> bool {
        call::lh_bound_paces(self, now.as_nanos()) != 0
    }

    /// TCP's own pacing rate, limited if the bound paces, then in whole bytes per second and never below
    /// [`LEAST_PACING_RATE`]. `None`: no rate yet, before the first RTT sample. `paced_anyway`: the sender is paced without
    /// the bound, too.
    pub fn pacing_rate(&self, now: Time, own: Option<Rate>, paced_anyway: bool) -> Option<Rate> {
        if !self.paces(now) {
            return own;
        }
        let own = own.map_or(NO_RATE, |rate| rate.as_bps() / 8);
        let rate = call::lh_bound_pacing_rate(self, now.as_nanos(), own, paced_anyway.into());
        (rate != NO_RATE).then(|| from_bytes_per_second(rate))
    }

    /// The window to advertise, limited. `segment_bytes`: the payload of a full segment from the other side.
    pub fn receive_window(&self, now: Time, window_bytes: u64, segment_bytes: u64) -> u64 {
        call::lh_bound_receive_window(self, now.as_nanos(), window_bytes, segment_bytes)
    }

    /// The limits without their lease.
    pub const fn bound(&self) -> Bound {
        Bound {
            min_segments: self.min_segments,
            max_segments: self.max_segments,
            max_pacing_rate: from_bytes_per_second(self.max_pacing_rate),
            max_receive_bytes: self.max_receive_bytes,
            paced: self.paced != 0,
            at_once: self.at_once != 0,
        }
    }

    /// When the lease ends.
    pub const fn expires(&self) -> Time {
        Time::from_nanos(self.expires_ns)
    }
}

const fn from_bytes_per_second(bytes: u64) -> Rate {
    Rate::from_bps(bytes.saturating_mul(8))
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut limits = Vec::new();
        match (self.min_segments, self.max_segments) {
            (0..=1, 0) => {}
            (0..=1, max) => limits.push(format!("at most {max} segments")),
            (min, 0) => limits.push(format!("at least {min} segments")),
            (min, max) => limits.push(format!("{min} to {max} segments")),
        }
        if self.max_pacing_rate > Rate::ZERO {
            limits.push(format!("at most {}", About(self.max_pacing_rate)));
        } else if self.paced {
            limits.push("paced by TCP".to_owned());
        } else if self.at_once {
            limits.push("sent at once".to_owned());
        }
        if self.max_receive_bytes > 0 {
            limits.push(format!("at most {:.1} kB from the other side", self.max_receive_bytes as f64 / 1e3));
        }
        if limits.is_empty() { f.write_str("no limit") } else { f.write_str(&limits.join(", ")) }
    }
}

fn is_zero(rate: &Rate) -> bool {
    *rate == Rate::ZERO
}

fn is_none(limit: &u64) -> bool {
    *limit == 0
}

fn is_unset(flag: &bool) -> bool {
    !flag
}

/// A rate as a number of Mb/s.
mod as_mbps {
    use super::{Deserialize, Deserializer, Rate, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(rate: &Rate, serializer: S) -> Result<S::Ok, S::Error> {
        rate.as_mbps().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Rate, D::Error> {
        let mbps = f64::deserialize(deserializer)?;
        // 2^64 bit/s are 1.8e13 Mb/s
        if (0.0..1e13).contains(&mbps) {
            Ok(Rate::from_mbps(mbps))
        } else {
            Err(serde::de::Error::custom(format_args!("{mbps} Mb/s is no pacing rate")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SET_AT: Time = Time::from_nanos(1_000);

    fn window(bound: Bound, law: LawWindow) -> u32 {
        bound.leased(SET_AT, LEASE).window(SET_AT, law)
    }

    fn wants(cwnd_segments: u32) -> LawWindow {
        LawWindow { cwnd_segments, in_flight_segments: cwnd_segments, ..LawWindow::default() }
    }

    #[test]
    fn a_window_is_cut_to_the_upper_and_raised_to_the_lower_limit() {
        let bound = Bound { min_segments: 10, max_segments: 48, ..Bound::default() };
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
        assert_eq!(window(Bound { min_segments: 50, max_segments: 8, ..Bound::default() }, wants(2)), 8);
        assert_eq!(window(Bound { min_segments: 50, max_segments: 8, ..Bound::default() }, wants(100)), 8);
    }

    #[test]
    fn in_timeout_recovery_only_the_upper_limit_is_on() {
        let bound = Bound { min_segments: 10, max_segments: 48, ..Bound::default() };
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
        let leased = Bound { min_segments: 10, max_segments: 48, ..Bound::default() }.leased(SET_AT, LEASE);
        assert!(!leased.holds_back(SET_AT, 47));
        assert!(leased.holds_back(SET_AT, 48));
        assert!(!leased.holds_back(leased.expires(), 48));
        let open = Bound { min_segments: 10, max_segments: 0, ..Bound::default() }.leased(SET_AT, LEASE);
        assert!(!open.holds_back(SET_AT, u32::MAX));
    }

    #[test]
    fn a_pacing_rate_is_cut_to_its_limit_until_the_lease_ends() {
        // 0.44 Mb/s = 55,000 bytes per second.
        let limit = Rate::from_mbps(0.44);
        let leased = Bound { max_pacing_rate: limit, ..Bound::default() }.leased(SET_AT, LEASE);
        let mbps = |mbps| Some(Rate::from_mbps(mbps));
        assert!(leased.holds(SET_AT));
        assert_eq!(leased.pacing_rate(SET_AT, mbps(25.0), false), Some(limit));
        assert_eq!(leased.pacing_rate(SET_AT, mbps(0.4), false), mbps(0.4));
        assert_eq!(leased.pacing_rate(SET_AT, None, false), Some(limit)); // before the first RTT sample
        assert!(leased.paces(Time::from_nanos(1_500_000_999)) && !leased.paces(leased.expires()));
        assert_eq!(leased.pacing_rate(leased.expires(), mbps(25.0), false), mbps(25.0));
    }

    #[test]
    fn without_a_limit_the_pace_is_tcps_own() {
        let leased = Bound { paced: true, ..Bound::default() }.leased(SET_AT, LEASE);
        let mbps = |mbps| Some(Rate::from_mbps(mbps));
        assert!(leased.holds(SET_AT) && leased.paces(SET_AT) && !leased.holds_back(SET_AT, u32::MAX));
        assert_eq!(leased.pacing_rate(SET_AT, mbps(25.0), false), mbps(25.0));
        assert_eq!(leased.pacing_rate(SET_AT, None, false), None);
        // After a timeout in a queue of 16 s: 2 windows of one segment in 16 s are 1448 bit/s.
        assert_eq!(leased.pacing_rate(SET_AT, Some(Rate::from_bps(1448)), false), Some(LEAST_PACING_RATE));
        assert_eq!(leased.pacing_rate(leased.expires(), Some(Rate::from_bps(1448)), false), Some(Rate::from_bps(1448)));
    }

    #[test]
    fn a_window_at_once_goes_at_ten_gigabits_but_for_who_paces_anyway_and_for_a_limit() {
        let at_once = Bound { at_once: true, ..Bound::default() };
        let limited = Bound { max_pacing_rate: Rate::from_mbps(2.0), ..at_once };
        let rate = |bound: Bound, paced_anyway| {
            bound
                .leased(SET_AT, LEASE)
                .pacing_rate(SET_AT, Some(Rate::from_mbps(25.0)), paced_anyway)
                .map(Rate::as_mbps)
        };
        assert_eq!((rate(at_once, false), rate(at_once, true)), (Some(10_000.0), Some(25.0)));
        assert_eq!((rate(limited, false), rate(limited, true)), (Some(2.0), Some(2.0)));
        assert_eq!(rate(Bound { paced: true, ..at_once }, false), Some(25.0));
        assert!(at_once.leased(SET_AT, LEASE).holds(SET_AT));
    }

    #[test]
    fn no_limit_stops_a_sender() {
        // Two segments of 1500 bytes at 4000 bytes per second: 0.75 s, half a lease of 1.5 s.
        assert_eq!(LEAST_PACING_RATE.transmission_time(lasthop_units::Bytes::new(2 * 1500)), Span::from_millis(750));
        for bps in [1, 8, 31_999] {
            let leased = Bound { max_pacing_rate: Rate::from_bps(bps), ..Bound::default() }.leased(SET_AT, LEASE);
            assert_eq!(leased.pacing_rate(SET_AT, None, false), Some(LEAST_PACING_RATE), "{bps} bit/s");
        }
    }

    #[test]
    fn an_advertised_window_is_cut_to_its_limit_but_not_below_two_segments_until_the_lease_ends() {
        let leased = Bound { max_receive_bytes: 43_440, ..Bound::default() }.leased(SET_AT, LEASE);
        assert!(leased.holds(SET_AT) && !leased.holds_back(SET_AT, u32::MAX));
        assert_eq!(leased.receive_window(SET_AT, 3_000_000, 1448), 43_440);
        assert_eq!(leased.receive_window(SET_AT, 20_000, 1448), 20_000);
        assert_eq!(leased.receive_window(leased.expires(), 3_000_000, 1448), 3_000_000);
        let least = Bound { max_receive_bytes: 1, ..Bound::default() }.leased(SET_AT, LEASE);
        assert_eq!(least.receive_window(SET_AT, 3_000_000, 1448), 2 * 1448);
        assert_eq!(least.receive_window(SET_AT, 0, 1448), 0); // a full buffer closes the window as ever
        assert_eq!(Bound::at_most(2).leased(SET_AT, LEASE).receive_window(SET_AT, 3_000_000, 1448), 3_000_000);
        assert_eq!((least.window(SET_AT, wants(700)), least.paces(SET_AT)), (700, false));
    }

    #[test]
    fn a_bound_is_written_with_its_rate_in_megabits_and_without_if_there_is_none() {
        let json = |bound: Bound| serde_json::to_string(&bound).expect("plain numbers");
        assert_eq!(json(Bound::at_most(48)), r#"{"min_segments":1,"max_segments":48}"#);
        let paced = Bound { max_pacing_rate: Rate::from_mbps(0.44), ..Bound::at_most(2) };
        assert_eq!(json(paced), r#"{"min_segments":1,"max_segments":2,"max_pacing_mbps":0.44}"#);
        let receiving = Bound { max_receive_bytes: 43_440, ..Bound::at_most(2) };
        assert_eq!(json(receiving), r#"{"min_segments":1,"max_segments":2,"max_receive_bytes":43440}"#);
        let by_tcp = Bound { paced: true, ..Bound::at_most(2) };
        let at_once = Bound { at_once: true, ..Bound::at_most(2) };
        assert_eq!(json(at_once), r#"{"min_segments":1,"max_segments":2,"at_once":true}"#);
        assert_eq!(json(by_tcp), r#"{"min_segments":1,"max_segments":2,"paced":true}"#);
        for bound in [Bound::at_most(48), paced, receiving, by_tcp, at_once] {
            assert_eq!(serde_json::from_str::<Bound>(&json(bound)).expect("as written"), bound);
        }
        let wrong = r#"{"min_segments":1,"max_segments":2,"max_pacing_mbps":-1}"#;
        assert!(serde_json::from_str::<Bound>(wrong).is_err());
    }

    #[test]
    fn limits_print_as_one_would_say_them() {
        assert_eq!(Bound::default().to_string(), "no limit");
        assert_eq!(Bound::at_most(48).to_string(), "at most 48 segments");
        assert_eq!(Bound { min_segments: 2, max_segments: 0, ..Bound::default() }.to_string(), "at least 2 segments");
        assert_eq!(Bound { min_segments: 2, max_segments: 4, ..Bound::default() }.to_string(), "2 to 4 segments");
        let paced = |bound| Bound { max_pacing_rate: Rate::from_mbps(0.44), ..bound }.to_string();
        assert_eq!(paced(Bound::default()), "at most 0.44 Mb/s");
        assert_eq!(paced(Bound::at_most(2)), "at most 2 segments, at most 0.44 Mb/s");
        assert_eq!(Bound { paced: true, ..Bound::at_most(2) }.to_string(), "at most 2 segments, paced by TCP");
        let receiving = Bound { max_receive_bytes: 43_440, ..Bound::at_most(2) };
        assert_eq!(receiving.to_string(), "at most 2 segments, at most 43.4 kB from the other side");
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

    /// In whole bytes per second, up to 2^64 - 1 bit/s.
    fn any_rate() -> impl Strategy<Value = Rate> {
        prop_oneof![0..100_000_000_u64, 0..=u64::MAX / 8].prop_map(from_bytes_per_second)
    }

    proptest! {
        #[test]
        fn a_limited_window_lies_between_one_and_what_law_and_lower_limit_allow(
            min_segments in prop_oneof![0..2000_u32, any::<u32>()],
            max_segments in prop_oneof![0..2000_u32, any::<u32>()],
            law in any_law(),
        ) {
            let limited = window(Bound { min_segments, max_segments, ..Bound::default() }, law);
            prop_assert!(limited >= 1);
            prop_assert!(limited <= law.cwnd_segments.max(min_segments).max(1));
            if max_segments != 0 && !law.force_retransmit {
                prop_assert!(limited <= max_segments);
            }
        }

        #[test]
        fn without_limits_or_past_the_lease_the_window_is_the_laws(
            min_segments in 0..3000_u32, max_segments in 0..3000_u32, max_pacing_bps in any::<u64>(), late in any::<u64>(),
            law in any_law(), rate in any_rate(), paced in any::<bool>(),
        ) {
            let same = law.cwnd_segments.max(1);
            prop_assert_eq!(window(Bound::default(), law), same);
            prop_assert_eq!(window(Bound { min_segments: 1, max_segments: 0, ..Bound::default() }, law), same);
            let max_pacing_rate = Rate::from_bps(max_pacing_bps);
            let bound = Bound { min_segments, max_segments, max_pacing_rate, paced, ..Bound::default() };
            let leased = bound.leased(SET_AT, LEASE);
            let after = leased.expires().saturating_add(Span::from_nanos(late));
            prop_assert_eq!(leased.window(after, law), same);
            prop_assert!(!leased.paces(after));
            prop_assert_eq!(leased.pacing_rate(after, Some(rate), false), Some(rate));
            let unpaced = Bound { max_pacing_rate: Rate::ZERO, paced: false, ..leased.bound() }.leased(SET_AT, LEASE);
            prop_assert_eq!(unpaced.pacing_rate(SET_AT, Some(rate), false), Some(rate));
        }

        #[test]
        fn a_pace_is_the_smaller_of_limit_and_own_rate_but_the_least_and_leaves_the_window_alone(
            limit in any_rate(), rate in any_rate(), law in any_law(), late in any::<u64>(), paced in any::<bool>(),
        ) {
            let leased = Bound { max_pacing_rate: limit, paced, ..Bound::default() }.leased(SET_AT, LEASE);
            let now = Time::from_nanos(late);
            let pace = leased.pacing_rate(now, Some(rate), false).expect("a rate");
            prop_assert_eq!(leased.paces(now), leased.holds(now));
            if leased.paces(now) {
                let least = if limit > Rate::ZERO { rate.min(limit) } else { rate };
                prop_assert_eq!(pace, least.max(LEAST_PACING_RATE));
            } else {
                prop_assert_eq!(pace, rate);
            }
            prop_assert_eq!(leased.window(now, law), law.cwnd_segments.max(1));
            prop_assert_eq!(leased.bound().max_pacing_rate, limit);
            prop_assert!(!leased.holds_back(now, law.cwnd_segments));
        }
    }
}
