//! The receiving half alone.

use super::*;
use crate::config::DelayedAck;
use crate::segment::Timestamps;
use lasthop_laws::Bound;
use proptest::collection::vec;
use proptest::prelude::*;

const RTO: Span = Span::from_millis(300);
const SRTT: Span = Span::from_millis(100);

/// A receiver that expects `rcv_nxt`.
fn receiver(config: &Config, rcv_nxt: u64) -> Receiver {
    let mut receiver = Receiver::new(config);
    receiver.on_syn(&Segment { seq: rcv_nxt - 1, syn: true, ..Segment::default() });
    receiver.establish(500, true, Feedback::None, 0);
    receiver.window(Time::ZERO);
    receiver
}

fn acknowledging_all() -> Config {
    Config { delayed_ack: DelayedAck::OFF, ..Config::linux_2012() }
}

/// 500 bytes arrive; returns the ACK and its SACK blocks.
fn arrive(receiver: &mut Receiver, seq: u64) -> (u64, Vec<Range<u64>>) {
    let segment = Segment { seq, payload_bytes: 500, has_ack: true, ..Segment::default() };
    receiver.on_segment(Time::ZERO, &segment, RTO, SRTT);
    receiver.check();
    assert!(receiver.wants_ack());
    let (sack, complete) = receiver.sack_blocks(4);
    receiver.on_ack_sent(complete);
    (receiver.rcv_nxt(), sack.iter(receiver.rcv_nxt()).collect())
}

/// RFC 2018 §7, case 2: the first of eight is lost.
#[test]
fn rfc_2018_the_first_segment_is_dropped() {
    let mut receiver = receiver(&acknowledging_all(), 5000);
    for number in 1..8 {
        let (ack, blocks) = arrive(&mut receiver, 5000 + 500 * number);
        assert_eq!((ack, &blocks[..]), (5000, &[5500..6000 + 500 * (number - 1)][..]));
    }
}

/// RFC 2018 §7, case 3: the second, fourth, sixth and eighth are lost; then the fourth and the second arrive.
#[test]
fn rfc_2018_every_second_segment_is_dropped() {
    let mut receiver = receiver(&acknowledging_all(), 5000);
    assert_eq!(arrive(&mut receiver, 5000), (5500, vec![]));
    assert_eq!(arrive(&mut receiver, 6000), (5500, Vec::from([6000..6500])));
    assert_eq!(arrive(&mut receiver, 7000), (5500, vec![7000..7500, 6000..6500]));
    assert_eq!(arrive(&mut receiver, 8000), (5500, vec![8000..8500, 7000..7500, 6000..6500]));
    assert_eq!(arrive(&mut receiver, 6500), (5500, vec![6000..7500, 8000..8500]));
    assert_eq!(arrive(&mut receiver, 5500), (7500, Vec::from([8000..8500])));
}

/// RFC 2883 §4.1.1: a duplicate below the ACK. §4.1.3: a duplicate of out-of-order data, within the second block.
#[test]
fn rfc_2883_duplicates_are_reported_first_and_once() {
    let mut receiver = receiver(&acknowledging_all(), 3000);
    arrive(&mut receiver, 3000);
    arrive(&mut receiver, 3500);
    assert_eq!(arrive(&mut receiver, 3000), (4000, Vec::from([3000..3500])));
    assert_eq!(arrive(&mut receiver, 5000), (4000, Vec::from([5000..5500])));
    assert_eq!(arrive(&mut receiver, 4500), (4000, Vec::from([4500..5500])));
    assert_eq!(arrive(&mut receiver, 5000), (4000, vec![5000..5500, 4500..5500]));
    assert_eq!(arrive(&mut receiver, 5500), (4000, Vec::from([4500..6000])));
}

