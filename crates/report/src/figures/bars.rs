//! Bars: the goodput of each host, and the headline figures of each case.

use super::axis::Axis;
use super::canvas::{
    Beside, Canvas, Ink, MARGIN_LEFT, MARGIN_RIGHT, Panel, Pen, SMALL, Svg, WIDTH, draw, fitted, number, text_width,
};
use super::lines::{Entry, draw_legend, legend_height};
use crate::style::{self, Colour, FlowLooks, GRID, INK, LIMIT, Look, MUTED};
use lasthop_measure::{Range, mean, spread};
use lasthop_scenario::{CaseResult, Comparison, FlowResult, RunResult};

/// The goodput of a host and its colour.
pub(crate) struct Bar {
    host: u16,
    /// The host's name.
    name: String,
    /// Below the bar, if all of these have room: its name, or else its number.
    label: String,
    goodput_mbps: f64,
    /// Jain's index counts one of its connections.
    busy: bool,
    colour: Colour,
}

/// The label of the line at the mean of the busy bars, which are those that Jain's index counts.
pub(crate) fn equal_share<'a>(bars: impl IntoIterator<Item = &'a Bar>) -> Entry {
    let some_wait = bars.into_iter().any(|bar| !bar.busy);
    Entry::Limit(if some_wait { "equal share of busy hosts" } else { "equal share" }.to_owned())
}

/// The goodput of each host of one run.
pub(crate) fn goodput_of_run(run: &RunResult) -> Option<Svg> {
    let looks = FlowLooks::of(run);
    // Bars have host numbers below, so colours by host would add nothing. All bars then share one colour.
    let plain = style::host(0, 1);
    let bars = bars(run, |flow| if looks.by_kind() { looks.colour(flow) } else { plain });
    let mut entries: Vec<Entry> = match looks.legend() {
        Ok(kinds) if looks.by_kind() => kinds.into_iter().map(Entry::Box).collect(),
        _ => Vec::new(),
    };
    entries.push(equal_share(&bars));
    if bars.is_empty() {
        return None;
    }
    let panel = Panel {
        left: MARGIN_LEFT,
        top: legend_height(&entries) + 30.0,
        width: WIDTH - MARGIN_LEFT - MARGIN_RIGHT,
        height: 210.0,
        x: Axis::Linear { from: 0.0, to: 1.0 },
        y: goodput_axis([bars.as_slice()].into_iter()),
    };
    Some(draw("Goodput of each host", panel.bottom() + 46.0, |canvas| {
        draw_legend(canvas, &entries);
        draw_goodput(canvas, &panel, &bars);
    }))
}

/// The bars of the hosts of a run, in the colours of their connections.
pub(crate) fn bars(run: &RunResult, colour: impl Fn(&FlowResult) -> Colour) -> Vec<Bar> {
    let mut bars: Vec<Bar> = Vec::new();
    for flow in &run.flows {
        let colour = colour(flow);
        match bars.iter_mut().find(|bar| bar.host == flow.host && bar.colour == colour) {
            Some(bar) => {
                bar.goodput_mbps += flow.goodput_mbps;
                bar.busy |= flow.always_busy;
            }
            None => bars.push(Bar {
                host: flow.host,
                name: style::host_name(run, flow.host),
                label: run.host_name(flow.host).unwrap_or_else(|| flow.host.to_string()),
                goodput_mbps: flow.goodput_mbps,
                busy: flow.always_busy,
                colour,
            }),
        }
    }
    bars
}

/// An axis with room for all these bars.
pub(crate) fn goodput_axis<'a>(groups: impl Iterator<Item = &'a [Bar]>) -> Axis {
    Axis::from_zero(groups.flatten().map(|bar| bar.goodput_mbps).fold(0.0, f64::max), 8)
}

/// Draws a bar for each host, and the equal share of the busy ones.
pub(crate) fn draw_goodput(canvas: &mut Canvas, panel: &Panel, bars: &[Bar]) {
    panel.draw_y(canvas, "goodput (Mb/s)");
    canvas.line((panel.left, panel.bottom()), (panel.right(), panel.bottom()), Pen::new(MUTED, 1.0));
    let space = panel.width / (bars.len() as f64 + 0.5);
    let left = panel.left + space * 0.25;
    let width = (space * 0.8).min(46.0);
    let every = ((text_width("99", SMALL) + 4.0) / space).ceil() as usize;
    let all_fit = bars.iter().all(|bar| text_width(&bar.label, SMALL) + 4.0 <= space);
    for (index, bar) in bars.iter().enumerate() {
        let middle = left + (index as f64 + 0.5) * space;
        let top = panel.y_at(bar.goodput_mbps);
        canvas.titled(&format!("{}: {:.3} Mb/s", bar.name, bar.goodput_mbps), |canvas| {
            canvas.rectangle(middle - width / 2.0, top, width, panel.bottom() - top, bar.colour, 1.0);
        });
        if all_fit || index % every.max(1) == 0 {
            let label = if all_fit { bar.label.clone() } else { bar.host.to_string() };
            canvas.text(&label, middle, panel.bottom() + 14.0, Ink::label(Beside::Middle));
        }
    }
    let busy: Vec<f64> = bars.iter().filter(|bar| bar.busy).map(|bar| bar.goodput_mbps).collect();
    if let Some(share) = mean(&busy) {
        let y = panel.y_at(share);
        canvas.titled(&format!("equal share: {share:.3} Mb/s"), |canvas| {
            canvas.line((panel.left, y), (panel.right(), y), Pen::new(LIMIT, 1.5));
        });
    }
    canvas.text("host", panel.left + panel.width / 2.0, panel.bottom() + 31.0, Ink::label(Beside::Middle));
}

