//! CUBIC of RFC 9438. An ACK of a whole window takes the window to W_cubic(t + SRTT) at once (section 4.4), which shows
//! the curve; ACKs in no time show W_est.

use super::{GROWS, Sender};
use lasthop_laws::cubic::cube_root;
use lasthop_laws::{Acked, LawName, Lost, SlowStart};
use proptest::prelude::*;

const SRTT_US: u64 = 100_000;

fn new(cwnd: u32) -> Sender {
    Sender::new(LawName::CubicRfc9438, SlowStart::Standard, cwnd)
}

fn after_loss_at(w_max: u32) -> Sender {
    Sender::after_loss_at(LawName::CubicRfc9438, w_max)
}

/// Begins a congestion avoidance stage, and looks where the curve is `us` later, a round trip ahead.
fn look_ahead(sender: &mut Sender, us: u64) -> u32 {
    let cwnd = sender.cwnd();
    sender.ack(1);
    sender.wait(us - SRTT_US);
    sender.ack(cwnd)
}

#[test]
fn a_loss_leaves_seven_tenths_of_the_flight_but_no_less_than_two_segments() {
    for (flight, ssthresh) in [(100, 70), (555, 388), (50, 35), (10, 7), (3, 2), (1, 2), (0, 2), (103, 70)] {
        let mut sender = new(if flight == 555 { 555 } else { 100 });
        let lost = Lost { in_flight_segments: flight, ..sender.lost() };
        sender.law.on_lost(&lost, &mut sender.window);
        assert_eq!(sender.window.ssthresh_segments, ssthresh, "of {flight}");
    }
}

#[test]
fn the_window_follows_the_cubic_curve() {
    // Figure 1, K = cbrt(0.3 W_max / 0.4) = 4.217 s from 100:
    //   W(1) = 100 - 0.4 * 3.217^3 = 86.7      W(3) = 100 - 0.4 * 1.217^3 = 99.3
    //   W(5) = 100 + 0.4 * 0.783^3 = 100.2     W(6) = 100 + 0.4 * 1.783^3 = 102.3
    for (seconds, cwnd) in [(1, 86), (3, 99), (5, 100), (6, 102)] {
        assert_eq!(look_ahead(&mut after_loss_at(100), seconds * 1_000_000), cwnd, "W({seconds})");
    }
    // K = cbrt((555 - 388) / 0.4) = 7.474 s: W(1) = 555 - 0.4 * 6.474^3 = 446.4, W(8) = 555.1
    assert_eq!(look_ahead(&mut after_loss_at(555), 1_000_000), 446);
    assert_eq!(look_ahead(&mut after_loss_at(555), 8_000_000), 555);
}

#[test]
fn the_target_is_at_most_one_and_a_half_times_the_window() {
    // K = cbrt(300 / 0.4) = 9.086 s: W(15) = 1000 + 0.4 * 5.914^3 = 1082.7, more than 1.5 * 700
    assert_eq!(look_ahead(&mut after_loss_at(1000), 15_000_000), 1050);
    // half a window acknowledged: half the way
    let mut sender = after_loss_at(1000);
    sender.ack(1);
    sender.wait(15_000_000);
    assert_eq!(sender.ack(350), 875);
}

#[test]
fn each_segment_acknowledged_takes_its_share_of_the_way_to_the_target() {
    // W(1) = 86.68 from 70: (86.68 - 70) / 70 = 0.238 for each of the first segments
    let mut sender = after_loss_at(100);
    sender.ack(1);
    sender.wait(1_000_000 - SRTT_US);
    assert_eq!(sender.acks(4), 70); // 70.96
    assert_eq!(sender.acks(1), 71); // 71.19
}

#[test]
fn renos_estimate_grows_by_alpha_until_the_window_before_the_loss_and_by_one_from_there() {
    // Figure 4 with no time passing: from W to W + 1 takes about (W + 1/2) / alpha segments, alpha = 9/17
    let mut sender = after_loss_at(100);
    let first = sender.acks_until(71);
    assert!((132..=135).contains(&first), "{first}, not 70.5 * 17/9 = 133.2");
    // from 70 to 100: (100^2 - 70^2) / 2 * 17/9 = 4817
    let all = first + sender.acks_until(100);
    assert!((4793..=4841).contains(&all), "{all}, not 4817 within 0.5 %");
    let next = sender.acks_until(101);
    assert!((99..=102).contains(&next), "{next}, not 100.5");
}

#[test]
fn a_loss_below_the_last_one_gives_up_more() {
    // fast convergence: 100, then 80: W_max = 0.85 * 80 = 68, K = cbrt((68 - 56) / 0.4) = 3.107 s,
    // W(1) = 68 - 0.4 * 2.107^3 = 64.3; without it 80 - 0.4 * 2.915^3 = 70.1
    let mut sender = after_loss_at(100);
    sender.window.cwnd_segments = 80;
    assert_eq!(sender.lose(), 56);
    assert_eq!(look_ahead(&mut sender, 1_000_000), 64);
}

