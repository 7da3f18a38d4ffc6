//! One direction of a wired link: a queue, a transmitter, random loss, a delay.
//!
//! 1. A packet with a loss before the queue is lost at once; it takes no room and no time.
//! 2. Any other joins the queue, if there is room; the transmitter serves one packet at a time for size / rate. If the
//!    rate changes meanwhile, it is integrated (`server`). Instead of a rate it may have the `opportunities` of a trace.
//! 3. A packet with a loss after the queue is lost at the end of its transmission (a transmission error). The others
//!    arrive after the delay.
//!
//! With a common delay, packets never overtake each other. With a delay per host (`host_path`), those of one host do not.
//! Losses in bursts, jitter, reordering and duplicates are those of `impairments`.
//!
//! In a drop-tail queue later arrivals never change a packet's departure. So it is computed when the packet joins, and
//! the packet causes one event: its arrival or its loss. Queue lengths are booked later, with the true times. In the
//! nanosecond of a departure, the departing packet still counts as queued for arrivals. Packets offered from outside
//! come after all due events.
//!
//! Other disciplines, and links that change, choose when the transmitter is free: two events per packet, sent and
//! arrived.
//!
//! Leaves out: framing overhead (rates are rates of IP bytes, as a traffic shaper's).

use crate::change::DirectionChange;
use crate::config::{DirectionConfig, LossAt};
use crate::host_path::{Course, Lanes, RoundTrip};
use crate::impairments::{Losses, Scatter};
use crate::packet::{Departure, Packet};
use crate::queue::{AnyQueue, Discipline, Queue as _, ReadAck};
use crate::random::Streams;
use crate::server::{NewPace, Server};
use crate::statistics::{Cause, Counted, LinkStatistics, Observed, QueueId};
use crate::watch::{Log, Tap};
use lasthop_units::{Bytes, Ecn, Rate, Span, Time};
use std::collections::VecDeque;

#[derive(Clone, Debug)]
pub(crate) struct Link<P> {
    rate: Rate,
    losses: Losses,
    loss_at: LossAt,
    bleaches_ecn: bool,
    service: Service<P>,
    underway: Underway<P>,
    /// Packets with a loss or a departure to report at the end of transmission; drop-tail only.
    notices: VecDeque<Notice>,
    /// The last packet size and its transmission time.
    last_transmission: (Bytes, Span),
    /// The time of the next event; [`Time::MAX`] if there is none.
    next_event: Time,
    tap: Tap<P>,
    /// The packets of notices of a loss, if somebody watches.
    doomed: VecDeque<Packet<P>>,
}

#[derive(Clone, Debug)]
enum Service<P> {
    Timetable(Timetable),
    Queue(Box<Transmitter<P>>),
}

/// A packet whose end of transmission is an event.
#[derive(Clone, Copy, Debug)]
struct Notice {
    at: Time,
    departure: Departure,
    /// It is lost then. Otherwise its departure is reported.
    is_lost: bool,
}

/// The outcome of a link's event.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step<P> {
    /// This packet has arrived at the other end.
    Arrived(Packet<P>),
    /// A packet has left the queue.
    Sent(Departure),
    /// A packet was lost after the queue.
    Lost,
}

/// The fate of an accepted packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Taken {
    Queued,
    LostBeforeQueue,
}

impl<P: Clone> Link<P> {
    /// An idle link. It may [change](Link::change) only with `changes`. Its random streams are `name`/loss, those of its
    /// `Scatter` and, with a queue that draws, `name`/fq-codel.
    pub(crate) fn new(config: &DirectionConfig, changes: bool, streams: Streams, name: &str) -> Self {
        let service = match config.queue.discipline {
            Discipline::Fifo if !changes && config.queue.ack_filter.is_none() => {
                Service::Timetable(Timetable::new(config.queue.packets))
            }
            _ => {
                let queue = AnyQueue::new(config.queue, streams, &format!("{name}/fq-codel"));
                Service::Queue(Box::new(Transmitter::new(queue, Server::new(config.rate))))
            }
        };
        let impairments = &config.impairments;
        let underway = if impairments.scatter() {
            let lane = (RoundTrip::Constant(config.delay), impairments.jitter);
            let scatter = Scatter::new(impairments, streams, name);
            Underway::Lanes(Box::new(Lanes::new(Course::Link, [lane], Some(scatter))))
        } else {
            Underway::InOrder { delay: config.delay, packets: VecDeque::new() }
        };
        Self {
            rate: config.rate,
            losses: Losses::new(config.loss, impairments.loss_burst, streams.stream(&format!("{name}/loss"))),
            loss_at: config.loss_at,
            bleaches_ecn: impairments.bleaches_ecn,
            service,
            underway,
            notices: VecDeque::new(),
            last_transmission: (Bytes::ZERO, Span::ZERO),
            next_event: Time::MAX,
            tap: Tap::NONE,
            doomed: VecDeque::new(),
        }
    }

