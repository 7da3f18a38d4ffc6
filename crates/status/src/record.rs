//! The agent's record: JSON lines, one event each, readable while it runs (by the laboratory or `jq`).
//!
//! The first line is `ready`, the last `stopped`. Times are CLOCK_MONOTONIC. The agent's `recorder` writes the lines.

use crate::{Gain, Mode, WifiLink};
use lasthop_files::Kind;
use lasthop_lastlink::Source;
use lasthop_laws::ReportCounters;
use lasthop_laws::bound::Bound;
use lasthop_policy::{PolicyName, schema};
use lasthop_units::{Rate, Span};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// The most bytes that are read of a record: 1 GiB, a day of 50 connections. `record_limit_mib` is 64 MiB by default.
pub const MOST_BYTES: u64 = 1 << 30;

/// Opens a record for reading. Reading more than [`MOST_BYTES`] of it is an error.
///
/// # Errors
/// As of [`lasthop_files::open_to_read`].
pub fn open(path: &Path) -> io::Result<impl Read> {
    open_up_to(path, MOST_BYTES)
}

fn open_up_to(path: &Path, most: u64) -> io::Result<Limited> {
    Ok(Limited { file: lasthop_files::open_to_read(path)?, left: most, most })
}

struct Limited {
    file: File,
    left: u64,
    most: u64,
}

impl Read for Limited {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| {
            let said =
                format!("it has more than {} MiB, the most that is read: give a part of its lines", self.most >> 20);
            io::Error::new(ErrorKind::FileTooLarge, said)
        })?;
        Ok(read)
    }
}

/// By which a record is known, whose last line a killed agent may have left unfinished.
pub const RECORD: Kind = Kind { name: "a record", looked_at: 64, is: |begin| begin.starts_with(b"{\"event\":") };

/// One line of the record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// The programs are loaded and the existing sockets adopted.
    Ready(Ready),
    /// Observations and decisions of one tick.
    Tick(Tick),
    /// A connection's congestion state changed.
    State(State),
    /// The host is behind another access point.
    Joined(Joined),
    /// The report to servers has changed.
    LastLink(LinkReported),
    /// The program of the policy `external` was started, and this is its first line.
    Hello(schema::Hello),
    /// What that program was asked at the tick whose line follows.
    Observation(schema::Observation),
    /// Its answer, if it was in time.
    Decision(schema::Decision),
    /// The agent has stopped in order: the last line.
    Stopped(Totals),
}

/// See [`Event::Ready`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// Time of the event.
    pub t_ns: u64,
    /// The same moment in milliseconds since 1970, by which the records of several machines are put together; `None`: an
    /// earlier agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unix_ms: Option<u64>,
    /// The managed interface.
    pub interface: String,
    /// The name of our congestion control in the kernel; `None`: nothing is changed.
    pub congestion_control: Option<String>,
    /// The mode in which the agent runs. It is lesser than configured if the kernel lacks a feature.
    pub mode: Mode,
    /// The policy.
    pub policy: PolicyName,
    /// The access point: [`lasthop_peers::group::Label`] in words; `None`: unknown as yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The agent's version.
    pub version: String,
}

/// See [`Event::Tick`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tick {
    /// Start of the tick.
    pub t_ns: u64,
    /// Delay of the start.
    pub late_ns: u64,
    /// Hosts with busy connections behind the access point, this one included.
    pub terminals: u32,
    /// Every TCP connection on the managed interface.
    pub flows: Vec<FlowRecord>,
    /// Messages between agents, since the start.
    pub beacons: Beacons,
    /// The interface's link to its access point, at most 2 s old; `None`: not wireless, or not associated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wifi: Option<WifiLink>,
    /// The policy's view of this host in mode `control`; `None`: the policy has none, or another mode. Earlier agents
    /// called it `lasthop`.
    #[serde(default, alias = "lasthop", skip_serializing_if = "Option::is_none")]
    pub policy_state: Option<PolicyState>,
}

