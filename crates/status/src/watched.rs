//! An agent's state at each tick, as those who watch read it: one line of JSON each (docs/guide/agent-log.md).

use crate::Status;
use crate::record::{FlowRecord, Tick};
use lasthop_laws::bound::Bound;
use lasthop_peers::Peer;
use lasthop_trial::{Plan, Told};
use lasthop_units::{Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// The version of the format: [`Watched::v`]. Fields may be added without a new version.
pub const VERSION: u32 = 1;
/// The most connections of a line, busiest first.
pub const FLOWS_MOST: usize = 512;
/// The most peers of a line.
pub const PEERS_MOST: usize = 256;
/// The most characters of a reason.
const REASON_CHARACTERS: usize = 200;

/// An agent's state at a tick.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Watched {
    /// [`VERSION`].
    pub v: u32,
    /// The number of the tick. A gap: lines were left out.
    pub seq: u64,
    /// Start of the tick, CLOCK_MONOTONIC.
    pub t_ns: u64,
    /// As of `lasthop agent status --json`.
    #[serde(flatten)]
    pub status: Status,
    /// The peers; at most [`PEERS_MOST`].
    pub neighbours: Vec<Neighbour>,
    /// The connections, busiest first; at most [`FLOWS_MOST`].
    pub flows: Vec<WatchedFlow>,
    /// Connections beyond that.
    pub flows_left_out: u32,
    /// What all hosts have measured in the trial that this host's command began, once it has ended: a part of it, at each tick
    /// another.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trial_told: Vec<Told>,
}

/// What a reader of root may write to the socket, as a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialOrder {
    /// Begin this trial; it ends when the reader goes.
    Begin(Plan),
    /// End it; the reader waits for what was measured.
    End,
}

/// A peer's last report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Neighbour {
    /// Its identity, which is random.
    pub id: String,
    /// Its sending connections.
    pub busy_flows: u16,
    /// RTT − lowest RTT of the connection whose RTT has risen most; `None`: none is busy.
    pub excess_us: Option<u64>,
    /// At least one of its connections is under control.
    pub controlling: bool,
    /// Time since its report arrived.
    pub age_ms: u64,
}

impl Neighbour {
    /// A peer, as of now.
    pub fn of(peer: &Peer, now: Time) -> Self {
        let excess = |(rtt, least): (Span, Span)| rtt.saturating_sub(least).as_micros();
        Self {
            id: format!("{:016x}", peer.id.0),
            busy_flows: peer.report.busy_flows,
            excess_us: peer.report.srtt.zip(peer.report.min_rtt).map(excess),
            controlling: peer.report.controlling,
            age_ms: now.saturating_since(peer.heard_at).as_millis(),
        }
    }
}

/// A connection at a tick.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WatchedFlow {
    /// The kernel's number for the socket, unique until a reboot.
    pub cookie: u64,
    /// Own address and port.
    pub local: String,
    /// The other side's address and port.
    pub remote: String,
    /// Its congestion control.
    pub congestion_control: String,
    /// Sending now.
    pub busy: bool,
    /// Payload acknowledged since the last tick; `None`: the connection is new.
    pub goodput_mbps: Option<f64>,
    /// Payload received since the last tick; `None`: the connection is new.
    pub received_mbps: Option<f64>,
    /// Smoothed RTT.
    pub rtt_us: Option<u64>,
    /// RTT − lowest RTT.
    pub excess_us: Option<u64>,
    /// Congestion window.
    pub window_segments: u32,
    /// The limits that are set or, in mode `advise`, would be.
    pub bound: Option<Bound>,
    /// The number of the rule that fits it (`[[rules]]`), from 1; `None`: none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<u32>,
    /// The policy's reason, at most 200 characters.
    pub reason: String,
}

/// Turns ticks into lines: goodput needs the tick before.
#[derive(Debug, Default)]
pub struct Meter {
    at_ns: u64,
    counted: HashMap<u64, (u64, u64)>,
}

