//! The folder of `--out`: lasthop writes and removes its own files there, and no others.
//!
//! A folder with a result has a file [`MANIFEST`] that lists every file of the result with its SHA-256. Only these
//! files are ever replaced or removed, and only unchanged ones. Another file in the way is an error before the run
//! begins.
//!
//! A result appears completely or not at all:
//!
//! 1. All files are written into [`NEW`] inside the folder, the manifest last.
//! 2. The earlier result is moved into [`OLD`].
//! 3. The new one is moved into its place, the manifest last. From then on it is the result.
//! 4. [`OLD`] is removed.
//!
//! While the runs go on, [`LIVE_FOLDER`] inside the folder has what `lasthop view` shows of them.
//!
//! A failure in 1 to 3 is undone at once. After a power failure or SIGKILL, the next use of the folder undoes or
//! finishes the work, unless another file is in the way by then. The folder is locked (flock(2)) from before the run
//! until the end, so it has one writer.
//!
//! *What it leaves out*: fsync. After a power failure files may be short, which their SHA-256 shows.

use crate::{UNDISTURBED, tell};
use anyhow::{Context, Result, bail, ensure};
use lasthop_files::{MOST_RESULT_BYTES, open_to_read, text_of};
use lasthop_report::{LIVE_FOLDER, Live, ReportError};
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, Flock, FlockArg, OFlag, RenameFlags, renameat2};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Component, Path, PathBuf};

/// Lists the files of the folder's result.
const MANIFEST: &str = ".lasthop.json";
/// A result that is not complete yet.
const NEW: &str = ".lasthop-new";
/// The earlier result, until the new one is in its place.
const OLD: &str = ".lasthop-old";
/// The version of the manifest that this build reads and writes.
const SCHEMA_VERSION: u32 = 1;

/// The kind of result in a folder. One kind does not replace another: its files differ, and many would be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Run,
    Comparison,
    Study,
}

/// A folder to which only this process writes.
pub(crate) struct OutFolder {
    path: PathBuf,
    kind: Kind,
    /// The manifest of the earlier result.
    earlier: Option<Manifest>,
    /// Folders that this process made, the outermost first. They are removed if nothing is kept.
    made: Vec<PathBuf>,
    lock: Option<Flock<File>>,
}

/// The result in a folder.
#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    schema_version: u32,
    kind: Kind,
    /// Relative paths, each with the SHA-256 of the file in hexadecimal digits.
    files: BTreeMap<String, String>,
}

impl OutFolder {
    /// Makes the folder if it is missing, and checks before the run whether a result of this kind with these files can
    /// be kept there. A folder made here is removed on drop, unless [`OutFolder::keep`] was called.
    ///
    /// # Errors
    /// If the folder cannot be made or written, another process writes to it, or a file is in the way. The message says
    /// what to do.
    pub(crate) fn claim(path: &Path, kind: Kind, planned: &[String]) -> Result<Self> {
        let mut folder = Self { path: path.to_owned(), kind, earlier: None, made: Vec::new(), lock: None };
        let cannot = || format!("cannot keep results in {}", path.display());
        folder.lock().with_context(cannot)?;
        folder.recover().with_context(cannot)?;
        folder.earlier = Manifest::read(&path.join(MANIFEST)).with_context(cannot)?;
        folder.check(planned.iter().map(String::as_str))?;
        let probe = path.join(NEW);
        fs::create_dir(&probe).and_then(|()| fs::remove_dir(&probe)).with_context(cannot)?;
        Ok(folder)
    }

    /// Begins to show these runs in the folder. Without room for that nothing is shown, and nothing else is lost.
    pub(crate) fn live(&self, runs: usize) -> Option<Live> {
        let live = Live::begin(&self.path, runs);
        let folder = self.path.display();
        let cannot = |error| {
            tell(format_args!(
                "note: `lasthop view` will not show this before its end: cannot write in {folder}: {error}"
            ));
        };
        live.map_err(cannot).ok()
    }

    /// Keeps the files that `write` writes into its folder, in place of the earlier result. Returns the path.
    ///
    /// # Errors
    /// If a file cannot be written. The folder then has its earlier contents.
    pub(crate) fn keep(mut self, write: impl FnOnce(&Path) -> Result<(), ReportError>) -> Result<PathBuf> {
        let new = self.path.join(NEW);
        let kept = self.write_new(&new, write).and_then(|manifest| self.put_in_place(&manifest));
        let left = if self.made.is_empty() { "it has what it had before" } else { "it was new, and is gone again" };
        if kept.is_ok() {
            self.made.clear();
        }
        kept.with_context(|| format!("the result is not kept in {}: {left}", self.path.display()))?;
        Ok(self.path.clone())
    }

