//! The drop-tail queue.
//!
//! Models a queue of whole packets in front of a transmitter: first in, first out, a limit in packets, tail drop. A
//! packet counts until its transmission is complete: the last bit sent over a wire, or the acknowledgement received
//! over the air. So packets in service count in length and limit.
//!
//! A transmitter claims packets, possibly several at once, and to one receiver among others. Each keeps its place until
//! it has reached the receiver.
//!
//! Leaves out: limits in bytes, packet lifetimes, priorities.

use super::{Desk, Load, Queue, Setup};
use crate::packet::{Destination, NodeId, Packet};
use crate::statistics::Cause;
use lasthop_units::Time;
use std::collections::VecDeque;

#[derive(Clone, Debug)]
pub(crate) struct Fifo<P> {
    /// In order; the first slot holds a packet.
    slots: VecDeque<Slot<P>>,
    /// The place of the first slot, counted from the queue's beginning.
    first: u64,
    /// The place of the first unclaimed packet, or of the next arrival.
    head: u64,
    waiting: usize,
    /// Packets claimed whose transmission is not complete.
    in_service: usize,
    desk: Desk<P>,
}

#[derive(Clone, Debug)]
struct Slot<P> {
    /// `None` once the packet is taken.
    packet: Option<Packet<P>>,
    is_claimed: bool,
}

impl<P> Fifo<P> {
    pub(super) fn new(setup: Setup<'_>) -> Self {
        Self::with_limit(setup.limit)
    }

    pub(super) fn with_limit(limit: usize) -> Self {
        Self { slots: VecDeque::new(), first: 0, head: 0, waiting: 0, in_service: 0, desk: Desk::new(limit) }
    }

    /// Drops the ACK that this packet, which is to join, makes needless.
    #[inline(never)]
    fn thin(&mut self, now: Time, new: &Packet<P>) {
        let is_waiting = |slot: &&Slot<P>| !slot.is_claimed;
        let waiting = self.slots.iter().filter(is_waiting).filter_map(|slot| slot.packet.as_ref());
        let Some(place) = self.desk.filter.and_then(|filter| filter.needless(waiting, new)) else { return };
        let slot = self.slots.iter_mut().filter(|slot| !slot.is_claimed).nth(place).expect("a place among those");
        let packet = slot.packet.take().expect("it was just looked at");
        slot.is_claimed = true;
        self.waiting -= 1;
        self.on_claimed(0);
        self.leave_out_taken();
        self.desk.drop(now, Cause::NewerAck, &packet);
        self.desk.counted.change(now, self.len());
    }

    /// The first slot holds a packet.
    #[inline(always)]
    fn leave_out_taken(&mut self) {
        while self.slots.front().is_some_and(|slot| slot.packet.is_none()) {
            self.slots.pop_front();
            self.first += 1;
        }
    }

    #[inline]
    fn on_claimed(&mut self, packets: usize) {
        self.waiting -= packets;
        self.in_service += packets;
        while self.slots.get((self.head - self.first) as usize).is_some_and(|slot| slot.is_claimed) {
            self.head += 1;
        }
    }
}

impl<P> Queue<P> for Fifo<P> {
    fn desk(&self) -> &Desk<P> {
        &self.desk
    }

    fn desk_mut(&mut self) -> &mut Desk<P> {
        &mut self.desk
    }

    fn len(&self) -> usize {
        self.waiting + self.in_service
    }

    fn waiting(&self) -> usize {
        self.waiting
    }

    #[inline(always)]
    fn push(&mut self, now: Time, packet: Packet<P>) -> Result<(), Packet<P>> {
        if self.desk.filter.is_some() {
            self.thin(now, &packet);
        }
        if self.room() == 0 {
            return self.desk.refuse(now, packet);
        }
        self.slots.push_back(Slot { packet: Some(packet), is_claimed: false });
        self.waiting += 1;
        self.desk.counted.change(now, self.len());
        Ok(())
    }

    fn head(&mut self, _now: Time) -> (u64, &Packet<P>) {
        let slot = self.slots.get((self.head - self.first) as usize);
        (self.head, slot.and_then(|slot| slot.packet.as_ref()).expect(NOT_EMPTY))
    }

    fn pop(&mut self, now: Time) -> Packet<P> {
        let place = self.head;
        self.slots.get_mut((place - self.first) as usize).expect(NOT_EMPTY).is_claimed = true;
        self.on_claimed(1);
        let packet = self.take(place);
        self.release(now, NodeId(0), 1);
        packet
    }

