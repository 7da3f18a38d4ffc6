//! Runs: one, a comparison, a study. A thread of their own does them, while the calling one waits for it, passes
//! signals on, and shows the progress.

use crate::errors::{self, Failure};
use crate::outcome::{Document, Outcome};
use crate::policy::{InProcess, run_with};
use crate::scenario::CoreScenario;
use crate::value;
use lasthop_scenario::{
    COMMAND_LINE, Case, HostsKind, IneffectiveKey, LateChange, Override, RunResult, Scenario, Series, Vary,
    ineffective_keys, short_warmups,
};
use lasthop_sim::Options;
use lasthop_study::{
    AtOnce, Load, PlannedRun, RunError, StoreChoice, StoredRuns, Study, StudyResult, compared, parallel, plan_cases,
};
use lasthop_version::build;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};
use std::ffi::CString;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Between two looks at signals.
const TICK: Duration = Duration::from_millis(50);

/// What the waiting thread and the running ones have in common.
#[derive(Default)]
pub(crate) struct Shared {
    /// Ends the runs.
    pub(crate) stop: Arc<AtomicBool>,
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
    policy: Option<InProcess>,
    store: &Bound<'_, PyAny>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Outcome> {
    let planned = scenario.with_more(seed.map(Override::seed))?;
    let asks = |scenario: &CoreScenario| scenario.scenario.asks_programs();
    let planned = match &policy {
        Some(_) if !asks(&planned) => planned.with_more(asks_for_all()?)?,
        _ => planned,
    };
    let run = planned.with_overrides(&planned.overrides).map_err(|error| error.into_python(scenario.file(), ""))?;
    warn(py, &run.late_changes(), ineffective_keys([&run]), &[&run], policy.is_some())?;
    check_memory(&[&run], NonZero::<usize>::MIN, series)?;
    let stored = Stored::open(py, store, model())?;
    let outcome = wait(py, progress, policy.as_ref(), |shared| {
        let at = |at: lasthop_units::Span| shared.done.store(at.as_micros(), Ordering::Relaxed);
        stored.runs.run(&run, series, || run_one(&run, series, &shared.stop, &at, policy.as_ref()))
    })?;
    stored.finish(py, 2);
    let (result, samples) =
        outcome.map_err(|failure| failure.into_python(py, scenario.file(), ""))?.ok_or_else(stopped)?;
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
    policy: Option<InProcess>,
    store: &Bound<'_, PyAny>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Outcome> {
    let plan = plan_comparison(py, scenario, vary, cases, seeds, policy.is_some())?;
    let ComparisonPlan { base, varied, cases, runs: planned } = plan;
    let scenarios: Vec<&Scenario> = planned.iter().map(|(_, scenario)| scenario).collect();
    let jobs = jobs.unwrap_or_else(parallel::all_cores);
    check_memory(&scenarios, jobs, series)?;
    let stored = Stored::open(py, store, model())?;
    // The first failure lets no other run begin; those that run end, so that the error is that of the first case.
    let failed = AtomicBool::new(false);
    let outcomes = wait(py, progress, policy.as_ref(), |shared| {
        parallel::in_order(&planned, jobs, |(case, scenario)| {
            if shared.stop.load(Ordering::Relaxed) || failed.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let once = || run_one(scenario, series, &shared.stop, &|_| {}, policy.as_ref());
            let outcome = stored.runs.run(scenario, series, once);
            failed.fetch_or(outcome.is_err(), Ordering::Relaxed);
            shared.done.fetch_add(1, Ordering::Relaxed);
            outcome.map_err(|failure| (*case, failure))
        })
    })?;
    stored.finish(py, 2);
    let (mut results, mut samples) = (Vec::with_capacity(planned.len()), Vec::new());
    let outcomes = outcomes.into_iter().collect::<Result<Vec<_>, _>>();
    let outcomes = outcomes.map_err(|(case, failure)| failure.into_python(py, scenario.file(), &cases[case].label))?;
    for ((case, _), outcome) in planned.iter().zip(outcomes) {
        let (result, of_run) = outcome.ok_or_else(stopped)?;
        results.push((*case, result));
        if series {
            samples.push(of_run);
        }
    }
    let comparison = compared(&base, HostsKind::Simulated, build(), &varied, &cases, results);
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
    store: &Bound<'_, PyAny>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Outcome> {
    let (study, planned) = plan_study(py, &path, set, seeds)?;
    let scenarios: Vec<&Scenario> = planned.iter().map(|run| &run.scenario).collect();
    let jobs = jobs.unwrap_or_else(parallel::all_cores);
    check_memory(&scenarios, jobs, false)?;
    let stored = Stored::open(py, store, model())?;
    let outcome = wait(py, progress, None, |shared| {
        let run = |scenario: &Scenario| {
            let once = || run_one(scenario, false, &shared.stop, &|_| {}, None);
            stored.runs.run(scenario, false, once).map(|outcome| outcome.map(|(result, _)| result))
        };
        let done = |runs: usize| {
            shared.done.fetch_add(runs as u64, Ordering::Relaxed);
        };
        study.run_at_once(&planned, &AtOnce { run: &run, jobs, stop: &shared.stop, done: &done })
    })?;
    stored.finish(py, 2);
    let outcome = outcome.map_err(|error| match error {
        RunError::Interrupted => stopped(),
        RunError::Study(error) => errors::study(&error),
        RunError::Run { place, error } => error.into_python(py, &path.display().to_string(), &place),
    })?;
    Ok(judged(&study, &planned, outcome))
}

