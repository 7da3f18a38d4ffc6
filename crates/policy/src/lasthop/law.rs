//! The law: when windows are bounded, which queue is aimed at, and the rate that each host may have.
//!
//! ```text
//!           congested for 5 s, or most propose an aim
//!  Free ───────────────────────────────────────────────> Bound: steps of 5 s and two round trips; first, the least aim
//!   ^                                                      │ bad: a queue 2.5 times as long, and wait
//!   └── bad, and the queue would be what it was ───────────┘ good: the same again; after the wait 0.4 of it
//! ```
//!
//! Every host proposes; what most propose is what all do.

use super::group::{BELIEVED, Group, median};
use super::own::{Host, RECENT, kept, mean};
use super::parts::{LawPart, Parts};
use super::told::Proposal;
use crate::{Harm, Prefer, TICK};
use lasthop_units::{Bytes, Rate, Span, Time};

/// The least queue aimed at: one part for the access point, one for each host's turn on the air, and one in proportion
/// to the path, whose round trips vary more the longer it is.
const LEAST_AIM: Span = Span::from_millis(10);
const AIM_OF_HOST: Span = Span::from_millis(1);
const AIM_OF_PATH: f64 = 0.1;
/// The first two are half as long where all get less than this, free and in the latest step. 802.11a and g carry 27 Mb/s of
/// payload at most, in frames of one packet: a host's turn is short, and no aggregates have to be kept long.
const AGGREGATES: Rate = Rate::from_bps(27_000_000);
/// Congested is a queue twice the least aim's parts for access point and path, and this for each host, whose turn on the
/// air takes up to 5.5 ms, ...
const CONGESTED_BY_HOST: Span = Span::from_millis(6);
/// ... for a step, while the total is below so many times its mean: slow start is no congestion.
const GROWS: f64 = 1.3;
/// What was got without bounds is a mean over this.
const FREE_AGE: Span = Span::from_secs(8);
/// The next step aims at this part of the aim; a bad one is followed by one that aims at the aim over this.
const STEP: f64 = 0.4;
/// A step lasts so long and two round trips. What comes after the second time and one round trip is judged. The first is
/// also how long the queue is congested before bounds begin, and how long a host is without bulk connections before it
/// is idle.
pub(super) const STEP_FOR: Span = Span::from_secs(5);
const JUDGED_FROM: Span = Span::from_secs(3);
/// A step is bad where all hosts together get less than this part of what they got without bounds, ...
const KEEPS: f64 = 0.9;
/// ... or where they get no more than [`GROWS`] times that, behind a queue above so many times its aim: others fill it.
const FILLED: f64 = 2.0;
/// Where round trips are preferred, a step is bad where they get less than this part, and for nothing else.
const KEEPS_FOR_LATENCY: f64 = 0.5;
/// A step where they get less than this part for more than a second ends at once: that is no noise.
const LOSES: f64 = 0.7;
/// After a bad step no queue is made shorter for this long, each time twice as long, up to the second.
const PATIENCE: Span = Span::from_secs(40);
const LONGEST_PATIENCE: Span = Span::from_secs(320);
/// How much of the difference to the aim is made up for in a tick; a difference of more than a half counts as a half.
const GAIN: f64 = 0.4;
/// Where PHY rates fall back because of collisions, a medium collapses: all hosts together once got so much under bounds
/// that [`LOSES`] of it is above what they got without, and now they get less than that behind a queue above [`FILLED`].
/// From then on all together get at most [`KEEPS`] of that most, and so many times as much after each tick.
const CREEP: f64 = 1.001;
/// A window of fewer segments would wait for delayed ACKs.
pub(super) const LEAST_SEGMENTS: u32 = 2;

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
        self.idle = if host.bulk > 0 { Span::ZERO } else { self.idle + host.elapsed };
        if self.idle > STEP_FOR {
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
            (State::Bound(_), _) if self.idle > STEP_FOR => self.state = State::default(),
            (State::Bound(_), None) => {
                // The others wait half as long as the host that has found a step bad.
                self.waits_until = self.waits_until.max(host.now.saturating_add(self.patience.max(PATIENCE) / 2));
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
        if host.now >= self.waits_until {
            self.harm = None;
        }
        if host.bulk == 0 {
            return Free::default();
        }
        let keep = if free.total > Rate::ZERO { kept(host.elapsed, FREE_AGE) } else { 0.0 };
        free.total = mean(free.total, keep, group.total);
        let hosts = u64::from(group.hosts);
        let limit = (LEAST_AIM + group.least_base * AIM_OF_PATH) * FILLED + CONGESTED_BY_HOST * hosts;
        free.sees_queue = group.crest > limit;
        let grows = group.total >= free.total * GROWS && self.parts.has(LawPart::Growth);
        free.congested = match free.sees_queue && !grows {
            // A host goes on proposing for a while: where hosts are many, beacons come seldom, and most must propose at one
            // time.
            true => (free.congested + host.elapsed).min(STEP_FOR + RECENT),
            false if self.parts.has(LawPart::Lull) => free.congested.saturating_sub(host.elapsed),
            false => Span::ZERO,
        };
        self.proposal = if host.now < self.waits_until {
            Some(Proposal::Free)
        } else if free.congested >= STEP_FOR {
            Some(Proposal::Aim(self.least_aim(group, free.total)))
        } else {
            None
        };
        free
    }

    /// Most have begun: so does this host.
    fn begin(&mut self, host: &Host, group: &Group, aim: Span, free: Free) -> Bounds {
        // Believed as far as what this host sees allows.
        let equal = group.bulk * (1.0 / f64::from(group.hosts));
        let rate = median(group.rates.clone()).unwrap_or(equal);
        self.proposal = Some(Proposal::Aim(aim));
        let ceiling = group.crest.max(aim * (1.0 / STEP));
        Bounds {
            since: host.now,
            by_peers: !group.rates.is_empty(),
            step: Step::new(host.now, aim, ceiling, group),
            rate: rate.clamp(equal * (1.0 / BELIEVED), equal.max(group.most) * BELIEVED),
            free: median(group.frees.clone()).unwrap_or(free.total),
            latest: Rate::ZERO,
            best: Rate::ZERO,
            edge: Rate::ZERO,
        }
    }

    /// The part of the free total that a good step leaves.
    fn keeps(&self) -> f64 {
        match self.prefer {
            Prefer::Harmless => KEEPS,
            Prefer::Latency => KEEPS_FOR_LATENCY,
        }
    }

    /// `got`: the most that all have got, free or in the latest step.
    fn least_aim(&self, group: &Group, got: Rate) -> Span {
        let of_path = if self.parts.has(LawPart::Path) { AIM_OF_PATH } else { 0.0 };
        let of_turns = LEAST_AIM + AIM_OF_HOST * u64::from(group.hosts);
        let are_short = got < AGGREGATES && self.parts.has(LawPart::ShortTurns);
        group.base * of_path + if are_short { of_turns / 2 } else { of_turns }
    }

    /// A tick under bounds: the step after it.
    fn go_on(&mut self, host: &Host, group: &Group, aim: Span, bounds: &mut Bounds) -> Step {
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
            if self.parts.has(LawPart::Edge) && bounds.collapses(group, aim) {
                return Step::new(now, aim, step.ceiling, group);
            }
        }
        let lasts = now.saturating_since(step.began);
        let loses = lasts > TICK * 2 + step.round_trip && group.total < bounds.free * LOSES.min(self.keeps());
        step.loses = if loses { step.loses + host.elapsed } else { Span::ZERO };
        if lasts > JUDGED_FROM + step.round_trip {
            step.got += group.total * host.elapsed;
            step.queue += group.queue.as_secs_f64() * host.elapsed.as_secs_f64();
            step.judged += host.elapsed;
        }
        let lost = step.loses > TICK * 2 && self.parts.has(LawPart::EarlyEnd);
        if lost || lasts > STEP_FOR + step.round_trip * 2 && !step.judged.is_zero() {
            self.judge(now, group, bounds, &step, lost);
            step = Step::new(now, aim, step.ceiling, group);
        }
        step
    }

    /// What a step has shown, and what to propose for the next.
    fn judge(&mut self, now: Time, group: &Group, bounds: &mut Bounds, step: &Step, lost: bool) {
        let least = self.least_aim(group, bounds.got());
        let got = Rate::over(step.got, step.judged);
        bounds.latest = got;
        let queue = step.queue / step.judged.as_secs_f64().max(1e-3);
        let gained = got > bounds.free * GROWS && self.parts.has(LawPart::Edge);
        let heeds_others = self.prefer == Prefer::Harmless;
        let filled = heeds_others && queue > FILLED * step.aim.as_secs_f64() && !gained;
        let is_judged = !step.judged.is_zero();
        let (seen, stood) = if is_judged { (got, Span::from_secs_f64(queue)) } else { (group.total, group.queue) };
        self.harm = if filled || lost && stood > step.aim * FILLED {
            Some(Harm::Queue { queue: stood, aim: step.aim })
        } else if lost || got < bounds.free * self.keeps() {
            Some(Harm::Goodput { got: seen, free: bounds.free })
        } else {
            None
        };
        if self.harm.is_some() {
            let back = if self.parts.has(LawPart::StepBack) { step.aim * (1.0 / STEP) } else { Span::MAX };
            self.proposal = Some(if back > step.ceiling { Proposal::Free } else { Proposal::Aim(back) });
            let patience = self.patience.max(PATIENCE);
            self.waits_until = now.saturating_add(patience);
            self.patience =
                if self.parts.has(LawPart::Patience) { (patience * 2).min(LONGEST_PATIENCE) } else { patience };
            return;
        }
        let goes_down = now >= self.waits_until;
        self.proposal = Some(Proposal::Aim(if goes_down { (step.aim * STEP).max(least) } else { step.aim }));
        if goes_down && step.aim <= least * 1.01 {
            self.patience = Span::ZERO;
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
        let own = self.rate;
        let near = |rate: &Rate| (*rate).clamp(own * (1.0 / BELIEVED), own * BELIEVED);
        let sum: Rate = group.news.iter().map(near).sum::<Rate>() + own;
        let mut rate = sum * (1.0 / (1.0 + group.news.len() as f64));
        let room = (group.base + aim).as_secs_f64();
        if host.now.saturating_since(self.since) > TICK * 2 {
            let off = (group.queue.as_secs_f64() - aim.as_secs_f64()) / room;
            rate = rate * (1.0 - GAIN * off.clamp(-0.5, 0.5));
        }
        // Half of an equal share of what all got without bounds.
        let least = self.free * (1.0 / (BELIEVED * f64::from(group.hosts.max(1))));
        self.rate =
            rate.min(group.most * BELIEVED).max(if parts.has(LawPart::LeastShare) { least } else { Rate::ZERO });
    }

    /// Keeps the rate below the edge; whether the medium has just collapsed.
    fn collapses(&mut self, group: &Group, aim: Span) -> bool {
        let is_long = group.queue > aim * FILLED;
        let collapses = is_long && group.total.max(self.free) < self.best * LOSES;
        if collapses {
            self.edge = self.best * KEEPS;
            self.best = Rate::ZERO;
        } else if !is_long {
            self.best = self.best.max(group.total);
        }
        self.edge = self.edge * CREEP;
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
