//! The sending end of a link: which frames form a PPDU, and which are repeated.
//!
//! Packets become frames (MPDUs) with sequence numbers when they are claimed from the queue. Frames stay here until
//! they are acknowledged or given up; packets stay in the queue until they are received.
//! 1. A PPDU holds the oldest frames here, in order, then new ones, as far as its limits allow. No frame may lie a
//!    window or more past the oldest one.
//! 2. A Block Ack acknowledges all that the receiver has by then, an ACK the only frame of its PPDU. A frame not
//!    acknowledged has failed, as have all in a PPDU without a response. It is repeated unless that was its last
//!    transmission.
//! 3. After a frame was given up, a Block Ack Request tells the receiver not to wait for it. It is a PPDU without
//!    frames.
//!
//! 4. With A-MSDUs several new packets form one MPDU, up to a number of bytes: one sequence number, and received
//!    together or not. It stays as it is when it is repeated.
//!
//! A link without Block Ack (802.11b, 802.11g) has a window of one: each PPDU is one frame, repeated until it is
//! acknowledged or given up, and there are no requests.
//!
//! References: 802.11-2020 §10.3.2.14 (sequence numbers), §10.25 (Block Ack), §10.12 (A-MPDU).

use super::airtime::Mode;
use crate::packet::{Departure, Destination, Packet};
use crate::queue::Load;
use lasthop_units::{Bytes, Span};

/// A sequence number, modulo 4096.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Sequence(u16);

impl Sequence {
    const MODULUS: u16 = 4096;

    /// Its value, 0..=4095.
    pub(super) const fn number(self) -> u16 {
        self.0
    }

    /// The number of a link's first frame.
    pub(super) const FIRST: Self = Self(0);

    /// The number this many steps on.
    pub(super) const fn plus(self, count: u16) -> Self {
        Self((self.0 + count) % Self::MODULUS)
    }

    /// The distance from `other` forwards, 0..=4095.
    pub(super) const fn since(self, other: Self) -> u16 {
        (self.0 + Self::MODULUS - other.0) % Self::MODULUS
    }
}

#[derive(Clone, Debug)]
pub(super) struct Originator {
    /// The window: the most frames from the oldest one on, inclusive; 1 without Block Ack.
    window: u16,
    /// The number of the next new frame.
    next: Sequence,
    /// In order of sequence.
    frames: Vec<Frame>,
    request_due: bool,
}

/// A packet claimed from the queue, as an MPDU or as a part of one (A-MSDU).
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// That of its MPDU.
    pub(super) sequence: Sequence,
    /// Whether it is in the MPDU of the frame before it.
    pub(super) joins: bool,
    /// Its packet's place in the queue.
    pub(super) place: u64,
    pub(super) departure: Departure,
    /// Whether the receiver has it.
    pub(super) is_received: bool,
    is_to_all: bool,
    failures: u8,
}

impl Frame {
    /// Whether it was sent before, without success.
    pub(super) const fn has_failed(&self) -> bool {
        self.failures > 0
    }
}

/// The contents of a PPDU.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Content {
    /// The number of oldest frames; none: a Block Ack Request.
    pub(super) frames: usize,
    /// The MPDUs that hold them.
    pub(super) mpdus: usize,
    pub(super) bytes: u64,
    /// Of these, the broadcast frames.
    pub(super) to_all_bytes: u64,
    /// Frames that had failed before.
    pub(super) retries: usize,
}

/// The limits of a PPDU.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) mpdus: usize,
    pub(super) bytes: u64,
    /// Bytes of an A-MSDU; 0 for none.
    pub(super) amsdu_bytes: u64,
    /// Whether a single MPDU may have more bytes.
    pub(super) one_anyway: bool,
}

impl Limits {
    /// Those of a mode, this many MPDUs, and A-MSDUs of this many bytes.
    #[cfg(test)]
    pub(super) const fn of(mode: &Mode, mpdus: usize, amsdu_bytes: u64) -> Self {
        Self { mpdus, bytes: mode.most_bytes, amsdu_bytes, one_anyway: true }
    }
}

/// The outcome of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    Acknowledged,
    GivenUp,
}

impl Content {
    /// The broadcast frames' part of a duration.
    #[inline]
    pub(super) fn share_to_all(self, time: Span) -> Span {
        if self.to_all_bytes == 0 { Span::ZERO } else { time * self.to_all_bytes / self.bytes }
    }
}

impl Originator {
    /// An originator that has sent nothing yet.
    pub(super) const fn new(window: u16) -> Self {
        Self { window, next: Sequence::FIRST, frames: Vec::new(), request_due: false }
    }

    pub(super) const fn window(&self) -> u16 {
        self.window
    }

    /// The oldest frame, or else the next one: the start of the receiver's window as the sender knows it.
    pub(super) fn start(&self) -> Sequence {
        self.frames.first().map_or(self.next, |frame| frame.sequence)
    }

    /// The place of the oldest frame's packet in the queue.
    pub(super) fn place(&self) -> Option<u64> {
        self.frames.first().map(|frame| frame.place)
    }

