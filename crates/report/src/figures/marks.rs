//! Marks with confidence intervals, joined by lines: the figures of studies.

use super::axis::Axis;
use super::canvas::{
    Beside, Canvas, Ink, MARGIN_LEFT, MARGIN_RIGHT, Panel, Pen, SMALL, Svg, WIDTH, draw, fitted, text_width,
};
use super::lines::{Entry, draw_legend, legend_height};
use crate::style::{self, GRID, INK, Look, MUTED, Marker, PAPER};
use lasthop_scenario::HostsKind;
use lasthop_study::{FigureResult, Level, LineResult, MarkResult, PanelResult};

const TITLE: f64 = 22.0;
const ABOVE: f64 = 30.0;
const BELOW: f64 = 50.0;
/// The radius of a mark.
const RADIUS: f64 = 4.0;
/// The maximum number of marks on a line. A line with more is drawn without marks, which would cover it.
const MOST_MARKERS: usize = 40;

/// The styles of a figure's lines, the same in all panels.
struct Looks {
    lines: Vec<(Look, Marker)>,
    references: Vec<Look>,
}

/// A figure of a study.
pub(crate) fn draw_figure(figure: &FigureResult, hosts: HostsKind) -> Svg {
    let looks = Looks::of(figure, hosts);
    let entries = looks.entries();
    let (columns, height) = match figure.panels.len() {
        0 | 1 => (1, 280.0),
        2..=4 => (2, 210.0),
        _ => (3, 150.0),
    };
    let titled = figure.panels.iter().any(|panel| !panel.label.is_empty());
    let above = if titled { TITLE + ABOVE } else { ABOVE };
    let legend = legend_height(&entries);
    let row = above + height + BELOW;
    let rows = figure.panels.len().div_ceil(columns);
    let cell = WIDTH / columns as f64;
    let (x, levels) = level_axis(figure);
    draw(&figure.title, legend + rows as f64 * row, |canvas| {
        draw_legend(canvas, &entries);
        for (index, data) in figure.panels.iter().enumerate() {
            let panel = Panel {
                left: (index % columns) as f64 * cell + MARGIN_LEFT,
                top: legend + (index / columns) as f64 * row + above,
                width: cell - MARGIN_LEFT - MARGIN_RIGHT,
                height,
                x,
                // Each panel may have its own scale. On a common one, rates from 1 to 54 Mb/s would hide the lowest.
                y: upright_axis(figure, data, columns == 3),
            };
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
        let lines = self.lines.iter().map(|(look, marker)| Entry::Mark(look.clone(), *marker));
        let references = self.references.iter().cloned().map(Entry::Line);
        if self.lines.len() + self.references.len() < 2 { Vec::new() } else { lines.chain(references).collect() }
    }

    fn line(&self, label: &str) -> &(Look, Marker) {
        self.lines.iter().find(|(look, _)| look.label == label).unwrap_or(&self.lines[0])
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
        let room = if greatest > least { (greatest - least) * 0.05 } else { 1.0 };
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

fn upright_axis(figure: &FigureResult, panel: &PanelResult, own: bool) -> Axis {
    let panels = if own { std::slice::from_ref(panel) } else { &figure.panels };
    let of_mark = |mark: &MarkResult| {
        let ends = mark.ci95.map(|interval| [interval.low, interval.high]);
        mark.y.into_iter().chain(ends.into_iter().flatten()).collect::<Vec<_>>()
    };
    let numbers: Vec<f64> = lines_of(panels).flat_map(|line| &line.marks).flat_map(of_mark).collect();
    let (_, greatest) = ends(numbers.iter().copied());
    // The axis of a share is 0 to 1. Intervals are cut off there.
    let drawn = lines_of(panels).flat_map(|line| &line.marks).filter_map(|mark| mark.y).fold(0.0, f64::max);
    if is_share(&figure.y) && !figure.log_y && drawn > 0.5 && drawn <= 1.0 {
        return Axis::Linear { from: 0.0, to: 1.0 };
    }
    let (least, _) = ends(numbers.iter().copied().filter(|number| *number > 0.0));
    if figure.log_y && least.is_finite() {
        Axis::Log { from: least / 1.3, to: greatest * 1.3 }
    } else if greatest > 0.0 {
        Axis::from_zero(greatest * 1.04, 8)
    } else {
        let (least, greatest) = ends(numbers.into_iter().chain([-1.0, 0.0]));
        Axis::Linear { from: least, to: greatest }
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
    if !data.label.is_empty() {
        let (left, y) = (panel.left - MARGIN_LEFT, panel.top - ABOVE - 4.0);
        let label = fitted(&data.label, 13.0, panel.right() - left);
        canvas.text(&label, left, y, Ink { size: 13.0, colour: INK, beside: Beside::Start });
    }
    panel.draw_y(canvas, &figure.y_label);
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
        let pen = Pen::new(look.colour, 1.5);
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
        let (look, marker) = looks.line(&line.label);
        let shift = levels.shift(index, data.lines.len());
        // Words have no order, so no line joins their marks: it would suggest values in between.
        if !levels.are_words() {
            draw_line(canvas, panel, line, levels, Pen { opacity: 0.85, ..Pen::new(look.colour, 1.5) });
        }
        for mark in &line.marks {
            let Some(at) = place(panel, mark, levels, shift) else { continue };
            canvas.titled(&told(figure, &look.label, mark), |canvas| {
                draw_interval(canvas, panel, mark, levels.place(&mark.x) + shift, Pen::new(look.colour, 1.5));
                if levels.are_words() || line.marks.len() <= MOST_MARKERS {
                    draw_marker(canvas, at, *marker, look.colour);
                }
            });
        }
    }
}

fn draw_level_axis(canvas: &mut Canvas, panel: &Panel, figure: &FigureResult, levels: &Levels) {
    let name = if panel.x.is_log() { format!("{}, log scale", figure.x_label) } else { figure.x_label.clone() };
    let Some(words) = &levels.0 else {
        return panel.draw_x(canvas, &name);
    };
    let bottom = panel.bottom();
    canvas.line((panel.left, bottom), (panel.right(), bottom), Pen::new(MUTED, 1.0));
    let room = panel.width / words.len() as f64;
    let widest = words.iter().map(|word| text_width(word, SMALL)).fold(1.0, f64::max);
    // If they do not fit beside each other, every other one is lower.
    let lower = if widest + 8.0 > room { 12.0 } else { 0.0 };
    for (index, word) in words.iter().enumerate() {
        let x = panel.x_at(index as f64 + 0.5);
        canvas.line((x, panel.top), (x, bottom), Pen::new(GRID, 1.0));
        let y = bottom + 14.0 + if index % 2 == 1 { lower } else { 0.0 };
        let label = fitted(word, SMALL, if lower > 0.0 { room * 2.0 } else { room });
        canvas.text(&label, x, y, Ink::label(Beside::Middle));
    }
    canvas.text(&name, panel.left + panel.width / 2.0, bottom + 31.0 + lower, Ink::label(Beside::Middle));
}

/// `UCC, delay 10 ms: goodput 19.26 (19.01 to 19.51)`.
fn told(figure: &FigureResult, label: &str, mark: &MarkResult) -> String {
    let show = crate::study::figure;
    let y = mark.y.map_or("none".to_owned(), show);
    let interval = mark.ci95.map(|ends| format!(" ({} to {})", show(ends.low), show(ends.high))).unwrap_or_default();
    format!("{label}, {} {}: {} {y}{interval}", figure.x_label, mark.x, figure.y_label)
}

fn place(panel: &Panel, mark: &MarkResult, levels: &Levels, shift: f64) -> Option<(f64, f64)> {
    mark.y.map(|y| panel.at(levels.place(&mark.x) + shift, y))
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

fn draw_interval(canvas: &mut Canvas, panel: &Panel, mark: &MarkResult, place: f64, pen: Pen) {
    let Some(interval) = mark.ci95 else { return };
    let x = panel.x_at(place);
    let (low, high) = (panel.y_at(interval.low), panel.y_at(interval.high));
    // Too short to be visible behind the mark.
    if low - high < 2.0 {
        return;
    }
    canvas.line((x, low), (x, high), pen);
    for end in [low, high] {
        canvas.line((x - 4.0, end), (x + 4.0, end), pen);
    }
}

/// Draws a mark around a point.
pub(crate) fn draw_marker(canvas: &mut Canvas, at: (f64, f64), marker: Marker, colour: style::Colour) {
    let r = RADIUS;
    let corners = |offsets: &[(f64, f64)]| -> Vec<(f64, f64)> {
        offsets.iter().map(|(x, y)| (at.0 + x * r, at.1 + y * r)).collect()
    };
    match marker {
        Marker::Circle => canvas.circle(at, r, colour),
        Marker::Square => canvas.rectangle(at.0 - 0.9 * r, at.1 - 0.9 * r, 1.8 * r, 1.8 * r, colour, 1.0),
        Marker::Triangle => canvas.polygon(&corners(&[(0.0, -1.3), (1.2, 0.9), (-1.2, 0.9)]), colour),
        Marker::Diamond => canvas.polygon(&corners(&[(0.0, -1.35), (1.35, 0.0), (0.0, 1.35), (-1.35, 0.0)]), colour),
        Marker::Down => canvas.polygon(&corners(&[(0.0, 1.3), (1.2, -0.9), (-1.2, -0.9)]), colour),
        Marker::Ring => {
            canvas.circle(at, r, colour);
            canvas.circle(at, r - 1.6, PAPER);
        }
        Marker::Frame => {
            canvas.rectangle(at.0 - r, at.1 - r, 2.0 * r, 2.0 * r, colour, 1.0);
            canvas.rectangle(at.0 - r + 1.6, at.1 - r + 1.6, 2.0 * r - 3.2, 2.0 * r - 3.2, PAPER, 1.0);
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
            draw_figure(&figure(marks.collect()), HostsKind::Simulated).text
        };
        let circles = |points| line(points).matches("<circle").count();
        assert_eq!(circles(MOST_MARKERS) - circles(MOST_MARKERS + 1), MOST_MARKERS);
        assert!(line(MOST_MARKERS + 1).contains("<polyline"));
    }

    #[test]
    fn the_upright_axis_has_room_for_the_intervals() {
        let figure = figure(vec![mark(Level::Number(1.0), 19.0)]);
        // 20 at the end of the interval, and 4 % of room.
        assert_eq!(upright_axis(&figure, &figure.panels[0], false).place(25.0), 1.0);
        let log = FigureResult { log_y: true, ..figure };
        assert!(upright_axis(&log, &log.panels[0], false).is_log());
    }

    #[test]
    fn a_line_is_parted_where_there_is_nothing() {
        let mut marks: Vec<MarkResult> = (0..6).map(|x| mark(Level::Number(f64::from(x)), 3.0)).collect();
        marks[2] = MarkResult { y: None, ci95: None, ..marks[2].clone() };
        let svg = draw_figure(&figure(marks), HostsKind::Simulated).text;
        assert_eq!(svg.matches("<polyline").count(), 2, "{svg}");
        assert_eq!(svg.matches("<circle").count(), 5, "{svg}");
    }

    #[test]
    fn words_are_not_joined_and_the_marks_of_several_lines_stand_beside_each_other() {
        let words = || ["fixed", "minstrel", "arf"].map(|x| mark(Level::Text(x.into()), 3.0)).to_vec();
        let mut figure = figure(words());
        let reference = LineResult { label: "theory".into(), source: None, marks: words() };
        figure.panels[0].references.push(reference);
        assert_eq!(draw_figure(&figure, HostsKind::Simulated).text.matches("<polyline").count(), 0);
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
        let svg = draw_figure(&figure(vec![empty(1.0), empty(2.0)]), HostsKind::Simulated).text;
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}
