//! A study: a figure or table of a paper as data. It holds scenarios, axes, seeds, figures, and claims with their
//! source.
//!
//! - [`Study`]: `studies/<paper>/<figure>.toml`, checked against its keys ([`Study::section`]). Its [`Study::plan`]
//!   gives the runs.
//! - [`StudyResult`]: `study.json`, made from the study and its runs' results. It has the mean and 95 % confidence
//!   interval ([`Interval`]) of every point, the figures' lines, and the verdict on each claim.
//! - [`Measure`]: the name of one number of a result, for figures and claims.
//!
//! Reading a study finds every error that can be known before a run. It evaluates each expression once with made-up
//! results. An unknown function, axis, axis value or measure is reported with its line. A measure may still lack a
//! value in some run; the claim then "cannot be judged", which never counts as "holds".
//!
//! Expressions are MiniJinja's (numbers, `+ - * / **`, calls with named arguments), without files or loops.
//!
//! - [`store`]: runs that have been done, so that none is done twice.
//! - [`Study::run_at_once`] and [`run_in_turn`] do the runs; the caller supplies the function that runs a scenario.
//!
//! *What it leaves out*: habitats, which the caller supplies. Values at a moment of a run: claims are about whole runs.
#![forbid(unsafe_code)]

pub mod parallel;
#[cfg(unix)]
pub mod store;

mod check;
mod compare;
mod draw;
mod expression;
mod formula;
mod keys;
mod load;
mod measure;
mod measured;
mod part;
mod plan;
mod problem;
mod range;
mod reading;
mod result;
mod run;
mod search;
mod space;
mod statistics;
mod verdict;

pub use compare::{CaseError, compared, plan_cases};
pub use expression::functions;
pub use formula::{Formula, Function};
pub use load::{Load, TooMuchMemory, fitting};
pub use measure::{Measure, label_of, whole_result};
pub use measured::MeasureResult;
pub use plan::PlannedRun;
pub use range::range_of;
pub use result::{AxisResult, FigureResult, LineResult, MarkResult, PanelResult, PointResult, StudyResult};
pub use run::{AtOnce, Outcome, Part, RunError, RunOne, Survey, run_in_turn, until_not_late};
pub use search::{Found, Hunt, Tried};
pub use space::{Coordinate, Level};
#[cfg(unix)]
pub use store::{Key, Store, StoreChoice, StoreError, StoredRuns};
pub use verdict::{CellResult, ClaimResult, ConditionResult, Criterion, Verdict};

use lasthop_keys::DocumentError;
use lasthop_scenario::HostsKind;
use lasthop_scenario::Override;
use search::Search;
use space::{Selection, Space};
use std::sync::Arc;

/// A study, read and checked.
#[derive(Clone, Debug)]
pub struct Study {
    /// The folder and the file without its ending: `hayakawa/fig-06`.
    pub name: String,
    /// Its subject, in one line.
    pub title: String,
    /// The paper and figure, or the standard and clause.
    pub source: String,
    /// Notes for the reader of the report.
    pub note: Option<String>,
    /// The number of seeds of each point.
    pub seeds: u64,
    /// The default habitat.
    pub hosts: HostsKind,
    /// The text of the whole file.
    pub text: String,
    /// The figures.
    pub figures: Vec<Figure>,
    /// The claims.
    pub claims: Vec<Claim>,
    file: String,
    base: Base,
    /// The overrides of every run.
    set: Vec<Setting>,
    /// The command line's overrides of every run, on top of the others.
    overrides: Vec<Override>,
    /// The overrides for each value of each axis.
    settings: Vec<Vec<Vec<Setting>>>,
    /// The overrides of each case; empty without cases.
    searches: Vec<Option<Search>>,
    /// The habitat of each case, if it has its own.
    case_hosts: Vec<Option<HostsKind>>,
    /// The dimension of the drawn scenarios, if any.
    drawn: Option<usize>,
    space: Arc<Space>,
    /// The measures kept of each point.
    measures: Vec<Measure>,
}

/// The scenario before any override.
#[derive(Clone, Debug)]
struct Base {
    /// Its name in messages.
    file: String,
    /// To which its paths are relative.
    folder: std::path::PathBuf,
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

/// A figure.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Its title.
    pub title: String,
    /// The measures along the vertical axis, at least one, each with its name in the legend.
    pub y: Vec<(Measure, String)>,
    /// The label of the vertical axis.
    pub y_label: String,
    /// Whether the horizontal axis is logarithmic.
    pub log_x: bool,
    /// Whether the vertical axis is logarithmic.
    pub log_y: bool,
    /// The dimension along the horizontal axis.
    x: usize,
    /// The dimension with one panel for each value.
    panels: Option<usize>,
    selection: Selection,
    /// Its references, by their index in the space.
    references: Vec<usize>,
}

/// A claim and its bounds.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Short and unique.
    pub id: String,
    /// In the words of its source.
    pub text: String,
    /// Where it is from.
    pub source: String,
    /// The interpretation of the words as a number.
    pub reading: Option<String>,
    /// The number claimed about.
    pub value: ClaimedNumber,
    /// The number that the source prints.
    pub paper: Option<f64>,
    /// The bounds.
    pub criterion: Criterion,
    /// Whether the study fails if the claim does not hold.
    pub required: bool,
    /// The dimensions along which it is judged separately at each value.
    each: Vec<usize>,
    selection: Selection,
}

/// The source of a claim's number.
#[derive(Clone, Debug)]
pub enum ClaimedNumber {
    /// An expression.
    Expression(Formula),
    /// The share of cells that meet every condition.
    Share {
        /// Dimensions; every combination of their values is a cell.
        cells: Vec<usize>,
        /// What a cell must meet to be looked at; none for all cells.
        among: Vec<Condition>,
        /// At least one.
        conditions: Vec<Condition>,
    },
}

/// One of several conditions that must hold together: at a cell of a claim, or for a value of a search.
#[derive(Clone, Debug)]
pub struct Condition {
    /// The name of its number in tables.
    pub label: String,
    /// The expression.
    pub value: Formula,
    /// The bounds.
    pub criterion: Criterion,
}

/// Why a study cannot be run as written.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// The file cannot be read or is not TOML, or a key or value is invalid.
    #[error(transparent)]
    File(#[from] DocumentError),
    /// Its scenario cannot run, even before anything varies.
    #[error("{place}: {reason}")]
    Base {
        /// The study's file and the key at fault.
        place: String,
        /// Why.
        reason: lasthop_scenario::ScenarioError,
    },
    /// The scenario of a point cannot run.
    #[error("{place}: with {at}: {reason}")]
    Scenario {
        /// The study's file and the key at fault.
        place: String,
        /// The point: `n=10, delay=4`.
        at: String,
        /// Why.
        reason: lasthop_scenario::ScenarioError,
    },
}

impl Study {
    /// The measures kept of each point.
    pub fn measures(&self) -> &[Measure] {
        &self.measures
    }

    /// Whether a case is found by search.
    pub fn is_searched(&self) -> bool {
        self.searches.iter().any(Option::is_some)
    }

    /// Whether a case has kernel hosts, whatever the others have.
    pub fn has_kernel_case(&self) -> bool {
        self.case_hosts.contains(&Some(HostsKind::Kernel))
    }

    /// The number of drawn scenarios; `None` if nothing is drawn.
    pub fn scenarios(&self) -> Option<usize> {
        self.drawn.map(|dimension| self.space.dimensions[dimension].levels.len())
    }

    /// The number of points. Each runs with each seed.
    pub fn points(&self) -> usize {
        self.space.points()
    }
}
