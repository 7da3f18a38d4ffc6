//! The cgroups of the configuration on this machine's kernel: they hold at the start, at each walk, and when they come later. Needs
//! root.
#![allow(missing_docs)]

use crate::common::process::{AgentProcess, ONE_AT_A_TIME, serve, upload};
use crate::common::{root, two_hosts, wait_for};
use lasthop_agent::Mode;
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

const POLICY: &str = "[policy]\npolicy = \"fixed\"\nbound_segments = 8\n";

/// Where cgroup2 is mounted. The processes of these tests are in its root.
fn cgroups() -> PathBuf {
    let mounts = fs::read_to_string("/proc/self/mounts").expect("Linux says so");
    let line = mounts.lines().find(|line| line.split(' ').nth(2) == Some("cgroup2")).expect("cgroup2 is mounted");
    line.split(' ').nth(1).expect("where").into()
}

/// A cgroup, which goes when the test ends.
struct Empty(PathBuf);

impl Empty {
    fn new(name: &str) -> Self {
        let path = cgroups().join(format!("lasthop-test-{name}-{}", std::process::id()));
        fs::create_dir(&path).expect("root may make a cgroup");
        Self(path)
    }
}

impl Drop for Empty {
    fn drop(&mut self) {
        for _ in 0..100 {
            match fs::remove_dir(&self.0) {
                Err(error) if error.kind() == std::io::ErrorKind::ResourceBusy => {
                    std::thread::sleep(std::time::Duration::from_millis(10));
                }
                _ => return,
            }
        }
    }
}

/// A process that uploads, as a user and in a cgroup; it goes when the test ends.
struct Uploading(std::process::Child);

impl Uploading {
    fn start(host: &crate::common::Host, cgroup: PathBuf, uid: u32) -> Self {
        host.run(move || {
            let mut command = std::process::Command::new(std::env::current_exe().expect("this test"));
            command.args(["--exact", "cgroups::an_upload_of_another_process", "--ignored", "--nocapture"]);
            command.env("LASTHOP_TEST_CGROUP", cgroup).env("LASTHOP_TEST_UID", uid.to_string());
            Self(command.stdout(std::process::Stdio::null()).spawn().expect("this test runs again"))
        })
    }
}

impl Drop for Uploading {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Not a test: what `Uploading` runs. A socket belongs to the cgroup and the user of the process that makes it.
#[test]
#[ignore = "run by the other tests"]
fn an_upload_of_another_process() {
    let Some(cgroup) = std::env::var_os("LASTHOP_TEST_CGROUP") else { return };
    fs::write(PathBuf::from(cgroup).join("cgroup.procs"), std::process::id().to_string()).expect("root may");
    nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL).expect("possible");
    let uid = std::env::var("LASTHOP_TEST_UID").ok().and_then(|uid| uid.parse().ok()).expect("a number");
    nix::unistd::setuid(nix::unistd::Uid::from_raw(uid)).expect("root may");
    let mut stream = wait_for("a connection", || std::net::TcpStream::connect("10.77.0.2:5001").ok());
    while std::io::Write::write_all(&mut stream, &[0; 1 << 16]).is_ok() {}
}

#[test]
fn control_is_limited_to_a_cgroup_at_the_start_and_at_every_walk() {
    if !root() {
        return;
    }
    let _alone = ONE_AT_A_TIME.lock();
    let empty = Empty::new("agent");
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

#[test]
fn rules_leave_some_alone_and_share_a_rate_among_others_and_the_record_says_by_which() {
    if !root() {
        return;
    }
    let _alone = ONE_AT_A_TIME.lock();
    let backup = Empty::new("rules");
    let name = backup.0.file_name().expect("it has one").to_str().expect("ours").to_owned();
    let (a, b) = two_hosts();
    serve(&b);
    let settings = format!(
        "{POLICY}[[rules]]\ncgroup = \"/{}*\"\ngovern = false\n[[rules]]\nuser = \"1001\"\nmost_mbps = 4\n",
        &name[..name.len() - 1]
    );
    let agent = AgentProcess::start(&a, Mode::Control, &settings);
    let _free = upload(&a, "10.77.0.2:5001");
    let left = Uploading::start(&a, backup.0.clone(), 1001);
    let camera = Uploading::start(&a, cgroups(), 1001);
    let pace = |tick: &lasthop_status::record::Tick, rule| {
        let of_rule = tick.flows.iter().filter(|flow| flow.rule == rule && flow.busy);
        of_rule.map(|flow| flow.bound.map(|bound| bound.max_pacing_rate.as_mbps())).collect::<Vec<_>>()
    };
    let tick = agent.wait_for_tick("all three", |tick| {
        pace(tick, None) == [Some(0.0)] && pace(tick, Some(1)) == [None] && pace(tick, Some(2)) == [Some(4.0)]
    });
    let of = |rule| tick.flows.iter().find(|flow| flow.rule == rule).expect("there is one");
    assert!(of(None).controlled && of(Some(2)).controlled && !of(Some(1)).controlled);
    assert_eq!(of(Some(1)).reason, "rule 1: left alone");
    assert_eq!(of(Some(2)).reason, "rule 2: 4 Mb/s over 1 connection");
    // The window is the policy's as before.
    assert!(of(Some(2)).bound.is_some_and(|bound| bound.max_segments > 0));
    let second = Uploading::start(&a, cgroups(), 1001);
    agent.wait_for_tick("half each", |tick| pace(tick, Some(2)) == [Some(2.0), Some(2.0)]);
    drop(second);
    agent.wait_for_tick("all again", |tick| pace(tick, Some(2)) == [Some(4.0)]);
    drop((left, camera));
    agent.stop();
    let unknown = "[[rules]]\nuser = \"nobody-of-this-name\"\ngovern = false\n";
    let said = AgentProcess::refused(&a, Mode::Control, unknown);
    assert!(said.contains("rules[0].user: there is no user") && said.contains("accepted: a name that"), "{said}");
}
