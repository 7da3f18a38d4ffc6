//! Adaptive automatic rate fallback: ARF that makes failing steps up rarer.
//!
//! 1. As ARF, with thresholds of its own: at first 10 successes in a row or 15 transmissions.
//! 2. A failed probe doubles the required successes, up to 50.
//! 3. A step down after 2 failures in a row sets them back to 10.
//! 4. The timer keeps its initial ratio, 15 to 10.
//!
//! Lacage et al. give 10, the doubling, 50 and the reset. The rule for the timer is ours: it must not undercut the
//! threshold.
//!
//! Reference: M. Lacage, M. H. Manshaei, T. Turletti: IEEE 802.11 rate adaptation: a practical approach, MSWiM 2004.

use super::arf::{Counters, Fall, SUCCESSES, TIMER};
use super::{Controller, Ladder, Setup};
use crate::wifi::airtime::ModeId;
use lasthop_units::Time;

/// The most successes required.
const MAX_SUCCESSES: u32 = 50;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Aarf {
    ladder: Ladder,
    counters: Counters,
    successes: u32,
}

impl Aarf {
    pub(super) fn new(setup: &Setup<'_>) -> Self {
        Self { ladder: setup.ladder(), counters: Counters::default(), successes: SUCCESSES }
    }
}

impl Controller for Aarf {
    fn mode(&self) -> ModeId {
        self.ladder.rate().into()
    }

    fn on_success(&mut self, _now: Time, _frames: u32, _acknowledged: u32) {
        let timer = self.successes * TIMER / SUCCESSES;
        self.counters.on_success(&mut self.ladder, self.successes, timer);
    }

    fn on_failure(&mut self, _now: Time, _frames: u32, _given_up: bool) {
        match self.counters.on_failure(&mut self.ladder) {
            Fall::None => {}
            Fall::Probe => self.successes = (2 * self.successes).min(MAX_SUCCESSES),
            Fall::Failures => self.successes = SUCCESSES,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{PhyRate, RateSet, Standard};
    use super::*;

    /// Successes until the rate changes.
    fn successes_to_step_up(aarf: &mut Aarf) -> u32 {
        let before = aarf.ladder.rate();
        (1..)
            .find(|_| {
                aarf.on_success(Time::ZERO, 1, 1);
                aarf.ladder.rate() != before
            })
            .expect("there is a higher rate")
    }

    #[test]
    fn each_failed_probe_doubles_the_successes_asked_for_up_to_50() {
        let mut ladder = Ladder::new(Standard::G, RateSet::Ofdm, PhyRate::Mbps54);
        ladder.position = 2;
        let mut aarf = Aarf { ladder, counters: Counters::default(), successes: SUCCESSES };
        for expected in [10, 20, 40, 50, 50] {
            assert_eq!(successes_to_step_up(&mut aarf), expected);
            aarf.on_failure(Time::ZERO, 1, false);
            assert_eq!(aarf.ladder.rate(), PhyRate::Mbps12);
        }
        aarf.on_failure(Time::ZERO, 1, false);
        aarf.on_failure(Time::ZERO, 1, false);
        assert_eq!(aarf.ladder.rate(), PhyRate::Mbps9);
        assert_eq!(successes_to_step_up(&mut aarf), 10, "a step down sets it back");
    }
}
