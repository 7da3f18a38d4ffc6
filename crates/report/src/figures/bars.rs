//! Bars: the goodput of each host, and the headline figures of each case.

use super::axis::Axis;
use super::canvas::{
    Beside, Canvas, Ink, Margins, NORMAL, Panel, Pen, SMALL, Svg, TO_LABELS, draw, full_width, is_narrow, number,
    y_name_height,
};
use super::interval::{Along, draw_interval};
use super::lines::{Entry, draw_legend, legend_height};
use super::marks::draw_mark_of_bar;
use super::text::{text_height, text_width};
use super::{note_of_means, note_of_run};
use crate::style::{self, FlowLooks, INK, Look, MUTED};
use lasthop_measure::{Range, mean, spread};
use lasthop_scenario::{CaseResult, Comparison, FlowResult, RunResult};

/// The name of the vertical axis of hosts' bars.
const GOODPUT: &str = "goodput (Mb/s)";

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
    look: Look,
    /// Whether its marker tells it from others.
    is_marked: bool,
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
    let plain = Look::plain("", style::ALONE);
    let bars =
        bars(run, looks.by_kind(), |flow| if looks.by_kind() { looks.look(flow).clone() } else { plain.clone() });
    let mut entries: Vec<Entry> = match looks.legend() {
        Ok(kinds) if looks.by_kind() => kinds.into_iter().map(Entry::Bar).collect(),
        _ => Vec::new(),
    };
    entries.push(equal_share(&bars));
    if bars.is_empty() {
        return None;
    }
    let (y, height) = (goodput_axis([bars.as_slice()].into_iter()), 210.0);
    let margins = Margins::of_y(y, height);
    let panel = Panel {
        left: margins.left,
        top: legend_height(&entries) + y_name_height(GOODPUT, y, full_width()),
        width: full_width() - margins.left - margins.right,
        height,
        x: Axis::Linear { from: 0.0, to: 1.0 },
        y,
    };
    Some(draw("Goodput of each host", &note_of_run(run), panel.bottom() + 46.0, |canvas| {
        draw_legend(canvas, &entries);
        draw_goodput(canvas, &panel, margins, &bars);
    }))
}

/// The bars of the hosts of a run, in the looks of their connections.
pub(crate) fn bars(run: &RunResult, is_marked: bool, look: impl Fn(&FlowResult) -> Look) -> Vec<Bar> {
    let mut bars: Vec<Bar> = Vec::new();
    for flow in &run.flows {
        let look = look(flow);
        match bars.iter_mut().find(|bar| bar.host == flow.host && bar.look == look) {
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
                look,
                is_marked,
            }),
        }
    }
    bars
}

/// An axis with room for all these bars.
pub(crate) fn goodput_axis<'a>(groups: impl Iterator<Item = &'a [Bar]>) -> Axis {
    Axis::from_zero(groups.flatten().map(|bar| bar.goodput_mbps).fold(0.0, f64::max), 8)
}

/// The labels of hosts below their bars: the names of all, or of as many as have this room for each, and within the panel.
pub(crate) fn host_labels(names: &[String], room: f64) -> Vec<Option<String>> {
    let widest = names.iter().map(|name| text_width(name, SMALL)).fold(0.0, f64::max) + 6.0;
    let every = ((widest / room).ceil() as usize).max(1);
    // The panel has a quarter more at both ends (draw_goodput).
    let fits = |index: usize| widest <= ((2 * index.min(names.len() - 1 - index)) as f64 + 1.5) * room;
    let shown = |index: usize| every == 1 || index % every == every / 2 && fits(index);
    names.iter().enumerate().map(|(index, name)| shown(index).then(|| name.clone())).collect()
}

