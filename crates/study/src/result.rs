//! The result of a study: `study.json`.

use crate::expression::reference_at;
use crate::measure::Measure;
use crate::measured::{MeasureResult, Measured};
use crate::run::Outcome;
use crate::search::Found;
use crate::space::{Coordinate, Level, Selection, Space, Words, fixed, joined, titled};
use crate::verdict::{ClaimResult, judge_all};
use crate::{Figure, Study};
use lasthop_scenario::{Build, HostsKind, Interval, InvalidKind, RunResult, SCHEMA_VERSION, UsedKernel};
use lasthop_scenario::{ResultFile, is_zero};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The result of a study. The field names are the keys of `study.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StudyResult {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The folder and the file without its ending: `hayakawa/fig-06`.
    pub name: String,
    /// The file, unless its name finds it in the folder `studies` or among the built-in ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// What the command line changed in all runs, as after `--set`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<String>,
    /// Its subject, in one line.
    pub title: String,
    /// The paper and figure, or the standard and clause.
    pub source: String,
    /// Notes for the reader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The text of the whole study file.
    pub study: String,
    /// The scenario with the overrides of every run, defaults filled in: [`lasthop_scenario::Scenario::to_json`].
    pub scenario: serde_json::Value,
    /// The habitat of the runs: kernel hosts if any case has them.
    pub hosts_kind: HostsKind,
    /// What `--hosts` has to say for the same runs; omitted if the study says it itself, and in older files ([`Self::hosts_to_say`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts_option: Option<HostsKind>,
    /// The build of lasthop that wrote this.
    #[serde(flatten)]
    pub build: Build,
    /// The kernel that ran it: of the first run on kernel hosts.
    #[serde(flatten)]
    pub used: UsedKernel,
    /// The number of drawn scenarios; omitted if nothing is drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenarios: Option<usize>,
    /// The seeds of each point.
    pub seeds: Vec<u64>,
    /// The axes, the cases first; the last changes fastest.
    pub axes: Vec<AxisResult>,
    /// Every point, in the order of the axes.
    pub points: Vec<PointResult>,
    /// The figures.
    pub figures: Vec<FigureResult>,
    /// The verdicts on the claims. A claim judged at several places has one entry for each.
    pub claims: Vec<ClaimResult>,
    /// Whether every claim could be judged and every required one holds.
    pub passed: bool,
    /// Whether every run is valid.
    pub valid: bool,
    /// The reasons why not, in words; empty if all are valid.
    #[serde(default)]
    pub invalid_reasons: Vec<String>,
    /// The kinds of these reasons; omitted if there are none.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub invalid_kinds: BTreeSet<InvalidKind>,
    /// The number of repeated runs: the machine had been too busy for real time. Only the last repetition counts.
    /// Kernel hosts only.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub repeated_runs: u64,
    /// Seconds of all runs on the scenario's clock.
    pub simulated_s: f64,
    /// Wall-clock seconds of the runs, summed over all cores.
    pub run_wall_s: f64,
}

/// One axis, or the cases.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AxisResult {
    /// Its name in figures and claims; "case" for the cases.
    pub axis: String,
    /// Its label, with the unit.
    pub label: String,
    /// The varied keys, as after `--set`; empty for the cases.
    pub keys: Vec<String>,
    /// Its values.
    pub values: Vec<Level>,
}

/// One point: all runs that differ only in the seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PointResult {
    /// The value of each axis.
    pub at: Vec<Coordinate>,
    /// The outcome of its search, if its case is found by search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<Found>,
    /// The habitat of its runs; omitted if it is that of the study's result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts_kind: Option<HostsKind>,
    /// The measures kept.
    pub measures: Vec<MeasureResult>,
}

/// A figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FigureResult {
    /// Its title.
    pub title: String,
    /// The label of the horizontal axis.
    pub x_label: String,
    /// The measures along the vertical axis, separated by commas.
    pub y: String,
    /// The label of the vertical axis.
    pub y_label: String,
    /// Whether the horizontal axis is logarithmic.
    pub log_x: bool,
    /// Whether the vertical axis is logarithmic.
    pub log_y: bool,
    /// The panels, at least one.
    pub panels: Vec<PanelResult>,
}

/// One panel of a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PanelResult {
    /// Its title; empty for a single panel.
    pub label: String,
    /// Our lines.
    pub lines: Vec<LineResult>,
    /// Theory and published points.
    pub references: Vec<LineResult>,
}

/// One line of a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LineResult {
    /// The name in the legend; may be empty for a single line.
    pub label: String,
    /// The source of a reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The points, in the order of the axis.
    pub marks: Vec<MarkResult>,
}

/// One point of a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MarkResult {
    /// The horizontal coordinate.
    pub x: Level,
    /// The vertical coordinate; `None` if a run has no such number.
    pub y: Option<f64>,
    /// The 95 % confidence interval of the mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ci95: Option<Interval>,
}

impl ResultFile for StudyResult {}

impl StudyResult {
    /// The result of a study, from its runs' results.
    ///
    /// # Panics
    /// If the number of results is not points times seeds, or is 0. Also if the study's scenario cannot be read, which
    /// its plan would have reported.
    pub fn new(study: &Study, hosts: HostsKind, build: Build, outcome: &Outcome) -> Self {
        let Outcome { runs, searches, repeated_runs } = outcome;
        let points = study.points();
        assert!(!runs.is_empty() && runs.len().is_multiple_of(points), "{} results for {points} points", runs.len());
        let of_point: Vec<&[RunResult]> = runs.chunks(runs.len() / points).collect();
        let measured = Arc::new(Measured::of(study.measures(), &of_point, searches));
        let claims: Vec<ClaimResult> =
            study.claims.iter().flat_map(|claim| judge_all(&study.space, claim, &measured)).collect();
        let hosts_kind = if study.has_kernel_case() { HostsKind::Kernel } else { hosts };
        let point = |(point, _): (usize, &&[RunResult])| PointResult {
            at: study.space.coordinates(point),
            search: searches.get(&point).cloned(),
            hosts_kind: Some(of_point[point][0].hosts_kind).filter(|kind| *kind != hosts_kind),
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
            file: (study.file != format!("studies/{}.toml", study.name)).then(|| study.file.clone()),
            set: study.overrides.iter().map(ToString::to_string).collect(),
            title: study.title.clone(),
            source: study.source.clone(),
            note: study.note.clone(),
            study: study.text.clone(),
            scenario: scenario.to_json(),
            hosts_kind,
            hosts_option: (hosts != study.hosts).then_some(hosts),
            build,
            used: runs.iter().map(|run| &run.used).find(|used| used.clock.is_some()).cloned().unwrap_or_default(),
            scenarios: study.scenarios(),
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

    /// What `--hosts` has to say for the same runs; `None`: the study says it itself. Also of a file of before `hosts_option`, except of a
    /// study that has kernel hosts in some of its cases: whether it was run with `--hosts` its file does not tell.
    pub fn hosts_to_say(&self) -> Option<HostsKind> {
        let study: toml::Table = self.study.parse().unwrap_or_default();
        let says_kernel = |of: &toml::Table| of.get("hosts").and_then(toml::Value::as_str) == Some("kernel");
        let mut cases = study.get("cases").and_then(toml::Value::as_array).into_iter().flatten();
        let of_study = match says_kernel(&study) || cases.any(|case| case.as_table().is_some_and(says_kernel)) {
            true => HostsKind::Kernel,
            false => HostsKind::Simulated,
        };
        self.hosts_option.or_else(|| (self.hosts_kind != of_study).then_some(self.hosts_kind))
    }
}

impl PointResult {
    /// The values of its axes, in words.
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

fn drawn(study: &Study, figure: &Figure, measured: &Measured) -> FigureResult {
    let space = &study.space;
    let panel_of: Vec<usize> = figure.panels.into_iter().collect();
    // One line for each combination of the dimensions that are neither along the axis nor panels.
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

/// Every reference in one panel, each line once: several cases may share one.
fn all_referred(space: &Space, figure: &Figure, selection: &Selection, of_lines: &[usize]) -> Vec<LineResult> {
    let mut lines: Vec<LineResult> = Vec::new();
    for line in figure.references.iter().flat_map(|of| referred(space, figure, *of, selection, of_lines)) {
        if lines.iter().all(|other| other.label != line.label || other.marks != line.marks) {
            lines.push(line);
        }
    }
    lines
}

/// A reference in one panel: one line, or one for each combination with different values.
fn referred(space: &Space, figure: &Figure, of: usize, selection: &Selection, of_lines: &[usize]) -> Vec<LineResult> {
    let reference = &space.references[of];
    let mut lines: Vec<(String, Vec<MarkResult>)> = Vec::new();
    for levels in space.combinations(selection, of_lines) {
        let points = space.select(&fixed(selection, of_lines, &levels));
        let mark = |point: &usize| {
            // Reading the study computed it at every point.
            let y = reference_at(space, of, *point).ok().flatten()?;
            Some(MarkResult { x: x_of(space, figure, *point), y: Some(y), ci95: None })
        };
        let marks: Vec<MarkResult> = points.iter().filter_map(mark).collect();
        if !marks.is_empty() && lines.iter().all(|(_, other)| *other != marks) {
            let place = points.first().map(|point| titled(space, &space.coordinates_of(*point, of_lines), Words::Few));
            lines.push((place.unwrap_or_default(), marks));
        }
    }
    // A line common to all combinations needs no name for them.
    let one = lines.len() == 1;
    let line = |(place, marks): (String, Vec<MarkResult>)| {
        let label = &reference.label;
        let label = if one || place.is_empty() { label.clone() } else { format!("{label}, {place}") };
        LineResult { label, source: Some(reference.source.clone()), marks }
    };
    lines.into_iter().map(line).collect()
}
