//! BBR, version 3, by the example test cases of draft-ietf-ccwg-bbr (appendix "BBR Example Test Cases").

use crate::path::{OPEN, Path, RECOVERY, RTT_SEGMENTS, near};
use lasthop_laws::{LawName, Lost, Undone, Window};

const STARTUP: f64 = 2.773;

fn path() -> Path {
    Path::of(LawName::Bbr3)
}

/// The next ACK, with as much in flight as the pace makes of it: a quarter more than the path holds while it probes.
fn ack(path: &mut Path) {
    lose(path, 0);
}

/// The same, and it shows so many segments lost.
fn lose(path: &mut Path, lost: u32) {
    let flight = if path.gain() > 1.1 { 50 } else { RTT_SEGMENTS };
    let flight = flight.min(path.steering.cwnd_segments);
    path.ack_with(|sample| {
        (sample.prior_in_flight_segments, sample.in_flight_segments, sample.lost_segments) = (flight, flight, lost);
    });
}

/// ACKs until the pace has this gain. Returns how many.
fn until(path: &mut Path, gain: f64) -> u32 {
    for acks in 1..6_000 {
        ack(path);
        if near(path.gain(), gain) {
            return acks;
        }
    }
    panic!("never {gain}: {}", path.gain());
}

/// ACKs while the pace has this gain.
fn during(path: &mut Path, gain: f64) -> u32 {
    for acks in 0..6_000 {
        if !near(path.gain(), gain) {
            return acks;
        }
        ack(path);
    }
    panic!("always {gain}");
}

/// In rounds of the path.
fn rounds(acks: u32) -> f64 {
    f64::from(acks) / f64::from(RTT_SEGMENTS)
}

#[test]
fn startup_ends_with_a_plateau_and_drain_with_the_product() {
    let mut path = path();
    ack(&mut path);
    let startup = rounds(during(&mut path, STARTUP));
    // One round that shows the bandwidth, and three that show no more.
    assert!((3.0..4.5).contains(&startup), "{startup}");
    assert!(near(path.gain(), 0.5), "{}", path.gain());
    during(&mut path, 0.5);
    // Down and the end of it, at the product: the same ACK.
    assert!(near(path.gain(), 1.0), "{}", path.gain());
}

#[test]
fn drain_ends_after_three_rounds_even_with_more_than_the_product_in_flight() {
    let mut path = path();
    until(&mut path, 0.5);
    let mut acks = 0;
    while near(path.gain(), 0.5) {
        path.ack_with(|sample| sample.in_flight_segments = 60);
        acks += 1;
    }
    assert!((3.0..5.0).contains(&rounds(acks)), "{}", rounds(acks));
    assert!(near(path.gain(), 0.9), "{}", path.gain());
}

#[test]
fn application_limited_rounds_end_no_startup_and_losses_do() {
    let mut path = path();
    let limited = |path: &mut Path, lost| {
        path.ack_with(|sample| (sample.app_limited, sample.lost_segments) = (1, lost));
    };
    (0..20 * RTT_SEGMENTS).for_each(|_| limited(&mut path, 0));
    assert!(near(path.gain(), STARTUP), "{}", path.gain());
    path.state = RECOVERY;
    // Six ACKs that tell of a loss in each round: 15 % of it.
    (0..3 * RTT_SEGMENTS).for_each(|at| limited(&mut path, u32::from(at % 6 == 0)));
    assert!(path.gain() <= 1.0, "{}", path.gain());
}

#[test]
fn a_cycle_goes_down_cruises_refills_and_probes() {
    let mut path = path();
    until(&mut path, 1.25);
    for _ in 0..3 {
        // Up ends with three rounds that bring no more; the first one's rate is what they are compared with.
        let up = rounds(during(&mut path, 1.25));
        assert!((3.0..4.5).contains(&up), "{up}");
        assert!(near(path.gain(), 0.9), "{}", path.gain());
        let down = rounds(during(&mut path, 0.9));
        assert!(down < 1.5, "{down}");
        assert!(near(path.gain(), 1.0), "{}", path.gain());
        // As many rounds as the product has segments, as Reno would take; after a probe_rtt they begin anew.
        let cruise = rounds(during(&mut path, 1.0));
        assert!((38.0..100.0).contains(&cruise), "{cruise}");
        assert!(near(path.gain(), 1.25), "{}", path.gain());
    }
}

