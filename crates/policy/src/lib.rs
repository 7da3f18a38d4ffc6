//! What the limits of each connection should be, decided once per tick (0.5 s).
//!
//! A [`Policy`] gets an [`Observation`] (this host's connections, and what its peers report) and returns a
//! [`Decision`]: limits for each connection, with the [`Reason`] in words. It applies nothing, logs nothing and reads
//! no clock; the host agent and the simulator call the same code. The [`governor`] is what is around a policy at each tick, and
//! [`activity`] says which connections count as sending.
//!
//! A new policy is a file, with its `mod`, and a line in the list below (docs/guide/new-policy.md).
#![deny(clippy::disallowed_methods)]

pub mod activity;
mod budget;
mod count;
mod fixed;
mod formula;
pub mod governor;
mod keceli;
mod lasthop;
mod latch;
#[macro_use]
mod list;
mod reason;
mod settings;
mod share;
mod table;

pub use count::Count;
pub use fixed::Fixed;
pub use formula::Formula;
pub use keceli::Keceli;
pub use lasthop::Lasthop;
pub use latch::Start;
pub use reason::Reason;
pub use settings::{Cap, PeerLatch, PolicySettings, RttReading, SettingsError, TableIndex};
pub use share::Share;
pub use table::{Row, Table, WindowTable};

use lasthop_laws::bound::Bound;
use lasthop_peers::{Neighbourhood, Word};
use lasthop_units::{Bytes, Rate, Span, Time};

/// Between two decisions (hayakawa: "The communication situation is checked approximately every 0.5 seconds").
pub const TICK: Span = Span::from_millis(500);
/// How long a bound holds if it is not renewed: three ticks, so that it lapses within 2 s of a killed agent's last one.
pub const LEASE: Span = Span::from_millis(1500);

/// What policies look at that compute a share of the bandwidth.
const SHARE: &[&str] = &["bandwidth_max_mbps", "segment_bytes", "maximum_terminals"];
/// Those of them whose bandwidth falls with the number of terminals.
const FALL: &[&str] = &["exponent"];
/// Those that begin when an RTT has risen.
const RISE: &[&str] = &["enable_ratio", "enable_excess_ms", "release_ratio", "rtt"];
/// Those with a table.
const TABLE: &[&str] = &["window_table", "window_rows", "table_index", "cap", "lower_limit"];
/// All but `none`.
const EVERY: &[&str] = &["minimum_segments"];

policies! {
    #[default]
    None = "none", settles in 0 s, "nothing",
        [], |_| Box::new(Nothing);
    Fixed = "fixed", settles in 0 s, "a constant for each host (`bound_segments`)",
        [EVERY, &["bound_segments", "bound_pacing_mbps"]], |settings| Box::new(Fixed::new(settings));
    // Its first look at the number of terminals.
    Count = "count", settles in 10 s, "a window for each number of terminals: the first generation of the middleware (WiMob 2013, as told by [hayakawa])",
        [EVERY, SHARE, FALL, &["count_segments", "count_rtt_ms", "adjust_s"]], |settings| Box::new(Count::new(settings));
    Table = "table", settles in 0 s, "the smaller of a share of the bandwidth and a table over the backlog: [shimada]'s OLD",
        [EVERY, SHARE, FALL, RISE, TABLE], |settings| Box::new(Table::new(settings, false));
    Formula = "formula", settles in 0 s, "a share of the bandwidth-delay product while RTTs say that the access point is congested: [hayakawa] eqs. 1-5",
        [EVERY, SHARE, FALL, RISE, &["cut_ratio"]], |settings| Box::new(Formula::new(settings));
    Cooperative = "cooperative", settles in 0 s, "as `table`, begun by any terminal's RTT: [shimada]'s NEW1",
        [EVERY, SHARE, FALL, RISE, TABLE, &["peer_latch"]], |settings| Box::new(Table::new(settings, true));
    CooperativeLoose = "cooperative-loose", settles in 0 s, "as `cooperative`, with a looser table: [shimada]'s NEW2",
        [EVERY, SHARE, FALL, RISE, TABLE, &["peer_latch"]], |settings| Box::new(Table::new(settings, true));
    Keceli = "keceli", settles in 0 s, "a limit for each flow that the access point's queue can bear ([Keceli, Inan, Ayanoglu](https://arxiv.org/abs/0806.1089))",
        [EVERY, SHARE, &["access_queue_packets", "segments_per_ack"]], |settings| Box::new(Keceli::new(settings));
    // It looks on for 10 s, and then the first queues drain: up to 30 s behind an access point that has fallen back to slow rates.
    Lasthop = "lasthop", settles in 40 s, "one rate for all hosts, agreed on by beacons and moved by the common queue: ours",
        [EVERY], |settings| Box::new(Lasthop::new(settings));
}

/// Something that decides the limits of a host's connections.
pub trait Policy {
    /// Decides for every connection in `observation`, in their order. What is remembered of a connection is forgotten
    /// when an observation comes without it.
    fn on_tick(&mut self, observation: &Observation<'_>) -> Decision;

    /// What the peers are told beyond what the connections show, as of the last tick. Not told where nothing is applied.
    fn word(&self) -> Option<Word> {
        None
    }

    /// What it makes of this host, as of the last tick, for those who watch it; `None`: it has nothing to show.
    fn state(&self) -> Option<PolicyState> {
        None
    }
}

/// What a policy shows of itself; `None`: not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PolicyState {
    /// What each host may send, payload.
    pub common_rate: Option<Rate>,
    /// What this host gets, payload.
    pub delivered: Option<Rate>,
    /// What it got while nothing was controlled, payload.
    pub free: Option<Rate>,
    /// RTT − lowest RTT, the mean over its busy connections.
    pub excess: Option<Span>,
    /// It does without control on purpose.
    pub released: bool,
    /// It finds that control costs more than it gives.
    pub harmed: bool,
}

