//! The packets of one flow, with their times of arrival and their bytes.

use super::ack_filter::Filter;
use crate::packet::{Destination, Packet};
use lasthop_units::{Bytes, Time};
use std::collections::VecDeque;

/// An Ethernet header. Linux's queues count the frame as handed to the device, so 1514 bytes for the largest IP packet.
const HEADER_BYTES: u64 = 14;
/// The largest such frame.
pub(super) const MAX_FRAME_BYTES: u64 = 1514;

#[derive(Clone, Debug)]
pub(crate) struct PacketQueue<P> {
    packets: VecDeque<(Time, Packet<P>)>,
    bytes: u64,
}

impl<P> PacketQueue<P> {
    pub(crate) const fn new() -> Self {
        Self { packets: VecDeque::new(), bytes: 0 }
    }

    pub(crate) fn push(&mut self, now: Time, packet: Packet<P>) {
        self.bytes += frame_bytes(&packet);
        self.packets.push_back((now, packet));
    }

    /// The oldest packet and its time of arrival.
    pub(crate) fn pop(&mut self) -> Option<(Time, Packet<P>)> {
        let (arrival, packet) = self.packets.pop_front()?;
        self.bytes -= frame_bytes(&packet);
        Some((arrival, packet))
    }

    /// The oldest packet to this destination, or of all, if it is of a size that `fits`.
    pub(super) fn pop_to(
        &mut self,
        to: Option<Destination>,
        fits: &dyn Fn(Bytes) -> bool,
    ) -> Option<(Time, Packet<P>)> {
        let place = self.first_to(to)?;
        if fits(self.packets[place].1.size) { self.remove(place) } else { None }
    }

    /// Whether a packet to this destination waits, or any.
    pub(super) fn has_one_to(&self, to: Option<Destination>) -> bool {
        self.first_to(to).is_some()
    }

    fn first_to(&self, to: Option<Destination>) -> Option<usize> {
        self.packets.iter().position(|(_, packet)| to.is_none_or(|to| packet.to == to))
    }

    /// Takes out the ACK that this packet, which is to join, makes needless.
    pub(super) fn thin(&mut self, new: &Packet<P>, filter: &Filter<P>) -> Option<Packet<P>> {
        let place = filter.needless(self.packets.iter().map(|(_, packet)| packet), new)?;
        self.remove(place).map(|(_, packet)| packet)
    }

    fn remove(&mut self, place: usize) -> Option<(Time, Packet<P>)> {
        let (arrival, packet) = self.packets.remove(place)?;
        self.bytes -= frame_bytes(&packet);
        Some((arrival, packet))
    }

    /// Takes out all packets to this destination.
    pub(super) fn remove_to(&mut self, to: Destination) -> Vec<Packet<P>> {
        let (removed, kept): (VecDeque<_>, VecDeque<_>) =
            std::mem::take(&mut self.packets).into_iter().partition(|(_, packet)| packet.to == to);
        self.packets = kept;
        let removed: Vec<_> = removed.into_iter().map(|(_, packet)| packet).collect();
        self.bytes -= removed.iter().map(frame_bytes).sum::<u64>();
        removed
    }

    /// When the oldest packet came.
    pub(super) fn since(&self) -> Option<Time> {
        self.packets.front().map(|(arrival, _)| *arrival)
    }

    /// The oldest packet.
    pub(crate) fn first(&self) -> Option<&Packet<P>> {
        self.packets.front().map(|(_, packet)| packet)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }
}

/// The packet's size with its Ethernet header.
pub(crate) fn frame_bytes<P>(packet: &Packet<P>) -> u64 {
    packet.size.get() + HEADER_BYTES
}
