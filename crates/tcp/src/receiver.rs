//! The receiving half: reassembly, when to acknowledge what, the window.
//!
//! ```text
//! in order            an ACK for each second full segment, or when the timer ends; at once for the first 16
//!                     where GRO joins more: for half of a bounded window at the latest
//! out of order        an ACK at once, with SACK blocks, the newest first                     RFC 5681 §4.2, RFC 2018 §4
//!                     with SACK compression the first three; then one in min(1 ms, 5 % of RTT), or for 44 segments
//! fills (part of) a gap   an ACK at once                                                     RFC 5681 §4.2
//! arrived before      an ACK at once, with a D-SACK block                                    RFC 2883
//! TSecr               of the earliest unacknowledged segment; of the last in-order one while data are missing
//!                     TS.Recent = TSval if SEG.SEQ <= Last.ACK.sent                          RFC 7323 §4.3
//! window              the free buffer from rcv_nxt on, limited by the bound; its edge never moves back   RFC 7323 §2.4
//! timer               40 ms, more with slower arrivals, up to 200 ms: Linux's "ato"
//! ```
//!
//! The application reads in-order data at once, unless it is paused.
//!
//! *What it leaves out*: Linux's receive buffer tuning (the whole buffer is advertised from the start) and interactive
//! mode (pingpong), PAWS (sequence numbers do not wrap), urgent data.

