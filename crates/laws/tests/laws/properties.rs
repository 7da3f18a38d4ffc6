//! What holds for every law, whatever happens to the connection.

use lasthop_laws::bound::{Bound, LawWindow, LeasedBound};
use lasthop_laws::{
    Acked, Choice, INFINITE_SSTHRESH, Law, LawName, Lost, Parameters, Sample, Sent, SlowStart, Start, Steering, Undone,
    Window,
};
use lasthop_units::{Span, Time};
use proptest::prelude::*;

/// What happens to a connection, `after_us` after what happened before.
#[derive(Clone, Copy, Debug)]
struct Step {
    after_us: u64,
    what: What,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Acked { segments: u32, rtt_us: u32, flags: u32 },
    Lost,
    TimedOut,
    Undone,
    Idle,
}

/// A law under a bound, as the stack keeps them: where the bound holds the window back the law is told, and every window
/// goes through the bound.
#[derive(Clone, Debug)]
struct Connection {
    law: Law,
    bound: Option<LeasedBound>,
    window: Window,
    before: Window,
    now_us: u64,
    snd_una: u32,
    delivered: u32,
    pace: u64,
}

const INITIAL: Window = Window { cwnd_segments: 10, cwnd_count: 0, ssthresh_segments: INFINITE_SSTHRESH };

impl Connection {
    fn new(law: impl Into<Choice>, slow_start: SlowStart, bound: Option<LeasedBound>) -> Self {
        let law = Law::new(law, Start { slow_start, ..Start::default() });
        Self { law, bound, window: INITIAL, before: INITIAL, now_us: 0, snd_una: 0, delivered: 0, pace: 0 }
    }

    fn step(&mut self, step: Step) {
        self.now_us += step.after_us;
        let now_us = self.now_us;
        let now = Time::from_nanos(now_us * 1000);
        let cwnd = self.window.cwnd_segments;
        let snd_nxt = self.snd_una.wrapping_add(cwnd.wrapping_mul(1000));
        let lost = Lost { now_us, in_flight_segments: cwnd, snd_una: self.snd_una, snd_nxt, ..Lost::default() };
        match step.what {
            What::Acked { segments, rtt_us, flags } => {
                let segments = segments.min(cwnd);
                self.snd_una = self.snd_una.wrapping_add(segments * 1000);
                let held = self.bound.is_some_and(|bound| bound.holds_back(now, cwnd));
                let acked = Acked {
                    now_us,
                    acked_segments: segments,
                    in_flight_segments: cwnd - segments,
                    rtt_us,
                    srtt_us: rtt_us,
                    min_rtt_us: rtt_us,
                    snd_una: self.snd_una,
                    snd_nxt,
                    flags: flags | if held { Acked::HELD } else { 0 },
                    ..Acked::default()
                };
                if self.law.steers() {
                    self.steer(segments, rtt_us, flags);
                } else {
                    self.law.on_acked(&acked, &mut self.window);
                }
            }
            What::Lost | What::TimedOut if self.law.steers() => {
                let mut ignored = self.window;
                if matches!(step.what, What::Lost) {
                    self.law.on_lost(&lost, &mut ignored);
                } else {
                    self.law.on_timed_out(&lost, &mut ignored);
                    self.window.cwnd_segments = 1;
                }
            }
            What::Lost => {
                self.before = self.window;
                self.law.on_lost(&lost, &mut self.window);
                self.window.cwnd_segments = self.window.ssthresh_segments;
                self.window.cwnd_count = 0;
            }
            What::TimedOut => {
                self.before = self.window;
                self.law.on_timed_out(&lost, &mut self.window);
                self.window.cwnd_segments = 1;
                self.window.cwnd_count = 0;
            }
            What::Undone => {
                self.window.cwnd_segments = cwnd.max(self.before.cwnd_segments);
                self.window.ssthresh_segments = self.window.ssthresh_segments.max(self.before.ssthresh_segments);
                self.law.on_undone(&Undone { now_us }, &mut self.window);
            }
            What::Idle => {
                let sent = Sent { now_us, idle_us: step.after_us, in_flight_before_segments: 0, snd_nxt };
                self.law.on_sent(&sent);
            }
        }
        if let Some(bound) = self.bound {
            let wanted = LawWindow { cwnd_segments: self.window.cwnd_segments, ..LawWindow::default() };
            self.window.cwnd_segments = bound.window(now, wanted);
        }
    }
}

