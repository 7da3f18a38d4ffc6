//! What an agent tells, and how it is asked. Formats; no clock, and no file but those that a caller names.
//!
//! - [`Status`]: the agent's state, as `lasthop agent status --json` prints it.
//! - [`Watched`]: the same with peers and connections, a line at each tick.
//! - [`record`]: the lines of its record.
//! - [`WifiLink`]: its wireless link.
//! - [`ask_agents`] and [`watch`]: the client of its socket.
//! - [`http`]: requests of those who ask for its metrics, or for a page of `lasthop view`.
//!
//! The agent makes them; `lasthop top`, `view` and `trace`, and the laboratory, read them without the agent.

mod client;
mod gain;
pub mod http;
pub mod record;
mod status;
mod ungoverned;
mod watched;
mod wifi;

pub use client::{AskError, FOLDER, PREFIX, ask_agents, connect, sockets, watch};
pub use gain::Gain;
pub use lasthop_lastlink::Modulation;
pub use status::{ContainerCounts, ProgramStatus, RelayStatus, RuleStatus, Status};
pub use ungoverned::Ungoverned;
pub use watched::{FLOWS_MOST, Meter, Neighbour, PEERS_MOST, TrialOrder, VERSION, Watched, WatchedFlow};
pub use wifi::{Bssid, WifiLink};

lasthop_keys::words! {
    /// What an agent may do.
    pub enum Mode {
        /// Watch and record; decide nothing, change nothing, send nothing.
        Observe = "observe",
        /// Decide and say so; change nothing.
        Advise = "advise",
        /// Decide and apply.
        Control = "control",
    }
}
