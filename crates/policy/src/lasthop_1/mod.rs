//! The policy `lasthop-1`, the first generation of `lasthop`: no table, no bandwidth to configure, no constants of one
//! access point. The reasoning, its stability, its failures and what else was tried: docs/models/policy-lasthop-1.md.
//!
//! Every host keeps the *common rate* r, what one host may send. Beacons carry it, and at each tick (0.5 s):
//!
//! 1. [`signals`]: take B and q, the mean over all busy hosts of the lowest RTT and of what the RTT lies above it.
//! 2. [`common_rate`]: take the mean of one's own r and of those just heard, so that all hosts have the same; then move it by
//!    what q lies above or below the queue aimed at. Congestion is common, so the reaction is: shares stay equal. Where the medium
//!    collapses under a queue [`edge`] moves it.
//! 3. A host splits r over its busy connections. Where that makes windows of 16 segments or more, the window r·(B + q*) decides;
//!    where less, the pacing rate does, two segments at a time, with an even window as its limit.
//! 4. [`guard`]: begin when q says that the access point is congested; give up where control is not worth it, because others
//!    fill the queue, and where nothing is congested.
//!
//! *What it leaves out*: hosts whose frames take more air time than others' get as many bits as those, as DCF itself gives them.

mod common_rate;
mod edge;
mod evidence;
mod guard;
#[cfg(test)]
mod liars;
mod signals;
mod told;

use super::{
    Decision, Enabled, FlowDecision, FlowId, FlowObservation, Observation, Policy, PolicySettings, PolicyState, Reason,
    Trigger,
};
use common_rate::{CommonRate, DRAINING_SEGMENTS, SPARSE_SEGMENTS, Shape, WINDOW_TARGET};
use guard::{Entry, Exit, Guard};
use lasthop_laws::bound::{Bound, LEAST_PACING_RATE};
use lasthop_peers::Word;
use lasthop_units::{Rate, Span, Time};
use signals::{Own, Signals};
use std::collections::BTreeMap;
use told::Told;

/// No window is larger than twice this, whatever a rate and an RTT may make of it.
const MOST_PAIRS: f64 = 500_000.0;
/// A new connection gets at least the initial window of RFC 6928.
const NEW_FLOW_SEGMENTS: u32 = 10;
/// Who has had something to send for less than this, in s, has filled no queue yet that had to be drained.
const NEWCOMER_S: f64 = 2.0;
/// Who has got nothing while free has nothing to slow down from, and joins a trial with this part of the others' rate. They have made
/// room for what they know of: with more of those that had starved the queue stayed.
const UNSEEN: f64 = 0.25;
/// When control has done harm connections are given back the windows that they had when its trial began, within this time: those that wait
/// in a timeout first are not raised before it is over. Not after control of a host that is alone: among many that have come, the window of
/// one that had all to itself is lost at once.
const UNDO: Span = Span::from_secs(15);
/// But no more than what the host got without control fills, with a queue of this, in s: what a window holds beyond that on a medium that
/// has collapsed only makes the next trial harder.
const UNDO_QUEUE_S: f64 = 2.0;
/// A lowest RTT of more than this part of B is as long as the others'.
const SAME_PATH: f64 = 0.8;
/// Each pace differs by up to this part, another one at each tick: hosts with equal paces would keep their phases, and whoever
/// comes last in each period would see a queue for ever.
const DITHER: f64 = 0.03;

/// The policy `lasthop-1`.
#[derive(Clone, Debug)]
pub struct Lasthop1 {
    minimum_segments: u32,
    own: Own,
    guard: Guard,
    rate: Option<CommonRate>,
    enabled: Option<Enabled>,
    /// Has had something to send without a pause since then.
    sending_since: Option<Time>,
    /// What rounding has left to each connection, in segments.
    remainders: BTreeMap<FlowId, f64>,
    released: bool,
    was_sparse: bool,
    /// The windows of the connections when the trial began, in segments.
    before_trial: BTreeMap<FlowId, u32>,
    /// Until then they are given back.
    undo_until: Time,
}

