//! The air between radios that bring their rates with them, against plain arithmetic and against the medium of whole networks.

use crate::common::{saturate, us, wifi};
use lasthop_network::random::Streams;
use lasthop_network::wifi::radios::{Air, Counts, Event, Frame, MOST_RATES, Receivers, Tries, TryRate};
use lasthop_network::{
    AirTime, Cells, GuardInterval, Hearing, HearingLevel, HostConfig, Modulation, PhyRate, Standard, WifiConfig,
};
use lasthop_units::{Probability, Span, Time};

/// MAC header (24), LLC/SNAP (8), FCS (4) around a packet of 1500 bytes.
const MPDU: u64 = 1500 + 36;

fn air(config: &WifiConfig, radios: usize) -> Air<u32> {
    air_of(config, radios, None)
}

fn air_of(config: &WifiConfig, radios: usize, cells: Option<&Cells>) -> Air<u32> {
    let hosts = vec![HostConfig::new(1); radios];
    let mut air = Air::new(config, &hosts, cells, Streams::new(1), 2437);
    (0..radios).for_each(|number| assert_eq!(air.add_radio(), number));
    air
}

fn tries(mbps: PhyRate, count: u8) -> Option<Tries> {
    Some(Tries { rate: TryRate::Legacy(mbps), count, rts: false })
}

fn frame(from: usize, to: Receivers, series: [Option<Tries>; MOST_RATES]) -> Frame<u32> {
    Frame {
        from,
        to,
        wants_acknowledgement: true,
        bytes: MPDU,
        user_priority: None,
        aggregates: 0,
        sequence: 0,
        from_access_point: false,
        series,
        tag: 0,
    }
}

/// All that happens.
fn run(air: &mut Air<u32>) -> Vec<Event<u32>> {
    let mut events = Vec::new();
    while let Some(at) = air.next_wakeup() {
        air.advance(at, &mut events);
    }
    events
}

/// Radios 1 to `stations` always have frames of 1500-byte packets for radio 0, like that of `of`. Gives what was acknowledged,
/// in Mb/s of these packets, by station.
fn saturated(
    config: &WifiConfig,
    stations: usize,
    seconds: u64,
    of: impl Fn(usize) -> Frame<u32>,
) -> (Vec<f64>, Counts, AirTime) {
    saturate_air(air(config, stations + 1), stations, seconds, of)
}

fn saturate_air(
    mut air: Air<u32>,
    stations: usize,
    seconds: u64,
    of: impl Fn(usize) -> Frame<u32>,
) -> (Vec<f64>, Counts, AirTime) {
    for station in 1..=stations {
        (0..2).for_each(|_| air.offer(Time::ZERO, Frame { tag: station as u32, ..of(station) }));
    }
    let (end, mut events) = (Time::ZERO + Span::from_secs(seconds), Vec::new());
    let mut acknowledged = vec![0_u64; stations];
    while let Some(at) = air.next_wakeup().filter(|&at| at < end) {
        air.advance(at, &mut events);
        for event in events.drain(..) {
            if let Event::Done { is_acknowledged, tag, .. } = event {
                let station = tag as usize;
                acknowledged[station - 1] += u64::from(is_acknowledged);
                air.offer(at, Frame { tag, ..of(station) });
            }
        }
    }
    let mbps = |packets: u64| packets as f64 * 12_000.0 / 1e6 / seconds as f64;
    (acknowledged.into_iter().map(mbps).collect(), *air.counts(), air.air(end))
}

