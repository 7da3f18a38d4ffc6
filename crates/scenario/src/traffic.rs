//! The traffic of hosts and servers: the blocks `[[hosts.flows]]`, and their connections.

use crate::ScenarioError;
use crate::keys::{Direction, FlowKeys, QuicLaw, Traffic};
use lasthop_keys::{Document, Path, key};
use lasthop_network::NodeId;
use lasthop_units::{Bytes, Span, Time};
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

/// One connection of the run.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowSpec {
    /// Counted from 0 through all hosts.
    pub id: u32,
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

/// The traffic of a connection's application. Times called means are those of exponential distributions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TrafficKind {
    /// Bulk data.
    Bulk {
        /// Closes after this much; `None` = unlimited.
        transfer: Option<Bytes>,
    },
    /// Bulk data and silence in turn, over one connection, starting with data.
    OnOff {
        /// Mean length of a period with data; above 0.
        on: Span,
        /// Mean length of a silence.
        off: Span,
    },
    /// Small messages, like typing, over one connection. The first comes one gap after the connection opens.
    Interactive {
        /// Size of each, at least 1 byte.
        message: Bytes,
        /// Mean gap between two starts; above 0. The application does not wait for answers.
        gap: Span,
    },
    /// Transfers in sequence, each over a connection of its own.
    Transfers {
        /// Size of each, at least 1 KiB; the median if they differ.
        transfer: Bytes,
        /// Standard deviation of the logarithm of their sizes, which are lognormal; 0: all have one size.
        sigma: f64,
        /// Mean pause between the end of one and the start of the next.
        off: Span,
        /// What the receiver asks with, at least 1 byte; `None`: the sender begins by itself.
        request: Option<Bytes>,
    },
    /// UDP: packets at a constant distance, each answered by the other end with one of the same size.
    Ping {
        /// Size of the IP packet, including headers, at least [`LEAST_PACKET`].
        packet: Bytes,
        /// From one to the next; above 0.
        gap: Span,
    },
    /// UDP at a constant rate, like a call or a camera.
    Constant {
        /// Size of the IP packet, including headers, at least [`LEAST_PACKET`].
        packet: Bytes,
        /// From one to the next; above 0.
        gap: Span,
        /// The most by which one leaves before its time.
        jitter: Span,
    },
    /// Chunks of a video over one TCP connection, each of the bit rate that the player chooses.
    Video {
        /// The bit rates.
        ladder: Ladder,
        /// Length of a chunk; above 0.
        chunk: Span,
        /// The most that the player has in its buffer, at least three chunks.
        buffer: Span,
        /// What the player asks with, at least 1 byte.
        request: Bytes,
    },
    /// UDP without any control: keeps the sender's transmit queue full.
    Saturated {
        /// Size of the IP packet, including headers, at least 28 bytes.
        packet: Bytes,
    },
    /// QUIC: bulk data over one connection, or transfers in sequence, each over a connection of its own.
    Quic {
        /// The congestion control of the sender.
        law: QuicLaw,
        /// Size of each transfer, at least 1 KiB; `None`: bulk data, unlimited.
        transfer: Option<Bytes>,
        /// Mean pause between the end of one transfer and the start of the next.
        off: Span,
    },
}

/// The smallest packet of [`TrafficKind::Ping`] and [`TrafficKind::Constant`]: headers, its number, and when it was sent.
pub const LEAST_PACKET: Bytes = Bytes::new(28 + 16);

/// The bit rates of a video in kb/s, ascending: 1 to [`Ladder::MOST`] of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ladder {
    kbps: [u32; Self::MOST],
    count: usize,
}

impl Ladder {
    /// The most rates.
    pub const MOST: usize = 16;
    /// The fixed ladder for H.264 of A. Aaron and others, *Per-Title Encode Optimization*, Netflix 2015.
    pub const USUAL_KBPS: [u32; 10] = [235, 375, 560, 750, 1050, 1750, 2350, 3000, 4300, 5800];

    /// These rates; `None` if they are too many, none, or not ascending from 1.
    pub fn new(rates_kbps: &[u32]) -> Option<Self> {
        let ascending = rates_kbps.is_sorted_by(|a, b| a < b) && rates_kbps.first().is_some_and(|least| *least > 0);
        let mut kbps = [0; Self::MOST];
        kbps.get_mut(..rates_kbps.len()).filter(|_| ascending)?.copy_from_slice(rates_kbps);
        Some(Self { kbps, count: rates_kbps.len() })
    }

