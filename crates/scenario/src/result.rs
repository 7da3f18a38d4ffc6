//! The result of one run: `result.json`.

use crate::keys::Direction;
use crate::result_file::{ResultFile, is_zero};
use lasthop_traffic::{KindName, Pieces, Transport, VideoResult};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The format of `result.json` and `comparison.json`; a file of another version is refused.
pub const SCHEMA_VERSION: u32 = 1;

/// A note of runs with agents on `[[links]]`.
pub const NO_PEERS_OVER_LINKS: &str = "links carry no broadcasts: the agents hear no peers";

/// The result of one run. The field names are the keys of `result.json`; every figure excludes the warm-up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The whole scenario, defaults filled in: [`crate::Scenario::to_json`].
    pub scenario: serde_json::Value,
    /// The habitat of the run.
    pub hosts_kind: HostsKind,
    /// The seed of every random draw.
    pub seed: u64,
    /// The build of lasthop that wrote this.
    #[serde(flatten)]
    pub build: Build,
    /// Length of the run, the warm-up included.
    pub duration_s: f64,
    /// Excluded from every figure below.
    pub warmup_s: f64,
    /// Goodput, summed over all connections.
    pub aggregate_goodput_mbps: f64,
    /// Connections that were [`FlowResult::always_busy`]; 0 in files without it, which counted all.
    #[serde(default)]
    pub fairness_flows: u32,
    /// Jain's index of their goodputs; `None` if all goodputs are 0, or there are no connections.
    pub jain_index: Option<f64>,
    /// [`crate::measure::starved_flows`] of their goodputs.
    pub starved_flows: u32,
    /// Smoothed RTT over the samples of all connections, each `sample_ms`; `None` if none was measured.
    pub rtt_ms: Option<Distribution>,
    /// RTT over the ACKs of all TCP connections that gave a sample, not smoothed; `None` if it was not measured, as on
    /// kernel hosts and with QUIC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_per_ack_ms: Option<Distribution>,
    /// The messages of all interactive connections; `None` if the scenario has none of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<DeliveryResult>,
    /// All transfers: of `transfers` connections, and of `bulk` ones with a limited size; `None` without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfers: Option<DeliveryResult>,
    /// Their slowdowns by size; empty without any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slowdowns: Vec<SlowdownResult>,
    /// The round trips of all `ping` flows; `None` without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pings: Option<DatagramResult>,
    /// The datagrams of all `constant` flows; `None` without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datagrams: Option<DatagramResult>,
    /// All `video` flows; `None` without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub videos: Option<VideoResult>,
    /// Share of the time in which the shared medium or link was occupied, 0..=1.
    pub utilization: f64,
    /// The shared last hop; without one, the totals of all links.
    pub access: AccessResult,
    /// Each access point of several, or where not all hear all; else empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cells: Vec<CellResult>,
    /// Who hears whom there: the hosts, then the access points.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeResult>,
    /// Each time that a host goes to another access point; empty without any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roams: Vec<RoamResult>,
    /// Each direction of each link of `[[links]]`; empty with a shared last hop.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkResult>,
    /// Each connection, in the order of their numbers.
    pub flows: Vec<FlowResult>,
    /// How soon shares were equal after each change of the busy hosts; empty without such changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub convergence: Vec<ConvergenceResult>,
    /// The agents' totals.
    pub policies: PoliciesResult,
    /// The kernel that ran it.
    #[serde(flatten)]
    pub used: UsedKernel,
    /// Wall-clock time of the run.
    pub wall_s: f64,
    /// Events of the network model in the whole run; with simulated hosts, also the timers.
    pub events: u64,
    /// Seconds of the run per second of the wall clock.
    pub simulated_s_per_wall_s: f64,
    /// Lateness of packets at their hosts; kernel hosts only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness_us: Option<Lateness>,
    /// This machine's own part of its hosts' turnaround: from a packet's due time at a host until the model had the
    /// host's answer. Kernel hosts behind an access point only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_turnaround_us: Option<Lateness>,
    /// False when something could have changed the result, such as lateness.
    pub valid: bool,
    /// Why it is not valid, in words; empty if it is.
    #[serde(default)]
    pub invalid_reasons: Vec<String>,
    /// The kinds of these reasons; omitted if there is none.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub invalid_kinds: BTreeSet<InvalidKind>,
    /// Further remarks, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The build of lasthop that wrote a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Build {
    /// As printed by `lasthop --version`.
    pub version: String,
    /// Its commit, if known.
    pub commit: Option<String>,
    /// Whether the work tree had changes on top of the commit.
    pub dirty: bool,
}

