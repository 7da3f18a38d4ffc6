//! The network: hosts behind one access, one server behind a path, and the three verbs that drive it.
//!
//! Algorithm: each part (the access, the path up, the path down) knows when its next event is; the earliest goes first, the
//! parts in this order if they tie. A packet that comes up to the access point goes on by its destination: to the
//! path (server), or back into the access point's downlink queue (another host, or all others).
//!
//! Leaves out: the time that the access point needs to forward, other access points, several servers.

use crate::config::{AccessConfig, Config, ConfigError, Topology};
use crate::link::Link;
use crate::packet::{Delivery, Destination, NodeId, Packet};
use crate::queue::{Queue, QueueConfig};
use crate::random::Streams;
use crate::statistics::{AirTime, Cause, Drops, Place, Statistics};
use crate::wifi::Medium;
use crate::wired::WiredAccess;
use units::{Bytes, Probability, Span, Time};

/// A network that carries packets with payloads of type `P`.
#[derive(Clone, Debug)]
pub struct Network<P> {
    clock: Time,
    hosts: usize,
    access: Access<P>,
    up: Link<P>,
    down: Link<P>,
    /// Deliveries that happened while a packet was taken in; the next [`advance`](Network::advance) hands them over.
    early: Vec<Delivery<P>>,
    events: u64,
    statistics_since: Time,
}

#[derive(Clone, Debug)]
enum Access<P> {
    Wifi(Box<Medium<P>>),
    Wired(Box<WiredAccess<P>>),
}

impl<P: Clone> Network<P> {
    /// An empty network at [`Time::ZERO`].
    ///
    /// # Errors
    /// The first field of the configuration that cannot be, and what it may say.
    pub fn new(config: &Config, seed: u64) -> Result<Self, ConfigError> {
        config.validate()?;
        let streams = Streams::new(seed);
        let Topology::AccessPoint { access, path } = &config.topology;
        let access = match access {
            AccessConfig::Wifi(wifi) => Access::Wifi(Box::new(Medium::new(wifi, &config.hosts, streams))),
            AccessConfig::Wired(wired) => {
                let queues: Vec<_> = config.hosts.iter().map(|host| host.queue_packets).collect();
                Access::Wired(Box::new(WiredAccess::new(wired, &queues, streams)))
            }
        };
        let there = path.rtt / 2;
        let back = path.rtt - there;
        let queue = || Queue::new(QueueConfig::fifo(path.queue_packets), streams, "");
        Ok(Self {
            clock: Time::ZERO,
            hosts: config.hosts.len(),
            access,
            up: Link::new(queue(), path.rate, there, path.loss, streams.stream("path/up/loss")),
            down: Link::new(queue(), path.rate, back, Probability::ZERO, streams.stream("path/down/loss")),
            early: Vec::new(),
            events: 0,
            statistics_since: Time::ZERO,
        })
    }

    /// Runs everything that is due up to `now`, then puts the packet into its sender's transmit queue.
    ///
    /// A `now` before an earlier call's counts as that call's: time does not go back.
    ///
    /// # Errors
    /// The packet, if the queue was full (which also counts as a drop).
    ///
    /// # Panics
    /// If the sender or the receiver is no node of this network, or the size is not in 1..=65535 bytes.
    pub fn offer(&mut self, now: Time, packet: Packet<P>) -> Result<(), Packet<P>> {
        self.check(&packet);
        let mut early = std::mem::take(&mut self.early);
        self.run(now, &mut early);
        self.early = early;
        let now = self.clock;
        let from = packet.from.index();
        if from == self.hosts {
            return self.down.offer(now, packet);
        }
        match &mut self.access {
            Access::Wifi(medium) => medium.offer_up(now, from, packet),
            Access::Wired(access) => access.offer_up(now, from, packet),
        }
    }

    /// When [`advance`](Network::advance) has to be called next; in the past if deliveries wait to be handed over.
    /// `None` = nothing will ever happen without an offer.
    pub fn next_wakeup(&self) -> Option<Time> {
        if let Some(delivery) = self.early.first() {
            return Some(delivery.at);
        }
        let next = self.next_event();
        (next < Time::MAX).then_some(next)
    }

    /// Runs everything that is due up to `now`, in order of time, and appends what reached its receiver.
    pub fn advance(&mut self, now: Time, deliveries: &mut Vec<Delivery<P>>) {
        deliveries.append(&mut self.early);
        self.run(now, deliveries);
    }

