//! The event loop: the earliest event happens, in a total order.

use crate::agent::{Agent, flow_sample};
use crate::connection::{Connection, Counts, Ends, OfBoth, Role};
use crate::measure::{counted, seen};
use crate::packet::{Payload, Stamp, Tag, connection_of, flow_id};
use crate::wire::Wire;
use crate::{Options, PolicyOf, SimError, saturates};
use lasthop_capture::{Capture, Side};
use lasthop_laws::Choice;
use lasthop_measure::{Finished, Measurement, Sampled};
use lasthop_network::random::Streams;
use lasthop_network::schedule::Schedule;
use lasthop_network::{
    AccessConfig, Delivery, Departure, Destination, Network, NodeId, Packet, QueueId, Roam, Seen, Topology,
};
use lasthop_peers::beacon;
use lasthop_scenario::{HostSpec, Kind as _, Pieces, RunResult, Scenario, Series, TrafficKind, Transport};
use lasthop_tcp::{Endpoint, Segment};
use lasthop_traffic::{Action, Application, Message};
use lasthop_units::{Bytes, Ecn, Time};
use rand::RngExt as _;
use std::sync::atomic::Ordering;

/// IP and UDP headers of a datagram.
pub(crate) const DATAGRAM_HEADERS: Bytes = Bytes::new(28);

/// The active saturated flows of the hosts that share a transmit queue, and which one is next.
#[derive(Clone, Debug, Default)]
struct Turns {
    /// Each with the size of its packets.
    flows: Vec<(usize, Bytes)>,
    next: usize,
    at: Time,
    /// Packets offered at the current time.
    offers: u32,
}

/// Steps between two checks of `stop`: some milliseconds.
const STEPS_BETWEEN_LOOKS: u64 = 1 << 12;

/// Packets that may be on their way at once: with 130 bytes each, 1.3 GB. The same scenario ends so on every machine.
const MOST_ON_THEIR_WAY: usize = 10_000_000;

/// Datagrams that a host may offer at one time. A link that loses every packet before its queue never fills.
const MOST_OFFERS: u32 = 100_000;

/// The flow number of beacons, which no connection has.
const BEACON_FLOW: u32 = u32::MAX;

/// The state of one run.
pub(crate) struct Simulation<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) hosts: &'a [HostSpec],
    options: &'a Options<'a>,
    pub(crate) network: Network<Payload>,
    pub(crate) timers: Schedule,
    pub(crate) slots: Slots,
    pub(crate) connections: Vec<Connection>,
    agents: Vec<Option<Agent>>,
    /// Of stations without an agent.
    rts_threshold: Option<Bytes>,
    /// The connections of each host.
    of_host: Vec<std::ops::Range<usize>>,
    /// The saturated flows, at the place that `shares_with` has.
    saturated: Vec<Turns>,
    /// Of each host the first one on its node: they share its queues, and would starve each other if each filled them alone.
    shares_with: Vec<usize>,
    /// By host: whether its connections are told what left its queue. Others' departures only make room for saturated flows.
    watches: Vec<bool>,
    measurement: Measurement<'a>,
    /// The counts of each connection at the end of the warm-up.
    warm: Vec<Counts>,
    /// Whether the network has an access point that forwards broadcasts.
    broadcasts: bool,
    /// The roams so far.
    roamed: usize,
    timer_events: u64,
    /// The network's events in the warm-up.
    early_events: u64,
    /// Number of segments that arrived for closed connections.
    pub(crate) strays: u64,
    /// Why the run cannot go on.
    failure: Option<SimError>,
    /// Shows all packets, if somebody asked for it.
    pub(crate) capture: Option<Box<Captured<'a>>>,
    // Buffers that are taken, used and put back, to allocate nothing per event.
    actions: Vec<Action>,
    complete: Vec<Message>,
}

/// A capture, and what it needs.
pub(crate) struct Captured<'a> {
    to: &'a mut Capture,
    wire: Wire,
    /// The packets so far: their numbers.
    packets: u32,
    seen: Vec<Seen<Payload>>,
}

/// The slots of the timers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slots {
    connections: usize,
    hosts: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    End {
        connection: usize,
        role: Role,
    },
    Application {
        connection: usize,
    },
    Tick {
        host: usize,
    },
    Beacon {
        host: usize,
    },
    /// The client's report changes.
    Report {
        connection: usize,
    },
    Warm,
    Sample,
    /// Hosts that roam are associated.
    Roam,
}

impl Slots {
    fn count(self) -> usize {
        4 * self.connections + 2 * self.hosts + 3
    }

