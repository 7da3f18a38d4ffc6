//! The specifics of the law `lastlink`: it receives clients' reports (`bpf/last_link.h`), and the server permits
//! heuristics per connection.

use super::Error;
use super::loaded::Walk;
use crate::cgroups::open_cgroup;
use crate::error::Error as KernelError;
use crate::layout::{self, HeardCounts, LH_PERMIT_PORT_BITS, PermitKey};
use crate::object;
use crate::probe::{self, Feature};
use lasthop_laws::LawName;
use libbpf_rs::{ErrorKind, Link, MapCore as _, MapFlags, MapHandle, Object};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsRawFd as _;
use std::str::FromStr;
use zerocopy::IntoBytes as _;

/// Totals of the clients' reports since loading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// Listening sockets with the law, whose connections can receive reports.
    pub listeners: u64,
    /// Listening sockets that the kernel refused to change.
    pub listeners_failed: u64,
    /// Reports received with a handshake.
    pub at_accept: u64,
    /// Reports received on established connections.
    pub later: u64,
    /// SYN-ACKs that confirmed the option to the client.
    pub answered: u64,
    /// Of those, SYN cookies, which asked for the report again.
    pub cookies: u64,
    /// SYN-ACKs without room for the answer.
    pub no_room: u64,
    /// Options that our clients never send: too short, with invalid values, or an answer.
    pub malformed: u64,
    /// Options of another version.
    pub other_version: u64,
    /// Reports of clients that are permitted nothing.
    pub not_permitted: u64,
    /// Reports lost for lack of memory.
    pub storage_missing: u64,
}

impl Heard {
    /// Each counter with its name.
    pub fn named(&self) -> [(&'static str, u64); 11] {
        [
            ("listeners", self.listeners),
            ("listeners_failed", self.listeners_failed),
            ("at_accept", self.at_accept),
            ("later", self.later),
            ("answered", self.answered),
            ("cookies", self.cookies),
            ("no_room", self.no_room),
            ("malformed", self.malformed),
            ("other_version", self.other_version),
            ("not_permitted", self.not_permitted),
            ("storage_missing", self.storage_missing),
        ]
    }
}

/// Heuristics permitted to a connection, if the law's parameters enable them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heuristics(u32);

/// Each with its bit, `LH_PERMIT_` of `link_report.h`.
const HEURISTICS: [(&str, u32); 3] = [("max_cwnd", 1), ("initial_window", 2), ("errors", 4)];

impl Heuristics {
    /// All of them: the default.
    pub const ALL: Self = Self(7);
    /// None of them: the client's SYN is not even answered.
    pub const NONE: Self = Self(0);

    /// From these bits, `permitted` of [`SocketState::fields`](super::SocketState::fields).
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits & Self::ALL.0)
    }

    /// By name, as in the law's parameters.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        HEURISTICS.into_iter().filter(move |(_, bit)| self.0 & bit != 0).map(|(name, _)| name)
    }
}

impl fmt::Display for Heuristics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::ALL => f.write_str("all"),
            Self::NONE => f.write_str("none"),
            some => f.write_str(&some.names().collect::<Vec<_>>().join(",")),
        }
    }
}

impl FromStr for Heuristics {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            "all" => return Ok(Self::ALL),
            "none" => return Ok(Self::NONE),
            _ => {}
        }
        let bit = |name: &str| {
            let found = HEURISTICS.into_iter().find(|(known, _)| *known == name);
            let known = HEURISTICS.map(|(name, _)| name).join(", ");
            found.map(|(_, bit)| bit).ok_or_else(|| match name {
                "all" | "none" => format!("{name:?} stands alone: nothing is added to it or taken from it"),
                _ => {
                    format!("no heuristic is called {name:?}; there are {known}, separated by commas, or all, or none")
                }
            })
        };
        text.split(',').map(str::trim).try_fold(Self::NONE, |all, name| Ok(Self(all.0 | bit(name)?)))
    }
}

/// Clients with a common address prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Prefix {
    address: IpAddr,
    bits: u8,
}

impl Prefix {
    /// All clients.
    pub const ALL: Self = Self { address: IpAddr::V6(Ipv6Addr::UNSPECIFIED), bits: 0 };

    fn new(address: IpAddr, bits: u8) -> Option<Self> {
        let kept = |wide: u32| 128u32.saturating_sub(wide - u32::from(bits));
        let mask = |value: u128, kept: u32| if kept == 0 { 0 } else { value >> (128 - kept) << (128 - kept) };
        match address {
            IpAddr::V4(_) if bits > 32 => None,
            IpAddr::V6(_) if bits > 128 => None,
            IpAddr::V4(address) => {
                let masked = mask(address.to_ipv6_mapped().to_bits(), kept(32));
                Some(Self { address: IpAddr::V4(Ipv4Addr::from_bits(masked as u32)), bits })
            }
            IpAddr::V6(address) => match (address.to_ipv4_mapped(), bits) {
                // the same clients, and the same entry
                (Some(four), 96..) => Self::new(four.into(), bits - 96),
                _ => Some(Self { address: IpAddr::V6(Ipv6Addr::from_bits(mask(address.to_bits(), kept(128)))), bits }),
            },
        }
    }

