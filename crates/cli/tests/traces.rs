//! Scenarios that follow files, and scenarios made of agents' records. What kernel hosts recorded: replays.rs.

use crate::common::{lasthop, result};
use lasthop_scenario::{ResultFile as _, RunResult};
use std::fs;
use tempfile::TempDir;

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        fs::write(folder.path().join(name), text).expect("written");
    }
    folder
}

fn path(folder: &TempDir, name: &str) -> String {
    folder.path().join(name).display().to_string()
}

/// What a command that works has printed.
fn said(arguments: &[&str]) -> String {
    let output = lasthop(arguments).output().expect("the command starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// What a command that is refused has said.
fn refused(arguments: &[&str]) -> String {
    let output = lasthop(arguments).output().expect("the command starts");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    String::from_utf8(output.stderr).expect("text")
}

fn simulated(scenario: &str) -> RunResult {
    result(&lasthop(&["run", scenario, "--json"]).output().expect("the command starts"))
}

#[test]
fn what_a_run_with_a_trace_keeps_runs_again_without_the_file() {
    let folder = folder(&[]);
    let out = path(&folder, "out");
    said(&["run", "trace/train", "--set", "duration_s=8", "--set", "warmup_s=2", "--out", &out]);
    let kept = format!("{out}/scenario.toml");
    let text = fs::read_to_string(&kept).expect("it is kept");
    assert!(!text.contains("train.mahimahi") && text.contains("opportunities_ms = "), "{text}");
    let first = fs::read_to_string(format!("{out}/result.json")).expect("a result");
    let first = RunResult::from_json(&first).expect("a result");
    assert_eq!(simulated(&kept).flows, first.flows);
    // The rate falls to nothing for 0.8 s, and comes back.
    assert!(first.aggregate_goodput_mbps > 1.0 && first.aggregate_goodput_mbps < 8.0, "{first:?}");
}

/// A flow of packets of 1200 bytes each 9.6 ms, over a link of 5 Mb/s.
const SLOW_SECOND: &str = "duration_s = 20\nwarmup_s = 0\n[[links]]\nbetween = [\"C\", \"S\"]\nrate_mbps = 5\n\
                           queue_packets = 10000\n[[hosts]]\nnode = \"C\"\n[[hosts.flows]]\nto = \"S\"\n\
                           kind = \"constant\"\npacket_bytes = 1200\nrate_mbps = 1\n[[changes]]\n\
                           between = [\"C\", \"S\"]\ntrace = \"dip.csv\"\n";

/// The case slow-second of issue 37: records of 5G have seconds of 1 to 11 kb/s.
#[test]
fn a_second_of_almost_nothing_delays_what_comes_in_that_second_and_no_more() {
    for (dip, changes) in [
        ("5,0.001\n6,5\n", 2),
        // Up and down within the packet that is being sent, and from a rate of one bit in a second.
        ("5,0.001\n5.2,0.004\n5.4,0.002\n5.6,0.011\n5.8,0.001\n6,5\n", 6),
    ] {
        let folder = folder(&[("some.toml", SLOW_SECOND), ("dip.csv", &format!("at_s,rate_mbps\n{dip}"))]);
        let result = simulated(&path(&folder, "some.toml"));
        assert_eq!(result.scenario["changes"].as_array().expect("changes").len(), changes);
        let datagrams = result.flows[0].datagrams.expect("they are datagrams");
        let delay = datagrams.one_way_ms.expect("some came");
        // 105 packets come in that second, and some 26 more while they leave at 5 Mb/s; the others take 1.92 ms.
        assert!((30.0..42.0).contains(&delay.mean) && (950.0..1010.0).contains(&delay.max), "{delay:?}");
        assert_eq!(datagrams.lost, 0);
    }
}

/// The case small-packets of issue 37: a call over ten opportunities each 200 ms.
#[test]
fn small_packets_wait_for_the_opportunities_of_a_trace_and_share_them() {
    let scenario = "duration_s = 30\nwarmup_s = 1\n[[links]]\nbetween = [\"C\", \"S\"]\nrate_mbps = 100\n[[changes]]\n\
                    between = [\"C\", \"S\"]\ntrace = \"ten.trace\"\n[[hosts]]\nnode = \"C\"\n[[hosts.flows]]\n\
                    to = \"S\"\nkind = \"constant\"\nstart_s = 0\n";
    let folder = folder(&[("some.toml", scenario), ("ten.trace", &"200\n".repeat(10))]);
    let call = simulated(&path(&folder, "some.toml")).flows[0].datagrams.expect("datagrams");
    let delay = call.one_way_ms.expect("some came");
    // 0, 20, .. 180 ms, and at most 50 us of jitter.
    assert!((90.0..90.1).contains(&delay.mean) && delay.max < 180.1 && call.lost == 0, "{delay:?}");
}

/// The case suspension of issue 37: a station that is away for 150 ms each second, with rows of 0 and of held.
#[test]
fn a_station_that_is_held_loses_nothing_and_one_that_is_broken_does() {
    let scenario = "duration_s = 20\nwarmup_s = 2\n[access]\nstandard = \"802.11g\"\nqueue_packets = 1000\n[path]\n\
                    rtt_ms = 20\n[[changes]]\nhosts = [0]\ntrace = \"away.csv\"\n[[hosts]]\n[[hosts.flows]]\n\
                    kind = \"constant\"\ndirection = \"down\"\n";
    let rows = |column: &str, away: &str, back: &str| {
        let seconds = (1..20).map(|second| format!("{second},{away}\n{second}.15,{back}\n"));
        format!("at_s,{column}\n{}", seconds.collect::<String>())
    };
    let call = |rows: &str| {
        let folder = folder(&[("some.toml", scenario), ("away.csv", rows)]);
        simulated(&path(&folder, "some.toml")).flows[0].datagrams.expect("datagrams")
    };
    let held = call(&rows("held", "true", "false"));
    let delay = held.one_way_ms.expect("some came");
    // The packet that is sent as a hold begins comes to the access point 10 ms later, and waits for the hold's end at 150 ms.
    assert_eq!(held.lost, 0);
    assert!((149.9..153.0).contains(&delay.max) && (10.0..12.0).contains(&delay.p50), "{delay:?}");
    let broken = call(&rows("rate_mbps", "0", "54"));
    assert!(broken.lost > 50, "{broken:?}");
}

/// The case plain-trace of issue 37.
#[test]
fn a_trace_without_a_header_is_read_with_a_note() {
    let scenario = "duration_s = 4\nwarmup_s = 1\n[[links]]\nbetween = [\"C\", \"S\"]\nrate_mbps = 50\n[[changes]]\n\
                    between = [\"C\", \"S\"]\ntrace = \"bandwidth.txt\"\n[[hosts]]\nnode = \"C\"\n[[hosts.flows]]\n\
                    to = \"S\"\n";
    let folder = folder(&[("some.toml", scenario), ("bandwidth.txt", "0.0 4.2\n0.5 3.1\n")]);
    let output = lasthop(&["run", &path(&folder, "some.toml"), "--json"]).output().expect("the command starts");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("bandwidth.txt has no header line: read as at_s,rate_mbps (seconds and Mb/s)"), "{told}");
    assert!((2.5..3.1).contains(&result(&output).aggregate_goodput_mbps));
}

/// The case equal-streams of issue 37: two streams of a constant rate into one full queue.
#[test]
fn equal_streams_share_a_full_queue_because_their_senders_have_a_jitter() {
    let scenario = "duration_s = 20\nwarmup_s = 5\n[access]\nstandard = \"802.11g\"\n[path]\nrtt_ms = 2\n[[hosts]]\n\
                    count = 2\n[[hosts.flows]]\nkind = \"constant\"\ndirection = \"down\"\nrate_mbps = 100\n\
                    packet_bytes = 1500\n";
    let folder = folder(&[("some.toml", scenario)]);
    let some = path(&folder, "some.toml");
    let shares = |set: &[&str]| {
        let arguments = [&["run", &some, "--json"], set].concat();
        let result = result(&lasthop(&arguments).output().expect("the command starts"));
        result.flows.iter().map(|flow| flow.goodput_mbps).collect::<Vec<_>>()
    };
    let with_jitter = shares(&[]);
    assert!((with_jitter[0] / with_jitter[1] - 1.0).abs() < 0.15 && with_jitter[0] > 13.0, "{with_jitter:?}");
    // Without it one phase is locked to the other.
    let locked = shares(&["--set", "hosts.0.flows.0.jitter_us=0"]);
    assert!(locked[0].max(locked[1]) > 3.0 * locked[0].min(locked[1]), "{locked:?}");
}

const READY: &str = r#"{"event":"ready","t_ns":1000000000,"unix_ms":5000,"interface":"wlan0","congestion_control":"lasthop","mode":"control","policy":"lasthop","version":"0.1.0"}"#;

/// A tick each half second of a host with one connection, and those of its radio and peers.
fn tick(half: u64, terminals: u32, mbps: u64, unsent: u64, tx: f64) -> String {
    let acked = half * mbps * 62_500;
    format!(
        r#"{{"event":"tick","t_ns":{},"late_ns":0,"terminals":{terminals},"flows":[{{"cookie":7,"local":"10.0.0.2:5000","remote":"192.0.2.1:443","congestion_control":"lasthop","controlled":true,"srtt_us":40000,"min_rtt_us":31000,"cwnd_segments":20,"ssthresh_segments":null,"state":"Open","in_flight_segments":10,"unsent_bytes":{unsent},"retransmits":0,"delivery_rate_mbps":null,"acked_bytes":{acked},"received_bytes":0,"receive_rtt_us":null,"mss_bytes":1448,"busy":true,"bound":null,"bound_until_ns":null,"advised":null,"enabled":false,"enabled_at_ns":null,"reason":"idle"}}],"beacons":{{"sent":0,"unsent":0,"heard":0,"rejected":0}},"wifi":{{"bssid":"02:00:00:00:00:01","ssid":"x","frequency_mhz":5180,"signal_dbm":-52,"tx_bitrate_mbps":{tx},"tx_modulation":"aggregated","rx_bitrate_mbps":null,"rx_modulation":null,"expected_throughput_mbps":null,"cts_protection":null,"short_slots":null,"tx_packets":{},"tx_retries":{},"tx_failed":null,"rx_packets":null,"rx_mpdus":null,"rx_fcs_errors":null}}}}"#,
        1_000_000_000 + half * 500_000_000,
        100 * half,
        25 * half,
    )
}

#[test]
fn a_record_with_a_radio_becomes_its_standard_its_rates_its_peers_and_its_policy() {
    // 40 s of 8 Mb/s; another host is busy from 10 s to 20 s; the rate falls from MCS 9 to MCS 4 with two streams over
    // 80 MHz (802.11ac, 400 ns: 866.7 and 520 are MCS 9 and 5).
    let lines: Vec<String> = (0..80)
        .map(|half| {
            tick(half, if (20..40).contains(&half) { 2 } else { 1 }, 8, 9_000, if half < 60 { 866.7 } else { 520.0 })
        })
        .collect();
    let record = format!("{READY}\n{}\n{{\"event\":\"tick\",", lines.join("\n"));
    let folder = folder(&[("my laptop.jsonl", &record)]);
    let made = said(&["trace", "from", &path(&folder, "my laptop.jsonl")]);
    for line in [
        "duration_s = 39.5",
        "standard = \"802.11ac\"",
        "channel_width_mhz = 80",
        "spatial_streams = 2",
        "guard_interval_us = 0.4",
        "name = \"my-laptop\"",
        "policy = \"lasthop\"\nagent = \"control\"",
        "path_rtt_ms = 31.000",
        "congestion_control = \"cubic\"",
        "repeated 20 % of its frames",
        "[[changes]]\nat_s = 0.0\nhosts = [0]\nmcs = 9    # -52 dBm",
        "[[changes]]\nat_s = 30.0\nhosts = [0]\nmcs = 5",
        "name = \"peer-1\"",
        "start_s = 10.0\nstop_s = 19.5",
    ] {
        assert!(made.contains(line), "no {line} in\n{made}");
    }
    assert!(!made.contains("kind = \"interactive\""), "{made}");
    // The same of an application that never has more to send: it is held back by itself.
    let lines: Vec<String> = (0..80).map(|half| tick(half, 1, 8, 0, 866.7)).collect();
    fs::write(folder.path().join("call.jsonl"), format!("{READY}\n{}\n", lines.join("\n"))).expect("written");
    let made = said(&["trace", "from", &path(&folder, "call.jsonl")]);
    assert!(made.contains("its application sent 8.0") && made.contains("gap_ms = 20"), "{made}");
}

#[test]
fn records_that_cannot_be_replayed_are_refused_with_the_reason() {
    let folder = folder(&[
        ("empty.jsonl", ""),
        ("other.jsonl", "{\"event\":\"tick\"}\n"),
        ("short.jsonl", &format!("{READY}\n{}\n{}\n", tick(0, 1, 8, 1, 54.0), tick(1, 1, 8, 1, 54.0))),
        ("there.toml", "mine"),
    ]);
    let of = |name: &str| refused(&["trace", "from", &path(&folder, name)]);
    assert!(of("none.jsonl").contains("cannot read the record"), "{}", of("none.jsonl"));
    assert!(of("empty.jsonl").contains("has no tick"), "{}", of("empty.jsonl"));
    assert!(of("other.jsonl").contains("other.jsonl:1: is no line of an agent's record"), "{}", of("other.jsonl"));
    assert!(of("short.jsonl").contains("carried data for 0.5 s: 5 s are needed"), "{}", of("short.jsonl"));
    let long: String = (0..30).map(|half| tick(half, 1, 8, 1, 54.0) + "\n").collect();
    fs::write(folder.path().join("long.jsonl"), long).expect("written");
    let said = refused(&["trace", "from", &path(&folder, "long.jsonl"), "--out", &path(&folder, "there.toml")]);
    assert!(said.contains("cannot write") && said.contains("it is there already"), "{said}");
    assert_eq!(fs::read_to_string(folder.path().join("there.toml")).expect("it stays"), "mine");
    assert!(refused(&["run", "one-station", "--records", "x"]).contains("--records needs --hosts kernel"));
}
