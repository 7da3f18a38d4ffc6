//! `[hosts.last_link]`: a host's knowledge of its own link, and its report to the servers.
//!
//! The *true* state comes from the network's configuration ([`lasthop_network::Config::last_hop`]), at each time with
//! the changes until then. The host's report may be biased, late, or made up.

use crate::keys::{Knowledge, LastLinkKeys};
use lasthop_laws::LinkReport;
use lasthop_network::LastHop;
use lasthop_units::{Probability, Rate, Span};

/// A host's report of its own link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LastLink {
    /// The quantities that it knows.
    pub knowledge: Knowledge,
    /// The bandwidth reported instead of the true one, before the factor.
    pub bandwidth: Option<Rate>,
    /// The error rate reported instead of the true one, before the factor.
    pub error_rate: Option<Probability>,
    /// Factor on the reported bandwidth.
    pub bandwidth_factor: f64,
    /// Factor on the reported error rate, which is at most 1.
    pub error_factor: f64,
    /// Age of the reported state.
    pub delay: Span,
    /// Validity of a report.
    pub validity: Span,
}

impl LastLink {
    /// From a host's keys; `None` if it reports nothing.
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

    /// The report for this true state.
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
