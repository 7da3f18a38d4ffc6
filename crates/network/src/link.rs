//! A wired link: a queue, a transmitter of constant rate, random loss, a constant delay.
//!
//! Algorithm: a packet joins the drop-tail queue; the transmitter serves one packet at a time for size / rate; then the
//! packet is lost with the loss probability, independently of all others (a transmission error: after the queue, so lost
//! packets use the link too), or arrives after the delay. Packets never overtake each other.
//!
//! Leaves out: framing overhead (rates are rates of IP bytes, as a traffic shaper's), jitter, losses in bursts.

use crate::packet::Packet;
use crate::queue::Queue;
use crate::random::happens;
use crate::statistics::Cause;
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;
use units::{Probability, Rate, Span, Time};

#[derive(Clone, Debug)]
pub(crate) struct Link<P> {
    queue: Queue<P>,
    rate: Rate,
    delay: Span,
    loss: Probability,
    loss_stream: ChaCha8Rng,
    /// When the packet in service has been sent.
    sent_at: Option<Time>,
    underway: VecDeque<(Time, Packet<P>)>,
    busy: BusyTime,
}

impl<P> Link<P> {
    pub(crate) fn new(queue: Queue<P>, rate: Rate, delay: Span, loss: Probability, stream: ChaCha8Rng) -> Self {
        Self {
            queue,
            rate,
            delay,
            loss,
            loss_stream: stream,
            sent_at: None,
            underway: VecDeque::new(),
            busy: BusyTime::default(),
        }
    }

    pub(crate) fn offer(&mut self, now: Time, packet: Packet<P>) -> Result<(), Packet<P>> {
        self.queue.push(now, packet)?;
        if self.sent_at.is_none() {
            self.serve(now);
        }
        Ok(())
    }

    /// When something happens next; [`Time::MAX`] for never.
    pub(crate) fn next_event(&self) -> Time {
        let arrival = self.underway.front().map_or(Time::MAX, |(at, _)| *at);
        self.sent_at.unwrap_or(Time::MAX).min(arrival)
    }

    /// Lets the next event happen, which is due at `now`; gives the packet that has arrived, if that is what happened.
    pub(crate) fn step(&mut self, now: Time) -> Option<Packet<P>> {
        if self.underway.front().is_some_and(|(at, _)| *at == now) {
            return self.underway.pop_front().map(|(_, packet)| packet);
        }
        debug_assert_eq!(self.sent_at, Some(now), "a link steps when it has an event");
        self.sent_at = None;
        self.busy.stop(now);
        let packet = self.queue.pop(now);
        if happens(self.loss, &mut self.loss_stream) {
            self.queue.count_drops(Cause::RandomLoss, 1);
        } else {
            self.underway.push_back((now + self.delay, packet));
        }
        if !self.queue.is_empty() {
            self.serve(now);
        }
        None
    }

    pub(crate) fn queue(&self) -> &Queue<P> {
        &self.queue
    }

    /// Packets that have left the queue and not arrived.
    pub(crate) fn underway(&self) -> usize {
        self.underway.len()
    }

    pub(crate) fn busy_time(&self, now: Time) -> Span {
        self.busy.until(now)
    }

    pub(crate) fn reset_statistics(&mut self, now: Time) {
        self.queue.reset_statistics(now);
        self.busy.reset(now);
    }

    fn serve(&mut self, now: Time) {
        self.busy.start(now);
        self.sent_at = Some(now + self.rate.transmission_time(self.queue.head(now).size));
    }
}

/// How long a transmitter was busy.
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
    use crate::packet::{Destination, NodeId};
    use crate::queue::QueueConfig;
    use crate::random::Streams;
    use units::Bytes;

    fn link(loss: f64) -> Link<u32> {
        let streams = Streams::new(1);
        let queue = Queue::new(QueueConfig::fifo(2), streams, "queue");
        let stream = streams.stream("loss");
        Link::new(queue, Rate::from_mbps(12.0), Span::from_millis(10), Probability::new(loss).unwrap(), stream)
    }

    fn packet(payload: u32) -> Packet<u32> {
        Packet { from: NodeId(0), to: Destination::Node(NodeId(1)), size: Bytes::new(1500), flow: 0, payload }
    }

    #[test]
    fn a_packet_takes_its_serialisation_and_the_delay() {
        let mut link = link(0.0);
        link.offer(Time::ZERO, packet(1)).unwrap();
        link.offer(Time::ZERO, packet(2)).unwrap();
        let mut arrivals = Vec::new();
        while link.next_event() < Time::MAX {
            let now = link.next_event();
            arrivals.extend(link.step(now).map(|packet| (now.as_nanos(), packet.payload)));
        }
        // 1500 B at 12 Mb/s take 1 ms; the second packet waits for the first: 1 + 10 ms, 2 + 10 ms.
        assert_eq!(arrivals, [(11_000_000, 1), (12_000_000, 2)]);
        assert_eq!(link.busy_time(Time::from_nanos(12_000_000)), Span::from_millis(2));
    }

    #[test]
    fn a_transmitter_that_is_busy_at_a_reset_counts_from_there() {
        let mut busy = BusyTime::default();
        busy.start(Time::from_nanos(10));
        busy.reset(Time::from_nanos(40));
        assert_eq!(busy.until(Time::from_nanos(50)), Span::from_nanos(10));
        busy.stop(Time::from_nanos(60));
        assert_eq!(busy.until(Time::from_nanos(90)), Span::from_nanos(20));
    }

    #[test]
    fn a_lost_packet_uses_the_link_and_is_counted() {
        let mut link = link(1.0);
        link.offer(Time::ZERO, packet(1)).unwrap();
        assert_eq!(link.step(Time::from_nanos(1_000_000)), None);
        assert_eq!(link.next_event(), Time::MAX);
        assert_eq!(link.queue().drops(Cause::RandomLoss), 1);
    }
}
