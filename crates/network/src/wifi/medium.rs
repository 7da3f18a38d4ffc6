//! The shared medium: transmissions, responses, collisions, errors, broadcast.
//!
//! Models one channel, heard by all stations and the access point, under DCF or EDCA. What older stations change: `cell`.
//! 1. Senders and times: `backoff`. Contents: a frame to one receiver, or an A-MPDU of several (`originator`).
//! 2. A transmission without overlap is received, except frames lost to `noise`. If any was received, the receiver
//!    acknowledges after SIFS: a single frame by an ACK, more by a Block Ack. Then all wait the inter-frame space.
//! 3. Before a long transmission an RTS asks for a CTS, or before one that repeats another without response. Nothing
//!    overlaps the rest of the exchange.
//! 4. Overlapping transmissions are all lost. Once the air is silent, senders wait until ACKTimeout and then the space,
//!    the others EIFS (or the space: [`WifiRules`]).
//! 5. If no frame of a transmission was received, the sender waits ACKTimeout and the space, its receiver EIFS. The
//!    others heard its duration field: they wait for the end of the expected response, and the space.
//! 6. After a lost response its addressee waits EIFS.
//! 7. Unacknowledged frames are repeated, up to `retry_limit` transmissions. A response resets the contention window,
//!    and so do `retry_limit` transmissions in a row without one.
//! 8. In 802.11n and later a node has a queue, a timer and a contention window for each access category (`edca`), once
//!    it has sent in it. Of the timers of one node that expire together the highest category's sends. The others double
//!    their contention windows, as after a collision.
//! 9. A category with a TXOP limit goes on after a response: SIFS later, without RTS, while the next transmission and
//!    its response fit in. Its first transmission is as long as fits, or one frame. It draws a timer at the end.
//! 10. A station of 802.11b or 802.11g beside newer ones has DIFS, one frame in a transmission, and best effort alone.
//! 11. A station may be held for a while: nothing is sent to it or by it, and nothing lost (`held`).
//! 12. Among several access points it may go from one to another (`roaming`).
//! 13. A broadcast is sent to the access point like any unicast frame, and from there once (`broadcasts`).
//!
//! ```text
//!   [silent] -- a timer ends --> [frames on the air] -- one, received --> [response] --+
//!      ^                           ^  | several, an error, or a broadcast   |     |     |
//!      +---------------------------|--+-------------------------------------+     |     |
//!                                  +---- after a CTS, or within a TXOP ------------+
//! ```
//!
//! The receiver of the next transmission: `sender`.
//!
//! After ACKTimeout a sender waits a whole DIFS, as in 802.11-2020 §10.23.2.4 for EDCA; §10.3.4.3 leaves it open for
//! DCF.
//!
//! Where not all hear all, or with several access points, points 2 to 6 hold at each node for itself (`per_node`).
//!
//! Leaves out: fragments, power saving, beacons of the access point. A sender gives up a
//! frame at the end of the collision, not at ACKTimeout. The Block Ack agreements exist from the start.
//!
//! References: 802.11-2020 §10.3 (DCF), §10.6.6.5.2 (rate of responses), §10.23.2 (EDCA), §10.25 (Block Ack), §18
//! (ERP); G. Bianchi: Performance analysis of the IEEE 802.11 distributed coordination function, IEEE JSAC 18(3), 2000.

mod broadcasts;
mod categories;
mod held;
mod per_node;
mod reception;
mod roaming;
mod transmission;
mod watched;

use super::air_use::{AirMeter, AirUse};
use super::airtime::{AirTimes, ModeId, Unanswered};
use super::backoff::Contention;
use super::constants::{PhyRate, Standard};
use super::direction::{Controllers, DOWN, Direction, Link, UP};
use super::edca::Category;
use super::noise::Noise;
use super::originator::{Content, Fate, Limits};
use super::rate_control::{Controller as _, Decision, RateControl, RateSet};
use super::sender::Sender;
use crate::config::{Cells, HostConfig, WifiConfig, WifiRules};
use crate::packet::{Delivery, Destination, NodeId, Outcome, Packet};
use crate::queue::{AnyQueue, Queue as _, QueueConfig, ReadAck};
use crate::random::{Streams, happens};
use crate::schedule::Schedule;
use crate::statistics::{AirTime, Cause, Observed, QueueId, StationStatistics, Statistics, Way};
use crate::watch::AirFate;
use categories::Marked;
use held::Holds;
use lasthop_units::{Bytes, Probability, Rate, Span, Time};
pub(in crate::wifi) use per_node::{Due, Kind, PerNode, Signal};
use rand_chacha::ChaCha8Rng;
pub(in crate::wifi) use transmission::Transmission;
use watched::AirTap;

