//! What each case differs by from the first one.

use super::axis::Axis;
use super::bars::COLUMNS;
use super::canvas::{Beside, Canvas, Ink, Panel, Pen, SMALL, WIDTH, draw, fitted, number, text_width};
use super::{Figure, bars_of};
use crate::difference::Difference;
use crate::style::{GRID, INK, Look, MUTED};
use lasthop_scenario::Comparison;

const ROW: f64 = 30.0;
const TOP: f64 = 34.0;
const GAP: f64 = 24.0;

/// A row for each case but the first.
pub(crate) fn difference(comparison: &Comparison, looks: &[Look]) -> Option<Figure> {
    let (first, others) = comparison.cases.split_first()?;
    let looks = looks.get(1..).filter(|looks| !looks.is_empty())?;
    let longest = looks.iter().map(|look| text_width(&look.label, SMALL)).fold(60.0, f64::max);
    let names = (longest + 26.0).min(250.0);
    let width = (WIDTH - names) / COLUMNS.len() as f64 - GAP;
    let height = ROW * looks.len() as f64;
    let title = format!("Difference to case 1: {}", first.label);
    let svg = draw(&title, TOP + height + 26.0, |canvas| {
        for (row, look) in looks.iter().enumerate() {
            let label = fitted(&look.label, SMALL, names - 24.0);
            let ink = Ink { size: SMALL, colour: INK, beside: Beside::End };
            canvas.text(&label, names - 22.0, TOP + (row as f64 + 0.5) * ROW, ink);
        }
        for (index, column) in COLUMNS.iter().enumerate() {
            let differences: Vec<Option<Difference>> =
                others.iter().map(|case| Difference::of(first, case, (column.figure, column.range))).collect();
            let left = names + index as f64 * (width + GAP);
            draw_column(canvas, (left, width), height, column.name, &differences, looks);
        }
    });
    let seeds = bars_of(comparison.seeds.len());
    Some(Figure {
        name: "difference".into(),
        title: title.into(),
        caption: format!("Right of the line is more than in case 1, left of it less. {seeds}"),
        svg: svg.text,
    })
}

/// The numbers stand in a column of their own, where no bar and no other number is.
fn draw_column(
    canvas: &mut Canvas,
    (left, width): (f64, f64),
    height: f64,
    name: &str,
    differences: &[Option<Difference>],
    looks: &[Look],
) {
    let texts: Vec<String> = differences.iter().map(|difference| written(difference.as_ref())).collect();
    let numbers = texts.iter().map(|text| text_width(text, SMALL)).fold(0.0, f64::max) + 10.0;
    let ends = || differences.iter().flatten().flat_map(|difference| [difference.low, difference.high]);
    let (least, greatest) = (ends().fold(0.0, f64::min), ends().fold(0.0, f64::max));
    // A difference of nearly nothing is to look so: the axis is at least a tenth of the first case's figure long.
    let tenth = differences.iter().flatten().map(|difference| difference.first / 10.0).fold(0.0, f64::max);
    let missing = (tenth - (greatest - least)).max(0.0);
    let (least, greatest) = if greatest >= -least { (least, greatest + missing) } else { (least - missing, greatest) };
    let room = if greatest > least { (greatest - least) * 0.04 } else { 1.0 };
    let panel = Panel {
        left: left + numbers,
        top: TOP,
        width: width - numbers,
        height,
        x: Axis::Linear { from: least - room, to: greatest + room },
        y: Axis::Linear { from: 0.0, to: 1.0 },
    };
    canvas.text(name, left, TOP - 20.0, Ink::text(Beside::Start));
    for tick in panel.x.ticks(((panel.width / 45.0) as usize).clamp(2, 5)) {
        let x = panel.x_at(tick);
        canvas.line((x, panel.top), (x, panel.bottom()), Pen::new(GRID, 1.0));
        canvas.text(&number(tick), x, panel.bottom() + 13.0, Ink::label(Beside::Middle));
    }
    let zero = panel.x_at(0.0);
    canvas.line((zero, panel.top), (zero, panel.bottom()), Pen::new(MUTED, 1.0));
    for (index, ((difference, look), text)) in differences.iter().zip(looks).zip(&texts).enumerate() {
        let y = TOP + (index as f64 + 0.5) * ROW;
        canvas.text(text, panel.left - 8.0, y, Ink { size: SMALL, colour: INK, beside: Beside::End });
        let Some(difference) = difference else { continue };
        let end = panel.x_at(difference.mean);
        canvas.titled(&format!("{}: {name} {text}", look.label), |canvas| {
            canvas.rectangle(zero.min(end), y - 9.0, (end - zero).abs(), 18.0, look.colour, 1.0);
        });
        if difference.high > difference.low {
            let ends = (panel.x_at(difference.low), panel.x_at(difference.high));
            canvas.line((ends.0, y), (ends.1, y), Pen::new(INK, 1.5));
        }
    }
}

fn written(difference: Option<&Difference>) -> String {
    let Some(difference) = difference else { return "none".to_owned() };
    match difference.percentage() {
        Some(percent) => format!("{} ({percent})", difference.text()),
        None => difference.text(),
    }
}
