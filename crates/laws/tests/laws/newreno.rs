//! RFC 5681 and RFC 6582.

use super::Sender;
use lasthop_laws::{Acked, LawName, Lost, SlowStart};

fn newreno(cwnd_segments: u32) -> Sender {
    Sender::new(LawName::NewReno, SlowStart::Standard, cwnd_segments)
}

#[test]
fn slow_start_doubles_the_window_each_round_trip() {
    // 10 segments acknowledged one by one or two by two: 20
    assert_eq!(newreno(10).acks(10), 20);
    let mut sender = newreno(10);
    assert_eq!((1..=5).map(|_| sender.ack(2)).last(), Some(20));
}

#[test]
fn congestion_avoidance_adds_one_segment_for_each_window_acknowledged() {
    let mut sender = newreno(10);
    sender.window.ssthresh_segments = 10;
    assert_eq!(sender.acks(9), 10);
    assert_eq!(sender.ack(1), 11);
    assert_eq!(sender.acks(10), 11);
    assert_eq!(sender.ack(1), 12);
    // with delayed ACKs the same: 6 ACKs of 2
    assert_eq!((1..=5).map(|_| sender.ack(2)).last(), Some(12));
    assert_eq!(sender.ack(2), 13);
}

#[test]
fn an_ack_that_crosses_ssthresh_is_shared_by_slow_start_and_congestion_avoidance() {
    let mut sender = newreno(8);
    sender.window.ssthresh_segments = 10;
    // 2 of 5 lead to ssthresh, 3 count there; 7 more make the 10 that one segment takes
    assert_eq!(sender.ack(5), 10);
    assert_eq!(sender.acks(6), 10);
    assert_eq!(sender.ack(1), 11);
}

#[test]
fn a_loss_halves_the_flight_but_not_below_two_segments() {
    // RFC 5681 (4): ssthresh = max(FlightSize / 2, 2 SMSS)
    for (flight, ssthresh) in [(20, 10), (21, 10), (4, 2), (3, 2), (1, 2), (0, 2)] {
        let mut sender = newreno(20.max(flight));
        let lost = Lost { in_flight_segments: flight, ..sender.lost() };
        sender.law.on_lost(&lost, &mut sender.window);
        assert_eq!(sender.window.ssthresh_segments, ssthresh, "of {flight}");
        assert_eq!(sender.cwnd(), 20.max(flight), "the window is the stack's to reduce");
        sender.law.on_timed_out(&lost, &mut sender.window);
        assert_eq!(sender.window.ssthresh_segments, ssthresh, "after a timeout, of {flight}");
    }
}

#[test]
fn what_limited_transmit_sent_beyond_the_window_does_not_count_as_flight() {
    // RFC 5681 section 3.2: 20 segments in the window, 2 sent on the first two duplicate ACKs
    let mut sender = newreno(20);
    let lost = Lost { in_flight_segments: 22, ..sender.lost() };
    sender.law.on_lost(&lost, &mut sender.window);
    assert_eq!(sender.window.ssthresh_segments, 10);
}

#[test]
fn a_window_that_does_not_limit_the_sender_or_must_not_grow_stays() {
    for flags in [0, Acked::MAY_GROW, Acked::CWND_LIMITED, super::GROWS | Acked::HELD] {
        for ssthresh in [1000, 10] {
            let mut sender = newreno(10);
            sender.window.ssthresh_segments = ssthresh;
            sender.flags = flags;
            assert_eq!(sender.acks(100), 10, "flags {flags}");
            assert_eq!(sender.window.cwnd_count, 0, "nothing is saved up either");
        }
    }
}
