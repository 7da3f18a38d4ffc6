//! The UDP sockets for beacons: IPv4 broadcast and IPv6 link-local multicast on one interface.
//!
//! Both are bound to the interface and to the broadcast or group address. So they receive no unicast, and nothing from
//! beyond the next router. A third one, if a relay is configured, is connected to it, and hears nobody else. An interface
//! that is down, without an address or gone is no error: a later [`Sockets::refresh`] opens the missing socket.
//!
//! Any user may bind a UDP port. If another process has ours and does not share it, a raw socket receives a copy of
//! each datagram, and beacons leave from another port. (The UDP sockets share their port, SO_REUSEADDR. Beacons cannot
//! be stolen by that: the kernel delivers broadcasts and multicasts to every bound socket.)

use crate::config::BeaconConfig;
use crate::error::{Doing, Error, Result};
use crate::hear::port::Taken;
use crate::link::interface::Interface;
use crate::tell::log_limit::LogLimit;
use lasthop_peers::{beacon, relay};
use lasthop_status::RelayStatus;
use lasthop_units::{Span, Time};
use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockProtocol, SockType, SockaddrIn, SockaddrIn6, bind, setsockopt, socket, sockopt,
};
use std::ffi::OsString;
use std::io::ErrorKind;
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use tracing::{info, warn};

/// Link-local scope, not permanently assigned (RFC 4291 §2.7); the last four bytes spell "lhop".
pub const GROUP: Ipv6Addr = Ipv6Addr::new(0xff12, 0, 0, 0, 0, 0, 0x6c68, 0x6f70);

const IPV4: &str = "IPv4";
const IPV6: &str = "IPv6";
/// Receive buffer: some 250 beacons. A larger burst is a flood, better lost.
const RECEIVE_BUFFER_BYTES: usize = 128 * 1024;
/// Longer than any beacon, so that an overlong datagram is recognised.
const DATAGRAM_BYTES: usize = 128;
/// A relay says something at least this often, and some of that is lost.
const RELAY_SILENT: Span = Span::from_secs(30);
/// An IPv4 header with every option, and a UDP header.
const HEADERS_BYTES: usize = 60 + UDP_HEADER_BYTES;
const UDP_HEADER_BYTES: usize = 8;

/// The sockets of one interface.
#[derive(Debug)]
pub(crate) struct Sockets {
    port: u16,
    families: [Family; 2],
    relay: Option<ToRelay>,
    deaf_log: LogLimit,
    half_deaf_log: LogLimit,
}

/// The relay, if one is configured.
#[derive(Debug)]
struct ToRelay {
    address: SocketAddr,
    /// The index of the interface by which it is to be reached; `None`: that is down, or gone.
    interface_index: Option<u32>,
    /// Since when.
    since: Time,
    /// `None`: it is not reached.
    socket: Option<UdpSocket>,
    /// When the relay was last heard by that interface.
    heard_at: Option<Time>,
    log_limit: LogLimit,
}

#[derive(Debug)]
struct Family {
    name: &'static str,
    wanted: bool,
    open: Option<Open>,
    log_limit: LogLimit,
    taken_log: LogLimit,
}

#[derive(Debug)]
struct Open {
    /// Sends, and receives unless a raw socket does.
    socket: UdpSocket,
    /// Used if another process has the port. A raw socket's datagrams begin with their headers.
    raw: Option<UdpSocket>,
    interface_index: u32,
    destination: SocketAddr,
}

impl Sockets {
    /// No socket open yet.
    pub(crate) fn new(config: &BeaconConfig) -> Self {
        let family = |name, wanted| Family {
            name,
            wanted,
            open: None,
            log_limit: LogLimit::each_minute(),
            taken_log: LogLimit::each_minute(),
        };
        Self {
            port: config.port,
            families: [family(IPV4, config.ipv4), family(IPV6, config.ipv6)],
            relay: config.relay.map(ToRelay::new),
            deaf_log: LogLimit::each_minute(),
            half_deaf_log: LogLimit::new(1, Span::MAX),
        }
    }

    /// Joins the IPv6 group only if `joins` is set, because the kernel announces members to the network (MLD).
    pub(crate) fn want_ipv6(&mut self, joins: bool) {
        let [_, ipv6] = &mut self.families;
        ipv6.wanted = joins;
        if !joins {
            ipv6.open = None;
        }
    }