    pub(super) const fn is_request_due(&self) -> bool {
        self.request_due
    }

    /// The request was given up; the receiver will time out.
    pub(super) const fn give_up_request(&mut self) {
        self.request_due = false;
    }

    /// Packets that the receiver does not have.
    pub(super) fn packets_inside(&self) -> usize {
        self.frames.iter().filter(|frame| !frame.is_received).count()
    }

    /// Begins a PPDU of this mode within these limits, starting with the frames here; a request alone if one is due.
    #[inline]
    pub(super) fn fill<'a>(&'a mut self, mode: &'a Mode, limits: Limits) -> Filling<'a> {
        let is_full = self.request_due;
        let content = Content::default();
        let mut filling = Filling { content, start: 0, end: 0, msdus: 0, is_full, mode, limits, originator: self };
        while let Some(&frame) = filling.originator.frames.get(filling.content.frames) {
            let bytes = filling.originator.mpdu_bytes(mode, filling.content.frames);
            if !frame.joins && !filling.has_room(bytes) {
                filling.is_full = true;
                break;
            }
            filling.include(frame);
        }
        // Nothing joins a repeated MPDU.
        filling.msdus = 0;
        filling
    }

    /// Bytes of the MPDU that begins with this frame.
    #[inline]
    pub(super) fn mpdu_bytes(&self, mode: &Mode, first: usize) -> u64 {
        let size = self.frames[first].departure.size;
        match self.frames.get(first + 1) {
            Some(frame) if frame.joins => mode.amsdu_frame_bytes(self.msdus_bytes(first)),
            _ => mode.frame_bytes(size),
        }
    }

    /// Bytes of the A-MSDU that begins with this frame.
    #[inline(never)]
    fn msdus_bytes(&self, first: usize) -> u64 {
        let others = self.frames[first + 1..].iter().take_while(|frame| frame.joins);
        others.fold(msdu_bytes(self.frames[first].departure.size), |msdus, frame| joined(msdus, frame.departure.size))
    }

    /// Gives up all frames, the oldest first.
    pub(super) fn give_up_all(&mut self) -> Vec<Frame> {
        self.request_due = false;
        std::mem::take(&mut self.frames)
    }

    /// There is another receiver, which has nothing yet. Frames that the old one has received are done; the others are new.
    pub(super) fn begin_anew(&mut self) -> Vec<Frame> {
        let (done, mut frames): (Vec<_>, Vec<_>) = self.give_up_all().into_iter().partition(|frame| frame.is_received);
        self.next = Sequence::FIRST;
        for frame in &mut frames {
            self.next = self.next.plus(u16::from(!frame.joins));
            frame.sequence = self.next.plus(Sequence::MODULUS - 1);
            frame.failures = 0;
        }
        self.frames = frames;
        done
    }

    /// The frames, the oldest first.
    #[inline]
    pub(super) fn frames(&mut self) -> &mut [Frame] {
        &mut self.frames
    }

    /// A PPDU with this content was answered or not. Each frame is sent at most this often (0 = no limit). Returns the
    /// finished frames.
    #[inline]
    pub(super) fn settle(
        &mut self,
        Content { frames, mpdus, .. }: Content,
        is_answered: bool,
        retry_limit: u8,
        mut done: impl FnMut(&Frame, Fate),
    ) {
        if is_answered && frames == 0 {
            self.request_due = false;
        }
        // The number of oldest frames that the response covers.
        let answered = match mpdus {
            _ if !is_answered => 0,
            1 => frames,
            _ => self.frames.len(),
        };
        let (mut number, mut given_up) = (0, false);
        self.frames.retain_mut(|frame| {
            let is_answered = number < answered && frame.is_received;
            frame.failures = frame.failures.saturating_add(u8::from(number < frames));
            number += 1;
            if is_answered {
                done(frame, Fate::Acknowledged);
                return false;
            }
            let is_last = retry_limit > 0 && frame.failures >= retry_limit;
            if is_last {
                done(frame, Fate::GivenUp);
                given_up = true;
            }
            !is_last
        });
        self.request_due |= given_up && self.window > 1;
    }
}

/// A PPDU under construction.
#[derive(Debug)]
pub(super) struct Filling<'a> {
    pub(super) content: Content,
    /// The offsets of the last MPDU and of the next.
    start: u64,
    end: u64,
    /// Bytes of the last MPDU as an A-MSDU; 0 if nothing may join it.
    msdus: u64,
    is_full: bool,
    mode: &'a Mode,
    limits: Limits,
    originator: &'a mut Originator,
}

