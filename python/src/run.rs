//! Runs: one, a comparison, a study. A thread of their own does them, while the calling one waits for it, passes
//! signals on, and shows the progress.

use crate::errors;
use crate::outcome::{Document, Outcome};
use crate::scenario::CoreScenario;
use crate::value;
use lasthop_scenario::{
    COMMAND_LINE, Case, HostsKind, IneffectiveKey, LateChange, Override, RunResult, Scenario, Series, Vary,
    ineffective_keys, short_warmups,
};
use lasthop_sim::{Options, SimError};
use lasthop_study::{AtOnce, Load, PlannedRun, RunError, Study, StudyResult, compared, parallel, plan_cases};
use lasthop_version::build;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ffi::CString;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// Between two looks at signals.
const TICK: Duration = Duration::from_millis(50);

/// What the waiting thread and the running ones have in common.
#[derive(Default)]
pub(crate) struct Shared {
    /// Ends the runs.
    pub(crate) stop: AtomicBool,
    /// How far they are.
    done: AtomicU64,
}

/// One run.
#[pyfunction]
pub(crate) fn simulate(
    py: Python<'_>,
    scenario: &CoreScenario,
    seed: Option<u64>,
    series: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<Outcome> {
    let seed = seed.map(Override::seed);
    let overrides: Vec<Override> = scenario.overrides.iter().cloned().chain(seed).collect();
    let planned = scenario.with_overrides(&overrides).map_err(|error| error.into_python(scenario.file(), ""))?;
    warn(py, &planned.late_changes(), ineffective_keys([&planned]), &[&planned])?;
    check_memory(&[&planned], NonZero::<usize>::MIN, series)?;
    let outcome = wait(py, progress, |shared| {
        let at = |at: lasthop_units::Span| shared.done.store(at.as_micros(), Ordering::Relaxed);
        run_one(&planned, series, &shared.stop, &at)
    })?;
    let (result, samples) =
        outcome.map_err(|error| errors::simulation(&error, scenario.file(), ""))?.ok_or_else(stopped)?;
    Ok(Outcome::new(Document::Run { result: Box::new(result), series: series.then(|| Box::new(samples)) }))
}

/// Every case with every seed, on up to `jobs` threads. `cases` are labels, each with its overrides; without any, those
/// of `vary`.
#[pyfunction]
#[expect(
    clippy::too_many_arguments,
    reason = "they are the arguments of one function of Python, which has names for them"
)]
pub(crate) fn compare(
    py: Python<'_>,
    scenario: &CoreScenario,
    vary: &Bound<'_, PyDict>,
    cases: &Bound<'_, PyDict>,
    seeds: Seeds,
    jobs: Option<NonZero<usize>>,
    series: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<Outcome> {
    let ComparisonPlan { varied, cases, runs: planned } = plan_comparison(py, scenario, vary, cases, seeds)?;
    let scenarios: Vec<&Scenario> = planned.iter().map(|(_, scenario)| scenario).collect();
    let jobs = jobs.unwrap_or_else(parallel::all_cores);
    check_memory(&scenarios, jobs, series)?;
    let outcomes = wait(py, progress, |shared| {
        parallel::in_order(&planned, jobs, |(_, scenario)| {
            if shared.stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let outcome = run_one(scenario, series, &shared.stop, &|_| {});
            shared.done.fetch_add(1, Ordering::Relaxed);
            outcome
        })
    })?;
    let (mut results, mut samples) = (Vec::with_capacity(planned.len()), Vec::new());
    for ((case, _), outcome) in planned.iter().zip(outcomes) {
        let outcome = outcome.map_err(|error| errors::simulation(&error, scenario.file(), &cases[*case].label))?;
        let (result, of_run) = outcome.ok_or_else(stopped)?;
        results.push((*case, result));
        if series {
            samples.push(of_run);
        }
    }
    let comparison = compared(&scenario.scenario, HostsKind::Simulated, build(), &varied, &cases, results);
    Ok(Outcome::new(Document::Comparison { comparison: Box::new(comparison), series: series.then_some(samples) }))
}

/// A study on up to `jobs` threads.
#[pyfunction]
pub(crate) fn study(
    py: Python<'_>,
    path: PathBuf,
    set: &Bound<'_, PyDict>,
    seeds: Option<u64>,
    jobs: Option<NonZero<usize>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Outcome> {
    let (study, planned) = plan_study(py, &path, set, seeds)?;
    let scenarios: Vec<&Scenario> = planned.iter().map(|run| &run.scenario).collect();
    let jobs = jobs.unwrap_or_else(parallel::all_cores);
    check_memory(&scenarios, jobs, false)?;
    let outcome = wait(py, progress, |shared| {
        let run = |scenario: &Scenario| {
            run_one(scenario, false, &shared.stop, &|_| {}).map(|outcome| outcome.map(|(result, _)| result))
        };
        let done = || {
            shared.done.fetch_add(1, Ordering::Relaxed);
        };
        study.run_at_once(&planned, &AtOnce { run: &run, jobs, stop: &shared.stop, done: &done })
    })?;
    let outcome = outcome.map_err(|error| match error {
        RunError::Interrupted => stopped(),
        RunError::Study(error) => errors::study(&error),
        RunError::Run { place, error } => errors::simulation(&error, &path.display().to_string(), &place),
    })?;
    Ok(judged(&study, &planned, outcome))
}

/// What a comparison runs, in the order of its cases.
pub(crate) struct ComparisonPlan {
    pub(crate) varied: Vec<Vary>,
    pub(crate) cases: Vec<Case>,
    /// Each with the index of its case.
    pub(crate) runs: Vec<(usize, Scenario)>,
}

/// Plans and checks a comparison, and warns of what may be a mistake.
pub(crate) fn plan_comparison(
    py: Python<'_>,
    scenario: &CoreScenario,
    vary: &Bound<'_, PyDict>,
    cases: &Bound<'_, PyDict>,
    seeds: Seeds,
) -> PyResult<ComparisonPlan> {
    let varied = varied_of(vary)?;
    let cases = if cases.is_empty() { Vary::cases(&varied) } else { cases_of(cases)? };
    let base = &scenario.scenario;
    let seeds = seeds.from(base.seed);
    let runs = plan_cases(&cases, &scenario.overrides, &seeds, |overrides| scenario.with_overrides(overrides));
    let runs = runs.map_err(|error| errors::of_case(error, scenario.file()))?;
    let scenarios: Vec<&Scenario> = runs.iter().map(|(_, scenario)| scenario).collect();
    warn(py, &base.late_changes(), ineffective_keys(scenarios.iter().copied()), &scenarios)?;
    Ok(ComparisonPlan { varied, cases, runs })
}

/// The same for a study.
pub(crate) fn plan_study(
    py: Python<'_>,
    path: &Path,
    set: &Bound<'_, PyDict>,
    seeds: Option<u64>,
) -> PyResult<(Study, Vec<PlannedRun>)> {
    let study = Study::load(path).map_err(|error| errors::study(&error))?;
    let study = study.with_overrides(value::overrides_of(set)?);
    let planned = study.plan(seeds.unwrap_or(study.seeds)).map_err(|error| errors::study(&error))?;
    for run in &planned {
        let checked = lasthop_sim::check(&run.scenario);
        checked.map_err(|error| errors::simulation(&error, &path.display().to_string(), &run.label))?;
    }
    let scenarios: Vec<&Scenario> = planned.iter().map(|run| &run.scenario).collect();
    warn(py, &[], study.ineffective_keys(&planned), &scenarios)?;
    Ok((study, planned))
}

/// A study with the results of all its runs.
pub(crate) fn judged(study: &Study, planned: &[PlannedRun], outcome: lasthop_study::Outcome) -> Outcome {
    let result = StudyResult::new(study, HostsKind::Simulated, build(), &outcome);
    let points = planned.iter().map(|run| (run.point, run.label.clone())).collect();
    Outcome::new(Document::Study { result: Box::new(result), runs: Some((points, outcome.runs)) })
}

/// The only place where a scenario is run.
pub(crate) fn run_one(
    scenario: &Scenario,
    series: bool,
    stop: &AtomicBool,
    progress: &(dyn Fn(lasthop_units::Span) + Sync),
) -> Result<Option<(RunResult, Series)>, SimError> {
    let started = Instant::now();
    let mut outcome = lasthop_sim::run(scenario, &Options { build: build(), series, stop, progress })?;
    if let Some((result, _)) = &mut outcome {
        result.took(started.elapsed());
    }
    Ok(outcome)
}

/// Does `work` on a thread of its own, without the GIL. A signal whose handler raises, such as Ctrl-C, stops it; so
/// does `progress` if it raises. Nothing is running when this returns.
pub(crate) fn wait<T: Send>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(&Shared) -> T + Send,
) -> PyResult<T> {
    let shared = Shared::default();
    py.detach(|| {
        thread::scope(|scope| {
            let (ends, ended) = mpsc::channel::<()>();
            let worker = scope.spawn(|| {
                let _ends = ends;
                work(&shared)
            });
            let mut shown = 0;
            let mut look = || {
                Python::attach(|py| {
                    py.check_signals()?;
                    let done = shared.done.load(Ordering::Relaxed);
                    if let Some(progress) = progress.as_ref().filter(|_| done > shown) {
                        progress.call1(py, (done,))?;
                        shown = done;
                    }
                    PyResult::Ok(())
                })
            };
            let mut outcome = Ok(());
            while ended.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                if outcome.is_ok() {
                    outcome = look().inspect_err(|_| shared.stop.store(true, Ordering::Relaxed));
                }
            }
            let done = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            outcome.and_then(|()| look()).map(|()| done)
        })
    })
}

