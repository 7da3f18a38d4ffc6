//! A run of simulated hosts, with the programs of their external policies.

use crate::build;
use lasthop_capture::Capture;
use lasthop_external::Programs;
use lasthop_measure::OnSample;
use lasthop_scenario::{HostSpec, RunResult, Scenario, Series};
use lasthop_sim::{Options, SimError};
use lasthop_units::Span;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Runs the scenario; `None` if `stop` ended it early. Each run starts programs of its own.
pub(crate) fn simulate(
    scenario: &Scenario,
    series: bool,
    stop: &Arc<AtomicBool>,
    progress: &(dyn Fn(Span) + Sync),
    on_sample: Option<&OnSample<'_>>,
    capture: Option<&mut Capture>,
) -> Result<Option<(RunResult, Series)>, SimError> {
    let options = Options { build: build(), series, stop, progress, on_sample };
    let mut programs = Programs::new(stop);
    let mut policies = |host: &HostSpec| {
        programs.policy_of(&host.kind.policy, host.index, scenario.seed).map_err(|error| error.to_string())
    };
    match capture {
        None => lasthop_sim::run_with(scenario, &options, &mut policies),
        Some(capture) => lasthop_sim::run_captured(scenario, &options, &mut policies, capture),
    }
}
