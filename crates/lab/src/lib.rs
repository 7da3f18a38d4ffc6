//! Kernel hosts in real time: the kernel's own TCP through the network model.
//!
//! Every host is a network namespace with a TUN device, so its TCP is the kernel's. The same holds for every server,
//! behind the wired path or on a node of `[[links]]`. One loop carries the packets in real time through the network
//! model that simulated hosts use. A host with a policy runs the agent, the same program that a user installs.
//!
//! ```text
//!   host 0: TCP - TUN --+                                     +-- TUN - TCP :server
//!   host 1: TCP - TUN --+--[ 802.11 medium | AP queue | path ]+
//!   ...                 |        crates/network, real time
//!   each with its agent-+
//! ```
//!
//! With `[[links]]`, nodes and links of any topology replace the part in brackets.
//!
//! Nothing outlives the process, not even after `kill -9`. Namespaces have no names, TUN devices belong to open files,
//! agents die with their parent, and nothing is pinned.
//!
//! *What it leaves out*:
//!
//! - Hosts share one kernel and therefore its boot-time switches: HZ, the delayed-ACK timer, CUBIC's module parameters.
//! - RACK cannot be turned off on Linux 6.17 and later, so `era = "2012"` has it.
//! - A host's CPU is never the bottleneck, as it may be on a phone.

mod acks;
mod addresses;
mod agents;
mod clock;
mod error;
mod gro;
mod guest;
mod hosts;
mod internet;
mod iperf3;
mod laws;
mod leftovers;
mod linux_queue;
mod measure;
mod medium;
mod mpdu;
mod namespace;
mod netlink;
mod process;
mod radios;
mod rates;
mod real_time;
mod samples;
mod small_queues;
mod tcp_switches;
mod traffic;
mod tun;
mod valve;
mod wakers;

use agents::Agents;
pub use agents::{Records, RecordsKept};
use clock::{Clock, Schedule, WITHOUT_END};
pub use error::Error;
use error::{Doing, Result};
pub use guest::inside::run as run_inside;
pub use guest::{Ended, Guest, NOT_BEGUN, Program, User};
use hosts::{DeviceDrops, GuestAt, Hosts, Servers};
use internet::Internet;
use iperf3::Iperf3;
use lasthop_capture::Capture;
use lasthop_laws::LawName;
use lasthop_measure::OnSample;
use lasthop_network::random::Streams;
use lasthop_network::{Network, Topology};
use lasthop_policy::{Parts, Rts};
use lasthop_scenario::{Build, Era, FlowSpec, HostSpec, Kind as _, RunResult, Scenario, Series, Transport};
use lasthop_traffic::Application;
use lasthop_units::{Span, Time};
use laws::{Laws, LinkSample};
use leftovers::Netns;
pub use leftovers::check_netns;
use linux_queue::LinuxQueue;
pub use linux_queue::check_linux_queue;
use measure::Measured;
pub use medium::{AirShares, ChannelReport, MEDIUM_KEYS, MediumReport, check_medium, medium};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
pub use radios::{MOST_RADIO_HOSTS, RADIO_PROGRAMS, check_radios};
use real_time::{RealTime, ring_packets};
use samples::{Kept, Samples};
use small_queues::Station;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tcp_switches::{Refused, Stack};
use tracing::warn;
use traffic::{FlowPlan, Traffic};
pub use tun::INTERFACE;
use valve::{Bell, Valves};

/// The interval of the watch over a run.
const WATCH_EVERY: Duration = Duration::from_millis(20);
/// The sampling interval of the sockets of laws that use reports.
const LINKS_EVERY: Span = Span::from_millis(200);

/// The finest steps of a run: finer ones cost more of a processor, coarser ones precision. `the_cost_of_each_grain`
/// below prints both.
#[derive(Clone, Copy, Debug)]
struct Grain {
    /// The medium's minimum sleep where the network carries aggregates. Their packets leave the wired path a dozen
    /// microseconds apart, each of which would need a sleep. As moderated interrupts of a server's network card, it
    /// costs a packet at most this, and lateness includes it.
    moderation: Span,
    /// The interval of the valves.
    tick: Span,
    /// The segments of the largest packet that TCP hands to its device, at a valve.
    tcp_segments: u32,
}

