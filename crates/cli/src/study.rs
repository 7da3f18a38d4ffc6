//! `lasthop study`: runs the points of a study, on all cores or in real time, and judges its claims.

use crate::built_in;
use crate::clock::{AlsoKept, ClockArguments};
use crate::numbers::{MOST_JOBS, whole};
use crate::out_folder::Kind;
use crate::progress::Progress;
use crate::runs::{
    FigureArguments, Habitat, check_memory, claim, keep, tell_again, tell_ineffective, tell_of_short_warmups,
};
use crate::simulate::simulate;
use crate::stored::{StoreArguments, finish, model};
use crate::{COULD_NOT_RUN, FAILED, Interrupted, build, say, stop_on_signals, tell};
use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use lasthop_guest::MEMORY_MIB;
use lasthop_lab::TrafficSource;
use lasthop_report::Live;
use lasthop_scenario::{HostsKind, Override, ResultFile as _, RunResult, Scenario, Series};
use lasthop_study::{
    AtOnce, Load, Outcome, Part, PlannedRun, RunError, Store, StoredRuns, Study, StudyResult, Survey, parallel,
    run_in_turn,
};
use lasthop_units::Span;
use serde::Serialize;
use std::cell::Cell;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Instant;

/// The folder of studies in the working folder: these come before those that are built in.
const STUDIES: &str = "studies";

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct StudyArguments {
    #[command(subcommand)]
    command: Option<StudyCommand>,
    /// The study, such as hayakawa/fig-06, or the path of its file (docs/guide/study.md)
    #[arg(required_unless_present = "list")]
    name: Option<String>,
    /// List the studies, and run none
    #[arg(long, conflicts_with_all = ["name", "hosts", "seeds", "overrides", "out", "jobs", "plan", "print", "shard"])]
    list: bool,
    /// The folder of the studies; without it `studies` in this folder, and those that are built in
    #[arg(long, value_name = "DIR")]
    studies: Option<PathBuf>,
    /// The kind of hosts: `simulated`, or `kernel`: a kernel's own TCP, with --clock real this machine's, as root; without it the
    /// study's own
    #[arg(long, value_enum)]
    hosts: Option<Habitat>,
    #[command(flatten)]
    clock: ClockArguments,
    /// Run each point with this number of seeds, instead of the study's own
    #[arg(long, value_parser = whole::<u64>(1..=1000), allow_negative_numbers = true)]
    seeds: Option<u64>,
    /// Change a key of the scenario in all runs, such as 'hosts.*.turnaround_us=[25, 75]', but none that a case, an axis or a
    /// search sets; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = Override::parse)]
    overrides: Vec<Override>,
    /// Keep study.json, points.csv, the figures and a report.html in this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    figures: FigureArguments,
    /// Print the whole result as one JSON document instead of tables
    #[arg(long)]
    json: bool,
    /// The number of runs at once; not of kernel hosts in real time; without it the number of cores, or as many emulated machines
    /// as there is memory for
    #[arg(long, value_parser = whole(NonZero::<usize>::MIN..=MOST_JOBS), allow_negative_numbers = true)]
    jobs: Option<NonZero<usize>>,
    #[command(flatten)]
    store: StoreArguments,
    /// Only say how many runs there are, how many are stored, and how long the others take
    #[arg(long, conflicts_with = "out")]
    plan: bool,
    /// Only print the scenario of one point, such as 'ARF, n=10', as a file for `lasthop run`; of several seeds the first
    #[arg(long, value_name = "POINT", conflicts_with_all = ["out", "json", "plan", "shard"])]
    print: Option<String>,
    /// Do the I-th of N parts of the runs, store them, and judge nothing; see `lasthop study merge`
    #[arg(long, value_name = "I/N", value_parser = Part::parse, conflicts_with_all = ["out", "json", "no_store"])]
    shard: Option<Part>,
}