    pub(crate) fn of(self, owner: Owner) -> usize {
        let (ends, applications) = (2 * self.connections, 3 * self.connections);
        match owner {
            Owner::End { connection, role } => 2 * connection + role as usize,
            Owner::Application { connection } => ends + connection,
            Owner::Tick { host } => applications + 2 * host,
            Owner::Beacon { host } => applications + 2 * host + 1,
            Owner::Report { connection } => applications + 2 * self.hosts + connection,
            Owner::Warm => applications + 2 * self.hosts + self.connections,
            Owner::Sample => applications + 2 * self.hosts + self.connections + 1,
            Owner::Roam => applications + 2 * self.hosts + self.connections + 2,
        }
    }

    fn owner(self, slot: usize) -> Owner {
        let (ends, applications) = (2 * self.connections, 3 * self.connections);
        let agents = applications + 2 * self.hosts;
        match slot {
            slot if slot < ends => Owner::End { connection: slot / 2, role: Role::BOTH[slot % 2] },
            slot if slot < applications => Owner::Application { connection: slot - ends },
            slot if slot < agents && (slot - applications).is_multiple_of(2) => {
                Owner::Tick { host: (slot - applications) / 2 }
            }
            slot if slot < agents => Owner::Beacon { host: (slot - applications) / 2 },
            slot if slot < agents + self.connections => Owner::Report { connection: slot - agents },
            slot if slot == agents + self.connections => Owner::Warm,
            slot if slot == agents + self.connections + 1 => Owner::Sample,
            _ => Owner::Roam,
        }
    }
}

impl<'a> Simulation<'a> {
    pub(crate) fn new(
        scenario: &'a Scenario,
        hosts: &'a [HostSpec],
        options: &'a Options<'a>,
        policies: &mut PolicyOf<'_>,
    ) -> Result<Self, SimError> {
        let streams = Streams::new(scenario.seed);
        let mut config = scenario.network().clone();
        let shares_with = first_on_the_node(&config.topology, hosts.len());
        let is_filled = |first: usize| {
            let with_it = hosts.iter().zip(&shares_with).filter(|(_, its)| **its == first);
            with_it.flat_map(|(host, _)| &host.flows).any(|flow| saturates(&flow.kind))
        };
        let watches: Vec<bool> = hosts.iter().map(watches_its_queue).collect();
        for (number, host) in config.hosts.iter_mut().enumerate() {
            host.reports_departures = watches[number] || is_filled(shares_with[number]);
        }
        let mut network = Network::new(&config, scenario.seed).map_err(|error| SimError::Network(error.to_string()))?;
        network.read_acks(Payload::ack);
        let mut connections = Vec::new();
        let mut of_host = Vec::with_capacity(hosts.len());
        for host in hosts {
            let first = connections.len();
            for flow in &host.flows {
                if host.kind.tcp.tsq.is_some() || flow.kind.name().transport() == Transport::Quic {
                    network.report_departures(flow.server);
                }
                let stream = streams.stream(&format!("traffic/host-{}/flow-{}", host.number, flow.number));
                let application = Application::new(flow.kind.clone(), flow.start, flow.stop, stream);
                let mut connection = Connection::new(flow.clone(), NodeId(host.index), application);
                connection.reports = scenario.link_reports(host, flow).into();
                connections.push(connection);
            }
            of_host.push(first..connections.len());
        }
        let slots = Slots { connections: connections.len(), hosts: hosts.len() };
        let mut timers = Schedule::new(slots.count());
        for (connection, flow) in connections.iter().enumerate() {
            timers.set(slots.of(Owner::Application { connection }), flow.application.next_at());
            timers.set(slots.of(Owner::Report { connection }), flow.next_report_at());
        }
        let agents: Result<_, SimError> = hosts.iter().map(|host| Agent::new(host, streams, policies)).collect();
        let mut agents: Vec<Option<Agent>> = agents?;
        let broadcasts = matches!(config.topology, Topology::AccessPoint { .. });
        for (host, agent) in agents.iter_mut().enumerate() {
            let Some(agent) = agent else { continue };
            timers.set(slots.of(Owner::Tick { host }), agent.first_tick);
            if broadcasts {
                timers.set(slots.of(Owner::Beacon { host }), agent.next_beacon_at(Time::ZERO));
            }
        }
        timers.set(slots.of(Owner::Warm), Time::ZERO + scenario.warmup);
        timers.set(slots.of(Owner::Sample), Time::ZERO + scenario.sample);
        timers.set(slots.of(Owner::Roam), scenario.roams().first().map_or(Time::MAX, Roam::associated));
        Ok(Self {
            scenario,
            hosts,
            options,
            measurement: Measurement::new(scenario, hosts, options.series),
            warm: vec![Counts::default(); connections.len()],
            network,
            timers,
            slots,
            connections,
            agents,
            rts_threshold: match &config.topology {
                Topology::AccessPoint { access: AccessConfig::Wifi(wifi), .. } => wifi.rts_threshold,
                _ => None,
            },
            of_host,
            saturated: hosts.iter().map(|_| Turns::default()).collect(),
            shares_with,
            watches,
            broadcasts,
            roamed: 0,
            timer_events: 0,
            early_events: 0,
            strays: 0,
            failure: None,
            capture: None,
            actions: Vec::new(),
            complete: Vec::new(),
        })
    }

