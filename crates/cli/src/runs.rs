//! `lasthop run` and `lasthop compare`.

use crate::built_in::Found;
use crate::clock::{AlsoKept, ClockArguments, Emulated};
use crate::live::{live_run, on_sample};
use crate::numbers::{MOST_JOBS, MOST_SEED, whole};
use crate::out_folder::{Kind, OutFolder};
use crate::progress::Progress;
use crate::simulate::simulate;
use crate::stored::{StoreArguments, finish, model};
use crate::{FAILED, Interrupted, build, say, stop_on_signals, tell};
use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, ValueEnum};
use lasthop_capture::Capture;
use lasthop_files::Whole;
use lasthop_lab::Records;
use lasthop_network::{AccessConfig, Topology};
use lasthop_report::{FigureFormat, Live, LiveRun};
use lasthop_scenario::{
    AgentMode, Case, Clock, HostsKind, IneffectiveKey, InvalidKind, Override, ResultFile as _, RunResult, Scenario,
    Series, Vary, short_warmups,
};
use lasthop_study::{CaseError, Load, StoredRuns, compared, parallel, plan_cases, until_not_late};
use std::cell::Cell;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// The arguments that `run` and `compare` have in common.
#[derive(Args)]
struct Common {
    /// The scenario: a TOML file (docs/guide/scenario.md), or the name of a built-in one, such as ten-uploads
    scenario: PathBuf,
    /// The kind of hosts: `simulated` in virtual time, or `kernel`: this machine's own TCP, in real time, as root
    #[arg(long, value_enum, default_value_t = Habitat::Simulated)]
    hosts: Habitat,
    #[command(flatten)]
    clock: ClockArguments,
    /// What sends and receives on kernel hosts: lasthop's own sockets, or the program iperf3
    #[arg(long, value_enum, default_value_t = Traffic::Own)]
    traffic: Traffic,
    /// Change a key of the scenario, such as hosts.0.policy=lasthop; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = Override::parse)]
    overrides: Vec<Override>,
    /// Repeat a run of kernel hosts up to N times if it was late because the machine was busy
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole::<u64>(0..=100), allow_negative_numbers = true)]
    retries: u64,
    /// Keep the result, the series, the figures and a report.html in this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    figures: FigureArguments,
    /// Print the whole result as one JSON document instead of a table
    #[arg(long)]
    json: bool,
}

/// In which formats figures are kept.
#[derive(Args)]
pub(crate) struct FigureArguments {
    /// The formats of the figures in the folder of --out, separated by commas
    #[arg(
        long = "figures",
        value_enum,
        value_name = "FORMATS",
        value_delimiter = ',',
        default_value = "svg",
        requires = "out"
    )]
    formats: Vec<Format>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Svg,
    Pdf,
    Png,
}

impl Default for FigureArguments {
    fn default() -> Self {
        Self { formats: vec![Format::Svg] }
    }
}

impl FigureArguments {
    /// Each format once.
    pub(crate) fn formats(&self) -> Vec<FigureFormat> {
        let of = |format: Format| match format {
            Format::Svg => FigureFormat::Svg,
            Format::Pdf => FigureFormat::Pdf,
            Format::Png => FigureFormat::Png,
        };
        let all = Format::value_variants().iter().copied();
        all.filter(|format| self.formats.contains(format)).map(of).collect()
    }
}

/// What of a run's packets is kept.
#[derive(Args)]
pub(crate) struct CaptureArguments {
    /// Write all packets into this file for Wireshark (pcapng): those of each host, on the air, and lost
    #[arg(long, value_name = "FILE")]
    pub(crate) pcap: Option<PathBuf>,
    /// The most bytes of a packet that --pcap keeps
    #[arg(long, value_name = "BYTES", default_value_t = 128, value_parser = whole::<u32>(1..=65_535), allow_negative_numbers = true)]
    pub(crate) snaplen: u32,
}

/// By which `--pcap` knows a capture of its own.
pub(crate) const CAPTURE: lasthop_files::Kind =
    lasthop_files::Kind { name: "a capture", looked_at: lasthop_capture::BEGINNING, is: lasthop_capture::is_capture };

