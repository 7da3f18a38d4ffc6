//! The other network namespaces of this machine whose packets come out in ours: those of containers and pods.
//!
//! 1. `/proc/PID/ns/net` of all processes names the namespaces.
//! 2. rtnetlink names, for each interface of ours, its other end: a namespace, and an interface there. So the far ends of veth
//!    pairs are known.
//! 3. Our main routing table says by which interface their packets leave (`bpf/socket.h`, `leaves_by_ours`).
//!
//! Leaves out: namespaces that reach ours through a third one; macvlan and ipvlan, whose packets do not come out in ours;
//! policy routing; and destinations that the packet filter replaces.

use crate::error::Error;
use crate::layout::{Destination, FarEnd, LH_FAR_ENDS_MAX, LH_ROUTES_MAX};
use crate::namespace::Namespace;
use crate::netlink::Netlink;
use libbpf_rs::{ErrorKind, Map, MapCore as _, MapFlags};
use netlink_packet_core::{NLM_F_ACK, NLM_F_DUMP};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkMessage};
use netlink_packet_route::nsid::{NsidAttribute, NsidMessage};
use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteFlags, RouteMessage, RouteType};
use netlink_sys::protocols::NETLINK_ROUTE;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::Ipv6Addr;
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;

/// RT_TABLE_MAIN and RT_TABLE_LOCAL (linux/rtnetlink.h).
const TABLES: [u8; 2] = [254, 255];

/// The result of [`Kernel::follow_containers`](crate::Kernel::follow_containers).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Containers {
    /// Others than at the last call are governed, or the routes have changed.
    pub changed: bool,
    /// Network namespaces whose connections are governed.
    pub governed: usize,
    /// Network namespaces that cannot be entered (CAP_SYS_ADMIN), whose connections escape.
    pub closed: usize,
    /// Network namespaces whose packets do not come out in ours.
    pub elsewhere: usize,
    /// Processes whose network namespace cannot be seen (CAP_SYS_PTRACE); 1 where processes of others are not listed.
    pub hidden: usize,
}

/// What the programs are told of other namespaces, and what walks enter.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) namespaces: Vec<Namespace>,
    /// Namespace and interface.
    pub(crate) far_ends: BTreeMap<[u32; 2], ()>,
    /// Bits of the prefix and address, to the interface.
    pub(crate) routes: BTreeMap<(u32, Ipv6Addr), u32>,
    pub(crate) told: Containers,
}

/// Looks for the namespaces of all processes. The calling thread is in `ours`. What comes in by a managed interface is not of a container.
pub(crate) fn find(ours: &Namespace, managed: &[u32]) -> Result<Found, Error> {
    let mut netlink = Routing(Netlink::open(NETLINK_ROUTE).map_err(Error::exchange_io("opening rtnetlink"))?);
    let mut found = Found::default();
    let told = &mut found.told;
    let (mut paths, hidden) = namespaces_of_processes().map_err(Error::exchange_io("listing the processes"))?;
    paths.remove(&ours.inum());
    told.hidden = hidden;
    let far_ends = netlink.far_ends(managed).map_err(Error::exchange_io("listing the other ends of our interfaces"))?;
    for (inum, path) in paths {
        let namespace = match Namespace::open(&path) {
            Ok(namespace) if namespace.inum() == inum => namespace,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                told.closed += 1;
                continue;
            }
            _ => continue, // the process has ended meanwhile
        };
        let id = netlink.id_of(&namespace).map_err(Error::exchange_io("asking for the number of a namespace"))?;
        let own: Vec<[u32; 2]> =
            far_ends.iter().filter(|end| Some(end.0) == id).map(|(_, interface)| [inum, *interface]).collect();
        if own.is_empty() {
            told.elsewhere += 1;
        } else if namespace.within(|| ()).is_err() {
            told.closed += 1;
        } else {
            told.governed += 1;
            found.far_ends.extend(own.into_iter().map(|end| (end, ())));
            found.namespaces.push(namespace);
        }
    }
    found.routes = netlink.routes().map_err(Error::exchange_io("reading our routes"))?;
    for (what, count, most) in [
        ("interfaces of containers", found.far_ends.len(), LH_FAR_ENDS_MAX as usize),
        ("routes beside containers", found.routes.len(), LH_ROUTES_MAX as usize),
    ] {
        if count > most {
            return Err(Error::TooMuch { what, reason: format!("there are {count}, and room for {most}") });
        }
    }
    Ok(found)
}

