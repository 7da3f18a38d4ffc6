//! The laboratory's own traffic: bulk TCP up and down through the hosts' kernels, with its `TCP_INFO`.
//!
//! Every socket is created in its host's namespace before the run and connects at the flow's start time. The sender
//! writes zeroes as fast as its kernel takes them: without end, until its stop, or up to a transfer's size. Then it
//! closes, and the kernel still sends the buffered data. The receiver counts and discards. One thread serves all flows
//! and reads `TCP_INFO` of every sender at a fixed interval.
//!
//! Closing a socket resets its connection ([`reset_when_closed`]), so none outlives the run or the process.

use crate::addresses::{AddressPlan, FIRST_CLIENT_PORT, flow_of_port};
use crate::clock::{Clock, Schedule};
use crate::error::{Doing, Error, Result};
use crate::hosts::Hosts;
use crate::tcp_info::TcpInfo;
use crate::tcp_switches::SocketOptions;
use crate::valve::Station;
use lasthop_measure::DeliveryMeter;
use lasthop_scenario::Direction;
use lasthop_units::{Bytes, Span, Time};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::socket::{
    self, AddressFamily, Backlog, MsgFlags, Shutdown, SockFlag, SockType, SockaddrIn, setsockopt,
    sockopt::{Ipv4Tos, Linger, TcpCongestion},
};
use std::ffi::OsString;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// The port of the servers' listeners.
const SERVER_PORT: u16 = 5001;
/// The size of a write: iperf's default for TCP.
const WRITE_BYTES: usize = 128 * 1024;
/// The interval of telling the valves how much the senders may have below their sockets, and over aggregates of reading
/// what has not woken its receiver.
pub(crate) const LOOK_EVERY: Span = Span::from_millis(4);
/// The maximum size of a read.
const READ_BYTES: usize = 1024 * 1024;

/// The plan of one flow.
#[derive(Clone, Debug)]
pub(crate) struct FlowPlan {
    pub(crate) host: u16,
    /// The index of its server.
    pub(crate) server: u16,
    pub(crate) direction: Direction,
    /// The end that sends: hosts by index, then servers.
    pub(crate) sender: usize,
    /// The DSCP of its packets.
    pub(crate) dscp: u8,
    /// A congestion control that the kernel offers.
    pub(crate) congestion_control: String,
    /// Whether the server's listener needs it, too: the law uses reports that come with a SYN.
    pub(crate) hears: bool,
    /// Options of the sockets at both ends.
    pub(crate) options: SocketOptions,
    /// Whether the network carries aggregates: the receiver is woken for lumps of data only
    /// ([`SocketOptions::wake_for_lumps`]).
    pub(crate) over_aggregates: bool,
    /// When the client connects.
    pub(crate) start: Time,
    /// The application's last write; `None` means no stop.
    pub(crate) stop: Option<Time>,
    /// The size of the transfer; `None` means an endless flow.
    pub(crate) transfer: Option<Bytes>,
}

/// A reading of one flow's sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowSample {
    pub(crate) at: Time,
    /// Index into the plans.
    pub(crate) flow: usize,
    pub(crate) info: TcpInfo,
    /// Bytes received by the application since the connection began.
    pub(crate) received: Bytes,
}

/// The outcome of one flow, without the warm-up.
#[derive(Clone, Debug, Default)]
pub(crate) struct FlowReport {
    /// Bytes received by the application.
    pub(crate) received: Bytes,
    pub(crate) retransmits: u32,
    pub(crate) timeouts: Option<u32>,
    /// The reason, if the flow ended before the run.
    pub(crate) failed: Option<String>,
    /// The server has not seen the end of its handshake. This happens when acknowledgements are lost.
    pub(crate) unconnected: bool,
    /// The delivery of a transfer; empty for an endless flow.
    pub(crate) transfer: DeliveryMeter,
}

/// The outcome of the traffic.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    /// By flow, in the order of the plans.
    pub(crate) flows: Vec<FlowReport>,
    pub(crate) samples: Vec<FlowSample>,
    /// The greatest lateness of a reading. Other work of this thread was at most as late: writing, reading, starting a
    /// flow.
    pub(crate) late: Span,
}

