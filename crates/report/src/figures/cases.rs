//! Before and after: one row for each case of a comparison. It shows the round trips of its connections over time and,
//! beside them, the goodput of each host as bars. All rows share their axes.

use super::axis::Axis;
use super::bars::{Bar, draw_goodput, equal_share, goodput_axis};
use super::canvas::{Beside, Canvas, Ink, MARGIN_LEFT, MARGIN_RIGHT, Panel, SMALL, Svg, WIDTH, draw, fitted};
use super::lines::{Entry, TimePanel, draw_legend, draw_lines, draw_title, draw_warmup, legend_height};
use crate::style::{Look, SHADE};

/// Above the plots of a row: its title, then the names of the vertical axes.
const ABOVE: f64 = 30.0;
const TITLE: f64 = 24.0;
const HEIGHT: f64 = 140.0;
/// Below the plots: tick labels and names of the horizontal axes.
const BELOW: f64 = 44.0;
/// Width of the plot of round trips.
const LEFT_WIDTH: f64 = 540.0;
/// Maximum columns of a line in that plot.
pub(crate) const COLUMNS: usize = 400;

/// One case.
pub(crate) struct Row {
    /// The round trips.
    pub(crate) rtt: TimePanel,
    pub(crate) bars: Vec<Bar>,
    /// The headline in a few words.
    pub(crate) headline: String,
}

/// Draws the rows. The legend explains `policies`, unless the row titles do.
pub(crate) fn draw_cases(rows: &[Row], policies: Vec<Look>) -> Option<Svg> {
    if rows.iter().all(|row| row.rtt.lines.is_empty() && row.bars.is_empty()) {
        return None;
    }
    let mut entries: Vec<Entry> = policies.into_iter().map(Entry::Box).collect();
    entries.push(equal_share(rows.iter().flat_map(|row| &row.bars)));
    if rows.iter().any(|row| row.rtt.warmup_s > 0.0) {
        entries.push(Entry::Box(Look { label: "warm-up, left out of the result".to_owned(), colour: SHADE }));
    }
    let legend = legend_height(&entries);
    let row_height = TITLE + ABOVE + HEIGHT + BELOW;
    let (time, rtt) = rtt_axes(rows);
    let goodput = goodput_axis(rows.iter().map(|row| row.bars.as_slice()));
    let title = "Round trips over time and goodput of each host, case by case";
    Some(draw(title, legend + rows.len() as f64 * row_height, |canvas| {
        draw_legend(canvas, &entries);
        for (index, row) in rows.iter().enumerate() {
            let top = legend + index as f64 * row_height + TITLE + ABOVE;
            let left = Panel { left: MARGIN_LEFT, top, width: LEFT_WIDTH, height: HEIGHT, x: time, y: rtt };
            let beside = MARGIN_LEFT + LEFT_WIDTH + 32.0 + MARGIN_LEFT;
            let right = Panel {
                left: beside,
                width: WIDTH - beside - MARGIN_RIGHT,
                x: Axis::Linear { from: 0.0, to: 1.0 },
                y: goodput,
                ..left
            };
            draw_row(canvas, row, &left, &right);
        }
    }))
}

fn draw_row(canvas: &mut Canvas, row: &Row, left: &Panel, right: &Panel) {
    let names = ("time (s)", "round-trip time (ms)");
    canvas.data(left, names, |canvas| draw_warmup(canvas, left, row.rtt.warmup_s));
    if let Some(look) = &row.rtt.title {
        draw_title(canvas, left, look, ABOVE);
    }
    let headline = fitted(&row.headline, SMALL, right.right() - left.left);
    canvas.text(&headline, right.right(), right.top - ABOVE - 4.0, Ink::label(Beside::End));
    left.draw_y(canvas, names.1);
    left.draw_x(canvas, names.0);
    canvas.data(left, names, |canvas| draw_lines(canvas, left, &row.rtt, "limit"));
    draw_goodput(canvas, right, &row.bars);
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
