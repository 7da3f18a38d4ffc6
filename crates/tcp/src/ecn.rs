//! Explicit congestion notification: RFC 3168, as Linux has it, what RFC 8257 makes of it, and accurate ECN, RFC 9768.
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
//!
//! accurate  SYN: AE, CWR and ECE; SYN-ACK: CWR alone; a repeated SYN once more                 RFC 9768 §3.1.1, §3.1.4.1
//!           ECT(0) on all segments; AE, CWR and ECE are ACE: how many came with CE, from 5 on, modulo 8     §3.2.2
//!           an ACK at once for a mark after none, and for the second mark since the last ACK              §3.2.2.5.1
//!           the sender takes what ACE has moved for marks, where an ACK delivers something                §3.2.2.5.2
//! L4S       accurate or nothing, and ECT(1) in place of ECT(0)                                 RFC 9331 §4.1, §4.3
//! ```
//!
//! *What it leaves out*: of RFC 9768 the option, the ACE of the handshake's last ACK, which has the counter already, and the safer reading
//! of a counter that may have wrapped unseen (appendix A.2); ECT on SYNs; without DCTCP or ACE on ACKs and retransmissions (RFC 8311); a
//! timer for a window of one segment (§6.1.2).
//!
//! References: Linux 6.18, include/net/tcp_ecn.h, net/ipv4/tcp_input.c (`__tcp_ecn_check_ce`, `tcp_ecn_accept_cwr`, `tcp_try_to_open`),
//! tcp_output.c (`tcp_ecn_send`), tcp_dctcp.h (`dctcp_ece_ack_update`).

use crate::segment::Segment;
use lasthop_laws::Marking;
use lasthop_units::Ecn;

/// The flag ECE of a segment's [`Segment::ace`].
pub(crate) const ECE: u8 = 1;
/// The flag CWR.
pub(crate) const CWR: u8 = 2;
/// What a SYN says that asks for ECN.
const SETUP: u8 = ECE | CWR;
/// What a SYN says that asks for accurate ECN: the flag AE, too.
const ACCURATE_SETUP: u8 = 4 | SETUP;
/// What a SYN-ACK says that agrees to it, where the SYN was Not-ECT: RFC 9768 table 2.
const ACCURATE_ANSWER: u8 = CWR;
/// The first value of the counters of ACE: RFC 9768 §3.2.1.
const FIRST: u8 = 5;
/// ACE counts modulo 8.
const MASK: u8 = 7;
/// An ACK at once for so many marks: RFC 9768 §3.2.2.5.1.
const UNSAID: u8 = 2;

/// Whether an end wants explicit congestion notification. Both ends have the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EcnMode {
    /// It does not ask; packets are Not-ECT.
    #[default]
    Off,
    /// RFC 3168: a client asks for it, a server agrees.
    On,
    /// RFC 9768: each mark is counted, if the other end has it, too; else RFC 3168.
    Accurate,
}

impl EcnMode {
    /// Each with its name in scenario files.
    pub const WORDS: &'static [(&'static str, Self)] =
        &[("off", Self::Off), ("on", Self::On), ("accurate", Self::Accurate)];
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
    /// Their number: RFC 9768.
    Accurate,
}

/// What an end wants, by its configuration and its law.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    mode: EcnMode,
    marking: Marking,
}

impl Wish {
    pub(crate) const fn new(mode: EcnMode, marking: Marking) -> Self {
        match (mode, marking) {
            (EcnMode::Off, Marking::Each) => Self { mode: EcnMode::On, marking },
            (_, Marking::L4s) => Self { mode: EcnMode::Accurate, marking },
            _ => Self { mode, marking },
        }
    }

    /// The flags of a client's SYN, after so many; of a repeated one in the end none, for a middlebox may have dropped it for them.
    pub(crate) const fn asks(self, attempts: u32) -> u8 {
        match self.mode {
            EcnMode::On if attempts == 0 => SETUP,
            EcnMode::Accurate if attempts <= 1 => ACCURATE_SETUP,
            _ => 0,
        }
    }

    /// The flags of a server's answer to a SYN with these.
    pub(crate) const fn answers(self, asked: u8) -> u8 {
        match (self.mode, asked) {
            (EcnMode::Off, _) | (_, 0) => 0,
            (EcnMode::On | EcnMode::Accurate, SETUP) | (EcnMode::On, ACCURATE_SETUP) => ECE,
            (EcnMode::On, _) => 0,
            (EcnMode::Accurate, _) => ACCURATE_ANSWER,
        }
    }

    /// What the server has then.
    pub(crate) const fn accepted(self, asked: u8) -> Feedback {
        match self.answers(asked) {
            0 => Feedback::None,
            ECE => self.classic(),
            _ => Feedback::Accurate,
        }
    }

    /// What a client that has asked has, by the answer's flags.
    pub(crate) const fn agreed(self, answered: u8) -> Feedback {
        match (self.mode, answered) {
            (EcnMode::Off, _) | (_, 0 | MASK) => Feedback::None,
            (_, answered) if answered & SETUP == ECE => self.classic(),
            (EcnMode::On, _) => Feedback::None,
            (EcnMode::Accurate, _) => Feedback::Accurate,
        }
    }

