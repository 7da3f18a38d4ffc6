//! The configuration of a network.

mod error;
mod validation;

pub use error::{
    ChangeField, ConfigError, DirectionField, Field, HostField, LinkField, NetworkField, PathField, QueueField,
    WifiField,
};
pub(crate) use validation::{check, check_rate, check_snr};

use crate::change::Change;
use crate::impairments::Impairments;
use crate::opportunities::Opportunities;
use crate::queue::QueueConfig;
use crate::routes::Routes;
use crate::wifi::{
    Band, ChannelWidth, GuardInterval, Modulation, OFDM_WINDOW, PhyRate, RateControl, RateSet, SHORT_WINDOW, Standard,
};
use lasthop_units::{Bytes, Probability, Rate, Span, Time};
use std::sync::Arc;

/// A network: its hosts, and their connection.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// The hosts; nodes 0..hosts. At least one, and with the other nodes at most 65535.
    pub hosts: Vec<HostConfig>,
    /// The connection between the hosts.
    pub topology: Topology,
    /// Access points beside each other, and who hears whom; `None`: one access, and all hear all. Wi-Fi only.
    pub cells: Option<Cells>,
    /// Changes at given times, in any order.
    pub changes: Vec<Change>,
    /// Traces that changes refer to.
    pub opportunities: Vec<Arc<Opportunities>>,
}

/// The connection between the hosts.
#[derive(Clone, PartialEq, Debug)]
#[allow(clippy::large_enum_variant, reason = "a run has one")]
pub enum Topology {
    /// All hosts behind one access, and one server behind a path.
    AccessPoint {
        /// The shared last hop.
        access: AccessConfig,
        /// The path between the access point and the server, which is node `hosts.len()`.
        path: PathConfig,
    },
    /// Nodes joined by links; each host is attached to a node.
    Links(LinksConfig),
}

/// Access points with their stations, beside each other. All are set up alike, and one path joins them with the server.
///
/// Its nodes are the hosts, then the access points.
#[derive(Clone, PartialEq, Debug)]
pub struct Cells {
    /// The number of access points, at least 1.
    pub access_points: usize,
    /// By host: the number of its access point, from 0.
    pub of_host: Vec<u16>,
    /// By sender and receiver: entry `sender * nodes + receiver`. Those of a node itself do not matter. A host and its access
    /// point hear each other.
    pub hearing: Vec<Hearing>,
    /// By how many dB a frame must exceed all others together to be received nevertheless. More than 0.
    pub capture_db: f64,
    /// By access point: the round-trip time of the path behind it, instead of the shared one. Not of hosts with a path of
    /// their own. Empty: all have the shared one.
    pub path_rtts: Vec<Option<Span>>,
    /// Stations that go from one access point to another, in the order of time.
    pub roams: Vec<Roam>,
}

/// A station leaves its access point, and is associated with another one after an outage.
#[derive(Clone, PartialEq, Debug)]
pub struct Roam {
    /// The station.
    pub host: usize,
    /// When it leaves; an exchange on the air ends as it began.
    pub at: Time,
    /// The time without any access point, at least [`Roam::LEAST_OUTAGE`].
    pub outage: Span,
    /// The number of its new access point, from 0.
    pub to: u16,
    /// By node: how the station and that node reach each other from the association on. It and its new access point hear each other.
    pub hearing: Vec<Hearing>,
}

impl Roam {
    /// Longer than any exchange: a frame of 1500 bytes at 1 Mb/s, with RTS, CTS and acknowledgement, takes 13.4 ms.
    pub const LEAST_OUTAGE: Span = Span::from_millis(20);

    /// When the station is associated with its new access point.
    pub fn associated(&self) -> Time {
        self.at + self.outage
    }
}

/// How one node's transmissions reach another.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Hearing {
    /// What the other has of them.
    pub level: HearingLevel,
    /// Their power there, in dBm.
    pub dbm: f64,
}

/// What a node has of another's transmissions. Each level has what those before it have.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum HearingLevel {
    /// Nothing.
    Misses,
    /// They disturb what it receives.
    Disturbed,
    /// It senses that the medium is busy.
    Senses,
    /// It receives them, with their duration fields.
    Hears,
}

