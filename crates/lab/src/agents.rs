//! The agents: the same `lasthop agent` that a user installs, one process in each host's namespace.
//!
//! An agent reads its configuration from a file in memory and writes its record to a pipe. It dies with the laboratory
//! in every case (PR_SET_PDEATHSIG); see [`crate::process`].

use crate::addresses::flow_of_port;
use crate::clock::Clock;
use crate::error::{Doing, Error, Result};
use crate::namespace::Namespace;
use crate::process::Process;
use crate::tun::INTERFACE;
use lasthop_files::Whole;
use lasthop_measure::Interval;
use lasthop_policy::PolicyName;
use lasthop_scenario::{AgentMode, HostSpec, Knowledge, Scenario};
use lasthop_status::record::{Beacons, Event, ProgramTotals, RECORD, Tick};
use lasthop_units::{Probability, Rate, Span, Time};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The time limit for an agent to load its programs on a busy machine.
const READY_WITHIN: Duration = Duration::from_secs(120);
/// The number of agents loading their programs in parallel. More would only compete for the cores.
const AT_ONCE: usize = 4;
/// The time limit for an agent to restore the sockets and stop on a busy machine.
const STOPPED_WITHIN: Duration = Duration::from_secs(30);

/// The record of one agent.
#[derive(Clone, Debug, Default)]
pub(crate) struct AgentReport {
    pub(crate) host: u16,
    pub(crate) policy: String,
    /// The limits of a host's end of each flow, in order of time.
    pub(crate) bounds: Vec<(usize, Interval)>,
    pub(crate) beacons: Beacons,
    pub(crate) terminals_max: u32,
    pub(crate) enabled_at: Option<Time>,
    pub(crate) bounds_changed: u64,
    /// The greatest lateness of a decision.
    pub(crate) late: Span,
    /// The time of its stop, by its own report.
    pub(crate) stopped: Option<Time>,
    /// The program of the policy `external`.
    pub(crate) program: Option<ProgramTotals>,
    /// The error, if it failed.
    pub(crate) failed: Option<String>,
}

/// A folder for what the agents of a run record, a file HOST.jsonl each.
#[derive(Clone, Debug)]
pub struct Records {
    folder: PathBuf,
    outcome: Arc<Mutex<RecordsKept>>,
}

/// What has become of records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordsKept {
    /// How many files were written to their end.
    pub kept: usize,
    /// Of each other one: its path, and why.
    pub lost: Vec<String>,
}

