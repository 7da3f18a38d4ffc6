//! The figures of a run, a comparison and a study, made only from their results and series.

mod axis;
mod bars;
mod canvas;
mod cases;
mod cdf;
mod difference;
mod hearing;
mod interval;
mod lines;
mod marks;
mod pause;
mod states;
mod stations;
mod text;
mod thin;
mod tradeoff;

pub(crate) use canvas::number;
pub use canvas::{set_width, span};
#[cfg(unix)]
pub(crate) use text::{FONT, is_in_font};

use crate::CaseRun;
use crate::goodput::{self, sample_s};
use crate::style::{self, FlowLooks, Look};
use lasthop_scenario::{ACCESS_POINT, Comparison, FlowResult, FlowSample, FlowSeries, RunResult, Series};
use lasthop_study::StudyResult;
use lines::{Legend, Line, TimeFigure, TimePanel};
use pause::{NONE_MISSING_S, parted, while_heard};
use serde::Serialize;
use std::borrow::Cow;
use thin::thin;

/// Maximum points over all lines of a figure. It bounds the size of the file.
const MOST_POINTS: usize = 40_000;

/// A figure.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figure {
    /// The file name without its extension.
    pub(crate) name: Cow<'static, str>,
    pub(crate) title: Cow<'static, str>,
    /// One line for the reader: the feature to look for.
    pub(crate) caption: String,
    pub(crate) svg: String,
}

/// The names of the figures that [`of_run`] can make.
pub(crate) const OF_RUN: &[&str] = &[
    "hearing",
    "goodput",
    "goodput-over-time",
    "goodput-cdf",
    "rtt",
    "rtt-cdf",
    "slowdown-cdf",
    "stations",
    "cwnd",
    "states",
    "queue",
];
/// The names of the figures that [`of_comparison`] can make.
pub(crate) const OF_COMPARISON: &[&str] = &[
    "before-and-after",
    "summary",
    "difference",
    "tradeoff",
    "rtt-cdf",
    "goodput-cdf",
    "slowdown-cdf",
    "goodput-over-time",
    "queue",
];

/// The name of a study's figure, counted from 0.
pub(crate) fn name_in_study(index: usize, title: &str) -> String {
    format!("{}-{}", index + 1, crate::file_name(title))
}

/// Every figure of one run for which its series have data.
pub(crate) fn of_run(run: &RunResult, series: &Series) -> Vec<Figure> {
    let mut figures: Vec<Figure> = hearing::hearing(run).into_iter().collect();
    figures.extend(bars::goodput_of_run(run).map(|svg| Figure {
        name: "goodput".into(),
        title: "Goodput of each host".into(),
        caption: "Bars of one height are a fair share; a host without a bar got nothing.".into(),
        svg: svg.text,
    }));
    figures.extend(goodput_over_time_of_run(run, |flow| goodput::means(run, series, flow, GOODPUT_STEP_S)));
    figures.extend(cdf::of_run(&cdf::GOODPUT, run, series));
    figures.extend(rtt_of_run(run, &series.flows, sample_s(run)));
    figures.extend(cdf::of_run(&cdf::RTT, run, series));
    figures.extend(cdf::of_run(&cdf::SLOWDOWN, run, series));
    figures.extend(stations::stations(run));
    figures.extend(windows(run, &series.flows, sample_s(run)));
    figures.extend(states::states(run, &series.flows).map(|svg| Figure {
        name: "states".into(),
        title: "Congestion-avoidance state over time".into(),
        caption:
            "Recovery and Loss are time spent repairing losses; each column shows the most severe state in it.".into(),
        svg: svg.text,
    }));
    figures.extend(queue(&[(None, run, series)], note_of_run(run)));
    figures
}

/// Explains the bars in figures of means over seeds; with one seed there are none.
fn bars_of(seeds: usize) -> String {
    match seeds {
        0 | 1 => "One seed: there are no confidence intervals.".to_owned(),
        seeds => format!("Means over {seeds} seeds; the bars are their 95 % confidence intervals."),
    }
}

/// The note below a figure of one run.
fn note_of_run(run: &RunResult) -> String {
    format!("One run, seed {}.", run.seed)
}

/// The note below a figure of everything that these seeds gave.
fn note_of_seeds(what: &str, seeds: &[u64]) -> String {
    match seeds {
        [seed] => format!("{what}, seed {seed}."),
        seeds => format!("{what}, {} seeds.", seeds.len()),
    }
}

