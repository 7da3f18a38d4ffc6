//! Loss detection by time, and probes for lost tails: RACK-TLP, RFC 8985.
//!
//! ```text
//! RACK §6.2   a segment is lost if one sent later was delivered, and
//!               now >= sent + RACK.rtt + reo_wnd
//!             reo_wnd = 0                            no reordering seen, and in recovery or 3 segments SACKed
//!                     = min(mult * min RTT / 4, SRTT)  else; mult + 1 for each round trip with a D-SACK, 1 again after
//!                                                      16 recoveries without
//! TLP  §7     no ACK for PTO = 2 SRTT (+ the longest delayed ACK if one segment is in flight): send one segment
//!             its ACK tells whether it repaired a loss; if so the window is reduced
//! ```
//!
//! Segments are checked in the order of their transmission: originals in the scoreboard's order, retransmissions in
//! theirs. Each check continues where the last one stopped.
//!
//! *Differs from the RFC*: the reordering timer is set for the first segment that would be lost, not for the last, so
//! that each loss is found at its own time. *As in Linux*: an original that arrives below the highest SACKed byte is
//! reordering.
//!
//! Where originals were overtaken by more than three segments ([`Reordering::is_high`]), *as in Linux*: the timer is set
//! for the last segment, and 2 ms later; only an ACK with news finds losses; SACK blocks are taken from the lowest up; a
//! loss that was undone is not found by time again; an echo from before a retransmission says that its original arrived.

use super::timer::TIMEOUT_SLACK;
use super::{Ack, Sender, TimerKind};
use crate::scoreboard::Record;
use lasthop_connection::CongestionState;
use lasthop_units::{Span, Time};

#[derive(Clone, Debug, Default)]
pub(crate) struct Rack {
    /// RACK.xmit_ts and RACK.end_seq: the delivered segment that was sent last.
    sent_at: Time,
    end: u64,
    rtt: Span,
    valid: bool,
    /// Something was delivered since losses were last looked for.
    advanced: bool,
    /// RACK.reo_wnd_mult - 1.
    extra_quarters: u32,
    /// RACK.reo_wnd_persist: recoveries until the window is small again.
    persist: u32,
    /// A D-SACK has widened the window in the round trip that ends at this sequence number.
    round_end: Option<u64>,
}

/// How far originals overtake each other: Linux's `tp->reordering` and `tp->reord_seen`, tcp_check_sack_reordering().
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reordering {
    /// An original came after one that was sent later.
    pub(crate) seen: bool,
    /// DupThresh, in segments: 3, or as far as one was overtaken, 300 at most; 3 again after a timeout that it may have
    /// caused.
    pub(crate) segments: u32,
    /// The same, but without an ACK that advances and SACKs at once, which has overtaken nothing.
    overtaken: u64,
}

/// The default of Linux's `net.ipv4.tcp_max_reordering`, in segments.
const MAX_REORDERING: u64 = 300;

impl Default for Reordering {
    fn default() -> Self {
        Self { seen: false, segments: crate::scoreboard::DUP_THRESH, overtaken: 0 }
    }
}

impl Reordering {
    /// An original of `payload` bytes a segment, at `seq`, was delivered when `highest` had been SACKed; `before`: by an
    /// earlier ACK.
    pub(crate) fn on_delivered(&mut self, seq: u64, before: u64, highest: u64, payload: u32) {
        self.overtaken = self.overtaken.max(before.saturating_sub(seq).div_ceil(u64::from(payload)));
        if seq < highest {
            self.seen = true;
            let overtaken = (highest - seq).div_ceil(u64::from(payload)).min(MAX_REORDERING);
            self.segments = self.segments.max(overtaken as u32);
        }
    }

    /// Whether originals overtake each other by more than DupThresh.
    pub(crate) fn is_high(&self) -> bool {
        self.overtaken > u64::from(crate::scoreboard::DUP_THRESH)
    }

    /// tcp_enter_loss(): a timeout though many were SACKed suggests that the extent was over-estimated.
    pub(crate) fn on_timeout(&mut self, sacked_out: u32) {
        if sacked_out >= crate::scoreboard::DUP_THRESH {
            (self.segments, self.overtaken) = (crate::scoreboard::DUP_THRESH, 0);
        }
    }
}

/// RFC 8985 §6.2: the number of recoveries for which a wider reordering window lasts.
const PERSIST_RECOVERIES: u32 = 16;

/// A loss probe in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LossProbe {
    /// TLP.end_seq.
    pub(crate) end: u64,
    /// It retransmitted the last segment.
    pub(crate) retransmission: bool,
}

fn sent_after(one: (Time, u64), other: (Time, u64)) -> bool {
    one > other
}

