//! The modulation of 802.11n, 802.11ac and 802.11ax: channel width, streams, MCS, guard interval.
//!
//! ```text
//! N_DBPS = floor(N_SS · N_SD · N_BPSCS · R)       data bits per symbol
//! rate   = N_DBPS / T_SYM                         T_SYM = 3.2 us + GI (HT, VHT), 12.8 us + GI (HE)
//! ```
//!
//! Preambles: HT mixed 16 + L-SIG 4 + HT-SIG 8 + STF 4 + LTFs; VHT 16 + 4 + SIG-A 8 + STF 4 + LTFs + SIG-B 4; HE SU 16
//! + L-SIG and RL-SIG 8 + SIG-A 8 + STF 4 + LTFs, in us. There are 1, 2, 4, 4 LTFs for 1 to 4 streams: 4 us each in HT
//!   and VHT, in HE 8 us, or 16 us with the guard interval of 3.2 us. (ns-3 leaves SIG-B out of VHT's.)
//!
//! Leaves out: more than four streams, more than one BCC encoder (6 tail bits each), STBC, HE's packet extension, dual
//! carrier modulation and extended range.
//!
//! References: 802.11-2020 §19.5 (HT-MCSs), §21.5 (VHT-MCSs), §19.3.9, §21.3.8 (preambles); 802.11ax-2021 §27.5
//! (HE-MCSs), §27.3.11.

use super::constants::{PhyRate, Standard};
use lasthop_units::{Rate, Span};

/// A channel's width. Ordered by width.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[expect(missing_docs, reason = "each name says its width")]
pub enum ChannelWidth {
    Mhz20,
    Mhz40,
    Mhz80,
    Mhz160,
}

/// The guard interval between two symbols. Ordered by length.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[expect(missing_docs, reason = "each name says its length")]
pub enum GuardInterval {
    Ns400,
    Ns800,
    Ns1600,
    Ns3200,
}

/// The modulation of data in 802.11n and later.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Modulation {
    /// Modulation and coding of each stream: 0 to 7 in 802.11n (MCS 15 is 7 with two streams), to 9 in 802.11ac, to 11
    /// in 802.11ax.
    pub mcs: u8,
    /// Spatial streams, 1 to 4.
    pub spatial_streams: u8,
    /// 20 or 40 MHz in 802.11n.
    pub width: ChannelWidth,
    /// 0.4 or 0.8 us in 802.11n and 802.11ac; 0.8, 1.6 or 3.2 us in 802.11ax.
    pub guard_interval: GuardInterval,
}

/// Bits per subcarrier, and the code rate as a fraction, by MCS.
const CODINGS: [(u64, u64, u64); 12] = [
    (1, 1, 2),
    (2, 1, 2),
    (2, 3, 4),
    (4, 1, 2),
    (4, 3, 4),
    (6, 2, 3),
    (6, 3, 4),
    (6, 5, 6),
    (8, 3, 4),
    (8, 5, 6),
    (10, 3, 4),
    (10, 5, 6),
];

impl ChannelWidth {
    /// All widths, ascending.
    pub const ALL: [Self; 4] = [Self::Mhz20, Self::Mhz40, Self::Mhz80, Self::Mhz160];

    /// In MHz.
    pub const fn mhz(self) -> u32 {
        20 << self as u32
    }

    /// The width of this many MHz, if any.
    pub fn from_mhz(mhz: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|width| width.mhz() == mhz)
    }
}

impl GuardInterval {
    /// All guard intervals, ascending.
    pub const ALL: [Self; 4] = [Self::Ns400, Self::Ns800, Self::Ns1600, Self::Ns3200];

    /// Its duration.
    pub const fn span(self) -> Span {
        Span::from_nanos(400 << self as u32)
    }

    /// The guard interval of this length, if any.
    pub fn from_span(span: Span) -> Option<Self> {
        Self::ALL.into_iter().find(|interval| interval.span() == span)
    }
}

impl Modulation {
    /// The maximum of [`Modulation::spatial_streams`].
    pub const MOST_STREAMS: u8 = 4;
    /// The most MCSs of any standard.
    pub(super) const MCSS: u8 = CODINGS.len() as u8;

