//! The laboratory's own traffic: what the scenario's applications send through the hosts' kernels, with the `TCP_INFO` of
//! each connection.
//!
//! What is sent when, and what becomes of an answer, is the matter of [`lasthop_traffic`], as with simulated hosts. Here
//! are the sockets. Every socket is created in its host's namespace before the run, and connects when its application
//! opens it; a further connection of the flow has a socket of its own. The sender writes zeroes as fast as its kernel
//! takes them, as many as the application has written. The receiver counts and discards. One thread serves all flows
//! and reads `TCP_INFO` of every sender at a fixed interval.
//!
//! A datagram carries its number and when it was sent. Both ends have the same clock, so one way can be measured. What
//! this thread takes to read a datagram is part of its delay.
//!
//! Closing a socket resets its connection ([`reset_when_closed`]), so none outlives the run or the process. A connection
//! with a successor is closed when its receiver has read the end: its port is free at once, without TIME-WAIT.

use crate::addresses::{AddressPlan, client_port, flow_of_port};
use crate::clock::{Clock, Schedule};
use crate::error::{Doing, Result};
use crate::guest::queues::OF_LABORATORY;
use crate::hosts::Hosts;
use crate::namespace::Namespace;
use crate::real_time::wait;
use crate::samples::{FlowSample, Samples};
use crate::tcp_info::TcpInfo;
use crate::tcp_switches::SocketOptions;
use crate::tun::MTU;
use crate::valve::Station;
use lasthop_measure::DeliveryMeter;
use lasthop_scenario::{Direction, FlowSpec, SERVER_PORT, TrafficKind, VideoResult};
use lasthop_traffic::{Action, Application};
use lasthop_units::{Bytes, Span, Time};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::socket::{
    self, AddressFamily, Backlog, MsgFlags, Shutdown, SockFlag, SockType, SockaddrIn, setsockopt,
    sockopt::{Ipv4Tos, Linger, Mark, RcvBufForce, ReuseAddr, SndBufForce, TcpCongestion},
};
use std::ffi::OsString;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// The size of a write: iperf's default for TCP.
const WRITE_BYTES: usize = 128 * 1024;
/// The interval of telling the valves how much the senders may have below their sockets, and over aggregates of reading
/// what has not woken its receiver.
pub(crate) const LOOK_EVERY: Span = Span::from_millis(4);
/// How often an application acts before the others get their turn.
const ACTS_AT_ONCE: usize = 64;
/// The maximum size of a read.
const READ_BYTES: usize = 1024 * 1024;

/// IP and UDP headers of a datagram.
const DATAGRAM_HEADERS: usize = 28;
/// What a datagram carries: its number with [`ANSWER`], and when it was sent, in nanoseconds of the run.
const STAMP_BYTES: usize = 16;
/// The bit of the number that tells the answer to a ping.
const ANSWER: u64 = 1 << 63;
/// The buffers of a socket of datagrams: the host's queue is to be full before.
const DATAGRAM_BUFFER: usize = 4 << 20;

/// The plan of one flow.
#[derive(Clone, Debug)]
pub(crate) struct FlowPlan {
    pub(crate) spec: FlowSpec,
    pub(crate) application: Application,
    /// The index of its server.
    pub(crate) server: u16,
    /// The ends at its host and at its server: hosts by index, then servers.
    pub(crate) ends: [usize; 2],
    /// A congestion control that the kernel offers.
    pub(crate) congestion_control: String,
    /// Whether the server's listener needs it, too: the law uses reports that come with a SYN.
    pub(crate) hears: bool,
    /// Options of the sockets at both ends.
    pub(crate) options: SocketOptions,
    /// Whether the network carries aggregates: the receiver is woken for lumps of data only
    /// ([`SocketOptions::wake_for_lumps`]).
    pub(crate) over_aggregates: bool,
}

impl FlowPlan {
    /// The end that sends the data.
    pub(crate) fn sender(&self) -> usize {
        self.ends[usize::from(self.spec.direction == Direction::Down)]
    }

    /// Whether the receiver of the data asks for them.
    fn asks(&self) -> bool {
        matches!(self.spec.kind, TrafficKind::Transfers { request: Some(_), .. } | TrafficKind::Video { .. })
    }

    /// Whether the receiver is woken for lumps only. What is measured message by message is read at once.
    fn reads_lumps(&self) -> bool {
        self.over_aggregates && self.spec.kind.is_greedy()
    }

    /// Whether the application opens the next connection where one failed.
    fn goes_on(&self) -> bool {
        matches!(self.spec.kind, TrafficKind::Transfers { .. } | TrafficKind::Video { .. })
    }

