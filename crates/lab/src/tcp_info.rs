//! The kernel's information about a TCP connection: `TCP_INFO`.

use crate::tcp_switches::Pace;
use lasthop_units::{Bytes, Span};
use std::io;
use std::mem::offset_of;
use std::os::fd::BorrowedFd;

/// A reading of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TcpInfo {
    pub(crate) cwnd_segments: u32,
    /// `None` while it is infinite.
    pub(crate) ssthresh_segments: Option<u32>,
    /// `None` before the first sample.
    pub(crate) srtt: Option<Span>,
    /// The minimum over the kernel's window (`net.ipv4.tcp_min_rtt_wlen`, 300 s); `None` before the first sample.
    pub(crate) min_rtt: Option<Span>,
    /// TCP_CA_Open to TCP_CA_Loss: 0 to 4.
    pub(crate) ca_state: u8,
    pub(crate) in_flight_segments: u32,
    /// Per second; the greatest number before the first round trip.
    pub(crate) pacing_rate: Bytes,
    pub(crate) mss_bytes: u32,
    pub(crate) unsent_bytes: u32,
    pub(crate) retransmits: u32,
    /// Retransmission timeouts; `None` where the kernel does not count them (before 6.7).
    pub(crate) timeouts: Option<u32>,
    /// Bytes received here in order.
    pub(crate) received: Bytes,
    /// Bytes acknowledged by the peer.
    pub(crate) acked: Bytes,
}

/// TCP_INFINITE_SSTHRESH (net/tcp.h).
const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

impl TcpInfo {
    pub(crate) fn pace(&self) -> Pace {
        let Self { pacing_rate: rate, mss_bytes, cwnd_segments, min_rtt, .. } = *self;
        Pace { rate, mss_bytes, cwnd_segments, min_rtt }
    }

    /// Reads a connected socket.
    pub(crate) fn read(socket: BorrowedFd<'_>) -> io::Result<Self> {
        let (raw, length) = lasthop_kernel::tcp_info(socket)?;
        let has_timeouts = length >= offset_of!(libc::tcp_info, tcpi_total_rto) + size_of_val(&raw.tcpi_total_rto);
        let span = |us: u32| (us != 0 && us != u32::MAX).then(|| Span::from_micros(us.into()));
        Ok(Self {
            cwnd_segments: raw.tcpi_snd_cwnd,
            ssthresh_segments: (raw.tcpi_snd_ssthresh < INFINITE_SSTHRESH).then_some(raw.tcpi_snd_ssthresh),
            srtt: span(raw.tcpi_rtt),
            min_rtt: span(raw.tcpi_min_rtt),
            ca_state: raw.tcpi_ca_state,
            // tcp_packets_in_flight(): sent, minus those that left the network, plus those retransmitted.
            in_flight_segments: (raw.tcpi_unacked + raw.tcpi_retrans).saturating_sub(raw.tcpi_sacked + raw.tcpi_lost),
            pacing_rate: Bytes::new(raw.tcpi_pacing_rate),
            mss_bytes: raw.tcpi_snd_mss,
            unsent_bytes: raw.tcpi_notsent_bytes,
            retransmits: raw.tcpi_total_retrans,
            timeouts: has_timeouts.then(|| raw.tcpi_total_rto.into()),
            received: Bytes::new(raw.tcpi_bytes_received),
            acked: Bytes::new(raw.tcpi_bytes_acked),
        })
    }
}
