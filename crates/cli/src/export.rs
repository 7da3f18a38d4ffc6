//! `lasthop export`.

use crate::numbers::whole;
use crate::{say, tell};
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use lasthop_files::{Kind, Whole};
use lasthop_report::export::{Table, Written};
use lasthop_report::{COMPARISON_FILE, RESULT_FILE, ReportError, export, series_file};
use lasthop_scenario::{ResultFile as _, RunResult, Series};
use std::fs;
use std::io::Write as _;
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
    /// Write the flows of these numbers only (`id` in the result); without it all that the format can show
    #[arg(long, value_name = "ID,ID", value_delimiter = ',', value_parser = whole(0..=u32::MAX), allow_negative_numbers = true)]
    flows: Option<Vec<u32>>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// Tables of flows, of the series, of queues, of datagrams and of transfers
    Csv,
    /// The data file of flent: `flent -i FILE.flent.gz`
    Flent,
    /// What `iperf3 --json` prints
    Iperf3,
}

pub(crate) fn run(arguments: &ExportArguments) -> Result<ExitCode> {
    let (result, series) = read(&arguments.result)?;
    let flows = arguments.flows.as_deref();
    let json = |written: Written| {
        written.left_out.iter().for_each(|flow| tell(format_args!("note: left out: {flow}")));
        serde_json::to_string(&written.document).context("cannot make JSON of the result")
    };
    let text = match arguments.format {
        Format::Csv => {
            let tables = export::tables(&result, &series, flows)?;
            let Some(folder) = &arguments.out else {
                return say(&tables[0].text).map(|()| ExitCode::SUCCESS);
            };
            fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
            refuse_to_mix(folder)?;
            let write = |table: &Table| {
                let path = folder.join(table.name);
                let whole = Whole::begin(&path, None).with_context(|| cannot(&path))?;
                whole.file().write_all(table.text.as_bytes()).with_context(|| cannot(&path))?;
                Ok((path, whole))
            };
            let whole: Vec<_> = tables.iter().map(write).collect::<Result<_>>()?;
            for (path, whole) in whole {
                whole.put_in_place().with_context(|| cannot(&path))?;
            }
            return Ok(ExitCode::SUCCESS);
        }
        Format::Flent => json(export::flent(&result, &series, flows)?)?,
        Format::Iperf3 => json(export::iperf3(&result, &series, flows)?)?,
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
    if !has_series && path.is_dir() {
        tell(format_args!("note: {} has no {}: what was sampled is left out", path.display(), series_file::FLOWS_FILE));
    }
    let series = if has_series { series_file::read(folder, &result)? } else { Series::default() };
    Ok((result, series))
}

/// A folder with what was exported before, or with a result, is left alone.
fn refuse_to_mix(folder: &Path) -> Result<()> {
    for name in export::TABLES {
        if folder.join(name).exists() {
            bail!("--out {}: there is a {name} already; accepted: a new or empty folder", folder.display());
        }
    }
    refuse_result(folder, "a folder")
}

/// Files beside a result are its own.
fn refuse_result(folder: &Path, accepted: &str) -> Result<()> {
    for name in [RESULT_FILE, COMPARISON_FILE] {
        if folder.join(name).exists() {
            bail!("--out: {} has a result ({name}); accepted: {accepted} somewhere else", folder.display());
        }
    }
    Ok(())
}

/// By which `--out` knows an export of its own.
const EXPORT: Kind = Kind { name: "an export", looked_at: 64 << 20, is: export::is_export };

/// Writes all of it or nothing: an older file stays until the new one is whole.
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    refuse_result(folder, "a file")?;
    lasthop_files::write(path, Some(&EXPORT), bytes).with_context(|| cannot(path))
}

fn cannot(path: &Path) -> String {
    format!("cannot write {}; what was there is as before", path.display())
}
