//! Why the agent cannot do something.

use lasthop_keys::DocumentError;
use std::error::Error as Cause;
use std::fmt::{self, Display};

/// Why the agent does not start, or something that it does now and then has failed. With its causes: [`Error::in_a_line`].
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configuration is not accepted.
    #[error(transparent)]
    Config(#[from] DocumentError),
    /// The configuration cannot be read again ([`crate::Reload`]).
    #[error(transparent)]
    Reload(Box<dyn Cause + Send + Sync>),
    /// The kernel could not be told, or asked, something.
    #[error(transparent)]
    Kernel(#[from] lasthop_kernel::Error),
    /// Something is not as it must be, or another agent does the same; the message says what to do.
    #[error("{0}")]
    Refused(String),
    /// Something has failed.
    #[error("{doing}")]
    Failed {
        /// What could not be done, to what.
        doing: String,
        /// Why.
        source: Box<dyn Cause + Send + Sync>,
    },
}

impl Error {
    /// The message and its causes, each behind a colon.
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

/// Says of what failed what could not be done.
pub(crate) trait Doing<T> {
    /// `what`, as in "cannot open generic netlink".
    fn doing(self, what: impl Display) -> Result<T>;
}

impl<T, E: Into<Box<dyn Cause + Send + Sync>>> Doing<T> for Result<T, E> {
    fn doing(self, what: impl Display) -> Result<T> {
        self.map_err(|error| Error::Failed { doing: what.to_string(), source: error.into() })
    }
}
