//! BBR on a path that delivers a segment of 1448 bytes each millisecond, 40 ms there and back: the figures of "BBR:
//! Congestion-based congestion control" and of Linux's net/ipv4/tcp_bbr.c.

use crate::path::{OPEN, Path, RECOVERY, RTT_SEGMENTS, near};
use lasthop_laws::{LawName, Lost, Undone, Window};

fn path() -> Path {
    Path::of(LawName::Bbr)
}

#[test]
fn startup_sends_at_2_885_of_the_bandwidth_until_three_rounds_bring_no_quarter_more() {
    let mut path = path();
    path.ack();
    assert!(near(path.gain(), 2.885), "{}", path.gain());
    // The first round shows the bandwidth, and the three after it that there is no more. A round begins with the ACK of
    // a segment that was sent when the last one began.
    path.for_ms(3 * RTT_SEGMENTS - 1);
    assert!(near(path.gain(), 2.885));
    path.for_ms(RTT_SEGMENTS + 1);
    assert!(
        path.gain() <= 1.26,
        "no more than the product is in flight, so that the drain is over at once: {}",
        path.gain()
    );
    assert!(path.steering.ssthresh_segments < 100, "{}", path.steering.ssthresh_segments);
}

#[test]
fn the_window_is_two_products_with_room_for_three_bursts_and_what_acks_bring_at_once() {
    let mut path = path();
    let window = path.for_ms(1000).cwnd_segments;
    // 2 * 40, three bursts of two, at most two for aggregates and rounding, two in the first phase of a cycle
    assert!((86..=90).contains(&window), "{window}");
}

#[test]
fn a_cycle_is_a_quarter_more_then_a_quarter_less_then_six_round_trips_of_the_bandwidth() {
    let mut path = path();
    path.for_ms(1000);
    let mut phases: Vec<(f64, u32)> = Vec::new();
    for _ in 0..2000 {
        // In flight: what the pace of the phase makes of it.
        let gain = path.gain();
        path.ack_with(|sample| {
            let flight = if gain > 1.1 { 60 } else { RTT_SEGMENTS };
            (sample.prior_in_flight_segments, sample.in_flight_segments) = (flight, flight);
        });
        match phases.last_mut() {
            Some((of, ms)) if near(*of, path.gain()) => *ms += 1,
            _ => phases.push((path.gain(), 1)),
        }
    }
    let probe = phases.iter().position(|(gain, _)| near(*gain, 1.25)).expect("a probe");
    for cycle in phases[probe..].chunks_exact(3) {
        let [(up, up_ms), (down, down_ms), (level, level_ms)] = cycle[..] else { unreachable!() };
        assert!(near(up, 1.25) && near(down, 0.75) && near(level, 1.0), "{cycle:?}");
        // Each lasts a little more than the lowest round trip; the drain ends as soon as no more than the product is in flight.
        assert!((41..=43).contains(&up_ms), "{cycle:?}");
        assert!(down_ms <= 43, "{cycle:?}");
        assert!((6 * 41..=6 * 43).contains(&level_ms), "{cycle:?}");
    }
    assert!(phases[probe..].len() >= 9, "{phases:?}");
}

#[test]
fn after_ten_seconds_without_a_lower_round_trip_four_segments_are_in_flight_for_200_ms() {
    let mut path = path();
    path.for_ms(9_900);
    assert!(path.steering.cwnd_segments > 80);
    let (mut small, mut limited) = (0, 0);
    for _ in 0..1_000 {
        let steering = path.ack();
        small += u32::from(steering.cwnd_segments == 4);
        limited += steering.app_limited;
        path.steering.app_limited = 0;
    }
    // 200 ms from when the flight is small, and until a round trip is over.
    assert!((201..=245).contains(&small), "{small}");
    assert!((small..=small + 1).contains(&limited), "what is measured meanwhile is not the path's: {limited}");
    assert!(path.steering.cwnd_segments > 80, "the window is as before");
}

#[test]
fn a_loss_changes_no_rate_and_a_recovery_sends_what_is_delivered_for_one_round_trip() {
    let mut path = path();
    let before = path.for_ms(1000);
    let mut window =
        Window { cwnd_segments: before.cwnd_segments, cwnd_count: 0, ssthresh_segments: before.ssthresh_segments };
    path.law.on_lost(&Lost::default(), &mut window);
    assert_eq!((window.cwnd_segments, window.ssthresh_segments), (before.cwnd_segments, before.ssthresh_segments));
    path.state = RECOVERY;
    let first = path.ack_with(|sample| {
        sample.lost_segments = 1;
        sample.in_flight_segments = 30;
    });
    assert_eq!(first.cwnd_segments, 31, "in flight, and what this ACK delivers");
    assert!(path.gain() > 0.74);
    path.for_ms(RTT_SEGMENTS + 1);
    path.state = OPEN;
    let after = path.for_ms(RTT_SEGMENTS);
    assert!(after.cwnd_segments >= before.cwnd_segments - 2, "{} {}", after.cwnd_segments, before.cwnd_segments);
}

#[test]
fn after_a_timeout_the_window_of_before_comes_back_with_the_recoverys_end() {
    let mut path = path();
    let before = path.for_ms(1000).cwnd_segments;
    let mut window = Window { cwnd_segments: before, cwnd_count: 0, ssthresh_segments: 50 };
    path.law.on_timed_out(&Lost::default(), &mut window);
    path.steering.cwnd_segments = 1; // the stack's
    path.state = 4;
    assert_eq!(path.ack().cwnd_segments, 4, "the least window");
    path.state = OPEN;
    assert!(path.ack().cwnd_segments >= before, "that of before");
    path.law.on_undone(&Undone::default(), &mut window);
}

#[test]
fn two_intervals_that_lose_a_fifth_at_one_rate_are_a_policers() {
    let mut path = path();
    path.for_ms(1000);
    let mut paces = Vec::new();
    for segment in 0..3_000 {
        path.ack_with(|sample| sample.lost_segments = u32::from(segment % 3 == 0));
        paces.push(path.gain());
    }
    // Two intervals of at least four round trips, then one rate for 48 round trips: no probe of more.
    let kept = paces.iter().rev().take_while(|gain| near(**gain, 1.0)).count();
    let longest = paces.split(|gain| !near(*gain, 1.0)).map(<[f64]>::len).max().expect("some");
    assert!(longest.max(kept) > 40 * RTT_SEGMENTS as usize, "{longest}");
}
