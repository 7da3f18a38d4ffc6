//! Limits of the sender.

use super::*;

/// 1 MiB at 1889 bytes a segment: 555 in flight, however large the window.
#[test]
fn the_send_buffer_of_2012_holds_555_segments() {
    let config = Config { initial_window_segments: 1000, write_hysteresis: false, ..Config::linux_2012() };
    let mut pair = Pair::new(&config, &config, LawName::NewReno, Span::from_millis(50));
    pair.ends[CLIENT].write_endless();
    // The window of a SYN-ACK is not scaled: 65,535 bytes are 45 segments.
    pair.run_until(ms(190));
    assert_eq!(info(&pair).tcp.in_flight_segments, 45);
    pair.run_until(ms(290));
    assert_eq!(info(&pair).unacked_segments, 555);
    pair.run_until(ms(5000));
    assert_eq!(info(&pair).unacked_segments, 555);
    // Slow start goes on below twice the flight: above that the window is not the limit.
    assert_eq!(info(&pair).tcp.cwnd_segments, 1110);
}

/// A writer that has filled the buffer waits until a third of it, 185 segments, is free.
///
/// ```text
/// ms      0           100                      300
/// client  0..44       45..554: the buffer's    the ACKs come one by one; with the 185th, 370th and 555th segment
///         (window)    rest; 45 are free        185 are free, are written and go
/// ```
#[test]
fn a_writer_that_waited_writes_a_third_of_the_buffer() {
    let config = Config { initial_window_segments: 1000, timestamps: false, ..Config::linux_2012() };
    let config = Config { mss: Bytes::new(1448), ..config };
    let mut pair = Pair::new(&config, &config, LawName::NewReno, Span::from_millis(50));
    pair.ends[CLIENT].write_endless();
    pair.run_until(ms(240));
    let end = &mut pair.ends[CLIENT];
    assert_eq!((end.info().tcp.acked.get(), end.info().unacked_segments), (45 * 1448, 555 - 45));
    let mut bursts = Vec::new();
    for number in 46..=555 {
        let ack = number * 1448 + 1;
        end.on_segment(ms(300), &Segment { seq: 1, ack, has_ack: true, window_bytes: 3_000_000, ..Segment::default() });
        let burst = std::iter::from_fn(|| end.poll_transmit(ms(300))).count();
        if burst > 0 {
            bursts.push((number, burst));
        }
    }
    assert_eq!(bursts, [(185, 185), (370, 185), (555, 185)]);
}

/// RFC 5681 §4.1, Linux: after four RTOs of idleness the window is halved three times, not below the initial one.
#[test]
fn an_idle_window_is_halved_for_each_timeout() {
    for (slow_start_after_idle, write_at, expected) in [(true, 900, 80), (true, 1650, 10), (false, 1650, 160)] {
        let mut pair = established(&Config { slow_start_after_idle, ..plain() }, 150);
        run(&mut pair, 800);
        assert_eq!(info(&pair).tcp.cwnd_segments, 160);
        // The last data were sent at 300; RTO 300. 600 ms: one halving. 1350 ms: four.
        run(&mut pair, write_at);
        pair.ends[CLIENT].write(50_000);
        pair.step(pair.now);
        assert_eq!(info(&pair).tcp.cwnd_segments, expected);
    }
}

/// The host takes 6 of 10 and refuses the others. As in Linux on NET_XMIT_DROP they count as not sent, and CWR begins.
#[test]
fn what_the_host_refuses_was_not_sent() {
    let mut pair = established(&plain(), 100);
    pair.refuse = Box::new(|now, by, segment| by == CLIENT && segment.seq > 6000 && now < ms(200));
    run(&mut pair, 10);
    assert_eq!(at(&pair, 0), [0, 1, 2, 3, 4, 5]);
    assert_eq!((state(&pair), info(&pair).unacked_segments), (CongestionState::Cwr, 6));
    assert_eq!(info(&pair).tcp.ssthresh_segments, Some(3)); // FlightSize 6
    run(&mut pair, 110);
    assert_eq!(at(&pair, 100)[0], 6);
    run(&mut pair, 3000);
    assert_eq!((info(&pair).tcp.acked.get(), info(&pair).tcp.retransmits), (100_000, 0));
}

