//! Why there is no run with kernel hosts.

use std::fmt::Display;
use std::io;

/// Why a scenario cannot be run with kernel hosts, or its run has failed. Each message says what was being done to what.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The scenario asks for what kernel hosts, or this source of traffic, cannot do.
    #[error("{key}: {reason}")]
    Scenario {
        /// The key of the scenario.
        key: String,
        /// What it asks for, and what can do that.
        reason: String,
    },
    /// The network model does not take the scenario.
    #[error("the network model does not take this scenario")]
    Network(#[from] lasthop_network::ConfigError),
    /// This machine, or this user, cannot have so much, or such hosts.
    #[error("{0}")]
    Machine(String),
    /// What runs in a host, an agent or iperf3, has not begun as it should.
    #[error("{0}")]
    Child(String),
    /// A law of ours could not be loaded, or looked at.
    #[error("{doing}")]
    Law {
        /// What was being done.
        doing: String,
        /// Why it failed.
        source: lasthop_kernel::laws::Error,
    },
    /// A host or a server could not be set up.
    #[error("cannot set up {what}")]
    End {
        /// Which one.
        what: String,
        /// Why.
        source: Box<Self>,
    },
    /// The operating system has refused something.
    #[error("{doing}")]
    System {
        /// What was being done.
        doing: String,
        /// Its error.
        source: io::Error,
    },
}

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

/// Says of what failed what was being done.
pub(crate) trait Doing<T> {
    /// `what`, as in "cannot open rtnetlink".
    fn doing(self, what: impl Display) -> Result<T>;
}

impl<T, E: Into<io::Error>> Doing<T> for Result<T, E> {
    fn doing(self, what: impl Display) -> Result<T> {
        self.map_err(|error| Error::System { doing: what.to_string(), source: error.into() })
    }
}