    /// Shows all packets from now on.
    pub(crate) fn capture(mut self, to: &'a mut Capture) -> Self {
        self.network.watch();
        let wire = Wire::new(self.hosts.len());
        self.capture = Some(Box::new(Captured { to, wire, packets: 0, seen: Vec::new() }));
        self
    }

    pub(crate) fn run(mut self) -> Result<Option<(RunResult, Series)>, SimError> {
        let end = Time::ZERO + self.scenario.duration;
        let (mut deliveries, mut departed) = (Vec::new(), Vec::new());
        for step in 1_u64.. {
            let timer = self.timers.first_at();
            if let Some(now) = self.network.advance_to_output(timer.min(end), &mut deliveries) {
                self.hand_over(now, &mut deliveries);
                self.tell_departures(now, &mut departed);
            } else if timer > end {
                break;
            } else {
                self.wake(timer, self.timers.first());
                if let Some(failure) = self.failure.take() {
                    // A policy that waits for its program ends with the run.
                    return if self.options.stop.load(Ordering::Relaxed) { Ok(None) } else { Err(failure) };
                }
            }
            if step.is_multiple_of(STEPS_BETWEEN_LOOKS) {
                if self.options.stop.load(Ordering::Relaxed) {
                    return Ok(None);
                }
                self.check_room(timer.min(end))?;
            }
        }
        self.network.advance(end, &mut deliveries);
        self.show_last(end, &deliveries);
        let statistics = self.network.statistics(end);
        let policies = self.hosts.iter().zip(&self.agents);
        let policies = policies.filter_map(|(host, agent)| agent.as_ref().map(|agent| agent.result(host)));
        let policies = policies.collect();
        let mut notes = Vec::new();
        let of = self.connections.len();
        let count = |which: &dyn Fn(&Connection) -> bool| self.connections.iter().filter(|flow| which(flow)).count();
        let unconnected = count(&Connection::is_unconnected);
        if unconnected > 0 {
            notes.push(format!("{unconnected} of {of} flows did not connect within the run"));
        }
        let failed = count(&|flow| flow.failures > 0);
        if failed > 0 {
            notes.push(format!("{failed} of {of} flows gave up after too many timeouts"));
        }
        if self.strays > 0 {
            notes.push(format!(
                "{} segments arrived for connections that a next transfer had replaced or that had given up",
                self.strays
            ));
        }
        if !self.broadcasts && self.agents.iter().any(Option::is_some) {
            notes.push(lasthop_scenario::NO_PEERS_OVER_LINKS.to_owned());
        }
        for (number, flow) in self.connections.iter().enumerate() {
            flow.application.undelivered().for_each(|message| self.measurement.on_undelivered(number, message));
            let video = flow.application.video(Time::ZERO + self.scenario.warmup, end);
            video.into_iter().for_each(|video| self.measurement.on_video(number, video));
        }
        let flows = self.connections.iter().zip(&self.warm);
        let flows = flows.map(|(flow, warm)| counted(&flow.spec.kind, &flow.counts(), warm));
        let outcome = self.measurement.into_outcome(Finished {
            build: self.options.build.clone(),
            flows: flows.collect(),
            statistics: &statistics,
            device_drops: 0,
            policies,
            events: statistics.events + self.timer_events + self.early_events,
            notes,
            real_time: None,
        });
        Ok(Some(outcome))
    }

    /// Whether what is on its way has room in memory.
    fn check_room(&self, at: Time) -> Result<(), SimError> {
        let packets = self.network.packets_inside();
        if packets <= MOST_ON_THEIR_WAY { Ok(()) } else { Err(SimError::Room { packets, most: MOST_ON_THEIR_WAY, at }) }
    }

