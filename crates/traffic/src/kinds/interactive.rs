//! Small messages over one connection.

use super::{Desk, DocumentError, Kind, Part, TrafficKeys};
use lasthop_keys::{bytes, keys};
use lasthop_units::{Bytes, Span, Time};

keys! {
    /// Its own keys.
    pub(crate) struct InteractiveKeys {
        /// Bytes that the application writes at once.
        message_bytes: Bytes = bytes(1, 1_000_000), 100;
    }
}

/// Small messages, like typing, over one connection. The first comes one gap after the connection opens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interactive {
    /// Size of each, at least 1 byte.
    pub message: Bytes,
    /// Mean gap between two starts; above 0. The application does not wait for answers.
    pub gap: Span,
}

impl Interactive {
    pub(super) const KEYS: &[&str] = &["gap_ms"];

    pub(super) fn read(keys: &TrafficKeys, _: &Part<'_>) -> Result<Self, DocumentError> {
        Ok(Self { message: keys.own.interactive.message_bytes, gap: keys.gap_ms })
    }
}

impl Kind for Interactive {
    fn begin(&mut self, _due: Time, now: Time, desk: &mut Desk) {
        desk.open();
        let gap = desk.exponential(self.gap);
        desk.wake_at(now + gap);
    }

    fn wake(&mut self, _due: Time, now: Time, desk: &mut Desk) {
        desk.write(now, self.message);
        let gap = desk.exponential(self.gap);
        desk.wake_at(now + gap);
    }

    fn gap(&self) -> Option<Span> {
        Some(self.gap)
    }
}
