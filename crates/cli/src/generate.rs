//! `lasthop completions` and `lasthop man`: what a shell and man(1) know of the command line, made from its definition.

use crate::{Arguments, say};
use anyhow::{Context as _, Result};
use clap::{Args, CommandFactory as _};
use clap_complete::Shell;
use lasthop_files::Kind;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Args)]
pub(crate) struct CompletionsArguments {
    /// The shell; packages install these for bash, fish and zsh
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Args)]
pub(crate) struct ManArguments {
    /// The folder for the pages, which is made; its own pages of the same names are replaced
    folder: PathBuf,
}

/// By which `lasthop man` knows a page of its own.
const PAGE: Kind = Kind {
    name: "a man page",
    looked_at: 512,
    is: |begin| String::from_utf8_lossy(begin).lines().any(|line| line.starts_with(".TH lasthop")),
};

/// `lasthop completions`.
pub(crate) fn completions(arguments: &CompletionsArguments) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "lasthop", &mut script);
    say(&String::from_utf8(script).context("a completion script is text")?)?;
    Ok(ExitCode::SUCCESS)
}

/// `lasthop man`: a page for the command and one for each subcommand, such as lasthop-run.1.
pub(crate) fn man(arguments: &ManArguments) -> Result<ExitCode> {
    let folder = &arguments.folder;
    let cannot = || format!("cannot write man pages into {}", folder.display());
    std::fs::create_dir_all(folder).with_context(cannot)?;
    let pages = tempfile::tempdir().with_context(cannot)?;
    clap_mangen::generate_to(Arguments::command(), pages.path()).with_context(cannot)?;
    for page in std::fs::read_dir(pages.path()).with_context(cannot)? {
        let page = page.with_context(cannot)?;
        let text = std::fs::read(page.path()).with_context(cannot)?;
        let path = folder.join(page.file_name());
        let written = lasthop_files::write(&path, Some(&PAGE), &text);
        written.with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}
