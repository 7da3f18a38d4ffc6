//! A connection of the scenario with both its ends.

use lasthop_laws::LinkReport;
use lasthop_laws::bound::Bound;
use lasthop_measure::Interval;
use lasthop_network::NodeId;
use lasthop_quic::End;
use lasthop_scenario::{Direction, FlowSpec};
use lasthop_tcp::Endpoint;
use lasthop_traffic::{Application, Copies};
use lasthop_units::{Bytes, Time};
use std::collections::VecDeque;
use std::ops::{Index, IndexMut};

/// An end of a connection by what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// On the host, which opens the connection.
    Client,
    Server,
}

impl Role {
    pub(crate) const BOTH: [Self; 2] = [Self::Client, Self::Server];

    pub(crate) const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// Something of each end.
pub(crate) struct OfBoth<T>(pub(crate) [T; 2]);

impl<T> Index<Role> for OfBoth<T> {
    type Output = T;

    #[inline]
    fn index(&self, role: Role) -> &T {
        &self.0[role as usize]
    }
}

impl<T> IndexMut<Role> for OfBoth<T> {
    #[inline]
    fn index_mut(&mut self, role: Role) -> &mut T {
        &mut self.0[role as usize]
    }
}

/// A connection. For a `transfers` flow: the open one, with the counts of its predecessors.
pub(crate) struct Connection {
    pub(crate) spec: FlowSpec,
    pub(crate) nodes: OfBoth<NodeId>,
    /// The end that sends the data.
    pub(crate) writer: Role,
    pub(crate) ends: Ends,
    /// The number of this connection in its flow. Segments of earlier ones are dropped.
    pub(crate) incarnation: u32,
    pub(crate) application: Application,
    /// The client's reports of its last link, with the times from which they hold, in order; empty: none.
    pub(crate) reports: VecDeque<(Time, LinkReport)>,
    /// Whether this incarnation has given up.
    pub(crate) has_failed: bool,
    /// The number of incarnations that gave up.
    pub(crate) failures: u64,
    /// Payload of the datagrams received, without copies.
    pub(crate) datagrams_received: Bytes,
    /// Which have come to their receiver, and which answers to their sender.
    pub(crate) copies: [Copies; 2],
    /// The number of the next datagram of a saturated flow.
    pub(crate) filled: u64,
    /// Whether its end has been sampled.
    pub(crate) is_told: bool,
    past: Counts,
}

/// Both ends of a connection.
pub(crate) enum Ends {
    /// Before the connection opens and, between transfers, after both ends have closed.
    None,
    Tcp(Box<OfBoth<Endpoint>>),
    Quic(Box<OfBoth<End>>),
}

/// The counters of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Bytes that the receiving application got.
    pub(crate) received: Bytes,
    /// With QUIC, packets declared lost.
    pub(crate) retransmits: u64,
    pub(crate) timeouts: u64,
    pub(crate) delivered_ce: u64,
    /// Whether its law has heard a client's report.
    pub(crate) heard_reports: bool,
    pub(crate) ignored_losses: u64,
    pub(crate) heeded_losses: u64,
    /// The initial window of the last incarnation whose law heard a report.
    pub(crate) initial_segments: Option<u32>,
}

impl Connection {
    pub(crate) fn new(spec: FlowSpec, client: NodeId, application: Application) -> Self {
        Self {
            nodes: OfBoth([client, spec.server]),
            writer: if spec.direction == Direction::Up { Role::Client } else { Role::Server },
            ends: Ends::None,
            incarnation: 0,
            application,
            reports: VecDeque::new(),
            has_failed: false,
            failures: 0,
            datagrams_received: Bytes::ZERO,
            copies: Default::default(),
            filled: 0,
            is_told: false,
            past: Counts::default(),
            spec,
        }
    }

    /// The sending end of TCP.
    pub(crate) fn sender(&self) -> Option<&Endpoint> {
        if let Ends::Tcp(ends) = &self.ends { Some(&ends[self.writer]) } else { None }
    }