/// The kernel under kernel hosts; nothing with simulated hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsedKernel {
    /// `uname -r` of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_release: Option<String>,
    /// Its clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<Clock>,
    /// The name of the kernel in an emulated machine; clock `virtual` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// The beginning of a digest of that kernel's image and modules; clock `virtual` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_digest: Option<String>,
    /// What emulated that machine, and its version; clock `virtual` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulator: Option<String>,
    /// Whose Wi-Fi carried the last hop, if not the model's alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wifi: Option<Wifi>,
    /// Whose the access point's downlink queue was, if not the model's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
}

/// Whose the access point's downlink queue was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Queue {
    /// Linux's own queueing discipline.
    Linux,
}

/// Whose Wi-Fi carried the last hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Wifi {
    /// Linux's own: its queues, its rate control, its driver of simulated radios. The medium between these is the model's.
    Mac80211,
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

/// The clock of kernel hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Clock {
    /// This machine's.
    Real,
    /// That of an emulated machine, which counts instructions.
    Virtual,
}

/// The result of one connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowResult {
    /// Its number in the series.
    pub id: u32,
    /// The host at its near end.
    pub host: u16,
    /// The sending side.
    pub direction: Direction,
    /// The application's traffic, in the scenario's spelling; empty in files without it.
    #[serde(default)]
    pub kind: String,
    /// Its congestion control, in the scenario's spelling; `None`: it is UDP, and has none.
    pub congestion_control: Option<String>,
    /// The policy of the host at its near end.
    pub policy: String,
    /// Whether its application had data to send for at least 95 % of the time measured. That is a bulk or saturated one
    /// that began in the warm-up, and neither stopped nor finished a transfer before the end. Jain's index and starved
    /// connections cover only these.
    #[serde(default = "always")]
    pub always_busy: bool,
    /// Goodput, TCP headers excluded.
    pub goodput_mbps: f64,
    /// Smoothed RTT over samples with new acknowledgements since the previous one: a stalled connection measures
    /// nothing. `None` if none was measured.
    pub rtt_ms: Option<Distribution>,
    /// RTT over its ACKs that gave a sample, not smoothed; `None` as in [`RunResult::rtt_per_ack_ms`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_per_ack_ms: Option<Distribution>,
    /// Mean congestion window over its samples, in segments; `None` without any.
    pub cwnd_mean: Option<f64>,
    /// Share of its samples in each congestion-avoidance state; `None` if it never opened, or has no such states: with
    /// QUIC and UDP.
    #[serde(default)]
    pub state_shares: Option<StateShares>,
    /// Retransmitted segments; with QUIC packets that were declared lost, probes of the path's MTU excluded.
    pub retransmits: u64,
    /// Retransmission timeouts; `None` if the kernel does not count them (before Linux 6.7), and with QUIC.
    pub timeouts: Option<u64>,
    /// Segments delivered by ACKs that echo a mark of ECN: Linux's `tcpi_delivered_ce`.
    #[serde(default)]
    pub delivered_ce: u64,
    /// Share of the time in which an upper limit was in force, 0..=1.
    pub controlled_share: f64,
    /// Time of opening.
    pub started_s: f64,
    /// The state of the law `lastlink` at its sender; `None`: no report received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_link: Option<LastLinkResult>,
    /// Messages or transfers completely read after the warm-up; 0 if the application writes without end.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub messages: u64,
    /// Messages or transfers never completely read.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub undelivered: u64,
    /// From writing a message or transfer to reading its last byte. An undelivered one counts until the end of the run
    /// ([`DeliveryResult`]); `None` without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_ms: Option<Distribution>,
    /// The datagrams of a `ping` or `constant` flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datagrams: Option<DatagramResult>,
    /// What the viewer of a `video` flow saw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub video: Option<VideoResult>,
}

