//! What peers tell each other, on the wire: one UDP datagram of 44 bytes. A word of the host's policy adds 16 bytes, a
//! group key 16 more. It is sent every 0.3 s or less often ([`crate::cadence`]).
//!
//! All numbers big-endian: [`Wire`], of which [`Start`] is the same in all versions.
//!
//! | offset | bytes | field | |
//! | --- | --- | --- | --- |
//! | 0 | 4 | magic | `LHOP` (4c 48 4f 50) |
//! | 4 | 1 | version | 3 |
//! | 5 | 1 | flags | bit 0: a tag follows; bit 1: controlling; bit 2: congested; bits 3 to 6: the kind of the word, 0: none; bit 7: waiting |
//! | 6 | 2 | busy_flows | connections that are sending |
//! | 8 | 8 | sender | random, chosen at each start |
//! | 16 | 8 | timestamp_ns | wall clock, ns since 1970-01-01 UTC; rises with every beacon of a sender |
//! | 24 | 4 | srtt_us | smoothed RTT; 0: not known |
//! | 28 | 4 | min_rtt_us | lowest RTT; 0: not known |
//! | 32 | 8 | group | which access point, as [`GroupId`] |
//! | 40 | 4 | interval_ms | the next beacon is due after this |
//! | 44 | 16 | word | what the policy tells others of its kind ([`Word`]); not without a kind |
//! | 44 or 60 | 16 | tag | with a group key: HMAC-SHA-256 of all before it, its first 16 bytes |
//!
//! Only beacons of the receiver's own access point are heard: several access points on one network do not mix.
//!
//! With a group key three more things are checked:
//!
//! - the tag is right;
//! - the timestamp lies within [`Receiver::WINDOW`] of the receiver's wall clock;
//! - the timestamp is above the last of the same sender.
//!
//! A sender's last timestamp is remembered until any lower one would be too old anyway. So one [`Receiver`] hears no
//! recording twice; a new one remembers no senders. Without a key nothing of this is checked. A forger then needs no
//! recording, and honest hosts with a wrong clock should count.
//!
//! Versions 1 (no group, no interval) and 2 (numbers of an older policy in place of the word) are no longer heard.
//!
//! The worst that a lying peer can do: docs/models/beacon-threat-model.md.

use crate::group::GroupId;
use crate::note::Note;
use crate::{PeerId, Reject, Report, Word};
use hmac::{Hmac, KeyInit, Mac};
use lasthop_units::Span;
use sha2::Sha256;
use std::collections::BTreeMap;
use std::fmt;
use zerocopy::big_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The interval between two beacons of a host with few peers (hayakawa: "broadcasted by the UDP every 0.3 seconds").
pub const INTERVAL: Span = Span::from_millis(300);
/// The DSCP of its packets, CS6 (RFC 4594 §3.2): Wi-Fi sends them as voice, and the access point from another queue than bulk data.
pub const DSCP: u8 = 48;
/// The version that is sent, and the only one that is heard.
pub const VERSION: u8 = 3;
/// Length in bytes of a beacon without word and tag.
pub const PLAIN_BYTES: usize = size_of::<Wire>();
/// Length in bytes of the longest beacon, with word and tag.
pub const LONGEST_BYTES: usize = PLAIN_BYTES + Word::BYTES + TAG_BYTES;

pub(crate) const TAG_BYTES: usize = 16; // RFC 2104 §5: at least half of the hash, at least 80 bits
const MAGIC: [u8; 4] = *b"LHOP";
const FLAG_AUTHENTICATED: u8 = 1;
const FLAG_CONTROLLING: u8 = 2;
const FLAG_CONGESTED: u8 = 4;
const WORD_SHIFT: u8 = 3;
const FLAG_WAITING: u8 = 128;

/// The first bytes of a beacon of any version.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Start {
    magic: [u8; 4],
    version: u8,
    flags: u8,
}