    /// Opens missing sockets, and closes those of a lost interface or address.
    pub(crate) fn refresh(&mut self, now: Time, interface: Option<&Interface>) {
        if let Some(relay) = &mut self.relay {
            relay.refresh(now, interface);
        }
        let port = self.port;
        let mut missing = Vec::new();
        for family in self.families.iter_mut().filter(|family| family.wanted) {
            let Some(interface) = interface else {
                family.open = None;
                continue;
            };
            if let Err(error) = family.refresh(now, interface, port) {
                family.open = None;
                missing.push((family.name, error));
            }
        }
        // Networks may lack IPv6 or IPv4: that is logged once, and not as a warning.
        let hears = self.families.iter().any(|family| family.open.is_some());
        let as_it_should_be = hears && !missing.iter().any(|(_, error)| is_taken(error));
        let log_limit = if as_it_should_be { &mut self.half_deaf_log } else { &mut self.deaf_log };
        if missing.is_empty() {
            return;
        }
        if let Some(more) = log_limit.may_say(now) {
            for (name, error) in missing {
                if as_it_should_be {
                    info!("peers are not heard over {name}: {}", error.in_a_line());
                } else {
                    warn!("peers are not heard over {name}, trying again: {}{more}", error.in_a_line());
                }
            }
        }
    }

    /// Sends the datagram from `datagram`, which is told whether it goes over IPv6, over each address family. Returns how
    /// many were sent and how many failed.
    pub(crate) fn send(&mut self, now: Time, mut datagram: impl FnMut(bool) -> Vec<u8>) -> (u64, u64) {
        let (mut sent, mut unsent) = (0, 0);
        for family in &mut self.families {
            let Some(open) = &family.open else { continue };
            match open.socket.send_to(&datagram(open.destination.is_ipv6()), open.destination) {
                Ok(_) => sent += 1,
                Err(error) => {
                    unsent += 1;
                    if let Some(more) = family.log_limit.may_say(now) {
                        warn!(
                            "peers do not hear us over {}: cannot send to {}: {error}{more}",
                            family.name, open.destination
                        );
                    }
                }
            }
        }
        // Its errors are told as silence. One that another host sent back (ECONNREFUSED) is read here.
        if let Some(ToRelay { address, socket: Some(socket), .. }) = &self.relay {
            match socket.send(&datagram(address.is_ipv6())) {
                Ok(_) => sent += 1,
                Err(_) => unsent += 1,
            }
        }
        (sent, unsent)
    }

    /// Hands every waiting datagram to `each`, with whether a relay has passed it on, until it returns false or `most` have been taken.
    pub(crate) fn receive(&mut self, now: Time, most: usize, mut each: impl FnMut(SocketAddr, &[u8], bool) -> bool) {
        let mut taken = 0;
        if let Some(ToRelay { address, socket: Some(socket), heard_at, .. }) = &mut self.relay {
            let mut buffer = [0; relay::MOST_BYTES + 1];
            while taken < most {
                let Ok(length) = socket.recv(&mut buffer) else { break };
                let Some(news) = relay::unpack(&buffer[..length]) else { continue };
                *heard_at = Some(now);
                for datagram in news {
                    taken += 1;
                    if !each(*address, datagram, true) {
                        return;
                    }
                }
            }
        }
        let mut buffer = [0; HEADERS_BYTES + DATAGRAM_BYTES];
        for open in self.families.iter().filter_map(|family| family.open.as_ref()) {
            while taken < most {
                match open.hears().recv_from(&mut buffer) {
                    Ok((length, from)) => {
                        taken += 1;
                        if let Some(datagram) = open.datagram(&buffer[..length])
                            && !each(from, datagram, false)
                        {
                            return;
                        }
                    }
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    // No more datagrams; or an error of the interface (ENETDOWN), which the next refresh handles.
                    Err(_) => break,
                }
            }
        }
    }

    /// The relay, if one is configured.
    pub(crate) fn relay(&self, now: Time) -> Option<RelayStatus> {
        self.relay.as_ref().map(|relay| relay.status(now))
    }

    /// How many datagrams a beacon is: one over each address family, and one to the relay.
    pub(crate) fn open(&self) -> usize {
        let to_relay = self.relay.as_ref().is_some_and(|relay| relay.socket.is_some());
        self.families.iter().filter(|family| family.open.is_some()).count() + usize::from(to_relay)
    }

