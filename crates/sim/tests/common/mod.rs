//! Uploads over 802.11g, and a run of any scenario: what the tests of both generations of policy `lasthop` share.

use lasthop_scenario::{Build, Override, RunResult, Scenario};
use lasthop_sim::Options;
use std::sync::atomic::AtomicBool;

/// Uploads of two kinds of hosts, the second without an agent; measured from 60 s on.
pub(crate) const UPLOADS: &str = "
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
pub(crate) const OTHERS: &str = "
[[hosts]]
count = 1
[[hosts.flows]]
start_s = [0.0, 2.0]
";

/// With these keys changed.
pub(crate) fn run(text: &str, overrides: &[&str]) -> RunResult {
    let overrides: Vec<Override> = overrides.iter().map(|text| Override::parse(text).expect("an override")).collect();
    let scenario = Scenario::from_toml("some.toml", text, &overrides).unwrap_or_else(|error| panic!("{error}"));
    let stop = AtomicBool::new(false);
    let options = Options { build: Build::default(), series: false, stop: &stop, progress: &|_| {}, on_sample: None };
    lasthop_sim::run(&scenario, &options).unwrap_or_else(|error| panic!("{error}")).expect("the run was not stopped").0
}
