//! Simulated hosts in virtual time: the same scenario, the same network, the same policies as in the laboratory, with
//! our own TCP in place of the kernel's and a clock that jumps from event to event.
//!
//! ```text
//!             +-- timers: TCP, applications, agents, samples
//!  the loop --+                                                 (time, then network before timers, then slot)
//!             +-- network: next_wakeup / advance
//!                    |  deliveries                  ^ offer
//!                    v                              |
//!               lasthop_tcp::Endpoint.on_segment --> poll_transmit        both ends of every connection
//!               agents: beacons heard    --> bounds, beacons      hosts with an agent
//! ```
//!
//! One run is one thread. The order of events is total: by time, network events before timers, timers by their slot
//! (connections in the order of the scenario, then applications, then agents, then clients' reports, then the end of the warm-up and the
//! sampling). Every random draw comes from
//! a named stream of the scenario's seed, so the same build gives the same scenario the same result, for any number of runs
//! beside it.
//!
//! *What it leaves out*: what a host's processor costs; routing, ARP and address configuration; the time an application
//! takes to read. The agents' program itself: a simulated host calls the same policies, peer table and beacon codec.
#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods)]

mod agent;
mod connection;
mod measure;
mod simulation;
mod timers;
mod traffic;

use lasthop_laws::LawName;
use lasthop_scenario::{Build, HostSpec, Knowledge, RunResult, Scenario, Series};
use lasthop_units::Span;
use std::sync::atomic::AtomicBool;

/// What a run needs beside its scenario.
pub struct Options<'a> {
    /// Which build this is, for the result.
    pub build: Build,
    /// Whether the series are kept: some 100 bytes for each connection and sample.
    pub series: bool,
    /// Ends the run early when it is set.
    pub stop: &'a AtomicBool,
    /// Called with the time on the scenario's clock, at each sample.
    pub progress: &'a (dyn Fn(Span) + Sync),
}

/// Why simulated hosts cannot run a scenario.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimError {
    /// A congestion control that only a kernel has.
    #[error(
        "simulated hosts have no congestion control \"{name}\" (hosts.{block}.congestion_control){}; they have {}",
        meant(name),
        known_laws()
    )]
    CongestionControl {
        /// Number of the `[[hosts]]` block.
        block: usize,
        /// As the scenario spells it.
        name: String,
    },
    /// A client that says what it has measured: simulated agents measure no links.
    #[error(
        "simulated hosts do not measure their last link (hosts.{block}.last_link.knowledge = \"measured\"): accepted are \
         \"both\", \"bandwidth\", \"error-rate\""
    )]
    MeasuredLink {
        /// Number of the `[[hosts]]` block.
        block: usize,
    },
    /// The network model does not take the scenario's network.
    #[error("the network model does not take this scenario: {0}")]
    Network(String),
    /// A server cannot keep a queue full that it shares with all others.
    #[error("saturated traffic goes up only (hosts.{block}.flows.{flows}.direction): accepted is \"up\"")]
    SaturatedDown {
        /// Number of the `[[hosts]]` block.
        block: usize,
        /// Number of the `[[hosts.flows]]` block.
        flows: usize,
    },
}

/// Whether simulated hosts can run this scenario.
///
/// # Errors
/// If a host asks for a congestion control or for traffic that they do not have.
pub fn check(scenario: &Scenario) -> Result<(), SimError> {
    for (block, host) in scenario.hosts.iter().enumerate() {
        if host.kind.law.is_none() {
            return Err(SimError::CongestionControl { block, name: host.kind.congestion_control.clone() });
        }
        if host.kind.last_link.is_some_and(|link| link.knowledge == Knowledge::Measured) {
            return Err(SimError::MeasuredLink { block });
        }
        let saturated_down = |flow: &lasthop_scenario::FlowBlock| {
            matches!(flow.kind, lasthop_scenario::TrafficKind::Saturated { .. })
                && flow.direction == lasthop_scenario::Direction::Down
        };
        if let Some(flows) = host.flows.iter().position(saturated_down) {
            return Err(SimError::SaturatedDown { block, flows });
        }
    }
    Ok(())
}

/// Runs a scenario with simulated hosts; `None` if `stop` ended it early. Without `options.series` the series are empty.
/// The result's wall-clock fields are 0: this room has no clock, see [`RunResult::took`].
///
/// # Errors
/// As [`check`], or if the network model does not take the scenario's network.
pub fn run(scenario: &Scenario, options: &Options<'_>) -> Result<Option<(RunResult, Series)>, SimError> {
    check(scenario)?;
    let hosts: Vec<HostSpec> = scenario.expanded_hosts();
    Ok(simulation::Simulation::new(scenario, &hosts, options)?.run())
}

fn meant(name: &str) -> String {
    let known = LawName::ALL.map(|law| law.as_str());
    lasthop_scenario::nearest_names(name, &known, 1)
        .first()
        .map_or(String::new(), |law| format!("; did you mean \"{law}\"?"))
}

fn known_laws() -> String {
    LawName::ALL.iter().map(|law| law.as_str()).collect::<Vec<_>>().join(", ")
}
