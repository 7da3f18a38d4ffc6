//! Linux's CUBIC: what its arithmetic comes to. That it is the kernel's, number by number, is shown against the kernel
//! itself (crates/kernel/tests/cubic.rs).

use super::{GROWS, Sender};
use lasthop_laws::cubic::{Cubic, approximate_cube_root};
use lasthop_laws::{Acked, LawName, SlowStart, Window};

const HZ: u32 = 250;
const MINUTE_US: u64 = 60_000_000;

fn after_loss_at(w_max: u32) -> Sender {
    Sender::after_loss_at(LawName::Cubic, w_max)
}

fn state() -> Cubic {
    Cubic::begin(SlowStart::HyStart, 0, 0, HZ)
}

fn window(cwnd_segments: u32, ssthresh_segments: u32) -> Window {
    Window { cwnd_segments, cwnd_count: 0, ssthresh_segments }
}

fn acked(acked_segments: u32) -> Acked {
    Acked { acked_segments, flags: GROWS, ..Acked::default() }
}

#[test]
fn a_loss_leaves_717_of_1024_of_the_window_but_no_less_than_two_segments() {
    // 100 * 717 / 1024 = 70.02; 555 * 717 / 1024 = 388.6; 10 * 717 / 1024 = 7.002
    for (cwnd, ssthresh) in [(100, 70), (555, 388), (10, 7), (3, 2), (2, 2), (1, 2)] {
        assert_eq!(after_loss_at(cwnd).cwnd(), ssthresh, "of {cwnd}");
    }
}

#[test]
fn k_is_the_time_the_curve_takes_back_to_the_window_of_the_loss() {
    // K = cbrt(0.3 W_max / 0.4): 4.22 s from 100, 7.47 s from 555. In units of 1/1024 s, and the cube root is Linux's.
    for (w_max, seconds) in [(100, 4.22), (555, 7.47)] {
        let (mut cubic, mut window) = (state(), window(w_max, w_max));
        cubic.reduce(&mut window);
        window.cwnd_segments = window.ssthresh_segments;
        cubic.grow(&acked(1), 1000, &mut window);
        let k = f64::from(cubic.k) / 1024.0;
        assert!((k - seconds).abs() < 0.01, "{k} s from {w_max}");
        assert_eq!(cubic.origin_point, w_max);
    }
}

#[test]
fn the_cube_root_is_off_by_less_than_a_sixth_of_a_percent_wherever_it_is_used() {
    // what it is taken of: 2^40 / 410 for each segment of difference, for up to 2^32 segments
    let factor = (1_u64 << 40) / 410;
    let differences = (1..5000).chain((5000..u64::from(u32::MAX)).step_by(1_000_003));
    for difference in differences {
        let exact = ((factor * difference) as f64).cbrt();
        let ratio = f64::from(approximate_cube_root(factor * difference)) / exact;
        assert!((ratio - 1.0).abs() < 1.0 / 600.0, "{ratio} at {difference}");
    }
}

#[test]
fn the_window_is_back_after_k_and_as_far_above_after_twice_k() {
    // From 100: K = 4.217 s; 100 at K, and 100 + 30 at 2 K, where it rises by 3 C K^2 = 21 segments/s: 2 in a round trip.
    let mut sender = after_loss_at(100);
    assert_eq!(sender.cwnd(), 70);
    let at_k = sender.run(4_217_000, 100_000);
    assert!((99..=100).contains(&at_k), "{at_k} at K");
    let at_2k = sender.run(4_217_000, 100_000);
    assert!((128..=132).contains(&at_2k), "{at_2k} at 2 K");
}

#[test]
fn the_curve_is_steep_first_then_flat_then_steep() {
    let mut sender = after_loss_at(100);
    let mut before = sender.cwnd();
    // W(t) - W(t - 1) for K = 4.22: 16.6, 9.0, 3.6, 0.8, ~0, 2.2, 6.7
    let steps: Vec<u32> = (0..8)
        .map(|_| {
            let now = sender.run(1_000_000, 100_000);
            now - std::mem::replace(&mut before, now)
        })
        .collect();
    assert!(steps[0] > steps[1] && steps[1] > steps[2] && steps[2] > steps[4], "{steps:?}");
    assert!(steps[3] <= 2 && steps[4] <= 1, "{steps:?}");
    assert!(steps[7] > steps[6] && steps[6] > steps[5], "{steps:?}");
}

