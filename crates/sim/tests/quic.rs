//! QUIC connections across the modelled network.
#![allow(missing_docs)]

mod common;

use common::run;
use lasthop_laws::LawName;
use lasthop_scenario::{QuicLaw, ResultFile as _, RunResult, Series};
use lasthop_sim::SimError;

/// With its series.
fn try_run(text: &str, overrides: &[&str]) -> Result<(RunResult, Series), SimError> {
    common::try_run(text, overrides, true)
}

/// One host over a wire of 10 Mb/s and a path of 10 ms each way.
const WIRE: &str = "
duration_s = 30
warmup_s = 10
[access]
kind = \"wired\"
rate_mbps = 10
queue_packets = 50
[path]
rtt_ms = 20
rate_mbps = 1000
[[hosts]]
queue_packets = 200
[[hosts.flows]]
kind = \"quic\"
";

/// A host with QUIC and one with TCP at an access point of 802.11g.
const BESIDE_TCP: &str = "
duration_s = 20
warmup_s = 5
[path]
rtt_ms = 20
[[hosts]]
[[hosts.flows]]
kind = \"quic\"
[[hosts]]
";

#[test]
fn a_connection_alone_gets_what_the_wire_carries_in_either_direction_by_either_law() {
    for direction in ["up", "down"] {
        for law in ["cubic", "newreno", "vegas", "westwood", "ucc"] {
            let direction = format!("hosts.0.flows.0.direction={direction}");
            let law_key = format!("hosts.0.flows.0.congestion_control={law}");
            let result = run(WIRE, &[&direction, &law_key]);
            let flow = &result.flows[0];
            // Of 1480 bytes some 1420 are data.
            assert!((9.2..9.65).contains(&flow.goodput_mbps), "{direction} {law}: {flow:?}");
            assert_eq!(
                (flow.kind.as_str(), flow.congestion_control.as_deref(), flow.timeouts),
                ("quic", Some(law), None)
            );
            assert!(flow.always_busy && flow.cwnd_mean.is_some_and(|cwnd| cwnd > 10.0), "{flow:?}");
            let rtt = flow.rtt_ms.expect("round trips");
            assert!(rtt.min > 20.0 && rtt.p95 < 300.0, "{rtt:?}");
            assert!(result.notes.is_empty(), "{:?}", result.notes);
        }
    }
}

/// Whatever law can be one of QUIC's is one.
#[test]
fn quic_has_every_law_that_hears_no_reports() {
    let own = ["newreno", "cubic", "host"];
    let ours = LawName::ALL.into_iter().filter(|name| lasthop_quic::Law::ours(*name).is_some()).map(LawName::as_str);
    let mut expected: Vec<&str> = own.into_iter().chain(ours.filter(|name| !own.contains(name))).collect();
    let mut words: Vec<&str> = QuicLaw::WORDS.iter().map(|(word, _)| *word).collect();
    expected.sort_unstable();
    words.sort_unstable();
    assert_eq!(words, expected);
}

/// 10 Mb/s of 1480 bytes a datagram with some 1420 of data are 9.59 Mb/s. A law that paces has 0.95 of it, and mean round trips at most 1.3
/// times the path's, as over TCP; where a hundredth is lost Copa and BBR keep nine tenths, which CUBIC does not.
#[test]
fn laws_that_pace_fill_the_wire_and_keep_its_queue_short() {
    for law in ["bbr", "bbr3", "copa"] {
        for direction in ["up", "down"] {
            let keys = [
                format!("hosts.0.flows.0.direction={direction}"),
                format!("hosts.0.flows.0.congestion_control={law}"),
                "path.rtt_ms=40".to_owned(),
                "access.queue_packets=100".to_owned(),
                "duration_s=40".to_owned(),
            ];
            let flow = run(WIRE, &keys.each_ref().map(String::as_str)).flows.remove(0);
            let rtt = flow.rtt_ms.expect("round trips").mean;
            assert!(flow.goodput_mbps > 0.95 * 9.59 && rtt < 1.3 * 40.0, "{direction} {law}: {flow:?}");
            assert_eq!(flow.congestion_control.as_deref(), Some(law));
        }
    }
    let lossy = |law: &str| {
        let law = format!("hosts.0.flows.0.congestion_control={law}");
        run(WIRE, &["path.rtt_ms=40", "path.loss=0.01", "duration_s=40", &law]).flows[0].goodput_mbps
    };
    let [bbr, copa, cubic] = ["bbr", "copa", "cubic"].map(lossy);
    assert!(bbr.min(copa) > 0.9 * 9.59 && cubic < 0.5 * 9.59, "{bbr} {copa} {cubic}");
}

/// 100 Mb/s with marks from 20 packets of 1500 bytes on.
const THRESHOLD: [&str; 6] = [
    "hosts.0.flows.0.direction=down",
    "access.rate_mbps=100",
    "path.rtt_ms=8",
    "access.queue=codel",
    "access.queue_packets=1000",
    "access.ce_threshold_ms=2.4",
];

