//! Always the configured rate.

use crate::wifi::airtime::ModeId;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Fixed {
    mode: ModeId,
}

impl Fixed {
    pub(super) const fn new(mode: ModeId) -> Self {
        Self { mode }
    }

    pub(super) const fn mode(self) -> ModeId {
        self.mode
    }
}
