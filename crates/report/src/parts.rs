//! A report as a part of a page that is there already, such as that of the playground (crates/site): the same figures and tables,
//! without head, style and what is about folders.

use crate::{CaseRun, figures, html};
use lasthop_scenario::{Comparison, RunResult, Series};
use serde_json::json;

/// HTML of the report of one run.
pub fn part_of_run(result: &RunResult, series: &Series) -> String {
    html::run(html::PART, result, &figures::of_run(result, series))
}

/// HTML of the report of a comparison. `runs` are all runs of all cases, with the labels of their cases.
pub fn part_of_comparison(comparison: &Comparison, runs: &[CaseRun]) -> String {
    html::comparison(html::PART, comparison, runs, &figures::of_comparison(comparison, runs), &[])
}

/// HTML of the figures of a run that goes on. `begun`: its result as far as it is known at its begin
/// ([`lasthop_measure::begun`]); `series`: the samples until now; `air`: seconds, and the share (0 to 1) of the time since the one
/// before in which the channel carried a frame.
pub fn part_before_the_end(label: &str, begun: &RunResult, series: &Series, air: &[(f64, f64)]) -> String {
    let run = html::going(label, begun.clone(), true, series, air);
    html::render("live.html", &json!({ "planned": 1, "done": 0, "run": run, "ended": [], "not_listed": 0 }))
}