impl Connection {
    /// An ACK for a law that sets its window and pace; `flags` decide what else it says.
    fn steer(&mut self, segments: u32, rtt_us: u32, flags: u32) {
        let (now_us, cwnd) = (self.now_us, self.window.cwnd_segments);
        self.delivered = self.delivered.wrapping_add(segments);
        let sample = Sample {
            now_us,
            delivered_us: now_us,
            departs_us: now_us + u64::from(flags & 7) * 1000,
            interval_us: if flags & 8 == 0 { rtt_us } else { 0 },
            sampled_segments: segments,
            prior_delivered_segments: self.delivered.wrapping_sub(cwnd),
            prior_in_flight_segments: cwnd,
            acked_segments: segments,
            lost_segments: flags & 3,
            in_flight_segments: cwnd - segments,
            all_delivered_segments: self.delivered,
            all_lost_segments: self.delivered / 7,
            rtt_us,
            srtt_us: rtt_us,
            min_rtt_us: rtt_us,
            segment_bytes: 1000,
            state: flags % 5,
            app_limited: flags >> 4 & 1,
            ..Sample::default()
        };
        let mut steering = Steering {
            pace: self.pace,
            cwnd_segments: cwnd,
            ssthresh_segments: self.window.ssthresh_segments,
            ..Steering::default()
        };
        self.law.on_sampled(&sample, &mut steering);
        if flags & 64 != 0 {
            self.law.on_resumed(&sample, &mut steering);
        }
        self.window.cwnd_segments = steering.cwnd_segments;
        self.window.ssthresh_segments = steering.ssthresh_segments;
        self.pace = steering.pace;
    }
}

/// The laws that steer, or those that do not.
fn laws_that(steer: bool) -> impl Strategy<Value = LawName> {
    prop::sample::select(LawName::ALL.into_iter().filter(|law| law.steers() == steer).collect::<Vec<_>>())
}

/// Of the first form: the stack reduces.
fn any_law() -> impl Strategy<Value = (LawName, SlowStart)> {
    (laws_that(false), prop::sample::select(&SlowStart::ALL))
}

/// The same without those whose ACKs set a window of their own.
fn any_growing_law() -> impl Strategy<Value = (LawName, SlowStart)> {
    any_law().prop_filter("it computes its window", |(name, _)| !super::ESTIMATING.contains(name))
}

/// Any law of the first form with each parameter at its lowest, its highest or its default.
pub(super) fn any_corner() -> impl Strategy<Value = Choice> {
    let corners = prop::collection::vec(0..3_usize, Parameters::MAX);
    (laws_that(false), corners, any::<u32>()).prop_map(|(name, corners, seed)| {
        let mut parameters = Parameters::of(name);
        for (parameter, corner) in name.parameters().iter().zip(corners) {
            let value = [parameter.from, parameter.to, parameter.default][corner];
            parameters.set(name, parameter.name, value).expect("the ends are accepted");
        }
        Choice { name, parameters, seed }
    })
}

fn any_flags() -> impl Strategy<Value = u32> {
    prop_oneof![5 => Just(super::GROWS), 1 => Just(super::GROWS | Acked::PACED), 1 => 0..128_u32]
}

fn any_step() -> impl Strategy<Value = Step> {
    let after_us = prop_oneof![20 => 0..200_000_u64, 1 => 0..600_000_000_u64];
    let segments = prop_oneof![1..4_u32, 0..10_000_u32];
    let rtt_us = prop_oneof![Just(0), 100..1_000_000_u32];
    let acked =
        (segments, rtt_us, any_flags()).prop_map(|(segments, rtt_us, flags)| What::Acked { segments, rtt_us, flags });
    let what = prop_oneof![
        40 => acked,
        2 => Just(What::Lost),
        1 => Just(What::TimedOut),
        1 => Just(What::Undone),
        2 => Just(What::Idle),
    ];
    (after_us, what).prop_map(|(after_us, what)| Step { after_us, what })
}

fn any_steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(any_step(), 1..400)
}