/// A beacon without word and tag.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Wire {
    start: Start,
    busy_flows: U16,
    sender: U64,
    timestamp_ns: U64,
    srtt_us: U32,
    min_rtt_us: U32,
    group: U64,
    interval_ms: U32,
}

/// The contents of one beacon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beacon {
    /// The sender.
    pub sender: PeerId,
    /// When it was sent, on the sender's wall clock: ns since 1970-01-01 UTC. Rises with every beacon of a sender.
    pub timestamp_ns: u64,
    /// The access point of the sender.
    pub group: GroupId,
    /// After which the next beacon is due. Travels in whole milliseconds, up to 49 days.
    pub interval: Span,
    /// What the sender reports of itself. RTTs travel in whole microseconds, up to 71 minutes; rounded up, as 0 means
    /// unknown.
    pub report: Report,
}

/// A secret that all hosts of a group share.
#[derive(Clone)]
pub struct GroupKey(Hmac<Sha256>);

/// A group key that is too short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a group key of {length} bytes is too short: it must have {} or more", GroupKey::SHORTEST)]
pub struct KeyError {
    /// The length that was given, in bytes.
    pub length: usize,
}

/// Decodes the beacons of its group. With a group key it hears none twice.
#[derive(Clone, Debug)]
pub struct Receiver {
    groups: [GroupId; 2],
    key: Option<GroupKey>,
    last_timestamps: BTreeMap<PeerId, u64>,
}

impl GroupKey {
    /// The shortest key that is accepted, in bytes.
    pub const SHORTEST: usize = 16;

    /// The key with these bytes.
    ///
    /// # Errors
    /// If there are fewer than [`Self::SHORTEST`] bytes.
    pub fn new(secret: &[u8]) -> Result<Self, KeyError> {
        if secret.len() < Self::SHORTEST {
            return Err(KeyError { length: secret.len() });
        }
        Ok(Self(Hmac::new_from_slice(secret).expect("HMAC takes keys of any length")))
    }

    fn mac(&self, message: &[u8]) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        mac.update(message);
        mac
    }

    /// Appends the tag of what is there.
    pub(crate) fn sign(&self, datagram: &mut Vec<u8>) {
        let tag = self.mac(datagram).finalize().into_bytes();
        datagram.extend_from_slice(&tag[..TAG_BYTES]);
    }

    /// Checks the tag of a message against the key that is set here, if any.
    pub(crate) fn check(key: Option<&Self>, authenticated: bool, message: &[u8], tag: &[u8]) -> Result<(), Reject> {
        match (key, authenticated) {
            (None, false) => Ok(()),
            (None, true) => Err(Reject::NoKey),
            (Some(_), false) => Err(Reject::Unauthenticated),
            (Some(key), true) => key.mac(message).verify_truncated_left(tag).map_err(|_| Reject::Tag),
        }
    }
}

impl fmt::Debug for GroupKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GroupKey(secret)")
    }
}

impl Beacon {
    /// The datagram, from [`PLAIN_BYTES`] to [`LONGEST_BYTES`] long.
    pub fn encode(&self, key: Option<&GroupKey>) -> Vec<u8> {
        let Report { busy_flows, waiting, srtt, min_rtt, controlling, congested, word } = self.report;
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        let flags = flag(key.is_some(), FLAG_AUTHENTICATED)
            | flag(controlling, FLAG_CONTROLLING)
            | flag(congested, FLAG_CONGESTED)
            | word.map_or(0, |word| word.kind() << WORD_SHIFT)
            | flag(waiting, FLAG_WAITING);
        let wire = Wire {
            start: Start { magic: MAGIC, version: VERSION, flags },
            busy_flows: busy_flows.into(),
            sender: self.sender.0.into(),
            timestamp_ns: self.timestamp_ns.into(),
            srtt_us: microseconds(srtt).into(),
            min_rtt_us: microseconds(min_rtt).into(),
            group: self.group.0.into(),
            interval_ms: u32::try_from(self.interval.as_millis()).unwrap_or(u32::MAX).into(),
        };
        let mut datagram = Vec::with_capacity(LONGEST_BYTES);
        datagram.extend_from_slice(wire.as_bytes());
        if let Some(word) = word {
            datagram.extend_from_slice(word.of_kind(word.kind()).expect("it is of its own kind"));
        }
        if let Some(key) = key {
            key.sign(&mut datagram);
        }
        datagram
    }