    /// What an end is watched for. Who may have nothing to write is told once that there is room.
    fn interest(&self, sends: bool) -> EpollFlags {
        match (self.asks(), sends) {
            (true, _) => EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLET,
            (false, true) => EpollFlags::EPOLLOUT | EpollFlags::EPOLLET,
            (false, false) => EpollFlags::EPOLLIN,
        }
    }
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
    /// Whether a connection ended with an error, and the application goes on with the next.
    pub(crate) broken: bool,
    /// The server has not seen the end of its handshake. This happens when acknowledgements are lost.
    pub(crate) unconnected: bool,
    /// The messages or transfers; empty for an endless flow.
    pub(crate) deliveries: DeliveryMeter,
    /// When each datagram was sent, and its number.
    pub(crate) sent: Vec<(Time, u64)>,
    pub(crate) video: Option<VideoResult>,
}

/// A datagram that has come, or the answer to a ping.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Came {
    pub(crate) at: Time,
    /// Index into the plans.
    pub(crate) flow: usize,
    pub(crate) number: u64,
    pub(crate) sent_at: Time,
}

/// The outcome of the traffic.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    /// By flow, in the order of the plans.
    pub(crate) flows: Vec<FlowReport>,
    pub(crate) samples: Vec<FlowSample>,
    /// Of so many moments the samples of one are there.
    pub(crate) every: u64,
    /// All datagrams that came, in order of time.
    pub(crate) came: Vec<Came>,
    /// The greatest lateness of a reading, or of what an application had to do.
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

    /// With those of earlier connections.
    fn with_past(self, past: Self) -> Self {
        let retransmits = self.retransmits + past.retransmits;
        let timeouts = self.timeouts.or(past.timeouts.map(|_| 0)).map(|now| now + past.timeouts.unwrap_or(0));
        Self { retransmits, timeouts, ..self }
    }

    /// The counters since `warmup`.
    pub(crate) fn since(self, warmup: Self, failed: Option<String>) -> FlowReport {
        FlowReport {
            received: self.received - warmup.received,
            retransmits: self.retransmits - warmup.retransmits,
            timeouts: self.timeouts.map(|timeouts| timeouts - warmup.timeouts.unwrap_or(0)),
            failed,
            ..FlowReport::default()
        }
    }
}

/// All flows of a run, ready to start.
pub(crate) struct Traffic<'a> {
    plans: Vec<FlowPlan>,
    /// In the order of the servers that have flows.
    listeners: Vec<TcpListener>,
    flows: Vec<Flow>,
    epoll: Epoll,
    hosts: &'a Hosts,
    /// The end of the warm-up.
    warm: Time,
    came: Vec<Came>,
    /// The data to send. Also the buffer for received data, which the kernel is told to discard.
    zeroes: Vec<u8>,
}

struct Flow {
    client: OwnedFd,
    server: Option<OwnedFd>,
    /// Whether it has ever been opened.
    started: bool,
    /// Whether its server has ever accepted.
    connected: bool,
    /// What the application has written and the kernel has not taken: of the sender, and of requests.
    unwritten: u64,
    unasked: u64,
    /// Whether the sender closes when all is written, and whether it has.
    closing: bool,
    closed: bool,
    /// Whether the receiver has reached the end of the stream.
    ended: bool,
    /// What the receiver has read of this connection, and what the sender has read of requests.
    read: u64,
    asked: u64,
    received: Bytes,
    /// The counters of earlier connections.
    past: Counted,
    in_warmup: Counted,
    last_info: Option<TcpInfo>,
    failed: Option<String>,
    broken: bool,
    deliveries: DeliveryMeter,
    sent: Vec<(Time, u64)>,
}

/// The socket of an epoll event.
#[derive(Clone, Copy)]
enum Token {
    Listener(usize),
    Client(usize),
    Server(usize),
}

