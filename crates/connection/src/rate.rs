//! The delivery rate, and whether the application limited it: Linux's `tcp_rate.c`, for TCP's segments and QUIC's datagrams.
//!
//! ```text
//! rate = (delivered now - delivered when the segment was sent) / max(time over which they were sent, ... acknowledged)
//! ```
//!
//! The segment is the last-sent one that this ACK delivers. A sample over less than the lowest RTT is discarded. A
//! sample limited by the application counts only if it is higher (draft-cheng-iccrg-delivery-rate-estimation).

use lasthop_units::{Bytes, Rate, Span, Time};

/// What is recorded of a segment when it is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Segments delivered before.
    pub delivered: u32,
    /// Whether the application limited the rate then.
    pub app_limited: bool,
    /// When `delivered` was reached.
    pub delivered_at: Time,
    /// When the first segment of the same flight was sent.
    pub first_sent_at: Time,
}

/// What an ACK says of the rate: `struct rate_sample`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSample {
    /// Segments delivered when the newest one that this ACK delivers was sent.
    pub prior_delivered: u32,
    /// Segments delivered since.
    pub delivered: u32,
    /// How long that took.
    pub interval: Span,
    /// Whether the application limited the rate when that segment was sent.
    pub app_limited: bool,
}

/// The delivery rate of a connection: what has been delivered, and in what time.
#[derive(Clone, Debug, Default)]
pub struct DeliveryRate {
    delivered: u32,
    delivered_at: Time,
    first_sent_at: Time,
    /// The application limits the rate until this many segments are delivered; 0: it does not.
    app_limited_until: u32,
    /// The record and the transmission time of the last-sent segment that this ACK delivers.
    prior: Option<(Sent, Time)>,
    rate_delivered: u32,
    rate_interval: Span,
    rate_app_limited: bool,
}

impl DeliveryRate {
    /// A segment is sent, while others are in flight or not. Returns what is to be recorded of it.
    pub fn on_sent(&mut self, now: Time, in_flight_before: bool) -> Sent {
        if !in_flight_before {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        Sent {
            delivered: self.delivered,
            app_limited: self.app_limited_until != 0,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
        }
    }

    /// An ACK delivers a segment that was sent at `sent_at`.
    pub fn on_segment_delivered(&mut self, sent: &Sent, sent_at: Time) {
        // Calls come in the order of transmission, so that among equal counts the last one is kept.
        if self.prior.is_none_or(|(prior, _)| sent.delivered >= prior.delivered) {
            self.prior = Some((*sent, sent_at));
        }
    }

    /// What an ACK delivers was sent when this many were delivered: that of the last sent. `None`: it delivers nothing.
    pub fn prior_delivered(&self) -> Option<u32> {
        self.prior.map(|(prior, _)| prior.delivered)
    }

    /// The ACK gives no sample.
    pub fn forget_sample(&mut self) {
        self.prior = None;
    }

    /// The ACK is processed: it delivered `delivered` new segments. Returns its sample, if it is one: it is over no less than the lowest
    /// round trip, in ns.
    pub fn on_ack(&mut self, now: Time, delivered: u32, min_rtt_ns: u64) -> Option<RateSample> {
        if delivered > 0 {
            self.delivered += delivered;
            self.delivered_at = now;
            if self.app_limited_until != 0 && self.delivered > self.app_limited_until {
                self.app_limited_until = 0;
            }
        }
        let (prior, sent_at) = self.prior.take()?;
        self.first_sent_at = sent_at;
        let send_interval = sent_at.saturating_since(prior.first_sent_at);
        let interval = send_interval.max(now.saturating_since(prior.delivered_at));
        if interval.is_zero() || interval.as_nanos() < min_rtt_ns {
            return None;
        }
        let delivered = self.delivered - prior.delivered;
        let faster = || {
            let (new, old) = (u64::from(delivered), u64::from(self.rate_delivered));
            u128::from(new) * u128::from(self.rate_interval.as_nanos())
                >= u128::from(old) * u128::from(interval.as_nanos())
        };
        if !prior.app_limited || faster() {
            self.rate_delivered = delivered;
            self.rate_interval = interval;
            self.rate_app_limited = prior.app_limited;
        }
        Some(RateSample { prior_delivered: prior.delivered, delivered, interval, app_limited: prior.app_limited })
    }

    /// When data were last delivered.
    pub fn delivered_at(&self) -> Time {
        self.delivered_at
    }

    /// Whether the application limits the rate now.
    pub fn is_app_limited(&self) -> bool {
        self.app_limited_until != 0
    }

    /// The application has no data to send although the window would allow it.
    pub fn on_app_limited(&mut self, in_flight: u32) {
        self.app_limited_until = (self.delivered + in_flight).max(1);
    }

    /// Segments delivered so far.
    pub fn delivered(&self) -> u32 {
        self.delivered
    }

    /// The latest rate, of segments with this payload, and whether the application limited it.
    pub fn rate(&self, payload_bytes: u32) -> (Rate, bool) {
        let bytes = Bytes::new(u64::from(self.rate_delivered) * u64::from(payload_bytes));
        (Rate::over(bytes, self.rate_interval), self.rate_app_limited)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_segments_a_second_are_ten_segments_a_second() {
        // One segment of 1000 bytes every 100 ms, each acknowledged 500 ms later: 80 kb/s.
        let mut rate = DeliveryRate::default();
        let at = |ms| Time::ZERO + Span::from_millis(ms);
        let mut sent = Vec::new();
        for tick in 0..30 {
            if tick >= 5 {
                let (record, sent_at): (Sent, Time) = sent[tick - 5];
                rate.on_segment_delivered(&record, sent_at);
                rate.on_ack(at(tick as u64 * 100), 1, 500_000_000);
            }
            sent.push((rate.on_sent(at(tick as u64 * 100), tick > 0), at(tick as u64 * 100)));
        }
        assert_eq!(rate.rate(1000), (Rate::from_bps(80_000), false));
        assert_eq!(rate.delivered(), 25);
    }

    #[test]
    fn a_slower_sample_of_an_idle_application_does_not_count() {
        let mut rate = DeliveryRate::default();
        let at = |ms| Time::ZERO + Span::from_millis(ms);
        let burst: Vec<Sent> = (0..10).map(|index| rate.on_sent(at(0), index > 0)).collect();
        burst.iter().for_each(|sent| rate.on_segment_delivered(sent, at(0)));
        rate.on_ack(at(100), 10, 0); // 10 in 100 ms
        rate.on_app_limited(0);
        let alone = rate.on_sent(at(200), false);
        rate.on_segment_delivered(&alone, at(200));
        rate.on_ack(at(300), 1, 0); // 1 in 100 ms
        assert_eq!(rate.rate(1000), (Rate::from_bps(800_000), false));
    }

    /// ACKs that arrive in a bunch seem fast: a sample over less than the lowest RTT measures the bunch, not the path.
    #[test]
    fn a_sample_over_less_than_the_lowest_round_trip_does_not_count() {
        let mut rate = DeliveryRate::default();
        let at = |ms| Time::ZERO + Span::from_millis(ms);
        let sent = rate.on_sent(at(0), false);
        rate.on_segment_delivered(&sent, at(0));
        rate.on_ack(at(50), 1, 100_000_000);
        assert_eq!(rate.rate(1000), (Rate::ZERO, false));
    }
}
