//! The memory that a run needs for data kept until its end.
//!
//! Per sample (`duration_s` / `sample_ms`) and connection:
//! - the round trip, which counts after the warm-up and is copied for the quantiles of the connection and of all;
//! - the receiver's bytes, for the convergence;
//! - with series, a row of [`FlowSeries`](crate::FlowSeries).
//!
//! Per sample and queue, with series: a row of [`QueueSeries`](crate::QueueSeries). Per tick of an agent (0.5 s) and
//! connection: the limits in force. Per message: its delay. Per datagram, with series: a row of
//! [`DatagramSeries`](crate::DatagramSeries), and what the laboratory, which always has series, notes of it. Columns grow by doubling, so their contents count one and a
//! half times, the mean of their possible sizes.
//!
//! *What it leaves out*: data that do not grow with the length of the run, except a constant per connection. Also
//! pages, figures and Parquet's needs while files are written, beyond one copy of the series.

use crate::keys::AgentMode;
use crate::scenario::Scenario;
use crate::traffic::TrafficKind;
use lasthop_network::{AccessConfig, Discipline, Topology};
use lasthop_policy::PolicyName;

/// Constants of a process and of each connection, without samples. Measured with 200 stations
/// (docs/guide/simulator.md); includes much of the queues' contents.
const BASE_BYTES: f64 = 16e6;
const CONNECTION_BYTES: f64 = 50e3;
/// mac80211's queues of one station: 1024 flows of 120 bytes.
const STATION_QUEUES_BYTES: f64 = 120e3;
/// A smoothed RTT, and its copies when quantiles are taken.
const ROUND_TRIP_BYTES: f64 = 3.0 * 8.0;
/// A sample of `measure::ShareMeter`: time, bytes, busy.
const SHARE_BYTES: f64 = 24.0;
/// A row of all columns of [`crate::FlowSeries`].
const FLOW_ROW_BYTES: f64 = 170.0;
/// The same of [`crate::QueueSeries`], with the text of the queue's name.
const QUEUE_ROW_BYTES: f64 = 70.0;
/// `measure::Bounds`, an interval.
const BOUND_BYTES: f64 = 48.0;
const MESSAGE_BYTES: f64 = 2.0 * 8.0;
/// A row of all columns of [`crate::DatagramSeries`].
const DATAGRAM_ROW_BYTES: f64 = 30.0;
/// What the laboratory notes of a datagram when it is sent and when it comes.
const DATAGRAM_NOTE_BYTES: f64 = 16.0 + 32.0;
/// Between two ticks of an agent.
const TICK_S: f64 = 0.5;
/// A column's size relative to its contents.
const GROWTH: f64 = 1.5;

/// The memory of a run, in bytes; estimates within a factor of two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MemoryEstimate {
    /// During the run and the writing of its series, without `kept`.
    pub running: f64,
    /// Until its result is written: the series.
    pub kept: f64,
}

impl Scenario {
    /// The needs of a run of this scenario; `series`: whether the series are kept.
    pub fn memory(&self, series: bool) -> MemoryEstimate {
        let duration_s = self.duration.as_secs_f64();
        let samples = duration_s / self.sample.as_secs_f64();
        let (mut connections, mut ticks, mut messages, mut datagrams) = (0.0, 0.0, 0.0, 0.0);
        for block in &self.hosts {
            let bounded = block.kind.agent == AgentMode::Control && block.kind.policy.policy != PolicyName::None;
            for flow in &block.flows {
                let flows = (block.count * flow.count) as f64;
                connections += flows;
                if bounded {
                    ticks += flows * duration_s / TICK_S;
                }
                if let TrafficKind::Interactive { gap, .. }
                | TrafficKind::Ping { gap, .. }
                | TrafficKind::Constant { gap, .. } = flow.kind
                {
                    messages += flows * duration_s / gap.as_secs_f64();
                    if flow.kind.is_datagrams() && series {
                        datagrams += flows * duration_s / gap.as_secs_f64();
                    }
                }
            }
        }
        let hosts: usize = self.hosts.iter().map(|block| block.count).sum();
        let links = self.links();
        let queues = if links > 0 { 2 * links } else { hosts + 3 } as f64;
        let stations = if self.queues_by_station() { hosts as f64 } else { 0.0 };
        let running = samples * connections * (ROUND_TRIP_BYTES + SHARE_BYTES);
        let rows = if series { samples * (connections * FLOW_ROW_BYTES + queues * QUEUE_ROW_BYTES) } else { 0.0 };
        let rows = rows + datagrams * DATAGRAM_ROW_BYTES;
        // Once more while they are written.
        let each = ticks * BOUND_BYTES + messages * MESSAGE_BYTES + datagrams * DATAGRAM_NOTE_BYTES;
        let growing = running + rows + each;
        let constant = BASE_BYTES + connections * CONNECTION_BYTES + stations * STATION_QUEUES_BYTES;
        MemoryEstimate { running: constant + GROWTH * growing, kept: GROWTH * rows }
    }

