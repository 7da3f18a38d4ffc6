//! Marks with confidence intervals, joined by lines: the figures of studies.

use super::axis::Axis;
use super::canvas::{
    Beside, Canvas, Ink, Margins, NORMAL, Panel, Pen, SMALL, Svg, TO_LABELS, draw, full_width, x_name, x_name_height,
    y_name_height,
};
use super::interval::{Along, draw_beyond, draw_interval};
use super::lines::{Entry, draw_legend, legend_height};
use super::text::{line_height, text_height};
use crate::style::{self, GRID, Look, MUTED, Marker, PAPER};
use lasthop_scenario::HostsKind;
use lasthop_study::{FigureResult, Level, LineResult, MarkResult, PanelResult};

/// The room above the title of a panel.
const ABOVE: f64 = 6.0;
/// The radius of a mark.
const RADIUS: f64 = 4.0;
/// The maximum number of marks on a line. A line with more is drawn without marks, which would cover it.
const MOST_MARKERS: usize = 40;

/// The styles of a figure's lines, the same in all panels.
struct Looks {
    lines: Vec<Look>,
    references: Vec<Look>,
}

/// A figure of a study.
pub(crate) fn draw_figure(figure: &FigureResult, hosts: HostsKind, note: &str) -> Svg {
    let looks = Looks::of(figure, hosts);
    let entries = looks.entries();
    let (columns, height) = match figure.panels.len() {
        0 | 1 => (1, 280.0),
        2..=4 => (2, 210.0),
        _ => (3, 150.0),
    };
    let cell = full_width() / columns as f64;
    let (x, levels) = level_axis(figure);
    // Each panel may have its own scale. On a common one, rates from 1 to 54 Mb/s would hide the lowest.
    let ys: Vec<Axis> = figure.panels.iter().map(|panel| upright_axis(figure, panel, columns == 3)).collect();
    let margins = Margins::of(levels.ticks(x), cell, ys.iter().copied(), height);
    let width = cell - margins.left - margins.right;
    let titles = figure.panels.iter().filter(|panel| !panel.label.is_empty());
    let title = titles.map(|panel| ABOVE + text_height(&panel.label, NORMAL, cell)).fold(0.0, f64::max);
    let y_names = ys.iter().map(|y| y_name_height(&figure.y_label, *y, cell)).fold(0.0, f64::max);
    let above = title + y_names;
    let legend = legend_height(&entries);
    let row = above + height + x_name_height(&figure.x_label, x, width) + levels.lower(width);
    let rows = figure.panels.len().div_ceil(columns);
    draw(&figure.title, note, legend + rows as f64 * row, |canvas| {
        draw_legend(canvas, &entries);
        for (index, (data, y)) in figure.panels.iter().zip(ys).enumerate() {
            let (left, top) = ((index % columns) as f64 * cell, legend + (index / columns) as f64 * row);
            let panel = Panel { left: left + margins.left, top: top + above, width, height, x, y };
            if !data.label.is_empty() {
                let y = top + ABOVE + line_height(NORMAL) / 2.0;
                canvas.lines(&data.label, left, y, cell, Ink::text(Beside::Start));
            }
            panel.draw_y(canvas, &figure.y_label, margins);
            draw_panel(canvas, &panel, figure, data, &looks, &levels);
        }
    })
}

impl Looks {
    fn of(figure: &FigureResult, hosts: HostsKind) -> Self {
        let ours = match hosts {
            HostsKind::Simulated => "simulated hosts",
            HostsKind::Kernel => "kernel hosts",
        };
        let labels = |lines: fn(&PanelResult) -> &[LineResult]| {
            let mut labels: Vec<&str> = Vec::new();
            for line in figure.panels.iter().flat_map(lines) {
                if !labels.contains(&line.label.as_str()) {
                    labels.push(&line.label);
                }
            }
            labels
        };
        let lines: Vec<&str> =
            labels(|panel| &panel.lines).iter().map(|label| if label.is_empty() { ours } else { label }).collect();
        let reference = |(index, label): (usize, &&str)| style::reference(index, label);
        Self {
            lines: style::lines(&lines),
            references: labels(|panel| &panel.references).iter().enumerate().map(reference).collect(),
        }
    }