/// Draws a bar for each host, and the equal share of the busy ones.
pub(crate) fn draw_goodput(canvas: &mut Canvas, panel: &Panel, margins: Margins, bars: &[Bar]) {
    panel.draw_y(canvas, GOODPUT, margins);
    canvas.line((panel.left, panel.bottom()), (panel.right(), panel.bottom()), Pen::new(MUTED, 1.0));
    let space = panel.width / (bars.len() as f64 + 0.5);
    let left = panel.left + space * 0.25;
    let width = (space * 0.8).min(46.0);
    let labels = host_labels(&bars.iter().map(|bar| bar.label.clone()).collect::<Vec<_>>(), space);
    for (index, (bar, label)) in bars.iter().zip(labels).enumerate() {
        let middle = left + (index as f64 + 0.5) * space;
        let top = panel.y_at(bar.goodput_mbps);
        canvas.titled(&format!("{}: {:.3} Mb/s", bar.name, bar.goodput_mbps), |canvas| {
            canvas.rectangle(middle - width / 2.0, top, width, panel.bottom() - top, bar.look.colour, 1.0);
            if bar.is_marked {
                draw_mark_of_bar(canvas, (middle, top), &bar.look);
            }
        });
        if let Some(label) = label {
            canvas.text(&label, middle, panel.bottom() + TO_LABELS, Ink::label(Beside::Middle));
        }
    }
    let busy: Vec<f64> = bars.iter().filter(|bar| bar.busy).map(|bar| bar.goodput_mbps).collect();
    if let Some(share) = mean(&busy) {
        let y = panel.y_at(share);
        canvas.titled(&format!("equal share: {share:.3} Mb/s"), |canvas| {
            canvas.line((panel.left, y), (panel.right(), y), Pen::limit());
        });
    }
    panel.draw_x_name(canvas, "host", 0.0);
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
        let figures = case.runs.iter().filter_map(column.figure).filter(|figure| figure.is_finite());
        let over = spread(figures, column.range)?;
        let (low, high) = over.ci95.map_or((over.mean, over.mean), |interval| (interval.low, interval.high));
        Some(Self { value: over.mean, low, high })
    }

    /// The greatest number that an axis has room for. Two very different seeds give an interval of many times their mean.
    pub(crate) fn most(&self) -> f64 {
        self.high.min(3.0 * self.value)
    }
}

/// A table with bars: a name for each row, and columns of this width each.
pub(crate) struct Rows {
    /// The width of the names.
    pub(crate) names: f64,
    /// The height of a row.
    pub(crate) row: f64,
    /// The height above the rows.
    pub(crate) top: f64,
    /// From one column to the next.
    pub(crate) column: f64,
}

/// Between the text of a column and the next one.
const GAP: f64 = 24.0;

impl Rows {
    /// For items with these labels, and for [`COLUMNS`].
    pub(crate) fn of(looks: &[Look]) -> Self {
        let longest = looks.iter().map(|look| text_width(&look.label, SMALL)).fold(60.0, f64::max);
        let names = (longest + 12.0).min(if is_narrow() { full_width() / 4.0 } else { 250.0 });
        let highest = looks.iter().map(|look| text_height(&look.label, SMALL, names - 10.0)).fold(0.0, f64::max);
        let column = (full_width() - names) / COLUMNS.len() as f64;
        let heads = COLUMNS.iter().map(|head| text_height(head.name, NORMAL, column - GAP)).fold(0.0, f64::max);
        Self { names, row: (highest + 8.0).max(30.0), top: heads + 14.0, column }
    }

    pub(crate) fn height(&self, rows: usize) -> f64 {
        self.row * rows as f64
    }

    /// The middle of a row.
    pub(crate) fn at(&self, row: usize) -> f64 {
        self.top + (row as f64 + 0.5) * self.row
    }

    pub(crate) fn draw_names(&self, canvas: &mut Canvas, looks: &[Look]) {
        for (row, look) in looks.iter().enumerate() {
            let ink = Ink { size: SMALL, colour: INK, beside: Beside::End };
            canvas.lines_around(&look.label, self.names - 8.0, self.at(row), self.names - 10.0, ink);
        }
    }

