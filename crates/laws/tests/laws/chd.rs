//! CHD: once per round trip, the loss that is tolerated, and the shadow window.

use super::delay::{BASE_US, Timed, choice};
use super::hd::{empty_regions_of_g_divide_by_nothing, g_has_the_published_corners};
use lasthop_laws::{Acked, LawName};

const AT_THRESHOLD_US: u32 = BASE_US + 20_000;
/// In region B, where g is 0.999 in what follows: each of these decisions is a back-off.
const ABOVE_US: u32 = BASE_US + 30_000;
/// q_max: g is 0 there.
const LONGEST_US: u32 = BASE_US + 10_000_000;

/// A window of 41 that does not grow, RTTs from 100 ms to 10.1 s seen, p_max = 1.
fn sender(set: &[(&str, f64)]) -> Timed {
    let certain = [("max_probability", 1.0)];
    let set: Vec<_> = certain.iter().chain(set).copied().collect();
    let mut sender = Timed::new(choice(LawName::Chd, 0, &set), 41);
    sender.sender.flags = Acked::ADVANCED;
    sender.round(BASE_US);
    assert_eq!(sender.round(LONGEST_US), 41);
    sender
}

#[test]
fn g_is_published() {
    g_has_the_published_corners(LawName::Chd);
    empty_regions_of_g_divide_by_nothing(LawName::Chd);
}

#[test]
fn at_20_ms_a_back_off_takes_two_round_trips() {
    // geometric with p = 0.5: mean 2, standard deviation 1.41; of 4000 seeds' mean 0.022, and 4 of these
    let rounds = |seed| {
        let mut sender = Timed::measured(choice(LawName::Chd, seed, &[]), 40);
        sender.sender.flags = Acked::ADVANCED;
        (1..1000).find(|_| sender.round(AT_THRESHOLD_US) < 40).expect("a back-off")
    };
    let mean = (0..4000).map(rounds).sum::<u32>() as f64 / 4000.0;
    assert!((mean - 2.0).abs() < 0.09, "{mean}");
}

#[test]
fn a_back_off_halves_the_window_rounded_up_but_not_below_two_segments() {
    // win - max(win / 2, 1), at least 2
    for (cwnd, half) in [(41, 21), (40, 20), (5, 3), (4, 2), (3, 2), (2, 2)] {
        let mut sender = sender(&[]);
        sender.sender.window.cwnd_segments = cwnd;
        assert_eq!(sender.round(AT_THRESHOLD_US), half, "of {cwnd}");
        assert_eq!(sender.sender.window.ssthresh_segments, half.max(2));
    }
}

#[test]
fn each_round_trip_may_back_off_again_and_the_window_grows_in_the_rest() {
    let mut sender = sender(&[]);
    assert_eq!([0; 3].map(|_| sender.round(AT_THRESHOLD_US)), [21, 11, 6]);
    // [utsumi (2)]: w + 1 in a round trip without a back-off, also in the first after one
    sender.sender.flags = super::GROWS;
    (0..6).for_each(|_| _ = sender.ack(1, BASE_US));
    assert_eq!(sender.cwnd(), 7);
}

#[test]
fn the_highest_rtt_of_a_round_decides_or_the_last() {
    for (use_max, window) in [(1.0, 21), (0.0, 41)] {
        let mut sender = sender(&[("use_max", use_max)]);
        sender.ack(1, AT_THRESHOLD_US);
        assert_eq!(sender.round(BASE_US), window, "use_max = {use_max}");
    }
    let mut sender = sender(&[("use_max", 0.0)]);
    sender.round_but_one(BASE_US);
    assert_eq!(sender.ack(1, AT_THRESHOLD_US), 21);
}

#[test]
fn a_loss_is_tolerated_up_to_the_threshold_and_halves_the_window_above_it() {
    // q = max(last, highest of this round) - lowest
    let cases: [(&[u32], u32); 5] = [
        (&[BASE_US], 41),
        (&[AT_THRESHOLD_US], 41),
        (&[AT_THRESHOLD_US + 1000], 21),
        (&[AT_THRESHOLD_US + 1000, BASE_US], 21),
        (&[BASE_US, AT_THRESHOLD_US + 1000], 21),
    ];
    for (rtts, window) in cases {
        let mut sender = sender(&[]);
        sender.round(BASE_US);
        rtts.iter().for_each(|rtt_us| _ = sender.ack(1, *rtt_us));
        assert_eq!(sender.lose(), window, "after {rtts:?}");
    }
}

#[test]
fn a_loss_in_a_back_off_is_tolerated() {
    let mut sender = sender(&[]);
    assert_eq!(sender.round(ABOVE_US), 21);
    sender.ack(1, ABOVE_US);
    assert_eq!(sender.lose(), 21);
    sender.ack(1, ABOVE_US);
    // the recovery has ended the back-off: this one counts; s was 41, halved by the first loss to 20, and w is more
    assert_eq!(sender.lose(), 11);
}

#[test]
fn a_timeout_is_newrenos() {
    let mut sender = sender(&[]);
    sender.sender.time_out();
    assert_eq!((sender.cwnd(), sender.sender.window.ssthresh_segments), (1, 20));
}

