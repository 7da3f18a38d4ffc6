//! The agents: the same `lasthop agent` that a user installs, one process in each host's namespace.
//!
//! An agent gets its configuration from a file in memory and writes its record to a pipe. It dies with the laboratory
//! (PR_SET_PDEATHSIG), whatever ends that.

use crate::bounds::Interval;
use crate::clock::Clock;
use crate::namespace::Namespace;
use crate::traffic::flow_of_port;
use crate::tun::INTERFACE;
use agent::record::{Beacons, Event, Tick};
use anyhow::{Context, Result, bail};
use nix::sched::{CloneFlags, setns};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use scenario::{AgentMode, HostSpec};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};
use units::Time;

/// How long an agent may take to load its programs, on a machine that starts twenty of them at once.
const READY_WITHIN: Duration = Duration::from_secs(30);
/// How long an agent may take to put the sockets back and stop.
const STOPPED_WITHIN: Duration = Duration::from_secs(5);

/// What one agent did.
#[derive(Clone, Debug, Default)]
pub(crate) struct AgentReport {
    pub(crate) host: u16,
    pub(crate) policy: String,
    /// Limits by flow, in the order of time.
    pub(crate) intervals: Vec<(usize, Interval)>,
    pub(crate) beacons: Beacons,
    pub(crate) terminals_max: u32,
    pub(crate) enabled_at: Option<Time>,
    pub(crate) bounds_changed: u64,
    /// When it said that it had stopped.
    pub(crate) stopped: Option<Time>,
    /// How it failed, if it did.
    pub(crate) failed: Option<String>,
}

/// All agents of a run.
pub(crate) struct Agents {
    agents: Vec<Running>,
}

struct Running {
    host: u16,
    policy: String,
    process: Child,
    lines: Receiver<String>,
}

impl Agents {
    /// Starts the agents of all hosts that have one, and waits until each says that it is ready.
    ///
    /// # Errors
    /// If one does not; the message carries what it said.
    pub(crate) fn start(executable: &Path, hosts: &[HostSpec], namespaces: &[Namespace]) -> Result<Self> {
        let with_agent = hosts.iter().zip(namespaces).filter(|(host, _)| host.kind.agent != AgentMode::Off);
        let agents = with_agent.map(|(host, namespace)| Running::spawn(executable, host, namespace));
        let mut agents = Self { agents: agents.collect::<Result<_>>()? };
        for agent in &mut agents.agents {
            agent.wait_until_ready()?;
        }
        Ok(agents)
    }

    /// Stops the agents in order and reads what they recorded.
    pub(crate) fn stop(self, clock: Clock) -> Vec<AgentReport> {
        for agent in &self.agents {
            let _ = kill(Pid::from_raw(agent.process.id() as i32), Signal::SIGTERM);
        }
        self.agents.into_iter().map(|agent| agent.finish(clock)).collect()
    }
}

