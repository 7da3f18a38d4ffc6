//! The points of a study: all combinations of its axes' values.

use crate::formula::Formula;
use serde::{Deserialize, Serialize};
use std::fmt;
use toml::Value;

/// The name of the cases among the axes.
pub(crate) const CASE: &str = "case";
/// The name of the drawn scenarios among the axes.
pub(crate) const SCENARIO: &str = "scenario";

/// A value of an axis, under its name in figures and claims.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Level {
    /// A number.
    Number(f64),
    /// A word.
    Text(String),
}

/// One axis with its value at a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Coordinate {
    /// The axis's name, or "case".
    pub axis: String,
    /// Its value.
    pub value: Level,
}

/// An axis, or the cases.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Dimension {
    pub(crate) name: String,
    pub(crate) label: String,
    /// The varied keys, as after `--set`; empty for the cases.
    pub(crate) keys: Vec<String>,
    pub(crate) levels: Vec<Level>,
}

/// All axes, the cases first, and the references.
#[derive(Clone, Debug, Default)]
pub(crate) struct Space {
    pub(crate) dimensions: Vec<Dimension>,
    pub(crate) references: Vec<Reference>,
}

/// Theory or published points.
#[derive(Clone, Debug)]
pub(crate) struct Reference {
    pub(crate) label: String,
    pub(crate) source: String,
    pub(crate) selection: Selection,
    pub(crate) curve: Curve,
}

#[derive(Clone, Debug)]
pub(crate) enum Curve {
    /// Values along a dimension.
    Points { x: usize, points: Vec<(Level, f64)> },
    /// An expression in the names of the dimensions.
    Formula(Formula),
}

/// The allowed levels of each dimension; `None` allows all.
pub(crate) type Selection = Vec<Option<Vec<usize>>>;

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl fmt::Display for Coordinate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A case needs no axis name.
        if self.axis == CASE { write!(f, "{}", self.value) } else { write!(f, "{}={}", self.axis, self.value) }
    }
}

/// `ARF, n=10, delay=4`.
pub(crate) fn joined(coordinates: &[Coordinate]) -> String {
    coordinates.iter().map(Coordinate::to_string).collect::<Vec<_>>().join(", ")
}

/// Whether a number with a unit also needs the name of its axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Words {
    /// `ARF, 4 ms, terminals 10`: a legend has little room.
    Few,
    /// `ARF, delay 4 ms, terminals 10`.
    All,
}

/// A point in words, with the axes' labels.
pub(crate) fn titled(space: &Space, coordinates: &[Coordinate], words: Words) -> String {
    let title = |coordinate: &Coordinate| {
        let dimension = space.dimensions.iter().find(|dimension| dimension.name == coordinate.axis);
        let label = dimension.map_or(coordinate.axis.as_str(), |dimension| dimension.label.as_str());
        match &coordinate.value {
            // A word explains itself.
            Level::Text(word) => word.clone(),
            Level::Number(number) => match label.strip_suffix(')').and_then(|label| label.rsplit_once(" (")) {
                Some((_, unit)) if words == Words::Few => format!("{number} {unit}"),
                Some((label, unit)) => format!("{label} {number} {unit}"),
                None => format!("{label} {number}"),
            },
        }
    };
    coordinates.iter().map(title).collect::<Vec<_>>().join(", ")
}

impl Level {
    /// The level of this value.
    pub(crate) fn of(value: &Value) -> Self {
        match value {
            Value::Integer(number) => Self::Number(*number as f64),
            Value::Float(number) => Self::Number(*number),
            Value::String(text) => Self::Text(text.clone()),
            other => Self::Text(other.to_string()),
        }
    }

    /// Whether the two values are equal, up to rounding.
    pub(crate) fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Number(a), Self::Number(b)) => (a - b).abs() <= 1e-9 * a.abs().max(b.abs()),
            (Self::Text(a), Self::Text(b)) => a == b,
            _ => false,
        }
    }
}

impl Dimension {
    pub(crate) fn level(&self, value: &Level) -> Option<usize> {
        self.levels.iter().position(|level| level.is(value))
    }

    /// Its values, for messages.
    pub(crate) fn said(&self) -> String {
        let say = |level: &Level| match level {
            Level::Number(number) => number.to_string(),
            Level::Text(text) => format!("\"{text}\""),
        };
        self.levels.iter().map(say).collect::<Vec<_>>().join(", ")
    }
}

impl Space {
    /// The number of points; one if nothing varies.
    pub(crate) fn points(&self) -> usize {
        self.dimensions.iter().map(|dimension| dimension.levels.len()).product()
    }

    /// The level of each dimension at a point; the last dimension changes fastest.
    pub(crate) fn levels_at(&self, point: usize) -> Vec<usize> {
        let mut rest = point;
        let mut levels = vec![0; self.dimensions.len()];
        for (level, dimension) in levels.iter_mut().zip(&self.dimensions).rev() {
            *level = rest % dimension.levels.len();
            rest /= dimension.levels.len();
        }
        levels
    }

    /// The name and value of every dimension at a point.
    pub(crate) fn coordinates(&self, point: usize) -> Vec<Coordinate> {
        let dimensions: Vec<usize> = (0..self.dimensions.len()).collect();
        self.coordinates_of(point, &dimensions)
    }