/// Linux's tcp_dec_quickack_mode(): only an ACK of data uses up one of those that go at once.
#[test]
fn an_ack_beside_data_of_ones_own_is_no_quick_ack() {
    let delayed_ack = DelayedAck { quick_segments: 2, ..DelayedAck::LINUX };
    let mut receiver = receiver(&Config { delayed_ack, ..Config::linux_2012() }, 1000);
    receiver.on_ack_sent(true);
    receiver.on_ack_sent(true);
    arrive(&mut receiver, 1000);
    arrive(&mut receiver, 1500);
    let third = Segment { seq: 2000, payload_bytes: 500, has_ack: true, ..Segment::default() };
    receiver.on_segment(Time::ZERO, &third, RTO, SRTT);
    assert!(!receiver.wants_ack());
}

/// Linux's __tcp_ack_snd_check(): the three duplicates before compression come after the quick ACKs. What arrives twice
/// beyond a gap is reported, but makes no more ACKs quick.
#[test]
fn compression_begins_three_duplicates_after_the_quick_acks() {
    let delayed_ack = DelayedAck { quick_segments: 2, ..DelayedAck::LINUX };
    let mut receiver = receiver(&Config { delayed_ack, sack_compression: true, ..Config::linux_2012() }, 1000);
    for number in [2, 3, 4, 5] {
        arrive(&mut receiver, 1000 + 500 * number);
    }
    assert_eq!(arrive(&mut receiver, 3500), (1000, vec![3500..4000, 2000..4000]));
    let segment = Segment { seq: 4000, payload_bytes: 500, has_ack: true, ..Segment::default() };
    receiver.on_segment(Time::ZERO, &segment, RTO, SRTT);
    assert!(!receiver.wants_ack());
    assert_eq!(receiver.next_timeout(), Time::ZERO + COMPRESSION_DELAY);
}

/// A segment with TSval arrives; returns TSecr of an ACK sent now.
fn echo(receiver: &mut Receiver, seq: u64, value: u32) -> u32 {
    let timestamps = Some(Timestamps { value, echo: 0 });
    let segment = Segment { seq, payload_bytes: 500, has_ack: true, timestamps, ..Segment::default() };
    receiver.on_segment(Time::ZERO, &segment, RTO, SRTT);
    receiver.ts_recent()
}

/// RFC 7323 §4.3, case A: segments in order, one ACK for three.
#[test]
fn rfc_7323_a_delayed_ack_echoes_the_first_of_its_segments() {
    let delayed_ack = DelayedAck { segments: 3, quick_segments: 0, ..DelayedAck::LINUX };
    let mut receiver = receiver(&Config { delayed_ack, ..Config::linux_2012() }, 1000);
    assert_eq!([(1000, 1), (1500, 2), (2000, 3)].map(|(seq, value)| echo(&mut receiver, seq, value)), [1, 1, 1]);
    assert!(receiver.wants_ack());
    receiver.on_ack_sent(true);
    assert_eq!(echo(&mut receiver, 2500, 4), 4);
}

/// RFC 7323 §4.3, case B: C before B, E before D; each is acknowledged.
#[test]
fn rfc_7323_an_ack_of_a_hole_echoes_what_came_last_in_order() {
    let mut receiver = receiver(&acknowledging_all(), 1000);
    let mut step = |seq, value| {
        let echo = echo(&mut receiver, seq, value);
        receiver.on_ack_sent(true);
        (echo, receiver.rcv_nxt())
    };
    assert_eq!(step(1000, 1), (1, 1500)); // A
    assert_eq!(step(2000, 3), (1, 1500)); // C
    assert_eq!(step(1500, 2), (2, 2500)); // B
    assert_eq!(step(3000, 5), (2, 2500)); // E
    assert_eq!(step(2500, 4), (4, 3500)); // D
}

