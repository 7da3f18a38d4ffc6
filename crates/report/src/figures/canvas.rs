//! A canvas in CSS pixels, and a rectangle on it with axes.
//!
//! Drawings are twice as large as shown, so that whole numbers are precise enough. Axes are placed by hand; only this
//! guarantees that labels do not overlap. That leaves a library six SVG elements to write, less work than calling one.

use super::axis::Axis;
use super::text::{line_height, text_height, text_width, wrapped};
use crate::style::{Colour, DASHES, GRID, INK, LIMIT, LIMIT_DASH, Look, MUTED, PAPER};
use std::cell::Cell;
use std::fmt::{self, Display, Write as _};

/// Width of a figure for a screen or for paper, without its edge.
const WIDTH: f64 = 960.0;
/// The least that a figure has room in: its labels are then 9 pixels high on a phone of 360 pixels.
const LEAST_WIDTH: f64 = 400.0;
/// What is narrower has its panels below each other.
const NARROW: f64 = 640.0;

thread_local! {
    static FULL_WIDTH: Cell<f64> = const { Cell::new(WIDTH) };
}

/// Width of every figure, without its edge.
pub(crate) fn full_width() -> f64 {
    FULL_WIDTH.get()
}

/// Whether panels stand below each other.
pub(crate) fn is_narrow() -> bool {
    full_width() < NARROW
}

/// Makes the figures that this thread draws from now on as wide as a page has room: CSS pixels, 400 to 960.
pub fn set_width(pixels: f64) {
    FULL_WIDTH.set(if pixels.is_finite() { (pixels - EDGE).clamp(LEAST_WIDTH, WIDTH) } else { WIDTH });
}

/// Empty to the left of the canvas: letters reach beyond the place where they begin, and some programs cut them off.
const EDGE: f64 = 6.0;
const SCALE: f64 = 2.0;
/// The namespace of SVG.
const SVG: &str = "http://www.w3.org/2000/svg";

/// The least room for the tick labels of the vertical axis, and right of a panel.
const MARGIN_LEFT: f64 = 48.0;
const MARGIN_RIGHT: f64 = 14.0;
/// The distance of tick labels from a vertical axis.
const LABELS_AWAY: f64 = 8.0;
/// From the bottom of a panel to the middle of its tick labels, and to that of the first line of its axis's name.
pub(crate) const TO_LABELS: f64 = 14.0;
const TO_NAME: f64 = 31.0;

/// Sizes of text.
pub(crate) const SMALL: f64 = 11.5;
pub(crate) const NORMAL: f64 = 13.0;

/// A finished figure.
#[derive(Clone, Debug)]
pub(crate) struct Svg {
    pub(crate) text: String,
}

/// The alignment of a text to its point.
#[derive(Clone, Copy)]
pub(crate) enum Beside {
    /// The text begins at the point.
    Start,
    /// The text is centred on the point.
    Middle,
    /// The text ends at the point.
    End,
}

/// The style of a text.
#[derive(Clone, Copy)]
pub(crate) struct Ink {
    pub(crate) size: f64,
    pub(crate) colour: Colour,
    pub(crate) beside: Beside,
}

impl Ink {
    pub(crate) const fn label(beside: Beside) -> Self {
        Self { size: SMALL, colour: MUTED, beside }
    }

    pub(crate) const fn text(beside: Beside) -> Self {
        Self { size: NORMAL, colour: INK, beside }
    }
}

/// The style of a line.
#[derive(Clone, Copy)]
pub(crate) struct Pen {
    pub(crate) colour: Colour,
    pub(crate) width: f64,
    pub(crate) opacity: f64,
    /// The index of its dashes in [`DASHES`]. 0: none.
    pub(crate) dash: usize,
}

impl Pen {
    pub(crate) const fn new(colour: Colour, width: f64) -> Self {
        Self { colour, width, opacity: 1.0, dash: 0 }
    }

    /// With the colour and the dashes of an item.
    pub(crate) const fn of(look: &Look, width: f64) -> Self {
        Self { dash: look.dash, ..Self::new(look.colour, width) }
    }

    /// Of limits.
    pub(crate) const fn limit() -> Self {
        Self { dash: LIMIT_DASH, ..Self::new(LIMIT, 1.5) }
    }
}

/// A canvas.
pub(crate) struct Canvas {
    shapes: String,
}

/// The left end and the width of every figure in the units of its `viewBox`, its edge included.
pub fn span() -> [i32; 2] {
    [-units(EDGE), units(full_width() + EDGE)]
}

