//! Why control does not help.

use lasthop_units::{About, Rate, Span};
use std::fmt;

/// What a host has found of its latest step of control, where that was bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    /// All hosts together got less than without limits.
    Goodput {
        /// What they got.
        got: Rate,
        /// What they had got without limits.
        free: Rate,
    },
    /// The queue stayed long: something that is not limited fills it.
    Queue {
        /// RTT − lowest RTT, the mean over the busy hosts.
        queue: Span,
        /// What was aimed at.
        aim: Span,
    },
    /// Most other hosts have found something of the kind.
    Peers,
}

impl Harm {
    /// The word for each kind.
    pub const KINDS: [&'static str; 3] = ["goodput", "queue", "peers"];

    /// The kind as one word of [`Harm::KINDS`].
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Goodput { .. } => Self::KINDS[0],
            Self::Queue { .. } => Self::KINDS[1],
            Self::Peers => Self::KINDS[2],
        }
    }
}

impl fmt::Display for Harm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Goodput { got, free } => {
                write!(f, "under limits all hosts together got {}, and {} without", About(*got), About(*free))
            }
            Self::Queue { queue, aim } => write!(
                f,
                "under limits round trips stayed {:.0} ms above the lowest, and {:.0} ms were aimed at: a device without the \
                 agent, a connection that escapes it, or a download that it cannot limit, fills the queue",
                queue.as_millis_f64(),
                aim.as_millis_f64()
            ),
            Self::Peers => f.write_str("most hosts behind this access point have found that limits do not help"),
        }
    }
}
