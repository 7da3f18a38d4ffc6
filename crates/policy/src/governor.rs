//! The work around a policy at each tick: which connections are busy, which bounds TCP gets, what peers hear, and what
//! has changed. The agent and the simulator call the same [`Governor`]. It applies nothing itself.
//!
//! ```text
//!  connections ──> Activity ──> Observation ──> Policy ──> decisions ──┬─> bounds to set, and to take away
//!  peers ──────────────────────────┘                                   └─> Report (the next beacon)
//! ```
//!
//! *What it leaves out*: leases, which the caller adds. Applying a bound may fail; the caller reports success by
//! [`Governor::on_applied`].

use crate::activity::{Activity, Reception};
use crate::{
    Decision, Enabled, FlowDecision, FlowId, FlowMap, FlowObservation, Observation, Policy, PolicyState, Reason,
    Trigger,
};
use lasthop_connection::TcpState;
use lasthop_laws::bound::{Bound, LEAST_PACING_RATE};
use lasthop_peers::{Neighbourhood, Report};
use lasthop_units::{Bytes, Rate, Span, Time};
use std::collections::BTreeMap;

/// One connection in the state of the host's TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowSample {
    /// The connection; no two samples of a tick have the same.
    pub id: FlowId,
    /// Its state.
    pub tcp: TcpState,
    /// Whether its window can be bounded: TCP applies our bounds to it.
    pub controllable: bool,
    /// Whether it is left alone, whatever the policy decides: limits are not split over it.
    pub left_alone: bool,
    /// Whether TCP cannot bound what it receives.
    pub receives_freely: bool,
    /// What a rule of the host allows it, whatever the policy decides; `None`: there is none for it.
    pub limit: Option<Limit>,
}

/// A limit that connections share: it is split over the busy ones among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The index of the rule, whose connections share it.
    pub rule: usize,
    /// What their pacing rates may be together; each gets [`LEAST_PACING_RATE`] or more.
    pub rate: Rate,
}

/// The outcome of one tick.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Turn {
    /// Each connection, in the order of the samples.
    pub flows: Vec<FlowTurn>,
    /// Limits for connections that open before the next tick; `None` also in advice.
    pub new_flows: Option<Bound>,
    /// The bounds that TCP must set or renew, and `None` where it must remove one, also of closed connections. Empty in
    /// advice.
    pub bounds: Vec<(FlowId, Option<Bound>)>,
    /// Connections whose limits were set or removed, or whose reason is of another kind than at the last tick; in the
    /// order of the samples.
    pub changed: Vec<FlowId>,
    /// Connections that came under control at this tick.
    pub enabled: Vec<(FlowId, Enabled)>,
    /// What peers hear until the next tick.
    pub report: Report,
    /// The policy's state; `None` if it shows none, or in advice.
    pub state: Option<PolicyState>,
    /// Why the policy did not decide ([`Policy::failure`]).
    pub failure: Option<String>,
}

/// One connection at a tick.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowTurn {
    /// The policy's input.
    pub seen: FlowObservation,
    /// The policy's decision.
    pub decided: FlowDecision,
}

/// Counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// How often a connection's limits were set, changed or removed.
    pub bounds_changed: u64,
    /// Connections that came under control, or would have in advice.
    pub flows_enabled: u64,
    /// When the first of them came under control.
    pub first_enabled: Option<Time>,
    /// The greatest number of terminals at any tick, with this one; 0 before the first tick.
    pub terminals_max: u32,
}

/// A policy, with the state that it needs from one tick to the next.
pub struct Governor {
    policy: Box<dyn Policy + Send>,
    applies: bool,
    flows: FlowMap<Flow>,
    /// Counts the calls of [`Governor::observe`].
    observed: u64,
    counts: Counts,
}

#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    activity: Activity,
    reception: Reception,
    /// The lowest RTT of either direction at any tick.
    min_receive_rtt: Option<Span>,
    /// `None`: it has not come from another place, or TCP has forgotten that one.
    arrived: Option<Arrived>,
    /// The limits that TCP got last.
    applied: Option<Bound>,
    /// The kind of reason for the last limits; `None`: no limits.
    kind: Option<&'static str>,
    enabled: bool,
    /// The latest observation of it.
    observed: u64,
}

