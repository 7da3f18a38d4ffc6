//! Whether control is worth it: it is to cost the hosts that have it no more than a fifth of what they get without.
//!
//! Hosts without the agent fill the queue that the agent's hosts have just emptied, so whoever holds back alone starves. Nobody
//! can see from one host who fills a queue, but one can compare:
//!
//! ```text
//!          congested          10 s                    the queue drains at half the rate
//!  Idle ─────────────> Free ────────> Control(trial) ─────────────────────────────────> Control
//!   ^                   ^                 │ does not drain, for most of the hosts          │ less than free, for most of them
//!   │                   └─────────────────┴──────────────── hold doubles, 30 to 240 s ──────┤
//!   └──────────────────────────────── the medium is not full, for 10 s ────────────────────┘
//! ```
//!
//! What was delivered while free is remembered, and forgotten slowly (300 s). Hosts decide together, two thirds of them, by the
//! flags of their beacons: control that some have and others not is the worst of both. Only a host that gets less than a tenth
//! of what it got while free gives up alone, for those who say that all is well may be lying.

use super::signals::Signals;
use units::{Span, Time};

/// The first look at what is delivered without control takes so long, in s.
const FIRST_LOOK_S: f64 = 10.0;
/// After control has been released, and after congestion has begun, goodput is not typical for so long, in s.
const AFTER_RELEASE_S: f64 = 8.0;
const AFTER_BEGIN_S: f64 = 2.0;
/// A released host follows another one's trial after so long, in s.
const FOLLOW_S: f64 = 10.0;
/// A released host goes back to control after so long, in s, if most others have stayed.
const REJOIN_S: f64 = 6.0;
/// Goodput is smoothed over this, in s.
const SMOOTHING_S: f64 = 4.0;
/// What was delivered while free is forgotten in this, in s.
const MEMORY_S: f64 = 300.0;
/// A trial takes so long, in s, and so much more for each terminal, and so many RTTs.
const TRIAL_S: f64 = 9.0;
const TRIAL_PER_TERMINAL_S: f64 = 0.3;
const TRIAL_RTTS: f64 = 3.0;
/// However many there are, and however long the RTTs are, a trial is no longer than with these.
const MOST_TERMINALS: u32 = 64;
const LONGEST_RTT_S: f64 = 10.0;
/// Once its queue has gone, the rate has so long to come up, in s, before goodput is judged.
const RECOVERY_S: f64 = 15.0;
/// The part of the free goodput that a trial begins with.
const TRIAL_PART: f64 = 0.5;
/// Below this part of the free goodput control does harm, if a queue stands most of the time; else below the second.
const HARMFUL: (f64, f64) = (0.8, 0.75);
/// Below this part of what this very host got while free it gives up alone, whatever the others say: they may lie.
const STARVED: f64 = 0.1;
/// A queue "stands" when it was above twice the aim for this part of the last 8 s.
const STANDING: (f64, f64) = (0.2, 8.0);
/// Control is given up for so long, in s, twice as long each time it is in vain, up to the second.
const HOLD_S: (f64, f64) = (30.0, 240.0);
/// Where less than this part of the common rate is used, nothing waits to be sent and no queue stands, for so long, in s, nothing
/// needs control.
const UNUSED: (f64, f64) = (0.6, 10.0);

/// What is remembered of the comparison. Rates in bytes of payload per second, the mean of the hosts.
#[derive(Clone, Debug)]
pub(super) struct Guard {
    free_since: Option<Time>,
    free_until: Time,
    /// Goodput does not count before this age of a free phase, in s.
    skip_s: f64,
    /// Goodput without control; 0: never seen.
    free: f64,
    /// Goodput now.
    lately: f64,
    /// The same two of this host alone: what no peer can lie about.
    own_free: f64,
    own_lately: f64,
    starved_s: f64,
    /// The most busy hosts since control began.
    terminals: u32,
    /// When control began or ended.
    changed_at: Time,
    /// Peers' control is not joined before this.
    alone_until: Time,
    /// Part of the time in which a queue stood.
    standing: f64,
    control_s: f64,
    trial_s: f64,
    /// Since the trial's queue has gone.
    steady_s: f64,
    hold_s: f64,
    unused_s: f64,
    /// Control does harm, as far as this host can see.
    pub(super) harmed: bool,
}

