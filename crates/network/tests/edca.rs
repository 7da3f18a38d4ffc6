//! Access categories: timelines to the nanosecond, and what voice gets beside best effort.
//!
//! As in `block_ack.rs`: 802.11n, 20 MHz, MCS 7, slot 9, SIFS 16 us; one packet of 1500 B takes 228 us and its ACK 44
//! with SIFS. Two packets in an A-MPDU take 420 us, and the Block Ack 48. AIFS: best effort 43; voice 34, at the
//! access point 25.

use crate::common::{packet, us, wifi};
use lasthop_network::random::Streams;
use lasthop_network::{Network, NodeId, Packet, QueueConfig, QueueId, Standard, WifiConfig};
use lasthop_units::{Span, Time};
use rand::Rng;

const VOICE: u8 = 46;

/// The pictures below draw on these timers, in slots.
#[test]
fn what_the_seeds_draw() {
    let timers = |seed: u64, name: &str, windows: &[u32]| -> Vec<u32> {
        let mut stream = Streams::new(seed).stream(&format!("wifi/backoff/{name}"));
        windows.iter().map(|window| stream.next_u32() & window).collect()
    };
    assert_eq!(timers(3, "0", &[15, 31]), [1, 3]);
    assert_eq!(timers(3, "1/voice", &[3, 7]), [3, 6]);
    assert_eq!(timers(3, "access-point/voice", &[3]), [2]);
    assert_eq!(timers(3, "access-point", &[15]), [10]);
    assert_eq!((timers(19, "0", &[15, 31]), timers(19, "0/voice", &[3])), (vec![1, 29], vec![2]));
}

fn voice(from: u16, to: u16, name: char) -> Packet<char> {
    Packet { dscp: VOICE, ..packet(from, to, 1500, name) }
}

/// Whole microseconds: what came together leaves the path 120 ns apart.
fn received(network: &mut Network<char>) -> Vec<(u64, char)> {
    let micros = |at: Time| (at - Time::ZERO).as_micros();
    crate::common::run(network, us(1_000_000))
        .iter()
        .map(|delivery| (micros(delivery.at), delivery.packet.payload))
        .collect()
}

/// ```text
///            0   228 272  297   315   543 587    639        867      946     982  1210 1254  1306  1534
///  0 best    |#A#|aaaa|...43...|-(1 left)    |.43.|-|##B######|x|45|.43.|-(3)-|#B##|aaaa|
///  1 voice            |..34..|-(2 left)      |.34.|--|##V#####|x|45|.34.|---(6, 2 left)|..34..|--|#V#|
///  AP voice           |.25.|--|#W#|aaaa|
/// ```
#[test]
fn voice_waits_less_and_draws_less() {
    // B, V and W come while A is on the air, and draw 1, 3 and 2 slots. W begins at 272 + 25 + 18 = 315. Until that
    // is sensed at 319, B has counted nothing from 315 on and V one slot from 306 on. At 587 both have 639 left: 587
    // + 43 + 9, 587 + 34 + 18. They collide, wait for ACKTimeout 45, and draw 3 of 31 and 6 of 7: 867 + 45 + 43 + 27
    // = 982, and 1000. V has counted 4 slots from 946 until 986.
    let mut network = Network::new(&wifi(2, 10, WifiConfig::new(Standard::N)), 3).unwrap();
    network.offer(us(0), packet(0, 2, 1500, 'A')).unwrap();
    network.offer(us(50), packet(0, 2, 1500, 'B')).unwrap();
    network.offer(us(50), voice(1, 2, 'V')).unwrap();
    network.offer(us(50), voice(2, 0, 'W')).unwrap();
    assert_eq!(received(&mut network), [(228, 'A'), (543, 'W'), (1210, 'B'), (1534, 'V')]);
    assert_eq!(network.statistics(us(1_000_000)).collisions, 1);
}

/// ```text
///            0   228 272      324   552 596             900   1128
///  0 best    |#A#|aaaa|..43..|-|       |...43...|--29----|##B##|aaaa|
///  0 voice            |.34.|--|##V###|aaaa|
/// ```
#[test]
fn of_one_station_the_higher_category_goes_first_and_the_other_as_after_a_collision() {
    // Timers of 1 and 2 slots: 272 + 43 + 9 = 272 + 34 + 18 = 324. B draws again, 29 of 31: 596 + 43 + 261 = 900.
    let mut network = Network::new(&wifi(1, 10, WifiConfig::new(Standard::N)), 19).unwrap();
    network.offer(us(0), packet(0, 1, 1500, 'A')).unwrap();
    network.offer(us(50), packet(0, 1, 1500, 'B')).unwrap();
    network.offer(us(50), voice(0, 1, 'V')).unwrap();
    assert_eq!(network.queue_packets(QueueId::Host(NodeId(0))), 3);
    assert_eq!(received(&mut network), [(228, 'A'), (552, 'V'), (1128, 'B')]);
    let statistics = network.statistics(us(1_000_000));
    assert_eq!((statistics.collisions, statistics.retries, statistics.transmissions), (0, 0, 3));
    // Three packets from 50 to 272, two to 596, one to 1172.
    let queue = statistics.queue(QueueId::Host(NodeId(0)));
    let expected = (50.0 + 3.0 * 222.0 + 2.0 * 324.0 + 576.0) / 1e6;
    assert!((queue.mean_packets - expected).abs() < 1e-9 && queue.max_packets == 3, "{queue:?}");
}