/// A host that refuses everything is asked again after an RTO.
#[test]
fn a_refusal_with_nothing_in_flight_is_retried() {
    let mut pair = established(&plain(), 1);
    pair.refuse = Box::new(|now, by, _| by == CLIENT && now < ms(160));
    run(&mut pair, 1000);
    assert_eq!(sent(&pair), [(300, 0)]);
}

/// TCP small queues: two packets and a bit may wait in the host until they leave.
#[test]
fn small_queues_keep_the_hosts_queue_short() {
    let tsq = Some(Tsq { limit: Bytes::new(4000), pacing_shift: None });
    let mut pair = established(&Config { tsq, ..plain() }, 100);
    let end = &mut pair.ends[CLIENT];
    let mut waiting = Vec::new();
    while let Some(segment) = end.poll_transmit(pair.now) {
        waiting.push(segment);
    }
    assert_eq!(waiting.len(), 4); // 4 x 1040 bytes are more than 4000; 3 are not
    end.on_departed(pair.now, waiting[0].ip_bytes());
    assert!(end.poll_transmit(pair.now).is_some());
    assert!(end.poll_transmit(pair.now).is_none());
}

/// Pacing: after the first ten segments, one per payload / (2 x window x payload / SRTT) = 100 ms / (2 x window).
#[test]
fn pacing_spreads_a_window_over_the_round_trip() {
    let mut pair = established(&Config { pacing: true, ..plain() }, 1000);
    run(&mut pair, 400);
    let times: Vec<Time> = pair.data(CLIENT, ms(150 + 200)).iter().map(|(at, ..)| *at).take(20).collect();
    let gaps: Vec<u64> = times.windows(2).map(|pair| (pair[1] - pair[0]).as_micros()).collect();
    // The window is 20 to 40 by then: between 2.5 and 1.25 ms, and never two at once.
    assert!(gaps.iter().all(|gap| (1000..=2600).contains(gap)), "{gaps:?}");
}

/// Nagle, in Minshall's form: one small segment may be out, a second waits for its ACK.
#[test]
fn a_second_small_segment_waits_for_the_ack_of_the_first() {
    let small = |nagle| {
        let mut pair = established(&Config { nagle, ..plain() }, 0);
        for _ in 0..4 {
            pair.ends[CLIENT].write(100);
            pair.flush();
        }
        run(&mut pair, 400);
        pair.data(CLIENT, ms(150)).iter().map(|(_, _, length)| *length).collect::<Vec<_>>()
    };
    assert_eq!(small(true), [100, 300]);
    assert_eq!(small(false), [100, 100, 100, 100]);
}

/// A bound limits the law's window until its lease expires.
#[test]
fn a_bound_limits_the_window_for_as_long_as_its_lease() {
    let mut pair = established(&plain(), 100_000);
    let lease = Span::from_millis(1000);
    pair.ends[CLIENT].set_bound(Bound::at_most(4).leased(pair.now, lease));
    run(&mut pair, 900);
    assert!(info(&pair).tcp.cwnd_segments <= 4);
    assert!(pair.data(CLIENT, ms(260)).len() <= 4 * 9);
    run(&mut pair, 2000);
    assert!(info(&pair).tcp.cwnd_segments > 100, "{:?}", info(&pair));
}

