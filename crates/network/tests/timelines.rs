//! Timelines of the medium, to the nanosecond.
//!
//! 802.11g at 54 Mb/s, if nothing else is said: slot 9, SIFS 10, DIFS 28, EIFS 88, ACKTimeout 39 us. A packet of 1500 B takes
//! 254 us, one of 52 B 42 us, SIFS and ACK 44 us. The path adds 120 ns to 1500 B, 5 ns to 52 B (100 Gb/s), 0 ms.
//! `#` = data, `a` = SIFS and ACK, `.` = inter-frame space, `-` = backoff, `^` = a packet is offered.

use crate::common::{packet, run, us, wifi};
use lasthop_network::random::Streams;
use lasthop_network::{Cause, Destination, Network, NodeId, PhyRate, QueueId, RateSet, Standard, WifiConfig};
use lasthop_units::{Probability, Rate, Span, Time};
use rand::Rng;

/// The pictures below draw on these: the timers of seed 3 in slots, with CW = 15, 31 or 63.
#[test]
fn the_timers_that_seed_3_draws() {
    let draws = |name: &str, windows: &[u32]| -> Vec<u32> {
        let mut stream = Streams::new(3).stream(&format!("wifi/backoff/{name}"));
        windows.iter().map(|window| stream.next_u32() & window).collect()
    };
    assert_eq!(draws("0", &[15, 15, 15]), [1, 3, 4]);
    assert_eq!(draws("0", &[31, 63]), [1, 3]);
    assert_eq!(draws("1", &[15, 15]), [6, 4]);
    assert_eq!(draws("1", &[31]), [6]);
    assert_eq!(draws("2", &[15]), [2]);
    assert_eq!(draws("access-point", &[15]), [10]);
}

fn network(stations: usize) -> Network<()> {
    Network::new(&wifi(stations, 10, WifiConfig::new(Standard::G)), 3).unwrap()
}

/// Offers (at us, from, bytes) to the server and gives (received by the access point at, from) in order.
fn timeline(network: &mut Network<()>, stations: u16, offers: &[(f64, u16, u64)]) -> Vec<(Span, u16)> {
    for &(at, from, bytes) in offers {
        let at = Time::ZERO + Span::from_secs_f64(at * 1e-6);
        network.offer(at, packet(from, stations, bytes, ())).unwrap();
    }
    let received = run(network, us(1_000_000));
    let path = |bytes| if bytes == 1500 { Span::from_nanos(120) } else { Span::from_nanos(5) };
    received
        .iter()
        .map(|delivery| (delivery.at - Time::ZERO - path(delivery.packet.size.get()), delivery.packet.from.0))
        .collect()
}

fn at(micros: u64, from: u16) -> (Span, u16) {
    (Span::from_micros(micros), from)
}

/// ```text
///  100      354  398 426 435      1000    1254 1298 1326   1353    1607 1651 1679    1715     1969
///   |########|aaaa|...|-|           |########|aaaa|....|---|########|aaaa|....|--------|########|
///   ^                               ^                   ^                 ^
///  idle: at once      timer ended: at once    1330: timer still runs     1660: so does DIFS
/// ```
#[test]
fn on_an_idle_medium_a_frame_goes_at_once_if_the_timer_has_ended() {
    // Timers: 1, 3, 4 slots. 398 + 28 + 9 = 435 < 1000. 1298 + 28 + 27 = 1353. 1651 + 28 + 36 = 1715.
    let offers = [(100.0, 0, 1500), (1000.0, 0, 1500), (1330.0, 0, 1500), (1660.0, 0, 1500)];
    let received = timeline(&mut network(1), 1, &offers);
    assert_eq!(received, [at(354, 0), at(1254, 0), at(1607, 0), at(1969, 0)]);
}

/// ```text
///       0        254  298   326 335
///  0    |#########|aaaa|.....|-|
///  1                      ^  |#########|          offered at 300: silent again, but not for DIFS yet
///                           326       580
/// ```
#[test]
fn a_frame_that_finds_silence_waits_for_difs_only() {
    let received = timeline(&mut network(2), 2, &[(0.0, 0, 1500), (300.0, 1, 1500)]);
    assert_eq!(received, [at(254, 0), at(580, 1)]);
}

