//! Recent observations, and estimates from them that err on the safe side.

use lasthop_units::{Span, Time};
use std::collections::VecDeque;

/// Older observations do not count, even if newer ones have been made since.
pub(super) const MEMORY: Span = Span::from_secs(60);
/// The number of values from which the lower quartile is taken.
pub(super) const VALUES: usize = 8;
/// With fewer values there is no estimate.
const VALUES_NEEDED: usize = 3;
/// With fewer packets there is no estimate.
const PACKETS_NEEDED: u64 = 500;
/// Packets within this time make one entry, so that frequent ticks take no more memory than rare ones.
const ENTRY: Span = Span::from_secs(1);
/// The one-sided 95 % quantile of the normal distribution.
const Z: f64 = 1.645;

/// Observed values, each with its time.
#[derive(Clone, Debug)]
pub(super) struct Values<T> {
    seen: VecDeque<(Time, T)>,
    kept: usize,
}

/// Observed packets, and the number of hits among them.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    seen: VecDeque<Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    since: Time,
    until: Time,
    packets: u64,
    hits: u64,
}

/// The lower and the upper bound of a share; each is missed by 5 % of samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Interval {
    pub(super) lower: f64,
    pub(super) upper: f64,
}

impl<T: Copy> Values<T> {
    /// Keeps the last `kept` values.
    pub(super) const fn new(kept: usize) -> Self {
        Self { seen: VecDeque::new(), kept }
    }

    pub(super) fn push(&mut self, now: Time, value: T) {
        self.seen.push_back((now, value));
        while self.seen.len() > self.kept {
            self.seen.pop_front();
        }
    }

    /// The lower quartile, ordered by `rank`; `None` unless there are three values, the newest not older than
    /// `validity`.
    pub(super) fn lower_quartile<R: Ord>(&self, now: Time, validity: Span, rank: impl Fn(T) -> R) -> Option<T> {
        let newest = self.seen.back()?.0;
        let mut values: Vec<T> = self.recent(now, MEMORY).collect();
        if values.len() < VALUES_NEEDED || now.saturating_since(newest) > validity {
            return None;
        }
        values.sort_by_key(|value| rank(*value));
        Some(values[(values.len() - 1) / 4])
    }

    /// The second highest value not older than `age`. A value seen twice is no measurement error of the clock.
    pub(super) fn highest_but_one<R: Ord>(&self, now: Time, age: Span, rank: impl Fn(T) -> R) -> Option<T> {
        let mut values: Vec<T> = self.recent(now, age).collect();
        values.sort_by_key(|value| rank(*value));
        values.len().checked_sub(2).map(|place| values[place])
    }

    fn recent(&self, now: Time, age: Span) -> impl Iterator<Item = T> {
        self.seen.iter().filter(move |(at, _)| now.saturating_since(*at) <= age).map(|(_, value)| *value)
    }
}

impl Counts {
    pub(super) fn push(&mut self, now: Time, packets: u64, hits: u64) {
        if packets == 0 {
            return;
        }
        let hits = hits.min(packets);
        self.seen.retain(|entry| now.saturating_since(entry.until) <= MEMORY);
        match self.seen.back_mut() {
            Some(last) if now.saturating_since(last.since) < ENTRY => {
                *last = Entry { until: now, packets: last.packets + packets, hits: last.hits + hits, ..*last };
            }
            _ => self.seen.push_back(Entry { since: now, until: now, packets, hits }),
        }
    }

    /// The share of hits within [`MEMORY`]; `None` unless there are 500 packets, the newest not older than `validity`.
    pub(super) fn share(&self, now: Time, validity: Span) -> Option<Interval> {
        let newest = self.seen.back()?.until;
        let recent = self.seen.iter().filter(|entry| now.saturating_since(entry.until) <= MEMORY);
        let (packets, hits) =
            recent.fold((0, 0), |(packets, hits), entry| (packets + entry.packets, hits + entry.hits));
        let known = packets >= PACKETS_NEEDED && now.saturating_since(newest) <= validity;
        known.then(|| wilson(packets, hits))
    }
}

