//! BBR, versions 1 and 3, on simulated hosts: what they are known for.
#![allow(missing_docs)]

mod common;

use lasthop_scenario::RunResult;

/// 10 Mb/s, 40 ms, 100 packets.
const BOTTLENECK: &str = "
duration_s = 40
warmup_s = 5
[access]
kind = \"wired\"
rate_mbps = 10
queue_packets = 100
[path]
rtt_ms = 40
[[hosts]]
era = \"modern\"
congestion_control = \"bbr\"
[[hosts.flows]]
direction = \"down\"
[[hosts]]
era = \"modern\"
count = 0
[[hosts.flows]]
direction = \"down\"
";

fn run(overrides: &[&str]) -> RunResult {
    common::run(BOTTLENECK, overrides)
}

#[test]
fn alone_it_fills_the_link_and_leaves_its_queue_empty() {
    for (control, direction) in [("bbr", "up"), ("bbr", "down"), ("bbr3", "up"), ("bbr3", "down")] {
        let settings =
            [format!("hosts.0.congestion_control={control}"), format!("hosts.0.flows.0.direction={direction}")];
        let result = run(&[&settings[0], &settings[1]]);
        assert!(result.utilization >= 0.95, "{control}, {direction}: {}", result.utilization);
        let rtt = result.rtt_ms.expect("it was measured");
        assert!(rtt.mean <= 1.3 * 40.0, "{control}, {direction}: {rtt:?}");
        assert_eq!(result.flows[0].retransmits, 0, "{control}, {direction}");
    }
}

/// Cardwell et al. fig. 8: CUBIC loses its throughput at 0.1 % of losses, BBR keeps it up to 15 %.
#[test]
fn losses_at_random_cost_it_no_more_than_what_is_lost() {
    let goodput = |control: &str, loss: &str| {
        let settings = [format!("hosts.0.congestion_control={control}"), format!("path.loss={loss}")];
        run(&[&settings[0], &settings[1], "hosts.0.flows.0.direction=up"]).aggregate_goodput_mbps
    };
    assert!(goodput("bbr", "0.05") > 0.9 * goodput("bbr", "0"));
    assert!(goodput("cubic", "0.05") < 0.3 * goodput("cubic", "0"));
}

/// Two and a half products of queue are filled by CUBIC; BBR's window of two products keeps a share beside it.
#[test]
fn beside_cubic_neither_starves() {
    for control in ["bbr", "bbr3"] {
        let mixed = run(&[&format!("hosts.0.congestion_control={control}"), "hosts.0.count=2", "hosts.1.count=2"]);
        let fair = mixed.aggregate_goodput_mbps / mixed.flows.len() as f64;
        assert!(mixed.flows.iter().all(|flow| flow.goodput_mbps > 0.2 * fair), "{control}: {:?}", mixed.flows);
    }
}

/// draft-ietf-ccwg-bbr, LossThresh: version 3 keeps its rate below 2 % of losses, and yields above.
#[test]
fn version_3_bears_one_percent_of_losses_and_yields_to_ten() {
    let goodput = |loss: &str| {
        let loss = format!("path.loss={loss}");
        let of = |seed: u32| {
            let seed = format!("seed={seed}");
            run(&["hosts.0.congestion_control=bbr3", &loss, "hosts.0.flows.0.direction=up", &seed])
        };
        (1..=6).map(|seed| of(seed).aggregate_goodput_mbps / 6.0).sum::<f64>()
    };
    let (none, one, ten) = (goodput("0"), goodput("0.01"), goodput("0.1"));
    assert!(one > 0.82 * none, "{one} of {none}"); // 0.85; single seeds have 0.83 to 0.88
    assert!(ten < 0.7 * none, "{ten} of {none}");
}

/// Its long-term limit is what it was made for: where the queue holds less than a product, version 1 loses at every probe.
#[test]
fn version_3_loses_less_than_version_1_in_a_short_queue() {
    let lost = |control: &str| {
        let control = format!("hosts.0.congestion_control={control}");
        let result = run(&[&control, "access.queue_packets=8", "hosts.0.count=2"]);
        assert!(result.utilization > 0.85, "{control}: {}", result.utilization);
        result.flows.iter().map(|flow| flow.retransmits).sum::<u64>()
    };
    let (first, third) = (lost("bbr"), lost("bbr3"));
    assert!(third * 3 < first, "{third} and {first}");
}

/// RFC 6582's and RFC 6675's windows are not its own, so its losses are found as with PRR.
#[test]
fn the_way_a_window_is_reduced_does_not_concern_it() {
    let goodput = |recovery: &str| {
        let settings = ["path.loss=0.02".to_owned(), format!("hosts.0.tcp.recovery={recovery}")];
        run(&[&settings[0], &settings[1], "hosts.0.flows.0.direction=up"]).aggregate_goodput_mbps
    };
    let prr = goodput("prr");
    assert!(prr > 8.5, "{prr}");
    assert_eq!((goodput("newreno"), goodput("rfc6675")), (prr, prr));
}

/// A bound holds for BBR as for any other: window and pace.
#[test]
fn a_bound_limits_it() {
    let bounded = run(&["hosts.0.policy=fixed", "hosts.0.bound_segments=8", "hosts.0.flows.0.direction=up"]);
    // 8 segments of 1448 bytes in 40 ms and their own time at 10 Mb/s
    let most = 8.0 * 1448.0 * 8.0 / 0.040 / 1e6;
    assert!(bounded.aggregate_goodput_mbps <= most && bounded.aggregate_goodput_mbps > 0.8 * most, "{bounded:?}");
}

/// With 10 segments in flight at least it would never see an empty path, and would stay with what it has.
#[test]
fn a_lower_limit_does_not_keep_it_from_draining_the_path() {
    let bound = ["hosts.0.policy=fixed", "hosts.0.bound_segments=1000", "hosts.0.minimum_segments=10"];
    let bounded = run(&[&bound[..], &["hosts.0.flows.0.direction=up"]].concat());
    assert!(bounded.aggregate_goodput_mbps > 9.0, "{}", bounded.aggregate_goodput_mbps);
}

/// Calls and pages: where the application pauses, the estimates stay and no window is reduced.
#[test]
fn pauses_do_not_make_it_forget_the_path() {
    let transfers = |control: &str| {
        let result = run(&[
            &format!("hosts.0.congestion_control={control}"),
            "hosts.0.flows.0.kind=transfers",
            "hosts.0.flows.0.transfer_kib=500",
            "hosts.0.flows.0.off_s=1",
        ]);
        result.flows[0].goodput_mbps
    };
    assert!(transfers("bbr") > 0.8 * transfers("cubic"), "{} {}", transfers("bbr"), transfers("cubic"));
}
