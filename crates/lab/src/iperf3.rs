//! `iperf3` instead of the laboratory's own traffic: the same flows, with a widely known program.
//!
//! Each flow has a client and a server process. The laboratory borrows their data sockets (pidfd_getfd(2), Linux 5.6)
//! and reads `TCP_INFO` as from its own. The received bytes are the kernel's `tcpi_bytes_received`. At the end the
//! processes are killed, and their connections are reset as ours are.

use crate::addresses::{AddressPlan, client_port};
use crate::clock::{Clock, Schedule};
use crate::error::{Doing, Error, Result};
use crate::hosts::{self, Hosts};
use crate::laws;
use crate::namespace::Namespace;
use crate::process::Process;
use crate::samples::{FlowSample, Samples};
use crate::small_queues::Station;
use crate::traffic::{Counted, FlowPlan, LOOK_EVERY, Report, reset_when_closed, tell_small_queues};
use lasthop_connection::TcpState;
use lasthop_kernel::tcp_state;
use lasthop_scenario::{Direction, KindName, Scenario};
use lasthop_units::{Bytes, Span, Time};
use nix::sys::socket::{SockaddrIn, getpeername, getsockname};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use std::fs;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const FIRST_SERVER_PORT: u16 = 5201;
/// The time limit for a server to listen.
const LISTENING_WITHIN: Duration = Duration::from_secs(60);

/// All flows of a run, with their servers listening.
pub(crate) struct Iperf3<'a> {
    flows: Vec<Flow<'a>>,
}

struct Flow<'a> {
    plan: FlowPlan,
    number: u16,
    namespace: &'a Namespace,
    server: Process,
    client: Option<Process>,
    sockets: Option<Sockets>,
    received: Bytes,
    in_warmup: Counted,
    last_state: Option<TcpState>,
    failed: Option<String>,
}

/// The two ends of a flow's data connection, borrowed from the processes.
struct Sockets {
    sender: OwnedFd,
    receiver: OwnedFd,
}

/// Checks whether iperf3 can be the traffic of this scenario.
///
/// # Errors
/// The first key that needs lasthop's own sockets.
pub(crate) fn check(scenario: &Scenario) -> Result<()> {
    for (block, host) in scenario.hosts.iter().enumerate() {
        if host.flows.is_empty() {
            continue;
        }
        let refuse = |key: &str, what: &str| {
            let reason = format!("--traffic iperf3 {what}; --traffic own can");
            Err(Error::Scenario { key: format!("hosts[{block}].{key}"), reason })
        };
        if laws::hears(&host.kind).is_some() {
            refuse("congestion_control", "cannot have it, because its server listens without it")?;
        }
        if hosts::stack_of(&host.kind).sockets.are_set_at_sockets() {
            refuse("tcp", "cannot tell its sockets receive_buffer_kib, pacing and nagle")?;
        }
        for (number, flow) in host.flows.iter().enumerate() {
            if flow.dscp != 0 {
                refuse(&format!("flows[{number}].dscp"), "does not mark its packets")?;
            }
            if flow.stop.is_some() {
                refuse(&format!("flows[{number}].stop_s"), "knows no end but that of the run")?;
            }
            if flow.kind.name() != KindName::Bulk {
                refuse(&format!("flows[{number}].kind"), "sends in bulk only")?;
            }
            if flow.kind.is_transfer() {
                refuse(&format!("flows[{number}].transfer_kib"), "knows no end but that of the run")?;
            }
        }
    }
    Ok(())
}

