//! What one station gets of a medium that nobody else uses; the equations are in `last_hop`.

use super::airtime::AirTimes;
use super::constants::{PhyRate, Standard};
use crate::config::WifiConfig;
use lasthop_units::{Bytes, Probability, Rate};

/// A full packet on Ethernet and its like.
const PACKET: Bytes = Bytes::new(1500);
/// Without a retry limit: after so many transmissions what is left does not count, unless nothing ever comes through.
const MANY: u32 = 10_000;

/// Throughput, in bytes of IP packets, and loss from the access point to a station of this rate and frame error rate.
pub(crate) fn alone(wifi: &WifiConfig, rate: PhyRate, errors: Probability) -> (Rate, Probability) {
    let standard: Standard = wifi.standard;
    let times = AirTimes::new(standard, wifi.short_preamble, wifi.protection_rate);
    let window = standard.window(wifi.rate);
    let p = errors.get();
    let limit = if wifi.retry_limit == 0 { MANY } else { wifi.retry_limit.into() };
    let success = times.acknowledgement(rate).as_secs_f64();
    let failure = times.acknowledgement_timeout(rate).as_secs_f64();
    let sent = (times.difs + times.data(rate, PACKET)).as_secs_f64() + (1.0 - p) * success + p * failure;
    let (mut seconds, mut reached, mut slots) = (0.0, 1.0, window.min);
    for _ in 0..limit {
        seconds += reached * (sent + standard.slot().as_secs_f64() * f64::from(slots) / 2.0);
        reached *= p;
        slots = (2 * slots + 1).min(window.max);
    }
    let loss = Probability::new(reached).expect("a power of a probability is one");
    (Rate::from_bps((PACKET.bits() as f64 * (1.0 - reached) / seconds) as u64), loss)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mbps(standard: Standard, rate: PhyRate, errors: f64, retry_limit: u8) -> (f64, f64) {
        let wifi = WifiConfig { retry_limit, ..WifiConfig::new(standard) };
        let (throughput, loss) = alone(&wifi, rate, Probability::new(errors).unwrap());
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
}