impl Lasthop1 {
    pub(super) fn new(settings: &PolicySettings) -> Self {
        Self {
            minimum_segments: settings.minimum_segments,
            own: Own::default(),
            guard: Guard::default(),
            rate: None,
            enabled: None,
            sending_since: None,
            remainders: BTreeMap::new(),
            released: false,
            was_sparse: false,
            before_trial: BTreeMap::new(),
            undo_until: Time::ZERO,
        }
    }

    fn steer(&mut self, signals: &Signals, flows: &[FlowObservation]) {
        // Congested is what has more of a queue than control would aim at, or than those who control keep on purpose.
        let begin = common_rate::target(WINDOW_TARGET, signals).max(common_rate::kept(signals));
        let was_idle = self.sending_since.is_none();
        self.sending_since = signals.wants.then(|| self.sending_since.unwrap_or(signals.now));
        let Some(rate) = &mut self.rate else {
            if let Some(since) = self.sending_since {
                self.guard.look(signals, signals.now.saturating_since(since).as_secs_f64(), begin);
            }
            if let Some(since) = self.sending_since.filter(|_| signals.busy) {
                let is_new = signals.now.saturating_since(since).as_secs_f64() < NEWCOMER_S;
                let (rate, by) = match self.guard.without_control(signals, is_new, begin) {
                    Entry::Wait => return,
                    Entry::Trial(rate) => (CommonRate::trial(rate, signals), Trigger::OwnRtt),
                    Entry::Join(rate, drains) => {
                        let part = if drains && self.guard.own_free() == 0.0 { UNSEEN } else { 1.0 };
                        (CommonRate::join(part * rate, drains, signals), Trigger::Peer)
                    }
                };
                self.rate = Some(rate);
                self.enabled = Some(Enabled { at: signals.now, by });
                self.remember_windows(signals, if by == Trigger::OwnRtt { flows } else { &[] });
            }
            return;
        };
        let (sum, count) = signals.known;
        if was_idle && signals.busy && count > 0.0 {
            rate.rejoin(sum / count, signals);
        } else if signals.busy {
            rate.on_tick(signals, self.guard.trial(signals));
        }
        let aim = rate.shape(signals).target;
        let draining = rate.is_draining();
        match self.guard.under_control(signals, rate.rate, draining, aim) {
            Exit::No => return,
            Exit::Harm if draining || signals.hosts > 1 => self.undo_until = signals.now.saturating_add(UNDO),
            Exit::Harm | Exit::Calm => {}
        }
        (self.rate, self.enabled) = (None, None);
    }

    /// What these connections, about to go through a trial, are given back if control does harm; those that have not come back from the one
    /// before had their windows before that.
    fn remember_windows(&mut self, signals: &Signals, flows: &[FlowObservation]) {
        let most = self.guard.own_free() / signals.flows * (signals.base + UNDO_QUEUE_S) / signals.segment;
        let most = most.max(DRAINING_SEGMENTS.into()).min(2.0 * MOST_PAIRS) as u32;
        let earlier = std::mem::take(&mut self.before_trial);
        let not_back =
            |id: &FlowId| earlier.get(id).filter(|_| signals.now < self.undo_until).copied().unwrap_or_default();
        let sending = flows.iter().filter(|flow| flow.in_flight_segments > 0 || flow.backlogged);
        let window = |flow: &FlowObservation| flow.cwnd_segments.max(not_back(&flow.id)).min(most);
        self.before_trial = sending.map(|flow| (flow.id, window(flow))).collect();
        self.undo_until = Time::ZERO;
    }

    /// A connection without control. When control has done harm its window is raised to what it was before, until a tick has seen it there:
    /// what takes it down later is the connection's own law.
    fn free(&mut self, flow: &FlowObservation, reason: Reason, now: Time) -> FlowDecision {
        let before = self.before_trial.get(&flow.id).copied().filter(|_| now < self.undo_until);
        let undo = before.filter(|before| *before > flow.cwnd_segments);
        if before.is_some() && undo.is_none() {
            self.before_trial.remove(&flow.id);
        }
        let bound = undo.map(|min_segments| Bound { min_segments, ..Bound::default() });
        FlowDecision::new(flow.id, None, bound.map(|bound| (bound, reason.clone())).ok_or(reason))
    }

