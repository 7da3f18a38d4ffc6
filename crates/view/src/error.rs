//! Errors in showing an agent, a record or a result.

use lasthop_report::ReportError;
use lasthop_status::VERSION;
use std::io;
use std::path::PathBuf;

/// Nothing can be shown, or nothing more.
#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    /// No agent serves a socket, or it cannot be opened.
    #[error("no agent can be watched: start one (`lasthop agent`), be root or in its `socket_group`")]
    NoAgent(#[source] io::Error),
    /// The lines of an agent have ended, or cannot be read.
    #[error("watching {}", path.display())]
    Watch {
        /// The agent's socket.
        path: PathBuf,
        /// The reason.
        source: Box<Self>,
    },
    /// Nothing comes from the agent any more.
    #[error("the agent has ended, or has disconnected a stalled reader")]
    Ended,
    /// The agent has sent something else.
    #[error("a line of the agent cannot be read")]
    Line(#[source] serde_json::Error),
    /// The agent is newer or older.
    #[error("the agent speaks version {0} of the format, and this command version {VERSION}")]
    Version(u32),
    /// There is no terminal, or it has gone.
    #[error("`lasthop top` needs a terminal")]
    Terminal(#[source] io::Error),
    /// The record cannot be read.
    #[error("cannot read the record {}", path.display())]
    Read {
        /// The record.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file is something else.
    #[error("{} is no record of an agent", path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: RecordError,
    },
    /// The port cannot be had.
    #[error("cannot serve the page on port {port} of this machine")]
    Port {
        /// The port; 0: any.
        port: u16,
        /// The system's error.
        source: io::Error,
    },
    /// There is no token without them.
    #[error("the kernel gives no random numbers")]
    Random(#[source] getrandom::Error),
    /// The folder cannot be read.
    #[error("cannot view {}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The result cannot be read.
    #[error(transparent)]
    Report(#[from] ReportError),
}

/// A file is no record of an agent.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// A line is something else.
    #[error("line {number}")]
    Line {
        /// From 1.
        number: usize,
        /// The reason.
        source: serde_json::Error,
    },
    /// There is nothing to show.
    #[error("it has no tick")]
    NoTick,
    /// Nothing says of which agent it is.
    #[error("it has no line `ready`")]
    NoReady,
    /// A line that begins as a tick is none.
    #[error("tick {at} is none")]
    Tick {
        /// Its number, from 0.
        at: usize,
        /// The reason, if it is no event at all.
        source: Option<serde_json::Error>,
    },
}
