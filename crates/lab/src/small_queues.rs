//! TCP small queues of a modern stack whose queue is in the model: what senders may have queued, what they have, and whether
//! the [valve](crate::valve) held them back.
//!
//! What a sender may have queued below it is that of a simulated one ([`Tsq::permitted`](lasthop_tcp::Tsq::permitted)): two
//! packets of TCP, or `pacing rate * 2^-shift`. Part of it is the packet of two segments that waits in the valve. The valve opens
//! before the last of what lies in the model has left, so the model holds all but one segment ([`Station::in_model`]).
//!
//! Packets that no small queue holds back in Linux are in no lane: acknowledgements without data, what opens and what
//! resets a connection, ICMP, datagrams of flows. A guest's own datagrams have a lane, for the send buffers of its
//! sockets hold them back.

use crate::addresses::AddressPlan;
use crate::tun::MTU;
use lasthop_units::{Bytes, Span, Time};
use std::sync::atomic::{AtomicU64, Ordering};

/// What a UDP socket of default send buffer holds: 212,992 bytes (net.core.wmem_default), counted as
/// [`PACKET_IN_BUFFER`](crate::guest::queues::PACKET_IN_BUFFER) for each packet.
const DEFAULT_BUFFER: u64 = 212_992 / crate::guest::queues::PACKET_IN_BUFFER * MTU as u64;
/// What is permitted is asked for every 4 ms ([`LOOK_EVERY`](crate::traffic::LOOK_EVERY)). After this time it is no longer known.
const KNOWN_FOR: Span = Span::from_millis(20);

/// The packets that wait in one bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// TCP with data.
    Tcp,
    /// A guest's datagrams.
    Datagrams,
}

/// The state of one end's queue. The medium's loop and the traffic write it, and its valve reads it. Times are of the run.
#[derive(Debug)]
pub(crate) struct Station {
    queues_in_model: bool,
    has_guest: bool,
    /// The largest packet of TCP.
    packet: u64,
    /// What the senders may have queued, by what the traffic knows, and by what the kernel says of a guest's.
    permitted: AtomicU64,
    permitted_guest: AtomicU64,
    permitted_datagrams: AtomicU64,
    permitted_at: AtomicU64,
    tcp: Counts,
    datagrams: Counts,
}

/// The counters of a lane, in bytes and nanoseconds.
#[derive(Debug, Default)]
struct Counts {
    queued: AtomicU64,
    /// Taken from the device since the start, and how many may be, by the tokens given so far.
    passed: AtomicU64,
    allowed: AtomicU64,
    /// Since when the valve holds senders back; 0: it does not.
    held_since: AtomicU64,
    held: AtomicU64,
}

/// A lane at one moment, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    /// The largest packet, but for what the device cuts.
    packet: u64,
    permitted: u64,
    queued: u64,
    /// The tokens left in the bucket.
    left: u64,
    pub(crate) passed: u64,
}

impl Station {
    /// A station with its queue in the model, or else in its device. `tcp_segments`: of the largest packet of TCP.
    pub(crate) fn new(queues_in_model: bool, has_guest: bool, tcp_segments: u32) -> Self {
        Self {
            queues_in_model,
            has_guest: has_guest && queues_in_model,
            packet: u64::from(tcp_segments) * MTU as u64,
            permitted: AtomicU64::new(0),
            permitted_guest: AtomicU64::new(0),
            permitted_datagrams: AtomicU64::new(0),
            permitted_at: AtomicU64::new(0),
            tcp: Counts::default(),
            datagrams: Counts::default(),
        }
    }

    /// Whether the station's packets wait in the model.
    pub(crate) fn queues_in_model(&self) -> bool {
        self.queues_in_model
    }

