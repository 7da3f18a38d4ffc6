//! One connection of the scenario with both its ends.

use crate::traffic::Application;
use lasthop_laws::LinkReport;
use lasthop_network::NodeId;
use lasthop_scenario::{Direction, FlowSpec};
use lasthop_tcp::Endpoint;
use lasthop_units::{Bytes, Time};
use std::collections::VecDeque;

/// The end on the host, which opens the connection.
pub(crate) const NEAR: usize = 0;
/// The end on the server.
pub(crate) const FAR: usize = 1;

/// A connection: of a `transfers` flow the one that is open, with what its predecessors counted.
pub(crate) struct Connection {
    pub(crate) spec: FlowSpec,
    /// Where the near and the far end are.
    pub(crate) nodes: [NodeId; 2],
    /// [`NEAR`] or [`FAR`]: who sends the data.
    pub(crate) writer: usize,
    /// `None` before it opens and, between transfers, after both ends have closed.
    pub(crate) ends: Option<Box<[Endpoint; 2]>>,
    /// Counts the connections of this flow; a segment of an earlier one is not heard any more.
    pub(crate) incarnation: u32,
    pub(crate) application: Application,
    /// What the client says of its last link from when on, by time; empty: it says nothing.
    pub(crate) reports: VecDeque<(Time, LinkReport)>,
    /// Whether it has given up in this incarnation.
    pub(crate) has_failed: bool,
    /// In how many it has.
    pub(crate) failures: u64,
    /// Payload of the datagrams that arrived.
    pub(crate) datagrams_received: Bytes,
    past: Counts,
}

/// What is counted of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// What the receiving application got.
    pub(crate) received: Bytes,
    pub(crate) retransmits: u64,
    pub(crate) timeouts: u64,
    /// Whether its law has ever heard a client's report.
    pub(crate) heard_reports: bool,
    pub(crate) ignored_losses: u64,
    pub(crate) heeded_losses: u64,
    /// Of the last incarnation whose law has heard one.
    pub(crate) initial_segments: Option<u32>,
}

impl Connection {
    pub(crate) fn new(spec: FlowSpec, near: NodeId, application: Application) -> Self {
        Self {
            nodes: [near, spec.server],
            writer: if spec.direction == Direction::Up { NEAR } else { FAR },
            ends: None,
            incarnation: 0,
            application,
            reports: VecDeque::new(),
            has_failed: false,
            failures: 0,
            datagrams_received: Bytes::ZERO,
            past: Counts::default(),
            spec,
        }
    }

    /// The sending end.
    pub(crate) fn sender(&self) -> Option<&Endpoint> {
        self.ends.as_ref().map(|ends| &ends[self.writer])
    }

    /// Bytes of this incarnation that the receiving application has read.
    pub(crate) fn read_bytes(&self) -> u64 {
        self.ends.as_ref().map_or(0, |ends| ends[1 - self.writer].received_bytes())
    }

    /// What the client says of its last link at this time; forgets what it has said before.
    pub(crate) fn report(&mut self, now: Time) -> Option<LinkReport> {
        while self.reports.get(1).is_some_and(|(at, _)| *at <= now) {
            self.reports.pop_front();
        }
        self.reports.front().map(|(_, report)| *report)
    }

    /// When the client will say something else; [`Time::MAX`]: never.
    pub(crate) fn next_report_at(&self) -> Time {
        self.reports.get(1).map_or(Time::MAX, |(at, _)| *at)
    }

    /// A new incarnation with these ends.
    pub(crate) fn open(&mut self, ends: [Endpoint; 2]) {
        self.retire();
        self.incarnation += 1;
        self.has_failed = false;
        self.ends = Some(Box::new(ends));
    }

    /// Drops the ends; what they counted stays.
    pub(crate) fn retire(&mut self) {
        self.past = self.counts();
        self.datagrams_received = Bytes::ZERO;
        self.ends = None;
    }

    /// Over all incarnations.
    pub(crate) fn counts(&self) -> Counts {
        let info = self.sender().map(Endpoint::info);
        let link = info.as_ref().and_then(|info| info.last_link);
        let now = Counts {
            received: Bytes::new(self.read_bytes()) + self.datagrams_received,
            retransmits: info.as_ref().map_or(0, |info| info.retransmits),
            timeouts: info.as_ref().map_or(0, |info| info.timeouts),
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
            heard_reports: past.heard_reports || now.heard_reports,
            ignored_losses: past.ignored_losses + now.ignored_losses,
            heeded_losses: past.heeded_losses + now.heeded_losses,
            initial_segments: if now.heard_reports { now.initial_segments } else { past.initial_segments },
        }
    }
}