impl Rack {
    /// Step 2: takes a delivered segment. RACK.rtt is the latest one's, whenever it was sent, so that a segment that
    /// came late makes the deadline of all others later. A retransmission acknowledged in less than the lowest RTT
    /// does not count: its original arrived.
    pub(crate) fn on_delivered(&mut self, now: Time, record: &Record, min_rtt_ns: u64) {
        let rtt = now.saturating_since(record.sent_at);
        if record.was_ever_retransmitted() && rtt.as_nanos() < min_rtt_ns {
            return;
        }
        self.rtt = rtt;
        self.advanced = true;
        if !self.valid || sent_after((record.sent_at, record.end), (self.sent_at, self.end)) {
            (self.sent_at, self.end, self.valid) = (record.sent_at, record.end, true);
        }
    }

    pub(crate) fn on_d_sack(&mut self, snd_una: u64, snd_nxt: u64) {
        if self.round_end.is_none_or(|end| snd_una > end) {
            self.round_end = Some(snd_nxt);
            self.extra_quarters = (self.extra_quarters + 1).min(254);
            self.persist = PERSIST_RECOVERIES;
        }
    }

    /// As in Linux, only one that was needed counts: tcp_try_undo_recovery(). Reordering makes many that were not.
    pub(crate) fn on_recovery_ended(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.extra_quarters = 0;
        }
    }

    /// A reduction was undone: losses are looked for again.
    pub(crate) fn on_undone(&mut self) {
        self.advanced = true;
    }

    /// Linux's tcp_try_undo_dsack().
    pub(crate) fn on_undone_by_d_sack(&mut self) {
        self.persist = (self.persist + 1).min(PERSIST_RECOVERIES);
    }
}

impl Sender {
    pub(crate) fn uses_rack(&self) -> bool {
        self.config.rack_tlp && self.uses_sack
    }

    /// RACK.reo_wnd.
    pub(crate) fn reordering_window(&self) -> Span {
        let in_recovery = matches!(self.state, CongestionState::Recovery | CongestionState::Loss);
        if !self.reordering.seen && (in_recovery || self.board.sacked_out() >= self.reordering.segments) {
            return Span::ZERO;
        }
        let quarters = u64::from(self.rack.extra_quarters) + 1;
        let quarter = self.min_rtt.get().map_or(0, |rtt| rtt.as_nanos() / 4);
        Span::from_nanos((quarter * quarters).min(self.rtt.srtt_ns()))
    }

    /// A segment that was overtaken is lost this long after its transmission.
    pub(crate) fn rack_deadline(&self) -> Span {
        self.rack.rtt + self.reordering_window()
    }

    /// Whether an ACK gives reason to look for losses. Where packets overtake each other, one without news does not: as in
    /// Linux, only a timer finds that time has passed.
    pub(super) fn looks_for_losses(&self) -> bool {
        self.rack.advanced || !self.reordering.is_high()
    }

    pub(crate) fn reordering_timer_is_set(&self) -> bool {
        self.timer.kind == TimerKind::Reordering && self.timer.at < Time::MAX
    }

    /// Step 5: marks segments that are lost by now, and sets the timer for the next. Returns whether a retransmission
    /// is lost.
    pub(crate) fn detect_losses_by_time(&mut self, now: Time) -> bool {
        if !self.rack.valid {
            return false;
        }
        self.rack.advanced = false;
        let latest = (self.rack.sent_at, self.rack.end);
        let deadline = self.rack_deadline();
        let mut soonest = Time::MAX;
        while let Some(record) = self.board.next_unmarked() {
            if !sent_after(latest, (record.sent_at, record.end)) {
                break;
            }
            let lost_at = record.sent_at.saturating_add(deadline);
            if lost_at > now {
                soonest = lost_at;
                break;
            }
            if self.reordering.is_high() {
                self.board.mark_next_lost();
            } else {
                self.board.mark_lost_below(record.end);
            }
        }
        let mut again = false;
        while let Some((retransmission, record)) = self.board.oldest_retransmission() {
            if !sent_after(latest, (retransmission.sent_at, record.end)) {
                break;
            }
            let lost_at = retransmission.sent_at.saturating_add(deadline);
            if lost_at > now {
                soonest = soonest.min(lost_at);
                break;
            }
            self.board.mark_oldest_retransmission_lost();
            again = true;
        }
        if soonest < Time::MAX && self.reordering.is_high() {
            let last = self.board.last_in_flight_before(latest).expect("one is not lost yet");
            self.arm_reordering(last.saturating_add(deadline) + TIMEOUT_SLACK);
        } else if soonest < Time::MAX {
            self.arm_reordering(soonest);
        }
        again
    }

    /// §7.4: what an ACK tells of an outstanding probe.
    pub(crate) fn check_probe(&mut self, now: Time, ack_seq: u64, ack: &Ack) {
        let Some(probe) = self.probe.filter(|probe| ack_seq >= probe.end) else { return };
        if !probe.retransmission || ack.d_sack {
            self.probe = None; // new data arrived, or both the original and the probe
        } else if ack_seq > probe.end {
            self.probe = None;
            self.reduce_at_once(now); // no duplicate was reported: the probe repaired a loss
        } else if !ack.advanced && ack.duplicate && ack.sacked == 0 {
            self.probe = None;
        }
    }
}
