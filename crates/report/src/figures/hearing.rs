//! Who hears whom, of runs with several cells or hidden stations: a map.
//!
//! Nodes of one cell and place that have the same of all others are one mark. Without places each cell is a column, its access
//! point on top. A host that roams has a ring in each place that it goes to.

use super::canvas::{Beside, Canvas, Ink, Pen, SMALL, draw, full_width};
use super::lines::{Entry, draw_legend, legend_height};
use super::text::{line_height, text_width};
use super::{Figure, note_of_run};
use crate::style::{self, INK, Look, MUTED, PAPER};
use lasthop_scenario::{NodeResult, RunResult};

const HEIGHT: f64 = 300.0;
/// Between a mark and the edge.
const ROOM: f64 = 60.0;
const RADIUS: f64 = 7.0;

/// What one mark stands for.
struct Mark {
    /// The places of its nodes.
    nodes: Vec<usize>,
    label: String,
    is_access_point: bool,
    /// The place of its cell, and where it is in metres, if that is known.
    cell: usize,
    at_m: Option<(f64, f64)>,
    /// Of a ring: the mark that it comes from.
    from: Option<usize>,
    at: (f64, f64),
}

/// What two marks have of each other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Hears,
    Senses,
    Disturbed,
}

/// `None` where all hear all in one cell.
pub(crate) fn hearing(run: &RunResult) -> Option<Figure> {
    if run.nodes.is_empty() {
        return None;
    }
    let names: Vec<&str> = run.cells.iter().map(|cell| cell.name.as_str()).collect();
    let cells = style::lines(&names);
    let marks = marks(run);
    let still = marks.iter().take_while(|mark| mark.from.is_none()).count();
    let levels =
        [(Level::Hears, "hear each other", 0), (Level::Senses, "only sense", 1), (Level::Disturbed, "only disturb", 2)];
    let pairs: Vec<_> = (0..still).flat_map(|one| (0..one).map(move |other| (one, other))).collect();
    let level = |(one, other): (usize, usize)| level(run, marks[one].nodes[0], marks[other].nodes[0]);
    let own = |(one, other): (usize, usize)| {
        marks[one].cell == marks[other].cell && (marks[one].is_access_point || marks[other].is_access_point)
    };
    let look = |label: &str, dash| Look { dash, ..Look::plain(label, MUTED) };
    let mut entries: Vec<Entry> = cells.iter().cloned().map(Entry::Box).collect();
    for (of, label, dash) in levels {
        if pairs.iter().any(|&pair| level(pair) == Some(of) && !own(pair)) {
            entries.push(Entry::Line(look(label, dash)));
        }
    }
    if still < marks.len() {
        entries.push(Entry::Line(Look { dash: 2, ..Look::plain("roams to the ring", INK) }));
    }
    let mut caption =
        "Squares are access points; a colour is a cell. Two without a line, or with a dotted one, are hidden from \
                       each other: they send at once, and collide at a receiver that hears both."
            .to_owned();
    if still < marks.len() {
        caption += " Of a ring, where a host roams to, only the line to its access point is drawn.";
    }
    let top = legend_height(&entries);
    let svg = draw("Who hears whom", &note_of_run(run), top + HEIGHT, |canvas| {
        draw_legend(canvas, &entries);
        let at = |mark: usize| (marks[mark].at.0, top + marks[mark].at.1);
        // Those of a cell lie on top.
        for is_own in [false, true] {
            for &(one, other) in pairs.iter().filter(|pair| own(**pair) == is_own) {
                let Some(level) = level((one, other)) else { continue };
                let dash = levels.iter().find(|(of, ..)| *of == level).map_or(0, |(.., dash)| *dash);
                let colour = if is_own { cells[marks[one].cell].colour } else { MUTED };
                let width = if is_own { 3.0 } else { 1.2 };
                canvas.line(at(one), at(other), Pen { dash, ..Pen::new(colour, width) });
            }
        }
        for (number, mark) in marks.iter().enumerate() {
            let Some(from) = mark.from else { continue };
            let access_point = marks.iter().position(|other| other.is_access_point && other.cell == mark.cell);
            if let Some(access_point) = access_point {
                canvas.line(at(number), at(access_point), Pen::new(cells[mark.cell].colour, 3.0));
            }
            canvas.line(at(from), at(number), Pen { dash: 2, ..Pen::new(INK, 1.2) });
        }
        for (number, mark) in marks.iter().enumerate() {
            canvas.titled(&title(run, mark), |canvas| draw_mark(canvas, mark, at(number), cells[mark.cell].colour));
        }
    });
    Some(Figure { name: "hearing".into(), title: "Who hears whom".into(), caption, svg: svg.text })
}

