//! What is measured of a run, and how it becomes a result: the same for both habitats.
//!
//! - [`Measurement`] takes samples of connections and queues, limits of senders, and outcomes of messages. It makes a
//!   [`RunResult`](lasthop_scenario::RunResult) and its series of them.
//! - Its meters: [`FlowMeter`], [`DeliveryMeter`], [`DatagramMeter`], [`RoundTrips`], transfers with their slowdowns,
//!   [`ShareMeter`] (how soon shares are equal again), [`Bounds`].
//! - The arithmetic: [`jain_index`], [`starved_flows`], [`mean`], [`quantile`], [`distribution`]; over seeds [`spread`], [`deviation`], [`interval`].
//! - [`access`], [`links`], [`policies`]: the counters of the network and the agents. [`comparison()`]: runs beside each
//!   other.
//!
//! *What it leaves out*: the formats of results (`scenario`); clocks.
//! A habitat in real time reports in [`RealTime`] how that affected the run.
#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods)]

mod bounds;
mod comparison;
mod confidence;
mod convergence;
mod counted;
mod datagrams;
mod deliveries;
mod fairness;
mod flow_meter;
mod measurement;
mod quantiles;
mod roams;
mod round_trips;
mod transfers;

pub use bounds::{Bounds, Interval};
pub use comparison::{case, comparison, summary};
pub use confidence::{Range, deviation, interval, jackknife, spread};
pub use convergence::ShareMeter;
pub use counted::{access, cells, links, nodes, policies};
pub use datagrams::{DatagramMeter, datagrams};
pub use deliveries::{DeliveryMeter, delivered};
pub use fairness::{jain_index, starved_flows};
pub use flow_meter::FlowMeter;
pub use measurement::{Counted, Finished, Measurement, OnSample, RealTime, Sampled, Seen, begun, summarise};
pub use quantiles::{distribution, mean, quantile};
pub use round_trips::RoundTrips;
