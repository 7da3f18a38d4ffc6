//! The sent segments that are not cumulatively acknowledged.
//!
//! ```text
//!   snd_una                                                        snd_nxt
//!     |--- x ---|--- s ---|--- s ---|--- r ---|--- s ---|---   ---|
//!          lost     SACKed              lost, retransmitted    in flight
//!
//! pipe = segments - SACKed - lost + retransmitted                               RFC 6675 §4 SetPipe()
//! ```
//!
//! Segments are contiguous, in order, in a ring. Almost all are full, so a sequence number is found by division, else
//! by binary search. Nothing is searched from the start: losses are marked upwards from `marked_below`, retransmissions
//! picked upwards from `retransmit_from`, and SACK blocks touch only the segments that they newly cover.
//!
//! By RFC 6675 §4 IsLost() an un-SACKed segment is lost if three SACKed ranges, or more than two segments' worth of
//! SACKed bytes, lie above it. That is monotone: everything un-SACKed below one sequence number is lost
//! ([`Scoreboard::loss_threshold`]).
//!
//! *What it leaves out*: reneging (our receiver never discards SACKed data), SACK blocks that split a segment.

use crate::ranges::Ranges;
use lasthop_connection::rate::Sent;
use lasthop_units::Time;
use std::collections::VecDeque;
use std::ops::Range;

/// RFC 6675 §2: DupThresh.
pub(crate) const DUP_THRESH: u32 = 3;

/// A segment that has been sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub(crate) seq: u64,
    pub(crate) end: u64,
    /// When it was last transmitted.
    pub(crate) sent_at: Time,
    pub(crate) sent: Sent,
    flags: u8,
}

const SACKED: u8 = 1;
const LOST: u8 = 2;
/// Retransmitted, and the retransmission is not known to be lost.
const RETRANSMITTED: u8 = 4;
const EVER_RETRANSMITTED: u8 = 8;
const FIN: u8 = 16;
/// Found lost by time, and not sent since.
const JUDGED: u8 = 32;
/// A segment whose masked flags are not exactly LOST needs no retransmission.
const LOST_PENDING_MASK: u8 = SACKED | LOST | RETRANSMITTED;

impl Record {
    pub(crate) fn new(seq: u64, end: u64, fin: bool, sent_at: Time, sent: Sent) -> Self {
        Self { seq, end, sent_at, sent, flags: if fin { FIN } else { 0 } }
    }

    pub(crate) fn is_sacked(&self) -> bool {
        self.flags & SACKED != 0
    }

    #[cfg(test)]
    pub(crate) fn is_lost(&self) -> bool {
        self.flags & LOST != 0
    }

    pub(crate) fn is_retransmitted(&self) -> bool {
        self.flags & RETRANSMITTED != 0
    }

    pub(crate) fn was_ever_retransmitted(&self) -> bool {
        self.flags & EVER_RETRANSMITTED != 0
    }

    pub(crate) fn is_fin(&self) -> bool {
        self.flags & FIN != 0
    }

    fn is_pending(&self) -> bool {
        self.flags & LOST_PENDING_MASK == LOST
    }

    pub(crate) fn payload_bytes(&self) -> u32 {
        (self.end - self.seq) as u32 - u32::from(self.is_fin())
    }
}

/// A retransmission; the list is in order of time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retransmission {
    pub(crate) seq: u64,
    pub(crate) sent_at: Time,
    /// snd_nxt at that time: a SACK above it means that this retransmission was overtaken.
    pub(crate) snd_nxt: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Scoreboard {
    records: VecDeque<Record>,
    payload_bytes: u64,
    /// SACKed ranges above snd_una.
    sacked: Ranges,
    sacked_out: u32,
    /// Without SACK: the number of segments that duplicate ACKs stand for.
    pub(crate) duplicates: u32,
    lost_out: u32,
    /// Segments found lost since the connection began, a retransmission again: Linux's `tp->lost`.
    pub(crate) lost_ever: u32,
    retransmitted_out: u32,
    /// The number of segments that are lost and not retransmitted.
    pending: u32,
    /// Below it every segment is SACKed, lost or retransmitted.
    marked_below: u64,
    /// Below it no segment is pending.
    retransmit_from: u64,
    retransmissions: VecDeque<Retransmission>,
}

/// The counters, recomputed from the records.
#[cfg(test)]
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) sacked: u32,
    pub(crate) lost: u32,
    pub(crate) retransmitted: u32,
    pub(crate) pending: u32,
}