#[test]
fn one_radio_gets_what_its_cycle_says() {
    // Data, SIFS and ACK, DIFS, mean backoff CWmin / 2 slots: as in saturation.rs.
    // 54 Mb/s: 254 + 44 + 28 + 67.5 = 393.5 us; 6 Mb/s: 2233.5; 11 Mb/s of 802.11b: 1928; behind a CTS-to-self: 756.
    for (standard, rate, cycle_us) in [
        (Standard::G, PhyRate::Mbps54, 393.5),
        (Standard::G, PhyRate::Mbps6, 2233.5),
        (Standard::B, PhyRate::Mbps11, 1928.0),
        (Standard::Bg, PhyRate::Mbps54, 756.0),
    ] {
        let series = [tries(rate, 7), None, None, None];
        let (mbps, counts, _) =
            saturated(&WifiConfig::new(standard), 1, 60, |from| frame(from, Receivers::One(0), series));
        let expected = 12_000.0 / cycle_us;
        println!("{standard} {rate}: {:.4} Mb/s, expected {expected:.4}", mbps[0]);
        assert!((mbps[0] / expected - 1.0).abs() < 0.003, "{standard} at {rate}: {} Mb/s", mbps[0]);
        assert_eq!((counts.collisions, counts.given_up), (0, 0));
    }
}

#[test]
fn a_cycle_of_802_11n_has_its_preamble_its_symbols_and_the_space_of_its_category() {
    // MCS 7 with the short guard interval at 5 GHz: 36 us of preamble, and ceil((22 + 8 (1536 + 2)) / 260) = 48 symbols of
    // 3.6 us; SIFS 16 and 28 of ACK at 24 Mb/s; AIFS 16 + 3 * 9; 7.5 slots. Video: AIFS 16 + 2 * 9, 3.5 slots, and eleven frames
    // with SIFS between them fit into 3008 us. Voice: 1.5 slots, and five in 1504 us.
    let modulation = Modulation { guard_interval: GuardInterval::Ns400, ..Modulation::new(Standard::N) };
    let data_us = 36.0 + 48.0 * 3.6 + 44.0;
    let txop = |frames: f64, backoff_us: f64| data_us + ((frames - 1.0) * 16.0 + 34.0 + backoff_us) / frames;
    for (user_priority, cycle_us) in [(0, data_us + 43.0 + 67.5), (5, txop(11.0, 31.5)), (6, txop(5.0, 13.5))] {
        let of = |from| {
            let series = [Some(Tries { rate: TryRate::Later(modulation), count: 7, rts: false }), None, None, None];
            let user_priority = Some(user_priority);
            Frame { user_priority, bytes: MPDU + 2, ..frame(from, Receivers::One(0), series) }
        };
        let (mbps, counts, _) = saturated(&WifiConfig::new(Standard::N), 1, 30, of);
        let expected = 12_000.0 / cycle_us;
        assert!((mbps[0] / expected - 1.0).abs() < 0.003, "priority {user_priority}: {} for {expected}", mbps[0]);
        assert_eq!(counts.foreign_rates, 0);
    }
}

/// The same contention from two files: what is left is the statistical error, some 0.2 % each.
#[test]
fn saturated_radios_get_what_saturated_stations_of_a_network_get() {
    for stations in [2, 10] {
        let config = WifiConfig::new(Standard::G);
        let (network, _) = saturate(&wifi(stations, 1000, config.clone()), 1, 60);
        let series = [tries(PhyRate::Mbps54, 7), None, None, None];
        let (mbps, counts, _) = saturated(&config, stations, 60, |from| frame(from, Receivers::One(0), series));
        let total: f64 = mbps.iter().sum();
        println!("{stations} stations: {total:.4} Mb/s, a network {network:.4}; {} collisions", counts.collisions);
        assert!((total / network - 1.0).abs() < 0.01, "{stations} stations: {total} Mb/s, a network {network}");
        let mean = total / stations as f64;
        assert!(mbps.iter().all(|one| (one / mean - 1.0).abs() < 0.1), "unequal shares: {mbps:?}");
        assert!(counts.collisions > 0);
    }
}

#[test]
fn a_frame_is_tried_as_its_series_says_and_then_given_up() {
    let mut air = air(&WifiConfig::new(Standard::G), 2);
    let series = [tries(PhyRate::Mbps54, 2), tries(PhyRate::Mbps24, 1), tries(PhyRate::Mbps6, 1), None];
    air.offer(us(0), frame(1, Receivers::Nobody, series));
    let events = run(&mut air);
    assert!(matches!(events[..], [Event::Done { is_acknowledged: false, made: [2, 1, 1, 0], .. }]), "{events:?}");
    // Twice 254 us; at 24 Mb/s 20 + 4 ceil(12310 / 96) + 6 = 542; at 6 Mb/s 20 + 4 ceil(12310 / 24) + 6 = 2078.
    assert_eq!(air.air(events[0].at()).error, Span::from_micros(2 * 254 + 542 + 2078));
    let Counts { tries, errors, given_up, acknowledged, .. } = *air.counts();
    assert_eq!((tries, errors, given_up, acknowledged), (4, 4, 1, 0));
}

