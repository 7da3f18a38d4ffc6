//! The air time of frames.
//!
//! ```text
//! T = preamble + T_SYM ceil((overhead + 8 bytes) / bits per symbol) + signal extension
//! ```
//!
//! - OFDM: 20 us of preamble and SIGNAL, symbols of 4 us, 16 service bits and 6 tail bits of overhead, and at 2.4 GHz 6
//!   us of signal extension (802.11-2020 §17.3.2, §18.3.2, §19.4.3). HT, VHT and HE: the same with the preambles and
//!   symbols of `modulation`.
//! - DSSS and CCK: 192 us of long or 96 us of short preamble and header, "symbols" of 1 us (802.11-2020 §16.2.2).
//! - MPDU of data: 24 B of MAC header, 8 B of LLC/SNAP, the IP packet, 4 B of FCS. ACK and CTS 14 B, RTS 20 B.
//! - A packet in an A-MSDU: 14 B of addresses and length, 8 B of LLC/SNAP, padded to 4 B but for the last.
//! - 802.11n and later: 2 B of QoS more. Each MPDU of an A-MPDU follows a delimiter of 4 B, and all but the last are
//!   padded to a multiple of 4 B, and by empty delimiters to the least spacing of starts. Compressed Block Ack 32 B, or
//!   56 B for more than 64 frames; Block Ack Request 24 B.
//!
//! Leaves out: encryption headers, fragmentation, the limit of 2304 B on an MSDU.

use super::cell::{Cell, Protection};
use super::constants::{PhyRate, Standard};
use super::modulation::{ChannelWidth, Modulation};
use super::rate_control::RateControl;
use crate::config::{HostConfig, WifiConfig};
use lasthop_units::{Bytes, Rate, Span};

/// MAC header (24) + LLC/SNAP (8) + FCS (4).
const DATA_OVERHEAD: u64 = 24 + 8 + 4;
/// QoS control (2) and the delimiter of the subframe (4).
const SUBFRAME_OVERHEAD: u64 = DATA_OVERHEAD + 2 + 4;
/// Service (16) and tail (6).
const OFDM_OVERHEAD_BITS: u64 = 16 + 6;
/// An ACK or a CTS: frame control 2, duration 2, receiver 6, FCS 4.
pub(super) const CONTROL_BYTES: u64 = 14;
/// As CTS, with the transmitter's address (6).
pub(super) const RTS_BYTES: u64 = 20;
/// As RTS, with 2 of BAR control and 2 of starting sequence.
pub(super) const BLOCK_ACK_REQUEST_BYTES: u64 = 24;
/// A Block Ack: the same, and a bit for each frame of the window.
pub(super) const BLOCK_ACK_BYTES: u64 = BLOCK_ACK_REQUEST_BYTES;

/// A way to send data, by its place in [`AirTimes`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ModeId(u16);

impl ModeId {
    /// The mode of this number among [`AirTimes::modulations`].
    const fn of_modulation(number: usize) -> Self {
        Self((PhyRate::ALL.len() + number) as u16)
    }

    /// The mode of an MCS of the access point's standard, channel and streams.
    #[cfg(test)]
    pub(crate) const fn of_mcs(mcs: u8) -> Self {
        Self::of_modulation(mcs as usize)
    }

    pub(super) const fn index(self) -> usize {
        self.0 as usize
    }
}

impl From<PhyRate> for ModeId {
    fn from(rate: PhyRate) -> Self {
        Self(rate as u16)
    }
}

/// Durations with this way of sending data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mode {
    /// The rate of data bits.
    pub(crate) rate: Rate,
    timing: Timing,
    /// A frame's bytes apart from its IP packet.
    overhead_bytes: u64,
    /// Alignment of frames, a power of two.
    alignment_bytes: u64,
    /// From the start of a frame to that of the next, at least.
    spacing_bytes: u64,
    /// Limits of a PPDU with more than one frame.
    pub(crate) most_bytes: u64,
    /// Before each PPDU without RTS: CTS-to-self and SIFS.
    protection: Span,
    /// SIFS and the ACK.
    pub(crate) acknowledgement: Span,
    /// SIFS and the Block Ack.
    pub(crate) block_ack: Span,
    /// A Block Ack Request, with the protection before it.
    pub(crate) request: Span,
    /// After data.
    pub(crate) unanswered: Unanswered,
    pub(crate) rts: Span,
    /// SIFS and the CTS that answers an RTS.
    pub(crate) cts: Span,
    /// After an RTS.
    pub(crate) rts_unanswered: Unanswered,
}