    /// Whether its first incarnation is still to be connected.
    pub(crate) fn is_unconnected(&self) -> bool {
        let is_open = match &self.ends {
            Ends::None => true,
            Ends::Tcp(ends) => ends[Role::Client].is_established() || ends[Role::Client].is_closed(),
            Ends::Quic(ends) => ends[Role::Client].is_established() || ends[Role::Client].is_closed(),
        };
        self.incarnation == 1 && !is_open
    }

    /// What a bound at the client, with this lease, means for the data of this connection.
    pub(crate) fn interval(&self, from: Time, until: Time, bound: Option<Bound>) -> Interval {
        let interval = Interval { from, until, bound: bound.unwrap_or_default() };
        if self.writer == Role::Client { interval.of_sender() } else { interval.of_receiver() }
    }

    /// Bytes of this incarnation that the receiving application has read.
    pub(crate) fn read_bytes(&self) -> u64 {
        match &self.ends {
            Ends::None => 0,
            Ends::Tcp(ends) => ends[self.writer.other()].received_bytes(),
            Ends::Quic(ends) => ends[self.writer.other()].received_bytes(),
        }
    }

    /// Bytes of requests that the sender of this incarnation has read.
    pub(crate) fn asked_bytes(&self) -> u64 {
        self.sender().map_or(0, Endpoint::received_bytes)
    }

    /// The client's report at this time; drops earlier ones.
    pub(crate) fn report(&mut self, now: Time) -> Option<LinkReport> {
        while self.reports.get(1).is_some_and(|(at, _)| *at <= now) {
            self.reports.pop_front();
        }
        self.reports.front().map(|(_, report)| *report)
    }

    /// When the client's report changes next; [`Time::MAX`]: never.
    pub(crate) fn next_report_at(&self) -> Time {
        self.reports.get(1).map_or(Time::MAX, |(at, _)| *at)
    }

    /// Begins a new incarnation with these ends.
    pub(crate) fn open(&mut self, ends: Ends) {
        self.retire();
        self.incarnation += 1;
        self.has_failed = false;
        self.ends = ends;
    }

    /// Drops the ends; keeps their counts.
    pub(crate) fn retire(&mut self) {
        self.past = self.counts();
        self.datagrams_received = Bytes::ZERO;
        self.ends = Ends::None;
    }

    /// The counts over all incarnations.
    pub(crate) fn counts(&self) -> Counts {
        let info = self.sender().map(Endpoint::info);
        let link = info.as_ref().and_then(|info| info.last_link);
        let (retransmits, delivered_ce) = match &self.ends {
            Ends::Quic(ends) => ends[self.writer].info().map(|info| (info.lost_packets, info.delivered_ce)),
            Ends::None | Ends::Tcp(_) => info.as_ref().map(|info| (info.tcp.retransmits, info.tcp.delivered_ce)),
        }
        .unwrap_or_default();
        let now = Counts {
            received: Bytes::new(self.read_bytes()) + self.datagrams_received,
            retransmits,
            timeouts: info.as_ref().and_then(|info| info.tcp.timeouts).unwrap_or(0),
            delivered_ce,
            heard_reports: link.is_some(),
            ignored_losses: link.map_or(0, |link| link.ignored_losses.into()),
            heeded_losses: link.map_or(0, |link| link.heeded_losses().into()),
            initial_segments: link.and_then(|link| link.initial_segments),
        };
        let past = &self.past;
        Counts {
            received: past.received + now.received,
            retransmits: past.retransmits + now.retransmits,
            timeouts: past.timeouts + now.timeouts,
            delivered_ce: past.delivered_ce + now.delivered_ce,
            heard_reports: past.heard_reports || now.heard_reports,
            ignored_losses: past.ignored_losses + now.ignored_losses,
            heeded_losses: past.heeded_losses + now.heeded_losses,
            initial_segments: if now.heard_reports { now.initial_segments } else { past.initial_segments },
        }
    }
}
