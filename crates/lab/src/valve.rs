//! A modern stack on a TUN device: TCP small queues that count the station's queue in the model.
//!
//! What a sender may have queued below it is what its small queue permits: the greater of two packets of TCP and
//! `pacing rate * 2^-shift` (Linux's tcp_small_queue_check(); mac80211 sets a shift of 7, 8 ms). So these packets
//! must lie in the model, before they are sent, and no others: an aggregate takes all that a station has queued, and
//! a round trip includes them. A TUN device cannot hold them back: it takes every packet at once and forgets its
//! socket. The kernel's own small queue is therefore reduced to one packet of TCP (`tcp_limit_output_bytes`), which
//! waits in a token bucket before the device, and this module opens the bucket for what is missing in the model:
//!
//! ```text
//! every tick, for each station:  room = permitted - queued in the model
//!                                tokens = room         if that is a packet more than the tokens left,
//!                                                      or more, and nothing has moved since the last tick,
//!                                                      or less than half of them: the rate has fallen
//! ```
//!
//! The bucket's own rate is next to nothing. So it needs no timer of the kernel, which would fire for each packet and
//! cost several times as much as the packet. New tokens do not wake the bucket. A datagram does, which nobody gets.
//!
//! Datagrams have no small queue. What they need is added to the room, and not counted in the model. One waits behind
//! the packets of TCP before it in the bucket, a tick or two.
//!
//! *What it leaves out*: a socket that paces itself, as BBR's, is not limited by `tcp_limit_output_bytes`; it may have
//! another millisecond, or two packets of TCP, before the bucket. Segments count without the kernel's overhead.

use crate::Grain;
use crate::error::{Doing, Result};
use crate::guest::queues::OF_LABORATORY;
use crate::namespace::Namespace;
use crate::netlink::Netlink;
use crate::real_time::{be_ordinary, be_woken_exactly};
use crate::tcp_switches::sysctl;
use crate::tun::{INTERFACE, MTU};
use lasthop_units::{Bytes, Rate, Span};
use nix::sys::socket::{setsockopt, sockopt::Mark};
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// After so many the thread gives up its priority.
const MOST_LONG_ROUNDS: u32 = 100;
/// The capacity of the bucket's queue. One packet of TCP per connection waits there.
const LIMIT: Bytes = Bytes::new(1000 * (MTU as u64 + 14));
/// The lowest rate of the bucket, less than a packet in a second.
const NEXT_TO_NOTHING: Rate = Rate::from_bps(8_000);

/// More than the bytes of a datagram that wakes a bucket.
const WAKER: u64 = 64;
/// Where the datagrams that wake a bucket go: TEST-NET-1, which is no host's (RFC 5737).
const NOBODY: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

/// The state of one end's queue. The medium's loop and the traffic write it, and its valve reads it.
#[derive(Debug, Default)]
pub(crate) struct Station {
    queues_in_model: bool,
    queued_bytes: AtomicU64,
    passed_bytes: AtomicU64,
    permitted_bytes: AtomicU64,
    permitted_guest_bytes: AtomicU64,
    /// Datagrams of flows: sent by their sockets, and taken from the device, since the start.
    sent_datagram_bytes: AtomicU64,
    taken_datagram_bytes: AtomicU64,
}

impl Station {
    /// A station with its queue in the model, or else in its device.
    pub(crate) fn new(queues_in_model: bool) -> Self {
        Self { queues_in_model, ..Self::default() }
    }

    /// Whether the station's packets wait in the model.
    pub(crate) fn queues_in_model(&self) -> bool {
        self.queues_in_model
    }

    /// Called by the traffic: what small queues permit its senders to have queued.
    pub(crate) fn permit(&self, bytes: Bytes) {
        self.permitted_bytes.store(bytes.get(), Ordering::Relaxed);
    }

    /// Called for a guest: what all senders there may have queued, the scenario's own among them.
    pub(crate) fn permit_guest(&self, bytes: Bytes) {
        self.permitted_guest_bytes.store(bytes.get(), Ordering::Relaxed);
    }

    /// Called by the traffic: a flow's datagram of so many bytes was sent. No small queue holds it back.
    pub(crate) fn on_datagram(&self, bytes: u64) {
        self.sent_datagram_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Called by the loop: the bytes waiting without datagrams of flows, those taken from the device since the start, and
    /// how many of these were such datagrams.
    pub(crate) fn report(&self, queued: u64, passed: u64, datagrams: u64) {
        self.queued_bytes.store(queued, Ordering::Relaxed);
        self.passed_bytes.store(passed, Ordering::Relaxed);
        self.taken_datagram_bytes.store(datagrams, Ordering::Relaxed);
    }

    /// The bytes missing in the model with the datagrams before the bucket, and the bytes taken from the device. Two
    /// packets of TCP are permitted at least, of `least` bytes each. With one the queue would be empty until the next tick.
    fn room(&self, least: u64) -> (u64, u64) {
        let [queued, passed, permitted, of_guest] =
            [&self.queued_bytes, &self.passed_bytes, &self.permitted_bytes, &self.permitted_guest_bytes]
                .map(|bytes| bytes.load(Ordering::Relaxed));
        let [sent, taken] =
            [&self.sent_datagram_bytes, &self.taken_datagram_bytes].map(|bytes| bytes.load(Ordering::Relaxed));
        (permitted.max(of_guest).max(2 * least).saturating_sub(queued) + sent.saturating_sub(taken), passed)
    }
}

/// The valves of all modern stations.
pub(crate) struct Valves<'a> {
    valves: Vec<Valve<'a>>,
    tick: Span,
}

