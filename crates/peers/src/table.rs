//! Who else is behind the same access point, and what they report of themselves.
//!
//! A [`PeerTable`] takes the reports that arrive and answers with the [`Neighbourhood`] as it is now. Nothing that a
//! peer says is trusted further than this table lets it:
//!
//! - a peer that has not been heard for `age_out` (2 s), or for 6.7 of the intervals that it announced if that is
//!   longer, is forgotten, after [`LONGEST_AGE_OUT`] (60 s) at the latest;
//! - at most `identities` peers are remembered (256), whoever invents more is not heard; but a busy peer takes the place
//!   of an idle one, so that nobody is kept from being counted by those who do not count;
//! - without a group key each source address speaks for one identity, and an identity has one address of each family, the
//!   second of which it shows within [`TOGETHER`] of the first;
//! - each identity over each address family, and all together, are heard at a limited rate;
//! - everything that is not heard is counted by its cause.
//!
//! The number of terminals n counts this host and every peer that reports a busy connection.

use lasthop_units::{Rate, Span, Time};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// A peer that announces this interval is forgotten after `Limits::age_out`'s default of 2 s, one that announces a longer one
/// after as many times that: 6.7 intervals, so that six beacons in a row may be lost (RFC 3550 §6.3.5 has five).
const INTERVAL_OF_2_S: Span = Span::from_millis(300);
/// Whatever interval a peer has announced, it is forgotten when it has not been heard for this long.
pub const LONGEST_AGE_OUT: Span = Span::from_secs(60);
/// Who has been heard within this shares the air, as far as [`crate::cadence`] goes: where the access point drops most of
/// what it should pass on, a host that is heard once in ten beacons must not be taken for one that has gone.
pub const REMEMBERED: Span = Span::from_secs(60);

/// Without a group key a source address that takes another identity keeps it for so long: a host that restarts does, and one that
/// invents identities counts as one host.
pub const CHANGE: Span = Span::from_secs(2);

/// Without a group key an identity that is heard over one address family may show its address of the other for so long: a host sends
/// over both at once. Later anybody could join in whose address is of the other family.
pub const TOGETHER: Span = Span::from_secs(1);

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
    authenticated: bool,
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
    /// Reports per second of one identity over one address family; as many may come at once. An honest peer sends 4 at most (every
    /// 0.3 s, and now and then at once).
    pub per_peer_per_second: u32,
    /// Reports per second of all together; as many may come at once.
    pub total_per_second: u32,
    /// Beacons are signed with a group key: a host may say what it likes of its addresses. Without one each source address
    /// speaks for one identity, which it may change every [`CHANGE`].
    pub authenticated: bool,
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
    /// More identities than are remembered, or than one address may have.
    #[error("too many peers")]
    Identities,
    /// Another address than the peer's own uses its identity.
    #[error("another peer's identity")]
    Address,
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
    /// One for each address family: who speaks as this one over the other does not use this one's up.
    buckets: [Bucket; 2],
    /// Without a group key: where it speaks from, over IPv4 and over IPv6.
    sources: [Option<Source>; 2],
    /// When it was first heard, or again after it had aged out.
    met_at: Time,
}

/// An address that speaks for an identity.
#[derive(Clone, Copy, Debug)]
struct Source {
    address: IpAddr,
    /// Since when it speaks for this one.
    bound_at: Time,
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
    pub const IDLE: Self = Self {
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

    /// Whether it has something to send, whether that gets through or not.
    pub const fn has_something_to_send(&self) -> bool {
        self.busy_flows > 0 || self.waiting
    }

    /// RTT / lowest RTT; `None` before both are known.
    pub fn ratio(&self) -> Option<f64> {
        self.srtt?.over(self.min_rtt?)
    }
}

impl Neighbourhood {
    /// No peers.
    pub const fn alone() -> Self {
        Self { peers: Vec::new(), hosts: 0, authenticated: false }
    }

    /// These peers, and nobody else.
    pub fn new(mut peers: Vec<Peer>) -> Self {
        peers.sort_by_key(|peer| peer.id);
        let hosts = peers.len();
        Self { peers, hosts, authenticated: false }
    }

    /// Whether what they say is signed with a group key.
    pub const fn is_authenticated(&self) -> bool {
        self.authenticated
    }

    /// How many other hosts share the air, busy or not, those included of whom nothing is heard, as far as can be told ([`PeerTable::crowd`]).
    pub const fn hosts(&self) -> usize {
        self.hosts
    }

