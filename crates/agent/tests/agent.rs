//! The agent on this machine's kernel, in real time: what that kernel does for it. All else that waits for timers is in `in_guests`,
//! `local_users` and `metrics`, which `make test` runs in virtual time (scripts/test-binary).

/// Where cgroups are mounted here, and that their sockets are told from others.
mod cgroups;
mod common;
/// That packets of other namespaces are followed.
mod containers;
/// That bounds hold, end with their lease by this machine's clock, and are taken away.
mod kernel;
/// That options are written into SYNs, and a download is measured.
mod link_report;
/// That four capabilities are enough.
mod privilege;
/// Needs no kernel.
mod schema;

/// Not a test: what `AgentProcess` runs.
#[test]
#[ignore = "run by the other tests"]
fn agent_process() {
    common::process::run();
}
