//! The other hosts behind the same access point, and their reports.
//!
//! A [`PeerTable`] takes the reports that arrive and answers with the current [`Neighbourhood`]. It limits what a peer
//! can do by lying:
//!
//! - A peer is forgotten when it has not been heard for `age_out` (2 s) or 6.7 of its announced intervals, whichever is
//!   longer. After [`LONGEST_AGE_OUT`] (60 s) it is always forgotten.
//! - At most `identities` peers (256) are remembered; further ones are not heard. But a busy peer takes the place of an
//!   idle one, so that invented idle peers do not keep busy ones out.
//! - Without a group key each source address speaks for one identity. An identity has one address of each family, and
//!   must show the second within [`TOGETHER`] of the first.
//! - Reports are heard at a limited rate: for each identity and address family, and for all together.
//! - Each rejected report is counted by its cause.
//!
//! The number of terminals n counts this host and every peer that reports a busy connection.

use lasthop_units::{Span, Time};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// A peer that announces this interval is forgotten after the default `Limits::age_out` of 2 s; one with a longer
/// interval after proportionally longer. That is 6.7 intervals, so that six beacons in a row may be lost (RFC 3550
/// §6.3.5: five).
const INTERVAL_OF_2_S: Span = Span::from_millis(300);
/// A peer not heard for this long is forgotten, whatever interval it announced.
pub const LONGEST_AGE_OUT: Span = Span::from_secs(60);
/// The time for which a host counts in [`PeerTable::crowd`] after it was heard. Where the access point drops most
/// beacons, a host of which one in ten is heard must not be taken for one that has left.
pub const REMEMBERED: Span = Span::from_secs(60);

/// Without a group key, how long a source address keeps an identity that it has taken. A restarted host takes a new
/// one; an attacker that invents identities counts as one host.
pub const CHANGE: Span = Span::from_secs(2);

/// Without a group key, how long an identity heard over one address family may show its address of the other. A host
/// sends over both at once; later, anyone with an address of the other family could join in.
pub const TOGETHER: Span = Span::from_secs(1);

/// The identity of a peer, which it draws at random when it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(pub u64);

/// What a host reports of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Report {
    /// Its connections that are sending through the shared access point.
    pub busy_flows: u16,
    /// Another connection has something to send and nothing arrives: for example it waits for a retransmission timeout.
    pub waiting: bool,
    /// Smoothed RTT of the busy connection whose RTT has risen most.
    pub srtt: Option<Span>,
    /// Lowest RTT of the same connection.
    pub min_rtt: Option<Span>,
    /// At least one of its connections is under control.
    pub controlling: bool,
    /// At least one is under control because its own RTT rose, not because a peer reported congestion.
    pub congested: bool,
    /// What its policy tells other hosts with the same policy.
    pub word: Option<Word>,
}

/// What a host's policy tells other hosts with the same policy. This crate carries it and does not interpret it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Word {
    kind: u8,
    bytes: [u8; Self::BYTES],
}

/// A peer with its last report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its identity.
    pub id: PeerId,
    /// Its last report.
    pub report: Report,
    /// When that arrived.
    pub heard_at: Time,
}

/// The current peers, in the order of their identities.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Neighbourhood {
    peers: Vec<Peer>,
    hosts: usize,
    authenticated: bool,
}

/// The number of other hosts that share the air.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Crowd {
    /// All of them.
    pub hosts: usize,
    /// Those that had something to send when last heard, or have been silent for long enough that they may have by now.
    pub senders: usize,
}

/// An idle peer that has missed more beacons than this may have something to send by now. Where many beacons are lost
/// in a queue, every host was idle when it was last heard.
const SILENT: f64 = 2.0;

