//! UCC: which losses halve the window. Most delays here are in ticks of 1 ms, the clocks' own.

use super::GROWS;
use lasthop_laws::{Acked, Choice, INFINITE_SSTHRESH, Law, LawName, Lost, Parameters, Start, Window};
use lasthop_units::Span;
use proptest::prelude::*;

/// A connection that is told of one-way delays; where nothing else is said, what is not the lowest is above it.
#[derive(Clone)]
struct Connection {
    law: Law,
    window: Window,
    now_us: u64,
    tick_us: u64,
    snd_una: u32,
    /// What their clock shows more than ours.
    offset: u32,
}

fn told(changes: &[(&str, f64)]) -> Parameters {
    let mut parameters = Parameters::of(LawName::Ucc);
    parameters.set(LawName::Ucc, "tolerance_ms", 0.0).expect("a parameter of UCC");
    for (name, value) in changes {
        parameters.set(LawName::Ucc, name, *value).expect("a parameter of UCC");
    }
    parameters
}

impl Connection {
    fn new(changes: &[(&str, f64)]) -> Self {
        Self::with_tick(changes, 1000)
    }

    fn with_tick(changes: &[(&str, f64)], tick_us: u64) -> Self {
        let choice = Choice { parameters: told(changes), ..Choice::from(LawName::Ucc) };
        let start = Start { timestamp_tick: Span::from_micros(tick_us), ..Start::default() };
        let window = Window { cwnd_segments: 100, cwnd_count: 0, ssthresh_segments: 100 };
        Self { law: Law::new(choice, start), window, now_us: 10_000_000, tick_us, snd_una: 0, offset: 0xffff_ff00 }
    }

    /// An ACK of a segment that took `owd` ticks, one tick after the one before.
    fn ack_of(&mut self, owd: u32, flags: u32, segments: u32) {
        self.now_us += self.tick_us;
        let now = (self.now_us / self.tick_us) as u32;
        self.snd_una = self.snd_una.wrapping_add(segments * 1000);
        let acked = Acked {
            now_us: self.now_us,
            acked_segments: segments,
            snd_una: self.snd_una,
            tsval: now.wrapping_add(self.offset),
            tsecr: now.wrapping_sub(owd),
            flags: Acked::HAS_TIMESTAMP | flags,
            ..Acked::default()
        };
        self.law.on_acked(&acked, &mut self.window);
    }

    fn owds(&mut self, owd: u32, count: u32) {
        for _ in 0..count {
            self.ack_of(owd, Acked::ADVANCED, 1);
        }
    }

    /// Whether a loss at a window of 100 halves it.
    fn loss_halves(&mut self) -> bool {
        self.window = Window { cwnd_segments: 100, cwnd_count: 0, ssthresh_segments: 100 };
        let lost = Lost { now_us: self.now_us, in_flight_segments: 100, ..Lost::default() };
        self.law.on_lost(&lost, &mut self.window);
        assert_eq!(self.window.cwnd_segments, 100, "the window is the stack's");
        match self.window.ssthresh_segments {
            50 => true,
            100 => false,
            other => panic!("ssthresh {other} is neither"),
        }
    }
}

/// ACKs, one each tick, of segments that took 20 ticks, by a receiver whose clock makes `faster` ticks in each of ours; and
/// whether a loss then halves.
fn halves_with_a_clock(connection: &mut Connection, faster: f64, acks: u32) -> bool {
    let ours = connection.now_us / connection.tick_us;
    for since in 1..=acks {
        let theirs = ours as f64 * faster + f64::from(since) * faster;
        connection.offset = (theirs as u64 as u32).wrapping_sub((ours + u64::from(since)) as u32);
        connection.owds(20, 1);
    }
    connection.loss_halves()
}

/// Samples at and above the minimum, of which the former come last.
fn halves(changes: &[(&str, f64)], above: u32, at_minimum: u32) -> bool {
    let mut connection = Connection::new(changes);
    connection.owds(20, 1);
    connection.loss_halves();
    connection.owds(25, above);
    connection.owds(20, at_minimum);
    connection.loss_halves()
}

#[test]
fn a_loss_halves_only_above_alpha() {
    // [utsumi] §4.1: at a utilisation of 0.95 the minimum is seen 5 times in 100 samples
    assert!(!halves(&[], 95, 5));
    // rho = 0.99 is not above 0.99, 100/101 is
    assert!(!halves(&[], 99, 1));
    assert!(halves(&[], 100, 1));
    // with less than 100 samples rho > 0.99 means that none was at the minimum
    for samples in 1..99 {
        assert!(halves(&[], samples, 0) && !halves(&[], samples, 1), "{samples}");
    }
    // between 0.95 and 0.99 the rule differs for more than 20 samples only
    assert!(!halves(&[("alpha", 0.95)], 19, 1) && !halves(&[], 19, 1));
    assert!(halves(&[("alpha", 0.95)], 20, 1) && !halves(&[], 20, 1));
    // the ends
    assert!(!halves(&[("alpha", 1.0)], 100, 0));
    assert!(halves(&[("alpha", 0.0)], 1, 100) && !halves(&[("alpha", 0.0)], 0, 100));
}