fn draw_mark(canvas: &mut Canvas, mark: &Mark, (x, y): (f64, f64), colour: style::Colour) {
    if mark.is_access_point {
        canvas.rectangle(x - RADIUS, y - RADIUS, 2.0 * RADIUS, 2.0 * RADIUS, colour, 1.0);
    } else {
        canvas.circle((x, y), RADIUS, colour);
        if mark.from.is_some() {
            canvas.circle((x, y), RADIUS - 2.5, PAPER);
        }
    }
    let (width, height) = (text_width(&mark.label, SMALL), line_height(SMALL));
    // Away from the lines, which are between the marks.
    let top = if mark.at.1 < HEIGHT / 2.0 { y - RADIUS - 4.0 - height } else { y + RADIUS + 4.0 };
    canvas.rectangle(x - width / 2.0 - 2.0, top, width + 4.0, height, PAPER, 0.8);
    canvas.text(&mark.label, x, top + height / 2.0, Ink::label(Beside::Middle));
}

fn title(run: &RunResult, mark: &Mark) -> String {
    if mark.from.is_some() {
        return format!("{}, in {}", mark.label, run.cells[mark.cell].name);
    }
    let heard = run.nodes[mark.nodes[0]].hears.len();
    let others = run.nodes.len() - 1;
    format!("{}, in {}: hears {heard} of {others}", mark.label, run.cells[mark.cell].name)
}

/// What the one has of the other.
fn level(run: &RunResult, one: usize, other: usize) -> Option<Level> {
    let NodeResult { hears, senses, disturbed_by, .. } = &run.nodes[one];
    let has = |of: &[u16]| of.contains(&(other as u16));
    [(hears, Level::Hears), (senses, Level::Senses), (disturbed_by, Level::Disturbed)]
        .into_iter()
        .find_map(|(of, level)| has(of).then_some(level))
}

fn marks(run: &RunResult) -> Vec<Mark> {
    let hosts = run.nodes.len() - run.cells.len();
    let mut marks: Vec<Mark> = Vec::new();
    for (place, node) in run.nodes.iter().enumerate() {
        let is_access_point = place >= hosts;
        let alike = |mark: &Mark| !mark.is_access_point && !is_access_point && are_alike(run, mark.nodes[0], place);
        match marks.iter_mut().find(|mark| alike(mark)) {
            Some(mark) => {
                mark.nodes.push(place);
                mark.label = format!("{} to {}", run.nodes[mark.nodes[0]].name, node.name);
            }
            None => marks.push(Mark {
                nodes: vec![place],
                label: node.name.clone(),
                is_access_point,
                cell: node.cell.into(),
                at_m: node.at_m,
                from: None,
                at: (0.0, 0.0),
            }),
        }
    }
    add_rings(run, &mut marks);
    place(run, &mut marks);
    marks
}

/// A ring for each place that a host goes to and has not been before.
fn add_rings(run: &RunResult, marks: &mut Vec<Mark>) {
    for node in 0..run.nodes.len() - run.cells.len() {
        let Some(mut from) = marks.iter().position(|mark| mark.nodes.first() == Some(&node)) else { continue };
        for roam in run.roams.iter().filter(|roam| usize::from(roam.host) == node) {
            let (cell, at_m) = (usize::from(roam.to), roam.at_m);
            let is_it = |mark: &Mark| mark.nodes.contains(&node) && mark.cell == cell && mark.at_m == at_m;
            from = marks.iter().position(is_it).unwrap_or_else(|| {
                let nodes = marks[from].nodes.clone();
                let label = format!("{}, from {} s", run.nodes[node].name, roam.at_s);
                marks.push(Mark { nodes, label, is_access_point: false, cell, at_m, from: Some(from), at: (0.0, 0.0) });
                marks.len() - 1
            });
        }
    }
}

/// Whether two are of one cell and place, hear each other, and have the same of all others.
fn are_alike(run: &RunResult, one: usize, other: usize) -> bool {
    let (here, there) = (&run.nodes[one], &run.nodes[other]);
    let others = (0..run.nodes.len()).filter(|&node| node != one && node != other);
    let goes = |node: usize| {
        let own = run.roams.iter().filter(move |roam| usize::from(roam.host) == node);
        own.map(|roam| (roam.at_s.to_bits(), roam.to, roam.at_m)).collect::<Vec<_>>()
    };
    here.cell == there.cell
        && goes(one) == goes(other)
        && here.at_m == there.at_m
        && level(run, one, other) == Some(Level::Hears)
        && others.into_iter().all(|node| level(run, one, node) == level(run, other, node))
}

