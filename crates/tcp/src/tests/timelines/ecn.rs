//! RFC 3168.
//!
//! ```text
//!   0        10 segments with ECT(0), the first is marked
//! 100 ms     10 ACKs with ECE: ssthresh is half the flight; the first new segment has CWR
//! 150        it arrives: no ECE from here on
//! 200        the ACKs of what was sent at 100: the window stays
//! ```

use super::*;
use crate::EcnMode;
use crate::ecn::{CWR, ECE};
use lasthop_units::Ecn;

fn with_ecn() -> Config {
    Config { ecn: EcnMode::On, ..plain() }
}

/// The segments that an end sent after this time, with when: those with data, or else the pure ACKs.
fn of(pair: &Pair, end: usize, data: bool) -> Vec<(u64, Segment)> {
    let is_one = |(_, by, segment): &&(Time, usize, Segment)| *by == end && (segment.payload_bytes > 0) == data;
    pair.log
        .iter()
        .filter(is_one)
        .map(|(at, _, segment)| ((*at - ms(150)).as_micros() / 1000, segment.clone()))
        .collect()
}

#[test]
fn a_mark_halves_the_window_once_and_is_echoed_until_the_sender_says_so() {
    let mut pair = established(&with_ecn(), 40);
    pair.mark = Box::new(|by, segment| {
        if by == CLIENT && segment.seq == 1 {
            segment.ecn = Ecn::Ce;
        }
    });
    run(&mut pair, 100);
    // RFC 5681 eq. 4: nine are in flight when the first ACK is taken; 9 / 2 = 4.
    assert_eq!((state(&pair), info(&pair).tcp.ssthresh_segments), (CongestionState::Cwr, Some(4)));
    run(&mut pair, 1000);
    let sent = of(&pair, CLIENT, true);
    assert_eq!(sent.len(), 40, "nothing is sent again");
    assert!(sent.iter().all(|(_, segment)| segment.ecn == Ecn::Ect0));
    let told: Vec<_> = sent.iter().filter(|(_, segment)| segment.ace & CWR != 0).map(|(at, _)| *at).collect();
    assert_eq!(told, [100], "once");
    let first_new = sent.iter().position(|(at, _)| *at == 100).map(|place| sent[place].1.ace & CWR);
    assert_eq!(first_new, Some(CWR));
    let acks = of(&pair, SERVER, false);
    assert!(acks.iter().all(|(at, ack)| (ack.ace & ECE != 0) == (*at < 150) && ack.ecn == Ecn::NotEct));
    assert_eq!((state(&pair), info(&pair).tcp.ssthresh_segments), (CongestionState::Open, Some(4)));
    // Linux counts what each such ACK delivers.
    assert_eq!(info(&pair).tcp.delivered_ce, 10);
}

#[test]
fn marks_in_two_windows_are_two_reductions() {
    let mut pair = established(&with_ecn(), 60);
    let numbers = [1_u64, 12_001];
    pair.mark = Box::new(move |by, segment| {
        if by == CLIENT && numbers.contains(&segment.seq) {
            segment.ecn = Ecn::Ce;
        }
    });
    run(&mut pair, 1000);
    let told = of(&pair, CLIENT, true).iter().filter(|(_, segment)| segment.ace & CWR != 0).count();
    assert_eq!((told, info(&pair).tcp.retransmits), (2, 0));
}

#[test]
fn what_is_sent_again_is_not_to_be_marked_and_a_loss_is_told_too() {
    let mut pair = established(&with_ecn(), 30);
    lose(&mut pair, vec![0]);
    run(&mut pair, 1000);
    let sent = of(&pair, CLIENT, true);
    let again: Vec<_> = sent.iter().filter(|(at, segment)| *at > 0 && segment.seq == 1).collect();
    assert!(again.len() == 1 && again[0].1.ecn == Ecn::NotEct && again[0].1.ace == 0, "{again:?}");
    assert_eq!(sent.iter().filter(|(_, segment)| segment.ace & CWR != 0).count(), 1, "RFC 3168 §6.1.2");
}

/// The ECN flags of the SYN and of the SYN-ACK, and the fields of the client's data.
fn handshake(client: EcnMode, server: EcnMode, lose_first_syn: bool) -> (Vec<u8>, Vec<Ecn>) {
    let [client, server] = [client, server].map(|ecn| Config { ecn, ..plain() });
    let mut pair = Pair::new(&client, &server, LawName::NewReno, Span::from_millis(50));
    let mut lost = !lose_first_syn;
    pair.path = Box::new(move |_, _, segment| (segment.syn && !std::mem::replace(&mut lost, true)).then(Vec::new));
    pair.ends[CLIENT].write(2000);
    pair.run_until(ms(3000));
    let of_syns = pair.log.iter().filter(|(_, _, segment)| segment.syn).map(|(_, _, segment)| segment.ace).collect();
    let of_data = pair.log.iter().filter(|(_, _, segment)| segment.payload_bytes > 0);
    (of_syns, of_data.map(|(_, _, segment)| segment.ecn).collect())
}

#[test]
fn both_ends_must_have_it_and_a_repeated_syn_does_not_ask() {
    use EcnMode::{Off, On};
    let (able, not) = (vec![Ecn::Ect0; 2], vec![Ecn::NotEct; 2]);
    // RFC 3168 §6.1.1: an ECN-setup SYN has ECE and CWR, an ECN-setup SYN-ACK has ECE alone.
    assert_eq!(handshake(On, On, false), (vec![ECE | CWR, ECE], able));
    assert_eq!(handshake(On, Off, false), (vec![ECE | CWR, 0], not.clone()));
    assert_eq!(handshake(Off, On, false), (vec![0, 0], not.clone()));
    assert_eq!(handshake(On, On, true), (vec![ECE | CWR, 0, 0], not));
}