/// The server offered 60,000 bytes and takes none of it back: its edge stands until 5000 are left. From then on five
/// segments a round trip. The sender's own window is not at fault, so it does not grow; it is free with the next ACK after
/// the lease.
#[test]
fn a_receiver_limits_the_sender_for_as_long_as_its_lease() {
    let config = Config { receive_buffer: Bytes::new(60_000), ..plain() };
    let mut pair = established(&config, 100_000);
    let bound = Bound { max_receive_bytes: 5000, ..Bound::default() };
    pair.ends[SERVER].set_bound(bound.leased(pair.now, Span::from_millis(5000)));
    run(&mut pair, 4999);
    let of_server = pair.log.iter().filter(|(_, by, _)| *by == SERVER).map(|(.., segment)| segment);
    let edges: Vec<u64> = of_server.map(|segment| segment.ack + u64::from(segment.window_bytes)).collect();
    assert!(edges.is_sorted() && edges[0] == 60_001, "{edges:?}");
    let of = |from: u64, pair: &Pair| sent(pair).iter().filter(|(at, _)| (from..from + 1000).contains(at)).count();
    assert_eq!(of(2000, &pair), 50);
    assert_eq!((info(&pair).unacked_segments, info(&pair).tcp.retransmits), (5, 0));
    assert_eq!(pair.ends[SERVER].info().tcp.received.get(), info(&pair).tcp.acked.get() + 5000);
    run(&mut pair, 7000);
    assert!(of(6000, &pair) > 500, "{}", of(6000, &pair));
}

/// The least limit is two full segments: the receiver acknowledges the second at once, so nothing waits for its timer.
#[test]
fn no_receiver_stops_its_sender() {
    let config = Config { delayed_ack: DelayedAck::LINUX, receive_buffer: Bytes::new(4000), ..plain() };
    let mut pair = established(&config, 100_000);
    pair.ends[SERVER]
        .set_bound(Bound { max_receive_bytes: 1, ..Bound::default() }.leased(pair.now, Span::from_secs(60)));
    run(&mut pair, 10_000);
    let pairs = (2000..10_000).step_by(100).flat_map(|at| [at, at]);
    let sent: Vec<u64> = sent(&pair).into_iter().map(|(at, _)| at).filter(|at| (2000..10_000).contains(at)).collect();
    assert_eq!(sent, pairs.collect::<Vec<_>>());
}

/// The receiver sees the path's round trip in what it is sent, in ticks of its clock of 10 ms.
#[test]
fn a_receiver_measures_the_round_trip_too() {
    let config = Config { timestamps: true, ..plain() };
    let mut pair = established(&config, 100_000);
    run(&mut pair, 3000);
    let rtt = pair.ends[SERVER].info().tcp.receive_rtt.expect("samples");
    assert!((Span::from_millis(90)..=Span::from_millis(110)).contains(&rtt), "{rtt}");
    assert_eq!(info(&pair).tcp.receive_rtt, None);
}

/// 0.4 Mb/s: 1000 bytes take 20 ms.
fn slow_pace() -> Bound {
    Bound { max_pacing_rate: Rate::from_mbps(0.4), ..Bound::default() }
}

/// ```text
/// ms      0       100      120      160      200      240
/// client  0..9    10, 11   12, 13   14, 15   16, 17   18, 19
/// ```
/// The first ten are not paced. Later ones are sent in twos, 40 ms apart, whatever the window; a late burst has half of
/// its time credited.
#[test]
fn under_a_limit_of_the_pacing_rate_segments_go_in_twos() {
    for pacing in [false, true] {
        let mut pair = established(&Config { pacing, ..plain() }, 1000);
        pair.ends[CLIENT].set_bound(slow_pace().leased(pair.now, Span::from_secs(10)));
        run(&mut pair, 1000);
        let expected = [100, 120].into_iter().chain((160..=1000).step_by(40)).flat_map(|at| [at, at]);
        let later: Vec<u64> = sent(&pair).into_iter().skip(10).map(|(at, _)| at).collect();
        assert_eq!(later, expected.collect::<Vec<_>>(), "pacing = {pacing}");
        assert_eq!((info(&pair).paced_by_bound, info(&pair).tcp.pacing_rate), (true, Some(Rate::from_mbps(0.4))));
    }
}

