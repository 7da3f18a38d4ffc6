//! TCP sockets of flows: how they are made, and how much they write and read at once.

use super::FlowPlan;
use crate::addresses::{AddressPlan, client_port};
use crate::error::{Doing, Result};
use crate::hosts::Hosts;
use lasthop_scenario::Direction;
use lasthop_units::Bytes;
use nix::errno::Errno;
use nix::sys::socket::{
    self, AddressFamily, MsgFlags, Shutdown, SockFlag, SockType, SockaddrIn, setsockopt,
    sockopt::{Ipv4Tos, Linger, ReuseAddr, TcpCongestion},
};
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, OwnedFd};

/// A client's socket, in its host's namespace.
pub(super) fn client_socket(plan: &FlowPlan, number: usize, hosts: &Hosts) -> Result<OwnedFd> {
    let port = client_port(number);
    hosts.hosts()[usize::from(plan.spec.host)].run(|| {
        let client = tcp_socket(AddressPlan::host(plan.spec.host), port)?;
        plan.options.on_new(&client)?;
        if plan.reads_lumps() && plan.spec.direction == Direction::Down {
            plan.options.wake_for_lumps(&client)?;
        }
        // Also for a download, whose sender is the server: an unknown name must fail before the run.
        set_congestion_control(&client, &plan.congestion_control)?;
        set_dscp(&client, plan.spec.dscp)?;
        Ok(client)
    })
}

pub(super) fn tcp_socket(address: Ipv4Addr, port: u16) -> Result<OwnedFd> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let socket =
        socket::socket(AddressFamily::Inet, SockType::Stream, flags, None).doing("cannot make a TCP socket")?;
    reset_when_closed(&socket)?;
    // The next connection of a flow has the port of the one before.
    setsockopt(&socket, ReuseAddr, &true).doing("cannot set SO_REUSEADDR of a socket")?;
    socket::bind(socket.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(address, port)))
        .doing(format_args!("cannot bind a socket to {address}:{port}"))?;
    Ok(socket)
}

/// The connection ends with the last descriptor of its socket (`SO_LINGER` with zero time, socket(7)). Connections
/// accepted by a listener inherit this. Otherwise the kernel would retransmit the buffered data for minutes, and keep
/// the namespace and the congestion control.
pub(crate) fn reset_when_closed(socket: &OwnedFd) -> Result<()> {
    setsockopt(socket, Linger, &libc::linger { l_onoff: 1, l_linger: 0 }).doing("cannot set SO_LINGER of a socket")
}

pub(super) fn set_congestion_control(socket: &OwnedFd, name: &str) -> Result<()> {
    setsockopt(socket, TcpCongestion, &OsString::from(name))
        .doing(format_args!("cannot choose the congestion control \"{name}\""))
}

/// Marks the socket's packets. 0, the default, costs no call.
pub(super) fn set_dscp(socket: &OwnedFd, dscp: u8) -> Result<()> {
    if dscp == 0 {
        return Ok(());
    }
    setsockopt(socket, Ipv4Tos, &(i32::from(dscp) << 2)).doing(format_args!("cannot mark a socket with DSCP {dscp}"))
}

/// The congestion controls of this kernel, without the agents' own.
pub(crate) fn offered_congestion_controls() -> Vec<String> {
    let names = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    names.split_whitespace().filter(|name| !name.starts_with("lasthop")).map(str::to_owned).collect()
}

/// Writes as much as the kernel takes, at most `unwritten` bytes.
pub(super) fn send_all(socket: &OwnedFd, zeroes: &[u8], unwritten: &mut u64) -> nix::Result<()> {
    while *unwritten > 0 {
        let offered = usize::try_from(*unwritten).unwrap_or(usize::MAX).min(zeroes.len());
        match socket::send(socket.as_raw_fd(), &zeroes[..offered], MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT) {
            Ok(sent) => {
                if *unwritten < u64::MAX {
                    *unwritten -= sent as u64;
                }
                // A partial write: the buffer is full, and epoll reports when it has room.
                if sent < offered {
                    return Ok(());
                }
            }
            Err(Errno::EINTR) => {}
            Err(Errno::EAGAIN) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Stops writing; the kernel still sends the buffered data. Closing a broken connection fails, and its error is
/// reported elsewhere.
pub(super) fn close(sender: &OwnedFd) {
    let _ = socket::shutdown(sender.as_raw_fd(), Shutdown::Write);
}

/// Reads and discards all data available (with MSG_TRUNC the kernel does not copy them, tcp(7)). Also returns whether
/// this was the end of the stream.
pub(super) fn receive_all(socket: &OwnedFd, unused: &mut [u8], on_edges: bool) -> nix::Result<(Bytes, bool)> {
    let mut total = Bytes::ZERO;
    loop {
        match socket::recv(socket.as_raw_fd(), unused, MsgFlags::MSG_TRUNC | MsgFlags::MSG_DONTWAIT) {
            Ok(0) => return Ok((total, true)),
            Ok(received) => {
                total += Bytes::new(received as u64);
                // An end that came with the last data raises no further edge (epoll(7)).
                if !on_edges && received < unused.len() {
                    return Ok((total, false));
                }
            }
            Err(Errno::EAGAIN) => return Ok((total, false)),
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error),
        }
    }
}
