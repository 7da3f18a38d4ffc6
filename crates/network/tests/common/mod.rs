//! Networks and senders that several tests share.
#![allow(dead_code, reason = "each test file uses its own part")]

use lasthop_network::{
    AccessConfig, Config, Delivery, Destination, HostConfig, Impairments, Network, NodeId, Packet, PathConfig,
    Statistics, Topology, WifiConfig,
};
use lasthop_units::{Bytes, Ecn, Probability, Rate, Span, Time};

/// A path that adds nothing: 0 ms, and 1500 B take 0.12 us.
pub(crate) fn instant_path() -> PathConfig {
    PathConfig {
        rtt: Span::ZERO,
        rate: Rate::from_mbps(100_000.0),
        loss: Probability::ZERO,
        queue_packets: 1000,
        back_loss: Probability::ZERO,
        impairments: [Impairments::NONE; 2],
    }
}

/// So many hosts with queues of so many packets.
pub(crate) fn hosts(count: usize, queue_packets: usize) -> Vec<HostConfig> {
    vec![HostConfig::new(queue_packets); count]
}

/// Hosts behind an access, and the server behind a path.
pub(crate) fn access_point(hosts: Vec<HostConfig>, access: AccessConfig, path: PathConfig) -> Config {
    Config::new(hosts, Topology::AccessPoint { access, path })
}

/// What the hosts share, and what lies behind it.
pub(crate) fn access_and_path(config: &Config) -> (&AccessConfig, &PathConfig) {
    let Topology::AccessPoint { access, path } = &config.topology else { panic!("no access point") };
    (access, path)
}

/// What the hosts share, to be changed.
pub(crate) fn wifi_of(config: &mut Config) -> &mut WifiConfig {
    let Topology::AccessPoint { access: AccessConfig::Wifi(wifi), .. } = &mut config.topology else {
        panic!("no Wi-Fi")
    };
    wifi
}

/// A Wi-Fi network with the instant path.
pub(crate) fn wifi(count: usize, queue_packets: usize, wifi: WifiConfig) -> Config {
    access_point(hosts(count, queue_packets), AccessConfig::Wifi(wifi), instant_path())
}

/// A point in time in microseconds.
pub(crate) fn us(micros: u64) -> Time {
    Time::ZERO + Span::from_micros(micros)
}

/// A packet of so many bytes.
pub(crate) fn packet<P>(from: u16, to: u16, bytes: u64, payload: P) -> Packet<P> {
    Packet {
        from: NodeId(from),
        to: Destination::Node(NodeId(to)),
        size: Bytes::new(bytes),
        flow: 0,
        dscp: 0,
        ecn: Ecn::NotEct,
        id: 0,
        payload,
    }
}

/// Everything that happens until `end`.
pub(crate) fn run<P: Clone>(network: &mut Network<P>, end: Time) -> Vec<Delivery<P>> {
    let mut deliveries = Vec::new();
    network.advance(end, &mut deliveries);
    deliveries
}

/// Stations that always have 1500-byte packets for the server. After a second of warm-up so many seconds are measured;
/// gives the throughput at the server in Mb/s of IP bytes, and what the network counted.
pub(crate) fn saturate(config: &Config, seed: u64, seconds: u64) -> (f64, Statistics) {
    let stations = config.hosts.len() as u16;
    let mut network = Network::new(config, seed).unwrap();
    let mut deliveries = Vec::new();
    let mut delivered = 0;
    for hundredth in 0..100 * (1 + seconds) {
        let now = Time::ZERO + Span::from_millis(10) * hundredth;
        network.advance(now, &mut deliveries);
        delivered += deliveries.drain(..).len() as u64;
        if hundredth == 100 {
            network.reset_statistics(now);
            delivered = 0;
        }
        for station in 0..stations {
            let queue_packets = config.hosts[usize::from(station)].queue_packets;
            let waiting = queue_packets - network.room(NodeId(station));
            assert!(hundredth == 0 || 2 * waiting > queue_packets, "only {waiting} of {queue_packets} packets wait");
            while network.room(NodeId(station)) > 0 {
                network.offer(now, packet(station, stations, 1500, ())).unwrap();
            }
        }
    }
    let end = Time::ZERO + Span::from_secs(1 + seconds);
    network.advance(end, &mut deliveries);
    delivered += deliveries.len() as u64;
    let throughput = Rate::over(Bytes::new(delivered * 1500), Span::from_secs(seconds));
    (throughput.as_mbps(), network.statistics(end))
}
