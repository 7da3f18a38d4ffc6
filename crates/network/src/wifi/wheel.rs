//! Contenders by the slot in which their timers expire.
//!
//! A ring of 1024 slots, as no timer exceeds aCWmax = 1023 slots. Each slot has a list of its contenders, and a bit for
//! a nonempty list. The cost of an operation does not depend on the number of contenders.

/// One more slot than the largest contention window, 1023.
const SLOTS: usize = 1024;
const WORDS: usize = SLOTS / 64;
const NOBODY: u32 = u32::MAX;

#[derive(Clone, Debug)]
pub(super) struct Wheel {
    occupied: [u64; WORDS],
    /// By slot: the first of its list.
    heads: Vec<u32>,
    /// By contender: its neighbours in the list of its slot.
    neighbours: Vec<Neighbours>,
}

#[derive(Clone, Copy, Debug)]
struct Neighbours {
    before: u32,
    after: u32,
}

impl Wheel {
    /// An empty wheel for this many contenders.
    pub(super) fn new(contenders: usize) -> Self {
        Self {
            occupied: [0; WORDS],
            heads: vec![NOBODY; SLOTS],
            neighbours: vec![Neighbours { before: NOBODY, after: NOBODY }; contenders],
        }
    }

    /// One contender more.
    pub(super) fn add(&mut self) {
        self.neighbours.push(Neighbours { before: NOBODY, after: NOBODY });
    }

    /// Inserts a contender at the slot of its timer. It must not be in the wheel.
    pub(super) fn insert(&mut self, contender: usize, end: u64) {
        let slot = slot(end);
        let after = self.heads[slot];
        self.neighbours[contender] = Neighbours { before: NOBODY, after };
        if after != NOBODY {
            self.neighbours[after as usize].before = contender as u32;
        }
        self.heads[slot] = contender as u32;
        self.occupied[slot / 64] |= 1 << (slot % 64);
    }

    /// Removes a contender from the slot of its timer. It must be in the wheel.
    pub(super) fn remove(&mut self, contender: usize, end: u64) {
        let slot = slot(end);
        let Neighbours { before, after } = self.neighbours[contender];
        if after != NOBODY {
            self.neighbours[after as usize].before = before;
        }
        if before != NOBODY {
            self.neighbours[before as usize].after = after;
        } else {
            debug_assert_eq!(self.heads[slot], contender as u32, "a contender is taken out where it was put");
            self.heads[slot] = after;
            if after == NOBODY {
                self.occupied[slot / 64] &= !(1 << (slot % 64));
            }
        }
    }

    /// The contender with the earliest timer, and its slot; all expire within 1023 slots after `now`.
    pub(super) fn first(&self, now: u64) -> Option<(u64, usize)> {
        let start = slot(now);
        let (word, bit) = (start / 64, start % 64);
        let at_or_after = self.occupied[word] & (u64::MAX << bit);
        // The following words, and the first one again at the end: now with the part before `now` on the ring.
        let found = if at_or_after != 0 {
            64 * word + at_or_after.trailing_zeros() as usize
        } else {
            let others = (1..=WORDS).map(|step| (word + step) % WORDS);
            let occupied = others.into_iter().find(|&word| self.occupied[word] != 0)?;
            64 * occupied + self.occupied[occupied].trailing_zeros() as usize
        };
        let end = now + ((found + SLOTS - start) % SLOTS) as u64;
        Some((end, self.heads[found] as usize))
    }
}

fn slot(end: u64) -> usize {
    end as usize % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_ring_goes_round() {
        let mut wheel = Wheel::new(3);
        assert_eq!(wheel.first(5000), None);
        // 5000 is slot 904, 5119 slot 1023, 5120 slot 0, 6023 slot 903: the furthest.
        wheel.insert(0, 6023);
        assert_eq!(wheel.first(5000), Some((6023, 0)));
        wheel.insert(1, 5120);
        wheel.insert(2, 5119);
        assert_eq!(wheel.first(5000), Some((5119, 2)));
        wheel.remove(2, 5119);
        assert_eq!(wheel.first(5000), Some((5120, 1)));
        assert_eq!(wheel.first(5120), Some((5120, 1)));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn it_finds_whom_a_scan_would_find(
            changes in prop::collection::vec((0..8_usize, 0..1024_u64, 0..40_u64), 0..200),
        ) {
            let mut wheel = Wheel::new(8);
            let mut ends = [None; 8];
            let mut now = 0;
            for (contender, slots, passed) in changes {
                match ends[contender].take() {
                    Some(end) => wheel.remove(contender, end),
                    None => {
                        ends[contender] = Some(now + slots);
                        wheel.insert(contender, now + slots);
                    }
                }
                let first = ends.iter().flatten().min().copied();
                now = first.map_or(now + passed, |first| first.min(now + passed));
                let found = wheel.first(now);
                prop_assert_eq!(found.map(|(end, _)| end), first);
                prop_assert!(found.is_none_or(|(end, contender)| ends[contender] == Some(end)));
            }
        }
    }
}
