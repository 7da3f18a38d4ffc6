//! The standard's constants of each PHY: rates, contention windows, limits of A-MPDUs. Slots and inter-frame spaces are
//! in `cell`.
//!
//! References: 802.11-2020 §15 and §16 (DSSS, HR/DSSS), §17 (OFDM), §18 (ERP), §19 (HT), §21 (VHT), §10.3.2.3
//! (inter-frame spaces), §10.3.7 (how they follow from the PHY's constants), §10.23.2 (EDCA); 802.11ax-2021 §27 (HE).

use super::cell::Band;
use lasthop_units::{Bytes, Rate};
use std::fmt;

/// The PHY; of 802.11g also the presence of old stations.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Standard {
    /// 802.11b: DSSS and CCK at 1, 2, 5.5 and 11 Mb/s.
    B,
    /// 802.11g alone: ERP-OFDM with short slots, no protection.
    G,
    /// 802.11g beside 802.11b: ERP-OFDM with long slots, a CTS-to-self before each OFDM frame.
    Bg,
    /// 802.11n (HT).
    N,
    /// 802.11ac (VHT), at 5 GHz.
    Ac,
    /// 802.11ax (HE), with one sender per transmission (no OFDMA, no multi-user MIMO).
    Ax,
}

/// A PHY rate of 802.11b or 802.11g. Ordered by rate.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[expect(missing_docs, reason = "each name says its rate")]
pub enum PhyRate {
    Mbps1,
    Mbps2,
    Mbps5_5,
    Mbps6,
    Mbps9,
    Mbps11,
    Mbps12,
    Mbps18,
    Mbps24,
    Mbps36,
    Mbps48,
    Mbps54,
}

impl PhyRate {
    /// All rates, ascending.
    pub const ALL: [Self; 12] = [
        Self::Mbps1,
        Self::Mbps2,
        Self::Mbps5_5,
        Self::Mbps6,
        Self::Mbps9,
        Self::Mbps11,
        Self::Mbps12,
        Self::Mbps18,
        Self::Mbps24,
        Self::Mbps36,
        Self::Mbps48,
        Self::Mbps54,
    ];

    /// The PHY rate with this value, if any.
    pub fn from_rate(rate: Rate) -> Option<Self> {
        Self::ALL.into_iter().find(|phy_rate| phy_rate.rate() == rate)
    }

    /// The rate of its data bits.
    pub const fn rate(self) -> Rate {
        Rate::from_bps(self.kbps() * 1000)
    }

    /// Whether it is sent with OFDM; otherwise with DSSS or CCK.
    pub const fn is_ofdm(self) -> bool {
        !matches!(self, Self::Mbps1 | Self::Mbps2 | Self::Mbps5_5 | Self::Mbps11)
    }

    pub(crate) const fn kbps(self) -> u64 {
        match self {
            Self::Mbps1 => 1_000,
            Self::Mbps2 => 2_000,
            Self::Mbps5_5 => 5_500,
            Self::Mbps6 => 6_000,
            Self::Mbps9 => 9_000,
            Self::Mbps11 => 11_000,
            Self::Mbps12 => 12_000,
            Self::Mbps18 => 18_000,
            Self::Mbps24 => 24_000,
            Self::Mbps36 => 36_000,
            Self::Mbps48 => 48_000,
            Self::Mbps54 => 54_000,
        }
    }

    /// The rate of the response to a frame of this rate: the highest basic rate of its class that does not exceed it
    /// (802.11-2020 §10.6.6.5.2). Basic rates: 6, 12, 24 Mb/s (OFDM's mandatory ones), and 1, 2 Mb/s (DSSS's).
    pub(crate) fn control_response(self) -> Self {
        match (self.is_ofdm(), self) {
            (true, rate) if rate >= Self::Mbps24 => Self::Mbps24,
            (true, rate) if rate >= Self::Mbps12 => Self::Mbps12,
            (true, _) => Self::Mbps6,
            (false, rate) if rate >= Self::Mbps2 => Self::Mbps2,
            (false, _) => Self::Mbps1,
        }
    }
}

impl fmt::Display for Standard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for PhyRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rate().fmt(f)
    }
}

/// Contention window of a PHY, as the greatest number of slots to draw.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct ContentionWindow {
    /// aCWmin.
    pub(crate) min: u32,
    /// aCWmax.
    pub(crate) max: u32,
}