    fn entries(&self) -> Vec<Entry> {
        let lines = self.lines.iter().cloned().map(Entry::Mark);
        let references = self.references.iter().cloned().map(Entry::Line);
        if self.lines.len() + self.references.len() < 2 { Vec::new() } else { lines.chain(references).collect() }
    }

    fn line(&self, label: &str) -> &Look {
        self.lines.iter().find(|look| look.label == label).unwrap_or(&self.lines[0])
    }
}

/// The position of a level along the axis: numbers by value, words in sequence.
struct Levels(Option<Vec<String>>);

/// The fraction of a word's width that the marks of all lines share.
const SPREAD: f64 = 0.5;

impl Levels {
    const fn are_words(&self) -> bool {
        self.0.is_some()
    }

    /// The axis if it has ticks. Words stand within their room, and need none beside the panel.
    const fn ticks(&self, axis: Axis) -> Axis {
        if self.are_words() { Axis::Linear { from: 0.0, to: 1.0 } } else { axis }
    }

    /// By how much words need more height than a number, in a panel of this width.
    fn lower(&self, width: f64) -> f64 {
        let words = self.0.as_deref().unwrap_or_default();
        let room = word_room(words, width);
        let highest = words.iter().map(|word| text_height(word, SMALL, room)).fold(0.0, f64::max);
        (highest - line_height(SMALL)).max(0.0)
    }

    /// The offset of a line's mark from its word. It keeps the marks of several lines apart.
    fn shift(&self, line: usize, lines: usize) -> f64 {
        if self.are_words() { ((line as f64 + 0.5) / lines as f64 - 0.5) * SPREAD } else { 0.0 }
    }

    fn place(&self, level: &Level) -> f64 {
        match (&self.0, level) {
            (None, Level::Number(number)) => *number,
            (words, level) => {
                let said = level.to_string();
                words.iter().flatten().position(|word| *word == said).unwrap_or(0) as f64 + 0.5
            }
        }
    }
}

/// The width for each of these words below a panel.
fn word_room(words: &[String], width: f64) -> f64 {
    width / words.len().max(1) as f64 - 6.0
}

fn marks(figure: &FigureResult) -> impl Iterator<Item = &MarkResult> {
    figure.panels.iter().flat_map(|panel| panel.lines.iter().chain(&panel.references)).flat_map(|line| &line.marks)
}

fn level_axis(figure: &FigureResult) -> (Axis, Levels) {
    let numbers: Option<Vec<f64>> = marks(figure)
        .map(|mark| match mark.x {
            Level::Number(number) => Some(number),
            Level::Text(_) => None,
        })
        .collect();
    let Some(numbers) = numbers.filter(|numbers| !numbers.is_empty()) else {
        let mut words: Vec<String> = Vec::new();
        for said in marks(figure).map(|mark| mark.x.to_string()) {
            if !words.contains(&said) {
                words.push(said);
            }
        }
        return (Axis::Linear { from: 0.0, to: words.len().max(1) as f64 }, Levels(Some(words)));
    };
    let (least, greatest) = ends(numbers.into_iter());
    let axis = if figure.log_x && least > 0.0 {
        let room = (greatest / least).powf(0.04).max(1.1);
        Axis::Log { from: least / room, to: greatest * room }
    } else {
        let room = if greatest > least { (greatest - least) * 0.05 } else { (least.abs() * 0.1).max(1e-9) };
        Axis::Linear { from: least - room, to: greatest + room }
    };
    (axis, Levels(None))
}

fn ends(numbers: impl Iterator<Item = f64>) -> (f64, f64) {
    numbers
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, greatest), number| (least.min(number), greatest.max(number)))
}