impl<'a> Traffic<'a> {
    /// Creates the sockets: every client in its host's namespace, a listener in each server's
    /// that has flows.
    ///
    /// # Errors
    /// If a socket cannot be created or rejects its congestion control ([`crate::check`] checks for that in advance).
    pub(crate) fn prepare(plans: Vec<FlowPlan>, hosts: &'a Hosts) -> Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).doing("cannot make an epoll instance")?;
        let mut listeners = Vec::with_capacity(hosts.servers().len());
        for (number, server) in (0..).zip(hosts.servers()) {
            // Accepted sockets inherit the options. The answer to a SYN has them, too.
            let is_here = |plan: &&FlowPlan| plan.server == number && plan.spec.kind.is_tcp();
            let Some(plan) = plans.iter().find(is_here) else { continue };
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
            let (client, server) = if plan.spec.kind.is_tcp() {
                (client_socket(plan, number, hosts)?, None)
            } else {
                let [client, server] = datagram_sockets(plan, number, hosts)?;
                for (socket, token) in [(&client, Token::Client(number)), (&server, Token::Server(number))] {
                    epoll.add(socket, token.event(EpollFlags::EPOLLIN)).doing("cannot watch a socket")?;
                }
                (client, Some(server))
            };
            flows.push(Flow {
                client,
                connected: server.is_some(),
                server,
                started: false,
                unwritten: 0,
                unasked: 0,
                closing: false,
                closed: false,
                ended: false,
                read: 0,
                asked: 0,
                received: Bytes::ZERO,
                past: Counted::default(),
                in_warmup: Counted::default(),
                last_info: None,
                failed: None,
                broken: false,
                deliveries: DeliveryMeter::default(),
                sent: Vec::new(),
            });
        }
        Ok(Self {
            plans,
            listeners,
            flows,
            epoll,
            hosts,
            warm: Time::ZERO,
            came: Vec::new(),
            zeroes: vec![0; READ_BYTES],
        })
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
        mut samples: Samples<'_>,
        stop: &AtomicBool,
    ) -> Result<Report> {
        let end = Time::ZERO + schedule.end;
        self.warm = Time::ZERO + schedule.warmup;
        let mut warm = Some(self.warm);
        let mut next_sample = Time::ZERO;
        let looks = self.plans.iter().any(|plan| plan.over_aggregates) || stations.iter().any(Station::queues_in_model);
        let mut next_look = looks.then_some(Time::ZERO);
        let mut late = Span::ZERO;
        let mut events = [EpollEvent::empty(); 64];
        while !stop.load(Ordering::Relaxed) {
            let now = clock.now();
            if now >= end {
                break;
            }
            late = late.max(self.act_all(clock, stations)?);
            if warm.is_some_and(|warm| now >= warm) {
                warm = None;
                self.read_lumps(clock, stations)?;
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
                self.read_lumps(clock, stations)?;
                let read = self.read_senders();
                tell_small_queues(read.into_iter().map(|(flow, info)| (&self.plans[flow], info)), stations);
            }
            let next = self.plans.iter().map(|plan| plan.application.next_at());
            let next = next.chain([next_sample]).chain(warm).chain(next_look).min().unwrap_or(end);
            let sleep = clock.until(next).min(Span::from_millis(20));
            let woken = wait(&self.epoll, &mut events, sleep).doing("cannot wait for the sockets of the traffic")?;
            for event in &events[..woken] {
                self.on_event(event, clock, stations)?;
            }
        }
        self.read_lumps(clock, stations)?;
        self.read_senders();
        let warm = self.warm;
        let until = end.min(clock.now());
        let flows = self.flows.into_iter().zip(&self.plans).map(|(flow, plan)| {
            let report = flow.counted().since(flow.in_warmup, flow.failed.clone());
            let mut deliveries = flow.deliveries;
            plan.application.undelivered().for_each(|since| deliveries.on_undelivered(since));
            let video = plan.application.video(warm, until);
            FlowReport {
                broken: flow.broken,
                unconnected: !flow.connected,
                deliveries,
                sent: flow.sent,
                video,
                ..report
            }
        });
        let (samples, every) = samples.into_parts();
        Ok(Report { flows: flows.collect(), samples, every, came: self.came, late })
    }

    fn on_event(&mut self, event: &EpollEvent, clock: Clock, stations: &[Station]) -> Result<()> {
        let (flow, end) = match Token::of(event) {
            Token::Listener(server) => return self.accept(server, clock, stations),
            Token::Client(flow) => (flow, Direction::Up),
            Token::Server(flow) => (flow, Direction::Down),
        };
        if self.plans[flow].spec.kind.is_datagrams() {
            self.serve_datagrams(flow, end, clock, stations);
            Ok(())
        } else {
            self.serve(flow, end, clock, stations)
        }
    }

    /// Lets all applications do what is due; returns how late the latest was.
    fn act_all(&mut self, clock: Clock, stations: &[Station]) -> Result<Span> {
        let mut late = Span::ZERO;
        for number in 0..self.plans.len() {
            let (now, due) = (clock.now(), self.plans[number].application.next_at());
            if due <= now {
                late = late.max(now - due);
                self.act(number, clock, stations)?;
            }
        }
        Ok(late)
    }

