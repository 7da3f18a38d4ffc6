//! The traffic of hosts and servers: the blocks `[[hosts.flows]]`, and their connections.

use crate::ScenarioError;
use crate::keys::{Direction, FlowKeys};
use lasthop_keys::{Document, Path, key};
use lasthop_network::NodeId;
use lasthop_traffic::TrafficKind;
use lasthop_units::{Span, Time};
use rand::{Rng, RngExt as _};

/// A flow's client has this port plus the flow's number. From the port a server recognises the flow.
pub const FIRST_CLIENT_PORT: u16 = 10_000;
/// The port of the servers' listeners.
pub const SERVER_PORT: u16 = 5001;

/// One `[[hosts.flows]]` block: `count` equal connections of each host.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowBlock {
    /// Connections from each host.
    pub count: usize,
    /// The sending side.
    pub direction: Direction,
    /// The node of its server, as written; with links only.
    pub to: Option<String>,
    /// The application's traffic.
    pub kind: TrafficKind,
    /// The DSCP of its packets, both ways.
    pub dscp: u8,
    /// Opens at a moment of `start.0..start.1`; at `start.0` if the two are equal.
    pub start: (Span, Span),
    /// The application stops at a moment of this range, which lies after `start.1`; `None` = never.
    pub stop: Option<(Span, Span)>,
}

/// One connection of the run, and those that follow it at its ports.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowSpec {
    /// The number of its flow, counted from 0 through all hosts. Connections of an open loop have the same one.
    pub id: u32,
    /// The number of its flow, counted from 0 within its host.
    pub number: usize,
    /// Of an open loop its number among the arrivals, from 0: it is one transfer.
    pub arrival: Option<u32>,
    /// The host at its near end.
    pub host: u16,
    /// The node at its other end.
    pub server: NodeId,
    /// The sending side.
    pub direction: Direction,
    /// The application's traffic.
    pub kind: TrafficKind,
    /// The DSCP of its packets, both ways, acknowledgements included.
    pub dscp: u8,
    /// Time of opening.
    pub start: Time,
    /// Time of the application's last write, later than `start`. The data written by then are still sent, and the
    /// connection closes. `None` = never; it may lie beyond the end of the run.
    pub stop: Option<Time>,
}

/// A moment of the range, excluding its end; if both ends are equal, that moment.
pub(crate) fn drawn((from, to): (Span, Span), mut stream: impl Rng) -> Time {
    let (from, to) = (from.as_nanos(), to.as_nanos());
    Time::from_nanos(if from < to { stream.random_range(from..to) } else { from })
}

/// The flows of one host block, from the list `here`.
pub(crate) fn flow_blocks(
    document: &Document,
    blocks: &[FlowKeys],
    here: &Path,
    duration_s: f64,
) -> Result<Vec<FlowBlock>, ScenarioError> {
    let mut flows = Vec::new();
    for (index, keys) in blocks.iter().enumerate() {
        let here = here.index(index);
        let (start, stop) = (keys.start_s, keys.stop_s);
        if start.1 >= Span::from_secs_f64(duration_s) {
            let problem = format!("{} is not before the end of the run at {duration_s} s", start.1.as_secs_f64());
            return Err(document.error(&here.key(key!(FlowKeys, start_s)), problem, "moments below duration_s"));
        }
        if let Some((first, _)) = stop.filter(|(first, _)| *first <= start.1) {
            let (first, start) = (first.as_secs_f64(), start.1.as_secs_f64());
            let problem = format!("{first} is not behind the start, which may be at {start} s");
            return Err(document.error(&here.key(key!(FlowKeys, stop_s)), problem, "moments above start_s"));
        }
        let (kind, to, dscp) = (keys.traffic.clone(), keys.to.clone(), keys.dscp.unwrap_or_default());
        flows.push(FlowBlock { count: keys.count, direction: keys.direction, to, kind, dscp, start, stop });
    }
    Ok(flows)
}
