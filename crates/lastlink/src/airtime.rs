//! From PHY rates to the IP rate that a Wi-Fi link can carry.
//!
//! The reference is one TCP download that has the medium to itself. The access point sends packets of 1500 bytes, and
//! the station answers every second one with a TCP acknowledgement. Every frame waits for its whole mean backoff.
//! Acknowledgements collide with packets like the frames of two saturated stations: with probability p = 0.1046 (CWmin
//! 15) or 0.0570 (CWmin 31) (bianchi00, n = 2). Other stations are not in it: their share of the air is congestion,
//! which a sender finds by itself.
//!
//! - Without aggregation (802.11a/b/g): IP rate = 2 · 8 · 1500 / ((2 + p/(1 − p)) · E(1536) + E(88)). For an MPDU of L
//!   bytes E(L) = DIFS + slot · CWmin/2 + T(L) + SIFS + T(ACK). OFDM: T(L) = 20 + 4 ⌈(16 + 6 + 8L) / (4 · rate)⌉ µs
//!   (802.11-2020 §17.4.3). DSSS and CCK: T(L) = 192 + ⌈8L / rate⌉ µs (§16.3.4, long preamble). At 2.4 GHz the signal
//!   extension of 6 µs and the shorter SIFS (10 µs, not 16) give the same sum.
//! - With aggregation (802.11n and later): one A-MPDU of the packets that fit into 2 ms, at most 32 (half of what one
//!   BlockAck can acknowledge), then one of half as many acknowledgements. Each waits for AIFS + slot · CWmin/2, and
//!   SIFS and a BlockAck follow. Collisions as above.
//! - With protection each frame is preceded by a CTS-to-self at 1 Mb/s, and slots are long.
//!
//! *What it leaves out*, which makes it err low: that backoffs overlap, that a queue makes longer aggregates, A-MSDUs,
//! short preambles, and TXOPs of several frames. Transmission errors are left out too, which makes it err high.
//! Measured against the model of the medium: docs/models/last-link-estimation.md.

use lasthop_units::Rate;
use serde::{Deserialize, Serialize};

/// The rate of one direction of a radio link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhyRate {
    /// Bit rate of the payload on the air.
    pub rate: Rate,
    /// How the bits are sent.
    pub modulation: Modulation,
}

/// Decides the overhead of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Modulation {
    /// 802.11b: one frame at a time, after a long preamble.
    Dsss,
    /// 802.11a and g: one frame at a time.
    Ofdm,
    /// 802.11n and later: several frames in one A-MPDU.
    Aggregated,
}

/// Properties of a Wi-Fi network that hold for all its stations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bss {
    /// Slots of 20 µs instead of 9.
    pub long_slots: bool,
    /// A CTS announces frames that 802.11b stations cannot decode.
    pub protection: bool,
}

const PACKET_BITS: f64 = 8.0 * 1500.0;
/// Packets for each TCP acknowledgement.
const PACKETS_PER_ACK: f64 = 2.0;
/// Header 24, FCS 4, LLC 8 around a packet, and around an acknowledgement of 52 bytes.
const MPDU_BYTES: f64 = 1536.0;
const ACK_MPDU_BYTES: f64 = 88.0;
/// The same with QoS control 2, CCMP 16, delimiter 4, and padding to 4.
const SUBFRAME_BYTES: f64 = 1560.0;
const ACK_SUBFRAME_BYTES: f64 = 112.0;
const AGGREGATE_US: f64 = 2000.0;
const AGGREGATE_PACKETS: f64 = 32.0;
/// The longest preamble, that of 802.11ax with four streams: 16 + 8 + 8 + 4 + 4 · 8.
const AGGREGATE_PREAMBLE_US: f64 = 68.0;
/// The longest symbol: 802.11ax with the longest guard interval.
const LONGEST_SYMBOL_US: f64 = 16.0;
/// Collisions for each acknowledgement, p/(1 − p) with p = 0.1046 (0.0570 for 802.11b).
const COLLISIONS: f64 = 0.1046 / (1.0 - 0.1046);
const COLLISIONS_DSSS: f64 = 0.0570 / (1.0 - 0.0570);
/// A CTS of 14 bytes at 1 Mb/s, long preamble, and SIFS.
const PROTECTION_US: f64 = 192.0 + 112.0 + 10.0;

