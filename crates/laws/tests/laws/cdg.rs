//! CDG in both flavours: probabilities, gradients, the state of the queue, the shadow window, ineffectual back-offs.

use super::GROWS;
use super::properties::any_corner;
use lasthop_laws::cdg::{Gradients, Queue, backoff_probability, exp_minus};
use lasthop_laws::{Acked, Choice, INFINITE_SSTHRESH, Law, LawName, Lost, Parameters, Start, Window};
use proptest::prelude::*;

const MS: u32 = 1000;

/// One round is two ACKs, so that its lowest and its highest RTT can be chosen. 1000 bytes are a segment.
#[derive(Clone, Debug)]
struct Rounds {
    law: Law,
    window: Window,
    snd_una: u32,
    /// What was sent when the round began.
    end: u32,
    reducing: bool,
}

impl Rounds {
    /// In congestion avoidance at `cwnd` segments.
    fn at(name: LawName, cwnd: u32, parameters: &[(&str, f64)]) -> Self {
        Self::seeded(name, cwnd, parameters, 0)
    }

    fn seeded(name: LawName, cwnd: u32, parameters: &[(&str, f64)], seed: u32) -> Self {
        let mut choice = Choice { name, parameters: Parameters::of(name), seed };
        for (parameter, value) in parameters {
            choice.parameters.set(name, parameter, *value).expect("a parameter of the law");
        }
        Self::of(choice, cwnd)
    }

    fn of(choice: Choice, cwnd: u32) -> Self {
        let window = Window { cwnd_segments: cwnd, cwnd_count: 0, ssthresh_segments: cwnd };
        Self { law: Law::new(choice, Start::default()), window, snd_una: 0, end: 0, reducing: false }
    }

    fn in_slow_start(mut self) -> Self {
        self.window.ssthresh_segments = INFINITE_SSTHRESH;
        self
    }

    fn ack(&mut self, segments: u32, rtt_us: u32) {
        self.snd_una = self.snd_una.wrapping_add(segments * 1000);
        let snd_nxt = self.snd_una.wrapping_add(self.window.cwnd_segments.wrapping_mul(1000));
        let (snd_una, flags) = (self.snd_una, GROWS);
        // one segment each for the filter, whatever lies between
        let acked = Acked { acked_segments: 1, rtt_us, snd_una, snd_nxt, flags, ..Acked::default() };
        self.law.on_acked(&acked, &mut self.window);
    }

    /// A round with these RTTs. Whether it ends in a back-off. In Linux the reduction after one is a round of its own.
    fn round(&mut self, min_us: u32, max_us: u32) -> bool {
        let before = self.window.cwnd_segments;
        self.snd_una = self.end;
        self.ack(0, max_us);
        if self.reducing && self.law.name() == LawName::CdgLinux {
            self.end = self.snd_una.wrapping_add(before.wrapping_mul(1000));
            self.reducing = false;
            return false;
        }
        let window = self.window;
        let end = self.end.wrapping_add(1000);
        self.ack(1, min_us);
        self.end = end.wrapping_add(window.cwnd_segments.wrapping_mul(1000));
        self.reducing = self.window.cwnd_segments < before;
        self.reducing
    }

    fn lose(&mut self) -> u32 {
        let lost = Lost { in_flight_segments: self.window.cwnd_segments, snd_una: self.snd_una, ..Lost::default() };
        self.law.on_lost(&lost, &mut self.window);
        self.window.cwnd_segments = self.window.ssthresh_segments;
        self.window.cwnd_segments
    }
}

/// Of 4000 connections, the share that backs off when the delay has risen by `rise_us` once.
fn share_that_backs_off(name: LawName, parameters: &[(&str, f64)], slow_start: bool, rise_us: u32) -> f64 {
    let backs_off = |seed| {
        let mut rounds = Rounds::seeded(name, 100, parameters, seed);
        if slow_start {
            rounds = rounds.in_slow_start();
        }
        assert!(!rounds.round(20 * MS, 20 * MS), "nothing to compare with yet");
        rounds.round(20 * MS + rise_us, 20 * MS + rise_us)
    };
    (0..4000).filter(|seed| backs_off(*seed)).count() as f64 / 4000.0
}

/// Four standard deviations of a share of 4000 are at most this.
const OF_4000: f64 = 0.032;

