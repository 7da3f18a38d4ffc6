//! Reads figures and their references.

use super::measure;
use super::space::{dimension, selection};
use crate::Figure;
use crate::expression::reference_at;
use crate::keys::{self, FigureKeys, ReferenceKeys};
use crate::measure::Measure;
use crate::space::{Curve, Dimension, Level, Reference, Space, joined};
use lasthop_keys::{Document, DocumentError, Path, key, shown};
use toml::Value;

pub(super) fn figures(
    document: &Document,
    blocks: Vec<FigureKeys>,
    space: &mut Space,
) -> Result<Vec<Figure>, DocumentError> {
    let mut figures = Vec::new();
    for (index, keys) in blocks.into_iter().enumerate() {
        let here = Path::top("figures").index(index);
        let fail = |key: &str, problem: String| Err(document.refuse::<FigureKeys>(&here, key, problem));
        let x = dimension(document, &here.key(key!(FigureKeys, x)), space, &keys.x)?;
        let y = upright(document, &here, &keys)?;
        let y_label = keys.y_label.unwrap_or_else(|| y[0].0.label());
        let panels = keys.panels.map(|name| dimension(document, &here.key(key!(FigureKeys, panels)), space, &name));
        let panels = panels.transpose()?;
        if panels == Some(x) {
            return fail(key!(FigureKeys, panels), "is x as well".to_owned());
        }
        let (log_x, log_y) = keys.log.unwrap_or_default();
        let above_0 = |level: &Level| matches!(level, Level::Number(number) if *number > 0.0);
        if log_x && !space.dimensions[x].levels.iter().all(above_0) {
            let problem = format!("{} is not always a number above 0", space.dimensions[x].name);
            return fail(key!(FigureKeys, log), problem);
        }
        let selection = selection(document, &here.key(key!(FigureKeys, r#where)), space, keys.r#where)?;
        let mut references = Vec::new();
        for (index, block) in keys.reference.into_iter().enumerate() {
            let here = here.key(key!(FigureKeys, reference)).index(index);
            references.push(space.references.len());
            let reference = reference(document, block, &here, space, x)?;
            space.references.push(reference);
            check_reference(document, &here, space)?;
        }
        figures.push(Figure { title: keys.title, y, y_label, log_x, log_y, x, panels, selection, references });
    }
    Ok(figures)
}

/// The label of a figure's vertical axis and each measure's name in the legend. The name is empty for a single measure.
fn upright(document: &Document, here: &Path, keys: &FigureKeys) -> Result<Vec<(Measure, String)>, DocumentError> {
    let fail = |key: &str, problem: String| Err(document.refuse::<FigureKeys>(here, key, problem));
    let path = here.key(key!(FigureKeys, y));
    let read = |path: &Path, value: &Value| measure(document, path, keys::MEASURES, value);
    let measures = match (&keys.y, &keys.labels) {
        (Value::Array(listed), _) if listed.is_empty() => {
            return fail(key!(FigureKeys, y), "the list is empty".to_owned());
        }
        (Value::Array(listed), _) => {
            let one = |(index, value): (usize, &Value)| read(&path.index(index), value);
            listed.iter().enumerate().map(one).collect::<Result<Vec<_>, _>>()?
        }
        (one, None) => return Ok(vec![(read(&path, one)?, String::new())]),
        (one, Some(_)) => {
            read(&path, one)?;
            return fail(key!(FigureKeys, labels), "y is no list".to_owned());
        }
    };
    let labels = match &keys.labels {
        None => measures.iter().map(Measure::label).collect(),
        Some(labels) if labels.len() != measures.len() => {
            let problem = format!("there are {} for {} measures", labels.len(), measures.len());
            return fail(key!(FigureKeys, labels), problem);
        }
        Some(labels) => {
            let text = |label: &Value| match label.as_str().map(str::trim) {
                Some(text) if (1..=60).contains(&text.chars().count()) => Ok(text.to_owned()),
                _ => Err(format!("{} is no such text", shown(label))),
            };
            match labels.iter().map(text).collect::<Result<Vec<_>, _>>() {
                Ok(labels) => labels,
                Err(problem) => return fail(key!(FigureKeys, labels), problem),
            }
        }
    };
    if let Some(twice) = labels.iter().enumerate().find(|(index, label)| labels[..*index].contains(label)) {
        return fail(key!(FigureKeys, labels), format!("\"{}\" stands twice", twice.1));
    }
    Ok(measures.into_iter().zip(labels).collect())
}

fn reference(
    document: &Document,
    keys: ReferenceKeys,
    here: &Path,
    space: &Space,
    x: usize,
) -> Result<Reference, DocumentError> {
    let fail = |key: &str, problem: &str| Err(document.refuse::<ReferenceKeys>(here, key, problem));
    let selection = selection(document, &here.key(key!(ReferenceKeys, r#where)), space, keys.r#where)?;
    let curve = match (keys.formula, keys.points) {
        (Some(formula), None) => Curve::Formula(formula),
        (None, Some(points)) => {
            let scale = keys.scale.map_or(Ok(1.0), |scale| scale.constant());
            let scale =
                scale.map_err(|problem| document.problem(&here.key(key!(ReferenceKeys, scale)), problem.into()))?;
            let points =
                reference_points(document, &here.key(key!(ReferenceKeys, points)), &space.dimensions[x], &points)?;
            Curve::Points { x, points: points.into_iter().map(|(x, y)| (x, y * scale)).collect() }
        }
        (Some(_), Some(_)) => return fail(key!(ReferenceKeys, formula), "there are points as well"),
        (None, None) => return fail(key!(ReferenceKeys, points), "is not there"),
    };
    Ok(Reference { label: keys.label, source: keys.source, selection, curve })
}

fn reference_points(
    document: &Document,
    list: &Path,
    axis: &Dimension,
    points: &[Value],
) -> Result<Vec<(Level, f64)>, DocumentError> {
    let mut read: Vec<(Level, f64)> = Vec::new();
    for (index, point) in points.iter().enumerate() {
        let fail = |problem: String, accepted: &str| Err(document.error(&list.index(index), problem, accepted));
        let pair = match point.as_array().map(Vec::as_slice) {
            Some([x, y]) => as_number(y).map(|y| (Level::of(x), y)),
            _ => None,
        };
        let Some((x, y)) = pair else {
            return fail(format!("{} is no pair of a value and a number", shown(point)), "pairs [x, y]");
        };
        if axis.level(&x).is_none() {
            return fail(format!("{} never has the value {x}", axis.name), &axis.said());
        }
        if read.iter().any(|(other, _)| other.is(&x)) {
            return fail(format!("{x} stands twice"), "one point for each x");
        }
        read.push((x, y));
    }
    Ok(read)
}

fn as_number(value: &Value) -> Option<f64> {
    let number = value.as_float().or_else(|| value.as_integer().map(|number| number as f64))?;
    number.is_finite().then_some(number)
}

/// Checks the latest reference: a number at each of its points, and a unique label there.
fn check_reference(document: &Document, here: &Path, space: &Space) -> Result<(), DocumentError> {
    let this = space.references.len() - 1;
    let label = &space.references[this].label;
    for point in 0..space.points() {
        let said = reference_at(space, this, point)
            .map_err(|problem| document.problem(&here.key(key!(ReferenceKeys, formula)), problem.into()))?;
        let alike = (0..this).filter(|other| space.references[*other].label == *label);
        for other in alike {
            if said.is_some() && matches!(reference_at(space, other, point), Ok(Some(_))) {
                let problem = format!("\"{label}\" is there already for {}", joined(&space.coordinates(point)));
                return Err(document.refuse::<ReferenceKeys>(here, key!(ReferenceKeys, label), problem));
            }
        }
    }
    Ok(())
}
