//! Who sends what when: a picture, then the same in code. The path takes 50 ms each way and packets take no time; segments
//! carry 1000 bytes and are numbered from 0 after the handshake, which takes the first 100 ms.

use super::*;
use crate::{CongestionState, DelayedAck, Recovery, RtoEstimator, Tsq};
use control::bound::Bound;
use units::{Bytes, Rate};

/// No delayed ACKs, no options that get in the way: payload 1000 bytes.
fn plain() -> Config {
    Config {
        mss: Bytes::new(1000),
        timestamps: false,
        rack_tlp: false,
        delayed_ack: DelayedAck::OFF,
        slow_start: control::law::SlowStart::Standard,
        ..Config::linux_2012()
    }
}

/// The handshake is over, at 100 ms; the client has written `segments` and nothing has been sent.
fn established(config: &Config, segments: u64) -> Pair {
    let mut pair = Pair::new(config, config, LawName::NewReno, Span::from_millis(50));
    pair.run_until(ms(150));
    assert!(pair.ends.iter().all(Endpoint::is_established));
    pair.log.clear();
    pair.ends[CLIENT].write(segments * 1000);
    pair
}

/// Loses the data segments of these numbers when they are sent for the first time.
fn lose(pair: &mut Pair, mut numbers: Vec<u64>) {
    pair.path = Box::new(move |_, by, segment| {
        let lost = by == CLIENT && segment.payload_bytes > 0 && numbers.contains(&(segment.seq / 1000));
        numbers.retain(|number| !lost || *number != segment.seq / 1000);
        lost.then(Vec::new)
    });
}

/// (milliseconds after the handshake, number) of each data segment.
fn sent(pair: &Pair) -> Vec<(u64, u64)> {
    pair.data(CLIENT, Time::ZERO).iter().map(|(at, seq, _)| ((*at - ms(150)).as_micros() / 1000, seq / 1000)).collect()
}

fn state(pair: &Pair) -> CongestionState {
    pair.ends[CLIENT].info().state
}

/// What went at `at` ms: numbers.
fn at(pair: &Pair, at: u64) -> Vec<u64> {
    sent(pair).into_iter().filter(|(when, _)| *when == at).map(|(_, number)| number).collect()
}

fn info(pair: &Pair) -> crate::Info {
    pair.ends[CLIENT].info()
}

/// Runs to so many ms after the client's write.
fn run(pair: &mut Pair, to: u64) {
    pair.run_until(ms(150 + to));
}

// Slow start, fast retransmit, recovery.

/// ```text
/// ms      0           100              200              300
/// client  0..4        5..14: two for each of five ACKs, and so on
/// ```
#[test]
fn slow_start_sends_two_segments_for_each_ack() {
    let mut pair = established(&Config { initial_window_segments: 5, ..plain() }, 1000);
    run(&mut pair, 300);
    assert_eq!([0, 100, 200, 300].map(|when| at(&pair, when).len()), [5, 10, 20, 40]);
}

/// ```text
/// ms      0       100                          200
/// client  0..9    10 11 0 12 13 ..             ACK of all that was out at 100: Open
///         x       dup dup dup
/// ```
/// FlightSize 10, so ssthresh 5. PRR with 9 SACKs: the first two send 10 and 11, the third the retransmission; of the other
/// six every second sends (RecoverFS 12, ssthresh 5: ceil(5 d / 12) = 1 1 2 2 3 3 3 for d = 1..7).
#[test]
fn a_lost_segment_is_retransmitted_at_the_third_duplicate() {
    let mut pair = established(&Config { fack: false, ..plain() }, 100);
    lose(&mut pair, vec![0]);
    run(&mut pair, 110);
    assert_eq!(at(&pair, 100), [10, 11, 0, 12, 13]);
    assert_eq!(state(&pair), CongestionState::Recovery);
    run(&mut pair, 210);
    assert_eq!(state(&pair), CongestionState::Open);
    assert_eq!((info(&pair).ssthresh_segments, info(&pair).retransmits, info(&pair).timeouts), (Some(5), 1, 0));
}

/// The same without limited transmit: nothing goes before the retransmission, and RecoverFS is 10. From d = 3 on the pipe is at
/// ssthresh, and each ACK sends one.
#[test]
fn without_limited_transmit_two_duplicates_send_nothing() {
    let mut pair = established(&Config { fack: false, limited_transmit: false, ..plain() }, 100);
    lose(&mut pair, vec![0]);
    run(&mut pair, 110);
    assert_eq!(at(&pair, 100), [0, 10, 11, 12, 13]);
}

/// RFC 6582. Two of ten are lost.
///
/// ```text
/// ms      0       100                                  200                                        300
/// client  0..9    dup 10, dup 11, dup 0,               dup 13, dup 14, ACK of 0 and 1: 2 15,      full ACK
///         x x     five more: window 8 + 5 = 13: 12     dup 16
/// ```
#[test]
fn newreno_repairs_one_hole_in_a_round_trip() {
    // Scaled windows would make the first ACK a window update, not a duplicate: that of a SYN is not scaled.
    let config = Config { sack: false, recovery: Recovery::NewReno, window_scaling: false, ..plain() };
    let mut pair = established(&config, 100);
    lose(&mut pair, vec![0, 2]);
    run(&mut pair, 110);
    assert_eq!(at(&pair, 100), [10, 11, 0, 12]);
    assert_eq!((state(&pair), info(&pair).cwnd_segments), (CongestionState::Recovery, 13)); // 5 + 3 + 5
    run(&mut pair, 210);
    // The partial ACK passes two: 15 - 2 + 1 = 14, with 13 in flight.
    assert_eq!(at(&pair, 200), [13, 14, 2, 15, 16]);
    run(&mut pair, 301);
    assert_eq!(state(&pair), CongestionState::Open);
    assert_eq!(info(&pair).retransmits, 2);
}

