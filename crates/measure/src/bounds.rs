//! The limits of each connection over time.

use lasthop_laws::bound::Bound;
use lasthop_units::{Rate, Span, Time};

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
    /// The limit of the pacing rate, if there is one.
    pub max_pacing_rate: Option<Rate>,
    /// The limit of the window that the receiver advertises, if there is one, in bytes.
    pub max_receive_bytes: Option<u64>,
}

impl Interval {
    /// The limits of a bound that the agent of a connection's sender has set. The values that mean "no limit" in
    /// `bound.h` become `None`.
    pub fn of_sender(from: Time, until: Time, bound: Option<Bound>) -> Self {
        Self {
            from,
            until,
            min_segments: bound.map(|bound| bound.min_segments).filter(|segments| *segments > 1),
            max_segments: bound.map(|bound| bound.max_segments).filter(|segments| *segments > 0),
            max_pacing_rate: bound.map(|bound| bound.max_pacing_rate).filter(|rate| *rate > Rate::ZERO),
            max_receive_bytes: None,
        }
    }

    /// Likewise of a bound that the agent of its receiver has set: only one of its limits concerns the data.
    pub fn of_receiver(from: Time, until: Time, bound: Option<Bound>) -> Self {
        let max_receive_bytes = bound.map(|bound| bound.max_receive_bytes).filter(|bytes| *bytes > 0);
        Self { max_receive_bytes, ..Self::of_sender(from, until, None) }
    }
}

/// The limits in force at one moment; `None`: no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// The lower limit of the window.
    pub min_segments: Option<u32>,
    /// Its upper limit.
    pub max_segments: Option<u32>,
    /// The limit of the pacing rate.
    pub max_pacing_rate: Option<Rate>,
}

/// The limits of one connection over time. Each interval ends where the next one begins, or with its lease.
#[derive(Clone, Debug, Default)]
pub struct Bounds {
    intervals: Vec<Interval>,
}

impl Bounds {
    /// Adds the limits of a later tick. An interval without limits ends those before it.
    pub fn push(&mut self, interval: Interval) {
        self.end(interval.from);
        self.intervals.push(interval);
    }

    /// Ends all limits at `at`.
    pub fn end(&mut self, at: Time) {
        if let Some(last) = self.intervals.last_mut() {
            last.until = last.until.min(at);
        }
    }

    /// The limits in force at `at`.
    pub fn at(&self, at: Time) -> Limits {
        let begun = self.intervals.partition_point(|interval| interval.from <= at);
        match begun.checked_sub(1).map(|last| self.intervals[last]) {
            Some(Interval { until, min_segments, max_segments, max_pacing_rate, .. }) if at < until => {
                Limits { min_segments, max_segments, max_pacing_rate }
            }
            _ => Limits::default(),
        }
    }

    /// The share of `from..to` with an upper limit of the window, the pacing rate or the advertised window, 0..=1.
    pub fn controlled_share(&self, from: Time, to: Time) -> f64 {
        let held = |interval: &Interval| interval.until.min(to).saturating_since(interval.from.max(from));
        let limited = |interval: &&Interval| {
            interval.max_segments.is_some()
                || interval.max_pacing_rate.is_some()
                || interval.max_receive_bytes.is_some()
        };
        let bounded = self.intervals.iter().filter(limited);
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
        Interval { max_segments, ..Interval::of_sender(secs(from), secs(until), None) }
    }

    fn at(bounds: &Bounds, at: u64) -> Option<u32> {
        bounds.at(secs(at)).max_segments
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
        assert_eq!(at(&bounds, 0), None);
        assert_eq!(at(&bounds, 1), Some(48));
        assert_eq!(at(&bounds, 2), Some(48));
        assert_eq!(at(&bounds, 3), Some(9));
        assert_eq!(at(&bounds, 5), Some(9));
        assert_eq!(at(&bounds, 6), None);
        assert_eq!(bounds.controlled_share(secs(0), secs(10)), 0.5); // 2 s of 48 and 3 s of 9
        assert_eq!(bounds.controlled_share(secs(5), secs(7)), 0.5);
    }

    #[test]
    fn a_tick_without_limits_ends_those_before_it() {
        let mut bounds = Bounds::default();
        bounds.push(interval(1, 4, Some(48)));
        bounds.push(interval(2, 2, None));
        assert_eq!(at(&bounds, 3), None);
        assert_eq!(bounds.controlled_share(secs(1), secs(3)), 0.5);
    }

    #[test]
    fn a_limit_of_the_pacing_rate_is_one_like_the_others() {
        let mut bounds = Bounds::default();
        let max_pacing_rate = Some(Rate::from_mbps(0.44));
        bounds.push(Interval { max_pacing_rate, ..interval(1, 4, None) });
        assert_eq!(bounds.at(secs(3)), Limits { max_pacing_rate, ..Limits::default() });
        assert_eq!(bounds.at(secs(4)), Limits::default());
        assert_eq!(bounds.controlled_share(secs(0), secs(6)), 0.5);
    }

    #[test]
    fn of_a_receivers_limits_only_that_of_its_window_is_one_of_the_connection() {
        let bound = Bound { max_receive_bytes: 43_440, ..Bound::at_most(9) };
        let mut bounds = Bounds::default();
        bounds.push(Interval::of_receiver(secs(1), secs(4), Some(bound)));
        bounds.push(Interval::of_receiver(secs(2), secs(5), Some(Bound::at_most(9))));
        assert_eq!(bounds.at(secs(3)), Limits::default());
        assert_eq!(bounds.controlled_share(secs(0), secs(4)), 0.25);
    }

    #[test]
    fn an_agent_that_stopped_left_nothing_in_force() {
        let mut bounds = Bounds::default();
        bounds.push(interval(1, 9, Some(48)));
        bounds.end(secs(2));
        assert_eq!(at(&bounds, 1), Some(48));
        assert_eq!(at(&bounds, 2), None);
    }
}