/// A capture, and the file that it grows in.
pub(crate) struct Captured {
    pub(crate) capture: Mutex<Capture>,
    file: Whole,
}

impl CaptureArguments {
    /// Begins the capture, if there is to be one.
    pub(crate) fn begin(&self, scenario: &Scenario) -> Result<Option<Captured>> {
        let Some(file) = self.begin_file()? else { return Ok(None) };
        let has_air =
            matches!(scenario.network().topology, Topology::AccessPoint { access: AccessConfig::Wifi(_), .. });
        let sink = file.file().try_clone().with_context(|| cannot_write_capture(file.path()))?;
        let capture = Mutex::new(Capture::new(Box::new(sink), self.snaplen, &scenario.host_names(), has_air));
        Ok(Some(Captured { capture, file }))
    }

    /// Begins the file alone, for an emulated machine's capture.
    pub(crate) fn begin_file(&self) -> Result<Option<Whole>> {
        let begin = |path: &PathBuf| Whole::begin(path, Some(&CAPTURE)).with_context(|| cannot_write_capture(path));
        self.pcap.as_ref().map(begin).transpose()
    }
}

impl Captured {
    /// Writes what is left of the capture, and puts it in its place. That of an interrupted run replaces none. Returns
    /// whether it is kept.
    pub(crate) fn finish(self, is_whole: bool) -> Result<bool> {
        let Self { capture, file } = self;
        let ended = capture.into_inner().unwrap_or_else(PoisonError::into_inner).finish();
        let keeps = is_whole || !file.replaces();
        let cannot = format!("{}: it ends too early; the result is whole", cannot_write_capture(file.path()));
        let put = if keeps { file.put_in_place() } else { Ok(()) };
        ended.and(put).map(|()| keeps).context(cannot)
    }
}

/// Puts a capture in its place that was written elsewhere.
pub(crate) fn put_capture(file: Whole) -> Result<()> {
    let cannot = cannot_write_capture(file.path());
    file.put_in_place().context(cannot)
}

pub(crate) fn cannot_write_capture(path: &Path) -> String {
    format!("cannot write the capture {}", path.display())
}

#[derive(Args)]
pub(crate) struct RunArguments {
    #[command(flatten)]
    common: Common,
    /// The seed of all random draws, instead of the scenario's
    #[arg(long, value_parser = whole(0..=MOST_SEED), allow_negative_numbers = true)]
    seed: Option<u64>,
    #[command(flatten)]
    capture: CaptureArguments,
    /// Keep in this folder what each agent records: HOST.jsonl, for `lasthop trace from` and `lasthop top --replay`
    #[arg(long, value_name = "DIR")]
    records: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct CompareArguments {
    #[command(flatten)]
    common: Common,
    /// Run with each of these values; several --vary make all combinations
    #[arg(long = "vary", value_name = "KEY=A,B,C", value_parser = Vary::parse)]
    varied: Vec<Vary>,
    /// Run one case, such as "bbr: hosts.0.congestion_control=bbr"; may be repeated
    #[arg(long = "case", value_name = "LABEL: KEY=VALUE ...", value_parser = Case::parse, conflicts_with = "varied")]
    cases: Vec<Case>,
    /// Run each case with this number of seeds, beginning with the scenario's
    #[arg(long, default_value_t = 1, value_parser = whole::<u64>(1..=1000), allow_negative_numbers = true)]
    seeds: u64,
    /// The number of runs at once; not of kernel hosts in real time; without it the number of cores, or as many emulated machines
    /// as there is memory for
    #[arg(long, value_parser = whole(NonZero::<usize>::MIN..=MOST_JOBS), allow_negative_numbers = true)]
    jobs: Option<NonZero<usize>>,
    #[command(flatten)]
    store: StoreArguments,
}

/// The kind of hosts.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Habitat {
    Simulated,
    Kernel,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Traffic {
    Own,
    Iperf3,
}

impl Common {
    /// Whether these hosts can run the scenario.
    fn check(&self, scenario: &Scenario) -> Result<()> {
        self.clock.check_last_hop(scenario)?;
        match self.hosts {
            Habitat::Simulated if self.traffic == Traffic::Iperf3 => {
                bail!("--traffic iperf3 needs real sockets: add --hosts kernel")
            }
            Habitat::Simulated if self.retries > 0 => {
                bail!("simulated hosts are never late: --retries is for --hosts kernel")
            }
            Habitat::Simulated => Ok(lasthop_sim::check(scenario)?),
            Habitat::Kernel if self.clock.is_virtual() && self.retries > 0 => {
                bail!("an emulated machine does the same again: --retries is for --clock real")
            }
            Habitat::Kernel if self.clock.is_virtual() => self.clock.check_scenario(scenario, self.traffic.source()),
            Habitat::Kernel => Ok(lasthop_lab::check(scenario, self.traffic.source())?),
        }
    }

