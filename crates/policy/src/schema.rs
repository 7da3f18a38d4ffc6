//! The JSON lines between a policy and a program outside: what it observes, and what it decides. One schema for the
//! simulator, the agent, the agent's record, and policies in Python; `lasthop schema observation` and `lasthop schema
//! decision` print it.
//!
//! Times are whole nanoseconds, so that nothing is rounded on the way: a program that computes as a built-in policy
//! does decides as it does.

use crate::{FlowId, FlowObservation, Trigger};
use lasthop_peers as peers;
use lasthop_units::Span;
use schemars::{JsonSchema, Schema, schema_for};
use serde::{Deserialize, Serialize};

/// The version of this schema. It rises when a field changes its meaning or goes; new fields do not raise it. A new
/// field of decisions comes with one of observations, by which a program knows that it is accepted.
pub const VERSION: u32 = 1;

/// A line that the program reads: one `hello`, then one `observation` each tick.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Line {
    /// The first line. It asks for no decision.
    Hello(Hello),
    /// What the policy sees at a tick. The program answers each with one line: a decision.
    Observation(Observation),
}

/// For whom the program decides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hello {
    /// The version of these lines: 1.
    pub schema: u32,
    /// The host's number in the scenario, from 0; null: an agent, which knows no number.
    pub host: Option<u16>,
    /// The scenario's seed; an agent draws one. Random draws that follow from it and from `host` make runs repeatable.
    pub seed: u64,
    /// The time between two observations, in nanoseconds.
    pub tick_ns: u64,
}

/// What the policy sees at a tick.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Observation {
    /// Number of the tick since the program was started, from 0. Numbers may be left out: an agent does not ask a
    /// program that still owes it an answer.
    pub tick: u64,
    /// The time, in nanoseconds: of the run in the simulator, CLOCK_MONOTONIC in an agent.
    pub now_ns: u64,
    /// This host's connections.
    pub flows: Vec<Flow>,
    /// The other hosts behind the same access point.
    pub peers: Peers,
}

/// A connection of this host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Flow {
    /// Identifies the connection; never used again for another one.
    pub id: u64,
    /// Smoothed RTT, in nanoseconds; null before the first sample.
    pub srtt_ns: Option<u64>,
    /// Lowest RTT, in nanoseconds; null before the first sample. Kernels forget theirs after some minutes.
    pub min_rtt_ns: Option<u64>,
    /// RTT of the newest segment acknowledged, in nanoseconds. Unlike `srtt_ns` it does not contain the receiver's wait
    /// for a second segment. Null before the first sample.
    pub newest_rtt_ns: Option<u64>,
    /// The congestion window.
    pub cwnd_segments: u32,
    /// Segments sent and not acknowledged.
    pub in_flight_segments: u32,
    /// Bytes acknowledged since the connection began.
    pub acked_bytes: u64,
    /// Payload of a full segment; 0: unknown.
    pub mss_bytes: u32,
    /// It has something to send, and made progress within the last second or two RTTs.
    pub busy: bool,
    /// The application has written more than was sent.
    pub backlogged: bool,
    /// Bytes received in order since the connection began. With this field, `max_receive_bytes` is accepted.
    #[serde(default)]
    pub received_bytes: u64,
    /// The RTT as the receiver of data measures it, in nanoseconds; null before the first sample. In whole milliseconds
    /// on most systems, and with the sender's waits in it where that has nothing to send.
    #[serde(default)]
    pub receive_rtt_ns: Option<u64>,
    /// The lowest of `receive_rtt_ns` and `min_rtt_ns` at any tick, in nanoseconds: with the handshake's. Null before
    /// both.
    #[serde(default)]
    pub min_receive_rtt_ns: Option<u64>,
    /// At least two full segments arrived within a tick, no longer ago than a second or two RTTs.
    #[serde(default)]
    pub receiving: bool,
    /// It is left alone, by the agent's configuration or because TCP takes no limits of ours: what is decided for it has
    /// no effect, so a limit of the host is not split over it. Never in the simulator.
    #[serde(default)]
    pub left_alone: bool,
}

