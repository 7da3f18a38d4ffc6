//! `[hosts.last_link]`: what a host knows of its own link, and tells the servers.
//!
//! What is *true* comes from the network's configuration ([`lasthop_network::Config::last_hop`]), as it is at each time after the
//! changes until then. What the host says of it may be biased, late, or made up.

use crate::keys::{Knowledge, LastLinkKeys};
use lasthop_laws::LinkReport;
use lasthop_network::LastHop;
use lasthop_units::{Probability, Rate, Span};

/// What a host tells servers of its own link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LastLink {
    /// What it knows.
    pub knowledge: Knowledge,
    /// What it says instead of what is true, before the factor.
    pub bandwidth: Option<Rate>,
    /// Likewise.
    pub error_rate: Option<Probability>,
    /// It says so many times the bandwidth.
    pub bandwidth_factor: f64,
    /// It says so many times the error rate, 1 at most.
    pub error_factor: f64,
    /// It says what was true so long ago.
    pub delay: Span,
    /// For how long a report holds.
    pub validity: Span,
}

impl LastLink {
    /// What the keys of a host say; `None` if it says nothing.
    pub(crate) fn of(keys: &LastLinkKeys) -> Option<Self> {
        keys.report.then_some(Self {
            knowledge: keys.knowledge,
            bandwidth: keys.bandwidth_mbps,
            error_rate: keys.packet_error_rate,
            bandwidth_factor: keys.bandwidth_factor,
            error_factor: keys.error_factor,
            delay: keys.delay_s,
            validity: Span::from_secs(keys.validity_s),
        })
    }

    /// What it says when this is true.
    pub(crate) fn says(&self, truth: LastHop) -> LinkReport {
        let bandwidth = self.bandwidth.unwrap_or(truth.bandwidth).as_bps() as f64 * self.bandwidth_factor;
        let error_rate = self.error_rate.unwrap_or(truth.loss).get() * self.error_factor;
        let knows = |what: Knowledge| [what, Knowledge::Both].contains(&self.knowledge);
        LinkReport {
            bandwidth: Some(Rate::from_bps(bandwidth as u64))
                .filter(|rate| knows(Knowledge::Bandwidth) && *rate > Rate::ZERO),
            error_rate: Probability::new(error_rate.min(1.0)).ok().filter(|_| knows(Knowledge::ErrorRate)),
            validity: self.validity,
        }
    }
}
