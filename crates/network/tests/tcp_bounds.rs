//! Data and acknowledgement patterns of TCP never beat what the air allows.
//!
//! Without backoff and collisions d segments of 1448 B and their acknowledgement take at least
//! d (DIFS + T_data + SIFS + T_ack) + DIFS + T_tcpack + SIFS + T_ack.

use crate::common::{packet, us, wifi};
use lasthop_network::{Network, NodeId, PhyRate, QueueConfig, Standard, WifiConfig};
use lasthop_units::{Bytes, Rate, Span, Time};

/// A window of so many segments, always full; the server acknowledges each d-th with 52 B, the host then sends d more.
fn goodput(medium: WifiConfig, window: usize, segments_per_acknowledgement: u64) -> f64 {
    let config = wifi(1, window + 60, medium);
    let mut network = Network::new(&config, 1).unwrap();
    let (host, server) = (NodeId(0), NodeId(1));
    let mut deliveries = Vec::new();
    let mut segments = 0;
    for _ in 0..window {
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
            let measured = goodput(medium.clone(), 40, d);
            println!("{name}, d = {d}: {measured:.2} Mb/s, bound {bound:.2}");
            assert!(measured < bound, "{name}, d = {d}: {measured} Mb/s past {bound}");
            assert!(measured > 0.7 * bound, "{name}, d = {d}: {measured} Mb/s is far from {bound}");
        }
    }
}

/// A window of one full A-MPDU, every second segment acknowledged: K segments go up in one transmission, K / 2 acknowledgements come down in
/// one. With mean backoffs before both 8 · 1448 K / (2 (AIFS 43 + 67.5 + SIFS 16 + Block Ack) + PPDU of data + PPDU of acknowledgements), which
/// is exact if they never count together; without backoff it is the bound.
#[test]
fn one_flow_of_aggregates_lies_between_two_backoffs_and_none() {
    // Acknowledgements: 52 B, in a subframe of 96 B. HT20: 14 of them 1342 B, 36 + 4 ceil(10758 / 260) = 204. VHT80: 32 of them 3070 B,
    // 40 + 4 ceil(24582 / 1560) = 104. HE80: 128 of them 12286 B, 44 + 13.6 ceil(98310 / 8166) = 220.8.
    let cases = [
        ("HT20", Standard::N, 28, 32.0, 5360.0 + 204.0),
        ("VHT80", Standard::Ac, 64, 32.0, 2068.0 + 104.0),
        ("HE80", Standard::Ax, 256, 40.0, 5320.8 + 220.8),
    ];
    for (name, standard, frames, block_ack, on_air) in cases {
        let with = |backoff| frames as f64 * 8.0 * 1448.0 / (2.0 * (43.0 + backoff + 16.0 + block_ack) + on_air);
        let access = WifiConfig { access_point_queue: QueueConfig::fifo(1000), ..WifiConfig::new(standard) };
        let measured = goodput(access, frames, 2);
        println!("{name}: {measured:.2} Mb/s, {:.2} with backoffs, {:.2} without", with(67.5), with(0.0));
        assert!(measured > 0.995 * with(67.5) && measured < with(0.0), "{name}: {measured} Mb/s");
    }
}
