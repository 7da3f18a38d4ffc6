//! Who is next of many: a tournament.
//!
//! Each contestant has a time; the earliest wins, of equals the one with the lowest number. A change of one time is one
//! match for each doubling of the contestants, and fewer where the winner stays.

use units::Time;

#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    times: Vec<Time>,
    /// `winners[1]` has won all; the players of match m are the winners of 2m and 2m + 1. The lower half of a full tree: in the
    /// last row the contestants themselves play.
    winners: Vec<u32>,
    /// A power of two, not less than the number of contestants and 2.
    width: usize,
}

impl Schedule {
    /// So many contestants, none of whom is ever due.
    pub(crate) fn new(contestants: usize) -> Self {
        let width = contestants.next_power_of_two().max(2);
        let mut schedule = Self { times: vec![Time::MAX; width], winners: vec![0; width], width };
        for game in (1..width).rev() {
            schedule.winners[game] = schedule.play(game);
        }
        schedule
    }

    /// When the first one is due; [`Time::MAX`] for never.
    pub(crate) fn first_at(&self) -> Time {
        self.times[self.first()]
    }

    /// Who is due first.
    pub(crate) fn first(&self) -> usize {
        self.winners[1] as usize
    }

    /// From now on this one is due then.
    pub(crate) fn set(&mut self, contestant: usize, at: Time) {
        if self.times[contestant] == at {
            return;
        }
        self.times[contestant] = at;
        let mut game = (self.width + contestant) / 2;
        while game > 0 {
            let winner = self.play(game);
            if winner == self.winners[game] && winner as usize != contestant {
                // Somebody else had won here and does so again.
                break;
            }
            self.winners[game] = winner;
            game /= 2;
        }
    }

    fn play(&self, game: usize) -> u32 {
        let [left, right] = [2 * game, 2 * game + 1]
            .map(|player| if player < self.width { self.winners[player] } else { (player - self.width) as u32 });
        if self.times[right as usize] < self.times[left as usize] { right } else { left }
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
