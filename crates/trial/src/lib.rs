//! A trial: the hosts behind an access point alternate between control and free, all at once, and measure both. Pure:
//! time and randomness are arguments.
//!
//! ```text
//!  plan:    | free | control | control | free | control | free | ...     pairs of blocks, the order in each drawn from a seed
//!  a block: | left out |          counts          |                      what the block before has left is not compared
//! ```
//!
//! - [`Plan`]: which block is when, and what is left out of each.
//! - [`Part`]: a host's part in a trial: it joins, takes turns, measures, tells, and leaves by itself if the one who began it is gone.
//! - [`Message`]: what hosts tell each other of it.
//! - [`Block`]: what a host has measured in a block.
//! - [`judge()`]: the effect on each figure, with its interval, and the verdict.
//!
//! *What it leaves out*: hosts without the agent, which nobody measures; connections that live for less than a tick, in both
//! kinds of blocks; per-packet delays.
#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods)]

mod block;
mod differences;
mod judge;
mod message;
mod page;
mod part;
mod plan;

pub use block::{Block, Meter};
pub use differences::{Differences, holm};
pub use judge::{Effect, Figure, HostOutcome, Outcome, Probe, Shows, Told, Verdict, judge, least_pairs};
pub use message::Message;
pub use part::{COLLECTS, Ended, LEASE, Part, Standing};
pub use plan::{Arm, Moment, Plan};
