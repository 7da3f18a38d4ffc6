//! Paths of the hosts' own: round-trip times that differ from host to host and change in time.

use crate::common::{access_point, hosts, packet, run, us};
use lasthop_network::random::Streams;
use lasthop_network::{
    AccessConfig, Config, Delivery, Destination, HostPath, Impairments, Network, Packet, PathConfig, QueueConfig,
    WiredAccessConfig,
};
use lasthop_units::{Probability, Rate, Span, Time};
use proptest::prelude::*;
use rand::Rng;

const MS: Span = Span::from_millis(1);

/// So many hosts behind 1 Gb/s (1500 B in 12 us), a path of 12 Mb/s (1500 B in 1 ms) and 100 ms, and these round trips.
fn config(own: &[Option<HostPath>]) -> Config {
    let queue = QueueConfig::fifo(1000);
    let access = WiredAccessConfig { rate: Rate::from_mbps(1000.0), delay: Span::ZERO, queue };
    let path = PathConfig {
        rtt: MS * 100,
        rate: Rate::from_mbps(12.0),
        loss: Probability::ZERO,
        queue_packets: 1000,
        back_loss: Probability::ZERO,
        impairments: [Impairments::NONE; 2],
    };
    let mut hosts = hosts(own.len(), 1000);
    hosts.iter_mut().zip(own).for_each(|(host, path)| host.path = *path);
    access_point(hosts, AccessConfig::Wired(access), path)
}

fn path(shortest: Span, longest: Span, change_every: Span) -> Option<HostPath> {
    Some(HostPath { rtt: (shortest, longest), change_every })
}

fn arrivals(deliveries: &[Delivery<u32>]) -> Vec<(Time, u32)> {
    deliveries.iter().map(|delivery| (delivery.at, delivery.packet.payload)).collect()
}

#[test]
fn each_host_has_its_own_delay_and_all_share_the_paths_rate() {
    let config = config(&[path(MS * 41, MS * 41, Span::ZERO), None, path(MS * 7, MS * 7, Span::ZERO)]);
    let mut network = Network::new(&config, 1).unwrap();
    for host in 0..3 {
        network.offer(Time::ZERO, packet(host, 3, 1500, u32::from(host))).unwrap();
    }
    // At the access router after 12, 24, 36 us; onto the path one after the other: sent at 1012, 2012, 3012 us. Half of 41,
    // 100 and 7 ms further: 21512, 52012, 6512.
    let received = arrivals(&run(&mut network, us(500_000)));
    assert_eq!(received, [(us(6_512), 2), (us(21_512), 0), (us(52_012), 1)]);
    // Down: 1 ms each, then half of 41, 100 and 7 ms, then 12 us. A broadcast takes the path that all share.
    let start = us(500_000);
    for host in 0..3 {
        network.offer(start, packet(3, host, 1500, u32::from(host))).unwrap();
    }
    network.offer(start, Packet { to: Destination::Broadcast, ..packet(3, 0, 1500, 3) }).unwrap();
    let received = arrivals(&run(&mut network, us(1_000_000)));
    let at = |micros| start + Span::from_micros(micros);
    let broadcast = at(54_012);
    let expected = [(at(6_512), 2), (at(21_512), 0), (at(52_012), 1), (broadcast, 3), (broadcast, 3), (broadcast, 3)];
    assert_eq!(received, expected);
}

#[test]
fn an_odd_nanosecond_goes_back() {
    let odd = Span::from_nanos(2_000_001);
    let mut network = Network::new(&config(&[path(odd, odd, Span::ZERO)]), 1).unwrap();
    network.offer(Time::ZERO, packet(0, 1, 1500, 0)).unwrap();
    assert_eq!(run(&mut network, us(10_000))[0].at, Time::from_nanos(1_012_000 + 1_000_000));
    network.offer(us(10_000), packet(1, 0, 1500, 0)).unwrap();
    assert_eq!(run(&mut network, us(20_000))[0].at, Time::from_nanos(11_000_000 + 1_000_001 + 12_000));
}

#[test]
fn a_round_trip_time_holds_until_it_changes_whatever_was_sent() {
    let config = config(&[None, path(MS * 10, MS * 90, MS * 1000)]);
    let mut network = Network::new(&config, 5).unwrap();
    // The host's stream, by its name: draw k from 80 ms + 1 ns of choices holds from k s on.
    let mut stream = Streams::new(5).stream("path/rtt/1");
    let rtts: Vec<Span> = (0..6)
        .map(|_| MS * 10 + Span::from_nanos(((u128::from(stream.next_u64()) * 80_000_001) >> 64) as u64))
        .collect();
    for (at_ms, draw) in [(0, 0), (900, 0), (999, 1), (3500, 3), (5900, 5)] {
        let start = Time::ZERO + MS * at_ms;
        network.offer(start, packet(1, 2, 1500, 0)).unwrap();
        // 12 us and 1 ms to the end of its sending: offered at 999 ms, it begins its way just past 1 s.
        let expected = start + Span::from_micros(1012) + rtts[draw] / 2;
        assert_eq!(
            run(&mut network, start + MS * 50).iter().map(|delivery| delivery.at).collect::<Vec<_>>(),
            [expected]
        );
    }
}

