//! Has mac80211 look at its queues whenever a receiver's frames are done, as the drivers of real radios do.
//!
//! mac80211 holds back packets while the driver has enough airtime for their receiver (AQL). ath10k and mt76 ask for more when a frame
//! is done; mac80211_hwsim asks only when a new packet comes. TCP sends none while its packets are held back: both would wait forever.
//!
//! So whoever has no frame left for a receiver sends it an empty datagram, which makes mac80211 look. The medium keeps this datagram:
//! it takes no air, and nobody receives it. One at the end of each frame would be nearer to drivers, but is too much work for an emulated
//! machine with a build for tests.

use crate::addresses::AddressPlan;
use crate::error::{Doing, Result};
use crate::namespace::Namespace;
use nix::sys::socket::{setsockopt, sockopt::Priority};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};

/// The port that the datagrams go to (discard, RFC 863).
const PORT: u16 = 9;
/// The protocol's number in IPv4.
const UDP: u8 = 17;
/// User priority 6, voice (Linux's `cfg80211_classify8021d`): it wakes the queues of this category. Without QoS there is one for all.
const VOICE: i32 = 256 + 6;

/// A socket for each radio. The first one is the access point's, then those of the hosts in their order.
pub(crate) struct Wakers(Vec<(UdpSocket, Ipv4Addr)>);

impl Wakers {
    /// # Errors
    /// The kernel gives no such sockets.
    pub(crate) fn new(access_point: &Namespace, hosts: &[(&Namespace, Ipv4Addr)]) -> Result<Self> {
        let all = [(access_point, AddressPlan::ACCESS_POINT)].into_iter().chain(hosts.iter().copied());
        let open = |(namespace, address): (&Namespace, Ipv4Addr)| {
            namespace.run(|| {
                let socket = UdpSocket::bind((address, 0)).doing("cannot make a UDP socket")?;
                setsockopt(&socket, Priority, &VOICE).doing("cannot set SO_PRIORITY of a UDP socket")?;
                socket.set_nonblocking(true).doing("cannot set O_NONBLOCK of a UDP socket")?;
                Ok((socket, address))
            })
        };
        all.map(open).collect::<Result<_>>().map(Self)
    }

    /// The radio `from` has no frame left for `to`.
    pub(crate) fn wake(&self, from: usize, to: usize) {
        if let (Some((socket, _)), Some((_, address))) = (self.0.get(from), self.0.get(to)) {
            // It may fail where the socket is full: then frames wait, and the end of each wakes again.
            let _ = socket.send_to(&[], SocketAddrV4::new(*address, PORT));
        }
    }
}

/// Whether this is such a datagram, behind the header of an MPDU: LLC and SNAP, IPv4 without options, UDP.
pub(crate) fn is_waker(body: &[u8]) -> bool {
    const IPV4: [u8; 9] = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0, 0x45];
    body.len() == 8 + 20 + 8 && body.starts_with(&IPV4) && body[17] == UDP && body[30..32] == PORT.to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_empty_datagram_to_the_port_is_the_mediums() {
        let datagram = |port: u16, more: &[u8]| {
            let mut body = [&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0, 0x45][..], &[0; 27], more].concat();
            body[17] = UDP;
            body[30..32].copy_from_slice(&port.to_be_bytes());
            body
        };
        assert!(is_waker(&datagram(PORT, &[])));
        assert!(!is_waker(&datagram(PORT, &[0])) && !is_waker(&datagram(53, &[])) && !is_waker(&[]));
        let mut of_tcp = datagram(PORT, &[]);
        of_tcp[17] = 6;
        assert!(!is_waker(&of_tcp));
    }
}
