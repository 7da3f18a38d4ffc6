//! The agent's state at each tick as JSON lines, on a Unix socket: for `lasthop top` and other programs that watch.
//!
//! `docs/guide/agent-log.md` describes the format. The agent never waits for a reader. Each reader has room for one
//! line; while that is not taken, later lines are left out, and `seq` shows the gap.

use crate::error::Result;
use crate::record::{FlowRecord, Tick};
use crate::status::{self, Named, Status};
use lasthop_laws::bound::Bound;
use lasthop_peers::Peer;
use lasthop_units::{Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// The version of the format: [`Watched::v`]. Fields may be added without a new version.
pub const VERSION: u32 = 1;
/// The most connections of a line, busiest first.
pub const FLOWS_MOST: usize = 512;
/// The most peers of a line.
pub const PEERS_MOST: usize = 256;
/// The most characters of a reason.
const REASON_CHARACTERS: usize = 200;
/// The most readers at once; later ones wait.
const READERS_MOST: usize = 8;
/// The most bytes of a line; a longer one is left out. So all readers together cost 8 MiB at most.
const LINE_BYTES_MOST: usize = 1 << 20;
/// A reader that takes nothing for so many ticks is disconnected.
const STALLED_TICKS: u32 = 120;

/// What the sockets' names begin with.
const PREFIX: &str = "watch-";

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
    /// RTT − lowest RTT, averaged over this host's busy connections; `None`: the policy does not report it.
    pub excess_us: Option<u64>,
    /// The peers; at most [`PEERS_MOST`].
    pub neighbours: Vec<Neighbour>,
    /// The connections, busiest first; at most [`FLOWS_MOST`].
    pub flows: Vec<WatchedFlow>,
    /// Connections beyond that.
    pub flows_left_out: u32,
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
    pub(crate) fn of(peer: &Peer, now: Time) -> Self {
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

/// The agent's end.
#[derive(Debug)]
pub(crate) struct WatchSocket {
    named: Named,
    readers: Vec<Reader>,
}

#[derive(Debug)]
struct Reader {
    stream: UnixStream,
    /// What it has not taken of its last line.
    rest: Vec<u8>,
    stalled: u32,
}

impl WatchSocket {
    pub(crate) fn open(folder: &Path, interface: &str, group: Option<u32>) -> Result<Self> {
        Ok(Self { named: Named::open(folder, PREFIX, interface, group)?, readers: Vec::new() })
    }

    /// Takes new readers in. Returns whether there is any: else no line need be made.
    pub(crate) fn is_read(&mut self) -> bool {
        while self.readers.len() < READERS_MOST
            && let Ok((stream, _)) = self.named.listener.accept()
        {
            if stream.set_nonblocking(true).is_ok() {
                self.readers.push(Reader { stream, rest: Vec::new(), stalled: 0 });
            }
        }
        // A reader that has left frees its place, even if it had not taken its last line.
        self.readers.retain_mut(|reader| !reader.is_gone());
        !self.readers.is_empty()
    }

    /// Hands the line to each reader that has taken its last one. Never waits.
    pub(crate) fn write(&mut self, line: &[u8]) {
        self.readers.retain_mut(|reader| reader.write(line));
    }
}

impl Reader {
    fn is_gone(&mut self) -> bool {
        // It has nothing to say; whatever it says is discarded.
        match self.stream.read(&mut [0; 512]) {
            Ok(read) => read == 0,
            Err(error) => error.kind() != ErrorKind::WouldBlock,
        }
    }

    /// `false`: it is to be disconnected.
    fn write(&mut self, line: &[u8]) -> bool {
        let mut rest = std::mem::take(&mut self.rest);
        if !self.push(&mut rest) {
            return false;
        }
        if rest.is_empty() && line.len() <= LINE_BYTES_MOST {
            rest = line.to_vec();
            if !self.push(&mut rest) {
                return false;
            }
        }
        rest.shrink_to_fit();
        self.rest = rest;
        self.stalled < STALLED_TICKS
    }

    /// Writes what fits and leaves the rest. `false`: the reader has gone.
    fn push(&mut self, bytes: &mut Vec<u8>) -> bool {
        while !bytes.is_empty() {
            match self.stream.write(bytes) {
                Ok(written) => {
                    bytes.drain(..written);
                    self.stalled = 0;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.stalled += 1;
                    return true;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        true
    }
}

/// Connects to an agent: that of the interface or, without one, the first in alphabetical order. Its lines can be read
/// from the stream.
///
/// # Errors
/// No agent serves such a socket in this folder, or it cannot be opened.
pub fn connect(folder: &Path, interface: Option<&str>) -> std::io::Result<(PathBuf, UnixStream)> {
    let is_it = |path: &PathBuf| {
        interface.is_none_or(|interface| path.file_stem().is_some_and(|stem| *stem == *format!("{PREFIX}{interface}")))
    };
    let mut trouble = None;
    for path in status::sockets(folder, PREFIX)?.into_iter().filter(is_it) {
        match status::connect(&path) {
            Ok(stream) => {
                stream.set_nonblocking(false)?;
                return Ok((path, stream));
            }
            Err(error) => trouble = Some(std::io::Error::new(error.kind(), format!("{}: {error}", path.display()))),
        }
    }
    Err(trouble.unwrap_or_else(|| {
        let which = interface.map_or(String::new(), |interface| format!(" of {interface}"));
        std::io::Error::new(ErrorKind::NotFound, format!("no agent{which} serves a socket in {}", folder.display()))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead as _, BufReader};
    use std::time::{Duration, Instant};

    fn socket(folder: &Path) -> WatchSocket {
        WatchSocket::open(&folder.join("lasthop"), "wlan0", None).expect("a socket")
    }

    #[test]
    fn a_reader_that_stalls_delays_nobody_and_costs_one_line_and_later_finds_whole_lines() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut socket = socket(folder.path());
        assert!(!socket.is_read());
        let stalled = connect(&folder.path().join("lasthop"), Some("wlan0")).expect("served").1;
        assert!(socket.is_read());
        let line = |seq: u64| format!("{{\"seq\":{seq},\"pad\":\"{}\"}}\n", "x".repeat(300_000)).into_bytes();
        let begun = Instant::now();
        for seq in 0..50 {
            socket.write(&line(seq));
            assert!(socket.readers[0].rest.len() <= 300_100);
        }
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        let mut lines = BufReader::new(stalled).lines();
        let mut seqs = Vec::new();
        for seq in 50..53 {
            std::thread::scope(|scope| {
                let read = scope.spawn(|| lines.next().expect("a line").expect("text"));
                while !read.is_finished() {
                    socket.write(&line(seq));
                    std::thread::sleep(Duration::from_millis(2));
                }
                let value: serde_json::Value = serde_json::from_str(&read.join().expect("read")).expect("whole");
                seqs.push(value["seq"].as_u64().expect("a number"));
            });
        }
        assert_eq!(seqs[0], 0);
        assert!(seqs[1] >= 50, "those in between were left out: {seqs:?}");
    }

    #[test]
    fn a_reader_that_never_reads_is_disconnected_and_one_that_has_gone_is_forgotten() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut socket = socket(folder.path());
        let folder = folder.path().join("lasthop");
        let (_stalled, gone) = (connect(&folder, None).expect("served"), connect(&folder, None).expect("served"));
        assert!(socket.is_read());
        drop(gone);
        assert!(socket.is_read());
        assert_eq!(socket.readers.len(), 1);
        for _ in 0..=STALLED_TICKS + 1 {
            socket.write(&vec![b'x'; LINE_BYTES_MOST]);
        }
        assert!(!socket.is_read());
        let error = connect(&folder, Some("eth0")).expect_err("nobody").to_string();
        assert!(error.starts_with("no agent of eth0 serves a socket in "), "{error}");
    }

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
