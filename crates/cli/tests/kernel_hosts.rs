//! Kernel hosts, end to end: the command, its agents, this machine's own TCP. Needs root; in real time.

use crate::common::{can_run, lasthop, on_kernel_hosts, result, say, skip, undisturbed, valid_run};
use lasthop_scenario::{InvalidKind, ResultFile as _, RunResult};
use lasthop_status::Gain;
use lasthop_status::record::{Event, Tick};
use lasthop_study::{StudyResult, Verdict};
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
fn one_station_gets_what_the_standard_allows_and_no_more() {
    if !can_run() {
        return;
    }
    let before = traces();
    let result =
        valid_run(&["run", "scenarios/one-station.toml", "--set", "duration_s=8", "--set", "warmup_s=3", "--json"]);
    // 30.3 Mb/s: the hard bound for 54 Mb/s, short slot, one TCP ACK for two segments, no backoff at all.
    assert!((20.0..30.3).contains(&result.aggregate_goodput_mbps), "{} Mb/s", result.aggregate_goodput_mbps);
    assert_eq!(result.flows.len(), 1);
    assert!(result.utilization > 0.5, "{}", result.utilization);
    assert_no_traces(&before);
}

#[test]
fn a_fixed_bound_shortens_round_trips_and_keeps_the_goodput() {
    if !can_run() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().display().to_string();
    // A short path, so that a few seconds are many round trips.
    let short = [
        "--set",
        "path.rtt_ms=40",
        "--set",
        "duration_s=10",
        "--set",
        "warmup_s=4",
        "--set",
        "hosts.0.bound_segments=10",
    ];
    let mut arguments =
        vec!["compare", "scenarios/ten-uploads.toml", "--vary", "hosts.0.policy=none,fixed", "--json", "--out", &out];
    arguments.extend(short);
    let comparison = undisturbed(|| {
        let output = on_kernel_hosts(&arguments).output().expect("the command starts");
        let comparison: lasthop_scenario::Comparison =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
        let runs = || comparison.cases.iter().flat_map(|case| &case.runs);
        let reasons: Vec<String> = runs().flat_map(|run| run.invalid_reasons.clone()).collect();
        assert!(runs().all(|run| run.valid || run.is_only_late()), "{reasons:?}");
        if reasons.is_empty() { Ok(comparison) } else { Err(reasons) }
    });
    let (none, fixed) = (&comparison.cases[0].runs[0], &comparison.cases[1].runs[0]);
    let p95 = |run: &RunResult| run.rtt_ms.expect("flows have round trips").p95;
    assert!(p95(fixed) < 0.5 * p95(none), "{} ms against {} ms", p95(fixed), p95(none));
    assert!(fixed.aggregate_goodput_mbps > 0.8 * none.aggregate_goodput_mbps);
    assert!(fixed.jain_index.expect("goodput") > 0.95, "{:?}", fixed.jain_index);
    for flow in &fixed.flows {
        assert!(flow.controlled_share > 0.9, "flow {}: {}", flow.id, flow.controlled_share);
        assert!(flow.cwnd_mean.is_some_and(|cwnd| cwnd <= 10.0), "flow {}: {:?}", flow.id, flow.cwnd_mean);
    }
    assert!(none.flows.iter().all(|flow| flow.controlled_share == 0.0));
    assert!(fixed.policies.beacons_heard > 0);
    for file in ["comparison.json", "report.html"] {
        assert!(Path::new(&out).join(file).is_file(), "no {file}");
    }
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
    let told = undisturbed(|| {
        let (lab, mut lines) = start_until(on_kernel_hosts(&arguments), "50 %");
        signal(children(lab.id())[0], nix::sys::signal::Signal::SIGKILL);
        let output = lab.wait_with_output().expect("it ends");
        let mut said = String::new();
        lines.read_to_string(&mut said).expect("text");
        assert_eq!(output.status.code(), Some(1), "{said}");
        let RunResult { invalid_reasons, invalid_kinds, .. } = result(&output);
        if invalid_kinds.contains(&InvalidKind::Late) { Err(invalid_reasons) } else { Ok(invalid_reasons) }
    });
    // The run says that an agent was lost: it is not what the scenario asked for.
    assert!(told.len() == 1 && told[0].contains("agent of host 0"), "{told:?}");
    let series = lasthop_report::read_run(Path::new(&out)).expect("a result and its series").1.flows;
    let rows = || (0..series.t_s.len()).map(|row| series.row(row));
    let bounded_until = rows().filter(|row| row.bound_max.is_some()).map(|row| row.t_s).fold(0.0, f64::max);
    let bounded = |row: &lasthop_scenario::FlowSample| row.bound_max.is_some() && row.t_s > 2.0;
    assert!(rows().filter(bounded).all(|row| row.cwnd_segments <= 8));
    let lapsed = rows().find(|row| row.t_s > 2.0 && row.cwnd_segments > 8).expect("the window grows again");
    assert!(lapsed.t_s <= bounded_until + 0.5, "lease over at {bounded_until} s, window above it at {} s", lapsed.t_s);
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
    let next = valid_run(&next);
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
fn iperf3_sends_as_much_as_our_own_traffic() {
    if !can_run() {
        return;
    }
    if Command::new("iperf3").arg("--version").output().is_err() {
        return skip("iperf3 is not installed");
    }
    let goodput = |traffic: &str| {
        let set =
            ["--set", "path.rtt_ms=20", "--set", "duration_s=7", "--set", "warmup_s=2", "--set", "hosts.0.count=2"];
        let mut arguments = vec!["run", "scenarios/one-station.toml", "--json", "--traffic", traffic];
        arguments.extend(set);
        valid_run(&arguments).aggregate_goodput_mbps
    };
    // iperf3's processes wait for a CPU like any other, and do not say so: what counts is the closest of a few pairs.
    let mut apart = f64::INFINITY;
    for _ in 0..4 {
        let (own, iperf3) = (goodput("own"), goodput("iperf3"));
        apart = apart.min((iperf3 / own - 1.0).abs());
        if apart < 0.15 {
            return;
        }
        say(&format!("tried again: iperf3 {iperf3} Mb/s, own {own} Mb/s"));
    }
    panic!("iperf3 and our own traffic are {apart} apart at the least");
}

#[test]
fn a_download_waits_in_the_queue_of_the_path_and_is_dropped_there() {
    if !can_run() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("download.toml");
    let text = "duration_s = 6\nwarmup_s = 1\n[access]\nkind = \"wired\"\nrate_mbps = 100\n[path]\nrtt_ms = 20\n\
                rate_mbps = 10\nqueue_packets = 20\n[[hosts]]\n[[hosts.flows]]\ndirection = \"down\"\n";
    fs::write(&file, text).expect("a file");
    let result = valid_run(&["run", &file.display().to_string(), "--json"]);
    // 20 ms of path, and 20 packets of 1500 B at 10 Mb/s: 24 ms.
    let rtt = result.rtt_ms.expect("a flow has round trips");
    assert!(rtt.p95 < 60.0, "{rtt:?}");
    assert!(result.access.path_drops > 0);
    assert!(result.aggregate_goodput_mbps > 7.0, "{}", result.aggregate_goodput_mbps);
    // The counters leave the warm-up out, where slow start overshoots.
    assert!(result.flows[0].retransmits <= result.access.path_drops + 5, "{:?}", result.flows[0]);
}

#[test]
fn a_hosts_share_is_split_over_its_uploads_and_downloads_are_left_alone() {
    if !can_run() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("flows.toml");
    let text = "duration_s = 8\nwarmup_s = 4\n[path]\nrtt_ms = 40\n[[hosts]]\npolicy = \"fixed\"\nbound_segments = 24\n\
                [[hosts.flows]]\ncount = 3\n[[hosts.flows]]\ndirection = \"down\"\n";
    fs::write(&file, text).expect("a file");
    let result = valid_run(&["run", &file.display().to_string(), "--json"]);
    for upload in &result.flows[..3] {
        // 24 segments for three busy connections.
        assert!(upload.cwnd_mean.is_some_and(|cwnd| (6.0..=8.0).contains(&cwnd)), "{upload:?}");
        assert!(upload.controlled_share > 0.9, "{upload:?}");
    }
    let download = &result.flows[3];
    assert!(download.cwnd_mean.is_some_and(|cwnd| cwnd > 24.0) && download.controlled_share == 0.0, "{download:?}");
}

/// Windows of two segments on a short path, slowed down to a third of what they would carry: the same in both habitats.
#[test]
fn a_paced_bound_gives_the_same_goodput_to_simulated_and_kernel_hosts() {
    if !can_run() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("paced.toml");
    let text = "duration_s = 7\nwarmup_s = 2\n[path]\nrtt_ms = 4\n[[hosts]]\ncount = 5\npolicy = \"fixed\"\n\
                bound_segments = 2\nbound_pacing_mbps = 1.0\n[[hosts.flows]]\n";
    fs::write(&file, text).expect("a file");
    let out = folder.path().join("out").display().to_string();
    let arguments = ["run", &file.display().to_string(), "--json", "--out", &out];
    let simulated = result(&lasthop(&arguments).output().expect("the command starts"));
    assert!(simulated.flows.iter().all(|flow| (0.98..=1.01).contains(&flow.goodput_mbps)), "{:?}", simulated.flows);
    let kernel = valid_run(&arguments);
    let ratio = kernel.aggregate_goodput_mbps / simulated.aggregate_goodput_mbps;
    assert!((0.95..=1.05).contains(&ratio), "{:?} against {:?}", kernel.flows, simulated.flows);
    let series = lasthop_report::read_run(Path::new(&out)).expect("a result and its series").1.flows;
    let limits = || (0..series.t_s.len()).filter(|row| series.t_s[*row] > 2.0).map(|row| series.bound_pacing_mbps[row]);
    assert!(limits().count() > 0 && limits().all(|limit| limit == Some(1.0)));
}

/// Ten downloads, whose servers know nothing, held back by the windows that the hosts advertise: the same in both
/// habitats.
#[test]
fn a_bound_of_what_is_received_keeps_the_queue_of_simulated_and_kernel_hosts_alike() {
    if !can_run() {
        return;
    }
    let set = ["--set", "hosts.0.policy=fixed", "--set", "duration_s=12", "--set", "warmup_s=5"];
    let arguments = [&["run", "scenarios/ten-downloads.toml", "--json"][..], &set].concat();
    let simulated = result(&lasthop(&arguments).output().expect("the command starts"));
    let kernel = valid_run(&arguments);
    let ratio = kernel.aggregate_goodput_mbps / simulated.aggregate_goodput_mbps;
    assert!((0.9..=1.1).contains(&ratio), "{:?} against {:?}", kernel.flows, simulated.flows);
    // 10 * 30 * 1514 bytes at 48 Mb/s take 76 ms; without a bound 250 ms wait in the queue.
    for result in [&simulated, &kernel] {
        for flow in &result.flows {
            assert!(flow.rtt_ms.is_some_and(|rtt| rtt.p95 < 125.0) && flow.controlled_share > 0.95, "{flow:?}");
        }
    }
    assert_eq!(kernel.access.downlink_drops, 0, "{:?}", kernel.access);
}

#[test]
fn a_flow_that_never_connects_is_told() {
    if !can_run() {
        return;
    }
    let set = ["--set", "path.loss=1", "--set", "duration_s=3", "--set", "warmup_s=1"];
    let result = valid_run(&[&["run", "scenarios/one-station.toml", "--json"][..], &set].concat());
    assert_eq!(result.notes, ["1 of 1 flows did not connect within the run"]);
    assert_eq!(result.aggregate_goodput_mbps, 0.0);
}

/// A chain A-B-C with a loss on one way of the first link; hosts at both ends and in the middle, downloads too.
#[test]
fn packets_take_the_links_of_the_scenario_and_only_those() {
    if !can_run() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("chain.toml");
    let text = "duration_s = 6\nwarmup_s = 0\n\
                [[links]]\nbetween = [\"A\", \"B\"]\nrate_mbps = 10\ndelay_ms = 5\nback_rate_mbps = 4\n\
                [[links]]\nbetween = [\"B\", \"C\"]\nrate_mbps = 8\ndelay_ms = 10\n\
                [[hosts]]\nnode = \"A\"\n[[hosts.flows]]\nto = \"C\"\n\
                [[hosts]]\nnode = \"A\"\nera = \"modern\"\n[[hosts.flows]]\nto = \"B\"\ndirection = \"down\"\n\
                [[hosts]]\nnode = \"C\"\n[[hosts.flows]]\nto = \"B\"\nstop_s = 3\n\
                [[hosts.flows]]\nto = \"B\"\ntransfer_kib = 100\nstart_s = 4\n";
    fs::write(&file, text).expect("a file");
    let result = valid_run(&["run", &file.display().to_string(), "--json"]);
    let link = |from: &str, to: &str| {
        result.links.iter().find(|link| link.from == from && link.to == to).expect("a link of the scenario")
    };
    // A's upload crosses both links; the download from B comes back over the first alone.
    let (first, second) = (link("A", "B"), link("B", "C"));
    assert!(first.sent_mbps > 4.0 && second.sent_mbps > 4.0 && second.sent_mbps <= 8.01, "{first:?} {second:?}");
    let down = link("B", "A");
    assert!(down.sent_mbps > 2.5 && down.sent_mbps <= 4.01, "{down:?}");
    let goodput = |flow: usize| result.flows[flow].goodput_mbps;
    assert!(goodput(0) > 3.0 && goodput(1) > 2.0, "{:?}", result.flows);
    // 30 ms there and back for A's upload, 10 ms for its download.
    let rtt = |flow: usize| result.flows[flow].rtt_ms.expect("it was measured").min;
    assert!(rtt(0) >= 30.0 && rtt(1) >= 10.0 && rtt(2) >= 20.0, "{:?}", result.flows);
    // What stopped at half of the time still sent what it had written, which is at most the send buffer of 1 MiB.
    let link = link("C", "B");
    assert!(link.packets > 200, "{link:?}");
    let transfer = &result.flows[3];
    assert!((goodput(3) * 6e6 / 8.0 - 102_400.0).abs() < 1.0, "{transfer:?}");
    assert!(transfer.messages == 1 && transfer.message_ms.is_some_and(|took| took.min > 60.0), "{transfer:?}");
}

/// A window of 125 KiB, which is 128 segments of 1000 bytes, over 40 ms, without delayed ACKs.
#[test]
fn what_a_scenario_says_of_tcp_is_what_is_on_the_links() {
    if !can_run() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("switches.toml");
    let text = "duration_s = 5\nwarmup_s = 2\n[[links]]\nbetween = [\"A\", \"B\"]\nrate_mbps = 50\ndelay_ms = 20\n\
                [[hosts]]\nnode = \"A\"\n[hosts.tcp]\nmss_bytes = 1012\ndelayed_ack_segments = 1\n\
                receive_buffer_kib = 125\n[[hosts.flows]]\nto = \"B\"\n";
    fs::write(&file, text).expect("a file");
    let result = valid_run(&["run", &file.display().to_string(), "--json"]);
    let (forth, back) = (&result.links[0], &result.links[1]);
    // 1000 bytes, 12 of timestamps, 40 of headers.
    let size = forth.sent_mbps * 1e6 * 3.0 / 8.0 / forth.packets as f64;
    assert!((size - 1052.0).abs() < 1.0, "{size} bytes: {forth:?}");
    assert!((back.packets as f64 / forth.packets as f64 - 1.0).abs() < 0.05, "{forth:?} {back:?}");
    // 128 segments in 40 ms: 25.6 Mb/s; with a window of twice that the link would be full, at 47.5 Mb/s.
    let goodput = result.aggregate_goodput_mbps;
    assert!((16.0..25.7).contains(&goodput), "{goodput}");
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
    let study = undisturbed(|| {
        let output = lasthop(&["study", &file.display().to_string(), "--json"]).output().expect("the command starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("2 runs one after the other, in real time: about 1 min"), "{said}");
        let study = StudyResult::from_json(&String::from_utf8_lossy(&output.stdout)).expect("one JSON document");
        assert!(study.valid || study.invalid_kinds == [InvalidKind::Late].into(), "{said}");
        if study.valid { Ok(study) } else { Err(study.invalid_reasons) }
    });
    assert_eq!((study.hosts_kind, study.claims[0].verdict), (lasthop_scenario::HostsKind::Kernel, Verdict::Holds));
    assert!(study.passed);
}

#[test]
fn todays_stack_is_not_slower_on_a_fast_wire() {
    if !can_run() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("wire.toml");
    let goodput = |era: &str| {
        let text = format!(
            "duration_s = 4\nwarmup_s = 2\n[access]\nkind = \"wired\"\nrate_mbps = 200\n[path]\nrtt_ms = 5\n\
             [[hosts]]\nera = \"{era}\"\n"
        );
        fs::write(&file, text).expect("a file");
        valid_run(&["run", &file.display().to_string(), "--json"]).aggregate_goodput_mbps
    };
    // The machine itself is the limit here, and what it has left differs from run to run; a stack that is slower is so
    // in each.
    let mut pairs = Vec::new();
    for _ in 0..5 {
        let (old, modern) = (goodput("2012"), goodput("modern"));
        if modern > 0.7 * old {
            return;
        }
        pairs.push((old, modern));
    }
    panic!("Mb/s in 2012 and today: {pairs:?}");
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

#[test]
fn todays_stack_keeps_its_own_queue_short_and_the_old_one_fills_it() {
    if !can_run() {
        return;
    }
    let rtt = |era: &str| {
        let set_era = format!("hosts.0.era={era}");
        let set = ["--set", "path.rtt_ms=20", "--set", "duration_s=7", "--set", "warmup_s=3", "--set", &set_era];
        let mut arguments = vec!["run", "scenarios/one-station.toml", "--json"];
        arguments.extend(set);
        let result = valid_run(&arguments);
        assert!(result.aggregate_goodput_mbps > 20.0, "{era}: {} Mb/s", result.aggregate_goodput_mbps);
        result.rtt_ms.expect("a flow has round trips").p50
    };
    let (old, modern) = (rtt("2012"), rtt("modern"));
    assert!(modern < 0.5 * old, "{modern} ms today, {old} ms in 2012");
}

/// A host, or all together, at the end of its agent's record: what is shown of it, and what it has by bytes acknowledged.
#[derive(Debug)]
struct Gains {
    shown: Gain,
    /// Bytes acknowledged in the last seconds before limits began, and in the last seconds.
    free_bytes: u64,
    bytes: u64,
}

/// `None`: control did not begin there.
fn gains(record: &Path) -> Option<Gains> {
    /// The means of a gain forget within this.
    const SECONDS: u64 = 8;
    let text = fs::read_to_string(record).expect("a record");
    let events = text.lines().map(|line| serde_json::from_str(line).expect("an event"));
    let ticks: Vec<Tick> =
        events.filter_map(|event| if let Event::Tick(tick) = event { Some(tick) } else { None }).collect();
    let limited = ticks.iter().position(|tick| tick.flows.iter().any(|flow| flow.enabled))?;
    let acked = |tick: &Tick| tick.flows.iter().map(|flow| flow.acked_bytes).sum::<u64>();
    let until = |end: &Tick| {
        let begin = ticks.iter().rfind(|tick| tick.t_ns + SECONDS * 1_000_000_000 <= end.t_ns).expect("a run of 25 s");
        acked(end) - acked(begin)
    };
    let last = ticks.last().expect("ticks");
    let state = last.policy_state.clone().expect("the policy's state, in mode control");
    Some(Gains { shown: state.gain, free_bytes: until(&ticks[limited]), bytes: until(last) })
}

/// Point 2 of issue 37, and what devices.md says of five hosts under good control: a loss of 78 % was shown.
#[test]
fn of_five_agents_behind_an_access_point_none_shows_a_loss_above_what_it_has_and_round_trips_are_seen_to_fall() {
    if !can_run() {
        return;
    }
    let hosts = undisturbed(|| {
        let records = tempfile::tempdir().expect("a folder");
        let path = records.path().display().to_string();
        let sets = ["count=5", "policy=\"lasthop\"", "era=\"modern\""].map(|set| format!("hosts.0.{set}"));
        let sets = sets.into_iter().chain(["path.rtt_ms=20", "duration_s=25", "warmup_s=15"].map(str::to_owned));
        let sets: Vec<_> = sets.flat_map(|set| ["--set".to_owned(), set]).collect();
        let mut run = on_kernel_hosts(&["run", "ten-uploads", "--json", "--records", &path]);
        let run = result(&run.args(sets).output().expect("the command starts"));
        assert!(run.valid || run.is_only_late(), "{:?}", run.invalid_reasons);
        if !run.valid {
            return Err(run.invalid_reasons);
        }
        let files = fs::read_dir(records.path()).expect("the folder").map(|file| file.expect("a file").path());
        let hosts: Option<Vec<_>> = files.map(|file| gains(&file)).collect();
        hosts.ok_or_else(|| vec!["control did not begin on all hosts".to_owned()])
    });
    assert_eq!(hosts.len(), 5);
    let sum = |of: fn(&Gains) -> u64| hosts.iter().map(of).sum::<u64>() as f64;
    let of_all = sum(|host| host.bytes) / sum(|host| host.free_bytes);
    for host in &hosts {
        let of_host = host.bytes as f64 / host.free_bytes as f64;
        // The means weigh by age, and limits begin on each host at another time: a fifth apart is no fault, and where there is no
        // loss none above that may be shown.
        let Gain { gain_ratio, group_gain_ratio, gain_unknown, .. } = &host.shown;
        assert_eq!(gain_ratio.is_none(), gain_unknown.is_some(), "{host:?}");
        assert!(gain_ratio.is_none_or(|shown| shown > 0.8 * of_host.min(1.0)), "{of_host}: {host:?}");
        assert!(
            group_gain_ratio.is_none_or(|shown| (0.8 * of_all.min(1.0)..1.2 * of_all.max(1.0)).contains(&shown)),
            "{of_all}: {host:?}"
        );
    }
    let told: Vec<_> = hosts.iter().filter(|host| host.shown.gain_ratio.is_some()).collect();
    assert!(told.len() >= 3, "{hosts:?}");
    for Gains { shown: Gain { round_trip_ms, free_round_trip_ms, .. }, .. } in told {
        let (now, free) = (round_trip_ms.expect("known"), free_round_trip_ms.expect("known"));
        assert!(now < free / 2.0, "{now} ms now, {free} ms while free");
    }
}

/// Two downloads through FQ-CoDel with ECN, simulated: 16 marks, nothing dropped or sent again.
#[test]
fn the_kernel_hears_of_marks_and_has_nothing_to_send_again() {
    if !can_run() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let scenario = folder.path().join("ecn.toml");
    let text = "duration_s = 8\nwarmup_s = 2\n[access]\nkind = \"wired\"\nrate_mbps = 20\nqueue = \"fq_codel\"\nqueue_packets = 1000\n\
                [path]\nrtt_ms = 30\n[[hosts]]\nera = \"modern\"\ncount = 2\n[hosts.tcp]\necn = \"on\"\n\
                [[hosts.flows]]\ndirection = \"down\"\n";
    fs::write(&scenario, text).expect("written");
    let result = valid_run(&["run", &scenario.display().to_string(), "--json"]);
    assert!(result.access.downlink_marks > 0, "{:?}", result.access);
    assert_eq!(result.access.downlink_drops, 0);
    for flow in &result.flows {
        assert!(flow.delivered_ce > 0, "{flow:?}");
        assert_eq!(flow.retransmits, 0, "{flow:?}");
    }
}
