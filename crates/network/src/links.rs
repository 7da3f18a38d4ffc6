//! Nodes joined by links: dumbbells, chains, any topology.
//!
//! A packet goes from its sender's node to its receiver's, link by link, by `routes`. At each node it joins the queue
//! of the next link at once. Each direction of each link is a `link` of its own; a `schedule` finds the next event.
//! Simultaneous events go in the order of the links, forth before back.
//!
//! Hosts on one node reach each other at once. A broadcast reaches only the hosts on the sender's node, as on one
//! Ethernet.
//!
//! Leaves out: forwarding time, changing routes, broadcasts over links.

use crate::change::DirectionChange;
use crate::config::{Config, LinksConfig};
use crate::link::{Link, Step, Taken};
use crate::packet::{Delivery, Departure, Destination, NodeId, Outcome, Packet};
use crate::queue::ReadAck;
use crate::random::Streams;
use crate::routes::Routes;
use crate::schedule::Schedule;
use crate::server::NewPace;
use crate::statistics::{Observed, QueueId, Statistics, Way};
use crate::topology::Pace;
use crate::watch::Log;
use lasthop_units::{Span, Time};

#[derive(Clone, Debug)]
pub(crate) struct Links<P> {
    hosts: usize,
    /// By link: forth, then back.
    directions: Vec<Direction<P>>,
    schedule: Schedule,
    routes: Routes,
    /// The node of each sender and receiver: hosts, then the nodes themselves.
    node_of: Vec<u16>,
    /// By node: its outgoing directions.
    away: Vec<Vec<usize>>,
    /// By sender: whether to report departures of its packets from the first queue.
    reports: Vec<bool>,
}

#[derive(Clone, Debug)]
struct Direction<P> {
    link: Link<P>,
    from: u16,
    to: u16,
    /// Whether to report packets of senders on `from` that the queue drops after accepting them.
    notes_dropped: bool,
}

impl<P: Clone> Links<P> {
    /// Idle links, prepared for the changes of `network`.
    pub(crate) fn new(config: &LinksConfig, network: &Config, streams: Streams) -> Self {
        let mut directions = Vec::with_capacity(2 * config.links.len());
        for (index, link) in config.links.iter().enumerate() {
            let (one, other) = (link.ends.0 as u16, link.ends.1 as u16);
            let changes = |way| network.link_changes(index, way);
            let forth = Link::new(&link.forth, changes(Way::Forth), streams, &format!("links/{index}/forth"));
            let back = Link::new(&link.back, changes(Way::Back), streams, &format!("links/{index}/back"));
            directions.push(Direction { link: forth, from: one, to: other, notes_dropped: false });
            directions.push(Direction { link: back, from: other, to: one, notes_dropped: false });
        }
        let mut away = vec![Vec::new(); config.nodes];
        for (index, direction) in directions.iter().enumerate() {
            away[usize::from(direction.from)].push(index);
        }
        let hosts = config.attached.len();
        Self {
            hosts,
            schedule: Schedule::new(directions.len()),
            directions,
            routes: config.routes(),
            node_of: (0..network.nodes()).map(|node| config.seat(NodeId(node as u16)) as u16).collect(),
            away,
            reports: vec![false; hosts + config.nodes],
        }
    }

    /// Puts a packet into the queue of its first link, after all due events.
    pub(crate) fn offer(
        &mut self,
        now: Time,
        packet: Packet<P>,
        outcome: &mut Outcome<'_, P>,
    ) -> Result<(), Packet<P>> {
        let (from, departure) = (packet.from, packet.departure());
        let node = self.node_of[from.index()];
        let Destination::Node(to) = packet.to else {
            let neighbours = (0..self.hosts).filter(|&host| self.node_of[host] == node && host != from.index());
            let delivery = |host| Delivery { at: now, to: NodeId(host as u16), packet: packet.clone() };
            outcome.deliveries.extend(neighbours.map(delivery));
            self.has_left(departure, outcome);
            return Ok(());
        };
        let goal = self.node_of[to.index()];
        if goal == node {
            outcome.deliveries.push(Delivery { at: now, to, packet });
            self.has_left(departure, outcome);
            return Ok(());
        }
        let index = self.routes.next(node.into(), goal.into());
        let link = &mut self.directions[index].link;
        let taken = link.offer_from_outside(now, packet, self.reports[from.index()]);
        self.schedule.set(index, link.next_event());
        self.tell_dropped(index, outcome);
        if taken? == Taken::LostBeforeQueue {
            self.has_left(departure, outcome);
        }
        Ok(())
    }

    /// Tells all losses from now on.
    pub(crate) fn watch(&mut self, log: &Log<P>) {
        for (index, direction) in self.directions.iter_mut().enumerate() {
            direction.link.watch(log, place(index));
        }
    }

    /// Knows ACKs by this function from now on.
    pub(crate) fn read_acks(&mut self, read: ReadAck<P>) {
        self.directions.iter_mut().for_each(|direction| direction.link.read_acks(read));
    }

