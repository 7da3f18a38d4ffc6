//! Whether control is worth it: it is to cost the hosts that have it no more than a fifth of what they get without.
//!
//! Hosts without the agent fill the queue that the agent's hosts have just emptied, so whoever holds back alone starves. Nobody
//! can see from one host who fills a queue, but one can compare:
//!
//! ```text
//!          congested          10 s                      the queue has gone
//!  Idle ─────────────> Free ────────> Control(trial) ────────────────────────> Control
//!   ^                   ^                 │ does not go, for most of the hosts    │ less than free, for most of them
//!   │                   └─────────────────┴──────────────── hold doubles, 30 to 240 s ──────┤
//!   └──────────────────────────────── the medium is not full, for 10 s ────────────────────┘
//! ```
//!
//! In a trial each host slows down from what *it* got, so that all together slow down by as much, whoever hears whom. What
//! each got while all were free is told to the others, and their mean F is what control is measured by. Hosts decide together, more
//! than two thirds of them, by the flags of their beacons: control that some have and others not is the worst of both. Only a host that
//! gets less than a tenth of what it got while free gives up alone, for those who say that all is well may be lying; and, without
//! a group key, one whose own connections contradict what peers say ([`super::evidence`]).

use super::evidence::Evidence;
use super::signals::{BELIEVED, Signals};
use lasthop_units::{Span, Time};

/// The first look at what is delivered without control takes so long, in s.
const FIRST_LOOK_S: f64 = 10.0;
/// After control has been released, and after congestion has begun, goodput is not typical for so long, in s.
const AFTER_RELEASE_S: f64 = 8.0;
const AFTER_BEGIN_S: f64 = 2.0;
/// What was delivered in a free phase that ended so long before a trial, in s, is what was delivered just before it.
const FRESH_S: f64 = 2.0;
/// A released host follows another one's trial after so long, in s.
const FOLLOW_S: f64 = 10.0;
/// A released host goes back to control after so long, in s, if most others have stayed.
const REJOIN_S: f64 = 6.0;
/// Goodput is smoothed over this, in s.
const SMOOTHING_S: f64 = 4.0;
/// What is delivered while free is the mean over this, in s, from the first byte on: of hosts that take turns at starving each is to
/// count with what it gets of a turn, and not only while it gets something.
const FREE_S: f64 = 10.0;
/// What was delivered while free is forgotten in this, in s.
const MEMORY_S: f64 = 300.0;
/// A trial takes so long, in s, and so much more for each host, heard or not, and an RTT.
const TRIAL_S: f64 = 4.0;
const TRIAL_PER_HOST_S: f64 = 0.3;
/// It begins to count when what was on its way before it has arrived, but no later than this, in s: a host's own queue may take 20 s, and
/// until it has gone it is sent at the rate of before, and RTTs are of the time before.
const LONGEST_OLD_S: f64 = 15.0;
/// However many there are, and however long the RTT is, a trial is no longer than with these.
const MOST_HOSTS: u32 = 64;
const LONGEST_RTT_S: f64 = 2.0;
/// A trial slows down so that a queue of this, in s, would go in as long: a queue of q s goes in q / (1 − part) s. At most
/// to the first part of what the host got while free, at least to the second. With less than the first connections end in timeouts, and
/// take longer to come back than a trial does; below it goes only who gets no answer.
const DRAINED_IN_S: f64 = 3.0;
const TRIAL_PARTS: (f64, f64) = (0.3, 0.75);
/// Who hears nobody goes no deeper than to this part, and waits for RTTs no longer than this, in s: a medium that collapses, with its queue
/// of many seconds, takes several hosts, and those are without the agent then.
const LONELY: (f64, f64) = (0.5, 1.0);
/// What does not even get that much through goes down by this part per tick.
const NOT_THROUGH: (f64, f64) = (0.8, 0.93);
/// Everybody does by this part per tick after so long, in s: what was seen while free may have been too much.
const DEEPER: (f64, f64) = (5.0, 0.98);
/// Below this part of what was free control does harm, with ten hosts; and this less for each doubling above ten, because so
/// many contend for longer, and what the access point need not pass on they can use.
const HARMFUL: (f64, f64) = (0.8, 0.1);
/// The same for a host that is alone: what it got while free is all there was, and nobody else's share is in it.
const HARMFUL_ALONE: f64 = 0.9;
/// If that lasts for so long, in s, where a queue stands; twice as long where none does.
const HARMED_S: f64 = 6.0;
/// Where most others do not find it harmful: however long it lasted, it counts as this, in s, and the vote is taken back 6 s after
/// it is over.
const LONGEST_PRESSED_S: f64 = 2.0 * HARMED_S;
/// A host that is alone does not wait so long the less it gets: time counts up to so many times.
const MOST_PRESSED: f64 = 4.0;
/// Below this part of what this very host got while free it gives up alone, whatever the others say: they may lie.
const STARVED: f64 = 0.1;
/// Control is given up for so long, in s, twice as long each time it is in vain, up to the second.
const HOLD_S: (f64, f64) = (30.0, 240.0);
/// And, unless another host begins, for at least so many times what control has cost since its trial began, in seconds of what the host got
/// without, or of what all got in the mean if they have lost more, up to the same.
const HOLD_PER_LOST: f64 = 10.0;
/// Control that has lasted for so long, in s, was not in vain: something has changed, and what is free is looked at anew for the second.
const WORTH_S: f64 = 60.0;
const LOOK_AGAIN_S: f64 = 15.0;
/// Where less than this part of the common rate is used, nothing waits to be sent and no queue stands, for so long, in s, nothing
/// needs control.
const UNUSED: (f64, f64) = (0.6, 10.0);