    const fn classic(self) -> Feedback {
        match self.marking {
            Marking::OfHost => Feedback::Latched,
            Marking::Each => Feedback::Each,
            // RFC 9331 §4.3: without accurate feedback there is no ECT(1).
            Marking::L4s => Feedback::None,
        }
    }
}

/// The sending half's state.
#[derive(Clone, Debug)]
pub(crate) struct Marked {
    pub(crate) feedback: Feedback,
    /// The law is of L4S: its segments are ECT(1).
    pub(crate) is_l4s: bool,
    /// The ACE that was last heeded.
    ace: u8,
    /// A reduction is to be told with CWR: `TCP_ECN_QUEUE_CWR`.
    pub(crate) cwr_due: bool,
    /// Segments delivered with a mark, as far as ACKs tell: `tp->delivered_ce`.
    pub(crate) delivered: u32,
}

impl Default for Marked {
    fn default() -> Self {
        Self { feedback: Feedback::None, is_l4s: false, ace: FIRST, cwr_due: false, delivered: 0 }
    }
}

impl Marked {
    pub(crate) fn is_on(&self) -> bool {
        self.feedback != Feedback::None
    }

    /// Whether this ACK, which delivers so many segments, echoes a mark; and how many of them are marked.
    pub(crate) fn on_ack(&mut self, ack: &Segment, delivered: u32) -> (bool, u32) {
        let (is_echo, marked) = match self.feedback {
            // An ACK of nothing may be an old one.
            Feedback::Accurate if delivered == 0 => (false, 0),
            Feedback::Accurate => {
                let before = std::mem::replace(&mut self.ace, ack.ace);
                let more = u32::from(ack.ace.wrapping_sub(before) & MASK);
                (more > 0, more)
            }
            _ if ack.ace & ECE != 0 => (true, delivered),
            _ => (false, 0),
        };
        self.delivered = self.delivered.wrapping_add(marked);
        (is_echo, marked)
    }

    /// The field and the flags of a segment with new data.
    pub(crate) fn of_new(&mut self, payload_bytes: u32) -> (Ecn, u8) {
        if !self.is_on() || payload_bytes == 0 {
            return (self.of_other(), 0);
        }
        let is_told = std::mem::take(&mut self.cwr_due) && self.feedback != Feedback::Accurate;
        (self.capable(), if is_told { CWR } else { 0 })
    }

    /// The field of a segment without new data.
    pub(crate) fn of_other(&self) -> Ecn {
        if matches!(self.feedback, Feedback::Each | Feedback::Accurate) { self.capable() } else { Ecn::NotEct }
    }

    const fn capable(&self) -> Ecn {
        if self.is_l4s { Ecn::Ect1 } else { Ecn::Ect0 }
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
    /// Their marks are to be told at once.
    Marks,
}

/// The receiving half's state.
#[derive(Clone, Debug)]
pub(crate) struct Echo {
    pub(crate) feedback: Feedback,
    /// Segments that came with CE, modulo 8, and those since the last ACK: `received_ce`, `received_ce_pending`.
    marks: u8,
    unsaid: u8,
    /// ECE is set: `TCP_ECN_DEMAND_CWR`. With ACE: the last data were marked.
    demands: bool,
    /// Data with ECT have come: `TCP_ECN_SEEN`.
    has_seen: bool,
}

impl Default for Echo {
    fn default() -> Self {
        Self { feedback: Feedback::None, marks: FIRST, unsaid: 0, demands: false, has_seen: false }
    }
}

impl Echo {
    /// ACKs at once for so many segments after a first mark, as the sender's window may be small: Linux.
    pub(crate) const QUICK: u32 = 2;

    pub(crate) fn is_on(&self) -> bool {
        self.feedback != Feedback::None
    }

    /// The flags of a segment with an ACK.
    pub(crate) fn flags(&self) -> u8 {
        match self.feedback {
            Feedback::Accurate => self.marks,
            _ if self.demands => ECE,
            _ => 0,
        }
    }

    /// A segment with CE comes, of whatever kind.
    pub(crate) fn on_marked(&mut self) {
        self.marks = (self.marks + 1) & MASK;
        self.unsaid = self.unsaid.saturating_add(1);
    }

    /// An ACK is sent.
    pub(crate) fn on_ack_sent(&mut self) {
        self.unsaid = 0;
    }

    /// Data come, in order or not. Returns whether the sender has reduced its window, and is to hear an ACK at once.
    pub(crate) fn on_data(&mut self, segment: &Segment) -> bool {
        let is_told = segment.ace & CWR != 0 && self.feedback != Feedback::Accurate;
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
        if self.feedback == Feedback::Accurate {
            let before = std::mem::replace(&mut self.demands, is_marked);
            return if (is_marked && !before) || self.unsaid >= UNSAID { News::Marks } else { News::None };
        }
        // Linux: without ECT, though there was ECT before, it is a retransmission.
        let is_first = if is_marked { !self.demands } else { field == Ecn::NotEct && self.has_seen };
        self.demands |= is_marked;
        self.has_seen |= field != Ecn::NotEct;
        if is_first { News::First } else { News::None }
    }
}