#[test]
fn the_exponential_is_less_than_five_in_a_billion_off() {
    let error = |x: u32| (exp_minus(x) - (-f64::from(x) / 16_777_216.0).exp()).abs();
    // e^-x is p(low 16 bits) times t(the others), so every p with t = 1 and every t with p = 1 bound all of them: both factors
    // are at most 1, so the errors add at most, and each of the products rounds by less than 2^-31 once more
    let of_series = (0..1 << 16).map(error).fold(0.0, f64::max);
    let of_tables = (0..1 << 13).map(|high| error(high << 16)).fold(0.0, f64::max);
    assert!(of_series + of_tables + 2.0_f64.powi(-31) < 5e-9, "{of_series:e} + {of_tables:e}");
    let of_some = (0..32 << 24).step_by(1009).map(error).fold(0.0, f64::max);
    assert!(of_some < 5e-9, "{of_some:e}");
    assert_eq!(exp_minus(0), 1.0);
    assert_eq!((exp_minus(32 << 24), exp_minus(u32::MAX)), (0.0, 0.0));
    assert!((1..32 << 24).step_by(4093).all(|x| exp_minus(x) <= exp_minus(x - 1)), "it falls");
}

#[test]
fn the_chance_of_a_back_off_is_that_of_the_formula() {
    // 1 - e^-(g / 3)
    for (gradient_ms, probability) in [(1, 0.2835), (3, 0.6321), (15, 0.9933)] {
        let ours = backoff_probability(gradient_ms * 1000, 3000);
        assert!((ours - probability).abs() < 5e-5, "{gradient_ms} ms: {ours}");
    }
    // Linux: a factor of 42 and a window of 8 are G = 1000 / (42 * 8) = 2.976 ms
    for gradient_ms in [1, 3, 15] {
        let expected = 1.0 - (-(gradient_ms as f64) / 2.976).exp();
        let ours = backoff_probability(8 * gradient_ms * 1000 * 42, 1_000_000);
        assert!((ours - expected).abs() < 5e-5, "{gradient_ms} ms: {ours}, not {expected}");
    }
    assert_eq!(backoff_probability(0, 3000), 0.0);
    assert_eq!(backoff_probability(u64::from(u32::MAX), 1), 1.0);
    assert_eq!(backoff_probability(1, 0), 1.0, "nothing is divided by");
}

#[test]
fn rounds_back_off_as_often_as_the_formula_says() {
    // the mean of 8 gradients of which one is 8 ms is 1 ms
    let share = share_that_backs_off(LawName::Cdg, &[], false, 8 * MS);
    assert!((share - 0.2835).abs() < OF_4000, "{share}");
    // in slow start the gradient itself counts
    let share = share_that_backs_off(LawName::Cdg, &[], true, MS);
    assert!((share - 0.2835).abs() < OF_4000, "{share}");
    // above 5 G always: FreeBSD's table ends there
    assert_eq!(share_that_backs_off(LawName::Cdg, &[], true, 16 * MS), 1.0);
    // 2 instead of 3: 1 - e^-0.5
    let share = share_that_backs_off(LawName::Cdg, &[("backoff_scale_ms", 2.0)], true, MS);
    assert!((share - 0.3935).abs() < OF_4000, "{share}");
    // Linux takes the one gradient that it has for all 8: 1 - e^-(1 / 2.976), in slow start too
    for slow_start in [false, true] {
        let share = share_that_backs_off(LawName::CdgLinux, &[], slow_start, MS);
        assert!((share - 0.2854).abs() < OF_4000, "{share}");
    }
    assert_eq!(share_that_backs_off(LawName::CdgLinux, &[("backoff_factor", 0.0)], false, 900 * MS), 0.0);
}

#[test]
fn a_clock_of_whole_milliseconds_sees_no_gradient_within_one() {
    for (tick_ms, backs_off) in [(1.0, false), (0.0, true)] {
        let mut rounds = Rounds::at(LawName::Cdg, 100, &[&ALWAYS[..], &[("rtt_tick_ms", tick_ms)]].concat());
        rounds.round(20_001, 20_001);
        assert_eq!(rounds.round(21_000, 21_000), backs_off);
    }
}

