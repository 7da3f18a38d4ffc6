//! Agents that wait for each other and for the kernel's timers: `make test` runs these in an emulated machine, where a busy machine changes
//! nothing (scripts/test-binary).

mod common;
mod faults;
mod groups;
mod peers;

/// Not a test: what `AgentProcess` runs.
#[test]
#[ignore = "run by the other tests"]
fn agent_process() {
    common::process::run();
}