/// The policy's view of this host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PolicyState {
    /// The fair sending rate per host, payload; `None`: this host is not controlled.
    pub common_rate_mbps: Option<f64>,
    /// What control changes.
    #[serde(flatten)]
    pub gain: Gain,
    /// RTT − lowest RTT, averaged over its busy connections; `None`: none is busy.
    pub excess_us: Option<u64>,
    /// It has left control on purpose, because control did not help.
    pub free: bool,
    /// It has found that control does not help.
    pub harmed: bool,
    /// What it has found: "goodput", "queue" or "peers"; `None`: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub harmed_by: Option<String>,
    /// The same in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub harm: Option<String>,
}

/// One connection at a tick.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowRecord {
    /// The kernel's number for the socket, unique until a reboot.
    pub cookie: u64,
    /// Own address and port.
    pub local: String,
    /// Peer address and port.
    pub remote: String,
    /// Its congestion control.
    pub congestion_control: String,
    /// Whether that is ours.
    pub controlled: bool,
    /// Why it is not: a word of [`crate::Ungoverned::why`]; `None`: it is, or the mode controls nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<String>,
    /// Smoothed RTT.
    pub srtt_us: Option<u64>,
    /// Lowest RTT.
    pub min_rtt_us: Option<u64>,
    /// Congestion window.
    pub cwnd_segments: u32,
    /// Slow-start threshold; `None`: not set yet.
    pub ssthresh_segments: Option<u32>,
    /// `Open`, `Disorder`, `Cwr`, `Recovery` or `Loss`.
    pub state: String,
    /// Segments sent and not acknowledged.
    pub in_flight_segments: u32,
    /// Written by the application and not sent.
    pub unsent_bytes: u64,
    /// Retransmitted segments since the start of the connection.
    pub retransmits: u64,
    /// The kernel's delivery rate.
    pub delivery_rate_mbps: Option<f64>,
    /// Bytes acknowledged since the start of the connection.
    pub acked_bytes: u64,
    /// Bytes received in order since the start of the connection.
    pub received_bytes: u64,
    /// The receiver's estimate of the RTT.
    pub receive_rtt_us: Option<u64>,
    /// Largest payload of a segment.
    pub mss_bytes: u64,
    /// Sending now, as `lasthop_policy::activity` defines it.
    pub busy: bool,
    /// The limits set at this tick. Without renewal they last until `bound_until_ns`.
    pub bound: Option<Bound>,
    /// End of their lease.
    pub bound_until_ns: Option<u64>,
    /// In mode `advise`: the limits that would have been set.
    pub advised: Option<Bound>,
    /// Whether the policy controls it.
    pub enabled: bool,
    /// Start of that control.
    pub enabled_at_ns: Option<u64>,
    /// The number of the rule that fits it (`[[rules]]`), from 1; `None`: none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<u32>,
    /// The policy's reason.
    pub reason: String,
}

/// Messages between agents, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beacons {
    /// Sent, counted per address family.
    pub sent: u64,
    /// Failed to send.
    pub unsent: u64,
    /// Received from peers.
    pub heard: u64,
    /// Received but rejected, for any cause.
    pub rejected: u64,
}

/// See [`Event::State`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// Time of the change.
    pub t_ns: u64,
    /// The connection.
    pub cookie: u64,
    /// `Open`, `Disorder`, `Cwr`, `Recovery` or `Loss`.
    pub from: String,
    /// As `from`.
    pub to: String,
}

/// See [`Event::Joined`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Joined {
    /// Time of detection.
    pub t_ns: u64,
    /// The access point, as in [`Ready`].
    pub group: String,
}