/// The outcome of the datagrams of one flow or of several. The field names are keys of `result.json`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DatagramResult {
    /// Sent after the warm-up, those that the sender's own queue refused included.
    pub sent: u64,
    /// Of these, how many came; of pings, how many answers.
    pub received: u64,
    /// Of these, how many were lost. The rest was under way at the end of the run.
    pub lost: u64,
    /// `lost` of `lost + received`, 0..=1; `None` if there are none.
    pub lost_share: Option<f64>,
    /// `constant`: from sending one to receiving it; `None` without any.
    pub one_way_ms: Option<Distribution>,
    /// `ping`: from sending one to receiving its answer; `None` without any.
    pub round_trip_ms: Option<Distribution>,
    /// The mean difference between this time of one and that of the one received before; `None` with fewer than two.
    pub jitter_ms: Option<f64>,
}

/// A server law's use of a client's reports of its own link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastLinkResult {
    /// Losses that did not reduce the window.
    pub ignored_losses: u64,
    /// Losses that did.
    pub heeded_losses: u64,
    /// The initial window of its last connection; `None`: the stack's.
    pub initial_segments: Option<u32>,
}

/// Totals of the shared last hop.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AccessResult {
    /// Packets that found the access point's downlink queue full.
    pub downlink_drops: u64,
    /// Packets that this queue marked with CE (ECN).
    #[serde(default)]
    pub downlink_marks: u64,
    /// Mean length of that queue over time, in packets; `None` where there is none, as on links, or several.
    pub downlink_queue_mean: Option<f64>,
    /// The 95 % quantile of its length over time, in packets; `None` as above.
    pub downlink_queue_p95: Option<f64>,
    /// Its greatest length, in packets; `None` as above.
    pub downlink_queue_max: Option<u64>,
    /// Packets that found their host's transmit queue full.
    pub uplink_drops: u64,
    /// Frames given up after the last retry, or received after their receiver had stopped waiting.
    pub retry_drops: u64,
    /// Packets lost on the path to and from the servers, or on links, to full queues or at random.
    pub path_drops: u64,
    /// Collisions.
    pub collisions: u64,
    /// Transmissions beyond a frame's first.
    pub retries: u64,
    /// Broadcast frames that a receiver missed, counted once per receiver; `None` where only the model would know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broadcast_losses: Option<u64>,
    /// Packets lost because their station had roamed; 0 if none does.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_behind: u64,
    /// Shares of the medium's time by outcome, 0..=1; empty on a wired link.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub air_shares: BTreeMap<String, f64>,
    /// Share of the medium's time with broadcast packets on the air, such as the agents' beacons, 0..=1. It covers each
    /// transmission, to the access point and from there, with its acknowledgement.
    /// `None` where only the model would know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_all_share: Option<f64>,
    /// Each station of a Wi-Fi access; empty on a wired link.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stations: Vec<StationResult>,
}

/// An access point with its stations. The field names are keys of `result.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellResult {
    /// Its name.
    pub name: String,
    /// Goodput, summed over the connections of its hosts.
    pub goodput_mbps: f64,
    /// Packets that its access point's queue refused or dropped.
    pub downlink_drops: u64,
    /// Packets lost there because their station had roamed; 0 if none does.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_behind: u64,
    /// Mean length of that queue over time, in packets.
    pub downlink_queue_mean: f64,
    /// The 95 % quantile of its length over time, in packets.
    pub downlink_queue_p95: f64,
    /// Collisions at receivers of this cell, with whomever.
    pub collisions: u64,
    /// Shares of the time by this cell's use of the medium, 0..=1.
    pub air_shares: BTreeMap<String, f64>,
    /// Share of the time in which the access point senses other cells, 0..=1.
    pub neighbours_share: f64,
}

/// A host goes to another access point. The field names are keys of `result.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoamResult {
    /// The host.
    pub host: u16,
    /// When it leaves, in seconds from the start of the run.
    pub at_s: f64,
    /// How long it has no access point.
    pub outage_ms: f64,
    /// The place of the old access point in `cells`.
    pub from: u16,
    /// That of the new one.
    pub to: u16,
    /// Where the host is from then on, in metres, if the scenario says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_m: Option<(f64, f64)>,
    /// From leaving to the first sample before which, since the association, its connections have delivered data again. `None`:
    /// they do not in this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent_ms: Option<f64>,
}

