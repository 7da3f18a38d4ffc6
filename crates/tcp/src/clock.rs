//! The clock of the timestamps option: RFC 7323 §5.4.

use units::{Span, Time};

/// The timestamp at `now`. It starts at 1: an echo of 0 means none. It wraps after 49 days of milliseconds.
pub(crate) fn ticks(now: Time, granularity: Span) -> u32 {
    (now.as_nanos() / granularity.as_nanos()) as u32 + 1
}

/// The same for every segment, with a division for every tick.
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

    proptest! {
        #[test]
        fn the_remembered_tick_is_the_computed_one(
            times in prop::collection::vec(0..200_000_000_u64, 1..50), granularity_ms in 1..50_u64,
        ) {
            let granularity = Span::from_millis(granularity_ms);
            let mut clock = TickClock::new(granularity);
            for at in times {
                prop_assert_eq!(clock.ticks(Time::from_nanos(at)), ticks(Time::from_nanos(at), granularity));
            }
        }
    }
}
