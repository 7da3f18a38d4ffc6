//! The transport of a client's link reports: which segments carry them, and whether the server accepts them.
//!
//! ```text
//! client                                server
//!   SYN + report            ──────>       accepts it if its law is `lastlink` and `last_link` is on
//!   knows that it is heard  <──────       SYN-ACK + answer
//!   segments + report       ──────>       three in a row, after each change and after half the report's validity
//! ```
//!
//! Without an answer the client sends no further report. A repeated SYN carries none, because a middlebox may drop
//! segments with unknown options. Nor does a repeated SYN-ACK carry the answer, as in the kernel's BPF: the server then
//! has the first report, and gets no other. To a server that does not know the option, reports cost nothing after the
//! SYN.
//!
//! The option is that of [`lasthop_laws::option`], octet by octet, so that numbers are rounded as on the wire.
//!
//! *What it leaves out*: SYN cookies (with the answer that asks for another report), destinations remembered from one
//! connection to the next, middleboxes.

use crate::segment::Segment;
use lasthop_laws::LinkReport;
use lasthop_laws::option::{self, Flags, OCTETS};
use lasthop_units::Time;

/// Segments in a row that carry a new report: ACKs may be lost, and are not retransmitted.
const COPIES: u32 = 3;

/// The option as on the wire.
pub(crate) type LinkOption = [u8; OCTETS];

/// The client's state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reporter {
    /// The current report; `None`: none.
    report: Option<LinkReport>,
    /// The report last sent.
    said: Option<LinkReport>,
    /// The server has answered.
    is_heard: bool,
    /// The number of further segments that must carry the report.
    copies: u32,
    /// When the report is sent again.
    renew_at: Time,
}

impl Reporter {
    pub(crate) fn set(&mut self, report: Option<LinkReport>) {
        self.report = report;
        // Without an earlier report there is nothing to retract.
        let news = report.or(self.said.map(|_| LinkReport::RETRACTION));
        if self.said != news {
            self.copies = COPIES;
        }
    }

    /// The report to send now.
    fn say(&mut self, now: Time) -> Option<LinkReport> {
        self.said = self.report.or(self.said.map(|_| LinkReport::RETRACTION));
        self.renew_at = match self.report {
            Some(report) if !report.validity.is_zero() => now.saturating_add(report.validity / 2),
            _ => Time::MAX,
        };
        self.said
    }

    /// The report for the first SYN.
    pub(crate) fn for_syn(&mut self, now: Time) -> Option<LinkReport> {
        self.copies = 0;
        self.say(now)
    }

    /// The SYN-ACK has arrived; `answers`: with the server's answer.
    pub(crate) fn on_syn_ack(&mut self, answers: bool) {
        self.is_heard = answers;
    }

    /// The report for a segment with room for it.
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

/// The report in a client's segment.
pub(crate) fn report_in(segment: &Segment) -> Option<LinkReport> {
    let (report, flags) = option::parse(&segment.link?).ok()?;
    (!flags.answer).then_some(report)
}

/// Whether a server's segment carries the answer.
pub(crate) fn answers(segment: &Segment) -> bool {
    segment.link.is_some_and(|link| option::parse(&link).is_ok_and(|(_, flags)| flags.answer))
}

/// The option with a client's report.
pub(crate) fn report(report: &LinkReport) -> LinkOption {
    option::encode(report, Flags::default())
}

/// The option with a server's answer.
pub(crate) fn answer() -> LinkOption {
    option::encode(&LinkReport::RETRACTION, Flags { answer: true, resend: false })
}
