//! The hosts behind one access point: what they tell each other, in which form, and how often. Pure: time is an
//! argument.
//!
//! - [`Ear`]: what becomes of a datagram.
//! - [`PeerTable`]: the other hosts behind the same access point, and their reports.
//! - [`beacon`]: the reports on the wire.
//! - [`cadence`]: how often they are sent.
//! - [`Note`]: what they tell each other beside that.
//! - [`group`]: which hosts are behind the same access point.
//! - [`relay`]: beacons by unicast, where hosts do not hear each other.
//!
//! ```text
//!  beacons ──> Ear: beacon::Receiver ──> PeerTable ──> Neighbourhood ──> (a policy)
//!  Report  ──> cadence::Cadence ──> beacon::Beacon ──> the air
//! ```
#![deny(clippy::disallowed_methods)]

pub mod beacon;
pub mod cadence;
mod ear;
pub mod group;
pub mod note;
pub mod relay;
mod table;

pub use ear::{Arrived, Ear, Own};
pub use note::Note;
pub use table::{
    CHANGE, Crowd, LONGEST_AGE_OUT, Limits, Neighbourhood, Peer, PeerId, PeerTable, REMEMBERED, Reject, Rejections,
    Report, TOGETHER, Word,
};
