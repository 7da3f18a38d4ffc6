//! The policies `table`, `cooperative` and `cooperative-loose`: the middleware of shimada in its generations OLD, NEW1
//! and NEW2. The RTT indicates a backlog, for which a table gives a window. The limit is that window or a share of the
//! bandwidth, whichever is smaller.
//!
//! Once per tick, for each connection (the step numbers are those of shimada's Figs. 4 and 13):
//! 1. Control starts when an RTT has risen substantially: the connection's own (`table`), or that of any terminal
//!    behind the access point, from the peers' beacons (`cooperative`, `cooperative-loose`). (S1 to S3)
//! 2. MAX CWND 1 = bandwidth · RTT / (8 · 1500 bytes · n). (eq. 2)
//! 3. MAX CWND 2, and a lower limit, from a row of the table: the last whose edge is at or below RTT − lowest RTT in
//!    ms. (Tables 1 and 3)
//! 4. IDEAL MAX CWND = the smaller of the two. Both limits are split over this host's busy connections.
//!
//! | | started by | table |
//! | --- | --- | --- |
//! | `table` (OLD) | its own RTT | Table 3, "before modifying" |
//! | `cooperative` (NEW1) | any terminal's RTT | Table 3, "before modifying" |
//! | `cooperative-loose` (NEW2) | any terminal's RTT | Table 3, "after modifying" |
//!
//! The paper's open points, and our decisions: docs/models/policy-table.md. *What it leaves out*: the access point's
//! true rate. Connections that start into congestion see no backlog, because their lowest RTT is already high.

use super::latch::{Latches, Rise};
use super::share::Share;
use super::{Cap, Decision, Observation, Policy, PolicySettings, Reason, TableIndex};
use lasthop_keys::words;
use lasthop_laws::bound::Bound;
use serde::{Deserialize, Serialize};

/// The limits from an edge on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "[u32; 3]", into = "[u32; 3]")]
pub struct Row {
    /// The edge: ms of RTT − lowest RTT, or another [`TableIndex`].
    pub from: u32,
    /// The upper limit of a terminal's window.
    pub max_segments: u32,
    /// The lower limit; an upper limit below it wins.
    pub min_segments: u32,
}

words! {
    /// A table of the papers.
    pub enum WindowTable {
        /// shimada Table 3, "before modifying": OLD and NEW1.
        Old = "old",
        /// shimada Table 1, which has only upper limits. It disagrees with Table 3 in rows 2 to 4.
        Table1 = "table-1",
        /// shimada Table 3, "after modifying": NEW2.
        Loose = "loose",
    }
}

/// The policies `table`, `cooperative` and `cooperative-loose`.
#[derive(Clone, Debug)]
pub struct Table {
    settings: PolicySettings,
    /// From an index of 0 on.
    first: Row,
    /// With rising edges.
    rest: Vec<Row>,
    cooperative: bool,
    latches: Latches,
}

impl From<[u32; 3]> for Row {
    fn from([from, max_segments, min_segments]: [u32; 3]) -> Self {
        Self { from, max_segments, min_segments }
    }
}

impl From<Row> for [u32; 3] {
    fn from(row: Row) -> Self {
        [row.from, row.max_segments, row.min_segments]
    }
}

impl WindowTable {
    /// Its rows, with rising edges, the first at 0.
    pub fn rows(self) -> [Row; 5] {
        match self {
            Self::Old => [[0, 555, 200], [51, 200, 50], [106, 100, 10], [161, 10, 2], [331, 1, 1]],
            Self::Table1 => [[0, 555, 555], [51, 100, 100], [106, 10, 10], [161, 8, 8], [331, 1, 1]],
            Self::Loose => [[0, 1000, 200], [51, 700, 150], [106, 400, 100], [161, 200, 10], [331, 50, 1]],
        }
        .map(Row::from)
    }
}

impl Table {
    /// If `cooperative`, any terminal's risen RTT starts the control of all.
    pub(super) fn new(settings: &PolicySettings, cooperative: bool) -> Self {
        let (first, rest) = settings.rows();
        Self { settings: settings.clone(), first, rest, cooperative, latches: Latches::default() }
    }

    /// The last row whose edge is at or below `index`.
    fn row(&self, index: f64) -> Row {
        *self.rest.iter().rev().find(|row| f64::from(row.from) <= index).unwrap_or(&self.first)
    }