#[test]
fn after_five_seconds_half_the_product_is_in_flight_for_200_ms_and_a_round() {
    let mut path = path();
    path.for_ms(4_900);
    assert!(path.steering.cwnd_segments > 60, "{}", path.steering.cwnd_segments);
    let mut small = 0;
    for _ in 0..1_000 {
        small += u32::from(path.ack().cwnd_segments == 20);
        path.steering.app_limited = 0;
    }
    assert!((200..=250).contains(&small), "{small}");
    assert!(path.steering.cwnd_segments > 60, "the window is as before: {}", path.steering.cwnd_segments);
}

#[test]
fn a_probe_that_loses_too_much_ends_and_what_was_in_flight_limits_the_window() {
    let mut path = path();
    until(&mut path, 1.25);
    (0..2 * RTT_SEGMENTS).for_each(|_| ack(&mut path));
    path.state = RECOVERY;
    // Two of 50 are more than 2 %.
    lose(&mut path, 2);
    assert!(near(path.gain(), 0.9), "{}", path.gain());
    path.state = OPEN;
    // InflightAtLoss(): one segment of 50 may be lost, so 48 and 48 / 49.
    path.ack_with(|sample| sample.in_flight_segments = 50);
    assert_eq!(path.steering.cwnd_segments, 48);
    until(&mut path, 1.0);
    ack(&mut path);
    // 0.85 of it while it cruises: headroom for others.
    assert_eq!(path.steering.cwnd_segments, 41);
    // The next probe ends when that flight is reached, and the one after it follows at once.
    until(&mut path, 1.25);
    let first = during(&mut path, 1.25);
    assert!(first <= RTT_SEGMENTS, "{first}");
    let pause = rounds(until(&mut path, 1.25));
    assert!(pause < 4.0, "{pause}");
    // It raises the flight by 1, 2, 4, ... segments in a round.
    during(&mut path, 1.25);
    let raised = path.steering.cwnd_segments;
    assert!(raised > 48, "{raised}");
}

#[test]
fn a_loss_beside_a_probe_yields_to_what_was_delivered_once_a_round() {
    let mut path = path();
    until(&mut path, 1.25);
    until(&mut path, 1.0);
    ack(&mut path);
    let before = path.steering.cwnd_segments;
    lose(&mut path, 1);
    (0..2 * RTT_SEGMENTS).for_each(|_| ack(&mut path));
    // 40 are delivered in a round: that, or 0.7 of the window of before.
    let expected = (before * 7 / 10).max(RTT_SEGMENTS);
    assert_eq!(path.steering.cwnd_segments, expected);
    // The next probe forgets it.
    until(&mut path, 1.25);
    assert!(path.steering.cwnd_segments > expected, "{}", path.steering.cwnd_segments);
}

#[test]
fn a_needless_recovery_is_undone() {
    let mut path = path();
    until(&mut path, 1.25);
    (0..2 * RTT_SEGMENTS).for_each(|_| ack(&mut path));
    let mut window = Window { cwnd_segments: path.steering.cwnd_segments, cwnd_count: 0, ssthresh_segments: 100 };
    path.law.on_lost(&Lost::default(), &mut window);
    path.state = RECOVERY;
    lose(&mut path, 4);
    assert!(near(path.gain(), 0.9), "{}", path.gain());
    path.law.on_undone(&Undone::default(), &mut window);
    path.state = OPEN;
    ack(&mut path);
    // No limit is left, and it refills to probe again.
    assert!(near(path.gain(), 1.0) && path.steering.cwnd_segments > 60, "{:?}", path.steering);
    let refill = until(&mut path, 1.25);
    assert!(rounds(refill) < 1.5, "{refill}");
}

#[test]
fn a_path_of_less_than_a_segment_has_a_window_of_four_at_least() {
    let mut path = path();
    for _ in 0..20_000 {
        path.ack_with(|sample| {
            (sample.rtt_us, sample.srtt_us, sample.min_rtt_us) = (500, 500, 500);
            (sample.interval_us, sample.sampled_segments) = (1_000, 1);
            sample.prior_delivered_segments = sample.all_delivered_segments - 1;
            (sample.prior_in_flight_segments, sample.in_flight_segments) = (4, 4);
        });
        assert!(path.steering.cwnd_segments >= 4, "{:?}", path.steering);
    }
    // The pace is the path's.
    assert!((0.85..1.3).contains(&path.gain()), "{}", path.gain());
}