    /// Reads a datagram, and checks the tag if there is a key. [`Receiver`] checks age and group.
    ///
    /// # Errors
    /// Why this is no beacon of a host with the same key. No input makes this panic.
    pub fn decode(datagram: &[u8], key: Option<&GroupKey>) -> Result<Self, Reject> {
        let (&Start { magic, version, flags }, _) = Start::ref_from_prefix(datagram).map_err(|_| Reject::Length)?;
        if magic != MAGIC {
            return Err(Reject::Magic);
        }
        if version != VERSION {
            return Err(Reject::Version);
        }
        let kind = flags >> WORD_SHIFT & Word::KINDS;
        let authenticated = flags & FLAG_AUTHENTICATED != 0;
        let message_bytes = PLAIN_BYTES + if kind > 0 { Word::BYTES } else { 0 };
        if datagram.len() != message_bytes + if authenticated { TAG_BYTES } else { 0 } {
            return Err(Reject::Length);
        }
        let (message, tag) = datagram.split_at(message_bytes);
        GroupKey::check(key, authenticated, message, tag)?;
        let (wire, word) = Wire::ref_from_prefix(message).map_err(|_| Reject::Length)?;
        Ok(Self {
            sender: PeerId(wire.sender.get()),
            timestamp_ns: wire.timestamp_ns.get(),
            group: GroupId(wire.group.get()),
            interval: Span::from_millis(wire.interval_ms.get().into()),
            report: Report {
                busy_flows: wire.busy_flows.get(),
                srtt: span(wire.srtt_us.get()),
                min_rtt: span(wire.min_rtt_us.get()),
                controlling: flags & FLAG_CONTROLLING != 0,
                congested: flags & FLAG_CONGESTED != 0,
                waiting: flags & FLAG_WAITING != 0,
                word: word.try_into().ok().map(|bytes| Word::new(kind, bytes)),
            },
        })
    }
}

/// Whose a datagram is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Said {
    pub(crate) sender: PeerId,
    pub(crate) group: GroupId,
    /// The sender's wall clock, ns since 1970-01-01 UTC.
    pub(crate) timestamp_ns: u64,
    /// Of a beacon: time until the next.
    pub(crate) interval: Option<Span>,
}

impl Receiver {
    /// With a group key, the greatest distance of a beacon's timestamp from the receiver's wall clock, in both
    /// directions.
    pub const WINDOW: Span = Span::from_secs(30);
    /// With a group key, the number of senders that are remembered. Others are not heard until old ones are forgotten.
    pub const SENDERS: usize = 4096;

    /// Hears the hosts of the group that have this key; without a key, those that send without one.
    pub const fn new(group: GroupId, key: Option<GroupKey>) -> Self {
        Self { groups: [group; 2], key, last_timestamps: BTreeMap::new() }
    }

    /// The group key.
    pub const fn key(&self) -> Option<&GroupKey> {
        self.key.as_ref()
    }

    /// The groups whose beacons are heard: one access point's, by its addresses of IPv4 and IPv6.
    pub const fn groups(&self) -> [GroupId; 2] {
        self.groups
    }

    /// Hears other groups from now on. Recordings of beacons that were heard before are not heard there either.
    pub const fn set_groups(&mut self, groups: [GroupId; 2]) {
        self.groups = groups;
    }

