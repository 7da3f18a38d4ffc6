//! Points whose case is found by search: runs what the search asks for.

use super::{Done, place};
use anyhow::{Context, Result};
use lasthop_scenario::{RunResult, Scenario};
use lasthop_study::{PlannedRun, Study};

/// Searches at these points, which try the same scenarios: each is run once, with each seed of `first`, the plan of the first
/// of them. `None` if it was stopped.
pub(super) fn all_of(
    study: &Study,
    points: &[usize],
    first: &[PlannedRun],
    run: &dyn Fn(&Scenario) -> Result<Option<RunResult>>,
) -> Result<Option<Done>> {
    // By value.
    let mut known: Vec<(f64, Vec<RunResult>)> = Vec::new();
    let (mut runs, mut searches) = (Vec::new(), Vec::new());
    for point in points {
        let mut hunt = study.hunt(*point);
        while let Some(value) = hunt.next() {
            if known.iter().all(|(other, _)| *other != value) {
                let mut results = Vec::with_capacity(first.len());
                for planned in first {
                    let scenario = study.candidate(*point, planned.scenario.seed, value)?;
                    let Some(result) =
                        run(&scenario).with_context(|| format!("{}, {}={value}", place(planned), hunt.key()))?
                    else {
                        return Ok(None);
                    };
                    results.push(result);
                }
                known.push((value, results));
            }
            let results = known.iter().find(|(other, _)| *other == value).map(|(_, results)| results.as_slice());
            hunt.on_tried(study.tried(*point, value, results.unwrap_or_default()));
        }
        let found = hunt.found();
        let best = known.iter().find(|(value, _)| *value == found.value).map(|(_, results)| results);
        let places = point * first.len()..;
        runs.extend(places.zip(best.into_iter().flatten().cloned()));
        searches.push((*point, found));
    }
    Ok(Some((runs, searches)))
}
