//! Undoing a reduction.

use super::*;

/// Eifel: 0 arrives 105 ms late, after three later segments; its ACK echoes a timestamp older than the retransmission.
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
        assert_eq!((state(&pair), info(&pair).tcp.retransmits), (CongestionState::Recovery, 1));
        run(&mut pair, 199);
        assert_eq!(info(&pair).tcp.ssthresh_segments, ssthresh);
        assert_eq!(info(&pair).spurious_undone, u64::from(undo));
        assert_eq!(pair.ends[CLIENT].sender().reordering.seen, undo);
        run(&mut pair, 3000);
        assert_eq!(info(&pair).tcp.acked.get(), 100_000);
    }
}

/// Linux's tcp_dsack_seen(): more duplicates than retransmissions are the network's. They take no real reduction back.
#[test]
fn duplicates_of_the_network_prove_nothing() {
    let mut pair = established(&Config { rack_tlp: true, fack: false, ..plain() }, 60);
    let mut lost = false;
    pair.path = Box::new(move |_, by, segment| {
        if by != CLIENT || segment.payload_bytes == 0 {
            return None;
        }
        if segment.seq > 5_000 && !lost {
            lost = true;
            return Some(Vec::new());
        }
        Some(vec![Span::from_millis(50), Span::from_millis(50)])
    });
    run(&mut pair, 2_000);
    assert_eq!(info(&pair).tcp.acked.get(), 60_000);
    assert!(info(&pair).tcp.retransmits <= 2, "{:?}", info(&pair));
    assert_eq!(info(&pair).spurious_undone, 0);
    assert!(info(&pair).tcp.ssthresh_segments.is_some(), "the loss was real");
}

/// RFC 3708: without timestamps the D-SACK of the spurious retransmission proves it a round trip later.
#[test]
fn a_reordered_segment_gives_the_window_back_by_its_d_sack() {
    let mut pair = established(&plain(), 30);
    pair.path = Box::new(|now, by, segment| {
        let late = by == CLIENT && segment.seq == 1 && segment.payload_bytes > 0 && now < ms(200);
        late.then(|| vec![Span::from_millis(105)])
    });
    run(&mut pair, 199);
    assert_eq!((info(&pair).tcp.ssthresh_segments, info(&pair).spurious_undone), (Some(5), 0));
    run(&mut pair, 201);
    assert_eq!((info(&pair).tcp.ssthresh_segments, info(&pair).spurious_undone), (None, 1));
}
