//! How long frames are on the air.
//!
//! - OFDM: 20 us of preamble and SIGNAL, symbols of 4 us that carry 16 service bits, the MPDU and 6 tail bits, and 6 us of
//!   signal extension (802.11-2020 §17.3.2, §18.3.2).
//! - DSSS and CCK: 192 us of long or 96 us of short preamble and header, then the MPDU's bits (802.11-2020 §16.2.2).
//! - MPDU of data: 24 B of MAC header, 8 B of LLC/SNAP, the IP packet, 4 B of FCS. ACK and CTS: 14 B.
//!
//! Leaves out: QoS and encryption headers, fragmentation, the limit of 2304 B on an MSDU.

use super::constants::{PhyRate, SIFS, Standard};
use lasthop_units::{Bytes, Span};

/// MAC header (24) + LLC/SNAP (8) + FCS (4).
const DATA_OVERHEAD: u64 = 24 + 8 + 4;
/// An ACK or a CTS: frame control 2, duration 2, receiver 6, FCS 4.
const CONTROL_BYTES: u64 = 14;

/// The durations that do not depend on the packet, worked out once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AirTimes {
    short_preamble: bool,
    /// By data rate: SIFS and the acknowledgement.
    acknowledgement: [Span; PhyRate::ALL.len()],
    /// By data rate: from the end of the data frame to when its sender knows that no acknowledgement comes.
    acknowledgement_timeout: [Span; PhyRate::ALL.len()],
    /// CTS-to-self and SIFS, before OFDM frames.
    protection: Span,
    /// DIFS.
    pub(crate) difs: Span,
    eifs_ofdm: Span,
    eifs_dsss: Span,
}

impl AirTimes {
    pub(crate) fn new(standard: Standard, short_preamble: bool, protection_rate: PhyRate) -> Self {
        let duration = |rate, bytes| frame(rate, bytes, short_preamble);
        let difs = standard.difs();
        let acknowledgement = PhyRate::ALL.map(|rate| SIFS + duration(rate.control_response(), CONTROL_BYTES));
        // ACKTimeout = aSIFSTime + aSlotTime + aRxPHYStartDelay (802.11-2020 §10.3.2.11), where the last one is the preamble
        // and the header of the response: 20 us of OFDM, 192 or 96 us of DSSS.
        let acknowledgement_timeout =
            PhyRate::ALL.map(|rate| SIFS + standard.slot() + preamble(rate.control_response(), short_preamble));
        // EIFS = aSIFSTime + an ACK at the lowest mandatory rate of the frame's class + DIFS (802.11-2020 §10.3.2.3.7).
        let eifs = |lowest| SIFS + duration(lowest, CONTROL_BYTES) + difs;
        Self {
            short_preamble,
            acknowledgement,
            acknowledgement_timeout,
            protection: match standard {
                Standard::Bg => duration(protection_rate, CONTROL_BYTES) + SIFS,
                Standard::B | Standard::G => Span::ZERO,
            },
            difs,
            eifs_ofdm: eifs(PhyRate::Mbps6),
            eifs_dsss: eifs(PhyRate::Mbps1),
        }
    }

    /// A data frame with an IP packet of this size, with the protection before it.
    pub(crate) fn data(&self, rate: PhyRate, ip_packet: Bytes) -> Span {
        let protection = if rate.is_ofdm() { self.protection } else { Span::ZERO };
        protection + frame(rate, ip_packet.get() + DATA_OVERHEAD, self.short_preamble)
    }

    /// SIFS and the acknowledgement of a data frame of this rate.
    pub(crate) fn acknowledgement(&self, rate: PhyRate) -> Span {
        self.acknowledgement[rate as usize]
    }

    /// ACKTimeout after a data frame of this rate.
    pub(crate) fn acknowledgement_timeout(&self, rate: PhyRate) -> Span {
        self.acknowledgement_timeout[rate as usize]
    }

    /// EIFS after a frame of this rate that could not be received.
    pub(crate) fn eifs(&self, rate: PhyRate) -> Span {
        if rate.is_ofdm() { self.eifs_ofdm } else { self.eifs_dsss }
    }
}

/// PLCP preamble and header. A short one is not defined at 1 Mb/s.
fn preamble(rate: PhyRate, short: bool) -> Span {
    match rate {
        rate if rate.is_ofdm() => Span::from_micros(16 + 4),
        rate if short && rate != PhyRate::Mbps1 => Span::from_micros(72 + 24),
        _ => Span::from_micros(144 + 48),
    }
}

