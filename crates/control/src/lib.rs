//! Everything that decides, and nothing that does I/O: no clock, no environment, no files, no logging. Time is an
//! argument, decisions are return values. So one and the same code decides on a phone's kernel and in a simulation.
//!
//! - [`law`]: congestion controls: what the window should be, decided at each ACK and loss. C headers, called from Rust.
//! - [`last_link`]: what a client says of its own link, for the law that uses it, and how it finds that out.
//! - [`bound`]: limits with a lease, put around the window of any congestion control. The C header that runs in the
//!   kernel, called from Rust.
//! - [`policy`]: what the limits should be, decided every 0.5 s from the connections' RTTs and the number of peers.
//! - [`governor`]: what is around a policy at each tick: who is busy, which bounds are new, what peers are told.
//! - [`peers`]: who else is behind the same access point, and what they say about themselves.
//! - [`beacon`]: how they say it, on the wire.
//! - [`pace`]: how often.
//! - [`group`]: which access point is the same.
//! - [`activity`]: which connections count as sending.
//!
//! ```text
//!  beacons ──> beacon::Receiver ──> peers::PeerTable ──> Neighbourhood ─┐              ┌─> bounds
//!                                                                       ├─> Governor ──┤
//!  connections' RTT, window, state ──> FlowSample ──────────────────────┘    (Policy)   └─> Report (the next beacon)
//! ```
#![deny(clippy::disallowed_methods)]

pub mod activity;
pub mod beacon;
pub mod bound;
pub mod governor;
pub mod group;
pub mod last_link;
pub mod law;
pub mod pace;
pub mod peers;
pub mod policy;

pub use bound::Bound;