/// No limit at all, in each of the ways to say so.
fn any_open_bound() -> impl Strategy<Value = LeasedBound> {
    let lapsed = (0..100_u32, 1..100_u32).prop_map(|(min_segments, max_segments)| {
        Bound { min_segments, max_segments, ..Bound::default() }.leased(Time::ZERO, Span::ZERO)
    });
    prop_oneof![Just(Bound::default().leased(Time::ZERO, Span::from_secs(1_000_000))), lapsed]
}

proptest! {
    #[test]
    fn an_ack_grows_the_window_by_what_it_acknowledges_at_most_and_lowers_it_only_in_a_back_off(
        (name, slow_start) in any_growing_law(), steps in any_steps(),
    ) {
        let mut connection = Connection::new(name, slow_start, None);
        for step in steps {
            let before = connection.window;
            connection.step(step);
            let after = connection.window;
            prop_assert!(after.cwnd_segments >= 1);
            if let What::Acked { segments, flags, .. } = step.what {
                let ssthresh_moved = after.ssthresh_segments != before.ssthresh_segments;
                let lowered = after.cwnd_segments < before.cwnd_segments;
                let ended_slow_start = ssthresh_moved && after.ssthresh_segments == before.cwnd_segments && !lowered;
                if !super::LOSS_BASED.contains(&name) && (ssthresh_moved || lowered) && !ended_slow_start {
                    // a back-off
                    prop_assert!(after.cwnd_segments <= before.cwnd_segments);
                    prop_assert_eq!(after.ssthresh_segments, after.cwnd_segments.max(2));
                    prop_assert!(flags & Acked::IN_REDUCTION == 0);
                    continue;
                }
                let grown = after.cwnd_segments.checked_sub(before.cwnd_segments);
                // one more: what was saved up before
                let most = segments.min(before.cwnd_segments) + 1;
                prop_assert!(grown.is_some_and(|grown| grown <= most), "{step:?}: {before:?} {after:?}");
                if flags & (Acked::MAY_GROW | Acked::CWND_LIMITED) != (Acked::MAY_GROW | Acked::CWND_LIMITED) {
                    prop_assert_eq!(grown, Some(0));
                }
                // ssthresh is only ever brought down to the window, to end slow start
                if ssthresh_moved {
                    prop_assert_eq!(after.ssthresh_segments, before.cwnd_segments);
                    prop_assert!(slow_start != SlowStart::Standard || !super::LOSS_BASED.contains(&name));
                }
            }
        }
    }

    #[test]
    fn a_reduction_never_grows_anything_and_leaves_the_window_to_the_stack(
        (name, slow_start) in any_growing_law(), steps in any_steps(), flight in any::<u32>(), timeout in any::<bool>(),
    ) {
        let mut connection = Connection::new(name, slow_start, None);
        // the largest shadow window: one that nothing ever reduced
        let mut shadow = INITIAL.cwnd_segments;
        for step in steps {
            connection.step(step);
            if let What::Acked { segments, .. } = step.what {
                shadow += segments + 1;
            }
            let before = connection.window;
            let (mut law, mut after) = (connection.law.clone(), before);
            let lost = Lost { now_us: connection.now_us, in_flight_segments: flight, ..Lost::default() };
            if timeout { law.on_timed_out(&lost, &mut after) } else { law.on_lost(&lost, &mut after) }
            prop_assert_eq!((after.cwnd_segments, after.cwnd_count), (before.cwnd_segments, before.cwnd_count));
            prop_assert!(after.ssthresh_segments >= 2);
            let most = if super::SHADOWED.contains(&name) { before.cwnd_segments.max(shadow / 2 + 1) } else { before.cwnd_segments };
            prop_assert!(after.ssthresh_segments <= most.max(2));
        }
    }

    /// ECN, or a full queue of the host: no law takes that for a radio error.
    #[test]
    fn a_notice_halves_whatever_the_law_would_tolerate(
        law in any_corner(), steps in any_steps(), flight in any::<u32>(),
    ) {
        let mut connection = Connection::new(law, SlowStart::Standard, None);
        for step in steps {
            connection.step(step);
            let before = connection.window;
            let (mut asked, mut after, mut as_for_a_loss) = (connection.law.clone(), before, before);
            let notice = Lost { now_us: connection.now_us, in_flight_segments: flight, ..Lost::default() };
            asked.on_notified(&notice, &mut after);
            connection.law.clone().on_lost(&notice, &mut as_for_a_loss);
            let expected = match law.name {
                // By the share of marks, which it takes for one at first; at most by half.
                LawName::Dctcp => {
                    let half = before.cwnd_segments - before.cwnd_segments / 2;
                    prop_assert!(after.ssthresh_segments >= half && after.ssthresh_segments <= before.cwnd_segments.max(2));
                    continue;
                }
                LawName::Cubic | LawName::CubicRfc9438 | LawName::Lastlink => as_for_a_loss.ssthresh_segments,
                _ => (flight.min(before.cwnd_segments) / 2).max(2),
            };
            prop_assert_eq!(after, Window { ssthresh_segments: expected, ..before });
        }
    }

    #[test]
    fn a_law_that_steers_keeps_a_window_and_leaves_the_bound_alone(
        name in laws_that(true), max_segments in 1..2000_u32, steps in any_steps(),
    ) {
        let bound = Bound::at_most(max_segments).leased(Time::ZERO, Span::from_secs(1_000_000));
        let mut connection = Connection::new(name, SlowStart::Standard, Some(bound));
        for step in steps {
            connection.step(step);
            prop_assert!((1..=max_segments.max(INITIAL.cwnd_segments)).contains(&connection.window.cwnd_segments));
            prop_assert!(connection.window.ssthresh_segments >= 2);
            // 10,000 segments of 1000 bytes in 100 us, the most of a step, at the highest gain
            prop_assert!(connection.pace <= 3 * 100_000_000_000);
        }
    }

    #[test]
    fn slow_start_grows_by_exactly_what_is_acknowledged_in_rfc_5681(
        (name, _) in any_growing_law(), acks in prop::collection::vec(1..20_u32, 1..100),
    ) {
        let mut connection = Connection::new(name, SlowStart::Standard, None);
        for segments in acks {
            let before = connection.window.cwnd_segments;
            connection.step(Step { after_us: 1000, what: What::Acked { segments, rtt_us: 0, flags: super::GROWS } });
            prop_assert_eq!(connection.window.cwnd_segments, before + segments.min(before));
        }
    }

    #[test]
    fn with_no_bound_the_bounded_laws_trace_is_the_bare_laws(
        (name, slow_start) in any_law(), bound in any_open_bound(), steps in any_steps(),
    ) {
        let mut bare = Connection::new(name, slow_start, None);
        let mut bounded = Connection::new(name, slow_start, Some(bound));
        for step in steps {
            bare.step(step);
            bounded.step(step);
            prop_assert_eq!(bare.window, bounded.window);
        }
        prop_assert_eq!(bare.law, bounded.law);
    }

    #[test]
    fn under_a_bound_the_window_stays_within_and_the_law_never_notices_a_bound_it_does_not_reach(
        (name, slow_start) in any_law(), max_segments in 1..2000_u32, steps in any_steps(),
    ) {
        let bound = Bound::at_most(max_segments).leased(Time::ZERO, Span::from_secs(1_000_000));
        let mut bare = Connection::new(name, slow_start, None);
        let mut bounded = Connection::new(name, slow_start, Some(bound));
        let mut reached = INITIAL.cwnd_segments >= max_segments;
        for step in steps {
            bare.step(step);
            bounded.step(step);
            prop_assert!(bounded.window.cwnd_segments <= max_segments.max(INITIAL.cwnd_segments));
            reached |= bare.window.cwnd_segments >= max_segments;
            if !reached {
                prop_assert_eq!(bare.window, bounded.window);
            }
        }
    }

    /// A division by zero would end the process.
    #[test]
    fn at_every_corner_of_its_parameters_a_law_keeps_a_window_of_two(law in any_corner(), steps in any_steps()) {
        let mut connection = Connection::new(law, SlowStart::Standard, None);
        for step in steps {
            let before = connection.window;
            connection.step(step);
            let after = connection.window;
            match step.what {
                What::Acked { segments, .. } => {
                    prop_assert!(after.cwnd_segments >= before.cwnd_segments.min(2));
                    let computes = super::ESTIMATING.contains(&law.name);
                    prop_assert!(computes || after.cwnd_segments <= before.cwnd_segments + segments + 1);
                }
                What::TimedOut => prop_assert_eq!(after.cwnd_segments, 1),
                _ => prop_assert!(after.cwnd_segments >= before.cwnd_segments.min(2)),
            }
            prop_assert!(after.ssthresh_segments >= 2);
        }
    }

    /// As `lasthop laws set` does, at any time.
    #[test]
    fn new_parameters_in_the_midst_of_a_connection_leave_a_window_of_two(
        law in any_corner(), changes in prop::collection::vec((any_corner(), any_steps()), 1..4),
    ) {
        let mut connection = Connection::new(law, SlowStart::Standard, None);
        for (change, steps) in changes {
            if change.name == law.name {
                connection.law.set_parameters(change.parameters);
            }
            for step in steps {
                let before = connection.window.cwnd_segments;
                connection.step(step);
                prop_assert!(connection.window.ssthresh_segments >= 2);
                if !matches!(step.what, What::TimedOut) {
                    prop_assert!(connection.window.cwnd_segments >= before.min(2));
                }
            }
        }
    }

    #[test]
    fn the_same_events_give_the_same_law_twice((name, slow_start) in any_law(), steps in any_steps()) {
        let mut once = Connection::new(name, slow_start, None);
        let mut twice = once.clone();
        steps.iter().for_each(|step| once.step(*step));
        steps.iter().for_each(|step| twice.step(*step));
        prop_assert_eq!((once.law, once.window), (twice.law, twice.window));
    }

    /// Numbers that no stack has: nothing wraps to a window of nothing, no loss grows one.
    #[test]
    fn at_the_extremes_of_every_number_the_window_neither_vanishes_nor_grows_by_a_loss(
        (name, slow_start) in any_law(),
        events in prop::collection::vec((0..5_u8, any::<[u32; 8]>(), any::<u64>(), any::<bool>()), 1..60),
        extremes in any::<bool>(),
    ) {
        let mut law = Law::new(name, Start { slow_start, ..Start::default() });
        let mut window = INITIAL;
        for (what, numbers, now_us, huge) in events {
            let n = |at: usize| match (extremes, numbers[at] % 4) {
                (false, _) => numbers[at],
                (true, 0) => u32::MAX,
                (true, 1) => 0,
                (true, 2) => 1,
                (true, _) => INFINITE_SSTHRESH,
            };
            if huge {
                window = Window { cwnd_segments: n(6).max(1), cwnd_count: n(7), ssthresh_segments: n(5).max(2) };
            }
            let before = window;
            match what {
                0 | 1 => {
                    let acked = Acked {
                        now_us, acked_segments: n(0), in_flight_segments: n(1), rtt_us: n(2), srtt_us: n(3),
                        min_rtt_us: n(4), snd_una: n(5), snd_nxt: n(6), tsval: n(7), tsecr: n(0),
                        flags: super::GROWS | n(1) & Acked::PACED, marked_segments: n(2), reserved: 0,
                    };
                    law.on_acked(&acked, &mut window);
                    let backed_off = !super::LOSS_BASED.contains(&name) && window.cwnd_segments >= 2;
                    // LH_MAX_WINDOW
                    prop_assert!(window.cwnd_segments >= before.cwnd_segments.min(1 << 24) || backed_off);
                }
                2 | 3 => {
                    let lost = Lost {
                        now_us, in_flight_segments: n(0), srtt_us: n(1), min_rtt_us: n(2), snd_una: n(3),
                        snd_nxt: n(4), flags: n(5), segments_sent: n(6), retransmits: n(7), lost_segments: n(0),
                        reserved: 0,
                    };
                    if what == 2 { law.on_lost(&lost, &mut window) } else { law.on_timed_out(&lost, &mut window) }
                    prop_assert_eq!(window.cwnd_segments, before.cwnd_segments);
                    prop_assert!(window.ssthresh_segments >= 2);
                    let shadowed = what == 2 && super::SHADOWED.contains(&name);
                    let computed = what == 3 && super::ESTIMATING.contains(&name);
                    prop_assert!(window.ssthresh_segments <= before.cwnd_segments.max(2) || shadowed || computed);
                }
                _ => {
                    law.on_sent(&Sent { now_us, idle_us: now_us / 2, in_flight_before_segments: 0, snd_nxt: n(0) });
                    law.on_undone(&Undone { now_us }, &mut window);
                    prop_assert_eq!(window, before);
                }
            }
            prop_assert!(window.cwnd_segments >= 1);
        }
    }
}
