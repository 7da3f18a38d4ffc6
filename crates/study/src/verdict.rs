//! Verdicts on claims: their bounds, their numbers and their confidence.

use crate::expression::{Figures, Scope};
use crate::formula::Formula;
use crate::measure::Measure;
use crate::measured::Measured;
use crate::problem::Problem;
use crate::range::range_of;
use crate::space::{Coordinate, Selection, Space, fixed, joined};
use crate::{Claim, ClaimedNumber, Condition};
use lasthop_measure::{Range, jackknife};
use lasthop_scenario::{Interval, is_zero};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The bounds of a claim. It holds within all the bounds given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Criterion {
    /// The minimum.
    pub at_least: Option<f64>,
    /// The maximum.
    pub at_most: Option<f64>,
    /// The greatest relative deviation from the paper's number.
    pub within: Option<f64>,
}

impl Criterion {
    /// The verdict on this number, given the paper's. The number is `None` if it cannot be computed.
    pub fn judge(&self, number: Option<f64>, paper: Option<f64>) -> Verdict {
        let (low, high) = self.range(paper);
        match number {
            Some(number) if (low..=high).contains(&number) => Verdict::Holds,
            Some(_) => Verdict::DoesNotHold,
            None => Verdict::CannotBeJudged,
        }
    }

    /// The minimum and maximum for the claim to hold.
    pub fn range(&self, paper: Option<f64>) -> (f64, f64) {
        let near = self
            .within
            .zip(paper)
            .map(|(within, paper)| (paper - (within * paper).abs(), paper + (within * paper).abs()));
        let low = self.at_least.unwrap_or(f64::NEG_INFINITY).max(near.map_or(f64::NEG_INFINITY, |(low, _)| low));
        let high = self.at_most.unwrap_or(f64::INFINITY).min(near.map_or(f64::INFINITY, |(_, high)| high));
        (low, high)
    }
}

/// The verdict on a claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClaimResult {
    /// Short. Unique in combination with `at`.
    pub id: String,
    /// In the words of its source.
    pub text: String,
    /// Where it is from.
    pub source: String,
    /// The interpretation of the words as a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reading: Option<String>,
    /// The place of judgement; empty if judged once for the whole study.
    pub at: Vec<Coordinate>,
    /// The expression; empty if the number is a share of cells.
    pub value: String,
    /// The conditions on a cell; empty if the number is an expression's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ConditionResult>,
    /// Every cell that is looked at, in the order of the axes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cells: Vec<CellResult>,
    /// What a cell must meet to be looked at; empty for all cells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub among: Vec<ConditionResult>,
    /// The number of cells that are not looked at.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u64,
    /// The number that the source prints.
    pub paper: Option<f64>,
    /// The bounds.
    #[serde(flatten)]
    pub criterion: Criterion,
    /// Whether the study fails if the claim does not hold.
    pub required: bool,
    /// Our number; `None` if it cannot be computed.
    pub ours: Option<f64>,
    /// Its 95 % confidence interval; `None` with fewer than two seeds.
    pub ci95: Option<Interval>,
    /// Whether it holds.
    pub verdict: Verdict,
    /// Whether the whole interval supports the verdict; `false` without an interval.
    pub clear: bool,
    /// Why it cannot be judged, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A condition on every cell of a claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConditionResult {
    /// The name of its number.
    pub label: String,
    /// The expression.
    pub value: String,
    /// The bounds.
    #[serde(flatten)]
    pub criterion: Criterion,
}

/// One cell of a claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellResult {
    /// The values of its axes.
    pub at: Vec<Coordinate>,
    /// The number of each condition; `None` if it cannot be computed.
    pub numbers: Vec<Option<f64>>,
    /// Whether every condition is met. A number that cannot be computed meets none.
    pub met: bool,
}

/// The verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The claim holds.
    Holds,
    /// The claim does not hold.
    DoesNotHold,
    /// A number in it has no value.
    CannotBeJudged,
}

impl Verdict {
    /// The verdict in words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::DoesNotHold => "does not hold",
            Self::CannotBeJudged => "cannot be judged",
        }
    }
}

impl ClaimResult {
    /// Whether it makes the study fail: it cannot be judged, or is required and does not hold.
    pub fn fails(&self) -> bool {
        match self.verdict {
            Verdict::Holds => false,
            Verdict::DoesNotHold => self.required,
            Verdict::CannotBeJudged => true,
        }
    }

    /// The place of judgement, in words.
    pub fn place(&self) -> String {
        joined(&self.at)
    }

    /// The minimum and maximum for the claim to hold.
    pub fn range(&self) -> (f64, f64) {
        self.criterion.range(self.paper)
    }
}

impl CellResult {
    /// The values of its axes, in words.
    pub fn place(&self) -> String {
        joined(&self.at)
    }
}

/// The number of each condition, and whether all are met. A number that cannot be computed meets none.
pub(crate) fn met(conditions: &[Condition], number: impl Fn(&Formula) -> Option<f64>) -> (Vec<Option<f64>>, bool) {
    let numbers: Vec<Option<f64>> = conditions.iter().map(|condition| number(&condition.value)).collect();
    let holds =
        |(condition, number): (&Condition, &Option<f64>)| condition.criterion.judge(*number, None) == Verdict::Holds;
    let all = conditions.iter().zip(&numbers).all(holds);
    (numbers, all)
}

