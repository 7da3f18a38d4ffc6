//! The managed interface: which one, and how its network can be reached.

use nix::ifaddrs::getifaddrs;
use nix::net::if_::{InterfaceFlags, if_nametoindex};
use nix::sys::socket::SockaddrStorage;
use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr};

/// An interface as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its index; another one when it has been removed and come back.
    pub index: u32,
    /// Up and running.
    pub up: bool,
    /// Where an IPv4 broadcast goes; `None`: it has no IPv4 address.
    pub broadcast: Option<Ipv4Addr>,
    /// Whether it has an IPv6 link-local address, the source of its multicasts.
    pub has_ipv6_link_local: bool,
}

impl Interface {
    /// The interface with this name, or else the one of the default route; `None`: there is no such thing now.
    pub fn find(name: Option<&str>) -> Option<Self> {
        match name {
            Some(name) => Self::with_name(name.to_owned()),
            None => Self::with_name(of_default_route()?),
        }
    }

    fn with_name(name: String) -> Option<Self> {
        let index = if_nametoindex(name.as_str()).ok()?;
        let mut interface = Self { name, index, up: false, broadcast: None, has_ipv6_link_local: false };
        let Ok(addresses) = getifaddrs() else { return Some(interface) };
        for entry in addresses.filter(|entry| entry.interface_name == interface.name) {
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

/// Where to broadcast: the address that is set, else that of the network (an interface that is point-to-point by its
/// flags, such as a TUN device, has none set), else the limited broadcast.
fn broadcast(address: Ipv4Addr, netmask: Option<Ipv4Addr>, set: Option<Ipv4Addr>) -> Ipv4Addr {
    let netmask = netmask.map_or(u32::MAX, u32::from);
    match set {
        Some(set) if set != address => set,
        _ if netmask.leading_ones() < 31 => (u32::from(address) | !netmask).into(),
        _ => Ipv4Addr::BROADCAST,
    }
}

fn of_default_route() -> Option<String> {
    // Of the calling thread: /proc/net is the network namespace of the process's first thread.
    let read = |file: &str| fs::read_to_string(format!("/proc/thread-self/net/{file}")).unwrap_or_default();
    default_in_ipv4_table(&read("route")).or_else(|| default_in_ipv6_table(&read("ipv6_route")))
}

/// Iface Destination Gateway Flags RefCnt Use Metric Mask ...: the default with the lowest metric.
fn default_in_ipv4_table(table: &str) -> Option<String> {
    let default = |line: &str| {
        let columns: Vec<_> = line.split_whitespace().collect();
        let [name, "00000000", _, flags, _, _, metric, "00000000", ..] = columns[..] else { return None };
        Some((metric.parse::<u32>().ok()?, usable(flags, name)?))
    };
    table.lines().filter_map(default).min_by_key(|(metric, _)| *metric).map(|(_, name)| name)
}

/// destination prefix source prefix next-hop metric refcount use flags name, all numbers in hex.
fn default_in_ipv6_table(table: &str) -> Option<String> {
    let default = |line: &str| {
        let columns: Vec<_> = line.split_whitespace().collect();
        let [destination, "00", _, _, _, metric, _, _, flags, name] = columns[..] else { return None };
        if destination.bytes().any(|digit| digit != b'0') {
            return None;
        }
        Some((u32::from_str_radix(metric, 16).ok()?, usable(flags, name)?))
    };
    table.lines().filter_map(default).min_by_key(|(metric, _)| *metric).map(|(_, name)| name)
}

/// The name, if the route is up, does not reject, and does not lead to the host itself.
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
        assert_eq!(default_in_ipv4_table(table).as_deref(), Some("eth0"));
        assert_eq!(default_in_ipv4_table(""), None);
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
        assert_eq!(default_in_ipv6_table(&table).as_deref(), Some("wlan0"));
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
        assert_eq!(Interface::find(Some("lh-nosuch0")), None);
    }
}