impl Records {
    /// In this folder, which must exist.
    pub fn in_folder(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), outcome: Arc::default() }
    }

    /// Of all runs that were given these.
    pub fn kept(&self) -> RecordsKept {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A file that keeps what an agent records.
struct Record {
    path: PathBuf,
    outcome: Arc<Mutex<RecordsKept>>,
    lines: BufWriter<File>,
    file: Whole,
    /// Whether the run came to its end: one that was interrupted replaces no earlier record.
    is_whole: Arc<AtomicBool>,
}

impl Record {
    fn create(records: &Records, host: &str, is_whole: &Arc<AtomicBool>) -> Result<Self> {
        let path = records.folder.join(format!("{host}.jsonl"));
        let cannot = format!("cannot write the record {}", path.display());
        let begun = Whole::begin(&path, Some(&RECORD));
        let (is_whole, outcome) = (Arc::clone(is_whole), Arc::clone(&records.outcome));
        let record = begun.and_then(|file| {
            Ok(Self { path, outcome, lines: BufWriter::new(file.file().try_clone()?), file, is_whole })
        });
        record.doing(cannot)
    }

    fn write(&mut self, line: &str) -> std::io::Result<()> {
        writeln!(self.lines, "{line}")
    }

    /// The agent has ended. `written`: whether all of its lines were.
    fn finish(mut self, written: std::io::Result<()>) {
        let keeps = self.is_whole.load(Ordering::Relaxed) || !self.file.replaces();
        let put = written
            .and_then(|()| self.lines.flush())
            .and_then(|()| if keeps { self.file.put_in_place() } else { Ok(()) });
        let mut outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        match put {
            Ok(()) => outcome.kept += usize::from(keeps),
            Err(error) => outcome.lost.push(format!("{}: {error}", self.path.display())),
        }
    }
}

/// All agents of a run.
pub(crate) struct Agents {
    agents: Vec<Running>,
    is_whole: Arc<AtomicBool>,
}

struct Running {
    host: u16,
    policy: PolicyName,
    /// Whether it should bound windows.
    controls: bool,
    process: Process,
    lines: Receiver<String>,
    ready_by: Instant,
    /// The missing capability, if it should control and cannot.
    lesser: Option<String>,
}

impl Agents {
    /// Starts the agents of all hosts, a few at a time, and waits until each is ready. `None` if `stop` is set before
    /// that.
    ///
    /// # Errors
    /// If an agent does not become ready. It has given the reason on standard error.
    pub(crate) fn start(
        scenario: &Scenario,
        hosts: &[HostSpec],
        namespaces: &[Namespace],
        records: Option<&Records>,
        stop: &AtomicBool,
    ) -> Result<Option<Self>> {
        let names = scenario.host_names();
        let with_agent = hosts.iter().zip(namespaces).filter(|(host, _)| has_agent(host));
        let mut agents: Vec<Running> = Vec::new();
        let mut ready = 0;
        let is_whole = Arc::default();
        for (host, namespace) in with_agent {
            let record = |records| Record::create(records, &names[usize::from(host.index)], &is_whole);
            let record = records.map(record).transpose()?;
            agents.push(Running::spawn(scenario, host, namespace, record)?);
            while agents.len() - ready >= AT_ONCE {
                if !agents[ready].wait_until_ready(stop)? {
                    return Ok(None);
                }
                ready += 1;
            }
        }
        for agent in &mut agents[ready..] {
            if !agent.wait_until_ready(stop)? {
                return Ok(None);
            }
        }
        Ok(Some(Self { agents, is_whole }))
    }

    /// Stops the agents properly and reads their records. `is_whole`: the run has come to its end.
    pub(crate) fn stop(self, clock: Clock, is_whole: bool) -> Vec<AgentReport> {
        self.is_whole.store(is_whole, Ordering::Relaxed);
        for agent in &self.agents {
            let _ = kill(Pid::from_raw(agent.process.0.id() as i32), Signal::SIGTERM);
        }
        self.agents.into_iter().map(|agent| agent.finish(clock)).collect()
    }
}

impl Running {
    fn spawn(scenario: &Scenario, host: &HostSpec, namespace: &Namespace, mut record: Option<Record>) -> Result<Self> {
        let config = config_file(scenario, host)?;
        // This same program, even if its file has been replaced since.
        let mut command = Command::new("/proc/self/exe");
        command.arg0("lasthop");
        // The child has the descriptor under the same number.
        let config_path = format!("/proc/self/fd/{}", config.as_raw_fd());
        command.args(["agent", "--config", &config_path, "--interface", INTERFACE, "--record", "-", "--no-status"]);
        if std::env::var_os("RUST_LOG").is_none() {
            // Twenty agents share one terminal, so only warnings appear. Their decisions are in the record.
            command.env("RUST_LOG", "warn");
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut process = Process::spawn(command, namespace, &[config.as_raw_fd()])
            .doing(format_args!("cannot start the agent of host {}", host.index))?;
        let stdout = process.0.stdout.take().expect("the agent's standard output is a pipe");
        let (send, lines) = channel();
        thread::spawn(move || {
            let mut written = Ok(());
            for line in BufReader::new(stdout).lines().map_while(|line| line.ok()) {
                written = written.and_then(|()| record.as_mut().map_or(Ok(()), |record| record.write(&line)));
                if send.send(line).is_err() {
                    break;
                }
            }
            // Written before the channel closes, at which the run is over.
            if let Some(record) = record {
                record.finish(written);
            }
            drop(send);
        });
        let policy = host.kind.policy.policy;
        // With nothing to control, an agent only observes.
        let controls = controls(host);
        let ready_by = Instant::now() + READY_WITHIN;
        Ok(Self { host: host.index, policy, controls, process, lines, ready_by, lesser: None })
    }

    /// Returns `false` if `stop` is set before the agent is ready.
    fn wait_until_ready(&mut self, stop: &AtomicBool) -> Result<bool> {
        let host = self.host;
        let line = loop {
            match self.lines.recv_timeout(Duration::from_millis(100)) {
                Ok(line) => break line,
                Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) => return Ok(false),
                Err(RecvTimeoutError::Timeout) if Instant::now() < self.ready_by => {}
                Err(RecvTimeoutError::Timeout) => {
                    return Err(Error::Child(format!(
                        "the agent of host {host} was not ready within {READY_WITHIN:?}"
                    )));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let status = self.process.0.wait().doing("cannot wait for an agent")?;
                    let what = format!("the agent of host {host} did not start ({status}); its own message is above");
                    return Err(Error::Child(what));
                }
            }
        };
        match serde_json::from_str(&line) {
            Ok(Event::Ready(ready)) => {
                if self.controls && ready.mode != lasthop_agent::Mode::Control {
                    self.lesser = Some(format!("could only {} on this kernel (see 'lasthop doctor')", ready.mode));
                } else if self.controls && ready.congestion_control.is_none() {
                    self.lesser = Some("could only clamp windows on this kernel (see 'lasthop doctor')".to_owned());
                }
                Ok(true)
            }
            _ => Err(Error::Child(format!("the agent of host {host} began its record with {line}"))),
        }
    }

    fn finish(mut self, clock: Clock) -> AgentReport {
        let policy = self.policy.as_str().to_owned();
        let mut report = AgentReport { host: self.host, policy, failed: self.lesser.take(), ..AgentReport::default() };
        let deadline = Instant::now() + STOPPED_WITHIN;
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => match serde_json::from_str(&line) {
                    Ok(event) => report.add(event, clock),
                    Err(error) => report.failed = Some(format!("wrote a line that is no record ({error}): {line}")),
                },
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    report.failed = Some(format!("did not stop within {STOPPED_WITHIN:?} and was killed"));
                    let _ = self.process.0.kill();
                    break;
                }
            }
        }
        match self.process.0.wait() {
            Ok(status) if report.stopped.is_none() && report.failed.is_none() => {
                report.failed = Some(format!("ended before the run did ({status})"));
            }
            Ok(_) => {}
            Err(error) => report.failed = Some(format!("cannot be waited for: {error}")),
        }
        report
    }
}

