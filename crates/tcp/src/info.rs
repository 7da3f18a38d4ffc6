//! The visible state of a connection: the model's `TCP_INFO`.

use lasthop_connection::TcpState;
use lasthop_laws::Applied;
use lasthop_units::{Rate, Span};

/// The state of one end. The names are those of Linux's `struct tcp_info`, with units.
#[derive(Clone, Debug, PartialEq)]
pub struct Info {
    /// What all habitats have in common.
    pub tcp: TcpState,
    /// The latest RTT sample, of the oldest segment that an ACK covered; see [`TcpState::newest_rtt`].
    pub latest_rtt: Option<Span>,
    /// `tcpi_rttvar`.
    pub rttvar: Option<Span>,
    /// `tcpi_rto`, with the current backoff.
    pub rto: Span,
    /// `tcpi_unacked`: FlightSize.
    pub unacked_segments: u32,
    /// `tcpi_sacked`; without SACK, the number of duplicate ACKs.
    pub sacked_segments: u32,
    /// `tcpi_lost`.
    pub lost_segments: u32,
    /// `tcpi_retrans`: retransmitted and not acknowledged.
    pub retransmitted_segments: u32,
    /// Spurious reductions that were undone.
    pub spurious_undone: u64,
    /// `tcpi_delivered`.
    pub delivered_segments: u64,
    /// `tcpi_delivery_rate`.
    pub delivery_rate: Rate,
    /// `tcpi_delivery_rate_app_limited`: the application limited that rate.
    pub app_limited: bool,
    /// `tcpi_snd_wnd`: the receiver's window.
    pub window_bytes: u64,
    /// Whether a bound paced the sender at the latest ACK.
    pub paced_by_bound: bool,
    /// At a server: the client's last report, as its law applied it.
    pub last_link: Option<Applied>,
}
