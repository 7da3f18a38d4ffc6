//! The law: when windows are bounded, which queue is aimed at, and the rate that each host may have.
//!
//! Its states are drawn in docs/models/policy-lasthop-states.dot. Every host proposes; what most propose is what all do.

use super::constants::Constants;
use super::group::{Group, median};
use super::own::{Host, kept, mean};
use super::parts::{LawPart, Parts};
use super::told::Proposal;
use crate::{Harm, Prefer, TICK};
use lasthop_units::{Bytes, Rate, Span, Time};

/// The law, from tick to tick.
#[derive(Clone, Debug, Default)]
pub(super) struct Law {
    pub(super) parts: Parts,
    pub(super) prefer: Prefer,
    pub(super) state: State,
    /// What this host proposes; `None`: it follows.
    pub(super) proposal: Option<Proposal>,
    /// Why the latest step was bad, until one is good or bounds may begin again.
    pub(super) harm: Option<Harm>,
    /// No queue is made shorter before this; the next such wait.
    pub(super) waits_until: Time,
    patience: Span,
    /// What all hosts together got in the latest good step at the least aim; zero: none since a wait has ended by it.
    proven: Rate,
    /// Without bulk connections for so long.
    idle: Span,
}

/// Whether windows are bounded.
#[derive(Clone, Copy, Debug)]
pub(super) enum State {
    /// No.
    Free(Free),
    /// Yes.
    Bound(Bounds),
}

/// What is seen without bounds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Free {
    /// What all hosts together get.
    total: Rate,
    /// The queue has been congested for so long.
    pub(super) congested: Span,
    /// Whether the queue is as long as a congested one, be it for slow start.
    sees_queue: bool,
    /// All hosts have got nearly `proven` again for so long: others that filled the queue are gone.
    returned: Span,
}

/// The bounds that hold, and what they have shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) since: Time,
    pub(super) by_peers: bool,
    pub(super) step: Step,
    /// Payload that each host may send and receive.
    pub(super) rate: Rate,
    /// What all hosts together got without bounds.
    free: Rate,
    /// What all got under bounds: in the latest step, and the most with a short queue.
    latest: Rate,
    best: Rate,
    /// All hosts are to get no more than this, for then the medium collapses; zero: it has not.
    edge: Rate,
}

/// The same aim for some seconds, to see what it does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    began: Time,
    /// The queue aimed at.
    pub(super) aim: Span,
    /// The queue before the first step: who would aim at more needs no bounds.
    ceiling: Span,
    /// Round trip when it began.
    round_trip: Span,
    /// Goodput and queue, summed over the time that is judged.
    got: Bytes,
    queue: f64,
    judged: Span,
    /// How long the hosts have got far too little.
    loses: Span,
}

impl Default for State {
    fn default() -> Self {
        Self::Free(Free::default())
    }
}

impl Free {
    /// Whether a queue stands, or has stood of late.
    pub(super) fn has_queue(&self) -> bool {
        self.sees_queue || !self.congested.is_zero()
    }
}

impl Law {
    pub(super) fn new(prefer: Prefer, parts: Parts) -> Self {
        Self { parts, prefer, ..Self::default() }
    }

    /// Payload that each host may send and receive; zero without bounds.
    pub(super) fn rate(&self) -> Rate {
        match self.state {
            State::Free(_) => Rate::ZERO,
            State::Bound(bounds) => bounds.rate,
        }
    }

    /// What all hosts together got without bounds.
    pub(super) fn free(&self) -> Rate {
        match self.state {
            State::Free(free) => free.total,
            State::Bound(bounds) => bounds.free,
        }
    }