    /// Hands over the packets that have arrived.
    fn hand_over(&mut self, now: Time, deliveries: &mut Vec<Delivery<Payload>>) {
        self.show_seen();
        for Delivery { to, packet, .. } in &mut *deliveries {
            self.show(now, *to, Side::In, packet);
            let (connection, tag) = (packet.flow as usize, Tag::of(packet.id));
            match (&mut packet.payload, tag) {
                (Payload::Segment(segment), Some(tag)) => {
                    segment.ecn = packet.ecn;
                    self.on_segment(now, connection, tag, segment);
                }
                (Payload::Quic(datagram), Some(tag)) => {
                    self.on_quic(now, connection, tag, std::mem::take(datagram), packet.ecn);
                }
                (Payload::Segment(_) | Payload::Quic(_), None) => unreachable!("an end has sent it"),
                (Payload::Beacon(datagram), _) => {
                    let agent = self.agents.get_mut(to.index()).and_then(Option::as_mut);
                    if let Some(agent) = agent {
                        agent.on_beacon(now, packet.from, datagram);
                    }
                }
                (Payload::Datagram(stamp), _) => self.on_datagram(now, connection, packet.size, *stamp),
            }
        }
        deliveries.clear();
    }

    /// Tells connections which packets left their hosts' queues, and lets saturated flows fill the room.
    fn tell_departures(&mut self, now: Time, departed: &mut Vec<Departure>) {
        self.network.take_departed(departed);
        let mut departures = departed.drain(..).peekable();
        let mut waits = false;
        while let Some(Departure { node, flow, id, size, made_room }) = departures.next() {
            let node = node.index();
            if let Some(tag) = Tag::of(id)
                && self.watches.get(node).is_none_or(|watches| *watches)
                && self.connections[flow as usize].incarnation == tag.incarnation
            {
                let (connection, role) = (flow as usize, tag.role);
                match &mut self.connections[connection].ends {
                    Ends::None => {}
                    Ends::Tcp(ends) => ends[role].on_departed(now, size),
                    Ends::Quic(ends) => ends[role].on_departed(),
                }
                let next = departures.peek().filter(|next| next.flow == flow).and_then(|next| Tag::of(next.id));
                let is_followed = next.is_some_and(|next| next.is_of_same_end(tag));
                waits = is_followed && (waits || self.refills_at_once(node, connection, role));
                if !waits {
                    self.flush(now, connection, role);
                }
            }
            // A full queue of flows drops up to 64 packets at once. They are replaced when one is next sent: otherwise each
            // packet of another flow would cost so many offers.
            if !made_room && self.is_saturating(node) {
                self.saturate(now, node);
            }
        }
    }

    /// Whether the end, of whose packets several leave at once, as an aggregate does, sends after the last one what it would have
    /// sent after each: the queue takes all of it, and nobody else fills it.
    fn refills_at_once(&self, node: usize, connection: usize, role: Role) -> bool {
        let Connection { ends: Ends::Tcp(ends), spec, .. } = &self.connections[connection] else { return false };
        let room = self.network.room_for(NodeId(node as u16), spec.dscp);
        room >= ends[role].most_at_once() && !self.is_saturating(node)
    }

    /// Runs the owner of a timer that fired.
    fn wake(&mut self, now: Time, slot: usize) {
        self.timer_events += 1;
        match self.slots.owner(slot) {
            Owner::End { connection, role } => {
                self.timers.set(slot, Time::MAX);
                let failed = match &mut self.connections[connection].ends {
                    Ends::None => return,
                    Ends::Tcp(ends) => {
                        ends[role].on_timeout(now);
                        ends[role].has_failed()
                    }
                    Ends::Quic(ends) => {
                        ends[role].on_timeout(now);
                        ends[role].has_failed()
                    }
                };
                self.flush(now, connection, role);
                if failed {
                    self.on_failed(now, connection);
                }
            }
            Owner::Application { connection } => self.on_application(now, connection),
            Owner::Tick { host } => {
                self.timers.set(slot, now + lasthop_policy::TICK);
                self.on_tick(now, host);
                if self.broadcasts {
                    self.send_beacon(now, host);
                }
            }
            Owner::Beacon { host } => self.send_beacon(now, host),
            Owner::Report { connection } => {
                let flow = &mut self.connections[connection];
                let report = flow.report(now);
                self.timers.set(slot, flow.next_report_at());
                if let Ends::Tcp(ends) = &mut flow.ends {
                    ends[Role::Client].report_link(report);
                    self.flush(now, connection, Role::Client);
                }
            }
            Owner::Warm => {
                self.timers.set(slot, Time::MAX);
                self.early_events = self.network.statistics(now).events;
                self.network.reset_statistics(now);
                self.warm = self.connections.iter().map(Connection::counts).collect();
            }
            Owner::Sample => {
                self.timers.set(slot, now + self.scenario.sample);
                self.sample(now);
                (self.options.progress)(now - Time::ZERO);
            }
            Owner::Roam => {
                let next = self.scenario.roams()[self.roamed..].iter();
                for Roam { host, .. } in next.take_while(|roam| roam.associated() <= now) {
                    self.roamed += 1;
                    let Some(agent) = &mut self.agents[*host] else { continue };
                    agent.on_roamed(now, &self.hosts[*host]);
                    self.timers.set(self.slots.of(Owner::Beacon { host: *host }), agent.next_beacon_at(now));
                }
                let next = self.scenario.roams().get(self.roamed);
                self.timers.set(slot, next.map_or(Time::MAX, Roam::associated));
            }
        }
    }

