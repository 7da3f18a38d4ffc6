//! Beacons passed on by unicast, where an access point keeps its clients from hearing each other (client isolation).
//!
//! A relay is a host that all can reach. Agents send it each datagram that they broadcast. Every [`EVERY`] it sends each of them
//! what came anew from the others behind the same access point, in one datagram or a few. What was signed goes on unchanged, so
//! agents check it as if they had heard it.
//!
//! | offset | bytes | field | |
//! | --- | --- | --- | --- |
//! | 0 | 4 | magic | `LHRL` (4c 48 52 4c) |
//! | 4 | 1 | version | 1 |
//! | | 1 | length | of the datagram that follows; once more for each |
//! | | | datagram | a beacon or a note, as it was signed |
//!
//! It hears only hosts with its group key, no datagram twice ([`Receiver`]), and none from before its own start, of which it does not
//! know what it had heard. So who knows its address alone cannot make it send. To an address goes only what the hosts of one access
//! point say, while that address says something itself.
//!
//! What is from before the start is told by the host's clock. If that is 5 s behind the relay's, the host is heard 5 s after the start. If
//! it is 5 s ahead, a recording of the last 5 s before the start is heard, unless the host itself has been heard since.
//!
//! *What it leaves out*: who lies though he has the key; addresses that change without a beacon; who delivers a beacon from another
//! address before the host's own arrives. What that host is sent goes to that address then, until its next beacon or note: to a third
//! party's, if it is forged.

use crate::beacon::Receiver;
use crate::group::GroupId;
use crate::table::age_out;
use crate::{Limits, PeerId, Reject};
use lasthop_units::{Span, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// How often members are sent what is new, ...
pub const EVERY: Span = Span::from_millis(300);
/// ... or this for each of them, if that is longer: each costs a frame on the air, and where they are many their beacons come seldom.
pub const EVERY_BY_MEMBER: Span = Span::from_millis(30);
/// A member gets something at least so often, be it empty: so it knows that the relay is there, and a translator of addresses remembers it.
pub const ALIVE: Span = Span::from_secs(5);
/// The UDP port of a relay, unless it is told another one.
pub const PORT: u16 = 29_471;
/// The longest datagram of a relay in bytes: below any path's MTU.
pub const MOST_BYTES: usize = 1_200;
/// The most members. More are not heard.
pub const MEMBERS: usize = 1_024;
/// The most notes of a member that wait for the others.
const NOTES: usize = 8;

const HEAD: [u8; 5] = *b"LHRL\x01";

/// Puts datagrams of at most 255 bytes into as few as may be of [`MOST_BYTES`].
fn pack<'a>(datagrams: impl Iterator<Item = &'a [u8]>) -> Vec<Vec<u8>> {
    let mut packed = vec![HEAD.to_vec()];
    for datagram in datagrams {
        let Ok(length) = u8::try_from(datagram.len()) else { continue };
        if packed.last().is_some_and(|last| last.len() + 1 + datagram.len() > MOST_BYTES) {
            packed.push(HEAD.to_vec());
        }
        let last = packed.last_mut().expect("there is one");
        last.push(length);
        last.extend_from_slice(datagram);
    }
    packed
}

/// The datagrams in one of a relay's, up to the first that is not whole; `None`: it is none of a relay's.
pub fn unpack(datagram: &[u8]) -> Option<impl Iterator<Item = &[u8]>> {
    let mut rest = datagram.strip_prefix(&HEAD)?;
    Some(std::iter::from_fn(move || {
        let (length, behind) = rest.split_first()?;
        let (one, behind) = behind.split_at_checked(usize::from(*length))?;
        rest = behind;
        Some(one)
    }))
}

/// The members of all access points, and what came of them.
#[derive(Clone, Debug)]
pub struct Relay {
    receiver: Receiver,
    started: Time,
    members: BTreeMap<(GroupId, PeerId), Member>,
    next_round: Time,
}

#[derive(Clone, Debug)]
struct Member {
    address: SocketAddr,
    /// Forgotten then.
    until: Time,
    sent_at: Time,
    /// Its latest beacon, and its notes, since the last round.
    beacon: Option<Vec<u8>>,
    notes: Vec<Vec<u8>>,
}

