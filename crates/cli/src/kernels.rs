//! `lasthop kernels`.

use crate::clock::why_not;
use crate::{Interrupted, say, stop_on_signals, tell};
use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use lasthop_guest::{DEFAULT_KERNEL, Error, Kernel, Kernels, Machine, Program, names, remove_what_is_left};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

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
        /// Its name: debian-6.1, debian-6.12, debian-newest, or one of these with -arm64
        #[arg(default_value = DEFAULT_KERNEL)]
        name: String,
    },
    /// Keep a kernel of your own: a tree after `make bzImage modules` (arm64: `make Image modules`), or any folder with an
    /// image and modules
    Build {
        /// The folder
        folder: PathBuf,
        /// Its name, none of those that can be fetched; without it the folder's
        #[arg(long)]
        name: Option<String>,
    },
    /// Keep a lasthop for another processor, of this same build: it runs under the kernels for that one
    Program {
        /// The program
        file: PathBuf,
    },
}

/// `lasthop kernels`.
pub(crate) fn run(arguments: &KernelsArguments) -> Result<ExitCode> {
    let stop = stop_on_signals()?;
    let interrupted = || Interrupted("nothing was kept, and nothing is left behind".to_owned());
    // What a signal ends is an error, in words of what was going on.
    let done = run_until(&arguments.command, &stop);
    done.map_err(|error| if stop.load(Ordering::Relaxed) { interrupted().into() } else { error })?;
    Ok(ExitCode::SUCCESS)
}

fn run_until(command: &KernelsCommand, stop: &AtomicBool) -> Result<()> {
    let kernels = Kernels::in_cache()?;
    let kept = |kernel: &Kernel| {
        say(&format!("{}: {}, {}", kernel.name, kernel.release, kernel.architecture))?;
        if let Some(why) = why_not(kernel) {
            tell(format_args!("--clock virtual cannot run it yet: {why}"));
        }
        Ok(())
    };
    let fetching = |said: &str| tell(format_args!("{said}"));
    match command {
        KernelsCommand::List => {
            remove_what_is_left()?;
            list(&kernels.list()?)
        }
        KernelsCommand::Fetch { name } => kept(&kernels.fetch(name, stop, &fetching)?),
        KernelsCommand::Build { folder, name } => {
            let path = folder.canonicalize().with_context(|| format!("there is no folder {}", folder.display()))?;
            let of_folder = || path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            match (kernels.build(&name.clone().unwrap_or_else(of_folder), &path, stop), name) {
                (Err(error @ (Error::Name { .. } | Error::Taken { .. })), None) => {
                    Err(error).context("without --name NAME it gets the folder's")
                }
                (outcome, _) => kept(&outcome?),
            }
        }
        KernelsCommand::Program { file } => {
            let architecture = Program::keep(file, lasthop_version::VERSION, stop, &fetching)?;
            say(&format!("kernels for {architecture} run {}", file.display()))?;
            if let Err(error) = Machine::emulator(architecture) {
                tell(format_args!("--clock virtual cannot run them yet: {error}"));
            }
            Ok(())
        }
    }
}

fn list(here: &[Kernel]) -> Result<()> {
    let missing = names().filter(|(name, _)| here.iter().all(|kernel| kernel.name != *name));
    let missing = missing.map(|(name, of)| (name, of, format!("not here: lasthop kernels fetch {name}")));
    let what = |kernel: &Kernel| match (kernel.is_of_this_build(), why_not(kernel)) {
        (true, None) => kernel.release.clone(),
        (true, Some(_)) => format!("{}, which cannot run yet: lasthop doctor says why", kernel.release),
        (false, _) => format!("{}, kept by another version of lasthop: fetch or build it again", kernel.release),
    };
    let here = here.iter().map(|kernel| (kernel.name.as_str(), kernel.architecture, what(kernel)));
    let lines: Vec<_> = here.chain(missing).collect();
    let widest = lines.iter().map(|(name, _, _)| name.len()).max().unwrap_or(0);
    say(&lines.iter().map(|(name, of, what)| format!("{name:widest$}  {of}  {what}\n")).collect::<String>())
}
