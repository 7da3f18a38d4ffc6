//! The managed interface: its choice, and how to reach its network.

use crate::config::Config;
use nix::ifaddrs::getifaddrs;
use nix::net::if_::{InterfaceFlags, if_nametoindex};
use nix::sys::socket::SockaddrStorage;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The present state of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its index, which changes when it is removed and comes back.
    pub index: u32,
    /// The indexes of the tunnels through it that are there.
    pub tunnels: Vec<u32>,
    /// Up and running.
    pub up: bool,
    /// The IPv4 broadcast address; `None`: it has no IPv4 address.
    pub broadcast: Option<Ipv4Addr>,
    /// Whether it has an IPv6 link-local address, the source address of its multicasts.
    pub has_ipv6_link_local: bool,
    /// Source addresses of this host's processes. Of the link-local ones, only this interface's.
    pub own_addresses: Vec<IpAddr>,
    /// The next hops of its default routes, IPv4's and IPv6's; `None`: no default route, or no next hop.
    pub gateways: [Option<IpAddr>; 2],
}

/// A default route of a routing table.
#[derive(Clone, Debug, PartialEq, Eq)]
struct DefaultRoute {
    metric: u32,
    interface: String,
    /// `None`: every destination is on the link.
    gateway: Option<IpAddr>,
}

impl Interface {
    /// The one that a configuration means; `None`: absent now.
    pub fn of(config: &Config) -> Option<Self> {
        Self::find(config.interface.as_deref(), &config.tunnels)
    }

    /// The interface with this name, or else the one of the default route that is none of the tunnels; `None`: absent now.
    pub fn find(name: Option<&str>, tunnels: &[String]) -> Option<Self> {
        let is_outer = |route: &DefaultRoute| !tunnels.contains(&route.interface);
        let outer = || default_routes().map(|routes| routes.into_iter().filter(is_outer).collect());
        let name = name.map_or_else(|| Some(lowest_metric(outer())?.interface), |name| Some(name.to_owned()))?;
        let mut interface = Self::with_name(name)?;
        interface.tunnels = tunnels.iter().filter_map(|name| if_nametoindex(name.as_str()).ok()).collect();
        interface.tunnels.retain(|tunnel| *tunnel != interface.index);
        Some(interface)
    }

    fn with_name(name: String) -> Option<Self> {
        let index = if_nametoindex(name.as_str()).ok()?;
        let mut interface = Self {
            name,
            index,
            tunnels: Vec::new(),
            up: false,
            broadcast: None,
            has_ipv6_link_local: false,
            own_addresses: Vec::new(),
            gateways: [None; 2],
        };
        interface.gateways = default_routes().map(|routes| {
            let own = routes.into_iter().filter(|route| route.interface == interface.name);
            lowest_metric([own.collect()]).and_then(|route| route.gateway)
        });
        let Ok(addresses) = getifaddrs() else { return Some(interface) };
        for entry in addresses {
            let is_this = entry.interface_name == interface.name;
            let own = entry.address.as_ref().and_then(|address| {
                let ipv4 = address.as_sockaddr_in().map(|address| IpAddr::from(address.ip()));
                let ipv6 = || address.as_sockaddr_in6().map(|address| address.ip());
                let ipv6 = || ipv6().filter(|ip| is_this || !ip.is_unicast_link_local()).map(IpAddr::from);
                ipv4.or_else(ipv6)
            });
            interface.own_addresses.extend(own);
            if !is_this {
                continue;
            }
            interface.up |= entry.flags.contains(InterfaceFlags::IFF_UP | InterfaceFlags::IFF_RUNNING);
            let ipv4 = |address: Option<SockaddrStorage>| Some(address?.as_sockaddr_in()?.ip());
            if let (None, Some(address)) = (interface.broadcast, ipv4(entry.address)) {
                interface.broadcast = Some(broadcast(address, ipv4(entry.netmask), ipv4(entry.broadcast)));
            }
            let ipv6 = entry.address.and_then(|address| Some(address.as_sockaddr_in6()?.ip()));
            interface.has_ipv6_link_local |= ipv6.is_some_and(|address: Ipv6Addr| address.is_unicast_link_local());
        }
        Some(interface)
    }
}

/// The broadcast address: the configured one, else the network's, else the limited broadcast. A point-to-point
/// interface, such as a TUN device, has none configured.
fn broadcast(address: Ipv4Addr, netmask: Option<Ipv4Addr>, set: Option<Ipv4Addr>) -> Ipv4Addr {
    let netmask = netmask.map_or(u32::MAX, u32::from);
    match set {
        Some(set) if set != address => set,
        _ if netmask.leading_ones() < 31 => (u32::from(address) | !netmask).into(),
        _ => Ipv4Addr::BROADCAST,
    }
}

/// The default routes of IPv4 and of IPv6.
fn default_routes() -> [Vec<DefaultRoute>; 2] {
    // The calling thread's: /proc/net would show the network namespace of the process's first thread.
    let read = |file: &str| fs::read_to_string(format!("/proc/thread-self/net/{file}")).unwrap_or_default();
    [in_ipv4_table(&read("route")), in_ipv6_table(&read("ipv6_route"))]
}