/// 50,000 bytes per second are 5 segments in 100 ms. A larger window is not used, and an unused one does not grow
/// (tcp_cwnd_validate()); in slow start, not beyond twice what is used.
#[test]
fn under_a_limit_of_the_pacing_rate_the_window_does_not_grow_without_end() {
    let mut pair = established(&plain(), 100_000);
    pair.ends[CLIENT].set_bound(slow_pace().leased(pair.now, Span::from_secs(100)));
    run(&mut pair, 20_000);
    let info = info(&pair);
    assert!((10..=24).contains(&info.tcp.cwnd_segments) && info.unacked_segments <= 6, "{info:?}");
}

/// ```text
/// window 4   client  0, 1            2, 3            4, 5         40 ms apart; each pair is acknowledged when it is there
/// window 2   client  0       1       2       3       4            20 ms apart; 0 is acknowledged with 1, so after 24 ms
/// ```
/// At most half a window is sent at once, and the receiver waits for two segments before it acknowledges. The rate is
/// the same.
#[test]
fn a_paced_window_of_four_segments_does_not_wait_for_delayed_acks_and_one_of_two_does() {
    let config = Config { delayed_ack: DelayedAck::LINUX, ..plain() };
    for (window, at_once, rtt_ms) in [(4, 2, 4), (2, 1, 24)] {
        let mut pair = Pair::new(&config, &config, LawName::NewReno, Span::from_millis(2));
        pair.ends[CLIENT].write_endless();
        let bound = Bound { max_segments: window, max_pacing_rate: Rate::from_mbps(0.4), ..Bound::default() };
        pair.ends[CLIENT].set_bound(bound.leased(Time::ZERO, Span::from_secs(60)));
        pair.run_until(ms(20_000));
        let acked = info(&pair).tcp.acked.get();
        pair.run_until(ms(40_000));
        // 20 s at 50,000 bytes per second, plus or minus a window.
        let in_20_s = info(&pair).tcp.acked.get() - acked;
        assert!((996_000..=1_004_000).contains(&in_20_s), "{in_20_s}");
        let times: Vec<Time> = pair.data(CLIENT, ms(20_000)).iter().map(|(at, ..)| *at).collect();
        for burst in times[..times.len() / at_once * at_once].chunks_exact(at_once) {
            assert!(
                burst[0] == burst[at_once - 1] && burst[0].as_nanos() % 20_000_000 == times[0].as_nanos() % 20_000_000
            );
        }
        assert_eq!(times[at_once] - times[0], Span::from_millis(20 * at_once as u64));
        assert_eq!(info(&pair).latest_rtt, Some(Span::from_millis(rtt_ms)));
    }
}

/// ```text
/// client    0  1 2   3 4   5 6 ...                 two at once, 24 ms apart
/// server        2     4     6    1 is acknowledged with 0, 2 waits for 3, and so on
/// ```
/// Sixteen segments are acknowledged at once, then every second one, whatever the bursts. If both get out of step, they
/// stay so until PSH.
#[test]
fn a_receiver_that_acknowledges_across_bursts_does_so_until_the_next_push() {
    for quick_segments in [15, 16, 17, 18] {
        let config = Config { delayed_ack: DelayedAck { quick_segments, ..DelayedAck::LINUX }, ..plain() };
        let mut pair = Pair::new(&config, &config, LawName::NewReno, Span::from_millis(2));
        pair.ends[CLIENT].write_endless();
        let bound = Bound { max_segments: 4, max_pacing_rate: Rate::from_mbps(0.6), ..Bound::default() };
        pair.ends[CLIENT].set_bound(bound.leased(Time::ZERO, Span::from_secs(60)));
        pair.run_until(ms(4000));
        let pushed: Vec<u64> =
            pair.log.iter().filter(|(.., segment)| segment.push).map(|(.., segment)| segment.end()).collect();
        // 4 s at 75,000 bytes per second, and PSH each 66,000, at the end of the burst.
        assert!((4..=5).contains(&pushed.len()), "{pushed:?}");
        let acked_at: Vec<Time> = pair.acks(SERVER, ms(2000)).iter().map(|(at, _)| *at).collect();
        let sent_at: Vec<Time> =
            pair.data(CLIENT, ms(2000)).iter().map(|(at, ..)| *at + Span::from_millis(2)).collect();
        assert!(acked_at.len() > 50 && acked_at.iter().all(|at| sent_at.contains(at) || *at < sent_at[0]));
        assert_eq!(info(&pair).latest_rtt, Some(Span::from_millis(4)), "{quick_segments}");
    }
}