/// One station's token bucket.
struct Valve<'a> {
    station: &'a Station,
    netlink: Netlink,
    interface_index: u32,
    waker: UdpSocket,
    tokens: Tokens,
}

/// What is known of a bucket's tokens.
#[derive(Clone, Copy, Debug)]
struct Tokens {
    /// The bytes of the largest packet of TCP, which are worth an opening.
    least: u64,
    /// Given last, in bytes.
    given: u64,
    /// The bytes that had left the device by then, and by the last tick.
    passed: u64,
    seen: u64,
}

impl<'a> Valves<'a> {
    /// Puts a bucket before each device, open for one packet of TCP.
    ///
    /// # Errors
    /// If the kernel has no tbf.
    pub(crate) fn new(stations: impl IntoIterator<Item = (&'a Namespace, &'a Station)>, grain: &Grain) -> Result<Self> {
        let least = u64::from(grain.tcp_segments) * MTU as u64;
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
                Ok((netlink, index, waker))
            })?;
            let tokens = Tokens { least, given: least, passed: 0, seen: 0 };
            let mut valve = Valve { station, netlink, interface_index, waker, tokens };
            valve.open(least)?;
            Ok(valve)
        };
        Ok(Self { valves: stations.into_iter().map(valve).collect::<Result<_>>()?, tick: grain.tick })
    }

    /// Opens the valves until `stop` is set.
    pub(crate) fn run(mut self, stop: &AtomicBool) -> Result<()> {
        be_woken_exactly();
        let tick = Duration::from_nanos(self.tick.as_nanos());
        // Rounds in a row that took longer than the sleep before them.
        let mut long_rounds = 0;
        while !stop.load(Ordering::Relaxed) {
            thread::sleep(tick);
            let began = Instant::now();
            for valve in &mut self.valves {
                valve.follow()?;
            }
            long_rounds = if began.elapsed() > tick { long_rounds + 1 } else { 0 };
            if long_rounds == MOST_LONG_ROUNDS {
                be_ordinary("what opens the valves");
            }
        }
        Ok(())
    }
}

impl Valve<'_> {
    fn follow(&mut self) -> Result<()> {
        let (room, passed) = self.station.room(self.tokens.least);
        self.tokens.missing(room, passed).map_or(Ok(()), |bytes| self.open(bytes))
    }

    fn open(&mut self, bytes: u64) -> Result<()> {
        self.netlink.shape(self.interface_index, NEXT_TO_NOTHING, Bytes::new(bytes + WAKER), LIMIT)?;
        // A full socket has a datagram in the bucket.
        let _ = self.waker.send_to(&[], (NOBODY, 9));
        Ok(())
    }
}

impl Tokens {
    /// The tokens to give now, with room for `room` bytes in the model and `passed` bytes taken from the device so far.
    fn missing(&mut self, room: u64, passed: u64) -> Option<u64> {
        let left = self.given.saturating_sub(passed - self.passed);
        let stalled = passed == std::mem::replace(&mut self.seen, passed);
        let worth_it = if stalled { 1 } else { self.least };
        let too_few = room >= self.least && room >= left + worth_it;
        // A bucket that holds less than a packet would drop it.
        let tokens = room.max(self.least);
        if !too_few && left <= 2 * tokens {
            return None;
        }
        (self.given, self.passed) = (tokens, passed);
        Some(tokens)
    }
}

/// Whether this packet only wakes a bucket.
pub(crate) fn is_waker(packet: &[u8]) -> bool {
    packet.first().is_some_and(|first| first >> 4 == 4) && packet.get(16..20) == Some(&NOBODY.octets())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_valve_opens_for_what_is_missing_and_lets_the_last_packet_pass() {
        let mut tokens = Tokens { least: 3_000, given: 3_000, passed: 0, seen: 0 };
        // The connection's first round trip: 30,000 bytes are permitted, none is queued.
        assert_eq!(tokens.missing(30_000, 0), Some(30_000));
        assert_eq!(tokens.missing(30_000, 0), None);
        // Half of them came and are queued: nothing is missing.
        assert_eq!(tokens.missing(15_000, 15_000), None);
        // An aggregate has taken them away.
        assert_eq!(tokens.missing(30_000, 15_000), Some(30_000));
        // Less than two segments were used: not worth a request, unless the next packet waits for just those.
        assert_eq!(tokens.missing(30_000, 16_000), None);
        assert_eq!(tokens.missing(30_000, 16_000), Some(30_000));
        assert_eq!(tokens.missing(30_000, 16_000), None);
        // The queue is fuller than permitted.
        assert_eq!(tokens.missing(0, 46_000), None);
    }

    #[test]
    fn a_valve_takes_back_what_is_no_longer_permitted() {
        let mut tokens = Tokens { least: 3_000, given: 3_000, passed: 0, seen: 0 };
        // Before its first round trip a sender's rate has no limit.
        assert_eq!(tokens.missing(4_000_000, 0), Some(4_000_000));
        assert_eq!(tokens.missing(6_000, 15_000), Some(6_000));
        assert_eq!(tokens.missing(3_000, 15_000), None);
        assert_eq!(tokens.missing(20_000, 18_000), Some(20_000));
        // The queue is fuller than permitted. One packet of TCP may still come.
        assert_eq!(tokens.missing(0, 20_000), Some(3_000));
        assert_eq!(tokens.missing(0, 21_000), None);
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
