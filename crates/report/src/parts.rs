//! A report as a part of a page that is there already, such as that of the playground (crates/site): the same figures and tables,
//! without head, style and what is about folders.

use crate::{CaseRun, figures, html};
use lasthop_scenario::{Comparison, RunResult, Series};

/// HTML of the report of one run.
pub fn part_of_run(result: &RunResult, series: &Series) -> String {
    html::run(html::PART, result, &figures::of_run(result, series))
}

/// HTML of the report of a comparison. `runs` are all runs of all cases, with the labels of their cases.
pub fn part_of_comparison(comparison: &Comparison, runs: &[CaseRun]) -> String {
    html::comparison(html::PART, comparison, runs, &figures::of_comparison(comparison, runs), &[])
}