/// ```text
///       0        254  298   326 335
///  0    |#########|aaaa|.....|-|
///  1                 ^       |------|#########|   offered at 290: the medium is busy, 6 slots
///                           326    380       634
/// ```
#[test]
fn a_frame_that_finds_the_medium_busy_draws_a_timer() {
    let received = timeline(&mut network(2), 2, &[(0.0, 0, 1500), (290.0, 1, 1500)]);
    assert_eq!(received, [at(254, 0), at(634, 1)]);
}

/// ```text
///       0         254  298   326 335        589  633   661
///  0    |##########|aaaa|.....|-|############|aaaa|.....|---|
///          ^ second
///  1         ^                |-  5 slots left: freeze   |-----|############|
///           100: 6 slots     326                        661   706          960
/// ```
#[test]
fn a_timer_freezes_while_the_medium_is_busy() {
    // Station 1: the slot that ends at 335 has passed when the transmission that begins then is sensed. 661 + 5 × 9 = 706.
    let received = timeline(&mut network(2), 2, &[(0.0, 0, 1500), (50.0, 0, 1500), (100.0, 1, 1500)]);
    assert_eq!(received, [at(254, 0), at(589, 0), at(960, 1)]);
}

/// ```text
///       0    42       254       293     321 330        584  628  656
///  0    |##############|timeout..|.......|-|############|aaaa|....|
///  1    |####|..(81)...|.......|-----  1 slot left                |-|####|aaaa|....|
///                     254     282  (5 slots by 334)               665   707  751  779
///  2                    ^.............(EIFS until 342) draws 2    |-              |-|############|
///                      260                                        1 slot left     779 788      1042
/// ```
#[test]
fn after_a_collision_senders_wait_their_timeout_and_bystanders_eifs() {
    // CW is 31 for both senders: 1 and 6 slots. Station 0: 254 + 39 + 28 = 321, + 9. Station 1's timeout (42 + 39 = 81) has
    // passed when the medium falls silent: 254 + 28 = 282, + 54 = 336, too late for 330. Station 2 found the medium silent,
    // needs EIFS, 254 + 88 = 342, and draws when the medium gets busy before that.
    let received = timeline(&mut network(3), 3, &[(0.0, 0, 1500), (0.0, 1, 52), (260.0, 2, 1500)]);
    assert_eq!(received, [at(584, 0), at(707, 1), at(1042, 2)]);
}

/// ```text
///       0    42       254       293     321 330        584  628  656
///  0    |##############|timeout..|.......|-|############|aaaa|....|
///  2                                         ^ 332: too early to sense it, but EIFS lasts until 342: draws 2 slots
/// ```
#[test]
fn who_still_defers_does_not_collide() {
    // As above, but station 2 offers at 332 what it would have sent at 342.
    let received = timeline(&mut network(3), 3, &[(0.0, 0, 1500), (0.0, 1, 52), (332.0, 2, 1500)]);
    assert_eq!(received, [at(584, 0), at(707, 1), at(1042, 2)]);
}

/// ```text
///       0             254       293     321  339          593  637  665                         seed 70
///  0    |##############|timeout..|.......|--|############|aaaa|....|
///  1     |##############|timeout..|.......|-- 8 slots left          |--  6 slots left             |------|############|
///       1.0            255       294     322                       665                         1009    1063         1317
///  2                     ^................(EIFS until 343)         |--|############|aaaa|....|
///                       260                sensed at 343: draws 2  665 683        937  981 1009
/// ```
#[test]
fn a_timer_that_ends_when_a_transmission_is_sensed_freezes() {
    // Station 0 draws 2 of 31: 321 + 18 = 339, sensed at 343, just when station 2 would have sent: 255 + 88 = 343.
    let mut network = Network::new(&wifi(3, 10, WifiConfig::new(Standard::G)), 70).unwrap();
    let received = timeline(&mut network, 3, &[(0.0, 0, 1500), (1.0, 1, 1500), (260.0, 2, 1500)]);
    assert_eq!(received, [at(593, 0), at(937, 2), at(1317, 1)]);
}

