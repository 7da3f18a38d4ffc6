//! The switches of a TCP stack, and the two sets of defaults.

use crate::ecn::EcnMode;
use crate::pacing::quantum_segments;
use crate::segment::{HEADERS_BYTES, TIMESTAMPS_BYTES};
use lasthop_laws::SlowStart;
use lasthop_units::{Bytes, Rate, Span};
use std::fmt;

/// How one end of a connection behaves. SACK, timestamps and window scaling are used if both ends have them; the
/// smaller `mss` counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Payload of a full segment without options; timestamps take 12 bytes of it. 1460 fills an Ethernet frame.
    pub mss: Bytes,
    /// Window after the handshake: RFC 6928 and Linux 10, RFC 5681 2 to 4.
    pub initial_window_segments: u32,
    /// Selective acknowledgements: RFC 2018, and duplicates reported by RFC 2883.
    pub sack: bool,
    /// Timestamps: RFC 7323 §3. Without them a retransmitted segment gives no RTT sample, and Eifel detects nothing.
    pub timestamps: bool,
    /// The tick of the timestamps' clock: RFC 7323 §5.4 allows 1 ms to 1 s.
    pub timestamp_granularity: Span,
    /// Window scaling: RFC 7323 §2. Without it no window is above 65,535 bytes.
    pub window_scaling: bool,
    /// How losses are found and repaired, and how much is sent meanwhile.
    pub recovery: Recovery,
    /// When there is nothing else to send, retransmit segments not known to be lost: RFC 6675 §4 NextSeg rules 3 and 4
    /// (the rescue retransmission). Needs SACK.
    pub rescue: bool,
    /// Forward acknowledgement: until reordering is seen, every segment three or more below the highest SACKed byte is
    /// lost. Linux before 4.14. Needs SACK.
    pub fack: bool,
    /// Send new data on the first two duplicate ACKs: RFC 3042, RFC 6675 §5 (3).
    pub limited_transmit: bool,
    /// Detect spurious timeouts by the ACKs that follow: RFC 5682.
    pub f_rto: bool,
    /// Undo spurious reductions: Eifel (RFC 3522, RFC 4015) by timestamps, and RFC 3708 by D-SACK.
    pub undo: bool,
    /// Detect losses by time, and probe for lost tails: RFC 8985. Needs SACK.
    pub rack_tlp: bool,
    /// Spread segments over the round trip: Linux's internal pacing.
    pub pacing: bool,
    /// TCP small queues: how much may wait in the host's own queue. `None`: as much as the window allows.
    pub tsq: Option<Tsq>,
    /// When the receiver acknowledges.
    pub delayed_ack: DelayedAck,
    /// Compress ACKs of out-of-order segments: after three duplicate ACKs, one ACK for the segments of 1 ms or 5 % of
    /// the round trip, at most 44. Linux since 4.18. Needs SACK.
    pub sack_compression: bool,
    /// How RTT samples become a retransmission timeout.
    pub rto_estimator: RtoEstimator,
    /// The floor of the timeout (RFC 6298: 1 s), or, with Linux's estimator, of its variance term (200 ms).
    pub rto_min: Span,
    /// The ceiling: RFC 6298 at least 60 s, Linux 120 s.
    pub rto_max: Span,
    /// The timeout before the first sample: 1 s in RFC 6298.
    pub rto_initial: Span,
    /// How long a lowest RTT counts: 300 s in Linux (`tcp_min_rtt_wlen`). [`Span::MAX`]: as long as the connection
    /// lives.
    pub min_rtt_window: Span,
    /// A small segment waits while another is unacknowledged (RFC 896, in Minshall's form as Linux has it).
    pub nagle: bool,
    /// The size of the receive buffer in bytes of data, which is also the largest advertised window.
    pub receive_buffer: Bytes,
    /// Memory for data written but not yet acknowledged.
    pub send_buffer: Bytes,
    /// Memory in the send buffer for a full segment, beyond its data.
    pub send_buffer_overhead: Bytes,
    /// A writer that has filled the send buffer writes again only when a third of it is free (Linux:
    /// sk_stream_write_space()). Otherwise it writes as soon as there is room.
    pub write_hysteresis: bool,
    /// Explicit congestion notification.
    pub ecn: EcnMode,
    /// How slow start ends, other than by a loss.
    pub slow_start: SlowStart,
    /// Reduce a window that was not used for longer than an RTO: RFC 5681 §4.1, RFC 2861.
    pub slow_start_after_idle: bool,
    /// A server with the law `lastlink` accepts clients' reports of their last links, and answers so. With other laws
    /// this has no effect.
    pub last_link: bool,
}

