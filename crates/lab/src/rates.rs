//! The rates of frames, as mac80211_hwsim numbers them.

use lasthop_kernel::hwsim::{MOST_RATES, Sent, TxRate, rate_flag};
use lasthop_network::wifi::radios::{Tries, TryRate};
use lasthop_network::{Band, ChannelWidth, GuardInterval, Modulation, PhyRate, Standard};

/// The rates of 802.11g in the order of the kernel's simulated radios; at 5 GHz those from the fifth on.
const RATES: [PhyRate; 12] = [
    PhyRate::Mbps1,
    PhyRate::Mbps2,
    PhyRate::Mbps5_5,
    PhyRate::Mbps11,
    PhyRate::Mbps6,
    PhyRate::Mbps9,
    PhyRate::Mbps12,
    PhyRate::Mbps18,
    PhyRate::Mbps24,
    PhyRate::Mbps36,
    PhyRate::Mbps48,
    PhyRate::Mbps54,
];

/// The number of rates that a band lacks.
fn missing_rates(frequency_mhz: u32) -> usize {
    if band(frequency_mhz) == Band::Ghz5 { 4 } else { 0 }
}

pub(crate) fn band(frequency_mhz: u32) -> Band {
    if frequency_mhz < 3000 { Band::Ghz2_4 } else { Band::Ghz5 }
}

/// The rates of a frame up to the end of its series, as they came and as they are; at least one.
pub(crate) fn series(sent: &Sent<'_>, frequency_mhz: u32) -> ([TxRate; MOST_RATES], [Option<Tries>; MOST_RATES]) {
    let (mut rates, mut series) = (sent.rates, [None; MOST_RATES]);
    if rates[0].index < 0 || rates[0].count == 0 {
        rates[0] = TxRate { index: rates[0].index.max(0), count: 1 };
    }
    for (place, rate) in rates.into_iter().enumerate() {
        let Ok(index) = u8::try_from(rate.index) else { break };
        let flags = sent.rate_flags[place];
        let tried = tried(index, flags, frequency_mhz);
        series[place] = Some(Tries { rate: tried, count: rate.count, rts: flags & rate_flag::RTS_CTS != 0 });
    }
    (rates, series)
}

fn tried(index: u8, flags: u16, frequency_mhz: u32) -> TryRate {
    let has = |flag| flags & flag != 0;
    if !has(rate_flag::MCS) && !has(rate_flag::VHT_MCS) {
        let place = usize::from(index) + missing_rates(frequency_mhz);
        return TryRate::Legacy(RATES[place.min(RATES.len() - 1)]);
    }
    let (mcs, streams) = if has(rate_flag::VHT_MCS) { (index & 15, index >> 4) } else { (index % 8, index / 8) };
    let width = match () {
        () if has(rate_flag::MHZ_160) => ChannelWidth::Mhz160,
        () if has(rate_flag::MHZ_80) => ChannelWidth::Mhz80,
        () if has(rate_flag::MHZ_40) => ChannelWidth::Mhz40,
        () => ChannelWidth::Mhz20,
    };
    let guard_interval = if has(rate_flag::SHORT_GI) { GuardInterval::Ns400 } else { GuardInterval::Ns800 };
    TryRate::Later(Modulation { mcs: mcs.min(9), spatial_streams: streams.min(3) + 1, width, guard_interval })
}

/// The index that the kernel takes for a received rate: of 802.11n's the fastest of 802.11g's below.
pub(crate) fn told_index(rate: TryRate, frequency_mhz: u32) -> u32 {
    let most = match rate {
        TryRate::Legacy(rate) => rate.rate(),
        TryRate::Later(modulation) => modulation.rate(Standard::N),
    };
    let slower = RATES.iter().enumerate().filter(|(_, rate)| rate.rate() <= most).max_by_key(|(_, rate)| rate.rate());
    slower.map_or(0, |(index, _)| index.saturating_sub(missing_rates(frequency_mhz))) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rates_index_is_of_its_band_or_an_mcs() {
        assert_eq!(tried(3, 0, 2437), TryRate::Legacy(PhyRate::Mbps11));
        assert_eq!(tried(11, 0, 2437), TryRate::Legacy(PhyRate::Mbps54));
        assert_eq!(tried(0, 0, 5180), TryRate::Legacy(PhyRate::Mbps6));
        // MCS 15 is 7 with two streams; of 802.11ac, 0x19 is 9 with two.
        let short = rate_flag::MCS | rate_flag::SHORT_GI | rate_flag::MHZ_40;
        let modulation =
            |mcs, width, guard_interval| TryRate::Later(Modulation { mcs, spatial_streams: 2, width, guard_interval });
        assert_eq!(tried(15, short, 5180), modulation(7, ChannelWidth::Mhz40, GuardInterval::Ns400));
        let wide = rate_flag::VHT_MCS | rate_flag::MHZ_80;
        assert_eq!(tried(0x19, wide, 5180), modulation(9, ChannelWidth::Mhz80, GuardInterval::Ns800));
    }

    #[test]
    fn receivers_are_told_a_rate_that_the_kernel_takes() {
        for (index, flags, frequency_mhz, told) in [
            (11, 0, 2437, 11),
            (3, 0, 2437, 3),
            (0, 0, 5180, 0),
            (7, 0, 5180, 7),
            // 65 Mb/s as 54, 6.5 as 6.
            (7, rate_flag::MCS, 2437, 11),
            (0, rate_flag::MCS, 2437, 4),
            (0, rate_flag::MCS, 5180, 0),
        ] {
            assert_eq!(
                told_index(tried(index, flags, frequency_mhz), frequency_mhz),
                told,
                "{index} at {frequency_mhz}"
            );
        }
    }
}
