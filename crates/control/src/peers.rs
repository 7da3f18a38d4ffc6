//! Who else is behind the same access point, and what they report of themselves.
//!
//! A [`PeerTable`] takes the reports that arrive and answers with the [`Neighbourhood`] as it is now. Nothing that a
//! peer says is trusted further than this table lets it:
//!
//! - a peer that has not been heard for `age_out` (2 s: six beacons) is forgotten;
//! - at most `identities` peers are remembered (256), whoever invents more is not heard;
//! - each identity, and all together, are heard at a limited rate;
//! - everything that is not heard is counted by its cause.
//!
//! The number of terminals n counts this host and every peer that reports a busy connection.

use crate::policy::{FlowObservation, Start, Trigger};
use std::collections::BTreeMap;
use units::{Span, Time};

/// The identity that a peer has chosen for itself, at random, when it started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(pub u64);

/// What a host says about itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Report {
    /// Its connections that are sending through the shared access point.
    pub busy_flows: u16,
    /// Smoothed RTT of the busy connection whose RTT has risen most.
    pub srtt: Option<Span>,
    /// Lowest RTT of the same connection.
    pub min_rtt: Option<Span>,
    /// Any of its connections is under control.
    pub controlling: bool,
    /// One of them because its own RTT rose, and not because a peer said so.
    pub congested: bool,
}

/// A peer as it was heard last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Who.
    pub id: PeerId,
    /// What it said last.
    pub report: Report,
    /// When it said so.
    pub heard_at: Time,
}

/// The peers of the moment, in the order of their identities.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Neighbourhood {
    peers: Vec<Peer>,
}

/// What a [`PeerTable`] puts up with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A peer not heard for this long is forgotten.
    pub age_out: Span,
    /// At most so many peers are remembered.
    pub identities: usize,
    /// Reports per second of one identity; as many may come at once. An honest peer sends 7 (two address families).
    pub per_peer_per_second: u32,
    /// Reports per second of all together; as many may come at once.
    pub total_per_second: u32,
}

/// Why a datagram was not heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Reject {
    /// More arrives than is looked at.
    #[error("more beacons per second than are looked at")]
    TotalRate,
    /// The length is not that of a beacon.
    #[error("wrong length")]
    Length,
    /// It does not begin like a beacon.
    #[error("not a beacon")]
    Magic,
    /// A version that this program does not know.
    #[error("unknown version")]
    Version,
    /// A reserved flag is set.
    #[error("unknown flag")]
    Flags,
    /// A group key is set here, and the beacon carries no tag.
    #[error("not authenticated, and a group key is set")]
    Unauthenticated,
    /// The beacon carries a tag, and no group key is set here.
    #[error("authenticated, and no group key is set")]
    NoKey,
    /// The tag is not that of the group key: another key, or the beacon was changed.
    #[error("wrong group key, or altered")]
    Tag,
    /// Authentic, but its timestamp lies too far from now: an old recording, or a wrong clock.
    #[error("timestamp too far from now")]
    Stale,
    /// Authentic, but its timestamp is not above the last of the same sender: a recording.
    #[error("replayed")]
    Replay,
    /// One identity sends faster than anyone needs to.
    #[error("one peer sends too often")]
    PeerRate,
    /// More identities than are remembered.
    #[error("too many peers")]
    Identities,
}

/// How many datagrams were not heard, by cause.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rejections(BTreeMap<Reject, u64>);

/// The peers, with their ages and rates.
#[derive(Clone, Debug)]
pub struct PeerTable {
    limits: Limits,
    peers: BTreeMap<PeerId, Entry>,
    all: Bucket,
    heard: u64,
    rejections: Rejections,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    report: Report,
    heard_at: Time,
    bucket: Bucket,
}

/// A token bucket that holds one second's worth, in tokens of 1/10^9.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    per_second: u32,
    level: u64,
    filled_at: Time,
}