    /// The descriptors to wait for.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.families
            .iter()
            .filter_map(|family| family.open.as_ref())
            .map(|open| open.hears().as_fd())
            .chain(self.relay.as_ref().and_then(|relay| relay.socket.as_ref()).map(AsFd::as_fd))
    }
}

impl ToRelay {
    fn new(address: SocketAddr) -> Self {
        let log_limit = LogLimit::each_minute();
        Self { address, interface_index: None, since: Time::ZERO, socket: None, heard_at: None, log_limit }
    }

    fn status(&self, now: Time) -> RelayStatus {
        let heard = self.heard_at.map(|at| now.saturating_since(at));
        let silent = self.interface_index.is_some() && heard.unwrap_or(now.saturating_since(self.since)) > RELAY_SILENT;
        RelayStatus { address: self.address, heard_s: heard.map(Span::as_secs_f64), silent }
    }

    /// Opens the socket, or closes that of a lost interface; warns while the relay is silent.
    fn refresh(&mut self, now: Time, interface: Option<&Interface>) {
        let Some(interface) = interface.filter(|interface| interface.up) else {
            (self.interface_index, self.socket) = (None, None);
            return;
        };
        if self.interface_index != Some(interface.index) {
            (self.interface_index, self.since, self.socket, self.heard_at) = (Some(interface.index), now, None, None);
        }
        if self.socket.is_none() {
            match self.connect(interface) {
                Ok(socket) => self.socket = Some(socket),
                Err(error) => {
                    if let Some(more) = self.log_limit.may_say(now) {
                        warn!("the relay {} is not reached: {}{more}", self.address, error.in_a_line());
                    }
                    // Its silence is the same news.
                    return;
                }
            }
        }
        let status = self.status(now);
        if status.silent
            && let Some(more) = self.log_limit.may_say(now)
        {
            warn!("the relay {status}{more}");
        }
    }

    fn connect(&self, interface: &Interface) -> Result<UdpSocket> {
        let socket = UdpSocket::from(make(interface, self.address, SockType::Datagram, None)?);
        socket.connect(self.address).doing(format_args!("cannot send to {}", self.address))?;
        Ok(socket)
    }
}

impl Family {
    fn refresh(&mut self, now: Time, interface: &Interface, port: u16) -> Result<()> {
        if !interface.up {
            return Err(Error::Refused(format!("{} is down", interface.name)));
        }
        let destination = match self.name {
            IPV4 => interface.broadcast.map(|to| SocketAddr::from(SocketAddrV4::new(to, port))),
            _ if !interface.has_ipv6_link_local => None,
            _ => Some(SocketAddrV6::new(GROUP, port, 0, interface.index).into()),
        };
        let destination =
            destination.ok_or_else(|| Error::Refused(format!("{} has no {} address", interface.name, self.name)))?;
        if !self.open.as_ref().is_some_and(|open| open.is_for(interface, destination)) {
            self.open = None; // close first: the new one may need the same port
            self.open = Some(match Open::new(interface, destination)? {
                Some(open) => open,
                None => {
                    let taken = Taken::new(port);
                    let beside = Open::beside(interface, destination);
                    if let (Ok(_), Some(more)) = (&beside, self.taken_log.may_say(now)) {
                        warn!("{taken}, so peers are heard over {} by a raw socket: end that process{more}", self.name);
                    }
                    beside.or_else(|error| Err(taken).doing(format_args!("{}", error.in_a_line())))?
                }
            });
        }
        Ok(())
    }
}

/// Whether another process has the port.
fn is_taken(error: &Error) -> bool {
    matches!(error, Error::Failed { source, .. } if source.is::<Taken>())
}

impl Open {
    /// Bound to the port; `None`: another process has it.
    fn new(interface: &Interface, destination: SocketAddr) -> Result<Option<Self>> {
        let socket = make(interface, destination, SockType::Datagram, None)?;
        if bind_to(&socket, destination)?.is_none() {
            return Ok(None);
        }
        let socket = UdpSocket::from(socket);
        join(&socket, interface, destination)?;
        Ok(Some(Self { socket, raw: None, interface_index: interface.index, destination }))
    }

