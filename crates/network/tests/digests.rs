//! Whole runs, deliveries and statistics, as digests: what makes the network faster must not move anything.
//!
//! A digest says that something moved, not what; the timelines, the worked numbers and the theory say what is right.

use crate::common::{access_point, hosts, packet, wifi};
use lasthop_network::{
    AccessConfig, Config, Delivery, Destination, Impairments, Network, NodeId, Packet, PathConfig, PhyRate,
    QueueConfig, RateControl, RateSet, Standard, Statistics, WifiConfig, WiredAccessConfig,
};
use lasthop_units::{Bytes, Ecn, Probability, Rate, Span, Time};
use sha2::{Digest, Sha256};

/// The first 8 bytes of SHA-256 over every delivery and over all that is measured (but not over the number of events: how
/// many it takes is the model's own business).
#[derive(Default)]
struct Record {
    hash: Sha256,
    deliveries: usize,
}

impl Record {
    fn add(&mut self, deliveries: &mut Vec<Delivery<u64>>) {
        self.deliveries += deliveries.len();
        for delivery in deliveries.drain(..) {
            self.hash.update(delivery.at.as_nanos().to_le_bytes());
            self.hash.update(delivery.to.0.to_le_bytes());
            self.hash.update(delivery.packet.from.0.to_le_bytes());
            self.hash.update(delivery.packet.payload.to_le_bytes());
        }
    }

    fn digest(mut self, statistics: &Statistics) -> String {
        let Statistics { elapsed, air, utilization, collisions, retries, transmissions, broadcasts, .. } = statistics;
        let medium = format!("{elapsed:?} {air:?} {utilization:?} {collisions} {retries} {transmissions} {broadcasts}");
        self.hash.update(medium);
        let mut stations = format!("{:?}", statistics.stations);
        // Where transmissions carry one frame each, their number says nothing new, and was not there when digests were first taken.
        for link in statistics.stations.iter().flat_map(|station| [station.up, station.down]) {
            if link.frames == link.transmissions {
                stations = stations.replacen(&format!(" frames: {},", link.frames), "", 1);
            }
            // Counted since later.
            stations = stations.replacen(&format!(", air: {:?}", link.air), "", 1);
        }
        // No packet here may be marked, and marks were not there either.
        let queues = format!("{:?}", statistics.queues).replace(", marks: 0", "");
        self.hash.update(format!("{:?} {queues} {stations}", statistics.drops));
        let digest = self.hash.finalize();
        let digest: String = digest[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{} {digest}", self.deliveries)
    }
}

/// Deterministic numbers that look random: x -> 6364136223846793005 x + 1442695040888963407, the upper half of it.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 32) % below
    }
}

/// Bursts from everybody to everybody, broadcasts among them, at times from dense to sparse; statistics from a fifth on.
fn bursts(config: &Config, seed: u64, rounds: u64, longest_gap_us: u64) -> String {
    let nodes = config.hosts.len() as u64 + 1;
    let mut network = Network::new(config, seed).unwrap();
    let (mut record, mut deliveries, mut numbers) = (Record::default(), Vec::new(), Numbers(seed));
    let mut now = Time::ZERO;
    for round in 0..rounds {
        now += Span::from_nanos(numbers.next(longest_gap_us * 1000));
        if numbers.next(3) == 0 {
            network.advance(now, &mut deliveries);
            record.add(&mut deliveries);
        }
        if round == rounds / 5 {
            network.reset_statistics(now);
        }
        let from = NodeId(numbers.next(nodes) as u16);
        for number in 0..numbers.next(8) {
            let to = match numbers.next(20) {
                0 => Destination::Broadcast,
                1..4 => Destination::Node(NodeId(numbers.next(nodes) as u16)),
                _ if from.index() as u64 == nodes - 1 => Destination::Node(NodeId(numbers.next(nodes - 1) as u16)),
                _ => Destination::Node(NodeId(nodes as u16 - 1)),
            };
            let size = Bytes::new([1500, 52, 576, 1 + numbers.next(1500)][numbers.next(4) as usize]);
            let payload = round << 8 | number;
            let _refused = network.offer(
                now,
                Packet { from, to, size, flow: round as u32 % 5, dscp: 0, ecn: Ecn::NotEct, id: 0, payload },
            );
        }
    }
    while let Some(at) = network.next_wakeup() {
        network.advance(at, &mut deliveries);
        now = now.max(at);
    }
    record.add(&mut deliveries);
    record.digest(&network.statistics(now))
}

