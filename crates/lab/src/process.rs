//! Child processes in a host's namespace. They never outlive the laboratory.

use crate::namespace::Namespace;
use crate::real_time::Scheduling;
use nix::sched::{CloneFlags, setns};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::unistd::{Pid, getppid};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

/// A child process, killed when this value is dropped. The kernel also kills it when its parent thread ends.
pub(crate) struct Process(pub(crate) Child);

impl Process {
    /// Starts `command` in the namespace, in a process group of its own: Ctrl-C is for the laboratory.
    pub(crate) fn spawn(mut command: Command, namespace: &Namespace, inherited: &[RawFd]) -> io::Result<Self> {
        command.process_group(0);
        Self::spawn_in_group(command, namespace, inherited)
    }

    /// Starts `command` in the namespace and in the caller's process group, with the file descriptors `inherited` open
    /// under the same numbers.
    pub(crate) fn spawn_in_group(command: Command, namespace: &Namespace, inherited: &[RawFd]) -> io::Result<Self> {
        Self::spawn_with(command, Some(namespace.as_fd().as_raw_fd()), inherited)
    }

    /// Starts `command` in the caller's namespace, in a process group of its own.
    pub(crate) fn spawn_here(mut command: Command) -> io::Result<Self> {
        command.process_group(0);
        Self::spawn_with(command, None, &[])
    }

    /// No network's thread interrupts the fork, if the kernel allows priorities. Until a fork has ended, another thread may write to
    /// a page that is now shared with the child: whether the processor lets it depends on what it has kept of the old page table, and
    /// an emulated one keeps what this machine's clock decides. It would also wait for the end of the fork, behind all others.
    fn spawn_with(mut command: Command, inside: Option<RawFd>, inherited: &[RawFd]) -> io::Result<Self> {
        let inherited = inherited.to_vec();
        let parent = Pid::this();
        let before = Scheduling::here();
        // SAFETY: between fork and exec there are only async-signal-safe system calls: sched_setscheduler, prctl, getppid, setns and
        // fcntl. The descriptors are open in the parent, which waits for the exec.
        #[allow(unsafe_code)]
        unsafe {
            command.pre_exec(move || {
                before.take();
                set_pdeathsig(Signal::SIGKILL)?;
                if getppid() != parent {
                    // The parent died between the fork and the line above.
                    return Err(io::ErrorKind::Interrupted.into());
                }
                if let Some(inside) = inside {
                    setns(BorrowedFd::borrow_raw(inside), CloneFlags::CLONE_NEWNET)?;
                }
                for &inherited in &inherited {
                    let keep = nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::empty());
                    nix::fcntl::fcntl(BorrowedFd::borrow_raw(inherited), keep)?;
                }
                Ok(())
            });
        }
        let precedes = Scheduling::BEFORE_NETWORKS.take();
        let started = command.spawn();
        if precedes {
            before.take();
        }
        started.map(Self)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // After an earlier wait, neither has any effect.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
