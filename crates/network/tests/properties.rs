//! What holds for every network and every sequence of offers.

use crate::common::{access_and_path, access_point};
use lasthop_network::{
    AccessConfig, Band, CakeConfig, Cause, ChannelWidth, CodelConfig, Config, Delivery, Destination, DeviceLimit,
    Discipline, FqCodelConfig, HostConfig, HostPath, Impairments, Mac80211Config, Modulation, Network, NodeId, Packet,
    PathConfig, PhyRate, QueueConfig, QueueId, RateControl, RateSet, Standard, WifiConfig, WiredAccessConfig,
};
use lasthop_units::{Bytes, Ecn, Probability, Rate, Span, Time};
use proptest::prelude::*;

#[derive(Clone, Debug)]
struct Offer {
    gap_ns: u64,
    from: u16,
    /// Past the nodes: a broadcast.
    to: u16,
    bytes: u64,
    dscp: u8,
}

/// So impatient that it drops within these short runs.
fn fq_codel() -> impl Strategy<Value = FqCodelConfig> {
    (0..1_000_000_u64, 1..3_000_000_u64, 1..4000_u64, 1..4_u32, 1..5_u32).prop_map(
        |(target, interval, quantum, flows, drop_batch)| FqCodelConfig {
            target: Span::from_nanos(target),
            interval: Span::from_nanos(interval),
            quantum: Bytes::new(quantum),
            flows,
            drop_batch,
            ce_threshold: None,
        },
    )
}

fn queues() -> impl Strategy<Value = QueueConfig> {
    let others = [
        Discipline::Codel(CodelConfig::DEFAULT),
        Discipline::Pie,
        Discipline::FqPie,
        Discipline::Red,
        Discipline::Cake(CakeConfig::DEFAULT),
    ];
    let disciplines = prop_oneof![
        2 => Just(Discipline::Fifo),
        1 => fq_codel().prop_map(Discipline::FqCodel),
        1 => prop::sample::select(others.to_vec()),
    ];
    (disciplines, 1..8_usize).prop_map(|(discipline, packets)| QueueConfig::of(discipline, packets))
}

fn wifi_queues() -> impl Strategy<Value = QueueConfig> {
    let devices = prop_oneof![Just(DeviceLimit::Airtime), Just(DeviceLimit::Aggregates)];
    let mac80211 =
        (fq_codel(), any::<bool>(), devices, 1..8_usize).prop_map(|(flows, airtime_fairness, device, packets)| {
            QueueConfig::of(Discipline::Mac80211(Mac80211Config { flows, airtime_fairness, device }), packets)
        });
    prop_oneof![3 => queues(), 1 => mac80211]
}

fn wifi_configs() -> impl Strategy<Value = WifiConfig> {
    let standards = prop_oneof![Just(Standard::B), Just(Standard::G), Just(Standard::Bg)];
    let controls = prop_oneof![
        Just(RateControl::Fixed),
        Just(RateControl::Arf),
        Just(RateControl::Aarf),
        Just(RateControl::Minstrel)
    ];
    let errors = prop_oneof![Just(0.0), 0.0..0.6].boxed();
    let older = (standards, controls, any::<bool>(), wifi_queues(), errors.clone(), 1..9_u8, any::<bool>()).prop_map(
        |(standard, rate_control, all_rates, queue, errors, retry_limit, short_preamble)| WifiConfig {
            rate_control,
            rate_set: if all_rates { RateSet::All } else { RateSet::Ofdm },
            access_point_queue: queue,
            frame_error_rate: Probability::new(errors).unwrap(),
            retry_limit,
            short_preamble,
            protection_rate: PhyRate::Mbps11,
            ..WifiConfig::new(standard)
        },
    );
    let standards = prop_oneof![Just(Standard::N), Just(Standard::Ac), Just(Standard::Ax)];
    let limits = (
        prop_oneof![1..5_u16, 1..=64_u16, 1..=256_u16],
        300..5485_u64,
        prop_oneof![Just(None), (0..4000_u64).prop_map(Some)],
        prop_oneof![Just(0), 0..5000_u64],
        0..17_u64,
        any::<bool>(),
        prop_oneof![2 => Just(0), 1 => 100..4066_u64],
    );
    let later = (standards, 0..8_u8, limits, wifi_queues(), errors, 0.0..0.3, 1..9_u8).prop_map(
        |(
            standard,
            mcs,
            (frames, max_ppdu, rts_threshold, txop, spacing, rts_on_retry, amsdu),
            queue,
            errors,
            response_errors,
            retry_limit,
        )| {
            WifiConfig {
                modulation: Modulation { mcs, ..Modulation::new(standard) },
                aggregate_frames: frames.min(WifiConfig::new(standard).aggregate_frames),
                max_ppdu: Span::from_micros(max_ppdu),
                rts_threshold: rts_threshold.map(Bytes::new),
                access_point_txop: Span::from_micros(txop),
                start_spacing: Span::from_micros(spacing),
                rts_on_retry,
                amsdu_bytes: Bytes::new(amsdu),
                access_point_queue: queue,
                frame_error_rate: Probability::new(errors).unwrap(),
                response_error_rate: Probability::new(response_errors).unwrap(),
                retry_limit,
                ..WifiConfig::new(standard)
            }
        },
    );
    prop_oneof![older, later]
}