#[derive(Clone, Debug)]
pub(crate) struct Medium<P> {
    times: AirTimes,
    contention: Contention,
    /// What each node hears for itself, if not all hear all: [`Phase::ByNode`].
    per_node: Option<Box<PerNode>>,
    /// By station: the node of its access point.
    access_points: Vec<usize>,
    controllers: Controllers,
    /// The stations, then the access points, in best effort. Behind them, those in other categories, once used.
    senders: Vec<Sender<P>>,
    /// By node: its stream of frame errors.
    error_streams: Vec<ChaCha8Rng>,
    /// By station: its stream of frame errors in broadcasts. Of the sender's stream one more receiver would draw, too.
    broadcast_streams: Vec<ChaCha8Rng>,
    /// By node that has sent in other categories.
    marked: Vec<Option<Box<Marked>>>,
    /// What a sender in another category needs to begin.
    queues: Vec<QueueConfig>,
    streams: Streams,
    has_categories: bool,
    /// By station: up, then down.
    directions: Vec<[Direction<P>; 2]>,
    /// Deadlines of receivers that hold frames behind gaps: of each station up, then down; if other categories are
    /// used, then the same for each of them.
    deadlines: Schedule,
    next_deadline: Time,
    /// By node; `None`: no frame of it has RTS for its length.
    rts_thresholds: Vec<Option<Bytes>>,
    rts_on_retry: bool,
    broadcast_mode: ModeId,
    /// By station.
    noises: Vec<Noise>,
    holds: Holds,
    retry_limit: u8,
    rules: WifiRules,
    phase: Phase,
    /// The present or last transmission.
    on_air: Vec<Transmission>,
    /// Reused at the start of each transmission.
    sending: Vec<(usize, Time)>,
    /// Reused at the end of each collision and each broadcast.
    waits: Vec<(usize, Time)>,
    /// The end of the deferral announced by the last frame's duration field.
    reserved_until: Time,
    air: AirMeter,
    /// The statistics are of the time since then.
    measured_since: Time,
    /// Air time of broadcast packets.
    to_all: Span,
    collisions: u64,
    broadcasts: u64,
    air_tap: AirTap<P>,
    read_acks: Option<ReadAck<P>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Silent,
    /// Data, or an RTS, is on the air until then.
    Frames(Time),
    /// It was received; the response ends then.
    Response(Time),
    /// Each node has its own, for ever.
    ByNode,
}