/// RFC 7323 §5.3: R1, with Linux's tick of grace; and R2 before R3, so that a duplicate is not recorded.
///
/// ```text
/// sent at   10 A    11 B    12 C    13 D    38 E    39 F    40 B again
/// arrives      A            C                               B again, D: stale, E: stale, F
/// ```
#[test]
fn what_a_retransmission_has_overtaken_is_dropped_as_stale() {
    let mut receiver = receiver(&acknowledging_all(), 1000);
    let of = |seq, value| Segment {
        seq,
        payload_bytes: 500,
        has_ack: true,
        timestamps: Some(Timestamps { value, echo: 0 }),
        ..Segment::default()
    };
    for (seq, value, recorded) in [(1000, 10, 10), (2000, 12, 10), (1500, 40, 40)] {
        assert!(!receiver.is_stale(&of(seq, value)));
        assert_eq!(echo(&mut receiver, seq, value), recorded);
        receiver.on_ack_sent(true);
    }
    assert_eq!([13, 38, 39, 40].map(|value| receiver.is_stale(&of(2500, value))), [true, true, false, false]);
    // D is lost by that: its ACK is at once, and reports nothing.
    receiver.on_rejected(Time::ZERO, &of(2500, 13));
    assert!(receiver.wants_ack());
    assert_eq!((receiver.rcv_nxt(), receiver.sack_blocks(4).0.len()), (2500, 0));
    receiver.on_ack_sent(true);
    // The first B arrives at last: stale, and a duplicate.
    receiver.on_rejected(Time::ZERO, &of(1500, 11));
    assert_eq!(receiver.sack_blocks(4).0.iter(2500).collect::<Vec<_>>(), Vec::from([1500..2000]));
    receiver.on_ack_sent(true);
    // A duplicate that is newer, as of a needless retransmission, is rejected too, so that it makes nothing stale.
    assert!(receiver.is_old(&of(1500, 50)) && !receiver.is_stale(&of(1500, 50)));
    // As in Linux, data that are not acknowledged yet are not old.
    assert_eq!(echo(&mut receiver, 2500, 51), 51);
    assert!(!receiver.is_old(&of(2500, 52)));
}

#[test]
fn the_delay_follows_the_arrivals_between_its_limits() {
    let delayed_ack = DelayedAck { quick_segments: 0, ..DelayedAck::LINUX };
    let mut receiver = receiver(&Config { delayed_ack, ..Config::linux_2012() }, 0x1000);
    let mut seq = 0x1000;
    let mut arrive = |receiver: &mut Receiver, ms: u64| {
        let segment = Segment { seq, payload_bytes: 500, has_ack: true, ..Segment::default() };
        seq += 500;
        receiver.on_segment(Time::ZERO + Span::from_millis(ms), &segment, RTO, SRTT);
        receiver.wait
    };
    assert_eq!(arrive(&mut receiver, 0), Span::from_millis(40));
    // The estimate was too short: 80 ms.
    receiver.on_timeout(Time::ZERO + Span::from_millis(40));
    assert_eq!(receiver.wait, Span::from_millis(80));
    receiver.on_ack_sent(true);
    // A gap of 60 ms: 80 / 2 + 60 = 100. A gap of 5 ms: 100 / 2 + 20 = 70.
    assert_eq!(arrive(&mut receiver, 60), Span::from_millis(100));
    assert_eq!(arrive(&mut receiver, 65), Span::from_millis(70));
    for ms in 66..100 {
        arrive(&mut receiver, ms);
    }
    assert_eq!(receiver.wait, Span::from_millis(40));
}

#[test]
fn a_window_never_takes_back_what_it_promised() {
    let config = Config { receive_buffer: lasthop_units::Bytes::new(5000), ..acknowledging_all() };
    let mut receiver = receiver(&config, 1000);
    receiver.pause_reading();
    let mut edges = Vec::new();
    for number in 0..10 {
        arrive(&mut receiver, 1000 + 500 * number);
        edges.push(receiver.rcv_nxt() + u64::from(receiver.window(Time::ZERO)));
    }
    assert_eq!(edges, [6000; 10]);
    assert_eq!(receiver.window(Time::ZERO), 0);
    receiver.resume_reading();
    assert!(receiver.wants_ack());
    assert_eq!((receiver.window(Time::ZERO), receiver.received_bytes()), (5000, 5999 - 1000 + 1000));
}

