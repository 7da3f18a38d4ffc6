//! The single clock of a real-time run, and its schedule.

use lasthop_units::{Span, Time};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};

/// CLOCK_MONOTONIC, relative to the start of the run. The kernel's leases and the agents use the same clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start_ns: u64,
}

/// The times of a run, since its start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    pub(crate) warmup: Span,
    pub(crate) end: Span,
    pub(crate) sample_every: Span,
}

/// The end of a run that ends with its guest.
pub(crate) const WITHOUT_END: Span = Span::from_secs(100 * 365 * 86_400);

impl Schedule {
    /// Whether it ends by itself.
    pub(crate) fn has_end(&self) -> bool {
        self.end < WITHOUT_END
    }
}

impl Clock {
    /// A clock that starts at zero now.
    pub(crate) fn start() -> Self {
        Self::started_at_monotonic_ns(monotonic_ns())
    }

    /// A clock that was zero at this reading of CLOCK_MONOTONIC.
    pub(crate) fn started_at_monotonic_ns(start_ns: u64) -> Self {
        Self { start_ns }
    }

    /// Time since the start of the run.
    pub(crate) fn now(self) -> Time {
        Time::from_nanos(monotonic_ns() - self.start_ns)
    }

    /// Converts a reading of CLOCK_MONOTONIC to run time. Readings before the start give the start.
    pub(crate) fn at_monotonic_ns(self, monotonic_ns: u64) -> Time {
        Time::from_nanos(monotonic_ns.saturating_sub(self.start_ns))
    }

    /// The time left until `time`; zero if it has passed.
    pub(crate) fn until(self, time: Time) -> Span {
        time.saturating_since(self.now())
    }
}

fn monotonic_ns() -> u64 {
    let now: TimeSpec = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every Linux has CLOCK_MONOTONIC");
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}
