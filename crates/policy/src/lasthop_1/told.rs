//! What hosts with the policy `lasthop-1` tell each other, as a [`Word`] of their beacons.
//!
//! | offset | bytes | |
//! | --- | --- | --- |
//! | 0 | 4 | common rate: bytes of payload per second that each host may send; 0: it does not control |
//! | 4 | 4 | delivered: bytes of payload per second that it gets |
//! | 8 | 4 | bit 31: released, 30: harmed, 29: careful; below: the excess in microseconds, and 1; 0: not known |
//! | 12 | 4 | free: bytes of payload per second that it got while nothing was controlled; 0: not known |
//!
//! Big-endian. Rates end at 34 Gb/s, the excess at 268 s.

use lasthop_peers::{Report, Word};
use lasthop_units::{Rate, Span};

/// The kind of word that this is.
const KIND: u8 = 1;
const RELEASED: u32 = 1 << 31;
const HARMED: u32 = 1 << 30;
const CAREFUL: u32 = 1 << 29;
const EXCESS: u32 = (1 << 28) - 1;

/// What one host says of itself; the default is what is heard of one with another policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    /// What it takes for the rate that each host may send, payload; zero: it does not control.
    pub(super) common_rate: Rate,
    /// What it gets, payload.
    pub(super) delivered: Rate,
    /// RTT − lowest RTT, the mean over its busy connections; `None` if none is.
    pub(super) excess: Option<Span>,
    /// What it got while nothing was controlled, payload; zero: not known.
    pub(super) free: Rate,
    /// It does without control on purpose.
    pub(super) released: bool,
    /// It finds that control costs more than it gives.
    pub(super) harmed: bool,
    /// The medium has collapsed and may again, as far as it knows.
    pub(super) careful: bool,
}

impl Told {
    /// What a peer says.
    pub(super) fn by(report: &Report) -> Self {
        let Some(bytes) = report.word.as_ref().and_then(|word| word.of_kind(KIND)) else { return Self::default() };
        let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let rate = |at| Rate::from_bps(u64::from(number(at)) * 8);
        let state = number(8);
        Self {
            common_rate: rate(0),
            delivered: rate(4),
            excess: (state & EXCESS).checked_sub(1).map(|us| Span::from_micros(us.into())),
            free: rate(12),
            released: state & RELEASED != 0,
            harmed: state & HARMED != 0,
            careful: state & CAREFUL != 0,
        }
    }

    /// For a beacon; `None`: there is nothing to say.
    pub(super) fn word(&self) -> Option<Word> {
        let rate = |rate: Rate| u32::try_from(rate.as_bps() / 8).unwrap_or(u32::MAX);
        let excess = |span: Span| u32::try_from(span.as_micros()).map_or(EXCESS, |us| us.saturating_add(1).min(EXCESS));
        let flag = |set: bool, flag: u32| if set { flag } else { 0 };
        let state = self.excess.map_or(0, excess)
            | flag(self.released, RELEASED)
            | flag(self.harmed, HARMED)
            | flag(self.careful, CAREFUL);
        let numbers = [rate(self.common_rate), rate(self.delivered), state, rate(self.free)];
        let mut bytes = [0; Word::BYTES];
        for (four, number) in bytes.chunks_exact_mut(4).zip(numbers) {
            four.copy_from_slice(&number.to_be_bytes());
        }
        numbers.iter().any(|number| *number > 0).then(|| Word::new(KIND, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_layout_is_that_of_the_table() {
        let told = Told {
            common_rate: Rate::from_mbps(2.4),    // 300,000 B/s = 0x493e0
            delivered: Rate::from_bps(8),         // 1 B/s
            excess: Some(Span::from_micros(258)), // 0x103 with the 1
            free: Rate::from_mbps(0.8),           // 100,000 B/s = 0x186a0
            released: false,
            harmed: true,
            careful: true,
        };
        let bytes = [0, 4, 0x93, 0xe0, 0, 0, 0, 1, 0x60, 0, 1, 3, 0, 1, 0x86, 0xa0];
        assert_eq!(told.word(), Some(Word::new(KIND, bytes)));
        assert_eq!(Told::default().word(), None);
    }

    #[test]
    fn an_excess_ends_at_268_s_and_numbers_of_another_policy_say_nothing() {
        let long = Told { excess: Some(Span::from_secs(4000)), ..Told::default() };
        let heard = Told::by(&Report { word: long.word(), ..Report::default() });
        assert_eq!(heard.excess, Some(Span::from_micros(268_435_454))); // 2^28 − 2
        let other = Report { word: Some(Word::new(KIND + 1, [0xff; Word::BYTES])), ..Report::default() };
        assert_eq!(Told::by(&other), Told::default());
    }

    proptest! {
        #[test]
        fn what_is_heard_is_what_was_said(rates in any::<[u32; 3]>(), excess in proptest::option::of(0..EXCESS - 1), flags in any::<[bool; 3]>()) {
            let [common_rate, delivered, free] = rates.map(|rate| Rate::from_bps(u64::from(rate) * 8));
            let excess = excess.map(|us| Span::from_micros(us.into()));
            let [released, harmed, careful] = flags;
            let told = Told { common_rate, delivered, excess, free, released, harmed, careful };
            prop_assert_eq!(Told::by(&Report { word: told.word(), ..Report::default() }), told);
        }
    }
}