#[test]
fn a_round_without_gradient_leaves_the_sums() {
    let mut gradients = Gradients::over(8);
    assert!(!gradients.look(20, 30), "the first");
    assert!(gradients.look(25, 32));
    assert_eq!(gradients.sums_us(), [5, 2]);
    gradients.skip();
    assert!(!gradients.look(100, 200));
    assert_eq!(gradients.sums_us(), [5, 2]);
    assert!(gradients.look(99, 200));
    assert_eq!(gradients.sums_us(), [4, 2]);
    // seven more: the first gradient, of 5 and 2, leaves with the seventh
    for _ in 0..6 {
        gradients.look(99, 200);
    }
    assert_eq!(gradients.sums_us(), [4, 2]);
    gradients.look(99, 200);
    assert_eq!(gradients.sums_us(), [-1, 0]);
}

#[test]
fn the_state_of_the_queue_follows_the_signs_of_the_gradients() {
    use Queue::{Empty, Falling, Full, Rising, Unknown};
    let cases = [
        ([1, 0], Full),
        ([1, -1], Full),
        ([0, -1], Empty),
        ([1, 1], Rising),
        ([-1, -1], Falling),
        // as it was
        ([0, 0], Unknown),
        ([0, 1], Unknown),
        ([-1, 0], Unknown),
        ([-1, 1], Unknown),
    ];
    for (sums, queue) in cases {
        assert_eq!(Queue::after(sums, Unknown), queue, "{sums:?}");
    }
    assert_eq!(Queue::after([0, 0], Full), Full);
    // Linux: sums rounded to 64 us, and no state for an empty queue
    let cases = [
        ([32, 31], Full),
        ([31, 31], Unknown),
        ([32, 32], Rising),
        ([31, 32], Unknown),
        ([31, -31], Unknown),
        ([31, -32], Falling),
        ([-32, 0], Unknown),
    ];
    for (sums, queue) in cases {
        assert_eq!(Queue::after_in_linux(sums, Unknown), queue, "{sums:?}");
    }
}

/// Rounds of 1 ms more each, with no back-off; in the end the sums are those of a rising queue.
fn rising(name: LawName, parameters: &[(&str, f64)]) -> Rounds {
    let never = if name == LawName::Cdg { ("backoff_scale_ms", 1000.0) } else { ("backoff_factor", 0.0) };
    let mut rounds = Rounds::at(name, 100, &[&[never], parameters].concat());
    for round in 0..10 {
        assert!(!rounds.round((20 + round) * MS, (30 + round) * MS), "one in a thousand, and not with this seed");
    }
    rounds
}

#[test]
fn a_loss_while_the_queue_is_not_full_is_tolerated_if_that_is_wanted() {
    for (name, parameter, default) in [(LawName::Cdg, "loss_tolerance", 1.0), (LawName::CdgLinux, "use_tolerance", 0.0)]
    {
        assert_eq!(Parameters::of(name).get(name, parameter), Some(default));
        let mut tolerant = rising(name, &[(parameter, 1.0)]);
        let before = tolerant.window.cwnd_segments;
        assert_eq!(tolerant.clone().lose(), before, "{name}");
        let mut strict = rising(name, &[(parameter, 0.0)]);
        assert_eq!(strict.lose(), before / 2, "{name}");
        // The highest RTT stays, the lowest rises on: g_max falls to 0 within 8 rounds, and the queue is full.
        for round in 10..19 {
            tolerant.round((20 + round) * MS, 39 * MS);
        }
        let before = tolerant.window.cwnd_segments;
        assert_eq!(tolerant.lose(), before / 2, "{name}");
    }
    // before the first gradient nothing is known, and a loss is heeded
    assert_eq!(Rounds::at(LawName::Cdg, 100, &[]).lose(), 50);
}

/// Each gradient of 1 ms is a back-off.
const ALWAYS: [(&str, f64); 2] = [("smoothing_rounds", 1.0), ("backoff_scale_ms", 0.1)];
const ALWAYS_IN_LINUX: [(&str, f64); 2] = [("window_rounds", 1.0), ("backoff_factor", 100_000.0)];

