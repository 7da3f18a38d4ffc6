//! Kernel hosts, end to end: the command, its agents, this machine's own TCP. Needs root; in real time, so that a run may be late. What
//! kernel hosts measure is tested in virtual time (kernel_hosts_runs.rs).

use crate::common::{can_run, in_real_time, lasthop, on_kernel_hosts, result};
use lasthop_scenario::{InvalidKind, ResultFile as _};
use lasthop_study::StudyResult;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStderr, Command};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long what must happen may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Children of this process, by their parent in /proc/PID/stat.
fn children(of: u32) -> Vec<i32> {
    let processes = fs::read_dir("/proc").expect("/proc").filter_map(Result::ok);
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_child = |pid: &i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let after_name = stat.rsplit(')').next().unwrap_or_default();
        after_name.split_whitespace().nth(1) == Some(&of.to_string())
    };
    pids.filter(is_child).collect()
}

/// What a run makes and must not leave, whatever ended it.
fn traces() -> BTreeSet<String> {
    let words = |kind: &'static str, path: &str| {
        let text = fs::read_to_string(path).unwrap_or_default();
        text.split_whitespace().map(|word| format!("{kind} {word}")).collect::<Vec<_>>()
    };
    let names = |kind: &'static str, path: &str| {
        let entries = fs::read_dir(path).into_iter().flatten().filter_map(Result::ok);
        entries.map(|entry| format!("{kind} {}", entry.file_name().display())).collect::<Vec<_>>()
    };
    [
        words("congestion control", "/proc/sys/net/ipv4/tcp_available_congestion_control"),
        words("default congestion control", "/proc/sys/net/ipv4/tcp_congestion_control"),
        names("interface", "/sys/class/net"),
        names("namespace", "/run/netns"),
        names("pinned", "/sys/fs/bpf"),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The kernel removes namespaces and programs a moment after their last user is gone.
fn assert_no_traces(before: &BTreeSet<String>) {
    let begun = Instant::now();
    loop {
        let left: Vec<_> = traces().difference(before).cloned().collect();
        if left.is_empty() {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "left: {left:?}");
        sleep(Duration::from_millis(100));
    }
}

/// Starts the command, and waits until it says `what` of its progress on standard error.
fn start_until(mut command: Command, what: &str) -> (Child, BufReader<ChildStderr>) {
    let mut lab = command.spawn().expect("the command starts");
    let mut lines = BufReader::new(lab.stderr.take().expect("it is a pipe"));
    let mut said = String::new();
    while !said.lines().last().is_some_and(|line| line.contains(what)) {
        assert!(lines.read_line(&mut said).expect("text") > 0, "it ended before it said \"{what}\": {said}");
    }
    (lab, lines)
}

fn signal(process: i32, signal: nix::sys::signal::Signal) {
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(process), signal).expect("it is ours, and runs");
}

#[test]
fn one_station_gets_no_more_than_the_standard_allows_and_a_late_run_says_so() {
    if !can_run() {
        return;
    }
    let before = traces();
    let result =
        in_real_time(&["run", "scenarios/one-station.toml", "--set", "duration_s=8", "--set", "warmup_s=3", "--json"]);
    // 30.3 Mb/s: the hard bound for 54 Mb/s, short slot, one TCP ACK for two segments, no backoff at all.
    assert!((1.0..30.3).contains(&result.aggregate_goodput_mbps), "{} Mb/s", result.aggregate_goodput_mbps);
    assert_eq!(result.flows.len(), 1);
    assert!((0.01..=1.0).contains(&result.utilization), "{}", result.utilization);
    assert_no_traces(&before);
}

