//! Kernel hosts in real time: the kernel's own TCP through the network model.
//!
//! Every host is a network namespace with a TUN device, so its TCP is the kernel's; the server is one more behind the
//! wired path. One loop carries the packets through the same model of the access point that simulated hosts use, against
//! the wall clock. A host with a policy runs the agent, the very program that a user installs.
//!
//! ```text
//!   host 0: TCP - TUN --+                                     +-- TUN - TCP :server
//!   host 1: TCP - TUN --+--[ 802.11 medium | AP queue | path ]+
//!   ...                 |        crates/network, real time
//!   each with its agent-+
//! ```
//!
//! Nothing of it outlives the process: namespaces have no names, TUN devices belong to open files, agents die with their
//! parent, and nothing is pinned. There is nothing to clean up, not even after `kill -9`.
//!
//! *What it leaves out*: hosts share one kernel, so its boot-time switches (HZ, the delayed-ACK timer, CUBIC's module
//! parameters) are the same for all; RACK cannot be turned off on Linux 6.17 and later, so `era = "2012"` has it; a
//! host's CPU is never the bottleneck it may be on a phone.
// TUN devices, MSG_TRUNC and what happens between fork and exec have no safe interface.
#![allow(unsafe_code)]

mod agents;
mod bounds;
mod clock;
mod hosts;
mod iperf3;
mod measure;
mod namespace;
mod netlink;
mod real_time;
mod shaper;
mod tcp_info;
mod traffic;
mod tun;

use agents::Agents;
use anyhow::{Context, Result, bail};
use clock::Clock;
use hosts::Hosts;
use iperf3::Iperf3;
use measure::Measured;
use network::Network;
use real_time::{RING_PACKETS, RealTime, Schedule};
use scenario::{Build, Era, HostSpec, RunResult, Scenario, Series};
use shaper::{Shaper, Station};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tracing::warn;
use traffic::{FlowPlan, Traffic};
pub use tun::INTERFACE;
use units::{Span, Time};

/// Who sends and receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrafficSource {
    /// The laboratory's own sockets.
    Own,
    /// The program `iperf3`, if it is installed.
    Iperf3,
}

/// What a run needs beside its scenario.
pub struct Options<'a> {
    /// The `lasthop` command, which is also the agent.
    pub executable: &'a Path,
    /// Who sends and receives.
    pub traffic: TrafficSource,
    /// Which build this is, for the result.
    pub build: Build,
    /// Ends the run early when it is set.
    pub stop: &'a AtomicBool,
    /// Called about ten times a second with the time on the scenario's clock.
    pub progress: &'a (dyn Fn(Span) + Sync),
}

/// Runs a scenario with kernel hosts, in real time; `None` if `stop` ended it early.
///
/// # Errors
/// If the caller is not root, the kernel lacks something that the scenario needs, or an agent does not start. Whatever
/// was made is gone when this returns.
pub fn run(scenario: &Scenario, options: &Options<'_>) -> Result<Option<(RunResult, Series)>> {
    if !nix::unistd::geteuid().is_root() {
        bail!("kernel hosts need root: they make network namespaces and TUN devices, and load eBPF programs");
    }
    let started = Instant::now();
    let specs = scenario.expanded_hosts();
    let network = Network::new(&medium_config(scenario, &specs), scenario.seed)
        .context("the network model does not take this scenario")?;
    let hosts = Hosts::new(&specs)?;
    let agents = Agents::start(options.executable, &specs, &hosts.namespaces)?;
    let flows = Flows::prepare(options.traffic, flow_plans(&specs), &hosts)?;
    let stations: Vec<Station> = specs.iter().map(|_| Station::default()).collect();
    let modern = specs.iter().filter(|spec| spec.kind.era == Era::Modern).map(|spec| usize::from(spec.index));
    let shaper = Shaper::new(modern.map(|host| (&hosts.namespaces[host], &stations[host])))?;

    let schedule = Schedule { warmup: scenario.warmup, end: scenario.duration, sample_every: scenario.sample };
    let clock = Clock::start();
    let over = AtomicBool::new(false);
    let real_time = RealTime::new(network, &hosts.devices, &stations, clock)?;
    let (medium, traffic, shaper, device_drops) = thread::scope(|scope| {
        let medium = scope.spawn(|| ending(&over, || real_time.run(schedule, &over)));
        let traffic = scope.spawn(|| ending(&over, || flows.run(clock, schedule, &over)));
        let shaper = scope.spawn(|| shaper.run(&over));
        let device_drops = watch(&hosts, schedule, clock, options, &over);
        (joined(medium), joined(traffic), joined(shaper), device_drops)
    });
    let agents = agents.stop(clock);
    let (medium, traffic, device_drops) = (medium?, traffic?, device_drops?);
    shaper?;
    if options.stop.load(Ordering::Relaxed) {
        return Ok(None);
    }
    if medium.unroutable > 0 {
        warn!("{} packets for addresses that no host has were not carried", medium.unroutable);
    }
    let build = options.build.clone();
    let wall = started.elapsed();
    let measured = Measured { scenario, hosts: &specs, build, medium, traffic, agents, device_drops, wall };
    Ok(Some(measured.into_outcome()))
}

