//! What the law `lastlink` has made of a report.

use units::{Probability, Rate};

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
