//! Stations older than their access point, at 2.4 GHz, to the nanosecond.
//!
//! 802.11n, 20 MHz, MCS 7 at 2.4 GHz: a packet of 1500 B takes 36 + 4 · 48 + 6 = 234 us, SIFS and ACK 10 + 34 = 44 us,
//! AIFS 37 us. 802.11g at 54 Mb/s: 254 us, the same ACK, DIFS 28 us. 802.11b at 11 Mb/s: 1310 us, SIFS and ACK 10 + 248
//! us; with it slots of 20 us, DIFS 50 us, AIFS 70 us. The path adds 120 ns to each packet (100 Gb/s). `c` = CTS-to-self
//! and SIFS, `#` = data, `a` = SIFS and ACK, `.` = inter-frame space, `-` = backoff. Timers are those of seed 3
//! (timelines.rs).

use crate::common::{access_point, instant_path, packet, run, saturate, us};
use lasthop_network::{
    AccessConfig, Band, ChannelWidth, Config, HostConfig, Modulation, Network, NodeId, Packet, PhyRate, RateControl,
    Standard, WifiConfig,
};
use lasthop_units::{Bytes, Span, Time};

/// An access point of 802.11n at 2.4 GHz.
fn n() -> WifiConfig {
    WifiConfig { band: Band::Ghz2_4, ..WifiConfig::new(Standard::N) }
}

/// Stations of these standards on it.
fn mixed(access: WifiConfig, standards: &[Standard]) -> Config {
    let host = |&standard: &Standard| HostConfig { standard: Some(standard), ..HostConfig::new(200) };
    access_point(standards.iter().map(host).collect(), AccessConfig::Wifi(access), instant_path())
}

/// Two packets of the newer station 1, the second waits; then one of the older station 0.
fn two_and_one(access: WifiConfig, older: Standard) -> Vec<(u64, char)> {
    let mut network = Network::new(&mixed(access, &[older, Standard::N]), 3).unwrap();
    for (at, station, name) in [(0, 1, 'A'), (0, 1, 'B'), (100, 0, 'C')] {
        network.offer(us(at), packet(station, 2, 1500, name)).unwrap();
    }
    let micros = |at: Time| (at - Time::ZERO).as_micros();
    run(&mut network, us(1_000_000)).iter().map(|delivery| (micros(delivery.at), delivery.packet.payload)).collect()
}

/// ```text
///       0      234  278    315 324      558
///       |#A######|aaaa|......|-|#B######|
/// ```
#[test]
fn at_2_4_ghz_sifs_is_shorter_and_each_ppdu_longer() {
    let mut network = Network::new(&mixed(n(), &[Standard::N]), 3).unwrap();
    ['A', 'B'].into_iter().for_each(|name| network.offer(us(0), packet(0, 1, 1500, name)).unwrap());
    let at: Vec<_> = run(&mut network, us(1_000_000)).iter().map(|delivery| delivery.at).collect();
    assert_eq!(at, [234, 558].map(|micros| us(micros) + Span::from_nanos(120)));
}

/// ```text
///       0   44       278  322  350 359    613  657   694    748  792      1026
///  1 n  |ccc|#A######|aaaa|......|                  |......|------|ccc|#B######|     6 slots
///  0 g         ^ offered  |....|-|#C######|aaaa|                                     1 slot
/// ```
#[test]
fn beside_802_11g_newer_ppdus_follow_a_cts_at_a_basic_ofdm_rate() {
    // CTS at 24 Mb/s 34 us, SIFS 10. Station 1 is ready at 322 + 37 = 359, when station 0 begins: it keeps its 6 slots.
    assert_eq!(two_and_one(n(), Standard::G), [(278, 'A'), (613, 'C'), (1026, 'B')]);
    // RTS 34, SIFS, CTS 34, SIFS before all: 88 + 234 = 322, + 44 = 366; + 28 + 9 = 403, + 88 + 254 = 745, + 44 = 789;
    // + 37 + 54 = 880, + 322.
    let access = WifiConfig { rts_threshold: Some(Bytes::new(1000)), ..n() };
    assert_eq!(two_and_one(access, Standard::G), [(322, 'A'), (745, 'C'), (1202, 'B')]);
}