/// Draws on an empty canvas. The title is for screen readers. The note stands below: whose numbers these are, and what
/// bars mean.
pub(crate) fn draw(title: &str, note: &str, height: f64, draw: impl FnOnce(&mut Canvas)) -> Svg {
    let mut canvas = Canvas { shapes: String::new() };
    draw(&mut canvas);
    let full = height + text_height(note, SMALL, full_width()) + 4.0;
    canvas.lines(note, 0.0, height + line_height(SMALL) / 2.0, full_width(), Ink::label(Beside::Start));
    let shapes = canvas.shapes;
    let (title, paper, width) = (Escaped(title), PAPER.hex(), full_width() + EDGE);
    let [edge, across] = span();
    let view = format!("{edge} 0 {across} {}", units(full));
    let text = format!(
        r#"<svg xmlns="{SVG}" width="{width}" height="{full}" viewBox="{view}" role="img" font-family="system-ui, sans-serif">
<title>{title}</title>
<style>polyline{{stroke-linejoin:round}}</style>
<rect x="{edge}" width="100%" height="100%" fill="{paper}"/>
{shapes}</svg>
"#
    );
    Svg { text }
}

impl Canvas {
    fn add(&mut self, element: fmt::Arguments<'_>) {
        let _ = writeln!(self.shapes, "{element}");
    }

    pub(crate) fn rectangle(&mut self, left: f64, top: f64, width: f64, height: f64, colour: Colour, opacity: f64) {
        let (x, y, fill) = (units(left), units(top), colour.hex());
        // Every shape must be visible: at least one unit wide and high.
        let (width, height) = ((units(left + width) - x).max(1), (units(top + height) - y).max(1));
        self.add(format_args!(
            r#"<rect x="{x}" y="{y}" width="{width}" height="{height}" opacity="{opacity}" fill="{fill}" stroke="none"/>"#
        ));
    }

