//! The store of runs, as `compare` and `study` use it (docs/guide/study-store.md).

use crate::{build, tell};
use anyhow::{Result, bail};
use clap::Args;
use lasthop_scenario::{HostsKind, RunResult, Scenario, Series};
use lasthop_study::store::CACHE_LIMIT_BYTES;
use lasthop_study::{Key, Store};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[derive(Args, Clone, Default)]
pub(crate) struct StoreArguments {
    /// Store the runs of simulated hosts in this folder, and take from it what has run before; without it in
    /// $XDG_CACHE_HOME/lasthop/runs, of 2 GiB at most
    #[arg(long, value_name = "DIR", conflicts_with = "no_store")]
    pub(crate) store: Option<PathBuf>,
    /// Store no run, and do every run again
    #[arg(long)]
    pub(crate) no_store: bool,
}

/// The runs of one command.
#[derive(Default)]
pub(crate) struct StoredRuns {
    used: Option<Used>,
    stored: AtomicU64,
    /// How many were not in the store.
    ran: AtomicU64,
    warned: AtomicBool,
}

struct Used {
    store: Store,
    model: String,
    /// Whether it is in the user's cache, which has a limit.
    is_cache: bool,
}

impl StoreArguments {
    /// Opens the store that these ask for. Without `model`, a store cannot be used.
    pub(crate) fn open(&self, hosts: HostsKind, model: Result<String, String>) -> Result<StoredRuns> {
        if hosts == HostsKind::Kernel && self.store.is_some() {
            bail!("runs of kernel hosts are measurements, and each is done: --store is for simulated hosts");
        }
        if hosts == HostsKind::Kernel || self.no_store {
            return Ok(StoredRuns::default());
        }
        let model = match model {
            Ok(model) => model,
            Err(reason) => {
                tell(format_args!("{reason}: no run is stored, and none is taken from the store"));
                return Ok(StoredRuns::default());
            }
        };
        if let Some(folder) = &self.store {
            return Ok(StoredRuns::of(Store::open(folder)?, model, false));
        }
        let Some(folder) = Store::in_cache() else { return Ok(StoredRuns::default()) };
        Ok(Store::open(&folder).map_or_else(
            |error| {
                tell(format_args!("warning: runs are not stored: {error}"));
                StoredRuns::default()
            },
            |store| StoredRuns::of(store, model, true),
        ))
    }
}

/// What names the simulated runs of this build.
pub(crate) fn model() -> Result<String, String> {
    lasthop_version::model().map_err(|reason| reason.to_string())
}

impl StoredRuns {
    pub(crate) fn of(store: Store, model: String, is_cache: bool) -> Self {
        Self { used: Some(Used { store, model, is_cache }), ..Self::default() }
    }

    pub(crate) fn folder(&self) -> Option<&Path> {
        self.used.as_ref().map(|used| used.store.folder())
    }

    /// How many runs were in the store.
    pub(crate) fn stored(&self) -> u64 {
        self.stored.load(Ordering::Relaxed)
    }

    /// The run of this scenario, if it is stored.
    pub(crate) fn look_up(&self, scenario: &Scenario, series: bool) -> Option<(RunResult, Series)> {
        let used = self.used.as_ref()?;
        let run = used.store.get(&Key::of(scenario, &used.model)?, series)?;
        let (result, series) = run.of(scenario, build());
        Some((result, series.unwrap_or_default()))
    }

    /// Takes a run from the store, or does and stores it. A store that cannot be written costs no run.
    pub(crate) fn run(
        &self,
        scenario: &Scenario,
        series: bool,
        run: impl FnOnce() -> Result<Option<(RunResult, Series)>>,
    ) -> Result<Option<(RunResult, Series)>> {
        if let Some(run) = self.look_up(scenario, series) {
            self.stored.fetch_add(1, Ordering::Relaxed);
            return Ok(Some(run));
        }
        let Some((result, samples)) = run()? else { return Ok(None) };
        self.ran.fetch_add(1, Ordering::Relaxed);
        if let Some(used) = &self.used
            && let Some(key) = Key::of(scenario, &used.model)
        {
            let stored = used.store.put(&key, &result, series.then_some(&samples));
            if let Err(error) = stored
                && !self.warned.swap(true, Ordering::Relaxed)
            {
                tell(format_args!("warning: {error}; it goes on, but such runs will have to be done again"));
            }
        }
        Ok(Some((result, samples)))
    }

    /// At the end: says what came from the store, and keeps the cache below its limit.
    pub(crate) fn finish(&self) {
        let Some(used) = &self.used else { return };
        if self.stored() > 0 {
            tell(format_args!("{} runs were in the store, {} were done", self.stored(), self.ran()));
        }
        let limit = if used.is_cache { CACHE_LIMIT_BYTES } else { u64::MAX };
        match used.store.shrink(limit) {
            Ok(0) => {}
            Ok(removed) => tell(format_args!("the store has reached its limit: {removed} old files were removed")),
            Err(error) => tell(format_args!("warning: {error}")),
        }
    }

    /// How many runs were done.
    pub(crate) fn ran(&self) -> u64 {
        self.ran.load(Ordering::Relaxed)
    }
}
