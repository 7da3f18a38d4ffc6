//! Simulated hosts in virtual time. Scenario, network and policies are those of the laboratory; our own TCP replaces
//! the kernel's, and a clock that jumps from event to event the real one.
//!
//! ```text
//!             +-- timers: TCP, QUIC, applications, agents, samples
//!  the loop --+                                                 (time, then network before timers, then slot)
//!             +-- network: next_wakeup / advance
//!                    |  deliveries                  ^ offer
//!                    v                              |
//!               lasthop_tcp::Endpoint.on_segment --> poll_transmit        both ends of every connection
//!               lasthop_quic::End.on_datagram    --> poll_transmit        the same over QUIC
//!               agents: beacons heard    --> bounds, beacons      hosts with an agent
//! ```
//!
//! One run is one thread. The order of events is total: by time, network events before timers, timers by their slot.
//! The slots are connections in the scenario's order, applications, agents, clients' reports, the end of the warm-up,
//! sampling. Every random draw comes from a named stream of the scenario's seed. So the same build gives the same
//! result for the same scenario, whatever runs beside it.
//!
//! *What it leaves out*: the time of a host's processor; routing, ARP and address configuration; the time that an
//! application takes to read; the agent's program (a simulated host calls the same policies, peer table and beacon
//! codec).
#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods)]

mod agent;
mod connection;
mod measure;
mod packet;
mod quic;
mod simulation;
mod wire;

use lasthop_capture::Capture;
use lasthop_laws::LawName;
use lasthop_laws::own::{DividedByZero, caught};
use lasthop_measure::OnSample;
use lasthop_policy::Policy;
use lasthop_scenario::{
    Build, Direction, FlowBlock, HostSpec, KeyError, Kind as _, Knowledge, Pieces, Problem, RunResult, Scenario,
    Series, TrafficKind, Transport,
};
use lasthop_units::{Span, Time};
use std::sync::atomic::AtomicBool;

/// The parameters of a run beside its scenario.
pub struct Options<'a> {
    /// This build, for the result.
    pub build: Build,
    /// Whether series are kept: some 100 bytes for each connection and sample.
    pub series: bool,
    /// Ends the run early when set.
    pub stop: &'a AtomicBool,
    /// Called at each sample with the scenario's time.
    pub progress: &'a (dyn Fn(Span) + Sync),
    /// Called with each sample, if given.
    pub on_sample: Option<&'a OnSample<'a>>,
}

/// Gives the policy of a host in place of the scenario's, such as one that asks a program outside
/// ([`lasthop_policy::External`]). Asked once for each host whose agent decides, in the order of the hosts. `None`: the
/// policy that the scenario names. An error, in words, ends the run before it begins.
pub type PolicyOf<'a> = dyn FnMut(&HostSpec) -> Result<Option<Box<dyn Policy + Send>>, String> + 'a;

/// Why simulated hosts cannot run a scenario.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimError {
    /// A congestion control that only a kernel has, a client that reports measured values, QUIC over packets that are too
    /// small for it, or saturated traffic from a server.
    #[error("{0}")]
    Key(Box<KeyError>),
    /// The network model rejects the scenario's network.
    #[error("the network model rejects this scenario: {0}")]
    Network(String),
    /// The policy of a host cannot start: see [`PolicyOf`].
    #[error("the policy of host {host} cannot start: {problem}")]
    PolicyStart {
        /// The host.
        host: u16,
        /// Why.
        problem: String,
    },
    /// The policy of a host did not decide: [`Policy::failure`].
    #[error(
        "the policy of host {host}{} failed at tick {tick}, at {} s of the run: {problem}",
        of_command(command),
        at.as_secs_f64()
    )]
    Policy {
        /// The host.
        host: u16,
        /// The program in the scenario; empty: none.
        command: Vec<String>,
        /// The number of the tick, from 0.
        tick: u64,
        /// When.
        at: Time,
        /// Why.
        problem: String,
    },
    /// More packets are on their way than there may be.
    #[error(
        "{packets} packets are on their way at {:.3} s of the run; accepted: at most {most}. Rate times delay of the links, or of \
         the access, is how much they hold, and `duplicate` multiplies it from link to link",
        at.as_secs_f64()
    )]
    Room {
        /// The number of packets.
        packets: usize,
        /// The most of them.
        most: usize,
        /// When.
        at: Time,
    },
    /// A law of the user's own divides by zero.
    #[error(transparent)]
    Law(#[from] DividedByZero),
}

