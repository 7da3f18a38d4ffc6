//! A modern stack on a TUN device: back-pressure from the station's queue in the model.
//!
//! What [small queues](crate::small_queues) permit must lie in the model, before it is sent, and no more: an aggregate takes
//! all that a station has queued, and a round trip includes it. A TUN device cannot hold packets back: it takes every one
//! at once and forgets its socket. The kernel's own small queue is therefore reduced to one packet of TCP
//! (`tcp_limit_output_bytes`), which waits in a token bucket before the device. This module gives the bucket tokens for
//! what is missing in the model:
//!
//! ```text
//! whenever a packet has come or left, for each lane:   room = permitted - queued in the model
//!                                                      tokens = room   if a quarter of what is permitted is missing,
//!                                                                      or if far fewer are permitted than were left
//! ```
//!
//! So a bucket has tokens before it has run out of them, and a sender on a path of any length finds it open while its
//! queue in the model is short. The medium's loop knows when packets come and leave, and [rings](Bell) for the thread of the
//! valves. That thread also looks every millisecond, for what is permitted changes, too.
//!
//! ```text
//! TCP with data --------- bucket --+
//! a guest's datagrams --- bucket --+-- TUN device -- the station's queue in the model
//! all other packets ---------------+
//! ```
//!
//! The bucket's own rate is next to nothing. So it needs no timer of the kernel, which would fire for each packet and
//! cost several times as much as the packet. New tokens do not wake the bucket. A datagram does, which nobody gets. The
//! kernel's log has one line for each bucket, "tbf qdisc 3: is non-work-conserving?": it is, and is to be.
//!
//! *What it leaves out*: a socket that is paced, as BBR's or by a bound, is not limited by `tcp_limit_output_bytes`; it may have
//! another millisecond, or two packets of TCP, before the bucket. Segments count without the kernel's overhead.

use crate::Grain;
use crate::addresses::AddressPlan;
use crate::clock::Clock;
use crate::error::{Doing, Result};
use crate::guest::queues::OF_LABORATORY;
use crate::namespace::Namespace;
use crate::netlink::{Netlink, Rule};
use crate::real_time::{LONGEST_WORK, be_ordinary, be_woken_exactly};
use crate::small_queues::{Lane, Station};
use crate::tcp_switches::sysctl;
use crate::tun::{INTERFACE, MTU};
use lasthop_units::{Bytes, Rate, Span};
use nix::sys::socket::{setsockopt, sockopt::Mark};
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// A shorter sleep is none.
const SHORTEST_SLEEP: Duration = Duration::from_micros(5);
/// The capacity of a bucket's queue. One packet of TCP per connection waits there.
const LIMIT: Bytes = Bytes::new(1000 * (MTU as u64 + 14));
/// The lowest rate of a bucket, less than a packet in a second.
const NEXT_TO_NOTHING: Rate = Rate::from_bps(8_000);

/// Where the datagrams that wake a bucket go: TEST-NET-1, which is no host's (RFC 5737).
const NOBODY: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

/// Wakes the thread of the valves.
#[derive(Debug, Default)]
pub(crate) struct Bell(OnceLock<Thread>);

/// The valves of all modern stations.
pub(crate) struct Valves<'a> {
    valves: Vec<Valve<'a>>,
    tick: Span,
}

/// One station's token buckets.
struct Valve<'a> {
    station: &'a Station,
    netlink: Netlink,
    interface_index: u32,
    waker: UdpSocket,
    /// By lane: the bytes that had left the device by the last tick.
    seen: [u64; 2],
}

impl Bell {
    /// Wakes it, if it sleeps.
    pub(crate) fn ring(&self) {
        if let Some(thread) = self.0.get() {
            thread.unpark();
        }
    }
}

impl<'a> Valves<'a> {
    /// Puts buckets before each device, open for one packet of TCP.
    ///
    /// # Errors
    /// If the kernel has no htb, no tbf or no cls_u32.
    pub(crate) fn new(stations: impl IntoIterator<Item = (&'a Namespace, &'a Station)>, grain: &Grain) -> Result<Self> {
        let valve = |(namespace, station): (&'a Namespace, &'a Station)| {
            let (netlink, interface_index, waker) = namespace.run(|| {
                // The rest of a small queue is in the model.
                sysctl("ipv4/tcp_limit_output_bytes", "512")?;
                let index = nix::net::if_::if_nametoindex(INTERFACE).doing("a host has lost its TUN device")?;
                let waker = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).doing("cannot make a UDP socket")?;
                setsockopt(&waker, Mark, &OF_LABORATORY).doing("cannot set SO_MARK of a UDP socket")?;
                waker.set_nonblocking(true).doing("cannot set O_NONBLOCK of a UDP socket")?;
                let mut netlink = Netlink::open()?;
                netlink.limit_gso(index, grain.tcp_segments)?;
                netlink.divide(index, station.lanes().len() as u16, &rules(station.lanes()))?;
                Ok((netlink, index, waker))
            })?;
            let mut valve = Valve { station, netlink, interface_index, waker, seen: [0; 2] };
            for &lane in station.lanes() {
                valve.open(lane, u64::from(grain.tcp_segments) * MTU as u64)?;
            }
            Ok(valve)
        };
        Ok(Self { valves: stations.into_iter().map(valve).collect::<Result<_>>()?, tick: grain.tick })
    }

    /// Opens the valves until `stop` is set.
    pub(crate) fn run(mut self, bell: &Bell, clock: Clock, stop: &AtomicBool) -> Result<()> {
        let mut preferred = be_woken_exactly();
        let _ = bell.0.set(thread::current());
        let tick = Duration::from_nanos(self.tick.as_nanos());
        let (mut slept, mut ticked) = (Instant::now(), Instant::now());
        while !stop.load(Ordering::Relaxed) {
            let before = Instant::now();
            thread::park_timeout(tick);
            let woken = Instant::now();
            if woken - before > SHORTEST_SLEEP {
                slept = woken;
            } else if preferred && woken - slept > Duration::from_nanos(LONGEST_WORK.as_nanos()) {
                preferred = false;
                be_ordinary("what opens the valves");
            }
            let is_tick = woken - ticked >= tick;
            if is_tick {
                ticked = woken;
            }
            for valve in &mut self.valves {
                valve.follow(is_tick, clock)?;
            }
        }
        Ok(())
    }
}

