//! Every lost packet is counted at its place and for its cause; queues are measured over time.

use crate::common::{access_point, hosts, instant_path, packet, run, us, wifi};
use lasthop_network::{
    AccessConfig, Cause, Config, Destination, Drops, Network, NodeId, Packet, PathConfig, QueueConfig, QueueId,
    Standard, WifiConfig, WiredAccessConfig,
};
use lasthop_units::{Bytes, Ecn, Probability, Rate, Span, Time};

fn wired(count: usize, queue_packets: usize, path: PathConfig) -> Config {
    // 1500 B in 120 us, that is 100 Mb/s.
    let access = WiredAccessConfig { rate: Rate::from_mbps(100.0), delay: Span::ZERO, queue: QueueConfig::fifo(20) };
    access_point(hosts(count, queue_packets), AccessConfig::Wired(access), path)
}

fn broadcast(from: u16, bytes: u64) -> Packet<()> {
    Packet {
        from: NodeId(from),
        to: Destination::Broadcast,
        size: Bytes::new(bytes),
        flow: 0,
        dscp: 0,
        ecn: Ecn::NotEct,
        id: 0,
        payload: (),
    }
}

#[test]
fn a_full_transmit_queue_gives_the_packet_back_and_counts_it() {
    let mut network = Network::new(&wifi(2, 4, WifiConfig::new(Standard::G)), 1).unwrap();
    let results: Vec<_> = (0..6).map(|_| network.offer(Time::ZERO, packet(0, 2, 1500, ())).is_ok()).collect();
    assert_eq!(results, [true, true, true, true, false, false]);
    assert_eq!((network.room(NodeId(0)), network.room(NodeId(1))), (0, 4));
    let here = QueueId::Host(NodeId(0));
    assert_eq!(network.statistics(us(0)).drops, [Drops { place: here, cause: Cause::QueueFull, count: 2 }]);
    assert_eq!(run(&mut network, us(10_000)).len(), 4);
}

#[test]
fn packets_for_a_slow_medium_are_lost_at_the_access_point() {
    // 30 packets come over the path in 3.6 us; the first one is on the air, 9 wait, 20 are lost.
    let config = wifi(1, 4, WifiConfig { access_point_queue: QueueConfig::fifo(10), ..WifiConfig::new(Standard::G) });
    let mut network = Network::new(&config, 1).unwrap();
    for _ in 0..30 {
        network.offer(Time::ZERO, packet(1, 0, 1500, ())).unwrap();
    }
    assert_eq!(run(&mut network, us(100_000)).len(), 10);
    let drops = network.statistics(us(100_000)).drops;
    assert_eq!(drops, [Drops { place: QueueId::AccessPoint, cause: Cause::QueueFull, count: 20 }]);
}

#[test]
fn packets_for_a_slow_path_are_lost_in_front_of_it() {
    // Up: 10 Mb/s behind 100 Mb/s, 1200 us each. When packet k comes, at 120 k us, (k - 1) / 10 have been sent. The 5 places
    // are taken until the first is sent at 120 + 1200 us = packet 11's arrival, which counts as just before it (the access
    // goes first), so 11 is lost and 12 gets in: 1-5, 12 of the first 20.
    let path = PathConfig { rate: Rate::from_mbps(10.0), queue_packets: 5, ..instant_path() };
    let mut network = Network::new(&wired(1, 20, path.clone()), 1).unwrap();
    for _ in 0..20 {
        network.offer(Time::ZERO, packet(0, 1, 1500, ())).unwrap();
    }
    assert_eq!(run(&mut network, us(100_000)).len(), 6);
    assert_eq!(network.statistics(us(100_000)).dropped(QueueId::PathUp, Cause::QueueFull), 14);
    // Down: the same queue is the server's transmit queue.
    let mut network = Network::new(&wired(1, 20, path), 1).unwrap();
    let accepted = (0..20).filter(|_| network.offer(Time::ZERO, packet(1, 0, 1500, ())).is_ok()).count();
    assert_eq!((accepted, network.room(NodeId(1))), (5, 0));
    assert_eq!(network.statistics(us(0)).dropped(QueueId::PathDown, Cause::QueueFull), 15);
}

#[test]
fn what_comes_down_the_path_when_the_access_has_just_sent_finds_room() {
    // Down the path at 10 Mb/s: packet k is there at 1200 k us. Over the access at 5 Mb/s 2400 us each, room for 2: packet 1 until
    // 3600, when 3 comes and gets in; 4 comes at 4800, too early; 2 until 6000, when 5 comes; then each second one.
    let path = PathConfig { rate: Rate::from_mbps(10.0), ..instant_path() };
    let access = WiredAccessConfig { rate: Rate::from_mbps(5.0), delay: Span::ZERO, queue: QueueConfig::fifo(2) };
    let mut network = Network::new(&access_point(hosts(1, 10), AccessConfig::Wired(access), path), 1).unwrap();
    for number in 1..=10 {
        network.offer(Time::ZERO, packet(1, 0, 1500, number)).unwrap();
    }
    let received: Vec<_> = run(&mut network, us(100_000)).iter().map(|delivery| delivery.packet.payload).collect();
    assert_eq!(received, [1, 2, 3, 5, 7, 9]);
}

