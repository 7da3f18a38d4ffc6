//! The last link of a client, its own, over which everything reaches it: what the client says of it, and what the law
//! `lastlink` ([`crate::law::LawName::Lastlink`]) made of that.
//!
//! ```
//! use control::last_link::LinkReport;
//! use control::law::{Choice, INFINITE_SSTHRESH, Law, LawName, Reported, Start, Window};
//! use units::{Probability, Rate, Span};
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

pub mod estimate;
pub mod option;

use crate::law::Reported;
use units::{Probability, Rate, Span};

/// What a client says of its last link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkReport {
    /// How fast it carries IP packets towards the client. `None`: unknown.
    pub bandwidth: Option<Rate>,
    /// Which part of the packets it loses by errors, for good: after its own retransmissions. `None`: unknown.
    pub error_rate: Option<Probability>,
    /// For how long this holds, from when it is said.
    pub validity: Span,
}

impl LinkReport {
    /// Nothing is known any more: what was said before does not hold.
    pub const RETRACTION: Self = Self { bandwidth: None, error_rate: None, validity: Span::ZERO };
}

impl From<LinkReport> for Reported {
    /// The numbers rounded down, but for what the arithmetic of floats has lost. A bandwidth below 1 kb/s is none.
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

/// What a law has heard of a client's last link, and made of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Applied {
    /// As last reported, whether or not it has expired. `None`: unknown.
    pub bandwidth: Option<Rate>,
    /// Likewise.
    pub error_rate: Option<Probability>,
    /// Cwnd_max at the latest ACK. `None`: no limit.
    pub cwnd_max_segments: Option<u32>,
    /// What the window was set to at the beginning. `None`: what the stack begins with.
    pub initial_segments: Option<u32>,
    /// Loss events that did not reduce the window.
    pub ignored_losses: u32,
    /// Loss events that did. Timeouts are only judged, and counted, with the parameter `timeouts_too`.
    pub heeded_losses: u32,
}

/// `struct lasthop_applied` of law_shim.c.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct RawApplied {
    reports: u32,
    bandwidth_kbps: u32,
    error_ppm: u32,
    cwnd_max_segments: u32,
    initial_segments: u32,
    ignored: u32,
    heeded: u32,
}

impl From<RawApplied> for Option<Applied> {
    fn from(raw: RawApplied) -> Self {
        let some = |number: u32| Some(number).filter(|number| *number > 0);
        (raw.reports > 0).then(|| Applied {
            bandwidth: some(raw.bandwidth_kbps).map(|kbps| Rate::from_bps(u64::from(kbps) * 1000)),
            error_rate: Probability::new(f64::from(raw.error_ppm) / 1e6).ok(),
            cwnd_max_segments: some(raw.cwnd_max_segments),
            initial_segments: some(raw.initial_segments),
            ignored_losses: raw.ignored,
            heeded_losses: raw.heeded,
        })
    }
}
