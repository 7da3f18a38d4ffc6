//! The throughput of one station alone on a medium; the equations are in `last_hop`.

use super::airtime::{AirTimes, Mode, ModeId, Unanswered};
use super::cell::Cell;
use super::noise::Noise;
use super::rate_control::{RateControl, modes};
use crate::config::{HostConfig, WifiConfig};
use lasthop_units::{Bytes, Probability, Rate, Span};

/// A full packet, as on Ethernet.
const PACKET: Bytes = Bytes::new(1500);
/// Without a retry limit the sum is cut where a transmission is rarer than this, which the sum no longer sees.
const RARE: f64 = 1e-20;
/// Without a retry limit the sum is cut after this many transmissions at the latest.
const MANY: u32 = 10_000;

/// Throughput, in bytes of IP packets, and loss from the access point to the host of this number.
pub(crate) fn alone(wifi: &WifiConfig, hosts: &[HostConfig], host: usize) -> (Rate, Probability) {
    with_mode(wifi, hosts, host, of_mode)
}

/// Tells of the mode that a station alone has: the highest, or with rate control the best.
fn with_mode<T>(
    wifi: &WifiConfig,
    hosts: &[HostConfig],
    host: usize,
    tell: impl FnOnce(&WifiConfig, &AirTimes, &Noise, ModeId) -> T,
) -> T {
    let times = AirTimes::new(wifi, hosts);
    let own = wifi.of_station(&hosts[host]);
    let noise = Noise::new(&own, &hosts[host], &times);
    let id = match (own.standard.aggregates(), own.rate_control) {
        (true, RateControl::Fixed) => times.highest(&own),
        (true, _) | (false, RateControl::Ideal) => best_mode(&own, &times, &noise),
        (false, _) => own.rate.into(),
    };
    tell(&own, &times, &noise, id)
}

/// One station's packets on a silent medium, without losses.
#[derive(Clone, Debug)]
pub(crate) struct AirHop {
    mode: Mode,
    /// The least bytes with RTS and CTS, and how long these take.
    rts_above: Option<(Bytes, Span)>,
    /// From one full packet to the next.
    cycle: Span,
}

/// Those of the host of this number.
pub(crate) fn air_hop(wifi: &WifiConfig, hosts: &[HostConfig], host: usize) -> AirHop {
    with_mode(wifi, hosts, host, |own, times, noise, id| {
        let (throughput, _) = of_mode(own, times, noise, id);
        let mode = *times.mode(id);
        let rts_above = own.rts_threshold.map(|threshold| (threshold, mode.rts + mode.cts + times.cell.sifs));
        AirHop { mode, rts_above, cycle: throughput.transmission_time(PACKET) }
    })
}

impl AirHop {
    /// A packet for which nothing waits.
    pub(crate) fn first(&self, packet: Bytes) -> Span {
        let bytes = self.mode.frame_bytes(packet);
        match self.rts_above.filter(|(threshold, _)| bytes > threshold.get()) {
            Some((_, rts)) => rts + self.mode.ppdu_after_cts(bytes),
            None => self.mode.ppdu(bytes),
        }
    }

    /// From one packet to the next, of this size.
    pub(crate) fn next(&self, packet: Bytes) -> Span {
        self.cycle.saturating_sub(self.first(PACKET).saturating_sub(self.first(packet)))
    }
}

/// The mode with the greatest throughput, up to the station's highest; the slowest of equals.
pub(super) fn best_mode(own: &WifiConfig, times: &AirTimes, noise: &Noise) -> ModeId {
    let value = |&id: &ModeId| {
        let (throughput, _) = of_mode(own, times, noise, id);
        (throughput, std::cmp::Reverse(times.mode(id).rate))
    };
    modes(own, times).into_iter().max_by_key(value).expect("each standard has modes")
}

