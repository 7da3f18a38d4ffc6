//! Data and acknowledgement patterns of TCP never beat what the air allows.
//!
//! Without backoff and collisions d segments of 1448 B and their acknowledgement take at least
//! d (DIFS + T_data + SIFS + T_ack) + DIFS + T_tcpack + SIFS + T_ack.

mod common;

use common::{packet, us, wifi};
use lasthop_network::{Network, NodeId, PhyRate, Standard, WifiConfig};
use lasthop_units::{Bytes, Rate, Span, Time};

/// A window of 40 segments, always full; the server acknowledges each d-th with 52 B, the host then sends d more.
fn goodput(medium: WifiConfig, segments_per_acknowledgement: u64) -> f64 {
    let config = wifi(1, 100, medium);
    let mut network = Network::new(&config, 1).unwrap();
    let (host, server) = (NodeId(0), NodeId(1));
    let mut deliveries = Vec::new();
    let mut segments = 0;
    for _ in 0..40 {
        network.offer(Time::ZERO, packet(0, 1, 1500, ())).unwrap();
    }
    let end = us(20_000_000);
    while let Some(now) = network.next_wakeup().filter(|&now| now < end) {
        network.advance(now, &mut deliveries);
        for delivery in deliveries.drain(..) {
            if delivery.to == server {
                segments += 1;
                if segments % segments_per_acknowledgement == 0 {
                    network.offer(now, packet(server.0, host.0, 52, ())).unwrap();
                }
            } else {
                for _ in 0..segments_per_acknowledgement {
                    network.offer(now, packet(0, 1, 1500, ())).unwrap();
                }
            }
        }
    }
    assert!(network.statistics(end).drops.is_empty());
    Rate::over(Bytes::new(segments * 1448), Span::from_secs(20)).as_mbps()
}

#[test]
fn one_flow_stays_below_the_bound_without_backoff() {
    use PhyRate::{Mbps1, Mbps2, Mbps11};
    let g = WifiConfig::new(Standard::G);
    let b = WifiConfig::new(Standard::B);
    let bg = |protection_rate, short_preamble| WifiConfig {
        protection_rate,
        short_preamble,
        ..WifiConfig::new(Standard::Bg)
    };
    // The bounds by hand, d = 1 and d = 2. 802.11g: 1448 × 8 / (28 + 254 + 44 + 28 + 42 + 44) = 11584 / 440 = 26.33;
    // 23168 / (2 × 326 + 114) = 30.25. With protection each of both frames takes 258 more at 2 Mb/s long, 117 at 11 Mb/s short,
    // and DIFS is 50. 802.11b 11 Mb/s, 52 B: 192 + 64 = 256 long; 1310 + 258 + 50 = 1618, 256 + 258 + 50 = 564.
    // Short: 1214 + 162 + 50 = 1426, 160 + 162 + 50 = 372. 2 Mb/s: 6336 + 308, 544 + 308. 1 Mb/s: 12480 + 364, 896 + 364.
    let cases = [
        ("802.11g 54", g, 440.0, 766.0),
        ("802.11bg 54, CTS at 11 short", bg(Mbps11, true), 718.0, 1183.0),
        ("802.11bg 54, CTS at 2 long", bg(Mbps2, false), 1000.0, 1606.0),
        ("802.11bg 54, CTS at 1 long", bg(Mbps1, false), 1112.0, 1774.0),
        ("802.11b 11 long", b.clone(), 2182.0, 3800.0),
        ("802.11b 11 short", WifiConfig { short_preamble: true, ..b.clone() }, 1798.0, 3224.0),
        ("802.11b 2 long", WifiConfig { rate: Mbps2, ..b.clone() }, 7496.0, 14140.0),
        ("802.11b 1 long", WifiConfig { rate: Mbps1, ..b }, 14104.0, 26948.0),
    ];
    for (name, medium, each, every_second) in cases {
        for (d, exchange_us) in [(1, each), (2, every_second)] {
            let bound = d as f64 * 1448.0 * 8.0 / exchange_us;
            let measured = goodput(medium.clone(), d);
            println!("{name}, d = {d}: {measured:.2} Mb/s, bound {bound:.2}");
            assert!(measured < bound, "{name}, d = {d}: {measured} Mb/s past {bound}");
            assert!(measured > 0.7 * bound, "{name}, d = {d}: {measured} Mb/s is far from {bound}");
        }
    }
}