/// The flows of a run, whoever sends them.
enum Flows<'a> {
    Own(Traffic),
    Iperf3(Iperf3<'a>),
}

impl<'a> Flows<'a> {
    fn prepare(source: TrafficSource, plans: Vec<FlowPlan>, hosts: &'a Hosts) -> Result<Self> {
        let (namespaces, server) = (&hosts.namespaces, &hosts.server);
        Ok(match source {
            TrafficSource::Own => Self::Own(Traffic::prepare(plans, namespaces, server)?),
            TrafficSource::Iperf3 => Self::Iperf3(Iperf3::prepare(plans, namespaces, server)?),
        })
    }

    fn run(self, clock: Clock, schedule: Schedule, stop: &AtomicBool) -> Result<traffic::Report> {
        match self {
            Self::Own(traffic) => traffic.run(clock, schedule, stop),
            Self::Iperf3(traffic) => traffic.run(clock, schedule, stop),
        }
    }
}

/// The scenario's network; a station of 2012 keeps its transmit queue in the kernel, one of today in the model.
fn medium_config(scenario: &Scenario, specs: &[HostSpec]) -> network::Config {
    let mut config = scenario.network().clone();
    for (host, spec) in config.hosts.iter_mut().zip(specs) {
        if spec.kind.era == Era::Y2012 {
            host.queue_packets = RING_PACKETS;
        }
    }
    config
}

fn flow_plans(specs: &[HostSpec]) -> Vec<FlowPlan> {
    let plan = |(host, flow): (&HostSpec, &scenario::FlowSpec)| FlowPlan {
        host: host.index,
        direction: flow.direction,
        congestion_control: host.kind.kernel_congestion_control().to_owned(),
        start: flow.start,
    };
    specs.iter().flat_map(|host| host.flows.iter().map(move |flow| (host, flow))).map(plan).collect()
}

/// Watches over a run: tells its progress, ends it when asked to, and counts what the hosts' devices drop after the
/// warm-up.
fn watch(hosts: &Hosts, schedule: Schedule, clock: Clock, options: &Options<'_>, over: &AtomicBool) -> Result<u64> {
    let warm = Time::ZERO + schedule.warmup;
    let mut drops_in_warmup = None;
    while !over.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(100));
        let now = clock.now();
        if options.stop.load(Ordering::Relaxed) {
            over.store(true, Ordering::Relaxed);
        }
        if drops_in_warmup.is_none() && now >= warm {
            drops_in_warmup = Some(hosts.device_drops()?);
        }
        (options.progress)(now.saturating_since(Time::ZERO).min(schedule.end));
    }
    Ok(hosts.device_drops()? - drops_in_warmup.unwrap_or(0))
}

/// Runs one thread's work; when it ends, by itself or with an error, the others end too.
fn ending<T>(over: &AtomicBool, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let outcome = work();
    over.store(true, Ordering::Relaxed);
    outcome
}

fn joined<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
