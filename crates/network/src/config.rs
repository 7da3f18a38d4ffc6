//! What a network is made of.

use crate::change::Change;
use crate::queue::{Discipline, QueueConfig};
use crate::routes::Routes;
use crate::wifi::{Modulation, OFDM_WINDOW, PhyRate, RateControl, RateSet, SHORT_WINDOW, Standard};
use lasthop_units::{Bytes, Probability, Rate, Span};
use std::fmt;

/// A network: hosts, and what connects them.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// The hosts; nodes 0..hosts. At least one, and with the other nodes at most 65535.
    pub hosts: Vec<HostConfig>,
    /// What connects them.
    pub topology: Topology,
    /// What is different from some moment on, in any order.
    pub changes: Vec<Change>,
}

/// What connects the hosts.
#[derive(Clone, PartialEq, Debug)]
pub enum Topology {
    /// All hosts behind one access, and one server behind a path.
    AccessPoint {
        /// What the hosts share.
        access: AccessConfig,
        /// What lies between the access point and the server, which is node `hosts.len()`.
        path: PathConfig,
    },
    /// Nodes with links between them; the hosts sit on nodes.
    Links(LinksConfig),
}

/// One host. [`HostConfig::new`] gives the defaults.
#[derive(Clone, PartialEq, Debug)]
pub struct HostConfig {
    /// The host's transmit queue in packets with the one in service, at least 1. Not with links: there a host's packets wait in
    /// the queue of the link that they take first.
    pub queue_packets: usize,
    /// The host's own PHY rate (the highest, with rate control) in both directions; `None` = the access's. 802.11b and 802.11g
    /// only. In 802.11bg a host with a DSSS rate (1, 2, 5.5 or 11 Mb/s) is an 802.11b station.
    pub rate: Option<Rate>,
    /// The host's own MCS in both directions; `None` = the access's. 802.11n and later only.
    pub mcs: Option<u8>,
    /// The probability that a data frame from this host or to it is received with an error; `None` = the access's. Wi-Fi only.
    pub frame_error_rate: Option<Probability>,
    /// The round-trip time of this host's path, instead of the one that all share. Not with links.
    pub path: Option<HostPath>,
    /// The shortest and the longest time from its MAC's reception of a packet to when it is delivered; see `turnaround.rs`. Drawn
    /// uniformly for each packet; packets keep their order. Wi-Fi only, else looked past. Default: none.
    pub turnaround: (Span, Span),
    /// Whether [`Network::take_departed`](crate::Network::take_departed) tells when a packet of this host has left its transmit
    /// queue.
    pub reports_departures: bool,
}

impl HostConfig {
    /// A host with so many packets of transmit queue and nothing else of its own.
    pub const fn new(queue_packets: usize) -> Self {
        Self {
            queue_packets,
            rate: None,
            mcs: None,
            frame_error_rate: None,
            path: None,
            turnaround: (Span::ZERO, Span::ZERO),
            reports_departures: false,
        }
    }
}

/// A path of a host's own: the rate, the queues and the loss are the shared path's, the round-trip time is not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostPath {
    /// The shortest and the longest round-trip time without queues, half of it each way. Drawn uniformly.
    pub rtt: (Span, Span),
    /// For how long a drawn one holds; [`Span::ZERO`] = for ever.
    pub change_every: Span,
}

/// Nodes and the links between them. Hosts sit on nodes; node k is itself [`NodeId`](crate::NodeId) `hosts.len() + k`, so
/// that a server can sit on any.
///
/// A packet takes a way with the fewest links; where there are several, each node sends it over the one that stands first in
/// `links`. Hosts on one node reach each other at once, and a broadcast reaches only them.
#[derive(Clone, PartialEq, Debug)]
pub struct LinksConfig {
    /// How many nodes; 2 to 1024, for each node knows the next link to each.
    pub nodes: usize,
    /// The node that each host sits on.
    pub attached: Vec<usize>,
    /// The links; with them each node must reach each. At most 32768.
    pub links: Vec<LinkConfig>,
}

