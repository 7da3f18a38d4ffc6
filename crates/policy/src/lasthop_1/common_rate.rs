//! The control law of the common rate, one tick at a time.
//!
//! In terms of docs/models/policy-lasthop-1.md: r the common rate of a host, B the mean lowest RTT, q the mean excess, q* the excess
//! aimed at, y the mean goodput of a host.

use super::edge::{self, Edge};
use super::guard::Trial;
use super::signals::Signals;

/// A queue of this is aimed at where windows are large, in s, or this part of B if that is longer: what keeps the medium busy
/// while a window's acknowledgements come back.
pub(super) const WINDOW_TARGET: (f64, f64) = (0.010, 0.1);
/// The same where windows are small and the pace decides: this and this part of B. Where many hosts are paced the queue is four times as
/// long now and then (p95), five times by some seeds, and 20 ms + 0.3 B are what that may be.
const PACE_TARGET: (f64, f64) = (0.004, 0.05);
/// Where even windows of as few segments as a host needs make a queue within this and this part of B, in s, and more than so many
/// times that, acknowledgements clock the segments: the queue is no longer than the windows make it, and this part of that is aimed at, ...
const CLOCKED_WITHIN: (f64, f64) = (0.020, 0.3);
const CLOCKED_OVER: f64 = 2.0;
const CLOCKED_AIM: f64 = 0.7;
/// ... but in hosts that get less than this part of r: their RTT is longer than the others', as at a low PHY rate.
const CLOCKED_USED: f64 = 0.7;
/// So many segments of all hosts are no queue however long they take, up to the second, in s: at low PHY rates a few take long.
const PACKETS: (f64, f64) = (4.0, 0.1);
/// The least window while a queue from before the control drains: where acknowledgements are dropped, few of them are too few.
pub(super) const DRAINING_SEGMENTS: u32 = 10;
/// The least window otherwise: Linux lets half a window go at once (tcp_cwnd_test), and one segment alone waits. Clocked segments do not.
const LEAST_SEGMENTS: u32 = 4;
const LEAST_CLOCKED: u32 = 2;
/// From windows of so many segments on the window decides; below, rounding it would, and the pace does.
pub(super) const SPARSE_SEGMENTS: f64 = 16.0;
/// Pacing beside a window that decides, over r: only takes the edge off bursts.
const SLACK: f64 = 1.1;
/// The pace falls by this part of r per second of excess above q* (and rises below it), so that a queue drains before r learns.
const PROPORTIONAL: f64 = 1.5;
/// And is at least and at most this, over r.
const PACES: (f64, f64) = (0.8, 1.1);
/// With a queue of so many q*, where less than the second part of r gets through, r falls to what does, at most to the third at once. Such a queue
/// is nothing unusual among many hosts ([`PACE_TARGET`]); what does not get through is.
const NOT_USED: (f64, f64, f64) = (2.0, 0.85, 0.5);
/// r rises by this part per tick at q = 0, in proportion to what is missing to q*.
const RISE: f64 = 0.02;
/// r falls by this part per tick for each q* above q*, at most [`MOST_FALL`].
const FALL: f64 = 0.005;
const MOST_FALL: f64 = 0.05;
/// Below this part of q* the medium is not full, and r rises by [`STEP`], twice as much at each further tick, up to [`MOST_RISE`].
const CALM: f64 = 0.5;
const STEP: f64 = 0.04;
const MOST_RISE: f64 = 0.25;
/// The least common rate, in segments per second: a bound, however wrong, starves nobody. Just above what no pace is less than
/// ([`lasthop_laws::bound::LEAST_PACING_RATE`]), for fifty hosts that share 1 Mb/s.
const LEAST_PER_SECOND: f64 = 2.8;
/// With a queue of so many q*, and y below this part of what was delivered without one, the medium has collapsed (rate fallback), ...
const FALLEN: (f64, f64) = (2.0, 0.65);
/// ... if that lasts for so many ticks, or comes back again and again: each tick without takes the second back. Where only the capacity has fallen
/// the law has brought the queue down by then, and where others fill the queue control has ended.
const FALLEN_TICKS: (f64, f64) = (12.0, 0.05);
/// Without a queue, and y above this times what all got while free and congested, it had collapsed then.
const MORE_WITHOUT: f64 = 1.6;
/// The hosts that were there then are those that were heard, or as many as have been since control began, but no more than so many times the former.
const MOST_UNHEARD: f64 = 2.0;
/// Where there are two hosts, and were two then, and both tell what they got, less tells it from chance.
const MORE_OF_TWO: f64 = 1.1;
/// Windows of so many segments and more are left to the acknowledgements where the medium may collapse, ...
const CAREFUL_SEGMENTS: f64 = 2.0;
/// ... and so are smaller ones, even and with no room for a queue, from so many segments a second on; what is less is a medium that has
/// collapsed, or fifty hosts, and a window of two that loses one waits for a timeout, ...
const CAREFUL_PER_SECOND: f64 = 10.0;
/// ... with a pace of this, over r: bursts of hosts that take turns collide less than segments paced by each for itself. Where a window lets
/// through more than the second, at r.
const CAREFUL_PACES: (f64, f64) = (3.0, 2.0);
/// Who takes a medium for an ordinary one again is not talked out of it for so many ticks: the others are to come to the same in
/// that time.
const FORGIVEN_TICKS: u32 = 40;
/// With a queue within these, in q*, as the law keeps it on a medium that does not collapse, y takes the place of what was delivered before, by this
/// part per tick.
const SETTLED: (f64, f64, f64) = (0.5, 1.5, 0.1);
/// How much is remembered per tick of what was delivered without more of a queue than that.
const FADE: f64 = 0.998;
/// After an arrival the goodput of a host falls because it is shared: no collapse for so many ticks.
const ARRIVAL_TICKS: u32 = 8;
/// When control begins many come at once, and at first those are heard who get most.
const GATHERING_TICKS: u32 = 24;
/// Windows are held up to what r fills, or this times y, or this times what the host itself has just got, whichever is least.
const LIFT: (f64, f64) = (1.25, 3.0);
/// In somebody else's queue r keeps its part for so long: control has ended by then, unless somebody lies.
const LONGEST_SIEGE_TICKS: u32 = 24;
/// Ticks below q* after which that queue is gone.
const DRAINED_TICKS: u32 = 2;

