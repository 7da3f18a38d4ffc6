//! What a guest's senders may have queued below their sockets, on a modern host ([`crate::valve`]).
//!
//! The scenario's own traffic knows its sockets. A guest's are asked of the kernel (sock_diag(7)), with all others of
//! its namespace: a TCP sender may have what its small queue permits, and a UDP sender what its send buffer holds.

use crate::WATCH_EVERY;
use crate::error::{Doing, Result};
use crate::namespace::Namespace;
use crate::small_queues::Station;
use crate::tcp_switches::SocketOptions;
use crate::traffic::LOOK_EVERY;
use crate::tun::MTU;
use lasthop_connection::TcpState;
use lasthop_units::{Bytes, Rate, Span};
use netlink_packet_core::{NLM_F_DUMP, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload};
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::constants::{AF_INET, AF_INET6, IPPROTO_TCP, IPPROTO_UDP};
use netlink_packet_sock_diag::inet::nlas::Nla;
use netlink_packet_sock_diag::inet::{ExtensionFlags, InetRequest, InetResponse, SocketId, StateFlags};
use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use netlink_sys::{Socket, SocketAddr};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// The mark of the laboratory's own UDP sockets (SO_MARK), which have no small queue.
pub(crate) const OF_LABORATORY: u32 = 0x6c61_626f;
/// What the kernel counts for a packet of [`MTU`] bytes in a UDP socket's send buffer: the packet and its `sk_buff`
/// (`SKB_TRUESIZE`, x86-64).
pub(crate) const PACKET_IN_BUFFER: u64 = 2304;

/// An end with a guest's sockets.
pub(crate) struct End<'a> {
    pub(crate) namespace: &'a Namespace,
    pub(crate) station: &'a Station,
    /// What the scenario says of the sockets there.
    pub(crate) sockets: SocketOptions,
}

/// Tells the stations what is permitted, until `stop` is set.
///
/// # Errors
/// If the kernel has no sock_diag for TCP and UDP (`CONFIG_INET_DIAG`, `CONFIG_INET_UDP_DIAG`).
pub(crate) fn tell(ends: &[End<'_>], stop: &AtomicBool) -> Result<()> {
    let mut asked = Vec::with_capacity(ends.len());
    for end in ends {
        asked.push((end, end.namespace.run(SockDiag::open)?));
    }
    while !stop.load(Ordering::Relaxed) {
        for (end, kernel) in &mut asked {
            let (tcp, datagrams) = kernel.permitted(end).doing("cannot ask for the sockets of a guest")?;
            end.station.permit_guest(tcp, datagrams);
        }
        let wait = if ends.is_empty() { WATCH_EVERY } else { Duration::from_nanos(LOOK_EVERY.as_nanos()) };
        thread::sleep(wait);
    }
    Ok(())
}

/// A sock_diag connection to the namespace that opened it.
struct SockDiag {
    socket: Socket,
    buffer: Vec<u8>,
}

impl SockDiag {
    fn open() -> Result<Self> {
        let mut socket = Socket::new(NETLINK_SOCK_DIAG).doing("cannot open sock_diag")?;
        socket.bind_auto().doing("cannot bind sock_diag")?;
        socket.connect(&SocketAddr::new(0, 0)).doing("cannot connect to sock_diag")?;
        Ok(Self { socket, buffer: Vec::with_capacity(64 << 10) })
    }

    /// What all senders of the namespace may have queued, of TCP and of UDP.
    fn permitted(&mut self, end: &End<'_>) -> io::Result<(Bytes, Bytes)> {
        let (mut tcp, mut datagrams) = (Bytes::ZERO, Bytes::ZERO);
        for (family, id) in [(AF_INET, SocketId::new_v4()), (AF_INET6, SocketId::new_v6())] {
            self.dump(family, IPPROTO_TCP, id.clone(), |socket| tcp += of_tcp(socket, end))?;
            self.dump(family, IPPROTO_UDP, id, |socket| datagrams += of_udp(socket))?;
        }
        Ok((tcp, datagrams))
    }

    fn dump(
        &mut self,
        family: u8,
        protocol: u8,
        socket_id: SocketId,
        mut on: impl FnMut(&InetResponse),
    ) -> io::Result<()> {
        let request = InetRequest {
            family,
            protocol,
            extensions: ExtensionFlags::INFO | ExtensionFlags::SKMEMINFO,
            states: StateFlags::all() - StateFlags::LISTEN - StateFlags::TIME_WAIT,
            socket_id,
        };
        let mut message = NetlinkMessage::from(SockDiagMessage::InetRequest(request));
        message.header.flags = NLM_F_REQUEST | NLM_F_DUMP;
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        loop {
            self.buffer.clear();
            self.socket.recv(&mut self.buffer, 0)?;
            let mut rest = &self.buffer[..];
            while !rest.is_empty() {
                let message = NetlinkMessage::<SockDiagMessage>::deserialize(rest).map_err(io::Error::other)?;
                let length = (message.header.length as usize).next_multiple_of(4).clamp(1, rest.len());
                rest = &rest[length..];
                match message.payload {
                    NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(socket)) => on(&socket),
                    NetlinkPayload::Done(_) => return Ok(()),
                    NetlinkPayload::Error(error) => return Err(error.to_io()),
                    _ => {}
                }
            }
        }
    }
}

/// Of a connection, nothing for one that has nothing to send.
fn of_tcp(socket: &InetResponse, end: &End<'_>) -> Bytes {
    let info = socket.nlas.iter().find_map(|nla| match nla {
        Nla::TcpInfo(info) if info.unacked > 0 || info.notsent_bytes > 0 => Some(info),
        _ => None,
    });
    let tcp = info.map(|info| TcpState {
        pacing_rate: info.pacing_rate.checked_mul(8).map(Rate::from_bps),
        mss_bytes: info.snd_mss,
        cwnd_segments: info.snd_cwnd,
        min_rtt: (info.min_rtt < u32::MAX).then(|| Span::from_micros(info.min_rtt.into())),
        ..TcpState::default()
    });
    tcp.map_or(Bytes::ZERO, |tcp| end.station.in_model(end.sockets.small_queue(&tcp)))
}

/// Nothing for a socket with no more than a packet below it, and for the laboratory's own.
fn of_udp(socket: &InetResponse) -> Bytes {
    let is_own = socket.nlas.iter().any(|nla| matches!(nla, Nla::Mark(OF_LABORATORY)));
    let buffer = socket.nlas.iter().find_map(|nla| match nla {
        Nla::MemInfo(memory) if u64::from(memory.bottom_send_queues) > PACKET_IN_BUFFER => Some(memory.send_queue_max),
        _ => None,
    });
    let buffer = buffer.filter(|_| !is_own).unwrap_or(0);
    Bytes::new(u64::from(buffer) * MTU as u64 / PACKET_IN_BUFFER)
}
