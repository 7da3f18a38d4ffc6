//! Laws in this machine's kernel while a run has them, and those of a user's own. Needs root; in real time.

use crate::common::{can_run, in_real_time, lasthop, on_kernel_hosts, result};
use lasthop_scenario::RunResult;
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Private names of laws in the kernel.
fn loaded() -> Vec<String> {
    let names = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").expect("/proc");
    names.split_whitespace().filter(|name| name.starts_with("lh_")).map(str::to_owned).collect()
}

#[test]
fn a_law_of_ones_own_runs_on_the_kernel_and_keeps_its_window_where_cubic_halves() {
    if !can_run() {
        return;
    }
    let times = ["--set", "duration_s=12", "--set", "warmup_s=3"];
    let run = ["run", "scenarios/own-law/lossy.toml", "--json", "--set", "path.loss=0.01"];
    let result = in_real_time(&[&run[..], &times].concat());
    let [westwood, cubic] = &result.flows[..] else { panic!("{:?}", result.flows) };
    assert_eq!(westwood.congestion_control.as_deref(), Some("./westwood.h"), "results tell no private name");
    println!("{} and {} Mb/s", westwood.goodput_mbps, cubic.goodput_mbps);
    assert!(westwood.goodput_mbps > 1.3 * cubic.goodput_mbps, "{westwood:?}, {cubic:?}");
    assert!(loaded().iter().all(|name| !name.starts_with("lh_westwo")), "{:?}", loaded());
}

/// Copa, three downloads: the same header in both habitats sets window and pace.
#[test]
fn a_law_that_sets_its_pace_does_on_the_kernel_what_it_does_simulated() {
    if !can_run() {
        return;
    }
    let run = ["run", "scenarios/own-law/paced.toml", "--json", "--set", "duration_s=12", "--set", "warmup_s=4"];
    let simulated = result(&lasthop(&run).output().expect("the command starts"));
    let kernel = in_real_time(&run);
    let figures = |result: &RunResult| (result.aggregate_goodput_mbps, result.rtt_ms.expect("it was measured").mean);
    let (ours, theirs) = (figures(&simulated), figures(&kernel));
    println!("simulated {ours:?}, kernel {theirs:?} Mb/s and ms");
    let apart = |ours: f64, theirs: f64| (ours / theirs - 1.0).abs();
    assert!(apart(ours.0, theirs.0) < 0.05 && apart(ours.1, theirs.1) < 0.05, "{ours:?} {theirs:?}");
    assert!(ours.1 < 1.5 * 40.0 && kernel.jain_index.is_some_and(|jain| jain > 0.95), "{ours:?} {kernel:?}");
}

#[test]
fn hosts_with_other_parameters_have_another_law_and_a_killed_run_leaves_none() {
    if !can_run() {
        return;
    }
    let before = loaded();
    let mut command = on_kernel_hosts(&["run", "scenarios/utsumi-dumbbell-kernel.toml", "--json"]);
    command.args(["--set", "hosts.0.congestion_control=ucc", "--set", "hosts.1.congestion_control=ucc"]);
    let mut lab = command.args(["--set", "hosts.1.ucc.alpha=0.5"]).spawn().expect("the command starts");
    let wait_for = |what: &str, happened: &dyn Fn(&[String]) -> bool| {
        let begun = Instant::now();
        loop {
            let new: Vec<_> = loaded().into_iter().filter(|name| !before.contains(name)).collect();
            if happened(&new) {
                return;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "{what}: {new:?}");
            sleep(Duration::from_millis(50));
        }
    };
    wait_for("two laws", &|new| {
        new.len() == 2 && new.iter().all(|name| name.starts_with("lh_ucc_") && name.len() == 11)
    });
    lab.kill().expect("it is ours");
    lab.wait().expect("it ends");
    wait_for("none is left", &<[String]>::is_empty);
}
