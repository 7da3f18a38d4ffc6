//! Aggregate goodput against round-trip time: one point for each case. The best cases are at the top left.

use super::axis::Axis;
use super::bars::{COLUMNS, Mean};
use super::canvas::{
    Beside, Ink, Margins, Panel, Pen, SMALL, Svg, draw, full_width, is_narrow, x_name_height, y_name_height,
};
use super::interval::{Along, draw_interval};
use super::marks::draw_sized_marker;
use super::note_of_means;
use super::text::{text_height, text_width};
use crate::style::{INK, Look};
use lasthop_scenario::{CaseResult, Comparison};

/// The names of the axes.
const RTT: &str = "smoothed RTT, 95th percentile (ms)";
const GOODPUT: &str = "aggregate goodput (Mb/s)";
/// From a panel to the markers of the legend, and from these to its text.
const AWAY: f64 = 36.0;
const TO_TEXT: f64 = 16.0;
/// The radius of a marker, and by how much one is larger below another.
const RADIUS: f64 = 5.0;
const LARGER: f64 = 2.5;

/// The radius of each marker, in the order of drawing: of several in one place, the earlier are larger and remain visible.
fn radii(places: &[(f64, f64)]) -> Vec<f64> {
    let is_near = |one: (f64, f64), other: (f64, f64)| (one.0 - other.0).hypot(one.1 - other.1) < RADIUS;
    let above = |at: usize| places[at + 1..].iter().filter(|other| is_near(places[at], **other)).count();
    (0..places.len()).map(|at| RADIUS + LARGER * above(at).min(8) as f64).collect()
}

/// `None` if no case has an RTT.
pub(crate) fn tradeoff(comparison: &Comparison, looks: &[Look]) -> Option<Svg> {
    let point = |(index, case): (usize, &CaseResult)| {
        let [goodput, _, rtt] = &COLUMNS;
        Some((&looks[index], Mean::of(case, rtt)?, Mean::of(case, goodput)?))
    };
    let points: Vec<(&Look, Mean, Mean)> = comparison.cases.iter().enumerate().filter_map(point).collect();
    if points.is_empty() {
        return None;
    }
    // An interval may extend below every measured round trip, so the axis follows the means: what is beyond is an arrow.
    let lowest = points.iter().map(|(_, rtt, _)| rtt.low.max(0.8 * rtt.value)).fold(f64::INFINITY, f64::min);
    let slowest = points.iter().map(|(_, rtt, _)| rtt.most()).fold(0.0, f64::max);
    let most = points.iter().map(|(.., goodput)| goodput.most()).fold(0.0, f64::max);
    let (x, y) = (Axis::around(lowest * 0.8, slowest * 1.05, 6), Axis::from_zero(most * 1.05, 8));
    let longest = looks.iter().map(|look| text_width(&look.label, SMALL)).fold(0.0, f64::max);
    let longest = longest.min(if is_narrow() { full_width() / 3.0 } else { 250.0 });
    let legend = AWAY + TO_TEXT + longest + 4.0;
    let row = looks.iter().map(|look| text_height(&look.label, SMALL, longest + 1.0)).fold(0.0, f64::max) + 9.0;
    let height = (looks.len() as f64 * row).max(250.0);
    let margins = Margins::of(x, full_width() - legend, [y], height);
    let panel = Panel {
        left: margins.left,
        top: y_name_height(GOODPUT, y, full_width()),
        width: full_width() - margins.left - legend,
        height,
        x,
        y,
    };
    let title = "Aggregate goodput against RTT of each case";
    let note = note_of_means("Means", &comparison.seeds);
    let svg = draw(title, &note, panel.bottom() + x_name_height(RTT, x, panel.width), |canvas| {
        panel.draw_y(canvas, GOODPUT, margins);
        panel.draw_x_grid(canvas);
        panel.draw_x_base(canvas, RTT);
        let places: Vec<(f64, f64)> = points.iter().map(|(_, rtt, mbps)| panel.at(rtt.value, mbps.value)).collect();
        for ((look, rtt, goodput), (x, y)) in points.iter().zip(&places) {
            let pen = Pen::new(look.colour, 1.5);
            draw_interval(canvas, &panel, Along::X, *y, (rtt.low, rtt.high), pen);
            draw_interval(canvas, &panel, Along::Y, *x, (goodput.low, goodput.high), pen);
        }
        for ((look, rtt, goodput), (place, radius)) in points.iter().zip(places.iter().zip(radii(&places))) {
            let title = format!("{}: {:.2} Mb/s, RTT p95 {:.1} ms", look.label, goodput.value, rtt.value);
            canvas.titled(&title, |canvas| draw_sized_marker(canvas, *place, look, radius));
        }
        for (index, look) in looks.iter().enumerate() {
            let (x, y) = (panel.right() + AWAY, panel.top + (index as f64 + 0.5) * row);
            draw_sized_marker(canvas, (x, y), look, RADIUS);
            let ink = Ink { size: SMALL, colour: INK, beside: Beside::Start };
            canvas.lines_around(&look.label, x + TO_TEXT, y, longest + 1.0, ink);
        }
    });
    Some(svg)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_below_others_is_larger_and_a_free_one_is_not() {
        let places = [(100.0, 100.0), (101.0, 100.0), (100.0, 102.0), (300.0, 50.0)];
        assert_eq!(radii(&places), [RADIUS + 2.0 * LARGER, RADIUS + LARGER, RADIUS, RADIUS]);
    }
}