impl<P: Clone> Medium<P> {
    /// `cells`: what there is beside one cell in which all hear all.
    pub(crate) fn new(config: &WifiConfig, hosts: &[HostConfig], cells: Option<&Cells>, streams: Streams) -> Self {
        let access_points: Vec<_> = match cells {
            None => vec![hosts.len(); hosts.len()],
            Some(cells) => cells.of_host.iter().map(|&number| hosts.len() + usize::from(number)).collect(),
        };
        let standard = config.standard;
        let times = AirTimes::new(config, hosts);
        let controllers = Controllers::new(config, hosts, streams);
        let mut contenders = Vec::with_capacity(hosts.len() + 1);
        let mut senders = Vec::with_capacity(hosts.len() + 1);
        let mut error_streams = Vec::with_capacity(hosts.len() + 1);
        let mut queues = Vec::with_capacity(hosts.len() + 1);
        let mut add = |name: &str, queue, window| {
            let stream = |purpose: &str| streams.stream(&format!("wifi/{purpose}/{name}"));
            contenders.push((window, stream("backoff")));
            let txop = if senders.len() >= hosts.len() { config.access_point_txop } else { Span::ZERO };
            queues.push(queue);
            let queue = AnyQueue::new(queue, streams, &format!("wifi/fq-codel/{name}"));
            senders.push(Sender::new(senders.len(), Category::BestEffort, txop, queue));
            error_streams.push(stream("frame-error"));
        };
        for ((host, own), number) in hosts.iter().zip(&controllers.stations).zip(&controllers.numbers) {
            add(&number.to_string(), QueueConfig::fifo(host.queue_packets), own.standard.window(own.rate));
        }
        for number in 0..cells.map_or(1, |cells| cells.access_points) {
            add(&access_point_name(number), config.access_point_queue, times.cell.access_point_window);
        }
        senders[hosts.len()..].iter_mut().for_each(|one| one.queue.number_stations(&controllers.numbers));
        let broadcast_stream = |number| streams.stream(&format!("wifi/broadcast-error/{number}"));
        let broadcast_streams = controllers.numbers.iter().map(broadcast_stream).collect();
        let more_slots = |own: &WifiConfig| own.standard.space_slots() as i8 - standard.space_slots() as i8;
        let (mut per_node, mut contention) = (None, Contention::new(times.cell.slot, times.cell.sensing, Vec::new()));
        if let Some(cells) = cells {
            let more_slots = controllers.stations.iter().map(more_slots).collect();
            per_node = Some(Box::new(PerNode::new(cells, &times.cell, contenders, more_slots)));
        } else {
            contention = Contention::new(times.cell.slot, times.cell.sensing, contenders);
            for (station, own) in controllers.stations.iter().enumerate() {
                contention.differ(station, more_slots(own));
            }
        }
        let of_station = |(host, own)| Noise::new(own, host, &times);
        let noises: Vec<_> = hosts.iter().zip(&controllers.stations).map(of_station).collect();
        let directions = |station: usize| {
            let mode = controllers.mode(station, &times, &noises[station]);
            Way::BOTH.map(|way| Direction::new(&controllers, &times, mode, best_effort(station, way)))
        };
        let has_dsss = times.cell.has_dsss || (standard == Standard::G && config.rate_set == RateSet::All);
        let lowest_basic = if has_dsss { PhyRate::Mbps1 } else { PhyRate::Mbps6 };
        Self {
            contention,
            access_points,
            on_air: Vec::with_capacity(senders.len()),
            sending: Vec::with_capacity(senders.len()),
            waits: Vec::with_capacity(senders.len()),
            directions: (0..hosts.len()).map(directions).collect(),
            times,
            controllers,
            marked: vec![None; senders.len()],
            queues,
            streams,
            has_categories: standard.aggregates(),
            rts_thresholds: vec![config.rts_threshold; senders.len()],
            senders,
            error_streams,
            broadcast_streams,
            deadlines: Schedule::new(2 * hosts.len()),
            next_deadline: Time::MAX,
            rts_on_retry: config.rts_on_retry,
            broadcast_mode: config.broadcast_rate.unwrap_or(lowest_basic).into(),
            noises,
            holds: Holds::new(hosts.len()),
            retry_limit: config.retry_limit,
            rules: config.rules,
            phase: if per_node.is_some() { Phase::ByNode } else { Phase::Silent },
            per_node,
            reserved_until: Time::ZERO,
            air: AirMeter::new(Time::ZERO),
            measured_since: Time::ZERO,
            to_all: Span::ZERO,
            collisions: 0,
            broadcasts: 0,
            air_tap: AirTap(None),
            read_acks: None,
        }
    }

    pub(crate) fn offer_up(&mut self, now: Time, station: usize, packet: Packet<P>) -> Result<(), Packet<P>> {
        self.offer(now, station, packet)
    }

    pub(crate) fn offer_down(&mut self, now: Time, packet: Packet<P>) -> Result<(), Packet<P>> {
        let of = match packet.to {
            Destination::Node(to) => to,
            Destination::Broadcast => packet.from,
        };
        let access_point = self.access_points.get(of.index()).copied().unwrap_or(self.directions.len());
        if matches!(packet.to, Destination::Node(to) if self.is_away(to.index())) {
            return self.turn_away(now, access_point, packet);
        }
        self.offer(now, access_point, packet)
    }

    /// Changes a station; the frame on the air keeps its rate.
    pub(crate) fn change_station(
        &mut self,
        station: usize,
        rate: Option<Rate>,
        mcs: Option<u8>,
        errors: Option<Probability>,
        snr_db: Option<f64>,
    ) {
        if let Some(errors) = errors {
            self.noises[station].give(errors);
        }
        let own = &mut self.controllers.stations[station];
        if let Some(snr_db) = snr_db {
            self.noises[station] = Noise::of_snr(snr_db, own.block_ack_window(), &self.times);
        }
        if let Some(rate) = rate {
            own.rate = PhyRate::from_rate(rate).expect("a checked change has a PHY rate");
        }
        own.modulation.mcs = mcs.unwrap_or(own.modulation.mcs);
        if rate.is_some() || mcs.is_some() || (snr_db.is_some() && own.rate_control == RateControl::Ideal) {
            let mode = self.controllers.mode(station, &self.times, &self.noises[station]);
            self.directions[station].iter_mut().for_each(|direction| direction.new_mode = Some(mode));
        }
    }