#[derive(Subcommand)]
enum StudyCommand {
    /// Copy the runs of several stores into one, such as those of --shard on several machines
    Merge {
        /// The stores: folders that were given to --store
        #[arg(required = true, value_name = "DIR")]
        from: Vec<PathBuf>,
        /// The store that gets the runs; without it that in the cache
        #[arg(long, value_name = "DIR")]
        into: Option<PathBuf>,
    },
}

/// What a core takes for a second of a scenario when no run is stored: one of lasthop/ordinary, in a release build.
const DEFAULT_WALL_S_OF_A_SECOND: f64 = 0.004;
/// The same of kernel hosts in virtual time, as ten uploads over 802.11g have it (docs/guide/virtual-time.md).
const VIRTUAL_WALL_S_OF_A_SECOND: f64 = 2.0;

/// How often a late run is repeated.
const MOST_REPEATS: u64 = 2;
/// The number of studies suggested for a misspelt name.
const MOST_MEANT: usize = 3;

/// `lasthop study`.
pub(crate) fn study(arguments: &StudyArguments) -> Result<ExitCode> {
    if let Some(StudyCommand::Merge { from, into }) = &arguments.command {
        return merge(from, into.as_deref());
    }
    let stop = stop_on_signals()?;
    let check = |scenario: &Scenario, hosts: HostsKind| -> Result<()> {
        match hosts {
            HostsKind::Simulated => lasthop_sim::check(scenario)?,
            HostsKind::Kernel if arguments.clock.is_virtual() => {
                arguments.clock.check_scenario(scenario, TrafficSource::Own)?;
                arguments.clock.check_last_hop(scenario)?;
            }
            HostsKind::Kernel => {
                lasthop_lab::check(scenario, TrafficSource::Own)?;
                arguments.clock.check_last_hop(scenario)?;
            }
        }
        Ok(())
    };
    let (machine, getting_ready) = (OnceLock::new(), Mutex::new(()));
    let emulated = || -> Result<_> {
        let _one = getting_ready.lock();
        if machine.get().is_none() {
            let _ = machine.set(arguments.clock.machine(&stop)?);
        }
        Ok(machine.get().and_then(Option::as_ref))
    };
    let run = |scenario: &Scenario, hosts: HostsKind, progress: &Progress| -> Result<Option<RunResult>> {
        let emulated = if hosts == HostsKind::Kernel { emulated()? } else { None };
        let started = Instant::now();
        let at = |at| progress.at(at);
        let outcome = match (hosts, emulated) {
            (HostsKind::Simulated, _) => simulate(scenario, false, &stop, &at, None, None)?,
            (HostsKind::Kernel, Some(emulated)) => {
                emulated.run(scenario, TrafficSource::Own, &stop, &at, AlsoKept::default())?
            }
            (HostsKind::Kernel, None) => lasthop_lab::run(
                scenario,
                &lasthop_lab::Options {
                    traffic: TrafficSource::Own,
                    build: build(),
                    stop: &stop,
                    progress: &at,
                    on_sample: None,
                    capture: None,
                    records: None,
                    radios: false,
                    linux_queue: arguments.clock.has_linux_queue(),
                },
            )?,
        };
        Ok(outcome.map(|(mut result, _)| {
            result.took(started.elapsed());
            result
        }))
    };
    with(arguments, &Runner { check: &check, run: &run, model: &model, stop: &stop })
}

/// The runner of a study; tests replace its functions.
struct Runner<'a> {
    /// Whether these hosts can run a scenario.
    check: &'a dyn Fn(&Scenario, HostsKind) -> Result<()>,
    run: Run<'a>,
    /// What names the simulated runs in the store, or why nothing does.
    model: &'a dyn Fn() -> Result<String, String>,
    stop: &'a AtomicBool,
}

/// Runs a scenario; `None` if it was stopped.
type Run<'a> = &'a (dyn Fn(&Scenario, HostsKind, &Progress) -> Result<Option<RunResult>> + Sync);

