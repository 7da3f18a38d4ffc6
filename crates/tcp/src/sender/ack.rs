//! ACK processing, in this order: window, SACK blocks, cumulative ACK, round-trip time, losses, window reduction or
//! growth.

use super::recovery::{Delivery, MIN_SSTHRESH};
use super::transmit::Nothing;
use super::{Sender, micros};
use crate::clock::{is_before, ticks};
use crate::config::Recovery;
use crate::segment::{SACK_BLOCKS, Segment};
use lasthop_connection::CongestionState;
use lasthop_connection::rate::RateSample;
use lasthop_laws::{Acked, Law, Sample, Steering};
use lasthop_units::{Rate, Span, Time};
use std::ops::Range;

/// The effects of one ACK.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ack {
    /// Segments newly acknowledged and not SACKed before.
    pub(crate) acked: u32,
    /// Segments below the new cumulative ACK.
    pub(crate) passed: u32,
    /// Segments newly SACKed.
    pub(crate) sacked: u32,
    /// Segments delivered, by the best estimate: RFC 6937 §2 DeliveredData.
    pub(crate) delivered: u32,
    /// snd_una before it.
    pub(crate) prior_una: u64,
    /// The highest SACKed byte before it.
    pub(crate) prior_highest: u64,
    /// snd_una advanced.
    pub(crate) advanced: bool,
    /// A duplicate ACK: RFC 5681 §2.
    pub(crate) duplicate: bool,
    /// It reports a segment that arrived twice.
    pub(crate) d_sack: bool,
    /// With RACK, how many arrived twice.
    duplicates: u32,
    /// It reports a probe, which so was needless.
    pub(crate) probe_reported: bool,
    /// A segment below the recovery point was delivered that was never retransmitted.
    pub(crate) original_delivered: bool,
    /// A segment that was retransmitted is cumulatively acknowledged.
    pub(crate) retransmitted_acked: bool,
    /// The echoed timestamp; 0: none.
    pub(crate) echo: u32,
    /// A segment was newly found lost.
    pub(crate) lost: bool,
    /// It ended a NewReno recovery, after which RFC 6582 sets the window.
    pub(crate) full: bool,
    /// The reordering timer was set.
    pub(crate) timer_set: bool,
    /// It echoes a mark of congestion.
    pub(crate) echo_of_mark: bool,
    /// Segments that it delivers with a mark, as far as it tells.
    pub(crate) marked: u32,
    acked_first: Option<Time>,
    acked_last: Option<Time>,
    sacked_first: Option<Time>,
    sacked_last: Option<Time>,
}

