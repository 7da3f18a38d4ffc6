//! Links that follow the opportunities of a trace: against a plain form of mahimahi's rule, packet by packet.

use crate::common::{access_point, hosts, packet, run, us};
use lasthop_network::{
    AccessConfig, Change, Changed, Config, DirectionChange, DirectionConfig, Impairments, LinkConfig, LinksConfig,
    LossAt, Network, Opportunities, PathConfig, QueueConfig, Topology, Way, WiredAccessConfig,
};
use lasthop_units::{Probability, Rate, Span, Time};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::sync::Arc;

fn opportunities(times_ms: &[u32]) -> Arc<Opportunities> {
    let mut instants: Vec<(u32, u32)> = Vec::new();
    for &at in times_ms {
        match instants.last_mut() {
            Some((last, count)) if *last == at => *count += 1,
            _ => instants.push((at, 1)),
        }
    }
    Arc::new(Opportunities::new(instants, true).expect("a trace"))
}

/// A host on node 0 and a link of 8 Mb/s to node 1, which follows the trace from `at_us` on.
fn link(trace: Arc<Opportunities>, at_us: u64) -> Config {
    let direction = DirectionConfig {
        rate: Rate::from_mbps(8.0),
        delay: Span::ZERO,
        queue: QueueConfig::fifo(100_000),
        loss: Probability::ZERO,
        loss_at: LossAt::AfterQueue,
        impairments: Impairments::NONE,
    };
    let links = vec![LinkConfig { ends: (0, 1), forth: direction, back: direction }];
    let topology = Topology::Links(LinksConfig { nodes: 2, attached: vec![0], links });
    let changes = vec![change(at_us, DirectionChange { opportunities: Some(0), ..DirectionChange::default() })];
    Config { changes, opportunities: vec![trace], ..Config::new(hosts(1, 1), topology) }
}

fn change(at_us: u64, to: DirectionChange) -> Change {
    Change { at: us(at_us), what: Changed::Link { link: 0, way: Way::Forth, to } }
}

/// When these packets, each of a time and a size, leave by `from` and arrive at `to`.
fn departures(config: &Config, (from, to): (u16, u16), packets: &[(Time, u64)]) -> Vec<Time> {
    let mut network = Network::new(config, 1).expect("a network");
    let mut deliveries = Vec::new();
    for (number, &(at, bytes)) in packets.iter().enumerate() {
        network.advance(at, &mut deliveries);
        network.offer(at, packet(from, to, bytes, number)).expect("there is room");
    }
    network.advance(us(1_000_000_000), &mut deliveries);
    assert_eq!(deliveries.len(), packets.len(), "nothing is lost");
    assert!(deliveries.is_sorted_by_key(|delivery| delivery.packet.payload), "and nothing overtakes");
    deliveries.iter().map(|delivery| delivery.at).collect()
}

/// mahimahi's link_queue.cc, `rationalize`, in plain words: at each opportunity 1504 bytes go to the packet in transit, then
/// to those that wait. A packet has the 4 bytes of the TUN device's header.
fn mahimahi(times_ms: &[u32], packets: &[(Time, u64)]) -> Vec<Time> {
    let period = u64::from(*times_ms.last().expect("a time"));
    let mut waiting: VecDeque<(Time, u64)> = packets.iter().map(|&(at, bytes)| (at, bytes + 4)).collect();
    let mut left = Vec::new();
    for round in 0.. {
        for &at in times_ms {
            let at = Time::ZERO + Span::from_millis(round * period + u64::from(at));
            let mut bytes_left = 1504;
            while bytes_left > 0 {
                let Some((arrival, in_transit)) = waiting.front_mut() else { break };
                if *arrival > at {
                    break;
                }
                let sent = bytes_left.min(*in_transit);
                *in_transit -= sent;
                bytes_left -= sent;
                if *in_transit == 0 {
                    left.push(at);
                    waiting.pop_front();
                }
            }
        }
        if waiting.is_empty() {
            break;
        }
    }
    left
}

fn ms(millis: &[u64]) -> Vec<Time> {
    millis.iter().map(|at| Time::ZERO + Span::from_millis(*at)).collect()
}

#[test]
fn small_packets_share_an_opportunity_and_large_ones_span_several() {
    // 7 of 200 + 4 bytes are 1428: the eighth takes 76 of the first and 128 of the second opportunity.
    let config = link(opportunities(&[10, 20, 20, 50]), 0);
    let small = vec![(us(1), 200); 9];
    assert_eq!(departures(&config, (0, 2), &small), ms(&[10, 10, 10, 10, 10, 10, 10, 20, 20]));
    // Full packets take one each; behind the last of 50 ms the trace begins anew.
    assert_eq!(departures(&config, (0, 2), &[(us(1), 1500); 5]), ms(&[10, 20, 20, 50, 60]));
    // 3004 bytes take two, and 1500 bytes the rest of the third and another.
    assert_eq!(departures(&config, (0, 2), &[(us(1), 3010), (us(1), 1500)]), ms(&[20, 50]));
    // What nobody uses is lost, also the rest of one; who comes at its instant may use it.
    let late = [(us(10_001), 100), (us(20_000), 100), (us(20_001), 100), (us(5_000_001), 100)];
    assert_eq!(departures(&config, (0, 2), &late), ms(&[20, 20, 50, 5_010]));
}