impl Grain {
    const CHOSEN: Self = Self { moderation: Span::from_micros(50), tick: Span::from_millis(1), tcp_segments: 2 };
}

/// The source of the traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrafficSource {
    /// The laboratory's own sockets.
    Own,
    /// The program `iperf3`, if it is installed.
    Iperf3,
}

/// The options of a run.
pub struct Options<'a> {
    /// The source of the traffic.
    pub traffic: TrafficSource,
    /// The build, for the result.
    pub build: Build,
    /// Once set, ends the run early.
    pub stop: &'a AtomicBool,
    /// Called about ten times a second with the time on the scenario's clock.
    pub progress: &'a (dyn Fn(Span) + Sync),
    /// Called with each sample by the thread of the traffic, if given.
    pub on_sample: Option<&'a OnSample<'a>>,
    /// Shows all packets, if given; the medium's thread writes it.
    pub capture: Option<&'a Mutex<Capture>>,
    /// Where the agents' records go, if they are to be kept.
    pub records: Option<&'a Records>,
    /// Whether the last hop is mac80211 over simulated radios, which [`check_radios`] has accepted: an access point and as many more as
    /// there are hosts, in this namespace.
    pub radios: bool,
    /// Whether the downlink queue of the wired access point is this kernel's, which [`check_linux_queue`] has accepted.
    pub linux_queue: bool,
}

/// Runs a scenario with kernel hosts in real time; `None` if `stop` ended it early.
///
/// # Errors
/// If the caller is not root, if the kernel lacks a feature that the scenario needs, or if an agent does not start. All
/// resources have been released by then.
pub fn run(scenario: &Scenario, options: &Options<'_>) -> Result<Option<(RunResult, Series)>> {
    run_in_steps(scenario, options, None, &Grain::CHOSEN).map(|outcome| outcome.map(|(outcome, _)| outcome))
}

/// The outcome of a run with a guest.
#[derive(Debug)]
pub struct Executed {
    /// The result. Its duration is that of the run.
    pub result: RunResult,
    /// The series.
    pub series: Series,
    /// How the guest has ended.
    pub ended: Ended,
}

/// Runs a scenario with a guest: from the end of the warm-up until the guest ends, however long that is. `None` if
/// `stop` ended it before the guest began.
///
/// # Errors
/// As [`run`], and if the guest or its server could not be started.
pub fn exec(scenario: &Scenario, options: &Options<'_>, guest: &Guest<'_>) -> Result<Option<Executed>> {
    let outcome = run_in_steps(scenario, options, Some(guest), &Grain::CHOSEN)?;
    Ok(outcome.map(|((result, series), ended)| Executed {
        result,
        series,
        ended: ended.expect("a run with a guest ends with it"),
    }))
}

type Outcome = ((RunResult, Series), Option<Ended>);

