//! Intervals around marks, and what lies outside an axis: an arrow at its edge says so.

use super::canvas::{Canvas, Panel, Pen};
use crate::style::Colour;

/// Half the width of the cap at an end, and of an arrow; the length of an arrow.
const CAP: f64 = 4.0;
const ARROW: f64 = 8.0;

/// The direction of an interval.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Along {
    X,
    Y,
}

/// Draws a bar from `low` to `high` along an axis of a panel. `across` is its place on the other axis, in pixels. An end that
/// is not on the axis is an arrow at its edge. A bar too short to be seen behind a mark is not drawn.
pub(crate) fn draw_interval(canvas: &mut Canvas, panel: &Panel, along: Along, across: f64, ends: (f64, f64), pen: Pen) {
    let (axis, place) = match along {
        Along::X => (panel.x, (|panel, number| Panel::x_at(panel, number)) as fn(&Panel, f64) -> f64),
        Along::Y => (panel.y, (|panel, number| Panel::y_at(panel, number)) as fn(&Panel, f64) -> f64),
    };
    let (low, high) = ends;
    let (from, to) = (place(panel, low), place(panel, high));
    let outside = !axis.covers(low) || !axis.covers(high);
    if !low.is_finite() || !high.is_finite() || (!outside && (to - from).abs() < 2.0) {
        return;
    }
    let at = |along_it: f64, aside: f64| match along {
        Along::X => (along_it, across + aside),
        Along::Y => (across + aside, along_it),
    };
    canvas.kind("bar", |canvas| {
        canvas.line(at(from, 0.0), at(to, 0.0), pen);
        for (number, end) in [(low, from), (high, to)] {
            if axis.covers(number) {
                canvas.line(at(end, -CAP), at(end, CAP), pen);
            } else {
                draw_beyond(canvas, panel, along, across, number, pen.colour);
            }
        }
    });
}

/// Draws an arrow at the edge of an axis towards a number that is outside. `across` is its place on the other axis, in pixels.
pub(crate) fn draw_beyond(canvas: &mut Canvas, panel: &Panel, along: Along, across: f64, number: f64, colour: Colour) {
    let (axis, begin, end) = match along {
        Along::X => (panel.x, panel.left, panel.right()),
        Along::Y => (panel.y, panel.bottom(), panel.top),
    };
    let is_below = number < axis.ends().0;
    let tip = if is_below { begin } else { end };
    // From the tip towards the middle of the axis.
    let back = tip + ARROW * if is_below { (end - begin).signum() } else { (begin - end).signum() };
    let at = |along_it: f64, aside: f64| match along {
        Along::X => (along_it, across + aside),
        Along::Y => (across + aside, along_it),
    };
    canvas.kind("beyond", |canvas| canvas.polygon(&[at(tip, 0.0), at(back, -CAP), at(back, CAP)], colour));
}
