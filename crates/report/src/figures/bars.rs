//! Bars: goodput of each host, and the headline figures of each case.

use super::canvas::{
    Axis, Beside, Canvas, Ink, MARGIN_LEFT, MARGIN_RIGHT, Panel, Pen, SMALL, Svg, WIDTH, draw, fitted, number,
    text_width,
};
use super::lines::{Entry, draw_legend, legend_height};
use crate::style::{Colour, FlowLooks, GRID, INK, LIMIT, Look, MUTED};
use scenario::{CaseSummary, Comparison, RunResult, Spread};

/// Goodput of a host and how it is drawn.
struct Bar {
    host: u16,
    goodput_mbps: f64,
    colour: Colour,
}

/// Hosts of one run, or of one case.
struct Group {
    look: Option<Look>,
    bars: Vec<Bar>,
}

/// Goodput of each host of one run.
pub(crate) fn goodput_of_run(run: &RunResult) -> Option<Svg> {
    let looks = FlowLooks::of(run);
    let entries: Vec<Entry> = match looks.legend() {
        Ok(kinds) if looks.by_kind() => kinds.into_iter().map(Entry::Box).collect(),
        _ => Vec::new(),
    };
    // Colours that stand for hosts say no more than the numbers below the bars: here all are one.
    let plain = crate::style::host(0, 1);
    let colour = |flow: &scenario::FlowResult| if looks.by_kind() { looks.colour(flow) } else { plain };
    let group = Group { look: None, bars: bars(run, colour) };
    goodput(&[group], entries, "Goodput of each host")
}

/// Goodput of each host, case by case; of a case with several seeds the first.
pub(crate) fn goodput_of_cases(comparison: &Comparison, looks: &[Look]) -> Option<Svg> {
    // With their numbers, for a name that does not fit below its bars.
    let numbered = looks
        .iter()
        .enumerate()
        .map(|(index, look)| Look { label: format!("{}  {}", index + 1, look.label), colour: look.colour });
    let numbered: Vec<Look> = numbered.collect();
    let group = |(case, look): (&scenario::CaseResult, &Look)| {
        let run = case.runs.first()?;
        Some(Group { look: Some(look.clone()), bars: bars(run, |_| look.colour) })
    };
    let groups: Vec<Group> = comparison.cases.iter().zip(&numbered).filter_map(group).collect();
    let entries = numbered.iter().cloned().map(Entry::Box).collect();
    goodput(&groups, entries, "Goodput of each host, case by case")
}

fn bars(run: &RunResult, colour: impl Fn(&scenario::FlowResult) -> Colour) -> Vec<Bar> {
    let mut bars: Vec<Bar> = Vec::new();
    for flow in &run.flows {
        let colour = colour(flow);
        match bars.iter_mut().find(|bar| bar.host == flow.host && bar.colour == colour) {
            Some(bar) => bar.goodput_mbps += flow.goodput_mbps,
            None => bars.push(Bar { host: flow.host, goodput_mbps: flow.goodput_mbps, colour }),
        }
    }
    bars
}

fn goodput(groups: &[Group], entries: Vec<Entry>, title: &str) -> Option<Svg> {
    let count: usize = groups.iter().map(|group| group.bars.len()).sum();
    if count == 0 {
        return None;
    }
    let highest = groups.iter().flat_map(|group| &group.bars).map(|bar| bar.goodput_mbps).fold(0.0, f64::max);
    let entries: Vec<Entry> = entries.into_iter().chain([Entry::Limit("equal share".to_owned())]).collect();
    let top = legend_height(&entries) + 30.0;
    let panel = Panel {
        left: MARGIN_LEFT,
        top,
        width: WIDTH - MARGIN_LEFT - MARGIN_RIGHT,
        height: 210.0,
        x: Axis::Linear { from: 0.0, to: 1.0 },
        y: Axis::from_zero(highest, 8),
    };
    let below = if groups.len() > 1 { 52.0 } else { 46.0 };
    Some(draw(title, panel.bottom() + below, |canvas| {
        draw_legend(canvas, &entries);
        panel.draw_y(canvas, "goodput (Mb/s)");
        canvas.line((panel.left, panel.bottom()), (panel.right(), panel.bottom()), Pen::new(MUTED, 1.0));
        let space = panel.width / (count as f64 + (groups.len() as f64 - 1.0) * 1.5 + 0.5);
        let mut left = panel.left + space * 0.25;
        for group in groups {
            draw_group(canvas, &panel, group, left, space);
            left += space * (group.bars.len() as f64 + 1.5);
        }
        if groups.len() == 1 {
            canvas.text("host", panel.left + panel.width / 2.0, panel.bottom() + 31.0, Ink::label(Beside::Middle));
        }
    }))
}