/// ```text
///       0            254       293     321                    seed 5: 9 and 23 slots of CW 31
///  0, 1 |#############|timeout..|.......|--
///  2                    ^..............(EIFS)|###########|
///                      260                  342         596
/// ```
#[test]
fn a_bystander_sends_after_eifs_if_nobody_was_faster() {
    // Left at 346, when it is sensed: 2 slots of 9 us have passed since 321. 596 + 44 + 28 = 668.
    // Station 0: 668 + 7 × 9 = 731, received at 985. Station 1 counts 7 of 21: 985 + 72 + 14 × 9 = 1183, received at 1437.
    let mut network = Network::new(&wifi(3, 10, WifiConfig::new(Standard::G)), 5).unwrap();
    let received = timeline(&mut network, 3, &[(0.0, 0, 1500), (0.0, 1, 1500), (260.0, 2, 1500)]);
    assert_eq!(received, [at(596, 2), at(985, 0), at(1437, 1)]);
}

/// ```text
///       0     4 us: now the transmission can be sensed
///  0    |#####|####...
///  1        ^ 3.999: collides                 ^ 4.000: draws 6 slots, 298 + 28 + 54 = 380
/// ```
#[test]
fn a_transmission_is_sensed_after_the_cca_time() {
    let received = timeline(&mut network(2), 2, &[(0.0, 0, 1500), (4.0, 1, 1500)]);
    assert_eq!(received, [at(254, 0), at(634, 1)]);
    // The collision ends at 257.999. Station 0: 254 + 39 + 28 + 9 = 330, received at 584. Station 1 is ready at
    // 257.999 + 39 + 28 = 324.999 with 6 slots; by 334 one has passed. 584 + 44 + 28 + 5 × 9 = 701, received at 955.
    let received = timeline(&mut network(2), 2, &[(0.0, 0, 1500), (3.999, 1, 1500)]);
    assert_eq!(received, [at(584, 0), at(955, 1)]);
}

/// ```text
///       0       248 258         512  556   606 626      884         1138
///       |CTS CTS|...|############|aaaa|.....|-|CTS CTS|..|############|
/// ```
#[test]
fn with_old_stations_around_ofdm_frames_follow_a_cts_to_self() {
    // CTS at 2 Mb/s: 192 + 56 = 248 us, SIFS 10. DIFS = 10 + 2 × 20, 1 slot of 20 us.
    let mut network = Network::new(&wifi(1, 10, WifiConfig::new(Standard::Bg)), 3).unwrap();
    let received = timeline(&mut network, 1, &[(0.0, 0, 1500), (0.0, 0, 1500)]);
    assert_eq!(received, [at(512, 0), at(1138, 0)]);
}

/// ```text
///       0         254     293   321 330        584    623  651   678        932
///       |##########|timeout|.....|-|############|timeout|....|---|############| given up
///                                 1 of 31                     3 of 63
/// ```
#[test]
fn a_frame_is_given_up_after_as_many_transmissions_as_the_limit_says() {
    let unlucky = WifiConfig { frame_error_rate: Probability::ONE, retry_limit: 3, ..WifiConfig::new(Standard::G) };
    let mut network = Network::new(&wifi(1, 10, unlucky), 3).unwrap();
    network.offer(Time::ZERO, packet(0, 1, 1500, ())).unwrap();
    assert_eq!(run(&mut network, Time::from_nanos(931_999)), []);
    assert_eq!(network.queue_packets(QueueId::Host(NodeId(0))), 1);
    assert_eq!(run(&mut network, us(932)), []);
    assert_eq!(network.queue_packets(QueueId::Host(NodeId(0))), 0);
    let statistics = network.statistics(us(1000));
    assert_eq!(statistics.dropped(QueueId::Host(NodeId(0)), Cause::RetryLimit), 1);
    let up = statistics.stations[0].up;
    assert_eq!((up.transmissions, up.retries, up.errors, up.acknowledged, up.given_up), (3, 2, 3, 0, 1));
    // On the air 3 × 254 us, all in vain; 67 + 9 + 67 + 27 us of waiting; then nothing to send.
    assert_eq!(statistics.air.error, Span::from_micros(762));
    assert_eq!(statistics.air.contention, Span::from_micros(170));
    assert_eq!(statistics.air.idle, Span::from_micros(68));
}