/// What to do without control.
pub(super) enum Entry {
    /// Nothing.
    Wait,
    /// Begin with a trial at this rate.
    Trial(f64),
    /// Take the others' rate; with `true` a queue stands.
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
            free: 0.0,
            lately: 0.0,
            own_free: 0.0,
            own_lately: 0.0,
            starved_s: 0.0,
            terminals: 1,
            changed_at: Time::ZERO,
            alone_until: Time::ZERO,
            standing: 0.0,
            control_s: 0.0,
            trial_s: 0.0,
            steady_s: 0.0,
            hold_s: HOLD_S.0,
            unused_s: 0.0,
            harmed: false,
        }
    }
}

impl Guard {
    /// Without control on purpose, to see what is delivered then or because control did harm.
    pub(super) fn is_free(&self, now: Time) -> bool {
        now < self.free_until
    }

    /// When control began or ended: what was said before is of another time.
    pub(super) fn since(&self) -> Time {
        self.changed_at
    }

    /// One tick without control; `target` is the queue aimed at, in s.
    pub(super) fn without_control(&mut self, signals: &Signals, target: f64) -> Entry {
        let Signals { now, elapsed, excess, mean_delivered, .. } = *signals;
        let free_s = self.free_since.map_or(f64::INFINITY, |since| now.saturating_since(since).as_secs_f64());
        let is_free = self.is_free(now);
        if is_free && free_s > self.skip_s {
            let weight = if self.free == 0.0 { 1.0 } else { (elapsed / SMOOTHING_S).min(1.0) };
            self.free += (mean_delivered - self.free) * weight;
            self.own_free += (signals.delivered - self.own_free) * weight;
        }
        if now < self.alone_until {
            return Entry::Wait;
        }
        let (sum, count) = signals.known;
        let first_look = self.skip_s <= AFTER_BEGIN_S;
        let most_control = free_s > REJOIN_S && signals.controlling > 2.0 * (1.0 + signals.released);
        if count > 0.0 && (!is_free || first_look || free_s > FOLLOW_S || most_control) {
            self.begin(signals, sum / count);
            return Entry::Join(sum / count, excess > target);
        }
        if is_free || excess <= target {
            return Entry::Wait;
        }
        if self.free == 0.0 {
            self.release_for(FIRST_LOOK_S, AFTER_BEGIN_S, now);
            return Entry::Wait;
        }
        let rate = (TRIAL_PART * self.free).max(signals.segment);
        self.begin(signals, rate);
        Entry::Trial(rate)
    }

    fn begin(&mut self, signals: &Signals, rate: f64) {
        let rtt = (signals.base + signals.excess).min(LONGEST_RTT_S);
        let terminals = signals.terminals.min(MOST_TERMINALS);
        (self.changed_at, self.terminals) = (signals.now, signals.terminals);
        self.trial_s = TRIAL_S + TRIAL_PER_TERMINAL_S * f64::from(terminals) + TRIAL_RTTS * rtt;
        (self.control_s, self.standing, self.unused_s, self.lately) = (0.0, 0.0, 0.0, rate);
        (self.own_lately, self.starved_s, self.steady_s) = (self.own_free, 0.0, 0.0);
        (self.free_until, self.harmed) = (Time::ZERO, false);
    }

