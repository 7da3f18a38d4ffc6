//! What a guest asks to be seen outside its namespaces (`--netns`, `--internet`), and how it goes away.
//!
//! Each such thing has a file in [`FOLDER`], locked (flock(2)) by those that use it. The kernel lets go of the lock of
//! a laboratory that was killed, so the next start finds a file that nobody holds, and undoes what it stands for.

use crate::error::{Doing, Error, Result};
use crate::namespace::Namespace;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use tracing::warn;

const FOLDER: &str = "/run/lasthop/exec";
/// Where `ip netns` and container engines look for network namespaces.
const NETNS: &str = "/run/netns";

/// One thing to be undone.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Leftover {
    /// A name of a network namespace.
    Netns(String),
    /// An interface that forwards.
    Forwarding(String),
}

impl Leftover {
    fn path(&self) -> PathBuf {
        let name = match self {
            Self::Netns(name) => format!("netns-{name}"),
            Self::Forwarding(interface) => format!("forwarding-{interface}"),
        };
        Path::new(FOLDER).join(name)
    }

    fn of_file(name: &str) -> Option<Self> {
        let (kind, name) = name.split_once('-')?;
        match kind {
            "netns" => Some(Self::Netns(name.to_owned())),
            "forwarding" => Some(Self::Forwarding(name.to_owned())),
            _ => None,
        }
    }

    fn undo(&self) -> io::Result<()> {
        match self {
            Self::Netns(name) => {
                let path = Path::new(NETNS).join(name);
                match umount2(&path, MntFlags::MNT_DETACH) {
                    Ok(()) | Err(Errno::EINVAL | Errno::ENOENT) => {}
                    Err(error) => return Err(error.into()),
                }
                absent(fs::remove_file(path))
            }
            Self::Forwarding(interface) => absent(fs::write(forwarding(interface), "0")),
        }
    }

    /// Takes the file with this lock. `None` if somebody else has it.
    fn lock(&self, how: FlockArg) -> io::Result<Option<Flock<File>>> {
        fs::create_dir_all(FOLDER)?;
        let path = self.path();
        loop {
            let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path)?;
            let file = match Flock::lock(file, how) {
                Ok(file) => file,
                Err((_, Errno::EWOULDBLOCK)) => return Ok(None),
                Err((_, error)) => return Err(error.into()),
            };
            // Somebody may have removed it meanwhile.
            if fs::metadata(&path).is_ok_and(|there| file.metadata().is_ok_and(|ours| there.ino() == ours.ino())) {
                return Ok(Some(file));
            }
        }
    }

    /// Undoes it, if nobody uses it.
    fn undo_if_free(&self) -> io::Result<()> {
        let Some(_lock) = self.lock(FlockArg::LockExclusiveNonblock)? else { return Ok(()) };
        self.undo()?;
        fs::remove_file(self.path())
    }
}

/// Undoes what laboratories left that were killed.
pub(crate) fn sweep() {
    for entry in fs::read_dir(FOLDER).into_iter().flatten().filter_map(io::Result::ok) {
        if let Some(leftover) = entry.file_name().to_str().and_then(Leftover::of_file)
            && let Err(error) = leftover.undo_if_free()
        {
            warn!("cannot undo {leftover:?} of an earlier run: {error}");
        }
    }
}

/// Uses a thing until it is dropped; the last user undoes it.
#[derive(Debug)]
struct Used {
    leftover: Leftover,
    lock: Option<Flock<File>>,
}

impl Drop for Used {
    fn drop(&mut self) {
        drop(self.lock.take());
        if let Err(error) = self.leftover.undo_if_free() {
            warn!("cannot undo {:?}: {error}", self.leftover);
        }
    }
}

/// Whether a network namespace can have this name.
///
/// # Errors
/// It is no name of a file. The error says what is accepted.
pub fn check_netns(name: &str) -> std::result::Result<(), &'static str> {
    let is_name = !name.is_empty() && !name.starts_with('.') && !name.contains('/');
    is_name.then_some(()).ok_or("accepted: the name of a file, without / and not beginning with a dot")
}

/// The name of a network namespace, until it is dropped.
#[derive(Debug)]
pub(crate) struct Netns {
    _used: Used,
}

impl Netns {
    /// Gives the namespace this name, for `ip netns exec` and container engines.
    ///
    /// # Errors
    /// If the name is taken, or is no name of a file.
    pub(crate) fn name(name: &str, namespace: &Namespace) -> Result<Self> {
        let doing = || format!("cannot name a network namespace \"{name}\"");
        check_netns(name).map_err(|accepted| {
            Error::Machine(format!("--netns: \"{name}\" cannot be the name of a namespace; {accepted}"))
        })?;
        let path = Path::new(NETNS).join(name);
        let leftover = Leftover::Netns(name.to_owned());
        let taken = || Error::Machine(format!("--netns: {} is there already; choose another name", path.display()));
        fs::create_dir_all(NETNS).doing(doing())?;
        // Before the file of our own: what is there without one is somebody else's.
        if path.exists() {
            return Err(taken());
        }
        let lock = leftover.lock(FlockArg::LockExclusiveNonblock).doing(doing())?.ok_or_else(taken)?;
        let used = Used { leftover, lock: Some(lock) };
        File::create_new(&path).doing(doing())?;
        let source = format!("/proc/self/fd/{}", namespace.as_fd().as_raw_fd());
        mount(Some(source.as_str()), &path, None::<&str>, MsFlags::MS_BIND, None::<&str>).doing(doing())?;
        Ok(Self { _used: used })
    }
}

/// An interface of this machine that forwards packets, until it is dropped.
#[derive(Debug)]
pub(crate) struct Forwarding {
    _used: Used,
}

impl Forwarding {
    /// Has the interface forward what it receives. `None` if it does so anyway.
    pub(crate) fn on(interface: &str) -> Result<Option<Self>> {
        let doing = || format!("cannot have {interface} forward packets");
        let leftover = Leftover::Forwarding(interface.to_owned());
        let is_ours = leftover.path().exists();
        if !is_ours && fs::read_to_string(forwarding(interface)).doing(doing())?.trim() == "1" {
            return Ok(None);
        }
        let lock = leftover.lock(FlockArg::LockShared).doing(doing())?;
        let used = Used { leftover, lock };
        fs::write(forwarding(interface), "1").doing(doing())?;
        Ok(Some(Self { _used: used }))
    }
}

fn forwarding(interface: &str) -> String {
    format!("/proc/sys/net/ipv4/conf/{interface}/forwarding")
}

fn absent(outcome: io::Result<()>) -> io::Result<()> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leftover_is_known_by_its_file() {
        for leftover in [Leftover::Netns("a-b".into()), Leftover::Forwarding("eth0".into())] {
            let path = leftover.path();
            let name = path.file_name().and_then(|name| name.to_str()).expect("text");
            assert_eq!(Leftover::of_file(name), Some(leftover));
        }
        assert_eq!(Leftover::of_file("other"), None);
    }
}
