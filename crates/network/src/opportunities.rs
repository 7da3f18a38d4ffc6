//! Delivery opportunities: links that carry data at given instants, as mahimahi's `mm-link` replays a cellular network.
//!
//! 1. At each opportunity up to 1504 bytes leave. A packet takes its size and 4 bytes, for mahimahi counts the header of
//!    its TUN device, and 1504 is that with 1500 bytes of IP.
//! 2. Small packets share an opportunity. A packet that does not fit takes its rest from the following ones; it has been
//!    sent at the one that completes it. What then remains goes to the next packet.
//! 3. What is left when nothing waits is lost, and so is an opportunity at which nothing waits.
//! 4. Behind its last opportunity the trace begins anew.
//!
//! A packet that comes at the instant of an opportunity may still use it. In mahimahi, whose clock has milliseconds, one
//! that comes within the opportunity's millisecond is late.
//!
//! References: mahimahi, src/frontend/link_queue.cc, `rationalize` (read for the facts, not copied); mm-link(1); R.
//! Netravali et al.: Mahimahi: accurate record-and-replay for HTTP, USENIX ATC 2015, §4.

use lasthop_units::{Bytes, Rate, Span, Time};
use std::sync::Arc;

/// What an opportunity carries: mahimahi's `PACKET_SIZE`.
const OPPORTUNITY: u64 = 1504;
/// What a packet takes beyond its size: Linux's `struct tun_pi`.
const HEADER: u64 = 4;

/// The opportunities of a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Opportunities {
    /// Milliseconds from its beginning, ascending, and the number of opportunities at each.
    instants: Vec<(u32, u32)>,
    /// Its length in milliseconds, after which it begins anew; `None`: it does not.
    period_ms: Option<u32>,
}

impl Opportunities {
    /// Opportunities at these milliseconds, each with its number, ascending in time. With `repeats`, the trace begins anew
    /// at the last one. `None` if there are none, if they are not ascending, or if one that repeats takes no time.
    pub fn new(instants: Vec<(u32, u32)>, repeats: bool) -> Option<Self> {
        let last = instants.last()?.0;
        let ascending = instants.is_sorted_by(|(one, _), (next, _)| one < next);
        let some = instants.iter().all(|(_, count)| *count > 0);
        let period_ms = repeats.then_some(last);
        (ascending && some && period_ms != Some(0)).then_some(Self { instants, period_ms })
    }

    /// The milliseconds, and the number of opportunities at each.
    pub fn instants(&self) -> &[(u32, u32)] {
        &self.instants
    }

    /// Whether the trace begins anew behind its last opportunity.
    pub const fn repeats(&self) -> bool {
        self.period_ms.is_some()
    }

    /// The mean rate, in bytes of full packets.
    pub fn mean_rate(&self) -> Rate {
        let count: u64 = self.instants.iter().map(|(_, count)| u64::from(*count)).sum();
        let last = self.instants.last().map_or(0, |(at, _)| *at);
        Rate::over(Bytes::new((OPPORTUNITY - HEADER) * count), Span::from_millis(last.max(1).into()))
    }
}

/// A replay of opportunities: what is used up, and what is left.
#[derive(Clone, Debug)]
pub(crate) struct Replay {
    trace: Arc<Opportunities>,
    next: Position,
    /// What remains of the last opportunity used, at its instant.
    remains: (Time, u64),
    /// Where the packet in service found the opportunities, and how many bytes it then needed of them.
    begun: (Position, u64),
}

/// An opportunity: the round's beginning, the instant's index, and how many of the instant come before.
#[derive(Clone, Copy, Debug)]
struct Position {
    round: Time,
    index: usize,
    used: u32,
}

impl Replay {
    /// A replay that begins at this time.
    pub(crate) fn new(trace: Arc<Opportunities>, from: Time) -> Self {
        let next = Position { round: from, index: 0, used: 0 };
        Self { trace, next, remains: (from, 0), begun: (next, 0) }
    }

    /// The bytes that a packet takes.
    pub(crate) const fn bytes_of(size: Bytes) -> u64 {
        size.get() + HEADER
    }

    /// Uses what this many bytes need from `now` on. Returns when the last of them leaves; [`Time::MAX`] if the trace ends
    /// before.
    pub(crate) fn serve(&mut self, now: Time, bytes: u64) -> Time {
        let remains = if self.remains.0 == now { self.remains.1 } else { 0 };
        self.skip_before(now);
        let needed = bytes.saturating_sub(remains);
        self.begun = (self.next, needed);
        if needed == 0 {
            self.remains = (now, remains - bytes);
            return now;
        }
        let mut opportunities = needed.div_ceil(OPPORTUNITY);
        self.remains.1 = opportunities * OPPORTUNITY - needed;
        let mut at = now;
        while opportunities > 0 {
            at = self.at(self.next);
            let Some((_, count)) = self.trace.instants.get(self.next.index) else { break };
            let taken = opportunities.min(u64::from(count - self.next.used));
            opportunities -= taken;
            self.next.used += taken as u32;
            if self.next.used == *count {
                self.skip_instant();
            }
        }
        self.remains.0 = at;
        at
    }

    /// Stops the packet in service. Returns the bytes that have not left before `now`; their opportunities are there again.
    pub(crate) fn interrupt(&mut self, now: Time) -> u64 {
        let (begun, needed) = self.begun;
        self.next = begun;
        let mut left = needed;
        while left > 0 && self.at(self.next) < now {
            left = left.saturating_sub(OPPORTUNITY);
            self.next.used += 1;
            if self.next.used == self.trace.instants[self.next.index].1 {
                self.skip_instant();
            }
        }
        self.remains = (now, 0);
        left
    }

    fn at(&self, position: Position) -> Time {
        match self.trace.instants.get(position.index) {
            Some((at, _)) => position.round.saturating_add(Span::from_millis((*at).into())),
            None => Time::MAX,
        }
    }

    fn skip_instant(&mut self) {
        (self.next.index, self.next.used) = (self.next.index + 1, 0);
        self.begin_anew(1);
    }

    /// If the round is over, goes so many rounds on.
    fn begin_anew(&mut self, rounds: u64) {
        if self.next.index == self.trace.instants.len()
            && let Some(period) = self.trace.period_ms
        {
            let by = Span::from_millis(u64::from(period) * rounds);
            self.next = Position { round: self.next.round + by, index: 0, used: 0 };
        }
    }

    /// Opportunities before `now` are lost.
    fn skip_before(&mut self, now: Time) {
        if self.at(self.next) >= now {
            return;
        }
        let passed_ms = (now - self.next.round).as_nanos().div_ceil(1_000_000);
        if let Some(period) = self.trace.period_ms.map(u64::from) {
            // The last opportunity of a round may be now.
            let rounds = passed_ms.saturating_sub(1) / period;
            if rounds > 0 {
                let by = Span::from_millis(rounds * period);
                self.next = Position { round: self.next.round + by, index: 0, used: 0 };
            }
        }
        let passed_ms = (now - self.next.round).as_nanos().div_ceil(1_000_000);
        let index = self.trace.instants.partition_point(|(at, _)| u64::from(*at) < passed_ms);
        if index > self.next.index {
            (self.next.index, self.next.used) = (index, 0);
            self.begin_anew(1);
        }
    }
}