/// See [`Event::LastLink`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkReported {
    /// Time of the change.
    pub t_ns: u64,
    /// The link's bandwidth towards this host; `None`: unknown.
    pub bandwidth_mbps: Option<f64>,
    /// Source of the bandwidth.
    pub bandwidth_source: Option<Source>,
    /// The share of packets that the link itself loses; `None`: unknown.
    pub error_rate: Option<f64>,
    /// Source of the loss share.
    pub error_rate_source: Option<Source>,
    /// Validity without renewal.
    pub validity_s: u32,
    /// Reason for the change.
    pub cause: ReportCause,
}

/// Reason for a new report to servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReportCause {
    /// An estimate has appeared, changed, or expired for want of evidence.
    Estimate,
    /// The host is behind another access point.
    Roamed,
    /// The machine was suspended.
    Resumed,
    /// The interface is down, gone, or without an access point.
    LinkLost,
    /// The agent stops in order.
    Stopped,
}

/// Reports of the last link and their effect. The last ten fields count connections and segments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkTotals {
    /// Changed reports.
    pub changed: u64,
    /// Retractions.
    pub retracted: u64,
    /// What was counted in the kernel.
    #[serde(flatten)]
    pub counters: ReportCounters,
}

/// What the program of the policy `external` did, since the agent's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramTotals {
    /// Ticks with a decision in time.
    pub decisions: u64,
    /// Ticks at which it was late: nothing was bounded.
    pub late: u64,
    /// Times that it could not be started, ended, hung, or wrote nonsense.
    pub failures: u64,
    /// Times that it was started.
    pub starts: u64,
}

/// The agent's totals from start to stop.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// Time of the stop.
    pub t_ns: u64,
    /// Decisions.
    pub ticks: u64,
    /// Decisions that began more than half a tick late, because the machine was overloaded or a virtual one was
    /// stopped. (Suspension does not count: the clock stands still.)
    pub late_ticks: u64,
    /// Messages between agents.
    pub beacons: Beacons,
    /// Rejected messages, by cause.
    pub rejected_by_cause: BTreeMap<String, u64>,
    /// Limits set, changed or removed, over all connections.
    pub bounds_changed: u64,
    /// Connections that came under the policy's control, or would have in mode `advise`.
    pub flows_enabled: u64,
    /// When each of them came under control; at most the first [`Totals::ENABLED_KEPT`].
    pub enabled: Vec<Enabled>,
    /// Changes of the access point.
    #[serde(default)]
    pub roamed: u64,
    /// Suspensions of the machine.
    #[serde(default)]
    pub resumed: u64,
    /// Reports of the last link to servers; `None`: not configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_link: Option<LinkTotals>,
    /// The program of the policy `external`; `None`: another policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramTotals>,
    /// Sockets restored to their own congestion control at the end.
    pub sockets_restored: u64,
    /// Changes of state that the kernel dropped for lack of room.
    pub state_changes_lost: u64,
    /// Lines dropped from this record, unread in time or unwritable.
    pub lines_left_out: u64,
    /// The process's CPU time, in user and kernel mode.
    pub cpu_s: f64,
    /// The process's largest resident set.
    pub max_rss_kib: u64,
}

/// When a connection came under control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enabled {
    /// The connection.
    pub cookie: u64,
    /// Time of the change.
    pub t_ns: u64,
}

impl From<lasthop_policy::PolicyState> for PolicyState {
    fn from(state: lasthop_policy::PolicyState) -> Self {
        let lasthop_policy::PolicyState { common_rate, gain, excess, released, harmed } = state;
        Self {
            common_rate_mbps: common_rate.map(Rate::as_mbps),
            gain: gain.into(),
            excess_us: excess.map(Span::as_micros),
            free: released,
            harmed: harmed.is_some(),
            harmed_by: harmed.map(|harm| harm.kind().to_owned()),
            harm: harmed.map(|harm| harm.to_string()),
        }
    }
}

impl Totals {
    /// The most entries in `enabled`.
    pub const ENABLED_KEPT: usize = 1000;
}

impl fmt::Display for ReportCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Estimate => "nothing is known any more",
            Self::Roamed => "this is another access point",
            Self::Resumed => "the machine was suspended",
            Self::LinkLost => "the link is down",
            Self::Stopped => "the agent stops",
        })
    }
}

