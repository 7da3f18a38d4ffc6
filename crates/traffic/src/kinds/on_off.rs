//! Bulk data and silence in turn, over one connection.

use super::{Desk, DocumentError, Kind, Part, TrafficKeys};
use lasthop_keys::{keys, seconds};
use lasthop_units::{Span, Time};

keys! {
    /// Its own keys.
    pub(crate) struct OnOffKeys {
        /// Mean length of a while with something to send, in seconds; exponential.
        on_s: Span = seconds(1e-6, 86_400.0), 1.0;
    }
}

/// Bulk data and silence in turn, over one connection, starting with data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OnOff {
    on: Span,
    off: Span,
    is_on: bool,
}

impl OnOff {
    pub(super) const KEYS: &[&str] = &["off_s"];

    pub(super) fn read(keys: &TrafficKeys, _: &Part<'_>) -> Result<Self, DocumentError> {
        Ok(Self::new(keys.own.on_off.on_s, keys.off_s))
    }

    /// Periods with data of this mean length, above 0, and silences of that.
    pub fn new(on: Span, off: Span) -> Self {
        Self { on, off, is_on: false }
    }
}

impl Kind for OnOff {
    fn begin(&mut self, due: Time, now: Time, desk: &mut Desk) {
        desk.open();
        self.wake(due, now, desk);
    }

    fn wake(&mut self, _due: Time, now: Time, desk: &mut Desk) {
        self.is_on = !self.is_on;
        let length = desk.exponential(if self.is_on { self.on } else { self.off });
        desk.wake_at(now + length);
        if self.is_on { desk.write_on() } else { desk.pause() }
    }

    fn stop(&mut self, desk: &mut Desk) {
        desk.pause();
        desk.close();
    }

    fn is_greedy(&self) -> bool {
        true
    }
}
