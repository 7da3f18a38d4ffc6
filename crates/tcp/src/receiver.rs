//! The receiving half: reassembly, when to acknowledge what, the window.
//!
//! ```text
//! in order            an ACK for each second full segment, or when the timer ends; at once for the first 16
//!                     where GRO joins segments: after each burst of two or more of them
//! out of order        an ACK at once, with SACK blocks, the newest first                     RFC 5681 §4.2, RFC 2018 §4
//!                     with SACK compression the first three; then one in min(1 ms, 5 % of RTT), or for 44 segments
//! fills (part of) a gap   an ACK at once                                                     RFC 5681 §4.2
//! arrived before      an ACK at once, with a D-SACK block                                    RFC 2883
//! TSecr               of the earliest unacknowledged segment; of the last in-order one while data are missing
//!                     TS.Recent = TSval if SEG.SEQ <= Last.ACK.sent                          RFC 7323 §4.3
//! all before the last ACK, or older than TS.Recent (PAWS)
//!                     dropped, and acknowledged                          RFC 9293 §3.10.7.4, RFC 7323 §5.3
//! window              the free buffer from rcv_nxt on, limited by the bound; its edge never moves back   RFC 7323 §2.4
//! timer               40 ms, more with slower arrivals, up to 200 ms: Linux's "ato"
//! ```
//!
//! The application reads in-order data at once, unless it is paused.
//!
//! *What it leaves out*: Linux's receive buffer tuning (the whole buffer is advertised from the start) and interactive
//! mode (pingpong), urgent data. Of GRO: a burst's end where ECN fields differ, or after some milliseconds; joining behind
//! a hole; an ACK of the burst before the first duplicate.

use crate::clock::is_before;
use crate::config::{Config, DelayedAck};
use crate::ecn::{ECE, Echo, Feedback, News};
use crate::ranges::Ranges;
use crate::segment::{SackBlocks, Segment};
use lasthop_laws::bound::LeasedBound;
use lasthop_units::{Ecn, Span, Time};
use std::ops::Range;

/// The number of SACK blocks remembered in the order of their last change: those that fit into an option.
const RECENT: usize = 4;
/// The least interval between two unneeded ACKs: Linux's `tcp_invalid_ratelimit`.
const NEEDLESS_ACK_EVERY: Span = Span::from_millis(500);

/// `tcp_comp_sack_delay_ns`.
const COMPRESSION_DELAY: Span = Span::from_millis(1);
/// The delay as a part of the round trip: 1/20, 5 %.
const COMPRESSION_SHARE: u64 = 20;
/// `TCP_SACK_BLOCKS_EXPECTED`: blocks that wait for a compressed ACK.
const COMPRESSED_BLOCKS: usize = 2;
/// `tcp_comp_sack_nr`.
const COMPRESSION_SEGMENTS: u32 = 44;
/// Duplicate ACKs sent at once, so that fast retransmit is not delayed: TCP_FASTRETRANS_THRESH.
const UNCOMPRESSED_DUPLICATES: u32 = 3;

#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    segments_per_ack: u64,
    timer_min: Span,
    timer_max: Span,
    quick_segments: u32,
    buffer: u64,
    shift: u8,
    sack: bool,
    compresses: bool,
    /// Payload of a full segment; before the handshake the most that it can be.
    segment_bytes: u64,

    rcv_nxt: u64,
    out_of_order: Ranges,
    recent: [Range<u64>; RECENT],
    d_sack: Option<Range<u64>>,
    /// The sequence number of the FIN.
    fin_at: Option<u64>,
    paused: bool,
    unread: u64,
    /// The window's right edge, as advertised.
    edge: u64,
    bound: Option<LeasedBound>,

    ack_now: bool,
    ack_at: Time,
    /// When the burst that GRO joins ends, if nothing more comes; the sequence number at which it began, and its timestamp.
    burst_ends: Time,
    burst_from: u64,
    burst_stamp: u32,
    /// When the compressed ACK is sent, the number of segments waiting for it, the duplicates sent before, and their
    /// rcv_nxt.
    compressed_at: Time,
    compressed: u32,
    /// The ACK to send is for those before the newest segment, which waits for the next one.
    newest_waits: bool,
    duplicates_sent: u32,
    duplicates_of: u64,
    last_ack_sent: u64,
    quick_left: u32,
    /// Data have arrived since the last ACK: ICSK_ACK_SCHED.
    scheduled: bool,
    wait: Span,
    last_data_at: Option<Time>,
    last_needless_ack: Option<Time>,
    ts_recent: u32,
    echo: Echo,
    /// With DCTCP, the number of a delayed ACK that a change of the marks has made due: RFC 8257 §3.2.
    prior_ack: Option<u64>,
}

