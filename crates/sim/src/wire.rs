//! The packets of simulated hosts as bytes, for captures: IPv4 with TCP or UDP, as kernel hosts send them.
//!
//! Addresses are those of the laboratory: host N is 10.77.0.0 + N + 1, server N 10.78.0.0 + N + 1, with its node's number
//! behind the hosts. A flow's client has the port 10000 + its number. The server has 5001 for the flow's first
//! connection, and one more for each further one. Initial sequence numbers are 0. Payloads are zeros.

use crate::packet::{Payload, Tag};
use lasthop_network::{Destination, NodeId, Packet};
use lasthop_scenario::{FIRST_CLIENT_PORT, SERVER_PORT};
use lasthop_tcp::Segment;
use std::collections::BTreeMap;

/// Server ports below the client ports.
const SERVER_PORTS: u32 = 4000;
/// The agents' port (docs/guide/agent.md).
const BEACON_PORT: u16 = 29_470;
const UDP: u8 = 17;
const TCP: u8 = 6;
const NOP: u8 = 1;

/// Makes bytes of packets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wire {
    hosts: u16,
    /// The window scale of each end that has sent a SYN: by connection, incarnation, and whether it is a host.
    shifts: BTreeMap<(u32, u32, bool), Option<u8>>,
}

impl Wire {
    pub(crate) fn new(hosts: usize) -> Self {
        Self { hosts: hosts as u16, shifts: BTreeMap::new() }
    }

    /// The first bytes of a packet: all but a payload of zeros.
    pub(crate) fn bytes(&mut self, packet: &Packet<Payload>) -> Vec<u8> {
        let is_host = packet.from.0 < self.hosts;
        let incarnation = Tag::of(packet.id).map_or(1, |tag| tag.incarnation);
        let ports = ports(packet.flow, incarnation, is_host);
        let (protocol, rest) = match &packet.payload {
            Payload::Segment(segment) => (TCP, self.tcp(segment, ports, (packet.flow, incarnation, is_host))),
            Payload::Beacon(datagram) => (UDP, udp((BEACON_PORT, BEACON_PORT), datagram, datagram.len() as u64)),
            Payload::Datagram(_) => (UDP, udp(ports, &[], packet.size.get().saturating_sub(28))),
            // Zeros as well: nothing in it is encrypted, and a reader of QUIC would find it broken.
            Payload::Quic(datagram) => (UDP, udp(ports, &[], datagram.len() as u64)),
        };
        let size = packet.size.get() as u16;
        let mut out = vec![0x45, packet.dscp << 2 | packet.ecn.bits()];
        out.extend(size.to_be_bytes());
        // The number of the packet, if it has one; not fragmented; time to live 64.
        out.extend(Tag::of(packet.id).map_or(u16::MAX, |tag| tag.number as u16).to_be_bytes());
        out.extend([0x40, 0, 64, protocol, 0, 0]);
        out.extend(self.address(Destination::Node(packet.from)));
        out.extend(self.address(packet.to));
        let header = checksum(sum(&out));
        out[10..12].copy_from_slice(&header.to_be_bytes());
        let pseudo = sum(&out[12..20]) + u32::from(protocol) + u32::from(size - 20);
        let mut checksum = checksum(pseudo + sum(&rest));
        if protocol == UDP && checksum == 0 {
            checksum = 0xffff;
        }
        let place = out.len() + if protocol == TCP { 16 } else { 6 };
        out.extend(rest);
        out[place..place + 2].copy_from_slice(&checksum.to_be_bytes());
        out
    }

    fn address(&self, to: Destination) -> [u8; 4] {
        let nth = |net: u8, number: u16| {
            let [high, low] = (number + 1).to_be_bytes();
            [10, net, high, low]
        };
        match to {
            Destination::Broadcast => [10, 77, 255, 255],
            Destination::Node(NodeId(node)) if node < self.hosts => nth(77, node),
            Destination::Node(NodeId(node)) => nth(78, node - self.hosts),
        }
    }

    fn tcp(&mut self, segment: &Segment, (from, to): (u16, u16), end: (u32, u32, bool)) -> Vec<u8> {
        if segment.syn {
            self.shifts.insert(end, segment.offer.window_shift);
        }
        let of = |is_host| self.shifts.get(&(end.0, end.1, is_host)).copied().flatten();
        let shift = match (of(end.2), of(!end.2)) {
            (Some(own), Some(_)) if !segment.syn => own,
            _ => 0,
        };
        let window = (segment.window_bytes >> shift).min(0xffff) as u16;
        let mut out = Vec::with_capacity(60);
        out.extend(from.to_be_bytes());
        out.extend(to.to_be_bytes());
        out.extend((segment.seq as u32).to_be_bytes());
        out.extend((if segment.has_ack { segment.ack as u32 } else { 0 }).to_be_bytes());
        let flag = |is_set, bit: u8| if is_set { 1 << bit } else { 0 };
        let flags = flag(segment.fin, 0)
            | flag(segment.syn, 1)
            | flag(segment.push, 3)
            | flag(segment.has_ack, 4)
            | segment.ace << 6;
        out.extend([0, flags]);
        out.extend(window.to_be_bytes());
        out.extend([0; 4]);
        options(segment, &mut out);
        out[12] = ((out.len() / 4) << 4) as u8 | segment.ace >> 2;
        out
    }
}

/// The ports of the sender and the receiver.
fn ports(connection: u32, incarnation: u32, is_host: bool) -> (u16, u16) {
    let client = FIRST_CLIENT_PORT.wrapping_add(connection as u16);
    let server = SERVER_PORT + (incarnation.saturating_sub(1) % SERVER_PORTS) as u16;
    if is_host { (client, server) } else { (server, client) }
}

/// The options, with the padding that [`Segment::ip_bytes`] counts.
fn options(segment: &Segment, out: &mut Vec<u8>) {
    let sack_permitted = segment.syn && segment.offer.sack_permitted;
    if segment.syn {
        out.extend([2, 4]);
        let mss = segment.offer.mss_bytes;
        out.extend(mss.to_be_bytes());
    }
    match segment.timestamps {
        Some(timestamps) => {
            out.extend(if sack_permitted { [4, 2] } else { [NOP, NOP] });
            out.extend([8, 10]);
            out.extend(timestamps.value.to_be_bytes());
            out.extend(timestamps.echo.to_be_bytes());
        }
        None if sack_permitted => out.extend([NOP, NOP, 4, 2]),
        None => {}
    }
    if let Some(shift) = segment.offer.window_shift.filter(|_| segment.syn) {
        out.extend([NOP, 3, 3, shift]);
    }
    if !segment.sack.is_empty() {
        out.extend([NOP, NOP, 5, 2 + 8 * segment.sack.len() as u8]);
        for block in segment.sack.iter(segment.ack) {
            out.extend((block.start as u32).to_be_bytes());
            out.extend((block.end as u32).to_be_bytes());
        }
    }
    if let Some(link) = &segment.link {
        out.extend(link);
        out.extend([NOP, NOP]);
    }
}

fn udp((from, to): (u16, u16), payload: &[u8], length: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(8 + payload.len());
    for field in [from, to, (8 + length) as u16, 0] {
        out.extend(field.to_be_bytes());
    }
    out.extend(payload);
    out
}

/// The sum of 16-bit words. Zeros that follow change nothing.
fn sum(bytes: &[u8]) -> u32 {
    bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |&low| u32::from(low))).sum()
}

fn checksum(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