/// RFC 6582 §3.2 (3): the full acknowledgement sets the window to ssthresh. It passes twelve segments at once, which are no
/// reason to grow: their duplicates have counted already.
///
/// ```text
/// ms      0       100                                         200
/// client  0..9    dup 10, dup 11, dup 0, six more: 12 13      ACK of 0..11: window 5
///         x
/// ```
#[test]
fn the_ack_that_ends_newrenos_recovery_grows_nothing() {
    let config = Config { sack: false, recovery: Recovery::NewReno, window_scaling: false, ..plain() };
    let mut pair = established(&config, 100);
    lose(&mut pair, vec![0]);
    run(&mut pair, 110);
    assert_eq!((at(&pair, 100), info(&pair).cwnd_segments), (vec![10, 11, 0, 12, 13], 14)); // 5 + 3 + 6
    run(&mut pair, 210);
    assert_eq!((state(&pair), info(&pair).ssthresh_segments), (CongestionState::Open, Some(5)));
    assert_eq!(info(&pair).cwnd_segments, 5);
}

/// RFC 6582 §3.2 (4): only the first partial ACK starts the timer anew, so that many holes end in a timeout.
///
/// ```text
/// ms      0        100   200   300   400  ...
/// client  0..29    0     3     6     9    ...      lost: every third
/// timer            400   500                       first partial ACK at 200: 200 + 300; then at 500 it fires
/// ```
#[test]
fn newreno_is_impatient() {
    let config =
        Config { sack: false, recovery: Recovery::NewReno, initial_window_segments: 30, f_rto: false, ..plain() };
    let mut pair = established(&config, 30);
    lose(&mut pair, (0..10).map(|hole| hole * 3).collect());
    run(&mut pair, 480);
    assert_eq!([100, 200, 300, 400].map(|when| at(&pair, when)), [[0], [3], [6], [9]]);
    assert_eq!(info(&pair).timeouts, 0);
    run(&mut pair, 510);
    assert_eq!((info(&pair).timeouts, state(&pair)), (1, CongestionState::Loss));
}

/// RFC 6582 §3.2 (2): duplicates of what was sent before the timeout start no fast retransmit.
///
/// ```text
/// ms      0        300        400
/// client  0..4     0          ACK of all: only 0 was lost, but the others' duplicates were lost too
/// ```
#[test]
fn duplicates_from_before_a_timeout_start_no_recovery() {
    let config = Config { sack: false, recovery: Recovery::NewReno, f_rto: false, undo: false, ..plain() };
    let mut pair = established(&config, 5);
    lose(&mut pair, vec![0, 4]);
    // The ACKs come 260 ms late: after the timeout at 300.
    let mut first = std::mem::replace(&mut pair.path, Box::new(|_, _, _| None));
    pair.path = Box::new(move |now, by, segment| match first(now, by, segment) {
        None if by == SERVER && now < ms(250) => Some(vec![Span::from_millis(310)]),
        fate => fate,
    });
    run(&mut pair, 2000);
    assert_eq!((info(&pair).timeouts, info(&pair).acked_bytes), (1, 5000));
    // 0 by the timeout, 4 when the ACK of 0..3 comes: slow start, not fast retransmit.
    assert_eq!(info(&pair).ssthresh_segments, Some(2)); // FlightSize 5, once
}

/// RFC 6675 §4 NextSeg (4): the last of the window is lost as well, and no SACK can show it.
///
/// ```text
/// ms      0          100                     200                             300
/// client  0..9       dup dup dup: 0          ACK of 0..8: rescue 9           full ACK
///         x  ..  x   three SACKs are lost
/// ```
#[test]
fn a_rescue_retransmission_repairs_a_lost_tail() {
    let config = Config { fack: false, initial_window_segments: 10, ..plain() };
    for (rescue, timeouts) in [(true, 0), (false, 1)] {
        let mut pair = established(&Config { rescue, ..config.clone() }, 10);
        lose(&mut pair, vec![0, 4, 9]);
        run(&mut pair, 210);
        // 4 is below three SACKed segments; 9 is above all.
        assert_eq!(at(&pair, 100), [0, 4], "{rescue}");
        assert_eq!(at(&pair, 200), if rescue { vec![9] } else { vec![] });
        run(&mut pair, 2000);
        assert_eq!((info(&pair).timeouts, info(&pair).acked_bytes), (timeouts, 10_000), "{rescue}");
    }
}

