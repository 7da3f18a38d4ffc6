//! `lasthop study`: runs the points of a study, on all cores or in real time, and judges its claims.

use crate::out_folder::Kind;
use crate::progress::Progress;
use crate::runs::{Habitat, check_memory, claim, jobs, keep, tell_again, tell_ineffective, tell_of_short_warmups};
use crate::simulate::simulate;
use crate::stored::{StoreArguments, finish, model};
use crate::{COULD_NOT_RUN, FAILED, Interrupted, build, say, stop_on_signals, tell};
use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use lasthop_scenario::{HostsKind, Override, ResultFile as _, RunResult, Scenario, Series};
use lasthop_study::{
    AtOnce, Load, Outcome, Part, PlannedRun, RunError, Store, StoredRuns, Study, StudyResult, Survey, run_in_turn,
};
use lasthop_units::Span;
use serde::Serialize;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// The default folder of studies.
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
    #[arg(long, conflicts_with_all = ["name", "hosts", "seeds", "overrides", "out", "jobs", "plan", "shard"])]
    list: bool,
    /// The folder of the studies
    #[arg(long, value_name = "DIR", default_value = STUDIES)]
    studies: PathBuf,
    /// The kind of hosts: `simulated` in virtual time, or `kernel`: this machine's own TCP, in real time, as root;
    /// without it the study's own
    #[arg(long, value_enum)]
    hosts: Option<Habitat>,
    /// Run each point with this number of seeds, instead of the study's own
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: Option<u64>,
    /// Change a key of the scenario in all runs, whatever the study sets, such as 'hosts.*.turnaround_us=[25, 75]'; may
    /// be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = Override::parse)]
    overrides: Vec<Override>,
    /// Keep study.json, points.csv, the figures and a report.html in this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the whole result as one JSON document instead of tables
    #[arg(long)]
    json: bool,
    /// The number of runs at once; simulated hosts only; without it the number of cores
    #[arg(long)]
    jobs: Option<NonZero<usize>>,
    #[command(flatten)]
    store: StoreArguments,
    /// Only say how many runs there are, how many are stored, and how long the others take
    #[arg(long, conflicts_with = "out")]
    plan: bool,
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