#[derive(Clone, Debug)]
enum Event {
    /// A segment arrives, this many after the next one.
    Arrive(u64),
    Pause,
    Resume,
    /// (limit in bytes, milliseconds of its lease)
    Bound(u64, u64),
    Wait(u64),
}

proptest! {
    /// RFC 7323 §2.4, whatever the limits; and with nothing unread there is room for two segments.
    #[test]
    fn the_edge_never_moves_back_under_limits_that_fall_rise_and_lapse(
        shift in 0..8_u8, compresses in any::<bool>(), events in vec(prop_oneof![
            4 => (0..3_u64).prop_map(Event::Arrive),
            1 => Just(Event::Pause),
            1 => Just(Event::Resume),
            2 => (0..60_000_u64, 0..50_u64).prop_map(|(limit, lease)| Event::Bound(limit, lease)),
            2 => (0..20_u64).prop_map(Event::Wait),
        ], 1..200),
    ) {
        let buffer = lasthop_units::Bytes::new(50_000);
        let config = Config { receive_buffer: buffer, sack_compression: compresses, ..acknowledging_all() };
        let mut receiver = receiver(&config, 1000);
        receiver.establish(500, true, Feedback::None, shift);
        let (mut now, mut edge) = (Time::ZERO, 0);
        for event in events {
            match event {
                Event::Arrive(gap) => {
                    let seq = receiver.rcv_nxt() + 500 * gap;
                    // A sender does not send beyond the edge.
                    if seq + 500 <= edge {
                        let segment = Segment { seq, payload_bytes: 500, has_ack: true, ..Segment::default() };
                        receiver.on_segment(now, &segment, RTO, SRTT);
                    }
                }
                Event::Pause => receiver.pause_reading(),
                Event::Resume => receiver.resume_reading(),
                Event::Bound(max_receive_bytes, lease) => {
                    let bound = Bound { max_receive_bytes, ..Bound::default() };
                    receiver.set_bound(bound.leased(now, Span::from_millis(lease)));
                }
                Event::Wait(milliseconds) => now += Span::from_millis(milliseconds),
            }
            let window = u64::from(receiver.window(now));
            receiver.on_ack_sent(true);
            receiver.check();
            let before = std::mem::replace(&mut edge, receiver.rcv_nxt() + window);
            prop_assert!(edge >= before);
            prop_assert!(receiver.unread > 0 || window >= 2 * 500, "{window}");
        }
    }
}

#[test]
fn a_window_is_limited_until_the_lease_ends() {
    let config = Config { receive_buffer: lasthop_units::Bytes::new(50_000), ..acknowledging_all() };
    let mut receiver = receiver(&config, 1000); // the edge is at 51,000
    let bound = Bound { max_receive_bytes: 5000, ..Bound::default() };
    receiver.set_bound(bound.leased(Time::ZERO, Span::from_millis(10)));
    let mut windows = Vec::new();
    for number in 0..100 {
        arrive(&mut receiver, 1000 + 500 * number);
        windows.push(receiver.window(Time::ZERO));
    }
    // What was offered is used up: 50,000 - 500 each, until 5000 are left.
    assert_eq!(windows[..3], [49_500, 49_000, 48_500]);
    assert_eq!(windows[88..93], [5500, 5000, 5000, 5000, 5000]);
    let at_its_end = Time::ZERO + Span::from_millis(10);
    assert_eq!((receiver.window(at_its_end), receiver.window(Time::ZERO)), (50_000, 50_000));
}