/// A connection that has come from another access point. TCP's RTTs may still be of that one.
#[derive(Clone, Copy, Debug)]
struct Arrived {
    at: Time,
    /// TCP's lowest RTT, of the old place; `None` before the first tick here.
    before: Option<Span>,
    /// What had been acknowledged by the last tick, and the lowest RTT at the ticks since.
    acked: Bytes,
    lowest: Option<Span>,
    /// What had been received by the last tick, and at how many ticks more had come.
    received: Bytes,
    receptions: u32,
}

impl Arrived {
    /// For so long Linux keeps a lowest RTT: net/ipv4/tcp_ipv4.c, sysctl_tcp_min_rtt_wlen, 300 s.
    const REMEMBERED: Span = Span::from_secs(300);
    /// After so many ticks at which data came `receive_rtt`, of which each sample is an eighth, is of here.
    const SMOOTHED: u32 = 10;

    /// Takes away what is of the old place. Returns whether something may still be.
    fn correct(&mut self, now: Time, tcp: &mut TcpState) -> bool {
        let is_first = self.before.is_none();
        let is_acked = std::mem::replace(&mut self.acked, tcp.acked) != tcp.acked && !is_first;
        let has_received = std::mem::replace(&mut self.received, tcp.received) != tcp.received && !is_first;
        // Linux drops an expired minimum when the next sample comes.
        let is_forgotten = is_acked && now.saturating_since(self.at) > Self::REMEMBERED;
        if is_forgotten || self.before.zip(tcp.min_rtt).is_some_and(|(before, min_rtt)| min_rtt < before) {
            return false;
        }
        self.before = tcp.min_rtt;
        if is_acked {
            self.lowest = [self.lowest, tcp.newest_rtt].into_iter().flatten().min();
        }
        self.receptions += u32::from(has_received);
        tcp.min_rtt = self.lowest;
        // It is smoothed, too, and cannot be below the lowest.
        tcp.srtt = self.lowest.and_then(|lowest| Some(tcp.srtt?.max(lowest)));
        tcp.receive_rtt = tcp.receive_rtt.filter(|_| self.receptions >= Self::SMOOTHED);
        true
    }
}

impl Governor {
    /// Runs `policy` at each tick. If `applies` is false its decisions are advice, which TCP does not get and peers do
    /// not hear.
    pub fn new(policy: Box<dyn Policy + Send>, applies: bool) -> Self {
        Self { policy, applies, flows: FlowMap::default(), observed: 0, counts: Counts::default() }
    }

    /// Continues with another policy, or with the same one without its state. Bounds that TCP has are renewed or
    /// removed at the next tick.
    pub fn restart(&mut self, policy: Box<dyn Policy + Send>, applies: bool) {
        (self.policy, self.applies) = (policy, applies);
        #[allow(clippy::iter_over_hash_type, reason = "each by itself: their order does not matter")]
        for flow in self.flows.values_mut() {
            flow.enabled = false;
        }
    }

    /// The host is behind another access point: lowest RTTs begin anew.
    pub fn on_moved(&mut self, now: Time) {
        #[allow(clippy::iter_over_hash_type, reason = "each by itself: their order does not matter")]
        for flow in self.flows.values_mut() {
            flow.min_receive_rtt = None;
            let nothing = Bytes::ZERO;
            flow.arrived =
                Some(Arrived { at: now, before: None, acked: nothing, lowest: None, received: nothing, receptions: 0 });
        }
    }

    /// Forgets every connection and its bound, after TCP has lost them.
    pub fn forget_flows(&mut self) {
        self.flows.clear();
    }

    /// Observes and decides.
    ///
    /// # Panics
    /// If two samples have the same [`FlowId`].
    pub fn on_tick(&mut self, now: Time, samples: &[FlowSample], peers: &Neighbourhood) -> Turn {
        let observations = self.observe(now, samples);
        self.decide(now, samples, observations, peers)
    }

    /// The first half of [`Self::on_tick`], for a caller whose policy takes time: what the policy will see.
    ///
    /// # Panics
    /// As [`Self::on_tick`].
    pub fn observe(&mut self, now: Time, samples: &[FlowSample]) -> Vec<FlowObservation> {
        self.observed += 1;
        let observe = |sample: &FlowSample| {
            let flow = self.flows.entry(sample.id).or_default();
            assert_ne!(flow.observed, self.observed, "no two samples are of the same connection");
            flow.observed = self.observed;
            sample.observe(now, flow)
        };
        samples.iter().map(observe).collect()
    }

