//! The daemon on each host. Every 0.5 s it observes the host's TCP connections, hears what its peers behind the same
//! access point report, lets the policy decide, and applies what was decided. It decides nothing itself: that is
//! [`lasthop_policy`]'s.
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
//! | the agent is killed, hangs or loses the kernel's ear | the bounds lapse with their lease, within 2 s, and TCP is as it was |
//! | it is stopped in order | what servers were told is retracted, and the sockets get their own congestion control back |
//! | the machine is suspended | ticks and leases stand still with it, and go on where they were; peers and what the policy remembers are forgotten, as they may have been elsewhere |
//! | the host roams to another access point | peers and what the policy remembers are forgotten; connections stay, bounded by what is decided anew |
//! | the agent is stopped (SIGSTOP) and goes on | bounds had lapsed; what waited to be heard is thrown away |
//! | the wall clock is set | no decision depends on it; set back by more than 5 s, the host speaks as another one |
//! | a tick is late (the machine is overloaded, or a virtual one was stopped) | it is counted, and everything is applied anew; missed ticks are not made up for |
//! | an excluded cgroup is missing, or made anew | it is looked for every 2 s, and what it has open by then is given back |
//! | the configuration is to be read again (SIGHUP) | what can hold at once does; what is not accepted changes nothing |
//! | at the start the interface or the cgroup is missing, the group key cannot be read, or another agent does the same there | the agent says so and does not start |
//! | the interface is down, or has no address yet | the agent goes on and looks again every 2 s |
//! | the interface is replaced (unplugged, or the default route moves) | the programs are loaded anew for the new one |
//! | another process has the UDP port | peers are heard by a raw socket, and the process is named |
//! | the kernel lacks a feature | one warning that names it, and the best mode that still works |
//! | servers cannot be told of the last link | one warning, and everything else goes on |
//! | the link is down, or the host roams, or was suspended | what servers were told of it is retracted, but for what is configured and still holds |
//! | nobody reads the record, or its disk is full | lines are left out and counted, and it goes on with a whole line |
//! | nobody reads the log | lines are left out and counted; nothing waits for them |
//!
//! # Modes
//!
//! `observe` and `advise` change nothing in the kernel; nor does `control` with the policy `none`. Beacons are sent in
//! every mode but `observe`, so that peers count this host right. Reports of the last link, which are off by default, are made
//! in every mode.
//!
//! Ticks and leases go by CLOCK_MONOTONIC, beacons carry the wall clock.

mod agent;
mod clock;
mod config;
mod error;
mod event_loop;
mod group;
mod hearing;
pub mod host_tcp;
mod interface;
mod kernel_tcp;
mod last_link;
mod lines;
mod log;
mod log_limit;
mod medium;
mod notify;
mod only_one;
mod port;
pub mod record;
mod recorder;
mod reload;
mod sockets;
pub mod status;
mod wifi;

pub use config::{BeaconConfig, Config, LastLinkConfig, Mode};
pub use error::Error;
pub use event_loop::{Orders, Read, Reload, run_on, run_on_with};
pub use interface::Interface;
pub use last_link::{describe_last_link, describe_reports};
pub use log::LogWriter;
pub use notify::Notify;
pub use record::Totals as ExitSummary;
pub use sockets::GROUP;
pub use wifi::{Bssid, WifiLink};

use std::sync::atomic::AtomicBool;

/// Runs the agent on this machine's kernel until `stop` is set.
///
/// # Errors
/// As [`run_on`].
pub fn run(config: &Config, stop: &AtomicBool) -> Result<ExitSummary, Error> {
    run_with(config, &Orders::until(stop))
}

/// The same with further orders.
///
/// # Errors
/// As [`run_on`].
pub fn run_with(config: &Config, orders: &Orders<'_>) -> Result<ExitSummary, Error> {
    run_on_with(config, orders, &mut kernel_tcp::load)
}