/// FACK: one SACK three segments above the hole is enough, and a retransmission is lost once what was sent after it is SACKed.
#[test]
fn forward_acknowledgement_needs_one_sack_and_sees_lost_retransmissions() {
    // Only segment 9 arrives: with FACK everything up to 6 is lost; by RFC 6675 nothing is.
    for (fack, lost) in [(true, 7), (false, 0)] {
        let mut pair = established(&Config { fack, ..plain() }, 10);
        lose(&mut pair, (0..9).collect());
        run(&mut pair, 110);
        assert_eq!(info(&pair).lost_segments, lost, "{fack}");
    }
    // The retransmission of 0 at 100 is lost, too. What went at 100 after it is SACKed at 200.
    for (fack, timeouts) in [(true, 0), (false, 1)] {
        let mut pair = established(&Config { fack, f_rto: false, ..plain() }, 40);
        let mut copies = 0;
        pair.path = Box::new(move |_, by, segment| {
            copies += u32::from(by == CLIENT && segment.seq == 1 && segment.payload_bytes > 0);
            (by == CLIENT && segment.seq == 1 && copies <= 2).then(Vec::new)
        });
        run(&mut pair, 3000);
        assert_eq!((info(&pair).timeouts, info(&pair).acked_bytes), (timeouts, 40_000), "{fack}");
    }
}

// Timeouts.

/// ```text
/// ms      0       300     900     2100     4500
/// client  0..9    0       0       0        0          nothing arrives; RTO 300, doubled each time
/// ```
#[test]
fn each_timeout_doubles_the_next_and_holds_ssthresh() {
    let mut pair = established(&plain(), 10);
    pair.path = Box::new(|_, _, _| Some(vec![]));
    run(&mut pair, 5000);
    assert_eq!(sent(&pair)[10..], [(300, 0), (900, 0), (2100, 0), (4500, 0)]);
    assert_eq!((info(&pair).ssthresh_segments, info(&pair).cwnd_segments), (Some(5), 1));
    assert_eq!((info(&pair).timeouts, info(&pair).rto), (4, Span::from_millis(4800)));
    assert_eq!(state(&pair), CongestionState::Loss);
}

/// ```text
/// ms      0       300    400          500                600
/// client  0..9    0      1 2          3 4 5 6            7 8 9         slow start from one segment, up to ssthresh 5
/// ```
#[test]
fn after_a_timeout_everything_is_sent_again_in_slow_start() {
    let mut pair = established(&Config { f_rto: false, ..plain() }, 10);
    lose(&mut pair, (0..10).collect());
    run(&mut pair, 700);
    assert_eq!(
        [300, 400, 500, 600].map(|when| at(&pair, when)),
        [vec![0], vec![1, 2], vec![3, 4, 5, 6], vec![7, 8, 9]]
    );
    assert_eq!(state(&pair), CongestionState::Open);
}

/// A connection that nobody answers is given up after a quarter of an hour.
#[test]
fn a_dead_path_ends_the_connection() {
    let mut pair = established(&plain(), 10);
    pair.path = Box::new(|_, _, _| Some(vec![]));
    pair.run_until(ms(920_000));
    assert!(!pair.ends[CLIENT].has_failed());
    pair.run_until(ms(1_100_000));
    assert!(pair.ends[CLIENT].has_failed() && pair.ends[CLIENT].is_closed());
    assert_eq!(pair.ends[CLIENT].next_timeout(), Time::MAX);
}

/// F-RTO, RFC 5682 §2.1 and §3.1. The path stops for 400 ms, and nothing is lost.
///
/// ```text
/// ms      0                  300             450       500
/// client  0..9               0 (needless)              ACKs of 0..9: of what was never retransmitted
///         held until 400                     arrive
/// ```
#[test]
fn a_needless_timeout_is_found_out() {
    for sack in [true, false] {
        let config = Config { sack, undo: false, ..plain() };
        let mut pair = established(&config, 100);
        pair.path = Box::new(|now, by, _| {
            let held = by == CLIENT && now < ms(550);
            held.then(|| vec![ms(550) - now + Span::from_millis(50)])
        });
        run(&mut pair, 490);
        assert_eq!((state(&pair), info(&pair).cwnd_segments), (CongestionState::Loss, 1), "{sack}");
        run(&mut pair, 510);
        assert_eq!((info(&pair).spurious_undone, info(&pair).retransmits), (1, 1), "{sack}");
        assert!(info(&pair).cwnd_segments >= 10, "{sack}: {:?}", info(&pair));
        assert_eq!(info(&pair).ssthresh_segments, None, "{sack}"); // it was infinite before
        run(&mut pair, 2000);
        assert_eq!((info(&pair).retransmits, info(&pair).acked_bytes), (1, 100_000), "{sack}");
    }
}

/// F-RTO when the loss is real.
///
/// ```text
/// ms      0       300    400                    500
/// client  0..9    0      ACK of 0: 10 11 (2b)   SACKs of 10 and 11: (3a) 1 ..
///         all lost
/// ```
#[test]
fn after_a_real_timeout_two_new_segments_are_tried_first() {
    let mut pair = established(&Config { undo: false, ..plain() }, 100);
    lose(&mut pair, (0..10).collect());
    run(&mut pair, 510);
    assert_eq!([300, 400].map(|when| at(&pair, when)), [vec![0], vec![10, 11]]);
    assert_eq!(at(&pair, 500)[..2], [1, 2]);
    assert_eq!(info(&pair).spurious_undone, 0);
    run(&mut pair, 3000);
    assert_eq!(info(&pair).acked_bytes, 100_000);
}

