//! SNR and rate control of 802.11n and later, end to end.

use crate::common::{hosts, instant_path, packet, saturate, us};
use lasthop_network::{
    AccessConfig, Change, Changed, Config, HostConfig, Modulation, Network, NodeId, RateControl, Standard, Topology,
    WifiConfig,
};
use lasthop_units::{Bytes, Probability};

/// One saturated station of this SNR.
fn station(wifi: WifiConfig, snr_db: f64) -> Config {
    let access = AccessConfig::Wifi(wifi);
    let hosts = vec![HostConfig { snr_db: Some(snr_db), ..hosts(1, 8000).remove(0) }];
    Config::new(hosts, Topology::AccessPoint { access, path: instant_path() })
}

fn with(rate_control: RateControl, standard: Standard) -> WifiConfig {
    WifiConfig { rate_control, retry_limit: 0, ..WifiConfig::new(standard) }
}

/// IP throughput in Mb/s, and the mean PHY rate.
fn measure(config: &Config, seconds: u64) -> (f64, f64) {
    let (throughput, statistics) = saturate(config, 1, seconds);
    (throughput, statistics.stations[0].up.mean_phy_rate.as_mbps())
}

#[test]
fn where_nothing_gets_lost_the_snr_changes_nothing() {
    for standard in [Standard::N, Standard::Ac, Standard::Ax] {
        let with_snr = station(with(RateControl::Fixed, standard), 60.0);
        let without = Config { hosts: hosts(1, 8000), ..with_snr.clone() };
        let ideal = station(with(RateControl::Ideal, standard), 60.0);
        let counts = [with_snr, without, ideal].map(|config| saturate(&config, 1, 2));
        assert!(counts.windows(2).all(|two| two[0] == two[1]), "{counts:?}");
    }
}

/// The loss of MPDUs from the SNR against the same loss as a given rate.
#[test]
fn an_snr_loses_as_much_as_the_rate_of_the_table() {
    // HT20 MCS 7 at 17.99 dB: 10 % of 1458 B, so 1 - 0.9^(1542 / 1458) = 10.54 % of these frames.
    let snr = station(with(RateControl::Fixed, Standard::N), 17.99);
    let mut given = Config { hosts: hosts(1, 8000), ..snr.clone() };
    given.hosts[0].frame_error_rate = Some(Probability::new(0.1054).unwrap());
    let [(of_snr, statistics), (of_rate, _)] = [snr, given].map(|config| saturate(&config, 1, 20));
    let up = statistics.stations[0].up;
    let lost = up.errors as f64 / up.frames as f64;
    assert!((lost - 0.1054).abs() < 0.003, "{lost}");
    assert!((of_snr / of_rate - 1.0).abs() < 0.01, "{of_snr} and {of_rate}");
}

#[test]
fn a_lost_request_to_send_costs_little() {
    // 80 MHz at 13.5 dB, 7.5 of the width: MCS 9 never, its RTS at 24 Mb/s 1.2 %. At 9 dB no RTS is heard.
    let saturated = |snr_db, rts_threshold| {
        let wifi = WifiConfig { rts_threshold, ..with(RateControl::Fixed, Standard::Ac) };
        let (throughput, statistics) = saturate(&station(wifi, snr_db), 1, 2);
        assert_eq!(throughput, 0.0);
        let up = statistics.stations[0].up;
        assert!(up.transmissions > 100);
        (up, statistics.air.error.as_secs_f64() * 1e6 / up.transmissions as f64)
    };
    // The air that each transmission wastes: an RTS of 28 us, or 64 frames in 2068.
    let (up, wasted_us) = saturated(9.0, Some(Bytes::ZERO));
    assert_eq!((up.errors, up.air.as_nanos()), (0, 0));
    assert!((27.0..29.0).contains(&wasted_us), "{wasted_us}");
    let (_, wasted_us) = saturated(9.0, None);
    assert!((2050.0..2090.0).contains(&wasted_us), "{wasted_us}");
    let (up, _) = saturated(13.5, Some(Bytes::ZERO));
    assert!(up.errors > 0);
}

