//! The shared medium: transmissions, responses, collisions, errors, broadcast.
//!
//! Models one channel, heard by all stations and the access point, under DCF or EDCA's best effort.
//! 1. Senders and times: `backoff`. Contents: a frame to one receiver, or an A-MPDU of several (`originator`).
//! 2. A transmission without overlap is received, except frames lost to `noise`. If any was received, the receiver
//!    acknowledges after SIFS: a single frame by an ACK, more by a Block Ack. Then all wait the inter-frame space.
//! 3. Before a long transmission an RTS asks for a CTS. Nothing overlaps the rest of the exchange.
//! 4. Overlapping transmissions are all lost. Once the air is silent, senders wait until ACKTimeout and then the space,
//!    the others EIFS (or the space: [`WifiRules`]).
//! 5. If no frame of a transmission was received, the sender waits ACKTimeout and the space, its receiver EIFS. The
//!    others heard its duration field: they wait for the end of the expected response, and the space.
//! 6. After a lost response its addressee waits EIFS.
//! 7. Unacknowledged frames are repeated, up to `retry_limit` transmissions. A response resets the contention window,
//!    and so do `retry_limit` transmissions in a row without one.
//! 8. A broadcast is sent to the access point like any unicast frame, and from there once, at a basic rate, without
//!    ACK. Receivers with an error then wait EIFS, all others the space.
//!
//! ```text
//!   [silent] -- a timer ends --> [frames on the air] -- one, received --> [response] --+
//!      ^                           ^  | several, an error, or a broadcast   |     |     |
//!      +---------------------------|--+-------------------------------------+     |     |
//!                                  +---- after a CTS ------------------------------+
//! ```
//!
//! The receiver of the next transmission: `sender`.
//!
//! After ACKTimeout a sender waits a whole DIFS, as in 802.11-2020 §10.23.2.4 for EDCA; §10.3.4.3 leaves it open for
//! DCF.
//!
//! Leaves out: capture, hidden stations, fragments, power saving, beacons of the access point, access categories. A
//! sender gives up a frame at the end of the collision, not at ACKTimeout. The Block Ack agreements exist from the
//! start.
//!
//! References: 802.11-2020 §10.3 (DCF), §10.6.6.5.2 (rate of responses), §10.23.2 (EDCA), §10.25 (Block Ack), §18
//! (ERP); G. Bianchi: Performance analysis of the IEEE 802.11 distributed coordination function, IEEE JSAC 18(3), 2000.

use super::air_use::{AirMeter, AirUse};
use super::airtime::{AirTimes, Mode, ModeId};
use super::backoff::Contention;
use super::constants::{ContentionWindow, PhyRate, Standard};
use super::direction::{Controllers, DOWN, Direction, Link, UP};
use super::noise::Noise;
use super::originator::{Content, Fate, Frame};
use super::rate_control::{Decision, RateSet};
use super::sender::Sender;
use crate::config::{HostConfig, WifiConfig, WifiRules};
use crate::packet::{Delivery, Destination, NodeId, Outcome, Packet};
use crate::queue::{Queue, QueueConfig};
use crate::random::{Streams, happens};
use crate::schedule::Schedule;
use crate::statistics::{Cause, StationStatistics, Statistics};
use lasthop_units::{Bytes, Probability, Rate, Span, Time};
use rand_chacha::ChaCha8Rng;

#[derive(Clone, Debug)]
pub(crate) struct Medium<P> {
    times: AirTimes,
    contention: Contention,
    controllers: Controllers,
    /// The stations, then the access point.
    senders: Vec<Sender<P>>,
    /// By sender: its stream of frame errors.
    error_streams: Vec<ChaCha8Rng>,
    /// By station: up, then down.
    directions: Vec<[Direction<P>; 2]>,
    /// Deadlines of receivers that hold frames behind gaps: of each station up, then down.
    deadlines: Schedule,
    next_deadline: Time,
    most_frames: usize,
    rts_threshold: Option<Bytes>,
    broadcast_mode: ModeId,
    /// By station.
    noises: Vec<Noise>,
    /// By station: 802.11n and later.
    highest_mcss: Vec<u8>,
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
    /// Air time of broadcast packets.
    to_all: Span,
    collisions: u64,
    broadcasts: u64,
}