    /// Takes a datagram that arrived at `wall_now_ns` (wall clock, ns since 1970-01-01 UTC).
    ///
    /// # Errors
    /// Why it is not heard. No input makes this panic.
    pub fn on_datagram(&mut self, wall_now_ns: u64, datagram: &[u8]) -> Result<Beacon, Reject> {
        let beacon = self.beacon(wall_now_ns, datagram)?;
        // After the check of its age, so that a beacon heard in another group cannot be replayed in this one.
        if self.groups.contains(&beacon.group) { Ok(beacon) } else { Err(Reject::Group) }
    }

    fn beacon(&mut self, wall_now_ns: u64, datagram: &[u8]) -> Result<Beacon, Reject> {
        let beacon = Beacon::decode(datagram, self.key.as_ref())?;
        if self.key.is_some() {
            self.check_age(wall_now_ns, beacon.sender, beacon.timestamp_ns)?;
        }
        Ok(beacon)
    }

    /// Takes a datagram that is a [`Note`], likewise.
    ///
    /// # Errors
    /// Why it is not heard. No input makes this panic.
    pub fn on_note(&mut self, wall_now_ns: u64, datagram: &[u8]) -> Result<Note, Reject> {
        let note = self.note(wall_now_ns, datagram)?;
        if self.groups.contains(&note.group) { Ok(note) } else { Err(Reject::Group) }
    }

    fn note(&mut self, wall_now_ns: u64, datagram: &[u8]) -> Result<Note, Reject> {
        let note = Note::decode(datagram, self.key.as_ref())?;
        if self.key.is_some() {
            self.check_age(wall_now_ns, note.sender, note.timestamp_ns)?;
        }
        Ok(note)
    }

    /// Takes a beacon or a note from behind any access point, for a [relay](crate::relay).
    pub(crate) fn on_any(&mut self, wall_now_ns: u64, datagram: &[u8]) -> Result<Said, Reject> {
        if Note::is_one(datagram) {
            let Note { sender, timestamp_ns, group, .. } = self.note(wall_now_ns, datagram)?;
            return Ok(Said { sender, group, timestamp_ns, interval: None });
        }
        let Beacon { sender, timestamp_ns, group, interval, .. } = self.beacon(wall_now_ns, datagram)?;
        Ok(Said { sender, group, timestamp_ns, interval: Some(interval) })
    }

    fn check_age(&mut self, wall_now_ns: u64, sender: PeerId, timestamp_ns: u64) -> Result<(), Reject> {
        let window_ns = Self::WINDOW.as_nanos();
        if timestamp_ns.abs_diff(wall_now_ns) > window_ns {
            return Err(Reject::Stale);
        }
        match self.last_timestamps.get_mut(&sender) {
            Some(last) if timestamp_ns <= *last => return Err(Reject::Replay),
            Some(last) => *last = timestamp_ns,
            None => {
                if self.last_timestamps.len() >= Self::SENDERS {
                    // Recordings of the senders forgotten here have timestamps that are too old by now.
                    self.last_timestamps.retain(|_, last| last.saturating_add(window_ns) >= wall_now_ns);
                }
                if self.last_timestamps.len() >= Self::SENDERS {
                    return Err(Reject::Identities);
                }
                self.last_timestamps.insert(sender, timestamp_ns);
            }
        }
        Ok(())
    }
}

fn microseconds(rtt: Option<Span>) -> u32 {
    rtt.map_or(0, |rtt| u32::try_from(rtt.as_nanos().div_ceil(1000).max(1)).unwrap_or(u32::MAX))
}

