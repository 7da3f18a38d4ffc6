//! The radios of records: the standard that explains their PHY rates, and these over time.
//!
//! nl80211 tells a rate, not the standard, the width, the streams and the MCS of which it is. Of all combinations the
//! one is taken that has most of the recorded rates; a rate that it has not becomes its nearest.

use super::recorded::{Record, Way};
use lasthop_network::{ChannelWidth, Modulation, PhyRate, Standard};
use lasthop_status::{Modulation as Kind, WifiLink};
use lasthop_units::Rate;
use std::fmt::Write as _;

/// The precision of nl80211's rates, in Mb/s.
const SAME_MBPS: f64 = 0.1;
/// Above this a channel is not at 2.4 GHz.
const BAND_MHZ: u32 = 3_000;

/// What all have in common.
pub(super) struct Radio {
    standard: Standard,
    /// In 802.11n and later.
    channel: Option<Modulation>,
    at_2_4_ghz: bool,
    /// A rate of 802.11b beside those of 802.11g.
    has_dsss: bool,
    /// The one that was recorded most often.
    usual_mbps: f64,
}

impl Radio {
    /// `None`: no record knows its radio.
    pub(super) fn of(records: &[Record]) -> Option<Self> {
        let seen = || {
            records.iter().flat_map(|record| {
                record.ticks.iter().filter_map(move |tick| tick.wifi.as_ref().map(|wifi| (record, wifi)))
            })
        };
        let rates: Vec<f64> = seen().filter_map(|(record, wifi)| rate(record, wifi)).collect();
        let count = |rate: f64| rates.iter().filter(|other| same(**other, rate)).count();
        let usual_mbps = rates.iter().copied().max_by_key(|rate| count(*rate))?;
        let kinds: Vec<Kind> =
            seen().flat_map(|(_, wifi)| [wifi.tx_modulation, wifi.rx_modulation]).flatten().collect();
        let has = |kind: Kind| kinds.contains(&kind);
        let at_2_4_ghz = seen().filter_map(|(_, wifi)| wifi.frequency_mhz).any(|mhz| mhz < BAND_MHZ);
        let (standard, channel) = match (has(Kind::Aggregated), has(Kind::Ofdm), has(Kind::Dsss)) {
            (true, ..) => {
                let (standard, channel) = best(&rates, at_2_4_ghz);
                (standard, Some(channel))
            }
            (false, false, true) => (Standard::B, None),
            (false, ..) => (Standard::G, None),
        };
        Some(Self { standard, channel, at_2_4_ghz, has_dsss: has(Kind::Dsss), usual_mbps })
    }

    /// The table `[access]`.
    pub(super) fn access(&self) -> String {
        let mut text = String::from("# The standard that has most of the recorded PHY rates.\n[access]\n");
        let _ = writeln!(text, "standard = \"{}\"", self.word());
        let key_of_rate = self.key_of(self.usual_mbps);
        match self.channel {
            Some(Modulation { spatial_streams, width, guard_interval, .. }) => {
                if self.standard != Standard::Ac {
                    let _ = writeln!(text, "band_ghz = {}", if self.at_2_4_ghz { "2.4" } else { "5" });
                }
                let guard_us = guard_interval.span().as_secs_f64() * 1e6;
                let _ = writeln!(
                    text,
                    "channel_width_mhz = {}\nspatial_streams = {spatial_streams}\nguard_interval_us = {guard_us:.1}",
                    width.mhz()
                );
            }
            None if self.standard == Standard::G && self.has_dsss => text.push_str("rate_set = \"all\"\n"),
            None => {}
        }
        let _ = writeln!(text, "{key_of_rate}    # the rate seen most often; those of the hosts are below");
        text
    }