/// The common rate and what the law remembers of it. Rates in bytes of payload per second.
#[derive(Clone, Debug)]
pub(super) struct CommonRate {
    pub(super) rate: f64,
    /// What a connection is paced at, over its part of r.
    pace: f64,
    phase: Phase,
    terminals: u32,
    calm_ticks: u32,
    /// y without more of a queue than the law keeps.
    proven: f64,
    /// Ticks at which the medium seemed to have collapsed, less what was taken back since.
    fallen_ticks: f64,
    forgiven_ticks: u32,
    arrival_ticks: u32,
    /// The most busy hosts since control began, or since the last pause.
    most_terminals: u32,
    /// y while all were free and the first queue stood, and the most hosts that were there; infinite: not known.
    congested: (f64, f64),
    /// Where the medium collapses; `None`: it does not.
    edge: Option<Edge>,
    /// For so many ticks a queue stays however low r is: somebody else's.
    besieged_ticks: u32,
    /// r at the last ticks, the newest first.
    recent: [f64; edge::DELAY_TICKS],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// A queue from before the control drains; for so many ticks it has been gone.
    Draining(u32),
    Steady,
}

/// What the limits of the connections are computed from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// The pace decides, and windows are even.
    pub(super) sparse: bool,
    /// A queue from before the control drains, or somebody else's stays: windows follow the RTT as it is.
    pub(super) draining: bool,
    /// q*, in s.
    pub(super) target: f64,
    /// What the host's window may hold above the bare path's, in s.
    pub(super) room: f64,
    /// The least even window of a connection, in segments.
    pub(super) least: u32,
}

