//! The timers: one per slot. The earliest comes first, on a tie the lower slot.
//!
//! A tournament tree over a fixed number of slots: each inner node holds the winner of its two children. Setting a
//! timer costs one comparison a level; reading the earliest is free. The order depends neither on when a timer was set
//! nor on where it lies in memory.

use lasthop_units::Time;

/// A fixed number of timers.
#[derive(Clone, Debug)]
pub(crate) struct Timers {
    /// The time of each slot, padded to a power of two.
    times: Vec<Time>,
    /// The winning slot of each inner node; the root is at 1.
    winners: Vec<u32>,
}

impl Timers {
    /// `slots` slots, none of them set.
    pub(crate) fn new(slots: usize) -> Self {
        let leaves = slots.next_power_of_two().max(2);
        let mut winners = vec![0; leaves];
        for node in (1..leaves).rev() {
            // The leftmost leaf below the node.
            let mut left = node;
            while left < leaves {
                left *= 2;
            }
            winners[node] = (left - leaves) as u32;
        }
        Self { times: vec![Time::MAX; leaves], winners }
    }

    /// Sets the slot to this time; [`Time::MAX`]: unset.
    pub(crate) fn set(&mut self, slot: usize, at: Time) {
        self.times[slot] = at;
        let leaves = self.times.len();
        let mut node = (slot + leaves) / 2;
        let mut winner = self.better(slot & !1, slot | 1);
        loop {
            self.winners[node] = winner as u32;
            if node == 1 {
                break;
            }
            let sibling = self.winners[node ^ 1] as usize;
            winner = if node.is_multiple_of(2) { self.better(winner, sibling) } else { self.better(sibling, winner) };
            node /= 2;
        }
    }

    /// Sets the slot to this time unless it is set to an earlier one. Cheap for timers that are mostly postponed, if
    /// their owner checks its time again when woken.
    pub(crate) fn set_no_later(&mut self, slot: usize, at: Time) {
        if at < self.times[slot] {
            self.set(slot, at);
        }
    }

    /// The time and the slot of the earliest timer; [`Time::MAX`]: none is set.
    pub(crate) fn first(&self) -> (Time, usize) {
        let slot = self.winners[1] as usize;
        (self.times[slot], slot)
    }

    /// The left slot unless the right one is earlier.
    fn better(&self, left: usize, right: usize) -> usize {
        if self.times[right] < self.times[left] { right } else { left }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    #[test]
    fn the_earliest_comes_first_and_the_lower_slot_where_two_tie() {
        let mut timers = Timers::new(5);
        assert_eq!(timers.first().0, Time::MAX);
        timers.set(4, at(10));
        timers.set(1, at(20));
        assert_eq!(timers.first(), (at(10), 4));
        timers.set(2, at(10));
        assert_eq!(timers.first(), (at(10), 2));
        timers.set(2, Time::MAX);
        timers.set(4, Time::MAX);
        assert_eq!(timers.first(), (at(20), 1));
    }

    #[test]
    fn a_timer_that_is_put_off_wakes_its_owner_early() {
        let mut timers = Timers::new(1);
        timers.set_no_later(0, at(30));
        timers.set_no_later(0, at(50));
        assert_eq!(timers.first(), (at(30), 0));
    }

    proptest! {
        #[test]
        fn the_tree_agrees_with_a_scan(
            slots in 1..40_usize,
            settings in prop::collection::vec((any::<prop::sample::Index>(), 0..50_u64), 1..200),
        ) {
            let mut timers = Timers::new(slots);
            let mut plain = vec![Time::MAX; slots];
            for (slot, nanos) in settings {
                let (slot, time) = (slot.index(slots), if nanos == 0 { Time::MAX } else { at(nanos) });
                timers.set(slot, time);
                plain[slot] = time;
                let first = plain.iter().enumerate().min_by_key(|(slot, time)| (**time, *slot));
                let (slot, time) = first.expect("at least one slot");
                prop_assert_eq!(timers.first().0, *time);
                if *time < Time::MAX {
                    prop_assert_eq!(timers.first().1, slot);
                }
            }
        }
    }
}
