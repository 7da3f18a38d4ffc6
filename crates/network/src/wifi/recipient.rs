//! The receiving end of a link: frames go on in the order in which they were sent.
//!
//! ```text
//!    expected             expected + window - 1
//!      |  .  #  #  .  #  .  .  |                    # held, . missing
//! ```
//!
//! 1. A frame that is expected goes on at once, and with it those held right behind it. One further on is held.
//! 2. One past the window moves the window: what it leaves behind goes on, without what is missing there. A Block Ack Request
//!    does the same.
//! 3. What has been held for 100 ms goes on, without what is missing before it (Linux's HT_RX_REORDER_BUF_TIMEOUT).
//! 4. What lies before the window comes too late, and is lost.
//!
//! With a window of one nothing is ever held: that is a link without Block Ack, whose receiver only looks for repeats.
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
    /// From the expected frame on, with when they came; the last one is there.
    held: VecDeque<Option<(Time, Packet<P>)>>,
}

impl<P> Recipient<P> {
    /// One that has received nothing yet.
    pub(super) const fn new(window: u16) -> Self {
        Self { window, expected: Sequence::FIRST, held: VecDeque::new() }
    }

    /// Takes in a frame that it has not received before; gives it back if it comes too late.
    pub(super) fn receive(
        &mut self,
        now: Time,
        sequence: Sequence,
        packet: Packet<P>,
        mut go_on: impl FnMut(Packet<P>),
    ) -> Result<(), Packet<P>> {
        if self.is_past(sequence) {
            return Err(packet);
        }
        let past = (sequence.since(self.expected) + 1).saturating_sub(self.window);
        if past > 0 {
            self.skip(past, &mut go_on);
        }
        let offset = usize::from(sequence.since(self.expected));
        if offset == 0 {
            self.expected = sequence.plus(1);
            self.held.pop_front();
            go_on(packet);
            self.let_go(go_on);
            return Ok(());
        }
        if self.held.len() <= offset {
            self.held.resize_with(offset + 1, || None);
        }
        debug_assert!(self.held[offset].is_none(), "a packet is received once");
        self.held[offset] = Some((now, packet));
        Ok(())
    }

    /// The window begins there, if not further on.
    pub(super) fn on_request(&mut self, start: Sequence, go_on: impl FnMut(Packet<P>)) {
        if !self.is_past(start) {
            self.skip(start.since(self.expected), go_on);
        }
    }

    /// When what is held goes on though something is missing; [`Time::MAX`] if nothing is held.
    pub(super) fn deadline(&self) -> Time {
        self.held.iter().flatten().next().map_or(Time::MAX, |&(came_at, _)| came_at + TIMEOUT)
    }

    /// The deadline is over.
    pub(super) fn on_deadline(&mut self, go_on: impl FnMut(Packet<P>)) {
        let missing = self.held.iter().take_while(|held| held.is_none()).count();
        self.skip(missing as u16, go_on);
    }

    pub(super) fn packets_inside(&self) -> usize {
        self.held.iter().flatten().count()
    }

    /// Whether it lies before the window. A sender repeats nothing that lies more than a window before its newest frame.
    fn is_past(&self, sequence: Sequence) -> bool {
        (1..=self.window).contains(&self.expected.since(sequence))
    }

    /// So many are not waited for any more.
    fn skip(&mut self, count: u16, mut go_on: impl FnMut(Packet<P>)) {
        self.expected = self.expected.plus(count);
        let left_behind = usize::from(count).min(self.held.len());
        self.held.drain(..left_behind).flatten().for_each(|(_, packet)| go_on(packet));
        self.let_go(go_on);
    }

    /// Those that nothing is missing before.
    fn let_go(&mut self, mut go_on: impl FnMut(Packet<P>)) {
        while let Some(held) = self.held.pop_front() {
            let Some((_, packet)) = held else {
                self.held.push_front(None);
                break;
            };
            self.expected = self.expected.plus(1);
            go_on(packet);
        }
    }
}
