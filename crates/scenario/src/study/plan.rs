//! From the points of a study to the scenarios that are run.

use super::space::{Coordinate, joined};
use super::{Setting, Study, StudyError};
use crate::document::{Path, line_of_key};
use crate::overrides::{Override, Step, steps};
use crate::{Scenario, ScenarioError};

/// One run of a study.
#[derive(Clone, Debug)]
pub struct PlannedRun {
    /// Which point, counted from 0; the last axis changes fastest.
    pub point: usize,
    /// The point in words: `ARF, n=10, delay=4`; empty where nothing varies.
    pub label: String,
    /// With the seed of this run.
    pub scenario: Scenario,
}

impl Study {
    /// Every run, each point with so many seeds, checked: the runs of a point stand together, in the order of their seeds.
    ///
    /// # Errors
    /// If the scenario of a point cannot be run; the message names the line of the study or of the scenario that is wrong.
    pub fn plan(&self, seeds: u64) -> Result<Vec<PlannedRun>, StudyError> {
        // What is wrong with the scenario itself is told without a point.
        let base = self.base()?;
        let mut runs = Vec::new();
        for point in 0..self.space.points() {
            let at = self.space.coordinates(point);
            let levels = self.space.levels_at(point);
            let settings: Vec<&Setting> = self
                .set
                .iter()
                .chain(self.settings.iter().zip(levels).flat_map(|(dimension, level)| &dimension[level]))
                .collect();
            let label = joined(&at);
            for seed in base.seed..base.seed + seeds {
                let mut changes: Vec<Override> = settings.iter().map(|setting| setting.change.clone()).collect();
                changes.push(Override::seed(seed));
                let scenario =
                    self.changed(&changes).map_err(|error| self.in_words_of_the_study(error, &settings, &at))?;
                runs.push(PlannedRun { point, label: label.clone(), scenario });
            }
        }
        Ok(runs)
    }

    /// The scenario with what is set in every run, without what varies.
    ///
    /// # Errors
    /// As [`Study::plan`].
    pub fn base(&self) -> Result<Scenario, StudyError> {
        let settings: Vec<&Setting> = self.set.iter().collect();
        let changes: Vec<Override> = settings.iter().map(|setting| setting.change.clone()).collect();
        self.changed(&changes).map_err(|error| self.in_words_of_the_study(error, &settings, &[]))
    }

    fn changed(&self, changes: &[Override]) -> Result<Scenario, ScenarioError> {
        Scenario::from_toml(&self.base.file, &self.base.text, changes)
    }

    /// The scenario names overrides and its own lines; the writer of a study knows the lines of the study.
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
        {
            // Its own text was made from the table [scenario]; the line is that of the study.
            let path = steps(&key.key).into_iter().fold(Path::default().key("scenario"), |path, step| match step {
                Step::Key(name) => path.key(&name),
                Step::Index(index) => path.index(index),
                Step::All => path,
            });
            key.line = line_of_key(&self.text, &path);
            key.key = path.to_string();
            return StudyError::Key(key.clone());
        }
        if at.is_empty() {
            return StudyError::Base { place, reason: error };
        }
        StudyError::Scenario { place, at: joined(at), reason: error }
    }
}
