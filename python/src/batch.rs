//! Runs that other processes do: a plan gives them out one by one and takes their results, in any order.
//!
//! The scenario travels as the text of its TOML file, and the result without it. A search asks for its next value when
//! it has the runs of the one before, so a plan may have nothing to give while runs are out.
//!
//! *What it leaves out*: series. Which process does a run, and what happens when that is lost: `lasthop/dask.py`.

use crate::errors::{self, Failure};
use crate::outcome::{Document, Outcome};
use crate::run::{
    ComparisonPlan, Seeds, Stored, check_memory, judged, plan_comparison, plan_study, run_one, stopped, wait,
};
use crate::scenario::CoreScenario;
use lasthop_scenario::{Build, HostsKind, RunResult, Scenario};
use lasthop_study::{Found, Hunt, PlannedRun, Study, compared};
use lasthop_version::build;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::{Path, PathBuf};

/// Zstandard's own default: 5 kB for a run of ten connections.
const LEVEL: i32 = 3;

/// Does these runs, one after the other. The results are for [`Plan::done`].
#[pyfunction]
pub(crate) fn run_batch(py: Python<'_>, scenarios: Vec<String>) -> PyResult<Vec<u8>> {
    let read = |text: &String| Scenario::from_toml("scenario", text, &[]);
    let scenarios = scenarios.iter().map(read).collect::<Result<Vec<Scenario>, _>>();
    let scenarios = scenarios.map_err(|error| errors::scenario(&error, ""))?;
    for scenario in &scenarios {
        check_memory(&[scenario], NonZero::<usize>::MIN, false)?;
    }
    let outcomes = wait(py, None, None, |shared| {
        let one = |scenario: &Scenario| run_one(scenario, false, &shared.stop, &|_| {}, None);
        scenarios.iter().map(one).collect::<Vec<_>>()
    })?;
    let result = |(scenario, outcome): (&Scenario, Result<Option<_>, Box<Failure>>)| {
        let outcome = outcome.map_err(|failure| failure.into_python(py, &scenario.name, ""))?;
        let (result, _) = outcome.ok_or_else(stopped)?;
        Ok(RunResult { scenario: serde_json::Value::Null, build: Build::default(), ..result })
    };
    let results = scenarios.iter().zip(outcomes).map(result).collect::<PyResult<Vec<RunResult>>>()?;
    let json = serde_json::to_vec(&results).expect("results are plain data");
    Ok(zstd::encode_all(&json[..], LEVEL).expect("memory takes all that is written"))
}

/// A comparison or a study whose runs others do.
#[pyclass(module = "lasthop._lasthop")]
pub(crate) struct Plan {
    kind: Kind,
    /// The results of the plan's runs, in its order.
    results: Vec<Option<RunResult>>,
    /// Every run that is not stored, in the order in which it was first needed.
    runs: Vec<Run>,
    /// How many of them were given out.
    given: usize,
    families: Vec<Family>,
    searches: BTreeMap<usize, Found>,
    stored: Stored,
}

#[allow(clippy::large_enum_variant, reason = "there is one for each plan")]
enum Kind {
    Comparison(ComparisonPlan),
    Study { study: Study, planned: Vec<PlannedRun> },
}

struct Run {
    scenario: Scenario,
    place: Place,
    is_done: bool,
}

/// Where a result belongs.
#[derive(Clone, Copy)]
enum Place {
    /// The index in the plan.
    Planned(usize),
    /// The family, and the index of the seed.
    Tried(usize, usize),
}

/// Points found by search that share their scenarios, as [`Study::searched_points`] has them: one search after the
/// other, value by value.
struct Family {
    points: Vec<usize>,
    /// The index of the point whose search is under way.
    at: usize,
    hunt: Hunt,
    known: Vec<(f64, Vec<RunResult>)>,
    /// The runs with the value that is tried, one for each seed.
    trying: Vec<Option<RunResult>>,
}

#[pymethods]
impl Plan {
    #[staticmethod]
    fn of_comparison(
        py: Python<'_>,
        scenario: &CoreScenario,
        vary: &Bound<'_, PyDict>,
        cases: &Bound<'_, PyDict>,
        seeds: Seeds,
        store: &Bound<'_, PyAny>,
        model: Option<String>,
    ) -> PyResult<Self> {
        let plan = plan_comparison(py, scenario, vary, cases, seeds, false)?;
        let runs: Vec<Scenario> = plan.runs.iter().map(|(_, scenario)| scenario.clone()).collect();
        let mut this = Self::new(Kind::Comparison(plan), runs.len(), Stored::open(py, store, model)?);
        py.detach(|| {
            for (place, scenario) in runs.into_iter().enumerate() {
                this.need(scenario, Place::Planned(place));
            }
        });
        Ok(this)
    }

