//! Losses to noise: of data frames, of requests and of responses.
//!
//! A station has either given error rates, the same for frames of any size and mode, or a signal-to-noise ratio, from
//! which the errors of each mode follow:
//!
//! ```text
//! SNR    = snr - 10 log10(width / 20 MHz) - 10 log10(streams)     of each stream
//! PER(L) = 1 - (1 - PER(1458))^(L / 1458)                          L bytes; PER(1458) from the table
//! ```
//!
//! - The sender's power is the same for all widths, while noise doubles with each doubling. Streams divide the power.
//! - Below 4 dB of the channel's width no preamble is detected, so all is lost. Streams do not matter there.
//! - RTS, CTS, ACK, Block Ack and its request go as wide as the data, at the basic rate that belongs to it, with one
//!   stream. The rates of 802.11a have the errors of the MCS with the same modulation; BPSK 3/4 those of QPSK 3/4
//!   with 3 dB less.
//! - Both ways have the same SNR. It is constant between changes.
//!
//! The table has three points of each MCS's curve. Between them and beyond, log(-log(1 - PER)) is linear in dB; this is
//! within 0.07 of each point of the source's curves. Like there, PER(1458) below 1e-5 counts as 0.
//!
//! Leaves out: fading, interference between streams, convolutional codes (1 to 1.5 dB worse), short frames' advantage
//! beyond the formula.
//!
//! References: table: ns-3's AWGN curves for LDPC and 1458 B (error-rate-tables.cc), from R. Patidar, S. Roy, T. R.
//! Henderson, A. Chandramohan: Link-to-System Mapping for ns-3 Wi-Fi OFDM Error Models, WNS3 2017. Threshold: ns-3's
//! ThresholdPreambleDetectionModel. Length: IEEE 802.11-14/0803r1.

use super::airtime::{AirTimes, BLOCK_ACK_BYTES, BLOCK_ACK_REQUEST_BYTES, CONTROL_BYTES, ModeId, RTS_BYTES};
use super::constants::PhyRate;
use crate::config::{HostConfig, WifiConfig};
use lasthop_units::Probability;

/// By MCS: the SNR in dB at which the rates of error below hold.
const SNRS: [[f64; 3]; 12] = [
    [-1.16, -0.67, -0.02],
    [1.84, 2.34, 2.98],
    [4.36, 4.81, 5.36],
    [7.30, 7.88, 8.60],
    [10.39, 10.89, 11.49],
    [14.52, 15.09, 15.75],
    [15.88, 16.47, 17.15],
    [17.37, 17.99, 18.73],
    [21.00, 21.64, 22.37],
    [22.80, 23.47, 24.27],
    [26.07, 26.78, 27.64],
    [28.08, 28.86, 29.75],
];
const ERRORS: [f64; 3] = [0.9, 0.1, 0.001];
const TABLE_BYTES: f64 = 1458.0;
/// Rarer errors of the table's frame do not happen.
const LEAST_ERROR: f64 = 1e-5;
/// The least SNR in dB with which a preamble is detected.
const PREAMBLE_DB: f64 = 4.0;

/// A station's losses to noise, both ways.
#[derive(Clone, Debug)]
pub(super) enum Noise {
    Given {
        frames: Probability,
        responses: Probability,
    },
    /// By mode.
    OfSnr(Vec<Losses>),
}

/// Losses with one mode.
#[derive(Clone, Copy, Debug)]
pub(super) struct Losses {
    /// -ln(1 - PER) for each byte of a data frame.
    hazard: f64,
    control: ControlLosses,
}

/// Losses of the frames around data of one mode.
#[derive(Clone, Copy, Debug)]
pub(super) struct ControlLosses {
    pub(super) rts: Probability,
    /// Of an ACK or a CTS.
    pub(super) acknowledgement: Probability,
    pub(super) block_ack: Probability,
    /// Of a Block Ack Request.
    pub(super) request: Probability,
}

/// The loss of one data frame after another with the same mode.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameLoss {
    /// Infinite if all are lost; `None` if size does not matter.
    hazard: Option<f64>,
    bytes: u64,
    loss: Probability,
}

