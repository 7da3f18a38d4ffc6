//! Runs the program of an external policy: a process, three pipes, and time limits. What the lines mean is
//! [`lasthop_policy::schema`]'s.
//!
//! ```text
//!  hello, observations ──> standard input  ┐
//!  decisions           <── standard output ├ one process, started once for a host
//!  last lines, shown   <── standard error  ┘ when it fails
//! ```
//!
//! [`policy_of`] makes the policy of a simulated host, which waits for each decision. The agent has a [`Program`] of
//! its own, which it never waits for.
//!
//! The process and its children are a process group, killed when the [`Program`] is dropped. The kernel kills the
//! process when the thread that started it ends, so `kill -9` leaves none (PR_SET_PDEATHSIG). It gets no descriptor but
//! its three pipes, and no new privileges by setuid files (PR_SET_NO_NEW_PRIVS).
//!
//! *What it leaves out*: a child of the program that outlives it after a `kill -9` of lasthop; it sees the end of its
//! standard input, if it has that.

mod program;
mod simulated;

pub use program::{Program, ProgramError, Start, decision};
pub use simulated::policy_of;
