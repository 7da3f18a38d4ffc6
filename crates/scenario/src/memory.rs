//! The memory that a run needs for data kept until its end.
//!
//! Per sample (`duration_s` / `sample_ms`) and connection:
//! - the round trip, which counts after the warm-up and is copied for the quantiles of the connection and of all;
//! - the receiver's bytes, for the convergence;
//! - with series, a row of [`FlowSeries`](crate::FlowSeries).
//!
//! Per sample and queue, with series: a row of [`QueueSeries`](crate::QueueSeries). Per datagram: its delay and the
//! difference to the one before, with series a row of [`DatagramSeries`](crate::DatagramSeries). Per tick of an agent (0.5 s) and
//! connection: the limits in force. Per message: its delay. Columns grow by doubling, so their contents count one and a
//! half times, the mean of their possible sizes.
//!
//! Packets on their way: what the rates and delays of links, wired access and path hold, but no more than the connections
//! send in the run; TCP has at most its receive buffer on the way.
//!
//! *What it leaves out*: other data that do not grow with the length of the run, except a constant per connection. Also
//! pages, figures and Parquet's needs while files are written, beyond one copy of the series.

use crate::keys::AgentMode;
use crate::scenario::Scenario;
use lasthop_network::{AccessConfig, Discipline, Topology};
use lasthop_policy::PolicyName;
use lasthop_traffic::Kind as _;
use lasthop_units::{Rate, Span, Time};

