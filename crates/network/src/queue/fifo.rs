//! The drop-tail queue.
//!
//! Models a queue of whole packets in front of a transmitter: first in, first out, a limit in packets, what comes to a
//! full queue is lost. A packet counts until its transmitter is done with it (the last bit sent over a wire, the
//! acknowledgement received over the air), so those in service are part of the length and of the limit.
//!
//! A transmitter that sends several packets at once to one receiver takes them out of the middle, and leaves gaps.
//!
//! Leaves out: limits in bytes, packet lifetimes, priorities.

use super::Load;
use crate::packet::{Destination, Packet};
use crate::statistics::{Cause, LengthOverTime};
use lasthop_units::Time;
use std::collections::VecDeque;

#[derive(Clone, Debug)]
pub(crate) struct Fifo<P> {
    /// In order, with gaps where packets were taken; the first is none.
    packets: VecDeque<Option<Packet<P>>>,
    /// How many places were before the first.
    gone: u64,
    waiting: usize,
    /// Taken, and their transmitter is not done yet.
    in_service: usize,
    limit: usize,
    lengths: LengthOverTime,
    drops: [u64; Cause::ALL.len()],
}

impl<P> Fifo<P> {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            packets: VecDeque::new(),
            gone: 0,
            waiting: 0,
            in_service: 0,
            limit,
            lengths: LengthOverTime::new(),
            drops: [0; Cause::ALL.len()],
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting + self.in_service
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    pub(crate) fn room(&self) -> usize {
        self.limit.saturating_sub(self.len())
    }

    /// Queues the packet, or counts it as dropped and gives it back.
    pub(crate) fn push(&mut self, now: Time, packet: Packet<P>) -> Result<(), Packet<P>> {
        if self.room() == 0 {
            self.count_drops(Cause::QueueFull, 1);
            return Err(packet);
        }
        self.packets.push_back(Some(packet));
        self.waiting += 1;
        self.lengths.change(now, self.len());
        Ok(())
    }

    /// The packet to be sent next, and its place.
    pub(crate) fn head(&self) -> (u64, &Packet<P>) {
        (self.gone, self.packets.front().and_then(Option::as_ref).expect(NEVER_EMPTY))
    }

    /// The head, with which the transmitter is done at once.
    pub(crate) fn pop(&mut self, now: Time) -> Packet<P> {
        let packet = self.take_first();
        self.release(now, 1);
        packet
    }

    /// Takes what fits of the packets to this destination (`None`: to any), until one does not.
    pub(crate) fn take(&mut self, to: Option<Destination>, load: &mut impl Load<P>) {
        let mut place = 0;
        while let Some(slot) = self.packets.get_mut(place) {
            let Some(packet) = slot.as_ref().filter(|packet| to.is_none_or(|to| packet.to == to)) else {
                place += 1;
                continue;
            };
            if !load.fits(packet.size) {
                break;
            }
            let goes_on = if place == 0 {
                // What is behind it comes to the front.
                let gone = self.gone;
                load.take(gone, self.take_first())
            } else {
                let packet = slot.take().expect("a packet was there");
                self.waiting -= 1;
                self.in_service += 1;
                place += 1;
                load.take(self.gone + place as u64 - 1, packet)
            };
            if !goes_on {
                break;
            }
        }
    }

    /// The transmitter is done with so many of the packets that it took.
    pub(crate) fn release(&mut self, now: Time, packets: usize) {
        self.in_service = self.in_service.checked_sub(packets).expect("only what was taken is released");
        self.lengths.change(now, self.len());
    }

    fn take_first(&mut self) -> Packet<P> {
        let packet = self.packets.pop_front().flatten().expect(NEVER_EMPTY);
        self.gone += 1;
        while let Some(None) = self.packets.front() {
            self.packets.pop_front();
            self.gone += 1;
        }
        self.waiting -= 1;
        self.in_service += 1;
        packet
    }

    /// Counts drops at this place, wherever the packets went meanwhile.
    pub(crate) fn count_drops(&mut self, cause: Cause, count: u64) {
        self.drops[cause as usize] += count;
    }

    pub(crate) fn drops(&self, cause: Cause) -> u64 {
        self.drops[cause as usize]
    }

    pub(crate) fn lengths(&self) -> &LengthOverTime {
        &self.lengths
    }

    pub(crate) fn reset_statistics(&mut self, now: Time) {
        self.drops = [0; Cause::ALL.len()];
        self.lengths.reset(now);
    }
}

const NEVER_EMPTY: &str = "a transmitter asks only a queue that has packets for it";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Destination, NodeId};
    use lasthop_units::Bytes;

    fn packet(payload: u32) -> Packet<u32> {
        Packet { from: NodeId(0), to: Destination::Node(NodeId(1)), size: Bytes::new(1500), flow: 0, id: 0, payload }
    }

    #[test]
    fn what_comes_to_a_full_queue_is_lost_and_counted() {
        let mut queue = Fifo::new(2);
        assert!(queue.push(Time::ZERO, packet(1)).is_ok());
        assert!(queue.push(Time::ZERO, packet(2)).is_ok());
        assert_eq!(queue.push(Time::ZERO, packet(3)), Err(packet(3)));
        assert_eq!((queue.len(), queue.room(), queue.drops(Cause::QueueFull)), (2, 0, 1));
    }

    /// Takes packets up to so many bytes.
    struct UpTo(u64, Vec<(u64, u32)>);

    impl Load<u32> for UpTo {
        fn fits(&self, size: Bytes) -> bool {
            size.get() <= self.0
        }

        fn take(&mut self, age: u64, packet: Packet<u32>) -> bool {
            self.0 -= packet.size.get();
            self.1.push((age, packet.payload));
            true
        }
    }

    #[test]
    fn packets_in_service_count_until_they_are_released() {
        let mut queue = Fifo::new(2);
        queue.push(Time::ZERO, packet(1)).unwrap();
        queue.push(Time::ZERO, packet(2)).unwrap();
        queue.take(None, &mut UpTo(3000, Vec::new()));
        assert_eq!((queue.len(), queue.room(), queue.waiting()), (2, 0, 0));
        queue.release(Time::from_nanos(5), 2);
        assert_eq!((queue.len(), queue.room()), (0, 2));
    }

    #[test]
    fn packets_of_one_destination_are_taken_from_among_others() {
        let mut queue = Fifo::new(10);
        let to = |node| Destination::Node(NodeId(node));
        for (payload, node) in [(0, 1), (1, 2), (2, 1), (3, 2), (4, 1), (5, 2)] {
            queue.push(Time::ZERO, Packet { to: to(node), ..packet(payload) }).unwrap();
        }
        let mut load = UpTo(3000, Vec::new());
        queue.take(Some(to(2)), &mut load);
        assert_eq!(load.1, [(1, 1), (3, 3)], "the third one does not fit");
        assert_eq!((queue.head().0, queue.head().1.payload, queue.waiting()), (0, 0, 4));
        let mut load = UpTo(9000, Vec::new());
        queue.take(Some(to(1)), &mut load);
        assert_eq!(load.1, [(0, 0), (2, 2), (4, 4)]);
        assert_eq!((queue.head().0, queue.head().1.payload, queue.len()), (5, 5, 6));
    }
}
