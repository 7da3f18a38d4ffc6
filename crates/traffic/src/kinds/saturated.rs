//! Datagrams that keep the sender's queue full.

use super::{Desk, DocumentError, Kind, Part, TrafficKeys};
use lasthop_units::{Bytes, Time};

/// UDP without any control: keeps the sender's transmit queue full.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Saturated {
    /// Size of the IP packet, including headers, at least 28 bytes.
    pub packet: Bytes,
}

impl Saturated {
    pub(super) const KEYS: &[&str] = &["packet_bytes"];

    pub(super) fn read(keys: &TrafficKeys, _: &Part<'_>) -> Result<Self, DocumentError> {
        Ok(Self { packet: keys.packet_bytes })
    }
}

impl Kind for Saturated {
    fn begin(&mut self, _due: Time, _now: Time, desk: &mut Desk) {
        desk.saturate(self.packet);
    }

    fn stop(&mut self, desk: &mut Desk) {
        desk.cease();
    }

    fn is_endless(&self) -> bool {
        true
    }

    fn packet(&self) -> Option<Bytes> {
        Some(self.packet)
    }
}