    /// The panel of a column, beside `left` pixels for numbers and with `right` pixels free behind it.
    pub(crate) fn panel(&self, index: usize, rows: usize, (left, right): (f64, f64), x: Axis) -> Panel {
        Panel {
            left: self.names + index as f64 * self.column + left,
            top: self.top,
            width: self.column - left - right,
            height: self.height(rows),
            x,
            y: Axis::Linear { from: 0.0, to: 1.0 },
        }
    }

    /// Draws the grid of a column and its name, the latter from the column's left end.
    pub(crate) fn draw_column(&self, canvas: &mut Canvas, panel: &Panel, index: usize) {
        let left = self.names + index as f64 * self.column;
        canvas.lines(COLUMNS[index].name, left, 9.0, self.column - GAP, Ink::text(Beside::Start));
        panel.draw_x_grid(canvas);
    }
}

/// Aggregate goodput, Jain's index and the 95th percentile of the RTT, one row for each case. With several seeds,
/// whiskers show the 95 % confidence intervals.
pub(crate) fn summary(comparison: &Comparison, looks: &[Look]) -> Svg {
    let rows = Rows::of(looks);
    let height = rows.top + rows.height(looks.len()) + 26.0;
    let note = note_of_means("Means", &comparison.seeds);
    draw("Aggregate goodput, Jain's index and RTT of each case", &note, height, |canvas| {
        rows.draw_names(canvas, looks);
        for (index, column) in COLUMNS.iter().enumerate() {
            let means: Vec<Option<Mean>> = comparison.cases.iter().map(|case| Mean::of(case, column)).collect();
            let highest = means.iter().flatten().map(Mean::most).fold(0.0, f64::max);
            let x = match column.range.greatest {
                to if to.is_finite() => Axis::Linear { from: 0.0, to },
                _ => Axis::from_zero(highest, 4),
            };
            draw_column(canvas, &rows, index, x, &means, looks);
        }
    })
}

fn draw_column(canvas: &mut Canvas, rows: &Rows, index: usize, x: Axis, means: &[Option<Mean>], looks: &[Look]) {
    let name = COLUMNS[index].name;
    let texts: Vec<String> = means.iter().map(|mean| written(mean.as_ref(), x)).collect();
    let widest = texts.iter().map(|text| text_width(text, SMALL)).fold(0.0, f64::max);
    // Behind the end of the axis a text has room.
    let panel = rows.panel(index, looks.len(), (0.0, (widest + 12.0).max(GAP)), x);
    rows.draw_column(canvas, &panel, index);
    for (row, ((mean, look), text)) in means.iter().zip(looks).zip(&texts).enumerate() {
        let y = rows.at(row);
        let Some(mean) = mean else {
            canvas.text(text, panel.left + 6.0, y, Ink::label(Beside::Start));
            continue;
        };
        let title = format!("{}: {name} {}", look.label, number(mean.value));
        canvas.titled(&title, |canvas| {
            let end = panel.x_at(mean.value);
            canvas.rectangle(panel.left, y - 9.0, end - panel.left, 18.0, look.colour, 1.0);
            draw_interval(canvas, &panel, Along::X, y, (mean.low, mean.high), Pen::new(INK, 1.5));
        });
        let ink = Ink { size: SMALL, colour: INK, beside: Beside::Start };
        canvas.text(text, panel.x_at(mean.high.max(mean.value)) + 6.0, y, ink);
    }
}

fn written(mean: Option<&Mean>, x: Axis) -> String {
    let Some(Mean { value, .. }) = mean else { return "none".to_owned() };
    if x == (Axis::Linear { from: 0.0, to: 1.0 }) {
        format!("{value:.3}")
    } else if *value >= 100.0 {
        number(value.round())
    } else if *value >= 1.0 || *value == 0.0 {
        format!("{value:.1}")
    } else {
        number(*value)
    }
}
