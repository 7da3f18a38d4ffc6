//! The shared medium: frames, acknowledgements, collisions, errors, broadcast.
//!
//! Models one channel that all stations and the access point hear, under DCF with basic access (no RTS/CTS).
//! 1. Who sends and when: `backoff`. One transmission that nobody overlaps is received, or with the frame error rate it is not.
//! 2. A received unicast frame is acknowledged after SIFS; then all wait DIFS.
//! 3. Frames that overlap are all lost. Once the air is silent, senders wait until ACKTimeout and then DIFS, the others EIFS
//!    (or DIFS: [`WifiRules`]).
//! 4. A frame received with an error: the sender waits ACKTimeout and DIFS, its receiver EIFS, the others (who heard its
//!    duration field) until where the ACK would have ended, and DIFS.
//! 5. A unicast frame is sent again until it is acknowledged or has been sent `retry_limit` times.
//! 6. A broadcast goes from the station to the access point like any unicast frame, from there once, at a basic rate,
//!    without ACK. Then who received it with an error waits EIFS, all others DIFS.
//!
//! ```text
//!   [silent] -- a timer ends --> [frames on the air] -- one, received --> [acknowledgement] --+
//!      ^                              | several, an error, or a broadcast                     |
//!      +------------------------------+-------------------------------------------------------+
//! ```
//!
//! After ACKTimeout a sender waits a whole DIFS, as 802.11-2020 §10.23.2.4 says for EDCA; §10.3.4.3 leaves it open for DCF.
//!
//! Leaves out: capture, hidden stations, lost acknowledgements, RTS/CTS, fragments, power saving, beacons of the access
//! point. A sender is done with a frame that it gives up at the end of the collision, not at ACKTimeout.
//!
//! References: 802.11-2020 §10.3 (DCF), §10.6.6.5.2 (rate of responses), §18 (ERP); G. Bianchi: Performance analysis of the
//! IEEE 802.11 distributed coordination function, IEEE JSAC 18(3), 2000.

use super::airtime::AirTimes;
use super::backoff::Contention;
use super::constants::{PhyRate, SIFS, Standard};
use super::rate_control::{Controller, RateControl, RateSet};
use crate::config::{HostConfig, WifiConfig, WifiRules};
use crate::packet::{Delivery, Departure, Destination, NodeId, Outcome, Packet};
use crate::queue::{Queue, QueueConfig};
use crate::random::{Streams, happens};
use crate::statistics::{AirTime, Cause, StationStatistics, Statistics, WifiLinkStatistics};
use lasthop_units::{Probability, Rate, Span, Time};
use rand_chacha::ChaCha8Rng;

#[derive(Clone, Debug)]
pub(crate) struct Medium<P> {
    times: AirTimes,
    contention: Contention,
    controllers: Controllers,
    /// The stations, then the access point.
    senders: Vec<Sender<P>>,
    /// By sender: which of its frames are received with an error.
    error_streams: Vec<ChaCha8Rng>,
    /// By station: up, then down.
    directions: Vec<[Direction; 2]>,
    broadcast_rate: PhyRate,
    /// By station, both ways.
    frame_error_rates: Vec<Probability>,
    retry_limit: u8,
    rules: WifiRules,
    phase: Phase,
    /// What is or was last on the air.
    on_air: Vec<Transmission>,
    /// Reused by each transmission's beginning.
    sending: Vec<(usize, Time)>,
    /// Reused by each collision's and each broadcast's end.
    waits: Vec<(usize, Time)>,
    /// Until when stations that hear all are told to defer by the last frame's duration field.
    reserved_until: Time,
    air: AirTime,
    air_since: Time,
    /// That of the frames with packets to all stations.
    to_all: Span,
    collisions: u64,
    broadcasts: u64,
}

#[derive(Clone, Debug)]
struct Sender<P> {
    queue: Queue<P>,
    /// How many times the head of the queue has been sent in vain.
    failures: u8,
    /// Whether it wants to hear of its packets that have left the queue.
    reports: bool,
}

/// One direction between a station and the access point.
#[derive(Clone, Debug)]
struct Direction {
    controller: Controller,
    /// What takes the controller's place when the next transmission begins, and how often that has happened.
    new_highest: Option<PhyRate>,
    changes: u32,
    counts: WifiLinkStatistics,
    /// Sum over the transmissions' rates.
    kbps_sum: u64,
}

/// How controllers are made.
#[derive(Clone, Copy, Debug)]
struct Controllers {
    control: RateControl,
    standard: Standard,
    set: RateSet,
    streams: Streams,
}