fn access_configs() -> impl Strategy<Value = AccessConfig> {
    let wired = (1.0..100.0, 0..2_000_000_u64, queues()).prop_map(|(mbps, delay, queue)| {
        let rate = Rate::from_mbps(mbps);
        AccessConfig::Wired(WiredAccessConfig { rate, delay: Span::from_nanos(delay), queue })
    });
    prop_oneof![4 => wifi_configs().prop_map(AccessConfig::Wifi), 1 => wired]
}

fn configs() -> impl Strategy<Value = Config> {
    let own_path = (0..3_000_000_u64, 0..3_000_000_u64, prop_oneof![Just(0), 1..5_000_000_u64]).prop_map(
        |(shortest, more, change_every)| HostPath {
            rtt: (Span::from_nanos(shortest), Span::from_nanos(shortest + more)),
            change_every: Span::from_nanos(change_every),
        },
    );
    let own_path = prop_oneof![3 => Just(None), 1 => own_path.prop_map(Some)];
    let turnaround = (0..400_000_u64, 0..400_000_u64)
        .prop_map(|(shortest, more)| (Span::from_nanos(shortest), Span::from_nanos(shortest + more)));
    let turnaround = prop_oneof![Just((Span::ZERO, Span::ZERO)), turnaround];
    let host = (1..6_usize, own_path, turnaround).prop_map(|(queue, path, turnaround)| HostConfig {
        path,
        turnaround,
        ..HostConfig::new(queue)
    });
    let hosts = prop::collection::vec(host, 1..7);
    let path = (0..3_000_001_u64, 1.0..1000.0, prop_oneof![Just(0.0), 0.0..0.3], 1..8_usize).prop_map(
        |(rtt, mbps, loss, queue_packets)| PathConfig {
            rtt: Span::from_nanos(rtt),
            rate: Rate::from_mbps(mbps),
            loss: Probability::new(loss).unwrap(),
            queue_packets,
            back_loss: Probability::ZERO,
            impairments: [Impairments::NONE; 2],
        },
    );
    let controls = prop_oneof![Just(RateControl::Fixed), Just(RateControl::MinstrelHt), Just(RateControl::Ideal)];
    let snrs = prop::collection::vec(prop_oneof![2 => Just(None), 1 => (0.0..30.0).prop_map(Some)], 6);
    let ages = prop_oneof![Just(None), (any::<bool>(), prop::collection::vec(0..4_usize, 6)).prop_map(Some)];
    (hosts, access_configs(), path, controls, 1..=2_u8, snrs, ages).prop_map(
        |(mut hosts, mut access, path, rate_control, spatial_streams, snrs, ages)| {
            if let AccessConfig::Wifi(wifi) = &mut access
                && wifi.standard.aggregates()
            {
                wifi.rate_control = rate_control;
                wifi.modulation.spatial_streams = spatial_streams;
                hosts.iter_mut().zip(snrs).for_each(|(host, snr_db)| host.snr_db = snr_db);
                if let Some((in_2_4_ghz, ages)) = ages {
                    grow_old(wifi, &mut hosts, in_2_4_ghz, &ages);
                }
            }
            access_point(hosts, access, path)
        },
    )
}