    /// Tells its losses, under the name `place`, from now on.
    pub(crate) fn watch(&mut self, log: &Log<P>, place: QueueId) {
        self.tap = Tap::new(log, place);
        if let Service::Queue(transmitter) = &mut self.service {
            transmitter.queue.desk_mut().tap = Tap::new(log, place);
        }
    }

    /// Knows ACKs by this function from now on.
    pub(crate) fn read_acks(&mut self, read: ReadAck<P>) {
        if let Service::Queue(transmitter) = &mut self.service {
            transmitter.queue.read_acks(read);
        }
    }

    /// The same link with a delay per host instead of one for all.
    pub(crate) fn with_lanes(self, lanes: Lanes<P>) -> Self {
        Self { underway: Underway::Lanes(Box::new(lanes)), ..self }
    }

    /// Changes the link, whose transmitter has this pace then. What is left of the packet in transmission goes at the new
    /// one; packets already sent keep their arrival times.
    ///
    /// # Panics
    /// If the link was made without changes.
    pub(crate) fn change(&mut self, now: Time, to: DirectionChange, pace: NewPace) {
        let Service::Queue(transmitter) = &mut self.service else { panic!("a timetable is not made anew") };
        self.rate = to.rate.unwrap_or(self.rate);
        transmitter.change(now, pace);
        self.losses.share = to.loss.unwrap_or(self.losses.share);
        self.last_transmission = (Bytes::ZERO, Span::ZERO);
        if let Some(new) = to.delay {
            match &mut self.underway {
                Underway::InOrder { delay, .. } => *delay = new,
                Underway::Lanes(lanes) => lanes.change_shared(new),
            }
        }
        self.serve(now);
        self.find_next();
    }

    /// Changes the round-trip time of hosts without their own.
    ///
    /// # Panics
    /// If the link has one delay for all hosts.
    pub(crate) fn change_round_trip(&mut self, rtt: Span) {
        let Underway::Lanes(lanes) = &mut self.underway else { panic!("a link without lanes has one delay") };
        lanes.change_shared(rtt);
    }

    /// Changes the round-trip time of this host, unless it draws its own.
    ///
    /// # Panics
    /// If the link has one delay for all hosts.
    pub(crate) fn change_round_trip_of(&mut self, host: usize, rtt: Span) {
        let Underway::Lanes(lanes) = &mut self.underway else { panic!("a link without lanes has one delay") };
        lanes.change_of(host, rtt);
    }

    /// Accepts a packet from another part of the network.
    pub(crate) fn offer(&mut self, now: Time, packet: Packet<P>) -> Result<Taken, Packet<P>> {
        if self.loss_at == LossAt::BeforeQueue && self.losses.take_next() {
            self.counted_mut().drop(Cause::RandomLoss, 1);
            self.tap.lost(now, Cause::RandomLoss, &packet, None);
            return Ok(Taken::LostBeforeQueue);
        }
        let transmission = self.transmission_time(packet.size);
        match &mut self.service {
            Service::Timetable(timetable) => {
                timetable.book_before(now);
                if timetable.departures.len() >= timetable.limit {
                    timetable.counted.drop(Cause::QueueFull, 1);
                    self.tap.lost(now, Cause::QueueFull, &packet, None);
                    return Err(packet);
                }
                let is_lost = self.loss_at == LossAt::AfterQueue && self.losses.take_next();
                let sent = timetable.push(now, packet.size, transmission, is_lost);
                if is_lost {
                    self.notices.push_back(Notice { at: sent, departure: packet.departure(), is_lost });
                    if self.tap.is_on() {
                        self.doomed.push_back(packet);
                    }
                } else {
                    self.underway.push(sent, packet);
                }
            }
            Service::Queue(transmitter) => {
                transmitter.queue.push(now, packet)?;
                self.serve(now);
            }
        }
        self.find_next();
        Ok(Taken::Queued)
    }

