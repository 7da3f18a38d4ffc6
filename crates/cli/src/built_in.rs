//! The scenarios and studies of the repository, compiled in, so that they run from any folder: `lasthop scenarios`, and
//! what a name means to `run`, `compare` and `study`.
//!
//! A file comes first: what is typed may be the path of one, or its name without `.toml`. A note says which was taken.

use crate::{say, tell};
use anyhow::{Context as _, Result, bail};
use clap::{Args, Subcommand};
use lasthop_scenario::{Override, Scenario, nearest_names};
use lasthop_study::Study;
use serde::Serialize;
use std::fs;
use std::io::{Error, ErrorKind};
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;
use tempfile::TempDir;

/// A file of the repository.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BuiltIn {
    /// From the top of the repository, such as `scenarios/ten-uploads.toml`.
    path: &'static str,
    text: &'static str,
}

/// In the order of their paths.
const FILES: &[BuiltIn] = include!(concat!(env!("OUT_DIR"), "/built_in.rs"));

const SCENARIOS: &str = "scenarios/";
const STUDIES: &str = "studies/";
const TOML: &str = ".toml";
/// The number of names suggested for a misspelt one.
const MOST_MEANT: usize = 3;

#[derive(Args)]
pub(crate) struct ScenariosArguments {
    #[command(subcommand)]
    command: ScenariosCommand,
}

#[derive(Subcommand)]
enum ScenariosCommand {
    /// List the scenarios that are built in, each with its title
    List {
        /// Print one JSON document instead of a table
        #[arg(long)]
        json: bool,
    },
    /// Print a scenario, or a file beside one, such as own-law/westwood.h, to be changed and run as a file
    Show {
        /// The scenario's name, such as ten-uploads
        name: String,
    },
}

/// `lasthop scenarios`.
pub(crate) fn run(arguments: &ScenariosArguments) -> Result<ExitCode> {
    match &arguments.command {
        ScenariosCommand::List { json } => list(*json)?,
        ScenariosCommand::Show { name } => {
            let beside = || FILES.iter().find(|file| file.path.strip_prefix(SCENARIOS) == Some(name));
            let file = scenario_of(name).or_else(beside).with_context(|| unknown(name))?;
            say(file.text)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

#[derive(Serialize)]
struct Listed {
    name: &'static str,
    title: &'static str,
    /// What belongs to it and is printed by `show`, too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    beside: Vec<&'static str>,
}

fn list(json: bool) -> Result<()> {
    let scenarios = FILES.iter().filter_map(|file| Some((file, file.name_in(SCENARIOS)?)));
    let listed = |(file, name): (&'static BuiltIn, _)| {
        let beside = file.beside().filter_map(|file| file.path.strip_prefix(SCENARIOS)).collect();
        Listed { name, title: file.title(), beside }
    };
    let listed: Vec<Listed> = scenarios.map(listed).collect();
    if json {
        return say(&serde_json::to_string_pretty(&listed)?);
    }
    let widest = listed.iter().map(|scenario| scenario.name.len()).max().unwrap_or(0);
    let row = |Listed { name, title, beside }: &Listed| {
        let beside = if beside.is_empty() { String::new() } else { format!(" (with {})", beside.join(", ")) };
        format!("{name:widest$}  {title}{beside}\n")
    };
    say(&listed.iter().map(row).collect::<String>())
}

impl BuiltIn {
    /// `ten-uploads` of `scenarios/ten-uploads.toml`; `None` for what is no scenario or study.
    fn name_in(&self, folder: &str) -> Option<&'static str> {
        self.path.strip_prefix(folder)?.strip_suffix(TOML)
    }

    /// The value of the key `name`, which each scenario has on a line of its own.
    fn title(&self) -> &'static str {
        let title = self.text.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
        title.unwrap_or_default()
    }

    fn folder(&self) -> &'static str {
        self.path.rsplit_once('/').map_or("", |(folder, _)| folder)
    }

    /// The files that a scenario refers to: those of its folder that are no scenario.
    fn beside(&self) -> impl Iterator<Item = &'static Self> {
        let folder = self.folder();
        FILES.iter().filter(move |file| file.folder() == folder && !file.path.ends_with(TOML))
    }
}

fn scenario_of(name: &str) -> Option<&'static BuiltIn> {
    FILES.iter().find(|file| file.name_in(SCENARIOS) == Some(name))
}

fn unknown(name: &str) -> String {
    let known: Vec<&str> = FILES.iter().filter_map(|file| file.name_in(SCENARIOS)).collect();
    let near = nearest_names(name, &known, MOST_MEANT);
    let meant = if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(", ")) };
    format!("there is no built-in scenario {name}{meant}; `lasthop scenarios list` has all {}", known.len())
}

/// A scenario that was found by what was typed.
pub(crate) struct Found {
    source: Source,
    /// Where the files of a built-in scenario are while it runs.
    _beside: Option<TempDir>,
}

