//! The receiving end of a link: it delivers frames in the order of sending.
//!
//! ```text
//!    expected             expected + window - 1
//!      |  .  #  #  .  #  .  .  |                    # held, . missing
//! ```
//!
//! 1. The expected frame is delivered at once, together with held frames right behind it. A later one is held.
//! 2. A frame past the window moves the window. Frames left behind by the window are delivered, despite gaps. A Block
//!    Ack Request does the same.
//! 3. Frames held for 100 ms are delivered, despite gaps before them (Linux's HT_RX_REORDER_BUF_TIMEOUT).
//! 4. A frame before the window is late, and is lost.
//!
//! A window of one holds nothing: that is a link without Block Ack, whose receiver only detects duplicates.
//!
//! References: 802.11-2020 §10.25.6 (recipient's behaviour); Linux, net/mac80211/rx.c (read for the facts, not copied).

use super::originator::Sequence;
use crate::packet::Packet;
use lasthop_units::{Span, Time};
use std::collections::VecDeque;

const TIMEOUT: Span = Span::from_millis(100);

#[derive(Clone, Debug)]
pub(super) struct Recipient<P> {
    window: u16,
    expected: Sequence,
    /// From the expected frame on, with times of arrival; the last slot is filled.
    held: VecDeque<Option<Held<P>>>,
    /// The fate of the last MPDU's first packet.
    last: Fate,
}

/// A frame held, with its packets and its time of arrival.
#[derive(Clone, Debug)]
struct Held<P> {
    at: Time,
    packet: Packet<P>,
    /// The rest of an A-MSDU.
    more: Vec<Packet<P>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Delivered,
    /// With this sequence number.
    Held(Sequence),
    Late,
}

impl<P> Held<P> {
    fn packets(self) -> impl Iterator<Item = Packet<P>> {
        [self.packet].into_iter().chain(self.more)
    }
}

impl<P> Recipient<P> {
    /// A recipient that has received nothing yet.
    pub(super) const fn new(window: u16) -> Self {
        Self { window, expected: Sequence::FIRST, held: VecDeque::new(), last: Fate::Late }
    }

    /// Accepts a frame that it has not received before, or the first packet of its A-MSDU. Returns it if it is late.
    /// The frames held behind it wait for [`release`](Self::release), after all frames of the PPDU.
    #[inline]
    pub(super) fn receive(
        &mut self,
        now: Time,
        sequence: Sequence,
        packet: Packet<P>,
        mut go_on: impl FnMut(Packet<P>),
    ) -> Result<(), Packet<P>> {
        let is_late = sequence != self.expected && !self.reach(sequence, &mut go_on);
        if is_late {
            self.last = Fate::Late;
            return Err(packet);
        }
        if sequence != self.expected {
            self.hold(now, sequence, packet);
            return Ok(());
        }
        self.expected = sequence.plus(1);
        self.held.pop_front();
        go_on(packet);
        self.last = Fate::Delivered;
        Ok(())
    }

    /// Moves the window up to this frame. Returns whether the frame lies in it, not before it.
    #[inline(never)]
    fn reach(&mut self, sequence: Sequence, go_on: impl FnMut(Packet<P>)) -> bool {
        if self.is_past(sequence) {
            return false;
        }
        let past = (sequence.since(self.expected) + 1).saturating_sub(self.window);
        if past > 0 {
            self.skip(past, go_on);
        }
        true
    }

    #[inline(never)]
    fn hold(&mut self, now: Time, sequence: Sequence, packet: Packet<P>) {
        let offset = usize::from(sequence.since(self.expected));
        if self.held.len() <= offset {
            self.held.resize_with(offset + 1, || None);
        }
        debug_assert!(self.held[offset].is_none(), "a packet is received once");
        self.held[offset] = Some(Held { at: now, packet, more: Vec::new() });
        self.last = Fate::Held(sequence);
    }

