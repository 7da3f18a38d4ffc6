//! HD: g(q), the back-off, and what a loss does about it.

use super::delay::{BASE_US, Timed, choice};
use lasthop_laws::{Acked, Choice, LawName};

/// How often, of `seeds`, one decision at the queueing delay `queue_us` is a back-off, where `queue_max_us` has been seen.
/// HD decides with each ACK; CHD with the last of a round.
pub(super) fn frequency(law: impl Fn(u32) -> Choice, queue_us: u32, queue_max_us: u32, seeds: u32) -> f64 {
    let backs_off = |seed: &u32| {
        let mut sender = Timed::new(law(*seed), 40);
        // samples only: in a recovery nothing is decided
        sender.sender.flags = Acked::ADVANCED | Acked::IN_REDUCTION;
        sender.ack(1, BASE_US);
        sender.round_but_one(BASE_US + queue_max_us);
        sender.ack(1, BASE_US);
        sender.round_but_one(BASE_US + queue_us);
        sender.sender.flags = Acked::ADVANCED;
        sender.ack(1, BASE_US + queue_us) < 40
    };
    f64::from((0..seeds).filter(backs_off).count() as u32) / f64::from(seeds)
}

/// published-results: g(5) = 0, g(12.5) = p_max / 2, g(20) = p_max, g(q_max) = 0, linear between, and 0 below 5. With
/// p_max = 1, so that the ends are certain; the rest within 4 standard deviations of 2000 draws.
pub(super) fn g_has_the_published_corners(name: LawName) {
    let law = |seed| choice(name, seed, &[("max_probability", 1.0), ("rtt_tick_ms", 0.0)]);
    let cases = [
        (0, 0.0),
        (5_000, 0.0),
        (8_750, 0.25),
        (12_500, 0.5),
        (16_250, 0.75),
        (20_000, 1.0),
        (25_000, 0.75),
        (30_000, 0.5),
        (35_000, 0.25),
        (40_000, 0.0),
    ];
    for (queue_us, g) in cases {
        let measured = frequency(law, queue_us, 40_000, 2000);
        let tolerance = 4.0 * (g * (1.0 - g) / 2000.0_f64).sqrt();
        assert!((measured - g).abs() <= tolerance, "{name}: g({queue_us} us) = {g}, measured {measured}");
    }
}

/// Regions that are empty divide by nothing: g is 0 up to q_min, p_max at q_th, 0 at q_max.
pub(super) fn empty_regions_of_g_divide_by_nothing(name: LawName) {
    // q_min, q_th, q_max, q, g
    let cases = [
        (20.0, 20.0, 40_000, 20_000, 0.0), // q_min = q_th: the step is above both
        (20.0, 20.0, 40_000, 30_000, 0.5),
        (20.0, 20.0, 20_000, 20_000, 0.0), // and q_max is the same
        (5.0, 20.0, 20_000, 20_000, 1.0),  // q_th = q_max: no region B
        (5.0, 20.0, 20_000, 12_500, 0.5),
        (30.0, 20.0, 40_000, 25_000, 0.0), // q_min > q_th: no region A, and B begins at q_min
        (30.0, 20.0, 40_000, 30_000, 0.0),
        (30.0, 20.0, 40_000, 35_000, 0.25),
        (0.0, 0.0, 40_000, 0, 0.0), // no delay is none, whatever is asked for
        (0.0, 0.0, 40_000, 20_000, 0.5),
    ];
    for (queue_min_ms, queue_threshold_ms, queue_max_us, queue_us, g) in cases {
        let set = [
            ("queue_min_ms", queue_min_ms),
            ("queue_threshold_ms", queue_threshold_ms),
            ("max_probability", 1.0),
            ("rtt_tick_ms", 0.0),
        ];
        let measured = frequency(|seed| choice(name, seed, &set), queue_us, queue_max_us, 2000);
        let tolerance = 4.0 * (g * (1.0 - g) / 2000.0_f64).sqrt();
        assert!(
            (measured - g).abs() <= tolerance,
            "{name}: q_min {queue_min_ms}, q_th {queue_threshold_ms}, q_max {queue_max_us}: g({queue_us}) = {g}, {measured}"
        );
    }
}

