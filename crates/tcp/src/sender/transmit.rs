//! What is sent next, and when.

use super::{Sender, TimerKind};
use crate::pacing;
use crate::scoreboard::Record;
use lasthop_connection::CongestionState;
use lasthop_laws::Sent;
use lasthop_units::{Bytes, Ecn, Rate, Span, Time};

/// Transmissions that ignore the congestion window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forced {
    None,
    /// The first segment, after a timeout or as NewReno's retransmission.
    Head,
    /// A loss probe with new data.
    ProbeNew,
    /// A loss probe with the last segment.
    ProbeLast,
    /// A window probe.
    Window,
}

/// A segment of data to send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outgoing {
    pub(crate) seq: u64,
    pub(crate) payload_bytes: u32,
    pub(crate) fin: bool,
    /// See [`Segment::push`](crate::Segment::push).
    pub(crate) push: bool,
    /// [`Segment::ecn`](crate::Segment::ecn).
    pub(crate) ecn: Ecn,
    /// [`Segment::ace`](crate::Segment::ace), but for the flags of its ACK.
    pub(crate) ace: u8,
}

/// Why no new segment is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nothing {
    /// The application has written no more, or waits for the send buffer.
    ToSend,
    /// A small segment waits for an ACK (Nagle).
    Small,
    /// The receiver's window is full.
    Window,
}

impl Sender {
    /// Whether there is nothing to send or to wait for.
    #[inline]
    pub(crate) fn is_quiet(&self) -> bool {
        self.board.is_empty() && self.buffered <= self.snd_nxt && !self.closing && self.forced == Forced::None
    }

    /// The next segment that may be sent now.
    pub(crate) fn next(&mut self, now: Time) -> Option<Outgoing> {
        if self.is_quiet() {
            return None;
        }
        if self.forced != Forced::None
            && let Some(outgoing) = self.next_forced(now)
        {
            return Some(outgoing);
        }
        if self.failed || self.refused {
            return None;
        }
        let in_flight = self.in_flight();
        let cwnd = self.window.cwnd_segments;
        if in_flight >= cwnd && !self.may_exceed_window(in_flight) {
            self.on_burst_end(in_flight);
            return None;
        }
        if self.host_queue_is_full(now) {
            // As Linux's tcp_write_xmit(): a window that small queues leave half empty must not grow.
            self.on_burst_end(in_flight);
            return None;
        }
        if self.waits_for_pace(now) {
            if self.burst_state.is_some() {
                // A window that pacing leaves half empty must not grow.
                self.on_burst_end(in_flight);
            }
            return None;
        }
        // RFC 6675 §4 NextSeg (1)
        if self.board.pending() > 0 && !self.f_rto_new_data && !self.only_late {
            if in_flight >= cwnd {
                return None;
            }
            let index = self.board.next_pending().expect("something is pending");
            return Some(self.retransmit(now, index));
        }
        // (2)
        match self.new_data() {
            Ok(outgoing) if self.may_send_new(in_flight) => return Some(self.send_new(now, outgoing)),
            Err(Nothing::Window) if self.board.is_empty() => self.arm_persist(now),
            _ => {}
        }
        if self.f_rto_new_data && self.snd_nxt == self.recovery_point {
            // RFC 5682 §2.1 step 2b: without new data F-RTO cannot tell, and the usual recovery goes on.
            self.f_rto_new_data = false;
            self.f_rto = false;
            return self.next(now);
        }
        // (3), (4)
        if self.may_rescue()
            && in_flight < cwnd
            && let Some(outgoing) = self.rescue(now)
        {
            return Some(outgoing);
        }
        self.on_burst_end(in_flight);
        // Linux's tcp_rate_check_app_limited(): what waits in the host is still to be sent. Only small queues are told of departures.
        let waits_in_host = self.config.tsq.is_some() && self.host_queue_bytes > 0;
        if in_flight < cwnd && self.unsent_bytes() < u64::from(self.payload_bytes) && !waits_in_host {
            self.rate.on_app_limited(in_flight);
        }
        None
    }