/// Walks our sockets, and then those of containers. A container that cannot be entered any more is left out: the next look for
/// containers counts it.
pub(crate) fn everywhere(
    ours: &Namespace,
    outside: &Found,
    mut walk: impl FnMut() -> io::Result<()>,
) -> io::Result<()> {
    ours.within(&mut walk)??;
    for namespace in &outside.namespaces {
        let _ = namespace.within(&mut walk);
    }
    Ok(())
}

/// Makes the entries of a map those of `new`; `old` follows. Returns whether they differed.
pub(crate) fn tell<K: Ord + Copy, V: Copy + PartialEq>(
    map: &Map<'_>,
    old: &mut BTreeMap<K, V>,
    new: &BTreeMap<K, V>,
    key: impl Fn(&K) -> Vec<u8>,
    value: impl Fn(V) -> Vec<u8>,
) -> Result<bool, Error> {
    let telling = || Error::exchange("telling the programs of containers");
    let mut changed = false;
    // First, to make room.
    let gone: Vec<K> = old.keys().filter(|entry| !new.contains_key(entry)).copied().collect();
    for entry in gone {
        match map.delete(&key(&entry)) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(telling()(error)),
            _ => _ = old.remove(&entry),
        }
        changed = true;
    }
    for (entry, told) in new.iter().filter(|(entry, told)| old.get(entry) != Some(told)).collect::<Vec<_>>() {
        map.update(&key(entry), &value(*told), MapFlags::ANY).map_err(telling())?;
        old.insert(*entry, *told);
        changed = true;
    }
    Ok(changed)
}

impl FarEnd {
    pub(crate) fn of([netns_inum, interface_index]: [u32; 2]) -> Self {
        Self { netns_inum, interface_index }
    }
}

impl Destination {
    pub(crate) fn of((prefix_bits, address): (u32, Ipv6Addr)) -> Self {
        Self { prefix_bits, address: address.octets() }
    }
}