/// The note below a figure of means over seeds with bars.
fn note_of_means(what: &str, seeds: &[u64]) -> String {
    match seeds {
        [seed] => format!("One seed, {seed}: no intervals."),
        seeds => format!(
            "{what}; bars: 95 % confidence interval of {} seeds. An arrow: it ends beyond the axis.",
            seeds.len()
        ),
    }
}

/// The figures of a run that goes on, with the samples until now. `air`: seconds, and the share of the time before in which the
/// channel carried a frame.
pub(crate) fn before_the_end(run: &RunResult, series: &Series, air: &[(f64, f64)]) -> Vec<Figure> {
    let said =
        |figure: Option<Figure>, caption: &str| figure.map(|figure| Figure { caption: caption.to_owned(), ..figure });
    let goodput = said(
        goodput_over_time_of_run(run, |flow| {
            means(series.flows.of_flow(flow.id).map(|sample| (sample.t_s, sample.goodput_mbps)))
        }),
        "Of each connection until now, means over 1 s or from one sample to the next.",
    );
    let windows = said(
        windows(run, &series.flows, NONE_MISSING_S),
        "Saw-teeth are losses. The limits of windows are in the report, after the end.",
    );
    [
        goodput,
        rtt_of_run(run, &series.flows, NONE_MISSING_S),
        queue(&[(None, run, series)], note_of_run(run)),
        channel(run, air),
        windows,
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The figures that compare the cases. Of a case with several seeds, figures over time show the first.
pub(crate) fn of_comparison(comparison: &Comparison, runs: &[CaseRun]) -> Vec<Figure> {
    let looks = style::cases(comparison);
    let seeds = bars_of(comparison.seeds.len());
    let one = match comparison.seeds.as_slice() {
        [first, _, ..] => format!(" Seed {first} alone, one of {}.", comparison.seeds.len()),
        _ => String::new(),
    };
    let firsts = first_runs(comparison, runs, &looks);
    let mut figures = Vec::new();
    figures.extend(before_and_after(comparison, &firsts, &one));
    figures.push(Figure {
        name: "summary".into(),
        title: "The cases at a glance".into(),
        caption: format!("Better is more goodput, a Jain's index nearer to 1, and a shorter RTT. {seeds}"),
        svg: bars::summary(comparison, &looks).text,
    });
    figures.extend(difference::difference(comparison, &looks));
    figures.extend(tradeoff::tradeoff(comparison, &looks).map(|svg| Figure {
        name: "tradeoff".into(),
        title: "Goodput against round-trip time".into(),
        caption: format!("The best cases are at the top left: much goodput, short round trips. {seeds}"),
        svg: svg.text,
    }));
    figures.extend(
        [cdf::RTT, cdf::GOODPUT, cdf::SLOWDOWN]
            .iter()
            .filter_map(|kind| cdf::of_comparison(kind, comparison, runs, &looks)),
    );
    figures.extend(goodput_over_time_of_cases(comparison, &firsts, &one));
    figures.extend(
        queue(&firsts, note_of_firsts(comparison))
            .map(|figure| Figure { caption: format!("{}{one}", figure.caption), ..figure }),
    );
    figures
}

/// The looks of connections in figures of cases.
struct CaseLooks<'a> {
    /// Of each policy, if cases differ in them and hosts of one case too; else the titles of the cases explain theirs.
    policies: Vec<(&'a str, Look)>,
}

impl<'a> CaseLooks<'a> {
    fn of(comparison: &'a Comparison, runs: &[Shown<'_>]) -> Self {
        let policies = style::policies(comparison);
        let mixed = |run: &RunResult| run.flows.iter().any(|flow| flow.policy != run.flows[0].policy);
        let needed = policies.len() > 1 && runs.iter().any(|(_, run, _)| mixed(run));
        let looks = style::of_policies(&policies);
        Self { policies: if needed { policies.into_iter().zip(looks).collect() } else { Vec::new() } }
    }

    /// Of a connection in a case with this look. Where a colour is a case, its lines are alike.
    fn look(&self, case: Option<&Look>, flow: &FlowResult) -> Look {
        let of_policy = self.policies.iter().find(|(policy, _)| *policy == flow.policy).map(|(_, look)| look.clone());
        of_policy.unwrap_or_else(|| Look::plain("", case.map_or(style::ALONE, |look| look.colour)))
    }

    fn legend(&self) -> Vec<Look> {
        self.policies.iter().map(|(_, look)| look.clone()).collect()
    }
}

/// The note below figures over time of cases: they show the first seed.
fn note_of_firsts(comparison: &Comparison) -> String {
    match comparison.seeds.as_slice() {
        [first, _, ..] => format!("Seed {first}, one of {}.", comparison.seeds.len()),
        seeds => note_of_seeds("One run of each case", seeds),
    }
}

fn before_and_after(comparison: &Comparison, runs: &[Shown<'_>], one: &str) -> Option<Figure> {
    let looks = CaseLooks::of(comparison, runs);
    let columns = columns(runs.iter().map(|(_, run, _)| run.flows.len()).sum(), cases::COLUMNS);
    let row = |(case, run, series): &Shown<'_>| {
        let lines = rtt_lines(run, &series.flows, sample_s(run), columns, |flow| looks.look(*case, flow));
        let bars = bars::bars(run, !looks.policies.is_empty(), |flow| looks.look(*case, flow));
        cases::Row { rtt: panel(*case, run, lines), bars, headline: headline(run) }
    };
    let rows: Vec<cases::Row> = runs.iter().map(row).collect();
    let svg = cases::draw_cases(&rows, looks.legend(), &note_of_firsts(comparison))?;
    let [first, second] = if canvas::is_narrow() { ["Above", "Below"] } else { ["Left", "Right"] };
    let colours = if looks.policies.is_empty() { "" } else { " A colour is a policy." };
    Some(Figure {
        name: "before-and-after".into(),
        title: "Round trips over time, and the goodput of each host".into(),
        caption: format!(
            "{first}: the smoothed round-trip time of each connection; what is above the path's own is time spent in queues. \
             {second}: bars of one height are a fair share. All cases have the same axes.{colours}{one}"
        ),
        svg: svg.text,
    })
}

/// The outcome of a run in one line.
fn headline(run: &RunResult) -> String {
    let goodput = format!("{:.1} Mb/s in all", run.aggregate_goodput_mbps);
    let rtt = run.rtt_ms.map(|rtt| format!("smoothed RTT p95 {} ms", number(rtt.p95.round())));
    let jain = run.jain_index.map(|jain| format!("Jain's index {jain:.2}"));
    [Some(goodput), rtt, jain].into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// The figures of a study.
pub(crate) fn of_study(study: &StudyResult) -> Vec<Figure> {
    let interval = bars_of(study.seeds.len());
    let figure = |(index, figure): (usize, &lasthop_study::FigureResult)| Figure {
        name: name_in_study(index, &figure.title).into(),
        title: figure.title.clone().into(),
        caption: interval.clone(),
        svg: marks::draw_figure(figure, study.hosts_kind, &note_of_means("Means", &study.seeds)).text,
    };
    study.figures.iter().enumerate().map(figure).collect()
}

type Shown<'a> = (Option<&'a Look>, &'a RunResult, &'a Series);

fn first_runs<'a>(comparison: &Comparison, runs: &'a [CaseRun], looks: &'a [Look]) -> Vec<Shown<'a>> {
    let first = |(case, look): (&lasthop_scenario::CaseResult, &'a Look)| {
        let (_, run, series) = runs.iter().find(|(label, ..)| *label == case.label)?;
        Some((Some(look), run, series))
    };
    comparison.cases.iter().zip(looks).filter_map(first).collect()
}

/// One line for each connection. `step_s`: as [`parted`] takes it.
fn flow_lines(
    run: &RunResult,
    series: &FlowSeries,
    step_s: f64,
    columns: usize,
    of: impl Fn(&FlowSample) -> Option<f64>,
    look: impl Fn(&FlowResult) -> Look,
) -> Vec<Line> {
    let line = |flow: &FlowResult| {
        let points = series.of_flow(flow.id).map(|sample| (sample.t_s, of(&sample)));
        let parts = thin(parted(points, step_s).into_iter(), (0.0, run.duration_s), columns);
        (!parts.is_empty()).then(|| Line { name: style::flow_name(run, flow), look: look(flow), parts })
    };
    run.flows.iter().filter_map(line).collect()
}

/// The smoothed round trips over time. A line ends where its connection falls silent.
fn rtt_lines(
    run: &RunResult,
    series: &FlowSeries,
    step_s: f64,
    columns: usize,
    look: impl Fn(&FlowResult) -> Look,
) -> Vec<Line> {
    let line = |flow: &FlowResult| {
        let samples = series.of_flow(flow.id).map(|sample| (sample.t_s, sample.srtt_ms, sample.goodput_mbps));
        let points = parted(while_heard(samples).into_iter(), step_s);
        let parts = thin(points.into_iter(), (0.0, run.duration_s), columns);
        (!parts.is_empty()).then(|| Line { name: style::flow_name(run, flow), look: look(flow), parts })
    };
    run.flows.iter().filter_map(line).collect()
}

fn legend(looks: &FlowLooks) -> Legend {
    match looks.legend() {
        Ok(looks) if looks.len() > 1 => Legend::Looks(looks),
        Ok(_) => Legend::Nothing,
        Err((hosts, names)) => Legend::Hosts(hosts, names),
    }
}

/// The columns available to each of `lines` lines in a panel of this width.
fn columns(lines: usize, width: usize) -> usize {
    (MOST_POINTS / (4 * lines.max(1))).clamp(60, width)
}

fn panel(title: Option<&Look>, run: &RunResult, lines: Vec<Line>) -> TimePanel {
    let (duration_s, warmup_s) = (run.duration_s, run.warmup_s);
    TimePanel { title: title.cloned(), lines, limits: Vec::new(), duration_s, warmup_s }
}

fn rtt_of_run(run: &RunResult, series: &FlowSeries, step_s: f64) -> Option<Figure> {
    let looks = FlowLooks::of(run);
    let columns = columns(run.flows.len(), 880);
    let lines = rtt_lines(run, series, step_s, columns, |flow| looks.look(flow).clone());
    if lines.is_empty() {
        return None;
    }
    let figure = TimeFigure {
        title: "RTT over time",
        y_name: "smoothed RTT (ms)",
        legend: legend(&looks),
        limit_name: None,
        by_ratio: true,
        note: note_of_run(run),
    };
    Some(Figure {
        name: "rtt".into(),
        title: "Round-trip time over time".into(),
        caption: "Smoothed RTT of each connection. What is above the path's own RTT is time spent in queues.".into(),
        svg: figure.draw(&[panel(None, run, lines)]).text,
    })
}

/// Averaging interval of goodput over time. Single samples jump between nothing and everything.
const GOODPUT_STEP_S: f64 = 1.0;

/// Goodput over time: one line for each connection with `means`.
fn goodput_lines(
    run: &RunResult,
    columns: usize,
    means: impl Fn(&FlowResult) -> Vec<(f64, f64)>,
    look: impl Fn(&FlowResult) -> Look,
) -> Vec<Line> {
    let line = |flow: &FlowResult| {
        let means = means(flow).into_iter().map(|(t_s, mbps)| (t_s, Some(mbps)));
        let parts = thin(means, (0.0, run.duration_s), columns);
        (!parts.is_empty()).then(|| Line { name: style::flow_name(run, flow), look: look(flow), parts })
    };
    run.flows.iter().filter_map(line).collect()
}

fn goodput_over_time_of_run(run: &RunResult, means: impl Fn(&FlowResult) -> Vec<(f64, f64)>) -> Option<Figure> {
    let looks = FlowLooks::of(run);
    let lines = goodput_lines(run, columns(run.flows.len(), 880), means, |flow| looks.look(flow).clone());
    goodput_over_time(&[panel(None, run, lines)], legend(&looks), "", note_of_run(run))
}

fn goodput_over_time_of_cases(comparison: &Comparison, runs: &[Shown<'_>], one: &str) -> Option<Figure> {
    let looks = CaseLooks::of(comparison, runs);
    let columns = columns(runs.iter().map(|(_, run, _)| run.flows.len()).sum(), 400);
    let of = |(case, run, series): &Shown<'_>| {
        let means = |flow: &FlowResult| goodput::means(run, series, flow, GOODPUT_STEP_S);
        panel(*case, run, goodput_lines(run, columns, means, |flow| looks.look(*case, flow)))
    };
    let panels: Vec<TimePanel> = runs.iter().map(of).collect();
    let legend = if looks.policies.is_empty() { Legend::Nothing } else { Legend::Looks(looks.legend()) };
    goodput_over_time(&panels, legend, one, note_of_firsts(comparison))
}

fn goodput_over_time(panels: &[TimePanel], legend: Legend, one: &str, note: String) -> Option<Figure> {
    if panels.iter().all(|panel| panel.lines.is_empty()) {
        return None;
    }
    let (title, y_name) = ("Goodput over time", "goodput (Mb/s)");
    let figure = TimeFigure { title, y_name, legend, limit_name: None, by_ratio: false, note };
    Some(Figure {
        name: "goodput-over-time".into(),
        title: "Goodput over time".into(),
        caption: format!(
            "Of each connection, means over {GOODPUT_STEP_S} s from its start to the end of the run: who gets how much when, \
             and who gets nothing.{one}"
        ),
        svg: figure.draw(panels).text,
    })
}

/// Means over intervals of [`GOODPUT_STEP_S`], each at the middle of its interval. A sample is about the time before it,
/// and there is none before the first at 0. Of a run that goes on: its samples may be further apart than an interval.
fn means(samples: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let mut steps: Vec<(f64, f64, f64)> = Vec::new();
    for (t_s, value) in samples.filter(|(t_s, _)| *t_s > 0.0) {
        let middle = ((t_s / GOODPUT_STEP_S).ceil() - 0.5) * GOODPUT_STEP_S;
        match steps.last_mut() {
            Some((at, sum, count)) if *at == middle => (*sum, *count) = (*sum + value, *count + 1.0),
            _ => steps.push((middle, value, 1.0)),
        }
    }
    steps.into_iter().map(|(at, sum, count)| (at, sum / count)).collect()
}

/// The window in a row of a flow without an open connection, of a run that goes on. There is no such window.
pub(crate) const NO_WINDOW: u32 = 0;

fn windows(run: &RunResult, series: &FlowSeries, step_s: f64) -> Option<Figure> {
    let looks = FlowLooks::of(run);
    let columns = columns(2 * run.flows.len(), 880);
    let cwnd = |sample: &FlowSample| (sample.cwnd_segments != NO_WINDOW).then(|| sample.cwnd_segments.into());
    let lines = flow_lines(run, series, step_s, columns, cwnd, |flow| looks.look(flow).clone());
    if lines.is_empty() {
        return None;
    }
    let mut panel = panel(None, run, lines);
    panel.limits = limits(run, series, step_s, columns);
    let mut caption = if panel.limits.is_empty() {
        "Saw-teeth are losses; nothing bounds these windows.".to_owned()
    } else {
        "Saw-teeth are losses. The dashed lines are the least and the greatest upper limit in force; a connection without a \
         limit may be above both."
            .to_owned()
    };
    caption += &pacing_limits(series);
    let figure = TimeFigure {
        title: "Congestion windows over time",
        y_name: "congestion window (segments)",
        legend: legend(&looks),
        limit_name: Some("upper limit, least and greatest"),
        by_ratio: false,
        note: note_of_run(run),
    };
    Some(Figure {
        name: "cwnd".into(),
        title: "Congestion windows and their limits over time".into(),
        caption,
        svg: figure.draw(&[panel]).text,
    })
}

/// A sentence on the limits in force on the pacing rate, if any.
fn pacing_limits(series: &FlowSeries) -> String {
    let limits = || series.bound_pacing_mbps.iter().flatten().copied();
    let Some(least) = limits().reduce(f64::min) else { return String::new() };
    let most = limits().fold(least, f64::max);
    if least == most {
        format!(" The pacing rate of connections was limited too, to {least} Mb/s each.")
    } else {
        format!(" The pacing rate of connections was limited too, to {least} to {most} Mb/s each.")
    }
}

/// The minimum and maximum upper limit in force at each moment. If the two always agree, one line.
fn limits(run: &RunResult, series: &FlowSeries, step_s: f64, columns: usize) -> Vec<Vec<(f64, f64)>> {
    let mut moments: Vec<(f64, Option<(f64, f64)>)> = Vec::new();
    for row in 0..series.len() {
        let t_s = series.t_s[row];
        if moments.last().is_none_or(|(last, _)| *last != t_s) {
            moments.push((t_s, None));
        }
        let (Some(limit), Some((_, extremes))) = (series.bound_max[row], moments.last_mut()) else { continue };
        let limit = f64::from(limit);
        *extremes = Some(extremes.map_or((limit, limit), |(least, most)| (least.min(limit), most.max(limit))));
    }
    // A moment without a limit is no pause.
    let moments = parted(moments.into_iter().map(|(t_s, extremes)| (t_s, Some(extremes))), step_s).into_iter();
    let moments: Vec<_> = moments.map(|(t_s, extremes)| (t_s, extremes.flatten())).collect();
    let range = (0.0, run.duration_s);
    let least = thin(moments.iter().map(|(t_s, both)| (*t_s, both.map(|(least, _)| least))), range, columns);
    let most = thin(moments.iter().map(|(t_s, both)| (*t_s, both.map(|(_, most)| most))), range, columns);
    if least == most { least } else { least.into_iter().chain(most).collect() }
}

/// The place of an access point's queue in the series, by its number among the cells.
fn access_point(number: usize) -> Cow<'static, str> {
    if number == 0 { ACCESS_POINT.into() } else { format!("{ACCESS_POINT}_{number}").into() }
}