impl Sender {
    /// An acceptable segment with an ACK has arrived.
    pub(crate) fn on_ack(&mut self, now: Time, segment: &Segment) {
        // RFC 9293 §3.10.7.4: an ACK of data never sent is ignored; of an old ACK only the SACK blocks count.
        let with_sack = self.uses_sack && !segment.sack.is_empty();
        if segment.ack > self.snd_nxt || (segment.ack < self.snd_una && !with_sack) {
            return;
        }
        self.refused = false;
        if self.board.is_empty() && !with_sack && self.probe.is_none() {
            // Nothing is in flight, as at an end that only receives.
            self.take_window(segment);
            return;
        }
        (self.f_rto_new_data, self.only_late) = (false, false);
        let (in_flight_before, lost_before) = (self.in_flight(), self.board.lost_ever);
        let echo = segment.timestamps.map_or(0, |timestamps| timestamps.echo);
        let prior_highest = self.board.highest_sacked().unwrap_or(0);
        let mut ack = Ack { echo, prior_una: self.snd_una, prior_highest, ..Ack::default() };
        let opened = self.take_window(segment);
        if with_sack {
            self.take_sack(now, segment, &mut ack);
        }
        if segment.ack < self.snd_una {
            // As in Linux, an ACK that was overtaken gives no sample and moves no window.
            self.rate.forget_sample();
            self.recover(now, &mut ack);
            return;
        }
        if segment.ack > self.snd_una {
            self.take_cumulative(now, segment.ack, &mut ack);
        } else {
            ack.duplicate = segment.payload_bytes == 0 && !segment.fin && !opened && segment.ack == self.snd_una;
        }
        ack.delivered = ack.acked + ack.sacked + ack.duplicates;
        if !self.uses_sack {
            self.estimate_delivery(&mut ack);
        }
        let rtt = self.sample_rtt(now, &ack);
        if self.marked.is_on() {
            (ack.echo_of_mark, ack.marked) = self.marked.on_ack(segment, ack.delivered);
        }
        if let Some(prior) = self.rate.prior_delivered() {
            self.rack.update_window(prior, self.rate.delivered() + ack.delivered);
        }
        if self.probe.is_some() {
            self.check_probe(now, segment.ack, &ack);
        }
        if self.state != CongestionState::Open || ack.sacked > 0 || ack.duplicate || ack.d_sack || ack.echo_of_mark {
            self.recover(now, &mut ack);
        }
        if (ack.advanced || self.is_head_younger(&ack)) && !ack.timer_set {
            // RFC 6582 §3.2 (4), "impatient": only the first partial ACK restarts the timer.
            let impatient = self.recovery == Recovery::NewReno && self.state == CongestionState::Recovery;
            if !(impatient && self.partial_acks > 1) {
                self.restart_timer(now);
            }
        }
        let rate = self.rate.on_ack(now, ack.delivered, self.min_rtt.nanos());
        if self.law.steers() {
            let lost = self.board.lost_ever.wrapping_sub(lost_before);
            let sample = self.sample(now, rate, ack.delivered, lost, in_flight_before, rtt);
            self.steer(now, |law, steering| law.on_sampled(&sample, steering));
        } else {
            self.control(now, segment, &ack, rtt);
        }
    }

    /// Whether a segment is SACKed that was sent before the first one was, or was sent again. As in Linux with RACK, the
    /// timer begins anew with it.
    fn is_head_younger(&self, ack: &Ack) -> bool {
        let sent_before = |head: &crate::scoreboard::Record| ack.sacked_first.is_some_and(|at| at < head.sent_at);
        self.uses_rack() && self.board.front().is_some_and(sent_before)
    }

    /// What a law that steers is told.
    pub(crate) fn sample(
        &self,
        now: Time,
        rate: Option<RateSample>,
        acked_segments: u32,
        lost_segments: u32,
        prior_in_flight_segments: u32,
        rtt: Option<Span>,
    ) -> Sample {
        let us = |time: Time| time.as_nanos() / 1000;
        Sample {
            now_us: us(now),
            delivered_us: us(self.rate.delivered_at()),
            departs_us: us(self.paced_until.max(now)),
            interval_us: rate.map_or(0, |rate| micros(rate.interval.as_nanos())),
            sampled_segments: rate.map_or(0, |rate| rate.delivered),
            prior_delivered_segments: rate.map_or(0, |rate| rate.prior_delivered),
            prior_in_flight_segments,
            acked_segments,
            lost_segments,
            in_flight_segments: self.in_flight(),
            all_delivered_segments: self.rate.delivered(),
            all_lost_segments: self.board.lost_ever,
            rtt_us: rtt.map_or(0, |rtt| micros(rtt.as_nanos()).max(1)),
            srtt_us: micros(self.rtt.srtt_ns()),
            min_rtt_us: self.min_rtt_us(),
            snd_una: self.snd_una as u32,
            snd_nxt: self.snd_nxt as u32,
            segment_bytes: self.payload_bytes,
            state: self.state as u32,
            app_limited: rate.is_some_and(|rate| rate.app_limited).into(),
            all_marked_segments: self.marked.delivered,
        }
    }

    /// A law that steers sets its window and its pace; then the bound applies.
    pub(crate) fn steer(&mut self, now: Time, event: impl FnOnce(&mut Law, &mut Steering)) {
        let mut steering = Steering {
            pace: self.law_pace.as_bps() / 8,
            cwnd_segments: self.window.cwnd_segments,
            ssthresh_segments: self.window.ssthresh_segments,
            ..Steering::default()
        };
        event(&mut self.law, &mut steering);
        self.window.cwnd_segments = steering.cwnd_segments.max(1);
        self.window.ssthresh_segments = steering.ssthresh_segments.max(MIN_SSTHRESH);
        self.law_pace = Rate::from_bps(steering.pace.saturating_mul(8));
        if steering.app_limited != 0 {
            self.rate.on_app_limited(self.in_flight());
        }
        self.apply_bound(now);
    }

