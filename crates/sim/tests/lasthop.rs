//! The policy `lasthop` end to end on simulated hosts: a few cells of docs/models/policy-lasthop.md.
#![allow(missing_docs)]

mod common;

use common::run;
use lasthop_scenario::{FlowResult, RunResult};

/// Uploads of two kinds of hosts, the second without an agent; measured from 60 s on.
const UPLOADS: &str = "
duration_s = 140
warmup_s = 60
[access]
standard = \"802.11g\"
rate_mbps = 54
queue_packets = 100
[path]
rtt_ms = 256
[[hosts]]
count = 10
policy = \"lasthop\"
[[hosts.flows]]
start_s = [0.0, 2.0]
";
const OTHERS: &str = "
[[hosts]]
count = 1
[[hosts.flows]]
start_s = [0.0, 2.0]
";
const BOTH_WAYS: &str = include_str!("../../../scenarios/both-ways-ac.toml");

fn p95(result: &RunResult) -> f64 {
    result.rtt_ms.as_ref().expect("there are samples").p95
}

fn goodput_mbps(flows: &[FlowResult]) -> f64 {
    flows.iter().map(|flow| flow.goodput_mbps).sum()
}

#[test]
fn alone_a_host_loses_nothing() {
    for rtt in ["path.rtt_ms=4", "path.rtt_ms=256"] {
        for access in ["access.rate_control=fixed", "access.rate_control=minstrel"] {
            let ours = run(UPLOADS, &["hosts.0.count=1", rtt, access]);
            let none = run(UPLOADS, &["hosts.0.count=1", rtt, access, "hosts.0.policy=none"]);
            let part = ours.aggregate_goodput_mbps / none.aggregate_goodput_mbps;
            println!("{rtt}, {access}: {part:.3}");
            assert!(part >= 0.98, "{rtt}, {access}: {part}");
        }
    }
}

/// Of the best window found by hand. Without control a fifth to a third of the hosts get most of it, with round trips of a
/// second.
#[test]
fn ten_uploads_have_what_the_best_bound_has_in_equal_shares_with_a_short_queue() {
    for (rtt_ms, best_segments) in [(20, 4), (256, 53)] {
        let path = format!("path.rtt_ms={rtt_ms}");
        let ours = run(UPLOADS, &[&path]);
        let bound = format!("hosts.0.bound_segments={best_segments}");
        let best = run(UPLOADS, &[&path, "hosts.0.policy=fixed", &bound]);
        let none = run(UPLOADS, &[&path, "hosts.0.policy=none"]);
        let part = ours.aggregate_goodput_mbps / best.aggregate_goodput_mbps;
        let jain = ours.jain_index.expect("flows with goodput");
        println!("{rtt_ms} ms: {part:.3}, Jain {jain:.3}, {:.0} ms of {:.0}", p95(&ours), p95(&none));
        assert!(part >= 0.93, "{rtt_ms} ms: {part}");
        assert!(jain >= 0.95, "{rtt_ms} ms: {jain}");
        assert_eq!(ours.starved_flows, 0);
        assert!(p95(&ours) <= p95(&none) / 3.0, "{rtt_ms} ms: {} of {} ms", p95(&ours), p95(&none));
    }
}

/// Windows of two segments fill a short path, and windows of three get no more.
#[test]
fn over_a_short_path_windows_do_not_flip_between_two_and_three() {
    for (hosts, part) in [(10, 0.7), (20, 0.75)] {
        let count = format!("hosts.0.count={hosts}");
        let ours = run(UPLOADS, &["path.rtt_ms=4", &count]);
        let flips = run(UPLOADS, &["path.rtt_ms=4", &count, "hosts.0.leave_out=whole-windows"]);
        let goodput = ours.aggregate_goodput_mbps / flips.aggregate_goodput_mbps;
        println!("{hosts}: {goodput:.3}, {:.1} ms of {:.1}", p95(&ours), p95(&flips));
        assert!(goodput >= 0.99, "{hosts}: {goodput}");
        assert!(p95(&ours) <= part * p95(&flips), "{hosts}: {} of {} ms", p95(&ours), p95(&flips));
    }
}