/// What a comparison runs, in the order of its cases.
pub(crate) struct ComparisonPlan {
    /// The scenario of which the cases are variants.
    pub(crate) base: Scenario,
    pub(crate) varied: Vec<Vary>,
    pub(crate) cases: Vec<Case>,
    /// Each with the index of its case.
    pub(crate) runs: Vec<(usize, Scenario)>,
}

/// Plans and checks a comparison, and warns of what may be a mistake. With a policy `in_process` that no host asks, all
/// hosts ask it.
pub(crate) fn plan_comparison(
    py: Python<'_>,
    scenario: &CoreScenario,
    vary: &Bound<'_, PyDict>,
    cases: &Bound<'_, PyDict>,
    seeds: Seeds,
    in_process: bool,
) -> PyResult<ComparisonPlan> {
    let varied = varied_of(vary)?;
    let cases = if cases.is_empty() { Vary::cases(&varied) } else { cases_of(cases)? };
    let seeds = seeds.from(scenario.scenario.seed);
    let plan = |scenario: &CoreScenario| {
        let planned = plan_cases(&cases, &scenario.overrides, &seeds, |overrides| scenario.with_overrides(overrides));
        planned.map_err(|error| errors::of_case(error, scenario.file()))
    };
    let asks = |planned: &[(usize, Scenario)]| planned.iter().any(|(_, scenario)| scenario.asks_programs());
    let (mut base, mut runs) = (scenario.scenario.clone(), plan(scenario)?);
    if in_process && !asks(&runs) {
        let all_ask = scenario.with_more(asks_for_all()?)?;
        (base, runs) = (all_ask.scenario.clone(), plan(&all_ask)?);
    }
    if in_process && !asks(&runs) {
        let accepted = "a case in which a host has the policy \"external\"";
        return Err(errors::argument(format!("policy is given, and no host asks it; accepted: {accepted}")));
    }
    let scenarios: Vec<&Scenario> = runs.iter().map(|(_, scenario)| scenario).collect();
    warn(py, &base.late_changes(), ineffective_keys(scenarios.iter().copied()), &scenarios, in_process)?;
    Ok(ComparisonPlan { base, varied, cases, runs })
}