#[test]
fn where_others_fill_the_queue_a_loss_halves_the_shadow_window() {
    // region B: w 41 -> 21 -> 11 while s = max(w, s) stays 41
    let mut competing = sender(&[]);
    assert_eq!([0; 2].map(|_| competing.round(ABOVE_US)), [21, 11]);
    competing.round_but_one(ABOVE_US);
    // [utsumi (4)]: max(11, 41) / 2, rounded up: the window becomes larger; s = 41 / 2 = 20
    assert_eq!(competing.clone().lose(), 21);
    let mut twice = competing.clone();
    twice.lose();
    assert_eq!(twice.lose(), 11, "w = 21 is more than s = 20");
    // without loss_fair there is no shadow: 11 / 2, rounded up
    let mut alone = sender(&[("loss_fair", 0.0)]);
    assert_eq!([0; 2].map(|_| alone.round(ABOVE_US)), [21, 11]);
    alone.round_but_one(ABOVE_US);
    assert_eq!(alone.lose(), 6);
    // a tolerated loss halves s, too: 41 -> 20
    let mut tolerated = sender(&[]);
    tolerated.round(ABOVE_US);
    assert_eq!(tolerated.lose(), 21);
    tolerated.ack(1, LONGEST_US); // no back-off in this round
    tolerated.round(ABOVE_US);
    assert_eq!(tolerated.round(ABOVE_US), 11); // s = max(21, 20)
    tolerated.round_but_one(ABOVE_US);
    assert_eq!(tolerated.lose(), 11);
}

#[test]
fn the_shadow_window_grows_as_the_window_does() {
    let mut sender = sender(&[]);
    assert_eq!(sender.round(ABOVE_US), 21);
    sender.sender.flags = super::GROWS;
    sender.ack(1, LONGEST_US); // no back-off in this round
    // 21 ACKs: 22, and 22 more: 23, with which s has come from 41 to 43
    (0..42).for_each(|_| _ = sender.ack(1, ABOVE_US));
    assert_eq!(sender.cwnd(), 23);
    assert_eq!(sender.lose(), 22);
}

#[test]
fn a_back_off_at_no_more_delay_than_the_one_before_forgets_the_shadow_window() {
    // 30 ms: s = 41, w = 21; 20 ms, at most q_th and less than 30: s = 0, w = 11; 30 ms: s = w = 11, w = 6
    let mut sender = sender(&[]);
    assert_eq!([ABOVE_US, AT_THRESHOLD_US, ABOVE_US].map(|rtt_us| sender.round(rtt_us)), [21, 11, 6]);
    sender.round_but_one(ABOVE_US);
    assert_eq!(sender.lose(), 6);
}

#[test]
fn a_back_off_at_more_delay_than_the_one_before_keeps_it() {
    // 20 ms, more than none: s = 41, w = 21; 30 ms: w = 11
    let mut rising = sender(&[]);
    assert_eq!([AT_THRESHOLD_US, ABOVE_US].map(|rtt_us| rising.round(rtt_us)), [21, 11]);
    rising.round_but_one(ABOVE_US);
    assert_eq!(rising.lose(), 21);
}

#[test]
fn at_little_delay_nobody_competes_though_the_shadow_window_stays() {
    // 30 ms: s = 41, w = 21; a round trip without delay: nobody competes, so that a loss above q_th halves w alone
    let mut alone = sender(&[]);
    assert_eq!([ABOVE_US, BASE_US].map(|rtt_us| alone.round(rtt_us)), [21, 21]);
    let mut again = alone.clone();
    alone.ack(1, ABOVE_US);
    assert_eq!(alone.lose(), 11);
    // [utsumi (3)] would have s = 0 by now; ours is 41 still
    assert_eq!(again.round(ABOVE_US), 11);
    again.round_but_one(ABOVE_US);
    assert_eq!(again.lose(), 21);
}

#[test]
fn the_shadow_window_begins_as_the_window_and_follows_slow_start() {
    // 10 segments acknowledged: 20, in slow start, of which a back-off in region B leaves s = 20
    let mut sender = Timed::new(choice(LawName::Chd, 0, &[("max_probability", 1.0)]), 10);
    sender.sender.window.ssthresh_segments = 1000;
    sender.round(BASE_US);
    (0..9).for_each(|_| _ = sender.ack(1, LONGEST_US));
    assert_eq!(sender.cwnd(), 20);
    sender.sender.flags = Acked::ADVANCED;
    sender.round(LONGEST_US);
    assert_eq!([0; 3].map(|_| sender.round(ABOVE_US)), [10, 5, 3]);
    sender.round_but_one(ABOVE_US);
    assert_eq!(sender.lose(), 10);
}

#[test]
fn a_timeout_leaves_the_shadow_window_as_it_began() {
    // s = 41 from the first ACK on; w = 1; a back-off in region B takes max(1, 41), and the loss after it half of that
    let mut sender = sender(&[]);
    sender.sender.time_out();
    assert_eq!(sender.round(ABOVE_US), 1);
    sender.round_but_one(ABOVE_US);
    assert_eq!(sender.lose(), 21);
}