/// The waits after a frame that was not received.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unanswered {
    /// ACKTimeout: from the end of a frame to its sender's decision that there is no response.
    pub(crate) timeout: Span,
    /// EIFS after an undecodable frame.
    pub(crate) eifs: Span,
}

/// From bytes to time.
#[derive(Clone, Copy, Debug)]
struct Timing {
    /// With the signal extension.
    preamble: Span,
    symbol: Span,
    /// In thousandths, for CCK's 5.5 bits per microsecond.
    millibits_per_symbol: u64,
    overhead_bits: u64,
}

/// The modes of one medium, computed once.
#[derive(Clone, Debug)]
pub(crate) struct AirTimes {
    modes: Vec<Mode>,
    /// Of the modes of 802.11n and later, behind those of [`PhyRate::ALL`]: first those of the access point's standard,
    /// width and streams; with rate control, then those of fewer streams, and of narrower channels; then the same of
    /// stations that differ.
    modulations: Vec<(Standard, Modulation)>,
    pub(crate) cell: Cell,
}

impl AirTimes {
    pub(crate) fn new(config: &WifiConfig, hosts: &[HostConfig]) -> Self {
        let cell = Cell::new(config, hosts);
        let mut modulations = Vec::new();
        let mut modes: Vec<_> = PhyRate::ALL.into_iter().map(|rate| Mode::legacy(config, &cell, rate)).collect();
        for own in [config.clone()].into_iter().chain(hosts.iter().map(|host| config.of_station(host))) {
            for modulation in self::modulations(&own) {
                if !modulations.contains(&(own.standard, modulation)) {
                    modulations.push((own.standard, modulation));
                    modes.push(Mode::later(&own, &cell, modulation));
                }
            }
        }
        Self { modes, modulations, cell }
    }

    /// The modes of radios that choose for themselves: all that the access point's standard has.
    pub(super) fn of_radios(config: &WifiConfig, hosts: &[HostConfig]) -> Self {
        let cell = Cell::new(config, hosts);
        let standard = config.standard;
        let mut modulations = Vec::new();
        for &guard_interval in Modulation::guard_intervals(standard) {
            for &width in Modulation::widths(standard) {
                for spatial_streams in 1..=Modulation::MOST_STREAMS {
                    let group = Modulation::mcss(standard, width, spatial_streams);
                    let group = group.map(|mcs| Modulation { mcs, spatial_streams, width, guard_interval });
                    modulations.extend(group.map(|modulation| (standard, modulation)));
                }
            }
        }
        let legacy = PhyRate::ALL.into_iter().map(|rate| Mode::legacy(config, &cell, rate));
        let later = modulations.iter().map(|&(_, modulation)| Mode::later(config, &cell, modulation));
        Self { modes: legacy.chain(later).collect(), modulations, cell }
    }

    /// The mode of a modulation of the access point's standard; `None`: there is none.
    pub(super) fn find(&self, modulation: Modulation) -> Option<ModeId> {
        self.modulations.iter().position(|&(_, one)| one == modulation).map(ModeId::of_modulation)
    }

    pub(super) fn modulations(&self) -> impl Iterator<Item = Modulation> {
        self.modulations.iter().map(|&(_, modulation)| modulation)
    }

    /// The mode of the highest modulation of a station of 802.11n or later.
    pub(super) fn highest(&self, own: &WifiConfig) -> ModeId {
        let number = self.modulations.iter().position(|&one| one == (own.standard, own.modulation));
        ModeId::of_modulation(number.expect("the modulations of all stations are known"))
    }