impl CommonRate {
    /// Begins at `rate`, a part of what was free, with a queue to drain.
    pub(super) fn trial(rate: f64, signals: &Signals) -> Self {
        Self::new(rate, true, signals)
    }

    /// Takes the rate of the others, who may have a queue to drain.
    pub(super) fn join(rate: f64, queue: bool, signals: &Signals) -> Self {
        Self::new(rate, queue, signals)
    }

    /// The same after a pause, in which one's own rate has grown old. That the medium may collapse is not forgotten.
    pub(super) fn rejoin(&mut self, rate: f64, signals: &Signals) {
        let new = Self::join(rate, false, signals);
        let congested = if self.edge.is_some() { self.congested } else { new.congested };
        *self = Self { edge: self.edge.clone(), congested, ..new };
    }

    fn new(rate: f64, draining: bool, signals: &Signals) -> Self {
        let mut new = Self {
            rate: 0.0,
            pace: 1.0,
            phase: if draining { Phase::Draining(0) } else { Phase::Steady },
            terminals: signals.terminals,
            calm_ticks: 0,
            proven: 0.0,
            fallen_ticks: 0.0,
            forgiven_ticks: 0,
            arrival_ticks: GATHERING_TICKS,
            most_terminals: 0,
            congested: (f64::INFINITY, f64::INFINITY),
            edge: None,
            besieged_ticks: 0,
            recent: [f64::INFINITY; edge::DELAY_TICKS],
        };
        new.set(rate, signals);
        new
    }

    /// A queue from before the control still drains.
    pub(super) fn is_draining(&self) -> bool {
        matches!(self.phase, Phase::Draining(_))
    }

    /// What a connection is paced at, over its part of r. Where the medium may collapse that goes by B; one whose own path is shorter by far, so
    /// that its window would let `through` times its part through, keeps to its part by the pace.
    pub(super) fn pace(&self, through: f64) -> f64 {
        if self.is_careful() && through > CAREFUL_PACES.1 { self.pace.min(1.0) } else { self.pace }
    }

    /// The medium has collapsed and may again.
    pub(super) fn is_careful(&self) -> bool {
        self.edge.is_some()
    }

    /// What follows from the rate for windows and pace.
    pub(super) fn shape(&self, signals: &Signals) -> Shape {
        let window_target = target(WINDOW_TARGET, signals);
        let pace_target = pace_target(signals);
        let packets = (PACKETS.0 * signals.segment / (self.rate * f64::from(signals.terminals))).min(PACKETS.1);
        let window = self.rate * (signals.base + window_target) / signals.flows / signals.segment;
        let bare = self.rate * signals.base / signals.flows / signals.segment;
        let small = if self.is_careful() { bare < CAREFUL_SEGMENTS } else { window < SPARSE_SEGMENTS };
        let by_window =
            Shape { sparse: false, draining: false, target: window_target, room: window_target, least: LEAST_SEGMENTS };
        let by_pace = Shape { sparse: true, target: pace_target, room: 2.0 * pace_target, ..by_window };
        let shape = if self.is_draining() || self.is_besieged() {
            let target = if window < SPARSE_SEGMENTS { pace_target } else { window_target };
            Shape { draining: true, target: target.max(kept(signals)), least: DRAINING_SEGMENTS, ..by_pace }
        } else if self.is_careful() {
            // What may collapse is kept from having a queue at all.
            match (small, self.rate > CAREFUL_PER_SECOND * signals.segment) {
                (false, _) => Shape { target: pace_target, room: 0.0, ..by_window },
                (true, true) => Shape { room: 0.0, least: LEAST_CLOCKED, ..by_pace },
                (true, false) => by_pace,
            }
        } else if !small {
            by_window
        } else if let Some(queue) = clocked(self.rate, signals) {
            let target = CLOCKED_AIM * queue;
            let gets_it = signals.delivered > CLOCKED_USED * self.rate;
            // Of all the same, though one's own lowest RTT is a little less than the mean: two segments instead of four are a tenth less.
            let least = least_even(self.rate / signals.flows, signals) as u32;
            let (room, least) = if gets_it { (pace_target, least) } else { (by_pace.room, by_pace.least) };
            Shape { target, room, least, ..by_pace }
        } else {
            by_pace
        };
        Shape { target: shape.target.max(packets), ..shape }
    }

