//! Packets, with their senders and receivers.

use lasthop_units::{Bytes, Ecn, Time};

/// A node: hosts are 0..hosts, the server follows.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(pub u16);

impl NodeId {
    /// The node's place in arrays that have one entry per node.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A packet's destination.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Destination {
    /// One node.
    Node(NodeId),
    /// Every host behind the access point except the sender; never the server.
    Broadcast,
}

/// An IP packet. The model looks at its addresses, size, flow, DSCP and ECN field, never at its payload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet<P> {
    /// The sender.
    pub from: NodeId,
    /// The receiver.
    pub to: Destination,
    /// The IP packet's size with its IP header, 1..=65535 bytes.
    pub size: Bytes,
    /// Its flow, for queues that separate flows: any number common to the packets of a flow.
    pub flow: u32,
    /// Its code point of differentiated services, 0..=63: on 802.11n and later it says the access category.
    pub dscp: u8,
    /// Its ECN field, which queues mark.
    pub ecn: Ecn,
    /// The sender's identifier; the model ignores it. Its [`Departure`] repeats it.
    pub id: u64,
    /// The caller's data, carried along.
    pub payload: P,
}

/// A packet that has reached a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Delivery<P> {
    /// The logical time of arrival of the packet's last bit.
    pub at: Time,
    /// The node it has reached.
    pub to: NodeId,
    /// The packet as it was offered.
    pub packet: Packet<P>,
}

impl<P> Packet<P> {
    /// Its departure from the sender's transmit queue.
    pub(crate) const fn departure(&self) -> Departure {
        Departure { node: self.from, flow: self.flow, id: self.id, size: self.size, made_room: false }
    }

    /// From node 0 to node 1, 1500 bytes, without a mark.
    #[cfg(test)]
    pub(crate) const fn full(payload: P) -> Self {
        let to = Destination::Node(NodeId(1));
        Self { from: NodeId(0), to, size: Bytes::new(1500), flow: 0, dscp: 0, ecn: Ecn::NotEct, id: 0, payload }
    }
}

/// A packet has left its sender's own transmit queue.
///
/// Packets of one sender may overtake each other there: two links may begin at its node, or flows may have queues of
/// their own.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Departure {
    /// The sender.
    pub node: NodeId,
    /// [`Packet::flow`].
    pub flow: u32,
    /// [`Packet::id`].
    pub id: u64,
    /// [`Packet::size`].
    pub size: Bytes,
    /// Whether a full queue has dropped it to take in another.
    pub made_room: bool,
}

/// The network's output while it runs.
#[derive(Debug)]
pub(crate) struct Outcome<'a, P> {
    pub(crate) deliveries: &'a mut Vec<Delivery<P>>,
    /// Departures from transmit queues, for the senders that asked for them.
    pub(crate) departed: &'a mut Vec<Departure>,
}

impl<P> Outcome<'_, P> {
    pub(crate) fn is_empty(&self) -> bool {
        self.deliveries.is_empty() && self.departed.is_empty()
    }
}