fn span(microseconds: u32) -> Option<Span> {
    (microseconds != 0).then(|| Span::from_micros(microseconds.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW_NS: u64 = 1_800_000_000_000_000_000;
    const SECOND: u64 = 1_000_000_000;
    const OURS: GroupId = GroupId(0xabcd);

    fn key(secret: &[u8]) -> GroupKey {
        GroupKey::new(secret).expect("long enough")
    }

    fn ours() -> GroupKey {
        key(b"sixteen bytes or more")
    }

    fn beacon(sender: u64, timestamp_ns: u64) -> Beacon {
        Beacon {
            sender: PeerId(sender),
            timestamp_ns,
            group: OURS,
            interval: Span::from_millis(300),
            report: Report {
                busy_flows: 2,
                waiting: true,
                srtt: Some(Span::from_millis(700)),
                min_rtt: Some(Span::from_millis(256)),
                controlling: true,
                congested: false,
                word: Some(Word::new(13, *b"what a policy or")),
            },
        }
    }

    #[test]
    fn the_layout_is_that_of_the_table() {
        #[rustfmt::skip]
        let expected = [
            0x4c, 0x48, 0x4f, 0x50, // LHOP
            3, 234,                 // version 3, controlling, a word of kind 13 (0x68 = 13 << 3), waiting
            0, 2,                   // busy_flows
            0, 0, 0, 0, 0, 0, 1, 2, // sender 258
            0, 0, 0, 0, 0, 0, 0, 9, // timestamp
            0x00, 0x0a, 0xae, 0x60, // 700,000 us = 0xaae60
            0x00, 0x03, 0xe8, 0x00, // 256,000 us = 0x3e800
            0, 0, 0, 0, 0, 0, 0xab, 0xcd, // group 0xabcd
            0x00, 0x00, 0x01, 0x2c, // 300 ms = 0x12c
            b'w', b'h', b'a', b't', b' ', b'a', b' ', b'p', b'o', b'l', b'i', b'c', b'y', b' ', b'o', b'r',
        ];
        assert_eq!(beacon(258, 9).encode(None), expected);
    }

    #[test]
    fn a_beacon_without_a_word_is_shorter() {
        let of_old = Report { busy_flows: 2, waiting: true, controlling: true, ..Report::default() };
        let short = Beacon { report: of_old, ..beacon(1, 2) }.encode(None);
        assert_eq!((short.len(), short[5]), (PLAIN_BYTES, FLAG_CONTROLLING | FLAG_WAITING));
        assert_eq!(Beacon::decode(&short, None).map(|beacon| beacon.report), Ok(of_old));
        assert_eq!(beacon(1, 2).encode(Some(&ours())).len(), LONGEST_BYTES);
    }

    #[test]
    fn what_agents_of_version_2_send_is_told_apart_by_its_version() {
        // As version 2 sent it, with numbers of an older policy; without them it ended after 44 bytes.
        #[rustfmt::skip]
        let sent = [
            0x4c, 0x48, 0x4f, 0x50, // LHOP
            2, 234,                 // version 2, controlling, extended, harmed, careful, waiting
            0, 2,                   // busy_flows
            0, 0, 0, 0, 0, 0, 1, 2, // sender 258
            0, 0, 0, 0, 0, 0, 0, 9, // timestamp
            0x00, 0x0a, 0xae, 0x60, // 700,000 us
            0x00, 0x03, 0xe8, 0x00, // 256,000 us
            0, 0, 0, 0, 0, 0, 0xab, 0xcd, // group 0xabcd
            0x00, 0x00, 0x01, 0x2c, // 300 ms
            0x00, 0x04, 0x93, 0xe0, // 300,000 B/s for each host
            0, 0, 0, 1,             // 1 B/s delivered
            0, 0, 1, 3,             // 258 us of excess, and 1
            0x00, 0x01, 0x86, 0xa0, // 100,000 B/s while free
        ];
        let mut short = sent[..PLAIN_BYTES].to_vec();
        short[5] = 130; // controlling, waiting
        for datagram in [&sent[..], &short] {
            for key in [None, Some(ours())] {
                assert_eq!(Receiver::new(OURS, key).on_datagram(9, datagram), Err(Reject::Version));
            }
        }
        // Only the version keeps it out: the same bytes would pass for a beacon, with numbers taken for a word.
        let mut taken_for_3 = sent;
        taken_for_3[4] = VERSION;
        let heard = Receiver::new(OURS, None).on_datagram(9, &taken_for_3);
        assert_eq!(heard.map(|beacon| beacon.sender), Ok(PeerId(258)));
    }

    #[test]
    fn the_tag_is_the_first_half_of_hmac_sha_256() {
        // RFC 4231 §4.7, test case 6: a key of 131 bytes of 0xaa.
        let mac = key(&[0xaa; 131]).mac(b"Test Using Larger Than Block-Size Key - Hash Key First");
        let tag = mac.finalize().into_bytes();
        assert_eq!(
            tag[..TAG_BYTES],
            [0x60, 0xe4, 0x31, 0x59, 0x1e, 0xe0, 0xb6, 0x7f, 0x0d, 0x8a, 0x26, 0xaa, 0xcb, 0xf5, 0xb7, 0x7f]
        );
        let datagram = beacon(1, NOW_NS).encode(Some(&ours()));
        assert_eq!(datagram.len(), LONGEST_BYTES);
        let (message, tag) = datagram.split_at(LONGEST_BYTES - TAG_BYTES);
        assert_eq!(*tag, ours().mac(message).finalize().into_bytes()[..TAG_BYTES]);
    }

    #[test]
    fn each_way_of_being_wrong_has_its_cause() {
        let plain = beacon(1, NOW_NS).encode(None);
        let authenticated = beacon(1, NOW_NS).encode(Some(&ours()));
        let changed = |at: usize, to: u8| {
            let mut datagram = plain.clone();
            datagram[at] = to;
            datagram
        };
        assert_eq!(Beacon::decode(&[], None), Err(Reject::Length));
        assert_eq!(Beacon::decode(b"LHOP", None), Err(Reject::Length));
        assert_eq!(Beacon::decode(&plain[..55], None), Err(Reject::Length));
        assert_eq!(Beacon::decode(&[plain.clone(), vec![0]].concat(), None), Err(Reject::Length));
        assert_eq!(Beacon::decode(b"GET / HTTP/1.1", None), Err(Reject::Magic));
        assert_eq!(Beacon::decode(&changed(4, 1), None), Err(Reject::Version));
        assert_eq!(Beacon::decode(&changed(4, 2), None), Err(Reject::Version));
        assert_eq!(Beacon::decode(&changed(5, 0), None), Err(Reject::Length)); // a word without a kind
        assert_eq!(Beacon::decode(&authenticated, None), Err(Reject::NoKey));
        assert_eq!(Beacon::decode(&plain, Some(&ours())), Err(Reject::Unauthenticated));
        assert_eq!(Beacon::decode(&authenticated, Some(&key(b"another key, sixteen"))), Err(Reject::Tag));
    }

    #[test]
    fn a_recording_is_not_heard() {
        let mut receiver = Receiver::new(OURS, Some(ours()));
        let first = beacon(1, NOW_NS).encode(Some(&ours()));
        let second = beacon(1, NOW_NS + 1).encode(Some(&ours()));
        assert!(receiver.on_datagram(NOW_NS, &first).is_ok());
        assert_eq!(receiver.on_datagram(NOW_NS, &first), Err(Reject::Replay));
        assert!(receiver.on_datagram(NOW_NS, &second).is_ok());
        assert_eq!(receiver.on_datagram(NOW_NS, &first), Err(Reject::Replay));
        assert!(receiver.on_datagram(NOW_NS, &beacon(2, NOW_NS).encode(Some(&ours()))).is_ok());
    }

    #[test]
    fn a_timestamp_may_lie_thirty_seconds_from_now_and_no_more() {
        let heard = |timestamp_ns| {
            let mut receiver = Receiver::new(OURS, Some(ours()));
            receiver.on_datagram(NOW_NS, &beacon(1, timestamp_ns).encode(Some(&ours()))).map(|beacon| beacon.sender)
        };
        assert_eq!(heard(NOW_NS - 30 * SECOND), Ok(PeerId(1)));
        assert_eq!(heard(NOW_NS + 30 * SECOND), Ok(PeerId(1)));
        assert_eq!(heard(NOW_NS - 30 * SECOND - 1), Err(Reject::Stale));
        assert_eq!(heard(NOW_NS + 30 * SECOND + 1), Err(Reject::Stale));
    }

    #[test]
    fn without_a_key_a_wrong_clock_does_not_matter() {
        let mut receiver = Receiver::new(OURS, None);
        for timestamp_ns in [0, u64::MAX, NOW_NS, NOW_NS] {
            assert!(receiver.on_datagram(NOW_NS, &beacon(1, timestamp_ns).encode(None)).is_ok());
        }
    }

    #[test]
    fn a_sender_is_remembered_until_its_recordings_are_too_old() {
        let mut receiver = Receiver::new(OURS, Some(ours()));
        let group = ours();
        // One sender with a clock 30 s ahead, and others that fill the memory.
        let ahead = beacon(0, NOW_NS + 30 * SECOND).encode(Some(&group));
        assert!(receiver.on_datagram(NOW_NS, &ahead).is_ok());
        for sender in 1..Receiver::SENDERS as u64 {
            assert!(receiver.on_datagram(NOW_NS, &beacon(sender, NOW_NS).encode(Some(&group))).is_ok());
        }
        let one_more = |receiver: &mut Receiver, at_ns: u64| {
            receiver.on_datagram(at_ns, &beacon(u64::MAX, at_ns).encode(Some(&group))).map(|_| ())
        };
        // 30 s later recordings of the others would still be fresh enough to be heard, so their senders are not
        // forgotten.
        assert_eq!(one_more(&mut receiver, NOW_NS + 30 * SECOND), Err(Reject::Identities));
        assert_eq!(one_more(&mut receiver, NOW_NS + 30 * SECOND + 1), Ok(()));
        // The first sender can be replayed for 60 s, and is remembered for that time.
        assert_eq!(receiver.on_datagram(NOW_NS + 60 * SECOND, &ahead), Err(Reject::Replay));
        assert_eq!(receiver.on_datagram(NOW_NS + 60 * SECOND + 1, &ahead), Err(Reject::Stale));
    }

    #[test]
    fn a_short_key_is_refused_and_no_key_is_printed() {
        assert_eq!(
            GroupKey::new(b"short").expect_err("five bytes").to_string(),
            "a group key of 5 bytes is too short: it must have 16 or more"
        );
        assert_eq!(format!("{:?}", Receiver::new(OURS, Some(ours())).key()), "Some(GroupKey(secret))");
    }

    #[test]
    fn rtts_are_rounded_up_to_whole_microseconds_and_end_at_71_minutes() {
        let sent = |rtt| {
            let report = Report { srtt: rtt, ..Report::default() };
            let beacon = Beacon { report, ..beacon(1, 1) };
            Beacon::decode(&beacon.encode(None), None).expect("a beacon").report.srtt
        };
        assert_eq!(sent(None), None);
        assert_eq!(sent(Some(Span::ZERO)), Some(Span::from_micros(1)));
        assert_eq!(sent(Some(Span::from_nanos(1_001))), Some(Span::from_micros(2)));
        assert_eq!(sent(Some(Span::from_secs(4295))), Some(Span::from_micros(4_294_967_295)));
    }

    #[test]
    fn an_interval_travels_in_milliseconds_up_to_49_days() {
        let sent = |interval| {
            let beacon = Beacon { interval, ..beacon(1, 1) };
            Beacon::decode(&beacon.encode(None), None).expect("a beacon").interval
        };
        assert_eq!(sent(Span::ZERO), Span::ZERO);
        assert_eq!(sent(Span::from_micros(300_999)), Span::from_millis(300));
        assert_eq!(sent(Span::MAX), Span::from_millis(4_294_967_295));
    }

    #[test]
    fn beacons_of_another_group_are_not_heard() {
        for key in [None, Some(ours())] {
            let mut receiver = Receiver::new(GroupId(1), key.clone());
            let at_1 = Beacon { group: GroupId(1), ..beacon(1, NOW_NS) }.encode(key.as_ref());
            let at_2 = Beacon { group: GroupId(2), ..beacon(1, NOW_NS + 1) }.encode(key.as_ref());
            assert!(receiver.on_datagram(NOW_NS, &at_1).is_ok());
            assert_eq!(receiver.on_datagram(NOW_NS, &at_2), Err(Reject::Group));
            receiver.set_groups([GroupId(2); 2]);
            // With a key the beacon was checked before, though rejected: by now it is a recording.
            let expected = if key.is_some() { Err(Reject::Replay) } else { Ok(GroupId(2)) };
            assert_eq!(receiver.on_datagram(NOW_NS, &at_2).map(|beacon| beacon.group), expected);
            let next = Beacon { group: GroupId(2), ..beacon(1, NOW_NS + 2) }.encode(key.as_ref());
            assert_eq!(receiver.on_datagram(NOW_NS, &next).map(|beacon| beacon.group), Ok(GroupId(2)));
        }
    }

    /// Some with a word, some without.
    fn any_beacon() -> impl Strategy<Value = Beacon> {
        let rtt = || any::<u32>().prop_map(span);
        let word = (1..=Word::KINDS, any::<[u8; Word::BYTES]>()).prop_map(|(kind, bytes)| Word::new(kind, bytes));
        let whence = (any::<u64>(), any::<u64>(), any::<u64>(), any::<u32>());
        let flags = any::<(bool, bool, bool)>();
        (whence, any::<u16>(), rtt(), rtt(), flags, proptest::option::of(word)).prop_map(
            |((sender, timestamp_ns, group, interval_ms), busy_flows, srtt, min_rtt, flags, word)| {
                let (waiting, controlling, congested) = flags;
                Beacon {
                    sender: PeerId(sender),
                    timestamp_ns,
                    group: GroupId(group),
                    interval: Span::from_millis(interval_ms.into()),
                    report: Report { busy_flows, waiting, srtt, min_rtt, controlling, congested, word },
                }
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_sent_is_what_is_heard(beacon in any_beacon()) {
            prop_assert_eq!(Beacon::decode(&beacon.encode(None), None), Ok(beacon));
            prop_assert_eq!(Beacon::decode(&beacon.encode(Some(&ours())), Some(&ours())), Ok(beacon));
        }

        #[test]
        fn no_bytes_make_the_decoder_panic_and_there_is_one_way_to_say_what_is_heard(
            beacon in any_beacon(),
            changes in proptest::collection::vec((0..LONGEST_BYTES, any::<u8>()), 0..8),
            noise in proptest::collection::vec(any::<u8>(), 0..80),
            length in proptest::option::of(0..80_usize),
        ) {
            for key in [None, Some(ours())] {
                let mut almost = beacon.encode(key.as_ref());
                almost.resize(length.unwrap_or(almost.len()), 0);
                for (at, to) in &changes {
                    if let Some(byte) = almost.get_mut(*at) {
                        *byte = *to;
                    }
                }
                if let Ok(heard) = Beacon::decode(&almost, key.as_ref()) {
                    prop_assert_eq!(heard.encode(key.as_ref()), almost.clone());
                }
                let mut receiver = Receiver::new(OURS, key);
                let _ = receiver.on_datagram(NOW_NS, &noise);
                let _ = receiver.on_datagram(NOW_NS, &almost);
            }
        }

        #[test]
        fn with_a_key_no_bit_can_be_flipped(beacon in any_beacon(), bit in any::<proptest::sample::Index>()) {
            let mut datagram = beacon.encode(Some(&ours()));
            let bit = bit.index(datagram.len() * 8);
            datagram[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(Beacon::decode(&datagram, Some(&ours())).is_err());
        }
    }
}
