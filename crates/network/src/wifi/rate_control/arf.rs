//! Automatic rate fallback.
//!
//! 1. One rate up after 10 acknowledged transmissions in a row, or with the first success after the timer has
//!    expired; the timer counts 15 transmissions since the last change of rate.
//! 2. The first transmission after a step up is a probe: if it fails, down again at once.
//! 3. One rate down after 2 failed transmissions in a row.
//!
//! Kamerman and Monteban's timer is in time, of unspecified length. Here it counts transmissions, to be independent of
//! load: 15, as in ns-3.
//!
//! Leaves out: rates per retry (all transmissions of a frame share the two counters).
//!
//! References: A. Kamerman, L. Monteban: WaveLAN-II: A high-performance wireless LAN for the unlicensed band, Bell Labs
//! Technical Journal, 1997. M. Lacage, M. H. Manshaei, T. Turletti: IEEE 802.11 rate adaptation: a practical approach,
//! MSWiM 2004.

use super::{Controller, Ladder, Setup};
use crate::wifi::airtime::ModeId;
use lasthop_units::Time;

/// Acknowledged transmissions in a row before a step up.
pub(super) const SUCCESSES: u32 = 10;
/// Transmissions after which the timer expires.
pub(super) const TIMER: u32 = 15;
/// Failed transmissions in a row before a step down.
const FAILURES: u32 = 2;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Arf {
    ladder: Ladder,
    counters: Counters,
}

impl Arf {
    pub(super) fn new(setup: &Setup<'_>) -> Self {
        Self { ladder: setup.ladder(), counters: Counters::default() }
    }
}

impl Controller for Arf {
    fn mode(&self) -> ModeId {
        self.ladder.rate().into()
    }

    fn on_success(&mut self, _now: Time, _frames: u32, _acknowledged: u32) {
        self.counters.on_success(&mut self.ladder, SUCCESSES, TIMER);
    }

    fn on_failure(&mut self, _now: Time, _frames: u32, _given_up: bool) {
        self.counters.on_failure(&mut self.ladder);
    }
}

/// The meaning of a failed transmission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fall {
    /// Nothing yet.
    None,
    /// A probe failed: one rate down.
    Probe,
    /// Too many in a row: one rate down.
    Failures,
}

/// ARF's state between transmissions; AARF changes only the thresholds.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Counters {
    successes: u32,
    failures: u32,
    timer: u32,
    probing: bool,
}

impl Counters {
    pub(super) fn on_success(&mut self, ladder: &mut Ladder, successes: u32, timer: u32) {
        self.probing = false;
        self.failures = 0;
        self.successes += 1;
        self.timer += 1;
        if self.successes >= successes || self.timer >= timer {
            let probing = ladder.up();
            *self = Self { probing, ..Self::default() };
        }
    }

    pub(super) fn on_failure(&mut self, ladder: &mut Ladder) -> Fall {
        self.successes = 0;
        self.timer += 1;
        self.failures += 1;
        if self.probing {
            ladder.down();
            *self = Self::default();
            return Fall::Probe;
        }
        if self.failures >= FAILURES {
            ladder.down();
            *self = Self::default();
            return Fall::Failures;
        }
        Fall::None
    }
}

#[cfg(test)]
mod tests {
    use super::super::{PhyRate, RateSet, Standard};
    use super::*;

    fn arf(position: u8) -> Arf {
        let mut ladder = Ladder::new(Standard::G, RateSet::Ofdm, PhyRate::Mbps54);
        ladder.position = position;
        Arf { ladder, counters: Counters::default() }
    }

    #[test]
    fn two_failures_in_a_row_are_a_step_down() {
        let mut arf = arf(7);
        arf.on_failure(Time::ZERO, 1, false);
        arf.on_success(Time::ZERO, 1, 1);
        arf.on_failure(Time::ZERO, 1, false);
        assert_eq!(arf.ladder.rate(), PhyRate::Mbps54);
        arf.on_failure(Time::ZERO, 1, false);
        assert_eq!(arf.ladder.rate(), PhyRate::Mbps48);
    }

    #[test]
    fn ten_successes_in_a_row_are_a_step_up() {
        let mut arf = arf(0);
        (0..9).for_each(|_| arf.on_success(Time::ZERO, 1, 1));
        assert_eq!(arf.ladder.rate(), PhyRate::Mbps6);
        arf.on_success(Time::ZERO, 1, 1);
        assert_eq!(arf.ladder.rate(), PhyRate::Mbps9);
    }

    #[test]
    fn a_failed_probe_falls_back_at_once() {
        let mut arf = arf(0);
        (0..10).for_each(|_| arf.on_success(Time::ZERO, 1, 1));
        arf.on_failure(Time::ZERO, 1, false);
        assert_eq!(arf.ladder.rate(), PhyRate::Mbps6);
        // A successful probe ends the probation: then it takes two failures.
        (0..11).for_each(|_| arf.on_success(Time::ZERO, 1, 1));
        arf.on_failure(Time::ZERO, 1, false);
        assert_eq!(arf.ladder.rate(), PhyRate::Mbps9);
    }

    #[test]
    fn the_timer_lets_it_try_a_higher_rate_despite_single_failures() {
        // Transmissions 1-15 with failures at 7 and 14: never 10 successes in a row; the 15th, a success,
        // is the timer's.
        let mut arf = arf(0);
        for transmission in 1..=14 {
            if transmission % 7 == 0 { arf.on_failure(Time::ZERO, 1, false) } else { arf.on_success(Time::ZERO, 1, 1) }
        }
        assert_eq!(arf.ladder.rate(), PhyRate::Mbps6);
        arf.on_success(Time::ZERO, 1, 1);
        assert_eq!(arf.ladder.rate(), PhyRate::Mbps9);
    }

    #[test]
    fn the_ends_of_the_ladder_hold() {
        let mut top = arf(7);
        (0..50).for_each(|_| top.on_success(Time::ZERO, 1, 1));
        top.on_failure(Time::ZERO, 1, false);
        assert_eq!(top.ladder.rate(), PhyRate::Mbps54, "at the top nothing is a probe");
        let mut bottom = arf(0);
        (0..50).for_each(|_| bottom.on_failure(Time::ZERO, 1, false));
        assert_eq!(bottom.ladder.rate(), PhyRate::Mbps6);
    }
}