#[test]
fn g_is_published() {
    g_has_the_published_corners(LawName::Hd);
    empty_regions_of_g_divide_by_nothing(LawName::Hd);
}

fn certain() -> Timed {
    Timed::measured(choice(LawName::Hd, 0, &[("max_probability", 1.0)]), 41)
}

#[test]
fn at_20_ms_a_back_off_takes_20_acks() {
    // geometric with p = 0.05: mean 20, standard deviation 19.5; of 4000 seeds' mean 0.31, and 4 of these
    let acks = |seed| {
        let mut sender = Timed::measured(choice(LawName::Hd, seed, &[]), 1000);
        (1..10_000).find(|_| sender.ack(1, BASE_US + 20_000) < 1000).expect("a back-off")
    };
    let mean = (0..4000).map(acks).sum::<u32>() as f64 / 4000.0;
    assert!((mean - 20.0).abs() < 1.24, "{mean}");
}

#[test]
fn a_back_off_halves_the_window_but_not_below_two_segments() {
    for (cwnd, half) in [(41, 20), (40, 20), (5, 2), (4, 2), (3, 2), (2, 2)] {
        let mut sender = Timed::measured(choice(LawName::Hd, 0, &[("max_probability", 1.0)]), cwnd);
        sender.sender.window.cwnd_segments = cwnd; // what the first ACK may have added
        assert_eq!(sender.ack(1, BASE_US + 20_000), half, "of {cwnd}");
        assert_eq!(sender.sender.window.ssthresh_segments, half);
        assert_eq!(sender.sender.window.cwnd_count, 0);
    }
    // and does not raise the window of one segment that a timeout leaves
    let mut sender = certain();
    sender.sender.window.cwnd_segments = 1;
    assert_eq!((sender.ack(1, BASE_US + 20_000), sender.sender.window.ssthresh_segments), (1, 2));
}

#[test]
fn for_a_round_trip_after_a_back_off_the_window_stays() {
    let mut sender = certain();
    assert_eq!(sender.ack(1, BASE_US + 20_000), 20);
    // 41 segments were out: until the last of them is acknowledged nothing happens; that ACK may back off again
    for _ in 0..40 {
        assert_eq!(sender.ack(1, BASE_US + 20_000), 20);
    }
    assert_eq!(sender.ack(1, BASE_US + 20_000), 10);
}

#[test]
fn without_delay_it_is_newreno() {
    // one segment per window
    let mut sender = certain();
    sender.sender.window.cwnd_count = 0;
    (0..40).for_each(|_| _ = sender.ack(1, BASE_US));
    assert_eq!((sender.cwnd(), sender.ack(1, BASE_US)), (41, 42));
    // half the flight
    assert_eq!(sender.lose(), 21);
    let mut sender = certain();
    sender.sender.time_out();
    assert_eq!(sender.sender.window.ssthresh_segments, 20);
}

#[test]
fn a_loss_in_a_back_off_costs_nothing_more_and_one_after_it_does() {
    let mut sender = certain();
    sender.ack(1, BASE_US + 20_000);
    assert_eq!(sender.lose(), 20);
    assert_eq!(sender.lose(), 10, "the recovery has ended the back-off");
    let mut sender = certain();
    sender.ack(1, BASE_US + 20_000);
    (0..41).for_each(|_| _ = sender.ack(1, BASE_US));
    assert_eq!(sender.lose(), 10);
}

#[test]
fn in_a_recovery_or_without_new_data_it_does_not_back_off() {
    for flags in [Acked::ADVANCED | Acked::IN_REDUCTION, Acked::IN_REDUCTION, 0] {
        let mut sender = certain();
        sender.sender.flags = flags;
        assert_eq!(sender.ack(1, BASE_US + 20_000), 41, "{flags}");
    }
}