    /// The fastest for a single antenna in a standard's usual channel: 20 MHz in 802.11n, 80 MHz later; guard interval
    /// 0.8 us.
    pub const fn new(standard: Standard) -> Self {
        let (mcs, width) = match standard {
            Standard::Ac => (9, ChannelWidth::Mhz80),
            Standard::Ax => (11, ChannelWidth::Mhz80),
            _ => (7, ChannelWidth::Mhz20),
        };
        Self { mcs, spatial_streams: 1, width, guard_interval: GuardInterval::Ns800 }
    }

    /// The channel widths of a standard; none before 802.11n.
    pub const fn widths(standard: Standard) -> &'static [ChannelWidth] {
        match standard {
            Standard::N => &[ChannelWidth::Mhz20, ChannelWidth::Mhz40],
            Standard::Ac | Standard::Ax => &ChannelWidth::ALL,
            _ => &[],
        }
    }

    /// The guard intervals of a standard; none before 802.11n.
    pub const fn guard_intervals(standard: Standard) -> &'static [GuardInterval] {
        match standard {
            Standard::N | Standard::Ac => &[GuardInterval::Ns400, GuardInterval::Ns800],
            Standard::Ax => &[GuardInterval::Ns800, GuardInterval::Ns1600, GuardInterval::Ns3200],
            _ => &[],
        }
    }

    /// The MCSs of a standard for this width and these streams, ascending; none before 802.11n. Some of 802.11ac's do
    /// not fill its symbols or its encoders evenly and are forbidden (802.11-2020 §21.5).
    pub fn mcss(standard: Standard, width: ChannelWidth, spatial_streams: u8) -> impl Iterator<Item = u8> {
        let count = match standard {
            Standard::B | Standard::G | Standard::Bg => 0,
            Standard::N => 8,
            Standard::Ac => 10,
            Standard::Ax => 12,
        };
        let allowed = move |&mcs: &u8| {
            let uneven = match (width, spatial_streams, mcs) {
                (ChannelWidth::Mhz20, streams, 9) => streams != 3,
                (ChannelWidth::Mhz80, 3, 6) | (ChannelWidth::Mhz160, 3, 9) => true,
                _ => false,
            };
            standard != Standard::Ac || !uneven
        };
        (0..count).filter(allowed)
    }

    /// The data rate in a standard with this modulation; rounded down to the bit per second.
    pub fn rate(self, standard: Standard) -> Rate {
        Rate::from_bps(self.bits_per_symbol(standard) * 1_000_000_000 / self.symbol(standard).as_nanos())
    }

    /// N_DBPS.
    pub(super) fn bits_per_symbol(self, standard: Standard) -> u64 {
        let (bits, numerator, denominator) = CODINGS[usize::from(self.mcs)];
        let subcarriers = match (standard, self.width) {
            (Standard::Ax, ChannelWidth::Mhz20) => 234,
            (Standard::Ax, ChannelWidth::Mhz40) => 468,
            (Standard::Ax, ChannelWidth::Mhz80) => 980,
            (Standard::Ax, ChannelWidth::Mhz160) => 1960,
            (_, ChannelWidth::Mhz20) => 52,
            (_, ChannelWidth::Mhz40) => 108,
            (_, ChannelWidth::Mhz80) => 234,
            (_, ChannelWidth::Mhz160) => 468,
        };
        u64::from(self.spatial_streams) * subcarriers * bits * numerator / denominator
    }

    /// T_SYM.
    pub(super) fn symbol(self, standard: Standard) -> Span {
        let useful = if standard == Standard::Ax { 12_800 } else { 3_200 };
        Span::from_nanos(useful) + self.guard_interval.span()
    }

    /// From the start of the PPDU to its first data symbol.
    pub(super) fn preamble(self, standard: Standard) -> Span {
        let training_fields = [1, 2, 4, 4][usize::from(self.spatial_streams) - 1];
        Span::from_micros(match standard {
            Standard::Ax if self.guard_interval == GuardInterval::Ns3200 => 16 + 8 + 8 + 4 + 16 * training_fields,
            Standard::Ax => 16 + 8 + 8 + 4 + 8 * training_fields,
            Standard::Ac => 16 + 4 + 8 + 4 + 4 * training_fields + 4,
            _ => 16 + 4 + 8 + 4 + 4 * training_fields,
        })
    }

    /// The non-HT reference rate (802.11-2020 §10.6.11), which determines the rate of responses.
    pub(super) const fn reference_rate(self) -> PhyRate {
        match self.mcs {
            0 => PhyRate::Mbps6,
            1 => PhyRate::Mbps12,
            2 => PhyRate::Mbps18,
            3 => PhyRate::Mbps24,
            4 => PhyRate::Mbps36,
            5 => PhyRate::Mbps48,
            _ => PhyRate::Mbps54,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modulation(mcs: u8, spatial_streams: u8, mhz: u32, gi_ns: u64) -> Modulation {
        let width = ChannelWidth::from_mhz(mhz).unwrap();
        let guard_interval = GuardInterval::from_span(Span::from_nanos(gi_ns)).unwrap();
        Modulation { mcs, spatial_streams, width, guard_interval }
    }

    #[test]
    fn rates_are_those_of_the_standards_tables() {
        use Standard::{Ac, Ax, N};
        // 802.11-2020 tables 19-27 to 19-38 and 21-29 to 21-60, 802.11ax-2021 tables 27-78 and on.
        for (standard, mcs, streams, mhz, gi_ns, mbps) in [
            (N, 0, 1, 20, 800, 6.5),
            (N, 7, 1, 20, 800, 65.0),
            (N, 7, 1, 20, 400, 72.2),
            (N, 7, 2, 20, 800, 130.0),
            (N, 7, 1, 40, 800, 135.0),
            (N, 7, 4, 40, 400, 600.0),
            (Ac, 9, 1, 80, 800, 390.0),
            (Ac, 9, 1, 80, 400, 433.3),
            (Ac, 9, 2, 80, 400, 866.7),
            (Ac, 9, 1, 160, 800, 780.0),
            (Ax, 0, 1, 20, 800, 8.6),
            (Ax, 11, 1, 20, 800, 143.4),
            (Ax, 11, 1, 80, 800, 600.4),
            (Ax, 11, 2, 80, 800, 1201.0),
            (Ax, 11, 1, 80, 3200, 510.4),
            (Ax, 11, 1, 160, 800, 1201.0),
        ] {
            let rate = modulation(mcs, streams, mhz, gi_ns).rate(standard).as_mbps();
            assert!((rate - mbps).abs() < 0.05, "{standard:?} MCS {mcs}, {streams} streams, {mhz} MHz: {rate}");
        }
    }

    #[test]
    fn bits_per_symbol_are_whole() {
        let bits = |standard, mcs, mhz| modulation(mcs, 1, mhz, 800).bits_per_symbol(standard);
        // 52 · 6 · 5/6, 108 · 8 · 5/6, 234 · 8 · 5/6; floor(980 · 8 · 5/6) = floor(6533.3),
        // floor(980 · 10 · 5/6) = floor(8166.7).
        assert_eq!([(7, 20), (9, 40), (9, 80)].map(|(mcs, mhz)| bits(Standard::Ac, mcs, mhz)), [260, 720, 1560]);
        assert_eq!([(0, 20), (9, 80), (11, 80)].map(|(mcs, mhz)| bits(Standard::Ax, mcs, mhz)), [117, 6533, 8166]);
    }

    #[test]
    fn preambles_grow_with_the_streams() {
        let us = |standard, gi_ns| {
            [1, 2, 3, 4].map(|streams| modulation(0, streams, 20, gi_ns).preamble(standard).as_micros())
        };
        assert_eq!(us(Standard::N, 800), [36, 40, 48, 48]);
        assert_eq!(us(Standard::Ac, 400), [40, 44, 52, 52]);
        assert_eq!(us(Standard::Ax, 800), [44, 52, 68, 68]);
        assert_eq!(us(Standard::Ax, 3200), [52, 68, 100, 100]);
    }

    #[test]
    fn some_of_802_11ac_are_not_allowed() {
        let last = |standard, mhz, streams| {
            let width = ChannelWidth::from_mhz(mhz).unwrap();
            Modulation::mcss(standard, width, streams).last()
        };
        assert_eq!(last(Standard::N, 20, 1), Some(7));
        assert_eq!([1, 2, 3, 4].map(|streams| last(Standard::Ac, 20, streams)), [Some(8), Some(8), Some(9), Some(8)]);
        assert_eq!((last(Standard::Ac, 160, 3), last(Standard::Ac, 160, 4)), (Some(8), Some(9)));
        assert_eq!(Modulation::mcss(Standard::Ac, ChannelWidth::Mhz80, 3).find(|&mcs| mcs == 6), None);
        assert_eq!(last(Standard::Ax, 20, 1), Some(11));
        assert_eq!(last(Standard::G, 20, 1), None);
    }
}
