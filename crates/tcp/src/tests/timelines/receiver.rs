//! The receiver.

use super::*;

/// ```text
/// ms      50    60    70              110
/// server  ACK 2       ACK of 2        ACK of 1 (40 ms after it)
/// data    0 1   2     3               4
/// ```
#[test]
fn a_delayed_ack_waits_for_a_second_segment_or_forty_milliseconds() {
    let delayed_ack = DelayedAck { quick_segments: 0, ..DelayedAck::LINUX };
    let mut pair = established(&Config { delayed_ack, nagle: false, ..plain() }, 2);
    let numbers = |pair: &Pair| -> Vec<(u64, u64)> {
        let since = |at: Time| (at - ms(150)).as_micros() / 1000;
        pair.acks(SERVER, ms(150)).iter().map(|(at, ack)| (since(*at), ack / 1000)).collect()
    };
    run(&mut pair, 10);
    pair.ends[CLIENT].write(1000);
    run(&mut pair, 20);
    pair.ends[CLIENT].write(1000);
    run(&mut pair, 30);
    pair.ends[CLIENT].write(1000);
    run(&mut pair, 300);
    // 0 and 1 arrive at 50; 2 at 60 waits for 3 at 70; 4 at 80 waits 40 ms.
    assert_eq!(numbers(&pair), [(50, 2), (70, 4), (120, 5)]);
}

#[test]
fn the_first_sixteen_segments_are_acknowledged_at_once() {
    let delayed_ack = DelayedAck::LINUX;
    let mut pair = established(&Config { delayed_ack, initial_window_segments: 40, ..plain() }, 40);
    run(&mut pair, 60);
    // The ACK of the handshake is the client's. 16 single ones, then 12 pairs.
    assert_eq!(pair.acks(SERVER, ms(150)).len(), 16 + 12);
}

/// ```text
/// client  0 1 2 3 4    2 lost: the ACKs for 3 and 4 go at once, so does the one that fills the gap
/// ```
#[test]
fn out_of_order_segments_and_those_that_fill_gaps_are_acknowledged_at_once() {
    let delayed_ack = DelayedAck { quick_segments: 0, segments: 8, ..DelayedAck::LINUX };
    let mut pair = established(&Config { delayed_ack, initial_window_segments: 7, ..plain() }, 7);
    lose(&mut pair, vec![2]);
    run(&mut pair, 200);
    // At 50 ms 3, 4, 5, 6 arrive out of order. At 150 ms the retransmission fills the gap.
    let acks: Vec<(u64, u64)> =
        pair.acks(SERVER, ms(150)).iter().map(|(at, ack)| ((*at - ms(150)).as_micros() / 1000, ack / 1000)).collect();
    assert_eq!(acks, [(50, 2), (50, 2), (50, 2), (50, 2), (150, 7)]);
}

/// ```text
/// ms      50                        51
/// server  three ACKs (1, 2, 3)      one ACK for 4..19: 1 ms, since 5 % of the round trip of 100 ms is more
/// ```
#[test]
fn further_duplicates_are_acknowledged_together() {
    let delayed_ack = DelayedAck { quick_segments: 0, ..DelayedAck::LINUX };
    let config = Config { delayed_ack, sack_compression: true, initial_window_segments: 20, ..plain() };
    let mut pair = established(&config, 20);
    lose(&mut pair, vec![0]);
    run(&mut pair, 60);
    let acks: Vec<(u64, Vec<_>)> = pair
        .log
        .iter()
        .filter(|(_, by, _)| *by == SERVER)
        .map(|(at, _, ack)| ((*at - ms(150)).as_micros() / 1000, ack.sack.iter(ack.ack).collect()))
        .collect();
    let sack = |to: u64| std::iter::once(1001..to * 1000 + 1).collect::<Vec<_>>();
    assert_eq!(acks, [(50, sack(2)), (50, sack(3)), (50, sack(4)), (51, sack(20))]);
}