/// One headline figure of cases.
pub(crate) struct Column {
    pub(crate) name: &'static str,
    /// The values that it can have. Its axis ends where these do.
    pub(crate) range: Range,
    pub(crate) figure: fn(&RunResult) -> Option<f64>,
}

pub(crate) const COLUMNS: [Column; 3] = [
    Column { name: "aggregate goodput (Mb/s)", range: Range::POSITIVE, figure: |run| Some(run.aggregate_goodput_mbps) },
    Column { name: "Jain's index", range: Range::SHARE, figure: |run| run.jain_index },
    Column { name: "smoothed RTT p95 (ms)", range: Range::POSITIVE, figure: |run| run.rtt_ms.map(|rtt| rtt.p95) },
];

/// The mean of a figure over the seeds of a case, with its 95 % confidence interval, as in studies.
#[derive(Clone, Copy)]
pub(crate) struct Mean {
    pub(crate) value: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Mean {
    /// `None` if no run has the figure. With a single seed there is no interval, and both ends are the mean.
    pub(crate) fn of(case: &CaseResult, column: &Column) -> Option<Self> {
        let over = spread(case.runs.iter().filter_map(column.figure), column.range)?;
        // Two very different seeds give an interval of many times their mean. It may extend beyond the axes.
        let (low, high) = over.ci95.map_or((over.mean, over.mean), |interval| (interval.low, interval.high));
        Some(Self { value: over.mean, low, high: high.min(3.0 * over.mean) })
    }
}

/// Aggregate goodput, Jain's index and the 95th percentile of the RTT, one row for each case. With several seeds,
/// whiskers show the 95 % confidence intervals.
pub(crate) fn summary(comparison: &Comparison, looks: &[Look]) -> Svg {
    const ROW: f64 = 30.0;
    const TOP: f64 = 34.0;
    const GAP: f64 = 58.0;
    let longest = looks.iter().map(|look| text_width(&look.label, SMALL)).fold(60.0, f64::max);
    let names = (longest + 12.0).min(250.0);
    let width = (WIDTH - names - GAP * COLUMNS.len() as f64) / COLUMNS.len() as f64;
    let height = ROW * looks.len() as f64;
    draw("Aggregate goodput, Jain's index and RTT of each case", TOP + height + 26.0, |canvas| {
        for (row, look) in looks.iter().enumerate() {
            let y = TOP + (row as f64 + 0.5) * ROW;
            let label = fitted(&look.label, SMALL, names - 10.0);
            canvas.text(&label, names - 8.0, y, Ink { size: SMALL, colour: INK, beside: Beside::End });
        }
        for (index, column) in COLUMNS.iter().enumerate() {
            let means: Vec<Option<Mean>> = comparison.cases.iter().map(|case| Mean::of(case, column)).collect();
            let highest = means.iter().flatten().map(|mean| mean.high).fold(0.0, f64::max);
            let panel = Panel {
                left: names + index as f64 * (width + GAP),
                top: TOP,
                width,
                height,
                x: match column.range.greatest {
                    to if to.is_finite() => Axis::Linear { from: 0.0, to },
                    _ => Axis::from_zero(highest, 4),
                },
                y: Axis::Linear { from: 0.0, to: 1.0 },
            };
            draw_column(canvas, &panel, column.name, &means, looks);
        }
    })
}

fn draw_column(canvas: &mut Canvas, panel: &Panel, name: &str, means: &[Option<Mean>], looks: &[Look]) {
    canvas.text(name, panel.left, panel.top - 20.0, Ink::text(Beside::Start));
    for tick in panel.x.ticks(4) {
        let x = panel.x_at(tick);
        canvas.line((x, panel.top), (x, panel.bottom()), Pen::new(GRID, 1.0));
        canvas.text(&number(tick), x, panel.bottom() + 13.0, Ink::label(Beside::Middle));
    }
    let row = panel.height / looks.len() as f64;
    for (index, (mean, look)) in means.iter().zip(looks).enumerate() {
        let y = panel.top + (index as f64 + 0.5) * row;
        let Some(mean) = mean else {
            canvas.text("none", panel.left + 6.0, y, Ink::label(Beside::Start));
            continue;
        };
        let title = format!("{}: {name} {}", look.label, number(mean.value));
        canvas.titled(&title, |canvas| {
            canvas.rectangle(panel.left, y - 9.0, panel.x_at(mean.value) - panel.left, 18.0, look.colour, 1.0);
        });
        if mean.high > mean.low {
            canvas.line((panel.x_at(mean.low), y), (panel.x_at(mean.high), y), Pen::new(INK, 1.5));
        }
        let text = if panel.x == (Axis::Linear { from: 0.0, to: 1.0 }) {
            format!("{:.3}", mean.value)
        } else if mean.value >= 100.0 {
            number(mean.value.round())
        } else {
            format!("{:.1}", mean.value)
        };
        canvas.text(&text, panel.x_at(mean.high) + 6.0, y, Ink { size: SMALL, colour: INK, beside: Beside::Start });
    }
}
