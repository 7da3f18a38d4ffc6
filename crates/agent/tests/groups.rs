//! Which hosts are peers: those behind the same access point, wherever this host goes. Needs root.
#![allow(missing_docs)]

use crate::common::stranger::Nag;
use crate::common::{Host, Running, SharedFake, config, fake, join_by, root, sample, two_hosts, wait_for};
use lasthop_agent::Config;
use lasthop_laws::bound::Bound;
use lasthop_peers::group::Label;
use lasthop_policy::PolicyName;
use lasthop_status::record::{Event, Tick};
use lasthop_units::Span;

/// Over IPv4, with a name for the access point or without.
fn with(group: Option<&str>) -> Config {
    let mut config = config("last", "formula");
    config.beacon.ipv6 = false;
    config.beacon.group = group.map(str::to_owned);
    config
}

fn busy() -> SharedFake {
    fake(vec![sample(7, 100, 100)])
}

fn peers(count: u32) -> impl Fn(&Tick) -> bool {
    move |tick| tick.terminals == count + 1
}

#[test]
fn hosts_behind_other_access_points_are_heard_and_not_counted() {
    if !root() {
        return;
    }
    let (a, b) = two_hosts();
    let agents =
        [Running::start_on(&a, with(Some("office")), busy()), Running::start_on(&b, with(Some("hall")), busy())];
    for agent in &agents {
        let tick = agent.wait_for_tick("some beacons to be rejected", |tick| tick.beacons.rejected >= 3);
        assert_eq!((tick.terminals, tick.beacons.heard), (1, 0));
    }
    for (agent, group) in agents.into_iter().zip(["name office", "name hall"]) {
        let (summary, events) = agent.stop();
        let causes = summary.expect("a clean stop").rejected_by_cause;
        assert_eq!(causes.keys().map(String::as_str).collect::<Vec<_>>(), ["group"]);
        assert!(matches!(&events[0], Event::Ready(ready) if ready.group.as_deref() == Some(group)));
    }
}

#[test]
fn hosts_with_ipv6_alone_and_with_ipv4_alone_are_peers_of_one_with_both() {
    if !root() {
        return;
    }
    // A hub, and behind it a router that is 10.77.0.254 and fe80::fe.
    let hub = Host::new();
    let host = |number: usize, families: &[&str]| {
        let host = Host::new();
        hub.ip(&format!("link add port{number} up type veth peer name last netns {}", host.namespace()));
        host.ip("link set lo up");
        if !families.contains(&"ipv6") {
            host.ip("link set last addrgenmode none");
        }
        host.ip("link set last up");
        if families.contains(&"ipv4") {
            host.ip(&format!("address add 10.77.0.{number}/24 broadcast + dev last"));
            host.ip("route add default via 10.77.0.254");
        }
        if families.contains(&"ipv6") {
            host.ip("-6 route add default via fe80::fe dev last");
        }
        host
    };
    let hosts = [host(1, &["ipv4", "ipv6"]), host(2, &["ipv6"]), host(3, &["ipv4"]), host(4, &["ipv4", "ipv6"])];
    for port in 1..=4 {
        hub.command("tc", &format!("qdisc add dev port{port} ingress"));
        let others = (1..=4).filter(|other| *other != port);
        let to: String = others.map(|other| format!(" action mirred egress mirror dev port{other}")).collect();
        hub.command("tc", &format!("filter add dev port{port} ingress protocol all u32 match u32 0 0{to}"));
    }
    let agents = hosts.each_ref().map(|host| {
        let mut config = with(None);
        config.beacon.ipv6 = true;
        Running::start_on(host, config, busy())
    });
    // Each of one family alone hears the two with both, and those hear all.
    for (agent, count) in agents.iter().zip([3, 2, 2, 3]) {
        agent.wait_for_tick("its peers", peers(count));
    }
    let groups = ["gateway 10.77.0.254", "gateway fe80::fe", "gateway 10.77.0.254", "gateway 10.77.0.254"];
    for (agent, group) in agents.iter().zip(groups) {
        assert_eq!(agent.status().access_point.as_deref(), Some(group));
    }
    // The router is known by another address more, or no more: nobody has moved.
    hosts[1].ip("address add 10.77.0.2/24 broadcast + dev last");
    hosts[1].ip("route add default via 10.77.0.254");
    agents[1].wait_for_tick("all peers", peers(3));
    let rejected = agents[0].wait_for_tick("a tick", |_| true).beacons.rejected;
    hosts[0].ip("-6 route del default via fe80::fe dev last");
    agents[0].wait_for_tick("an address that it does not know any more", |tick| tick.beacons.rejected > rejected);
    for agent in agents {
        assert_eq!(agent.stop().0.expect("a clean stop").roamed, 0);
    }
}

