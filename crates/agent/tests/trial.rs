//! A trial of two agents over a cable between two network namespaces. Needs root.
#![allow(missing_docs)]

use crate::common::{Host, Running, SharedFake, config, fake, root, sample, two_hosts, wait_for, write_key};
use lasthop_agent::{Config, Mode};
use lasthop_status::{TrialOrder, Watched};
use lasthop_trial::{Arm, Plan, Told};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;

const PLAN: Plan = Plan { id: 0xabc, seed: 5, pairs: 1, block_s: 2 };

fn keyed(folder: &Path, mode: Mode) -> Config {
    let file = folder.join("key");
    write_key(&file, "the secret of our group\n");
    let mut config = Config { mode, ..config("last", "fixed") };
    config.beacon.group_key_file = Some(file);
    config
}

fn start(host: &Host, config: Config) -> (Running, SharedFake) {
    let tcp = fake(vec![sample(7, 100, 100)]);
    (Running::start_on(host, config, tcp.clone()), tcp)
}

/// What the agent was made to load so far.
fn modes(tcp: &SharedFake) -> Vec<Mode> {
    tcp.lock().expect("no panic").loaded_for.iter().map(|(_, mode)| *mode).collect()
}

fn order(agent: &Running, order: TrialOrder) -> UnixStream {
    let (_, mut stream) = wait_for("its socket", || lasthop_status::watch(&agent.sockets(), None).ok());
    writeln!(stream, "{}", serde_json::to_string(&order).expect("JSON")).expect("it is heard");
    stream
}

/// What the agent of this stream says until a line is wanted.
fn wait_for_line(stream: UnixStream, mut wanted: impl FnMut(&Watched) -> bool) -> Watched {
    let lines =
        BufReader::new(stream).lines().map(|line| serde_json::from_str(&line.expect("a line")).expect("its format"));
    lines.into_iter().find(|watched| wanted(watched)).expect("it goes on")
}

#[test]
fn two_hosts_take_turns_at_once_and_are_afterwards_as_their_configurations_say() {
    if !root() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (a, b) = two_hosts();
    // One would control, the other only advise.
    let (a, of_a) = start(&a, keyed(folder.path(), Mode::Control));
    let (b, of_b) = start(&b, keyed(folder.path(), Mode::Advise));
    a.wait_for_tick("the other one", |tick| tick.terminals == 2);
    b.wait_for_tick("the other one", |tick| tick.terminals == 2);
    let stream = order(&a, TrialOrder::Begin(PLAN));
    let mut told: BTreeMap<(u32, u16), Told> = BTreeMap::new();
    let last = wait_for_line(stream, |watched| {
        told.extend(watched.trial_told.iter().map(|told| ((told.host, told.block.block), *told)));
        watched.status.trial.as_ref().is_some_and(|trial| trial.ended.is_some())
    });
    let trial = last.status.trial.expect("it was wanted");
    assert_eq!((trial.id.as_str(), trial.ended.as_deref(), trial.hosts), ("00000abc", Some("it is over"), 2));
    // Each block of both hosts, and each counts for two thirds of a second of ticks that acknowledge a byte.
    assert_eq!(told.len(), 4, "{told:?}");
    assert!(
        told.values().all(|told| (2..=14).contains(&told.block.sent_bytes) && told.block.rtt_p95_us == 100_000),
        "{told:?}"
    );
    wait_for("the end", || (modes(&of_a).last() == Some(&Mode::Control)).then_some(()));
    wait_for("the end", || (modes(&of_b).last() == Some(&Mode::Advise)).then_some(()));
    // What they loaded: what they begin with, then each change.
    let of_plan = (0..PLAN.blocks()).map(|block| match PLAN.arm(block) {
        Arm::Control => Mode::Control,
        Arm::Free => Mode::Advise,
    });
    let expected = |configured: Mode| {
        let mut all: Vec<Mode> = [configured].into_iter().chain(of_plan.clone()).chain([configured]).collect();
        all.dedup();
        all
    };
    assert_eq!(modes(&of_a), expected(Mode::Control));
    assert_eq!(modes(&of_b), expected(Mode::Advise));
}

#[test]
fn when_the_command_goes_everybody_is_as_before_and_who_does_not_allow_it_takes_no_part() {
    if !root() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (host_a, host_b) = two_hosts();
    let long = Plan { pairs: 10, block_s: 60, seed: 1, ..PLAN };
    let in_trial = |agent: &Running| agent.status().trial.is_some_and(|trial| trial.block.is_some());
    let (a, of_a) = start(&host_a, keyed(folder.path(), Mode::Advise));
    let (b, _of_b) = start(&host_b, keyed(folder.path(), Mode::Advise));
    let stream = order(&a, TrialOrder::Begin(long));
    wait_for("both to take part", || (in_trial(&a) && in_trial(&b)).then_some(()));
    drop(stream);
    wait_for("both to have left", || (!in_trial(&a) && !in_trial(&b)).then_some(()));
    wait_for("the mode", || (modes(&of_a).last() == Some(&Mode::Advise)).then_some(()));
    drop((a, b));
    // Without a key the other one takes part only if told to.
    let unkeyed = |trial| Config { trial, mode: Mode::Advise, ..config("last", "fixed") };
    let (a, _) = start(&host_a, unkeyed(None));
    let cases = [(None, false), (Some(true), true)];
    for (id, (trial, joins)) in (0xd00..).zip(cases) {
        let (b, _) = start(&host_b, unkeyed(trial));
        let heard = b.wait_for_tick("the other one", |tick| tick.beacons.heard > 0).beacons.heard;
        let stream = order(&a, TrialOrder::Begin(Plan { id, ..long }));
        wait_for("the plan to be told", || in_trial(&a).then_some(()));
        b.wait_for_tick("it to be heard", |tick| tick.beacons.heard > heard + 10);
        match joins {
            true => wait_for("the other one to take part", || in_trial(&b).then_some(())),
            false => assert!(!in_trial(&b)),
        }
        drop(stream);
        wait_for("the end", || (!in_trial(&a)).then_some(()));
        drop(b);
    }
    let refused = order(&a, TrialOrder::Begin(Plan { pairs: 0, ..long }));
    let line = wait_for_line(refused, |watched| watched.status.trial.as_ref().is_some_and(|trial| trial.blocks == 0));
    let trial = line.status.trial.expect("it was wanted");
    assert_eq!((trial.blocks, trial.ended.as_deref()), (0, Some("its numbers are out of range")));
}
