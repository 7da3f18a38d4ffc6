//! Flows of datagrams: pings, and packets at a constant rate.
//!
//! A datagram carries its number and when it was sent. Both ends have the same clock, so one way can be measured. What
//! the traffic's thread takes to read a datagram is part of its delay.

use super::sockets::set_dscp;
use super::{Came, FlowPlan, Traffic};
use crate::addresses::{AddressPlan, client_port};
use crate::clock::Clock;
use crate::error::{Doing, Result};
use crate::guest::queues::OF_LABORATORY;
use crate::hosts::Hosts;
use crate::namespace::Namespace;
use crate::tun::MTU;
use lasthop_scenario::{Direction, Pieces};
use lasthop_units::{Bytes, Time};
use nix::errno::Errno;
use nix::sys::socket::{
    self, AddressFamily, MsgFlags, SockFlag, SockType, SockaddrIn, setsockopt,
    sockopt::{Mark, RcvBufForce, SndBufForce},
};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, OwnedFd};

/// IP and UDP headers of a datagram.
pub(super) const DATAGRAM_HEADERS: usize = 28;
/// What a datagram carries: its number with [`ANSWER`], and when it was sent, in nanoseconds of the run.
const STAMP_BYTES: usize = 16;
/// The bit of the number that tells the answer to a ping.
const ANSWER: u64 = 1 << 63;
/// The buffers of a socket of datagrams: the host's queue is to be full before.
const DATAGRAM_BUFFER: usize = 4 << 20;

/// The sockets of a flow of datagrams, at its host and at its server, connected with each other. Both have the flow's
/// port.
pub(super) fn datagram_sockets(plan: &FlowPlan, number: usize, hosts: &Hosts) -> Result<[OwnedFd; 2]> {
    let port = client_port(number);
    let host = (AddressPlan::host(plan.spec.host), &hosts.hosts()[usize::from(plan.spec.host)]);
    let server = (AddressPlan::server(plan.server), &hosts.servers()[usize::from(plan.server)]);
    let socket = |(here, namespace): (Ipv4Addr, &Namespace), there: Ipv4Addr| {
        namespace.run(|| {
            let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
            let socket = socket::socket(AddressFamily::Inet, SockType::Datagram, flags, None)
                .doing("cannot make a UDP socket")?;
            setsockopt(&socket, Mark, &OF_LABORATORY).doing("cannot set SO_MARK of a socket")?;
            setsockopt(&socket, SndBufForce, &DATAGRAM_BUFFER).doing("cannot set SO_SNDBUF of a socket")?;
            setsockopt(&socket, RcvBufForce, &DATAGRAM_BUFFER).doing("cannot set SO_RCVBUF of a socket")?;
            set_dscp(&socket, plan.spec.dscp)?;
            let address = |of: Ipv4Addr| SockaddrIn::from(SocketAddrV4::new(of, port));
            socket::bind(socket.as_raw_fd(), &address(here))
                .doing(format_args!("cannot bind a socket to {here}:{port}"))?;
            socket::connect(socket.as_raw_fd(), &address(there)).doing("cannot connect a UDP socket")?;
            Ok(socket)
        })
    };
    Ok([socket(host, server.0)?, socket(server, host.0)?])
}

impl Traffic<'_> {
    /// Reads all datagrams that have come to one end of a flow, and answers pings.
    pub(super) fn serve_datagrams(&mut self, number: usize, end: Direction, clock: Clock) {
        let mut stamp = [0; STAMP_BYTES];
        loop {
            let (flow, plan) = (&mut self.flows[number], &mut self.plans[number]);
            let socket = match end {
                Direction::Up => &flow.client,
                Direction::Down => flow.server.as_ref().expect("a flow of datagrams has both sockets"),
            };
            let flags = MsgFlags::MSG_TRUNC | MsgFlags::MSG_DONTWAIT;
            let payload = match socket::recv(socket.as_raw_fd(), &mut stamp, flags) {
                Ok(payload) if payload >= STAMP_BYTES => payload,
                Ok(_) | Err(Errno::EINTR) => continue,
                Err(Errno::EAGAIN) => return,
                Err(error) => {
                    flow.fail(plan, &self.epoll, clock.now(), error);
                    return;
                }
            };
            let now = clock.now();
            let [datagram, sent_ns] = [0, 8].map(|at| u64::from_be_bytes(std::array::from_fn(|byte| stamp[at + byte])));
            let (is_answer, datagram) = (datagram & ANSWER != 0, datagram & !ANSWER);
            let sent_at = Time::from_nanos(sent_ns);
            // Only what was sent has a place.
            let is_ours = usize::try_from(datagram).is_ok_and(|datagram| datagram < flow.sent.len());
            let is_first = is_ours && flow.copies[usize::from(is_answer)].is_first(datagram);
            let is_ping = plan.spec.kind.name().pieces() == Pieces::Pings;
            if is_first && !is_answer {
                flow.received += Bytes::new(payload as u64);
            }
            if is_ping && !is_answer {
                self.send_datagram(number, end, (datagram | ANSWER, sent_at), payload);
            } else if is_first {
                self.came.push(Came { at: now, flow: number, number: datagram, sent_at });
            }
        }
    }

    /// Sends a datagram from one end. One that has no room is lost, as at any host.
    pub(super) fn send_datagram(
        &mut self,
        number: usize,
        end: Direction,
        (datagram, sent_at): (u64, Time),
        payload: usize,
    ) {
        let (flow, plan) = (&mut self.flows[number], &mut self.plans[number]);
        let socket = match end {
            Direction::Up => &flow.client,
            Direction::Down => flow.server.as_ref().expect("a flow of datagrams has both sockets"),
        };
        let mut bytes = [0; MTU];
        bytes[..8].copy_from_slice(&datagram.to_be_bytes());
        bytes[8..STAMP_BYTES].copy_from_slice(&sent_at.as_nanos().to_be_bytes());
        match socket::send(socket.as_raw_fd(), &bytes[..payload], MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT) {
            Ok(_) | Err(Errno::EAGAIN | Errno::ENOBUFS | Errno::EINTR) => {}
            Err(error) => flow.fail(plan, &self.epoll, sent_at, error),
        }
    }
}