#[test]
fn a_host_that_roams_forgets_its_peers_and_its_decisions_and_keeps_its_connections() {
    if !root() {
        return;
    }
    for policy in [PolicyName::Formula, PolicyName::Lasthop] {
        let listens = policy != PolicyName::Formula;
        let (a, b) = two_hosts();
        for host in [&a, &b] {
            host.ip("route add default via 10.77.0.254");
        }
        // Its RTT, or with ours a stranger, has put the connection under control; a share is what it gets as long as
        // nobody forgets that.
        let tcp = fake(vec![sample(7, 700, 100)]);
        let mut config = with(None);
        config.policy.policy = policy;
        let roaming = Running::start_on(&a, config, tcp.clone());
        let staying = Running::start_on(&b, with(None), busy());
        // The first beacons may be lost while the link comes up, and then they come seldom: the stranger is not to be taken for it.
        roaming.wait_for_tick("the peer", peers(1));
        let nag = listens.then(|| Nag::start_in(&b, 1, &Label::Gateway([10, 77, 0, 254].into())));
        roaming.wait_for_tick("control", |tick| tick.flows[0].enabled);
        drop(nag);
        tcp.lock().expect("no panic").samples[0].tcp.srtt = Some(Span::from_millis(if listens { 100 } else { 120 }));
        roaming.wait_for_tick("a peer, and a share", |tick| tick.terminals == 2 && tick.flows[0].bound.is_some());
        staying.wait_for_tick("the peer", peers(1));

        a.ip("route replace default via 10.77.0.253");
        // On a busy machine the peer may age out before: what counts is the first tick at the new place.
        let tick = wait_for("a tick at the new place", || {
            let there = roaming.events().into_iter().skip_while(|event| !matches!(event, Event::Joined(_)));
            there.filter_map(|event| if let Event::Tick(tick) = event { Some(tick) } else { None }).next()
        });
        assert_eq!((tick.terminals, tick.flows[0].enabled, tick.flows[0].bound), (1, false, None));
        // The RTTs that TCP still tells are of the old place.
        let reason = &tick.flows[0].reason;
        assert!(listens || *reason == lasthop_policy::Reason::NoRtt.to_string(), "{reason}");
        staying.wait_for_tick("it to be forgotten", peers(0));

        b.ip("route replace default via 10.77.0.253");
        roaming.wait_for_tick("the peer that came after it", peers(1));
        staying.wait_for_tick("the peer", peers(1));
        let (summary, events) = roaming.stop();
        assert_eq!(summary.expect("a clean stop").roamed, 1);
        let joined: Vec<_> = events
            .iter()
            .filter_map(|event| if let Event::Joined(joined) = event { Some(joined) } else { None })
            .collect();
        assert_eq!(joined.iter().map(|joined| joined.group.as_str()).collect::<Vec<_>>(), ["gateway 10.77.0.253"]);
        let tcp = tcp.lock().expect("the agent is gone");
        assert_eq!((tcp.loaded_for.len(), tcp.releases), (1, 1)); // given back at the end, and never before
        assert_eq!(tcp.bounds.iter().filter(|applied| applied.flows == [(7, None)]).count(), 1);
        let conservative = [(7, Some(Bound::at_most(1)))];
        assert!(policy != PolicyName::Formula || tcp.bounds.iter().any(|applied| applied.flows == conservative));
    }
}

#[test]
fn a_gateway_that_goes_with_its_interface_is_no_other_access_point_when_it_comes_back() {
    if !root() {
        return;
    }
    let (a, b) = two_hosts();
    for host in [&a, &b] {
        host.ip("route add default via 10.77.0.254");
    }
    let agent = Running::start_on(&a, with(None), busy());
    let peer = Running::start_on(&b, with(None), busy());
    agent.wait_for_tick("the peer", peers(1));
    a.ip("link set last down"); // takes the route with it
    agent.wait_for_tick("the peer to be forgotten", peers(0));
    let away = wait_for("no access point", || Some(agent.status()).filter(|status| status.access_point.is_none()));
    assert_eq!(away.group.as_deref(), Some("gateway 10.77.0.254"));
    a.run(|| {
        let ip = |arguments: &str| {
            let status = std::process::Command::new("ip").args(arguments.split_whitespace()).status();
            assert!(status.expect("iproute2 is there").success(), "ip {arguments}");
        };
        ip("link set last up");
        ip("route add default via 10.77.0.254");
    });
    agent.wait_for_tick("the peer again", peers(1));
    wait_for("the access point again", || agent.status().access_point.filter(|place| place == "gateway 10.77.0.254"));
    drop(peer);
    let roamed = agent.stop().0.expect("a clean stop").roamed;
    // Should it have looked between the two commands, it was behind no gateway for a moment.
    assert!(roamed == 0 || roamed == 2, "{roamed}");
}