/// Judges a claim at each of its places.
pub(crate) fn judge_all(space: &Arc<Space>, claim: &Claim, measured: &Arc<Measured>) -> Vec<ClaimResult> {
    let places = space.combinations(&claim.selection, &claim.each);
    places.iter().map(|levels| judge(space, claim, levels, measured)).collect()
}

fn judge(space: &Arc<Space>, claim: &Claim, levels: &[usize], measured: &Arc<Measured>) -> ClaimResult {
    let selection = fixed(&claim.selection, &claim.each, levels);
    let point = space.select(&selection).first().copied().unwrap_or(0);
    let evaluate = |without: Option<usize>| {
        let look = Look { space, measured, without };
        match &claim.value {
            ClaimedNumber::Expression(value) => {
                look.evaluate(value, &selection).map(|number| (number, Cells::default())).map_err(|no| no.problem)
            }
            ClaimedNumber::Share { cells, among, conditions } => {
                let cells = look.cells(cells, among, conditions, &selection);
                match (cells.looked_at.iter().filter(|cell| cell.met).count(), cells.looked_at.len()) {
                    (_, 0) => Err(format!("all {} cells are left out", cells.left_out)),
                    (met, all) => Ok((met as f64 / all as f64, cells)),
                }
            }
        }
    };
    let (outcome, cells) =
        evaluate(None).map_or_else(|no| (Err(no), Cells::default()), |(ours, cells)| (Ok(ours), cells));
    let seeds = measured.seeds();
    let without = (0..seeds).map(|seed| evaluate(Some(seed)).ok().map(|(ours, _)| ours)).collect::<Option<Vec<f64>>>();
    let range = match &claim.value {
        ClaimedNumber::Expression(value) => range_of(value.as_str()),
        ClaimedNumber::Share { .. } => Range::SHARE,
    };
    let ci95 = outcome.as_ref().ok().zip(without).and_then(|(ours, without)| jackknife(*ours, &without, range));
    let (low, high) = claim.criterion.range(claim.paper);
    let verdict = claim.criterion.judge(outcome.as_ref().ok().copied(), claim.paper);
    let clear = ci95.is_some_and(|interval| match verdict {
        Verdict::Holds => interval.low >= low && interval.high <= high,
        Verdict::DoesNotHold => interval.high < low || interval.low > high,
        Verdict::CannotBeJudged => false,
    });
    let (value, among, conditions) = match &claim.value {
        ClaimedNumber::Expression(value) => (value.to_string(), &[][..], &[][..]),
        ClaimedNumber::Share { among, conditions, .. } => (String::new(), &among[..], &conditions[..]),
    };
    ClaimResult {
        id: claim.id.clone(),
        text: claim.text.clone(),
        source: claim.source.clone(),
        reading: claim.reading.clone(),
        at: space.coordinates_of(point, &claim.each),
        value,
        conditions: conditions.iter().map(told).collect(),
        cells: cells.looked_at,
        among: among.iter().map(told).collect(),
        left_out: cells.left_out,
        paper: claim.paper,
        criterion: claim.criterion,
        required: claim.required,
        ours: outcome.as_ref().ok().copied(),
        ci95,
        verdict,
        clear,
        problem: outcome.err(),
    }
}

fn told(condition: &Condition) -> ConditionResult {
    let Condition { label, value, criterion } = condition;
    ConditionResult { label: label.clone(), value: value.to_string(), criterion: *criterion }
}

/// The cells of a claim.
#[derive(Default)]
struct Cells {
    looked_at: Vec<CellResult>,
    left_out: u64,
}

/// Expressions over the means of all seeds, or of all but one.
struct Look<'a> {
    space: &'a Arc<Space>,
    measured: &'a Arc<Measured>,
    without: Option<usize>,
}

impl Look<'_> {
    fn evaluate(&self, formula: &Formula, selection: &Selection) -> Result<f64, Problem> {
        let (measured, without) = (Arc::clone(self.measured), self.without);
        let figures: Arc<Figures> = Arc::new(move |point, measure: &Measure| measured.mean(point, measure, without));
        formula.evaluate(&Scope { space: Arc::clone(self.space), selection: selection.clone(), figures })
    }

    /// Every combination of the values of these dimensions that meets `among`, with the number of each condition.
    fn cells(
        &self,
        dimensions: &[usize],
        among: &[Condition],
        conditions: &[Condition],
        selection: &Selection,
    ) -> Cells {
        let mut cells = Cells::default();
        for levels in self.space.combinations(selection, dimensions) {
            let selection = fixed(selection, dimensions, &levels);
            let number = |formula: &Formula| self.evaluate(formula, &selection).ok();
            if !met(among, number).1 {
                cells.left_out += 1;
                continue;
            }
            let (numbers, met) = met(conditions, number);
            let point = self.space.select(&selection).first().copied().unwrap_or(0);
            cells.looked_at.push(CellResult { at: self.space.coordinates_of(point, dimensions), numbers, met });
        }
        cells
    }
}