    /// The limits of a connection under control.
    fn limit(&self, rise: Rise, terminals: u32, busy_flows: u32) -> (Bound, Reason) {
        let settings = &self.settings;
        let index = match settings.table_index {
            TableIndex::Excess => rise.excess().as_millis_f64(),
            TableIndex::Rtt => rise.srtt.as_millis_f64(),
            TableIndex::Ratio => rise.ratio,
        };
        let row = self.row(index);
        let share = (settings.cap == Cap::Min).then(|| Share::of(settings, settings.rtt_of(rise), terminals));
        let ideal = share.map_or(f64::INFINITY, |share| share.ideal_segments).min(row.max_segments.into());
        let minimum = settings.minimum_segments;
        let max_segments = ((ideal / f64::from(busy_flows)).round() as u32).max(minimum);
        let min_segments = if settings.lower_limit { row.min_segments / busy_flows } else { 0 };
        let bound = Bound { min_segments: min_segments.clamp(minimum, max_segments), max_segments, ..Bound::default() };
        let reason = Reason::Table { ratio: rise.ratio, index, by: settings.table_index, row, share, busy_flows };
        (bound, reason)
    }
}

impl Policy for Table {
    fn on_tick(&mut self, observation: &Observation<'_>) -> Decision {
        let (terminals, busy_flows) = (observation.peers.terminals(), observation.busy_flows().max(1));
        let mut latches = std::mem::take(&mut self.latches);
        let limit = |rise| self.limit(rise, terminals, busy_flows);
        let decision = latches.on_tick(observation, &self.settings, self.cooperative, limit);
        self.latches = latches;
        decision
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Enabled, FlowDecision, FlowId, FlowObservation, PeerLatch, PolicyName, Trigger};
    use lasthop_connection::TcpState;
    use lasthop_peers::{Neighbourhood, Peer, PeerId, Report};
    use lasthop_units::{Span, Time};
    use proptest::prelude::*;

    /// busy_flows, RTT and lowest RTT in µs, congested.
    type Said = (u16, Option<u32>, Option<u32>, bool);

    fn build(policy: PolicyName, change: impl FnOnce(&mut PolicySettings)) -> Box<dyn Policy + Send> {
        let mut settings = PolicySettings { policy, ..PolicySettings::default() };
        change(&mut settings);
        settings.build()
    }

    /// n − 1 peers, each with this report.
    fn peers(n: u64, report: Report) -> Neighbourhood {
        Neighbourhood::new((1..n).map(|id| Peer { id: PeerId(id), report, heard_at: Time::ZERO }).collect())
    }

    fn calm(n: u64) -> Neighbourhood {
        peers(n, Report { busy_flows: 1, ..Report::default() })
    }

    fn flow(id: u64, srtt_ms: u64, min_rtt_ms: u64) -> FlowObservation {
        FlowObservation {
            id: FlowId(id),
            tcp: TcpState {
                srtt: Some(Span::from_millis(srtt_ms)),
                min_rtt: Some(Span::from_millis(min_rtt_ms)),
                cwnd_segments: 500,
                ..TcpState::default()
            },
            busy: true,
            ..FlowObservation::default()
        }
    }

    fn at(tick: u64) -> Time {
        Time::ZERO + Span::from_millis(500) * tick
    }

    fn decide(policy: &mut dyn Policy, tick: u64, peers: &Neighbourhood, flow: FlowObservation) -> FlowDecision {
        policy.on_tick(&Observation { now: at(tick), flows: &[flow], peers }).flows.swap_remove(0)
    }

    /// The table's limits for an excess over a lowest RTT of 100 ms, once control has started.
    fn limits(name: PolicyName, excess_ms: u64, change: impl FnOnce(&mut PolicySettings)) -> (u32, u32) {
        let mut policy = build(name, change);
        decide(policy.as_mut(), 0, &calm(1), flow(1, 10_000, 100));
        let bound = decide(policy.as_mut(), 1, &calm(1), flow(1, 100 + excess_ms, 100)).bound.expect("under control");
        (bound.max_segments, bound.min_segments)
    }

