//! What one station gets of a medium that nobody else uses; the equations are in `last_hop`.

use super::airtime::{AirTimes, ModeId};
use super::constants::PhyRate;
use crate::config::{HostConfig, WifiConfig};
use lasthop_units::{Bytes, Probability, Rate};

/// A full packet on Ethernet and its like.
const PACKET: Bytes = Bytes::new(1500);
/// Without a retry limit: after so many transmissions what is left does not count, unless nothing ever comes through.
const MANY: u32 = 10_000;

/// Throughput, in bytes of IP packets, and loss from the access point to this host.
pub(crate) fn alone(wifi: &WifiConfig, host: &HostConfig) -> (Rate, Probability) {
    let standard = wifi.standard;
    let times = AirTimes::new(wifi);
    let mode = times.mode(if standard.aggregates() {
        ModeId::of_mcs(host.mcs.unwrap_or(wifi.modulation.mcs))
    } else {
        host.rate.and_then(PhyRate::from_rate).unwrap_or(wifi.rate).into()
    });
    let frame = mode.frame_bytes(PACKET);
    let (mut frames, mut bytes) = (1_u32, frame);
    while frames < wifi.aggregate_frames.into() && mode.aligned(bytes) + frame <= mode.most_bytes {
        frames += 1;
        bytes = mode.aligned(bytes) + frame;
    }
    let window = standard.window(wifi.rate);
    let p = host.frame_error_rate.unwrap_or(wifi.frame_error_rate).get();
    // That no frame of a transmission is received, and what is received of the others.
    let in_vain = p.powi(frames as i32);
    let received = if p < 1.0 { f64::from(frames) * ((1.0 - p) / (1.0 - in_vain)) } else { 0.0 };
    let limit = if wifi.retry_limit == 0 { MANY } else { wifi.retry_limit.into() };
    let response = if frames == 1 { mode.acknowledgement } else { mode.block_ack };
    let (success, failure) = (response.as_secs_f64(), mode.timeout.as_secs_f64());
    let sent = (times.space + mode.ppdu(bytes)).as_secs_f64() + (1.0 - in_vain) * success + in_vain * failure;
    let (mut seconds, mut reached, mut lost, mut slots) = (0.0, 1.0, 1.0, window.min);
    for _ in 0..limit {
        seconds += reached * (sent + standard.slot().as_secs_f64() * f64::from(slots) / 2.0);
        reached *= in_vain;
        lost *= p;
        slots = (2 * slots + 1).min(wifi.access_point_window);
    }
    let loss = Probability::new(lost).expect("a power of a probability is one");
    (Rate::from_bps((PACKET.bits() as f64 * (1.0 - reached) * received / seconds) as u64), loss)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wifi::Standard;

    fn mbps(standard: Standard, rate: PhyRate, errors: f64, retry_limit: u8) -> (f64, f64) {
        let frame_error_rate = Probability::new(errors).unwrap();
        let wifi = WifiConfig { rate, retry_limit, frame_error_rate, ..WifiConfig::new(standard) };
        let (throughput, loss) = alone(&wifi, &HostConfig::new(1));
        (throughput.as_mbps(), loss.get())
    }

    #[test]
    fn without_errors_it_is_the_cycle_of_one_frame() {
        // 802.11g at 54 Mb/s: DIFS 28 + 7.5 slots of 9 us + 254 of data + SIFS 10 + ACK at 24 Mb/s 34 = 393.5 us.
        let (throughput, loss) = mbps(Standard::G, PhyRate::Mbps54, 0.0, 7);
        assert!((throughput - 12_000.0 / 393.5).abs() < 1e-4, "{throughput}");
        assert_eq!(loss, 0.0);
        // At 6 Mb/s: 4 · ceil((22 + 8 · 1536) / 24) + 26 = 2078 us of data; ACK at 6 Mb/s 20 + 4 · ceil(134 / 24) + 6 = 50.
        let (throughput, _) = mbps(Standard::G, PhyRate::Mbps6, 0.0, 7);
        assert!((throughput - 12_000.0 / (28.0 + 67.5 + 2078.0 + 60.0)).abs() < 1e-4, "{throughput}");
        // 802.11b at 11 Mb/s: DIFS 50 + 15.5 slots of 20 us + 192 + ceil(12288 / 11) = 1310 + SIFS 10 + ACK at 2 Mb/s 192 + 56.
        let (throughput, _) = mbps(Standard::B, PhyRate::Mbps11, 0.0, 7);
        assert!((throughput - 12_000.0 / (50.0 + 310.0 + 1310.0 + 258.0)).abs() < 1e-4, "{throughput}");
    }

    #[test]
    fn errors_take_time_and_what_the_last_retry_does_not_mend_is_lost() {
        // One transmission, half of them in vain: 28 + 67.5 + 254 + (44 + 39) / 2 us, ACKTimeout 10 + 9 + 20.
        let (throughput, loss) = mbps(Standard::G, PhyRate::Mbps54, 0.5, 1);
        assert!((throughput - 6_000.0 / 391.0).abs() < 1e-4, "{throughput}");
        assert_eq!(loss, 0.5);
        // Two: the second after 31 / 2 slots, in half of the cases: 391 + (28 + 139.5 + 254 + 41.5) / 2; a quarter is lost.
        let (throughput, loss) = mbps(Standard::G, PhyRate::Mbps54, 0.5, 2);
        assert!((throughput - 9_000.0 / (391.0 + 231.5)).abs() < 1e-4, "{throughput}");
        assert_eq!(loss, 0.25);
        // Without end: nothing is lost, and nothing comes through where every frame is.
        assert_eq!(mbps(Standard::G, PhyRate::Mbps54, 0.5, 0).1, 0.0);
        assert_eq!(mbps(Standard::G, PhyRate::Mbps54, 1.0, 0), (0.0, 1.0));
    }

    #[test]
    fn aggregates_share_the_cycle() {
        let alone = |standard, errors| {
            let (throughput, loss) = mbps(standard, PhyRate::Mbps54, errors, 2);
            (throughput, loss)
        };
        // HT20 MCS 7: AIFS 43 + 7.5 slots of 9 + 28 frames in 5360 + SIFS 16 + Block Ack 32 = 5518.5 us.
        let (throughput, _) = alone(Standard::N, 0.0);
        assert!((throughput - 28.0 * 12_000.0 / 5518.5).abs() < 1e-4, "{throughput}");
        // VHT80 MCS 9, half of 64 frames lost: 43 + 67.5 + 2068 + 48 us for 32; a quarter is lost in two transmissions.
        let (throughput, loss) = alone(Standard::Ac, 0.5);
        assert!((throughput - 32.0 * 12_000.0 / 2226.5).abs() < 1e-4, "{throughput}");
        assert_eq!(loss, 0.25);
    }
}