/// With nothing new to send F-RTO cannot tell, and the usual recovery goes on: RFC 5682 §2.1 (2b).
#[test]
fn without_new_data_a_timeout_is_taken_for_loss() {
    let mut pair = established(&Config { undo: false, ..plain() }, 10);
    lose(&mut pair, (0..10).collect());
    run(&mut pair, 410);
    assert_eq!([300, 400].map(|when| at(&pair, when)), [vec![0], vec![1, 2]]);
}

// Taking a reduction back.

/// Eifel: 0 comes 105 ms late, after three that were sent later; its ACK echoes a timestamp older than the retransmission.
#[test]
fn a_reordered_segment_gives_the_window_back_by_its_timestamp() {
    let config = Config { timestamps: true, mss: Bytes::new(1012), ..plain() };
    // With a tick of a second the retransmission has the same timestamp: no proof.
    for (switch, tick_ms, ssthresh) in [(true, 1, None), (false, 1, Some(5)), (true, 1000, Some(5))] {
        let timestamp_granularity = Span::from_millis(tick_ms);
        let undo = ssthresh.is_none();
        let mut pair = established(&Config { undo: switch, timestamp_granularity, ..config.clone() }, 100);
        pair.path = Box::new(|now, by, segment| {
            let late = by == CLIENT && segment.seq == 1 && segment.payload_bytes > 0 && now < ms(200);
            late.then(|| vec![Span::from_millis(105)])
        });
        run(&mut pair, 154);
        assert_eq!((state(&pair), info(&pair).retransmits), (CongestionState::Recovery, 1));
        run(&mut pair, 199);
        assert_eq!(info(&pair).ssthresh_segments, ssthresh);
        assert_eq!(info(&pair).spurious_undone, u64::from(undo));
        assert_eq!(pair.ends[CLIENT].sender().reordering_seen, undo); // FACK would take it for loss again
        run(&mut pair, 3000);
        assert_eq!(info(&pair).acked_bytes, 100_000);
    }
}

/// RFC 3708: without timestamps the D-SACK of the needless retransmission tells, a round trip later.
#[test]
fn a_reordered_segment_gives_the_window_back_by_its_d_sack() {
    let mut pair = established(&plain(), 30);
    pair.path = Box::new(|now, by, segment| {
        let late = by == CLIENT && segment.seq == 1 && segment.payload_bytes > 0 && now < ms(200);
        late.then(|| vec![Span::from_millis(105)])
    });
    run(&mut pair, 199);
    assert_eq!((info(&pair).ssthresh_segments, info(&pair).spurious_undone), (Some(5), 0));
    run(&mut pair, 201);
    assert_eq!((info(&pair).ssthresh_segments, info(&pair).spurious_undone), (None, 1));
}

// RACK-TLP.

fn modern() -> Config {
    Config { rack_tlp: true, ..plain() }
}

/// RFC 8985 §7: PTO = 2 SRTT = 200 ms (and Linux's 2 ms), well before the RTO at 300.
///
/// ```text
/// ms      0       100                202        302
/// client  0..9    ACKs of 0..7       9 (probe)  SACK of 9: 8 is lost; RACK: 8 again
///              xx                                  FlightSize 2
/// ```
#[test]
fn a_probe_turns_a_lost_tail_into_fast_recovery() {
    let mut pair = established(&modern(), 10);
    lose(&mut pair, vec![8, 9]);
    run(&mut pair, 1000);
    // The last ACK that advances comes at 100, so the probe goes at 302; its ACK shows that 8 is missing.
    assert_eq!(sent(&pair)[10..], [(302, 9), (402, 8)]);
    assert_eq!((info(&pair).timeouts, info(&pair).acked_bytes), (0, 10_000));
}

/// RFC 8985 §7.4.2: the probe itself repairs the loss. That is a loss all the same, and the window is reduced, once new
/// data show that the probe was no duplicate. With one segment out PTO = 2 SRTT + 200 ms is past the RTO of 300 ms, so the
/// probe goes when the RTO would.
#[test]
fn a_probe_that_repairs_a_loss_reduces_the_window() {
    let mut pair = established(&modern(), 10);
    lose(&mut pair, vec![9]);
    run(&mut pair, 510);
    assert_eq!(sent(&pair)[10..], [(400, 9)]);
    assert_eq!((info(&pair).acked_bytes, info(&pair).ssthresh_segments), (10_000, None));
    pair.ends[CLIENT].write(3000);
    run(&mut pair, 700);
    assert!(info(&pair).ssthresh_segments.is_some());
    assert_eq!((state(&pair), info(&pair).timeouts), (CongestionState::Open, 0));
}

/// A probe that was needless (only the ACK was late) is reported by D-SACK: no reduction.
#[test]
fn a_needless_probe_reduces_nothing() {
    let mut pair = established(&modern(), 10);
    pair.path = Box::new(|now, by, _| (by == SERVER && now < ms(300)).then(|| vec![Span::from_millis(230)]));
    run(&mut pair, 300);
    assert_eq!(sent(&pair)[10..], [(202, 9)]);
    run(&mut pair, 400);
    pair.ends[CLIENT].write(3000);
    run(&mut pair, 600);
    assert_eq!((info(&pair).ssthresh_segments, info(&pair).acked_bytes), (None, 13_000));
    // Nor does it make RACK more patient: a quarter of the round trip.
    let sender = pair.ends[CLIENT].sender();
    sender.reordering_seen = true;
    assert_eq!(sender.reordering_window(), Span::from_millis(25));
}

