//! One end of a QUIC connection, sans I/O, as `lasthop-tcp` is of TCP: [`quinn_proto`], with simulated time and without cryptography.
//!
//! The protocol is quinn's: loss detection (RFC 9002), pacing but for laws that have their own, the discovery of the path's MTU, flow
//! control. The congestion control is quinn's or one of ours.
//! This crate gives it what a simulation needs:
//!
//! - **time**: each end has a moment of its own that stands for the start of the run; what quinn does depends on differences alone;
//! - **randomness**: all of it from one seed, which the caller draws; connection IDs are counted;
//! - **TLS**: [messages of its sizes](plain);
//! - **a UDP socket**: it holds [`SOCKET_DATAGRAMS`] until they leave the host's queue, and the connection waits for room in it;
//! - **one stream** in one direction, for an application that writes.
//!
//! *What it leaves out*: 0-RTT, migration, Retry, and quinn's BBR, which draws from the operating system
//! and so is not repeatable. Without an operating system there is no `End` at all: quinn asks for the time.
#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods)]

#[cfg(not(unix))]
mod absent;
#[cfg(unix)]
mod controller;
#[cfg(unix)]
mod end;
#[cfg(unix)]
mod law;
#[cfg(unix)]
mod marks;
#[cfg(unix)]
mod plain;
#[cfg(unix)]
mod rate;
#[cfg(unix)]
mod steered;

#[cfg(not(unix))]
pub use absent::End;
/// The UDP payload of a datagram.
pub use bytes::Bytes as Datagram;
#[cfg(unix)]
pub use end::End;
use lasthop_laws::{Choice, Marking};
use lasthop_units::{Bytes, Span};

/// Whether there are [`End`]s.
pub const IS_THERE: bool = cfg!(unix);

/// Datagrams of one socket that wait in the host: what `net.core.wmem_default` of Linux, 212,992 bytes, holds of full ones, each of which
/// takes 2,304 bytes of memory (2,048 and its `sk_buff`).
pub const SOCKET_DATAGRAMS: usize = 92;

/// The least UDP payload that a path must carry (RFC 9000 §14).
pub const LEAST_DATAGRAM: u16 = 1_200;

/// A congestion control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Law {
    /// RFC 9438, quinn's own and its default.
    #[default]
    Cubic,
    /// RFC 9002, appendix B, quinn's own.
    NewReno,
    /// One of ours ([`Law::ours`]).
    Ours(Choice),
}

impl Law {
    /// One of ours, if QUIC connections can have it: not those that hear of last links.
    pub fn ours(law: impl Into<Choice>) -> Option<Self> {
        let law = law.into();
        (!law.name.hears_reports()).then_some(Self::Ours(law))
    }

    /// What it wants of ECN.
    pub const fn marking(self) -> Marking {
        match self {
            Self::Cubic | Self::NewReno => Marking::OfHost,
            Self::Ours(law) => law.name.marking(),
        }
    }
}

/// The parameters of an end. Whatever is not here is quinn's default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The congestion control.
    pub law: Law,
    /// Whether datagrams may be marked, as far as the path lets marks through. Those of a law that wants marks may in any case.
    pub ecn: bool,
    /// The greatest UDP payload in bytes that the discovery of the MTU looks for; below [`LEAST_DATAGRAM`] that.
    pub datagram_bytes: u16,
    /// How far the sender of the stream may be ahead of what the application has read.
    pub receive_buffer: Bytes,
    /// What the sender keeps of the stream until it is acknowledged, at most. It keeps no more than twice the window and 64 KiB, as
    /// Linux does for TCP.
    pub send_buffer: Bytes,
}

/// The state of an end that sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// The UDP payload of a full datagram.
    pub datagram_bytes: u16,
    /// The congestion window.
    pub cwnd: Bytes,
    /// The slow-start threshold; `None`: infinite.
    pub ssthresh: Option<Bytes>,
    /// Smoothed.
    pub srtt: Span,
    /// The least of all.
    pub min_rtt: Span,
    /// UDP payload acknowledged, of packets that ask for it.
    pub acked: Bytes,
    /// The same, sent and neither acknowledged nor lost.
    pub in_flight: Bytes,
    /// Packets that were declared lost, probes of the MTU excluded.
    pub lost_packets: u64,
    /// Packets that arrived with a mark, as the other end tells: those of the handshake are left out.
    pub delivered_ce: u64,
}
