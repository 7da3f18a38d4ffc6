//! `lasthop run` and `lasthop compare`.

use crate::progress::Progress;
use crate::{FAILED, build, stop_on_signals};
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use scenario::{Case, CaseResult, Comparison, HostsKind, Override, RunResult, Scenario, Series, Vary};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

/// What stands beside the scenario on both command lines.
#[derive(Args)]
struct Common {
    /// The scenario: a TOML file (docs/guide/scenario.md)
    scenario: PathBuf,
    /// What the hosts are: `kernel` is this machine's own TCP, in real time, as root
    #[arg(long, value_enum, default_value_t = Habitat::Kernel)]
    hosts: Habitat,
    /// Who sends and receives: lasthop's own sockets, or the program iperf3
    #[arg(long, value_enum, default_value_t = Traffic::Own)]
    traffic: Traffic,
    /// Change a key of the scenario, such as hosts.0.policy=formula; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = Override::parse)]
    overrides: Vec<Override>,
    /// Keep the result, the series, the figures and a report.html in this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Put the whole result as one JSON document on standard output instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub(crate) struct RunArguments {
    #[command(flatten)]
    common: Common,
    /// The seed of every random draw, instead of the scenario's
    #[arg(long)]
    seed: Option<u64>,
}

#[derive(Args)]
pub(crate) struct CompareArguments {
    #[command(flatten)]
    common: Common,
    /// Run with each of these values; several --vary make every combination
    #[arg(long = "vary", value_name = "KEY=A,B,C", value_parser = Vary::parse)]
    varied: Vec<Vary>,
    /// Run one case of its own, such as "bbr: hosts.0.congestion_control=bbr"; may be repeated
    #[arg(long = "case", value_name = "LABEL: KEY=VALUE ...", value_parser = parse_case, conflicts_with = "varied")]
    cases: Vec<Case>,
    /// Run each case with so many seeds, counted from the scenario's
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
}

#[derive(Clone, Copy, ValueEnum)]
enum Habitat {
    Kernel,
}

#[derive(Clone, Copy, ValueEnum)]
enum Traffic {
    Own,
    Iperf3,
}

/// `lasthop run`.
pub(crate) fn run(arguments: &RunArguments) -> Result<ExitCode> {
    let common = &arguments.common;
    let seed = arguments.seed.map(Override::seed);
    let overrides: Vec<Override> = common.overrides.iter().cloned().chain(seed).collect();
    let scenario = Scenario::load(&common.scenario, &overrides)?;
    let stop = stop_on_signals()?;
    let (result, series) = one_run(&scenario, &scenario.name, common.traffic, &stop)?;
    if let Some(out) = &common.out {
        report::write_run(out, &result, &series)
            .with_context(|| format!("cannot keep the result in {}", out.display()))?;
    }
    if common.json {
        print!("{}", result.to_json());
    } else {
        println!("{}", report::tables::run(&result));
    }
    tell_where(common.out.as_deref());
    Ok(exit_code(result.valid))
}

/// `lasthop compare`.
pub(crate) fn compare(arguments: &CompareArguments) -> Result<ExitCode> {
    let common = &arguments.common;
    let cases = if arguments.cases.is_empty() { Vary::cases(&arguments.varied) } else { arguments.cases.clone() };
    if cases.len() < 2 {
        bail!("there is nothing to compare: give --vary key=a,b,c, or --case twice");
    }
    let base = Scenario::load(&common.scenario, &common.overrides)?;
    // Every case is read before the first one runs: a typing error in the last must not cost the time of the others.
    let mut planned = Vec::new();
    for case in &cases {
        for seed in base.seed..base.seed + arguments.seeds {
            let overrides = common.overrides.iter().chain(&case.overrides).cloned().chain([Override::seed(seed)]);
            let overrides: Vec<Override> = overrides.collect();
            let scenario = Scenario::load(&common.scenario, &overrides)
                .with_context(|| format!("the case \"{}\" cannot be run", case.label))?;
            planned.push((case, scenario));
        }
    }
    let stop = stop_on_signals()?;
    let mut runs = Vec::new();
    for (number, (case, scenario)) in planned.iter().enumerate() {
        let label = format!("[{}/{}] {}", number + 1, planned.len(), case.label);
        let (result, series) = one_run(scenario, &label, common.traffic, &stop)?;
        runs.push((case.label.clone(), result, series));
    }
    let results = cases.iter().map(|case| {
        let of_case = runs.iter().filter(|(label, ..)| *label == case.label);
        CaseResult::new(case, of_case.map(|(_, result, _)| result.clone()).collect())
    });
    let comparison = Comparison::new(&base, HostsKind::Kernel, build(), &arguments.varied, results.collect());
    if let Some(out) = &common.out {
        report::write_comparison(out, &comparison, &runs)
            .with_context(|| format!("cannot keep the comparison in {}", out.display()))?;
    }
    if common.json {
        print!("{}", comparison.to_json());
    } else {
        println!("{}", report::tables::comparison(&comparison));
    }
    tell_where(common.out.as_deref());
    Ok(exit_code(comparison.valid))
}

fn one_run(scenario: &Scenario, label: &str, traffic: Traffic, stop: &AtomicBool) -> Result<(RunResult, Series)> {
    let traffic = match traffic {
        Traffic::Own => lab::TrafficSource::Own,
        Traffic::Iperf3 => lab::TrafficSource::Iperf3,
    };
    let executable = std::env::current_exe().context("cannot find this program's own file")?;
    let progress = Progress::new(label, scenario.duration);
    let options =
        lab::Options { executable: &executable, traffic, build: build(), stop, progress: &|at| progress.at(at) };
    let outcome = lab::run(scenario, &options);
    progress.finish();
    outcome?.context("interrupted; nothing was kept, and nothing is left behind")
}

fn tell_where(out: Option<&Path>) {
    if let Some(out) = out {
        eprintln!("report: {}", out.join("report.html").display());
    }
}

fn exit_code(valid: bool) -> ExitCode {
    if valid { ExitCode::SUCCESS } else { ExitCode::from(FAILED) }
}

/// `label: key=value key=value`.
fn parse_case(text: &str) -> Result<Case, String> {
    let accepted = "a label, a colon, and overrides parted by spaces, such as \"bbr: hosts.0.congestion_control=bbr\"";
    let (label, settings) =
        text.split_once(':').ok_or_else(|| format!("there is no colon in it; accepted: {accepted}"))?;
    let label = label.trim();
    if label.is_empty() {
        return Err(format!("there is no label before the colon; accepted: {accepted}"));
    }
    let overrides = settings.split_whitespace().map(Override::parse).collect::<Result<Vec<_>, _>>();
    let overrides = overrides.map_err(|error| error.to_string())?;
    let settings = overrides.iter().map(|setting| (setting.key(), setting.raw().to_owned())).collect();
    Ok(Case { label: label.to_owned(), settings, overrides })
}
