//! The server of a wired link: it sends one packet at a time, and stands still while it is held. It has a rate, which may
//! change, or follows the [`opportunities`](crate::opportunities) of a trace.
//!
//! At a rate, a packet is sent when the integral of the rate has reached its size:
//!
//! ```text
//! ∫ rate dt from start to sent = 8 size
//! ```
//!
//! Work is in billionths of a bit, as a rate of 1 bit/s serves one in a nanosecond. So what a change leaves is exact, and
//! only the end of a packet is rounded, up to the nanosecond. A change to the same rate moves nothing.

use crate::opportunities::{Opportunities, Replay};
use lasthop_units::{Bytes, Rate, Span, Time};
use std::sync::Arc;

/// A server, free or busy with one packet.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    pace: Pace,
    is_held: bool,
    in_service: Option<InService>,
}

#[derive(Clone, Debug)]
enum Pace {
    Rate(Rate),
    Opportunities(Box<Replay>),
}

/// Another pace, or a hold. `None`: as before.
#[derive(Clone, Default, Debug)]
pub(crate) struct NewPace {
    pub(crate) rate: Option<Rate>,
    /// Instead of a rate.
    pub(crate) opportunities: Option<Arc<Opportunities>>,
    pub(crate) held: Option<bool>,
}

#[derive(Clone, Copy, Debug)]
struct InService {
    left: Work,
    since: Time,
    /// The end of its transmission at the present pace; [`Time::MAX`] while it stands still.
    done_at: Time,
}

/// What was left to send of a packet at `since`.
#[derive(Clone, Copy, Debug)]
enum Work {
    /// Billionths of a bit, at a rate.
    Bits(u64),
    /// Bytes of opportunities.
    Bytes(u64),
}

const BILLIONTHS_OF_A_BYTE: u64 = 8_000_000_000;

impl Work {
    const fn of(size: Bytes) -> Self {
        Self::Bits(size.get() * BILLIONTHS_OF_A_BYTE)
    }

    fn bits(self) -> u64 {
        match self {
            Self::Bits(bits) => bits,
            Self::Bytes(bytes) => bytes.saturating_sub(Replay::bytes_of(Bytes::ZERO)) * BILLIONTHS_OF_A_BYTE,
        }
    }

    fn bytes(self) -> u64 {
        match self {
            Self::Bits(0) => 0,
            Self::Bits(bits) => Replay::bytes_of(Bytes::new(bits.div_ceil(BILLIONTHS_OF_A_BYTE))),
            Self::Bytes(bytes) => bytes,
        }
    }
}

impl Server {
    /// A free server of this rate.
    pub(crate) const fn new(rate: Rate) -> Self {
        Self { pace: Pace::Rate(rate), is_held: false, in_service: None }
    }

    /// Whether it may begin to send a packet.
    pub(crate) const fn is_free(&self) -> bool {
        self.in_service.is_none() && !self.is_held
    }

    /// Whether it is sending a packet, or has begun to and stands still.
    pub(crate) const fn has_packet(&self) -> bool {
        self.in_service.is_some()
    }

    /// Begins to send a packet.
    pub(crate) fn start(&mut self, now: Time, size: Bytes) {
        debug_assert!(self.is_free(), "a server sends one packet at a time");
        self.go_on(now, Work::of(size));
    }

    /// When the packet in service has been sent, if there is one; [`Time::MAX`] while it stands still.
    pub(crate) fn done_at(&self) -> Option<Time> {
        self.in_service.map(|packet| packet.done_at)
    }

    /// The packet has been sent.
    pub(crate) fn finish(&mut self) {
        self.in_service = None;
    }

    /// Sends at this pace from now on, or is held.
    pub(crate) fn change(&mut self, now: Time, NewPace { rate, opportunities, held }: NewPace) {
        let left = self.in_service.map(|packet| self.left(now, packet));
        self.is_held = held.unwrap_or(self.is_held);
        if let Some(trace) = opportunities {
            self.pace = Pace::Opportunities(Box::new(Replay::new(trace, now)));
        } else if let Some(rate) = rate {
            self.pace = Pace::Rate(rate);
        }
        if let Some(left) = left {
            self.go_on(now, left);
        }
    }

