//! What hosts with the policy `lasthop` tell each other, as a [`Word`] of their beacons.
//!
//! | offset | bytes | |
//! | --- | --- | --- |
//! | 0 | 3 | common rate, in 128 bytes of payload per second; 0: it bounds nothing |
//! | 3 | 3 | delivered: what it sends and receives, in the same unit |
//! | 6 | 3 | free: what all hosts got without bounds, in the same unit; 0: not known |
//! | 9 | 2 | lowest RTT of its bulk connections, their mean, in 0.1 ms |
//! | 11 | 2 | queue: RTT − lowest RTT, their mean, in 0.1 ms, and 1; 0: not known |
//! | 13 | 2 | proposal: the queue to aim at, in 0.1 ms; 0: none; 65535: no bounds |
//! | 15 | 1 | bit 0: it has bulk connections |
//!
//! Big-endian: [`Wire`]. Rates end at 17 Gb/s, times at 6.5 s.

use lasthop_peers::{Report, Word};
use lasthop_units::{Rate, Span};
use zerocopy::big_endian::U16;
use zerocopy::{FromBytes, IntoBytes};

/// The kind of word that this is.
const KIND: u8 = 2;
/// The unit of rates, in bit/s.
const RATE_UNIT: u64 = 128 * 8;
/// The unit of times, in µs.
const TIME_UNIT: u64 = 100;
const FREE: u16 = u16::MAX;

/// The bytes of the word.
#[derive(FromBytes, IntoBytes)]
#[repr(C)]
struct Wire {
    rate: Rate24,
    delivered: Rate24,
    free: Rate24,
    base: U16,
    queue: U16,
    proposal: U16,
    bulk: u8,
}

/// Three bytes, big-endian, in [`RATE_UNIT`].
type Rate24 = [u8; 3];

/// What one host says of itself; the default is what is heard of one with another policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    /// What each host may send and receive, payload; zero: it bounds nothing.
    pub(super) rate: Rate,
    /// What it sends and receives, payload.
    pub(super) delivered: Rate,
    /// What all hosts together got without bounds, payload; zero: not known.
    pub(super) free: Rate,
    /// The mean lowest RTT of its bulk connections.
    pub(super) base: Span,
    /// RTT − lowest RTT, the mean over its bulk connections; `None`: not known.
    pub(super) queue: Option<Span>,
    /// What it proposes; `None`: it follows the others.
    pub(super) proposal: Option<Proposal>,
    /// It has bulk connections.
    pub(super) bulk: bool,
}

/// What all hosts are to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Proposal {
    /// Bound windows so that the queue is this long.
    Aim(Span),
    /// Bound nothing.
    Free,
}

impl Told {
    /// What a peer says.
    pub(super) fn by(report: &Report) -> Self {
        let Some(bytes) = report.word.as_ref().and_then(|word| word.of_kind(KIND)) else { return Self::default() };
        let wire: Wire = zerocopy::transmute!(*bytes);
        let rate = |[high, middle, low]: Rate24| {
            Rate::from_bps(u64::from(u32::from_be_bytes([0, high, middle, low])) * RATE_UNIT)
        };
        let time = |units: u16| Span::from_micros(u64::from(units) * TIME_UNIT);
        Self {
            rate: rate(wire.rate),
            delivered: rate(wire.delivered),
            free: rate(wire.free),
            base: time(wire.base.get()),
            queue: wire.queue.get().checked_sub(1).map(time),
            proposal: match wire.proposal.get() {
                0 => None,
                FREE => Some(Proposal::Free),
                aim => Some(Proposal::Aim(time(aim))),
            },
            bulk: wire.bulk & 1 != 0,
        }
    }

    /// For a beacon; `None`: there is nothing to say. Rounds up, so that little does not become nothing.
    pub(super) fn word(&self) -> Option<Word> {
        let rate = |rate: Rate| -> Rate24 {
            let [_, high, middle, low] = (rate.as_bps().div_ceil(RATE_UNIT).min(0xff_ffff) as u32).to_be_bytes();
            [high, middle, low]
        };
        let time = |span: Span| span.as_micros().div_ceil(TIME_UNIT).min(u64::from(FREE) - 2) as u16;
        let proposal = match self.proposal {
            None => 0,
            Some(Proposal::Aim(aim)) => time(aim).max(1),
            Some(Proposal::Free) => FREE,
        };
        let bytes: [u8; Word::BYTES] = zerocopy::transmute!(Wire {
            rate: rate(self.rate),
            delivered: rate(self.delivered),
            free: rate(self.free),
            base: time(self.base).into(),
            queue: self.queue.map_or(0, |queue| time(queue) + 1).into(),
            proposal: proposal.into(),
            bulk: self.bulk.into(),
        });
        bytes.iter().any(|byte| *byte > 0).then(|| Word::new(KIND, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_layout_is_that_of_the_table() {
        let told = Told {
            rate: Rate::from_bps(3 * RATE_UNIT),
            delivered: Rate::from_bps(1), // rounded up to one unit
            free: Rate::from_bps(0x01_0203 * RATE_UNIT),
            base: Span::from_micros(25_700),           // 257 units = 0x101
            queue: Some(Span::from_micros(100)),       // one unit, and 1
            proposal: Some(Proposal::Aim(Span::ZERO)), // the least aim is one unit
            bulk: true,
        };
        let bytes = [0, 0, 3, 0, 0, 1, 1, 2, 3, 1, 1, 0, 2, 0, 1, 1];
        assert_eq!(told.word(), Some(Word::new(KIND, bytes)));
        assert_eq!(Told::default().word(), None);
    }

    #[test]
    fn numbers_end_at_their_field_and_those_of_another_policy_say_nothing() {
        let most = Told {
            rate: Rate::from_bps(u64::MAX),
            base: Span::from_secs(9000),
            queue: Some(Span::from_secs(9000)),
            proposal: Some(Proposal::Aim(Span::from_secs(9000))),
            ..Told::default()
        };
        let heard = Told::by(&Report { word: most.word(), ..Report::default() });
        assert_eq!(heard.rate, Rate::from_bps(0xff_ffff * RATE_UNIT));
        assert_eq!((heard.base, heard.queue), (Span::from_micros(6_553_300), Some(Span::from_micros(6_553_300))));
        assert_eq!(heard.proposal, Some(Proposal::Aim(Span::from_micros(6_553_300))));
        let other = Report { word: Some(Word::new(KIND + 1, [0xff; Word::BYTES])), ..Report::default() };
        assert_eq!(Told::by(&other), Told::default());
    }

    #[test]
    fn no_bounds_is_more_than_any_aim() {
        assert!(Proposal::Free > Proposal::Aim(Span::MAX));
    }

    proptest! {
        #[test]
        fn what_is_heard_is_what_was_said(
            rates in prop::array::uniform3(0..0x100_0000_u64),
            times in prop::array::uniform3(0..65_533_u64),
            bulk in any::<bool>(), knows in any::<bool>(), says in 0..3_u8,
        ) {
            let [rate, delivered, free] = rates.map(|units| Rate::from_bps(units * RATE_UNIT));
            let [base, queue, aim] = times.map(|units| Span::from_micros(units * TIME_UNIT));
            let proposal = match says { 0 => None, 1 => Some(Proposal::Free), _ => Some(Proposal::Aim(aim.max(Span::from_micros(TIME_UNIT)))) };
            let told = Told { rate, delivered, free, base, queue: knows.then_some(queue), proposal, bulk };
            prop_assert_eq!(Told::by(&Report { word: told.word(), ..Report::default() }), told);
        }
    }
}