impl Report {
    /// What a host with these connections says about itself; `enabled`: what put those under control that are. Of several
    /// busy ones it reports the RTT of that whose RTT has risen most.
    pub fn of(flows: &[FlowObservation], enabled: impl IntoIterator<Item = Trigger>) -> Self {
        let (mut controlling, mut congested) = (false, false);
        for trigger in enabled {
            controlling = true;
            congested |= trigger == Trigger::OwnRtt;
        }
        let busy = || flows.iter().filter(|flow| flow.busy);
        let risen_most = busy().max_by(|a, b| {
            let key = |flow: &FlowObservation| flow.ratio().unwrap_or(0.0);
            key(a).total_cmp(&key(b))
        });
        Self {
            busy_flows: u16::try_from(busy().count()).unwrap_or(u16::MAX),
            srtt: risen_most.and_then(|flow| flow.srtt),
            min_rtt: risen_most.and_then(|flow| flow.min_rtt),
            controlling,
            congested,
        }
    }

    /// RTT / lowest RTT; `None` before both are known.
    pub fn ratio(&self) -> Option<f64> {
        crate::policy::ratio(self.srtt?, self.min_rtt?)
    }
}

impl Neighbourhood {
    /// No peers.
    pub const fn alone() -> Self {
        Self { peers: Vec::new() }
    }

    /// These peers.
    pub fn new(mut peers: Vec<Peer>) -> Self {
        peers.sort_by_key(|peer| peer.id);
        Self { peers }
    }

    /// The peers, busy or not.
    pub fn peers(&self) -> &[Peer] {
        &self.peers
    }

    /// Whether a busy peer reports that its own RTT has risen above `start`, or that it came under control because of that.
    pub fn any_congested(&self, start: Start) -> bool {
        self.peers.iter().any(|peer| start.is_reported_by(&peer.report))
    }

    /// The busy connections of the peers, without those of this host.
    pub fn busy_flows(&self) -> u32 {
        self.peers.iter().map(|peer| u32::from(peer.report.busy_flows)).fold(0, u32::saturating_add)
    }

    /// n: the terminals that are communicating, this one always included.
    pub fn terminals(&self) -> u32 {
        let busy = self.peers.iter().filter(|peer| peer.report.busy_flows > 0).count();
        u32::try_from(busy).unwrap_or(u32::MAX).saturating_add(1)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            age_out: Span::from_secs(2),
            identities: 256,
            per_peer_per_second: 20, // three times what an honest peer sends
            total_per_second: 2000,  // 256 honest peers send 1707; a broadcast takes the air some 0.5 ms or more
        }
    }
}

impl Rejections {
    /// Counts one.
    pub fn count(&mut self, cause: Reject) {
        *self.0.entry(cause).or_default() += 1;
    }

    /// All together.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// Those of one cause.
    pub fn of(&self, cause: Reject) -> u64 {
        self.0.get(&cause).copied().unwrap_or(0)
    }

    /// Every cause that occurred, and how often.
    pub fn iter(&self) -> impl Iterator<Item = (Reject, u64)> + '_ {
        self.0.iter().map(|(cause, count)| (*cause, *count))
    }
}

impl Reject {
    /// A short name for logs and counters.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TotalRate => "total-rate",
            Self::Length => "length",
            Self::Magic => "magic",
            Self::Version => "version",
            Self::Flags => "flags",
            Self::Unauthenticated => "unauthenticated",
            Self::NoKey => "no-key",
            Self::Tag => "tag",
            Self::Stale => "stale",
            Self::Replay => "replay",
            Self::PeerRate => "peer-rate",
            Self::Identities => "identities",
        }
    }
}