    /// The memory of these runs.
    fn load<'a>(&self, scenarios: Vec<&'a Scenario>, jobs: NonZero<usize>) -> Load<'a> {
        let hosts = self.hosts.hosts_kind();
        Load { scenarios, jobs: jobs.get(), hosts, series: self.keeps_series(), beside: self.clock.memory(hosts) }
    }

    /// The progress of a run.
    fn progress(&self, label: &str, scenario: &Scenario) -> Progress {
        Progress::of_run(label, scenario.duration, self.clock.how(self.hosts.hosts_kind()))
    }

    /// Whether the series are needed.
    const fn keeps_series(&self) -> bool {
        self.out.is_some()
    }
}

impl Habitat {
    pub(crate) const fn hosts_kind(self) -> HostsKind {
        match self {
            Self::Simulated => HostsKind::Simulated,
            Self::Kernel => HostsKind::Kernel,
        }
    }
}

impl Traffic {
    const fn source(self) -> lasthop_lab::TrafficSource {
        match self {
            Self::Own => lasthop_lab::TrafficSource::Own,
            Self::Iperf3 => lasthop_lab::TrafficSource::Iperf3,
        }
    }
}

/// `lasthop run`.
pub(crate) fn run(arguments: &RunArguments) -> Result<ExitCode> {
    let common = &arguments.common;
    common.clock.check(common.hosts.hosts_kind())?;
    let seed = arguments.seed.map(Override::seed);
    let overrides: Vec<Override> = common.overrides.iter().cloned().chain(seed).collect();
    let found = Found::scenario(&common.scenario)?;
    let scenario = found.load(&overrides)?;
    common.check(&scenario)?;
    if arguments.capture.pcap.is_some() {
        common.clock.check_last_hop_is_the_models("--pcap")?;
    }
    tell_of_changes(&scenario);
    tell_ineffective(&lasthop_scenario::ineffective_keys([&scenario]));
    check_memory(&common.load(vec![&scenario], NonZero::<usize>::MIN))?;
    tell_of_short_warmups([&scenario]);
    let stop = stop_on_signals()?;
    let formats = common.figures.formats();
    let out = claim(common.out.as_deref(), Kind::Run, || lasthop_report::run_files(&formats))?;
    let progress = common.progress(&scenario.name, &scenario);
    let path = arguments.capture.pcap.as_ref();
    if path.is_some() && common.retries > 0 {
        bail!("--retries repeats a run, and --pcap shows one: give one of them");
    }
    if let Some(folder) = &arguments.records {
        if common.hosts != Habitat::Kernel {
            bail!("only agents on kernel hosts write records: --records needs --hosts kernel");
        }
        if scenario.hosts.iter().all(|block| block.kind.agent == AgentMode::Off) {
            bail!("no host of this scenario has an agent that records: agent = \"observe\" gives it one");
        }
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let emulated = common.clock.machine(&stop)?;
    // An emulated machine writes the capture itself.
    let (capture, of_guest) = match emulated {
        Some(_) => (None, arguments.capture.begin_file()?),
        None => (arguments.capture.begin(&scenario)?, None),
    };
    let live = out.as_ref().and_then(|out| out.live(1));
    let live_run = live_run(live.as_ref(), &scenario.name, &scenario, common.hosts.hosts_kind(), true);
    let of_run = capture.as_ref().map(|captured| &captured.capture);
    let records = arguments.records.as_deref();
    let pcap = of_guest.as_ref().map(|whole| (whole, arguments.capture.snaplen));
    let lost = Cell::new(None);
    let of_agents = records.map(Records::in_folder);
    let records = records.zip(of_agents.as_ref());
    let kept = Kept { live: live_run.as_ref(), capture: of_run, pcap, records, lost: Some(&lost) };
    let outcome = one_run(common, emulated.as_ref(), &scenario, &stop, &progress, &kept)?;
    let captured = match (of_guest, &outcome) {
        (Some(file), Some(_)) => put_capture(file).map(|()| true),
        _ => capture.map_or(Ok(false), |captured| captured.finish(outcome.is_some())),
    };
    let of_agents = of_agents.map(|records| records.kept()).unwrap_or_default();
    let nothing = || {
        let capture = path.filter(|_| captured.as_ref().is_ok_and(|is_kept| *is_kept));
        let capture = capture.map(|path| path.display().to_string());
        let records = arguments.records.as_ref().filter(|_| of_agents.kept > 0);
        let records = records.map(|folder| format!("{} ({} of the agents' records)", folder.display(), of_agents.kept));
        let all: Vec<String> = capture.into_iter().chain(records).collect();
        Interrupted(match all.is_empty() {
            true => "nothing was kept, and nothing is left behind".to_owned(),
            false => format!("only this was kept, as far as the run went: {}", all.join(", ")),
        })
    };
    let (result, series) = outcome.ok_or_else(nothing)?;
    // Kept before printing: a closed pipe or a full disk behind standard output then costs no result.
    let kept = keep(out, |folder| lasthop_report::write_run(folder, &result, &series, &formats));
    say(&if common.json { result.to_json() } else { lasthop_report::tables::run(&result) })?;
    kept?;
    tell_why_not_valid([&result]);
    captured?;
    if !of_agents.lost.is_empty() {
        bail!("the result is whole, but records of agents are lost: {}", of_agents.lost.join("; "));
    }
    lost.take().map_or(Ok(exit_code(result.valid)), Err)
}

/// `lasthop compare`.
pub(crate) fn compare(arguments: &CompareArguments) -> Result<ExitCode> {
    let common = &arguments.common;
    common.clock.check(common.hosts.hosts_kind())?;
    let cases = if arguments.cases.is_empty() { Vary::cases(&arguments.varied) } else { arguments.cases.clone() };
    let cases = Vary::also(cases, "kernel", &common.clock.kernels());
    if cases.len() < 2 && arguments.seeds < 2 {
        bail!("there is nothing to compare: give --vary key=a,b,c, --case twice, --kernel A,B, or --seeds N");
    }
    let in_real_time = common.hosts == Habitat::Kernel && !common.clock.is_virtual();
    if arguments.jobs.is_some() && in_real_time {
        bail!(
            "kernel hosts run in real time, one run after the other: --jobs is for --hosts simulated or --clock virtual"
        );
    }
    let found = Found::scenario(&common.scenario)?;
    let base = found.load(&common.overrides)?;
    tell_of_changes(&base);
    let seeds: Vec<u64> = (base.seed..base.seed + arguments.seeds).collect();
    // All runs are read and checked before the first one starts, so that a mistake in the last costs no time.
    let planned = plan_cases(&cases, &common.overrides, &seeds, |overrides| -> Result<Scenario> {
        let scenario = found.load(overrides)?;
        common.check(&scenario).map(|()| scenario)
    });
    let planned = planned.map_err(|error| {
        let place = error.to_string();
        match error {
            CaseError::Scenario { error, .. } => error.context(place),
            CaseError::Label(_) | CaseError::Covered(..) => anyhow!(place),
            CaseError::Seed => anyhow!("{place}: --seeds N says how many"),
        }
    })?;
    let scenarios: Vec<&Scenario> = planned.iter().map(|(_, scenario)| scenario).collect();
    tell_ineffective(&lasthop_scenario::ineffective_keys(scenarios.iter().copied()));
    let hosts = common.hosts.hosts_kind();
    let jobs = common.clock.jobs(hosts, arguments.jobs);
    check_memory(&common.load(scenarios, jobs))?;
    tell_of_short_warmups(planned.iter().map(|(_, scenario)| scenario));
    let stop = stop_on_signals()?;
    let stored = arguments.store.open(hosts, model())?;
    let labels: Vec<&str> = cases.iter().map(|case| case.label.as_str()).collect();
    let of_seeds = base.seed..base.seed + arguments.seeds;
    let planned_files = || lasthop_report::comparison_files(&labels, of_seeds, &common.figures.formats());
    let out = claim(common.out.as_deref(), Kind::Comparison, planned_files)?;
    let live = out.as_ref().and_then(|out| out.live(planned.len()));
    let machines = common.clock.machines(&stop)?;
    let plan = Plan { cases: &cases, runs: &planned, live: live.as_ref(), machines: &machines };
    let runs = match in_real_time {
        false => run_at_once(arguments, &plan, jobs, &stored, &stop),
        true => run_in_turn(arguments, &plan, &stop),
    };
    finish(&stored);
    let valid = keep_comparison(arguments, &base, &cases, runs?, out)?;
    Ok(exit_code(valid))
}

/// All runs of a comparison, each with the number of its case.
type Runs = Vec<(usize, RunResult, Series)>;

/// The runs of a comparison.
struct Plan<'a> {
    cases: &'a [Case],
    /// Each with the number of its case.
    runs: &'a [(usize, Scenario)],
    live: Option<&'a Live>,
    /// One for each kernel: it changes fastest from case to case.
    machines: &'a [Emulated],
}