    pub(crate) fn line(&mut self, from: (f64, f64), to: (f64, f64), pen: Pen) {
        let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(units);
        self.add(format_args!(r#"<line {pen} x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>"#));
    }

    /// A line through these points. A page with a script shows the name.
    pub(crate) fn path(&mut self, name: &str, points: &[(f64, f64)], pen: Pen) {
        let name = Escaped(name);
        self.add(format_args!(r#"<polyline data-name="{name}" fill="none" {pen} points="{}"/>"#, Points(points)));
    }

    /// Shapes that mean one thing, which this text tells: browsers show it beside the pointer.
    pub(crate) fn titled(&mut self, title: &str, draw: impl FnOnce(&mut Self)) {
        self.add(format_args!("<g><title>{}</title>", Escaped(title)));
        draw(self);
        self.add(format_args!("</g>"));
    }

    /// The grid and the tick labels of a panel, with its axes. A page with a script replaces them when it enlarges a part.
    fn axis(&mut self, panel: &Panel, draw: impl FnOnce(&mut Self)) {
        let (place, x, y) = (Place(panel), panel.x, panel.y);
        self.add(format_args!(r#"<g class="axis" data-box="{place}" data-x="{x}" data-y="{y}">"#));
        draw(self);
        self.add(format_args!("</g>"));
    }

    /// Shapes of one kind: `bar` is an interval, `beyond` an arrow where something is outside an axis.
    pub(crate) fn kind(&mut self, kind: &str, draw: impl FnOnce(&mut Self)) {
        self.add(format_args!(r#"<g class="{kind}">"#));
        draw(self);
        self.add(format_args!("</g>"));
    }

    /// What stands in a panel at the places of its numbers, with the names of both axes. By these a page with a script
    /// tells the numbers below the pointer, and enlarges a part.
    pub(crate) fn data(&mut self, panel: &Panel, names: (&str, &str), draw: impl FnOnce(&mut Self)) {
        let (place, x, y, x_name, y_name) = (Place(panel), panel.x, panel.y, Escaped(names.0), Escaped(names.1));
        self.add(format_args!(
            r#"<g class="data" data-box="{place}" data-x="{x}" data-y="{y}" data-x-name="{x_name}" data-y-name="{y_name}">"#
        ));
        draw(self);
        self.add(format_args!("</g>"));
    }

    pub(crate) fn circle(&mut self, (x, y): (f64, f64), radius: f64, colour: Colour) {
        let ([cx, cy, r], fill) = ([x, y, radius].map(units), colour.hex());
        self.add(format_args!(
            r#"<circle cx="{cx}" cy="{cy}" r="{r}" opacity="1" fill="{fill}" stroke="none" stroke-width="0"/>"#
        ));
    }

    /// A filled polygon with these corners.
    pub(crate) fn polygon(&mut self, corners: &[(f64, f64)], colour: Colour) {
        let fill = colour.hex();
        self.add(format_args!(r#"<polygon opacity="1" fill="{fill}" points="{}"/>"#, Points(corners)));
    }

    /// Text beside a point in as many lines as it needs, the first one at this height. Returns their number.
    pub(crate) fn lines(&mut self, text: &str, x: f64, y: f64, width: f64, ink: Ink) -> usize {
        let lines = wrapped(text, ink.size, width);
        for (index, line) in lines.iter().enumerate() {
            self.text(line, x, y + index as f64 * line_height(ink.size), ink);
        }
        lines.len()
    }

    /// Text in as many lines as it needs, around this height.
    pub(crate) fn lines_around(&mut self, text: &str, x: f64, y: f64, width: f64, ink: Ink) {
        let lines = wrapped(text, ink.size, width).len();
        self.lines(text, x, y - (lines - 1) as f64 * line_height(ink.size) / 2.0, width, ink);
    }

    /// Text beside a point at half its height.
    pub(crate) fn text(&mut self, text: &str, x: f64, y: f64, ink: Ink) {
        let anchor = match ink.beside {
            Beside::Start => "start",
            Beside::Middle => "middle",
            Beside::End => "end",
        };
        let (x, y, size, fill, text) = (units(x), units(y), ink.size * SCALE, ink.colour.hex(), Escaped(text));
        self.add(format_args!(
            r#"<text x="{x}" y="{y}" dy="0.5ex" text-anchor="{anchor}" font-family="inherit" font-size="{size}" opacity="1" fill="{fill}">
{text}
</text>"#
        ));
    }
}

impl Display for Pen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (opacity, stroke, width) = (self.opacity, self.colour.hex(), units(self.width));
        write!(f, r#"opacity="{opacity}" stroke="{stroke}" stroke-width="{width}""#)?;
        match DASHES[self.dash] {
            "" => Ok(()),
            dashes => write!(f, r#" stroke-dasharray="{dashes}""#),
        }
    }
}

/// With a tenth of a unit: the numbers at the points can be told from their places.
struct Points<'a>(&'a [(f64, f64)]);

impl Display for Points<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = |pixels: f64| (pixels * SCALE * 10.0).round() / 10.0;
        self.0.iter().try_for_each(|(x, y)| write!(f, "{},{} ", tenths(*x), tenths(*y)))
    }
}

/// Left, top, width and height.
struct Place<'a>(&'a Panel);

impl Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [left, top, width, height] = [self.0.left, self.0.top, self.0.width, self.0.height].map(|at| at * SCALE);
        write!(f, "{left} {top} {width} {height}")
    }
}

/// Text escaped for use between tags and in attributes.
struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|letter| match letter {
            '&' => f.write_str("&amp;"),
            '<' => f.write_str("&lt;"),
            '>' => f.write_str("&gt;"),
            '"' => f.write_str("&quot;"),
            letter => f.write_char(letter),
        })
    }
}

/// CSS pixels in the units of the canvas.
fn units(pixels: f64) -> i32 {
    (pixels * SCALE).round() as i32
}

/// A rectangle with axes.
#[derive(Clone, Copy)]
pub(crate) struct Panel {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
}

impl Panel {
    pub(crate) fn x_at(&self, number: f64) -> f64 {
        self.left + self.width * self.x.place(number)
    }

    pub(crate) fn y_at(&self, number: f64) -> f64 {
        self.top + self.height * (1.0 - self.y.place(number))
    }

    pub(crate) fn at(&self, x: f64, y: f64) -> (f64, f64) {
        (self.x_at(x), self.y_at(y))
    }

    pub(crate) fn bottom(&self) -> f64 {
        self.top + self.height
    }

    pub(crate) fn right(&self) -> f64 {
        self.left + self.width
    }

    fn x_ticks(&self) -> Vec<(f64, String)> {
        x_ticks(self.x, self.width)
    }

