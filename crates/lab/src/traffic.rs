//! The laboratory's own traffic: what the scenario's applications send through the hosts' kernels, with the `TCP_INFO` of
//! each connection.
//!
//! What is sent when, and what becomes of an answer, is the matter of [`lasthop_traffic`], as with simulated hosts. Here
//! are the sockets. Every socket is created in its host's namespace before the run, and connects when its application
//! opens it; a further connection of the flow has a socket of its own. The sender writes zeroes as fast as its kernel
//! takes them, as many as the application has written. The receiver counts and discards. One thread serves all flows
//! and reads `TCP_INFO` of every sender at a fixed interval.
//!
//! Closing a socket resets its connection ([`reset_when_closed`]), so none outlives the run or the process. A connection
//! with a successor is closed when its receiver has read the end: its port is free at once, without TIME-WAIT.

mod datagrams;
mod plan;
mod sockets;
#[cfg(test)]
mod tests;

pub(crate) use plan::{Came, Counted, FlowPlan, FlowReport, Report};
pub(crate) use sockets::{offered_congestion_controls, reset_when_closed};

use crate::addresses::{AddressPlan, flow_of_port};
use crate::clock::{Clock, Schedule};
use crate::error::{Doing, Result};
use crate::hosts::Hosts;
use crate::real_time::wait;
use crate::samples::{FlowSample, Samples};
use crate::small_queues::Station;
use datagrams::{DATAGRAM_HEADERS, datagram_sockets};
use lasthop_connection::TcpState;
use lasthop_kernel::tcp_state;
use lasthop_laws::LawName;
use lasthop_network::schedule::Schedule as Due;
use lasthop_scenario::{Direction, Kind as _, SERVER_PORT};
use lasthop_traffic::{Action, Copies, Message};
use lasthop_units::{Bytes, Span, Time};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::socket::{self, Backlog, SockaddrIn};
use sockets::{client_socket, close, receive_all, send_all, set_congestion_control, set_dscp, tcp_socket};
use std::io::ErrorKind;
use std::net::{SocketAddrV4, TcpListener};
use std::os::fd::{AsRawFd, OwnedFd};
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

