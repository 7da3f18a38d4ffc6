//! The next of many events: a tournament.
//!
//! Each contestant has a time; the earliest wins, and ties go to the lowest number. An update replays one match per
//! level of the tree, or fewer if a result stays the same.

use lasthop_units::Time;

#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    /// A full tree: the players of match m are the winners of 2m and 2m + 1, and `matches[1]` is the final. The last
    /// row, from `width` on, holds the contestants themselves.
    matches: Vec<Entry>,
    width: usize,
}

/// A contestant's time, and below it its number: compared in this order.
type Entry = u128;

fn entry(contestant: usize, at: Time) -> Entry {
    u128::from(at.as_nanos()) << 32 | contestant as u128
}

impl Schedule {
    /// This many contestants, none due.
    pub(crate) fn new(contestants: usize) -> Self {
        let width = contestants.next_power_of_two().max(2);
        let mut matches = vec![entry(0, Time::MAX); 2 * width];
        for contestant in 0..width {
            matches[width + contestant] = entry(contestant, Time::MAX);
        }
        for game in (1..width).rev() {
            matches[game] = matches[2 * game].min(matches[2 * game + 1]);
        }
        Self { matches, width }
    }

    /// The earliest time; [`Time::MAX`] if none is due.
    pub(crate) fn first_at(&self) -> Time {
        Time::from_nanos((self.matches[1] >> 32) as u64)
    }

    /// The contestant with the earliest time.
    pub(crate) fn first(&self) -> usize {
        self.matches[1] as u32 as usize
    }

    /// Sets the time of a contestant.
    pub(crate) fn set(&mut self, contestant: usize, at: Time) {
        let mut game = self.width + contestant;
        let mut winner = entry(contestant, at);
        while self.matches[game] != winner {
            self.matches[game] = winner;
            if game == 1 {
                break;
            }
            winner = self.matches[game].min(self.matches[game ^ 1]);
            game /= 2;
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