/// Goodput of the limit: it never falls as the SNR grows, and reaches that of the highest MCS.
#[test]
fn the_ideal_is_the_limit_of_each_fixed_mcs() {
    for (standard, streams) in [(Standard::N, 1), (Standard::Ac, 2)] {
        let modulation = Modulation { spatial_streams: streams, ..Modulation::new(standard) };
        let mut last = 0.0;
        for snr_db in [3.0, 5.0, 8.0, 12.0, 16.0, 20.0, 25.0, 30.0, 40.0] {
            let wifi = |rate_control| WifiConfig { modulation, ..with(rate_control, standard) };
            let (ideal, rate) = measure(&station(wifi(RateControl::Ideal), snr_db), 2);
            println!("{standard:?} {snr_db} dB: {ideal:.1} Mb/s at {rate:.1}");
            assert!(ideal >= last, "{standard:?} {snr_db} dB: {ideal} after {last}");
            last = ideal;
            for mcs in Modulation::mcss(standard, modulation.width, streams) {
                let mut config = station(wifi(RateControl::Fixed), snr_db);
                config.hosts[0].mcs = Some(mcs);
                let (fixed, _) = measure(&config, 1);
                assert!(fixed <= 1.02 * ideal, "{standard:?} {snr_db} dB: MCS {mcs} has {fixed}, the ideal {ideal}");
            }
        }
    }
}

fn walk(at_s: u64, snr_db: f64) -> Change {
    let snr_db = Some(snr_db);
    let what = Changed::Station { host: 0, rate: None, mcs: None, frame_error_rate: None, snr_db, held: None };
    Change { at: us(at_s * 1_000_000), what }
}

#[test]
fn the_ideal_follows_a_station_that_walks_at_once() {
    let standing = |snr_db| measure(&station(with(RateControl::Ideal, Standard::N), snr_db), 4).0;
    let mut walking = station(with(RateControl::Ideal, Standard::N), 30.0);
    walking.changes = vec![walk(3, 12.0)];
    // Two seconds of the four measured each.
    let (walked, _) = measure(&walking, 4);
    let expected = (standing(30.0) + standing(12.0)) / 2.0;
    assert!((walked / expected - 1.0).abs() < 0.01, "{walked} for {expected}");
}

#[test]
fn minstrel_ht_comes_within_a_tenth_of_the_limit() {
    use Standard::{Ac, Ax, N};
    for (standard, streams) in [(N, 1), (N, 2), (Ac, 1), (Ac, 2), (Ax, 2)] {
        let modulation = Modulation { spatial_streams: streams, ..Modulation::new(standard) };
        for snr_db in [5.0, 7.0, 9.0, 12.0, 14.0, 16.0, 18.0, 20.0, 25.0, 30.0, 35.0, 40.0] {
            let wifi = |rate_control| WifiConfig { modulation, ..with(rate_control, standard) };
            let of = |rate_control| measure(&station(wifi(rate_control), snr_db), 8);
            let [(ideal, best), (minstrel, rate)] = [RateControl::Ideal, RateControl::MinstrelHt].map(of);
            println!(
                "{standard:?}, {streams} streams, {snr_db} dB: {minstrel:.1} of {ideal:.1} Mb/s, {:.0} %, at {rate:.0} \
                 for {best:.0} Mb/s",
                100.0 * minstrel / ideal
            );
            // A hundredth for chance.
            assert!((0.89..1.01).contains(&(minstrel / ideal)), "{minstrel} of {ideal} Mb/s");
        }
    }
}

/// Each change falls into a transmission, whose end is for the controller before it.
#[test]
fn a_change_of_the_mcs_leaves_the_frame_on_the_air_to_the_controller_before() {
    let change = |(number, mcs)| {
        let what =
            Changed::Station { host: 0, rate: None, mcs: Some(mcs), frame_error_rate: None, snr_db: None, held: None };
        Change { at: us(1_000_000 + 333_333 * number), what }
    };
    let saturated = |rate_control| {
        let mut config = station(with(rate_control, Standard::N), 12.0);
        config.changes = (0_u64..).zip([2, 0, 7, 5, 1, 7, 3, 0]).map(change).collect();
        measure(&config, 4)
    };
    let [(ideal, _), (minstrel, rate)] = [RateControl::Ideal, RateControl::MinstrelHt].map(saturated);
    assert!((0.85..1.01).contains(&(minstrel / ideal)), "{minstrel} of {ideal} Mb/s");
    assert!(rate < 40.0, "{rate}");
}