    /// Step 1.
    fn write_new(&self, new: &Path, write: impl FnOnce(&Path) -> Result<(), ReportError>) -> Result<Manifest> {
        fs::create_dir(new).with_context(|| format!("cannot make {}", new.display()))?;
        write(new)?;
        let manifest = Manifest::of(new, self.kind)?;
        // Checks files that appeared in the folder during the run.
        self.check(manifest.files.keys().map(String::as_str))?;
        let text = serde_json::to_string_pretty(&manifest).expect("a manifest is made of text");
        let path = new.join(MANIFEST);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(manifest)
    }

    /// Steps 2 to 4.
    fn put_in_place(&self, manifest: &Manifest) -> Result<()> {
        // An impatient Ctrl-C ends the process at once; here it waits until both results are in their places.
        let _undisturbed = UNDISTURBED.lock();
        let swapped = self.swap(manifest);
        let swapped = match swapped {
            // The result is in its place. The next command that uses the folder removes the rest.
            Ok(()) => {
                if let Err(error) = self.finish() {
                    tell(format_args!(
                        "note: cannot remove what the result replaces in {}: {error}",
                        self.path.display()
                    ));
                }
                Ok(())
            }
            Err(error) => self.undo().and(Err(error)),
        };
        swapped.context("cannot put it in its place")
    }

    fn swap(&self, manifest: &Manifest) -> io::Result<()> {
        let (new, old) = (self.path.join(NEW), self.path.join(OLD));
        fs::create_dir(&old).map_err(named(&old))?;
        for file in self.earlier.iter().flat_map(|earlier| earlier.files.keys()) {
            rename_if_there(&self.path, &old, file)?;
        }
        rename_if_there(&self.path, &old, MANIFEST)?;
        for file in manifest.files.keys() {
            rename(&new, &self.path, file)?;
        }
        rename(&new, &self.path, MANIFEST)
    }

    /// After the new result is in its place: removes the earlier one, and empty folders.
    fn finish(&self) -> io::Result<()> {
        let (new, old) = (self.path.join(NEW), self.path.join(OLD));
        self.remove_empty(files_in(&old)?.iter());
        remove(&old)?;
        remove(&new)
    }

    /// Removes the folders of these files that are now empty.
    fn remove_empty<'a>(&self, files: impl Iterator<Item = &'a String>) {
        for folder in files.flat_map(|file| folders_of(file)) {
            // Fails if the folder is not empty.
            let _ = fs::remove_dir(self.path.join(folder));
        }
    }

    /// The new result did not get into its place: restores the earlier one.
    fn undo(&self) -> io::Result<()> {
        let (new, old) = (self.path.join(NEW), self.path.join(OLD));
        let manifest = Manifest::read(&new.join(MANIFEST)).ok().flatten();
        for (file, digest) in manifest.iter().flat_map(|manifest| &manifest.files) {
            let (target, source) = (self.path.join(file), new.join(file));
            if !source.exists() && digest_of(&target).is_ok_and(|found| found == *digest) {
                rename(&self.path, &new, file)?;
            }
        }
        // Foreign files in their places are left alone, and so is everything else.
        let earlier = files_in(&old)?;
        if let Some(file) = earlier.iter().find(|file| self.path.join(file).symlink_metadata().is_ok()) {
            let (there, before) = (self.path.join(file), old.join(file));
            let both = format!("{} is in the place of {}: move one of them away", there.display(), before.display());
            return Err(io::Error::new(ErrorKind::AlreadyExists, both));
        }
        // The manifest sorts first, and must be moved last.
        for file in earlier.iter().filter(|file| *file != MANIFEST) {
            rename(&old, &self.path, file)?;
        }
        rename_if_there(&old, &self.path, MANIFEST)?;
        self.remove_empty(manifest.iter().flat_map(|manifest| manifest.files.keys()));
        remove(&old)?;
        remove(&new)
    }

    /// Undoes or finishes the work of a killed process.
    fn recover(&self) -> Result<()> {
        let (new, old) = (self.path.join(NEW), self.path.join(OLD));
        remove(&self.path.join(LIVE_FOLDER))?;
        if !old.exists() {
            return Ok(remove(&new)?);
        }
        let is_whole = !new.join(MANIFEST).exists() && self.path.join(MANIFEST).exists();
        if is_whole { self.finish() } else { self.undo() }.context("cannot restore what an earlier process left there")
    }

    /// Makes the folder if necessary, and locks it.
    fn lock(&mut self) -> Result<()> {
        loop {
            self.made.extend(make(&self.path)?);
            // A pipe would wait for its writer.
            let opened = File::options().read(true).custom_flags(OFlag::O_DIRECTORY.bits()).open(&self.path);
            let folder = match opened {
                Err(error) if error.kind() == ErrorKind::NotADirectory => bail!("it is not a folder"),
                opened => opened?,
            };
            let locked = match Flock::lock(folder, FlockArg::LockExclusiveNonblock) {
                Ok(locked) => locked,
                Err((_, Errno::EWOULDBLOCK)) => {
                    bail!("another lasthop is about to write there: wait until it has ended, or give another folder")
                }
                Err((_, error)) => return Err(error).context("cannot lock it"),
            };
            // The process that made the folder may have removed it while this one waited for the lock.
            let inode = |data: fs::Metadata| (data.dev(), data.ino());
            if fs::metadata(&self.path)
                .is_ok_and(|there| locked.metadata().is_ok_and(|ours| inode(there) == inode(ours)))
            {
                self.lock = Some(locked);
                return Ok(());
            }
        }
    }

    /// Whether these files can be written without touching a file that is not lasthop's.
    fn check<'a>(&self, planned: impl Iterator<Item = &'a str>) -> Result<()> {
        let folder = self.path.display();
        let ours: BTreeSet<&str> =
            self.earlier.iter().flat_map(|earlier| earlier.files.keys()).map(String::as_str).collect();
        if let Some(earlier) = self.earlier.as_ref().filter(|earlier| earlier.kind != self.kind) {
            bail!("{folder} has the result of {}, which {} would remove: give another folder", earlier.kind, self.kind);
        }
        for (file, digest) in self.earlier.iter().flat_map(|earlier| &earlier.files) {
            let path = self.path.join(file);
            match digest_of(&path) {
                Ok(found) if found == *digest => {}
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
                Ok(_) => bail!(
                    "{file} in {folder} has been changed since lasthop wrote it, and would be replaced: move it away, or give \
                     another folder"
                ),
                Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
            }
        }
        for file in planned {
            let in_the_way = |what: &str| {
                format!(
                    "{what} in {folder} was not written by lasthop, and is in the way: move it away, or give another folder"
                )
            };
            if !ours.contains(file) && self.path.join(file).symlink_metadata().is_ok() {
                bail!(in_the_way(file));
            }
            for inside in folders_of(file) {
                if fs::metadata(self.path.join(inside)).is_ok_and(|data| !data.is_dir()) {
                    bail!(in_the_way(&inside.display().to_string()));
                }
            }
        }
        Ok(())
    }
}

