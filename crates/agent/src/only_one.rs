//! One agent per interface. Two agents that control the same connections would undo each other's work. Two that report
//! the same link would overwrite each other. So each holds a lock on a file in `/run/lasthop`, named by network
//! namespace and interface.
//!
//! Nor do two write metrics into one file: each would show the other's numbers as its own. Nor do two set one radio's RTS
//! threshold ([`crate::link::rts`]).
//!
//! Only root or the agent's own user can write in that folder or open the file, so nobody else can take the lock. The
//! kernel releases it when its holder ends. So the file of a killed agent means nothing; an orderly stop removes it.

use crate::error::{Doing, Error, Result};
use crate::link::interface::Interface;
use lasthop_status::FOLDER;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::libc::O_NOFOLLOW;
use nix::unistd::{User, geteuid};
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, lchown};
use std::path::{Path, PathBuf};

/// The user of the packaged service.
const SERVICE_USER: &str = "lasthop";

/// An exclusive task on an interface.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Task {
    Control,
    Report,
}

/// Held while this agent has the task.
#[derive(Debug)]
pub(crate) struct OnlyOne {
    file: PathBuf,
    _lock: Flock<File>,
}

impl OnlyOne {
    /// Takes the lock for the interface, which is in the calling thread's network namespace.
    ///
    /// # Errors
    /// If another agent holds it (the error names it), or the lock's state is unknown.
    pub(crate) fn take(task: Task, interface: &Interface) -> Result<Self> {
        let (name, does) = match task {
            Task::Control => ("control", "controls"),
            Task::Report => ("report", "reports the last link of"),
        };
        let unsure = || format!("cannot make sure that no other agent {does} {}", interface.name);
        let namespace = fs::metadata("/proc/thread-self/ns/net").doing(unsure())?.ino();
        let file = format!("{name}-{namespace}-{}.lock", interface.index);
        Self::hold(&file).doing(unsure())?.map_err(|holder| {
            Error::Refused(format!("another agent{holder} {does} {} already: stop it first", interface.name))
        })
    }

    /// Takes the lock for a file of metrics, in whatever network namespace.
    ///
    /// # Errors
    /// If another agent writes there (the error names it), or the lock's state is unknown.
    pub(crate) fn writes(path: &Path) -> Result<Self> {
        let whole = std::path::absolute(path).doing(format_args!("cannot tell where {} is", path.display()))?;
        let name = whole.to_string_lossy().replace('-', "--").replace('/', "-");
        // A file's name has 255 bytes at most: of a longer path its end.
        let begin = (name.len().saturating_sub(200)..).find(|at| name.is_char_boundary(*at)).unwrap_or(0);
        let name = &name[begin..];
        Self::hold(&format!("metrics{name}.lock"))?.map_err(|holder| {
            let path = path.display();
            Error::Refused(format!("another agent{holder} writes {path} already: give each agent a file of its own"))
        })
    }

    /// Takes this lock, or else names its holder.
    fn hold(name: &str) -> Result<std::result::Result<Self, String>> {
        Self::hold_in(Path::new(FOLDER), name)
    }

    /// The same in another folder, for tests.
    pub(crate) fn hold_in(folder: &Path, name: &str) -> Result<std::result::Result<Self, String>> {
        make_folder(folder)?;
        let file = folder.join(name);
        let lock = lock(&file).doing(format_args!("cannot lock {}", file.display()))?;
        Ok(lock.map(|lock| Self { file, _lock: lock }))
    }
}

impl Drop for OnlyOne {
    fn drop(&mut self) {
        // Before the lock is released: a process that has opened the file meanwhile sees that it was unlinked.
        let _ = fs::remove_file(&self.file);
    }
}