/// What a core takes for a second of a scenario when no run is stored: ten uploads in a release build.
const DEFAULT_WALL_S_OF_A_SECOND: f64 = 0.001;

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
            HostsKind::Kernel => lasthop_lab::check(scenario, lasthop_lab::TrafficSource::Own)?,
        }
        Ok(())
    };
    let run = |scenario: &Scenario, hosts: HostsKind, progress: &Progress| -> Result<Option<RunResult>> {
        let started = Instant::now();
        let at = |at| progress.at(at);
        let outcome = match hosts {
            HostsKind::Simulated => simulate(scenario, false, &stop, &at)?,
            HostsKind::Kernel => {
                let traffic = lasthop_lab::TrafficSource::Own;
                lasthop_lab::run(
                    scenario,
                    &lasthop_lab::Options { traffic, build: build(), stop: &stop, progress: &at },
                )?
            }
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
    let study = Study::load(&find(&arguments.studies, name)?)?.with_overrides(arguments.overrides.clone());
    let hosts = arguments.hosts.map_or(study.hosts, Habitat::hosts_kind);
    if arguments.jobs.is_some() && hosts == HostsKind::Kernel {
        bail!("kernel hosts run in real time, one run after the other: --jobs is for simulated hosts");
    }
    if hosts == HostsKind::Kernel && study.is_searched() {
        bail!("a case with a table [cases.search] takes some twenty runs at each point: that is for simulated hosts");
    }
    // All runs are read and checked before the first one starts.
    let planned = study.plan(arguments.seeds.unwrap_or(study.seeds))?;
    for run in &planned {
        let point = if run.label.is_empty() { "its scenario".to_owned() } else { format!("the point {}", run.label) };
        (runner.check)(&run.scenario, hosts).with_context(|| format!("{point} cannot be run"))?;
    }
    tell_ineffective(&study.ineffective_keys(&planned));
    let scenarios = planned.iter().map(|run| &run.scenario).collect();
    tell_of_short_warmups(planned.iter().map(|run| &run.scenario));
    let jobs = jobs(hosts, arguments.jobs);
    let stored = arguments.store.open(hosts, (runner.model)())?;
    let part = arguments.shard.unwrap_or(Part::WHOLE);
    if arguments.plan {
        return tell_plan(arguments, &study, &planned, hosts, part, &stored, jobs);
    }
    check_memory(&Load { scenarios, jobs: jobs.get(), hosts, series: false })?;
    if arguments.shard.is_some() {
        return shard(&study, &planned, part, jobs, runner, &stored);
    }
    let out = claim(arguments.out.as_deref(), Kind::Study, || lasthop_report::study_files(&study))?;
    let outcome = match hosts {
        HostsKind::Simulated => at_once(&study, &planned, jobs, runner, &stored),
        HostsKind::Kernel => in_turn(&planned, runner),
    };
    let outcome = outcome.map_err(|error| in_words(error, &stored))?;
    finish(&stored);
    let result = StudyResult::new(&study, hosts, build(), &outcome);
    let kept = keep(out, |folder| lasthop_report::write_study(folder, &result));
    say(&if arguments.json { result.to_json() } else { lasthop_report::tables::study(&result) })?;
    kept?;
    tell_what_failed(&result);
    Ok(if result.passed && result.valid { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
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
) -> Result<Outcome, RunError<anyhow::Error>> {
    let progress = Progress::of_many(planned.len());
    let points: usize = study.searched_points().iter().map(Vec::len).sum();
    if points > 0 {
        tell(format_args!("{points} points are found by search: each takes some twenty runs instead of one"));
    }
    let does = runner.run;
    let run = |scenario: &Scenario| one_run(scenario, does, stored);
    let done = || progress.one_more();
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
    let done = || progress.one_more();
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
}

fn tell_plan(
    arguments: &StudyArguments,
    study: &Study,
    planned: &[PlannedRun],
    hosts: HostsKind,
    part: Part,
    stored: &StoredRuns,
    jobs: NonZero<usize>,
) -> Result<ExitCode> {
    let look = |scenario: &Scenario| stored.look_up(scenario, false).map(|(result, _)| result);
    let survey: Survey = study.survey(planned, part, &look)?;
    let (wall_s_of_a_second, timed_by) = match hosts {
        HostsKind::Kernel => (1.0, "real time"),
        HostsKind::Simulated if survey.stored > 0 && survey.stored_simulated_s > 0.0 => {
            (survey.stored_wall_s / survey.stored_simulated_s, "the stored runs of this study")
        }
        HostsKind::Simulated => (DEFAULT_WALL_S_OF_A_SECOND, "1000 s of a scenario in a second"),
    };
    let minutes_left = survey.missing_simulated_s * wall_s_of_a_second / jobs.get() as f64 / 60.0;
    let plan = Plan {
        study: &study.name,
        runs: survey.stored + survey.missing,
        stored: survey.stored,
        missing: survey.missing,
        searched: study.is_searched(),
        jobs: jobs.get(),
        minutes_left,
        timed_by,
    };
    if arguments.json {
        say(&serde_json::to_string_pretty(&plan)?)?;
    } else {
        let about = if plan.searched { "about " } else { "" };
        say(&format!(
            "{}: {about}{} runs, {} of them stored; {about}{} to do in some {minutes_left:.1} min on {jobs} cores, \
             by {timed_by}",
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

/// One after the other in real time, each with its own bar.
fn in_turn(planned: &[PlannedRun], runner: &Runner<'_>) -> Result<Outcome, RunError<anyhow::Error>> {
    let total: Span = planned.iter().map(|planned| planned.scenario.duration).sum();
    let minutes = (total.as_secs_f64() / 60.0).ceil();
    tell(format_args!("{} runs one after the other, in real time: about {minutes} min", planned.len()));
    let run = |label: &str, scenario: &Scenario| {
        let progress = Progress::of_run(label, scenario.duration, HostsKind::Kernel);
        let outcome = (runner.run)(scenario, HostsKind::Kernel, &progress);
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

/// The file of a study.
fn find(folder: &Path, name: &str) -> Result<PathBuf> {
    let given = Path::new(name);
    if given.extension().is_some_and(|ending| ending == "toml") {
        return Ok(given.to_owned());
    }
    let path = folder.join(format!("{name}.toml"));
    if path.is_file() {
        return Ok(path);
    }
    let known = names(folder)?;
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let mut near = lasthop_scenario::nearest_names(name, &known, MOST_MEANT);
    if near.is_empty() {
        // For a name without its folder.
        let figures: Vec<&str> = known.iter().filter_map(|name| Some(name.split_once('/')?.1)).collect();
        let figures = lasthop_scenario::nearest_names(name, &figures, 1);
        let meant = |known: &&&str| known.split_once('/').is_some_and(|(_, figure)| figures.contains(&figure));
        near = known.iter().filter(meant).take(MOST_MEANT).copied().collect();
    }
    let meant = if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(", ")) };
    bail!("there is no study {name} in {}{meant}; `lasthop study --list` has all {}", folder.display(), known.len())
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
    let names = names(&arguments.studies)?;
    if names.is_empty() {
        bail!("there is no study in {}: one is a file {0}/PAPER/FIGURE.toml", arguments.studies.display());
    }
    let listed: Vec<Listed> = names.into_iter().map(|name| Listed::of(&arguments.studies, name)).collect();
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
    fn of(folder: &Path, name: String) -> Self {
        match Study::load(&folder.join(format!("{name}.toml"))) {
            Ok(study) => {
                let runs = study.points() as u64 * study.seeds;
                Self { name, size: Some(Size { runs, claims: study.claims.len(), title: study.title }), error: None }
            }
            Err(error) => Self { name, size: None, error: Some(format!("{:#}", anyhow::Error::from(error))) },
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
mod tests {
    use super::*;
    use lasthop_scenario::InvalidKind;
    use lasthop_scenario::{AccessResult, PoliciesResult, SCHEMA_VERSION};
    use std::sync::atomic::{AtomicU64, Ordering};

    /// 3 points; the claim is that the total at 3 is a third of that at 1.
    const STUDY: &str = r#"
title = "A third"
source = "nobody"
scenario = "base.toml"
seeds = 2
[[vary]]
axis = "n"
key = "hosts.0.count"
values = [1, 2, 3]
[[figures]]
title = "total"
x = "n"
y = "aggregate_goodput_mbps"
[[claims]]
id = "third"
text = "A third."
source = "nobody"
value = 'at("aggregate_goodput_mbps", n=3) / at("aggregate_goodput_mbps", n=1)'
at_most = 0.34
required = true
"#;

    /// A folder with this study, changed by these replacements.
    fn studies(changes: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        let of_paper = folder.path().join("nobody");
        std::fs::create_dir(&of_paper).expect("a folder");
        let text = changes.iter().fold(STUDY.to_owned(), |text, (from, to)| text.replace(from, to));
        std::fs::write(of_paper.join("fig-1.toml"), text).expect("a file");
        std::fs::write(folder.path().join("nobody/base.txt"), "").expect("a file");
        std::fs::write(of_paper.join("base.toml"), "duration_s = 20\n[[hosts]]\n").expect("a file");
        folder
    }

    fn arguments(folder: &Path, name: Option<&str>, jobs: usize) -> StudyArguments {
        StudyArguments {
            command: None,
            plan: false,
            shard: None,
            store: StoreArguments { no_store: true, ..StoreArguments::default() },
            overrides: Vec::new(),
            name: name.map(str::to_owned),
            list: name.is_none(),
            studies: folder.to_owned(),
            hosts: None,
            seeds: None,
            out: Some(folder.join(format!("out-{jobs}"))),
            json: false,
            jobs: NonZero::new(jobs),
        }
    }

    /// The total is 12/n, plus a hundredth of the seed.
    fn result(scenario: &Scenario) -> RunResult {
        let n = scenario.expanded_hosts().len() as f64;
        RunResult {
            schema_version: SCHEMA_VERSION,
            scenario: scenario.to_json(),
            hosts_kind: HostsKind::Simulated,
            seed: scenario.seed,
            build: build(),
            duration_s: 20.0,
            warmup_s: 0.0,
            aggregate_goodput_mbps: 12.0 / n + scenario.seed as f64 / 100.0,
            fairness_flows: 0,
            jain_index: None,
            starved_flows: 0,
            rtt_ms: None,
            messages: None,
            transfers: None,
            utilization: 0.0,
            access: AccessResult::default(),
            links: Vec::new(),
            flows: Vec::new(),
            convergence: Vec::new(),
            policies: PoliciesResult::default(),
            kernel_release: None,
            wall_s: 0.0,
            events: 0,
            simulated_s_per_wall_s: 0.0,
            lateness_us: None,
            machine_turnaround_us: None,
            valid: true,
            invalid_reasons: Vec::new(),
            invalid_kinds: Default::default(),
            notes: Vec::new(),
        }
    }

    type RunOne<'a> = &'a (dyn Fn(&Scenario) -> Result<Option<RunResult>> + Sync);

    fn outcome(folder: &Path, jobs: usize, run: RunOne<'_>, stop: &AtomicBool) -> Result<ExitCode> {
        let run = |scenario: &Scenario, _: HostsKind, _: &Progress| run(scenario);
        with(
            &arguments(folder, Some("nobody/fig-1"), jobs),
            &Runner { check: &|_, _| Ok(()), run: &run, model: &unnamed, stop },
        )
    }

    fn unnamed() -> Result<String, String> {
        Err("made for this test".to_owned())
    }

    fn quiet() -> AtomicBool {
        AtomicBool::new(false)
    }

    #[test]
    fn the_same_study_makes_the_same_bytes_whatever_the_number_of_threads() {
        let folder = studies(&[]);
        for jobs in [1, 2, 5] {
            let code = outcome(folder.path(), jobs, &|scenario| Ok(Some(result(scenario))), &quiet()).expect("it runs");
            assert_eq!(code, ExitCode::SUCCESS);
        }
        for file in ["study.json", "points.csv", "report.html", "figures/1-total.svg"] {
            let bytes =
                |jobs: usize| std::fs::read(folder.path().join(format!("out-{jobs}")).join(file)).expect("a file");
            assert!(bytes(1) == bytes(2) && bytes(1) == bytes(5), "{file}");
        }
    }

    /// Two searched cases beside a fixed one. Both find the same maximum, one of them under a condition.
    const SEARCHED: &str = r#"
[[cases]]
label = "as it is"
[[cases]]
label = "most"
set.hosts.0.policy = "fixed"
[cases.search]
key = "hosts.0.bound_segments"
from = 1
to = 100
maximise = 'at("aggregate_goodput_mbps")'
[[cases]]
label = "most below 12"
set.hosts.0.policy = "fixed"
[cases.search]
key = "hosts.0.bound_segments"
from = 1
to = 100
maximise = 'at("aggregate_goodput_mbps")'
conditions = [{ value = 'at("utilization")', at_most = 12 }]
[[vary]]"#;

    fn searched() -> tempfile::TempDir {
        let value = "at(\"aggregate_goodput_mbps\", n=3) / at(\"aggregate_goodput_mbps\", n=1)";
        let found = "at(\"search.value\", case=\"most\", n=2) - at(\"search.value\", case=\"most below 12\", n=2)";
        let at_most = "at_most = 8\nat_least = 8";
        studies(&[
            ("[[vary]]", SEARCHED),
            (value, found),
            ("at_most = 0.34", at_most),
            ("y = \"agg", "where = { case = \"most\" }\ny = \"agg"),
        ])
    }

    /// The total has its maximum at ten segments for each host; the medium's utilisation grows with the bound.
    fn of_bound(scenario: &Scenario) -> RunResult {
        let n = scenario.expanded_hosts().len() as f64;
        let bound = scenario.to_json()["hosts"][0]["bound_segments"].as_f64().unwrap_or(0.0);
        let aggregate_goodput_mbps = 1_000.0 - (bound - 10.0 * n).abs() + scenario.seed as f64 / 100.0;
        RunResult { aggregate_goodput_mbps, utilization: bound, ..result(scenario) }
    }

    #[test]
    fn what_a_search_finds_does_not_depend_on_the_number_of_threads_and_nothing_runs_twice() {
        let folder = searched();
        for jobs in [1, 2, 5] {
            let begun = std::sync::Mutex::new(Vec::new());
            let run = |scenario: &Scenario| {
                begun.lock().expect("no panic").push(scenario.to_toml());
                Ok(Some(of_bound(scenario)))
            };
            // n = 2: 20 is found, and 12 under the condition, to 5 %. It is exactly 20 and 12, because whole numbers
            // are that close.
            assert_eq!(outcome(folder.path(), jobs, &run, &quiet()).expect("it runs"), ExitCode::SUCCESS);
            let mut begun = begun.into_inner().expect("no panic");
            let all = begun.len();
            begun.sort();
            begun.dedup();
            assert_eq!(begun.len(), all, "a scenario ran twice");
        }
        for file in ["study.json", "points.csv"] {
            let bytes =
                |jobs: usize| std::fs::read(folder.path().join(format!("out-{jobs}")).join(file)).expect("a file");
            assert!(bytes(1) == bytes(2) && bytes(1) == bytes(5), "{file}");
        }
        let study = StudyResult::load(&folder.path().join("out-1/study.json")).expect("a result");
        let found: Vec<Option<f64>> =
            study.points.iter().map(|point| point.search.as_ref().map(|found| found.value)).collect();
        let some = |values: [f64; 3]| values.map(Some);
        assert_eq!(found, [[None; 3], some([10.0, 20.0, 30.0]), some([10.0, 12.0, 12.0])].concat());
    }

    #[test]
    fn a_search_that_is_interrupted_or_fails_keeps_nothing() {
        let folder = searched();
        let stopped = |scenario: &Scenario| {
            Ok((scenario.to_json()["hosts"][0]["bound_segments"] != 16).then(|| of_bound(scenario)))
        };
        let error = outcome(folder.path(), 2, &stopped, &quiet()).expect_err("it was interrupted").to_string();
        assert!(error.contains("interrupted"), "{error}");
        let fails = |scenario: &Scenario| match scenario.to_json()["hosts"][0]["bound_segments"].as_u64() {
            Some(16) => bail!("no air"),
            _ => Ok(Some(of_bound(scenario))),
        };
        for jobs in [1, 2, 5] {
            let error = outcome(folder.path(), jobs, &fails, &quiet()).expect_err("it fails");
            assert_eq!(format!("{error:#}"), "at most, n=1, seed 1, hosts.0.bound_segments=16: no air");
        }
        assert!(!folder.path().join("out-1/study.json").exists());
    }

    /// Runs the study with this store.
    fn with_store(folder: &Path, store: &Path, out: &str, shard: Option<&str>, run: RunOne<'_>) -> Result<ExitCode> {
        let arguments = StudyArguments {
            store: StoreArguments { store: Some(store.to_owned()), no_store: false },
            shard: shard.map(|part| Part::parse(part).expect("a part")),
            out: Some(folder.join(out)),
            ..arguments(folder, Some("nobody/fig-1"), 2)
        };
        let run = |scenario: &Scenario, _: HostsKind, _: &Progress| run(scenario);
        let model = || Ok("a model".to_owned());
        with(&arguments, &Runner { check: &|_, _| Ok(()), run: &run, model: &model, stop: &quiet() })
    }

    fn bytes(folder: &Path, out: &str) -> Vec<Vec<u8>> {
        let files = ["study.json", "points.csv", "report.html", "figures/1-total.svg"];
        files.map(|file| std::fs::read(folder.join(out).join(file)).expect("a file")).to_vec()
    }

    #[test]
    fn shards_merged_make_the_bytes_of_one_run_and_nothing_runs_twice() {
        let folder = searched();
        let at = |name: &str| folder.path().join(name);
        let begun = AtomicU64::new(0);
        let run = |scenario: &Scenario| {
            begun.fetch_add(1, Ordering::Relaxed);
            Ok(Some(of_bound(scenario)))
        };
        with_store(folder.path(), &at("whole"), "one", None, &run).expect("it runs");
        let all = begun.swap(0, Ordering::Relaxed);
        for part in ["1/3", "2/3", "3/3"] {
            let store = at(&part.replace('/', "-"));
            assert_eq!(
                with_store(folder.path(), &store, "none", Some(part), &run).expect("it runs"),
                ExitCode::SUCCESS
            );
        }
        assert_eq!(begun.swap(0, Ordering::Relaxed), all, "the parts together are the whole");
        assert!(!at("none").exists(), "a part judges nothing");
        assert_eq!(merge(&["1-3", "2-3", "3-3"].map(at), Some(&at("merged"))).expect("it merges"), ExitCode::SUCCESS);
        let never = |_: &Scenario| -> Result<Option<RunResult>> { panic!("it ran") };
        with_store(folder.path(), &at("merged"), "merged-out", None, &never).expect("all is there");
        assert!(bytes(folder.path(), "one") == bytes(folder.path(), "merged-out"));
    }

    /// Set for a study that is killed: its folder.
    const KILLED: &str = "LASTHOP_TEST_KILLED_STUDY";

    /// Not a test by itself: what the next one starts and kills. Its seventh run never ends.
    #[test]
    fn a_study_that_hangs_after_six_runs() {
        let Some(folder) = std::env::var_os(KILLED).map(PathBuf::from) else { return };
        let begun = AtomicU64::new(0);
        let run = |scenario: &Scenario| {
            if begun.fetch_add(1, Ordering::Relaxed) < 6 {
                return Ok(Some(of_bound(scenario)));
            }
            std::fs::write(folder.join("hangs"), "").expect("a file");
            loop {
                std::thread::park();
            }
        };
        let _ = with_store(&folder, &folder.join("store"), "out", None, &run);
    }

    #[test]
    fn a_study_that_was_killed_does_only_what_is_missing() {
        let folder = searched();
        let name = "study::tests::a_study_that_hangs_after_six_runs";
        let mut child = std::process::Command::new(std::env::current_exe().expect("this test"))
            .args(["--exact", name, "--nocapture"])
            .env(KILLED, folder.path())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .expect("it starts");
        let stored = || {
            let groups = std::fs::read_dir(folder.path().join("store")).into_iter().flatten().flatten();
            let groups = groups.filter(|group| group.file_name() != "tmp");
            groups.flat_map(|group| std::fs::read_dir(group.path()).into_iter().flatten()).count() as u64
        };
        // Two threads: one hangs, the other may still store its sixth.
        while !folder.path().join("hangs").exists() || stored() < 6 {
            assert!(child.try_wait().expect("a child").is_none(), "it ended");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        child.kill().expect("a child");
        child.wait().expect("a child");
        let begun = AtomicU64::new(0);
        let run = |scenario: &Scenario| {
            begun.fetch_add(1, Ordering::Relaxed);
            Ok(Some(of_bound(scenario)))
        };
        with_store(folder.path(), &folder.path().join("fresh"), "fresh", None, &run).expect("it runs");
        let all = begun.swap(0, Ordering::Relaxed);
        with_store(folder.path(), &folder.path().join("store"), "again", None, &run).expect("it runs");
        assert_eq!(begun.load(Ordering::Relaxed), all - 6);
        assert!(bytes(folder.path(), "fresh") == bytes(folder.path(), "again"));
    }

    #[test]
    fn a_store_on_a_full_disk_fails_no_study() {
        use nix::mount::{MntFlags, MsFlags, mount, umount2};
        let folder = studies(&[]);
        let disk = folder.path().join("disk");
        std::fs::create_dir(&disk).expect("a folder");
        let tiny = Some("size=4k,nr_inodes=3");
        if let Err(error) = mount(Some("tmpfs"), &disk, Some("tmpfs"), MsFlags::empty(), tiny) {
            assert!(std::env::var_os("LASTHOP_REQUIRE_ROOT_TESTS").is_none(), "cannot mount a tmpfs: {error}");
            eprintln!("skipped: cannot mount a tmpfs: {error}");
            return;
        }
        let run = |scenario: &Scenario| Ok(Some(result(scenario)));
        // Room for the folder of temporary files alone.
        let code = with_store(folder.path(), &disk, "out", None, &run);
        umount2(&disk, MntFlags::MNT_DETACH).expect("it was mounted");
        assert_eq!(code.expect("it runs"), ExitCode::SUCCESS);
        assert_eq!(bytes(folder.path(), "out").len(), 4);
    }

    #[test]
    fn a_shard_needs_a_store_and_is_not_for_kernel_hosts() {
        let folder = studies(&[]);
        let run = |_: &Scenario, _: HostsKind, _: &Progress| -> Result<Option<RunResult>> { panic!("it ran") };
        let runner = Runner { check: &|_, _| Ok(()), run: &run, model: &unnamed, stop: &quiet() };
        let shard = Part::parse("1/2").ok();
        let arguments = StudyArguments { shard, out: None, ..arguments(folder.path(), Some("nobody/fig-1"), 1) };
        let error = with(&arguments, &runner).expect_err("no store").to_string();
        assert!(error.contains("--shard does runs for the store"), "{error}");
        let arguments = StudyArguments { hosts: Some(Habitat::Kernel), jobs: None, ..arguments };
        let error = with(&arguments, &runner).expect_err("no store").to_string();
        assert!(error.contains("--shard does runs for the store"), "{error}");
    }

    #[test]
    fn a_search_is_not_for_kernel_hosts() {
        let folder = searched();
        let arguments = StudyArguments {
            hosts: Some(Habitat::Kernel),
            jobs: None,
            ..arguments(folder.path(), Some("nobody/fig-1"), 1)
        };
        let run = |_: &Scenario, _: HostsKind, _: &Progress| -> Result<Option<RunResult>> { panic!("it ran") };
        let runner = Runner { check: &|_, _| Ok(()), run: &run, model: &unnamed, stop: &quiet() };
        let error = with(&arguments, &runner).expect_err("no search").to_string();
        assert!(error.contains("[cases.search]") && error.contains("simulated hosts"), "{error}");
    }

    #[test]
    fn a_required_claim_that_does_not_hold_ends_with_1() {
        let code = |changes| {
            let folder = studies(changes);
            outcome(folder.path(), 2, &|scenario| Ok(Some(result(scenario))), &quiet()).expect("it runs")
        };
        assert_eq!(code(&[("at_most = 0.34", "at_most = 0.33")]), ExitCode::from(FAILED));
        assert_eq!(code(&[("at_most = 0.34", "at_most = 0.33"), ("required = true", "")]), ExitCode::SUCCESS);
        // A measure that no run has can never hold, required or not.
        let nobody = [("at(\"aggregate_goodput_mbps\", n=3)", "at(\"jain_index\", n=3)"), ("required = true", "")];
        assert_eq!(code(&nobody), ExitCode::from(FAILED));
    }

    #[test]
    fn a_run_that_is_not_valid_ends_with_1() {
        let folder = studies(&[]);
        let invalid = |scenario: &Scenario| Ok(Some(RunResult { valid: false, ..result(scenario) }));
        assert_eq!(outcome(folder.path(), 2, &invalid, &quiet()).expect("it runs"), ExitCode::from(FAILED));
    }

    #[test]
    fn the_first_failure_in_order_is_told_with_its_point() {
        let folder = studies(&[]);
        let run = |scenario: &Scenario| {
            let n = scenario.expanded_hosts().len();
            if n == 1 { Ok(Some(result(scenario))) } else { bail!("no air for {n}") }
        };
        for jobs in [1, 2, 6] {
            let error = outcome(folder.path(), jobs, &run, &quiet()).expect_err("it fails");
            assert_eq!(format!("{error:#}"), "at n=2, seed 1: no air for 2");
        }
        assert!(!folder.path().join("out-1/study.json").exists());
    }

    #[test]
    fn after_an_interruption_nothing_more_is_begun_and_nothing_is_kept() {
        let folder = studies(&[("values = [1, 2, 3]", "values = [1, 3, 4, 5, 6, 7, 8, 9, 10, 11]")]);
        let (stop, begun) = (quiet(), AtomicU64::new(0));
        let run = |scenario: &Scenario| {
            if begun.fetch_add(1, Ordering::Relaxed) == 3 {
                stop.store(true, Ordering::Relaxed);
                return Ok(None);
            }
            Ok(Some(result(scenario)))
        };
        let error = outcome(folder.path(), 1, &run, &stop).expect_err("it was interrupted").to_string();
        assert!(error.contains("interrupted"), "{error}");
        assert_eq!(begun.load(Ordering::Relaxed), 4);
        assert!(!folder.path().join("out-1/study.json").exists());
    }

    #[test]
    fn what_cannot_be_run_is_found_before_the_first_run() {
        let folder = studies(&[]);
        let check = |scenario: &Scenario, _: HostsKind| {
            if scenario.expanded_hosts().len() < 3 { Ok(()) } else { bail!("too many") }
        };
        let run = |_: &Scenario, _: HostsKind, _: &Progress| -> Result<Option<RunResult>> { panic!("it ran") };
        let runner = Runner { check: &check, run: &run, model: &unnamed, stop: &quiet() };
        let error = with(&arguments(folder.path(), Some("nobody/fig-1"), 1), &runner).expect_err("too many");
        assert_eq!(format!("{error:#}"), "the point n=3 cannot be run: too many");
    }

    /// Runs a study on kernel hosts with this runner. Returns its study.json, if there is one.
    fn on_kernel_hosts(run: RunOne<'_>) -> (Result<ExitCode>, Option<StudyResult>) {
        let folder = studies(&[("seeds = 2", "seeds = 2\nhosts = \"kernel\"")]);
        let arguments = StudyArguments { jobs: None, ..arguments(folder.path(), Some("nobody/fig-1"), 0) };
        let run = |scenario: &Scenario, hosts: HostsKind, _: &Progress| {
            assert_eq!(hosts, HostsKind::Kernel);
            run(scenario)
        };
        let code = with(&arguments, &Runner { check: &|_, _| Ok(()), run: &run, model: &unnamed, stop: &quiet() });
        (code, StudyResult::load(&folder.path().join("out-0/study.json")).ok())
    }

    const LATE: &str = "99 % of the deliveries were up to 2310 us late, more than 1000 us";

    fn invalid(scenario: &Scenario, kind: InvalidKind, reason: &str) -> RunResult {
        let (invalid_reasons, invalid_kinds) = (vec![reason.to_owned()], [kind].into());
        RunResult { valid: false, invalid_reasons, invalid_kinds, ..result(scenario) }
    }

    #[test]
    fn on_kernel_hosts_a_late_run_is_done_again_and_that_is_told() {
        let begun = AtomicU64::new(0);
        // The second of six runs is late, and so is its first repetition.
        let (code, study) = on_kernel_hosts(&|scenario| {
            let late = [1, 2].contains(&begun.fetch_add(1, Ordering::Relaxed));
            Ok(Some(if late { invalid(scenario, InvalidKind::Late, LATE) } else { result(scenario) }))
        });
        assert_eq!(code.expect("it runs"), ExitCode::SUCCESS);
        let study = study.expect("a result");
        assert_eq!((study.hosts_kind, study.valid, study.repeated_runs), (HostsKind::Kernel, true, 2));
        assert_eq!(begun.load(Ordering::Relaxed), 8);
    }

    #[test]
    fn a_run_that_stays_late_or_failed_otherwise_is_not_done_again_for_ever() {
        let begun = AtomicU64::new(0);
        let (code, study) = on_kernel_hosts(&|scenario| {
            begun.fetch_add(1, Ordering::Relaxed);
            let ended = "flow 0 of host 0: the connection ended: EPIPE";
            let (kind, reason) =
                if scenario.seed == 1 { (InvalidKind::Late, LATE) } else { (InvalidKind::Failed, ended) };
            Ok(Some(invalid(scenario, kind, reason)))
        });
        assert_eq!(code.expect("it runs"), ExitCode::from(FAILED));
        let study = study.expect("a result");
        // The three points with seed 1 run three times each, those with seed 2 once.
        assert_eq!((begun.load(Ordering::Relaxed), study.repeated_runs, study.valid), (12, 6, false));
    }

    #[test]
    fn jobs_are_not_for_kernel_hosts() {
        let folder = studies(&[]);
        let arguments =
            StudyArguments { hosts: Some(Habitat::Kernel), ..arguments(folder.path(), Some("nobody/fig-1"), 1) };
        let run = |_: &Scenario, _: HostsKind, _: &Progress| -> Result<Option<RunResult>> { panic!("it ran") };
        let runner = Runner { check: &|_, _| Ok(()), run: &run, model: &unnamed, stop: &quiet() };
        let error = with(&arguments, &runner).expect_err("no jobs").to_string();
        assert!(error.contains("--jobs is for simulated hosts"), "{error}");
    }

    #[test]
    fn a_study_is_found_by_its_name_or_its_path() {
        let folder = studies(&[]);
        let file = folder.path().join("nobody/fig-1.toml");
        assert_eq!(find(folder.path(), "nobody/fig-1").expect("the study"), file);
        assert_eq!(find(Path::new("nowhere"), &file.display().to_string()).expect("the study"), file);
        let error = find(folder.path(), "nobody/fig-2").expect_err("no such study").to_string();
        let meant = "there is no study nobody/fig-2 in ";
        assert!(error.starts_with(meant) && error.contains("did you mean nobody/fig-1"), "{error}");
        let error = find(folder.path(), "fig-1").expect_err("no such study").to_string();
        assert!(error.contains("did you mean nobody/fig-1"), "{error}");
        let error = format!("{:#}", find(&folder.path().join("none"), "a/b").expect_err("no such folder"));
        assert!(error.contains("--studies DIR"), "{error}");
    }

    #[test]
    fn a_study_that_cannot_be_read_is_listed_with_why() {
        let folder = studies(&[]);
        // The scenario file beside the study is not a study.
        let code = list(&arguments(folder.path(), None, 1)).expect("a list");
        assert_eq!(code, ExitCode::from(COULD_NOT_RUN));
        std::fs::remove_file(folder.path().join("nobody/base.toml")).expect("it was there");
        std::fs::write(folder.path().join("base.toml"), "[[hosts]]\n").expect("a file");
        let text = STUDY.replace("base.toml", "../base.toml");
        std::fs::write(folder.path().join("nobody/fig-1.toml"), text).expect("a file");
        assert_eq!(list(&arguments(folder.path(), None, 1)).expect("a list"), ExitCode::SUCCESS);
    }
}
