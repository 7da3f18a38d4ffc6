//! The policies of the hosts that ask somebody: an object of Python, or a program outside.

use crate::errors::Failure;
use lasthop_external::{Programs, decision};
use lasthop_policy::schema::{self, Hello, Line};
use lasthop_policy::{External, Policy, PolicyName, PolicySettings, TICK};
use lasthop_scenario::{HostSpec, RunResult, Scenario, Series};
use lasthop_sim::Options;
use pyo3::prelude::*;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

/// `Asked` of Python: called with a `hello` line, it gives what answers each observation's line with a decision's.
pub(crate) type InProcess = Py<PyAny>;

/// The first exception of a run's policies.
type Raised = Arc<Mutex<Option<PyErr>>>;

/// Runs a scenario. Hosts with the policy "external" ask `in_process`, or without it the program of their `command`.
pub(crate) fn run_with(
    scenario: &Scenario,
    options: &Options<'_>,
    stop: &Arc<AtomicBool>,
    in_process: Option<&InProcess>,
) -> Result<Option<(RunResult, Series)>, Box<Failure>> {
    let raised = Raised::default();
    let mut programs = Programs::new(stop);
    let outcome = lasthop_sim::run_with(scenario, options, &mut |host: &HostSpec| {
        let settings = &host.kind.policy;
        match in_process {
            Some(_) if settings.policy != PolicyName::External => Ok(None),
            Some(object) => in_python(object, settings, host.index, scenario.seed, &raised).map(Some),
            None => programs.policy_of(settings, host.index, scenario.seed).map_err(|error| error.to_string()),
        }
    });
    outcome.map_err(|error| Box::new(Failure { error, cause: taken(&raised) }))
}

fn in_python(
    object: &InProcess,
    settings: &PolicySettings,
    host: u16,
    seed: u64,
    raised: &Raised,
) -> Result<Box<dyn Policy + Send>, String> {
    let hello = Hello { schema: schema::VERSION, host: Some(host), seed, tick_ns: TICK.as_nanos() };
    let asked =
        Python::attach(|py| object.call1(py, (text(&Line::Hello(hello)),)).map_err(|error| keep(error, raised)))?;
    let raised = Arc::clone(raised);
    let ask = move |seen: &schema::Observation| {
        let line = text(&Line::Observation(seen.clone()));
        let answer: Result<String, PyErr> = Python::attach(|py| asked.call1(py, (line,))?.extract(py));
        decision(answer.map_err(|error| keep(error, &raised))?.as_bytes())
    };
    Ok(Box::new(External::new(settings.minimum_segments, ask)))
}

fn text(line: &Line) -> String {
    serde_json::to_string(line).expect("plain data")
}

/// Keeps the first exception, for its traceback. What it says.
fn keep(error: PyErr, raised: &Raised) -> String {
    let said = error.to_string();
    raised.lock().expect("no thread panics while it holds the lock").get_or_insert(error);
    said
}

fn taken(raised: &Raised) -> Option<PyErr> {
    raised.lock().expect("no thread panics while it holds the lock").take()
}