/// How lost segments are found and how the window is reduced.
///
/// ```text
/// per ACK in recovery, in segments; D = newly delivered, P = pipe, S = ssthresh, F = FlightSize at entry
/// Prr          P > S: ceil(delivered * S / F) - out         else: min(S - P, max(delivered - out, D) + 1)
/// PrrRfc9937   the same, F without what was SACKed before   else: + 1 only if snd_una advanced and nothing was lost
/// PrrCrb       the same as Prr                              else: min(S - P, delivered - out)
/// RateHalving  one for each second ACK; window at most P + 1
/// Rfc6675      window = S at once
/// NewReno      window = S + 3, + 1 for each duplicate ACK, - acknowledged + 1 for each partial one
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Recovery {
    /// Proportional rate reduction with the slow-start reduction bound: RFC 6937, Linux 3.2 to 4.2.
    Prr,
    /// RFC 9937, Linux since 4.3.
    PrrRfc9937,
    /// RFC 6937 with the conservative reduction bound.
    PrrCrb,
    /// Linux before 3.2.
    RateHalving,
    /// RFC 6675. Without SACK: [`Self::NewReno`].
    Rfc6675,
    /// RFC 6582; what SACK says is not used.
    NewReno,
}

/// How the RTO is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RtoEstimator {
    /// RFC 6298: `max(SRTT + max(G, 4 RTTVAR), floor)`.
    Rfc6298,
    /// Linux: the largest variance of the last round trips counts. A falling RTT adds little to it, and the floor is
    /// that of `4 RTTVAR`.
    Linux,
}

/// When a receiver acknowledges: RFC 5681 §4.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayedAck {
    /// Full segments for one ACK. 1: an ACK for each. Above 2: as 2, after generic receive offload (GRO), which joins up to so
    /// many segments of a burst, and these have one ACK.
    pub segments: u32,
    /// Shortest wait for the next segment: Linux 40 ms (`TCP_DELACK_MIN`).
    pub timer_min: Span,
    /// Longest wait: Linux 200 ms (`TCP_DELACK_MAX`), RFC 5681 500 ms.
    pub timer_max: Span,
    /// Segments at the start of a connection that are acknowledged at once: Linux 16 (`TCP_MAX_QUICKACKS`).
    pub quick_segments: u32,
}

/// TCP small queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tsq {
    /// The greatest number of bytes in the host's queue at any rate (Linux: `tcp_limit_output_bytes`).
    pub limit: Bytes,
    /// Below `limit`: what the pacing rate sends in 2^-shift seconds, but at least two packets of the size that TCP makes
    /// for this rate, of two segments or more. Linux: 10 (1 ms), with some Wi-Fi drivers 3 to 8. `None`: `limit` alone.
    pub pacing_shift: Option<u8>,
}

/// A switch of [`Config`] with a value out of range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{switch} = {value}: {accepted}")]
pub struct ConfigError {
    /// Which switch.
    pub switch: Switch,
    /// Its value.
    pub value: String,
    /// The accepted values.
    pub accepted: &'static str,
}

