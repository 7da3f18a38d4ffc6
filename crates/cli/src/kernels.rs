//! `lasthop kernels`.

use crate::clock::DEFAULT_KERNEL;
use crate::{say, tell};
use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use lasthop_guest::{Kernel, Kernels, NAMES};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Args)]
pub(crate) struct KernelsArguments {
    #[command(subcommand)]
    command: KernelsCommand,
}

#[derive(Subcommand)]
enum KernelsCommand {
    /// List the kernels that `--clock virtual` can have: those that are here, and those that can be fetched
    List,
    /// Fetch a kernel from Debian by apt and unpack it; nothing is installed
    Fetch {
        /// Its name: debian-6.1, debian-6.12 or debian-newest
        #[arg(default_value = DEFAULT_KERNEL)]
        name: String,
    },
    /// Keep a kernel of your own: a tree after `make bzImage modules`, or any folder with a bzImage and modules
    Build {
        /// The folder
        folder: PathBuf,
        /// Its name; without it the folder's
        #[arg(long)]
        name: Option<String>,
    },
}

/// `lasthop kernels`.
pub(crate) fn run(arguments: &KernelsArguments) -> Result<ExitCode> {
    let kernels = Kernels::in_cache()?;
    let kept = |kernel: &Kernel| say(&format!("{}: {}", kernel.name, kernel.release));
    match &arguments.command {
        KernelsCommand::List => list(&kernels.list()?)?,
        KernelsCommand::Fetch { name } => kept(&kernels.fetch(name, &|said| tell(format_args!("{said}")))?)?,
        KernelsCommand::Build { folder, name } => {
            let path = folder.canonicalize().with_context(|| format!("there is no folder {}", folder.display()))?;
            let of_folder = || path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            kept(&kernels.build(&name.clone().unwrap_or_else(of_folder), &path)?)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn list(here: &[Kernel]) -> Result<()> {
    let missing = NAMES.iter().filter(|name| here.iter().all(|kernel| kernel.name != **name));
    let missing = missing.map(|name| (*name, format!("not here: lasthop kernels fetch {name}")));
    let what = |kernel: &Kernel| match kernel.is_of_this_build() {
        true => kernel.release.clone(),
        false => format!("{}, kept by another version of lasthop: fetch or build it again", kernel.release),
    };
    let here = here.iter().map(|kernel| (kernel.name.as_str(), what(kernel)));
    let lines: Vec<(&str, String)> = here.chain(missing).collect();
    let widest = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    say(&lines.iter().map(|(name, what)| format!("{name:widest$}  {what}\n")).collect::<String>())
}
