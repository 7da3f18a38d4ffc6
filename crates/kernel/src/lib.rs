//! The BPF programs and their safe loader: the one place where this project touches the kernel's TCP.
//!
//! What it does, in order:
//! 1. [`probe`] tells which of the kernel features it needs are there, and so the best [`Mode`].
//! 2. [`Kernel::load`] loads the programs (`src/bpf/`), registers the congestion control `lasthop` (the kernel's own CUBIC
//!    with its window bounded) and, from then on, gives it to new connections that leave by the managed interface.
//! 3. [`Kernel::adopt`] gives it to connections that exist already.
//! 4. Each tick: [`Kernel::sample`] reads every socket, [`Kernel::poll_state_changes`] what happened in between,
//!    [`Kernel::set_bounds`] bounds the windows and the pacing rates under a lease.
//! 5. [`Kernel::release`], or dropping it, gives the sockets their own control back and unloads everything.
//!
//! Beside that, and independent of it: [`laws`] loads our own congestion controls, [`link_report`] tells servers of a client's last link.
//!
//! Nothing outlives the loader but what fails open: without it a lease lapses and the sockets run plain CUBIC. No
//! sysctl is ever set, nothing is pinned. Sockets of other network namespaces and other interfaces are never touched.
//!
//! What it leaves out: it decides nothing (see the policies of `lasthop-policy`), and in [`Mode::Clamp`] it has no lower
//! bound. The algorithm of the bound and how it was checked: `docs/models/bound.md`.

mod clamp;
mod error;
mod kernel;
pub mod laws;
mod layout;
pub mod link_report;
mod log;
mod mode;
mod namespace;
mod object;
mod probe;
mod sample;
mod tcp_info;

pub use error::Error;
pub use kernel::{Adopted, Cgroups, Cookie, Counters, Kernel, Options, Released};
pub use mode::Mode;
pub use probe::{Feature, Outcome, Support, probe, room_for_agents, sees_cgroups};
pub use sample::{CongestionState, SocketSample, StateChange};
pub use tcp_info::tcp_info;
