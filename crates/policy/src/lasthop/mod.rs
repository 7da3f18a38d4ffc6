//! The policy `lasthop`, ours: one rate for every host, for what it sends and receives together. The reasoning, its
//! stability and its failures: docs/models/policy-lasthop.md.
//!
//! At each tick (0.5 s):
//!
//! 1. [`own`]: which connections are bulk, what the host delivers, how far its round trips have risen.
//! 2. [`group`]: the same of all hosts, as their beacons tell ([`told`]).
//! 3. [`law`]: whether windows are bounded, the queue aimed at, and the rate r that each host may have.
//! 4. A host splits r over its bulk connections. Each window, sent or received, is its part of r for its lowest RTT and
//!    the queue aimed at. Nothing else is held back.
//!
//! *What it leaves out*: hosts whose frames take more air time than others' get as many bits as those. Where that costs
//! all hosts more than a tenth, the law steps back.

mod constants;
mod group;
mod law;
mod own;
mod parts;
#[cfg(test)]
mod tests;
mod told;

use super::{
    Decision, Enabled, FlowDecision, FlowId, FlowObservation, Harm, Observation, Policy, PolicySettings, PolicyState,
    Reason, Trigger,
};
use crate::gain::{Comparison, Seen};
pub use constants::LawConstant;
use group::Group;
use lasthop_laws::bound::Bound;
use lasthop_peers::Word;
use lasthop_units::{Bytes, Rate, Span, Time};
use law::{Bounds, Free, Law, State};
use own::{Host, Own};
pub use parts::{LawPart, Parts};
use std::collections::BTreeMap;
use told::Told;

/// The policy `lasthop`.
#[derive(Clone, Debug)]
pub struct Lasthop {
    minimum_segments: u32,
    own: Own,
    law: Law,
    /// The windows of the connections when bounds began, in segments; until then they are given back.
    before: BTreeMap<FlowId, u32>,
    give_back_until: Time,
    told: Told,
    comparison: Comparison,
}

impl Lasthop {
    pub(super) fn new(settings: &PolicySettings) -> Self {
        Self {
            minimum_segments: settings.minimum_segments,
            own: Own::default(),
            law: Law::new(settings.prefer, Parts::ALL),
            before: BTreeMap::new(),
            give_back_until: Time::ZERO,
            told: Told::default(),
            comparison: Comparison::default(),
        }
    }

    /// The same with these parts of the law, before its first tick.
    pub(super) fn with(self, parts: Parts) -> Self {
        Self { own: Own::new(parts), law: Law::new(self.law.prefer, parts), ..self }
    }

    /// A connection without bounds. Its window is raised to what it was before, until a tick has seen it there: what
    /// takes it down later is the connection's own law.
    fn free(&mut self, flow: &FlowObservation, reason: &Reason, now: Time) -> FlowDecision {
        let before = self.before.get(&flow.id).copied().filter(|_| now < self.give_back_until);
        let raised = before.filter(|before| *before > flow.tcp.cwnd_segments && self.law.parts.has(LawPart::GiveBack));
        if before.is_some() && raised.is_none() {
            self.before.remove(&flow.id);
        }
        let bound = raised.map(|min_segments| (Bound { min_segments, ..Bound::default() }, reason.clone()));
        FlowDecision::new(flow.id, None, bound.ok_or_else(|| reason.clone()))
    }

    /// The limits of a bulk connection; `None`: it is not bulk, or has no RTT yet.
    fn bound(&self, flow: &FlowObservation, share: Rate, aim: Span) -> Option<Bound> {
        let state = self.own.flow(flow.id)?;
        let segment = u64::from(flow.tcp.mss_bytes);
        let least = self.law.parts.constants.least_segments;
        let mut bound = Bound::default();
        if state.downloads {
            let window = share * (flow.min_receive_rtt? + aim);
            bound.max_receive_bytes = window.max(Bytes::new(u64::from(least) * segment)).get();
        }
        if state.uploads {
            let window = share * (state.lowest? + aim);
            let segments = window.get().div_ceil(segment.max(1)).min(i32::MAX as u64) as u32;
            bound.min_segments = self.minimum_segments;
            bound.max_segments = segments.max(least).max(self.minimum_segments);
            bound.at_once = self.law.parts.has(LawPart::AtOnce);
        }
        (state.bulk() && segment > 0).then_some(bound)
    }

