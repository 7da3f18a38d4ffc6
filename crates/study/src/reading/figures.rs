//! Figures, and what they are compared with.

use super::entries::{Entries, Source};
use super::measure;
use super::space::{dimension, level_of, selection};
use crate::expression::reference_at;
use crate::keys::Section;
use crate::measure::{Measure, Problem};
use crate::space::{Curve, Dimension, Level, Reference, Space, joined};
use crate::{Figure, StudyError};
use lasthop_keys::{Path, shown};
use toml::Value;

pub(super) fn figures(
    source: &Source<'_>,
    top: &mut Entries<'_>,
    space: &mut Space,
) -> Result<Vec<Figure>, StudyError> {
    let mut figures = Vec::new();
    for mut entries in top.blocks("figures", Section::Figure)? {
        let title = entries.needed_text("title", 200)?;
        let x = entries.needed_text("x", 60)?;
        let x = dimension(&entries, space, "x", &x)?;
        let y = upright(source, &mut entries)?;
        let y_label = entries.text("y_label", 80)?.unwrap_or_else(|| y[0].0.label());
        let panels = match entries.text("panels", 60)? {
            Some(name) => Some(dimension(&entries, space, "panels", &name)?),
            None => None,
        };
        if panels == Some(x) {
            return Err(entries.error("panels", "is x as well"));
        }
        let (log_x, log_y) = match entries.text("log", 2)?.as_deref() {
            None => (false, false),
            Some("x") => (true, false),
            Some("y") => (false, true),
            Some("xy") => (true, true),
            Some(other) => return Err(entries.error("log", format!("\"{other}\" is not one of the words"))),
        };
        let above_0 = |level: &Level| matches!(level, Level::Number(number) if *number > 0.0);
        if log_x && !space.dimensions[x].levels.iter().all(above_0) {
            return Err(entries.error("log", format!("{} is not always a number above 0", space.dimensions[x].name)));
        }
        let selection = selection(&mut entries, space)?;
        let mut references = Vec::new();
        for mut block in entries.blocks("reference", Section::Reference)? {
            references.push(space.references.len());
            let reference = reference(&mut block, space, x)?;
            space.references.push(reference);
            check_reference(&block, space)?;
        }
        figures.push(Figure { title, y, y_label, log_x, log_y, x, panels, selection, references });
    }
    Ok(figures)
}

/// What is along the upright axis of a figure, and what the legend calls it: empty where it is one measure only.
fn upright(source: &Source<'_>, entries: &mut Entries<'_>) -> Result<Vec<(Measure, String)>, StudyError> {
    let read = |path: &Path, value: &Value| measure(source, Section::Figure, path, "y", value);
    let path = entries.path.key("y");
    let measures = match entries.table.remove("y") {
        None => return Err(entries.missing("y")),
        Some(Value::Array(listed)) if listed.is_empty() => return Err(entries.error("y", "the list is empty")),
        Some(Value::Array(listed)) => {
            let one = |(index, value): (usize, &Value)| read(&path.index(index), value);
            listed.iter().enumerate().map(one).collect::<Result<Vec<_>, _>>()?
        }
        Some(one) if entries.table.contains_key("labels") => {
            read(&path, &one)?;
            return Err(entries.error("labels", "y is no list"));
        }
        Some(one) => return Ok(vec![(read(&path, &one)?, String::new())]),
    };
    let labels = match entries.list("labels")? {
        None => measures.iter().map(Measure::label).collect(),
        Some(labels) if labels.len() != measures.len() => {
            let problem = format!("there are {} for {} measures", labels.len(), measures.len());
            return Err(entries.error("labels", problem));
        }
        Some(labels) => {
            let text = |label: &Value| match label.as_str().map(str::trim) {
                Some(text) if (1..=60).contains(&text.chars().count()) => Ok(text.to_owned()),
                _ => Err(entries.error("labels", format!("{} is no such text", shown(label)))),
            };
            labels.iter().map(text).collect::<Result<Vec<_>, _>>()?
        }
    };
    if let Some(twice) = labels.iter().enumerate().find(|(index, label)| labels[..*index].contains(label)) {
        return Err(entries.error("labels", format!("\"{}\" stands twice", twice.1)));
    }
    Ok(measures.into_iter().zip(labels).collect())
}

fn reference(block: &mut Entries<'_>, space: &Space, x: usize) -> Result<Reference, StudyError> {
    let label = block.needed_text("label", 60)?;
    let source = block.needed_text("source", 500)?;
    let selection = selection(block, space)?;
    let curve = match (block.formula("formula", 1_000)?, block.list("points")?) {
        (Some(formula), None) => Curve::Formula(formula),
        (None, Some(points)) => {
            let scale = block.formula("scale", 100)?.map_or(Ok(1.0), |scale| scale.constant());
            let scale = scale.map_err(|problem| block.source.error(&block.path.key("scale"), problem))?;
            let points = reference_points(block, &space.dimensions[x], &points)?;
            Curve::Points { x, points: points.into_iter().map(|(x, y)| (x, y * scale)).collect() }
        }
        (Some(_), Some(_)) => return Err(block.error("formula", "there are points as well")),
        (None, None) => return Err(block.missing("points")),
    };
    Ok(Reference { label, source, selection, curve })
}

fn reference_points(block: &Entries<'_>, axis: &Dimension, points: &[Value]) -> Result<Vec<(Level, f64)>, StudyError> {
    let mut read: Vec<(Level, f64)> = Vec::new();
    for (index, point) in points.iter().enumerate() {
        let wrong = |problem: String, accepted: String| {
            block.source.error(&block.path.key("points").index(index), Problem::new(problem, accepted))
        };
        let pair = match point.as_array().map(Vec::as_slice) {
            Some([x, y]) => as_number(y).map(|y| (level_of(x), y)),
            _ => None,
        };
        let Some((x, y)) = pair else {
            return Err(wrong(format!("{} is no pair of a value and a number", shown(point)), "pairs [x, y]".into()));
        };
        if axis.level(&x).is_none() {
            return Err(wrong(format!("{} never has the value {x}", axis.name), axis.said()));
        }
        if read.iter().any(|(other, _)| other.is(&x)) {
            return Err(wrong(format!("{x} stands twice"), "one point for each x".into()));
        }
        read.push((x, y));
    }
    Ok(read)
}

fn as_number(value: &Value) -> Option<f64> {
    let number = value.as_float().or_else(|| value.as_integer().map(|number| number as f64))?;
    number.is_finite().then_some(number)
}

/// The reference that was added last: a number at every point that it is about, and the only one of its label there.
fn check_reference(block: &Entries<'_>, space: &Space) -> Result<(), StudyError> {
    let this = space.references.len() - 1;
    let label = &space.references[this].label;
    for point in 0..space.points() {
        let said = reference_at(space, this, point)
            .map_err(|problem| block.source.error(&block.path.key("formula"), problem))?;
        let alike = (0..this).filter(|other| space.references[*other].label == *label);
        for other in alike {
            if said.is_some() && matches!(reference_at(space, other, point), Ok(Some(_))) {
                let at = joined(&space.coordinates(point));
                return Err(block.error("label", format!("\"{label}\" is there already for {at}")));
            }
        }
    }
    Ok(())
}
