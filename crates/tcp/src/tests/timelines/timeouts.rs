//! Timeouts.

use super::*;

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
    assert_eq!((info(&pair).tcp.ssthresh_segments, info(&pair).tcp.cwnd_segments), (Some(5), 1));
    assert_eq!((info(&pair).tcp.timeouts.unwrap(), info(&pair).rto), (4, Span::from_millis(4800)));
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

/// A connection without any answer is given up after a quarter of an hour.
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

/// F-RTO, RFC 5682 §2.1 and §3.1. The path stops for 400 ms without losses.
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
        assert_eq!((state(&pair), info(&pair).tcp.cwnd_segments), (CongestionState::Loss, 1), "{sack}");
        run(&mut pair, 510);
        assert_eq!((info(&pair).spurious_undone, info(&pair).tcp.retransmits), (1, 1), "{sack}");
        assert!(info(&pair).tcp.cwnd_segments >= 10, "{sack}: {:?}", info(&pair));
        assert_eq!(info(&pair).tcp.ssthresh_segments, None, "{sack}"); // it was infinite before
        run(&mut pair, 2000);
        assert_eq!((info(&pair).tcp.retransmits, info(&pair).tcp.acked.get()), (1, 100_000), "{sack}");
    }
}

/// F-RTO with a real loss.
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
    assert_eq!(info(&pair).tcp.acked.get(), 100_000);
}

/// Without new data F-RTO cannot tell, and the usual recovery goes on: RFC 5682 §2.1 (2b).
#[test]
fn without_new_data_a_timeout_is_taken_for_loss() {
    let mut pair = established(&Config { undo: false, ..plain() }, 10);
    lose(&mut pair, (0..10).collect());
    run(&mut pair, 410);
    assert_eq!([300, 400].map(|when| at(&pair, when)), [vec![0], vec![1, 2]]);
}