/// ```text
///       0   258      492  536  586 606         1916   2174 2244   2364  2622    2856
///  1 n  |ccc|#A######|aaaa|......|                       |......|------|ccc|#B######|
///  0 b         ^ offered  |....|-|#C###########|aaaaaaa|
/// ```
#[test]
fn beside_802_11b_they_follow_a_cts_at_a_dsss_rate_and_slots_are_long() {
    // CTS at 2 Mb/s 192 + 56 us, SIFS 10. Station 0 draws 1 slot of 31, station 1 keeps its 6.
    assert_eq!(two_and_one(n(), Standard::B), [(492, 'A'), (1916, 'C'), (2856, 'B')]);
    // RTS 192 + 80, SIFS, CTS 248, SIFS: 540 + 234 = 774, + 44 = 818; + 50 + 20 = 888. Station 0, whose own basic rate is
    // 2 Mb/s as well, has the same: + 540 + 1310 = 2738, + 258 = 2996; + 70 + 120 = 3186, + 774.
    let access = WifiConfig { rts_threshold: Some(Bytes::new(1000)), ..n() };
    assert_eq!(two_and_one(access, Standard::B), [(774, 'A'), (2738, 'C'), (3960, 'B')]);
}

/// ```text
///       0              272           494   564                        collision of RTS at 2 Mb/s, for want of a CTS
///  1 n  |RTS...........|timeout......|......|-- 1 slot of 31
///  2 n  |RTS...........|timeout......|......|-- 6 slots of 31
/// ```
#[test]
fn an_rts_at_a_dsss_rate_has_its_timeout() {
    // SIFS 10, slot 20, 192 of preamble. Station 1 draws as "1": 6 of 31; station 0 as "0": 1 of 31.
    let access = WifiConfig { rts_threshold: Some(Bytes::new(1000)), ..n() };
    let mut network = Network::new(&mixed(access, &[Standard::N, Standard::N, Standard::B]), 3).unwrap();
    [0, 1].into_iter().for_each(|station| network.offer(us(0), packet(station, 3, 1500, station)).unwrap());
    let first = run(&mut network, us(1_000_000))[0].at;
    // 272 + 222 + 70 + 20 = 584, + 540 + 234.
    assert_eq!(first, us(584 + 774) + Span::from_nanos(120));
}

#[test]
fn each_station_is_sent_what_it_understands() {
    // Ten packets each to stations of g, n and ax, all queued before the first is sent but one.
    let ax = Modulation { width: ChannelWidth::Mhz20, ..Modulation::new(Standard::Ax) };
    let access = WifiConfig { band: Band::Ghz2_4, modulation: ax, ..WifiConfig::new(Standard::Ax) };
    let mut network = Network::new(&mixed(access, &[Standard::G, Standard::N, Standard::Ax]), 3).unwrap();
    for number in 0..30 {
        network.offer(us(0), packet(3, number % 3, 1500, number)).unwrap();
    }
    assert_eq!(run(&mut network, us(1_000_000)).len(), 30);
    let stations = network.statistics(us(1_000_000)).stations;
    let down: Vec<_> = stations.iter().map(|station| (station.down.transmissions, station.down.frames)).collect();
    assert_eq!(down, [(10, 10), (1, 10), (1, 10)]);
    let rates: Vec<_> = stations.iter().map(|station| station.down.phy_rate.as_mbps()).collect();
    assert_eq!((rates[0], rates[1]), (54.0, 65.0));
    assert!((rates[2] - 143.4).abs() < 0.1, "{rates:?}");
}

#[test]
fn a_mark_is_nothing_to_a_station_without_categories() {
    let mut network = Network::new(&mixed(n(), &[Standard::G, Standard::N]), 3).unwrap();
    let voice = |from, to, payload| Packet { dscp: 46, ..packet(from, to, 1500, payload) };
    // To and from the old one a mark changes no event.
    let plain = |network: &mut Network<u8>, dscp| {
        for number in 0..4 {
            network.offer(us(0), Packet { dscp, ..packet(0, 2, 1500, number) }).unwrap();
            network.offer(us(0), Packet { dscp, ..packet(2, 0, 1500, number) }).unwrap();
        }
        run(network, us(1_000_000)).iter().map(|delivery| (delivery.at, delivery.to)).collect::<Vec<_>>()
    };
    let mut other = Network::new(&mixed(n(), &[Standard::G, Standard::N]), 3).unwrap();
    assert_eq!(plain(&mut network, 46), plain(&mut other, 0));
    // The new one has voice: a queue of its own.
    network.offer(us(1_000_000), voice(1, 2, 0)).unwrap();
    assert_eq!([46, 0].map(|dscp| network.room_for(NodeId(1), dscp)), [199, 200]);
}