/// Throughput and loss with this mode.
fn of_mode(wifi: &WifiConfig, times: &AirTimes, noise: &Noise, id: ModeId) -> (Rate, Probability) {
    let Cell { sifs, slot, space, access_point_window, .. } = times.cell;
    let mode = times.mode(id);
    // With A-MSDUs, a frame is as many packets as one holds.
    let subframe = PACKET.get() + 22;
    let packets = ((wifi.amsdu_bytes.get() + 2) / subframe.next_multiple_of(4)).max(1);
    let frame = match packets {
        1 => mode.frame_bytes(PACKET),
        packets => mode.amsdu_frame_bytes((packets - 1) * subframe.next_multiple_of(4) + subframe),
    };
    let waiting = (wifi.access_point_queue.packets as u64 / packets).max(1);
    let most_frames = u64::from(wifi.aggregate_frames).min(waiting) as u32;
    let (mut frames, mut start) = (1_u32, 0);
    while frames < most_frames && mode.next_start(start, start + frame) + frame <= mode.most_bytes {
        frames += 1;
        start = mode.next_start(start, start + frame);
    }
    let bytes = start + frame;
    let p = noise.frames(id).of(frame).get();
    let control = noise.control(id);
    let r = if frames == 1 { control.acknowledgement } else { control.block_ack }.get();
    let rts = wifi.rts_threshold.filter(|threshold| bytes > threshold.get());
    // Probabilities that no frame of a transmission is received; that its RTS, if any, has a CTS; that it has no
    // response.
    let in_vain = p.powi(frames as i32);
    let lost_cts = control.acknowledgement.get();
    let cleared = if rts.is_some() { (1.0 - control.rts.get()) * (1.0 - lost_cts) } else { 1.0 };
    let failed = (1.0 - cleared) + cleared * (in_vain + (1.0 - in_vain) * r);
    // The probability of another transmission of the same frames, and of a frame still missing then.
    let missing = (1.0 - cleared) + cleared * (in_vain + (p - in_vain) * r);
    let limit = if wifi.retry_limit == 0 { MANY } else { wifi.retry_limit.into() };
    let response = if frames == 1 { mode.acknowledgement } else { mode.block_ack };
    let (success, failure) = (response.as_secs_f64(), mode.unanswered.timeout.as_secs_f64());
    // After a lost response its addressee waits EIFS instead of the usual space.
    let eifs = |unanswered: Unanswered| unanswered.eifs.saturating_sub(space).as_secs_f64();
    let lost_response = r * eifs(mode.unanswered);
    let exchange = |until_response: Span| {
        until_response.as_secs_f64() + (1.0 - in_vain) * (success + lost_response) + in_vain * failure
    };
    let sent = match rts {
        None => exchange(space + mode.ppdu(bytes)),
        Some(_) => {
            let until_cleared = (space + mode.rts + mode.cts).as_secs_f64() + lost_cts * eifs(mode.rts_unanswered);
            until_cleared + cleared * exchange(sifs + mode.ppdu_after_cts(bytes))
        }
    };
    let (mut seconds, mut received, mut lost, mut slots) = (0.0, 0.0, 1.0, access_point_window.min);
    let (mut reached, mut still_missing) = (1.0, 1.0);
    for _ in 0..limit {
        seconds += reached * (sent + slot.as_secs_f64() * f64::from(slots) / 2.0);
        received += still_missing * cleared * (1.0 - p);
        reached *= failed;
        still_missing *= missing;
        lost *= (1.0 - cleared) + cleared * p;
        slots = (2 * slots + 1).min(access_point_window.max);
        if wifi.retry_limit == 0 && reached < RARE {
            lost = 0.0;
            break;
        }
    }
    let loss = Probability::new(lost).expect("a power of a probability is one");
    let bits = PACKET.bits() as f64 * (packets * u64::from(frames)) as f64 * received;
    (Rate::from_bps((bits / seconds) as u64), loss)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wifi::{PhyRate, Standard};

    fn mbps(standard: Standard, rate: PhyRate, errors: f64, retry_limit: u8) -> (f64, f64) {
        let frame_error_rate = Probability::new(errors).unwrap();
        let wifi = WifiConfig { rate, retry_limit, frame_error_rate, ..WifiConfig::new(standard) };
        let (throughput, loss) = alone(&wifi, &[HostConfig::new(1)], 0);
        (throughput.as_mbps(), loss.get())
    }

    #[test]
    fn without_errors_it_is_the_cycle_of_one_frame() {
        // 802.11g at 54 Mb/s: DIFS 28 + 7.5 slots of 9 us + 254 of data + SIFS 10 + ACK at 24 Mb/s 34 = 393.5 us.
        let (throughput, loss) = mbps(Standard::G, PhyRate::Mbps54, 0.0, 7);
        assert!((throughput - 12_000.0 / 393.5).abs() < 1e-4, "{throughput}");
        assert_eq!(loss, 0.0);
        // At 6 Mb/s: 4 · ceil((22 + 8 · 1536) / 24) + 26 = 2078 us of data;
        // ACK at 6 Mb/s 20 + 4 · ceil(134 / 24) + 6 = 50.
        let (throughput, _) = mbps(Standard::G, PhyRate::Mbps6, 0.0, 7);
        assert!((throughput - 12_000.0 / (28.0 + 67.5 + 2078.0 + 60.0)).abs() < 1e-4, "{throughput}");
        // 802.11b at 11 Mb/s:
        // DIFS 50 + 15.5 slots of 20 us + 192 + ceil(12288 / 11) = 1310 + SIFS 10 + ACK at 2 Mb/s 192 + 56.
        let (throughput, _) = mbps(Standard::B, PhyRate::Mbps11, 0.0, 7);
        assert!((throughput - 12_000.0 / (50.0 + 310.0 + 1310.0 + 258.0)).abs() < 1e-4, "{throughput}");
    }

    #[test]
    fn errors_take_time_and_what_the_last_retry_does_not_mend_is_lost() {
        // One transmission, half of them in vain: 28 + 67.5 + 254 + (44 + 39) / 2 us, ACKTimeout 10 + 9 + 20.
        let (throughput, loss) = mbps(Standard::G, PhyRate::Mbps54, 0.5, 1);
        assert!((throughput - 6_000.0 / 391.0).abs() < 1e-4, "{throughput}");
        assert_eq!(loss, 0.5);
        // Two: the second after 31 / 2 slots, in half of the cases: 391 + (28 + 139.5 + 254 + 41.5) / 2;
        // a quarter is lost.
        let (throughput, loss) = mbps(Standard::G, PhyRate::Mbps54, 0.5, 2);
        assert!((throughput - 9_000.0 / (391.0 + 231.5)).abs() < 1e-4, "{throughput}");
        assert_eq!(loss, 0.25);
        // Without end: nothing is lost, and nothing comes through where every frame is.
        assert_eq!(mbps(Standard::G, PhyRate::Mbps54, 0.5, 0).1, 0.0);
        assert_eq!(mbps(Standard::G, PhyRate::Mbps54, 1.0, 0), (0.0, 1.0));
    }

    #[test]
    fn rts_and_lost_responses_take_time_and_lose_nothing_that_was_received() {
        let alone = |wifi: WifiConfig| alone(&wifi, &[HostConfig::new(1)], 0).0.as_mbps();
        let near = |one: f64, other: f64| assert!((one - other).abs() < 1e-4, "{one} and {other}");
        // 802.11g at 54 Mb/s: RTS 34 + SIFS 10 + CTS 34 + SIFS 10 before the 393.5 us of a frame of 1536 B.
        let g = |threshold, errors, retry_limit| WifiConfig {
            rts_threshold: threshold,
            response_error_rate: Probability::new(errors).unwrap(),
            retry_limit,
            ..WifiConfig::new(Standard::G)
        };
        near(alone(g(Some(Bytes::ZERO), 0.0, 7)), 12_000.0 / 481.5);
        near(alone(g(Some(Bytes::new(1536)), 0.0, 7)), 12_000.0 / 393.5);
        // Half of the ACKs are lost, and cost EIFS 88 instead of DIFS 28; then 31 / 2 slots.
        // The packet comes with the first.
        near(alone(g(None, 0.5, 1)), 12_000.0 / (393.5 + 30.0));
        near(alone(g(None, 0.5, 2)), 12_000.0 / (423.5 + (423.5 + 72.0) / 2.0));
        // With RTS half of the CTSs too: 28 + 67.5 + 34 + 44 + 30 us, then in half of the cases 10 + 254 + 44 + 30.
        near(alone(g(Some(Bytes::ZERO), 0.5, 1)), 6_000.0 / (203.5 + 169.0));
        // VHT80 MCS 9 with RTS 28 + 16 + CTS 28 + 16.
        let ac = WifiConfig { rts_threshold: Some(Bytes::ZERO), ..WifiConfig::new(Standard::Ac) };
        near(alone(ac), 64.0 * 12_000.0 / (2226.5 + 88.0));
    }

    #[test]
    fn no_more_is_sent_together_than_waits_at_the_access_point() {
        // HE80 MCS 11, queue of 100: 154398 B, 44 + 13.6 ceil((22 + 1235184) / 8166) = 44 + 13.6 · 152;
        // 43 + 67.5 + 16 + Block Ack 40.
        let (throughput, _) = mbps(Standard::Ax, PhyRate::Mbps54, 0.0, 7);
        assert!((throughput - 100.0 * 12_000.0 / 2277.7).abs() < 1e-4, "{throughput}");
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
