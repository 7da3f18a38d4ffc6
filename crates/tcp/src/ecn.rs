//! Explicit congestion notification: RFC 3168, as Linux has it.
//!
//! ```text
//! SYN       ECE and CWR: I can       SYN-ACK  ECE: so can I       not on a repeated SYN (§6.1.1.1)
//! sender    ECT(0) on new data, neither on retransmissions nor on pure ACKs                    §6.1.4, §6.1.5
//! receiver  a CE mark: ECE on each ACK, until data come with CWR; at once for the next two     §6.1.3
//! sender    an ECE: a reduction as for a loss, once in a window (state CWR)                    §6.1.2
//!           CWR on the first new data after any reduction
//! ```
//!
//! *What it leaves out*: ECT on SYN, ACKs and retransmissions (RFC 8311), a timer for a window of one segment (§6.1.2).
//!
//! References: Linux 6.12, net/ipv4/tcp_input.c (`__tcp_ecn_check_ce`, `tcp_ecn_accept_cwr`, `tcp_try_to_open`), tcp_output.c
//! (`tcp_ecn_send`).

use crate::segment::Segment;
use lasthop_units::Ecn;

/// The flag ECE of a segment's [`Segment::ace`].
pub(crate) const ECE: u8 = 1;
/// The flag CWR.
pub(crate) const CWR: u8 = 2;
/// What a SYN says that asks for ECN.
pub(crate) const SETUP: u8 = ECE | CWR;

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

    /// The flags of a client's SYN; of a repeated one none, for a middlebox may have dropped it for them.
    pub(crate) const fn asks(self, is_repeated: bool) -> u8 {
        if matches!(self, Self::On) && !is_repeated { SETUP } else { 0 }
    }

    /// The flags of the answer to a SYN with these.
    pub(crate) const fn answers(self, asked: u8) -> u8 {
        if matches!(self, Self::On) && asked == SETUP { ECE } else { 0 }
    }

    /// Whether a client that has asked has ECN, by the answer's flags.
    pub(crate) const fn is_agreed(self, answered: u8) -> bool {
        matches!(self, Self::On) && answered & SETUP == ECE
    }
}

/// The sending half's state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Marked {
    /// Both ends have ECN.
    pub(crate) agreed: bool,
    /// A reduction is to be told with CWR: `TCP_ECN_QUEUE_CWR`.
    pub(crate) cwr_due: bool,
    /// Segments delivered by ACKs with an echo: `tp->delivered_ce`.
    pub(crate) delivered: u32,
}

impl Marked {
    /// Whether this ACK echoes a mark.
    pub(crate) fn is_echo(&self, ack: &Segment) -> bool {
        self.agreed && ack.ace & ECE != 0
    }

    /// The field and the flags of a segment with new data.
    pub(crate) fn of_new(&mut self, payload_bytes: u32) -> (Ecn, u8) {
        if !self.agreed || payload_bytes == 0 {
            return (Ecn::NotEct, 0);
        }
        (Ecn::Ect0, if std::mem::take(&mut self.cwr_due) { CWR } else { 0 })
    }
}

/// The receiving half's state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Echo {
    /// Both ends have ECN.
    pub(crate) agreed: bool,
    /// ECE is set until CWR comes: `TCP_ECN_DEMAND_CWR`.
    demands: bool,
    /// Data with ECT have come: `TCP_ECN_SEEN`.
    has_seen: bool,
}

impl Echo {
    /// ACKs at once for so many segments after a first mark, as the sender's window may be small: Linux.
    pub(crate) const QUICK: u32 = 2;

    /// The flags of a segment with an ACK.
    pub(crate) fn flags(&self) -> u8 {
        if self.demands { ECE } else { 0 }
    }

    /// Data come, in order or not. Returns whether the sender has reduced its window, and is to hear an ACK at once.
    pub(crate) fn on_data(&mut self, segment: &Segment) -> bool {
        let is_told = self.agreed && segment.ace & CWR != 0;
        self.demands &= !is_told;
        is_told && segment.payload_bytes > 0
    }

    /// The data are new. Returns whether the next two segments are acknowledged at once.
    pub(crate) fn on_new(&mut self, field: Ecn) -> bool {
        if !self.agreed {
            return false;
        }
        match field {
            // Linux: without ECT, though there was ECT before, it is a retransmission.
            Ecn::NotEct => self.has_seen,
            Ecn::Ce => {
                self.has_seen = true;
                !std::mem::replace(&mut self.demands, true)
            }
            Ecn::Ect0 | Ecn::Ect1 => {
                self.has_seen = true;
                false
            }
        }
    }
}
