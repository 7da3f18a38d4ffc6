//! What another user of this machine can do to an agent: nothing. Needs root.
#![allow(missing_docs)]

mod common;

use common::process::{self, AgentProcess, ONE_AT_A_TIME};
use common::{Host, Running, config, fake, root, two_hosts, wait_for};
use lasthop_agent::Mode;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, SockaddrIn6, bind, setsockopt, socket, sockopt};
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::UnixDatagram;

const FIXED: &str = "[policy]\npolicy = \"fixed\"\nbound_segments = 16\n";

/// Not a test: what `AgentProcess` runs.
#[test]
#[ignore = "run by the other tests"]
fn agent_process() {
    process::run();
}

#[test]
fn a_name_that_anybody_may_take_keeps_no_agent_from_starting() {
    if !root() {
        return;
    }
    let _alone = ONE_AT_A_TIME.lock();
    let (a, _b) = two_hosts();
    let taken = a.run(|| {
        let index = nix::net::if_::if_nametoindex("last").expect("it is there");
        let name = |name: &str| std::os::unix::net::SocketAddr::from_abstract_name(format!("lasthop-{name}/{index}"));
        ["agent", "reporter"].map(|who| UnixDatagram::bind_addr(&name(who).expect("a name")).expect("free"))
    });
    let agent = AgentProcess::start(&a, Mode::Control, FIXED);
    agent.stop();
    drop(taken);
}

