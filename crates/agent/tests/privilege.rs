//! An agent that has given up what it does not need still does everything. Needs root, and Linux 6.6.
#![allow(missing_docs)]

use crate::common::process::{AgentProcess, ONE_AT_A_TIME, serve, upload, wait_until_uploads};
use crate::common::{join, root, two_hosts, wait_for};
use lasthop_agent::Mode;
use lasthop_status::record::Event;

#[test]
fn with_four_capabilities_it_takes_sockets_over_bounds_both_ways_and_follows_a_replaced_interface() {
    if !root() {
        return;
    }
    let _alone = ONE_AT_A_TIME.lock();
    let (a, b) = two_hosts();
    serve(&a);
    serve(&b);
    let open = upload(&a, "10.77.0.2:5001");
    let settings = "[policy]\npolicy = \"fixed\"\nbound_segments = 16\nbound_receive_segments = 16\n";
    let agent = AgentProcess::start(&a, Mode::Control, settings);
    // libtest runs `agent_process` on a thread of that name; its main thread is not the agent's.
    let pid = agent.process.id();
    wait_for("the rights of the agent's thread", || {
        let threads = std::fs::read_dir(format!("/proc/{pid}/task")).expect("it runs").flatten();
        let of_threads = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("status")).ok());
        let has = |status: &String, line: &str| status.lines().any(|found| found == line);
        let mut of_agent = of_threads.filter(|status| has(status, "Name:\tagent_process"));
        let status = of_agent.next().expect("its thread");
        (has(&status, "CapPrm:\t000000c000003000") && has(&status, "NoNewPrivs:\t1")).then_some(())
    });
    let bounded = |sample: &lasthop_kernel::SocketSample| {
        sample.congestion_control.starts_with("lasthop") && sample.tcp.cwnd_segments <= 16
    };
    wait_until_uploads(&a, "the open window to be bounded", bounded);
    let _download = upload(&b, "10.77.0.1:5001");
    // The program at the interface's egress is attached with the first bounds, which is after the rights were given up.
    agent.wait_for_tick("three more ticks", |tick| {
        tick.flows.iter().any(|flow| flow.bound.is_some_and(|bound| bound.max_receive_bytes > 0))
    });
    assert!(!agent.log().contains("what is received is not bounded"), "{}", agent.log());
    drop(open);

    a.ip("link delete last");
    join(&a, &b);
    let ready = |agent: &AgentProcess| agent.events().iter().filter(|event| matches!(event, Event::Ready(_))).count();
    wait_for("the programs to be loaded anew", || (ready(&agent) == 2).then_some(()));
    let _again = upload(&a, "10.77.0.2:5001");
    wait_until_uploads(&a, "the new window to be bounded", bounded);
    agent.stop();
}
