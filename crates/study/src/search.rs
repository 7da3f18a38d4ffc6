//! A case found by search: the value of a key that maximises an expression under conditions.
//!
//! 1. Coarse: doubles the value from the minimum upwards, and adds the maximum. Several orders of magnitude take some
//!    ten values.
//! 2. Fine: tries the geometric mean of the best value so far and the further of its two neighbours. It repeats until
//!    both neighbours are within `precision`, or are adjacent whole numbers.
//!
//! A value that meets the conditions beats one that does not. The next criteria are the greater maximised number, then
//! the smaller value. The outcome depends on the results alone, never on the number of parallel runs.
//!
//! *What it leaves out*: a second maximum. The maximised number must be unimodal, and the admissible values must be
//! contiguous. The search misses a better value between two coarse values if neither of them is the best. `study.json`
//! records every value tried.

use crate::{Condition, Formula};
use serde::{Deserialize, Serialize};

/// The search of a case.
#[derive(Clone, Debug)]
pub(crate) struct Search {
    /// The searched key, as after `--set`.
    pub(crate) key: String,
    /// The minimum; above 0.
    pub(crate) from: f64,
    /// The maximum.
    pub(crate) to: f64,
    /// Whether the values are whole numbers.
    pub(crate) whole: bool,
    /// The greatest relative distance to the neighbours of the value found.
    pub(crate) precision: f64,
    /// The expression to maximise.
    pub(crate) maximise: Formula,
    /// The conditions on the value.
    pub(crate) conditions: Vec<Condition>,
    /// The place in the study file, for messages.
    pub(crate) line: Option<usize>,
    pub(crate) path: String,
}

/// The outcome of a search at a point. The field names are the keys of `study.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// The searched key, as after `--set`.
    pub key: String,
    /// The value of the point's runs.
    pub value: f64,
    /// Whether it meets every condition. If not, no tried value does, and this is the best regardless of the
    /// conditions.
    pub met: bool,
    /// Every value that was tried, ascending.
    pub tried: Vec<Tried>,
}

/// A tried value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tried {
    /// The value.
    pub value: f64,
    /// The maximised number; `None` if it cannot be computed.
    pub maximised: Option<f64>,
    /// The number of each condition.
    pub conditions: Vec<Option<f64>>,
    /// Whether it meets every condition.
    pub met: bool,
}

/// A search in progress: it asks for values one by one and takes their results.
#[derive(Clone, Debug)]
pub struct Hunt {
    key: String,
    to: f64,
    whole: bool,
    precision: f64,
    /// The coarse values left, the next one last.
    coarse: Vec<f64>,
    /// Ascending.
    tried: Vec<Tried>,
}

impl Hunt {
    pub(crate) fn new(search: &Search) -> Self {
        let doubled = std::iter::successors(Some(search.from), |value| Some(value * 2.0));
        let mut coarse: Vec<f64> = doubled.take_while(|value| *value < search.to).collect();
        coarse.push(search.to);
        coarse.reverse();
        Self {
            key: search.key.clone(),
            to: search.to,
            whole: search.whole,
            precision: search.precision,
            coarse,
            tried: Vec::new(),
        }
    }

    /// The searched key, as after `--set`.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The next value to try; `None` when the search is over.
    ///
    /// It stays the same until [`Self::on_tried`] has its result.
    pub fn next(&self) -> Option<f64> {
        self.coarse.last().copied().or_else(|| self.finer())
    }

    /// Takes the result of the value that [`Self::next`] asked for.
    pub fn on_tried(&mut self, tried: Tried) {
        self.coarse.pop();
        let place = self.tried.partition_point(|other| other.value < tried.value);
        self.tried.insert(place, tried);
    }

    /// The value found and all values tried.
    ///
    /// # Panics
    /// If nothing was tried.
    pub fn found(self) -> Found {
        let best = &self.tried[self.best().expect("a search tries at least one value")];
        Found { key: self.key.clone(), value: best.value, met: best.met, tried: self.tried.clone() }
    }

    fn best(&self) -> Option<usize> {
        let better = |one: &Tried, other: &Tried| {
            let rank = |tried: &Tried| (tried.met, tried.maximised.unwrap_or(f64::NEG_INFINITY));
            rank(one) > rank(other)
        };
        (0..self.tried.len())
            .reduce(|best, index| if better(&self.tried[index], &self.tried[best]) { index } else { best })
    }

    /// A value between the best one and its further neighbour.
    fn finer(&self) -> Option<f64> {
        let best = self.best()?;
        let here = self.tried[best].value;
        let above = self.tried.get(best + 1).map(|above| (here, above.value));
        let below = best.checked_sub(1).map(|below| (self.tried[below].value, here));
        let mut gaps: Vec<(f64, f64)> = above.into_iter().chain(below).collect();
        gaps.sort_by(|one, other| (other.1 / other.0).total_cmp(&(one.1 / one.0)));
        gaps.into_iter().find_map(|(low, high)| self.between(low, high))
    }