/// Linux's tcp_enter_quickack_mode(): a sender of duplicates has lost something, possibly ACKs.
#[test]
fn after_a_duplicate_segments_are_acknowledged_at_once_again() {
    let delayed_ack = DelayedAck { quick_segments: 3, ..DelayedAck::LINUX };
    let mut receiver = receiver(&Config { delayed_ack, ..Config::linux_2012() }, 1000);
    let mut seq = 1000;
    let mut acks = |receiver: &mut Receiver, count: usize| {
        let one = |_| {
            let segment = Segment { seq, payload_bytes: 500, has_ack: true, ..Segment::default() };
            seq += 500;
            receiver.on_segment(Time::ZERO, &segment, RTO, SRTT);
            let wants = receiver.wants_ack();
            if wants {
                receiver.on_ack_sent(true);
            }
            wants
        };
        (0..count).map(one).collect::<Vec<bool>>()
    };
    assert_eq!(acks(&mut receiver, 7), [true, true, true, false, true, false, true]);
    let duplicate = Segment { seq: 1000, payload_bytes: 500, has_ack: true, ..Segment::default() };
    receiver.on_segment(Time::ZERO, &duplicate, RTO, SRTT);
    receiver.on_ack_sent(true);
    assert_eq!(acks(&mut receiver, 4), [true, true, false, true]); // the duplicate's ACK was the first of three
}

/// RFC 1122 §4.2.3.3: the right edge moves by whole segments.
#[test]
fn a_window_opens_by_segments() {
    let config = Config { receive_buffer: lasthop_units::Bytes::new(5000), ..acknowledging_all() };
    let mut receiver = receiver(&config, 1000);
    let mut edges = Vec::new();
    for number in 0..11 {
        let segment = Segment { seq: 1000 + 100 * number, payload_bytes: 100, has_ack: true, ..Segment::default() };
        receiver.on_segment(Time::ZERO, &segment, RTO, SRTT);
        edges.push(receiver.rcv_nxt() + u64::from(receiver.window(Time::ZERO)));
    }
    assert_eq!(edges, [6000, 6000, 6000, 6000, 6500, 6500, 6500, 6500, 6500, 7000, 7000]);
}

/// Linux's tcp_comp_sack_nr: 44 segments do not wait. 3 + 1 at once, so 3, then each 45th.
#[test]
fn compression_ends_after_forty_four_segments() {
    let delayed_ack = DelayedAck { quick_segments: 0, ..DelayedAck::LINUX };
    let config = Config { delayed_ack, sack_compression: true, ..Config::linux_2012() };
    let mut receiver = receiver(&config, 1000);
    receiver.edge = 1 << 40;
    let mut acked = Vec::new();
    for number in 1..=100 {
        let segment = Segment { seq: 1000 + 500 * number, payload_bytes: 500, has_ack: true, ..Segment::default() };
        receiver.on_segment(Time::ZERO, &segment, RTO, SRTT);
        if receiver.wants_ack() {
            acked.push(number);
            receiver.on_ack_sent(true);
        }
    }
    assert_eq!(acked, [1, 2, 3, 48, 93]);
    assert_eq!(receiver.next_timeout(), Time::ZERO + Span::from_millis(1));
}

/// Linux's tcp_sack_new_ofo_skb(): with two blocks already there a third one that waits would be forgotten, so what waits goes, and the new
/// one waits by itself. 5 is the second block, 7 the third; 13 waits for the timer.
#[test]
fn compression_ends_where_more_blocks_wait_than_an_ack_reports() {
    let delayed_ack = DelayedAck { quick_segments: 0, ..DelayedAck::LINUX };
    let mut receiver = receiver(&Config { delayed_ack, sack_compression: true, ..Config::linux_2012() }, 1000);
    receiver.edge = 1 << 40;
    let mut acked = Vec::new();
    for number in [1, 2, 3, 5, 7, 9, 10, 11, 13] {
        let segment = Segment { seq: 1000 + 500 * number, payload_bytes: 500, has_ack: true, ..Segment::default() };
        receiver.on_segment(Time::ZERO, &segment, RTO, SRTT);
        if receiver.wants_ack() {
            acked.push(number);
            receiver.on_ack_sent(true);
        }
    }
    assert_eq!(acked, [1, 2, 3, 7, 9, 13]);
    assert_eq!(receiver.next_timeout(), Time::ZERO + Span::from_millis(1));
}