#[test]
fn two_agents_on_two_interfaces_have_the_peers_of_their_own() {
    if !root() {
        return;
    }
    let (a, b, c) = (Host::new(), Host::new(), Host::new());
    join_by(&a, "last", "10.77.0.1/24", &b, "10.77.0.2/24");
    join_by(&a, "other", "10.78.0.1/24", &c, "10.78.0.2/24");
    let on_last = Running::start_on(&a, with(None), busy());
    let on_other = Running::start_on(&a, Config { interface: Some("other".to_owned()), ..with(None) }, busy());
    let b_agent = Running::start_on(&b, with(None), busy());
    for (agent, count) in [(&on_last, 1), (&b_agent, 1), (&on_other, 0)] {
        agent.wait_for_tick("its peers", peers(count));
    }
    let c_agent = Running::start_on(&c, with(None), busy());
    for agent in [&on_last, &on_other, &b_agent, &c_agent] {
        agent.wait_for_tick("its peer", peers(1));
    }
    drop(b_agent);
    on_last.wait_for_tick("its peer to be gone", peers(0));
    on_other.wait_for_tick("its peer still", peers(1));
    for agent in [on_last, on_other] {
        let (summary, events) = agent.stop();
        summary.expect("a clean stop");
        assert!(events.iter().all(|event| !matches!(event, Event::Tick(tick) if tick.terminals > 2)));
    }
}

#[test]
fn beacons_of_which_every_second_is_lost_are_enough() {
    if !root() {
        return;
    }
    // Two cables with a host between that passes beacons on: not all.
    let (a, b, middle) = (Host::new(), Host::new(), Host::new());
    join_by(&middle, "to-a", "10.77.0.3/24", &a, "10.77.0.1/24");
    join_by(&middle, "to-b", "10.78.0.3/24", &b, "10.78.0.2/24");
    let passed = middle.run(|| lossy::pass_on([("to-a", "10.77.0.255:29470"), ("to-b", "10.78.0.255:29470")]));
    let agents = [Running::start_on(&a, with(None), busy()), Running::start_on(&b, with(None), busy())];
    for agent in &agents {
        agent.wait_for_tick("the peer", peers(1));
        agent.wait_for_tick("thirty beacons", |tick| tick.beacons.heard >= 30);
    }
    for agent in agents {
        let (summary, events) = agent.stop();
        assert!(summary.expect("a clean stop").rejected_by_cause.is_empty());
        let ticks =
            events.iter().filter_map(|event| if let Event::Tick(tick) = event { Some(tick.terminals) } else { None });
        let since_heard: Vec<u32> = ticks.skip_while(|terminals| *terminals < 2).collect();
        let there = since_heard.iter().filter(|terminals| **terminals == 2).count();
        // Six in a row are lost once in 64; a machine that gives an agent no CPU for 2 s loses more.
        assert!(there * 10 >= since_heard.len() * 8, "{there} of {}", since_heard.len());
    }
    let (taken, dropped) = passed();
    assert!(dropped * 3 > taken && dropped * 3 < 2 * taken, "{dropped} of {taken} were dropped");
}

mod lossy {
    use nix::sys::socket::{setsockopt, sockopt};
    use std::ffi::OsString;
    use std::net::UdpSocket;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::time::Duration;

    /// Passes on every second datagram that arrives on one of the interfaces, by lot, to the other one's broadcast address. How
    /// many have been taken, and how many of them dropped, when it is asked; then it ends.
    pub(super) fn pass_on(ends: [(&'static str, &'static str); 2]) -> impl FnOnce() -> (u64, u64) + Send {
        let sockets = Arc::new(ends.map(|(interface, broadcast)| {
            let socket = UdpSocket::bind(broadcast).expect("an address");
            setsockopt(&socket, sockopt::BindToDevice, &OsString::from(interface)).expect("allowed");
            socket.set_broadcast(true).expect("allowed");
            socket.set_read_timeout(Some(Duration::from_millis(50))).expect("possible");
            socket
        }));
        let over = Arc::new(AtomicBool::new(false));
        let counts = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
        let threads: Vec<_> = (0..2_usize)
            .map(|from| {
                let (sockets, over, counts) = (Arc::clone(&sockets), Arc::clone(&over), Arc::clone(&counts));
                std::thread::spawn(move || {
                    let (mut buffer, mut lot) = ([0; 128], 7 + from as u64);
                    while !over.load(Ordering::Relaxed) {
                        let Ok((length, sender)) = sockets[from].recv_from(&mut buffer) else { continue };
                        if sender.ip().to_string().ends_with(".3") {
                            continue; // what it has sent itself
                        }
                        // Knuth's MMIX generator; its highest bit.
                        lot = lot.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                        counts[0].fetch_add(1, Ordering::Relaxed);
                        if lot >> 63 == 1 {
                            counts[1].fetch_add(1, Ordering::Relaxed);
                        } else {
                            let _ = sockets[1 - from].send_to(&buffer[..length], ends[1 - from].1);
                        }
                    }
                })
            })
            .collect();
        move || {
            over.store(true, Ordering::Relaxed);
            threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
            (counts[0].load(Ordering::Relaxed), counts[1].load(Ordering::Relaxed))
        }
    }
}