/// Names one connection of this host for as long as it lives; never given to another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u64);

/// One connection as it is at the tick. Fill in what is known over [`Default`]: policies to come may look at more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowObservation {
    /// Which connection.
    pub id: FlowId,
    /// Smoothed RTT; `None` before the first sample.
    pub srtt: Option<Span>,
    /// Lowest RTT; `None` before the first sample.
    pub min_rtt: Option<Span>,
    /// The congestion window.
    pub cwnd_segments: u32,
    /// Whether it is sending, as [`crate::activity`] defines it.
    pub busy: bool,
    /// RTT of the newest segment acknowledged: unlike that of the oldest it is free of the receiver's waiting for a second segment.
    /// `None` before the first sample.
    pub newest_rtt: Option<Span>,
    /// Bytes acknowledged since the connection began.
    pub acked: Bytes,
    /// Segments sent and not acknowledged.
    pub in_flight_segments: u32,
    /// The application has written more than has been sent.
    pub backlogged: bool,
    /// Payload of a full segment, in bytes; 0: not known.
    pub mss_bytes: u32,
}

/// All that a policy may base its decision on.
#[derive(Clone, Copy, Debug)]
pub struct Observation<'a> {
    /// The time of the tick.
    pub now: Time,
    /// This host's connections.
    pub flows: &'a [FlowObservation],
    /// The other stations behind the same access point.
    pub peers: &'a Neighbourhood,
}

/// What to apply until the next tick.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// One for each connection of the observation, in its order.
    pub flows: Vec<FlowDecision>,
    /// Limits for connections that come up before the next tick.
    pub new_flows: Option<Bound>,
}

/// What to apply to one connection.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowDecision {
    /// Which connection.
    pub id: FlowId,
    /// Its limits; `None`: none.
    pub bound: Option<Bound>,
    /// Since when it is under control, and what put it there; `None`: it is not.
    pub enabled: Option<Enabled>,
    /// Why.
    pub reason: Reason,
}

/// How a connection came under control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enabled {
    /// When.
    pub at: Time,
    /// By what.
    pub by: Trigger,
}

/// What puts a connection under control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trigger {
    /// Nothing in particular: the policy controls every connection from its beginning.
    Always,
    /// The connection's own RTT.
    OwnRtt,
    /// The RTT of a peer, as it reports, or of another connection of this host (shimada §5.2: "at least one substantial
    /// RTT increase in the terminals around the AP").
    Peer,
}

impl FlowDecision {
    /// Of a connection with these limits and the reason for them, or none for this reason.
    fn new(id: FlowId, enabled: Option<Enabled>, limits: Result<(Bound, Reason), Reason>) -> Self {
        let (bound, reason) = match limits {
            Ok((bound, reason)) => (Some(bound), reason),
            Err(reason) => (None, reason),
        };
        Self { id, bound, enabled, reason }
    }

    /// Since when it is under control; `None`: it is not.
    pub fn enabled_at(&self) -> Option<Time> {
        self.enabled.map(|enabled| enabled.at)
    }
}

impl FlowObservation {
    /// RTT / lowest RTT (hayakawa eqs. 1 and 5); `None` before both are known.
    pub fn ratio(&self) -> Option<f64> {
        self.srtt?.over(self.min_rtt?)
    }
}

impl Observation<'_> {
    /// How many of this host's connections are sending.
    pub fn busy_flows(&self) -> u32 {
        u32::try_from(self.flows.iter().filter(|flow| flow.busy).count()).unwrap_or(u32::MAX)
    }
}

/// The policy `none`: no limits, ever.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nothing;

impl Policy for Nothing {
    fn on_tick(&mut self, observation: &Observation<'_>) -> Decision {
        let unbounded =
            |flow: &FlowObservation| FlowDecision { id: flow.id, bound: None, enabled: None, reason: Reason::NoPolicy };
        Decision { flows: observation.flows.iter().map(unbounded).collect(), new_flows: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_none_bounds_nothing() {
        let flow = FlowObservation {
            id: FlowId(7),
            srtt: Some(Span::from_secs(12)),
            min_rtt: Some(Span::from_millis(256)),
            cwnd_segments: 570,
            busy: true,
            ..FlowObservation::default()
        };
        let decision =
            Nothing.on_tick(&Observation { now: Time::ZERO, flows: &[flow], peers: &Neighbourhood::alone() });
        assert_eq!(decision.new_flows, None);
        assert_eq!(decision.flows.len(), 1);
        assert_eq!((decision.flows[0].id, decision.flows[0].bound), (FlowId(7), None));
    }

    #[test]
    fn the_ratio_is_current_over_lowest_rtt() {
        let mut flow = FlowObservation {
            id: FlowId(1),
            srtt: Some(Span::from_millis(1536)),
            min_rtt: Some(Span::from_millis(256)),
            cwnd_segments: 1,
            busy: true,
            ..FlowObservation::default()
        };
        assert_eq!(flow.ratio(), Some(6.0)); // 1536 / 256
        flow.min_rtt = Some(Span::ZERO);
        assert_eq!(flow.ratio(), None);
        flow.min_rtt = None;
        assert_eq!(flow.ratio(), None);
    }
}