    fn next_forced(&mut self, now: Time) -> Option<Outgoing> {
        match std::mem::replace(&mut self.forced, Forced::None) {
            Forced::None => None,
            Forced::Head => {
                let head = self.board.front()?;
                (!head.is_sacked() && !head.is_retransmitted()).then(|| self.retransmit(now, 0))
            }
            Forced::ProbeNew => match self.new_data() {
                Ok(outgoing) => {
                    let timer = self.timer;
                    let outgoing = self.send_new(now, outgoing);
                    self.timer = timer;
                    self.probe_sent(false);
                    Some(outgoing)
                }
                Err(_) => {
                    self.forced = Forced::ProbeLast;
                    self.next_forced(now)
                }
            },
            Forced::ProbeLast => {
                let last = self.board.len().checked_sub(1)? as usize;
                let outgoing = if self.board.is_retransmitted(last) {
                    self.retransmit(now, last)
                } else {
                    let sent = self.rate.on_sent(now, true);
                    let last = self.board.on_probed(now, sent)?;
                    self.retransmits += 1;
                    self.on_sent(now, last.payload_bytes());
                    self.again(&last)
                };
                self.probe_sent(true);
                Some(outgoing)
            }
            Forced::Window => {
                // RFC 9293 §3.8.6.1. Linux sends the data that fit; if none fit, an old sequence number that asks for
                // an ACK.
                let room = (self.snd_una + self.snd_wnd).saturating_sub(self.snd_nxt);
                let fits = room.min(self.unsent_bytes()).min(u64::from(self.payload_bytes)) as u32;
                if fits > 0 {
                    let seq = self.snd_nxt;
                    return Some(self.send_new(now, Outgoing { seq, payload_bytes: fits, ..Outgoing::default() }));
                }
                Some(Outgoing { seq: self.snd_una - 1, ecn: self.marked.of_other(), ..Outgoing::default() })
            }
        }
    }

    /// Limited transmit without SACK may send two segments beyond the window: RFC 3042.
    fn may_exceed_window(&self, in_flight: u32) -> bool {
        self.limited_transmit_allowance() > 0
            && in_flight < self.window.cwnd_segments + self.limited_transmit_allowance()
    }

    fn limited_transmit_allowance(&self) -> u32 {
        let applies =
            self.config.limited_transmit && self.counts_no_duplicates() && self.state == CongestionState::Disorder;
        if applies { self.duplicate_acks.min(2) } else { 0 }
    }

    /// Whether the window allows new data beside `in_flight` segments.
    fn may_send_new(&self, in_flight: u32) -> bool {
        if self.state == CongestionState::Disorder && !self.config.limited_transmit {
            // Segments reported by duplicate ACKs and SACK blocks have left the network, but only RFC 3042 makes use of
            // that.
            return self.board.len() < self.window.cwnd_segments;
        }
        in_flight < self.window.cwnd_segments + self.limited_transmit_allowance()
    }

    /// NewReno inflates its window on duplicate ACKs instead of counting them as deliveries.
    pub(super) fn counts_no_duplicates(&self) -> bool {
        self.recovery == crate::config::Recovery::NewReno
    }

    /// The next new segment, if the application, the receiver and Nagle's algorithm allow one.
    pub(super) fn new_data(&self) -> Result<Outgoing, Nothing> {
        if self.fin_sent {
            return Err(Nothing::ToSend);
        }
        let payload = u64::from(self.payload_bytes);
        let unsent = self.buffered - self.snd_nxt;
        let length = unsent.min(payload);
        let fin = self.closing && self.snd_nxt + length == self.written;
        if length == 0 && !fin {
            return Err(Nothing::ToSend);
        }
        if self.snd_nxt + length > self.snd_una + self.snd_wnd {
            return Err(Nothing::Window);
        }
        if length < payload && !fin {
            // The send buffer is full: the application still holds the rest of the segment.
            let cut = self.snd_nxt + length < self.written;
            if cut || (self.config.nagle && self.small_end > self.snd_una) {
                return Err(Nothing::Small);
            }
        }
        Ok(Outgoing { seq: self.snd_nxt, payload_bytes: length as u32, fin, ..Outgoing::default() })
    }

