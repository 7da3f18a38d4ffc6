//! The results of several runs beside each other: `comparison.json`.

use crate::result::{Build, HostsKind, RunResult};
use crate::result_file::ResultFile;
use serde::{Deserialize, Serialize};

/// Several runs that differ in what was varied.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// [`crate::SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The scenario without what is varied: [`crate::Scenario::to_json`].
    pub scenario: serde_json::Value,
    /// Which habitat the runs ran in.
    pub hosts_kind: HostsKind,
    /// Which build of lasthop wrote this.
    #[serde(flatten)]
    pub build: Build,
    /// What was varied; the last changes fastest.
    pub varied: Vec<Varied>,
    /// The seeds that each case ran with.
    pub seeds: Vec<u64>,
    /// The cases, in the order of their labels' values.
    pub cases: Vec<CaseResult>,
    /// Whether every run is valid.
    pub valid: bool,
}

/// One key that was varied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Varied {
    /// Dotted, as typed.
    pub key: String,
    /// As typed.
    pub values: Vec<String>,
}

/// One case: all runs that differ in the seed only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CaseResult {
    /// Short and unique: `policy=none, rtt_ms=4`.
    pub label: String,
    /// Each varied key with its value here.
    pub settings: Vec<Setting>,
    /// Means over the runs, with the least and the greatest.
    pub summary: CaseSummary,
    /// One for each seed, whole.
    pub runs: Vec<RunResult>,
}

/// One varied key with its value in a case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// Dotted, as typed.
    pub key: String,
    /// As typed.
    pub value: String,
}

/// The headline figures of a case, over its runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CaseSummary {
    /// Sum over all connections.
    pub aggregate_goodput_mbps: Spread,
    /// Connections that Jain's index and `starved_flows` are of; `None` in files that do not have it, which counted all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fairness_flows: Option<Spread>,
    /// Jain's index; `None` where no run has one.
    pub jain_index: Option<Spread>,
    /// Connections under 5 % of their fair share.
    pub starved_flows: Spread,
    /// The least RTT of each run; `None` where none was measured.
    pub rtt_min_ms: Option<Spread>,
    /// The mean RTT of each run.
    pub rtt_mean_ms: Option<Spread>,
    /// The 95 % quantile of the RTT of each run.
    pub rtt_p95_ms: Option<Spread>,
    /// Packets dropped at the access point's downlink queue.
    pub downlink_drops: Spread,
    /// Share of the time in which the medium was occupied.
    pub utilization: Spread,
    /// Share of the time in which an upper limit was in force.
    pub controlled_share: Spread,
    /// The messages of interactive connections; `None` where the scenario has none of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<DeliverySummary>,
    /// Transfers; `None` where the scenario has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfers: Option<DeliverySummary>,
}

/// What became of messages, or of transfers, over the runs of a case: [`crate::DeliveryResult`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeliverySummary {
    /// Read to their end after the warm-up.
    pub delivered: Spread,
    /// Never read to their end.
    pub undelivered: Spread,
    /// The mean time that they took in each run; `None` where no run has any.
    pub mean_ms: Option<Spread>,
    /// The 95 % quantile of that time in each run.
    pub p95_ms: Option<Spread>,
}

/// A figure over the runs of a case.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
}

impl ResultFile for Comparison {}

impl Comparison {
    /// What the scenario shows, in one line.
    pub fn name(&self) -> &str {
        self.scenario["name"].as_str().unwrap_or("unnamed")
    }
}
