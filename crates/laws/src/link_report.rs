//! A client's report of its last link, which carries all its traffic, and the state of the law `lastlink`
//! ([`crate::LawName::Lastlink`]).
//!
//! ```
//! use lasthop_laws::{LinkReport, Choice, INFINITE_SSTHRESH, Law, LawName, Reported, Start, Window};
//! use lasthop_units::{Probability, Rate, Span};
//!
//! // [wu] §3.2 for a link of 7 Mb/s, an RTT of 100 ms and segments of 1000 bytes: 7e6 * 0.1 / (8 * 1000) = 87.5
//! let report = LinkReport {
//!     bandwidth: Some(Rate::from_mbps(7.0)),
//!     error_rate: Probability::new(0.005).ok(),
//!     validity: Span::from_secs(64),
//! };
//! let mut choice = Choice::from(LawName::Lastlink);
//! choice.parameters.set(LawName::Lastlink, "initial_max_segments", 0.0).expect("without a limit");
//! let mut law = Law::new(choice, Start::default());
//! let mut window = Window { cwnd_segments: 10, cwnd_count: 0, ssthresh_segments: INFINITE_SSTHRESH };
//! let event = Reported { segment_bytes: 1000, rtt_us: 100_000, permitted: Reported::PERMIT_ALL, ..report.into() };
//! law.on_reported(&event, &mut window);
//! assert_eq!((window.cwnd_segments, window.ssthresh_segments), (87, 87));
//! ```

use crate::c;
pub use crate::c::lh_report as Reported;
use lasthop_units::{Probability, Rate, Span};
use serde::{Deserialize, Serialize};

/// A client's report of its last link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkReport {
    /// Bandwidth of IP packets towards the client. `None`: unknown.
    pub bandwidth: Option<Rate>,
    /// The share of packets lost for good by errors, after the link's own retransmissions. `None`: unknown.
    pub error_rate: Option<Probability>,
    /// Validity, from the time of sending.
    pub validity: Span,
}

/// What a client's reporter has counted. The field names are keys of an agent's record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportCounters {
    /// SYNs with the option.
    pub offered: u64,
    /// Connections whose server knows the option.
    pub answered: u64,
    /// Connections whose server does not, or whose option or answer was removed by a middlebox.
    pub unanswered: u64,
    /// Of those, connections whose SYN-ACK had the option in a form that no server sends.
    pub mangled: u64,
    /// Of those answered, connections whose server asked for the report again because it sent a SYN cookie.
    pub asked_again: u64,
    /// Segments with the option after the handshake.
    pub sent: u64,
    /// SYNs without room for the option, plus delays of a report for lack of room in a segment.
    pub no_room: u64,
    /// SYNs lost with the option and resent without.
    pub sent_again: u64,
    /// Connections without the option, because SYNs with it to their destination were lost.
    pub avoided: u64,
    /// Connections without it for lack of kernel memory.
    pub failed: u64,
}

impl std::ops::AddAssign for ReportCounters {
    fn add_assign(&mut self, more: Self) {
        let Self { offered, answered, unanswered, mangled, asked_again, sent, no_room, sent_again, avoided, failed } =
            more;
        self.offered += offered;
        self.answered += answered;
        self.unanswered += unanswered;
        self.mangled += mangled;
        self.asked_again += asked_again;
        self.sent += sent;
        self.no_room += no_room;
        self.sent_again += sent_again;
        self.avoided += avoided;
        self.failed += failed;
    }
}

impl LinkReport {
    /// A retraction: earlier reports no longer hold.
    pub const RETRACTION: Self = Self { bandwidth: None, error_rate: None, validity: Span::ZERO };
}

impl Reported {
    /// No error rate is reported.
    pub const ERROR_UNKNOWN: u32 = c::LH_ERROR_UNKNOWN;
    /// The server permits Max Cwnd Tuning.
    pub const PERMIT_MAX: u32 = c::LH_PERMIT_MAX;
    /// The server permits Initial Cwnd & SSThresh Tuning. Must be clear if lost handshake segments make the window
    /// begin with one segment (RFC 5681 §3.1).
    pub const PERMIT_INITIAL: u32 = c::LH_PERMIT_INITIAL;
    /// The server permits the packet error rate heuristic.
    pub const PERMIT_ERRORS: u32 = c::LH_PERMIT_ERRORS;
    /// All three.
    pub const PERMIT_ALL: u32 = c::LH_PERMIT_ALL;
}

impl Default for Reported {
    /// Nothing is reported.
    fn default() -> Self {
        Self {
            now_us: 0,
            bandwidth_kbps: 0,
            error_ppm: Self::ERROR_UNKNOWN,
            valid_s: 0,
            segment_bytes: 0,
            rtt_us: 0,
            segments_sent: 0,
            permitted: 0,
            reserved: 0,
        }
    }
}

impl From<LinkReport> for Reported {
    /// The numbers rounded down, with allowance for floating-point loss. A bandwidth below 1 kb/s is unknown.
    fn from(report: LinkReport) -> Self {
        let kbps = report.bandwidth.map_or(0, |rate| rate.as_bps() / 1000);
        Self {
            bandwidth_kbps: u32::try_from(kbps).unwrap_or(u32::MAX),
            error_ppm: report.error_rate.map_or(Self::ERROR_UNKNOWN, |rate| (rate.get() * 1e6 + 1e-6) as u32),
            valid_s: u32::try_from(report.validity.as_nanos() / 1_000_000_000).unwrap_or(u32::MAX),
            ..Self::default()
        }
    }
}