impl<'a> Iperf3<'a> {
    /// Starts the servers.
    ///
    /// # Errors
    /// If iperf3 is not installed or a server does not start. [`check`] has accepted the scenario.
    pub(crate) fn prepare(plans: Vec<FlowPlan>, hosts: &'a Hosts) -> Result<Self> {
        let server = |plan: &FlowPlan| &hosts.servers()[usize::from(plan.server)];
        let mut flows = Vec::with_capacity(plans.len());
        for (number, plan) in (0_u16..).zip(plans) {
            let namespace = &hosts.hosts()[usize::from(plan.spec.host)];
            let port = server_port(number);
            let process = spawn(server(&plan), &["--server", "--one-off", "--port", &port.to_string()])?;
            flows.push(Flow {
                plan,
                number,
                namespace,
                server: process,
                client: None,
                sockets: None,
                received: Bytes::ZERO,
                in_warmup: Counted::default(),
                last_state: None,
                failed: None,
            });
        }
        let deadline = Instant::now() + LISTENING_WITHIN;
        for flow in &mut flows {
            while !server(&flow.plan).run(|| listens(server_port(flow.number)))? {
                if let Some(status) = flow.server.0.try_wait().doing("cannot wait for iperf3")? {
                    let what = format!("an iperf3 server did not start ({status}); its own message is above");
                    return Err(Error::Child(what));
                }
                if Instant::now() > deadline {
                    let what = format!("an iperf3 server did not listen within {LISTENING_WITHIN:?}");
                    return Err(Error::Child(what));
                }
                thread::sleep(Duration::from_millis(20));
            }
        }
        Ok(Self { flows })
    }

    /// Runs the flows until the schedule's end, or until `stop` is set.
    pub(crate) fn run(
        mut self,
        clock: Clock,
        schedule: Schedule,
        stations: &[Station],
        mut samples: Samples<'_>,
        stop: &AtomicBool,
    ) -> Result<Report> {
        let end = Time::ZERO + schedule.end;
        let mut warm = Some(Time::ZERO + schedule.warmup);
        let mut next_sample = Time::ZERO;
        let small_queues = stations.iter().any(Station::queues_in_model);
        let mut late = Span::ZERO;
        while !stop.load(Ordering::Relaxed) {
            let now = clock.now();
            if now >= end {
                break;
            }
            for flow in &mut self.flows {
                flow.start_if_due(now, schedule.end)?;
            }
            if warm.is_some_and(|warm| now >= warm) {
                warm = None;
                for flow in &mut self.flows {
                    flow.read();
                    flow.in_warmup = flow.counted();
                }
            }
            if now >= next_sample {
                late = late.max(now - next_sample);
                for (number, flow) in self.flows.iter_mut().enumerate() {
                    let tcp = flow.read();
                    let received = flow.received;
                    if tcp.is_some() {
                        samples.push(FlowSample { at: now, flow: number, tcp, received });
                    }
                }
                while next_sample <= now {
                    next_sample += schedule.sample_every;
                }
            }
            if small_queues {
                let read: Vec<_> = self.flows.iter_mut().map(Flow::read).collect();
                let senders = self.flows.iter().zip(read).filter_map(|(flow, tcp)| Some((&flow.plan, tcp?)));
                tell_small_queues(senders, stations, now);
            }
            let most = if small_queues { LOOK_EVERY } else { Span::from_millis(20) };
            let sleep = clock.until(next_sample).min(most);
            thread::sleep(Duration::from_nanos(sleep.as_nanos()));
        }
        let flows = self.flows.iter_mut().map(|flow| {
            flow.read();
            let never = || flow.sockets.is_none().then(|| "did not connect within the run".to_owned());
            flow.counted().since(flow.in_warmup, flow.failed.clone().or_else(never))
        });
        let (samples, every) = samples.into_parts();
        Ok(Report { flows: flows.collect(), samples, every, came: Vec::new(), late })
    }
}