impl fmt::Display for ProgramTotals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { decisions, late, failures, starts } = self;
        write!(f, "{decisions} decisions, late {late} times, failed {failures} times, started {starts} times")
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Beacons { sent, unsent, heard, rejected } = self.beacons;
        write!(
            f,
            "{} ticks ({} late), {} bounds changed, the policy chose {} connections, {} sockets restored; beacons: {sent} \
             sent, {unsent} not sent, {heard} heard, {rejected} rejected",
            self.ticks, self.late_ticks, self.bounds_changed, self.flows_enabled, self.sockets_restored,
        )?;
        for (index, (cause, count)) in self.rejected_by_cause.iter().enumerate() {
            write!(f, "{}{count} {cause}", if index == 0 { " (" } else { ", " })?;
        }
        if !self.rejected_by_cause.is_empty() {
            f.write_str(")")?;
        }
        if let Some(link) = &self.last_link {
            let LinkTotals { changed, retracted, counters } = link;
            let ReportCounters { offered, answered, unanswered, sent, no_room, sent_again, .. } = counters;
            write!(
                f,
                "; last link: told anew {changed} times, retracted {retracted} times; {offered} SYNs with the option ({answered} \
                 answered, {unanswered} not, {sent_again} lost) and {sent} later segments, {no_room} without room for it",
            )?;
        }
        if let Some(program) = &self.program {
            write!(f, "; the policy's program: {program}")?;
        }
        write!(f, "; {:.2} s of CPU time, {:.1} MiB", self.cpu_s, self.max_rss_kib as f64 / 1024.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_counted_of_the_link_stands_beside_its_changes() {
        let counters = ReportCounters { offered: 7, failed: 3, ..ReportCounters::default() };
        let totals = LinkTotals { changed: 1, retracted: 2, counters };
        let expected =
            r#"{"changed":1,"retracted":2,"offered":7,"answered":0,"unanswered":0,"mangled":0,"asked_again":0,"#
                .to_owned()
                + r#""sent":0,"no_room":0,"sent_again":0,"avoided":0,"failed":3}"#;
        let text = serde_json::to_string(&totals).expect("JSON");
        assert_eq!(text, expected);
        assert_eq!(serde_json::from_str::<LinkTotals>(&text).expect("the same"), totals);
    }

    #[test]
    fn a_record_has_a_greatest_size_and_a_device_is_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("agent.jsonl");
        std::fs::write(&path, vec![b' '; 2 << 20]).expect("written");
        let mut all = Vec::new();
        assert_eq!(
            open_up_to(&path, 2 << 20).and_then(|mut file| file.read_to_end(&mut all)).expect("it fits"),
            2 << 20
        );
        let error = open_up_to(&path, 1 << 20).and_then(|mut file| file.read_to_end(&mut all)).expect_err("too long");
        assert!(error.to_string().starts_with("it has more than 1 MiB, the most that is read"), "{error}");
        let error = open(Path::new("/dev/zero")).err().expect("endless").to_string();
        assert_eq!(error, "it is a device; accepted: a file, or a pipe that somebody writes into");
    }

    #[test]
    fn events_are_written_as_the_laboratory_reads_them() {
        let state = Event::State(State { t_ns: 4, cookie: 7, from: "Open".to_owned(), to: "Recovery".to_owned() });
        assert_eq!(
            serde_json::to_string(&state).expect("plain data"),
            r#"{"event":"state","t_ns":4,"cookie":7,"from":"Open","to":"Recovery"}"#
        );
        let ready = r#"{"event":"ready","t_ns":1,"interface":"wlan0","congestion_control":"lasthop","mode":"control","policy":"formula","version":"0.1.0"}"#;
        let event: Event = serde_json::from_str(ready).expect("a line of the interface");
        assert_eq!(serde_json::to_string(&event).expect("plain data"), ready);
    }
}