    /// The peers, busy or not.
    pub fn peers(&self) -> &[Peer] {
        &self.peers
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
            per_peer_per_second: 20, // five times what an honest peer sends
            total_per_second: 2000,  // 256 honest peers send 1707; a broadcast takes the air some 0.5 ms or more
            authenticated: false,
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
            Self::Address => "address",
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

    /// Takes a peer's report, the address that it came from, and the interval after which its next one is due.
    ///
    /// # Errors
    /// [`Reject::PeerRate`], [`Reject::Identities`] or, without a group key, [`Reject::Address`]; counted.
    pub fn on_report(
        &mut self,
        now: Time,
        from: IpAddr,
        id: PeerId,
        interval: Span,
        report: Report,
    ) -> Result<(), Reject> {
        if !self.limits.authenticated {
            self.check_address(now, from, id).map_err(|cause| self.reject(cause))?;
        }
        let is_new = !self.peers.contains_key(&id);
        if is_new && self.peers.len() >= self.limits.identities && !self.make_room(now, report.busy_flows > 0) {
            return Err(self.reject(Reject::Identities));
        }
        let missed = u128::from(interval.as_nanos()) * 2_000_000_000 / u128::from(INTERVAL_OF_2_S.as_nanos());
        let missed = Span::from_nanos(u64::try_from(missed).unwrap_or(u64::MAX));
        let age_out = missed.max(self.limits.age_out).min(LONGEST_AGE_OUT);
        let since = *self.since.get_or_insert(now);
        let mut first = Entry {
            report,
            heard_at: since,
            interval,
            missed_before: 0.0,
            heard: -1.0,
            announced: 0.0,
            age_out,
            buckets: [Bucket::full(self.limits.per_peer_per_second, now); 2],
            sources: [None; 2],
            met_at: now,
        };
        (first.missed_before, first.heard_at) = (first.due_since_heard(now, interval), now);
        let entry = self.peers.entry(id).or_insert(first);
        let family = family(from);
        if !entry.buckets[family].take(now) {
            return Err(self.reject(Reject::PeerRate));
        }
        let (heard, announced) = (entry.heard + 1.0, entry.announced + entry.due_since_heard(now, interval));
        let met_at = if entry.has_aged_out(now) { now } else { entry.met_at };
        *entry = Entry { report, heard_at: now, interval, heard, announced, age_out, met_at, ..*entry };
        if !self.limits.authenticated && entry.sources[family].is_none_or(|source| source.address != from) {
            entry.sources[family] = Some(Source { address: from, bound_at: now });
        }
        self.heard += 1;
        Ok(())
    }

    /// Whether this address may speak for this identity. One that has spoken for another for [`CHANGE`] gives that up.
    fn check_address(&mut self, now: Time, from: IpAddr, id: PeerId) -> Result<(), Reject> {
        let family = family(from);
        if let Some(known) = self.peers.get(&id) {
            let is_new_family = known.sources[family].is_none() && now.saturating_since(known.met_at) < TOGETHER;
            match known.sources[family] {
                Some(source) if source.address == from => return Ok(()),
                _ if is_new_family || known.has_aged_out(now) => {}
                _ => return Err(Reject::Address),
            }
        }
        for (&other, entry) in &mut self.peers {
            let Some(source) = entry.sources[family].filter(|source| source.address == from) else { continue };
            if now.saturating_since(source.bound_at) < CHANGE {
                return Err(Reject::Identities);
            }
            entry.sources[family] = None;
            if entry.sources.iter().all(Option::is_none) {
                self.peers.remove(&other);
            }
            break;
        }
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

    /// Goes on with the counts of the table whose place this one takes.
    pub fn count_on(&mut self, before: &Self) {
        self.heard += before.heard;
        for (cause, count) in before.rejections.iter() {
            *self.rejections.0.entry(cause).or_default() += count;
        }
    }

    /// Those who have not aged out.
    pub fn neighbourhood(&mut self, now: Time) -> Neighbourhood {
        let hosts = self.crowd(now).hosts;
        let there = self.peers.iter().filter(|(_, entry)| !entry.has_aged_out(now));
        let peer = |(id, entry): (&PeerId, &Entry)| Peer { id: *id, report: entry.report, heard_at: entry.heard_at };
        let authenticated = self.limits.authenticated;
        Neighbourhood { peers: there.map(peer).collect(), hosts, authenticated }
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

/// The place of an address in [`Entry::sources`].
fn family(address: IpAddr) -> usize {
    usize::from(address.is_ipv6())
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
mod tests;
