//! The loop of a relay: its socket, and the time; and the addresses that one can have.

use crate::clock;
use crate::error::{Doing, Result};
use crate::hear::sockets::mark;
use lasthop_peers::beacon::{GroupKey, Receiver};
use lasthop_peers::group::GroupId;
use lasthop_peers::relay::{MOST_BYTES, PORT, Relay};
use lasthop_units::{Span, Time};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How soon `stop` is seen.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How often the number of hosts is told, if it has changed.
const TELL_EVERY: Span = Span::from_secs(10);

/// What a relay has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Relayed {
    /// Datagrams sent to hosts.
    pub sent: u64,
    /// Datagrams that were not passed on, by cause.
    pub refused: BTreeMap<String, u64>,
}

/// The address of a relay as it is written: an IP address, or one with a port. `None`: no host on the network has it.
pub(crate) fn relay_address(text: &str) -> Option<SocketAddr> {
    let alone = || text.parse::<IpAddr>().map(|ip| (ip, PORT).into());
    let address = text.parse::<SocketAddr>().or_else(|_| alone()).ok()?;
    (address.port() > 0 && is_on_a_network(address.ip())).then_some(address)
}

/// Whether a socket that is bound to an interface can exchange datagrams with one host of this address, be it this one. An IPv4
/// address in IPv6's form takes a socket of both families, which the agent has not.
fn is_on_a_network(ip: IpAddr) -> bool {
    let is_ipv4_in_ipv6 = ip.to_canonical() != ip;
    let is_for_many = ip.is_multicast() || ip == IpAddr::from(Ipv4Addr::BROADCAST);
    !(is_ipv4_in_ipv6 || is_for_many || ip.is_loopback() || ip.is_unspecified())
}

/// Passes beacons on between the hosts with this key, until `stop` is set. `tell` gets a line when their number has changed.
///
/// # Errors
/// If the socket does not receive.
pub fn serve_relay(socket: &UdpSocket, key: GroupKey, stop: &AtomicBool, tell: impl Fn(&str)) -> Result<Relayed> {
    let address = socket.local_addr().doing("cannot tell a socket's address")?;
    if let Err(error) = mark(socket, address) {
        tell(&format!("beacons wait behind bulk data: {error}"));
    }
    let mut relay = Relay::new(Receiver::new(GroupId(0), Some(key)), clock::monotonic());
    let (mut done, mut told, mut tell_at) = (Relayed::default(), (0, 0), Time::ZERO);
    let mut buffer = [0; MOST_BYTES];
    while !stop.load(Ordering::Relaxed) {
        let until_round = relay.next_round_at().map(|at| at.saturating_since(clock::monotonic()));
        let wait = until_round.map_or(LOOK_EVERY, |span| Duration::from_nanos(span.as_nanos()));
        // None would mean to wait for ever.
        let wait = wait.clamp(Duration::from_millis(1), LOOK_EVERY);
        socket.set_read_timeout(Some(wait)).doing("cannot set a time limit for a socket")?;
        match socket.recv_from(&mut buffer) {
            Ok((length, from)) => {
                let heard = relay.on_datagram(clock::monotonic(), clock::wall_ns(), from, &buffer[..length]);
                if let Err(cause) = heard {
                    *done.refused.entry(cause.to_string()).or_default() += 1;
                }
            }
            // Nothing has come; or a host is gone, and is forgotten soon.
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionRefused) => {}
            error => error.map(drop).doing("cannot receive")?,
        }
        let now = clock::monotonic();
        for (to, news) in relay.round(now) {
            done.sent += u64::from(socket.send_to(&news, to).is_ok());
        }
        if now >= tell_at {
            tell_at = now + TELL_EVERY;
            if relay.size() != told {
                told = relay.size();
                tell(&format!("{} hosts behind {} access points", told.0, told.1));
            }
        }
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relay_has_the_address_of_one_host_on_the_network() {
        let can_be = "192.0.2.7 192.0.2.7:1 2001:db8::7 [2001:db8::7]:29471 fe80::7 [fe80::7%2]:29471";
        assert!(can_be.split(' ').all(|text| relay_address(text).is_some_and(|address| address.port() > 0)));
        let cannot = "127.0.0.1 127.1.2.3:29471 ::1 0.0.0.0 :: 255.255.255.255 224.0.0.1 ff12::6c68:6f70 \
                      ::ffff:192.0.2.7 ::ffff:127.0.0.1 192.0.2.7:0 relay.example";
        assert_eq!(cannot.split(' ').filter_map(relay_address).next(), None);
        assert_eq!(relay_address("192.0.2.7"), relay_address("192.0.2.7:29471"));
    }
}