fn frame(rate: PhyRate, mpdu_bytes: u64, short_preamble: bool) -> Span {
    let preamble = preamble(rate, short_preamble);
    if rate.is_ofdm() {
        // T = 20 + 4 ceil((16 + 6 + 8 L) / N_DBPS) + 6 us, where N_DBPS = 4 us × rate.
        let bits_per_symbol = 4 * rate.kbps() / 1000;
        let symbols = (16 + 6 + 8 * mpdu_bytes).div_ceil(bits_per_symbol);
        preamble + Span::from_micros(4 * symbols + 6)
    } else {
        // T = preamble + ceil(8 L / rate) us.
        preamble + Span::from_micros((8 * mpdu_bytes * 1000).div_ceil(rate.kbps()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(micros: u64) -> Span {
        Span::from_micros(micros)
    }

    #[test]
    fn data_frames_take_what_the_standard_says() {
        let g = AirTimes::new(Standard::G, false, PhyRate::Mbps2);
        // 1500 + 36 = 1536 B = 12288 bits, 12310 with service and tail.
        // 54: 56.99 -> 57 symbols, 20 + 228 + 6. 24: 128.2 -> 129 symbols, 20 + 516 + 6. 6: 512.9 -> 513, 20 + 2052 + 6.
        assert_eq!(g.data(PhyRate::Mbps54, Bytes::new(1500)), us(254));
        assert_eq!(g.data(PhyRate::Mbps24, Bytes::new(1500)), us(542));
        assert_eq!(g.data(PhyRate::Mbps6, Bytes::new(1500)), us(2078));
        // A TCP acknowledgement of 52 B: 88 B = 704 + 22 bits, 3.4 -> 4 symbols, 20 + 16 + 6.
        assert_eq!(g.data(PhyRate::Mbps54, Bytes::new(52)), us(42));
        // 11 Mb/s: 12288 / 11 = 1117.1 -> 1118, with the long preamble 1310, with the short one 1214.
        let b = AirTimes::new(Standard::B, false, PhyRate::Mbps2);
        assert_eq!(b.data(PhyRate::Mbps11, Bytes::new(1500)), us(1310));
        let short = AirTimes::new(Standard::B, true, PhyRate::Mbps2);
        assert_eq!(short.data(PhyRate::Mbps11, Bytes::new(1500)), us(1214));
        // No short preamble at 1 Mb/s: 192 + 12288.
        assert_eq!(short.data(PhyRate::Mbps1, Bytes::new(1500)), us(12480));
    }

    #[test]
    fn acknowledgements_timeouts_and_eifs() {
        let g = AirTimes::new(Standard::G, false, PhyRate::Mbps2);
        // 14 B = 112 + 22 bits. 24: 2 symbols, 34 us. 12: 3, 38 us. 6: 6, 50 us; each after SIFS 10.
        assert_eq!(g.acknowledgement(PhyRate::Mbps54), us(10 + 34));
        assert_eq!(g.acknowledgement(PhyRate::Mbps18), us(10 + 38));
        assert_eq!(g.acknowledgement(PhyRate::Mbps9), us(10 + 50));
        assert_eq!(g.acknowledgement_timeout(PhyRate::Mbps54), us(10 + 9 + 20));
        assert_eq!(g.eifs(PhyRate::Mbps54), us(10 + 50 + 28));
        let b = AirTimes::new(Standard::B, false, PhyRate::Mbps2);
        // 112 bits: 56 us at 2 Mb/s, 112 us at 1 Mb/s, after 192.
        assert_eq!(b.acknowledgement(PhyRate::Mbps11), us(10 + 248));
        assert_eq!(b.acknowledgement(PhyRate::Mbps1), us(10 + 304));
        assert_eq!(b.acknowledgement_timeout(PhyRate::Mbps11), us(10 + 20 + 192));
        assert_eq!(b.eifs(PhyRate::Mbps11), us(10 + 304 + 50));
    }

    #[test]
    fn protection_precedes_ofdm_frames_only() {
        // CTS 14 B. 11 Mb/s short: 96 + ceil(112 / 11) = 107, with SIFS 117. 2 Mb/s long: 192 + 56 = 248, 258. 2 short: 162.
        for (rate, short, protection) in [
            (PhyRate::Mbps11, true, 117),
            (PhyRate::Mbps2, false, 258),
            (PhyRate::Mbps2, true, 162),
            (PhyRate::Mbps1, false, 314),
        ] {
            let bg = AirTimes::new(Standard::Bg, short, rate);
            assert_eq!(bg.data(PhyRate::Mbps54, Bytes::new(1500)), us(protection + 254));
        }
        let bg = AirTimes::new(Standard::Bg, false, PhyRate::Mbps2);
        assert_eq!(bg.data(PhyRate::Mbps11, Bytes::new(1500)), us(1310));
    }
}
