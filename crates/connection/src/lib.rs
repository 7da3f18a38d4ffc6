//! The state of one end of a TCP connection: the fields of Linux's `struct tcp_info` that this project reads, with units.
//!
//! [`TcpState`] is filled in five places, and read everywhere else as it is:
//!
//! - `tcp`, from our endpoint: all of it.
//! - `kernel`, for the agent, from `struct tcp_sock` by an eBPF iterator: all of it but `delivered_ce`; `timeouts` from Linux 6.7 on.
//! - `kernel`, for the sockets of a law, likewise: without `newest_rtt`, `receive_rtt`, `mss_bytes`, `unsent`, `acked`, `received`,
//!   `pacing_rate` and `delivered_ce`.
//! - `lab`, from `getsockopt(TCP_INFO)`: without `newest_rtt`; `timeouts` from Linux 6.7 on.
//! - `sim`, for QUIC, from quinn's path in datagrams of the path's MTU: without `state`, `newest_rtt`, `receive_rtt`, `unsent`, `received`,
//!   `timeouts`, `pacing_rate` and `delivered_ce`.
//!
//! What a place leaves out is at its default.
//!
//! [`rate`] estimates what is delivered in a time, for `tcp` and `quic`.
//!
//! Counters run from the opening of the connection. References: include/uapi/linux/tcp.h, net/ipv4/tcp.c `tcp_get_info()`.
#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods)]

pub mod rate;

use lasthop_units::{Bytes, Rate, Span};

/// Linux's congestion states, with its numbers (`TCP_CA_Open` = 0).
///
/// ```text
///            dup ACK / SACK          loss found
///   Open ───────────────> Disorder ────────────> Recovery ──> Open, when all data in flight at entry are acknowledged
///    │ ▲                                            │
///    │ └── Cwr: a reduction without loss            │ timeout, from any state
///    └────────────────────────────────────────────> Loss ───> Open, likewise, or when the timeout was spurious
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum CongestionState {
    /// No sign of loss.
    #[default]
    Open = 0,
    /// Segments arrived out of order, by loss or reordering.
    Disorder = 1,
    /// The window is being reduced without a loss: a full queue of the host, ECN, or a probe that found a loss.
    Cwr = 2,
    /// Fast recovery.
    Recovery = 3,
    /// Recovery after a retransmission timeout.
    Loss = 4,
}

impl CongestionState {
    /// The state of this number; [`Self::Loss`] above 4, for the kernel has had five states since 2.4.
    pub const fn from_linux(number: u8) -> Self {
        match number {
            0 => Self::Open,
            1 => Self::Disorder,
            2 => Self::Cwr,
            3 => Self::Recovery,
            _ => Self::Loss,
        }
    }

    /// Whether the window is being reduced towards ssthresh.
    pub const fn is_reduction(self) -> bool {
        matches!(self, Self::Cwr | Self::Recovery)
    }
}

/// The state of one end of a connection at one moment. Each field names the one of `struct tcp_info` that it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpState {
    /// `tcpi_ca_state`.
    pub state: CongestionState,
    /// `tcpi_snd_cwnd`: the congestion window.
    pub cwnd_segments: u32,
    /// `tcpi_snd_ssthresh`: the slow start threshold; `None`: infinite, before the first loss or exit from slow start.
    pub ssthresh_segments: Option<u32>,
    /// `tcpi_rtt`: smoothed; `None` before the first sample.
    pub srtt: Option<Span>,
    /// `tcpi_min_rtt`: the lowest RTT; `None` before the first sample. Linux forgets it after `net.ipv4.tcp_min_rtt_wlen`
    /// (5 minutes), simulated hosts after `lasthop_tcp::Config::min_rtt_window`; QUIC keeps it.
    pub min_rtt: Option<Span>,
    /// RTT of the newest segment that the latest ACK covered (`rack.rtt_us`; not in `tcp_info`). Unlike `srtt`, which is of
    /// the oldest one, it does not contain the receiver's wait for a second segment. `None` before the first sample.
    pub newest_rtt: Option<Span>,
    /// `tcpi_rcv_rtt`: the RTT as the receiver of data measures it, from an ACK to the data that it permits. `None` before
    /// the first sample. In whole milliseconds on most systems, and with the sender's waits in it where that has nothing
    /// to send.
    pub receive_rtt: Option<Span>,
    /// RFC 6675's pipe: segments sent, and neither acknowledged nor SACKed nor thought lost (`tcp_packets_in_flight()`:
    /// `tcpi_unacked` − `tcpi_sacked` − `tcpi_lost` + `tcpi_retrans`).
    pub in_flight_segments: u32,
    /// `tcpi_snd_mss`: the payload of a full segment; 0: unknown.
    pub mss_bytes: u32,
    /// `tcpi_notsent_bytes`: written by the application and not sent.
    pub unsent: Bytes,
    /// `tcpi_bytes_acked`: payload acknowledged. Linux counts the SYN as a byte.
    pub acked: Bytes,
    /// `tcpi_bytes_received`: payload received in order.
    pub received: Bytes,
    /// `tcpi_data_segs_out`: segments with data sent, retransmissions among them.
    pub sent_segments: u64,
    /// `tcpi_total_retrans`: segments retransmitted; with QUIC, packets declared lost.
    pub retransmits: u64,
    /// `tcpi_total_rto`: retransmission timeouts; `None`: not counted.
    pub timeouts: Option<u64>,
    /// `tcpi_delivered_ce`: segments delivered by ACKs that echo a mark of ECN. With RFC 3168 a receiver echoes one until it hears of
    /// the reduction, so a mark counts for what is delivered in a round trip.
    pub delivered_ce: u64,
    /// `tcpi_pacing_rate`: the rate of payload at which it paces, or would; `None` before the first RTT sample.
    pub pacing_rate: Option<Rate>,
}

impl TcpState {
    /// The application has written more than was sent.
    pub fn is_backlogged(&self) -> bool {
        self.unsent > Bytes::ZERO
    }

    /// Something is in flight or waits to be sent.
    pub fn has_data(&self) -> bool {
        self.in_flight_segments > 0 || self.is_backlogged()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_have_the_numbers_of_linux() {
        // include/uapi/linux/tcp.h, enum tcp_ca_state.
        let names = ["Open", "Disorder", "Cwr", "Recovery", "Loss"];
        for (number, name) in (0..).zip(names) {
            let state = CongestionState::from_linux(number);
            assert_eq!((state as u8, format!("{state:?}").as_str()), (number, name));
        }
    }
}
