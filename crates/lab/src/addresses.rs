//! The addresses of hosts and servers, their nodes in the network model, and the ports of flows.

use lasthop_network::{Destination, NodeId};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub(crate) use lasthop_scenario::FIRST_CLIENT_PORT;

/// How many addresses the server of a guest has: pages come from several.
pub(crate) const GUEST_ADDRESSES: u16 = 8;

/// The addresses of all hosts and servers, together the *ends*: hosts first, then servers.
///
/// Each host is a separate node of the model. Several servers may share a node; their addresses distinguish them.
/// Hosts have IPv6 addresses, too, where a guest runs, and so has the guest's server.
#[derive(Clone, Debug)]
pub(crate) struct AddressPlan {
    hosts: u16,
    /// The node of each server, by its index.
    servers: Vec<NodeId>,
    /// The index of the guest's server.
    guest_server: Option<u16>,
    /// Whether that server is the way to all other addresses.
    internet: bool,
}

impl AddressPlan {
    pub(crate) const HOST_PREFIX: u8 = 16;
    /// Where the access point of simulated radios is a machine of its own.
    pub(crate) const ACCESS_POINT: Ipv4Addr = Ipv4Addr::new(10, 77, 255, 254);
    pub(crate) const HOST_PREFIX6: u8 = 112;
    const HOST_NET: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 0);
    const BROADCAST: Ipv4Addr = Ipv4Addr::new(10, 77, 255, 255);
    pub(crate) const SERVER_NET: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 0);
    const GUEST_NET: Ipv4Addr = Ipv4Addr::new(10, 79, 0, 0);
    const HOST_NET6: Ipv6Addr = Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 0);
    const GUEST_NET6: Ipv6Addr = Ipv6Addr::new(0xfd79, 0, 0, 0, 0, 0, 0, 0);

    pub(crate) fn new(hosts: u16, servers: Vec<NodeId>) -> Self {
        Self { hosts, servers, guest_server: None, internet: false }
    }

    /// The same with the server of a guest. With `internet` it is the way to all other addresses of IPv4.
    pub(crate) fn with_guest(self, server: u16, internet: bool) -> Self {
        Self { guest_server: Some(server), internet, ..self }
    }

    pub(crate) fn host(host: u16) -> Ipv4Addr {
        nth(Self::HOST_NET, host)
    }

    pub(crate) fn server(server: u16) -> Ipv4Addr {
        nth(Self::SERVER_NET, server)
    }

    /// The host whose address a packet of IPv4 is from.
    pub(crate) fn host_from(&self, packet: &[u8]) -> Option<u16> {
        let from = <[u8; 4]>::try_from(packet.get(12..16)?).ok()?;
        let host = number(Self::HOST_NET, from.into()).filter(|&host| host < self.hosts);
        host.filter(|_| packet[0] >> 4 == 4)
    }

    /// Whether a packet of IPv4 with a whole header is from a server of the scenario, or to one.
    pub(crate) fn has_server(packet: &[u8]) -> bool {
        let net = &Self::SERVER_NET.octets()[..2];
        packet[12..14] == *net || packet[16..18] == *net
    }

    /// An IPv6 address of a host.
    pub(crate) fn host6(host: u16) -> Ipv6Addr {
        nth6(Self::HOST_NET6, host)
    }

    /// The addresses of a guest's server, below [`GUEST_ADDRESSES`].
    pub(crate) fn guest_server(number: u16) -> (Ipv4Addr, Ipv6Addr) {
        (nth(Self::GUEST_NET, number), nth6(Self::GUEST_NET6, number))
    }

    /// The node of an end.
    pub(crate) fn node(&self, end: usize) -> NodeId {
        match end.checked_sub(usize::from(self.hosts)) {
            Some(server) => self.servers[server],
            None => NodeId(end as u16),
        }
    }

    /// The destination of a packet, from its header (RFC 791 §3.1, RFC 8200 §3); `None` if no end has the address.
    pub(crate) fn destination(&self, packet: &[u8]) -> Option<Destination> {
        let to = destination_address(packet)?;
        let to_all = match to {
            IpAddr::V4(to) => to == Self::BROADCAST || to.is_broadcast() || to.is_multicast(),
            IpAddr::V6(to) => to.is_multicast(),
        };
        if to_all {
            return Some(Destination::Broadcast);
        }
        let host = match to {
            IpAddr::V4(to) => number(Self::HOST_NET, to),
            IpAddr::V6(to) => number6(Self::HOST_NET6, to),
        };
        let host = host.filter(|&host| host < self.hosts).map(NodeId);
        let server = || self.server_of(to).map(|server| self.servers[usize::from(server)]);
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
        let server = destination_address(packet).and_then(|to| self.server_of(to));
        usize::from(self.hosts) + usize::from(server.expect("what reaches a server has its address"))
    }

    /// The index of the server that takes packets to this address, which is no host's.
    fn server_of(&self, to: IpAddr) -> Option<u16> {
        let is_of_guest = |number: Option<u16>| number.is_some_and(|number| number < GUEST_ADDRESSES);
        match to {
            IpAddr::V4(to) if to.octets()[..2] == Self::SERVER_NET.octets()[..2] => {
                number(Self::SERVER_NET, to).filter(|&number| usize::from(number) < self.servers.len())
            }
            IpAddr::V4(to) => {
                let outside = to.octets()[..2] != Self::HOST_NET.octets()[..2];
                self.guest_server.filter(|_| is_of_guest(number(Self::GUEST_NET, to)) || self.internet && outside)
            }
            IpAddr::V6(to) => self.guest_server.filter(|_| is_of_guest(number6(Self::GUEST_NET6, to))),
        }
    }
}

