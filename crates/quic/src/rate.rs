//! The delivery rate of a QUIC connection, of whole datagrams.
//!
//! quinn tells when an acknowledged datagram was sent, but not which one it was. Those that left at one moment share a record.

use lasthop_connection::rate::{DeliveryRate, RateSample, Sent};
use lasthop_units::{Span, Time};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Older records than so many round trips before the newest acknowledged one are of datagrams that are known lost.
const KEPT_ROUND_TRIPS: u32 = 4;

/// The rate, and what was so when datagrams left.
#[derive(Clone, Debug)]
pub(crate) struct Departures {
    pub(crate) rate: DeliveryRate,
    /// Time 0.
    base: Instant,
    /// In the order of their times.
    records: VecDeque<(Instant, Sent)>,
}

impl Departures {
    pub(crate) fn new(now: Instant) -> Self {
        Self { rate: DeliveryRate::default(), base: now, records: VecDeque::new() }
    }

    fn time(&self, at: Instant) -> Time {
        Time::ZERO + span(at - self.base)
    }

    /// A datagram leaves.
    pub(crate) fn on_sent(&mut self, now: Instant, in_flight_before: bool) {
        let sent = self.rate.on_sent(self.time(now), in_flight_before);
        if self.records.back().is_none_or(|(last, _)| *last < now) {
            self.records.push_back((now, sent));
        }
    }

    /// A datagram is acknowledged that left at `sent`.
    pub(crate) fn on_delivered(&mut self, sent: Instant) {
        // A probe of the MTU has no record.
        let Ok(found) = self.records.binary_search_by(|(at, _)| at.cmp(&sent)) else { return };
        self.rate.on_segment_delivered(&self.records[found].1, self.time(sent));
    }

    /// The acknowledgement delivered so many, the newest of which left at `newest`. Returns its sample, if it is one.
    pub(crate) fn on_ack(
        &mut self,
        now: Instant,
        newest: Instant,
        delivered: u32,
        min_rtt: Duration,
    ) -> Option<RateSample> {
        if let Some(oldest) = newest.checked_sub(min_rtt * KEPT_ROUND_TRIPS) {
            self.forget_before(oldest);
        }
        self.rate.on_ack(self.time(now), delivered, span(min_rtt).as_nanos())
    }

    /// No datagram that left before is in flight.
    pub(crate) fn forget_before(&mut self, at: Instant) {
        while self.records.front().is_some_and(|(left, _)| *left < at) {
            self.records.pop_front();
        }
    }

    /// Nothing is in flight.
    pub(crate) fn forget_all(&mut self) {
        self.records.clear();
    }
}

fn span(duration: Duration) -> Span {
    Span::from_nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "there is no other way to an Instant; nothing but differences to it counts"
)]
mod tests {
    use super::*;

    /// Two that left together, and one before. A record that was forgotten gives no sample, nor does an interval below a round trip.
    #[test]
    fn the_newest_one_of_an_acknowledgement_counts() {
        let base = Instant::now();
        let at = |ms| base + Duration::from_millis(ms);
        let min_rtt = Duration::from_millis(50);
        let mut left = Departures::new(base);
        left.on_sent(at(0), false);
        left.rate.on_app_limited(1);
        for _ in 0..2 {
            left.on_sent(at(30), true);
        }
        for sent in [0, 30, 30] {
            left.on_delivered(at(sent));
        }
        let sample = left.on_ack(at(100), at(30), 3, min_rtt).expect("a sample");
        assert_eq!((sample.delivered, sample.interval, sample.app_limited), (3, Span::from_millis(100), true));
        assert!(!left.rate.is_app_limited());
        left.on_sent(at(110), false);
        left.on_delivered(at(110));
        assert_eq!(left.on_ack(at(120), at(110), 1, min_rtt), None);
        left.on_sent(at(130), true);
        left.forget_before(at(131));
        left.on_delivered(at(130));
        assert_eq!(left.on_ack(at(230), at(130), 1, min_rtt), None);
    }
}
