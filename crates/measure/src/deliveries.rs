//! How long messages and transfers take: from writing one to reading its last byte at the other end.
//!
//! A message that was never read has no such time. To leave it out would make the worst outcome look like the best: a
//! connection that delivers one message of fifty would have one short delay. So a message without an end counts with
//! the time from its writing to the end of the run. Its true time is longer (a *censored* sample); `undelivered` counts
//! these.
//!
//! A message that is still on its way at the end may be on time. It is not counted at all while it has waited for less
//! than the fastest delivery of its connection.

use crate::quantiles::distribution;
use lasthop_scenario::DeliveryResult;
use lasthop_units::{Span, Time};

/// The messages or transfers of one connection, without those that were read before the end of the warm-up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeliveryMeter {
    took_ms: Vec<f64>,
    unread_since: Vec<Time>,
}

impl DeliveryMeter {
    /// A message or transfer was read to its end after the warm-up, `took` after it was written.
    pub fn on_delivered(&mut self, took: Span) {
        self.took_ms.push(took.as_millis_f64());
    }

    /// A message or transfer written at `since` was not read to its end in this run, whether its connection is open or not.
    pub fn on_undelivered(&mut self, since: Time) {
        self.unread_since.push(since);
    }

    /// Whether all that was written has been read.
    pub fn is_all_read(&self) -> bool {
        self.unread_since.is_empty()
    }

    /// For how long each late undelivered message has waited at `end`, in ms.
    fn ages_ms(&self, end: Time) -> impl Iterator<Item = f64> {
        let fastest = self.took_ms.iter().copied().min_by(f64::total_cmp);
        let ages = self.unread_since.iter().map(move |since| end.saturating_since(*since).as_millis_f64());
        ages.filter(move |age| fastest.is_none_or(|fastest| *age >= fastest))
    }
}

/// The outcome of all messages or transfers of these connections, in a run that lasts until `end`.
pub fn delivered<'a>(meters: impl IntoIterator<Item = &'a DeliveryMeter>, end: Time) -> DeliveryResult {
    let (mut delivered, mut samples) = (0, Vec::new());
    for meter in meters {
        delivered += meter.took_ms.len() as u64;
        samples.extend(meter.took_ms.iter().copied().chain(meter.ages_ms(end)));
    }
    let undelivered = samples.len() as u64 - delivered;
    DeliveryResult { delivered, undelivered, took_ms: distribution(&samples), slowdown: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: Time = Time::from_nanos(60_000_000_000);

    fn secs(secs: u64) -> Time {
        Time::from_nanos(secs * 1_000_000_000)
    }

    #[test]
    fn what_was_never_read_counts_with_its_age_at_the_end() {
        let mut meter = DeliveryMeter::default();
        meter.on_delivered(Span::from_secs(2));
        meter.on_undelivered(secs(20));
        meter.on_undelivered(secs(56));
        let result = delivered([&meter], END);
        assert_eq!((result.delivered, result.undelivered), (1, 2));
        // One took 2 s; the others have waited 60 − 20 s and 60 − 56 s.
        let took = result.took_ms.expect("three samples");
        assert_eq!((took.min, took.p50, took.max), (2_000.0, 4_000.0, 40_000.0));
        assert!(!meter.is_all_read());
    }

    #[test]
    fn where_nothing_was_read_there_is_still_a_number() {
        let mut meter = DeliveryMeter::default();
        meter.on_undelivered(secs(50));
        let result = delivered([&meter], END);
        assert_eq!((result.delivered, result.undelivered), (0, 1));
        assert_eq!(result.took_ms.map(|took| took.mean), Some(10_000.0));
    }

    #[test]
    fn what_is_on_its_way_for_less_than_the_fastest_is_not_late() {
        let mut meter = DeliveryMeter::default();
        meter.on_delivered(Span::from_secs(3));
        meter.on_undelivered(secs(58));
        let result = delivered([&meter], END);
        assert_eq!((result.delivered, result.undelivered), (1, 0));
        assert_eq!(result.took_ms.map(|took| took.min), Some(3_000.0));
    }

    #[test]
    fn several_connections_are_pooled_and_none_have_no_number() {
        let (mut one, mut other) = (DeliveryMeter::default(), DeliveryMeter::default());
        one.on_delivered(Span::from_secs(1));
        other.on_delivered(Span::from_secs(3));
        let result = delivered([&one, &other], END);
        assert_eq!((result.delivered, result.took_ms.map(|took| took.mean)), (2, Some(2_000.0)));
        assert_eq!(delivered([], END), DeliveryResult::default());
    }
}
