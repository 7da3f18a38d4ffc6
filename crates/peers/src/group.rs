//! Groups: hosts behind the same access point find the same identifier, hosts behind another one a different one.
//!
//! Peers share an access point's queue, so only hosts behind the same one may count each other. A host finds a
//! [`Label`] for its access point and sends the label's [`GroupId`] with each beacon:
//!
//! | label | where | |
//! | --- | --- | --- |
//! | `name office` | anywhere | the configuration says so |
//! | `bssid 02:00:00:00:00:01` | Wi-Fi | the access point's radio that the host is associated with |
//! | `gateway 10.0.0.1` | elsewhere | the next hop of the interface's default route |
//! | `link` | where none of these is known | every host that is heard |
//!
//! A router has an address of each family, and a host with one family alone knows that one only. So a host with both
//! has two [`Labels`]: its beacons over IPv4 name the router's IPv4 address, those over IPv6 its IPv6 address, and it
//! hears both.
//!
//! *What it leaves out*: an access point with two radios, or several that share one slow link, need a name. So does a
//! network where one host sees only IPv4's router and another only IPv6's, if no host between sees both.

use sha2::{Digest as _, Sha256};
use std::fmt;
use std::net::IpAddr;

/// How a host identifies its access point.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Label {
    /// Unknown: all hosts on the same link are taken to be behind the same access point.
    #[default]
    Link,
    /// The next hop of the default route.
    Gateway(IpAddr),
    /// The address of the access point's radio (802.11-2020 §4.3.2).
    Bssid([u8; 6]),
    /// A configured name.
    Name(String),
}

/// The labels of a host's access point in its beacons over IPv4 and over IPv6. Where the host knows a router of one
/// family alone, both are that one's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    ipv4: Label,
    ipv6: Label,
}

/// A label on the wire: the first 8 bytes of the SHA-256 of its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u64);

impl Label {
    /// The identifier that beacons carry.
    pub fn id(&self) -> GroupId {
        let hash = Sha256::digest(self.to_string().as_bytes());
        let first = hash.first_chunk().expect("SHA-256 has 32 bytes");
        GroupId(u64::from_be_bytes(*first))
    }
}

impl Labels {
    /// By the next hops of IPv4's and IPv6's default routes.
    pub fn of_gateways([ipv4, ipv6]: [Option<IpAddr>; 2]) -> Self {
        let label = |gateway: Option<IpAddr>| gateway.map_or(Label::Link, Label::Gateway);
        Self { ipv4: label(ipv4.or(ipv6)), ipv6: label(ipv6.or(ipv4)) }
    }

    /// The one that is shown: IPv4's.
    pub const fn shown(&self) -> &Label {
        &self.ipv4
    }

    /// The identifiers that beacons over IPv4 and over IPv6 carry.
    pub fn ids(&self) -> [GroupId; 2] {
        [self.ipv4.id(), self.ipv6.id()]
    }

    /// Whether these and those are of one access point. The address of IPv4's router decides, where both know one.
    pub fn are_of_the_same_place(&self, others: &Self) -> bool {
        let lacks_ipv4 = |labels: &Self| matches!(labels.ipv4, Label::Gateway(IpAddr::V6(_)));
        self.ipv4 == others.ipv4 || (lacks_ipv4(self) || lacks_ipv4(others)) && self.ipv6 == others.ipv6
    }
}

impl From<Label> for Labels {
    fn from(label: Label) -> Self {
        Self { ipv4: label.clone(), ipv6: label }
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Link => f.write_str("link"),
            Self::Gateway(address) => write!(f, "gateway {address}"),
            Self::Bssid([a, b, c, d, e, g]) => write!(f, "bssid {a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}"),
            Self::Name(name) => write!(f, "name {name}"),
        }
    }
}

impl fmt::Display for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_the_beginning_of_its_label_s_sha_256() {
        // printf 'bssid 02:00:00:00:00:01' | sha256sum | cut -c1-16
        for (label, text, id) in [
            (Label::Bssid([2, 0, 0, 0, 0, 1]), "bssid 02:00:00:00:00:01", 0x002b_a6a9_b324_3e5e),
            (Label::Gateway("10.0.0.1".parse().expect("an address")), "gateway 10.0.0.1", 0x230f_af13_c780_34c0),
            (Label::Name("office".to_owned()), "name office", 0x6c9a_f5b1_8943_066d),
            (Label::Link, "link", 0xb1b1_bdb4_80c6_1d07),
        ] {
            assert_eq!((label.to_string().as_str(), label.id()), (text, GroupId(id)));
        }
        assert_eq!(GroupId(0x2b).to_string(), "000000000000002b");
    }

    #[test]
    fn a_router_that_is_known_by_one_more_address_or_one_fewer_is_the_same_and_one_with_another_ipv4_address_is_not() {
        let address = |text: &str| Some(text.parse().expect("an address"));
        let labels = |ipv4: &str, ipv6: &str| Labels::of_gateways([ipv4, ipv6].map(|text| text.parse().ok()));
        let (both, ipv4, ipv6) = (labels("10.0.0.1", "fe80::1"), labels("10.0.0.1", ""), labels("", "fe80::1"));
        let gateway = |text: &str| Label::Gateway(address(text).expect("one"));
        assert_eq!((both.shown(), ipv6.shown()), (&gateway("10.0.0.1"), &gateway("fe80::1")));
        assert_eq!(both.ids(), [gateway("10.0.0.1").id(), gateway("fe80::1").id()]);
        assert_eq!(ipv4.ids(), [gateway("10.0.0.1").id(); 2]);
        let same = |a: &Labels, b: &Labels| {
            assert_eq!(a.are_of_the_same_place(b), b.are_of_the_same_place(a));
            a.are_of_the_same_place(b)
        };
        assert!(same(&both, &ipv4) && same(&both, &ipv6));
        assert!(!same(&ipv4, &ipv6));
        // Many routers call themselves fe80::1.
        assert!(!same(&both, &labels("10.0.0.2", "fe80::1")));
        assert!(!same(&ipv6, &labels("", "fe80::2")));
        let link = labels("", "");
        assert!(same(&link, &Label::Link.into()) && !same(&link, &ipv4) && !same(&link, &ipv6));
    }
}
