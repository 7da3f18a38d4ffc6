//! The congestion states, from the first suspicion of a loss to the restored window: Linux's tcp_fastretrans_alert().
//!
//! ```text
//! suspicion       a duplicate ACK or a new SACK block: Disorder
//! proof           by count (RFC 5681: three duplicates; RFC 6675 IsLost), by distance (FACK), or by time (RFC 8985)
//! Recovery        ssthresh by the law; the window by [`prr`]; ends when all data in flight at entry are acknowledged
//! Loss            a timeout: everything is lost, window 1, slow start; ends likewise
//! spurious        by timestamps (Eifel), D-SACK, or the ACKs after a timeout (F-RTO): the window is restored
//! ```
//!
//! There is one reduction per window of data: none before the last one has ended.

mod frto;
mod prr;
mod undo;

pub(crate) use prr::{Delivery, Prr};
pub(crate) use undo::Undo;

use super::{Ack, Sender};
use crate::config::Recovery;
use crate::scoreboard::DUP_THRESH;
use lasthop_connection::CongestionState;
use lasthop_laws::{Law, Lost, Window};
use lasthop_units::Time;

/// The least ssthresh, in segments: RFC 5681 §3.1 (4).
pub(crate) const MIN_SSTHRESH: u32 = 2;

/// The law's event that sets ssthresh.
type Ask = fn(&mut Law, &Lost, &mut Window);

impl Sender {
    /// Processes an ACK that is out of order, or arrives during a recovery.
    pub(crate) fn recover(&mut self, now: Time, ack: &mut Ack) {
        if ack.echo_of_mark {
            self.undo.keep_reduction();
        }
        if self.snd_una >= self.recovery_point {
            self.leave(now, ack);
        }
        self.count_duplicates(ack);
        match self.state {
            CongestionState::Recovery => {
                if ack.advanced {
                    self.on_partial_ack(now, ack);
                    if self.only_late {
                        return;
                    }
                } else if self.recovery == Recovery::NewReno && ack.duplicate {
                    self.window.cwnd_segments += 1; // RFC 6582 §3.2 (3)
                }
                if self.state == CongestionState::Recovery && self.undo_by_d_sack(now) {
                    self.open_or_disorder();
                }
                self.detect_losses(now, ack);
                if self.state == CongestionState::Recovery || !self.is_loss_evident() {
                    return;
                }
            }
            CongestionState::Loss => {
                self.recover_from_timeout(now, ack);
                let retransmission_lost = self.detect_losses(now, ack);
                if self.state == CongestionState::Loss && !retransmission_lost {
                    return;
                }
                if !self.is_loss_evident() {
                    return;
                }
            }
            CongestionState::Open | CongestionState::Disorder | CongestionState::Cwr => {
                if self.state != CongestionState::Cwr {
                    self.undo_by_d_sack(now);
                }
                self.detect_losses(now, ack);
                if !self.is_loss_evident() {
                    if ack.echo_of_mark {
                        self.enter_cwr(now);
                    }
                    if self.state != CongestionState::Cwr {
                        self.open_or_disorder();
                    }
                    return;
                }
            }
        }
        self.enter_recovery(now, ack.sacked, ack.acked);
        if ack.echo_of_mark {
            self.undo.keep_reduction();
        }
    }

    /// All data in flight when the reduction began are acknowledged.
    fn leave(&mut self, now: Time, ack: &mut Ack) {
        match self.state {
            CongestionState::Recovery => {
                if !self.undo_if_needless(now, ack) {
                    self.end_reduction();
                    ack.full = self.recovery == Recovery::NewReno;
                }
                self.close_episode();
            }
            CongestionState::Cwr => {
                // As in Linux: beyond it, not at it.
                if self.snd_una > self.recovery_point {
                    self.end_reduction();
                    self.close_episode();
                }
            }
            CongestionState::Loss => {
                self.undo_if_needless(now, ack);
                self.close_episode();
            }
            CongestionState::Open | CongestionState::Disorder => {}
        }
    }

    fn close_episode(&mut self) {
        self.state = CongestionState::Open;
        self.f_rto = false;
        self.duplicate_acks = 0;
        self.partial_acks = 0;
        if !self.uses_sack {
            self.careful_below = self.recovery_point;
        }
    }

    fn end_reduction(&mut self) {
        if self.law.steers() {
            return;
        }
        let ssthresh = self.window.ssthresh_segments;
        self.window.cwnd_segments = match self.recovery {
            // RFC 6582 §3.2 (3), full acknowledgement: no burst with little in flight.
            Recovery::NewReno if self.state == CongestionState::Recovery => ssthresh.min(self.board.len().max(1) + 1),
            Recovery::RateHalving => self.window.cwnd_segments.min(ssthresh),
            _ => ssthresh,
        };
        self.window.cwnd_count = 0;
    }

