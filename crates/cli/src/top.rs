//! `lasthop top`.

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
    match &arguments.replay {
        Some(record) => lasthop_view::replay(record)?,
        None => lasthop_view::watch(Path::new(lasthop_agent::status::FOLDER), arguments.interface.as_deref())?,
    }
    Ok(ExitCode::SUCCESS)
}
