//! Explicit congestion notification: RFC 3168, as Linux has it, and what RFC 8257 makes of it.
//!
//! ```text
//! SYN       ECE and CWR: I can       SYN-ACK  ECE: so can I       not on a repeated SYN (§6.1.1.1)
//! sender    ECT(0) on new data, neither on retransmissions nor on pure ACKs                    §6.1.4, §6.1.5
//! receiver  a CE mark: ECE on each ACK, until data come with CWR; at once for the next two     §6.1.3
//! sender    an ECE: a reduction as for a loss, once in a window (state CWR)                    §6.1.2
//!           CWR on the first new data after any reduction
//!
//! DCTCP     ECT(0) on all segments; ECE says whether the last segment was marked               RFC 8257 §3.2
//!           when that changes, an ACK at once, and before it the delayed one with the ECE of before
//! ```
//!
//! *What it leaves out*: ECT on SYNs, on ACKs and retransmissions without DCTCP (RFC 8311), a timer for a window of one segment (§6.1.2).
//!
//! References: Linux 6.12, net/ipv4/tcp_input.c (`__tcp_ecn_check_ce`, `tcp_ecn_accept_cwr`, `tcp_try_to_open`), tcp_output.c
//! (`tcp_ecn_send`), tcp_dctcp.h (`dctcp_ece_ack_update`).

use crate::segment::Segment;
use lasthop_laws::Marking;
use lasthop_units::Ecn;

/// The flag ECE of a segment's [`Segment::ace`].
pub(crate) const ECE: u8 = 1;
/// The flag CWR.
pub(crate) const CWR: u8 = 2;
/// What a SYN says that asks for ECN.
const SETUP: u8 = ECE | CWR;

/// Whether an end wants explicit congestion notification. Both ends have the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EcnMode {
    /// It does not ask; packets are Not-ECT.
    #[default]
    Off,
    /// RFC 3168: a client asks for it, a server agrees.
    On,
}

impl EcnMode {
    /// Each with its name in scenario files.
    pub const WORDS: &'static [(&'static str, Self)] = &[("off", Self::Off), ("on", Self::On)];
}

/// How the receiver tells of marks; the same at both ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Feedback {
    /// Not at all.
    #[default]
    None,
    /// Until the sender says that it has reduced: RFC 3168.
    Latched,
    /// Each for itself: RFC 8257.
    Each,
}

/// What an end wants, by its configuration and its law.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    mode: EcnMode,
    marking: Marking,
}

impl Wish {
    pub(crate) const fn new(mode: EcnMode, marking: Marking) -> Self {
        let mode = if matches!(marking, Marking::Each) { EcnMode::On } else { mode };
        Self { mode, marking }
    }

    /// The flags of a client's SYN, after so many; of a repeated one none, for a middlebox may have dropped it for them.
    pub(crate) const fn asks(self, attempts: u32) -> u8 {
        if matches!(self.mode, EcnMode::On) && attempts == 0 { SETUP } else { 0 }
    }

    /// The flags of a server's answer to a SYN with these.
    pub(crate) const fn answers(self, asked: u8) -> u8 {
        if matches!(self.mode, EcnMode::On) && asked == SETUP { ECE } else { 0 }
    }

    /// What the server has then.
    pub(crate) const fn accepted(self, asked: u8) -> Feedback {
        if self.answers(asked) == ECE { self.classic() } else { Feedback::None }
    }

    /// What a client that has asked has, by the answer's flags.
    pub(crate) const fn agreed(self, answered: u8) -> Feedback {
        if matches!(self.mode, EcnMode::On) && answered & SETUP == ECE { self.classic() } else { Feedback::None }
    }

    const fn classic(self) -> Feedback {
        match self.marking {
            Marking::OfHost => Feedback::Latched,
            Marking::Each => Feedback::Each,
        }
    }
}

/// The sending half's state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Marked {
    pub(crate) feedback: Feedback,
    /// A reduction is to be told with CWR: `TCP_ECN_QUEUE_CWR`.
    pub(crate) cwr_due: bool,
    /// Segments delivered with a mark, as far as ACKs tell: `tp->delivered_ce`.
    pub(crate) delivered: u32,
}

impl Marked {
    pub(crate) fn is_on(&self) -> bool {
        self.feedback != Feedback::None
    }

    /// Whether this ACK, which delivers so many segments, echoes a mark; and how many of them are marked.
    pub(crate) fn on_ack(&mut self, ack: &Segment, delivered: u32) -> (bool, u32) {
        let is_echo = ack.ace & ECE != 0;
        let marked = if is_echo { delivered } else { 0 };
        self.delivered = self.delivered.wrapping_add(marked);
        (is_echo, marked)
    }

    /// The field and the flags of a segment with new data.
    pub(crate) fn of_new(&mut self, payload_bytes: u32) -> (Ecn, u8) {
        if !self.is_on() || payload_bytes == 0 {
            return (self.of_other(), 0);
        }
        (Ecn::Ect0, if std::mem::take(&mut self.cwr_due) { CWR } else { 0 })
    }

    /// The field of a segment without new data.
    pub(crate) fn of_other(&self) -> Ecn {
        if self.feedback == Feedback::Each { Ecn::Ect0 } else { Ecn::NotEct }
    }
}

/// What new data tell a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// Nothing of marks.
    None,
    /// The next two segments are acknowledged at once.
    First,
    /// They are marked and those before were not, or the other way round.
    Change,
}

/// The receiving half's state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Echo {
    pub(crate) feedback: Feedback,
    /// ECE is set: `TCP_ECN_DEMAND_CWR`.
    demands: bool,
    /// Data with ECT have come: `TCP_ECN_SEEN`.
    has_seen: bool,
}

impl Echo {
    /// ACKs at once for so many segments after a first mark, as the sender's window may be small: Linux.
    pub(crate) const QUICK: u32 = 2;

    pub(crate) fn is_on(&self) -> bool {
        self.feedback != Feedback::None
    }

    /// The flags of a segment with an ACK.
    pub(crate) fn flags(&self) -> u8 {
        if self.demands { ECE } else { 0 }
    }

    /// Data come, in order or not. Returns whether the sender has reduced its window, and is to hear an ACK at once.
    pub(crate) fn on_data(&mut self, segment: &Segment) -> bool {
        let is_told = segment.ace & CWR != 0;
        self.demands &= !is_told || self.feedback == Feedback::Each;
        is_told && segment.payload_bytes > 0
    }

    /// The data are new.
    pub(crate) fn on_new(&mut self, field: Ecn) -> News {
        let is_marked = field == Ecn::Ce;
        if self.feedback == Feedback::Each {
            let before = std::mem::replace(&mut self.demands, is_marked);
            return if before == is_marked { News::None } else { News::Change };
        }
        // Linux: without ECT, though there was ECT before, it is a retransmission.
        let is_first = if is_marked { !self.demands } else { field == Ecn::NotEct && self.has_seen };
        self.demands |= is_marked;
        self.has_seen |= field != Ecn::NotEct;
        if is_first { News::First } else { News::None }
    }
}