/// The same for a study.
pub(crate) fn plan_study(
    py: Python<'_>,
    path: &Path,
    set: &Bound<'_, PyDict>,
    seeds: Option<u64>,
) -> PyResult<(Study, Vec<PlannedRun>)> {
    let study = Study::load(path).map_err(|error| errors::study(&error))?;
    if study.hosts == HostsKind::Kernel || study.has_kernel_case() {
        let accepted = "a study of simulated hosts; `lasthop study` runs this one";
        return Err(errors::argument(format!("{}: has kernel hosts; accepted: {accepted}", path.display())));
    }
    let study = study.with_overrides(value::overrides_of(set)?);
    let planned = study.plan(seeds.unwrap_or(study.seeds)).map_err(|error| errors::study(&error))?;
    for run in &planned {
        let checked = lasthop_sim::check(&run.scenario);
        checked.map_err(|error| errors::simulation(&error, &path.display().to_string(), &run.label))?;
    }
    let scenarios: Vec<&Scenario> = planned.iter().map(|run| &run.scenario).collect();
    warn(py, &[], study.ineffective_keys(&planned), &scenarios, false)?;
    Ok((study, planned))
}

/// A study with the results of all its runs.
pub(crate) fn judged(study: &Study, planned: &[PlannedRun], outcome: lasthop_study::Outcome) -> Outcome {
    let result = StudyResult::new(study, HostsKind::Simulated, build(), &outcome);
    let points = planned.iter().map(|run| (run.point, run.label.clone())).collect();
    Outcome::new(Document::Study { result: Box::new(result), runs: Some((points, outcome.runs)) })
}

/// The only place where a scenario is run. Hosts that ask somebody ask `policy`, or else their programs.
pub(crate) fn run_one(
    scenario: &Scenario,
    series: bool,
    stop: &Arc<AtomicBool>,
    progress: &(dyn Fn(lasthop_units::Span) + Sync),
    policy: Option<&InProcess>,
) -> Result<Option<(RunResult, Series)>, Box<Failure>> {
    let started = Instant::now();
    let mut outcome =
        run_with(scenario, &Options { build: build(), series, stop, progress, on_sample: None }, stop, policy)?;
    if let Some((result, _)) = &mut outcome {
        result.took(started.elapsed());
    }
    Ok(outcome)
}

/// Every host asks, though its scenario may say that it has no agent. Whom, its `command` says.
fn asks_for_all() -> PyResult<Vec<Override>> {
    let set = [("hosts.*.policy", "external"), ("hosts.*.agent", "control")]
        .map(|(key, word)| Override::of(key, &word.into()));
    set.into_iter().collect::<Result<_, _>>().map_err(|error| errors::scenario(&error, ""))
}

/// The store of the runs of one call.
pub(crate) struct Stored {
    pub(crate) runs: StoredRuns,
    /// What there is to tell about it.
    said: Arc<Mutex<Vec<String>>>,
}

impl Stored {
    /// `None` is the user's cache, `False` none, everything else a folder. Without `model` no store is used.
    pub(crate) fn open(py: Python<'_>, store: &Bound<'_, PyAny>, model: Option<String>) -> PyResult<Self> {
        let choice = if store.is_none() {
            // Without a model there is nothing to tell: nobody has asked for a store.
            if model.is_some() { StoreChoice::Cache } else { StoreChoice::Nowhere }
        } else if let Ok(wanted) = store.cast::<PyBool>() {
            if wanted.is_true() {
                return Err(errors::argument("store=True; accepted: None (the user's), a folder, False (none)"));
            }
            StoreChoice::Nowhere
        } else {
            StoreChoice::Folder(store.extract()?)
        };
        let said = Arc::<Mutex<Vec<String>>>::default();
        let kept = Arc::clone(&said);
        let tell = move |text: &str| kept.lock().expect("no thread panics with the lock").push(text.to_owned());
        let reason = || lasthop_version::model().map_or_else(|reason| reason.to_string(), |_| "no model".to_owned());
        let runs = StoredRuns::open(&choice, model.ok_or_else(reason), build(), tell);
        let this = Self { runs: runs.map_err(|error| errors::store(&error))?, said };
        // Before the runs: nothing is lost if warnings are errors.
        this.warn(py, 2)?;
        Ok(this)
    }

