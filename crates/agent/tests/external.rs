//! A policy that is a program outside, in the agent's loop: in time, late, dead and mad.
#![allow(missing_docs)]

use crate::common::{Running, fake, sample, wait_for};
use lasthop_agent::Config;
use lasthop_laws::bound::Bound;
use lasthop_status::record::{Event, Tick};

/// The beginning of each program: `decide` is called with the number of the tick and the observation.
const PROGRAM: &str = r#"
import json, os, sys, time
def limits(seen, most):
    flows = [{"id": flow["id"], "max_segments": most} for flow in seen["flows"]]
    return {"flows": flows, "reason": f"user {os.getuid()}"}
def main(decide):
    sys.stdin.readline()
    for number, line in enumerate(sys.stdin):
        print(decide(number, json.loads(line)), flush=True)
"#;

fn config(program: &str) -> Config {
    let mut config = crate::common::config("lo", "external");
    config.tick_ms = 200;
    config.policy.command_deadline_ms = Some(150);
    config.policy.command = Some(["python3", "-c", &format!("{PROGRAM}\n{program}")].map(str::to_owned).to_vec());
    config
}

const LIMITED: Option<Bound> = Some(Bound::at_most(20));

fn is_limited(tick: &Tick) -> bool {
    tick.flows.iter().all(|flow| flow.bound == LIMITED)
}

#[test]
fn a_program_in_time_decides_and_the_record_has_what_was_said() {
    let agent = Running::start(
        config("main(lambda number, seen: json.dumps(limits(seen, 20)))"),
        fake(vec![sample(7, 300, 100)]),
    );
    let tick = agent.wait_for_tick("a decision", is_limited);
    let root = nix::unistd::geteuid().is_root();
    let user = if root { "user 65534".to_owned() } else { format!("user {}", nix::unistd::geteuid()) };
    assert_eq!(tick.flows[0].reason, user);
    let status = wait_for("decisions", || {
        let program = agent.status().program.expect("the policy is a program");
        (program.totals.decisions > 0 && program.trouble.is_none()).then_some(program)
    });
    assert_eq!((status.totals.failures, status.totals.starts), (0, 1));
    let (summary, events) = agent.stop();
    assert!(summary.expect("it stopped in order").program.expect("totals").decisions > 0);
    let hello = events.iter().find_map(|event| if let Event::Hello(hello) = event { Some(hello) } else { None });
    assert_eq!(hello.map(|hello| (hello.schema, hello.host, hello.tick_ns)), Some((1, None, 200_000_000)));
    let decided =
        |event: &&Event| matches!(event, Event::Decision(decision) if decision.flows[0].max_segments == Some(20));
    assert!(events.iter().any(|event| decided(&event)));
    let asked = events.iter().find_map(|event| if let Event::Observation(seen) = event { Some(seen) } else { None });
    let flow = &asked.expect("it was asked").flows[0];
    assert_eq!((flow.id, flow.srtt_ns, flow.cwnd_segments, flow.busy), (7, Some(300_000_000), 500, true));
}

#[test]
fn a_late_program_bounds_nothing_until_it_is_in_time_again_and_the_agent_goes_on() {
    let program = r#"
def decide(number, seen):
    if number == 3:
        time.sleep(1.5)
    return json.dumps(limits(seen, 20))
main(decide)
"#;
    let agent = Running::start(config(program), fake(vec![sample(7, 300, 100)]));
    agent.wait_for_tick("a decision", is_limited);
    agent.wait_for_tick("the program to be late", |tick| {
        tick.flows[0].bound.is_none() && tick.flows[0].reason.contains("gave no decision within 150 ms")
    });
    agent.wait_for_tick("the program to be in time again", is_limited);
    let summary = agent.stop().0.expect("it stopped in order");
    let program = summary.program.expect("totals");
    // 1.5 s are seven ticks of 0.2 s.
    assert!(program.late >= 3, "{summary}");
    assert_eq!((program.failures, program.starts), (0, 1), "{summary}");
}

#[test]
fn a_program_that_dies_or_writes_nonsense_is_started_again() {
    for (end, told) in [
        ("sys.exit(3)", "has ended (exit code 3)"),
        ("return 'nonsense'", "wrote a line that is no decision: expected ident"),
        ("return '{\"flows\": [{\"id\": 99}]}'", "flows[0].id: 99 is no connection of the observation"),
        ("return '{\"window\": 3}'", "window: unknown field `window`"),
    ] {
        let program = format!(
            r#"
def decide(number, seen):
    if number >= 3:
        {end}
    return json.dumps(limits(seen, 20))
main(decide)
"#
        );
        let agent = Running::start(config(&program), fake(vec![sample(7, 300, 100)]));
        agent.wait_for_tick("a decision", is_limited);
        agent.wait_for_tick(told, |tick| tick.flows[0].bound.is_none() && tick.flows[0].reason.contains(told));
        agent.wait_for_tick("the next program", is_limited);
        let program = agent.stop().0.expect("it stopped in order").program.expect("totals");
        assert!(program.failures >= 1 && program.starts > program.failures, "{told}: {program}");
    }
}

#[test]
fn the_program_has_no_descriptor_but_its_pipes_and_dies_with_the_agent() {
    let kept = std::fs::File::open("/dev/null").expect("it is there");
    nix::fcntl::fcntl(&kept, nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::empty()))
        .expect("it stays open over exec");
    let program = r#"
def decide(number, seen):
    # The third is the folder that is listed.
    said = f"process {os.getpid()} with {len(os.listdir('/proc/self/fd')) - 1} descriptors"
    return json.dumps({"reason": said})
main(decide)
"#;
    let agent = Running::start(config(program), fake(vec![sample(7, 300, 100)]));
    let tick = agent.wait_for_tick("a reason", |tick| tick.flows[0].reason.starts_with("process"));
    let said: Vec<&str> = tick.flows[0].reason.split(' ').collect();
    assert_eq!(said[2..], ["with", "3", "descriptors"]);
    let process = format!("/proc/{}", said[1]);
    assert!(std::path::Path::new(&process).exists());
    agent.stop().0.expect("it stopped in order");
    wait_for("the program to be gone", || (!std::path::Path::new(&process).exists()).then_some(()));
}
