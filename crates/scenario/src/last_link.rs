//! `[hosts.last_link]`: what a host knows of its own link, and tells the servers.
//!
//! What is *true* comes from the network's configuration ([`lasthop_network::Config::last_hop`]), as it is at each time after the
//! changes until then. What the host says of it may be biased, late, or made up.

use crate::scenario::{HostSpec, Scenario, float, integer, word};
use crate::traffic::FlowSpec;
use lasthop_laws::LinkReport;
use lasthop_network::{LastHop, NodeId};
use lasthop_units::{Probability, Rate, Span, Time};
use serde::Deserialize;
use toml::{Table, Value};

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

/// What a host knows of its own link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Knowledge {
    /// Bandwidth and error rate.
    Both,
    /// The bandwidth alone.
    Bandwidth,
    /// The error rate alone.
    ErrorRate,
    /// What its agent measures.
    Measured,
}

impl LastLink {
    /// That of a checked host; `None` if it says nothing.
    pub(crate) fn read(host: &Table) -> Option<Self> {
        let table = host.get("last_link")?.as_table().filter(|table| table["report"] == Value::Boolean(true))?;
        let number = |key: &str| table.get(key).and_then(Value::as_float);
        Some(Self {
            knowledge: word(table, "knowledge"),
            bandwidth: number("bandwidth_mbps").map(Rate::from_mbps),
            error_rate: number("packet_error_rate")
                .map(|rate| Probability::new(rate).expect("a checked probability is in 0..=1")),
            bandwidth_factor: float(table, "bandwidth_factor"),
            error_factor: float(table, "error_factor"),
            delay: Span::from_secs_f64(float(table, "delay_s")),
            validity: Span::from_secs(integer(table, "validity_s").unsigned_abs()),
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