    /// Samples all connections and queues.
    fn sample(&mut self, now: Time) {
        for (number, flow) in self.connections.iter_mut().enumerate() {
            // A transfer of an open loop is sampled until it is over, and once then.
            if flow.spec.arrival.is_some()
                && matches!(flow.ends, Ends::None)
                && (flow.incarnation == 0 || std::mem::replace(&mut flow.is_told, true))
            {
                continue;
            }
            let counts = flow.counts();
            let seen = seen(flow, &counts);
            self.measurement.on_sample(now, number, counts.received, seen.as_ref());
            if let Some(on_sample) = self.options.on_sample {
                on_sample(now, Sampled::Connection(number, counts.received, seen.as_ref()));
            }
        }
        for place in self.network.queues() {
            let packets = self.network.queue_packets(place);
            self.measurement.on_queue(now, place, packets);
            if let (QueueId::AccessPoint, Some(on_sample)) = (place, self.options.on_sample) {
                on_sample(now, Sampled::Queue(packets));
            }
        }
        if let Some(on_sample) = self.options.on_sample
            && let Some(air) = self.network.air(now)
        {
            on_sample(now, Sampled::Air { busy: air.busy(), of: air.busy() + air.contention + air.idle });
        }
    }

    fn on_segment(&mut self, now: Time, connection: usize, sender: Tag, segment: &Segment) {
        let Tag { incarnation, role, .. } = sender.answering();
        let flow = &mut self.connections[connection];
        let (Ends::Tcp(ends), true) = (&mut flow.ends, flow.incarnation == incarnation) else {
            self.strays += 1;
            return;
        };
        ends[role].on_segment(now, segment);
        if role == flow.writer
            && let Some(rtt) = ends[role].take_rtt_sample()
        {
            self.measurement.on_round_trip(now, connection, rtt);
        }
        let over = ends[Role::Client].is_closed() && ends[Role::Server].is_closed();
        self.on_read(now, connection, role);
        let flow = &mut self.connections[connection];
        if role == flow.writer && flow.application.on_asked(now, flow.asked_bytes()) {
            let at = self.connections[connection].application.next_at();
            self.timers.set(self.slots.of(Owner::Application { connection }), at);
        }
        self.flush(now, connection, role);
        if over {
            self.connections[connection].retire();
        }
    }

    /// The application at this end has read what has come; that of a receiver may have waited for it.
    #[inline(always)]
    pub(crate) fn on_read(&mut self, now: Time, connection: usize, role: Role) {
        let flow = &mut self.connections[connection];
        if role != flow.writer && flow.application.awaits() {
            let read = flow.read_bytes();
            flow.application.on_read(now, read, &mut self.complete);
            if !self.complete.is_empty() {
                self.complete.drain(..).for_each(|message| self.measurement.on_delivered(now, connection, message));
                let at = flow.application.next_at();
                self.timers.set(self.slots.of(Owner::Application { connection }), at);
            }
        }
    }

    /// A datagram has reached its end; a ping is answered, and so is each copy of it.
    fn on_datagram(&mut self, now: Time, connection: usize, size: Bytes, stamp: Stamp) {
        let flow = &mut self.connections[connection];
        let is_first = flow.copies[usize::from(stamp.is_answer)].is_first(stamp.number);
        let pieces = flow.spec.kind.name().pieces();
        if is_first && !stamp.is_answer {
            flow.datagrams_received += size - DATAGRAM_HEADERS;
        }
        if pieces == Pieces::Pings && !stamp.is_answer {
            let from = flow.writer.other();
            self.send(now, connection, from, size, Stamp { is_answer: true, ..stamp });
        } else if is_first && pieces != Pieces::Streams {
            self.measurement.on_received(now, connection, stamp.number, stamp.sent_at);
        }
    }