    /// Accepts the next packet of the last frame's A-MSDU: it goes where the first one went.
    #[inline(never)]
    pub(super) fn receive_rest(
        &mut self,
        packet: Packet<P>,
        mut go_on: impl FnMut(Packet<P>),
    ) -> Result<(), Packet<P>> {
        match self.last {
            Fate::Delivered => go_on(packet),
            Fate::Held(sequence) => {
                let offset = usize::from(sequence.since(self.expected));
                self.held[offset].as_mut().expect("its first packet is held").more.push(packet);
            }
            Fate::Late => return Err(packet),
        }
        Ok(())
    }

    /// Moves the start of the window there, unless it is already past.
    pub(super) fn on_request(&mut self, start: Sequence, go_on: impl FnMut(Packet<P>)) {
        if !self.is_past(start) {
            self.skip(start.since(self.expected), go_on);
        }
    }

    /// The release time of held frames despite gaps; [`Time::MAX`] if nothing is held.
    #[inline]
    pub(super) fn deadline(&self) -> Time {
        if self.held.is_empty() { Time::MAX } else { self.deadline_of_held() }
    }

    fn deadline_of_held(&self) -> Time {
        self.held.iter().flatten().next().map_or(Time::MAX, |held| held.at + TIMEOUT)
    }

    /// Puts the deadline of all held frames off.
    pub(super) fn wait_longer(&mut self, by: Span) {
        self.held.iter_mut().flatten().for_each(|held| held.at += by);
    }

    /// The deadline is over.
    pub(super) fn on_deadline(&mut self, go_on: impl FnMut(Packet<P>)) {
        let missing = self.held.iter().take_while(|held| held.is_none()).count();
        self.skip(missing as u16, go_on);
    }

    /// Takes out all that is held.
    pub(super) fn take_held(&mut self) -> impl Iterator<Item = Packet<P>> + use<P> {
        std::mem::take(&mut self.held).into_iter().flatten().flat_map(Held::packets)
    }

    pub(super) fn packets_inside(&self) -> usize {
        self.held.iter().flatten().map(|held| 1 + held.more.len()).sum()
    }

    /// Whether it lies before the window. A sender repeats nothing more than a window older than its newest frame.
    fn is_past(&self, sequence: Sequence) -> bool {
        (1..=self.window).contains(&self.expected.since(sequence))
    }

    /// Stops waiting for this many frames.
    fn skip(&mut self, count: u16, mut go_on: impl FnMut(Packet<P>)) {
        self.expected = self.expected.plus(count);
        let left_behind = usize::from(count).min(self.held.len());
        self.held.drain(..left_behind).flatten().flat_map(Held::packets).for_each(&mut go_on);
        self.release(go_on);
    }

    /// Delivers the held frames without a gap before them.
    #[inline]
    pub(super) fn release(&mut self, go_on: impl FnMut(Packet<P>)) {
        if !self.held.is_empty() {
            self.release_held(go_on);
        }
    }