/// Stations that always have a packet for the server, which answers every second one with 52 bytes.
fn saturated(config: &Config, milliseconds: u64) -> String {
    let stations = config.hosts.len() as u16;
    let mut network = Network::new(config, 1).unwrap();
    let (mut record, mut deliveries) = (Record::default(), Vec::new());
    for station in 0..stations {
        while network.room(NodeId(station)) > 0 {
            network.offer(Time::ZERO, packet(station, stations, 1500, 0)).unwrap();
        }
    }
    let end = Time::ZERO + Span::from_millis(milliseconds);
    let mut served = 0;
    while let Some(now) = network.next_wakeup().filter(|&now| now <= end) {
        network.advance(now, &mut deliveries);
        for delivery in &deliveries {
            let from = delivery.packet.from.0;
            if delivery.to.0 == stations {
                served += 1;
                let _refused = network.offer(now, packet(from, stations, 1500, served));
                if served % 2 == 0 {
                    let _refused = network.offer(now, packet(stations, from, 52, served));
                }
            }
        }
        record.add(&mut deliveries);
    }
    record.digest(&network.statistics(end))
}

/// What it takes to carry packets does not depend on who has none.
#[test]
fn idle_stations_change_nothing() {
    let run = |all: u16| {
        let mut network = Network::new(&wifi(all.into(), 20, WifiConfig::new(Standard::G)), 1).unwrap();
        let (mut received, mut deliveries) = (Vec::new(), Vec::new());
        for station in 0..10 {
            (0..20).for_each(|number| network.offer(Time::ZERO, packet(station, all, 1500, number)).unwrap());
        }
        while let Some(now) = network.next_wakeup() {
            network.advance(now, &mut deliveries);
            received.extend(
                deliveries.drain(..).map(|delivery| (delivery.at, delivery.packet.from, delivery.packet.payload)),
            );
        }
        (received, network.statistics(Time::ZERO).events)
    };
    let (received, events) = run(10);
    assert_eq!(received.len(), 200);
    assert_eq!((received, events), run(300));
}

fn path() -> PathConfig {
    PathConfig {
        rtt: Span::from_micros(3_001),
        rate: Rate::from_mbps(97.0),
        loss: Probability::new(0.02).unwrap(),
        queue_packets: 20,
        back_loss: Probability::ZERO,
        impairments: [Impairments::NONE; 2],
    }
}

fn fq_codel(packets: usize, wifi: WifiConfig) -> WifiConfig {
    WifiConfig { access_point_queue: QueueConfig::fq_codel(packets), ..wifi }
}

#[test]
fn bursts_through_an_access_point_go_as_they_went() {
    let config = |count, wifi| access_point(hosts(count, 12), AccessConfig::Wifi(wifi), path());
    let noisy = |standard, rate_control, rate_set| WifiConfig {
        rate_control,
        rate_set,
        frame_error_rate: Probability::new(0.15).unwrap(),
        retry_limit: 4,
        ..WifiConfig::new(standard)
    };
    let mixed = {
        let mut config = config(7, noisy(Standard::Bg, RateControl::Arf, RateSet::Ofdm));
        config.hosts[2].rate = Some(Rate::from_mbps(11.0));
        config.hosts[5].rate = Some(Rate::from_mbps(5.5));
        config
    };
    let slow = WifiConfig { rate: PhyRate::Mbps6, ..noisy(Standard::G, RateControl::Fixed, RateSet::Ofdm) };
    let cases = [
        ("one", config(1, WifiConfig::new(Standard::G)), 1500, "46441 e9336ee9966dec18"),
        ("idle", config(3, WifiConfig::new(Standard::G)), 9000, "73241 f182ed76c6446cf8"),
        ("dense", config(3, WifiConfig::new(Standard::G)), 300, "9529 95c461ba17cfadec"),
        ("noisy", config(5, noisy(Standard::G, RateControl::Aarf, RateSet::All)), 1500, "2445 fb7b0166c9cabb0c"),
        (
            "noisy, Minstrel",
            config(5, noisy(Standard::G, RateControl::Minstrel, RateSet::Ofdm)),
            1500,
            "36152 495e3fc81a279f10",
        ),
        ("FQ-CoDel", config(5, fq_codel(30, WifiConfig::new(Standard::G))), 700, "20533 c2f470a245413de8"),
        ("802.11b", config(4, noisy(Standard::B, RateControl::Arf, RateSet::Ofdm)), 4000, "6112 4747fd7faa5fe77c"),
        ("mixed", mixed, 3000, "7717 40de9e1d8f17bb30"),
        ("802.11n", config(5, noisy(Standard::N, RateControl::Fixed, RateSet::Ofdm)), 700, "32247 2520cd903af38372"),
        (
            "802.11ax",
            config(5, fq_codel(30, noisy(Standard::Ax, RateControl::Fixed, RateSet::Ofdm))),
            200,
            "25143 778ab82ec707bc95",
        ),
        ("many", config(60, noisy(Standard::G, RateControl::Fixed, RateSet::Ofdm)), 500, "7312 52cbf357330d5d97"),
        ("many, slow", config(200, slow), 2500, "9881 34646e262f660367"),
    ];
    let found = cases.map(|(name, config, gap, golden)| (name, bursts(&config, 11, 20_000, gap), golden));
    let differ: Vec<_> = found.iter().filter(|(_, digest, golden)| digest != golden).collect();
    assert!(differ.is_empty(), "{differ:#?}");
}

