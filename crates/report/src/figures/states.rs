//! The congestion-avoidance state of each connection over time, one strip for each. QUIC has no such states.

use super::axis::Axis;
use super::canvas::{Beside, Canvas, Ink, Margins, Panel, SMALL, Svg, draw, full_width, x_name_height};
use super::lines::{Entry, TIME, draw_legend, legend_height, warmup_entry};
use super::note_of_run;
use super::text::text_width;
use crate::style::{Look, SHADE, STATES, UNKNOWN_STATE, host_name};
use lasthop_scenario::{FlowSeries, RunResult, Transport};

/// From the names of connections to their strips.
const AWAY: f64 = 8.0;
const HEAD: &str = "connection";
/// Maximum cells over all strips. It bounds the size of the file.
const MOST_CELLS: usize = 12_000;

pub(crate) fn states(run: &RunResult, series: &FlowSeries) -> Option<Svg> {
    let flows = shown(run, series);
    if flows.is_empty() {
        return None;
    }
    let mut entries: Vec<Entry> =
        STATES.iter().map(|(label, colour)| Entry::Box(Look::plain(label, *colour))).collect();
    entries.extend(warmup_entry([run.warmup_s].into_iter()));
    let labels: Vec<String> = flows.iter().map(|flow| label(run, *flow, &flows)).collect();
    let longest = labels.iter().map(String::as_str).chain([HEAD]).map(|label| text_width(label, SMALL));
    let names = longest.fold(0.0, f64::max) + AWAY;
    let strip = (260.0 / flows.len() as f64).clamp(7.0, 18.0);
    let top = legend_height(&entries) + 22.0;
    let x = Axis::Linear { from: 0.0, to: run.duration_s.max(1e-3) };
    let panel = Panel {
        left: names,
        top,
        width: full_width() - names - Margins::of(x, full_width() - names, [], 1.0).right,
        height: strip * flows.len() as f64,
        x,
        y: Axis::Linear { from: 0.0, to: flows.len() as f64 },
    };
    let height = panel.bottom() + x_name_height(TIME, x, panel.width);
    Some(draw("Congestion-avoidance state over time", &note_of_run(run), height, |canvas| {
        draw_legend(canvas, &entries);
        canvas.text(HEAD, names - AWAY, top - 12.0, Ink::label(Beside::End));
        let columns = (MOST_CELLS / flows.len()).clamp(50, panel.width as usize);
        for (row, (flow, label)) in flows.iter().zip(&labels).enumerate() {
            let strip_top = top + strip * row as f64;
            let every = (SMALL * 1.3 / strip).ceil() as usize;
            if row % every.max(1) == 0 {
                canvas.text(label, names - AWAY, strip_top + strip / 2.0, Ink::label(Beside::End));
            }
            canvas.data(&panel, (TIME, ""), |canvas| {
                draw_strip(canvas, &panel, (strip_top, strip), label, &most_severe(&panel, series, *flow, columns));
            });
        }
        // On top of the strips too, which are paler there.
        let warmup = panel.x_at(run.warmup_s) - panel.left;
        if warmup > 0.0 {
            let shade = |canvas: &mut Canvas| canvas.rectangle(panel.left, top, warmup, panel.height, SHADE, 0.6);
            canvas.data(&panel, (TIME, ""), shade);
        }
        panel.draw_x(canvas, TIME);
    }))
}

/// The connections of TCP that have rows. Of others `state_shares` is null too.
fn shown(run: &RunResult, series: &FlowSeries) -> Vec<u32> {
    let has_states = |id: &u32| run.flows.iter().all(|flow| flow.id != *id || flow.transport() == Transport::Tcp);
    series.flow_ids().into_iter().filter(has_states).collect()
}

/// The name of a connection among these: its host if each has one.
fn label(run: &RunResult, flow: u32, among: &[u32]) -> String {
    let host = run.flows.iter().find(|of| of.id == flow).map_or(0, |of| of.host);
    let host = host_name(run, host);
    if among.len() == hosts(run, among) { host } else { format!("{flow} ({host})") }
}

/// The hosts of these connections.
fn hosts(run: &RunResult, among: &[u32]) -> usize {
    let mut hosts: Vec<u16> = run.flows.iter().filter(|flow| among.contains(&flow.id)).map(|flow| flow.host).collect();
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
    use lasthop_scenario::{Build, FlowSample, HostsKind, Scenario};

    #[test]
    fn a_quic_connection_has_no_strip() {
        let toml = "[[hosts]]\nname = \"tcp\"\n[[hosts.flows]]\n[[hosts]]\n[[hosts.flows]]\nkind = \"quic\"\n";
        let scenario = Scenario::from_toml("scenario.toml", toml, &[]).expect("a scenario");
        let build = Build { version: "0.1.0".into(), commit: None, dirty: false };
        let run = lasthop_measure::begun(&scenario, build, HostsKind::Simulated).expect("a run");
        let mut series = FlowSeries::default();
        for flow in [0, 1] {
            series.push(FlowSample { flow, host: flow as u16, ..FlowSample::default() });
        }
        assert_eq!(shown(&run, &series), [0]);
        assert_eq!(label(&run, 0, &[0]), "tcp");
        assert!(states(&run, &series).is_some());
        let mut alone = FlowSeries::default();
        alone.push(FlowSample { flow: 1, host: 1, ..FlowSample::default() });
        assert!(states(&run, &alone).is_none());
    }

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