    /// The modes that rate control may choose for a station of 802.11n or later, up to its highest MCS, in the order of
    /// their groups (equal widths and streams), ascending within each.
    pub(super) fn choices(&self, own: &WifiConfig) -> impl Iterator<Item = (ModeId, Modulation)> {
        let (standard, most) = (own.standard, own.modulation);
        self.modulations.iter().enumerate().filter_map(move |(number, &(of, one))| {
            let mut allowed = Modulation::mcss(standard, one.width, one.spatial_streams);
            let may_be = of == standard
                && one.guard_interval == most.guard_interval
                && one.width <= most.width
                && one.spatial_streams <= most.spatial_streams
                && one.mcs <= most.mcs
                && allowed.any(|mcs| mcs == one.mcs);
            may_be.then_some((ModeId::of_modulation(number), one))
        })
    }

    /// The modulation of a mode of 802.11n or later.
    pub(super) fn modulation(&self, id: ModeId) -> Option<(Standard, Modulation)> {
        self.modulations.get(id.index().checked_sub(PhyRate::ALL.len())?).copied()
    }

    #[inline]
    pub(crate) fn mode(&self, id: ModeId) -> &Mode {
        &self.modes[usize::from(id.0)]
    }
}

/// The time of a packet of 1200 bytes among 16 of them in an A-MPDU, without preamble and headers.
pub(super) fn packet_within_16(standard: Standard, modulation: Modulation) -> Span {
    let symbols = (16 * 8 * 1200_u64).div_ceil(modulation.bits_per_symbol(standard));
    modulation.symbol(standard) * symbols / 16
}

/// See [`AirTimes::modulations`].
fn modulations(config: &WifiConfig) -> Vec<Modulation> {
    if !config.standard.aggregates() {
        return Vec::new();
    }
    let most = config.modulation;
    let groups = ChannelWidth::ALL.into_iter().rev().filter(|&width| width <= most.width).flat_map(|width| {
        (1..=most.spatial_streams).rev().map(move |spatial_streams| Modulation { width, spatial_streams, ..most })
    });
    let groups = groups.take(if config.rate_control == RateControl::Fixed { 1 } else { usize::MAX });
    groups.flat_map(|group| (0..Modulation::MCSS).map(move |mcs| Modulation { mcs, ..group })).collect()
}

impl Mode {
    /// From the start of a PPDU to its first data symbol, with any signal extension.
    pub(crate) const fn preamble(&self) -> Span {
        self.timing.preamble
    }

    /// A rate of 802.11b or 802.11g.
    fn legacy(config: &WifiConfig, cell: &Cell, rate: PhyRate) -> Self {
        let timing = Timing::legacy(config, cell, rate);
        Self::new(config, cell, rate.rate(), timing, rate, cell.protection == Protection::Erp && rate.is_ofdm())
    }

    /// A mode of 802.11n or later.
    fn later(config: &WifiConfig, cell: &Cell, modulation: Modulation) -> Self {
        let standard = config.standard;
        let bits_per_symbol = modulation.bits_per_symbol(standard);
        let timing = Timing {
            preamble: modulation.preamble(standard) + cell.signal_extension,
            symbol: modulation.symbol(standard),
            millibits_per_symbol: 1000 * bits_per_symbol,
            overhead_bits: OFDM_OVERHEAD_BITS,
        };
        let most_bytes = standard.aggregate_limits().map_or(0, |limits| limits.bytes);
        let (rate, like) = (modulation.rate(standard), modulation.reference_rate());
        Self {
            overhead_bytes: SUBFRAME_OVERHEAD,
            alignment_bytes: 4,
            spacing_bytes: timing.bytes_in(config.start_spacing).next_multiple_of(4),
            most_bytes: timing.bytes_within(config.max_ppdu).min(most_bytes),
            ..Self::new(config, cell, rate, timing, like, cell.protection != Protection::None)
        }
    }

