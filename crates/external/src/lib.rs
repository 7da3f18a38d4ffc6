//! Runs the program of an external policy: a process, three pipes, and time limits. What the lines mean is
//! [`lasthop_policy::schema`]'s.
//!
//! ```text
//!  hello, observations ──> standard input  ┐
//!  decisions           <── standard output ├ one process, started once for a host
//!  last lines, shown   <── standard error  ┘ when it fails
//! ```
//!
//! [`Programs`] makes the policies of simulated hosts, which wait for each decision. The agent has a [`Program`] of
//! its own, which it never waits for.
//!
//! The process and its children are a process group, killed when the [`Program`] is dropped. The kernel kills the
//! process when the thread that started it ends, so `kill -9` leaves none (PR_SET_PDEATHSIG). It gets no descriptor but
//! its three pipes, and no new privileges by setuid files (PR_SET_NO_NEW_PRIVS).
//!
//! *What it leaves out*: children of the program that leave its process group (setsid), and after a `kill -9` of
//! lasthop all its children; they see the end of its standard input, if they have that. A PID namespace would hold them,
//! and needs a process of ours in between; a cgroup needs root, and systemd gives the agent one, with which all end.

mod program;
mod simulated;

pub use program::{Account, Program, ProgramError, Start, decision};
pub use simulated::Programs;