impl Scoreboard {
    pub(crate) fn new(payload_bytes: u32) -> Self {
        Self {
            records: VecDeque::new(),
            payload_bytes: u64::from(payload_bytes),
            sacked: Ranges::default(),
            sacked_out: 0,
            duplicates: 0,
            lost_out: 0,
            lost_ever: 0,
            retransmitted_out: 0,
            pending: 0,
            marked_below: 0,
            retransmit_from: 0,
            retransmissions: VecDeque::new(),
        }
    }

    /// Segments sent and not cumulatively acknowledged: FlightSize.
    pub(crate) fn len(&self) -> u32 {
        self.records.len() as u32
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// RFC 6675's pipe, in segments.
    pub(crate) fn in_flight(&self) -> u32 {
        self.len() + self.retransmitted_out - self.left()
    }

    /// Segments that left the network: delivered or lost.
    pub(crate) fn left(&self) -> u32 {
        self.sacked_out + self.duplicates + self.lost_out
    }

    pub(crate) fn sacked_out(&self) -> u32 {
        self.sacked_out + self.duplicates
    }

    pub(crate) fn lost_out(&self) -> u32 {
        self.lost_out
    }

    pub(crate) fn retransmitted_out(&self) -> u32 {
        self.retransmitted_out
    }

    /// Segments lost and not retransmitted yet.
    pub(crate) fn pending(&self) -> u32 {
        self.pending
    }

    pub(crate) fn front(&self) -> Option<&Record> {
        self.records.front()
    }

    #[cfg(test)]
    pub(crate) fn back(&self) -> Option<&Record> {
        self.records.back()
    }

    pub(crate) fn highest_sacked(&self) -> Option<u64> {
        self.sacked.end()
    }

    pub(crate) fn has_sacked(&self) -> bool {
        !self.sacked.is_empty()
    }

    /// The index of the record that contains `seq`, or the number of records.
    fn index_of(&self, seq: u64) -> usize {
        let Some(front) = self.records.front() else { return 0 };
        let guess = (seq.saturating_sub(front.seq) / self.payload_bytes) as usize;
        match self.records.get(guess) {
            Some(record) if record.seq <= seq && seq < record.end => guess,
            _ => self.records.partition_point(|record| record.end <= seq),
        }
    }

    /// The index of the record that begins at `seq`.
    pub(crate) fn find(&self, seq: u64) -> Option<usize> {
        let index = self.index_of(seq);
        self.records.get(index).filter(|record| record.seq == seq).map(|_| index)
    }

    /// A new segment was sent.
    pub(crate) fn push(&mut self, record: Record) {
        debug_assert!(self.records.back().is_none_or(|last| last.end == record.seq), "segments are contiguous");
        if self.records.is_empty() {
            self.marked_below = record.seq;
            self.retransmit_from = record.seq;
        }
        self.records.push_back(record);
    }

    /// The host refused the newest segment. Returns it if it is the one at `seq` and was never retransmitted.
    pub(crate) fn take_back(&mut self, seq: u64) -> Option<Record> {
        let newest = self.records.back().filter(|record| record.seq == seq && record.flags & !FIN == 0)?;
        debug_assert!(newest.seq >= self.marked_below, "a segment that was never sent cannot be lost");
        self.records.pop_back()
    }

    /// The cumulative ACK advances to `ack`. Calls `each` with every record that leaves.
    pub(crate) fn acknowledge(&mut self, ack: u64, mut each: impl FnMut(&Record)) {
        while self.records.front().is_some_and(|record| record.end <= ack) {
            let record = self.records.pop_front().expect("it was just looked at");
            if record.flags & LOST_PENDING_MASK != 0 {
                self.sacked_out -= u32::from(record.is_sacked());
                self.forget(record.flags);
            }
            each(&record);
        }
        // An ACK in the middle of a segment keeps the whole segment.
        let first = self.records.front().map_or(ack, |head| head.seq);
        if !self.sacked.is_empty() {
            self.sacked.remove_below(first);
        }
        while self.retransmissions.front().is_some_and(|entry| entry.seq < first) {
            self.retransmissions.pop_front();
        }
        self.marked_below = self.marked_below.max(first);
        self.retransmit_from = self.retransmit_from.max(first);
    }

    /// Removes a record's marks of loss and retransmission from the counters.
    fn forget(&mut self, flags: u8) {
        self.lost_out -= u32::from(flags & LOST != 0);
        self.retransmitted_out -= u32::from(flags & RETRANSMITTED != 0);
        self.pending -= u32::from(flags & LOST_PENDING_MASK == LOST);
    }

    /// A SACK block. Calls `each` with every record that it newly covers, as it was before. Only whole records count.
    pub(crate) fn sack(&mut self, block: Range<u64>, mut each: impl FnMut(&Record)) {
        // Our receiver's blocks begin and end with records; others are cut to the records that they cover.
        let first = self.index_of(block.start);
        let Some(record) = self.records.get(first) else { return };
        let start = if record.seq >= block.start { record.seq } else { record.end };
        let end = match self.records.get(self.index_of(block.end)) {
            Some(record) => record.seq.min(block.end),
            None => self.records.back().map_or(start, |record| record.end),
        };
        if start >= end {
            return;
        }
        let mut sacked = std::mem::take(&mut self.sacked);
        sacked.insert(start..end, |fresh| {
            let mut index = self.index_of(fresh.start);
            while let Some(record) = self.records.get_mut(index)
                && record.end <= fresh.end
            {
                let before = *record;
                record.flags = record.flags & !(LOST | RETRANSMITTED) | SACKED;
                self.sacked_out += 1;
                self.forget(before.flags);
                each(&before);
                index += 1;
            }
        });
        self.sacked = sacked;
    }

    /// The sequence number below which every un-SACKed segment is lost by RFC 6675 §4 IsLost() with DupThresh
    /// `dup_thresh`, in segments; 0: none is. With `fack`, segments that many or more below the highest SACKed byte are
    /// lost, too.
    pub(crate) fn loss_threshold(&self, dup_thresh: u32, fack: bool) -> u64 {
        let more_than = u64::from(dup_thresh - 1) * self.payload_bytes;
        let mut bytes = 0;
        let mut threshold = 0;
        for (above, range) in self.sacked.iter().rev().enumerate() {
            bytes += range.end - range.start;
            if bytes > more_than || above + 1 >= dup_thresh as usize {
                threshold = range.start;
                break;
            }
        }
        if fack && let Some(highest) = self.sacked.end() {
            threshold = threshold.max(highest.saturating_sub(u64::from(dup_thresh) * self.payload_bytes));
        }
        threshold
    }

    /// Marks all segments below `threshold` as lost. Returns how many are newly lost.
    pub(crate) fn mark_lost_below(&mut self, threshold: u64) -> u32 {
        if threshold <= self.marked_below || self.records.is_empty() {
            return 0;
        }
        let mut index = self.index_of(self.marked_below);
        let before = self.lost_out;
        while let Some(record) = self.records.get(index)
            && record.end <= threshold
        {
            self.marked_below = record.end;
            if record.flags & (SACKED | LOST) == 0 {
                self.mark_lost(index, false);
            }
            index += 1;
        }
        self.lost_out - before
    }

    /// Marks the first segment as lost. Returns whether it is newly lost.
    pub(crate) fn mark_head_lost(&mut self) -> bool {
        let newly = self.records.front().is_some_and(|head| head.flags & (SACKED | LOST) == 0);
        if newly {
            self.mark_lost(0, false);
        }
        newly
    }

    /// Marks one segment as lost; `again`: its retransmission, too.
    fn mark_lost(&mut self, index: usize, again: bool) {
        let record = &mut self.records[index];
        let newly = record.flags & LOST == 0;
        self.lost_out += u32::from(newly);
        self.lost_ever = self.lost_ever.wrapping_add(u32::from(newly || again));
        record.flags |= LOST;
        if again && record.flags & RETRANSMITTED != 0 {
            record.flags &= !RETRANSMITTED;
            self.retransmitted_out -= 1;
            self.pending += 1;
        } else if record.flags & RETRANSMITTED == 0 {
            self.pending += 1;
        }
        if record.flags & RETRANSMITTED == 0 {
            self.retransmit_from = self.retransmit_from.min(record.seq);
        }
    }

    /// A timeout: marks every un-SACKed segment as lost for which `is_lost` holds, and its retransmission, too.
    pub(crate) fn mark_all_lost(&mut self, mut is_lost: impl FnMut(usize, &Record) -> bool) {
        self.duplicates = 0;
        for index in 0..self.records.len() {
            let record = &self.records[index];
            if !record.is_sacked() && !record.is_pending() && is_lost(index, record) {
                self.mark_lost(index, true);
            }
        }
        self.retransmissions.retain(|entry| {
            let index = self.records.partition_point(|record| record.end <= entry.seq);
            self.records.get(index).is_some_and(Record::is_retransmitted)
        });
    }

    /// The index of the first record that is lost and not retransmitted.
    pub(crate) fn next_pending(&mut self) -> Option<usize> {
        if self.pending == 0 {
            return None;
        }
        let mut index = self.index_of(self.retransmit_from);
        while let Some(record) = self.records.get(index) {
            if record.is_pending() {
                self.retransmit_from = record.seq;
                return Some(index);
            }
            index += 1;
        }
        unreachable!("{} segments are pending but none is found from {}", self.pending, self.retransmit_from)
    }

    /// The index of the first record from `from` on that is neither SACKed nor retransmitted and is below the highest
    /// SACKed byte: NextSeg rules 1 and 3 without the condition "lost".
    pub(crate) fn next_unsacked(&self, from: u64) -> Option<usize> {
        let highest = self.highest_sacked()?;
        let mut index = self.index_of(from);
        while let Some(record) = self.records.get(index)
            && record.seq < highest
        {
            if record.flags & (SACKED | RETRANSMITTED) == 0 {
                return Some(index);
            }
            index += 1;
        }
        None
    }

    /// The index of the highest record that is not SACKed.
    pub(crate) fn last_unsacked(&self) -> Option<usize> {
        (0..self.records.len()).rev().find(|index| !self.records[*index].is_sacked())
    }

    /// A record is retransmitted; returns its new state.
    pub(crate) fn on_retransmitted(&mut self, index: usize, now: Time, snd_nxt: u64, sent: Sent) -> Record {
        let record = &mut self.records[index];
        self.pending -= u32::from(record.flags & LOST_PENDING_MASK == LOST);
        self.retransmitted_out += u32::from(record.flags & RETRANSMITTED == 0);
        record.flags = record.flags & !JUDGED | RETRANSMITTED | EVER_RETRANSMITTED;
        record.sent_at = now;
        record.sent = sent;
        self.retransmissions.push_back(Retransmission { seq: record.seq, sent_at: now, snd_nxt });
        *record
    }

    /// The last record is sent again as a probe. As in Linux it is in flight once: what is retransmitted otherwise counts
    /// twice.
    pub(crate) fn on_probed(&mut self, now: Time, sent: Sent) -> Option<Record> {
        let record = self.records.back_mut()?;
        record.flags = record.flags & !JUDGED | EVER_RETRANSMITTED;
        record.sent_at = now;
        record.sent = sent;
        self.marked_below = self.marked_below.min(record.seq);
        Some(*record)
    }

    /// Whether the record of this index is in flight a second time.
    pub(crate) fn is_retransmitted(&self, index: usize) -> bool {
        self.records[index].is_retransmitted()
    }

    /// The record that contains `seq`, if it was ever retransmitted.
    pub(crate) fn retransmitted_at(&self, seq: u64) -> Option<&Record> {
        self.records.get(self.index_of(seq)).filter(|record| record.seq <= seq && record.was_ever_retransmitted())
    }

    /// The host refused the retransmission of the record at `seq`. Returns whether there was one.
    pub(crate) fn take_retransmission_back(&mut self, seq: u64) -> bool {
        let Some(index) = self.find(seq) else { return false };
        let record = &mut self.records[index];
        if record.flags & RETRANSMITTED == 0 {
            return false;
        }
        record.flags &= !RETRANSMITTED;
        self.retransmitted_out -= 1;
        if record.flags & LOST != 0 {
            self.pending += 1;
            self.retransmit_from = self.retransmit_from.min(record.seq);
        }
        if self.retransmissions.back().is_some_and(|last| last.seq == seq) {
            self.retransmissions.pop_back();
        }
        true
    }

    /// The oldest retransmission in flight, and its record.
    pub(crate) fn oldest_retransmission(&mut self) -> Option<(Retransmission, Record)> {
        while let Some(entry) = self.retransmissions.front() {
            if let Some(index) = self.find(entry.seq) {
                let record = self.records[index];
                if record.is_retransmitted() && record.sent_at == entry.sent_at {
                    return Some((*entry, record));
                }
            }
            self.retransmissions.pop_front();
        }
        None
    }

    /// The oldest retransmission is lost. Time does not find it again before it is sent again.
    pub(crate) fn mark_oldest_retransmission_lost(&mut self) {
        let entry = self.retransmissions.pop_front().expect("the caller has just looked at it");
        let index = self.find(entry.seq).expect("the caller has just looked at it");
        self.records[index].flags |= JUDGED;
        self.mark_lost(index, true);
    }

    /// The first record that is neither SACKed nor lost nor retransmitted, and that time has not judged before. Moves
    /// `marked_below` up to it.
    pub(crate) fn next_unmarked(&mut self) -> Option<Record> {
        let mut index = self.index_of(self.marked_below);
        while let Some(record) = self.records.get(index) {
            if record.flags & (SACKED | LOST | RETRANSMITTED | JUDGED) == 0 {
                return Some(*record);
            }
            self.marked_below = record.end;
            index += 1;
        }
        None
    }

    /// When the last segment was sent of those that are in flight, as far as is known, and were sent before `latest`: a
    /// time and an end.
    pub(crate) fn last_in_flight_before(&self, latest: (Time, u64)) -> Option<Time> {
        let before = |record: &&Record| (record.sent_at, record.end) < latest;
        let original = |record: &&Record| record.flags & (SACKED | LOST | RETRANSMITTED | JUDGED) == 0;
        let mut retransmitted = self.retransmissions.iter().rev().filter_map(|entry| {
            let record = &self.records[self.find(entry.seq)?];
            (record.is_retransmitted() && record.sent_at == entry.sent_at).then_some(record)
        });
        let newest = [retransmitted.find(before), self.records.iter().rev().filter(original).find(before)];
        newest.into_iter().flatten().map(|record| record.sent_at).max()
    }

    /// The record that [`next_unmarked`](Self::next_unmarked) has returned is lost, by time. If that proves wrong, time
    /// does not find it lost again before it is sent again: Linux's list by time of sending has it no more.
    pub(crate) fn mark_next_lost(&mut self) {
        let index = self.index_of(self.marked_below);
        self.records[index].flags |= JUDGED;
        self.mark_lost(index, false);
    }

    /// Removes all marks of loss: the losses were spurious.
    pub(crate) fn unmark_lost(&mut self) {
        for record in &mut self.records {
            record.flags &= !LOST;
        }
        self.lost_out = 0;
        self.pending = 0;
        self.marked_below = self.records.front().map_or(self.marked_below, |record| record.seq);
        self.retransmit_from = self.marked_below;
    }

    #[cfg(test)]
    pub(crate) fn counts(&self) -> Counts {
        Counts {
            sacked: self.sacked_out,
            lost: self.lost_out,
            retransmitted: self.retransmitted_out,
            pending: self.pending,
        }
    }

    /// The counters, recomputed from the records.
    #[cfg(test)]
    pub(crate) fn recount(&self) -> Counts {
        let count = |is: fn(&Record) -> bool| self.records.iter().filter(|record| is(record)).count() as u32;
        Counts {
            sacked: count(Record::is_sacked),
            lost: count(Record::is_lost),
            retransmitted: count(Record::is_retransmitted),
            pending: count(Record::is_pending),
        }
    }

    /// Checks all other invariants.
    #[cfg(test)]
    pub(crate) fn check(&self) {
        assert_eq!(self.counts(), self.recount());
        assert!(self.left() <= self.len() + self.retransmitted_out, "pipe is negative");
        assert!(self.records.iter().zip(self.records.iter().skip(1)).all(|(one, next)| one.end == next.seq));
        let sacked: u64 =
            self.records.iter().filter(|record| record.is_sacked()).map(|record| record.end - record.seq).sum();
        assert_eq!(self.sacked.bytes(), sacked);
        for record in &self.records {
            assert!(!(record.is_sacked() && (record.is_lost() || record.is_retransmitted())));
            assert!(record.seq >= self.retransmit_from || !record.is_pending());
            assert!(record.end > self.marked_below || record.flags & (SACKED | LOST | RETRANSMITTED | JUDGED) != 0);
        }
        if let Some(front) = self.records.front() {
            assert!(self.sacked.iter().all(|range| range.start >= front.seq));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MSS: u64 = 1000;

    fn board(segments: u64) -> Scoreboard {
        let mut board = Scoreboard::new(MSS as u32);
        for number in 0..segments {
            board.push(Record::new(number * MSS, (number + 1) * MSS, false, Time::ZERO, Sent::default()));
        }
        board
    }

    fn sack(board: &mut Scoreboard, first: u64, after: u64) -> u32 {
        let mut count = 0;
        board.sack(first * MSS..after * MSS, |_| count += 1);
        board.check();
        count
    }

    #[test]
    fn three_ranges_or_more_than_two_segments_above_are_proof() {
        // RFC 6675 §4 IsLost()
        let mut one_by_one = board(20);
        for (number, threshold) in [(3, 0), (5, 0), (7, 3)] {
            sack(&mut one_by_one, number, number + 1);
            assert_eq!(one_by_one.loss_threshold(DUP_THRESH, false), threshold * MSS);
        }
        let mut together = board(20);
        sack(&mut together, 4, 6);
        assert_eq!(together.loss_threshold(DUP_THRESH, false), 0); // two segments are not more than two
        sack(&mut together, 6, 7);
        assert_eq!(together.loss_threshold(DUP_THRESH, false), 4 * MSS);
        assert_eq!(together.mark_lost_below(4 * MSS), 4);
        assert_eq!(together.in_flight(), 20 - 3 - 4);
    }

    #[test]
    fn forward_acknowledgement_counts_from_the_highest() {
        let mut board = board(20);
        sack(&mut board, 9, 10);
        assert_eq!((board.loss_threshold(DUP_THRESH, false), board.loss_threshold(DUP_THRESH, true)), (0, 7 * MSS));
    }

    #[test]
    fn pipe_counts_what_rfc_6675_counts() {
        let mut board = board(10);
        sack(&mut board, 2, 5);
        board.mark_lost_below(2 * MSS);
        assert_eq!(board.in_flight(), 5); // 5 to 9
        let first = board.next_pending().expect("two are lost");
        board.on_retransmitted(first, Time::ZERO, 10 * MSS, Sent::default());
        assert_eq!(board.in_flight(), 6); // and the retransmission of 0
        // Retransmitted and not lost: twice in the network (SetPipe (a) and (b)).
        board.on_retransmitted(9, Time::ZERO, 10 * MSS, Sent::default());
        assert_eq!(board.in_flight(), 7);
        board.check();
    }

    #[test]
    fn what_was_retransmitted_before_it_was_lost_is_not_sent_again() {
        let mut board = board(10);
        board.on_retransmitted(0, Time::ZERO, 10 * MSS, Sent::default()); // NextSeg rule 3
        sack(&mut board, 2, 6);
        board.mark_lost_below(2 * MSS);
        assert_eq!(board.next_pending(), Some(1));
        assert_eq!((board.pending(), board.in_flight()), (1, 10 - 4 - 2 + 1));
    }

    #[test]
    fn a_block_that_splits_segments_counts_the_whole_ones() {
        let mut board = board(10);
        let mut sacked = Vec::new();
        board.sack(1500..4999, |record| sacked.push(record.seq / MSS));
        board.check();
        assert_eq!(sacked, [2, 3]);
        board.sack(0..1 << 40, |record| sacked.push(record.seq / MSS));
        assert_eq!(sacked, [2, 3, 0, 1, 4, 5, 6, 7, 8, 9]);
        board.sack(1 << 40..1 << 41, |_| panic!("there are no records"));
        board.check();
    }

    #[test]
    fn only_what_was_sent_last_can_be_taken_back() {
        let mut board = board(3);
        assert!(board.take_back(0).is_none());
        assert!(board.take_back(2 * MSS).is_some());
        assert_eq!(board.len(), 2);
        board.on_retransmitted(1, Time::ZERO, 2 * MSS, Sent::default());
        assert!(board.take_back(MSS).is_none());
        assert!(board.take_retransmission_back(MSS));
        assert!(!board.take_retransmission_back(MSS));
        board.check();
    }

    #[derive(Clone, Debug)]
    enum Operation {
        Send,
        Sack(u64, u64),
        Acknowledge(u64),
        MarkLost,
        Retransmit,
        LoseRetransmission,
        JudgeNext,
        Probe,
        Timeout,
        Unmark,
        TakeBack,
    }

    fn any_operation() -> impl Strategy<Value = Operation> {
        prop_oneof![
            6 => Just(Operation::Send),
            4 => (0..40_u64, 1..8_u64).prop_map(|(first, count)| Operation::Sack(first, count)),
            2 => (0..12_u64).prop_map(Operation::Acknowledge),
            3 => Just(Operation::MarkLost),
            4 => Just(Operation::Retransmit),
            2 => Just(Operation::LoseRetransmission),
            2 => Just(Operation::JudgeNext),
            1 => Just(Operation::Probe),
            1 => Just(Operation::Timeout),
            1 => Just(Operation::Unmark),
            1 => Just(Operation::TakeBack),
        ]
    }

    proptest! {
        /// The counters and pointers against counts of the records, and the threshold against RFC 6675's text.
        #[test]
        fn the_scoreboard_is_what_a_slow_count_says(operations in prop::collection::vec(any_operation(), 1..150)) {
            let mut board = board(0);
            let (mut una, mut nxt, mut clock) = (0, 0, 0);
            for operation in operations {
                clock += 1;
                let now = Time::from_nanos(clock);
                match operation {
                    Operation::Send => {
                        // Some segments are short.
                        let end = nxt + if clock % 7 == 0 { 300 } else { MSS };
                        board.push(Record::new(nxt, end, false, now, Sent::default()));
                        nxt = end;
                    }
                    Operation::Sack(first, count) => {
                        let starts: Vec<u64> = board.records.iter().map(|record| record.seq).collect();
                        let start = starts.get(first as usize).copied();
                        let end = starts.get((first + count) as usize).copied().unwrap_or(nxt);
                        if let Some(start) = start {
                            board.sack(start..end, |_| {});
                        }
                    }
                    Operation::Acknowledge(count) => {
                        una = board.records.get(count as usize).map_or(una, |record| record.seq);
                        let before = board.len();
                        let mut passed = 0;
                        board.acknowledge(una, |_| passed += 1);
                        prop_assert_eq!(before - board.len(), passed);
                    }
                    Operation::MarkLost => {
                        board.mark_lost_below(board.loss_threshold(DUP_THRESH, false));
                    }
                    Operation::Retransmit => {
                        if let Some(index) = board.next_pending() {
                            prop_assert!(board.records.iter().take(index).all(|record| !record.is_pending()));
                            board.on_retransmitted(index, now, nxt, Sent::default());
                        }
                    }
                    Operation::LoseRetransmission => {
                        if let Some((oldest, _)) = board.oldest_retransmission() {
                            let under_way = board.records.iter().filter(|record| record.is_retransmitted());
                            prop_assert_eq!(under_way.map(|record| record.sent_at).min(), Some(oldest.sent_at));
                            board.mark_oldest_retransmission_lost();
                        }
                    }
                    Operation::JudgeNext => {
                        if let Some(next) = board.next_unmarked() {
                            board.mark_next_lost();
                            prop_assert!(board.records.iter().any(|record| record.seq == next.seq && record.is_lost()));
                            prop_assert!(board.next_unmarked().is_none_or(|other| other.seq > next.seq));
                        }
                    }
                    Operation::Probe => {
                        if board.records.back().is_some_and(|last| last.flags & (SACKED | LOST | RETRANSMITTED) == 0) {
                            let before = board.in_flight();
                            board.on_probed(now, Sent::default());
                            prop_assert_eq!(board.in_flight(), before);
                            prop_assert_eq!(board.last_in_flight_before((Time::MAX, 0)), Some(now));
                        }
                    }
                    Operation::Timeout => board.mark_all_lost(|_, _| true),
                    Operation::Unmark => board.unmark_lost(),
                    Operation::TakeBack => {
                        if board.records.back().is_some_and(|last| last.seq >= board.marked_below)
                            && let Some(record) = board.records.back().copied().and_then(|last| board.take_back(last.seq))
                        {
                            nxt = record.seq;
                        }
                    }
                }
                board.check();
                // RFC 6675 §4: "DupThresh discontiguous SACKed sequences [...] above SeqNum, or more than (DupThresh - 1) *
                // SMSS bytes with sequence numbers greater than SeqNum have been SACKed"
                let threshold = board.loss_threshold(DUP_THRESH, false);
                for record in board.records.iter().filter(|record| !record.is_sacked()) {
                    let above: Vec<_> = board.sacked.iter().filter(|range| range.start > record.seq).collect();
                    let bytes: u64 = above.iter().map(|range| range.end - range.start).sum();
                    prop_assert_eq!(record.seq < threshold, above.len() >= 3 || bytes > 2 * MSS);
                }
            }
        }
    }
}
