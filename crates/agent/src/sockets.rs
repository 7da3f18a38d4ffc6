//! The UDP sockets over which hosts hear each other: IPv4 broadcast and IPv6 link-local multicast on one interface.
//!
//! Both are bound to the interface and to the broadcast address or the group itself, so that nothing sent to the host's
//! own address is heard, and nothing from beyond the next router. An interface that is down, has no address yet or is
//! gone is no error: what is missing is opened by a later [`Sockets::refresh`].

use crate::calm::Calm;
use crate::config::BeaconConfig;
use crate::interface::Interface;
use anyhow::{Context, Result};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, SockaddrIn6, bind, setsockopt, socket, sockopt};
use std::ffi::OsString;
use std::io::ErrorKind;
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use tracing::warn;
use units::Time;

/// Link-local scope, not permanently assigned (RFC 4291 §2.7); the last four bytes spell "lhop".
pub const GROUP: Ipv6Addr = Ipv6Addr::new(0xff12, 0, 0, 0, 0, 0, 0x6c68, 0x6f70);

/// What the kernel may keep for us: some 250 beacons. More at once than that is a flood, and is better lost.
const RECEIVE_BUFFER_BYTES: usize = 128 * 1024;
/// Longer than any beacon, so that one that is too long is seen to be.
const DATAGRAM_BYTES: usize = 128;

/// The sockets of one interface.
#[derive(Debug)]
pub(crate) struct Sockets {
    port: u16,
    families: [Family; 2],
}

#[derive(Debug)]
struct Family {
    name: &'static str,
    wanted: bool,
    open: Option<Open>,
    calm: Calm,
}

#[derive(Debug)]
struct Open {
    socket: UdpSocket,
    interface_index: u32,
    destination: SocketAddr,
}

impl Sockets {
    /// None open yet.
    pub(crate) fn new(config: &BeaconConfig) -> Self {
        let family = |name, wanted| Family { name, wanted, open: None, calm: Calm::each_minute() };
        Self { port: config.port, families: [family("IPv4", config.ipv4), family("IPv6", config.ipv6)] }
    }

    /// Opens what is missing and closes what belongs to an interface or an address that is gone.
    pub(crate) fn refresh(&mut self, now: Time, interface: Option<&Interface>) {
        let port = self.port;
        for family in self.families.iter_mut().filter(|family| family.wanted) {
            let Some(interface) = interface else {
                family.open = None;
                continue;
            };
            let destination = match family.name {
                "IPv4" => interface.broadcast.map(|to| SocketAddrV4::new(to, port).into()),
                _ if !interface.has_ipv6_link_local => None,
                _ => Some(SocketAddrV6::new(GROUP, port, 0, interface.index).into()),
            };
            let Some(destination) = destination.filter(|_| interface.up) else {
                let what = if interface.up { format!("has no {} address", family.name) } else { "is down".to_owned() };
                family.complain(now, &format!("{} {what}", interface.name));
                family.open = None;
                continue;
            };
            if family.open.as_ref().is_some_and(|open| open.is_for(interface, destination)) {
                continue;
            }
            family.open = None;
            match Open::new(interface, destination) {
                Ok(open) => family.open = Some(open),
                Err(error) => family.complain(now, &format!("{error:#}")),
            }
        }
    }

    /// Sends over each address family what `datagram` makes; how many were sent, and how many could not be.
    pub(crate) fn send(&mut self, now: Time, mut datagram: impl FnMut() -> Vec<u8>) -> (u64, u64) {
        let (mut sent, mut unsent) = (0, 0);
        for family in &mut self.families {
            let Some(open) = &family.open else { continue };
            match open.socket.send_to(&datagram(), open.destination) {
                Ok(_) => sent += 1,
                Err(error) => {
                    unsent += 1;
                    family.complain(now, &format!("cannot send to {}: {error}", open.destination));
                }
            }
        }
        (sent, unsent)
    }

    /// Hands every datagram that waits to `each`, until it returns false or `most` have been taken.
    pub(crate) fn receive(&self, most: usize, mut each: impl FnMut(&[u8]) -> bool) {
        let mut buffer = [0; DATAGRAM_BYTES];
        let mut taken = 0;
        for open in self.families.iter().filter_map(|family| family.open.as_ref()) {
            while taken < most {
                match open.socket.recv_from(&mut buffer) {
                    Ok((length, _)) => {
                        taken += 1;
                        if !each(&buffer[..length]) {
                            return;
                        }
                    }
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    // Nothing more; or an error of the interface (ENETDOWN), which the next refresh sees.
                    Err(_) => break,
                }
            }
        }
    }

    /// What to wait for.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.families.iter().filter_map(|family| family.open.as_ref()).map(|open| open.socket.as_fd())
    }
}

impl Family {
    fn complain(&mut self, now: Time, what: &str) {
        if let Some(more) = self.calm.may_say(now) {
            warn!("peers are not heard over {}, trying again: {what}{more}", self.name);
        }
    }
}

impl Open {
    fn new(interface: &Interface, destination: SocketAddr) -> Result<Self> {
        let family = if destination.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket: OwnedFd = socket(family, SockType::Datagram, flags, None).context("cannot make a UDP socket")?;
        let device = || format!("cannot bind a UDP socket to {}", interface.name);
        setsockopt(&socket, sockopt::BindToDevice, &OsString::from(&interface.name)).with_context(device)?;
        setsockopt(&socket, sockopt::ReuseAddr, &true).context("cannot set SO_REUSEADDR")?;
        setsockopt(&socket, sockopt::RcvBuf, &RECEIVE_BUFFER_BYTES).context("cannot set SO_RCVBUF")?;
        let address = || format!("cannot bind a UDP socket to {destination}");
        match destination {
            SocketAddr::V4(to) => {
                setsockopt(&socket, sockopt::Broadcast, &true).context("cannot set SO_BROADCAST")?;
                bind(socket.as_raw_fd(), &SockaddrIn::from(to)).with_context(address)?;
            }
            SocketAddr::V6(to) => {
                setsockopt(&socket, sockopt::Ipv6V6Only, &true).context("cannot set IPV6_V6ONLY")?;
                bind(socket.as_raw_fd(), &SockaddrIn6::from(to)).with_context(address)?;
            }
        }
        let socket = UdpSocket::from(socket);
        if destination.is_ipv6() {
            let join = || format!("cannot join {GROUP} on {}", interface.name);
            socket.join_multicast_v6(&GROUP, interface.index).with_context(join)?;
            socket.set_multicast_loop_v6(false).context("cannot switch IPV6_MULTICAST_LOOP off")?;
        }
        Ok(Self { socket, interface_index: interface.index, destination })
    }

    fn is_for(&self, interface: &Interface, destination: SocketAddr) -> bool {
        self.interface_index == interface.index && self.destination == destination
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_is_transient_and_of_link_local_scope() {
        // RFC 4291 §2.7: ff, then flags 000T with T = 1, then scope 2.
        assert_eq!(GROUP.octets()[..2], [0xff, 0x12]);
        assert_eq!(&GROUP.octets()[12..], b"lhop");
        assert!(GROUP.is_multicast());
    }
}