    /// The rate that a host's windows are to be large enough for, whatever its law makes of them: of a window that has left slow
    /// start too early, or has been cut for a loss, cubic takes many seconds to make the share. Not more than has been seen to
    /// get through, so that a queue too short to be seen in the RTT, or a peer that lies, can make losses but no collapse.
    pub(super) fn floor(&self, signals: &Signals) -> f64 {
        if self.is_draining() {
            return 0.0;
        }
        self.rate.min(LIFT.0 * signals.mean_delivered).min(LIFT.1 * signals.delivered_now)
    }

    /// One tick: agrees with the peers, then moves the rate by what the queue says. While a queue from before the control drains
    /// it is what the trial is at; where one stays later, no less than what the trial says for that.
    pub(super) fn on_tick(&mut self, signals: &Signals, trial: Option<Trial>) {
        let (sum, count) = signals.heard;
        let agreed = if self.is_draining() { self.rate } else { (self.rate + sum) / (1.0 + count) };
        if let Some(edge) = &mut self.edge {
            edge.agree(self.rate, agreed);
        }
        let besieged = trial.map_or(0.0, |trial| trial.besieged);
        let trial = trial.filter(|_| self.is_draining());
        self.set(trial.map_or(agreed, |trial| trial.rate), signals);
        self.congested = trial.and_then(|trial| trial.free).unwrap_or(self.congested);
        let Shape { sparse, target, .. } = self.shape(signals);
        let Signals { excess, mean_delivered, .. } = *signals;
        self.follow_terminals(signals, excess < target);
        self.most_terminals = self.most_terminals.max(signals.terminals);
        self.proven *= FADE;
        if excess > SETTLED.0 * target && excess < SETTLED.1 * target {
            self.proven -= SETTLED.2 * (self.proven - mean_delivered).max(0.0);
        }
        if excess < SETTLED.1 * target && self.arrival_ticks == 0 {
            self.proven = self.proven.max(mean_delivered.min(self.rate));
        }
        self.recent.rotate_right(1);
        self.recent[0] = self.rate;
        let factor = if let Phase::Draining(ticks) = self.phase {
            self.pace = 1.0;
            let ticks = if excess < target { ticks + 1 } else { 0 };
            self.phase = if ticks < DRAINED_TICKS { Phase::Draining(ticks) } else { Phase::Steady };
            // However deep the trial had to go for a long queue: so much gets through.
            let proven = trial.filter(|_| ticks >= DRAINED_TICKS).map_or(0.0, |trial| trial.least);
            (proven / self.rate).max(1.0)
        } else {
            self.watch_for_collapse(signals, target);
            self.near_edge(signals, target).unwrap_or_else(|| self.by_queue(sparse, signals, target))
        };
        self.set(self.rate * factor, signals);
        // Who goes on falling in somebody else's queue starves.
        let stays = !self.is_draining() && self.edge.is_none() && excess > NOT_USED.0 * target;
        let is_below = self.rate < besieged || self.besieged_ticks > LONGEST_SIEGE_TICKS;
        self.besieged_ticks = if stays && is_below { self.besieged_ticks + 1 } else { 0 };
        if self.is_besieged() {
            self.set(besieged, signals);
            self.pace = 1.0;
        }
    }