impl Valve<'_> {
    fn follow(&mut self, is_tick: bool, clock: Clock) -> Result<()> {
        for &lane in self.station.lanes() {
            let state = self.station.state(lane);
            let seen = &mut self.seen[lane as usize];
            let stalled = is_tick && std::mem::replace(seen, state.passed) == state.passed;
            if let Some(tokens) = state.missing(stalled) {
                self.open(lane, tokens)?;
                self.station.allow(lane, state, tokens, clock.now());
            }
        }
        Ok(())
    }

    fn open(&mut self, lane: Lane, bytes: u64) -> Result<()> {
        self.netlink.shape(self.interface_index, number(lane), NEXT_TO_NOTHING, Bytes::new(bytes), LIMIT)?;
        // A full socket has a datagram on its way.
        let _ = self.waker.send_to(&[], (NOBODY, 9));
        Ok(())
    }
}

/// The lane's number in the kernel.
fn number(lane: Lane) -> u16 {
    lane as u16 + 1
}

/// Which packets go into these lanes: [`Station::lane`] in the kernel's words.
fn rules(lanes: &[Lane]) -> Vec<Rule> {
    const IPV4: u16 = 0x0800;
    const IPV6: u16 = 0x86dd;
    const TCP: u32 = 6;
    const UDP: u32 = 17;
    const FIN: u32 = 0x0001_0000;
    // Words 0 and 2 of IPv4 have the length in their lower half and the protocol in the second byte, word 1 of IPv6 has
    // the length in its upper half and the protocol in the third byte.
    let ipv4 = |protocol: u32| (8, 0x00ff_0000, protocol << 16);
    let ipv6 = |protocol: u32| (4, 0x0000_ff00, protocol << 8);
    let to = |address: Ipv4Addr, prefix: u32| (16, u32::MAX << (32 - prefix), address.to_bits());
    // The words of TCP's header, by their bytes in the packet. The third has its length in 32-bit words, and the flags.
    let empty = |header: i32, words: u32| (header + 12, 0xf000_0000 | FIN, words << 28);

    let rule = |protocol, words: &[_], lane| Rule { protocol, words: words.to_vec(), lane };
    let tcp = number(Lane::Tcp);
    let mut rules = Vec::new();
    // A segment is empty if its packet ends with the header, which has 5 to 15 words.
    for words in 5..=15 {
        rules.push(rule(IPV4, &[ipv4(TCP), (0, 0x0f00_ffff, 5 << 24 | (20 + 4 * words)), empty(20, words)], 0));
        rules.push(rule(IPV6, &[ipv6(TCP), (4, 0xffff_0000, (4 * words) << 16), empty(40, words)], 0));
    }
    rules.extend([rule(IPV4, &[ipv4(TCP)], tcp), rule(IPV6, &[ipv6(TCP)], tcp)]);
    if lanes.contains(&Lane::Datagrams) {
        let datagrams = number(Lane::Datagrams);
        rules.extend([
            rule(IPV4, &[ipv4(UDP), to(NOBODY, 32)], 0),
            rule(IPV4, &[ipv4(UDP), to(AddressPlan::SERVER_NET, 16)], 0),
            rule(IPV4, &[ipv4(UDP)], datagrams),
            rule(IPV6, &[ipv6(UDP)], datagrams),
        ]);
    }
    rules
}

