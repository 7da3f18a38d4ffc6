//! The one clock of a real-time run, and what is done when.

use lasthop_units::{Span, Time};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};

/// CLOCK_MONOTONIC, the clock of the kernel's leases and of the agents, with the start of the run as its zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start_ns: u64,
}

/// When a run does what, since its start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    pub(crate) warmup: Span,
    pub(crate) end: Span,
    pub(crate) sample_every: Span,
}

impl Clock {
    /// A clock that shows zero now.
    pub(crate) fn start() -> Self {
        Self::started_at_monotonic_ns(monotonic_ns())
    }

    /// A clock that showed zero when CLOCK_MONOTONIC stood there.
    pub(crate) fn started_at_monotonic_ns(start_ns: u64) -> Self {
        Self { start_ns }
    }

    /// Time since the start of the run.
    pub(crate) fn now(self) -> Time {
        Time::from_nanos(monotonic_ns() - self.start_ns)
    }

    /// Where a reading of CLOCK_MONOTONIC lies on the time line of the run; the start for anything before.
    pub(crate) fn at_monotonic_ns(self, monotonic_ns: u64) -> Time {
        Time::from_nanos(monotonic_ns.saturating_sub(self.start_ns))
    }

    /// How long it is until `time`; zero if it has passed.
    pub(crate) fn until(self, time: Time) -> Span {
        time.saturating_since(self.now())
    }
}

fn monotonic_ns() -> u64 {
    let now: TimeSpec = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every Linux has CLOCK_MONOTONIC");
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}