    /// Accepts a packet from outside the network, after all due events. With `announced`, its departure from the queue
    /// is an event.
    pub(crate) fn offer_from_outside(
        &mut self,
        now: Time,
        packet: Packet<P>,
        announced: bool,
    ) -> Result<Taken, Packet<P>> {
        self.book(now);
        let departure = packet.departure();
        let taken = self.offer(now, packet)?;
        if let Service::Timetable(timetable) = &self.service
            && announced
            && taken == Taken::Queued
        {
            self.notices.push_back(Notice { at: timetable.free_at, departure, is_lost: false });
            self.find_next();
        }
        Ok(taken)
    }

    /// Starts recording packets that the queue drops after accepting them. Returns whether it may ever do that.
    pub(crate) fn note_dropped(&mut self) -> bool {
        let Service::Queue(transmitter) = &mut self.service else { return false };
        transmitter.queue.desk_mut().note_dropped();
        true
    }

    /// The packets that the queue has dropped after accepting them, since the last call, in order.
    pub(crate) fn take_dropped(&mut self) -> impl Iterator<Item = Departure> {
        let transmitter = if let Service::Queue(transmitter) = &mut self.service { Some(transmitter) } else { None };
        transmitter.into_iter().flat_map(|transmitter| transmitter.queue.desk_mut().take_dropped())
    }

    /// Books all transmissions up to now, to the nanosecond.
    pub(crate) fn book(&mut self, now: Time) {
        if let Service::Timetable(timetable) = &mut self.service {
            timetable.book(now);
        }
    }

    /// The time of the next event; [`Time::MAX`] if there is none.
    pub(crate) const fn next_event(&self) -> Time {
        self.next_event
    }

    #[inline]
    fn find_next(&mut self) {
        let arrival = self.underway.next_arrival();
        let sent = match &self.service {
            Service::Timetable(_) => self.notices.front().map(|notice| notice.at),
            Service::Queue(transmitter) => transmitter.server.done_at(),
        };
        self.next_event = sent.map_or(arrival, |at| at.min(arrival));
    }

    /// Processes the next event, due at `now`.
    #[inline(always)]
    pub(crate) fn step(&mut self, now: Time) -> Step<P> {
        debug_assert_eq!(self.next_event(), now, "a link steps when it has an event");
        if self.underway.next_arrival() > now {
            return self.step_queue(now);
        }
        let mut packet = self.underway.pop();
        if self.bleaches_ecn {
            packet.ecn = Ecn::NotEct;
        }
        self.find_next();
        Step::Arrived(packet)
    }

    /// A transmission is over.
    #[inline(never)]
    fn step_queue(&mut self, now: Time) -> Step<P> {
        let step = match &mut self.service {
            Service::Timetable(_) => {
                let notice = self.notices.pop_front().expect("what is no arrival was noted");
                if notice.is_lost
                    && let Some(packet) = self.doomed.pop_front()
                {
                    self.tap.lost(now, Cause::RandomLoss, &packet, None);
                }
                if notice.is_lost { Step::Lost } else { Step::Sent(notice.departure) }
            }
            Service::Queue(transmitter) => {
                let packet = transmitter.finish(now);
                let departure = packet.departure();
                if self.loss_at == LossAt::AfterQueue && self.losses.take_next() {
                    transmitter.queue.desk_mut().lost(now, Cause::RandomLoss, &packet, None);
                } else {
                    self.underway.push(now, packet);
                }
                self.serve(now);
                Step::Sent(departure)
            }
        };
        self.find_next();
        step
    }

    /// Packets in the queue, including the one in service.
    pub(crate) fn len(&self, now: Time) -> usize {
        match &self.service {
            Service::Timetable(timetable) => timetable.len(now),
            Service::Queue(transmitter) => transmitter.queue.len(),
        }
    }

    pub(crate) fn room(&self, now: Time) -> usize {
        match &self.service {
            Service::Timetable(timetable) => timetable.limit - timetable.len(now),
            Service::Queue(transmitter) => transmitter.queue.room(),
        }
    }

