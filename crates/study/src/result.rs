//! What a study came to: `study.json`.

use crate::expression::{Figures, Formula, Scope, reference_at};
use crate::measure::{Measure, Problem, WholeRun};
use crate::run::Outcome;
use crate::search::Found;
use crate::space::{Coordinate, Level, Selection, Space, Words, fixed, joined, titled};
use crate::statistics::Interval;
use crate::{Claim, ClaimedNumber, Condition, Criterion, Figure, Study, met};
use lasthop_measure::mean;
use lasthop_scenario::{Build, HostsKind, InvalidKind, RunResult, SCHEMA_VERSION};
use lasthop_scenario::{ResultFile, is_zero};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a study came to. The field names are the keys of `study.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StudyResult {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The folder and the file without its ending: `hayakawa/fig-06`.
    pub name: String,
    /// What it shows, in one line.
    pub title: String,
    /// The paper and figure, or the standard and clause.
    pub source: String,
    /// What a reader should know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The whole text of the study's file.
    pub study: String,
    /// The scenario with what is set in every run, defaults filled in: [`lasthop_scenario::Scenario::to_json`].
    pub scenario: serde_json::Value,
    /// Which habitat the runs ran in.
    pub hosts_kind: HostsKind,
    /// Which build of lasthop wrote this.
    #[serde(flatten)]
    pub build: Build,
    /// The seeds that each point ran with.
    pub seeds: Vec<u64>,
    /// What varied, the cases first; the last changes fastest.
    pub axes: Vec<AxisResult>,
    /// Every point, in the order of the axes.
    pub points: Vec<PointResult>,
    /// What is drawn.
    pub figures: Vec<FigureResult>,
    /// What came out for each claim; one that is judged at several places stands once for each.
    pub claims: Vec<ClaimResult>,
    /// Whether every claim could be judged, and every required one holds.
    pub passed: bool,
    /// Whether every run is valid.
    pub valid: bool,
    /// Why not, in words; empty if they are.
    #[serde(default)]
    pub invalid_reasons: Vec<String>,
    /// What kinds of reasons these are; left out where there is none.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub invalid_kinds: BTreeSet<InvalidKind>,
    /// Runs that were done again because the machine had been too busy for real time; those that count are the last ones.
    /// Kernel hosts only.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub repeated_runs: u64,
    /// Seconds of all runs on the scenario's clock.
    pub simulated_s: f64,
    /// Seconds that the runs took on the wall clock, added up over all cores.
    pub run_wall_s: f64,
}

/// One axis, or the cases.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AxisResult {
    /// What figures and claims call it; "case".
    pub axis: String,
    /// With its unit.
    pub label: String,
    /// What varied, as after `--set`; empty of the cases.
    pub keys: Vec<String>,
    /// What it took in turn.
    pub values: Vec<Level>,
}

/// One point: all runs that differ in the seed only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PointResult {
    /// The value of each axis.
    pub at: Vec<Coordinate>,
    /// What its search found, where its case is found by search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<Found>,
    /// What was kept.
    pub measures: Vec<MeasureResult>,
}

/// A measure at a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasureResult {
    /// As the study names it.
    pub measure: String,
    /// One for each seed; `None` where a run has no such number.
    pub values: Vec<Option<f64>>,
    /// Their mean; `None` unless every run has one.
    pub mean: Option<f64>,
    /// Where the true mean lies with 95 % confidence; `None` with fewer than two seeds.
    pub ci95: Option<Interval>,
}

/// A figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FigureResult {
    /// What it shows.
    pub title: String,
    /// Beside the level axis.
    pub x_label: String,
    /// The measures along the upright axis, one or several with commas between them.
    pub y: String,
    /// Beside the upright axis.
    pub y_label: String,
    /// Whether the level axis has equal steps for equal ratios.
    pub log_x: bool,
    /// The same of the upright axis.
    pub log_y: bool,
    /// At least one.
    pub panels: Vec<PanelResult>,
}

/// One panel of a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PanelResult {
    /// Empty where there is one only.
    pub label: String,
    /// Ours.
    pub lines: Vec<LineResult>,
    /// Theory and published points.
    pub references: Vec<LineResult>,
}

/// One line of a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LineResult {
    /// In the legend; may be empty where there is one only.
    pub label: String,
    /// Of a reference: where it is from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// In the order of the axis.
    pub marks: Vec<MarkResult>,
}

/// One point of a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MarkResult {
    /// Along the level axis.
    pub x: Level,
    /// Along the upright axis; `None` where some run has no such number.
    pub y: Option<f64>,
    /// Where the true mean lies with 95 % confidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ci95: Option<Interval>,
}

/// What came out for a claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClaimResult {
    /// Short; unique together with `at`.
    pub id: String,
    /// In the words of its source.
    pub text: String,
    /// Where it is from.
    pub source: String,
    /// How the words are read as a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reading: Option<String>,
    /// Where it was judged; empty if once for the whole study.
    pub at: Vec<Coordinate>,
    /// The expression; empty where the number is the share of the cells that meet the conditions.
    pub value: String,
    /// What a cell must meet; empty where the number is that of an expression.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ConditionResult>,
    /// Every cell, in the order of the axes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cells: Vec<CellResult>,
    /// The number that the source prints.
    pub paper: Option<f64>,
    /// When it holds.
    #[serde(flatten)]
    pub criterion: Criterion,
    /// Whether the study fails where it does not hold.
    pub required: bool,
    /// What came out; `None` if it cannot be computed.
    pub ours: Option<f64>,
    /// Where it lies with 95 % confidence; `None` with fewer than two seeds.
    pub ci95: Option<Interval>,
    /// Whether it holds.
    pub verdict: Verdict,
    /// Whether the whole interval is on the side of the verdict; `false` without an interval.
    pub clear: bool,
    /// Why it cannot be judged, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// What every cell of a claim must meet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConditionResult {
    /// What its number is called.
    pub label: String,
    /// The expression.
    pub value: String,
    /// When it is met.
    #[serde(flatten)]
    pub criterion: Criterion,
}

/// One cell of a claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellResult {
    /// Where it is.
    pub at: Vec<Coordinate>,
    /// The number of each condition; `None` if it cannot be computed.
    pub numbers: Vec<Option<f64>>,
    /// Whether every condition is met; one whose number cannot be computed is not.
    pub met: bool,
}

/// Whether a claim holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It does.
    Holds,
    /// It does not.
    DoesNotHold,
    /// Something that it looks at has no value.
    CannotBeJudged,
}

impl Verdict {
    /// For a reader.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::DoesNotHold => "does not hold",
            Self::CannotBeJudged => "cannot be judged",
        }
    }
}

impl ResultFile for StudyResult {}

impl StudyResult {
    /// Of a study and what its runs came to.
    ///
    /// # Panics
    /// If there are not as many results as points times seeds, or none at all; if the study's scenario cannot be read,
    /// which its plan would have told.
    pub fn new(study: &Study, hosts_kind: HostsKind, build: Build, outcome: &Outcome) -> Self {
        let Outcome { runs, searches, repeated_runs } = outcome;
        let points = study.points();
        assert!(!runs.is_empty() && runs.len().is_multiple_of(points), "{} results for {points} points", runs.len());
        let of_point: Vec<&[RunResult]> = runs.chunks(runs.len() / points).collect();
        let measured = Arc::new(Measured::of(study.measures(), &of_point, searches));
        let claims: Vec<ClaimResult> =
            study.claims.iter().flat_map(|claim| judge_all(study, claim, &measured)).collect();
        let point = |(point, _): (usize, &&[RunResult])| PointResult {
            at: study.space.coordinates(point),
            search: searches.get(&point).cloned(),
            measures: study.measures().iter().map(|measure| measured.result(point, measure)).collect(),
        };
        let axis = |dimension: &super::space::Dimension| AxisResult {
            axis: dimension.name.clone(),
            label: dimension.label.clone(),
            keys: dimension.keys.clone(),
            values: dimension.levels.clone(),
        };
        let scenario = study.base().expect("a study with results was planned");
        Self {
            schema_version: SCHEMA_VERSION,
            name: study.name.clone(),
            title: study.title.clone(),
            source: study.source.clone(),
            note: study.note.clone(),
            study: study.text.clone(),
            scenario: scenario.to_json(),
            hosts_kind,
            build,
            seeds: of_point[0].iter().map(|run| run.seed).collect(),
            axes: study.space.dimensions.iter().map(axis).collect(),
            points: of_point.iter().enumerate().map(point).collect(),
            figures: study.figures.iter().map(|figure| drawn(study, figure, &measured)).collect(),
            passed: !claims.iter().any(ClaimResult::fails),
            claims,
            valid: runs.iter().all(|run| run.valid),
            invalid_reasons: invalid_reasons(study, &of_point),
            invalid_kinds: runs.iter().flat_map(|run| run.invalid_kinds.iter().copied()).collect(),
            repeated_runs: *repeated_runs,
            simulated_s: runs.iter().map(|run| run.duration_s).sum(),
            run_wall_s: runs.iter().map(|run| run.wall_s).sum(),
        }
    }
}

impl ClaimResult {
    /// Whether the study has not passed because of it: it could not be judged, or is required and does not hold.
    pub fn fails(&self) -> bool {
        match self.verdict {
            Verdict::Holds => false,
            Verdict::DoesNotHold => self.required,
            Verdict::CannotBeJudged => true,
        }
    }

    /// Where it was judged, in words.
    pub fn place(&self) -> String {
        joined(&self.at)
    }

    /// The least and the greatest value with which it holds.
    pub fn range(&self) -> (f64, f64) {
        self.criterion.range(self.paper)
    }
}

impl CellResult {
    /// Where it is, in words.
    pub fn place(&self) -> String {
        joined(&self.at)
    }
}

impl PointResult {
    /// Where it is, in words.
    pub fn place(&self) -> String {
        joined(&self.at)
    }
}

fn invalid_reasons(study: &Study, of_point: &[&[RunResult]]) -> Vec<String> {
    let mut reasons = Vec::new();
    for (point, runs) in of_point.iter().enumerate() {
        let place = joined(&study.space.coordinates(point));
        for run in *runs {
            reasons.extend(run.invalid_reasons.iter().map(|reason| format!("{place}, seed {}: {reason}", run.seed)));
        }
    }
    reasons
}

/// Every measure that is kept, of every run.
struct Measured {
    measures: Vec<Measure>,
    /// By measure, point and seed.
    values: Vec<Vec<Vec<Result<f64, String>>>>,
}

impl Measured {
    fn of(measures: &[Measure], of_point: &[&[RunResult]], searches: &BTreeMap<usize, Found>) -> Self {
        let mut values = vec![vec![Vec::new(); of_point.len()]; measures.len()];
        for (point, runs) in of_point.iter().enumerate() {
            for run in runs.iter().map(WholeRun::new) {
                for (measure, values) in measures.iter().zip(&mut values) {
                    values[point].push(measure.of_run(&run, searches.get(&point)));
                }
            }
        }
        Self { measures: measures.to_vec(), values }
    }

    fn values(&self, point: usize, measure: &Measure) -> Option<&[Result<f64, String>]> {
        let index = self.measures.iter().position(|kept| kept == measure)?;
        Some(&self.values[index][point])
    }

    /// The mean over the seeds, all or without one.
    fn mean(&self, point: usize, measure: &Measure, without: Option<usize>) -> Result<f64, String> {
        // A measure that only one branch of an expression looks at may not have been known when the study was read.
        let values =
            self.values(point, measure).ok_or_else(|| format!("{measure} was not kept; name it in measures"))?;
        let kept = values.iter().enumerate().filter(|(seed, _)| Some(*seed) != without).map(|(_, value)| value.clone());
        let kept = kept.collect::<Result<Vec<f64>, String>>()?;
        mean(&kept).ok_or_else(|| format!("{measure} is of no run"))
    }

    fn result(&self, point: usize, measure: &Measure) -> MeasureResult {
        let values: Vec<Option<f64>> =
            self.values(point, measure).unwrap_or_default().iter().map(|value| value.clone().ok()).collect();
        let all: Option<Vec<f64>> = values.iter().copied().collect();
        MeasureResult {
            measure: measure.as_str().to_owned(),
            mean: all.as_deref().and_then(mean),
            ci95: all.as_deref().and_then(Interval::of_mean),
            values,
        }
    }

    fn seeds(&self) -> usize {
        self.values.first().and_then(|points| points.first()).map_or(0, Vec::len)
    }
}

/// A claim at each of its places.
fn judge_all(study: &Study, claim: &Claim, measured: &Arc<Measured>) -> Vec<ClaimResult> {
    let places = study.space.combinations(&claim.selection, &claim.each);
    places.iter().map(|levels| judge(&study.space, claim, levels, measured)).collect()
}

fn judge(space: &Arc<Space>, claim: &Claim, levels: &[usize], measured: &Arc<Measured>) -> ClaimResult {
    let selection = fixed(&claim.selection, &claim.each, levels);
    let point = space.select(&selection).first().copied().unwrap_or(0);
    let evaluate = |without: Option<usize>| {
        let look = Look { space, measured, without };
        match &claim.value {
            ClaimedNumber::Expression(value) => {
                look.evaluate(value, &selection).map(|number| (number, Vec::new())).map_err(|problem| problem.problem)
            }
            ClaimedNumber::Share { cells, conditions } => {
                let cells = look.cells(cells, conditions, &selection);
                let met = cells.iter().filter(|cell| cell.met).count();
                Ok((met as f64 / cells.len() as f64, cells))
            }
        }
    };
    let (outcome, cells) = evaluate(None).map_or_else(|no| (Err(no), Vec::new()), |(ours, cells)| (Ok(ours), cells));
    let seeds = measured.seeds();
    let without = (0..seeds).map(|seed| evaluate(Some(seed)).ok().map(|(ours, _)| ours)).collect::<Option<Vec<f64>>>();
    let ci95 = match (&outcome, without) {
        (Ok(ours), Some(without)) if seeds > 1 => Interval::jackknife(*ours, &without),
        _ => None,
    };
    let (low, high) = claim.criterion.range(claim.paper);
    let verdict = claim.criterion.judge(outcome.as_ref().ok().copied(), claim.paper);
    let clear = ci95.is_some_and(|interval| match verdict {
        Verdict::Holds => interval.low >= low && interval.high <= high,
        Verdict::DoesNotHold => interval.high < low || interval.low > high,
        Verdict::CannotBeJudged => false,
    });
    let (value, conditions) = match &claim.value {
        ClaimedNumber::Expression(value) => (value.to_string(), Vec::new()),
        ClaimedNumber::Share { conditions, .. } => (String::new(), conditions.iter().map(told).collect()),
    };
    ClaimResult {
        id: claim.id.clone(),
        text: claim.text.clone(),
        source: claim.source.clone(),
        reading: claim.reading.clone(),
        at: space.coordinates_of(point, &claim.each),
        value,
        conditions,
        cells,
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

/// The means over the seeds, all or without one.
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

    /// Every combination of the values of these dimensions, with the number of each condition.
    fn cells(&self, dimensions: &[usize], conditions: &[Condition], selection: &Selection) -> Vec<CellResult> {
        let cell = |levels: Vec<usize>| {
            let selection = fixed(selection, dimensions, &levels);
            let (numbers, met) = met(conditions, |formula| self.evaluate(formula, &selection).ok());
            let point = self.space.select(&selection).first().copied().unwrap_or(0);
            CellResult { at: self.space.coordinates_of(point, dimensions), numbers, met }
        };
        self.space.combinations(selection, dimensions).into_iter().map(cell).collect()
    }
}

fn drawn(study: &Study, figure: &Figure, measured: &Measured) -> FigureResult {
    let space = &study.space;
    let panel_of: Vec<usize> = figure.panels.into_iter().collect();
    // One line for each combination of what is neither along the axis nor a panel of its own.
    let of_lines: Vec<usize> =
        (0..space.dimensions.len()).filter(|of| *of != figure.x && !panel_of.contains(of)).collect();
    let panels = space.combinations(&figure.selection, &panel_of).into_iter().map(|levels| {
        let selection = fixed(&figure.selection, &panel_of, &levels);
        let several: Vec<usize> =
            of_lines.iter().copied().filter(|of| space.allowed(&selection, *of).len() > 1).collect();
        let lines = space.combinations(&selection, &of_lines).into_iter().flat_map(|levels| {
            let points = space.select(&fixed(&selection, &of_lines, &levels));
            let place = points
                .first()
                .map(|point| titled(space, &space.coordinates_of(*point, &several), Words::Few))
                .unwrap_or_default();
            let line = |(measure, name): &(Measure, String)| {
                let parts: Vec<&str> = [place.as_str(), name].into_iter().filter(|part| !part.is_empty()).collect();
                let marks = marks(space, figure, &points, measure, measured);
                LineResult { label: parts.join(", "), source: None, marks }
            };
            figure.y.iter().map(line).collect::<Vec<_>>()
        });
        let point = space.select(&selection).first().copied().unwrap_or(0);
        PanelResult {
            label: titled(space, &space.coordinates_of(point, &panel_of), Words::All),
            lines: lines.collect(),
            references: all_referred(space, figure, &selection, &of_lines),
        }
    });
    FigureResult {
        title: figure.title.clone(),
        x_label: space.dimensions[figure.x].label.clone(),
        y: figure.y.iter().map(|(measure, _)| measure.as_str()).collect::<Vec<_>>().join(", "),
        y_label: figure.y_label.clone(),
        log_x: figure.log_x,
        log_y: figure.log_y,
        panels: panels.collect(),
    }
}

fn x_of(space: &Space, figure: &Figure, point: usize) -> Level {
    space.dimensions[figure.x].levels[space.levels_at(point)[figure.x]].clone()
}

fn marks(space: &Space, figure: &Figure, points: &[usize], measure: &Measure, measured: &Measured) -> Vec<MarkResult> {
    let mark = |point: &usize| {
        let MeasureResult { mean, ci95, .. } = measured.result(*point, measure);
        MarkResult { x: x_of(space, figure, *point), y: mean, ci95 }
    };
    points.iter().map(mark).collect()
}

/// Every reference in one panel, each line once: the same may be said of several cases.
fn all_referred(space: &Space, figure: &Figure, selection: &Selection, of_lines: &[usize]) -> Vec<LineResult> {
    let mut lines: Vec<LineResult> = Vec::new();
    for line in figure.references.iter().flat_map(|of| referred(space, figure, *of, selection, of_lines)) {
        if lines.iter().all(|other| other.label != line.label || other.marks != line.marks) {
            lines.push(line);
        }
    }
    lines
}

/// A reference in one panel: one line, or one for each combination where it differs between them.
fn referred(space: &Space, figure: &Figure, of: usize, selection: &Selection, of_lines: &[usize]) -> Vec<LineResult> {
    let reference = &space.references[of];
    let mut lines: Vec<(String, Vec<MarkResult>)> = Vec::new();
    for levels in space.combinations(selection, of_lines) {
        let points = space.select(&fixed(selection, of_lines, &levels));
        let mark = |point: &usize| {
            // It was computed at every point when the study was read.
            let y = reference_at(space, of, *point).ok().flatten()?;
            Some(MarkResult { x: x_of(space, figure, *point), y: Some(y), ci95: None })
        };
        let marks: Vec<MarkResult> = points.iter().filter_map(mark).collect();
        if !marks.is_empty() && lines.iter().all(|(_, other)| *other != marks) {
            let place = points.first().map(|point| titled(space, &space.coordinates_of(*point, of_lines), Words::Few));
            lines.push((place.unwrap_or_default(), marks));
        }
    }
    // Where it is the same for all, nobody needs to be told for which.
    let one = lines.len() == 1;
    let line = |(place, marks): (String, Vec<MarkResult>)| {
        let label = &reference.label;
        let label = if one || place.is_empty() { label.clone() } else { format!("{label}, {place}") };
        LineResult { label, source: Some(reference.source.clone()), marks }
    };
    lines.into_iter().map(line).collect()
}
