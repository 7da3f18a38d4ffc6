//! Private network namespaces of this process.
//!
//! They have no names. A namespace lives as long as one of our file descriptors or child processes. When the laboratory
//! ends, even by `kill -9`, the kernel therefore removes it with its TUN device.

use crate::error::{Doing, Result};
use nix::sched::{CloneFlags, setns, unshare};
use std::fs::{self, File};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::thread;

/// Every socket iterator scans the kernel's hash of established connections. A host here has few sockets; with the
/// default size each walk of an agent would take 2.6 ms instead of 0.1 ms.
const ESTABLISHED_HASH_ENTRIES: &str = "1024";

/// One network namespace.
#[derive(Debug)]
pub(crate) struct Namespace {
    file: OwnedFd,
}

impl Namespace {
    /// Makes a namespace with only a loopback device.
    ///
    /// # Errors
    /// If the caller may not make namespaces (CAP_SYS_ADMIN).
    pub(crate) fn new() -> Result<Self> {
        on_a_thread_of_its_own(|| {
            // A namespace takes its hash size from the namespace that creates it, hence an intermediate one.
            unshare(CloneFlags::CLONE_NEWNET)
                .doing("cannot make a network namespace (are you root, or is CAP_SYS_ADMIN missing?)")?;
            // Kernels before 6.1 lack this file and share one hash: the walks are slower, with no other effect.
            let _ = fs::write("/proc/sys/net/ipv4/tcp_child_ehash_entries", ESTABLISHED_HASH_ENTRIES);
            unshare(CloneFlags::CLONE_NEWNET).doing("cannot make a network namespace")?;
            let file = File::open("/proc/thread-self/ns/net").doing("cannot open the new network namespace")?;
            Ok(Self { file: file.into() })
        })
    }

    /// Runs `inside` on a thread in this namespace. Its sockets and its files under `/proc/sys/net` keep belonging to
    /// this namespace.
    ///
    /// # Errors
    /// If the namespace cannot be entered. Also the errors of `inside`.
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

/// A thread that has changed its namespace must not do anything else.
fn on_a_thread_of_its_own<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    thread::scope(|scope| scope.spawn(work).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