/// The namespaces, each with a process in it; and how many processes do not show theirs.
fn namespaces_of_processes() -> io::Result<(BTreeMap<u32, PathBuf>, usize)> {
    let (mut paths, mut hidden) = (BTreeMap::new(), 0);
    for entry in fs::read_dir("/proc")? {
        let entry = entry?;
        if !entry.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit) {
            continue;
        }
        let path = entry.path().join("ns/net");
        match fs::read_link(&path) {
            Ok(link) => {
                // net:[4026531840]
                let inum = link.to_str().and_then(|link| link.strip_prefix("net:[")?.strip_suffix(']')?.parse().ok());
                if let Some(inum) = inum {
                    paths.entry(inum).or_insert(path);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => hidden += 1,
            Err(_) => {} // it has ended
        }
    }
    // Under hidepid= (proc(5)), as of ProtectProc= in a unit, those of others are not even listed.
    hidden += usize::from(!fs::exists("/proc/1")?);
    Ok((paths, hidden))
}

/// rtnetlink of the namespace in which it was opened.
struct Routing(Netlink);

impl Routing {
    /// The other ends of our interfaces but these that are in other namespaces: our number of that namespace, and the interface there.
    fn far_ends(&mut self, but: &[u32]) -> io::Result<Vec<(i32, u32)>> {
        let links = self.0.ask(RouteNetlinkMessage::GetLink(LinkMessage::default()), NLM_F_DUMP)?;
        let end = |message| {
            let RouteNetlinkMessage::NewLink(link) = message else { return None };
            if but.contains(&link.header.index) {
                return None;
            }
            let (mut id, mut interface) = (None, None);
            for attribute in link.attributes {
                match attribute {
                    LinkAttribute::LinkNetNsId(number) => id = Some(number),
                    LinkAttribute::Link(index) => interface = Some(index),
                    _ => {}
                }
            }
            Some((id.filter(|id| *id >= 0)?, interface?))
        };
        Ok(links.into_iter().filter_map(end).collect())
    }

    /// Our number of a namespace (ip-netns(8), "nsid"); `None`: it has none, for nothing of ours leads there.
    fn id_of(&mut self, namespace: &Namespace) -> io::Result<Option<i32>> {
        let mut asked = NsidMessage::default();
        let descriptor = u32::try_from(namespace.file().as_raw_fd()).expect("an open file's is positive");
        asked.attributes.push(NsidAttribute::Fd(descriptor));
        let answers = self.0.ask(RouteNetlinkMessage::GetNsId(asked), NLM_F_ACK)?;
        let id = |message| {
            let RouteNetlinkMessage::NewNsId(answer) = message else { return None };
            answer.attributes.into_iter().find_map(|attribute| match attribute {
                NsidAttribute::Id(id) if id >= 0 => Some(id),
                _ => None,
            })
        };
        Ok(answers.into_iter().find_map(id))
    }

    /// Prefixes and the interfaces by which what is forwarded there leaves; 0: it is for this host, or is not forwarded.
    fn routes(&mut self) -> io::Result<BTreeMap<(u32, Ipv6Addr), u32>> {
        let answers = self.0.ask(RouteNetlinkMessage::GetRoute(RouteMessage::default()), NLM_F_DUMP)?;
        let routes = answers.into_iter().filter_map(|answer| match answer {
            RouteNetlinkMessage::NewRoute(route) => Some(route),
            _ => None,
        });
        Ok(best(routes))
    }
}

/// Of the routes with the same prefix, the one with the lowest metric.
fn best(routes: impl Iterator<Item = RouteMessage>) -> BTreeMap<(u32, Ipv6Addr), u32> {
    let mut all = BTreeMap::new();
    // Without a route of IPv4, that of IPv6 must not stand for it.
    let ipv4 = std::net::Ipv4Addr::UNSPECIFIED.to_ipv6_mapped();
    all.insert((96, ipv4), (u32::MAX, 0));
    for route in routes {
        let header = &route.header;
        if !TABLES.contains(&header.table) || header.flags.contains(RouteFlags::Cloned) {
            continue;
        }
        let (mut to, mut by, mut metric) = (None, 0, 0);
        for attribute in &route.attributes {
            match attribute {
                RouteAttribute::Destination(RouteAddress::Inet(address)) => to = Some(address.to_ipv6_mapped()),
                RouteAttribute::Destination(RouteAddress::Inet6(address)) => to = Some(*address),
                RouteAttribute::Oif(interface) => by = *interface,
                RouteAttribute::Priority(priority) => metric = *priority,
                RouteAttribute::MultiPath(hops) => by = hops.first().map_or(0, |hop| hop.interface_index),
                _ => {}
            }
        }
        let (bits, none) = match header.address_family {
            netlink_packet_route::AddressFamily::Inet => (96, ipv4),
            netlink_packet_route::AddressFamily::Inet6 => (0, Ipv6Addr::UNSPECIFIED),
            _ => continue,
        };
        let by = if header.kind == RouteType::Unicast { by } else { 0 };
        let key = (bits + u32::from(header.destination_prefix_length), to.unwrap_or(none));
        let least = all.entry(key).or_insert((metric, by));
        if metric < least.0 {
            *least = (metric, by);
        }
    }
    all.into_iter().map(|(key, (_, by))| (key, by)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use netlink_packet_route::AddressFamily;

    fn route(to: Option<[u8; 4]>, bits: u8, attributes: &[RouteAttribute]) -> RouteMessage {
        let mut route = RouteMessage::default();
        route.header.address_family = AddressFamily::Inet;
        route.header.destination_prefix_length = bits;
        route.header.table = 254;
        route.header.kind = RouteType::Unicast;
        route.attributes.extend(to.map(|to| RouteAttribute::Destination(RouteAddress::Inet(to.into()))));
        route.attributes.extend_from_slice(attributes);
        route
    }

    #[test]
    fn of_two_default_routes_the_one_with_the_lower_metric_counts_and_our_own_address_is_no_way_out() {
        use RouteAttribute::{Oif, Priority};
        let mut own = route(Some([10, 0, 0, 7]), 32, &[Oif(3)]);
        own.header.kind = RouteType::Local;
        own.header.table = 255;
        let mut other_table = route(Some([10, 9, 0, 0]), 16, &[Oif(8)]);
        other_table.header.table = 100;
        let routes = [
            route(None, 0, &[Oif(2), Priority(600)]),
            route(None, 0, &[Oif(3), Priority(100)]),
            route(None, 0, &[Oif(4), Priority(200)]),
            route(Some([172, 17, 0, 0]), 16, &[Oif(5)]),
            own,
            other_table,
        ];
        let mapped = |address: &str| address.parse().expect("an address");
        let expected = [
            ((96, mapped("::ffff:0.0.0.0")), 3),
            ((112, mapped("::ffff:172.17.0.0")), 5),
            ((128, mapped("::ffff:10.0.0.7")), 0),
        ];
        assert_eq!(best(routes.into_iter()), BTreeMap::from(expected));
        // Without one, IPv4 goes nowhere, even where IPv6 has one.
        assert_eq!(best(std::iter::empty()), BTreeMap::from([((96, mapped("::ffff:0.0.0.0")), 0)]));
    }
}
