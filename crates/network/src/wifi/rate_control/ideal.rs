//! The modulation with the greatest throughput at the station's present SNR ([`best_mode`](crate::wifi::alone)).

use super::{Controller, Setup};
use crate::wifi::airtime::ModeId;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Ideal(ModeId);

impl Ideal {
    pub(super) fn new(setup: &Setup<'_>) -> Self {
        Self(setup.mode)
    }
}

impl Controller for Ideal {
    fn mode(&self) -> ModeId {
        self.0
    }

    fn learns(&self) -> bool {
        false
    }
}
