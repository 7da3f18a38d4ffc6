//! Derives the scenarios to run from the points of a study.

use crate::measure::Measure;
use crate::search::{Hunt, Search, Tried};
use crate::space::{CASE, Coordinate, fixed, joined};
use crate::verdict::met;
use crate::{Formula, Setting, Study, StudyError, expression};
use lasthop_keys::{Path, line_of_key};
use lasthop_measure::mean;
use lasthop_scenario::Override;
use lasthop_scenario::{COMMAND_LINE, IneffectiveKey, ineffective_keys};
use lasthop_scenario::{HostsKind, RunResult, Scenario, ScenarioError};
use std::sync::Arc;
use toml::Value;

/// One run of a study.
#[derive(Clone, Debug)]
pub struct PlannedRun {
    /// The index of the point, from 0; the last axis changes fastest.
    pub point: usize,
    /// The point in words: `ARF, n=10, delay=4`; empty where nothing varies.
    pub label: String,
    /// The scenario with the seed of this run. In a case found by search it has the minimum of the search.
    pub scenario: Scenario,
    /// The habitat of its case, if that has its own.
    pub hosts: Option<HostsKind>,
    /// Whether the case is found by search. The run then uses [`Study::candidate`].
    pub searched: bool,
}

impl Study {
    /// The same study with these overrides in every run, on top of its own.
    #[must_use]
    pub fn with_overrides(self, overrides: Vec<Override>) -> Self {
        Self { overrides, ..self }
    }

    /// Every run, checked, with this number of seeds for each point. The runs of a point are adjacent, in the order of
    /// their seeds.
    ///
    /// # Errors
    /// If the scenario of a point cannot run, or an override sets what a case, an axis or a search sets. The message names
    /// the line of the study or scenario at fault.
    pub fn plan(&self, seeds: u64) -> Result<Vec<PlannedRun>, StudyError> {
        // Errors of the scenario itself are reported without a point.
        let base = self.base()?;
        let mut runs = Vec::new();
        for point in 0..self.space.points() {
            if let Some(search) = self.search(point) {
                self.candidate(point, base.seed, search.to)?;
            }
            for seed in base.seed..base.seed + seeds {
                runs.push(self.planned(point, seed)?);
            }
        }
        Ok(runs)
    }

    /// The run with the first seed at the point with this label, without a look at the others; `None`: there is no such
    /// point.
    ///
    /// # Errors
    /// As [`Study::plan`], of this point.
    pub fn plan_point(&self, label: &str) -> Result<Option<PlannedRun>, StudyError> {
        let seed = self.base()?.seed;
        self.labels().position(|of| of == label).map(|point| self.planned(point, seed)).transpose()
    }

    /// The points in words, in their order.
    pub fn labels(&self) -> impl Iterator<Item = String> {
        (0..self.space.points()).map(|point| joined(&self.space.coordinates(point)))
    }

    fn planned(&self, point: usize, seed: u64) -> Result<PlannedRun, StudyError> {
        let search = self.search(point);
        let scenario = self.at_point(point, seed, search.map(|search| (search, search.from)))?;
        let label = joined(&self.space.coordinates(point));
        let case = self.space.dimension(CASE).map(|_| self.space.levels_at(point)[0]);
        let hosts = case.and_then(|case| self.case_hosts[case]);
        Ok(PlannedRun { point, label, scenario, hosts, searched: search.is_some() })
    }

