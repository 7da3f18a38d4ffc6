//! The visible state of a connection: the model's `TCP_INFO`.

use lasthop_laws::Applied;
use lasthop_units::{Rate, Span};

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
    /// The window is being reduced without a loss: the host's own queue was full.
    Cwr = 2,
    /// Fast recovery.
    Recovery = 3,
    /// Recovery after a retransmission timeout.
    Loss = 4,
}

impl CongestionState {
    /// Whether the window is being reduced towards ssthresh.
    pub const fn is_reduction(self) -> bool {
        matches!(self, Self::Cwr | Self::Recovery)
    }
}

/// The state of one end. The names are those of Linux's `struct tcp_info`, with units.
#[derive(Clone, Debug, PartialEq)]
pub struct Info {
    /// `tcpi_ca_state`.
    pub state: CongestionState,
    /// `tcpi_snd_cwnd`.
    pub cwnd_segments: u32,
    /// `tcpi_snd_ssthresh`; `None`: infinite, before the first loss or exit from slow start.
    pub ssthresh_segments: Option<u32>,
    /// `tcpi_rtt`, smoothed.
    pub srtt: Option<Span>,
    /// The latest RTT sample, of the oldest segment that an ACK covered.
    pub latest_rtt: Option<Span>,
    /// RTT of the newest segment that the latest ACK covered (Linux: `rack.rtt_us`). Unlike [`Self::latest_rtt`] it
    /// does not contain the receiver's wait for a second segment.
    pub newest_rtt: Option<Span>,
    /// `tcpi_rttvar`.
    pub rttvar: Option<Span>,
    /// `tcpi_min_rtt`: the lowest RTT of the last [`crate::Config::min_rtt_window`].
    pub min_rtt: Option<Span>,
    /// `tcpi_rto`, with the current backoff.
    pub rto: Span,
    /// RFC 6675's pipe: segments sent, and neither acknowledged nor SACKed nor considered lost.
    pub in_flight_segments: u32,
    /// `tcpi_unacked`: FlightSize.
    pub unacked_segments: u32,
    /// `tcpi_sacked`; without SACK, the number of duplicate ACKs.
    pub sacked_segments: u32,
    /// `tcpi_lost`.
    pub lost_segments: u32,
    /// `tcpi_retrans`: retransmitted and not acknowledged.
    pub retransmitted_segments: u32,
    /// `tcpi_data_segs_out`: data segments sent, with retransmissions.
    pub segments_sent: u64,
    /// `tcpi_total_retrans`.
    pub retransmits: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Spurious reductions that were undone.
    pub spurious_undone: u64,
    /// `tcpi_delivered`.
    pub delivered_segments: u64,
    /// `tcpi_delivery_rate`.
    pub delivery_rate: Rate,
    /// `tcpi_delivery_rate_app_limited`: the application limited that rate.
    pub app_limited: bool,
    /// `tcpi_bytes_acked`.
    pub acked_bytes: u64,
    /// `tcpi_notsent_bytes`: bytes in the send buffer and not sent.
    pub unsent_bytes: u64,
    /// `tcpi_snd_wnd`: the receiver's window.
    pub window_bytes: u64,
    /// `tcpi_pacing_rate`, used or not.
    pub pacing_rate: Rate,
    /// Whether a bound paced the sender at the latest ACK.
    pub paced_by_bound: bool,
    /// `tcpi_snd_mss`: the payload of a full segment.
    pub mss_bytes: u32,
    /// `tcpi_bytes_received`: payload received in order.
    pub received_bytes: u64,
    /// `tcpi_rcv_rtt`: the RTT as the receiver of data measures it, see `receive_rtt.rs`.
    pub receive_rtt: Option<Span>,
    /// At a server: the client's last report, as its law applied it.
    pub last_link: Option<Applied>,
}