impl Drop for OutFolder {
    fn drop(&mut self) {
        if self.lock.is_some() {
            let _ = remove(&self.path.join(LIVE_FOLDER));
        }
        // Work interrupted between 2 and 4 needs both folders: the next process restores it.
        if self.lock.is_some() && !self.path.join(OLD).exists() {
            let _ = remove(&self.path.join(NEW));
        }
        // Fails if the folder is not empty: then it holds other files, too.
        self.made.iter().rev().for_each(|folder| {
            let _ = fs::remove_dir(folder);
        });
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Run => "a run",
            Self::Comparison => "a comparison",
            Self::Study => "a study",
        })
    }
}

impl Manifest {
    /// The manifest of all files in a folder.
    fn of(folder: &Path, kind: Kind) -> Result<Self> {
        let files = files_in(folder)?.into_iter().map(|file| {
            let path = folder.join(&file);
            let digest = digest_of(&path).with_context(|| format!("cannot read {}", path.display()))?;
            Ok((file, digest))
        });
        Ok(Self { schema_version: SCHEMA_VERSION, kind, files: files.collect::<Result<_>>()? })
    }

    /// `None` if there is none.
    fn read(path: &Path) -> Result<Option<Self>> {
        let text = match text_of(path, MOST_RESULT_BYTES) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        };
        let what_to_do = || format!("{} is not lasthop's list of its files: give another folder", path.display());
        let manifest: Self = serde_json::from_str(&text).with_context(what_to_do)?;
        let inside = |file: &String| Path::new(file).components().all(|part| matches!(part, Component::Normal(_)));
        ensure!(manifest.schema_version == SCHEMA_VERSION && manifest.files.keys().all(inside), what_to_do());
        Ok(Some(manifest))
    }
}

/// Makes a folder and its missing parents. Returns the folders made, the outermost first.
fn make(path: &Path) -> io::Result<Vec<PathBuf>> {
    let missing = |folder: &&Path| *folder != Path::new("") && !folder.exists();
    let mut missing: Vec<&Path> = path.ancestors().take_while(missing).collect();
    missing.reverse();
    let mut made = Vec::new();
    for folder in missing {
        match fs::create_dir(folder) {
            Ok(()) => made.push(folder.to_owned()),
            Err(error) if error.kind() == ErrorKind::AlreadyExists && folder.is_dir() => {}
            Err(error) => {
                made.iter().rev().for_each(|folder: &PathBuf| {
                    let _ = fs::remove_dir(folder);
                });
                return Err(named(folder)(error));
            }
        }
    }
    Ok(made)
}

