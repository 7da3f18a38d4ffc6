//! The result of one run: `result.json`.

use crate::convergence::ConvergenceResult;
use crate::measure::{DeliveryResult, Distribution, StateShares};
use crate::result_file::{ResultFile, is_zero};
use crate::scenario::Scenario;
use crate::traffic::Direction;
use lasthop_network::{AirTime, Cause, Drops, LinkStatistics, Place, StationStatistics, Statistics, Way};
use lasthop_units::{Rate, Span};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The format of `result.json` and `comparison.json`; a file of another version is refused.
pub const SCHEMA_VERSION: u32 = 1;

/// A note of runs with agents on `[[links]]`.
pub const NO_PEERS_OVER_LINKS: &str = "links carry no broadcasts: the agents hear no peers";

/// What one run came to. The field names are the keys of `result.json`; every figure leaves the warm-up out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The whole scenario, defaults filled in: [`crate::Scenario::to_json`].
    pub scenario: serde_json::Value,
    /// Which habitat it ran in.
    pub hosts_kind: HostsKind,
    /// Every random draw follows from it.
    pub seed: u64,
    /// Which build of lasthop wrote this.
    #[serde(flatten)]
    pub build: Build,
    /// Length of the run, the warm-up included.
    pub duration_s: f64,
    /// Left out of every figure below.
    pub warmup_s: f64,
    /// Sum over all connections of what the receiving applications got.
    pub aggregate_goodput_mbps: f64,
    /// Connections that were [`FlowResult::always_busy`]; 0 in files that do not have it, which counted all.
    #[serde(default)]
    pub fairness_flows: u32,
    /// [`crate::measure::jain_index`] of their goodputs; `None` where none of them got anything, or there is none.
    pub jain_index: Option<f64>,
    /// [`crate::measure::starved_flows`] of their goodputs.
    pub starved_flows: u32,
    /// Smoothed RTT over the samples of all connections; `None` where none was measured.
    pub rtt_ms: Option<Distribution>,
    /// The messages of all interactive connections; `None` where the scenario has none of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<DeliveryResult>,
    /// All transfers: of `transfers` connections, and of `bulk` ones that send only so much; `None` where there are none of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfers: Option<DeliveryResult>,
    /// Share of the time in which the shared medium or link was occupied, 0..=1.
    pub utilization: f64,
    /// The shared last hop; without one, what happened on all links together.
    pub access: AccessResult,
    /// Each direction of each link of `[[links]]`; empty with a shared last hop.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkResult>,
    /// Each connection, in the order of their numbers.
    pub flows: Vec<FlowResult>,
    /// How soon shares were equal after each change of who is busy; empty where nobody came or went.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub convergence: Vec<ConvergenceResult>,
    /// What the agents did.
    pub policies: PoliciesResult,
    /// `uname -r` of the machine; kernel hosts only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_release: Option<String>,
    /// How long the run took on the wall clock.
    pub wall_s: f64,
    /// Events of the whole run that the network model processed, and with simulated hosts the timers that fired.
    pub events: u64,
    /// Seconds of the run per second of the wall clock.
    pub simulated_s_per_wall_s: f64,
    /// How late packets reached their hosts; kernel hosts only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness_us: Option<Lateness>,
    /// What this machine took by itself of its hosts' turnaround: from when a packet was due at a host to when the model had the
    /// host's answer. Kernel hosts behind an access point only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_turnaround_us: Option<Lateness>,
    /// False when something could have changed the result, such as lateness.
    pub valid: bool,
    /// Why it is not valid, in words; empty when it is.
    #[serde(default)]
    pub invalid_reasons: Vec<String>,
    /// What else a reader should know, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Which build of lasthop wrote a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Build {
    /// As `lasthop --version` says it.
    pub version: String,
    /// The commit it was built from, where that is known.
    pub commit: Option<String>,
    /// Whether the work tree had changes on top of the commit.
    pub dirty: bool,
}

/// The two habitats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HostsKind {
    /// Simulated hosts, virtual time.
    Simulated,
    /// Kernel hosts, real time.
    Kernel,
}