    fn send_new(&mut self, now: Time, outgoing: Outgoing) -> Outgoing {
        let idle = now.saturating_since(self.last_sent_at);
        let was_empty = self.board.is_empty();
        if was_empty {
            self.restart_after_idle(now, idle);
            if self.law.steers() && self.rate.is_app_limited() {
                let sample = self.sample(now, None, 0, 0, 0, None);
                self.steer(now, |law, steering| law.on_resumed(&sample, steering));
            }
        }
        let in_flight = self.in_flight();
        let end = outgoing.seq + u64::from(outgoing.payload_bytes) + u64::from(outgoing.fin);
        let sent = self.rate.on_sent(now, !was_empty);
        self.board.push(Record::new(outgoing.seq, end, outgoing.fin, now, sent));
        self.snd_nxt = end;
        self.fin_sent |= outgoing.fin;
        if outgoing.payload_bytes < self.payload_bytes {
            self.small_end = end;
        }
        self.law.on_sent(&Sent {
            now_us: now.as_nanos() / 1000,
            idle_us: idle.as_micros(),
            in_flight_before_segments: in_flight,
            snd_nxt: self.snd_nxt as u32,
        });
        self.on_sent(now, outgoing.payload_bytes);
        if was_empty || self.timer.kind == TimerKind::Probe {
            let replaced = if was_empty { TimerKind::Retransmission } else { TimerKind::Probe };
            if !self.schedule_probe(now, was_empty) {
                self.arm_retransmission(now, replaced);
            }
        } else if self.timer.kind == TimerKind::Retransmission {
            self.schedule_probe(now, false);
        }
        let (ecn, ace) = self.marked.of_new(outgoing.payload_bytes);
        Outgoing { push: self.burst_state.as_mut().is_some_and(pacing::Burst::take_push), ecn, ace, ..outgoing }
    }

    fn retransmit(&mut self, now: Time, index: usize) -> Outgoing {
        let sent = self.rate.on_sent(now, true);
        let record = self.board.on_retransmitted(index, now, self.snd_nxt, sent);
        self.undo.on_retransmitted(now);
        self.highest_retransmitted = self.highest_retransmitted.max(record.end);
        self.retransmits += 1;
        self.on_sent(now, record.payload_bytes());
        // RFC 6582 §3.2 (4), "impatient": later partial ACKs do not restart the timer.
        let impatient = self.counts_no_duplicates() && self.state == CongestionState::Recovery && self.partial_acks > 1;
        if index == 0 && self.timer.kind != TimerKind::Reordering && !impatient {
            self.arm_retransmission(now, TimerKind::Retransmission);
        }
        self.again(&record)
    }

    fn again(&mut self, record: &Record) -> Outgoing {
        let payload_bytes = record.payload_bytes();
        let ecn = self.marked.of_other();
        Outgoing { seq: record.seq, payload_bytes, fin: record.is_fin(), ecn, ..Outgoing::default() }
    }

    /// Whether RFC 6675 §4 NextSeg (3) and (4) apply.
    fn may_rescue(&self) -> bool {
        self.state == CongestionState::Recovery && self.config.rescue && self.uses_sack && !self.uses_rack()
    }

    fn rescue(&mut self, now: Time) -> Option<Outgoing> {
        if let Some(index) = self.board.next_unsacked(self.highest_retransmitted) {
            return Some(self.retransmit(now, index));
        }
        if self.snd_una > self.rescue_after {
            let index = self.board.last_unsacked()?;
            self.rescue_after = self.recovery_point;
            let highest_retransmitted = self.highest_retransmitted;
            let outgoing = self.retransmit(now, index);
            self.highest_retransmitted = highest_retransmitted;
            return Some(outgoing);
        }
        None
    }

    fn on_sent(&mut self, now: Time, payload_bytes: u32) {
        self.prr.out += 1;
        self.segments_sent += 1;
        self.burst += 1;
        self.last_sent_at = now;
        let in_bursts = self.is_paced_in_bursts(now);
        if (!self.config.pacing && !in_bursts) || self.segments_sent <= pacing::UNPACED_SEGMENTS {
            return;
        }
        let (due, bytes, rate) = (self.paced_until, u64::from(payload_bytes), self.pacing_rate(now));
        self.paced_until = if in_bursts {
            let quantum = self.quantum_segments(rate);
            self.burst_state.get_or_insert_default().on_sent(now, due, bytes, quantum, rate)
        } else {
            pacing::next(now, due, bytes, rate)
        };
    }

    fn waits_for_pace(&mut self, now: Time) -> bool {
        let in_bursts = self.is_paced_in_bursts(now);
        if !in_bursts && self.burst_state.take().is_some() {
            // The lease has expired, and with it the pace.
            self.paced_until = self.paced_until.min(now);
        }
        let mut wait_until = self.paced_until;
        if in_bursts {
            // The burst that is sent now is the only one that may have room, and matters only before the next one is due.
            if now < wait_until && self.burst_state.is_some_and(|burst| burst.is_of(now)) {
                let quantum = self.quantum_segments(self.pacing_rate(now));
                if self.burst_state.is_some_and(|burst| burst.has_room(now, quantum)) {
                    wait_until = now;
                }
            }
            if let Some(bound) = self.bound.filter(|bound| bound.paces(now)) {
                wait_until = wait_until.min(bound.expires());
            }
        } else if !self.config.pacing {
            wait_until = now;
        }
        let waits = now < wait_until;
        self.pace_wait = if waits { wait_until } else { Time::MAX };
        waits
    }

