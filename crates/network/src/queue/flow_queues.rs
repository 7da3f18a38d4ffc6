//! The queues of flows, served in turn, each under its own management: what FQ-CoDel, FQ-PIE and mac80211 have in common.
//!
//! ```text
//!    [in no list] -- packet --> [new] -- no credits, or empty --> [old] -- empty --> [in no list]
//!                                                                  |  ^
//!                                                                  +--+ no credits: a quantum, to the end
//! ```
//!
//! References: RFC 8290 §4.1 (enqueueing), §4.2 (dequeueing).

use super::Desk;
use super::ack_filter::Filter;
use super::codel;
use super::packet_queue::{PacketQueue, frame_bytes};
use crate::packet::{Destination, Packet};
use lasthop_units::{Bytes, Time};
use std::collections::VecDeque;
use std::fmt::Debug;

/// What manages one queue: CoDel, or PIE.
pub(crate) trait Management: Clone + Default + Debug {
    type Parameters: Copy + Debug;

    /// The next packet to send, after any drops before it, which the desk hears of, or marked. `None` only if the queue is empty.
    fn dequeue<P>(
        &mut self,
        now: Time,
        parameters: Self::Parameters,
        queue: &mut PacketQueue<P>,
        desk: &mut Desk<P>,
    ) -> Option<Packet<P>>;

    /// Packets were lost for want of room.
    fn on_overflow(&mut self, _packets: u32) {}
}

/// How many queues there are, and how they take turns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turns {
    pub(super) quantum: Bytes,
    pub(super) flows: u32,
    /// The most packets dropped at once at the limit.
    pub(super) drop_batch: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct FlowQueues<P, M: Management = codel::Control> {
    turns: Turns,
    parameters: M::Parameters,
    /// Mixed into the hash, so that collisions of flows vary with the seed.
    salt: u64,
    flows: Vec<Flow<P, M>>,
    new_flows: VecDeque<usize>,
    old_flows: VecDeque<usize>,
    /// Packets in all flows.
    waiting: usize,
}

#[derive(Clone, Debug)]
struct Flow<P, M> {
    queue: PacketQueue<P>,
    credits: i64,
    listed: bool,
    management: M,
}

impl<P, M: Management> FlowQueues<P, M> {
    pub(super) fn new(turns: Turns, parameters: M::Parameters, salt: u64) -> Self {
        let flow = |_| Flow { queue: PacketQueue::new(), credits: 0, listed: false, management: M::default() };
        Self {
            turns,
            parameters,
            salt,
            flows: (0..turns.flows).map(flow).collect(),
            new_flows: VecDeque::new(),
            old_flows: VecDeque::new(),
            waiting: 0,
        }
    }

    /// Packets in all flows.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// The management of the queue that the packet would join, and the bytes in that.
    pub(super) fn management_of(&mut self, packet: &Packet<P>) -> (&mut M, u64) {
        let index = self.hash(packet.flow);
        let flow = &mut self.flows[index];
        (&mut flow.management, flow.queue.bytes())
    }

    /// Takes out the ACK that this packet, which is to join, makes needless.
    pub(super) fn thin(&mut self, new: &Packet<P>, filter: &Filter<P>) -> Option<Packet<P>> {
        let index = self.hash(new.flow);
        let thinned = self.flows[index].queue.thin(new, filter)?;
        self.waiting -= 1;
        Some(thinned)
    }

    /// Queues the packet, and returns the index of its queue.
    pub(super) fn push(&mut self, now: Time, packet: Packet<P>) -> usize {
        let index = self.hash(packet.flow);
        let flow = &mut self.flows[index];
        flow.queue.push(now, packet);
        self.waiting += 1;
        if !flow.listed {
            flow.listed = true;
            flow.credits = credits(self.turns.quantum.get());
            self.new_flows.push_back(index);
        }
        index
    }

    /// Without a destination, the next packet of the queue whose turn it is; else of the first in order that has a packet to it in
    /// front.
    pub(super) fn next(
        &mut self,
        now: Time,
        to: Option<Destination>,
        fits: &dyn Fn(Bytes) -> bool,
        desk: &mut Desk<P>,
    ) -> Option<Packet<P>> {
        let Some(to) = to else { return self.dequeue(now, desk) };
        let has_one = |&index: &usize| self.first(index).is_some_and(|packet| packet.to == to);
        let index = (0..self.listed()).map(|place| self.at(place)).find(has_one)?;
        let is_small_enough = self.first(index).is_some_and(|packet| fits(packet.size));
        if is_small_enough { self.dequeue_from(index, now, desk) } else { None }
    }

