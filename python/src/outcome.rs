//! What runs gave: a document in the format of the command's files, and its rows for tables.

use crate::table::{Table, Which};
use crate::{Look, errors, looks};
use lasthop_report::{CaseRun, palette};
use lasthop_scenario::{Comparison, Override, ResultFile as _, RunResult, Series};
use lasthop_study::{Level, StudyResult};
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;
use toml::Value;

/// Zstandard's own default.
const LEVEL: i32 = 3;

/// The point of each run with its label, and the runs.
type StudyRuns = (Vec<(usize, String)>, Vec<RunResult>);

/// `result.json`, `comparison.json` or `study.json`, with what else the runs gave.
#[derive(Serialize, Deserialize)]
pub(crate) enum Document {
    Run {
        result: Box<RunResult>,
        series: Option<Box<Series>>,
    },
    /// One series a run, in the order of the cases and their runs.
    Comparison {
        comparison: Box<Comparison>,
        series: Option<Vec<Series>>,
    },
    /// The runs are absent when read from a folder.
    Study {
        result: Box<StudyResult>,
        runs: Option<StudyRuns>,
    },
}

/// One run, for the tables.
pub(crate) struct Run<'a> {
    pub(crate) case: &'a str,
    /// Each varied key, or axis, with its value.
    pub(crate) settings: Vec<(String, Value)>,
    pub(crate) result: &'a RunResult,
}

impl Document {
    pub(crate) fn runs(&self) -> Vec<Run<'_>> {
        match self {
            Self::Run { result, .. } => vec![Run { case: "", settings: Vec::new(), result }],
            Self::Comparison { comparison, .. } => {
                let runs = comparison.cases.iter().flat_map(|case| case.runs.iter().map(move |run| (case, run)));
                runs.map(|(case, result)| Run {
                    case: &case.label,
                    settings: case.settings.iter().map(|set| (set.key.clone(), typed(&set.key, &set.value))).collect(),
                    result,
                })
                .collect()
            }
            Self::Study { runs: None, .. } => Vec::new(),
            Self::Study { result, runs: Some((points, runs)) } => {
                let runs = points.iter().zip(runs);
                runs.map(|((point, label), run)| Run {
                    case: label,
                    settings: result.points[*point]
                        .at
                        .iter()
                        .map(|at| (at.axis.clone(), of_level(&at.value)))
                        .collect(),
                    result: run,
                })
                .collect()
            }
        }
    }
}

impl Document {
    /// The series kept, each with the case and the seed of its run.
    pub(crate) fn sampled(&self) -> Vec<(&str, u64, &Series)> {
        match self {
            Self::Run { result, series } => series.iter().map(|series| ("", result.seed, &**series)).collect(),
            Self::Comparison { comparison, series } => {
                let cases = comparison.cases.iter();
                let runs = cases.flat_map(|case| case.runs.iter().map(|run| (case.label.as_str(), run.seed)));
                runs.zip(series.iter().flatten()).map(|((case, seed), series)| (case, seed, series)).collect()
            }
            Self::Study { .. } => Vec::new(),
        }
    }
}

pub(crate) fn of_level(level: &Level) -> Value {
    match level {
        Level::Number(number) => Value::Float(*number),
        Level::Text(text) => Value::String(text.clone()),
    }
}

/// A value as typed on a command line.
fn typed(key: &str, raw: &str) -> Value {
    Override::parse(&format!("{key}={raw}")).map_or_else(|_| Value::String(raw.to_owned()), |set| set.value().clone())
}

/// What one or more runs gave.
#[pyclass(frozen, module = "lasthop._lasthop")]
pub(crate) struct Outcome {
    document: Arc<Document>,
}

impl Outcome {
    pub(crate) fn new(document: Document) -> Self {
        Self { document: Arc::new(document) }
    }

    pub(crate) fn of(document: &Arc<Document>) -> Self {
        Self { document: Arc::clone(document) }
    }

    fn table(&self, which: Which) -> Table {
        Table::new(Arc::clone(&self.document), which)
    }
}

#[pymethods]
impl Outcome {
    /// The whole document for [`outcome_of_bytes`], in another process of this build.
    fn to_bytes(&self, py: Python<'_>) -> Vec<u8> {
        py.detach(|| {
            let json = serde_json::to_vec(&*self.document).expect("results are plain data");
            zstd::encode_all(&json[..], LEVEL).expect("memory takes all that is written")
        })
    }