/// Whether this packet only wakes a bucket.
pub(crate) fn is_waker(packet: &[u8]) -> bool {
    packet.first().is_some_and(|first| first >> 4 == 4) && packet.get(16..20) == Some(&NOBODY.octets())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TCP: u8 = 6;
    const UDP: u8 = 17;
    const ICMP: u8 = 1;

    fn ipv4(protocol: u8, header: &[u8], payload: usize, to: [u8; 4]) -> Vec<u8> {
        let mut packet = vec![0; 20];
        (packet[0], packet[9]) = (0x45, protocol);
        packet[2..4].copy_from_slice(&((20 + header.len() + payload) as u16).to_be_bytes());
        packet[12..20].copy_from_slice(&[[10, 77, 0, 1], to].concat());
        [packet, header.to_vec(), vec![0; payload]].concat()
    }

    fn ipv6(protocol: u8, header: &[u8], payload: usize) -> Vec<u8> {
        let mut packet = vec![0; 40];
        (packet[0], packet[6]) = (0x60, protocol);
        packet[4..6].copy_from_slice(&((header.len() + payload) as u16).to_be_bytes());
        [packet, header.to_vec(), vec![0; payload]].concat()
    }

    /// With so many bytes of options.
    fn tcp(options: usize) -> Vec<u8> {
        let mut header = vec![0; 20 + options];
        header[12] = (header.len() / 4) as u8 * 16;
        header
    }

    /// What the kernel does with these rules: the first that holds, or no lane.
    fn by_rules(rules: &[Rule], packet: &[u8]) -> u16 {
        let protocol = if packet[0] >> 4 == 6 { 0x86dd } else { 0x0800 };
        let word = |at: i32| u32::from_be_bytes(packet[at as usize..][..4].try_into().expect("four bytes"));
        let holds = |rule: &&Rule| {
            rule.protocol == protocol && rule.words.iter().all(|&(at, mask, value)| word(at) & mask == value & mask)
        };
        rules.iter().find(holds).map_or(0, |rule| rule.lane)
    }

    /// cases/asymmetric-acks: what Linux's small queues do not hold back waits in no bucket, whatever else the host sends.
    #[test]
    fn kernel_and_model_agree_on_what_waits_and_acknowledgements_do_not() {
        const SERVER: [u8; 4] = [10, 78, 0, 1];
        const OF_GUEST: [u8; 4] = [10, 79, 0, 1];
        let udp = [0; 8];
        let (in_tcp, in_datagrams) = (Some(Lane::Tcp), Some(Lane::Datagrams));
        let mut fin = tcp(12);
        fin[13] = 0x11;
        let packets = [
            ("an acknowledgement", ipv4(TCP, &tcp(12), 0, SERVER), None),
            ("one that reports three holes", ipv4(TCP, &tcp(40), 0, SERVER), None),
            ("a SYN", ipv4(TCP, &tcp(20), 0, SERVER), None),
            ("a reset", ipv4(TCP, &tcp(0), 0, OF_GUEST), None),
            ("an acknowledgement over IPv6", ipv6(TCP, &tcp(40), 0), None),
            ("a segment", ipv4(TCP, &tcp(12), 1448, SERVER), in_tcp),
            ("one byte", ipv4(TCP, &tcp(12), 1, SERVER), in_tcp),
            ("one byte over IPv6", ipv6(TCP, &tcp(40), 1), in_tcp),
            ("the end of the data", ipv4(TCP, &fin, 0, SERVER), in_tcp),
            ("the end of the data over IPv6", ipv6(TCP, &fin, 0), in_tcp),
            ("two segments", ipv4(TCP, &tcp(12), 2896, SERVER), in_tcp),
            ("a segment over IPv6", ipv6(TCP, &tcp(12), 1428), in_tcp),
            ("a flow's datagram", ipv4(UDP, &udp, 1472, SERVER), None),
            ("a guest's datagram", ipv4(UDP, &udp, 1472, OF_GUEST), in_datagrams),
            ("a guest's small datagram, in the order of the others", ipv4(UDP, &udp, 10, OF_GUEST), in_datagrams),
            ("a guest's datagram over IPv6", ipv6(UDP, &udp, 1200), in_datagrams),
            ("a ping", ipv4(ICMP, &udp, 1400, OF_GUEST), None),
            ("a ping over IPv6", ipv6(58, &udp, 1400), None),
        ];
        for has_guest in [false, true] {
            let station = Station::new(true, has_guest, 2);
            let rules = rules(station.lanes());
            for (what, packet, lane) in &packets {
                let lane = lane.filter(|lane| station.lanes().contains(lane));
                assert_eq!(station.lane(packet), lane, "{what}, guest: {has_guest}");
                assert_eq!(by_rules(&rules, packet), lane.map_or(0, number), "{what}, guest: {has_guest}");
            }
            let waker = ipv4(UDP, &udp, 0, NOBODY.octets());
            assert!(is_waker(&waker) && by_rules(&rules, &waker) == 0);
        }
        assert_eq!(Station::new(false, true, 2).lane(&packets[5].1), None, "the queue is in the device");
    }

    #[test]
    fn a_datagram_that_wakes_a_bucket_is_told_by_its_address() {
        let mut packet = [0; 28];
        assert!(!is_waker(&packet));
        packet[0] = 0x45;
        packet[16..20].copy_from_slice(&[192, 0, 2, 1]);
        assert!(is_waker(&packet));
        assert!(!is_waker(&packet[..19]));
    }
}
