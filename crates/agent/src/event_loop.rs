//! One thread that waits for datagrams, ticks, beacons, status requests and orders.

use crate::agent::Agent;
use crate::clock::{self, Suspension};
use crate::config::Config;
use crate::error::{Doing, Result};
use crate::link::interface::Interface;
use crate::link::rts::give_back_what_is_left;
use crate::privilege;
use crate::tcp::host_tcp::Loader;
use crate::tell::notify::Notify;
use lasthop_status::record::Totals;
use lasthop_units::{Span, Time};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tracing::{error, warn};

/// Time between two checks of the interface.
const REFRESH: Span = Span::from_secs(2);
/// A longer gap between two rounds means that the agent was stopped. The datagrams in its sockets are stale then. The
/// value exceeds the delays of a busy machine.
const STALLED: Span = Span::from_secs(10);
/// The longest delay of a stop when no signal interrupts the wait.
const LONGEST_WAIT: Span = Span::from_millis(500);
/// At the end, the connections' time to retract their reports: a few round trips of busy connections.
const RETRACTED_WITHIN: Span = Span::from_millis(500);

/// A running agent's inputs from outside, and its service manager.
pub struct Orders<'a> {
    /// Set: stop in order.
    pub stop: &'a AtomicBool,
    /// The request to reread the configuration; `None`: there is no such request.
    pub reload: Option<Reload<'a>>,
    /// The folder in which `lasthop agent status` looks for the socket ([`lasthop_status::FOLDER`]); `None`: no socket.
    pub status: Option<&'a Path>,
    /// The service manager.
    pub notify: Notify,
    /// Has the calling thread give up, once the agent has started, all capabilities but those that it needs: for a
    /// process that is an agent and nothing else.
    pub least_privilege: bool,
}

/// Reads a configuration, or explains the failure.
pub type Read<'a> = dyn Fn() -> Result<Config, Box<dyn std::error::Error + Send + Sync>> + 'a;

/// How to reread the configuration.
pub struct Reload<'a> {
    /// Set: read it. The agent clears it.
    pub asked: &'a AtomicBool,
    /// Gives the present configuration. An error is logged and changes nothing.
    pub read: &'a Read<'a>,
}

impl<'a> Orders<'a> {
    /// No orders except `stop`.
    pub fn until(stop: &'a AtomicBool) -> Self {
        Self { stop, reload: None, status: None, notify: Notify::default(), least_privilege: false }
    }
}

/// Runs the agent on a given TCP until `stop` is set, for tests and benches. [`crate::run`] builds on it.
///
/// # Errors
/// As [`run_on_with`].
pub fn run_on<'a>(config: &Config, stop: &AtomicBool, loader: &'a mut Loader<'a>) -> Result<Totals> {
    run_on_with(config, &Orders::until(stop), loader)
}

