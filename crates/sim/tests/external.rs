//! Policies that the caller gives.

use lasthop_policy::{External, schema};
use lasthop_scenario::{Build, HostSpec, Override, RunResult, Scenario};
use lasthop_sim::{Options, PolicyOf, SimError};
use std::sync::atomic::AtomicBool;

const SCENARIO: &str = r#"
duration_s = 20
warmup_s = 5
[path]
rtt_ms = 100
[[hosts]]
count = 3
policy = "external"
command = ["a closure of this test"]
[[hosts.flows]]
"#;

fn run(overrides: &[&str], policies: &mut PolicyOf<'_>) -> Result<RunResult, SimError> {
    let overrides: Vec<Override> = overrides.iter().map(|text| Override::parse(text).expect("an override")).collect();
    let scenario = Scenario::from_toml("test.toml", SCENARIO, &overrides).unwrap_or_else(|error| panic!("{error}"));
    let stop = AtomicBool::new(false);
    let options = Options { build: Build::default(), series: false, stop: &stop, progress: &|_| {}, on_sample: None };
    lasthop_sim::run_with(&scenario, &options, policies).map(|outcome| outcome.expect("the run was not stopped").0)
}

/// Limits each connection to 20 segments, up to this tick.
fn limit(until: u64) -> impl FnMut(&schema::Observation) -> Result<schema::Decision, String> {
    move |seen| {
        if seen.tick == until {
            return Err("it has had enough".to_owned());
        }
        let limits =
            |flow: &schema::Flow| schema::FlowLimits { id: flow.id, max_segments: Some(20), ..Default::default() };
        Ok(schema::Decision { flows: seen.flows.iter().map(limits).collect(), ..Default::default() })
    }
}

#[test]
fn a_policy_of_the_caller_decides_as_a_built_in_one_of_the_same_mind() {
    let mut hosts = Vec::new();
    let given = run(&[], &mut |host: &HostSpec| {
        hosts.push(host.index);
        Ok(Some(Box::new(External::new(1, limit(u64::MAX)))))
    });
    let given = given.expect("a run");
    let fixed = ["hosts.0.policy=fixed", "hosts.0.bound_segments=20"];
    let fixed = run(&fixed, &mut |_: &HostSpec| Ok(None)).expect("a run");
    assert_eq!(hosts, [0, 1, 2]);
    assert!(given.policies.hosts.iter().all(|host| host.policy == "external" && host.bounds_changed == 1));
    assert_eq!((given.flows.len(), given.events), (3, fixed.events));
    assert_eq!(given.aggregate_goodput_mbps, fixed.aggregate_goodput_mbps);
}

#[test]
fn a_policy_that_fails_ends_the_run_and_says_where() {
    let error = run(&[], &mut |host: &HostSpec| {
        Ok(Some(Box::new(External::new(1, limit(if host.index == 1 { 4 } else { 9 })))))
    });
    let error = error.expect_err("it fails").to_string();
    let told = "the policy of host 1 (a closure of this test) failed at tick 4, at 2.";
    assert!(error.starts_with(told) && error.ends_with(" s of the run: it has had enough"), "{error}");
}

#[test]
fn a_policy_that_cannot_start_or_that_nobody_gives_is_an_error() {
    let error = run(&[], &mut |_: &HostSpec| Err("there is no such class".to_owned())).expect_err("it cannot start");
    assert_eq!(error.to_string(), "the policy of host 0 cannot start: there is no such class");
    let error = run(&[], &mut |_: &HostSpec| Ok(None)).expect_err("nobody decides").to_string();
    assert!(error.contains("the policy is \"external\", and what runs this host starts no program for it"), "{error}");
}
