//! The packets of one flow, with their times of arrival and their bytes.

use crate::packet::Packet;
use lasthop_units::Time;
use std::collections::VecDeque;

/// An Ethernet header. Linux's queues count the frame as handed to the device, so 1514 bytes for the largest IP packet.
const HEADER_BYTES: u64 = 14;

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
