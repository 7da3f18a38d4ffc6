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
//! A link without Block Ack (802.11b, 802.11g) has a window of one: each PPDU is one frame, repeated until it is
//! acknowledged or given up, and there are no requests.
//!
//! References: 802.11-2020 §10.3.2.14 (sequence numbers), §10.25 (Block Ack), §10.12 (A-MPDU).

use super::airtime::Mode;
use crate::packet::{Departure, Destination, Packet};
use crate::queue::Load;
use lasthop_units::{Bytes, Span};
use std::collections::VecDeque;

/// A sequence number, modulo 4096.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Sequence(u16);

impl Sequence {
    const MODULUS: u16 = 4096;

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
    frames: VecDeque<Frame>,
    request_due: bool,
}

/// A frame whose packet was claimed from the queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) sequence: Sequence,
    /// Its packet's place in the queue.
    pub(super) place: u64,
    pub(super) departure: Departure,
    /// Whether the receiver has it.
    pub(super) is_received: bool,
    is_to_all: bool,
    failures: u8,
}

/// The contents of a PPDU.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Content {
    /// The number of oldest frames; none: a Block Ack Request.
    pub(super) frames: usize,
    pub(super) bytes: u64,
    /// Of these, the broadcast frames.
    pub(super) to_all_bytes: u64,
    /// Frames that had failed before.
    pub(super) retries: usize,
}

/// The limits of a PPDU.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) frames: usize,
    pub(super) bytes: u64,
    /// Whether a single frame may have more bytes.
    pub(super) one_anyway: bool,
}

impl Limits {
    /// Those of a mode, and this many frames.
    #[cfg(test)]
    pub(super) const fn of(mode: &Mode, frames: usize) -> Self {
        Self { frames, bytes: mode.most_bytes, one_anyway: true }
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
        Self { window, next: Sequence::FIRST, frames: VecDeque::new(), request_due: false }
    }

    pub(super) const fn window(&self) -> u16 {
        self.window
    }

    /// The oldest frame, or else the next one: the start of the receiver's window as the sender knows it.
    pub(super) fn start(&self) -> Sequence {
        self.frames.front().map_or(self.next, |frame| frame.sequence)
    }

    /// The place of the oldest frame's packet in the queue.
    pub(super) fn place(&self) -> Option<u64> {
        self.frames.front().map(|frame| frame.place)
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
        let mut filling = Filling { content: Content::default(), end: 0, is_full, mode, limits, originator: self };
        while let Some(&frame) = filling.originator.frames.get(filling.content.frames) {
            if !filling.has_room(frame.departure.size) {
                filling.is_full = true;
                break;
            }
            filling.include(frame);
        }
        filling
    }

    /// The frames of a PPDU of this length.
    #[inline]
    pub(super) fn sent(&mut self, frames: usize) -> impl Iterator<Item = &mut Frame> {
        self.frames.iter_mut().take(frames)
    }

    /// A PPDU of this many frames was answered or not. Each is sent at most this often (0 = no limit). Returns the
    /// finished frames.
    #[inline]
    pub(super) fn settle(
        &mut self,
        frames: usize,
        is_answered: bool,
        retry_limit: u8,
        mut done: impl FnMut(&Frame, Fate),
    ) {
        if is_answered && frames == 0 {
            self.request_due = false;
        }
        let mut failed = frames;
        // The number of oldest frames that the response covers.
        let mut answered = match frames {
            _ if !is_answered => 0,
            1 => 1,
            _ => self.frames.len(),
        };
        while let Some(frame) = self.frames.front().filter(|frame| answered > 0 && frame.is_received) {
            done(frame, Fate::Acknowledged);
            self.frames.pop_front();
            failed = failed.saturating_sub(1);
            answered -= 1;
        }
        let fate = |number: usize, frame: &Frame| match frame.failures {
            _ if number < answered && frame.is_received => Some(Fate::Acknowledged),
            failures if retry_limit > 0 && failures >= retry_limit => Some(Fate::GivenUp),
            _ => None,
        };
        let mut any_done = false;
        for (number, frame) in self.frames.iter_mut().enumerate() {
            frame.failures = frame.failures.saturating_add(u8::from(number < failed));
            any_done |= fate(number, frame).is_some();
        }
        let mut given_up = false;
        if any_done {
            let mut number = 0;
            self.frames.retain(|frame| {
                let fate = fate(number, frame);
                number += 1;
                if let Some(fate) = fate {
                    done(frame, fate);
                    given_up |= fate == Fate::GivenUp;
                }
                fate.is_none()
            });
        }
        self.request_due |= given_up && self.window > 1;
    }
}