#[test]
fn without_a_response_the_receiver_gets_the_frame_again_as_a_repetition() {
    let config = WifiConfig { response_error_rate: Probability::ONE, ..WifiConfig::new(Standard::G) };
    let mut air = air(&config, 2);
    air.offer(us(0), frame(1, Receivers::One(0), [tries(PhyRate::Mbps54, 2), None, None, None]));
    let events = run(&mut air);
    let received: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::Received { at, by: 0, is_repeated, .. } => Some((*at, *is_repeated)),
            _ => None,
        })
        .collect();
    // The medium was silent for long: it is sent at once, and takes 254 us.
    assert_eq!((received[0], received[1].1, received.len()), ((us(254), false), true, 2));
    assert!(matches!(events[2], Event::Done { is_acknowledged: false, made: [2, 0, 0, 0], .. }), "{events:?}");
}

#[test]
fn a_response_ends_a_frame_sifs_and_its_air_time_later() {
    let mut air = air(&WifiConfig::new(Standard::G), 2);
    let rts = Some(Tries { rts: true, ..tries(PhyRate::Mbps54, 1).unwrap() });
    for (number, series) in
        [[tries(PhyRate::Mbps54, 1), None, None, None], [rts, None, None, None]].into_iter().enumerate()
    {
        // A second later its timer has expired.
        let start = Time::ZERO + Span::from_secs(number as u64);
        air.offer(start, frame(1, Receivers::One(0), series));
        let events = run(&mut air);
        // SIFS 10 and the ACK at 24 Mb/s, 20 + 4 ceil(134 / 96) + 6 = 34. RTS 20 + 4 ceil(182 / 96) + 6 = 34, SIFS, CTS 34, SIFS.
        let before = [0, 34 + 10 + 34 + 10][number];
        assert_eq!(events[0].at(), start + Span::from_micros(before + 254));
        assert_eq!(events[1].at(), start + Span::from_micros(before + 254 + 44));
        assert!(matches!(events[1], Event::Done { is_acknowledged: true, .. }));
    }
}

#[test]
fn a_frame_for_all_is_tried_once_and_all_others_hear_it() {
    let mut air = air(&WifiConfig::new(Standard::G), 4);
    air.offer(us(0), frame(1, Receivers::All, [tries(PhyRate::Mbps6, 4), None, None, None]));
    let events = run(&mut air);
    let by: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::Received { by, .. } => Some(*by),
            Event::Done { .. } => None,
        })
        .collect();
    assert_eq!(by, [0, 2, 3]);
    assert!(matches!(events[3], Event::Done { is_acknowledged: false, made: [1, 0, 0, 0], .. }), "{events:?}");
    assert_eq!(air.air(us(2078)).broadcast, Span::from_micros(2078));
}

#[test]
fn of_one_radio_voice_goes_first_and_all_frames_come_to_an_end() {
    let mut air = air(&WifiConfig::new(Standard::N), 3);
    let series = [tries(PhyRate::Mbps24, 7), None, None, None];
    for (tag, (from, user_priority)) in
        (0..).zip([(1, None), (1, Some(0)), (1, Some(1)), (1, Some(7)), (2, Some(0)), (2, Some(5))])
    {
        for _ in 0..50 {
            air.offer(us(0), Frame { user_priority, tag, ..frame(from, Receivers::One(0), series) });
        }
    }
    let mut ends = [(0, us(0)); 6];
    for event in run(&mut air) {
        if let Event::Done { at, tag, .. } = event {
            let (done, last) = &mut ends[tag as usize];
            (*done, *last) = (*done + 1, at);
        }
    }
    assert!(ends.iter().all(|&(done, _)| done == 50), "{ends:?}");
    assert!(ends[3].1 < ends[1].1 && ends[1].1 < ends[2].1 && ends[5].1 < ends[4].1, "{ends:?}");
    let end = us(10_000_000);
    assert_eq!(air.air(end).total(), end - Time::ZERO);
}

