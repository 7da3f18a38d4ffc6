//! The network namespace of the loader, independent of the calling thread; and those of containers.

use nix::sched::{CloneFlags, setns};
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const OWN: &str = "/proc/thread-self/ns/net";

/// An open network namespace. While it is open, its number stays its own.
#[derive(Debug)]
pub(crate) struct Namespace {
    file: File,
    inum: u32,
}

impl Namespace {
    /// The calling thread's.
    pub(crate) fn current() -> io::Result<Self> {
        Self::open(Path::new(OWN))
    }

    /// That of a file such as /proc/PID/ns/net.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let inum = inum(file.metadata()?.ino())?;
        Ok(Self { file, inum })
    }

    /// What keeps it open.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Its number in the kernel, also in BPF.
    pub(crate) fn inum(&self) -> u32 {
        self.inum
    }

    /// Does `work` with the calling thread in this namespace, and moves the thread back if needed.
    pub(crate) fn within<T>(&self, work: impl FnOnce() -> T) -> io::Result<T> {
        let here = inum(std::fs::metadata(OWN)?.ino())?;
        if here == self.inum {
            return Ok(work());
        }
        let back = Back(File::open(OWN)?);
        setns(&self.file, CloneFlags::CLONE_NEWNET)?;
        let result = work();
        drop(back);
        Ok(result)
    }
}

struct Back(File);

impl Drop for Back {
    fn drop(&mut self) {
        // No sensible work is possible on a thread in the wrong namespace.
        setns(&self.0, CloneFlags::CLONE_NEWNET)
            .expect("a thread can always return to the namespace that it came from");
    }
}

fn inum(inode: u64) -> io::Result<u32> {
    u32::try_from(inode).map_err(|_| io::Error::other("the number of a namespace has 32 bits"))
}
