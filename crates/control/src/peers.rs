//! Who else is behind the same access point, and what they report of themselves.
//!
//! A [`PeerTable`] takes the reports that arrive and answers with the [`Neighbourhood`] as it is now. Nothing that a
//! peer says is trusted further than this table lets it:
//!
//! - a peer that has not been heard for `age_out` (2 s), or for 6.7 of the intervals that it announced if that is
//!   longer, is forgotten, after [`LONGEST_AGE_OUT`] (60 s) at the latest;
//! - at most `identities` peers are remembered (256), whoever invents more is not heard; but a busy peer takes the place
//!   of an idle one, so that nobody is kept from being counted by those who do not count;
//! - each identity, and all together, are heard at a limited rate;
//! - everything that is not heard is counted by its cause.
//!
//! The number of terminals n counts this host and every peer that reports a busy connection.

use crate::policy::{FlowObservation, Start, Trigger};
use std::collections::BTreeMap;
use units::{Rate, Span, Time};

/// A peer that announces this interval is forgotten after `Limits::age_out`'s default of 2 s, one that announces a longer one
/// after as many times that: 6.7 intervals, so that six beacons in a row may be lost (RFC 3550 §6.3.5 has five).
const INTERVAL_OF_2_S: Span = Span::from_millis(300);
/// Whatever interval a peer has announced, it is forgotten when it has not been heard for this long.
pub const LONGEST_AGE_OUT: Span = Span::from_secs(60);
/// Who has been heard within this shares the air, as far as [`crate::pace`] goes: where the access point drops most of
/// what it should pass on, a host that is heard once in ten beacons must not be taken for one that has gone.
pub const REMEMBERED: Span = Span::from_secs(60);

/// The identity that a peer has chosen for itself, at random, when it started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(pub u64);

/// What a host says about itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Report {
    /// Its connections that are sending through the shared access point.
    pub busy_flows: u16,
    /// Another has something to send, of which nothing arrives: it waits for a timeout, say.
    pub waiting: bool,
    /// Smoothed RTT of the busy connection whose RTT has risen most.
    pub srtt: Option<Span>,
    /// Lowest RTT of the same connection.
    pub min_rtt: Option<Span>,
    /// Any of its connections is under control.
    pub controlling: bool,
    /// One of them because its own RTT rose, and not because a peer said so.
    pub congested: bool,
    /// Policy `lasthop`: what it takes for the rate that each host may send, payload; zero: it does not control.
    pub common_rate: Rate,
    /// The same: what it gets, payload.
    pub delivered: Rate,
    /// The same: RTT − lowest RTT, the mean over its busy connections; `None` if none is.
    pub excess: Option<Span>,
    /// The same: it does without control on purpose.
    pub released: bool,
    /// The same: what it got while nothing was controlled, payload; zero: not known.
    pub free: Rate,
    /// The same: it finds that control costs more than it gives.
    pub harmed: bool,
    /// The same: the medium has collapsed and may again, as far as it knows.
    pub careful: bool,
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
    hosts: usize,
}

/// How many other hosts share the air.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Crowd {
    /// All of them.
    pub hosts: usize,
    /// Of these, who had something to send when heard last, or has not been heard for so long that it may have by now.
    pub senders: usize,
}

/// An idle peer that has let more beacons than this be missed may have something to send by now: where many lose theirs in a queue,
/// all were idle when they were heard last.
const SILENT: f64 = 2.0;

