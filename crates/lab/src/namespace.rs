//! Network namespaces that belong to nobody but this process.
//!
//! None of them has a name: a namespace lives as long as one of our file descriptors or one of our child processes, so
//! the kernel itself removes it, with the TUN device in it, when the laboratory ends, even by `kill -9`.

use crate::error::{Doing, Result};
use nix::sched::{CloneFlags, setns, unshare};
use std::fs::{self, File};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::thread;

/// The kernel's hash of established connections is scanned by every socket iterator; a host here has few sockets, and
/// with the default size each walk of an agent would cost 2.6 ms instead of 0.1 ms.
const ESTABLISHED_HASH_ENTRIES: &str = "1024";

/// One network namespace.
#[derive(Debug)]
pub(crate) struct Namespace {
    file: OwnedFd,
}

impl Namespace {
    /// Makes a namespace in which nothing exists but a loopback device.
    ///
    /// # Errors
    /// If the caller may not make namespaces (CAP_SYS_ADMIN).
    pub(crate) fn new() -> Result<Self> {
        on_a_thread_of_its_own(|| {
            // The size of a namespace's hash is taken from the namespace in which it is made, so there is one between.
            unshare(CloneFlags::CLONE_NEWNET)
                .doing("cannot make a network namespace (are you root, or is CAP_SYS_ADMIN missing?)")?;
            // Kernels before 6.1 have one hash for all namespaces and no such file: slower walks, nothing else.
            let _ = fs::write("/proc/sys/net/ipv4/tcp_child_ehash_entries", ESTABLISHED_HASH_ENTRIES);
            unshare(CloneFlags::CLONE_NEWNET).doing("cannot make a network namespace")?;
            let file = File::open("/proc/thread-self/ns/net").doing("cannot open the new network namespace")?;
            Ok(Self { file: file.into() })
        })
    }

    /// Runs `inside` on a thread that is in this namespace: sockets it makes and files under `/proc/sys/net` it opens
    /// are this namespace's for good.
    ///
    /// # Errors
    /// If the namespace cannot be entered, or those of `inside`.
    pub(crate) fn run<T: Send>(&self, inside: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        on_a_thread_of_its_own(|| {
            setns(&self.file, CloneFlags::CLONE_NEWNET).doing("cannot enter a host's network namespace")?;
            inside()
        })
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// A thread that has changed its namespace must not go on to do anything else.
fn on_a_thread_of_its_own<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    thread::scope(|scope| scope.spawn(work).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
