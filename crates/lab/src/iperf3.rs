//! `iperf3` instead of the laboratory's own traffic: the same flows, sent and received by a program that others know.
//!
//! One client and one server process for each flow. Their data sockets are borrowed (pidfd_getfd(2), Linux 5.6) and read
//! with `TCP_INFO` as our own would be; what the receiver got is the kernel's `tcpi_bytes_received`.

use crate::clock::Clock;
use crate::namespace::Namespace;
use crate::real_time::{AddressPlan, Schedule};
use crate::tcp_info::TcpInfo;
use crate::traffic::{FlowPlan, FlowReport, FlowSample, Report, client_port};
use anyhow::{Context, Result, bail};
use nix::errno::Errno;
use nix::sched::{CloneFlags, setns};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::sys::socket::{SockaddrIn, getpeername, getsockname};
use scenario::Direction;
use std::fs;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use units::{Bytes, Span, Time};

const FIRST_SERVER_PORT: u16 = 5201;
/// How long a server may take until it listens.
const LISTENING_WITHIN: Duration = Duration::from_secs(10);

/// All flows of a run, their servers listening.
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
    received_in_warmup: Bytes,
    last_info: Option<TcpInfo>,
    failed: Option<String>,
}

/// The two ends of a flow's data connection, borrowed from the processes.
struct Sockets {
    sender: OwnedFd,
    receiver: OwnedFd,
}

/// A process that does not outlive us, nor this value.
struct Process(Child);

impl<'a> Iperf3<'a> {
    /// Starts the servers.
    ///
    /// # Errors
    /// If iperf3 is not installed, or a server does not come up.
    pub(crate) fn prepare(plans: Vec<FlowPlan>, hosts: &'a [Namespace], server: &Namespace) -> Result<Self> {
        let mut flows = Vec::with_capacity(plans.len());
        for (number, plan) in (0_u16..).zip(plans) {
            let namespace = &hosts[usize::from(plan.host)];
            let port = server_port(number);
            let process = spawn(server, &["--server", "--one-off", "--port", &port.to_string()])?;
            flows.push(Flow {
                plan,
                number,
                namespace,
                server: process,
                client: None,
                sockets: None,
                received: Bytes::ZERO,
                received_in_warmup: Bytes::ZERO,
                last_info: None,
                failed: None,
            });
        }
        let deadline = Instant::now() + LISTENING_WITHIN;
        for flow in &mut flows {
            while !server.run(|| listens(server_port(flow.number)))? {
                if let Some(status) = flow.server.0.try_wait().context("cannot wait for iperf3")? {
                    bail!("an iperf3 server did not start ({status}); its own message is above");
                }
                if Instant::now() > deadline {
                    bail!("an iperf3 server did not listen within {LISTENING_WITHIN:?}");
                }
                thread::sleep(Duration::from_millis(20));
            }
        }
        Ok(Self { flows })
    }

    /// Runs the flows until the schedule's end, or until `stop` is set.
    pub(crate) fn run(mut self, clock: Clock, schedule: Schedule, stop: &AtomicBool) -> Result<Report> {
        let end = Time::ZERO + schedule.end;
        let mut warm = Some(Time::ZERO + schedule.warmup);
        let mut next_sample = Time::ZERO;
        let mut samples = Vec::new();
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
                    flow.received_in_warmup = flow.received;
                }
            }
            for (number, flow) in self.flows.iter_mut().enumerate() {
                samples.extend(flow.sample(now, number));
            }
            while next_sample <= now {
                next_sample += schedule.sample_every;
            }
            let sleep = clock.until(next_sample).min(Span::from_millis(20));
            thread::sleep(Duration::from_nanos(sleep.as_nanos()));
        }
        let flows = self.flows.iter().map(|flow| FlowReport {
            received: flow.received - flow.received_in_warmup,
            retransmits: flow.last_info.map_or(0, |info| info.retransmits),
            timeouts: flow.last_info.and_then(|info| info.timeouts),
            failed: flow.failed.clone(),
        });
        Ok(Report { flows: flows.collect(), samples })
    }
}