    fn quantum_segments(&self, rate: Rate) -> u64 {
        let shift = self.config.tsq.and_then(|tsq| tsq.pacing_shift);
        pacing::quantum_segments(rate, self.payload_bytes, self.window.cwnd_segments, self.min_rtt.get(), shift)
    }

    /// How long the pace delays the next segment: Linux's tcp_pacing_delay().
    pub(super) fn pacing_delay(&self, now: Time) -> Span {
        if self.is_paced_in_bursts(now) { self.paced_until.saturating_since(now) } else { Span::ZERO }
    }

    /// Linux's tcp_small_queue_check().
    fn host_queue_is_full(&self, now: Time) -> bool {
        let Some(tsq) = self.config.tsq else { return false };
        if self.board.is_empty() {
            return false;
        }
        // Without an RTT sample there is no rate.
        let rate = Some(self.pacing_rate(now)).filter(|rate| *rate > Rate::ZERO);
        let permitted = tsq.permitted(rate, self.payload_bytes, self.window.cwnd_segments, self.min_rtt.get());
        self.host_queue_bytes > permitted.get()
    }

    /// A packet was handed to the host.
    pub(crate) fn on_handed_out(&mut self, ip_bytes: Bytes) {
        self.host_queue_bytes += ip_bytes.get();
    }

    /// A packet left the host's queue.
    pub(crate) fn on_departed(&mut self, ip_bytes: Bytes) {
        self.host_queue_bytes = self.host_queue_bytes.saturating_sub(ip_bytes.get());
        self.refused = false;
    }

    /// The host's queue was full: takes the last transmission back, and reduces the window.
    pub(crate) fn on_refused(&mut self, now: Time, seq: u64, takes_sequence_numbers: bool, ip_bytes: Bytes) {
        self.host_queue_bytes = self.host_queue_bytes.saturating_sub(ip_bytes.get());
        if takes_sequence_numbers {
            if let Some(record) = self.board.take_back(seq) {
                self.snd_nxt = record.seq;
                // Otherwise Nagle's algorithm would wait for a small segment that was never sent.
                self.small_end = self.small_end.min(record.seq);
                self.fin_sent &= !record.is_fin();
                self.unsend();
                if self.board.is_empty() {
                    self.timer = super::Timer::default();
                }
            } else if self.board.take_retransmission_back(seq) {
                self.undo.on_retransmission_taken_back();
                self.retransmits -= 1;
                self.unsend();
            } else if self.probe.is_some_and(|probe| probe.retransmission) {
                self.retransmits -= 1;
                self.unsend();
            }
            self.probe = self.probe.filter(|probe| probe.end <= self.snd_nxt && !probe.retransmission);
            self.arm_host_retry(now);
        }
        self.enter_cwr(now);
        self.refused = true;
    }

    fn unsend(&mut self) {
        self.prr.out = self.prr.out.saturating_sub(1);
        self.segments_sent -= 1;
    }

    /// Linux's tcp_cwnd_validate(): decides whether the window ended this burst.
    fn on_burst_end(&mut self, in_flight: u32) {
        let limited = in_flight >= self.window.cwnd_segments;
        let out = self.board.len();
        if (self.burst > 0 || limited)
            && (self.snd_una >= self.limited_round_end || limited || (!self.cwnd_limited && out > self.most_out))
        {
            self.cwnd_limited = limited;
            self.most_out = out;
            self.limited_round_end = self.snd_nxt;
        }
        self.burst = 0;
    }

    /// RFC 5681 §4.1 and RFC 2861, as Linux's tcp_cwnd_restart(): the window is halved for each RTO of idleness, down
    /// to the initial window.
    fn restart_after_idle(&mut self, now: Time, idle: Span) {
        let rto = self.rtt.rto();
        if !self.config.slow_start_after_idle || idle <= rto || self.segments_sent == 0 || self.law.steers() {
            return;
        }
        self.window.ssthresh_segments = self.current_ssthresh();
        let cwnd = self.window.cwnd_segments;
        let restart = self.config.initial_window_segments.min(cwnd);
        let halvings = ((idle.as_nanos() - 1) / rto.as_nanos()).min(31);
        self.window.cwnd_segments = (cwnd >> halvings).max(restart);
        self.apply_bound(now);
    }
}
