//! A client's link reports: how they travel, and what the server's law `lastlink` does with them. The path takes 50 ms
//! each way, segments carry 1000 bytes, and the server sends. 7 Mb/s in a round trip of 100 ms are 87 segments.

use super::*;
use crate::last_link::{answers, report_in};
use crate::{DelayedAck, Recovery};
use lasthop_connection::CongestionState;
use lasthop_laws::{Applied, LinkReport};
use lasthop_units::{Bytes, Probability, Rate};

fn report(mbps: f64, error_rate: f64) -> LinkReport {
    LinkReport {
        bandwidth: Some(Rate::from_mbps(mbps)),
        error_rate: Probability::new(error_rate).ok(),
        validity: Span::from_secs(64),
    }
}

fn plain() -> Config {
    Config {
        mss: Bytes::new(1000),
        timestamps: false,
        rack_tlp: false,
        delayed_ack: DelayedAck::OFF,
        slow_start: lasthop_laws::SlowStart::Standard,
        ..Config::linux_2012()
    }
}

/// The law of [wu], with changed parameters.
fn paper(changes: &[(&str, f64)]) -> Choice {
    let mut choice = Choice::from(LawName::Lastlink);
    let guards = [
        "least_segments",
        "initial_max_segments",
        "error_max",
        "error_deviations",
        "memory_segments",
        "ignored_max",
        "queue_ratio",
        "errors_end_slow_start",
        "achieved_headroom",
    ];
    for (name, value) in guards.map(|name| (name, 0.0)).iter().chain(changes) {
        choice.parameters.set(LawName::Lastlink, name, *value).expect("a parameter of lastlink");
    }
    choice
}

/// A client that reports with its SYN, and a server to which `segments` segments were written.
fn pair(config: &Config, law: Choice, said: LinkReport, segments: u64) -> Pair {
    let mut pair = Pair::new(config, config, law, Span::from_millis(50));
    pair.ends[CLIENT].report_link(Some(said));
    pair.ends[SERVER].write(segments * 1000);
    pair
}

fn applied(pair: &Pair) -> Option<Applied> {
    pair.ends[SERVER].info().last_link
}

/// The client's reports, with their times in ms.
fn said(pair: &Pair) -> Vec<(u64, LinkReport)> {
    let of_client = |(at, by, segment): &(Time, usize, Segment)| {
        report_in(segment).filter(|_| *by == CLIENT).map(|report| ((*at - Time::ZERO).as_millis(), report))
    };
    pair.log.iter().filter_map(of_client).collect()
}

/// The numbers of the segments that the server sent at `at` ms.
fn at(pair: &Pair, at: u64) -> Vec<u64> {
    let sent = pair.data(SERVER, Time::ZERO);
    sent.into_iter().filter(|(when, ..)| *when == ms(at)).map(|(_, seq, _)| seq / 1000).collect()
}

fn window(pair: &Pair) -> (u32, Option<u32>) {
    let info = pair.ends[SERVER].info();
    (info.tcp.cwnd_segments, info.tcp.ssthresh_segments)
}

// Negotiation.

/// ```text
/// ms      0              50                 100              150
/// client  SYN, 7 Mb/s                       ACK
/// server                 SYN-ACK, answer                     87 segments
/// ```
#[test]
fn the_first_flight_is_the_product_of_bandwidth_and_rtt() {
    let mut pair = pair(&plain(), paper(&[]), report(7.0, 0.0), 1000);
    pair.run_until(ms(151));
    assert_eq!(said(&pair), [(0, report(7.0, 0.0))]);
    assert!(answers(&pair.log[1].2));
    assert_eq!(at(&pair, 150), (0..87).collect::<Vec<_>>());
    assert_eq!(window(&pair), (87, Some(87)));
    let applied = applied(&pair).expect("a report");
    assert_eq!((applied.bandwidth, applied.initial_segments), (Some(Rate::from_mbps(7.0)), Some(87)));
}

/// Ten segments are sent at 150 ms, whatever was reported.
#[test]
fn a_server_that_does_not_hear_makes_an_ordinary_connection() {
    let deaf = Config { last_link: false, ..plain() };
    for (config, law) in [(&deaf, paper(&[])), (&plain(), LawName::NewReno.into())] {
        let mut pair = pair(config, law, report(7.0, 0.0), 1000);
        pair.run_until(ms(151));
        pair.ends[CLIENT].report_link(Some(report(5.0, 0.0)));
        pair.run_until(ms(2000));
        assert_eq!((at(&pair, 150).len(), applied(&pair)), (10, None));
        assert_eq!(said(&pair), [(0, report(7.0, 0.0))], "the SYN, and nothing after it");
        assert!(pair.log.iter().all(|(_, by, segment)| *by == CLIENT || segment.link.is_none()));
    }
}

