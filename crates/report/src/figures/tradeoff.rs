//! Aggregate goodput against round-trip time: one point for each case, the best towards the top left.

use super::bars::Mean;
use super::canvas::{Axis, Beside, Ink, MARGIN_LEFT, Panel, Pen, SMALL, Svg, WIDTH, draw, fitted, text_width};
use crate::style::{GRID, INK, Look, PAPER};
use scenario::{CaseResult, Comparison};

const ROW: f64 = 24.0;

/// `None` where no case has an RTT.
pub(crate) fn tradeoff(comparison: &Comparison, looks: &[Look]) -> Option<Svg> {
    let point = |(index, case): (usize, &CaseResult)| {
        let rtt = Mean::of(case, |run| run.rtt_ms.map(|rtt| rtt.p95))?;
        Some((index, rtt, Mean::of(case, |run| Some(run.aggregate_goodput_mbps))?))
    };
    let points: Vec<(usize, Mean, Mean)> = comparison.cases.iter().enumerate().filter_map(point).collect();
    // An interval may reach below every round trip that there was: the axis follows the means.
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
        panel.draw_x(canvas, &format!("RTT, 95th percentile (ms){scale}"));
        for (index, rtt, goodput) in &points {
            let colour = looks[*index].colour;
            let (x, y) = panel.at(rtt.value, goodput.value);
            canvas.line((panel.x_at(rtt.low), y), (panel.x_at(rtt.high), y), Pen::new(colour, 1.5));
            canvas.line((x, panel.y_at(goodput.low)), (x, panel.y_at(goodput.high)), Pen::new(colour, 1.5));
            canvas.circle((x, y), 10.5, PAPER);
            canvas.circle((x, y), 9.0, colour);
            let inside = Ink { size: SMALL, colour: PAPER, beside: Beside::Middle };
            canvas.text(&(index + 1).to_string(), x, y, inside);
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