/// A link between two nodes.
#[derive(Clone, PartialEq, Debug)]
pub struct LinkConfig {
    /// The two nodes.
    pub ends: (usize, usize),
    /// From the first to the second.
    pub forth: DirectionConfig,
    /// From the second to the first.
    pub back: DirectionConfig,
}

/// One direction of a link.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DirectionConfig {
    /// The rate of IP bytes, more than zero.
    pub rate: Rate,
    /// From when a packet has been sent to when it is there.
    pub delay: Span,
    /// The queue in front of the transmitter.
    pub queue: QueueConfig,
    /// Random loss, each packet on its own.
    pub loss: Probability,
    /// Where packets are lost.
    pub loss_at: LossAt,
}

/// Where a direction of a link loses packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LossAt {
    /// Before the queue: a lost packet takes no room in the queue and no time of the link.
    BeforeQueue,
    /// After the queue: a transmission error.
    AfterQueue,
}

/// What the hosts share.
#[derive(Clone, PartialEq, Debug)]
pub enum AccessConfig {
    /// One 802.11 medium with one access point.
    Wifi(WifiConfig),
    /// One link up, one down.
    Wired(WiredAccessConfig),
}

/// An 802.11 medium. [`WifiConfig::new`] gives the defaults.
#[derive(Clone, PartialEq, Debug)]
pub struct WifiConfig {
    /// Which PHY and which protection.
    pub standard: Standard,
    /// 802.11b and 802.11g: the PHY rate of unicast data frames; with rate control the highest one and the first one tried.
    pub rate: PhyRate,
    /// 802.11n and later: how data is sent.
    pub modulation: Modulation,
    /// Who chooses the PHY rate. 802.11n and later: fixed.
    pub rate_control: RateControl,
    /// What the rate control chooses from. 802.11b stations always choose from the DSSS rates.
    pub rate_set: RateSet,
    /// The access point's downlink queue. Default: drop-tail, 100 packets.
    pub access_point_queue: QueueConfig,
    /// How many frames an A-MPDU holds at most, 1 to 64, in 802.11ax 256, the default; 1 in 802.11b and 802.11g. In 802.11ax up to 64
    /// also make the window of Block Ack 64, and the Block Ack shorter.
    pub aggregate_frames: u16,
    /// How long an A-MPDU takes at most, 300 us to 5484 us (aPPDUMaxTime, the default).
    pub max_ppdu: Span,
    /// An RTS asks for a CTS before unicast transmissions with more bytes than this; `None` = never, the default. Not in
    /// 802.11bg, which has CTS-to-self.
    pub rts_threshold: Option<Bytes>,
    /// The access point's CWmax: one less than a power of 2, from its CWmin to 1023. Default: 1023; in 802.11n and later 63, as
    /// hostapd has it for best effort. Stations have 1023.
    pub access_point_window: u32,
    /// The probability that a data frame that is alone on the air is received with an error, whatever its size and rate; of an
    /// A-MPDU each frame by itself. Default 0.
    pub frame_error_rate: Probability,
    /// The probability that a response that is alone on the air (ACK, Block Ack, CTS) is lost. Default 0.
    pub response_error_rate: Probability,
    /// How many times a unicast frame is sent at most; 0 = without end. Default 7 (dot11ShortRetryLimit).
    pub retry_limit: u8,
    /// Short DSSS preambles (but at 1 Mb/s). Default: long ones, as an access point must with one old station around.
    pub short_preamble: bool,
    /// 802.11bg: the DSSS rate of the CTS-to-self. Default 2 Mb/s, the highest basic DSSS rate.
    pub protection_rate: PhyRate,
    /// The rate of broadcast frames; `None` = the lowest one of the basic set: 1 Mb/s where DSSS rates are in use, else 6 Mb/s.
    pub broadcast_rate: Option<PhyRate>,
    /// What models of the medium do not agree on. Default: [`WifiRules::default`].
    pub rules: WifiRules,
}