#[test]
fn each_loss_begins_a_window_of_its_own() {
    let mut connection = Connection::new(&[]);
    connection.owds(20, 10);
    assert!(!connection.loss_halves(), "all ten were the lowest");
    assert!(connection.loss_halves(), "none since");
    connection.owds(21, 10);
    assert!(connection.loss_halves(), "the lowest is that of the connection");
    connection.owds(21, 10);
    connection.owds(20, 1);
    assert!(!connection.loss_halves());
}

#[test]
fn a_lower_minimum_makes_the_former_ones_queueing() {
    let mut connection = Connection::new(&[]);
    connection.owds(20, 500);
    connection.owds(19, 1);
    assert!(connection.loss_halves(), "1 of 501 was the lowest");
    connection.owds(19, 1);
    assert!(!connection.loss_halves());
}

/// TSval and TSecr count the same only if both clocks have ticks of one length. With a slower one each sample would be the
/// lowest yet, with a faster one none but the first.
#[test]
fn a_receivers_clock_of_another_tick_makes_it_newreno_and_not_one_that_tolerates_everything() {
    for faster in [0.001, 0.1, 0.25, 0.5, 2.0, 10.0, 1000.0] {
        let mut connection = Connection::new(&[("alpha", 0.999_999)]);
        halves_with_a_clock(&mut connection, faster, 5_000);
        // whatever it did in the first seconds
        for _ in 0..20 {
            assert!(halves_with_a_clock(&mut connection, faster, 50), "{faster}");
        }
    }
    // real clocks are a few hundred ppm apart at most
    for faster in [0.9995, 1.0, 1.0005] {
        let mut connection = Connection::new(&[("tolerance_ms", 5.0)]);
        assert!((0..100).all(|_| !halves_with_a_clock(&mut connection, faster, 99)), "{faster}");
    }
}

#[test]
fn a_pause_or_a_queue_of_seconds_is_no_clock_of_another_tick() {
    let mut connection = Connection::new(&[]);
    for pause_us in [0, 1_000_000, 60_000_000, 3_600_000_000, 40 * 86_400_000_000_u64] {
        connection.now_us += pause_us;
        connection.owds(20, 5_000);
        assert!(!connection.loss_halves(), "{pause_us}");
        // a queue grows within 3 s to 1 s, and is gone again
        for owd in (20..1020).chain((20..1020).rev()) {
            connection.owds(owd, 3);
        }
        connection.loss_halves();
        connection.owds(20, 50);
        assert!(!connection.loss_halves(), "{pause_us}");
    }
}

/// As `lasthop laws set` does. Steps of another length are other numbers.
#[test]
fn steps_and_expiry_may_change_while_a_connection_lasts() {
    for (from, to) in [(0.0, 10.0), (10.0, 0.0), (10.0, 20.0), (20.0, 1.0)] {
        for offset in [0, 0x1234_5678, 0x8000_0000, 0xffff_ff00] {
            let mut connection = Connection::new(&[("granularity_ms", from)]);
            connection.offset = offset;
            connection.owds(40, 300);
            assert!(!connection.loss_halves());
            connection.law.set_parameters(told(&[("granularity_ms", to)]));
            connection.owds(40, 300);
            assert!(!connection.loss_halves(), "from {from} to {to} ms, {offset}: all were the lowest");
            connection.owds(80, 300);
            assert!(connection.loss_halves(), "from {from} to {to} ms, {offset}: none was");
        }
    }
    let mut connection = Connection::new(&[("minimum_expiry_s", 3600.0)]);
    connection.owds(20, 1);
    connection.owds(25, 100);
    connection.law.set_parameters(told(&[("minimum_expiry_s", 1.0)]));
    connection.owds(25, 2100);
    connection.loss_halves();
    connection.owds(25, 10);
    assert!(!connection.loss_halves(), "the former period is not waited for");
}

#[test]
fn a_timeout_is_not_judged_and_begins_a_window() {
    let mut connection = Connection::new(&[]);
    connection.owds(20, 10);
    let lost = Lost { in_flight_segments: 40, ..Lost::default() };
    connection.law.on_timed_out(&lost, &mut connection.window);
    assert_eq!(connection.window.ssthresh_segments, 20);
    connection.owds(21, 5);
    assert!(connection.loss_halves());
}