    /// Lets an application do what is due, of more than [`ACTS_AT_ONCE`] a part: whose datagrams come due faster than this
    /// machine sends them must hold up neither the other flows nor the end of the run.
    fn act(&mut self, number: usize, clock: Clock, stations: &[Station]) -> Result<()> {
        let mut actions = Vec::new();
        for _ in 0..ACTS_AT_ONCE {
            let now = clock.now();
            let application = &mut self.plans[number].application;
            if application.next_at() > now {
                break;
            }
            application.act(now, &mut actions);
            for action in actions.drain(..) {
                self.carry_out(number, action, clock, stations)?;
            }
        }
        Ok(())
    }

    fn carry_out(&mut self, number: usize, action: Action, clock: Clock, stations: &[Station]) -> Result<()> {
        let flow = &mut self.flows[number];
        match action {
            Action::Open => return self.open(number),
            Action::Write(size) => flow.unwritten += size.get(),
            Action::WriteOn => flow.unwritten = u64::MAX,
            Action::Pause => flow.unwritten = 0,
            Action::Close => flow.closing = true,
            Action::Ask(size) => flow.unasked += size.get(),
            Action::Send(datagram) => {
                flow.started = true;
                let now = clock.now();
                flow.sent.push((now, datagram));
                let size = match self.plans[number].spec.kind {
                    TrafficKind::Ping { packet, .. } | TrafficKind::Constant { packet, .. } => packet.get() as usize,
                    other => unreachable!("{} sends no datagrams", other.as_str()),
                };
                let direction = self.plans[number].spec.direction;
                self.send_datagram(number, direction, (datagram, now), size - DATAGRAM_HEADERS, stations);
                return Ok(());
            }
            Action::Saturate | Action::Cease => unreachable!("a scenario with saturated traffic is refused"),
        }
        self.flush(number, clock.now());
        Ok(())
    }

    /// Opens a connection. One before it is over.
    fn open(&mut self, number: usize) -> Result<()> {
        let (flow, plan) = (&mut self.flows[number], &self.plans[number]);
        if flow.started {
            flow.read_sender(plan);
            flow.past = flow.counted();
            (flow.server, flow.last_info) = (None, None);
            (flow.unwritten, flow.unasked, flow.read, flow.asked) = (0, 0, 0, 0);
            (flow.closing, flow.closed, flow.ended) = (false, false, false);
            flow.client = client_socket(plan, number, self.hosts)?;
        }
        flow.started = true;
        let server = SockaddrIn::from(SocketAddrV4::new(AddressPlan::server(plan.server), SERVER_PORT));
        let interest = plan.interest(plan.spec.direction == Direction::Up);
        let connected = match socket::connect(flow.client.as_raw_fd(), &server) {
            Ok(()) | Err(Errno::EINPROGRESS) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = connected.and_then(|()| self.epoll.add(&flow.client, Token::Client(number).event(interest)))
        {
            flow.failed = Some(format!("cannot connect: {error}"));
        }
        Ok(())
    }

    fn accept(&mut self, server: usize, clock: Clock, stations: &[Station]) -> Result<()> {
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
            let (flow, plan) = (&mut self.flows[number], &self.plans[number]);
            set_dscp(&accepted, plan.spec.dscp)?;
            let sends = plan.spec.direction == Direction::Down;
            if sends {
                set_congestion_control(&accepted, &plan.congestion_control)?;
            } else if plan.reads_lumps() {
                plan.options.wake_for_lumps(&accepted)?;
            }
            self.epoll
                .add(&accepted, Token::Server(number).event(plan.interest(sends)))
                .doing("cannot watch a socket")?;
            flow.server = Some(accepted);
            flow.connected = true;
            // A client that had to close has waited for this.
            self.serve(number, Direction::Up, clock, stations)?;
        }
    }

    /// Writes what both ends of a flow have to write.
    fn flush(&mut self, number: usize, now: Time) {
        let (flow, plan) = (&mut self.flows[number], &mut self.plans[number]);
        if !flow.started || flow.failed.is_some() {
            return;
        }
        let [sender, receiver] = match plan.spec.direction {
            Direction::Up => [Some(&flow.client), flow.server.as_ref()],
            Direction::Down => [flow.server.as_ref(), Some(&flow.client)],
        };
        let mut outcome = Ok(());
        if let Some(sender) = sender.filter(|_| !flow.closed) {
            outcome = send_all(sender, &self.zeroes[..WRITE_BYTES], &mut flow.unwritten);
            if outcome.is_ok() && flow.closing && flow.unwritten == 0 && flow.server.is_some() {
                let _ = self.epoll.delete(sender);
                close(sender);
                flow.closed = true;
            }
        }
        if let Some(receiver) = receiver.filter(|_| flow.unasked > 0) {
            outcome = outcome.and(send_all(receiver, &self.zeroes[..WRITE_BYTES], &mut flow.unasked));
        }
        if let Err(error) = outcome {
            flow.fail(plan, &self.epoll, now, error);
        }
    }

