//! The result of one run: `result.json`.

use crate::keys::Direction;
use crate::result_file::{ResultFile, is_zero};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

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
    /// Jain's index of their goodputs; `None` where none of them got anything, or there is none.
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
    /// What kinds of reasons these are; left out where there is none.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub invalid_kinds: BTreeSet<InvalidKind>,
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
    /// Frames that a station or the access point gave up after the last retry, or that came when their receiver no longer waited.
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
    /// Its frames that were sent again, each time.
    pub up_retries: u64,
    /// The access point's frames to it that were sent again, each time.
    pub down_retries: u64,
    /// 802.11n and later: how many packets its transmissions carried on the mean; 0 if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_aggregate_frames: Option<f64>,
    /// The same of the access point's transmissions to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down_aggregate_frames: Option<f64>,
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

/// How a measured quantity is spread; the unit is that of the field that holds it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// The least.
    pub min: f64,
    /// The arithmetic mean.
    pub mean: f64,
    /// The median.
    pub p50: f64,
    /// 95 % are not above it.
    pub p95: f64,
    /// 99 % are not above it.
    pub p99: f64,
    /// The greatest.
    pub max: f64,
}

/// How much of its time a connection is in each congestion-avoidance state: they add up to 1, or are 0 where it never opened.
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

/// What became of the messages, or of the transfers, of one connection or of several. The field names are keys of
/// `result.json`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeliveryResult {
    /// Read to their end after the warm-up.
    pub delivered: u64,
    /// Never read to their end.
    pub undelivered: u64,
    /// From writing one to reading its last byte, in ms; of an undelivered one to the end of the run. `None` without any.
    pub took_ms: Option<Distribution>,
}

/// What followed on one change of who is busy. The field names are keys of `result.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConvergenceResult {
    /// When it was.
    pub at_s: f64,
    /// What it was.
    pub kind: ChangeKind,
    /// So many hosts were busy from then on.
    pub busy_hosts: u32,
    /// The next change, or the end of the run, came so much later.
    pub lasts_s: f64,
    /// So long after it the windows begin in which all shares are equal; where they never are, as much as `lasts_s`.
    pub equal_after_s: f64,
    /// Of the windows from then on until the next change, the share in which all shares are equal, 0..=1; 0 where they never
    /// are.
    pub equal_share: f64,
}

/// What can make shares unequal.
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

/// What made a run not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InvalidKind {
    /// The machine was busy with something else, so that running it again may help.
    Late,
    /// Something failed.
    Failed,
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

    /// Whether it is not valid for no other reason than that the machine was busy.
    pub fn is_only_late(&self) -> bool {
        !self.valid && self.invalid_kinds == BTreeSet::from([InvalidKind::Late])
    }

    /// Sets the fields that follow from how long the run took on the wall clock.
    pub fn took(&mut self, wall: std::time::Duration) {
        self.wall_s = wall.as_secs_f64();
        self.simulated_s_per_wall_s = if self.wall_s > 0.0 { self.duration_s / self.wall_s } else { 0.0 };
    }
}

const fn always() -> bool {
    true
}