    fn queues_by_station(&self) -> bool {
        let Topology::AccessPoint { access: AccessConfig::Wifi(wifi), .. } = &self.network().topology else {
            return false;
        };
        matches!(wifi.access_point_queue.discipline, Discipline::Mac80211(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FlowSample, Override, QueueSample};

    fn scenario(overrides: &[&str]) -> Scenario {
        let overrides: Vec<Override> =
            overrides.iter().map(|text| Override::parse(text).expect("an override")).collect();
        Scenario::from_toml("ten.toml", "[[hosts]]\ncount = 10\n", &overrides).expect("a scenario")
    }

    #[test]
    fn a_day_of_250_hosts_at_a_millisecond_needs_more_than_a_terabyte() {
        // 86.4e6 samples of 250 connections: 21.6e9, of (24 + 24) · 1.5 bytes each: 1.56e12.
        let memory = scenario(&["duration_s=86400", "sample_ms=1", "hosts.0.count=250"]).memory(false);
        assert!((1.5e12..1.6e12).contains(&memory.running), "{memory:?}");
        assert_eq!(memory.kept, 0.0);
    }

    #[test]
    fn an_ordinary_run_needs_little() {
        // 1200 samples of 10 connections, 170 bytes each, and of 13 queues, 70 each: 3.1 MB, one and a half times.
        let memory = scenario(&[]).memory(true);
        assert!(memory.running < 30e6 && (4.5e6..5e6).contains(&memory.kept), "{memory:?}");
    }

    #[test]
    fn rows_of_datagrams_count() {
        // 40 kb/s of 50 bytes for 120 s from each of 10 hosts: 120 000 datagrams.
        let rates = ["hosts.0.flows.0.rate_mbps=0.04", "hosts.0.flows.0.packet_bytes=50"];
        let of = |kind: &str| {
            let text = format!("duration_s = 120\n[[hosts]]\ncount = 10\n[[hosts.flows]]\nkind = \"{kind}\"\n");
            let overrides = rates.map(|text| Override::parse(text).expect("an override"));
            Scenario::from_toml("ten.toml", &text, &overrides).expect("a scenario").memory(true)
        };
        let (bulk, constant) = (of("bulk"), of("constant"));
        assert!((constant.kept - bulk.kept - 1.5 * 30.0 * 120e3).abs() < 1.0, "{bulk:?} {constant:?}");
        assert!((constant.running - bulk.running - 1.5 * 94.0 * 120e3).abs() < 1.0, "{bulk:?} {constant:?}");
    }

    #[test]
    fn queues_of_each_station_count() {
        let fifo = scenario(&["hosts.0.count=250"]).memory(false).running;
        let mac80211 = scenario(&["hosts.0.count=250", "access.queue=mac80211"]).memory(false).running;
        assert_eq!(mac80211 - fifo, 30e6);
    }

    #[test]
    fn a_row_takes_what_is_counted_for_it() {
        // Columns take no more than an aligned row; a queue's name is a text on the heap.
        assert!(std::mem::size_of::<FlowSample>() as f64 <= 1.2 * FLOW_ROW_BYTES);
        assert!(std::mem::size_of::<QueueSample>() as f64 + 24.0 <= 1.2 * QUEUE_ROW_BYTES);
    }
}