impl Relay {
    /// Without members, started `now`. `receiver` has the group key; its group does not matter.
    ///
    /// # Panics
    /// Without a key: such a relay would send to whomever a forger names.
    pub fn new(receiver: Receiver, now: Time) -> Self {
        assert!(receiver.key().is_some(), "a relay has a group key");
        Self { receiver, started: now, members: BTreeMap::new(), next_round: Time::ZERO }
    }

    /// How many hosts behind how many access points were heard of late.
    pub fn size(&self) -> (usize, usize) {
        let groups: BTreeSet<GroupId> = self.members.keys().map(|(group, _)| *group).collect();
        (self.members.len(), groups.len())
    }

    /// Takes what came from `from` at `wall_ns` (wall clock, ns since 1970-01-01 UTC).
    ///
    /// # Errors
    /// Why it is not passed on. No input makes this panic.
    pub fn on_datagram(&mut self, now: Time, wall_ns: u64, from: SocketAddr, datagram: &[u8]) -> Result<(), Reject> {
        let said = self.receiver.on_any(wall_ns, datagram)?;
        // Ages, not times of day: a wall clock that is set back by less than 30 s does not make it deaf.
        let age = Span::from_nanos(wall_ns.saturating_sub(said.timestamp_ns));
        if age > now.saturating_since(self.started) {
            return Err(Reject::Stale);
        }
        let is_full = self.members.len() >= MEMBERS;
        let key = (said.group, said.sender);
        // A note does not make a member.
        let member = match (self.members.get_mut(&key), said.interval) {
            (Some(member), _) => member,
            (None, Some(_)) if !is_full => self.members.entry(key).or_insert(Member {
                address: from,
                until: now,
                sent_at: now,
                beacon: None,
                notes: Vec::new(),
            }),
            (None, _) => return Err(Reject::Identities),
        };
        member.address = from;
        match said.interval {
            Some(interval) => {
                member.until = now.saturating_add(age_out(interval, Limits::default().age_out));
                member.beacon = Some(datagram.to_vec());
            }
            None if member.notes.len() < NOTES => member.notes.push(datagram.to_vec()),
            None => return Err(Reject::PeerRate),
        }
        Ok(())
    }

    /// When [`Self::round`] is due; `None`: there are no members.
    pub fn next_round_at(&self) -> Option<Time> {
        (!self.members.is_empty()).then_some(self.next_round)
    }