/// Constants of a process and of each connection, without samples. Measured with 200 stations
/// (docs/guide/simulator.md); includes much of the queues' contents.
const BASE_BYTES: f64 = 16e6;
const CONNECTION_BYTES: f64 = 50e3;
/// A transfer of an open loop, before and after it goes on.
const TRANSFER_BYTES: f64 = 3e3;
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
/// The same of [`crate::DatagramSeries`].
const DATAGRAM_ROW_BYTES: f64 = 30.0;
/// `measure::Bounds`, an interval.
const BOUND_BYTES: f64 = 48.0;
/// Written and unread: its end and its time. Then its delay, and a copy with those of all.
const MESSAGE_BYTES: f64 = 4.0 * 8.0;
/// A datagram's delay, and the difference to the one before.
const DATAGRAM_BYTES: f64 = 2.0 * 8.0;
/// A packet on its way, of whatever size; measured with 17 million.
const PACKET_BYTES: f64 = 140.0;
/// Data in a full packet.
const FULL_BYTES: f64 = 1500.0;
/// A change of the network, in the scenario and in the run.
const CHANGE_BYTES: f64 = 2.0 * 96.0;
/// An instant of opportunities.
const INSTANT_BYTES: f64 = 8.0;
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
        let (mut connections, mut transfers, mut ticks, mut messages, mut datagrams) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for block in &self.hosts {
            let bounded = block.kind.agent == AgentMode::Control && block.kind.policy.policy != PolicyName::None;
            for flow in &block.flows {
                let flows = (block.count * flow.count) as f64;
                connections += flows;
                let until = Time::ZERO + self.duration;
                transfers += flows * flow.kind.expected_arrivals(Time::ZERO, until).unwrap_or(0.0);
                if bounded {
                    ticks += flows * duration_s / TICK_S;
                }
                let Some(gap) = flow.kind.gap() else { continue };
                let each = flows * duration_s / gap.as_secs_f64();
                if flow.kind.name().is_datagrams() { datagrams += each } else { messages += each }
            }
        }
        let hosts: usize = self.hosts.iter().map(|block| block.count).sum();
        let links = self.links();
        let queues = if links > 0 { 2 * links } else { hosts + 3 } as f64;
        let stations = if self.queues_by_station() { hosts as f64 } else { 0.0 };
        let running = samples * connections * (ROUND_TRIP_BYTES + SHARE_BYTES);
        let rows = samples * (connections * FLOW_ROW_BYTES + queues * QUEUE_ROW_BYTES) + datagrams * DATAGRAM_ROW_BYTES;
        let rows = if series { rows } else { 0.0 };
        // Once more while they are written.
        let growing = running + rows + ticks * BOUND_BYTES + messages * MESSAGE_BYTES + datagrams * DATAGRAM_BYTES;
        let network = self.network();
        let instants: usize = network.opportunities.iter().map(|trace| trace.instants().len()).sum();
        let recorded = network.changes.len() as f64 * CHANGE_BYTES + instants as f64 * INSTANT_BYTES;
        let constant = BASE_BYTES
            + connections * CONNECTION_BYTES
            + transfers * TRANSFER_BYTES
            + stations * STATION_QUEUES_BYTES
            + recorded;
        let running = constant + GROWTH * growing + self.packets_on_their_way() * PACKET_BYTES;
        MemoryEstimate { running, kept: GROWTH * rows }
    }

    /// At most.
    fn packets_on_their_way(&self) -> f64 {
        let duration = self.duration;
        // No more than is sent within the run.
        let held = |rate: Rate, delay: Span| rate.as_bps() as f64 / 8.0 * delay.min(duration).as_secs_f64();
        let (held_bytes, widest) = match &self.network().topology {
            Topology::AccessPoint { access, path } => match access {
                AccessConfig::Wired(wired) => {
                    (2.0 * held(wired.rate, wired.delay) + held(path.rate, path.rtt), wired.rate)
                }
                AccessConfig::Wifi(_) => (held(path.rate, path.rtt), path.rate),
            },
            Topology::Links(links) => {
                let ways = links.links.iter().flat_map(|link| [&link.forth, &link.back]);
                let held_bytes = ways.clone().map(|way| held(way.rate, way.delay)).sum();
                (held_bytes, ways.map(|way| way.rate).max().unwrap_or(Rate::ZERO))
            }
        };
        let (mut sent_bytes, mut least_bytes) = (0.0, FULL_BYTES);
        for block in &self.hosts {
            for flow in &block.flows {
                let (packet, gap) = (flow.kind.packet().map(|packet| packet.get() as f64), flow.kind.gap());
                let (each, packet) = match (packet, gap) {
                    (Some(packet), Some(gap)) => (packet * duration.as_secs_f64() / gap.as_secs_f64(), packet),
                    (Some(packet), None) => (held(widest, duration), packet),
                    (None, _) => (block.kind.tcp.receive_buffer.get() as f64, FULL_BYTES),
                };
                sent_bytes += each * (block.count * flow.count) as f64;
                least_bytes = least_bytes.min(packet);
            }
        }
        held_bytes.min(sent_bytes) / least_bytes
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
    fn datagrams_count_with_their_rows() {
        // 10 hosts, 60 s, 10,000 datagrams of 100 bytes in a second: 6e6, of 16 bytes and 30 for the row, one and a half
        // times.
        let fast = ["hosts.0.flows.0.kind=constant", "hosts.0.flows.0.packet_bytes=100", "hosts.0.flows.0.rate_mbps=8"];
        let (idle, busy) = (scenario(&["hosts.0.flows.0.kind=constant"]), scenario(&fast));
        let more = |series: bool| busy.memory(series).running - idle.memory(series).running;
        assert!((1.4e8..1.5e8).contains(&more(false)) && (4.0e8..4.2e8).contains(&more(true)), "{}", more(true));
    }

    /// The reviewers' cases memory-in-flight, of which 2.2 GB were measured after two of its four seconds, and
    /// memory-messages, of which 0.85 GB were.
    #[test]
    fn packets_on_their_way_and_messages_count() {
        let of = |text: &str| Scenario::from_toml("a.toml", text, &[]).expect("a scenario").memory(false).running;
        let wire = "duration_s = 4\nwarmup_s = 1\n[access]\nkind = \"wired\"\nrate_mbps = 100000\ndelay_ms = 30000\n";
        // 100 Gb/s for 4 s are 33e6 packets of 1500 bytes, 4.7 GB.
        let saturated = of(&format!("{wire}[[hosts]]\n[[hosts.flows]]\nkind = \"saturated\"\n"));
        assert!((4e9..6e9).contains(&saturated), "{saturated}");
        // TCP has 3 MiB on the way, 2097 packets.
        let bulk = of(&format!("{wire}[[hosts]]\n"));
        assert!(bulk < 20e6, "{bulk}");
        let messages =
            "duration_s = 20\nwarmup_s = 1\n[[hosts]]\n[[hosts.flows]]\nkind = \"interactive\"\ngap_ms = 0.001\n";
        assert!((0.6e9..1.2e9).contains(&of(messages)), "{}", of(messages));
    }

    #[test]
    fn queues_of_each_station_count() {
        let fifo = scenario(&["hosts.0.count=250"]).memory(false).running;
        let mac80211 = scenario(&["hosts.0.count=250", "access.queue=mac80211"]).memory(false).running;
        assert!((mac80211 - fifo - 30e6).abs() < 1.0, "{mac80211} and {fifo}");
    }

    #[test]
    fn a_row_takes_what_is_counted_for_it() {
        // Columns take no more than an aligned row; a queue's name is a text on the heap.
        assert!(std::mem::size_of::<FlowSample>() as f64 <= 1.2 * FLOW_ROW_BYTES);
        assert!(std::mem::size_of::<QueueSample>() as f64 + 24.0 <= 1.2 * QUEUE_ROW_BYTES);
    }
}