/// Linux: after a gap of more than an RTO the sender has probably restarted with a small window.
#[test]
fn after_a_long_gap_segments_are_acknowledged_at_once_again() {
    let delayed_ack = DelayedAck { quick_segments: 1, ..DelayedAck::LINUX };
    let mut receiver = receiver(&Config { delayed_ack, ..Config::linux_2012() }, 1000);
    let mut seq = 1000;
    let mut acked = |ms: u64| {
        let segment = Segment { seq, payload_bytes: 500, has_ack: true, ..Segment::default() };
        seq += 500;
        receiver.on_segment(Time::ZERO + Span::from_millis(ms), &segment, RTO, SRTT);
        let wants = receiver.wants_ack();
        if wants {
            receiver.on_ack_sent(true);
        }
        wants
    };
    assert_eq!([0, 1, 2, 3].map(&mut acked), [true, false, true, false]);
    assert_eq!([200, 201, 202].map(&mut acked), [true, false, true]); // 197 ms: the pair is complete
    assert_eq!([600, 601, 602].map(&mut acked), [true, false, true]); // 398 ms: at once
}

/// Bursts of so many segments 12 us apart: which ACK comes when, by the number of segments and us.
#[test]
fn with_gro_a_burst_has_one_ack_and_single_segments_one_for_two() {
    let acks = |joined: u32, bursts: &[u64], apart_us: u64| {
        let delayed_ack = DelayedAck { quick_segments: 0, segments: joined, ..DelayedAck::LINUX };
        let mut receiver = receiver(&Config { delayed_ack, ..Config::linux_2012() }, 1000);
        let (mut acks, mut number) = (Vec::new(), 0);
        for (burst, segments) in bursts.iter().enumerate() {
            for place in 0..*segments {
                let now = Time::ZERO + Span::from_micros(burst as u64 * apart_us + 12 * place);
                let segment =
                    Segment { seq: 1000 + 500 * number, payload_bytes: 500, has_ack: true, ..Segment::default() };
                number += 1;
                let timeout = receiver.next_timeout();
                if timeout < now {
                    receiver.on_timeout(timeout);
                    acks.extend(receiver.wants_ack().then(|| (number - 1, timeout.as_nanos() / 1000)));
                    receiver.wants_ack().then(|| receiver.on_ack_sent(true));
                }
                receiver.on_segment(now, &segment, RTO, SRTT);
                acks.extend(receiver.wants_ack().then(|| (number, now.as_nanos() / 1000)));
                receiver.wants_ack().then(|| receiver.on_ack_sent(true));
            }
        }
        acks
    };
    // The last one comes after 96 us, and 100 us later the burst is over; the third burst has no successor to show its end.
    assert_eq!(acks(44, &[9, 9, 1], 1000), [(9, 196), (18, 1196)]);
    // At the limit a burst ends at once: GRO's packet is full.
    assert_eq!(acks(4, &[9, 1], 1000), [(4, 36), (8, 84)]);
    // As from 802.11g.
    assert_eq!(acks(44, &[1, 1, 1, 1, 1], 300), [(2, 400), (4, 1000)]);
    assert_eq!(acks(2, &[1, 1, 1, 1, 1], 300), [(2, 300), (4, 900)]);
}

/// RFC 1122 §4.2.3.3; Linux advertises a window that has at least doubled.
#[test]
fn a_window_update_goes_if_it_is_worth_it() {
    let config = Config { receive_buffer: lasthop_units::Bytes::new(5000), ..acknowledging_all() };
    for (segments, worth_it) in [(4, false), (5, true)] {
        let mut receiver = receiver(&config, 1000);
        receiver.pause_reading();
        for number in 0..segments {
            arrive(&mut receiver, 1000 + 500 * number);
        }
        receiver.resume_reading();
        assert_eq!(receiver.wants_ack(), worth_it);
    }
}