#[derive(Clone, Copy, Debug)]
struct Transmission {
    sender: usize,
    mode: ModeId,
    /// The station at the other end, or `None` for a broadcast.
    link: Option<Link>,
    content: Content,
    /// Duration of its data.
    duration: Span,
    /// An RTS or its CTS is on the air; the data follows.
    is_rts: bool,
    /// The end of the frame on the air.
    end: Time,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Silent,
    /// Data, or an RTS, is on the air until then.
    Frames(Time),
    /// It was received; the response ends then.
    Response(Time),
}

impl<P: Clone> Medium<P> {
    pub(crate) fn new(config: &WifiConfig, hosts: &[HostConfig], streams: Streams) -> Self {
        let standard = config.standard;
        let highest = |host: &HostConfig| host.rate.and_then(PhyRate::from_rate).unwrap_or(config.rate);
        let mut contenders = Vec::with_capacity(hosts.len() + 1);
        let mut senders = Vec::with_capacity(hosts.len() + 1);
        let mut error_streams = Vec::with_capacity(hosts.len() + 1);
        let mut add = |name: &str, queue, window| {
            let stream = |purpose: &str| streams.stream(&format!("wifi/{purpose}/{name}"));
            contenders.push((window, stream("backoff")));
            let queue = Queue::new(queue, streams, &format!("wifi/fq-codel/{name}"));
            senders.push(Sender::new(queue));
            error_streams.push(stream("frame-error"));
        };
        for (index, host) in hosts.iter().enumerate() {
            add(&index.to_string(), QueueConfig::fifo(host.queue_packets), standard.window(highest(host)));
        }
        let window = ContentionWindow { max: config.access_point_window, ..standard.window(config.rate) };
        add("access-point", config.access_point_queue, window);
        let controllers = Controllers::new(config, streams);
        let times = AirTimes::new(config);
        let noises: Vec<_> = hosts.iter().map(|host| Noise::new(config, host, &times)).collect();
        let highest_mcss: Vec<_> = hosts.iter().map(|host| host.highest_mcs(config)).collect();
        let directions = |(station, host): (usize, &HostConfig)| {
            let limits = (highest(host), highest_mcss[station]);
            [UP, DOWN].map(|way| Direction::new(&controllers, &times, &noises[station], Link { station, way }, limits))
        };
        let lowest_basic = match (standard, config.rate_set) {
            (Standard::B | Standard::Bg, _) | (Standard::G, RateSet::All) => PhyRate::Mbps1,
            _ => PhyRate::Mbps6,
        };
        Self {
            contention: Contention::new(standard.slot(), standard.sensing(), contenders),
            on_air: Vec::with_capacity(senders.len()),
            sending: Vec::with_capacity(senders.len()),
            waits: Vec::with_capacity(senders.len()),
            directions: hosts.iter().enumerate().map(directions).collect(),
            times,
            controllers,
            senders,
            error_streams,
            deadlines: Schedule::new(2 * hosts.len()),
            next_deadline: Time::MAX,
            most_frames: if standard.aggregates() { config.aggregate_frames.into() } else { 1 },
            rts_threshold: config.rts_threshold,
            broadcast_mode: config.broadcast_rate.unwrap_or(lowest_basic).into(),
            noises,
            highest_mcss,
            retry_limit: config.retry_limit,
            rules: config.rules,
            phase: Phase::Silent,
            reserved_until: Time::ZERO,
            air: AirMeter::new(Time::ZERO),
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
        if let Some(snr_db) = snr_db {
            self.noises[station] = self.controllers.noise_of_snr(snr_db, &self.times);
        }
        self.highest_mcss[station] = mcs.unwrap_or(self.highest_mcss[station]);
        if mcs.is_some() || (snr_db.is_some() && self.controllers.know_the_snr()) {
            for way in [UP, DOWN] {
                self.directions[station][way].renew(
                    &self.controllers,
                    &self.times,
                    &self.noises[station],
                    Link { station, way },
                    self.highest_mcss[station],
                );
            }
        }
        if let Some(highest) = rate.map(|rate| PhyRate::from_rate(rate).expect("a checked change has a PHY rate")) {
            self.directions[station].iter_mut().for_each(|direction| direction.new_highest = Some(highest));
        }
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
        }
    }

    pub(crate) fn host_queue(&self, station: usize) -> &Queue<P> {
        &self.senders[..self.directions.len()][station].queue
    }

    pub(crate) fn access_point_queue(&self) -> &Queue<P> {
        &self.senders[self.directions.len()].queue
    }

