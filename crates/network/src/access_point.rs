//! Hosts behind one access, and one server behind a path. Several access points of Wi-Fi share the path.
//!
//! Algorithm: each part (the access, the path up, the path down, the hosts) knows the time of its next event. The
//! earliest goes first; ties go in this order of parts. The access point forwards a packet by its destination: to the
//! path (server), or into its own downlink queue (another host, or all others).
//!
//! Leaves out: the access point's forwarding time, several servers.

use crate::change::{Changed, DirectionChange};
use crate::config::{AccessConfig, Cells, Config, DirectionConfig, HostConfig, LossAt, PathConfig, Roam};
use crate::host_path::{Course, Lanes, RoundTrip};
use crate::impairments::{Impairments, Scatter};
use crate::link::{Link, Step};
use crate::packet::{Delivery, Departure, Destination, NodeId, Outcome, Packet};
use crate::queue::{Queue as _, QueueConfig, ReadAck};
use crate::random::{Streams, numbers};
use crate::server::NewPace;
use crate::statistics::{AirTime, Observed, QueueId, Statistics, Way};
use crate::topology::Pace;
use crate::turnaround::Turnarounds;
use crate::watch::Log;
use crate::wifi::Medium;
use crate::wired::WiredAccess;
use lasthop_units::{Bytes, Span, Time};

#[derive(Clone, Debug)]
pub(crate) struct AccessPoint<P> {
    hosts: usize,
    access_points: usize,
    /// Where the stations are now.
    cells: Option<Cells>,
    /// That of the shared path.
    path_rtt: Span,
    access: Access<P>,
    up: Link<P>,
    down: Link<P>,
    /// Turnaround times of the Wi-Fi hosts; `None` if none takes any time.
    turnarounds: Option<Box<Turnarounds<P>>>,
    /// Reused: one event's deliveries from the medium to MACs.
    received: Vec<Delivery<P>>,
    /// Reused: one event's arrivals from the medium at the access point.
    arrived: Vec<Packet<P>>,
    /// Whether hosts have round-trip times of their own.
    has_lanes: bool,
    server_reports: bool,
    /// The time of the next event, and the part whose event it is.
    next: Time,
    first: Part,
}

/// The parts, in the order of their simultaneous events.
#[derive(Clone, Copy, Debug)]
enum Part {
    Access,
    Up,
    Down,
    Hosts,
}

#[derive(Clone, Debug)]
enum Access<P> {
    Wifi(Box<Medium<P>>),
    Wired(Box<WiredAccess<P>>),
}

impl<P: Clone> AccessPoint<P> {
    /// An idle access and path, prepared for the changes of `network`.
    pub(crate) fn new(access: &AccessConfig, path: &PathConfig, network: &Config, streams: Streams) -> Self {
        let hosts = &network.hosts;
        let access = match access {
            AccessConfig::Wifi(wifi) => {
                Access::Wifi(Box::new(Medium::new(wifi, hosts, network.cells.as_ref(), streams)))
            }
            AccessConfig::Wired(wired) => {
                Access::Wired(Box::new(WiredAccess::new(wired, network.wired_changes(), hosts, streams)))
            }
        };
        let changes = network.path_changes();
        let there = path.rtt / 2;
        let direction = |delay, loss, impairments| DirectionConfig {
            rate: path.rate,
            delay,
            queue: QueueConfig::fifo(path.queue_packets),
            loss,
            loss_at: LossAt::AfterQueue,
            impairments,
        };
        let [there_too, back_too] = path.impairments;
        let mut up = Link::new(&direction(there, path.loss, there_too), changes, streams, "path/up");
        let mut down = Link::new(&direction(path.rtt - there, path.back_loss, back_too), changes, streams, "path/down");
        let has_own = |host: &HostConfig| host.path.is_some() || host.path_jitter.is_some();
        let cells = network.cells.as_ref();
        let path_of_cell = |host: usize| cells.and_then(|cells| cells.path_rtt(cells.of_host[host]));
        let has_lanes = hosts.iter().any(has_own)
            || path.impairments.iter().any(Impairments::scatter)
            || cells.is_some_and(|cells| cells.path_rtts.iter().any(Option::is_some));
        if has_lanes {
            let round_trip = |(place, (number, host)): (usize, (u16, &HostConfig))| match host.path {
                Some(own) => RoundTrip::drawn(own, streams.stream(&format!("path/rtt/{number}"))),
                None => RoundTrip::Constant(path_of_cell(place).unwrap_or(path.rtt)),
            };
            let numbers = numbers(hosts.iter().map(|host| host.is_idle));
            let mut round_trips: Vec<_> = numbers.into_iter().zip(hosts).enumerate().map(round_trip).collect();
            round_trips.push(RoundTrip::Constant(path.rtt));
            let lanes = |impairments: &Impairments, way, name| {
                let jitters = hosts.iter().map(|host| host.path_jitter).chain([None]);
                let jitters = jitters.map(|own| own.unwrap_or(impairments.jitter)).collect::<Vec<_>>();
                let scatters = impairments.scatter() || jitters.iter().any(|jitter| *jitter > Span::ZERO);
                let scatter = scatters.then(|| Scatter::new(impairments, streams, name));
                Lanes::new(Course::Path(way), round_trips.iter().cloned().zip(jitters), scatter)
            };
            up = up.with_lanes(lanes(&there_too, Way::Forth, "path/up"));
            down = down.with_lanes(lanes(&back_too, Way::Back, "path/down"));
        }
        let turnarounds = match access {
            Access::Wifi(_) => Turnarounds::new(hosts, streams),
            Access::Wired(_) => None,
        };
        Self {
            hosts: hosts.len(),
            access_points: network.cells.as_ref().map_or(1, |cells| cells.access_points),
            cells: network.cells.clone(),
            path_rtt: path.rtt,
            access,
            up,
            down,
            turnarounds,
            received: Vec::new(),
            arrived: Vec::new(),
            has_lanes,
            server_reports: false,
            next: Time::MAX,
            first: Part::Access,
        }
    }

