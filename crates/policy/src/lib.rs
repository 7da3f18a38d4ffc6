//! Decides the limits of each connection, once per tick (0.5 s).
//!
//! A [`Policy`] takes an [`Observation`] (this host's connections, and its peers' reports) and returns a [`Decision`]:
//! limits for each connection, with a [`Reason`] in words. It applies nothing, logs nothing and reads no clock. The
//! agent and the simulator call the same code. The [`governor`] does the work around a policy at each tick, and
//! [`activity`] decides which connections are busy.
//!
//! A new policy is a file, its `mod`, and a line in the list below (docs/guide/new-parts.md#a-policy); or a program outside,
//! over the lines of [`schema`] ([`External`], docs/guide/external-policy.md).
#![deny(clippy::disallowed_methods)]

pub mod activity;
mod budget;
mod count;
mod external;
mod fixed;
mod formula;
mod gain;
pub mod governor;
mod harm;
mod keceli;
mod lasthop;
mod latch;
#[macro_use]
mod list;
mod reason;
mod rehearsal;
mod rts;
pub mod schema;
mod settings;
mod share;
mod table;

pub use count::Count;
pub use external::{External, REASON_CHARACTERS};
pub use fixed::Fixed;
pub use formula::Formula;
pub use gain::{Gain, Got, Incomparable};
pub use harm::Harm;
pub use keceli::Keceli;
pub use lasthop::{Lasthop, LawConstant, LawPart, Parts};
pub use latch::Start;
pub use reason::Reason;
pub use rts::{Rts, RtsRule, THRESHOLD as RTS_THRESHOLD, threshold as rts_threshold};
pub use settings::{Cap, PeerLatch, PolicySettings, Prefer, RttReading, TableIndex};
pub use share::Share;
pub use table::{Row, Table, WindowTable};

use lasthop_connection::TcpState;
use lasthop_laws::bound::Bound;
use lasthop_peers::{Neighbourhood, Word};
use lasthop_units::{Rate, Span, Time};

/// The time between two decisions (hayakawa: "The communication situation is checked approximately every 0.5 seconds").
pub const TICK: Span = Span::from_millis(500);

/// Settings of policies that compute a share of the bandwidth.
const SHARE: &[&str] = &["bandwidth_max_mbps", "segment_bytes", "maximum_terminals"];
/// Settings of those whose bandwidth falls with the number of terminals.
const FALL: &[&str] = &["exponent"];
/// Settings of those that start when an RTT has risen.
const RISE: &[&str] = &["enable_ratio", "enable_excess_ms", "release_ratio", "rtt"];
/// Settings of those with a table.
const TABLE: &[&str] = &["window_table", "window_rows", "table_index", "cap", "lower_limit"];
/// Settings of a program outside.
const PROGRAM: &[&str] = &["command", "command_deadline_ms", "command_user"];
/// Settings of all but `none`.
const EVERY: &[&str] = &["minimum_segments"];

policies! {
    None = "none", settles in 0 s, "nothing",
        [], |_| Box::new(Nothing);
    Fixed = "fixed", settles in 0 s, "a constant for each host (`bound_segments`)",
        [EVERY, &["bound_segments", "bound_pacing_mbps", "bound_receive_segments"]], |settings| Box::new(Fixed::new(settings));
    // Its first adjustment.
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
    Lasthop = "lasthop", settles in 40 s, "one rate for all hosts, up and down, agreed on by beacons and moved by the common queue: ours",
        [EVERY, &["prefer"]], |settings| Box::new(Lasthop::new(settings));
    External = "external", settles in 0 s, "a [program of one's own](external-policy.md) (`command`)",
        [EVERY, PROGRAM], |settings| Box::new(External::new(settings.minimum_segments, external::nobody));
}

/// Decides the limits of a host's connections.
pub trait Policy {
    /// Decides for every connection in `observation`, in their order. The state of a connection is dropped after an
    /// observation without it.
    fn on_tick(&mut self, observation: &Observation<'_>) -> Decision;

    /// What peers hear beyond the state of the connections, as of the last tick. Not sent in advice.
    fn word(&self) -> Option<Word> {
        None
    }

    /// The policy's state as of the last tick, for display; `None`: it has none to show.
    fn state(&self) -> Option<PolicyState> {
        None
    }

    /// Why there is no decision of the last tick: what decides is outside this program, and did not answer. Nothing is
    /// limited then. A simulated run ends; an agent goes on.
    fn failure(&self) -> Option<&str> {
        None
    }
}

/// The state that a policy shows; `None`: unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PolicyState {
    /// The payload rate that each host may send.
    pub common_rate: Option<Rate>,
    /// What this host and its group get now, got while free, and whether the two compare.
    pub gain: Gain,
    /// RTT − lowest RTT, the mean over its busy connections.
    pub excess: Option<Span>,
    /// It has stopped control on purpose.
    pub released: bool,
    /// Why control does not help, as last found; `None`: it does, or nothing has been found.
    pub harmed: Option<Harm>,
}