/// Whether the host has an agent: to decide, to observe, or only to report the host's last link.
/// Whether an agent takes over the host's connections.
pub(crate) fn controls(host: &HostSpec) -> bool {
    host.kind.agent == AgentMode::Control && host.kind.policy.policy != PolicyName::None
}

fn has_agent(host: &HostSpec) -> bool {
    host.kind.agent != AgentMode::Off || host.kind.last_link.is_some()
}

/// Refuses a run with more agents than this machine has room for.
///
/// # Errors
/// If there are more than Linux allows, with the numbers.
pub(crate) fn check_room(scenario: &Scenario, hosts: &[HostSpec]) -> Result<()> {
    let wanted: usize = hosts.iter().map(|host| programs(scenario, host)).sum();
    if let Some(room) = lasthop_kernel::room_for_agents()
        && wanted > room
    {
        return Err(Error::Machine(format!(
            "the agents of this run would attach {wanted} programs to the root of the cgroups, one for each host that controls and one \
             for each that reports its last link, and there is room for {room}: Linux allows 64 there, other agents on this \
             machine included. Let fewer hosts have an agent, or use simulated hosts (--hosts simulated)"
        )));
    }
    Ok(())
}

/// The number of programs that the host's agent attaches to the root cgroup.
fn programs(scenario: &Scenario, host: &HostSpec) -> usize {
    usize::from(controls(host)) + usize::from(has_agent(host) && last_link(scenario, host).report)
}