    /// One tick under control, with the common rate, whether the trial's queue still drains, and the queue aimed at in s.
    pub(super) fn under_control(&mut self, signals: &Signals, rate: f64, draining: bool, target: f64) -> Exit {
        let Signals { now, elapsed, excess, mean_delivered, .. } = *signals;
        if !signals.wants {
            return self.unused(elapsed);
        }
        // Whoever comes takes a part of what was free. He may have been there all the time: that makes the comparison more patient.
        if signals.terminals > self.terminals {
            let scale = f64::from(self.terminals.max(1)) / f64::from(signals.terminals);
            for goodput in [&mut self.free, &mut self.lately, &mut self.own_free, &mut self.own_lately] {
                *goodput *= scale;
            }
        }
        self.terminals = self.terminals.max(signals.terminals);
        let stands = f64::from(u8::from(excess > 2.0 * target));
        self.control_s += elapsed;
        self.lately += (mean_delivered - self.lately) * (elapsed / SMOOTHING_S).min(1.0);
        self.free += (self.lately - self.free) * (elapsed / MEMORY_S).min(1.0);
        self.own_lately += (signals.delivered - self.own_lately) * (elapsed / SMOOTHING_S).min(1.0);
        let starved = signals.backlogged && self.own_lately < STARVED * self.own_free;
        self.starved_s = if starved { self.starved_s + elapsed } else { 0.0 };
        self.standing += (stands - self.standing) * (elapsed / STANDING.1).min(1.0);
        self.steady_s = if draining { 0.0 } else { self.steady_s + elapsed };
        let settled = self.steady_s > RECOVERY_S;
        let harmful = if self.standing > STANDING.0 { HARMFUL.0 } else { HARMFUL.1 };
        self.harmed =
            if draining { self.control_s > self.trial_s } else { settled && self.lately < harmful * self.free };
        // This host and those heard since it began; whoever has given up found it harmful.
        let votes = f64::from(u8::from(self.harmed)) + signals.harmed + signals.released;
        let voters = 1.0 + signals.controlling + signals.released;
        let most = self.control_s > self.trial_s / 2.0 && 3.0 * votes > 2.0 * voters;
        let alone = self.starved_s > self.trial_s;
        if most || alone {
            if alone {
                self.alone_until = now.saturating_add(Span::from_secs_f64(self.hold_s));
            }
            self.release_for(self.hold_s, AFTER_RELEASE_S, now);
            self.hold_s = (2.0 * self.hold_s).min(HOLD_S.1);
            return Exit::Harm;
        }
        if settled && self.standing < 0.5 && self.lately > self.free && self.own_lately > self.own_free / 2.0 {
            self.hold_s = HOLD_S.0;
        }
        if excess < target && mean_delivered < UNUSED.0 * rate && !signals.backlogged && !draining {
            return self.unused(elapsed);
        }
        self.unused_s = 0.0;
        Exit::No
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
        self.free_until = now.saturating_add(Span::from_secs_f64(for_s));
    }
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
            .find_map(|at_s| match guard.without_control(&signals(at_s, 0.2, 1e6), AIM) {
                Entry::Trial(rate) => Some((at_s, rate)),
                Entry::Join(..) => panic!("nobody else is there"),
                Entry::Wait => None,
            })
            .expect("a trial begins")
    }

    #[test]
    fn a_trial_begins_after_a_first_look_with_half_of_what_was_seen() {
        let (at_s, rate) = trial(&mut Guard::default());
        assert_eq!((at_s, rate), (10.0, 5e5));
        let calm = Guard::default().without_control(&signals(100.0, 0.005, 1e6), AIM);
        assert!(matches!(calm, Entry::Wait));
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
            while matches!(guard.without_control(&signals(at_s, 0.2, 1e6), AIM), Entry::Wait) {
                at_s += 0.5;
            }
            assert_eq!(at_s - free_s, hold_s);
        }
    }

    #[test]
    fn control_that_is_worth_it_stays_and_a_minority_does_not_end_it() {
        let mut guard = Guard::default();
        let (begun_s, _) = trial(&mut guard);
        for tick in 0..400 {
            let at_s = begun_s + f64::from(tick) / 2.0;
            let of_ten = Signals { controlling: 9.0, harmed: 6.0, ..signals(at_s, 0.01, 0.95e6) };
            assert_eq!(guard.under_control(&of_ten, 1e6, false, AIM), Exit::No, "at {at_s} s");
            assert!(!guard.harmed);
        }
        let at_s = begun_s + 200.0;
        let most = Signals { controlling: 9.0, harmed: 7.0, ..signals(at_s, 0.01, 0.95e6) };
        assert_eq!(guard.under_control(&most, 1e6, false, AIM), Exit::Harm);
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
            let entry = guard.without_control(&liars(ends_s + f64::from(tick) / 2.0), AIM);
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
