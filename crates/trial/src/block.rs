//! What a host measures in a block: of the states of its TCP connections at each tick.

use crate::plan::{Moment, Plan};
use lasthop_connection::TcpState;
use lasthop_units::{Bytes, Rate, Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a host has measured in the part of a block that counts. Of each connection, from the second tick at which it is seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// Its number, from 0.
    pub block: u16,
    /// From the first tick that counts to the last, in ms.
    pub lasted_ms: u32,
    /// Payload acknowledged.
    pub sent_bytes: u64,
    /// Payload received.
    pub received_bytes: u64,
    /// The median of the round trips, in µs: at each tick, of each connection that got on, the newest that an ACK has
    /// measured; where it only receives, the receiver's estimate. 0: there is none.
    pub rtt_p50_us: u32,
    /// Their 95 % quantile.
    pub rtt_p95_us: u32,
    /// How many there are.
    pub rtts: u16,
    /// Segments with data sent, retransmissions among them.
    pub segments: u32,
    /// Of those, retransmissions.
    pub retransmitted: u32,
    /// Retransmission timeouts.
    pub timeouts: u16,
}

/// Measures block after block.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    /// The connections at the last tick.
    before: BTreeMap<u64, TcpState>,
    measured: Option<Measured>,
    /// When data was last acknowledged, counted or not.
    sent_at: Option<Time>,
}

/// A block that is measured.
#[derive(Clone, Debug)]
struct Measured {
    block: Block,
    from: Time,
    until: Time,
    rtts: Vec<Span>,
    /// Some connection had data to send at each tick.
    had_data: bool,
}

impl Block {
    /// Payload sent and received; zero if it lasted no time.
    pub fn goodput(&self) -> Rate {
        self.rate(self.sent_bytes + self.received_bytes)
    }

    /// Payload sent.
    pub fn sent(&self) -> Rate {
        self.rate(self.sent_bytes)
    }

    fn rate(&self, bytes: u64) -> Rate {
        let lasted = Span::from_millis(self.lasted_ms.into());
        if lasted.is_zero() { Rate::ZERO } else { Rate::over(Bytes::new(bytes), lasted) }
    }

    /// Whether it lasted for half of the time that counts or more: one that a host joined late, or left early, does not count.
    pub fn is_whole(&self, plan: &Plan) -> bool {
        2 * Span::from_millis(self.lasted_ms.into()).as_nanos() >= plan.counts().as_nanos()
    }
}

impl Meter {
    /// Takes the connections of a tick, by number. Returns a block that has ended, and whether the host had data to send at
    /// each of its ticks.
    pub fn on_tick(
        &mut self,
        now: Time,
        moment: Option<Moment>,
        flows: impl IntoIterator<Item = (u64, TcpState)>,
    ) -> Option<(Block, bool)> {
        let counts = moment.filter(|moment| moment.counts).map(|moment| moment.block);
        let ended = self.measured.take_if(|measured| Some(measured.block.block) != counts).map(Measured::finish);
        let before = std::mem::take(&mut self.before);
        self.before.extend(flows);
        let got_on = |(id, flow): (&u64, &TcpState)| before.get(id).is_some_and(|then| flow.acked > then.acked);
        if self.before.iter().any(got_on) {
            self.sent_at = Some(now);
        }
        if let Some(block) = counts {
            let is_first = self.measured.is_none();
            let measured = self.measured.get_or_insert_with(|| Measured {
                block: Block { block, ..Block::default() },
                from: now,
                until: now,
                rtts: Vec::new(),
                had_data: true,
            });
            if !is_first {
                measured.add(now, &before, &self.before);
            }
        }
        ended
    }

    /// The last tick at which data had been acknowledged since the one before; `None`: none yet.
    pub const fn sent_at(&self) -> Option<Time> {
        self.sent_at
    }

    /// The block that is measured now, and whether the host had data to send at each tick of it.
    pub fn present(&self) -> Option<(Block, bool)> {
        self.measured.as_ref().map(|measured| measured.clone().finish())
    }
}