impl Meter {
    /// The connections of this tick, busiest first, and the number of those left out.
    pub fn flows(&mut self, tick: &Tick) -> (Vec<WatchedFlow>, u32) {
        let seconds = tick.t_ns.saturating_sub(self.at_ns) as f64 / 1e9;
        let mut flows: Vec<_> = tick.flows.iter().map(|flow| self.flow(flow, seconds)).collect();
        self.at_ns = tick.t_ns;
        self.counted = tick.flows.iter().map(|flow| (flow.cookie, (flow.acked_bytes, flow.received_bytes))).collect();
        let total = |flow: &WatchedFlow| flow.goodput_mbps.unwrap_or(0.0) + flow.received_mbps.unwrap_or(0.0);
        flows.sort_by(|a, b| total(b).total_cmp(&total(a)).then(b.busy.cmp(&a.busy)).then(a.cookie.cmp(&b.cookie)));
        let left_out = u32::try_from(flows.len().saturating_sub(FLOWS_MOST)).unwrap_or(u32::MAX);
        flows.truncate(FLOWS_MOST);
        (flows, left_out)
    }

    fn flow(&self, flow: &FlowRecord, seconds: f64) -> WatchedFlow {
        let before = self.counted.get(&flow.cookie).filter(|_| seconds > 0.0);
        let mbps = |now: u64, before: u64| now.saturating_sub(before) as f64 * 8e-6 / seconds;
        WatchedFlow {
            cookie: flow.cookie,
            local: flow.local.clone(),
            remote: flow.remote.clone(),
            congestion_control: flow.congestion_control.clone(),
            busy: flow.busy,
            goodput_mbps: before.map(|(acked, _)| mbps(flow.acked_bytes, *acked)),
            received_mbps: before.map(|(_, received)| mbps(flow.received_bytes, *received)),
            rtt_us: flow.srtt_us,
            excess_us: flow.srtt_us.zip(flow.min_rtt_us).map(|(rtt, least)| rtt.saturating_sub(least)),
            window_segments: flow.cwnd_segments,
            bound: flow.bound.or(flow.advised),
            rule: flow.rule,
            reason: flow.reason.chars().take(REASON_CHARACTERS).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goodput_is_since_the_last_tick_and_the_busiest_come_first() {
        let flow = |cookie: u64, acked: u64| {
            serde_json::json!({"cookie": cookie, "local": "a", "remote": "b", "congestion_control": "cubic",
                "controlled": true, "srtt_us": 30_000, "min_rtt_us": 10_000, "cwnd_segments": 9,
                "ssthresh_segments": null, "state": "Open", "in_flight_segments": 0, "unsent_bytes": 0, "retransmits": 0,
                "delivery_rate_mbps": null, "acked_bytes": acked, "received_bytes": 0, "receive_rtt_us": null,
                "mss_bytes": 1448, "busy": true, "bound": null, "bound_until_ns": null, "advised": null,
                "enabled": false, "enabled_at_ns": null, "reason": "y".repeat(300)})
        };
        let tick = |t_ns: u64, flows: Vec<serde_json::Value>| -> Tick {
            let beacons = serde_json::json!({"sent": 0, "unsent": 0, "heard": 0, "rejected": 0});
            let tick =
                serde_json::json!({"t_ns": t_ns, "late_ns": 0, "terminals": 1, "flows": flows, "beacons": beacons});
            serde_json::from_value(tick).expect("a tick")
        };
        let mut meter = Meter::default();
        let (first, _) = meter.flows(&tick(1_000_000_000, vec![flow(1, 0), flow(2, 0)]));
        assert_eq!(first[0].goodput_mbps, None);
        let (second, left_out) = meter.flows(&tick(1_500_000_000, vec![flow(1, 0), flow(2, 125_000), flow(3, 9_999)]));
        let told: Vec<_> = second.iter().map(|flow| (flow.cookie, flow.goodput_mbps)).collect();
        assert_eq!((told, left_out), (vec![(2, Some(2.0)), (1, Some(0.0)), (3, None)], 0));
        assert_eq!((second[0].excess_us, second[0].reason.len()), (Some(20_000), REASON_CHARACTERS));
        let (most, left_out) = meter.flows(&tick(2_000_000_000, (0..600).map(|cookie| flow(cookie, 0)).collect()));
        assert_eq!((most.len(), left_out), (FLOWS_MOST, 88));
    }
}
