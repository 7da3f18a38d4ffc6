//! Agents that wait for each other and for timers: `make test` runs these in an emulated machine, where a busy machine changes nothing
//! (scripts/test-binary).

mod common;
mod external;
mod faults;
mod groups;
mod hostile;
mod last_link;
mod r#loop;
mod peers;
mod reload;
mod trial;

/// Not a test: what `AgentProcess` runs.
#[test]
#[ignore = "run by the other tests"]
fn agent_process() {
    common::process::run();
}