/// The agent's reports of the host's last link: a simulated host's values, or measured ones.
fn last_link(scenario: &Scenario, host: &HostSpec) -> lasthop_agent::LastLinkConfig {
    let (Some(link), Some(flow)) = (host.kind.last_link, host.flows.first()) else {
        return lasthop_agent::LastLinkConfig::default();
    };
    let measure = link.knowledge == Knowledge::Measured;
    let said = scenario.link_reports(host, flow).first().map(|(_, report)| *report);
    let bandwidth_mbps = said.and_then(|report| report.bandwidth).map(Rate::as_mbps);
    let packet_error_rate = said.and_then(|report| report.error_rate).map(Probability::get);
    lasthop_agent::LastLinkConfig {
        report: measure || bandwidth_mbps.is_some() || packet_error_rate.is_some(),
        bandwidth_mbps,
        packet_error_rate,
        measure,
        validity_s: u32::try_from(link.validity.as_millis() / 1000).expect("a checked validity is at most 32,768 s"),
        ..lasthop_agent::LastLinkConfig::default()
    }
}

/// The agent's configuration in an unnamed file.
fn config_file(scenario: &Scenario, host: &HostSpec) -> Result<File> {
    let config = lasthop_agent::Config {
        interface: Some(INTERFACE.to_owned()),
        mode: match host.kind.agent {
            // With `Off`, it only reports the last link.
            AgentMode::Off | AgentMode::Observe => lasthop_agent::Mode::Observe,
            AgentMode::Advise => lasthop_agent::Mode::Advise,
            AgentMode::Control => lasthop_agent::Mode::Control,
        },
        // The hosts have IPv4 only.
        beacon: lasthop_agent::BeaconConfig { ipv6: false, ..lasthop_agent::BeaconConfig::default() },
        last_link: last_link(scenario, host),
        policy: host.kind.policy.clone(),
        // The agent is alone in its namespace, and the laboratory leaves no file.
        lock: false,
        // The traffic's sockets choose the scenario's congestion control.
        take_chosen: true,
        ..lasthop_agent::Config::default()
    };
    let file = memfd_create(c"lasthop-agent.toml", MFdFlags::MFD_CLOEXEC).doing("cannot make a file in memory")?;
    let mut file = File::from(file);
    let text = toml::to_string(&config).expect("keys with plain values");
    file.write_all(text.as_bytes()).doing("cannot write an agent's configuration")?;
    Ok(file)
}

impl AgentReport {
    /// The maximum valid lateness of a decision. A later agent has let the bounds of its previous decision expire.
    pub(crate) fn late_most() -> Span {
        let config = lasthop_agent::Config::default(); // config_file() keeps its lease and tick
        config.lease() - config.tick()
    }

    /// Adds one line of the record.
    fn add(&mut self, event: Event, clock: Clock) {
        match event {
            Event::Ready(_) | Event::State(_) | Event::Joined(_) | Event::LastLink(_) => {}
            Event::Hello(_) | Event::Observation(_) | Event::Decision(_) => {}
            Event::Tick(tick) => self.add_tick(&tick, clock),
            Event::Stopped(totals) => {
                self.stopped = Some(clock.at_monotonic_ns(totals.t_ns));
                if totals.lines_left_out > 0 {
                    self.failed = Some(format!("left {} lines out of its record", totals.lines_left_out));
                }
                if let Some(program) = totals.program.filter(|program| program.failures > 0) {
                    self.failed = Some(format!("its policy's program failed, and bounded nothing then: {program}"));
                }
                self.program = totals.program;
                self.bounds_changed = totals.bounds_changed;
                self.beacons = totals.beacons;
            }
        }
    }

