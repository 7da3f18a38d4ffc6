//! A TCP segment without its bytes.
//!
//! It has only the fields that the model needs: no ports, no checksum, no content. Sequence numbers are 64 bits, start
//! at 0 with the SYN and never wrap. Timestamps are the 32 bits of RFC 7323. SACK blocks are relative to the cumulative
//! ACK, which keeps a segment small: it is copied into every queue on its way.
//!
//! *What it leaves out*: urgent data, PSH, RST, all options but those of [`Segment`].

use crate::ecn::{CWR, ECE};
use lasthop_laws::option::OCTETS;
use lasthop_units::{Bytes, Ecn};
use std::ops::Range;

/// IPv4 and TCP headers without options.
pub(crate) const HEADERS_BYTES: u64 = 20 + 20;
/// RFC 7323 §3.2: 10 bytes, padded to 12 as usual.
pub(crate) const TIMESTAMPS_BYTES: u64 = 12;
/// RFC 2018 §3: two bytes of header, padded by two.
const SACK_BYTES: u64 = 4;
/// One block of a SACK option.
const SACK_BLOCK_BYTES: u64 = 8;
/// A report of a last link, or its answer: 10 bytes and padding.
const LINK_BYTES: u64 = 12;
/// The space for options that the data offset leaves: RFC 9293 §3.1.
const OPTIONS_MAX_BYTES: u64 = 40;
/// SACK blocks that fit into 40 bytes of options.
pub(crate) const SACK_BLOCKS: usize = 4;
/// SACK blocks that fit beside timestamps.
pub(crate) const SACK_BLOCKS_WITH_TIMESTAMPS: usize = 3;

/// A segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Sequence number of the first byte. The SYN, number 0, counts as a byte; so does the FIN.
    pub seq: u64,
    /// The next byte expected from the other side; valid with `has_ack`.
    pub ack: u64,
    /// Bytes of data.
    pub payload_bytes: u32,
    /// Bytes that the receiver can take from `ack` on, after scaling.
    pub window_bytes: u32,
    /// RFC 7323 §3.2.
    pub timestamps: Option<Timestamps>,
    /// Opens a connection.
    pub syn: bool,
    /// The sender sends nothing after this segment's data.
    pub fin: bool,
    /// PSH: the end of a write of the application. Set only under a bound that paces: see `pacing.rs`.
    pub push: bool,
    /// `ack` is valid: in every segment but a client's SYN.
    pub has_ack: bool,
    /// The flags AE, CWR and ECE, as the bits 4, 2 and 1: RFC 3168, and the counter of RFC 9768.
    pub ace: u8,
    /// The ECN field of its packet's IP header. Queues mark it on the way; what carries the segment tells the receiver so.
    pub ecn: Ecn,
    /// RFC 2018. A first block with data that arrived before is a D-SACK (RFC 2883).
    pub sack: SackBlocks,
    /// Options of a SYN.
    pub offer: Offer,
    /// The option with a report of a last link, or with the answer to one: see [`lasthop_laws::option`].
    pub link: Option<[u8; OCTETS]>,
}

/// The timestamps option. Packed, as [`Offer`].
#[repr(Rust, packed)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamps {
    /// TSval: the sender's clock, in ticks of its granularity.
    pub value: u32,
    /// TSecr: the other side's clock, echoed. 0: none yet.
    pub echo: u32,
}

/// Options that a SYN offers. Meaningless without `syn`. Packed, because a sixth byte of padding would enlarge every
/// segment.
#[repr(Rust, packed)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// The largest payload, without options, that the offering side takes.
    pub mss_bytes: u16,
    /// RFC 7323 §2.2; `None`: windows are not scaled.
    pub window_shift: Option<u8>,
    /// RFC 2018 §2.
    pub sack_permitted: bool,
}

/// Up to four SACK blocks, relative to the ACK of their segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    /// Empty entries come last. Few segments have any, and each is moved often: hence the box.
    blocks: Option<Box<[(i32, i32); SACK_BLOCKS]>>,
}

impl SackBlocks {
    /// Appends a block. Ignored if the list is full, or the block more than 2 GiB from `ack`: no window reaches there.
    pub(crate) fn push(&mut self, ack: u64, block: Range<u64>) {
        let relative = |seq: u64| i32::try_from(seq.wrapping_sub(ack) as i64).ok();
        if let (true, Some(start), Some(end)) = (self.len() < SACK_BLOCKS, relative(block.start), relative(block.end)) {
            let place = self.len();
            self.blocks.get_or_insert_default()[place] = (start, end);
        }
    }

    /// The number of blocks.
    pub fn len(&self) -> usize {
        self.ranges().count()
    }

    /// Whether there are no blocks.
    pub const fn is_empty(&self) -> bool {
        self.blocks.is_none()
    }

    fn ranges(&self) -> impl Iterator<Item = &(i32, i32)> {
        self.blocks.iter().flat_map(|blocks| blocks.iter()).take_while(|(start, end)| start != end)
    }

    /// The blocks as sequence numbers; `ack`: the ACK of their segment.
    pub fn iter(&self, ack: u64) -> impl Iterator<Item = Range<u64>> + '_ {
        let absolute = move |offset: i32| ack.saturating_add_signed(i64::from(offset));
        self.ranges().map(move |&(start, end)| absolute(start)..absolute(end))
    }
}