/// Rules of the medium that the standard leaves open, or that other simulators read otherwise. The default is ours; ns-3 3.44
/// has both the other way (docs/results/validation.md).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WifiRules {
    /// Whether a station may take the medium for idle in the SIFS before its own acknowledgement. If so, an answer that it
    /// queues then goes a DIFS after that acknowledgement, without backoff (ns-3's `ChannelAccessManager::NeedBackoffUponAccess`).
    pub idle_before_acknowledgement: bool,
    /// Whether bystanders wait DIFS after a collision instead of EIFS (802.11-2020 §10.3.2.3.7).
    pub difs_after_collision: bool,
}

impl WifiConfig {
    /// aPPDUMaxTime: the most for [`WifiConfig::max_ppdu`].
    pub const MAX_PPDU: Span = Span::from_micros(5484);
    /// The least for [`WifiConfig::max_ppdu`].
    pub const LEAST_MAX_PPDU: Span = Span::from_micros(300);

    /// The defaults of a standard: its highest rate, fixed, over the OFDM rates where it has them; [`Modulation::new`].
    pub const fn new(standard: Standard) -> Self {
        let limits = standard.aggregate_limits();
        Self {
            standard,
            rate: match standard {
                Standard::B => PhyRate::Mbps11,
                _ => PhyRate::Mbps54,
            },
            modulation: Modulation::new(standard),
            aggregate_frames: match limits {
                Some(limits) => limits.window,
                None => 1,
            },
            max_ppdu: Self::MAX_PPDU,
            rts_threshold: None,
            access_point_window: if limits.is_some() { 63 } else { OFDM_WINDOW.max },
            response_error_rate: Probability::ZERO,
            rate_control: RateControl::Fixed,
            rate_set: RateSet::Ofdm,
            access_point_queue: QueueConfig::fifo(100),
            frame_error_rate: Probability::ZERO,
            retry_limit: 7,
            short_preamble: false,
            protection_rate: PhyRate::Mbps2,
            broadcast_rate: None,
            rules: WifiRules { idle_before_acknowledgement: false, difs_after_collision: false },
        }
    }
}

/// A wired last hop: one link up that the hosts' queues take turns on, one link down.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WiredAccessConfig {
    /// The rate of each direction.
    pub rate: Rate,
    /// The delay of each direction.
    pub delay: Span,
    /// The downlink queue.
    pub queue: QueueConfig,
}

/// The path between the access point and the server.
#[derive(Clone, PartialEq, Debug)]
pub struct PathConfig {
    /// The round-trip time without queues, half of it each way.
    pub rtt: Span,
    /// The rate of each direction.
    pub rate: Rate,
    /// Random loss towards the server.
    pub loss: Probability,
    /// The queue of each direction in packets with the one in service, at least 1.
    pub queue_packets: usize,
}

/// A network that cannot be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigError {
    /// Which part of the network it is about.
    pub about: About,
    /// The field of that part, as a path from it: `queue.packets`; empty where it is about all of it.
    pub field: String,
    /// What it said.
    pub value: String,
    /// What it may say.
    pub accepted: String,
}

/// A part of a network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum About {
    /// All of it.
    Network,
    /// A host, by its number.
    Host(usize),
    /// What the hosts share.
    Access,
    /// The path behind it.
    Path,
    /// A link, by its number.
    Link(usize),
    /// A change, by its place in [`Config::changes`].
    Change(usize),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.about {
            About::Network => Ok(()),
            About::Host(host) => write!(f, "hosts[{host}]"),
            About::Access => f.write_str("access"),
            About::Path => f.write_str("path"),
            About::Link(link) => write!(f, "links[{link}]"),
            About::Change(change) => write!(f, "changes[{change}]"),
        }?;
        let dot = if self.about == About::Network || self.field.is_empty() { "" } else { "." };
        write!(f, "{dot}{} is {}; accepted: {}", self.field, self.value, self.accepted)
    }
}

impl ConfigError {
    /// The same of a part of the network.
    pub(crate) fn of(about: About) -> impl Fn(Self) -> Self {
        move |error| Self { about, ..error }
    }
}

impl std::error::Error for ConfigError {}