    #[staticmethod]
    fn of_study(
        py: Python<'_>,
        path: PathBuf,
        set: &Bound<'_, PyDict>,
        seeds: Option<u64>,
        store: &Bound<'_, PyAny>,
        model: Option<String>,
    ) -> PyResult<Self> {
        let (study, planned) = plan_study(py, &path, set, seeds)?;
        let stored = Stored::open(py, store, model)?;
        let mut this = Self::new(Kind::Study { study, planned: planned.clone() }, planned.len(), stored);
        py.detach(|| {
            // Searches first: each is a chain of runs.
            this.begin_searches(planned.len()).map_err(|error| errors::study(&error))?;
            for (place, run) in planned.into_iter().enumerate().filter(|(_, run)| !run.searched) {
                this.need(run.scenario, Place::Planned(place));
            }
            Ok(this)
        })
    }

    /// At most `seconds` of scenario time of runs that nobody has begun, at least one run if there is any: numbers,
    /// scenarios, seconds.
    fn take(&mut self, seconds: f64) -> (Vec<usize>, Vec<String>, f64) {
        let mut taken = (Vec::new(), Vec::new(), 0.0);
        while let Some(run) = self.runs.get(self.given) {
            let duration = run.scenario.duration.as_secs_f64();
            if !taken.0.is_empty() && taken.2 + duration > seconds {
                break;
            }
            taken.0.push(self.given);
            taken.1.push(run.scenario.to_toml());
            taken.2 += duration;
            self.given += 1;
        }
        taken
    }

    /// Takes and stores the results of these runs, in their order.
    fn done(&mut self, py: Python<'_>, numbers: Vec<usize>, results: &[u8]) -> PyResult<()> {
        py.detach(|| {
            let json = zstd::decode_all(results).map_err(|error| damaged(&error))?;
            let results: Vec<RunResult> = serde_json::from_slice(&json).map_err(|error| damaged(&error))?;
            if results.len() != numbers.len() {
                return Err(damaged(&format!("{} results of {} runs", results.len(), numbers.len())));
            }
            for (number, result) in numbers.into_iter().zip(results) {
                self.on_result(number, result)?;
            }
            Ok(())
        })
    }

    /// Runs of the plan; those of a search under way are not among them.
    #[getter]
    fn total(&self) -> usize {
        self.results.len()
    }

    /// How many of these have a result.
    #[getter]
    fn finished(&self) -> usize {
        self.results.iter().flatten().count()
    }

    /// The folder in which runs are stored, if they are.
    #[getter]
    fn store(&self) -> Option<&Path> {
        self.stored.runs.folder()
    }

    /// Scenario seconds of the runs that are known to be needed and that nobody has begun.
    #[getter]
    fn waiting_s(&self) -> f64 {
        self.runs[self.given..].iter().map(|run| run.scenario.duration.as_secs_f64()).sum()
    }

    /// All runs, judged. Keeps the cache below its limit.
    fn outcome(&mut self, py: Python<'_>) -> PyResult<Outcome> {
        if self.finished() < self.total() {
            return Err(PyValueError::new_err(format!("{} of {} runs are done", self.finished(), self.total())));
        }
        self.stored.finish(py, 3);
        py.detach(|| {
            let runs: Vec<RunResult> = std::mem::take(&mut self.results).into_iter().flatten().collect();
            Ok(match &self.kind {
                Kind::Comparison(plan) => {
                    let runs = plan.runs.iter().map(|(case, _)| *case).zip(runs);
                    let comparison =
                        compared(&plan.base, HostsKind::Simulated, build(), &plan.varied, &plan.cases, runs);
                    Outcome::new(Document::Comparison { comparison: Box::new(comparison), series: None })
                }
                Kind::Study { study, planned } => {
                    let searches = std::mem::take(&mut self.searches);
                    judged(study, planned, lasthop_study::Outcome { runs, searches, repeated_runs: 0 })
                }
            })
        })
    }
}

impl Plan {
    fn new(kind: Kind, total: usize, stored: Stored) -> Self {
        Self {
            kind,
            results: vec![None; total],
            runs: Vec::new(),
            given: 0,
            families: Vec::new(),
            searches: BTreeMap::new(),
            stored,
        }
    }