    /// The geometric mean, unless the two are near enough.
    fn between(&self, low: f64, high: f64) -> Option<f64> {
        if high / low <= 1.0 + self.precision {
            return None;
        }
        let middle = (low * high).sqrt();
        let middle = if self.whole { middle.round().max(low + 1.0) } else { middle };
        (middle < high && middle <= self.to).then_some(middle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hunt(from: f64, to: f64, whole: bool, precision: f64) -> Hunt {
        Hunt::new(&Search {
            key: "hosts.0.bound_segments".into(),
            from,
            to,
            whole,
            precision,
            maximise: Formula::new("0".into()).expect("a number"),
            conditions: Vec::new(),
            line: None,
            path: String::new(),
        })
    }

    /// The value found, and the values in the order of the trials.
    fn goes(mut hunt: Hunt, of: impl Fn(f64) -> (Option<f64>, bool)) -> (Found, Vec<f64>) {
        let mut order = Vec::new();
        while let Some(value) = hunt.next() {
            assert!(order.len() < 100, "it does not end: {order:?}");
            order.push(value);
            let (maximised, met) = of(value);
            hunt.on_tried(Tried { value, maximised, conditions: Vec::new(), met });
        }
        (hunt.found(), order)
    }

    #[test]
    fn the_summit_of_a_hill_is_found_to_the_last_segment() {
        // Rises to 64 and falls from there. Coarse: 2, 4, ... 64, 128, 150; then halfway below and above 64.
        let (found, order) = goes(hunt(2.0, 150.0, true, 0.0), |value| (Some(-(value - 64.0).abs()), true));
        assert_eq!(order[..8], [2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 150.0]);
        // √(64·128) = 90.51, √(32·64) = 45.25; 64/45 is more than 91/64: √(45·64) = 53.67.
        assert_eq!(order[8..11], [91.0, 45.0, 54.0]);
        assert_eq!((found.value, found.met), (64.0, true));
        let tried: Vec<f64> = found.tried.iter().map(|tried| tried.value).collect();
        assert!(tried.contains(&63.0) && tried.contains(&65.0), "both neighbours were tried: {tried:?}");
        assert!(tried.is_sorted(), "{tried:?}");
    }

    #[test]
    fn the_edge_of_what_meets_the_conditions_is_found() {
        // More is better, but the condition holds only up to 77.
        let (found, order) = goes(hunt(2.0, 2000.0, true, 0.0), |value| (Some(value), value <= 77.0));
        assert_eq!((found.value, found.met), (77.0, true));
        assert!(order.len() <= 11 + 12, "{order:?}");
        // With 5 % precision, the value found is within 5 % of a neighbour that fails the condition.
        let (found, order) = goes(hunt(2.0, 2000.0, true, 0.05), |value| (Some(value), value <= 77.0));
        assert!((74.0..=77.0).contains(&found.value), "{}", found.value);
        assert!(order.len() <= 11 + 10, "{order:?}");
    }

    #[test]
    fn where_nothing_meets_the_conditions_it_is_the_best_without_them() {
        let (found, _) = goes(hunt(1.0, 16.0, true, 0.0), |value| (Some(-(value - 5.0).abs()), false));
        assert_eq!((found.value, found.met), (5.0, false));
    }

    #[test]
    fn of_values_that_are_alike_the_smallest_is_found() {
        // Constant from 100 on.
        let (found, _) = goes(hunt(1.0, 1000.0, true, 0.0), |value| (Some(value.min(100.0)), true));
        assert_eq!(found.value, 100.0);
    }

    #[test]
    fn what_cannot_be_computed_is_worst() {
        let (found, _) = goes(hunt(1.0, 8.0, true, 0.0), |value| ((value < 3.0).then_some(value), true));
        assert_eq!(found.value, 2.0);
    }

    #[test]
    fn one_value_or_two_need_no_refinement() {
        assert_eq!(goes(hunt(7.0, 7.0, true, 0.05), |value| (Some(value), true)).1, [7.0]);
        assert_eq!(goes(hunt(1.0, 2.0, true, 0.05), |value| (Some(value), true)).1, [1.0, 2.0]);
    }

    #[test]
    fn values_that_are_not_whole_are_searched_to_the_precision() {
        let (found, order) = goes(hunt(0.01, 1.0, false, 0.1), |value| (Some(-(value - 0.3).abs()), true));
        assert!((0.27..=0.33).contains(&found.value), "{} of {order:?}", found.value);
    }
}