/// What is remembered of the comparison. Rates in bytes of payload per second.
#[derive(Clone, Debug)]
pub(super) struct Guard {
    free_since: Option<Time>,
    free_until: Time,
    /// Goodput does not count before this age of a free phase, in s.
    skip_s: f64,
    /// What this host got without control, while nobody had any; 0: never seen.
    own_free: f64,
    /// The most hosts that were busy then.
    free_hosts: f64,
    /// The end of that phase.
    free_ended_at: Time,
    /// `own_free` has been measured for so long, in s.
    looked_s: f64,
    /// The first look has begun.
    has_looked: bool,
    /// What it got from control that was worth it; 0: none was.
    own_worth: f64,
    /// The queue that stood while it was free, over the one aimed at.
    free_queue: f64,
    /// What it gets now.
    own_lately: f64,
    /// What all get now, the mean.
    lately: f64,
    /// When control last began, or was given up because it did harm.
    changed_at: Time,
    /// Peers' control is not joined before this.
    alone_until: Time,
    control_s: f64,
    /// How long the trial may take from then on: as long as the longest RTT in it asks for.
    trial_s: f64,
    /// The part of `own_free` that the trial is at.
    part: f64,
    /// What will have been acknowledged when all that was on its way when control began has arrived, in bytes.
    old_until: f64,
    /// For so long, in s, the trial did not count, because that had not arrived.
    old_s: f64,
    /// What control has cost this host, and all in the mean, until it has been worth it, in seconds of what was free.
    lost_s: (f64, f64),
    pressed_s: f64,
    starved_s: f64,
    evidence: Evidence,
    unused_s: f64,
    hold_s: f64,
    /// Control does harm, as far as this host can see.
    pub(super) harmed: bool,
}

/// What a trial is at, in bytes of payload per second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trial {
    /// The host's own rate.
    pub(super) rate: f64,
    /// What hosts got while free and congested, the mean of those who know, and the most hosts that were there; `None`: that is
    /// not from just before, or this one was still on its way up then.
    pub(super) free: Option<(f64, f64)>,
    /// What r is at least when the queue has gone: a part of what this host got, or the mean of all if that is less.
    pub(super) least: f64,
    /// And later, as long as a queue stays however low r is: a smaller part, less where there are more hosts now.
    pub(super) besieged: f64,
}

/// What to do without control.
pub(super) enum Entry {
    /// Nothing.
    Wait,
    /// Begin with a trial at this rate.
    Trial(f64),
    /// Take the others' rate; with `true` there is a queue to drain.
    Join(f64, bool),
}

/// What to do under control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    /// Go on.
    No,
    /// It does harm.
    Harm,
    /// Nothing is congested.
    Calm,
}