#[test]
fn the_shadow_window_keeps_what_back_offs_take() {
    let mut rounds = Rounds::at(LawName::Cdg, 100, &[&ALWAYS[..], &[("loss_tolerance", 0.0)]].concat());
    assert!(!rounds.round(20 * MS, 20 * MS)); // grows by 1, the shadow too: 101
    assert!(rounds.round(21 * MS, 21 * MS)); // 0.7 * 101
    assert_eq!(rounds.window.cwnd_segments, 70);
    assert_eq!(rounds.window.ssthresh_segments, 70);
    let tolerated = rounds.clone().lose();
    assert_eq!(tolerated, 70, "within the round trip of a back-off");
    assert!(!rounds.round(22 * MS, 22 * MS)); // no gradient; 71, and a shadow of 102
    assert_eq!(rounds.window.cwnd_segments, 71);
    assert_eq!(rounds.clone().lose(), 51, "102 / 2, not 71 / 2");
    assert!(rounds.round(23 * MS, 23 * MS)); // 0.7 * 71 = 49.7
    assert!(!rounds.round(24 * MS, 25 * MS)); // 50, and a shadow of 103
    assert_eq!(rounds.clone().lose(), 50, "103 / 2 would be more than the window");
    // The queue has emptied, g_min = 0 and g_max < 0: the shadow window goes. The next loss halves.
    assert!(!rounds.round(24 * MS, 24 * MS));
    assert_eq!(rounds.window.cwnd_segments, 51);
    assert_eq!(rounds.lose(), 25);

    let linux = |parameters: &[(&str, f64)]| {
        let mut rounds = Rounds::at(LawName::CdgLinux, 100, &[&ALWAYS_IN_LINUX[..], parameters].concat());
        assert!(!rounds.round(20 * MS, 20 * MS));
        assert!(rounds.round(21 * MS, 21 * MS));
        assert_eq!(rounds.window.cwnd_segments, 70, "0.707 * 100");
        assert_eq!(rounds.clone().lose(), 70, "within the round trip of a back-off");
        assert!(!rounds.round(21 * MS, 21 * MS));
        rounds
    };
    assert_eq!(linux(&[]).lose(), 50, "half the shadow window of 100");
    assert_eq!(linux(&[("use_shadow", 0.0)]).lose(), 35);
    let mut twice = linux(&[]);
    assert!(!twice.round(21 * MS, 21 * MS));
    assert!(twice.round(22 * MS, 22 * MS));
    assert_eq!(twice.window.cwnd_segments, 49, "0.707 * 70");
    twice.round(22 * MS, 22 * MS);
    assert_eq!(twice.lose(), 49, "half of 100 would be more than the window");
    assert_eq!(twice.lose(), 24, "and the shadow window was brought down to it");
}

/// Docs: limits. FreeBSD's shadow window outgrows the window by a segment per round trip, and each loss halves only that.
#[test]
fn after_a_long_time_of_back_offs_the_first_losses_leave_freebsds_window_as_it_is() {
    let losses_until_it_falls = |name, parameters: &[(&str, f64)]| {
        let mut rounds = Rounds::at(name, 50, parameters);
        // saw teeth of 4 ms: the mean of eight rounds rises and falls
        for round in 0..40_000_u32 {
            let rtt_us = 20 * MS + [0, 1, 2, 3, 4, 3, 2, 1][(round / 4 % 8) as usize] * MS;
            rounds.round(rtt_us, rtt_us);
        }
        let window = rounds.window.cwnd_segments;
        assert!(window < 200, "back-offs hold the window: {window}");
        (1..=30).find(|_| rounds.lose() < window).expect("a loss that counts")
    };
    let losses = losses_until_it_falls(LawName::Cdg, &[("loss_tolerance", 0.0)]);
    // half of 40,000 segments, halved until it is less than a window of some 140
    assert!((8..=10).contains(&losses), "{losses}");
    assert!(losses_until_it_falls(LawName::CdgLinux, &[]) <= 2);
}

#[test]
fn the_round_after_a_back_off_has_no_gradient() {
    for (name, always) in [(LawName::Cdg, ALWAYS), (LawName::CdgLinux, ALWAYS_IN_LINUX)] {
        let mut rounds = Rounds::at(name, 100, &always);
        rounds.round(20 * MS, 20 * MS);
        assert!(rounds.round(21 * MS, 21 * MS), "{name}");
        assert!(!rounds.round(500 * MS, 500 * MS), "{name}: it is still the round of the old window");
        assert!(rounds.round(501 * MS, 501 * MS), "{name}: but the next is compared with it");
    }
}

/// Which of the rounds that give a gradient back off, while the delay rises by 1 ms with each.
fn back_offs(rounds: &mut Rounds, delay_ms: &mut u32, verdicts: usize) -> String {
    (0..verdicts)
        .map(|_| {
            *delay_ms += 1;
            let backs_off = rounds.round(*delay_ms * MS, *delay_ms * MS);
            // FreeBSD skips a gradient after a verdict that is left out too
            if backs_off || rounds.law.name() == LawName::Cdg {
                *delay_ms += 1;
                assert!(!rounds.round(*delay_ms * MS, *delay_ms * MS));
            }
            if backs_off { 'b' } else { '.' }
        })
        .collect()
}