    pub(crate) fn packets_inside(&self) -> usize {
        let waiting: usize = self.senders.iter().map(|sender| sender.queue.waiting()).sum();
        waiting + self.directions.iter().flatten().map(Direction::packets_inside).sum::<usize>()
    }

    pub(crate) fn report_departures(&mut self, station: usize) {
        self.senders[station].reports = true;
    }

    pub(crate) fn report(&self, now: Time, statistics: &mut Statistics) {
        statistics.air = self.air.until(now, self.air_use());
        statistics.collisions = self.collisions;
        statistics.broadcasts = self.broadcasts;
        statistics.to_all = self.to_all;
        for (station, ways) in self.directions.iter().enumerate() {
            let [up, down] = [UP, DOWN].map(|way| ways[way].report(&self.times));
            statistics.transmissions += up.transmissions + down.transmissions;
            statistics.retries += up.retries + down.retries;
            statistics.stations.push(StationStatistics { node: NodeId(station as u16), up, down });
        }
    }

    pub(crate) fn reset_statistics(&mut self, now: Time) {
        self.air = AirMeter::new(now);
        self.to_all = Span::ZERO;
        self.collisions = 0;
        self.broadcasts = 0;
        self.senders.iter_mut().for_each(|sender| sender.queue.reset_statistics(now));
        self.directions.iter_mut().flatten().for_each(Direction::reset_statistics);
    }

    fn offer(&mut self, now: Time, sender: usize, packet: Packet<P>) -> Result<(), Packet<P>> {
        let was_idle = self.senders[sender].is_idle();
        self.senders[sender].queue.push(now, packet)?;
        if was_idle {
            if self.phase == Phase::Silent && !self.contention.is_backlogged() {
                self.air.book(now, self.air_use());
            }
            if self.senses_idle_before_acknowledgement(now, sender) {
                self.contention.on_frame_without_backoff(sender);
            } else if let Some(start) = self.contention.on_frame(sender, now, self.reserved_until) {
                // Too late to sense the transmission: one more frame that collides.
                self.begin(now, sender, start);
            }
        }
        Ok(())
    }

    /// By that rule: within the SIFS after the frame that the sender is to acknowledge.
    fn senses_idle_before_acknowledgement(&self, now: Time, sender: usize) -> bool {
        let Phase::Response(_) = self.phase else { return false };
        let frame = self.on_air[0];
        let receiver = frame.link.map(|link| self.receiver_of(link));
        self.rules.idle_before_acknowledgement && receiver == Some(sender) && now < frame.end + self.times.sifs
    }

    fn on_seized(&mut self, now: Time) {
        self.air.book(now, self.air_use());
        self.on_air.clear();
        let mut sending = std::mem::take(&mut self.sending);
        self.contention.seize(now, &mut sending);
        for &(sender, start) in &sending {
            self.begin(now, sender, start);
        }
        sending.clear();
        self.sending = sending;
    }

    /// Starts the sender's transmission at `start`, which may be a little after `now`.
    fn begin(&mut self, now: Time, sender: usize, start: Time) {
        let link = self.senders[sender].next_link(now, sender, &self.directions);
        let (decision, content) = match link {
            Some(link) => self.fill(now, sender, link),
            None => {
                self.broadcasts += 1;
                let size = self.senders[sender].queue.head(now).1.size;
                let bytes = self.times.mode(self.broadcast_mode).frame_bytes(size);
                let decision = Decision { mode: self.broadcast_mode, rts: false, alone: true };
                (decision, Content { frames: 1, bytes, to_all_bytes: bytes, retries: 0 })
            }
        };
        let mode = decision.mode;
        let times = self.times.mode(mode);
        let is_request = content.frames == 0;
        let duration = if is_request { times.request } else { times.ppdu(content.bytes) };
        let is_long = |threshold: Bytes| link.is_some() && !is_request && content.bytes > threshold.get();
        let is_rts = decision.rts || self.rts_threshold.is_some_and(is_long);
        let end = start + if is_rts { times.rts } else { duration };
        self.to_all += content.share_to_all(end - start);
        self.on_air.push(Transmission { sender, mode, link, content, duration, is_rts, end });
        self.phase = match self.phase {
            Phase::Frames(until) => Phase::Frames(until.max(end)),
            Phase::Silent | Phase::Response(_) => Phase::Frames(end),
        };
    }