/// A middlebox drops segments with unknown options. The next SYN, a second later, carries no report, and this
/// connection does not use the option.
#[test]
fn a_syn_that_goes_again_goes_without_the_report() {
    let mut pair = pair(&plain(), paper(&[]), report(7.0, 0.0), 1000);
    pair.path = Box::new(|_, by, segment| (by == CLIENT && segment.link.is_some()).then(Vec::new));
    pair.run_until(ms(1151));
    assert_eq!((at(&pair, 1150).len(), said(&pair).len(), applied(&pair)), (10, 1, None));
    pair.ends[CLIENT].report_link(Some(report(5.0, 0.0)));
    pair.run_until(ms(1500));
    assert_eq!(said(&pair).len(), 1);
}

/// The first SYN-ACK is lost, and the second has no answer: the server has the report of the SYN, and gets no other.
/// Linux forgives one lost segment of the handshake. But this handshake gives no RTT sample (Karn): the first ACK of
/// data does.
#[test]
fn a_lost_answer_leaves_the_first_report_and_the_window_follows_the_first_ack() {
    let mut pair = pair(&plain(), paper(&[]), report(7.0, 0.0), 1000);
    let mut lost = 0;
    pair.path = Box::new(move |_, by, segment| {
        lost += u32::from(by == SERVER && segment.syn);
        (by == SERVER && segment.syn && lost == 1).then(Vec::new)
    });
    pair.run_until(ms(1300));
    let flights: Vec<u64> =
        pair.data(SERVER, Time::ZERO).iter().map(|(at, ..)| (*at - Time::ZERO).as_millis()).collect();
    let (first, second) = (flights[0], flights.iter().copied().find(|at| *at > flights[0]).expect("a second flight"));
    assert_eq!(second - first, 100);
    // The first ACK fills the flight up to 87, each later one sends one more.
    assert_eq!((at(&pair, first).len(), at(&pair, second).len()), (10, 87 - 9 + 9));
    assert_eq!(window(&pair), (87, Some(87)));
    pair.ends[CLIENT].report_link(Some(report(5.0, 0.0)));
    pair.run_until(ms(3000));
    assert_eq!(said(&pair).len(), 1);
}

/// RFC 5681 §3.1: after two lost segments of the handshake the window begins with one segment, whatever is reported.
#[test]
fn after_two_lost_syn_acks_the_window_begins_with_one_segment() {
    let mut pair = pair(&plain(), paper(&[]), report(7.0, 0.0), 1000);
    let mut lost = 0;
    pair.path = Box::new(move |_, by, segment| {
        lost += u32::from(by == SERVER && segment.syn);
        (by == SERVER && segment.syn && lost <= 2).then(Vec::new)
    });
    while applied(&pair).is_none() {
        assert!(pair.step(Time::MAX));
    }
    assert_eq!(window(&pair), (1, None));
    pair.run_until(pair.now + Span::from_millis(150));
    assert_eq!(applied(&pair).and_then(|applied| applied.initial_segments), None);
}

#[test]
fn a_new_report_goes_with_three_segments_and_again_when_half_of_it_is_over() {
    let mut pair = pair(&plain(), paper(&[]), report(7.0, 0.0), 1_000_000);
    pair.run_until(ms(1000));
    assert_eq!(said(&pair).len(), 1);
    pair.ends[CLIENT].report_link(Some(report(5.0, 0.001)));
    pair.run_until(ms(3000));
    let after: Vec<_> = said(&pair).split_off(1);
    assert_eq!(after.iter().map(|(_, report)| *report).collect::<Vec<_>>(), [report(5.0, 0.001); 3]);
    assert_eq!(applied(&pair).and_then(|applied| applied.bandwidth), Some(Rate::from_mbps(5.0)));
    // Half of the third copy's 64 s are over.
    let third = after[2].0;
    pair.run_until(ms(third + 31_900));
    assert_eq!(said(&pair).len(), 4);
    pair.run_until(ms(third + 32_200));
    assert_eq!(said(&pair).len(), 7);
    // The same report again changes nothing; an unknown link is a retraction.
    pair.ends[CLIENT].report_link(Some(report(5.0, 0.001)));
    pair.run_until(ms(third + 33_000));
    assert_eq!(said(&pair).len(), 7);
    pair.ends[CLIENT].report_link(None);
    pair.run_until(ms(third + 34_000));
    let retraction = LinkReport { validity: Span::from_secs(1), ..LinkReport::RETRACTION }; // the shortest validity
    assert_eq!(said(&pair).split_off(7).iter().map(|(_, said)| *said).collect::<Vec<_>>(), [retraction; 3]);
    assert_eq!(applied(&pair).and_then(|applied| applied.bandwidth), None);
}