impl Flow<'_> {
    fn start_if_due(&mut self, now: Time, end: Span) -> Result<()> {
        if self.client.is_some() || now < self.plan.start {
            return Ok(());
        }
        let (server, host) = (AddressPlan::SERVER.to_string(), AddressPlan::host(self.plan.host).to_string());
        let (port, client) = (server_port(self.number).to_string(), client_port(self.number).to_string());
        // Longer than the run, whose end is ours to tell.
        let seconds = (end.as_secs_f64().ceil() + 10.0).to_string();
        let mut arguments = vec!["--client", &server, "--port", &port, "--bind", &host, "--cport", &client];
        arguments.extend(["--congestion", &self.plan.congestion_control, "--time", &seconds]);
        if self.plan.direction == Direction::Down {
            arguments.push("--reverse");
        }
        self.client = Some(spawn(self.namespace, &arguments)?);
        Ok(())
    }

    fn sample(&mut self, at: Time, number: usize) -> Option<FlowSample> {
        let client = self.client.as_mut()?;
        if self.failed.is_none()
            && let Ok(Some(status)) = client.0.try_wait()
        {
            self.failed = Some(format!("iperf3 ended before the run did ({status})"));
        }
        if self.sockets.is_none() {
            let port = client_port(self.number);
            let near = client.socket(|socket| local_port(socket) == Some(port))?;
            let far = self.server.socket(|socket| peer_port(socket) == Some(port))?;
            self.sockets = Some(match self.plan.direction {
                Direction::Up => Sockets { sender: near, receiver: far },
                Direction::Down => Sockets { sender: far, receiver: near },
            });
        }
        let sockets = self.sockets.as_ref()?;
        let info = TcpInfo::read(sockets.sender.as_fd()).ok()?;
        self.received = TcpInfo::read(sockets.receiver.as_fd()).ok()?.received;
        self.last_info = Some(info);
        Some(FlowSample { at, flow: number, info, received: self.received })
    }
}

impl Process {
    /// A copy of the first of its sockets that is `wanted`.
    fn socket(&self, wanted: impl Fn(BorrowedFd<'_>) -> bool) -> Option<OwnedFd> {
        let pid = self.0.id();
        let pidfd = owned(Errno::result(
            // SAFETY: pidfd_open takes numbers and gives a descriptor that nobody else has.
            unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) },
        ))?;
        let numbers = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
        let numbers = numbers.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
        numbers.into_iter().find_map(|number| {
            let copy = owned(Errno::result(
                // SAFETY: pidfd_getfd takes numbers and gives a descriptor that nobody else has.
                unsafe { libc::syscall(libc::SYS_pidfd_getfd, pidfd.as_raw_fd(), number, 0) },
            ))?;
            wanted(copy.as_fd()).then_some(copy)
        })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn owned(descriptor: Result<libc::c_long, Errno>) -> Option<OwnedFd> {
    // SAFETY: the kernel has just made this descriptor for us.
    descriptor.ok().map(|descriptor| unsafe { OwnedFd::from_raw_fd(descriptor as i32) })
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
    let inside = namespace.as_fd().as_raw_fd();
    let mut command = Command::new("iperf3");
    command.arg("--version4").args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit());
    // SAFETY: between fork and exec only system calls that are async-signal-safe: prctl and setns.
    unsafe {
        command.pre_exec(move || {
            set_pdeathsig(Signal::SIGKILL)?;
            setns(BorrowedFd::borrow_raw(inside), CloneFlags::CLONE_NEWNET)?;
            Ok(())
        });
    }
    command.spawn().map(Process).context("cannot start iperf3 (is it installed? 'apt-get install iperf3')")
}

/// Whether somebody listens on the port in the calling thread's namespace (/proc/net/tcp and tcp6, state 0A).
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