    /// Receives on the port beside its owner, and sends from another port.
    fn beside(interface: &Interface, destination: SocketAddr) -> Result<Self> {
        let socket = UdpSocket::from(make(interface, destination, SockType::Datagram, None)?);
        if destination.is_ipv6() {
            socket.set_multicast_loop_v6(false).doing("cannot switch IPV6_MULTICAST_LOOP off")?;
        }
        let raw = make(interface, destination, SockType::Raw, Some(SockProtocol::Udp))?;
        only_port(&raw, destination)?;
        bind_to(&raw, destination)?;
        // std has no type for raw sockets. This one receives, which is the same for both.
        let raw = UdpSocket::from(raw);
        join(&raw, interface, destination)?;
        Ok(Self { socket, raw: Some(raw), interface_index: interface.index, destination })
    }

    fn hears(&self) -> &UdpSocket {
        self.raw.as_ref().unwrap_or(&self.socket)
    }

    /// The payload, without the headers from a raw socket; `None`: for another port. (Raw sockets check no checksum. A
    /// datagram damaged on the link counts as a stranger's.)
    fn datagram<'a>(&self, received: &'a [u8]) -> Option<&'a [u8]> {
        if self.raw.is_none() {
            return Some(received);
        }
        // raw(7): IPv4 includes its header, with a length in words of four bytes. RFC 3542 §3: IPv6 does not.
        let skip = if self.destination.is_ipv4() { usize::from(*received.first()? & 0x0f) * 4 } else { 0 };
        let udp = received.get(skip..)?;
        let (header, payload) = udp.split_at_checked(UDP_HEADER_BYTES)?;
        (u16::from_be_bytes([header[2], header[3]]) == self.destination.port()).then_some(payload)
    }

    fn is_for(&self, interface: &Interface, destination: SocketAddr) -> bool {
        self.interface_index == interface.index && self.destination == destination
    }
}

fn make(interface: &Interface, to: SocketAddr, kind: SockType, protocol: Option<SockProtocol>) -> Result<OwnedFd> {
    let family = if to.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket: OwnedFd = socket(family, kind, flags, protocol).doing("cannot make a UDP socket")?;
    let device = || format!("cannot bind a UDP socket to {}", interface.name);
    setsockopt(&socket, sockopt::BindToDevice, &OsString::from(&interface.name)).doing(device())?;
    setsockopt(&socket, sockopt::ReuseAddr, &true).doing("cannot set SO_REUSEADDR")?;
    setsockopt(&socket, sockopt::RcvBuf, &RECEIVE_BUFFER_BYTES).doing("cannot set SO_RCVBUF")?;
    match to {
        SocketAddr::V4(_) => setsockopt(&socket, sockopt::Broadcast, &true).doing("cannot set SO_BROADCAST")?,
        SocketAddr::V6(_) if kind == SockType::Datagram => {
            setsockopt(&socket, sockopt::Ipv6V6Only, &true).doing("cannot set IPV6_V6ONLY")?
        }
        // A raw socket has one family anyway, and refuses the option.
        SocketAddr::V6(_) => {}
    }
    if kind == SockType::Datagram
        && let Err(error) = mark(&socket, to)
    {
        warn!("beacons wait behind bulk data: {}", error.in_a_line());
    }
    Ok(socket)
}

/// Gives all that a UDP socket sends the DSCP of beacons. `of` is an address of its family; one for IPv6 may send over IPv4, too.
pub(super) fn mark(socket: &impl AsFd, of: SocketAddr) -> Result<()> {
    let field = i32::from(beacon::DSCP) << 2;
    if of.is_ipv6() {
        setsockopt(socket, sockopt::Ipv6TClass, &field).doing("cannot set IPV6_TCLASS")?;
    }
    setsockopt(socket, sockopt::Ipv4Tos, &field).doing("cannot set IP_TOS")
}

/// A classic BPF program that filters packets before they are queued: socket(7).
#[derive(Clone, Copy, Debug)]
struct AttachFilter;

nix::setsockopt_impl!(
    AttachFilter,
    libc::SOL_SOCKET,
    libc::SO_ATTACH_FILTER,
    libc::sock_fprog,
    sockopt::SetStruct<'_, libc::sock_fprog>
);