    /// The second half: decides on what the last call of [`Self::observe`] gave, for the same samples.
    ///
    /// # Panics
    /// If it was not called for these samples.
    pub fn decide(
        &mut self,
        now: Time,
        samples: &[FlowSample],
        observations: Vec<FlowObservation>,
        peers: &Neighbourhood,
    ) -> Turn {
        let Decision { flows: mut decisions, new_flows } =
            self.policy.on_tick(&Observation { now, flows: &observations, peers });
        for (_, decided) in samples.iter().zip(&mut decisions).filter(|(sample, _)| sample.receives_freely) {
            decided.receive_freely();
        }
        limit(samples, &observations, &mut decisions);
        self.counts.terminals_max = self.counts.terminals_max.max(peers.terminals());

        let mut turn = Turn { new_flows: new_flows.filter(|_| self.applies), ..Turn::default() };
        // First, to make room.
        if self.flows.len() > samples.len() {
            self.flows.retain(|id, flow| {
                let is_gone = flow.observed != self.observed;
                if is_gone && self.applies && flow.applied.is_some() {
                    turn.bounds.push((*id, None));
                }
                !is_gone
            });
            turn.bounds.sort_unstable_by_key(|(id, _)| *id);
        }
        let applies_to = |sample: &FlowSample| self.applies && sample.controllable;
        let followed = samples.iter().zip(&decisions).filter(|(sample, _)| applies_to(sample));
        turn.report = report_of(&observations, followed.filter_map(|(_, decided)| Some(decided.enabled?.by)));
        if samples.iter().any(applies_to) {
            turn.report.word = self.policy.word();
        }
        turn.state = self.policy.state().filter(|_| self.applies);
        turn.failure = self.policy.failure().map(str::to_owned);
        for (sample, decided) in samples.iter().zip(&decisions) {
            let flow = self.flows.get_mut(&sample.id).expect("it was observed");
            // A connection that can no longer be bounded loses its bound.
            let bound = decided.bound.filter(|_| sample.controllable);
            if self.applies && (bound.is_some() || flow.applied.is_some()) {
                turn.bounds.push((sample.id, bound));
            }
            let limits = if self.applies { bound } else { decided.bound };
            let kind = limits.map(|_| decided.reason.kind());
            if std::mem::replace(&mut flow.kind, kind) != kind {
                turn.changed.push(sample.id);
            }
            if let (Some(enabled), false) = (decided.enabled, flow.enabled) {
                turn.enabled.push((sample.id, enabled));
            }
            flow.enabled = decided.enabled.is_some();
        }
        self.counts.flows_enabled += turn.enabled.len() as u64;
        let first = turn.enabled.iter().map(|(_, enabled)| enabled.at).min();
        self.counts.first_enabled = self.counts.first_enabled.or(first);
        turn.flows =
            observations.into_iter().zip(decisions).map(|(seen, decided)| FlowTurn { seen, decided }).collect();
        turn
    }

    /// TCP has taken the bounds of this turn. Without this call they count as not set, and the earlier ones as still in
    /// force.
    pub fn on_applied(&mut self, turn: &Turn) {
        for (id, bound) in &turn.bounds {
            // Closed connections are no longer known.
            let Some(flow) = self.flows.get_mut(id) else { continue };
            self.counts.bounds_changed += u64::from(flow.applied != *bound);
            flow.applied = *bound;
        }
    }

    /// The limits that TCP got last for this connection.
    pub fn applied(&self, id: FlowId) -> Option<Bound> {
        self.flows.get(&id)?.applied
    }

    /// The counters since the start.
    pub const fn counts(&self) -> Counts {
        self.counts
    }
}

impl FlowSample {
    fn observe(&self, now: Time, flow: &mut Flow) -> FlowObservation {
        let Self { id, mut tcp, left_alone, .. } = *self;
        if flow.arrived.as_mut().is_some_and(|arrived| !arrived.correct(now, &mut tcp)) {
            flow.arrived = None;
        }
        let busy = flow.activity.on_sample(now, &tcp);
        let receiving = flow.reception.on_sample(now, &tcp);
        // The handshake's RTT is in `min_rtt`, even where this end sends nothing else.
        flow.min_receive_rtt = [flow.min_receive_rtt, tcp.receive_rtt, tcp.min_rtt].into_iter().flatten().min();
        FlowObservation { id, tcp, busy, min_receive_rtt: flow.min_receive_rtt, receiving, left_alone }
    }
}

