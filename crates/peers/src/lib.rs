//! Who shares the access point: what hosts tell each other, how, and how often. Pure: time is an argument.
//!
//! - [`PeerTable`]: who else is behind the same access point, and what they report of themselves.
//! - [`beacon`]: how they say it, on the wire.
//! - [`cadence`]: how often.
//! - [`group`]: which access point is the same.
//!
//! ```text
//!  beacons ──> beacon::Receiver ──> PeerTable ──> Neighbourhood ──> (a policy)
//!  Report  ──> cadence::Cadence ──> beacon::Beacon ──> the air
//! ```
#![deny(clippy::disallowed_methods)]

pub mod beacon;
pub mod cadence;
pub mod group;
mod table;

pub use table::{
    CHANGE, Crowd, LONGEST_AGE_OUT, Limits, Neighbourhood, Peer, PeerId, PeerTable, REMEMBERED, Reject, Rejections,
    Report, TOGETHER,
};