/// The lease expires at 1010 ms, during a wait: the next segment is sent then, and the law's window at once.
#[test]
fn a_pace_ends_with_its_lease() {
    for pacing in [false, true] {
        let mut pair = established(&Config { pacing, ..plain() }, 100_000);
        pair.ends[CLIENT].set_bound(slow_pace().leased(pair.now, Span::from_millis(1010)));
        run(&mut pair, 1009);
        let paced = sent(&pair);
        assert_eq!(paced.last().map(|(at, _)| *at), Some(1000));
        let window = info(&pair).tcp.cwnd_segments as usize;
        run(&mut pair, 1060);
        let after: Vec<u64> = sent(&pair)[paced.len()..].iter().map(|(at, _)| *at).collect();
        assert_eq!(after[0], 1010, "pacing = {pacing}");
        if pacing {
            // 2 x window x 1000 bytes in 100 ms, or a fifth more than the window: at least half of it in these 50 ms.
            assert!(after.len() >= window / 2 - 5, "{} of {window}", after.len());
        } else {
            // The whole window but the flight: the segments sent in the last 100 ms.
            assert!(after.iter().filter(|at| **at == 1010).count() >= window - 6, "{after:?} of {window}");
        }
        run(&mut pair, 1200);
        assert!(!info(&pair).paced_by_bound);
    }
}

/// A limit is removed or raised before its lease expires.
#[test]
fn a_pace_ends_when_another_bound_has_none() {
    let mut pair = established(&plain(), 100_000);
    pair.ends[CLIENT].set_bound(slow_pace().leased(pair.now, Span::from_secs(10)));
    run(&mut pair, 1009);
    let paced = sent(&pair).len();
    pair.ends[CLIENT].set_bound(Bound::default().leased(pair.now, Span::from_secs(10)));
    pair.flush();
    assert!(at(&pair, 1009).len() > 10, "{:?}", &sent(&pair)[paced..]);
}

/// Retransmissions are paced, too, and no timeout fires for waiting segments: two segments take 400 ms, more than the
/// RTO.
#[test]
fn a_limit_paces_retransmissions_and_is_waited_for_by_the_timeout() {
    let mut pair = established(&plain(), 1000);
    let slow = Bound { max_pacing_rate: Rate::from_mbps(0.04), ..Bound::default() };
    pair.ends[CLIENT].set_bound(slow.leased(pair.now, Span::from_secs(100)));
    lose(&mut pair, vec![2, 5]);
    run(&mut pair, 10_000);
    assert_eq!((info(&pair).tcp.retransmits, info(&pair).tcp.timeouts.unwrap()), (2, 0));
    // After the first ten, 5000 bytes per second: 10 s, minus the first RTT, plus the credit of the first burst.
    let paced = sent(&pair).len() - 10;
    assert!((48..=52).contains(&paced), "{paced}");
}