    /// Sends a datagram from one end of a flow.
    fn send(&mut self, now: Time, connection: usize, role: Role, size: Bytes, stamp: Stamp) {
        let flow = &self.connections[connection];
        let (from, to) = (flow.nodes[role], Destination::Node(flow.nodes[role.other()]));
        let (number, dscp) = (connection as u32, flow.spec.dscp);
        let payload = Payload::Datagram(stamp);
        let packet = Packet { from, to, size, flow: number, dscp, ecn: Ecn::NotEct, id: Tag::NONE, payload };
        // The network counts a drop.
        let _counted = offer(&mut self.network, &mut self.capture, now, packet);
    }

    /// One end gave up.
    pub(crate) fn on_failed(&mut self, now: Time, connection: usize) {
        let flow = &mut self.connections[connection];
        if !std::mem::replace(&mut flow.has_failed, true) {
            flow.failures += 1;
            flow.application.on_failed(now);
            self.timers.set(self.slots.of(Owner::Application { connection }), flow.application.next_at());
        }
    }

    /// Sends the segments of one end of a connection until its queue is full, and sets its timer.
    pub(crate) fn flush(&mut self, now: Time, connection: usize, role: Role) {
        let flow = &mut self.connections[connection];
        let Ends::Tcp(ends) = &mut flow.ends else { return self.flush_quic(now, connection, role) };
        let end = &mut ends[role];
        let (from, to) = (flow.nodes[role], Destination::Node(flow.nodes[role.other()]));
        while let Some(segment) = end.poll_transmit(now) {
            let (size, ecn) = (segment.ip_bytes(), segment.ecn);
            let number = connection as u32;
            let payload = Payload::Segment(segment);
            let id = Tag { incarnation: flow.incarnation, role, number: 0 }.id();
            let dscp = flow.spec.dscp;
            let packet = Packet { from, to, size, flow: number, dscp, ecn, id, payload };
            match offer(&mut self.network, &mut self.capture, now, packet) {
                Ok(()) => {}
                Err(Packet { payload: Payload::Segment(segment), .. }) => {
                    end.on_refused(now, &segment);
                    break;
                }
                Err(packet) => unreachable!("a refused packet is returned unchanged: {packet:?}"),
            }
        }
        self.timers.set_no_later(self.slots.of(Owner::End { connection, role }), end.next_timeout());
    }

    fn on_application(&mut self, now: Time, connection: usize) {
        let mut actions = std::mem::take(&mut self.actions);
        let mut begins = false;
        self.connections[connection].application.act(now, &mut actions);
        for action in actions.drain(..) {
            if action == Action::Open {
                self.open(now, connection);
            }
            let flow = &mut self.connections[connection];
            if let Action::Send { number, packet } = action {
                self.measurement.on_sent(now, connection, number);
                let from = flow.writer;
                self.send(now, connection, from, packet, Stamp { number, sent_at: now, is_answer: false });
                continue;
            }
            let writer = flow.writer;
            match (action, &mut flow.ends) {
                (Action::Saturate(packet), _) => {
                    begins = true;
                    self.saturated[self.shares_with[usize::from(flow.spec.host)]].flows.push((connection, packet));
                }
                (Action::Cease, _) => {
                    let turns = &mut self.saturated[self.shares_with[usize::from(flow.spec.host)]];
                    turns.flows.retain(|(flow, _)| *flow != connection);
                }
                (Action::Ask(size), Ends::Tcp(ends)) => ends[writer.other()].write(size.get()),
                (Action::Write(size), Ends::Tcp(ends)) => ends[writer].write(size.get()),
                (Action::Write(size), Ends::Quic(ends)) => ends[writer].write(size.get()),
                (Action::WriteOn, Ends::Tcp(ends)) => ends[writer].write_endless(),
                (Action::WriteOn, Ends::Quic(ends)) => ends[writer].write_endless(),
                (Action::Pause, Ends::Tcp(ends)) => ends[writer].stop_writing(),
                (Action::Pause, Ends::Quic(ends)) => ends[writer].stop_writing(),
                (Action::Close, Ends::Tcp(ends)) => ends[writer].close(),
                (Action::Close, Ends::Quic(ends)) => ends[writer].close(),
                (Action::Open | Action::Send { .. } | Action::Ask(_), _) | (_, Ends::None) => {}
            }
        }
        self.actions = actions;
        let at = self.connections[connection].application.next_at();
        self.timers.set(self.slots.of(Owner::Application { connection }), at);
        self.flush(now, connection, Role::Client);
        self.flush(now, connection, Role::Server);
        if begins {
            self.saturate(now, usize::from(self.connections[connection].spec.host));
        }
    }

