//! The policy `formula`: the middleware of hayakawa, equations 1 to 5. While the RTT shows that ACKs pile up at the
//! access point, it limits the windows to this host's share of the bandwidth-delay product.
//!
//! Once per tick, for each connection:
//! 1. min_rtt = lowest RTT ever seen on the connection; ratio = RTT / min_rtt. (eqs. 1, 5)
//! 2. Control starts disabled. A ratio above 6.0 enables it; it stays so until the connection ends.
//! 3. Enabled, and the ratio above 5.0: the window is 1 until the next tick.
//! 4. Enabled otherwise: BW = BWmax · n^−0.15 (eqs. 3, 4), and the window is at most
//!    BW · RTT / (8 · 1500 bytes · n), split over this host's busy connections, rounded, at least 1. (eq. 2)
//!
//! ```text
//!                ratio > 6.0                      ratio > 5.0
//!  not congested ────────────> under control: ┌──────────────> cut (window 1) ─┐
//!        ^                                  share <── ratio <= 5.0 ────────────┘
//!        └──────────── ratio < release_ratio (only if set) ─────┘
//! ```
//!
//! The paper's open points, and our decisions: docs/models/policy-formula.md. *What it leaves out*: the peers' RTTs
//! (each connection waits until its own rises); connections that start into congestion, whose lowest RTT is already
//! high.

use super::latch::{Latches, Rise};
use super::share::Share;
use super::{Decision, Observation, Policy, PolicySettings, Reason};
use lasthop_laws::bound::Bound;

/// The policy `formula`.
#[derive(Clone, Debug)]
pub struct Formula {
    settings: PolicySettings,
    latches: Latches,
}

impl Formula {
    pub(super) fn new(settings: &PolicySettings) -> Self {
        Self { settings: settings.clone(), latches: Latches::default() }
    }

    /// The limits of a connection under control.
    fn limit(&self, rise: Rise, terminals: u32, busy_flows: u32) -> (Bound, Reason) {
        let Rise { ratio, .. } = rise;
        let PolicySettings { cut_ratio, minimum_segments, .. } = self.settings;
        if ratio > cut_ratio {
            let bound = Bound { min_segments: minimum_segments, max_segments: minimum_segments, ..Bound::default() };
            return (bound, Reason::Cut { ratio, cut_ratio });
        }
        let share = Share::of(&self.settings, self.settings.rtt_of(rise), terminals);
        // A cast from f64 saturates: a share past 2^32 segments is no limit in practice.
        let segments = (share.ideal_segments / f64::from(busy_flows)).round() as u32;
        let bound =
            Bound { min_segments: minimum_segments, max_segments: segments.max(minimum_segments), ..Bound::default() };
        (bound, Reason::Share { ratio, share, busy_flows })
    }
}

impl Policy for Formula {
    fn on_tick(&mut self, observation: &Observation<'_>) -> Decision {
        let (terminals, busy_flows) = (observation.peers.terminals(), observation.busy_flows().max(1));
        let mut latches = std::mem::take(&mut self.latches);
        let decision =
            latches.on_tick(observation, &self.settings, false, |rise| self.limit(rise, terminals, busy_flows));
        self.latches = latches;
        decision
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FlowDecision, FlowId, FlowObservation, PolicyName, RttReading, Start};
    use lasthop_connection::TcpState;
    use lasthop_peers::{Neighbourhood, Peer, PeerId, Report};
    use lasthop_units::{Span, Time};
    use proptest::prelude::*;

    fn formula(change: impl FnOnce(&mut PolicySettings)) -> Formula {
        let mut settings = PolicySettings { policy: PolicyName::Formula, ..PolicySettings::default() };
        change(&mut settings);
        Formula::new(&settings)
    }

    fn terminals(n: u64) -> Neighbourhood {
        let peer =
            |id| Peer { id: PeerId(id), report: Report { busy_flows: 1, ..Report::default() }, heard_at: Time::ZERO };
        Neighbourhood::new((1..n).map(peer).collect())
    }

    fn flow(id: u64, srtt_ms: u64, min_rtt_ms: u64) -> FlowObservation {
        FlowObservation {
            id: FlowId(id),
            tcp: TcpState {
                srtt: Some(Span::from_millis(srtt_ms)),
                min_rtt: Some(Span::from_millis(min_rtt_ms)),
                cwnd_segments: 500,
                ..TcpState::default()
            },
            busy: true,
            ..FlowObservation::default()
        }
    }

    /// The first connection's decision at tick `tick`, 0.5 s after the one before.
    fn decide(policy: &mut Formula, tick: u64, n: u64, flows: &[FlowObservation]) -> FlowDecision {
        let now = Time::ZERO + Span::from_millis(500) * tick;
        let mut decision = policy.on_tick(&Observation { now, flows, peers: &terminals(n) });
        assert_eq!(decision.flows.len(), flows.len());
        assert_eq!(decision.new_flows, None);
        decision.flows.swap_remove(0)
    }

