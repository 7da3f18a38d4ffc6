//! The policy `fixed`: constant upper limits per host, set by hand.
//!
//! 1. Split `bound_segments`, and `bound_pacing_mbps` if it is given, over the host's busy connections, rounded down.
//! 2. Split `bound_receive_segments`, if it is given, over those that receive: so far may the window open that this host
//!    advertises.
//! 3. Never below `minimum_segments`, 0.032 Mb/s, and two segments received each.
//!
//! *What it leaves out*: RTT and peers; the constant must fit them.

use super::budget::{Budget, Since, split};
use super::{Decision, Observation, Policy, PolicySettings, Reason};
use lasthop_units::Rate;

/// The policy `fixed`.
#[derive(Clone, Debug)]
pub struct Fixed {
    budget: Budget,
    minimum_segments: u32,
    since: Since,
}

impl Fixed {
    pub(super) fn new(settings: &PolicySettings) -> Self {
        Self {
            budget: Budget {
                segments: settings.bound_segments.expect("valid settings of policy \"fixed\" have `bound_segments`"),
                pacing_rate: settings.bound_pacing_mbps.map_or(Rate::ZERO, Rate::from_mbps),
                receive_segments: settings.bound_receive_segments.unwrap_or(0),
            },
            minimum_segments: settings.minimum_segments,
            since: Since::default(),
        }
    }
}

impl Policy for Fixed {
    fn on_tick(&mut self, observation: &Observation<'_>) -> Decision {
        self.since.meet(observation);
        let budget = self.budget;
        split(observation, &self.since, budget, self.minimum_segments, |busy_flows| Reason::Budget {
            bound_segments: budget.segments,
            pacing_rate: budget.pacing_rate,
            busy_flows,
            receive_segments: budget.receive_segments,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FlowId, FlowObservation, PolicyName};
    use lasthop_connection::TcpState;
    use lasthop_laws::bound::Bound;
    use lasthop_peers::Neighbourhood;
    use lasthop_units::{Span, Time};

    fn fixed(bound_segments: u32, minimum_segments: u32) -> Fixed {
        Fixed::new(&PolicySettings {
            policy: PolicyName::Fixed,
            bound_segments: Some(bound_segments),
            minimum_segments,
            ..PolicySettings::default()
        })
    }

    fn flow(id: u64, busy: bool) -> FlowObservation {
        FlowObservation {
            id: FlowId(id),
            tcp: TcpState { cwnd_segments: 10, ..TcpState::default() },
            busy,
            ..FlowObservation::default()
        }
    }

    fn tick(policy: &mut Fixed, seconds: u64, flows: &[FlowObservation]) -> Decision {
        let now = Time::ZERO + Span::from_secs(seconds);
        policy.on_tick(&Observation { now, flows, peers: &Neighbourhood::alone() })
    }

    #[test]
    fn the_budget_is_split_over_busy_connections_rounded_down() {
        // 64 / 3 = 21.33: 21 each; for one more, 64 / 4 = 16.
        let mut policy = fixed(64, 1);
        let decision = tick(&mut policy, 0, &[flow(1, true), flow(2, true), flow(3, true), flow(4, false)]);
        for each in &decision.flows {
            assert_eq!(each.bound, Some(Bound { min_segments: 1, max_segments: 21, ..Bound::default() }));
        }
        assert_eq!(decision.new_flows, Some(Bound { min_segments: 1, max_segments: 16, ..Bound::default() }));
    }

    #[test]
    fn a_pacing_rate_is_split_likewise_and_never_stops_a_connection() {
        let mut policy = Fixed::new(&PolicySettings {
            policy: PolicyName::Fixed,
            bound_segments: Some(6),
            bound_pacing_mbps: Some(1.5),
            ..PolicySettings::default()
        });
        let decision = tick(&mut policy, 0, &[flow(1, true), flow(2, true), flow(3, true), flow(4, false)]);
        let each = Bound { max_pacing_rate: Rate::from_mbps(0.5), ..Bound::at_most(2) };
        assert!(decision.flows.iter().all(|flow| flow.bound == Some(each)));
        assert_eq!(decision.new_flows, Some(Bound { max_pacing_rate: Rate::from_mbps(0.375), ..Bound::at_most(1) }));
        assert_eq!(decision.flows[0].reason.to_string(), "the host's 6 segments and 1.5 Mb/s over 3 connections");
        // 1.5 Mb/s / 50 = 0.03 Mb/s, and 0.032 is the least.
        let crowd: Vec<_> = (0..50).map(|id| flow(id, true)).collect();
        let rate = tick(&mut policy, 1, &crowd).flows[0].bound.map(|bound| bound.max_pacing_rate);
        assert_eq!(rate, Some(Rate::from_mbps(0.032)));
    }

    #[test]
    fn what_is_received_is_split_over_the_connections_that_receive() {
        let mut policy = Fixed::new(&PolicySettings {
            policy: PolicyName::Fixed,
            bound_segments: Some(64),
            bound_receive_segments: Some(30),
            ..PolicySettings::default()
        });
        let tcp = TcpState { mss_bytes: 1000, ..TcpState::default() };
        let receiving = |id| FlowObservation { receiving: true, tcp, ..flow(id, false) };
        let decision = tick(&mut policy, 0, &[receiving(1), receiving(2), flow(3, true)]);
        let received = |flow: usize| decision.flows[flow].bound.map(|bound| bound.max_receive_bytes);
        // 30 / 2 = 15 each, of 1000 bytes, or of 1448 where it is not known; for one more, 30 / 3 = 10.
        assert_eq!([0, 1, 2].map(received), [Some(15_000), Some(15_000), Some(15 * 1448)]);
        assert_eq!(decision.new_flows, Some(Bound { max_receive_bytes: 14_480, ..Bound::at_most(32) }));
        assert_eq!(decision.flows[2].bound.map(|bound| bound.max_segments), Some(64));
        assert_eq!(decision.flows[0].reason.to_string(), "the host's 64 segments over 1 connection, and 30 received");
        // 30 / 20 = 1: two segments are the least.
        let crowd: Vec<_> = (0..20).map(receiving).collect();
        assert_eq!(tick(&mut policy, 1, &crowd).flows[0].bound.map(|bound| bound.max_receive_bytes), Some(2000));
    }

    #[test]
    fn nobody_gets_less_than_the_minimum() {
        let mut policy = fixed(10, 4);
        let decision = tick(&mut policy, 0, &[flow(1, true), flow(2, true), flow(3, true)]);
        assert_eq!(decision.flows[0].bound, Some(Bound { min_segments: 4, max_segments: 4, ..Bound::default() })); // 10 / 3 = 3
    }

    #[test]
    fn a_host_without_busy_connections_keeps_the_whole_budget_ready() {
        let mut policy = fixed(64, 1);
        let decision = tick(&mut policy, 0, &[flow(1, false)]);
        assert_eq!(decision.flows[0].bound, Some(Bound::at_most(64)));
        assert_eq!(decision.new_flows, Some(Bound::at_most(64)));
    }

    #[test]
    fn a_connection_is_under_control_from_when_it_was_first_seen_until_it_is_gone() {
        let mut policy = fixed(64, 1);
        tick(&mut policy, 1, &[flow(1, true)]);
        let later = tick(&mut policy, 5, &[flow(1, true)]);
        assert_eq!(later.flows[0].enabled_at(), Some(Time::from_nanos(1_000_000_000)));
        tick(&mut policy, 6, &[]);
        let again = tick(&mut policy, 9, &[flow(1, true)]);
        assert_eq!(again.flows[0].enabled_at(), Some(Time::from_nanos(9_000_000_000)));
    }
}