impl Measured {
    fn add(&mut self, now: Time, before: &BTreeMap<u64, TcpState>, flows: &BTreeMap<u64, TcpState>) {
        self.until = now;
        self.had_data &= flows.values().any(TcpState::has_data);
        let since = |now: u64, then: u64| now.saturating_sub(then);
        let narrow = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        for (flow, then) in flows.iter().filter_map(|(id, flow)| Some((flow, before.get(id)?))) {
            let acked = since(flow.acked.get(), then.acked.get());
            let received = since(flow.received.get(), then.received.get());
            let block = &mut self.block;
            block.sent_bytes += acked;
            block.received_bytes += received;
            block.segments = block.segments.saturating_add(narrow(since(flow.sent_segments, then.sent_segments)));
            block.retransmitted = block.retransmitted.saturating_add(narrow(since(flow.retransmits, then.retransmits)));
            let timeouts = since(flow.timeouts.unwrap_or(0), then.timeouts.unwrap_or(0));
            block.timeouts = block.timeouts.saturating_add(u16::try_from(timeouts).unwrap_or(u16::MAX));
            let rtt = if acked > 0 { flow.newest_rtt.or(flow.srtt) } else { flow.receive_rtt.filter(|_| received > 0) };
            self.rtts.extend(rtt);
        }
    }

    fn finish(mut self) -> (Block, bool) {
        self.rtts.sort_unstable();
        // The least value that as many parts of them are not above (the inverse of the empirical distribution).
        let part = |percent: usize| {
            let at = (self.rtts.len() * percent).div_ceil(100).checked_sub(1);
            let rtt = at.map_or(0, |at| self.rtts[at].as_micros());
            u32::try_from(rtt).unwrap_or(u32::MAX)
        };
        let lasted_ms = u32::try_from(self.until.saturating_since(self.from).as_millis()).unwrap_or(u32::MAX);
        let block = Block {
            lasted_ms,
            rtt_p50_us: part(50),
            rtt_p95_us: part(95),
            rtts: u16::try_from(self.rtts.len()).unwrap_or(u16::MAX),
            ..self.block
        };
        (block, self.had_data && lasted_ms > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Arm;

    #[test]
    fn a_block_is_what_came_between_its_first_tick_that_counts_and_its_last() {
        let plan = Plan { id: 1, seed: 1, pairs: 1, block_s: 10 };
        let mut meter = Meter::default();
        let mut ended = Vec::new();
        // Each tick acknowledges 1000 bytes in a segment; every fourth is a retransmission, and RTTs rise by 1 ms a tick.
        for tick in 0..=41_u64 {
            let flow = TcpState {
                acked: Bytes::new(1000 * tick),
                sent_segments: tick + tick / 4,
                retransmits: tick / 4,
                newest_rtt: Some(Span::from_millis(tick)),
                in_flight_segments: 1,
                ..TcpState::default()
            };
            let now = Time::ZERO + Span::from_millis(500 * tick);
            // A second connection comes late: its past does not count.
            let late = TcpState { received: Bytes::new(1_000_000 + 10 * tick), ..TcpState::default() };
            let flows = [(7, flow), (8, late)].into_iter().filter(|(id, _)| *id == 7 || tick >= 16);
            ended.extend(meter.on_tick(now, plan.at(now.saturating_since(Time::ZERO)), flows));
        }
        assert_eq!(ended.len(), 2);
        // Ticks 14 to 19 count: five steps; the late one has three.
        let expected = Block {
            block: 0,
            lasted_ms: 2500,
            sent_bytes: 5000,
            received_bytes: 30,
            rtt_p50_us: 17_000, // of 15 to 19 ms
            rtt_p95_us: 19_000,
            rtts: 5,
            segments: 6,
            retransmitted: 1,
            timeouts: 0,
        };
        assert_eq!(ended[0], (expected, true));
        assert_eq!(ended[0].0.sent(), Rate::from_bps(16_000));
        assert!(ended[0].0.is_whole(&plan) && !Block { lasted_ms: 1666, ..expected }.is_whole(&plan));
        assert_eq!(ended[1].0.block, 1);
        assert_ne!(plan.arm(0) == Arm::Free, plan.arm(1) == Arm::Free);
    }
}
