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
//! *What it leaves out*: an access point with two radios, or several that share one slow link, need a name. So does a
//! network where one host sees only IPv4's router and another only IPv6's.

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
}