impl Controllers {
    /// One that never goes above `highest`; the `number`th of its direction.
    fn controller(&self, highest: PhyRate, station: usize, way: usize, number: u32) -> Controller {
        Controller::new(self.control, self.standard, self.set, highest, || {
            let way = ["up", "down"][way];
            let number = if number == 0 { String::new() } else { format!("/{number}") };
            self.streams.stream(&format!("wifi/minstrel/{station}/{way}{number}"))
        })
    }
}

#[derive(Clone, Copy, Debug)]
struct Transmission {
    sender: usize,
    departure: Departure,
    end: Time,
    rate: PhyRate,
    /// The station at the other end, or `None` for a broadcast.
    link: Option<Link>,
    /// Whether the packet is for all stations: on its way to the access point it has a link.
    to_all: bool,
}

/// A station's direction: where its counters are.
#[derive(Clone, Copy, Debug)]
struct Link {
    station: usize,
    way: usize,
}

const UP: usize = 0;
const DOWN: usize = 1;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Silent,
    /// Frames are on the air until then.
    Frames(Time),
    /// A frame has been received; its acknowledgement ends then.
    Acknowledgement(Time),
}

impl<P: Clone> Medium<P> {
    pub(crate) fn new(config: &WifiConfig, hosts: &[HostConfig], streams: Streams) -> Self {
        let standard = config.standard;
        let highest = |host: &HostConfig| host.rate.and_then(PhyRate::from_rate).unwrap_or(config.rate);
        let mut contenders = Vec::with_capacity(hosts.len() + 1);
        let mut senders = Vec::with_capacity(hosts.len() + 1);
        let mut error_streams = Vec::with_capacity(hosts.len() + 1);
        let mut add = |name: &str, queue, highest| {
            let stream = |purpose: &str| streams.stream(&format!("wifi/{purpose}/{name}"));
            contenders.push((standard.window(highest), stream("backoff")));
            let queue = Queue::new(queue, streams, &format!("wifi/fq-codel/{name}"));
            senders.push(Sender { queue, failures: 0, reports: false });
            error_streams.push(stream("frame-error"));
        };
        for (index, host) in hosts.iter().enumerate() {
            add(&index.to_string(), QueueConfig::fifo(host.queue_packets), highest(host));
        }
        add("access-point", config.access_point_queue, config.rate);
        let controllers = Controllers { control: config.rate_control, standard, set: config.rate_set, streams };
        let direction = |index: usize, host: &HostConfig, way: usize| Direction {
            controller: controllers.controller(highest(host), index, way, 0),
            new_highest: None,
            changes: 0,
            counts: WifiLinkStatistics::default(),
            kbps_sum: 0,
        };
        let directions = |(index, host): (usize, &HostConfig)| [UP, DOWN].map(|way| direction(index, host, way));
        let lowest_basic = match (standard, config.rate_set) {
            (Standard::G, RateSet::Ofdm) => PhyRate::Mbps6,
            _ => PhyRate::Mbps1,
        };
        Self {
            times: AirTimes::new(standard, config.short_preamble, config.protection_rate),
            contention: Contention::new(standard.slot(), standard.sensing(), contenders),
            on_air: Vec::with_capacity(senders.len()),
            sending: Vec::with_capacity(senders.len()),
            waits: Vec::with_capacity(senders.len()),
            controllers,
            senders,
            error_streams,
            directions: hosts.iter().enumerate().map(directions).collect(),
            broadcast_rate: config.broadcast_rate.unwrap_or(lowest_basic),
            frame_error_rates: hosts
                .iter()
                .map(|host| host.frame_error_rate.unwrap_or(config.frame_error_rate))
                .collect(),
            retry_limit: config.retry_limit,
            rules: config.rules,
            phase: Phase::Silent,
            reserved_until: Time::ZERO,
            air: AirTime::default(),
            air_since: Time::ZERO,
            to_all: Span::ZERO,
            collisions: 0,
            broadcasts: 0,
        }
    }

    pub(crate) fn offer_up(&mut self, now: Time, station: usize, packet: Packet<P>) -> Result<(), Packet<P>> {
        self.offer(now, station, packet)
    }

    pub(crate) fn offer_down(&mut self, now: Time, packet: Packet<P>) -> Result<(), Packet<P>> {
        self.offer(now, self.directions.len(), packet)
    }