impl Noise {
    /// The noise of a station; `own`: the medium as it uses it.
    pub(super) fn new(own: &WifiConfig, host: &HostConfig, times: &AirTimes) -> Self {
        match host.snr_db {
            Some(snr_db) => Self::of_snr(snr_db, own.block_ack_window(), times),
            None => Self::Given {
                frames: host.frame_error_rate.unwrap_or(own.frame_error_rate),
                responses: own.response_error_rate,
            },
        }
    }

    /// The noise of a station with this SNR in dB.
    pub(super) fn of_snr(snr_db: f64, block_ack_window: u16, times: &AirTimes) -> Self {
        let losses = |mcs: usize, snr: f64, width_snr: f64, response: PhyRate| {
            let is_detected = width_snr >= PREAMBLE_DB;
            let hazard = |mcs, snr| if is_detected { hazard(mcs, snr) / TABLE_BYTES } else { f64::INFINITY };
            let (control_mcs, gain) = coding(response);
            let control = |bytes: u64| loss(hazard(control_mcs, width_snr + gain) * bytes as f64);
            Losses {
                hazard: hazard(mcs, snr),
                control: ControlLosses {
                    rts: control(RTS_BYTES),
                    acknowledgement: control(CONTROL_BYTES),
                    block_ack: control(BLOCK_ACK_BYTES + u64::from(block_ack_window) / 8),
                    request: control(BLOCK_ACK_REQUEST_BYTES),
                },
            }
        };
        let decibels = |factor: u32| 10.0 * libm::log10(f64::from(factor));
        let legacy = PhyRate::ALL.into_iter().map(|rate| {
            let (mcs, gain) = coding(rate);
            losses(mcs, snr_db + gain, snr_db, rate.control_response())
        });
        let later = times.modulations().map(|modulation| {
            let width_snr = snr_db - decibels(modulation.width.mhz() / 20);
            let snr = width_snr - decibels(modulation.spatial_streams.into());
            losses(modulation.mcs.into(), snr, width_snr, modulation.reference_rate().control_response())
        });
        Self::OfSnr(legacy.chain(later).collect())
    }

    /// Sets the given error rate of data frames.
    pub(super) fn give(&mut self, errors: Probability) {
        if let Self::Given { frames, .. } = self {
            *frames = errors;
        }
    }

    /// The losses of data frames with this mode.
    #[inline]
    pub(super) fn frames(&self, mode: ModeId) -> FrameLoss {
        match self {
            Self::Given { frames, .. } => FrameLoss { hazard: None, bytes: 0, loss: *frames },
            Self::OfSnr(losses) => {
                FrameLoss { hazard: Some(losses[mode.index()].hazard), bytes: 0, loss: Probability::ZERO }
            }
        }
    }

    /// The losses of the frames around data with this mode.
    #[inline]
    pub(super) fn control(&self, mode: ModeId) -> ControlLosses {
        match self {
            &Self::Given { responses, .. } => ControlLosses {
                rts: Probability::ZERO,
                acknowledgement: responses,
                block_ack: responses,
                request: Probability::ZERO,
            },
            Self::OfSnr(losses) => losses[mode.index()].control,
        }
    }
}

impl FrameLoss {
    /// The loss of a frame of this size, with its delimiter.
    #[inline]
    pub(super) fn of(&mut self, bytes: u64) -> Probability {
        if let Some(hazard) = self.hazard
            && bytes != self.bytes
        {
            self.bytes = bytes;
            self.loss = loss(hazard * bytes as f64);
        }
        self.loss
    }
}

/// 1 - exp(-hazard).
fn loss(hazard: f64) -> Probability {
    Probability::new(-libm::expm1(-hazard)).expect("a hazard is not negative")
}

/// -ln(1 - PER) of the table's frame.
fn hazard(mcs: usize, snr_db: f64) -> f64 {
    let snrs = SNRS[mcs];
    let log_hazards = ERRORS.map(|error| libm::log(-libm::log1p(-error)));
    let from = usize::from(snr_db > snrs[1]);
    let slope = (log_hazards[from + 1] - log_hazards[from]) / (snrs[from + 1] - snrs[from]);
    let hazard = libm::exp(log_hazards[from] + slope * (snr_db - snrs[from]));
    if hazard < LEAST_ERROR { 0.0 } else { hazard }
}

