//! The client's word about its last link, on its way: when it goes with a segment, and whether the other side listens.
//!
//! ```text
//! client                                server
//!   SYN + report            ──────>       its law is `lastlink` and it hears: keeps the report
//!   knows that it is heard  <──────       SYN-ACK + answer
//!   segments + report       ──────>       three in a row, when the report changes and when half its validity is over
//! ```
//!
//! Without an answer the client says nothing more. A SYN that goes again goes without, as what stands in the way may drop what it
//! does not know, and so does a SYN-ACK, as the kernel's: the server then has the first report, and hears no other. The answer alone costs a server that does not know the option nothing.
//!
//! The option is [`lasthop_laws::option`]'s, octet for octet, so that numbers are rounded as on the wire.
//!
//! *What it leaves out*: SYN cookies (the answer that asks to be told again), destinations remembered from one connection
//! to the next, middleboxes.

use crate::segment::Segment;
use lasthop_laws::LinkReport;
use lasthop_laws::option::{self, Flags, OCTETS};
use lasthop_units::Time;

/// Segments in a row that carry a new report: an ACK may be lost, and is not repeated.
const COPIES: u32 = 3;

/// The option as it is on the wire.
pub(crate) type LinkOption = [u8; OCTETS];

/// The client's side.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reporter {
    /// What is to be known; `None`: nothing.
    report: Option<LinkReport>,
    /// What was last said.
    said: Option<LinkReport>,
    /// The server hears.
    is_heard: bool,
    /// Segments that are still to carry the report.
    copies: u32,
    /// When it goes again.
    renew_at: Time,
}

impl Reporter {
    pub(crate) fn set(&mut self, report: Option<LinkReport>) {
        self.report = report;
        // What was never said needs no retraction.
        let news = report.or(self.said.map(|_| LinkReport::RETRACTION));
        if self.said != news {
            self.copies = COPIES;
        }
    }

    /// What to say now.
    fn say(&mut self, now: Time) -> Option<LinkReport> {
        self.said = self.report.or(self.said.map(|_| LinkReport::RETRACTION));
        self.renew_at = match self.report {
            Some(report) if !report.validity.is_zero() => now.saturating_add(report.validity / 2),
            _ => Time::MAX,
        };
        self.said
    }

    /// For the first SYN.
    pub(crate) fn for_syn(&mut self, now: Time) -> Option<LinkReport> {
        self.copies = 0;
        self.say(now)
    }

    /// The SYN-ACK has come.
    pub(crate) fn on_syn_ack(&mut self, answers: bool) {
        self.is_heard = answers;
    }

    /// For a segment with room.
    pub(crate) fn for_segment(&mut self, now: Time) -> Option<LinkReport> {
        if self.copies == 0 && now >= self.renew_at {
            self.copies = COPIES;
        }
        if !self.is_heard || self.copies == 0 {
            return None;
        }
        self.copies -= 1;
        self.say(now)
    }
}

/// What a client says in this segment.
pub(crate) fn report_in(segment: &Segment) -> Option<LinkReport> {
    let (report, flags) = option::parse(&segment.link?).ok()?;
    (!flags.answer).then_some(report)
}

/// Whether a server answers in this segment that it hears.
pub(crate) fn answers(segment: &Segment) -> bool {
    segment.link.is_some_and(|link| option::parse(&link).is_ok_and(|(_, flags)| flags.answer))
}

/// A client's report.
pub(crate) fn report(report: &LinkReport) -> LinkOption {
    option::encode(report, Flags::default())
}

/// A server's answer.
pub(crate) fn answer() -> LinkOption {
    option::encode(&LinkReport::RETRACTION, Flags { answer: true, resend: false })
}
