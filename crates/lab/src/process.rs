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

    /// No network's thread interrupts the fork on its processor, if the kernel allows priorities. A thread that writes during a fork
    /// waits for its end, unless the processor's TLB has an old entry: in an emulated machine this machine's clock decides
    /// that (crates/guest, "one thing is left").
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Stdio;

    /// The scheduling policy in /proc/PID/stat (proc(5), field 41), behind the name in parentheses.
    fn policy(stat: &str) -> String {
        stat.rsplit_once(") ").expect("a name").1.split(' ').nth(41 - 3).expect("a policy").to_owned()
    }

    #[test]
    fn the_priority_of_a_start_ends_with_it_for_parent_and_child() {
        let here = || policy(&std::fs::read_to_string("/proc/thread-self/stat").expect("readable"));
        let before = here();
        let mut command = Command::new("cat");
        command.arg("/proc/self/stat").stdout(Stdio::piped());
        let mut process = Process::spawn_here(command).expect("started");
        let said = io::read_to_string(process.0.stdout.take().expect("a pipe")).expect("text");
        assert_eq!((policy(&said), here()), (before.clone(), before));
    }
}