    /// Handles an event on one end of a flow: the host's ("up") or its server's.
    fn serve(&mut self, number: usize, end: Direction, clock: Clock, stations: &[Station]) -> Result<()> {
        self.flush(number, clock.now());
        let (flow, plan) = (&mut self.flows[number], &mut self.plans[number]);
        let socket = match end {
            Direction::Up => Some(&flow.client),
            Direction::Down => flow.server.as_ref(),
        };
        let Some(socket) = socket.filter(|_| flow.failed.is_none() && !flow.ended) else { return Ok(()) };
        let now = clock.now();
        if plan.spec.direction == end {
            if plan.asks() {
                match receive_all(socket, &mut self.zeroes, plan.asks()) {
                    Ok((asked, _)) => flow.asked += asked.get(),
                    Err(error) => flow.fail(plan, &self.epoll, now, error),
                }
                plan.application.on_asked(now, flow.asked);
            }
            return self.act(number, clock, stations);
        }
        let first = flow.received == Bytes::ZERO;
        match receive_all(socket, &mut self.zeroes, plan.asks()) {
            Ok((received, ended)) => {
                if first && received > Bytes::ZERO {
                    plan.options.on_first_data(socket);
                }
                flow.received += received;
                flow.read += received.get();
                let mut delays = Vec::new();
                plan.application.on_read(now, flow.read, &mut delays);
                if now >= self.warm {
                    delays.into_iter().for_each(|took| flow.deliveries.on_delivered(took));
                }
                if ended {
                    let _ = self.epoll.delete(socket);
                    if !flow.closed {
                        flow.failed = Some("the connection ended before its sender closed it".to_owned());
                    }
                    // The final counters. A finished connection is not sampled again.
                    flow.read_sender(plan);
                    flow.ended = true;
                }
            }
            Err(error) => flow.fail(plan, &self.epoll, now, error),
        }
        self.act(number, clock, stations)
    }

    /// Reads all datagrams that have come to one end of a flow, and answers pings.
    fn serve_datagrams(&mut self, number: usize, end: Direction, clock: Clock, stations: &[Station]) {
        let mut stamp = [0; STAMP_BYTES];
        loop {
            let (flow, plan) = (&mut self.flows[number], &mut self.plans[number]);
            let socket = match end {
                Direction::Up => &flow.client,
                Direction::Down => flow.server.as_ref().expect("a flow of datagrams has both sockets"),
            };
            let flags = MsgFlags::MSG_TRUNC | MsgFlags::MSG_DONTWAIT;
            let payload = match socket::recv(socket.as_raw_fd(), &mut stamp, flags) {
                Ok(payload) if payload >= STAMP_BYTES => payload,
                Ok(_) | Err(Errno::EINTR) => continue,
                Err(Errno::EAGAIN) => return,
                Err(error) => {
                    flow.fail(plan, &self.epoll, clock.now(), error);
                    return;
                }
            };
            let now = clock.now();
            let [datagram, sent_ns] = [0, 8].map(|at| u64::from_be_bytes(std::array::from_fn(|byte| stamp[at + byte])));
            let (is_answer, datagram) = (datagram & ANSWER != 0, datagram & !ANSWER);
            let sent_at = Time::from_nanos(sent_ns);
            let is_ping = matches!(plan.spec.kind, TrafficKind::Ping { .. });
            if !is_answer {
                flow.received += Bytes::new(payload as u64);
            }
            if is_ping && !is_answer {
                self.send_datagram(number, end, (datagram | ANSWER, sent_at), payload, stations);
            } else {
                self.came.push(Came { at: now, flow: number, number: datagram, sent_at });
            }
        }
    }