    /// `free`: what was seen without limits; `None`: they held until now.
    fn compare(&mut self, host: &Host, group: &Group, free: Option<Free>) {
        self.comparison.on_tick(Seen {
            elapsed: host.elapsed,
            delivered: host.delivered,
            round_trip: host.queue.map(|queue| host.base + queue),
            connections: self.own.bulk(),
            peers: group.heard.clone(),
            is_bound: free.is_none(),
            is_congested: free.is_some_and(|free| free.has_queue()),
        });
    }

    fn decide(&mut self, observation: &Observation<'_>, host: &Host, group: &Group) -> Vec<FlowDecision> {
        let Bounds { since, by_peers, step, rate, .. } = match self.law.state {
            State::Bound(bounds) => bounds,
            State::Free(free) => {
                let excess = group.queue;
                let reason = if observation.now < self.law.waits_until {
                    let left = self.law.waits_until.saturating_since(observation.now);
                    Reason::Free { harm: self.law.harm.unwrap_or(Harm::Peers), left }
                } else if free.has_queue() {
                    Reason::Waits { excess, left: self.law.parts.constants.step_for.saturating_sub(free.congested) }
                } else {
                    Reason::NotFull { excess }
                };
                return observation.flows.iter().map(|flow| self.free(flow, &reason, observation.now)).collect();
            }
        };
        let (share, aim) = (rate * (1.0 / f64::from(host.bulk.max(1))), step.aim);
        let (busy_flows, terminals) = (host.bulk, group.hosts);
        let reason = Reason::CommonRate { rate, busy_flows, terminals, excess: group.queue, aim };
        let by = if by_peers { Trigger::Peer } else { Trigger::OwnRtt };
        let decide = |flow: &FlowObservation| {
            let bound = self.bound(flow, share, aim);
            let enabled = bound.is_some().then_some(Enabled { at: since, by });
            FlowDecision::new(flow.id, enabled, bound.map(|bound| (bound, reason.clone())).ok_or(Reason::NotBulk))
        };
        observation.flows.iter().map(decide).collect()
    }
}

impl Policy for Lasthop {
    fn on_tick(&mut self, observation: &Observation<'_>) -> Decision {
        let host = self.own.on_tick(observation);
        let group = Group::of(&host, observation.peers, &self.law.parts.constants);
        let free = self.law.on_tick(&host, &group);
        match (free, self.law.state) {
            (Some(_), State::Bound(_)) => {
                let bulk = |flow: &&FlowObservation| self.own.flow(flow.id).is_some_and(|state| state.uploads);
                let windows = observation.flows.iter().filter(bulk).map(|flow| (flow.id, flow.tcp.cwnd_segments));
                self.before = windows.collect();
            }
            // Connections get back the windows that they had before: in a queue that others fill, a window that was cut
            // loses what it sends, and the host starves. One without bulk connections fills no queue.
            (None, State::Free(_)) if host.bulk > 0 => {
                self.give_back_until = observation.now.saturating_add(self.law.parts.constants.step_for * 2)
            }
            _ => {}
        }
        self.compare(&host, &group, free);
        self.told = Told {
            rate: self.law.rate(),
            delivered: host.delivered,
            free: if host.bulk > 0 { self.law.free() } else { Rate::ZERO },
            base: host.base,
            queue: host.queue,
            proposal: self.law.proposal,
            bulk: host.bulk > 0,
        };
        Decision { flows: self.decide(observation, &host, &group), new_flows: None }
    }

    fn word(&self) -> Option<Word> {
        self.told.word()
    }

    fn state(&self) -> Option<PolicyState> {
        let known = |rate: Rate| (rate > Rate::ZERO).then_some(rate);
        let waits = self.told.proposal == Some(told::Proposal::Free);
        Some(PolicyState {
            common_rate: known(self.told.rate),
            gain: self.comparison.gain(),
            excess: self.told.queue,
            released: waits && matches!(self.law.state, State::Free(_)),
            harmed: self.law.harm,
        })
    }
}