/// A flow's counters, taken at the end of the warm-up and at the end of the run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    pub(crate) received: Bytes,
    pub(crate) retransmits: u32,
    pub(crate) timeouts: Option<u32>,
}

impl Counted {
    pub(crate) fn new(received: Bytes, info: Option<TcpInfo>) -> Self {
        let retransmits = info.map_or(0, |info| info.retransmits);
        Self { received, retransmits, timeouts: info.and_then(|info| info.timeouts) }
    }

    /// The counters since `warmup`.
    pub(crate) fn since(self, warmup: Self, failed: Option<String>) -> FlowReport {
        FlowReport {
            received: self.received - warmup.received,
            retransmits: self.retransmits - warmup.retransmits,
            timeouts: self.timeouts.map(|timeouts| timeouts - warmup.timeouts.unwrap_or(0)),
            failed,
            unconnected: false,
            transfer: DeliveryMeter::default(),
        }
    }
}

/// All flows of a run, ready to start.
pub(crate) struct Traffic {
    plans: Vec<FlowPlan>,
    /// In the order of the servers that have flows.
    listeners: Vec<TcpListener>,
    flows: Vec<Flow>,
    epoll: Epoll,
    /// The data to send. Also the buffer for received data, which the kernel is told to discard.
    zeroes: Vec<u8>,
}

struct Flow {
    client: OwnedFd,
    server: Option<OwnedFd>,
    started: bool,
    /// The bytes left to write.
    unwritten: u64,
    /// Whether the sender has closed.
    closed: bool,
    /// Whether the receiver has reached the end of the stream.
    ended: bool,
    /// The time of reading a transfer's last byte.
    transferred: Option<Time>,
    received: Bytes,
    in_warmup: Counted,
    last_info: Option<TcpInfo>,
    failed: Option<String>,
}

/// The socket of an epoll event.
#[derive(Clone, Copy)]
enum Token {
    Listener(usize),
    Client(usize),
    Server(usize),
}

