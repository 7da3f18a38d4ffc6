//! `[hosts.last_link]`: what a host knows of its own link, and tells the servers.
//!
//! What is *true* comes from the network's configuration ([`lasthop_network::Config::last_hop`]), as it is at each time after the
//! changes until then. What the host says of it may be biased, late, or made up.

use crate::keys::LastLinkKeys;
use crate::scenario::{HostSpec, Scenario};
use crate::traffic::FlowSpec;
use lasthop_keys::words;
use lasthop_laws::LinkReport;
use lasthop_network::{LastHop, NodeId};
use lasthop_units::{Probability, Rate, Span, Time};

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

words! {
    /// What a host knows of its own link.
    pub enum Knowledge {
        /// Bandwidth and error rate.
        Both = "both",
        /// The bandwidth alone.
        Bandwidth = "bandwidth",
        /// The error rate alone.
        ErrorRate = "error-rate",
        /// What its agent measures.
        Measured = "measured",
    }
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
    fn says(&self, truth: LastHop) -> LinkReport {
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

impl Scenario {
    /// What the host tells the server of this connection, from when on, by time; the first from the start of the run. Empty if it
    /// says nothing, or what is not known before the run.
    pub fn link_reports(&self, host: &HostSpec, flow: &FlowSpec) -> Vec<(Time, LinkReport)> {
        let Some(link) = host.kind.last_link.filter(|link| link.knowledge != Knowledge::Measured) else {
            return Vec::new();
        };
        let network = self.network();
        let mut changes: Vec<Time> = network.changes.iter().map(|change| change.at).collect();
        changes.sort_unstable();
        let truth = |at: Time| network.at(at).last_hop(NodeId(host.index), flow.server);
        let mut reports = vec![(Time::ZERO, link.says(truth(Time::ZERO)))];
        for at in changes {
            reports.push((at + link.delay, link.says(truth(at))));
        }
        // Changes of the beginning, of one moment, or of something else.
        let mut told: Vec<(Time, LinkReport)> = Vec::with_capacity(reports.len());
        for (at, report) in reports {
            if told.last().is_some_and(|(before, _)| *before == at) {
                told.pop();
            }
            if told.last().is_none_or(|(_, before)| *before != report) {
                told.push((at, report));
            }
        }
        told
    }
}