/// What a [`PeerTable`] puts up with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A peer not heard for this long is forgotten, unless it has announced a longer interval. At most [`LONGEST_AGE_OUT`].
    pub age_out: Span,
    /// At most so many peers are remembered.
    pub identities: usize,
    /// Reports per second of one identity; as many may come at once. An honest peer sends 8 at most (two address families,
    /// each every 0.3 s, and now and then at once).
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
    /// A flag of the extension without one, or an extension that says nothing.
    #[error("flags that contradict the rest")]
    Flags,
    /// Its sender is behind another access point.
    #[error("of another access point")]
    Group,
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
    /// It has waited to be heard while this host did not run.
    #[error("came while this host did not run")]
    Waited,
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
    /// When listening began; `None`: not yet.
    since: Option<Time>,
    all: Bucket,
    heard: u64,
    rejections: Rejections,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    report: Report,
    heard_at: Time,
    /// After which its next beacon is due.
    interval: Span,
    /// Beacons that it may have sent before its first was heard, since listening began.
    missed_before: f64,
    /// Beacons heard after its first.
    heard: f64,
    /// Beacons that should have come between its first and its last.
    announced: f64,
    /// Forgotten when not heard for this long.
    age_out: Span,
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
    /// What a host says that sends nothing; the default.
    #[cfg(test)]
    pub(crate) const IDLE: Self = Self {
        busy_flows: 0,
        waiting: false,
        srtt: None,
        min_rtt: None,
        controlling: false,
        congested: false,
        common_rate: Rate::ZERO,
        delivered: Rate::ZERO,
        excess: None,
        free: Rate::ZERO,
        released: false,
        harmed: false,
        careful: false,
    };

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
            waiting: flows.iter().any(|flow| !flow.busy && (flow.in_flight_segments > 0 || flow.backlogged)),
            srtt: risen_most.and_then(|flow| flow.srtt),
            min_rtt: risen_most.and_then(|flow| flow.min_rtt),
            controlling,
            congested,
            ..Self::default()
        }
    }

    /// Whether it has something to send, whether that gets through or not.
    pub const fn has_something_to_send(&self) -> bool {
        self.busy_flows > 0 || self.waiting
    }

    /// RTT / lowest RTT; `None` before both are known.
    pub fn ratio(&self) -> Option<f64> {
        crate::policy::ratio(self.srtt?, self.min_rtt?)
    }
}

impl Neighbourhood {
    /// No peers.
    pub const fn alone() -> Self {
        Self { peers: Vec::new(), hosts: 0 }
    }

    /// These peers, and nobody else.
    pub fn new(mut peers: Vec<Peer>) -> Self {
        peers.sort_by_key(|peer| peer.id);
        let hosts = peers.len();
        Self { peers, hosts }
    }

    /// How many other hosts share the air, busy or not, those included of whom nothing is heard, as far as can be told ([`PeerTable::crowd`]).
    pub const fn hosts(&self) -> usize {
        self.hosts
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
            Self::Group => "group",
            Self::Unauthenticated => "unauthenticated",
            Self::NoKey => "no-key",
            Self::Tag => "tag",
            Self::Stale => "stale",
            Self::Replay => "replay",
            Self::PeerRate => "peer-rate",
            Self::Waited => "waited",
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
            since: None,
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
        self.since.get_or_insert(now);
        if self.all.take(now) { Ok(()) } else { Err(self.reject(Reject::TotalRate)) }
    }

    /// Takes a peer's report, and the interval after which its next one is due.
    ///
    /// # Errors
    /// [`Reject::PeerRate`] or [`Reject::Identities`], counted.
    pub fn on_report(&mut self, now: Time, id: PeerId, interval: Span, report: Report) -> Result<(), Reject> {
        let is_new = !self.peers.contains_key(&id);
        if is_new && self.peers.len() >= self.limits.identities && !self.make_room(now, report.busy_flows > 0) {
            return Err(self.reject(Reject::Identities));
        }
        let missed = u128::from(interval.as_nanos()) * 2_000_000_000 / u128::from(INTERVAL_OF_2_S.as_nanos());
        let missed = Span::from_nanos(u64::try_from(missed).unwrap_or(u64::MAX));
        let age_out = missed.max(self.limits.age_out).min(LONGEST_AGE_OUT);
        let bucket = Bucket::full(self.limits.per_peer_per_second, now);
        let since = *self.since.get_or_insert(now);
        let mut first = Entry {
            report,
            heard_at: since,
            interval,
            missed_before: 0.0,
            heard: -1.0,
            announced: 0.0,
            age_out,
            bucket,
        };
        (first.missed_before, first.heard_at) = (first.due_since_heard(now, interval), now);
        let entry = self.peers.entry(id).or_insert(first);
        if !entry.bucket.take(now) {
            return Err(self.reject(Reject::PeerRate));
        }
        let (heard, announced) = (entry.heard + 1.0, entry.announced + entry.due_since_heard(now, interval));
        *entry = Entry { report, heard_at: now, interval, heard, announced, age_out, ..*entry };
        self.heard += 1;
        Ok(())
    }

