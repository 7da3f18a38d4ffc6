//! Links, paths and stations that are held for a while: packets wait, and nothing is lost.

use crate::common::{access_point, hosts, packet, run, us, wifi};
use lasthop_network::{
    AccessConfig, Band, Cause, Change, Changed, Config, Delivery, DeviceLimit, Discipline, Impairments, Mac80211Config,
    Network, NodeId, PathConfig, QueueConfig, QueueId, RateControl, Standard, WifiConfig, WiredAccessConfig,
};
use lasthop_units::{Probability, Rate, Span, Time};
use proptest::prelude::*;

fn station(at_us: u64, host: usize, held: bool) -> Change {
    let held = Some(held);
    let what = Changed::Station { host, rate: None, mcs: None, frame_error_rate: None, snr_db: None, held };
    Change { at: us(at_us), what }
}

#[test]
fn path_and_wired_access_stand_still_in_the_middle_of_a_packet_both_ways() {
    // 1500 bytes take 12 us of access and 1 ms of path, and then 50 ms.
    let queue = QueueConfig::fifo(3);
    let access = WiredAccessConfig { rate: Rate::from_mbps(1000.0), delay: Span::ZERO, queue };
    let path = PathConfig {
        rtt: Span::from_millis(100),
        rate: Rate::from_mbps(12.0),
        loss: Probability::ZERO,
        queue_packets: 3,
        back_loss: Probability::ZERO,
        impairments: [Impairments::NONE; 2],
    };
    let config = access_point(hosts(1, 5), AccessConfig::Wired(access), path);
    let held = |held| Changed::Path { rtt: None, rate: None, loss: None, held: Some(held), opportunities: None };
    let at = |at_us, what| Change { at: us(at_us), what };
    let of_path = Config { changes: vec![at(512, held(true)), at(200_512, held(false))], ..config.clone() };
    let mut network = Network::new(&of_path, 1).expect("a network");
    (0..5).for_each(|number| network.offer(Time::ZERO, packet(0, 1, 1500, number)).expect("the host has room"));
    let received: Vec<_> = run(&mut network, us(400_000)).iter().map(|delivery| delivery.at).collect();
    // Half of the first has been sent; two wait behind it, and two find the queue of three full.
    assert_eq!(received, [us(251_012), us(252_012), us(253_012)]);
    let statistics = network.statistics(us(400_000));
    assert_eq!(statistics.dropped(QueueId::PathUp, Cause::QueueFull), 2);
    // It was busy for what its packets take, not for the hold.
    let up = statistics.links.iter().find(|link| link.place == QueueId::PathUp).expect("the path");
    assert_eq!(up.busy, Span::from_millis(3));
    // Down as well; and the access, up and down.
    let mut network = Network::new(&of_path, 1).expect("a network");
    network.offer(us(12), packet(1, 0, 1500, 0)).expect("there is room");
    assert_eq!(run(&mut network, us(400_000))[0].at, us(251_024));
    let held = |held| Changed::Wired { rate: None, delay: None, held: Some(held), opportunities: None };
    for (from, to, changes, received) in [
        (0, 1, [(6, true), (100_006, false)], 100_012 + 51_000),
        (1, 0, [(51_006, true), (100_006, false)], 100_012),
        // What comes during the hold waits for its end.
        (0, 1, [(0, true), (100_000, false)], 100_012 + 51_000),
    ] {
        let changes = changes.into_iter().map(|(at_us, is_held)| at(at_us, held(is_held))).collect();
        let mut network = Network::new(&Config { changes, ..config.clone() }, 1).expect("a network");
        network.offer(Time::ZERO, packet(from, to, 1500, 0)).expect("there is room");
        assert_eq!(run(&mut network, us(400_000))[0].at, us(received), "{from} {to}");
    }
}

/// Access points with each queue, before each generation.
fn access_points() -> Vec<WifiConfig> {
    let mac80211 = |device| {
        let config = Mac80211Config { device, ..Mac80211Config::default() };
        QueueConfig::of(Discipline::Mac80211(config), 500)
    };
    let queues = [
        QueueConfig::fifo(500),
        QueueConfig::fq_codel(500),
        mac80211(DeviceLimit::Airtime),
        mac80211(DeviceLimit::Aggregates),
    ];
    let standards = [Standard::G, Standard::N, Standard::Ac];
    let pairs = standards.into_iter().flat_map(|standard| queues.map(|queue| (standard, queue)));
    pairs
        .map(|(standard, access_point_queue)| {
            let errors = Probability::new(0.1).unwrap();
            WifiConfig {
                access_point_queue,
                band: Band::Ghz5,
                frame_error_rate: errors,
                retry_limit: 0,
                ..WifiConfig::new(standard)
            }
        })
        .map(|config| if config.standard == Standard::G { WifiConfig { band: Band::Ghz2_4, ..config } } else { config })
        .collect()
}

