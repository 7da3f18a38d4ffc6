//! How long packets of sending connections wait in queues.

use super::{Metric, Number, Tick};
use prometheus_client::metrics::histogram::Histogram;

/// Upper ends of the histogram's buckets, in s: the excess is some 10 ms where control works and seconds where it is
/// needed.
const BUCKETS: [f64; 12] = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0];

#[derive(Debug)]
pub(super) struct RttExcess(Histogram);

impl Default for RttExcess {
    fn default() -> Self {
        Self(Histogram::new(BUCKETS))
    }
}

impl Metric for RttExcess {
    fn on_tick(&mut self, tick: &Tick<'_>) {
        for (socket, flow) in tick.sockets.iter().zip(tick.flows) {
            if let (true, Some(rtt), Some(least)) = (flow.seen.busy, socket.tcp.srtt, socket.tcp.min_rtt) {
                self.0.observe(rtt.saturating_sub(least).as_secs_f64());
            }
        }
    }

    fn numbers(&self) -> Vec<Number> {
        let help = "Smoothed round trip above the connection's lowest, of each sending connection at each tick";
        vec![Number::histogram("rtt_excess", help, "seconds", &self.0)]
    }
}
