//! Errors in a study, with the accepted alternatives.

use lasthop_keys::nearest;
use std::fmt;

/// An error in a measure or an expression, with the accepted alternatives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) kind: Kind,
    pub(crate) problem: String,
    pub(crate) accepted: String,
    pub(crate) did_you_mean: Option<String>,
}

/// The kind of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Invalid with any figures.
    Wrong,
    /// Not a finite number here, but perhaps with other figures.
    NotFinite,
    /// A reduction of an empty list.
    Nothing,
}

impl Problem {
    pub(crate) fn new(problem: impl Into<String>, accepted: impl Into<String>) -> Self {
        Self { kind: Kind::Wrong, problem: problem.into(), accepted: accepted.into(), did_you_mean: None }
    }

    /// The problem of an unknown name; suggests the nearest known one.
    pub(crate) fn unknown(problem: impl Into<String>, name: &str, known: &[&str]) -> Self {
        let did_you_mean = nearest(name, known).map(str::to_owned);
        Self { did_you_mean, ..Self::new(problem, known.join(", ")) }
    }
}

impl std::error::Error for Problem {}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)?;
        if let Some(meant) = &self.did_you_mean {
            write!(f, "; did you mean {meant}?")?;
        }
        write!(f, "; accepted: {}", self.accepted)
    }
}

impl From<Problem> for lasthop_keys::Problem {
    fn from(problem: Problem) -> Self {
        let Problem { problem, accepted, did_you_mean, .. } = problem;
        Self { problem, accepted, did_you_mean }
    }
}

/// For the expression engine, which returns it unchanged: see [`crate::formula::Formula`].
impl From<Problem> for minijinja::Error {
    fn from(problem: Problem) -> Self {
        Self::new(minijinja::ErrorKind::InvalidOperation, "").with_source(problem)
    }
}
