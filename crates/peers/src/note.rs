//! What agents tell each other beside beacons: a datagram of its own, on the same port, with the same group, key and clock.
//!
//! All numbers big-endian.
//!
//! | offset | bytes | field | |
//! | --- | --- | --- | --- |
//! | 0 | 4 | magic | `LHNT` (4c 48 4e 54) |
//! | 4 | 1 | version | 1 |
//! | 5 | 1 | flags | bit 0: a tag follows |
//! | 6 | 2 | length | of the text |
//! | 8 | 8 | sender | as of its beacons |
//! | 16 | 8 | timestamp_ns | as of its beacons, among which it rises |
//! | 24 | 8 | group | which access point |
//! | 32 | up to 60 | text | what it says: another crate's |
//! | | 16 | tag | with a group key: as of beacons |
//!
//! [`crate::beacon::Receiver`] checks age and group. Agents without it count a note as no beacon.

use crate::beacon::{GroupKey, TAG_BYTES};
use crate::group::GroupId;
use crate::{PeerId, Reject};
use zerocopy::big_endian::{U16, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The most bytes of a text.
pub const MOST_TEXT_BYTES: usize = 60;

const MAGIC: [u8; 4] = *b"LHNT";
const VERSION: u8 = 1;
const FLAG_AUTHENTICATED: u8 = 1;

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Wire {
    magic: [u8; 4],
    version: u8,
    flags: u8,
    length: U16,
    sender: U64,
    timestamp_ns: U64,
    group: U64,
}

/// What an agent tells others beside its beacons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The sender.
    pub sender: PeerId,
    /// When it was sent, as of [`crate::beacon::Beacon`].
    pub timestamp_ns: u64,
    /// The access point of the sender.
    pub group: GroupId,
    /// What it says: at most [`MOST_TEXT_BYTES`].
    pub text: Vec<u8>,
}

impl Note {
    /// Whether a datagram is a note, and no beacon.
    pub fn is_one(datagram: &[u8]) -> bool {
        datagram.starts_with(&MAGIC)
    }

    /// The datagram.
    ///
    /// # Panics
    /// If the text is too long.
    pub fn encode(&self, key: Option<&GroupKey>) -> Vec<u8> {
        assert!(self.text.len() <= MOST_TEXT_BYTES, "a text of at most {MOST_TEXT_BYTES} bytes");
        let wire = Wire {
            magic: MAGIC,
            version: VERSION,
            flags: if key.is_some() { FLAG_AUTHENTICATED } else { 0 },
            length: (self.text.len() as u16).into(),
            sender: self.sender.0.into(),
            timestamp_ns: self.timestamp_ns.into(),
            group: self.group.0.into(),
        };
        let mut datagram = wire.as_bytes().to_vec();
        datagram.extend_from_slice(&self.text);
        if let Some(key) = key {
            key.sign(&mut datagram);
        }
        datagram
    }

