//! What the agent records: JSON lines, one event each, for whoever reads them while it runs (the laboratory, `jq`).
//!
//! The first line is `ready`, the last `stopped`. Times are CLOCK_MONOTONIC. How the lines are written, and what becomes of those
//! that cannot be: the module `recorder`.

use crate::config::Mode;
use crate::wifi::WifiLink;
use lasthop_lastlink::Source;
use lasthop_laws::bound::Bound;
use lasthop_policy::PolicyName;
use lasthop_units::{Rate, Span};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// One line of the record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// The programs are loaded and the existing sockets adopted.
    Ready(Ready),
    /// What was seen and decided at one tick.
    Tick(Tick),
    /// A connection's congestion state changed.
    State(State),
    /// The host is behind another access point.
    Joined(Joined),
    /// Servers are told something else of the last link.
    LastLink(LinkReported),
    /// The agent has stopped in order: the last line.
    Stopped(Totals),
}

/// See [`Event::Ready`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// When.
    pub t_ns: u64,
    /// The managed interface.
    pub interface: String,
    /// The name of our congestion control in the kernel; `None`: nothing is changed.
    pub congestion_control: Option<String>,
    /// The mode in which the agent runs, which is a lesser one than asked for where the kernel cannot do it.
    pub mode: Mode,
    /// The policy.
    pub policy: PolicyName,
    /// The access point: [`lasthop_peers::group::Label`] in words; `None`: not known yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The agent's version.
    pub version: String,
}

/// See [`Event::Tick`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tick {
    /// When the tick began.
    pub t_ns: u64,
    /// How late it began.
    pub late_ns: u64,
    /// Hosts with busy connections behind the access point, this one included.
    pub terminals: u32,
    /// Every TCP connection on the managed interface.
    pub flows: Vec<FlowRecord>,
    /// Messages between agents, since the start.
    pub beacons: Beacons,
    /// The interface's link to its access point, as it was within the last 2 s; `None`: it is not wireless, or not associated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wifi: Option<WifiLink>,
    /// What the policy makes of this host in mode `control`; `None`: it shows nothing, or another mode. Earlier agents called it
    /// `lasthop`.
    #[serde(default, alias = "lasthop", skip_serializing_if = "Option::is_none")]
    pub policy_state: Option<PolicyState>,
}

/// What a policy makes of this host.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PolicyState {
    /// What each host may send, payload; `None`: this one is not controlled.
    pub common_rate_mbps: Option<f64>,
    /// What this host gets, payload; `None`: the policy does not say.
    pub delivered_mbps: Option<f64>,
    /// RTT − lowest RTT, the mean over its busy connections; `None`: none is busy.
    pub excess_us: Option<u64>,
    /// It does without control on purpose: to see what is delivered then, or because control cost more than it gave.
    pub free: bool,
    /// It finds that control costs more than it gives.
    pub harmed: bool,
}

/// One connection at a tick.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowRecord {
    /// The kernel's number for the socket, never given twice until a reboot.
    pub cookie: u64,
    /// Own address and port.
    pub local: String,
    /// The other side's.
    pub remote: String,
    /// Its congestion control.
    pub congestion_control: String,
    /// Whether that is ours.
    pub controlled: bool,
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
    /// Retransmitted segments, since it began.
    pub retransmits: u64,
    /// The kernel's delivery rate.
    pub delivery_rate_mbps: Option<f64>,
    /// Acknowledged, since it began.
    pub acked_bytes: u64,
    /// Largest payload of a segment.
    pub mss_bytes: u64,
    /// Sending now, as `lasthop_policy::activity` defines it.
    pub busy: bool,
    /// The limits set at this tick, and in force until `bound_until_ns` if they are not renewed.
    pub bound: Option<Bound>,
    /// End of their lease.
    pub bound_until_ns: Option<u64>,
    /// In mode `advise`: the limits that would have been set.
    pub advised: Option<Bound>,
    /// Whether the policy has it under control.
    pub enabled: bool,
    /// Since when.
    pub enabled_at_ns: Option<u64>,
    /// Why the policy decided as it did.
    pub reason: String,
}

/// Messages between agents, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beacons {
    /// Sent; each address family counts.
    pub sent: u64,
    /// Could not be sent.
    pub unsent: u64,
    /// Heard from peers.
    pub heard: u64,
    /// Not heard, for any cause.
    pub rejected: u64,
}

/// See [`Event::State`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// When.
    pub t_ns: u64,
    /// Which connection.
    pub cookie: u64,
    /// `Open`, `Disorder`, `Cwr`, `Recovery` or `Loss`.
    pub from: String,
    /// As `from`.
    pub to: String,
}

