//! Errors in a file of keys.

use std::fmt;
use std::path::PathBuf;

/// Why a file of keys cannot be used as written.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// The file cannot be read.
    #[error("cannot read the {what} {}", path.display())]
    Read {
        /// The kind of file: "scenario".
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The text is not TOML.
    #[error("{file}:{line}: not valid TOML: {message}")]
    Syntax {
        /// The file.
        file: String,
        /// Counted from 1.
        line: usize,
        /// The parser's error.
        message: String,
    },
    /// A key is unknown, or has a wrong value.
    #[error("{0}")]
    Key(Box<KeyError>),
    /// An override on the command line is not `key=value`, or its key is unknown.
    #[error("`{text}`: {message}")]
    Override {
        /// As typed.
        text: String,
        /// The problem, and the accepted values.
        message: String,
    },
}

/// An unknown key, or one with a wrong value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyError {
    /// The key's file.
    pub file: String,
    /// The line of the key, counted from 1. For an absent key, the line of its table; `None` if that is absent too.
    pub line: Option<usize>,
    /// The override of the command line that set the key, if one did.
    pub set_by: Option<String>,
    /// Dotted: `hosts[0].flows[0].start_s`.
    pub key: String,
    /// The problem: "-1 is out of range".
    pub problem: String,
    /// The accepted values.
    pub accepted: String,
    /// The key probably meant.
    pub did_you_mean: Option<String>,
}

/// The problem with a value, independent of its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The problem.
    pub problem: String,
    /// The accepted values.
    pub accepted: String,
    /// The word probably meant.
    pub did_you_mean: Option<String>,
}

impl Problem {
    /// A problem without a suggestion.
    pub fn new(problem: impl Into<String>, accepted: impl Into<String>) -> Self {
        Self { problem: problem.into(), accepted: accepted.into(), did_you_mean: None }
    }
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.set_by, self.line) {
            (Some(text), _) => write!(f, "`{text}` on {}", self.file)?,
            (None, Some(line)) => write!(f, "{}:{line}", self.file)?,
            (None, None) => write!(f, "{}", self.file)?,
        }
        write!(f, ": {}: {}", self.key, self.problem)?;
        if let Some(meant) = &self.did_you_mean {
            write!(f, "; did you mean {meant}?")?;
        }
        write!(f, "; accepted: {}", self.accepted)
    }
}

impl std::error::Error for KeyError {}

impl From<KeyError> for DocumentError {
    fn from(error: KeyError) -> Self {
        Self::Key(Box::new(error))
    }
}