    /// The next packet in turn, after drops; `None` if there is none.
    pub(super) fn dequeue(&mut self, now: Time, desk: &mut Desk<P>) -> Option<Packet<P>> {
        loop {
            let is_new = !self.new_flows.is_empty();
            let list = if is_new { &mut self.new_flows } else { &mut self.old_flows };
            let index = *list.front()?;
            let flow = &mut self.flows[index];
            if flow.credits <= 0 {
                flow.credits += credits(self.turns.quantum.get());
                list.pop_front();
                self.old_flows.push_back(index);
                continue;
            }
            if let Some(next) = self.dequeue_from(index, now, desk) {
                return Some(next);
            }
            let list = if is_new { &mut self.new_flows } else { &mut self.old_flows };
            list.pop_front();
            if is_new {
                self.old_flows.push_back(index);
            } else {
                self.flows[index].listed = false;
            }
        }
    }

    /// This queue's next packet after drops, paid with credits; `None` only if the queue is empty.
    pub(super) fn dequeue_from(&mut self, index: usize, now: Time, desk: &mut Desk<P>) -> Option<Packet<P>> {
        let flow = &mut self.flows[index];
        let before = flow.queue.len();
        let packet = flow.management.dequeue(now, self.parameters, &mut flow.queue, desk)?;
        self.waiting -= before - flow.queue.len();
        flow.credits -= credits(frame_bytes(&packet));
        Some(packet)
    }

    /// The number of queues in the lists.
    pub(super) fn listed(&self) -> usize {
        self.new_flows.len() + self.old_flows.len()
    }

    /// The queue at this place of the lists, the new ones first.
    pub(super) fn at(&self, place: usize) -> usize {
        match place.checked_sub(self.new_flows.len()) {
            None => self.new_flows[place],
            Some(place) => self.old_flows[place],
        }
    }

    /// The oldest packet of this queue.
    pub(super) fn first(&self, index: usize) -> Option<&Packet<P>> {
        self.flows[index].queue.first()
    }

    /// Takes out all packets to this destination. Queues stay in their lists.
    pub(super) fn remove_to(&mut self, to: Destination) -> Vec<Packet<P>> {
        let removed: Vec<_> = self.flows.iter_mut().flat_map(|flow| flow.queue.remove_to(to)).collect();
        self.waiting -= removed.len();
        removed
    }

    /// The queue with the most bytes, and these; ties go to the lower index. `None` if no queue is listed.
    pub(super) fn fattest(&self) -> Option<(u64, usize)> {
        let listed = self.new_flows.iter().chain(&self.old_flows).copied();
        let fattest = listed.max_by_key(|&index| (self.flows[index].queue.bytes(), std::cmp::Reverse(index)))?;
        Some((self.flows[fattest].queue.bytes(), fattest))
    }

    /// Drops half of the bytes of a queue from its head, at most `drop_batch` packets. Returns the packet that has
    /// just joined the queue `joined`, if it is among them; `drop` gets the others. The last packet of a queue is dropped only if
    /// it is alone there. So the queues are never all emptied.
    pub(super) fn drop_half(
        &mut self,
        index: usize,
        joined: usize,
        mut drop: impl FnMut(&Packet<P>),
    ) -> Option<Packet<P>> {
        let flow = &mut self.flows[index];
        let half = flow.queue.bytes() / 2;
        let mut dropped = 0;
        let mut refused = None;
        while dropped == 0 || (dropped < self.turns.drop_batch && flow.queue.bytes() > half && flow.queue.len() > 1) {
            let (_, packet) = flow.queue.pop().expect("the fattest flow has a packet");
            dropped += 1;
            if index == joined && flow.queue.is_empty() {
                refused = Some(packet);
            } else {
                drop(&packet);
            }
        }
        flow.management.on_overflow(dropped);
        self.waiting -= dropped as usize;
        refused
    }

    /// Panics unless the lists and the count of packets are right.
    #[cfg(test)]
    pub(super) fn check(&self) {
        let packets: usize = self.flows.iter().map(|flow| flow.queue.len()).sum();
        assert_eq!(packets, self.waiting);
        assert_eq!(self.flows.iter().filter(|flow| flow.listed).count(), self.listed());
        assert!(self.flows.iter().all(|flow| flow.listed || flow.queue.is_empty()));
    }

    /// The queue of a flow: the finalizer of SplitMix64 over flow and salt, scaled to the number of queues.
    pub(super) fn hash(&self, flow: u32) -> usize {
        let mut hash = self.salt ^ u64::from(flow);
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        hash ^= hash >> 31;
        (((hash >> 32) * u64::from(self.turns.flows)) >> 32) as usize
    }
}

fn credits(bytes: u64) -> i64 {
    i64::try_from(bytes).expect("a quantum and a packet are far below 2^63 bytes")
}