/// ```text
///       0     254      321          +254 +72           +254 +67           +254
///       |######|........|--a of 31--|####|aaaa..|--b of 15--|######|....|--c of 31--|####|aaaa|
///        error                     received            error                     received
/// ```
#[test]
fn after_a_success_the_window_and_the_count_of_failures_begin_anew() {
    // With a limit of 2 a frame that fails once gets through, if the failure of the frame before it is forgotten. A seed that
    // makes every other transmission fail, and draws a timer that tells CW 15 from 31, and then one that tells 31 from 63.
    let errors = |seed| {
        let mut stream = Streams::new(seed).stream("wifi/frame-error/0");
        [0; 4].map(|_| stream.next_u64() >> 63 == 0)
    };
    let draws = |seed| {
        let mut stream = Streams::new(seed).stream("wifi/backoff/0");
        [0; 3].map(|_| stream.next_u32())
    };
    let wanted = |&seed: &u64| {
        errors(seed) == [true, false, true, false] && draws(seed)[1] & 16 != 0 && draws(seed)[2] & 32 != 0
    };
    let seed = (1..).find(wanted).unwrap();
    let slots = |draw: usize, window| u64::from(draws(seed)[draw] & window) * 9;
    let first = 321 + slots(0, 31) + 254;
    let second = first + 72 + slots(1, 15) + 254 + 67 + slots(2, 31) + 254;
    let noisy = Probability::new(0.5).unwrap();
    let config = WifiConfig { frame_error_rate: noisy, retry_limit: 2, ..WifiConfig::new(Standard::G) };
    let mut network = Network::new(&wifi(1, 10, config), seed).unwrap();
    assert_eq!(timeline(&mut network, 1, &[(0.0, 0, 1500), (0.0, 0, 1500)]), [at(first, 0), at(second, 0)]);
}

/// ```text
///  0    |##########11 Mb/s#########|
///  1    |CTS|#54 Mb/s#|           1310                    1674
///  2                               ^......(EIFS of DSSS)...|CTS|########|
/// ```
#[test]
fn after_a_collision_of_old_and_new_bystanders_wait_the_longer_eifs() {
    // EIFS with an ACK at 1 Mb/s: 10 + 304 + 50 = 364, at 6 Mb/s: 10 + 50 + 50 = 110. One transmission each. 258 + 254 of frame.
    let once = WifiConfig { retry_limit: 1, ..WifiConfig::new(Standard::Bg) };
    let mut config = wifi(3, 10, once);
    config.hosts[0].rate = Some(Rate::from_mbps(11.0));
    let mut network = Network::new(&config, 3).unwrap();
    let offers = [(0.0, 0, 1500), (0.0, 1, 1500), (1311.0, 2, 1500)];
    assert_eq!(timeline(&mut network, 3, &offers), [at(1674 + 258 + 254, 2)]);
}

/// Seed 78 with a frame error rate of one half: station 0's first frame is received with an error, nothing else is. It draws
/// 7 slots of 31, station 1 draws 3 of 15.
fn network_with_one_error() -> Network<()> {
    let noisy = WifiConfig { frame_error_rate: Probability::new(0.5).unwrap(), ..WifiConfig::new(Standard::G) };
    Network::new(&wifi(2, 10, noisy), 78).unwrap()
}

/// ```text
///       0            254       293     321                                715          969
///  0    |######error##|timeout..|.......|  7 slots left               |-----|############|
///  1                  |(ACK)|....|############|aaaa|....|            652
///                          298  326          580  624  652
///                            ^ 300: after where the ACK would have been, the medium is silent
///                          ^   290: before that it counts as busy: 3 slots, 353, received at 607
/// ```
#[test]
fn after_an_error_the_others_defer_until_the_end_of_the_acknowledgement() {
    let received = timeline(&mut network_with_one_error(), 2, &[(0.0, 0, 1500), (300.0, 1, 1500)]);
    assert_eq!(received, [at(580, 1), at(969, 0)]);
    // 353: three of station 0's slots have passed since 321. 607 + 72 + 4 × 9 = 715.
    let received = timeline(&mut network_with_one_error(), 2, &[(0.0, 0, 1500), (290.0, 1, 1500)]);
    assert_eq!(received, [at(607, 1), at(969, 0)]);
}

