//! Quantities over time: round trips, windows, queues. One panel for a run, several with shared axes for a comparison.

use super::axis::Axis;
use super::canvas::{
    Beside, Canvas, Ink, Margins, NORMAL, Panel, Pen, SMALL, Svg, draw, full_width, is_narrow, x_name_height,
    y_name_height,
};
use super::marks::{draw_mark_of_bar, draw_marker};
use super::text::{line_height, text_height, text_width};
use crate::style::{Look, MUTED, SHADE, host};

/// Above a panel: room for its title, below the panel or legend above it.
const TITLE: f64 = 6.0;
/// From the left end of a title to its text, behind a box.
const BOX: f64 = 17.0;
const LEGEND_ROW: f64 = 20.0;

/// One line over time.
pub(crate) struct Line {
    /// Whose it is.
    pub(crate) name: String,
    pub(crate) look: Look,
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
    /// Below the panels: whose numbers these are.
    pub(crate) note: String,
}

impl TimeFigure<'_> {
    pub(crate) fn draw(&self, panels: &[TimePanel]) -> Svg {
        let columns = if panels.len() > 1 && !is_narrow() { 2 } else { 1 };
        let rows = panels.len().div_ceil(columns);
        let plot_height = if panels.len() > 1 { 150.0 } else { 250.0 };
        let cell = full_width() / columns as f64;
        let (x, y) = self.axes(panels);
        let margins = Margins::of(x, cell, [y], plot_height);
        let width = cell - margins.left - margins.right;
        let titles = panels.iter().flat_map(|panel| &panel.title).map(|look| title_height(look, cell));
        let y_name = y_name_height(self.y_name, y, cell);
        let above = titles.fold(0.0, f64::max) + y_name;
        let row_height = above + plot_height + x_name_height(TIME, x, width);
        let entries = self.legend_entries(panels);
        let legend = legend_height(&entries);
        draw(self.title, &self.note, legend + rows as f64 * row_height, |canvas| {
            draw_legend(canvas, &entries);
            for (index, data) in panels.iter().enumerate() {
                let (row, column) = (index / columns, index % columns);
                let (left, top) = (column as f64 * cell, legend + row as f64 * row_height);
                let panel = Panel { left: left + margins.left, top: top + above, width, height: plot_height, x, y };
                if let Some(look) = &data.title {
                    draw_title(canvas, (left, top), look, cell);
                }
                self.draw_panel(canvas, &panel, data, margins);
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

    fn draw_panel(&self, canvas: &mut Canvas, panel: &Panel, data: &TimePanel, margins: Margins) {
        let names = (TIME, self.y_name);
        canvas.data(panel, names, |canvas| draw_warmup(canvas, panel, data.warmup_s));
        panel.draw_y(canvas, names.1, margins);
        panel.draw_x(canvas, names.0);
        canvas.data(panel, names, |canvas| draw_lines(canvas, panel, data, self.limit_name.unwrap_or("limit")));
    }

    fn legend_entries(&self, panels: &[TimePanel]) -> Vec<Entry> {
        let limits = panels.iter().any(|panel| !panel.limits.is_empty());
        let mut entries = self.legend.entries();
        if let Some(name) = self.limit_name.filter(|_| limits) {
            entries.push(Entry::Limit(name.to_owned()));
        }
        entries.extend(warmup_entry(panels.iter().map(|panel| panel.warmup_s)));
        entries
    }
}

/// The name of the horizontal axis.
pub(crate) const TIME: &str = "time (s)";

/// The meaning of the shade, where there is one.
pub(crate) fn warmup_entry(mut warmups_s: impl Iterator<Item = f64>) -> Option<Entry> {
    let shaded = warmups_s.any(|warmup_s| warmup_s > 0.0);
    shaded.then(|| Entry::Box(Look::plain("warm-up, left out of the result", SHADE)))
}

/// Draws the lines of a panel, then its limits on top.
pub(crate) fn draw_lines(canvas: &mut Canvas, panel: &Panel, data: &TimePanel, limit_name: &str) {
    let (width, opacity) = if data.lines.len() > 3 { (1.25, 0.8) } else { (1.5, 1.0) };
    for line in &data.lines {
        for part in &line.parts {
            draw_part(canvas, panel, &line.name, part, Pen { opacity, ..Pen::of(&line.look, width) });
        }
    }
    for part in &data.limits {
        draw_part(canvas, panel, limit_name, part, Pen::limit());
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

/// Draws the name of a panel with its colour, its top left corner here.
pub(crate) fn draw_title(canvas: &mut Canvas, (left, top): (f64, f64), look: &Look, width: f64) {
    let y = top + TITLE + line_height(NORMAL) / 2.0;
    canvas.rectangle(left, y - 5.0, 10.0, 10.0, look.colour, 1.0);
    canvas.lines(&look.label, left + BOX, y, width - BOX, Ink::text(Beside::Start));
}

/// The height of such a title.
pub(crate) fn title_height(look: &Look, width: f64) -> f64 {
    TITLE + text_height(&look.label, NORMAL, width - BOX)
}

/// One entry of a legend.
pub(crate) enum Entry {
    Line(Look),
    /// A line with its marker.
    Mark(Look),
    Box(Look),
    /// A bar that ends with its marker.
    Bar(Look),
    Hosts(usize, String),
    Limit(String),
}

impl Entry {
    fn label(&self) -> &str {
        match self {
            Self::Line(look) | Self::Mark(look) | Self::Box(look) | Self::Bar(look) => &look.label,
            Self::Hosts(_, name) | Self::Limit(name) => name,
        }
    }

    const fn swatch(&self) -> f64 {
        match self {
            Self::Hosts(..) => 80.0,
            Self::Box(_) | Self::Bar(_) => 12.0,
            Self::Line(_) | Self::Mark(_) | Self::Limit(_) => 30.0,
        }
    }

    /// The greatest width of its text.
    fn most(&self) -> f64 {
        full_width() - self.swatch() - 6.0
    }

    fn width(&self) -> f64 {
        self.swatch() + 6.0 + text_width(self.label(), SMALL) + 20.0
    }

    fn height(&self) -> f64 {
        text_height(self.label(), SMALL, self.most()) + LEGEND_ROW - line_height(SMALL)
    }
}

/// The entries with the left and top of each, and the height of all.
fn placed(entries: &[Entry]) -> (Vec<(f64, f64)>, f64) {
    let (mut left, mut top, mut row) = (0.0, 0.0, 0.0_f64);
    let place = |entry: &Entry| {
        // The last space of a row may stand outside.
        if left > 0.0 && left + entry.width() - 20.0 > full_width() {
            (left, top, row) = (0.0, top + row, 0.0);
        }
        row = row.max(entry.height());
        let place = (left, top);
        left += entry.width();
        place
    };
    let places = entries.iter().map(place).collect();
    (places, top + row)
}

/// Height of a legend.
pub(crate) fn legend_height(entries: &[Entry]) -> f64 {
    placed(entries).1
}

pub(crate) fn draw_legend(canvas: &mut Canvas, entries: &[Entry]) {
    for (entry, (left, top)) in entries.iter().zip(placed(entries).0) {
        let y = top + 0.5 * LEGEND_ROW;
        let right = left + entry.swatch();
        match entry {
            Entry::Line(look) => canvas.line((left, y), (right, y), Pen::of(look, 2.0)),
            Entry::Mark(look) => {
                canvas.line((left, y), (right, y), Pen::of(look, 1.5));
                draw_marker(canvas, ((left + right) / 2.0, y), look);
            }
            Entry::Box(look) => canvas.rectangle(left, y - 6.0, 12.0, 12.0, look.colour, 1.0),
            Entry::Bar(look) => {
                canvas.rectangle(left, y, 12.0, 7.0, look.colour, 1.0);
                draw_mark_of_bar(canvas, (left + 6.0, y - 1.0), look);
            }
            Entry::Limit(_) => canvas.line((left, y), (right, y), Pen::limit()),
            Entry::Hosts(hosts, _) => {
                let each = entry.swatch() / *hosts as f64;
                for index in 0..*hosts {
                    canvas.rectangle(left + index as f64 * each, y - 4.0, each, 8.0, host(index, *hosts), 1.0);
                }
            }
        }
        let ink = Ink { size: SMALL, colour: MUTED, beside: Beside::Start };
        canvas.lines(entry.label(), right + 6.0, y, entry.most(), ink);
    }
}