    /// Tells transmissions and losses from now on.
    pub(crate) fn watch(&mut self, log: &Log<P>) {
        match &mut self.access {
            Access::Wifi(medium) => medium.watch(log),
            Access::Wired(access) => access.watch(log),
        }
        self.up.watch(log, QueueId::PathUp);
        self.down.watch(log, QueueId::PathDown);
    }

    /// Knows ACKs by this function from now on.
    pub(crate) fn read_acks(&mut self, read: ReadAck<P>) {
        match &mut self.access {
            Access::Wifi(medium) => medium.read_acks(read),
            Access::Wired(access) => access.read_acks(read),
        }
    }

    /// A wired access's queue downwards and its transmitter are elsewhere.
    pub(crate) fn pass_down(&mut self) {
        if let Access::Wired(access) = &mut self.access {
            access.pass_down();
        }
    }

    /// The watching ends: tells what is on the air.
    pub(crate) fn tell_unfinished(&mut self, now: Time) {
        if let Access::Wifi(medium) = &mut self.access {
            medium.tell_unfinished(now);
        }
    }

    /// Applies a change. What leaves a transmit queue by it joins `departed`.
    pub(crate) fn change(&mut self, now: Time, what: &Changed, pace: NewPace, departed: &mut Vec<Departure>) {
        match (*what, &mut self.access) {
            (Changed::Path { rtt, rate, loss, held, .. }, _) => {
                let shared = rtt.filter(|_| !self.has_lanes).map(|rtt| (rtt / 2, rtt - rtt / 2));
                let (there, back) = (shared.map(|(there, _)| there), shared.map(|(_, back)| back));
                self.up.change(
                    now,
                    DirectionChange { rate, delay: there, loss, held, opportunities: None },
                    pace.clone(),
                );
                self.down.change(
                    now,
                    DirectionChange { rate, delay: back, loss: None, held, opportunities: None },
                    pace,
                );
                if let Some(rtt) = rtt.filter(|_| self.has_lanes) {
                    self.path_rtt = rtt;
                    self.up.change_round_trip(rtt);
                    self.down.change_round_trip(rtt);
                    (0..self.hosts).for_each(|host| self.follow_path(host));
                }
            }
            (Changed::Wired { rate, delay, held, .. }, Access::Wired(access)) => {
                access.change(now, DirectionChange { rate, delay, held, ..DirectionChange::default() }, pace);
            }
            (Changed::Station { host, rate, mcs, frame_error_rate, snr_db, held }, Access::Wifi(medium)) => {
                medium.change_station(host, rate, mcs, frame_error_rate, snr_db);
                match held {
                    Some(true) => medium.hold(now, host),
                    Some(false) => medium.go_on(now, host),
                    None => {}
                }
            }
            (Changed::Left(roam), Access::Wifi(medium)) => {
                let cells = self.cells.as_ref().expect("only with cells there are roams");
                medium.leave(now, cells.roams[roam].host);
            }
            (Changed::Associated(roam), Access::Wifi(medium)) => {
                let cells = self.cells.as_mut().expect("only with cells there are roams");
                cells.follow(roam);
                let Roam { host, to, .. } = cells.roams[roam];
                medium.associate(now, host, to, cells, departed);
                self.follow_path(host);
            }
            (what, _) => unreachable!("a checked network has what {what:?} is about"),
        }
        self.find_next();
    }