/// ```text
///       0            254       293     321                                     713          967
///  0    |######error##|timeout..|.......|-- 5 slots left                   |----|############|
///  AP                 |.................(EIFS)|############|aaaa|....|    668
///                        ^ 300                342          596  640  668
/// ```
#[test]
fn after_an_error_the_receiver_defers_for_eifs() {
    let mut network = network_with_one_error();
    network.offer(Time::ZERO, packet(0, 2, 1500, ())).unwrap();
    network.offer(us(300), packet(2, 0, 1500, ())).unwrap();
    let received: Vec<_> = run(&mut network, us(2000)).iter().map(|delivery| (delivery.at, delivery.to)).collect();
    assert_eq!(received, [(us(596), NodeId(0)), (us(967) + Span::from_nanos(120), NodeId(2))]);
}

/// ```text
///       0         214     254  282       321 330        584  628  656   701        955
///  0    |##################|timeout.......|.|-|############|aaaa|....|
///  AP   |bbbbbbbbbb|       |....|-----  5 slots left               |-----|############|
/// ```
#[test]
fn after_a_broadcast_that_collided_the_access_point_waits_difs_only() {
    // 100 B to all at 6 Mb/s, 8 ns after station 0 began; then 10 slots: 282 + 90. 5 have passed when 330 is sensed.
    let mut network = network(1);
    let mut broadcast = packet(1, 0, 100, ());
    broadcast.to = Destination::Broadcast;
    network.offer(Time::ZERO, packet(0, 1, 1500, ())).unwrap();
    network.offer(Time::ZERO, broadcast).unwrap();
    network.offer(Time::ZERO, packet(1, 0, 1500, ())).unwrap();
    let received: Vec<_> = run(&mut network, us(2000)).iter().map(|delivery| (delivery.at, delivery.to)).collect();
    assert_eq!(received, [(us(584) + Span::from_nanos(120), NodeId(1)), (us(955), NodeId(0))]);
}

/// ```text
///       0         214       242                302
///  AP   |bbbbbbbbbb|.........|
///  0    heard        ^.......|############|aaaa|            offered at 220
///  0    with an error^.........(EIFS)...........|############|
/// ```
#[test]
fn who_received_a_broadcast_with_an_error_waits_eifs() {
    // 100 B to all at 6 Mb/s, 8 ns on the path; a packet offered 6 us after its end waits DIFS or, after an error, EIFS.
    let run_with = |frame_error_rate| {
        let config = WifiConfig { frame_error_rate, retry_limit: 1, ..WifiConfig::new(Standard::G) };
        let mut network = Network::new(&wifi(1, 10, config), 3).unwrap();
        let mut broadcast = packet(1, 0, 100, ());
        broadcast.to = Destination::Broadcast;
        network.offer(Time::ZERO, broadcast).unwrap();
        network.offer(us(220), packet(0, 1, 1500, ())).unwrap();
        run(&mut network, us(1000));
        network.statistics(us(1000)).air.contention
    };
    // From 220 us until 214.008 us + 28 or + 88.
    assert_eq!(run_with(Probability::ZERO), Span::from_nanos(22_008));
    assert_eq!(run_with(Probability::ONE), Span::from_nanos(82_008));
}

#[test]
fn broadcasts_go_at_the_lowest_basic_rate() {
    // 136 B: 214 us at 6 Mb/s (below), 192 + 1088 = 1280 us at 1 Mb/s. 8 ns on the path.
    let all = WifiConfig { rate_set: RateSet::All, ..WifiConfig::new(Standard::G) };
    let mixed = WifiConfig::new(Standard::Bg);
    let chosen = WifiConfig { broadcast_rate: Some(PhyRate::Mbps6), ..mixed.clone() };
    let cases = [
        (WifiConfig::new(Standard::G), 214),
        (all, 1280),
        (WifiConfig::new(Standard::B), 1280),
        (mixed, 1280),
        (chosen, 258 + 214),
    ];
    for (config, micros) in cases {
        let mut network = Network::new(&wifi(1, 10, config), 1).unwrap();
        let mut broadcast = packet(1, 0, 100, ());
        broadcast.to = Destination::Broadcast;
        network.offer(Time::ZERO, broadcast).unwrap();
        assert_eq!(run(&mut network, us(2000))[0].at, us(micros) + Span::from_nanos(8));
    }
}