/// What is kept of connections: a map that is fast for their numbers, which the kernel counts up.
pub(crate) type FlowMap<V> = rustc_hash::FxHashMap<FlowId, V>;

/// Identifies a connection of this host. Never reused for another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u64);

/// The state of one connection at the tick. Fill in the known fields over [`Default`]: new policies may need more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowObservation {
    /// The connection.
    pub id: FlowId,
    /// Its state.
    pub tcp: TcpState,
    /// Whether it is sending, as [`crate::activity`] defines it.
    pub busy: bool,
    /// The lowest of [`TcpState::receive_rtt`] and [`TcpState::min_rtt`] at any tick: with the handshake's. `None` before both.
    pub min_receive_rtt: Option<Span>,
    /// Whether the other side is sending data, as [`crate::activity`] defines it.
    pub receiving: bool,
    /// Whether it is left alone, whatever is decided. Limits of the host are not split over it.
    pub left_alone: bool,
}

/// The complete input of a policy.
#[derive(Clone, Copy, Debug)]
pub struct Observation<'a> {
    /// The time of the tick.
    pub now: Time,
    /// This host's connections.
    pub flows: &'a [FlowObservation],
    /// The other hosts behind the same access point.
    pub peers: &'a Neighbourhood,
}

/// The limits to apply until the next tick.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// One for each connection of the observation, in its order.
    pub flows: Vec<FlowDecision>,
    /// Limits for connections that open before the next tick.
    pub new_flows: Option<Bound>,
}

/// The limits to apply to one connection.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowDecision {
    /// The connection.
    pub id: FlowId,
    /// Its limits; `None`: no limits.
    pub bound: Option<Bound>,
    /// How it came under control; `None`: not under control.
    pub enabled: Option<Enabled>,
    /// Why it has these limits, or none.
    pub reason: Reason,
}

/// How a connection came under control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enabled {
    /// When it came under control.
    pub at: Time,
    /// The cause.
    pub by: Trigger,
}

/// The cause of control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trigger {
    /// None: the policy controls every connection from its beginning.
    Always,
    /// The connection's own RTT.
    OwnRtt,
    /// The RTT that a peer reports, or that of another connection of this host (shimada §5.2: "at least one substantial
    /// RTT increase in the terminals around the AP").
    Peer,
}

impl FlowDecision {
    /// The decision for a connection; `limits`: its limits and their reason, or the reason for no limits.
    fn new(id: FlowId, enabled: Option<Enabled>, limits: Result<(Bound, Reason), Reason>) -> Self {
        let (bound, reason) = match limits {
            Ok((bound, reason)) => (Some(bound), reason),
            Err(reason) => (None, reason),
        };
        Self { id, bound, enabled, reason }
    }

    /// Takes away the limit of what it receives, which cannot be applied.
    fn receive_freely(&mut self) {
        let Some(bound) = self.bound.as_mut().filter(|bound| bound.max_receive_bytes > 0) else { return };
        bound.max_receive_bytes = 0;
        if *bound == Bound::default() {
            *self = Self::new(self.id, None, Err(Reason::ReceivesFreely));
        }
    }

    /// Since when it is under control; `None`: not under control.
    pub fn enabled_at(&self) -> Option<Time> {
        self.enabled.map(|enabled| enabled.at)
    }
}

impl FlowObservation {
    /// RTT / lowest RTT (hayakawa eqs. 1 and 5); `None` before both are known.
    pub fn ratio(&self) -> Option<f64> {
        self.tcp.srtt?.over(self.tcp.min_rtt?)
    }
}

impl Observation<'_> {
    /// The number of this host's busy connections, without those that are left alone.
    pub fn busy_flows(&self) -> u32 {
        self.count(|flow| flow.busy && !flow.left_alone)
    }

    /// The number of this host's connections that are receiving, without those that are left alone.
    pub fn receiving_flows(&self) -> u32 {
        self.count(|flow| flow.receiving && !flow.left_alone)
    }

    fn count(&self, which: impl Fn(&FlowObservation) -> bool) -> u32 {
        u32::try_from(self.flows.iter().filter(|flow| which(flow)).count()).unwrap_or(u32::MAX)
    }
}

/// The policy `none`: no limits.
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
            tcp: TcpState {
                srtt: Some(Span::from_secs(12)),
                min_rtt: Some(Span::from_millis(256)),
                cwnd_segments: 570,
                ..TcpState::default()
            },
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
            tcp: TcpState {
                srtt: Some(Span::from_millis(1536)),
                min_rtt: Some(Span::from_millis(256)),
                cwnd_segments: 1,
                ..TcpState::default()
            },
            busy: true,
            ..FlowObservation::default()
        };
        assert_eq!(flow.ratio(), Some(6.0)); // 1536 / 256
        flow.tcp.min_rtt = Some(Span::ZERO);
        assert_eq!(flow.ratio(), None);
        flow.tcp.min_rtt = None;
        assert_eq!(flow.ratio(), None);
    }
}
