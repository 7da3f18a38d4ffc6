//! The type and the counters of a managed interface without a radio, for the estimators of its link.

use crate::clock;
use crate::link::interface::Interface;
use lasthop_lastlink::{Counters, Medium};
use lasthop_units::{Bytes, Rate};
use nix::ifaddrs::getifaddrs;
use std::fs;
use std::path::Path;

/// linux/if_arp.h.
const ARPHRD_ETHER: &str = "1";
/// Destination, source, type. An interface counts these octets with each packet.
const ETHERNET_HEADER_BYTES: u64 = 14;
/// Phones and modems look like Ethernet, but report the speed of the USB port, or none.
const TETHERING_DRIVERS: [&str; 7] =
    ["cdc_ether", "cdc_mbim", "cdc_ncm", "huawei_cdc_ncm", "ipheth", "qmi_wwan", "rndis_host"];

/// The kind of interface: wired, or unknown to us.
pub(crate) fn medium(interface: &Interface) -> Medium {
    of_device(Path::new("/sys/class/net"), interface, hardware_address(&interface.name).as_deref())
}

/// Reads `classes`, which may belong to another network namespace: so name, index and address must all agree.
fn of_device(classes: &Path, interface: &Interface, address: Option<&str>) -> Medium {
    let folder = classes.join(&interface.name);
    let read = |file: &str| fs::read_to_string(folder.join(file)).map(|text| text.trim().to_owned()).ok();
    let is_ours = read("ifindex").is_some_and(|index| index == interface.index.to_string())
        && address.is_some_and(|address| read("address").as_deref() == Some(address));
    // A device of its own, not a bridge, VLAN, bond, modem or radio.
    let is_cable = read("type").as_deref() == Some(ARPHRD_ETHER)
        && folder.join("device").exists()
        && !folder.join("phy80211").exists()
        && read("uevent").is_some_and(|uevent| !uevent.contains("DEVTYPE="));
    let driver = read("device/uevent").unwrap_or_default();
    let driver = driver.lines().find_map(|line| line.strip_prefix("DRIVER=")).unwrap_or_default();
    if !is_ours || !is_cable || TETHERING_DRIVERS.contains(&driver) {
        return Medium::Unknown;
    }
    // In Mb/s; -1 or an error if unknown.
    let speed = read("speed").and_then(|speed| speed.parse::<u32>().ok()).filter(|mbps| *mbps > 0 && *mbps < 1 << 31);
    Medium::Wired { speed: speed.map(|mbps| Rate::from_bps(u64::from(mbps) * 1_000_000)) }
}

/// In hex with colons; `None`: the interface has none.
fn hardware_address(name: &str) -> Option<String> {
    let entry = getifaddrs().ok()?.find(|entry| {
        entry.interface_name == name && entry.address.is_some_and(|address| address.as_link_addr().is_some())
    })?;
    let octets = entry.address?.as_link_addr()?.addr()?;
    let written: Vec<String> = octets.iter().map(|octet| format!("{octet:02x}")).collect();
    octets.iter().any(|octet| *octet != 0).then(|| written.join(":"))
}

/// The interface's counters; `None`: unavailable.
pub(crate) fn counters(name: &str) -> Option<Counters> {
    let has_header = hardware_address(name).is_some();
    let after = clock::monotonic();
    // The calling thread's, see `interface`.
    let table = fs::read_to_string("/proc/thread-self/net/dev").ok()?;
    let before = clock::monotonic();
    let line = table.lines().find_map(|line| line.trim_start().strip_prefix(name)?.strip_prefix(':'))?;
    let counts = in_line(line, if has_header { ETHERNET_HEADER_BYTES } else { 0 })?;
    Some(Counters { after, before, ..counts })
}

