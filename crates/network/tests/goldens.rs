//! Runs whose every delivery is pinned: what was not meant to change has not.
//!
//! A digest says that something moved, not what; the timelines and the theory say whether it was right.

mod common;

use common::{access_point, hosts};
use network::{
    AccessConfig, Destination, Network, NodeId, Packet, PathConfig, RateControl, RateSet, Standard, WifiConfig,
};
use sha2::{Digest, Sha256};
use units::{Bytes, Probability, Rate, Span, Time};

/// Six stations with bursts up, packets down, broadcasts, frame errors and path losses; 20 s. The first 8 bytes of SHA-256 over
/// (time, receiver, number) of each delivery.
fn digest(standard: Standard, rate_control: RateControl, rate_set: RateSet) -> String {
    const HOSTS: u16 = 6;
    let wifi = WifiConfig {
        rate_control,
        rate_set,
        frame_error_rate: Probability::new(0.1).unwrap(),
        ..WifiConfig::new(standard)
    };
    let path = PathConfig {
        rtt: Span::from_micros(3_001),
        rate: Rate::from_mbps(97.0),
        loss: Probability::new(0.01).unwrap(),
        queue_packets: 200,
    };
    let config = access_point(hosts(HOSTS.into(), 30), AccessConfig::Wifi(wifi), path);
    let mut network = Network::new(&config, 7).unwrap();
    let mut deliveries = Vec::new();
    let mut number = 0_u64;
    for round in 0..2000_u64 {
        let now = Time::ZERO + Span::from_micros(10_007) * round;
        network.advance(now, &mut deliveries);
        for from in 0..=HOSTS {
            let burst = (round * 7 + u64::from(from) * 5) % 4;
            for packet in 0..burst {
                let to = match (from, packet) {
                    (HOSTS, _) => Destination::Node(NodeId((number % u64::from(HOSTS)) as u16)),
                    (_, 3) => Destination::Broadcast,
                    _ => Destination::Node(NodeId(HOSTS)),
                };
                let size = Bytes::new([1500, 52, 576][(number % 3) as usize]);
                let _refused =
                    network.offer(now, Packet { from: NodeId(from), to, size, flow: from.into(), payload: number });
                number += 1;
            }
        }
    }
    while let Some(at) = network.next_wakeup() {
        network.advance(at, &mut deliveries);
    }
    let mut hash = Sha256::new();
    for delivery in &deliveries {
        hash.update(delivery.at.as_nanos().to_le_bytes());
        hash.update(delivery.to.0.to_le_bytes());
        hash.update(delivery.packet.payload.to_le_bytes());
    }
    let digest: String = hash.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{} {digest}", deliveries.len())
}

#[test]
fn the_older_rate_controls_do_what_they_did() {
    use RateControl::{Aarf, Arf, Fixed};
    use RateSet::{All, Ofdm};
    for (standard, control, set, golden) in [
        (Standard::G, Fixed, Ofdm, "20845 67a598c76ba1f782"),
        (Standard::G, Arf, Ofdm, "13842 ba9329fbd1d05a60"),
        (Standard::G, Aarf, Ofdm, "13738 04c94d0b088f6328"),
        (Standard::G, Arf, All, "3117 b23a459ef16835f9"),
        (Standard::B, Arf, Ofdm, "2857 986fea4ca7be85b3"),
        (Standard::Bg, Aarf, All, "2607 d310a82de553d6be"),
    ] {
        assert_eq!(digest(standard, control, set), golden, "{standard:?}, {control:?} over {set:?}");
    }
}