#[test]
fn a_rate_that_the_standard_does_not_have_is_counted_and_replaced_by_a_slower_one() {
    let mut air = air(&WifiConfig::new(Standard::G), 2);
    // MCS 3 is 26 Mb/s, so it goes at 24: 542 us.
    let modulation = Modulation { mcs: 3, ..Modulation::new(Standard::N) };
    let later = Some(Tries { rate: TryRate::Later(modulation), count: 1, rts: false });
    air.offer(us(0), frame(1, Receivers::One(0), [later, None, None, None]));
    assert_eq!(run(&mut air)[0].at(), us(542));
    assert_eq!(air.counts().foreign_rates, 1);
}

#[test]
fn of_two_hundred_frames_that_wait_the_oldest_are_forgotten_but_the_one_that_is_tried() {
    let mut air = air(&WifiConfig::new(Standard::G), 2);
    let series = [tries(PhyRate::Mbps54, 7), None, None, None];
    for number in 0..=200 {
        air.offer(us(number), Frame { tag: number as u32, ..frame(1, Receivers::One(0), series) });
    }
    let done = |event: &Event<u32>| {
        matches!(event, Event::Done { .. }).then(|| match event {
            Event::Received { tag, .. } | Event::Done { tag, .. } => *tag,
        })
    };
    let tags: Vec<u32> = run(&mut air).iter().filter_map(done).collect();
    // 200 waited when the last one came: of the oldest 101 the first stays, and the newest 99 and that one.
    let expected: Vec<u32> = std::iter::once(0).chain(101..=200).collect();
    assert_eq!((tags, air.counts().dropped), (expected, 100));
}

#[test]
fn a_frame_is_repeated_once_it_was_sent_and_not_once_its_rts_was() {
    let mut air = air(&WifiConfig::new(Standard::G), 3);
    // Both begin in the same slot now and then: two RTS collide.
    let rts = Some(Tries { rate: TryRate::Legacy(PhyRate::Mbps54), count: 20, rts: true });
    for number in 0..50 {
        for from in 1..=2 {
            air.offer(
                us(number),
                Frame { tag: number as u32, ..frame(from, Receivers::One(0), [rts, None, None, None]) },
            );
        }
    }
    let events = run(&mut air);
    assert!(air.counts().collisions > 0);
    assert!(events.iter().all(|event| !matches!(event, Event::Received { is_repeated: true, .. })));
}

#[test]
fn a_station_of_802_11b_has_no_ofdm_rates() {
    let mut air = air(&WifiConfig::new(Standard::B), 2);
    air.offer(Time::ZERO, frame(1, Receivers::One(0), [tries(PhyRate::Mbps54, 1), None, None, None]));
    run(&mut air);
    assert_eq!((air.counts().foreign_rates, air.counts().acknowledged), (1, 1));
}

#[test]
fn behind_an_acknowledged_voice_frame_the_next_one_follows_after_sifs_and_behind_a_lost_one_not() {
    // MCS 0 of 802.11n takes 6.5 Mb/s: 36 + 4 ceil((22 + 8 * 400) / 26) = 532 us at 5 GHz; SIFS 16 and an ACK at 6 Mb/s, 44.
    let modulation = Modulation { mcs: 0, ..Modulation::new(Standard::N) };
    let modulation = Modulation { guard_interval: GuardInterval::Ns800, ..modulation };
    let series = [Some(Tries { rate: TryRate::Later(modulation), count: 1, rts: true }), None, None, None];
    let of = |to, tag| Frame { user_priority: Some(6), bytes: 400, tag, ..frame(1, to, series) };
    let mut air = air(&WifiConfig::new(Standard::N), 2);
    for (to, tag) in [(Receivers::One(0), 0), (Receivers::One(0), 1), (Receivers::One(0), 2), (Receivers::Nobody, 3)] {
        air.offer(us(0), of(to, tag));
    }
    let ends: Vec<_> = run(&mut air)
        .into_iter()
        .filter_map(|event| match event {
            Event::Done { at, tag, .. } => Some((tag, at)),
            Event::Received { .. } => None,
        })
        .collect();
    let [first, second, third, last] = ends[..] else { panic!("four frames: {ends:?}") };
    // An RTS of 52 us, a CTS of 44, and three SIFS. The second has none. With the third, 1504 us would be over.
    assert_eq!(first.1 - Time::ZERO, Span::from_micros(52 + 44 + 532 + 44 + 3 * 16), "{ends:?}");
    assert_eq!(second.1 - first.1, Span::from_micros(16 + 532 + 16 + 44), "{ends:?}");
    assert!(third.1 - second.1 >= Span::from_micros(34 + 720), "{ends:?}");
    assert_eq!((first.0, second.0, third.0, last.0), (0, 1, 2, 3));
}

