//! Quantities over time: round trips, windows, queues. One panel for a run, several with shared axes for a comparison.

use super::axis::Axis;
use super::canvas::{
    Beside, Canvas, Ink, MARGIN_LEFT, MARGIN_RIGHT, Panel, Pen, SMALL, Svg, WIDTH, draw, fitted, text_width,
};
use super::marks::draw_marker;
use crate::style::{Colour, INK, LIMIT, Look, MUTED, Marker, REFERENCES, SHADE, host};

/// Above a panel: its title, then the name of its vertical axis.
const ABOVE: f64 = 30.0;
const TITLE: f64 = 22.0;
/// Below a panel: tick labels and name of the horizontal axis.
const BELOW: f64 = 46.0;
const LEGEND_ROW: f64 = 20.0;

/// One line over time.
pub(crate) struct Line {
    /// Whose it is.
    pub(crate) name: String,
    pub(crate) colour: Colour,
    /// The index of its dashes; 0: none.
    pub(crate) dash: usize,
    /// Interrupted where there are no data.
    pub(crate) parts: Vec<Vec<(f64, f64)>>,
}

/// One panel.
pub(crate) struct TimePanel {
    /// The case, in a comparison.
    pub(crate) title: Option<Look>,
    pub(crate) lines: Vec<Line>,
    /// Limits, drawn dashed on top.
    pub(crate) limits: Vec<Vec<(f64, f64)>>,
    pub(crate) duration_s: f64,
    pub(crate) warmup_s: f64,
}

/// The meaning of the lines' colours.
pub(crate) enum Legend {
    Nothing,
    Looks(Vec<Look>),
    /// This number of hosts, in this order, and what they are called.
    Hosts(usize, String),
}

impl Legend {
    pub(crate) fn entries(&self) -> Vec<Entry> {
        match self {
            Self::Nothing => Vec::new(),
            Self::Looks(looks) => looks.iter().cloned().map(Entry::Line).collect(),
            Self::Hosts(hosts, names) => vec![Entry::Hosts(*hosts, names.clone())],
        }
    }
}

/// The common properties of a figure's panels.
pub(crate) struct TimeFigure<'a> {
    pub(crate) title: &'a str,
    /// With its unit: "smoothed RTT (ms)".
    pub(crate) y_name: &'a str,
    pub(crate) legend: Legend,
    /// The meaning of the dashed lines, if any.
    pub(crate) limit_name: Option<&'a str>,
    /// Whether the axis is logarithmic when the numbers span more than a decade.
    pub(crate) by_ratio: bool,
}

impl TimeFigure<'_> {
    pub(crate) fn draw(&self, panels: &[TimePanel]) -> Svg {
        let columns = if panels.len() > 1 { 2 } else { 1 };
        let rows = panels.len().div_ceil(columns);
        let titled = panels.iter().any(|panel| panel.title.is_some());
        let plot_height = if panels.len() > 1 { 150.0 } else { 250.0 };
        let above = if titled { TITLE + ABOVE } else { ABOVE };
        let entries = self.legend_entries(panels);
        let legend_height = legend_rows(&entries) as f64 * LEGEND_ROW;
        let row_height = above + plot_height + BELOW;
        let height = legend_height + rows as f64 * row_height;
        let cell = WIDTH / columns as f64;
        let (x, y) = self.axes(panels);
        draw(self.title, height, |canvas| {
            draw_legend(canvas, &entries);
            for (index, data) in panels.iter().enumerate() {
                let (row, column) = (index / columns, index % columns);
                let panel = Panel {
                    left: column as f64 * cell + MARGIN_LEFT,
                    top: legend_height + row as f64 * row_height + above,
                    width: cell - MARGIN_LEFT - MARGIN_RIGHT,
                    height: plot_height,
                    x,
                    y,
                };
                self.draw_panel(canvas, &panel, data);
            }
        })
    }

    fn axes(&self, panels: &[TimePanel]) -> (Axis, Axis) {
        let duration = panels.iter().map(|panel| panel.duration_s).fold(1e-3, f64::max);
        let heights = || {
            let lines = panels.iter().flat_map(|panel| panel.lines.iter().flat_map(|line| &line.parts));
            let limits = panels.iter().flat_map(|panel| &panel.limits);
            lines.chain(limits).flatten().map(|(_, y)| *y)
        };
        let highest = heights().fold(0.0, f64::max);
        let lowest = heights().fold(f64::INFINITY, f64::min);
        let y = if self.by_ratio { Axis::around(lowest, highest, 8) } else { Axis::from_zero(highest, 8) };
        (Axis::Linear { from: 0.0, to: duration }, y)
    }

    fn draw_panel(&self, canvas: &mut Canvas, panel: &Panel, data: &TimePanel) {
        let names = ("time (s)", self.y_name);
        canvas.data(panel, names, |canvas| draw_warmup(canvas, panel, data.warmup_s));
        if let Some(look) = &data.title {
            draw_title(canvas, panel, look, ABOVE);
        }
        panel.draw_y(canvas, names.1);
        panel.draw_x(canvas, names.0);
        canvas.data(panel, names, |canvas| draw_lines(canvas, panel, data, self.limit_name.unwrap_or("limit")));
    }

    fn legend_entries(&self, panels: &[TimePanel]) -> Vec<Entry> {
        let limits = panels.iter().any(|panel| !panel.limits.is_empty());
        let mut entries = self.legend.entries();
        if let Some(name) = self.limit_name.filter(|_| limits) {
            entries.push(Entry::Limit(name.to_owned()));
        }
        if panels.iter().any(|panel| panel.warmup_s > 0.0) {
            entries.push(Entry::Box(Look { label: "warm-up, left out of the result".to_owned(), colour: SHADE }));
        }
        entries
    }
}