    /// A mode whose response is that of frames of the rate `like`.
    fn new(config: &WifiConfig, cell: &Cell, rate: Rate, timing: Timing, like: PhyRate, is_protected: bool) -> Self {
        let &Cell { sifs, slot, space, .. } = cell;
        let control = |rate, bytes| Timing::legacy(config, cell, rate).duration(bytes);
        let response = like.control_response();
        // An RTS, the CTS that answers it, and a CTS-to-self: whom they protect from must understand them.
        let erp = cell.protection == Protection::Erp && like.is_ofdm();
        let reservation = if erp { config.protection_rate } else { response };
        let cts = sifs + control(reservation, CONTROL_BYTES);
        let unanswered = |answer: PhyRate| Unanswered {
            // ACKTimeout = aSIFSTime + aSlotTime + aRxPHYStartDelay (802.11-2020 §10.3.2.11). The last one is the
            // preamble and the header of the response: 20 us of OFDM, 192 or 96 us of DSSS.
            timeout: sifs + slot + preamble(answer, config.short_preamble),
            // EIFS = aSIFSTime + an ACK at the lowest mandatory rate of the frame's class + DIFS (802.11-2020
            // §10.3.2.3.7).
            eifs: sifs + control(if answer.is_ofdm() { PhyRate::Mbps6 } else { PhyRate::Mbps1 }, CONTROL_BYTES) + space,
        };
        Self {
            rate,
            timing,
            overhead_bytes: DATA_OVERHEAD,
            alignment_bytes: 1,
            spacing_bytes: 0,
            most_bytes: u64::MAX,
            protection: if is_protected { cts } else { Span::ZERO },
            acknowledgement: sifs + control(response, CONTROL_BYTES),
            block_ack: sifs + control(response, BLOCK_ACK_BYTES + u64::from(config.block_ack_window()) / 8),
            request: control(response, BLOCK_ACK_REQUEST_BYTES) + if erp { cts } else { Span::ZERO },
            unanswered: unanswered(response),
            rts: control(reservation, RTS_BYTES),
            cts,
            rts_unanswered: unanswered(reservation),
        }
    }

    /// Duration of a PPDU with only this IP packet's frame.
    pub(crate) fn frame_bytes(&self, ip_packet: Bytes) -> u64 {
        ip_packet.get() + self.overhead_bytes
    }

    /// The same with an A-MSDU of this many bytes, which has its own LLC/SNAP headers (8).
    pub(crate) const fn amsdu_frame_bytes(&self, amsdu: u64) -> u64 {
        amsdu + self.overhead_bytes - 8
    }

    /// The start of the frame behind one with this start and end.
    pub(crate) fn next_start(&self, start: u64, end: u64) -> u64 {
        ((end + self.alignment_bytes - 1) & !(self.alignment_bytes - 1)).max(start + self.spacing_bytes)
    }

    /// The most bytes of a PPDU that takes this long at most, with the protection before it.
    pub(crate) fn bytes_within(&self, time: Span) -> u64 {
        self.timing.bytes_within(time.saturating_sub(self.protection))
    }

    /// A PPDU of this many bytes, with the protection before it.
    #[inline]
    pub(crate) fn ppdu(&self, bytes: u64) -> Span {
        self.protection + self.timing.duration(bytes)
    }

    /// The same after an RTS and its CTS, which protect it.
    pub(crate) fn ppdu_after_cts(&self, bytes: u64) -> Span {
        self.timing.duration(bytes)
    }

    /// The time before a PPDU that RTS and CTS take beyond the protection.
    pub(crate) fn more_for_rts(&self, sifs: Span) -> Span {
        (self.rts + self.cts + sifs).saturating_sub(self.protection)
    }
}

impl Timing {
    fn legacy(config: &WifiConfig, cell: &Cell, rate: PhyRate) -> Self {
        let preamble = preamble(rate, config.short_preamble);
        if rate.is_ofdm() {
            Self {
                preamble: preamble + cell.signal_extension,
                symbol: Span::from_micros(4),
                millibits_per_symbol: 4 * rate.kbps(),
                overhead_bits: OFDM_OVERHEAD_BITS,
            }
        } else {
            Self { preamble, symbol: Span::from_micros(1), millibits_per_symbol: rate.kbps(), overhead_bits: 0 }
        }
    }

    fn bytes_within(&self, time: Span) -> u64 {
        let symbols = time.saturating_sub(self.preamble).as_nanos() / self.symbol.as_nanos();
        (symbols * self.millibits_per_symbol / 1000).saturating_sub(self.overhead_bits) / 8
    }

