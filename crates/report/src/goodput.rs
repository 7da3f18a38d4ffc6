//! The goodput of a flow over time, from the rows of its series.
//!
//! A row tells what came since the one before, and there is none while no connection is open: then nothing comes. What a row tells of a
//! longer time came while transfers were under way, as far as they are known, and else in the last sampling interval before it.
//!
//! *What it leaves out*: what came behind the last row of a flow without transfers, at most a sampling interval's.

use lasthop_scenario::{FlowResult, RunResult, Series, TransferSample, Transport};

/// In seconds: more than the error of a time, and less than matters.
const HARDLY_S: f64 = 1e-7;
/// Samples that are further apart than so many intervals have others missing between them. Those of kernel hosts may be late.
pub(crate) const MISSING: f64 = 1.5;
/// The default of `sample_ms`.
const SAMPLE_S: f64 = 0.05;

/// The seconds from one sample of an open connection to the next.
pub(crate) fn sample_s(run: &RunResult) -> f64 {
    run.scenario["sample_ms"].as_f64().map_or(SAMPLE_S, |ms| ms / 1e3)
}

/// What came of a flow in a time, evenly.
#[derive(Clone, Copy)]
struct Part {
    from_s: f64,
    until_s: f64,
    megabits: f64,
}

impl Part {
    /// The seconds that it has of this time.
    fn shared_s(&self, from_s: f64, until_s: f64) -> f64 {
        self.until_s.min(until_s) - self.from_s.max(from_s)
    }

    /// What came of it in this time.
    fn within(&self, from_s: f64, until_s: f64) -> f64 {
        let shared_s = self.shared_s(from_s, until_s);
        if shared_s > HARDLY_S { self.megabits * shared_s / (self.until_s - self.from_s) } else { 0.0 }
    }
}

/// What came of a flow, and when.
struct Deliveries(Vec<Part>);

impl Deliveries {
    fn of(run: &RunResult, series: &Series, flow: &FlowResult) -> Self {
        let sample_s = sample_s(run);
        let of_flow = series.transfers.rows().filter(|row| row.flow == flow.id);
        let transfer = |row: TransferSample| {
            let until_s = row.completion_s.map_or(run.duration_s, |took_s| row.start_s + took_s);
            Part { from_s: row.start_s, until_s, megabits: row.bytes as f64 * 8.0 / 1e6 }
        };
        let transfers: Vec<Part> = of_flow.map(transfer).collect();
        let mut parts = Vec::new();
        let (mut before_s, mut first) = (flow.started_s, 0);
        for row in series.flows.of_flow(flow.id) {
            let since_s = std::mem::replace(&mut before_s, row.t_s);
            let passed_s = row.t_s - since_s;
            if passed_s <= HARDLY_S {
                continue;
            }
            while transfers.get(first).is_some_and(|transfer| transfer.until_s <= since_s) {
                first += 1;
            }
            let megabits = row.goodput_mbps * passed_s;
            let has_gap = passed_s > MISSING * sample_s;
            let known = if has_gap { cut(&transfers[first..], since_s, row.t_s) } else { Vec::new() };
            let in_all: f64 = known.iter().map(|part| part.megabits).sum();
            if in_all > 0.0 {
                parts.extend(known.iter().map(|part| Part { megabits: megabits * part.megabits / in_all, ..*part }));
            } else {
                parts.push(Part { from_s: since_s.max(row.t_s - sample_s), until_s: row.t_s, megabits });
            }
        }
        // No row tells of the end of the last transfer.
        let mut last = cut(&transfers[first..], before_s, run.duration_s);
        last.retain(|part| part.until_s < run.duration_s);
        parts.extend(last);
        Self(parts)
    }

    /// The megabits that came between each of these moments and the next, which ascend.
    fn between(&self, moments: &[f64]) -> Vec<f64> {
        let mut sums = vec![0.0; moments.len().saturating_sub(1)];
        for part in &self.0 {
            let first = moments.partition_point(|at| *at <= part.from_s).saturating_sub(1);
            for (sum, ends) in sums[first..].iter_mut().zip(moments[first..].windows(2)) {
                if ends[0] >= part.until_s {
                    break;
                }
                *sum += part.within(ends[0], ends[1]);
            }
        }
        sums
    }
}

/// What there is in this time of parts that ascend by their begin.
fn cut(parts: &[Part], from_s: f64, until_s: f64) -> Vec<Part> {
    let begun = &parts[..parts.partition_point(|part| part.from_s < until_s)];
    let cut = |part: &Part| Part {
        from_s: part.from_s.max(from_s),
        until_s: part.until_s.min(until_s),
        megabits: part.within(from_s, until_s),
    };
    begun.iter().filter(|part| part.shared_s(from_s, until_s) > HARDLY_S).map(cut).collect()
}

/// The megabits of a flow that came between each of these moments and the next, which ascend.
#[cfg(unix)]
pub(crate) fn between(run: &RunResult, series: &Series, flow: &FlowResult, moments: &[f64]) -> Vec<f64> {
    Deliveries::of(run, series, flow).between(moments)
}