impl Cells {
    /// All hear all, equally well.
    pub fn in_full_hearing(access_points: usize, of_host: Vec<u16>) -> Self {
        let nodes = of_host.len() + access_points;
        let equal = Hearing { level: HearingLevel::Hears, dbm: 0.0 };
        Self {
            access_points,
            of_host,
            hearing: vec![equal; nodes * nodes],
            capture_db: 10.0,
            path_rtts: Vec::new(),
            roams: Vec::new(),
        }
    }

    /// The nodes: hosts, then access points.
    pub fn nodes(&self) -> usize {
        self.of_host.len() + self.access_points
    }

    /// By node: the number of its access point.
    pub(crate) fn cell_of_nodes(&self) -> impl Iterator<Item = usize> + '_ {
        self.of_host.iter().map(|&cell| usize::from(cell)).chain(0..self.access_points)
    }

    /// How `from` reaches `to`.
    pub fn hearing(&self, from: usize, to: usize) -> Hearing {
        self.hearing[from * self.nodes() + to]
    }

    /// The round-trip time of the path behind an access point, if that has its own.
    pub fn path_rtt(&self, access_point: u16) -> Option<Span> {
        self.path_rtts.get(usize::from(access_point)).copied().flatten()
    }

    /// The station is where this roam has taken it.
    pub(crate) fn follow(&mut self, roam: usize) {
        let Roam { host, to, ref hearing, .. } = self.roams[roam];
        let hearing = hearing.clone();
        self.of_host[host] = to;
        (0..self.nodes()).for_each(|other| self.set(host, other, hearing[other]));
    }

    /// Sets how two nodes reach each other.
    pub fn set(&mut self, one: usize, other: usize, hearing: Hearing) {
        let nodes = self.nodes();
        self.hearing[one * nodes + other] = hearing;
        self.hearing[other * nodes + one] = hearing;
    }

    /// Sets the level of two nodes, each way.
    pub fn set_level(&mut self, one: usize, other: usize, level: HearingLevel) {
        let dbm = self.hearing(one, other).dbm;
        self.set(one, other, Hearing { level, dbm });
    }
}

/// One host. [`HostConfig::new`] gives the defaults.
#[derive(Clone, PartialEq, Debug)]
pub struct HostConfig {
    /// The host's transmit queue in packets, including the one in service; at least 1. Unused with links: there packets
    /// wait in the queue of their first link.
    pub queue_packets: usize,
    /// The station's standard, one of the access point's or older: at 2.4 GHz 802.11b, 802.11g, 802.11n, 802.11ax; at 5
    /// GHz 802.11n, 802.11ac, 802.11ax. `None` = the access point's. Access points of 802.11n and later only; in
    /// 802.11bg the rate says it.
    pub standard: Option<Standard>,
    /// The host's own PHY rate in both directions (with rate control, the highest one); `None` = the access's, or the
    /// highest of its own standard. 802.11b and 802.11g only. In 802.11bg a host with a DSSS rate (1, 2, 5.5 or 11 Mb/s)
    /// is an 802.11b station.
    pub rate: Option<Rate>,
    /// The host's own MCS in both directions (with rate control, the highest one); `None` = the access's, or the highest
    /// below it that the host's standard, width and streams allow. 802.11n and later only.
    pub mcs: Option<u8>,
    /// The host's own channel width in both directions (with rate control, the widest one), at most the access's; `None`
    /// = the access's, or the widest of its own standard. 802.11n and later only.
    pub width: Option<ChannelWidth>,
    /// The host's own streams in both directions (with rate control, the most), at most the access's; `None` = the
    /// access's. 802.11n and later only.
    pub spatial_streams: Option<u8>,
    /// The signal-to-noise ratio of both directions in dB, of one spatial stream over 20 MHz, -10 to 60. It determines
    /// the losses of data, requests and responses by their modes. `None` = the error rates given here or for the
    /// access. On access points of 802.11n and later only, not of 802.11b stations, and not with an error rate of the
    /// host's own.
    pub snr_db: Option<f64>,
    /// The error probability of data frames to and from this host; `None` = the access's. Wi-Fi only.
    pub frame_error_rate: Option<Probability>,
    /// The round-trip time of this host's own path, instead of the shared one. Not with links.
    pub path: Option<HostPath>,
    /// The jitter of this host's own path, each way; `None` = the shared one's. Not with links.
    pub path_jitter: Option<Span>,
    /// The shortest and the longest time from reception at its MAC to delivery; see `turnaround.rs`. Drawn uniformly
    /// for each packet; packets keep their order. Only Wi-Fi uses it. Default: none.
    pub turnaround: (Span, Span),
    /// Whether [`Network::take_departed`](crate::Network::take_departed) reports packets of this host that have left
    /// its transmit queue.
    pub reports_departures: bool,
    /// Whether it sends nothing and has no packets sent to it, broadcasts excepted. Then it changes no other host's
    /// random streams ([`numbers`](crate::random::numbers)). Default: no.
    pub is_idle: bool,
}

