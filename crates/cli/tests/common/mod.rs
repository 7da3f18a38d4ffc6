//! Runs of the command: simulated, with kernel hosts in virtual time, and in real time on a machine that may be busy with something else:
//! those may be late, and nothing is asserted that a busy machine changes.
#![allow(dead_code, unreachable_pub, missing_docs)] // each test file uses a part

use lasthop_guest::{Architecture, Machine};
use lasthop_scenario::{ResultFile as _, RunResult};
use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

/// Past the test harness, which would keep it to itself.
pub fn say(what: &str) {
    let _ = writeln!(std::io::stderr(), "{what}");
}

/// Says why a test does not run here. Where LASTHOP_REQUIRE_ROOT_TESTS is set, as in CI, every test must run: it fails.
pub fn skip(why: &str) {
    assert!(
        std::env::var_os("LASTHOP_REQUIRE_ROOT_TESTS").is_none(),
        "LASTHOP_REQUIRE_ROOT_TESTS forbids skipping: {why}"
    );
    say(&format!("skipped: {why}"));
}

/// Whether these tests, on kernel hosts, can run here.
pub fn can_run() -> bool {
    let root = nix::unistd::geteuid().is_root();
    if !root {
        skip("kernel hosts need root");
    }
    root
}

/// Whether there is an emulator and a kernel for it: fetched once. Where all tests must run, there is.
pub fn can_emulate() -> bool {
    static CAN: OnceLock<Result<(), String>> = OnceLock::new();
    let can = CAN.get_or_init(|| {
        let here = lasthop(&["kernels", "list"]).output().expect("the command starts");
        let here = String::from_utf8_lossy(&here.stdout).lines().any(|line| {
            line.starts_with("debian-6.12 ") && !line.contains("not here") && !line.contains("another version")
        });
        match Machine::emulator(Architecture::Amd64) {
            Err(error) => return Err(error.to_string()),
            Ok(_) if here => return Ok(()),
            Ok(_) => {}
        }
        let fetched = lasthop(&["kernels", "fetch", "debian-6.12"]).output().expect("the command starts");
        if fetched.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&fetched.stderr).into_owned()) }
    });
    if let Err(why) = can {
        skip(&format!("no virtual time here: {why}"));
    }
    can.is_ok()
}

/// The command, from the workspace's root.
pub fn lasthop(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lasthop"));
    command.args(arguments).current_dir(format!("{}/../..", env!("CARGO_MANIFEST_DIR")));
    command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The same with kernel hosts.
pub fn on_kernel_hosts(arguments: &[&str]) -> Command {
    let mut command = lasthop(arguments);
    command.args(["--hosts", "kernel"]);
    command
}

/// The result that a run with --json printed.
pub fn result(output: &Output) -> RunResult {
    RunResult::from_json(&String::from_utf8_lossy(&output.stdout)).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// The result of a run with --json on kernel hosts in virtual time, with the same bytes each time.
pub fn in_virtual_time(arguments: &[&str]) -> RunResult {
    let output = on_kernel_hosts(arguments).args(["--clock", "virtual"]).output().expect("the command starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    result(&output)
}

/// A run of this scenario on kernel hosts in virtual time.
pub fn of_text(scenario: &str) -> RunResult {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("scenario.toml");
    std::fs::write(&file, scenario).expect("a file");
    in_virtual_time(&["run", &file.display().to_string(), "--json"])
}

/// The result of a run with --json on this machine's kernel, in real time. It may have been late; nothing else may be wrong with it, and
/// its exit code says so.
pub fn in_real_time(arguments: &[&str]) -> RunResult {
    let output = on_kernel_hosts(arguments).output().expect("the command starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{said}");
    let result = result(&output);
    assert_eq!(result.valid, output.status.success(), "{said}");
    assert!(result.valid || result.is_only_late(), "{said}");
    result
}