    /// As the programs store it: IPv4 mapped into IPv6.
    fn mapped(self) -> (Ipv6Addr, u32) {
        match self.address {
            IpAddr::V4(address) => (address.to_ipv6_mapped(), 96 + u32::from(self.bits)),
            IpAddr::V6(address) => (address, self.bits.into()),
        }
    }

    fn of_mapped(address: Ipv6Addr, bits: u32) -> Option<Self> {
        Self::new(address.into(), u8::try_from(bits).ok()?)
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::ALL => f.write_str("all clients"),
            Self { address, bits } => write!(f, "{address}/{bits}"),
        }
    }
}

impl FromStr for Prefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || {
            format!("{text:?} is no client prefix: an address, or ADDRESS/BITS, as in 192.0.2.0/24 or 2001:db8::/32")
        };
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse().map_err(|_| refuse())?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| refuse())?;
        Self::new(address, bits.unwrap_or(if address.is_ipv4() { 32 } else { 128 })).ok_or_else(refuse)
    }
}

/// A set of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Clients {
    /// Those of these clients.
    pub prefix: Prefix,
    /// With this local port; `None`: any. An entry for a port takes precedence over any for all ports, regardless of
    /// prefixes.
    pub port: Option<u16>,
}

impl fmt::Display for Clients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Some(port) => write!(f, "{}, port {port}", self.prefix),
            None => write!(f, "{}, any port", self.prefix),
        }
    }
}

impl Clients {
    fn key(&self) -> PermitKey {
        let (address, bits) = self.prefix.mapped();
        PermitKey {
            prefix_bits: LH_PERMIT_PORT_BITS + bits,
            port: self.port.unwrap_or(0).to_be(),
            client: address.octets(),
            padding: 0,
        }
    }

    fn of(key: &PermitKey) -> Option<Self> {
        let prefix = Prefix::of_mapped(key.client.into(), key.prefix_bits.checked_sub(LH_PERMIT_PORT_BITS)?)?;
        let port = u16::from_be(key.port);
        Some(Self { prefix, port: (port != 0).then_some(port) })
    }
}

/// The shared maps, and the attachments that last as long as this lives or is pinned.
#[derive(Debug)]
pub(crate) struct LastLink {
    pub(crate) heard: MapHandle,
    pub(crate) permits: MapHandle,
    pub(crate) prepare: Walk,
}

/// The loader's own part.
#[derive(Debug)]
pub(crate) struct Attached {
    pub(crate) socket_operations: Link,
    pub(crate) release: Link,
}

/// The most entries for permitted clients.
const PERMITS_MAX: usize = layout::LH_PERMITS_MAX as usize;

/// Names of the pins: maps, then links. Unloading first removes the attachments to sockets.
pub(crate) const HEARD: (&str, &str) = (".bss.heard", "heard");
pub(crate) const PERMITS: (&str, &str) = ("permits", "permits");
pub(crate) const SOCKET_OPERATIONS: &str = "socket_operations";
pub(crate) const PREPARE: &str = "prepare_listeners";
pub(crate) const RELEASE: &str = "release_listeners";

impl LastLink {
    /// Attaches the programs in the object of a law that receives reports.
    pub(crate) fn attach(law: LawName, object: &Object) -> Result<Option<(Self, Attached)>, Error> {
        if !law.hears_reports() {
            return Ok(None);
        }
        let cgroup = probe::cgroup2_root().ok_or_else(|| Error::Unsupported { reason: Feature::Cgroup2.lack() })?;
        let cgroup = open_cgroup(&cgroup)?;
        let handle = |name: &str| {
            MapHandle::try_from(&object::map(object, name)).map_err(KernelError::exchange("looking at a law's maps"))
        };
        let walk = |name| object::program(object, name).attach().map_err(KernelError::attach("iter/tcp"));
        let socket_operations = object::program(object, "last_link")
            .attach_cgroup(cgroup.as_raw_fd())
            .map_err(KernelError::attach_to_cgroup)?;
        let own = Self { heard: handle(HEARD.0)?, permits: handle(PERMITS.0)?, prepare: Walk::Link(walk(PREPARE)?) };
        Ok(Some((own, Attached { socket_operations, release: walk(RELEASE)? })))
    }

    pub(crate) fn heard(&self) -> Result<Heard, Error> {
        let counts: HeardCounts =
            object::read(&self.heard).map_err(KernelError::exchange("reading what a law has heard"))?;
        Ok(Heard {
            listeners: counts.listeners,
            listeners_failed: counts.listeners_failed,
            at_accept: counts.at_accept,
            later: counts.later,
            answered: counts.answered,
            cookies: counts.cookies,
            no_room: counts.no_room,
            malformed: counts.malformed,
            other_version: counts.other_version,
            not_permitted: counts.not_permitted,
            storage_missing: counts.storage_missing,
        })
    }