    /// Takes a run from the store, or puts it into the list. Returns whether it was stored.
    fn need(&mut self, scenario: Scenario, place: Place) -> bool {
        let Some((result, _)) = self.stored.runs.look_up(&scenario, false) else {
            self.runs.push(Run { scenario, place, is_done: false });
            return false;
        };
        self.settle(place, result);
        true
    }

    fn settle(&mut self, place: Place, result: RunResult) {
        match place {
            Place::Planned(index) => self.results[index] = Some(result),
            Place::Tried(family, seed) => self.families[family].trying[seed] = Some(result),
        }
    }

    fn on_result(&mut self, number: usize, result: RunResult) -> PyResult<()> {
        let run = &mut self.runs[number];
        if std::mem::replace(&mut run.is_done, true) {
            return Ok(());
        }
        let (place, scenario) = (run.place, run.scenario.to_json());
        self.stored.runs.keep(&run.scenario, &result, None);
        self.settle(place, RunResult { scenario, build: build(), ..result });
        match place {
            Place::Tried(family, _) if self.families[family].trying.iter().all(Option::is_some) => {
                self.on_tried(family).map_err(|error| errors::study(&error))
            }
            _ => Ok(()),
        }
    }
}

/// Searches, as `Study::run_at_once` does them.
impl Plan {
    fn begin_searches(&mut self, runs: usize) -> Result<(), lasthop_study::StudyError> {
        let Kind::Study { study, .. } = &self.kind else { return Ok(()) };
        let seeds = runs / study.points();
        let family = |points: Vec<usize>| Family {
            hunt: study.hunt(points[0]),
            points,
            at: 0,
            known: Vec::new(),
            trying: vec![None; seeds],
        };
        self.families = study.searched_points().into_iter().map(family).collect();
        (0..self.families.len()).try_for_each(|family| self.search(family))
    }

    /// Goes on with a search until runs are missing or it has ended.
    fn search(&mut self, family: usize) -> Result<(), lasthop_study::StudyError> {
        loop {
            let Kind::Study { study, planned } = &self.kind else { return Ok(()) };
            let searching = &mut self.families[family];
            let Some(point) = searching.points.get(searching.at).copied() else { return Ok(()) };
            let seeds = searching.trying.len();
            let Some(value) = searching.hunt.next() else {
                let found = searching.hunt.clone().found();
                let runs = of_value(&searching.known, found.value).expect("a value found was tried").iter().cloned();
                runs.enumerate().for_each(|(seed, run)| self.results[point * seeds + seed] = Some(run));
                self.searches.insert(point, found);
                searching.at += 1;
                if let Some(next) = searching.points.get(searching.at) {
                    searching.hunt = study.hunt(*next);
                }
                continue;
            };
            if let Some(runs) = of_value(&searching.known, value) {
                let tried = study.tried(point, value, runs);
                searching.hunt.on_tried(tried);
                continue;
            }
            let of_seed = |seed: usize| {
                let scenario = &planned[searching.points[0] * seeds + seed].scenario;
                study.candidate(point, scenario.seed, value)
            };
            let scenarios = (0..seeds).map(of_seed).collect::<Result<Vec<_>, _>>()?;
            let mut stored = 0;
            for (seed, scenario) in scenarios.into_iter().enumerate() {
                stored += usize::from(self.need(scenario, Place::Tried(family, seed)));
            }
            if stored < seeds {
                return Ok(());
            }
            self.know(family, value);
        }
    }

    /// Goes on with a search that has all runs of the value that it tries.
    fn on_tried(&mut self, family: usize) -> Result<(), lasthop_study::StudyError> {
        let value = self.families[family].hunt.next().expect("a search that tries a value wants one");
        self.know(family, value);
        self.search(family)
    }

    fn know(&mut self, family: usize, value: f64) {
        let family = &mut self.families[family];
        let runs = family.trying.iter_mut().filter_map(Option::take).collect();
        family.known.push((value, runs));
    }
}

fn of_value(known: &[(f64, Vec<RunResult>)], value: f64) -> Option<&[RunResult]> {
    known.iter().find(|(other, _)| *other == value).map(|(_, runs)| &runs[..])
}

fn damaged(error: &impl ToString) -> PyErr {
    PyValueError::new_err(format!("the results of a batch are damaged: {}", error.to_string()))
}
