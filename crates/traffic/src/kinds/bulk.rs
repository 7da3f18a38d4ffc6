//! Bulk data over one connection.

use super::{Desk, DocumentError, Kind, Part, TrafficKeys};
use lasthop_units::{Bytes, Time};

/// Bulk data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bulk {
    /// Closes after this much; `None` = unlimited.
    pub transfer: Option<Bytes>,
}

impl Bulk {
    pub(super) const KEYS: &[&str] = &["transfer_kib"];

    pub(super) fn read(keys: &TrafficKeys, _: &Part<'_>) -> Result<Self, DocumentError> {
        Ok(Self { transfer: keys.transfer_kib })
    }
}

impl Kind for Bulk {
    fn begin(&mut self, _due: Time, now: Time, desk: &mut Desk) {
        match self.transfer {
            Some(size) => desk.transfer(now, size),
            None => {
                desk.open();
                desk.write_on();
            }
        }
    }

    fn stop(&mut self, desk: &mut Desk) {
        if self.is_endless() {
            desk.pause();
        }
        desk.close();
    }

    fn is_greedy(&self) -> bool {
        true
    }

    fn is_endless(&self) -> bool {
        self.transfer.is_none()
    }
}