/// The limits of a [`PeerTable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A peer not heard for this long is forgotten, unless it has announced a longer interval. At most [`LONGEST_AGE_OUT`].
    pub age_out: Span,
    /// The greatest number of peers that are remembered.
    pub identities: usize,
    /// Reports per second of one identity over one address family, and the size of a burst. An honest peer sends at
    /// most 4 (every 0.3 s, and sometimes at once).
    pub per_peer_per_second: u32,
    /// Reports per second of all peers together, and the size of a burst.
    pub total_per_second: u32,
    /// Whether beacons are signed with a group key. Their source addresses are then not checked. Without a key each
    /// source address speaks for one identity, which it may change every [`CHANGE`].
    pub authenticated: bool,
}

/// Why a datagram was not heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Reject {
    /// More datagrams arrive than are looked at.
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
    /// One identity sends faster than any honest peer.
    #[error("one peer sends too often")]
    PeerRate,
    /// It waited in the socket while this host was not running.
    #[error("arrived while this host was not running")]
    Waited,
    /// More identities than are remembered, or than one address may have.
    #[error("too many peers")]
    Identities,
    /// An address that is not the peer's own uses its identity.
    #[error("another peer's identity")]
    Address,
}

/// The number of rejected datagrams, by cause.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rejections(BTreeMap<Reject, u64>);

/// The peers, with their ages and rates.
#[derive(Clone, Debug)]
pub struct PeerTable {
    limits: Limits,
    peers: BTreeMap<PeerId, Entry>,
    /// When the table was first used; `None`: not yet.
    since: Option<Time>,
    all: Bucket,
    heard: u64,
    rejections: Rejections,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    report: Report,
    heard_at: Time,
    /// The interval that it announced last.
    interval: Span,
    /// Beacons that it may have sent before its first was heard, since listening began.
    missed_before: f64,
    /// Beacons heard after its first.
    heard: f64,
    /// Beacons that should have come between its first and its last.
    announced: f64,
    /// It ages out when not heard for this long.
    age_out: Span,
    /// One for each address family, so that reports over one do not use up the other's rate.
    buckets: [Bucket; 2],
    /// Without a group key: its source addresses over IPv4 and IPv6.
    sources: [Option<Source>; 2],
    /// When it was first heard, or heard again after it had aged out.
    met_at: Time,
}

/// An address that speaks for an identity.
#[derive(Clone, Copy, Debug)]
struct Source {
    address: IpAddr,
    /// Since when it speaks for this identity.
    bound_at: Time,
}

/// A token bucket with the size of one second's tokens, counted in 1/10^9 token.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    per_second: u32,
    level: u64,
    filled_at: Time,
}

impl Report {
    /// The report of a host with nothing to send; the default.
    pub const IDLE: Self = Self {
        busy_flows: 0,
        waiting: false,
        srtt: None,
        min_rtt: None,
        controlling: false,
        congested: false,
        word: None,
    };

    /// Whether it has something to send, even if nothing gets through.
    pub const fn has_something_to_send(&self) -> bool {
        self.busy_flows > 0 || self.waiting
    }

    /// RTT / lowest RTT; `None` before both are known.
    pub fn ratio(&self) -> Option<f64> {
        self.srtt?.over(self.min_rtt?)
    }
}

impl Word {
    /// Length in bytes.
    pub const BYTES: usize = 16;
    /// The greatest kind.
    pub const KINDS: u8 = 15;

    /// A word with these bytes. Its `kind`, 1..=[`Self::KINDS`], names the policy and the version of its layout.
    ///
    /// # Panics
    /// If `kind` is out of range.
    pub const fn new(kind: u8, bytes: [u8; Self::BYTES]) -> Self {
        assert!(kind > 0 && kind <= Self::KINDS, "a kind from 1 to 15");
        Self { kind, bytes }
    }

    /// The kind: which policy's word this is, and in which version.
    pub const fn kind(&self) -> u8 {
        self.kind
    }

    /// The bytes, if the word is of this kind.
    pub const fn of_kind(&self, kind: u8) -> Option<&[u8; Self::BYTES]> {
        if self.kind == kind { Some(&self.bytes) } else { None }
    }
}

impl Neighbourhood {
    /// No peers.
    pub const fn alone() -> Self {
        Self { peers: Vec::new(), hosts: 0, authenticated: false }
    }

