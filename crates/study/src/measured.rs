//! The values of every kept measure in every run.

use crate::measure::{Measure, WholeRun};
use crate::range::range_of;
use crate::search::Found;
use lasthop_measure::{mean, spread};
use lasthop_scenario::{Interval, RunResult};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A measure at a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasureResult {
    /// Its text in the study.
    pub measure: String,
    /// One value for each seed; `None` if the run has no such number.
    pub values: Vec<Option<f64>>,
    /// Their mean; `None` unless every run has a value.
    pub mean: Option<f64>,
    /// The sample standard deviation, with n − 1; `None` with fewer than two seeds, and in files without it.
    #[serde(default)]
    pub deviation: Option<f64>,
    /// The 95 % confidence interval of the mean; `None` with fewer than two seeds.
    pub ci95: Option<Interval>,
}

/// The values of every kept measure in every run.
pub(crate) struct Measured {
    measures: Vec<Measure>,
    /// By measure, point and seed.
    values: Vec<Vec<Vec<Result<f64, String>>>>,
}

impl Measured {
    pub(crate) fn of(measures: &[Measure], of_point: &[&[RunResult]], searches: &BTreeMap<usize, Found>) -> Self {
        let mut values = vec![vec![Vec::new(); of_point.len()]; measures.len()];
        for (point, runs) in of_point.iter().enumerate() {
            for run in runs.iter().map(|run| WholeRun::new(run, searches.get(&point))) {
                for (measure, values) in measures.iter().zip(&mut values) {
                    values[point].push(measure.of_run(&run));
                }
            }
        }
        Self { measures: measures.to_vec(), values }
    }

    fn values(&self, point: usize, measure: &Measure) -> Option<&[Result<f64, String>]> {
        let index = self.measures.iter().position(|kept| kept == measure)?;
        Some(&self.values[index][point])
    }

    /// The mean over all seeds, or without one of them.
    pub(crate) fn mean(&self, point: usize, measure: &Measure, without: Option<usize>) -> Result<f64, String> {
        // Reading the study may have missed a measure that only one branch of an expression uses.
        let values =
            self.values(point, measure).ok_or_else(|| format!("{measure} was not kept; name it in measures"))?;
        let kept = values.iter().enumerate().filter(|(seed, _)| Some(*seed) != without).map(|(_, value)| value.clone());
        let kept = kept.collect::<Result<Vec<f64>, String>>()?;
        mean(&kept).ok_or_else(|| format!("{measure} is of no run"))
    }

    pub(crate) fn result(&self, point: usize, measure: &Measure) -> MeasureResult {
        let values: Vec<Option<f64>> =
            self.values(point, measure).unwrap_or_default().iter().map(|value| value.clone().ok()).collect();
        let all: Option<Vec<f64>> = values.iter().copied().collect();
        let over_seeds = all.and_then(|all| spread(all, range_of(measure.as_str())));
        MeasureResult {
            measure: measure.as_str().to_owned(),
            mean: over_seeds.map(|over| over.mean),
            deviation: over_seeds.and_then(|over| over.deviation),
            ci95: over_seeds.and_then(|over| over.ci95),
            values,
        }
    }

    pub(crate) fn seeds(&self) -> usize {
        self.values.first().and_then(|points| points.first()).map_or(0, Vec::len)
    }
}
