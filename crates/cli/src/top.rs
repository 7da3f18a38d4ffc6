//! `lasthop top`.

use crate::stop_on_signals;
use anyhow::Result;
use clap::Args;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Args)]
pub(crate) struct TopArguments {
    /// Watch the agent of this interface, instead of the first one found
    #[arg(long, value_name = "IF")]
    interface: Option<String>,
    /// Show this record of an agent (`lasthop agent --record`), with seeking, instead of a running one
    #[arg(long, value_name = "FILE", conflicts_with = "interface")]
    replay: Option<PathBuf>,
}

pub(crate) fn run(arguments: &TopArguments) -> Result<ExitCode> {
    // The terminal is given back as it was, whatever ends this.
    let stop = stop_on_signals()?;
    match &arguments.replay {
        Some(record) => lasthop_view::replay(record, &stop)?,
        None => lasthop_view::watch(Path::new(lasthop_status::FOLDER), arguments.interface.as_deref(), &stop)?,
    }
    Ok(ExitCode::SUCCESS)
}
