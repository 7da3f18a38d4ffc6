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
    /// The limits; the default is none.
    pub bound: Bound,
}

impl Interval {
    /// Of these limits of the agent of a connection's sender, those that concern the data.
    pub fn of_sender(self) -> Self {
        Self { bound: Bound { max_receive_bytes: 0, ..self.bound }, ..self }
    }

    /// Likewise of the agent of its receiver.
    pub fn of_receiver(self) -> Self {
        Self { bound: Bound { max_receive_bytes: self.bound.max_receive_bytes, ..Bound::default() }, ..self }
    }
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
    pub fn at(&self, at: Time) -> Bound {
        let begun = self.intervals.partition_point(|interval| interval.from <= at);
        let last = begun.checked_sub(1).map(|last| self.intervals[last]);
        last.filter(|interval| at < interval.until).map_or(Bound::default(), |interval| interval.bound)
    }

    /// The share of `from..to` with an upper limit of the window, the pacing rate or the advertised window, 0..=1.
    pub fn controlled_share(&self, from: Time, to: Time) -> f64 {
        let held = |interval: &Interval| interval.until.min(to).saturating_since(interval.from.max(from));
        let limited = |Interval { bound, .. }: &&Interval| {
            bound.max_segments > 0 || bound.max_pacing_rate > Rate::ZERO || bound.max_receive_bytes > 0
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

    fn interval(from: u64, until: u64, max_segments: u32) -> Interval {
        Interval { from: secs(from), until: secs(until), bound: Bound::at_most(max_segments) }
    }

    fn at(bounds: &Bounds, at: u64) -> u32 {
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
        bounds.push(interval(1, 4, 48));
        bounds.push(interval(3, 6, 9));
        assert_eq!(at(&bounds, 0), 0);
        assert_eq!(at(&bounds, 1), 48);
        assert_eq!(at(&bounds, 2), 48);
        assert_eq!(at(&bounds, 3), 9);
        assert_eq!(at(&bounds, 5), 9);
        assert_eq!(at(&bounds, 6), 0);
        assert_eq!(bounds.controlled_share(secs(0), secs(10)), 0.5); // 2 s of 48 and 3 s of 9
        assert_eq!(bounds.controlled_share(secs(5), secs(7)), 0.5);
    }

    #[test]
    fn a_tick_without_limits_ends_those_before_it() {
        let mut bounds = Bounds::default();
        bounds.push(interval(1, 4, 48));
        bounds.push(interval(2, 2, 0));
        assert_eq!(at(&bounds, 3), 0);
        assert_eq!(bounds.controlled_share(secs(1), secs(3)), 0.5);
    }

    #[test]
    fn a_limit_of_the_pacing_rate_is_one_like_the_others() {
        let mut bounds = Bounds::default();
        let bound = Bound { max_pacing_rate: Rate::from_mbps(0.44), ..Bound::default() };
        bounds.push(Interval { bound, ..interval(1, 4, 0) });
        assert_eq!(bounds.at(secs(3)), bound);
        assert_eq!(bounds.at(secs(4)), Bound::default());
        assert_eq!(bounds.controlled_share(secs(0), secs(6)), 0.5);
    }

    #[test]
    fn of_a_receivers_limits_only_that_of_its_window_is_one_of_the_connection() {
        let bound = Bound { max_receive_bytes: 43_440, ..Bound::at_most(9) };
        let mut bounds = Bounds::default();
        bounds.push(Interval { bound, ..interval(1, 4, 0) }.of_receiver());
        bounds.push(interval(2, 5, 9).of_receiver());
        assert_eq!(bounds.at(secs(3)), Bound::default());
        assert_eq!(bounds.controlled_share(secs(0), secs(4)), 0.25);
    }

    #[test]
    fn an_agent_that_stopped_left_nothing_in_force() {
        let mut bounds = Bounds::default();
        bounds.push(interval(1, 9, 48));
        bounds.end(secs(2));
        assert_eq!(at(&bounds, 1), 48);
        assert_eq!(at(&bounds, 2), 0);
    }
}