    /// Reads a datagram, and checks the tag if there is a key.
    ///
    /// # Errors
    /// Why this is no note of a host with the same key. No input makes this panic.
    pub fn decode(datagram: &[u8], key: Option<&GroupKey>) -> Result<Self, Reject> {
        let (wire, rest) = Wire::ref_from_prefix(datagram).map_err(|_| Reject::Length)?;
        if wire.magic != MAGIC {
            return Err(Reject::Magic);
        }
        if wire.version != VERSION || wire.flags & !FLAG_AUTHENTICATED != 0 {
            return Err(Reject::Version);
        }
        let authenticated = wire.flags & FLAG_AUTHENTICATED != 0;
        let length = usize::from(wire.length.get());
        let tag_bytes = if authenticated { TAG_BYTES } else { 0 };
        if length > MOST_TEXT_BYTES || rest.len() != length + tag_bytes {
            return Err(Reject::Length);
        }
        let (message, tag) = datagram.split_at(datagram.len() - tag_bytes);
        GroupKey::check(key, authenticated, message, tag)?;
        Ok(Self {
            sender: PeerId(wire.sender.get()),
            timestamp_ns: wire.timestamp_ns.get(),
            group: GroupId(wire.group.get()),
            text: rest[..length].to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beacon::{Beacon, Receiver};
    use crate::{Report, beacon};
    use proptest::prelude::*;

    const NOW_NS: u64 = 1_800_000_000_000_000_000;

    fn key() -> GroupKey {
        GroupKey::new(b"sixteen bytes or more").expect("long enough")
    }

    fn note(timestamp_ns: u64) -> Note {
        Note { sender: PeerId(258), timestamp_ns, group: GroupId(0xabcd), text: b"hi".to_vec() }
    }

    #[test]
    fn the_layout_is_that_of_the_table() {
        #[rustfmt::skip]
        let expected = [
            0x4c, 0x48, 0x4e, 0x54, // LHNT
            1, 0,                   // version 1, no tag
            0, 2,                   // length
            0, 0, 0, 0, 0, 0, 1, 2, // sender 258
            0, 0, 0, 0, 0, 0, 0, 9, // timestamp
            0, 0, 0, 0, 0, 0, 0xab, 0xcd, // group
            b'h', b'i',
        ];
        assert_eq!(note(9).encode(None), expected);
        assert_eq!(Beacon::decode(&expected, None), Err(Reject::Magic));
    }

    #[test]
    fn with_a_key_a_note_is_heard_once_and_from_no_stranger() {
        let mut receiver = Receiver::new(GroupId(0xabcd), Some(key()));
        let sent = note(NOW_NS).encode(Some(&key()));
        assert_eq!(receiver.on_note(NOW_NS, &note(NOW_NS).encode(None)), Err(Reject::Unauthenticated));
        assert_eq!(receiver.on_note(NOW_NS + 31_000_000_000, &sent), Err(Reject::Stale));
        assert_eq!(receiver.on_note(NOW_NS, &sent), Ok(note(NOW_NS)));
        assert_eq!(receiver.on_note(NOW_NS, &sent), Err(Reject::Replay));
        // Beacons and notes of a sender have one order.
        let beacon = |timestamp_ns| {
            let (sender, group, report) = (PeerId(258), GroupId(0xabcd), Report::default());
            Beacon { sender, timestamp_ns, group, interval: beacon::INTERVAL, report }.encode(Some(&key()))
        };
        assert_eq!(receiver.on_datagram(NOW_NS, &beacon(NOW_NS)), Err(Reject::Replay));
        assert!(receiver.on_datagram(NOW_NS, &beacon(NOW_NS + 1)).is_ok());
        let elsewhere = Note { group: GroupId(1), ..note(NOW_NS + 2) }.encode(Some(&key()));
        assert_eq!(receiver.on_note(NOW_NS, &elsewhere), Err(Reject::Group));
        assert_eq!(Receiver::new(GroupId(0xabcd), None).on_note(NOW_NS, &sent), Err(Reject::NoKey));
    }

    proptest! {
        #[test]
        fn what_is_sent_is_what_is_heard_and_no_bit_can_be_flipped(
            text in prop::collection::vec(any::<u8>(), 0..=MOST_TEXT_BYTES), numbers in any::<(u64, u64, u64)>(),
            bit in any::<prop::sample::Index>(), noise in prop::collection::vec(any::<u8>(), 0..120),
        ) {
            let (sender, timestamp_ns, group) = numbers;
            let note = Note { sender: PeerId(sender), timestamp_ns, group: GroupId(group), text };
            prop_assert_eq!(Note::decode(&note.encode(None), None), Ok(note.clone()));
            let mut sent = note.encode(Some(&key()));
            prop_assert_eq!(Note::decode(&sent, Some(&key())), Ok(note));
            let bit = bit.index(sent.len() * 8);
            sent[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(Note::decode(&sent, Some(&key())).is_err());
            let _ = Note::decode(&noise, None);
            let _ = Note::decode(&[&MAGIC[..], &[1, 0], &noise].concat(), None);
        }
    }
}