impl Segment {
    /// The sequence number after this segment.
    pub const fn end(&self) -> u64 {
        self.seq + self.payload_bytes as u64 + self.syn as u64 + self.fin as u64
    }

    /// The flags ECE and CWR.
    pub const fn echoes(&self) -> (bool, bool) {
        (self.ace & ECE != 0, self.ace & CWR != 0)
    }

    /// Whether it takes sequence numbers, with data, SYN or FIN.
    pub const fn takes_sequence_numbers(&self) -> bool {
        self.payload_bytes > 0 || self.syn || self.fin
    }

    /// Size as an IPv4 packet: 20 + 20 bytes of headers, options, payload.
    pub fn ip_bytes(&self) -> Bytes {
        Bytes::new(HEADERS_BYTES + self.payload_bytes as u64 + self.options_bytes())
    }

    fn options_bytes(&self) -> u64 {
        let mut bytes = 0;
        if self.timestamps.is_some() {
            bytes += TIMESTAMPS_BYTES;
        }
        if !self.sack.is_empty() {
            bytes += SACK_BYTES + SACK_BLOCK_BYTES * self.sack.len() as u64;
        }
        if self.syn {
            bytes += 4; // maximum segment size
            if self.offer.window_shift.is_some() {
                bytes += 4;
            }
            if self.offer.sack_permitted && self.timestamps.is_none() {
                bytes += 4; // beside timestamps: 2 bytes, in place of their padding
            }
        }
        if self.link.is_some() {
            bytes += LINK_BYTES;
        }
        bytes
    }

    /// SACK blocks that fit beside the payload in a packet of at most `mss_bytes` and headers.
    pub(crate) fn room_for_sack(&self, mss_bytes: u32) -> usize {
        let most = if self.timestamps.is_some() { SACK_BLOCKS_WITH_TIMESTAMPS } else { SACK_BLOCKS };
        let used = u64::from(self.payload_bytes) + if self.timestamps.is_some() { TIMESTAMPS_BYTES } else { 0 };
        let left = u64::from(mss_bytes).saturating_sub(used + SACK_BYTES);
        if self.payload_bytes == 0 { most } else { most.min((left / SACK_BLOCK_BYTES) as usize) }
    }

    /// Whether [`Self::link`] fits beside everything else in a packet of at most `mss_bytes` and headers.
    pub(crate) fn has_room_for_link(&self, mss_bytes: u32) -> bool {
        let options = self.options_bytes() + LINK_BYTES;
        let with_payload = u64::from(self.payload_bytes) + options;
        options <= OPTIONS_MAX_BYTES && (self.payload_bytes == 0 || with_payload <= u64::from(mss_bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_no_larger_than_eighty_eight_bytes() {
        assert!(size_of::<Segment>() <= 88, "{}", size_of::<Segment>());
    }

    #[test]
    fn a_full_segment_with_timestamps_fills_an_ethernet_frame() {
        // 20 IP + 20 TCP + 12 timestamps + 1448
        let timestamps = Some(Timestamps { value: 1, echo: 1 });
        let full = Segment { payload_bytes: 1448, has_ack: true, timestamps, ..Segment::default() };
        assert_eq!(full.ip_bytes(), Bytes::new(1500));
        assert_eq!(Segment { payload_bytes: 0, ..full }.ip_bytes(), Bytes::new(52));
    }

    #[test]
    fn options_take_the_room_that_they_take_on_the_wire() {
        // Linux's SYN: MSS 4, SACK permitted 2 + timestamps 10, NOP + window scale 4: 60 bytes in all.
        let offer = Offer { mss_bytes: 1460, window_shift: Some(7), sack_permitted: true };
        let timestamps = Some(Timestamps::default());
        let syn = Segment { syn: true, offer, timestamps, ..Segment::default() };
        assert_eq!(syn.ip_bytes(), Bytes::new(60));
        // MSS 4, SACK permitted 2 + two NOPs, window scale 4.
        assert_eq!(Segment { timestamps: None, ..syn }.ip_bytes(), Bytes::new(52));
        // RFC 2018 §3: three blocks beside timestamps fill the 40 bytes of options: 12 + 4 + 24.
        let mut sack = SackBlocks::default();
        for block in [10..20, 30..40, 50..60] {
            sack.push(0, block);
        }
        let ack = Segment { has_ack: true, sack, timestamps, ..Segment::default() };
        assert_eq!(ack.ip_bytes(), Bytes::new(80));
    }

    #[test]
    fn blocks_come_back_as_they_went_in_below_and_above_the_ack() {
        let mut sack = SackBlocks::default();
        let ack = 5_000_000_000;
        sack.push(ack, ack - 3000..ack - 2000);
        sack.push(ack, ack + 1000..ack + 900_000_000);
        assert_eq!(sack.iter(ack).collect::<Vec<_>>(), [ack - 3000..ack - 2000, ack + 1000..ack + 900_000_000]);
        sack.push(ack, 0..1); // 5 GB below: no window reaches there
        assert_eq!(sack.len(), 2);
    }
}