    /// How many packets the node's own transmit queue can still take.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn room(&self, node: NodeId) -> usize {
        let place = if node.index() == self.hosts { Place::PathDown } else { Place::Host(node) };
        self.queue(place).room()
    }

    /// How many packets are in the queue at this place, with the one in service.
    ///
    /// # Panics
    /// If there is no such place.
    pub fn queue_packets(&self, place: Place) -> usize {
        self.queue(place).len()
    }

    /// How many packets are anywhere inside: accepted, not yet delivered and not lost. A broadcast counts once until it has
    /// been sent to all; then once for each delivery that [`advance`](Network::advance) has not handed over yet.
    pub fn packets_inside(&self) -> usize {
        let queued: usize = self.places().map(|place| self.queue(place).len()).sum();
        let on_the_way = match &self.access {
            // A frame that has been received counts in its sender's queue until it has been acknowledged.
            Access::Wifi(_) => 0,
            Access::Wired(access) => access.underway(),
        };
        let twice = match &self.access {
            Access::Wifi(medium) => usize::from(medium.awaits_acknowledgement()),
            Access::Wired(_) => 0,
        };
        queued + on_the_way + self.up.underway() + self.down.underway() + self.early.len() - twice
    }

    /// What was counted until `now`, since the start or the last reset. Call [`advance`](Network::advance) to `now` first:
    /// what is due has not happened before it is run.
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
            drops: Vec::new(),
            queues: self.places().map(|place| self.queue(place).lengths().statistics(place, now)).collect(),
            stations: Vec::new(),
        };
        for place in self.places() {
            let counts = Cause::ALL.map(|cause| Drops { place, cause, count: self.queue(place).drops(cause) });
            statistics.drops.extend(counts.into_iter().filter(|drops| drops.count > 0));
        }
        let busy = match &self.access {
            Access::Wifi(medium) => {
                medium.report(now, &mut statistics);
                statistics.air.busy()
            }
            Access::Wired(access) => access.busy_time(now),
        };
        if elapsed > Span::ZERO {
            statistics.utilization = busy.as_secs_f64() / elapsed.as_secs_f64();
        }
        statistics
    }

    /// Runs everything that is due up to `now` and begins to count anew: the end of the warm-up.
    pub fn reset_statistics(&mut self, now: Time) {
        let mut early = std::mem::take(&mut self.early);
        self.run(now, &mut early);
        self.early = early;
        let now = self.clock;
        self.statistics_since = now;
        self.events = 0;
        self.up.reset_statistics(now);
        self.down.reset_statistics(now);
        match &mut self.access {
            Access::Wifi(medium) => medium.reset_statistics(now),
            Access::Wired(access) => access.reset_statistics(now),
        }
    }

    fn check(&self, packet: &Packet<P>) {
        let server = self.hosts;
        assert!(packet.from.index() <= server, "{:?} is no node of this network", packet.from);
        if let Destination::Node(to) = packet.to {
            assert!(to.index() <= server, "{to:?} is no node of this network");
        }
        let sizes = Bytes::new(1)..=Bytes::new(65_535);
        assert!(sizes.contains(&packet.size), "an IP packet has 1 to 65535 bytes, not {}", packet.size);
    }

    fn places(&self) -> impl Iterator<Item = Place> + use<P> {
        let hosts = (0..self.hosts).map(|host| Place::Host(NodeId(host as u16)));
        hosts.chain([Place::AccessPoint, Place::PathUp, Place::PathDown])
    }

    fn queue(&self, place: Place) -> &Queue<P> {
        match (place, &self.access) {
            (Place::Host(host), Access::Wifi(medium)) => medium.host_queue(host.index()),
            (Place::Host(host), Access::Wired(access)) => access.host_queue(host.index()),
            (Place::AccessPoint, Access::Wifi(medium)) => medium.access_point_queue(),
            (Place::AccessPoint, Access::Wired(access)) => access.down_queue(),
            (Place::PathUp, _) => self.up.queue(),
            (Place::PathDown, _) => self.down.queue(),
        }
    }

    fn next_event(&self) -> Time {
        self.next_access_event().min(self.up.next_event()).min(self.down.next_event())
    }

    fn next_access_event(&self) -> Time {
        match &self.access {
            Access::Wifi(medium) => medium.next_event(),
            Access::Wired(access) => access.next_event(),
        }
    }

    fn run(&mut self, until: Time, deliveries: &mut Vec<Delivery<P>>) {
        loop {
            let (access, up, down) = (self.next_access_event(), self.up.next_event(), self.down.next_event());
            let now = access.min(up).min(down);
            if now > until || now == Time::MAX {
                break;
            }
            self.clock = now;
            self.events += 1;
            if access == now {
                let packet = match &mut self.access {
                    Access::Wifi(medium) => medium.step(now, deliveries),
                    Access::Wired(access) => access.step(now, deliveries),
                };
                if let Some(packet) = packet {
                    self.forward(now, packet);
                }
            } else if up == now {
                if let Some(packet) = self.up.step(now) {
                    deliveries.push(Delivery { at: now, to: NodeId(self.hosts as u16), packet });
                }
            } else if let Some(packet) = self.down.step(now) {
                self.forward(now, packet);
            }
        }
        self.clock = self.clock.max(until);
    }

    /// What the access point does with a packet that has come to it. A full queue counts the drop.
    fn forward(&mut self, now: Time, packet: Packet<P>) {
        let is_for_server = packet.to == Destination::Node(NodeId(self.hosts as u16));
        let _dropped = match &mut self.access {
            _ if is_for_server => self.up.offer(now, packet),
            Access::Wifi(medium) => medium.offer_down(now, packet),
            Access::Wired(access) => access.offer_down(now, packet),
        };
    }
}