    fn open(&mut self, now: Time, connection: usize) {
        let flow = &mut self.connections[connection];
        if let Some(law) = flow.spec.kind.quic_law() {
            return self.open_quic(now, connection, law);
        }
        let host = usize::from(flow.spec.host);
        let kind = &self.hosts[host].kind;
        let law = kind.law.expect("a checked scenario has known laws only");
        let number = flow.spec.arrival.unwrap_or(flow.incarnation);
        let name = format!("law/flow-{}/{number}", flow.spec.id);
        let mut seeds = Streams::new(self.scenario.seed).stream(&name);
        let mut seeded = || Choice { seed: seeds.random(), ..law };
        let mut client = Endpoint::connect(now, &kind.tcp, seeded());
        client.report_link(flow.report(now));
        if let Some((bound, lease)) = self.agents[host].as_ref().and_then(|agent| agent.bound_of_new_flow(now)) {
            client.set_bound(bound.leased(now, lease));
            self.measurement.bounds(connection).push(flow.interval(now, now + lease, Some(bound)));
        }
        let server = Endpoint::listen(&kind.tcp, seeded());
        flow.open(Ends::Tcp(Box::new(OfBoth([client, server]))));
        for role in Role::BOTH {
            self.timers.set(self.slots.of(Owner::End { connection, role }), Time::MAX);
        }
    }

    /// Whether the node is a host that has saturated flows, or shares its queue with one.
    fn is_saturating(&self, node: usize) -> bool {
        self.shares_with.get(node).is_some_and(|first| !self.saturated[*first].flows.is_empty())
    }

    /// Fills the host's queue with datagrams of saturated flows in turn: its own, and those of hosts that share it.
    fn saturate(&mut self, now: Time, host: usize) {
        let turns = &mut self.saturated[self.shares_with[host]];
        if turns.at != now {
            (turns.at, turns.offers) = (now, 0);
        }
        let mut in_vain = 0;
        while turns.offers < MOST_OFFERS && in_vain < turns.flows.len() {
            let (connection, size) = turns.flows[turns.next % turns.flows.len()];
            turns.next = (turns.next + 1) % turns.flows.len();
            let flow = &mut self.connections[connection];
            let (from, dscp) = (NodeId(flow.spec.host), flow.spec.dscp);
            // Each access category has a queue of its own.
            if self.network.room_for(from, dscp) == 0 {
                in_vain += 1;
                continue;
            }
            in_vain = 0;
            turns.offers += 1;
            // As much work as an event of the network.
            self.timer_events += 1;
            let (to, number) = (Destination::Node(flow.nodes[Role::Server]), connection as u32);
            let stamp = Stamp { number: flow.filled, sent_at: now, is_answer: false };
            flow.filled += 1;
            let payload = Payload::Datagram(stamp);
            let packet = Packet { from, to, size, flow: number, dscp, ecn: Ecn::NotEct, id: Tag::NONE, payload };
            if offer(&mut self.network, &mut self.capture, now, packet).is_err() {
                break;
            }
        }
    }

    fn on_tick(&mut self, now: Time, host: usize) {
        let agent = self.agents[host].as_mut().expect("only hosts with an agent have ticks");
        let mut samples = Vec::new();
        for connection in self.of_host[host].clone() {
            let flow = &self.connections[connection];
            if let Ends::Tcp(ends) = &flow.ends
                && ends[Role::Client].is_established()
            {
                samples.push(flow_sample(flow_id(connection, flow.incarnation), &ends[Role::Client].info()));
            }
        }
        let bounds = agent.on_tick(now, &self.hosts[host], &samples).unwrap_or_else(|failure| {
            self.failure = Some(failure);
            Vec::new()
        });
        if let Some(threshold) = agent.rts_threshold(now, self.rts_threshold) {
            self.network.set_rts_threshold(NodeId(host as u16), threshold);
        }
        for (id, bound) in bounds {
            let (connection, incarnation) = connection_of(id);
            let flow = &mut self.connections[connection];
            let is_open = flow.incarnation == incarnation;
            // A closed connection has no bound any more.
            let (Ends::Tcp(ends), true) = (&mut flow.ends, is_open) else { continue };
            if !ends[Role::Client].is_established() {
                continue;
            }
            let lease = lasthop_laws::bound::LEASE;
            ends[Role::Client].set_bound(bound.unwrap_or_default().leased(now, lease));
            let until = if bound.is_some() { now + lease } else { now };
            let interval = self.connections[connection].interval(now, until, bound);
            self.measurement.bounds(connection).push(interval);
            self.flush(now, connection, Role::Client);
        }
    }

