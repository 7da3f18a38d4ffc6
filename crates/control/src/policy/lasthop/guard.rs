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
//! gets less than a tenth of what it got while free gives up alone, for those who say that all is well may be lying.

use super::signals::{BELIEVED, Signals};
use units::{Span, Time};

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
/// And, unless another host begins, for at least so many times what the trial has cost, in seconds of what the host got without control,
/// up to the same.
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
    /// What the trial has cost, in seconds of `own_free`.
    lost_s: f64,
    pressed_s: f64,
    starved_s: f64,
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
            lost_s: 0.0,
            pressed_s: 0.0,
            starved_s: 0.0,
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
        (self.lately, self.own_lately) = (rate, self.own_free);
        (self.free_until, self.harmed, self.old_s, self.lost_s) = (Time::ZERO, false, 0.0, 0.0);
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
        self.trial_s = self.trial_s.max(trial_s(signals));
        // What a connection that has ended had on its way never arrives.
        self.old_until = self.old_until.min(signals.acked + signals.in_flight);
        if !draining {
            self.old_s = 0.0;
        } else if signals.acked < self.old_until {
            self.old_s = (self.old_s + elapsed).min(LONGEST_OLD_S);
        }
        let trial_s = self.trial_s + self.old_s;
        self.lost_s = (self.lost_s + elapsed * self.lost(signals)).max(0.0);
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
        let alone = self.starved_s > trial_s;
        if most || alone {
            let hold_s = self.hold_s.max((HOLD_PER_LOST * self.lost_s).min(HOLD_S.1));
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

    /// The part of what was free that a trial costs: this host, or all in the mean if that is more, for the first one that begins again takes
    /// the others with it.
    fn lost(&self, signals: &Signals) -> f64 {
        let (told, tellers) = signals.told_free;
        let free = (self.own_free + told) / (1.0 + tellers);
        let (own, all) = (signals.delivered_now / self.own_free.max(1.0), signals.mean_delivered / free.max(1.0));
        1.0 - own.min(all)
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
        let (told, tellers) = signals.told_free;
        // Who has never been free is somebody more to share it with.
        let hosts = 1.0 + tellers.max(f64::from(signals.terminals) - 1.0);
        let free = (self.own_free + told) / hosts;
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
            self.hold_s = HOLD_S.0;
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
mod tests {
    use super::*;

    const AIM: f64 = 0.010;

    fn signals(at_s: f64, excess: f64, delivered: f64) -> Signals {
        Signals { now: Time::ZERO + Span::from_secs_f64(at_s), ..Signals::alone(0.1, excess, delivered) }
    }

    /// Congested at 1 MB/s from the beginning: when the trial begins, and at which rate.
    fn trial(guard: &mut Guard) -> (f64, f64) {
        (0..)
            .map(|tick| f64::from(tick) / 2.0)
            .find_map(|at_s| {
                let now = signals(at_s, 0.2, 1e6);
                guard.look(&now, at_s, AIM);
                match guard.without_control(&now, false, AIM) {
                    Entry::Trial(rate) => Some((at_s, rate)),
                    Entry::Join(..) => panic!("nobody else is there"),
                    Entry::Wait => None,
                }
            })
            .expect("a trial begins")
    }

    #[test]
    fn a_trial_begins_after_a_first_look_with_a_part_of_what_this_host_got() {
        // However little the others get: 0.2 s of queue, so the most that a trial asks for.
        let (at_s, rate) = trial(&mut Guard::default());
        assert_eq!((at_s, rate), (10.0, 0.75 * 1e6));
        let calm = Guard::default().without_control(&signals(100.0, 0.005, 1e6), false, AIM);
        assert!(matches!(calm, Entry::Wait));
    }

    #[test]
    fn what_was_free_is_told_to_a_trial_only_right_after_and_with_the_most_hosts_that_were_heard() {
        let mut guard = Guard::default();
        for tick in 0..20 {
            let terminals = [6, 9, 7, 5][tick % 4];
            let now = Signals { terminals, ..signals(tick as f64 / 2.0, 0.2, 1e6) };
            guard.look(&now, 9.0, AIM);
            guard.without_control(&now, false, AIM);
        }
        let mut free_after = |at_s| {
            let now = signals(at_s, 0.2, 1e6);
            guard.begin(&now, 5e5);
            guard.trial(&now).expect("it has been free").free
        };
        assert_eq!((free_after(10.0), free_after(13.0)), (Some((1e6, 9.0)), None));
    }

    #[test]
    fn a_queue_that_does_not_drain_ends_the_trial_and_the_next_comes_later_each_time() {
        let mut guard = Guard::default();
        let (mut at_s, _) = trial(&mut guard);
        for hold_s in [30.0, 60.0, 120.0, 240.0, 240.0] {
            let begun_s = at_s;
            while guard.under_control(&signals(at_s, 0.2, 5e5), 5e5, true, AIM) == Exit::No {
                at_s += 0.5;
            }
            assert!(at_s - begun_s < 12.0, "the trial took {}", at_s - begun_s);
            let free_s = at_s;
            while matches!(guard.without_control(&signals(at_s, 0.2, 1e6), false, AIM), Entry::Wait) {
                at_s += 0.5;
            }
            assert_eq!(at_s - free_s, hold_s);
        }
    }

    #[test]
    fn a_trial_in_vain_is_followed_by_ten_times_what_it_has_cost() {
        let free_s = |delivered: f64| {
            let mut guard = Guard::default();
            let (begun_s, _) = trial(&mut guard);
            let at_s = |tick: u32| begun_s + f64::from(tick) / 2.0;
            let end = (0..100)
                .find(|tick| guard.under_control(&signals(at_s(*tick), 0.2, delivered), 7.5e5, true, AIM) == Exit::Harm)
                .expect("it is in vain");
            let next = (end..1000).find(|tick| {
                matches!(guard.without_control(&signals(at_s(*tick), 0.2, 1e6), false, AIM), Entry::Trial(_))
            });
            (at_s(end) - begun_s, at_s(next.expect("another one follows")) - at_s(end))
        };
        // 10 ticks at three quarters of what was free cost 1.25 s: the least is longer; at two tenths they cost 4 s, at nothing 5 s.
        assert_eq!((free_s(7.5e5), free_s(2e5), free_s(0.0)), ((4.5, 30.0), (4.5, 40.0), (4.5, 50.0)));
    }

    #[test]
    fn what_control_costs_all_in_the_mean_counts_from_its_trial_on_until_it_has_been_worth_it() {
        // This host gets what it got while free, or a fifth, and so do the others in the mean. The queue has gone after 5 s, and after 10 s
        // the others find it harmful.
        let free_s = |own: f64, all: f64| {
            let mut guard = Guard { own_free: 1e6, has_looked: true, ..Guard::default() };
            let of_ten = |tick: u32, excess, delivered, mean_delivered| Signals {
                hosts: 10,
                terminals: 10,
                controlling: 9.0,
                told_free: (9e6, 9.0),
                mean_delivered,
                ..signals(60.0 + f64::from(tick) / 2.0, excess, delivered)
            };
            assert!(matches!(guard.without_control(&of_ten(0, 0.2, 1e6, 1e6), false, AIM), Entry::Trial(_)));
            let end = (1..100)
                .find(|tick| {
                    let harmed = if *tick < 20 { 0.0 } else { 9.0 };
                    let now = Signals { harmed, ..of_ten(*tick, 0.2, own, all) };
                    guard.under_control(&now, 7.5e5, *tick <= 10, AIM) == Exit::Harm
                })
                .expect("most find it harmful");
            guard.free_until.saturating_since(of_ten(end, 0.0, 0.0, 0.0).now).as_secs_f64()
        };
        let costs = [(1e6, 1e6), (2e5, 1e6), (1e6, 2e5)].map(|(own, all)| free_s(own, all).round());
        // 10 s at a fifth cost 8 s, whoever it is.
        assert_eq!(costs, [30.0, 80.0, 80.0]);
    }

    #[test]
    fn a_trial_begins_to_count_when_what_was_on_its_way_before_has_arrived_but_no_later_than_after_fifteen_seconds() {
        let takes_s = |in_flight: f64, left: f64| {
            let mut guard = Guard { own_free: 1e6, has_looked: true, ..Guard::default() };
            guard.without_control(&Signals { in_flight, ..signals(60.0, 0.2, 1e6) }, false, AIM);
            let during = |tick: u32| {
                let acked = 2.5e5 * f64::from(tick) / 2.0;
                let in_flight = (in_flight - acked).max(1e4).min(left);
                Signals { acked, in_flight, ..signals(60.0 + f64::from(tick) / 2.0, 0.2, 2.5e5) }
            };
            let end = (1..100).find(|tick| guard.under_control(&during(*tick), 7.5e5, true, AIM) == Exit::Harm);
            f64::from(end.expect("it is in vain")) / 2.0
        };
        // 4 s + 0.3 s + 0.3 s of RTT; 1 MB at 250 kB/s takes 4 s, less the tick at which the last of it arrives; 5 MB take 20 s.
        assert_eq!((takes_s(0.0, 5e6), takes_s(1e6, 5e6), takes_s(5e6, 5e6)), (5.0, 8.5, 20.0));
        // What a connection that has ended had on its way is not waited for.
        assert_eq!(takes_s(5e6, 1e4), 5.5);
    }

    #[test]
    fn what_control_was_worth_for_a_minute_is_only_looked_at_anew() {
        let mut guard = Guard { own_free: 1e6, lately: 1e6, own_lately: 1e6, ..Guard::default() };
        guard.without_control(&signals(60.0, 0.2, 1e6), false, AIM);
        let mut control = |from: u32, delivered: f64| {
            let second = |tick: u32| 60.0 + f64::from(tick) / 2.0;
            let end = (from..from + 1000).find(|tick| {
                guard.under_control(&signals(second(*tick), 0.005, delivered), delivered, false, AIM) == Exit::Harm
            })?;
            let next = (end..end + 1000).find(|tick| {
                let now = signals(second(*tick), 0.2, delivered);
                matches!(guard.without_control(&now, false, AIM), Entry::Trial(_))
            })?;
            Some((second(end), second(next) - second(end), next))
        };
        assert_eq!(control(1, 0.95e6), None);
        // Half of it is left, no queue, and a host that is alone: harm after 12 s / 1.8.
        let (_, free_s, again) = control(1001, 0.5e6).expect("it does harm");
        assert_eq!(free_s, LOOK_AGAIN_S);
        // Control that does harm before it was worth anything is given up for longer.
        assert_eq!(control(again, 0.2e6).map(|(_, free_s, _)| free_s), Some(HOLD_S.0));
    }

    #[test]
    fn the_longer_the_queue_the_deeper_the_trial() {
        let rate = |hosts, excess| {
            let mut guard = Guard { own_free: 1e6, has_looked: true, ..Guard::default() };
            match guard.without_control(&Signals { hosts, ..signals(60.0, excess, 1e6) }, false, AIM) {
                Entry::Trial(rate) => rate,
                _ => panic!("a trial begins"),
            }
        };
        // A queue of 1.5 s goes in 3 s at half the rate, one of 10 s begins at the least.
        assert_eq!((rate(2, 0.3), rate(2, 1.5), rate(2, 10.0)), (7.5e5, 5e5, 3e5));
        // Who hears nobody is not the one who can make it go.
        assert_eq!((rate(1, 0.3), rate(1, 1.5), rate(1, 10.0)), (7.5e5, 5e5, 5e5));
    }

    #[test]
    fn a_trial_that_brings_nothing_goes_on_with_less_and_what_does_not_get_through_sooner() {
        let after = |delivered: fn(f64) -> f64| {
            let mut guard = Guard { own_free: 1e6, has_looked: true, ..Guard::default() };
            guard.without_control(&signals(60.0, 0.2, 1e6), false, AIM);
            let begun = guard.trial(&signals(0.0, 0.0, 0.0)).expect("it has been free").rate;
            for tick in 0..12 {
                let rate = guard.trial(&signals(0.0, 0.0, 0.0)).expect("it has been free").rate;
                let now = Signals { hosts: 10, ..signals(60.0 + f64::from(tick) / 2.0, 0.2, delivered(rate)) };
                assert_eq!(guard.under_control(&now, rate, true, AIM), Exit::No);
            }
            guard.trial(&signals(0.0, 0.0, 0.0)).expect("it has been free").rate / begun
        };
        // 12 ticks, of which two are later than 5 s; and 0.93^12.
        assert!((after(|rate| rate) - 0.98_f64.powi(2)).abs() < 1e-9);
        assert!((after(|rate| rate / 2.0) - 0.93_f64.powi(12)).abs() < 1e-9);
    }

    #[test]
    fn what_is_left_is_measured_by_the_mean_of_what_all_got_newcomers_included() {
        let ends_s = |lately: f64, told_free, terminals| {
            let mut guard = Guard { own_free: 2e6, own_lately: 2e6, lately, ..Guard::default() };
            (1..60).map(f64::from).find(|tick| {
                let now = Signals { told_free, terminals, ..signals(60.0 + tick / 2.0, 0.03, lately) };
                guard.under_control(&now, lately, false, AIM) == Exit::Harm
            })
        };
        // 2 MB/s here, 0.5 and 0.5 of the two others: the mean is 1, and 0.79 of it is harm after 6 s and half a trial, 0.81 is not.
        assert_eq!(ends_s(0.79e6, (1e6, 2.0), 3), Some(13.0));
        assert_eq!(ends_s(0.81e6, (1e6, 2.0), 3), None);
        // A fourth, who has never been free, takes his part.
        assert_eq!(ends_s(0.65e6, (1e6, 2.0), 4), None);
    }

    #[test]
    fn a_host_that_is_alone_waits_the_less_the_less_it_gets() {
        let ends_s = |delivered: f64| {
            let mut guard = Guard { own_free: 1e6, own_lately: 1e6, lately: 1e6, ..Guard::default() };
            (1..60).map(f64::from).map(|tick| tick / 2.0).find(|at_s| {
                guard.under_control(&signals(60.0 + at_s, 0.03, delivered), delivered, false, AIM) == Exit::Harm
            })
        };
        // 0.89 of what it got free is a little too little for 6 s; a fifth counts fourfold, and half a trial (2.2 s) is the least.
        assert_eq!((ends_s(0.91e6), ends_s(0.89e6), ends_s(0.2e6)), (None, Some(6.0), Some(2.5)));
    }

    #[test]
    fn what_a_host_got_on_its_way_up_is_not_what_it_got_while_congested() {
        let free = |queue: f64| {
            let mut guard = Guard::default();
            for tick in 0..20 {
                let at_s = f64::from(tick) / 2.0;
                let now = signals(at_s, if tick == 0 { 0.2 } else { queue }, 1e6);
                guard.look(&now, at_s, AIM);
                guard.without_control(&now, false, AIM);
            }
            assert!(matches!(guard.without_control(&signals(10.0, 0.2, 1e6), false, AIM), Entry::Trial(_)));
            guard.trial(&signals(10.0, 0.2, 1e6)).expect("it has been free").free
        };
        assert_eq!((free(0.005), free(0.2)), (None, Some((1e6, 1.0))));
    }

    #[test]
    fn besieged_a_host_keeps_three_tenths_of_what_was_free_and_less_where_more_have_come() {
        let guard = Guard { own_free: 1e6, free_hosts: 3.0, ..Guard::default() };
        let besieged = |told_free, terminals| {
            let now = Signals { told_free, terminals, ..signals(60.0, 0.3, 1e6) };
            guard.trial(&now).expect("it has been free").besieged
        };
        assert_eq!((besieged((2e6, 2.0), 3), besieged((2e6, 2.0), 6), besieged((2e6, 2.0), 2)), (3e5, 1.5e5, 3e5));
        // The mean of all, where that is less than what this host got; never more than its own part.
        assert_eq!((besieged((5e5, 1.0), 3), besieged((9e9, 2.0), 3)), (2.25e5, 3e5));
    }

    #[test]
    fn after_a_trial_no_peer_can_make_a_host_send_more_than_its_part() {
        let guard = Guard { own_free: 1e6, ..Guard::default() };
        let least = |told_free| {
            let now = Signals { told_free, ..signals(60.0, 0.0, 1e6) };
            guard.trial(&now).expect("it has been free").least
        };
        // 1 MB/s here: three quarters of that alone and whatever one says, of the mean where others got less.
        assert_eq!((least((0.0, 0.0)), least((4e9, 1.0)), least((1e6, 2.0))), (7.5e5, 7.5e5, 5e5));
    }

    #[test]
    fn who_controls_nothing_yet_takes_the_rate_of_the_others_but_no_less_than_half_of_what_it_gets() {
        let joins_at = |rate: f64, delivered| {
            let now = Signals { controlling: 1.0, known: (rate, 1.0), ..signals(60.0, 0.001, delivered) };
            match Guard::default().without_control(&now, false, AIM) {
                Entry::Join(rate, false) => rate,
                _ => panic!("somebody controls, and no queue stands"),
            }
        };
        assert_eq!((joins_at(1.0, 1e6), joins_at(8e5, 1e6), joins_at(2e5, 0.0)), (5e5, 8e5, 2e5));
    }

    #[test]
    fn who_comes_into_a_queue_takes_the_rate_of_the_others_and_who_has_helped_to_fill_it_begins_a_trial() {
        let enters = |is_new: bool, theirs: f64| {
            let now = Signals { controlling: 1.0, known: (theirs, 1.0), ..signals(60.0, 0.2, 1e3) };
            let mut guard = Guard { own_free: 2e5, has_looked: true, ..Guard::default() };
            match guard.without_control(&now, is_new, AIM) {
                Entry::Join(rate, drains) => (rate, drains),
                Entry::Trial(rate) => (rate, true),
                Entry::Wait => panic!("somebody controls"),
            }
        };
        assert_eq!((enters(true, 8e5), enters(false, 8e5)), ((8e5, false), (1.5e5, true)));
        // But no less than a tenth of what it knows to be free.
        assert_eq!(enters(true, 1.0), (2e4, false));
    }

    #[test]
    fn beside_hosts_that_hold_back_nothing_is_learned_of_what_is_free() {
        let mut guard = Guard::default();
        for tick in 0..40 {
            let at_s = f64::from(tick) / 2.0;
            let beside = Signals { controlling: 2.0, released: 9.0, ..signals(at_s, 0.2, 1e6) };
            guard.look(&beside, at_s, AIM);
            guard.without_control(&beside, false, AIM);
        }
        assert_eq!(guard.own_free(), 0.0);
    }

    #[test]
    fn who_waits_in_a_timeout_counts_what_it_gets_as_nothing_and_not_only_what_it_gets_between() {
        let mut guard = Guard::default();
        for tick in 0..60 {
            let at_s = f64::from(tick) / 2.0;
            let delivered = if tick % 4 == 0 { 1e6 } else { 0.0 };
            guard.look(&signals(at_s, 0.2, delivered), at_s, AIM);
        }
        assert!((2e5..3e5).contains(&guard.own_free()), "{}", guard.own_free());
    }

    #[test]
    fn while_it_comes_back_from_a_trial_goodput_is_no_harm_yet() {
        let mut guard = Guard { own_free: 1e6, own_lately: 1e6, lately: 1e5, control_s: 20.0, ..Guard::default() };
        for tick in 0..40 {
            // The mean of 4 s lags behind what there is.
            let two = Signals { hosts: 2, terminals: 2, told_free: (1e6, 1.0), ..signals(60.0, 0.005, 8.5e5) };
            let now = Signals { now: two.now + Span::from_secs_f64(f64::from(tick) / 2.0), ..two };
            assert_eq!(guard.under_control(&now, 1e6, false, AIM), Exit::No);
            assert!(!guard.harmed);
        }
    }

    #[test]
    fn control_that_is_worth_it_stays_and_a_minority_does_not_end_it() {
        let mut guard = Guard::default();
        let (begun_s, _) = trial(&mut guard);
        for tick in 0..400 {
            let at_s = begun_s + f64::from(tick) / 2.0;
            let of_ten =
                Signals { controlling: 9.0, harmed: 6.0, told_free: (9e6, 9.0), ..signals(at_s, 0.01, 0.95e6) };
            assert_eq!(guard.under_control(&of_ten, 1e6, false, AIM), Exit::No, "at {at_s} s");
            assert!(!guard.harmed);
        }
        let at_s = begun_s + 200.0;
        let most = Signals { controlling: 9.0, harmed: 7.0, ..signals(at_s, 0.01, 0.95e6) };
        assert_eq!(guard.under_control(&most, 1e6, false, AIM), Exit::Harm);
    }

    #[test]
    fn a_minority_takes_its_vote_back_soon_after_control_has_become_worth_it() {
        let mut guard = Guard { own_free: 1e6, own_lately: 1e6, lately: 1e6, ..Guard::default() };
        let of_ten = |at_s, mean_delivered| Signals {
            controlling: 9.0,
            terminals: 10,
            hosts: 10,
            told_free: (9e6, 9.0),
            mean_delivered,
            ..signals(at_s, 0.03, 1e6)
        };
        let mut harmed_at = |seconds: std::ops::Range<u32>, mean_delivered| {
            seconds
                .map(f64::from)
                .map(|at_s| {
                    assert_eq!(guard.under_control(&of_ten(at_s, mean_delivered), 1e6, false, AIM), Exit::No);
                    guard.harmed
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(harmed_at(0..600, 5e5).last(), Some(&true));
        // Half a second each: 12 s go down to 6 in twelve ticks.
        assert_eq!(harmed_at(600..620, 9e5).iter().filter(|harmed| **harmed).count(), 11);
    }

    #[test]
    fn a_host_that_starves_gives_up_alone_however_many_say_that_all_is_well() {
        let mut guard = Guard::default();
        let (begun_s, _) = trial(&mut guard);
        let liars = |at_s| Signals {
            controlling: 255.0,
            mean_delivered: 1e6,
            known: (255.0, 255.0),
            ..signals(at_s, 0.0, 5e4)
        };
        let ends_s = (0..200)
            .map(|tick| begun_s + f64::from(tick) / 2.0)
            .find(|at_s| guard.under_control(&liars(*at_s), 1e4, false, AIM) == Exit::Harm);
        let ends_s = ends_s.expect("it gives up");
        assert!(ends_s - begun_s < 40.0, "{}", ends_s - begun_s);
        // And is not talked into it again before its time.
        for tick in 0..59 {
            let entry = guard.without_control(&liars(ends_s + f64::from(tick) / 2.0), false, AIM);
            assert!(matches!(entry, Entry::Wait), "after {} s", f64::from(tick) / 2.0);
        }
    }

    #[test]
    fn where_nothing_waits_to_be_sent_control_ends() {
        let mut guard = Guard::default();
        let (begun_s, _) = trial(&mut guard);
        let idle = |at_s| Signals { backlogged: false, wants: false, ..signals(at_s, 0.0, 1e3) };
        let ends_s = (0..100)
            .map(|tick| begun_s + f64::from(tick) / 2.0)
            .find(|at_s| guard.under_control(&idle(*at_s), 1e6, false, AIM) == Exit::Calm);
        assert_eq!(ends_s, Some(begun_s + 10.0));
    }
}