fn run_in_steps(
    scenario: &Scenario,
    options: &Options<'_>,
    guest: Option<&Guest<'_>>,
    grain: &Grain,
) -> Result<Option<Outcome>> {
    check(scenario, options.traffic)?;
    let started = Instant::now();
    let specs = scenario.expanded_hosts();
    agents::check_room(scenario, &specs)?;
    let config = if options.radios { radios::wires(scenario) } else { medium_config(scenario, &specs) };
    let mut network = Network::new(&config, scenario.seed)?;
    network.read_acks(acks::read);
    if options.linux_queue {
        network.pass_down();
    }
    let mut servers = Servers::of(scenario, &specs)?;
    let laws = Laws::load(&specs)?;
    let programs = guest.map_or(&[][..], |guest| guest.programs);
    let of_guest: Vec<_> =
        programs.iter().map(|one| (one.host, laws.name(&specs[usize::from(one.host)].kind))).collect();
    let guest_at = guest.map(|guest| GuestAt { programs: &of_guest, internet: guest.internet });
    if let Some(first) = programs.first() {
        leftovers::sweep();
        servers.add_of_guest(scenario, &specs, first.host)?;
    }
    let hosts = Hosts::new(scenario, &specs, &servers, guest_at, options.radios)?;
    let mut cell = match &hosts.access_point {
        Some(access_point) => {
            let cell = radios::Cell::begin(scenario, &specs, &hosts, access_point, options.stop)?;
            let Some(cell) = cell else { return Ok(None) };
            Some(cell)
        }
        None => None,
    };
    let queue = options.linux_queue.then(|| LinuxQueue::new(scenario)).transpose()?;
    let outside = guest.map(|guest| Outside::open(guest, &hosts)).transpose()?;
    let Some(agents) = Agents::start(scenario, &specs, hosts.hosts(), options.records, options.stop)? else {
        return Ok(None);
    };
    let plans = flow_plans(scenario.seed, &specs, &servers, &laws, config.aggregates());
    let flows = Flows::prepare(options.traffic, plans, &hosts)?;
    let of_hosts = specs.iter().map(|spec| spec.kind.era == Era::Modern && !options.radios);
    let of_servers = servers.specs.iter().map(|server| server.has_small_queues);
    let ends = specs.len() + servers.specs.len();
    let on_host = |end| programs.iter().any(|one| end == usize::from(one.host));
    let has_guest = |end| on_host(end) || guest.is_some() && end == ends - 1;
    let station = |(end, queues_in_model)| Station::new(queues_in_model, has_guest(end), grain.tcp_segments);
    let stations: Vec<Station> = of_hosts.chain(of_servers).enumerate().map(station).collect();
    let modern = (0..stations.len()).filter(|&end| stations[end].queues_in_model());
    let valves = Valves::new(modern.map(|end| (&hosts.namespaces[end], &stations[end])), grain)?;

    let server_of_guest = hosts.servers().last();
    let running =
        guest.zip(server_of_guest).map(|(guest, server)| guest::Running::prepare(guest, server, options.stop));
    let mut running = running.transpose()?;

    let end = if guest.is_some() { WITHOUT_END } else { scenario.duration };
    let schedule = Schedule { warmup: scenario.warmup, end, sample_every: scenario.sample };
    let clock = Clock::start();
    if let Some(cell) = &cell {
        cell.count(clock, schedule);
    }
    let over = AtomicBool::new(false);
    let shortest_sleep = if config.aggregates() { grain.moderation } else { Span::ZERO };
    let bell = Bell::default();
    let real_time = RealTime::new(network, &hosts, (&stations, &bell), clock, shortest_sleep)?;
    let real_time = real_time.showing(options.capture).with_queue(queue)?;
    // A guest is on its hosts and on its server, the last, which is as the first of these.
    let of_guest = (0..stations.len()).filter(|end| has_guest(*end)).map(|end| guest::queues::End {
        namespace: &hosts.namespaces[end],
        station: &stations[end],
        sockets: hosts::stack_of(&specs[if on_host(end) { end } else { usize::from(programs[0].host) }].kind).sockets,
    });
    let of_guest: Vec<_> = of_guest.filter(|end| end.station.queues_in_model()).collect();
    let samples = Samples::new(schedule, options.on_sample);
    let (medium, traffic, valves, queues, watched) = thread::scope(|scope| {
        let medium = scope.spawn(|| ending(&over, || real_time.run(schedule, &over)));
        let traffic = scope.spawn(|| ending(&over, || flows.run(clock, schedule, &stations, samples, &over)));
        let valves = scope.spawn(|| ending(&over, || valves.run(&bell, clock, &over)));
        let queues = scope.spawn(|| ending(&over, || guest::queues::tell(&of_guest, &over)));
        let watched = ending(&over, || watch(&hosts, &laws, schedule, clock, options, running.as_mut(), &over));
        (joined(medium), joined(traffic), joined(valves), joined(queues), watched)
    });
    let radios = cell.as_mut().map(radios::Cell::report).transpose()?;
    let agents = agents.stop(clock, !options.stop.load(Ordering::Relaxed));
    let Watched { device_drops, links, ended } = watched?;
    let ended = ended.map(|(at, codes)| (at, running.take().expect("it has ended").end(codes)));
    drop(outside);
    let (medium, traffic) = (medium?, traffic?);
    valves?;
    queues?;
    if !medium.complete && ended.is_none() {
        return Ok(None);
    }
    let mut scenario = scenario.clone();
    let ended = ended.map(|(at, ended)| {
        scenario.duration = at.saturating_since(Time::ZERO);
        ended
    });
    if medium.unroutable > 0 {
        warn!("{} packets for addresses that no host has were not carried", medium.unroutable);
    }
    let build = options.build.clone();
    let wall = started.elapsed();
    let measured = Measured {
        scenario: &scenario,
        hosts: &specs,
        build,
        medium,
        traffic,
        agents,
        device_drops,
        held: stations.iter().map(Station::held).collect(),
        links: links.into_parts().0,
        radios,
        wall,
    };
    Ok(Some((measured.into_outcome(), ended)))
}