    /// Has longer frames of the station begin with RTS from the next one on; `None`: none, for their length.
    pub(crate) fn set_rts_threshold(&mut self, station: usize, threshold: Option<Bytes>) {
        self.rts_thresholds[station] = threshold;
    }

    /// The time of the next event; [`Time::MAX`] if there is none.
    pub(crate) fn next_event(&self) -> Time {
        self.next_on_air().min(self.next_deadline)
    }

    /// Processes the next event, due at `now`. Packets received by the access point join `arrived`.
    pub(crate) fn step(&mut self, now: Time, arrived: &mut Vec<Packet<P>>, outcome: &mut Outcome<'_, P>) {
        debug_assert_eq!(self.next_event(), now, "a medium steps when it has an event");
        match self.phase {
            _ if self.next_on_air() > now => self.on_deadline(now, arrived, outcome),
            Phase::Silent => self.on_seized(now),
            Phase::Frames(_) if self.on_air.len() > 1 => self.on_collision_over(now, outcome),
            Phase::Frames(_) => match self.on_air[0].link {
                Some(link) if self.on_air[0].is_rts => self.on_rts_over(now, link, outcome),
                Some(link) => self.on_data_over(now, link, arrived, outcome),
                None => self.on_broadcast_over(now, outcome),
            },
            Phase::Response(_) => self.on_response_over(now, outcome),
            Phase::ByNode => self.step_by_node(now, arrived, outcome),
        }
    }

    /// The packets in all queues of a node: a station, or an access point after them.
    pub(crate) fn queue_len(&self, node: usize) -> usize {
        self.senders_of(node).map(|sender| self.senders[sender].queue.len()).sum()
    }

    /// The free places in a node's queue for packets with this DSCP.
    pub(crate) fn room(&self, node: usize, dscp: u8) -> usize {
        match self.known_sender(node, self.category_of(node, dscp)) {
            Some(sender) => self.senders[sender].queue.room(),
            None => self.queues[node].packets,
        }
    }

    /// The statistics of a node's queues together, under the name `place`.
    pub(crate) fn observe(&self, node: usize, place: QueueId, now: Time) -> Observed {
        let mut observed = self.senders[node].queue.observe(place, now);
        if let Some(marked) = &self.marked[node] {
            observed.queue =
                crate::QueueStatistics { marks: observed.queue.marks, ..marked.lengths.statistics(place, now) };
            for sender in self.senders_of(node).filter(|&sender| sender != node) {
                let more = self.senders[sender].queue.observe(place, now);
                observed.queue.marks += more.queue.marks;
                observed.drops.iter_mut().zip(more.drops).for_each(|(drops, more)| *drops += more);
            }
        }
        observed
    }

    pub(crate) fn packets_inside(&self) -> usize {
        let waiting: usize = self.senders.iter().map(|sender| sender.queue.waiting() + sender.packets_aside()).sum();
        waiting + self.directions.iter().flatten().map(Direction::packets_inside).sum::<usize>()
    }

    pub(crate) fn report_departures(&mut self, station: usize) {
        for sender in self.senders_of(station).collect::<Vec<_>>() {
            self.senders[sender].reports = true;
        }
    }

    pub(crate) fn air(&self, now: Time) -> AirTime {
        match &self.per_node {
            Some(per_node) => per_node.air(now),
            None => self.air.until(now, self.air_use()),
        }
    }

    pub(crate) fn report(&self, now: Time, statistics: &mut Statistics) {
        statistics.air = self.air(now);
        match &self.per_node {
            Some(per_node) => per_node.report(now, statistics),
            None => statistics.collisions = self.collisions,
        }
        statistics.broadcasts = self.broadcasts;
        statistics.to_all = self.to_all;
        for (station, ways) in self.directions.iter().enumerate() {
            let [mut up, mut down] = Way::BOTH.map(|way| ways[way].report(&self.times));
            for frame in self.frames_on_air() {
                let way = frame.link.filter(|link| link.station == station).map(|link| link.way);
                let of = if way == Some(UP) { &mut up } else { &mut down };
                of.air += if way.is_some() { frame.data_between(self.measured_since, now) } else { Span::ZERO };
            }
            statistics.transmissions += up.transmissions + down.transmissions;
            statistics.retries += up.retries + down.retries;
            statistics.stations.push(StationStatistics { node: NodeId(station as u16), up, down });
        }
    }