/// Of a host without the agent, from 80 to 95 s; measured from 20 s after its end on.
#[test]
fn after_a_burst_of_another_host_the_queue_is_short_again() {
    let after = |more: &str| {
        let scenario = format!("{UPLOADS}{OTHERS}").replace("warmup_s = 60", "warmup_s = 115");
        let burst = "hosts.1.flows.0.start_s=80";
        run(&scenario, &["path.rtt_ms=20", "hosts.0.count=5", burst, "hosts.1.flows.0.stop_s=95", more])
    };
    let (ours, waits) = (after("hosts.0.policy=lasthop"), after("hosts.0.leave_out=return"));
    println!("{:.0} ms of {:.0}", p95(&ours), p95(&waits));
    assert!(p95(&ours) <= p95(&waits) / 10.0, "{} of {} ms", p95(&ours), p95(&waits));
}

/// Rates that fall back because of collisions: without control ten hosts have a fifth of what the medium can carry. Runs
/// differ much, so the mean of four counts.
#[test]
fn a_medium_that_collapses_carries_twice_as_much() {
    let total = |policy: &str| -> f64 {
        let of =
            |seed| run(UPLOADS, &["access.rate_control=arf", "path.rtt_ms=100", seed, policy]).aggregate_goodput_mbps;
        let all = ["seed=1", "seed=2", "seed=3", "seed=4"].map(of);
        println!("{policy}: {all:.1?} Mb/s");
        all.iter().sum()
    };
    let (ours, none) = (total("hosts.0.policy=lasthop"), total("hosts.0.policy=none"));
    assert!(ours >= 2.0 * none, "{ours} {none}");
}

/// Without control the downloads have a tenth.
#[test]
fn ten_uploads_leave_ten_downloads_their_part_and_the_queue_is_short() {
    let both = ["duration_s=140", "warmup_s=60", "hosts.*.count=10"];
    let access_points = [
        ["access.standard=802.11n", "access.queue_packets=1000"],
        ["access.standard=802.11ac", "access.queue=mac80211"],
    ];
    for access in access_points {
        let of = |policy: &str| run(BOTH_WAYS, &[both[0], both[1], both[2], access[0], access[1], policy]);
        let (ours, none) = (of("hosts.*.policy=lasthop"), of("hosts.*.policy=none"));
        let down = goodput_mbps(&ours.flows[10..]) / ours.aggregate_goodput_mbps;
        let total = ours.aggregate_goodput_mbps / none.aggregate_goodput_mbps;
        println!("{access:?}: {down:.2} down, {total:.2} of the total, {:.0} ms of {:.0}", p95(&ours), p95(&none));
        assert!(down >= 0.35, "{access:?}: {down}");
        assert!(total >= 0.92, "{access:?}: {total}");
        assert!(p95(&ours) <= p95(&none) / 3.0, "{access:?}: {} of {} ms", p95(&ours), p95(&none));
    }
}

/// Beside hosts without the policy: on the mean of several seeds at least three quarters of the goodput without control.
#[test]
fn beside_hosts_that_do_not_hold_back_little_is_lost() {
    let text = UPLOADS.to_owned() + OTHERS;
    for (count, others) in [(1, 1), (3, 2)] {
        let goodput = |policy: &str| {
            let of = |seed: u32| {
                let counts =
                    [format!("hosts.0.count={count}"), format!("hosts.1.count={others}"), format!("seed={seed}")];
                goodput_mbps(&run(&text, &[&counts[0], &counts[1], &counts[2], policy]).flows[..count])
            };
            (1..=3).map(of).sum::<f64>()
        };
        let part = goodput("hosts.0.policy=lasthop") / goodput("hosts.0.policy=none");
        println!("{count} beside {others}: {part:.2}");
        assert!(part >= 0.75, "{count} beside {others}: {part}");
    }
}