    /// Keeps the cache below its limit, and passes on what went wrong with the store, to the caller this number of
    /// functions of Python above. A warning that is an error costs no result: it is only printed.
    pub(crate) fn finish(&self, py: Python<'_>, level: i32) {
        py.detach(|| self.runs.finish());
        while let Err(error) = self.warn(py, level) {
            error.write_unraisable(py, None);
        }
    }

    /// Passes on one thing after the other, up to the first that is an error.
    fn warn(&self, py: Python<'_>, level: i32) -> PyResult<()> {
        let category = py.get_type::<pyo3::exceptions::PyRuntimeWarning>();
        let next = || {
            let mut said = self.said.lock().expect("no thread panics with the lock");
            (!said.is_empty()).then(|| said.remove(0))
        };
        while let Some(text) = next() {
            PyErr::warn(py, &category, &CString::new(text)?, level)?;
        }
        Ok(())
    }
}

/// What simulated runs of this build are computed with. `None` if nothing names it: then no run can be stored.
#[pyfunction]
pub(crate) fn model() -> Option<String> {
    lasthop_version::model().ok()
}

/// Does `work` on a thread of its own, without the GIL. A signal whose handler raises, such as Ctrl-C, stops it, and
/// what `policy` is deciding; so does `progress` if it raises. Nothing is running when this returns.
pub(crate) fn wait<T: Send>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    policy: Option<&InProcess>,
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
            let interrupt = || {
                shared.stop.store(true, Ordering::Relaxed);
                // What it says of itself does not matter any more.
                let _ = policy.map(|policy| Python::attach(|py| policy.call_method0(py, "interrupt").map(drop)));
            };
            let mut outcome = Ok(());
            while ended.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                if outcome.is_ok() {
                    outcome = look();
                }
                // Again and again, for it may decide for another host by now.
                if outcome.is_err() {
                    interrupt();
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
    let load =
        Load { scenarios: scenarios.to_vec(), jobs: jobs.get(), hosts: HostsKind::Simulated, series, beside: 0.0 };
    load.check().map_err(|error| errors::memory(&error, series))
}

/// What the command prints as notes. With a policy `in_process` each host has a `command` that names it.
fn warn(
    py: Python<'_>,
    late: &[LateChange],
    ineffective: Vec<IneffectiveKey>,
    planned: &[&Scenario],
    in_process: bool,
) -> PyResult<()> {
    let in_python = |key: IneffectiveKey| match key.set_in.as_str() {
        COMMAND_LINE => IneffectiveKey { set_in: "an override".to_owned(), ..key },
        _ => key,
    };
    let late = late.iter().map(ToString::to_string);
    let own = |key: &IneffectiveKey| in_process && key.set_in == COMMAND_LINE && key.key.ends_with(".command");
    let ineffective = ineffective.into_iter().filter(|key| !own(key)).map(|key| in_python(key).to_string());
    let short = short_warmups(planned.iter().copied()).into_iter().map(|short| short.to_string());
    let category = py.import("lasthop._errors")?.getattr("ScenarioWarning")?;
    let mut assumed: Vec<String> = Vec::new();
    for header in planned.iter().flat_map(|scenario| scenario.assumed_headers()).map(ToString::to_string) {
        if !assumed.contains(&header) {
            assumed.push(header);
        }
    }
    for note in assumed.into_iter().chain(late).chain(ineffective).chain(short) {
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
        let key = value::text_of_key(&key)?;
        if values.is_instance_of::<pyo3::types::PyString>() {
            return Err(errors::argument(format!("vary: {key} has one text; accepted: a list of values")));
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
        Ok(Case { label: value::text_of_key(&label)?, settings, overrides })
    };
    cases.iter().map(one).collect()
}