/// The queue of each access point. Of several each has its look, the same in all panels.
fn queue(runs: &[Shown<'_>], note: String) -> Option<Figure> {
    let width = if runs.len() > 1 { 400 } else { 880 };
    let columns = columns(runs.iter().map(|(_, run, _)| run.cells.len().max(1)).sum(), width);
    let mut names: Vec<&str> = Vec::new();
    let several = runs.iter().filter(|(_, run, _)| run.cells.len() > 1);
    for cell in several.flat_map(|(_, run, _)| &run.cells) {
        if !names.contains(&cell.name.as_str()) {
            names.push(&cell.name);
        }
    }
    let looks = style::lines(&names);
    let of = |(case, run, series): &Shown<'_>| {
        let line = |number: usize, name: Option<&str>| {
            let place = access_point(number);
            let lengths = series.queues.of_place(&place).map(|(t_s, packets)| (t_s, Some(f64::from(packets))));
            let parts = thin(lengths, (0.0, run.duration_s), columns);
            let own = name.and_then(|name| looks.iter().find(|look| look.label == name)).cloned();
            let look = own.unwrap_or_else(|| Look::plain("", case.map_or(style::ALONE, |look| look.colour)));
            Line { name: name.map_or("the queue".to_owned(), |name| format!("the queue of {name}")), look, parts }
        };
        let lines = match run.cells.as_slice() {
            [] | [_] => vec![line(0, None)],
            cells => cells.iter().enumerate().map(|(number, cell)| line(number, Some(&cell.name))).collect(),
        };
        let mut panel = panel(*case, run, lines.into_iter().filter(|line| !line.parts.is_empty()).collect());
        let room = run.scenario["access"]["queue_packets"].as_f64();
        panel.limits = room.map(|room| vec![(0.0, room), (run.duration_s, room)]).into_iter().collect();
        panel
    };
    let panels: Vec<TimePanel> = runs.iter().map(of).collect();
    if panels.iter().all(|panel| panel.lines.is_empty()) {
        return None;
    }
    // Of a run that goes on only the first one's is known.
    let is_drawn = |look: &Look| panels.iter().any(|panel| panel.lines.iter().any(|line| line.look == *look));
    let drawn: Vec<Look> = looks.iter().filter(|look| is_drawn(look)).cloned().collect();
    let title =
        if drawn.len() > 1 { "The access points' queues over time" } else { "The access point's queue over time" };
    let figure = TimeFigure {
        title,
        y_name: "queue (packets)",
        legend: if drawn.is_empty() { Legend::Nothing } else { Legend::Looks(drawn) },
        limit_name: Some("room of the queue"),
        by_ratio: false,
        note,
    };
    Some(Figure {
        name: "queue".into(),
        title: title.into(),
        caption: "Where it touches the dashed line packets are dropped: for uploads, acknowledgements.".into(),
        svg: figure.draw(&panels).text,
    })
}

/// The air over time; `None` without a radio channel.
fn channel(run: &RunResult, air: &[(f64, f64)]) -> Option<Figure> {
    let parts = thin(air.iter().map(|(t_s, share)| (*t_s, Some(100.0 * share))), (0.0, run.duration_s), 880);
    if parts.is_empty() {
        return None;
    }
    let figure = TimeFigure {
        title: "The air over time",
        y_name: "time in which the channel carries a frame (%)",
        legend: Legend::Nothing,
        limit_name: None,
        by_ratio: false,
        note: note_of_run(run),
    };
    let line = Line { name: "the air".to_owned(), look: Look::plain("", style::ALONE), parts };
    Some(Figure {
        name: "air".into(),
        title: "The air over time".into(),
        caption:
            "What is missing to 100 % is silence: waits before frames, or nothing to send. Collisions count as in use."
                .into(),
        svg: figure.draw(&[panel(None, run, vec![line])]).text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goodput_over_time_is_the_mean_of_each_second() {
        let samples = [(0.0, 1.0), (0.5, 3.0), (1.0, 8.0), (3.9, 4.0)];
        assert_eq!(means(samples.into_iter()), [(0.5, 5.5), (3.5, 4.0)]);
    }
}