/// See [`Event::Joined`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Joined {
    /// When it was noticed.
    pub t_ns: u64,
    /// The access point, as in [`Ready`].
    pub group: String,
}

/// See [`Event::LastLink`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkReported {
    /// When.
    pub t_ns: u64,
    /// The link's bandwidth towards this host; `None`: unknown.
    pub bandwidth_mbps: Option<f64>,
    /// Where that comes from.
    pub bandwidth_source: Option<Source>,
    /// The share of packets that it loses by itself; `None`: unknown.
    pub error_rate: Option<f64>,
    /// Where that comes from.
    pub error_rate_source: Option<Source>,
    /// For how long it is valid, if it is not told again.
    pub validity_s: u32,
    /// Why now.
    pub cause: ReportCause,
}

/// Why servers are told something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReportCause {
    /// An estimate has come, changed, or ended for want of evidence.
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

/// What servers were told of the last link, and what came of it; the last ten are in connections and segments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkTotals {
    /// How often they were told something else.
    pub changed: u64,
    /// How often that nothing is known any more.
    pub retracted: u64,
    /// SYNs with the option.
    pub offered: u64,
    /// Connections whose server knows the option.
    pub answered: u64,
    /// Connections whose server does not.
    pub unanswered: u64,
    /// Of those, connections on whose way something has changed the option.
    pub mangled: u64,
    /// Connections whose server asked for the report again.
    pub asked_again: u64,
    /// Segments with the option after the handshake.
    pub sent: u64,
    /// SYNs and segments that had no room for it.
    pub no_room: u64,
    /// SYNs that got lost with the option and were sent again without.
    pub sent_again: u64,
    /// Connections without the option, because their destination had not answered one that had.
    pub avoided: u64,
    /// Connections for which the kernel had no memory.
    pub failed: u64,
}

/// What the agent did from start to stop.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// When it stopped.
    pub t_ns: u64,
    /// Decisions.
    pub ticks: u64,
    /// Decisions that began more than half a tick late: the machine was overloaded, or a virtual one stopped. (While a
    /// machine is suspended its clock stands still.)
    pub late_ticks: u64,
    /// Messages between agents.
    pub beacons: Beacons,
    /// Those not heard, by cause.
    pub rejected_by_cause: BTreeMap<String, u64>,
    /// How often the limits of a connection were set, changed or taken away.
    pub bounds_changed: u64,
    /// Connections that the policy had come under control, or would have in mode `advise`.
    pub flows_enabled: u64,
    /// When each of them did; at most the first [`Totals::ENABLED_KEPT`].
    pub enabled: Vec<Enabled>,
    /// How often the host came behind another access point.
    #[serde(default)]
    pub roamed: u64,
    /// How often the machine had been suspended.
    #[serde(default)]
    pub resumed: u64,
    /// What servers were told of the last link; `None`: that is not configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_link: Option<LinkTotals>,
    /// Sockets that got their own congestion control back at the end.
    pub sockets_restored: u64,
    /// Changes of state that the kernel had no room to report.
    pub state_changes_lost: u64,
    /// Lines of this record that were left out, because they were not read in time or could not be written.
    pub lines_left_out: u64,
    /// The process's CPU time, in user and kernel mode.
    pub cpu_s: f64,
    /// The process's largest resident set.
    pub max_rss_kib: u64,
}

/// When a connection came under control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enabled {
    /// Which connection.
    pub cookie: u64,
    /// When.
    pub t_ns: u64,
}

impl From<lasthop_policy::PolicyState> for PolicyState {
    fn from(state: lasthop_policy::PolicyState) -> Self {
        let lasthop_policy::PolicyState { common_rate, delivered, excess, released, harmed, .. } = state;
        Self {
            common_rate_mbps: common_rate.map(Rate::as_mbps),
            delivered_mbps: delivered.map(Rate::as_mbps),
            excess_us: excess.map(Span::as_micros),
            free: released,
            harmed,
        }
    }
}

impl Totals {
    /// So many entries are kept in `enabled`.
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
            let LinkTotals { changed, retracted, offered, answered, unanswered, sent, no_room, sent_again, .. } = link;
            write!(
                f,
                "; last link: told anew {changed} times, retracted {retracted} times; {offered} SYNs with the option ({answered} \
                 answered, {unanswered} not, {sent_again} lost) and {sent} later segments, {no_room} without room for it",
            )?;
        }
        write!(f, "; {:.2} s of CPU time, {:.1} MiB", self.cpu_s, self.max_rss_kib as f64 / 1024.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
