//! The drop-tail queue.
//!
//! Models a queue of whole packets in front of a transmitter: first in, first out, a limit in packets, what comes to a
//! full queue is lost. A packet counts until its transmitter is done with it (the last bit sent over a wire, the
//! acknowledgement received over the air), so the one in service is part of the length and of the limit.
//!
//! Leaves out: limits in bytes, packet lifetimes, priorities.

use crate::packet::Packet;
use crate::statistics::{Cause, LengthOverTime};
use lasthop_units::Time;
use std::collections::VecDeque;

#[derive(Clone, Debug)]
pub(crate) struct Fifo<P> {
    packets: VecDeque<Packet<P>>,
    /// The head has been handed on and still counts: its transmitter is not done yet.
    head_taken: bool,
    limit: usize,
    lengths: LengthOverTime,
    drops: [u64; Cause::ALL.len()],
}

impl<P> Fifo<P> {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            packets: VecDeque::new(),
            head_taken: false,
            limit,
            lengths: LengthOverTime::new(),
            drops: [0; Cause::ALL.len()],
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.packets.len() + usize::from(self.head_taken)
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
        self.packets.push_back(packet);
        self.lengths.change(now, self.len());
        Ok(())
    }

    /// The packet to be sent next, or the one being sent.
    pub(crate) fn head(&self) -> &Packet<P> {
        debug_assert!(!self.head_taken, "the head is taken only once");
        self.packets.front().expect("a transmitter asks only a queue that is not empty")
    }

    /// The head, which counts until [`release`](Self::release).
    pub(crate) fn take_head(&mut self) -> Packet<P> {
        assert!(!self.head_taken, "the head is taken only once");
        self.head_taken = true;
        self.packets.pop_front().expect("a transmitter takes only from a queue that is not empty")
    }

    /// The transmitter is done with the head that it took.
    pub(crate) fn release(&mut self, now: Time) {
        assert!(self.head_taken, "only a head that was taken is released");
        self.head_taken = false;
        self.lengths.change(now, self.len());
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

    #[test]
    fn the_packet_in_service_counts_until_it_is_released() {
        let mut queue = Fifo::new(1);
        queue.push(Time::ZERO, packet(1)).unwrap();
        assert_eq!(queue.take_head(), packet(1));
        assert_eq!((queue.len(), queue.room()), (1, 0));
        queue.release(Time::from_nanos(5));
        assert_eq!((queue.len(), queue.room()), (0, 1));
    }
}