/// The other hosts behind the same access point.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Peers {
    /// The hosts that are sending, with this one.
    pub terminals: u32,
    /// The estimated number of other hosts, idle ones and those not heard included.
    pub hosts: u64,
    /// The busy connections of all peers, without those of this host.
    pub busy_flows: u32,
    /// Whether reports are signed with a group key. Without one any of them may be forged.
    pub authenticated: bool,
    /// The last report of each peer, in the order of their identities.
    pub reports: Vec<Peer>,
}

/// The last report of a peer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Peer {
    /// Its identity, which it draws when it starts: 16 hexadecimal digits.
    pub id: String,
    /// When the report arrived, in nanoseconds, on the clock of `now_ns`.
    pub heard_at_ns: u64,
    /// Its connections that are sending.
    pub busy_flows: u16,
    /// Another of its connections has something to send, and nothing gets through.
    pub waiting: bool,
    /// Smoothed RTT of its busy connection whose RTT has risen most, in nanoseconds; null: unknown.
    pub srtt_ns: Option<u64>,
    /// Lowest RTT of the same connection, in nanoseconds; null: unknown.
    pub min_rtt_ns: Option<u64>,
    /// At least one of its connections is under control.
    pub controlling: bool,
    /// At least one is under control because its own RTT rose.
    pub congested: bool,
    /// What its policy tells other hosts; null: nothing.
    pub word: Option<Word>,
}

/// What a policy tells the policies of other hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Word {
    /// Which policy's word this is, 1 to 15. The policy `lasthop` has 2; 1 was its first generation.
    #[schemars(range(min = 1, max = 15))]
    pub kind: u8,
    /// Its 16 bytes, as 32 hexadecimal digits.
    #[schemars(regex(pattern = r"^[0-9a-fA-F]{32}$"))]
    pub hex: String,
}

/// The limits to apply until the next tick: the program's answer to an observation. Every field may be left out; an
/// unknown one is an error.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Decision {
    /// The limits of connections. A connection that is not here has none.
    pub flows: Vec<FlowLimits>,
    /// The limits of connections that open before the next tick; null: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_flows: Option<Limits>,
    /// What the peers hear, as `word` in this host's report; null: nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub word: Option<Word>,
    /// Why, for the log and the record: up to 200 characters in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 200))]
    pub reason: Option<String>,
}

/// The limits of a connection.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowLimits {
    /// The connection, as in the observation.
    pub id: u64,
    /// The window is raised to this many segments; null: to `minimum_segments`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_segments: Option<u32>,
    /// The window is cut to this many segments, but not below `minimum_segments`; null: no upper limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_segments: Option<u32>,
    /// The pacing rate is cut to this, in Mb/s of payload, but not below 0.032; null: no limit. With a limit TCP paces
    /// the connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 100_000.0))]
    pub max_pacing_mbps: Option<f64>,
    /// The window that this host advertises is cut to this many bytes, but not below two full segments, and not below
    /// what was advertised before; null: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_receive_bytes: Option<u64>,
    /// TCP paces the connection at its own rate: 1.2 windows a round trip, 2 in the first half of slow start.
    #[serde(default, skip_serializing_if = "is_unset")]
    pub paced: bool,
    /// Small queues and the sizes of bursts do not hold back the window, which may wait below TCP as a whole.
    #[serde(default, skip_serializing_if = "is_unset")]
    pub at_once: bool,
    /// Why the connection is under control, for the host's report to its peers; null: `always` with limits, not under
    /// control without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<Control>,
}

/// The limits of connections to come.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// As of a connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_segments: Option<u32>,
    /// As of a connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_segments: Option<u32>,
    /// As of a connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 100_000.0))]
    pub max_pacing_mbps: Option<f64>,
    /// As of a connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_receive_bytes: Option<u64>,
    /// As of a connection.
    #[serde(skip_serializing_if = "is_unset")]
    pub paced: bool,
    /// As of a connection.
    #[serde(skip_serializing_if = "is_unset")]
    pub at_once: bool,
}

fn is_unset(flag: &bool) -> bool {
    !flag
}

/// The cause of control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Control {
    /// None: the policy controls every connection from its beginning.
    Always,
    /// The connection's own RTT. The host's report then says `congested`.
    OwnRtt,
    /// The RTT of a peer, or of another connection of this host.
    Peer,
}

