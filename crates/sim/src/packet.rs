//! What packets of simulated hosts carry, and the numbers by which connections are found again.

use crate::agent::Datagram;
use crate::connection::Role;
use lasthop_network::{Packet, TcpAck};
use lasthop_policy::FlowId;
use lasthop_tcp::Segment;
use lasthop_units::Time;

/// The contents of packets. [`Packet::flow`] is the connection, and the [`Tag`] says which end has sent it.
#[derive(Clone, Debug)]
pub(crate) enum Payload {
    /// A segment of TCP.
    Segment(Segment),
    /// A beacon to all agents.
    Beacon(Datagram),
    /// A datagram of a flow.
    Datagram(Stamp),
    /// A datagram of QUIC.
    Quic(lasthop_quic::Datagram),
}

impl Payload {
    /// Its ACK, for queues with an ACK filter: 32 bits of its numbers, as on the wire.
    pub(crate) fn ack(&self) -> Option<TcpAck> {
        let Self::Segment(segment) = self else { return None };
        if !segment.has_ack || segment.syn {
            return None;
        }
        let mut sack = [(0, 0); 4];
        for (place, block) in sack.iter_mut().zip(segment.sack.iter(segment.ack)) {
            *place = (block.start as u32, block.end as u32);
        }
        Some(TcpAck {
            ack: segment.ack as u32,
            is_pure: segment.payload_bytes == 0 && !segment.fin && !segment.push && segment.link.is_none(),
            timestamps: segment.timestamps.map_or((0, 0), |timestamps| (timestamps.value, timestamps.echo)),
            sack,
            ecn: segment.echoes(),
        })
    }
}

/// What a datagram says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) number: u64,
    pub(crate) sent_at: Time,
    /// Whether it answers a ping; it repeats the rest.
    pub(crate) is_answer: bool,
}

/// A packet is moved from queue to queue: up to this size the compiler does it without a call.
const _: () = assert!(size_of::<Packet<Payload>>() <= 96);

/// What a packet's [`id`](lasthop_network::Packet::id) says: who sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tag {
    /// The number of the connection in its flow.
    pub(crate) incarnation: u32,
    /// The end of it.
    pub(crate) role: Role,
    /// The packet's number in a capture; 31 bits.
    pub(crate) number: u32,
}

impl Tag {
    /// The id of a packet whose departure concerns no connection.
    pub(crate) const NONE: u64 = u64::MAX;

    /// The id of a packet with this tag.
    pub(crate) const fn id(self) -> u64 {
        (self.number as u64) << 33 | (self.incarnation as u64) << 1 | self.role as u64
    }

    /// The same of the other end, which it goes to.
    pub(crate) const fn answering(self) -> Self {
        Self { role: self.role.other(), ..self }
    }

    /// Whether the same end of the same connection has sent both.
    pub(crate) fn is_of_same_end(self, other: Self) -> bool {
        (self.incarnation, self.role) == (other.incarnation, other.role)
    }

    /// The tag of a packet with this id, if it has one.
    pub(crate) const fn of(id: u64) -> Option<Self> {
        if id == Self::NONE {
            return None;
        }
        Some(Self { incarnation: (id >> 1) as u32, role: Role::BOTH[(id & 1) as usize], number: (id >> 33) as u32 })
    }
}

/// What policies call an incarnation of a connection.
pub(crate) const fn flow_id(connection: usize, incarnation: u32) -> FlowId {
    FlowId((connection as u64) << 32 | incarnation as u64)
}

/// The connection and the incarnation that policies call so.
pub(crate) const fn connection_of(id: FlowId) -> (usize, u32) {
    ((id.0 >> 32) as usize, id.0 as u32)
}
