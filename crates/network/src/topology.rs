//! The network as a whole, and the three verbs that drive it.

use crate::access_point::AccessPoint;
use crate::change::{Change, Changed};
use crate::config::{Config, ConfigError, Topology};
use crate::links::Links;
use crate::opportunities::Opportunities;
use crate::packet::{Delivery, Departure, Destination, NodeId, Outcome, Packet};
use crate::queue::ReadAck;
use crate::random::Streams;
use crate::statistics::{AirTime, Cause, Drops, Observed, QueueId, Statistics};
use crate::watch::{self, Log, Seen};
use lasthop_units::{Bytes, Span, Time};
use std::collections::VecDeque;
use std::sync::Arc;

/// A network that carries packets with payloads of type `P`.
#[derive(Clone, Debug)]
pub struct Network<P> {
    clock: Time,
    nodes: usize,
    parts: Parts<P>,
    /// Future changes, by time.
    changes: VecDeque<Change>,
    /// What they refer to.
    opportunities: Vec<Arc<Opportunities>>,
    /// The time of the first of them.
    next_change: Time,
    /// Deliveries made while a packet was accepted; the next [`advance`](Network::advance) returns them.
    early: Vec<Delivery<P>>,
    /// Departures not yet taken by [`take_departed`](Network::take_departed), and the time of the first.
    departed: Vec<Departure>,
    departed_at: Time,
    events: u64,
    statistics_since: Time,
    /// If somebody watches: what nobody has taken yet.
    log: Watched<P>,
}

/// The log of a watched network. A clone has none.
#[derive(Debug)]
struct Watched<P>(Option<Log<P>>);

impl<P> Clone for Watched<P> {
    fn clone(&self) -> Self {
        Self(None)
    }
}

/// How far a network goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pace {
    /// To the given time.
    ToEnd,
    /// To the end of the first moment with deliveries or departures.
    ToOutput,
}

#[derive(Clone, Debug)]
enum Parts<P> {
    AccessPoint(Box<AccessPoint<P>>),
    Links(Box<Links<P>>),
}

impl<P: Clone> Network<P> {
    /// An empty network at [`Time::ZERO`].
    ///
    /// # Errors
    /// The first invalid field of the configuration, and its accepted values.
    pub fn new(config: &Config, seed: u64) -> Result<Self, ConfigError> {
        config.validate()?;
        let streams = Streams::new(seed);
        let parts = match &config.topology {
            Topology::AccessPoint { access, path } => {
                Parts::AccessPoint(Box::new(AccessPoint::new(access, path, config, streams)))
            }
            Topology::Links(links) => Parts::Links(Box::new(Links::new(links, config, streams))),
        };
        let changes: VecDeque<Change> = config.changes_in_order().into();
        let mut network = Self {
            clock: Time::ZERO,
            nodes: config.nodes(),
            parts,
            next_change: changes.front().map_or(Time::MAX, |first| first.at),
            changes,
            opportunities: config.opportunities.clone(),
            early: Vec::new(),
            departed: Vec::new(),
            departed_at: Time::MAX,
            events: 0,
            statistics_since: Time::ZERO,
            log: Watched(None),
        };
        for (index, _) in config.hosts.iter().enumerate().filter(|(_, host)| host.reports_departures) {
            network.report_departures(NodeId(index as u16));
        }
        Ok(network)
    }

    /// Processes all events up to `now`, then puts the packet into its sender's transmit queue.
    ///
    /// A `now` before that of an earlier call counts as the latter: time does not go back.
    ///
    /// # Errors
    /// The packet, if the queue was full (which also counts as a drop).
    ///
    /// # Panics
    /// If the sender or the receiver is not a node of this network, the size is not in 1..=65535 bytes, or the DSCP is
    /// above 63.
    pub fn offer(&mut self, now: Time, packet: Packet<P>) -> Result<(), Packet<P>> {
        self.check(&packet);
        self.run_early(now);
        let mut outcome = Outcome { deliveries: &mut self.early, departed: &mut self.departed };
        let refused = match &mut self.parts {
            Parts::AccessPoint(parts) => parts.offer(self.clock, packet).err(),
            Parts::Links(parts) => parts.offer(self.clock, packet, &mut outcome).err(),
        };
        self.note_departed();
        refused.map_or(Ok(()), Err)
    }

