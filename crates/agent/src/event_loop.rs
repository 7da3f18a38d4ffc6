//! One thread that waits: for datagrams, for the next tick, for the next beacon, for the order to stop.

use crate::agent::Agent;
use crate::clock::{self, Suspension};
use crate::config::Config;
use crate::record::Totals;
use crate::stack::Loader;
use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use units::{Span, Time};

/// Between two looks at the interface.
const REFRESH: Span = Span::from_secs(2);
/// A loop that has not come round for longer was stopped: what waits in its sockets is not the present. Longer than a busy
/// machine leaves it without a CPU.
const STALLED: Span = Span::from_secs(10);
/// The order to stop is obeyed within this, even if no signal interrupts the wait.
const LONGEST_WAIT: Span = Span::from_millis(500);

/// Runs the agent on a given stack until `stop` is set: for tests and benches, and what [`crate::run`] is made of.
///
/// # Errors
/// What makes it impossible to start: the configuration, the interface, the stack, the record. And at the end, if not
/// every socket could be put back. In between nothing does.
pub fn run_on<'a>(config: &'a Config, stop: &AtomicBool, loader: &'a mut Loader<'a>) -> Result<Totals> {
    config.validate()?;
    let mut agent = Agent::start(config, loader)?;
    let mut next_tick = clock::monotonic();
    let mut next_refresh = next_tick + REFRESH;
    let mut suspension = Suspension::new(clock::suspended());
    let mut seen = next_tick;

    while !stop.load(Ordering::Relaxed) {
        let mut now = clock::monotonic();
        let suspended = suspension.since_last(clock::suspended());
        if suspended.is_some() || now.saturating_since(seen) > STALLED {
            agent.hearing.discard_waiting();
        }
        if let Some(suspended) = suspended {
            agent.on_resumed(now, suspended);
        }
        if now >= next_refresh {
            agent.refresh(now);
            next_refresh = now + REFRESH;
        }
        if now >= next_tick {
            agent.on_tick(now, now - next_tick);
            next_tick = following(next_tick, config.tick(), now);
            now = clock::monotonic();
        }
        agent.poll_beacon(now);
        seen = now;
        let next = next_tick.min(agent.hearing.next_beacon_at(now)).min(next_refresh).min(now + LONGEST_WAIT);
        wait(&agent, now, next.saturating_since(clock::monotonic()))?;
        agent.hearing.receive(clock::monotonic());
    }
    agent.stop()
}

/// The tick after the one that was due at `due` and taken at `now`: on the grid, or if that is past already, a whole
/// tick from now.
fn following(due: Time, tick: Span, now: Time) -> Time {
    let next = due + tick;
    if next > now { next } else { now + tick }
}

fn wait(agent: &Agent<'_>, now: Time, longest: Span) -> Result<()> {
    let descriptors = agent.hearing.descriptors(now);
    let mut polled: Vec<_> = descriptors.map(|descriptor| PollFd::new(descriptor, PollFlags::POLLIN)).collect();
    let timeout = TimeSpec::from(Duration::from_nanos(longest.as_nanos()));
    match ppoll(&mut polled, Some(timeout), None) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(error) => Err(error).context("cannot wait for datagrams"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_stay_on_their_grid_and_missed_ones_are_not_made_up_for() {
        let at = |milliseconds| Time::ZERO + Span::from_millis(milliseconds);
        let tick = Span::from_millis(500);
        assert_eq!(following(at(1000), tick, at(1003)), at(1500));
        assert_eq!(following(at(1000), tick, at(1499)), at(1500));
        assert_eq!(following(at(1000), tick, at(60_000)), at(60_500));
    }
}
