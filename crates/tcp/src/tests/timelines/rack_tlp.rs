//! RACK-TLP.

use super::*;

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
    // The last ACK that advances arrives at 100, so the probe is sent at 302; its ACK shows that 8 is missing.
    assert_eq!(sent(&pair)[10..], [(302, 9), (402, 8)]);
    assert_eq!((info(&pair).tcp.timeouts.unwrap(), info(&pair).tcp.acked.get()), (0, 10_000));
}

/// RFC 8985 §7.4.2: the probe itself repairs the loss. It is still a loss, and reduces the window, once new data show
/// that the probe was no duplicate. With one segment in flight PTO = 2 SRTT + 200 ms is past the RTO of 300 ms, so the
/// probe is sent at the RTO.
#[test]
fn a_probe_that_repairs_a_loss_reduces_the_window() {
    let mut pair = established(&modern(), 10);
    lose(&mut pair, vec![9]);
    run(&mut pair, 510);
    assert_eq!(sent(&pair)[10..], [(400, 9)]);
    assert_eq!((info(&pair).tcp.acked.get(), info(&pair).tcp.ssthresh_segments), (10_000, None));
    pair.ends[CLIENT].write(3000);
    run(&mut pair, 700);
    assert!(info(&pair).tcp.ssthresh_segments.is_some());
    assert_eq!((state(&pair), info(&pair).tcp.timeouts.unwrap()), (CongestionState::Open, 0));
}

/// A spurious probe (only the ACK was late) is reported by D-SACK: no reduction.
#[test]
fn a_needless_probe_reduces_nothing() {
    let mut pair = established(&modern(), 10);
    pair.path = Box::new(|now, by, _| (by == SERVER && now < ms(300)).then(|| vec![Span::from_millis(230)]));
    run(&mut pair, 300);
    assert_eq!(sent(&pair)[10..], [(202, 9)]);
    run(&mut pair, 400);
    pair.ends[CLIENT].write(3000);
    run(&mut pair, 600);
    assert_eq!((info(&pair).tcp.ssthresh_segments, info(&pair).tcp.acked.get()), (None, 13_000));
    // RACK does not wait longer either: a quarter of the round trip.
    let sender = pair.ends[CLIENT].sender();
    sender.reordering.seen = true;
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

/// RFC 8985 §6.2: 2 arrives 20 ms after it was overtaken. Before reordering was seen, three SACKs are proof (reo_wnd
/// 0); afterwards a wait of min RTT / 4 = 25 ms is enough.
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
    assert_eq!(first.tcp.retransmits, 1); // 2, spuriously
    run(&mut pair, 1000);
    assert_eq!(info(&pair).tcp.retransmits, 1); // and not 40
    assert!(info(&pair).spurious_undone >= 1);
}

/// A lost retransmission is found by time, not by a timeout.
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
    assert_eq!((info(&pair).tcp.timeouts.unwrap(), info(&pair).tcp.acked.get()), (0, 100_000));
}