    fn release_held(&mut self, mut go_on: impl FnMut(Packet<P>)) {
        while let Some(held) = self.held.pop_front() {
            let Some(held) = held else {
                self.held.push_front(None);
                break;
            };
            self.expected = self.expected.plus(1);
            held.packets().for_each(&mut go_on);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::NodeId;
    use crate::queue::{AnyQueue, Queue as _, QueueConfig};
    use crate::random::Streams;
    use crate::wifi::airtime::{AirTimes, ModeId};
    use crate::wifi::originator::{Fate, Limits, Originator};
    use crate::{Standard, WifiConfig};
    use proptest::prelude::*;

    fn ms(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    /// Receives these frames at a time, with sequence numbers about to wrap.
    fn receive(recipient: &mut Recipient<u16>, now: Time, frames: &[u16]) -> Vec<u16> {
        let mut gone_on = Vec::new();
        for &frame in frames {
            let taken =
                recipient.receive(now, number(frame), Packet::full(frame), |packet| gone_on.push(packet.payload));
            if taken.is_err() {
                gone_on.push(1000 + frame);
            }
            recipient.release(|packet| gone_on.push(packet.payload));
        }
        gone_on
    }

    fn number(frame: u16) -> Sequence {
        Sequence::FIRST.plus(4090 + frame)
    }

    fn recipient(window: u16) -> Recipient<u16> {
        Recipient { expected: number(0), ..Recipient::new(window) }
    }

    #[test]
    fn what_is_missing_holds_back_what_is_behind_it_across_the_modulus() {
        // Frame 6 has sequence number 0.
        let mut recipient = recipient(64);
        assert_eq!(receive(&mut recipient, ms(0), &[0, 1, 3, 4, 7]), [0, 1]);
        assert_eq!((recipient.packets_inside(), recipient.deadline()), (3, ms(100)));
        assert_eq!(receive(&mut recipient, ms(3), &[2]), [2, 3, 4]);
        assert_eq!(receive(&mut recipient, ms(5), &[5, 6]), [5, 6, 7]);
        assert_eq!((recipient.packets_inside(), recipient.deadline()), (0, Time::MAX));
    }

    #[test]
    fn past_the_window_it_moves_and_what_it_has_left_behind_comes_too_late() {
        let mut recipient = recipient(4);
        assert_eq!(receive(&mut recipient, ms(0), &[1, 3]), []);
        // 5 makes it 2 to 5: 1 is delivered, 2 is awaited. 7 makes it 4 to 7: 3 is delivered, and 4 is missing.
        assert_eq!(receive(&mut recipient, ms(1), &[5]), [1]);
        assert_eq!(receive(&mut recipient, ms(2), &[7]), [3]);
        assert_eq!(receive(&mut recipient, ms(3), &[2]), [1002]);
        assert_eq!(receive(&mut recipient, ms(3), &[4, 6]), [4, 5, 6, 7]);
    }

    #[test]
    fn a_request_moves_the_window_on_and_never_back() {
        let mut recipient = recipient(64);
        receive(&mut recipient, ms(0), &[1, 2, 4]);
        let mut gone_on = Vec::new();
        recipient.on_request(number(1), |packet| gone_on.push(packet.payload));
        assert_eq!(gone_on, [1, 2]);
        recipient.on_request(number(0), |packet| gone_on.push(packet.payload));
        recipient.on_request(number(10), |packet| gone_on.push(packet.payload));
        assert_eq!((gone_on, recipient.expected), (vec![1, 2, 4], number(10)));
    }

    #[test]
    fn after_100_ms_what_is_held_goes_on_without_what_is_missing() {
        let mut recipient = recipient(64);
        receive(&mut recipient, ms(0), &[5]);
        receive(&mut recipient, ms(40), &[2, 3]);
        // The first frame held sets the deadline.
        assert_eq!(recipient.deadline(), ms(140));
        let mut gone_on = Vec::new();
        recipient.on_deadline(|packet| gone_on.push(packet.payload));
        assert_eq!((gone_on, recipient.deadline()), (vec![2, 3], ms(100)));
        assert_eq!(receive(&mut recipient, ms(141), &[1, 4]), [1001, 4, 5]);
    }

    #[test]
    fn without_block_ack_nothing_is_held_and_repeats_are_known() {
        let mut recipient = recipient(1);
        assert_eq!(receive(&mut recipient, ms(0), &[0, 1, 3000, 3000]), [0, 1, 3000, 4000]);
        assert_eq!(recipient.packets_inside(), 0);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

        /// Both ends over a lossy link, past the wrap of sequence numbers. Each packet is delivered once, in order, or
        /// is lost as reported by its sender or its receiver.
        #[test]
        fn no_packet_is_lost_doubled_or_overtaken(
            window in prop_oneof![Just(1_u16), Just(64), Just(256)],
            most_frames in prop_oneof![1..80_usize, 1..=256_usize],
            retry_limit in 0..4_u8,
            amsdu_bytes in prop_oneof![Just(0_u64), 1000..8000_u64],
            // Per round: new packets, frames lost of eight, whether the response is lost, whether 100 ms pass, whether
            // only one frame is sent. The rounds repeat until the finished frames exceed the range of sequence numbers.
            rounds in prop::collection::vec(
                (0..=256_u16, 0..6_u8, prop::bool::weighted(0.1), prop::bool::weighted(0.05), prop::bool::weighted(0.05)),
                150,
            ),
            mut luck: u64,
        ) {
            let times = AirTimes::new(&WifiConfig::new(Standard::Ax), &[]);
            let mode = times.mode(ModeId::of_mcs(11));
            let mut queue = AnyQueue::new(QueueConfig::fifo(60_000), Streams::new(1), "");
            let (mut originator, mut recipient) = (Originator::new(window), Recipient::new(window));
            let (mut now, mut offered, mut lost, mut gone_on) = (Time::ZERO, 0, Vec::new(), Vec::new());
            let (mut all_done, mut rounds) = (0, rounds.into_iter().cycle().take(100_000));
            while all_done <= 5000 && let Some((new, errors, response_is_lost, time_passes, is_alone)) = rounds.next() {
                for _ in 0..new.min(6000 - offered) {
                    queue.push(now, Packet::full(offered)).unwrap();
                    offered += 1;
                }
                if time_passes && recipient.deadline() < Time::MAX {
                    now = now.max(recipient.deadline());
                    recipient.on_deadline(|packet| gone_on.push(packet.payload));
                }
                let most_frames = if window == 1 || is_alone { 1 } else { most_frames };
                let amsdu_bytes = if window == 1 { 0 } else { amsdu_bytes };
                let mut filling = originator.fill(mode, Limits::of(mode, most_frames, amsdu_bytes));
                queue.claim(now, None, &mut filling);
                let content = filling.content;
                let frames = content.frames;
                prop_assert!(content.mpdus <= most_frames);
                let newest = originator.frames()[..frames].last().map(|frame| frame.sequence);
                prop_assert!(newest.is_none_or(|newest| newest.since(originator.start()) < window));
                let mut is_received = frames == 0;
                if frames == 0 {
                    recipient.on_request(originator.start(), |packet| gone_on.push(packet.payload));
                }
                let mut was_received = false;
                for frame in &mut originator.frames()[..frames] {
                    if !frame.joins {
                        luck = luck.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    }
                    if (luck >> 61) < errors.into() {
                        prop_assert!(!frame.joins || !was_received);
                        was_received = false;
                        continue;
                    }
                    was_received = true;
                    is_received = true;
                    if std::mem::replace(&mut frame.is_received, true) {
                        continue;
                    }
                    let packet = queue.take(frame.place);
                    let go_on = |packet: Packet<u16>| gone_on.push(packet.payload);
                    let taken = match frame.joins {
                        true => recipient.receive_rest(packet, go_on),
                        false => recipient.receive(now, frame.sequence, packet, go_on),
                    };
                    lost.extend(taken.err().map(|late| late.payload));
                }
                recipient.release(|packet| gone_on.push(packet.payload));
                let mut done = 0;
                originator.settle(content, is_received && !response_is_lost, retry_limit, |frame, fate| {
                    done += 1;
                    if fate == Fate::GivenUp && !frame.is_received {
                        lost.push(queue.take(frame.place).payload);
                    }
                });
                prop_assert!(done <= frames || content.mpdus != 1 || retry_limit > 0, "an ACK is about one frame");
                queue.release(now, NodeId(0), done);
                all_done += done;
                let inside = queue.waiting() + originator.packets_inside() + recipient.packets_inside();
                prop_assert_eq!(inside + gone_on.len() + lost.len(), usize::from(offered));
                now += Span::from_millis(1);
            }
            prop_assert!(all_done > 4096);
            prop_assert!(gone_on.is_sorted_by(|one, other| one < other), "in order, none twice");
            prop_assert!(lost.iter().all(|lost| gone_on.binary_search(lost).is_err()));
        }
    }
}