/// All flows of a run, ready to start.
pub(crate) struct Traffic<'a> {
    plans: Vec<FlowPlan>,
    /// In the order of the servers that have flows.
    /// Of each server with TCP, and whether its receivers must echo each mark of congestion for itself.
    listeners: Vec<(TcpListener, bool)>,
    flows: Vec<Flow>,
    /// When each application has something to do next.
    due: Due,
    epoll: Epoll,
    hosts: &'a Hosts,
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
    /// Whether it is over and has been sampled since.
    told: bool,
    /// What the receiver has read of this connection, and what the sender has read of requests.
    read: u64,
    asked: u64,
    received: Bytes,
    /// The counters of earlier connections.
    past: Counted,
    in_warmup: Counted,
    last_state: Option<TcpState>,
    failed: Option<String>,
    broken: bool,
    delivered: Vec<(Time, Message)>,
    sent: Vec<(Time, u64)>,
    /// Which datagrams have come to their receiver, and which answers to their sender.
    copies: [Copies; 2],
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
            let is_here = |plan: &&FlowPlan| plan.server == number && plan.is_tcp();
            let Some(plan) = plans.iter().find(is_here) else { continue };
            // tcp_ecn_create_request(): the kernel agrees to a SYN that is itself ECT, as DCTCP's is, where the listener has DCTCP, too.
            let echoing = plans.iter().filter(is_here).find(|plan| plan.congestion_control == LawName::Dctcp.as_str());
            let listener = server.run(|| {
                let listener = tcp_socket(AddressPlan::server(number), SERVER_PORT)?;
                plan.options.on_new(&listener)?;
                if let Some(plan) = Some(plan).filter(|plan| plan.hears).or(echoing) {
                    set_congestion_control(&listener, &plan.congestion_control)?;
                }
                socket::listen(&listener, Backlog::new(4096).expect("4096 is a legal backlog"))
                    .doing("cannot listen in a server's namespace")?;
                Ok(TcpListener::from(listener))
            })?;
            epoll
                .add(&listener, Token::Listener(listeners.len()).event(EpollFlags::EPOLLIN))
                .doing("cannot watch a socket")?;
            listeners.push((listener, echoing.is_some()));
        }
        let mut flows = Vec::with_capacity(plans.len());
        for (number, plan) in plans.iter().enumerate() {
            let (client, server) = if plan.is_tcp() {
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
                told: false,
                read: 0,
                asked: 0,
                received: Bytes::ZERO,
                past: Counted::default(),
                in_warmup: Counted::default(),
                last_state: None,
                failed: None,
                broken: false,
                delivered: Vec::new(),
                sent: Vec::new(),
                copies: Default::default(),
            });
        }
        let mut due = Due::new(plans.len());
        plans.iter().enumerate().for_each(|(number, plan)| due.set(number, plan.application.next_at()));
        Ok(Self { plans, listeners, flows, due, epoll, hosts, came: Vec::new(), zeroes: vec![0; READ_BYTES] })
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
        let warm_at = Time::ZERO + schedule.warmup;
        let mut warm = Some(warm_at);
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
            late = late.max(self.act_all(clock)?);
            if warm.is_some_and(|warm| now >= warm) {
                warm = None;
                self.read_lumps(clock)?;
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
                self.read_lumps(clock)?;
                let read = self.read_senders();
                tell_small_queues(read.into_iter().map(|(flow, tcp)| (&self.plans[flow], tcp)), stations, now);
            }
            let next = [self.due.first_at(), next_sample].into_iter();
            let next = next.chain(warm).chain(next_look).min().unwrap_or(end);
            let sleep = clock.until(next).min(Span::from_millis(20));
            let woken = wait(&self.epoll, &mut events, sleep).doing("cannot wait for the sockets of the traffic")?;
            for event in &events[..woken] {
                self.on_event(event, clock)?;
            }
        }
        self.read_lumps(clock)?;
        self.read_senders();
        let until = end.min(clock.now());
        let flows = self.flows.into_iter().zip(&self.plans).map(|(flow, plan)| {
            let report = flow.counted().since(flow.in_warmup, flow.failed.clone());
            let video = plan.application.video(warm_at, until);
            FlowReport {
                broken: flow.broken,
                unconnected: flow.started && !flow.connected,
                delivered: flow.delivered,
                undelivered: plan.application.undelivered().collect(),
                sent: flow.sent,
                video,
                ..report
            }
        });
        let (samples, every) = samples.into_parts();
        Ok(Report { flows: flows.collect(), samples, every, came: self.came, late })
    }

    fn on_event(&mut self, event: &EpollEvent, clock: Clock) -> Result<()> {
        let (flow, end) = match Token::of(event) {
            Token::Listener(server) => return self.accept(server, clock),
            Token::Client(flow) => (flow, Direction::Up),
            Token::Server(flow) => (flow, Direction::Down),
        };
        if !self.plans[flow].is_tcp() {
            self.serve_datagrams(flow, end, clock);
            Ok(())
        } else {
            self.serve(flow, end, clock)
        }
    }

    /// Lets all applications do what is due; returns how late the latest was.
    fn act_all(&mut self, clock: Clock) -> Result<Span> {
        let (mut late, mut acted) = (Span::ZERO, Vec::new());
        loop {
            let (now, due, number) = (clock.now(), self.due.first_at(), self.due.first());
            if due > now {
                break;
            }
            late = late.max(now - due);
            self.act(number, clock)?;
            // Its turn comes again when all others have had theirs.
            self.due.set(number, Time::MAX);
            acted.push(number);
        }
        acted.into_iter().for_each(|number| self.due.set(number, self.plans[number].application.next_at()));
        Ok(late)
    }

    /// Lets an application do what is due, of more than [`ACTS_AT_ONCE`] a part: whose datagrams come due faster than this
    /// machine sends them must hold up neither the other flows nor the end of the run.
    fn act(&mut self, number: usize, clock: Clock) -> Result<()> {
        let mut actions = Vec::new();
        for _ in 0..ACTS_AT_ONCE {
            let now = clock.now();
            let application = &mut self.plans[number].application;
            if application.next_at() > now {
                break;
            }
            application.act(now, &mut actions);
            for action in actions.drain(..) {
                self.carry_out(number, action, clock)?;
            }
        }
        self.due.set(number, self.plans[number].application.next_at());
        Ok(())
    }

    fn carry_out(&mut self, number: usize, action: Action, clock: Clock) -> Result<()> {
        let flow = &mut self.flows[number];
        match action {
            Action::Open => return self.open(number),
            Action::Write(size) => flow.unwritten += size.get(),
            Action::WriteOn => flow.unwritten = u64::MAX,
            Action::Pause => flow.unwritten = 0,
            Action::Close => flow.closing = true,
            Action::Ask(size) => flow.unasked += size.get(),
            Action::Send { number: datagram, packet } => {
                flow.started = true;
                let now = clock.now();
                flow.sent.push((now, datagram));
                let direction = self.plans[number].spec.direction;
                self.send_datagram(number, direction, (datagram, now), packet.get() as usize - DATAGRAM_HEADERS);
                return Ok(());
            }
            Action::Saturate(_) | Action::Cease => unreachable!("a scenario with saturated traffic is refused"),
        }
        self.flush(number, &[Direction::Up, Direction::Down], clock.now());
        Ok(())
    }

    /// Opens a connection. One before it is over.
    fn open(&mut self, number: usize) -> Result<()> {
        let (flow, plan) = (&mut self.flows[number], &self.plans[number]);
        if flow.started {
            flow.read_sender(plan);
            flow.past = flow.counted();
            (flow.server, flow.last_state) = (None, None);
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

    fn accept(&mut self, server: usize, clock: Clock) -> Result<()> {
        loop {
            let (listener, echoes) = &self.listeners[server];
            let (accepted, client) = match listener.accept() {
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
            if sends || *echoes {
                set_congestion_control(&accepted, &plan.congestion_control)?;
            }
            if !sends && plan.reads_lumps() {
                plan.options.wake_for_lumps(&accepted)?;
            }
            self.epoll
                .add(&accepted, Token::Server(number).event(plan.interest(sends)))
                .doing("cannot watch a socket")?;
            flow.server = Some(accepted);
            flow.connected = true;
            // A client that had to close has waited for this.
            self.serve(number, Direction::Up, clock)?;
        }
    }

    /// Writes what these ends of a flow have to write.
    fn flush(&mut self, number: usize, of: &[Direction], now: Time) {
        let (flow, plan) = (&mut self.flows[number], &mut self.plans[number]);
        if !flow.started || flow.failed.is_some() {
            return;
        }
        let [sender, receiver] = match plan.spec.direction {
            Direction::Up => [Some(&flow.client), flow.server.as_ref()],
            Direction::Down => [flow.server.as_ref(), Some(&flow.client)],
        };
        let mut outcome = Ok(());
        let writes = of.contains(&plan.spec.direction);
        if let Some(sender) = sender.filter(|_| writes && !flow.closed) {
            outcome = send_all(sender, &self.zeroes[..WRITE_BYTES], &mut flow.unwritten);
            if outcome.is_ok() && flow.closing && flow.unwritten == 0 && flow.server.is_some() {
                let _ = self.epoll.delete(sender);
                close(sender);
                flow.closed = true;
            }
        }
        let asks = of.iter().any(|end| *end != plan.spec.direction);
        if let Some(receiver) = receiver.filter(|_| asks && flow.unasked > 0) {
            outcome = outcome.and(send_all(receiver, &self.zeroes[..WRITE_BYTES], &mut flow.unasked));
        }
        if let Err(error) = outcome {
            flow.fail(plan, &self.epoll, now, error);
            self.due.set(number, plan.application.next_at());
        }
    }

    /// Handles an event on one end of a flow: the host's ("up") or its server's.
    ///
    /// This end alone writes. A write into a full send buffer still fills the last packet of the queue (tcp_sendmsg()), so
    /// a sender that wrote whenever its receiver has read would fill several times its send buffer.
    fn serve(&mut self, number: usize, end: Direction, clock: Clock) -> Result<()> {
        self.flush(number, &[end], clock.now());
        let (flow, plan) = (&mut self.flows[number], &mut self.plans[number]);
        let socket = match end {
            Direction::Up => Some(&flow.client),
            Direction::Down => flow.server.as_ref(),
        };
        let Some(socket) = socket.filter(|_| flow.failed.is_none() && !flow.ended) else { return Ok(()) };
        let now = clock.now();
        if plan.spec.direction == end {
            if plan.spec.kind.asks() {
                match receive_all(socket, &mut self.zeroes, plan.spec.kind.asks()) {
                    Ok((asked, _)) => flow.asked += asked.get(),
                    Err(error) => flow.fail(plan, &self.epoll, now, error),
                }
                plan.application.on_asked(now, flow.asked);
            }
            return self.act(number, clock);
        }
        let first = flow.received == Bytes::ZERO;
        match receive_all(socket, &mut self.zeroes, plan.spec.kind.asks()) {
            Ok((received, ended)) => {
                if first && received > Bytes::ZERO {
                    plan.options.on_first_data(socket);
                }
                flow.received += received;
                flow.read += received.get();
                let mut complete = Vec::new();
                plan.application.on_read(now, flow.read, &mut complete);
                flow.delivered.extend(complete.into_iter().map(|message| (now, message)));
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
        self.act(number, clock)
    }

    /// Reads what has arrived but did not wake its receiver.
    fn read_lumps(&mut self, clock: Clock) -> Result<()> {
        for flow in 0..self.flows.len() {
            let (state, plan) = (&self.flows[flow], &self.plans[flow]);
            if plan.reads_lumps() && state.server.is_some() {
                let receiver = match plan.spec.direction {
                    Direction::Up => Direction::Down,
                    Direction::Down => Direction::Up,
                };
                self.serve(flow, receiver, clock)?;
            }
        }
        Ok(())
    }

    fn sample(&mut self, at: Time, samples: &mut Samples<'_>) {
        let mut states = self.read_senders().into_iter().peekable();
        for (number, flow) in self.flows.iter_mut().enumerate() {
            let tcp = states.next_if(|(of, _)| *of == number).map(|(_, tcp)| tcp);
            // A transfer of an open loop is sampled until it is over, and once then.
            if flow.started && !flow.told {
                flow.told = flow.ended && self.plans[number].spec.arrival.is_some();
                samples.push(FlowSample { at, flow: number, tcp, received: flow.received });
            }
        }
    }

    /// Reads every sender that exists.
    fn read_senders(&mut self) -> Vec<(usize, TcpState)> {
        let mut read = Vec::with_capacity(self.flows.len());
        for (number, (flow, plan)) in self.flows.iter_mut().zip(&self.plans).enumerate() {
            let (true, false, Some(sender), None) = (flow.started, flow.ended, flow.sender(plan), &flow.failed) else {
                continue;
            };
            if plan.is_tcp()
                && let Ok(tcp) = tcp_state(sender)
            {
                flow.last_state = Some(tcp);
                read.push((number, tcp));
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
        let state = self.sender(plan).and_then(|sender| tcp_state(sender).ok());
        self.last_state = state.or(self.last_state);
    }

    fn counted(&self) -> Counted {
        Counted::new(self.received, self.last_state).with_past(self.past)
    }

    /// Nothing more happens on this connection; whether there is a next one is the application's matter.
    fn fail(&mut self, plan: &mut FlowPlan, epoll: &Epoll, now: Time, error: Errno) {
        for socket in [Some(&self.client), self.server.as_ref()].into_iter().flatten() {
            let _ = epoll.delete(socket);
        }
        if plan.spec.kind.goes_on() {
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

/// Tells each station what the senders there together may have below their sockets. One that rests may begin at any time.
pub(crate) fn tell_small_queues<'a>(
    senders: impl Iterator<Item = (&'a FlowPlan, TcpState)>,
    stations: &[Station],
    now: Time,
) {
    let (mut busy, mut resting) = (vec![Bytes::ZERO; stations.len()], vec![Bytes::ZERO; stations.len()]);
    for (plan, tcp) in senders {
        let small_queue = plan.options.small_queue(&tcp);
        if tcp.has_data() {
            busy[plan.sender()] += stations[plan.sender()].in_model(small_queue);
        } else {
            resting[plan.sender()] = resting[plan.sender()].max(small_queue);
        }
    }
    for (station, (busy, resting)) in stations.iter().zip(busy.into_iter().zip(resting)) {
        station.permit(busy.max(resting), now);
    }
}