/// The IP rate that a link carries to a station with these two rates; zero if one of them is zero.
pub fn carries(receive: PhyRate, transmit: PhyRate, bss: Bss) -> Rate {
    if receive.rate == Rate::ZERO || transmit.rate == Rate::ZERO {
        return Rate::ZERO;
    }
    let (packets, us) = match receive.modulation {
        Modulation::Aggregated => {
            let packet_us = bits_us(SUBFRAME_BYTES, receive);
            let packets = (AGGREGATE_US / packet_us).floor().clamp(1.0, AGGREGATE_PACKETS);
            let acks = (packets / PACKETS_PER_ACK).ceil();
            let acks_us = match transmit.modulation {
                Modulation::Aggregated => aggregate_us(acks * bits_us(ACK_SUBFRAME_BYTES, transmit), transmit, bss),
                Modulation::Dsss | Modulation::Ofdm => acks * frame_us(ACK_MPDU_BYTES, transmit, bss),
            };
            (packets, (1.0 + COLLISIONS) * aggregate_us(packets * packet_us, receive, bss) + acks_us)
        }
        Modulation::Dsss | Modulation::Ofdm => {
            let collisions = if receive.modulation == Modulation::Dsss { COLLISIONS_DSSS } else { COLLISIONS };
            let data_us = (PACKETS_PER_ACK + collisions) * frame_us(MPDU_BYTES, receive, bss);
            (PACKETS_PER_ACK, data_us + frame_us(ACK_MPDU_BYTES, transmit, bss))
        }
    };
    Rate::from_mbps(packets * PACKET_BITS / us)
}

/// E(L): a frame with its backoff, gaps and ACK, in µs.
fn frame_us(bytes: f64, phy: PhyRate, bss: Bss) -> f64 {
    let mbps = phy.rate.as_mbps();
    if phy.modulation == Modulation::Dsss {
        let duration_us = |bytes: f64, mbps: f64| 192.0 + (8.0 * bytes / mbps).ceil();
        // SIFS 10, DIFS 50, CWmin 31 with 20 µs slots; the ACK at 2 Mb/s, or at 1.
        return 50.0 + 310.0 + duration_us(bytes, mbps) + 10.0 + duration_us(14.0, if mbps < 2.0 { 1.0 } else { 2.0 });
    }
    let access = access_us(2.0, bss);
    access
        + ofdm_us(bytes, if phy.modulation == Modulation::Ofdm { mbps } else { mbps.min(54.0) })
        + SIFS_US
        + ofdm_us(14.0, control_mbps(mbps))
}

/// An A-MPDU whose subframes take `subframes_us`, with its backoff, gaps and BlockAck, in µs.
fn aggregate_us(subframes_us: f64, phy: PhyRate, bss: Bss) -> f64 {
    let block_ack_us = ofdm_us(32.0, control_mbps(phy.rate.as_mbps()));
    access_us(3.0, bss) + AGGREGATE_PREAMBLE_US + subframes_us + LONGEST_SYMBOL_US + SIFS_US + block_ack_us
}

/// SIFS of 802.11a; of 802.11g, with its signal extension.
const SIFS_US: f64 = 16.0;

/// SIFS, `slots` slots, half of CWmin 15, and the CTS with protection.
fn access_us(slots: f64, bss: Bss) -> f64 {
    let slot_us = if bss.long_slots || bss.protection { 20.0 } else { 9.0 };
    SIFS_US + (slots + 7.5) * slot_us + if bss.protection { PROTECTION_US } else { 0.0 }
}

fn ofdm_us(bytes: f64, mbps: f64) -> f64 {
    20.0 + 4.0 * ((22.0 + 8.0 * bytes) / (4.0 * mbps)).ceil()
}

/// The highest mandatory rate that is not above the frame's rate.
fn control_mbps(mbps: f64) -> f64 {
    if mbps >= 24.0 {
        24.0
    } else if mbps >= 12.0 {
        12.0
    } else {
        6.0
    }
}