fn lines_of(panels: &[PanelResult]) -> impl Iterator<Item = &LineResult> {
    panels.iter().flat_map(|panel| panel.lines.iter().chain(&panel.references))
}

/// Whether these measures are at most 1 by definition.
fn is_share(measures: &str) -> bool {
    measures.split(", ").all(|measure| {
        let name = measure.rsplit('.').next().unwrap_or(measure);
        name.starts_with("jain_index") || name == "utilization" || measure.contains("state_shares")
    })
}

/// Whether a number can stand on the vertical axis of a figure.
fn is_drawable(figure: &FigureResult, number: f64) -> bool {
    number.is_finite() && (number > 0.0 || !figure.log_y)
}

fn upright_axis(figure: &FigureResult, panel: &PanelResult, own: bool) -> Axis {
    let panels = if own { std::slice::from_ref(panel) } else { &figure.panels };
    let marks = || lines_of(panels).flat_map(|line| &line.marks);
    let is_drawable = |number: &f64| is_drawable(figure, *number);
    let (lowest, highest) = ends(marks().filter_map(|mark| mark.y).filter(is_drawable));
    // The axis of a share is 0 to 1: an interval cannot mean more.
    if is_share(&figure.y) && !figure.log_y && lowest >= 0.0 && highest > 0.5 && highest <= 1.0 {
        return Axis::Linear { from: 0.0, to: 1.0 };
    }
    let bars = marks().filter_map(|mark| mark.ci95).flat_map(|interval| [interval.low, interval.high]);
    let (low, high) = ends(bars.filter(is_drawable).chain([lowest, highest]).filter(is_drawable));
    if figure.log_y && low.is_finite() {
        return Axis::Log { from: low / 1.3, to: high * 1.3 };
    }
    // Nothing that has no negative value gets an axis below 0 for its intervals, and two very different seeds give one of
    // many times their mean: beyond the axis an interval is an arrow.
    let low = if lowest < 0.0 { low.max(3.0 * lowest) } else { 0.0 };
    let high = if highest > 0.0 { high.min(3.0 * highest) } else { highest.min(0.0) };
    if low.is_finite() && high.is_finite() && low < high {
        let room = (high - low) * 0.04;
        Axis::spanning(if low < 0.0 { low - room } else { 0.0 }, if high > 0.0 { high + room } else { 0.0 }, 8)
    } else {
        Axis::from_zero(1.0, 8)
    }
}

fn draw_panel(
    canvas: &mut Canvas,
    panel: &Panel,
    figure: &FigureResult,
    data: &PanelResult,
    looks: &Looks,
    levels: &Levels,
) {
    draw_level_axis(canvas, panel, figure, levels);
    if levels.are_words() {
        // No part of a row of words can be enlarged.
        return draw_data(canvas, panel, figure, data, looks, levels);
    }
    canvas.data(panel, (&figure.x_label, &figure.y_label), |canvas| {
        draw_data(canvas, panel, figure, data, looks, levels);
    });
}

fn draw_data(
    canvas: &mut Canvas,
    panel: &Panel,
    figure: &FigureResult,
    data: &PanelResult,
    looks: &Looks,
    levels: &Levels,
) {
    for line in &data.references {
        let Some(look) = looks.references.iter().find(|look| look.label == line.label) else { continue };
        let pen = Pen::of(look, 1.5);
        if levels.are_words() {
            draw_at_words(canvas, panel, line, levels, pen);
            continue;
        }
        draw_line(canvas, panel, line, levels, pen);
        if line.marks.len() == 1 {
            line.marks
                .iter()
                .filter_map(|mark| place(panel, mark, levels, 0.0))
                .for_each(|at| canvas.circle(at, 2.0, look.colour));
        }
    }
    for (index, line) in data.lines.iter().enumerate() {
        let look = looks.line(&line.label);
        let shift = levels.shift(index, data.lines.len());
        // Words have no order, so no line joins their marks: it would suggest values in between.
        if !levels.are_words() {
            draw_line(canvas, panel, line, levels, Pen { opacity: 0.85, ..Pen::of(look, 1.5) });
        }
        for mark in &line.marks {
            let Some(y) = mark.y.filter(|y| y.is_finite()) else { continue };
            let x = panel.x_at(levels.place(&mark.x) + shift);
            canvas.titled(&told(figure, &look.label, mark), |canvas| {
                if let Some(interval) = mark.ci95 {
                    let pen = Pen::new(look.colour, 1.5);
                    draw_interval(canvas, panel, Along::Y, x, (interval.low, interval.high), pen);
                }
                match place(panel, mark, levels, shift) {
                    None => draw_beyond(canvas, panel, Along::Y, x, y, look.colour),
                    Some(at) if levels.are_words() || line.marks.len() <= MOST_MARKERS => draw_marker(canvas, at, look),
                    Some(_) => {}
                }
            });
        }
    }
}