/// A PPDU under construction.
#[derive(Debug)]
pub(super) struct Filling<'a> {
    pub(super) content: Content,
    /// The offset of the next frame.
    end: u64,
    is_full: bool,
    mode: &'a Mode,
    limits: Limits,
    originator: &'a mut Originator,
}

impl Filling<'_> {
    #[inline]
    fn has_room(&self, size: Bytes) -> bool {
        let frames = self.content.frames;
        let in_bytes =
            (frames == 0 && self.limits.one_anyway) || self.end + self.mode.frame_bytes(size) <= self.limits.bytes;
        !self.is_full && frames < self.limits.frames && in_bytes
    }

    /// Whether any frame could be added.
    #[inline]
    pub(super) fn has_room_for_more(&self) -> bool {
        !self.is_full && self.content.frames < self.limits.frames
    }

    /// Adds a frame, which must fit.
    #[inline]
    fn include(&mut self, frame: Frame) {
        let bytes = self.mode.frame_bytes(frame.departure.size);
        let start = self.end;
        self.content.frames += 1;
        self.content.bytes = start + bytes;
        self.content.to_all_bytes += if frame.is_to_all { bytes } else { 0 };
        self.content.retries += usize::from(frame.failures > 0);
        self.end = self.mode.next_start(start, self.content.bytes);
    }
}

impl<P> Load<P> for Filling<'_> {
    #[inline]
    fn fits(&self, size: Bytes) -> bool {
        let originator = &self.originator;
        originator.next.since(originator.start()) < originator.window && self.has_room(size)
    }

    #[inline]
    fn add(&mut self, place: u64, packet: &Packet<P>) -> bool {
        let originator = &mut self.originator;
        let (departure, is_to_all) = (packet.departure(), packet.to == Destination::Broadcast);
        let sequence = originator.next;
        originator.next = sequence.plus(1);
        let frame = Frame { sequence, place, departure, is_received: false, is_to_all, failures: 0 };
        originator.frames.push_back(frame);
        self.include(frame);
        self.content.frames < self.limits.frames
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::NodeId;
    use crate::queue::{Queue, QueueConfig};
    use crate::random::Streams;
    use crate::wifi::airtime::{AirTimes, ModeId};
    use crate::{Standard, WifiConfig};
    use lasthop_units::Time;

    #[test]
    fn an_ack_is_about_the_one_frame_of_its_ppdu() {
        let times = AirTimes::new(&WifiConfig::new(Standard::Ac));
        let mode = times.mode(ModeId::of_mcs(9));
        let mut queue = Queue::new(QueueConfig::fifo(3), Streams::new(1), "");
        for id in 0..3 {
            let to = Destination::Node(NodeId(1));
            queue
                .push(
                    Time::ZERO,
                    Packet { from: NodeId(0), to, size: Bytes::new(1500), flow: 0, dscp: 0, id, payload: () },
                )
                .unwrap();
        }
        let mut originator = Originator::new(64);
        let settle = |originator: &mut Originator, frames, is_answered| {
            let mut acknowledged = 0;
            originator.settle(frames, is_answered, 0, |_, fate| acknowledged += u32::from(fate == Fate::Acknowledged));
            acknowledged
        };
        // The receiver has all three, and its Block Ack is lost.
        queue.claim(Time::ZERO, None, &mut originator.fill(mode, Limits::of(mode, 64)));
        originator.sent(3).for_each(|frame| frame.is_received = true);
        assert_eq!(settle(&mut originator, 3, false), 0);
        // The first one is repeated alone: the ACK says nothing about the others. The next Block Ack does.
        assert_eq!(originator.fill(mode, Limits::of(mode, 1)).content.frames, 1);
        assert_eq!(settle(&mut originator, 1, true), 1);
        assert_eq!(originator.fill(mode, Limits::of(mode, 64)).content.frames, 2);
        assert_eq!(settle(&mut originator, 2, true), 2);
    }
}