/// Only [`wait`] stops runs, and then has an error of its own.
pub(crate) fn stopped() -> PyErr {
    pyo3::exceptions::PyKeyboardInterrupt::new_err(())
}

pub(crate) fn check_memory(scenarios: &[&Scenario], jobs: NonZero<usize>, series: bool) -> PyResult<()> {
    let load = Load { scenarios: scenarios.to_vec(), jobs: jobs.get(), hosts: HostsKind::Simulated, series };
    load.check().map_err(|error| errors::memory(&error, series))
}

/// What the command prints as notes.
fn warn(py: Python<'_>, late: &[LateChange], ineffective: Vec<IneffectiveKey>, planned: &[&Scenario]) -> PyResult<()> {
    let in_python = |key: IneffectiveKey| match key.set_in.as_str() {
        COMMAND_LINE => IneffectiveKey { set_in: "an override".to_owned(), ..key },
        _ => key,
    };
    let late = late.iter().map(ToString::to_string);
    let ineffective = ineffective.into_iter().map(|key| in_python(key).to_string());
    let short = short_warmups(planned.iter().copied()).into_iter().map(|short| short.to_string());
    let category = py.import("lasthop._errors")?.getattr("ScenarioWarning")?;
    for note in late.chain(ineffective).chain(short) {
        // The caller of the function of Python that calls this one.
        PyErr::warn(py, &category, &CString::new(note)?, 2)?;
    }
    Ok(())
}

