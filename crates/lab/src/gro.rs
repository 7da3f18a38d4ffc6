//! Generic receive offload (GRO) by the kernel: a server of today acknowledges a burst, not every second segment.
//!
//! A network card hands packets to the kernel in polls (NAPI). GRO joins the segments of one connection that follow
//! each other, and TCP acknowledges the joined packet at once. `delayed_ack_segments` above 2 asks for that. The
//! device then has IFF_NAPI, so what the medium writes takes a card's way into the kernel:
//!
//! - *When a burst ends*: the kernel hands over what it has joined once no segment has come for [`DelayedAck::BURST_GAP`]
//!   (`gro_flush_timeout`), or at the limit of segments (`gro_ipv4_max_size`).
//! - *PSH.* GRO also ends at this flag. Linux sets it on the last segment of every packet that TCP hands down, which on
//!   mac80211 has several milliseconds of the connection's rate. The [valves](crate::valve) cut such packets to two
//!   segments, so that every second segment would have the flag. It is therefore taken off full segments on the way in.
//!   Nothing else in a Linux receiver reads it there.
//!
//! So the kernel acknowledges up to `delayed_ack_segments` together, and fewer where a burst has fewer, as simulated hosts
//! do; these acknowledge also what a bound that paces sends with PSH. Packets that come one by one, as from 802.11g, are not joined.
//!
//! *What it leaves out*: a card's own interrupt moderation, and bursts that end at the poll's 64 packets. Segments of
//! IPv6, which only programs of `lasthop exec` send, keep their PSH.

use crate::error::{Doing, Result};
use crate::tun::INTERFACE;
use lasthop_tcp::DelayedAck;
use rustix::fs::{Mode, OFlags, openat};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use std::os::fd::AsFd;

/// The bytes of an IPv4 and a TCP header without options.
const HEADERS: u32 = 40;
/// Those of the timestamps option.
const TIMESTAMPS: u32 = 12;

/// Which segments a device's kernel joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gro {
    /// A packet of this size or more is not made (`gro_ipv4_max_size`).
    pub(crate) below_bytes: u32,
    /// The IP packet of a full segment.
    full_bytes: u32,
}

impl Gro {
    /// For `segments` together, of connections with this MSS.
    pub(crate) fn new(segments: u32, mss_bytes: u32, timestamps: bool) -> Self {
        let options = if timestamps { TIMESTAMPS } else { 0 };
        let below_bytes = HEADERS + options + segments * (mss_bytes - options) + 1;
        Self { below_bytes, full_bytes: HEADERS + mss_bytes }
    }

    /// Takes PSH off a full segment of IPv4; `packet` is whole.
    pub(crate) fn unmark(self, packet: &mut [u8]) {
        const TCP: u8 = 6;
        const PSH: u8 = 0x08;
        if packet[0] >> 4 != 4 {
            return;
        }
        let tcp_at = usize::from(packet[0] & 0xf) * 4;
        if packet.len() < self.full_bytes as usize || packet[9] != TCP || packet[tcp_at + 13] & PSH == 0 {
            return;
        }
        let tcp = &mut packet[tcp_at..];
        tcp[13] &= !PSH;
        // The checksum is the complement of the sum, in ones' complement (RFC 1624, eq. 3).
        let (sum, carried) = u16::from_be_bytes([tcp[16], tcp[17]]).overflowing_add(PSH.into());
        tcp[16..18].copy_from_slice(&(sum + u16::from(carried)).to_be_bytes());
    }
}

/// Has the kernel wait for the rest of a burst, for the device of the calling thread's namespace.
pub(crate) fn wait_for_the_burst() -> Result<()> {
    const CANNOT: &str = "cannot set gro_flush_timeout of a TUN device";
    // A mount of our own, seen by nobody: the machine's /sys shows another namespace's devices.
    let sysfs = fsopen("sysfs", FsOpenFlags::FSOPEN_CLOEXEC).doing(CANNOT)?;
    fsconfig_create(sysfs.as_fd()).doing(CANNOT)?;
    let root = fsmount(sysfs.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty()).doing(CANNOT)?;
    let path = format!("class/net/{INTERFACE}/gro_flush_timeout");
    let file = openat(root, path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()).doing(CANNOT)?;
    rustix::io::write(file, DelayedAck::BURST_GAP.as_nanos().to_string().as_bytes()).map(drop).doing(CANNOT)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum of RFC 1071 over the TCP part; 0xffff, if its checksum is right but for the pseudo-header.
    fn sum(packet: &[u8]) -> u32 {
        let words = packet[20..].chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
        let sum = words.sum::<u32>();
        (sum & 0xffff) + (sum >> 16)
    }

    #[test]
    fn a_limit_of_segments_is_one_of_bytes() {
        // 16 segments of 1448 bytes after 52 bytes of headers, and one byte more.
        assert_eq!(Gro::new(16, 1460, true), Gro { below_bytes: 23_221, full_bytes: 1500 });
        assert_eq!(Gro::new(3, 1000, false), Gro { below_bytes: 3_041, full_bytes: 1040 });
    }

    #[test]
    fn a_full_segment_loses_its_psh_and_keeps_its_checksum() {
        for checksum in [0x1234_u16, 0xfffb, 0xffff] {
            let mut packet = vec![0; 1500];
            (packet[0], packet[9], packet[33]) = (0x45, 6, 0x18);
            packet[36..38].copy_from_slice(&checksum.to_be_bytes());
            let before = sum(&packet);
            Gro::new(16, 1460, true).unmark(&mut packet);
            assert_eq!(packet[33], 0x10);
            assert_eq!(sum(&packet) % 0xffff, before % 0xffff);
        }
    }

    #[test]
    fn the_end_of_a_transfer_keeps_its_psh() {
        let mut packet = vec![0; 900];
        (packet[0], packet[9], packet[33]) = (0x45, 6, 0x18);
        let before = packet.clone();
        Gro::new(16, 1460, true).unmark(&mut packet);
        assert_eq!(packet, before);
    }
}