    /// When to call [`advance`](Network::advance) next; in the past if deliveries or departures are waiting. `None` =
    /// no event without an offer.
    pub fn next_wakeup(&self) -> Option<Time> {
        let early = self.early.first().map_or(Time::MAX, |delivery| delivery.at);
        let next = self.next_event().min(early).min(self.departed_at);
        (next < Time::MAX).then_some(next)
    }

    /// Processes all events up to `now`, in order of time, and appends the deliveries.
    pub fn advance(&mut self, now: Time, deliveries: &mut Vec<Delivery<P>>) {
        deliveries.append(&mut self.early);
        self.run(now, Pace::ToEnd, deliveries);
        self.note_departed();
    }

    /// Processes events in order of time, up to the first moment with deliveries or departures, and at most up to `until`.
    /// Puts the deliveries into `deliveries`, which must be empty. Returns that moment; `None` if there is none by then.
    ///
    /// Returns the same as [`advance`](Network::advance) called with each [`next_wakeup`](Network::next_wakeup) in turn,
    /// and is faster.
    pub fn advance_to_output(&mut self, until: Time, deliveries: &mut Vec<Delivery<P>>) -> Option<Time> {
        if !self.early.is_empty() || self.departed_at < Time::MAX {
            let now = self.next_wakeup().filter(|&at| at <= until)?;
            self.advance(now, deliveries);
            return Some(now);
        }
        self.run(until, Pace::ToOutput, deliveries);
        self.note_departed();
        (!deliveries.is_empty() || !self.departed.is_empty()).then_some(self.clock)
    }

    /// Appends departures from transmit queues since the last call, sent or given up, in order, once per packet. Covers
    /// only hosts with [`reports_departures`](crate::HostConfig::reports_departures), and senders named to
    /// [`report_departures`](Network::report_departures).
    ///
    /// If there is any such sender, call this after each [`advance`](Network::advance): while departures wait,
    /// [`next_wakeup`](Network::next_wakeup) lies in the past.
    pub fn take_departed(&mut self, departed: &mut Vec<Departure>) {
        if self.departed_at < Time::MAX {
            departed.append(&mut self.departed);
            self.departed_at = Time::MAX;
        }
    }

