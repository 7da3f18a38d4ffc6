//! The next of many events: a tournament.
//!
//! Each contestant has a time; the earliest wins, and ties go to the lowest number. An update replays one match per
//! level of the tree, or fewer if a result stays the same. Reading the earliest is free.

use lasthop_units::Time;

/// The times of a fixed number of contestants.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// A full tree: the players of match m are the winners of 2m and 2m + 1, and match 1 is the final. The last row holds the
    /// contestants themselves, padded to a power of two. A smaller pair wins.
    winners: Vec<(Time, u32)>,
}

impl Schedule {
    /// This many contestants, none due.
    pub fn new(contestants: usize) -> Self {
        let width = contestants.next_power_of_two().max(2);
        let mut winners: Vec<_> = (0..2 * width).map(|game| (Time::MAX, game.saturating_sub(width) as u32)).collect();
        for game in (1..width).rev() {
            winners[game] = winners[2 * game];
        }
        Self { winners }
    }

    /// The earliest time; [`Time::MAX`] if none is due.
    #[inline]
    pub fn first_at(&self) -> Time {
        self.winners[1].0
    }

    /// The contestant with the earliest time.
    #[inline]
    pub fn first(&self) -> usize {
        self.winners[1].1 as usize
    }

    /// Sets the time of a contestant; [`Time::MAX`]: it is not due.
    #[inline]
    pub fn set(&mut self, contestant: usize, at: Time) {
        let place = self.winners.len() / 2 + contestant;
        if self.winners[place].0 != at {
            self.winners[place].0 = at;
            self.replay(place);
        }
    }

    /// The same unless its time is earlier. Cheap for times that are mostly postponed, if the contestant checks its time
    /// again when it is due.
    #[inline]
    pub fn set_no_later(&mut self, contestant: usize, at: Time) {
        if at < self.winners[self.winners.len() / 2 + contestant].0 {
            self.set(contestant, at);
        }
    }

    fn replay(&mut self, mut place: usize) {
        let mut winner = self.winners[place];
        while place > 1 {
            winner = winner.min(self.winners[place ^ 1]);
            place /= 2;
            if std::mem::replace(&mut self.winners[place], winner) == winner {
                break;
            }
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
