//! Timelines of A-MPDUs and Block Acks, to the nanosecond.
//!
//! 802.11n, 20 MHz, MCS 7 at 5 GHz: slot 9, SIFS 16, AIFS 43, EIFS 103, ACKTimeout 45 us. One packet of 1500 B takes
//! 228 us, two in an A-MPDU (3086 B) 36 + 4 ceil((22 + 24688) / 260) = 420, three (4630 B) 608 us. SIFS and ACK take
//! 44, SIFS and Block Ack 48, a Block Ack Request 32 us. The path adds 120 ns to each packet (100 Gb/s). `#` = data,
//! `a` = SIFS and ACK, `b` = SIFS and Block Ack, `.` = inter-frame space,
//! `-` = backoff.

use crate::common::{packet, run, us, wifi};
use lasthop_network::random::Streams;
use lasthop_network::{Cause, Network, NodeId, QueueId, Standard, WifiConfig};
use lasthop_units::{Bytes, Probability, Span, Time};
use rand::Rng;

/// The pictures below draw on these: the timers of seed 3 in slots, and its frame errors in thousandths.
#[test]
fn what_seed_3_draws() {
    let timers = |name: &str, windows: &[u32]| -> Vec<u32> {
        let mut stream = Streams::new(3).stream(&format!("wifi/backoff/{name}"));
        windows.iter().map(|window| stream.next_u32() & window).collect()
    };
    assert_eq!(timers("0", &[31, 15, 31, 15]), [1, 3, 4, 13]);
    assert_eq!(timers("0", &[15, 31]), [1, 3]);
    assert_eq!(timers("1", &[31]), [6]);
    assert_eq!(timers("access-point", &[15, 15]), [10, 11]);
    let errors = |name: &str, count| -> Vec<u64> {
        let mut stream = Streams::new(3).stream(&format!("wifi/frame-error/{name}"));
        (0..count).map(|_| ((stream.next_u64() >> 11) as f64 / (1_u64 << 53) as f64 * 1000.0).round() as u64).collect()
    };
    assert_eq!(errors("0", 8), [797, 993, 878, 927, 705, 377, 967, 928]);
    assert_eq!(errors("access-point", 10), [963, 617, 852, 268, 931, 780, 224, 93, 34, 534]);
}

fn probability(of: f64) -> Probability {
    Probability::new(of).unwrap()
}

fn network(stations: usize, access: WifiConfig) -> Network<char> {
    Network::new(&wifi(stations, 10, access), 3).unwrap()
}

/// Offers (at us, packet of 1500 B from station 0) to the server of one station; gives who was received when by the
/// access point.
fn timeline(network: &mut Network<char>, offers: &[(u64, char)]) -> Vec<(u64, char)> {
    for &(at, name) in offers {
        network.offer(us(at), packet(0, 1, 1500, name)).unwrap();
    }
    received(network)
}

/// Whole microseconds: what came together leaves the path 120 ns apart.
fn received(network: &mut Network<char>) -> Vec<(u64, char)> {
    let micros = |at: Time| (at - Time::ZERO).as_micros();
    run(network, us(1_000_000)).iter().map(|delivery| (micros(delivery.at), delivery.packet.payload)).collect()
}

/// ```text
///       0   228      273   316 325        933   981   1024  1051      1471     1516  1559  1595      2015
///  0    |#A#|timeout..|.....|-|#A#B#C#####|bbbbb|......|---|#B#D#####|timeout..|.....|-----|#B#D#####|bbbbb|
///         x                      x                           x x                                 1000: D
/// ```
#[test]
fn what_is_missing_goes_first_and_holds_back_what_came_behind_it() {
    // Nine in ten are lost: A; then B of A, B, C; then B and D, so that nothing answers; then none. C waits for B.
    // 228 + 45 + 43 = 316, 1 slot of 31. 325 + 608 = 933, + 48 + 43 = 1024, 3 slots of 15. 1051 + 420 = 1471, + 88 =
    // 1559, 4 of 31.
    let access = WifiConfig { frame_error_rate: probability(0.9), ..WifiConfig::new(Standard::N) };
    let mut network = network(1, access);
    let received = timeline(&mut network, &[(0, 'A'), (0, 'B'), (0, 'C'), (1000, 'D')]);
    assert_eq!(received, [(933, 'A'), (2015, 'B'), (2015, 'C'), (2015, 'D')]);
    let statistics = network.statistics(us(1_000_000));
    let up = statistics.stations[0].up;
    assert_eq!((up.transmissions, up.frames, up.retries, up.errors), (4, 8, 4, 4));
    assert_eq!((up.acknowledged, up.given_up, up.collided), (4, 0, 0));
    assert_eq!(statistics.air.error, Span::from_micros(228 + 420));
    assert_eq!(statistics.air.success, Span::from_micros(608 + 48 + 420 + 48));
}