/// What a guest has of this machine, while it runs.
struct Outside {
    _netns: Option<Netns>,
    _internet: Option<Internet>,
}

impl Outside {
    fn open(guest: &Guest<'_>, hosts: &Hosts) -> Result<Self> {
        let host = &hosts.hosts()[usize::from(guest.programs[0].host)];
        let server = hosts.servers().last().expect("that of the guest");
        Ok(Self {
            _netns: guest.netns.map(|name| Netns::name(name, host)).transpose()?,
            _internet: guest.internet.then(|| Internet::open(server)).transpose()?,
        })
    }
}

/// Checks whether kernel hosts can run this scenario here, as far as possible without creating anything.
///
/// # Errors
/// - The scenario needs a feature of simulated hosts, or one that this traffic source lacks.
/// - The caller is not root, or the process may not open enough files.
/// - The kernel lacks a congestion control.
pub fn check(scenario: &Scenario, traffic: TrafficSource) -> Result<()> {
    check_scenario(scenario, traffic)?;
    check_machine(scenario).map_err(|error| error.located(scenario))
}

/// The part of [`check`] that does not depend on this machine.
///
/// # Errors
/// The scenario needs a feature of simulated hosts, or one that this traffic source lacks.
pub fn check_scenario(scenario: &Scenario, traffic: TrafficSource) -> Result<()> {
    check_keys(scenario, traffic).map_err(|error| error.located(scenario))
}

fn check_keys(scenario: &Scenario, traffic: TrafficSource) -> Result<()> {
    if let Some((key, what)) = simulated_only(scenario) {
        return Err(Error::Scenario { key, reason: format!("kernel hosts cannot run {what}; --hosts simulated can") });
    }
    for (block, host) in scenario.hosts.iter().enumerate() {
        let name = host.kind.kernel_congestion_control();
        if let Some(law) = LawName::for_the_kernel().find(|law| law.hears_reports() && law.kernel_name() == name) {
            let reason = format!(
                "\"{name}\" is what 'lasthop laws load' brings into this kernel, and servers of a \
                 run do not listen with it, so they would hear no report; \"{law}\" is the same law, for the run"
            );
            return Err(Error::Scenario { key: format!("hosts[{block}].congestion_control"), reason });
        }
    }
    for (block, host) in scenario.hosts.iter().enumerate() {
        if host.kind.law.is_some_and(|choice| matches!(choice.name, LawName::Own(_))) && laws::of(&host.kind).is_none()
        {
            let reason = format!(
                "the header {} says Simulated in its LH_LAW_ENTRY; for kernel hosts it says Everywhere",
                host.kind.congestion_control
            );
            return Err(Error::Scenario { key: format!("hosts[{block}].congestion_control"), reason });
        }
    }
    if traffic == TrafficSource::Iperf3 {
        iperf3::check(scenario)?;
    }
    Ok(())
}

fn check_machine(scenario: &Scenario) -> Result<()> {
    if !nix::unistd::geteuid().is_root() {
        let reason = "kernel hosts need root: they make network namespaces and TUN devices, and load eBPF programs";
        return Err(Error::Machine(reason.to_owned()));
    }
    let specs = scenario.expanded_hosts();
    let offered = traffic::offered_congestion_controls();
    for spec in &specs {
        let name = spec.kind.kernel_congestion_control();
        if laws::of(&spec.kind).is_some() {
            let doing = || format!("kernel hosts cannot have \"{name}\" here");
            lasthop_kernel::laws::check().map_err(|source| Error::Law { doing: doing(), source })?;
        } else if !offered.iter().any(|offered| offered == name) {
            let (offered, block) = (offered.join(", "), spec.block);
            let reason = format!(
                "this kernel has no \"{name}\"; accepted: {offered}, and laws of lasthop that are not for simulated hosts alone"
            );
            return Err(Error::Scenario { key: format!("hosts[{block}].congestion_control"), reason });
        }
    }
    let servers = Servers::of(scenario, &specs)?;
    // Per host or server: a namespace, a device, an rtnetlink socket, the agent's pipe and its configuration, a
    // valve's socket. Per flow: two ends.
    let needed = (6 * (specs.len() + servers.specs.len()) + 2 * servers.of_flow.len() + 50) as u64;
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).doing("cannot read RLIMIT_NOFILE")?;
    if most < needed {
        return Err(Error::Machine(format!(
            "this scenario needs {needed} open files, and this process may have {most}: raise it with 'ulimit -n'"
        )));
    }
    setrlimit(Resource::RLIMIT_NOFILE, most, most).doing("cannot raise RLIMIT_NOFILE")
}