/// aCWmin 15 of OFDM, aCWmax 1023.
pub(crate) const OFDM_WINDOW: ContentionWindow = ContentionWindow { min: 15, max: 1023 };
/// aCWmin 31 of a station that supports only DSSS, aCWmax 1023.
pub(crate) const DSSS_WINDOW: ContentionWindow = ContentionWindow { min: 31, max: 1023 };

/// The buffer of a Block Ack agreement in frames, except for the larger one of 802.11ax.
pub(crate) const SHORT_WINDOW: u16 = 64;

/// The limits of a standard's A-MPDU.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct AggregateLimits {
    /// The largest buffer of a Block Ack agreement in frames.
    pub(crate) window: u16,
    pub(crate) bytes: u64,
    /// The largest A-MSDU: of an MPDU in an A-MPDU, less its header (26) and FCS (4).
    pub(crate) amsdu_bytes: Bytes,
}

impl Standard {
    /// The largest A-MPDU of any standard, that of 802.11ax.
    pub const LARGEST_AMPDU: Bytes = Bytes::new(6_500_631);
    /// The largest A-MSDU of any standard: of an MPDU of 11454 B, less its header and FCS.
    pub const LARGEST_AMSDU: Bytes = Bytes::new(11_454 - 30);

    /// The limits of 802.11n and later, which send data frames as A-MPDUs.
    pub(crate) const fn aggregate_limits(self) -> Option<AggregateLimits> {
        match self {
            Self::B | Self::G | Self::Bg => None,
            Self::N => {
                Some(AggregateLimits { window: SHORT_WINDOW, bytes: 65_535, amsdu_bytes: Bytes::new(4_095 - 30) })
            }
            Self::Ac => {
                Some(AggregateLimits { window: SHORT_WINDOW, bytes: 1_048_575, amsdu_bytes: Self::LARGEST_AMSDU })
            }
            Self::Ax => Some(AggregateLimits {
                window: 256,
                bytes: Self::LARGEST_AMPDU.get(),
                amsdu_bytes: Self::LARGEST_AMSDU,
            }),
        }
    }

    /// Its name in configurations.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::B => "802.11b",
            Self::G => "802.11g",
            Self::Bg => "802.11bg",
            Self::N => "802.11n",
            Self::Ac => "802.11ac",
            Self::Ax => "802.11ax",
        }
    }

    /// Whether its data frames are sent as A-MPDUs under a Block Ack agreement: 802.11n and later.
    pub const fn aggregates(self) -> bool {
        self.aggregate_limits().is_some()
    }

    /// The slots in the inter-frame space of data: 2 of DIFS, or AIFSN 3 of EDCA's best effort.
    pub(crate) const fn space_slots(self) -> u64 {
        if self.aggregates() { 3 } else { 2 }
    }

    /// The standards of stations on an access point of this one in this band, oldest first.
    pub(crate) fn of_stations(self, band: Band) -> Vec<Self> {
        let older: &[Self] = match (self, band) {
            (Self::B | Self::G | Self::Bg, _) => &[],
            (_, Band::Ghz2_4) => &[Self::B, Self::G, Self::N],
            (_, Band::Ghz5) => &[Self::N, Self::Ac],
        };
        let older = older.iter().copied().take_while(|&older| older != self);
        older.chain([self]).collect()
    }

    /// The bands of access points of this standard.
    pub(crate) const fn bands(self) -> &'static [Band] {
        match self {
            Self::B | Self::G | Self::Bg => &[Band::Ghz2_4],
            Self::N | Self::Ax => &[Band::Ghz2_4, Band::Ghz5],
            Self::Ac => &[Band::Ghz5],
        }
    }

    /// The contention window of a station with this highest rate.
    pub(crate) const fn window(self, highest: PhyRate) -> ContentionWindow {
        match self {
            Self::B => DSSS_WINDOW,
            Self::Bg if !highest.is_ofdm() => DSSS_WINDOW,
            _ => OFDM_WINDOW,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acknowledgements_go_at_basic_rates() {
        let answer = |mbps: f64| PhyRate::from_rate(Rate::from_mbps(mbps)).unwrap().control_response().rate().as_mbps();
        for (data, control) in [
            (54.0, 24.0),
            (24.0, 24.0),
            (18.0, 12.0),
            (12.0, 12.0),
            (9.0, 6.0),
            (6.0, 6.0),
            (11.0, 2.0),
            (5.5, 2.0),
            (2.0, 2.0),
            (1.0, 1.0),
        ] {
            assert_eq!(answer(data), control, "data at {data} Mb/s");
        }
    }
}