    /// Sends a beacon if one is due, and sets the timer for the next.
    fn send_beacon(&mut self, now: Time, host: usize) {
        let agent = self.agents[host].as_mut().expect("only hosts with an agent have beacons");
        let beacon = agent.poll_beacon(now);
        self.timers.set(self.slots.of(Owner::Beacon { host }), agent.next_beacon_at(now));
        let Some(datagram) = beacon else { return };
        let size = DATAGRAM_HEADERS + Bytes::new(datagram.len() as u64);
        let payload = Payload::Beacon(datagram);
        let packet = Packet {
            from: NodeId(host as u16),
            to: Destination::Broadcast,
            size,
            flow: BEACON_FLOW,
            dscp: beacon::DSCP,
            ecn: Ecn::NotEct,
            id: Tag::NONE,
            payload,
        };
        // The network counts a drop.
        let _counted = offer(&mut self.network, &mut self.capture, now, packet);
    }

    /// Shows a packet at a host.
    #[inline]
    fn show(&mut self, now: Time, host: NodeId, side: Side, packet: &Packet<Payload>) {
        if let Some(captured) = &mut self.capture {
            captured.show(now, host, side, packet);
        }
    }

    /// Shows what has happened inside the network.
    #[inline]
    fn show_seen(&mut self) {
        if let Some(captured) = &mut self.capture {
            captured.show_seen(&mut self.network);
        }
    }

    fn show_last(&mut self, end: Time, deliveries: &[Delivery<Payload>]) {
        if let Some(captured) = &mut self.capture {
            captured.show_seen(&mut self.network);
            for Delivery { to, packet, .. } in deliveries {
                captured.show(end, *to, Side::In, packet);
            }
            self.network.take_last_seen(end, &mut captured.seen);
            captured.show_taken();
        }
    }
}

impl Captured<'_> {
    #[cold]
    fn show(&mut self, now: Time, host: NodeId, side: Side, packet: &Packet<Payload>) {
        let bytes = self.wire.bytes(packet);
        self.to.packet(now, host, side, &bytes, packet.size.get());
    }

    #[cold]
    fn show_seen(&mut self, network: &mut Network<Payload>) {
        network.take_seen(&mut self.seen);
        self.show_taken();
    }

    fn show_taken(&mut self) {
        let Self { to, wire, seen, .. } = self;
        seen.drain(..).for_each(|seen| to.seen(&seen, &mut |packet| wire.bytes(packet)));
    }

    /// Offers a packet with its number, and shows it if it is taken.
    #[cold]
    fn offer(
        &mut self,
        network: &mut Network<Payload>,
        now: Time,
        mut packet: Packet<Payload>,
    ) -> Result<(), Packet<Payload>> {
        if let Some(tag) = Tag::of(packet.id) {
            self.packets = self.packets.wrapping_add(1);
            packet.id = Tag { number: self.packets, ..tag }.id();
        }
        let from = packet.from;
        let copy = packet.clone();
        // The end that has sent a SYN is known even if the SYN is lost.
        let bytes = self.wire.bytes(&copy);
        let taken = network.offer(now, packet);
        self.show_seen(network);
        if taken.is_ok() {
            self.to.packet(now, from, Side::Out, &bytes, copy.size.get());
        }
        taken
    }
}

/// Offers a packet to the network.
#[inline]
pub(crate) fn offer(
    network: &mut Network<Payload>,
    capture: &mut Option<Box<Captured<'_>>>,
    now: Time,
    packet: Packet<Payload>,
) -> Result<(), Packet<Payload>> {
    match capture {
        None => network.offer(now, packet),
        Some(captured) => captured.offer(network, now, packet),
    }
}

fn watches_its_queue(host: &HostSpec) -> bool {
    let fills_it = |kind: &TrafficKind| saturates(kind) || kind.name().transport() == Transport::Quic;
    host.kind.tcp.tsq.is_some() || host.flows.iter().any(|flow| fills_it(&flow.kind))
}

/// Of each host the first one on its node: with `[[links]]` the queues are the node's, else each host has its own.
fn first_on_the_node(topology: &Topology, hosts: usize) -> Vec<usize> {
    let Topology::Links(links) = topology else { return (0..hosts).collect() };
    let seats: Vec<usize> = (0..hosts).map(|host| links.seat(NodeId(host as u16))).collect();
    seats.iter().map(|seat| seats.iter().position(|other| other == seat).expect("it is one of them")).collect()
}