/// Makes the folder if it is absent, and checks that only its owner can change it.
pub(crate) fn make_folder(folder: &Path) -> Result<()> {
    match DirBuilder::new().mode(0o755).create(folder) {
        // Independent of the umask.
        Ok(()) => fs::set_permissions(folder, Permissions::from_mode(0o755)),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
    .doing(format_args!("cannot make the folder {}", folder.display()))?;
    let found = fs::symlink_metadata(folder).doing(format_args!("cannot look at the folder {}", folder.display()))?;
    let is_ours = found.uid() == 0 || found.uid() == geteuid().as_raw() || Some(found.uid()) == user_of_the_service();
    if !found.is_dir() || !is_ours || found.mode() & 0o022 != 0 {
        return Err(Error::Refused(format!(
            "{} must be a folder of root's (or of the user {SERVICE_USER}) that nobody else can write in, and it has \
             mode {:o} and belongs to user {}: remove it",
            folder.display(),
            found.mode() & 0o7777,
            found.uid()
        )));
    }
    Ok(())
}

/// The user of packaging/lasthop-agent.service, whom root trusts with the folder. `None`: there is none.
fn user_of_the_service() -> Option<u32> {
    User::from_name(SERVICE_USER).ok().flatten().map(|user| user.uid.as_raw())
}

/// Has the owner of the folder own what root makes in it: the service takes it over when root's agent has gone.
pub(crate) fn give_to_owner_of_folder(path: &Path) -> io::Result<()> {
    let owner = fs::metadata(path.parent().unwrap_or(path))?;
    if geteuid().is_root() && owner.uid() != 0 {
        lchown(path, Some(owner.uid()), Some(owner.gid()))?;
    }
    Ok(())
}

/// Locks the file, or else names the holder for a message.
fn lock(path: &Path) -> io::Result<Result<Flock<File>, String>> {
    loop {
        let open = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(O_NOFOLLOW)
            .open(path);
        let mut lock = match Flock::lock(open?, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => lock,
            Err((mut file, Errno::EWOULDBLOCK)) => {
                let mut holder = String::new();
                let _ = file.read_to_string(&mut holder);
                return Ok(Err(holder.trim().parse().map_or(String::new(), |pid: u32| format!(" (process {pid})"))));
            }
            Err((_, error)) => return Err(error.into()),
        };
        let locked = lock.metadata()?;
        // The former holder may have removed the file, and another process may have made a new one.
        if fs::metadata(path).is_ok_and(|there| (there.dev(), there.ino()) == (locked.dev(), locked.ino())) {
            give_to_owner_of_folder(path)?;
            // For a message of others: on a full disk they do without.
            let _ = lock.set_len(0).and_then(|()| writeln!(lock, "{}", std::process::id()));
            return Ok(Ok(lock));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_held_by_one_and_is_free_again_whatever_is_left_in_the_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("control-1-2.lock");
        let first = lock(&file).expect("a file").expect("free");
        let refused = lock(&file).expect("a file").expect_err("held");
        assert_eq!(refused, format!(" (process {})", std::process::id()));
        assert_eq!(first.metadata().expect("open").mode() & 0o777, 0o600, "others cannot even open it");
        // As if the holder had been killed: the file stays, the lock does not.
        drop(first);
        assert!(file.exists());
        let held = OnlyOne { file: file.clone(), _lock: lock(&file).expect("a file").expect("free again") };
        drop(held);
        assert!(!file.exists());
    }

    #[test]
    fn a_file_of_metrics_has_one_writer() {
        if !geteuid().is_root() {
            assert!(std::env::var_os("LASTHOP_REQUIRE_ROOT_TESTS").is_none(), "the lock is in a folder of root's");
            return;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("lasthop.prom");
        let first = OnlyOne::writes(&file).expect("free");
        let refused = OnlyOne::writes(&file).expect_err("held").to_string();
        assert!(refused.contains(&format!("another agent (process {}) writes ", std::process::id())), "{refused}");
        OnlyOne::writes(&folder.path().join("other.prom")).expect("another file");
        drop(first);
        OnlyOne::writes(&file).expect("free again");
    }

    #[test]
    fn a_folder_that_others_can_write_in_is_refused_with_its_mode_and_owner() {
        let parent = tempfile::tempdir().expect("a folder");
        let folder = parent.path().join("lasthop");
        make_folder(&folder).expect("made");
        assert_eq!(fs::metadata(&folder).expect("there").mode() & 0o7777, 0o755);
        make_folder(&folder).expect("there already");
        fs::set_permissions(&folder, Permissions::from_mode(0o1777)).expect("ours");
        let refused = make_folder(&folder).expect_err("anybody can write there").to_string();
        assert!(refused.contains("has mode 1777 and belongs to user"), "{refused}");
        if geteuid().is_root() {
            fs::set_permissions(&folder, Permissions::from_mode(0o755)).expect("ours");
            std::os::unix::fs::chown(&folder, Some(65534), None).expect("root may");
            let refused = make_folder(&folder).expect_err("somebody else's").to_string();
            assert!(refused.contains("belongs to user 65534: remove it"), "{refused}");
        }
    }
}