/// Makes stations older than the access point, by their ages.
fn grow_old(wifi: &mut WifiConfig, hosts: &mut [HostConfig], in_2_4_ghz: bool, ages: &[usize]) {
    let older: &[Standard] = match (wifi.standard, in_2_4_ghz) {
        (Standard::N | Standard::Ax, true) => {
            wifi.band = Band::Ghz2_4;
            wifi.modulation.width = ChannelWidth::Mhz20;
            &[Standard::N, Standard::G, Standard::B]
        }
        (Standard::Ac, _) => &[Standard::N],
        (Standard::Ax, false) => &[Standard::Ac, Standard::N],
        _ => &[],
    };
    for (host, &age) in hosts.iter_mut().zip(ages) {
        host.standard = age.checked_sub(1).and_then(|age| older.get(age)).copied();
        host.spatial_streams = (age == 1).then_some(1);
        if host.standard == Some(Standard::B) {
            host.snr_db = None;
        }
    }
}

fn offers() -> impl Strategy<Value = Vec<Offer>> {
    // Often at the same time or within a slot of each other, sometimes after all has calmed down.
    let gaps = prop_oneof![3 => Just(0), 3 => 0..20_000_u64, 3 => 0..2_000_000_u64, 1 => Just(20_000_000)];
    // Best effort, background, video, voice.
    let marks = prop_oneof![4 => Just(0_u8), 1 => Just(8), 1 => Just(34), 1 => Just(46)];
    let offer = (gaps, any::<u16>(), any::<u16>(), prop_oneof![Just(1500), 1..1500_u64], marks)
        .prop_map(|(gap_ns, from, to, bytes, dscp)| Offer { gap_ns, from, to, bytes, dscp });
    prop::collection::vec(offer, 0..80)
}

/// The offers as packets numbered in order, with their times.
fn packets(config: &Config, offers: &[Offer]) -> Vec<(Time, Packet<usize>)> {
    let nodes = config.hosts.len() as u16 + 1;
    let mut now = Time::ZERO;
    let numbered = offers.iter().enumerate();
    numbered
        .map(|(number, offer)| {
            now += Span::from_nanos(offer.gap_ns);
            let to = offer.to % (nodes + 1);
            let to = if to == nodes { Destination::Broadcast } else { Destination::Node(NodeId(to)) };
            let from = NodeId(offer.from % nodes);
            (
                now,
                Packet {
                    from,
                    to,
                    size: Bytes::new(offer.bytes),
                    flow: offer.bytes as u32 % 5,
                    dscp: offer.dscp,
                    ecn: Ecn::of_bits(number as u8),
                    id: 0,
                    payload: number,
                },
            )
        })
        .collect()
}

fn places(config: &Config) -> Vec<(QueueId, usize)> {
    let (access, path) = access_and_path(config);
    let hosts = config.hosts.iter().enumerate();
    // One queue for each access category.
    let queues = if matches!(access, AccessConfig::Wifi(wifi) if wifi.standard.aggregates()) { 4 } else { 1 };
    let mut places: Vec<_> =
        hosts.map(|(host, at)| (QueueId::Host(NodeId(host as u16)), queues * at.queue_packets)).collect();
    places.push((
        QueueId::AccessPoint,
        match access {
            AccessConfig::Wifi(wifi) => {
                let QueueConfig { discipline, packets, .. } = wifi.access_point_queue;
                // Its limit is of what waits above the device queue.
                if matches!(discipline, Discipline::Mac80211(_)) { usize::MAX } else { queues * packets }
            }
            AccessConfig::Wired(wired) => wired.queue.packets,
        },
    ));
    places.push((QueueId::PathUp, path.queue_packets));
    places.push((QueueId::PathDown, path.queue_packets));
    places
}

