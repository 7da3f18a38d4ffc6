//! The results of several runs, compared: `comparison.json`.

use crate::result::{Build, HostsKind, RunResult};
use crate::result_file::ResultFile;
use serde::{Deserialize, Serialize};

/// Several runs with varied keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// [`crate::SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The scenario without the varied keys: [`crate::Scenario::to_json`].
    pub scenario: serde_json::Value,
    /// The keys that its file and the overrides set, from which the cases are made: [`crate::Scenario::written_for`]. `None` in files
    /// without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<serde_json::Value>,
    /// The habitat of the runs.
    pub hosts_kind: HostsKind,
    /// The build of lasthop that wrote this.
    #[serde(flatten)]
    pub build: Build,
    /// The varied keys; the last changes fastest.
    pub varied: Vec<Varied>,
    /// The seeds of each case.
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
    /// Its figures over the runs.
    pub summary: CaseSummary,
    /// One complete result per seed.
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
    /// Connections covered by Jain's index and `starved_flows`; `None` in files without it, which counted all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fairness_flows: Option<Spread>,
    /// Jain's index; `None` if no run has one.
    pub jain_index: Option<Spread>,
    /// Connections under 5 % of their fair share.
    pub starved_flows: Spread,
    /// The least of each run's `rtt_ms`, which is smoothed and sampled; `None` if none was measured.
    pub rtt_min_ms: Option<Spread>,
    /// The mean of it.
    pub rtt_mean_ms: Option<Spread>,
    /// The 95 % quantile of it.
    pub rtt_p95_ms: Option<Spread>,
    /// The mean of each run's `rtt_per_ack_ms`; `None` if it was not measured, as on kernel hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_per_ack_mean_ms: Option<Spread>,
    /// The 95 % quantile of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_per_ack_p95_ms: Option<Spread>,
    /// Packets dropped at the access point's downlink queue.
    pub downlink_drops: Spread,
    /// Share of the time in which the medium was occupied.
    pub utilization: Spread,
    /// Share of the time in which an upper limit was in force.
    pub controlled_share: Spread,
    /// The messages of interactive connections; `None` if the scenario has none of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<DeliverySummary>,
    /// Transfers; `None` if the scenario has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfers: Option<DeliverySummary>,
    /// Pings; `None` if the scenario has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pings: Option<DatagramSummary>,
    /// Datagrams at a constant rate; `None` if the scenario has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datagrams: Option<DatagramSummary>,
    /// Videos; `None` if the scenario has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub videos: Option<VideoSummary>,
}

/// The outcome of messages, or of transfers, over the runs of a case: [`crate::DeliveryResult`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeliverySummary {
    /// Completely read after the warm-up.
    pub delivered: Spread,
    /// Never completely read.
    pub undelivered: Spread,
    /// The mean delivery time in each run; `None` if no run has any.
    pub mean_ms: Option<Spread>,
    /// The 95 % quantile of the delivery time in each run.
    pub p95_ms: Option<Spread>,
}

/// The outcome of datagrams over the runs of a case: [`crate::DatagramResult`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DatagramSummary {
    /// The share of them that was lost.
    pub lost_share: Option<Spread>,
    /// The mean time that they took in each run, one way or as a round trip; `None` if no run has any.
    pub mean_ms: Option<Spread>,
    /// The 95 % quantile of it in each run.
    pub p95_ms: Option<Spread>,
    /// The jitter in each run.
    pub jitter_ms: Option<Spread>,
}

/// The outcome of videos over the runs of a case: [`crate::VideoResult`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VideoSummary {
    /// The mean bit rate in each run; `None` if no run has any.
    pub mean_bit_rate_mbps: Option<Spread>,
    /// How often players had nothing to play.
    pub stalls: Spread,
    /// For how long in all.
    pub stalled_s: Spread,
}

/// A figure over the runs of a case: `lasthop_measure::spread`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
    /// The number of runs that have the figure, each with its own seed; 0 in files without it.
    #[serde(default)]
    pub seeds: u32,
    /// The sample standard deviation over these runs, with n − 1; `None` of one run, and in files without it.
    #[serde(default)]
    pub deviation: Option<f64>,
    /// The 95 % confidence interval of the mean; `None` of one run, and in files without it.
    #[serde(default)]
    pub ci95: Option<Interval>,
}

/// A 95 % confidence interval, within the range of its quantity: `lasthop_measure::interval`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl ResultFile for Comparison {}

impl Comparison {
    /// The scenario of which the cases can be run again, as a file; `None` if the comparison does not have it.
    pub fn to_toml(&self) -> Option<String> {
        let table = toml::Table::deserialize(self.written.as_ref()?).ok()?;
        toml::to_string(&table).ok()
    }

    /// The scenario's purpose, in one line.
    pub fn name(&self) -> &str {
        self.scenario["name"].as_str().unwrap_or("unnamed")
    }
}