    /// From now on a station is like this; the frame on the air ends at its rate.
    pub(crate) fn change_station(&mut self, station: usize, rate: Option<Rate>, errors: Option<Probability>) {
        if let Some(highest) = rate.map(|rate| PhyRate::from_rate(rate).expect("a checked change has a PHY rate")) {
            self.directions[station].iter_mut().for_each(|direction| direction.new_highest = Some(highest));
        }
        self.frame_error_rates[station] = errors.unwrap_or(self.frame_error_rates[station]);
    }

    /// When something happens next; [`Time::MAX`] for never.
    pub(crate) fn next_event(&self) -> Time {
        match self.phase {
            Phase::Silent => self.contention.next_access(),
            Phase::Frames(until) | Phase::Acknowledgement(until) => until,
        }
    }

    /// Lets the next event happen, which is due at `now`; gives the packet that has come up to the access point.
    pub(crate) fn step(&mut self, now: Time, outcome: &mut Outcome<'_, P>) -> Option<Packet<P>> {
        debug_assert_eq!(self.next_event(), now, "a medium steps when it has an event");
        match self.phase {
            Phase::Silent => self.on_seized(now),
            Phase::Frames(_) if self.on_air.len() > 1 => self.on_collision_over(now, outcome),
            Phase::Frames(_) => {
                let frame = self.on_air[0];
                let Some(link) = frame.link else {
                    self.on_broadcast_over(now, outcome);
                    return None;
                };
                if happens(self.frame_error_rates[link.station], &mut self.error_streams[frame.sender]) {
                    self.on_error(now, frame, link, outcome);
                    return None;
                }
                self.phase = Phase::Acknowledgement(now + self.times.acknowledgement(frame.rate));
                let packet = self.senders[frame.sender].queue.take_head();
                if link.way == UP {
                    return Some(packet);
                }
                outcome.deliveries.push(Delivery { at: now, to: NodeId(link.station as u16), packet });
            }
            Phase::Acknowledgement(_) => self.on_acknowledged(now, outcome),
        }
        None
    }

    pub(crate) fn host_queue(&self, station: usize) -> &Queue<P> {
        &self.senders[..self.directions.len()][station].queue
    }

    pub(crate) fn access_point_queue(&self) -> &Queue<P> {
        &self.senders[self.directions.len()].queue
    }

    pub(crate) fn packets_inside(&self) -> usize {
        let queued: usize = self.senders.iter().map(|sender| sender.queue.len()).sum();
        // A frame that has been received has gone on, and counts in its sender's queue until it has been acknowledged.
        let twice = matches!(self.phase, Phase::Acknowledgement(_));
        queued - usize::from(twice)
    }

    pub(crate) fn report_departures(&mut self, station: usize) {
        self.senders[station].reports = true;
    }

    pub(crate) fn report(&self, now: Time, statistics: &mut Statistics) {
        statistics.air = self.air;
        *self.air_use().of(&mut statistics.air) += now.saturating_since(self.air_since);
        statistics.collisions = self.collisions;
        statistics.broadcasts = self.broadcasts;
        statistics.to_all = self.to_all;
        for (station, ways) in self.directions.iter().enumerate() {
            let [up, down] = [UP, DOWN].map(|way| ways[way].report());
            statistics.transmissions += up.transmissions + down.transmissions;
            statistics.retries += up.retries + down.retries;
            statistics.stations.push(StationStatistics { node: NodeId(station as u16), up, down });
        }
    }

    pub(crate) fn reset_statistics(&mut self, now: Time) {
        self.air = AirTime::default();
        self.air_since = now;
        self.to_all = Span::ZERO;
        self.collisions = 0;
        self.broadcasts = 0;
        self.senders.iter_mut().for_each(|sender| sender.queue.reset_statistics(now));
        for direction in self.directions.iter_mut().flatten() {
            direction.counts = WifiLinkStatistics::default();
            direction.kbps_sum = 0;
        }
    }

    fn offer(&mut self, now: Time, sender: usize, packet: Packet<P>) -> Result<(), Packet<P>> {
        let queue = &mut self.senders[sender].queue;
        let was_empty = queue.is_empty();
        queue.push(now, packet)?;
        if was_empty {
            if self.phase == Phase::Silent && !self.contention.is_backlogged() {
                self.account(now);
            }
            if self.senses_idle_before_acknowledgement(now, sender) {
                self.contention.on_frame_without_backoff(sender);
            } else if let Some(start) = self.contention.on_frame(sender, now, self.reserved_until) {
                // Too late to sense what is on the air: one more frame that collides.
                self.begin(now, sender, start);
            }
        }
        Ok(())
    }

