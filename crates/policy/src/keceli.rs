//! The policy `keceli`: a limit for each flow such that the access point's queue does not overflow. The idea is that of
//! F. Keceli, I. Inan, E. Ayanoglu, *Fair and efficient TCP access in the IEEE 802.11 infrastructure basic service set*
//! (arXiv 0806.1089). If the windows of all flows are limited so that the access point drops no packet, access is fair.
//! The limit depends on the number of flows, their RTT, and delayed acknowledgements.
//!
//! For each connection, from its beginning:
//! 1. R = bandwidth_max / (8 · segment_bytes): the capacity of the access network in segments per second.
//! 2. All flows together may have b · Q segments, whose ACKs fill the access point's queue of Q packets (b segments per
//!    ACK), and R · RTT_min segments on the path.
//! 3. W = (b · Q + R · RTT_min) / flows, rounded down, at least `minimum_segments`. flows: this host's busy connections
//!    and those that peers report.
//!
//! The equation of step 3 is ours, from the condition in their abstract (the text was not at hand). *What it leaves
//! out*: downloads, which put one packet for each segment into the queue; the access point's rate, which falls with the
//! number of stations.

use super::budget::Since;
use super::{Decision, FlowDecision, FlowId, FlowObservation, Observation, Policy, PolicySettings, Reason};
use lasthop_laws::bound::Bound;
use lasthop_units::Span;
use std::collections::BTreeMap;

/// The policy `keceli`.
#[derive(Clone, Debug)]
pub struct Keceli {
    settings: PolicySettings,
    since: Since,
    lowest_rtts: BTreeMap<FlowId, Span>,
}

impl Keceli {
    pub(super) fn new(settings: &PolicySettings) -> Self {
        Self { settings: settings.clone(), since: Since::default(), lowest_rtts: BTreeMap::new() }
    }

    fn window(&self, lowest_rtt: Span, flows: u32) -> f64 {
        let settings = &self.settings;
        let segments_per_second = settings.bandwidth_mbps() * 1e6 / (8.0 * f64::from(settings.segment_bytes));
        let queued = f64::from(settings.segments_per_ack) * f64::from(settings.access_queue_packets);
        (queued + segments_per_second * lowest_rtt.as_secs_f64()) / f64::from(flows)
    }

    fn limit(&self, flow: &FlowObservation, flows: u32) -> Result<(Bound, Reason), Reason> {
        let lowest_rtt = *self.lowest_rtts.get(&flow.id).ok_or(Reason::NoRtt)?;
        let ideal_segments = self.window(lowest_rtt, flows);
        let min_segments = self.settings.minimum_segments;
        let bound = Bound { min_segments, max_segments: (ideal_segments as u32).max(min_segments), ..Bound::default() };
        Ok((bound, Reason::QueueShare { lowest_rtt, flows, ideal_segments }))
    }
}

impl Policy for Keceli {
    fn on_tick(&mut self, observation: &Observation<'_>) -> Decision {
        self.since.meet(observation);
        let mut known = std::mem::take(&mut self.lowest_rtts);
        for flow in observation.flows {
            let lowest = [known.remove(&flow.id), flow.tcp.min_rtt, flow.tcp.srtt].into_iter().flatten().min();
            self.lowest_rtts.extend(lowest.map(|lowest| (flow.id, lowest)));
        }
        // Peers' numbers are believed up to `maximum_terminals`; this host's own connections all count.
        let own = observation.busy_flows().max(1);
        let others = observation.peers.busy_flows().min(self.settings.maximum_terminals.saturating_sub(own));
        let flows = own.saturating_add(others);
        let decide = |flow: &FlowObservation| {
            let limits = self.limit(flow, flows);
            FlowDecision::new(flow.id, self.since.enabled(flow.id).filter(|_| limits.is_ok()), limits)
        };
        Decision { flows: observation.flows.iter().map(decide).collect(), new_flows: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PolicyName;
    use lasthop_connection::TcpState;
    use lasthop_peers::{Neighbourhood, Peer, PeerId, Report};
    use lasthop_units::Time;

    fn upper(change: impl FnOnce(&mut PolicySettings), peers: &[u16], own: u64) -> Option<u32> {
        let mut settings = PolicySettings { policy: PolicyName::Keceli, ..PolicySettings::default() };
        change(&mut settings);
        let peer = |(id, busy_flows): (usize, &u16)| Peer {
            id: PeerId(id as u64),
            report: Report { busy_flows: *busy_flows, ..Report::default() },
            heard_at: Time::ZERO,
        };
        let peers = Neighbourhood::new(peers.iter().enumerate().map(peer).collect());
        let flow = |id| FlowObservation {
            id: FlowId(id),
            tcp: TcpState {
                srtt: Some(Span::from_millis(900)),
                min_rtt: Some(Span::from_millis(256)),
                ..TcpState::default()
            },
            busy: true,
            ..FlowObservation::default()
        };
        let flows: Vec<_> = (0..own).map(flow).collect();
        let decision = settings.build().on_tick(&Observation { now: Time::ZERO, flows: &flows, peers: &peers });
        decision.flows[0].bound.map(|bound| bound.max_segments)
    }

    #[test]
    fn the_windows_of_all_fill_the_pipe_and_the_queue() {
        // R = 19e6 / 12000 = 1583.3 segments/s; R · 0.256 = 405.3; b · Q = 2 · 100: in all 605.3.
        assert_eq!(upper(|_| (), &[], 1), Some(605));
        assert_eq!(upper(|_| (), &[1; 9], 1), Some(60));
        assert_eq!(upper(|_| (), &[2, 0], 2), Some(151)); // four flows
        let change = |settings: &mut PolicySettings| {
            settings.segments_per_ack = 1;
            settings.access_queue_packets = 50;
        };
        assert_eq!(upper(change, &[1; 9], 1), Some(45)); // (50 + 405.3) / 10
    }

    #[test]
    fn forged_flows_count_up_to_the_most_that_are_believed() {
        assert_eq!(upper(|_| (), &[u16::MAX; 3], 1), Some(9)); // 605.3 / 64
    }

    #[test]
    fn all_of_this_hosts_own_flows_count() {
        assert_eq!(upper(|_| (), &[], 100), Some(6)); // 605.3 / 100
        assert_eq!(upper(|_| (), &[u16::MAX; 3], 100), Some(6));
    }

    #[test]
    fn before_the_first_rtt_nothing_is_limited() {
        let settings = PolicySettings { policy: PolicyName::Keceli, ..PolicySettings::default() };
        let flow = FlowObservation { busy: true, ..FlowObservation::default() };
        let peers = Neighbourhood::alone();
        let decision = settings.build().on_tick(&Observation { now: Time::ZERO, flows: &[flow], peers: &peers });
        assert_eq!((decision.flows[0].bound, decision.flows[0].enabled), (None, None));
    }
}