    /// What is left of the packet in service.
    fn left(&mut self, now: Time, InService { left, since, .. }: InService) -> Work {
        match &mut self.pace {
            _ if self.is_held => left,
            Pace::Rate(rate) => {
                let served = u128::from(rate.as_bps()) * u128::from((now - since).as_nanos());
                Work::Bits(left.bits().saturating_sub(u64::try_from(served).unwrap_or(u64::MAX)))
            }
            Pace::Opportunities(replay) => Work::Bytes(replay.interrupt(now)),
        }
    }

    fn go_on(&mut self, now: Time, left: Work) {
        let done_at = match &mut self.pace {
            _ if left.bits() == 0 && left.bytes() == 0 => now,
            _ if self.is_held => Time::MAX,
            Pace::Rate(rate) if left.bits() > 0 && rate.as_bps() == 0 => Time::MAX,
            Pace::Rate(rate) => now + Span::from_nanos(left.bits().div_ceil(rate.as_bps().max(1))),
            Pace::Opportunities(replay) => replay.serve(now, left.bytes()),
        };
        self.in_service = Some(InService { left, since: now, done_at });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn us(micros: u64) -> Time {
        Time::ZERO + Span::from_micros(micros)
    }

    #[test]
    fn a_packet_is_sent_when_the_integral_of_the_rate_has_reached_its_size() {
        // 1000 bytes: 1 ms at 8 Mb/s. A quarter at 8, a second held, a quarter at 2 Mb/s (1 ms), the rest at 16.
        let rate = |mbps| NewPace { rate: Some(Rate::from_mbps(mbps)), ..NewPace::default() };
        let held = |held| NewPace { held: Some(held), ..NewPace::default() };
        let mut server = Server::new(Rate::from_mbps(8.0));
        server.start(us(0), Bytes::new(1000));
        assert_eq!(server.done_at(), Some(us(1000)));
        server.change(us(250), held(true));
        assert_eq!(server.done_at(), Some(Time::MAX));
        server.change(us(500_000), rate(2.0));
        assert_eq!(server.done_at(), Some(Time::MAX));
        server.change(us(1_000_250), held(false));
        assert_eq!(server.done_at(), Some(us(1_003_250)));
        server.change(us(1_001_250), rate(16.0));
        assert_eq!(server.done_at(), Some(us(1_001_500)));
        // At its end there is nothing left that could be held.
        server.change(us(1_001_500), held(true));
        assert_eq!((server.done_at(), server.is_free()), (Some(us(1_001_500)), false));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Against the integral in steps of a nanosecond.
        #[test]
        fn changes_within_a_packet_are_integrated(
            bytes in 1..1500_u64,
            rates in prop::collection::vec((0..40_000_u64, 0..2_000_000_000_u64), 1..12),
        ) {
            let mut server = Server::new(Rate::from_bps(3_000_000_000));
            server.start(Time::ZERO, Bytes::new(bytes));
            let (mut now, mut rate, mut served) = (0_u64, 3_000_000_000_u64, 0_u128);
            let size = u128::from(bytes) * 8_000_000_000;
            let mut expected = None;
            for (gap, next) in rates.into_iter().chain([(0, 1_000_000_000)]) {
                for _ in 0..gap {
                    if served < size {
                        served += u128::from(rate);
                        now += 1;
                    }
                }
                if served >= size {
                    expected = Some(now);
                    break;
                }
                rate = next;
                server.change(Time::from_nanos(now), NewPace { rate: Some(Rate::from_bps(rate)), ..NewPace::default() });
            }
            let rest = || now + u64::try_from((size - served).div_ceil(u128::from(rate))).unwrap();
            prop_assert_eq!(server.done_at(), Some(Time::from_nanos(expected.unwrap_or_else(rest))));
        }
    }
}