    /// A queue that is somebody else's stands.
    fn is_besieged(&self) -> bool {
        (1..=LONGEST_SIEGE_TICKS).contains(&self.besieged_ticks)
    }

    /// Whoever leaves frees his share at once. Whoever comes takes his share by asking for no more than the others have; that he
    /// has come may be news of long ago, for where queues are full beacons get lost.
    fn follow_terminals(&mut self, signals: &Signals, no_queue: bool) {
        let scale = f64::from(self.terminals.max(1)) / f64::from(signals.terminals.max(1));
        if scale < 1.0 {
            self.proven *= scale;
            self.scale_edge(scale);
            self.arrival_ticks = ARRIVAL_TICKS;
        }
        self.arrival_ticks = self.arrival_ticks.saturating_sub(1);
        if scale > 1.0 && no_queue {
            self.scale_edge(scale);
            self.set(self.rate * scale.min(2.0), signals);
        }
        if scale < 1.0 || no_queue {
            self.terminals = signals.terminals;
        }
    }

    fn scale_edge(&mut self, by: f64) {
        self.recent = self.recent.map(|rate| rate * by);
        if let Some(edge) = &mut self.edge {
            edge.scale(by);
        }
    }

    /// The medium collapses if half of all say so, or if with a queue it delivers less than without: after, or before.
    fn watch_for_collapse(&mut self, signals: &Signals, target: f64) {
        let Signals { excess, mean_delivered, .. } = *signals;
        let fallen = excess > FALLEN.0 * target && mean_delivered < FALLEN.1 * self.proven && self.arrival_ticks == 0;
        if self.edge.is_some() {
            self.fallen_ticks = 0.0;
            return;
        }
        let by = if fallen && !self.is_besieged() { 1.0 } else { -FALLEN_TICKS.1 };
        self.fallen_ticks = (self.fallen_ticks + by).max(0.0);
        self.forgiven_ticks = self.forgiven_ticks.saturating_sub(1);
        if self.forgiven_ticks == 0 && signals.careful > 0.0 && 2.0 * signals.careful >= signals.controlling + 1.0 {
            self.edge = Some(Edge::at(self.rate));
            return;
        }
        let without = mean_delivered.min(self.rate);
        // Where some have gone each of the others gets more. Beacons get lost in a queue: there were no fewer than were heard then, or when it
        // had gone.
        let (congested, hosts) = self.congested;
        let are_two = signals.terminals == 2 && signals.hosts == 2 && signals.told_free.1 == 1.0 && hosts == 2.0;
        let more = if are_two { MORE_OF_TWO } else { MORE_WITHOUT };
        let most = f64::from(self.most_terminals).clamp(hosts, MOST_UNHEARD * hosts);
        let shared = congested * f64::max(1.0, most / f64::from(signals.terminals));
        if self.fallen_ticks >= FALLEN_TICKS.0 {
            self.edge = Some(Edge::passed(self.proven));
            self.set(0.5 * mean_delivered, signals);
        } else if excess < target && without > more * shared {
            self.edge = Some(Edge::somewhere());
        }
    }

    /// On a medium that collapses: by what is known of where it does.
    fn near_edge(&mut self, signals: &Signals, target: f64) -> Option<f64> {
        let ticks = self.edge.as_ref()?.delay_ticks();
        let onset = self.recent[..ticks].iter().copied().fold(f64::INFINITY, f64::min);
        // For as many as the edge is for: where more have come, it is nearer, too.
        let (congested, hosts) = self.congested;
        let congested = if hosts.is_finite() { congested * hosts / f64::from(self.terminals.max(1)) } else { 0.0 };
        let factor = self.edge.as_mut()?.next(self.rate, onset, signals.excess, target, congested);
        if factor.is_none() {
            (self.edge, self.congested) = (None, (f64::INFINITY, f64::INFINITY));
            self.forgiven_ticks = FORGIVEN_TICKS;
        }
        self.calm_ticks = 0;
        let Shape { sparse, room, least, .. } = self.shape(signals);
        let segments = |of_s: f64| self.rate * of_s / signals.flows / signals.segment;
        let window = even(segments(signals.base + room)).max(least.into());
        let far_more = sparse && window > CAREFUL_PACES.1 * segments(signals.base);
        self.pace = if far_more { 1.0 } else { CAREFUL_PACES.0 };
        factor
    }