/// CUBIC and NewReno are quinn's own; Westwood+ and Copa are laws of ours, of the first and the second form.
#[test]
fn queues_mark_datagrams_instead_of_dropping_them_where_the_host_has_ecn() {
    for law in ["cubic", "newreno", "westwood", "copa"] {
        let law = format!("hosts.0.flows.0.congestion_control={law}");
        let with = |more: &[&str]| {
            // So low that Copa is marked, too.
            let short = ["access.ce_threshold_ms=0.5", "duration_s=8", "warmup_s=2"];
            run(WIRE, &[&THRESHOLD[..], &short, &[&law], more].concat())
        };
        let [on, off, bleached] = [
            with(&["hosts.0.tcp.ecn=on"]),
            with(&["hosts.0.tcp.ecn=off"]),
            with(&["hosts.0.tcp.ecn=on", "path.bleach_ecn=true"]),
        ];
        let (marks, told) = (on.access.downlink_marks, on.flows[0].delivered_ce);
        assert!(marks > 0 && on.access.downlink_drops == 0 && on.flows[0].retransmits == 0, "{law} {:?}", on.access);
        // Each is told: some of them behind the end.
        assert!(told <= marks + 20 && told + 20 >= marks, "{law}: {told} of {marks}");
        for result in [off, bleached] {
            assert_eq!((result.access.downlink_marks, result.flows[0].delivered_ce), (0, 0), "{law}");
        }
    }
}

/// As over TCP: RFC 8257 §3.1.
#[test]
fn dctcp_over_quic_holds_the_queue_at_the_threshold_and_keeps_the_link() {
    let with = |law: &str| {
        let law = format!("hosts.0.flows.0.congestion_control={law}");
        let result = run(WIRE, &[&THRESHOLD[..], &["duration_s=12", "warmup_s=4", &law]].concat());
        (result.access.downlink_queue_mean.expect("a queue"), result.utilization)
    };
    let (mean, utilization) = with("dctcp");
    assert!((10.0..=30.0).contains(&mean) && utilization > 0.97, "{mean}, {utilization}");
}

/// As over TCP: RFC 9332. Its datagrams are ECT(1), and the path need not be told by the host.
#[test]
fn prague_over_quic_shares_a_link_behind_dualpi2_and_hardly_waits() {
    let cubic = "[[hosts]]\nera = \"modern\"\n[[hosts.flows]]\ndirection = \"down\"\n";
    let settings = [
        "hosts.0.flows.0.direction=down",
        "hosts.0.flows.0.congestion_control=prague",
        "duration_s=40",
        "access.rate_mbps=40",
        "access.queue=dualpi2",
        "access.queue_packets=10000",
    ];
    let result = run(&format!("{WIRE}{cubic}"), &settings);
    let [quic, tcp] = &result.flows[..] else { panic!("two flows") };
    assert!(quic.goodput_mbps >= 0.35 * 40.0 && tcp.goodput_mbps >= 0.3 * 40.0, "{quic:?} {tcp:?}");
    let rtt = quic.rtt_ms.expect("it was measured");
    assert!(rtt.p99 - 20.0 < 5.0 && quic.retransmits == 0, "{rtt:?}");
}

/// With its parameters.
#[test]
fn a_flow_may_have_the_law_of_its_host() {
    let text = |more: &[&str]| {
        let mut result = run(WIRE, &[&["hosts.0.congestion_control=hd"], more].concat());
        result.flows.remove(0)
    };
    let host = text(&["hosts.0.flows.0.congestion_control=host"]);
    assert_eq!(host, text(&["hosts.0.flows.0.congestion_control=hd"]));
    assert_eq!(host.congestion_control.as_deref(), Some("hd"));
    let other = text(&["hosts.0.flows.0.congestion_control=host", "hosts.0.hd.max_probability=0.9"]);
    assert!(host.goodput_mbps != other.goodput_mbps || host.rtt_ms != other.rtt_ms);
    let lastlink = ["hosts.0.congestion_control=lastlink", "hosts.0.flows.0.congestion_control=host"];
    let error = try_run(WIRE, &lastlink).expect_err("QUIC has no reports").to_string();
    assert!(error.contains("hosts[0].flows[0].congestion_control: \"host\" is the host's"), "{error}");
}

/// As over TCP: Vegas leaves the queue nearly empty, LEDBAT++ keeps 60 ms of it, and quinn's CUBIC fills it.
#[test]
fn laws_of_delay_keep_the_queue_short_over_quic_too() {
    let mean = |law: &str| {
        let law = format!("hosts.0.flows.0.congestion_control={law}");
        run(WIRE, &["access.queue_packets=200", "hosts.0.flows.0.direction=down", &law]).flows[0]
            .rtt_ms
            .expect("known")
            .mean
    };
    let (vegas, ledbat, cubic) = (mean("vegas"), mean("ledbat++"), mean("cubic"));
    assert!(vegas < 30.0 && ledbat < 85.0 && cubic > 100.0, "{vegas} {ledbat} {cubic}");
}