    /// RFC 6675 §5: an ACK with new SACK information is a duplicate even if it moves snd_una.
    fn count_duplicates(&mut self, ack: &Ack) {
        if self.state.is_reduction() || self.state == CongestionState::Loss {
            return;
        }
        if ack.advanced {
            self.duplicate_acks = 0;
        }
        if (self.uses_sack && ack.sacked > 0) || (!self.uses_sack && ack.duplicate) {
            self.duplicate_acks += 1;
        }
    }

    /// Without proof of a loss: Disorder if there still is a suspicion, else Open.
    fn open_or_disorder(&mut self) {
        let suspicious = self.board.left() > 0 || self.board.retransmitted_out() > 0 || self.duplicate_acks > 0;
        self.state = if suspicious { CongestionState::Disorder } else { CongestionState::Open };
        self.recovery_point = self.snd_nxt;
    }

    /// Marks segments that must be lost by now. Returns whether a retransmission is among them.
    fn detect_losses(&mut self, now: Time, ack: &mut Ack) -> bool {
        let (lost_before, pending_before) = (self.board.lost_out(), self.board.pending());
        let mut again = false;
        if self.uses_rack() {
            if self.rack.advanced {
                let found = self.detect_losses_by_time(now);
                again = found.again;
                if let Some(until) = found.until {
                    self.arm_reordering(now, until);
                    ack.timer_set = true;
                }
            }
        } else if self.uses_sack {
            if self.state != CongestionState::Loss {
                let fack = self.config.fack && !self.reordering.far;
                let dup_thresh = self.reordering.segments;
                let mut threshold = self.board.loss_threshold(dup_thresh, fack);
                if self.duplicate_acks >= dup_thresh && self.board.sacked_out() >= dup_thresh {
                    // RFC 6675 §5 (2): DupThresh duplicates suffice for the first segment, however small they are.
                    threshold = threshold.max(self.board.front().map_or(0, |head| head.end));
                }
                self.board.mark_lost_below(threshold);
                again = fack && self.state == CongestionState::Recovery && self.detect_lost_retransmissions();
            }
        } else if self.state != CongestionState::Loss && self.duplicate_acks >= DUP_THRESH {
            // RFC 6582 §3.2 (2): duplicates of segments that the last recovery sent do not count.
            if self.state == CongestionState::Recovery || self.snd_una > self.careful_below {
                self.board.mark_head_lost();
                self.clamp_duplicates();
            }
        }
        ack.lost |= self.board.lost_out() > lost_before || self.board.pending() > pending_before;
        again
    }

    /// Linux's tcp_mark_lost_retrans(): a retransmission is lost if a segment sent after it was delivered.
    fn detect_lost_retransmissions(&mut self) -> bool {
        let Some(highest) = self.board.highest_sacked() else { return false };
        let mut again = false;
        while let Some((retransmission, _)) = self.board.oldest_retransmission()
            && highest > retransmission.snd_nxt
        {
            self.board.mark_oldest_retransmission_lost();
            again = true;
        }
        again
    }

    fn is_loss_evident(&self) -> bool {
        self.board.lost_out() > 0
    }

    /// Fast recovery begins: RFC 5681 §3.2, RFC 6675 §5 (4), RFC 6937 §3.
    pub(crate) fn enter_recovery(&mut self, now: Time, newly_sacked: u32, newly_acked: u32) {
        if self.state.is_reduction() {
            // The window is already reduced: no further reduction, and none to undo.
            self.undo.begin(self.snd_una, self.sent_again(), None);
        } else {
            let prior = (self.window.cwnd_segments, self.current_ssthresh());
            self.undo.begin(self.snd_una, self.sent_again(), Some(prior));
            self.begin_reduction(now, newly_sacked, newly_acked, Law::on_lost);
        }
        self.state = CongestionState::Recovery;
        self.recovery_point = self.snd_nxt;
        self.probe = None;
        self.f_rto = false;
        self.partial_acks = 0;
        let head_end = self.board.front().map_or(self.snd_una, |head| head.end);
        self.rescue_after = head_end - 1;
        self.highest_retransmitted = self.snd_una;
        match self.recovery {
            // RFC 6675 §5 (4.3): the first retransmission ignores the window.
            Recovery::Rfc6675 => {
                self.window.cwnd_segments = self.window.ssthresh_segments;
                self.force_head();
            }
            Recovery::NewReno => {
                self.window.cwnd_segments = self.window.ssthresh_segments + DUP_THRESH;
                self.force_head();
            }
            _ => {}
        }
    }

    /// Retransmissions in flight, a probe among them: tcp_init_undo().
    fn sent_again(&self) -> u32 {
        self.board.retransmitted_out() + u32::from(self.probe.is_some_and(|probe| probe.retransmission))
    }

