//! The two clocks: the monotonic one for ticks and leases, the wall clock for beacons only.

use nix::time::{ClockId, clock_gettime};
use units::Time;

/// CLOCK_MONOTONIC: the one that the kernel's programs compare leases with. Stands still while the machine is suspended.
pub(crate) fn monotonic() -> Time {
    Time::from_nanos(nanoseconds(ClockId::CLOCK_MONOTONIC))
}

/// ns since 1970-01-01 UTC, as far as this machine knows.
pub(crate) fn wall_ns() -> u64 {
    nanoseconds(ClockId::CLOCK_REALTIME)
}

fn nanoseconds(clock: ClockId) -> u64 {
    let now = clock_gettime(clock).expect("Linux has this clock");
    let seconds = u64::try_from(now.tv_sec()).unwrap_or(0); // before 1970: a machine without a clock battery
    let nanoseconds = u64::try_from(now.tv_nsec()).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds)
}
