//! Before and after: one row for each case of a comparison. It shows the round trips of its connections over time and,
//! beside them, the goodput of each host as bars. All rows share their axes.

use super::axis::Axis;
use super::bars::{Bar, draw_goodput, equal_share, goodput_axis};
use super::canvas::{
    Beside, Canvas, Ink, Margins, Panel, SMALL, Svg, draw, full_width, is_narrow, x_name_height, y_name_height,
};
use super::lines::{
    Entry, TIME, TimePanel, draw_legend, draw_lines, draw_title, draw_warmup, legend_height, title_height, warmup_entry,
};
use super::text::{text_height, text_width};
use crate::style::Look;

const HEIGHT: f64 = 140.0;
/// The part of the width for the cell with the plot of round trips, if the bars are beside it.
const LEFT_PART: f64 = 602.0 / 960.0;
/// Between that cell and the bars.
const GAP: f64 = 18.0;
/// Maximum columns of a line in that plot.
pub(crate) const COLUMNS: usize = 400;
const RTT: &str = "smoothed round-trip time (ms)";

/// One case.
pub(crate) struct Row {
    /// The round trips.
    pub(crate) rtt: TimePanel,
    pub(crate) bars: Vec<Bar>,
    /// The headline in a few words.
    pub(crate) headline: String,
}

/// Draws the rows. The legend explains `policies`, unless the row titles do.
pub(crate) fn draw_cases(rows: &[Row], policies: Vec<Look>, note: &str) -> Option<Svg> {
    if rows.iter().all(|row| row.rtt.lines.is_empty() && row.bars.is_empty()) {
        return None;
    }
    let mut entries: Vec<Entry> = policies.into_iter().map(Entry::Bar).collect();
    entries.push(equal_share(rows.iter().flat_map(|row| &row.bars)));
    entries.extend(warmup_entry(rows.iter().map(|row| row.rtt.warmup_s)));
    let (time, rtt) = rtt_axes(rows);
    let goodput = goodput_axis(rows.iter().map(|row| row.bars.as_slice()));
    let narrow = is_narrow();
    let left_cell = if narrow { full_width() } else { full_width() * LEFT_PART };
    let (left, right) = (Margins::of(time, left_cell, [rtt], HEIGHT), Margins::of_y(goodput, HEIGHT));
    let beside = if narrow { right.left } else { left_cell + GAP + right.left };
    let width = left_cell - left.left - left.right;
    let y_name = y_name_height(RTT, rtt, left_cell);
    let above = |row: &Row| {
        let (title, headline) = widths(row);
        let title = row.rtt.title.as_ref().map_or(0.0, |look| title_height(look, title));
        title.max(text_height(&row.headline, SMALL, headline) + 8.0) + y_name
    };
    let of_plot = HEIGHT + x_name_height(TIME, time, width);
    let down = if narrow { of_plot + y_name_height(RTT, goodput, left_cell) } else { 0.0 };
    let below = if narrow { down + HEIGHT + 46.0 } else { of_plot };
    let mut tops = vec![legend_height(&entries)];
    for row in rows {
        tops.push(tops[tops.len() - 1] + above(row) + below);
    }
    let title = "Round trips over time and goodput of each host, case by case";
    Some(draw(title, note, tops[rows.len()], |canvas| {
        draw_legend(canvas, &entries);
        for (row, top) in rows.iter().zip(&tops) {
            let of_rtt = Panel { left: left.left, top: top + above(row), width, height: HEIGHT, x: time, y: rtt };
            let of_goodput = Panel {
                left: beside,
                top: of_rtt.top + down,
                width: full_width() - beside - right.right,
                x: Axis::Linear { from: 0.0, to: 1.0 },
                y: goodput,
                ..of_rtt
            };
            draw_heads(canvas, row, *top);
            draw_row(canvas, row, (&of_rtt, left), (&of_goodput, right));
        }
    }))
}

/// The widths for the title of a row and for its headline, beside each other.
fn widths(row: &Row) -> (f64, f64) {
    let headline = text_width(&row.headline, SMALL).min(full_width() / 2.0) + 1.0;
    (full_width() - headline - 20.0, headline)
}

fn draw_heads(canvas: &mut Canvas, row: &Row, top: f64) {
    let (title, headline) = widths(row);
    if let Some(look) = &row.rtt.title {
        draw_title(canvas, (0.0, top), look, title);
    }
    canvas.lines(&row.headline, full_width(), top + 14.0, headline, Ink::label(Beside::End));
}

fn draw_row(canvas: &mut Canvas, row: &Row, (left, margins): (&Panel, Margins), bars: (&Panel, Margins)) {
    let names = (TIME, RTT);
    canvas.data(left, names, |canvas| draw_warmup(canvas, left, row.rtt.warmup_s));
    left.draw_y(canvas, names.1, margins);
    left.draw_x(canvas, names.0);
    canvas.data(left, names, |canvas| draw_lines(canvas, left, &row.rtt, "limit"));
    draw_goodput(canvas, bars.0, bars.1, &row.bars);
}

/// Logarithmic if the round trips span more than a decade.
fn rtt_axes(rows: &[Row]) -> (Axis, Axis) {
    let duration = rows.iter().map(|row| row.rtt.duration_s).fold(1e-3, f64::max);
    let heights = || {
        let lines = rows.iter().flat_map(|row| row.rtt.lines.iter().flat_map(|line| &line.parts));
        lines.flatten().map(|(_, ms)| *ms)
    };
    let (lowest, highest) = (heights().fold(f64::INFINITY, f64::min), heights().fold(0.0, f64::max));
    (Axis::Linear { from: 0.0, to: duration }, Axis::around(lowest, highest, 6))
}