    /// Whether its window is newer than the last one taken: RFC 9293 §3.10.7.4.
    fn is_window_newer(&self, segment: &Segment) -> bool {
        segment.ack > self.snd_una
            || segment.seq > self.snd_wl1
            || (segment.seq == self.snd_wl1
                && segment.ack >= self.snd_wl2
                && u64::from(segment.window_bytes) > self.snd_wnd)
    }

    /// An old ACK that PAWS lets pass: one more duplicate of the newest. Linux's tcp_disordered_ack().
    #[cold]
    pub(crate) fn is_overtaken_duplicate(&self, segment: &Segment) -> bool {
        !segment.takes_sequence_numbers() && segment.ack == self.snd_una && !self.is_window_newer(segment)
    }

    /// Takes the window of the newest segment. Returns whether it changed.
    fn take_window(&mut self, segment: &Segment) -> bool {
        let window = u64::from(segment.window_bytes);
        let newer = self.is_window_newer(segment);
        self.probes_unanswered = 0;
        if !newer || segment.ack < self.snd_una {
            return false;
        }
        self.snd_wl1 = segment.seq;
        self.snd_wl2 = segment.ack;
        let changed = self.snd_wnd != window;
        self.snd_wnd = window;
        if changed && self.board.is_empty() && !matches!(self.new_data(), Err(Nothing::Window)) {
            self.timer = super::Timer::default();
            self.backoff = 0;
        }
        changed
    }

    fn take_sack(&mut self, now: Time, segment: &Segment, ack: &mut Ack) {
        let mut blocks = segment.sack.iter(segment.ack);
        let first = blocks.next();
        let mut twice = u64::MAX;
        if let Some(first) = &first {
            let second = segment.sack.iter(segment.ack).nth(1);
            twice = self.take_d_sack(segment.ack, first, second, ack);
        }
        let mut overtaken = u64::MAX;
        let min_rtt = self.min_rtt.nanos();
        let below = self.snd_una.max(segment.ack);
        let Self { board, rate, rack, recovery_point, snd_nxt, .. } = self;
        // A D-SACK lies below snd_una, or within SACKed data.
        let valid = |block: &Range<u64>| block.start >= below && block.end <= *snd_nxt;
        let mut sorted = [const { 0..0 }; SACK_BLOCKS];
        let mut count = 0;
        for block in first.into_iter().chain(blocks).filter(valid) {
            sorted[count] = block;
            count += 1;
        }
        // As in Linux from the lowest up: the round trip that RACK takes is the last one's.
        sorted[..count].sort_unstable_by_key(|block| block.start);
        for block in sorted.into_iter().take(count) {
            board.sack(block, |record| {
                ack.sacked += 1;
                if !record.was_ever_retransmitted() {
                    ack.sacked_first.get_or_insert(record.sent_at);
                    ack.sacked_last = Some(record.sent_at);
                    if record.seq < ack.prior_highest {
                        overtaken = overtaken.min(record.seq);
                    }
                    ack.original_delivered |= record.end <= *recovery_point;
                }
                rate.on_segment_delivered(&record.sent, record.sent_at);
                rack.on_delivered(now, record, min_rtt);
            });
        }
        if self.state != CongestionState::Loss || self.undo.is_possible() {
            let highest = self.board.highest_sacked().unwrap_or(0);
            self.reordering.on_overtaken(overtaken.min(twice), highest, self.payload_bytes);
        }
    }