#[test]
fn a_round_trip_time_that_falls_lets_packets_catch_up_but_not_overtake() {
    // A seed whose second draw is at least 40 ms shorter than the first one: 20 ms one way.
    let draws = |seed| {
        let mut stream = Streams::new(seed).stream("path/rtt/0");
        [0; 2].map(|_| MS * 10 + Span::from_nanos(((u128::from(stream.next_u64()) * 80_000_001) >> 64) as u64))
    };
    let seed = (1..).find(|&seed| draws(seed)[1] + MS * 40 < draws(seed)[0]).unwrap();
    let [long, short] = draws(seed);
    let mut network = Network::new(&config(&[path(MS * 10, MS * 90, MS * 100)]), seed).unwrap();
    for number in 0..40 {
        network.offer(us(90_000 + 1000 * number), packet(0, 1, 1500, number as u32)).unwrap();
    }
    let received = run(&mut network, us(500_000));
    for (number, delivery) in received.iter().enumerate() {
        // Number 8 has been sent at 99.012 ms, number 9 at 100.012 ms.
        let sent = us(91_012 + 1000 * number as u64);
        let last_of_the_long = us(99_012) + long / 2;
        let expected = if number < 9 { sent + long / 2 } else { (sent + short / 2).max(last_of_the_long) };
        assert_eq!((delivery.at, delivery.packet.payload), (expected, number as u32));
    }
    assert_eq!(received[9].at, received[8].at, "they catch up");
}

#[test]
fn an_own_path_for_one_host_moves_no_other_host() {
    let received = |own| {
        let mut network = Network::new(&config(&[own, None]), 1).unwrap();
        for number in 0..100 {
            network.offer(us(1500 * number), packet((number % 2) as u16, 2, 1500, number as u32)).unwrap();
        }
        let received = run(&mut network, us(1_000_000));
        received.into_iter().filter(|delivery| delivery.packet.from.0 == 1).collect::<Vec<_>>()
    };
    assert_eq!(received(None), received(path(MS * 3, MS * 300, MS * 20)));
}

#[test]
fn a_range_that_begins_with_the_longer_one_is_refused() {
    let error = Network::<()>::new(&config(&[None, path(MS * 8, MS * 4, MS)]), 1).unwrap_err();
    assert_eq!(error.to_string(), "hosts[1].path.rtt is 8 ms to 4 ms; accepted: the shorter one, then the longer one");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn each_hosts_packets_stay_in_order_both_ways_and_none_is_lost(
        own in prop::collection::vec(prop::option::of((0..30_000_u64, 0..60_000_u64, 0..40_000_u64)), 1..5),
        offers in prop::collection::vec((0..4_000_u64, any::<u16>(), any::<bool>()), 1..100),
        seed: u64,
        leaps: bool,
    ) {
        let own: Vec<_> = own
            .into_iter()
            .map(|own| own.and_then(|(shortest, more, change)| {
                path(Span::from_micros(shortest), Span::from_micros(shortest + more), Span::from_micros(change))
            }))
            .collect();
        let count = own.len() as u16;
        let mut network = Network::new(&config(&own), seed).unwrap();
        let mut deliveries = Vec::new();
        let mut now = Time::ZERO;
        for (number, &(gap, host, up)) in offers.iter().enumerate() {
            now += Span::from_micros(gap);
            let host = host % count;
            let packet = if up { packet(host, count, 1500, number) } else { packet(count, host, 1500, number) };
            if !leaps {
                network.advance(now, &mut deliveries);
                prop_assert_eq!(deliveries.len() + network.packets_inside(), number);
            }
            network.offer(now, packet).unwrap();
        }
        network.advance(now + Span::from_secs(10), &mut deliveries);
        prop_assert_eq!((deliveries.len(), network.packets_inside()), (offers.len(), 0));
        prop_assert!(deliveries.is_sorted_by_key(|delivery| delivery.at));
        for host in 0..count {
            let up = deliveries.iter().filter(|delivery| delivery.packet.from.0 == host && delivery.to.0 == count);
            prop_assert!(up.map(|delivery| delivery.packet.payload).is_sorted());
            let down = deliveries.iter().filter(|delivery| delivery.to.0 == host);
            prop_assert!(down.map(|delivery| delivery.packet.payload).is_sorted());
        }
    }
}