    #[test]
    fn the_rows_begin_at_their_edges() {
        let edges = [0, 50, 51, 105, 106, 160, 161, 330, 331, 9_000];
        let of = |name, table| {
            edges.map(|edge| {
                limits(name, edge, |settings| {
                    settings.cap = Cap::Table;
                    settings.window_table = table;
                })
            })
        };
        // shimada Table 3, both columns, and Table 1.
        let old =
            [(555, 200), (555, 200), (200, 50), (200, 50), (100, 10), (100, 10), (10, 2), (10, 2), (1, 1), (1, 1)];
        assert_eq!(of(PolicyName::Table, None), old);
        assert_eq!(of(PolicyName::Cooperative, None), old);
        assert_eq!(
            of(PolicyName::CooperativeLoose, None),
            [
                (1000, 200),
                (1000, 200),
                (700, 150),
                (700, 150),
                (400, 100),
                (400, 100),
                (200, 10),
                (200, 10),
                (50, 1),
                (50, 1)
            ]
        );
        let first = of(PolicyName::Table, Some(WindowTable::Table1)).map(|(max, _)| max);
        assert_eq!(first, [555, 555, 100, 100, 10, 10, 8, 8, 1, 1]);
    }

    #[test]
    fn the_smaller_of_both_candidates_is_the_upper_limit_and_caps_the_lower_one() {
        // n = 6, RTT 110 ms: MAX1 = 20e6 · 0.110 / (12000 · 6) = 30.56; MAX2 of row 0 = 555, minimum 200.
        let mut policy = build(PolicyName::Table, |_| ());
        decide(policy.as_mut(), 0, &calm(6), flow(1, 700, 100));
        let decision = decide(policy.as_mut(), 1, &calm(6), flow(1, 110, 100));
        assert_eq!(decision.bound, Some(Bound { min_segments: 31, max_segments: 31, ..Bound::default() }));
        // RTT 300 ms: MAX1 = 20e6 · 0.3 / 72000 = 83.3; the row of 161 ms has 10 and 2.
        let decision = decide(policy.as_mut(), 2, &calm(6), flow(1, 300, 100));
        assert_eq!(decision.bound, Some(Bound { min_segments: 2, max_segments: 10, ..Bound::default() }));
        // shimada Fig. 12 reports a cap of 300 segments at n >= 3, which is impossible under the smaller of both. Row
        // 161 of the loose table ends at an RTT of 430 ms, where MAX1 = 20e6 · 0.43 / 36000 = 239.
        let mut policy = build(PolicyName::CooperativeLoose, |_| ());
        let greatest = (100..2_000).map(|rtt_ms| {
            decide(policy.as_mut(), 0, &calm(3), flow(1, 700, 100));
            decide(policy.as_mut(), 1, &calm(3), flow(1, rtt_ms, 100)).bound.expect("controlled").max_segments
        });
        assert!(greatest.max() < Some(300));
    }

    #[test]
    fn without_lower_limits_the_floor_is_the_minimum() {
        assert_eq!(limits(PolicyName::Table, 0, |settings| settings.lower_limit = false), (167, 1)); // 20e6 · 0.1 / 12000
    }

    #[test]
    fn the_table_may_be_indexed_by_rtt_or_ratio_instead() {
        let by = |table_index| {
            limits(PolicyName::Table, 60, |settings| {
                settings.cap = Cap::Table;
                settings.table_index = table_index;
            })
        };
        assert_eq!(by(TableIndex::Excess), (200, 50)); // 60 ms
        assert_eq!(by(TableIndex::Rtt), (100, 10)); // 160 ms
        assert_eq!(by(TableIndex::Ratio), (555, 200)); // 1.6
    }

    #[test]
    fn ones_own_table_counts_before_the_ready_ones() {
        let own = [[0, 40, 4], [20, 7, 2]].map(Row::from);
        let change = |settings: &mut PolicySettings| settings.window_rows = Some(own.to_vec());
        assert_eq!(limits(PolicyName::Table, 19, change), (40, 4));
        assert_eq!(limits(PolicyName::Table, 20, change), (7, 2));
    }

    #[test]
    fn old_waits_for_its_own_rtt_whatever_the_peers_say() {
        let mut policy = build(PolicyName::Table, |_| ());
        let risen = peers(3, Report { busy_flows: 1, congested: true, ..Report::default() });
        let decision = decide(policy.as_mut(), 0, &risen, flow(1, 600, 100));
        assert_eq!((decision.bound, decision.enabled), (None, None));
        let decision = decide(policy.as_mut(), 1, &risen, flow(1, 601, 100));
        assert_eq!(decision.enabled, Some(Enabled { at: at(1), by: Trigger::OwnRtt }));
    }

