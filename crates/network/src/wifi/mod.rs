//! The 802.11 medium: the distributed coordination function (DCF) of 802.11b and 802.11g; aggregation and Block Ack of
//! 802.11n, 802.11ac and 802.11ax; stations of several of them on one access point.
//!
//! `cell` (what they have in common, and protection), `edca` (the access categories), `constants` and `modulation` (the
//! standard's constants), `airtime` (durations of frames), `alone` (throughput of one station, and what one of its
//! packets takes), `backoff` (channel access), `noise` (losses), `rate_control` (choice of mode), `originator` and `recipient` (the ends of a link: aggregation, repeats, reordering), `direction` (both of
//! them, with counts), `sender` (the next receiver), `air_use` (use of air time), `medium` (the frame exchange that
//! ties them together), `radios` (the same for frames of real drivers, which bring their rates with them).

mod air_use;
mod airtime;
mod alone;
mod backoff;
mod cell;
mod constants;
mod direction;
mod edca;
mod medium;
mod modulation;
mod noise;
mod originator;
pub mod radios;
mod rate_control;
mod recipient;
mod sender;
mod wheel;

pub(crate) use alone::{AirHop, air_hop, alone};
pub use cell::Band;
pub(crate) use constants::{OFDM_WINDOW, SHORT_WINDOW};
pub use constants::{PhyRate, Standard};
pub(crate) use medium::Medium;
pub use modulation::{ChannelWidth, GuardInterval, Modulation};
pub use rate_control::{RateControl, RateSet};