    /// The contents of this link's next transmission, and how to send it.
    fn fill(&mut self, now: Time, sender: usize, link: Link) -> (Decision, Content) {
        let direction = &mut self.directions[link.station][link.way];
        let decision = direction.decide(now, &self.controllers, link);
        let mode = self.times.mode(decision.mode);
        let most_frames = if decision.alone { 1 } else { self.most_frames };
        if link.way == DOWN {
            self.senders[sender].queue.on_rate(link.station, mode.rate, mode.preamble());
        }
        let to = (link.way == DOWN).then_some(Destination::Node(NodeId(link.station as u16)));
        let mut filling = direction.originator.fill(mode, most_frames);
        if filling.has_room_for_more() {
            self.senders[sender].queue.claim(now, to, &mut filling);
        }
        let content = filling.content;
        if content.frames > 0 {
            direction.count(mode, content.frames, content.retries);
        }
        (decision, content)
    }

    fn on_rts_over(&mut self, now: Time, link: Link, outcome: &mut Outcome<'_, P>) {
        let frame = self.on_air[0];
        let loss = self.noises[link.station].control(frame.mode).rts;
        if happens(loss, &mut self.error_streams[frame.sender]) {
            self.on_error(now, frame, link, outcome);
        } else {
            self.phase = Phase::Response(now + frame.response(self.times.mode(frame.mode)));
        }
    }

    fn on_data_over(&mut self, now: Time, link: Link, arrived: &mut Vec<Packet<P>>, outcome: &mut Outcome<'_, P>) {
        let frame = self.on_air[0];
        if self.receive(frame, link, now, &mut go_on(now, link, arrived, outcome)) {
            self.watch(now, link);
            self.phase = Phase::Response(now + frame.response(self.times.mode(frame.mode)));
        } else {
            self.on_error(now, frame, link, outcome);
        }
    }

    /// The receiver accepts a transmission. Returns whether anything was received.
    fn receive(&mut self, frame: Transmission, link: Link, now: Time, go_on: &mut impl FnMut(Packet<P>)) -> bool {
        let noise = &self.noises[link.station];
        let Direction { originator, recipient, counts, .. } = &mut self.directions[link.station][link.way];
        if frame.content.frames == 0 {
            let is_lost = happens(noise.control(frame.mode).request, &mut self.error_streams[frame.sender]);
            if !is_lost {
                recipient.on_request(originator.start(), go_on);
            }
            return !is_lost;
        }
        let mode = self.times.mode(frame.mode);
        let mut loss = noise.frames(frame.mode);
        let queue = &mut self.senders[frame.sender].queue;
        let (mut received, mut too_late) = (0, 0);
        for sent in originator.sent(frame.content.frames) {
            let loss = loss.of(mode.frame_bytes(sent.departure.size));
            if happens(loss, &mut self.error_streams[frame.sender]) {
                continue;
            }
            received += 1;
            if !sent.is_received {
                sent.is_received = true;
                let packet = queue.take(sent.place);
                too_late += u64::from(recipient.receive(now, sent.sequence, packet, &mut *go_on).is_err());
            }
        }
        counts.errors += (frame.content.frames - received) as u64;
        queue.count_drops(Cause::TooLate, too_late);
        received > 0
    }

    fn on_deadline(&mut self, now: Time, arrived: &mut Vec<Packet<P>>, outcome: &mut Outcome<'_, P>) {
        let due = self.deadlines.first();
        let link = Link { station: due / 2, way: due % 2 };
        let recipient = &mut self.directions[link.station][link.way].recipient;
        recipient.on_deadline(go_on(now, link, arrived, outcome));
        self.watch(now, link);
    }

    /// Sets the deadline of the frames held by the link's receiver. It may be past if they waited behind something
    /// else.
    fn watch(&mut self, now: Time, link: Link) {
        let deadline = self.directions[link.station][link.way].recipient.deadline();
        if deadline < Time::MAX || self.next_deadline < Time::MAX {
            self.deadlines.set(2 * link.station + link.way, deadline.max(now));
            self.next_deadline = self.deadlines.first_at();
        }
    }