impl Default for Guard {
    fn default() -> Self {
        Self {
            free_since: None,
            free_until: Time::ZERO,
            skip_s: 0.0,
            own_free: 0.0,
            free_hosts: 0.0,
            free_ended_at: Time::ZERO,
            looked_s: 0.0,
            has_looked: false,
            own_worth: 0.0,
            free_queue: 0.0,
            own_lately: 0.0,
            lately: 0.0,
            changed_at: Time::ZERO,
            alone_until: Time::ZERO,
            control_s: 0.0,
            trial_s: 0.0,
            part: 1.0,
            old_until: 0.0,
            old_s: 0.0,
            lost_s: (0.0, 0.0),
            pressed_s: 0.0,
            starved_s: 0.0,
            evidence: Evidence::default(),
            unused_s: 0.0,
            hold_s: HOLD_S.0,
            harmed: false,
        }
    }
}

impl Guard {
    /// Without control on purpose, to see what is delivered then or because control did harm.
    pub(super) fn is_free(&self, now: Time) -> bool {
        now < self.free_until
    }

    /// When control last began, or was given up because it did harm: what was said before is of another time.
    pub(super) fn since(&self) -> Time {
        self.changed_at
    }

    /// What this host got without control; 0: never seen.
    pub(super) fn own_free(&self) -> f64 {
        self.own_free
    }

    /// What a trial is at now; `None`: the host has never been free.
    pub(super) fn trial(&self, signals: &Signals) -> Option<Trial> {
        let (told, tellers) = signals.told_free;
        let mean = (self.own_free + told) / (1.0 + tellers);
        let just_before = self.changed_at.saturating_since(self.free_ended_at).as_secs_f64() < FRESH_S;
        let free = (just_before && self.free_queue >= 1.0).then_some((mean, self.free_hosts));
        let sure = mean.min(self.own_free);
        let arrived = f64::from(signals.terminals) / self.free_hosts.max(1.0);
        let (least, besieged) = (TRIAL_PARTS.1 * sure, TRIAL_PARTS.0 * sure / arrived.max(1.0));
        (self.own_free > 0.0).then_some(Trial { rate: self.part * self.own_free, free, least, besieged })
    }

    fn free_s(&self, now: Time) -> f64 {
        self.free_since.map_or(f64::INFINITY, |since| now.saturating_since(since).as_secs_f64())
    }

    /// One tick without control in which there was something to send, also if it waited in a timeout, as it has been for `sending_s`;
    /// `target` is the queue aimed at, in s.
    pub(super) fn look(&mut self, signals: &Signals, sending_s: f64, target: f64) {
        let Signals { now, elapsed, excess, .. } = *signals;
        let begun = AFTER_BEGIN_S + signals.base + signals.excess;
        // Beside hosts that hold back one gets more than while all are free.
        if self.free_s(now) > self.skip_s && sending_s > begun && signals.controlling == 0.0 {
            self.looked_s += elapsed;
            let weight = (elapsed / self.looked_s.min(FREE_S)).min(1.0);
            self.own_free += (signals.delivered_now - self.own_free) * weight;
            self.free_queue += (excess / target - self.free_queue) * weight;
            let terminals = f64::from(signals.terminals);
            self.free_hosts = if weight < 1.0 { self.free_hosts.max(terminals) } else { terminals };
        }
    }

    /// One tick without control in which something was on its way; `is_new`: it has filled no queue yet that it had to drain; `target` is
    /// the queue aimed at, in s.
    pub(super) fn without_control(&mut self, signals: &Signals, is_new: bool, target: f64) -> Entry {
        let Signals { now, excess, .. } = *signals;
        let free_s = self.free_s(now);
        let is_free = self.is_free(now);
        if now < self.alone_until {
            return Entry::Wait;
        }
        let (sum, count) = signals.known;
        let first_look = self.skip_s <= AFTER_BEGIN_S;
        let most_control = free_s > REJOIN_S && signals.controlling > 2.0 * (1.0 + signals.released);
        let follows = count > 0.0 && (!is_free || first_look || free_s > FOLLOW_S || most_control);
        let queue = excess > target;
        let knows_free = self.has_looked && self.own_free > 0.0;
        if follows && (is_new || !knows_free || !queue) {
            // Without a rate of one's own there is nothing else to measure theirs by; who has just come has got nothing yet, and may know what is
            // free.
            let known = if queue && knows_free { STARVED * self.own_free } else { 0.0 };
            let rate = (sum / count).max(signals.delivered / BELIEVED).max(known);
            self.part = part_for(signals).min(TRIAL_PARTS.1);
            self.begin(signals, rate);
            return Entry::Join(rate, queue && !is_new);
        }
        if !queue || (is_free && !follows) {
            return Entry::Wait;
        }
        if !knows_free {
            self.has_looked = true;
            self.release_for(FIRST_LOOK_S, AFTER_BEGIN_S, now);
            return Entry::Wait;
        }
        self.part = part_for(signals).min(TRIAL_PARTS.1);
        let rate = self.part * self.own_free;
        self.begin(signals, rate);
        Entry::Trial(rate)
    }