/// The goodput of a flow in Mb/s, means over steps from its start to the end of the run, each at the middle of its step. Those without a
/// connection are 0. Empty if no series of it were kept.
pub(crate) fn means(run: &RunResult, series: &Series, flow: &FlowResult, step_s: f64) -> Vec<(f64, f64)> {
    let has_rows = series.flows.flow.contains(&flow.id);
    let never_opened = !series.flows.is_empty() && flow.transport() != Transport::Udp && flow.goodput_mbps == 0.0;
    if !has_rows && !never_opened {
        return Vec::new();
    }
    let first = (flow.started_s / step_s + HARDLY_S).floor() as usize;
    let steps = (run.duration_s / step_s - HARDLY_S).ceil() as usize;
    let moments: Vec<f64> = (first..=steps).map(|step| step as f64 * step_s).collect();
    let came = Deliveries::of(run, series, flow).between(&moments);
    let mean = |(ends, megabits): (&[f64], f64)| {
        let lived_s = ends[1].min(run.duration_s) - ends[0].max(flow.started_s);
        ((ends[0] + ends[1]) / 2.0, megabits / lived_s)
    };
    moments.windows(2).zip(came).map(mean).collect()
}

/// The goodput of each flow of a run over time, in their order: means over so many seconds from its start to the end of the run, each with
/// the middle of its seconds, in Mb/s. Seconds without a connection are 0. Empty of a flow of which no series were kept.
pub fn goodput_over_time(run: &RunResult, series: &Series, step_s: f64) -> Vec<Vec<(f64, f64)>> {
    run.flows.iter().map(|flow| means(run, series, flow, step_s)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_scenario::{FlowSample, TransferSeries};
    use serde_json::json;

    /// A run of 10 s with a sample each 100 ms, of one flow with these rows: seconds, and Mb/s since the one before.
    fn run(started_s: f64, rows: &[(f64, f64)]) -> (RunResult, Series) {
        let scenario = lasthop_scenario::Scenario::from_toml("s.toml", "[[hosts]]\n[[hosts.flows]]\n", &[]);
        let build = lasthop_scenario::Build { version: "0.1.0".into(), commit: None, dirty: false };
        let mut run =
            lasthop_measure::begun(&scenario.expect("a scenario"), build, lasthop_scenario::HostsKind::Simulated)
                .expect("a run");
        (run.duration_s, run.warmup_s, run.scenario["sample_ms"]) = (10.0, 0.0, json!(100.0));
        run.flows[0].started_s = started_s;
        let mut series = Series::default();
        for (t_s, goodput_mbps) in rows {
            let (t_s, goodput_mbps) = (*t_s, *goodput_mbps);
            series.flows.push(FlowSample { t_s, goodput_mbps, srtt_ms: Some(20.0), ..FlowSample::default() });
        }
        (run, series)
    }

    fn mbps((run, series): &(RunResult, Series)) -> Vec<f64> {
        means(run, series, &run.flows[0], 1.0).iter().map(|(_, mbps)| (mbps * 1e6).round() / 1e6).collect()
    }

    #[test]
    fn a_second_without_a_connection_is_0_from_the_start_to_the_end_of_the_run() {
        // 8 Mb/s in 2.0..2.3, and 0.8 Mb in the 4.2 s until the row at 6.5.
        let seen = run(1.5, &[(2.0, 0.0), (2.1, 8.0), (2.2, 8.0), (2.3, 8.0), (6.5, 0.8 / 4.2)]);
        assert_eq!(mbps(&seen), [0.0, 2.4, 0.0, 0.0, 0.0, 0.8, 0.0, 0.0, 0.0]);
        let (run, series) = &seen;
        let middles = means(run, series, &run.flows[0], 1.0);
        assert_eq!((middles[0].0, middles[8].0), (1.5, 9.5));
    }

    #[test]
    fn of_a_long_time_what_came_is_where_the_transfers_were() {
        // 1 Mb each: at 2 s, seen by no row, and at 5.9 s, by that at 6.0 s; then one behind the last row.
        let mut seen = run(0.0, &[(0.1, 0.0), (6.0, 2.0 / 5.9)]);
        let transfer = |start_s, took_s| TransferSample {
            flow: 0,
            host: 0,
            start_s,
            bytes: 125_000,
            completion_s: Some(took_s),
            slowdown: None,
        };
        seen.1.transfers = TransferSeries::of([transfer(2.2, 0.02), transfer(5.9, 0.1), transfer(8.3, 0.05)]);
        assert_eq!(mbps(&seen), [0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0]);
    }

    #[test]
    fn a_connection_that_never_opens_gets_nothing_where_others_have_rows() {
        let (mut run, mut series) = run(0.0, &[]);
        assert!(means(&run, &series, &run.flows[0], 1.0).is_empty());
        series.flows.push(FlowSample { flow: 1, ..FlowSample::default() });
        assert_eq!(means(&run, &series, &run.flows[0], 1.0).len(), 10);
        run.flows[0].kind = "ping".to_owned();
        assert!(means(&run, &series, &run.flows[0], 1.0).is_empty());
    }
}