    /// By the rule of that name: in the SIFS after the reception of the frame that the sender is to acknowledge.
    fn senses_idle_before_acknowledgement(&self, now: Time, sender: usize) -> bool {
        let Phase::Acknowledgement(_) = self.phase else { return false };
        let frame = self.on_air[0];
        let receiver = match frame.link {
            Some(Link { way: UP, .. }) => self.directions.len(),
            Some(Link { station, .. }) => station,
            None => return false,
        };
        self.rules.idle_before_acknowledgement && sender == receiver && now < frame.end + SIFS
    }

    fn on_seized(&mut self, now: Time) {
        self.account(now);
        self.on_air.clear();
        let mut sending = std::mem::take(&mut self.sending);
        self.contention.seize(now, &mut sending);
        for &(sender, start) in &sending {
            self.begin(now, sender, start);
        }
        sending.clear();
        self.sending = sending;
    }

    /// Puts the head of the sender's queue on the air, from `start` on, which may be a little after `now`.
    fn begin(&mut self, now: Time, sender: usize, start: Time) {
        let head = self.senders[sender].queue.head(now);
        let link = if sender < self.directions.len() {
            Some(Link { station: sender, way: UP })
        } else {
            match head.to {
                Destination::Node(station) => Some(Link { station: station.index(), way: DOWN }),
                Destination::Broadcast => None,
            }
        };
        let (size, departure, to_all) = (head.size, head.departure(), head.to == Destination::Broadcast);
        let rate = if let Some(link) = link {
            let direction = &mut self.directions[link.station][link.way];
            if let Some(highest) = direction.new_highest.take() {
                direction.changes += 1;
                let number = direction.changes;
                direction.controller = self.controllers.controller(highest, link.station, link.way, number);
            }
            let rate = direction.controller.next_rate();
            direction.counts.transmissions += 1;
            direction.counts.retries += u64::from(self.senders[sender].failures > 0);
            direction.kbps_sum += rate.kbps();
            rate
        } else {
            self.broadcasts += 1;
            self.broadcast_rate
        };
        let end = start + self.times.data(rate, size);
        if to_all {
            self.to_all += end - start;
        }
        self.on_air.push(Transmission { sender, departure, end, rate, link, to_all });
        self.phase = match self.phase {
            Phase::Frames(until) => Phase::Frames(until.max(end)),
            Phase::Silent | Phase::Acknowledgement(_) => Phase::Frames(end),
        };
    }

    fn on_acknowledged(&mut self, now: Time, outcome: &mut Outcome<'_, P>) {
        self.account(now);
        let frame = self.on_air[0];
        let link = frame.link.expect("only unicast frames are acknowledged");
        let direction = &mut self.directions[link.station][link.way];
        direction.controller.on_success(now);
        direction.counts.acknowledged += 1;
        if frame.to_all {
            self.to_all += self.times.acknowledgement(frame.rate);
        }
        self.senders[frame.sender].queue.release(now);
        self.finish(frame.sender, frame.departure, outcome);
        self.resume(now + self.times.difs, &[]);
    }

    fn on_broadcast_over(&mut self, now: Time, outcome: &mut Outcome<'_, P>) {
        self.account(now);
        let Transmission { sender, rate, .. } = self.on_air[0];
        let packet = self.senders[sender].queue.pop(now);
        let mut waits = std::mem::take(&mut self.waits);
        for to in self.receivers(&packet) {
            if happens(self.frame_error_rates[to.index()], &mut self.error_streams[sender]) {
                self.senders[sender].queue.count_drops(Cause::FrameError, 1);
                waits.push((to.index(), now + self.times.eifs(rate)));
            } else {
                outcome.deliveries.push(Delivery { at: now, to, packet: packet.clone() });
            }
        }
        self.finish(sender, packet.departure(), outcome);
        self.resume(now + self.times.difs, &waits);
        waits.clear();
        self.waits = waits;
    }

    fn on_error(&mut self, now: Time, frame: Transmission, link: Link, outcome: &mut Outcome<'_, P>) {
        self.air.error += now - self.air_since;
        self.air_since = now;
        self.directions[link.station][link.way].counts.errors += 1;
        self.fail(now, frame, outcome);
        self.reserved_until = now + self.times.acknowledgement(frame.rate);
        let receiver = if link.way == UP { self.directions.len() } else { link.station };
        let waits = [
            (frame.sender, now + self.times.acknowledgement_timeout(frame.rate) + self.times.difs),
            (receiver, now + self.times.eifs(frame.rate)),
        ];
        self.resume(self.reserved_until + self.times.difs, &waits);
    }