#[test]
fn the_path_loses_at_random_towards_the_server_only() {
    let path = PathConfig { loss: Probability::new(0.1).unwrap(), queue_packets: 10_000, ..instant_path() };
    let mut network = Network::new(&wired(1, 10_000, path), 1).unwrap();
    for _ in 0..10_000 {
        network.offer(Time::ZERO, packet(0, 1, 1500, ())).unwrap();
        network.offer(Time::ZERO, packet(1, 0, 40, ())).unwrap();
    }
    let end = us(10_000_000);
    let received = run(&mut network, end);
    let lost = network.statistics(end).dropped(QueueId::PathUp, Cause::RandomLoss);
    // Binomial(10000, 0.1): mean 1000, standard deviation 30; five of them.
    assert!((850..=1150).contains(&lost), "{lost}");
    let up = received.iter().filter(|delivery| delivery.to == NodeId(1)).count() as u64;
    assert_eq!(up + lost, 10_000);
}

#[test]
fn a_broadcast_with_errors_is_lost_for_those_who_got_it_wrong() {
    let noisy = WifiConfig { frame_error_rate: Probability::new(0.5).unwrap(), ..WifiConfig::new(Standard::G) };
    let mut network = Network::new(&wifi(5, 4, noisy), 1).unwrap();
    let mut received = 0;
    for round in 0..100 {
        network.offer(us(round * 100_000), broadcast(5, 100)).unwrap();
        received += run(&mut network, us(round * 100_000 + 50_000)).len() as u64;
    }
    // From the server, so for all 5: sent once each, no matter how many got it.
    let statistics = network.statistics(us(10_000_000));
    assert_eq!(statistics.broadcasts, 100);
    assert_eq!(received + statistics.dropped(QueueId::AccessPoint, Cause::FrameError), 500);
    // Binomial(500, 0.5): 250, deviation 11.2.
    assert!((194..=306).contains(&received), "{received}");
}

#[test]
fn a_broadcast_that_collides_is_lost_for_all() {
    // The access point's frame gets onto the air 0.008 us (100 B at 100 Gb/s) after the station's: not sensed yet.
    let mut network = Network::new(&wifi(3, 4, WifiConfig::new(Standard::G)), 3).unwrap();
    network.offer(Time::ZERO, packet(0, 3, 1500, ())).unwrap();
    network.offer(Time::ZERO, broadcast(3, 100)).unwrap();
    let received = run(&mut network, us(10_000));
    let statistics = network.statistics(us(10_000));
    assert_eq!((received.len(), statistics.collisions, statistics.retries), (1, 1, 1));
    assert_eq!(statistics.dropped(QueueId::AccessPoint, Cause::Collision), 3);
}

#[test]
fn hosts_behind_a_wired_access_take_turns() {
    let mut network = Network::new(&wired(3, 10, instant_path()), 1).unwrap();
    for (from, count) in [(0, 3), (1, 1), (2, 2)] {
        for _ in 0..count {
            network.offer(Time::ZERO, packet(from, 3, 1500, ())).unwrap();
        }
    }
    network.offer(Time::ZERO, broadcast(1, 1500)).unwrap();
    let received = run(&mut network, us(10_000));
    let servers: Vec<_> = received.iter().filter(|delivery| delivery.to == NodeId(3)).collect();
    let order: Vec<_> = servers.iter().map(|delivery| delivery.packet.from.0).collect();
    assert_eq!(order, [0, 1, 2, 0, 2, 0]);
    assert_eq!(servers[1].at, us(240) + Span::from_nanos(120));
    // The broadcast is the fifth to go up (600 us), comes down at 720.
    let others: Vec<_> = received.iter().filter(|delivery| delivery.to != NodeId(3)).collect();
    assert_eq!(
        others.iter().map(|delivery| (delivery.at, delivery.to.0)).collect::<Vec<_>>(),
        [(us(720), 0), (us(720), 2)]
    );
    // 7 packets of 120 us up in 10 ms.
    assert!((network.statistics(us(10_000)).utilization - 0.084).abs() < 1e-9);
}

#[test]
fn queues_are_measured_over_time_from_the_reset_on() {
    // One packet of 1500 B each way is 120 us on the wire. 2 in the host's queue until 120 us, 1 until 240, then 0.
    let mut network = Network::new(&wired(1, 10, instant_path()), 1).unwrap();
    for _ in 0..2 {
        network.offer(Time::ZERO, packet(0, 1, 1500, ())).unwrap();
    }
    run(&mut network, us(480));
    let queue = network.statistics(us(480)).queue(QueueId::Host(NodeId(0)));
    assert_eq!((queue.mean_packets, queue.p95_packets, queue.max_packets), (0.75, 2, 2));
    network.reset_statistics(us(480));
    let queue = network.statistics(us(960)).queue(QueueId::Host(NodeId(0)));
    assert_eq!((queue.mean_packets, queue.p95_packets, queue.max_packets), (0.0, 0, 0));
    assert_eq!(network.statistics(us(960)).elapsed, Span::from_micros(480));
}
