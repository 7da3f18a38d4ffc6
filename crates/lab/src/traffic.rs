//! The laboratory's own traffic: bulk TCP up and down through the hosts' kernels, and what `TCP_INFO` says of it.
//!
//! Every socket is made in its host's namespace before the run starts and connected at the flow's start time. The sender
//! writes zeroes as fast as its kernel takes them, the receiver counts and discards. One thread serves all flows and
//! reads `TCP_INFO` of every sender at a fixed interval.

use crate::clock::Clock;
use crate::namespace::Namespace;
use crate::real_time::{AddressPlan, Schedule};
use crate::tcp_info::TcpInfo;
use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::socket::{
    self, AddressFamily, Backlog, MsgFlags, SockFlag, SockType, SockaddrIn, setsockopt, sockopt::TcpCongestion,
};
use scenario::Direction;
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use units::{Bytes, Span, Time};

/// Where the server listens.
const SERVER_PORT: u16 = 5001;
/// A flow's client is bound to this port plus the flow's number, so that the server knows which flow it accepts.
const FIRST_CLIENT_PORT: u16 = 10_000;
/// What one write offers: iperf's default for TCP.
const WRITE_BYTES: usize = 128 * 1024;

/// One flow that is to run.
#[derive(Clone, Debug)]
pub(crate) struct FlowPlan {
    pub(crate) host: u16,
    pub(crate) direction: Direction,
    /// A name that the kernel offers.
    pub(crate) congestion_control: String,
    /// When the client connects.
    pub(crate) start: Time,
}

/// A reading of one flow's sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowSample {
    pub(crate) at: Time,
    /// Index into the plans.
    pub(crate) flow: usize,
    pub(crate) info: TcpInfo,
    /// What the receiving application has got since the connection began.
    pub(crate) received: Bytes,
}

/// How one flow went, without the warm-up.
#[derive(Clone, Debug, Default)]
pub(crate) struct FlowReport {
    /// What the receiving application got.
    pub(crate) received: Bytes,
    pub(crate) retransmits: u32,
    pub(crate) timeouts: Option<u32>,
    /// Why the flow ended before the run did.
    pub(crate) failed: Option<String>,
    /// The server has not seen the end of its handshake: where acknowledgements are lost, that happens.
    pub(crate) unconnected: bool,
}

/// How the traffic went.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    /// By flow, in the order of the plans.
    pub(crate) flows: Vec<FlowReport>,
    pub(crate) samples: Vec<FlowSample>,
    /// How late the latest reading was, and so whatever else was to be done: writing, reading, starting a flow.
    pub(crate) late: Span,
}

/// What a flow has counted so far: kept once at the end of the warm-up, and again at the end.
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

    /// What came after `warmup`.
    pub(crate) fn since(self, warmup: Self, failed: Option<String>) -> FlowReport {
        FlowReport {
            received: self.received - warmup.received,
            retransmits: self.retransmits - warmup.retransmits,
            timeouts: self.timeouts.map(|timeouts| timeouts - warmup.timeouts.unwrap_or(0)),
            failed,
            unconnected: false,
        }
    }
}

/// All flows of a run, ready to start.
pub(crate) struct Traffic {
    plans: Vec<FlowPlan>,
    listener: OwnedFd,
    flows: Vec<Flow>,
    epoll: Epoll,
}

struct Flow {
    client: OwnedFd,
    server: Option<OwnedFd>,
    started: bool,
    received: Bytes,
    in_warmup: Counted,
    last_info: Option<TcpInfo>,
    failed: Option<String>,
}

/// Which socket an epoll event is about.
#[derive(Clone, Copy)]
enum Token {
    Listener,
    Client(usize),
    Server(usize),
}

