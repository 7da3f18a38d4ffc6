//! Datagrams that the other end answers.

use super::{Constant, Desk, DocumentError, Kind, Part, TrafficKeys, measured_packet};
use lasthop_units::{Bytes, Span, Time};

/// UDP: packets that leave as those of a [constant rate](Constant) do, each answered by the other end with one of the same size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ping(pub Constant);

impl Ping {
    pub(super) const KEYS: &[&str] = &["gap_ms", "jitter_us", "packet_bytes"];

    pub(super) fn read(keys: &TrafficKeys, part: &Part<'_>) -> Result<Self, DocumentError> {
        Ok(Self(Constant::new(measured_packet(keys, part)?, keys.gap_ms, keys.jitter_us)))
    }
}

impl Kind for Ping {
    fn begin(&mut self, due: Time, now: Time, desk: &mut Desk) {
        self.0.begin(due, now, desk);
    }

    fn wake(&mut self, due: Time, now: Time, desk: &mut Desk) {
        self.0.wake(due, now, desk);
    }

    fn packet(&self) -> Option<Bytes> {
        self.0.packet()
    }

    fn gap(&self) -> Option<Span> {
        self.0.gap()
    }
}