#[test]
fn the_bound_of_a_killed_agent_lapses_within_two_seconds_and_its_connection_goes_on() {
    if !can_run() {
        return;
    }
    let before = traces();
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().display().to_string();
    let arguments = [
        "run",
        "scenarios/one-station.toml",
        "--json",
        "--out",
        &out,
        "--set",
        "duration_s=11",
        "--set",
        "warmup_s=1",
        "--set",
        "path.rtt_ms=40",
        "--set",
        "hosts.0.policy=fixed",
        "--set",
        "hosts.0.bound_segments=8",
    ];
    let (lab, mut lines) = start_until(on_kernel_hosts(&arguments), "50 %");
    signal(children(lab.id())[0], nix::sys::signal::Signal::SIGKILL);
    let output = lab.wait_with_output().expect("it ends");
    let mut said = String::new();
    lines.read_to_string(&mut said).expect("text");
    assert_eq!(output.status.code(), Some(1), "{said}");
    let told = result(&output).invalid_reasons;
    // The run says that an agent was lost: it is not what the scenario asked for. It may have been late besides.
    assert!(told.iter().any(|reason| reason.contains("agent of host 0")), "{told:?}");
    let series = lasthop_report::read_run(Path::new(&out)).expect("a result and its series").1.flows;
    let rows = || (0..series.t_s.len()).map(|row| series.row(row));
    let bounded_until = rows().filter(|row| row.bound_max.is_some()).map(|row| row.t_s).fold(0.0, f64::max);
    let bounded = |row: &lasthop_scenario::FlowSample| row.bound_max.is_some() && row.t_s > 2.0;
    assert!(rows().filter(bounded).all(|row| row.cwnd_segments <= 8));
    let lapsed = rows().find(|row| row.t_s > 2.0 && row.cwnd_segments > 8).expect("the window grows again");
    // A sample each 0.1 s; a busy machine takes some later.
    assert!(lapsed.t_s <= bounded_until + 1.5, "lease over at {bounded_until} s, window above it at {} s", lapsed.t_s);
    let last = rows().next_back().expect("samples");
    assert!(last.cwnd_segments > 16 && last.goodput_mbps > 0.0, "{last:?}");
    assert_no_traces(&before);
}

/// Three hosts with agents, for 8 s.
fn three_hosts(policy: &str) -> Command {
    let policy = format!("hosts.0.policy={policy}");
    let set = ["--set", "hosts.0.count=3", "--set", "duration_s=8", "--set", "warmup_s=1", "--set", &policy];
    on_kernel_hosts(&[&["run", "scenarios/ten-uploads.toml"][..], &set].concat())
}

#[test]
fn a_killed_laboratory_leaves_nothing_and_the_next_run_starts_cleanly() {
    if !can_run() {
        return;
    }
    let before = traces();
    let (mut lab, _lines) = start_until(three_hosts("fixed"), "25 %");
    let agents = children(lab.id());
    assert_eq!(agents.len(), 3);
    lab.kill().expect("it is ours");
    lab.wait().expect("it ends");
    let begun = Instant::now();
    let lives =
        |pid: &i32| fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.contains("lasthop"));
    while agents.iter().any(lives) {
        assert!(begun.elapsed() < PATIENCE, "agents outlive the laboratory");
        sleep(Duration::from_millis(50));
    }
    assert_no_traces(&before);
    let next = ["run", "scenarios/one-station.toml", "--json", "--set", "duration_s=4", "--set", "warmup_s=1"];
    let next = in_real_time(&next);
    assert!(next.aggregate_goodput_mbps > 0.0);
}

#[test]
fn an_interrupted_run_ends_at_once_with_exit_code_130_and_leaves_nothing() {
    if !can_run() {
        return;
    }
    let before = traces();
    let (lab, mut lines) = start_until(three_hosts("formula"), "25 %");
    signal(lab.id() as i32, nix::sys::signal::Signal::SIGINT);
    let output = lab.wait_with_output().expect("it ends");
    let mut said = String::new();
    lines.read_to_string(&mut said).expect("text");
    // It did not go on to its end, which would have been a result.
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("interrupted") && !said.contains("50 %"), "{said}");
    assert!(output.stdout.is_empty());
    assert_no_traces(&before);
}