    /// Sets a station's own RTS threshold. Nothing on wires.
    pub(crate) fn set_rts_threshold(&mut self, host: usize, threshold: Option<Bytes>) {
        if let Access::Wifi(medium) = &mut self.access {
            medium.set_rts_threshold(host, threshold);
        }
    }

    /// The host's round trips are those of the path behind its access point from now on, if that has one.
    fn follow_path(&mut self, host: usize) {
        let Some(cells) = self.cells.as_ref().filter(|_| self.has_lanes) else { return };
        let rtt = cells.path_rtt(cells.of_host[host]).unwrap_or(self.path_rtt);
        self.up.change_round_trip_of(host, rtt);
        self.down.change_round_trip_of(host, rtt);
    }

    /// Puts a packet into its sender's transmit queue, after all due events.
    pub(crate) fn offer(&mut self, now: Time, packet: Packet<P>) -> Result<(), Packet<P>> {
        let from = packet.from.index();
        // Not as a whole result, which would be copied.
        let refused = match &mut self.access {
            _ if from == self.hosts => self.down.offer_from_outside(now, packet, self.server_reports).err(),
            Access::Wifi(medium) => medium.offer_up(now, from, packet).err(),
            Access::Wired(access) => access.offer_up(now, from, packet).err(),
        };
        self.find_next();
        refused.map_or(Ok(()), Err)
    }

    pub(crate) fn next_event(&self) -> Time {
        self.next
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
        while self.next <= until && self.next < Time::MAX {
            let now = self.next;
            *clock = now;
            *events += 1;
            match self.first {
                Part::Access => self.step_access(now, outcome),
                Part::Up => {
                    if let Step::Arrived(packet) = self.up.step(now) {
                        outcome.deliveries.push(Delivery { at: now, to: NodeId(self.hosts as u16), packet });
                    }
                }
                Part::Down => match self.down.step(now) {
                    Step::Arrived(packet) => {
                        if let Access::Wired(access) = &mut self.access {
                            // First book the access's transmissions up to this packet's arrival.
                            access.book_down(now);
                        }
                        self.forward(now, packet);
                    }
                    Step::Sent(departure) if self.server_reports => outcome.departed.push(departure),
                    Step::Sent(_) | Step::Lost => {}
                },
                Part::Hosts => {
                    let turnarounds = self.turnarounds.as_mut();
                    outcome.deliveries.push(turnarounds.expect("hosts with events take their time").step());
                }
            }
            self.find_next();
            if pace == Pace::ToOutput && !outcome.is_empty() {
                until = now;
            }
        }
    }

    fn step_access(&mut self, now: Time, outcome: &mut Outcome<'_, P>) {
        match (&mut self.access, &mut self.turnarounds) {
            (Access::Wifi(medium), None) => medium.step(now, &mut self.arrived, outcome),
            (Access::Wifi(medium), Some(turnarounds)) => {
                let Outcome { deliveries, departed } = outcome;
                let mut outcome = Outcome { deliveries: &mut self.received, departed };
                medium.step(now, &mut self.arrived, &mut outcome);
                deliveries.extend(self.received.drain(..).filter_map(|delivery| turnarounds.take(delivery)));
            }
            (Access::Wired(access), _) => self.arrived.extend(access.step(now, outcome)),
        }
        if !self.arrived.is_empty() {
            let mut arrived = std::mem::take(&mut self.arrived);
            arrived.drain(..).for_each(|packet| self.forward(now, packet));
            self.arrived = arrived;
        }
    }

    pub(crate) fn report_departures(&mut self, node: NodeId) {
        match (&mut self.access, node.index()) {
            (_, index) if index == self.hosts => self.server_reports = true,
            (Access::Wifi(medium), index) => medium.report_departures(index),
            (Access::Wired(access), index) => access.report_departures(index),
        }
    }

    pub(crate) fn hosts_take(&mut self, time: Span) {
        if let Some(turnarounds) = &mut self.turnarounds {
            turnarounds.hosts_take(time);
        }
    }

    pub(crate) fn queues(&self) -> impl Iterator<Item = QueueId> + use<P> {
        let hosts = (0..self.hosts).map(|host| QueueId::Host(NodeId(host as u16)));
        let access_points = (0..self.access_points).map(QueueId::of_access_point);
        hosts.chain(access_points).chain([QueueId::PathUp, QueueId::PathDown])
    }