    /// The name and value of some dimensions at a point.
    pub(crate) fn coordinates_of(&self, point: usize, dimensions: &[usize]) -> Vec<Coordinate> {
        let levels = self.levels_at(point);
        let coordinate = |dimension: &usize| Coordinate {
            axis: self.dimensions[*dimension].name.clone(),
            value: self.dimensions[*dimension].levels[levels[*dimension]].clone(),
        };
        dimensions.iter().map(coordinate).collect()
    }

    pub(crate) fn dimension(&self, name: &str) -> Option<usize> {
        self.dimensions.iter().position(|dimension| dimension.name == name)
    }

    pub(crate) fn names(&self) -> Vec<&str> {
        self.dimensions.iter().map(|dimension| dimension.name.as_str()).collect()
    }

    pub(crate) fn everything(&self) -> Selection {
        vec![None; self.dimensions.len()]
    }

    pub(crate) fn includes(&self, selection: &Selection, point: usize) -> bool {
        let levels = self.levels_at(point);
        selection
            .iter()
            .zip(levels)
            .all(|(allowed, level)| allowed.as_ref().is_none_or(|allowed| allowed.contains(&level)))
    }

    /// The points of a selection, in order.
    pub(crate) fn select(&self, selection: &Selection) -> Vec<usize> {
        let every = self.dimensions.iter().enumerate().fold(vec![0], |points, (of, dimension)| {
            let mut levels = self.allowed(selection, of);
            levels.sort_unstable();
            levels.dedup();
            let with = |point: usize| levels.iter().map(move |level| point * dimension.levels.len() + level);
            points.into_iter().flat_map(with).collect()
        });
        debug_assert!(every.is_sorted());
        every
    }

    /// The levels of a dimension in a selection.
    pub(crate) fn allowed(&self, selection: &Selection, dimension: usize) -> Vec<usize> {
        selection[dimension].clone().unwrap_or_else(|| (0..self.dimensions[dimension].levels.len()).collect())
    }

    /// Every combination of these dimensions' levels in a selection. For no dimensions: one empty combination.
    pub(crate) fn combinations(&self, selection: &Selection, dimensions: &[usize]) -> Vec<Vec<usize>> {
        dimensions.iter().fold(vec![Vec::new()], |combinations, dimension| {
            let levels = self.allowed(selection, *dimension);
            let with = |levels_before: &Vec<usize>| {
                let before = levels_before.clone();
                levels.iter().map(move |level| before.iter().copied().chain([*level]).collect()).collect::<Vec<_>>()
            };
            combinations.iter().flat_map(with).collect()
        })
    }
}

/// A selection with one level of each of these dimensions.
pub(crate) fn fixed(selection: &Selection, dimensions: &[usize], levels: &[usize]) -> Selection {
    let mut selection = selection.clone();
    for (dimension, level) in dimensions.iter().zip(levels) {
        selection[*dimension] = Some(vec![*level]);
    }
    selection
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space() -> Space {
        let dimension = |name: &str, levels: Vec<Level>| Dimension {
            name: name.into(),
            label: name.into(),
            keys: Vec::new(),
            levels,
        };
        let text = |word: &str| Level::Text(word.into());
        let dimensions = vec![
            dimension(CASE, vec![text("fixed"), text("ARF")]),
            dimension("n", [1.0, 5.0, 10.0].map(Level::Number).to_vec()),
        ];
        Space { dimensions, references: Vec::new() }
    }

    #[test]
    fn the_last_axis_changes_fastest() {
        let space = space();
        let said: Vec<String> = (0..space.points()).map(|point| joined(&space.coordinates(point))).collect();
        assert_eq!(said, ["fixed, n=1", "fixed, n=5", "fixed, n=10", "ARF, n=1", "ARF, n=5", "ARF, n=10"]);
        assert_eq!(Space::default().points(), 1);
    }

    #[test]
    fn a_title_has_labels_and_units() {
        let mut space = space();
        space.dimensions[1].label = "delay (ms)".into();
        assert_eq!(titled(&space, &space.coordinates(4), Words::All), "ARF, delay 5 ms");
        assert_eq!(titled(&space, &space.coordinates(4), Words::Few), "ARF, 5 ms");
        space.dimensions[1].label = "terminals".into();
        assert_eq!(titled(&space, &space.coordinates(4), Words::Few), "ARF, terminals 5");
        assert_eq!(titled(&space, &[], Words::All), "");
    }

    #[test]
    fn a_selection_keeps_the_points_that_meet_all_of_it() {
        let space = space();
        assert_eq!(space.select(&vec![None, Some(vec![0, 2])]), [0, 2, 3, 5]);
        assert_eq!(space.select(&fixed(&space.everything(), &[0, 1], &[1, 1])), [4]);
        assert_eq!(space.combinations(&vec![None, Some(vec![0, 2])], &[1, 0]), [[0, 0], [0, 1], [2, 0], [2, 1]]);
        assert_eq!(space.combinations(&space.everything(), &[]), [Vec::<usize>::new()]);
    }

    #[test]
    fn numbers_that_differ_in_their_last_digits_are_one_level() {
        assert_eq!(space().dimensions[1].level(&Level::Number(10.000_000_000_1)), Some(2));
        assert_eq!(space().dimensions[1].level(&Level::Number(9.9)), None);
        assert_eq!(space().dimensions[1].level(&Level::Text("10".into())), None);
    }
}