    /// The rates.
    pub fn kbps(&self) -> &[u32] {
        &self.kbps[..self.count]
    }
}

impl TrafficKind {
    /// The word in the file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bulk { .. } => "bulk",
            Self::OnOff { .. } => "on-off",
            Self::Interactive { .. } => "interactive",
            Self::Transfers { .. } => "transfers",
            Self::Ping { .. } => "ping",
            Self::Constant { .. } => "constant",
            Self::Video { .. } => "video",
            Self::Saturated { .. } => "saturated",
            Self::Quic { .. } => "quic",
        }
    }

    /// Whether it sends bulk data over one TCP or QUIC connection, in periods or without end.
    pub const fn is_greedy(self) -> bool {
        matches!(self, Self::Bulk { .. } | Self::OnOff { .. } | Self::Quic { transfer: None, .. })
    }

    /// Whether it sends pieces of a given size, with a completion time each.
    pub const fn is_transfer(self) -> bool {
        matches!(self, Self::Bulk { transfer: Some(_) } | Self::Transfers { .. } | Self::Quic { transfer: Some(_), .. })
    }

    /// Whether it sends single datagrams whose way is measured.
    pub const fn is_datagrams(self) -> bool {
        matches!(self, Self::Ping { .. } | Self::Constant { .. })
    }

    /// Whether it has TCP connections.
    pub const fn is_tcp(self) -> bool {
        !matches!(self, Self::Ping { .. } | Self::Constant { .. } | Self::Saturated { .. } | Self::Quic { .. })
    }

    fn read(document: &Document, keys: &FlowKeys, here: &Path) -> Result<Self, ScenarioError> {
        let &FlowKeys { transfer_kib, on_s, off_s, message_bytes, gap_ms, packet_bytes, request_bytes, .. } = keys;
        let measured_packet = || {
            let problem = format!("{} is too small: each packet carries its number and its time", packet_bytes.get());
            let accepted = format!("a whole number from {} to 2296", LEAST_PACKET.get());
            let error = || document.error(&here.key(key!(FlowKeys, packet_bytes)), problem, accepted);
            if packet_bytes < LEAST_PACKET { Err(error()) } else { Ok(packet_bytes) }
        };
        const GIVEN: &str = "its kind has a default";
        Ok(match keys.kind {
            Traffic::Bulk => Self::Bulk { transfer: transfer_kib },
            Traffic::OnOff => Self::OnOff { on: on_s, off: off_s },
            Traffic::Interactive => Self::Interactive { message: message_bytes, gap: gap_ms },
            Traffic::Transfers => {
                let missing = || {
                    let problem = "is not there, and the kind \"transfers\" cannot be without it";
                    document.error(&here.key(key!(FlowKeys, transfer_kib)), problem, "the size of each transfer in KiB")
                };
                let (transfer, sigma) = (transfer_kib.ok_or_else(missing)?, keys.transfer_sigma.unwrap_or(0.0));
                Self::Transfers { transfer, sigma, off: off_s, request: request_bytes }
            }
            Traffic::Ping => Self::Ping { packet: measured_packet()?, gap: gap_ms },
            Traffic::Constant => {
                let packet = measured_packet()?;
                let gap = keys.rate_mbps.expect(GIVEN).transmission_time(packet);
                Self::Constant { packet, gap, jitter: keys.jitter_us.expect(GIVEN) }
            }
            Traffic::Video => {
                let (chunk, buffer) = (keys.chunk_s.expect(GIVEN), keys.buffer_s.expect(GIVEN));
                let least = chunk + chunk + chunk;
                if buffer < least {
                    let problem = format!("{} has no room for three chunks", buffer.as_secs_f64());
                    let accepted = format!("a number from {}", least.as_secs_f64());
                    return Err(document.error(&here.key(key!(FlowKeys, buffer_s)), problem, accepted));
                }
                let (ladder, request) = (keys.ladder_kbps.expect(GIVEN), request_bytes.expect(GIVEN));
                Self::Video { ladder, chunk, buffer, request }
            }
            Traffic::Saturated => Self::Saturated { packet: packet_bytes },
            Traffic::Quic => {
                Self::Quic { law: keys.congestion_control.expect(GIVEN), transfer: transfer_kib, off: off_s }
            }
        })
    }
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
        let kind = TrafficKind::read(document, keys, &here)?;
        let (to, dscp) = (keys.to.clone(), keys.dscp.unwrap_or_default());
        flows.push(FlowBlock { count: keys.count, direction: keys.direction, to, kind, dscp, start, stop });
    }
    Ok(flows)
}