    /// What was seen without bounds; `None`: they held until now.
    pub(super) fn on_tick(&mut self, host: &Host, group: &Group) -> Option<Free> {
        let constants = self.parts.constants;
        self.idle = if host.bulk > 0 { Span::ZERO } else { self.idle + host.elapsed };
        if self.idle > constants.step_for {
            self.proposal = None;
        }
        // Where nothing is bounded, a host that proposes nothing wants it so.
        let is_free = matches!(self.state, State::Free(_)) && self.parts.has(LawPart::Majority);
        let silent = is_free.then_some(Proposal::Free);
        let of_peers = group.proposals.iter().filter_map(|proposal| proposal.or(silent));
        let aim = match median(of_peers.chain(self.proposal).collect()) {
            Some(Proposal::Aim(aim)) => Some(aim),
            Some(Proposal::Free) | None => None,
        };
        match (self.state, aim) {
            (State::Free(before), aim) => {
                let free = self.look(host, group, before);
                self.state = match aim.filter(|_| host.bulk > 0) {
                    Some(aim) => State::Bound(self.begin(host, group, aim, free)),
                    None => State::Free(free),
                };
                return Some(free);
            }
            (State::Bound(_), _) if self.idle > constants.step_for => self.state = State::default(),
            (State::Bound(_), None) => {
                // The others wait half as long as the host that has found a step bad.
                self.waits_until =
                    self.waits_until.max(host.now.saturating_add(self.patience.max(constants.patience) / 2));
                self.proposal = Some(Proposal::Free);
                self.harm = self.harm.or(Some(Harm::Peers));
                self.state = State::default();
            }
            (State::Bound(mut bounds), Some(aim)) => {
                bounds.step = self.go_on(host, group, aim, &mut bounds);
                self.state = State::Bound(bounds);
            }
        }
        None
    }

    /// Without bounds: measures what all get, and proposes some if the queue is congested.
    fn look(&mut self, host: &Host, group: &Group, mut free: Free) -> Free {
        let constants = self.parts.constants;
        free.returned = if self.returns(group.total) { free.returned + host.elapsed } else { Span::ZERO };
        if host.now >= self.waits_until {
            self.harm = None;
        }
        if host.bulk == 0 {
            return Free::default();
        }
        let keep = if free.total > Rate::ZERO { kept(host.elapsed, constants.free_age) } else { 0.0 };
        free.total = mean(free.total, keep, group.total);
        let hosts = u64::from(group.hosts);
        let limit = (constants.least_aim + group.least_base * constants.aim_of_path) * constants.filled
            + constants.congested_by_host * hosts;
        free.sees_queue = group.crest > limit;
        let grows = group.total >= free.total * constants.grows && self.parts.has(LawPart::Growth);
        free.congested = match free.sees_queue && !grows {
            // A host goes on proposing for a while: where hosts are many, beacons come seldom, and most must propose at one
            // time.
            true => (free.congested + host.elapsed).min(constants.step_for + constants.recent),
            false if self.parts.has(LawPart::Lull) => free.congested.saturating_sub(host.elapsed),
            false => Span::ZERO,
        };
        if free.returned > constants.recent && host.now < self.waits_until && free.sees_queue {
            (free.total, free.congested) = (free.total.max(self.proven), constants.step_for);
            self.stop_waiting(host.now);
        }
        self.proposal = if host.now < self.waits_until {
            Some(Proposal::Free)
        } else if free.congested >= constants.step_for {
            Some(Proposal::Aim(self.least_aim(group, free.total)))
        } else {
            None
        };
        free
    }

    /// Whether all get nearly what they did in a good step at the least aim: who filled the queue since is gone.
    fn returns(&self, total: Rate) -> bool {
        let constants = self.parts.constants;
        self.proven > Rate::ZERO && total > self.proven * constants.keeps && self.parts.has(LawPart::Return)
    }

    /// Not twice without another such step: beside others that stay it would be one trial after the other.
    fn stop_waiting(&mut self, now: Time) {
        if now < self.waits_until {
            (self.waits_until, self.proven) = (now, Rate::ZERO);
        }
    }

    /// Most have begun: so does this host.
    fn begin(&mut self, host: &Host, group: &Group, aim: Span, free: Free) -> Bounds {
        let constants = self.parts.constants;
        // Believed as far as what this host sees allows.
        let equal = group.bulk * (1.0 / f64::from(group.hosts));
        let rate = median(group.rates.clone()).unwrap_or(equal);
        self.proposal = Some(Proposal::Aim(aim));
        let ceiling = group.crest.max(aim * (1.0 / constants.step));
        Bounds {
            since: host.now,
            by_peers: !group.rates.is_empty(),
            step: Step::new(host.now, aim, ceiling, group),
            rate: rate.clamp(equal * (1.0 / constants.believed), equal.max(group.most) * constants.believed),
            free: median(group.frees.clone()).unwrap_or(free.total),
            latest: Rate::ZERO,
            best: Rate::ZERO,
            edge: Rate::ZERO,
        }
    }