    #[test]
    fn new1_starts_in_the_order_of_shimadas_flowchart() {
        // Fig. 13: monitor (S1); has any terminal's RTT risen (S2)? -> control (S3), candidates, the smaller, apply,
        // repeat.
        let mut policy = build(PolicyName::Cooperative, |_| ());
        let report = |srtt_ms, congested| Report {
            busy_flows: 1,
            srtt: Some(Span::from_millis(srtt_ms)),
            min_rtt: Some(Span::from_millis(100)),
            congested,
            ..Report::default()
        };
        // No RTT has risen: no control.
        let decision = decide(policy.as_mut(), 0, &peers(3, report(600, false)), flow(1, 150, 100));
        assert_eq!((decision.bound, decision.reason.kind()), (None, "not-congested"));
        // A peer's RTT has risen: control at this tick, although this host's own ratio is 1.5.
        let decision = decide(policy.as_mut(), 1, &peers(3, report(601, false)), flow(1, 150, 100));
        assert_eq!(decision.enabled, Some(Enabled { at: at(1), by: Trigger::Peer }));
        // 20e6 · 0.150 / 36000 = 83.3 against 555; the upper limit wins over the lower limit of 200.
        assert_eq!(decision.bound, Some(Bound { min_segments: 83, max_segments: 83, ..Bound::default() }));
        // The peer's RTT has fallen, but it still reports that its own rise started its control.
        let decision = decide(policy.as_mut(), 2, &peers(3, report(150, true)), flow(1, 150, 100));
        assert_eq!(decision.enabled, Some(Enabled { at: at(1), by: Trigger::Peer }));
        // This host's own RTT rises: from now on control does not depend on others.
        let decision = decide(policy.as_mut(), 3, &calm(3), flow(1, 601, 100));
        assert_eq!(decision.enabled, Some(Enabled { at: at(1), by: Trigger::OwnRtt }));
        assert_eq!(decision.bound, Some(Bound { min_segments: 1, max_segments: 1, ..Bound::default() }));
        assert!(decide(policy.as_mut(), 4, &calm(1), flow(1, 100, 100)).bound.is_some());
    }

    #[test]
    fn a_strangers_word_holds_as_long_as_he_gives_it() {
        let lies = peers(2, Report { busy_flows: 1, congested: true, ..Report::default() });
        let mut policy = build(PolicyName::Cooperative, |_| ());
        assert!(decide(policy.as_mut(), 0, &lies, flow(1, 100, 100)).bound.is_some());
        let after = decide(policy.as_mut(), 1, &calm(1), flow(1, 100, 100));
        assert_eq!((after.bound, after.enabled, after.reason.kind()), (None, None, "peers-calm"));
        // The other reading: until the connection ends, or release_ratio.
        let mut policy = build(PolicyName::Cooperative, |settings| {
            settings.peer_latch = PeerLatch::Connection;
            settings.release_ratio = Some(1.5);
        });
        assert!(decide(policy.as_mut(), 0, &lies, flow(1, 200, 100)).bound.is_some());
        assert!(decide(policy.as_mut(), 1, &calm(1), flow(1, 200, 100)).bound.is_some());
        assert_eq!(decide(policy.as_mut(), 2, &calm(1), flow(1, 149, 100)).reason.kind(), "released");
    }

    #[test]
    fn a_host_whose_release_ratio_is_met_stays_while_a_peer_needs_it() {
        let mut policy = build(PolicyName::Cooperative, |settings| settings.release_ratio = Some(2.0));
        let risen = peers(2, Report { busy_flows: 1, congested: true, ..Report::default() });
        decide(policy.as_mut(), 0, &calm(2), flow(1, 700, 100));
        let decision = decide(policy.as_mut(), 1, &risen, flow(1, 150, 100));
        assert_eq!(decision.enabled, Some(Enabled { at: at(0), by: Trigger::Peer }));
        assert_eq!(decide(policy.as_mut(), 2, &calm(2), flow(1, 150, 100)).bound, None);
    }

    #[test]
    fn idle_peers_start_nothing() {
        let mut policy = build(PolicyName::Cooperative, |_| ());
        let idle = peers(2, Report { busy_flows: 0, congested: true, ..Report::default() });
        assert_eq!(decide(policy.as_mut(), 0, &idle, flow(1, 150, 100)).bound, None);
    }

    #[test]
    fn one_connection_of_a_host_starts_its_others_too_if_they_cooperate() {
        let flows = [flow(1, 150, 100), flow(2, 700, 100)];
        let observation = Observation { now: at(0), flows: &flows, peers: &calm(1) };
        let enabled = |policy: PolicyName| {
            build(policy, |_| ())
                .on_tick(&observation)
                .flows
                .iter()
                .map(|flow| flow.bound.is_some())
                .collect::<Vec<_>>()
        };
        assert_eq!(enabled(PolicyName::Cooperative), [true, true]);
        assert_eq!(enabled(PolicyName::Table), [false, true]);
    }