#[test]
fn a_first_mark_is_acknowledged_at_once() {
    let delayed_ack = DelayedAck { quick_segments: 0, ..DelayedAck::LINUX };
    let mut pair = established(&Config { delayed_ack, ..with_ecn() }, 4);
    pair.mark = Box::new(|by, segment| {
        if by == CLIENT && segment.seq == 1 {
            segment.ecn = Ecn::Ce;
        }
    });
    run(&mut pair, 90);
    // The first two at once, then two together.
    let acks: Vec<_> = of(&pair, SERVER, false).into_iter().map(|(at, ack)| (at, ack.ack)).collect();
    assert_eq!(acks, [(50, 1001), (50, 2001), (50, 4001)]);
}

/// RFC 8257 §3.2: the receiver tells of each mark, also where it delays its ACKs.
#[test]
fn with_dctcp_a_change_of_the_marks_is_told_at_once_and_what_was_before_it_first() {
    let delayed_ack = DelayedAck { quick_segments: 0, ..DelayedAck::LINUX };
    let config = Config { delayed_ack, ..plain() };
    let mut pair = Pair::new(&config, &config, LawName::Dctcp, Span::from_millis(50));
    pair.run_until(ms(150));
    pair.log.clear();
    pair.ends[CLIENT].write(4000);
    pair.mark = Box::new(|by, segment| {
        if by == CLIENT && [1001, 2001].contains(&segment.seq) {
            segment.ecn = Ecn::Ce;
        }
    });
    run(&mut pair, 90);
    let acks: Vec<_> = of(&pair, SERVER, false).into_iter().map(|(at, ack)| (at, ack.ack, ack.ace)).collect();
    assert_eq!(acks, [(50, 1001, 0), (50, 2001, ECE), (50, 3001, ECE), (50, 4001, 0)]);
    run(&mut pair, 1000);
    assert!(pair.log.iter().all(|(_, _, segment)| segment.ecn == Ecn::Ect0), "ACKs, too");
    assert_eq!(info(&pair).tcp.delivered_ce, 2, "each mark counts once");
}

/// RFC 9768 table 2: AccECN with AccECN, with RFC 3168, without; and an RFC 3168 client with an AccECN server.
#[test]
fn accurate_ecn_is_agreed_or_what_both_have() {
    use EcnMode::{Accurate, Off, On};
    let all = ECE | CWR | 4;
    let flags = |client, server| handshake(client, server, false).0;
    assert_eq!(flags(Accurate, Accurate), [all, CWR]);
    assert_eq!(flags(Accurate, On), [all, ECE]);
    assert_eq!(flags(On, Accurate), [ECE | CWR, ECE]);
    assert_eq!(flags(Accurate, Off), [all, 0]);
    // §3.1.4.1: a repeated SYN still asks.
    assert_eq!(handshake(Accurate, Accurate, true).0, [all, all, CWR]);
}

/// RFC 9768 §3.2.1: ACE begins with 5, and counts modulo 8.
#[test]
fn accurate_ecn_counts_each_mark_and_reduces_once_a_window() {
    let config = Config { ecn: EcnMode::Accurate, ..plain() };
    let mut pair = established(&config, 40);
    // Six of the first ten, with the numbers 0, 2, 3, 6, 7 and 9.
    let marked = [1, 2001, 3001, 6001, 7001, 9001];
    pair.mark = Box::new(move |by, segment| {
        if by == CLIENT && marked.contains(&segment.seq) {
            segment.ecn = Ecn::Ce;
        }
    });
    run(&mut pair, 99);
    let acks: Vec<_> = of(&pair, SERVER, false).into_iter().map(|(_, ack)| ack.ace).collect();
    assert_eq!(acks, [6, 6, 7, 0, 0, 0, 1, 2, 2, 3]);
    run(&mut pair, 1000);
    assert_eq!((info(&pair).tcp.delivered_ce, info(&pair).tcp.retransmits), (6, 0));
    // As above: nine are in flight when the first mark is heard. All are of one window.
    assert_eq!(info(&pair).tcp.ssthresh_segments, Some(4));
    assert!(of(&pair, CLIENT, true).iter().all(|(_, segment)| segment.ecn == Ecn::Ect0 && segment.ace == 5));
}

/// RFC 9768 §3.2.2.5.1.
#[test]
fn accurate_ecn_tells_a_mark_after_none_and_each_second_one_at_once() {
    let delayed_ack = DelayedAck { quick_segments: 0, segments: 20, ..DelayedAck::LINUX };
    let mut pair = established(&Config { ecn: EcnMode::Accurate, delayed_ack, ..plain() }, 8);
    pair.mark = Box::new(|by, segment| {
        if by == CLIENT && (2001..=6001).contains(&segment.seq) {
            segment.ecn = Ecn::Ce;
        }
    });
    run(&mut pair, 80);
    let acks: Vec<_> = of(&pair, SERVER, false).into_iter().map(|(at, ack)| (at, ack.ack, ack.ace)).collect();
    assert_eq!(acks, [(50, 3001, 6), (50, 5001, 0), (50, 7001, 2)]);
}