/// What one connection came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowResult {
    /// Its number in the series.
    pub id: u32,
    /// The host at its near end.
    pub host: u16,
    /// Who sent.
    pub direction: Direction,
    /// What the application sent, as the scenario spells it: [`crate::TrafficKind::as_str`]; empty in files that do not have it.
    #[serde(default)]
    pub kind: String,
    /// Its congestion control, as the scenario spells it.
    pub congestion_control: String,
    /// The policy of the host at its near end.
    pub policy: String,
    /// Whether its application had something to send for at least 95 % of the time measured: a bulk or saturated one that began in the
    /// warm-up, neither stopped before the end nor had all of a transfer read by then. Jain's index and starved connections
    /// are of these alone.
    #[serde(default = "always")]
    pub always_busy: bool,
    /// What the receiving application got, TCP headers excluded.
    pub goodput_mbps: f64,
    /// Smoothed RTT over those of its samples before which something new was acknowledged: a stalled connection measures
    /// nothing. `None` where none was measured.
    pub rtt_ms: Option<Distribution>,
    /// Mean congestion window over its samples, in segments; `None` without any.
    pub cwnd_mean: Option<f64>,
    /// Share of its samples in each congestion-avoidance state; 0 of each where there is none, as it never opened.
    #[serde(default)]
    pub state_shares: StateShares,
    /// Segments sent again.
    pub retransmits: u64,
    /// Retransmission timeouts; `None` where the kernel does not count them (before Linux 6.7).
    pub timeouts: Option<u64>,
    /// Share of the time in which an upper limit was in force, 0..=1.
    pub controlled_share: f64,
    /// When it opened.
    pub started_s: f64,
    /// What the law `lastlink` at its sender made of the client's reports; `None` where it has heard none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_link: Option<LastLinkResult>,
    /// Messages or transfers that were read to their end after the warm-up; 0 where the application writes without end.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub messages: u64,
    /// Messages or transfers that were never read to their end.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub undelivered: u64,
    /// From writing a message or transfer to reading its last byte, of an undelivered one to the end of the run
    /// ([`DeliveryResult`]); `None` without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_ms: Option<Distribution>,
}

/// What a server's law made of what a client said of its own link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastLinkResult {
    /// Losses that did not reduce the window.
    pub ignored_losses: u64,
    /// Losses that did.
    pub heeded_losses: u64,
    /// What the window began with, of its last connection; `None`: with what the stack has.
    pub initial_segments: Option<u32>,
}

/// What happened at the shared last hop.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AccessResult {
    /// Packets that found the access point's downlink queue full.
    pub downlink_drops: u64,
    /// Mean length of that queue over time, in packets.
    pub downlink_queue_mean: f64,
    /// For 95 % of the time it was not longer, in packets.
    pub downlink_queue_p95: f64,
    /// Its greatest length, in packets.
    pub downlink_queue_max: u64,
    /// Packets that found their host's transmit queue full.
    pub uplink_drops: u64,
    /// Frames that a station or the access point gave up after the last retry.
    pub retry_drops: u64,
    /// Packets lost on the path to and from the servers, or on links: queues were full, or at random.
    pub path_drops: u64,
    /// Times that two or more stations sent at once.
    pub collisions: u64,
    /// Transmissions beyond a frame's first.
    pub retries: u64,
    /// Frames to all stations that a receiver did not get, once for each such receiver.
    pub broadcast_losses: u64,
    /// Where the time of the medium went, in shares of 0..=1 by outcome; empty on a wired link.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub air_shares: BTreeMap<String, f64>,
    /// The share of the medium's time, in 0..=1, in which packets to all stations were on the air, such as the agents'
    /// beacons: each transmission of theirs, to the access point and from there, with its acknowledgement.
    #[serde(default)]
    pub to_all_share: f64,
    /// Each station of a Wi-Fi access; empty on a wired link.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stations: Vec<StationResult>,
}

/// What one direction of a link carried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkResult {
    /// [`crate::place_name`] of its queue.
    pub place: String,
    /// The node where it begins.
    pub from: String,
    /// The node where it ends.
    pub to: String,
    /// What it sent, IP headers included, the packets lost after the queue too.
    pub sent_mbps: f64,
    /// The packets of that.
    pub packets: u64,
    /// Share of the time in which its transmitter was busy, 0..=1.
    pub utilization: f64,
    /// Mean length of its queue over time, in packets.
    pub queue_mean: f64,
    /// For 95 % of the time the queue was not longer, in packets.
    pub queue_p95: f64,
    /// The queue's greatest length, in packets.
    pub queue_max: u64,
    /// Packets that the queue refused or dropped.
    pub queue_drops: u64,
    /// Packets lost at random.
    pub losses: u64,
}