    /// RFC 2883 §4, RFC 3708: a first block below the ACK, or within the second block, reports a duplicate. Returns the
    /// number of one that was SACKed before its retransmission arrived, too: its original was only late.
    fn take_d_sack(&mut self, ack_seq: u64, first: &Range<u64>, second: Option<Range<u64>>, ack: &mut Ack) -> u64 {
        let within = second.is_some_and(|second| second.start <= first.start && first.end <= second.end);
        if first.end > ack_seq && !within {
            return u64::MAX;
        }
        ack.probe_reported = self.probe.is_some_and(|probe| probe.end == first.end);
        let duplicates = (first.end - first.start).div_ceil(u64::from(self.payload_bytes)).max(1);
        self.duplicates_reported += duplicates;
        if self.uses_rack() {
            // Linux's tcp_dsack_seen(), since 5.9: more duplicates than retransmissions are the network's, and prove nothing.
            if self.duplicates_reported > self.retransmits {
                return u64::MAX;
            }
            ack.duplicates = duplicates as u32;
        }
        ack.d_sack = true;
        // A timer sends probes, not an impatient RACK. As in Linux, a probe's duplicate does not widen RACK's window.
        if self.reordering.seen && !ack.probe_reported {
            self.rack.on_d_sack();
        }
        let again = self.board.retransmitted_at(first.start);
        if again.is_some() || first.end <= self.snd_una {
            self.undo.on_duplicate(first);
        }
        again.filter(|record| record.is_sacked()).map_or(u64::MAX, |record| record.seq)
    }

    fn take_cumulative(&mut self, now: Time, to: u64, ack: &mut Ack) {
        let mut overtaken = u64::MAX;
        let min_rtt = self.min_rtt.nanos();
        let (granularity, echo) = (self.config.timestamp_granularity, if self.timestamps { ack.echo } else { 0 });
        let Self { board, rate, rack, recovery_point, .. } = self;
        board.acknowledge(to, |record| {
            ack.passed += 1;
            if record.was_ever_retransmitted() {
                ack.retransmitted_acked = true;
            }
            if record.is_sacked() {
                return;
            }
            ack.acked += 1;
            if !record.was_ever_retransmitted() {
                ack.acked_first.get_or_insert(record.sent_at);
                ack.acked_last = Some(record.sent_at);
                if record.seq < ack.prior_highest {
                    overtaken = overtaken.min(record.seq);
                }
                ack.original_delivered |= record.end <= *recovery_point;
            }
            rate.on_segment_delivered(&record.sent, record.sent_at);
            // Linux's tcp_skb_spurious_retrans(): the echo is from before the retransmission, so the original arrived.
            let original =
                record.was_ever_retransmitted() && echo != 0 && is_before(echo, ticks(record.sent_at, granularity));
            if !original {
                rack.on_delivered(now, record, min_rtt);
            }
        });
        let highest = self.board.highest_sacked().unwrap_or(to);
        self.reordering.on_overtaken(overtaken, highest, self.payload_bytes);
        ack.advanced = true;
        self.snd_una = to;
        self.fill_buffer();
        self.timeouts_in_a_row = 0;
        self.unanswered_since = None;
    }

    /// Without SACK a duplicate ACK stands for one delivered segment; the ACK that passes those stands for as many
    /// fewer: RFC 6937 §2.
    fn estimate_delivery(&mut self, ack: &mut Ack) {
        let before = self.duplicates_delivered;
        if ack.advanced {
            ack.delivered = ack.passed.saturating_sub(before).max(1);
            self.duplicates_delivered = before.saturating_sub(ack.passed.saturating_sub(1));
        } else if ack.duplicate {
            self.duplicates_delivered += 1;
        }
        self.clamp_duplicates();
        if ack.duplicate {
            ack.delivered = self.duplicates_delivered.saturating_sub(before);
        }
    }

    /// At most the segments neither lost nor acknowledged can have been delivered. NewReno does not subtract them from
    /// the flight: it inflates the window instead.
    pub(crate) fn clamp_duplicates(&mut self) {
        self.duplicates_delivered = self.duplicates_delivered.min(self.board.len() - self.board.lost_out());
        self.board.duplicates = if self.counts_no_duplicates() { 0 } else { self.duplicates_delivered };
    }

    pub(crate) fn forget_duplicates(&mut self) {
        self.duplicates_delivered = 0;
        self.board.duplicates = 0;
    }

