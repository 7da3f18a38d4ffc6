//! Use of the air time.

use crate::statistics::AirTime;
use lasthop_units::{Span, Time};

/// A use of the air.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AirUse {
    Idle,
    Contention,
    Success,
    Broadcast,
    Collision,
    Error,
}

/// Books each moment on one use.
#[derive(Clone, Debug)]
pub(super) struct AirMeter {
    booked: AirTime,
    since: Time,
}

impl AirMeter {
    /// A meter that starts then.
    pub(super) fn new(now: Time) -> Self {
        Self { booked: AirTime::default(), since: now }
    }

    /// Books the time since the last call on this use.
    #[inline]
    pub(super) fn book(&mut self, now: Time, air_use: AirUse) {
        *air_use.of(&mut self.booked) += now - self.since;
        self.since = now;
    }

    /// So much that was booked as a success was an error, as far as it was booked.
    pub(super) fn turn_into_error(&mut self, time: Span) {
        let time = time.min(self.booked.success);
        self.booked.success -= time;
        self.booked.error += time;
    }

    /// The booked times, with the time since then on this use.
    pub(super) fn until(&self, now: Time, air_use: AirUse) -> AirTime {
        let mut air = self.booked;
        *air_use.of(&mut air) += now.saturating_since(self.since);
        air
    }
}

impl AirUse {
    fn of(self, air: &mut AirTime) -> &mut Span {
        match self {
            Self::Idle => &mut air.idle,
            Self::Contention => &mut air.contention,
            Self::Success => &mut air.success,
            Self::Broadcast => &mut air.broadcast,
            Self::Collision => &mut air.collision,
            Self::Error => &mut air.error,
        }
    }
}