    fn upper(decision: &FlowDecision) -> Option<u32> {
        decision.bound.map(|bound| bound.max_segments)
    }

    /// The upper limit of a connection under control whose RTT is its lowest.
    fn share(n: u64, rtt_ms: u64) -> Option<u32> {
        let mut policy = formula(|_| ());
        decide(&mut policy, 0, n, &[flow(1, 7 * rtt_ms, rtt_ms)]);
        upper(&decide(&mut policy, 1, n, &[flow(1, rtt_ms, rtt_ms)]))
    }

    #[test]
    fn ideal_cwnd_at_a_delay_of_256_ms() {
        // B · RTT / (12000 bit · n), B = 19 Mb/s · n^-0.15:
        //  n = 1:  19e6 · 0.256 / 12000                     = 405.33
        //  n = 4:  4^-0.15  = 0.81225: 19e6 · 0.81225 · 0.256 / 48000   = 82.31
        //  n = 10: 10^-0.15 = 0.70795: 19e6 · 0.70795 · 0.256 / 120000  = 28.70
        assert_eq!(share(1, 256), Some(405));
        assert_eq!(share(4, 256), Some(82));
        assert_eq!(share(10, 256), Some(29));
    }

    #[test]
    fn ideal_cwnd_at_a_delay_of_4_ms_is_floored_at_one() {
        //  n = 1:  19e6 · 0.004 / 12000                     = 6.33
        //  n = 4:  19e6 · 0.81225 · 0.004 / 48000           = 1.29
        //  n = 10: 19e6 · 0.70795 · 0.004 / 120000          = 0.448, rounds to 0: floored at 1
        assert_eq!(share(1, 4), Some(6));
        assert_eq!(share(4, 4), Some(1));
        assert_eq!(share(10, 4), Some(1));
    }

    #[test]
    fn a_ratio_of_exactly_six_does_not_enable() {
        let mut policy = formula(|_| ());
        let decision = decide(&mut policy, 0, 10, &[flow(1, 600, 100)]);
        assert_eq!((decision.bound, decision.enabled_at()), (None, None));
        assert_eq!(
            decision.reason,
            Reason::NotCongested { ratio: 6.0, excess: Span::from_millis(500), start: Start::Ratio(6.0) }
        );
        let decision = decide(&mut policy, 1, 10, &[flow(1, 601, 100)]);
        assert_eq!(decision.enabled_at(), Some(Time::from_nanos(500_000_000)));
    }

    #[test]
    fn a_ratio_above_five_cuts_to_one_and_exactly_five_does_not() {
        let mut policy = formula(|_| ());
        // Enabled at a ratio of 6.01, which is also above 5.0: cut at once.
        let decision = decide(&mut policy, 0, 1, &[flow(1, 601, 100)]);
        assert_eq!(decision.bound, Some(Bound { min_segments: 1, max_segments: 1, ..Bound::default() }));
        assert_eq!(decision.reason, Reason::Cut { ratio: 6.01, cut_ratio: 5.0 });
        // 19e6 · 0.5 / 12000 = 791.67
        assert_eq!(upper(&decide(&mut policy, 1, 1, &[flow(1, 500, 100)])), Some(792));
        assert_eq!(upper(&decide(&mut policy, 2, 1, &[flow(1, 501, 100)])), Some(1));
    }

    #[test]
    fn control_is_latched_until_the_connection_ends() {
        let mut policy = formula(|_| ());
        decide(&mut policy, 3, 10, &[flow(1, 700, 100)]);
        let later = decide(&mut policy, 9, 10, &[flow(1, 100, 100)]);
        assert_eq!(later.enabled_at(), Some(Time::from_nanos(1_500_000_000)));
        assert!(later.bound.is_some());
        policy.on_tick(&Observation { now: Time::ZERO, flows: &[], peers: &terminals(10) });
        assert_eq!(decide(&mut policy, 11, 10, &[flow(1, 100, 100)]).enabled_at(), None);
    }

    #[test]
    fn control_is_released_below_a_ratio_if_asked_for() {
        let mut policy = formula(|settings| settings.release_ratio = Some(2.0));
        decide(&mut policy, 0, 1, &[flow(1, 700, 100)]);
        assert!(decide(&mut policy, 1, 1, &[flow(1, 200, 100)]).bound.is_some()); // exactly 2.0 holds
        let released = decide(&mut policy, 2, 1, &[flow(1, 199, 100)]);
        assert_eq!((released.bound, released.enabled_at()), (None, None));
        assert_eq!(released.reason, Reason::Released { ratio: 1.99, release_ratio: 2.0 });
        assert_eq!(decide(&mut policy, 3, 1, &[flow(1, 300, 100)]).reason.kind(), "not-congested");
    }