fn draw_level_axis(canvas: &mut Canvas, panel: &Panel, figure: &FigureResult, levels: &Levels) {
    let Some(words) = &levels.0 else {
        return panel.draw_x(canvas, &figure.x_label);
    };
    let bottom = panel.bottom();
    canvas.line((panel.left, bottom), (panel.right(), bottom), Pen::new(MUTED, 1.0));
    let room = word_room(words, panel.width);
    for (index, word) in words.iter().enumerate() {
        let x = panel.x_at(index as f64 + 0.5);
        canvas.line((x, panel.top), (x, bottom), Pen::new(GRID, 1.0));
        canvas.lines(word, x, bottom + TO_LABELS, room, Ink::label(Beside::Middle));
    }
    panel.draw_x_name(canvas, &x_name(&figure.x_label, panel.x), levels.lower(panel.width));
}

/// `UCC, delay 10 ms: goodput 19.26 (19.01 to 19.51)`.
fn told(figure: &FigureResult, label: &str, mark: &MarkResult) -> String {
    let show = crate::study::figure;
    let y = mark.y.map_or("none".to_owned(), show);
    let interval = mark.ci95.map(|ends| format!(" ({} to {})", show(ends.low), show(ends.high))).unwrap_or_default();
    format!("{label}, {} {}: {} {y}{interval}", figure.x_label, mark.x, figure.y_label)
}

/// `None` if the mark has no value, or none that is on the axis.
fn place(panel: &Panel, mark: &MarkResult, levels: &Levels, shift: f64) -> Option<(f64, f64)> {
    mark.y.filter(|y| panel.y.covers(*y)).map(|y| panel.at(levels.place(&mark.x) + shift, y))
}

/// Draws a reference at each word, across the width of its marks.
fn draw_at_words(canvas: &mut Canvas, panel: &Panel, line: &LineResult, levels: &Levels, pen: Pen) {
    for mark in &line.marks {
        let end = |shift: f64| place(panel, mark, levels, shift);
        if let (Some(from), Some(to)) = (end(-0.7 * SPREAD), end(0.7 * SPREAD)) {
            canvas.line(from, to, pen);
        }
    }
}

/// Draws a line, interrupted where there are no data.
fn draw_line(canvas: &mut Canvas, panel: &Panel, line: &LineResult, levels: &Levels, pen: Pen) {
    let places: Vec<Option<(f64, f64)>> = line.marks.iter().map(|mark| place(panel, mark, levels, 0.0)).collect();
    for part in places.split(Option::is_none) {
        let points: Vec<(f64, f64)> = part.iter().flatten().copied().collect();
        if points.len() > 1 {
            canvas.path(&line.label, &points, pen);
        }
    }
}

/// Draws the mark of an item around a point.
pub(crate) fn draw_marker(canvas: &mut Canvas, at: (f64, f64), look: &Look) {
    draw_sized_marker(canvas, at, look, RADIUS);
}