/// The port of a flow's client.
pub(crate) fn client_port(flow: usize) -> u16 {
    FIRST_CLIENT_PORT + u16::try_from(flow).expect("a scenario has at most 2000 flows")
}

/// The flow of a client port; `None` below the range of client ports.
pub(crate) fn flow_of_port(port: u16) -> Option<usize> {
    port.checked_sub(FIRST_CLIENT_PORT).map(usize::from)
}

fn destination_address(packet: &[u8]) -> Option<IpAddr> {
    match packet.first()? >> 4 {
        4 if packet.len() >= 20 => Some(Ipv4Addr::new(packet[16], packet[17], packet[18], packet[19]).into()),
        6 => <[u8; 16]>::try_from(packet.get(24..40)?).ok().map(IpAddr::from),
        _ => None,
    }
}

fn nth(net: Ipv4Addr, number: u16) -> Ipv4Addr {
    Ipv4Addr::from_bits(net.to_bits() + u32::from(number) + 1)
}

fn nth6(net: Ipv6Addr, number: u16) -> Ipv6Addr {
    Ipv6Addr::from_bits(net.to_bits() + u128::from(number) + 1)
}

fn number(net: Ipv4Addr, address: Ipv4Addr) -> Option<u16> {
    u16::try_from(address.to_bits().checked_sub(net.to_bits() + 1)?).ok()
}

fn number6(net: Ipv6Addr, address: Ipv6Addr) -> Option<u16> {
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
    fn a_packet_is_from_the_host_that_has_its_source() {
        let plan = AddressPlan::new(3, vec![NodeId(3)]);
        let from = |address: [u8; 4]| {
            let mut packet = header([10, 78, 0, 1]);
            packet[12..16].copy_from_slice(&address);
            plan.host_from(&packet)
        };
        assert_eq!((from([10, 77, 0, 1]), from([10, 77, 0, 3])), (Some(0), Some(2)));
        assert_eq!((from([10, 77, 0, 4]), from([10, 78, 0, 1]), from([10, 77, 255, 254])), (None, None, None));
        assert_eq!(plan.host_from(&[0x60; 40]), None);
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
    fn the_server_of_a_guest_has_addresses_of_both_kinds_and_may_be_the_way_to_the_rest() {
        let to6 = |address: &str| {
            let mut packet = vec![0; 40];
            packet[0] = 0x60;
            packet[24..].copy_from_slice(&address.parse::<Ipv6Addr>().expect("an address").octets());
            packet
        };
        let plan = AddressPlan::new(3, vec![NodeId(3), NodeId(3)]);
        assert_eq!(plan.destination(&to6("fd79::1")), None);
        let (alone, open) = (plan.clone().with_guest(1, false), plan.with_guest(1, true));
        assert_eq!(alone.destination(&to6("fd77::2")), Some(Destination::Node(NodeId(1))));
        assert_eq!(alone.destination(&to6("fd77::4")), None);
        assert_eq!(alone.destination(&to6("ff02::1")), Some(Destination::Broadcast));
        for packet in [to6("fd79::8"), header([10, 79, 0, 1]), header([10, 79, 0, 8])] {
            assert_eq!(alone.destination(&packet), Some(Destination::Node(NodeId(3))));
            assert_eq!(alone.end(NodeId(3), &packet), 4);
        }
        for nobody in [to6("fd79::9"), header([10, 79, 0, 9]), header([192, 0, 2, 9])] {
            assert_eq!(alone.destination(&nobody), None);
        }
        assert_eq!(open.end(NodeId(3), &header([192, 0, 2, 9])), 4);
        // The laboratory's own nets have no address that is not an end's.
        for nobody in [header([10, 77, 0, 4]), header([10, 78, 0, 3])] {
            assert_eq!(open.destination(&nobody), None);
        }
    }

    #[test]
    fn a_port_names_its_flow() {
        assert_eq!(flow_of_port(client_port(7)), Some(7));
        assert_eq!(flow_of_port(443), None);
    }
}