fn with(arguments: &StudyArguments, runner: &Runner<'_>) -> Result<ExitCode> {
    let Some(name) = &arguments.name else { return list(arguments) };
    let study = find(arguments.studies.as_deref(), name)?.with_overrides(arguments.overrides.clone());
    let of_study = arguments.hosts.map_or(study.hosts, Habitat::hosts_kind);
    // Beside kernel hosts all runs are done one after the other, for those are late where others compute.
    let hosts = if study.has_kernel_case() { HostsKind::Kernel } else { of_study };
    arguments.clock.check(hosts)?;
    let in_real_time = hosts == HostsKind::Kernel && !arguments.clock.is_virtual();
    if arguments.jobs.is_some() && in_real_time {
        bail!(
            "kernel hosts run in real time, one run after the other: --jobs is for simulated hosts or --clock virtual"
        );
    }
    if hosts == HostsKind::Kernel && study.is_searched() {
        bail!("a case with a table [cases.search] takes some twenty runs at each point: that is for simulated hosts");
    }
    if let Some(point) = &arguments.print {
        return print(&study, point);
    }
    // All runs are read and checked before the first one starts.
    let planned = study.plan(arguments.seeds.unwrap_or(study.seeds))?;
    for run in &planned {
        let point = if run.label.is_empty() { "its scenario".to_owned() } else { format!("the point {}", run.label) };
        (runner.check)(&run.scenario, run.hosts.unwrap_or(of_study))
            .with_context(|| format!("{point} cannot be run"))?;
    }
    tell_ineffective(&study.ineffective_keys(&planned));
    let scenarios = planned.iter().map(|run| &run.scenario).collect();
    tell_of_short_warmups(planned.iter().map(|run| &run.scenario));
    let jobs = arguments.clock.jobs(hosts, arguments.jobs);
    let part = arguments.shard.unwrap_or(Part::WHOLE);
    if arguments.plan {
        let stored = arguments.store.look(hosts, (runner.model)())?;
        return tell_plan(arguments, &study, &planned, of_study, part, &stored, jobs);
    }
    arguments.clock.check_machines()?;
    let stored = arguments.store.open(hosts, (runner.model)())?;
    let beside = arguments.clock.memory(hosts);
    check_memory(&Load { scenarios, jobs: jobs.get(), hosts, series: false, beside })?;
    if arguments.shard.is_some() {
        return shard(&study, &planned, part, jobs, runner, &stored);
    }
    let formats = arguments.figures.formats();
    let out = claim(arguments.out.as_deref(), Kind::Study, || lasthop_report::study_files(&study, &formats))?;
    let live = out.as_ref().and_then(|out| out.live(planned.len()));
    let outcome = match hosts {
        HostsKind::Simulated => at_once(&study, &planned, jobs, runner, &stored, live.as_ref()),
        HostsKind::Kernel if !in_real_time => in_guests(&planned, of_study, jobs, runner, live.as_ref()),
        HostsKind::Kernel => in_turn(&planned, of_study, runner, live.as_ref()),
    };
    let outcome = outcome.map_err(|error| in_words(error, &stored))?;
    finish(&stored);
    let result = StudyResult::new(&study, of_study, build(), &outcome);
    let kept = keep(out, |folder| lasthop_report::write_study(folder, &result, &formats));
    say(&if arguments.json { result.to_json() } else { lasthop_report::tables::study(&result) })?;
    kept?;
    tell_what_failed(&result);
    Ok(if result.passed && result.valid { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

/// Prints the scenario of the point with this label.
fn print(study: &Study, point: &str) -> Result<ExitCode> {
    let Some(run) = study.plan_point(point)? else {
        let labels: Vec<String> = study.labels().collect();
        let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
        let near = lasthop_scenario::nearest_names(point, &labels, 1);
        let meant = near.first().or(labels.first()).map_or(String::new(), |label| format!(", such as '{label}'"));
        bail!("{} has no point '{point}'; accepted: a value of each axis{meant}", study.name);
    };
    if run.searched {
        bail!(
            "'{point}' is found by search: its value is in study.json, and `lasthop run --set` gives it to another case's scenario"
        );
    }
    say(&run.scenario.to_toml())?;
    Ok(ExitCode::SUCCESS)
}

fn in_words(error: RunError<anyhow::Error>, stored: &StoredRuns) -> anyhow::Error {
    match error {
        RunError::Interrupted => {
            let goes_on = match stored.folder() {
                Some(_) => "; its runs are stored, and the same command goes on from there",
                None => "",
            };
            Interrupted(format!("a study is judged by all of its runs, so no result was kept{goes_on}")).into()
        }
        RunError::Study(error) => error.into(),
        RunError::Run { place, error } => error.context(place),
    }
}

/// On all cores, with one bar for all runs.
fn at_once(
    study: &Study,
    planned: &[PlannedRun],
    jobs: NonZero<usize>,
    runner: &Runner<'_>,
    stored: &StoredRuns,
    live: Option<&Live>,
) -> Result<Outcome, RunError<anyhow::Error>> {
    let progress = Progress::of_many(planned.len());
    let points: usize = study.searched_points().iter().map(Vec::len).sum();
    if points > 0 {
        tell(format_args!("{points} points are found by search: each takes some twenty runs instead of one"));
    }
    let does = runner.run;
    let run = |scenario: &Scenario| one_run(scenario, does, stored);
    let done = |runs: usize| {
        progress.more(runs, stored.ran());
        live.inspect(|live| live.done(runs));
    };
    let outcome = study.run_at_once(planned, &AtOnce { run: &run, jobs, stop: runner.stop, done: &done });
    progress.finish();
    outcome
}

/// A run of simulated hosts, or what is stored of it.
fn one_run(scenario: &Scenario, does: Run<'_>, stored: &StoredRuns) -> Result<Option<RunResult>> {
    let run = || -> Result<_> {
        let result = does(scenario, HostsKind::Simulated, &Progress::Silent)?;
        Ok(result.map(|result| (result, Series::default())))
    };
    Ok(stored.run(scenario, false, run)?.map(|(result, _)| result))
}

/// Does one part of the runs into the store.
fn shard(
    study: &Study,
    planned: &[PlannedRun],
    part: Part,
    jobs: NonZero<usize>,
    runner: &Runner<'_>,
    stored: &StoredRuns,
) -> Result<ExitCode> {
    let Some(folder) = stored.folder() else { bail!("--shard does runs for the store, and there is none") };
    let progress = Progress::of_many(study.runs_of(planned, part));
    let does = runner.run;
    let run = |scenario: &Scenario| one_run(scenario, does, stored);
    let done = |runs: usize| progress.more(runs, stored.ran());
    let outcome = study.run_part(planned, part, &AtOnce { run: &run, jobs, stop: runner.stop, done: &done });
    progress.finish();
    outcome.map_err(|error| in_words(error, stored))?;
    let (ran, found) = (stored.ran(), stored.stored());
    say(&format!("part {part}: {ran} runs were done, {found} were stored before, in {}", folder.display()))?;
    finish(stored);
    Ok(ExitCode::SUCCESS)
}

/// What `--plan` says. The field names are the keys of its JSON.
#[derive(Serialize)]
struct Plan<'a> {
    study: &'a str,
    /// Stored and missing; with searches about.
    runs: u64,
    stored: u64,
    missing: u64,
    /// Whether a case is found by search, so that the number of runs is an estimate.
    searched: bool,
    jobs: usize,
    /// What the missing runs take, on `jobs` cores.
    minutes_left: f64,
    /// Whether the time is that of stored runs of this study, or a default.
    timed_by: &'static str,
    /// What the emulated machines of simultaneous runs take at most; `--clock virtual` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    guests_memory_mib: Option<u64>,
}

fn tell_plan(
    arguments: &StudyArguments,
    study: &Study,
    planned: &[PlannedRun],
    of_study: HostsKind,
    part: Part,
    stored: &StoredRuns,
    jobs: NonZero<usize>,
) -> Result<ExitCode> {
    let look = |scenario: &Scenario| stored.look_up(scenario, false).map(|(result, _)| result);
    let survey: Survey = study.survey(planned, of_study, part, &look)?;
    let of_kernel_s = if arguments.clock.is_virtual() {
        survey.missing_real_s * VIRTUAL_WALL_S_OF_A_SECOND / jobs.get() as f64
    } else {
        survey.missing_real_s
    };
    let (wall_s_of_a_second, timed_by) = if survey.missing_real_s > 0.0 {
        let by = if arguments.clock.is_virtual() {
            "an assumed 0.5 s of the emulated machine in a second"
        } else {
            "real time"
        };
        (DEFAULT_WALL_S_OF_A_SECOND, by)
    } else if survey.stored > 0 && survey.stored_simulated_s > 0.0 {
        (survey.stored_wall_s / survey.stored_simulated_s, "the stored runs of this study")
    } else {
        (DEFAULT_WALL_S_OF_A_SECOND, "an assumed 250 simulated s in a second")
    };
    let simulated_s = survey.missing_simulated_s * wall_s_of_a_second / jobs.get() as f64;
    let minutes_left = (of_kernel_s + simulated_s) / 60.0;
    let guests_memory_mib = arguments.clock.is_virtual().then(|| u64::from(MEMORY_MIB) * jobs.get() as u64);
    let plan = Plan {
        study: &study.name,
        runs: survey.stored + survey.missing,
        stored: survey.stored,
        missing: survey.missing,
        searched: study.is_searched(),
        jobs: jobs.get(),
        minutes_left,
        timed_by,
        guests_memory_mib,
    };
    if arguments.json {
        say(&serde_json::to_string_pretty(&plan)?)?;
    } else {
        let about = if plan.searched { "about " } else { "" };
        let left = match minutes_left < 1.0 {
            true => format!("{:.0} s", (minutes_left * 60.0).ceil()),
            false => format!("{minutes_left:.1} min"),
        };
        let memory =
            guests_memory_mib.map_or(String::new(), |mib| format!("; their guests take {mib} MiB of memory at most"));
        say(&format!(
            "{}: {about}{} runs, {} of them stored; {about}{} to do in some {left} on {jobs} cores, \
             by {timed_by}{memory}",
            plan.study, plan.runs, plan.stored, plan.missing,
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// `lasthop study merge`.
fn merge(from: &[PathBuf], into: Option<&Path>) -> Result<ExitCode> {
    let cache = || Store::in_cache().context("there is no cache folder: give --into DIR");
    let folder = into.map_or_else(cache, |folder| Ok(folder.to_owned()))?;
    // A mistyped folder is found before anything is made.
    for other in from {
        std::fs::read_dir(other).with_context(|| format!("there is no store {}", other.display()))?;
    }
    let store = Store::open(&folder)?;
    let mut damaged = 0;
    for other in from {
        let merged = store.merge(other)?;
        damaged += merged.damaged;
        let damaged = if merged.damaged > 0 { format!(", {} damaged left out", merged.damaged) } else { String::new() };
        let (copied, known) = (merged.copied, merged.known);
        say(&format!("{}: {copied} runs copied, {known} were there{damaged}", other.display()))?;
    }
    Ok(if damaged > 0 { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}

/// Kernel hosts in emulated machines, several at once, and cases of simulated hosts beside them.
fn in_guests(
    planned: &[PlannedRun],
    of_study: HostsKind,
    jobs: NonZero<usize>,
    runner: &Runner<'_>,
    live: Option<&Live>,
) -> Result<Outcome, RunError<anyhow::Error>> {
    let progress = Progress::of_many(planned.len());
    let does = runner.run;
    let failed = AtomicBool::new(false);
    let runs = parallel::in_order(planned, jobs, |planned| {
        if failed.load(Ordering::Relaxed) || runner.stop.load(Ordering::Relaxed) {
            return Err(RunError::Interrupted);
        }
        let outcome = does(&planned.scenario, planned.hosts.unwrap_or(of_study), &Progress::Silent);
        failed.fetch_or(outcome.is_err(), Ordering::Relaxed);
        progress.more(1, 0);
        live.inspect(|live| live.done(1));
        let place = || if planned.label.is_empty() { "its scenario".to_owned() } else { planned.label.clone() };
        outcome.map_err(|error| RunError::Run { place: place(), error })?.ok_or(RunError::Interrupted)
    });
    progress.finish();
    let (left_out, ended): (Vec<_>, Vec<_>) =
        runs.into_iter().partition(|run| matches!(run, Err(RunError::Interrupted)));
    let runs: Vec<RunResult> = ended.into_iter().chain(left_out).collect::<Result<_, _>>()?;
    Ok(Outcome::from(runs))
}

/// One after the other, each with its own bar: kernel hosts in real time, and cases of simulated hosts beside them.
fn in_turn(
    planned: &[PlannedRun],
    of_study: HostsKind,
    runner: &Runner<'_>,
    live: Option<&Live>,
) -> Result<Outcome, RunError<anyhow::Error>> {
    let kind = |planned: &PlannedRun| planned.hosts.unwrap_or(of_study);
    let real: Vec<_> = planned.iter().filter(|planned| kind(planned) == HostsKind::Kernel).collect();
    let total: Span = real.iter().map(|planned| planned.scenario.duration).sum();
    let minutes = (total.as_secs_f64() / 60.0).ceil();
    tell(format_args!("{} runs one after the other, in real time: about {minutes} min", real.len()));
    let begun = Cell::new(None);
    let run = |label: &str, planned: &PlannedRun| {
        let (scenario, hosts) = (&planned.scenario, kind(planned));
        // One that is repeated is the same again.
        let this = Some(std::ptr::from_ref(scenario));
        if begun.replace(this).is_some_and(|before| Some(before) != this) {
            live.inspect(|live| live.done(1));
        }
        let how = ClockArguments::default().how(hosts);
        let progress = Progress::of_run(label, scenario.duration, how);
        let outcome = (runner.run)(scenario, hosts, &progress);
        progress.finish();
        outcome
    };
    run_in_turn(planned, MOST_REPEATS, run, tell_again)
}

/// Explains exit code 1, also if standard output has only JSON.
fn tell_what_failed(result: &StudyResult) {
    for claim in result.claims.iter().filter(|claim| claim.fails()) {
        let place = claim.place();
        let place = if place.is_empty() { String::new() } else { format!(" ({place})") };
        let why = claim.problem.as_ref().map_or(String::new(), |problem| format!(": {problem}"));
        tell(format_args!("{}{place} {}{why}", claim.id, claim.verdict.as_str()));
    }
    result.invalid_reasons.iter().for_each(|reason| tell(format_args!("not valid: {reason}")));
}

/// The study of a file; of a folder; of the folder `studies`, else a built-in one.
fn find(folder: Option<&Path>, name: &str) -> Result<Study> {
    let given = Path::new(name);
    if given.extension().is_some_and(|ending| ending == "toml") {
        return Ok(Study::load(given)?);
    }
    let path = folder.unwrap_or(Path::new(STUDIES)).join(format!("{name}.toml"));
    if path.is_file() {
        if folder.is_none() && built_in::study_names().any(|known| known == name) {
            tell(format_args!("study: the file {} of this folder, not the built-in one", path.display()));
        }
        return Ok(Study::load(&path)?);
    }
    if folder.is_none()
        && let Some(study) = built_in::study(name)
    {
        tell(format_args!("study: the built-in {name}"));
        return study;
    }
    let known = known(folder)?;
    let known: Vec<&str> = known.iter().map(|(name, _)| name.as_str()).collect();
    let mut near = lasthop_scenario::nearest_names(name, &known, MOST_MEANT);
    if near.is_empty() {
        // For a name without its folder.
        let figures: Vec<&str> = known.iter().filter_map(|name| Some(name.split_once('/')?.1)).collect();
        let figures = lasthop_scenario::nearest_names(name, &figures, 1);
        let meant = |known: &&&str| known.split_once('/').is_some_and(|(_, figure)| figures.contains(&figure));
        near = known.iter().filter(meant).take(MOST_MEANT).copied().collect();
    }
    let meant = if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(", ")) };
    let place = folder.map_or_else(|| "here or built in".to_owned(), |folder| format!("in {}", folder.display()));
    bail!("there is no study {name} {place}{meant}; `lasthop study --list` has all {}", known.len())
}

/// Where a study of the list is.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Place {
    Folder,
    BuiltIn,
}

/// All studies of the folder; without one those of the folder `studies`, if it is there, and the built-in ones.
fn known(folder: Option<&Path>) -> Result<Vec<(String, Place)>> {
    let here = Path::new(STUDIES);
    let in_folder = match folder {
        Some(folder) => names(folder)?,
        None if here.is_dir() => names(here)?,
        None => Vec::new(),
    };
    let built_in = built_in::study_names().filter(|name| folder.is_none() && !in_folder.iter().any(|of| of == name));
    let built_in: Vec<_> = built_in.map(|name| (name.to_owned(), Place::BuiltIn)).collect();
    let mut known: Vec<_> = in_folder.into_iter().map(|name| (name, Place::Folder)).chain(built_in).collect();
    known.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(known)
}

/// All studies of a folder in alphabetical order, as in `hayakawa/fig-06`.
fn names(folder: &Path) -> Result<Vec<String>> {
    let cannot =
        || format!("cannot look for studies in {}; give --studies DIR, or the path of a file", folder.display());
    let mut names = Vec::new();
    for paper in std::fs::read_dir(folder).with_context(cannot)? {
        let paper = paper.with_context(cannot)?.path();
        if !paper.is_dir() {
            continue;
        }
        for file in std::fs::read_dir(&paper).with_context(cannot)? {
            let file = file.with_context(cannot)?.path();
            if file.extension().is_some_and(|ending| ending == "toml") {
                let part = |path: &Path| path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
                let folder = paper.file_name().map(|name| name.to_string_lossy().into_owned());
                names.extend(folder.zip(part(&file)).map(|(folder, file)| format!("{folder}/{file}")));
            }
        }
    }
    names.sort();
    Ok(names)
}

/// Lists all studies with size and title; unreadable ones with the reason.
fn list(arguments: &StudyArguments) -> Result<ExitCode> {
    let folder = arguments.studies.as_deref();
    let known = known(folder)?;
    let folder = folder.unwrap_or(Path::new(STUDIES));
    if known.is_empty() {
        bail!("there is no study in {}: one is a file {0}/PAPER/FIGURE.toml", folder.display());
    }
    let listed: Vec<Listed> = known.into_iter().map(|(name, place)| Listed::of(folder, name, place)).collect();
    if arguments.json {
        say(&serde_json::to_string_pretty(&listed)?)?;
    } else {
        let widest = listed.iter().map(|study| study.name.len()).max().unwrap_or(0);
        say(&listed.iter().map(|study| format!("{:widest$}  {study}\n", study.name)).collect::<String>())?;
    }
    let broken = listed.iter().any(|study| study.error.is_some());
    Ok(if broken { ExitCode::from(COULD_NOT_RUN) } else { ExitCode::SUCCESS })
}

/// A study in the list. An unreadable one has only an error.
#[derive(Serialize)]
struct Listed {
    name: String,
    place: Place,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    size: Option<Size>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Serialize)]
struct Size {
    title: String,
    runs: u64,
    claims: usize,
}

impl Listed {
    fn of(folder: &Path, name: String, place: Place) -> Self {
        let study = match place {
            Place::Folder => Study::load(&folder.join(format!("{name}.toml"))).map_err(anyhow::Error::from),
            Place::BuiltIn => built_in::study(&name).unwrap_or_else(|| bail!("it is not built in")),
        };
        match study {
            Ok(study) => {
                let runs = study.points() as u64 * study.seeds;
                let size = Size { runs, claims: study.claims.len(), title: study.title };
                Self { name, place, size: Some(size), error: None }
            }
            Err(error) => Self { name, place, size: None, error: Some(format!("{error:#}")) },
        }
    }
}

impl std::fmt::Display for Listed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.size, &self.error) {
            (Some(Size { title, runs, claims }), _) => write!(f, "{runs:>5} runs  {claims:>2} claims  {title}"),
            (None, error) => f.write_str(error.as_deref().unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests;
