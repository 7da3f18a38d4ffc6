//! The 802.11 medium: the distributed coordination function (DCF) of 802.11b, 802.11g and the mix of both.
//!
//! `constants` (what the standard fixes), `airtime` (how long frames take), `alone` (what one station gets), `backoff` (who may send when), `rate_control`
//! (at which PHY rate), `medium` (the exchange of frames that ties them together).

mod airtime;
mod alone;
mod backoff;
mod constants;
mod medium;
mod rate_control;
mod wheel;

pub(crate) use alone::alone;
pub use constants::{PhyRate, Standard};
pub(crate) use medium::Medium;
pub use rate_control::{RateControl, RateSet};