    pub(crate) fn reset_statistics(&mut self, now: Time) {
        self.air = AirMeter::new(now);
        self.per_node.iter_mut().for_each(|per_node| per_node.reset_statistics(now));
        self.measured_since = now;
        self.to_all = Span::ZERO;
        self.collisions = 0;
        self.broadcasts = 0;
        self.senders.iter_mut().for_each(|sender| sender.queue.reset_statistics(now));
        self.marked.iter_mut().flatten().for_each(|marked| marked.lengths.reset(now));
        self.directions.iter_mut().flatten().for_each(Direction::reset_statistics);
    }

    fn offer(&mut self, now: Time, node: usize, packet: Packet<P>) -> Result<(), Packet<P>> {
        let station = match packet.to {
            Destination::Node(to) if node >= self.directions.len() => to.index(),
            _ => node,
        };
        let category = self.category_of(station, packet.dscp);
        let sender = if category == Category::BestEffort { node } else { self.sender_in(now, node, category) };
        let was_idle = self.senders[sender].is_idle();
        let refused = self.senders[sender].queue.push(now, packet).err();
        self.measure(now, node);
        if self.holds.any() {
            self.heed_holds_of(now, sender);
        } else if was_idle && refused.is_none() {
            self.contend(now, sender);
        }
        refused.map_or(Ok(()), Err)
    }

    /// The sender has something to send from now on.
    fn contend(&mut self, now: Time, sender: usize) {
        let node = self.senders[sender].node;
        if self.phase == Phase::ByNode {
            return self.contend_by_node(now, sender);
        }
        if self.phase == Phase::Silent && !self.contention.is_backlogged() {
            self.air.book(now, self.air_use());
        }
        if self.senses_idle_before_acknowledgement(now, node) {
            self.contention.on_frame_without_backoff(sender);
        } else if self.is_sending(node) {
            self.contention.on_frame_while_sending(sender);
        } else if let Some(start) = self.contention.on_frame(sender, now, self.reserved_until) {
            // Too late to sense the transmission: one more frame that collides.
            self.begin(now, sender, start);
        }
    }

    /// By that rule: within the SIFS after the frame that the node is to acknowledge.
    fn senses_idle_before_acknowledgement(&self, now: Time, node: usize) -> bool {
        let Phase::Response(_) = self.phase else { return false };
        let frame = self.on_air[0];
        let receiver = frame.link.map(|link| self.receiver_of(link));
        self.rules.idle_before_acknowledgement && receiver == Some(node) && now < frame.end + self.times.cell.sifs
    }

    fn on_seized(&mut self, now: Time) {
        self.air.book(now, self.air_use());
        self.on_air.clear();
        let mut sending = std::mem::take(&mut self.sending);
        self.contention.seize(now, &mut sending);
        if self.has_marked() && sending.len() > 1 {
            self.collide_inside(&mut sending);
        }
        for &(sender, start) in &sending {
            self.begin(now, sender, start);
        }
        sending.clear();
        self.sending = sending;
    }

    /// Starts the sender's transmission at `start`, which may be a little after `now`.
    fn begin(&mut self, now: Time, sender: usize, start: Time) {
        let frame = self.next_transmission(now, sender, start);
        self.phase = match self.phase {
            Phase::Frames(until) => Phase::Frames(until.max(frame.end)),
            _ => Phase::Frames(frame.end),
        };
        self.on_air.push(frame);
    }

    /// What the sender sends from `start` on.
    fn next_transmission(&mut self, now: Time, sender: usize, start: Time) -> Transmission {
        let Sender { node, txop, .. } = self.senders[sender];
        let link = self.next_link(now, sender);
        let txop_end = if txop.is_zero() { Time::ZERO } else { start + txop };
        let (decision, content) = match link {
            Some(link) => self.fill(now, sender, link, (!txop.is_zero()).then_some(txop), true),
            None => self.fill_with_broadcast(now, sender),
        };
        let mode = decision.mode;
        let times = self.times.mode(mode);
        let is_request = content.frames == 0;
        let is_long = self.rts_thresholds[node].is_some_and(|threshold| content.bytes > threshold.get());
        let wants_rts = decision.rts || is_long || self.repeats_with_rts(sender);
        let is_rts = link.is_some() && !is_request && wants_rts;
        let duration = match (is_request, is_rts) {
            (true, _) => times.request,
            (false, true) => times.ppdu_after_cts(content.bytes),
            (false, false) => times.ppdu(content.bytes),
        };
        let end = start + if is_rts { times.rts } else { duration };
        self.to_all += content.share_to_all(end - start);
        self.measure(now, node);
        Transmission { sender, node, mode, link, content, duration, is_rts, end, txop_end }
    }