    /// The points found by search, in families. The points of a family try the same scenarios, with different
    /// objectives, so each scenario runs only once.
    pub fn searched_points(&self) -> Vec<Vec<usize>> {
        let mut families: Vec<Vec<usize>> = Vec::new();
        let tries = |point: usize| {
            let search = self.search(point)?;
            let scenario = self.at_point(point, 1, Some((search, search.from))).ok()?;
            Some((search.key.clone(), search.from.to_bits(), scenario.to_json()))
        };
        let mut known: Vec<(usize, _)> = Vec::new();
        for point in 0..self.space.points() {
            let Some(tried) = tries(point) else { continue };
            // Points of one family differ in the case alone.
            let alike = |(other, of): &&(usize, _)| {
                self.space.levels_at(*other)[1..] == self.space.levels_at(point)[1..] && *of == tried
            };
            match known.iter().find(alike).map(|(other, _)| *other) {
                Some(first) => {
                    families.iter_mut().filter(|family| family[0] == first).for_each(|family| family.push(point))
                }
                None => {
                    known.push((point, tried));
                    families.push(vec![point]);
                }
            }
        }
        families
    }

    /// The search for the value of a point.
    ///
    /// # Panics
    /// If the point's case is not found by search.
    pub fn hunt(&self, point: usize) -> Hunt {
        Hunt::new(self.search(point).expect("a point that is found by search"))
    }

    /// The scenario with this value of a search at a point.
    ///
    /// # Errors
    /// As [`Study::plan`].
    ///
    /// # Panics
    /// If the point's case is not found by search.
    pub fn candidate(&self, point: usize, seed: u64, value: f64) -> Result<Scenario, StudyError> {
        let search = self.search(point).expect("a point that is found by search");
        self.at_point(point, seed, Some((search, value)))
    }

    /// The outcome of this value, from its runs with each seed.
    ///
    /// # Panics
    /// If the point's case is not found by search.
    pub fn tried(&self, point: usize, value: f64, runs: &[RunResult]) -> Tried {
        let search = self.search(point).expect("a point that is found by search");
        let runs: Arc<[RunResult]> = runs.into();
        let figures: Arc<expression::Figures> = Arc::new(move |at, measure: &Measure| {
            assert_eq!(at, point, "a search looks at its own point, as was checked when the study was read");
            let numbers = runs.iter().map(|run| measure.of(run)).collect::<Result<Vec<f64>, String>>()?;
            mean(&numbers).ok_or_else(|| format!("{measure} is of no run"))
        });
        let scope = expression::Scope { space: Arc::clone(&self.space), selection: self.only(point), figures };
        let number = |formula: &Formula| formula.evaluate(&scope).ok();
        let (conditions, met) = met(&search.conditions, number);
        Tried { value, maximised: number(&search.maximise), conditions, met }
    }

    pub(crate) fn search(&self, point: usize) -> Option<&Search> {
        let case = *self.space.levels_at(point).first()?;
        self.space.dimension(CASE).and_then(|_| self.searches.get(case)?.as_ref())
    }

    /// The selection of one point alone.
    fn only(&self, point: usize) -> crate::space::Selection {
        let dimensions: Vec<usize> = (0..self.space.dimensions.len()).collect();
        fixed(&self.space.everything(), &dimensions, &self.space.levels_at(point))
    }

    fn at_point(&self, point: usize, seed: u64, tried: Option<(&Search, f64)>) -> Result<Scenario, StudyError> {
        let at = self.space.coordinates(point);
        let levels = self.space.levels_at(point);
        let tried = tried.map(|(search, value)| search.setting(value));
        let of = |dimension: usize| &self.settings[dimension][levels[dimension]];
        // What is drawn comes first: cases and axes change it.
        let others = (0..levels.len()).filter(|dimension| Some(*dimension) != self.drawn);
        let settings: Vec<&Setting> =
            self.set.iter().chain(self.drawn.into_iter().chain(others).flat_map(of)).chain(&tried).collect();
        let mut changes: Vec<Override> = settings.iter().map(|setting| setting.change.clone()).collect();
        changes.extend(self.overrides.iter().cloned());
        changes.push(Override::seed(seed));
        self.changed(&changes).map_err(|error| self.in_words_of_the_study(error, &settings, &at))
    }