    /// Packets accepted, and neither arrived nor lost yet.
    pub(crate) fn packets_inside(&self) -> usize {
        match &self.service {
            Service::Timetable(_) => self.underway.len() + self.notices.iter().filter(|notice| notice.is_lost).count(),
            Service::Queue(transmitter) => self.underway.len() + transmitter.queue.len(),
        }
    }

    /// How long the transmitter was busy.
    pub(crate) fn busy_time(&self, now: Time) -> Span {
        match &self.service {
            Service::Timetable(timetable) => timetable.busy_time(now),
            Service::Queue(transmitter) => transmitter.busy.until(now),
        }
    }

    pub(crate) fn observe(&self, place: QueueId, now: Time) -> Observed {
        match &self.service {
            Service::Timetable(timetable) => {
                let mut booked = timetable.clone();
                booked.book(now);
                booked.counted.observe(place, now)
            }
            Service::Queue(transmitter) => transmitter.queue.observe(place, now),
        }
    }

    pub(crate) fn statistics(&self, place: QueueId, now: Time, elapsed: Span) -> LinkStatistics {
        let sent = match &self.service {
            Service::Timetable(timetable) => {
                let due = timetable.departures.iter().take_while(|departure| departure.at <= now);
                due.fold(timetable.sent, |sent, departure| sent.and(departure.size))
            }
            Service::Queue(transmitter) => transmitter.sent,
        };
        let busy = self.busy_time(now);
        let utilization = if elapsed.is_zero() { 0.0 } else { busy.as_secs_f64() / elapsed.as_secs_f64() };
        LinkStatistics { place, packets: sent.packets, data: sent.data, busy, utilization }
    }

    pub(crate) fn reset_statistics(&mut self, now: Time) {
        match &mut self.service {
            Service::Timetable(timetable) => timetable.reset_statistics(now),
            Service::Queue(transmitter) => {
                transmitter.queue.reset_statistics(now);
                transmitter.busy.reset(now);
                transmitter.sent = Sent::default();
            }
        }
    }

    fn counted_mut(&mut self) -> &mut Counted {
        match &mut self.service {
            Service::Timetable(timetable) => &mut timetable.counted,
            Service::Queue(transmitter) => &mut transmitter.queue.desk_mut().counted,
        }
    }

    /// Starts sending the next packet if the transmitter is free and there is one.
    fn serve(&mut self, now: Time) {
        let Service::Queue(transmitter) = &mut self.service else { return };
        if transmitter.server.is_free() && !transmitter.queue.is_empty() {
            transmitter.busy.start(now);
            let size = transmitter.queue.head(now).1.size;
            transmitter.server.start(now, size);
        }
    }

    /// Caches the last size: packets of one direction mostly have the same.
    fn transmission_time(&mut self, size: Bytes) -> Span {
        if self.last_transmission.0 != size {
            self.last_transmission = (size, self.rate.transmission_time(size));
        }
        self.last_transmission.1
    }
}

/// A drop-tail queue and its transmitter, stored as departure times.
#[derive(Clone, Debug)]
struct Timetable {
    limit: usize,
    /// Packets in the queue, and departed ones not booked yet.
    departures: VecDeque<Transmission>,
    /// When the transmitter becomes free.
    free_at: Time,
    /// Its total busy time by then, since the last reset.
    work: Span,
    counted: Counted,
    sent: Sent,
}

#[derive(Clone, Copy, Debug)]
struct Transmission {
    at: Time,
    size: Bytes,
    is_lost: bool,
}

/// A transmitter's totals.
#[derive(Clone, Copy, Default, Debug)]
struct Sent {
    packets: u64,
    data: Bytes,
}

impl Sent {
    fn and(self, size: Bytes) -> Self {
        Self { packets: self.packets + 1, data: self.data + size }
    }
}

impl Timetable {
    fn new(limit: usize) -> Self {
        Self {
            limit,
            departures: VecDeque::new(),
            free_at: Time::ZERO,
            work: Span::ZERO,
            counted: Counted::new(),
            sent: Sent::default(),
        }
    }

    /// Adds a packet. Returns its departure time.
    #[inline(always)]
    fn push(&mut self, now: Time, size: Bytes, transmission: Span, is_lost: bool) -> Time {
        self.free_at = self.free_at.max(now) + transmission;
        self.work += transmission;
        self.departures.push_back(Transmission { at: self.free_at, size, is_lost });
        self.counted.change(now, self.departures.len());
        self.free_at
    }