impl Plan<'_> {
    /// The run's case and, with several, its seed.
    fn label(&self, (case, scenario): &(usize, Scenario)) -> String {
        let several = self.runs.iter().filter(|(other, _)| other == case).count() > 1;
        let seed = if several { format!(", seed {}", scenario.seed) } else { String::new() };
        format!("{}{seed}", self.cases[*case].label)
    }

    /// Does one of the runs, and shows it meanwhile.
    fn one_run(
        &self,
        common: &Common,
        run: &(usize, Scenario),
        stop: &Arc<AtomicBool>,
        progress: &Progress,
    ) -> Result<Option<(RunResult, Series)>> {
        let live = live_run(self.live, &self.label(run), &run.1, common.hosts.hosts_kind(), true);
        let kept = Kept { live: live.as_ref(), ..Kept::default() };
        let emulated = self.machines.get(run.0 % self.machines.len().max(1));
        let outcome = one_run(common, emulated, &run.1, stop, progress, &kept);
        if let (Ok(Some((result, _))), Some(live)) = (&outcome, live) {
            live.ended(result);
        }
        outcome
    }
}

/// One after the other: kernel hosts run in real time.
fn run_in_turn(arguments: &CompareArguments, plan: &Plan<'_>, stop: &Arc<AtomicBool>) -> Result<Runs> {
    let (common, planned) = (&arguments.common, plan.runs.len());
    let mut runs = Vec::new();
    for run in plan.runs {
        let label = format!("[{}/{planned}] {}", runs.len() + 1, plan.label(run));
        let (number, scenario) = run;
        let progress = common.progress(&label, scenario);
        let outcome = plan.one_run(common, run, stop, &progress);
        let outcome = outcome.with_context(|| ended_early(runs.len(), planned))?;
        let (result, series) = outcome.ok_or_else(|| Interrupted(ended_early(runs.len(), planned)))?;
        runs.push((*number, result, if common.keeps_series() { series } else { Series::default() }));
    }
    Ok(runs)
}