/// ```text
///       0   228 272   315 324      744   792     895  922      1342   1390
///  0    |#A#|aaaa|.....|-|#B#C#####|bbbbb|..EIFS..|---|#B#C#####|bbbbb|
///                                    x                (received already)
/// ```
#[test]
fn after_a_lost_block_ack_all_goes_again_and_none_of_it_comes_twice() {
    // Seven in ten responses are lost: not the first one, the second one, not the third one.
    let access = WifiConfig { response_error_rate: probability(0.7), ..WifiConfig::new(Standard::N) };
    let mut network = network(1, access);
    for name in ['A', 'B', 'C'] {
        network.offer(us(0), packet(0, 1, 1500, name)).unwrap();
    }
    let mut deliveries = Vec::new();
    network.advance(us(1389), &mut deliveries);
    let came: Vec<_> = deliveries.iter().map(|delivery| delivery.packet.payload).collect();
    assert_eq!(came, ['A', 'B', 'C']);
    assert_eq!(deliveries[2].at, us(744) + Span::from_nanos(240));
    let host = QueueId::Host(NodeId(0));
    assert_eq!((network.queue_packets(host), network.packets_inside()), (2, 0), "their sender does not know it yet");
    assert_eq!((received(&mut network), network.queue_packets(host)), (Vec::new(), 0));
    let up = network.statistics(us(1_000_000)).stations[0].up;
    assert_eq!((up.transmissions, up.frames, up.retries, up.acknowledged), (3, 5, 2, 3));
}

/// ```text
///       0   228       316 325        933   981 1024 1051      1471       1559  1595 1627   1675 1718        1835 2063
///  0    |#A#|timeout....|-|#A#B#C#####|bbbbb|....|---|#B#D#####|timeout....|----|BAR|bbbbb|....|-------------|#D#|aaaa|
///         x                   x                        x x
/// ```
#[test]
fn the_receiver_is_told_of_what_is_given_up() {
    // As above, with two transmissions at most: B has had its two at 1471, D one. The request lets C go on.
    let access = WifiConfig { frame_error_rate: probability(0.9), retry_limit: 2, ..WifiConfig::new(Standard::N) };
    let mut network = network(1, access);
    let received = timeline(&mut network, &[(0, 'A'), (0, 'B'), (0, 'C'), (1000, 'D')]);
    assert_eq!(received, [(933, 'A'), (1627, 'C'), (2063, 'D')]);
    let statistics = network.statistics(us(1_000_000));
    assert_eq!(statistics.dropped(QueueId::Host(NodeId(0)), Cause::RetryLimit), 1);
    assert_eq!((statistics.stations[0].up.given_up, statistics.stations[0].up.acknowledged), (1, 3));
}

/// ```text
///       0   28       73  116 125 153   197 213   441 485  528      573 601   645 661   889
///  0    |RTS|timeout..|...|-|RTS|CTS..|   |#A#####|aaaa|...|
///  1    |RTS|timeout..|...|------  5 slots left            |------|RTS|CTS..|   |#B#####|aaaa|
/// ```
#[test]
fn a_collision_of_requests_costs_no_more_than_them() {
    let mut network = network(2, WifiConfig { rts_threshold: Some(Bytes::new(1000)), ..WifiConfig::new(Standard::N) });
    network.offer(us(0), packet(0, 2, 1500, 'A')).unwrap();
    network.offer(us(0), packet(1, 2, 1500, 'B')).unwrap();
    assert_eq!(received(&mut network), [(441, 'A'), (889, 'B')]);
    let air = network.statistics(us(1_000_000)).air;
    assert_eq!((air.collision, air.success), (Span::from_micros(28), Span::from_micros(360 + 360)));
}

/// ```text
///       0   28   72      175   202 230  274 290   518                     the first CTS is lost, the others are not
///  0    |RTS|CTS..|.EIFS..|-----|RTS|CTS..|  |#A#####|aaaa|
/// ```
#[test]
fn a_lost_cts_is_a_failed_transmission() {
    // 617 of 1000 is the second response of the access point in seed 3: the first one goes to a packet before.
    let access = WifiConfig {
        rts_threshold: Some(Bytes::new(1600)),
        response_error_rate: probability(0.7),
        ..WifiConfig::new(Standard::N)
    };
    let mut network = network(1, access);
    // A alone has 1542 B and goes without; B and C have 3086 B. 272 + 43 + 9 = 324: RTS until 352, CTS until 396,
    // EIFS 499, 3 slots 526; RTS 554, CTS 598, SIFS 614, + 420.
    let received = timeline(&mut network, &[(0, 'A'), (0, 'B'), (0, 'C')]);
    assert_eq!(received[0], (228, 'A'));
    assert_eq!(received[1..3], [(1034, 'B'), (1034, 'C')]);
}

/// ```text
///       0   228 272   315          405      825   873   916           1015  1243
///  AP   |#A#|aaaa|.....|------------|#B#D#####|bbbbb|.....|-------------|#C#|        A, C to station 0; B, D to station 1
/// ```
#[test]
fn the_access_point_takes_all_that_waits_for_the_station_at_the_head() {
    let mut network = network(2, WifiConfig::new(Standard::N));
    for (to, name) in [(0, 'A'), (1, 'B'), (0, 'C'), (1, 'D')] {
        network.offer(us(0), packet(2, to, 1500, name)).unwrap();
    }
    assert_eq!(received(&mut network), [(228, 'A'), (825, 'B'), (825, 'D'), (1243, 'C')]);
}