impl HostConfig {
    /// A host with this transmit queue, in packets, and no other settings of its own.
    pub const fn new(queue_packets: usize) -> Self {
        Self {
            queue_packets,
            standard: None,
            rate: None,
            mcs: None,
            width: None,
            spatial_streams: None,
            snr_db: None,
            frame_error_rate: None,
            path: None,
            path_jitter: None,
            turnaround: (Span::ZERO, Span::ZERO),
            reports_departures: false,
            is_idle: false,
        }
    }
}

/// A host's own path: it shares the rate, the queues and the loss of the common path, but not the round-trip time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostPath {
    /// The shortest and the longest round-trip time without queues, half of it each way. Drawn uniformly.
    pub rtt: (Span, Span),
    /// Duration of a drawn value; [`Span::ZERO`] = for ever.
    pub change_every: Span,
}

/// Nodes joined by links. Each host is attached to a node. Node k is itself [`NodeId`](crate::NodeId) `hosts.len() +
/// k`, so that any node can have a server.
///
/// A packet takes a path with the fewest links. Among equals, each node uses the link that is first in `links`. Hosts
/// on one node reach each other at once, and a broadcast reaches only them.
#[derive(Clone, PartialEq, Debug)]
pub struct LinksConfig {
    /// The number of nodes, 2 to 1024: each node stores the next link to each other node.
    pub nodes: usize,
    /// The node of each host.
    pub attached: Vec<usize>,
    /// The links, which must connect all nodes. At most 32768.
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
    /// Propagation delay: from the end of transmission to arrival.
    pub delay: Span,
    /// The queue in front of the transmitter.
    pub queue: QueueConfig,
    /// The share of packets that is lost at random.
    pub loss: Probability,
    /// The place of the loss.
    pub loss_at: LossAt,
    /// Bursts of these losses, jitter, reordering, duplicates.
    pub impairments: Impairments,
}

/// Where a link direction loses packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LossAt {
    /// Before the queue: a lost packet takes no room in the queue and no transmission time.
    BeforeQueue,
    /// After the queue: a transmission error.
    AfterQueue,
}