/// With new data a probe sends these, not the last segment again.
#[test]
fn a_probe_prefers_new_data() {
    let mut pair = established(&Config { initial_window_segments: 4, ..modern() }, 100);
    lose(&mut pair, (0..4).collect());
    run(&mut pair, 210);
    assert_eq!(sent(&pair)[4..], [(202, 4)]);
}

/// RFC 8985 §6.2: 2 arrives 20 ms after it was overtaken. Until reordering has been seen three SACKs are proof (reo_wnd 0);
/// afterwards min RTT / 4 = 25 ms of patience is enough.
#[test]
fn rack_learns_to_wait_for_reordered_segments() {
    let mut pair = established(&modern(), 1000);
    pair.path = Box::new(|_, by, segment| {
        let number = segment.seq / 1000;
        let late = by == CLIENT && segment.payload_bytes > 0 && (number == 2 || number == 40);
        late.then(|| vec![Span::from_millis(70)])
    });
    run(&mut pair, 150);
    let first = info(&pair);
    assert_eq!(first.retransmits, 1); // 2, needlessly
    run(&mut pair, 1000);
    assert_eq!(info(&pair).retransmits, 1); // and not 40
    assert!(info(&pair).spurious_undone >= 1);
}

/// A retransmission that is lost is found by time, not by a timeout.
#[test]
fn rack_finds_lost_retransmissions() {
    let mut pair = established(&modern(), 100);
    let mut copies = 0;
    pair.path = Box::new(move |_, by, segment| {
        copies += u32::from(by == CLIENT && segment.seq == 1 && segment.payload_bytes > 0);
        (by == CLIENT && segment.seq == 1 && copies <= 3).then(Vec::new)
    });
    run(&mut pair, 3000);
    let copies: Vec<u64> = sent(&pair).iter().filter(|(_, number)| *number == 0).map(|(when, _)| *when).collect();
    assert_eq!(copies, [0, 100, 200, 300]);
    assert_eq!((info(&pair).timeouts, info(&pair).acked_bytes), (0, 100_000));
}

// The receiver.

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
    // 0 and 1 at 50; 2 at 60 waits for 3 at 70; 4 at 80 waits 40 ms.
    assert_eq!(numbers(&pair), [(50, 2), (70, 4), (120, 5)]);
}

#[test]
fn the_first_sixteen_segments_are_acknowledged_at_once() {
    let delayed_ack = DelayedAck::LINUX;
    let mut pair = established(&Config { delayed_ack, initial_window_segments: 40, ..plain() }, 40);
    run(&mut pair, 60);
    // The handshake's ACK is the client's. 16 single ones, then 12 pairs.
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
    // At 50 ms: 3, 4, 5, 6 come out of order. At 150 ms the retransmission fills the gap.
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

/// The application stops reading; the window closes; probes; it reads again.
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
    assert_eq!((info(&pair).acked_bytes, info(&pair).window_bytes), (10_000, 0));
    assert_eq!(pair.ends[SERVER].received_bytes(), 0);
    let probes: Vec<u64> =
        pair.acks(CLIENT, ms(200)).iter().map(|(at, _)| (*at - ms(150)).as_micros() / 1000).collect();
    // The last ACK comes at 100. The RTO is 300, or less by then (the floor of the variance is 200 ms, the RTT 100).
    assert_eq!(probes, [400, 1000, 2200]);
    run(&mut pair, 3000);
    pair.ends[SERVER].resume_reading();
    run(&mut pair, 4000);
    assert_eq!(pair.ends[SERVER].received_bytes(), 30_000);
    assert_eq!(info(&pair).retransmits, 0);
}

/// Probes that are answered may go on for ever; unanswered ones end the connection.
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

/// An opened window ends the backoff of the probes.
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

/// A full segment has no room for SACK blocks: a pure ACK with them goes as well, so that losses are found in time.
#[test]
fn sack_blocks_find_their_way_beside_full_segments() {
    let mut pair = established(&plain(), 100);
    pair.ends[SERVER].write_endless();
    lose(&mut pair, vec![0]);
    run(&mut pair, 110);
    assert_eq!(at(&pair, 100).iter().filter(|number| **number == 0).count(), 1);
    assert!(info(&pair).sacked_segments >= 3);
}

/// Data both ways: each ACK rides on data.
#[test]
fn acks_ride_on_data() {
    let mut pair = established(&Config { initial_window_segments: 4, ..plain() }, 4);
    pair.ends[SERVER].write(4000);
    run(&mut pair, 400);
    assert_eq!([pair.ends[CLIENT].received_bytes(), pair.ends[SERVER].received_bytes()], [4000, 4000]);
    // Both wrote at once: four pure ACKs each, at 50, since there was nothing to send with them.
    assert_eq!([CLIENT, SERVER].map(|end| pair.acks(end, ms(150)).len()), [4, 4]);
    // An answer to what arrives rides.
    pair.log.clear();
    pair.ends[CLIENT].write(1000);
    run(&mut pair, 450);
    pair.ends[SERVER].write(1000);
    run(&mut pair, 470);
    assert_eq!(pair.log.iter().filter(|(_, by, segment)| *by == SERVER && segment.payload_bytes > 0).count(), 1);
}

// What limits the sender.