/// A switch of [`Config`] that can be out of range. Displayed as its path there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::EnumIter)]
#[strum(serialize_all = "snake_case")]
#[allow(missing_docs, reason = "the switches have their docs in the configuration")]
pub enum Switch {
    Mss,
    InitialWindowSegments,
    TimestampGranularity,
    RtoMin,
    RtoMax,
    RtoInitial,
    MinRttWindow,
    #[strum(to_string = "delayed_ack.segments")]
    DelayedAckSegments,
    #[strum(to_string = "delayed_ack.timer_min")]
    DelayedAckTimerMin,
    #[strum(to_string = "delayed_ack.timer_max")]
    DelayedAckTimerMax,
    ReceiveBuffer,
    SendBuffer,
    SendBufferOverhead,
    #[strum(to_string = "tsq.limit")]
    TsqLimit,
    #[strum(to_string = "tsq.pacing_shift")]
    TsqPacingShift,
}

impl Recovery {
    /// Every recovery.
    pub const ALL: [Self; 6] =
        [Self::Prr, Self::PrrRfc9937, Self::PrrCrb, Self::RateHalving, Self::Rfc6675, Self::NewReno];

    /// The name in scenario files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Prr => "prr",
            Self::PrrRfc9937 => "prr-rfc9937",
            Self::PrrCrb => "prr-crb",
            Self::RateHalving => "rate-halving",
            Self::Rfc6675 => "rfc6675",
            Self::NewReno => "newreno",
        }
    }
}

impl RtoEstimator {
    /// Every estimator.
    pub const ALL: [Self; 2] = [Self::Rfc6298, Self::Linux];

    /// The name in scenario files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rfc6298 => "rfc6298",
            Self::Linux => "linux",
        }
    }
}

impl Config {
    /// The stack of phones and servers in 2012: Linux 3.2 to 3.8 with HZ = 100.
    ///
    /// It has no TCP small queues (3.6, on phones later), no pacing (3.12), no tail loss probe (3.10) and no RACK
    /// (4.4). The send buffer of 1 MiB holds 555 full segments.
    pub fn linux_2012() -> Self {
        Self {
            mss: Bytes::new(1460),
            initial_window_segments: 10,
            sack: true,
            timestamps: true,
            timestamp_granularity: Span::from_millis(10),
            window_scaling: true,
            recovery: Recovery::Prr,
            rescue: true,
            fack: true,
            limited_transmit: true,
            f_rto: true,
            undo: true,
            rack_tlp: false,
            pacing: false,
            tsq: None,
            delayed_ack: DelayedAck::LINUX,
            sack_compression: false,
            rto_estimator: RtoEstimator::Linux,
            rto_min: Span::from_millis(200),
            rto_max: Span::from_secs(120),
            rto_initial: Span::from_secs(1),
            min_rtt_window: Span::from_secs(300),
            nagle: true,
            receive_buffer: Bytes::from_kib(3072),
            send_buffer: Bytes::from_kib(1024),
            // 2^20 / (1448 + 441) = 555.1
            send_buffer_overhead: Bytes::new(441),
            write_hysteresis: true,
            ecn: EcnMode::Off,
            slow_start: SlowStart::HyStart,
            slow_start_after_idle: true,
            last_link: true,
        }
    }

    /// Linux today (6.x, HZ = 1000).
    ///
    /// Pacing is off. A stock kernel paces a connection only if its law asks for it (BBR) or its device has the
    /// queueing discipline `fq`; the default is `fq_codel`. The pacing rate still sets the limit of TCP small queues.
    pub fn linux_modern() -> Self {
        Self {
            timestamp_granularity: Span::from_millis(1),
            recovery: Recovery::PrrRfc9937,
            rescue: false,
            fack: false,
            rack_tlp: true,
            tsq: Some(Tsq::LINUX),
            sack_compression: true,
            send_buffer: Bytes::from_kib(4096),
            // Many segments share pages of 32 KiB: an overhead of a few per cent.
            send_buffer_overhead: Bytes::new(36),
            ..Self::linux_2012()
        }
    }