/// The first key that needs a feature of simulated hosts alone, with its value.
fn simulated_only(scenario: &Scenario) -> Option<(String, String)> {
    let written = scenario.to_json();
    for (block, host) in scenario.hosts.iter().enumerate() {
        if let Err(Refused { switch, accepted }) = Stack::of(&host.kind) {
            let value = &written["hosts"][block]["tcp"][switch];
            let what = format!("a stack with {switch} = {value} (accepted: {accepted})");
            return Some((format!("hosts[{block}].tcp.{switch}"), what));
        }
        if host.kind.rts != Rts::Off {
            let what = "a station's own RTS threshold (accepted: \"off\", or simulated hosts)".to_owned();
            return Some((format!("hosts[{block}].rts"), what));
        }
        if host.kind.parts != Parts::ALL {
            let is_scaled = written["hosts"][block]["scaled"].as_str().is_some_and(|word| word != "none");
            let key = if is_scaled { "scaled" } else { "leave_out" };
            let what = format!("agents with another law than theirs (accepted: no {key})");
            return Some((format!("hosts[{block}].{key}"), what));
        }
        let least_s = lasthop_agent::LastLinkConfig::LEAST_VALIDITY_S;
        if host.kind.last_link.is_some_and(|link| link.validity < Span::from_secs(least_s.into())) {
            let value = &written["hosts"][block]["last_link"]["validity_s"];
            let what = format!("reports that hold for {value} s (accepted: {least_s} or more)");
            return Some((format!("hosts[{block}].last_link.validity_s"), what));
        }
        let follows = |spec: &HostSpec| {
            spec.block == block && spec.flows.iter().any(|flow| scenario.link_reports(spec, flow).len() > 1)
        };
        if scenario.expanded_hosts().iter().any(follows) {
            let what = "reports that follow [[changes]] (accepted: knowledge = \"measured\", or bandwidth_mbps and \
                        packet_error_rate)";
            return Some((format!("hosts[{block}].last_link"), what.to_owned()));
        }
        for (number, flow) in host.flows.iter().enumerate() {
            let key = |key: &str| format!("hosts[{block}].flows[{number}].{key}");
            let name = flow.kind.name();
            if !name.is_of_kernel_hosts() {
                let own_programs = match name.transport() {
                    Transport::Quic => ", but your own programs that speak it, by lasthop exec (docs/guide/exec.md)",
                    Transport::Tcp | Transport::Udp => "",
                };
                return Some((key("kind"), format!("\"{}\"{own_programs}", name.as_str())));
            }
            if let Some(packet) = flow.kind.packet().filter(|packet| packet.get() > tun::MTU as u64) {
                let what = format!("packets of {} bytes (accepted: up to {})", packet.get(), tun::MTU);
                return Some((key("packet_bytes"), what));
            }
        }
    }
    None
}