impl Config {
    /// A network of these hosts that never changes.
    pub const fn new(hosts: Vec<HostConfig>, topology: Topology) -> Self {
        Self { hosts, topology, changes: Vec::new() }
    }

    /// Whether its hosts are on Wi-Fi whose transmissions carry several packets: 802.11n and later.
    pub const fn aggregates(&self) -> bool {
        match &self.topology {
            Topology::AccessPoint { access: AccessConfig::Wifi(wifi), .. } => wifi.standard.aggregates(),
            _ => false,
        }
    }

    /// Whether the network can be built.
    ///
    /// # Errors
    /// The first field that cannot be, and what it may say.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let hosts = self.hosts.len();
        let others = match &self.topology {
            Topology::AccessPoint { .. } => 1,
            Topology::Links(links) => {
                check((2..=1024).contains(&links.nodes), "nodes", || {
                    (format!("{} nodes", links.nodes), "2 to 1024 nodes".into())
                })?;
                links.nodes
            }
        };
        let most = usize::from(u16::MAX) - others;
        check((1..=most).contains(&hosts), "hosts", || (format!("{hosts} hosts"), format!("1 to {most} hosts")))?;
        match &self.topology {
            Topology::AccessPoint { access, path } => {
                access.validate().map_err(ConfigError::of(About::Access))?;
                let path_can_be =
                    check_queue("queue_packets", path.queue_packets).and_then(|()| check_rate("rate", path.rate));
                path_can_be.map_err(ConfigError::of(About::Path))?;
            }
            Topology::Links(links) => links.validate(hosts)?,
        }
        let numbered = self.hosts.iter().enumerate();
        numbered
            .into_iter()
            .try_for_each(|(index, host)| host.validate(&self.topology).map_err(ConfigError::of(About::Host(index))))?;
        self.validate_changes()
    }
}

impl AccessConfig {
    fn validate(&self) -> Result<(), ConfigError> {
        match self {
            Self::Wifi(wifi) => wifi.validate(),
            Self::Wired(wired) => {
                wired.queue.validate("queue")?;
                check_rate("rate", wired.rate)
            }
        }
    }
}

impl HostConfig {
    fn validate(&self, topology: &Topology) -> Result<(), ConfigError> {
        check_queue("queue_packets", self.queue_packets)?;
        if let Some(rate) = self.rate {
            let none = |why: &str| check(false, "rate", || (rate.to_string(), format!("none, for {why}")));
            match topology {
                Topology::AccessPoint { access: AccessConfig::Wifi(wifi), .. } => wifi.check_rate(rate, &wifi.rates()),
                Topology::AccessPoint { .. } => none("the hosts behind a wired access share its rate"),
                Topology::Links(_) => none("hosts on a node send at the rates of its links"),
            }?;
        }
        if let Some(mcs) = self.mcs {
            match topology {
                Topology::AccessPoint { access: AccessConfig::Wifi(wifi), .. } => wifi.check_mcs("mcs", mcs),
                _ => check(false, "mcs", || (mcs.to_string(), "none, for only hosts on Wi-Fi have an MCS".into())),
            }?;
        }
        if let Some(errors) = self.frame_error_rate {
            let on_wifi = matches!(topology, Topology::AccessPoint { access: AccessConfig::Wifi(_), .. });
            check(on_wifi, "frame_error_rate", || {
                (errors.get().to_string(), "none, for only Wi-Fi has frames".into())
            })?;
        }
        let (shortest, longest) = self.turnaround;
        check(shortest <= longest, "turnaround", || {
            (format!("{shortest} to {longest}"), "the shorter one, then the longer one".into())
        })?;
        if let Some(HostPath { rtt: (shortest, longest), .. }) = self.path {
            check(shortest <= longest, "path.rtt", || {
                (format!("{shortest} to {longest}"), "the shorter one, then the longer one".into())
            })?;
            check(matches!(topology, Topology::AccessPoint { .. }), "path", || {
                (format!("{shortest} to {longest}"), "none, for the delays of links are theirs".into())
            })?;
        }
        Ok(())
    }
}

