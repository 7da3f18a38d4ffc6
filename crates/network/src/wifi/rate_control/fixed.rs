//! Always the configured rate.

use super::{Controller, Setup};
use crate::wifi::airtime::ModeId;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Fixed(ModeId);

impl Fixed {
    pub(super) fn new(setup: &Setup<'_>) -> Self {
        Self(setup.mode)
    }
}

impl Controller for Fixed {
    fn mode(&self) -> ModeId {
        self.0
    }

    fn learns(&self) -> bool {
        false
    }
}