/// The flows of a run, from either source.
enum Flows<'a> {
    Own(Traffic<'a>),
    Iperf3(Iperf3<'a>),
}

impl<'a> Flows<'a> {
    fn prepare(source: TrafficSource, plans: Vec<FlowPlan>, hosts: &'a Hosts) -> Result<Self> {
        Ok(match source {
            TrafficSource::Own => Self::Own(Traffic::prepare(plans, hosts)?),
            TrafficSource::Iperf3 => Self::Iperf3(Iperf3::prepare(plans, hosts)?),
        })
    }

    fn run(
        self,
        clock: Clock,
        schedule: Schedule,
        stations: &[Station],
        samples: Samples<'_>,
        stop: &AtomicBool,
    ) -> Result<traffic::Report> {
        match self {
            Self::Own(traffic) => traffic.run(clock, schedule, stations, samples, stop),
            Self::Iperf3(traffic) => traffic.run(clock, schedule, stations, samples, stop),
        }
    }
}

/// The network of the scenario. Behind an access point, a station of era 2012 has its transmit queue in the kernel, and
/// a modern one in the model.
fn medium_config(scenario: &Scenario, specs: &[HostSpec]) -> lasthop_network::Config {
    let mut config = scenario.network().clone();
    if let Topology::AccessPoint { access, .. } = &config.topology {
        for (host, _) in config.hosts.iter_mut().zip(specs).filter(|(_, spec)| spec.kind.era == Era::Y2012) {
            host.queue_packets = ring_packets(access, host.standard);
        }
    }
    config
}

fn flow_plans(seed: u64, specs: &[HostSpec], servers: &Servers, laws: &Laws, aggregates: bool) -> Vec<FlowPlan> {
    let streams = Streams::new(seed);
    let flows = specs.iter().flat_map(|host| host.flows.iter().map(move |flow| (host, flow)));
    let plan = |((host, flow), &server): ((&HostSpec, &FlowSpec), &u16)| FlowPlan {
        spec: flow.clone(),
        application: Application::new(
            flow.kind.clone(),
            flow.start,
            flow.stop,
            streams.stream(&format!("traffic/host-{}/flow-{}", host.number, flow.number)),
        ),
        server,
        ends: [usize::from(host.index), specs.len() + usize::from(server)],
        congestion_control: laws.name(&host.kind).to_owned(),
        hears: laws::hears(&host.kind).is_some(),
        options: hosts::stack_of(&host.kind).sockets,
        over_aggregates: aggregates,
    };
    flows.zip(&servers.of_flow).map(plan).collect()
}

/// Observations during a run.
struct Watched {
    /// After the warm-up, with a resolution of [`WATCH_EVERY`].
    device_drops: DeviceDrops,
    /// The state that servers' laws derived from clients' reports, every [`LINKS_EVERY`].
    links: Kept<LinkSample>,
    /// When the guest ended, and its exit codes.
    ended: Option<(Time, Vec<i32>)>,
}

/// Watches over a run: starts its guest and ends the run with it, reports progress, ends it on request,
/// counts device drops, and samples the laws.
fn watch(
    hosts: &Hosts,
    laws: &Laws,
    schedule: Schedule,
    clock: Clock,
    options: &Options<'_>,
    mut guest: Option<&mut guest::Running<'_>>,
    over: &AtomicBool,
) -> Result<Watched> {
    let mut ended = None;
    let warm = Time::ZERO + schedule.warmup;
    let mut in_warmup = schedule.warmup.is_zero().then(DeviceDrops::default);
    let mut told = Time::ZERO;
    let mut links = Kept::new(|sample: &LinkSample| sample.at, LINKS_EVERY, schedule.has_end());
    let mut looked = None::<Time>;
    while !over.load(Ordering::Relaxed) {
        thread::sleep(WATCH_EVERY);
        let now = clock.now();
        let guest_runs = guest.as_ref().is_some_and(|guest| guest.has_begun());
        if options.stop.load(Ordering::Relaxed) && !guest_runs {
            over.store(true, Ordering::Relaxed);
        }
        if let Some(guest) = &mut guest {
            if !guest_runs && now >= warm {
                (options.progress)(schedule.warmup);
                guest.begin(hosts.hosts())?;
            }
            if let Some(codes) = guest.look()? {
                ended = Some((now, codes));
                over.store(true, Ordering::Relaxed);
            }
        }
        if in_warmup.is_none() && now >= warm {
            in_warmup = Some(hosts.device_drops()?);
        }
        if looked.is_none_or(|looked| now.saturating_since(looked) >= LINKS_EVERY) {
            looked = Some(now);
            laws.sample(now, &mut links)?;
        }
        if now.saturating_since(told) >= Span::from_millis(100) {
            told = now;
            (options.progress)(now.saturating_since(Time::ZERO).min(schedule.end));
        }
    }
    let (all, in_warmup) = (hosts.device_drops()?, in_warmup.unwrap_or_default());
    Ok(Watched { device_drops: all.since(in_warmup)?, links, ended })
}

/// Runs one thread's work. Its end, even by a panic, ends the others.
fn ending<T>(over: &AtomicBool, work: impl FnOnce() -> T) -> T {
    struct Over<'a>(&'a AtomicBool);
    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let _over = Over(over);
    work()
}

