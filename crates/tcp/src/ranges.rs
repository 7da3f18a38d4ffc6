//! Disjoint ranges of sequence numbers in order: a receiver's out-of-order data, a sender's SACKed data.
//!
//! There are few ranges (one per hole in the window), and most changes are at the end. So a deque with binary search is
//! small and fast.

use std::collections::VecDeque;
use std::ops::Range;

/// Disjoint, non-touching, non-empty ranges in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ranges {
    ranges: VecDeque<Range<u64>>,
    bytes: u64,
}

impl Ranges {
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Sum of the lengths.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The end of the last range.
    pub(crate) fn end(&self) -> Option<u64> {
        self.ranges.back().map(|range| range.end)
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Range<u64>> {
        self.ranges.iter()
    }

    /// The range that contains `seq`.
    pub(crate) fn containing(&self, seq: u64) -> Option<&Range<u64>> {
        let at = self.ranges.partition_point(|range| range.end <= seq);
        self.ranges.get(at).filter(|range| range.start <= seq)
    }

    /// Adds `new`; calls `fresh` with each part of it that was not there, in order.
    pub(crate) fn insert(&mut self, new: Range<u64>, mut fresh: impl FnMut(Range<u64>)) {
        if new.is_empty() {
            return;
        }
        // Almost always the end of the last range moves.
        if let Some(last) = self.ranges.back_mut()
            && last.end == new.start
        {
            self.bytes += new.end - new.start;
            last.end = new.end;
            fresh(new);
            return;
        }
        let first = self.ranges.partition_point(|range| range.end < new.start);
        let mut merged = new.clone();
        let mut cursor = new.start;
        let mut after = first;
        while let Some(range) = self.ranges.get(after).filter(|range| range.start <= new.end) {
            if cursor < range.start {
                self.bytes += range.start - cursor;
                fresh(cursor..range.start);
            }
            cursor = cursor.max(range.end);
            merged.start = merged.start.min(range.start);
            merged.end = merged.end.max(range.end);
            after += 1;
        }
        if cursor < new.end {
            self.bytes += new.end - cursor;
            fresh(cursor..new.end);
        }
        if first == after {
            self.ranges.insert(first, merged);
        } else {
            self.ranges[first] = merged;
            self.ranges.drain(first + 1..after);
        }
    }

    /// Removes everything below `seq`.
    pub(crate) fn remove_below(&mut self, seq: u64) {
        while let Some(range) = self.ranges.front_mut()
            && range.start < seq
        {
            if range.end > seq {
                self.bytes -= seq - range.start;
                range.start = seq;
                return;
            }
            self.bytes -= range.end - range.start;
            self.ranges.pop_front();
        }
    }

    /// Removes the first range if it begins at or below `seq`, and returns its end.
    pub(crate) fn take_reached(&mut self, seq: u64) -> Option<u64> {
        let end = self.ranges.front().filter(|range| range.start <= seq)?.end;
        let range = self.ranges.pop_front().expect("it was just looked at");
        self.bytes -= range.end - range.start;
        Some(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn ranges_are_the_set_of_their_numbers(
            operations in prop::collection::vec((0..60_u64, 0..12_u64, prop::bool::weighted(0.2)), 1..60)
        ) {
            let (mut ranges, mut set) = (Ranges::default(), BTreeSet::new());
            for (start, length, remove) in operations {
                if remove {
                    ranges.remove_below(start);
                    set = set.split_off(&start);
                } else {
                    let mut fresh = Vec::new();
                    ranges.insert(start..start + length, |range| fresh.extend(range));
                    let expected: Vec<u64> = (start..start + length).filter(|number| set.insert(*number)).collect();
                    prop_assert_eq!(fresh, expected);
                }
                prop_assert_eq!(ranges.bytes(), set.len() as u64);
                prop_assert!(ranges.iter().flat_map(Clone::clone).eq(set.iter().copied()));
                prop_assert!(ranges.iter().zip(ranges.iter().skip(1)).all(|(one, next)| one.end < next.start));
                for number in 0..75 {
                    let found = ranges.containing(number).is_some_and(|range| range.contains(&number));
                    prop_assert_eq!(found, set.contains(&number));
                }
            }
        }
    }
}
