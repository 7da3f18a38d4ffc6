//! A scenario with its source, so that it can be read again with other overrides.

use crate::errors::{self, Refused};
use crate::value;
use lasthop_files::{MOST_TYPED_BYTES, text_of};
use lasthop_scenario::{Override, Scenario, ScenarioError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use toml::Table;

/// A scenario, checked.
#[pyclass(frozen, module = "lasthop._lasthop")]
pub(crate) struct CoreScenario {
    source: Source,
    pub(crate) overrides: Vec<Override>,
    pub(crate) scenario: Scenario,
}

/// Where its keys are from.
#[derive(Clone)]
enum Source {
    Text { name: String, text: String },
    Table { name: String, table: Table },
}

impl Source {
    fn read(&self, overrides: &[Override]) -> Result<Scenario, ScenarioError> {
        match self {
            Self::Text { name, text } => Scenario::from_toml(name, text, overrides),
            Self::Table { name, table } => Scenario::from_table(name, table.clone(), overrides),
        }
    }
}

impl CoreScenario {
    fn new(source: Source, overrides: Vec<Override>) -> PyResult<Self> {
        let scenario = source.read(&overrides).map_err(|error| errors::scenario(&error, ""))?;
        Ok(Self { source, overrides, scenario })
    }

    /// Its name in messages.
    pub(crate) fn file(&self) -> &str {
        match &self.source {
            Source::Text { name, .. } | Source::Table { name, .. } => name,
        }
    }

    /// The same with these overrides on top.
    pub(crate) fn with_more(&self, more: impl IntoIterator<Item = Override>) -> PyResult<Self> {
        Self::new(self.source.clone(), self.overrides.iter().cloned().chain(more).collect())
    }

    /// The scenario with exactly these overrides, if simulated hosts can run it.
    pub(crate) fn with_overrides(&self, overrides: &[Override]) -> Result<Scenario, Refused> {
        let scenario = self.source.read(overrides).map_err(Refused::Scenario)?;
        lasthop_sim::check(&scenario).map(|()| scenario).map_err(Refused::Simulation)
    }
}

#[pymethods]
impl CoreScenario {
    #[staticmethod]
    fn of_file(path: PathBuf, set: &Bound<'_, PyDict>) -> PyResult<Self> {
        let text = text_of(&path, MOST_TYPED_BYTES).map_err(|source| {
            errors::scenario(&ScenarioError::Read { what: "scenario", path: path.clone(), source }, "")
        })?;
        Self::new(Source::Text { name: path.display().to_string(), text }, value::overrides_of(set)?)
    }

    #[staticmethod]
    fn of_text(text: String, name: String, set: &Bound<'_, PyDict>) -> PyResult<Self> {
        Self::new(Source::Text { name, text }, value::overrides_of(set)?)
    }

    #[staticmethod]
    fn of_dict(keys: &Bound<'_, PyDict>, name: String, set: &Bound<'_, PyDict>) -> PyResult<Self> {
        Self::new(Source::Table { name, table: value::table_of(keys, "")? }, value::overrides_of(set)?)
    }

    /// The same with these overrides on top.
    fn changed(&self, set: &Bound<'_, PyDict>) -> PyResult<Self> {
        self.with_more(value::overrides_of(set)?)
    }

    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let json = serde_json::to_string(&self.scenario.to_keys()).expect("a checked scenario is plain data");
        value::from_json(py, &json)
    }

    fn to_toml(&self) -> String {
        self.scenario.to_toml()
    }

    /// What was set alone, with absolute paths: read again, it is the same scenario also for overrides.
    fn written(&self) -> String {
        toml::to_string(self.scenario.written()).expect("a checked scenario is TOML")
    }

    #[getter]
    fn name(&self) -> &str {
        &self.scenario.name
    }

    #[getter]
    fn duration_s(&self) -> f64 {
        self.scenario.duration.as_secs_f64()
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.scenario.seed
    }

    #[getter]
    fn host_count(&self) -> usize {
        self.scenario.hosts.iter().map(|block| block.count).sum()
    }
}
