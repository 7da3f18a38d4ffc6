//! What `lasthop view` shows of a run before it ends.

use crate::build;
use lasthop_measure::{OnSample, begun};
use lasthop_report::{Live, LiveRun};
use lasthop_scenario::{HostsKind, Scenario};

/// Begins to show a run, if runs are shown. `has_end`: whether it takes as long as the scenario says.
pub(crate) fn live_run<'a>(
    live: Option<&'a Live>,
    label: &str,
    scenario: &Scenario,
    hosts: HostsKind,
    has_end: bool,
) -> Option<LiveRun<'a>> {
    let live = live?;
    // Without room for it the run goes on, and is not shown.
    live.run(label, scenario, begun(scenario, build(), hosts)?, has_end).ok()
}

/// What a habitat calls with each sample.
pub(crate) fn on_sample<'a>(run: Option<&'a LiveRun<'_>>) -> Option<Box<OnSample<'a>>> {
    let run = run?;
    Some(Box::new(move |at, sampled| run.on_sample(at, sampled)))
}
