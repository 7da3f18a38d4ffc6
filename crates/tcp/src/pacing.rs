//! The pacing rate, and when the next segment may be sent: Linux's internal pacing.
//!
//! ```text
//! rate = the law's own, else payload * max(cwnd, segments out) / SRTT * (2 if cwnd < ssthresh / 2, else 1.2)
//! next = previous + length / rate, minus a credit for lateness of at most half of that
//! ```
//!
//! Under a law that sets its pace, and under a bound that paces, segments are sent in bursts. A burst is what Linux puts into one packet
//! for the device to cut (TSO autosizing): two segments, or a millisecond at the rate, but at most half a window. This
//! matters because of delayed ACKs: a single segment is acknowledged only when the next one arrives, or the receiver's
//! timer ends.
//!
//! A receiver that acknowledged the first segment of a burst of two would keep that phase, and never again see two
//! together. In Linux a segment with PSH ends this, because it is acknowledged at once (tcp_measure_rcv_mss(),
//! tcp_cleanup_rbuf(), since 6.7). PSH marks the end of a write of the application. So a sender that is paced in bursts
//! ends one with PSH every 64 KiB.
//!
//! *What it leaves out*: bursts and PSH of other senders. Each segment is then released by itself.

use lasthop_units::{Bytes, Rate, Span, Time};

/// `tcp_pacing_ss_ratio`.
const SLOW_START_PERCENT: u64 = 200;
/// `tcp_pacing_ca_ratio`.
const AVOIDANCE_PERCENT: u64 = 120;
/// Segments at the start of a connection that are not paced, as with the queueing discipline `fq`.
pub(crate) const UNPACED_SEGMENTS: u64 = 10;

/// `sk_pacing_shift`: 2^-10 s.
const PACING_SHIFT: u8 = 10;
/// `tcp_min_tso_segs`.
const LEAST_AT_ONCE: u64 = 2;
/// `tcp_tso_rtt_log`: the part of a burst beyond the rate's is the largest burst, halved for each 2^9 us of the lowest
/// RTT.
const RTT_SHIFT: u32 = 9;
/// `sk_gso_max_size`: 64 KiB minus the headers and one byte.
const MOST_AT_ONCE: u64 = 65_215;

/// A typical size of an application's write: iperf and the laboratory up to 128 KiB, less with a nearly full send
/// buffer.
const WRITE_BYTES: u64 = 65_536;

/// The segments of the current burst, and the bytes since the last PSH.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Burst {
    at: Time,
    due: Time,
    segments: u64,
    bytes: u64,
    is_full: bool,
    /// Bytes sent since the latest PSH.
    unpushed_bytes: u64,
}

impl Burst {
    /// Whether it is sent at `now`.
    pub(crate) fn is_of(&self, now: Time) -> bool {
        self.at == now
    }

    /// Whether the burst sent at `now` has room for one more segment; `quantum`: segments in a burst.
    pub(crate) fn has_room(&self, now: Time, quantum: u64) -> bool {
        self.at == now && (1..quantum).contains(&self.segments)
    }

    /// A segment of `bytes` is sent now; the first of its burst might have been sent at `due`. Returns when the next
    /// burst may be sent.
    pub(crate) fn on_sent(&mut self, now: Time, due: Time, bytes: u64, quantum: u64, rate: Rate) -> Time {
        if !self.has_room(now, quantum) {
            *self = Self { at: now, due, unpushed_bytes: self.unpushed_bytes, ..Self::default() };
        }
        self.segments += 1;
        self.bytes += bytes;
        self.unpushed_bytes += bytes;
        self.is_full = self.segments >= quantum;
        next(now, self.due, self.bytes, rate)
    }

    /// Whether the segment just sent must have PSH.
    pub(crate) fn take_push(&mut self) -> bool {
        let push = self.is_full && self.unpushed_bytes >= WRITE_BYTES;
        if push {
            self.unpushed_bytes = 0;
        }
        push
    }
}

/// Segments in one burst at `rate`: Linux's tcp_tso_autosize(), and tcp_cwnd_test() since 3.18 ("ensure we have at least
/// 2 GSO packets in flight"). `shift`: the socket's `sk_pacing_shift`, if set; `min_rtt`: the lowest RTT of the last
/// minutes.
pub(crate) fn quantum_segments(
    rate: Rate,
    payload_bytes: u32,
    cwnd_segments: u32,
    min_rtt: Option<Span>,
    shift: Option<u8>,
) -> u64 {
    let by_rate = (rate.as_bps() / 8) >> shift.unwrap_or(PACING_SHIFT);
    let by_rtt = min_rtt.map_or(0, |rtt| {
        let halvings = u32::try_from(rtt.as_micros() >> RTT_SHIFT).unwrap_or(u32::MAX);
        MOST_AT_ONCE.checked_shr(halvings).unwrap_or(0)
    });
    let autosized = (by_rate.saturating_add(by_rtt).min(MOST_AT_ONCE) / u64::from(payload_bytes)).max(LEAST_AT_ONCE);
    autosized.min(u64::from(cwnd_segments / 2).max(1))
}