    /// The lanes that it has.
    pub(crate) fn lanes(&self) -> &'static [Lane] {
        if self.has_guest { &[Lane::Tcp, Lane::Datagrams] } else { &[Lane::Tcp] }
    }

    /// What of a sender's small queue, two packets at least, may lie in the model.
    pub(crate) fn in_model(&self, small_queue: Bytes) -> Bytes {
        Bytes::new(small_queue.get().max(2 * self.packet) - MTU as u64)
    }

    /// Called by the traffic: what small queues permit its senders to have queued.
    pub(crate) fn permit(&self, bytes: Bytes, now: Time) {
        self.permitted.store(bytes.get(), Ordering::Relaxed);
        self.permitted_at.store(now.as_nanos(), Ordering::Relaxed);
    }

    /// Called for a guest: what all senders there may have queued, the scenario's own among them, and its sockets of
    /// datagrams.
    pub(crate) fn permit_guest(&self, tcp: Bytes, datagrams: Bytes) {
        self.permitted_guest.store(tcp.get(), Ordering::Relaxed);
        self.permitted_datagrams.store(datagrams.get(), Ordering::Relaxed);
    }

    /// The packet's lane, if it has one.
    pub(crate) fn lane(&self, packet: &[u8]) -> Option<Lane> {
        const TCP: u8 = 6;
        const UDP: u8 = 17;
        if !self.queues_in_model {
            return None;
        }
        let is_ipv6 = packet[0] >> 4 == 6;
        let (protocol, header) = if is_ipv6 { (packet[6], 40) } else { (packet[9], usize::from(packet[0] & 0xf) * 4) };
        match protocol {
            TCP => {
                const FIN: u8 = 1;
                let byte = |at: usize| packet.get(header + at).copied().unwrap_or_default();
                let is_empty = packet.len() <= header + 4 * usize::from(byte(12) >> 4);
                (!is_empty || byte(13) & FIN > 0).then_some(Lane::Tcp)
            }
            UDP if self.has_guest && (is_ipv6 || !AddressPlan::has_server(packet)) => Some(Lane::Datagrams),
            _ => None,
        }
    }

    /// Called by the loop: the bytes waiting in the model, and those taken from the device since the start. Returns whether
    /// the valve has to do something about the lane.
    pub(crate) fn report(&self, lane: Lane, queued: u64, passed: u64, now: Time) -> bool {
        let counts = self.counts(lane);
        counts.queued.store(queued, Ordering::Relaxed);
        counts.passed.store(passed, Ordering::Relaxed);
        let state = self.state(lane);
        let known = now.as_nanos() <= self.permitted_at.load(Ordering::Relaxed) + KNOWN_FOR.as_nanos();
        if state.is_shut() && (state.queued < state.permitted / 2 || !known) {
            let _ = counts.held_since.compare_exchange(0, now.as_nanos(), Ordering::Relaxed, Ordering::Relaxed);
        } else {
            counts.on_open(now);
        }
        state.missing(false).is_some()
    }

    /// Called by the valve: from now on so many bytes may come.
    pub(crate) fn allow(&self, lane: Lane, state: State, tokens: u64, now: Time) {
        let counts = self.counts(lane);
        counts.allowed.store(state.passed + tokens, Ordering::Relaxed);
        counts.on_open(now);
    }

    /// The lane now.
    pub(crate) fn state(&self, lane: Lane) -> State {
        let [permitted, of_guest, datagrams] = [&self.permitted, &self.permitted_guest, &self.permitted_datagrams]
            .map(|bytes| bytes.load(Ordering::Relaxed));
        let counts = self.counts(lane);
        let [queued, passed, allowed] =
            [&counts.queued, &counts.passed, &counts.allowed].map(|bytes| bytes.load(Ordering::Relaxed));
        let permitted = match lane {
            Lane::Tcp => permitted.max(of_guest).max(self.packet),
            Lane::Datagrams => datagrams.max(DEFAULT_BUFFER),
        };
        State { packet: self.packet, permitted, queued, left: allowed.saturating_sub(passed), passed }
    }

    /// Forgets for how long the valve has held senders back.
    pub(crate) fn reset(&self) {
        for counts in [&self.tcp, &self.datagrams] {
            counts.held_since.store(0, Ordering::Relaxed);
            counts.held.store(0, Ordering::Relaxed);
        }
    }

    /// For how long the valve has held senders back: it was shut, and the model held less than half of what small queues
    /// permit, or what they permit had not been asked for.
    pub(crate) fn held(&self) -> Span {
        [&self.tcp, &self.datagrams]
            .map(|counts| Span::from_nanos(counts.held.load(Ordering::Relaxed)))
            .into_iter()
            .max()
            .unwrap_or_default()
    }

    fn counts(&self, lane: Lane) -> &Counts {
        match lane {
            Lane::Tcp => &self.tcp,
            Lane::Datagrams => &self.datagrams,
        }
    }
}

impl Counts {
    /// The valve does not hold anybody back from now on.
    fn on_open(&self, now: Time) {
        let since = self.held_since.swap(0, Ordering::Relaxed);
        if since > 0 {
            self.held.fetch_add(now.as_nanos().saturating_sub(since), Ordering::Relaxed);
        }
    }
}

impl State {
    /// Whether a packet has to wait for the valve.
    fn is_shut(self) -> bool {
        self.left < self.packet
    }

