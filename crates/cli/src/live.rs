//! What `lasthop view` shows of a run before it ends.

use crate::build;
use lasthop_measure::{OnSample, Sampled, begun};
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
    live.run(label, begun(scenario, build(), hosts)?, has_end, scenario.sample).ok()
}

/// What a habitat calls with each sample. Flows in an open loop, which have many connections, are not shown.
pub(crate) fn on_sample<'a>(run: Option<&'a LiveRun<'_>>, scenario: &Scenario) -> Option<Box<OnSample<'a>>> {
    let run = run?;
    let hosts = scenario.expanded_hosts();
    let connections: Vec<(usize, bool)> =
        hosts.iter().flat_map(|host| &host.flows).map(|flow| (flow.id as usize, flow.arrival.is_none())).collect();
    Some(Box::new(move |at, sampled: Sampled<'_>| match sampled {
        Sampled::Connection(connection, received, seen) => {
            if let (flow, true) = connections[connection] {
                run.on_sample(at, Sampled::Connection(flow, received, seen));
            }
        }
        Sampled::Queue(_) | Sampled::Air { .. } => run.on_sample(at, sampled),
    }))
}