impl Traffic {
    /// Makes the sockets: every client in its host's namespace, the listener in the server's.
    ///
    /// # Errors
    /// If a socket cannot be made or does not take its congestion control ([`crate::check`] looks for that before).
    pub(crate) fn prepare(plans: Vec<FlowPlan>, hosts: &[Namespace], server: &Namespace) -> Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).context("cannot make an epoll instance")?;
        let listener = server.run(|| {
            let listener = tcp_socket(AddressPlan::SERVER, SERVER_PORT)?;
            socket::listen(&listener, Backlog::new(4096).expect("4096 is a legal backlog"))
                .context("cannot listen in the server's namespace")?;
            Ok(listener)
        })?;
        epoll.add(&listener, Token::Listener.event(EpollFlags::EPOLLIN))?;
        let mut flows = Vec::with_capacity(plans.len());
        for (number, plan) in plans.iter().enumerate() {
            let port = u16::try_from(number).ok().and_then(|number| FIRST_CLIENT_PORT.checked_add(number));
            let port = port.with_context(|| format!("more than {} flows", u16::MAX - FIRST_CLIENT_PORT))?;
            let client = hosts[usize::from(plan.host)].run(|| {
                let client = tcp_socket(AddressPlan::host(plan.host), port)?;
                // Also for a download, whose sender is the server: an unknown name is found before the run starts.
                set_congestion_control(&client, &plan.congestion_control)?;
                Ok(client)
            })?;
            flows.push(Flow {
                client,
                server: None,
                started: false,
                received: Bytes::ZERO,
                in_warmup: Counted::default(),
                last_info: None,
                failed: None,
            });
        }
        Ok(Self { plans, listener, flows, epoll })
    }

    /// Runs the flows until the schedule's end, or until `stop` is set.
    ///
    /// # Errors
    /// If the laboratory itself fails; a flow that fails is reported and the others go on.
    pub(crate) fn run(mut self, clock: Clock, schedule: Schedule, stop: &AtomicBool) -> Result<Report> {
        let zeroes = vec![0; WRITE_BYTES];
        let end = Time::ZERO + schedule.end;
        let mut warm = Some(Time::ZERO + schedule.warmup);
        let mut next_sample = Time::ZERO;
        let (mut samples, mut late) = (Vec::new(), Span::ZERO);
        let mut events = [EpollEvent::empty(); 64];
        while !stop.load(Ordering::Relaxed) {
            let now = clock.now();
            if now >= end {
                break;
            }
            self.start_due(now);
            if warm.is_some_and(|warm| now >= warm) {
                warm = None;
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
            let waiting = self.flows.iter().zip(&self.plans).filter(|(flow, _)| !flow.started);
            let next = waiting.map(|(_, plan)| plan.start).chain([next_sample]).chain(warm).min().unwrap_or(end);
            let wait = clock.until(next).min(Span::from_millis(20)).as_nanos().div_ceil(1_000_000);
            let woken = match self.epoll.wait(&mut events, EpollTimeout::from(wait as u8)) {
                Ok(woken) => woken,
                Err(Errno::EINTR) => 0,
                Err(error) => return Err(error).context("cannot wait for the traffic's sockets"),
            };
            for event in &events[..woken] {
                match Token::of(event) {
                    Token::Listener => self.accept()?,
                    Token::Client(flow) => self.serve(flow, Direction::Up, &zeroes),
                    Token::Server(flow) => self.serve(flow, Direction::Down, &zeroes),
                }
            }
        }
        self.read_senders();
        let flows = self.flows.iter().map(|flow| {
            let report = flow.counted().since(flow.in_warmup, flow.failed.clone());
            FlowReport { unconnected: flow.server.is_none(), ..report }
        });
        Ok(Report { flows: flows.collect(), samples, late })
    }

    fn start_due(&mut self, now: Time) {
        for (number, (flow, plan)) in self.flows.iter_mut().zip(&self.plans).enumerate() {
            if flow.started || now < plan.start {
                continue;
            }
            flow.started = true;
            let server = SockaddrIn::from(SocketAddrV4::new(AddressPlan::SERVER, SERVER_PORT));
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

    fn accept(&mut self) -> Result<()> {
        loop {
            let accepted =
                match socket::accept4(self.listener.as_raw_fd(), SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC) {
                    // SAFETY: the kernel has just given us this descriptor, and nobody else has it.
                    Ok(descriptor) => unsafe { OwnedFd::from_raw_fd(descriptor) },
                    Err(Errno::EAGAIN) => return Ok(()),
                    Err(Errno::ECONNABORTED | Errno::EINTR) => continue,
                    Err(error) => return Err(error).context("cannot accept a connection in the server's namespace"),
                };
            let client: SockaddrIn =
                socket::getpeername(accepted.as_raw_fd()).context("an accepted socket has no peer")?;
            let Some(number) = flow_of_port(client.port()).filter(|&number| number < self.flows.len()) else {
                continue;
            };
            let flow = &mut self.flows[number];
            let plan = &self.plans[number];
            let interest = match plan.direction {
                Direction::Up => EpollFlags::EPOLLIN,
                Direction::Down => {
                    set_congestion_control(&accepted, &plan.congestion_control)?;
                    EpollFlags::EPOLLOUT
                }
            };
            self.epoll.add(&accepted, Token::Server(number).event(interest))?;
            flow.server = Some(accepted);
        }
    }

    /// An event on one side of a flow: the side that `sends_in` this direction sends, the other receives.
    fn serve(&mut self, number: usize, sends_in: Direction, zeroes: &[u8]) {
        let flow = &mut self.flows[number];
        let socket = match sends_in {
            Direction::Up => Some(&flow.client),
            Direction::Down => flow.server.as_ref(),
        };
        let Some(socket) = socket else { return };
        let outcome = if self.plans[number].direction == sends_in {
            send_all(socket, zeroes)
        } else {
            receive_all(socket).map(|received| flow.received += received)
        };
        if let Err(error) = outcome {
            let _ = self.epoll.delete(socket);
            flow.failed = Some(format!("the connection ended: {error}"));
        }
    }

    fn sample(&mut self, at: Time, samples: &mut Vec<FlowSample>) {
        for (number, info) in self.read_senders() {
            samples.push(FlowSample { at, flow: number, info, received: self.flows[number].received });
        }
    }

    /// Reads every sender that there is.
    fn read_senders(&mut self) -> Vec<(usize, TcpInfo)> {
        let mut read = Vec::with_capacity(self.flows.len());
        for (number, (flow, plan)) in self.flows.iter_mut().zip(&self.plans).enumerate() {
            let sender = match plan.direction {
                Direction::Up => Some(&flow.client),
                Direction::Down => flow.server.as_ref(),
            };
            let (true, Some(sender), None) = (flow.started, sender, &flow.failed) else {
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
    fn counted(&self) -> Counted {
        Counted::new(self.received, self.last_info)
    }
}

impl Token {
    fn event(self, flags: EpollFlags) -> EpollEvent {
        let (kind, number) = match self {
            Self::Listener => (0, 0),
            Self::Client(number) => (1, number),
            Self::Server(number) => (2, number),
        };
        EpollEvent::new(flags, (number as u64) << 2 | kind)
    }

    fn of(event: &EpollEvent) -> Self {
        let number = (event.data() >> 2) as usize;
        match event.data() & 3 {
            0 => Self::Listener,
            1 => Self::Client(number),
            _ => Self::Server(number),
        }
    }
}

/// The port to which a flow's client is bound.
pub(crate) fn client_port(flow: u16) -> u16 {
    FIRST_CLIENT_PORT + flow
}

/// The flow whose client is bound to this port; `None` for a port of nobody's.
pub(crate) fn flow_of_port(port: u16) -> Option<usize> {
    port.checked_sub(FIRST_CLIENT_PORT).map(usize::from)
}

fn tcp_socket(address: Ipv4Addr, port: u16) -> Result<OwnedFd> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let socket =
        socket::socket(AddressFamily::Inet, SockType::Stream, flags, None).context("cannot make a TCP socket")?;
    socket::bind(socket.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(address, port)))
        .with_context(|| format!("cannot bind a socket to {address}:{port}"))?;
    Ok(socket)
}

fn set_congestion_control(socket: &OwnedFd, name: &str) -> Result<()> {
    setsockopt(socket, TcpCongestion, &OsString::from(name))
        .with_context(|| format!("cannot choose the congestion control \"{name}\""))
}

/// Those that this kernel offers, without the agents' own.
pub(crate) fn offered_congestion_controls() -> Vec<String> {
    let names = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    names.split_whitespace().filter(|name| !name.starts_with("lasthop")).map(str::to_owned).collect()
}

fn send_all(socket: &OwnedFd, zeroes: &[u8]) -> Result<(), Errno> {
    loop {
        match socket::send(socket.as_raw_fd(), zeroes, MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT) {
            // A partial write: the buffer is full, and epoll tells when it is not.
            Ok(sent) if sent < zeroes.len() => return Ok(()),
            Ok(_) | Err(Errno::EINTR) => {}
            Err(Errno::EAGAIN) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

/// Takes and discards whatever has arrived (MSG_TRUNC: the kernel does not even copy it, tcp(7)).
fn receive_all(socket: &OwnedFd) -> Result<Bytes, Errno> {
    const AT_ONCE: usize = 1 << 20;
    let mut total = Bytes::ZERO;
    loop {
        // SAFETY: with MSG_TRUNC the kernel discards the data and never writes through the null pointer.
        let received = unsafe {
            libc::recv(socket.as_raw_fd(), std::ptr::null_mut(), AT_ONCE, libc::MSG_TRUNC | libc::MSG_DONTWAIT)
        };
        match Errno::result(received) {
            Ok(0) => return Err(Errno::ECONNRESET),
            Ok(received) => {
                total += Bytes::new(received as u64);
                if (received as usize) < AT_ONCE {
                    return Ok(total);
                }
            }
            Err(Errno::EAGAIN) => return Ok(total),
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
        // A flow that began after the warm-up.
        let report = end.since(Counted::default(), None);
        assert_eq!((report.retransmits, report.timeouts), (45, Some(2)));
    }

    #[test]
    fn a_port_names_its_flow() {
        assert_eq!(flow_of_port(client_port(7)), Some(7));
        assert_eq!(flow_of_port(443), None);
    }

    #[test]
    fn a_token_comes_back_from_epoll_as_it_was() {
        let back = |token: Token| Token::of(&token.event(EpollFlags::EPOLLIN));
        assert!(matches!(back(Token::Listener), Token::Listener));
        assert!(matches!(back(Token::Client(1_999)), Token::Client(1_999)));
        assert!(matches!(back(Token::Server(0)), Token::Server(0)));
    }
}
