//! Aggregate goodput against round-trip time: one point for each case. The best cases are at the top left.

use super::axis::Axis;
use super::bars::{COLUMNS, Mean};
use super::canvas::{Beside, Ink, MARGIN_LEFT, Panel, Pen, SMALL, Svg, WIDTH, draw, fitted, text_width};
use crate::style::{GRID, INK, Look, PAPER};
use lasthop_scenario::{CaseResult, Comparison};

const ROW: f64 = 24.0;

/// Radius of the circle around a number.
const RADIUS: f64 = 9.0;

/// The position of each point's number: on the point, or the nearest place without another number.
fn numbers_beside(places: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let apart = 2.0 * RADIUS + 3.0;
    let mut taken: Vec<(f64, f64)> = Vec::new();
    for (x, y) in places {
        let ring = |ring: u32| {
            (0..8 * ring).map(move |step| {
                let angle = f64::from(step) / f64::from(8 * ring) * std::f64::consts::TAU;
                (x + apart * f64::from(ring) * angle.cos(), y + apart * f64::from(ring) * angle.sin())
            })
        };
        let is_free = |at: &(f64, f64)| taken.iter().all(|other| (other.0 - at.0).hypot(other.1 - at.1) >= apart - 0.5);
        let free = std::iter::once((*x, *y)).chain((1..20).flat_map(ring)).find(is_free);
        taken.push(free.unwrap_or((*x, *y)));
    }
    taken
}

/// `None` if no case has an RTT.
pub(crate) fn tradeoff(comparison: &Comparison, looks: &[Look]) -> Option<Svg> {
    let point = |(index, case): (usize, &CaseResult)| {
        let [goodput, _, rtt] = &COLUMNS;
        Some((index, Mean::of(case, rtt)?, Mean::of(case, goodput)?))
    };
    let points: Vec<(usize, Mean, Mean)> = comparison.cases.iter().enumerate().filter_map(point).collect();
    // An interval may extend below every measured round trip, so the axis follows the means.
    let lowest = points.iter().map(|(_, rtt, _)| rtt.low.max(0.8 * rtt.value)).fold(f64::INFINITY, f64::min);
    let slowest = points.iter().map(|(_, rtt, _)| rtt.high).fold(0.0, f64::max);
    let most = points.iter().map(|(.., goodput)| goodput.high).fold(0.0, f64::max);
    if points.is_empty() {
        return None;
    }
    let longest = looks.iter().map(|look| text_width(&look.label, SMALL)).fold(0.0, f64::max);
    let legend = (longest + 46.0).min(300.0);
    let panel = Panel {
        left: MARGIN_LEFT,
        top: 30.0,
        width: WIDTH - MARGIN_LEFT - legend - 24.0,
        height: (looks.len() as f64 * ROW).max(250.0),
        x: Axis::around(lowest * 0.8, slowest * 1.05, 6),
        y: Axis::from_zero(most * 1.05, 8),
    };
    let svg = draw("Aggregate goodput against RTT of each case", panel.bottom() + 46.0, |canvas| {
        panel.draw_y(canvas, "aggregate goodput (Mb/s)");
        for tick in panel.x.ticks((panel.width / 80.0) as usize) {
            canvas.line((panel.x_at(tick), panel.top), (panel.x_at(tick), panel.bottom()), Pen::new(GRID, 1.0));
        }
        let scale = if panel.x.is_log() { ", log scale" } else { "" };
        panel.draw_x(canvas, &format!("smoothed RTT, 95th percentile (ms){scale}"));
        for (index, rtt, goodput) in &points {
            let colour = looks[*index].colour;
            let (x, y) = panel.at(rtt.value, goodput.value);
            canvas.line((panel.x_at(rtt.low), y), (panel.x_at(rtt.high), y), Pen::new(colour, 1.5));
            canvas.line((x, panel.y_at(goodput.low)), (x, panel.y_at(goodput.high)), Pen::new(colour, 1.5));
            canvas.circle((x, y), 3.5, colour);
        }
        let places: Vec<(f64, f64)> = points.iter().map(|(_, rtt, mbps)| panel.at(rtt.value, mbps.value)).collect();
        for ((index, rtt, mbps), (place, number)) in points.iter().zip(places.iter().zip(numbers_beside(&places))) {
            let colour = looks[*index].colour;
            canvas.line(*place, number, Pen::new(colour, 1.0));
            let title = format!("{}: {:.2} Mb/s, RTT p95 {:.1} ms", looks[*index].label, mbps.value, rtt.value);
            canvas.titled(&title, |canvas| {
                canvas.circle(number, RADIUS + 1.5, PAPER);
                canvas.circle(number, RADIUS, colour);
                let inside = Ink { size: SMALL, colour: PAPER, beside: Beside::Middle };
                canvas.text(&(index + 1).to_string(), number.0, number.1, inside);
            });
        }
        for (index, look) in looks.iter().enumerate() {
            let (x, y) = (panel.right() + 36.0, panel.top + (index as f64 + 0.5) * ROW);
            canvas.circle((x, y), 9.0, look.colour);
            canvas.text(&(index + 1).to_string(), x, y, Ink { size: SMALL, colour: PAPER, beside: Beside::Middle });
            let label = fitted(&look.label, SMALL, legend - 46.0 + 8.0);
            canvas.text(&label, x + 16.0, y, Ink { size: SMALL, colour: INK, beside: Beside::Start });
        }
    });
    Some(svg)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_covers_another_and_a_free_point_has_its_number_on_it() {
        let places = [(100.0, 100.0), (101.0, 100.0), (100.0, 102.0), (99.0, 99.0), (300.0, 50.0)];
        let numbers = numbers_beside(&places);
        assert_eq!((numbers[0], numbers[4]), (places[0], places[4]));
        for (index, one) in numbers.iter().enumerate() {
            for other in &numbers[..index] {
                assert!((one.0 - other.0).hypot(one.1 - other.1) >= 2.0 * RADIUS, "{numbers:?}");
            }
        }
    }
}
