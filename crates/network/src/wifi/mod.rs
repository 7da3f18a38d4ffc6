//! The 802.11 medium: the distributed coordination function (DCF) of 802.11b, 802.11g and the mix of both; aggregation and Block Ack
//! of 802.11n, 802.11ac and 802.11ax.
//!
//! `constants` and `modulation` (what the standard fixes), `airtime` (how long frames take), `alone` (what one station gets), `backoff` (who may
//! send when), `rate_control` (in which mode), `originator` and `recipient` (the ends of a link: which frames go together and again, in which
//! order they go on), `direction` (both of them, and what is counted), `sender` (where the next transmission goes), `air_use` (what the time is
//! used for), `medium` (the exchange of frames that ties them together).

mod air_use;
mod airtime;
mod alone;
mod backoff;
mod constants;
mod direction;
mod medium;
mod modulation;
mod originator;
mod rate_control;
mod recipient;
mod sender;
mod wheel;

pub(crate) use alone::alone;
pub(crate) use constants::{OFDM_WINDOW, SHORT_WINDOW};
pub use constants::{PhyRate, Standard};
pub(crate) use medium::Medium;
pub use modulation::{ChannelWidth, GuardInterval, Modulation};
pub use rate_control::{RateControl, RateSet};
