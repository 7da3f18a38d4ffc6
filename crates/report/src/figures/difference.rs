//! What each case differs by from the first one.

use super::axis::Axis;
use super::bars::{COLUMNS, Rows};
use super::canvas::{Beside, Canvas, Ink, Pen, SMALL, draw};
use super::interval::{Along, draw_interval};
use super::text::text_width;
use super::{Figure, bars_of, note_of_means};
use crate::difference::Difference;
use crate::style::{INK, Look, MUTED};
use lasthop_scenario::Comparison;

/// A row for each case but the first.
pub(crate) fn difference(comparison: &Comparison, looks: &[Look]) -> Option<Figure> {
    let (first, others) = comparison.cases.split_first()?;
    let looks = looks.get(1..).filter(|looks| !looks.is_empty())?;
    let rows = Rows::of(looks);
    let title = format!("Difference to case 1: {}", first.label);
    let note = note_of_means("Means of the differences to case 1 with the same seed", &comparison.seeds);
    let svg = draw(&title, &note, rows.top + rows.height(looks.len()) + 26.0, |canvas| {
        rows.draw_names(canvas, looks);
        for (index, column) in COLUMNS.iter().enumerate() {
            let differences: Vec<Option<Difference>> =
                others.iter().map(|case| Difference::of(first, case, (column.figure, column.range))).collect();
            draw_column(canvas, &rows, index, &differences, looks);
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
fn draw_column(canvas: &mut Canvas, rows: &Rows, index: usize, differences: &[Option<Difference>], looks: &[Look]) {
    let texts: Vec<String> = differences.iter().map(|difference| written(difference.as_ref())).collect();
    // Of several lines, if a bar would have no room beside one.
    let widest = texts.iter().map(|text| text_width(text, SMALL)).fold(0.0, f64::max);
    let of_text = widest.min(0.5 * rows.column) + 1.0;
    let numbers = of_text + 9.0;
    let panel = rows.panel(index, looks.len(), (numbers, 24.0), axis(differences));
    rows.draw_column(canvas, &panel, index);
    let zero = panel.x_at(0.0);
    canvas.line((zero, panel.top), (zero, panel.bottom()), Pen::new(MUTED, 1.0));
    for (row, ((difference, look), text)) in differences.iter().zip(looks).zip(&texts).enumerate() {
        let y = rows.at(row);
        canvas.lines_around(text, panel.left - 8.0, y, of_text, Ink { size: SMALL, colour: INK, beside: Beside::End });
        let Some(difference) = difference else { continue };
        let end = panel.x_at(difference.mean);
        canvas.titled(&format!("{}: {} {text}", look.label, COLUMNS[index].name), |canvas| {
            canvas.rectangle(zero.min(end), y - 9.0, (end - zero).abs(), 18.0, look.colour, 1.0);
            draw_interval(canvas, &panel, Along::X, y, (difference.low, difference.high), Pen::new(INK, 1.5));
        });
    }
}

fn axis(differences: &[Option<Difference>]) -> Axis {
    let all = || differences.iter().flatten();
    let greatest = |of: fn(&Difference) -> f64| all().map(of).fold(0.0, f64::max);
    // Two very different seeds give an interval of many times their mean: it ends with an arrow.
    let most = 4.0 * greatest(|difference| difference.mean.abs());
    let bounded = |end: f64| if most > 0.0 { end.clamp(-most, most) } else { end };
    let least = all().map(|difference| bounded(difference.low)).fold(0.0, f64::min);
    let greatest_end = all().map(|difference| bounded(difference.high)).fold(0.0, f64::max);
    // A difference of nearly nothing is to look so: the axis is at least a tenth of the first case's figure long.
    let missing = (greatest(|difference| difference.first / 10.0) - (greatest_end - least)).max(0.0);
    let (least, greatest) =
        if greatest_end >= -least { (least, greatest_end + missing) } else { (least - missing, greatest_end) };
    let room = if greatest > least { (greatest - least) * 0.04 } else { 1.0 };
    Axis::Linear { from: least - room, to: greatest + room }
}

fn written(difference: Option<&Difference>) -> String {
    let Some(difference) = difference else { return "none".to_owned() };
    match difference.percentage() {
        Some(percent) => format!("{} ({percent})", difference.text()),
        None => difference.text(),
    }
}
