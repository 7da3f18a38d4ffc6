//! The store of runs, as `compare` and `study` use it (docs/guide/study.md#the-store-of-runs).

use crate::{build, tell};
use anyhow::{Result, bail};
use clap::Args;
use lasthop_scenario::HostsKind;
use lasthop_study::{StoreChoice, StoredRuns};
use std::path::PathBuf;

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

impl StoreArguments {
    /// Opens the store that these ask for, and makes its folder. Without `model`, a store cannot be used.
    pub(crate) fn open(&self, hosts: HostsKind, model: Result<String, String>) -> Result<StoredRuns> {
        Ok(StoredRuns::open(&self.choice(hosts)?, model, build(), say)?)
    }

    /// The same to look runs up only: makes no folder.
    pub(crate) fn look(&self, hosts: HostsKind, model: Result<String, String>) -> Result<StoredRuns> {
        Ok(StoredRuns::look_in(&self.choice(hosts)?, model, build(), say))
    }

    fn choice(&self, hosts: HostsKind) -> Result<StoreChoice> {
        if hosts == HostsKind::Kernel && self.store.is_some() {
            bail!("runs of kernel hosts are measurements, and each is done: --store is for simulated hosts");
        }
        Ok(match &self.store {
            _ if hosts == HostsKind::Kernel || self.no_store => StoreChoice::Nowhere,
            Some(folder) => StoreChoice::Folder(folder.clone()),
            None => StoreChoice::Cache,
        })
    }
}

fn say(said: &str) {
    tell(format_args!("{said}"));
}

/// What names the simulated runs of this build.
pub(crate) fn model() -> Result<String, String> {
    lasthop_version::model().map_err(|reason| reason.to_string())
}

/// At the end: says what came from the store, and keeps the cache below its limit.
pub(crate) fn finish(runs: &StoredRuns) {
    if runs.stored() > 0 {
        tell(format_args!("{} runs were in the store, {} were done", runs.stored(), runs.ran()));
    }
    runs.finish();
}
