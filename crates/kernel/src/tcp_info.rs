//! The kernel's state of one connection: `TCP_INFO`.

use crate::sample::{pacing_rate, span};
use lasthop_connection::{CongestionState, TcpState};
use lasthop_laws::finite_ssthresh;
use lasthop_units::Bytes;
use nix::libc;
use std::io;
use std::mem::{self, MaybeUninit, offset_of};
use std::os::fd::{AsFd, AsRawFd};

/// The state of a connected socket. [`TcpState::newest_rtt`] is not in it.
///
/// # Errors
/// If it is no TCP socket.
pub fn tcp_state(socket: impl AsFd) -> io::Result<TcpState> {
    let (info, length) = tcp_info(socket)?;
    let has_timeouts = length >= offset_of!(libc::tcp_info, tcpi_total_rto) + size_of_val(&info.tcpi_total_rto);
    // tcp_packets_in_flight(): sent, minus those that left the network, plus those retransmitted.
    let in_flight_segments = (info.tcpi_unacked + info.tcpi_retrans).saturating_sub(info.tcpi_sacked + info.tcpi_lost);
    Ok(TcpState {
        state: CongestionState::from_linux(info.tcpi_ca_state),
        cwnd_segments: info.tcpi_snd_cwnd,
        ssthresh_segments: finite_ssthresh(info.tcpi_snd_ssthresh),
        srtt: span(info.tcpi_rtt),
        min_rtt: span(info.tcpi_min_rtt),
        newest_rtt: None,
        receive_rtt: span(info.tcpi_rcv_rtt),
        in_flight_segments,
        mss_bytes: info.tcpi_snd_mss,
        unsent: Bytes::new(info.tcpi_notsent_bytes.into()),
        acked: Bytes::new(info.tcpi_bytes_acked),
        received: Bytes::new(info.tcpi_bytes_received),
        sent_segments: info.tcpi_data_segs_out.into(),
        retransmits: info.tcpi_total_retrans.into(),
        timeouts: has_timeouts.then(|| info.tcpi_total_rto.into()),
        delivered_ce: info.tcpi_delivered_ce.into(),
        pacing_rate: pacing_rate(info.tcpi_pacing_rate),
    })
}

/// `struct tcp_info` of a connected socket (linux/tcp.h), and how many bytes of it this kernel fills. An older kernel
/// fills less; the rest is zero.
///
/// # Errors
/// If it is no TCP socket.
pub fn tcp_info(socket: impl AsFd) -> io::Result<(libc::tcp_info, usize)> {
    let mut info = MaybeUninit::<libc::tcp_info>::zeroed();
    let mut length = mem::size_of::<libc::tcp_info>() as libc::socklen_t;
    let (level, option) = (libc::IPPROTO_TCP, libc::TCP_INFO);
    // SAFETY: the buffer is as long as `length` says, and the kernel writes no more than that.
    #[allow(unsafe_code)]
    let status = unsafe {
        libc::getsockopt(socket.as_fd().as_raw_fd(), level, option, info.as_mut_ptr().cast(), &raw mut length)
    };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: its members are integers, zeroed before the kernel wrote some of them.
    #[allow(unsafe_code)]
    Ok((unsafe { info.assume_init() }, length as usize))
}