/// The application stops reading, the window closes and is probed, the application reads again.
///
/// ```text
/// ms      0 .. 400              ~700, 1300, 2500                    3000           3050
/// client  fills 10 segments     probes (old sequence number)                       the rest
/// server                        window 0                            reads: window update
/// ```
#[test]
fn a_closed_window_is_probed_until_it_opens() {
    let receive_buffer = Bytes::new(10_000);
    let mut pair = established(&Config { receive_buffer, window_scaling: false, ..plain() }, 30);
    pair.ends[SERVER].pause_reading();
    run(&mut pair, 2900);
    assert_eq!((info(&pair).tcp.acked.get(), info(&pair).window_bytes), (10_000, 0));
    assert_eq!(pair.ends[SERVER].received_bytes(), 0);
    let probes: Vec<u64> =
        pair.acks(CLIENT, ms(200)).iter().map(|(at, _)| (*at - ms(150)).as_micros() / 1000).collect();
    // The last ACK arrives at 100. The RTO is at most 300 by then (the floor of the variance is 200 ms, the RTT 100).
    assert_eq!(probes, [400, 1000, 2200]);
    run(&mut pair, 3000);
    pair.ends[SERVER].resume_reading();
    run(&mut pair, 4000);
    assert_eq!(pair.ends[SERVER].received_bytes(), 30_000);
    assert_eq!(info(&pair).tcp.retransmits, 0);
}

/// Answered probes may go on for ever; unanswered ones end the connection.
#[test]
fn only_unanswered_probes_end_a_connection() {
    let receive_buffer = Bytes::new(10_000);
    for (answered, failed) in [(true, false), (false, true)] {
        let mut pair = established(&Config { receive_buffer, window_scaling: false, ..plain() }, 30);
        pair.ends[SERVER].pause_reading();
        pair.path = Box::new(move |now, by, _| (by == SERVER && now > ms(500) && !answered).then(Vec::new));
        pair.run_until(ms(3_000_000));
        assert_eq!(pair.ends[CLIENT].has_failed(), failed);
    }
}

/// When the window opens, the probes' backoff ends.
#[test]
fn an_opened_window_starts_the_timeout_anew() {
    let receive_buffer = Bytes::new(10_000);
    let mut pair = established(&Config { receive_buffer, window_scaling: false, ..plain() }, 30);
    pair.ends[SERVER].pause_reading();
    run(&mut pair, 3000);
    assert_eq!(info(&pair).rto, Span::from_millis(2400)); // three probes
    pair.ends[SERVER].resume_reading();
    run(&mut pair, 3060);
    assert_eq!(info(&pair).rto, Span::from_millis(300));
}

/// A full segment has no room for SACK blocks. A pure ACK with them is sent as well, so that losses are found in time.
#[test]
fn sack_blocks_find_their_way_beside_full_segments() {
    let mut pair = established(&plain(), 100);
    pair.ends[SERVER].write_endless();
    lose(&mut pair, vec![0]);
    run(&mut pair, 110);
    assert_eq!(at(&pair, 100).iter().filter(|number| **number == 0).count(), 1);
    assert!(info(&pair).sacked_segments >= 3);
}

/// Data in both directions carry the ACKs.
#[test]
fn acks_ride_on_data() {
    let mut pair = established(&Config { initial_window_segments: 4, ..plain() }, 4);
    pair.ends[SERVER].write(4000);
    run(&mut pair, 400);
    assert_eq!([pair.ends[CLIENT].received_bytes(), pair.ends[SERVER].received_bytes()], [4000, 4000]);
    // Both sides wrote at once: four pure ACKs each at 50, since there were no data to carry them.
    assert_eq!([CLIENT, SERVER].map(|end| pair.acks(end, ms(150)).len()), [4, 4]);
    // Data in answer to data carry the ACK.
    pair.log.clear();
    pair.ends[CLIENT].write(1000);
    run(&mut pair, 450);
    pair.ends[SERVER].write(1000);
    run(&mut pair, 470);
    assert_eq!(pair.log.iter().filter(|(_, by, segment)| *by == SERVER && segment.payload_bytes > 0).count(), 1);
}