/// A host or an access point, with what it has of others. The field names are keys of `result.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeResult {
    /// Its name.
    pub name: String,
    /// The place of its cell in `cells`.
    pub cell: u16,
    /// Where it is, in metres, if the scenario says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_m: Option<(f64, f64)>,
    /// The nodes whose frames it receives, by their places in `nodes`.
    pub hears: Vec<u16>,
    /// Those that it only senses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub senses: Vec<u16>,
    /// Those that only disturb what it receives.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disturbed_by: Vec<u16>,
}

/// Traffic of one direction of a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkResult {
    /// [`crate::place_name`] of its queue.
    pub place: String,
    /// The node where it begins.
    pub from: String,
    /// The node where it ends.
    pub to: String,
    /// Rate sent, including IP headers, and including packets lost after the queue.
    pub sent_mbps: f64,
    /// Packets sent, including those lost after the queue.
    pub packets: u64,
    /// Share of the time in which its transmitter was busy, 0..=1.
    pub utilization: f64,
    /// Mean length of its queue over time, in packets.
    pub queue_mean: f64,
    /// The 95 % quantile of its length over time, in packets.
    pub queue_p95: f64,
    /// The queue's greatest length, in packets.
    pub queue_max: u64,
    /// Packets that the queue refused or dropped.
    pub queue_drops: u64,
    /// Packets that the queue marked with CE (ECN).
    #[serde(default)]
    pub queue_marks: u64,
    /// Packets lost at random.
    pub losses: u64,
}

/// Traffic between one station and the access point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StationResult {
    /// The host.
    pub host: u16,
    /// Mean PHY rate of its data frames; `None` if it sent none.
    pub up_phy_rate_mbps: Option<f64>,
    /// Mean PHY rate of the data frames to it; `None` if there were none.
    pub down_phy_rate_mbps: Option<f64>,
    /// Its retransmitted frames, counted each time.
    pub up_retries: u64,
    /// The access point's frames retransmitted to it, counted each time.
    pub down_retries: u64,
    /// 802.11n and later: mean packets per transmission; `None` if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_aggregate_frames: Option<f64>,
    /// The same of the access point's transmissions to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down_aggregate_frames: Option<f64>,
    /// 802.11n and later: the share of the time in which its data was on the air, 0..=1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_air_share: Option<f64>,
    /// The same of data to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down_air_share: Option<f64>,
}

/// Totals of the agents of all hosts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PoliciesResult {
    /// Beacons sent by all.
    pub beacons_sent: u64,
    /// Beacons received and accepted, by all.
    pub beacons_heard: u64,
    /// Beacons received and rejected, by all.
    pub beacons_rejected: u64,
    /// When the first connection came under control; `None`: none did.
    pub control_enabled_at_s: Option<f64>,
    /// Times that the limits of a connection changed.
    pub bounds_changed: u64,
    /// Each host with an agent.
    pub hosts: Vec<HostPolicyResult>,
}

/// Totals of one host's agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostPolicyResult {
    /// The host.
    pub host: u16,
    /// Its policy.
    pub policy: String,
    /// Beacons it sent.
    pub beacons_sent: u64,
    /// Beacons received and accepted.
    pub beacons_heard: u64,
    /// Beacons received and rejected.
    pub beacons_rejected: u64,
    /// The most terminals it counted, itself included.
    pub terminals_max: u32,
    /// When its first connection came under control.
    pub control_enabled_at_s: Option<f64>,
    /// Times that the limits of a connection changed.
    pub bounds_changed: u64,
}

/// The distribution of a measured quantity, in the unit of its field.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// The least.
    pub min: f64,
    /// The arithmetic mean.
    pub mean: f64,
    /// The median.
    pub p50: f64,
    /// The 95 % quantile.
    pub p95: f64,
    /// The 99 % quantile.
    pub p99: f64,
    /// The greatest.
    pub max: f64,
}