    /// The contents of this link's next transmission, which has this much time with its response, and how to send it.
    /// `first`: one frame may take longer.
    fn fill(&mut self, now: Time, sender: usize, link: Link, time: Option<Span>, first: bool) -> (Decision, Content) {
        let has_threshold = self.rts_thresholds[self.senders[sender].node].is_some();
        let may_have_rts = time.is_some() && first && (has_threshold || self.repeats_with_rts(sender));
        let direction = &mut self.directions[link.station][link.way];
        let decision = direction.decide(now, &self.controllers, &self.times, link);
        let mode = self.times.mode(decision.mode);
        let most_frames = if decision.alone { 1 } else { direction.most_frames };
        if link.way == DOWN {
            self.senders[sender].queue.on_rate(link.station, mode.rate, mode.preamble());
        }
        let to = (link.way == DOWN).then_some(Destination::Node(link.node()));
        let bytes = match time {
            None => mode.most_bytes,
            Some(time) => {
                let rts = if may_have_rts || (first && decision.rts) {
                    mode.more_for_rts(self.times.cell.sifs)
                } else {
                    Span::ZERO
                };
                mode.most_bytes.min(mode.bytes_within(time.saturating_sub(mode.block_ack + rts)))
            }
        };
        let amsdu_bytes = if decision.alone { 0 } else { direction.amsdu_bytes };
        let limits = Limits { mpdus: most_frames, bytes, amsdu_bytes, one_anyway: first };
        let mut filling = direction.ends.at_mut(link.category).originator.fill(mode, limits);
        if filling.has_room_for_more() {
            self.senders[sender].claim(now, to, &mut filling);
        }
        let content = filling.content;
        if content.frames > 0 {
            direction.count(mode, content.frames, content.retries);
        }
        if self.air_tap.0.is_some() {
            self.remember(sender, link);
        }
        (decision, content)
    }

    #[inline(never)]
    fn on_rts_over(&mut self, now: Time, link: Link, outcome: &mut Outcome<'_, P>) {
        let frame = self.on_air[0];
        let loss = self.noises[link.station].control(frame.mode).rts;
        if happens(loss, &mut self.error_streams[frame.node]) {
            self.tell_aired(now, &frame, AirFate::Error);
            self.on_error(now, &frame, link, outcome);
        } else {
            self.phase = Phase::Response(now + frame.response(self.times.mode(frame.mode)));
        }
    }

    /// Whether the sender's last transmission had no response, and RTS precedes those that repeat it.
    fn repeats_with_rts(&self, sender: usize) -> bool {
        self.rts_on_retry && self.senders[sender].failures > 0
    }

    fn on_data_over(&mut self, now: Time, link: Link, arrived: &mut Vec<Packet<P>>, outcome: &mut Outcome<'_, P>) {
        let frame = self.on_air[0];
        let is_received = self.receive(&frame, link, now, |_| false, &mut go_on(now, link, arrived, outcome));
        if self.air_tap.0.is_some() {
            self.tell_aired(now, &frame, if is_received { AirFate::Received } else { AirFate::Error });
        }
        if is_received {
            self.watch_deadline(now, link);
            self.phase = Phase::Response(now + frame.response(self.times.mode(frame.mode)));
        } else {
            self.on_error(now, &frame, link, outcome);
        }
    }

