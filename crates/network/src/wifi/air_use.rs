//! What the time on the air is used for.

use crate::statistics::AirTime;
use lasthop_units::{Span, Time};

/// What the air is used for.
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
    /// One that begins then.
    pub(super) fn new(now: Time) -> Self {
        Self { booked: AirTime::default(), since: now }
    }

    /// Books the time since the last call on this.
    #[inline]
    pub(super) fn book(&mut self, now: Time, air_use: AirUse) {
        *air_use.of(&mut self.booked) += now - self.since;
        self.since = now;
    }

    /// What has been booked, and the time since then on this.
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
