//! Datagrams that the other end answers.

use super::{Desk, DocumentError, Kind, Part, TrafficKeys, measured_packet};
use lasthop_units::{Bytes, Span, Time};

/// UDP: packets at a constant distance, each answered by the other end with one of the same size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ping {
    /// Size of the IP packet, including headers, at least [`LEAST_PACKET`](super::LEAST_PACKET).
    pub packet: Bytes,
    /// From one to the next; above 0.
    pub gap: Span,
}

impl Ping {
    pub(super) const KEYS: &[&str] = &["gap_ms", "packet_bytes"];

    pub(super) fn read(keys: &TrafficKeys, part: &Part<'_>) -> Result<Self, DocumentError> {
        Ok(Self { packet: measured_packet(keys, part)?, gap: keys.gap_ms })
    }
}

impl Kind for Ping {
    fn begin(&mut self, due: Time, _now: Time, desk: &mut Desk) {
        desk.send(self.packet);
        // From the time for which this one was due: who is late must not become slow.
        desk.wake_at(due + self.gap);
    }

    fn packet(&self) -> Option<Bytes> {
        Some(self.packet)
    }

    fn gap(&self) -> Option<Span> {
        Some(self.gap)
    }
}
