//! The next of many events: a tree of earliest times.
//!
//! Each contestant has a time; the earliest wins, and ties go to the lowest number. An update goes up the tree, as far as
//! something changes. Reading the earliest time is free.

use lasthop_units::Time;

/// The times of a fixed number of contestants.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// A full tree: place p has the earlier time of 2p and 2p + 1, and place 1 the earliest. The last row holds the contestants
    /// themselves, padded to a power of two.
    earliest: Vec<Time>,
}

impl Schedule {
    /// This many contestants, none due.
    pub fn new(contestants: usize) -> Self {
        Self { earliest: vec![Time::MAX; 2 * contestants.next_power_of_two().max(2)] }
    }

    /// The earliest time; [`Time::MAX`] if none is due.
    #[inline]
    pub fn first_at(&self) -> Time {
        self.earliest[1]
    }

    /// The contestant with the earliest time.
    #[inline]
    pub fn first(&self) -> usize {
        let mut place = 1;
        while place < self.earliest.len() / 2 {
            place *= 2;
            place += usize::from(self.earliest[place] != self.earliest[1]);
        }
        place - self.earliest.len() / 2
    }

    /// Sets the time of a contestant; [`Time::MAX`]: it is not due.
    #[inline]
    pub fn set(&mut self, contestant: usize, at: Time) {
        let place = self.earliest.len() / 2 + contestant;
        if self.earliest[place] != at {
            self.update(place, at);
        }
    }

    /// The same unless its time is earlier. Cheap for times that are mostly postponed, if the contestant checks its time
    /// again when it is due.
    #[inline]
    pub fn set_no_later(&mut self, contestant: usize, at: Time) {
        let place = self.earliest.len() / 2 + contestant;
        if at < self.earliest[place] {
            self.update(place, at);
        }
    }

    fn update(&mut self, mut place: usize, mut at: Time) {
        while place > 0 && self.earliest[place] != at {
            self.earliest[place] = at;
            at = at.min(self.earliest[place ^ 1]);
            place /= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn of_equals_the_first_wins() {
        let mut schedule = Schedule::new(5);
        assert_eq!(schedule.first_at(), Time::MAX);
        for contestant in [4, 2, 3] {
            schedule.set(contestant, Time::from_nanos(7));
        }
        assert_eq!((schedule.first(), schedule.first_at()), (2, Time::from_nanos(7)));
        schedule.set(2, Time::MAX);
        assert_eq!(schedule.first(), 3);
    }

    #[test]
    fn what_is_put_off_is_due_early() {
        let mut schedule = Schedule::new(1);
        schedule.set_no_later(0, Time::from_nanos(30));
        schedule.set_no_later(0, Time::from_nanos(50));
        assert_eq!(schedule.first_at(), Time::from_nanos(30));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn it_names_whom_a_scan_would_name(
            contestants in 1..40_usize,
            changes in prop::collection::vec((any::<usize>(), 0..6_u64), 0..200),
        ) {
            let mut schedule = Schedule::new(contestants);
            let mut times = vec![Time::MAX; contestants];
            for (contestant, at) in changes {
                let contestant = contestant % contestants;
                let at = if at == 5 { Time::MAX } else { Time::from_nanos(at) };
                schedule.set(contestant, at);
                times[contestant] = at;
                let first = (0..contestants).min_by_key(|&contestant| (times[contestant], contestant)).unwrap();
                prop_assert_eq!((schedule.first_at(), schedule.first()), (times[first], first));
            }
        }
    }
}