/// What one station and the access point sent each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StationResult {
    /// The host.
    pub host: u16,
    /// Mean PHY rate of its data frames; 0 if it sent none.
    pub up_phy_rate_mbps: f64,
    /// Mean PHY rate of the data frames to it; 0 if there were none.
    pub down_phy_rate_mbps: f64,
    /// Its transmissions beyond a frame's first.
    pub up_retries: u64,
    /// The access point's transmissions to it beyond a frame's first.
    pub down_retries: u64,
}

/// What the agents of all hosts did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PoliciesResult {
    /// Beacons sent by all.
    pub beacons_sent: u64,
    /// Beacons that were heard and believed, by all.
    pub beacons_heard: u64,
    /// Beacons that were heard and not believed, by all.
    pub beacons_rejected: u64,
    /// When the first connection came under control; `None`: none did.
    pub control_enabled_at_s: Option<f64>,
    /// Times that the limits of a connection changed.
    pub bounds_changed: u64,
    /// Each host with an agent.
    pub hosts: Vec<HostPolicyResult>,
}

/// What the agent of one host did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostPolicyResult {
    /// The host.
    pub host: u16,
    /// What its agent decided by.
    pub policy: String,
    /// Beacons it sent.
    pub beacons_sent: u64,
    /// Beacons it heard and believed.
    pub beacons_heard: u64,
    /// Beacons it heard and did not believe.
    pub beacons_rejected: u64,
    /// The most terminals it counted, itself included.
    pub terminals_max: u32,
    /// When its first connection came under control.
    pub control_enabled_at_s: Option<f64>,
    /// Times that the limits of a connection changed.
    pub bounds_changed: u64,
}

/// How late packets reached the kernel hosts, or how long these took to answer, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lateness {
    /// The median.
    pub p50: f64,
    /// 99 % were not later.
    pub p99: f64,
    /// The greatest, or how late the loop woke at worst if that is more.
    pub max: f64,
}

impl ResultFile for RunResult {}

impl RunResult {
    /// What the scenario shows, in one line.
    pub fn name(&self) -> &str {
        self.scenario["name"].as_str().unwrap_or("unnamed")
    }

    /// Sets the figures that follow from the connections: aggregate, and of those that were always busy Jain's index and how
    /// many starved; and from the RTT samples of all connections their distribution.
    pub fn summarise(&mut self, rtt_samples_ms: &[f64]) {
        self.aggregate_goodput_mbps = self.flows.iter().map(|flow| flow.goodput_mbps).sum();
        let busy = self.flows.iter().filter(|flow| flow.always_busy);
        let goodputs: Vec<f64> = busy.map(|flow| flow.goodput_mbps).collect();
        self.fairness_flows = u32::try_from(goodputs.len()).unwrap_or(u32::MAX);
        self.jain_index = crate::measure::jain_index(&goodputs);
        self.starved_flows = crate::measure::starved_flows(&goodputs);
        self.rtt_ms = Distribution::of(rtt_samples_ms);
    }

    /// Sets the fields that follow from how long the run took on the wall clock.
    pub fn took(&mut self, wall: std::time::Duration) {
        self.wall_s = wall.as_secs_f64();
        self.simulated_s_per_wall_s = if self.wall_s > 0.0 { self.duration_s / self.wall_s } else { 0.0 };
    }

    /// Mean over the connections of the share of time under an upper limit, 0..=1; 0 without connections.
    pub fn controlled_share(&self) -> f64 {
        let shares: Vec<f64> = self.flows.iter().map(|flow| flow.controlled_share).collect();
        crate::measure::mean(&shares).unwrap_or(0.0)
    }
}

impl PoliciesResult {
    /// The sum of what the agents did.
    pub fn of(hosts: Vec<HostPolicyResult>) -> Self {
        Self {
            beacons_sent: hosts.iter().map(|host| host.beacons_sent).sum(),
            beacons_heard: hosts.iter().map(|host| host.beacons_heard).sum(),
            beacons_rejected: hosts.iter().map(|host| host.beacons_rejected).sum(),
            control_enabled_at_s: hosts.iter().filter_map(|host| host.control_enabled_at_s).min_by(f64::total_cmp),
            bounds_changed: hosts.iter().map(|host| host.bounds_changed).sum(),
            hosts,
        }
    }
}