/// On `jobs` cores. The results do not depend on that number.
fn run_at_once(
    arguments: &CompareArguments,
    plan: &Plan<'_>,
    jobs: NonZero<usize>,
    stored: &StoredRuns,
    stop: &Arc<AtomicBool>,
) -> Result<Runs> {
    let (common, planned) = (&arguments.common, plan.runs);
    let progress = Progress::of_many(planned.len());
    let failed = AtomicBool::new(false);
    let outcomes = parallel::in_order(planned, jobs, |run| {
        // After a failure no new run starts.
        if stop.load(Ordering::Relaxed) || failed.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let ran = AtomicBool::new(false);
        let once = || {
            ran.store(true, Ordering::Relaxed);
            plan.one_run(common, run, stop, &Progress::Silent)
        };
        let outcome = stored.run(&run.1, common.keeps_series(), once);
        if let (Some(live), false) = (plan.live, ran.into_inner()) {
            live.done(1);
        }
        failed.fetch_or(outcome.is_err(), Ordering::Relaxed);
        // One that a signal has ended is not done.
        if let Ok(Some(_)) = outcome {
            progress.more(1, stored.ran());
        }
        outcome
    });
    progress.finish();
    let done = outcomes.iter().filter(|outcome| matches!(outcome, Ok(Some(_)))).count();
    let ended_early = || ended_early(done, planned.len());
    let outcomes = outcomes.into_iter().collect::<Result<Vec<_>>>().with_context(ended_early)?;
    let mut runs = Vec::with_capacity(planned.len());
    for ((number, _), outcome) in planned.iter().zip(outcomes) {
        let (result, series) = outcome.ok_or_else(|| Interrupted(ended_early()))?;
        runs.push((*number, result, series));
    }
    Ok(runs)
}