impl LinksConfig {
    /// Which link leads from each node towards each other.
    pub(crate) fn routes(&self) -> Routes {
        let ends: Vec<_> = self.links.iter().map(|link| link.ends).collect();
        Routes::new(self.nodes, &ends)
    }

    fn validate(&self, hosts: usize) -> Result<(), ConfigError> {
        let nodes = || format!("nodes 0 to {}", self.nodes - 1);
        check(self.attached.len() == hosts, "attached", || {
            (format!("for {} hosts", self.attached.len()), format!("a node for each of the {hosts} hosts"))
        })?;
        for (host, &node) in self.attached.iter().enumerate() {
            check(node < self.nodes, &format!("attached[{host}]"), || (format!("node {node}"), nodes()))?;
        }
        check(self.links.len() <= 32_768, "links", || (format!("{} links", self.links.len()), "at most 32768".into()))?;
        for (index, link) in self.links.iter().enumerate() {
            let (one, other) = link.ends;
            let ends = check(one < self.nodes && other < self.nodes && one != other, "ends", || {
                (format!("nodes {one} and {other}"), format!("two different ones of {}", nodes()))
            });
            let directions = || link.forth.validate("forth").and_then(|()| link.back.validate("back"));
            ends.and_then(|()| directions()).map_err(ConfigError::of(About::Link(index)))?;
        }
        let unreachable = self.routes().unreachable();
        check(unreachable.is_none(), "links", || {
            let node = unreachable.unwrap_or_default();
            (
                format!("without a way from node 0 to node {node}"),
                "links that connect every node with every other".into(),
            )
        })
    }
}

impl DirectionConfig {
    fn validate(&self, field: &str) -> Result<(), ConfigError> {
        self.queue.validate(&format!("{field}.queue"))?;
        check_rate(&format!("{field}.rate"), self.rate)
    }
}

impl WifiConfig {
    /// The buffer of the agreements on Block Ack in frames: 64 unless A-MPDUs are longer, and 1 in 802.11b and 802.11g.
    pub(crate) fn block_ack_window(&self) -> u16 {
        match self.standard.aggregate_limits() {
            Some(_) if self.aggregate_frames <= SHORT_WINDOW => SHORT_WINDOW,
            Some(limits) => limits.window,
            None => 1,
        }
    }

    /// The rates that stations of this medium can send at, beside its MCSs.
    pub(crate) fn rates(&self) -> Vec<PhyRate> {
        let possible = |rate: &PhyRate| match self.standard {
            Standard::B => !rate.is_ofdm(),
            Standard::G => rate.is_ofdm() || self.rate_set == RateSet::All,
            Standard::Bg => true,
            Standard::N | Standard::Ac | Standard::Ax => rate.is_ofdm(),
        };
        PhyRate::ALL.into_iter().filter(possible).collect()
    }

    /// Whether a station's rate is one of these.
    pub(crate) fn check_rate(&self, rate: Rate, accepted: &[PhyRate]) -> Result<(), ConfigError> {
        let known = PhyRate::from_rate(rate).is_some_and(|rate| accepted.contains(&rate));
        check(known && !self.standard.aggregates(), "rate", || {
            let none = "none, for hosts of 802.11n and later have an MCS";
            (rate.to_string(), if self.standard.aggregates() { none.into() } else { list(accepted) })
        })
    }

    /// Whether a station's MCS is one of the standard's.
    pub(crate) fn check_mcs(&self, field: &str, mcs: u8) -> Result<(), ConfigError> {
        let Modulation { width, spatial_streams, .. } = self.modulation;
        let mut accepted = Modulation::mcss(self.standard, width, spatial_streams);
        check(accepted.any(|accepted| accepted == mcs), field, || {
            let accepted = Modulation::mcss(self.standard, width, spatial_streams).map(|mcs| mcs.to_string());
            let accepted = accepted.collect::<Vec<_>>().join(", ");
            let none = "none, for only hosts of 802.11n and later have an MCS";
            (mcs.to_string(), if accepted.is_empty() { none.into() } else { accepted })
        })
    }