    #[test]
    fn the_lowest_rtt_is_that_of_the_whole_connection() {
        let mut policy = formula(|_| ());
        decide(&mut policy, 0, 1, &[flow(1, 100, 100)]);
        // A kernel that forgot its lowest RTT reports 300 ms. Against 100 ms the ratio is 6.2, not 2.07.
        assert!(decide(&mut policy, 1, 1, &[flow(1, 620, 300)]).enabled.is_some());
    }

    #[test]
    fn the_minimum_reading_asks_for_no_standing_queue() {
        let mut policy = formula(|settings| settings.rtt = RttReading::Minimum);
        decide(&mut policy, 0, 10, &[flow(1, 1800, 256)]);
        // 28.70 with 256 ms, although the current RTT is four times that.
        assert_eq!(upper(&decide(&mut policy, 1, 10, &[flow(1, 1024, 256)])), Some(29));
        let mut policy = formula(|_| ());
        decide(&mut policy, 0, 10, &[flow(1, 1800, 256)]);
        assert_eq!(upper(&decide(&mut policy, 1, 10, &[flow(1, 1024, 256)])), Some(115)); // 4 · 28.70 = 114.8
    }

    #[test]
    fn a_share_is_split_over_the_hosts_busy_connections() {
        let mut policy = formula(|_| ());
        let congested = [flow(1, 1800, 256), flow(2, 300, 256), flow(3, 300, 256)];
        decide(&mut policy, 0, 1, &congested);
        let idle = FlowObservation { busy: false, ..flow(3, 256, 256) };
        let decision = policy.on_tick(&Observation {
            now: Time::ZERO,
            flows: &[flow(1, 256, 256), flow(2, 256, 256), idle],
            peers: &terminals(1),
        });
        // 405.33 / 2 = 202.67; the second and third were never congested.
        assert_eq!(decision.flows.iter().map(upper).collect::<Vec<_>>(), [Some(203), None, None]);
    }

    #[test]
    fn before_the_first_rtt_nothing_is_decided() {
        let mut policy = formula(|_| ());
        let unmeasured = FlowObservation { tcp: TcpState::default(), ..flow(1, 1, 1) };
        let decision = decide(&mut policy, 0, 1, &[unmeasured]);
        assert_eq!((decision.bound, decision.reason), (None, Reason::NoRtt));
    }

    #[test]
    fn forged_terminals_shrink_a_share_only_down_to_that_of_the_most_that_are_believed() {
        // n = 64: 64^-0.15 = 0.53589: 19e6 · 0.53589 · 0.256 / 768000 = 3.394
        assert_eq!(share(64, 256), Some(3));
        assert_eq!(share(257, 256), Some(3));
    }

    #[test]
    fn the_minimum_is_a_floor_under_share_and_cut() {
        let mut policy = formula(|settings| settings.minimum_segments = 4);
        let floor = Some(Bound { min_segments: 4, max_segments: 4, ..Bound::default() });
        assert_eq!(decide(&mut policy, 0, 10, &[flow(1, 28, 4)]).bound, floor);
        assert_eq!(decide(&mut policy, 1, 10, &[flow(1, 4, 4)]).bound, floor);
    }

    proptest! {
        #[test]
        fn whatever_comes_a_limit_is_at_least_the_minimum_and_every_connection_gets_a_decision(
            ticks in proptest::collection::vec(
                (
                    proptest::collection::vec(
                        (0..5_u64, any::<Option<u64>>(), any::<Option<u64>>(), any::<bool>()), 0..6),
                    1..300_u64,
                ),
                1..20,
            ),
            minimum_segments in 1..10_u32,
        ) {
            let mut policy = formula(|settings| settings.minimum_segments = minimum_segments);
            for (tick, (flows, n)) in ticks.iter().enumerate() {
                let flows: Vec<_> = flows.iter().map(|(id, srtt, min_rtt, busy)| {
                    let [srtt, min_rtt] = [srtt, min_rtt].map(|nanos| nanos.map(Span::from_nanos));
                    let tcp = TcpState { srtt, min_rtt, cwnd_segments: 1, ..TcpState::default() };
                    FlowObservation { id: FlowId(*id), tcp, busy: *busy, ..FlowObservation::default() }
                }).collect();
                let now = Time::ZERO + Span::from_millis(500) * tick as u64;
                let decision = policy.on_tick(&Observation { now, flows: &flows, peers: &terminals(*n) });
                prop_assert_eq!(decision.flows.len(), flows.len());
                for (flow, decided) in flows.iter().zip(&decision.flows) {
                    prop_assert_eq!(flow.id, decided.id);
                    prop_assert!(decided.bound.is_none() || decided.enabled.is_some());
                    if let Some(bound) = decided.bound {
                        prop_assert!(bound.max_segments >= minimum_segments);
                        prop_assert_eq!(bound.min_segments, minimum_segments);
                    }
                }
            }
        }
    }
}
