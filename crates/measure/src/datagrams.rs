//! What becomes of single datagrams: loss, delay, jitter.
//!
//! A datagram that has not come at the end of the run may be lost or under way. It is lost if it has been under way for longer than
//! the slowest of its flow; and where none overtakes another, if a later one has come. Otherwise it counts as neither.
//!
//! Jitter is the mean of |D| of RFC 3550 §6.4.1: the difference between the delay of a datagram and that of the one
//! received before it. RFC 3550 has a moving average of the same, whose last value tells of the last datagrams only.

use crate::quantiles::{distribution, mean};
use lasthop_scenario::DatagramResult;
use lasthop_units::{Span, Time};
use std::collections::BTreeMap;

/// The datagrams of one flow, without those that were sent before the end of the warm-up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DatagramMeter {
    sent: u64,
    took_ms: Vec<f64>,
    /// The differences between neighbours.
    jitter_ms: Vec<f64>,
    /// Which have not come: where none overtakes another, of those sent after the latest one that came. By number, with their times.
    under_way: BTreeMap<u64, Time>,
    /// Whether the network lets datagrams overtake each other.
    overtakes: bool,
}

impl DatagramMeter {
    /// In a network where datagrams overtake each other, or do not.
    pub fn new(overtakes: bool) -> Self {
        Self { overtakes, ..Self::default() }
    }

    /// The datagram of this number was sent after the warm-up; numbers ascend.
    pub fn on_sent(&mut self, now: Time, number: u64) {
        self.sent += 1;
        self.under_way.insert(number, now);
    }

    /// This datagram, sent after the warm-up, has come for the first time, or the answer to it, `took` after it was sent.
    pub fn on_received(&mut self, number: u64, took: Span) {
        if self.overtakes {
            self.under_way.remove(&number);
        } else {
            self.under_way = self.under_way.split_off(&(number + 1));
        }
        let took_ms = took.as_millis_f64();
        self.jitter_ms.extend(self.took_ms.last().map(|before| (took_ms - before).abs()));
        self.took_ms.push(took_ms);
    }

    /// How many may still come at `end`.
    fn undecided(&self, end: Time) -> u64 {
        let slowest = self.took_ms.iter().copied().fold(0.0, f64::max);
        let may_come = |since: Time| end.saturating_since(since).as_millis_f64() <= slowest;
        self.under_way.values().filter(|since| may_come(**since)).count() as u64
    }
}

/// The outcome of all datagrams of these flows, in a run that lasts until `end`: round trips if they are `pings`.
pub fn datagrams<'a>(meters: impl IntoIterator<Item = &'a DatagramMeter>, end: Time, pings: bool) -> DatagramResult {
    let (mut sent, mut undecided, mut took_ms, mut jitter_ms) = (0, 0, Vec::new(), Vec::new());
    for meter in meters {
        sent += meter.sent;
        undecided += meter.undecided(end);
        took_ms.extend_from_slice(&meter.took_ms);
        jitter_ms.extend_from_slice(&meter.jitter_ms);
    }
    let received = took_ms.len() as u64;
    let lost = sent.saturating_sub(received + undecided);
    let took = distribution(&took_ms);
    DatagramResult {
        sent,
        received,
        lost,
        lost_share: (lost + received > 0).then(|| lost as f64 / (lost + received) as f64),
        one_way_ms: took.filter(|_| !pings),
        round_trip_ms: took.filter(|_| pings),
        jitter_ms: mean(&jitter_ms),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    /// Sent every 100 ms from 0 on; what came, with its delay in ms.
    fn meter(sent: u64, came: &[(u64, u64)]) -> DatagramMeter {
        let mut meter = DatagramMeter::default();
        (0..sent).for_each(|number| meter.on_sent(ms(100 * number), number));
        came.iter().for_each(|(number, took)| meter.on_received(*number, Span::from_millis(*took)));
        meter
    }

    #[test]
    fn one_that_a_later_one_overtook_is_lost_and_one_under_way_is_not() {
        // Number 2 is missing between 1 and 3. Number 4 was sent 40 ms before the end, and the slowest took 50.
        let result = datagrams([&meter(5, &[(0, 10), (1, 50), (3, 20)])], ms(440), false);
        assert_eq!((result.sent, result.received, result.lost, result.lost_share), (5, 3, 1, Some(0.25)));
        assert_eq!(result.one_way_ms.map(|took| (took.min, took.max)), Some((10.0, 50.0)));
        assert_eq!(result.round_trip_ms, None);
        // |50 − 10| and |20 − 50|.
        assert_eq!(result.jitter_ms, Some(35.0));
        // 51 ms before the end it is lost.
        assert_eq!(datagrams([&meter(5, &[(0, 10), (1, 50), (3, 20)])], ms(451), false).lost, 2);
    }

    #[test]
    fn one_that_comes_late_is_not_lost_and_where_some_overtake_one_under_way_is_not() {
        let result = datagrams([&meter(70, &[(0, 10), (69, 10), (68, 150)])], ms(7000), false);
        assert_eq!((result.received, result.lost), (3, 67));
        assert_eq!(result.one_way_ms.map(|took| (took.min, took.max)), Some((10.0, 150.0)));
        // Number 3 has overtaken 1 and 2. At 440 ms 1 has been under way for 340 ms, longer than the slowest; 2 for 240 ms.
        let mut meter = DatagramMeter::new(true);
        (0..4).for_each(|number| meter.on_sent(ms(100 * number), number));
        [(0, 250), (3, 0)].into_iter().for_each(|(number, took)| meter.on_received(number, Span::from_millis(took)));
        assert_eq!(datagrams([&meter], ms(440), false).lost, 1);
        meter.on_received(1, Span::from_millis(345));
        assert_eq!(datagrams([&meter], ms(446), false).lost, 0);
    }

    #[test]
    fn where_none_came_all_are_lost() {
        let result = datagrams([&meter(3, &[])], ms(1000), true);
        assert_eq!((result.received, result.lost, result.lost_share), (0, 3, Some(1.0)));
        assert_eq!((result.round_trip_ms, result.jitter_ms), (None, None));
    }

    #[test]
    fn several_flows_are_pooled_but_jitter_is_within_one() {
        let result = datagrams([&meter(2, &[(0, 10), (1, 10)]), &meter(2, &[(0, 90), (1, 92)])], ms(1000), true);
        assert_eq!(result.round_trip_ms.map(|took| took.mean), Some(50.5));
        assert_eq!(result.jitter_ms, Some(1.0));
        assert_eq!(datagrams([], ms(1), true), DatagramResult::default());
    }
}
