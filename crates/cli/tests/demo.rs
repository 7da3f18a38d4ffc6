//! `make demo` ends with what could be shown. A stand-in for the command says how each part of it went.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

/// Runs scripts/demo with a command that succeeds with simulated hosts and exits with `code` with kernel hosts; what it said,
/// and the lines of arguments of its calls.
fn demo(code: u8) -> (Output, Vec<String>) {
    let folder = tempfile::tempdir().expect("a folder");
    let (stand_in, calls) = (folder.path().join("lasthop"), folder.path().join("calls"));
    let text = format!(
        "#!/bin/sh\necho \"$@\" >> '{}'\ncase \"$*\" in *'--hosts kernel'*) exit {code};; esac\n",
        calls.display()
    );
    fs::write(&stand_in, text).expect("a file");
    fs::set_permissions(&stand_in, fs::Permissions::from_mode(0o755)).expect("it is ours");
    let demo = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/demo");
    let output = Command::new(demo).args([&stand_in, &folder.path().join("out")]).output().expect("it starts");
    let calls = fs::read_to_string(&calls).expect("it was called").lines().map(str::to_owned).collect();
    (output, calls)
}

#[test]
fn a_machine_that_is_too_busy_for_real_time_ends_the_demo_well_and_a_failure_does_not() {
    if !nix::unistd::geteuid().is_root() {
        return crate::common::skip("the demo's part in real time needs root");
    }
    let (quiet, calls) = demo(0);
    assert_eq!(quiet.status.code(), Some(0), "{quiet:?}");
    let kernel: Vec<&String> = calls.iter().filter(|call| call.contains("--hosts kernel")).collect();
    assert_eq!(kernel.len(), 1, "{calls:?}");
    assert!(kernel[0].contains("--retries 2"), "{kernel:?}");
    assert_eq!(calls.iter().filter(|call| call.starts_with("compare")).count(), 4, "{calls:?}");
    // It ran and a case was late: what was shown stays, and make has no error.
    let (busy, _) = demo(1);
    assert_eq!(busy.status.code(), Some(0), "{busy:?}");
    assert!(String::from_utf8_lossy(&busy.stderr).contains("does not count"), "{busy:?}");
    // It could not run, or was interrupted.
    for code in [2, 130] {
        assert_eq!(demo(code).0.status.code(), Some(i32::from(code)));
    }
}
