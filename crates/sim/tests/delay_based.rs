//! Vegas, Westwood+, LEDBAT++ and Copa on simulated hosts: what they are known for.
#![allow(missing_docs)]

mod common;

use lasthop_scenario::RunResult;

/// 10 Mb/s, 40 ms, 100 packets: a product of 34 segments.
const BOTTLENECK: &str = "
duration_s = 60
warmup_s = 20
[access]
kind = \"wired\"
rate_mbps = 10
queue_packets = 100
[path]
rtt_ms = 40
[[hosts]]
era = \"modern\"
[[hosts.flows]]
direction = \"down\"
[[hosts]]
era = \"modern\"
count = 0
[[hosts.flows]]
direction = \"down\"
start_s = 5
";

fn run(control: &str, overrides: &[&str]) -> RunResult {
    let control = format!("hosts.0.congestion_control={control}");
    common::run(BOTTLENECK, &[&[control.as_str()], overrides].concat())
}

fn mean_rtt_ms(result: &RunResult) -> f64 {
    result.rtt_ms.expect("it was measured").mean
}

#[test]
fn vegas_and_copa_fill_the_link_and_keep_some_segments_in_the_queue() {
    for control in ["vegas", "copa"] {
        let result = run(control, &[]);
        assert!(result.utilization >= 0.95, "{control}: {}", result.utilization);
        // A segment takes 1.2 ms: ten of them at most.
        assert!(mean_rtt_ms(&result) < 52.0, "{control}: {} ms", mean_rtt_ms(&result));
        assert_eq!(result.flows[0].retransmits, 0, "{control}");
    }
}

#[test]
fn ledbat_plus_plus_keeps_its_queue_at_60_ms_alone_and_gives_way_to_cubic() {
    let alone = run("ledbat++", &[]);
    assert!(alone.utilization >= 0.9, "{}", alone.utilization);
    assert!((90.0..110.0).contains(&mean_rtt_ms(&alone)), "{} ms", mean_rtt_ms(&alone));
    let beside = run("ledbat++", &["hosts.1.count=1"]);
    let [own, cubic] = [0, 1].map(|flow: usize| beside.flows[flow].goodput_mbps);
    assert!(own < 0.1 * cubic, "{own} and {cubic} Mb/s");
}

/// Grieco and Mascolo 2004: over lossy links Westwood+ carries more than NewReno, and beside others it shares.
#[test]
fn westwood_keeps_its_window_at_losses_at_random() {
    let goodput = |control| run(control, &["path.loss=0.01", "hosts.0.flows.0.direction=up"]).aggregate_goodput_mbps;
    let (newreno, westwood) = (goodput("newreno"), goodput("westwood"));
    assert!(westwood > 1.5 * newreno, "{westwood} and {newreno} Mb/s");
    let beside = run("westwood", &["hosts.1.count=1"]);
    assert!(beside.flows[0].goodput_mbps > 0.1 * beside.aggregate_goodput_mbps, "{:?}", beside.flows[0]);
}

#[test]
fn four_of_a_kind_share() {
    for control in ["westwood", "ledbat++", "copa"] {
        let result = run(control, &["hosts.0.count=4"]);
        assert!(result.jain_index.expect("they sent") > 0.9, "{control}: {:?}", result.jain_index);
    }
}