    /// Takes RTT samples as Linux does: of the oldest newly acknowledged segment for SRTT, of the newest for the law. A
    /// retransmitted segment is sampled only by its timestamp (Karn). Returns the law's sample.
    fn sample_rtt(&mut self, now: Time, ack: &Ack) -> Option<Span> {
        let since = |sent_at: Time| now.saturating_since(sent_at);
        let of_acked = ack.acked_first.filter(|_| !ack.retransmitted_acked).map(since);
        let of_sacked = ack.sacked_first.map(since);
        let mut newest = if of_acked.is_some() { ack.acked_last.map(since) } else { None };
        newest = ack.sacked_last.map(since).or(newest);
        let mut oldest = of_acked.or(of_sacked);
        if oldest.is_none() && self.timestamps && ack.acked > 0 && ack.echo != 0 {
            let granularity = self.config.timestamp_granularity;
            // An echo of a future timestamp is not a sample of 50 days.
            let since = ticks(now, granularity).wrapping_sub(ack.echo) as i32;
            oldest = Some(granularity * u64::from(since.max(1) as u32));
            newest = oldest;
        }
        let oldest = oldest?;
        self.rtt.on_sample(oldest, self.snd_una, self.snd_nxt);
        self.sampled_rtt = Some(oldest);
        self.min_rtt.on_sample(now, newest.unwrap_or(oldest));
        self.backoff = 0;
        self.newest_rtt = newest.or(self.newest_rtt);
        newest
    }

    /// Updates the window. In CWR and Recovery it is reduced, else the law grows it; then the bound applies.
    fn control(&mut self, now: Time, segment: &Segment, ack: &Ack, rtt: Option<Span>) {
        let in_flight = self.in_flight();
        let mut flags = 0;
        if ack.advanced {
            flags |= Acked::ADVANCED;
        }
        if self.state.is_reduction() {
            flags |= Acked::IN_REDUCTION;
            if ack.delivered > 0 {
                let safe_ack = ack.advanced && !ack.lost;
                self.reduce(Delivery { delivered: ack.delivered, pipe: in_flight, safe_ack });
            }
        } else if (ack.advanced && !ack.full) || (ack.sacked > 0 && self.uses_rack() && self.reordering.is_high()) {
            flags |= if self.is_held_by_bound(now) { Acked::HELD } else { Acked::MAY_GROW };
        }
        if self.is_cwnd_limited() {
            flags |= Acked::CWND_LIMITED;
        }
        if self.config.pacing || self.is_paced_by_bound(now) {
            flags |= Acked::PACED;
        }
        let (mut tsval, mut tsecr) = (0, 0);
        if let (true, Some(timestamps)) = (self.timestamps, segment.timestamps) {
            (tsval, tsecr) = (timestamps.value, timestamps.echo);
            flags |= Acked::HAS_TIMESTAMP;
        }
        if ack.delivered > 0 || ack.advanced {
            let event = Acked {
                now_us: now.as_nanos() / 1000,
                // A full acknowledgement passes segments that were delivered long ago; their duplicates inflated the
                // window. RFC 6582 §3.2 (3) deflates it to ssthresh and adds nothing.
                acked_segments: ack.delivered,
                in_flight_segments: in_flight,
                rtt_us: rtt.map_or(0, |rtt| micros(rtt.as_nanos()).max(1)),
                srtt_us: micros(self.rtt.srtt_ns()),
                min_rtt_us: self.min_rtt_us(),
                snd_una: self.snd_una as u32,
                snd_nxt: self.snd_nxt as u32,
                tsval,
                tsecr,
                flags,
                marked_segments: ack.marked,
                reserved: 0,
            };
            self.law.on_acked(&event, &mut self.window);
        }
        self.apply_bound(now);
    }

    /// One ACK during a reduction: see [`Recovery`].
    pub(super) fn reduce(&mut self, delivery: Delivery) {
        match self.recovery {
            Recovery::NewReno | Recovery::Rfc6675 => {} // set at entry and on ACKs that count: see recovery
            _ => {
                let (cwnd, ssthresh) = (self.window.cwnd_segments, self.window.ssthresh_segments);
                self.window.cwnd_segments = self.prr.on_ack(self.recovery, delivery, cwnd, ssthresh);
            }
        }
    }
}