    /// Each host's PHY rate over time.
    pub(super) fn changes(&self, records: &[Record], end_s: f64) -> String {
        let mut text = String::new();
        for (host, record) in records.iter().enumerate() {
            let mut before = String::new();
            let ticks = record.ticks.iter().filter(|tick| tick.at_s < end_s);
            for (at_s, wifi) in ticks.filter_map(|tick| Some((tick.at_s.max(0.0), tick.wifi.as_ref()?))) {
                let Some(key) = rate(record, wifi).map(|rate| self.key_of(rate)).filter(|key| *key != before) else {
                    continue;
                };
                let signal = wifi.signal_dbm.map_or(String::new(), |dbm| format!("    # {dbm} dBm"));
                let _ = writeln!(text, "[[changes]]\nat_s = {at_s:.1}\nhosts = [{host}]\n{key}{signal}\n");
                before = key;
            }
        }
        text
    }

    /// A rate as the scenario has it.
    fn key_of(&self, rate_mbps: f64) -> String {
        let apart = |rate: Rate| (rate.as_mbps() - rate_mbps).abs();
        if let Some(channel) = self.channel {
            let mcss = Modulation::mcss(self.standard, channel.width, channel.spatial_streams);
            let rate = |mcs: u8| Modulation { mcs, ..channel }.rate(self.standard);
            let nearest = mcss.min_by(|one, other| apart(rate(*one)).total_cmp(&apart(rate(*other))));
            return format!("mcs = {}", nearest.unwrap_or(0));
        }
        let is_dsss = |rate: &PhyRate| !rate.is_ofdm();
        let has = |rate: &&PhyRate| match self.standard {
            Standard::B => is_dsss(rate),
            _ => self.has_dsss || !is_dsss(rate),
        };
        let known = PhyRate::ALL.iter().filter(has).map(|rate| rate.rate());
        let nearest = known.min_by(|one, other| apart(*one).total_cmp(&apart(*other)));
        format!("rate_mbps = {}", nearest.map_or(rate_mbps, Rate::as_mbps))
    }

    const fn word(&self) -> &'static str {
        match self.standard {
            Standard::B => "802.11b",
            Standard::G => "802.11g",
            Standard::Bg => "802.11bg",
            Standard::N => "802.11n",
            Standard::Ac => "802.11ac",
            Standard::Ax => "802.11ax",
        }
    }
}

/// The PHY rate of most of its data.
fn rate(record: &Record, wifi: &WifiLink) -> Option<f64> {
    match record.way() {
        Way::Up => wifi.tx_bitrate_mbps.or(wifi.rx_bitrate_mbps),
        Way::Down => wifi.rx_bitrate_mbps.or(wifi.tx_bitrate_mbps),
    }
}

fn same(one: f64, other: f64) -> bool {
    (one - other).abs() <= SAME_MBPS
}

/// The channel with most of these rates, and the simplest of those.
fn best(rates: &[f64], at_2_4_ghz: bool) -> (Standard, Modulation) {
    let standards: &[Standard] =
        if at_2_4_ghz { &[Standard::N, Standard::Ax] } else { &[Standard::Ac, Standard::N, Standard::Ax] };
    let mut best = (0, (standards[0], Modulation::new(standards[0])));
    for &standard in standards {
        for &width in Modulation::widths(standard).iter().filter(|width| !at_2_4_ghz || **width <= ChannelWidth::Mhz40)
        {
            for spatial_streams in 1..=Modulation::MOST_STREAMS {
                for &guard_interval in Modulation::guard_intervals(standard) {
                    let channel = Modulation { mcs: 0, spatial_streams, width, guard_interval };
                    let of_mcs = |mcs: u8| Modulation { mcs, ..channel }.rate(standard).as_mbps();
                    let has = |rate: &&f64| {
                        Modulation::mcss(standard, width, spatial_streams).any(|mcs| same(of_mcs(mcs), **rate))
                    };
                    let known = rates.iter().filter(has).count();
                    if known > best.0 {
                        best = (known, (standard, channel));
                    }
                }
            }
        }
    }
    best.1
}