    fn on_response_over(&mut self, now: Time, outcome: &mut Outcome<'_, P>) {
        let frame = self.on_air[0];
        let link = frame.link.expect("only unicast frames are answered");
        let responder = self.receiver_of(link);
        let losses = self.noises[link.station].control(frame.mode);
        let loss = if frame.is_answered_by_block_ack() { losses.block_ack } else { losses.acknowledgement };
        if happens(loss, &mut self.error_streams[responder]) {
            let eifs = frame.unanswered(self.times.mode(frame.mode)).eifs;
            self.air.book(now, AirUse::Error);
            if frame.is_rts {
                self.tell_aired(now, &frame, AirFate::Error);
            }
            self.fail(now, &frame, outcome);
            self.resume(now, now + self.times.cell.space, &[(frame.node, now + eifs)]);
            return;
        }
        if frame.is_rts {
            let end = now + self.times.cell.sifs + frame.duration;
            self.to_all += frame.content.share_to_all(end - frame.end);
            self.on_air[0] = Transmission { is_rts: false, end, ..frame };
            self.phase = Phase::Frames(end);
            return;
        }
        self.air.book(now, self.air_use());
        self.to_all += frame.content.share_to_all(now - frame.end);
        self.settle(now, &frame, link, true, outcome);
        if frame.txop_end > now
            && let Some(next) = self.next_in_txop(now, frame)
        {
            self.on_air[0] = next;
            self.phase = Phase::Frames(next.end);
            self.contention.on_answered(frame.sender);
        } else {
            self.finish(frame.sender);
            self.resume(now, now + self.times.cell.space, &[]);
        }
    }

    #[inline(never)]
    fn on_error(&mut self, now: Time, frame: &Transmission, link: Link, outcome: &mut Outcome<'_, P>) {
        let mode = self.times.mode(frame.mode);
        self.reserved_until = now + frame.response(mode);
        let Unanswered { timeout, eifs } = frame.unanswered(mode);
        let space = self.times.cell.space;
        let waits = [(frame.node, now + timeout + space), (self.receiver_of(link), now + eifs)];
        self.air.book(now, AirUse::Error);
        self.fail(now, frame, outcome);
        self.resume(now, self.reserved_until + self.times.cell.space, &waits);
    }

    fn on_collision_over(&mut self, now: Time, outcome: &mut Outcome<'_, P>) {
        self.air.book(now, self.air_use());
        self.collisions += 1;
        let mut eifs = Span::ZERO;
        let mut waits = std::mem::take(&mut self.waits);
        for index in 0..self.on_air.len() {
            let frame = self.on_air[index];
            let unanswered = frame.unanswered(self.times.mode(frame.mode));
            eifs = eifs.max(unanswered.eifs);
            let known_at = if let Some(link) = frame.link {
                self.directions[link.station][link.way].counts.collided += u64::from(frame.content.frames > 0);
                now.max(frame.end + unanswered.timeout)
            } else {
                now
            };
            waits.push((frame.node, known_at + self.times.cell.space));
            self.tell_aired(now, &frame, AirFate::Collided);
            self.fail(now, &frame, outcome);
        }
        let bystanders = if self.rules.difs_after_collision { self.times.cell.space } else { eifs };
        self.resume(now, now + bystanders, &waits);
        waits.clear();
        self.waits = waits;
    }

    /// The transmission had no response: its frames are repeated or given up.
    fn fail(&mut self, now: Time, frame: &Transmission, outcome: &mut Outcome<'_, P>) {
        if let Some(link) = frame.link {
            if self.settle(now, frame, link, false, outcome) {
                self.finish(frame.sender);
            } else {
                match &mut self.per_node {
                    None => self.contention.on_failure(frame.sender),
                    Some(per_node) => per_node.access.on_failure(frame.sender),
                }
            }
        } else {
            self.fail_broadcast(now, frame, outcome);
        }
    }