#[test]
fn a_loss_below_the_last_one_gives_up_more() {
    // fast convergence: 100, then 70: W_max = 70 * 1741 / 2048 = 59.5
    let (mut cubic, mut window) = (state(), window(100, 100));
    cubic.reduce(&mut window);
    assert_eq!(cubic.last_max_cwnd, 100);
    window.cwnd_segments = 70;
    cubic.reduce(&mut window);
    assert_eq!((cubic.last_max_cwnd, window.ssthresh_segments), (59, 49)); // 70 * 717 / 1024 = 49.01
    window.cwnd_segments = 59; // not below: remembered as it is
    cubic.reduce(&mut window);
    assert_eq!(cubic.last_max_cwnd, 59);
}

#[test]
fn before_the_first_loss_the_window_grows_by_a_twentieth_per_round_trip() {
    let mut sender = Sender::new(LawName::Cubic, SlowStart::HyStart, 100);
    sender.window.ssthresh_segments = 100; // as HyStart leaves it
    assert_eq!(sender.acks(19), 100);
    assert_eq!(sender.ack(1), 101);
}

#[test]
fn the_window_grows_by_half_per_round_trip_at_most() {
    // W_max = 10000, but the window is 10: K = cbrt(9990 / 0.4) = 29.2 s; then the target is out of all proportion
    let mut sender = after_loss_at(10_000);
    sender.window = window(10, 10);
    sender.ack(1);
    sender.wait(29_000_000);
    assert_eq!(sender.ack(1), 11);
    assert_eq!((1..=4).map(|_| sender.ack(2)).last(), Some(15)); // one for each two
}

#[test]
fn where_reno_would_be_faster_the_window_follows_its_estimate() {
    // From 20 to 14: K = cbrt(6 / 0.4) = 2.47 s. The curve is at 20 - 5.99, which in whole segments is 15: cnt = 14 / 1.
    let (mut cubic, mut window) = (state(), window(20, 20));
    cubic.reduce(&mut window);
    window.cwnd_segments = window.ssthresh_segments;
    cubic.grow(&acked(1), 1000, &mut window);
    assert_eq!((cubic.cnt, cubic.tcp_cwnd, window.cwnd_segments), (14, 14, 14));
    // Reno's estimate grows by one for each 14 * 15/8 = 26 segments acknowledged: with the 27th it is 15.
    cubic.grow(&acked(26), 1008, &mut window);
    assert_eq!((cubic.cnt, cubic.tcp_cwnd, cubic.ack_cnt), (14, 15, 1));
    assert_eq!((window.cwnd_segments, window.cwnd_count), (15, 1 + 26 - 14));
    // Now both are at 15, and 27 of 15 * 15/8 = 28 acknowledged.
    cubic.grow(&acked(26), 1009, &mut window);
    assert_eq!((cubic.cnt, cubic.tcp_cwnd, cubic.ack_cnt), (1500, 15, 27));
    // 53 > 28: Reno's estimate is 16, ahead by 1: cnt = 15 / 1. The 39 saved up at 1500 make one segment, 26 another.
    cubic.grow(&acked(26), 1017, &mut window);
    assert_eq!((cubic.cnt, cubic.tcp_cwnd, cubic.ack_cnt), (15, 16, 53 - 28));
    assert_eq!((window.cwnd_segments, window.cwnd_count), (17, 26 - 15));
}