    /// How many other hosts share the air, busy or not: those heard within [`REMEMBERED`], and as many more as must be there
    /// if so many of their beacons are lost.
    ///
    /// A share p of the beacons is heard, estimated from those that came of what was announced. Of a host that sends m within
    /// the time remembered nothing is heard with probability (1 − p)^m; so each that is heard stands for
    /// 1 / (1 − (1 − p)^m) (the estimator of Horvitz and Thompson, 1952). A crowd that gathers speaks less and less often, so the
    /// beacons that a peer should have sent since it was heard are reckoned from the longer of its interval and the usual one (the
    /// median of those who have something to send, or of the others), and once it is heard again from the one that it announces then.
    pub fn crowd(&mut self, now: Time) -> Crowd {
        self.forget_old(now);
        self.since.get_or_insert(now);
        let usual = [false, true].map(|sends| {
            let alike = self.peers.values().filter(|entry| entry.sends() == sends);
            let mut intervals: Vec<Span> = alike.map(|entry| entry.interval).collect();
            intervals.sort_unstable();
            intervals.get(intervals.len() / 2).copied().unwrap_or_default()
        });
        let usual = |entry: &Entry| usual[usize::from(entry.sends())];
        let (mut heard, mut announced) = (1.0, 2.0); // before anybody is heard again: every second one
        for entry in self.peers.values() {
            heard += entry.heard;
            announced += entry.announced + entry.due_since_heard(now, usual(entry));
        }
        let lost = 1.0 - f64::min(heard / announced, 1.0);
        let stands_for = |entry: &Entry| {
            let since_listening = entry.missed_before + entry.announced + entry.due_since_heard(now, usual(entry));
            let sent = since_listening.min(REMEMBERED.as_secs_f64() / entry.interval_s()).max(1.0);
            1.0 / (1.0 - lost.powf(sent))
        };
        let (mut hosts, mut senders) = (0.0, 0.0);
        for entry in self.peers.values() {
            hosts += stands_for(entry);
            let may_send = entry.sends() || entry.due_since_heard(now, usual(entry)) > SILENT;
            senders += if may_send { stands_for(entry) } else { 0.0 };
        }
        Crowd { hosts: f64::round(hosts) as usize, senders: f64::round(senders) as usize }
    }

    /// Forgets every peer, for when this host has moved or slept. The counts go on.
    pub fn forget_all(&mut self) {
        self.peers.clear();
        self.since = None;
    }

    /// Counts a datagram that somebody else has found wanting; gives the cause back.
    pub fn reject(&mut self, cause: Reject) -> Reject {
        self.rejections.count(cause);
        cause
    }

    /// Those who have not aged out.
    pub fn neighbourhood(&mut self, now: Time) -> Neighbourhood {
        let hosts = self.crowd(now).hosts;
        let there = self.peers.iter().filter(|(_, entry)| !entry.has_aged_out(now));
        let peer = |(id, entry): (&PeerId, &Entry)| Peer { id: *id, report: entry.report, heard_at: entry.heard_at };
        Neighbourhood { peers: there.map(peer).collect(), hosts }
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
        self.peers.retain(|_, entry| now.saturating_since(entry.heard_at) < REMEMBERED);
    }

    /// Forgets one that has aged out or, for a busy peer, an idle one: the one not heard for longest; whether there was one.
    fn make_room(&mut self, now: Time, for_busy: bool) -> bool {
        let may_go = |entry: &Entry| entry.has_aged_out(now) || (for_busy && !entry.sends());
        let may_go = self.peers.iter().filter(|(_, entry)| may_go(entry));
        let oldest = may_go.min_by_key(|(_, entry)| entry.heard_at).map(|(id, _)| *id);
        oldest.is_some_and(|id| self.peers.remove(&id).is_some())
    }
}