/// 40 bytes of options: beside timestamps (12) and two SACK blocks (20) there are 8 left, beside one block 16.
#[test]
fn the_report_gives_way_to_sack_blocks() {
    let config = Config { timestamps: true, mss: Bytes::new(1012), ..plain() };
    let mut pair = pair(&config, paper(&[]), report(7.0, 0.5), 1_000_000);
    pair.run_until(ms(1000));
    // Four holes in the flight sent at 1050 ms; the client knows 50 ms later.
    pair.path = Box::new(move |at, by, segment| {
        let holes = [10, 12, 14, 16].map(|behind| segment.seq / 1000 % 87 == behind);
        (at == ms(1050) && by == SERVER && holes.contains(&true)).then(Vec::new)
    });
    pair.run_until(ms(1090));
    let since = pair.log.len();
    pair.ends[CLIENT].report_link(Some(report(5.0, 0.5)));
    while said(&pair).len() < 2 {
        assert!(pair.step(Time::MAX));
    }
    let without = |(_, by, segment): &&(Time, usize, Segment)| *by == CLIENT && segment.sack.len() >= 2;
    assert!(pair.log[since..].iter().filter(without).count() > 60, "all after the second hole");
    pair.run_until(ms(2000));
    assert_eq!(said(&pair).len(), 4);
    for (_, _, segment) in pair.log.iter().filter(|(.., segment)| segment.link.is_some()) {
        assert!(segment.sack.len() < 2);
        assert!(segment.ip_bytes() <= Bytes::new(80), "20 IP + 20 TCP + 40 options");
    }
}

/// The client's full segments have no room; its ACKs of the server's data have.
#[test]
fn a_full_segment_has_no_room_for_the_report() {
    let mut pair = pair(&plain(), paper(&[]), report(7.0, 0.0), 10);
    pair.ends[CLIENT].write(1_000_000);
    pair.run_until(ms(1000));
    pair.ends[CLIENT].report_link(Some(report(5.0, 0.0)));
    pair.run_until(ms(2000));
    assert_eq!(said(&pair).len(), 1, "the client only sends");
    pair.ends[SERVER].write(10_000);
    pair.run_until(ms(3000));
    let with = pair.log.iter().filter(|(.., segment)| segment.link.is_some() && !segment.syn);
    assert!(with.clone().count() == 3 && with.clone().all(|(.., segment)| segment.payload_bytes == 0));
}

// The law in a stack.

#[test]
fn the_window_stops_at_cwnd_max_and_is_not_cut_when_that_falls() {
    let mut pair = pair(&plain(), paper(&[("initial_window", 0.0)]), report(7.0, 0.0), 1_000_000);
    pair.run_until(ms(1000));
    assert_eq!(window(&pair).0, 87);
    assert_eq!(applied(&pair).and_then(|applied| applied.cwnd_max_segments), Some(87));
    pair.run_until(ms(5000));
    assert_eq!((window(&pair).0, at(&pair, 4950).len()), (87, 87));
    pair.ends[CLIENT].report_link(Some(report(4.0, 0.0)));
    pair.run_until(ms(10_000));
    assert_eq!(applied(&pair).and_then(|applied| applied.cwnd_max_segments), Some(50));
    assert_eq!((window(&pair).0, at(&pair, 9950).len()), (87, 87));
}

/// With SACK and PRR, and with NewReno's inflated window, which [wu] used: an ignored loss is repaired in a round trip,
/// and the next flights are as large as the one before.
#[test]
fn an_ignored_loss_is_retransmitted_and_leaves_the_window() {
    let newreno = Config { sack: false, recovery: Recovery::NewReno, window_scaling: false, ..plain() };
    for config in [plain(), Config { recovery: Recovery::PrrRfc9937, ..plain() }, newreno] {
        let law = paper(&[("max_cwnd", 1.0)]);
        // 48 segments, with and without window scaling
        let mut pair = pair(&config, law, report(3.84, 0.01), 100_000);
        pair.run_until(ms(1140));
        assert_eq!((window(&pair).0, at(&pair, 1050).len()), (48, 48), "{:?}", config.recovery);
        let mut lost = false;
        pair.path = Box::new(move |_, by, segment| {
            (by == SERVER && segment.payload_bytes > 0 && !std::mem::replace(&mut lost, true)).then(Vec::new)
        });
        // Lost at 1150, detected at 1250, repaired at 1350.
        pair.run_until(ms(1260));
        let info = pair.ends[SERVER].info();
        assert_eq!((info.tcp.state, info.tcp.retransmits), (CongestionState::Recovery, 1), "{:?}", config.recovery);
        pair.run_until(ms(1460));
        let info = pair.ends[SERVER].info();
        assert_eq!((info.tcp.state, info.tcp.retransmits, info.tcp.timeouts.unwrap()), (CongestionState::Open, 1, 0));
        assert_eq!((window(&pair).0, at(&pair, 1450).len()), (48, 48), "{:?}", config.recovery);
        let applied = applied(&pair).expect("a report");
        assert_eq!((applied.ignored_losses, applied.heeded_losses()), (1, 0));
    }
}

/// A loss rate of 1/1000 is reported. So far 1 of 865 segments is lost, with the present loss, which is more.
#[test]
fn a_loss_above_the_error_rate_halves_the_window() {
    let mut pair = pair(&plain(), paper(&[]), report(3.84, 0.001), 100_000);
    pair.run_until(ms(1140));
    let mut lost = false;
    pair.path = Box::new(move |_, by, segment| {
        (by == SERVER && segment.payload_bytes > 0 && !std::mem::replace(&mut lost, true)).then(Vec::new)
    });
    pair.run_until(ms(1460));
    let (cwnd, ssthresh) = window(&pair);
    assert_eq!(ssthresh, Some(24));
    assert!((24..=26).contains(&cwnd), "{cwnd}");
}