impl PeerTable {
    /// Nobody heard yet.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            peers: BTreeMap::new(),
            all: Bucket::full(limits.total_per_second, Time::ZERO),
            heard: 0,
            rejections: Rejections::default(),
        }
    }

    /// Whether a datagram that has arrived may be looked at. Ask before decoding: this is what bounds the work.
    ///
    /// # Errors
    /// [`Reject::TotalRate`], counted.
    pub fn on_datagram(&mut self, now: Time) -> Result<(), Reject> {
        if self.all.take(now) { Ok(()) } else { Err(self.reject(Reject::TotalRate)) }
    }

    /// Takes a peer's report.
    ///
    /// # Errors
    /// [`Reject::PeerRate`] or [`Reject::Identities`], counted.
    pub fn on_report(&mut self, now: Time, id: PeerId, report: Report) -> Result<(), Reject> {
        if !self.peers.contains_key(&id) && self.peers.len() >= self.limits.identities {
            self.forget_old(now);
            if self.peers.len() >= self.limits.identities {
                return Err(self.reject(Reject::Identities));
            }
        }
        let fresh = Entry { report, heard_at: now, bucket: Bucket::full(self.limits.per_peer_per_second, now) };
        let entry = self.peers.entry(id).or_insert(fresh);
        if !entry.bucket.take(now) {
            return Err(self.reject(Reject::PeerRate));
        }
        *entry = Entry { report, heard_at: now, bucket: entry.bucket };
        self.heard += 1;
        Ok(())
    }

    /// Counts a datagram that somebody else has found wanting; gives the cause back.
    pub fn reject(&mut self, cause: Reject) -> Reject {
        self.rejections.count(cause);
        cause
    }

    /// Forgets who has aged out, and returns the others.
    pub fn neighbourhood(&mut self, now: Time) -> Neighbourhood {
        self.forget_old(now);
        let peer = |(id, entry): (&PeerId, &Entry)| Peer { id: *id, report: entry.report, heard_at: entry.heard_at };
        Neighbourhood { peers: self.peers.iter().map(peer).collect() }
    }

    /// Reports taken since the start.
    pub const fn heard(&self) -> u64 {
        self.heard
    }

    /// What was not heard since the start.
    pub const fn rejections(&self) -> &Rejections {
        &self.rejections
    }

    fn forget_old(&mut self, now: Time) {
        let age_out = self.limits.age_out;
        self.peers.retain(|_, entry| now.saturating_since(entry.heard_at) < age_out);
    }
}

const TOKEN: u64 = 1_000_000_000;

impl Bucket {
    fn full(per_second: u32, now: Time) -> Self {
        Self { per_second, level: u64::from(per_second) * TOKEN, filled_at: now }
    }