impl Traffic {
    /// Creates the sockets: every client in its host's namespace, a listener in each server's
    /// that has flows.
    ///
    /// # Errors
    /// If a socket cannot be created or rejects its congestion control ([`crate::check`] checks for that in advance).
    pub(crate) fn prepare(plans: Vec<FlowPlan>, hosts: &Hosts) -> Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).doing("cannot make an epoll instance")?;
        let mut listeners = Vec::with_capacity(hosts.servers().len());
        for (number, server) in (0..).zip(hosts.servers()) {
            // Accepted sockets inherit the options. The answer to a SYN has them, too.
            let Some(plan) = plans.iter().find(|plan| plan.server == number) else { continue };
            let listener = server.run(|| {
                let listener = tcp_socket(AddressPlan::server(number), SERVER_PORT)?;
                plan.options.on_new(&listener)?;
                if plan.hears {
                    set_congestion_control(&listener, &plan.congestion_control)?;
                }
                socket::listen(&listener, Backlog::new(4096).expect("4096 is a legal backlog"))
                    .doing("cannot listen in a server's namespace")?;
                Ok(TcpListener::from(listener))
            })?;
            epoll
                .add(&listener, Token::Listener(listeners.len()).event(EpollFlags::EPOLLIN))
                .doing("cannot watch a socket")?;
            listeners.push(listener);
        }
        let mut flows = Vec::with_capacity(plans.len());
        for (number, plan) in plans.iter().enumerate() {
            let port = u16::try_from(number).ok().and_then(|number| FIRST_CLIENT_PORT.checked_add(number));
            let port =
                port.ok_or_else(|| Error::Machine(format!("more than {} flows", u16::MAX - FIRST_CLIENT_PORT)))?;
            let client = hosts.hosts()[usize::from(plan.host)].run(|| {
                let client = tcp_socket(AddressPlan::host(plan.host), port)?;
                plan.options.on_new(&client)?;
                if plan.over_aggregates && plan.direction == Direction::Down {
                    plan.options.wake_for_lumps(&client)?;
                }
                // Also for a download, whose sender is the server: an unknown name must fail before the run.
                set_congestion_control(&client, &plan.congestion_control)?;
                set_dscp(&client, plan.dscp)?;
                Ok(client)
            })?;
            flows.push(Flow {
                client,
                server: None,
                started: false,
                unwritten: plan.transfer.map_or(u64::MAX, Bytes::get),
                closed: false,
                ended: false,
                transferred: None,
                received: Bytes::ZERO,
                in_warmup: Counted::default(),
                last_info: None,
                failed: None,
            });
        }
        Ok(Self { plans, listeners, flows, epoll, zeroes: vec![0; READ_BYTES] })
    }

    /// Runs the flows until the schedule's end, or until `stop` is set.
    ///
    /// # Errors
    /// If the laboratory itself fails. A failed flow is reported, and the others continue.
    pub(crate) fn run(
        mut self,
        clock: Clock,
        schedule: Schedule,
        stations: &[Station],
        stop: &AtomicBool,
    ) -> Result<Report> {
        let end = Time::ZERO + schedule.end;
        let mut warm = Some(Time::ZERO + schedule.warmup);
        let mut next_sample = Time::ZERO;
        let looks = self.plans.iter().any(|plan| plan.over_aggregates) || stations.iter().any(Station::queues_in_model);
        let mut next_look = looks.then_some(Time::ZERO);
        let (mut samples, mut late) = (Vec::new(), Span::ZERO);
        let mut events = [EpollEvent::empty(); 64];
        while !stop.load(Ordering::Relaxed) {
            let now = clock.now();
            if now >= end {
                break;
            }
            self.start_due(now);
            self.stop_due(now);
            if warm.is_some_and(|warm| now >= warm) {
                warm = None;
                self.read_lumps(clock);
                self.read_senders();
                self.flows.iter_mut().for_each(|flow| flow.in_warmup = flow.counted());
            }
            if now >= next_sample {
                late = late.max(now - next_sample);
                self.sample(now, &mut samples);
                while next_sample <= now {
                    next_sample += schedule.sample_every;
                }
            }
            if next_look.is_some_and(|next| now >= next) {
                next_look = Some(now + LOOK_EVERY);
                self.read_lumps(clock);
                let read = self.read_senders();
                tell_small_queues(read.into_iter().map(|(flow, info)| (&self.plans[flow], info)), stations);
            }
            let next = self.flows.iter().zip(&self.plans).filter_map(|(flow, plan)| flow.next_at(plan));
            let next = next.chain([next_sample]).chain(warm).chain(next_look).min().unwrap_or(end);
            let wait = clock.until(next).min(Span::from_millis(20)).as_nanos().div_ceil(1_000_000);
            let woken = match self.epoll.wait(&mut events, EpollTimeout::from(wait as u8)) {
                Ok(woken) => woken,
                Err(Errno::EINTR) => 0,
                Err(error) => return Err(error).doing("cannot wait for the sockets of the traffic"),
            };
            for event in &events[..woken] {
                self.on_event(event, clock)?;
            }
        }
        self.read_lumps(clock);
        self.read_senders();
        let warm = Time::ZERO + schedule.warmup;
        let flows = self.flows.iter().zip(&self.plans).map(|(flow, plan)| {
            let report = flow.counted().since(flow.in_warmup, flow.failed.clone());
            let transfer = delivery(plan, flow.transferred, warm);
            FlowReport { unconnected: flow.server.is_none(), transfer, ..report }
        });
        Ok(Report { flows: flows.collect(), samples, late })
    }

    fn on_event(&mut self, event: &EpollEvent, clock: Clock) -> Result<()> {
        match Token::of(event) {
            Token::Listener(server) => self.accept(server)?,
            Token::Client(flow) => self.serve(flow, Direction::Up, clock),
            Token::Server(flow) => self.serve(flow, Direction::Down, clock),
        }
        Ok(())
    }

    fn start_due(&mut self, now: Time) {
        for (number, (flow, plan)) in self.flows.iter_mut().zip(&self.plans).enumerate() {
            if flow.started || now < plan.start {
                continue;
            }
            flow.started = true;
            let server = SockaddrIn::from(SocketAddrV4::new(AddressPlan::server(plan.server), SERVER_PORT));
            let interest = match plan.direction {
                Direction::Up => EpollFlags::EPOLLOUT,
                Direction::Down => EpollFlags::EPOLLIN,
            };
            let connected = match socket::connect(flow.client.as_raw_fd(), &server) {
                Ok(()) | Err(Errno::EINPROGRESS) => Ok(()),
                Err(error) => Err(error),
            };
            if let Err(error) =
                connected.and_then(|()| self.epoll.add(&flow.client, Token::Client(number).event(interest)))
            {
                flow.failed = Some(format!("cannot connect: {error}"));
            }
        }
    }

    /// Closes the flows due to stop. A flow not yet connected closes once it is.
    fn stop_due(&mut self, now: Time) {
        for (flow, plan) in self.flows.iter_mut().zip(&self.plans) {
            let due = plan.stop.is_some_and(|stop| now >= stop);
            if let (true, false, Some(sender), true) = (due, flow.closed, flow.sender(plan), flow.server.is_some()) {
                let _ = self.epoll.delete(sender);
                close(sender);
                flow.closed = true;
            }
        }
    }

    fn accept(&mut self, server: usize) -> Result<()> {
        loop {
            let (accepted, client) = match self.listeners[server].accept() {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => continue,
                Err(error) => return Err(error).doing("cannot accept a connection in the server's namespace"),
            };
            accepted.set_nonblocking(true).doing("cannot set O_NONBLOCK of an accepted socket")?;
            let accepted = OwnedFd::from(accepted);
            let Some(number) = flow_of_port(client.port()).filter(|&number| number < self.flows.len()) else {
                continue;
            };
            let flow = &mut self.flows[number];
            let plan = &self.plans[number];
            set_dscp(&accepted, plan.dscp)?;
            let interest = match plan.direction {
                Direction::Up => {
                    if plan.over_aggregates {
                        plan.options.wake_for_lumps(&accepted)?;
                    }
                    EpollFlags::EPOLLIN
                }
                Direction::Down => {
                    set_congestion_control(&accepted, &plan.congestion_control)?;
                    EpollFlags::EPOLLOUT
                }
            };
            self.epoll.add(&accepted, Token::Server(number).event(interest)).doing("cannot watch a socket")?;
            flow.server = Some(accepted);
        }
    }

    /// Handles an event on the end of a flow that sends in direction `sends_in`. If the flow's direction differs, that
    /// end receives.
    fn serve(&mut self, number: usize, sends_in: Direction, clock: Clock) {
        let (flow, plan) = (&mut self.flows[number], &self.plans[number]);
        let socket = match sends_in {
            Direction::Up => Some(&flow.client),
            Direction::Down => flow.server.as_ref(),
        };
        let Some(socket) = socket else { return };
        let outcome = if plan.direction == sends_in {
            send_all(socket, &self.zeroes[..WRITE_BYTES], &mut flow.unwritten).map(|()| {
                if flow.unwritten == 0 && !flow.closed {
                    let _ = self.epoll.delete(socket);
                    close(socket);
                    flow.closed = true;
                }
            })
        } else {
            let first = flow.received == Bytes::ZERO;
            receive_all(socket, &mut self.zeroes).map(|(received, ended)| {
                if first && received > Bytes::ZERO {
                    plan.options.on_first_data(socket);
                }
                flow.received += received;
                if flow.transferred.is_none() && plan.transfer.is_some_and(|transfer| flow.received >= transfer) {
                    flow.transferred = Some(clock.now());
                }
                if ended && !flow.closed {
                    flow.failed = Some("the connection ended before its sender closed it".to_owned());
                }
                flow.ended |= ended;
                if ended {
                    let _ = self.epoll.delete(socket);
                }
            })
        };
        if let Err(error) = outcome {
            let _ = self.epoll.delete(socket);
            flow.failed = Some(format!("the connection ended: {error}"));
        }
        if flow.ended {
            // The final counters. A finished connection is not sampled again.
            flow.last_info = flow.sender(plan).and_then(|sender| TcpInfo::read(sender.as_fd()).ok()).or(flow.last_info);
        }
    }

    /// Reads what has arrived but did not wake its receiver.
    fn read_lumps(&mut self, clock: Clock) {
        for flow in 0..self.flows.len() {
            let (state, plan) = (&self.flows[flow], &self.plans[flow]);
            if plan.over_aggregates && state.server.is_some() && !state.ended && state.failed.is_none() {
                let receiver = match plan.direction {
                    Direction::Up => Direction::Down,
                    Direction::Down => Direction::Up,
                };
                self.serve(flow, receiver, clock);
            }
        }
    }

    fn sample(&mut self, at: Time, samples: &mut Vec<FlowSample>) {
        for (number, info) in self.read_senders() {
            samples.push(FlowSample { at, flow: number, info, received: self.flows[number].received });
        }
    }

    /// Reads every sender that exists.
    fn read_senders(&mut self) -> Vec<(usize, TcpInfo)> {
        let mut read = Vec::with_capacity(self.flows.len());
        for (number, (flow, plan)) in self.flows.iter_mut().zip(&self.plans).enumerate() {
            let (true, false, Some(sender), None) = (flow.started, flow.ended, flow.sender(plan), &flow.failed) else {
                continue;
            };
            if let Ok(info) = TcpInfo::read(sender.as_fd()) {
                flow.last_info = Some(info);
                read.push((number, info));
            }
        }
        read
    }
}

