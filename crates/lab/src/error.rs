//! Errors of runs with kernel hosts.

use lasthop_scenario::{KeyError, Problem, Scenario};
use std::fmt::Display;
use std::io;

/// A scenario cannot run with kernel hosts, or its run has failed. Each message names the action and its object.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The scenario needs a feature that kernel hosts, or this traffic source, lack.
    #[error("{key}: {reason}")]
    Scenario {
        /// The key of the scenario.
        key: String,
        /// Its value, and the alternative that supports it.
        reason: String,
    },
    /// The network model does not take the scenario.
    #[error("the network model does not take this scenario")]
    Network(#[from] lasthop_network::ConfigError),
    /// This process cannot be the medium of simulated radios.
    #[error(transparent)]
    Hwsim(#[from] lasthop_kernel::hwsim::HwsimError),
    /// This machine or user lacks the resources or the permissions.
    #[error("{0}")]
    Machine(String),
    /// A process in a host, an agent or iperf3, has not started properly.
    #[error("{0}")]
    Child(String),
    /// One of our laws could not be loaded or read.
    #[error("{doing}")]
    Law {
        /// The action.
        doing: String,
        /// The reason.
        source: lasthop_kernel::laws::Error,
    },
    /// A host or a server could not be set up.
    #[error("cannot set up {what}")]
    End {
        /// The host or server.
        what: String,
        /// The reason.
        source: Box<Self>,
    },
    /// The operating system has refused a request.
    #[error("{doing}")]
    System {
        /// The action.
        doing: String,
        /// The system's error.
        source: io::Error,
    },
}

impl Error {
    /// The same, where the key stands in the scenario's file: its line, or the override that set it.
    pub(crate) fn located(self, scenario: &Scenario) -> Self {
        let Self::Scenario { key, reason } = self else { return self };
        let KeyError { file, line, set_by, .. } = scenario.error(&key, Problem::new("", ""));
        let place = match (set_by, line) {
            (Some(set_by), _) => format!("`{set_by}` on {file}"),
            (None, Some(line)) => format!("{file}:{line}"),
            (None, None) => file,
        };
        Self::Scenario { key: format!("{place}: {key}"), reason }
    }
}

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

/// Adds the failed action to an error.
pub(crate) trait Doing<T> {
    /// `what`, as in "cannot open rtnetlink".
    fn doing(self, what: impl Display) -> Result<T>;
}

impl<T, E: Into<io::Error>> Doing<T> for Result<T, E> {
    fn doing(self, what: impl Display) -> Result<T> {
        self.map_err(|error| Error::System { doing: what.to_string(), source: error.into() })
    }
}