/// Offers a packet of 1000 bytes each millisecond down to one of three stations and one up from it, and returns what comes.
fn carried(config: &Config, until_us: u64) -> (Vec<Delivery<u64>>, Network<u64>) {
    let mut network = Network::new(config, 1).expect("a network");
    let mut deliveries = Vec::new();
    for number in 0..400 {
        let now = us(1000 * number);
        network.advance(now, &mut deliveries);
        let host = (number % 3) as u16;
        for (from, to) in [(3, host), (host, 3)] {
            network.offer(now, packet(from, to, 1000, number)).expect("there is room");
        }
    }
    network.advance(us(until_us), &mut deliveries);
    (deliveries, network)
}

#[test]
fn a_station_that_is_held_gets_and_sends_nothing_loses_nothing_and_holds_up_no_other() {
    for access in access_points() {
        let told = format!("{:?} {:?}", access.standard, access.access_point_queue);
        let plain = wifi(3, 500, access);
        let changes = vec![station(60_000, 0, true), station(210_000, 0, false)];
        let (deliveries, network) = carried(&Config { changes, ..plain.clone() }, 3_000_000);
        assert_eq!((deliveries.len(), network.packets_inside()), (800, 0), "{told}");
        assert_eq!(network.statistics(us(3_000_000)).drops, [], "{told}");
        let of_host =
            |delivery: &&Delivery<u64>, host| delivery.to == NodeId(host) || delivery.packet.from == NodeId(host);
        // A transmission of 5.5 ms at most was on the air when the hold began.
        let inside = us(67_000)..us(210_000);
        let during = |host| deliveries.iter().filter(|one| of_host(one, host) && inside.contains(&one.at)).count();
        assert_eq!(during(0), 0, "{told}");
        // 143 ms are 143 packets each way, of which each host has a third; a hold does not slow the others down.
        assert!(during(1) > 85 && during(2) > 85, "{told}: {} {}", during(1), during(2));
        // Each way in order: without Block Ack frames are repeated before others.
        for way in [true, false] {
            let own = deliveries.iter().filter(|one| of_host(one, 0) && (one.to == NodeId(0)) == way);
            assert!(own.map(|one| one.packet.payload).is_sorted(), "{told}");
        }
        // Nobody is held: as without.
        let changes = vec![station(60_000, 0, false), station(61_000, 1, false)];
        assert_eq!(carried(&Config { changes, ..plain.clone() }, 3_000_000).0, carried(&plain, 3_000_000).0, "{told}");
    }
}

#[test]
fn a_queue_that_a_hold_fills_loses_what_does_not_fit() {
    let access = WifiConfig { access_point_queue: QueueConfig::fifo(10), ..WifiConfig::new(Standard::G) };
    let changes = vec![station(0, 0, true), station(500_000, 0, false)];
    let mut network = Network::new(&Config { changes, ..wifi(2, 5, access) }, 1).expect("a network");
    let from_server = |network: &mut Network<u64>, to, count| {
        (0..count).for_each(|number| _ = network.offer(us(1), packet(2, to, 100, number)));
    };
    from_server(&mut network, 0, 30);
    let taken = (0..30).filter(|number| network.offer(us(1), packet(0, 2, 100, *number)).is_ok()).count();
    assert_eq!(taken, 5);
    assert!(run(&mut network, us(400_000)).is_empty());
    // Places that wait for a held station are taken for the others, too.
    from_server(&mut network, 1, 1);
    assert!(run(&mut network, us(450_000)).is_empty());
    assert_eq!(run(&mut network, us(900_000)).len(), 10 + 5);
    let statistics = network.statistics(us(900_000));
    assert_eq!(statistics.dropped(QueueId::AccessPoint, Cause::QueueFull), 21);
    assert_eq!(statistics.dropped(QueueId::Host(NodeId(0)), Cause::QueueFull), 25);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// Holds at any time, also within a backoff, an exchange, a repeat or a burst of voice; broadcasts among them.
    #[test]
    fn nothing_is_lost_whatever_is_held_when(
        seed in any::<u64>(),
        access in 0..12_usize,
        holds in prop::collection::vec((0..120_000_u64, 0..3_usize, 1..90_000_u64), 0..12),
        packets in prop::collection::vec((0..900_u64, 0..4_u16, 0..4_u16, 40..1500_u64, any::<bool>()), 1..250),
    ) {
        let access = WifiConfig { rate_control: RateControl::Fixed, ..access_points()[access] };
        let mut changes = Vec::new();
        for (at, host, length) in holds {
            changes.extend([station(at, host, true), station(at + length, host, false)]);
        }
        changes.extend((0..3).map(|host| station(400_000, host, false)));
        let mut network = Network::new(&Config { changes, ..wifi(3, 500, access) }, seed).unwrap();
        let (mut now, mut deliveries, mut offered) = (Time::ZERO, Vec::new(), 0);
        for (number, (gap, from, to, bytes, is_voice)) in packets.into_iter().enumerate() {
            now += Span::from_micros(gap);
            network.advance(now, &mut deliveries);
            if from == to || (from < 3 && to < 3) {
                continue;
            }
            let mut packet = packet(from, to, bytes, number);
            packet.dscp = if is_voice { 46 } else { 0 };
            offered += usize::from(network.offer(now, packet).is_ok());
        }
        network.advance(us(30_000_000), &mut deliveries);
        prop_assert_eq!((network.packets_inside(), deliveries.len()), (0, offered));
        prop_assert_eq!(network.statistics(us(30_000_000)).drops, []);
    }
}
