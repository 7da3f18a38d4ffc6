//! The delivery rate of a QUIC connection, as `lasthop_tcp` has it (draft-cheng-iccrg-delivery-rate-estimation), of whole datagrams.
//!
//! quinn tells when an acknowledged datagram was sent, but not which one it was. Those that left at one moment share a record.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Older records than so many round trips before the newest acknowledged one are of datagrams that are known lost.
const KEPT_ROUND_TRIPS: u32 = 4;

/// What was so when datagrams left.
#[derive(Clone, Copy, Debug)]
struct Record {
    at: Instant,
    delivered: u32,
    delivered_at: Instant,
    /// When the first datagram of the same flight left.
    first_sent_at: Instant,
    app_limited: bool,
}

/// What an acknowledgement says of the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RateSample {
    pub(crate) prior_delivered: u32,
    /// Since then.
    pub(crate) delivered: u32,
    pub(crate) interval: Duration,
    pub(crate) app_limited: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct DeliveryRate {
    /// In the order of their times.
    records: VecDeque<Record>,
    delivered: u32,
    delivered_at: Instant,
    first_sent_at: Instant,
    /// The application limits the rate until this many are delivered; 0: it does not.
    app_limited_until: u32,
    /// Of the newest datagram of the acknowledgement under way.
    prior: Option<Record>,
}

impl DeliveryRate {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            records: VecDeque::new(),
            delivered: 0,
            delivered_at: now,
            first_sent_at: now,
            app_limited_until: 0,
            prior: None,
        }
    }

    /// A datagram leaves.
    pub(crate) fn on_sent(&mut self, now: Instant, in_flight_before: bool) {
        if !in_flight_before {
            (self.first_sent_at, self.delivered_at) = (now, now);
        }
        if self.records.back().is_none_or(|last| last.at < now) {
            self.records.push_back(Record {
                at: now,
                delivered: self.delivered,
                delivered_at: self.delivered_at,
                first_sent_at: self.first_sent_at,
                app_limited: self.app_limited_until != 0,
            });
        }
    }

    /// A datagram is acknowledged that left at `sent`.
    pub(crate) fn on_delivered(&mut self, sent: Instant) {
        // A probe of the MTU has no record.
        let Ok(found) = self.records.binary_search_by(|record| record.at.cmp(&sent)) else { return };
        if self.prior.is_none_or(|prior| prior.at < sent) {
            self.prior = Some(self.records[found]);
        }
    }

    /// The acknowledgement delivered so many. Returns its sample, if it is one.
    pub(crate) fn on_ack(&mut self, now: Instant, delivered: u32, min_rtt: Duration) -> Option<RateSample> {
        if delivered > 0 {
            self.delivered = self.delivered.wrapping_add(delivered);
            self.delivered_at = now;
            if self.app_limited_until != 0 && self.delivered > self.app_limited_until {
                self.app_limited_until = 0;
            }
        }
        let prior = self.prior.take()?;
        self.first_sent_at = prior.at;
        if let Some(oldest) = prior.at.checked_sub(min_rtt * KEPT_ROUND_TRIPS) {
            self.forget_before(oldest);
        }
        let interval = (prior.at - prior.first_sent_at).max(now - prior.delivered_at);
        if interval.is_zero() || interval < min_rtt {
            return None;
        }
        Some(RateSample {
            prior_delivered: prior.delivered,
            delivered: self.delivered.wrapping_sub(prior.delivered),
            interval,
            app_limited: prior.app_limited,
        })
    }

    /// No datagram that left before is in flight.
    pub(crate) fn forget_before(&mut self, at: Instant) {
        while self.records.front().is_some_and(|record| record.at < at) {
            self.records.pop_front();
        }
    }

    /// Nothing is in flight.
    pub(crate) fn forget_all(&mut self) {
        self.records.clear();
    }

    /// The application has no data to send although the window would allow it.
    pub(crate) fn on_app_limited(&mut self, in_flight: u32) {
        self.app_limited_until = self.delivered.wrapping_add(in_flight).max(1);
    }

    pub(crate) fn is_app_limited(&self) -> bool {
        self.app_limited_until != 0
    }

    pub(crate) fn delivered(&self) -> u32 {
        self.delivered
    }

    pub(crate) fn delivered_at(&self) -> Instant {
        self.delivered_at
    }
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "there is no other way to an Instant; nothing but differences to it counts"
)]
mod tests {
    use super::*;

    /// One datagram every 100 ms, each acknowledged 500 ms later: five in 500 ms, however many have left.
    #[test]
    fn ten_datagrams_a_second_are_ten_a_second() {
        let base = Instant::now();
        let at = |ms| base + Duration::from_millis(ms);
        let mut rate = DeliveryRate::new(base);
        let mut last = None;
        for tick in 0..30 {
            if tick >= 5 {
                rate.on_delivered(at(100 * (tick - 5)));
                last = rate.on_ack(at(100 * tick), 1, Duration::from_millis(500));
            }
            rate.on_sent(at(100 * tick), tick > 0);
        }
        let expected =
            RateSample { prior_delivered: 20, delivered: 5, interval: Duration::from_millis(500), app_limited: false };
        assert_eq!((last, rate.delivered()), (Some(expected), 25));
    }

    /// Two that left together, and one before. A record that was forgotten gives no sample, nor does an interval below a round trip.
    #[test]
    fn the_newest_one_of_an_acknowledgement_counts() {
        let base = Instant::now();
        let at = |ms| base + Duration::from_millis(ms);
        let mut rate = DeliveryRate::new(base);
        rate.on_sent(at(0), false);
        rate.on_app_limited(1);
        for _ in 0..2 {
            rate.on_sent(at(30), true);
        }
        for sent in [0, 30, 30] {
            rate.on_delivered(at(sent));
        }
        let sample = rate.on_ack(at(100), 3, Duration::from_millis(50)).expect("a sample");
        assert_eq!((sample.delivered, sample.interval, sample.app_limited), (3, Duration::from_millis(100), true));
        assert!(!rate.is_app_limited());
        rate.on_sent(at(110), false);
        rate.on_delivered(at(110));
        assert_eq!(rate.on_ack(at(120), 1, Duration::from_millis(50)), None);
        rate.on_sent(at(130), true);
        rate.forget_before(at(131));
        rate.on_delivered(at(130));
        assert_eq!(rate.on_ack(at(230), 1, Duration::from_millis(50)), None);
    }
}