#[test]
fn ineffectual_back_offs_stop_and_come_back_after_the_hold() {
    let mut rounds = Rounds::at(LawName::Cdg, 60_000, &ALWAYS);
    let mut delay_ms = 20;
    rounds.round(20 * MS, 20 * MS);
    // the tenth verdict ends the hold of five
    assert_eq!(back_offs(&mut rounds, &mut delay_ms, 22), "bbbbb.....bbbbb.....bb");
    // a falling delay shows that back-offs do help: five more
    delay_ms -= 2;
    rounds.round(delay_ms * MS, delay_ms * MS);
    assert_eq!(back_offs(&mut rounds, &mut delay_ms, 7), "bbbbb..");
    // other numbers
    let mut rounds = Rounds::at(
        LawName::Cdg,
        60_000,
        &[&ALWAYS[..], &[("ineffectual_backoffs", 1.0), ("hold_backoffs", 2.0)]].concat(),
    );
    rounds.round(20 * MS, 20 * MS);
    assert_eq!(back_offs(&mut rounds, &mut 20, 7), "b..b..b");
}

#[test]
fn in_linux_ineffectual_back_offs_stop_until_the_delay_falls() {
    let mut rounds = Rounds::at(LawName::CdgLinux, 60_000, &ALWAYS_IN_LINUX);
    let mut delay_ms = 20;
    rounds.round(20 * MS, 20 * MS);
    assert_eq!(back_offs(&mut rounds, &mut delay_ms, 20), "bbbbb...............");
    rounds.round(delay_ms * MS - 31, delay_ms * MS - 31);
    assert_eq!(back_offs(&mut rounds, &mut delay_ms, 3), "...", "31 us are nothing");
    rounds.round(delay_ms * MS - 32, delay_ms * MS - 32);
    assert_eq!(back_offs(&mut rounds, &mut delay_ms, 7), "bbbbb..");
    let mut rounds = Rounds::at(LawName::CdgLinux, 60_000, &[&ALWAYS_IN_LINUX[..], &[("use_ineff", 0.0)]].concat());
    rounds.round(20 * MS, 20 * MS);
    assert_eq!(back_offs(&mut rounds, &mut 20, 12), "bbbbbbbbbbbb", "0: they are always effectual");
}

#[test]
fn the_step_of_congestion_avoidance_rises_with_alpha_increase() {
    let steps = |alpha_increase: f64| -> Vec<u32> {
        let mut rounds = Rounds::at(LawName::Cdg, 100, &[("alpha_increase", alpha_increase)]);
        let step = |_| {
            let before = rounds.window.cwnd_segments;
            rounds.round(20 * MS, 20 * MS);
            rounds.window.cwnd_segments - before
        };
        (0..7).map(step).collect()
    };
    assert_eq!(steps(0.0), [1; 7]);
    assert_eq!(steps(1.0), [1, 2, 3, 4, 5, 6, 7]);
    // as in FreeBSD's code; its comment has one segment in the first rounds
    assert_eq!(steps(2.0), [0, 1, 1, 2, 2, 3, 3]);
}

#[test]
fn linux_ends_slow_start_at_a_train_of_acks_or_a_risen_delay() {
    // ACKs `gap_us` apart, within one round; the first 8 samples of which are not judged by the delay
    let ends_at = |detect: f64, gap_us: u64, rtt_us: u32| {
        let Rounds { mut law, mut window, .. } =
            Rounds::at(LawName::CdgLinux, 20, &[("hystart_detect", detect)]).in_slow_start();
        let acked = Acked { now_us: 1000, acked_segments: 1, flags: GROWS, ..Acked::default() };
        // the first round: 80 ms
        law.on_acked(&Acked { rtt_us: 80 * MS, snd_una: 1, snd_nxt: 1000, ..acked }, &mut window);
        (1..200).find(|ack| {
            let now_us = 1000 + ack * gap_us;
            law.on_acked(&Acked { now_us, rtt_us, snd_una: 2, snd_nxt: 1000, ..acked }, &mut window);
            window.ssthresh_segments != INFINITE_SSTHRESH
        })
    };
    // the lowest RTT of the round exceeds 80 ms by more than an eighth
    assert_eq!(ends_at(2.0, 3000, 90 * MS), None);
    assert_eq!(ends_at(2.0, 3000, 90 * MS + 1), Some(9));
    // ACKs less than 3 ms apart for longer than 40 ms; the first begins the train
    assert_eq!(ends_at(1.0, 2999, 80 * MS), Some(15)); // 14 gaps of 2.999 ms
    assert_eq!(ends_at(1.0, 3000, 80 * MS), None);
    assert_eq!(ends_at(3.0, 2999, 90 * MS + 1), Some(9));
    assert_eq!(ends_at(0.0, 2999, 900 * MS), None);
}

