//! The BPF programs and their safe loader: the only part of this project that touches the kernel's TCP.
//!
//! What it does, in order:
//! 1. [`probe`] finds the available kernel features, and so the best [`Mode`].
//! 2. [`Kernel::load`] loads the programs (`src/bpf/`), registers the congestion control `lasthop` (the kernel's own
//!    CUBIC with its window bounded) and, from then on, gives it to new connections that leave by the managed
//!    interface.
//! 3. [`Kernel::adopt`] gives it to connections that exist already.
//! 4. Each tick: [`Kernel::sample`] reads every socket, [`Kernel::poll_state_changes`] what happened in between,
//!    [`Kernel::set_bounds`] bounds the windows and the pacing rates under a lease.
//! 5. [`Kernel::release`], or dropping it, gives the sockets their own control back and unloads everything.
//!
//! Independent of these: [`laws`] loads our own congestion controls, and [`link_report`] reports a client's last link
//! to servers. [`hwsim`] talks with the kernel's simulated Wi-Fi radios.
//!
//! Anything that outlives the loader fails open: the lease lapses and the sockets run plain CUBIC. No sysctl is ever
//! set, and these programs pin nothing. Sockets of other interfaces are never touched; those of other network namespaces only
//! with [`Options::containers`].
//!
//! Leaves out: decisions (see the policies of `lasthop-policy`), and a lower bound in [`Mode::Clamp`]. The algorithm of
//! the bound and its verification: `docs/models/bound.md`.

mod cgroups;
mod clamp;
mod containers;
mod error;
pub mod hwsim;
mod kernel;
pub mod laws;
mod layout;
pub mod link_report;
mod log;
mod memory;
mod mode;
mod namespace;
pub mod netlink;
mod object;
pub mod privilege;
mod probe;
mod sample;
mod tcp_info;

pub use cgroups::{Cgroups, Rule, TooManyCgroups, cgroups_like};
pub use containers::Containers;
pub use error::Error;
pub use kernel::{Adopted, Cookie, Counters, Kernel, Observed, Options, Released};
pub use mode::Mode;
pub use probe::{Feature, Outcome, Support, probe, room_for_agents, sees_cgroups, tells_cgroups};
pub use sample::{Left, SocketSample, StateChange};
pub use tcp_info::{tcp_info, tcp_state};