/// The MCS of the same modulation and code as a rate of 802.11a, and the dB in which the rate is better.
fn coding(rate: PhyRate) -> (usize, f64) {
    match rate {
        PhyRate::Mbps9 => (2, 10.0 * libm::log10(2.0)),
        PhyRate::Mbps12 => (1, 0.0),
        PhyRate::Mbps18 => (2, 0.0),
        PhyRate::Mbps24 => (3, 0.0),
        PhyRate::Mbps36 => (4, 0.0),
        PhyRate::Mbps48 => (5, 0.0),
        PhyRate::Mbps54 => (6, 0.0),
        // 6 Mb/s. Stations with DSSS data have no SNR; broadcasts at such a rate, which all must hear, count as these.
        _ => (0, 0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wifi::modulation::{ChannelWidth, Modulation};
    use crate::wifi::rate_control::RateControl;
    use crate::wifi::{Standard, alone::best_mode};

    const FRAME: u64 = 1458;

    fn config(standard: Standard, spatial_streams: u8, width: ChannelWidth) -> WifiConfig {
        let modulation = Modulation { spatial_streams, width, ..Modulation::new(standard) };
        WifiConfig { modulation, rate_control: RateControl::Ideal, ..WifiConfig::new(standard) }
    }

    fn noise(config: &WifiConfig, snr_db: f64) -> Noise {
        Noise::of_snr(snr_db, config.block_ack_window(), &AirTimes::new(config, &[]))
    }

    /// The loss with an MCS of the configured streams and width.
    fn loss(config: &WifiConfig, mcs: u8, snr_db: f64, bytes: u64) -> f64 {
        noise(config, snr_db).frames(ModeId::of_mcs(mcs)).of(bytes).get()
    }

    #[test]
    fn losses_are_those_of_the_published_curves() {
        // AWGN, LDPC, 1458 B.
        let he = config(Standard::Ax, 1, ChannelWidth::Mhz20);
        for (mcs, snr_db, published) in [
            (2, 4.5, 0.6256),
            (2, 5.25, 0.0025),
            (3, 7.5, 0.5789),
            (4, 10.75, 0.2472),
            (5, 14.75, 0.5379),
            (6, 16.5, 0.0815),
            (7, 17.75, 0.3319),
            (7, 18.5, 0.0047),
            (8, 21.25, 0.5627),
            (9, 23.0, 0.6360),
            (10, 26.5, 0.3294),
            (11, 28.5, 0.4023),
            (11, 29.25, 0.0131),
        ] {
            let loss = loss(&he, mcs, snr_db, FRAME);
            assert!((loss - published).abs() < 0.07, "MCS {mcs}, {snr_db} dB: {loss} for {published}");
        }
    }

    #[test]
    fn losses_fall_with_the_snr_and_rise_with_the_mcs_and_the_size() {
        let he = config(Standard::Ax, 1, ChannelWidth::Mhz20);
        for tenths in 40..350 {
            let snr_db = f64::from(tenths) / 10.0;
            for mcs in 0..12 {
                let here = loss(&he, mcs, snr_db, FRAME);
                assert!(loss(&he, mcs, snr_db + 0.1, FRAME) <= here);
                assert!(mcs == 11 || loss(&he, mcs + 1, snr_db, FRAME) >= here);
                // Two frames of half the size are lost as often as one: 1 - (1 - p)^2.
                let half = loss(&he, mcs, snr_db, FRAME / 2);
                assert!((1.0 - (1.0 - half).powi(2) - here).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn width_and_streams_share_the_power() {
        let narrow = config(Standard::Ac, 1, ChannelWidth::Mhz20);
        let near = |one: f64, other: f64| assert!((one - other).abs() < 1e-9, "{one} and {other}");
        for (streams, width, factor) in
            [(1, ChannelWidth::Mhz80, 4.0_f64), (2, ChannelWidth::Mhz20, 2.0), (3, ChannelWidth::Mhz160, 24.0)]
        {
            let wide = config(Standard::Ac, streams, width);
            let more = 10.0 * libm::log10(factor);
            near(loss(&wide, 5, 14.9 + more, FRAME), loss(&narrow, 5, 14.9, FRAME));
        }
    }

    #[test]
    fn below_4_db_of_the_channels_width_nothing_is_heard() {
        let narrow = config(Standard::N, 1, ChannelWidth::Mhz20);
        assert!(loss(&narrow, 0, 4.0, FRAME) < 1e-6);
        assert_eq!(loss(&narrow, 0, 3.9, FRAME), 1.0);
        // 6 dB more for 80 MHz, none for two streams; control frames as well.
        let wide = config(Standard::Ac, 2, ChannelWidth::Mhz80);
        let control = |snr_db| noise(&wide, snr_db).control(ModeId::of_mcs(0));
        assert_eq!((loss(&wide, 0, 10.0, FRAME), control(10.0).block_ack), (1.0, Probability::ONE));
        assert!(loss(&wide, 0, 10.1, FRAME) < 1e-6 && control(10.1).rts.get() < 1e-6);
    }

    #[test]
    fn control_frames_go_at_rates_of_802_11a() {
        // MCS 7 is answered at 24 Mb/s, with the errors of MCS 3: a Block Ack of 32 B at 7.5 dB about
        // 1 - (1 - 0.5789)^(32 / 1458) = 0.019, an ACK of 14 B 0.008.
        let ht = config(Standard::N, 1, ChannelWidth::Mhz20);
        let control = noise(&ht, 7.5).control(ModeId::of_mcs(7));
        assert!((control.block_ack.get() - 0.019).abs() < 0.002, "{control:?}");
        assert!((control.acknowledgement.get() - 0.008).abs() < 0.001, "{control:?}");
        assert!(control.acknowledgement < control.rts && control.rts < control.request);
        // MCS 2 at 12 Mb/s, MCS 0 at 6.
        let robust = [2, 0].map(|mcs| noise(&ht, 7.5).control(ModeId::of_mcs(mcs)).block_ack.get());
        assert!(robust.iter().all(|&loss| loss < 1e-6), "{robust:?}");
    }

    #[test]
    fn the_ideal_mode_is_the_fastest_that_gets_through() {
        use ChannelWidth::{Mhz20, Mhz40, Mhz80};
        let ideal = |config: &WifiConfig, snr_db| {
            let times = AirTimes::new(config, &[]);
            let id = best_mode(config, &times, &noise(config, snr_db));
            let modulation = times.modulations().nth(id.index() - PhyRate::ALL.len()).unwrap();
            (modulation.width, modulation.spatial_streams, modulation.mcs)
        };
        let ht = config(Standard::N, 1, Mhz20);
        // MCS 7 has 10 % at 18.0 dB, MCS 6 0.1 % at 17.15, MCS 4 0.1 % at 11.5. Below 4 dB the slowest.
        for (snr_db, mcs) in [(40.0, 7), (18.5, 7), (17.2, 6), (12.0, 4), (5.5, 2), (3.0, 0)] {
            assert_eq!(ideal(&ht, snr_db), (Mhz20, 1, mcs), "{snr_db} dB");
        }
        // Two streams lose 3 dB, 40 MHz 3 dB, 80 MHz 6 dB.
        let vht = config(Standard::Ac, 2, Mhz80);
        for (snr_db, mode) in [
            (40.0, (Mhz80, 2, 9)),
            // 21 dB with two streams: MCS 7, 585 Mb/s; 24 dB with one: MCS 9, 390.
            (30.0, (Mhz80, 2, 7)),
            // 6 dB with one stream: MCS 2, 88 Mb/s; 3 dB with two: MCS 1, 117.
            (12.0, (Mhz80, 2, 1)),
            // 80 MHz: nothing; 40 MHz: 5 dB with one stream, MCS 2, 40 Mb/s, 2 dB with two, MCS 0, 27;
            // 20 MHz: 8 dB, MCS 3, 26.
            (8.0, (Mhz40, 1, 2)),
            // 20 MHz: 5 dB with one stream, MCS 2, 19.5 Mb/s; 2 dB with two, MCS 0, 13.
            (5.0, (Mhz20, 1, 2)),
            (3.0, (Mhz20, 1, 0)),
        ] {
            assert_eq!(ideal(&vht, snr_db), mode, "{snr_db} dB");
        }
        let limited = WifiConfig { modulation: Modulation { mcs: 4, ..vht.modulation }, ..vht };
        assert_eq!(ideal(&limited, 40.0), (Mhz80, 2, 4));
    }
}
