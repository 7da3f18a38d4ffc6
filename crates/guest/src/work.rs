//! Folders of work, which no other process removes while they are in use, also where processes' numbers mean nothing: in another
//! container that shares the cache.
//!
//! NFS keeps the lock of a folder within one machine (flock(2)). So the name says whose it is, and others leave it alone: the boot, which
//! containers share, and the host by /etc/machine-id and its name together, which outlive the boot. Where there is no such file the name
//! alone has to tell hosts apart.
//!
//! *What it leaves out*: a machine that was copied with both. It and the other one remove each other's folders, also those in use.

use crate::error::{At as _, Result};
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, Flock, FlockArg, RenameFlags, renameat2};
use std::fs::{self, File};
use std::io;
use std::path::Path;
use tempfile::TempDir;

/// A folder with a random name, locked as long as this lives; it goes with this.
#[derive(Debug)]
pub(crate) struct Work {
    folder: TempDir,
    _held: Flock<File>,
}

impl Work {
    /// A new one in `parent`, its name beginning with `prefix`. Those of processes that have ended are removed.
    pub(crate) fn new(parent: &Path, prefix: &str) -> Result<Self> {
        remove_leftovers(parent, prefix);
        let machine = Here::read();
        let prefix = format!("{prefix}{}-{}-", machine.boot, machine.host);
        loop {
            let made = tempfile::Builder::new().prefix(&prefix).tempdir_in(parent);
            let folder = made.at("cannot make a folder in", parent)?;
            // Until it is locked, it looks like a leftover to others.
            let Some(held) = locked(folder.path(), FlockArg::LockExclusive) else { continue };
            if folder.path().exists() {
                return Ok(Self { folder, _held: held });
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Takes the place of another folder, and stays there. If there was one, that goes with this.
    pub(crate) fn take_the_place_of(&self, to: &Path) -> Result<()> {
        let flags = if to.exists() { RenameFlags::RENAME_EXCHANGE } else { RenameFlags::RENAME_NOREPLACE };
        match renameat2(AT_FDCWD, self.path(), AT_FDCWD, to, flags) {
            // File systems without the flags, such as NFS.
            Err(Errno::EINVAL | Errno::ENOSYS) => in_three_steps(self.path(), to),
            moved => moved.map_err(io::Error::from),
        }
        .at("cannot write", to)
    }
}

/// The same where folders cannot be exchanged at once: meanwhile there may be none. What was there comes back if the new one cannot take
/// its place.
fn in_three_steps(from: &Path, to: &Path) -> io::Result<()> {
    let aside = from.with_extension("aside");
    if !to.exists() {
        return fs::rename(from, to);
    }
    fs::rename(to, &aside)?;
    if let Err(error) = fs::rename(from, to) {
        let _ = fs::rename(aside, to);
        return Err(error);
    }
    // Else it is a leftover, which the next one removes.
    let _ = fs::rename(aside, from);
    Ok(())
}

fn locked(folder: &Path, how: FlockArg) -> Option<Flock<File>> {
    Flock::lock(File::open(folder).ok()?, how).ok()
}

/// Removes the folders of work of this machine that nobody holds.
pub(crate) fn remove_leftovers(parent: &Path, prefix: &str) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    let here = Here::read();
    for entry in entries.filter_map(std::result::Result::ok) {
        let name = entry.file_name();
        let is_ours = name.to_str().and_then(|name| name.strip_prefix(prefix)).is_some_and(|rest| here.made(rest));
        if let (true, Some(_held)) = (is_ours, locked(&entry.path(), FlockArg::LockExclusiveNonblock)) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// This machine in the names of its folders: eight digits each.
struct Here {
    /// Of the kernel's boot, within which locks are seen.
    boot: String,
    /// Of the host's machine-id(5) and name. One alone does not do: an image of a container may have the one, and many hosts are called
    /// localhost.
    host: String,
}

impl Here {
    fn read() -> Self {
        let read = |path| fs::read(path).unwrap_or_default();
        Self::of(&read("/proc/sys/kernel/random/boot_id"), &read("/etc/machine-id"), &read("/proc/sys/kernel/hostname"))
    }

    fn of(boot: &[u8], machine_id: &[u8], name: &[u8]) -> Self {
        let digits = |bytes: &[u8]| format!("{:08x}", crc32fast::hash(bytes));
        Self { boot: digits(boot), host: digits(&[machine_id, name].concat()) }
    }

    /// Whether a folder is this machine's, by its name without the prefix. A name without a machine is of an older lasthop, which took all
    /// for its own.
    fn made(&self, name: &str) -> bool {
        let mut parts = name.split('-');
        match (parts.next(), parts.next(), parts.next()) {
            (Some(boot), Some(host), Some(_)) => boot == self.boot || host == self.host,
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_in_use_stays_and_a_leftover_goes() {
        let parent = tempfile::tempdir().expect("a folder");
        let mine = Work::new(parent.path(), "run-").expect("made");
        let Here { boot, host } = Here::read();
        let make = |name: String| {
            let folder = parent.path().join(name);
            fs::create_dir(&folder).expect("made");
            folder
        };
        let of_an_older_lasthop = make("run-Xa81bZ".to_owned());
        let of_a_container = make(format!("run-{boot}-none-Xa81bZ"));
        let of_another_boot = make(format!("run-none-{host}-Xa81bZ"));
        let of_another_machine = make("run-none-none-Xa81bZ".to_owned());
        let state = make("state".to_owned());
        let other = Work::new(parent.path(), "run-").expect("made");
        assert!(mine.path().exists() && of_another_machine.exists() && state.exists());
        assert!(!of_an_older_lasthop.exists() && !of_a_container.exists() && !of_another_boot.exists());
        drop(other);
        drop(mine);
        assert_eq!(fs::read_dir(parent.path()).expect("readable").count(), 2);
    }

    #[test]
    fn hosts_of_one_name_or_of_one_image_are_two() {
        let made = |boot: &str, machine_id: &str, name: &str| {
            let Here { boot, host } = Here::of(boot.as_bytes(), machine_id.as_bytes(), name.as_bytes());
            format!("{boot}-{host}-Xa81bZ")
        };
        let here = Here::of(b"first", b"b0c1", b"localhost");
        assert!(here.made(&made("first", "", "container")) && here.made(&made("second", "b0c1", "localhost")));
        assert!(!here.made(&made("second", "77e2", "localhost")) && !here.made(&made("second", "b0c1", "office")));
        assert!(!here.made(&made("second", "", "localhost")));
    }

    #[test]
    fn a_folder_takes_the_place_of_another_also_in_three_steps() {
        let parent = tempfile::tempdir().expect("a folder");
        let [from, to] = ["from", "to"].map(|name| parent.path().join(name));
        let make = |folder: &Path, file: &str| {
            fs::create_dir(folder).expect("made");
            fs::write(folder.join(file), "").expect("written");
        };
        make(&from, "new");
        in_three_steps(&from, &to).expect("moved");
        assert!(to.join("new").exists() && !from.exists());
        make(&from, "newer");
        in_three_steps(&from, &to).expect("exchanged");
        assert!(to.join("newer").exists() && from.join("new").exists());
        assert_eq!(fs::read_dir(parent.path()).expect("readable").count(), 2);
        in_three_steps(&parent.path().join("none"), &to).expect_err("there is none");
        assert!(to.join("newer").exists());
    }
}
