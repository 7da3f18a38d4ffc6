//! The clocks: the monotonic one for ticks and leases, the wall clock for beacons. A third runs on in suspend and so
//! reveals a suspension.

use lasthop_units::{Span, Time};
use nix::time::{ClockId, clock_gettime};

/// CLOCK_MONOTONIC, by which the kernel's programs check leases. It stops while the machine is suspended.
pub(crate) fn monotonic() -> Time {
    Time::from_nanos(nanoseconds(ClockId::CLOCK_MONOTONIC))
}

/// ns since 1970-01-01 UTC, by this machine's clock.
pub(crate) fn wall_ns() -> u64 {
    nanoseconds(ClockId::CLOCK_REALTIME)
}

/// CLOCK_BOOTTIME − CLOCK_MONOTONIC: total time in suspend since boot.
pub(crate) fn suspended() -> Span {
    loop {
        let before = nanoseconds(ClockId::CLOCK_MONOTONIC);
        let boot = nanoseconds(ClockId::CLOCK_BOOTTIME);
        // A thread preempted between the two readings would see a suspension that never was.
        if nanoseconds(ClockId::CLOCK_MONOTONIC) - before < 100_000_000 {
            return Span::from_nanos(boot.saturating_sub(before));
        }
    }
}

/// Detects suspensions of the machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Suspension {
    /// [`suspended`] at the last check.
    seen: Span,
}

impl Suspension {
    /// Detects suspensions from now on.
    pub(crate) const fn new(suspended: Span) -> Self {
        Self { seen: suspended }
    }

    /// Time in suspend since the last call, if over a second. Less is ignored. (NTP steers both clocks alike.)
    pub(crate) fn since_last(&mut self, suspended: Span) -> Option<Span> {
        let gap = suspended.saturating_sub(std::mem::replace(&mut self.seen, suspended));
        (gap > Span::from_secs(1)).then_some(gap)
    }
}

fn nanoseconds(clock: ClockId) -> u64 {
    let now = clock_gettime(clock).expect("Linux has this clock");
    let seconds = u64::try_from(now.tv_sec()).unwrap_or(0); // before 1970: a machine without a clock battery
    let nanoseconds = u64::try_from(now.tv_nsec()).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suspension_is_seen_once_and_a_short_one_not_at_all() {
        let seconds = Span::from_secs;
        let mut suspension = Suspension::new(seconds(100));
        assert_eq!(suspension.since_last(seconds(100)), None);
        assert_eq!(suspension.since_last(seconds(130)), Some(seconds(30)));
        assert_eq!(suspension.since_last(seconds(130)), None);
        assert_eq!(suspension.since_last(seconds(131)), None);
        // A time namespace must not change it. If it does go back, nothing is reported.
        assert_eq!(suspension.since_last(seconds(5)), None);
        assert_eq!(suspension.since_last(seconds(7)), Some(seconds(2)));
    }

    #[test]
    fn a_machine_that_runs_is_not_suspended() {
        let mut suspension = Suspension::new(suspended());
        assert!((0..1000).all(|_| suspension.since_last(suspended()).is_none()));
    }
}
