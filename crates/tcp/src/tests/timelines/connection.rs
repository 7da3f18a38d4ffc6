//! Opening and closing.

use super::*;

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
    assert_eq!(info(&pair).tcp.cwnd_segments, 1);
    assert_eq!(info(&pair).tcp.srtt, None); // Karn
}

/// The client's last ACK of the handshake is lost, and it has no data: it answers the server's second SYN-ACK.
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

/// The SYN-ACK is lost, and the client retries first.
#[test]
fn a_repeated_syn_is_answered() {
    let patient = Config { rto_initial: Span::from_secs(3), ..plain() };
    let mut pair = Pair::new(&plain(), &patient, LawName::NewReno, Span::from_millis(50));
    pair.path = Box::new(|now, by, _| (by == SERVER && now == ms(50)).then(Vec::new));
    pair.run_until(ms(1110));
    assert!(pair.ends[CLIENT].is_established());
}

/// The last segment carries the FIN; the other side answers with its own.
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
    assert_eq!((info(&pair).tcp.acked.get(), pair.ends[SERVER].received_bytes()), (2000, 2000));
}

/// Options are used if both ends have them.
#[test]
fn ends_agree_on_what_both_can() {
    let with = Config { mss: Bytes::new(1460), timestamps: true, ..plain() };
    let without = Config { mss: Bytes::new(536), timestamps: false, sack: false, window_scaling: false, ..plain() };
    let mut pair = Pair::new(&with, &without, LawName::NewReno, Span::from_millis(50));
    pair.ends[CLIENT].write(10_000);
    pair.run_until(ms(400));
    assert_eq!(info(&pair).tcp.mss_bytes, 536);
    assert!(info(&pair).window_bytes <= 65_535);
    assert!(pair.log.iter().all(|(_, by, segment)| segment.timestamps.is_none() || (segment.syn && *by == CLIENT)));
    let mut pair = Pair::new(&with, &with, LawName::NewReno, Span::from_millis(50));
    pair.ends[CLIENT].write(1);
    pair.run_until(ms(400));
    assert_eq!((info(&pair).tcp.mss_bytes, info(&pair).window_bytes), (1448, 3_145_728));
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