impl Entry {
    /// Not 0, whatever it has announced.
    fn interval_s(&self) -> f64 {
        f64::max(self.interval.as_secs_f64(), 0.05)
    }

    /// Beacons that should have come since the last one, if the interval it announced has been stretched to `at_least` meanwhile.
    fn due_since_heard(&self, now: Time, at_least: Span) -> f64 {
        now.saturating_since(self.heard_at).as_secs_f64() / self.interval_s().max(at_least.as_secs_f64())
    }

    fn sends(&self) -> bool {
        self.report.has_something_to_send()
    }

    fn has_aged_out(&self, now: Time) -> bool {
        now.saturating_since(self.heard_at) >= self.age_out
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

    const BUSY: Report = Report { busy_flows: 1, ..Report::IDLE };

    const BASE: Span = crate::beacon::INTERVAL;

    fn at(milliseconds: u64) -> Time {
        Time::ZERO + Span::from_millis(milliseconds)
    }

    #[test]
    fn the_number_of_terminals_counts_this_host_and_busy_peers() {
        let mut table = PeerTable::new(Limits::default());
        assert_eq!(table.neighbourhood(at(0)).terminals(), 1);
        table.on_report(at(0), PeerId(1), BASE, BUSY).expect("heard");
        table.on_report(at(0), PeerId(2), BASE, Report { busy_flows: 0, ..BUSY }).expect("heard");
        table.on_report(at(100), PeerId(1), BASE, BUSY).expect("heard");
        let neighbourhood = table.neighbourhood(at(100));
        assert_eq!(neighbourhood.terminals(), 2);
        assert_eq!(neighbourhood.peers().len(), 2);
        assert_eq!(table.heard(), 3);
    }

    #[test]
    fn a_peer_is_forgotten_two_seconds_after_it_was_heard_last() {
        let mut table = PeerTable::new(Limits::default());
        table.on_report(at(1000), PeerId(1), BASE, BUSY).expect("heard");
        assert_eq!(table.neighbourhood(at(2999)).terminals(), 2);
        assert_eq!(table.neighbourhood(at(3000)).terminals(), 1);
    }

    #[test]
    fn a_peer_that_speaks_seldom_is_waited_for_as_many_intervals_and_a_minute_at_most() {
        let mut table = PeerTable::new(Limits::default());
        table.on_report(at(0), PeerId(1), Span::from_millis(300), BUSY).expect("heard"); // 2 s
        table.on_report(at(0), PeerId(2), Span::from_millis(900), BUSY).expect("heard"); // 6 s
        table.on_report(at(0), PeerId(3), Span::from_secs(15), BUSY).expect("heard"); // 100 s
        table.on_report(at(0), PeerId(4), Span::MAX, BUSY).expect("heard");
        let mut terminals = |milliseconds| table.neighbourhood(at(milliseconds)).terminals();
        assert_eq!((terminals(1999), terminals(2000)), (5, 4));
        assert_eq!((terminals(5999), terminals(6000)), (4, 3));
        assert_eq!((terminals(59_999), terminals(60_000)), (3, 1));
    }

    #[test]
    fn a_peer_that_speaks_more_often_again_is_forgotten_sooner_again() {
        let mut table = PeerTable::new(Limits::default());
        table.on_report(at(0), PeerId(1), Span::from_secs(15), BUSY).expect("heard");
        table.on_report(at(100), PeerId(1), BASE, BUSY).expect("heard");
        assert_eq!(table.neighbourhood(at(2099)).peers().len(), 1);
        assert_eq!(table.neighbourhood(at(2100)).peers().len(), 0);
    }

    #[test]
    fn the_hosts_that_share_the_air_are_those_heard_and_those_that_must_be_there() {
        // 100 hosts that speak every 8 s, of whose beacons `heard_of_64` in 64 come through, for two minutes.
        let estimate = |heard_of_64: u64| {
            let mut table = PeerTable::new(Limits::default());
            let (mut random, mut now) = (1_u64, Time::ZERO);
            table.crowd(now);
            for beacon in 0..1500_u64 {
                now += Span::from_millis(80);
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                if random >> 58 < heard_of_64 {
                    table.on_report(now, PeerId(beacon % 100), Span::from_secs(8), BUSY).expect("heard");
                }
            }
            (table.crowd(now).hosts, table.peers.len())
        };
        assert_eq!(estimate(64), (100, 100));
        // 7.5 beacons of each in the minute that is remembered: one in four heard, 1 - 0.75^7.5 = 88 of 100 hosts are known; one
        // in sixteen, 1 - 0.9375^7.5 = 38. A tenth of them and a fifth are two standard deviations or more.
        let (hosts, known) = estimate(16);
        assert!((90..=110).contains(&hosts) && (80..=95).contains(&known), "{hosts}, of which {known} are known");
        let (hosts, known) = estimate(4);
        assert!((75..=125).contains(&hosts) && (28..=48).contains(&known), "{hosts}, of which {known} are known");
        let mut nobody = PeerTable::new(Limits::default());
        assert_eq!((nobody.crowd(at(0)).hosts, nobody.crowd(at(60_000)).hosts), (0, 0));
    }

    #[test]
    fn a_crowd_that_speaks_less_often_than_it_first_said_is_not_taken_for_a_larger_one() {
        // Fifty hosts that speak every 4 s, and say 0.3 s the first time: nothing gets lost.
        let mut table = PeerTable::new(Limits::default());
        let mut most = 0;
        for beacon in 0..150 {
            let (now, interval) = (at(80 * beacon), if beacon < 50 { BASE } else { Span::from_secs(4) });
            table.on_report(now, PeerId(beacon % 50), interval, BUSY).expect("heard");
            most = most.max(if beacon >= 75 { table.crowd(now).hosts } else { 0 });
        }
        assert!((50..=55).contains(&most), "{most}");
    }

    #[test]
    fn senders_are_told_from_idle_hosts_where_these_are_heard_and_else_idle_ones_count_as_senders() {
        // Thirty busy hosts speak every 0.8 s and seventy idle ones every 8 s; so many beacons in sixteen are heard.
        let crowd = |heard_of_16: u64| {
            let mut table = PeerTable::new(Limits::default());
            let mut random = 1_u64;
            table.crowd(at(0));
            for step in 0..1500_u64 {
                let now = at(80 * step);
                for id in (0..100).filter(|id| if *id < 30 { step % 10 == id % 10 } else { step % 100 == *id }) {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    if random >> 60 < heard_of_16 {
                        let (interval, report) = if id < 30 { (800, BUSY) } else { (8000, Report::IDLE) };
                        table.on_report(now, PeerId(id), Span::from_millis(interval), report).expect("heard");
                    }
                }
            }
            table.crowd(at(120_000))
        };
        assert_eq!(crowd(16), Crowd { hosts: 100, senders: 30 });
        let Crowd { hosts, senders } = crowd(15);
        assert!((28..=33).contains(&senders) && (95..=105).contains(&hosts), "{senders} of {hosts}");
        let Crowd { hosts, senders } = crowd(1);
        assert!((60..=hosts).contains(&senders) && (75..=125).contains(&hosts), "{senders} of {hosts}");
    }

    #[test]
    fn a_host_that_is_gone_is_no_longer_reckoned_with_after_a_minute() {
        let mut table = PeerTable::new(Limits::default());
        table.on_report(at(0), PeerId(1), BASE, BUSY).expect("heard");
        assert!(table.crowd(at(59_999)).hosts >= 1);
        assert_eq!(table.crowd(at(60_000)).hosts, 0);
    }

    #[test]
    fn idle_peers_make_room_for_a_busy_one_and_busy_ones_do_not() {
        let limits = Limits { identities: 3, ..Limits::default() };
        let mut table = PeerTable::new(limits);
        let idle = Report { busy_flows: 0, ..BUSY };
        for (id, report) in [(1, BUSY), (2, idle), (3, idle)] {
            table.on_report(at(id), PeerId(id), Span::from_secs(15), report).expect("there is room");
        }
        assert_eq!(table.on_report(at(4), PeerId(9), BASE, idle), Err(Reject::Identities));
        assert_eq!(table.on_report(at(4), PeerId(4), BASE, BUSY), Ok(()));
        assert_eq!(table.on_report(at(4), PeerId(5), BASE, BUSY), Ok(()));
        assert_eq!(table.on_report(at(4), PeerId(6), BASE, BUSY), Err(Reject::Identities));
        let known: Vec<_> = table.neighbourhood(at(4)).peers().iter().map(|peer| peer.id.0).collect();
        assert_eq!(known, [1, 4, 5]);
        table.forget_all();
        assert_eq!((table.neighbourhood(at(4)), table.heard()), (Neighbourhood::alone(), 5));
    }

    #[test]
    fn whoever_invents_identities_fills_the_table_and_no_more() {
        let mut table = PeerTable::new(Limits::default());
        for id in 0..256 {
            table.on_report(at(0), PeerId(id), BASE, BUSY).expect("there is room");
        }
        assert_eq!(table.on_report(at(1), PeerId(999), BASE, BUSY), Err(Reject::Identities));
        table.on_report(at(1), PeerId(5), BASE, BUSY).expect("one that is known is still heard");
        assert_eq!(table.neighbourhood(at(1)).peers().len(), 256);
        table.on_report(at(2001), PeerId(999), BASE, BUSY).expect("the others have aged out");
        assert_eq!(table.rejections().of(Reject::Identities), 1);
    }

    #[test]
    fn one_peer_is_heard_twenty_times_a_second() {
        let mut table = PeerTable::new(Limits::default());
        let heard = (0..100).filter(|_| table.on_report(at(0), PeerId(1), BASE, BUSY).is_ok()).count();
        assert_eq!(heard, 20);
        // 20 per second is one every 50 ms
        assert_eq!(table.on_report(at(49), PeerId(1), BASE, BUSY), Err(Reject::PeerRate));
        assert_eq!(table.on_report(at(50), PeerId(1), BASE, BUSY), Ok(()));
        assert_eq!(table.rejections().of(Reject::PeerRate), 81);
        assert_eq!(table.on_report(at(50), PeerId(2), BASE, BUSY), Ok(()));
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
        assert_eq!(table.on_report(at(3300), PeerId(1), BASE, BUSY), Ok(()));
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
            ..FlowObservation::default()
        };
        let report = Report::of(&[flow(1, 200, true), flow(2, 700, true), flow(3, 900, false)], [Trigger::Peer]);
        assert_eq!((report.busy_flows, report.waiting), (2, false));
        assert_eq!(report.srtt, Some(Span::from_millis(700)));
        assert_eq!(report.ratio(), Some(7.0));
        assert_eq!((report.controlling, report.congested), (true, false));
        let report = Report::of(&[], [Trigger::Peer, Trigger::OwnRtt]);
        assert_eq!((report.controlling, report.congested), (true, true));
        assert_eq!(Report::of(&[], []), Report::default());
        // Sent, or written, and nothing of it gets through.
        let stalled = FlowObservation { in_flight_segments: 1, ..flow(1, 900, false) };
        for flow in [stalled, FlowObservation { in_flight_segments: 0, backlogged: true, ..stalled }] {
            let report = Report::of(&[flow], []);
            assert_eq!(report, Report { waiting: true, ..Report::default() });
            assert!(report.has_something_to_send() && !Report::default().has_something_to_send());
        }
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
                let _ = table.on_report(now, PeerId(*id), BASE, BUSY);
                prop_assert!(table.peers.len() <= 50);
            }
            prop_assert_eq!(table.heard() + table.rejections().total(), reports.len() as u64);
            for peer in table.neighbourhood(now).peers() {
                prop_assert!(now.saturating_since(peer.heard_at) < limits.age_out);
            }
        }
    }
}
