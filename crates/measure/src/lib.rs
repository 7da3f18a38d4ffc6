//! What is measured of a run, and what becomes of it: the same for every habitat.
//!
//! - [`Measurement`] takes samples of connections and queues, the limits of senders and what became of messages, and makes a
//!   [`RunResult`](lasthop_scenario::RunResult) with its series of them.
//! - Its meters: [`FlowMeter`], [`DeliveryMeter`], [`ShareMeter`] (how soon shares are equal again), [`Bounds`].
//! - The arithmetic: [`jain_index`], [`starved_flows`], [`mean`], [`quantile`], [`distribution`].
//! - [`access`], [`links`], [`policies`]: what the network and the agents have counted; [`comparison`]: runs beside each other.
//!
//! *What it leaves out*: the formats of results, which are `scenario`'s; means over seeds with their confidence, which are
//! `study`'s; clocks: a habitat in real time says by [`RealTime`] what that did to the run.
#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods)]

mod bounds;
mod comparison;
mod convergence;
mod counted;
mod deliveries;
mod figures;
mod measurement;

pub use bounds::{Bounds, Interval, Limits};
pub use comparison::{case, comparison, spread, summary};
pub use convergence::ShareMeter;
pub use counted::{access, links, policies};
pub use deliveries::{DeliveryMeter, delivered};
pub use figures::{FlowMeter, distribution, jain_index, mean, quantile, starved_flows};
pub use measurement::{Counted, Finished, Measurement, RealTime, Seen, summarise};
