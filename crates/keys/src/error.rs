//! What can be wrong with a file of keys.

use std::fmt;
use std::path::PathBuf;

/// Why a file of keys cannot be used as written.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// The file cannot be read.
    #[error("cannot read the {what} {}", path.display())]
    Read {
        /// What the file is: "scenario".
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The text is not TOML.
    #[error("{file}:{line}: not valid TOML: {message}")]
    Syntax {
        /// The file.
        file: String,
        /// Counted from 1.
        line: usize,
        /// What the parser said.
        message: String,
    },
    /// A key has a value that cannot be, or is none that the format knows.
    #[error("{0}")]
    Key(Box<KeyError>),
    /// An override of the command line that is not `key=value`, or whose key the format does not have.
    #[error("`{text}`: {message}")]
    Override {
        /// As typed.
        text: String,
        /// What is wrong, and what is accepted.
        message: String,
    },
}

/// A key that cannot be, or whose value cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyError {
    /// The file that the key came from.
    pub file: String,
    /// The line of the key, counted from 1; of the table around it where the key is not there; `None` where neither is.
    pub line: Option<usize>,
    /// The override of the command line that set the key, if one did.
    pub set_by: Option<String>,
    /// Dotted: `hosts[0].flows[0].start_s`.
    pub key: String,
    /// What is wrong with it: "-1 is out of range".
    pub problem: String,
    /// What would be accepted.
    pub accepted: String,
    /// A key that the writer may have meant.
    pub did_you_mean: Option<String>,
}

/// What is wrong with a value, wherever that stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What is wrong.
    pub problem: String,
    /// What would be accepted.
    pub accepted: String,
    /// What the writer may have meant.
    pub did_you_mean: Option<String>,
}

impl Problem {
    /// A problem without a guess at what was meant.
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