    /// Reports departures of this sender's future packets by [`take_departed`](Network::take_departed); of the server,
    /// for instance. Each such departure is also a wakeup.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn report_departures(&mut self, node: NodeId) {
        assert!(node.index() < self.nodes, "{node:?} is no node of this network");
        match &mut self.parts {
            Parts::AccessPoint(parts) => parts.report_departures(node),
            Parts::Links(parts) => parts.report_departures(node),
        }
    }

    /// Deducts the real turnaround of stand-ins for the hosts: the model adds only the rest of each drawn value. Kernel
    /// hosts take some tens of microseconds, which must not count twice.
    pub fn hosts_take(&mut self, time: Span) {
        if let Parts::AccessPoint(parts) = &mut self.parts {
            parts.hosts_take(time);
        }
    }

    /// Sets a host's own RTS threshold, as `iw phy PHY set rts` does: from its next frame on, longer ones have RTS; `None`: none has for
    /// its length (802.11-2020 §10.3.1, dot11RTSThreshold). Until then, and at the access point, that of
    /// [`WifiConfig::rts_threshold`](crate::WifiConfig::rts_threshold) holds. Nothing without Wi-Fi.
    ///
    /// # Panics
    /// If the node is no host.
    pub fn set_rts_threshold(&mut self, host: NodeId, threshold: Option<Bytes>) {
        if let Parts::AccessPoint(parts) = &mut self.parts {
            parts.set_rts_threshold(host.index(), threshold);
        }
    }

    /// Tells what happens inside from now on, by [`take_seen`](Network::take_seen). It changes no event.
    pub fn watch(&mut self) {
        let log = Log::default();
        match &mut self.parts {
            Parts::AccessPoint(parts) => parts.watch(&log),
            Parts::Links(parts) => parts.watch(&log),
        }
        self.log = Watched(Some(log));
    }

    /// Knows ACKs by this function from now on, for the queues with an [`AckFilter`](crate::AckFilter). Without it they filter none.
    pub fn read_acks(&mut self, read: ReadAck<P>) {
        match &mut self.parts {
            Parts::AccessPoint(parts) => parts.read_acks(read),
            Parts::Links(parts) => parts.read_acks(read),
        }
    }

    /// From now on what goes down to hosts passes the queue of a wired access point and its transmitter in no time: the caller has others
    /// behind, which it puts deliveries into. Nothing over Wi-Fi, and on links.
    ///
    /// To be called before the first packet, of a network whose access does not change.
    pub fn pass_down(&mut self) {
        if let Parts::AccessPoint(parts) = &mut self.parts {
            parts.pass_down();
        }
    }

    /// Appends what has happened since the last call, in order of time. Nothing if nobody [watches](Network::watch).
    pub fn take_seen(&mut self, seen: &mut Vec<Seen<P>>) {
        if let Watched(Some(log)) = &self.log {
            watch::take(log, seen);
        }
    }

    /// The same, and what is still on the air at `now`: the end of the watching.
    pub fn take_last_seen(&mut self, now: Time, seen: &mut Vec<Seen<P>>) {
        if let Parts::AccessPoint(parts) = &mut self.parts {
            parts.tell_unfinished(now.max(self.clock));
        }
        self.take_seen(seen);
    }

    /// The free places in the node's own transmit queue; on 802.11n and later in that of packets without a mark. With
    /// links: in the fullest of the queues that begin at the node.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn room(&self, node: NodeId) -> usize {
        self.room_for(node, 0)
    }

    /// The same for packets with this DSCP.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn room_for(&self, node: NodeId, dscp: u8) -> usize {
        assert!(node.index() < self.nodes, "{node:?} is no node of this network");
        match &self.parts {
            Parts::AccessPoint(parts) => parts.room(node, dscp, self.clock),
            Parts::Links(parts) => parts.room(node, self.clock),
        }
    }

    /// The packets in the queue at this place, including the one in service.
    ///
    /// # Panics
    /// If there is no such place.
    pub fn queue_packets(&self, place: QueueId) -> usize {
        match &self.parts {
            Parts::AccessPoint(parts) => parts.len(place, self.clock),
            Parts::Links(parts) => parts.len(place, self.clock),
        }
    }

    /// Packets inside the network: accepted, neither delivered nor lost. A broadcast counts once until it has been sent
    /// to all. Then each delivery not yet returned by [`advance`](Network::advance) counts once.
    pub fn packets_inside(&self) -> usize {
        let inside_parts = match &self.parts {
            Parts::AccessPoint(parts) => parts.packets_inside(),
            Parts::Links(parts) => parts.packets_inside(),
        };
        inside_parts + self.early.len()
    }

    /// All queues, in order.
    pub fn queues(&self) -> Vec<QueueId> {
        match &self.parts {
            Parts::AccessPoint(parts) => parts.queues().collect(),
            Parts::Links(parts) => parts.queues().collect(),
        }
    }

    /// Use of the air time, as [`statistics`](Network::statistics) has it, without the rest. `None`: there is no radio channel.
    pub fn air(&self, now: Time) -> Option<AirTime> {
        match &self.parts {
            Parts::AccessPoint(parts) => parts.air(now.max(self.clock)),
            Parts::Links(_) => None,
        }
    }

    /// The counts up to `now`, since the start or the last reset. Call [`advance`](Network::advance) to `now` first:
    /// due events do not count until processed.
    pub fn statistics(&self, now: Time) -> Statistics {
        let now = now.max(self.clock);
        let elapsed = now - self.statistics_since;
        let mut statistics = Statistics {
            elapsed,
            events: self.events,
            air: AirTime::default(),
            utilization: 0.0,
            collisions: 0,
            retries: 0,
            transmissions: 0,
            broadcasts: 0,
            to_all: Span::ZERO,
            drops: Vec::new(),
            queues: Vec::new(),
            stations: Vec::new(),
            cells: Vec::new(),
            links: Vec::new(),
        };
        for place in self.queues() {
            let Observed { queue, drops } = match &self.parts {
                Parts::AccessPoint(parts) => parts.observe(place, now),
                Parts::Links(parts) => parts.observe(place, now),
            };
            statistics.queues.push(queue);
            let counts = Cause::ALL.map(|cause| Drops { place, cause, count: drops[cause as usize] });
            statistics.drops.extend(counts.into_iter().filter(|drops| drops.count > 0));
        }
        let busy = match &self.parts {
            Parts::AccessPoint(parts) => parts.report(now, &mut statistics),
            Parts::Links(parts) => parts.report(now, &mut statistics),
        };
        if elapsed > Span::ZERO {
            statistics.utilization = busy.as_secs_f64() / elapsed.as_secs_f64();
        }
        statistics
    }

    /// Processes all events up to `now` and resets the counts: the end of the warm-up.
    pub fn reset_statistics(&mut self, now: Time) {
        self.run_early(now);
        self.note_departed();
        let now = self.clock;
        self.statistics_since = now;
        self.events = 0;
        match &mut self.parts {
            Parts::AccessPoint(parts) => parts.reset_statistics(now),
            Parts::Links(parts) => parts.reset_statistics(now),
        }
    }

    fn check(&self, packet: &Packet<P>) {
        assert!(packet.from.index() < self.nodes, "{:?} is no node of this network", packet.from);
        if let Destination::Node(to) = packet.to {
            assert!(to.index() < self.nodes, "{to:?} is no node of this network");
        }
        let sizes = Bytes::new(1)..=Bytes::new(65_535);
        assert!(sizes.contains(&packet.size), "an IP packet has 1 to 65535 bytes, not {}", packet.size);
        assert!(packet.dscp < 64, "a DSCP is 0 to 63, not {}", packet.dscp);
    }

    /// Processes all that is due by then. The deliveries wait for [`advance`](Network::advance).
    #[inline(always)]
    fn run_early(&mut self, until: Time) {
        if self.next_event().min(self.next_change) <= until {
            let mut early = std::mem::take(&mut self.early);
            self.run(until, Pace::ToEnd, &mut early);
            self.early = early;
        } else {
            self.clock = self.clock.max(until);
        }
    }

    /// Processes all that is due by then.
    #[inline(always)]
    fn run(&mut self, until: Time, pace: Pace, deliveries: &mut Vec<Delivery<P>>) {
        if self.next_change <= until {
            self.run_with_changes(until, pace, deliveries);
        } else if self.next_event() <= until {
            self.run_unchanged(until, pace, deliveries);
        } else if pace == Pace::ToEnd {
            self.clock = self.clock.max(until);
        }
    }

    #[inline(never)]
    fn run_with_changes(&mut self, until: Time, pace: Pace, deliveries: &mut Vec<Delivery<P>>) {
        while let Some(&change) = self.changes.front().filter(|change| change.at <= until) {
            // A change comes before all other events of its moment.
            if let Some(before) = change.at.as_nanos().checked_sub(1) {
                self.run_unchanged(Time::from_nanos(before), pace, deliveries);
                if pace == Pace::ToOutput && (!deliveries.is_empty() || !self.departed.is_empty()) {
                    return;
                }
            }
            self.changes.pop_front();
            self.next_change = self.changes.front().map_or(Time::MAX, |next| next.at);
            let new_pace = change.what.pace(&self.opportunities);
            match (&mut self.parts, change.what) {
                (Parts::Links(parts), Changed::Link { link, way, to }) => {
                    parts.change(change.at, (link, way), to, new_pace)
                }
                (Parts::AccessPoint(parts), what) => parts.change(change.at, &what, new_pace, &mut self.departed),
                (Parts::Links(_), what) => unreachable!("a checked network has what {what:?} is about"),
            }
            if pace == Pace::ToOutput && !self.departed.is_empty() {
                self.clock = self.clock.max(change.at);
                return;
            }
        }
        self.run_unchanged(until, pace, deliveries);
    }

    #[inline(never)]
    fn run_unchanged(&mut self, until: Time, pace: Pace, deliveries: &mut Vec<Delivery<P>>) {
        let mut outcome = Outcome { deliveries, departed: &mut self.departed };
        match &mut self.parts {
            Parts::AccessPoint(parts) => parts.run(until, pace, &mut self.clock, &mut self.events, &mut outcome),
            Parts::Links(parts) => parts.run(until, pace, &mut self.clock, &mut self.events, &mut outcome),
        }
        if pace == Pace::ToEnd {
            self.clock = self.clock.max(until);
        }
    }

    /// The time of the network's next event; [`Time::MAX`] if there is none.
    fn next_event(&self) -> Time {
        match &self.parts {
            Parts::AccessPoint(parts) => parts.next_event(),
            Parts::Links(parts) => parts.next_event(),
        }
    }

    fn note_departed(&mut self) {
        if !self.departed.is_empty() && self.departed_at == Time::MAX {
            self.departed_at = self.clock;
        }
    }
}
