//! The distributions of round trips, of goodput and of slowdowns: the share of the samples that are at most so large.
//!
//! Like the result, they leave out the warm-up. A run has a line for each connection. A comparison has one for each
//! case, over all its connections and seeds.

use super::axis::Axis;
use super::canvas::{Margins, Panel, Pen, draw, full_width, x_name_height, y_name_height};
use super::lines::{Entry, Line, draw_legend, legend_height};
use super::marks::draw_marker;
use super::{Figure, GOODPUT_STEP_S, legend, note_of_run, note_of_seeds};
use crate::CaseRun;
use crate::goodput;
use crate::style::{self, FlowLooks, Look};
use lasthop_scenario::{Comparison, FlowResult, RunResult, Series};

const HEIGHT: f64 = 230.0;
/// The most points of a line.
const MOST_POINTS: usize = 400;

/// The distribution of one quantity.
pub(crate) struct Kind {
    name: &'static str,
    title: &'static str,
    /// With its unit.
    x_name: &'static str,
    y_name: &'static str,
    caption: &'static str,
    /// Whether the axis is logarithmic when the numbers span more than a decade.
    by_ratio: bool,
    samples: fn(&RunResult, &Series, &FlowResult) -> Vec<f64>,
}

pub(crate) const RTT: Kind = Kind {
    name: "rtt-cdf",
    title: "Distribution of round-trip times",
    x_name: "smoothed RTT (ms)",
    y_name: "share of the samples",
    caption: "The share of the samples of the smoothed RTT that are at most so long. Further left is better; a long tail on \
              the right is time in queues. A stalled connection measures nothing.",
    by_ratio: true,
    samples: round_trips,
};

pub(crate) const GOODPUT: Kind = Kind {
    name: "goodput-cdf",
    title: "Distribution of goodput",
    x_name: "goodput (Mb/s)",
    y_name: "share of the seconds",
    caption: "Of each connection, the share of the seconds from its start to the end of the run in which it got at most so \
              much. The height at 0 is the share of the seconds in which it got nothing; a steep line is a steady share.",
    by_ratio: false,
    samples: |run, series, flow| {
        let measured =
            goodput::means(run, series, flow, GOODPUT_STEP_S).into_iter().filter(|(t_s, _)| *t_s >= run.warmup_s);
        measured.map(|(_, mbps)| mbps).collect()
    },
};

pub(crate) const SLOWDOWN: Kind = Kind {
    name: "slowdown-cdf",
    title: "Distribution of slowdowns",
    x_name: "slowdown over the empty network",
    y_name: "share of the transfers",
    caption: "The share of the transfers that took at most so many times as long as their data need alone in the empty network. \
              Further left is better. Those that were not complete at the end are left out.",
    by_ratio: true,
    samples: |run, series, flow| {
        let of_flow = series.transfers.rows().filter(|row| row.flow == flow.id);
        let measured = of_flow.filter(|row| row.completion_s.is_some_and(|took| row.start_s + took >= run.warmup_s));
        measured.filter_map(|row| row.slowdown).collect()
    },
};

/// As the result's `rtt_ms`, those of the samples before which something new was acknowledged, for which stands here that something new was
/// received: an SRTT that does not change may be measured again and again.
fn round_trips(run: &RunResult, series: &Series, flow: &FlowResult) -> Vec<f64> {
    let measured = series.flows.of_flow(flow.id).filter(|row| row.t_s >= run.warmup_s && row.goodput_mbps > 0.0);
    measured.filter_map(|row| row.srtt_ms).collect()
}

/// A line for each connection.
pub(crate) fn of_run(kind: &Kind, run: &RunResult, series: &Series) -> Option<Figure> {
    let looks = FlowLooks::of(run);
    let line = |flow: &FlowResult| {
        let parts = vec![cumulated((kind.samples)(run, series, flow))];
        Line { name: style::flow_name(run, flow), look: looks.look(flow).clone(), parts }
    };
    let lines: Vec<Line> = run.flows.iter().map(line).collect();
    figure(kind, &lines, legend(&looks).entries(), "", &note_of_run(run))
}

/// A line for each case, over all its connections and seeds.
pub(crate) fn of_comparison(kind: &Kind, comparison: &Comparison, runs: &[CaseRun], looks: &[Look]) -> Option<Figure> {
    let samples = |look: &Look| {
        let of_case = runs.iter().filter(|(label, ..)| *label == look.label);
        let flows = of_case.flat_map(|(_, run, series)| run.flows.iter().map(move |flow| (run, series, flow)));
        flows.flat_map(|(run, series, flow)| (kind.samples)(run, series, flow)).collect()
    };
    let line =
        |look: &Look| Line { name: look.label.clone(), look: look.clone(), parts: vec![cumulated(samples(look))] };
    let lines: Vec<Line> = looks.iter().map(line).collect();
    let entries = looks.iter().cloned().map(Entry::Mark).collect();
    let seeds = if comparison.seeds.len() > 1 { " and seeds" } else { "" };
    let more = format!(" A line is a case, over all its connections{seeds}.");
    figure(kind, &lines, entries, &more, &note_of_seeds("All connections", &comparison.seeds))
}

/// The share of the samples that are at most so large, by size; of many samples some.
fn cumulated(mut samples: Vec<f64>) -> Vec<(f64, f64)> {
    samples.sort_by(f64::total_cmp);
    let (count, shown) = (samples.len(), samples.len().min(MOST_POINTS));
    let rank = |point: usize| (point * count).div_ceil(shown);
    let points = (1..=shown).map(rank).map(|rank| (samples[rank - 1], rank as f64 / count as f64));
    samples.first().map(|least| (*least, 0.0)).into_iter().chain(points).collect()
}