    /// On any other: by the queue.
    fn by_queue(&mut self, sparse: bool, signals: &Signals, target: f64) -> f64 {
        let factor = if sparse { self.by_pace(signals, target) } else { self.by_window(signals, target) };
        self.calm_ticks = if signals.excess < CALM * target { self.calm_ticks + 1 } else { 0 };
        if self.calm_ticks < 2 {
            return factor;
        }
        let step = STEP * f64::from(1_u32 << (self.calm_ticks.min(8) - 2));
        factor.max(1.0 + step.min(MOST_RISE))
    }

    /// Small windows: the queue is the integral of what is paced too fast, so r moves slowly and the pace answers at once.
    fn by_pace(&mut self, signals: &Signals, target: f64) -> f64 {
        let missing = target - signals.excess;
        self.pace = (1.0 + PROPORTIONAL * missing).clamp(PACES.0, PACES.1);
        let used = signals.delivered / self.rate;
        if signals.excess > NOT_USED.0 * target && used < NOT_USED.1 && signals.backlogged {
            return used.max(NOT_USED.2);
        }
        let part = missing / target;
        1.0 + if part > 0.0 { RISE * part } else { (FALL * part).max(-MOST_FALL) }
    }

    /// Large windows: the window itself is the queue's limit, q + B is in proportion to r, and one step makes it right.
    fn by_window(&mut self, signals: &Signals, target: f64) -> f64 {
        self.pace = SLACK;
        ((signals.base + target) / (signals.base + signals.excess)).clamp(0.5, 1.0 + MOST_RISE)
    }

    fn set(&mut self, rate: f64, signals: &Signals) {
        // Above 2^32 bytes per second a beacon could not tell it.
        self.rate = rate.clamp(LEAST_PER_SECOND * signals.segment, 4e9);
    }
}

fn pace_target(signals: &Signals) -> f64 {
    PACE_TARGET.0 + PACE_TARGET.1 * signals.base
}

/// The queue, in s, that the least even windows make at this common rate, where they may clock the segments.
fn clocked(rate: f64, signals: &Signals) -> Option<f64> {
    let share = rate / signals.flows;
    let queue = least_even(share, signals) * signals.segment / share - signals.base;
    let most = CLOCKED_WITHIN.0 + CLOCKED_WITHIN.1 * signals.base;
    (queue > CLOCKED_OVER * pace_target(signals) && queue < most).then_some(queue)
}

/// The least even window that this rate needs, in segments.
fn least_even(rate: f64, signals: &Signals) -> f64 {
    even(rate * (signals.base + pace_target(signals)) / signals.segment)
}

/// The queue, in s, that hosts under control keep on purpose, as far as their rates tell: nobody else need drain it.
pub(super) fn kept(signals: &Signals) -> f64 {
    let (sum, count) = signals.known;
    if count > 0.0 { clocked(sum / count, signals).unwrap_or(0.0) } else { 0.0 }
}

/// The even number of segments from this on: receivers acknowledge every second segment and let a single one wait (RFC 5681 §4.2).
pub(super) fn even(segments: f64) -> f64 {
    2.0 * (segments / 2.0).ceil()
}

/// Of these two, in s, whichever is longer with this B.
pub(super) fn target((least, part): (f64, f64), signals: &Signals) -> f64 {
    least.max(part * signals.base)
}

#[cfg(test)]
mod tests;
