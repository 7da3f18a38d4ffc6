//! One transmission on the medium, with the exchange around it.

use super::super::airtime::{Mode, ModeId, Unanswered};
use super::super::direction::Link;
use super::super::originator::Content;
use lasthop_units::{Span, Time};

#[derive(Clone, Copy, Debug)]
pub(in crate::wifi) struct Transmission {
    pub(in crate::wifi) sender: usize,
    pub(in crate::wifi) node: usize,
    pub(in crate::wifi) mode: ModeId,
    /// The station at the other end, or `None` for a broadcast.
    pub(in crate::wifi) link: Option<Link>,
    pub(in crate::wifi) content: Content,
    /// Duration of its data.
    pub(in crate::wifi) duration: Span,
    /// An RTS or its CTS is on the air; the data follows.
    pub(in crate::wifi) is_rts: bool,
    /// The end of the frame on the air.
    pub(in crate::wifi) end: Time,
    /// The end of its TXOP; [`Time::ZERO`] if that is one PPDU.
    pub(in crate::wifi) txop_end: Time,
}

impl Transmission {
    /// SIFS and its response.
    pub(in crate::wifi) fn response(&self, mode: &Mode) -> Span {
        match self.is_rts {
            true => mode.cts,
            false if self.is_answered_by_block_ack() => mode.block_ack,
            false => mode.acknowledgement,
        }
    }

    /// The waits if it is not received.
    pub(in crate::wifi) const fn unanswered(&self, mode: &Mode) -> Unanswered {
        if self.is_rts { mode.rts_unanswered } else { mode.unanswered }
    }

    pub(in crate::wifi) fn is_answered_by_block_ack(&self) -> bool {
        !self.is_rts && self.content.mpdus != 1
    }

    /// Whether its frame on the air, or the last one, is data.
    pub(in crate::wifi) const fn is_data(&self) -> bool {
        self.content.frames > 0 && !self.is_rts
    }

    /// How long its data are on the air between these moments.
    pub(in crate::wifi) fn data_between(&self, since: Time, until: Time) -> Span {
        let start = Time::ZERO + (self.end - Time::ZERO).saturating_sub(self.duration);
        if self.is_data() { self.end.min(until).saturating_since(start.max(since)) } else { Span::ZERO }
    }
}