/// The case small-packets of issue 37: a packet of 200 bytes each 20 ms, ten opportunities each 200 ms.
#[test]
fn a_call_waits_for_the_opportunities() {
    let config = link(opportunities(&[200; 10]), 0);
    let packets: Vec<_> = (0..1_500).map(|number| (us(20_000 * number), 200)).collect();
    let delays: Vec<f64> = departures(&config, (0, 2), &packets)
        .iter()
        .zip(&packets)
        .map(|(left, (came, _))| (*left - *came).as_millis_f64())
        .collect();
    // 0, 20, .. 180 ms: 90 in the mean. The very first one finds no opportunity at 0.
    let mean = delays[1..1_491].iter().sum::<f64>() / 1_490.0;
    assert!((mean - 90.0).abs() < 1e-9, "{mean}");
    assert_eq!(delays[0], 200.0);
}

#[test]
fn path_and_wired_access_follow_opportunities_both_ways() {
    let queue = QueueConfig::fifo(100);
    let access = WiredAccessConfig { rate: Rate::from_mbps(1000.0), delay: Span::ZERO, queue };
    let path = PathConfig {
        rtt: Span::ZERO,
        rate: Rate::from_mbps(1000.0),
        loss: Probability::ZERO,
        queue_packets: 100,
        back_loss: Probability::ZERO,
        impairments: [Impairments::NONE; 2],
    };
    let config = access_point(hosts(1, 100), AccessConfig::Wired(access), path);
    let (rate, held, opportunities_of) = (None, None, Some(0));
    for what in [
        Changed::Path { rtt: None, rate, loss: None, held, opportunities: opportunities_of },
        Changed::Wired { rate, delay: None, held, opportunities: opportunities_of },
    ] {
        let changes = vec![Change { at: Time::ZERO, what }];
        let config = Config { changes, opportunities: vec![opportunities(&[5, 7])], ..config.clone() };
        for way in [(0, 1), (1, 0)] {
            let left = departures(&config, way, &[(us(1), 1500); 3]);
            // 12 us at 1 Gb/s before or behind.
            let late = left.iter().zip(ms(&[5, 7, 12])).map(|(left, at)| (*left - at).as_micros());
            assert!(late.collect::<Vec<_>>().iter().all(|late| [0, 12].contains(late)), "{what:?} {way:?} {left:?}");
        }
    }
}

#[test]
fn a_rate_ends_the_opportunities_and_they_a_rate_within_a_packet() {
    // 1000 bytes take 1 ms at 8 Mb/s; half of them are left at 500 us. 504 of 1504 bytes leave 3 ms later.
    let config = link(opportunities(&[3]), 500);
    assert_eq!(departures(&config, (0, 2), &[(us(0), 1000); 2]), [us(3_500), us(6_500)]);
    // 3000 bytes and 4: one opportunity at 3.5 ms; 1496 bytes and 4 are left, which are 1.496 ms from 5 ms on.
    let mut config = link(opportunities(&[3]), 500);
    config
        .changes
        .push(change(5_000, DirectionChange { rate: Some(Rate::from_mbps(8.0)), ..DirectionChange::default() }));
    assert_eq!(departures(&config, (0, 2), &[(us(600), 3000), (us(600), 1000)]), [us(6_496), us(7_496)]);
    // Opportunities of a hold are lost.
    let mut config = link(opportunities(&[3]), 0);
    let held = |held| DirectionChange { held: Some(held), ..DirectionChange::default() };
    config.changes.extend([change(4_000, held(true)), change(10_000, held(false))]);
    assert_eq!(departures(&config, (0, 2), &[(us(1), 1500); 3]), ms(&[3, 12, 15]));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_packet_leaves_when_mahimahi_sends_it(
        gaps in prop::collection::vec(prop_oneof![3 => 0..3_u32, 1 => 0..200_u32], 1..60),
        packets in prop::collection::vec((prop_oneof![3 => 0..4_000_u64, 1 => 0..300_000_u64], 28..4000_u64), 1..150),
    ) {
        let times: Vec<u32> = gaps.iter().scan(0, |at, gap| { *at += gap; Some(*at) }).collect();
        prop_assume!(*times.last().unwrap() > 0);
        let packets: Vec<_> = packets
            .into_iter()
            .scan(0, |at, (gap, bytes)| { *at += gap; Some((us(*at), bytes)) })
            .collect();
        prop_assert_eq!(departures(&link(opportunities(&times), 0), (0, 2), &packets), mahimahi(&times, &packets));
    }
}

#[test]
fn a_network_at_rest_has_no_event_of_a_trace() {
    let mut network: Network<()> = Network::new(&link(opportunities(&[1]), 0), 1).expect("a network");
    assert!(run(&mut network, us(1_000_000)).is_empty());
    assert_eq!(network.next_wakeup(), None);
    // The state of the link says its mean rate: 1500 bytes in a millisecond.
    let config = link(opportunities(&[1]), 5).at(us(5));
    let Topology::Links(links) = &config.topology else { unreachable!() };
    assert_eq!(links.links[0].forth.rate, Rate::from_mbps(12.0));
}
