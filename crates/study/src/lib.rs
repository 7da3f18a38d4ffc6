//! A study: a figure or table of a paper as data. Scenarios, what varies, seeds, figures, and claims with their source.
//!
//! - [`Study`]: `studies/<paper>/<figure>.toml`, checked against its keys ([`Study::section`]). Its [`Study::plan`] gives the runs.
//! - [`StudyResult`]: `study.json`, made of the study and the results of those runs: every point with its mean over the
//!   seeds and a 95 % confidence interval ([`Interval`]), the figures' lines, and for each claim what came out.
//! - [`Measure`]: how figures and claims name one number of a result.
//!
//! Everything that can be wrong in a study is found when it is read, before anything runs: expressions are evaluated once
//! with made-up results, so that a function, an axis, a value of an axis or a measure that does not exist is told with its
//! line. What cannot be known before (a measure that has no value in some run) makes the claim "cannot be judged", which
//! is never taken for "holds".
//!
//! Expressions are those of MiniJinja (numbers, `+ - * / **`, calls with named arguments); no file, no loop.
//!
//! - [`Study::run_at_once`] and [`run_in_turn`]: the runs themselves, given what runs a scenario.
//!
//! *What it leaves out*: habitats, which the caller brings. Values at a moment of a run: claims are about whole runs.
#![forbid(unsafe_code)]

pub mod parallel;

mod check;
mod expression;
mod formula;
mod keys;
mod measure;
mod measured;
mod part;
mod plan;
mod problem;
mod reading;
mod result;
mod run;
mod search;
mod space;
mod statistics;
mod verdict;

pub use expression::functions;
pub use formula::{Formula, Function};
pub use measure::{Measure, label_of};
pub use measured::MeasureResult;
pub use plan::PlannedRun;
pub use result::{AxisResult, FigureResult, LineResult, MarkResult, PanelResult, PointResult, StudyResult};
pub use run::{AtOnce, Outcome, RunError, RunOne, run_in_turn, until_not_late};
pub use search::{Found, Hunt, Tried};
pub use space::{Coordinate, Level};
pub use statistics::Interval;
pub use verdict::{CellResult, ClaimResult, ConditionResult, Criterion, Verdict};

use lasthop_keys::DocumentError;
use lasthop_scenario::HostsKind;
use lasthop_scenario::Override;
use search::Search;
use space::{Selection, Space};
use std::sync::Arc;

/// A study that can be run: read and checked.
#[derive(Clone, Debug)]
pub struct Study {
    /// The folder and the file without its ending: `hayakawa/fig-06`.
    pub name: String,
    /// What it shows, in one line.
    pub title: String,
    /// The paper and figure, or the standard and clause.
    pub source: String,
    /// What a reader of the report should know.
    pub note: Option<String>,
    /// Each point runs with so many seeds.
    pub seeds: u64,
    /// What runs it, if nothing else is said.
    pub hosts: HostsKind,
    /// The whole file.
    pub text: String,
    /// What to draw.
    pub figures: Vec<Figure>,
    /// What is claimed.
    pub claims: Vec<Claim>,
    file: String,
    base: Base,
    /// In every run.
    set: Vec<Setting>,
    /// In every run, whatever else is set there; from the command line.
    overrides: Vec<Override>,
    /// For each value of each axis of the space.
    settings: Vec<Vec<Vec<Setting>>>,
    /// For each case; empty without cases.
    searches: Vec<Option<Search>>,
    space: Arc<Space>,
    /// What to keep of each point.
    measures: Vec<Measure>,
}

/// The scenario before anything is changed.
#[derive(Clone, Debug)]
struct Base {
    /// What messages call it.
    file: String,
    text: String,
    /// Whether it stands in the study file itself, under `[scenario]`.
    inline: bool,
}

/// An override with its place in the study file.
#[derive(Clone, Debug)]
struct Setting {
    change: Override,
    line: Option<usize>,
    key: String,
}

/// What to draw.
#[derive(Clone, Debug)]
pub struct Figure {
    /// What it shows.
    pub title: String,
    /// The measures along the upright axis, at least one, each with what the legend calls it.
    pub y: Vec<(Measure, String)>,
    /// What stands beside that axis.
    pub y_label: String,
    /// Whether the level axis has equal steps for equal ratios.
    pub log_x: bool,
    /// The same of the upright axis.
    pub log_y: bool,
    /// Dimension of the space along the level axis.
    x: usize,
    /// Dimension with one panel for each value.
    panels: Option<usize>,
    selection: Selection,
    /// Its references, by their places in the space.
    references: Vec<usize>,
}

/// A statement, and what makes it hold.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Short and unique.
    pub id: String,
    /// In the words of its source.
    pub text: String,
    /// Where it is from.
    pub source: String,
    /// How the words are read as a number.
    pub reading: Option<String>,
    /// The number that is claimed something about.
    pub value: ClaimedNumber,
    /// The number that the source prints.
    pub paper: Option<f64>,
    /// When it holds.
    pub criterion: Criterion,
    /// Whether the study fails where it does not hold.
    pub required: bool,
    /// Dimensions for each value of which it is judged by itself.
    each: Vec<usize>,
    selection: Selection,
}

/// Where the number of a claim comes from.
#[derive(Clone, Debug)]
pub enum ClaimedNumber {
    /// An expression.
    Expression(Formula),
    /// The share of the cells at which every condition is met.
    Share {
        /// Dimensions; every combination of their values is a cell.
        cells: Vec<usize>,
        /// At least one.
        conditions: Vec<Condition>,
    },
}

/// One of several numbers that must be right together: at a cell of a claim, or for a value that a search tries.
#[derive(Clone, Debug)]
pub struct Condition {
    /// What tables call its number.
    pub label: String,
    /// The expression.
    pub value: Formula,
    /// When it is met.
    pub criterion: Criterion,
}

/// Why a study cannot be run as written.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// The file cannot be read, is not TOML, or has a key or value that cannot be.
    #[error(transparent)]
    File(#[from] DocumentError),
    /// Its scenario cannot be run, even before anything varies.
    #[error("{place}: {reason}")]
    Base {
        /// The file of the study, and the key that sets what is wrong.
        place: String,
        /// Why.
        reason: lasthop_scenario::ScenarioError,
    },
    /// The scenario of one of its points cannot be run.
    #[error("{place}: with {at}: {reason}")]
    Scenario {
        /// The file of the study, and the key that sets what is wrong.
        place: String,
        /// Which point: `n=10, delay=4`.
        at: String,
        /// Why.
        reason: lasthop_scenario::ScenarioError,
    },
}

impl Study {
    /// What is kept of each point.
    pub fn measures(&self) -> &[Measure] {
        &self.measures
    }

    /// Whether there is a case that is found by search.
    pub fn is_searched(&self) -> bool {
        self.searches.iter().any(Option::is_some)
    }

    /// How many points there are: each runs with each seed.
    pub fn points(&self) -> usize {
        self.space.points()
    }
}