fn bits_us(bytes: f64, phy: PhyRate) -> f64 {
    8.0 * bytes / phy.rate.as_mbps()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn phy(mbps: f64, modulation: Modulation) -> PhyRate {
        PhyRate { rate: Rate::from_mbps(mbps), modulation }
    }

    fn both_ways(mbps: f64, modulation: Modulation, bss: Bss) -> f64 {
        carries(phy(mbps, modulation), phy(mbps, modulation), bss).as_mbps()
    }

    #[test]
    fn frames_one_at_a_time_carry_what_their_airtime_leaves() {
        let short = Bss::default();
        let long_slots = Bss { long_slots: true, ..short };
        let protection = Bss { protection: true, ..short };
        // 54 Mb/s: 2 · (34 + 67.5 + 248 + 16 + 28) + (34 + 67.5 + 36 + 16 + 28) = 787 + 181.5 µs for 24,000 bits.
        // 20 µs slots: 2 · (56 + 150 + 248 + 16 + 28) + (56 + 150 + 36 + 16 + 28) = 996 + 286 µs.
        // And a CTS of 314 µs before each of the three: 1282 + 942 µs.
        // 11 Mb/s: 2 · (50 + 310 + 1310 + 10 + 248) + (50 + 310 + 256 + 10 + 248) = 3856 + 874 µs.
        // 0.1046 / 0.8954 = 0.11682 collisions of 393.5, 498 and 812 µs, 0.0570 / 0.9430 = 0.06045 of 1928.
        for (mbps, modulation, bss, us) in [
            (54.0, Modulation::Ofdm, short, 968.5 + 45.97),
            (54.0, Modulation::Ofdm, long_slots, 1282.0 + 58.18),
            (54.0, Modulation::Ofdm, protection, 2224.0 + 94.86),
            (11.0, Modulation::Dsss, short, 4730.0 + 116.54),
        ] {
            let expected = 24_000.0 / us;
            assert!((both_ways(mbps, modulation, bss) / expected - 1.0).abs() < 1e-5, "{mbps} {modulation:?} {bss:?}");
        }
    }

    #[test]
    fn aggregates_share_one_backoff() {
        // 65 Mb/s: a subframe of 1560 bytes takes 192 µs, so 10 fit into 2 ms. 16 + 27 + 67.5 + 68 + 1920 + 16 + 16 + 32 = 2162.5 µs;
        // 5 acknowledgements of 112 bytes, 68.9 µs: 311.4 µs. (32 µs: a BlockAck of 32 bytes at 24 Mb/s.)
        // 0.11682 collisions of 2162.5 µs.
        let expected = 10.0 * 12_000.0 / (2162.5 + 252.62 + 242.5 + 5.0 * 8.0 * 112.0 / 65.0);
        assert!((both_ways(65.0, Modulation::Aggregated, Bss::default()) / expected - 1.0).abs() < 1e-5);
        // 433.3 Mb/s: 32 of them, 922 µs, and 16 acknowledgements, 33 µs: 384,000 bits in 1.11682 · 1164.2 + 275.6 µs.
        let mbps = both_ways(433.3, Modulation::Aggregated, Bss::default());
        assert!((243.5..244.0).contains(&mbps), "{mbps}");
    }

    #[test]
    fn a_station_that_can_only_send_slowly_receives_less() {
        let fast = phy(65.0, Modulation::Aggregated);
        let bss = Bss::default();
        let slow = carries(fast, phy(6.5, Modulation::Aggregated), bss);
        let legacy = carries(fast, phy(6.0, Modulation::Ofdm), bss);
        assert!(legacy < slow && slow < carries(fast, fast, bss), "{legacy} {slow}");
        assert_eq!(carries(fast, PhyRate { rate: Rate::ZERO, ..fast }, bss), Rate::ZERO);
    }

    proptest! {
        #[test]
        fn a_link_carries_less_than_its_rate_and_a_faster_one_more(
            mbps in 1.0_f64..10_000.0,
            faster in 1.0_f64..3.0,
            aggregated: bool,
            long_slots: bool,
            protection: bool,
        ) {
            let modulation = if aggregated { Modulation::Aggregated } else { Modulation::Ofdm };
            let bss = Bss { long_slots, protection };
            let one = both_ways(mbps, modulation, bss);
            prop_assert!(one > 0.0 && one < mbps);
            // An aggregate holds whole packets, so the rate may fall by up to one packet.
            prop_assert!(both_ways(mbps * faster, modulation, bss) >= one * 0.95, "{} {}", mbps, faster);
        }
    }
}