/// 1 MiB at 1889 bytes a segment: 555 in flight, however large the window.
#[test]
fn the_send_buffer_of_2012_holds_555_segments() {
    let config = Config { initial_window_segments: 1000, write_hysteresis: false, ..Config::linux_2012() };
    let mut pair = Pair::new(&config, &config, LawName::NewReno, Span::from_millis(50));
    pair.ends[CLIENT].write_endless();
    // The window of a SYN-ACK is not scaled: 65,535 bytes are 45 segments.
    pair.run_until(ms(190));
    assert_eq!(info(&pair).in_flight_segments, 45);
    pair.run_until(ms(290));
    assert_eq!(info(&pair).unacked_segments, 555);
    pair.run_until(ms(5000));
    assert_eq!(info(&pair).unacked_segments, 555);
    // Slow start goes on while less than twice what is out: then the window is not what limits.
    assert_eq!(info(&pair).cwnd_segments, 1110);
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
    assert_eq!((end.info().acked_bytes, end.info().unacked_segments), (45 * 1448, 555 - 45));
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
        assert_eq!(info(&pair).cwnd_segments, 160);
        // The last data went at 300; RTO 300. 600 ms: one halving. 1350 ms: four.
        run(&mut pair, write_at);
        pair.ends[CLIENT].write(50_000);
        pair.step(pair.now);
        assert_eq!(info(&pair).cwnd_segments, expected);
    }
}

/// The host takes 6 of 10 and refuses the rest. As Linux on NET_XMIT_DROP: not sent, and CWR.
#[test]
fn what_the_host_refuses_was_not_sent() {
    let mut pair = established(&plain(), 100);
    pair.refuse = Box::new(|now, by, segment| by == CLIENT && segment.seq > 6000 && now < ms(200));
    run(&mut pair, 10);
    assert_eq!(at(&pair, 0), [0, 1, 2, 3, 4, 5]);
    assert_eq!((state(&pair), info(&pair).unacked_segments), (CongestionState::Cwr, 6));
    assert_eq!(info(&pair).ssthresh_segments, Some(3)); // FlightSize 6
    run(&mut pair, 110);
    assert_eq!(at(&pair, 100)[0], 6);
    run(&mut pair, 3000);
    assert_eq!((info(&pair).acked_bytes, info(&pair).retransmits), (100_000, 0));
}

/// A host that takes nothing at all is asked again after an RTO.
#[test]
fn a_refusal_with_nothing_in_flight_is_retried() {
    let mut pair = established(&plain(), 1);
    pair.refuse = Box::new(|now, by, _| by == CLIENT && now < ms(160));
    run(&mut pair, 1000);
    assert_eq!(sent(&pair), [(300, 0)]);
}

/// TCP small queues: two packets and a bit may wait in the host, until they leave.
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