    /// Changes one direction of a link.
    pub(crate) fn change(&mut self, now: Time, (link, way): (usize, Way), to: DirectionChange, pace: NewPace) {
        let index = 2 * link + way as usize;
        let link = &mut self.directions[index].link;
        link.change(now, to, pace);
        self.schedule.set(index, link.next_event());
    }

    pub(crate) fn next_event(&self) -> Time {
        self.schedule.first_at()
    }

    /// Processes the events up to `until`, and counts them.
    pub(crate) fn run(
        &mut self,
        mut until: Time,
        pace: Pace,
        clock: &mut Time,
        events: &mut u64,
        outcome: &mut Outcome<'_, P>,
    ) {
        loop {
            let now = self.schedule.first_at();
            if now > until || now == Time::MAX {
                break;
            }
            *clock = now;
            *events += 1;
            let index = self.schedule.first();
            let direction = &mut self.directions[index];
            let step = direction.link.step(now);
            self.schedule.set(index, direction.link.next_event());
            let (from, to) = (direction.from, direction.to);
            match step {
                Step::Arrived(packet) => self.arrived(now, to, packet, outcome),
                // Links without a timetable report every departure; here only the first link counts.
                Step::Sent(departure) if self.node_of[departure.node.index()] == from => {
                    self.has_left(departure, outcome);
                }
                Step::Sent(_) | Step::Lost => {}
            }
            self.tell_dropped(index, outcome);
            if pace == Pace::ToOutput && !outcome.is_empty() {
                until = now;
            }
        }
    }

    pub(crate) fn report_departures(&mut self, node: NodeId) {
        self.reports[node.index()] = true;
        for &index in &self.away[usize::from(self.node_of[node.index()])] {
            let direction = &mut self.directions[index];
            direction.notes_dropped = direction.link.note_dropped();
        }
    }

    pub(crate) fn queues(&self) -> impl Iterator<Item = QueueId> + use<P> {
        (0..self.directions.len()).map(place)
    }

    pub(crate) fn len(&self, place: QueueId, now: Time) -> usize {
        self.link(place).len(now)
    }

    /// The free places in the fullest queue of the links that begin at the node.
    pub(crate) fn room(&self, node: NodeId, now: Time) -> usize {
        let node = self.node_of[node.index()];
        let away = self.away[usize::from(node)].iter();
        away.map(|&index| self.directions[index].link.room(now)).min().expect("each node has a link")
    }

    pub(crate) fn observe(&self, place: QueueId, now: Time) -> Observed {
        self.link(place).observe(place, now)
    }

    pub(crate) fn packets_inside(&self) -> usize {
        self.directions.iter().map(|direction| direction.link.packets_inside()).sum()
    }

    /// Adds the links' counts. Returns the busy time of the busiest.
    pub(crate) fn report(&self, now: Time, statistics: &mut Statistics) -> Span {
        for (index, direction) in self.directions.iter().enumerate() {
            statistics.links.push(direction.link.statistics(place(index), now, statistics.elapsed));
        }
        statistics.links.iter().map(|link| link.busy).max().unwrap_or(Span::ZERO)
    }

    pub(crate) fn reset_statistics(&mut self, now: Time) {
        self.directions.iter_mut().for_each(|direction| direction.link.reset_statistics(now));
    }

    /// A packet has come to a node.
    fn arrived(&mut self, now: Time, node: u16, packet: Packet<P>, outcome: &mut Outcome<'_, P>) {
        let Destination::Node(to) = packet.to else { unreachable!("broadcasts stay on their node") };
        let goal = self.node_of[to.index()];
        if goal == node {
            outcome.deliveries.push(Delivery { at: now, to, packet });
            return;
        }
        let index = self.routes.next(node.into(), goal.into());
        let link = &mut self.directions[index].link;
        // A full queue counts the drop.
        let _taken = link.offer(now, packet);
        self.schedule.set(index, link.next_event());
        self.tell_dropped(index, outcome);
    }

    /// Reports packets that the queue has dropped after accepting them.
    #[inline]
    fn tell_dropped(&mut self, index: usize, outcome: &mut Outcome<'_, P>) {
        if self.directions[index].notes_dropped {
            self.tell_noted(index, outcome);
        }
    }

    #[inline(never)]
    fn tell_noted(&mut self, index: usize, outcome: &mut Outcome<'_, P>) {
        let (reports, node_of, direction) = (&self.reports, &self.node_of, &mut self.directions[index]);
        let node = direction.from;
        let told = |dropped: &Departure| reports[dropped.node.index()] && node_of[dropped.node.index()] == node;
        outcome.departed.extend(direction.link.take_dropped().filter(told));
    }

    fn has_left(&self, departure: Departure, outcome: &mut Outcome<'_, P>) {
        if self.reports[departure.node.index()] {
            outcome.departed.push(departure);
        }
    }

    fn link(&self, place: QueueId) -> &Link<P> {
        match place {
            QueueId::Link { link, way } => &self.directions[2 * usize::from(link) + way as usize].link,
            _ => panic!("{place:?} is no place of this network"),
        }
    }
}

/// The place of the direction with this number.
fn place(direction: usize) -> QueueId {
    QueueId::Link { link: (direction / 2) as u16, way: Way::BOTH[direction % 2] }
}