    /// Settles the frames of a transmission, answered or not, and its sender. Returns whether that gives up.
    fn settle(
        &mut self,
        now: Time,
        frame: &Transmission,
        link: Link,
        is_answered: bool,
        outcome: &mut Outcome<'_, P>,
    ) -> bool {
        if frame.is_data()
            && (is_answered || link.way == DOWN)
            && let Some(access_point) = self.known_sender(self.access_points[link.station], link.category)
        {
            self.senders[access_point].queue.on_airtime(link.station, frame.duration);
        }
        let Direction { ends, controller, counts, .. } = &mut self.directions[link.station][link.way];
        let originator = &mut ends.at_mut(link.category).originator;
        counts.air += frame.data_between(self.measured_since, now);
        let sender = &mut self.senders[frame.sender];
        sender.failures = if is_answered { 0 } else { sender.failures.saturating_add(1) };
        let gives_up = self.retry_limit > 0 && sender.failures >= self.retry_limit;
        let frames = frame.content.frames;
        if frames > 0 && controller.learns() {
            if is_answered {
                let sent = &originator.frames()[..frames];
                let acknowledged = sent.iter().filter(|sent| sent.is_received).count();
                controller.on_success(now, frames as u32, acknowledged as u32);
            } else if frame.is_rts && !gives_up {
                controller.on_rts_lost(now, frames as u32);
            } else {
                controller.on_failure(now, frames as u32, gives_up);
            }
        }
        let mut done = 0;
        originator.settle(frame.content, is_answered, self.retry_limit, |mpdu, fate| {
            done += 1;
            match fate {
                Fate::Acknowledged => counts.acknowledged += 1,
                Fate::GivenUp => {
                    counts.given_up += 1;
                    if !mpdu.is_received {
                        let packet = sender.queue.take(mpdu.place);
                        sender.queue.desk_mut().lost(now, Cause::RetryLimit, &packet, None);
                    }
                }
            }
            if sender.reports {
                outcome.departed.push(mpdu.departure);
            }
            if let Some(watch) = &mut self.air_tap.0 {
                watch.forget(frame.sender, mpdu.place);
            }
        });
        if done > 0 {
            sender.queue.release(now, link.node(), done);
        }
        if gives_up && frame.content.frames == 0 {
            originator.give_up_request();
        }
        let is_unfinished = originator.place().is_some();
        let is_repeated = (is_unfinished && !is_answered) || originator.is_request_due();
        sender.settle(link, is_repeated, is_unfinished);
        self.measure(now, frame.node);
        if link.way == DOWN && self.is_away(link.station) {
            self.leave_behind(now, link);
            return true;
        }
        gives_up
    }

    /// The sender's last exchange is over, with success or not, and it starts a new one.
    fn finish(&mut self, sender: usize) {
        self.senders[sender].failures = 0;
        if self.phase == Phase::ByNode {
            return self.finish_by_node(sender);
        }
        self.contention.on_done(sender);
        if !self.can_send(sender) {
            self.contention.on_empty(sender);
        }
    }

    /// Inter-frame spaces end at `ready`, except for these nodes.
    fn resume(&mut self, now: Time, ready: Time, except: &[(usize, Time)]) {
        self.phase = Phase::Silent;
        if self.holds.any() {
            self.heed_holds(now);
        }
        if self.has_marked() {
            self.resume_senders(ready, except);
        } else {
            self.contention.resume(ready, except);
        }
    }

    /// The other end of a link.
    fn receiver_of(&self, link: Link) -> usize {
        if link.way == UP { self.access_points[link.station] } else { link.station }
    }

    fn next_on_air(&self) -> Time {
        match self.phase {
            Phase::Silent => self.contention.next_access(),
            Phase::Frames(until) | Phase::Response(until) => until,
            Phase::ByNode => self.next_by_node(),
        }
    }

    /// What is on the air, with the exchange around it.
    fn frames_on_air(&self) -> impl Iterator<Item = &Transmission> {
        let by_node = self.per_node.iter().flat_map(|per_node| per_node.frames());
        self.on_air.iter().filter(|_| self.phase != Phase::Silent).chain(by_node)
    }

    fn air_use(&self) -> AirUse {
        match self.phase {
            Phase::Silent if self.contention.is_backlogged() => AirUse::Contention,
            Phase::Silent => AirUse::Idle,
            Phase::Response(_) => AirUse::Success,
            Phase::Frames(_) if self.on_air.len() > 1 => AirUse::Collision,
            Phase::Frames(_) if self.on_air[0].link.is_none() => AirUse::Broadcast,
            Phase::Frames(_) => AirUse::Success,
            Phase::ByNode => self.per_node.as_ref().map_or(AirUse::Idle, |per_node| per_node.air_use()),
        }
    }
}

/// The name of an access point's random streams.
fn access_point_name(number: usize) -> String {
    if number == 0 { "access-point".into() } else { format!("access-point/{number}") }
}

/// The link of packets without a mark.
const fn best_effort(station: usize, way: Way) -> Link {
    Link { station, way, category: Category::BestEffort }
}

/// The destination of received packets.
fn go_on<P>(
    now: Time,
    link: Link,
    arrived: &mut Vec<Packet<P>>,
    outcome: &mut Outcome<'_, P>,
) -> impl FnMut(Packet<P>) {
    let to = link.node();
    move |packet| match link.way {
        UP => arrived.push(packet),
        DOWN => outcome.deliveries.push(Delivery { at: now, to, packet }),
    }
}