/// A to D for stations 0, 1, 0, 1 at an access point with this TXOP limit in microseconds.
fn in_txops_of(limit: u64) -> Vec<(u64, char)> {
    let access = WifiConfig { access_point_txop: Span::from_micros(limit), ..WifiConfig::new(Standard::N) };
    let mut network = Network::new(&wifi(2, 10, access), 3).unwrap();
    for (to, name) in [(0, 'A'), (1, 'B'), (0, 'C'), (1, 'D')] {
        network.offer(us(0), packet(2, to, 1500, name)).unwrap();
    }
    received(&mut network)
}

/// ```text
///       0   228 272 288      708   756 772   1000 1044
///  AP   |#A#|aaaa|  |#B#D#####|bbbbb|  |#C####|aaaa|          2000 us
///
///       0   228 272 288      708   756             889  1117
///  AP   |#A#|aaaa|  |#B#D#####|bbbbb|..43..|---10---|#C#|     800 us
///
///       0   228 272 288 516  560             693  921  965 981  1209
///  AP   |#A#|aaaa|  |#B#|aaaa|..43..|---10---|#C#|aaaa|   |#D#|     600 us
/// ```
#[test]
fn exchanges_follow_each_other_while_the_txop_lasts() {
    assert_eq!(in_txops_of(2000), [(228, 'A'), (708, 'B'), (708, 'D'), (1000, 'C')]);
    // 800 - 772 = 28 us are too few.
    assert_eq!(in_txops_of(800), [(228, 'A'), (708, 'B'), (708, 'D'), (1117, 'C')]);
    // 600 - 288 = 312 us are enough for one packet and a Block Ack, 276, and not for two, 468.
    assert_eq!(in_txops_of(600), [(228, 'A'), (516, 'B'), (921, 'C'), (1209, 'D')]);
    // A first packet goes, even if it takes longer: 272 + 43 + 90 = 405, + 228 + 48 + 43 ...
    assert_eq!(in_txops_of(100)[..1], [(228, 'A')]);
    assert_eq!(in_txops_of(100).len(), 4);
}

/// Ten stations with full queues, and a call of 200-byte packets every 20 ms from one more station and to it. Gives
/// the sorted delays of the call in milliseconds.
fn call_beside_uploads(standard: Standard, dscp: u8, queue: QueueConfig) -> Vec<f64> {
    let access = WifiConfig { access_point_queue: queue, ..WifiConfig::new(standard) };
    let mut network: Network<Time> = Network::new(&wifi(11, 200, access), 1).unwrap();
    let (server, caller) = (11, 10);
    let mut deliveries = Vec::new();
    let mut delays = Vec::new();
    for millis in 0..20_000 {
        let now = Time::ZERO + Span::from_millis(millis);
        network.advance(now, &mut deliveries);
        for delivery in deliveries.drain(..) {
            if delivery.packet.flow == 1 {
                delays.push((delivery.at - delivery.packet.payload).as_millis_f64());
            }
        }
        for station in 0..10 {
            while network.room(NodeId(station)) > 0 {
                network.offer(now, packet(station, server, 1500, now)).unwrap();
            }
        }
        // Downloads to two of the stations.
        for station in 0..2 {
            let _refused = network.offer(now, packet(server, station, 1500, now));
        }
        if millis % 20 == 7 {
            for (from, to) in [(caller, server), (server, caller)] {
                let call = Packet { dscp, flow: 1, ..packet(from, to, 200, now) };
                let _refused = network.offer(now, call);
            }
        }
    }
    delays.sort_unstable_by(f64::total_cmp);
    delays
}

#[test]
fn a_call_in_voice_is_far_faster_than_in_best_effort() {
    for (standard, queue) in [
        (Standard::N, QueueConfig::fifo(100)),
        (Standard::Ac, QueueConfig::fifo(100)),
        (Standard::Ac, QueueConfig::fq_codel(1000)),
        (Standard::Ax, QueueConfig::mac80211(8192)),
    ] {
        let p95 = |delays: &[f64]| delays[delays.len() * 95 / 100];
        let best_effort = call_beside_uploads(standard, 0, queue);
        let voice = call_beside_uploads(standard, VOICE, queue);
        let (slow, fast) = (p95(&best_effort), p95(&voice));
        println!("{standard:?}, {:?}: p95 {slow:.1} ms in best effort, {fast:.1} ms in voice", queue.discipline);
        assert!(voice.len() > 1900 && fast < slow / 4.0, "{standard:?}: {slow} and {fast} of {}", voice.len());
    }
    // 802.11g has no categories.
    let queue = QueueConfig::fifo(100);
    assert_eq!(call_beside_uploads(Standard::G, 0, queue), call_beside_uploads(Standard::G, VOICE, queue));
}