use crate::clock::is_before;
use crate::config::Config;
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
    /// When the compressed ACK is sent, the number of segments waiting for it, the duplicates sent before, and their
    /// rcv_nxt.
    compressed_at: Time,
    compressed: u32,
    duplicates_sent: u32,
    duplicates_of: u64,
    last_ack_sent: u64,
    quick_left: u32,
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
            compressed_at: Time::MAX,
            compressed: 0,
            duplicates_sent: 0,
            duplicates_of: 0,
            last_ack_sent: 0,
            quick_left: config.delayed_ack.quick_segments,
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
        self.ack_at.min(self.compressed_at)
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
            self.answer_probe(now, segment.seq);
            return;
        }
        self.pace_acks(now, rto);
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
            self.on_in_order(now, seq, end, segment.push);
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
                self.prior_ack = (self.ack_at != Time::MAX).then_some(self.rcv_nxt);
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

    fn on_in_order(&mut self, now: Time, seq: u64, end: u64, push: bool) {
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
        let waiting = self.rcv_nxt - self.last_ack_sent;
        if had_gap
            || self.quick_left > 0
            || self.d_sack.is_some()
            || waiting > (self.segments_per_ack - 1) * self.segment_bytes
            || (self.segments_per_ack > 2 && 2 * waiting >= self.bounded(now, u64::MAX))
            || self.is_finished()
            || (push && !self.paused)
        {
            self.ack_now();
        } else if self.ack_at == Time::MAX {
            self.ack_at = now + self.wait;
        }
    }

    fn on_duplicate(&mut self, block: Range<u64>) {
        self.d_sack = Some(block);
        self.quick_left = self.quick_left.max(self.quick_segments);
        self.ack_now();
    }

    /// Linux's __tcp_ack_snd_check(): the first three at once, then several together.
    fn ack_out_of_order(&mut self, now: Time, srtt: Span) {
        if self.duplicates_of != self.rcv_nxt {
            self.duplicates_of = self.rcv_nxt;
            self.duplicates_sent = 0;
        }
        let compress = self.compresses
            && self.sack
            && self.quick_left == 0
            && self.compressed < COMPRESSION_SEGMENTS
            && self.duplicates_sent >= UNCOMPRESSED_DUPLICATES;
        if compress {
            self.compressed += 1;
            if self.compressed_at == Time::MAX {
                self.compressed_at = now + COMPRESSION_DELAY.min(srtt / COMPRESSION_SHARE);
            }
        } else {
            self.duplicates_sent += 1;
            self.ack_now();
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
            self.on_duplicate(block);
        }
        // RFC 2018 §4: the block of the newest segment first, the others in the order of their last report.
        let newest = self.out_of_order.containing(start).expect("it was just inserted").clone();
        let mut next = newest.clone();
        for slot in &mut self.recent {
            let within = newest.start <= slot.start && slot.end <= newest.end;
            let shifted = std::mem::replace(slot, next);
            if within {
                break;
            }
            next = shifted;
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

    /// Answers an old sequence number. Window probes have one, but so have ACKs that arrive late: hence the rate limit.
    fn answer_probe(&mut self, now: Time, seq: u64) {
        let due = self.last_needless_ack.is_none_or(|last| now.saturating_since(last) >= NEEDLESS_ACK_EVERY);
        if seq < self.last_ack_sent && due {
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
        self.quick_left = self.quick_left.saturating_sub(1);
        self.last_ack_sent = self.rcv_nxt;
        self.echo.on_ack_sent();
        self.ack_at = Time::MAX;
        self.compressed_at = Time::MAX;
        self.compressed = 0;
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
mod tests {
    use super::*;
    use crate::config::DelayedAck;
    use crate::segment::Timestamps;
    use lasthop_laws::Bound;
    use proptest::collection::vec;
    use proptest::prelude::*;

    const RTO: Span = Span::from_millis(300);
    const SRTT: Span = Span::from_millis(100);

    /// A receiver that expects `rcv_nxt`.
    fn receiver(config: &Config, rcv_nxt: u64) -> Receiver {
        let mut receiver = Receiver::new(config);
        receiver.on_syn(&Segment { seq: rcv_nxt - 1, syn: true, ..Segment::default() });
        receiver.establish(500, true, Feedback::None, 0);
        receiver.window(Time::ZERO);
        receiver
    }

    fn acknowledging_all() -> Config {
        Config { delayed_ack: DelayedAck::OFF, ..Config::linux_2012() }
    }

    /// 500 bytes arrive; returns the ACK and its SACK blocks.
    fn arrive(receiver: &mut Receiver, seq: u64) -> (u64, Vec<Range<u64>>) {
        let segment = Segment { seq, payload_bytes: 500, has_ack: true, ..Segment::default() };
        receiver.on_segment(Time::ZERO, &segment, RTO, SRTT);
        receiver.check();
        assert!(receiver.wants_ack());
        let (sack, complete) = receiver.sack_blocks(4);
        receiver.on_ack_sent(complete);
        (receiver.rcv_nxt(), sack.iter(receiver.rcv_nxt()).collect())
    }

    /// RFC 2018 §7, case 2: the first of eight is lost.
    #[test]
    fn rfc_2018_the_first_segment_is_dropped() {
        let mut receiver = receiver(&acknowledging_all(), 5000);
        for number in 1..8 {
            let (ack, blocks) = arrive(&mut receiver, 5000 + 500 * number);
            assert_eq!((ack, &blocks[..]), (5000, &[5500..6000 + 500 * (number - 1)][..]));
        }
    }

    /// RFC 2018 §7, case 3: the second, fourth, sixth and eighth are lost; then the fourth and the second arrive.
    #[test]
    fn rfc_2018_every_second_segment_is_dropped() {
        let mut receiver = receiver(&acknowledging_all(), 5000);
        assert_eq!(arrive(&mut receiver, 5000), (5500, vec![]));
        assert_eq!(arrive(&mut receiver, 6000), (5500, Vec::from([6000..6500])));
        assert_eq!(arrive(&mut receiver, 7000), (5500, vec![7000..7500, 6000..6500]));
        assert_eq!(arrive(&mut receiver, 8000), (5500, vec![8000..8500, 7000..7500, 6000..6500]));
        assert_eq!(arrive(&mut receiver, 6500), (5500, vec![6000..7500, 8000..8500]));
        assert_eq!(arrive(&mut receiver, 5500), (7500, Vec::from([8000..8500])));
    }

    /// RFC 2883 §4.1.1: a duplicate below the ACK. §4.1.3: a duplicate of out-of-order data, within the second block.
    #[test]
    fn rfc_2883_duplicates_are_reported_first_and_once() {
        let mut receiver = receiver(&acknowledging_all(), 3000);
        arrive(&mut receiver, 3000);
        arrive(&mut receiver, 3500);
        assert_eq!(arrive(&mut receiver, 3000), (4000, Vec::from([3000..3500])));
        assert_eq!(arrive(&mut receiver, 5000), (4000, Vec::from([5000..5500])));
        assert_eq!(arrive(&mut receiver, 4500), (4000, Vec::from([4500..5500])));
        assert_eq!(arrive(&mut receiver, 5000), (4000, vec![5000..5500, 4500..5500]));
        assert_eq!(arrive(&mut receiver, 5500), (4000, Vec::from([4500..6000])));
    }

    /// A segment with TSval arrives; returns TSecr of an ACK sent now.
    fn echo(receiver: &mut Receiver, seq: u64, value: u32) -> u32 {
        let timestamps = Some(Timestamps { value, echo: 0 });
        let segment = Segment { seq, payload_bytes: 500, has_ack: true, timestamps, ..Segment::default() };
        receiver.on_segment(Time::ZERO, &segment, RTO, SRTT);
        receiver.ts_recent()
    }

    /// RFC 7323 §4.3, case A: segments in order, one ACK for three.
    #[test]
    fn rfc_7323_a_delayed_ack_echoes_the_first_of_its_segments() {
        let delayed_ack = DelayedAck { segments: 3, quick_segments: 0, ..DelayedAck::LINUX };
        let mut receiver = receiver(&Config { delayed_ack, ..Config::linux_2012() }, 1000);
        assert_eq!([(1000, 1), (1500, 2), (2000, 3)].map(|(seq, value)| echo(&mut receiver, seq, value)), [1, 1, 1]);
        assert!(receiver.wants_ack());
        receiver.on_ack_sent(true);
        assert_eq!(echo(&mut receiver, 2500, 4), 4);
    }

    /// RFC 7323 §4.3, case B: C before B, E before D; each is acknowledged.
    #[test]
    fn rfc_7323_an_ack_of_a_hole_echoes_what_came_last_in_order() {
        let mut receiver = receiver(&acknowledging_all(), 1000);
        let mut step = |seq, value| {
            let echo = echo(&mut receiver, seq, value);
            receiver.on_ack_sent(true);
            (echo, receiver.rcv_nxt())
        };
        assert_eq!(step(1000, 1), (1, 1500)); // A
        assert_eq!(step(2000, 3), (1, 1500)); // C
        assert_eq!(step(1500, 2), (2, 2500)); // B
        assert_eq!(step(3000, 5), (2, 2500)); // E
        assert_eq!(step(2500, 4), (4, 3500)); // D
    }

    #[test]
    fn the_delay_follows_the_arrivals_between_its_limits() {
        let delayed_ack = DelayedAck { segments: 8, quick_segments: 0, ..DelayedAck::LINUX };
        let mut receiver = receiver(&Config { delayed_ack, ..Config::linux_2012() }, 0x1000);
        let mut seq = 0x1000;
        let mut arrive = |receiver: &mut Receiver, ms: u64| {
            let segment = Segment { seq, payload_bytes: 500, has_ack: true, ..Segment::default() };
            seq += 500;
            receiver.on_segment(Time::ZERO + Span::from_millis(ms), &segment, RTO, SRTT);
            receiver.wait
        };
        assert_eq!(arrive(&mut receiver, 0), Span::from_millis(40));
        // The estimate was too short: 80 ms.
        receiver.on_timeout(Time::ZERO + Span::from_millis(40));
        assert_eq!(receiver.wait, Span::from_millis(80));
        receiver.on_ack_sent(true);
        // A gap of 60 ms: 80 / 2 + 60 = 100. A gap of 5 ms: 100 / 2 + 20 = 70.
        assert_eq!(arrive(&mut receiver, 60), Span::from_millis(100));
        assert_eq!(arrive(&mut receiver, 65), Span::from_millis(70));
        for ms in 66..100 {
            arrive(&mut receiver, ms);
        }
        assert_eq!(receiver.wait, Span::from_millis(40));
    }

    #[test]
    fn a_window_never_takes_back_what_it_promised() {
        let config = Config { receive_buffer: lasthop_units::Bytes::new(5000), ..acknowledging_all() };
        let mut receiver = receiver(&config, 1000);
        receiver.pause_reading();
        let mut edges = Vec::new();
        for number in 0..10 {
            arrive(&mut receiver, 1000 + 500 * number);
            edges.push(receiver.rcv_nxt() + u64::from(receiver.window(Time::ZERO)));
        }
        assert_eq!(edges, [6000; 10]);
        assert_eq!(receiver.window(Time::ZERO), 0);
        receiver.resume_reading();
        assert!(receiver.wants_ack());
        assert_eq!((receiver.window(Time::ZERO), receiver.received_bytes()), (5000, 5999 - 1000 + 1000));
    }

    #[derive(Clone, Debug)]
    enum Event {
        /// A segment arrives, this many after the next one.
        Arrive(u64),
        Pause,
        Resume,
        /// (limit in bytes, milliseconds of its lease)
        Bound(u64, u64),
        Wait(u64),
    }

    proptest! {
        /// RFC 7323 §2.4, whatever the limits; and with nothing unread there is room for two segments.
        #[test]
        fn the_edge_never_moves_back_under_limits_that_fall_rise_and_lapse(
            shift in 0..8_u8, compresses in any::<bool>(), events in vec(prop_oneof![
                4 => (0..3_u64).prop_map(Event::Arrive),
                1 => Just(Event::Pause),
                1 => Just(Event::Resume),
                2 => (0..60_000_u64, 0..50_u64).prop_map(|(limit, lease)| Event::Bound(limit, lease)),
                2 => (0..20_u64).prop_map(Event::Wait),
            ], 1..200),
        ) {
            let buffer = lasthop_units::Bytes::new(50_000);
            let config = Config { receive_buffer: buffer, sack_compression: compresses, ..acknowledging_all() };
            let mut receiver = receiver(&config, 1000);
            receiver.establish(500, true, Feedback::None, shift);
            let (mut now, mut edge) = (Time::ZERO, 0);
            for event in events {
                match event {
                    Event::Arrive(gap) => {
                        let seq = receiver.rcv_nxt() + 500 * gap;
                        // A sender does not send beyond the edge.
                        if seq + 500 <= edge {
                            let segment = Segment { seq, payload_bytes: 500, has_ack: true, ..Segment::default() };
                            receiver.on_segment(now, &segment, RTO, SRTT);
                        }
                    }
                    Event::Pause => receiver.pause_reading(),
                    Event::Resume => receiver.resume_reading(),
                    Event::Bound(max_receive_bytes, lease) => {
                        let bound = Bound { max_receive_bytes, ..Bound::default() };
                        receiver.set_bound(bound.leased(now, Span::from_millis(lease)));
                    }
                    Event::Wait(milliseconds) => now += Span::from_millis(milliseconds),
                }
                let window = u64::from(receiver.window(now));
                receiver.on_ack_sent(true);
                receiver.check();
                let before = std::mem::replace(&mut edge, receiver.rcv_nxt() + window);
                prop_assert!(edge >= before);
                prop_assert!(receiver.unread > 0 || window >= 2 * 500, "{window}");
            }
        }
    }

    #[test]
    fn a_window_is_limited_until_the_lease_ends() {
        let config = Config { receive_buffer: lasthop_units::Bytes::new(50_000), ..acknowledging_all() };
        let mut receiver = receiver(&config, 1000); // the edge is at 51,000
        let bound = Bound { max_receive_bytes: 5000, ..Bound::default() };
        receiver.set_bound(bound.leased(Time::ZERO, Span::from_millis(10)));
        let mut windows = Vec::new();
        for number in 0..100 {
            arrive(&mut receiver, 1000 + 500 * number);
            windows.push(receiver.window(Time::ZERO));
        }
        // What was offered is used up: 50,000 - 500 each, until 5000 are left.
        assert_eq!(windows[..3], [49_500, 49_000, 48_500]);
        assert_eq!(windows[88..93], [5500, 5000, 5000, 5000, 5000]);
        let at_its_end = Time::ZERO + Span::from_millis(10);
        assert_eq!((receiver.window(at_its_end), receiver.window(Time::ZERO)), (50_000, 50_000));
    }

    /// Linux's tcp_enter_quickack_mode(): a sender of duplicates has lost something, possibly ACKs.
    #[test]
    fn after_a_duplicate_segments_are_acknowledged_at_once_again() {
        let delayed_ack = DelayedAck { quick_segments: 3, ..DelayedAck::LINUX };
        let mut receiver = receiver(&Config { delayed_ack, ..Config::linux_2012() }, 1000);
        let mut seq = 1000;
        let mut acks = |receiver: &mut Receiver, count: usize| {
            let one = |_| {
                let segment = Segment { seq, payload_bytes: 500, has_ack: true, ..Segment::default() };
                seq += 500;
                receiver.on_segment(Time::ZERO, &segment, RTO, SRTT);
                let wants = receiver.wants_ack();
                if wants {
                    receiver.on_ack_sent(true);
                }
                wants
            };
            (0..count).map(one).collect::<Vec<bool>>()
        };
        assert_eq!(acks(&mut receiver, 7), [true, true, true, false, true, false, true]);
        let duplicate = Segment { seq: 1000, payload_bytes: 500, has_ack: true, ..Segment::default() };
        receiver.on_segment(Time::ZERO, &duplicate, RTO, SRTT);
        receiver.on_ack_sent(true);
        assert_eq!(acks(&mut receiver, 4), [true, true, false, true]); // the duplicate's ACK was the first of three
    }

    /// RFC 1122 §4.2.3.3: the right edge moves by whole segments.
    #[test]
    fn a_window_opens_by_segments() {
        let config = Config { receive_buffer: lasthop_units::Bytes::new(5000), ..acknowledging_all() };
        let mut receiver = receiver(&config, 1000);
        let mut edges = Vec::new();
        for number in 0..11 {
            let segment = Segment { seq: 1000 + 100 * number, payload_bytes: 100, has_ack: true, ..Segment::default() };
            receiver.on_segment(Time::ZERO, &segment, RTO, SRTT);
            edges.push(receiver.rcv_nxt() + u64::from(receiver.window(Time::ZERO)));
        }
        assert_eq!(edges, [6000, 6000, 6000, 6000, 6500, 6500, 6500, 6500, 6500, 7000, 7000]);
    }

    /// Linux's tcp_comp_sack_nr: 44 segments do not wait. 3 + 1 at once, so 3, then each 45th.
    #[test]
    fn compression_ends_after_forty_four_segments() {
        let delayed_ack = DelayedAck { quick_segments: 0, ..DelayedAck::LINUX };
        let config = Config { delayed_ack, sack_compression: true, ..Config::linux_2012() };
        let mut receiver = receiver(&config, 1000);
        receiver.edge = 1 << 40;
        let mut acked = Vec::new();
        for number in 1..=100 {
            let segment = Segment { seq: 1000 + 500 * number, payload_bytes: 500, has_ack: true, ..Segment::default() };
            receiver.on_segment(Time::ZERO, &segment, RTO, SRTT);
            if receiver.wants_ack() {
                acked.push(number);
                receiver.on_ack_sent(true);
            }
        }
        assert_eq!(acked, [1, 2, 3, 48, 93]);
        assert_eq!(receiver.next_timeout(), Time::ZERO + Span::from_millis(1));
    }

    /// Linux: after a gap of more than an RTO the sender has probably restarted with a small window.
    #[test]
    fn after_a_long_gap_segments_are_acknowledged_at_once_again() {
        let delayed_ack = DelayedAck { quick_segments: 1, ..DelayedAck::LINUX };
        let mut receiver = receiver(&Config { delayed_ack, ..Config::linux_2012() }, 1000);
        let mut seq = 1000;
        let mut acked = |ms: u64| {
            let segment = Segment { seq, payload_bytes: 500, has_ack: true, ..Segment::default() };
            seq += 500;
            receiver.on_segment(Time::ZERO + Span::from_millis(ms), &segment, RTO, SRTT);
            let wants = receiver.wants_ack();
            if wants {
                receiver.on_ack_sent(true);
            }
            wants
        };
        assert_eq!([0, 1, 2, 3].map(&mut acked), [true, false, true, false]);
        assert_eq!([200, 201, 202].map(&mut acked), [true, false, true]); // 197 ms: the pair is complete
        assert_eq!([600, 601, 602].map(&mut acked), [true, false, true]); // 398 ms: at once
    }

    /// A sender that may have ten segments in flight would else wait for the timer at each of them.
    #[test]
    fn where_many_segments_share_an_ack_half_of_a_bounded_window_has_one() {
        let delayed_ack = DelayedAck { quick_segments: 0, segments: 16, ..DelayedAck::LINUX };
        let config = Config { delayed_ack, ..Config::linux_2012() };
        let acked = |bound: Option<Bound>| {
            let mut receiver = receiver(&config, 1000);
            if let Some(bound) = bound {
                receiver.set_bound(bound.leased(Time::ZERO, Span::from_secs(1)));
            }
            let mut acked = Vec::new();
            for number in 0..16 {
                let seq = 1000 + 500 * number;
                let segment = Segment { seq, payload_bytes: 500, has_ack: true, ..Segment::default() };
                receiver.on_segment(Time::ZERO, &segment, RTO, SRTT);
                if receiver.wants_ack() {
                    acked.push(number + 1);
                    receiver.on_ack_sent(true);
                }
            }
            acked
        };
        assert_eq!(acked(None), [16]);
        assert_eq!(acked(Some(Bound { max_receive_bytes: 5000, ..Bound::default() })), [5, 10, 15]);
    }

    /// RFC 1122 §4.2.3.3; Linux advertises a window that has at least doubled.
    #[test]
    fn a_window_update_goes_if_it_is_worth_it() {
        let config = Config { receive_buffer: lasthop_units::Bytes::new(5000), ..acknowledging_all() };
        for (segments, worth_it) in [(4, false), (5, true)] {
            let mut receiver = receiver(&config, 1000);
            receiver.pause_reading();
            for number in 0..segments {
                arrive(&mut receiver, 1000 + 500 * number);
            }
            receiver.resume_reading();
            assert_eq!(receiver.wants_ack(), worth_it);
        }
    }
}