/// One access point, radio 0, with stations that hear each other so.
fn stations_with(level: HearingLevel, stations: usize) -> Cells {
    let mut cells = Cells::in_full_hearing(1, vec![0; stations]);
    for one in 0..stations {
        (0..one).for_each(|other| cells.set_level(one, other, level));
    }
    cells
}

/// So many saturated radios at 54 Mb/s, with RTS or without: the sum in Mb/s.
fn at_54(cells: &Cells, rts: bool) -> (Vec<f64>, Counts) {
    let (config, stations) = (WifiConfig::new(Standard::G), cells.of_host.len());
    let series = [Some(Tries { rate: TryRate::Legacy(PhyRate::Mbps54), count: 7, rts }), None, None, None];
    let air = air_of(&config, stations + 1, Some(cells));
    let (mbps, counts, time) = saturate_air(air, stations, 30, |from| frame(from, Receivers::One(0), series));
    assert_eq!(time.total(), Span::from_secs(30));
    (mbps, counts)
}

#[test]
fn radios_that_each_hear_all_for_themselves_get_what_radios_on_one_medium_get() {
    let series = [tries(PhyRate::Mbps54, 7), None, None, None];
    for stations in [1, 2, 10] {
        let (mbps, counts) = at_54(&stations_with(HearingLevel::Hears, stations), false);
        let config = WifiConfig::new(Standard::G);
        let (together, all, _) = saturated(&config, stations, 30, |from| frame(from, Receivers::One(0), series));
        let [own, common] = [mbps.iter().sum::<f64>(), together.iter().sum()];
        println!("{stations} stations: {own:.3} Mb/s, on one medium {common:.3}; {counts:?}, {all:?}");
        assert!((own / common - 1.0).abs() < 0.015, "{stations} stations: {own} Mb/s, on one medium {common}");
    }
}

#[test]
fn hidden_radios_collapse_as_stations_of_a_network_do_and_rts_mends_it() {
    for (rts, least, most) in [(false, 0.5, 0.75), (true, 0.9, 1.05)] {
        let [near, hidden] =
            [HearingLevel::Hears, HearingLevel::Misses].map(|level| at_54(&stations_with(level, 2), rts));
        let share = hidden.0.iter().sum::<f64>() / near.0.iter().sum::<f64>();
        println!("RTS {rts}: {near:?}, hidden {hidden:?}: {share:.3}");
        assert!((least..most).contains(&share), "RTS {rts}: {share}");
        assert!(hidden.1.collided > near.1.collided && hidden.1.collisions > 0);
    }
}

#[test]
fn the_stronger_of_two_hidden_radios_is_received() {
    let mut cells = stations_with(HearingLevel::Misses, 2);
    // Node 2 is the access point. 9 dB more are not enough, 11 are.
    for (dbm, wins) in [(9.0, false), (11.0, true)] {
        cells.set(0, 2, Hearing { level: HearingLevel::Hears, dbm });
        let (mbps, _) = at_54(&cells, false);
        println!("{dbm} dB: {mbps:.2?}");
        assert_eq!(mbps[0] > 30.0, wins, "{mbps:?}");
    }
}