    fn take(&mut self, now: Time) -> bool {
        let capacity = u64::from(self.per_second) * TOKEN;
        let gained = now.saturating_since(self.filled_at).as_nanos().saturating_mul(u64::from(self.per_second));
        self.level = self.level.saturating_add(gained).min(capacity);
        self.filled_at = self.filled_at.max(now);
        let enough = self.level >= TOKEN;
        if enough {
            self.level -= TOKEN;
        }
        enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::FlowId;
    use proptest::prelude::*;

    const BUSY: Report = Report { busy_flows: 1, srtt: None, min_rtt: None, controlling: false, congested: false };

    fn at(milliseconds: u64) -> Time {
        Time::ZERO + Span::from_millis(milliseconds)
    }

    #[test]
    fn the_number_of_terminals_counts_this_host_and_busy_peers() {
        let mut table = PeerTable::new(Limits::default());
        assert_eq!(table.neighbourhood(at(0)).terminals(), 1);
        table.on_report(at(0), PeerId(1), BUSY).expect("heard");
        table.on_report(at(0), PeerId(2), Report { busy_flows: 0, ..BUSY }).expect("heard");
        table.on_report(at(100), PeerId(1), BUSY).expect("heard");
        let neighbourhood = table.neighbourhood(at(100));
        assert_eq!(neighbourhood.terminals(), 2);
        assert_eq!(neighbourhood.peers().len(), 2);
        assert_eq!(table.heard(), 3);
    }

    #[test]
    fn a_peer_is_forgotten_two_seconds_after_it_was_heard_last() {
        let mut table = PeerTable::new(Limits::default());
        table.on_report(at(1000), PeerId(1), BUSY).expect("heard");
        assert_eq!(table.neighbourhood(at(2999)).terminals(), 2);
        assert_eq!(table.neighbourhood(at(3000)).terminals(), 1);
    }

    #[test]
    fn whoever_invents_identities_fills_the_table_and_no_more() {
        let mut table = PeerTable::new(Limits::default());
        for id in 0..256 {
            table.on_report(at(0), PeerId(id), BUSY).expect("there is room");
        }
        assert_eq!(table.on_report(at(1), PeerId(999), BUSY), Err(Reject::Identities));
        table.on_report(at(1), PeerId(5), BUSY).expect("one that is known is still heard");
        assert_eq!(table.neighbourhood(at(1)).peers().len(), 256);
        table.on_report(at(2001), PeerId(999), BUSY).expect("the others have aged out");
        assert_eq!(table.rejections().of(Reject::Identities), 1);
    }

    #[test]
    fn one_peer_is_heard_twenty_times_a_second() {
        let mut table = PeerTable::new(Limits::default());
        let heard = (0..100).filter(|_| table.on_report(at(0), PeerId(1), BUSY).is_ok()).count();
        assert_eq!(heard, 20);
        // 20 per second is one every 50 ms
        assert_eq!(table.on_report(at(49), PeerId(1), BUSY), Err(Reject::PeerRate));
        assert_eq!(table.on_report(at(50), PeerId(1), BUSY), Ok(()));
        assert_eq!(table.rejections().of(Reject::PeerRate), 81);
        assert_eq!(table.on_report(at(50), PeerId(2), BUSY), Ok(()));
    }

    #[test]
    fn all_together_are_looked_at_two_thousand_times_a_second() {
        let mut table = PeerTable::new(Limits::default());
        let looked_at = (0..5000).filter(|_| table.on_datagram(at(0)).is_ok()).count();
        assert_eq!(looked_at, 2000);
        assert_eq!(table.rejections().of(Reject::TotalRate), 3000);
        assert_eq!(table.rejections().total(), 3000);
        // One more every 0.5 ms.
        assert!(table.on_datagram(Time::from_nanos(499_999)).is_err());
        assert!(table.on_datagram(Time::from_nanos(500_000)).is_ok());
        assert!(table.on_datagram(Time::from_nanos(999_999)).is_err());
        assert!(table.on_datagram(at(1)).is_ok());
    }

    #[test]
    fn a_flood_that_lasts_is_looked_at_two_thousand_times_a_second_and_leaves_room_when_it_ends() {
        let mut table = PeerTable::new(Limits::default());
        // 30,000 a second for 3 s: the 2000 of the beginning, and 2000 · 89,999 · 33,333 ns = 5999.9.
        let arrivals = (0..90_000).map(|number| Time::from_nanos(number * 33_333));
        let looked_at = arrivals.filter(|now| table.on_datagram(*now).is_ok()).count();
        assert_eq!(looked_at, 7999);
        assert_eq!(table.rejections().of(Reject::TotalRate), 90_000 - 7999);
        // An honest peer's next beacon is looked at.
        assert!(table.on_datagram(at(3300)).is_ok());
        assert_eq!(table.on_report(at(3300), PeerId(1), BUSY), Ok(()));
    }

    #[test]
    fn a_clock_that_stands_still_or_falls_back_gives_no_tokens() {
        let mut bucket = Bucket::full(1, at(1000));
        assert!(bucket.take(at(1000)));
        assert!(!bucket.take(at(0)));
        assert!(!bucket.take(at(1999)));
        assert!(bucket.take(at(2000)));
    }

    #[test]
    fn a_host_reports_the_connection_whose_rtt_has_risen_most() {
        let flow = |id, srtt_ms, busy| FlowObservation {
            id: FlowId(id),
            srtt: Some(Span::from_millis(srtt_ms)),
            min_rtt: Some(Span::from_millis(100)),
            cwnd_segments: 1,
            busy,
        };
        let report = Report::of(&[flow(1, 200, true), flow(2, 700, true), flow(3, 900, false)], [Trigger::Peer]);
        assert_eq!(report.busy_flows, 2);
        assert_eq!(report.srtt, Some(Span::from_millis(700)));
        assert_eq!(report.ratio(), Some(7.0));
        assert_eq!((report.controlling, report.congested), (true, false));
        let report = Report::of(&[], [Trigger::Peer, Trigger::OwnRtt]);
        assert_eq!((report.controlling, report.congested), (true, true));
        assert_eq!(Report::of(&[], []), Report::default());
    }

    proptest! {
        #[test]
        fn the_table_never_holds_more_than_its_limit_and_accounts_for_everything(
            reports in proptest::collection::vec((0..400_u64, 0..100_u64), 0..600),
        ) {
            let limits = Limits { identities: 50, ..Limits::default() };
            let mut table = PeerTable::new(limits);
            let mut now = Time::ZERO;
            for (id, pause_ms) in &reports {
                now += Span::from_millis(*pause_ms);
                let _ = table.on_report(now, PeerId(*id), BUSY);
                prop_assert!(table.peers.len() <= 50);
            }
            prop_assert_eq!(table.heard() + table.rejections().total(), reports.len() as u64);
            for peer in table.neighbourhood(now).peers() {
                prop_assert!(now.saturating_since(peer.heard_at) < limits.age_out);
            }
        }
    }
}