/// The shared last hop.
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
    /// The PHY of the access point, and of stations without one of their own.
    pub standard: Standard,
    /// The channel's band: 2.4 GHz with 802.11b and 802.11g, 5 GHz with 802.11ac; else 5 GHz by default.
    pub band: Band,
    /// 802.11b and 802.11g: the PHY rate of unicast data frames; with rate control, the highest rate and the first one
    /// tried.
    pub rate: PhyRate,
    /// 802.11n and later: the modulation of data. With rate control: the highest MCS, the most streams and the widest
    /// channel.
    pub modulation: Modulation,
    /// The rate control: one of [`RateControl::of`].
    pub rate_control: RateControl,
    /// The rates for rate control. 802.11b stations always choose from the DSSS rates.
    pub rate_set: RateSet,
    /// The access point's downlink queue. Default: drop-tail, 100 packets.
    pub access_point_queue: QueueConfig,
    /// The most frames in an A-MPDU: 1 to 64; in 802.11ax to 256, the default; 1 in 802.11b and 802.11g. In 802.11ax, a
    /// value up to 64 also makes the Block Ack window 64, and the Block Ack shorter.
    pub aggregate_frames: u16,
    /// The longest A-MPDU, 300 us to 5484 us (aPPDUMaxTime, the default).
    pub max_ppdu: Span,
    /// The most bytes of an A-MSDU, which joins packets to the same receiver in one MPDU; zero = no A-MSDUs, the default.
    /// At most 4065 in 802.11n, else 11424. Only 802.11n and later.
    pub amsdu_bytes: Bytes,
    /// The least time from the start of an MPDU of an A-MPDU to that of the next, 0 to 16 us: what receivers ask for.
    /// Default 0. Only 802.11n and later.
    pub start_spacing: Span,
    /// Unicast transmissions with more bytes than this are preceded by RTS and CTS; `None` = never, the default. Not in
    /// 802.11bg, which has CTS-to-self.
    pub rts_threshold: Option<Bytes>,
    /// Whether RTS and CTS precede a transmission that repeats one without response, of whatever size. Default: no. Not
    /// in 802.11bg.
    pub rts_on_retry: bool,
    /// The access point's CWmax: one less than a power of 2, from its CWmin to 1023. Default: 1023; in 802.11n and
    /// later 63, hostapd's value for best effort. Stations have 1023.
    pub access_point_window: u32,
    /// The access point's TXOP limit in best effort; zero = one PPDU, the default. At most [`WifiConfig::MAX_TXOP`].
    /// Only 802.11n and later.
    pub access_point_txop: Span,
    /// The error probability of a data frame without a collision, independent of size and rate. In an A-MPDU it applies
    /// to each frame. Not for hosts with an SNR. Default 0.
    pub frame_error_rate: Probability,
    /// The loss probability of a response without a collision (ACK, Block Ack, CTS). Not for hosts with an SNR. Default
    /// 0.
    pub response_error_rate: Probability,
    /// The most transmissions of a unicast frame; 0 = no limit. Default 7 (dot11ShortRetryLimit).
    pub retry_limit: u8,
    /// Short DSSS preambles (except at 1 Mb/s). Default: long ones, mandatory with one old station present.
    pub short_preamble: bool,
    /// With 802.11b stations: the DSSS rate of the CTS-to-self, and of RTS and CTS. Default 2 Mb/s, the highest basic DSSS
    /// rate.
    pub protection_rate: PhyRate,
    /// The rate of broadcast frames; `None` = the lowest basic rate: 1 Mb/s if DSSS rates are in use, else 6 Mb/s.
    pub broadcast_rate: Option<PhyRate>,
    /// Rules on which models of the medium differ. Default: [`WifiRules::default`].
    pub rules: WifiRules,
}

/// Rules that the standard leaves open, or that other simulators read differently. ns-3 3.44 differs from our default
/// in both (docs/results/validation.md).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WifiRules {
    /// Whether a station may see the medium as idle in the SIFS before its own acknowledgement. If so, an answer queued
    /// then is sent a DIFS after that acknowledgement, without backoff (ns-3's
    /// `ChannelAccessManager::NeedBackoffUponAccess`).
    pub idle_before_acknowledgement: bool,
    /// Whether bystanders wait DIFS after a collision instead of EIFS (802.11-2020 §10.3.2.3.7).
    pub difs_after_collision: bool,
}

impl WifiConfig {
    /// aPPDUMaxTime: the maximum of [`WifiConfig::max_ppdu`].
    pub const MAX_PPDU: Span = Span::from_micros(5484);
    /// The minimum of [`WifiConfig::max_ppdu`].
    pub const LEAST_MAX_PPDU: Span = Span::from_micros(300);
    /// The maximum of [`WifiConfig::start_spacing`].
    pub const MAX_START_SPACING: Span = Span::from_micros(16);
    /// The maximum of [`WifiConfig::access_point_txop`]: 1023 units of 32 us.
    pub const MAX_TXOP: Span = Span::from_micros(32_736);

