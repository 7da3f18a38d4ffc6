//! Always the configured rate.

use crate::wifi::constants::PhyRate;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Fixed {
    rate: PhyRate,
}

impl Fixed {
    pub(super) fn new(rate: PhyRate) -> Self {
        Self { rate }
    }

    pub(super) fn rate(&self) -> PhyRate {
        self.rate
    }
}