    /// Checks each switch by itself and together with the others.
    ///
    /// # Errors
    /// The first switch whose value is out of range, and the accepted values.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let error = |switch, value: &dyn fmt::Display, accepted| {
            Err(ConfigError { switch, value: value.to_string(), accepted })
        };
        if !(64..=65_495).contains(&self.mss.get()) {
            return error(Switch::Mss, &self.mss, "64 to 65495 bytes");
        }
        if !(1..=1000).contains(&self.initial_window_segments) {
            return error(Switch::InitialWindowSegments, &self.initial_window_segments, "1 to 1000 segments");
        }
        if !(1_000..=1_000_000_000).contains(&self.timestamp_granularity.as_nanos()) {
            return error(Switch::TimestampGranularity, &self.timestamp_granularity, "1 us to 1 s");
        }
        if self.rto_min.is_zero() || self.rto_min > self.rto_max {
            return error(Switch::RtoMin, &self.rto_min, "above 0 s, and at most rto_max");
        }
        if self.rto_max > Span::from_secs(3600) {
            return error(Switch::RtoMax, &self.rto_max, "at most an hour");
        }
        if self.rto_initial.is_zero() || self.rto_initial > self.rto_max {
            return error(Switch::RtoInitial, &self.rto_initial, "above 0 s, and at most rto_max");
        }
        if self.min_rtt_window.is_zero() {
            return error(Switch::MinRttWindow, &self.min_rtt_window, "above 0 s");
        }
        if !(1..=64).contains(&self.delayed_ack.segments) {
            return error(Switch::DelayedAckSegments, &self.delayed_ack.segments, "1 to 64 segments");
        }
        if self.delayed_ack.timer_min.is_zero() || self.delayed_ack.timer_min > self.delayed_ack.timer_max {
            return error(Switch::DelayedAckTimerMin, &self.delayed_ack.timer_min, "above 0 s, and at most timer_max");
        }
        if self.delayed_ack.timer_max > Span::from_millis(500) {
            return error(Switch::DelayedAckTimerMax, &self.delayed_ack.timer_max, "at most 500 ms (RFC 5681 §4.2)");
        }
        let largest_window = if self.window_scaling { 65_535 << MAX_WINDOW_SHIFT } else { u64::MAX };
        if !(2 * self.mss.get()..=largest_window).contains(&self.receive_buffer.get()) {
            return error(Switch::ReceiveBuffer, &self.receive_buffer, "two segments to 1 GiB (RFC 7323 §2.3)");
        }
        if !(2 * (self.mss.get() + self.send_buffer_overhead.get())..=1 << 32).contains(&self.send_buffer.get()) {
            return error(Switch::SendBuffer, &self.send_buffer, "two segments with their overhead to 4 GiB");
        }
        if self.send_buffer_overhead > Bytes::new(65_536) {
            return error(Switch::SendBufferOverhead, &self.send_buffer_overhead, "at most 64 KiB");
        }
        if let Some(tsq) = self.tsq {
            if tsq.limit < Bytes::new(2 * self.mss.get()) {
                return error(Switch::TsqLimit, &tsq.limit, "at least two segments");
            }
            if let Some(shift) = tsq.pacing_shift.filter(|shift| *shift > 20) {
                return error(Switch::TsqPacingShift, &shift, "0 to 20");
            }
        }
        Ok(())
    }

    /// The data and the headers of a full packet.
    pub fn framing(&self) -> (Bytes, Bytes) {
        let data = Bytes::new(self.full_payload().into());
        (data, self.mss + Bytes::new(HEADERS_BYTES) - data)
    }

    /// Payload of a full segment in bytes, beside timestamps if it has them.
    pub fn full_payload(&self) -> u32 {
        (self.mss.get() - if self.timestamps { TIMESTAMPS_BYTES } else { 0 }) as u32
    }

    /// Bytes of data that the send buffer holds in segments of `payload_bytes`, above 0.
    pub fn send_capacity(&self, payload_bytes: u32) -> u64 {
        let payload = u64::from(payload_bytes);
        (self.send_buffer.get() / (payload + self.send_buffer_overhead.get())).max(2) * payload
    }

    /// The shift that lets the whole receive buffer be advertised in 16 bits.
    pub(crate) fn window_shift(&self) -> u8 {
        (0..MAX_WINDOW_SHIFT).find(|shift| self.receive_buffer.get() >> shift <= 65_535).unwrap_or(MAX_WINDOW_SHIFT)
    }
}