/// IPv4's before IPv6's. Among equal metrics the choice is stable.
fn lowest_metric(routes: impl IntoIterator<Item = Vec<DefaultRoute>>) -> Option<DefaultRoute> {
    let lowest = |routes: Vec<DefaultRoute>| routes.into_iter().min_by_key(|route| (route.metric, route.gateway));
    routes.into_iter().find_map(lowest)
}

/// Iface Destination Gateway Flags RefCnt Use Metric Mask ...: addresses in hex, in the byte order of the machine.
fn in_ipv4_table(table: &str) -> Vec<DefaultRoute> {
    let default = |line: &str| {
        let columns: Vec<_> = line.split_whitespace().collect();
        let [name, "00000000", gateway, flags, _, _, metric, "00000000", ..] = columns[..] else { return None };
        let gateway = Ipv4Addr::from(u32::from_str_radix(gateway, 16).ok()?.to_ne_bytes());
        let gateway = (!gateway.is_unspecified()).then_some(gateway.into());
        Some(DefaultRoute { metric: metric.parse().ok()?, interface: usable(flags, name)?, gateway })
    };
    table.lines().filter_map(default).collect()
}

/// destination prefix source prefix next-hop metric refcount use flags name, all numbers in hex.
fn in_ipv6_table(table: &str) -> Vec<DefaultRoute> {
    let default = |line: &str| {
        let columns: Vec<_> = line.split_whitespace().collect();
        let [destination, "00", _, _, gateway, metric, _, _, flags, name] = columns[..] else { return None };
        if destination.bytes().any(|digit| digit != b'0') {
            return None;
        }
        let gateway = Ipv6Addr::from(u128::from_str_radix(gateway, 16).ok()?);
        let gateway = (!gateway.is_unspecified()).then_some(gateway.into());
        Some(DefaultRoute { metric: u32::from_str_radix(metric, 16).ok()?, interface: usable(flags, name)?, gateway })
    };
    table.lines().filter_map(default).collect()
}

/// The interface's name. The route must be up, must not reject, and must not lead to the host itself.
fn usable(flags: &str, name: &str) -> Option<String> {
    const RTF_UP: u32 = 0x1;
    const RTF_REJECT: u32 = 0x200;
    let flags = u32::from_str_radix(flags, 16).ok()?;
    (flags & RTF_UP != 0 && flags & RTF_REJECT == 0 && name != "lo").then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_route_with_the_lowest_metric_is_taken() {
        let table = "\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
wlan0\t00000000\t0101A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0
eth0\t00000000\t0102A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0
dead0\t00000000\t0102A8C0\t0002\t0\t0\t0\t00000000\t0\t0\t0
eth0\t0002A8C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0
";
        let gateway = if cfg!(target_endian = "little") { [192, 168, 2, 1] } else { [1, 2, 168, 192] };
        let expected = DefaultRoute { metric: 100, interface: "eth0".to_owned(), gateway: Some(IpAddr::from(gateway)) };
        assert_eq!(lowest_metric([in_ipv4_table(table)]), Some(expected));
        assert_eq!(lowest_metric([in_ipv4_table("")]), None);
    }

    #[test]
    fn without_an_ipv4_default_route_that_of_ipv6_is_taken() {
        let zero = "0".repeat(32);
        let table = format!(
            "{zero} 00 {zero} 00 {zero} ffffffff 00000001 00000000 00200200       lo\n\
             {zero} 00 {zero} 00 fe800000000000000000000000000001 00000400 00000001 00000000 00450003    wlan0\n\
             fe80000000000000{} 40 {zero} 00 {zero} 00000100 00000001 00000000 00000001     eth0\n",
            "0".repeat(16)
        );
        let gateway = Some("fe80::1".parse().expect("an address"));
        let expected = DefaultRoute { metric: 0x400, interface: "wlan0".to_owned(), gateway };
        assert_eq!(lowest_metric([in_ipv4_table(""), in_ipv6_table(&table)]), Some(expected));
    }

    #[test]
    fn a_default_route_may_lack_a_gateway() {
        let table = "tun0\t00000000\t00000000\t0001\t0\t0\t0\t00000000\t0\t0\t0\n";
        let route = lowest_metric([in_ipv4_table(table)]).expect("a default route");
        assert_eq!((route.interface.as_str(), route.gateway), ("tun0", None));
    }

    #[test]
    fn a_broadcast_goes_where_the_network_has_it() {
        let address = Ipv4Addr::new(10, 77, 0, 1);
        let mask = |prefix: u32| Some(Ipv4Addr::from(u32::MAX << (32 - prefix)));
        let set = Some(Ipv4Addr::new(10, 77, 255, 255));
        assert_eq!(broadcast(address, mask(24), set), Ipv4Addr::new(10, 77, 255, 255));
        assert_eq!(broadcast(address, mask(24), None), Ipv4Addr::new(10, 77, 0, 255));
        assert_eq!(broadcast(address, mask(31), None), Ipv4Addr::BROADCAST);
        assert_eq!(broadcast(address, mask(32), None), Ipv4Addr::BROADCAST);
        assert_eq!(broadcast(address, None, None), Ipv4Addr::BROADCAST);
    }

    #[test]
    fn there_is_no_interface_without_a_name() {
        assert_eq!(Interface::find(Some("lh-nosuch0"), &[]), None);
    }
}
