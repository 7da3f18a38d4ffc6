//! Policies that are programs outside, with simulated hosts: the built-in ones' bytes, messages, no child left.

use lasthop_scenario::{ResultFile as _, RunResult};
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

fn lasthop(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lasthop"));
    command.args(arguments).current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The overrides for a host's policy.
fn external(command: &[&str]) -> [String; 2] {
    ["hosts.0.policy=external".to_owned(), format!("hosts.0.command={command:?}")]
}

const RUN: [&str; 7] =
    ["run", "scenarios/ten-uploads.toml", "--json", "--set", "duration_s=60", "--set", "hosts.0.count=5"];

fn run(settings: &[String]) -> Output {
    let mut command = lasthop(&RUN);
    settings.iter().for_each(|setting| _ = command.args(["--set", setting]));
    command.output().expect("the command starts")
}

/// A result without its clock, and without what names the policy.
fn nameless(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let text = String::from_utf8_lossy(&output.stdout);
    RunResult::from_json(&text).unwrap_or_else(|error| panic!("{error}"));
    let mut result: serde_json::Value = serde_json::from_str(&text).expect("a result");
    for key in ["scenario", "wall_s", "simulated_s_per_wall_s"] {
        result.as_object_mut().expect("an object").remove(key).unwrap_or_else(|| panic!("there is {key}"));
    }
    result
        .to_string()
        .replace("\"external\"", "\"POLICY\"")
        .replace("\"formula\"", "\"POLICY\"")
        .replace("\"fixed\"", "\"POLICY\"")
}

fn message(command: &[&str]) -> String {
    let output = run(&external(command));
    assert_eq!(output.status.code(), Some(2));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn the_formula_in_python_gives_the_bytes_of_the_built_in_one() {
    let in_python = nameless(&run(&external(&["python3", "scenarios/external/formula.py"])));
    assert_eq!(in_python, nameless(&run(&["hosts.0.policy=formula".to_owned()])));
    assert_eq!(in_python, nameless(&run(&external(&["python3", "scenarios/external/formula.py"]))), "it is repeatable");
    assert!(in_python != nameless(&run(&["hosts.0.policy=fixed".to_owned()])), "the policy changes something");
}

#[test]
fn the_template_gives_the_bytes_of_fixed() {
    let fixed = ["hosts.0.policy=fixed".to_owned(), "hosts.0.bound_segments=40".to_owned()];
    assert_eq!(nameless(&run(&external(&["python3", "scenarios/external/policy.py"]))), nameless(&run(&fixed)));
}

#[test]
fn a_failure_names_the_host_the_tick_and_the_command_with_what_the_program_said() {
    let cannot_start = message(&["/nonexistent/program"]);
    assert!(
        cannot_start.contains("the policy of host 0 cannot start: cannot start /nonexistent/program: No such file")
    );
    let ends = r#"
import sys
for number, line in enumerate(sys.stdin):
    if number == 3:
        sys.exit("my last words")
    if number > 0:
        print("{}", flush=True)
"#;
    let ends = message(&["python3", "-c", ends]);
    for part in [
        "of host ",
        "(python3 -c ",
        "failed at tick 2, at 1.",
        "the program has ended (exit code 1)",
        "  | my last words",
    ] {
        assert!(ends.contains(part), "{part}: {ends}");
    }
    for (answer, told) in [
        ("nonsense", "expected ident at line 1 column 2; the line: nonsense"),
        (r#"{"window": 3}"#, "window: unknown field `window`, expected one of `flows`, `new_flows`, `word`, `reason`"),
        (
            r#"{"flows": [{"id": 1, "max_segments": 2.5}]}"#,
            "flows[0].max_segments: invalid type: floating point `2.5`, expected u32",
        ),
        (r#"{"flows": [{"id": 1}]}"#, "flows[0].id: 1 is no connection of the observation"),
        (r#"{"flows": [{}]}"#, "flows[0]: missing field `id`"),
    ] {
        let said = message(&["python3", "-c", &format!("input()\nwhile input(): print('{answer}', flush=True)")]);
        assert!(said.contains(told), "{said}");
    }
}

#[test]
fn an_answer_to_the_hello_ends_the_run_as_every_decision_would_be_one_tick_old() {
    let said = message(&["python3", "-c", "while input(): print('{}', flush=True)"]);
    assert!(said.contains("is no decision: nothing was asked; the line: {}"), "{said}");
}

/// Whether the process is there, and is no zombie.
fn lives(process: &str) -> bool {
    fs::read_to_string(Path::new("/proc").join(process).join("stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(30), "{what}");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn kill_9_and_ctrl_c_leave_no_program_behind() {
    for signal in ["KILL", "INT"] {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("processes");
        // It looks neither at its input nor at signals that a terminal sends.
        let program = "trap '' INT TERM HUP; echo $$ >> $0; while :; do sleep 0.05; done";
        let settings = external(&["sh", "-c", program, file.to_str().expect("text")]);
        let mut command = lasthop(&RUN);
        settings.iter().for_each(|setting| _ = command.args(["--set", setting]));
        let mut child = command.spawn().expect("the command starts");
        let processes = || fs::read_to_string(&file).unwrap_or_default();
        wait_until("five programs start", || processes().lines().count() == 5);
        assert!(processes().lines().all(lives));
        let status = Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status();
        assert!(status.expect("kill is there").success());
        let status = child.wait().expect("it ends");
        assert_eq!(status.code(), (signal == "INT").then_some(130));
        wait_until("no program is left", || !processes().lines().any(lives));
    }
}