    fn on_response_over(&mut self, now: Time, outcome: &mut Outcome<'_, P>) {
        let frame = self.on_air[0];
        let link = frame.link.expect("only unicast frames are answered");
        let responder = self.receiver_of(link);
        let losses = self.noises[link.station].control(frame.mode);
        let loss = if frame.is_answered_by_block_ack() { losses.block_ack } else { losses.acknowledgement };
        if happens(loss, &mut self.error_streams[responder]) {
            let waits = [(frame.sender, now + self.times.mode(frame.mode).eifs)];
            self.air.book(now, AirUse::Error);
            self.fail(now, frame, outcome);
            self.resume(now + self.times.space, &waits);
            return;
        }
        if frame.is_rts {
            let end = now + self.times.sifs + frame.duration;
            self.to_all += frame.content.share_to_all(end - frame.end);
            self.on_air[0] = Transmission { is_rts: false, end, ..frame };
            self.phase = Phase::Frames(end);
            return;
        }
        self.air.book(now, self.air_use());
        self.to_all += frame.content.share_to_all(now - frame.end);
        self.settle(now, frame, link, true, outcome);
        self.resume(now + self.times.space, &[]);
    }

    fn on_broadcast_over(&mut self, now: Time, outcome: &mut Outcome<'_, P>) {
        self.air.book(now, self.air_use());
        let Transmission { sender, mode, content, .. } = self.on_air[0];
        let eifs = self.times.mode(mode).eifs;
        let packet = self.senders[sender].queue.pop(now);
        let mut waits = std::mem::take(&mut self.waits);
        for to in self.receivers(&packet) {
            let loss = self.noises[to.index()].frames(mode).of(content.bytes);
            if happens(loss, &mut self.error_streams[sender]) {
                self.senders[sender].queue.count_drops(Cause::FrameError, 1);
                waits.push((to.index(), now + eifs));
            } else {
                outcome.deliveries.push(Delivery { at: now, to, packet: packet.clone() });
            }
        }
        self.finish_broadcast(sender, &packet, outcome);
        self.resume(now + self.times.space, &waits);
        waits.clear();
        self.waits = waits;
    }

    fn on_error(&mut self, now: Time, frame: Transmission, link: Link, outcome: &mut Outcome<'_, P>) {
        let mode = self.times.mode(frame.mode);
        self.reserved_until = now + frame.response(mode);
        let waits = [(frame.sender, now + mode.timeout + self.times.space), (self.receiver_of(link), now + mode.eifs)];
        self.air.book(now, AirUse::Error);
        self.fail(now, frame, outcome);
        self.resume(self.reserved_until + self.times.space, &waits);
    }

    fn on_collision_over(&mut self, now: Time, outcome: &mut Outcome<'_, P>) {
        self.air.book(now, self.air_use());
        self.collisions += 1;
        let mut eifs = Span::ZERO;
        let mut waits = std::mem::take(&mut self.waits);
        for index in 0..self.on_air.len() {
            let frame = self.on_air[index];
            let mode = self.times.mode(frame.mode);
            eifs = eifs.max(mode.eifs);
            let known_at = if let Some(link) = frame.link {
                self.directions[link.station][link.way].counts.collided += u64::from(frame.content.frames > 0);
                now.max(frame.end + mode.timeout)
            } else {
                now
            };
            waits.push((frame.sender, known_at + self.times.space));
            self.fail(now, frame, outcome);
        }
        let bystanders = if self.rules.difs_after_collision { self.times.space } else { eifs };
        self.resume(now + bystanders, &waits);
        waits.clear();
        self.waits = waits;
    }

    /// The transmission had no response: its frames are repeated or given up.
    fn fail(&mut self, now: Time, frame: Transmission, outcome: &mut Outcome<'_, P>) {
        if let Some(link) = frame.link {
            self.settle(now, frame, link, false, outcome);
            return;
        }
        let packet = self.senders[frame.sender].queue.pop(now);
        let receivers = self.receivers(&packet).count() as u64;
        self.senders[frame.sender].queue.count_drops(Cause::Collision, receivers);
        self.finish_broadcast(frame.sender, &packet, outcome);
    }

