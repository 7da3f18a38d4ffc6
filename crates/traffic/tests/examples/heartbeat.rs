//! A datagram every minute, as a sensor sends to say that it lives.

use super::{Desk, DocumentError, Kind, Part, TrafficKeys, measured_packet};
use lasthop_units::{Bytes, Span, Time};

/// From one to the next.
const GAP: Span = Span::from_secs(60);

/// A datagram every minute.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Heartbeat {
    packet: Bytes,
}

impl Heartbeat {
    pub(super) const KEYS: &[&str] = &["packet_bytes"];

    pub(super) fn read(keys: &TrafficKeys, part: &Part<'_>) -> Result<Self, DocumentError> {
        Ok(Self { packet: measured_packet(keys, part)? })
    }
}

impl Kind for Heartbeat {
    fn begin(&mut self, due: Time, _now: Time, desk: &mut Desk) {
        desk.send(self.packet);
        desk.wake_at(due + GAP);
    }

    fn packet(&self) -> Option<Bytes> {
        Some(self.packet)
    }

    fn gap(&self) -> Option<Span> {
        Some(GAP)
    }
}