#[test]
fn a_frame_to_a_radio_that_does_not_hear_it_is_given_up_and_one_to_all_reaches_who_hears_it() {
    let cells = stations_with(HearingLevel::Misses, 3);
    let mut air = air_of(&WifiConfig::new(Standard::G), 4, Some(&cells));
    let series = [tries(PhyRate::Mbps54, 2), None, None, None];
    air.offer(us(0), frame(1, Receivers::One(2), series));
    air.offer(us(0), Frame { tag: 1, ..frame(1, Receivers::All, series) });
    let told: Vec<_> = run(&mut air)
        .into_iter()
        .map(|event| match event {
            Event::Received { by, tag, .. } => (tag, Some(by)),
            Event::Done { tag, is_acknowledged, .. } => {
                assert!(!is_acknowledged);
                (tag, None)
            }
        })
        .collect();
    assert_eq!(told, [(0, None), (1, Some(0)), (1, None)]);
    assert_eq!((air.counts().given_up, air.counts().tries, air.counts().errors), (1, 3, 2));
}

/// Two access points on one channel, radios 0 and 1, far from each other; a station between them that one of each does not hear.
#[test]
fn of_several_access_points_the_first_radios_are_these_and_stations_follow() {
    let mut cells = Cells::in_full_hearing(2, vec![0, 1]);
    // Nodes 0 and 1 are stations, 2 and 3 the access points.
    for (one, other) in [(0, 3), (1, 2), (0, 1), (2, 3)] {
        cells.set_level(one, other, HearingLevel::Misses);
    }
    let config = WifiConfig::new(Standard::G);
    let series = [tries(PhyRate::Mbps54, 7), None, None, None];
    // Radio 2 is the station of radio 0, and 3 that of 1: two cells that miss each other have each the whole medium.
    let mut air = air_of(&config, 4, Some(&cells));
    for number in 0..100 {
        for (from, to) in [(2, 0), (3, 1)] {
            air.offer(us(0), Frame { tag: number, ..frame(from, Receivers::One(to), series) });
        }
    }
    let events = run(&mut air);
    let last = events.last().expect("frames are done").at();
    assert_eq!((air.counts().acknowledged, air.counts().collided), (200, 0));
    // A cycle of one radio takes 393.5 us.
    assert!((last - Time::ZERO).as_secs_f64() < 0.044, "{last:?}");
}

/// The rate of a series at MCS 7 of 802.11n, with the short guard interval.
fn mcs_7(count: u8) -> [Option<Tries>; MOST_RATES] {
    let modulation = Modulation { guard_interval: GuardInterval::Ns400, ..Modulation::new(Standard::N) };
    [Some(Tries { rate: TryRate::Later(modulation), count, rts: false }), None, None, None]
}

#[test]
fn frames_of_an_agreement_are_sent_together_as_stations_of_a_network_do() {
    let mut config = WifiConfig::new(Standard::N);
    config.modulation.guard_interval = GuardInterval::Ns400;
    for (stations, frames) in [(1, 16), (5, 16), (5, 40)] {
        let of = |from| Frame {
            user_priority: Some(0),
            bytes: MPDU + 2,
            aggregates: frames,
            ..frame(from, Receivers::One(0), mcs_7(7))
        };
        let mut air = air(&config, stations + 1);
        // As many as are sent together, twice.
        for station in 1..=stations {
            (0..2 * frames).for_each(|_| air.offer(Time::ZERO, Frame { tag: station as u32, ..of(station) }));
        }
        let (end, mut events, mut acknowledged) = (Time::ZERO + Span::from_secs(20), Vec::new(), 0_u64);
        while let Some(at) = air.next_wakeup().filter(|&at| at < end) {
            air.advance(at, &mut events);
            for event in events.drain(..) {
                if let Event::Done { is_acknowledged, tag, .. } = event {
                    acknowledged += u64::from(is_acknowledged);
                    air.offer(at, Frame { tag, ..of(tag as usize) });
                }
            }
        }
        let mbps = acknowledged as f64 * 12_000.0 / 1e6 / 20.0;
        let like = WifiConfig { aggregate_frames: frames, ..config.clone() };
        let (network, _) = saturate(&wifi(stations, 1000, like), 1, 20);
        println!("{stations} stations, {frames} frames: {mbps:.3} Mb/s, a network {network:.3}; {:?}", air.counts());
        assert!(
            (mbps / network - 1.0).abs() < 0.015,
            "{stations} stations, {frames} frames: {mbps}, a network {network}"
        );
    }
}

