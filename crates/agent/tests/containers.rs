//! Connections of other network namespaces that leave by the interface: governed on request, with the rights that this takes. Needs root.
#![allow(missing_docs)]

use crate::common::process::{AgentProcess, ONE_AT_A_TIME, serve, upload, wait_until_uploads};
use crate::common::{Host, join_by, root, two_hosts, wait_for};
use lasthop_agent::Mode;
use lasthop_kernel::SocketSample;
use std::process::{Child, Command};

const POLICY: &str = "[policy]\npolicy = \"fixed\"\nbound_segments = 16\n";

/// A namespace behind a host's interface, with a process in it: 10.88.N.2.
struct Container {
    host: Host,
    process: Child,
}

impl Container {
    fn start(on: &Host, server: &Host, number: u8) -> Self {
        let host = Host::new();
        join_by(on, &format!("veth{number}"), &format!("10.88.{number}.1/24"), &host, &format!("10.88.{number}.2/24"));
        host.ip(&format!("route add default via 10.88.{number}.1"));
        on.run(|| std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").expect("root may forward"));
        server.ip(&format!("route add 10.88.{number}.0/24 via 10.77.0.1"));
        let process = host.run(|| Command::new("sleep").arg("1000").spawn().expect("a process"));
        Self { host, process }
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn connections_of_containers_are_governed_with_the_key_and_not_without() {
    if !root() {
        return;
    }
    let _alone = ONE_AT_A_TIME.lock();
    let (a, b) = two_hosts();
    serve(&b);
    let first = Container::start(&a, &b, 1);
    let _open = upload(&first.host, "10.77.0.2:5001");
    let _own = upload(&a, "10.77.0.2:5001");
    let bounded =
        |sample: &SocketSample| sample.congestion_control.starts_with("lasthop") && sample.tcp.cwnd_segments <= 16;

    let agent = AgentProcess::start(&a, Mode::Control, POLICY);
    wait_until_uploads(&a, "its own upload to be bounded", bounded);
    agent.wait_for_tick("two walks for what is not governed", |tick| tick.flows.len() == 1);
    wait_until_uploads(&first.host, "the container's to be left", |sample| {
        !sample.congestion_control.starts_with("lasthop")
    });
    agent.stop();

    let agent = AgentProcess::start(&a, Mode::Control, &format!("containers = true\n{POLICY}"));
    wait_until_uploads(&first.host, "the open upload of the container to be bounded", bounded);
    // As in the table of docs/guide/agent-safety.md: SYS_ADMIN 21, SYS_PTRACE 19 besides.
    let pid = agent.process.id();
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).expect("it runs").flatten();
    let mut of_threads = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("status")).ok());
    let status = of_threads.find(|status| status.contains("Name:\tagent_process\n")).expect("its thread");
    assert!(status.contains("CapPrm:\t000000c000283000\n"), "{status}");
    // One that starts later is found within 2 s.
    let second = Container::start(&a, &b, 2);
    let _later = upload(&second.host, "10.77.0.2:5001");
    wait_until_uploads(&second.host, "the upload of a new container to be bounded", bounded);
    agent.wait_for_tick("three uploads", |tick| tick.flows.iter().filter(|flow| flow.bound.is_some()).count() == 3);
    wait_for("a line about both", || {
        agent.log().contains("connections of 2 network namespaces are governed").then_some(())
    });
    // Where the first process of a machine is not the test's to see, it is counted.
    let log = agent.log();
    assert!(!log.contains("cannot be entered") || log.contains("; 0 cannot be entered"), "{log}");
    agent.stop();
    for host in [&a, &first.host, &second.host] {
        wait_until_uploads(host, "its own control back", |sample| !sample.congestion_control.starts_with("lasthop"));
    }
}