    fn begin(&mut self, signals: &Signals, rate: f64) {
        (self.changed_at, self.trial_s) = (signals.now, trial_s(signals));
        (self.control_s, self.pressed_s, self.starved_s, self.unused_s) = (0.0, 0.0, 0.0, 0.0);
        (self.lately, self.own_lately, self.evidence) = (rate, self.own_free, Evidence::default());
        (self.free_until, self.harmed, self.old_s, self.lost_s) = (Time::ZERO, false, 0.0, (0.0, 0.0));
        self.old_until = signals.acked + signals.in_flight;
    }

    /// One tick under control, with the common rate, whether the trial's queue still drains, and the queue aimed at in s.
    pub(super) fn under_control(&mut self, signals: &Signals, rate: f64, draining: bool, target: f64) -> Exit {
        let Signals { now, elapsed, excess, mean_delivered, .. } = *signals;
        if !signals.wants {
            return self.unused(elapsed);
        }
        let weight = (elapsed / SMOOTHING_S).min(1.0);
        self.control_s += elapsed;
        self.lately += (mean_delivered - self.lately) * weight;
        self.own_lately += (signals.delivered - self.own_lately) * weight;
        let reference = if self.own_free > 0.0 { self.own_free } else { self.own_worth };
        let starved = signals.backlogged && self.own_lately < STARVED * reference;
        self.starved_s = if starved { self.starved_s + elapsed } else { 0.0 };
        let contradicted = self.evidence.on_tick(signals, rate, target, (self.own_lately, self.own_free));
        self.trial_s = self.trial_s.max(trial_s(signals));
        // What a connection that has ended had on its way never arrives.
        self.old_until = self.old_until.min(signals.acked + signals.in_flight);
        if !draining {
            self.old_s = 0.0;
        } else if signals.acked < self.old_until {
            self.old_s = (self.old_s + elapsed).min(LONGEST_OLD_S);
        }
        let trial_s = self.trial_s + self.old_s;
        self.count_lost(signals);
        self.harmed = if draining {
            self.go_deeper(signals, rate);
            self.control_s > trial_s
        } else {
            self.compare(signals, target);
            self.pressed_s > HARMED_S
        };
        // This host and those heard since it began; whoever has given up found it harmful.
        let votes = f64::from(u8::from(self.harmed)) + signals.harmed + signals.released;
        let voters = 1.0 + signals.controlling + signals.released;
        let most = self.control_s > trial_s / 2.0 && 3.0 * votes > 2.0 * voters;
        let alone = self.starved_s > trial_s || contradicted;
        if most || alone {
            let lost_s = self.lost_s.0.max(self.lost_s.1);
            let hold_s = self.hold_s.max((HOLD_PER_LOST * lost_s).min(HOLD_S.1));
            if alone {
                self.alone_until = now.saturating_add(Span::from_secs_f64(hold_s));
            }
            if !draining && !alone && self.control_s > WORTH_S {
                self.release_for(LOOK_AGAIN_S, AFTER_RELEASE_S, now);
            } else {
                self.release_for(hold_s, AFTER_RELEASE_S, now);
                self.hold_s = (2.0 * self.hold_s).min(HOLD_S.1);
            }
            return Exit::Harm;
        }
        if excess < target && mean_delivered < UNUSED.0 * rate && !signals.backlogged && !draining {
            return self.unused(elapsed);
        }
        self.unused_s = 0.0;
        Exit::No
    }

