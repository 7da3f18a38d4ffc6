//! Which limits were in force on which connection when.

use units::{Span, Time};

/// The limits that one tick of an agent put on one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// When they were set.
    pub from: Time,
    /// When their lease ends.
    pub until: Time,
    /// The lower limit, if there is one.
    pub min_segments: Option<u32>,
    /// The upper limit, if there is one.
    pub max_segments: Option<u32>,
}

/// The limits of one connection over time. Each interval ends where the next one begins, or with its lease.
#[derive(Clone, Debug, Default)]
pub struct Bounds {
    intervals: Vec<Interval>,
}

impl Bounds {
    /// Adds what a later tick set; an interval without limits says that there are none.
    pub fn push(&mut self, interval: Interval) {
        self.end(interval.from);
        self.intervals.push(interval);
    }

    /// Nothing is in force after `at`.
    pub fn end(&mut self, at: Time) {
        if let Some(last) = self.intervals.last_mut() {
            last.until = last.until.min(at);
        }
    }

    /// What is in force at `at`: the lower and the upper limit.
    pub fn at(&self, at: Time) -> (Option<u32>, Option<u32>) {
        let begun = self.intervals.partition_point(|interval| interval.from <= at);
        match begun.checked_sub(1).map(|last| self.intervals[last]) {
            Some(interval) if at < interval.until => (interval.min_segments, interval.max_segments),
            _ => (None, None),
        }
    }

    /// The share of `from..to` in which an upper limit was in force, 0..=1.
    pub fn controlled_share(&self, from: Time, to: Time) -> f64 {
        let held = |interval: &Interval| interval.until.min(to).saturating_since(interval.from.max(from));
        let bounded = self.intervals.iter().filter(|interval| interval.max_segments.is_some());
        let held: Span = bounded.map(held).sum();
        let total = to.saturating_since(from);
        if total.is_zero() { 0.0 } else { held.as_secs_f64() / total.as_secs_f64() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(secs: u64) -> Time {
        Time::from_nanos(secs * 1_000_000_000)
    }

    fn interval(from: u64, until: u64, max_segments: Option<u32>) -> Interval {
        Interval { from: secs(from), until: secs(until), min_segments: None, max_segments }
    }

    /// ```text
    /// s        0    1    2    3    4    5    6    7
    /// set           48        9              -
    /// lease         |---------x----|
    ///                         |--------------x
    /// ```
    #[test]
    fn a_bound_holds_until_the_next_one_or_the_end_of_its_lease() {
        let mut bounds = Bounds::default();
        bounds.push(interval(1, 4, Some(48)));
        bounds.push(interval(3, 6, Some(9)));
        assert_eq!(bounds.at(secs(0)), (None, None));
        assert_eq!(bounds.at(secs(1)), (None, Some(48)));
        assert_eq!(bounds.at(secs(2)), (None, Some(48)));
        assert_eq!(bounds.at(secs(3)), (None, Some(9)));
        assert_eq!(bounds.at(secs(5)), (None, Some(9)));
        assert_eq!(bounds.at(secs(6)), (None, None));
        assert_eq!(bounds.controlled_share(secs(0), secs(10)), 0.5); // 2 s of 48 and 3 s of 9
        assert_eq!(bounds.controlled_share(secs(5), secs(7)), 0.5);
    }

    #[test]
    fn a_tick_without_limits_ends_those_before_it() {
        let mut bounds = Bounds::default();
        bounds.push(interval(1, 4, Some(48)));
        bounds.push(interval(2, 2, None));
        assert_eq!(bounds.at(secs(3)), (None, None));
        assert_eq!(bounds.controlled_share(secs(1), secs(3)), 0.5);
    }

    #[test]
    fn an_agent_that_stopped_left_nothing_in_force() {
        let mut bounds = Bounds::default();
        bounds.push(interval(1, 9, Some(48)));
        bounds.end(secs(2));
        assert_eq!(bounds.at(secs(1)), (None, Some(48)));
        assert_eq!(bounds.at(secs(2)), (None, None));
    }
}
