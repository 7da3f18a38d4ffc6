//! Errors as Python's exceptions: those of `lasthop/_errors.py`, or Python's own where these say it.

use lasthop_report::ReportError;
use lasthop_scenario::{ResultError, ScenarioError};
use lasthop_sim::SimError;
use lasthop_study::{CaseError, StoreError, StudyError, TooMuchMemory};
use pyo3::exceptions::{PyMemoryError, PyOSError};
use pyo3::prelude::*;
use std::io;
use std::path::Path;

mod python {
    pyo3::import_exception!(lasthop._errors, ArgumentError);
    pyo3::import_exception!(lasthop._errors, ColumnError);
    pyo3::import_exception!(lasthop._errors, MissingFileError);
    pyo3::import_exception!(lasthop._errors, PolicyError);
    pyo3::import_exception!(lasthop._errors, ResultError);
    pyo3::import_exception!(lasthop._errors, ScenarioError);
}

/// An argument has a wrong type or value.
pub(crate) fn argument(message: impl Into<String>) -> PyErr {
    python::ArgumentError::new_err(message.into())
}

/// A table has no such column.
pub(crate) fn column(message: String) -> PyErr {
    python::ColumnError::new_err(message)
}

/// What is wrong in a file of keys; `place` says in front of the message where it was found.
pub(crate) fn scenario(error: &ScenarioError, place: &str) -> PyErr {
    let message = if place.is_empty() { error.to_string() } else { format!("{place}: {error}") };
    let none = None::<String>;
    match error {
        ScenarioError::Read { path, source, .. } => system(path, source),
        ScenarioError::Syntax { file, line, .. } => {
            python::ScenarioError::new_err((message, file.clone(), Some(*line), none.clone(), none.clone(), none))
        }
        ScenarioError::Key(key) => {
            let key = (**key).clone();
            python::ScenarioError::new_err((message, key.file, key.line, key.key, key.accepted, key.did_you_mean))
        }
        ScenarioError::Override { text, .. } => {
            let key = text.split('=').next().unwrap_or_default().to_owned();
            python::ScenarioError::new_err((message, none.clone(), None::<usize>, key, none.clone(), none))
        }
    }
}

/// Why simulated hosts cannot run a scenario.
pub(crate) fn simulation(error: &SimError, file: &str, place: &str) -> PyErr {
    let message = if place.is_empty() { error.to_string() } else { format!("{place}: {error}") };
    let key = match error {
        SimError::Key(error) => Some(error.key.clone()),
        SimError::Network(_)
        | SimError::Room { .. }
        | SimError::Law(_)
        | SimError::PolicyStart { .. }
        | SimError::Policy { .. } => None,
    };
    let none = None::<String>;
    python::ScenarioError::new_err((message, file.to_owned(), None::<usize>, key, none.clone(), none))
}

/// Why a run has no result.
pub(crate) struct Failure {
    pub(crate) error: SimError,
    /// What a policy in Python raised.
    pub(crate) cause: Option<PyErr>,
}

impl Failure {
    pub(crate) fn into_python(self, py: Python<'_>, file: &str, place: &str) -> PyErr {
        let error = &self.error;
        let (host, tick, at_s) = match error {
            SimError::PolicyStart { host, .. } => (*host, None, None),
            SimError::Policy { host, tick, at, .. } => (*host, Some(*tick), Some(at.as_secs_f64())),
            _ => return simulation(error, file, place),
        };
        let message = if place.is_empty() { error.to_string() } else { format!("{place}: {error}") };
        let error = python::PolicyError::new_err((message, host, tick, at_s));
        error.set_cause(py, self.cause);
        error
    }
}

pub(crate) fn store(error: &StoreError) -> PyErr {
    PyOSError::new_err(error.to_string())
}

/// Why a scenario cannot be run: as written, or by simulated hosts.
pub(crate) enum Refused {
    Scenario(ScenarioError),
    Simulation(SimError),
}

impl Refused {
    pub(crate) fn into_python(self, file: &str, place: &str) -> PyErr {
        match self {
            Self::Scenario(error) => scenario(&error, place),
            Self::Simulation(error) => simulation(&error, file, place),
        }
    }
}

pub(crate) fn of_case(error: CaseError<Refused>, file: &str) -> PyErr {
    let place = error_text(&error);
    match error {
        CaseError::Scenario { error, .. } => error.into_python(file, &place),
        CaseError::Covered(..) => argument(place),
        CaseError::Label(_) | CaseError::Seed => {
            argument(format!("{place}; accepted: seeds= for seeds, and labels that differ"))
        }
    }
}

/// [`CaseError`]'s message, whatever is inside.
fn error_text(error: &CaseError<Refused>) -> String {
    match error {
        CaseError::Label(label) => CaseError::<SimError>::Label(label.clone()).to_string(),
        CaseError::Seed => CaseError::<SimError>::Seed.to_string(),
        CaseError::Covered(one, later) => CaseError::<SimError>::Covered(one.clone(), later.clone()).to_string(),
        CaseError::Scenario { label, .. } => format!("the case \"{label}\" cannot be run"),
    }
}

pub(crate) fn study(error: &StudyError) -> PyErr {
    match error {
        StudyError::File(error) => scenario(error, ""),
        StudyError::Base { place, reason } => scenario(reason, place),
        StudyError::Scenario { place, at, reason } => scenario(reason, &format!("{place}: with {at}")),
    }
}

pub(crate) fn memory(error: &TooMuchMemory, series: bool) -> PyErr {
    let advice = if series { ", or give series=False" } else { "" };
    PyMemoryError::new_err(format!("{error}{advice}"))
}

pub(crate) fn report(error: &ReportError) -> PyErr {
    match error {
        ReportError::Read { path, source } | ReportError::Write { path, source } => system(path, source),
        ReportError::Result { source: ResultError::Read { path, source }, .. } => system(path, source),
        ReportError::Result { path, source } => python::ResultError::new_err(format!("{}: {source}", path.display())),
        ReportError::ReadSeries { source, .. } | ReportError::WriteSeries { source, .. } => {
            python::ResultError::new_err(format!("{error}: {source}"))
        }
        ReportError::Series { .. } | ReportError::NoResult { .. } | ReportError::Figure { .. } => {
            python::ResultError::new_err(error.to_string())
        }
    }
}

/// Python makes `FileNotFoundError` and its siblings of the number.
fn system(path: &Path, error: &io::Error) -> PyErr {
    match error.raw_os_error() {
        Some(number) => {
            let words = error.to_string();
            let words = words.split(" (os error").next().unwrap_or_default().to_owned();
            let arguments = (number, words, path.to_owned());
            match error.kind() {
                io::ErrorKind::NotFound => python::MissingFileError::new_err(arguments),
                _ => PyOSError::new_err(arguments),
            }
        }
        None => PyOSError::new_err(format!("{}: {error}", path.display())),
    }
}