    /// Asks the law for ssthresh; `ask`: its event, a loss or a notice.
    fn begin_reduction(&mut self, now: Time, newly_sacked: u32, newly_acked: u32, ask: Ask) {
        let event = self.lost_event(now);
        let before = self.window.cwnd_segments;
        self.tell(|law, window| ask(law, &event, window));
        self.marked.cwr_due = true;
        if self.law.steers() {
            self.tolerated = true; // Nothing is reduced, so that a timeout within is told.
            self.prr = Prr::begin(self.board.len()); // A bound asks whether anything was sent in this recovery.
            return;
        }
        self.window.cwnd_count = 0;
        // CHD may answer with half its shadow window, which must not exceed the receiver's window.
        let most = before.max(u32::try_from(self.snd_wnd).unwrap_or(u32::MAX) / self.payload_bytes);
        self.window.ssthresh_segments = self.window.ssthresh_segments.min(most.max(MIN_SSTHRESH));
        // A window of 2 cannot be reduced, so keeping it is not toleration.
        self.tolerated = self.window.ssthresh_segments >= before.max(MIN_SSTHRESH + 1);
        let flight = match self.recovery {
            Recovery::PrrRfc9937 => self.board.len() - self.board.sacked_out() + newly_sacked + newly_acked,
            _ => self.board.len(),
        };
        self.prr = Prr::begin(flight);
    }

    /// The host's queue was full, or an ACK echoes a mark: Linux's tcp_enter_cwr().
    pub(crate) fn enter_cwr(&mut self, now: Time) {
        self.enter_cwr_by(now, Law::on_notified);
    }

    fn enter_cwr_by(&mut self, now: Time, ask: Ask) {
        if self.state >= CongestionState::Cwr {
            return;
        }
        self.undo.forget();
        self.begin_reduction(now, 0, 0, ask);
        self.state = CongestionState::Cwr;
        self.recovery_point = self.snd_nxt;
        self.probe = None;
        if matches!(self.recovery, Recovery::NewReno | Recovery::Rfc6675) {
            self.window.cwnd_segments = self.window.cwnd_segments.min(self.window.ssthresh_segments);
        }
        self.apply_bound(now);
    }

    /// A loss repaired by a probe still reduces the window, at once: RFC 8985 §7.4.2.
    pub(crate) fn reduce_at_once(&mut self, now: Time) {
        self.enter_cwr_by(now, Law::on_lost);
        if self.state == CongestionState::Cwr {
            self.end_reduction();
            self.close_episode();
            self.open_or_disorder();
        }
    }

    /// A timeout: RFC 5681 §3.1, RFC 6298 §5.
    pub(crate) fn enter_loss(&mut self, now: Time) {
        let fresh = self.state <= CongestionState::Disorder;
        // ssthresh is set once per window: not again while the same window times out or is recovered. But a recovery
        // that the law tolerated has set nothing; without this exception the connection would return to the window that
        // timed out.
        let reduces = fresh
            || self.recovery_point <= self.snd_una
            || (self.state == CongestionState::Loss && self.timeouts_in_a_row == 0)
            || (self.state.is_reduction() && self.tolerated);
        if reduces {
            let prior = (self.window.cwnd_segments, self.current_ssthresh());
            self.undo.begin(self.snd_una, self.sent_again(), Some(prior));
            let event = self.lost_event(now);
            self.tell(|law, window| law.on_timed_out(&event, window));
        }
        self.marked.cwr_due = true;
        // RFC 8985 §6.3: segments sent too recently to be acknowledged are not lost yet.
        let recent = self.uses_rack().then(|| self.rack.rtt());
        self.board.mark_all_lost(|index, record| {
            index == 0 || recent.is_none_or(|rtt| record.sent_at.saturating_add(rtt) <= now)
        });
        if fresh {
            self.reordering.on_timeout(self.board.sacked_out());
        }
        self.state = CongestionState::Loss;
        self.window.cwnd_segments = self.in_flight() + 1;
        self.window.cwnd_count = 0;
        // RFC 5682 §2.1: no F-RTO if the timeout interrupts a recovery, unless the same segment times out again.
        self.f_rto = self.config.f_rto && (fresh || self.timeouts_in_a_row > 0);
        self.recovery_point = self.snd_nxt;
        self.probe = None;
        self.duplicate_acks = 0;
        self.partial_acks = 0;
        self.apply_bound(now);
    }

    /// An ACK in Recovery that moved snd_una, but not to the recovery point.
    fn on_partial_ack(&mut self, now: Time, ack: &Ack) {
        if self.undo_partial(now, ack) {
            return;
        }
        self.partial_acks += 1;
        if self.uses_sack {
            return;
        }
        // RFC 6582 §3.2 (3): the next segment is lost, too.
        self.board.mark_head_lost();
        self.clamp_duplicates();
        if self.recovery == Recovery::NewReno {
            let cwnd = self.window.cwnd_segments.saturating_sub(ack.passed);
            self.window.cwnd_segments = (cwnd + u32::from(ack.passed > 0)).max(1);
            self.force_head();
        }
    }
}
