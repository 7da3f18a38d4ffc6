//! A TCP endpoint without I/O. Time, segments and the application's writes go in; segments and the time of the next
//! timeout come out. Simulated hosts use it; kernel hosts have the kernel's own TCP.
//!
//! ```text
//!   write, close ──> ┌─────────────────────┐ ──> poll_transmit: segments
//!     on_segment ──> │      Endpoint       │ ──> next_timeout
//!     on_timeout ──> │ Sender │ Receiver   │ ──> info, received_bytes, ...
//!     on_refused ──> └─────────────────────┘
//! ```
//!
//! The files: `segment` (what travels), `config` (switches, and the defaults of both eras), `endpoint` (handshake,
//! close), `sender` (transmission, ACK processing), `scoreboard` (RFC 6675), `recovery` (fast recovery, PRR, F-RTO,
//! undo), `ecn` (RFC 3168), `last_link` (link reports), `rack` (RFC 8985), `rtt` (RFC 6298), `pacing`, `receiver` (reassembly,
//! delayed ACKs, SACK). A law grows and reduces the window ([`lasthop_laws`]); a bound limits it
//! ([`lasthop_laws::bound`]). Each file says at its top what it models and leaves out. The whole, with the deviations
//! from Linux, and how it was validated: `docs/models/tcp.md`.
//!
//! *What it leaves out*: segmentation offload, TCP Fast Open, keep-alive, SYN cookies, RST, urgent data, MTU
//! probing.
//!
//! ```
//! use lasthop_laws::LawName;
//! use lasthop_tcp::{Config, Endpoint};
//! use lasthop_units::{Span, Time};
//!
//! let (config, one_way) = (Config::linux_modern(), Span::from_millis(10));
//! let mut now = Time::ZERO;
//! let mut client = Endpoint::connect(now, &config, LawName::Cubic);
//! let mut server = Endpoint::listen(&config, LawName::Cubic);
//! client.write(100_000);
//! client.close();
//! // A path without loss that takes each packet in no time: every 10 ms the ends hear each other.
//! while !(client.is_closed() && server.is_closed()) {
//!     now += one_way;
//!     for end in [&mut client, &mut server] {
//!         end.on_timeout(now);
//!     }
//!     while let Some(segment) = client.poll_transmit(now) {
//!         server.on_segment(now, &segment);
//!     }
//!     while let Some(segment) = server.poll_transmit(now) {
//!         client.on_segment(now, &segment);
//!     }
//! }
//! assert_eq!((server.received_bytes(), client.acked_bytes()), (100_000, 100_000));
//! ```
#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods)]

mod clock;
mod config;
mod ecn;
mod endpoint;
mod info;
mod last_link;
mod pacing;
mod ranges;
mod receive_rtt;
mod receiver;
mod rtt;
mod scoreboard;
mod segment;
mod sender;
#[cfg(test)]
mod tests;

pub use config::{Config, ConfigError, DelayedAck, Recovery, RtoEstimator, Switch, Tsq};
pub use ecn::EcnMode;
pub use endpoint::Endpoint;
pub use info::Info;
pub use segment::{Offer, SackBlocks, Segment, Timestamps};