#[test]
fn the_curve_is_looked_at_again_after_31_ms_or_when_the_window_has_changed() {
    let (mut cubic, mut window) = (state(), window(1000, 1000));
    cubic.reduce(&mut window);
    window.cwnd_segments = window.ssthresh_segments;
    cubic.grow(&acked(1), 1000, &mut window);
    let first = cubic.cnt;
    cubic.grow(&acked(1), 1007, &mut window); // HZ / 32 = 7 jiffies of 4 ms
    assert_eq!((cubic.cnt, cubic.last_time), (first, 1000));
    cubic.grow(&acked(1), 1008, &mut window);
    assert!(cubic.cnt < first, "{} of {first}", cubic.cnt);
    assert_eq!(cubic.last_time, 1008);
    window.cwnd_segments += 1;
    cubic.grow(&acked(1), 1009, &mut window);
    assert_eq!(cubic.last_time, 1009);
    window.cwnd_segments += 1;
    cubic.grow(&acked(1), 1009, &mut window); // once per jiffy
    assert_eq!(cubic.last_cwnd, window.cwnd_segments - 1);
}

#[test]
fn the_rtt_of_the_first_second_after_a_loss_is_not_believed() {
    let (mut cubic, mut window) = (state(), window(100, 100));
    let sample = |rtt_us| Acked { rtt_us, ..acked(1) };
    cubic.sample(&sample(100_000), 900, 1000, &mut window);
    cubic.reduce(&mut window);
    window.cwnd_segments = 70;
    cubic.grow(&acked(1), 1000, &mut window);
    cubic.sample(&sample(50_000), 1249, 1000, &mut window);
    assert_eq!(cubic.slow_start.delay_min_us, 100_000);
    cubic.sample(&sample(50_000), 1250, 1000, &mut window);
    assert_eq!(cubic.slow_start.delay_min_us, 50_000);
}

#[test]
fn a_timeout_forgets_the_window_of_the_loss() {
    let mut sender = after_loss_at(100);
    sender.time_out();
    assert_eq!(sender.window.ssthresh_segments, 49); // 70 * 717 / 1024
    assert_eq!(sender.acks(48), 49);
    assert_eq!(sender.acks(19), 49); // a twentieth per round trip, as before any loss
    assert_eq!(sender.ack(1), 50);
}

#[test]
fn the_curve_stands_still_while_nothing_is_sent() {
    let mut busy = after_loss_at(100);
    busy.run(1_000_000, 100_000);
    let mut idle = busy.clone();
    // its first segment leaves 10 s after the last one, which is also when the last ACK came here
    idle.send_after(10_000_000);
    let mut forgotten = busy.clone();
    forgotten.wait(10_000_000);
    assert_eq!(idle.run(2_000_000, 100_000), busy.run(2_000_000, 100_000));
    assert!(forgotten.run(2_000_000, 100_000) > busy.cwnd() + 50, "{}", forgotten.cwnd());
}

#[test]
fn a_window_that_a_bound_has_held_does_not_jump_when_the_bound_goes() {
    let mut free = after_loss_at(100);
    let mut held = free.clone();
    held.flags |= Acked::HELD;
    assert_eq!(held.run(MINUTE_US, 100_000), 70);
    held.flags = GROWS;
    // its epoch begins now: the same curve, a minute later
    assert!(held.run(4_217_000, 100_000).abs_diff(free.run(4_217_000, 100_000)) <= 1);
}

#[test]
fn a_needless_reduction_restores_nothing_of_the_law() {
    let mut sender = Sender::new(LawName::Cubic, SlowStart::HyStart, 100);
    let before = sender.window;
    sender.lose();
    let law = sender.law.clone();
    sender.undo(before);
    assert_eq!(sender.law, law);
    assert_eq!(sender.window, before);
}

#[test]
fn hours_after_a_loss_the_target_is_far_away_not_wrapped_around() {
    // The kernel's cube wraps 346 s past K: where its growth almost stops, ours goes on.
    for seconds in [340, 360, 3_600, 86_400] {
        let (mut cubic, mut window) = (state(), window(100, 100));
        cubic.reduce(&mut window);
        window.cwnd_segments = 70;
        cubic.grow(&acked(1), 1000, &mut window);
        cubic.grow(&acked(1), 1000 + seconds * HZ, &mut window);
        assert_eq!(cubic.cnt, 2, "{seconds} s after the loss");
    }
}