    fn on_collision_over(&mut self, now: Time, outcome: &mut Outcome<'_, P>) {
        self.account(now);
        self.collisions += 1;
        let mut eifs = Span::ZERO;
        let mut waits = std::mem::take(&mut self.waits);
        for index in 0..self.on_air.len() {
            let frame = self.on_air[index];
            eifs = eifs.max(self.times.eifs(frame.rate));
            if let Some(link) = frame.link {
                self.directions[link.station][link.way].counts.collided += 1;
                let timeout = frame.end + self.times.acknowledgement_timeout(frame.rate);
                waits.push((frame.sender, timeout.max(now) + self.times.difs));
            } else {
                waits.push((frame.sender, now + self.times.difs));
            }
            self.fail(now, frame, outcome);
        }
        let bystanders = if self.rules.difs_after_collision { self.times.difs } else { eifs };
        self.resume(now + bystanders, &waits);
        waits.clear();
        self.waits = waits;
    }

    /// The frame was not received: it is to be sent again, or given up.
    fn fail(&mut self, now: Time, frame: Transmission, outcome: &mut Outcome<'_, P>) {
        let Some(link) = frame.link else {
            let access_point = &mut self.senders[frame.sender];
            let packet = access_point.queue.pop(now);
            let receivers = self.receivers(&packet).count() as u64;
            self.senders[frame.sender].queue.count_drops(Cause::Collision, receivers);
            self.finish(frame.sender, frame.departure, outcome);
            return;
        };
        let direction = &mut self.directions[link.station][link.way];
        let sender = &mut self.senders[frame.sender];
        sender.failures = sender.failures.saturating_add(1);
        let given_up = self.retry_limit > 0 && sender.failures >= self.retry_limit;
        direction.controller.on_failure(now, given_up);
        if given_up {
            direction.counts.given_up += 1;
            sender.queue.pop(now);
            sender.queue.count_drops(Cause::RetryLimit, 1);
            self.finish(frame.sender, frame.departure, outcome);
        } else {
            self.contention.on_failure(frame.sender);
        }
    }

    /// The sender is done with the head of its queue, one way or another.
    fn finish(&mut self, sender: usize, departure: Departure, outcome: &mut Outcome<'_, P>) {
        self.senders[sender].failures = 0;
        if self.senders[sender].reports {
            outcome.departed.push(departure);
        }
        self.contention.on_done(sender);
        if self.senders[sender].queue.is_empty() {
            self.contention.on_empty(sender);
        }
    }

    fn resume(&mut self, ready: Time, except: &[(usize, Time)]) {
        self.phase = Phase::Silent;
        self.contention.resume(ready, except);
    }

    /// The stations that a broadcast of the access point is for.
    fn receivers(&self, packet: &Packet<P>) -> impl Iterator<Item = NodeId> + use<P> {
        let from = packet.from;
        (0..self.directions.len()).map(|station| NodeId(station as u16)).filter(move |&station| station != from)
    }

    /// Books the time since the last call on what the air was used for.
    fn account(&mut self, now: Time) {
        let air_use = self.air_use();
        *air_use.of(&mut self.air) += now - self.air_since;
        self.air_since = now;
    }

    fn air_use(&self) -> AirUse {
        match self.phase {
            Phase::Silent if self.contention.is_backlogged() => AirUse::Contention,
            Phase::Silent => AirUse::Idle,
            Phase::Acknowledgement(_) => AirUse::Success,
            Phase::Frames(_) if self.on_air.len() > 1 => AirUse::Collision,
            Phase::Frames(_) if self.on_air[0].link.is_none() => AirUse::Broadcast,
            Phase::Frames(_) => AirUse::Success,
        }
    }
}

/// What the air is used for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum AirUse {
    Idle,
    Contention,
    Success,
    Broadcast,
    Collision,
}

impl AirUse {
    fn of(self, air: &mut AirTime) -> &mut Span {
        match self {
            Self::Idle => &mut air.idle,
            Self::Contention => &mut air.contention,
            Self::Success => &mut air.success,
            Self::Broadcast => &mut air.broadcast,
            Self::Collision => &mut air.collision,
        }
    }
}

impl Direction {
    fn report(&self) -> WifiLinkStatistics {
        let mean = self.kbps_sum * 1000 / self.counts.transmissions.max(1);
        WifiLinkStatistics {
            phy_rate: self.controller.rate().rate(),
            mean_phy_rate: Rate::from_bps(mean),
            ..self.counts
        }
    }
}