    pub(crate) fn permit(&self, clients: &Clients, heuristics: Heuristics) -> Result<(), Error> {
        let exchange = KernelError::exchange("permitting clients heuristics");
        if !self.permits()?.iter().any(|(known, _)| known == clients) && self.permits.keys().count() >= PERMITS_MAX {
            return Err(Error::TooManyPermits { most: PERMITS_MAX });
        }
        let value = heuristics.0.to_ne_bytes();
        Ok(self.permits.update(clients.key().as_bytes(), &value, MapFlags::ANY).map_err(exchange)?)
    }

    pub(crate) fn withdraw(&self, clients: &Clients) -> Result<(), Error> {
        match self.permits.delete(clients.key().as_bytes()) {
            Err(error) if error.kind() == ErrorKind::NotFound => Err(Error::NoPermit { clients: *clients }),
            result => Ok(result.map_err(KernelError::exchange("withdrawing what clients are permitted"))?),
        }
    }

    pub(crate) fn withdraw_all(&self) -> Result<usize, Error> {
        let permits = self.permits()?;
        permits.iter().try_for_each(|(clients, _)| self.withdraw(clients))?;
        Ok(permits.len())
    }

    pub(crate) fn permits(&self) -> Result<Vec<(Clients, Heuristics)>, Error> {
        let mut permits = Vec::new();
        for key in self.permits.keys() {
            let value = self.permits.lookup(&key, MapFlags::ANY);
            let value = value.map_err(KernelError::exchange("reading what clients are permitted"))?;
            let bits = value.and_then(|value| Some(u32::from_ne_bytes(value.try_into().ok()?)));
            if let (Some(clients), Some(bits)) = (layout::first(&key).and_then(|key| Clients::of(&key)), bits) {
                permits.push((clients, Heuristics(bits)));
            }
        }
        permits.sort_by_key(|(clients, _)| (clients.port.is_none(), clients.port, clients.prefix));
        Ok(permits)
    }

    /// Enables reports on listening sockets older than the law, in the calling thread's network namespace.
    pub(crate) fn prepare_listeners(&self) -> Result<(), Error> {
        let walked = match &self.prepare {
            Walk::Link(link) => object::read_all(link),
            Walk::Pinned(path) => std::fs::read(path),
        };
        Ok(walked.map(drop).map_err(KernelError::exchange_io("walking the listening sockets"))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heuristics_are_read_as_they_are_written() {
        for text in ["all", "none", "max_cwnd", "max_cwnd,errors", "initial_window,errors"] {
            assert_eq!(text.parse::<Heuristics>().map(|read| read.to_string()).as_deref(), Ok(text));
        }
        for spaced in ["max_cwnd, errors", " max_cwnd ,errors "] {
            assert_eq!(spaced.parse::<Heuristics>().map(|read| read.to_string()).as_deref(), Ok("max_cwnd,errors"));
        }
        for contradiction in ["all,none", "none, errors", "max_cwnd,all"] {
            let refused = contradiction.parse::<Heuristics>().expect_err(contradiction);
            assert!(refused.contains("stands alone"), "{refused}");
        }
        assert_eq!("max_cwnd,initial_window,errors".parse(), Ok(Heuristics::ALL));
        let refused = "max_cwnd,window".parse::<Heuristics>().expect_err("there is no window");
        assert!(refused.contains("\"window\"") && refused.contains("max_cwnd, initial_window, errors"), "{refused}");
        assert!("".parse::<Heuristics>().is_err());
    }

    #[test]
    fn a_prefix_is_as_wide_as_it_says() {
        for (text, meant) in [
            ("192.0.2.77/24", "192.0.2.0/24"),
            ("192.0.2.77", "192.0.2.77/32"),
            ("0.0.0.0/0", "0.0.0.0/0"),
            ("2001:db8:1:2::3/32", "2001:db8::/32"),
            ("2001:db8::1", "2001:db8::1/128"),
            ("::ffff:192.0.2.10", "192.0.2.10/32"),
            ("::ffff:192.0.2.77/120", "192.0.2.0/24"),
            ("::/0", "all clients"),
        ] {
            assert_eq!(text.parse::<Prefix>().map(|prefix| prefix.to_string()).as_deref(), Ok(meant));
        }
        for text in ["192.0.2.0/33", "::/129", "example.net", "192.0.2.0/-1", "192.0.2/24", ""] {
            let refused = text.parse::<Prefix>().expect_err(text);
            assert!(refused.contains("ADDRESS/BITS"), "{refused}");
        }
    }

    #[test]
    fn clients_survive_the_way_through_the_map() {
        for prefix in ["192.0.2.0/24", "0.0.0.0/0", "2001:db8::/32", "::/0", "10.0.0.1"] {
            for port in [None, Some(443)] {
                let clients = Clients { prefix: prefix.parse().expect("a prefix"), port };
                assert_eq!(Clients::of(&clients.key()), Some(clients));
            }
        }
        // 16 bits of the port, 96 of the mapping, 24 of the prefix
        let key = Clients { prefix: "192.0.2.0/24".parse().expect("a prefix"), port: Some(443) }.key();
        assert_eq!(
            (key.prefix_bits, key.port, key.client[10..].to_vec()),
            (136, 443u16.to_be(), vec![255, 255, 192, 0, 2, 0])
        );
    }
}
