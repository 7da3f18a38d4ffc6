//! What a flow is to do, and what came of it.

use crate::samples::FlowSample;
use crate::tcp_switches::SocketOptions;
use lasthop_connection::TcpState;
use lasthop_scenario::{Direction, FlowSpec, Kind as _, Transport, VideoResult};
use lasthop_traffic::{Application, Message};
use lasthop_units::{Bytes, Span, Time};
use nix::sys::epoll::EpollFlags;

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

    /// Whether it has TCP connections; else it sends datagrams.
    pub(super) fn is_tcp(&self) -> bool {
        self.spec.kind.name().transport() == Transport::Tcp
    }

    /// Whether the receiver is woken for lumps only. What is measured message by message is read at once.
    pub(super) fn reads_lumps(&self) -> bool {
        self.over_aggregates && self.spec.kind.is_greedy()
    }

    /// What an end is watched for. Who may have nothing to write is told once that there is room.
    pub(super) fn interest(&self, sends: bool) -> EpollFlags {
        match (self.spec.kind.asks(), sends) {
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
    pub(crate) retransmits: u64,
    pub(crate) timeouts: Option<u64>,
    pub(crate) delivered_ce: u64,
    /// The reason, if the flow ended before the run.
    pub(crate) failed: Option<String>,
    /// Whether a connection ended with an error, and the application goes on with the next.
    pub(crate) broken: bool,
    /// The server has not seen the end of its handshake. This happens when acknowledgements are lost.
    pub(crate) unconnected: bool,
    /// The messages or transfers read to their end, with when that was; empty for an endless flow.
    pub(crate) delivered: Vec<(Time, Message)>,
    /// Those that were not.
    pub(crate) undelivered: Vec<Message>,
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
    pub(crate) retransmits: u64,
    pub(crate) timeouts: Option<u64>,
    pub(crate) delivered_ce: u64,
}

impl Counted {
    pub(crate) fn new(received: Bytes, tcp: Option<TcpState>) -> Self {
        let TcpState { retransmits, timeouts, delivered_ce, .. } = tcp.unwrap_or_default();
        Self { received, retransmits, timeouts, delivered_ce }
    }

    /// With those of earlier connections.
    pub(super) fn with_past(self, past: Self) -> Self {
        let retransmits = self.retransmits + past.retransmits;
        let timeouts = self.timeouts.or(past.timeouts.map(|_| 0)).map(|now| now + past.timeouts.unwrap_or(0));
        Self { retransmits, timeouts, delivered_ce: self.delivered_ce + past.delivered_ce, ..self }
    }

    /// The counters since `warmup`.
    pub(crate) fn since(self, warmup: Self, failed: Option<String>) -> FlowReport {
        FlowReport {
            received: self.received - warmup.received,
            retransmits: self.retransmits - warmup.retransmits,
            timeouts: self.timeouts.map(|timeouts| timeouts - warmup.timeouts.unwrap_or(0)),
            delivered_ce: self.delivered_ce - warmup.delivered_ce,
            failed,
            ..FlowReport::default()
        }
    }
}