/// ```text
/// limit of 2 Mb/s    0    1           2    3           twice two an SRTT of 100 ms, so 25 ms, half of them credited as late
/// no limit           0    1           2    3           the same
/// unpaced            0 1              2 3
/// ```
/// At 2 Mb/s a segment would take 4 ms.
#[test]
fn a_bound_that_paces_does_so_at_tcps_own_rate_below_its_limit() {
    let two = Bound { max_segments: 2, ..Bound::default() };
    let limited = Bound { max_pacing_rate: Rate::from_mbps(2.0), ..two };
    for (bound, gap_ms) in [(limited, 12), (Bound { paced: true, ..two }, 12), (two, 0)] {
        for pacing in [false, true] {
            let mut pair = established(&Config { pacing, ..plain() }, 1000);
            pair.ends[CLIENT].set_bound(bound.leased(pair.now, Span::from_secs(100)));
            run(&mut pair, 5000);
            let times: Vec<u64> = sent(&pair).iter().map(|(at, _)| *at).filter(|at| *at > 2000).collect();
            let gaps: Vec<u64> = times.windows(2).map(|two| two[1] - two[0]).collect();
            let short = gaps.iter().copied().min().expect("some");
            let gap_ms = if pacing { 12 } else { gap_ms };
            assert!(short.abs_diff(gap_ms) <= 1, "{bound}, pacing = {pacing}: {gaps:?}");
        }
    }
}

/// A window of 100 segments leaves within 50 ms of a round trip of 100 ms, in bursts of two: in the first half of slow start,
/// else within 83. Unpaced it leaves at once.
#[test]
fn a_window_is_spread_over_a_round_trip_by_tcps_own_pace() {
    let mut pair = established(&plain(), 100_000);
    let bound = Bound { min_segments: 100, max_segments: 100, paced: true, ..Bound::default() };
    pair.ends[CLIENT].set_bound(bound.leased(pair.now, Span::from_secs(100)));
    run(&mut pair, 10_000);
    let seen = info(&pair);
    // 1.2 or, with ssthresh unlimited, 2 times 100 segments of 1000 bytes in 100 ms.
    let factor = if seen.tcp.ssthresh_segments.is_none() { 2.0 } else { 1.2 };
    assert!((seen.tcp.pacing_rate.unwrap().as_mbps() / (factor * 8.0) - 1.0).abs() < 0.02, "{seen:?}");
    let times: Vec<u64> = sent(&pair).iter().map(|(at, _)| *at).filter(|at| *at > 5000).collect();
    let at_once = times.chunk_by(|a, b| a == b).map(<[u64]>::len).max().expect("some");
    // A burst takes 1 ms at 16 Mb/s, and half of it where it is late.
    assert!(at_once <= 4, "{at_once} at once");
}

/// On a path of 8 s a window of one segment is 250 bytes per second in slow start, one segment in 4 s. The least pace is 4000.
#[test]
fn no_pace_is_below_the_least_however_long_the_round_trip() {
    let mut pair = Pair::new(&plain(), &plain(), LawName::NewReno, Span::from_secs(4));
    pair.ends[CLIENT].write_endless();
    let bound = Bound { max_segments: 1, paced: true, ..Bound::default() };
    pair.ends[CLIENT].set_bound(bound.leased(Time::ZERO, Span::from_secs(1000)));
    pair.run_until(ms(60_000));
    assert!(info(&pair).tcp.srtt > Some(Span::from_secs(7)), "{:?}", info(&pair).tcp.srtt);
    assert_eq!(info(&pair).tcp.pacing_rate, Some(LEAST_PACING_RATE));
}

/// 2^-3 s of 0.4 Mb/s are 6250 bytes, so a packet has six segments and the queue two packets: eleven segments of 1040 bytes,
/// and one that exceeds 12,000. The law's own rate would allow all forty.
#[test]
fn small_queues_go_by_the_limit_of_the_pacing_rate() {
    let tsq = Some(Tsq { pacing_shift: Some(3), ..Tsq::LINUX });
    let taken = |bound: Bound| {
        let mut pair = established(&Config { tsq, initial_window_segments: 40, ..plain() }, 100);
        pair.ends[CLIENT].set_bound(bound.leased(pair.now, Span::from_secs(10)));
        std::iter::from_fn(|| pair.ends[CLIENT].poll_transmit(pair.now)).count()
    };
    assert_eq!(taken(Bound::default()), 40);
    assert_eq!(taken(slow_pace()), 12);
}