    /// Draws the grid, tick labels and name of the vertical axis. The name's last line is above the panel.
    pub(crate) fn draw_y(&self, canvas: &mut Canvas, name: &str, margins: Margins) {
        canvas.axis(self, |canvas| {
            for (tick, label) in y_ticks(self.y, self.height) {
                let y = self.y_at(tick);
                canvas.line((self.left, y), (self.right(), y), Pen::new(GRID, 1.0));
                canvas.text(&label, self.left - LABELS_AWAY, y, Ink::label(Beside::End));
            }
        });
        let name = y_name(name, self.y);
        let width = margins.left + self.width + margins.right;
        let lines = wrapped(&name, SMALL, width).len();
        let y = self.top - 14.0 - (lines - 1) as f64 * line_height(SMALL);
        canvas.lines(&name, self.left - margins.left, y, width, Ink::label(Beside::Start));
    }

    /// Draws the base line and the name of the horizontal axis.
    pub(crate) fn draw_x_base(&self, canvas: &mut Canvas, name: &str) {
        canvas.line((self.left, self.bottom()), (self.right(), self.bottom()), Pen::new(MUTED, 1.0));
        self.draw_x_name(canvas, &x_name(name, self.x), 0.0);
    }

    /// Draws the base line, tick labels and name of the horizontal axis.
    pub(crate) fn draw_x(&self, canvas: &mut Canvas, name: &str) {
        canvas.axis(self, |canvas| {
            for (tick, label) in self.x_ticks() {
                let x = self.x_at(tick);
                canvas.line((x, self.bottom()), (x, self.bottom() + 4.0), Pen::new(MUTED, 1.0));
                canvas.text(&label, x, self.bottom() + TO_LABELS, Ink::label(Beside::Middle));
            }
        });
        self.draw_x_base(canvas, name);
    }

    /// Draws the name of the horizontal axis, so much lower than below one line of labels.
    pub(crate) fn draw_x_name(&self, canvas: &mut Canvas, name: &str, lower: f64) {
        let middle = self.left + self.width / 2.0;
        canvas.lines(name, middle, self.bottom() + TO_NAME + lower, self.width, Ink::label(Beside::Middle));
    }

    /// Draws upright lines at the ticks of the horizontal axis, and their labels: what rows of bars have.
    pub(crate) fn draw_x_grid(&self, canvas: &mut Canvas) {
        canvas.axis(self, |canvas| {
            for (tick, label) in self.x_ticks() {
                let x = self.x_at(tick);
                canvas.line((x, self.top), (x, self.bottom()), Pen::new(GRID, 1.0));
                canvas.text(&label, x, self.bottom() + TO_LABELS, Ink::label(Beside::Middle));
            }
        });
    }
}

/// The room beside a panel for its labels.
#[derive(Clone, Copy)]
pub(crate) struct Margins {
    pub(crate) left: f64,
    pub(crate) right: f64,
}

impl Margins {
    /// For panels of this height with these vertical axes, and with this horizontal one in a cell of this width.
    pub(crate) fn of(x: Axis, cell: f64, ys: impl IntoIterator<Item = Axis>, height: f64) -> Self {
        let widest =
            |ticks: Vec<(f64, String)>| ticks.iter().map(|(_, label)| text_width(label, SMALL)).fold(0.0, f64::max);
        let labels = ys.into_iter().map(|y| widest(y_ticks(y, height))).fold(0.0, f64::max);
        // A label is centred at its tick, and may stand at the very end.
        let last = widest(x_ticks(x, cell)) / 2.0 + 2.0;
        Self { left: MARGIN_LEFT.max(labels + LABELS_AWAY + 4.0).max(last), right: MARGIN_RIGHT.max(last) }
    }