impl Flow<'_> {
    fn start_if_due(&mut self, now: Time, end: Span) -> Result<()> {
        if self.client.is_some() || now < self.plan.spec.start {
            return Ok(());
        }
        let server = AddressPlan::server(self.plan.server).to_string();
        let host = AddressPlan::host(self.plan.spec.host).to_string();
        let (port, client) = (server_port(self.number).to_string(), client_port(self.number.into()).to_string());
        // Longer than the run. The laboratory ends it.
        let seconds = (end.as_secs_f64().ceil() + 10.0).to_string();
        let mut arguments = vec!["--client", &server, "--port", &port, "--bind", &host, "--cport", &client];
        arguments.extend(["--congestion", &self.plan.congestion_control, "--time", &seconds]);
        if self.plan.spec.direction == Direction::Down {
            arguments.push("--reverse");
        }
        self.client = Some(spawn(self.namespace, &arguments)?);
        Ok(())
    }

    /// Reads both ends, if they are connected.
    fn read(&mut self) -> Option<TcpState> {
        let client = self.client.as_mut()?;
        for process in [&mut *client, &mut self.server] {
            if self.failed.is_none()
                && let Ok(Some(status)) = process.0.try_wait()
            {
                self.failed = Some(format!("iperf3 ended before the run did ({status})"));
            }
        }
        if self.sockets.is_none() {
            let port = client_port(self.number.into());
            let near = sockets_of(client).find(|socket| local_port(socket.as_fd()) == Some(port))?;
            let far = sockets_of(&self.server).find(|socket| peer_port(socket.as_fd()) == Some(port))?;
            // If this process is killed, so are they.
            self.reset_when_killed();
            self.sockets = Some(match self.plan.spec.direction {
                Direction::Up => Sockets { sender: near, receiver: far },
                Direction::Down => Sockets { sender: far, receiver: near },
            });
        }
        let sockets = self.sockets.as_ref()?;
        let tcp = tcp_state(&sockets.sender).ok()?;
        self.received = tcp_state(&sockets.receiver).ok()?.received;
        self.last_state = Some(tcp);
        Some(tcp)
    }

    /// Prepares all sockets of both processes for a reset, the control connection's too. Errors on other descriptors do
    /// not matter.
    fn reset_when_killed(&self) {
        for process in self.client.iter().chain([&self.server]) {
            for socket in sockets_of(process) {
                let _ = reset_when_closed(&socket);
            }
        }
    }

    fn counted(&self) -> Counted {
        Counted::new(self.received, self.last_state)
    }
}

impl Drop for Flow<'_> {
    fn drop(&mut self) {
        self.reset_when_killed();
    }
}

/// Copies of the process's descriptors, as long as it runs.
fn sockets_of(process: &Process) -> impl Iterator<Item = OwnedFd> {
    let pidfd = pidfd_open(Pid::from_child(&process.0), PidfdFlags::empty()).ok();
    let numbers = fs::read_dir(format!("/proc/{}/fd", process.0.id())).into_iter().flatten();
    let numbers = numbers.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    numbers.filter_map(move |number| pidfd_getfd(pidfd.as_ref()?, number, PidfdGetfdFlags::empty()).ok())
}

fn server_port(number: u16) -> u16 {
    FIRST_SERVER_PORT + number
}

fn local_port(socket: BorrowedFd<'_>) -> Option<u16> {
    getsockname::<SockaddrIn>(socket.as_raw_fd()).ok().map(|address| address.port())
}

fn peer_port(socket: BorrowedFd<'_>) -> Option<u16> {
    getpeername::<SockaddrIn>(socket.as_raw_fd()).ok().map(|address| address.port())
}

fn spawn(namespace: &Namespace, arguments: &[&str]) -> Result<Process> {
    let mut command = Command::new("iperf3");
    command.arg("--version4").args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit());
    Process::spawn(command, namespace, &[]).doing("cannot start iperf3 (is it installed? 'apt-get install iperf3')")
}

/// Whether a socket listens on the port in the calling thread's namespace (/proc/net/tcp and tcp6, state 0A).
fn listens(port: u16) -> Result<bool> {
    let local = format!(":{port:04X}");
    for table in ["tcp", "tcp6"] {
        let Ok(rows) = fs::read_to_string(format!("/proc/thread-self/net/{table}")) else {
            continue;
        };
        let listening = |row: &str| {
            let mut columns = row.split_whitespace().skip(1);
            columns.next().is_some_and(|address| address.ends_with(&local)) && columns.nth(1) == Some("0A")
        };
        if rows.lines().any(listening) {
            return Ok(true);
        }
    }
    Ok(false)
}
