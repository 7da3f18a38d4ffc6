//! Hosts that bound what they receive: downloads through an access point with a long FIFO.
#![allow(missing_docs)]

use lasthop_scenario::{Build, Override, RunResult, Scenario};
use lasthop_sim::Options;
use std::sync::atomic::AtomicBool;

fn run(overrides: &[&str]) -> RunResult {
    let overrides: Vec<Override> = overrides.iter().map(|text| Override::parse(text).expect("an override")).collect();
    let text = include_str!("../../../scenarios/ten-downloads.toml");
    let scenario =
        Scenario::from_toml("ten-downloads.toml", text, &overrides).unwrap_or_else(|error| panic!("{error}"));
    let stop = AtomicBool::new(false);
    let options = Options { build: Build::default(), series: false, stop: &stop, progress: &|_| {}, on_sample: None };
    lasthop_sim::run(&scenario, &options).unwrap_or_else(|error| panic!("{error}")).expect("the run was not stopped").0
}

fn p95_ms(result: &RunResult) -> f64 {
    result.rtt_ms.as_ref().expect("there are samples").p95
}

/// Ten windows of 30 segments are 3.5 Mbit: at 48 Mb/s they are on their way for 72 ms. Without limits the FIFO fills.
#[test]
fn ten_downloads_with_small_advertised_windows_leave_the_queue_short() {
    let short = "duration_s=25";
    let [none, ours, buffers] = [
        &[short, "hosts.0.policy=none"][..],
        &[short, "hosts.0.policy=fixed"],
        // Windows as small for another reason: 43 KiB are 30 segments and a little.
        &[short, "hosts.0.policy=none", "hosts.0.tcp.receive_buffer_kib=43"],
    ]
    .map(run);
    let parts = [none, buffers].map(|other| {
        let goodput = ours.aggregate_goodput_mbps / other.aggregate_goodput_mbps;
        (goodput, p95_ms(&ours) / p95_ms(&other))
    });
    println!("{:.1} Mb/s, {:.0} ms; {parts:.3?}", ours.aggregate_goodput_mbps, p95_ms(&ours));
    let [(goodput, p95), (goodput_beside, p95_beside)] = parts;
    assert!(goodput >= 0.94 && p95 <= 0.4, "{goodput} {p95}");
    assert!((0.97..=1.03).contains(&goodput_beside) && (0.9..=1.1).contains(&p95_beside), "{parts:?}");
    assert!(ours.jain_index.expect("flows with goodput") >= 0.99);
    assert_eq!(ours.access.downlink_drops, 0);
    assert!(ours.flows.iter().all(|flow| flow.controlled_share > 0.99));
}

/// A host's limits of what it sends do not concern what it receives.
#[test]
fn a_bound_of_what_is_sent_is_no_control_of_a_download() {
    let result = run(&["duration_s=15", "hosts.0.policy=count"]);
    assert!(result.flows.iter().all(|flow| flow.controlled_share == 0.0));
}
