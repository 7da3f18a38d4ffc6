//! The addresses of hosts and servers, their nodes in the network model, and the ports of flows.

use lasthop_network::{Destination, NodeId};
use std::net::Ipv4Addr;

/// A flow's client is bound to this port plus the flow's index. From the port the server recognises the flow.
pub(crate) const FIRST_CLIENT_PORT: u16 = 10_000;

/// The addresses of all hosts and servers, together the *ends*: hosts first, then servers.
///
/// Each host is a separate node of the model. Several servers may share a node; their addresses distinguish them.
#[derive(Clone, Debug)]
pub(crate) struct AddressPlan {
    hosts: u16,
    /// The node of each server, by its index.
    servers: Vec<NodeId>,
}

impl AddressPlan {
    pub(crate) const HOST_PREFIX: u8 = 16;
    const HOST_NET: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 0);
    const BROADCAST: Ipv4Addr = Ipv4Addr::new(10, 77, 255, 255);
    const SERVER_NET: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 0);

    pub(crate) fn new(hosts: u16, servers: Vec<NodeId>) -> Self {
        Self { hosts, servers }
    }

    pub(crate) fn host(host: u16) -> Ipv4Addr {
        nth(Self::HOST_NET, host)
    }

    pub(crate) fn server(server: u16) -> Ipv4Addr {
        nth(Self::SERVER_NET, server)
    }

    /// The node of an end.
    pub(crate) fn node(&self, end: usize) -> NodeId {
        match end.checked_sub(usize::from(self.hosts)) {
            Some(server) => self.servers[server],
            None => NodeId(end as u16),
        }
    }

    /// The destination of a packet, from its IPv4 header (RFC 791 §3.1); `None` if no end has the address.
    pub(crate) fn destination(&self, packet: &[u8]) -> Option<Destination> {
        let to = destination_address(packet)?;
        if to == Self::BROADCAST || to.is_broadcast() || to.is_multicast() {
            return Some(Destination::Broadcast);
        }
        let host = number(Self::HOST_NET, to).filter(|&host| host < self.hosts).map(NodeId);
        let server = || self.servers.get(usize::from(number(Self::SERVER_NET, to)?)).copied();
        host.or_else(server).map(Destination::Node)
    }

    /// The end that receives a packet delivered to `node`.
    ///
    /// # Panics
    /// If the packet is for a server and none has its address. [`AddressPlan::destination`] excludes such packets.
    pub(crate) fn end(&self, node: NodeId, packet: &[u8]) -> usize {
        if node.0 < self.hosts {
            return node.index();
        }
        let server = destination_address(packet).and_then(|to| number(Self::SERVER_NET, to));
        usize::from(self.hosts) + usize::from(server.expect("what reaches a server has its address"))
    }
}

/// The port of a flow's client.
pub(crate) fn client_port(flow: u16) -> u16 {
    FIRST_CLIENT_PORT + flow
}

/// The flow of a client port; `None` below the range of client ports.
pub(crate) fn flow_of_port(port: u16) -> Option<usize> {
    port.checked_sub(FIRST_CLIENT_PORT).map(usize::from)
}

fn destination_address(packet: &[u8]) -> Option<Ipv4Addr> {
    let is_ipv4 = packet.len() >= 20 && packet[0] >> 4 == 4;
    is_ipv4.then(|| Ipv4Addr::new(packet[16], packet[17], packet[18], packet[19]))
}

fn nth(net: Ipv4Addr, number: u16) -> Ipv4Addr {
    Ipv4Addr::from_bits(net.to_bits() + u32::from(number) + 1)
}

fn number(net: Ipv4Addr, address: Ipv4Addr) -> Option<u16> {
    u16::try_from(address.to_bits().checked_sub(net.to_bits() + 1)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first 20 bytes of an IPv4 packet to this address.
    fn header(to: [u8; 4]) -> Vec<u8> {
        let mut header = vec![0; 20];
        header[0] = 0x45;
        header[16..20].copy_from_slice(&to);
        header
    }

    #[test]
    fn packets_go_to_the_node_that_has_the_address() {
        let plan = AddressPlan::new(300, vec![NodeId(300)]);
        let to = |address: [u8; 4]| plan.destination(&header(address));
        assert_eq!(AddressPlan::host(0), Ipv4Addr::new(10, 77, 0, 1));
        assert_eq!(AddressPlan::host(255), Ipv4Addr::new(10, 77, 1, 0));
        assert_eq!(to([10, 77, 0, 1]), Some(Destination::Node(NodeId(0))));
        assert_eq!(to([10, 77, 1, 44]), Some(Destination::Node(NodeId(299))));
        assert_eq!(to([10, 78, 0, 1]), Some(Destination::Node(NodeId(300))));
        assert_eq!(to([10, 77, 255, 255]), Some(Destination::Broadcast));
        assert_eq!(to([224, 0, 0, 22]), Some(Destination::Broadcast));
    }

    #[test]
    fn packets_for_nobody_are_not_carried() {
        let plan = AddressPlan::new(3, vec![NodeId(3)]);
        for address in [[10, 77, 0, 0], [10, 77, 0, 4], [8, 8, 8, 8], [10, 78, 0, 0], [10, 78, 0, 2]] {
            assert_eq!(plan.destination(&header(address)), None, "{address:?}");
        }
        assert_eq!(plan.destination(&[0x60; 40]), None); // IPv6
        assert_eq!(plan.destination(&[0x45; 19]), None);
    }

    #[test]
    fn servers_on_one_node_are_told_apart_by_their_addresses() {
        // Two hosts; the first and the third server are on node 7.
        let plan = AddressPlan::new(2, vec![NodeId(7), NodeId(4), NodeId(7)]);
        assert_eq!((0..5).map(|end| plan.node(end).0).collect::<Vec<_>>(), [0, 1, 7, 4, 7]);
        for (server, address) in (0..3).map(|server| (server, AddressPlan::server(server))) {
            let packet = header(address.octets());
            let end = 2 + usize::from(server);
            assert_eq!(plan.destination(&packet), Some(Destination::Node(plan.node(end))));
            assert_eq!(plan.end(plan.node(end), &packet), end);
        }
        // A packet at a host's node goes to that host, even a broadcast.
        assert_eq!(plan.end(NodeId(1), &header([10, 77, 255, 255])), 1);
    }

    #[test]
    fn a_port_names_its_flow() {
        assert_eq!(flow_of_port(client_port(7)), Some(7));
        assert_eq!(flow_of_port(443), None);
    }
}