#[test]
fn a_connection_of_two_to_the_33_packets_overflows_nothing() {
    // 2^15 rounds of 2^18 segments; sequence numbers wrap every 16 rounds. The delay rises for 64 rounds and falls for 64, so
    // that every counter moves. `hard`: those that grow with each round, or each verdict, are not set back for 64 rounds.
    let hard = [("alpha_increase", 1.0), ("beta_delay", 1.0), ("ineffectual_backoffs", 0.0), ("hold_backoffs", 1000.0)];
    let cases = [(LawName::Cdg, &[][..]), (LawName::Cdg, &hard[..]), (LawName::CdgLinux, &[][..])];
    for (name, parameters) in cases {
        const CWND: u32 = 1 << 18;
        let mut rounds = Rounds::at(name, CWND, parameters);
        let mut backed_off = 0;
        for round in 0..1_u32 << 15 {
            let phase = if round / 64 % 2 == 0 { round % 64 } else { 64 - round % 64 };
            // what it lost comes back, so that all the packets are sent
            rounds.window.cwnd_segments = CWND;
            let delay_us = (20 + phase) * MS;
            backed_off += u32::from(rounds.round(delay_us, delay_us));
            let cwnd = rounds.window.cwnd_segments;
            assert!((CWND * 7 / 10..CWND + (1 << 15)).contains(&cwnd), "{name}, round {round}: {cwnd}");
            if round % 1000 == 999 {
                let heeded_or_not = rounds.clone().lose();
                assert!((cwnd / 2..=cwnd).contains(&heeded_or_not), "{name}, round {round}: {heeded_or_not} of {cwnd}");
            }
        }
        assert!((backed_off > 100) == parameters.is_empty(), "{name}: {backed_off}");
    }
}

proptest! {
    #[test]
    fn the_sum_of_gradients_telescopes(
        delays in prop::collection::vec((1..100_000_000_u32, 0..30_000_000_u32), 1..60), rounds in 1..=16_usize,
    ) {
        let mut gradients = Gradients::over(rounds as u32);
        for (n, (min_us, more_us)) in delays.iter().enumerate() {
            prop_assert_eq!(gradients.look(*min_us, min_us + more_us), n > 0);
            // a gradient of before the first round is 0
            let (old_min, old_more) = delays[n.saturating_sub(rounds)];
            let of_max = (min_us + more_us) as i32 - (old_min + old_more) as i32;
            prop_assert_eq!(gradients.sums_us(), [*min_us as i32 - old_min as i32, of_max]);
        }
    }

    /// RTTs of every size: no window falls below 2 by a back-off. properties.rs has other events at the corners.
    #[test]
    fn at_every_corner_of_the_parameters_no_back_off_leaves_less_than_two_segments(
        law in any_corner().prop_filter("CDG", |law| matches!(law.name, LawName::Cdg | LawName::CdgLinux)),
        delays in prop::collection::vec((prop_oneof![1..300_000_u32, any::<u32>()], any::<u32>(), 0..12_u8), 1..80),
        cwnd in prop_oneof![2..12_u32, 2..100_000_u32], slow_start in any::<bool>(),
    ) {
        let mut rounds = Rounds::of(law, cwnd);
        if slow_start {
            rounds = rounds.in_slow_start();
        }
        for (min_us, more_us, what) in delays {
            if what == 0 {
                let before = rounds.window.cwnd_segments;
                prop_assert!((2..=before.max(2)).contains(&rounds.lose()));
            } else if rounds.round(min_us, min_us.saturating_add(more_us)) {
                prop_assert_eq!(rounds.window.ssthresh_segments, rounds.window.cwnd_segments);
            }
            prop_assert!(rounds.window.cwnd_segments >= 2);
        }
    }
}
