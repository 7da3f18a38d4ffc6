//! The cgroups of the configuration on this machine's kernel: they hold at the start, at each walk, and when they come later. Needs
//! root.
#![allow(missing_docs)]

mod common;

use common::process::{self, AgentProcess, ONE_AT_A_TIME, serve, upload};
use common::{root, two_hosts, wait_for};
use lasthop_agent::Mode;
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

const POLICY: &str = "[policy]\npolicy = \"fixed\"\nbound_segments = 8\n";

/// Not a test: what `AgentProcess` runs.
#[test]
#[ignore = "run by the other tests"]
fn agent_process() {
    process::run();
}

/// Where cgroup2 is mounted. The processes of these tests are in its root.
fn cgroups() -> PathBuf {
    let mounts = fs::read_to_string("/proc/self/mounts").expect("Linux says so");
    let line = mounts.lines().find(|line| line.split(' ').nth(2) == Some("cgroup2")).expect("cgroup2 is mounted");
    line.split(' ').nth(1).expect("where").into()
}

/// An empty cgroup, which goes when the test ends.
struct Empty(PathBuf);

impl Drop for Empty {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn control_is_limited_to_a_cgroup_at_the_start_and_at_every_walk() {
    if !root() {
        return;
    }
    let _alone = ONE_AT_A_TIME.lock();
    let empty = Empty(cgroups().join(format!("lasthop-test-agent-{}", std::process::id())));
    fs::create_dir(&empty.0).expect("root may make a cgroup");
    let (a, b) = two_hosts();
    serve(&b);
    let _before = upload(&a, "10.77.0.2:5001");
    let settings = format!("cgroup = \"{}\"\n{POLICY}", empty.0.display());
    let agent = AgentProcess::start(&a, Mode::Control, &settings);
    let _after = upload(&a, "10.77.0.2:5001");
    // Open sockets are walked at the start and every 10 s.
    let begun_ns = agent.wait_for_tick("both", |tick| tick.flows.len() == 2).t_ns;
    agent.wait_for_tick("two walks", |tick| tick.t_ns > begun_ns + 12_000_000_000);
    assert!(agent.ticks().iter().flat_map(|tick| &tick.flows).all(|flow| !flow.controlled && flow.bound.is_none()));
    assert_eq!(agent.stop().sockets_restored, 0);
}

#[test]
fn an_excluded_cgroup_that_comes_later_is_left_alone_within_seconds_and_was_warned_of_once() {
    if !root() {
        return;
    }
    let _alone = ONE_AT_A_TIME.lock();
    let (a, b) = two_hosts();
    serve(&b);
    let _upload = upload(&a, "10.77.0.2:5001");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("backup.service"); // leads to no cgroup yet
    let settings = format!("excluded_cgroups = [\"{}\"]\n{POLICY}", path.display());
    let agent = AgentProcess::start(&a, Mode::Control, &settings);
    agent.wait_for_tick("control", |tick| tick.flows.iter().any(|flow| flow.controlled));
    std::os::unix::fs::symlink(cgroups(), &path).expect("a link");
    let since = Instant::now();
    agent.wait_for_tick("its own control", |tick| tick.flows.iter().all(|flow| !flow.controlled));
    eprintln!("left alone {} ms after the cgroup had come", since.elapsed().as_millis());
    fs::remove_file(&path).expect("the link");
    agent.wait_for_tick("control again", |tick| tick.flows.iter().any(|flow| flow.controlled));
    let warned = || agent.log().matches("there is no cgroup").count();
    wait_for("its warning", || (warned() == 1).then_some(()));
    assert!(agent.log().contains("is there now"), "{}", agent.log());
    assert_eq!(agent.stop().sockets_restored, 1);
}