    /// Sends a datagram from one end. One that has no room is lost, as at any host.
    fn send_datagram(
        &mut self,
        number: usize,
        end: Direction,
        (datagram, sent_at): (u64, Time),
        payload: usize,
        stations: &[Station],
    ) {
        let (flow, plan) = (&mut self.flows[number], &mut self.plans[number]);
        let (socket, end) = match end {
            Direction::Up => (&flow.client, plan.ends[0]),
            Direction::Down => (flow.server.as_ref().expect("a flow of datagrams has both sockets"), plan.ends[1]),
        };
        let mut bytes = [0; MTU];
        bytes[..8].copy_from_slice(&datagram.to_be_bytes());
        bytes[8..STAMP_BYTES].copy_from_slice(&sent_at.as_nanos().to_be_bytes());
        match socket::send(socket.as_raw_fd(), &bytes[..payload], MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT) {
            Ok(_) => stations[end].on_datagram((payload + DATAGRAM_HEADERS) as u64),
            Err(Errno::EAGAIN | Errno::ENOBUFS | Errno::EINTR) => {}
            Err(error) => flow.fail(plan, &self.epoll, sent_at, error),
        }
    }

    /// Reads what has arrived but did not wake its receiver.
    fn read_lumps(&mut self, clock: Clock, stations: &[Station]) -> Result<()> {
        for flow in 0..self.flows.len() {
            let (state, plan) = (&self.flows[flow], &self.plans[flow]);
            if plan.reads_lumps() && state.server.is_some() {
                let receiver = match plan.spec.direction {
                    Direction::Up => Direction::Down,
                    Direction::Down => Direction::Up,
                };
                self.serve(flow, receiver, clock, stations)?;
            }
        }
        Ok(())
    }

    fn sample(&mut self, at: Time, samples: &mut Samples<'_>) {
        let mut infos = self.read_senders().into_iter().peekable();
        for (number, flow) in self.flows.iter().enumerate() {
            let info = infos.next_if(|(of, _)| *of == number).map(|(_, info)| info);
            if flow.started {
                samples.push(FlowSample { at, flow: number, info, received: flow.received });
            }
        }
    }