/// RFC 7323 §2.3.
const MAX_WINDOW_SHIFT: u8 = 14;

impl DelayedAck {
    /// Linux: every second segment, 40 to 200 ms, the first 16 at once.
    pub const LINUX: Self =
        Self { segments: 2, timer_min: Span::from_millis(40), timer_max: Span::from_millis(200), quick_segments: 16 };

    /// The silence that ends a burst for GRO (Linux's `gro_flush_timeout`, as the laboratory sets it). The packets of an
    /// aggregate leave a path of 1 Gb/s 12 us apart, and the laboratory's medium writes those of 50 us together.
    pub const BURST_GAP: Span = Span::from_micros(100);

    /// An ACK for each segment, at once.
    pub const OFF: Self = Self { segments: 1, ..Self::LINUX };
}

impl Tsq {
    /// Linux today: at most 4 MiB, and 1 ms at the pacing rate.
    pub const LINUX: Self = Self { limit: Bytes::from_kib(4096), pacing_shift: Some(10) };

    /// Linux's tcp_small_queue_check(): a sender with more than this in its host's queue sends no more.
    ///
    /// ```text
    /// min(limit, max(rate 2^-shift, 2 packet)),  packet: what tcp_tso_autosize() makes of the rate (pacing.rs)
    /// ```
    ///
    /// A packet has what the rate sends in 2^-shift seconds, too, at most 64 KiB. So a queue holds twice that time.
    /// `rate`: the pacing rate; `None` before the first round trip. `payload_bytes`: of a full segment.
    pub fn permitted(self, rate: Option<Rate>, payload_bytes: u32, cwnd_segments: u32, min_rtt: Option<Span>) -> Bytes {
        let (Some(shift), Some(rate)) = (self.pacing_shift, rate) else { return self.limit };
        let packet = quantum_segments(rate, payload_bytes, cwnd_segments, min_rtt, Some(shift));
        let by_rate = (rate.as_bps() / 8) >> shift;
        Bytes::new(by_rate.max(2 * packet * u64::from(payload_bytes))).min(self.limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_eras_are_valid() {
        for config in [Config::linux_2012(), Config::linux_modern()] {
            assert_eq!(config.validate(), Ok(()));
        }
    }

    #[test]
    fn a_phone_of_2012_holds_555_segments() {
        assert_eq!(Config::linux_2012().send_capacity(1448), 555 * 1448);
    }

    #[test]
    fn the_shift_is_the_smallest_that_reaches_the_buffer() {
        let shift = |kib| Config { receive_buffer: Bytes::from_kib(kib), ..Config::linux_2012() }.window_shift();
        // 63 KiB = 64512 fits without a shift, 64 KiB = 65536 does not; 3 MiB >> 6 = 49152.
        assert_eq!([shift(63), shift(64), shift(3072)], [0, 1, 6]);
    }

    #[test]
    fn nonsense_is_refused_with_the_key_and_what_is_accepted() {
        let config = Config { rto_min: Span::from_secs(200), ..Config::linux_modern() };
        let error = config.validate().expect_err("the floor is above the ceiling");
        assert_eq!(error.to_string(), "rto_min = 200 s: above 0 s, and at most rto_max");
        let config = Config { mss: Bytes::new(0), ..Config::linux_modern() };
        assert_eq!(config.validate().map_err(|error| error.switch), Err(Switch::Mss));
    }
}
