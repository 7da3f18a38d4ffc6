//! Whoever says what is not so.

use super::Host;
use control::beacon::{Beacon, INTERVAL};
use control::group::Label;
use control::peers::{PeerId, Report};
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use units::{Rate, Span};

/// "65,535 busy connections, whose RTT is a thousand times the lowest: I am controlling them, and each may send a byte a second."
pub fn worst(sender: u64) -> Beacon {
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
            common_rate: Rate::from_bps(8),
            delivered: Rate::ZERO,
            excess: Some(Span::from_secs(4000)),
            free: Rate::ZERO,
            released: false,
            harmed: false,
            careful: false,
        },
    }
}

/// Sends each of these datagrams to all, some 1,500 a second: fewer than are looked at.
pub fn shout(stranger: &Host, datagrams: Vec<Vec<u8>>) {
    stranger.run(move || {
        let socket = voice();
        for some in datagrams.chunks(30) {
            for datagram in some {
                say(&socket, datagram);
            }
            thread::sleep(Duration::from_millis(20));
        }
    });
}

/// Under so many names says the worst again and again, so that a host stays under control by it, until this is dropped.
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
        let group = group.id();
        let over = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&over);
        let thread = stranger.run(move || {
            let socket = voice();
            let says = |sender| Beacon { group, interval: INTERVAL, ..worst(sender) }.encode(None);
            let datagrams: Vec<_> = (0..names).map(says).collect();
            thread::spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    datagrams.iter().for_each(|datagram| say(&socket, datagram));
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

fn voice() -> UdpSocket {
    let socket = UdpSocket::bind("10.77.0.2:0").expect("an address");
    socket.set_broadcast(true).expect("allowed");
    socket
}

fn say(socket: &UdpSocket, datagram: &[u8]) {
    let _ = socket.send_to(datagram, "10.77.0.255:29470"); // a full queue loses it
}