/// Draws the lines of a panel, then its limits on top.
pub(crate) fn draw_lines(canvas: &mut Canvas, panel: &Panel, data: &TimePanel, limit_name: &str) {
    let (width, opacity) = if data.lines.len() > 3 { (1.25, 0.8) } else { (1.5, 1.0) };
    for line in &data.lines {
        for part in &line.parts {
            draw_part(canvas, panel, &line.name, part, Pen { colour: line.colour, width, opacity, dash: line.dash });
        }
    }
    for part in &data.limits {
        draw_part(canvas, panel, limit_name, part, Pen::new(LIMIT, 1.5));
    }
}

fn draw_part(canvas: &mut Canvas, panel: &Panel, name: &str, part: &[(f64, f64)], pen: Pen) {
    let points: Vec<(f64, f64)> = part.iter().map(|(x, y)| panel.at(*x, *y)).collect();
    match points.as_slice() {
        [] => {}
        [only] => canvas.circle(*only, 1.5, pen.colour),
        points => canvas.path(name, points, pen),
    }
}

/// Shades the warm-up, which the result leaves out.
pub(crate) fn draw_warmup(canvas: &mut Canvas, panel: &Panel, warmup_s: f64) {
    let width = panel.x_at(warmup_s) - panel.left;
    if width > 0.0 {
        canvas.rectangle(panel.left, panel.top, width, panel.height, SHADE, 1.0);
    }
}

/// Draws the name of a panel with its colour, this high above it.
pub(crate) fn draw_title(canvas: &mut Canvas, panel: &Panel, look: &Look, above: f64) {
    let (left, y) = (panel.left - MARGIN_LEFT, panel.top - above - 4.0);
    canvas.rectangle(left, y - 5.0, 10.0, 10.0, look.colour, 1.0);
    let label = fitted(&look.label, 13.0, panel.right() - left - 18.0);
    canvas.text(&label, left + 17.0, y, Ink { size: 13.0, colour: INK, beside: Beside::Start });
}

/// One entry of a legend.
pub(crate) enum Entry {
    Line(Look),
    /// A line with dashes, by their index.
    Dashed(Look, usize),
    Mark(Look, Marker),
    Box(Look),
    Hosts(usize, String),
    Limit(String),
}

impl Entry {
    fn label(&self) -> String {
        match self {
            Self::Line(look) | Self::Dashed(look, _) | Self::Box(look) | Self::Mark(look, _) => look.label.clone(),
            Self::Hosts(_, name) | Self::Limit(name) => name.clone(),
        }
    }

    const fn swatch(&self) -> f64 {
        match self {
            Self::Hosts(..) => 80.0,
            Self::Box(_) => 12.0,
            Self::Dashed(..) => 30.0,
            _ => 22.0,
        }
    }

    fn width(&self) -> f64 {
        self.swatch() + 6.0 + text_width(&self.label(), SMALL) + 20.0
    }
}

/// The entries with their positions.
fn placed(entries: &[Entry]) -> Vec<(usize, f64)> {
    let (mut row, mut left) = (0, 0.0);
    entries
        .iter()
        .map(|entry| {
            if left > 0.0 && left + entry.width() > WIDTH {
                (row, left) = (row + 1, 0.0);
            }
            let place = (row, left);
            left += entry.width();
            place
        })
        .collect()
}

pub(crate) fn legend_rows(entries: &[Entry]) -> usize {
    placed(entries).last().map_or(0, |(row, _)| row + 1)
}

/// Height of a legend.
pub(crate) fn legend_height(entries: &[Entry]) -> f64 {
    legend_rows(entries) as f64 * LEGEND_ROW
}

pub(crate) fn draw_legend(canvas: &mut Canvas, entries: &[Entry]) {
    for (entry, (row, left)) in entries.iter().zip(placed(entries)) {
        let y = (row as f64 + 0.5) * LEGEND_ROW;
        let right = left + entry.swatch();
        match entry {
            Entry::Line(look) if REFERENCES.iter().any(|(colour, _)| *colour == look.colour) => {
                canvas.line((left, y), (right, y), Pen::new(look.colour, 1.5));
            }
            Entry::Line(look) => canvas.line((left, y), (right, y), Pen::new(look.colour, 3.0)),
            Entry::Dashed(look, dash) => {
                canvas.line((left, y), (right, y), Pen { dash: *dash, ..Pen::new(look.colour, 2.0) });
            }
            Entry::Mark(look, marker) => {
                canvas.line((left, y), (right, y), Pen::new(look.colour, 1.5));
                draw_marker(canvas, ((left + right) / 2.0, y), *marker, look.colour);
            }
            Entry::Box(look) => canvas.rectangle(left, y - 6.0, 12.0, 12.0, look.colour, 1.0),
            Entry::Limit(_) => canvas.line((left, y), (right, y), Pen::new(LIMIT, 1.5)),
            Entry::Hosts(hosts, _) => {
                let each = entry.swatch() / *hosts as f64;
                for index in 0..*hosts {
                    canvas.rectangle(left + index as f64 * each, y - 4.0, each, 8.0, host(index, *hosts), 1.0);
                }
            }
        }
        canvas.text(&entry.label(), right + 6.0, y, Ink { size: SMALL, colour: MUTED, beside: Beside::Start });
    }
}
