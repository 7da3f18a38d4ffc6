//! The speed of simulated hosts: whole runs on one core, compared with ns-3.
//!
//! `cargo bench -p lasthop-sim --bench speed [-- ROUNDS] [-- only NAME]` runs each case ROUNDS times (5), in a process
//! of its own, so that its peak memory is its own. The median of the wall-clock times counts. Beside it stands the same
//! by the time that the process had a core; on an idle machine both are equal. The cases are scenario files of this
//! repository with overrides. Events are those of the network (transmissions begun and ended, packets carried over a
//! link) and the hosts' timers.
//!
//! ns-3's figures are of its optimised build, version 3.44, for the same topologies and rates, on an idle machine like
//! the one on which lasthop was developed. The aims are multiples of them, so the verdicts depend on the machine. They
//! are printed and counted; the bench fails only with `strict`.
#![allow(missing_docs, clippy::disallowed_methods)] // a bench reads clocks and files

use lasthop_scenario::{Build, Override, Scenario};
use lasthop_sim::Options;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// A case, and the speed of ns-3 in it.
struct Case {
    name: &'static str,
    file: &'static str,
    overrides: &'static [&'static str],
    /// Simulated seconds per wall-clock second of ns-3; `None`: not measured.
    ns3: Option<f64>,
    /// The aim, as a multiple of `ns3`.
    times: f64,
}

const CASES: [Case; 8] = [
    Case {
        name: "ten uploads, 256 ms",
        file: "ten-uploads.toml",
        overrides: &["duration_s=60"],
        ns3: Some(2.4),
        times: 62.5,
    },
    Case {
        name: "fifty uploads, 256 ms",
        file: "fifty-uploads.toml",
        overrides: &["duration_s=60"],
        ns3: Some(0.6),
        times: 30.0,
    },
    Case {
        name: "saturated UDP, 10 stations",
        file: "saturated-udp.toml",
        overrides: &["duration_s=60", "hosts.0.count=10"],
        ns3: Some(3.0),
        times: 30.0,
    },
    Case {
        name: "saturated UDP, 50 stations",
        file: "saturated-udp.toml",
        overrides: &["duration_s=60", "hosts.0.count=50"],
        ns3: None,
        times: 30.0,
    },
    Case {
        name: "dumbbell without loss",
        file: "utsumi-dumbbell.toml",
        overrides: &["duration_s=600", "links.2.loss=0"],
        ns3: Some(78.0),
        times: 30.0,
    },
    Case {
        name: "dumbbell, 2 % loss",
        file: "utsumi-dumbbell.toml",
        overrides: &["duration_s=600", "links.2.loss=0.02"],
        ns3: Some(245.0),
        times: 30.0,
    },
    Case { name: "wu's chain, seven cross flows", file: "wu-chain.toml", overrides: &[], ns3: Some(12.0), times: 30.0 },
    Case {
        name: "200 stations, 256 ms",
        file: "fifty-uploads.toml",
        overrides: &["duration_s=60", "hosts.0.count=200"],
        ns3: None,
        times: 30.0,
    },
];
const PEAK_MIB: f64 = 30.0;
const ROUNDS: usize = 5;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let [_, "as-case", case, rounds] | ["as-case", case, rounds] = words[..] {
        return as_case(&CASES[case.parse::<usize>().expect("a number")], rounds.parse().expect("a number"));
    }
    let rounds = words.iter().find_map(|word| word.parse().ok()).unwrap_or(ROUNDS);
    let only = words.iter().position(|word| *word == "only").and_then(|at| words.get(at + 1)).copied();
    let strict = words.contains(&"strict");
    println!(
        "| case | simulated s per wall s | per s of a core | million events/s | peak, MiB | ns-3 3.44 | times ns-3 | |"
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |");
    let (mut passed, mut failed) = (0, 0);
    for (number, case) in CASES.iter().enumerate().filter(|(_, case)| only.is_none_or(|only| case.name.contains(only)))
    {
        let this = std::env::current_exe().expect("a bench is a file");
        let output = Command::new(this).args(["as-case", &number.to_string(), &rounds.to_string()]).output();
        let output = output.expect("a bench starts itself");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{}: {}", case.name, String::from_utf8_lossy(&output.stderr));
        let figures: Vec<f64> = text.split_whitespace().map(|word| word.parse().expect("a number")).collect();
        let [speed, by_core, events, peak] = figures[..] else { panic!("four figures, not {text}") };
        let times = case.ns3.map(|ns3| speed / ns3);
        let fast = times.is_none_or(|times| times >= case.times);
        let good = fast && peak <= PEAK_MIB;
        *(if good { &mut passed } else { &mut failed }) += 1;
        let verdict = match (fast, peak <= PEAK_MIB) {
            (true, true) => "passed".to_owned(),
            (false, _) => format!("failed: {} times ns-3 is the aim", case.times),
            (true, false) => format!("failed: {PEAK_MIB} MiB is the aim"),
        };
        let ns3 = case.ns3.map_or_else(|| "-".to_owned(), |ns3| ns3.to_string());
        let times = times.map_or_else(|| "-".to_owned(), |times| format!("{times:.0}"));
        println!(
            "| {} | {speed:.0} | {by_core:.0} | {events:.1} | {peak:.1} | {ns3} | {times} | {verdict} |",
            case.name
        );
    }
    println!("{passed} passed, {failed} failed");
    if failed == 0 || !strict { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs one case. Prints its simulated seconds per second of wall clock and of core, its million events per second of
/// core, and this process's peak memory in MiB.
fn as_case(case: &Case, rounds: usize) -> ExitCode {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(case.file);
    let overrides: Vec<Override> =
        case.overrides.iter().map(|text| Override::parse(text).expect("an override")).collect();
    let scenario = Scenario::load(&path, &overrides).unwrap_or_else(|error| panic!("{error}"));
    let stop = AtomicBool::new(false);
    let (mut walls, mut cores) = (Vec::new(), Vec::new());
    let mut events = 0;
    for _ in 0..rounds.max(1) {
        let options =
            Options { build: Build::default(), series: false, stop: &stop, progress: &|_| {}, on_sample: None };
        let (start, on_core) = (Instant::now(), time_on_core());
        let outcome = lasthop_sim::run(&scenario, &options).unwrap_or_else(|error| panic!("{error}"));
        walls.push(start.elapsed().as_secs_f64());
        cores.push((time_on_core() - on_core).as_secs_f64());
        let (result, _) = outcome.expect("the run was not stopped");
        assert!(result.aggregate_goodput_mbps > 0.0, "nothing was carried");
        events = result.events;
    }
    let (wall, core) = (median(walls), median(cores));
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux tells the peak");
    let peak_kib: f64 = peak.trim().trim_end_matches(" kB").parse().expect("a number of KiB");
    let simulated = scenario.duration.as_secs_f64();
    println!("{} {} {} {}", simulated / wall, simulated / core, events as f64 / core / 1e6, peak_kib / 1024.0);
    ExitCode::SUCCESS
}

/// The time for which this process had a core.
fn time_on_core() -> Duration {
    let schedstat = std::fs::read_to_string("/proc/self/schedstat").expect("Linux tells");
    let nanos = schedstat.split_whitespace().next().and_then(|word| word.parse().ok());
    Duration::from_nanos(nanos.expect("its first number is the time on a core"))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
