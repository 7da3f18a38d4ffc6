//! Slow start, fast retransmit, recovery.

use super::*;

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
/// FlightSize 10, so ssthresh 5. PRR with 9 SACKs: the first two send 10 and 11, the third the retransmission. Of the
/// other six every second sends (RecoverFS 12, ssthresh 5: ceil(5 d / 12) = 1 1 2 2 3 3 3 for d = 1..7).
#[test]
fn a_lost_segment_is_retransmitted_at_the_third_duplicate() {
    let mut pair = established(&Config { fack: false, ..plain() }, 100);
    lose(&mut pair, vec![0]);
    run(&mut pair, 110);
    assert_eq!(at(&pair, 100), [10, 11, 0, 12, 13]);
    assert_eq!(state(&pair), CongestionState::Recovery);
    run(&mut pair, 210);
    assert_eq!(state(&pair), CongestionState::Open);
    assert_eq!(
        (info(&pair).tcp.ssthresh_segments, info(&pair).tcp.retransmits, info(&pair).tcp.timeouts.unwrap()),
        (Some(5), 1, 0)
    );
}

/// The same without limited transmit: nothing is sent before the retransmission, and RecoverFS is 10. From d = 3 on the
/// pipe is at ssthresh, and each ACK sends one.
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
    // The window of a SYN is not scaled. With scaled windows the first ACK would be a window update, not a duplicate.
    let config = Config { sack: false, recovery: Recovery::NewReno, window_scaling: false, ..plain() };
    let mut pair = established(&config, 100);
    lose(&mut pair, vec![0, 2]);
    run(&mut pair, 110);
    assert_eq!(at(&pair, 100), [10, 11, 0, 12]);
    assert_eq!((state(&pair), info(&pair).tcp.cwnd_segments), (CongestionState::Recovery, 13)); // 5 + 3 + 5
    run(&mut pair, 210);
    // The partial ACK passes two: 15 - 2 + 1 = 14, with 13 in flight.
    assert_eq!(at(&pair, 200), [13, 14, 2, 15, 16]);
    run(&mut pair, 301);
    assert_eq!(state(&pair), CongestionState::Open);
    assert_eq!(info(&pair).tcp.retransmits, 2);
}

/// RFC 6582 §3.2 (3): the full acknowledgement sets the window to ssthresh. The twelve segments that it passes do not
/// grow the window: their duplicates have counted already.
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
    assert_eq!((at(&pair, 100), info(&pair).tcp.cwnd_segments), (vec![10, 11, 0, 12, 13], 14)); // 5 + 3 + 6
    run(&mut pair, 210);
    assert_eq!((state(&pair), info(&pair).tcp.ssthresh_segments), (CongestionState::Open, Some(5)));
    assert_eq!(info(&pair).tcp.cwnd_segments, 5);
}

/// RFC 6582 §3.2 (4): only the first partial ACK restarts the timer, so that many holes end in a timeout.
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
    assert_eq!(info(&pair).tcp.timeouts.unwrap(), 0);
    run(&mut pair, 510);
    assert_eq!((info(&pair).tcp.timeouts.unwrap(), state(&pair)), (1, CongestionState::Loss));
}

/// RFC 6582 §3.2 (2): duplicates of segments sent before the timeout start no fast retransmit.
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
    // The ACKs arrive 260 ms late, after the timeout at 300.
    let mut first = std::mem::replace(&mut pair.path, Box::new(|_, _, _| None));
    pair.path = Box::new(move |now, by, segment| match first(now, by, segment) {
        None if by == SERVER && now < ms(250) => Some(vec![Span::from_millis(310)]),
        fate => fate,
    });
    run(&mut pair, 2000);
    assert_eq!((info(&pair).tcp.timeouts.unwrap(), info(&pair).tcp.acked.get()), (1, 5000));
    // 0 by the timeout, 4 when the ACK of 0..3 arrives: slow start, not fast retransmit.
    assert_eq!(info(&pair).tcp.ssthresh_segments, Some(2)); // FlightSize 5, once
}

/// RFC 6675 §4 NextSeg (4): the last segment of the window is lost as well, and no SACK can show it.
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
        assert_eq!((info(&pair).tcp.timeouts.unwrap(), info(&pair).tcp.acked.get()), (timeouts, 10_000), "{rescue}");
    }
}

/// FACK: one SACK three segments above a hole suffices. A retransmission is lost once a segment sent after it is
/// SACKed.
#[test]
fn forward_acknowledgement_needs_one_sack_and_sees_lost_retransmissions() {
    // Only segment 9 arrives. With FACK all up to 6 are lost, by RFC 6675 none.
    for (fack, lost) in [(true, 7), (false, 0)] {
        let mut pair = established(&Config { fack, ..plain() }, 10);
        lose(&mut pair, (0..9).collect());
        run(&mut pair, 110);
        assert_eq!(info(&pair).lost_segments, lost, "{fack}");
    }
    // The retransmission of 0 at 100 is lost, too. Segments sent after it at 100 are SACKed at 200.
    for (fack, timeouts) in [(true, 0), (false, 1)] {
        let mut pair = established(&Config { fack, f_rto: false, ..plain() }, 40);
        let mut copies = 0;
        pair.path = Box::new(move |_, by, segment| {
            copies += u32::from(by == CLIENT && segment.seq == 1 && segment.payload_bytes > 0);
            (by == CLIENT && segment.seq == 1 && copies <= 2).then(Vec::new)
        });
        run(&mut pair, 3000);
        assert_eq!((info(&pair).tcp.timeouts.unwrap(), info(&pair).tcp.acked.get()), (timeouts, 40_000), "{fack}");
    }
}