/// Has the kernel drop packets to other ports, which would wake the agent needlessly.
fn only_port(raw: &OwnedFd, to: SocketAddr) -> Result<()> {
    let step = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    // The packet begins as in `Open::datagram`: IPv4 with its header, whose length goes into X; IPv6 without.
    let header = match to {
        SocketAddr::V4(_) => step(libc::BPF_LDX | libc::BPF_B | libc::BPF_MSH, 0, 0, 0),
        SocketAddr::V6(_) => step(libc::BPF_LDX | libc::BPF_W | libc::BPF_IMM, 0, 0, 0),
    };
    let mut program = [
        header,
        step(libc::BPF_LD | libc::BPF_H | libc::BPF_IND, 0, 0, 2), // the UDP header's destination port
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, to.port().into()),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, u32::MAX), // all of it
        step(libc::BPF_RET | libc::BPF_K, 0, 0, 0),        // nothing
    ];
    // The kernel copies it.
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    setsockopt(raw, AttachFilter, &filter).doing("cannot set SO_ATTACH_FILTER")
}

/// `None`: the address is taken.
fn bind_to(socket: &OwnedFd, to: SocketAddr) -> Result<Option<()>> {
    let bound = match to {
        SocketAddr::V4(to) => bind(socket.as_raw_fd(), &SockaddrIn::from(to)),
        SocketAddr::V6(to) => bind(socket.as_raw_fd(), &SockaddrIn6::from(to)),
    };
    match bound {
        Err(Errno::EADDRINUSE) => Ok(None),
        bound => bound.map(Some).doing(format_args!("cannot bind a UDP socket to {to}")),
    }
}

/// Joins the group, if beacons go there.
fn join(socket: &UdpSocket, interface: &Interface, destination: SocketAddr) -> Result<()> {
    if destination.is_ipv6() {
        let join = || format!("cannot join {GROUP} on {}", interface.name);
        socket.join_multicast_v6(&GROUP, interface.index).doing(join())?;
        socket.set_multicast_loop_v6(false).doing("cannot switch IPV6_MULTICAST_LOOP off")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::socket::getsockopt;

    #[test]
    fn the_group_is_transient_and_of_link_local_scope() {
        // RFC 4291 §2.7: ff, then flags 000T with T = 1, then scope 2.
        assert_eq!(GROUP.octets()[..2], [0xff, 0x12]);
        assert_eq!(&GROUP.octets()[12..], b"lhop");
        assert!(GROUP.is_multicast());
    }

    #[test]
    fn a_relay_that_is_not_reached_is_silent_as_soon_as_one_that_does_not_answer() {
        // No socket can be bound to an interface that is not there.
        let up = Interface {
            name: "not-there".to_owned(),
            index: 7,
            tunnels: Vec::new(),
            up: true,
            broadcast: None,
            has_ipv6_link_local: false,
            own_addresses: Vec::new(),
            gateways: [None; 2],
        };
        let down = Interface { up: false, ..up.clone() };
        let mut relay = ToRelay::new(([192, 0, 2, 7], relay::PORT).into());
        let mut is_silent = |second, interface: &Interface| {
            let now = Time::ZERO + Span::from_secs(second);
            relay.refresh(now, Some(interface));
            assert!(relay.socket.is_none());
            relay.status(now).silent
        };
        assert!((0..=30).all(|second| !is_silent(second, &up)));
        assert!(is_silent(31, &up) && is_silent(60, &up));
        // By an interface that is down nothing is to be reached, and time begins anew when it is up.
        assert!(!is_silent(61, &down) && !is_silent(62, &up) && !is_silent(92, &up) && is_silent(93, &up));
    }

    /// CS6 is 48; the two lowest bits are those of ECN.
    #[test]
    fn what_is_sent_is_marked_over_both_families() {
        let open = |family| socket(family, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None).expect("a socket");
        let [v4, v6] = [open(AddressFamily::Inet), open(AddressFamily::Inet6)];
        mark(&v4, SocketAddr::from(([0; 4], 0))).expect("marked");
        mark(&v6, SocketAddr::from((GROUP, 0))).expect("marked");
        assert_eq!([&v4, &v6].map(|socket| getsockopt(socket, sockopt::Ipv4Tos).expect("its value")), [0xc0, 0xc0]);
        assert_eq!(getsockopt(&v6, sockopt::Ipv6TClass).expect("its value"), 0xc0);
    }
}
