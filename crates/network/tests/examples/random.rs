//! A mode drawn anew for each transmission.

use super::{Controller, Decision, Setup, modes};
use crate::wifi::airtime::ModeId;
use lasthop_units::Time;
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

#[derive(Clone, Debug)]
pub(crate) struct Random {
    modes: Vec<ModeId>,
    stream: ChaCha8Rng,
}

impl Random {
    pub(super) fn new(setup: &Setup<'_>) -> Self {
        Self { modes: modes(setup.own, setup.times), stream: (setup.stream)("random") }
    }
}

impl Controller for Random {
    fn mode(&self) -> ModeId {
        self.modes[0]
    }

    fn next(&mut self, _now: Time) -> Decision {
        self.modes[self.stream.random_range(0..self.modes.len())].into()
    }

    fn learns(&self) -> bool {
        false
    }
}
