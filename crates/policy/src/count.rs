//! The policy `count`, the first generation of the middleware: H. Hirai, S. Yamaguchi, M. Oguchi, *A proposal on
//! cooperative transmission control middleware on a smartphone in a WLAN environment*, IEEE WiMob 2013, as described in
//! hayakawa. Terminals count each other by UDP broadcasts. Every 10 s each sets its window by their number alone.
//!
//! 1. Every `adjust_s` read n, the number of terminals.
//! 2. The window of the host is at most the n-th of `count_segments`, past the end of the list its last one.
//! 3. At every tick split it over the host's busy connections, rounded down, never below `minimum_segments`.
//!
//! hayakawa does not give the paper's values. Without `count_segments` they are computed by hayakawa eqs. 2 to 4 for an
//! RTT of `count_rtt_ms`, as one would fill the list for one path. *What it leaves out*: the RTT; terminals that arrive
//! or leave between two adjustments.

use super::budget::{Budget, Since, split};
use super::share::Share;
use super::{Decision, Observation, Policy, PolicySettings, Reason};
use lasthop_units::{Rate, Span, Time};

/// The policy `count`.
#[derive(Clone, Debug)]
pub struct Count {
    settings: PolicySettings,
    since: Since,
    /// The number of terminals at the last adjustment, and when the next one is due.
    adjusted: Option<(u32, Time)>,
}

impl Count {
    pub(super) fn new(settings: &PolicySettings) -> Self {
        Self { settings: settings.clone(), since: Since::default(), adjusted: None }
    }

    fn window(&self, terminals: u32) -> u32 {
        let listed = self.settings.count_segments.as_deref().unwrap_or_default();
        if let Some(last) = listed.len().checked_sub(1) {
            return listed[last.min(terminals.max(1) as usize - 1)];
        }
        let rtt = Span::from_secs_f64(self.settings.count_rtt_ms / 1e3);
        Share::of(&self.settings, rtt, terminals).ideal_segments.round() as u32
    }
}

impl Policy for Count {
    fn on_tick(&mut self, observation: &Observation<'_>) -> Decision {
        let Observation { now, peers, .. } = *observation;
        let terminals = match self.adjusted {
            Some((terminals, next)) if now < next => terminals,
            _ => {
                let terminals = peers.terminals().min(self.settings.maximum_terminals);
                self.adjusted = Some((terminals, now.saturating_add(Span::from_secs_f64(self.settings.adjust_s))));
                terminals
            }
        };
        self.since.meet(observation);
        let bound_segments = self.window(terminals);
        let budget = Budget { segments: bound_segments, pacing_rate: Rate::ZERO, receive_segments: 0 };
        split(observation, &self.since, budget, self.settings.minimum_segments, |busy_flows| Reason::Count {
            terminals,
            bound_segments,
            busy_flows,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FlowId, FlowObservation, PolicyName};
    use lasthop_peers::{Neighbourhood, Peer, PeerId, Report};

    fn count(change: impl FnOnce(&mut PolicySettings)) -> Box<dyn Policy + Send> {
        let mut settings = PolicySettings { policy: PolicyName::Count, ..PolicySettings::default() };
        change(&mut settings);
        settings.build()
    }

    fn upper(policy: &mut dyn Policy, tick: u64, n: u64, flows: u64) -> u32 {
        let peer =
            |id| Peer { id: PeerId(id), report: Report { busy_flows: 1, ..Report::default() }, heard_at: Time::ZERO };
        let peers = Neighbourhood::new((1..n).map(peer).collect());
        let flows: Vec<_> =
            (0..flows).map(|id| FlowObservation { id: FlowId(id), busy: true, ..FlowObservation::default() }).collect();
        let now = Time::ZERO + Span::from_millis(500) * tick;
        let decision = policy.on_tick(&Observation { now, flows: &flows, peers: &peers });
        decision.flows[0].bound.expect("always under control").max_segments
    }

    #[test]
    fn the_number_of_terminals_is_looked_at_every_ten_seconds() {
        let mut policy = count(|settings| settings.count_segments = Some(vec![100, 40, 25]));
        assert_eq!(upper(policy.as_mut(), 0, 1, 1), 100);
        assert_eq!(upper(policy.as_mut(), 19, 3, 1), 100); // 9.5 s
        assert_eq!(upper(policy.as_mut(), 20, 3, 1), 25); // 10 s
        assert_eq!(upper(policy.as_mut(), 39, 2, 1), 25);
        assert_eq!(upper(policy.as_mut(), 40, 2, 1), 40);
        assert_eq!(upper(policy.as_mut(), 60, 9, 1), 25); // past the end: the last
    }

    #[test]
    fn the_window_is_split_over_busy_connections() {
        let mut policy = count(|settings| settings.count_segments = Some(vec![100]));
        assert_eq!(upper(policy.as_mut(), 0, 1, 3), 33);
        assert_eq!(upper(policy.as_mut(), 1, 1, 200), 1);
    }

    #[test]
    fn without_a_list_the_windows_are_those_of_hayakawas_eq_2_at_256_ms() {
        // As in docs/models/policy-formula.md: 405, 82, 28.7.
        assert_eq!(upper(count(|_| ()).as_mut(), 0, 1, 1), 405);
        assert_eq!(upper(count(|_| ()).as_mut(), 0, 4, 1), 82);
        assert_eq!(upper(count(|_| ()).as_mut(), 0, 10, 1), 29);
        assert_eq!(upper(count(|settings| settings.count_rtt_ms = 4.0).as_mut(), 0, 10, 1), 1);
    }
}