    fn claim(&mut self, _now: Time, to: Option<Destination>, load: &mut impl Load<P>) {
        let mut claimed = 0;
        let mut index = (self.head - self.first) as usize;
        while let Some(slot) = self.slots.get_mut(index) {
            if let Some(packet) = &slot.packet
                && !slot.is_claimed
                && to.is_none_or(|to| packet.to == to)
            {
                if !load.fits(packet.size) {
                    break;
                }
                slot.is_claimed = true;
                claimed += 1;
                if !load.add(self.first + index as u64, packet) {
                    break;
                }
            }
            index += 1;
        }
        self.on_claimed(claimed);
    }

    fn claimed(&self, place: u64) -> Option<&Packet<P>> {
        self.slots.get(place.checked_sub(self.first)? as usize)?.packet.as_ref()
    }

    #[inline(always)]
    fn take(&mut self, place: u64) -> Packet<P> {
        let packet = self.slots[(place - self.first) as usize].packet.take().expect("a packet is taken once");
        self.leave_out_taken();
        packet
    }

    fn remove_to(&mut self, now: Time, to: Destination) -> Vec<Packet<P>> {
        let mut removed = Vec::new();
        for slot in self.slots.iter_mut().filter(|slot| !slot.is_claimed) {
            if let Some(packet) = slot.packet.take_if(|packet| packet.to == to) {
                slot.is_claimed = true;
                removed.push(packet);
            }
        }
        self.waiting -= removed.len();
        self.on_claimed(0);
        self.leave_out_taken();
        self.desk.counted.change(now, self.len());
        removed
    }

    fn release(&mut self, now: Time, _station: NodeId, packets: usize) {
        self.in_service = self.in_service.checked_sub(packets).expect("only what was claimed is released");
        self.desk.counted.change(now, self.len());
    }
}

const NOT_EMPTY: &str = "a transmitter asks only a queue that has a packet for it";

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_units::Bytes;

    #[test]
    fn what_comes_to_a_full_queue_is_lost_and_counted() {
        let mut queue = Fifo::with_limit(2);
        assert!(queue.push(Time::ZERO, Packet::full(1)).is_ok());
        assert!(queue.push(Time::ZERO, Packet::full(2)).is_ok());
        assert_eq!(queue.push(Time::ZERO, Packet::full(3)), Err(Packet::full(3)));
        assert_eq!((queue.len(), queue.room(), queue.desk.counted.drops(Cause::QueueFull)), (2, 0, 1));
    }

    /// Claims packets up to a number of bytes.
    struct UpTo(u64, Vec<u64>);

    impl Load<u32> for UpTo {
        fn fits(&self, size: Bytes) -> bool {
            size.get() <= self.0
        }

        fn add(&mut self, place: u64, packet: &Packet<u32>) -> bool {
            self.0 -= packet.size.get();
            self.1.push(place);
            true
        }
    }

    fn claim(queue: &mut Fifo<u32>, to: Option<Destination>, bytes: u64) -> Vec<u64> {
        let mut load = UpTo(bytes, Vec::new());
        queue.claim(Time::ZERO, to, &mut load);
        load.1
    }

    #[test]
    fn packets_in_service_count_until_they_are_released() {
        let mut queue = Fifo::with_limit(2);
        queue.push(Time::ZERO, Packet::full(1)).unwrap();
        queue.push(Time::ZERO, Packet::full(2)).unwrap();
        assert_eq!(claim(&mut queue, None, 3000), [0, 1]);
        assert_eq!((queue.len(), queue.room(), queue.waiting()), (2, 0, 0));
        assert_eq!([queue.take(1), queue.take(0)], [Packet::full(2), Packet::full(1)]);
        queue.release(Time::from_nanos(5), NodeId(0), 2);
        assert_eq!((queue.len(), queue.room()), (0, 2));
    }

    #[test]
    fn packets_of_one_destination_are_claimed_from_among_others() {
        let mut queue = Fifo::with_limit(10);
        let to = |node| Destination::Node(NodeId(node));
        for (payload, node) in [(0, 1), (1, 2), (2, 1), (3, 2), (4, 1), (5, 2)] {
            queue.push(Time::ZERO, Packet { to: to(node), ..Packet::full(payload) }).unwrap();
        }
        assert_eq!(claim(&mut queue, Some(to(2)), 3000), [1, 3], "the third one does not fit");
        assert_eq!((queue.head(Time::ZERO).0, queue.head(Time::ZERO).1.payload, queue.waiting()), (0, 0, 4));
        assert_eq!(queue.take(3).payload, 3);
        assert_eq!(claim(&mut queue, Some(to(1)), 9000), [0, 2, 4]);
        assert_eq!((queue.head(Time::ZERO).0, queue.head(Time::ZERO).1.payload, queue.len()), (5, 5, 6));
        assert_eq!([2, 0, 4, 1].map(|place| queue.take(place).payload), [2, 0, 4, 1]);
        queue.release(Time::ZERO, NodeId(0), 5);
        assert_eq!((queue.pop(Time::ZERO).payload, queue.len()), (5, 0));
    }
}
