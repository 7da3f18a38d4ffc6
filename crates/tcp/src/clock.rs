//! The clock of the timestamps option: RFC 7323 §5.4.

use lasthop_units::{Span, Time};

/// The timestamp at `now`. It starts at 1, because an echo of 0 means none. It wraps after 49 days of milliseconds or
/// 71 minutes of microseconds: compare with [`is_before`], subtract with `wrapping_sub`.
pub(crate) fn ticks(now: Time, granularity: Span) -> u32 {
    ((now.as_nanos() / granularity.as_nanos()) as u32).wrapping_add(1)
}

/// Whether timestamp `a` is before `b`, modulo 2^32: RFC 7323 §5.2.
pub(crate) fn is_before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

/// Ticks for many segments with one division a tick.
#[derive(Clone, Debug)]
pub(crate) struct TickClock {
    granularity: Span,
    value: u32,
    from: u64,
}

impl TickClock {
    pub(crate) fn new(granularity: Span) -> Self {
        Self { granularity, value: 1, from: 0 }
    }

    pub(crate) fn ticks(&mut self, now: Time) -> u32 {
        let since = now.as_nanos().wrapping_sub(self.from);
        if since >= self.granularity.as_nanos() {
            self.value = ticks(now, self.granularity);
            self.from = now.as_nanos() - now.as_nanos() % self.granularity.as_nanos();
        }
        self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_tick_lasts_from_its_beginning_to_just_before_its_end() {
        let at = |ns| ticks(Time::from_nanos(ns), Span::from_millis(10));
        assert_eq!([0, 9_999_999, 10_000_000, 1_000_000_000].map(at), [1, 1, 2, 101]);
    }

    #[test]
    fn a_microsecond_clock_that_wraps_is_still_ahead() {
        let at = |us: u64| ticks(Time::from_nanos(us * 1000), Span::from_nanos(1000));
        let wrap = 1_u64 << 32;
        assert_eq!([wrap - 2, wrap - 1, wrap].map(at), [u32::MAX, 0, 1]);
        assert!(is_before(at(wrap - 2), at(wrap)) && !is_before(at(wrap), at(wrap - 2)));
        assert_eq!(at(wrap + 40_000).wrapping_sub(at(wrap - 10_000)), 50_000);
    }

    proptest! {
        #[test]
        fn the_remembered_tick_is_the_computed_one(
            times in prop::collection::vec(0..200_000_000_u64, 1..50), granularity_us in 1..50_000_u64,
        ) {
            let granularity = Span::from_nanos(granularity_us * 1000);
            let mut clock = TickClock::new(granularity);
            for at in times {
                prop_assert_eq!(clock.ticks(Time::from_nanos(at)), ticks(Time::from_nanos(at), granularity));
            }
        }
    }
}