impl AccessResult {
    /// From what the network counted after the warm-up. Where there is no access point its figures are 0.
    pub fn of(statistics: &Statistics) -> Self {
        let dropped = |chosen: &dyn Fn(&Drops) -> bool| {
            statistics.drops.iter().filter(|drops| chosen(drops)).map(|drops| drops.count).sum()
        };
        let queue = statistics.queues.iter().find(|queue| queue.place == Place::AccessPoint);
        let station = |station: &StationStatistics| StationResult {
            host: station.node.0,
            up_phy_rate_mbps: station.up.mean_phy_rate.as_mbps(),
            down_phy_rate_mbps: station.down.mean_phy_rate.as_mbps(),
            up_retries: station.up.retries,
            down_retries: station.down.retries,
        };
        Self {
            downlink_drops: dropped(&|drops| {
                matches!((drops.place, drops.cause), (Place::AccessPoint, Cause::QueueFull | Cause::CoDel))
            }),
            downlink_queue_mean: queue.map_or(0.0, |queue| queue.mean_packets),
            downlink_queue_p95: queue.map_or(0.0, |queue| queue.p95_packets as f64),
            downlink_queue_max: queue.map_or(0, |queue| queue.max_packets as u64),
            uplink_drops: dropped(&|drops| matches!((drops.place, drops.cause), (Place::Host(_), Cause::QueueFull))),
            retry_drops: dropped(&|drops| drops.cause == Cause::RetryLimit),
            path_drops: dropped(&|drops| matches!(drops.place, Place::PathUp | Place::PathDown | Place::Link { .. })),
            collisions: statistics.collisions,
            retries: statistics.retries,
            broadcast_losses: dropped(&|drops| matches!(drops.cause, Cause::FrameError | Cause::Collision)),
            air_shares: air_shares(&statistics.air),
            to_all_share: match statistics.air.total() {
                Span::ZERO => 0.0,
                total => statistics.to_all.as_secs_f64() / total.as_secs_f64(),
            },
            stations: statistics.stations.iter().map(station).collect(),
        }
    }
}

impl LinkResult {
    /// Each direction of the scenario's links, from what the network counted after the warm-up; nothing with a shared last
    /// hop.
    ///
    /// # Panics
    /// If the statistics are of another network.
    pub fn all(scenario: &Scenario, statistics: &Statistics) -> Vec<Self> {
        let lasthop_network::Topology::Links(config) = &scenario.network().topology else { return Vec::new() };
        let dropped = |place: Place, chosen: fn(Cause) -> bool| {
            let drops = statistics.drops.iter().filter(|drops| drops.place == place && chosen(drops.cause));
            drops.map(|drops| drops.count).sum()
        };
        let directions = statistics.links.iter().filter_map(|counted| match counted.place {
            Place::Link { link, way } => Some((counted, config.links[usize::from(link)].ends, way)),
            _ => None,
        });
        let result = |(counted, (one, other), way): (&LinkStatistics, (usize, usize), Way)| {
            let (from, to) = if way == Way::Forth { (one, other) } else { (other, one) };
            let queue = statistics.queue(counted.place);
            Self {
                place: crate::place_name(counted.place),
                from: scenario.node_names()[from].clone(),
                to: scenario.node_names()[to].clone(),
                sent_mbps: Rate::over(counted.data, statistics.elapsed).as_mbps(),
                packets: counted.packets,
                utilization: counted.utilization,
                queue_mean: queue.mean_packets,
                queue_p95: queue.p95_packets as f64,
                queue_max: queue.max_packets as u64,
                queue_drops: dropped(counted.place, |cause| matches!(cause, Cause::QueueFull | Cause::CoDel)),
                losses: dropped(counted.place, |cause| cause == Cause::RandomLoss),
            }
        };
        directions.map(result).collect()
    }
}

const fn always() -> bool {
    true
}

fn air_shares(air: &AirTime) -> BTreeMap<String, f64> {
    let total = air.total().as_secs_f64();
    if total == 0.0 {
        return BTreeMap::new();
    }
    let parts = [
        ("idle", air.idle),
        ("contention", air.contention),
        ("success", air.success),
        ("broadcast", air.broadcast),
        ("collision", air.collision),
        ("error", air.error),
    ];
    parts.iter().map(|(name, span)| ((*name).to_owned(), span.as_secs_f64() / total)).collect()
}