/// Whether simulated hosts can run this scenario.
///
/// # Errors
/// If a host has a congestion control, a last link or traffic that simulated hosts do not support.
pub fn check(scenario: &Scenario) -> Result<(), SimError> {
    let fail = |key: String, problem| Err(SimError::Key(Box::new(scenario.error(&key, problem))));
    for (block, host) in scenario.hosts.iter().enumerate() {
        let here = format!("hosts[{block}]");
        if host.kind.law.is_none() {
            return fail(format!("{here}.congestion_control"), unknown_law(&host.kind.congestion_control));
        }
        if host.kind.last_link.is_some_and(|link| link.knowledge == Knowledge::Measured) {
            let problem = "\"measured\": simulated hosts do not measure their last link";
            let accepted = "\"both\", \"bandwidth\", \"error-rate\"";
            return fail(format!("{here}.last_link.knowledge"), Problem::new(problem, accepted));
        }
        let has_quic = host.flows.iter().any(|flow| flow.kind.name().transport() == Transport::Quic);
        if has_quic && !lasthop_quic::IS_THERE {
            let problem = Problem::new("\"quic\" is not in this build, for a browser", "flows over TCP or UDP");
            return fail(format!("{here}.flows"), problem);
        }
        if has_quic && !quic::fits(&host.kind) {
            // RFC 9000 §14.
            let problem = "leaves QUIC less than the 1228 bytes that its packets need at least";
            return fail(format!("{here}.tcp.mss_bytes"), Problem::new(problem, "1188 or more, beside \"quic\""));
        }
        let no_law = |flow: &FlowBlock| flow.kind.quic_law().is_some_and(|law| quic::law(&host.kind, law).is_none());
        if let Some(flows) = host.flows.iter().position(no_law) {
            let problem = format!("{:?} is the host's, which hears clients' reports, and QUIC has none", "host");
            let problem = Problem::new(problem, "another law, of the flow or of the host");
            return fail(format!("{here}.flows[{flows}].congestion_control"), problem);
        }
        // It would share its queue with all others, and could not keep it full.
        let saturated_down = |flow: &FlowBlock| saturates(&flow.kind) && flow.direction == Direction::Down;
        if let Some(flows) = host.flows.iter().position(saturated_down) {
            let problem = Problem::new("saturated traffic only goes up", "\"up\"");
            return fail(format!("{here}.flows[{flows}].direction"), problem);
        }
    }
    Ok(())
}

/// Whether it keeps its host's queue full.
fn saturates(kind: &TrafficKind) -> bool {
    (kind.name().transport(), kind.name().pieces()) == (Transport::Udp, Pieces::Streams)
}

/// Runs a scenario with simulated hosts. `None` if `stop` ended it early. Without `options.series` the series are
/// empty. The result's wall-clock fields are 0, because this crate has no clock: see [`RunResult::took`].
///
/// The policies are those of the scenario; with the policy "external" use [`run_with`].
///
/// # Errors
/// As [`check`], or if the network model rejects the scenario's network.
pub fn run(scenario: &Scenario, options: &Options<'_>) -> Result<Option<(RunResult, Series)>, SimError> {
    run_with(scenario, options, &mut |_| Ok(None))
}

/// The same, with policies of the caller. A host that gets one has the policy "external" in the result. Its scenario
/// should say so too, with a `command` that names what is given: nothing here starts it, and with the policy "none" a
/// host has no agent.
///
/// # Errors
/// As [`run`]; or if a law of the user's own divides by zero, a policy cannot start, or says that it [failed](Policy::failure).
pub fn run_with(
    scenario: &Scenario,
    options: &Options<'_>,
    policies: &mut PolicyOf<'_>,
) -> Result<Option<(RunResult, Series)>, SimError> {
    check(scenario)?;
    let hosts: Vec<HostSpec> = scenario.expanded_hosts();
    caught(|| simulation::Simulation::new(scenario, &hosts, options, policies)?.run())?
}

/// The same, and shows all packets to `capture`: those of all hosts, on the air, and lost. The result is the same.
///
/// # Errors
/// As [`run_with`]. Those of writing the capture: [`Capture::finish`].
pub fn run_captured(
    scenario: &Scenario,
    options: &Options<'_>,
    policies: &mut PolicyOf<'_>,
    capture: &mut Capture,
) -> Result<Option<(RunResult, Series)>, SimError> {
    check(scenario)?;
    let hosts: Vec<HostSpec> = scenario.expanded_hosts();
    caught(|| simulation::Simulation::new(scenario, &hosts, options, policies)?.capture(capture).run())?
}

fn of_command(command: &[String]) -> String {
    if command.is_empty() { String::new() } else { format!(" ({})", command.join(" ")) }
}

fn unknown_law(name: &str) -> Problem {
    let known = LawName::ALL.map(|law| law.as_str());
    let problem = format!("simulated hosts have no congestion control \"{name}\"");
    if name.ends_with(".h") {
        let why = format!("{problem}: a scenario inside a result does not bring the law of its header");
        return Problem::new(why, known.join(", "));
    }
    let meant = lasthop_scenario::nearest_names(name, &known, 1).first().map(|law| format!("\"{law}\""));
    Problem { did_you_mean: meant, ..Problem::new(problem, known.join(", ")) }
}
