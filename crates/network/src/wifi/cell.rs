//! What all on one channel have in common: the band's times, and how the presence of older stations changes them.
//!
//! | stations | slot (us) | what precedes newer PPDUs |
//! | --- | --- | --- |
//! | all as new as an access point of 802.11g or later, or of 802.11n and later | 9 | nothing |
//! | some of 802.11g beside 802.11n or 802.11ax | 9 | HT protection: a CTS-to-self at the basic OFDM rate of the response |
//! | some of 802.11b, or "802.11bg" | 20 | ERP protection: a CTS-to-self at a DSSS rate, before all OFDM frames |
//!
//! RTS and CTS, where they precede a PPDU anyway, take the place of the CTS-to-self, at the same rate. This is what
//! hostapd announces: protection by the number of stations without ERP and without HT, short slots if all have them.
//!
//! References: 802.11-2020 §10.27.2 (ERP), §10.27.3 (HT), §18.4 (slot); hostapd, src/ap/beacon.c and ieee802_11_ht.c,
//! read for the facts, not copied.

use super::constants::{ContentionWindow, Standard};
use crate::config::{HostConfig, WifiConfig};
use lasthop_units::Span;
use std::fmt;

/// The band of the channel.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Band {
    /// 2.4 GHz: 802.11b and 802.11g; 802.11n and 802.11ax if they are there.
    Ghz2_4,
    /// 5 GHz: 802.11n and later.
    Ghz5,
}

impl Band {
    /// In GHz.
    pub const fn ghz(self) -> f64 {
        match self {
            Self::Ghz2_4 => 2.4,
            Self::Ghz5 => 5.0,
        }
    }

    /// The loss in dB over this distance in m, indoors: free space up to 10 m, 35 dB for each further factor of ten.
    ///
    /// ```text
    /// L = 40.05 + 20 log10(f / 2.4 GHz) + 20 log10(min(d, 10 m)) + 35 log10(max(d, 10 m) / 10 m)        d at least 1 m
    /// ```
    ///
    /// Source: IEEE 802.11-14/0980r16, TGax simulation scenarios, scenario 2 (enterprise), without walls.
    pub fn path_loss_db(self, metres: f64) -> f64 {
        const BREAKPOINT: f64 = 10.0;
        let metres = metres.max(1.0);
        let near = 20.0 * libm::log10(metres.min(BREAKPOINT));
        40.05 + 20.0 * libm::log10(self.ghz() / 2.4) + near + 35.0 * libm::log10(metres.max(BREAKPOINT) / BREAKPOINT)
    }
}

impl fmt::Display for Band {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} GHz", self.ghz())
    }
}

/// What precedes PPDUs that older stations do not understand.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Protection {
    None,
    /// From 802.11g: a CTS at a basic OFDM rate before PPDUs of 802.11n and later.
    Ht,
    /// From 802.11b: a CTS at a DSSS rate before all OFDM frames.
    Erp,
}

/// The times of one channel.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Cell {
    /// aSIFSTime: 10 us at 2.4 GHz, 16 us at 5 GHz.
    pub(crate) sifs: Span,
    /// aSlotTime: 20 us with 802.11b stations present, else 9 us.
    pub(crate) slot: Span,
    /// The signal extension after an OFDM frame at 2.4 GHz, which makes up for the shorter SIFS.
    pub(crate) signal_extension: Span,
    /// aCCATime: the delay until others sense a transmission. 4 us of OFDM with short slots, else 15 us.
    pub(crate) sensing: Span,
    /// The inter-frame space of data: DIFS = aSIFSTime + 2 aSlotTime, or that of EDCA's best effort, aSIFSTime + AIFSN
    /// aSlotTime with AIFSN 3.
    pub(crate) space: Span,
    pub(crate) protection: Protection,
    /// The access point's, in best effort.
    pub(crate) access_point_window: ContentionWindow,
    /// Whether the basic rates include DSSS's.
    pub(crate) has_dsss: bool,
}

impl Cell {
    pub(crate) fn new(config: &WifiConfig, hosts: &[HostConfig]) -> Self {
        let standard = config.standard;
        let has = |is_old: fn(Standard) -> bool| hosts.iter().filter_map(|host| host.standard).any(is_old);
        let has_dsss = matches!(standard, Standard::B | Standard::Bg) || has(|one| one == Standard::B);
        let has_newer = standard != Standard::B;
        let has_non_ht = standard.aggregates() && has(|one| !one.aggregates());
        let micros = Span::from_micros;
        let (sifs, signal_extension) = match config.band {
            Band::Ghz2_4 => (micros(10), micros(6)),
            Band::Ghz5 => (micros(16), Span::ZERO),
        };
        let (slot, sensing) = if has_dsss { (micros(20), micros(15)) } else { (micros(9), micros(4)) };
        Self {
            sifs,
            slot,
            signal_extension,
            sensing,
            space: sifs + slot * standard.space_slots(),
            protection: match (has_dsss && has_newer, has_non_ht) {
                (true, _) => Protection::Erp,
                (false, true) => Protection::Ht,
                (false, false) => Protection::None,
            },
            access_point_window: ContentionWindow { max: config.access_point_window, ..standard.window(config.rate) },
            has_dsss,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(standard: Standard, band: Band, stations: &[Standard]) -> Cell {
        let of = |&standard: &Standard| HostConfig { standard: Some(standard), ..HostConfig::new(1) };
        let hosts: Vec<_> = stations.iter().map(of).collect();
        Cell::new(&WifiConfig { band, ..WifiConfig::new(standard) }, &hosts)
    }

    #[test]
    fn the_loss_is_free_space_up_to_10_m_and_35_db_a_factor_of_ten_beyond() {
        // 40.05; + 20; + 20 + 35. At 5 GHz 20 log10(5 / 2.4) = 6.375 more.
        for (band, metres, db) in [
            (Band::Ghz2_4, 1.0, 40.05),
            (Band::Ghz2_4, 10.0, 60.05),
            (Band::Ghz2_4, 100.0, 95.05),
            (Band::Ghz5, 10.0, 66.425),
        ] {
            assert!((band.path_loss_db(metres) - db).abs() < 1e-3, "{band}, {metres} m");
        }
    }

    #[test]
    fn data_waits_difs_or_aifs() {
        use Band::{Ghz2_4, Ghz5};
        use Standard::{Ax, B, Bg, G, N};
        // SIFS 10 and two slots of 9 or 20; SIFS 16 or 10 and three slots of 9; SIFS 10 and three of 20.
        for (standard, band, stations, micros) in [
            (G, Ghz2_4, &[][..], 28),
            (B, Ghz2_4, &[], 50),
            (Bg, Ghz2_4, &[], 50),
            (N, Ghz5, &[], 43),
            (N, Ghz2_4, &[G], 37),
            (Ax, Ghz2_4, &[N, B], 70),
        ] {
            assert_eq!(cell(standard, band, stations).space, Span::from_micros(micros), "{standard:?} {stations:?}");
        }
    }

    #[test]
    fn the_oldest_station_says_what_protects() {
        use Band::{Ghz2_4, Ghz5};
        use Standard::{Ac, Ax, B, G, N};
        for (standard, band, stations, protection) in [
            (Ac, Ghz5, &[N, Ac][..], Protection::None),
            (Ax, Ghz2_4, &[N, Ax], Protection::None),
            (N, Ghz2_4, &[G, N], Protection::Ht),
            (N, Ghz2_4, &[B, G, N], Protection::Erp),
        ] {
            assert_eq!(cell(standard, band, stations).protection, protection, "{stations:?} of {standard:?}");
        }
    }
}