impl Flow {
    /// The sending end, if it exists.
    fn sender(&self, plan: &FlowPlan) -> Option<&OwnedFd> {
        match plan.direction {
            Direction::Up => Some(&self.client),
            Direction::Down => self.server.as_ref(),
        }
    }

    /// The time of its next action of its own: to start or to stop.
    fn next_at(&self, plan: &FlowPlan) -> Option<Time> {
        if self.started { plan.stop.filter(|_| !self.closed && self.server.is_some()) } else { Some(plan.start) }
    }

    fn counted(&self) -> Counted {
        Counted::new(self.received, self.last_info)
    }
}

impl Token {
    fn event(self, flags: EpollFlags) -> EpollEvent {
        let (kind, number) = match self {
            Self::Listener(number) => (0, number),
            Self::Client(number) => (1, number),
            Self::Server(number) => (2, number),
        };
        EpollEvent::new(flags, (number as u64) << 2 | kind)
    }

    fn of(event: &EpollEvent) -> Self {
        let number = (event.data() >> 2) as usize;
        match event.data() & 3 {
            0 => Self::Listener(number),
            1 => Self::Client(number),
            _ => Self::Server(number),
        }
    }
}

/// Tells each station what the senders there together may have below their sockets.
pub(crate) fn tell_small_queues<'a>(senders: impl Iterator<Item = (&'a FlowPlan, TcpInfo)>, stations: &[Station]) {
    let mut permitted = vec![Bytes::ZERO; stations.len()];
    for (plan, info) in senders {
        permitted[plan.sender] += plan.options.small_queue(info.pacing_rate);
    }
    stations.iter().zip(permitted).for_each(|(station, bytes)| station.permit(bytes));
}