#[test]
fn what_does_not_advance_or_has_no_timestamp_is_no_sample() {
    let mut connection = Connection::new(&[]);
    connection.owds(20, 10);
    connection.loss_halves();
    for _ in 0..10 {
        connection.ack_of(20, 0, 1); // a duplicate
        connection.ack_of(20, Acked::IN_REDUCTION, 1);
    }
    let silent = Acked { acked_segments: 1, flags: Acked::ADVANCED, ..Acked::default() };
    connection.law.on_acked(&silent, &mut connection.window);
    assert!(connection.loss_halves(), "there was no sample");
    connection.ack_of(20, Acked::ADVANCED | Acked::IN_REDUCTION, 1);
    assert!(!connection.loss_halves(), "an ACK that fills a hole is one");
}

#[test]
fn a_coarse_clock_hides_what_is_below_its_steps() {
    // steps of 10 ms: a delay of up to 9 ms more is a step more for some, for all from 10 ms on
    let halves = |more: u32, parameters: &[(&str, f64)]| {
        let mut connection = Connection::new(parameters);
        connection.owds(20, 40);
        connection.loss_halves();
        connection.owds(20 + more, 40);
        connection.loss_halves()
    };
    for more in 0..10 {
        assert!(!halves(more, &[("granularity_ms", 10.0)]), "{more}");
    }
    assert!((11..40).all(|more| halves(more, &[("granularity_ms", 10.0)])));
    assert!(!halves(0, &[("granularity_ms", 1.0)]) && halves(1, &[("granularity_ms", 1.0)]));
    // a tolerance has no phase
    assert!(!halves(3, &[("tolerance_ms", 3.0)]) && halves(4, &[("tolerance_ms", 3.0)]));
    assert!(halves(1, &[("tolerance_ms", 0.9)]), "less than a tick is none");
}

/// A delay of 20.5 ms is 20 or 21 ticks, as the clocks happen to stand; one of 22 ms is never less than 22 - 1 of them.
#[test]
fn by_default_a_tick_more_than_the_lowest_is_no_queue() {
    let halves = |more: u32| {
        let mut connection = Connection::new(&[("tolerance_ms", 1.0)]);
        connection.owds(20, 10);
        connection.loss_halves();
        connection.owds(20 + more, 10);
        connection.loss_halves()
    };
    assert_eq!(Parameters::of(LawName::Ucc).get(LawName::Ucc, "tolerance_ms"), Some(1.0));
    assert!(!halves(0) && !halves(1) && halves(2));
}

#[test]
fn clocks_may_wrap() {
    for granularity_ms in [0.0, 10.0] {
        let mut connection = Connection::new(&[("granularity_ms", granularity_ms)]);
        connection.now_us = (u64::from(u32::MAX) - 500) * 1000;
        for _ in 0..10 {
            connection.owds(20, 100); // theirs wraps first, then ours
            assert!(!connection.loss_halves());
            connection.owds(40, 100);
            assert!(connection.loss_halves());
        }
    }
}

#[test]
fn a_minimum_expires_within_two_periods() {
    let mut connection = Connection::new(&[("minimum_expiry_s", 1.0)]);
    connection.owds(20, 500);
    connection.loss_halves();
    connection.owds(30, 400);
    assert!(connection.loss_halves(), "the route is longer now, which nobody knows yet");
    connection.owds(30, 1200);
    connection.loss_halves();
    connection.owds(30, 100);
    assert!(!connection.loss_halves(), "the lowest of the last seconds is 30");
    let mut connection = Connection::new(&[]);
    connection.owds(20, 1);
    connection.owds(30, 100_000);
    assert!(connection.loss_halves(), "without expiry it stays");
}

#[test]
fn samples_may_be_counted_by_the_segments_they_acknowledge() {
    let halves = |per_segment: f64| {
        let mut connection = Connection::new(&[("per_segment", per_segment), ("alpha", 0.6)]);
        connection.owds(20, 1);
        connection.loss_halves();
        connection.ack_of(20, Acked::ADVANCED, 1);
        connection.ack_of(25, Acked::ADVANCED, 2);
        connection.loss_halves() // rho is 1/2 by ACKs, 2/3 by segments
    };
    assert!(!halves(0.0) && halves(1.0));
}