/// Draws the mark of a bar at its end, with a white edge that parts the two.
pub(crate) fn draw_mark_of_bar(canvas: &mut Canvas, at: (f64, f64), look: &Look) {
    draw_sized_marker(canvas, at, &Look { colour: PAPER, ..look.clone() }, RADIUS + 2.0);
    draw_marker(canvas, at, look);
}

/// A triangle that points up, as high above its point as below, and a diamond.
const TRIANGLE: [(f64, f64); 3] = [(0.0, -1.15), (1.25, 1.15), (-1.25, 1.15)];
const DIAMOND: [(f64, f64); 4] = [(0.0, -1.35), (1.35, 0.0), (0.0, 1.35), (-1.35, 0.0)];
/// The corners of an upright cross.
const PLUS: [(f64, f64); 12] = [
    (-0.4, -1.3),
    (0.4, -1.3),
    (0.4, -0.4),
    (1.3, -0.4),
    (1.3, 0.4),
    (0.4, 0.4),
    (0.4, 1.3),
    (-0.4, 1.3),
    (-0.4, 0.4),
    (-1.3, 0.4),
    (-1.3, -0.4),
    (-0.4, -0.4),
];

/// With this radius.
pub(crate) fn draw_sized_marker(canvas: &mut Canvas, at: (f64, f64), look: &Look, r: f64) {
    let colour = look.colour;
    let corners = |offsets: &[(f64, f64)], scale: f64| -> Vec<(f64, f64)> {
        offsets.iter().map(|(x, y)| (at.0 + x * r * scale, at.1 + y * r * scale)).collect()
    };
    let aslant = PLUS.map(|(x, y)| ((x - y) * 0.75, (x + y) * 0.75));
    match look.marker {
        Marker::Circle => canvas.circle(at, r, colour),
        Marker::Square => canvas.rectangle(at.0 - 0.9 * r, at.1 - 0.9 * r, 1.8 * r, 1.8 * r, colour, 1.0),
        Marker::Triangle => canvas.polygon(&corners(&TRIANGLE, 1.0), colour),
        Marker::Diamond => canvas.polygon(&corners(&DIAMOND, 1.0), colour),
        Marker::Down => canvas.polygon(&corners(&TRIANGLE, -1.0), colour),
        Marker::Ring => {
            canvas.circle(at, r, colour);
            canvas.circle(at, r - 1.6, PAPER);
        }
        Marker::Frame => {
            canvas.rectangle(at.0 - r, at.1 - r, 2.0 * r, 2.0 * r, colour, 1.0);
            canvas.rectangle(at.0 - r + 1.6, at.1 - r + 1.6, 2.0 * r - 3.2, 2.0 * r - 3.2, PAPER, 1.0);
        }
        Marker::Cross => canvas.polygon(&corners(&aslant, 1.0), colour),
        Marker::Plus => canvas.polygon(&corners(&PLUS, 1.0), colour),
        Marker::OpenTriangle => {
            canvas.polygon(&corners(&TRIANGLE, 1.15), colour);
            canvas.polygon(&corners(&TRIANGLE, 0.5), PAPER);
        }
        Marker::OpenDiamond => {
            canvas.polygon(&corners(&DIAMOND, 1.1), colour);
            canvas.polygon(&corners(&DIAMOND, 0.5), PAPER);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_scenario::Interval;

    fn mark(x: Level, y: f64) -> MarkResult {
        MarkResult { x, y: Some(y), ci95: Some(Interval { low: y - 1.0, high: y + 1.0 }) }
    }

    fn figure(marks: Vec<MarkResult>) -> FigureResult {
        let line = LineResult { label: String::new(), source: None, marks };
        let panel = PanelResult { label: String::new(), lines: vec![line], references: Vec::new() };
        FigureResult {
            title: "t".into(),
            x_label: "x".into(),
            y: "aggregate_goodput_mbps".into(),
            y_label: "y".into(),
            log_x: false,
            log_y: false,
            panels: vec![panel],
        }
    }

    #[test]
    fn numbers_stand_at_their_value_and_words_in_their_order() {
        let (axis, levels) = level_axis(&figure([1.0, 11.0].map(|x| mark(Level::Number(x), 3.0)).to_vec()));
        assert_eq!(axis, Axis::Linear { from: 0.5, to: 11.5 });
        assert_eq!(levels.place(&Level::Number(11.0)), 11.0);
        let (axis, levels) = level_axis(&figure(["b", "a"].map(|x| mark(Level::Text(x.into()), 3.0)).to_vec()));
        assert_eq!(axis, Axis::Linear { from: 0.0, to: 2.0 });
        assert_eq!(levels.place(&Level::Text("a".into())), 1.5);
    }

    #[test]
    fn a_line_of_many_points_has_no_markers() {
        let line = |points: usize| {
            let marks = (0..points).map(|x| MarkResult { ci95: None, ..mark(Level::Number(x as f64), 3.0) });
            draw_figure(&figure(marks.collect()), HostsKind::Simulated, "").text
        };
        let circles = |points| line(points).matches("<circle").count();
        assert_eq!(circles(MOST_MARKERS) - circles(MOST_MARKERS + 1), MOST_MARKERS);
        assert!(line(MOST_MARKERS + 1).contains("<polyline"));
    }

    #[test]
    fn the_upright_axis_has_room_for_the_intervals() {
        let figure = figure(vec![mark(Level::Number(1.0), 19.0)]);
        // 20 at the end of the interval, and 4 % of room.
        assert_eq!(upright_axis(&figure, &figure.panels[0], false), Axis::Linear { from: 0.0, to: 25.0 });
        let log = FigureResult { log_y: true, ..figure };
        assert!(upright_axis(&log, &log.panels[0], false).is_log());
    }

    #[test]
    fn a_line_is_parted_where_there_is_nothing() {
        let mut marks: Vec<MarkResult> = (0..6).map(|x| mark(Level::Number(f64::from(x)), 3.0)).collect();
        marks[2] = MarkResult { y: None, ci95: None, ..marks[2].clone() };
        let svg = draw_figure(&figure(marks), HostsKind::Simulated, "").text;
        assert_eq!(svg.matches("<polyline").count(), 2, "{svg}");
        assert_eq!(svg.matches("<circle").count(), 5, "{svg}");
    }

    #[test]
    fn words_are_not_joined_and_the_marks_of_several_lines_stand_beside_each_other() {
        let words = || ["fixed", "minstrel", "arf"].map(|x| mark(Level::Text(x.into()), 3.0)).to_vec();
        let mut figure = figure(words());
        let reference = LineResult { label: "theory".into(), source: None, marks: words() };
        figure.panels[0].references.push(reference);
        assert_eq!(draw_figure(&figure, HostsKind::Simulated, "").text.matches("<polyline").count(), 0);
        let (_, levels) = level_axis(&figure);
        assert_eq!((levels.shift(0, 2), levels.shift(1, 2), levels.shift(0, 1)), (-0.125, 0.125, 0.0));
        let numbers = Levels(None);
        assert_eq!(numbers.shift(0, 2), 0.0);
    }

    #[test]
    fn the_axis_of_a_share_ends_at_one() {
        let share = FigureResult { y: "jain_index".into(), ..figure(vec![mark(Level::Number(1.0), 0.98)]) };
        assert_eq!(upright_axis(&share, &share.panels[0], false), Axis::Linear { from: 0.0, to: 1.0 });
        let times = FigureResult { y: "rtt_ms.mean".into(), ..share.clone() };
        assert!(upright_axis(&times, &times.panels[0], false) != Axis::Linear { from: 0.0, to: 1.0 });
    }

    #[test]
    fn a_study_without_any_value_is_drawn_empty() {
        let empty = |x: f64| MarkResult { x: Level::Number(x), y: None, ci95: None };
        let svg = draw_figure(&figure(vec![empty(1.0), empty(2.0)]), HostsKind::Simulated, "").text;
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}