/// Puts the marks where they are, or where they can be told apart.
fn place(run: &RunResult, marks: &mut [Mark]) {
    let places: Vec<_> = marks.iter().filter_map(|mark| mark.at_m).collect();
    if places.len() == marks.len() {
        let ends = |of: fn(&(f64, f64)) -> f64| {
            let all = places.iter().map(of);
            (all.clone().fold(f64::INFINITY, f64::min), all.fold(f64::NEG_INFINITY, f64::max))
        };
        let ((left, right), (low, high)) = (ends(|at| at.0), ends(|at| at.1));
        let (width, height) = (full_width() - 2.0 * ROOM, HEIGHT - 2.0 * ROOM);
        // Along and across have scales of their own: places in a row would lie on each other.
        let along = |x: f64, from: f64, to: f64, room: f64| {
            if to > from { (x - from) / (to - from) * room } else { room / 2.0 }
        };
        for (mark, (x, y)) in marks.iter_mut().zip(places) {
            mark.at = (ROOM + along(x, left, right, width), HEIGHT - ROOM - along(y, low, high, height));
        }
        return;
    }
    let column = (full_width() - 2.0 * ROOM) / run.cells.len() as f64;
    for cell in 0..run.cells.len() {
        let of_cell = |mark: &&mut Mark| mark.cell == cell;
        let left = ROOM + cell as f64 * column;
        let hosts = marks.iter_mut().filter(of_cell).filter(|mark| !mark.is_access_point).count();
        let mut number = 0;
        for mark in marks.iter_mut().filter(of_cell) {
            if mark.is_access_point {
                mark.at = (left + column / 2.0, ROOM / 2.0);
                continue;
            }
            // In a bow, so that lines between them do not lie on each other.
            let share = (number as f64 + 0.5) / hosts as f64;
            let bow = 1.0 - (2.0 * share - 1.0).powi(2);
            mark.at = (left + share * column, HEIGHT - 1.6 * ROOM + bow * 0.6 * ROOM);
            number += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_scenario::{CellResult, RoamResult};

    fn node(name: &str, hears: &[u16]) -> NodeResult {
        let hears = hears.to_vec();
        NodeResult { name: name.into(), cell: 0, at_m: None, hears, senses: Vec::new(), disturbed_by: Vec::new() }
    }

    #[test]
    fn hosts_that_are_alike_are_one_mark_and_hidden_ones_have_no_line() {
        let mut run = lasthop_study::whole_result();
        // Two that hear each other, and one that hears the access point alone.
        run.roams = Vec::new();
        run.nodes = vec![node("a-1", &[1, 3]), node("a-2", &[0, 3]), node("b", &[3]), node("access-point", &[0, 1, 2])];
        let svg = hearing(&run).expect("a figure").svg;
        for (shape, count) in [("<circle", 2), ("<line", 2), ("a-1 to a-2, in", 1), ("b, in", 1)] {
            assert_eq!(svg.matches(shape).count(), count, "{shape}: {svg}");
        }
        run.nodes = Vec::new();
        assert!(hearing(&run).is_none());
    }

    #[test]
    fn a_host_that_roams_has_a_ring_where_it_has_not_been_before() {
        let mut run = lasthop_study::whole_result();
        let cell = run.cells[0].clone();
        run.cells = ["hall", "attic"].map(|name| CellResult { name: name.into(), ..cell.clone() }).into();
        let attic = NodeResult { cell: 1, ..node("attic", &[]) };
        run.nodes = vec![node("laptop", &[1]), node("hall", &[0]), attic];
        let there = run.roams[0].clone();
        let roam = |at_s, to| RoamResult { host: 0, at_s, to, at_m: None, ..there.clone() };
        run.roams = vec![roam(40.0, 1), roam(70.0, 0), roam(90.0, 1)];
        let svg = hearing(&run).expect("a figure").svg;
        // The laptop, and a ring of two circles.
        for (shape, count) in [("<circle", 3), ("laptop, from 40 s, in attic", 1), ("roams to the ring", 1)] {
            assert_eq!(svg.matches(shape).count(), count, "{shape}: {svg}");
        }
        run.roams = Vec::new();
        let still = hearing(&run).expect("a figure").svg;
        let lines = |svg: &str| svg.matches("<line").count();
        // From the laptop to the ring, from there to the access point, and in the legend.
        assert_eq!((lines(&svg) - lines(&still), still.matches("<circle").count()), (3, 1));
    }
}