    /// The scenario with the overrides of every run, without those of the axes.
    ///
    /// # Errors
    /// As [`Study::plan`].
    pub fn base(&self) -> Result<Scenario, StudyError> {
        self.check_overrides()?;
        let settings: Vec<&Setting> = self.set.iter().collect();
        let mut changes: Vec<Override> = settings.iter().map(|setting| setting.change.clone()).collect();
        changes.extend(self.overrides.iter().cloned());
        self.changed(&changes).map_err(|error| self.in_words_of_the_study(error, &settings, &[]))
    }

    /// Refuses an override of what tells the points apart: their names would be of values that they do not have.
    fn check_overrides(&self) -> Result<(), StudyError> {
        // What is drawn may be changed, by design.
        let varied = self.settings.iter().enumerate().filter(|(dimension, _)| Some(*dimension) != self.drawn);
        let varied = varied.flat_map(|(_, levels)| levels.iter().flatten()).cloned();
        let searched = self.searches.iter().flatten().map(|search| search.setting(search.from));
        for setting in varied.chain(searched) {
            let Some(change) = self.overrides.iter().find(|change| change.meets(&setting.change)) else { continue };
            let (file, line) = (&self.file, setting.line.map_or(String::new(), |line| format!(":{line}")));
            let message = format!(
                "it takes the place of what tells the points apart: {file}{line}: {} sets {}; accepted: a key that no \
                 case, axis or search sets",
                setting.key,
                setting.change.key()
            );
            return Err(ScenarioError::Override { text: change.to_string(), message }.into());
        }
        Ok(())
    }

    /// The keys without effect in any of these runs, with their places in the study.
    pub fn ineffective_keys(&self, runs: &[PlannedRun]) -> Vec<IneffectiveKey> {
        let mut keys = ineffective_keys(runs.iter().map(|run| &run.scenario));
        let settings = || self.set.iter().chain(self.settings.iter().flatten().flatten());
        for key in &mut keys {
            let line = if key.set_in == COMMAND_LINE {
                settings().find(|setting| setting.change.key() == key.key).and_then(|setting| setting.line)
            } else if self.base.inline {
                line_of_key(&self.text, &Path::inside("scenario", &key.key))
            } else {
                continue;
            };
            key.set_in = line.map_or_else(|| self.file.clone(), |line| format!("{}:{line}", self.file));
        }
        keys
    }

    fn changed(&self, changes: &[Override]) -> Result<Scenario, ScenarioError> {
        Scenario::from_toml_in(&self.base.folder, &self.base.file, &self.base.text, changes)
    }

    /// The scenario's messages name overrides and its own lines; an author of a study knows the study's lines.
    fn in_words_of_the_study(&self, mut error: ScenarioError, settings: &[&Setting], at: &[Coordinate]) -> StudyError {
        let mut place = self.file.clone();
        let culprit = match &error {
            ScenarioError::Key(key) => key.set_by.clone(),
            ScenarioError::Override { text, .. } => Some(text.clone()),
            _ => None,
        };
        if let Some(setting) =
            settings.iter().rev().find(|setting| culprit.as_ref() == Some(&setting.change.to_string()))
        {
            place = format!("{place}:{}: {}", setting.line.unwrap_or(1), setting.key);
        }
        if let (ScenarioError::Key(key), true) = (&mut error, self.base.inline)
            && key.set_by.is_none()
            // A line of a trace is no key of the study.
            && key.file == self.base.file
        {
            // The scenario text comes from the table [scenario]; the line is the study's.
            let path = Path::inside("scenario", &key.key);
            key.line = line_of_key(&self.text, &path);
            key.key = path.to_string();
            return StudyError::File(error);
        }
        if at.is_empty() {
            return StudyError::Base { place, reason: error };
        }
        StudyError::Scenario { place, at: joined(at), reason: error }
    }
}

impl Search {
    fn setting(&self, value: f64) -> Setting {
        let value = if self.whole { Value::Integer(value as i64) } else { Value::Float(value) };
        let change = Override::of(&self.key, &value).expect("the key was checked when the study was read");
        Setting { change, line: self.line, key: self.path.clone() }
    }
}