    /// Books departures until `now`.
    #[inline]
    fn book(&mut self, now: Time) {
        while self.departures.front().is_some_and(|departure| departure.at <= now) {
            self.book_one();
        }
    }

    /// Books departures before `now`.
    #[inline]
    fn book_before(&mut self, now: Time) {
        while self.departures.front().is_some_and(|departure| departure.at < now) {
            self.book_one();
        }
    }

    #[inline(always)]
    fn book_one(&mut self) {
        let departure = self.departures.pop_front().expect("somebody has looked at it");
        self.counted.change(departure.at, self.departures.len());
        self.sent = self.sent.and(departure.size);
        self.counted.drop(Cause::RandomLoss, departure.is_lost.into());
    }

    fn len(&self, now: Time) -> usize {
        self.departures.len() - self.departures.partition_point(|departure| departure.at <= now)
    }

    /// The transmitter is never idle with packets queued, so its remaining work lies entirely ahead.
    fn busy_time(&self, now: Time) -> Span {
        self.work - self.free_at.saturating_since(now)
    }

    fn reset_statistics(&mut self, now: Time) {
        self.book(now);
        self.counted.reset(now);
        self.work = self.free_at.saturating_since(now);
        self.sent = Sent::default();
    }
}

/// A queue that chooses a packet when its transmitter is free.
#[derive(Clone, Debug)]
struct Transmitter<P> {
    queue: AnyQueue<P>,
    server: Server,
    busy: BusyTime,
    sent: Sent,
}

impl<P> Transmitter<P> {
    fn new(queue: AnyQueue<P>, server: Server) -> Self {
        Self { queue, server, busy: BusyTime::default(), sent: Sent::default() }
    }

    /// Takes up another rate or a hold.
    fn change(&mut self, now: Time, pace: NewPace) {
        let held = pace.held;
        self.server.change(now, pace);
        self.busy.pause(now, held.filter(|_| self.server.has_packet()));
    }

    fn finish(&mut self, now: Time) -> Packet<P> {
        self.server.finish();
        self.busy.stop(now);
        let packet = self.queue.pop(now);
        self.sent = self.sent.and(packet.size);
        packet
    }
}

/// Packets between the queue and the other end, including those still in a drop-tail queue.
#[derive(Clone, Debug)]
enum Underway<P> {
    InOrder { delay: Span, packets: VecDeque<(Time, Packet<P>)> },
    Lanes(Box<Lanes<P>>),
}

impl<P: Clone> Underway<P> {
    /// Takes a packet with the end of its transmission at `sent`, past or future.
    #[inline(always)]
    fn push(&mut self, sent: Time, packet: Packet<P>) {
        match self {
            Self::InOrder { delay, packets } => {
                // With a decreased delay it would overtake.
                let before = packets.back().map_or(Time::ZERO, |(at, _)| *at);
                packets.push_back((before.max(sent + *delay), packet));
            }
            Self::Lanes(lanes) => lanes.push(sent, packet),
        }
    }

    #[inline]
    fn next_arrival(&self) -> Time {
        match self {
            Self::InOrder { packets, .. } => packets.front().map_or(Time::MAX, |(at, _)| *at),
            Self::Lanes(lanes) => lanes.next_arrival(),
        }
    }

    #[inline(always)]
    fn pop(&mut self) -> Packet<P> {
        match self {
            Self::InOrder { packets, .. } => packets.pop_front().expect("somebody has looked at it").1,
            Self::Lanes(lanes) => lanes.pop(),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::InOrder { packets, .. } => packets.len(),
            Self::Lanes(lanes) => lanes.len(),
        }
    }
}

/// A transmitter's busy time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BusyTime {
    past: Span,
    since: Option<Time>,
}

impl BusyTime {
    pub(crate) fn start(&mut self, now: Time) {
        self.since = Some(now);
    }

    pub(crate) fn stop(&mut self, now: Time) {
        self.past = self.until(now);
        self.since = None;
    }

    /// It stands still from now on with a packet in service, or goes on; `None`: as before.
    pub(crate) fn pause(&mut self, now: Time, paused: Option<bool>) {
        match paused {
            Some(true) => self.stop(now),
            Some(false) if self.since.is_none() => self.start(now),
            _ => {}
        }
    }