    /// The limits of a connection, by the remainders of the last tick; those of this one go to `remainders`.
    fn bound(
        &mut self,
        flow: &FlowObservation,
        (rate, shape, signals): (&CommonRate, Shape, &Signals),
        remainders: &mut BTreeMap<FlowId, f64>,
    ) -> Option<Bound> {
        let lowest = flow.min_rtt?.as_secs_f64();
        let segment = signals::segment_of(flow);
        let share = rate.rate / signals.flows;
        let before = self.remainders.remove(&flow.id).unwrap_or_default();
        let ideal = share * (lowest + shape.room) / segment + before;
        let max_segments = if shape.sparse || ideal < SPARSE_SEGMENTS {
            let standing = flow.srtt.map_or(0.0, |srtt| srtt.as_secs_f64() - lowest).clamp(0.0, 2.0);
            let room = if shape.draining { standing + shape.room } else { shape.room };
            let even = common_rate::even(share * (lowest + room) / segment);
            (even.min(2.0 * MOST_PAIRS) as u32).max(shape.least)
        } else {
            remainders.insert(flow.id, ideal - ideal.floor());
            ideal.floor().min(2.0 * MOST_PAIRS) as u32
        };
        let is_shorter = lowest < SAME_PATH * signals.base;
        let pace = rate.pace(if is_shorter { f64::from(max_segments) * segment / lowest / share } else { 1.0 });
        let pace = signals::rate(share * pace * (1.0 + DITHER * noise(flow))).max(LEAST_PACING_RATE);
        let floor = rate.floor(signals) / signals.flows * (lowest + shape.room) / segment;
        let min_segments = (floor as u32).max(self.minimum_segments);
        let max_segments = max_segments.max(self.minimum_segments);
        Some(Bound { min_segments, max_segments, max_pacing_rate: pace, ..Bound::default() })
    }
}

impl Lasthop1 {
    fn told(&self) -> Told {
        Told {
            common_rate: self.rate.as_ref().map_or(Rate::ZERO, |rate| signals::rate(rate.rate)),
            released: self.released,
            harmed: self.guard.harmed,
            careful: self.rate.as_ref().is_some_and(CommonRate::is_careful),
            ..self.own.told(self.guard.own_free())
        }
    }
}

impl Policy for Lasthop1 {
    fn on_tick(&mut self, observation: &Observation<'_>) -> Decision {
        let sparse = self.rate.is_some() && self.was_sparse;
        let rate = self.rate.as_ref().map(|rate| rate.rate);
        let signals = self.own.on_tick(observation, sparse, self.guard.since(), rate);
        self.steer(&signals, observation.flows);
        self.released = self.guard.is_free(observation.now);
        let Some(rate) = self.rate.clone() else {
            let reason = if self.released { Reason::Free } else { Reason::NotFull { excess: signals.excess_span() } };
            let flows = observation.flows.iter().map(|flow| self.free(flow, reason.clone(), observation.now)).collect();
            return Decision { flows, new_flows: None };
        };
        let shape = rate.shape(&signals);
        self.was_sparse = shape.sparse;
        let reason = Reason::CommonRate {
            rate: signals::rate(rate.rate),
            busy_flows: signals.flows as u32,
            terminals: signals.terminals,
            excess: signals.excess_span(),
            aim: lasthop_units::Span::from_secs_f64(shape.target),
        };
        let enabled = self.enabled;
        let mut remainders = BTreeMap::new();
        let decide = |flow: &FlowObservation| {
            let bound = self.bound(flow, (&rate, shape, &signals), &mut remainders);
            FlowDecision::new(flow.id, enabled, bound.map(|bound| (bound, reason.clone())).ok_or(Reason::NoRtt))
        };
        let flows = observation.flows.iter().map(decide).collect();
        self.remainders = remainders;
        let share = rate.rate / (signals.flows + 1.0);
        let window = (share * (signals.base + shape.room) / signals.segment) as u32;
        let new_flows = Some(Bound {
            max_pacing_rate: signals::rate(share).max(LEAST_PACING_RATE),
            ..Bound::at_most(window.max(NEW_FLOW_SEGMENTS).max(self.minimum_segments))
        });
        Decision { flows, new_flows }
    }

    fn word(&self) -> Option<Word> {
        self.told().word()
    }