#[test]
fn a_run_is_the_same_twice_and_another_with_another_seed() {
    let once = |seed: &str| {
        let (result, series) = try_run(BESIDE_TCP, &[seed, "duration_s=8"]).unwrap_or_else(|error| panic!("{error}"));
        (result.to_json(), format!("{series:?}"))
    };
    let first = once("seed=1");
    assert!(first == once("seed=1"), "the same scenario and seed");
    assert!(first != once("seed=2"));
}

#[test]
fn a_lossy_path_loses_packets_and_goodput() {
    let [clean, lossy] =
        ["path.loss=0", "path.loss=0.01"].map(|loss| run(WIRE, &[loss, "path.rtt_ms=60"]).flows.remove(0));
    // At 1452 bytes a packet some 1 % of the 5000 or so that are sent in 20 s.
    let sent = lossy.goodput_mbps * 1e6 * 20.0 / 8.0 / 1420.0;
    let share = lossy.retransmits as f64 / sent;
    assert!((0.006..0.016).contains(&share), "{share}: {lossy:?}");
    assert!(lossy.goodput_mbps < 0.7 * clean.goodput_mbps, "{lossy:?}");
}

#[test]
fn it_shares_an_access_point_with_tcp() {
    let result = run(BESIDE_TCP, &[]);
    let [quic, tcp] = &result.flows[..] else { panic!("two flows") };
    assert!((20.0..30.0).contains(&result.aggregate_goodput_mbps), "{}", result.aggregate_goodput_mbps);
    assert!(quic.goodput_mbps > 0.2 * tcp.goodput_mbps && tcp.goodput_mbps > 0.2 * quic.goodput_mbps);
    assert_eq!(result.fairness_flows, 2);
    // The agent of the one host finds nothing to bound at the other, nor at its own QUIC.
    let agents = run(BESIDE_TCP, &["hosts.*.policy=lasthop"]);
    let [quic, tcp] = &agents.flows[..] else { panic!("two flows") };
    assert_eq!(quic.controlled_share, 0.0);
    assert!(quic.goodput_mbps > 1.0 && tcp.goodput_mbps > 1.0);
}

#[test]
fn a_flow_that_stops_sends_what_was_written_and_closes() {
    let stop = ["hosts.0.flows.0.stop_s=15"];
    let (result, series) = try_run(WIRE, &stop).unwrap_or_else(|error| panic!("{error}"));
    let flow = &result.flows[0];
    // 5 of 20 s, and what was in the send buffer.
    let share = flow.goodput_mbps / run(WIRE, &[]).flows[0].goodput_mbps;
    assert!((0.25..0.35).contains(&share), "{share}");
    let last = series.flows.of_flow(0).map(|sample| sample.t_s).fold(0.0, f64::max);
    assert!((15.0..17.0).contains(&last), "{last}");
    assert!(result.notes.is_empty() && !flow.always_busy, "{:?}", result.notes);
}

#[test]
fn transfers_take_a_round_trip_for_the_handshake_and_their_time() {
    let result =
        run(WIRE, &["hosts.0.flows.0.transfer_kib=100", "hosts.0.flows.0.direction=down", "hosts.0.flows.0.off_s=0.5"]);
    let transfers = result.transfers.as_ref().expect("transfers");
    // 100 KiB at 10 Mb/s are 84 ms. The handshake takes 20 ms until the server may send, and the slow start of ten packets three
    // more round trips. With a pause of 0.5 s that is some 30 in 20 s.
    let took = transfers.took_ms.expect("times");
    assert!((100.0..300.0).contains(&took.mean), "{took:?}");
    assert!((15..50).contains(&transfers.delivered), "{transfers:?}");
    assert_eq!(result.flows[0].undelivered, 0);
}

#[test]
fn a_path_that_breaks_for_a_minute_ends_the_connection() {
    let broken = format!("{WIRE}\n[[changes]]\nat_s = 12\nof = \"path\"\nloss = 1\n");
    let result = run(&broken, &["duration_s=120"]);
    assert!(result.notes.iter().any(|note| note.contains("1 of 1 flows gave up")), "{:?}", result.notes);
}

#[test]
fn packets_that_are_too_small_for_quic_are_refused_by_their_key() {
    let error = try_run(WIRE, &["hosts.0.tcp.mss_bytes=1000"]).expect_err("too small");
    assert!(error.to_string().contains("on some.toml: hosts[0].tcp.mss_bytes: "), "{error}");
    // Just enough, and nothing larger is looked for.
    let result = run(WIRE, &["hosts.0.tcp.mss_bytes=1188"]);
    assert!((9.3..9.6).contains(&result.flows[0].goodput_mbps), "{:?}", result.flows[0]);
}