    /// The defaults of a standard: its highest rate, fixed; the OFDM rates if it has them; [`Modulation::new`].
    pub const fn new(standard: Standard) -> Self {
        let limits = standard.aggregate_limits();
        Self {
            standard,
            band: match standard {
                Standard::B | Standard::G | Standard::Bg => Band::Ghz2_4,
                Standard::N | Standard::Ac | Standard::Ax => Band::Ghz5,
            },
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
            amsdu_bytes: Bytes::ZERO,
            start_spacing: Span::ZERO,
            rts_threshold: None,
            rts_on_retry: false,
            access_point_txop: Span::ZERO,
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

/// A wired last hop: one link up, which serves the hosts' queues in turn, and one link down.
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
    /// The share of packets that is lost at random towards the server.
    pub loss: Probability,
    /// The same from the server.
    pub back_loss: Probability,
    /// Of each direction, towards the server and from it: bursts of these losses, jitter, reordering, duplicates.
    pub impairments: [Impairments; 2],
    /// The queue of each direction in packets, including the one in service; at least 1.
    pub queue_packets: usize,
}

impl Config {
    /// A network of these hosts without changes.
    pub const fn new(hosts: Vec<HostConfig>, topology: Topology) -> Self {
        Self { hosts, topology, cells: None, changes: Vec::new(), opportunities: Vec::new() }
    }

    /// Whether packets of one host overtake each other on a wire.
    pub fn reorders(&self) -> bool {
        let any = |mut all: std::slice::Iter<'_, Impairments>| {
            all.any(|one| one.reorder > Probability::ZERO || one.jitter_reorders)
        };
        match &self.topology {
            Topology::AccessPoint { path, .. } => any(path.impairments.iter()),
            Topology::Links(links) => {
                links.links.iter().any(|link| any([link.forth.impairments, link.back.impairments].iter()))
            }
        }
    }

    /// Whether its Wi-Fi transmissions carry several packets: 802.11n and later.
    pub const fn aggregates(&self) -> bool {
        match &self.topology {
            Topology::AccessPoint { access: AccessConfig::Wifi(wifi), .. } => wifi.standard.aggregates(),
            _ => false,
        }
    }
}

impl LinksConfig {
    /// The next link from each node to each other.
    pub(crate) fn routes(&self) -> Routes {
        let ends: Vec<_> = self.links.iter().map(|link| link.ends).collect();
        Routes::new(self.nodes, &ends)
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

    /// This medium as the station and the access point use it between each other: what both of them can do.
    pub(crate) fn of_station(&self, host: &HostConfig) -> Self {
        let standard = host.standard.unwrap_or(self.standard);
        let usual = Self::new(standard);
        let limits = standard.aggregate_limits();
        let Modulation { width, spatial_streams, mcs, guard_interval } = self.modulation;
        let offered = Modulation::widths(standard).iter().rev().find(|&&offered| offered <= width);
        let width = host.width.or(offered.copied()).unwrap_or(width);
        let spatial_streams = host.spatial_streams.unwrap_or(spatial_streams);
        let highest = Modulation::mcss(standard, width, spatial_streams).take_while(|&one| one <= mcs).last();
        let guard_intervals = Modulation::guard_intervals(standard);
        let is_older = standard != self.standard;
        Self {
            standard,
            rate: host.rate.and_then(PhyRate::from_rate).unwrap_or(if is_older { usual.rate } else { self.rate }),
            modulation: Modulation {
                width,
                spatial_streams,
                mcs: host.mcs.or(highest).unwrap_or(mcs),
                guard_interval: match guard_intervals.is_empty() || guard_intervals.contains(&guard_interval) {
                    true => guard_interval,
                    false => GuardInterval::Ns800,
                },
            },
            rate_control: match self.rate_control {
                RateControl::MinstrelHt if limits.is_none() => RateControl::Minstrel,
                other => other,
            },
            aggregate_frames: limits.map_or(1, |limits| self.aggregate_frames.min(limits.window)),
            amsdu_bytes: limits.map_or(Bytes::ZERO, |limits| self.amsdu_bytes.min(limits.amsdu_bytes)),
            ..self.clone()
        }
    }

    /// The channel widths of a standard in this band.
    fn widths(&self, standard: Standard) -> impl Iterator<Item = ChannelWidth> {
        let widest = if self.band == Band::Ghz2_4 { ChannelWidth::Mhz40 } else { ChannelWidth::Mhz160 };
        Modulation::widths(standard).iter().copied().filter(move |&width| width <= widest)
    }

    /// The available PHY rates of this medium, apart from its MCSs.
    pub(crate) fn rates(&self) -> Vec<PhyRate> {
        let possible = |rate: &PhyRate| match self.standard {
            Standard::B => !rate.is_ofdm(),
            Standard::G => rate.is_ofdm() || self.rate_set == RateSet::All,
            Standard::Bg => true,
            Standard::N | Standard::Ac | Standard::Ax => rate.is_ofdm() || self.band == Band::Ghz2_4,
        };
        PhyRate::ALL.into_iter().filter(possible).collect()
    }
}