    /// Without labels below.
    pub(crate) fn of_y(y: Axis, height: f64) -> Self {
        Self::of(Axis::Linear { from: 0.0, to: 1.0 }, full_width(), [y], height)
    }
}

/// The height of this name above a panel of a cell of this width, with some room.
pub(crate) fn y_name_height(name: &str, y: Axis, cell: f64) -> f64 {
    text_height(&y_name(name, y), SMALL, cell) + 15.0
}

/// The height of the labels and the name below a panel of this width, with some room.
pub(crate) fn x_name_height(name: &str, x: Axis, width: f64) -> f64 {
    text_height(&x_name(name, x), SMALL, width) + 31.0
}

fn y_name(name: &str, y: Axis) -> String {
    if y.is_log() { format!("{name}, log scale") } else { name.to_owned() }
}

pub(crate) fn x_name(name: &str, x: Axis) -> String {
    y_name(name, x)
}

fn y_ticks(y: Axis, height: f64) -> Vec<(f64, String)> {
    labelled(y.ticks((height / 34.0) as usize))
}

/// As many ticks as have room for their labels beside each other.
fn x_ticks(x: Axis, width: f64) -> Vec<(f64, String)> {
    let has_room = |ticks: &Vec<(f64, String)>| {
        ticks.windows(2).all(|pair| {
            let [(from, one), (to, other)] = pair else { return true };
            let apart = (x.place(*to) - x.place(*from)) * width;
            apart >= (text_width(one, SMALL) + text_width(other, SMALL)) / 2.0 + 8.0
        })
    };
    let most = (width / 60.0).max(3.0) as usize;
    let mut ticks = (1..=most).rev().map(|at_most| labelled(x.ticks(at_most)));
    // One in the narrowest of panels.
    let one = || labelled(x.ticks(1)).into_iter().take(1).collect();
    ticks.find(has_room).unwrap_or_else(one)
}

/// Ticks with their labels. No two labels are the same.
fn labelled(ticks: Vec<f64>) -> Vec<(f64, String)> {
    let labels: Vec<String> = ticks.iter().map(|tick| number(*tick)).collect();
    if labels.windows(2).all(|pair| pair[0] != pair[1]) {
        return ticks.into_iter().zip(labels).collect();
    }
    // Far from 0 with small steps.
    let step = ticks.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
    let digits = (1.0 - step.log10().floor()).clamp(0.0, 15.0) as usize;
    ticks.into_iter().map(|tick| (tick, format!("{tick:.digits$}"))).collect()
}

/// A number as a tick label: the fewest digits needed, with separated thousands.
pub(crate) fn number(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude > 0.0 && !(9.99e-4..9.995e6).contains(&magnitude) {
        let rounded = format!("{value:.3e}").parse::<f64>().unwrap_or(value);
        return format!("{rounded:e}");
    }
    let digits = match magnitude {
        m if m >= 100.0 || (m - m.round()).abs() < 1e-9 => 0,
        m if m >= 10.0 || ((m * 10.0) - (m * 10.0).round()).abs() < 1e-9 => 1,
        m if m >= 1.0 => 2,
        m if m >= 0.1 => 3,
        m if m >= 0.01 => 4,
        _ => 5,
    };
    let text = format!("{value:.digits$}");
    let text = if digits > 1 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    let (whole, fraction) = text.split_once('.').map_or((text, None), |(whole, rest)| (whole, Some(rest)));
    let (sign, whole) = whole.strip_prefix('-').map_or(("", whole), |whole| ("-", whole));
    let mut parted = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at) % 3 == 0 && whole.len() > 4 {
            parted.push('\u{202f}');
        }
        parted.push(digit);
    }
    match fraction {
        Some(fraction) => format!("{sign}{parted}.{fraction}"),
        None => format!("{sign}{parted}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_no_digits_that_say_nothing() {
        for (value, text) in [(0.0, "0"), (5.0, "5"), (0.5, "0.5"), (0.25, "0.25"), (2500.0, "2500"), (-12.5, "-12.5")]
        {
            assert_eq!(number(value), text);
        }
        assert_eq!(number(12_500.0), "12\u{202f}500");
        let small_and_large =
            [(2e-4, "2e-4"), (1e-6, "1e-6"), (3.0 * 1e-5, "3e-5"), (1e-12, "1e-12"), (2.5e7, "2.5e7")];
        for (value, text) in small_and_large.into_iter().chain([(0.001, "0.001")]) {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn ticks_of_small_numbers_are_told_apart() {
        let axis = Axis::Linear { from: -0.0025, to: 0.0525 };
        let written: Vec<String> = axis.ticks(11).into_iter().map(number).collect();
        let all = ["0", "0.005", "0.01", "0.015", "0.02", "0.025", "0.03", "0.035", "0.04", "0.045", "0.05"];
        assert_eq!(written, all);
        let far: Vec<String> =
            labelled(vec![2_000_000.0, 2_000_000.1, 2_000_000.2]).into_iter().map(|(_, label)| label).collect();
        assert!(far[0] != far[1] && far[1] != far[2], "{far:?}");
        for (value, text) in [(0.125, "0.125"), (0.0015, "0.0015"), (1.5, "1.5"), (0.9999, "1"), (1.0 / 3.0, "0.333")] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn text_in_a_figure_is_escaped() {
        let svg = draw("<b>", "", 20.0, |canvas| canvas.text("a<b&c", 1.0, 1.0, Ink::text(Beside::Start)));
        assert!(svg.text.contains("<title>&lt;b&gt;</title>") && svg.text.contains("a&lt;b&amp;c"), "{}", svg.text);
    }
}
