//! `lasthop agent` and what becomes of its log: whoever reads it, or does not, the agent goes on and stops in order. Needs root.
#![allow(missing_docs)]

use crate::common::{can_run, lasthop};
use lasthop_status::record::Event;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::{self, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long what must happen may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < PATIENCE, "waited {PATIENCE:?} for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn events(record: &Path) -> Vec<Event> {
    let text = fs::read_to_string(record).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// An agent on an interface of its own with this as standard error: it ticks, whatever `meanwhile` does, and stops in order.
fn runs_and_stops(stderr: impl Into<Stdio>, meanwhile: impl FnOnce()) {
    let folder = tempfile::tempdir().expect("a folder");
    let record = folder.path().join("record.jsonl");
    let path = record.display().to_string();
    let mut command =
        lasthop(&["agent", "--mode", "observe", "--policy", "formula", "--interface", "last", "--record", &path]);
    // Some lines at each tick.
    command.env("RUST_LOG", "trace").stdout(Stdio::null()).stderr(stderr);
    let spawn = move || {
        unshare(CloneFlags::CLONE_NEWNET).expect("root may make a network namespace");
        let add = ["link", "add", "last", "type", "veth", "peer", "name", "other"];
        assert!(Command::new("ip").args(add).status().expect("ip").success());
        command.spawn().expect("the command starts")
    };
    let mut agent = Ends(std::thread::spawn(spawn).join().expect("no panic"));
    meanwhile();
    let ticks = |events: &[Event]| events.iter().filter(|event| matches!(event, Event::Tick(_))).count();
    until("five ticks", || {
        assert!(agent.0.try_wait().expect("it is ours").is_none(), "the agent has ended");
        ticks(&events(&record)) >= 5
    });
    kill(Pid::from_raw(agent.0.id() as i32), Signal::SIGTERM).expect("it runs");
    until("the agent to stop", || agent.0.try_wait().expect("it is ours").is_some());
    assert_eq!(agent.0.wait().expect("it has ended").code(), Some(0));
    assert!(matches!(events(&record).last(), Some(Event::Stopped(_))));
}

#[test]
fn a_reader_of_the_log_that_goes_away_after_a_line_does_not_take_the_agent_with_it() {
    if !can_run() {
        return;
    }
    let (reader, writer) = io::pipe().expect("a pipe");
    runs_and_stops(writer, || {
        let mut line = String::new();
        BufReader::new(reader).read_line(&mut line).expect("a line");
    });
}

#[test]
fn a_log_on_a_full_disk_does_not_end_the_agent() {
    if !can_run() {
        return;
    }
    runs_and_stops(OpenOptions::new().write(true).open("/dev/full").expect("Linux has it"), || {});
}

#[test]
fn a_reader_of_the_log_that_stalls_does_not_freeze_the_agent() {
    if !can_run() {
        return;
    }
    let (reader, mut writer) = io::pipe().expect("a pipe");
    fcntl(&writer, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).expect("ours");
    while writer.write(&[b'x'; 4096]).is_ok() {}
    while writer.write(b"x").is_ok() {}
    fcntl(&writer, FcntlArg::F_SETFL(OFlag::empty())).expect("ours");
    runs_and_stops(writer, || {});
    drop(reader);
}

#[test]
fn a_command_whose_output_nobody_takes_does_not_panic() {
    let full = || OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
    let (reader, closed) = io::pipe().expect("a pipe");
    drop(reader);
    let run = ["run", "scenarios/one-station.toml", "--set", "duration_s=2", "--set", "warmup_s=1"];
    let status = lasthop(&run).stdout(closed.try_clone().expect("ours")).stderr(closed).status().expect("it starts");
    assert_eq!(status.code(), Some(0), "a reader that has gone away is no error");
    let status = lasthop(&run).stdout(full()).stderr(full()).status().expect("it starts");
    assert_eq!(status.code(), Some(2), "the result is lost, and the exit code says so");
}