/// The folders that contain a file, the innermost first.
fn folders_of(file: &str) -> impl Iterator<Item = &Path> {
    Path::new(file).ancestors().skip(1).filter(|folder| *folder != Path::new(""))
}

/// The files in a folder and its subfolders, as relative paths in alphabetical order.
fn files_in(folder: &Path) -> io::Result<Vec<String>> {
    let mut files = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(inside) = folders.pop() {
        let whole = folder.join(&inside);
        let entries = match fs::read_dir(&whole) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            entries => entries.map_err(named(&whole))?,
        };
        for entry in entries {
            let entry = entry.map_err(named(&whole))?;
            let path = inside.join(entry.file_name());
            if entry.file_type().map_err(named(&entry.path()))?.is_dir() {
                folders.push(path);
            } else {
                files.push(path.to_string_lossy().into_owned());
            }
        }
    }
    files.sort();
    Ok(files)
}

fn digest_of(path: &Path) -> io::Result<String> {
    let mut digest = Sha256::new();
    io::copy(&mut open_to_read(path)?, &mut DigestWriter(&mut digest))?;
    Ok(digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

struct DigestWriter<'a>(&'a mut Sha256);

impl io::Write for DigestWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Moves a file to the same place in another folder.
fn rename(from: &Path, to: &Path, file: &str) -> io::Result<()> {
    let target = to.join(file);
    if let Some(folder) = target.parent() {
        fs::create_dir_all(folder).map_err(named(folder))?;
    }
    rename_to_free(&from.join(file), &target)
}

/// The same error, with the file's name.
fn named(path: &Path) -> impl FnOnce(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Moves a file to a free path in a folder that is there. A file that appeared there meanwhile is an error, and stays (renameat2(2)).
fn rename_to_free(from: &Path, to: &Path) -> io::Result<()> {
    let renamed = match renameat2(AT_FDCWD, from, AT_FDCWD, to, RenameFlags::RENAME_NOREPLACE) {
        // File systems without the flag, such as NFS.
        Err(Errno::EINVAL | Errno::ENOSYS) if to.symlink_metadata().is_err() => fs::rename(from, to),
        Err(Errno::EEXIST | Errno::EINVAL | Errno::ENOSYS) => {
            return Err(io::Error::new(ErrorKind::AlreadyExists, format!("{} is in the way", to.display())));
        }
        renamed => renamed.map_err(io::Error::from),
    };
    // What is missing is the file.
    renamed.map_err(|error| named(if error.kind() == ErrorKind::NotFound { from } else { to })(error))
}

fn rename_if_there(from: &Path, to: &Path, file: &str) -> io::Result<()> {
    if from.join(file).symlink_metadata().is_ok() { rename(from, to, file) } else { Ok(()) }
}

/// Removes one of lasthop's own folders with its contents.
fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(named(folder)(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_has_come_in_the_way_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let (from, to) = (folder.path().join("ours"), folder.path().join("mine"));
        fs::write(&from, "ours").and_then(|()| fs::write(&to, "mine")).expect("two files");
        let error = rename_to_free(&from, &to).expect_err("it is in the way");
        assert!(error.to_string().contains("mine is in the way"), "{error}");
        assert_eq!(fs::read_to_string(&to).expect("it stays"), "mine");
        fs::remove_file(&to).and_then(|()| rename_to_free(&from, &to)).expect("the way is free");
        assert_eq!(fs::read_to_string(&to).expect("it has moved"), "ours");
    }

    #[test]
    fn what_cannot_be_moved_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        fs::create_dir_all(from.join("figures")).and_then(|()| fs::create_dir(&to)).expect("folders");
        fs::write(from.join("figures/rtt.svg"), "").and_then(|()| fs::write(to.join("figures"), "")).expect("files");
        let error = rename(&from, &to, "figures/rtt.svg").expect_err("a file is no folder").to_string();
        assert!(error.contains("to/figures: "), "{error}");
        let error = rename(&from, &to, "report.html").expect_err("there is none").to_string();
        assert!(error.contains("from/report.html: "), "{error}");
    }

    #[test]
    fn a_folder_that_cannot_be_made_or_read_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        fs::write(&file, "").expect("written");
        let error = make(&file.join("deep/er")).expect_err("a file is no folder").to_string();
        assert!(error.contains("file/deep: "), "{error}");
        let error = files_in(&file).expect_err("a file is no folder").to_string();
        assert!(error.contains("/file/: "), "{error}");
    }
}