    fn add_tick(&mut self, tick: &Tick, clock: Clock) {
        let from = clock.at_monotonic_ns(tick.t_ns);
        self.beacons = tick.beacons;
        self.terminals_max = self.terminals_max.max(tick.terminals);
        if from > Time::ZERO {
            // Before the run starts, agents that load their programs delay each other.
            self.late = self.late.max(Span::from_nanos(tick.late_ns));
        }
        for flow in &tick.flows {
            let local = flow.local.parse::<SocketAddr>().ok();
            let Some(number) = local.and_then(|local| flow_of_port(local.port())) else {
                continue;
            };
            if let (Some(enabled_ns), Some(_)) = (flow.enabled_at_ns, flow.bound) {
                let enabled = clock.at_monotonic_ns(enabled_ns);
                self.enabled_at = Some(self.enabled_at.map_or(enabled, |earlier| earlier.min(enabled)));
            }
            let until = flow.bound_until_ns.map_or(from, |until_ns| clock.at_monotonic_ns(until_ns));
            self.bounds.push((number, Interval { from, until, bound: flow.bound.unwrap_or_default() }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_laws::bound::Bound;

    fn tick(t_ns: u64, port: u16, bound: &str, until: &str, enabled: &str) -> Event {
        let line = format!(
            r#"{{"event":"tick","t_ns":{t_ns},"late_ns":{t_ns},"terminals":4,
            "beacons":{{"sent":3,"unsent":0,"heard":9,"rejected":1}},
            "flows":[{{"cookie":1,"local":"10.77.0.1:{port}","remote":"10.78.0.1:5001","congestion_control":"lasthop",
            "controlled":true,"srtt_us":300000,"min_rtt_us":256000,"cwnd_segments":48,"ssthresh_segments":null,
            "state":"Open","in_flight_segments":48,"unsent_bytes":1,"retransmits":0,"delivery_rate_mbps":null,
            "acked_bytes":1,"received_bytes":1,"receive_rtt_us":null,"mss_bytes":1448,"busy":true,"bound":{bound},"bound_until_ns":{until},"advised":null,
            "enabled":true,"enabled_at_ns":{enabled},"reason":"share"}}]}}"#
        );
        serde_json::from_str(&line).expect("a line of the agent's record")
    }

    #[test]
    fn a_record_becomes_limits_over_time() {
        let clock = Clock::started_at_monotonic_ns(1_000);
        let mut report = AgentReport::default();
        let bound = r#"{"min_segments":1,"max_segments":48,"max_pacing_mbps":2.5,"max_receive_bytes":43440}"#;
        report.add(tick(3_000, 10_007, bound, "9000", "2500"), clock);
        report.add(tick(6_000, 10_007, "null", "null", "2500"), clock);
        // A connection that is not one of the laboratory's flows.
        report.add(tick(6_500, 443, bound, "9000", "2000"), clock);
        let at = Time::from_nanos;
        let bound = Bound { max_pacing_rate: Rate::from_mbps(2.5), max_receive_bytes: 43_440, ..Bound::at_most(48) };
        let limits = Interval { from: at(2_000), until: at(8_000), bound };
        let none = Interval { from: at(5_000), until: at(5_000), bound: Bound::default() };
        assert_eq!(report.bounds, [(7, limits), (7, none)]);
        assert_eq!(report.enabled_at, Some(at(1_500)));
        assert_eq!((report.terminals_max, report.beacons.heard), (4, 9));
        assert_eq!(report.late, Span::from_nanos(6_500));
    }

    #[test]
    fn an_agent_may_be_a_second_late() {
        // A lease of 1.5 s, and a decision every 0.5 s.
        assert_eq!(AgentReport::late_most(), Span::from_secs(1));
    }

    #[test]
    fn a_decision_that_was_only_advised_is_no_control() {
        let clock = Clock::started_at_monotonic_ns(0);
        let mut report = AgentReport::default();
        report.add(tick(3_000, 10_000, "null", "null", "2500"), clock);
        assert_eq!(report.enabled_at, None);
    }
}
