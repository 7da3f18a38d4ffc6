//! The congestion-avoidance state of each connection over time, one strip for each.

use super::axis::Axis;
use super::canvas::{Beside, Canvas, Ink, MARGIN_RIGHT, Panel, SMALL, Svg, WIDTH, draw};
use super::lines::{Entry, draw_legend, legend_height};
use crate::style::{Look, STATES, UNKNOWN_STATE, host_name};
use lasthop_scenario::{FlowSeries, RunResult};

/// Width for the names of connections.
const NAMES: f64 = 84.0;
/// Maximum cells over all strips. It bounds the size of the file.
const MOST_CELLS: usize = 12_000;

pub(crate) fn states(run: &RunResult, series: &FlowSeries) -> Option<Svg> {
    let flows = series.flow_ids();
    if flows.is_empty() {
        return None;
    }
    let look = |(label, colour): &(&str, _)| Look { label: (*label).to_owned(), colour: *colour };
    let entries: Vec<Entry> = STATES.iter().map(look).map(Entry::Box).collect();
    let strip = (260.0 / flows.len() as f64).clamp(7.0, 18.0);
    let top = legend_height(&entries) + 22.0;
    let panel = Panel {
        left: NAMES,
        top,
        width: WIDTH - NAMES - MARGIN_RIGHT,
        height: strip * flows.len() as f64,
        x: Axis::Linear { from: 0.0, to: run.duration_s.max(1e-3) },
        y: Axis::Linear { from: 0.0, to: flows.len() as f64 },
    };
    Some(draw("Congestion-avoidance state over time", panel.bottom() + 46.0, |canvas| {
        draw_legend(canvas, &entries);
        canvas.text("connection", NAMES - 8.0, top - 12.0, Ink::label(Beside::End));
        let columns = (MOST_CELLS / flows.len()).clamp(50, panel.width as usize);
        for (row, flow) in flows.iter().enumerate() {
            let strip_top = top + strip * row as f64;
            let every = (SMALL * 1.3 / strip).ceil() as usize;
            let host = run.flows.iter().find(|of| of.id == *flow).map_or(0, |of| of.host);
            let host = host_name(run, host);
            let label = if flows.len() == hosts(run) { host } else { format!("{flow} ({host})") };
            if row % every.max(1) == 0 {
                canvas.text(&label, NAMES - 8.0, strip_top + strip / 2.0, Ink::label(Beside::End));
            }
            canvas.data(&panel, ("time (s)", ""), |canvas| {
                draw_strip(canvas, &panel, (strip_top, strip), &label, &most_severe(&panel, series, *flow, columns));
            });
        }
        panel.draw_x(canvas, "time (s)");
    }))
}

fn hosts(run: &RunResult) -> usize {
    let mut hosts: Vec<u16> = run.flows.iter().map(|flow| flow.host).collect();
    hosts.dedup();
    hosts.len()
}

fn draw_strip(canvas: &mut Canvas, panel: &Panel, (top, height): (f64, f64), name: &str, severest: &[Option<u8>]) {
    let mut runs = runs(severest);
    runs.sort_by_key(|run| run.state);
    let each = panel.width / severest.len() as f64;
    for of_state in runs.chunk_by(|one, other| one.state == other.state) {
        let (state, colour) = STATES.get(usize::from(of_state[0].state)).copied().unwrap_or(("unknown", UNKNOWN_STATE));
        canvas.titled(&format!("{name}: {state}"), |canvas| {
            for run in of_state {
                let (left, width) = (panel.left + run.from as f64 * each, run.length as f64 * each);
                canvas.rectangle(left, top + 0.5, width, (height - 1.5).max(1.0), colour, 1.0);
            }
        });
    }
}

/// The most severe state in each column. A column without a sample repeats the one before.
fn most_severe(panel: &Panel, series: &FlowSeries, flow: u32, columns: usize) -> Vec<Option<u8>> {
    let mut severest: Vec<Option<u8>> = vec![None; columns];
    let mut last = None;
    let mut open = None;
    for sample in series.of_flow(flow) {
        let column = ((panel.x.place(sample.t_s) * columns as f64) as usize).min(columns - 1);
        if let (Some(state), Some(open)) = (last, open) {
            for between in &mut severest[open + 1..column.max(open + 1)] {
                *between = Some(state);
            }
        }
        severest[column] = severest[column].max(Some(sample.state));
        last = Some(sample.state);
        open = Some(column);
    }
    severest
}

struct Run {
    from: usize,
    length: usize,
    state: u8,
}

fn runs(states: &[Option<u8>]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (at, state) in states.iter().enumerate() {
        let Some(state) = *state else { continue };
        match runs.last_mut() {
            Some(run) if run.state == state && run.from + run.length == at => run.length += 1,
            _ => runs.push(Run { from: at, length: 1, state }),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_scenario::FlowSample;

    #[test]
    fn a_column_shows_its_most_severe_state_and_a_gap_what_was_before() {
        let mut series = FlowSeries::default();
        for (t_s, state) in [(0.0, 0), (1.1, 3), (1.2, 4), (1.3, 0), (4.0, 1), (9.0, 0)] {
            series.push(FlowSample { t_s, state, ..FlowSample::default() });
        }
        let axis = |to| Axis::Linear { from: 0.0, to };
        let panel = Panel { left: 0.0, top: 0.0, width: 100.0, height: 1.0, x: axis(10.0), y: axis(1.0) };
        let columns = most_severe(&panel, &series, 0, 10);
        let [open, disorder, loss] = [0, 1, 4].map(Some);
        assert_eq!(columns, [open, loss, open, open, disorder, disorder, disorder, disorder, disorder, open]);
        assert_eq!(runs(&columns).iter().map(|run| run.length).collect::<Vec<_>>(), [1, 1, 2, 5, 1]);
    }
}