#[test]
fn more_agents_than_the_kernel_has_room_for_are_refused_before_anything_is_made() {
    if !can_run() {
        return;
    }
    let sets = ["hosts.0.count=65", "hosts.0.policy=lasthop"].map(|set| ["--set", set]);
    let arguments: Vec<_> =
        ["run", "scenarios/fifty-uploads.toml"].into_iter().chain(sets.into_iter().flatten()).collect();
    let output = on_kernel_hosts(&arguments).output().expect("the command starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("would attach 65 programs") && said.contains("Linux allows 64 there"), "{said}");
}

#[test]
fn a_study_runs_on_kernel_hosts_in_turn() {
    if !can_run() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("study.toml");
    let text = "title = \"Two rates\"\nsource = \"nobody\"\nhosts = \"kernel\"\nseeds = 1\n\
                [scenario]\nduration_s = 3\nwarmup_s = 1\n[[scenario.links]]\nbetween = [\"A\", \"B\"]\ndelay_ms = 2\n\
                [[scenario.hosts]]\nnode = \"A\"\n[[scenario.hosts.flows]]\nto = \"B\"\n\
                [[vary]]\naxis = \"rate\"\nkey = \"links.0.rate_mbps\"\nvalues = [4, 8]\n\
                [[claims]]\nid = \"twice\"\ntext = \"Twice the rate, twice the goodput.\"\nsource = \"nobody\"\n\
                value = 'at(\"aggregate_goodput_mbps\", rate=8) / at(\"aggregate_goodput_mbps\", rate=4)'\n\
                at_least = 1.6\nat_most = 2.4\nrequired = true\n";
    fs::write(&file, text).expect("a file");
    let output = lasthop(&["study", &file.display().to_string(), "--json"]).output().expect("the command starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("2 runs one after the other, in real time: about 1 min"), "{said}");
    let study = StudyResult::from_json(&String::from_utf8_lossy(&output.stdout)).expect("one JSON document");
    assert_eq!(study.hosts_kind, lasthop_scenario::HostsKind::Kernel);
    assert!(study.valid || study.invalid_kinds == [InvalidKind::Late].into(), "{said}");
    assert_eq!(study.valid && study.passed, output.status.success(), "{said}");
}

#[test]
fn a_reader_that_has_gone_away_is_no_error() {
    if !can_run() {
        return;
    }
    let mut lab = on_kernel_hosts(&[
        "run",
        "scenarios/one-station.toml",
        "--json",
        "--set",
        "duration_s=2",
        "--set",
        "warmup_s=1",
    ]);
    let mut lab = lab.spawn().expect("the command starts");
    drop(lab.stdout.take());
    drop(lab.stderr.take());
    // 1: not valid, on a machine that is busy with something else; a panic would be 101.
    assert!(matches!(lab.wait().expect("it ends").code(), Some(0 | 1)));
}

#[test]
fn an_interrupted_comparison_says_how_many_runs_were_done_and_keeps_nothing() {
    if !can_run() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let compare = on_kernel_hosts(&[
        "compare",
        "scenarios/one-station.toml",
        "--json",
        "--out",
        &out.display().to_string(),
        "--set",
        "duration_s=3",
        "--set",
        "warmup_s=1",
        "--case",
        "short: hosts.0.policy=none",
        "--case",
        "long: duration_s=60",
    ]);
    let (compare, mut lines) = start_until(compare, "[2/2] long");
    signal(compare.id() as i32, nix::sys::signal::Signal::SIGINT);
    let output = compare.wait_with_output().expect("it ends");
    let mut said = String::new();
    lines.read_to_string(&mut said).expect("text");
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("interrupted: 1 of 2 runs were done, and nothing was kept"), "{said}");
    assert!(output.stdout.is_empty() && !out.exists());
}