    /// The bytes that take this long at least, without preamble.
    const fn bytes_in(&self, time: Span) -> u64 {
        (time.as_nanos() * self.millibits_per_symbol).div_ceil(8000 * self.symbol.as_nanos())
    }

    #[inline]
    fn duration(&self, bytes: u64) -> Span {
        self.preamble + self.symbol * (1000 * (self.overhead_bits + 8 * bytes)).div_ceil(self.millibits_per_symbol)
    }
}

/// PLCP preamble and header. 1 Mb/s has no short one.
fn preamble(rate: PhyRate, short: bool) -> Span {
    match rate {
        rate if rate.is_ofdm() => Span::from_micros(16 + 4),
        rate if short && rate != PhyRate::Mbps1 => Span::from_micros(72 + 24),
        _ => Span::from_micros(144 + 48),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wifi::Band;

    fn us(micros: u64) -> Span {
        Span::from_micros(micros)
    }

    fn mode(config: &WifiConfig, rate: PhyRate) -> Mode {
        *AirTimes::new(config, &[]).mode(rate.into())
    }

    /// A data frame with an IP packet of this many bytes.
    fn data(config: &WifiConfig, rate: PhyRate, bytes: u64) -> Span {
        let mode = mode(config, rate);
        mode.ppdu(mode.frame_bytes(Bytes::new(bytes)))
    }

    #[test]
    fn data_frames_take_what_the_standard_says() {
        let g = WifiConfig::new(Standard::G);
        // 1500 + 36 = 1536 B = 12288 bits, 12310 with service and tail.
        // 54: 56.99 -> 57 symbols, 20 + 228 + 6. 24: 128.2 -> 129 symbols, 20 + 516 + 6. 6: 512.9 -> 513,
        // 20 + 2052 + 6.
        assert_eq!(data(&g, PhyRate::Mbps54, 1500), us(254));
        assert_eq!(data(&g, PhyRate::Mbps24, 1500), us(542));
        assert_eq!(data(&g, PhyRate::Mbps6, 1500), us(2078));
        // A TCP acknowledgement of 52 B: 88 B = 704 + 22 bits, 3.4 -> 4 symbols, 20 + 16 + 6.
        assert_eq!(data(&g, PhyRate::Mbps54, 52), us(42));
        // 11 Mb/s: 12288 / 11 = 1117.1 -> 1118, with the long preamble 1310, with the short one 1214.
        let b = WifiConfig::new(Standard::B);
        assert_eq!(data(&b, PhyRate::Mbps11, 1500), us(1310));
        let short = WifiConfig { short_preamble: true, ..b };
        assert_eq!(data(&short, PhyRate::Mbps11, 1500), us(1214));
        // No short preamble at 1 Mb/s: 192 + 12288.
        assert_eq!(data(&short, PhyRate::Mbps1, 1500), us(12480));
    }

    #[test]
    fn acknowledgements_timeouts_and_eifs() {
        let g = WifiConfig::new(Standard::G);
        // 14 B = 112 + 22 bits. 24: 2 symbols, 34 us. 12: 3, 38 us. 6: 6, 50 us; each after SIFS 10.
        assert_eq!(mode(&g, PhyRate::Mbps54).acknowledgement, us(10 + 34));
        assert_eq!(mode(&g, PhyRate::Mbps18).acknowledgement, us(10 + 38));
        assert_eq!(mode(&g, PhyRate::Mbps9).acknowledgement, us(10 + 50));
        assert_eq!(mode(&g, PhyRate::Mbps9).unanswered.timeout, us(10 + 9 + 20));
        assert_eq!(mode(&g, PhyRate::Mbps54).unanswered.eifs, us(10 + 50 + 28));
        let b = WifiConfig::new(Standard::B);
        // 112 bits: 56 us at 2 Mb/s, 112 us at 1 Mb/s, after 192.
        assert_eq!(mode(&b, PhyRate::Mbps11).acknowledgement, us(10 + 248));
        assert_eq!(mode(&b, PhyRate::Mbps1).acknowledgement, us(10 + 304));
        assert_eq!(mode(&b, PhyRate::Mbps11).unanswered.timeout, us(10 + 20 + 192));
        assert_eq!(mode(&b, PhyRate::Mbps11).unanswered.eifs, us(10 + 304 + 50));
    }

    #[test]
    fn protection_precedes_ofdm_frames_only() {
        // CTS 14 B. 11 Mb/s short: 96 + ceil(112 / 11) = 107, with SIFS 117. 2 Mb/s long: 192 + 56 = 248, 258. 2 short:
        // 162.
        for (protection_rate, short_preamble, protection) in [
            (PhyRate::Mbps11, true, 117),
            (PhyRate::Mbps2, false, 258),
            (PhyRate::Mbps2, true, 162),
            (PhyRate::Mbps1, false, 314),
        ] {
            let bg = WifiConfig { protection_rate, short_preamble, ..WifiConfig::new(Standard::Bg) };
            assert_eq!(data(&bg, PhyRate::Mbps54, 1500), us(protection + 254));
        }
        assert_eq!(data(&WifiConfig::new(Standard::Bg), PhyRate::Mbps11, 1500), us(1310));
    }

    fn later(standard: Standard, mcs: u8, width: ChannelWidth) -> Mode {
        let modulation = Modulation { mcs, width, ..Modulation::new(standard) };
        *AirTimes::new(&WifiConfig { modulation, ..WifiConfig::new(standard) }, &[]).mode(ModeId::of_mcs(mcs))
    }

    /// This many frames of 1500-byte packets.
    fn aggregate(mode: &Mode, frames: u64) -> u64 {
        let frame = mode.frame_bytes(Bytes::new(1500));
        (frames - 1) * mode.next_start(0, frame) + frame
    }

    #[test]
    fn aggregates_take_what_the_standards_say() {
        // A packet of 1500 B is an MPDU of 1538 B, behind a delimiter 1542 B, padded 1544 B.
        // HT20 MCS 7: one is 36 + 4 ceil((22 + 8 · 1542) / 260) = 36 + 4 · 48; 28 are 43230 B,
        // 36 + 4 ceil(345862 / 260) = 36 + 4 · 1331.
        let ht = later(Standard::N, 7, ChannelWidth::Mhz20);
        assert_eq!([1, 28].map(|frames| ht.ppdu(aggregate(&ht, frames))), [us(228), us(5360)]);
        // VHT80 MCS 9: 64 are 98814 B, 40 + 4 ceil(790534 / 1560) = 40 + 4 · 507.
        let vht = later(Standard::Ac, 9, ChannelWidth::Mhz80);
        assert_eq!(vht.ppdu(aggregate(&vht, 64)), us(2068));
        // HE80 MCS 11: 256 are 395262 B, 44 + 13.6 ceil(3162118 / 8166) = 44 + 13.6 · 388.
        let he = later(Standard::Ax, 11, ChannelWidth::Mhz80);
        assert_eq!(he.ppdu(aggregate(&he, 256)), Span::from_nanos(5_320_800));
    }

    #[test]
    fn short_frames_are_padded_to_the_least_spacing() {
        // VHT80 MCS 9, 8 us: 390 B, rounded up to 392. Acknowledgements of 52 B are 94 B with delimiter, alone 96.
        // 64 are 63 · 392 + 94 = 24790 B, 40 + 4 ceil((22 + 198320) / 1560) = 40 + 4 · 128, instead of 6142 B, 40 + 4 · 32.
        let ack_aggregate = |spacing| {
            let config = WifiConfig { start_spacing: us(spacing), ..WifiConfig::new(Standard::Ac) };
            let mode = *AirTimes::new(&config, &[]).mode(ModeId::of_mcs(9));
            let frame = mode.frame_bytes(Bytes::new(52));
            mode.ppdu(63 * mode.next_start(0, frame) + frame)
        };
        assert_eq!([0, 8].map(ack_aggregate), [us(168), us(552)]);
        // Full frames, 1544 B, are longer than that.
        let config = WifiConfig { start_spacing: us(16), ..WifiConfig::new(Standard::Ac) };
        assert_eq!(aggregate(AirTimes::new(&config, &[]).mode(ModeId::of_mcs(9)), 64), 98_814);
    }

    #[test]
    fn a_ppdu_ends_by_time_or_by_bytes() {
        // HT20 MCS 7: (5484 - 36) / 4 = 1362 symbols of 260 bits, less 22: 44262 B.
        // MCS 15 is bound by the A-MPDU's 65535 B.
        assert_eq!(later(Standard::N, 7, ChannelWidth::Mhz20).most_bytes, 44_262);
        let modulation = Modulation { spatial_streams: 2, ..Modulation::new(Standard::N) };
        let two_streams = WifiConfig { modulation, ..WifiConfig::new(Standard::N) };
        assert_eq!(AirTimes::new(&two_streams, &[]).mode(ModeId::of_mcs(7)).most_bytes, 65_535);
    }

    #[test]
    fn responses_go_at_basic_rates_of_802_11a() {
        // 5 GHz, 20 + 4 ceil((22 + 8 L) / (4 rate)): ACK 28, 32, 44; Block Ack of 32 B 32, 44, 68, of 56 B 40; BAR 32;
        // RTS 28.
        let vht = |mcs| later(Standard::Ac, mcs, ChannelWidth::Mhz80);
        assert_eq!([9, 3, 2, 1, 0].map(|mcs| vht(mcs).acknowledgement.as_micros() - 16), [28, 28, 32, 32, 44]);
        assert_eq!([9, 2, 0].map(|mcs| vht(mcs).block_ack.as_micros() - 16), [32, 44, 68]);
        assert_eq!([9, 2, 0].map(|mcs| vht(mcs).request.as_micros()), [32, 40, 56]);
        assert_eq!([9, 2, 0].map(|mcs| vht(mcs).rts.as_micros()), [28, 36, 52]);
        assert_eq!(later(Standard::Ax, 11, ChannelWidth::Mhz80).block_ack, us(16 + 40));
        // A client of 802.11ax with the window of 64.
        let short = WifiConfig { aggregate_frames: 64, ..WifiConfig::new(Standard::Ax) };
        assert_eq!(AirTimes::new(&short, &[]).mode(ModeId::of_mcs(11)).block_ack, us(16 + 32));
        // SIFS 16, slot 9, 20 of preamble; SIFS 16, ACK at 6 Mb/s 44, AIFS 43.
        assert_eq!((vht(9).unanswered.timeout, vht(9).unanswered.eifs), (us(45), us(103)));
    }

    #[test]
    fn at_2_4_ghz_each_ppdu_has_a_signal_extension() {
        let at_2_4 = |standard, mcs| {
            let modulation = Modulation { mcs, width: ChannelWidth::Mhz20, ..Modulation::new(standard) };
            let config = WifiConfig { band: Band::Ghz2_4, modulation, ..WifiConfig::new(standard) };
            *AirTimes::new(&config, &[]).mode(ModeId::of_mcs(mcs))
        };
        // As at 5 GHz, and 6 us each. 802.11ax, 20 MHz, MCS 11: 44 + 13.6 ceil((22 + 8 · 1542) / 1950) = 44 + 13.6 · 7.
        let ht = at_2_4(Standard::N, 7);
        assert_eq!([1, 28].map(|frames| ht.ppdu(aggregate(&ht, frames))), [us(234), us(5366)]);
        let he = at_2_4(Standard::Ax, 11);
        assert_eq!(he.ppdu(aggregate(&he, 1)), Span::from_nanos(145_200));
        // ACK 34, 38, 50; Block Ack 38, 50, 74; BAR 38; RTS 34.
        let modes = [7, 2, 0].map(|mcs| at_2_4(Standard::N, mcs));
        assert_eq!(modes.map(|mode| mode.acknowledgement.as_micros() - 10), [34, 38, 50]);
        assert_eq!(modes.map(|mode| mode.block_ack.as_micros() - 10), [38, 50, 74]);
        assert_eq!((ht.request, ht.rts, ht.cts), (us(38), us(34), us(10 + 34)));
        // SIFS 10, slot 9, 20 of preamble; SIFS 10, ACK at 6 Mb/s 50, AIFS 37.
        assert_eq!((ht.unanswered.timeout, ht.unanswered.eifs), (us(39), us(97)));
    }
}