    /// The part of the free total that a good step leaves.
    fn keeps(&self) -> f64 {
        let constants = self.parts.constants;
        match self.prefer {
            Prefer::Harmless => constants.keeps,
            Prefer::Latency => constants.keeps_for_latency,
        }
    }

    /// `got`: the most that all have got, free or in the latest step.
    fn least_aim(&self, group: &Group, got: Rate) -> Span {
        let constants = self.parts.constants;
        let of_path = if self.parts.has(LawPart::Path) { constants.aim_of_path } else { 0.0 };
        let of_turns = constants.least_aim + constants.aim_of_host * u64::from(group.hosts);
        let are_short = got < constants.aggregates && self.parts.has(LawPart::ShortTurns);
        group.base * of_path + if are_short { of_turns / 2 } else { of_turns }
    }

    /// A tick under bounds: the step after it.
    fn go_on(&mut self, host: &Host, group: &Group, aim: Span, bounds: &mut Bounds) -> Step {
        let constants = self.parts.constants;
        let mut step = bounds.step;
        let (now, least) = (host.now, self.least_aim(group, bounds.got()));
        let aim = aim.max(least);
        let change = aim.as_secs_f64() / step.aim.max(least).as_secs_f64();
        // Proposals of one step differ a little from host to host.
        if !(0.75..1.33).contains(&change) {
            step = Step::new(now, aim, step.ceiling, group);
        }
        step.aim = aim;
        if host.bulk > 0 {
            bounds.move_rate(host, group, aim, self.parts);
            if self.parts.has(LawPart::Edge) && bounds.collapses(group, aim, &constants) {
                return Step::new(now, aim, step.ceiling, group);
            }
        }
        let lasts = now.saturating_since(step.began);
        let loses = lasts > TICK * 2 + step.round_trip && group.total < bounds.free * constants.loses.min(self.keeps());
        step.loses = if loses { step.loses + host.elapsed } else { Span::ZERO };
        if lasts > constants.judged_from + step.round_trip {
            step.got += group.total * host.elapsed;
            step.queue += group.queue.as_secs_f64() * host.elapsed.as_secs_f64();
            step.judged += host.elapsed;
        }
        let lost = step.loses > TICK * 2 && self.parts.has(LawPart::EarlyEnd);
        if lost || lasts > constants.step_for + step.round_trip * 2 && !step.judged.is_zero() {
            self.judge(now, group, bounds, &step, lost);
            step = Step::new(now, aim, step.ceiling, group);
        }
        step
    }

    /// What a step has shown, and what to propose for the next.
    fn judge(&mut self, now: Time, group: &Group, bounds: &mut Bounds, step: &Step, lost: bool) {
        let constants = self.parts.constants;
        let least = self.least_aim(group, bounds.got());
        let got = Rate::over(step.got, step.judged);
        bounds.latest = got;
        let queue = step.queue / step.judged.as_secs_f64().max(1e-3);
        let gained = got > bounds.free * constants.grows && self.parts.has(LawPart::Edge);
        let heeds_others = self.prefer == Prefer::Harmless;
        let filled = heeds_others && queue > constants.filled * step.aim.as_secs_f64() && !gained;
        let is_judged = !step.judged.is_zero();
        let again = lost && self.harm.is_some() && self.parts.has(LawPart::SecondLoss);
        let (seen, stood) = if is_judged { (got, Span::from_secs_f64(queue)) } else { (group.total, group.queue) };
        self.harm = if filled || lost && stood > step.aim * constants.filled {
            Some(Harm::Queue { queue: stood, aim: step.aim })
        } else if lost || got < bounds.free * self.keeps() {
            Some(Harm::Goodput { got: seen, free: bounds.free })
        } else {
            None
        };
        if self.harm.is_some() {
            let goes_back = self.parts.has(LawPart::StepBack) && !again;
            let back = if goes_back { step.aim * (1.0 / constants.step) } else { Span::MAX };
            self.proposal = Some(if back > step.ceiling { Proposal::Free } else { Proposal::Aim(back) });
            let patience = self.patience.max(constants.patience);
            self.waits_until = now.saturating_add(patience);
            self.patience = if self.parts.has(LawPart::Patience) {
                (patience * 2).min(constants.longest_patience)
            } else {
                patience
            };
            return;
        }
        if self.returns(got) {
            self.stop_waiting(now);
        }
        let goes_down = now >= self.waits_until;
        self.proposal = Some(Proposal::Aim(if goes_down { (step.aim * constants.step).max(least) } else { step.aim }));
        if step.aim <= least * 1.01 {
            self.proven = got;
            if goes_down {
                self.patience = Span::ZERO;
            }
        }
    }
}