/// Offers everything, calling `advance` at the offers and wherever `extra` (ns) says; then runs until nothing happens any more.
fn drive(config: &Config, seed: u64, offers: &[Offer], extra: &[u64]) -> (Network<usize>, Vec<Delivery<usize>>) {
    let mut network = Network::new(config, seed).unwrap();
    let mut deliveries = Vec::new();
    let mut extra = extra.to_vec();
    extra.sort_unstable();
    let mut extra = extra.into_iter().peekable();
    for (now, packet) in packets(config, offers) {
        while let Some(at) = extra.next_if(|&at| Time::from_nanos(at) <= now) {
            network.advance(Time::from_nanos(at), &mut deliveries);
        }
        let room = network.room_for(packet.from, packet.dscp);
        let taken = network.offer(now, packet).is_ok();
        // Room may have grown by what happened until now, never shrunk.
        assert!(taken || room == 0, "a packet was refused where there was room for {room}");
        for (place, limit) in places(config) {
            assert!(network.queue_packets(place) <= limit, "{place:?} is over its limit");
        }
    }
    while let Some(at) = network.next_wakeup() {
        network.advance(at.max(extra.next().map_or(at, Time::from_nanos)), &mut deliveries);
    }
    (network, deliveries)
}

/// The least time that anything takes from a host: its bits at the highest rate there is.
fn least_time(config: &Config, packet: &Packet<usize>) -> Span {
    let from_server = packet.from.index() == config.hosts.len();
    let (access, path) = access_and_path(config);
    let shortest = config.hosts.iter().map(|host| host.path.map_or(path.rtt, |own| own.rtt.0)).min();
    let rtt = shortest.unwrap_or(path.rtt).min(path.rtt);
    let path = path.rate.transmission_time(packet.size) + rtt / 2;
    let access = match access {
        AccessConfig::Wifi(wifi) if wifi.standard.aggregates() => {
            // Stations of 802.11g may be faster.
            wifi.modulation.rate(wifi.standard).max(PhyRate::Mbps54.rate()).transmission_time(packet.size)
        }
        AccessConfig::Wifi(wifi) => wifi.rate.rate().transmission_time(packet.size),
        AccessConfig::Wired(wired) => wired.rate.transmission_time(packet.size),
    };
    let to_server = packet.to == Destination::Node(NodeId(config.hosts.len() as u16));
    match (from_server, to_server) {
        (false, false) => access,
        (true, true) => path + path,
        _ => access + path,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn packets_are_delivered_or_counted_as_lost(config in configs(), seed: u64, offers in offers()) {
        let (network, deliveries) = drive(&config, seed, &offers, &[]);
        prop_assert_eq!(network.packets_inside(), 0);
        let packets = packets(&config, &offers);
        let mut copies = vec![0_u64; packets.len()];
        for delivery in &deliveries {
            let number = delivery.packet.payload;
            let sent = &packets[number].1;
            let ecn = if sent.ecn.may_be_marked() { delivery.packet.ecn } else { Ecn::NotEct };
            prop_assert!(ecn == sent.ecn || ecn == Ecn::Ce);
            prop_assert_eq!(&delivery.packet, &Packet { ecn, ..sent.clone() }, "packets arrive as they were sent, or marked");
            copies[number] += 1;
            match delivery.packet.to {
                Destination::Node(to) => prop_assert_eq!(delivery.to, to),
                Destination::Broadcast => {
                    prop_assert!(delivery.to != delivery.packet.from && delivery.to.index() < config.hosts.len());
                }
            }
        }
        // A broadcast to nobody (one host) leaves no trace.
        let audience = |packet: &Packet<usize>| match packet.to {
            Destination::Node(_) => 1,
            Destination::Broadcast => config.hosts.len() - usize::from(packet.from.index() < config.hosts.len()),
        };
        let statistics = network.statistics(Time::ZERO);
        let lost = |causes: &[Cause]| -> u64 {
            statistics.drops.iter().filter(|drops| causes.contains(&drops.cause)).map(|drops| drops.count).sum()
        };
        let of_all = [Cause::QueueFull, Cause::RetryLimit, Cause::RandomLoss, Cause::CoDel, Cause::TooLate, Cause::Early];
        let whole = lost(&of_all);
        let unicast = packets.iter().zip(&copies).filter(|((_, packet), _)| packet.to != Destination::Broadcast);
        let lost_unicast = unicast.filter(|(_, copies)| **copies == 0).count() as u64;
        prop_assert!(copies.iter().zip(&packets).all(|(&copies, (_, packet))| copies <= audience(packet) as u64));
        if let (AccessConfig::Wifi(_), _) = access_and_path(&config) {
            // Broadcasts either got onto the air as such, or were lost as a whole before.
            let broadcasts = packets.iter().filter(|(_, packet)| packet.to == Destination::Broadcast).count() as u64;
            prop_assert_eq!(lost_unicast + broadcasts - statistics.broadcasts, whole);
        } else {
            let silent = packets.iter().zip(&copies).filter(|((_, packet), copies)| audience(packet) > 0 && **copies == 0);
            let without_audience = packets.iter().filter(|(_, packet)| audience(packet) == 0).count() as u64;
            let silent = silent.count() as u64;
            prop_assert!(silent <= whole && whole <= silent + without_audience);
        }
        let single = lost(&[Cause::FrameError, Cause::Collision]);
        let broadcasts = packets.iter().zip(&copies).filter(|((_, packet), _)| packet.to == Destination::Broadcast);
        let heard: u64 = broadcasts.map(|(_, copies)| copies).sum();
        if let (AccessConfig::Wifi(_), _) = access_and_path(&config) {
            // Each broadcast on the air was for all hosts (from the server), or for all but one.
            let hosts = config.hosts.len() as u64;
            let on_the_air = (hosts - 1) * statistics.broadcasts..=hosts * statistics.broadcasts;
            prop_assert!(on_the_air.contains(&(heard + single)));
        }
    }

    #[test]
    fn deliveries_come_in_order_and_never_too_early(config in configs(), seed: u64, offers in offers()) {
        let (_, deliveries) = drive(&config, seed, &offers, &[]);
        let packets = packets(&config, &offers);
        prop_assert!(deliveries.is_sorted_by_key(|delivery| delivery.at));
        for delivery in &deliveries {
            let (offered, packet) = &packets[delivery.packet.payload];
            prop_assert!(delivery.at >= *offered + least_time(&config, packet));
        }
    }

    #[test]
    fn packets_of_a_flow_and_category_arrive_in_order(config in configs(), seed: u64, offers in offers()) {
        let (_, deliveries) = drive(&config, seed, &offers, &[]);
        let mut last = std::collections::HashMap::new();
        for Delivery { to, packet, .. } in deliveries {
            if packet.to != Destination::Broadcast {
                let before = last.insert((packet.from, to, packet.flow, packet.dscp), packet.payload);
                prop_assert!(before.is_none_or(|before| before < packet.payload), "{:?} before {:?}", before, packet);
            }
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_run(config in configs(), seed: u64, offers in offers()) {
        let run = || {
            let (network, deliveries) = drive(&config, seed, &offers, &[]);
            format!("{deliveries:?} {:?}", network.statistics(Time::ZERO))
        };
        prop_assert_eq!(run(), run());
    }

    #[test]
    fn calling_late_or_often_moves_no_event(
        config in configs(),
        seed: u64,
        offers in offers(),
        extra in prop::collection::vec(0..60_000_000_u64, 0..60),
    ) {
        let (_, plain) = drive(&config, seed, &offers, &[]);
        let (_, with_extra_calls) = drive(&config, seed, &offers, &extra);
        prop_assert_eq!(plain, with_extra_calls);
    }

    #[test]
    fn the_uses_of_air_time_add_up(wifi in wifi_configs(), seed: u64, offers in offers(), reset_at in 0..10_000_000_u64) {
        let path = PathConfig {
            rtt: Span::from_micros(100),
            rate: Rate::from_mbps(100.0),
            loss: Probability::ZERO,
            queue_packets: 10, back_loss: Probability::ZERO, impairments: [Impairments::NONE; 2] };
        let hosts = vec![HostConfig::new(5); 4];
        let config = access_point(hosts, AccessConfig::Wifi(wifi), path);
        let mut network = Network::new(&config, seed).unwrap();
        let mut since = Time::ZERO;
        for (now, packet) in packets(&config, &offers) {
            let _refused = network.offer(now, packet);
            if since == Time::ZERO && now >= Time::from_nanos(reset_at) {
                network.reset_statistics(now);
                since = now;
            }
            let statistics = network.statistics(now);
            prop_assert_eq!(statistics.air.total(), now - since);
            prop_assert_eq!(statistics.elapsed, now - since);
        }
    }
}