#[test]
fn an_older_station_has_the_widest_channel_and_the_highest_rate_of_both() {
    let rate = |access: WifiConfig, host: HostConfig| {
        let config = access_point(vec![host], AccessConfig::Wifi(access), instant_path());
        let mut network = Network::new(&config, 1).unwrap();
        network.offer(us(0), packet(0, 1, 1500, ())).unwrap();
        run(&mut network, us(1_000_000));
        network.statistics(us(1_000_000)).stations[0].up.phy_rate.as_mbps()
    };
    let old = |standard| HostConfig { standard: Some(standard), ..HostConfig::new(1) };
    let vht = Modulation { spatial_streams: 2, ..Modulation::new(Standard::Ac) };
    let ac = || WifiConfig { modulation: vht, ..WifiConfig::new(Standard::Ac) };
    // 40 MHz, MCS 7: 135 Mb/s a stream.
    assert_eq!(rate(ac(), old(Standard::N)), 270.0);
    assert_eq!(rate(ac(), HostConfig { spatial_streams: Some(1), ..old(Standard::N) }), 135.0);
    assert_eq!(rate(ac(), HostConfig { width: Some(ChannelWidth::Mhz20), ..old(Standard::N) }), 130.0);
    // The access point's MCS is a limit; guard intervals of 802.11ax are not the older ones'.
    let slow = |mcs, modulation| WifiConfig { modulation: Modulation { mcs, ..modulation }, ..ac() };
    assert_eq!(rate(slow(4, vht), old(Standard::N)), 162.0);
    // Over 20 MHz 802.11ac has no MCS 9.
    let narrow = HostConfig { width: Some(ChannelWidth::Mhz20), ..HostConfig::new(1) };
    assert_eq!(rate(ac(), narrow), 156.0);
    assert_eq!(rate(n(), old(Standard::B)), 11.0);
    assert_eq!(rate(n(), HostConfig { rate: Some(PhyRate::Mbps2.rate()), ..old(Standard::B) }), 2.0);
}

#[test]
fn rate_control_finds_a_mode_for_each() {
    let saturated = |rate_control, snr_db| {
        let access = WifiConfig { rate_control, retry_limit: 30, ..n() };
        let mut config = mixed(access, &[Standard::G, Standard::N]);
        config.hosts.iter_mut().for_each(|host| host.snr_db = Some(snr_db));
        let (_, statistics) = saturate(&config, 1, 5);
        statistics.stations.iter().map(|station| station.up.mean_phy_rate.as_mbps()).collect::<Vec<_>>()
    };
    // 30 dB: 54 and 65 Mb/s. 12 dB: 24 Mb/s (16-QAM 1/2, 0.1 % at 8.6 dB) or 36 (3/4, 0.1 % at 11.49), and MCS 4.
    assert_eq!(saturated(RateControl::Ideal, 30.0), [54.0, 65.0]);
    assert_eq!(saturated(RateControl::Ideal, 12.0), [36.0, 39.0]);
    let found = saturated(RateControl::MinstrelHt, 30.0);
    assert!(found[0] > 40.0 && found[1] > 45.0, "{found:?}");
}

/// The least that a station of 802.11g takes from those of 802.11n is protection.
#[test]
fn saturated_stations_pay_for_protection() {
    // One station alone: 37 + 67.5 + 44 of protection + 5366 + 10 + 38 of Block Ack; the g station has no packets.
    let mut config = mixed(n(), &[Standard::N, Standard::G]);
    config.hosts.truncate(1);
    let (alone, _) = saturate(&config, 1, 10);
    assert!((alone - 28.0 * 12_000.0 / 5518.5).abs() < 0.05, "{alone}");
    // In turn with the g station, whose frames take 254 + 44, both draw from the same window and have equal chances: the
    // shares of air time are as the durations.
    let (_, statistics) = saturate(&mixed(n(), &[Standard::N, Standard::G]), 1, 20);
    let [new, old] = [0, 1].map(|station| statistics.stations[station].up);
    let turns = new.transmissions as f64 / old.transmissions as f64;
    println!("{turns} turns of the new one for each of the old one");
    assert!((0.7..1.1).contains(&turns), "{turns}");
    let each = |air: Span, transmissions| air.as_secs_f64() * 1e6 / transmissions as f64;
    assert!((each(old.air, old.transmissions) - 254.0).abs() < 0.5);
    assert!((each(new.air, new.transmissions) - (44.0 + 5366.0)).abs() < 60.0);
}