/// ```text
///       0           1310  1568  1618        2138          3448        seed 4: 26 slots of CW 31 (10 of CW 15)
///       |#############|aaaa|.....|------------|#############|
/// ```
#[test]
fn an_802_11b_station_keeps_its_contention_window_beside_802_11g() {
    let mut config = wifi(1, 10, WifiConfig::new(Standard::Bg));
    config.hosts[0].rate = Some(Rate::from_mbps(11.0));
    let mut network = Network::new(&config, 4).unwrap();
    assert_eq!(timeline(&mut network, 1, &[(0.0, 0, 1500), (0.0, 0, 1500)]), [at(1310, 0), at(3448, 0)]);
}

/// ```text
///       0    50  94   122           212                 426  454
///  0    |####|aaaa|....|
///  AP        ^ draws 10  |----------|####################|....|          to all but station 0, without ACK
///  1                                        ^                 |------|############|
///                                          300: 6 slots       454   508          762
/// ```
#[test]
fn a_broadcast_goes_up_acknowledged_and_down_once() {
    // 100 B: 136 B = 1110 bits with service and tail. 54 Mb/s: 6 symbols, 50 us. 6 Mb/s: 47 symbols, 20 + 188 + 6 = 214 us.
    let mut network = network(3);
    let mut broadcast = packet(0, 0, 100, ());
    broadcast.to = Destination::Broadcast;
    network.offer(Time::ZERO, broadcast).unwrap();
    network.offer(us(300), packet(1, 3, 1500, ())).unwrap();
    let received: Vec<_> = run(&mut network, us(1000)).iter().map(|delivery| (delivery.at, delivery.to)).collect();
    assert_eq!(received, [(us(426), NodeId(1)), (us(426), NodeId(2)), (us(762) + Span::from_nanos(120), NodeId(3))]);
    assert_eq!(network.statistics(us(1000)).air.broadcast, Span::from_micros(214));
}

#[test]
fn the_access_point_contends_like_a_station() {
    // The server's packet reaches the access point after 0.12 us on the wire and goes at once.
    let mut network = network(1);
    network.offer(Time::ZERO, packet(1, 0, 1500, ())).unwrap();
    let received = run(&mut network, us(1000));
    assert_eq!(received[0].at, us(254) + Span::from_nanos(120));
    assert_eq!(network.statistics(us(1000)).stations[0].down.acknowledged, 1);
}

/// ```text
///       0        254  298 300   326       580  624    1000
///  0    |#########|aaaa|.......|
///  1                     ^.....|###########|aaaa|
///       |   success    |i| wait |    success    | idle
/// ```
#[test]
fn silence_is_idle_until_a_frame_waits() {
    let mut network = network(2);
    timeline(&mut network, 2, &[(0.0, 0, 1500), (300.0, 1, 1500)]);
    let air = network.statistics(us(1_000_000)).air;
    assert_eq!(air.success, Span::from_micros(2 * 298));
    assert_eq!(air.contention, Span::from_micros(26));
    assert_eq!(air.total(), Span::from_micros(1_000_000));
}

/// ```text
///       0      2          254 256    293 295     321 323   t = 321 + k slots
///  0    |##################|timeout..|.......|-----|##################|          a second frame
///  1          |###############|timeout..|.......|----+|###############|          no frame until t + 1, timer until t + 2
///                                                      ^ t + 1
/// ```
#[test]
fn a_frame_that_comes_before_its_timer_ends_waits_for_the_timer() {
    // One transmission each, so that station 1 has nothing left; and a seed that gives both the same timer.
    let first_draw = |seed, name| Streams::new(seed).stream(name).next_u32() & 15;
    let same = |&seed: &u64| first_draw(seed, "wifi/backoff/0") == first_draw(seed, "wifi/backoff/1");
    let seed = (1..).find(same).unwrap();
    let t = 321.0 + 9.0 * f64::from(first_draw(seed, "wifi/backoff/0"));
    let once = WifiConfig { retry_limit: 1, ..WifiConfig::new(Standard::G) };
    let mut network = Network::new(&wifi(2, 10, once), seed).unwrap();
    let offers = [(0.0, 0, 1500), (0.0, 0, 1500), (2.0, 1, 1500), (t + 1.0, 1, 1500)];
    assert_eq!(timeline(&mut network, 2, &offers), []);
    let statistics = network.statistics(us(1_000_000));
    assert_eq!(statistics.collisions, 2);
    assert_eq!(statistics.air.collision, Span::from_micros(256 + 256));
}