#[test]
fn the_end_of_slow_start_may_be_treated_apart() {
    let first = |changes: &[(&str, f64)]| {
        let mut connection = Connection::new(changes);
        connection.owds(20, 10);
        connection.window.ssthresh_segments = INFINITE_SSTHRESH;
        let lost = Lost { in_flight_segments: 100, ..Lost::default() };
        connection.law.on_lost(&lost, &mut connection.window);
        let at_loss = connection.window.ssthresh_segments;
        connection.ack_of(20, Acked::ADVANCED | Acked::IN_REDUCTION, 1);
        let recovering = connection.window.ssthresh_segments;
        connection.ack_of(20, GROWS, 1);
        (at_loss, recovering, connection.window.ssthresh_segments)
    };
    assert_eq!(first(&[]), (100, 100, 100));
    assert_eq!(first(&[("first_loss_halves", 1.0)]), (50, 50, 50));
    assert_eq!(first(&[("keep_slow_start", 1.0)]), (100, 100, INFINITE_SSTHRESH));
    assert!(!halves(&[("first_loss_halves", 1.0)], 0, 1), "the second is judged");
}

/// A source of Poisson arrivals before a server that takes 1000 us for each finds it idle with probability 1 - utilisation.
#[test]
fn rho_is_the_utilisation_of_the_bottleneck_by_poisson_arrivals() {
    let mut numbers = 0x9e37_79b9_7f4a_7c15_u64;
    let mut uniform = || {
        numbers ^= numbers << 13;
        numbers ^= numbers >> 7;
        numbers ^= numbers << 17;
        (numbers >> 11) as f64 / (1_u64 << 53) as f64
    };
    for utilisation in [0.5, 0.8, 0.95] {
        let delays: Vec<u32> = (0..40_000)
            .scan(0.0_f64, |wait, _| {
                let waited = *wait;
                *wait = (waited + 1000.0 + (1.0 - uniform()).ln() * 1000.0 / utilisation).max(0.0);
                Some(1000 + waited.ceil() as u32)
            })
            .collect();
        for (alpha, expected) in [(utilisation - 0.02, true), (utilisation + 0.02, false)] {
            let mut connection = Connection::with_tick(&[("alpha", alpha)], 1);
            for owd in &delays {
                connection.ack_of(*owd, Acked::ADVANCED, 1);
            }
            assert_eq!(connection.loss_halves(), expected, "{utilisation} by {alpha}");
        }
    }
}

#[test]
fn it_counts_through_2_33_segments_without_a_loss() {
    // by ACKs of 2^20 segments, counted by segment; one of so many finds no queue
    for (one_of, expected) in [(10, false), (1000, true)] {
        let mut connection = Connection::new(&[("per_segment", 1.0)]);
        for number in 0..1_u32 << 13 {
            let owd = if number % one_of == 0 { 20 } else { 25 };
            connection.ack_of(owd, Acked::ADVANCED, 1 << 20);
        }
        assert_eq!(connection.loss_halves(), expected, "1 of {one_of}");
    }
}

proptest! {
    /// Where each segment waits it is NewReno, and also where there are no timestamps.
    #[test]
    fn with_a_queue_that_never_empties_it_is_newreno(
        losses in prop::collection::vec((0..300_u32, 1..200_u32), 1..20), timestamps in any::<bool>(),
    ) {
        let mut ucc = Connection::new(&[]);
        if timestamps {
            ucc.owds(20, 1);
            ucc.loss_halves();
        }
        let mut newreno = Law::new(LawName::NewReno, Start::default());
        let mut window = ucc.window;
        for (acks, flight) in losses {
            for _ in 0..acks {
                let has = if timestamps { Acked::HAS_TIMESTAMP } else { 0 };
                let acked = Acked { acked_segments: 1, tsval: 100, tsecr: 50, flags: GROWS | has, ..Acked::default() };
                ucc.law.on_acked(&acked, &mut ucc.window);
                newreno.on_acked(&acked, &mut window);
                prop_assert_eq!(ucc.window, window);
            }
            let lost = Lost { in_flight_segments: flight, ..Lost::default() };
            ucc.law.on_lost(&lost, &mut ucc.window);
            newreno.on_lost(&lost, &mut window);
            prop_assert_eq!(ucc.window, window);
            for window in [&mut ucc.window, &mut window] {
                (window.cwnd_segments, window.cwnd_count) = (window.ssthresh_segments, 0);
            }
        }
    }

    /// Only differences of delays count.
    #[test]
    fn no_clock_needs_to_be_right(
        offset in any::<u32>(), begins in 0..1_u64 << 40, delays in prop::collection::vec(5..40_u32, 1..200),
    ) {
        let decisions = |offset, now_us| {
            let mut connection = Connection::new(&[]);
            (connection.offset, connection.now_us) = (offset, now_us);
            delays.iter().map(|owd| {
                connection.owds(*owd, 1);
                connection.clone().loss_halves()
            }).collect::<Vec<_>>()
        };
        // the first tick of our clock at which an echo is 0, which means none, is not among them
        prop_assume!((begins / 1000) as u32 > 1000 && (begins / 1000) as u32 <= u32::MAX - 1000);
        prop_assert_eq!(decisions(offset, begins), decisions(0, 10_000_000));
    }
}