    fn validate(&self) -> Result<(), ConfigError> {
        self.access_point_queue.validate("access_point_queue")?;
        if let Some(limits) = self.standard.aggregate_limits() {
            self.validate_modulation()?;
            check((1..=limits.window).contains(&self.aggregate_frames), "aggregate_frames", || {
                (self.aggregate_frames.to_string(), format!("1 to {} frames", limits.window))
            })?;
            check((Self::LEAST_MAX_PPDU..=Self::MAX_PPDU).contains(&self.max_ppdu), "max_ppdu", || {
                (in_us(self.max_ppdu), format!("{} to {}", in_us(Self::LEAST_MAX_PPDU), in_us(Self::MAX_PPDU)))
            })?;
            check(self.rate_control == RateControl::Fixed, "rate_control", || {
                (format!("\"{:?}\"", self.rate_control).to_lowercase(), "\"fixed\"".into())
            })?;
        } else {
            check(self.aggregate_frames == 1, "aggregate_frames", || {
                (self.aggregate_frames.to_string(), "1, for only 802.11n and later have A-MPDUs".into())
            })?;
        }
        let least = self.standard.window(self.rate).min;
        let window = self.access_point_window;
        check((window + 1).is_power_of_two() && (least..=1023).contains(&window), "access_point_window", || {
            (window.to_string(), format!("one less than a power of 2, from {least} to 1023"))
        })?;
        check(self.standard != Standard::Bg || self.rts_threshold.is_none(), "rts_threshold", || {
            let bytes = self.rts_threshold.map_or(String::new(), |bytes| bytes.to_string());
            (bytes, "none, for 802.11bg protects its frames by CTS-to-self".into())
        })?;
        let rates = self.rates();
        let one_of = |field: &str, rate: PhyRate, accepted: &[PhyRate]| {
            check(accepted.contains(&rate), field, || (rate.to_string(), list(accepted)))
        };
        one_of("rate", self.rate, &rates)?;
        if let Some(rate) = self.broadcast_rate {
            one_of("broadcast_rate", rate, &rates)?;
        }
        let dsss: Vec<_> = PhyRate::ALL.into_iter().filter(|rate| !rate.is_ofdm()).collect();
        one_of("protection_rate", self.protection_rate, &dsss)
    }

    fn validate_modulation(&self) -> Result<(), ConfigError> {
        let Modulation { mcs, spatial_streams, width, guard_interval } = self.modulation;
        let widths = Modulation::widths(self.standard);
        check(widths.contains(&width), "modulation.width", || {
            let accepted: Vec<_> = widths.iter().map(|width| format!("{} MHz", width.mhz())).collect();
            (format!("{} MHz", width.mhz()), accepted.join(", "))
        })?;
        check((1..=Modulation::MOST_STREAMS).contains(&spatial_streams), "modulation.spatial_streams", || {
            (spatial_streams.to_string(), format!("1 to {}", Modulation::MOST_STREAMS))
        })?;
        let intervals = Modulation::guard_intervals(self.standard);
        check(intervals.contains(&guard_interval), "modulation.guard_interval", || {
            let accepted: Vec<_> = intervals.iter().map(|interval| in_us(interval.span())).collect();
            (in_us(guard_interval.span()), accepted.join(", "))
        })?;
        self.check_mcs("modulation.mcs", mcs)
    }
}

impl QueueConfig {
    fn validate(&self, field: &str) -> Result<(), ConfigError> {
        check_queue(&format!("{field}.packets"), self.packets)?;
        let Discipline::FqCodel(parameters) = &self.discipline else { return Ok(()) };
        let at_least_1 = |name: &str, value: u64| {
            check(value >= 1, &format!("{field}.{name}"), || (value.to_string(), "1 or more".into()))
        };
        at_least_1("quantum", parameters.quantum.get())?;
        at_least_1("drop_batch", parameters.drop_batch.into())?;
        check(parameters.interval > Span::ZERO, &format!("{field}.interval"), || {
            ("0 s".into(), "more than 0 s".into())
        })?;
        check((1..=65_536).contains(&parameters.flows), &format!("{field}.flows"), || {
            (parameters.flows.to_string(), "1 to 65536 flows".into())
        })
    }
}

