//! Spurious timeouts, detected from the ACKs that follow: F-RTO, RFC 5682, in the SACK-enhanced form of §3.1 and the
//! basic form of §2.1.
//!
//! ```text
//! timeout ─> retransmit snd_una ─> ACK ─┬─ of a segment never retransmitted: spurious, undo      (3b, at once)
//!            window 1                   ├─ duplicate: real loss, go on                           (2a)
//!                                       └─ of the retransmission: send two NEW segments          (2b)
//!                                            └─> ACK ─┬─ duplicate, or SACK of them: real loss   (3a)
//!                                                     └─ of a segment never retransmitted: undo  (3b)
//! ```

use super::super::{Ack, Sender};
use lasthop_connection::CongestionState;
use lasthop_units::Time;

impl Sender {
    /// An ACK in state Loss, below the recovery point.
    pub(super) fn recover_from_timeout(&mut self, now: Time, ack: &Ack) {
        if ack.advanced && self.undo_timeout(now, ack, false) {
            return;
        }
        if self.f_rto {
            if ack.original_delivered && self.undo_timeout(now, ack, true) {
                return;
            }
            if self.snd_nxt > self.recovery_point {
                if ack.sacked > 0 || ack.duplicate {
                    self.f_rto = false; // (3a)
                }
            } else if ack.advanced {
                self.recovery_point = self.snd_nxt;
                self.f_rto_new_data = true; // (2b); without new data to send, the usual recovery goes on
                return;
            }
        }
        if !self.uses_sack && ack.advanced {
            self.forget_duplicates();
        }
        debug_assert!(self.state == CongestionState::Loss);
    }
}