/// Received: bytes packets errs drop fifo frame compressed multicast; then sent.
fn in_line(line: &str, header_bytes: u64) -> Option<Counters> {
    let columns: Vec<u64> = line.split_whitespace().map(|column| column.parse().ok()).collect::<Option<_>>()?;
    let [bytes, packets, errors, _, _, frame, ..] = columns[..] else { return None };
    Some(Counters {
        after: lasthop_units::Time::ZERO,
        before: lasthop_units::Time::ZERO,
        received: Bytes::new(bytes.saturating_sub(packets.saturating_mul(header_bytes))),
        received_packets: packets,
        // Length, overrun, checksum and alignment errors. Drops for want of memory are in the other counter only.
        damaged: frame.min(errors),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: &str = "02:00:00:00:00:01";

    fn interface() -> Interface {
        Interface {
            name: "eth0".to_owned(),
            index: 2,
            up: true,
            broadcast: None,
            tunnels: Vec::new(),
            has_ipv6_link_local: false,
            own_addresses: Vec::new(),
            gateways: [None; 2],
        }
    }

    /// A card's class folder with these files changed; an empty text removes a file.
    fn seen_with(changes: &[(&str, &str)]) -> Medium {
        let classes = tempfile::tempdir().expect("a folder");
        let folder = classes.path().join("eth0");
        fs::create_dir_all(folder.join("device")).expect("a folder");
        let files = [
            ("ifindex", "2\n"),
            ("address", "02:00:00:00:00:01\n"),
            ("type", "1\n"),
            ("speed", "1000\n"),
            ("uevent", "INTERFACE=eth0\nIFINDEX=2\n"),
            ("device/uevent", "DRIVER=e1000e\n"),
        ];
        for (file, text) in files.iter().chain(changes) {
            let file = folder.join(file);
            if text.is_empty() { fs::remove_file(file) } else { fs::write(file, text) }.expect("written");
        }
        of_device(classes.path(), &interface(), Some(ADDRESS))
    }

    #[test]
    fn a_network_card_is_wired_at_its_speed() {
        assert_eq!(seen_with(&[]), Medium::Wired { speed: Some(Rate::from_mbps(1000.0)) });
        for unknown in ["-1\n", "4294967295\n", "0\n", ""] {
            assert_eq!(seen_with(&[("speed", unknown)]), Medium::Wired { speed: None }, "{unknown:?}");
        }
    }

    #[test]
    fn what_is_no_cable_of_this_namespace_is_not_known() {
        for change in [
            ("ifindex", "3\n"),
            ("address", "02:00:00:00:00:02\n"),
            ("type", "519\n"),
            ("uevent", "DEVTYPE=wwan\nINTERFACE=eth0\n"),
            ("uevent", ""),
            ("phy80211", "\n"),
            ("device/uevent", "DRIVER=rndis_host\n"),
        ] {
            assert_eq!(seen_with(&[change]), Medium::Unknown, "{change:?}");
        }
        assert_eq!(of_device(Path::new("/nonexistent"), &interface(), Some(ADDRESS)), Medium::Unknown);
        assert_eq!(of_device(Path::new("/nonexistent"), &interface(), None), Medium::Unknown);
    }

    #[test]
    fn a_line_of_the_kernel_s_table_is_read_without_headers() {
        let line = "  1514000    1000    7    3    0     5          0         0   280000    2000    0    0    0     0       0          0";
        let counters = in_line(line, 14).expect("a line");
        assert_eq!((counters.received, counters.received_packets), (Bytes::new(1_500_000), 1000));
        assert_eq!(counters.damaged, 5);
        assert_eq!(in_line(line, 0).expect("a line").received, Bytes::new(1_514_000));
        assert_eq!(in_line("1 2 3", 14), None);
        assert_eq!(in_line("face |bytes packets", 14), None);
    }

    #[test]
    fn loopback_is_counted_and_is_no_cable() {
        let first = counters("lo").expect("there is one");
        let second = counters("lo").expect("there is one");
        assert!(second.received >= first.received && second.after >= first.before && first.before >= first.after);
        let loopback = Interface { name: "lo".to_owned(), index: 1, ..interface() };
        assert_eq!(medium(&loopback), Medium::Unknown);
        assert_eq!(counters("lh-nosuch0"), None);
    }
}