/// Draws the lines. Those of cases have their markers, at heights of their own.
fn figure(kind: &Kind, lines: &[Line], entries: Vec<Entry>, more: &str, note: &str) -> Option<Figure> {
    let numbers = || lines.iter().flat_map(|line| &line.parts).flatten().map(|(number, _)| *number);
    let lowest = numbers().reduce(f64::min)?;
    let highest = numbers().fold(lowest, f64::max);
    let marked = entries.iter().any(|entry| matches!(entry, Entry::Mark(_)));
    let x = if kind.by_ratio { Axis::around(lowest, highest, 8) } else { Axis::from_zero(highest, 8) };
    let y = Axis::Linear { from: 0.0, to: 1.0 };
    let margins = Margins::of(x, full_width(), [y], HEIGHT);
    let panel = Panel {
        left: margins.left,
        top: legend_height(&entries) + y_name_height(kind.y_name, y, full_width()),
        width: full_width() - margins.left - margins.right,
        height: HEIGHT,
        x,
        y,
    };
    let height = panel.bottom() + x_name_height(kind.x_name, x, panel.width);
    let svg = draw(kind.title, note, height, |canvas| {
        draw_legend(canvas, &entries);
        panel.draw_y(canvas, kind.y_name, margins);
        panel.draw_x(canvas, kind.x_name);
        canvas.data(&panel, (kind.x_name, kind.y_name), |canvas| {
            // A connection without samples, such as one of datagrams, or without transfers, has no line.
            for line in lines.iter().filter(|line| line.parts.iter().any(|part| !part.is_empty())) {
                let points: Vec<(f64, f64)> = line.parts.iter().flatten().map(|(x, y)| panel.at(*x, *y)).collect();
                canvas.path(&line.name, &points, Pen::of(&line.look, 1.5));
            }
            for (index, line) in lines.iter().enumerate().filter(|_| marked) {
                let share = (index as f64 + 0.5) / lines.len() as f64;
                let mark = line.parts.iter().flatten().find(|(_, reached)| *reached >= share);
                if let Some((x, y)) = mark {
                    canvas.titled(&line.name, |canvas| draw_marker(canvas, panel.at(*x, *y), &line.look));
                }
            }
        });
    });
    let caption = format!("{}{more}", kind.caption);
    Some(Figure { name: kind.name.into(), title: kind.title.into(), caption, svg: svg.text })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_measure::{Counted, Finished, Measurement, Seen};
    use lasthop_scenario::{Build, Scenario};
    use lasthop_units::{Bytes, Span, Time};

    /// A connection with round trips of 20 ms that stalls for 5 s, and beside it one for the last 10 s, when those of both are 200 ms and
    /// more, each another one.
    #[test]
    fn the_median_of_the_round_trips_is_that_of_the_result() {
        let toml = "duration_s = 60\nwarmup_s = 5\n[[hosts]]\ncount = 2\n[[hosts.flows]]\n";
        let scenario = Scenario::from_toml("scenario.toml", toml, &[]).expect("a scenario");
        let hosts = scenario.expanded_hosts();
        let mut measurement = Measurement::new(&scenario, &hosts, true);
        let mut received = [Bytes::ZERO; 2];
        for sample in 1..=1200 {
            let at = Time::ZERO + Span::from_millis(50 * sample);
            for (connection, received) in received.iter_mut().enumerate().take(if sample < 1000 { 1 } else { 2 }) {
                if !(200..300).contains(&sample) {
                    *received += Bytes::new(12_500);
                }
                let mut seen = Seen::default();
                seen.tcp.acked = *received;
                seen.tcp.srtt = Some(Span::from_millis(if sample < 1000 { 20 } else { sample - 800 }));
                measurement.on_sample(at, connection, *received, Some(&seen));
            }
        }
        let network = lasthop_network::Network::<()>::new(scenario.network(), 1).expect("a network");
        let (run, series) = measurement.into_outcome(Finished {
            build: Build { version: "0.1.0".into(), commit: None, dirty: false },
            flows: vec![Counted::default(); 2],
            statistics: &network.statistics(Time::ZERO + scenario.duration),
            device_drops: 0,
            policies: Vec::new(),
            events: 0,
            notes: Vec::new(),
            real_time: None,
        });
        let samples: Vec<f64> = run.flows.iter().flat_map(|flow| round_trips(&run, &series, flow)).collect();
        // 100 to 1200 but those of the stall, and 201 of the second connection.
        assert_eq!(samples.len(), 1101 - 100 + 201);
        let points = cumulated(samples);
        let at = |share| points.iter().find(|(_, reached)| *reached >= share).expect("a point").0;
        let rtt_ms = run.rtt_ms.expect("round trips");
        assert_eq!((at(0.5), rtt_ms.p50), (20.0, 20.0));
        assert!((at(0.95) / rtt_ms.p95 - 1.0).abs() < 0.01, "{} {rtt_ms:?}", at(0.95));
    }

    #[test]
    fn half_of_the_samples_are_at_most_the_median() {
        assert_eq!(cumulated(vec![3.0, 1.0, 2.0, 2.0]), [(1.0, 0.0), (1.0, 0.25), (2.0, 0.5), (2.0, 0.75), (3.0, 1.0)]);
        assert!(cumulated(Vec::new()).is_empty());
    }

    #[test]
    fn of_many_samples_the_ends_and_the_shares_stay() {
        let points = cumulated((1..=100_000).map(f64::from).collect());
        assert_eq!((points.len(), points[0], points[MOST_POINTS]), (MOST_POINTS + 1, (1.0, 0.0), (100_000.0, 1.0)));
        assert!(points[1..].iter().all(|(number, share)| (number / 100_000.0 - share).abs() < 1e-12), "{points:?}");
    }
}