impl Bounds {
    /// The most that all have got, free or in the latest step.
    fn got(&self) -> Rate {
        self.free.max(self.latest)
    }

    /// Agrees on a rate with the others, and moves it by what the queue lies off its aim.
    fn move_rate(&mut self, host: &Host, group: &Group, aim: Span, parts: Parts) {
        let constants = parts.constants;
        let own = self.rate;
        let near = |rate: &Rate| (*rate).clamp(own * (1.0 / constants.believed), own * constants.believed);
        let sum: Rate = group.news.iter().map(near).sum::<Rate>() + own;
        let mut rate = sum * (1.0 / (1.0 + group.news.len() as f64));
        let room = (group.base + aim).as_secs_f64();
        if host.now.saturating_since(self.since) > TICK * 2 {
            let off = (group.queue.as_secs_f64() - aim.as_secs_f64()) / room;
            let moved = rate * (1.0 - constants.gain * off.clamp(-0.5, 0.5));
            let least = rate.min(own);
            let whole = self.whole(least, host, group, aim, parts);
            rate = whole.map_or(moved, |most| moved.min(most.max(least)));
        }
        // Half of an equal share of what all got without bounds.
        let least = self.free * (1.0 / (constants.believed * f64::from(group.hosts.max(1))));
        self.rate = rate.min(group.most * constants.believed).max(if parts.has(LawPart::LeastShare) {
            least
        } else {
            Rate::ZERO
        });
    }

    /// The rate at which windows stay as they are, where one segment more in each would fill the queue aimed at; `None`:
    /// it would not. Where paths are long, or aggregates need windows, the shorter queue would cost goodput.
    fn whole(&self, rate: Rate, host: &Host, group: &Group, aim: Span, parts: Parts) -> Option<Rate> {
        let constants = parts.constants;
        let one = Rate::over(host.segment, host.base + aim) * f64::from(host.bulk);
        let windows =
            (rate.as_bps() as f64 / one.as_bps().max(1) as f64).ceil().max(f64::from(constants.least_segments));
        let next = (group.base + group.queue) * (1.0 + 1.0 / windows);
        let fills = group.queue < aim && next > group.base + aim * constants.keeps;
        let is_short = group.base < aim && self.got() < constants.aggregates && one > Rate::ZERO;
        // Half a segment below: hosts whose paths differ a little have the same windows.
        (fills && is_short && parts.has(LawPart::WholeWindows)).then(|| one * (windows - 0.5))
    }

    /// Keeps the rate below the edge; whether the medium has just collapsed, as it does where PHY rates fall back because of
    /// collisions: all once got so much under bounds that they now get little, behind a long queue.
    fn collapses(&mut self, group: &Group, aim: Span, constants: &Constants) -> bool {
        let is_long = group.queue > aim * constants.filled;
        let collapses = is_long && group.total.max(self.free) < self.best * constants.loses;
        if collapses {
            self.edge = self.best * constants.keeps;
            self.best = Rate::ZERO;
        } else if !is_long {
            self.best = self.best.max(group.total);
        }
        self.edge = self.edge * constants.creep;
        if self.edge > Rate::ZERO {
            self.rate = self.rate.min(self.edge * (1.0 / f64::from(group.hosts.max(1))));
        }
        collapses
    }
}

impl Step {
    fn new(began: Time, aim: Span, ceiling: Span, group: &Group) -> Self {
        let round_trip = group.base + group.queue;
        Self { began, aim, ceiling, round_trip, got: Bytes::ZERO, queue: 0.0, judged: Span::ZERO, loses: Span::ZERO }
    }
}