/// The delivery of a transfer, whose last byte was read at `read_at`. Empty for an endless flow.
fn delivery(plan: &FlowPlan, read_at: Option<Time>, warm: Time) -> DeliveryMeter {
    let mut meter = DeliveryMeter::default();
    match (plan.transfer, read_at) {
        (None, _) => {}
        (Some(_), None) => meter.on_undelivered(plan.start),
        (Some(_), Some(at)) if at >= warm => meter.on_delivered(at.saturating_since(plan.start)),
        (Some(_), Some(_)) => {}
    }
    meter
}

fn tcp_socket(address: Ipv4Addr, port: u16) -> Result<OwnedFd> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let socket =
        socket::socket(AddressFamily::Inet, SockType::Stream, flags, None).doing("cannot make a TCP socket")?;
    reset_when_closed(&socket)?;
    socket::bind(socket.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(address, port)))
        .doing(format_args!("cannot bind a socket to {address}:{port}"))?;
    Ok(socket)
}

/// The connection ends with the last descriptor of its socket (`SO_LINGER` with zero time, socket(7)). Connections
/// accepted by a listener inherit this. Otherwise the kernel would retransmit the buffered data for minutes, and keep
/// the namespace and the congestion control.
pub(crate) fn reset_when_closed(socket: &OwnedFd) -> Result<()> {
    setsockopt(socket, Linger, &libc::linger { l_onoff: 1, l_linger: 0 }).doing("cannot set SO_LINGER of a socket")
}

