//! The runs of one command, or of one call from Python: each is taken from the store, or done and stored.

use super::{CACHE_LIMIT_BYTES, Key, Store, StoreError};
use lasthop_scenario::{Build, RunResult, Scenario, Series};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Which store to use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreChoice {
    /// None: every run is done.
    Nowhere,
    /// The user's cache ([`Store::in_cache`]), kept below [`CACHE_LIMIT_BYTES`].
    Cache,
    /// This folder, without a limit.
    Folder(PathBuf),
}

/// The runs of one command, with the store that they are in. Threads may share it.
pub struct StoredRuns {
    used: Option<Used>,
    build: Build,
    /// Tells the user something, in a sentence.
    tell: Box<dyn Fn(&str) + Send + Sync>,
    stored: AtomicU64,
    /// How many were not in the store.
    ran: AtomicU64,
    warned: AtomicBool,
}

struct Used {
    store: Store,
    model: String,
    limit_bytes: u64,
}

impl StoredRuns {
    /// Opens a store for runs of this build, and makes its folder. `model` names what they are computed with
    /// (`lasthop_version::model`), or says why nothing does: then no store is used, and `tell` gets the reason.
    ///
    /// # Errors
    /// If the folder cannot be used. A cache that cannot be used is not: `tell` gets a warning.
    pub fn open(
        choice: &StoreChoice,
        model: Result<String, String>,
        build: Build,
        tell: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Self, StoreError> {
        Self::with(Store::open, choice, model, build, tell)
    }

    /// The same to look runs up only: makes no folder, and finds nothing where there is none.
    pub fn look_in(
        choice: &StoreChoice,
        model: Result<String, String>,
        build: Build,
        tell: impl Fn(&str) + Send + Sync + 'static,
    ) -> Self {
        let store = Self::with(|folder| Ok(Store::at(folder)), choice, model, build, tell);
        store.expect("nothing is made")
    }

    fn with(
        open: fn(&Path) -> Result<Store, StoreError>,
        choice: &StoreChoice,
        model: Result<String, String>,
        build: Build,
        tell: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Self, StoreError> {
        let of = |used| Self {
            used,
            build,
            tell: Box::new(tell),
            stored: AtomicU64::new(0),
            ran: AtomicU64::new(0),
            warned: AtomicBool::new(false),
        };
        let (folder, limit_bytes) = match choice {
            StoreChoice::Nowhere => return Ok(of(None)),
            StoreChoice::Cache => (Store::in_cache(), CACHE_LIMIT_BYTES),
            StoreChoice::Folder(folder) => (Some(folder.clone()), u64::MAX),
        };
        let model = match model {
            Ok(model) => model,
            Err(reason) => {
                let runs = of(None);
                (runs.tell)(&format!("{reason}: no run is stored, and none is taken from the store"));
                return Ok(runs);
            }
        };
        let Some(folder) = folder else { return Ok(of(None)) };
        match open(&folder) {
            Ok(store) => Ok(of(Some(Used { store, model, limit_bytes }))),
            Err(error) if *choice == StoreChoice::Cache => {
                let runs = of(None);
                (runs.tell)(&format!("warning: runs are not stored: {error}"));
                Ok(runs)
            }
            Err(error) => Err(error),
        }
    }

    /// The folder of the store, if one is used.
    pub fn folder(&self) -> Option<&Path> {
        self.used.as_ref().map(|used| used.store.folder())
    }

    /// How many runs were in the store.
    pub fn stored(&self) -> u64 {
        self.stored.load(Ordering::Relaxed)
    }

    /// How many runs were done.
    pub fn ran(&self) -> u64 {
        self.ran.load(Ordering::Relaxed)
    }

    /// The run of this scenario, if it is stored.
    pub fn look_up(&self, scenario: &Scenario, series: bool) -> Option<(RunResult, Series)> {
        let used = self.used.as_ref()?;
        let run = used.store.get(&Key::of(scenario, &used.model)?, series)?;
        let (result, series) = run.of(scenario, self.build.clone());
        Some((result, series.unwrap_or_default()))
    }

    /// Takes a run from the store, or does and stores it. A store that cannot be written costs no run.
    ///
    /// # Errors
    /// Those of `run`.
    pub fn run<E>(
        &self,
        scenario: &Scenario,
        series: bool,
        run: impl FnOnce() -> Result<Option<(RunResult, Series)>, E>,
    ) -> Result<Option<(RunResult, Series)>, E> {
        if let Some(run) = self.look_up(scenario, series) {
            self.stored.fetch_add(1, Ordering::Relaxed);
            return Ok(Some(run));
        }
        let Some((result, samples)) = run()? else { return Ok(None) };
        self.keep(scenario, &result, series.then_some(&samples));
        Ok(Some((result, samples)))
    }

    /// Stores a run that was done, and its series if given. A store that cannot be written costs no run: `tell` gets one
    /// warning.
    pub fn keep(&self, scenario: &Scenario, result: &RunResult, series: Option<&Series>) {
        self.ran.fetch_add(1, Ordering::Relaxed);
        if let Some(used) = &self.used
            && let Some(key) = Key::of(scenario, &used.model)
            && let Err(error) = used.store.put(&key, result, series)
            && !self.warned.swap(true, Ordering::Relaxed)
        {
            (self.tell)(&format!("warning: {error}; it goes on, but such runs will have to be done again"));
        }
    }

    /// At the end: keeps the cache below its limit.
    pub fn finish(&self) {
        let Some(used) = &self.used else { return };
        match used.store.shrink(used.limit_bytes) {
            Ok(0) => {}
            Ok(removed) => (self.tell)(&format!("the store has reached its limit: {removed} old files were removed")),
            Err(error) => (self.tell)(&format!("warning: {error}")),
        }
    }
}
