//! Whoever says what is not so.

use super::Host;
use lasthop_peers::beacon::{Beacon, INTERVAL};
use lasthop_peers::group::Label;
use lasthop_peers::{PeerId, Report, Word};
use lasthop_units::Span;
use std::net::UdpSocket;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// "65,535 busy connections, whose RTT is a thousand times the lowest: I am controlling them, and each may send next to nothing", in the
/// words of the policy `lasthop`.
pub fn worst(sender: u64) -> Beacon {
    // Of `lasthop`: a rate of 128 B/s, nothing delivered, nothing while free, 20 ms of path, an excess of 6.5 s, a queue of 0.1 ms
    // proposed, something to send.
    let word = Word::new(2, [0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 200, 0xff, 0xff, 0, 1, 1]);
    Beacon {
        sender: PeerId(sender),
        timestamp_ns: u64::MAX,
        group: Label::Link.id(),
        interval: Span::MAX,
        report: Report {
            busy_flows: u16::MAX,
            waiting: false,
            srtt: Some(Span::from_secs(1000)),
            min_rtt: Some(Span::from_secs(1)),
            controlling: true,
            congested: true,
            word: Some(word),
        },
    }
}

/// How many addresses a stranger may speak from: 10.77.0.4 and on.
pub const ADDRESSES: u64 = 250;

/// Sends each of these datagrams to all, some 1,500 a second: fewer than are looked at. The stranger speaks from so many addresses in turn;
/// from one that is 10.77.0.2.
pub fn shout(stranger: &Host, addresses: u64, datagrams: Vec<Vec<u8>>) {
    take_addresses(stranger, addresses);
    stranger.run(move || {
        let sockets: Vec<_> = (0..addresses).map(|number| voice(addresses, number)).collect();
        let mut sockets = sockets.iter().cycle();
        for some in datagrams.chunks(30) {
            for (datagram, socket) in some.iter().zip(&mut sockets) {
                say(socket, datagram);
            }
            thread::sleep(Duration::from_millis(20));
        }
    });
}

/// Under so many names, each with an address of its own, says the worst again and again, so that a host stays under control by it, until this is dropped.
pub struct Nag {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Nag {
    pub fn start(stranger: &Host, names: u64) -> Self {
        Self::start_in(stranger, names, &Label::Link)
    }

    /// The same to those behind this access point.
    pub fn start_in(stranger: &Host, names: u64, group: &Label) -> Self {
        take_addresses(stranger, names);
        let group = group.id();
        let over = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&over);
        let thread = stranger.run(move || {
            let says = |sender| Beacon { group, interval: INTERVAL, ..worst(sender) }.encode(None);
            let voices: Vec<_> = (0..names).map(|name| (voice(names, name), says(name))).collect();
            thread::spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    voices.iter().for_each(|(socket, datagram)| say(socket, datagram));
                    thread::sleep(Duration::from_millis(100));
                }
            })
        });
        Self { over, thread: Some(thread) }
    }
}

impl Drop for Nag {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The addresses are the stranger's own, for all that its kernel knows.
fn take_addresses(stranger: &Host, most: u64) {
    stranger.run(move || {
        if most == 1 {
            return;
        }
        for prefix in ["4/30", "8/29", "16/28", "32/27", "64/26", "128/25"] {
            let route = format!("route replace local 10.77.0.{prefix} dev lo");
            let status = Command::new("ip").args(route.split_whitespace()).status().expect("iproute2 is there");
            assert!(status.success(), "ip {route}");
        }
    });
}

fn voice(of: u64, number: u64) -> UdpSocket {
    assert!(of <= ADDRESSES && number < of);
    let last = if of == 1 { 2 } else { 4 + number };
    let socket = UdpSocket::bind(format!("10.77.0.{last}:0")).expect("an address");
    socket.set_broadcast(true).expect("allowed");
    socket
}

fn say(socket: &UdpSocket, datagram: &[u8]) {
    let _ = socket.send_to(datagram, "10.77.0.255:29470"); // a full queue loses it
}