#[test]
fn of_an_aggregate_what_was_lost_is_tried_again_and_the_rest_is_done() {
    let config = WifiConfig { frame_error_rate: Probability::new(0.5).unwrap(), ..WifiConfig::new(Standard::N) };
    let mut air = air(&config, 3);
    for tag in 0..100 {
        let to = Receivers::One(if tag % 2 == 0 { 1 } else { 2 });
        let frame = Frame { user_priority: Some(0), aggregates: 32, tag, ..frame(0, to, mcs_7(3)) };
        air.offer(us(0), frame);
    }
    let (mut received, mut done) = ([0_u32; 100], [None; 100]);
    for event in run(&mut air) {
        match event {
            Event::Received { by, tag, .. } => {
                assert_eq!(by, 1 + tag as usize % 2, "of {tag}");
                received[tag as usize] += 1;
            }
            Event::Done { tag, is_acknowledged, made, .. } => {
                assert_eq!(done[tag as usize].replace((is_acknowledged, made[0])), None, "{tag} is done once");
            }
        }
    }
    let of = |is: bool| done.iter().filter(|one| one.is_some_and(|(is_acknowledged, _)| is_acknowledged == is)).count();
    // Three tries each: an eighth is given up.
    assert!(of(true) + of(false) == 100 && (4..25).contains(&of(false)), "{done:?}");
    assert!(done.iter().zip(received).all(|(one, received)| one.unwrap().0 == (received > 0)));
    assert!(air.counts().tries > 150);
}

/// What radio 1 sends to radio 0, by the times at which the frames were received: their numbers.
fn received_together(mut air: Air<u32>, frames: impl IntoIterator<Item = Frame<u32>>) -> Vec<(Time, Vec<u32>)> {
    for (tag, frame) in (0..).zip(frames) {
        air.offer(us(0), Frame { tag, ..frame });
    }
    let mut together: Vec<(Time, Vec<u32>)> = Vec::new();
    for event in run(&mut air) {
        if let Event::Received { at, tag, .. } = event {
            match together.last_mut().filter(|(last, _)| *last == at) {
                Some((_, tags)) => tags.push(tag),
                None => together.push((at, vec![tag])),
            }
        }
    }
    together
}

/// A frame of 60 bytes with this sequence number, of an agreement of so many.
fn of_agreement(aggregates: u16, sequence: u16) -> Frame<u32> {
    let priority = Some(0);
    Frame { user_priority: priority, bytes: 60, aggregates, sequence, ..frame(1, Receivers::One(0), mcs_7(3)) }
}

#[test]
fn an_aggregate_stays_within_the_window_of_its_agreement() {
    let together = |frames: Vec<Frame<u32>>| -> Vec<usize> {
        let air = air(&WifiConfig::new(Standard::N), 2);
        received_together(air, frames).into_iter().map(|(_, tags)| tags.len()).collect()
    };
    // Numbers 4094, 4095, 0 and 1 are four in a row; 2 is beyond. So is 1 where 0 is missing.
    let numbered = |numbers: &[u16]| numbers.iter().map(|&number| of_agreement(4, number)).collect();
    assert_eq!(together(numbered(&[4094, 4095, 0, 1, 2, 3])), [4, 2]);
    assert_eq!(together(numbered(&[4094, 4095, 1, 2])), [3, 1]);
    // No Block Ack of 802.11n tells of more than 64.
    assert_eq!(together((0..100).map(|number| of_agreement(256, number)).collect()), [64, 36]);
    // Frames without the agreement go alone, and so do those at rates that are replaced by legacy ones.
    let alone = Frame { aggregates: 0, ..of_agreement(0, 0) };
    let no_answer = Frame { wants_acknowledgement: false, ..of_agreement(4, 1) };
    assert_eq!(together(vec![of_agreement(4, 0), alone, no_answer, of_agreement(4, 1)]), [2, 1, 1]);
    let air = air(&WifiConfig::new(Standard::G), 2);
    assert_eq!(received_together(air, (0..4).map(|number| of_agreement(4, number))).len(), 4);
}

