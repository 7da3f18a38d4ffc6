//! A conversation over netlink: a request, and all answers to it (netlink(7)). Or messages one by one, with a kernel that sends
//! unasked.

use netlink_packet_core::{NLM_F_REQUEST, NetlinkDeserializable, NetlinkMessage, NetlinkPayload, NetlinkSerializable};
use netlink_sys::{Socket, SocketAddr};
use nix::libc::MSG_DONTWAIT;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::RcvBufForce;
use std::fmt::Debug;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// Asks the kernel, in the network namespace in which it was opened.
#[derive(Debug)]
pub struct Netlink {
    socket: Socket,
    sequence: u32,
}

impl Netlink {
    /// Opens it. `protocol`: such as `NETLINK_ROUTE` (linux/netlink.h).
    ///
    /// # Errors
    /// The kernel does not have this protocol, or has no room.
    pub fn open(protocol: isize) -> io::Result<Self> {
        let mut socket = Socket::new(protocol)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self { socket, sequence: 0 })
    }

    /// Sends a request and reads all answers. `flags`: beside `NLM_F_REQUEST`, one that makes an end: `NLM_F_ACK` or `NLM_F_DUMP`.
    ///
    /// # Errors
    /// The kernel refuses, with its number ([`io::Error::raw_os_error`]), or its answer is cut off.
    pub fn ask<M>(&mut self, request: M, flags: u16) -> io::Result<Vec<M>>
    where
        M: Debug + NetlinkSerializable + NetlinkDeserializable,
        NetlinkMessage<M>: From<M>,
    {
        self.sequence += 1;
        let mut message = NetlinkMessage::from(request);
        message.header.flags = NLM_F_REQUEST | flags;
        message.header.sequence_number = self.sequence;
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        let mut answers = Vec::new();
        loop {
            // The kernel answers within the call to send, so all answers are already there.
            let (datagram, _) = self.socket.recv_from_full()?;
            if read(&datagram, self.sequence, &mut answers)? {
                return Ok(answers);
            }
        }
    }
}

impl Netlink {
    /// Sends whole messages, in this order.
    ///
    /// # Errors
    /// The kernel does not take them. What it thinks of each, it says in a datagram.
    pub fn send(&mut self, messages: &[u8]) -> io::Result<()> {
        self.socket.send(messages, 0).map(drop)
    }

    /// Reads the oldest datagram, of at most `most_bytes`, in place of what is in the buffer. `false`: none waits.
    ///
    /// # Errors
    /// The kernel had to leave datagrams out (ENOBUFS).
    pub fn receive(&mut self, datagram: &mut Vec<u8>, most_bytes: usize) -> io::Result<bool> {
        datagram.clear();
        datagram.reserve(most_bytes);
        match self.socket.recv(datagram, MSG_DONTWAIT) {
            Ok(_) => Ok(true),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Lets so many bytes wait to be received, and has refusals come without the message that they refuse.
    ///
    /// # Errors
    /// The kernel grants neither.
    pub fn expect_many(&mut self, bytes: u32) -> io::Result<()> {
        // Without CAP_NET_ADMIN the limit of the system (net.core.rmem_max) holds.
        if setsockopt(&self.socket, RcvBufForce, &(bytes as usize)).is_err() {
            self.socket.set_rx_buf_sz(bytes)?;
        }
        self.socket.set_cap_ack(true)
    }
}

impl AsFd for Netlink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Parses the messages of a datagram that answer the request with this number. Returns whether they are the last.
///
/// # Errors
/// As [`Netlink::ask`].
pub fn read<M: Debug + NetlinkDeserializable>(
    datagram: &[u8],
    sequence: u32,
    answers: &mut Vec<M>,
) -> io::Result<bool> {
    let mut rest = datagram;
    while !rest.is_empty() {
        let message = NetlinkMessage::<M>::deserialize(rest).map_err(io::Error::other)?;
        let length = (message.header.length as usize).next_multiple_of(4);
        rest = rest.get(length.max(1)..).unwrap_or_default();
        if message.header.sequence_number != sequence {
            continue; // the end of an earlier conversation
        }
        match message.payload {
            NetlinkPayload::InnerMessage(answer) => answers.push(answer),
            NetlinkPayload::Done(_) => return Ok(true),
            NetlinkPayload::Error(error) if error.code.is_none() => return Ok(true),
            NetlinkPayload::Error(error) => return Err(error.to_io()),
            other => return Err(io::Error::other(format!("an unexpected message: {other:?}"))),
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use netlink_packet_core::{NLM_F_ACK, NLM_F_DUMP};
    use netlink_packet_route::RouteNetlinkMessage;
    use netlink_packet_route::link::LinkMessage;
    use netlink_sys::protocols::NETLINK_ROUTE;

    #[test]
    fn a_refusal_has_the_kernels_number_and_what_is_cut_off_is_an_error() {
        let mut answers: Vec<RouteNetlinkMessage> = Vec::new();
        // NLMSG_ERROR with -ENODEV (19), and room for the request's header.
        let refusal = [36, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 237, 255, 255, 255];
        let refusal: Vec<u8> = refusal.into_iter().chain([0; 16]).collect();
        assert_eq!(read(&refusal, 1, &mut answers).expect_err("a refusal").raw_os_error(), Some(19));
        assert!(!read(&refusal, 2, &mut answers).expect("of an earlier conversation"));
        assert!(read(&[1, 2, 3], 1, &mut answers).is_err());
        assert!(read(&refusal[..20], 1, &mut answers).is_err());
    }

    #[test]
    fn each_request_gets_its_own_answers_to_their_end() {
        let mut netlink = Netlink::open(NETLINK_ROUTE).expect("rtnetlink");
        let mut ask = |index, flags| {
            let mut link = LinkMessage::default();
            link.header.index = index;
            netlink.ask(RouteNetlinkMessage::GetLink(link), flags)
        };
        let all = ask(0, NLM_F_DUMP).expect("links");
        assert!(!all.is_empty(), "there is a loopback device");
        assert_eq!(ask(u32::MAX >> 1, NLM_F_ACK).expect_err("no such link").raw_os_error(), Some(19));
        assert_eq!(ask(0, NLM_F_DUMP).expect("links").len(), all.len());
    }
}