/// Wilson's interval (1927) of a share: p = hits / packets, n = packets,
/// (p + z²/2n ∓ z √(p (1 − p) / n + z²/4n²)) / (1 + z²/n).
fn wilson(packets: u64, hits: u64) -> Interval {
    let n = packets as f64;
    let p = hits as f64 / n;
    let middle = p + Z * Z / (2.0 * n);
    let reach = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + Z * Z / n;
    let bound = |value: f64| (value / scale).clamp(0.0, 1.0);
    Interval { lower: bound(middle - reach), upper: bound(middle + reach) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::ZERO + Span::from_secs(seconds)
    }

    const VALIDITY: Span = Span::from_secs(30);

    #[test]
    fn three_values_are_needed_and_the_lower_quartile_counts() {
        let mut values = Values::new(VALUES);
        let lower = |values: &Values<u32>, seconds| values.lower_quartile(at(seconds), VALIDITY, |value| value);
        values.push(at(0), 50);
        values.push(at(2), 10);
        assert_eq!(lower(&values, 2), None);
        values.push(at(4), 60);
        assert_eq!(lower(&values, 4), Some(10)); // the first of 10 50 60
        for (second, value) in [(6, 70), (8, 80), (10, 90), (12, 20), (14, 30)] {
            values.push(at(second), value);
        }
        assert_eq!(lower(&values, 14), Some(20)); // the second of 10 20 30 50 60 70 80 90
        values.push(at(16), 40); // drops 50
        values.push(at(18), 41); // drops 10
        assert_eq!(lower(&values, 18), Some(30)); // 20 30 40 41 60 70 80 90
        assert_eq!(lower(&values, 48), Some(30));
        assert_eq!(lower(&values, 49), None);
    }

    #[test]
    fn the_highest_value_counts_if_it_was_reached_twice() {
        let mut values = Values::new(VALUES);
        let highest = |values: &Values<u32>, seconds| values.highest_but_one(at(seconds), VALIDITY, |value| value);
        values.push(at(0), 90);
        assert_eq!(highest(&values, 0), None);
        values.push(at(1), 7);
        assert_eq!(highest(&values, 1), Some(7));
        values.push(at(2), 80);
        assert_eq!(highest(&values, 2), Some(80));
        assert_eq!(highest(&values, 31), Some(7)); // the 90 are too old
        assert_eq!(highest(&values, 32), None);
    }

    #[test]
    fn a_share_is_told_with_its_margin_once_there_are_packets_enough() {
        let mut counts = Counts::default();
        counts.push(at(0), 499, 3);
        assert_eq!(counts.share(at(0), VALIDITY), None);
        counts.push(at(5), 501, 2);
        // n = 1000, p = 0.005, z² = 2.706: (0.005 + 0.001353 ∓ 1.645 · √(4.975e-6 + 6.765e-7)) / 1.002706 = 0.002436, 0.010236
        let Interval { lower, upper } = counts.share(at(5), VALIDITY).expect("enough");
        assert!((lower - 0.002_436).abs() < 1e-6 && (upper - 0.010_236).abs() < 1e-6, "{lower} {upper}");
        assert!(counts.share(at(35), VALIDITY).is_some() && counts.share(at(36), VALIDITY).is_none());
        counts.push(at(61), 1, 0); // the first entry is too old
        assert!(counts.share(at(61), VALIDITY).is_some());
        counts.push(at(66), 1, 0);
        assert_eq!(counts.share(at(66), VALIDITY), None);
    }

    #[test]
    fn no_hits_are_a_share_of_zero_and_more_hits_than_packets_are_all() {
        let mut counts = Counts::default();
        counts.push(at(0), 1000, 0);
        // z² / (n + z²) = 2.706 / 1002.706
        let Interval { lower, upper } = counts.share(at(0), VALIDITY).expect("enough");
        assert!(lower.abs() < 1e-12 && (upper - 0.002_699).abs() < 1e-6, "{lower} {upper}");
        counts.push(at(0), u64::from(u32::MAX), u64::MAX);
        assert!(counts.share(at(0), VALIDITY).expect("enough").upper <= 1.0);
    }
}