    /// These peers.
    pub fn new(mut peers: Vec<Peer>) -> Self {
        peers.sort_by_key(|peer| peer.id);
        let hosts = peers.len();
        Self { peers, hosts, authenticated: false }
    }

    /// Whether the peers' reports are signed with a group key.
    pub const fn is_authenticated(&self) -> bool {
        self.authenticated
    }

    /// The estimated number of other hosts that share the air, busy or not, with those not heard
    /// ([`PeerTable::crowd`]).
    pub const fn hosts(&self) -> usize {
        self.hosts
    }

    /// The peers, busy or not.
    pub fn peers(&self) -> &[Peer] {
        &self.peers
    }

    /// The number of busy connections of all peers, without those of this host.
    pub fn busy_flows(&self) -> u32 {
        self.peers.iter().map(|peer| u32::from(peer.report.busy_flows)).fold(0, u32::saturating_add)
    }

    /// n: the number of terminals that are communicating, with this one.
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

    /// The sum over all causes.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// The number for one cause.
    pub fn of(&self, cause: Reject) -> u64 {
        self.0.get(&cause).copied().unwrap_or(0)
    }

    /// Every cause that occurred, with its number.
    pub fn iter(&self) -> impl Iterator<Item = (Reject, u64)> + '_ {
        self.0.iter().map(|(cause, count)| (*cause, *count))
    }
}

impl Reject {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::TotalRate,
        Self::Length,
        Self::Magic,
        Self::Version,
        Self::Group,
        Self::Unauthenticated,
        Self::NoKey,
        Self::Tag,
        Self::Stale,
        Self::Replay,
        Self::PeerRate,
        Self::Waited,
        Self::Identities,
        Self::Address,
    ];

    /// Whether a person has to look: an agent that should be heard is not, or somebody pretends to be one or floods.
    /// Not so what belongs to another program or access point, or came while this host slept.
    pub const fn is_fault(self) -> bool {
        match self {
            Self::Length | Self::Magic | Self::Group | Self::Waited => false,
            Self::Version | Self::Unauthenticated | Self::NoKey | Self::Tag | Self::Stale | Self::Replay => true,
            Self::TotalRate | Self::PeerRate | Self::Identities | Self::Address => true,
        }
    }

    /// A short name for logs and counters.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TotalRate => "total-rate",
            Self::Length => "length",
            Self::Magic => "magic",
            Self::Version => "version",
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

/// How long a host that announces this interval is remembered without a beacon, at least for `least`.
pub(crate) fn age_out(interval: Span, least: Span) -> Span {
    let missed = u128::from(interval.as_nanos()) * 2_000_000_000 / u128::from(INTERVAL_OF_2_S.as_nanos());
    let missed = Span::from_nanos(u64::try_from(missed).unwrap_or(u64::MAX));
    missed.max(least).min(LONGEST_AGE_OUT)
}

impl PeerTable {
    /// A table without peers.
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

    /// Whether a datagram that arrived may be looked at. Call it before decoding: this bounds the work.
    ///
    /// # Errors
    /// [`Reject::TotalRate`], counted.
    pub fn on_datagram(&mut self, now: Time) -> Result<(), Reject> {
        self.since.get_or_insert(now);
        if self.all.take(now) { Ok(()) } else { Err(self.reject(Reject::TotalRate)) }
    }

    /// Takes a peer's report, with the source address and the interval after which the next one is due.
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
        let age_out = age_out(interval, self.limits.age_out);
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

    /// Whether this address may speak for this identity. It gives up the identity for which it has spoken for
    /// [`CHANGE`].
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