/// Beacons are voice: behind a full queue of bulk data over 802.11ac most are heard. And that queue, short for thirty hosts, is congested.
#[test]
fn thirty_uploads_behind_a_full_queue_hear_each_other_and_begin() {
    let policies = |duration: &str| {
        let keys = ["hosts.0.count=30", "access.standard=802.11ac", "access.rate_mbps=390", "access.queue_packets=256"];
        run(UPLOADS, &[&keys[..], &["path.rtt_ms=20", "warmup_s=10", duration]].concat()).policies
    };
    let before = policies("duration_s=20");
    let heard = before.beacons_heard as f64 / (29.0 * before.beacons_sent as f64);
    assert!(heard > 0.8, "{heard}");
    let begun = policies("duration_s=50").hosts.iter().filter(|host| host.control_enabled_at_s.is_some()).count();
    assert!(begun > 26, "{begun}");
}

/// Four hosts beside one without the agent: harmless, they give up control where it costs them; for latency they keep round trips below
/// a quarter while they have half of their goodput.
#[test]
fn who_prefers_latency_keeps_it_beside_a_host_that_does_not_hold_back() {
    let text = UPLOADS.to_owned() + OTHERS;
    let run = |policy: &str, prefer: &str| {
        let result = run(&text, &["hosts.0.count=4", "path.rtt_ms=4", policy, prefer]);
        let ours = &result.flows[..4];
        let rtt = ours.iter().filter_map(|flow| flow.rtt_ms.as_ref()).map(|rtt| rtt.p95).sum::<f64>() / 4.0;
        (goodput_mbps(ours), rtt)
    };
    let (none, harmless) =
        ["none", "lasthop"].map(|policy| run(&format!("hosts.0.policy={policy}"), "hosts.0.prefer=harmless")).into();
    let latency = run("hosts.0.policy=lasthop", "hosts.0.prefer=latency");
    println!("none {none:?}, harmless {harmless:?}, latency {latency:?}");
    assert!(harmless.0 >= 0.85 * none.0);
    assert!(latency.1 <= 0.25 * none.1 && latency.0 >= 0.5 * none.0);
}

/// The queue is not the access point's, and no other host's packets are in it.
#[test]
fn behind_a_slow_line_the_whole_line_is_used() {
    for path in ["path.rtt_ms=20", "path.rtt_ms=256"] {
        let line = "path.rate_mbps=10";
        let ours = run(UPLOADS, &[path, line]);
        let none = run(UPLOADS, &[path, line, "hosts.0.policy=none"]);
        let part = ours.aggregate_goodput_mbps / none.aggregate_goodput_mbps;
        println!("{path}: {part:.3}, {:.0} ms of {:.0}", p95(&ours), p95(&none));
        assert!(part >= 0.92, "{path}: {part}");
        assert!(p95(&ours) <= p95(&none) / 3.0, "{path}: {} of {} ms", p95(&ours), p95(&none));
    }
}

/// With a constant bound, which controls from the start.
#[test]
fn rts_precedes_aggregates_while_several_hosts_are_controlled_and_nowhere_else() {
    let uploads = "duration_s = 6\nwarmup_s = 3\n[access]\nstandard = \"802.11ac\"\n[path]\nrtt_ms = 10\n[[hosts]]\ncount = 10\n\
                   policy = \"fixed\"\nbound_segments = 64\nera = \"modern\"\n[[hosts.flows]]\n";
    let auto = "hosts.0.rts=auto";
    let collided = |overrides: &[&str]| run(uploads, overrides).access.air_shares["collision"];
    let (off, on) = (collided(&[]), collided(&[auto]));
    println!("collisions: {off:.4} of the air, with RTS {on:.4}");
    // An RTS with its CTS timeout takes a tenth of an aggregate of some 64 packets, 2 ms at 390 Mb/s. Acknowledgements of the access
    // point have none.
    assert!(on < 0.5 * off, "{on} of {off}");
    // Its own threshold is lower already, so everything is as without the agent's.
    let lower = "access.rts_threshold_bytes=2000";
    assert_eq!(collided(&[lower, auto]), collided(&[lower]));
    // Nobody else sends; or nothing is controlled.
    for same in [["hosts.0.count=1", "seed=1"], ["hosts.0.agent=advise", "seed=1"], ["hosts.0.policy=none", "seed=1"]] {
        let flows = |more: &[&str]| format!("{:?}", run(uploads, &[&same[..], more].concat()).flows);
        assert_eq!(flows(&[auto]), flows(&[]), "{same:?}");
    }
}