    /// The text of the command's file.
    fn to_json(&self, py: Python<'_>) -> String {
        py.detach(|| match &*self.document {
            Document::Run { result, .. } => result.to_json(),
            Document::Comparison { comparison, .. } => comparison.to_json(),
            Document::Study { result, .. } => result.to_json(),
        })
    }

    /// The command's tables.
    fn to_text(&self) -> String {
        match &*self.document {
            Document::Run { result, .. } => lasthop_report::tables::run(result),
            Document::Comparison { comparison, .. } => lasthop_report::tables::comparison(comparison),
            Document::Study { result, .. } => lasthop_report::tables::study(result),
        }
    }

    #[getter]
    fn flows(&self) -> Table {
        self.table(Which::Flows)
    }

    #[getter]
    fn hosts(&self) -> Table {
        self.table(Which::Hosts)
    }

    #[getter]
    fn runs(&self) -> Table {
        self.table(Which::Runs)
    }

    #[getter]
    fn summary(&self) -> Table {
        self.table(Which::Summary)
    }

    #[getter]
    fn series(&self) -> Table {
        self.table(Which::Series)
    }

    #[getter]
    fn queues(&self) -> Table {
        self.table(Which::Queues)
    }

    #[getter]
    fn completions(&self) -> Table {
        self.table(Which::Completions)
    }

    #[getter]
    fn has_runs(&self) -> bool {
        !matches!(*self.document, Document::Study { runs: None, .. })
    }

    #[getter]
    fn has_series(&self) -> bool {
        !self.document.sampled().is_empty()
    }

    /// The goodput of a run's connections over time, means over so many seconds: the middles, and Mb/s. Empty without series.
    fn goodputs(&self, step_s: f64) -> PyResult<Vec<(Vec<f64>, Vec<f64>)>> {
        match &*self.document {
            Document::Run { result, series: Some(series) } => {
                let means = lasthop_report::goodput_over_time(result, series, step_s);
                Ok(means.into_iter().map(|of_flow| of_flow.into_iter().unzip()).collect())
            }
            Document::Run { series: None, .. } => Ok(Vec::new()),
            _ => Err(errors::argument("only a run has goodput over time")),
        }
    }

    /// The looks of a run's connections, or of a comparison's cases.
    fn looks(&self) -> PyResult<Vec<Look>> {
        match &*self.document {
            Document::Run { result, .. } => Ok(looks(palette::of_flows(result))),
            Document::Comparison { comparison, .. } => Ok(looks(palette::of_cases(comparison))),
            Document::Study { .. } => Err(errors::argument("a study's lines have looks of their own")),
        }
    }
}

/// What [`Outcome::to_bytes`] has written.
#[pyfunction]
pub(crate) fn outcome_of_bytes(py: Python<'_>, data: &[u8]) -> PyResult<Outcome> {
    let read = py.detach(|| {
        let json = zstd::decode_all(data).map_err(|error| error.to_string())?;
        serde_json::from_slice(&json).map_err(|error| error.to_string())
    });
    let damaged =
        |error: String| errors::argument(format!("a pickled result is of another build, or damaged: {error}"));
    Ok(Outcome::new(read.map_err(damaged)?))
}

#[pyfunction]
pub(crate) fn read_run(py: Python<'_>, folder: PathBuf) -> PyResult<Outcome> {
    let read = py.detach(|| lasthop_report::read_run(&folder));
    let (result, series) = read.map_err(|error| errors::report(&error))?;
    Ok(Outcome::new(Document::Run { result: Box::new(result), series: Some(Box::new(series)) }))
}

#[pyfunction]
pub(crate) fn read_comparison(py: Python<'_>, folder: PathBuf) -> PyResult<Outcome> {
    let read = py.detach(|| lasthop_report::read_comparison(&folder));
    let (comparison, runs): (_, Vec<CaseRun>) = read.map_err(|error| errors::report(&error))?;
    let series = runs.into_iter().map(|(_, _, series)| series).collect();
    Ok(Outcome::new(Document::Comparison { comparison: Box::new(comparison), series: Some(series) }))
}

#[pyfunction]
pub(crate) fn read_study(py: Python<'_>, folder: PathBuf) -> PyResult<Outcome> {
    let read = py.detach(|| lasthop_report::read_study(&folder));
    let result = read.map_err(|error| errors::report(&error))?;
    Ok(Outcome::new(Document::Study { result: Box::new(result), runs: None }))
}