/// How many seeds from the scenario's on, or which.
#[derive(FromPyObject)]
pub(crate) enum Seeds {
    Count(u64),
    List(Vec<u64>),
}

impl Seeds {
    fn from(self, first: u64) -> Vec<u64> {
        match self {
            Self::Count(count) => (first..first + count).collect(),
            Self::List(seeds) => seeds,
        }
    }
}

fn varied_of(vary: &Bound<'_, PyDict>) -> PyResult<Vec<Vary>> {
    let one = |(key, values): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        let key: String = key.extract()?;
        if values.is_instance_of::<pyo3::types::PyString>() {
            return Err(PyValueError::new_err(format!("vary: {key} has one text; accepted: a list of values")));
        }
        let values = values.try_iter()?.map(|value| value::toml_of(&value?, &key)).collect::<PyResult<Vec<_>>>()?;
        Vary::of(&key, &values).map_err(|error| errors::scenario(&error, "vary"))
    };
    vary.iter().map(one).collect()
}

fn cases_of(cases: &Bound<'_, PyDict>) -> PyResult<Vec<Case>> {
    let one = |(label, set): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        let overrides = value::overrides_of(set.cast::<PyDict>()?)?;
        let settings = overrides.iter().map(|setting| (setting.key(), setting.raw().to_owned())).collect();
        Ok(Case { label: label.extract()?, settings, overrides })
    };
    cases.iter().map(one).collect()
}