/// Goodput of a saturated station, in Mb/s, in each tenth of a second.
fn tenths(config: &Config, count: u64) -> Vec<f64> {
    let mut network = Network::new(config, 1).unwrap();
    let tenth = |number: u64| {
        let now = us(100_000 * number);
        let mut delivered = Vec::new();
        network.advance(now, &mut delivered);
        while network.room(NodeId(0)) > 0 {
            network.offer(now, packet(0, 1, 1500, ())).unwrap();
        }
        delivered.len() as f64 * 12_000.0 / 1e5
    };
    (0..=count).map(tenth).skip(1).collect()
}

#[test]
fn minstrel_ht_follows_a_step_within_a_second() {
    for (standard, from, to) in
        [(Standard::N, 30.0, 8.0), (Standard::N, 8.0, 30.0), (Standard::Ac, 40.0, 12.0), (Standard::Ac, 12.0, 40.0)]
    {
        let walking = |rate_control| {
            let changes = vec![walk(3, to)];
            let goodput = tenths(&Config { changes, ..station(with(rate_control, standard), from) }, 60);
            // Before the step, then the second second after it.
            [20..30, 40..50].map(|range: std::ops::Range<usize>| goodput[range].iter().sum::<f64>() / 10.0)
        };
        let [ideal, minstrel] = [RateControl::Ideal, RateControl::MinstrelHt].map(walking);
        println!("{standard:?}, {from} to {to} dB: {minstrel:.1?} of {ideal:.1?} Mb/s");
        assert!(minstrel.iter().zip(ideal).all(|(one, limit)| *one > 0.9 * limit), "{minstrel:?} of {ideal:?}");
    }
}

/// Collisions lose all frames whatever the mode, so the order of modes stays. But ten stations send one A-MPDU each in
/// 50 ms, and the last ones decide.
#[test]
fn collisions_do_not_send_minstrel_ht_to_slow_modes() {
    for stations in [2, 10] {
        let of = |rate_control| {
            let wifi = WifiConfig { modulation: Modulation::new(Standard::N), ..with(rate_control, Standard::N) };
            let config = Config { hosts: hosts(stations, 1000), ..station(wifi, 40.0) };
            let (throughput, statistics) = saturate(&config, 1, 10);
            let rates = statistics.stations.iter().map(|station| station.up.mean_phy_rate.as_mbps());
            (throughput, rates.sum::<f64>() / stations as f64)
        };
        let [(fixed, _), (minstrel, rate)] = [RateControl::Fixed, RateControl::MinstrelHt].map(of);
        println!("{stations} stations: {minstrel:.1} of {fixed:.1} Mb/s, at {rate:.1} Mb/s");
        assert!(minstrel > 0.8 * fixed && rate > 55.0, "{stations}: {minstrel} of {fixed} Mb/s, at {rate}");
    }
}

/// ns-3 and ath9k count the retries of an RTS apart from those of its data. With an RTS before all frames only RTS collide.
#[test]
fn a_lost_rts_says_nothing_of_the_rate_of_its_data() {
    let rate = |rts_threshold| {
        let wifi = WifiConfig { rts_threshold, ..with(RateControl::Arf, Standard::G) };
        let (_, statistics) = saturate(&Config { hosts: hosts(10, 100), ..station(wifi, 60.0) }, 1, 10);
        statistics.stations.iter().map(|station| station.up.mean_phy_rate.as_mbps()).sum::<f64>() / 10.0
    };
    let [without, with_rts] = [rate(None), rate(Some(Bytes::ZERO))];
    println!("{without:.1} and {with_rts:.1} Mb/s");
    assert!(without < 50.0 && with_rts == 54.0, "{without} and {with_rts} Mb/s");
}