    #[test]
    fn a_rise_may_be_told_by_the_excess() {
        let mut policy = build(PolicyName::Cooperative, |settings| settings.enable_excess_ms = Some(51.0));
        assert_eq!(decide(policy.as_mut(), 0, &calm(1), flow(1, 151, 100)).bound, None); // exactly 51
        assert!(decide(policy.as_mut(), 1, &calm(1), flow(1, 152, 100)).bound.is_some());
        let report = |srtt_ms| Report {
            busy_flows: 1,
            srtt: Some(Span::from_millis(srtt_ms)),
            min_rtt: Some(Span::from_millis(100)),
            ..Report::default()
        };
        let mut policy = build(PolicyName::Cooperative, |settings| settings.enable_excess_ms = Some(51.0));
        assert_eq!(decide(policy.as_mut(), 0, &peers(2, report(151)), flow(1, 100, 100)).bound, None);
        assert!(decide(policy.as_mut(), 1, &peers(2, report(152)), flow(1, 100, 100)).bound.is_some());
    }

    #[test]
    fn a_connection_is_not_released_while_its_excess_would_begin_control() {
        let mut policy = build(PolicyName::Table, |settings| {
            settings.enable_excess_ms = Some(51.0);
            settings.release_ratio = Some(2.0);
        });
        // 152 ms over 100 ms is above the start, and the ratio of 1.52 is below the release.
        let kinds: Vec<_> =
            (0..4).map(|tick| decide(policy.as_mut(), tick, &calm(1), flow(1, 152, 100)).reason.kind()).collect();
        assert_eq!(kinds, ["table"; 4]);
        assert_eq!(decide(policy.as_mut(), 4, &calm(1), flow(1, 151, 100)).reason.kind(), "released");
    }

    #[test]
    fn both_limits_are_split_over_busy_connections() {
        let mut policy = build(PolicyName::Table, |settings| settings.cap = Cap::Table);
        let risen = [flow(1, 700, 100), flow(2, 700, 100)];
        policy.on_tick(&Observation { now: at(0), flows: &risen, peers: &calm(1) });
        let calmed = [flow(1, 100, 100), flow(2, 100, 100)];
        let decision = policy.on_tick(&Observation { now: at(1), flows: &calmed, peers: &calm(1) });
        // 555 / 2 = 277.5 and 200 / 2
        assert_eq!(decision.flows[0].bound, Some(Bound { min_segments: 100, max_segments: 278, ..Bound::default() }));
    }

    proptest! {
        #[test]
        fn whatever_peers_say_nobody_is_pushed_below_the_share_of_the_most_terminals_or_the_own_table(
            srtt_ms in 1..20_000_u64,
            min_rtt_ms in 1..1_000_u64,
            reports in proptest::collection::vec(
                any::<Said>(), 0..300),
            minimum_segments in 1..10_u32,
        ) {
            let mut policy =
                build(PolicyName::Cooperative, |settings| settings.minimum_segments = minimum_segments);
            let peer = |(id, report): (usize, &Said)| {
                let (busy_flows, srtt, min_rtt, congested) = *report;
                let span = |us: Option<u32>| us.map(|us| Span::from_micros(us.into()));
                let report =
                    Report { busy_flows, srtt: span(srtt), min_rtt: span(min_rtt), controlling: congested, congested, ..Report::default() };
                Peer { id: PeerId(id as u64), report, heard_at: Time::ZERO }
            };
            let peers = Neighbourhood::new(reports.iter().enumerate().map(peer).collect());
            let flow = flow(1, srtt_ms, min_rtt_ms);
            if let Some(bound) = decide(policy.as_mut(), 0, &peers, flow).bound {
                let least = Share::of(&PolicySettings { policy: PolicyName::Cooperative, ..PolicySettings::default() },
                    Span::from_millis(srtt_ms), 64);
                let excess_ms = srtt_ms.saturating_sub(min_rtt_ms) as f64;
                let row = WindowTable::Old.rows().into_iter().rev().find(|row| f64::from(row.from) <= excess_ms);
                let floor = least.ideal_segments.min(row.expect("the first edge is 0").max_segments.into()).round() as u32;
                prop_assert!(bound.max_segments >= floor.max(minimum_segments));
                prop_assert!(minimum_segments <= bound.min_segments && bound.min_segments <= bound.max_segments);
            }
        }
    }
}