    pub(crate) fn len(&self, place: QueueId, now: Time) -> usize {
        match (place, &self.access) {
            (QueueId::Host(host), Access::Wifi(medium)) => medium.queue_len(host.index()),
            (QueueId::Host(host), Access::Wired(access)) => access.host_queue(host.index()).len(),
            (QueueId::AccessPoint | QueueId::OtherAccessPoint(_), Access::Wifi(medium)) => {
                medium.queue_len(self.hosts + place.access_point().unwrap_or(0))
            }
            (QueueId::AccessPoint, Access::Wired(access)) => access.down().len(now),
            (QueueId::PathUp, _) => self.up.len(now),
            (QueueId::PathDown, _) => self.down.len(now),
            (QueueId::Link { .. } | QueueId::OtherAccessPoint(_), _) => panic!("{place:?} is no place of this network"),
        }
    }

    /// The free places in the node's own transmit queue for packets with this DSCP.
    pub(crate) fn room(&self, node: NodeId, dscp: u8, now: Time) -> usize {
        match (&self.access, node.index()) {
            (_, index) if index == self.hosts => self.down.room(now),
            (Access::Wifi(medium), index) => medium.room(index, dscp),
            (Access::Wired(access), index) => access.host_queue(index).room(),
        }
    }

    pub(crate) fn observe(&self, place: QueueId, now: Time) -> Observed {
        match (place, &self.access) {
            (QueueId::Host(host), Access::Wifi(medium)) => medium.observe(host.index(), place, now),
            (QueueId::Host(host), Access::Wired(access)) => access.host_queue(host.index()).observe(place, now),
            (QueueId::AccessPoint | QueueId::OtherAccessPoint(_), Access::Wifi(medium)) => {
                medium.observe(self.hosts + place.access_point().unwrap_or(0), place, now)
            }
            (QueueId::AccessPoint, Access::Wired(access)) => access.down().observe(place, now),
            (QueueId::PathUp, _) => self.up.observe(place, now),
            (QueueId::PathDown, _) => self.down.observe(place, now),
            (QueueId::Link { .. } | QueueId::OtherAccessPoint(_), _) => panic!("{place:?} is no place of this network"),
        }
    }

    pub(crate) fn packets_inside(&self) -> usize {
        let inside_access = match &self.access {
            Access::Wifi(medium) => medium.packets_inside(),
            Access::Wired(access) => access.packets_inside(),
        };
        let inside_hosts = self.turnarounds.as_ref().map_or(0, |turnarounds| turnarounds.packets_inside());
        inside_access + inside_hosts + self.up.packets_inside() + self.down.packets_inside()
    }

    /// Use of the air time; `None`: it is wired.
    pub(crate) fn air(&self, now: Time) -> Option<AirTime> {
        match &self.access {
            Access::Wifi(medium) => Some(medium.air(now)),
            Access::Wired(_) => None,
        }
    }

    /// Adds the parts' counts. Returns the busy time of the access.
    pub(crate) fn report(&self, now: Time, statistics: &mut Statistics) -> Span {
        for (place, link) in [(QueueId::PathUp, &self.up), (QueueId::PathDown, &self.down)] {
            statistics.links.push(link.statistics(place, now, statistics.elapsed));
        }
        match &self.access {
            Access::Wifi(medium) => {
                medium.report(now, statistics);
                statistics.air.busy()
            }
            Access::Wired(access) => access.busy_time(now),
        }
    }

    pub(crate) fn reset_statistics(&mut self, now: Time) {
        self.up.reset_statistics(now);
        self.down.reset_statistics(now);
        match &mut self.access {
            Access::Wifi(medium) => medium.reset_statistics(now),
            Access::Wired(access) => access.reset_statistics(now),
        }
    }

    /// Of simultaneous events the first part's comes first.
    #[inline(always)]
    fn find_next(&mut self) {
        let access = match &self.access {
            Access::Wifi(medium) => medium.next_event(),
            Access::Wired(access) => access.next_event(),
        };
        (self.next, self.first) = (access, Part::Access);
        for (at, part) in [(self.up.next_event(), Part::Up), (self.down.next_event(), Part::Down)] {
            if at < self.next {
                (self.next, self.first) = (at, part);
            }
        }
        if let Some(turnarounds) = &self.turnarounds
            && turnarounds.next_event() < self.next
        {
            (self.next, self.first) = (turnarounds.next_event(), Part::Hosts);
        }
    }

    /// The access point forwards a packet. A full queue counts the drop.
    fn forward(&mut self, now: Time, packet: Packet<P>) {
        if packet.to == Destination::Node(NodeId(self.hosts as u16)) {
            let _taken = self.up.offer(now, packet);
            return;
        }
        let _dropped = match &mut self.access {
            Access::Wifi(medium) => medium.offer_down(now, packet),
            Access::Wired(access) => access.offer_down(now, packet),
        };
    }
}