/// Pacing: after the first ten segments, one each payload / (2 x window x payload / SRTT) = 100 ms / (2 x window).
#[test]
fn pacing_spreads_a_window_over_the_round_trip() {
    let mut pair = established(&Config { pacing: true, ..plain() }, 1000);
    run(&mut pair, 400);
    let times: Vec<Time> = pair.data(CLIENT, ms(150 + 200)).iter().map(|(at, ..)| *at).take(20).collect();
    let gaps: Vec<u64> = times.windows(2).map(|pair| (pair[1] - pair[0]).as_micros()).collect();
    // The window is 20 to 40 by then, so between 2.5 and 1.25 ms; never two at once.
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

/// A bound holds whatever the law wants, and when its lease is over the law goes on.
#[test]
fn a_bound_limits_the_window_for_as_long_as_its_lease() {
    let mut pair = established(&plain(), 100_000);
    let lease = Span::from_millis(1000);
    pair.ends[CLIENT].set_bound(Bound::at_most(4).leased(pair.now, lease));
    run(&mut pair, 900);
    assert!(info(&pair).cwnd_segments <= 4);
    assert!(pair.data(CLIENT, ms(260)).len() <= 4 * 9);
    run(&mut pair, 2000);
    assert!(info(&pair).cwnd_segments > 100, "{:?}", info(&pair));
}

/// 0.4 Mb/s: 1000 bytes take 20 ms.
fn slow_pace() -> Bound {
    Bound { max_pacing_rate: Rate::from_mbps(0.4), ..Bound::default() }
}

/// ```text
/// ms      0       100      120      160      200      240
/// client  0..9    10, 11   12, 13   14, 15   16, 17   18, 19
/// ```
/// The first ten are not paced. Those after them go two at once, 40 ms apart, whatever the window; but what comes late has
/// half of its time credited.
#[test]
fn under_a_limit_of_the_pacing_rate_segments_go_in_twos() {
    for pacing in [false, true] {
        let mut pair = established(&Config { pacing, ..plain() }, 1000);
        pair.ends[CLIENT].set_bound(slow_pace().leased(pair.now, Span::from_secs(10)));
        run(&mut pair, 1000);
        let expected = [100, 120].into_iter().chain((160..=1000).step_by(40)).flat_map(|at| [at, at]);
        let later: Vec<u64> = sent(&pair).into_iter().skip(10).map(|(at, _)| at).collect();
        assert_eq!(later, expected.collect::<Vec<_>>(), "pacing = {pacing}");
        assert_eq!(
            (info(&pair).max_pacing_rate, info(&pair).pacing_rate),
            (Some(Rate::from_mbps(0.4)), Rate::from_mbps(0.4))
        );
    }
}

/// 50,000 bytes per second are 5 segments in 100 ms: a window of more is not used, and what is not used does not grow
/// (tcp_cwnd_validate()), in slow start beyond twice what is.
#[test]
fn under_a_limit_of_the_pacing_rate_the_window_does_not_grow_without_end() {
    let mut pair = established(&plain(), 100_000);
    pair.ends[CLIENT].set_bound(slow_pace().leased(pair.now, Span::from_secs(100)));
    run(&mut pair, 20_000);
    let info = info(&pair);
    assert!((10..=24).contains(&info.cwnd_segments) && info.unacked_segments <= 6, "{info:?}");
}

/// ```text
/// window 4   client  0, 1            2, 3            4, 5         40 ms apart; each pair is acknowledged when it is there
/// window 2   client  0       1       2       3       4            20 ms apart; 0 is acknowledged with 1, so after 24 ms
/// ```
/// Half a window goes at once at most, and the receiver waits for two segments before it acknowledges. The rate is the same.
#[test]
fn a_paced_window_of_four_segments_does_not_wait_for_delayed_acks_and_one_of_two_does() {
    let config = Config { delayed_ack: DelayedAck::LINUX, ..plain() };
    for (window, at_once, rtt_ms) in [(4, 2, 4), (2, 1, 24)] {
        let mut pair = Pair::new(&config, &config, LawName::NewReno, Span::from_millis(2));
        pair.ends[CLIENT].write_endless();
        let bound = Bound { max_segments: window, max_pacing_rate: Rate::from_mbps(0.4), ..Bound::default() };
        pair.ends[CLIENT].set_bound(bound.leased(Time::ZERO, Span::from_secs(60)));
        pair.run_until(ms(20_000));
        let acked = info(&pair).acked_bytes;
        pair.run_until(ms(40_000));
        // 20 s at 50,000 bytes per second, give or take a window.
        let in_20_s = info(&pair).acked_bytes - acked;
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
/// Sixteen segments are acknowledged at once and then every second one, whatever goes together: if that falls apart, until PSH.
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
        // 4 s at 75,000 bytes per second, and a push each 66,000, at the end of the burst.
        assert!((4..=5).contains(&pushed.len()), "{pushed:?}");
        let acked_at: Vec<Time> = pair.acks(SERVER, ms(2000)).iter().map(|(at, _)| *at).collect();
        let sent_at: Vec<Time> =
            pair.data(CLIENT, ms(2000)).iter().map(|(at, ..)| *at + Span::from_millis(2)).collect();
        assert!(acked_at.len() > 50 && acked_at.iter().all(|at| sent_at.contains(at) || *at < sent_at[0]));
        assert_eq!(info(&pair).latest_rtt, Some(Span::from_millis(4)), "{quick_segments}");
    }
}

/// The lease ends at 1010 ms, in the middle of a wait: what is next goes then, and the law's window at once.
#[test]
fn a_pace_ends_with_its_lease() {
    for pacing in [false, true] {
        let mut pair = established(&Config { pacing, ..plain() }, 100_000);
        pair.ends[CLIENT].set_bound(slow_pace().leased(pair.now, Span::from_millis(1010)));
        run(&mut pair, 1009);
        let paced = sent(&pair);
        assert_eq!(paced.last().map(|(at, _)| *at), Some(1000));
        let window = info(&pair).cwnd_segments as usize;
        run(&mut pair, 1060);
        let after: Vec<u64> = sent(&pair)[paced.len()..].iter().map(|(at, _)| *at).collect();
        assert_eq!(after[0], 1010, "pacing = {pacing}");
        if pacing {
            // 2 x window x 1000 bytes in 100 ms, or a fifth more than the window: half of it in these 50 ms at least.
            assert!(after.len() >= window / 2 - 5, "{} of {window}", after.len());
        } else {
            // All of the window that was not in flight: what was sent in the last 100 ms.
            assert!(after.iter().filter(|at| **at == 1010).count() >= window - 6, "{after:?} of {window}");
        }
        run(&mut pair, 1200);
        assert_eq!(info(&pair).max_pacing_rate, None);
    }
}

/// A limit that is lifted or raised before its lease ends.
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

/// What is lost is retransmitted at the pace too, and no timeout fires for what waits: two segments take 400 ms, more than the RTO.
#[test]
fn a_limit_paces_retransmissions_and_is_waited_for_by_the_timeout() {
    let mut pair = established(&plain(), 1000);
    let slow = Bound { max_pacing_rate: Rate::from_mbps(0.04), ..Bound::default() };
    pair.ends[CLIENT].set_bound(slow.leased(pair.now, Span::from_secs(100)));
    lose(&mut pair, vec![2, 5]);
    run(&mut pair, 10_000);
    assert_eq!((info(&pair).retransmits, info(&pair).timeouts), (2, 0));
    // After the first ten 5000 bytes per second: 10 s, less the first RTT, and with what the first burst was credited.
    let paced = sent(&pair).len() - 10;
    assert!((48..=52).contains(&paced), "{paced}");
}

/// 2^-3 s of 0.4 Mb/s are 6250 bytes: six packets of 1040, and one to exceed it, where the law's own rate would allow all ten.
#[test]
fn small_queues_go_by_the_limit_of_the_pacing_rate() {
    let tsq = Some(Tsq { pacing_shift: Some(3), ..Tsq::LINUX });
    let taken = |bound: Bound| {
        let mut pair = established(&Config { tsq, ..plain() }, 100);
        pair.ends[CLIENT].set_bound(bound.leased(pair.now, Span::from_secs(10)));
        std::iter::from_fn(|| pair.ends[CLIENT].poll_transmit(pair.now)).count()
    };
    assert_eq!(taken(Bound::default()), 10);
    assert_eq!(taken(slow_pace()), 7);
}

// Beginning and end.

/// ```text
/// ms    0      1000       3000        3050
///       SYN x  SYN x      SYN         SYN-ACK            RTO 1 s, 2 s; the window begins with one segment
/// ```
#[test]
fn two_lost_syns_take_three_seconds_and_the_initial_window() {
    let config = plain();
    let mut pair = Pair::new(&config, &config, LawName::NewReno, Span::from_millis(50));
    let mut syns = 0;
    pair.path = Box::new(move |_, _, segment| {
        syns += u32::from(segment.syn && !segment.has_ack);
        (segment.syn && !segment.has_ack && syns <= 2).then(Vec::new)
    });
    pair.ends[CLIENT].write(10_000);
    pair.run_until(ms(3120));
    let syns: Vec<Time> = pair.log.iter().filter(|(_, by, s)| *by == CLIENT && s.syn).map(|(at, ..)| *at).collect();
    assert_eq!(syns, [ms(0), ms(1000), ms(3000)]);
    assert_eq!(info(&pair).cwnd_segments, 1);
    assert_eq!(info(&pair).srtt, None); // Karn
}

/// The client's last ACK of the handshake is lost, and it has nothing to send: the server's second SYN-ACK is answered.
#[test]
fn a_repeated_syn_ack_is_acknowledged() {
    let config = plain();
    let mut pair = Pair::new(&config, &config, LawName::NewReno, Span::from_millis(50));
    pair.path = Box::new(|now, by, _| (by == CLIENT && now == ms(100)).then(Vec::new));
    pair.run_until(ms(1040));
    assert!(!pair.ends[SERVER].is_established());
    pair.run_until(ms(1160));
    assert!(pair.ends[SERVER].is_established());
}

/// The SYN-ACK is lost, and the client is the first to try again.
#[test]
fn a_repeated_syn_is_answered() {
    let patient = Config { rto_initial: Span::from_secs(3), ..plain() };
    let mut pair = Pair::new(&plain(), &patient, LawName::NewReno, Span::from_millis(50));
    pair.path = Box::new(|now, by, _| (by == SERVER && now == ms(50)).then(Vec::new));
    pair.run_until(ms(1110));
    assert!(pair.ends[CLIENT].is_established());
}

/// The FIN rides on the last segment; the other side answers with its own.
#[test]
fn both_sides_close() {
    let mut pair = established(&plain(), 2);
    pair.ends[CLIENT].close();
    run(&mut pair, 500);
    let fins: Vec<(usize, u32)> =
        pair.log.iter().filter(|(_, _, s)| s.fin).map(|(_, by, s)| (*by, s.payload_bytes)).collect();
    assert_eq!(fins, [(CLIENT, 1000), (SERVER, 0)]);
    assert!(pair.ends.iter().all(Endpoint::is_closed));
    assert_eq!(pair.next_event(), Time::MAX);
    assert_eq!((info(&pair).acked_bytes, pair.ends[SERVER].received_bytes()), (2000, 2000));
}

/// Options are used if both ends have them.
#[test]
fn ends_agree_on_what_both_can() {
    let with = Config { mss: Bytes::new(1460), timestamps: true, ..plain() };
    let without = Config { mss: Bytes::new(536), timestamps: false, sack: false, window_scaling: false, ..plain() };
    let mut pair = Pair::new(&with, &without, LawName::NewReno, Span::from_millis(50));
    pair.ends[CLIENT].write(10_000);
    pair.run_until(ms(400));
    assert_eq!(info(&pair).mss_bytes, 536);
    assert!(info(&pair).window_bytes <= 65_535);
    assert!(pair.log.iter().all(|(_, by, segment)| segment.timestamps.is_none() || (segment.syn && *by == CLIENT)));
    let mut pair = Pair::new(&with, &with, LawName::NewReno, Span::from_millis(50));
    pair.ends[CLIENT].write(1);
    pair.run_until(ms(400));
    assert_eq!((info(&pair).mss_bytes, info(&pair).window_bytes), (1448, 3_145_728));
}

/// RFC 6298 (2.2) with the floor of RFC 6298 and Linux's: the first timeout after a handshake of 100 ms.
#[test]
fn the_first_timeout_follows_from_the_handshake() {
    let timeout = |rto_estimator, rto_min| {
        let mut pair = established(&Config { rto_estimator, rto_min: Span::from_millis(rto_min), ..plain() }, 1);
        pair.path = Box::new(|_, _, _| Some(vec![]));
        run(&mut pair, 1500);
        sent(&pair)[1].0
    };
    assert_eq!(timeout(RtoEstimator::Linux, 200), 300); // 100 + max(4 * 50, 200)
    assert_eq!(timeout(RtoEstimator::Linux, 400), 500); // 100 + max(4 * 50, 400)
    assert_eq!(timeout(RtoEstimator::Rfc6298, 200), 300); // max(100 + 4 * 50, 200)
    assert_eq!(timeout(RtoEstimator::Rfc6298, 1000), 1000);
}