fn joined<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_simulated_hosts_can_do_is_refused_by_its_key() {
        for (line, said) in [
            (
                "kind = \"ping\"\npacket_bytes = 2000",
                "hosts[1].flows[1].packet_bytes: kernel hosts cannot run packets of 2000 bytes",
            ),
            ("kind = \"saturated\"", "hosts[1].flows[1].kind: kernel hosts cannot run \"saturated\""),
            (
                "kind = \"quic\"",
                "hosts[1].flows[1].kind: kernel hosts cannot run \"quic\", but your own programs that speak it, by lasthop exec",
            ),
        ] {
            assert_refused(&format!("[[hosts]]\n[[hosts]]\n[[hosts.flows]]\n[[hosts.flows]]\n{line}\n"), said);
        }
        let changing = "[[changes]]\nat_s = 3\nhosts = [1]\nrate_mbps = 6\n[[hosts]]\n[[hosts]]\n[hosts.last_link]\nreport = true\n";
        assert_refused(changing, "hosts[1].last_link: kernel hosts cannot run reports that follow [[changes]]");
        let short = "[[hosts]]\n[[hosts]]\n[hosts.last_link]\nreport = true\nvalidity_s = 7\n";
        assert_refused(short, "hosts[1].last_link.validity_s: kernel hosts cannot run reports that hold for 7 s");
        let part = "[[hosts]]\npolicy = \"lasthop\"\nleave_out = \"edge\"\n";
        assert_refused(part, "hosts[0].leave_out: kernel hosts cannot run agents with another law than theirs");
        let scales_none = format!("{part}scaled = \"none\"\n");
        assert_refused(&scales_none, "hosts[0].leave_out: kernel hosts cannot run agents with another law than theirs");
        let radio = "[access]\nkind = \"wifi\"\n[[hosts]]\npolicy = \"lasthop\"\nrts = \"auto\"\n";
        assert_refused(
            radio,
            "hosts[0].rts: kernel hosts cannot run a station's own RTS threshold (accepted: \"off\", or",
        );
        let switch = "[[hosts]]\n[[hosts]]\n[hosts.tcp]\nsack = false\nundo = false\n";
        assert_refused(switch, "hosts[1].tcp.undo: kernel hosts cannot run a stack with undo = false");
    }

    fn assert_refused(text: &str, said: &str) {
        let scenario = Scenario::from_toml("x.toml", text, &[]).expect("a scenario");
        let message = check(&scenario, TrafficSource::Own).expect_err(said).to_string();
        let begins = message.starts_with("x.toml:") && message.contains(&format!(": {said}"));
        assert!(begins && message.ends_with("--hosts simulated can"), "{message}");
    }

    #[test]
    fn a_law_that_servers_would_not_listen_with_is_refused_with_the_one_that_is_meant() {
        let text = "[[hosts]]\n[[hosts]]\ncongestion_control = \"lh_lastlink\"\n[[hosts.flows]]\n";
        let scenario = Scenario::from_toml("x.toml", text, &[]).expect("a scenario");
        let message = check(&scenario, TrafficSource::Own).expect_err("nobody would hear").to_string();
        assert!(message.starts_with("x.toml:3: hosts[1].congestion_control: \"lh_lastlink\""), "{message}");
        assert!(message.contains("\"lastlink\" is the same law"), "{message}");
    }

    /// Why [`Grain::CHOSEN`] is what it is. To be read, on a quiet machine:
    /// `cargo test --release -p lasthop-lab -- --ignored --nocapture the_cost_of_each_grain`
    #[test]
    #[ignore = "prints a table in two minutes"]
    fn the_cost_of_each_grain() {
        use nix::sys::resource::{UsageWho, getrusage};
        use nix::sys::time::TimeValLike as _;

        const SECONDS: u32 = 10;
        let text = format!(
            "duration_s = {SECONDS}\nwarmup_s = 4\n[access]\nstandard = \"802.11ac\"\nqueue_packets = 256\n\
             [path]\nrtt_ms = 20\n[[hosts]]\ncount = 10\nera = \"modern\"\n[hosts.tcp]\ntsq_pacing_shift = 7\n\
             [[hosts.flows]]\nstart_s = [0, 2]\n"
        );
        let scenario = Scenario::from_toml("grain.toml", &text, &[]).expect("a scenario");
        let cpu_ms = || {
            let usage = getrusage(UsageWho::RUSAGE_SELF).expect("of this process");
            (usage.user_time() + usage.system_time()).num_milliseconds()
        };
        let chosen = Grain::CHOSEN;
        let moderations = [1, 20, 50, 100, 200].map(|us| Grain { moderation: Span::from_micros(us), ..chosen });
        let ticks = [250, 500, 2000, 4000].map(|us| Grain { tick: Span::from_micros(us), ..chosen });
        let packets = [1, 4, 8].map(|tcp_segments| Grain { tcp_segments, ..chosen });
        println!("| sleep us | tick us | segments | cores | Mb/s | RTT ms | packets each time | late us |");
        println!("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
        for grain in moderations.iter().chain(&ticks).chain(&packets) {
            let (before, stop) = (cpu_ms(), AtomicBool::new(false));
            let build = Build { version: String::new(), commit: None, dirty: false };
            let options = Options {
                traffic: TrafficSource::Own,
                build,
                stop: &stop,
                progress: &|_| {},
                on_sample: None,
                capture: None,
                records: None,
                radios: false,
                linux_queue: false,
            };
            let ((result, _), _) =
                run_in_steps(&scenario, &options, None, grain).expect("root").expect("it is not stopped");
            let cores = (cpu_ms() - before) as f64 / f64::from(1000 * SECONDS);
            let frames = result.access.stations.iter().filter_map(|station| station.up_aggregate_frames);
            println!(
                "| {} | {} | {} | {cores:.2} | {:.0} | {:.0} | {:.0} | {} |",
                grain.moderation.as_micros(),
                grain.tick.as_micros(),
                grain.tcp_segments,
                result.aggregate_goodput_mbps,
                result.rtt_ms.map_or(f64::NAN, |rtt| rtt.p50),
                frames.sum::<f64>() / 10.0,
                result.lateness_us.map_or(f64::NAN, |late| late.p99),
            );
        }
    }

    #[test]
    fn what_iperf3_does_not_know_is_refused_before_anything_is_made() {
        for (lines, said) in [
            ("[[hosts.flows]]\nstop_s = 5", "hosts[0].flows[0].stop_s"),
            ("[[hosts.flows]]\n[[hosts.flows]]\ntransfer_kib = 64", "hosts[0].flows[1].transfer_kib"),
            ("[hosts.tcp]\nnagle = false\n[[hosts.flows]]", "hosts[0].tcp: "),
            ("congestion_control = \"lastlink\"\n[[hosts.flows]]", "hosts[0].congestion_control"),
        ] {
            let text = format!("[[hosts]]\n{lines}\n");
            let scenario = Scenario::from_toml("x.toml", &text, &[]).expect("a scenario");
            let message = check(&scenario, TrafficSource::Iperf3).expect_err(said).to_string();
            assert!(message.contains(&format!(": {said}")) && message.ends_with("--traffic own can"), "{message}");
        }
    }

    #[test]
    fn bulk_flows_are_for_both_kinds_of_hosts_and_so_are_links() {
        let text = "[[hosts]]\n[[hosts.flows]]\nstart_s = [0, 2]\nstop_s = 5\n\
                    [[hosts.flows]]\ndirection = \"down\"\ntransfer_kib = 64\n";
        let scenario = Scenario::from_toml("x.toml", text, &[]).expect("a scenario");
        assert_eq!(simulated_only(&scenario), None);
        let text = "[[links]]\nbetween = [\"A\", \"B\"]\n[[hosts]]\nnode = \"A\"\n[[hosts.flows]]\nto = \"B\"\n";
        let scenario = Scenario::from_toml("x.toml", text, &[]).expect("a scenario");
        assert_eq!(simulated_only(&scenario), None);
    }
}