fn set_congestion_control(socket: &OwnedFd, name: &str) -> Result<()> {
    setsockopt(socket, TcpCongestion, &OsString::from(name))
        .doing(format_args!("cannot choose the congestion control \"{name}\""))
}

/// Marks the socket's packets. 0, the default, costs no call.
fn set_dscp(socket: &OwnedFd, dscp: u8) -> Result<()> {
    if dscp == 0 {
        return Ok(());
    }
    setsockopt(socket, Ipv4Tos, &(i32::from(dscp) << 2)).doing(format_args!("cannot mark a socket with DSCP {dscp}"))
}

/// The congestion controls of this kernel, without the agents' own.
pub(crate) fn offered_congestion_controls() -> Vec<String> {
    let names = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    names.split_whitespace().filter(|name| !name.starts_with("lasthop")).map(str::to_owned).collect()
}

/// Writes as much as the kernel takes, at most `unwritten` bytes.
fn send_all(socket: &OwnedFd, zeroes: &[u8], unwritten: &mut u64) -> nix::Result<()> {
    while *unwritten > 0 {
        let offered = usize::try_from(*unwritten).unwrap_or(usize::MAX).min(zeroes.len());
        match socket::send(socket.as_raw_fd(), &zeroes[..offered], MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT) {
            Ok(sent) => {
                if *unwritten < u64::MAX {
                    *unwritten -= sent as u64;
                }
                // A partial write: the buffer is full, and epoll reports when it has room.
                if sent < offered {
                    return Ok(());
                }
            }
            Err(Errno::EINTR) => {}
            Err(Errno::EAGAIN) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Stops writing; the kernel still sends the buffered data. Closing a broken connection fails, and its error is
/// reported elsewhere.
fn close(sender: &OwnedFd) {
    let _ = socket::shutdown(sender.as_raw_fd(), Shutdown::Write);
}

/// Reads and discards all data available (with MSG_TRUNC the kernel does not copy them, tcp(7)). Also returns whether
/// this was the end of the stream.
fn receive_all(socket: &OwnedFd, unused: &mut [u8]) -> nix::Result<(Bytes, bool)> {
    let mut total = Bytes::ZERO;
    loop {
        match socket::recv(socket.as_raw_fd(), unused, MsgFlags::MSG_TRUNC | MsgFlags::MSG_DONTWAIT) {
            Ok(0) => return Ok((total, true)),
            Ok(received) => {
                total += Bytes::new(received as u64);
                if received < unused.len() {
                    return Ok((total, false));
                }
            }
            Err(Errno::EAGAIN) => return Ok((total, false)),
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_counts_from_the_end_of_the_warm_up() {
        let warmup = Counted { received: Bytes::new(100), retransmits: 43, timeouts: Some(2) };
        let end = Counted { received: Bytes::new(350), retransmits: 45, timeouts: Some(2) };
        let report = end.since(warmup, None);
        assert_eq!((report.received, report.retransmits, report.timeouts), (Bytes::new(250), 2, Some(0)));
        // A flow that starts after the warm-up.
        let report = end.since(Counted::default(), None);
        assert_eq!((report.retransmits, report.timeouts), (45, Some(2)));
    }

    #[test]
    fn a_transfer_counts_if_it_ends_after_the_warm_up_or_never() {
        let plan = FlowPlan {
            host: 0,
            server: 0,
            direction: Direction::Up,
            sender: 0,
            dscp: 0,
            congestion_control: "cubic".into(),
            hears: false,
            options: SocketOptions::default(),
            over_aggregates: false,
            start: Time::ZERO + Span::from_secs(2),
            stop: None,
            transfer: Some(Bytes::new(1)),
        };
        let secs = |secs| Time::ZERO + Span::from_secs(secs);
        let took = |plan: &FlowPlan, read_at| {
            let meter = delivery(plan, read_at, secs(10));
            let result = lasthop_measure::delivered([&meter], secs(30));
            (result.delivered, result.undelivered, result.took_ms.map(|took| took.max))
        };
        assert_eq!(took(&plan, Some(secs(9))), (0, 0, None));
        assert_eq!(took(&plan, Some(secs(10))), (1, 0, Some(8_000.0)));
        // Until the end of the run.
        assert_eq!(took(&plan, None), (0, 1, Some(28_000.0)));
        assert_eq!(took(&FlowPlan { transfer: None, ..plan }, None), (0, 0, None));
    }

    /// Two hosts at A, the second with its era's stack, with an upload and a download each. Without a model between the
    /// devices there is no delay, so a few thousand segments take no time.
    #[test]
    fn both_ends_of_a_connection_have_the_stack_that_its_host_asks_for() {
        const TIMESTAMPS: u8 = 1;
        const SACK: u8 = 2;
        const WINDOW_SCALING: u8 = 4;
        const ENOUGH: Bytes = Bytes::new(2_000_000);

        if !nix::unistd::geteuid().is_root() {
            assert!(std::env::var_os("LASTHOP_REQUIRE_ROOT_TESTS").is_none(), "kernel hosts need root");
            eprintln!("skipped: kernel hosts need root");
            return;
        }
        let flows = "[[hosts.flows]]\nto = \"B\"\n[[hosts.flows]]\nto = \"B\"\ndirection = \"down\"\n";
        let text = format!(
            "[[links]]\nbetween = [\"A\", \"B\"]\n[[hosts]]\nnode = \"A\"\ncongestion_control = \"newreno\"\n[hosts.tcp]\n\
             mss_bytes = 1012\nsack = false\nrto_min_ms = 800\nreceive_buffer_kib = 40\n{flows}\
             [[hosts]]\nnode = \"A\"\n{flows}"
        );
        let scenario = lasthop_scenario::Scenario::from_toml("x.toml", &text, &[]).expect("a scenario");
        let (traffic, hosts) = until_all_have(ENOUGH, &scenario);
        assert_eq!(traffic.plans.iter().map(|plan| plan.server).collect::<Vec<_>>(), [0, 0, 1, 1]);
        for (number, (flow, plan)) in traffic.flows.iter().zip(&traffic.plans).enumerate() {
            assert!(flow.received >= ENOUGH, "flow {number}: {} {:?}", flow.received, flow.failed);
            let sender = flow.sender(plan).expect("a sender");
            let (info, _) = lasthop_kernel::tcp_info(sender).expect("TCP_INFO");
            let said = format!("flow {number}: {info:?}");
            let options = info.tcpi_options & (TIMESTAMPS | SACK | WINDOW_SCALING);
            if plan.host == 0 {
                assert_eq!((info.tcpi_snd_mss, options), (1000, TIMESTAMPS | WINDOW_SCALING), "{said}");
                // The floor applies to the variance term. Without a delay the other term is almost nothing.
                assert!((800_000..1_200_000).contains(&info.tcpi_rto), "{said}");
                // At most 40 KiB, in units of 2^scale bytes, once the handshake's window has been used up.
                assert!((36_000..=40_960).contains(&info.tcpi_snd_wnd), "{said}");
            } else {
                assert_eq!((info.tcpi_snd_mss, options), (1448, TIMESTAMPS | SACK | WINDOW_SCALING), "{said}");
                assert!((200_000..800_000).contains(&info.tcpi_rto), "{said}");
                assert!(info.tcpi_snd_wnd > 60_000, "{said}");
            }
        }

        // Packets are no longer carried, and the senders have buffered data. The kernel would retransmit them for
        // minutes.
        let connections = || hosts.namespaces.iter().map(connections).sum::<usize>();
        assert!(connections() >= 2 * traffic.flows.len());
        drop(traffic);
        assert_eq!(connections(), 0);
    }

    /// One upload to a kernel that acknowledges every second segment, and one to a kernel that joins up to eight.
    #[test]
    fn a_kernel_that_joins_segments_acknowledges_them_together() {
        const ENOUGH: Bytes = Bytes::new(4_000_000);

        if !nix::unistd::geteuid().is_root() {
            assert!(std::env::var_os("LASTHOP_REQUIRE_ROOT_TESTS").is_none(), "kernel hosts need root");
            eprintln!("skipped: kernel hosts need root");
            return;
        }
        let host = "[[hosts]]\nera = \"modern\"\ncongestion_control = \"newreno\"\n[[hosts.flows]]\n";
        let text = format!(
            "[access]\nstandard = \"802.11ac\"\n{host}{}",
            host.replace("[[hosts.flows]]", "[hosts.tcp]\ndelayed_ack_segments = 8\n[[hosts.flows]]")
        );
        let scenario = lasthop_scenario::Scenario::from_toml("x.toml", &text, &[]).expect("a scenario");
        let (traffic, _hosts) = until_all_have(ENOUGH, &scenario);
        let segments_per_ack = |flow: &Flow| {
            let (info, _) = lasthop_kernel::tcp_info(flow.server.as_ref().expect("a server")).expect("TCP_INFO");
            f64::from(info.tcpi_data_segs_in) / f64::from(info.tcpi_segs_out)
        };
        let [plain, joined] = &traffic.flows[..] else { panic!("two flows") };
        let said =
            format!("{} and {} segments for each acknowledgement", segments_per_ack(plain), segments_per_ack(joined));
        assert!(segments_per_ack(plain) <= 2.2, "{said}");
        // The last segments may not have been acknowledged yet.
        assert!((4.0..=9.0).contains(&segments_per_ack(joined)), "{said}");
    }

    /// Carries the scenario's flows, without a network in between, until all have received this much or seem stuck.
    fn until_all_have(enough: Bytes, scenario: &lasthop_scenario::Scenario) -> (Traffic, Hosts) {
        let specs = scenario.expanded_hosts();
        let servers = crate::hosts::Servers::of(scenario, &specs).expect("servers");
        let hosts = Hosts::new(scenario, &specs, &servers, None).expect("namespaces");
        let laws = crate::laws::Laws::load(&specs).expect("none");
        let plans = crate::flow_plans(&specs, &servers, &laws, false);
        let mut traffic = Traffic::prepare(plans, &hosts).expect("sockets");
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| carry_at_once(&hosts, &over));
            let clock = Clock::start();
            let mut events = [EpollEvent::empty(); 64];
            let deadline = Time::ZERO + Span::from_secs(20);
            traffic.start_due(clock.now());
            while traffic.flows.iter().any(|flow| flow.received < enough) && clock.now() < deadline {
                let woken = traffic.epoll.wait(&mut events, EpollTimeout::from(20_u8)).expect("events");
                for event in &events[..woken] {
                    traffic.on_event(event, clock).expect("sockets");
                }
            }
            over.store(true, Ordering::Relaxed);
        });
        (traffic, hosts)
    }

    /// The rows of the namespace's /proc/net/tcp, without connections in TIME_WAIT (06), which hold nothing.
    fn connections(namespace: &crate::namespace::Namespace) -> usize {
        let table = namespace
            .run(|| std::fs::read_to_string("/proc/thread-self/net/tcp").doing("cannot read /proc/net/tcp"))
            .expect("a namespace");
        table.lines().skip(1).filter(|row| row.split_whitespace().nth(3) != Some("06")).count()
    }

    /// Gives each packet to its destination, without a network in between.
    fn carry_at_once(hosts: &Hosts, over: &AtomicBool) {
        let mut buffer = [0; crate::tun::MTU];
        while !over.load(Ordering::Relaxed) {
            let mut carried = false;
            for device in &hosts.devices {
                let Some(length) = device.read(&mut buffer).expect("a device") else { continue };
                if let Some(lasthop_network::Destination::Node(node)) = hosts.plan.destination(&buffer[..length]) {
                    let end = hosts.plan.end(node, &buffer[..length]);
                    hosts.devices[end].write(&buffer[..length]).expect("a device");
                    carried = true;
                }
            }
            if !carried {
                std::thread::sleep(std::time::Duration::from_micros(100));
            }
        }
    }

    #[test]
    fn a_token_comes_back_from_epoll_as_it_was() {
        let back = |token: Token| Token::of(&token.event(EpollFlags::EPOLLIN));
        assert!(matches!(back(Token::Listener(3)), Token::Listener(3)));
        assert!(matches!(back(Token::Client(1_999)), Token::Client(1_999)));
        assert!(matches!(back(Token::Server(0)), Token::Server(0)));
    }
}