    /// Reads every sender that exists.
    fn read_senders(&mut self) -> Vec<(usize, TcpInfo)> {
        let mut read = Vec::with_capacity(self.flows.len());
        for (number, (flow, plan)) in self.flows.iter_mut().zip(&self.plans).enumerate() {
            let (true, false, Some(sender), None) = (flow.started, flow.ended, flow.sender(plan), &flow.failed) else {
                continue;
            };
            if plan.spec.kind.is_tcp()
                && let Ok(info) = TcpInfo::read(sender.as_fd())
            {
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
        match plan.spec.direction {
            Direction::Up => Some(&self.client),
            Direction::Down => self.server.as_ref(),
        }
    }

    /// Takes the sender's latest counters.
    fn read_sender(&mut self, plan: &FlowPlan) {
        let info = self.sender(plan).and_then(|sender| TcpInfo::read(sender.as_fd()).ok());
        self.last_info = info.or(self.last_info);
    }

    fn counted(&self) -> Counted {
        Counted::new(self.received, self.last_info).with_past(self.past)
    }

    /// Nothing more happens on this connection; whether there is a next one is the application's matter.
    fn fail(&mut self, plan: &mut FlowPlan, epoll: &Epoll, now: Time, error: Errno) {
        for socket in [Some(&self.client), self.server.as_ref()].into_iter().flatten() {
            let _ = epoll.delete(socket);
        }
        if plan.goes_on() {
            self.read_sender(plan);
            (self.broken, self.ended, self.closed, self.unasked) = (true, true, true, 0);
            plan.application.on_failed(now);
        } else {
            self.failed = Some(format!("the connection ended: {error}"));
        }
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
        permitted[plan.sender()] += plan.options.small_queue(info.pacing_rate);
    }
    stations.iter().zip(permitted).for_each(|(station, bytes)| station.permit(bytes));
}

/// A client's socket, in its host's namespace.
fn client_socket(plan: &FlowPlan, number: usize, hosts: &Hosts) -> Result<OwnedFd> {
    let port = client_port(number);
    hosts.hosts()[usize::from(plan.spec.host)].run(|| {
        let client = tcp_socket(AddressPlan::host(plan.spec.host), port)?;
        plan.options.on_new(&client)?;
        if plan.reads_lumps() && plan.spec.direction == Direction::Down {
            plan.options.wake_for_lumps(&client)?;
        }
        // Also for a download, whose sender is the server: an unknown name must fail before the run.
        set_congestion_control(&client, &plan.congestion_control)?;
        set_dscp(&client, plan.spec.dscp)?;
        Ok(client)
    })
}

/// The sockets of a flow of datagrams, at its host and at its server, connected with each other. Both have the flow's
/// port.
fn datagram_sockets(plan: &FlowPlan, number: usize, hosts: &Hosts) -> Result<[OwnedFd; 2]> {
    let port = client_port(number);
    let host = (AddressPlan::host(plan.spec.host), &hosts.hosts()[usize::from(plan.spec.host)]);
    let server = (AddressPlan::server(plan.server), &hosts.servers()[usize::from(plan.server)]);
    let socket = |(here, namespace): (Ipv4Addr, &Namespace), there: Ipv4Addr| {
        namespace.run(|| {
            let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
            let socket = socket::socket(AddressFamily::Inet, SockType::Datagram, flags, None)
                .doing("cannot make a UDP socket")?;
            setsockopt(&socket, Mark, &OF_LABORATORY).doing("cannot set SO_MARK of a socket")?;
            setsockopt(&socket, SndBufForce, &DATAGRAM_BUFFER).doing("cannot set SO_SNDBUF of a socket")?;
            setsockopt(&socket, RcvBufForce, &DATAGRAM_BUFFER).doing("cannot set SO_RCVBUF of a socket")?;
            set_dscp(&socket, plan.spec.dscp)?;
            let address = |of: Ipv4Addr| SockaddrIn::from(SocketAddrV4::new(of, port));
            socket::bind(socket.as_raw_fd(), &address(here))
                .doing(format_args!("cannot bind a socket to {here}:{port}"))?;
            socket::connect(socket.as_raw_fd(), &address(there)).doing("cannot connect a UDP socket")?;
            Ok(socket)
        })
    };
    Ok([socket(host, server.0)?, socket(server, host.0)?])
}

fn tcp_socket(address: Ipv4Addr, port: u16) -> Result<OwnedFd> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let socket =
        socket::socket(AddressFamily::Inet, SockType::Stream, flags, None).doing("cannot make a TCP socket")?;
    reset_when_closed(&socket)?;
    // The next connection of a flow has the port of the one before.
    setsockopt(&socket, ReuseAddr, &true).doing("cannot set SO_REUSEADDR of a socket")?;
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
fn receive_all(socket: &OwnedFd, unused: &mut [u8], on_edges: bool) -> nix::Result<(Bytes, bool)> {
    let mut total = Bytes::ZERO;
    loop {
        match socket::recv(socket.as_raw_fd(), unused, MsgFlags::MSG_TRUNC | MsgFlags::MSG_DONTWAIT) {
            Ok(0) => return Ok((total, true)),
            Ok(received) => {
                total += Bytes::new(received as u64);
                // An end that came with the last data raises no further edge (epoll(7)).
                if !on_edges && received < unused.len() {
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
    fn an_end_that_came_with_the_last_data_is_seen_with_them() {
        let flags = SockFlag::SOCK_CLOEXEC;
        let (sender, receiver) =
            socket::socketpair(AddressFamily::Unix, SockType::Stream, None, flags).expect("a pair of sockets");
        let mut unused = [0; 4096];
        nix::unistd::write(&sender, &[0; 100]).expect("room");
        assert_eq!(receive_all(&receiver, &mut unused, true), Ok((Bytes::new(100), false)));
        nix::unistd::write(&sender, &[0; 100]).expect("room");
        close(&sender);
        assert_eq!(receive_all(&receiver, &mut unused, true), Ok((Bytes::new(100), true)));
    }

    #[test]
    fn counters_of_earlier_connections_are_kept() {
        let counted = |retransmits, timeouts| Counted { received: Bytes::new(9), retransmits, timeouts };
        let sum = |now: Counted, past| (now.with_past(past).retransmits, now.with_past(past).timeouts);
        assert_eq!(sum(counted(2, Some(1)), counted(3, Some(4))), (5, Some(5)));
        // Between two connections nothing is counted.
        assert_eq!(sum(counted(0, None), counted(3, Some(4))), (3, Some(4)));
        assert_eq!(sum(counted(1, None), counted(3, None)), (4, None));
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
            if plan.spec.host == 0 {
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

    /// A call and pings, with all datagrams due since this machine started.
    #[test]
    fn a_flow_that_cannot_keep_up_leaves_the_others_their_turn() {
        if !nix::unistd::geteuid().is_root() {
            assert!(std::env::var_os("LASTHOP_REQUIRE_ROOT_TESTS").is_none(), "kernel hosts need root");
            eprintln!("skipped: kernel hosts need root");
            return;
        }
        let flows = "[[hosts.flows]]\nkind = \"constant\"\n[[hosts.flows]]\nkind = \"ping\"\n";
        let scenario = lasthop_scenario::Scenario::from_toml("x.toml", &format!("[[hosts]]\n{flows}"), &[]);
        let scenario = scenario.expect("a scenario");
        let specs = scenario.expanded_hosts();
        let servers = crate::hosts::Servers::of(&scenario, &specs).expect("servers");
        let hosts = Hosts::new(&scenario, &specs, &servers, None).expect("namespaces");
        let laws = crate::laws::Laws::load(&specs).expect("none");
        let plans = crate::flow_plans(scenario.seed, &specs, &servers, &laws, false);
        let mut traffic = Traffic::prepare(plans, &hosts).expect("sockets");
        let stations = [Station::new(false), Station::new(false)];
        let late = traffic.act_all(Clock::started_at_monotonic_ns(0), &stations).expect("sockets");
        assert!(late > Span::from_secs(20), "{late:?}");
        let sent: Vec<usize> = traffic.flows.iter().map(|flow| flow.sent.len()).collect();
        assert_eq!(sent, [ACTS_AT_ONCE; 2]);
    }

    /// Carries the scenario's flows, without a network in between, until all have received this much or seem stuck.
    fn until_all_have(enough: Bytes, scenario: &lasthop_scenario::Scenario) -> (Traffic<'static>, &'static Hosts) {
        let specs = scenario.expanded_hosts();
        let servers = crate::hosts::Servers::of(scenario, &specs).expect("servers");
        // For as long as this process lives.
        let hosts: &'static Hosts =
            Box::leak(Box::new(Hosts::new(scenario, &specs, &servers, None).expect("namespaces")));
        let laws = crate::laws::Laws::load(&specs).expect("none");
        let plans = crate::flow_plans(scenario.seed, &specs, &servers, &laws, false);
        let mut traffic = Traffic::prepare(plans, hosts).expect("sockets");
        let enough = vec![enough; traffic.flows.len()];
        carry_until(&enough, &mut traffic, Clock::start());
        (traffic, hosts)
    }

    fn carry_until(enough: &[Bytes], traffic: &mut Traffic<'_>, clock: Clock) {
        let over = AtomicBool::new(false);
        let hosts = traffic.hosts;
        std::thread::scope(|scope| {
            scope.spawn(|| carry_at_once(hosts, &over));
            let stations = Vec::new();
            let mut events = [EpollEvent::empty(); 64];
            let deadline = clock.now() + Span::from_secs(20);
            traffic.act_all(clock, &stations).expect("sockets");
            let lacks =
                |traffic: &Traffic<'_>| traffic.flows.iter().zip(enough).any(|(flow, enough)| flow.received < *enough);
            while lacks(traffic) && clock.now() < deadline {
                let woken = wait(&traffic.epoll, &mut events, Span::from_millis(20)).expect("events");
                for event in &events[..woken] {
                    traffic.on_event(event, clock, &stations).expect("sockets");
                }
            }
            over.store(true, Ordering::Relaxed);
        });
    }

    /// A page and a video; then their connections break.
    #[test]
    fn transfers_and_videos_go_on_with_the_next_connection_where_one_failed() {
        const ENOUGH: Bytes = Bytes::new(20_000);

        if !nix::unistd::geteuid().is_root() {
            assert!(std::env::var_os("LASTHOP_REQUIRE_ROOT_TESTS").is_none(), "kernel hosts need root");
            eprintln!("skipped: kernel hosts need root");
            return;
        }
        let flows = ["kind = \"transfers\"\ntransfer_kib = 1000\noff_s = 0", "kind = \"video\"\ndirection = \"down\""];
        let text = format!("[[hosts]]\n{}", flows.map(|keys| format!("[[hosts.flows]]\n{keys}\n")).concat());
        let scenario = lasthop_scenario::Scenario::from_toml("x.toml", &text, &[]).expect("a scenario");
        let (mut traffic, _) = until_all_have(ENOUGH, &scenario);
        let enough: Vec<Bytes> = traffic.flows.iter().map(|flow| flow.received + ENOUGH).collect();
        for (flow, plan) in traffic.flows.iter_mut().zip(&mut traffic.plans) {
            flow.fail(plan, &traffic.epoll, Time::ZERO, Errno::ETIMEDOUT);
        }
        // A clock that is ahead of the one before.
        carry_until(&enough, &mut traffic, Clock::started_at_monotonic_ns(0));
        for (flow, enough) in traffic.flows.iter().zip(enough) {
            let said = format!("{} of {enough}, {:?}", flow.received, flow.failed);
            assert!(flow.received >= enough && flow.failed.is_none() && flow.broken, "{said}");
        }
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