    pub(crate) fn until(&self, now: Time) -> Span {
        self.past + self.since.map_or(Span::ZERO, |since| now.saturating_since(since))
    }

    pub(crate) fn reset(&mut self, now: Time) {
        self.past = Span::ZERO;
        self.since = self.since.map(|_| now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::impairments::Impairments;
    use crate::queue::QueueConfig;
    use lasthop_units::Probability;
    use proptest::prelude::*;

    /// 1500 B take 1 ms, then 10 ms of delay; room for two.
    fn config(loss: f64, loss_at: LossAt) -> DirectionConfig {
        DirectionConfig {
            rate: Rate::from_mbps(12.0),
            delay: Span::from_millis(10),
            queue: QueueConfig::fifo(2),
            loss: Probability::new(loss).unwrap(),
            loss_at,
            impairments: Impairments::NONE,
        }
    }

    fn link(loss: f64, loss_at: LossAt) -> Link<u32> {
        Link::new(&config(loss, loss_at), false, Streams::new(1), "link")
    }

    fn ms(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn run(link: &mut Link<u32>, until: Time) -> Vec<(Time, Option<u32>)> {
        let mut events = Vec::new();
        while link.next_event() < Time::MAX && link.next_event() <= until {
            let now = link.next_event();
            events.push(match link.step(now) {
                Step::Arrived(packet) => (now, Some(packet.payload)),
                Step::Sent(_) | Step::Lost => (now, None),
            });
        }
        events
    }

    #[test]
    fn a_packet_takes_its_serialisation_and_the_delay() {
        let mut link = link(0.0, LossAt::AfterQueue);
        link.offer(Time::ZERO, Packet::full(1)).unwrap();
        link.offer(Time::ZERO, Packet::full(2)).unwrap();
        // 1500 B at 12 Mb/s take 1 ms; the second packet waits for the first: 1 + 10 ms, 2 + 10 ms. One event each.
        assert_eq!(run(&mut link, Time::MAX), [(ms(11), Some(1)), (ms(12), Some(2))]);
        assert_eq!(link.busy_time(ms(12)), Span::from_millis(2));
    }

    #[test]
    fn who_comes_when_another_has_just_been_sent_finds_it_in_the_queue_unless_it_comes_from_outside() {
        let mut link = link(0.0, LossAt::AfterQueue);
        link.offer(Time::ZERO, Packet::full(1)).unwrap();
        link.offer(Time::ZERO, Packet::full(2)).unwrap();
        assert_eq!(link.offer(ms(1), Packet::full(3)), Err(Packet::full(3)));
        assert_eq!((link.len(ms(1)), link.room(ms(1))), (1, 1));
        assert_eq!(link.offer_from_outside(ms(1), Packet::full(4), false), Ok(Taken::Queued));
        assert_eq!(link.observe(QueueId::PathUp, ms(1)).drops[Cause::QueueFull as usize], 1);
    }

    #[test]
    fn an_announced_packet_is_an_event_when_it_leaves_the_queue() {
        let mut link = link(0.0, LossAt::AfterQueue);
        link.offer_from_outside(Time::ZERO, Packet::full(1), true).unwrap();
        link.offer_from_outside(Time::ZERO, Packet::full(2), false).unwrap();
        assert_eq!(run(&mut link, Time::MAX), [(ms(1), None), (ms(11), Some(1)), (ms(12), Some(2))]);
    }

    #[test]
    fn a_transmitter_that_is_busy_at_a_reset_counts_from_there() {
        let mut busy = BusyTime::default();
        busy.start(Time::from_nanos(10));
        busy.reset(Time::from_nanos(40));
        assert_eq!(busy.until(Time::from_nanos(50)), Span::from_nanos(10));
        busy.stop(Time::from_nanos(60));
        assert_eq!(busy.until(Time::from_nanos(90)), Span::from_nanos(20));
        // The same for a timetable: busy from 0 to 2 ms, reset at 0.5 ms, looked at at 1 ms and at 9 ms.
        let mut link = link(0.0, LossAt::AfterQueue);
        link.offer(Time::ZERO, Packet::full(1)).unwrap();
        link.offer(Time::ZERO, Packet::full(2)).unwrap();
        link.reset_statistics(Time::ZERO + Span::from_micros(500));
        assert_eq!(link.busy_time(ms(1)), Span::from_micros(500));
        assert_eq!(link.busy_time(ms(9)), Span::from_micros(1500));
        let statistics = link.statistics(QueueId::PathUp, ms(9), Span::from_millis(10));
        assert_eq!((statistics.packets, statistics.data, statistics.utilization), (2, Bytes::new(3000), 0.15));
    }

    #[test]
    fn what_is_lost_after_the_queue_uses_the_link_and_is_counted_when_it_has_been_sent() {
        let mut link = link(1.0, LossAt::AfterQueue);
        link.offer(Time::ZERO, Packet::full(1)).unwrap();
        assert_eq!(link.next_event(), ms(1));
        let lost = |link: &Link<u32>, now| link.observe(QueueId::PathUp, now).drops[Cause::RandomLoss as usize];
        let just_before = Time::from_nanos(999_999);
        assert_eq!((link.len(just_before), link.packets_inside(), lost(&link, just_before)), (1, 1, 0));
        assert_eq!(link.step(ms(1)), Step::Lost);
        assert_eq!((link.len(ms(1)), link.packets_inside(), lost(&link, ms(1))), (0, 0, 1));
        assert_eq!(link.busy_time(ms(5)), Span::from_millis(1));
    }

    #[test]
    fn what_is_lost_before_the_queue_takes_no_room_and_no_time() {
        let mut link = link(1.0, LossAt::BeforeQueue);
        for number in 0..5 {
            assert_eq!(link.offer(Time::ZERO, Packet::full(number)), Ok(Taken::LostBeforeQueue));
        }
        assert_eq!((link.len(Time::ZERO), link.busy_time(ms(5)), link.next_event()), (0, Span::ZERO, Time::MAX));
        assert_eq!(link.observe(QueueId::PathUp, ms(5)).drops[Cause::RandomLoss as usize], 5);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// The timetable against a drop-tail queue served packet by packet, event by event.
        #[test]
        fn working_departures_out_on_arrival_changes_nothing(
            offers in prop::collection::vec((0..3_000_000_u64, 1..1500_u64), 0..60),
            loss in 0.0..0.5,
            limit in 1..6_usize,
            reset in 0..30_usize,
        ) {
            let config = DirectionConfig { queue: QueueConfig::fifo(limit), ..config(loss, LossAt::AfterQueue) };
            let mut fast = Link::new(&config, false, Streams::new(7), "link");
            let queue = AnyQueue::new(config.queue, Streams::new(7), "");
            let service = Service::Queue(Box::new(Transmitter::new(queue, Server::new(config.rate))));
            let mut plain = Link { service, ..Link::new(&config, false, Streams::new(7), "link") };
            let arrivals = |events: Vec<(Time, Option<u32>)>| -> Vec<_> {
                events.into_iter().filter(|(_, arrived)| arrived.is_some()).collect()
            };
            let mut now = Time::ZERO;
            let mut since = Time::ZERO;
            for (number, (gap, bytes)) in offers.into_iter().enumerate() {
                now += Span::from_nanos(gap);
                prop_assert_eq!(arrivals(run(&mut fast, now)), arrivals(run(&mut plain, now)));
                if number == reset {
                    fast.reset_statistics(now);
                    plain.reset_statistics(now);
                    since = now;
                }
                let packet = Packet { size: Bytes::new(bytes), ..Packet::full(number as u32) };
                let taken = fast.offer_from_outside(now, packet.clone(), number % 2 == 0);
                prop_assert_eq!(taken, plain.offer_from_outside(now, packet, number % 2 == 0));
                prop_assert_eq!((fast.len(now), fast.room(now)), (plain.len(now), plain.room(now)));
                prop_assert_eq!(fast.packets_inside(), plain.packets_inside());
                prop_assert_eq!(fast.observe(QueueId::PathUp, now), plain.observe(QueueId::PathUp, now));
                let statistics = |link: &Link<u32>| link.statistics(QueueId::PathUp, now, now - since);
                prop_assert_eq!(statistics(&fast), statistics(&plain));
            }
            prop_assert_eq!(arrivals(run(&mut fast, Time::MAX)), arrivals(run(&mut plain, Time::MAX)));
        }
    }
}
