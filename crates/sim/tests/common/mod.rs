//! Runs of scenarios as text, with some keys changed.

use lasthop_scenario::{Build, Override, RunResult, Scenario, Series};
use lasthop_sim::{Options, SimError};
use std::sync::atomic::AtomicBool;

/// The result of a run that nothing stops.
pub(crate) fn run(text: &str, overrides: &[&str]) -> RunResult {
    try_run(text, overrides, false).unwrap_or_else(|error| panic!("{error}")).0
}

/// The same with its series, if asked for, and where the simulator may refuse.
pub(crate) fn try_run(text: &str, overrides: &[&str], series: bool) -> Result<(RunResult, Series), SimError> {
    let stop = AtomicBool::new(false);
    let options = Options { build: Build::default(), series, stop: &stop, progress: &|_| {}, on_sample: None };
    lasthop_sim::run(&load(text, overrides), &options).map(|outcome| outcome.expect("the run was not stopped"))
}

/// The scenario alone.
pub(crate) fn load(text: &str, overrides: &[&str]) -> Scenario {
    let overrides: Vec<Override> = overrides.iter().map(|text| Override::parse(text).expect("an override")).collect();
    Scenario::from_toml("some.toml", text, &overrides).unwrap_or_else(|error| panic!("{error}"))
}