#[test]
fn the_flight_sets_ssthresh_but_the_window_sets_w_max() {
    // 50 of 100 in flight: 35, W_max = 100, K = cbrt(65 / 0.4) = 5.457 s, W(0.5) = 100 - 0.4 * 4.957^3 = 51.3
    let mut sender = new(100);
    let lost = Lost { in_flight_segments: 50, ..sender.lost() };
    sender.law.on_lost(&lost, &mut sender.window);
    sender.window.cwnd_segments = 35;
    assert_eq!(look_ahead(&mut sender, 500_000), 51);
}

#[test]
fn after_a_timeout_the_curve_begins_at_its_flat_point() {
    // section 4.8: K = 0 and W_max = cwnd = 70: W(3) = 70 + 0.4 * 3^3 = 80.8
    let mut sender = new(100);
    sender.time_out();
    assert_eq!(sender.window.ssthresh_segments, 70);
    assert_eq!(sender.acks(69), 70);
    assert_eq!(look_ahead(&mut sender, 3_000_000), 80);
}

#[test]
fn a_timeout_forgets_the_window_of_an_earlier_loss() {
    // W_max was 1000; the timeout at 700 leaves ssthresh = 490: W(3) = 490 + 0.4 * 3^3 = 500.8
    let mut sender = after_loss_at(1000);
    sender.time_out();
    assert_eq!(sender.acks(489), 490);
    assert_eq!(look_ahead(&mut sender, 3_000_000), 500);
}

#[test]
fn a_slow_start_that_ends_without_a_loss_leads_to_the_flat_point() {
    // section 4.10: the same, and W_est grows as Reno does, since cwnd_prior is the window of that moment
    let mut sender = new(70);
    sender.window.ssthresh_segments = 70;
    let reno = sender.clone().acks_until(71);
    assert!((70..=72).contains(&reno), "{reno}");
    assert_eq!(look_ahead(&mut sender, 3_000_000), 80);
}

#[test]
fn a_needless_reduction_leaves_no_trace() {
    let mut sender = after_loss_at(100);
    sender.run(2_000_000, 100_000);
    let mut spared = sender.clone();
    let before = sender.window;
    sender.lose();
    sender.undo(before);
    assert_eq!(sender.window, spared.window);
    for _ in 0..50 {
        assert_eq!(sender.run(100_000, 100_000), spared.run(100_000, 100_000));
    }
}

#[test]
fn a_needless_timeout_leaves_no_trace() {
    let mut sender = after_loss_at(100);
    sender.run(2_000_000, 100_000);
    let mut spared = sender.clone();
    let before = sender.window;
    sender.time_out();
    sender.acks(3); // F-RTO sees it after some segments of slow start
    sender.undo(before);
    for _ in 0..50 {
        assert_eq!(sender.run(100_000, 100_000), spared.run(100_000, 100_000));
    }
}

#[test]
fn a_reduction_that_was_needless_long_ago_is_not_undone() {
    // section 4.9: "if cwnd < undo_cwnd" only
    let mut sender = after_loss_at(100);
    let before = sender.window; // 70
    sender.lose();
    sender.run(20_000_000, 100_000);
    assert!(sender.cwnd() > before.cwnd_segments);
    let (law, window) = (sender.law.clone(), sender.window);
    sender.undo(before);
    assert_eq!((sender.law, sender.window.cwnd_segments), (law, window.cwnd_segments));
}

#[test]
fn the_curve_stands_still_while_the_window_does_not_limit_the_sender() {
    let mut busy = after_loss_at(100);
    busy.run(1_000_000, 100_000);
    let mut limited = busy.clone();
    limited.flags = Acked::MAY_GROW;
    limited.run(10_000_000, 100_000);
    assert_eq!(limited.window, busy.window);
    limited.flags = GROWS;
    assert!(limited.run(2_000_000, 100_000).abs_diff(busy.run(2_000_000, 100_000)) <= 1);
}

#[test]
fn the_curve_stands_still_while_nothing_is_sent() {
    let mut busy = after_loss_at(100);
    busy.run(1_000_000, 100_000);
    let mut idle = busy.clone();
    idle.send_after(10_000_000);
    assert_eq!(idle.run(2_000_000, 100_000), busy.run(2_000_000, 100_000));
}

#[test]
fn a_window_that_a_bound_has_held_does_not_jump_when_the_bound_goes() {
    let mut free = after_loss_at(100);
    let mut held = free.clone();
    held.flags |= Acked::HELD;
    assert_eq!(held.run(60_000_000, 100_000), 70);
    held.flags = GROWS;
    assert!(held.run(4_217_000, 100_000).abs_diff(free.run(4_217_000, 100_000)) <= 1);
}

#[test]
fn a_cube_has_its_root_and_one_less_has_one_less() {
    assert_eq!(cube_root(0), 0);
    for root in (1..=2_642_245_u32).step_by(7).chain([2, 3, 2_642_245]) {
        let cube = u64::from(root).pow(3);
        assert_eq!((cube_root(cube), cube_root(cube - 1)), (root, root - 1));
    }
    assert_eq!(cube_root(u64::MAX), 2_642_245);
}

proptest! {
    #[test]
    fn a_cube_root_is_the_largest_number_whose_cube_is_no_more(a in any::<u64>(), shift in 0..64_u32) {
        let a = u128::from(a >> shift);
        let root = u128::from(cube_root(a as u64));
        prop_assert!(root.pow(3) <= a && a < (root + 1).pow(3));
    }
}
