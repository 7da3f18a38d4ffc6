//! Laws in this machine's kernel while a run has them, and those of a user's own. Needs root; in real time.

use crate::common::{can_run, on_kernel_hosts};
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Private names of laws in the kernel.
fn loaded() -> Vec<String> {
    let names = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").expect("/proc");
    names.split_whitespace().filter(|name| name.starts_with("lh_")).map(str::to_owned).collect()
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
