//! `lasthop export`.

use crate::say;
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use lasthop_report::{COMPARISON_FILE, RESULT_FILE, ReportError, export, series_file};
use lasthop_scenario::{ResultFile as _, RunResult, Series};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Args)]
pub(crate) struct ExportArguments {
    /// The folder that `lasthop run --out` has written, or a result.json
    result: PathBuf,
    /// The format
    #[arg(long, value_enum)]
    format: Format,
    /// Write into this file; with csv into this folder, the series too. Without it the text goes to standard output
    #[arg(long, value_name = "PATH")]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// Tables of flows, of the series, of queues and of datagrams
    Csv,
    /// The data file of flent: `flent -i FILE.flent.gz`
    Flent,
    /// What `iperf3 --json` prints
    Iperf3,
}

pub(crate) fn run(arguments: &ExportArguments) -> Result<ExitCode> {
    let (result, series) = read(&arguments.result)?;
    let json = |value: serde_json::Value| serde_json::to_string(&value).context("cannot make JSON of the result");
    let text = match arguments.format {
        Format::Csv => {
            let tables = export::tables(&result, &series);
            let Some(folder) = &arguments.out else {
                return say(&tables[0].text).map(|()| ExitCode::SUCCESS);
            };
            std::fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
            for table in tables {
                write(&folder.join(table.name), table.text.as_bytes())?;
            }
            return Ok(ExitCode::SUCCESS);
        }
        Format::Flent => json(export::flent(&result, &series))?,
        Format::Iperf3 => json(export::iperf3(&result, &series))?,
    };
    match &arguments.out {
        Some(path) if path.extension().is_some_and(|extension| extension == "gz") => {
            write(path, &export::gzip(&text).context("cannot compress the result")?)?;
        }
        Some(path) => write(path, text.as_bytes())?,
        None => say(&text)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// A run with its series, if they are there.
fn read(path: &Path) -> Result<(RunResult, Series)> {
    let (folder, file) = if path.is_dir() {
        (path, path.join(RESULT_FILE))
    } else {
        (path.parent().unwrap_or(Path::new("")), path.to_owned())
    };
    let is_of_several = if path.is_dir() {
        !file.exists() && path.join(COMPARISON_FILE).exists()
    } else {
        path.file_name().is_some_and(|name| name == COMPARISON_FILE)
    };
    if is_of_several {
        bail!("{} is of several runs; export one of them, a folder in its cases/", path.display());
    }
    let result = RunResult::load(&file).map_err(|source| ReportError::Result { path: file, source })?;
    let has_series = folder.join(series_file::FLOWS_FILE).exists();
    Ok((result, if has_series { series_file::read(folder)? } else { Series::default() }))
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    std::fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}