    /// Settles the frames of a transmission, answered or not, and its sender.
    fn settle(&mut self, now: Time, frame: Transmission, link: Link, is_answered: bool, outcome: &mut Outcome<'_, P>) {
        let access_point = self.directions.len();
        let is_data = frame.content.frames > 0 && !frame.is_rts;
        if is_data && (is_answered || link.way == DOWN) {
            self.senders[access_point].queue.on_airtime(link.station, frame.duration);
        }
        let Direction { originator, controller, counts, .. } = &mut self.directions[link.station][link.way];
        counts.air += if is_data { frame.duration } else { Span::ZERO };
        let sender = &mut self.senders[frame.sender];
        sender.failures = if is_answered { 0 } else { sender.failures.saturating_add(1) };
        let gives_up = self.retry_limit > 0 && sender.failures >= self.retry_limit;
        let frames = frame.content.frames;
        if is_answered && frames > 0 {
            let is_acknowledged = |sent: &&mut Frame| sent.is_received;
            let counts = controller.counts_frames();
            let acknowledged = if counts { originator.sent(frames).filter(is_acknowledged).count() } else { frames };
            controller.on_success(now, frames, acknowledged);
        } else if frames > 0 {
            controller.on_failure(now, frames, gives_up);
        }
        let (mut done, mut lost) = (0, 0);
        originator.settle(frame.content.frames, is_answered, self.retry_limit, |mpdu, fate| {
            done += 1;
            match fate {
                Fate::Acknowledged => counts.acknowledged += 1,
                Fate::GivenUp => {
                    counts.given_up += 1;
                    if !mpdu.is_received {
                        sender.queue.take(mpdu.place);
                        lost += 1;
                    }
                }
            }
            if sender.reports {
                outcome.departed.push(mpdu.departure);
            }
        });
        if done > 0 {
            sender.queue.release(now, link.station, done);
            sender.queue.count_drops(Cause::RetryLimit, lost);
        }
        if gives_up && frame.content.frames == 0 {
            originator.give_up_request();
        }
        let is_unfinished = originator.place().is_some();
        let is_repeated = (is_unfinished && !is_answered) || originator.is_request_due();
        sender.settle(link, is_repeated, is_unfinished);
        if is_answered || gives_up {
            self.finish(frame.sender);
        } else {
            self.contention.on_failure(frame.sender);
        }
    }

    fn finish_broadcast(&mut self, sender: usize, packet: &Packet<P>, outcome: &mut Outcome<'_, P>) {
        if self.senders[sender].reports {
            outcome.departed.push(packet.departure());
        }
        self.finish(sender);
    }

    /// The sender's last exchange is over, with success or not, and it starts a new one.
    fn finish(&mut self, sender: usize) {
        self.senders[sender].failures = 0;
        self.contention.on_done(sender);
        if self.senders[sender].is_idle() {
            self.contention.on_empty(sender);
        }
    }

    fn resume(&mut self, ready: Time, except: &[(usize, Time)]) {
        self.phase = Phase::Silent;
        self.contention.resume(ready, except);
    }

    /// The receivers of a broadcast by the access point.
    fn receivers(&self, packet: &Packet<P>) -> impl Iterator<Item = NodeId> + use<P> {
        let from = packet.from;
        (0..self.directions.len()).map(|station| NodeId(station as u16)).filter(move |&station| station != from)
    }

    /// The other end of a link.
    fn receiver_of(&self, link: Link) -> usize {
        if link.way == UP { self.directions.len() } else { link.station }
    }

    fn next_on_air(&self) -> Time {
        match self.phase {
            Phase::Silent => self.contention.next_access(),
            Phase::Frames(until) | Phase::Response(until) => until,
        }
    }

    fn air_use(&self) -> AirUse {
        match self.phase {
            Phase::Silent if self.contention.is_backlogged() => AirUse::Contention,
            Phase::Silent => AirUse::Idle,
            Phase::Response(_) => AirUse::Success,
            Phase::Frames(_) if self.on_air.len() > 1 => AirUse::Collision,
            Phase::Frames(_) if self.on_air[0].link.is_none() => AirUse::Broadcast,
            Phase::Frames(_) => AirUse::Success,
        }
    }
}

impl Transmission {
    /// SIFS and its response.
    fn response(&self, mode: &Mode) -> Span {
        if self.is_answered_by_block_ack() { mode.block_ack } else { mode.acknowledgement }
    }

    fn is_answered_by_block_ack(&self) -> bool {
        !self.is_rts && self.content.frames != 1
    }
}

/// The destination of received packets.
fn go_on<P>(
    now: Time,
    link: Link,
    arrived: &mut Vec<Packet<P>>,
    outcome: &mut Outcome<'_, P>,
) -> impl FnMut(Packet<P>) {
    let to = NodeId(link.station as u16);
    move |packet| match link.way {
        UP => arrived.push(packet),
        _ => outcome.deliveries.push(Delivery { at: now, to, packet }),
    }
}