    fn state(&self) -> Option<PolicyState> {
        let Told { common_rate, delivered, excess, free, released, harmed, .. } = self.told();
        let known = |rate: Rate| (rate > Rate::ZERO).then_some(rate);
        Some(PolicyState {
            common_rate: known(common_rate),
            delivered: Some(delivered),
            free: known(free),
            excess,
            released,
            harmed,
        })
    }
}

/// Something between −1 and 1 that is another at each tick, from what the connection is at: the policy has no other chance.
fn noise(flow: &FlowObservation) -> f64 {
    let seed = flow.srtt.map_or(0, |srtt| srtt.as_nanos()) ^ flow.acked.get().rotate_left(17);
    let hashed = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40; // Knuth's multiplicative hashing; the upper 24 bits
    hashed as f64 / f64::from(1_u32 << 23) - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PolicyName;
    use lasthop_peers::{Neighbourhood, Peer, PeerId, Report};
    use lasthop_units::Bytes;

    /// A busy connection on a path of 20 ms.
    pub(super) fn flow(id: u64, srtt_ms: u64, acked: u64) -> FlowObservation {
        FlowObservation {
            id: FlowId(id),
            srtt: Some(Span::from_millis(srtt_ms)),
            newest_rtt: Some(Span::from_millis(srtt_ms)),
            min_rtt: Some(Span::from_millis(20)),
            cwnd_segments: 100,
            busy: true,
            acked: Bytes::new(acked),
            in_flight_segments: 100,
            backlogged: true,
            mss_bytes: 1448,
            ..FlowObservation::default()
        }
    }

    fn peer(id: u64, at: Time, common_rate: Rate) -> Peer {
        let told = Told { excess: Some(Span::from_millis(4)), delivered: common_rate, common_rate, ..Told::default() };
        let report = Report {
            busy_flows: 1,
            srtt: Some(Span::from_millis(24)),
            min_rtt: Some(Span::from_millis(20)),
            word: told.word(),
            ..Report::default()
        };
        Peer { id: PeerId(id), report, heard_at: at }
    }

    /// The same peer, that says something else in one place.
    fn but(peer: Peer, change: impl FnOnce(&mut Told)) -> Peer {
        let mut told = Told::by(&peer.report);
        change(&mut told);
        Peer { report: Report { word: told.word(), ..peer.report }, ..peer }
    }

    /// A host that has just joined what two others have agreed on.
    fn joined(rate: Rate, flows: &[FlowObservation]) -> (Lasthop1, Decision) {
        let mut policy = Lasthop1::new(&PolicySettings { policy: PolicyName::Lasthop1, ..PolicySettings::default() });
        let now = Time::ZERO + Span::from_secs(60);
        let peers = Neighbourhood::new(vec![peer(1, now, rate), peer(2, now, rate)]);
        let decision = policy.on_tick(&Observation { now, flows, peers: &peers });
        (policy, decision)
    }

    #[test]
    fn whoever_comes_takes_the_rate_that_the_others_have() {
        let (policy, decision) = joined(Rate::from_mbps(2.0), &[flow(1, 24, 0)]);
        let bound = decision.flows[0].bound.expect("it is under control");
        // 2 Mb/s over 20 + 2·6 ms are 5.5 segments: even, so 6; paced at 2 Mb/s and a few percent.
        assert_eq!((bound.min_segments, bound.max_segments), (1, 6));
        assert!((1.8..2.3).contains(&bound.max_pacing_rate.as_mbps()), "{bound}");
        assert_eq!(decision.flows[0].enabled.map(|enabled| enabled.by), Some(Trigger::Peer));
        let report = policy.told();
        assert_eq!(report.common_rate.as_mbps().round(), 2.0);
        assert!(!report.released && !report.harmed);
    }

    /// The pace at `second`, with two others at `rate`; RTTs are `srtt_ms`, or the host has nothing to send.
    fn pace(policy: &mut Lasthop1, second: f64, srtt_ms: Option<u64>, rate: Rate) -> f64 {
        let now = Time::ZERO + Span::from_secs_f64(second);
        let acked = (second * 1e5) as u64;
        let flow = srtt_ms.map_or_else(
            || FlowObservation { busy: false, in_flight_segments: 0, backlogged: false, ..flow(1, 24, acked) },
            |srtt_ms| flow(1, srtt_ms, acked),
        );
        let excess = Some(Span::from_millis(srtt_ms.unwrap_or(30) - 20));
        let peers = [1, 2].map(|id| peer(id, now, rate));
        let peers = peers.map(|peer| but(peer, |told| told.excess = excess));
        let peers = Neighbourhood::new(peers.into());
        let decision = policy.on_tick(&Observation { now, flows: &[flow], peers: &peers });
        decision.flows[0].bound.expect("under control").max_pacing_rate.as_mbps()
    }

    #[test]
    fn where_the_medium_may_collapse_a_host_with_a_short_path_is_paced_at_its_part() {
        let mut policy = Lasthop1::new(&PolicySettings::default());
        let now = Time::ZERO + Span::from_secs(60);
        let beside = |min_rtt_ms: u64, policy: &mut Lasthop1, at: Time| {
            let peers = [1, 2, 3].map(|id| {
                let peer = peer(id, at, Rate::from_mbps(0.8));
                let min_rtt = Some(Span::from_millis(min_rtt_ms));
                let peer = Peer { report: Report { min_rtt, ..peer.report }, ..peer };
                but(peer, |told| (told.careful, told.excess) = (true, Some(Span::ZERO)))
            });
            let decision = policy.on_tick(&Observation {
                now: at,
                flows: &[flow(1, 20, at.saturating_since(now).as_millis() * 190)],
                peers: &Neighbourhood::new(peers.into()),
            });
            let rate = policy.rate.as_ref().expect("under control");
            (
                decision.flows[0].bound.expect("under control").max_pacing_rate.as_mbps() * 1e6 / 8.0 / rate.rate,
                rate.is_careful(),
            )
        };
        let mut over = |min_rtt_ms| {
            policy = Lasthop1::new(&PolicySettings::default());
            (0..3)
                .map(|tick| beside(min_rtt_ms, &mut policy, now + Span::from_millis(500 * tick)))
                .last()
                .expect("three ticks")
        };
        // Its own path is 20 ms: four segments on it are 2.3 Mb/s, two are 1.2.
        let (paced, careful) = over(256);
        assert!(careful && paced < 1.1, "{paced}");
        let (paced, careful) = over(20);
        assert!(careful && paced > 2.5, "{paced}");
    }

    #[test]
    fn whoever_comes_into_a_queue_does_not_bring_back_the_rate_it_came_with() {
        let mut policy = Lasthop1::new(&PolicySettings::default());
        assert!(pace(&mut policy, 60.0, Some(60), Rate::from_mbps(20.0)) > 18.0);
        // The others have made room by now, and the queue goes.
        for tick in 1..20 {
            let srtt_ms = if tick < 6 { 60 } else { 28 };
            let pace = pace(&mut policy, 60.0 + f64::from(tick) / 2.0, Some(srtt_ms), Rate::from_mbps(10.0));
            assert!(tick < 4 || pace < 13.0, "{pace} Mb/s at tick {tick}");
        }
    }

    #[test]
    fn whoever_has_paused_takes_the_rate_of_the_others_again() {
        let mut policy = Lasthop1::new(&PolicySettings::default());
        let before = pace(&mut policy, 60.0, Some(30), Rate::from_mbps(10.0));
        assert!((9.0..12.0).contains(&before), "{before}");
        pace(&mut policy, 60.5, None, Rate::from_mbps(5.5));
        let after = pace(&mut policy, 64.0, Some(30), Rate::from_mbps(5.5));
        assert!((5.0..6.5).contains(&after), "{after}");
    }

    /// How a host comes under control that was by itself before, with a queue, and got `bytes` each half second: beside 19 hosts at
    /// `rate` that keep `queue_ms` over a path of 20 ms. By whom, and its pace in Mb/s.
    fn comes_beside_others(bytes: u64, rate: Rate, queue_ms: u64) -> (Trigger, f64) {
        let mut policy = Lasthop1::new(&PolicySettings::default());
        let mut decide = |tick: u64, srtt_ms, peers| {
            let now = Time::ZERO + Span::from_millis(500 * tick);
            let flows = [flow(1, srtt_ms, bytes * tick)];
            policy.on_tick(&Observation { now, flows: &flows, peers: &peers }).flows.remove(0)
        };
        (0..16).for_each(|tick| assert_eq!(decide(tick, 300, Neighbourhood::alone()).enabled, None));
        let excess = Some(Span::from_millis(queue_ms));
        let others = |tick: u64| {
            let peers = (1..20).map(|id| peer(id, Time::ZERO + Span::from_millis(500 * tick), rate));
            Neighbourhood::new(peers.map(|peer| but(peer, |told| told.excess = excess)).collect())
        };
        let decision = (16..60).map(|tick| decide(tick, 20 + queue_ms, others(tick)));
        let decision = decision.into_iter().find(|decision| decision.enabled.is_some()).expect("it is under control");
        let pace = decision.bound.expect("a limit").max_pacing_rate.as_mbps();
        (decision.enabled.expect("it is").by, pace)
    }

    #[test]
    fn who_comes_beside_hosts_that_keep_a_queue_joins_them_and_who_has_starved_takes_a_quarter_of_what_they_drain_with()
    {
        // At 1.1 Mb/s four segments are 22 ms of queue: 15 ms are what they keep; at 11 Mb/s they keep none.
        let (by, pace) = comes_beside_others(100_000, Rate::from_mbps(1.1), 15);
        assert!(by == Trigger::Peer && (1.0..1.3).contains(&pace), "{by:?}, {pace}");
        let (by, pace) = comes_beside_others(100_000, Rate::from_mbps(11.0), 15);
        assert!(by == Trigger::OwnRtt && pace < 1.3, "{by:?}, {pace}");
        let (by, pace) = comes_beside_others(0, Rate::from_mbps(11.0), 15);
        assert!(by == Trigger::Peer && (2.6..2.9).contains(&pace), "{by:?}, {pace}");
    }

    #[test]
    fn a_host_splits_its_rate_over_its_connections() {
        let (_, one) = joined(Rate::from_mbps(20.0), &[flow(1, 24, 0)]);
        let (_, two) = joined(Rate::from_mbps(20.0), &[flow(1, 24, 0), flow(2, 24, 7)]);
        let window = |decision: &Decision| decision.flows[0].bound.expect("under control").max_segments;
        assert_eq!(window(&one), 51); // 20 Mb/s over 20 + 10 ms, in segments of 1448 bytes
        assert_eq!(window(&two), 25);
        assert!(two.new_flows.expect("a limit").max_segments >= NEW_FLOW_SEGMENTS);
    }

    #[test]
    fn without_congestion_nothing_is_bounded_and_the_reason_says_so() {
        let mut policy = Lasthop1::new(&PolicySettings::default());
        let flows = [flow(1, 24, 0)];
        let decision = policy.on_tick(&Observation { now: Time::ZERO, flows: &flows, peers: &Neighbourhood::alone() });
        assert_eq!((decision.flows[0].bound, decision.new_flows), (None, None));
        assert_eq!(decision.flows[0].reason.to_string(), "nothing is congested: RTTs are 4 ms above the lowest");
        let report = policy.told();
        assert_eq!((report.common_rate, report.excess), (Rate::ZERO, Some(Span::from_millis(4))));
    }

    #[test]
    fn the_first_congestion_is_looked_at_and_then_tried() {
        let mut policy = Lasthop1::new(&PolicySettings::default());
        let mut decisions = (0..60_u64).map(|tick| {
            let now = Time::ZERO + Span::from_millis(500 * tick);
            let flows = [flow(1, 300, 500_000 * tick)];
            policy.on_tick(&Observation { now, flows: &flows, peers: &Neighbourhood::alone() }).flows.remove(0)
        });
        let looked = decisions.nth(5).expect("a decision");
        assert_eq!((looked.bound, looked.reason.kind()), (None, "free"));
        let tried = decisions.nth(20).expect("a decision");
        let bound = tried.bound.expect("under control");
        // Three quarters of 8 Mb/s at most, and 3 % of dither, with windows that the standing RTT does not starve.
        assert!(bound.max_pacing_rate < Rate::from_mbps(6.2), "{bound}");
        assert!(bound.max_segments >= DRAINING_SEGMENTS, "{bound}");
    }

    /// A trial against a queue that does not go; the limits of the connection at each tick after it, at these windows, and `before`.
    fn after_a_trial_in_vain(before: u32, windows: &[u32]) -> Vec<Option<Bound>> {
        let mut policy = Lasthop1::new(&PolicySettings::default());
        let mut tick = 0_u64;
        let mut limits = |cwnd_segments| {
            tick += 1;
            let now = Time::ZERO + Span::from_millis(500 * tick);
            let flows = [FlowObservation { cwnd_segments, ..flow(1, 300, 500_000 * tick) }];
            let observation = Observation { now, flows: &flows, peers: &Neighbourhood::alone() };
            policy.on_tick(&observation).flows.remove(0)
        };
        let mut until = |controlled: bool, cwnd_segments| {
            (0..200).map(|_| limits(cwnd_segments)).find(|decision| decision.enabled.is_some() == controlled)
        };
        until(true, before).expect("a trial begins");
        let first = until(false, 12).expect("it ends").bound;
        [first].into_iter().chain(windows.iter().map(|window| limits(*window).bound)).collect()
    }

    #[test]
    fn after_a_trial_in_vain_a_connection_has_its_window_again_but_not_when_it_falls_later() {
        let undo = Some(Bound { min_segments: 100, ..Bound::default() });
        assert_eq!(after_a_trial_in_vain(100, &[1, 40, 100, 50]), [undo, undo, undo, None, None]);
        // Who does not come back in 15 s stays where it is.
        let waits = after_a_trial_in_vain(100, &[1; 40]);
        assert_eq!(waits.iter().filter(|bound| bound.is_some()).count(), 30);
        assert_eq!(waits.last(), Some(&None));
        // 1 MB/s fills 20 ms and 2 s with 1395 segments.
        let standing = after_a_trial_in_vain(9000, &[1])[1].expect("a limit").min_segments;
        assert!((1300..1400).contains(&standing), "{standing}");
    }

    #[test]
    fn who_has_nothing_more_to_send_is_no_longer_among_those_that_get_something() {
        let mut policy = Lasthop1::new(&PolicySettings::default());
        let mut tell = |tick: u64, flow: FlowObservation| {
            let now = Time::ZERO + Span::from_millis(500 * tick);
            policy.on_tick(&Observation { now, flows: &[flow], peers: &Neighbourhood::alone() });
            policy.told().delivered
        };
        for tick in 0..10 {
            tell(tick, flow(1, 24, 500_000 * tick));
        }
        // 500,000 bytes each 0.5 s are 8 Mb/s.
        assert!(tell(10, flow(1, 24, 5_000_000)) > Rate::from_mbps(7.9));
        // One that waits for a timeout has something to send.
        let waits = FlowObservation { busy: false, ..flow(1, 24, 5_000_000) };
        assert!(tell(11, waits) > Rate::from_mbps(3.9));
        let idle = FlowObservation { in_flight_segments: 0, backlogged: false, ..waits };
        assert_eq!(tell(12, idle), Rate::ZERO);
    }

    #[test]
    fn many_old_words_about_the_queue_do_not_outweigh_a_fresh_one() {
        let now = Time::ZERO + Span::from_secs(60);
        let old = |id| {
            let peer = peer(id, now - Span::from_secs(2), Rate::from_mbps(1.0));
            but(peer, |told| told.excess = Some(Span::from_millis(40)))
        };
        let peers = Neighbourhood::new((1..=20).map(old).chain([peer(21, now, Rate::from_mbps(1.0))]).collect());
        let observation = Observation { now, flows: &[flow(1, 24, 0)], peers: &peers };
        let signals = Own::default().on_tick(&observation, false, Time::ZERO, None);
        // This host and the fresh one see 4 ms.
        assert!((0.004..0.006).contains(&signals.excess), "{}", signals.excess);
    }

    #[test]
    fn noise_is_another_at_each_tick_and_stays_within_one() {
        let noises: Vec<_> = (0..1000).map(|tick| noise(&flow(1, 24, 1448 * tick))).collect();
        assert!(noises.iter().all(|noise| noise.abs() <= 1.0));
        assert!((noises.iter().sum::<f64>() / 1000.0).abs() < 0.1);
        assert_ne!(noises[0], noises[1]);
    }
}
