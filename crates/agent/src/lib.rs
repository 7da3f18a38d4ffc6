//! The daemon on each host. Every 0.5 s it observes the host's TCP connections and reads the reports of its peers
//! behind the same access point. [`lasthop_policy`] decides; the agent applies the decision.
//!
//! ```text
//!   every 0.5 s   sockets ──> observe ──> decide (policy)  ──> bounds with a lease of 1.5 s ──> kernel
//!                                            ^
//!   always        peers' beacons ────────────┘
//!   every 0.3 s   own beacon ──> IPv4 broadcast, IPv6 link-local multicast    less often where many are heard
//!
//!   every 0.5 s   interface, radio, connections ──> estimate the last link (lastlink) ──> kernel ──> servers, if that is configured
//! ```
//!
//! # What happens when
//!
//! | | |
//! | --- | --- |
//! | the agent is killed, hangs or can no longer reach the kernel | the bounds lapse with their lease, within 2 s, and
//! TCP is as before |
//! | it is killed while it has set the radio's RTS threshold | the next agent that starts on this host gives the former one back
//! |
//! | it is stopped in order | the radio gets its RTS threshold back, the reports to servers are retracted, and the sockets get
//! their own congestion control back |
//! | the machine is suspended | ticks and leases stand still and then go on; peers and the policy's memory are
//! forgotten, as the host may have moved |
//! | the host roams to another access point | peers and the policy's memory are forgotten; connections stay, with newly
//! decided bounds |
//! | the agent is stopped (SIGSTOP) and goes on | bounds had lapsed; waiting datagrams are discarded |
//! | the wall clock is set | no decision depends on it; after a step back of more than 5 s the host takes a new
//! identity |
//! | a tick is late (the machine is overloaded, or a virtual one was stopped) | it is counted, and everything is
//! applied anew; missed ticks are skipped |
//! | an excluded cgroup is missing, or made anew | it is checked every 2 s, and its open sockets are given back |
//! | the configuration is to be read again (SIGHUP) | changes take effect at once where possible; an invalid file
//! changes nothing |
//! | at the start the interface or the cgroup is missing, the group key cannot be read, or another agent does the same
//! there | the agent reports it and does not start |
//! | the interface is down, or has no address yet | the agent goes on and checks again every 2 s |
//! | the interface is replaced (unplugged, or the default route moves) | the programs are loaded anew for the new one |
//! | another process has the UDP port | a raw socket receives the beacons, and the log names the process |
//! | the kernel lacks a feature | one warning that names it, and the best mode that still works |
//! | reports to servers are impossible | one warning, and everything else goes on |
//! | the link is down, or the host roams, or was suspended | reports to servers are retracted, except configured values
//! that still hold |
//! | nobody reads the record, or its disk is full | lines are dropped and counted, and later ones start on a whole line
//! |
//! | the program of the policy `external` is late | nothing is bounded at this tick |
//! | it ends, hangs or writes nonsense | nothing is bounded until it decides in time again; it is started again after 1 s,
//! then 2, 4, up to 60 s |
//! | clients of the metrics are slow, or many | they wait or are closed; the loop waits for none of them |
//! | the metrics' port is taken, or their file cannot be written | one warning, and everything else goes on |
//! | nobody reads the log | lines are dropped and counted; nothing waits for them |
//!
//! # Modes
//!
//! `observe` and `advise` change nothing in the kernel; nor does `control` with the policy `none`. Every mode but
//! `observe` sends beacons, so that peers count this host. Reports of the last link are off by default.
//! If configured, every mode makes them.
//!
//! # Rights
//!
//! Once started, the agent's process keeps the capabilities that its work takes, and no others ([`Orders`]).
//!
//! Ticks and leases go by CLOCK_MONOTONIC, beacons carry the wall clock.

mod agent;
mod clock;
mod config;
mod error;
mod event_loop;
mod hear;
mod link;
mod only_one;
mod privilege;
mod program;
mod reload;
#[cfg(test)]
mod soak;
mod tcp;
mod tell;

pub use config::{BeaconConfig, Config, LastLinkConfig, MetricsConfig, RadioConfig, RuleConfig};
pub use error::Error;
pub use event_loop::{Orders, Read, Reload, run_on, run_on_with};
pub use hear::hearing::read_group_key;
pub use hear::relay::{Relayed, serve_relay};
pub use hear::sockets::GROUP;
pub use lasthop_peers::relay::PORT as RELAY_PORT;
pub use lasthop_status::Mode;
pub use lasthop_status::record::Totals as ExitSummary;
pub use link::interface::Interface;
pub use link::last_link::{describe_last_link, describe_reports};
pub use link::rts::rts_left;
pub use link::wifi::wifi_link;
pub use tcp::host_tcp;
pub use tcp::kernel_tcp::describe_default_control;
pub use tcp::rules::describe_rules;
pub use tell::log::LogWriter;
pub use tell::notify::Notify;

use error::Doing as _;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Runs the agent on this machine's kernel until `stop` is set.
///
/// # Errors
/// As [`run_on`].
pub fn run(config: &Config, stop: &AtomicBool) -> Result<ExitSummary, Error> {
    run_with(config, &Orders::until(stop))
}

/// The same, with further orders.
///
/// # Errors
/// As [`run_on`].
pub fn run_with(config: &Config, orders: &Orders<'_>) -> Result<ExitSummary, Error> {
    run_on_with(config, orders, &mut tcp::kernel_tcp::load)
}

/// What keeps an agent with this configuration from its start here, as far as can be told without changing anything:
/// interface, socket group, group key, cgroups, users of rules, and the place of the record. That there is no default
/// route is no fault of a configuration.
///
/// # Errors
/// The first of them.
pub fn can_start(config: &Config) -> Result<(), Error> {
    if config.interface.is_some() {
        agent::interface(config)?;
    }
    config.socket_group.as_deref().map(tell::socket::group_id).transpose()?;
    hear::hearing::Hearing::new(&config.beacon)?;
    tcp::kernel_tcp::check_cgroups(config)?;
    tcp::rules::in_the_kernel(config)?;
    config.policy.rehearse().map_err(|problem| {
        Error::Refused(format!("policy: \"{}\" fails in a made-up congestion: {problem}", config.policy.policy))
    })?;
    let record = config.record.as_deref().filter(|path| *path != Path::new("-"));
    if let Some(path) = record {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let place = if path.exists() { path } else { folder };
        let cannot = || format!("cannot write the record to {}", path.display());
        lasthop_files::may_append(path, &lasthop_status::record::RECORD).doing(cannot())?;
        nix::unistd::access(place, nix::unistd::AccessFlags::W_OK).doing(cannot())?;
    }
    if let Some(path) = config.metrics.textfile.as_deref() {
        let may = lasthop_files::may_write(path, Some(&tell::exposition::METRICS));
        may.doing(format_args!("cannot write the metrics to {}", path.display()))?;
    }
    Ok(())
}