impl Receiver {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            segments_per_ack: u64::from(config.delayed_ack.segments),
            timer_min: config.delayed_ack.timer_min,
            timer_max: config.delayed_ack.timer_max,
            quick_segments: config.delayed_ack.quick_segments,
            buffer: config.receive_buffer.get(),
            shift: 0,
            sack: false,
            compresses: config.sack_compression,
            segment_bytes: config.mss.get(),
            rcv_nxt: 0,
            out_of_order: Ranges::default(),
            recent: [const { 0..0 }; RECENT],
            d_sack: None,
            fin_at: None,
            paused: false,
            unread: 0,
            edge: 0,
            bound: None,
            ack_now: false,
            ack_at: Time::MAX,
            burst_ends: Time::MAX,
            burst_from: 0,
            burst_stamp: 0,
            compressed_at: Time::MAX,
            compressed: 0,
            newest_waits: false,
            duplicates_sent: 0,
            duplicates_of: 0,
            last_ack_sent: 0,
            quick_left: config.delayed_ack.quick_segments,
            scheduled: false,
            wait: config.delayed_ack.timer_min,
            last_data_at: None,
            last_needless_ack: None,
            ts_recent: 0,
            echo: Echo::default(),
            prior_ack: None,
        }
    }

    /// The other side's SYN has arrived.
    pub(crate) fn on_syn(&mut self, segment: &Segment) {
        self.rcv_nxt = segment.end();
        self.last_ack_sent = self.rcv_nxt;
        self.ts_recent = segment.timestamps.map_or(0, |timestamps| timestamps.value);
    }

    /// Sets what was negotiated: full segments carry `payload_bytes`, advertised windows are scaled by `shift` from now
    /// on.
    pub(crate) fn establish(&mut self, payload_bytes: u32, sack: bool, ecn: Feedback, shift: u8) {
        self.echo.feedback = ecn;
        self.segment_bytes = u64::from(payload_bytes);
        self.sack = sack;
        self.shift = shift;
        if shift == 0 {
            self.buffer = self.buffer.min(65_535);
        }
    }

    pub(crate) fn rcv_nxt(&self) -> u64 {
        self.rcv_nxt
    }

    /// The other side's FIN and all data before it have arrived.
    pub(crate) fn is_finished(&self) -> bool {
        self.fin_at.is_some_and(|fin| self.rcv_nxt > fin)
    }

    /// Bytes received in order and read by the application.
    pub(crate) fn received_bytes(&self) -> u64 {
        self.rcv_nxt.saturating_sub(1) - u64::from(self.is_finished()) - self.unread
    }

    /// Payload received in order, read or not.
    pub(crate) fn in_order_bytes(&self) -> u64 {
        self.received_bytes() + self.unread
    }

    pub(crate) fn set_bound(&mut self, bound: LeasedBound) {
        self.bound = Some(bound);
    }

    /// Whether this segment is as long as they get.
    pub(crate) fn is_full(&self, segment: &Segment) -> bool {
        u64::from(segment.payload_bytes) >= self.segment_bytes
    }

    pub(crate) fn ts_recent(&self) -> u32 {
        self.ts_recent
    }

    pub(crate) fn next_timeout(&self) -> Time {
        self.ack_at.min(self.compressed_at).min(self.burst_ends)
    }

    pub(crate) fn on_timeout(&mut self, now: Time) {
        if now >= self.ack_at {
            // Linux's tcp_delack_timer(): the estimated wait was too short.
            self.wait = (self.wait * 2).min(self.timer_max);
            self.ack_now();
        }
        if now >= self.compressed_at {
            self.ack_now();
        }
        if now >= self.burst_ends {
            self.ack_pairs(now);
        }
    }

    pub(crate) fn ack_now(&mut self) {
        self.ack_now = true;
    }

    pub(crate) fn wants_ack(&self) -> bool {
        self.ack_now
    }

    pub(crate) fn pause_reading(&mut self) {
        self.paused = true;
    }

    /// The application reads again, at once everything that waits. A window that at least doubles is advertised.
    pub(crate) fn resume_reading(&mut self) {
        self.paused = false;
        let before = self.edge.saturating_sub(self.rcv_nxt);
        self.unread = 0;
        if self.buffer >= 2 * before {
            self.ack_now();
        }
    }

    /// A segment that takes sequence numbers, or a pure ACK. `rto` and `srtt` are this side's own.
    pub(crate) fn on_segment(&mut self, now: Time, segment: &Segment, rto: Span, srtt: Span) {
        if let Some(timestamps) = segment.timestamps
            && segment.seq <= self.last_ack_sent
            && !is_before(timestamps.value, self.ts_recent)
        {
            self.ts_recent = timestamps.value;
        }
        if segment.ecn == Ecn::Ce && self.echo.feedback == Feedback::Accurate {
            self.echo.on_marked();
        }
        if !segment.takes_sequence_numbers() {
            return;
        }
        self.scheduled = true;
        if self.echo.is_on() {
            self.take_mark(segment);
        }
        let (seq, end) = (segment.seq, segment.end());
        if segment.fin {
            self.fin_at = Some(end - 1);
        }
        if end <= self.rcv_nxt {
            self.on_duplicate(seq..end);
        } else if seq > self.rcv_nxt {
            self.on_out_of_order(seq..end);
            self.ack_out_of_order(now, srtt);
        } else {
            if self.burst_ends == Time::MAX {
                self.pace_acks(now, rto);
            }
            self.on_in_order(now, seq, end, segment);
        }
    }

    #[inline(never)]
    fn take_mark(&mut self, segment: &Segment) {
        if self.echo.on_data(segment) {
            self.ack_now();
        }
        if segment.end() <= self.rcv_nxt {
            return;
        }
        match self.echo.on_new(segment.ecn) {
            News::None => {}
            News::Marks => self.ack_now(),
            News::First => {
                self.quick_left = self.quick_left.max(Echo::QUICK);
                self.wait = self.timer_min;
            }
            News::Change => {
                let is_due = self.ack_at != Time::MAX || self.burst_ends != Time::MAX;
                self.prior_ack = is_due.then_some(self.rcv_nxt);
                self.ack_now();
            }
        }
    }

    /// An ACK to send before the next one: its number, and its ECN flag.
    pub(crate) fn take_prior_ack(&mut self) -> Option<(u64, u8)> {
        self.prior_ack.take().map(|ack| (ack, self.echo.flags() ^ ECE))
    }

    /// The ECN flag of an ACK sent now.
    pub(crate) fn ece(&self) -> u8 {
        self.echo.flags()
    }

    fn on_in_order(&mut self, now: Time, seq: u64, end: u64, segment: &Segment) {
        if seq < self.rcv_nxt {
            self.d_sack = Some(seq..self.rcv_nxt);
        }
        let before = self.rcv_nxt;
        self.rcv_nxt = end;
        let had_gap = !self.out_of_order.is_empty();
        if had_gap {
            while let Some(reached) = self.out_of_order.take_reached(self.rcv_nxt) {
                self.rcv_nxt = self.rcv_nxt.max(reached);
            }
            self.forget_reached();
        }
        if self.paused {
            self.unread += self.rcv_nxt - before - u64::from(self.is_finished());
        }
        if had_gap || self.d_sack.is_some() || self.is_finished() || (segment.push && !self.paused) {
            self.ack_now();
        } else if self.segments_per_ack <= 2 || !self.joins(now, before, segment) {
            self.ack_pairs(now);
        }
    }

    /// Whether GRO keeps this segment, which began at `before`, for those that follow it. Those of another millisecond have
    /// another timestamp, and begin another burst.
    #[inline(never)]
    fn joins(&mut self, now: Time, before: u64, segment: &Segment) -> bool {
        let stamp = segment.timestamps.map_or(0, |timestamps| timestamps.value);
        if self.burst_ends == Time::MAX {
            (self.burst_from, self.burst_stamp) = (before, stamp);
        }
        self.burst_ends = now + DelayedAck::BURST_GAP;
        stamp == self.burst_stamp && self.rcv_nxt - self.burst_from < self.segments_per_ack * self.segment_bytes
    }

    /// Acknowledges two segments or more at once, and one later.
    fn ack_pairs(&mut self, now: Time) {
        self.burst_ends = Time::MAX;
        let waiting = self.rcv_nxt - self.last_ack_sent;
        if self.quick_left > 0 || waiting > (self.segments_per_ack.min(2) - 1) * self.segment_bytes {
            self.ack_now();
        } else if self.ack_at == Time::MAX {
            self.ack_at = now + self.wait;
        }
    }

    fn on_duplicate(&mut self, block: Range<u64>) {
        self.d_sack = Some(block);
        // Linux's tcp_enter_quickack_mode()
        self.quick_left = self.quick_left.max(self.quick_segments);
        self.wait = self.timer_min;
        self.ack_now();
    }

    /// Linux's __tcp_ack_snd_check(): the first three at once, then several together.
    fn ack_out_of_order(&mut self, now: Time, srtt: Span) {
        if !self.compresses || !self.sack || self.quick_left > 0 || self.compressed >= COMPRESSION_SEGMENTS {
            self.ack_now();
            return;
        }
        if self.duplicates_of != self.rcv_nxt {
            self.duplicates_of = self.rcv_nxt;
            self.duplicates_sent = 0;
        }
        if self.duplicates_sent < UNCOMPRESSED_DUPLICATES {
            self.duplicates_sent += 1;
            self.ack_now();
            return;
        }
        self.compressed += 1;
        if self.compressed_at == Time::MAX {
            self.compressed_at = now + COMPRESSION_DELAY.min(srtt / COMPRESSION_SHARE);
        }
    }

    fn on_out_of_order(&mut self, block: Range<u64>) {
        if block.end > self.edge {
            self.ack_now();
            return; // RFC 9293 §3.10.7.4: outside the window; the ACK tells the window
        }
        let start = block.start;
        let mut fresh = 0;
        self.out_of_order.insert(block.clone(), |range| fresh += range.end - range.start);
        if fresh == 0 {
            self.d_sack = Some(block);
        }
        // RFC 2018 §4: the block of the newest segment first, the others in the order of their last report.
        let newest = self.out_of_order.containing(start).expect("it was just inserted").clone();
        let mut next = newest.clone();
        let mut ahead = 0;
        for slot in &mut self.recent {
            let within = newest.start <= slot.start && slot.end <= newest.end;
            ahead += usize::from(!within && !slot.is_empty());
            let shifted = std::mem::replace(slot, next);
            if within {
                break;
            }
            next = shifted;
        }
        // Linux's tcp_sack_compress_send_ack(): an option has no room for more than the blocks that wait. There the ACK goes before the
        // segment is there, here it reports it, too.
        if self.compressed > 0 && ahead >= COMPRESSED_BLOCKS {
            (self.compressed, self.compressed_at) = (0, Time::MAX);
            self.newest_waits = true;
            self.ack_now();
        }
        // If the new segment joins two blocks, one of their entries must go.
        let mut kept = 1;
        for index in 1..RECENT {
            let within = newest.start <= self.recent[index].start && self.recent[index].end <= newest.end;
            if !within && !self.recent[index].is_empty() {
                self.recent.swap(kept, index);
                kept += 1;
            }
        }
        self.recent[kept..].fill(0..0);
    }

    /// Removes the blocks that the cumulative ACK has reached.
    fn forget_reached(&mut self) {
        let mut kept = 0;
        for index in 0..RECENT {
            if self.recent[index].end > self.rcv_nxt {
                self.recent.swap(kept, index);
                kept += 1;
            }
        }
        self.recent[kept..].fill(0..0);
    }

    /// Whether all of a segment lies before the last ACK, as in a window probe, a needless retransmission, or an ACK that
    /// data have overtaken. RFC 9293 §3.10.7.4, but with Linux's rcv_wup for RCV.NXT, tcp_sequence().
    pub(crate) fn is_old(&self, segment: &Segment) -> bool {
        segment.end() < self.last_ack_sent
    }

    /// Whether PAWS takes this for a segment of long ago: RFC 7323 §5.3, R1. As in Linux (TCP_PAWS_WINDOW), not if it is
    /// only a tick old.
    pub(crate) fn is_stale(&self, segment: &Segment) -> bool {
        segment.timestamps.is_some_and(|timestamps| is_before(timestamps.value, self.ts_recent.wrapping_sub(1)))
    }

    /// A segment that is not acceptable: nothing of it counts, and it is answered. Linux's tcp_send_dupack(). Two ends
    /// must not answer each other's answers, so those without data are answered at a limited rate.
    pub(crate) fn on_rejected(&mut self, now: Time, segment: &Segment) {
        if segment.takes_sequence_numbers() {
            if segment.seq < self.rcv_nxt {
                self.on_duplicate(segment.seq..segment.end().min(self.rcv_nxt));
            } else {
                self.ack_now();
            }
        } else if self.last_needless_ack.is_none_or(|last| now.saturating_since(last) >= NEEDLESS_ACK_EVERY) {
            self.last_needless_ack = Some(now);
            self.ack_now();
        }
    }

    /// Linux's tcp_event_data_recv(): estimates the wait for the next segment.
    fn pace_acks(&mut self, now: Time, rto: Span) {
        if let Some(last) = self.last_data_at {
            let gap = now.saturating_since(last);
            if gap <= self.timer_min / 2 {
                self.wait = self.wait / 2 + self.timer_min / 2;
            } else if gap < self.wait {
                self.wait = (self.wait / 2 + gap).min(rto);
            } else if gap > rto {
                self.quick_left = self.quick_left.max(self.quick_segments);
            }
            self.wait = self.wait.max(self.timer_min).min(self.timer_max);
        }
        self.last_data_at = Some(now);
    }

    /// What the bound leaves of a window.
    fn bounded(&self, now: Time, window_bytes: u64) -> u64 {
        self.bound.map_or(window_bytes, |bound| bound.receive_window(now, window_bytes, self.segment_bytes))
    }

    /// The window to advertise.
    pub(crate) fn window(&mut self, now: Time) -> u32 {
        let wanted = self.rcv_nxt + self.bounded(now, self.buffer.saturating_sub(self.unread));
        // RFC 1122 §4.2.3.3: the edge moves by at least a segment or half of the buffer.
        let step = self.segment_bytes.min(self.buffer / 2);
        let edge = if wanted >= self.edge + step { wanted } else { self.edge };
        let unit = (1 << self.shift) - 1;
        let window = ((edge.saturating_sub(self.rcv_nxt) + unit) >> self.shift).min(65_535) << self.shift;
        self.edge = self.edge.max(self.rcv_nxt + window);
        window as u32
    }

    /// The window of a SYN, which is not scaled.
    pub(crate) fn syn_window(&mut self, now: Time) -> u32 {
        let window = self.bounded(now, self.buffer.min(65_535));
        self.edge = self.rcv_nxt + window;
        window as u32
    }

    /// The SACK blocks for an ACK, at most `room`, and whether these are all.
    pub(crate) fn sack_blocks(&self, room: usize) -> (SackBlocks, bool) {
        let mut sack = SackBlocks::default();
        if !self.sack || (self.d_sack.is_none() && self.out_of_order.is_empty()) {
            return (sack, true);
        }
        let blocks = self.d_sack.iter().chain(self.recent.iter().filter(|block| !block.is_empty()));
        let complete = room > 0;
        for block in blocks.take(room) {
            sack.push(self.rcv_nxt, block.clone());
        }
        (sack, complete)
    }

    /// A segment with the current ACK was sent; `complete`: with all its SACK blocks.
    pub(crate) fn on_ack_sent(&mut self, complete: bool) {
        // Linux's tcp_dec_quickack_mode()
        if std::mem::take(&mut self.scheduled) && self.quick_left > 0 {
            self.quick_left -= 1;
            if self.quick_left == 0 {
                self.wait = self.timer_min;
            }
        }
        self.last_ack_sent = self.rcv_nxt;
        self.echo.on_ack_sent();
        self.ack_at = Time::MAX;
        self.burst_ends = Time::MAX;
        if !std::mem::take(&mut self.newest_waits) {
            (self.compressed, self.compressed_at) = (0, Time::MAX);
        }
        if complete {
            self.ack_now = false;
            self.d_sack = None;
        }
    }

    #[cfg(test)]
    pub(crate) fn check(&self) {
        assert!(self.out_of_order.iter().all(|range| range.start > self.rcv_nxt));
        for block in self.recent.iter().filter(|block| !block.is_empty()) {
            assert!(self.out_of_order.containing(block.start).is_some_and(|range| range == block), "{self:?}");
        }
        assert!(self.out_of_order.is_empty() || !self.recent[0].is_empty());
        assert!(self.edge >= self.rcv_nxt - u64::from(self.is_finished()));
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init)] // a list of one SACK block
mod tests;
