//! Every kind of traffic on kernel hosts: real sockets, the TCP and UDP of Debian's kernel. In virtual time.

use crate::common::{can_emulate, in_virtual_time, lasthop, of_text, result, skip};
use lasthop_scenario::RunResult;
use std::fs;
use std::process::Command;

/// Two hosts over a wire of 10 Mb/s and a path of 10 ms each way, with these flows; the second is modern.
fn over_a_wire(flows: &str) -> RunResult {
    let host = |era: &str| format!("[[hosts]]\nera = \"{era}\"\n{flows}");
    of_text(&format!(
        "duration_s = 9\nwarmup_s = 2\n[access]\nkind = \"wired\"\nrate_mbps = 10\n[path]\nrtt_ms = 20\n{}{}",
        host("2012"),
        host("modern")
    ))
}

#[test]
fn pings_and_calls_cross_an_idle_wire_both_ways_without_loss() {
    if !can_emulate() {
        return;
    }
    let both = |kind: &str| {
        let flow = |way: &str| format!("[[hosts.flows]]\nkind = \"{kind}\"\ndirection = \"{way}\"\n");
        flow("up") + &flow("down")
    };
    let result = over_a_wire(&(both("ping") + &both("constant")));
    assert_eq!(result.flows.len(), 8);
    for flow in &result.flows {
        let datagrams = flow.datagrams.expect("all flows are of datagrams");
        let said = format!("flow {} of host {}: {datagrams:?}", flow.id, flow.host);
        println!("{said}");
        // For 7 s, 5 pings or 50 packets of a call in a second; the first may be a little late.
        let expected = if flow.kind == "ping" { 35 } else { 350 };
        assert!(datagrams.sent.abs_diff(expected) <= 1 && datagrams.lost == 0, "{said}");
        // What the wire takes (crates/sim/tests/traffic.rs); then what this machine adds.
        let least = if flow.kind == "ping" { 20.1 } else { 10.1 };
        let took = datagrams.round_trip_ms.or(datagrams.one_way_ms).expect("times");
        assert!(took.min >= least && took.p50 < least + 10.0, "{said}");
    }
    assert!(result.pings.is_some_and(|pings| pings.sent > 130) && result.datagrams.is_some());
}

#[test]
fn datagrams_at_twice_the_rate_of_a_wire_are_half_lost_behind_a_full_queue() {
    if !can_emulate() {
        return;
    }
    for era in ["2012", "modern"] {
        let result = of_text(&format!(
            "duration_s = 9\nwarmup_s = 3\n[access]\nkind = \"wired\"\nrate_mbps = 10\n[path]\nrtt_ms = 20\n[[hosts]]\nera = \"{era}\"\n\
             queue_packets = 50\n[[hosts.flows]]\nkind = \"constant\"\nrate_mbps = 20\npacket_bytes = 1500\n"
        ));
        let flood = result.datagrams.expect("datagrams");
        println!("{era}: {flood:?}");
        assert!(flood.lost_share.is_some_and(|share| (0.45..0.55).contains(&share)), "{era}: {flood:?}");
        // 50 packets of 1.2 ms, and 10 ms.
        assert!(flood.one_way_ms.is_some_and(|delay| (55.0..90.0).contains(&delay.p50)), "{era}: {flood:?}");
        // 1472 bytes of 1500.
        assert!((9.0..9.9).contains(&result.aggregate_goodput_mbps), "{era}: {}", result.aggregate_goodput_mbps);
    }
}

#[test]
fn a_call_beside_an_upload_waits_as_long_as_with_simulated_hosts() {
    if !can_emulate() {
        return;
    }
    let text = "duration_s = 12\nwarmup_s = 5\n[access]\nkind = \"wired\"\nrate_mbps = 10\n[path]\nrtt_ms = 20\n\
                [[hosts]]\nera = \"modern\"\n[[hosts.flows]]\nkind = \"constant\"\n[[hosts.flows]]\nkind = \"ping\"\n\
                [[hosts.flows]]\n";
    let kernel = of_text(text);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("traffic.toml");
    fs::write(&file, text).expect("a file");
    let simulated = result(&lasthop(&["run", &file.display().to_string(), "--json"]).output().expect("it starts"));
    let p50s = |run: &RunResult| {
        let (call, ping) = (run.datagrams.expect("a call"), run.pings.expect("pings"));
        [call.one_way_ms.expect("delays").p50, ping.round_trip_ms.expect("round trips").p50]
    };
    println!("call and ping: {:?} ms, simulated {:?}", p50s(&kernel), p50s(&simulated));
    for (kernel, simulated) in p50s(&kernel).into_iter().zip(p50s(&simulated)) {
        // A datagram overtakes the two segments of 1.2 ms in the valve. Then the valve's tick, and this machine's own time.
        let kernel = kernel + 2.4;
        assert!((0.9..1.5).contains(&(kernel / simulated)), "{kernel} and {simulated}");
    }
    let upload = |run: &RunResult| run.flows[2].goodput_mbps;
    assert!((0.9..1.1).contains(&(upload(&kernel) / upload(&simulated))), "{} Mb/s", upload(&kernel));
}