/// The share of a connection's time in each congestion-avoidance state. They add up to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StateShares {
    /// Nothing is amiss.
    pub open: f64,
    /// Something arrived out of order, or was lost.
    pub disorder: f64,
    /// The window is being reduced for another reason than loss.
    pub cwr: f64,
    /// Fast recovery.
    pub recovery: f64,
    /// Recovery from a timeout.
    pub loss: f64,
}

/// The outcome of the messages, or of the transfers, of one connection or of several. The field names are keys of
/// `result.json`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeliveryResult {
    /// Completely read after the warm-up.
    pub delivered: u64,
    /// Never completely read.
    pub undelivered: u64,
    /// From writing one to reading its last byte, in ms; an undelivered one counts until the end of the run. `None`
    /// without any.
    pub took_ms: Option<Distribution>,
    /// Of transfers: this time over what their data need in the empty network ([`TransferSample`](crate::TransferSample)).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slowdown: Option<Distribution>,
}

/// The slowdowns of transfers of some sizes. The field names are keys of `result.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SlowdownResult {
    /// More than this many bytes.
    pub above_bytes: u64,
    /// Up to this many; `None`: without end.
    pub up_to_bytes: Option<u64>,
    /// How many there are.
    pub transfers: u64,
    /// Their slowdowns.
    pub slowdown: Distribution,
}

/// The effect of one change of the busy hosts. The field names are keys of `result.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConvergenceResult {
    /// Time of the change.
    pub at_s: f64,
    /// Kind of the change.
    pub kind: ChangeKind,
    /// Busy hosts from then on.
    pub busy_hosts: u32,
    /// Time until the next change or the end of the run.
    pub lasts_s: f64,
    /// Time until the windows in which all shares are equal begin; `lasts_s` if they never are.
    pub equal_after_s: f64,
    /// The share of later windows, until the next change, in which all shares are equal, 0..=1; 0 if they never are.
    pub equal_share: f64,
}

/// A change that can make shares unequal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// Hosts have become busy.
    Arrival,
    /// Hosts have ceased to be busy.
    Departure,
    /// Both at once.
    Both,
    /// The network has changed.
    Network,
}

/// A cause of an invalid run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InvalidKind {
    /// The machine was busy otherwise, so another run may help.
    Late,
    /// Something failed.
    Failed,
}

/// Lateness of packets at the kernel hosts, or of their answers, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lateness {
    /// The median.
    pub p50: f64,
    /// The 99 % quantile.
    pub p99: f64,
    /// The maximum, or the loop's worst late wakeup if that is larger.
    pub max: f64,
}

impl ResultFile for RunResult {}

impl FlowResult {
    /// What it travels over; TCP in files without its kind.
    pub fn transport(&self) -> Transport {
        KindName::of(&self.kind).map_or(Transport::Tcp, KindName::transport)
    }

    /// The pieces of it that are measured.
    pub fn pieces(&self) -> Pieces {
        KindName::of(&self.kind).map_or(Pieces::Streams, KindName::pieces)
    }
}

impl RunResult {
    /// The scenario's purpose, in one line.
    pub fn name(&self) -> &str {
        self.scenario["name"].as_str().unwrap_or("unnamed")
    }

    /// The name of a host, if its block has one: `laptop`, or of several `laptop-1` and so on.
    pub fn host_name(&self, host: u16) -> Option<String> {
        let mut number = u64::from(host);
        for block in self.scenario["hosts"].as_array()? {
            let count = block["count"].as_u64().unwrap_or(1);
            if number < count {
                let name = block["name"].as_str()?;
                return Some(if count > 1 { format!("{name}-{}", number + 1) } else { name.to_owned() });
            }
            number -= count;
        }
        None
    }

    /// Whether the busy machine is the only reason against its validity.
    pub fn is_only_late(&self) -> bool {
        !self.valid && self.invalid_kinds == BTreeSet::from([InvalidKind::Late])
    }

    /// Sets the fields computed from the wall-clock time of the run.
    pub fn took(&mut self, wall: std::time::Duration) {
        self.wall_s = wall.as_secs_f64();
        self.simulated_s_per_wall_s = if self.wall_s > 0.0 { self.duration_s / self.wall_s } else { 0.0 };
    }
}

const fn always() -> bool {
    true
}