fn draw_group(canvas: &mut Canvas<'_>, panel: &Panel, group: &Group, left: f64, space: f64) {
    let width = (space * 0.8).min(46.0);
    for (index, bar) in group.bars.iter().enumerate() {
        let middle = left + (index as f64 + 0.5) * space;
        let top = panel.y_at(bar.goodput_mbps);
        canvas.rectangle(middle - width / 2.0, top, width, panel.bottom() - top, bar.colour, 1.0);
        let every = ((text_width("99", SMALL) + 4.0) / space).ceil() as usize;
        if index % every.max(1) == 0 {
            canvas.text(&bar.host.to_string(), middle, panel.bottom() + 14.0, Ink::label(Beside::Middle));
        }
    }
    let right = left + group.bars.len() as f64 * space;
    let sum: f64 = group.bars.iter().map(|bar| bar.goodput_mbps).sum();
    let share = panel.y_at(sum / group.bars.len().max(1) as f64);
    canvas.line((left, share), (right, share), Pen::new(LIMIT, 1.5));
    if let Some(look) = &group.look {
        let room = right - left + space;
        let ink = Ink { size: SMALL, colour: INK, beside: Beside::Middle };
        let number = look.label.split(' ').next().unwrap_or_default();
        let label = if text_width(&look.label, SMALL) <= room { &look.label } else { number };
        canvas.text(label, (left + right) / 2.0, panel.bottom() + 34.0, ink);
    }
}

/// One column of the summary.
struct Column {
    name: &'static str,
    highest: Option<f64>,
    spread: fn(&CaseSummary) -> Option<Spread>,
}

const COLUMNS: [Column; 3] = [
    Column { name: "aggregate goodput (Mb/s)", highest: None, spread: |summary| Some(summary.aggregate_goodput_mbps) },
    Column { name: "Jain's index", highest: Some(1.0), spread: |summary| summary.jain_index },
    Column { name: "RTT, 95th percentile (ms)", highest: None, spread: |summary| summary.rtt_p95_ms },
];

/// Aggregate goodput, Jain's index and the 95 % quantile of the RTT, one row for each case; where a case ran with
/// several seeds, a whisker from the least to the greatest.
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
            let spreads: Vec<Option<Spread>> =
                comparison.cases.iter().map(|case| (column.spread)(&case.summary)).collect();
            let highest = spreads.iter().flatten().map(|spread| spread.max).fold(0.0, f64::max);
            let panel = Panel {
                left: names + index as f64 * (width + GAP),
                top: TOP,
                width,
                height,
                x: column.highest.map_or_else(|| Axis::from_zero(highest, 4), |to| Axis::Linear { from: 0.0, to }),
                y: Axis::Linear { from: 0.0, to: 1.0 },
            };
            draw_column(canvas, &panel, column.name, &spreads, looks);
        }
    })
}

fn draw_column(canvas: &mut Canvas<'_>, panel: &Panel, name: &str, spreads: &[Option<Spread>], looks: &[Look]) {
    canvas.text(name, panel.left, panel.top - 20.0, Ink::text(Beside::Start));
    for tick in panel.x.ticks(4) {
        let x = panel.x_at(tick);
        canvas.line((x, panel.top), (x, panel.bottom()), Pen::new(GRID, 1.0));
        canvas.text(&number(tick), x, panel.bottom() + 13.0, Ink::label(Beside::Middle));
    }
    let row = panel.height / looks.len() as f64;
    for (index, (spread, look)) in spreads.iter().zip(looks).enumerate() {
        let y = panel.top + (index as f64 + 0.5) * row;
        let Some(spread) = spread else {
            canvas.text("none", panel.left + 6.0, y, Ink::label(Beside::Start));
            continue;
        };
        canvas.rectangle(panel.left, y - 9.0, panel.x_at(spread.mean) - panel.left, 18.0, look.colour, 1.0);
        let end = if spread.max > spread.min {
            canvas.line((panel.x_at(spread.min), y), (panel.x_at(spread.max), y), Pen::new(INK, 1.5));
            spread.max
        } else {
            spread.mean
        };
        let text = if panel.x == (Axis::Linear { from: 0.0, to: 1.0 }) {
            format!("{:.3}", spread.mean)
        } else {
            if spread.mean >= 100.0 { number(spread.mean.round()) } else { format!("{:.1}", spread.mean) }
        };
        canvas.text(&text, panel.x_at(end) + 6.0, y, Ink { size: SMALL, colour: INK, beside: Beside::Start });
    }
}