    /// What control costs this host, and all in the mean: the first one that begins again takes the others with it.
    fn count_lost(&mut self, signals: &Signals) {
        let (all_free, _) = self.free(signals);
        let Self { lost_s: (own, all), own_free, .. } = self;
        for (lost_s, gets, free) in [(own, signals.delivered_now, *own_free), (all, signals.mean_delivered, all_free)] {
            *lost_s = (*lost_s + signals.elapsed * (1.0 - gets / free.max(1.0))).max(0.0);
        }
    }

    /// What hosts got without control, the mean, and how many they are: who has never been free is somebody more to share it with.
    fn free(&self, signals: &Signals) -> (f64, f64) {
        let (told, tellers) = signals.told_free;
        let hosts = 1.0 + tellers.max(f64::from(signals.terminals) - 1.0);
        ((self.own_free + told) / hosts, hosts)
    }

    /// A trial that the queue does not answer to goes on with less.
    fn go_deeper(&mut self, signals: &Signals, rate: f64) {
        if signals.delivered < NOT_THROUGH.0 * rate {
            self.part *= NOT_THROUGH.1;
        } else if self.control_s - self.old_s > DEEPER.0 {
            self.part *= DEEPER.1;
        }
        self.part = self.part.min(part_for(signals));
        if signals.hosts <= 1 {
            self.part = self.part.max(LONELY.0);
        }
    }

    /// What is delivered, against what was.
    fn compare(&mut self, signals: &Signals, target: f64) {
        let (free, hosts) = self.free(signals);
        let doublings = (hosts / 10.0).max(1.0).log2();
        let (gets, enough, haste) = if signals.hosts.max(signals.terminals) <= 1 {
            let enough = HARMFUL_ALONE * free;
            (signals.delivered, enough, (enough / signals.delivered.max(1.0)).min(MOST_PRESSED))
        } else {
            // While it comes back from a trial the smoothed mean is not yet what it will be.
            (self.lately.max(signals.mean_delivered), (HARMFUL.0 - HARMFUL.1 * doublings) * free, 1.0)
        };
        let counts = if signals.excess > 2.0 * target { 1.0 } else { 0.5 };
        self.pressed_s = if gets < enough {
            (self.pressed_s + haste * counts * signals.elapsed).min(LONGEST_PRESSED_S)
        } else {
            0.0_f64.max(self.pressed_s - signals.elapsed)
        };
        if self.control_s > WORTH_S {
            (self.hold_s, self.lost_s) = (HOLD_S.0, (0.0, 0.0));
            if self.own_worth == 0.0 {
                self.own_worth = self.own_lately;
            }
        }
        for known in [&mut self.own_free, &mut self.own_worth] {
            if *known > 0.0 {
                *known += (self.own_lately - *known) * (signals.elapsed / MEMORY_S).min(1.0);
            }
        }
        // What is remembered is of as many then.
        self.free_hosts += (f64::from(signals.terminals) - self.free_hosts) * (signals.elapsed / MEMORY_S).min(1.0);
    }

    fn unused(&mut self, elapsed: f64) -> Exit {
        self.unused_s += elapsed;
        if self.unused_s > UNUSED.1 {
            self.harmed = false;
            Exit::Calm
        } else {
            Exit::No
        }
    }

    fn release_for(&mut self, for_s: f64, skip_s: f64, now: Time) {
        (self.free_since, self.skip_s, self.harmed, self.changed_at) = (Some(now), skip_s, false, now);
        if skip_s > AFTER_BEGIN_S {
            self.looked_s = 0.0;
        }
        self.free_until = now.saturating_add(Span::from_secs_f64(for_s));
        self.free_ended_at = self.free_until;
    }
}

/// The part of what was free at which the queue goes in time.
fn part_for(signals: &Signals) -> f64 {
    (1.0 - signals.excess / DRAINED_IN_S).max(if signals.hosts > 1 { TRIAL_PARTS.0 } else { LONELY.0 })
}

/// How long a trial may take, in s.
fn trial_s(signals: &Signals) -> f64 {
    let rtt = (signals.base + signals.excess).min(if signals.hosts > 1 { LONGEST_RTT_S } else { LONELY.1 });
    TRIAL_S + TRIAL_PER_HOST_S * f64::from(signals.hosts.min(MOST_HOSTS)) + rtt
}

#[cfg(test)]
mod tests;