/// ```text
///  AP   |#A#|  |#B#D#F###|  |#F#G#H###|  |#E#|  |#H#|  |#H#|  |#H#|         E to station 1, the others to station 0
///                    x            x              x      x
/// ```
#[test]
fn the_oldest_packet_says_whose_turn_it_is() {
    // Three in ten are lost of station 0's: F goes before E, which came later, and E before H, which came later still.
    let mut config = wifi(2, 10, WifiConfig { aggregate_frames: 3, ..WifiConfig::new(Standard::N) });
    config.hosts[0].frame_error_rate = Some(probability(0.3));
    let mut network = Network::new(&config, 3).unwrap();
    for (to, name) in [(0, 'A'), (0, 'B'), (0, 'D'), (0, 'F'), (1, 'E'), (0, 'G'), (0, 'H')] {
        network.offer(us(0), packet(2, to, 1500, name)).unwrap();
    }
    let order: String = received(&mut network).iter().map(|&(_, name)| name).collect();
    assert_eq!(order, "ABDFGEH");
    assert_eq!(network.statistics(us(1_000_000)).stations[0].down.errors, 4);
}

/// ```text
///       0   228       316 325 353  397 413    641  685 728 755     983     1071 1107 1135 1179 1195    1423
///  0    |#A#|timeout....|-|RTS|CTS.|   |#A####|aaaa|...|---|##B#####|timeout...|----|RTS|CTS.|   |#B####|aaaa|
///         x                                                    x                                            400: B
/// ```
#[test]
fn an_rts_precedes_what_repeats_a_transmission_without_response() {
    // Nine in ten are lost, and two are: the first of A and the first of B. 228 + 45 + 43 + 9 = 325, + 28 + 44 + 16 =
    // 413; B after 3 slots of 15 without an RTS, again after 4 of 31: 983 + 88 + 36 = 1107, 1195 + 228.
    let access = WifiConfig { frame_error_rate: probability(0.9), rts_on_retry: true, ..WifiConfig::new(Standard::N) };
    let mut network = network(1, access);
    let received = timeline(&mut network, &[(0, 'A'), (400, 'B')]);
    assert_eq!(received, [(641, 'A'), (1423, 'B')]);
    let up = network.statistics(us(1_000_000)).stations[0].up;
    assert_eq!((up.transmissions, up.retries, up.acknowledged), (4, 2, 2));
}

/// ```text
///       0   228       316 325          933   981  1024 1051           1659  1707
///  0    |#A#|timeout....|-|#A#|BBBCCC##|bbbbb|.....|---|BBBCCC|#D####|bbbbb|          BC is one MPDU
///         x                       x                              x            400: D
/// ```
#[test]
fn what_is_joined_is_lost_and_received_together() {
    // Nine in ten are lost: A; then BC of A, BC; then D of BC, D. As an A-MSDU, B and C take 24 + 1500 and 22 + 1500
    // B, with the MPDU's header, FCS and delimiter 3080 B. Behind A (1544 B) that is 4624 B, before D (1542 B) 4622
    // B: 36 + 4 ceil((22 + 36992) / 260) = 608.
    let access = WifiConfig {
        frame_error_rate: probability(0.9),
        amsdu_bytes: Bytes::new(3839),
        ..WifiConfig::new(Standard::N)
    };
    let mut network = network(1, access);
    for (at, name) in [(0, 'A'), (0, 'B'), (0, 'C'), (400, 'D')] {
        network.offer(us(at), packet(0, 1, 1500, name)).unwrap();
    }
    let deliveries = run(&mut network, us(1700));
    let micros = |at: Time| (at - Time::ZERO).as_micros();
    let came: Vec<_> = deliveries.iter().map(|delivery| (micros(delivery.at), delivery.packet.payload)).collect();
    assert_eq!(came, [(933, 'A'), (1659, 'B'), (1659, 'C')]);
    let up = network.statistics(us(1700)).stations[0].up;
    assert_eq!((up.transmissions, up.frames, up.retries, up.errors), (3, 7, 3, 4));
}

#[test]
fn an_amsdu_alone_is_answered_by_an_ack() {
    // B and C behind A: 272 + 43 + 9 = 324, 36 + 4 ceil((22 + 24640) / 260) = 416, ACK 44 instead of 48. D does not
    // fit in with them: 4570 B.
    let access = WifiConfig { amsdu_bytes: Bytes::new(3839), aggregate_frames: 1, ..WifiConfig::new(Standard::N) };
    let mut network = network(1, access);
    let received = timeline(&mut network, &[(0, 'A'), (0, 'B'), (0, 'C'), (0, 'D')]);
    // 740 + 44 + 43 + 27: the second timer is 3.
    assert_eq!(received, [(228, 'A'), (740, 'B'), (740, 'C'), (1082, 'D')]);
}