/// The rate of `window` segments in a round trip; zero before the first RTT sample.
pub(crate) fn rate(payload_bytes: u32, window: u32, doubling: bool, srtt_ns: u64) -> Rate {
    let percent = if doubling { SLOW_START_PERCENT } else { AVOIDANCE_PERCENT };
    if srtt_ns == 0 {
        return Rate::ZERO;
    }
    let bits = u64::from(payload_bytes) * u64::from(window) * 8 * percent / 100;
    Rate::from_bps(match bits.checked_mul(1_000_000_000) {
        Some(scaled) => scaled / srtt_ns,
        None => u64::try_from(u128::from(bits) * 1_000_000_000 / u128::from(srtt_ns)).unwrap_or(u64::MAX),
    })
}

/// When the next segment may be sent, if one of `bytes` is sent now and might have been sent at `due`.
pub(crate) fn next(now: Time, due: Time, bytes: u64, rate: Rate) -> Time {
    if rate == Rate::ZERO {
        return now;
    }
    let length = rate.transmission_time(Bytes::new(bytes));
    let late = now.saturating_since(due);
    let credit = Span::from_nanos(length.as_nanos() / 2).min(late);
    now.saturating_add(length.saturating_sub(credit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_a_window_and_a_fifth_in_a_round_trip() {
        // 100 segments of 1000 bytes in 100 ms are 8 Mb/s; times 1.2, or times 2.
        let hundred_ms = 100_000_000;
        assert_eq!(rate(1000, 100, false, hundred_ms), Rate::from_mbps(9.6));
        assert_eq!(rate(1000, 100, true, hundred_ms), Rate::from_mbps(16.0));
        assert_eq!(rate(1000, 100, true, 0), Rate::ZERO);
        // A window of 3 GB in 1 ns: past 2^64 bit/s.
        assert_eq!(rate(1500, 2_000_000, false, 1), Rate::from_bps(u64::MAX));
    }

    #[test]
    fn two_segments_go_at_once_or_what_the_rate_moves_in_a_millisecond() {
        let at_once =
            |mbps, rtt_ms| quantum_segments(Rate::from_mbps(mbps), 1448, 1000, Some(Span::from_millis(rtt_ms)), None);
        assert_eq!(at_once(0.44, 100), 2);
        // 100 Mb/s are 12,500,000 bytes in 1 s, and 12,207 in 2^-10 s: 8 segments of 1448 bytes.
        assert_eq!(at_once(100.0, 100), 8);
        // 4 ms is 7 times 2^9 us. 65,215 bytes halved seven times are 509: in all 8.8 segments. With 1 ms halved once:
        // 32,607.
        assert_eq!(at_once(100.0, 4), 8);
        assert_eq!(at_once(0.44, 1), 22);
        // At most one packet of 64 KiB.
        assert_eq!(at_once(10_000.0, 100), 45);
        // A driver that sets 8 ms: 97,656 bytes.
        assert_eq!(quantum_segments(Rate::from_mbps(40.0), 1448, 1000, None, Some(7)), 26);
        // Half of the window, but at least one.
        let of_window = |cwnd| quantum_segments(Rate::from_mbps(100.0), 1448, cwnd, None, None);
        assert_eq!([1, 2, 3, 4, 15, 16, 100].map(of_window), [1, 1, 1, 2, 7, 8, 8]);
    }

    #[test]
    fn a_burst_takes_as_long_as_all_its_segments() {
        let (rate, at) = (Rate::from_mbps(8.0), |us| Time::ZERO + Span::from_micros(us));
        let mut burst = Burst::default();
        assert!(!burst.has_room(at(0), 2));
        // 1 byte/us, on time: 1000 us each.
        assert_eq!(burst.on_sent(at(5000), at(5000), 1000, 2, rate), at(6000));
        assert!(burst.has_room(at(5000), 2) && !burst.has_room(at(5001), 2));
        assert_eq!(burst.on_sent(at(5000), at(6000), 1000, 2, rate), at(7000));
        assert!(!burst.has_room(at(5000), 2));
        // 400 us late: the credit is the burst's, not each segment's.
        assert_eq!(burst.on_sent(at(7400), at(7000), 1000, 2, rate), at(8000));
        assert_eq!(burst.on_sent(at(7400), at(8000), 1000, 2, rate), at(9000));
    }

    #[test]
    fn a_late_segment_earns_half_of_its_length_at_most() {
        let (rate, at) = (Rate::from_mbps(8.0), |us| Time::ZERO + Span::from_micros(us));
        assert_eq!(next(at(1000), at(1000), 1000, rate), at(2000)); // 1000 bytes at 1 byte/us
        assert_eq!(next(at(1200), at(1000), 1000, rate), at(2000)); // 200 us late
        assert_eq!(next(at(5000), at(1000), 1000, rate), at(5500)); // at most 500 us
    }
}