#[test]
fn saturated_stations_go_as_they_went() {
    let lossy = |wifi| WifiConfig {
        frame_error_rate: Probability::new(0.05).unwrap(),
        response_error_rate: Probability::new(0.01).unwrap(),
        rts_threshold: Some(Bytes::new(3000)),
        ..wifi
    };
    let forever = WifiConfig { retry_limit: 0, ..WifiConfig::new(Standard::G) };
    let cases = [
        ("1", wifi(1, 20, WifiConfig::new(Standard::G)), "15744 975ce19b07508f0d"),
        ("10", wifi(10, 20, WifiConfig::new(Standard::G)), "11972 9c82db06e348cfb2"),
        (
            "10, ARF",
            wifi(10, 20, WifiConfig { rate_control: RateControl::Arf, ..forever.clone() }),
            "2496 ef269f4ceeba8768",
        ),
        (
            "10, Minstrel",
            wifi(10, 20, WifiConfig { rate_control: RateControl::Minstrel, ..forever.clone() }),
            "10481 7538f3ed103a0c5e",
        ),
        ("10, FQ-CoDel", wifi(10, 20, fq_codel(100, forever.clone())), "11893 26af2f3053c051c0"),
        ("10, 802.11n", wifi(10, 100, lossy(WifiConfig::new(Standard::N))), "25606 7a6d4ba2d77e5084"),
        (
            "10, 802.11ac, FQ-CoDel",
            wifi(10, 100, lossy(fq_codel(300, WifiConfig::new(Standard::Ac)))),
            "110405 ae2a2e7b3c73480f",
        ),
        ("10, 802.11ax", wifi(10, 400, lossy(WifiConfig::new(Standard::Ax))), "203480 8e9b49543f7c6d68"),
        ("10, 802.11b", wifi(10, 20, WifiConfig::new(Standard::B)), "2593 8018a3306df2ddac"),
        ("10, 802.11bg", wifi(10, 20, WifiConfig::new(Standard::Bg)), "6053 f9a67a228684f600"),
        ("50", wifi(50, 20, WifiConfig::new(Standard::G)), "8899 b34c2180b2ee4431"),
        ("200", wifi(200, 20, forever), "7005 dc0b1d691b12e293"),
    ];
    let found = cases.map(|(name, config, golden)| (name, saturated(&config, 5_000), golden));
    let differ: Vec<_> = found.iter().filter(|(_, digest, golden)| digest != golden).collect();
    assert!(differ.is_empty(), "{differ:#?}");
}

#[test]
fn bursts_through_a_wired_access_go_as_they_went() {
    let wired = |mbps, delay_us, queue, path| {
        let rate = Rate::from_mbps(mbps);
        let access = WiredAccessConfig { rate, delay: Span::from_micros(delay_us), queue };
        access_point(hosts(6, 9), AccessConfig::Wired(access), path)
    };
    let fifo = QueueConfig::fifo(15);
    // The last one: every transmission time is a multiple of another one's, so that much happens at the same time.
    let even = PathConfig { rate: Rate::from_mbps(10.0), rtt: Span::from_micros(240), ..path() };
    let cases = [
        ("fast", wired(100.0, 70, fifo, path()), 200, "54049 a2e0df220ecdbb76"),
        ("slow", wired(8.0, 1500, fifo, path()), 2500, "53548 b1c850b57cba04db"),
        ("FQ-CoDel", wired(8.0, 1500, QueueConfig::fq_codel(20), path()), 2500, "53577 68b7fa8fa94f0193"),
        ("even", wired(100.0, 0, fifo, even), 1500, "59127 f306ffd3babf20e9"),
    ];
    for (name, config, gap, golden) in cases {
        let digest = bursts(&config, 12, 20_000, gap);
        assert_eq!(digest, golden, "{name}");
    }
}
