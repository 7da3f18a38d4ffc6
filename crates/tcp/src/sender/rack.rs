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
//! theirs. Each check continues where the last one stopped. (After a timeout that was undone the originals sent again are
//! younger than those above them: these are found once something later is delivered.)
//!
//! *As in Linux*: an original that arrives below what was SACKed before is reordering, and only after that does a D-SACK
//! widen the window; the reordering timer ends 2 ms after the last is lost, and is set by ACKs alone; only an ACK with
//! news finds losses; SACK blocks are taken from the lowest up; a loss that was undone is not found by time again; an echo
//! from before a retransmission says that its original arrived; a probe that sends the last segment again leaves it in
//! flight once.

use super::timer::TIMEOUT_SLACK;
use super::{Ack, Sender};
use crate::scoreboard::{DUP_THRESH, Record};
use lasthop_connection::CongestionState;
use lasthop_units::{Span, Time};

#[derive(Clone, Debug, Default)]
pub(crate) struct Rack {
    /// RACK.xmit_ts and RACK.end_seq: the delivered segment that was sent last.
    sent_at: Time,
    end: u64,
    rtt: Span,
    valid: bool,
    /// Something was delivered since losses were last looked for: only then does an ACK find more.
    pub(super) advanced: bool,
    /// RACK.reo_wnd_mult - 1.
    extra_quarters: u32,
    /// RACK.reo_wnd_persist: recoveries until the window is small again.
    persist: u32,
    /// A D-SACK is to widen the window, with the next delivery.
    d_sack_seen: bool,
    /// The segments delivered when one did.
    widened_at: u32,
}

/// What time has found.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Found {
    /// A retransmission is lost.
    pub(crate) again: bool,
    /// When all that were overtaken are lost, and are not yet.
    pub(crate) until: Option<Time>,
}

/// How far originals overtake each other: Linux's `tp->reordering` and `tp->reord_seen`, tcp_check_sack_reordering().
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reordering {
    /// An original came after one that was sent later.
    pub(crate) seen: bool,
    /// DupThresh, in segments: 3, or as far as one was overtaken, 300 at most; 3 again after a timeout that it may have
    /// caused.
    pub(crate) segments: u32,
    /// One was overtaken by more than DupThresh: forward acknowledgement is off for good, tcp_disable_fack().
    pub(crate) far: bool,
}

/// The default of Linux's `net.ipv4.tcp_max_reordering`, in segments.
const MAX_REORDERING: u64 = 300;

impl Default for Reordering {
    fn default() -> Self {
        Self { seen: false, segments: DUP_THRESH, far: false }
    }
}

impl Reordering {
    /// `lowest`: the lowest original that an ACK delivers below what was SACKed before, `u64::MAX` if none; `highest`: the
    /// highest SACKed byte now. Segments have `payload` bytes.
    pub(crate) fn on_overtaken(&mut self, lowest: u64, highest: u64, payload: u32) {
        if lowest >= highest {
            return;
        }
        self.seen = true;
        let segments = (highest - lowest).div_ceil(u64::from(payload)).min(MAX_REORDERING) as u32;
        self.far |= segments > self.segments;
        self.segments = self.segments.max(segments);
    }

    /// Whether originals overtake each other by more than DupThresh.
    pub(crate) fn is_high(&self) -> bool {
        self.segments > DUP_THRESH
    }

    /// tcp_enter_loss(): a timeout though many were SACKed suggests that the extent was over-estimated.
    pub(crate) fn on_timeout(&mut self, sacked_out: u32) {
        if sacked_out >= DUP_THRESH {
            self.segments = DUP_THRESH;
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

    /// A D-SACK shows that a retransmission was needless.
    pub(crate) fn on_d_sack(&mut self) {
        self.d_sack_seen = true;
    }

    /// Step 4: an ACK delivers segments, of which the last was sent when `prior` were delivered; now `delivered` are. One
    /// D-SACK counts in a round trip.
    pub(crate) fn update_window(&mut self, prior: u32, delivered: u32) {
        self.d_sack_seen &= prior >= self.widened_at;
        if self.d_sack_seen {
            self.d_sack_seen = false;
            self.extra_quarters = (self.extra_quarters + 1).min(254);
            self.widened_at = delivered;
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

    /// RACK.rtt.
    pub(crate) fn rtt(&self) -> Span {
        self.rtt
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

    /// Step 5: marks segments that are lost by now.
    pub(crate) fn detect_losses_by_time(&mut self, now: Time) -> Found {
        let mut found = Found::default();
        if !self.rack.valid {
            return found;
        }
        self.rack.advanced = false;
        let latest = (self.rack.sent_at, self.rack.end);
        let deadline = self.rack_deadline();
        let mut waits = false;
        while let Some(record) = self.board.next_unmarked() {
            if !sent_after(latest, (record.sent_at, record.end)) {
                break;
            }
            if record.sent_at.saturating_add(deadline) > now {
                waits = true;
                break;
            }
            self.board.mark_next_lost();
        }
        while let Some((retransmission, record)) = self.board.oldest_retransmission() {
            if !sent_after(latest, (retransmission.sent_at, record.end)) {
                break;
            }
            if retransmission.sent_at.saturating_add(deadline) > now {
                waits = true;
                break;
            }
            self.board.mark_oldest_retransmission_lost();
            found.again = true;
        }
        if waits {
            let last = self.board.last_in_flight_before(latest).expect("one is not lost yet");
            found.until = Some(last.saturating_add(deadline) + TIMEOUT_SLACK);
        }
        found
    }

    /// §7.4: what an ACK tells of an outstanding probe.
    pub(crate) fn check_probe(&mut self, now: Time, ack_seq: u64, ack: &Ack) {
        let Some(probe) = self.probe.filter(|probe| ack_seq >= probe.end) else { return };
        if !probe.retransmission || ack.probe_reported {
            self.probe = None; // new data arrived, or both the original and the probe
        } else if ack_seq > probe.end {
            self.probe = None;
            self.reduce_at_once(now); // no duplicate was reported: the probe repaired a loss
        } else if !ack.advanced && ack.duplicate && ack.sacked == 0 {
            self.probe = None;
        }
    }
}
