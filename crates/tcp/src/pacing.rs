//! The pacing rate, and when the next segment may go: Linux's internal pacing.
//!
//! ```text
//! rate = payload * max(cwnd, segments out) / SRTT * (2 if cwnd < ssthresh / 2, else 1.2)
//! next = previous + length / rate, less a credit of at most half of that for having come late
//! ```
//!
//! *What it leaves out*: bursts of a millisecond's worth (TSO autosizing). Each segment is released by itself.

use units::{Bytes, Rate, Span, Time};

/// `tcp_pacing_ss_ratio`.
const SLOW_START_PERCENT: u64 = 200;
/// `tcp_pacing_ca_ratio`.
const AVOIDANCE_PERCENT: u64 = 120;
/// Segments at the start of a connection that are not paced, as with the `fq` queueing discipline.
pub(crate) const UNPACED_SEGMENTS: u64 = 10;

/// The rate at which `window` segments a round trip are sent; zero before there is an RTT.
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

/// When the next segment may go, if one of `bytes` goes now and might have gone at `due`.
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
        // 100 segments of 1000 bytes in 100 ms are 8 Mb/s; 1.2 of it, or twice.
        let hundred_ms = 100_000_000;
        assert_eq!(rate(1000, 100, false, hundred_ms), Rate::from_mbps(9.6));
        assert_eq!(rate(1000, 100, true, hundred_ms), Rate::from_mbps(16.0));
        assert_eq!(rate(1000, 100, true, 0), Rate::ZERO);
        // A window of 3 GB in 1 ns: past 2^64 bit/s.
        assert_eq!(rate(1500, 2_000_000, false, 1), Rate::from_bps(u64::MAX));
    }

    #[test]
    fn a_late_segment_earns_half_of_its_length_at_most() {
        let (rate, at) = (Rate::from_mbps(8.0), |us| Time::ZERO + Span::from_micros(us));
        assert_eq!(next(at(1000), at(1000), 1000, rate), at(2000)); // 1000 bytes at 1 byte/us
        assert_eq!(next(at(1200), at(1000), 1000, rate), at(2000)); // 200 us late
        assert_eq!(next(at(5000), at(1000), 1000, rate), at(5500)); // at most 500 us
    }
}
