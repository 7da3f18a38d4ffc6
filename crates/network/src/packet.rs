//! Packets, who sends them and where they go.

use lasthop_units::{Bytes, Time};

/// A node: hosts are 0..hosts, the server follows.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(pub u16);

impl NodeId {
    /// The node's place in arrays that have one entry per node.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Where a packet goes.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Destination {
    /// One node.
    Node(NodeId),
    /// Every host behind the access point but the sender; never the server.
    Broadcast,
}

/// An IP packet. The model looks at its addresses, its size and its flow, never at its payload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet<P> {
    /// Who sends it.
    pub from: NodeId,
    /// Who is to get it.
    pub to: Destination,
    /// The IP packet's size with its IP header, 1..=65535 bytes.
    pub size: Bytes,
    /// Which flow it belongs to, for queues that keep flows apart; any number that the packets of a flow share.
    pub flow: u32,
    /// What its sender knows it by; the model does not look at it. Its [`Departure`] says it again.
    pub id: u64,
    /// Whatever the caller wants carried along.
    pub payload: P,
}

/// A packet that has reached a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Delivery<P> {
    /// The logical time of arrival: when the last bit of the packet was there.
    pub at: Time,
    /// The node it has reached.
    pub to: NodeId,
    /// The packet as it was offered.
    pub packet: Packet<P>,
}

impl<P> Packet<P> {
    /// That it has left its sender's transmit queue.
    pub(crate) const fn departure(&self) -> Departure {
        Departure { node: self.from, flow: self.flow, id: self.id, size: self.size }
    }
}

/// A packet has left its sender's own transmit queue.
///
/// Packets of one sender may overtake each other there: two links begin at its node, or flows have queues of their own.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Departure {
    /// Who sent it.
    pub node: NodeId,
    /// [`Packet::flow`].
    pub flow: u32,
    /// [`Packet::id`].
    pub id: u64,
    /// [`Packet::size`].
    pub size: Bytes,
}

/// What comes out of the network while it runs.
#[derive(Debug)]
pub(crate) struct Outcome<'a, P> {
    pub(crate) deliveries: &'a mut Vec<Delivery<P>>,
    /// What has left its sender's own transmit queue, of those who want to know.
    pub(crate) departed: &'a mut Vec<Departure>,
}
