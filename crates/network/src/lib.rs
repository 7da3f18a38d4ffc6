//! All that carries packets: queues, wired links, the 802.11 medium, and networks of these.
//!
//! ```text
//!  host 0 --[queue]--+                                  +--[queue]--> half rtt, loss -->+
//!  host 1 --[queue]--+== 802.11 medium == access point =+                               server
//!  host n --[queue]--+   or shared link  <--[queue]--   +<-- half rtt <--[queue]--------+
//! ```
//!
//! or nodes joined by links in any topology, with hosts attached ([`Topology`]).
//!
//! The network has no clock of its own. The caller's clock may be an event loop in virtual time, or a real-time loop
//! around kernel hosts. It drives the network with three verbs, [`Network::offer`], [`Network::next_wakeup`] and
//! [`Network::advance`]. Event times are logical, so a late call moves no event.
//!
//! Same configuration, same seed, same offers: identical deliveries. Events are ordered by (time, source). The sources
//! are, in this order: the access, the path up, the path down and the hosts' turnarounds; or the links in their order,
//! forth before back. Within a source, causes decide the order.
//!
//! The cost of a packet does not depend on other packets, nor on idle stations or links.
//!
//! The parts: `packet`, `queue` (a file for each discipline), `link` (wired) with its `server` and `opportunities`, `wired` (a
//! wired last hop), [`wifi`] (DCF, aggregation), `impairments` of wires, `access_point` with `turnaround` and `host_path`,
//! `links` with `routes`, [`schedule`], `topology` (the verbs), `change` (changes at given times), `last_hop` (a host's knowledge of its own link), `empty` (how long data need alone),
//! `statistics`, `watch` (what a capture shows), [`random`]. Each file begins with its model and its omissions.
//!
//! ```
//! use lasthop_network::{
//!     AccessConfig, Config, Destination, HostConfig, Impairments, Network, NodeId, Packet, PathConfig, Topology, WifiConfig,
//! };
//! use lasthop_network::wifi::Standard;
//! use lasthop_units::{Bytes, Ecn, Probability, Rate, Span, Time};
//!
//! let topology = Topology::AccessPoint {
//!     access: AccessConfig::Wifi(WifiConfig::new(Standard::G)),
//!     path: PathConfig {
//!         rtt: Span::from_millis(4),
//!         rate: Rate::from_mbps(1000.0),
//!         loss: Probability::ZERO,
//!         back_loss: Probability::ZERO,
//!         queue_packets: 1000,
//!         impairments: [Impairments::NONE; 2],
//!     },
//! };
//! let config = Config::new(vec![HostConfig::new(100)], topology);
//! let mut network = Network::new(&config, 1)?;
//! let to = Destination::Node(NodeId(1));
//! let packet = Packet { from: NodeId(0), to, size: Bytes::new(1500), flow: 0, dscp: 0, ecn: Ecn::NotEct, id: 0, payload: "hello" };
//! network.offer(Time::ZERO, packet).expect("the queue is empty");
//! let mut deliveries = Vec::new();
//! while let Some(at) = network.next_wakeup() {
//!     network.advance(at, &mut deliveries);
//! }
//! // The medium has been silent, so the station sends at once.
//! // 254 us at 54 Mb/s, then 12 us at 1 Gb/s and 2 ms of path.
//! assert_eq!(deliveries[0].at, Time::ZERO + Span::from_micros(254 + 12 + 2000));
//! # Ok::<(), lasthop_network::ConfigError>(())
//! ```
#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods)]

mod access_point;
mod change;
mod config;
mod empty;
mod host_path;
mod impairments;
mod last_hop;
mod link;
mod links;
mod nodes;
mod opportunities;
mod packet;
mod queue;
pub mod random;
mod routes;
pub mod schedule;
mod server;
mod statistics;
mod topology;
mod turnaround;
mod watch;
pub mod wifi;
mod wired;

pub use change::{Change, Changed, DirectionChange};
pub use config::{
    AccessConfig, Cells, ChangeField, Config, ConfigError, DirectionConfig, DirectionField, Field, Hearing,
    HearingLevel, HostConfig, HostField, HostPath, LinkConfig, LinkField, LinksConfig, LossAt, NetworkField,
    PathConfig, PathField, QueueField, Roam, Topology, WifiConfig, WifiField, WifiRules, WiredAccessConfig,
};
pub use empty::{EmptyWay, Framing};
pub use impairments::Impairments;
pub use last_hop::LastHop;
pub use opportunities::Opportunities;
pub use packet::{Delivery, Departure, Destination, NodeId, Packet};
pub use queue::{
    AckFilter, CakeConfig, CodelConfig, DeviceLimit, Discipline, FqCodelConfig, Mac80211Config, QueueConfig, ReadAck,
    TcpAck,
};
pub use statistics::{
    AirTime, Cause, CellStatistics, Drops, LengthOverTime, LinkStatistics, QueueId, QueueStatistics, StationStatistics,
    Statistics, Way, WifiLinkStatistics,
};
pub use topology::Network;
pub use watch::{AirFate, AirFrame, AirKind, Aired, Lost, Seen};
pub use wifi::{Band, ChannelWidth, GuardInterval, Modulation, PhyRate, RateControl, RateSet, Standard};