#[test]
fn messages_transfers_and_periods_run_over_the_kernels_tcp() {
    if !can_emulate() {
        return;
    }
    let flow = |keys: &str| format!("[[hosts.flows]]\n{keys}\n");
    let flows = [
        "kind = \"interactive\"\ngap_ms = 200",
        "kind = \"interactive\"\ngap_ms = 200\ndirection = \"down\"",
        "kind = \"transfers\"\ntransfer_kib = 4\noff_s = 0.2",
        "kind = \"transfers\"\ntransfer_kib = 4\noff_s = 0.2\ndirection = \"down\"\nrequest_bytes = 400",
        "kind = \"on-off\"\non_s = 0.2\noff_s = 0.5",
    ];
    let result = over_a_wire(&flows.map(flow).concat());
    for flow in &result.flows {
        println!("flow {} of host {}, {}: {} {:?}", flow.id, flow.host, flow.kind, flow.messages, flow.message_ms);
        if flow.kind == "on-off" {
            assert!(flow.goodput_mbps > 0.0 && !flow.always_busy, "{flow:?}");
        } else {
            // At least one way, 10 ms; a transfer has a handshake of 20 ms before.
            let least = if flow.kind == "transfers" { 30.0 } else { 10.0 };
            assert!(flow.messages >= 8, "{flow:?}");
            assert!(flow.message_ms.is_some_and(|took| took.min >= least), "{flow:?}");
        }
    }
    let (messages, transfers) = (result.messages.expect("messages"), result.transfers.expect("transfers"));
    assert!(messages.delivered > 50 && transfers.delivered > 30, "{messages:?} {transfers:?}");
}

#[test]
fn a_video_is_watched_at_either_end() {
    if !can_emulate() {
        return;
    }
    let flow = |way: &str| {
        format!(
            "[[hosts.flows]]\nkind = \"video\"\ndirection = \"{way}\"\nchunk_s = 1\nbuffer_s = 4\nladder_kbps = [200, 500, 900]\n"
        )
    };
    let result = over_a_wire(&(flow("up") + &flow("down")));
    for flow in &result.flows {
        let video = flow.video.expect("a video");
        println!("flow {} of host {}: {video:?}", flow.id, flow.host);
        // 10 Mb/s carry four of 0.9 Mb/s; with four chunks in the buffer the highest rate comes soon.
        assert!(video.mean_bit_rate_mbps.is_some_and(|mbps| mbps > 0.7), "{video:?}");
        assert!((6..=8).contains(&video.chunks) && video.stalls == 0, "{video:?}");
        assert!(flow.message_ms.is_some());
    }
}

#[test]
#[ignore = "long: make test-virtual-time"]
fn an_ordinary_home_runs_with_kernel_hosts() {
    if !can_emulate() {
        return;
    }
    let sets = ["duration_s=16", "warmup_s=6"].map(|set| ["--set", set]).concat();
    let arguments = [&["run", "scenarios/home.toml", "--json"][..], &sets].concat();
    let home = in_virtual_time(&arguments);
    let (call, ping) = (home.datagrams.expect("a call"), home.pings.expect("pings"));
    println!("{call:?}\n{ping:?}\n{:?}\n{:?}", home.videos, home.transfers);
    // 10 s of 50 packets each way, and of 5 pings.
    assert!(call.sent.abs_diff(1_000) <= 2 && ping.sent.abs_diff(50) <= 1, "{call:?} {ping:?}");
    assert!(call.received > 100 && ping.received > 0);
    // Behind two uploads a chunk or a page may take longer than these seconds.
    let film = home.flows.iter().find(|flow| flow.kind == "video").expect("a film");
    assert!(film.goodput_mbps > 0.0 && film.messages + film.undelivered > 0, "{film:?}");
    let pages = home.transfers.expect("pages");
    assert!(pages.delivered + pages.undelivered > 3, "{pages:?}");
    assert_eq!(home.flows.iter().filter(|flow| flow.always_busy && flow.goodput_mbps > 0.0).count(), 2);
}

#[test]
fn iperf3_sends_as_much_as_our_own_traffic() {
    if !can_emulate() {
        return;
    }
    if Command::new("iperf3").arg("--version").output().is_err() {
        return skip("iperf3 is not installed");
    }
    let goodput = |traffic: &str| {
        let set = ["path.rtt_ms=20", "duration_s=7", "warmup_s=2", "hosts.0.count=2"].map(|set| ["--set", set]);
        let run = ["run", "scenarios/one-station.toml", "--json", "--traffic", traffic];
        in_virtual_time(&[&run[..], set.as_flattened()].concat()).aggregate_goodput_mbps
    };
    let (own, iperf3) = (goodput("own"), goodput("iperf3"));
    println!("iperf3 {iperf3} Mb/s, own {own} Mb/s");
    assert!((iperf3 / own - 1.0).abs() < 0.05, "iperf3 {iperf3} Mb/s, own {own} Mb/s");
    assert!(iperf3 != own, "both were our own traffic");
}
