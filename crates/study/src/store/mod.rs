//! The runs of simulated hosts that have been done, in a folder.
//!
//! ```text
//! DIR/3f/9a…            an entry: the result of one run, named after its key
//! DIR/3f/9a….series     its series, if they were asked for
//! DIR/tmp/              what is being written
//! ```
//!
//! - [`Key`]: SHA-256 over the resolved scenario, seed included, and the model that computes it.
//! - An entry is written to a temporary file and renamed. It carries a checksum over its key and content. So several
//!   processes may write one store, and what is truncated or damaged counts as absent and is removed.
//! - [`StoredRun::of`] gives the result as the asking build would have made it. Its wall-clock fields are those of the
//!   run that was done.
//!
//! *What it leaves out*: runs of kernel hosts, which are measurements. Durability: after a loss of power an entry may
//! be damaged, and its run is done again.

mod entry;
mod key;
mod runs;

pub use key::Key;
pub use runs::{StoreChoice, StoredRuns};

use lasthop_scenario::{Build, HostsKind, RunResult, Scenario, Series};
use std::collections::BTreeSet;
use std::fs::{self, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

/// The most that the store in the user's cache keeps, in bytes: some half a million runs without series.
pub const CACHE_LIMIT_BYTES: u64 = 2 << 30;
/// Files that a killed process was writing are removed when they are as old as this.
const ABANDONED_AFTER: Duration = Duration::from_secs(24 * 3600);
const SERIES: &str = "series";
const TEMPORARY: &str = "tmp";

/// A store of runs. Threads may share it.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    /// What was read or written by way of this value: never removed by it.
    used: Mutex<BTreeSet<Key>>,
}

/// A run from a store.
#[derive(Clone, Debug)]
pub struct StoredRun {
    result: RunResult,
    series: Option<Series>,
}

/// What [`Store::merge`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// Runs that were copied.
    pub copied: u64,
    /// Runs that were in both.
    pub known: u64,
    /// Damaged runs, which were left out.
    pub damaged: u64,
}

/// Why a store cannot be used, or a run not be stored.
#[derive(Debug, thiserror::Error)]
#[error("cannot {doing} {}: {reason}", path.display())]
pub struct StoreError {
    doing: &'static str,
    path: PathBuf,
    // Not the error's source: whoever prints those too would say it twice.
    reason: io::Error,
}

