//! Undoing a spurious reduction.
//!
//! ```text
//! Eifel    RFC 3522  the first ACK after a retransmission echoes a timestamp from before it: the original arrived
//!                    or nothing was sent again: tcp_packet_delayed()
//! D-SACK   RFC 3708  every retransmission is reported as a duplicate: all originals arrived
//! response RFC 4015  as Linux: cwnd = max(cwnd, cwnd before), ssthresh = max(ssthresh, ssthresh before)
//! ```

use super::super::{Ack, Sender};
use crate::clock::{is_before, ticks};
use lasthop_connection::CongestionState;
use lasthop_laws::Undone;
use lasthop_units::Time;
use std::ops::Range;

/// The state needed to undo the last reduction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Undo {
    /// snd_una at the reduction; `None`: nothing to undo.
    marker: Option<u64>,
    /// Retransmissions not yet reported as duplicates; `None`: no retransmissions.
    outstanding: Option<u32>,
    first_retransmission: Option<Time>,
    /// cwnd and ssthresh before the reduction.
    prior: Option<(u32, u32)>,
}

impl Undo {
    pub(super) fn begin(&mut self, snd_una: u64, retransmitted_out: u32, prior: Option<(u32, u32)>) {
        self.marker = Some(snd_una);
        // Retransmissions from before may still be reported.
        self.outstanding = Some(retransmitted_out).filter(|count| *count > 0);
        if retransmitted_out == 0 {
            self.first_retransmission = None;
        }
        self.prior = prior;
    }

    /// There is something to undo.
    pub(crate) fn is_possible(&self) -> bool {
        self.marker.is_some()
    }

    pub(super) fn forget(&mut self) {
        self.marker = None;
    }

    pub(crate) fn on_retransmitted(&mut self, now: Time) {
        self.first_retransmission.get_or_insert(now);
        *self.outstanding.get_or_insert(0) += 1;
    }

    /// The host refused a retransmission: there is one fewer, which proves nothing.
    pub(crate) fn on_retransmission_taken_back(&mut self) {
        self.outstanding = self.outstanding.map(|count| count.saturating_sub(1)).filter(|count| *count > 0);
    }

    /// A D-SACK reports `duplicate`.
    pub(crate) fn on_duplicate(&mut self, duplicate: &Range<u64>) {
        if self.marker.is_some_and(|marker| duplicate.end > marker) {
            self.outstanding = self.outstanding.map(|count| count.saturating_sub(1));
        }
    }

    /// The network has marked a packet: the reduction is right, whatever else was not.
    pub(super) fn keep_reduction(&mut self) {
        self.prior = None;
    }

    fn all_were_duplicates(&self) -> bool {
        self.outstanding == Some(0)
    }
}

impl Sender {
    /// Eifel: whether the acknowledged segment was sent before the first retransmission, or there was none.
    fn original_arrived(&self, ack: &Ack) -> bool {
        let Some(first) = self.undo.first_retransmission else { return true };
        self.timestamps && ack.echo != 0 && is_before(ack.echo, ticks(first, self.config.timestamp_granularity))
    }

    fn may_undo(&self, ack: &Ack) -> bool {
        self.config.undo
            && self.undo.marker.is_some()
            && (self.undo.all_were_duplicates() || self.original_arrived(ack))
    }

    fn undo_reduction(&mut self, now: Time, unmark: bool) {
        if unmark {
            self.board.unmark_lost();
            self.clamp_duplicates();
        }
        if let Some((cwnd, ssthresh)) = self.undo.prior {
            if !self.law.steers() {
                self.window.cwnd_segments = self.window.cwnd_segments.max(cwnd);
                self.window.ssthresh_segments = self.window.ssthresh_segments.max(ssthresh);
            }
            self.marked.cwr_due = false;
            let event = Undone { now_us: now.as_nanos() / 1000 };
            self.tell(|law, window| law.on_undone(&event, window));
            self.undone += 1;
        }
        self.undo.marker = None;
        self.rack.on_undone();
        self.apply_bound(now);
    }

    /// At the end of a recovery: undoes the reduction if it was spurious. Returns whether it did.
    pub(super) fn undo_if_needless(&mut self, now: Time, ack: &Ack) -> bool {
        let needless = self.may_undo(ack);
        if needless {
            self.undo_reduction(now, false);
        } else {
            self.rack.on_recovery_ended();
        }
        needless
    }

    /// During a recovery: undoes the reduction if D-SACKs prove that it was spurious. Returns whether it did.
    pub(super) fn undo_by_d_sack(&mut self, now: Time) -> bool {
        let needless = self.config.undo && self.undo.marker.is_some() && self.undo.all_were_duplicates();
        if needless {
            self.rack.on_undone_by_d_sack();
            self.undo_reduction(now, false);
        }
        needless
    }

    /// A partial ACK of segments that were not retransmitted when they were sent proves reordering, not loss. Returns
    /// whether the reduction is undone or about to be.
    pub(super) fn undo_partial(&mut self, now: Time, ack: &Ack) -> bool {
        if !self.config.undo || self.undo.marker.is_none() || !self.original_arrived(ack) {
            return false;
        }
        // As in tcp_try_undo_partial(): a delayed segment has filled the hole.
        let highest = self.board.highest_sacked().unwrap_or(self.snd_una);
        self.reordering.on_overtaken(ack.prior_una, highest, self.payload_bytes);
        if self.board.retransmitted_out() == 0 {
            self.undo_reduction(now, true);
            self.close_episode();
            self.open_or_disorder();
        } else {
            // Since RACK, nothing more is taken for lost or sent again meanwhile, but new data go.
            self.only_late = self.uses_rack();
        }
        true
    }

    /// Undoes the reduction of a timeout that was spurious by F-RTO, Eifel or D-SACK. Returns whether it did.
    pub(super) fn undo_timeout(&mut self, now: Time, ack: &Ack, by_f_rto: bool) -> bool {
        if !by_f_rto && !self.may_undo(ack) {
            return false;
        }
        self.undo_reduction(now, true);
        self.timeouts_in_a_row = 0;
        if by_f_rto || self.uses_sack {
            self.close_episode();
            self.open_or_disorder();
        }
        debug_assert!(self.state <= CongestionState::Loss);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retransmission_that_the_host_refused_proves_nothing() {
        let mut undo = Undo::default();
        undo.begin(1, 0, Some((20, 20)));
        undo.on_retransmitted(Time::ZERO);
        undo.on_retransmission_taken_back();
        assert!(!undo.all_were_duplicates());
        // A retransmission that was sent and reported as a duplicate proves it.
        undo.on_retransmitted(Time::ZERO);
        undo.on_duplicate(&(1..1449));
        assert!(undo.all_were_duplicates());
    }
}
