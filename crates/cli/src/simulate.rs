//! A run of simulated hosts, with the programs of their external policies.

use crate::build;
use lasthop_external::{DECISION_WITHIN, policy_of};
use lasthop_policy::PolicyName;
use lasthop_policy::schema::{Hello, VERSION};
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
) -> Result<Option<(RunResult, Series)>, SimError> {
    let options = Options { build: build(), series, stop, progress };
    let tick_ns = lasthop_policy::TICK.as_nanos();
    lasthop_sim::run_with(scenario, &options, &mut |host: &HostSpec| {
        let settings = &host.kind.policy;
        if settings.policy != PolicyName::External {
            return Ok(None);
        }
        let hello = Hello { schema: VERSION, host: Some(host.index), seed: scenario.seed, tick_ns };
        policy_of(settings, hello, DECISION_WITHIN, Arc::clone(stop)).map(Some).map_err(|error| error.to_string())
    })
}
