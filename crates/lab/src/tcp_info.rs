//! What the kernel tells of a TCP connection: `TCP_INFO`.

use lasthop_units::{Bytes, Span};
use std::io;
use std::mem::{self, MaybeUninit};
use std::os::fd::{AsRawFd, BorrowedFd};

/// The head of `struct tcp_info` (linux/tcp.h), as far as the laboratory reads it. A kernel that knows less fills less
/// and says how much; what it did not fill stays zero.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Raw {
    state: u8,
    ca_state: u8,
    retransmits: u8,
    probes: u8,
    backoff: u8,
    pub(crate) options: u8,
    wscale: u8,
    delivery_rate_app_limited: u8,
    pub(crate) rto_us: u32,
    ato_us: u32,
    pub(crate) snd_mss: u32,
    rcv_mss: u32,
    unacked: u32,
    sacked: u32,
    lost: u32,
    retrans: u32,
    fackets: u32,
    last_data_sent_ms: u32,
    last_ack_sent_ms: u32,
    last_data_recv_ms: u32,
    last_ack_recv_ms: u32,
    pmtu: u32,
    rcv_ssthresh: u32,
    rtt_us: u32,
    rttvar_us: u32,
    snd_ssthresh: u32,
    pub(crate) snd_cwnd: u32,
    advmss: u32,
    reordering: u32,
    rcv_rtt_us: u32,
    rcv_space: u32,
    total_retrans: u32,
    pacing_rate: u64,
    max_pacing_rate: u64,
    bytes_acked: u64,
    bytes_received: u64,
    segs_out: u32,
    segs_in: u32,
    notsent_bytes: u32,
    min_rtt_us: u32,
    data_segs_in: u32,
    data_segs_out: u32,
    delivery_rate: u64,
    busy_time_us: u64,
    rwnd_limited_us: u64,
    sndbuf_limited_us: u64,
    delivered: u32,
    delivered_ce: u32,
    bytes_sent: u64,
    bytes_retrans: u64,
    dsack_dups: u32,
    reord_seen: u32,
    rcv_ooopack: u32,
    pub(crate) snd_wnd: u32,
    rcv_wnd: u32,
    rehash: u32,
    total_rto: u16,
    total_rto_recoveries: u16,
    total_rto_time_ms: u32,
}

/// A reading of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TcpInfo {
    pub(crate) cwnd_segments: u32,
    /// `None` while it is infinite.
    pub(crate) ssthresh_segments: Option<u32>,
    /// `None` before the first sample.
    pub(crate) srtt: Option<Span>,
    /// The smallest of the kernel's window (`net.ipv4.tcp_min_rtt_wlen`, 300 s); `None` before the first sample.
    pub(crate) min_rtt: Option<Span>,
    /// TCP_CA_Open to TCP_CA_Loss: 0 to 4.
    pub(crate) ca_state: u8,
    pub(crate) in_flight_segments: u32,
    pub(crate) unsent_bytes: u32,
    pub(crate) retransmits: u32,
    /// Retransmission timeouts; `None` where the kernel does not count them (before 6.7).
    pub(crate) timeouts: Option<u32>,
    /// What has arrived here in order.
    pub(crate) received: Bytes,
    /// What the other side has acknowledged.
    pub(crate) acked: Bytes,
}

/// TCP_INFINITE_SSTHRESH (net/tcp.h).
const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

impl Raw {
    /// Reads a connected socket; also how many bytes of it the kernel filled.
    pub(crate) fn read(socket: BorrowedFd<'_>) -> io::Result<(Self, usize)> {
        let mut raw = MaybeUninit::<Self>::zeroed();
        let mut length = mem::size_of::<Self>() as libc::socklen_t;
        // SAFETY: the buffer is as long as `length` says, and the kernel writes no more than that.
        let status = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                raw.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        if status != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: all fields are integers, zeroed before the kernel wrote some of them.
        Ok((unsafe { raw.assume_init() }, length as usize))
    }
}

impl TcpInfo {
    /// Reads a connected socket.
    pub(crate) fn read(socket: BorrowedFd<'_>) -> io::Result<Self> {
        let (raw, length) = Raw::read(socket)?;
        let has_timeouts = length >= mem::offset_of!(Raw, total_rto) + mem::size_of::<u16>();
        let span = |us: u32| (us != 0 && us != u32::MAX).then(|| Span::from_micros(us.into()));
        Ok(Self {
            cwnd_segments: raw.snd_cwnd,
            ssthresh_segments: (raw.snd_ssthresh < INFINITE_SSTHRESH).then_some(raw.snd_ssthresh),
            srtt: span(raw.rtt_us),
            min_rtt: span(raw.min_rtt_us),
            ca_state: raw.ca_state,
            // tcp_packets_in_flight(): sent, less those that left the network, plus those sent again.
            in_flight_segments: (raw.unacked + raw.retrans).saturating_sub(raw.sacked + raw.lost),
            unsent_bytes: raw.notsent_bytes,
            retransmits: raw.total_retrans,
            timeouts: has_timeouts.then(|| raw.total_rto.into()),
            received: Bytes::new(raw.bytes_received),
            acked: Bytes::new(raw.bytes_acked),
        })
    }
}
