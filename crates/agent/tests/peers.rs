//! Agents that hear each other, and hear nothing else, over a cable between two network namespaces. Needs root.
#![allow(missing_docs)]

use crate::common::{Host, Running, config, fake, join, join_by, root, sample, two_hosts, wait_for, write_key};
use lasthop_agent::{Config, ExitSummary, GROUP, Mode, RELAY_PORT, read_group_key, serve_relay};
use lasthop_status::record::Event;
use std::net::{Ipv6Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn with(ipv4: bool, ipv6: bool) -> Config {
    let mut config = config("last", "formula");
    (config.beacon.ipv4, config.beacon.ipv6) = (ipv4, ipv6);
    config
}

fn busy() -> crate::common::SharedFake {
    fake(vec![sample(7, 100, 100)])
}

/// Both hosts come to know of each other.
fn hear_each_other(a: &Host, a_config: Config, b: &Host, b_config: Config) {
    let a = Running::start_on(a, a_config, busy());
    let b = Running::start_on(b, b_config, busy());
    a.wait_for_tick("a to hear b", |tick| tick.terminals == 2);
    b.wait_for_tick("b to hear a", |tick| tick.terminals == 2);
    for agent in [a, b] {
        let summary = agent.stop().0.expect("a clean stop");
        assert!(summary.beacons.heard > 0 && summary.beacons.sent > 0);
        assert_honest(&summary);
    }
}

/// Nothing was wrong with any beacon. Too many at once there may have been: the agents of these tests speak some 20 times a
/// second over each address family, and one that gets no CPU for a while finds all that came meanwhile together.
fn assert_honest(summary: &ExitSummary) {
    assert!(summary.rejected_by_cause.keys().all(|cause| cause == "peer-rate"), "{:?}", summary.rejected_by_cause);
}

/// Each of the hosts hears that the other one sends, and does not believe it.
fn reject_each_other(a: &Host, a_config: Config, b: &Host, b_config: Config, causes: [&str; 2]) {
    let agents = [Running::start_on(a, a_config, busy()), Running::start_on(b, b_config, busy())];
    for agent in &agents {
        let tick = agent.wait_for_tick("some beacons to be rejected", |tick| tick.beacons.rejected >= 3);
        assert_eq!((tick.terminals, tick.beacons.heard), (1, 0));
    }
    for (agent, cause) in agents.into_iter().zip(causes) {
        let summary = agent.stop().0.expect("a clean stop");
        assert_eq!(summary.rejected_by_cause.keys().map(String::as_str).collect::<Vec<_>>(), [cause]);
    }
}

#[test]
fn peers_hear_each_other_over_ipv4_broadcast() {
    if root() {
        let (a, b) = two_hosts();
        hear_each_other(&a, with(true, false), &b, with(true, false));
    }
}

#[test]
fn peers_hear_each_other_over_ipv6_multicast() {
    if root() {
        let (a, b) = two_hosts();
        hear_each_other(&a, with(false, true), &b, with(false, true));
    }
}

#[test]
fn a_peer_heard_over_both_counts_once() {
    if root() {
        let (a, b) = two_hosts();
        hear_each_other(&a, with(true, true), &b, with(true, true));
        let a = Running::start_on(&a, with(true, true), busy());
        let b = Running::start_on(&b, with(true, true), busy());
        a.wait_for_tick("sixty beacons", |tick| tick.beacons.heard >= 60 && tick.terminals == 2);
        drop(b);
        let (_, events) = a.stop();
        assert!(events.iter().all(|event| !matches!(event, Event::Tick(tick) if tick.terminals > 2)));
    }
}

fn keyed(folder: &Path, name: &str, secret: Option<&str>) -> Config {
    let mut config = with(true, false);
    if let Some(secret) = secret {
        let file = folder.join(name);
        crate::common::write_key(&file, secret);
        config.beacon.group_key_file = Some(file);
    }
    config
}

#[test]
fn hosts_with_the_same_key_hear_each_other_and_others_are_rejected() {
    if !root() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let ours = || keyed(folder.path(), "ours", Some("the secret of our group\n"));
    let theirs = || keyed(folder.path(), "theirs", Some("the secret of their group\n"));
    let none = || keyed(folder.path(), "", None);
    let (a, b) = two_hosts();
    hear_each_other(&a, ours(), &b, ours());
    reject_each_other(&a, ours(), &b, theirs(), ["tag", "tag"]);
    reject_each_other(&a, ours(), &b, none(), ["unauthenticated", "no-key"]);
}

#[test]
fn random_bytes_are_counted_and_ignored() {
    if !root() {
        return;
    }
    let (a, b) = two_hosts();
    let agent = Running::start_on(&a, with(true, false), busy());
    agent.wait_for_tick("its sockets", |tick| tick.beacons.sent > 0);
    // A few at a time: an agent that gets no CPU meanwhile has room for some 250.
    for some in 0..10 {
        b.run(move || {
            let socket = UdpSocket::bind("10.77.0.2:0").expect("an address");
            socket.set_broadcast(true).expect("allowed");
            for length in 20 * some..20 * (some + 1) {
                let noise: Vec<u8> = (0..length).map(|at| rand_byte(length, at)).collect();
                socket.send_to(&noise, "10.77.0.255:29470").expect("sent");
            }
        });
        let sent = 20 * (some as u64 + 1);
        let tick = agent.wait_for_tick("the datagrams to be rejected", |tick| tick.beacons.rejected == sent);
        assert_eq!((tick.terminals, tick.beacons.heard), (1, 0));
    }
    let summary = agent.stop().0.expect("a clean stop");
    assert_eq!(summary.rejected_by_cause["length"] + summary.rejected_by_cause["magic"], 200);
}

/// Noise that is the same in each run (splitmix64).
fn rand_byte(length: usize, at: usize) -> u8 {
    let mut z = ((length * 1000 + at) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (z >> 32) as u8
}

#[test]
fn a_flood_is_survived_and_an_honest_peer_heard_again_after_it() {
    if !root() {
        return;
    }
    let (a, b) = two_hosts();
    let agent = Running::start_on(&a, with(true, false), busy());
    agent.wait_for_tick("its sockets", |tick| tick.beacons.sent > 0);
    // It lasts until it is seen: on a busy machine a short one may be over before the agent has run. How many a second
    // arrive, and so whether they are more than are looked at, is up to the machine: the limit itself is tested in
    // virtual time, in lasthop_peers and in lasthop_agent::hearing.
    let over = Arc::new(AtomicBool::new(false));
    let flood = b.run({
        let over = Arc::clone(&over);
        move || {
            std::thread::spawn(move || {
                let socket = UdpSocket::bind("10.77.0.2:0").expect("an address");
                socket.set_broadcast(true).expect("allowed");
                while !over.load(Ordering::Relaxed) {
                    // At most 30,000 a second, fifteen times what is looked at: it need not starve the other tests.
                    for _ in 0..300 {
                        let _ = socket.send_to(b"LHOP and so on", "10.77.0.255:29470");
                    }
                    std::thread::sleep(std::time::Duration::from_millis(10));
                }
            })
        }
    });
    let tick = agent.wait_for_tick("a tick in the flood", |tick| tick.beacons.rejected > 2000);
    assert_eq!((tick.terminals, tick.beacons.heard), (1, 0));
    agent.wait_for_tick("another one", |later| later.beacons.rejected > tick.beacons.rejected);
    over.store(true, Ordering::Relaxed);
    flood.join().expect("no panic");
    let honest = Running::start_on(&b, with(true, false), busy());
    agent.wait_for_tick("the peer", |tick| tick.terminals == 2);
    drop(honest);
    let summary = agent.stop().0.expect("a clean stop");
    // It begins like a beacon, and its version is a space.
    assert!(summary.rejected_by_cause["version"] > 0, "{summary}");
    let known = |cause: &String| ["version", "total-rate", "peer-rate"].contains(&cause.as_str());
    assert!(summary.rejected_by_cause.keys().all(known), "{summary}");
    assert!(summary.beacons.heard > 0, "{summary}");
}

#[test]
fn what_is_sent_to_the_host_alone_is_not_heard() {
    if !root() {
        return;
    }
    let (a, b) = two_hosts();
    let agent = Running::start_on(&a, with(true, true), busy());
    agent.wait_for_tick("its sockets", |tick| tick.beacons.sent > 0);
    b.run(|| {
        let socket = UdpSocket::bind("10.77.0.2:0").expect("an address");
        for _ in 0..20 {
            let _ = socket.send_to(b"to you alone", "10.77.0.1:29470"); // refused, but for the first
        }
        socket.set_broadcast(true).expect("allowed");
        socket.send_to(b"to all", "10.77.0.255:29470").expect("sent");
    });
    let tick = agent.wait_for_tick("the one to all", |tick| tick.beacons.rejected > 0);
    assert_eq!(tick.beacons.rejected, 1);
}

#[test]
fn an_agent_does_not_hear_itself() {
    if !root() {
        return;
    }
    let (a, _b) = two_hosts();
    let agent = Running::start_on(&a, with(true, true), busy());
    let tick = agent.wait_for_tick("some beacons", |tick| tick.beacons.sent >= 8);
    assert_eq!((tick.terminals, tick.beacons.heard, tick.beacons.rejected), (1, 0, 0));
}

#[test]
fn a_host_that_cannot_see_its_connections_does_not_say_that_they_are_busy() {
    if !root() {
        return;
    }
    let (a, b) = two_hosts();
    let tcp = busy();
    let agent = Running::start_on(&a, with(true, false), tcp.clone());
    let peer = Running::start_on(&b, with(true, false), busy());
    peer.wait_for_tick("the agent", |tick| tick.terminals == 2);
    tcp.lock().expect("no panic").fails = true;
    let heard = peer.wait_for_tick("the agent to say nothing of connections", |tick| tick.terminals == 1).beacons.heard;
    // It is heard all the same.
    peer.wait_for_tick("more beacons", |tick| tick.beacons.heard >= heard + 5);
    agent.stop().0.expect("a clean stop");
}

#[test]
fn an_interface_that_goes_down_and_up_again_is_waited_for() {
    if !root() {
        return;
    }
    let (a, b) = two_hosts();
    let agent = Running::start_on(&a, with(true, true), busy());
    let peer = Running::start_on(&b, with(true, true), busy());
    agent.wait_for_tick("the peer", |tick| tick.terminals == 2);
    a.ip("link set last down");
    agent.wait_for_tick("the peer to be forgotten", |tick| tick.terminals == 1);
    a.ip("link set last up");
    agent.wait_for_tick("the peer again", |tick| tick.terminals == 2);
    drop(peer);
    agent.stop().0.expect("a clean stop");
}

#[test]
fn an_interface_without_an_address_gets_one_later() {
    if !root() {
        return;
    }
    let (a, b) = two_hosts();
    a.ip("address flush dev last");
    let agent = Running::start_on(&a, with(true, false), busy());
    let peer = Running::start_on(&b, with(true, false), busy());
    agent.wait_for_tick("a tick", |tick| tick.terminals == 1 && tick.beacons.sent == 0);
    a.ip("address add 10.77.0.1/24 dev last");
    agent.wait_for_tick("the peer", |tick| tick.terminals == 2);
    drop(peer);
}

#[test]
fn an_interface_that_is_replaced_gets_the_programs_anew() {
    if !root() {
        return;
    }
    let (a, b) = two_hosts();
    let tcp = busy();
    let agent = Running::start_on(&a, with(true, false), tcp.clone());
    let peer = Running::start_on(&b, with(true, false), busy());
    agent.wait_for_tick("the peer", |tick| tick.terminals == 2);
    a.ip("link delete last");
    join(&a, &b);
    wait_for("the programs to be loaded twice", || (tcp.lock().expect("no panic").loaded_for.len() == 2).then_some(()));
    agent.wait_for_tick("the peer again", |tick| tick.terminals == 2);
    agent.stop().0.expect("a clean stop");
    let tcp = tcp.lock().expect("the agent is gone");
    assert_eq!((tcp.adoptions, tcp.dropped), (2, 2));
    drop(peer);
}

#[test]
fn a_configuration_that_is_read_while_the_interface_is_gone_holds_once_it_is_back() {
    if !root() {
        return;
    }
    let (a, b) = two_hosts();
    let tcp = busy();
    let agent = Running::start_on(&a, with(true, false), tcp.clone());
    agent.wait_for_tick("a tick", |_| true);
    a.ip("link delete last");
    let mut advising = with(true, false);
    advising.mode = Mode::Advise;
    agent.reload(Ok(advising));
    join(&a, &b);
    let modes = || tcp.lock().expect("no panic").loaded_for.iter().map(|(_, mode)| *mode).collect::<Vec<_>>();
    wait_for("the programs of the new mode", || (modes() == [Mode::Control, Mode::Advise]).then_some(()));
    agent.stop().0.expect("a clean stop");
}

#[test]
fn without_a_name_the_interface_of_the_default_route_is_taken() {
    if !root() {
        return;
    }
    let (a, _b) = two_hosts();
    let mut unnamed = with(true, false);
    unnamed.interface = None;
    let (summary, _) = Running::start_on(&a, unnamed.clone(), busy()).stop();
    let error = summary.expect_err("there is no default route").in_a_line().to_string();
    assert!(error.contains("--interface"), "{error}");
    a.ip("route add default via 10.77.0.2");
    let tcp = busy();
    let agent = Running::start_on(&a, unnamed, tcp.clone());
    agent.wait_for_tick("a tick", |_| true);
    assert_eq!(tcp.lock().expect("no panic").loaded_for[0].0, "last");
}

#[test]
fn the_group_is_reached_by_a_plain_socket_too() {
    if !root() {
        return;
    }
    let (a, b) = two_hosts();
    let agent = Running::start_on(&a, with(false, true), busy());
    agent.wait_for_tick("IPv6 to come up", |tick| tick.beacons.sent > 0);
    b.run(|| {
        let index = nix::net::if_::if_nametoindex("last").expect("it is there");
        let group = SocketAddr::from(std::net::SocketAddrV6::new(GROUP, 29470, 0, index));
        let socket = UdpSocket::bind("[::]:0").expect("an address");
        wait_for("IPv6 to come up", || socket.send_to(b"hello", group).ok());
    });
    agent.wait_for_tick("the datagram", |tick| tick.beacons.rejected > 0);
}

/// How many packets have come over the interface `last` of this host, of any kind.
fn arrived(host: &Host) -> u64 {
    host.run(|| {
        let count = |line: &str| line.split_whitespace().nth(1).and_then(|packets| packets.parse().ok());
        let counters = std::fs::read_to_string("/proc/thread-self/net/dev").expect("Linux counts");
        let line = counters.lines().find_map(|line| line.trim().strip_prefix("last:").map(str::to_owned));
        // bytes, packets, ...
        line.as_deref().and_then(count).expect("packets")
    })
}

#[test]
fn who_only_observes_hears_the_others_and_sends_nothing() {
    if !root() {
        return;
    }
    let (a, b) = two_hosts();
    let observe = Config { mode: Mode::Observe, ..with(true, true) };
    // Without addresses of IPv6 nobody's kernel has anything to say of its own.
    for host in [&a, &b] {
        host.run(|| std::fs::write("/proc/sys/net/ipv6/conf/last/disable_ipv6", "1").expect("it is ours"));
    }
    let speaks = Running::start_on(&b, with(true, false), busy());
    speaks.wait_for_tick("a beacon", |tick| tick.beacons.sent > 0);
    let before = arrived(&b);
    let observes = Running::start_on(&a, observe, busy());
    observes.wait_for_tick("some beacons", |tick| tick.beacons.heard >= 10 && tick.terminals == 2);
    let status = observes.status();
    assert_eq!((status.peers, status.authenticated), (1, false));
    assert_eq!(arrived(&b), before, "packets from the one that only observes");
    let summary = observes.stop().0.expect("a clean stop");
    assert_eq!((summary.beacons.sent, summary.beacons.unsent), (0, 0));
    assert_eq!(speaks.stop().0.expect("a clean stop").beacons.heard, 0);
}

#[test]
fn who_is_to_control_from_now_on_is_heard_from_now_on() {
    if !root() {
        return;
    }
    let (a, b) = two_hosts();
    let observes = Running::start_on(&a, Config { mode: Mode::Observe, ..with(true, true) }, busy());
    let speaks = Running::start_on(&b, with(true, true), busy());
    observes.wait_for_tick("a beacon of the other one", |tick| tick.beacons.heard > 0);
    assert_eq!(speaks.wait_for_tick("a tick", |_| true).terminals, 1);
    observes.reload(Ok(with(true, true)));
    speaks.wait_for_tick("the one that controls now", |tick| tick.terminals == 2);
    observes.wait_for_tick("a beacon of its own", |tick| tick.beacons.sent > 0);
}

/// Three hosts on three cables, so that none hears another, and a relay at the other ends. The third has another key.
#[test]
fn hosts_that_cannot_hear_each_other_do_so_by_a_relay() {
    if !root() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let keyed = |host: u8, secret: &str| {
        let mut config = config("last", "formula");
        let file = folder.path().join(format!("key-{host}"));
        write_key(&file, secret);
        config.beacon.group = Some("guests".to_owned());
        config.beacon.group_key_file = Some(file);
        config.beacon.relay = Some(SocketAddr::from(([10, 77, host, 254], RELAY_PORT)));
        config
    };
    let relay = Host::new();
    let hosts = [1, 2, 3].map(|host: u8| {
        let one = Host::new();
        join_by(&relay, &format!("to-{host}"), &format!("10.77.{host}.254/24"), &one, &format!("10.77.{host}.1/24"));
        one
    });
    let configs = [
        keyed(1, "the secret of our group\n"),
        keyed(2, "the secret of our group\n"),
        keyed(3, "another secret of a group\n"),
    ];
    let key = read_group_key(configs[0].beacon.group_key_file.as_deref().expect("it has one")).expect("a key");
    let stop = Arc::new(AtomicBool::new(false));
    let serving = {
        let stop = Arc::clone(&stop);
        let socket = relay.run(|| UdpSocket::bind((Ipv6Addr::UNSPECIFIED, RELAY_PORT)).expect("a free port"));
        std::thread::spawn(move || serve_relay(&socket, key, &stop, |_| {}).expect("it receives"))
    };
    let [a, b, stranger] = {
        let mut configs = configs.into_iter();
        hosts.each_ref().map(|host| Running::start_on(host, configs.next().expect("one each"), busy()))
    };
    a.wait_for_tick("a to hear b", |tick| tick.terminals == 2);
    b.wait_for_tick("b to hear a", |tick| tick.terminals == 2);
    let alone = stranger.wait_for_tick("some time", |tick| tick.beacons.sent > 10);
    assert_eq!((alone.terminals, alone.beacons.heard), (1, 0));
    let heard = |agent: &Running| agent.status().relay.expect("one is configured").heard_s;
    assert!(heard(&a).is_some() && heard(&stranger).is_none());
    for agent in [a, b] {
        assert_honest(&agent.stop().0.expect("a clean stop"));
    }
    stranger.stop().0.expect("a clean stop");
    stop.store(true, Ordering::Relaxed);
    let relayed = serving.join().expect("no panic");
    assert!(relayed.sent > 0 && relayed.refused.len() == 1, "{relayed:?}");
}