impl Running {
    fn spawn(executable: &Path, host: &HostSpec, namespace: &Namespace) -> Result<Self> {
        let config = config_file(host)?;
        // The number is the same in the child, where the file is open too.
        let config_path = format!("/proc/self/fd/{}", config.as_raw_fd());
        let (namespace_fd, config_fd) = (namespace.as_fd().as_raw_fd(), config.as_raw_fd());
        let mut command = Command::new(executable);
        command.args(["agent", "--config", &config_path, "--interface", INTERFACE, "--record", "-"]);
        if std::env::var_os("RUST_LOG").is_none() {
            // Twenty agents on one terminal: only what must be looked at. What they decide is in the record.
            command.env("RUST_LOG", "warn");
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        // SAFETY: between fork and exec only system calls that are async-signal-safe: fcntl, prctl, setns.
        unsafe {
            command.pre_exec(move || {
                use std::os::fd::BorrowedFd;
                set_pdeathsig(Signal::SIGKILL)?;
                setns(BorrowedFd::borrow_raw(namespace_fd), CloneFlags::CLONE_NEWNET)?;
                nix::fcntl::fcntl(
                    BorrowedFd::borrow_raw(config_fd),
                    nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::empty()),
                )?;
                Ok(())
            });
        }
        let mut process = command.spawn().with_context(|| format!("cannot start the agent of host {}", host.index))?;
        let stdout = process.stdout.take().expect("the agent's standard output is a pipe");
        let (send, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(|line| line.ok()) {
                if send.send(line).is_err() {
                    break;
                }
            }
        });
        let policy = host.kind.policy.policy.as_str().to_owned();
        Ok(Self { host: host.index, policy, process, lines })
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        let deadline = Instant::now() + READY_WITHIN;
        match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => {
                let event: Event = serde_json::from_str(&line)
                    .with_context(|| format!("the agent of host {} wrote no record: {line}", self.host))?;
                if !matches!(event, Event::Ready(_)) {
                    bail!("the agent of host {} began its record with {line}", self.host);
                }
                Ok(())
            }
            Err(RecvTimeoutError::Timeout) => {
                bail!("the agent of host {} was not ready within {READY_WITHIN:?}", self.host)
            }
            Err(RecvTimeoutError::Disconnected) => {
                let status = self.process.wait().context("cannot wait for an agent")?;
                bail!("the agent of host {} did not start ({status}); its own message is above", self.host)
            }
        }
    }

    fn finish(mut self, clock: Clock) -> AgentReport {
        let mut report = AgentReport { host: self.host, policy: self.policy.clone(), ..AgentReport::default() };
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
                    let _ = self.process.kill();
                    break;
                }
            }
        }
        match self.process.wait() {
            Ok(status) if report.stopped.is_none() && report.failed.is_none() => {
                report.failed = Some(format!("ended before the run did ({status})"));
            }
            Ok(_) => {}
            Err(error) => report.failed = Some(format!("cannot be waited for: {error}")),
        }
        report
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // After `finish` the process is reaped and this does nothing; on an error path nobody else stops it.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The agent's configuration in a file without a name.
fn config_file(host: &HostSpec) -> Result<File> {
    let config = agent::Config {
        interface: Some(INTERFACE.to_owned()),
        mode: match host.kind.agent {
            AgentMode::Off => unreachable!("a host without an agent has no configuration for one"),
            AgentMode::Observe => agent::Mode::Observe,
            AgentMode::Advise => agent::Mode::Advise,
            AgentMode::Control => agent::Mode::Control,
        },
        // The hosts have IPv4 only.
        beacon: agent::BeaconConfig { ipv6: false, ..agent::BeaconConfig::default() },
        policy: host.kind.policy.clone(),
        ..agent::Config::default()
    };
    let file = memfd_create(c"lasthop-agent.toml", MFdFlags::MFD_CLOEXEC).context("cannot make a file in memory")?;
    let mut file = File::from(file);
    file.write_all(toml::to_string(&config)?.as_bytes()).context("cannot write an agent's configuration")?;
    Ok(file)
}

impl AgentReport {
    /// Takes in one line of the record.
    fn add(&mut self, event: Event, clock: Clock) {
        match event {
            Event::Ready(_) | Event::State(_) => {}
            Event::Tick(tick) => self.add_tick(&tick, clock),
            Event::Stopped(totals) => {
                self.stopped = Some(clock.at_monotonic_ns(totals.t_ns));
                self.bounds_changed = totals.bounds_changed;
                self.beacons = totals.beacons;
            }
        }
    }

    fn add_tick(&mut self, tick: &Tick, clock: Clock) {
        let from = clock.at_monotonic_ns(tick.t_ns);
        self.beacons = tick.beacons;
        self.terminals_max = self.terminals_max.max(tick.terminals);
        for flow in &tick.flows {
            if let Some(enabled_ns) = flow.enabled_at_ns {
                let enabled = clock.at_monotonic_ns(enabled_ns);
                self.enabled_at = Some(self.enabled_at.map_or(enabled, |earlier| earlier.min(enabled)));
            }
            let local = flow.local.parse::<SocketAddr>().ok();
            let Some(number) = local.and_then(|local| flow_of_port(local.port())) else {
                continue;
            };
            let until = flow.bound_until_ns.map_or(from, |until_ns| clock.at_monotonic_ns(until_ns));
            let min_segments = flow.bound.map(|bound| bound.min_segments).filter(|&min| min > 1);
            let max_segments = flow.bound.map(|bound| bound.max_segments).filter(|&max| max > 0);
            self.intervals.push((number, Interval { from, until, min_segments, max_segments }));
        }
    }
}