impl Store {
    /// Opens the store in this folder, which is created if missing.
    ///
    /// # Errors
    /// If the folder cannot be created.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let temporary = folder.join(TEMPORARY);
        fs::create_dir_all(&temporary).map_err(failed("make the folder", &temporary))?;
        Ok(Self::at(folder))
    }

    /// The store in this folder, to look runs up: the folder need not be there. What is put into it may then fail.
    pub fn at(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), used: Mutex::default() }
    }

    /// The folder of the user's store: `$XDG_CACHE_HOME/lasthop/runs`, or `~/.cache/lasthop/runs`. `None` if neither
    /// variable is an absolute path.
    pub fn in_cache() -> Option<PathBuf> {
        let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
        Some(cache.join("lasthop/runs"))
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The run of this key; with its series if `series`. `None` if it is absent or damaged, or if its series are wanted
    /// and absent.
    pub fn get(&self, key: &Key, series: bool) -> Option<StoredRun> {
        let result: RunResult = self.read(key, "")?;
        let series: Option<Series> = if series { Some(self.read(key, SERIES)?) } else { None };
        self.use_now(key);
        Some(StoredRun { result, series })
    }

    /// Stores a run, and its series if given. Replaces what is there, which is equal but for its wall-clock fields.
    ///
    /// # Errors
    /// If a file cannot be written. Nothing of it remains then.
    ///
    /// # Panics
    /// If it is a run of kernel hosts.
    pub fn put(&self, key: &Key, result: &RunResult, series: Option<&Series>) -> Result<(), StoreError> {
        assert_eq!(result.hosts_kind, HostsKind::Simulated, "a run of kernel hosts is a measurement");
        // Series first: whoever finds the result may ask for them.
        if let Some(series) = series {
            self.write(key, SERIES, &entry::encode(key, series))?;
        }
        let result = RunResult { scenario: serde_json::Value::Null, build: Build::default(), ..result.clone() };
        self.write(key, "", &entry::encode(key, &result))?;
        self.use_now(key);
        Ok(())
    }

    /// Copies the runs of another store that are absent or damaged here. Checks each.
    ///
    /// # Errors
    /// If the other cannot be read, or this one not be written.
    pub fn merge(&self, from: &Path) -> Result<Merged, StoreError> {
        let mut merged = Merged::default();
        for file in files(from)? {
            let is_run = file.part.is_empty();
            let here = fs::read(self.path(&file.key, file.part));
            if here.is_ok_and(|bytes| entry::content(&file.key, &bytes).is_some()) {
                merged.known += u64::from(is_run);
                continue;
            }
            let bytes = match fs::read(&file.path) {
                // Another process has removed it.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                read => read.map_err(failed("read", &file.path))?,
            };
            if entry::content(&file.key, &bytes).is_none() {
                merged.damaged += 1;
                continue;
            }
            self.write(&file.key, file.part, &bytes)?;
            merged.copied += u64::from(is_run);
        }
        Ok(merged)
    }

    /// Removes least recently used runs until at most `limit` bytes remain, but none that was used by way of this
    /// value; and what killed processes were writing. Returns the number of files removed.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn shrink(&self, limit: u64) -> Result<u64, StoreError> {
        let now = SystemTime::now();
        let temporary = self.folder.join(TEMPORARY);
        for file in fs::read_dir(&temporary).map_err(failed("read", &temporary))?.flatten() {
            let written = file.metadata().and_then(|data| data.modified());
            let age = written.ok().and_then(|written| now.duration_since(written).ok());
            if age.is_some_and(|age| age > ABANDONED_AFTER) {
                let _ = fs::remove_file(file.path());
            }
        }
        let mut files = files(&self.folder)?;
        let mut total: u64 = files.iter().map(|file| file.bytes).sum();
        files.sort_by(|one, other| (one.used, &one.path).cmp(&(other.used, &other.path)));
        let used = self.used.lock().expect("no thread panics while it holds the lock");
        let mut removed = 0;
        for file in files.iter().filter(|file| !used.contains(&file.key)) {
            if total <= limit {
                break;
            }
            // Another process may have removed it.
            if fs::remove_file(&file.path).is_ok() {
                removed += 1;
            }
            total -= file.bytes;
        }
        Ok(removed)
    }

    fn path(&self, key: &Key, part: &str) -> PathBuf {
        let name = key.to_string();
        self.folder.join(&name[..2]).join(&name[2..]).with_extension(part)
    }

    fn read<T: serde::de::DeserializeOwned>(&self, key: &Key, part: &str) -> Option<T> {
        let path = self.path(key, part);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                tracing::debug!("cannot read the stored run {}: {error}", path.display());
                return None;
            }
        };
        let value = entry::decode(key, &bytes);
        if value.is_none() {
            tracing::debug!("the stored run {} is damaged: it is removed, and done again", path.display());
            let _ = fs::remove_file(&path);
        }
        value
    }

    fn write(&self, key: &Key, part: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let path = self.path(key, part);
        let of_path = failed("store a run as", &path);
        let write = || {
            fs::create_dir_all(path.parent().expect("an entry is in a folder"))?;
            let mut options = tempfile::Builder::new();
            // The umask decides, as for any file.
            let mut file =
                options.permissions(Permissions::from_mode(0o666)).tempfile_in(self.folder.join(TEMPORARY))?;
            file.write_all(bytes)?;
            file.persist(&path)?;
            Ok(())
        };
        write().map_err(of_path)
    }

    /// The time of modification is that of the last use. A store that may only be read keeps its times.
    fn use_now(&self, key: &Key) {
        for part in ["", SERIES] {
            if let Ok(file) = File::open(self.path(key, part)) {
                let _ = file.set_modified(SystemTime::now());
            }
        }
        self.used.lock().expect("no thread panics while it holds the lock").insert(*key);
    }
}

impl StoredRun {
    /// The result of this scenario, and the series if they were asked for, as `build` would have made them.
    pub fn of(self, scenario: &Scenario, build: Build) -> (RunResult, Option<Series>) {
        (RunResult { scenario: scenario.to_json(), build, ..self.result }, self.series)
    }

    /// What the run took when it was done, in seconds of a core.
    pub fn wall_s(&self) -> f64 {
        self.result.wall_s
    }
}

struct StoredFile {
    key: Key,
    part: &'static str,
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
}

/// Every file of an entry. Others are left alone.
fn files(folder: &Path) -> Result<Vec<StoredFile>, StoreError> {
    let mut files = Vec::new();
    for group in fs::read_dir(folder).map_err(failed("read", folder))?.flatten() {
        let Ok(entries) = fs::read_dir(group.path()) else { continue };
        for entry in entries.flatten() {
            let path = entry.path();
            let name = format!("{}{}", group.file_name().display(), entry.file_name().display());
            let (name, part) = match name.split_once('.') {
                Some((name, SERIES)) => (name, SERIES),
                Some(_) => continue,
                None => (name.as_str(), ""),
            };
            // What another process removes meanwhile is not there.
            let (Some(key), Ok(data)) = (Key::parse(name), entry.metadata()) else { continue };
            let used = data.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            files.push(StoredFile { key, part, path, bytes: data.len(), used });
        }
    }
    // Series before results, as they are written.
    files.sort_by(|one, other| other.part.cmp(one.part).then_with(|| one.path.cmp(&other.path)));
    Ok(files)
}

fn failed(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    move |reason| StoreError { doing, path, reason }
}