impl Filling<'_> {
    /// Whether an MPDU of this many bytes fits.
    #[inline]
    fn has_room(&self, bytes: u64) -> bool {
        let mpdus = self.content.mpdus;
        let in_bytes = (mpdus == 0 && self.limits.one_anyway) || self.end + bytes <= self.limits.bytes;
        !self.is_full && mpdus < self.limits.mpdus && in_bytes
    }

    /// Whether any frame could be added.
    #[inline]
    pub(super) fn has_room_for_more(&self) -> bool {
        !self.is_full && (self.content.mpdus < self.limits.mpdus || self.msdus < self.limits.amsdu_bytes)
    }

    /// Whether a packet of this size fits into the last MPDU.
    #[inline]
    fn may_join(&self, size: Bytes) -> bool {
        self.limits.amsdu_bytes > 0 && self.msdus > 0 && self.fits_into_last(size)
    }

    fn fits_into_last(&self, size: Bytes) -> bool {
        let msdus = joined(self.msdus, size);
        msdus <= self.limits.amsdu_bytes && self.start + self.mode.amsdu_frame_bytes(msdus) <= self.limits.bytes
    }

    /// Adds a frame, which must fit.
    #[inline]
    fn include(&mut self, frame: Frame) {
        let (size, before) = (frame.departure.size, self.content.bytes);
        if frame.joins {
            self.msdus = joined(self.msdus, size);
            self.content.bytes = self.start + self.mode.amsdu_frame_bytes(self.msdus);
        } else {
            self.start = self.end;
            self.msdus = msdu_bytes(size);
            self.content.mpdus += 1;
            self.content.bytes = self.start + self.mode.frame_bytes(size);
        }
        self.content.frames += 1;
        self.content.to_all_bytes += if frame.is_to_all { self.content.bytes - before.max(self.start) } else { 0 };
        self.content.retries += usize::from(frame.failures > 0);
        self.end = self.mode.next_start(self.start, self.content.bytes);
    }
}

/// A packet in an A-MSDU: addresses (12), length (2), LLC/SNAP (8).
const fn msdu_bytes(size: Bytes) -> u64 {
    size.get() + 12 + 2 + 8
}

/// An A-MSDU of this many bytes, and one packet more.
const fn joined(msdus: u64, size: Bytes) -> u64 {
    msdus.next_multiple_of(4) + msdu_bytes(size)
}

impl<P> Load<P> for Filling<'_> {
    #[inline]
    fn fits(&self, size: Bytes) -> bool {
        let originator = &self.originator;
        let in_window = originator.next.since(originator.start()) < originator.window;
        self.may_join(size) || (in_window && self.has_room(self.mode.frame_bytes(size)))
    }

    #[inline]
    fn add(&mut self, place: u64, packet: &Packet<P>) -> bool {
        let joins = self.may_join(packet.size);
        let originator = &mut self.originator;
        let (departure, is_to_all) = (packet.departure(), packet.to == Destination::Broadcast);
        originator.next = originator.next.plus(u16::from(!joins));
        let sequence = originator.next.plus(Sequence::MODULUS - 1);
        let frame = Frame { sequence, joins, place, departure, is_received: false, is_to_all, failures: 0 };
        originator.frames.push(frame);
        self.include(frame);
        self.has_room_for_more()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::NodeId;
    use crate::queue::{AnyQueue, Queue as _, QueueConfig};
    use crate::random::Streams;
    use crate::wifi::airtime::{AirTimes, ModeId};
    use crate::{Standard, WifiConfig};
    use lasthop_units::{Ecn, Time};

    #[test]
    fn an_ack_is_about_the_one_frame_of_its_ppdu() {
        let times = AirTimes::new(&WifiConfig::new(Standard::Ac), &[]);
        let mode = times.mode(ModeId::of_mcs(9));
        let mut queue = AnyQueue::new(QueueConfig::fifo(3), Streams::new(1), "");
        for id in 0..3 {
            let to = Destination::Node(NodeId(1));
            queue
                .push(
                    Time::ZERO,
                    Packet {
                        from: NodeId(0),
                        to,
                        size: Bytes::new(1500),
                        flow: 0,
                        dscp: 0,
                        ecn: Ecn::NotEct,
                        id,
                        payload: (),
                    },
                )
                .unwrap();
        }
        let mut originator = Originator::new(64);
        let settle = |originator: &mut Originator, frames, is_answered| {
            let mut acknowledged = 0;
            let content = Content { frames, mpdus: frames, ..Content::default() };
            originator.settle(content, is_answered, 0, |_, fate| acknowledged += u32::from(fate == Fate::Acknowledged));
            acknowledged
        };
        // The receiver has all three, and its Block Ack is lost.
        queue.claim(Time::ZERO, None, &mut originator.fill(mode, Limits::of(mode, 64, 0)));
        originator.frames().iter_mut().for_each(|frame| frame.is_received = true);
        assert_eq!(settle(&mut originator, 3, false), 0);
        // The first one is repeated alone: the ACK says nothing about the others. The next Block Ack does.
        assert_eq!(originator.fill(mode, Limits::of(mode, 1, 0)).content.frames, 1);
        assert_eq!(settle(&mut originator, 1, true), 1);
        assert_eq!(originator.fill(mode, Limits::of(mode, 64, 0)).content.frames, 2);
        assert_eq!(settle(&mut originator, 2, true), 2);
    }
}
