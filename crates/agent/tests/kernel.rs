//! The agent as a process of its own on this machine's kernel, between two network namespaces. Needs root.
#![allow(missing_docs)]

use crate::common::process::{AgentProcess, ONE_AT_A_TIME, monotonic_ns, serve, upload, wait_until_uploads};
use crate::common::{Host, root, two_hosts, wait_for};
use lasthop_agent::Mode;
use lasthop_kernel::SocketSample;
use lasthop_status::record::Event;

/// Windows are tried at this bound: two connections get half each.
const BOUND_SEGMENTS: u32 = 16;

fn start(host: &Host, mode: Mode) -> AgentProcess {
    AgentProcess::start(host, mode, &format!("[policy]\npolicy = \"fixed\"\nbound_segments = {BOUND_SEGMENTS}\n"))
}

fn bounded(sample: &SocketSample) -> bool {
    sample.congestion_control.starts_with("lasthop") && sample.tcp.cwnd_segments <= BOUND_SEGMENTS / 2
}

fn two_hosts_with_ipv6() -> (Host, Host) {
    let (a, b) = two_hosts();
    a.ip("address add fd77::1/64 dev last nodad");
    b.ip("address add fd77::2/64 dev last nodad");
    serve(&b);
    (a, b)
}

#[test]
fn bounds_hold_over_both_address_families_and_lapse_after_kill_9() {
    if !root() {
        return;
    }
    let _alone = ONE_AT_A_TIME.lock();
    let (a, _b) = two_hosts_with_ipv6();
    let before = upload(&a, "10.77.0.2:5001"); // open before the agent starts
    let mut agent = start(&a, Mode::Control);
    let after = upload(&a, "[fd77::2]:5001");
    wait_until_uploads(&a, "both windows to be bounded", bounded);
    let log = agent.log();
    assert!(log.contains("default congestion control, ") && log.contains("get CUBIC with bounded"), "{log}");

    agent.signal(nix::sys::signal::Signal::SIGKILL);
    agent.process.wait().expect("it is dead");
    let dead_ns = monotonic_ns();
    // Its lease ends 1.5 s after its last tick. (The kernel keeps CUBIC running in our wrapping.) How soon after that this
    // test sees larger windows is up to the machine: what the kernel does at the end of a lease is tested in `kernel`.
    let flows = agent.events().into_iter().filter_map(|event| match event {
        Event::Tick(tick) => Some(tick.flows),
        _ => None,
    });
    let ends_ns = flows.flatten().filter_map(|flow| flow.bound_until_ns).max().expect("bounds with a lease");
    assert!(ends_ns <= dead_ns + 1_500_000_000, "{ends_ns} and {dead_ns}");
    wait_until_uploads(&a, "the bounds to lapse", |sample| sample.tcp.cwnd_segments > BOUND_SEGMENTS);
    let lapsed_ns = monotonic_ns();
    eprintln!("the bounds lapsed {} ms after kill -9", (lapsed_ns - dead_ns) / 1_000_000);
    assert!(lapsed_ns >= ends_ns, "the bounds lapsed {} ns before their lease", ends_ns - lapsed_ns);
    drop((before, after));
}

#[test]
fn a_stop_in_order_gives_the_sockets_their_own_control_back() {
    if !root() {
        return;
    }
    let _alone = ONE_AT_A_TIME.lock();
    let (a, _b) = two_hosts_with_ipv6();
    let upload = upload(&a, "10.77.0.2:5001");
    let mut agent = start(&a, Mode::Control);
    wait_until_uploads(&a, "the window to be bounded", |sample| sample.congestion_control.starts_with("lasthop"));
    let bounded = |event: &Event| matches!(event, Event::Tick(tick) if tick.flows.iter().any(|flow| flow.bound.is_some() && flow.controlled));
    wait_for("a tick with the bound", || agent.events().iter().any(bounded).then_some(()));
    agent.signal(nix::sys::signal::Signal::SIGTERM);
    let asked_ns = monotonic_ns();
    assert!(wait_for("the agent to end", || agent.process.try_wait().expect("it is ours")).success());
    wait_until_uploads(&a, "its own control", |sample| !sample.congestion_control.starts_with("lasthop"));
    let events = agent.events();
    let Some(Event::Stopped(totals)) = events.last() else { panic!("the last line says that it has stopped") };
    assert_eq!((totals.sockets_restored, totals.flows_enabled), (1, 1));
    // It stops at once: at most the ticks of two seconds, should its threads wait for a CPU.
    let after = events.iter().filter(|event| matches!(event, Event::Tick(tick) if tick.t_ns > asked_ns)).count();
    assert!(after <= 4, "{after} more ticks");
    drop(upload);
}

#[test]
fn mode_advise_says_what_it_would_do_and_leaves_the_sockets_alone() {
    if !root() {
        return;
    }
    let _alone = ONE_AT_A_TIME.lock();
    let (a, _b) = two_hosts_with_ipv6();
    let upload = upload(&a, "10.77.0.2:5001");
    let agent = start(&a, Mode::Advise);
    wait_for("an advice", || {
        agent.events().into_iter().find_map(|event| match event {
            Event::Tick(tick) => tick.flows.into_iter().find(|flow| flow.advised.is_some()),
            _ => None,
        })
    });
    wait_until_uploads(&a, "its own control", |sample| {
        !sample.congestion_control.starts_with("lasthop") && sample.bound.is_none()
    });
    drop(upload);
}