    /// The tokens that the bucket must have from now on, if what it has does not do. `stalled`: nothing has passed for a
    /// while, so a packet may be waiting for the last few bytes.
    pub(crate) fn missing(self, stalled: bool) -> Option<u64> {
        let room = self.permitted.saturating_sub(self.queued);
        // So the valve opens four times, at most, in the time in which the sender's rate takes what is permitted. What is left in a
        // bucket that is shut is of no use, so such a bucket gets what is missing as soon as that is a packet.
        let worth_it = if stalled { 1 } else { self.packet.max(self.permitted / 4) };
        let of_use = if self.is_shut() { 0 } else { self.left };
        let too_few = room >= self.packet && room >= of_use + worth_it;
        // A bucket that holds less than a packet would drop it.
        let tokens = room.max(self.packet);
        // The sender's rate has fallen.
        let too_many = self.left > 2 * tokens;
        (too_few || too_many).then_some(tokens)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: u64 = 3000;

    fn state(permitted: u64, queued: u64, left: u64) -> State {
        State { packet: PACKET, permitted, queued, left, passed: 0 }
    }

    #[test]
    fn a_bucket_gets_what_is_missing_before_it_has_run_out() {
        // 12,500 bytes in a millisecond are 100 Mb/s. None is queued, for the wire is as fast: a quarter of what is
        // permitted has been used, and there are tokens left for the time until the valve opens.
        assert_eq!(state(12_500, 0, 9_376).missing(false), None);
        assert_eq!(state(12_500, 0, 9_375).missing(false), Some(12_500));
        // The wire is the bottleneck: all lies in the model, and a quarter of it has left.
        assert_eq!(state(12_500, 12_500, 0).missing(false), None);
        assert_eq!(state(12_500, 9_375, 0).missing(false), Some(3_125));
        // An aggregate has taken all away.
        assert_eq!(state(100_000, 0, 0).missing(false), Some(100_000));
        // The queue is fuller than permitted.
        assert_eq!(state(6_000, 46_000, 0).missing(true), None);
    }

    #[test]
    fn a_sender_that_may_have_two_packets_never_waits_for_ever() {
        // Whatever is left in the bucket: with nothing queued the valve opens.
        for left in 0..PACKET {
            assert!(state(2 * PACKET, 0, left).missing(false).is_some(), "{left}");
            assert!(state(PACKET + PACKET / 2, 0, left).missing(false).is_some(), "{left}");
        }
        // cases/asymmetric-acks: one segment has left of a packet of two that came, and half a packet is left in the bucket.
        assert_eq!(state(PACKET + PACKET / 2, PACKET / 2, PACKET / 2).missing(false), Some(PACKET));
        // Bytes that were counted otherwise than by the bucket, which has less than the packet before it.
        assert_eq!(state(2 * PACKET, 0, PACKET + 70).missing(false), None);
        assert_eq!(state(2 * PACKET, 0, PACKET + 70).missing(true), Some(2 * PACKET));
        // Once it has all that is permitted, nothing more is done for a sender that rests.
        assert_eq!(state(2 * PACKET, 0, 2 * PACKET).missing(true), None);
    }

    #[test]
    fn a_bucket_loses_what_is_no_longer_permitted() {
        // Before its first round trip a sender's rate has no limit.
        assert_eq!(state(4_000_000, 0, 3_000).missing(false), Some(4_000_000));
        assert_eq!(state(6_000, 0, 3_985_000).missing(false), Some(6_000));
        // The queue is fuller than permitted. One packet of TCP may still come.
        assert_eq!(state(20_000, 20_000, 20_000).missing(false), Some(3_000));
        assert_eq!(state(20_000, 20_000, 3_000).missing(false), None);
    }

    #[test]
    fn what_counts_as_held_is_a_shut_valve_before_a_queue_that_is_half_empty() {
        let at = |ms| Time::ZERO + Span::from_millis(ms);
        let station = Station::new(true, false, 2);
        let report = |queued, passed, now| station.report(Lane::Tcp, queued, passed, now);
        station.permit(Bytes::new(20_000), at(1));
        let state = station.state(Lane::Tcp);
        station.allow(Lane::Tcp, state, 20_000, at(1));
        assert!(!report(0, 0, at(1)) && !report(10_000, 10_000, at(2)));
        // All 20,000 bytes have come. First they lie in the queue; from 5 ms on there is less than half, and nothing may come.
        assert!(!report(20_000, 20_000, at(3)));
        assert!(report(10_000, 20_000, at(4)) && report(9_999, 20_000, at(5)) && report(0, 20_000, at(6)));
        assert_eq!(station.held(), Span::ZERO);
        let state = station.state(Lane::Tcp);
        station.allow(Lane::Tcp, state, state.missing(false).expect("all is missing"), at(9));
        assert_eq!(station.held(), Span::from_millis(4));
        // A sender that rests is not held, however empty its queue is: the valve is open.
        report(0, 20_000, at(20));
        report(0, 23_000, at(22));
        assert_eq!(station.held(), Span::from_millis(4));
        // What is permitted was last known at 1 ms. From 21 ms on a shut valve holds, whatever is queued.
        report(17_000, 40_000, at(30));
        report(17_000, 40_000, at(33));
        station.permit(Bytes::new(20_000), at(35));
        report(17_000, 40_000, at(35));
        assert_eq!(station.held(), Span::from_millis(9));
        station.reset();
        assert_eq!(station.held(), Span::ZERO);
    }

    #[test]
    fn a_guest_may_queue_what_the_kernel_says_of_its_sockets_and_each_datagram_socket_a_buffer() {
        let station = Station::new(true, true, 2);
        station.permit(Bytes::new(7_000), Time::ZERO);
        assert_eq!(station.state(Lane::Tcp).permitted, 7_000);
        // 92 packets of 2304 bytes in 212,992.
        assert_eq!(station.state(Lane::Datagrams).permitted, 138_000);
        station.permit_guest(Bytes::new(9_000), Bytes::new(500_000));
        assert_eq!((station.state(Lane::Tcp).permitted, station.state(Lane::Datagrams).permitted), (9_000, 500_000));
        assert_eq!(Station::new(true, false, 2).lanes(), [Lane::Tcp]);
    }
}
