//! What can be seen of a connection from outside: the model's `TCP_INFO`.

use lasthop_laws::Applied;
use lasthop_units::{Rate, Span};

/// Linux's congestion state machine, in its numbering (`TCP_CA_Open` = 0).
///
/// ```text
///            dup ACK / SACK          loss found
///   Open ───────────────> Disorder ────────────> Recovery ──> Open, when all that was out at entry is acknowledged
///    │ ▲                                            │
///    │ └── Cwr: a reduction without loss            │ timeout, from any state
///    └────────────────────────────────────────────> Loss ───> Open, likewise, or when the timeout was needless
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum CongestionState {
    /// Nothing is amiss.
    #[default]
    Open = 0,
    /// Something arrived out of order; it may be reordering.
    Disorder = 1,
    /// The window is being reduced for another reason than loss: the host's own queue was full.
    Cwr = 2,
    /// Fast recovery.
    Recovery = 3,
    /// Recovery from a timeout.
    Loss = 4,
}

impl CongestionState {
    /// The window is being reduced towards ssthresh.
    pub const fn is_reduction(self) -> bool {
        matches!(self, Self::Cwr | Self::Recovery)
    }
}

/// A connection as its sender sees it. The names are those of Linux's `struct tcp_info`, with units.
#[derive(Clone, Debug, PartialEq)]
pub struct Info {
    /// `tcpi_ca_state`.
    pub state: CongestionState,
    /// `tcpi_snd_cwnd`.
    pub cwnd_segments: u32,
    /// `tcpi_snd_ssthresh`; `None`: no loss and no exit from slow start yet.
    pub ssthresh_segments: Option<u32>,
    /// `tcpi_rtt`, smoothed.
    pub srtt: Option<Span>,
    /// The latest sample.
    pub latest_rtt: Option<Span>,
    /// RTT of the newest segment that the latest sample was for, where [`Self::latest_rtt`] is of the oldest: without what the
    /// receiver waited for a second segment (Linux: `rack.rtt_us`).
    pub newest_rtt: Option<Span>,
    /// `tcpi_rttvar`.
    pub rttvar: Option<Span>,
    /// `tcpi_min_rtt`: the lowest of the last [`crate::Config::min_rtt_window`].
    pub min_rtt: Option<Span>,
    /// `tcpi_rto`, with its present backoff.
    pub rto: Span,
    /// Sent, and neither acknowledged nor SACKed nor thought lost: RFC 6675's pipe.
    pub in_flight_segments: u32,
    /// `tcpi_unacked`: FlightSize.
    pub unacked_segments: u32,
    /// `tcpi_sacked`; without SACK, duplicate ACKs.
    pub sacked_segments: u32,
    /// `tcpi_lost`.
    pub lost_segments: u32,
    /// `tcpi_retrans`: retransmitted and not acknowledged.
    pub retransmitted_segments: u32,
    /// Data segments sent, retransmissions too (`tcpi_data_segs_out`).
    pub segments_sent: u64,
    /// `tcpi_total_retrans`.
    pub retransmits: u64,
    /// Retransmission timers that fired.
    pub timeouts: u64,
    /// Reductions that were taken back.
    pub spurious_undone: u64,
    /// `tcpi_delivered`.
    pub delivered_segments: u64,
    /// `tcpi_delivery_rate`.
    pub delivery_rate: Rate,
    /// `tcpi_delivery_rate_app_limited`: the application held that rate down.
    pub app_limited: bool,
    /// `tcpi_bytes_acked`.
    pub acked_bytes: u64,
    /// `tcpi_notsent_bytes`: in the send buffer and not sent.
    pub unsent_bytes: u64,
    /// `tcpi_snd_wnd`: the receiver's window.
    pub window_bytes: u64,
    /// `tcpi_pacing_rate`, whether or not it is used.
    pub pacing_rate: Rate,
    /// What the bound limits it to, as of the latest ACK; `None`: no limit. With one it is used.
    pub max_pacing_rate: Option<Rate>,
    /// `tcpi_snd_mss`: the payload of a full segment.
    pub mss_bytes: u32,
    /// What a server's law has heard of the client's last link, and made of it.
    pub last_link: Option<Applied>,
}