#[test]
fn a_second_agent_that_would_control_is_told_who_does_and_a_killed_one_is_in_nobody_s_way() {
    if !root() {
        return;
    }
    let _alone = ONE_AT_A_TIME.lock();
    let (a, _b) = two_hosts();
    let mut first = AgentProcess::start(&a, Mode::Control, FIXED);
    let said = AgentProcess::refused(&a, Mode::Control, FIXED);
    let expected = format!("another agent (process {}) controls last already: stop it first", first.process.id());
    assert!(said.contains(&expected), "{said}");
    // One that changes nothing may run beside it, and so may one that is told that it is alone.
    AgentProcess::start(&a, Mode::Advise, FIXED).stop();
    first.signal(nix::sys::signal::Signal::SIGKILL);
    first.process.wait().expect("it is dead");
    let next = AgentProcess::start(&a, Mode::Control, FIXED);
    let namespace = a.run(|| std::fs::metadata("/proc/thread-self/ns/net").expect("/proc"));
    next.stop();
    let inode = std::os::unix::fs::MetadataExt::ino(&namespace).to_string();
    let left = std::fs::read_dir("/run/lasthop").expect("it was made").flatten();
    let left: Vec<_> = left.filter(|file| file.file_name().to_string_lossy().contains(&inode)).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// A socket of somebody else's on the agents' port.
fn squat(host: &Host, at: SocketAddr, shared: bool) -> OwnedFd {
    host.run(move || {
        let family = if at.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
        let taken = socket(family, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None).expect("a socket");
        setsockopt(&taken, sockopt::ReuseAddr, &shared).expect("anybody may");
        match at {
            SocketAddr::V4(at) => bind(taken.as_raw_fd(), &SockaddrIn::from(at)),
            SocketAddr::V6(at) => {
                setsockopt(&taken, sockopt::Ipv6V6Only, &true).expect("anybody may");
                bind(taken.as_raw_fd(), &SockaddrIn6::from(at))
            }
        }
        .expect("free");
        taken
    })
}

fn hear_each_other(squatter: SocketAddr, shared: bool) -> String {
    let (a, b) = two_hosts();
    let taken = squat(&a, squatter, shared);
    let mut of_b = config("last", "none");
    (of_b.beacon.ipv4, of_b.beacon.ipv6) = (squatter.is_ipv4(), squatter.is_ipv6());
    let peer = Running::start_on(&b, of_b, fake(Vec::new()));
    let families = format!("[beacon]\nipv4 = {}\nipv6 = {}\n", squatter.is_ipv4(), squatter.is_ipv6());
    let agent = AgentProcess::start(&a, Mode::Advise, &families);
    agent.wait_for_tick("the peer to be heard", |tick| tick.beacons.heard > 2);
    peer.wait_for_tick("the agent to be heard", |tick| tick.beacons.heard > 2);
    let log = agent.log();
    let totals = agent.stop();
    assert!(totals.rejected_by_cause.is_empty(), "{totals}");
    drop(taken);
    log
}

#[test]
fn a_port_that_somebody_has_taken_makes_the_agent_neither_deaf_nor_mute_and_he_is_named() {
    if !root() {
        return;
    }
    let _alone = ONE_AT_A_TIME.lock();
    let any =
        |port| [SocketAddrV4::new([0, 0, 0, 0].into(), port).into(), SocketAddr::from((Ipv6Addr::UNSPECIFIED, port))];
    for squatter in any(29470) {
        let log = hear_each_other(squatter, false);
        let expected = format!("UDP port 29470 is taken by process {} (", std::process::id());
        assert!(log.contains(&expected), "{log}");
    }
}

#[test]
fn broadcasts_to_other_ports_do_not_wake_an_agent_whose_port_is_taken() {
    if !root() {
        return;
    }
    let _alone = ONE_AT_A_TIME.lock();
    let (a, b) = two_hosts();
    let taken = squat(&a, SocketAddrV4::new([0, 0, 0, 0].into(), 29470).into(), false);
    let agent = AgentProcess::start(&a, Mode::Observe, "[beacon]\nipv6 = false\n");
    let waits = || -> u64 {
        let threads = std::fs::read_dir(format!("/proc/{}/task", agent.process.id())).expect("it runs").flatten();
        let waits = threads.map(|thread| {
            let status = std::fs::read_to_string(thread.path().join("status")).expect("it runs");
            let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            line.expect("Linux says so").trim().parse::<u64>().expect("a number")
        });
        waits.sum()
    };
    let before = waits();
    b.run(|| {
        let socket = std::net::UdpSocket::bind("10.77.0.2:0").expect("an address");
        socket.set_broadcast(true).expect("allowed");
        for _ in 0..2000 {
            socket.send_to(b"not for the agents", "10.77.0.255:29471").expect("the link is up");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    });
    // Ticks, looks at the interface and the threads that write: some 10 a second.
    let woken = waits() - before;
    assert!(woken < 500, "{woken} times");
    drop(taken);
}

#[test]
fn a_socket_that_shares_the_port_takes_no_beacons_from_the_agent() {
    if !root() {
        return;
    }
    let _alone = ONE_AT_A_TIME.lock();
    let broadcast = SocketAddrV4::new([10, 77, 0, 255].into(), 29470).into();
    let any = SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, 29470, 0, 0).into();
    for squatter in [broadcast, any] {
        let log = hear_each_other(squatter, true);
        assert!(!log.contains("is taken by"), "{log}");
    }
}

#[test]
fn a_record_whose_reader_stalls_costs_lines_and_no_memory() {
    if !root() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let fifo = folder.path().join("record");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).expect("made");
    // Open for reading and writing, which waits for nobody; and never read until the end.
    let reader = std::fs::OpenOptions::new().read(true).write(true).open(&fifo).expect("ours");
    let host = Host::new();
    host.ip("link add last type veth peer name other");
    // 400 connections take some 500 bytes each in the line of a tick, twenty times a second: 4 MiB are full in a second.
    let samples = (1..=400).map(|cookie| common::sample(cookie, 100, 100)).collect();
    let mut config = config("last", "none");
    config.record = Some(fifo);
    let tcp = fake(samples);
    let agent = Running::start_on(&host, config, tcp.clone());
    let asked = || tcp.lock().expect("no panic").asked;
    let rss_kib = || {
        let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("Linux says so");
        line.split_whitespace().next().expect("a number").parse::<u64>().expect("in KiB")
    };
    wait_for("the queue to be full", || (asked() > 40).then_some(()));
    // Without a bound in bytes 100 ticks would take 20 MB, each time. The other tests of this process take some too.
    let grown_kib = [140, 240].map(|ticks| {
        let before_kib = rss_kib();
        wait_for("100 more ticks", || (asked() > ticks).then_some(()));
        rss_kib().saturating_sub(before_kib)
    });
    assert!(grown_kib.iter().any(|grown| *grown < 10_000), "{grown_kib:?} KiB");
    let (summary, _) = agent.stop();
    let totals = summary.expect("a clean stop");
    assert!(totals.lines_left_out > 90, "{totals:?}");
    drop(reader);
}