/// Holds the decisions to the limits of rules.
fn limit(samples: &[FlowSample], observations: &[FlowObservation], decisions: &mut [FlowDecision]) {
    let mut busy: BTreeMap<usize, u32> = BTreeMap::new();
    for (sample, seen) in samples.iter().zip(observations) {
        if let (Some(limit), true) = (sample.limit, seen.busy) {
            *busy.entry(limit.rule).or_default() += 1;
        }
    }
    for ((sample, seen), decided) in samples.iter().zip(observations).zip(decisions) {
        let Some(Limit { rule, rate }) = sample.limit else { continue };
        // An idle one may begin before the next tick.
        let busy_flows = busy.get(&rule).map_or(0, |busy| *busy) + u32::from(!seen.busy);
        let each = Rate::from_bps(rate.as_bps() / u64::from(busy_flows)).max(LEAST_PACING_RATE);
        let bound = decided.bound.unwrap_or_default();
        if bound.max_pacing_rate == Rate::ZERO || bound.max_pacing_rate > each {
            decided.bound = Some(Bound { max_pacing_rate: each, ..bound });
            decided.reason = Reason::Rule { rule: rule + 1, rate, busy_flows };
        }
    }
}

/// The report of a host with these connections; `enabled`: the triggers of those under control. The RTT is that of the
/// busy connection whose RTT has risen most.
fn report_of(flows: &[FlowObservation], enabled: impl IntoIterator<Item = Trigger>) -> Report {
    let (mut controlling, mut congested) = (false, false);
    for trigger in enabled {
        controlling = true;
        congested |= trigger == Trigger::OwnRtt;
    }
    let busy = || flows.iter().filter(|flow| flow.busy);
    let risen_most = busy().max_by(|a, b| {
        let key = |flow: &FlowObservation| flow.ratio().unwrap_or(0.0);
        key(a).total_cmp(&key(b))
    });
    Report {
        busy_flows: u16::try_from(busy().count()).unwrap_or(u16::MAX),
        waiting: flows.iter().any(|flow| !flow.busy && flow.tcp.has_data()),
        srtt: risen_most.and_then(|flow| flow.tcp.srtt),
        min_rtt: risen_most.and_then(|flow| flow.tcp.min_rtt),
        controlling,
        congested,
        ..Report::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PolicyName, PolicySettings, Trigger};
    use lasthop_peers::{Peer, PeerId};

    fn at(tick: u64) -> Time {
        Time::ZERO + Span::from_millis(500 * tick)
    }

    fn sample(id: u64, tick: u64, srtt_ms: u64) -> FlowSample {
        FlowSample {
            id: FlowId(id),
            tcp: TcpState {
                srtt: Some(Span::from_millis(srtt_ms)),
                min_rtt: Some(Span::from_millis(100)),
                cwnd_segments: 500,
                acked: Bytes::new(tick),
                in_flight_segments: 500,
                unsent: Bytes::ZERO,
                ..TcpState::default()
            },
            controllable: true,
            ..FlowSample::default()
        }
    }

    fn settings(policy: PolicyName) -> PolicySettings {
        PolicySettings { policy, bound_segments: Some(64), ..PolicySettings::default() }
    }

    fn governor(policy: PolicyName, applies: bool) -> Governor {
        Governor::new(settings(policy).build(), applies)
    }

    const BOTH: fn(u64) -> [FlowSample; 2] = |tick| [sample(7, tick, 100), sample(8, tick, 100)];

    #[test]
    fn bounds_are_set_renewed_and_counted_when_they_change() {
        let mut governor = governor(PolicyName::Fixed, true);
        // The host's 64 segments over two busy connections; with one more, a third.
        let half = Some(Bound::at_most(32));
        for tick in 0..3 {
            let turn = governor.on_tick(at(tick), &BOTH(tick), &Neighbourhood::alone());
            assert_eq!(turn.bounds, [(FlowId(7), half), (FlowId(8), half)]);
            assert_eq!(turn.new_flows, Some(Bound::at_most(21)));
            governor.on_applied(&turn);
        }
        assert_eq!(governor.counts().bounds_changed, 2);
        // Alone, the first one gets all. The other had a bound and is closed.
        let turn = governor.on_tick(at(3), &[sample(7, 3, 100)], &Neighbourhood::alone());
        assert_eq!(turn.bounds, [(FlowId(8), None), (FlowId(7), Some(Bound::at_most(64)))]);
        governor.on_applied(&turn);
        assert_eq!(governor.counts().bounds_changed, 3);
        assert_eq!(governor.on_tick(at(4), &[], &Neighbourhood::alone()).bounds, [(FlowId(7), None)]);
        assert_eq!(governor.on_tick(at(5), &[], &Neighbourhood::alone()).bounds, []);
    }

    #[test]
    fn what_tcp_did_not_take_is_not_in_force() {
        let mut governor = governor(PolicyName::Fixed, true);
        let turn = governor.on_tick(at(0), &[sample(7, 0, 100)], &Neighbourhood::alone());
        assert_eq!((turn.bounds.len(), governor.applied(FlowId(7))), (1, None));
        let turn = governor.on_tick(at(1), &[sample(7, 1, 100)], &Neighbourhood::alone());
        governor.on_applied(&turn);
        assert_eq!(governor.applied(FlowId(7)), Some(Bound::at_most(64)));
        assert_eq!(governor.counts().bounds_changed, 1);
    }

    #[test]
    fn a_connection_that_cannot_be_bounded_any_more_loses_its_bound() {
        let mut governor = governor(PolicyName::Fixed, true);
        let turn = governor.on_tick(at(0), &[sample(7, 0, 100)], &Neighbourhood::alone());
        governor.on_applied(&turn);
        let alien = FlowSample { controllable: false, ..sample(7, 1, 100) };
        let turn = governor.on_tick(at(1), &[alien], &Neighbourhood::alone());
        assert_eq!((turn.bounds.as_slice(), turn.report.controlling), (&[(FlowId(7), None)][..], false));
        governor.on_applied(&turn);
        assert_eq!(
            governor
                .on_tick(
                    at(2),
                    &[FlowSample { tcp: TcpState { acked: Bytes::new(9), ..alien.tcp }, ..alien }],
                    &Neighbourhood::alone()
                )
                .bounds,
            []
        );
        assert_eq!(governor.counts().bounds_changed, 2);
    }

    #[test]
    fn a_download_that_cannot_be_bounded_counts_as_not_controlled() {
        let receive = || PolicySettings { bound_receive_segments: Some(30), ..settings(PolicyName::Fixed) };
        let download = |receives_freely| FlowSample { receives_freely, ..sample(7, 1, 100) };
        let decided = |settings: PolicySettings, sample| {
            Governor::new(settings.build(), true).on_tick(at(1), &[sample], &Neighbourhood::alone())
        };
        let bounds = |turn: Turn| turn.bounds.first().and_then(|(_, bound)| *bound);
        let both = Bound { max_receive_bytes: 30 * 1448, ..Bound::at_most(64) };
        assert_eq!(bounds(decided(receive(), download(false))), Some(both));
        assert_eq!(bounds(decided(receive(), download(true))), Some(Bound::at_most(64)));

        let enabled = Some(Enabled { at: at(1), by: Trigger::Always });
        let only = Bound { max_receive_bytes: 30 * 1448, ..Bound::default() };
        let mut decision = FlowDecision::new(FlowId(7), enabled, Ok((only, Reason::NotBulk)));
        decision.receive_freely();
        assert_eq!(decision, FlowDecision::new(FlowId(7), None, Err(Reason::ReceivesFreely)));
    }

    #[test]
    fn limits_are_not_split_over_connections_that_are_left_alone() {
        let mut governor = governor(PolicyName::Fixed, true);
        let left = FlowSample { controllable: false, left_alone: true, ..sample(8, 1, 100) };
        let turn = governor.on_tick(at(1), &[sample(7, 1, 100), left], &Neighbourhood::alone());
        assert_eq!(turn.bounds, [(FlowId(7), Some(Bound::at_most(64)))]);
        // Peers count both: they share the air with both.
        assert_eq!((turn.new_flows, turn.report.busy_flows), (Some(Bound::at_most(32)), 2));
        assert_eq!(turn.changed, [FlowId(7)], "nothing is said of the other one");
    }

    #[test]
    fn the_limit_of_a_rule_is_split_over_its_busy_connections_and_the_tighter_of_it_and_the_policy_holds() {
        let mut governor = governor(PolicyName::None, true);
        let limited = |id, tick, rule| {
            let limit = Some(Limit { rule, rate: Rate::from_mbps(6.0) });
            FlowSample { limit, ..sample(id, tick, 100) }
        };
        let mut idle = limited(4, 0, 0);
        (idle.tcp.in_flight_segments, idle.tcp.acked) = (0, Bytes::ZERO);
        let samples = [limited(1, 1, 0), limited(2, 1, 0), limited(3, 1, 1), idle, sample(5, 1, 100)];
        let turn = governor.on_tick(at(1), &samples, &Neighbourhood::alone());
        // 6 / 2 each; the other rule's alone; 6 / 3 if the idle one begins.
        let paces: Vec<_> = turn.bounds.iter().map(|(id, bound)| (id.0, bound.expect("one").max_pacing_rate)).collect();
        assert_eq!(paces, [(1, 3.0), (2, 3.0), (3, 6.0), (4, 2.0)].map(|(id, mbps)| (id, Rate::from_mbps(mbps))));
        assert_eq!(turn.flows[0].decided.reason.to_string(), "rule 1: 6 Mb/s over 2 connections");
        assert!(!turn.report.controlling);
        governor.on_applied(&turn);
        // A rule that goes leaves nothing behind.
        let free = [1, 2, 3, 4, 5].map(|id| sample(id, 2, 100));
        let turn = governor.on_tick(at(2), &free, &Neighbourhood::alone());
        assert_eq!(turn.bounds, [1, 2, 3, 4].map(|id| (FlowId(id), None)));

        let settings = PolicySettings { bound_pacing_mbps: Some(1.0), ..settings(PolicyName::Fixed) };
        let mut governor = Governor::new(settings.build(), true);
        let turn = governor.on_tick(at(1), &[limited(1, 1, 0)], &Neighbourhood::alone());
        let bound = Bound { max_pacing_rate: Rate::from_mbps(1.0), ..Bound::at_most(64) };
        assert_eq!(turn.bounds, [(FlowId(1), Some(bound))]);
    }

    #[test]
    fn advice_is_given_and_counted_and_nobody_is_told() {
        let mut governor = governor(PolicyName::Formula, false);
        let turn = governor.on_tick(at(1), &[sample(7, 1, 700)], &Neighbourhood::alone());
        assert_eq!(turn.flows[0].decided.bound, Some(Bound::at_most(1)));
        assert_eq!((turn.bounds.as_slice(), turn.new_flows), (&[][..], None));
        assert_eq!((turn.report.busy_flows, turn.report.controlling, turn.report.congested), (1, false, false));
        let counts = governor.counts();
        assert_eq!((counts.flows_enabled, counts.first_enabled, counts.bounds_changed), (1, Some(at(1)), 0));
    }

    #[test]
    fn what_is_new_is_told_once() {
        let mut governor = governor(PolicyName::Formula, true);
        let mut tick = |tick, srtt_ms| {
            let turn = governor.on_tick(at(tick), &[sample(7, tick, srtt_ms)], &Neighbourhood::alone());
            governor.on_applied(&turn);
            (turn.changed, turn.enabled.len(), turn.report.congested)
        };
        assert_eq!(tick(0, 100), (vec![], 0, false));
        assert_eq!(tick(1, 700), (vec![FlowId(7)], 1, true)); // enabled above 6, and cut above 5
        assert_eq!(tick(2, 700), (vec![], 0, true));
        assert_eq!(tick(3, 120), (vec![FlowId(7)], 0, true)); // the share
        assert_eq!(tick(4, 130), (vec![], 0, true)); // another share
        assert_eq!(governor.counts().flows_enabled, 1);
        assert_eq!(governor.counts().first_enabled, Some(at(1)));
    }

    #[test]
    fn behind_another_access_point_the_lowest_rtts_of_the_old_one_are_forgotten() {
        let mut governor = governor(PolicyName::None, true);
        let lowest = |governor: &mut Governor, tick, min_rtt_ms: u64, newest_rtt_ms, acked| {
            let mut sample = sample(7, acked, 300);
            let rtts = [min_rtt_ms, newest_rtt_ms].map(|ms| Some(Span::from_millis(ms)));
            [sample.tcp.min_rtt, sample.tcp.newest_rtt] = rtts;
            let seen = governor.observe(at(tick), &[sample])[0];
            [seen.tcp.min_rtt, seen.min_receive_rtt].map(|rtt| rtt.map_or(0, Span::as_millis))
        };
        assert_eq!(lowest(&mut governor, 0, 20, 90, 1), [20, 20]);
        governor.on_moved(at(1));
        // The newest RTT may be of the old place until something is acknowledged here.
        assert_eq!(lowest(&mut governor, 1, 20, 90, 1), [0, 0]);
        assert_eq!(lowest(&mut governor, 2, 20, 90, 1), [0, 0]);
        assert_eq!(lowest(&mut governor, 3, 20, 80, 2), [80, 80]);
        assert_eq!(lowest(&mut governor, 4, 20, 85, 3), [80, 80]);
        // TCP keeps it for 300 s: ticks 1 to 601. By then what it says is of here.
        assert_eq!(lowest(&mut governor, 601, 20, 85, 4), [80, 80]);
        assert_eq!(lowest(&mut governor, 602, 60, 85, 5), [60, 60]);
        // A lower one than at the old place is of here.
        governor.on_moved(at(603));
        assert_eq!(lowest(&mut governor, 603, 60, 85, 5), [0, 0]);
        assert_eq!(lowest(&mut governor, 604, 7, 9, 6), [7, 7]);
        // Where nothing is acknowledged TCP has not forgotten it.
        governor.on_moved(at(605));
        assert_eq!(lowest(&mut governor, 605, 7, 9, 6), [0, 0]);
        assert_eq!(lowest(&mut governor, 1300, 7, 9, 6), [0, 0]);
    }

    #[test]
    fn behind_another_access_point_smoothed_rtts_of_the_old_one_are_not_taken_for_low_ones() {
        let mut governor = governor(PolicyName::None, true);
        let smoothed = |governor: &mut Governor, tick, acked| {
            let mut sample = sample(7, acked, 300);
            let rtts = [20, 120, 30, 25].map(|ms| Some(Span::from_millis(ms)));
            [sample.tcp.min_rtt, sample.tcp.newest_rtt, sample.tcp.srtt, sample.tcp.receive_rtt] = rtts;
            sample.tcp.received = Bytes::new(acked);
            let seen = governor.observe(at(tick), &[sample])[0];
            [seen.tcp.srtt, seen.tcp.receive_rtt].map(|rtt| rtt.map_or(0, Span::as_millis))
        };
        assert_eq!(smoothed(&mut governor, 0, 1), [30, 25]);
        governor.on_moved(at(1));
        assert_eq!(smoothed(&mut governor, 1, 1), [0, 0]);
        assert_eq!(smoothed(&mut governor, 2, 2), [120, 0]);
        // Nothing comes for ten seconds; then at ten ticks.
        assert_eq!(smoothed(&mut governor, 22, 2), [120, 0]);
        for tick in 23..31 {
            assert_eq!(smoothed(&mut governor, tick, tick), [120, 0]);
        }
        assert_eq!(smoothed(&mut governor, 31, 31), [120, 25]);
    }

    #[test]
    fn a_policy_that_begins_anew_takes_away_what_the_last_one_had_set() {
        let mut governor = governor(PolicyName::Formula, true);
        let turn = governor.on_tick(at(0), &[sample(7, 0, 700)], &Neighbourhood::alone());
        governor.on_applied(&turn);
        governor.restart(settings(PolicyName::Formula).build(), true);
        // An RTT of 120 ms over 100 ms does not put a connection under control.
        let turn = governor.on_tick(at(1), &[sample(7, 1, 120)], &Neighbourhood::alone());
        assert_eq!((turn.bounds.as_slice(), turn.changed.as_slice()), (&[(FlowId(7), None)][..], &[FlowId(7)][..]));
        governor.on_applied(&turn);
        assert_eq!(governor.on_tick(at(2), &[sample(7, 2, 700)], &Neighbourhood::alone()).enabled.len(), 1);
        assert_eq!(governor.counts().flows_enabled, 2);
        governor.forget_flows();
        assert_eq!(governor.applied(FlowId(7)), None);
    }

    #[test]
    fn the_report_says_what_is_busy_and_the_counts_who_was_there() {
        let mut governor = governor(PolicyName::Formula, true);
        let mut idle = sample(9, 0, 900);
        idle.tcp.in_flight_segments = 0;
        let peer = |id| Peer { id: PeerId(id), report: Report { busy_flows: 1, ..Report::default() }, heard_at: at(0) };
        let peers = Neighbourhood::new(vec![peer(1), peer(2)]);
        let turn = governor.on_tick(at(0), &[sample(7, 0, 200), idle], &peers);
        assert_eq!((turn.report.busy_flows, turn.report.srtt), (1, Some(Span::from_millis(200))));
        assert_eq!(turn.flows.iter().map(|flow| flow.seen.busy).collect::<Vec<_>>(), [true, false]);
        governor.on_tick(at(1), &[], &Neighbourhood::alone());
        assert_eq!(governor.counts().terminals_max, 3);
    }

    #[test]
    fn a_host_that_only_receives_is_not_busy_and_knows_the_lowest_rtt_of_either_direction() {
        let mut governor = governor(PolicyName::Fixed, true);
        let download = |tick, receive_rtt_ms| FlowSample {
            tcp: TcpState {
                in_flight_segments: 0,
                acked: Bytes::ZERO,
                mss_bytes: 1448,
                received: Bytes::new(1_000_000 * (tick + 1)),
                receive_rtt: Some(Span::from_millis(receive_rtt_ms)),
                ..sample(7, tick, 100).tcp
            },
            ..sample(7, tick, 100)
        };
        let mut seen = |tick, receive_rtt_ms| {
            let turn = governor.on_tick(at(tick), &[download(tick, receive_rtt_ms)], &Neighbourhood::alone());
            let seen = turn.flows[0].seen;
            (seen.busy, seen.receiving, turn.report.busy_flows, seen.min_receive_rtt)
        };
        assert_eq!(seen(0, 300), (false, false, 0, Some(Span::from_millis(100)))); // the handshake's
        assert_eq!(seen(1, 90), (false, true, 0, Some(Span::from_millis(90))));
        assert_eq!(seen(2, 200), (false, true, 0, Some(Span::from_millis(90))));
    }

    #[test]
    fn what_put_a_connection_under_control_is_passed_on() {
        let mut governor = governor(PolicyName::Formula, true);
        let turn = governor.on_tick(at(4), &[sample(7, 0, 700)], &Neighbourhood::alone());
        assert_eq!(turn.enabled, [(FlowId(7), Enabled { at: at(4), by: Trigger::OwnRtt })]);
    }

    #[test]
    #[should_panic(expected = "no two samples are of the same connection")]
    fn one_connection_is_not_met_twice_in_a_tick() {
        governor(PolicyName::Fixed, true).on_tick(at(0), &[sample(7, 0, 1), sample(7, 0, 1)], &Neighbourhood::alone());
    }

    #[test]
    fn a_host_reports_the_connection_whose_rtt_has_risen_most() {
        let flow = |id, srtt_ms, busy| FlowObservation {
            id: FlowId(id),
            tcp: TcpState {
                srtt: Some(Span::from_millis(srtt_ms)),
                min_rtt: Some(Span::from_millis(100)),
                cwnd_segments: 1,
                ..TcpState::default()
            },
            busy,
            ..FlowObservation::default()
        };
        let report = report_of(&[flow(1, 200, true), flow(2, 700, true), flow(3, 900, false)], [Trigger::Peer]);
        assert_eq!((report.busy_flows, report.waiting), (2, false));
        assert_eq!(report.srtt, Some(Span::from_millis(700)));
        assert_eq!(report.ratio(), Some(7.0));
        assert_eq!((report.controlling, report.congested), (true, false));
        let report = report_of(&[], [Trigger::Peer, Trigger::OwnRtt]);
        assert_eq!((report.controlling, report.congested), (true, true));
        assert_eq!(report_of(&[], []), Report::default());
        // Data are sent or written, and none get through.
        let (mut stalled, mut backlogged) = (flow(1, 900, false), flow(1, 900, false));
        (stalled.tcp.in_flight_segments, backlogged.tcp.unsent) = (1, Bytes::new(1));
        for flow in [stalled, backlogged] {
            let report = report_of(&[flow], []);
            assert_eq!(report, Report { waiting: true, ..Report::default() });
            assert!(report.has_something_to_send() && !Report::default().has_something_to_send());
        }
    }
}
