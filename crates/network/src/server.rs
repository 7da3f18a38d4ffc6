//! The server of a wired link: it sends one packet at a time, at a rate that may change.
//!
//! A packet is sent when the integral of the rate has reached its size:
//!
//! ```text
//! ∫ rate dt from start to sent = 8 size
//! ```
//!
//! Work is in billionths of a bit, as a rate of 1 bit/s serves one in a nanosecond. So what a change leaves is exact, and
//! only the end of a packet is rounded, up to the nanosecond. A change to the same rate moves nothing.

use lasthop_units::{Bytes, Rate, Span, Time};

/// A server, free or busy with one packet.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    rate: Rate,
    in_service: Option<InService>,
}

#[derive(Clone, Copy, Debug)]
struct InService {
    /// Billionths of a bit that were left to send at `since`.
    left: u64,
    since: Time,
    /// The end of its transmission at the present rate; [`Time::MAX`] at rate zero.
    done_at: Time,
}

impl Server {
    /// A free server of this rate.
    pub(crate) const fn new(rate: Rate) -> Self {
        Self { rate, in_service: None }
    }

    pub(crate) const fn is_free(&self) -> bool {
        self.in_service.is_none()
    }

    /// Begins to send a packet.
    pub(crate) fn start(&mut self, now: Time, size: Bytes) {
        debug_assert!(self.is_free(), "a server sends one packet at a time");
        self.go_on(now, size.bits() * 1_000_000_000);
    }

    /// When the packet in service has been sent, if there is one; [`Time::MAX`] while it stands still.
    pub(crate) fn done_at(&self) -> Option<Time> {
        self.in_service.map(|packet| packet.done_at)
    }

    /// The packet has been sent.
    pub(crate) fn finish(&mut self) {
        self.in_service = None;
    }

    /// Sends at this rate from now on.
    pub(crate) fn change(&mut self, now: Time, rate: Rate) {
        let before = std::mem::replace(&mut self.rate, rate);
        if let Some(InService { left, since, .. }) = self.in_service {
            let served = u128::from(before.as_bps()) * u128::from((now - since).as_nanos());
            self.go_on(now, left.saturating_sub(u64::try_from(served).unwrap_or(u64::MAX)));
        }
    }

    fn go_on(&mut self, now: Time, left: u64) {
        let done_at = match (left, self.rate.as_bps()) {
            (0, _) => now,
            (_, 0) => Time::MAX,
            (left, rate) => now + Span::from_nanos(left.div_ceil(rate)),
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
        // 1000 bytes: 1 ms at 8 Mb/s. A quarter at 8, a second at nothing, a quarter at 2 Mb/s (1 ms), the rest at 16.
        let mut server = Server::new(Rate::from_mbps(8.0));
        server.start(us(0), Bytes::new(1000));
        assert_eq!(server.done_at(), Some(us(1000)));
        server.change(us(250), Rate::ZERO);
        assert_eq!(server.done_at(), Some(Time::MAX));
        server.change(us(1_000_250), Rate::from_mbps(2.0));
        assert_eq!(server.done_at(), Some(us(1_003_250)));
        server.change(us(1_001_250), Rate::from_mbps(16.0));
        assert_eq!(server.done_at(), Some(us(1_001_500)));
        // At its end there is nothing left that could be slower.
        server.change(us(1_001_500), Rate::ZERO);
        assert_eq!(server.done_at(), Some(us(1_001_500)));
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
                server.change(Time::from_nanos(now), Rate::from_bps(rate));
            }
            let rest = || now + u64::try_from((size - served).div_ceil(u128::from(rate))).unwrap();
            prop_assert_eq!(server.done_at(), Some(Time::from_nanos(expected.unwrap_or_else(rest))));
        }
    }
}