#[test]
fn behind_rts_an_aggregate_ends_within_its_txop() {
    // Video has 3008 us; 64 bytes at MCS 0 of 802.11n (6.5 Mb/s) take 79 us, and the Block Ack SIFS 16 and 68 at 6 Mb/s.
    let modulation = Modulation { mcs: 0, guard_interval: GuardInterval::Ns800, ..Modulation::new(Standard::N) };
    for rts in [false, true] {
        let series = [Some(Tries { rate: TryRate::Later(modulation), count: 1, rts }), None, None, None];
        let of = |number| Frame { user_priority: Some(5), series, ..of_agreement(64, number) };
        let together = received_together(air(&WifiConfig::new(Standard::N), 2), (0..60).map(of));
        let end = together[0].0 + Span::from_micros(16 + 68);
        println!("RTS {rts}: {} until {end:?}", together[0].1.len());
        assert!(end <= us(3008) && end > us(3008 - 79 - 8), "RTS {rts}: {end:?}");
    }
}

#[test]
fn frames_for_all_that_collide_are_counted_where_each_radio_hears_for_itself() {
    let cells = stations_with(HearingLevel::Misses, 2);
    let mut air = air_of(&WifiConfig::new(Standard::G), 3, Some(&cells));
    for from in [1, 2] {
        air.offer(us(0), frame(from, Receivers::All, [tries(PhyRate::Mbps54, 1), None, None, None]));
    }
    assert!(run(&mut air).iter().all(|event| matches!(event, Event::Done { .. })));
    assert_eq!((air.counts().collided, air.counts().collisions), (2, 1));
}

/// Frames of all categories, to one, to all and to nobody, that come and go, with losses: nothing is forgotten on the air.
#[test]
fn every_frame_is_done_at_last() {
    let modulation = Modulation { mcs: 4, ..Modulation::new(Standard::N) };
    for seed in 0..40_u64 {
        let config = WifiConfig {
            response_error_rate: Probability::new(0.02).expect("a share"),
            ..WifiConfig::new(Standard::N)
        };
        let hosts =
            vec![
                HostConfig { frame_error_rate: Some(Probability::new(0.2).expect("a share")), ..HostConfig::new(1) };
                2
            ];
        let mut air = Air::new(&config, &hosts, None, Streams::new(seed), 2437);
        (0..2).for_each(|_| _ = air.add_radio());
        let (mut now, mut offered, mut done, mut events) = (Time::ZERO, 0, 0, Vec::new());
        let mut draw = seed;
        while offered < 5_000 {
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            now += Span::from_nanos((draw >> 33) % 1_500_000);
            air.advance(now, &mut events);
            let from = (draw >> 20) as usize % 2;
            let series = [Some(Tries { rate: TryRate::Later(modulation), count: 4, rts: false }), None, None, None];
            for _ in 0..(draw >> 24) % 4 {
                let user_priority = [Some(6), Some(6), Some(7), Some(5), Some(0), None][(draw >> 28) as usize % 6];
                let to = [Receivers::One(1 - from), Receivers::One(1 - from), Receivers::All, Receivers::Nobody];
                let to = to[(draw >> 36) as usize % 4];
                let wants_acknowledgement = to != Receivers::All;
                let of = Frame { from_access_point: from == 0, wants_acknowledgement, ..frame(from, to, series) };
                air.offer(now, Frame { user_priority, bytes: 60 + (draw >> 40) % 1500, ..of });
                offered += 1;
            }
            done += events.drain(..).filter(|event| matches!(event, Event::Done { .. })).count();
        }
        events = run(&mut air);
        done += events.iter().filter(|event| matches!(event, Event::Done { .. })).count();
        assert_eq!(done + air.counts().dropped as usize, offered, "seed {seed}: {:?}", air.counts());
    }
}