/// Nothing is kept: a comparison of some of the cases would mislead.
fn ended_early(done: usize, planned: usize) -> String {
    format!("{done} of {planned} runs were done, and nothing was kept")
}

/// Prints and writes a comparison. Returns whether every run is valid.
fn keep_comparison(
    arguments: &CompareArguments,
    base: &Scenario,
    cases: &[Case],
    runs: Runs,
    out: Option<OutFolder>,
) -> Result<bool> {
    let common = &arguments.common;
    let results = runs.iter().map(|(number, result, _)| (*number, result.clone()));
    let comparison = compared(base, common.hosts.hosts_kind(), build(), &arguments.varied, cases, results);
    let kept = keep(out, |folder| {
        let runs = runs.into_iter().map(|(number, result, series)| (cases[number].label.clone(), result, series));
        lasthop_report::write_comparison(folder, &comparison, &runs.collect::<Vec<_>>(), &common.figures.formats())
    });
    say(&if common.json { comparison.to_json() } else { lasthop_report::tables::comparison(&comparison) })?;
    kept?;
    tell_why_not_valid(comparison.cases.iter().flat_map(|case| &case.runs));
    Ok(comparison.valid)
}

/// Refuses runs that need too much memory, and says which options change that.
pub(crate) fn check_memory(load: &Load<'_>) -> Result<()> {
    let several = if load.scenarios.len() > 1 { ", fewer seeds or cases, a smaller --jobs" } else { "" };
    let out = if load.series { ", or leave --out away" } else { "" };
    load.check().map_err(|error| anyhow!("{error}{several}{out}"))
}

/// What is kept of a run beside its result.
#[derive(Default)]
struct Kept<'a> {
    live: Option<&'a LiveRun<'a>>,
    capture: Option<&'a Mutex<Capture>>,
    /// The capture that an emulated machine writes, and the most bytes of a packet.
    pcap: Option<(&'a Whole, u32)>,
    /// The folder of the agents' records.
    records: Option<(&'a Path, &'a Records)>,
    /// As of [`AlsoKept`].
    lost: Option<&'a Cell<Option<anyhow::Error>>>,
}