enum Source {
    File(PathBuf),
    /// Its name in messages, by which the files beside it are found, and its text.
    BuiltIn(String, &'static str),
}

impl Found {
    /// The scenario of a file, or the built-in one of this name.
    ///
    /// # Errors
    /// If there is neither. A file is read by [`Found::load`].
    pub(crate) fn scenario(typed: &Path) -> Result<Self> {
        let file = |path: PathBuf| Self { source: Source::File(path), _beside: None };
        let Some(name) = typed.to_str().filter(|_| !is_readable(typed)) else {
            // A file without the ending may be called as a built-in one is.
            tell_of_file(typed, typed.to_str().and_then(scenario_of));
            return Ok(file(typed.to_owned()));
        };
        let with_ending = PathBuf::from(format!("{name}{TOML}"));
        if with_ending.is_file() {
            tell_of_file(&with_ending, scenario_of(name));
            return Ok(file(with_ending));
        }
        if let Some(built_in) = scenario_of(name) {
            tell(format_args!("scenario: the built-in {name}"));
            return Self::built_in(built_in);
        }
        if typed.is_dir() {
            bail!("{name} is a folder (accepted: a scenario's file, or the name of a built-in one)");
        }
        if typed.extension().is_none_or(|ending| ending != "toml") {
            bail!("there is no file {name}; {}", unknown(name));
        }
        let stem = typed.file_stem().and_then(|stem| stem.to_str()).and_then(scenario_of);
        if let Some(name) = stem.and_then(|file| file.name_in(SCENARIOS)) {
            bail!("there is no file {}; the built-in scenario is called {name}", typed.display());
        }
        Ok(file(typed.to_owned()))
    }

    /// Laws of one's own are read from files: those beside the scenario are written into a folder of this process.
    fn built_in(built_in: &'static BuiltIn) -> Result<Self> {
        let cannot = || format!("cannot write the files beside the scenario {}", built_in.path);
        let mut beside = built_in.beside().peekable();
        if beside.peek().is_none() {
            let source = Source::BuiltIn(built_in.path.to_owned(), built_in.text);
            return Ok(Self { source, _beside: None });
        }
        let folder = tempfile::Builder::new().prefix("lasthop-").tempdir().with_context(cannot)?;
        std::fs::create_dir_all(folder.path().join(built_in.folder())).with_context(cannot)?;
        for file in beside {
            let path = folder.path().join(file.path);
            std::fs::write(&path, file.text).with_context(|| format!("cannot write {}", path.display()))?;
        }
        let name = folder.path().join(built_in.path).display().to_string();
        Ok(Self { source: Source::BuiltIn(name, built_in.text), _beside: Some(folder) })
    }

    /// Reads it, with overrides of the command line on top.
    pub(crate) fn load(&self, overrides: &[Override]) -> Result<Scenario> {
        Ok(match &self.source {
            Source::File(path) => Scenario::load(path, overrides)?,
            Source::BuiltIn(name, text) => Scenario::from_toml(name, text, overrides)?,
        })
    }
}

/// Whether there is something to read: a file, or a pipe such as /dev/stdin.
fn is_readable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| !metadata.is_dir())
}

/// Notes that a file was taken and not what is built in under the same name.
fn tell_of_file(path: &Path, built_in: Option<&BuiltIn>) {
    if built_in.is_some() {
        tell(format_args!("scenario: the file {} of this folder, not the built-in one", path.display()));
    }
}

/// The names of all built-in studies, such as `hayakawa/fig-06`, in order.
pub(crate) fn study_names() -> impl Iterator<Item = &'static str> {
    FILES.iter().filter_map(|file| file.name_in(STUDIES))
}

/// The built-in study of this name; `None` if there is none.
///
/// # Errors
/// As [`Study::from_toml`].
pub(crate) fn study(name: &str) -> Option<Result<Study>> {
    let file = FILES.iter().find(|file| file.name_in(STUDIES) == Some(name))?;
    let scenario = |named: &str| {
        let path = joined(file.folder(), named);
        let scenario = FILES.iter().find(|file| Path::new(file.path) == path);
        let missing = || Error::new(ErrorKind::NotFound, "it is not built in");
        scenario.map(|file| file.text.to_owned()).ok_or_else(missing)
    };
    Some(Study::from_toml(file.path, file.text, &scenario).map_err(anyhow::Error::from))
}

/// A path from a folder, without `..`.
fn joined(folder: &str, path: &str) -> PathBuf {
    let mut joined = PathBuf::new();
    for component in Path::new(folder).join(path).components() {
        match component {
            Component::ParentDir => drop(joined.pop()),
            Component::CurDir => {}
            component => joined.push(component),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_scenario_has_a_title_and_can_be_read_but_one_that_is_compiled() {
        let scenarios = FILES.iter().filter(|file| file.name_in(SCENARIOS).is_some());
        let names: Vec<&str> = scenarios.clone().filter_map(|file| file.name_in(SCENARIOS)).collect();
        assert!(names.len() > 20 && names.contains(&"ten-uploads") && names.contains(&"own-law/lossy"), "{names:?}");
        for file in scenarios {
            assert!(!file.title().is_empty(), "{} has no line with its name", file.path);
            if file.beside().next().is_none() {
                let scenario = Scenario::from_toml(file.path, file.text, &[]).expect(file.path);
                assert_eq!(scenario.name, file.title());
            }
        }
    }

    #[test]
    fn every_built_in_study_finds_its_scenario() {
        assert!(study_names().count() > 50);
        for name in study_names() {
            let study = study(name).expect("it is there").unwrap_or_else(|error| panic!("{name}: {error:#}"));
            assert_eq!(study.name, name);
        }
        assert!(study("hayakawa/fig-66").is_none());
    }

    #[test]
    fn a_scenario_with_files_beside_it_has_them_in_a_folder_until_it_has_run() {
        let found = Found::built_in(scenario_of("own-law/lossy").expect("it is built in")).expect("a folder");
        let Source::BuiltIn(name, _) = &found.source else { panic!("no built-in scenario") };
        let header = Path::new(name).with_file_name("westwood.h");
        assert!(std::fs::read_to_string(&header).expect("the header").contains("westwood"));
        drop(found);
        assert!(!header.exists());
    }
}
