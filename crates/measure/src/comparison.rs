//! Runs beside each other: the arithmetic of `comparison.json`.

use crate::confidence::{Range, spread};
use crate::quantiles::mean;
use lasthop_scenario::{
    Build, Case, CaseResult, CaseSummary, Comparison, DatagramResult, DatagramSummary, DeliveryResult, DeliverySummary,
    HostsKind, RunResult, SCHEMA_VERSION, Scenario, Setting, Spread, Varied, Vary, VideoResult, VideoSummary,
};

/// A comparison of these cases. It is valid if all runs are.
pub fn comparison(
    scenario: &Scenario,
    hosts_kind: HostsKind,
    build: Build,
    varied: &[Vary],
    cases: Vec<CaseResult>,
) -> Comparison {
    let set = cases.iter().flat_map(|case| &case.settings).map(|setting| setting.key.as_str());
    let written = Some(scenario.written_for(set));
    let seeds = cases.first().map(|case| case.runs.iter().map(|run| run.seed).collect()).unwrap_or_default();
    Comparison {
        schema_version: SCHEMA_VERSION,
        scenario: scenario.to_json(),
        written,
        hosts_kind,
        build,
        varied: varied.iter().map(|vary| Varied { key: vary.key().to_owned(), values: vary.values() }).collect(),
        seeds,
        valid: cases.iter().all(|case| case.runs.iter().all(|run| run.valid)),
        cases,
    }
}

/// A case from its runs.
///
/// # Panics
/// If there are no runs.
pub fn case(case: &Case, runs: Vec<RunResult>) -> CaseResult {
    let settings = case.settings.iter().map(|(key, value)| Setting { key: key.clone(), value: value.clone() });
    CaseResult { label: case.label.clone(), settings: settings.collect(), summary: summary(&runs), runs }
}

/// The headline figures of these runs.
///
/// # Panics
/// If there are no runs.
pub fn summary(runs: &[RunResult]) -> CaseSummary {
    let of = |range, figure: &dyn Fn(&RunResult) -> Option<f64>| spread(runs.iter().filter_map(figure), range);
    let some = |figure: &dyn Fn(&RunResult) -> Option<f64>| of(Range::POSITIVE, figure);
    let all = |range, figure: &dyn Fn(&RunResult) -> f64| {
        of(range, &|run| Some(figure(run))).expect("a case has at least one run")
    };
    let each = |figure: &dyn Fn(&RunResult) -> f64| all(Range::POSITIVE, figure);
    CaseSummary {
        aggregate_goodput_mbps: each(&|run| run.aggregate_goodput_mbps),
        fairness_flows: some(&|run| Some(f64::from(run.fairness_flows))),
        jain_index: of(Range::SHARE, &|run| run.jain_index),
        starved_flows: each(&|run| f64::from(run.starved_flows)),
        rtt_min_ms: some(&|run| run.rtt_ms.map(|rtt| rtt.min)),
        rtt_mean_ms: some(&|run| run.rtt_ms.map(|rtt| rtt.mean)),
        rtt_p95_ms: some(&|run| run.rtt_ms.map(|rtt| rtt.p95)),
        rtt_per_ack_mean_ms: some(&|run| run.rtt_per_ack_ms.map(|rtt| rtt.mean)),
        rtt_per_ack_p95_ms: some(&|run| run.rtt_per_ack_ms.map(|rtt| rtt.p95)),
        downlink_drops: each(&|run| run.access.downlink_drops as f64),
        utilization: all(Range::SHARE, &|run| run.utilization),
        controlled_share: all(Range::SHARE, &controlled_share),
        messages: deliveries(runs.iter().filter_map(|run| run.messages)),
        transfers: deliveries(runs.iter().filter_map(|run| run.transfers)),
        pings: datagrams(runs.iter().filter_map(|run| run.pings)),
        datagrams: datagrams(runs.iter().filter_map(|run| run.datagrams)),
        videos: videos(runs.iter().filter_map(|run| run.videos)),
    }
}

/// A count, a time or a rate over the runs.
fn positive(figures: impl IntoIterator<Item = f64>) -> Option<Spread> {
    spread(figures, Range::POSITIVE)
}

/// The summary of one delivery result a run; `None` without any.
fn deliveries(runs: impl Iterator<Item = DeliveryResult> + Clone) -> Option<DeliverySummary> {
    Some(DeliverySummary {
        delivered: positive(runs.clone().map(|run| run.delivered as f64))?,
        undelivered: positive(runs.clone().map(|run| run.undelivered as f64))?,
        mean_ms: positive(runs.clone().filter_map(|run| run.took_ms).map(|took| took.mean)),
        p95_ms: positive(runs.filter_map(|run| run.took_ms).map(|took| took.p95)),
    })
}

/// The same of datagrams.
fn datagrams(runs: impl Iterator<Item = DatagramResult> + Clone) -> Option<DatagramSummary> {
    let took = runs.clone().filter_map(|run| run.one_way_ms.or(run.round_trip_ms));
    runs.clone().next().map(|_| DatagramSummary {
        lost_share: spread(runs.clone().filter_map(|run| run.lost_share), Range::SHARE),
        mean_ms: positive(took.clone().map(|took| took.mean)),
        p95_ms: positive(took.map(|took| took.p95)),
        jitter_ms: positive(runs.filter_map(|run| run.jitter_ms)),
    })
}

/// The same of videos.
fn videos(runs: impl Iterator<Item = VideoResult> + Clone) -> Option<VideoSummary> {
    Some(VideoSummary {
        mean_bit_rate_mbps: positive(runs.clone().filter_map(|run| run.mean_bit_rate_mbps)),
        stalls: positive(runs.clone().map(|run| run.stalls as f64))?,
        stalled_s: positive(runs.map(|run| run.stalled_s))?,
    })
}

/// Mean over the connections of the share of time under an upper limit, 0..=1; 0 without connections.
fn controlled_share(run: &RunResult) -> f64 {
    let shares: Vec<f64> = run.flows.iter().map(|flow| flow.controlled_share).collect();
    mean(&shares).unwrap_or(0.0)
}