/// The same, with further orders.
///
/// # Errors
/// The configuration, the interface, the programs or the record prevent the start. Or, at the end, some socket could
/// not be restored. A failed wait also stops the agent in order.
pub fn run_on_with<'a>(config: &Config, orders: &Orders<'_>, loader: &'a mut Loader<'a>) -> Result<Totals> {
    // First of all: whatever keeps this agent from starting does not keep a radio from what it was.
    give_back_what_is_left();
    config.validate()?;
    if orders.notify.is_heard() && !wait_for_interface(config, orders) {
        return Ok(Totals::default());
    }
    let mut agent = Agent::start(config, orders.status, loader)?;
    if orders.least_privilege {
        privilege::drop_the_rest(config)?;
    }
    orders.notify.ready(&agent.in_a_line());
    let mut next_tick = clock::monotonic();
    let mut next_refresh = next_tick + REFRESH;
    let mut suspension = Suspension::new(clock::suspended());
    let mut seen = next_tick;
    let mut waited = Ok(());

    while !orders.stop.load(Ordering::Relaxed) {
        let mut now = clock::monotonic();
        let suspended = suspension.since_last(clock::suspended());
        if suspended.is_some() || now.saturating_since(seen) > STALLED {
            agent.hearing.discard_waiting(now);
        }
        if let Some(suspended) = suspended {
            agent.on_resumed(now, suspended);
        }
        if let Some(reload) = &orders.reload
            && reload.asked.swap(false, Ordering::Relaxed)
        {
            orders.notify.reloading();
            let outcome = agent.on_reload(now, reload.read);
            orders.notify.ready(&outcome);
            now = clock::monotonic();
        }
        if now >= next_refresh {
            agent.refresh(now);
            next_refresh = now + REFRESH;
        }
        agent.poll_program(now);
        if now >= next_tick {
            agent.on_tick(now, now - next_tick);
            next_tick = following(next_tick, agent.tick(), now);
            orders.notify.alive();
            now = clock::monotonic();
            agent.poll_program(now);
        }
        agent.poll_beacon(now);
        agent.greet(now);
        seen = now;
        let program = agent.program_due_at().unwrap_or(Time::MAX);
        let next =
            next_tick.min(agent.hearing.next_beacon_at(now)).min(next_refresh).min(program).min(now + LONGEST_WAIT);
        waited = wait(&agent, now, next.saturating_since(clock::monotonic()));
        if waited.is_err() {
            break;
        }
        agent.hearing.receive(clock::monotonic());
    }
    orders.notify.stopping();
    let mut now = clock::monotonic();
    let end = if agent.retract(now) { now + RETRACTED_WITHIN } else { now };
    while now < end && waited.is_ok() {
        waited = wait(&agent, now, end - now);
        now = clock::monotonic();
        agent.hearing.receive(now);
        agent.greet(now);
    }
    if let Err(error) = &waited {
        error!("the agent stops: {}", error.in_a_line());
    }
    let totals = agent.stop()?;
    waited.map(|()| totals)
}

/// Under a service manager, which would start it again and again, an agent waits for its interface: the one that is
/// named, or that of a default route. Returns whether it is there; `false`: it is to stop.
fn wait_for_interface(config: &Config, orders: &Orders<'_>) -> bool {
    let is_there = || Interface::of(config).is_some();
    if is_there() {
        return true;
    }
    let awaited = match &config.interface {
        Some(name) => {
            warn!("there is no interface {name} yet: waiting for it (see `ip link`)");
            format!("waiting for interface {name}")
        }
        None => {
            warn!(
                "there is no default route yet: waiting for one; `interface` in the configuration names the interface instead"
            );
            "waiting for a default route".to_owned()
        }
    };
    orders.notify.ready(&awaited);
    while !orders.stop.load(Ordering::Relaxed) {
        if is_there() {
            return true;
        }
        orders.notify.alive();
        std::thread::sleep(Duration::from_nanos(LONGEST_WAIT.as_nanos()));
    }
    orders.notify.stopping();
    false
}

/// The tick after the one due at `due` and taken at `now`: the next on the grid. If that is past, a whole tick from
/// `now`.
fn following(due: Time, tick: Span, now: Time) -> Time {
    let next = due + tick;
    if next > now { next } else { now + tick }
}

fn wait(agent: &Agent<'_>, now: Time, longest: Span) -> Result<()> {
    let descriptors = agent.hearing.descriptors(now).chain(agent.socket_descriptor());
    let descriptors = descriptors.map(|descriptor| (descriptor, PollFlags::POLLIN)).chain(agent.program_descriptors());
    let mut polled: Vec<_> = descriptors.map(|(descriptor, flags)| PollFd::new(descriptor, flags)).collect();
    let timeout = TimeSpec::from(Duration::from_nanos(longest.as_nanos()));
    match ppoll(&mut polled, Some(timeout), None) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(error) => Err(error).doing("cannot wait for datagrams"),
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