/// The JSON Schema of the lines that a program reads.
pub fn observation_schema() -> Schema {
    let mut schema = schema_for!(Line);
    schema.insert("title".to_owned(), "What an external policy of lasthop reads".into());
    schema
}

/// The JSON Schema of the lines that a program writes.
pub fn decision_schema() -> Schema {
    let mut schema = schema_for!(Decision);
    schema.insert("title".to_owned(), "What an external policy of lasthop writes".into());
    schema
}

impl Observation {
    /// The observation of this tick, for a program outside.
    pub fn new(tick: u64, observation: &crate::Observation<'_>) -> Self {
        let neighbours = observation.peers;
        Self {
            tick,
            now_ns: observation.now.as_nanos(),
            flows: observation.flows.iter().map(Flow::from).collect(),
            peers: Peers {
                terminals: neighbours.terminals(),
                hosts: neighbours.hosts() as u64,
                busy_flows: neighbours.busy_flows(),
                authenticated: neighbours.is_authenticated(),
                reports: neighbours.peers().iter().map(Peer::from).collect(),
            },
        }
    }
}

impl From<&FlowObservation> for Flow {
    fn from(flow: &FlowObservation) -> Self {
        let &FlowObservation { id: FlowId(id), tcp, busy, min_receive_rtt, receiving, left_alone } = flow;
        Self {
            id,
            srtt_ns: tcp.srtt.map(Span::as_nanos),
            min_rtt_ns: tcp.min_rtt.map(Span::as_nanos),
            newest_rtt_ns: tcp.newest_rtt.map(Span::as_nanos),
            cwnd_segments: tcp.cwnd_segments,
            in_flight_segments: tcp.in_flight_segments,
            acked_bytes: tcp.acked.get(),
            mss_bytes: tcp.mss_bytes,
            busy,
            backlogged: tcp.is_backlogged(),
            received_bytes: tcp.received.get(),
            receive_rtt_ns: tcp.receive_rtt.map(Span::as_nanos),
            min_receive_rtt_ns: min_receive_rtt.map(Span::as_nanos),
            receiving,
            left_alone,
        }
    }
}

impl From<&peers::Peer> for Peer {
    fn from(peer: &peers::Peer) -> Self {
        let peers::Report { busy_flows, waiting, srtt, min_rtt, controlling, congested, word } = peer.report;
        Self {
            id: format!("{:016x}", peer.id.0),
            heard_at_ns: peer.heard_at.as_nanos(),
            busy_flows,
            waiting,
            srtt_ns: srtt.map(Span::as_nanos),
            min_rtt_ns: min_rtt.map(Span::as_nanos),
            controlling,
            congested,
            word: word.as_ref().map(Word::from),
        }
    }
}

impl From<&peers::Word> for Word {
    fn from(word: &peers::Word) -> Self {
        let bytes = word.of_kind(word.kind()).expect("it is of its own kind");
        Self { kind: word.kind(), hex: bytes.iter().map(|byte| format!("{byte:02x}")).collect() }
    }
}

impl Word {
    /// The word for a beacon.
    ///
    /// # Errors
    /// The field that is wrong, and what is accepted.
    pub fn to_word(&self) -> Result<peers::Word, String> {
        if !(1..=peers::Word::KINDS).contains(&self.kind) {
            return Err(format!("word.kind: {} is out of range; accepted: 1 to {}", self.kind, peers::Word::KINDS));
        }
        let digit = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
        let digits: Option<Vec<u8>> = self.hex.bytes().map(digit).collect();
        let digits = digits.filter(|digits| digits.len() == 2 * peers::Word::BYTES);
        let wrong =
            || format!("word.hex: {:?} is no word; accepted: {} hexadecimal digits", self.hex, 2 * peers::Word::BYTES);
        let digits = digits.ok_or_else(wrong)?;
        Ok(peers::Word::new(self.kind, std::array::from_fn(|byte| digits[2 * byte] << 4 | digits[2 * byte + 1])))
    }
}

impl From<Control> for Trigger {
    fn from(control: Control) -> Self {
        match control {
            Control::Always => Self::Always,
            Control::OwnRtt => Self::OwnRtt,
            Control::Peer => Self::Peer,
        }
    }
}