    /// The estimated number of other hosts that share the air, busy or not. It counts the hosts heard within
    /// [`REMEMBERED`], and adds an estimate of those whose beacons were all lost.
    ///
    /// p is the share of beacons that are heard: those that arrived out of those that were announced. A host that sends
    /// m beacons within [`REMEMBERED`] is not heard at all with probability (1 − p)^m. So each host that is heard
    /// stands for 1 / (1 − (1 − p)^m) hosts (Horvitz and Thompson, 1952).
    ///
    /// Hosts of a growing crowd send less and less often. So the number of beacons that a peer should have sent since
    /// its last is computed from its interval or the usual one, whichever is longer. The usual one is the median of all
    /// senders, or of all idle hosts. Once the peer is heard again, the interval that it then announces counts.
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
        let (mut heard, mut announced) = (1.0, 2.0); // one in two, before the first is heard again
        for entry in self.peers.values() {
            heard += entry.heard;
            announced += entry.announced + entry.due_since_heard(now, usual(entry));
        }
        let lost = 1.0 - f64::min(heard / announced, 1.0);
        let stands_for = |entry: &Entry| {
            let since_listening = entry.missed_before + entry.announced + entry.due_since_heard(now, usual(entry));
            let sent = since_listening.min(REMEMBERED.as_secs_f64() / entry.interval_s()).max(1.0);
            1.0 / (1.0 - libm::pow(lost, sent))
        };
        let (mut hosts, mut senders) = (0.0, 0.0);
        for entry in self.peers.values() {
            hosts += stands_for(entry);
            let may_send = entry.sends() || entry.due_since_heard(now, usual(entry)) > SILENT;
            senders += if may_send { stands_for(entry) } else { 0.0 };
        }
        Crowd { hosts: f64::round(hosts) as usize, senders: f64::round(senders) as usize }
    }

    /// Forgets every peer, after this host has moved or slept. The counters go on.
    pub fn forget_all(&mut self) {
        self.peers.clear();
        self.since = None;
    }

    /// Counts a datagram that the caller rejected; returns the cause.
    pub fn reject(&mut self, cause: Reject) -> Reject {
        self.rejections.count(cause);
        cause
    }

    /// Adds the counters of the table that this one replaces.
    pub fn count_on(&mut self, before: &Self) {
        self.heard += before.heard;
        for (cause, count) in before.rejections.iter() {
            *self.rejections.0.entry(cause).or_default() += count;
        }
    }

    /// The peers that have not aged out.
    pub fn neighbourhood(&mut self, now: Time) -> Neighbourhood {
        let hosts = self.crowd(now).hosts;
        let there = self.peers.iter().filter(|(_, entry)| !entry.has_aged_out(now));
        let peer = |(id, entry): (&PeerId, &Entry)| Peer { id: *id, report: entry.report, heard_at: entry.heard_at };
        let authenticated = self.limits.authenticated;
        Neighbourhood { peers: there.map(peer).collect(), hosts, authenticated }
    }

    /// Counts a note that is heard.
    pub(crate) const fn on_note(&mut self) {
        self.heard += 1;
    }

    /// Number of reports and notes heard since the start.
    pub const fn heard(&self) -> u64 {
        self.heard
    }

    /// The datagrams rejected since the start.
    pub const fn rejections(&self) -> &Rejections {
        &self.rejections
    }

    fn forget_old(&mut self, now: Time) {
        self.peers.retain(|_, entry| now.saturating_since(entry.heard_at) < REMEMBERED);
    }

    /// Forgets a peer to make room, the one not heard for longest: one that has aged out or, for a busy peer, an idle
    /// one. Returns whether there was one.
    fn make_room(&mut self, now: Time, for_busy: bool) -> bool {
        let may_go = |entry: &Entry| entry.has_aged_out(now) || (for_busy && !entry.sends());
        let may_go = self.peers.iter().filter(|(_, entry)| may_go(entry));
        let oldest = may_go.min_by_key(|(_, entry)| entry.heard_at).map(|(id, _)| *id);
        oldest.is_some_and(|id| self.peers.remove(&id).is_some())
    }
}

impl Entry {
    /// The announced interval, but at least 50 ms.
    fn interval_s(&self) -> f64 {
        f64::max(self.interval.as_secs_f64(), 0.05)
    }

    /// Beacons that should have come since the last, if the announced interval has been stretched to `at_least`.
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

/// The index of an address's family in [`Entry::sources`].
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
