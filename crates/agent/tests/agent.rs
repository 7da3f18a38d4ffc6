//! The agent from outside. One binary, but for `local_users` and `metrics`, which look at what their own process has open, and
//! `in_guests`.

mod cgroups;
mod common;
mod containers;
mod external;
mod hostile;
mod kernel;
mod last_link;
mod r#loop;
mod privilege;
mod reload;
mod schema;
mod trial;

/// Not a test: what `AgentProcess` runs.
#[test]
#[ignore = "run by the other tests"]
fn agent_process() {
    common::process::run();
}