pub(crate) fn check(
    holds: bool,
    field: &str,
    value_and_accepted: impl FnOnce() -> (String, String),
) -> Result<(), ConfigError> {
    if holds {
        return Ok(());
    }
    let (value, accepted) = value_and_accepted();
    Err(ConfigError { about: About::Network, field: field.to_owned(), value, accepted })
}

fn check_queue(field: &str, packets: usize) -> Result<(), ConfigError> {
    check(packets >= 1, field, || (packets.to_string(), "1 packet or more".into()))
}

pub(crate) fn check_rate(field: &str, rate: Rate) -> Result<(), ConfigError> {
    check(rate > Rate::ZERO, field, || (rate.to_string(), "more than 0 Mb/s".into()))
}

fn in_us(span: Span) -> String {
    format!("{} us", span.as_nanos() as f64 / 1e3)
}

fn list(rates: &[PhyRate]) -> String {
    let rates: Vec<_> = rates.iter().map(PhyRate::to_string).collect();
    rates.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: PathConfig = PathConfig {
        rtt: Span::from_millis(4),
        rate: Rate::from_bps(1_000_000_000),
        loss: Probability::ZERO,
        queue_packets: 1000,
    };

    fn config(access: AccessConfig) -> Config {
        Config::new(vec![HostConfig::new(10); 2], Topology::AccessPoint { access, path: PATH })
    }

    #[test]
    fn an_error_names_the_field_its_value_and_what_it_may_be() {
        let mut wrong = config(AccessConfig::Wifi(WifiConfig::new(Standard::B)));
        wrong.hosts[1].rate = Some(Rate::from_mbps(54.0));
        let message = wrong.validate().unwrap_err().to_string();
        assert_eq!(message, "hosts[1].rate is 54 Mb/s; accepted: 1 Mb/s, 2 Mb/s, 5.5 Mb/s, 11 Mb/s");
        let access = AccessConfig::Wifi(WifiConfig::new(Standard::G));
        let path = PathConfig { queue_packets: 0, ..PATH };
        wrong.topology = Topology::AccessPoint { access, path };
        wrong.hosts[1].rate = None;
        assert_eq!(wrong.validate().unwrap_err().to_string(), "path.queue_packets is 0; accepted: 1 packet or more");
        wrong.hosts.clear();
        assert_eq!(wrong.validate().unwrap_err().to_string(), "hosts is 0 hosts; accepted: 1 to 65534 hosts");
    }

    #[test]
    fn a_dsss_rate_in_pure_g_needs_the_whole_rate_set() {
        let mut wifi = WifiConfig { rate: PhyRate::Mbps11, ..WifiConfig::new(Standard::G) };
        assert_eq!(config(AccessConfig::Wifi(wifi.clone())).validate().unwrap_err().field, "rate");
        wifi.rate_set = RateSet::All;
        assert_eq!(config(AccessConfig::Wifi(wifi)).validate(), Ok(()));
    }

    #[test]
    fn only_802_11n_and_later_aggregate() {
        let wifi = WifiConfig { aggregate_frames: 64, ..WifiConfig::new(Standard::G) };
        assert_eq!(config(AccessConfig::Wifi(wifi)).validate().unwrap_err().field, "aggregate_frames");
    }

    #[test]
    fn a_host_behind_a_wired_access_has_no_rate_of_its_own() {
        let queue = QueueConfig::fifo(50);
        let wired = WiredAccessConfig { rate: Rate::from_mbps(100.0), delay: Span::ZERO, queue };
        let mut config = config(AccessConfig::Wired(wired));
        assert_eq!(config.validate(), Ok(()));
        config.hosts[0].rate = Some(Rate::from_mbps(10.0));
        assert_eq!(config.validate().unwrap_err().about, About::Host(0));
    }
}