    /// What to send where, if a round is due.
    pub fn round(&mut self, now: Time) -> Vec<(SocketAddr, Vec<u8>)> {
        if now < self.next_round {
            return Vec::new();
        }
        self.members.retain(|_, member| now < member.until);
        self.next_round = now.saturating_add(EVERY.max(EVERY_BY_MEMBER * self.members.len() as u64));
        let mut all = Vec::new();
        for (key @ (group, _), member) in &self.members {
            let others = self.members.range((*group, PeerId(0))..=(*group, PeerId(u64::MAX)));
            let others = others.filter(|(other, _)| *other != key).map(|(_, other)| other);
            let mut news =
                others.flat_map(|other| other.notes.iter().chain(&other.beacon)).map(Vec::as_slice).peekable();
            if news.peek().is_some() || now.saturating_since(member.sent_at) >= ALIVE {
                all.extend(pack(news).into_iter().map(|packed| (*key, member.address, packed)));
            }
        }
        for (key, ..) in &all {
            if let Some(member) = self.members.get_mut(key) {
                member.sent_at = now;
            }
        }
        for member in self.members.values_mut() {
            (member.beacon, member.notes) = (None, Vec::new());
        }
        all.into_iter().map(|(_, address, packed)| (address, packed)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beacon::{Beacon, GroupKey, INTERVAL};
    use crate::{Note, Report};
    use proptest::prelude::*;

    const WALL_NS: u64 = 1_800_000_000_000_000_000;

    fn key() -> GroupKey {
        GroupKey::new(b"sixteen bytes or more").expect("long enough")
    }

    fn relay() -> Relay {
        started(at(0))
    }

    fn started(now: Time) -> Relay {
        Relay::new(Receiver::new(GroupId(0), Some(key())), now)
    }

    fn address(host: u8) -> SocketAddr {
        SocketAddr::from(([10, 77, 0, host], 40_000))
    }

    fn beacon(host: u8, group: u64, number: u64, key: Option<&GroupKey>) -> Vec<u8> {
        let (sender, group) = (PeerId(host.into()), GroupId(group));
        Beacon { sender, timestamp_ns: WALL_NS + number, group, interval: INTERVAL, report: Report::default() }
            .encode(key)
    }

    fn at(milliseconds: u64) -> Time {
        Time::ZERO + Span::from_millis(milliseconds)
    }

    fn told(sent: &[(SocketAddr, Vec<u8>)], host: u8) -> Vec<Vec<u8>> {
        let to = sent.iter().filter(|(to, _)| *to == address(host));
        to.flat_map(|(_, packed)| unpack(packed).expect("a relay's").map(<[u8]>::to_vec)).collect()
    }

    #[test]
    fn each_member_gets_the_latest_of_the_others_behind_its_access_point_once() {
        let mut relay = relay();
        let say = |host, group, number| beacon(host, group, number, Some(&key()));
        for (host, group, number) in [(1, 7, 1), (2, 7, 1), (2, 7, 2), (3, 7, 1), (4, 8, 1)] {
            relay.on_datagram(at(0), WALL_NS, address(host), &say(host, group, number)).expect("it is heard");
        }
        let note = Note { sender: PeerId(1), timestamp_ns: WALL_NS + 9, group: GroupId(7), text: b"now".to_vec() };
        let note = note.encode(Some(&key()));
        relay.on_datagram(at(0), WALL_NS, address(1), &note).expect("it is heard");
        assert_eq!(relay.size(), (4, 2));
        let sent = relay.round(at(0));
        assert_eq!(told(&sent, 1), [say(2, 7, 2), say(3, 7, 1)]);
        assert_eq!(told(&sent, 3), [note, say(1, 7, 1), say(2, 7, 2)]);
        assert!(!sent.iter().any(|(to, _)| *to == address(4)), "nobody else is behind that access point");
        assert!(relay.round(at(299)).is_empty() && relay.round(at(300)).is_empty(), "nothing is new");
    }

    #[test]
    fn a_member_is_told_that_the_relay_is_there_and_forgotten_when_it_is_silent() {
        let mut relay = relay();
        relay.on_datagram(at(0), WALL_NS, address(1), &beacon(1, 7, 1, Some(&key()))).expect("it is heard");
        let rounds = |relay: &mut Relay, from: u64, to: u64| {
            (from..to).step_by(300).map(|ms| relay.round(at(ms)).len()).sum::<usize>()
        };
        // 6.7 intervals of 0.3 s, 2 s.
        assert_eq!(rounds(&mut relay, 0, 2_100), 0);
        assert_eq!(relay.size(), (1, 1));
        assert_eq!(rounds(&mut relay, 2_100, 9_000), 0);
        assert_eq!((relay.size(), relay.next_round_at()), ((0, 0), None));
        for second in 9..20 {
            let say = beacon(1, 7, second, Some(&key()));
            relay.on_datagram(at(second * 1_000), WALL_NS, address(1), &say).expect("it is heard");
            let sent = relay.round(at(second * 1_000));
            assert_eq!(sent.len(), usize::from(second == 14 || second == 19), "{second} s");
            assert!(sent.iter().all(|(_, packed)| unpack(packed).is_some_and(|mut news| news.next().is_none())));
        }
    }

    #[test]
    fn without_the_key_nobody_is_a_member_and_no_recording_moves_one() {
        let mut relay = relay();
        let say = beacon(1, 7, 1, Some(&key()));
        let other = GroupKey::new(b"another key of some length").expect("long enough");
        let mut hear = |from, datagram: &[u8]| relay.on_datagram(at(0), WALL_NS, address(from), datagram);
        assert_eq!(hear(9, &beacon(1, 7, 1, None)), Err(Reject::Unauthenticated));
        assert_eq!(hear(9, &beacon(1, 7, 1, Some(&other))), Err(Reject::Tag));
        assert_eq!(hear(1, &say), Ok(()));
        assert_eq!(hear(9, &say), Err(Reject::Replay));
        let note = Note { sender: PeerId(2), timestamp_ns: WALL_NS, group: GroupId(7), text: Vec::new() };
        assert_eq!(hear(2, &note.encode(Some(&key()))), Err(Reject::Identities), "who has sent no beacon is no member");
        assert_eq!(relay.size(), (1, 1));
        assert_eq!(relay.members.values().map(|member| member.address).collect::<Vec<_>>(), [address(1)]);
    }

    #[test]
    fn a_relay_that_is_started_again_hears_no_recording_from_before_its_start() {
        let recorded = beacon(1, 7, 0, Some(&key()));
        assert_eq!(relay().on_datagram(at(0), WALL_NS, address(1), &recorded), Ok(()));
        let wall_ns = |milliseconds| WALL_NS + Span::from_millis(milliseconds).as_nanos();
        for milliseconds in [5_000, 10_000, 30_000] {
            let mut again = started(at(5_000));
            let heard = again.on_datagram(at(milliseconds), wall_ns(milliseconds), address(9), &recorded);
            assert_eq!((heard, again.size()), (Err(Reject::Stale), (0, 0)), "{milliseconds} ms");
            assert!(again.round(at(milliseconds)).is_empty());
        }
    }

    #[test]
    fn after_its_start_a_relay_hears_a_host_at_once_and_one_whose_clock_is_behind_so_much_later() {
        let mut relay = started(at(5_000));
        let mut hear = |host, milliseconds: u64, behind_ms: u64| {
            let since = |milliseconds| Span::from_millis(milliseconds).as_nanos();
            let say = beacon(host, 7, since(milliseconds - behind_ms), Some(&key()));
            relay.on_datagram(at(milliseconds), WALL_NS + since(milliseconds), address(host), &say)
        };
        assert_eq!(hear(1, 5_000, 0), Ok(()));
        let heard = [5_000, 6_000, 6_999, 7_000, 8_000].map(|milliseconds| hear(2, milliseconds, 2_000));
        assert_eq!(heard, [Err(Reject::Stale), Err(Reject::Stale), Err(Reject::Stale), Ok(()), Ok(())]);
    }

    /// What the page of threats grants an attacker, and no more.
    #[test]
    fn a_recording_of_a_host_whose_clock_is_ahead_is_heard_unless_the_host_was() {
        let since = |milliseconds| Span::from_millis(milliseconds).as_nanos();
        // Sent at 4 s, by a clock that is 2 s ahead, and recorded; the relay starts at 5 s.
        let recorded = beacon(1, 7, since(6_000), Some(&key()));
        let hear = |relay: &mut Relay, from, datagram: &[u8]| {
            relay.on_datagram(at(5_500), WALL_NS + since(5_500), address(from), datagram)
        };
        assert_eq!(hear(&mut started(at(5_000)), 9, &recorded), Ok(()));
        let mut relay = started(at(5_000));
        assert_eq!(hear(&mut relay, 1, &beacon(1, 7, since(7_500), Some(&key()))), Ok(()));
        assert!(hear(&mut relay, 9, &recorded).is_err());
    }

    #[test]
    fn a_relay_whose_clock_is_set_back_by_less_than_30_s_goes_on_hearing() {
        let since = |milliseconds| Span::from_millis(milliseconds).as_nanos();
        let say = beacon(1, 7, since(60_500), Some(&key()));
        let mut relay = started(at(60_000));
        assert_eq!(relay.on_datagram(at(60_500), WALL_NS + since(31_000), address(1), &say), Ok(()));
    }

    #[test]
    fn fifty_hosts_fit_in_few_datagrams() {
        let mut relay = relay();
        for host in 0..50 {
            relay.on_datagram(at(0), WALL_NS, address(host), &beacon(host, 7, 1, Some(&key()))).expect("it is heard");
        }
        let sent = relay.round(at(0));
        // 60 bytes and a length each: 19 in 1,200.
        assert_eq!(sent.len(), 50 * 3);
        assert!(sent.iter().all(|(_, packed)| packed.len() <= MOST_BYTES));
        assert_eq!(told(&sent, 5).len(), 49);
        // 50 times 30 ms.
        assert_eq!(relay.next_round_at(), Some(at(1_500)));
    }

    proptest! {
        #[test]
        fn noise_is_taken_apart_without_harm(noise in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = unpack(&noise).map(Iterator::count);
            let headed = [&HEAD[..], &noise].concat();
            let parts: usize = unpack(&headed).expect("a relay's").map(|one| one.len() + 1).sum();
            prop_assert!(parts <= noise.len());
            let mut relay = relay();
            prop_assert!(relay.on_datagram(at(0), WALL_NS, address(1), &noise).is_err());
        }
    }
}