/// Runs the scenario; `None` if it was interrupted.
fn one_run(
    common: &Common,
    emulated: Option<&Emulated>,
    scenario: &Scenario,
    stop: &Arc<AtomicBool>,
    progress: &Progress,
    kept: &Kept<'_>,
) -> Result<Option<(RunResult, Series)>> {
    let at = |at| progress.at(at);
    let Kept { capture, pcap, records, lost, .. } = *kept;
    if let Some(emulated) = emulated {
        let records = records.map(|(folder, _)| folder);
        let outcome = emulated.run(scenario, common.traffic.source(), stop, &at, AlsoKept { pcap, records, lost });
        progress.finish();
        return outcome;
    }
    let on_sample = on_sample(kept.live);
    let on_sample = on_sample.as_deref();
    let outcome = match common.hosts {
        Habitat::Simulated => {
            let started = Instant::now();
            let mut outcome = {
                let mut capture = capture.map(|capture| capture.lock().unwrap_or_else(PoisonError::into_inner));
                simulate(scenario, common.keeps_series(), stop, &at, on_sample, capture.as_deref_mut())
            };
            if let Ok(Some((result, _))) = &mut outcome {
                result.took(started.elapsed());
            }
            outcome.map_err(anyhow::Error::from)
        }
        Habitat::Kernel => {
            let traffic = common.traffic.source();
            let records = records.map(|(_, records)| records);
            let (radios, linux_queue) = (common.clock.has_radios(), common.clock.has_linux_queue());
            let options = || lasthop_lab::Options {
                traffic,
                build: build(),
                stop,
                progress: &at,
                on_sample,
                capture,
                records,
                radios,
                linux_queue,
            };
            let once = || lasthop_lab::run(scenario, &options());
            let again = |result: &RunResult| tell_again(&scenario.name, result);
            let done = until_not_late(common.retries, |(result, _)| result, once, again);
            done.map(|outcome| outcome.map(|(outcome, _)| outcome)).map_err(anyhow::Error::from)
        }
    };
    progress.finish();
    outcome
}

/// Checks before the run whether its result can be kept.
pub(crate) fn claim(
    out: Option<&Path>,
    kind: Kind,
    planned: impl FnOnce() -> Vec<String>,
) -> Result<Option<OutFolder>> {
    out.map(|out| OutFolder::claim(out, kind, &planned())).transpose()
}

/// Keeps the files that `write` writes, if a folder is given, and prints the path.
pub(crate) fn keep(
    out: Option<OutFolder>,
    write: impl FnOnce(&Path) -> Result<(), lasthop_report::ReportError>,
) -> Result<()> {
    let Some(out) = out else { return Ok(()) };
    let path = out.keep(write)?;
    tell(format_args!("report: {}", path.join(lasthop_report::REPORT_FILE).display()));
    Ok(())
}

/// Notes changes that come after the end of the run, and traces without a header line. They are no error, but possibly a
/// mistake.
pub(crate) fn tell_of_changes(scenario: &Scenario) {
    scenario.assumed_headers().iter().for_each(|trace| tell(format_args!("note: {trace}")));
    scenario.late_changes().iter().for_each(|change| tell(format_args!("note: {change}")));
}

/// Notes each policy that needs longer to settle than the warm-up of its run, for all planned runs.
pub(crate) fn tell_of_short_warmups<'a>(planned: impl IntoIterator<Item = &'a Scenario>) {
    short_warmups(planned).iter().for_each(|short| tell(format_args!("note: {short}")));
}

/// Notes keys without effect, which are usually a mistake.
pub(crate) fn tell_ineffective(keys: &[IneffectiveKey]) {
    keys.iter().for_each(|key| tell(format_args!("note: {key}")));
}

/// Notes that a late run is repeated.
pub(crate) fn tell_again(label: &str, late: &RunResult) {
    tell(format_args!("{label}: repeated because the machine was busy: {}", late.invalid_reasons.join("; ")));
}

/// Explains exit code 1, also if standard output has only JSON.
pub(crate) fn tell_why_not_valid<'a>(runs: impl IntoIterator<Item = &'a RunResult>) {
    let runs: Vec<&RunResult> = runs.into_iter().collect();
    for reason in runs.iter().flat_map(|run| &run.invalid_reasons) {
        tell(format_args!("not valid: {reason}"));
    }
    let late = |run: &&&RunResult| run.invalid_kinds.contains(&InvalidKind::Late);
    match runs.iter().find(late).map(|run| run.used.clock) {
        None => {}
        Some(Some(Clock::Virtual)) => tell(format_args!(
            "the scenario needs more than the emulated machine's processor can do: fewer hosts, or lower rates"
        )),
        Some(_) => tell(format_args!("the machine was busy: run it again when it is quieter")),
    }
}

fn exit_code(valid: bool) -> ExitCode {
    if valid { ExitCode::SUCCESS } else { ExitCode::from(FAILED) }
}
