//! The agent's errors.

use lasthop_keys::DocumentError;
use std::error::Error as Cause;
use std::fmt::{self, Display};

/// Why the agent cannot start, or why one of its periodic tasks failed. [`Error::in_a_line`] adds the causes.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] DocumentError),
    /// The configuration cannot be reread ([`crate::Reload`]).
    #[error(transparent)]
    Reload(Box<dyn Cause + Send + Sync>),
    /// A kernel operation failed.
    #[error(transparent)]
    Kernel(#[from] lasthop_kernel::Error),
    /// A precondition does not hold, or another agent runs. The message gives the remedy.
    #[error("{0}")]
    Refused(String),
    /// An operation failed.
    #[error("{doing}")]
    Failed {
        /// The operation and its object.
        doing: String,
        /// The cause.
        source: Box<dyn Cause + Send + Sync>,
    },
}

impl Error {
    /// The message and its causes, separated by colons.
    pub fn in_a_line(&self) -> impl Display + '_ {
        struct Line<'a>(&'a Error);

        impl Display for Line<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)?;
                let mut cause = self.0.source();
                while let Some(error) = cause {
                    write!(f, ": {error}")?;
                    cause = error.source();
                }
                Ok(())
            }
        }
        Line(self)
    }
}

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

/// Adds the failed operation to an error.
pub(crate) trait Doing<T> {
    /// `what`, as in "cannot open generic netlink".
    fn doing(self, what: impl Display) -> Result<T>;
}

impl<T, E: Into<Box<dyn Cause + Send + Sync>>> Doing<T> for Result<T, E> {
    fn doing(self, what: impl Display) -> Result<T> {
        self.map_err(|error| Error::Failed { doing: what.to_string(), source: error.into() })
    }
}
