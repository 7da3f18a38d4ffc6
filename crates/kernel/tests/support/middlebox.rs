//! Two hosts whose only path is this process: every packet between them can be seen, changed, delayed and lost.
#![allow(dead_code, unreachable_pub, unsafe_code, missing_docs)] // each test uses its part of it

use super::{A4, A6, B4, B6, Host, run};
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{ErrorKind, Read as _, Write as _};
use std::ops::Range;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Which way a packet goes; `a` is the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    ToServer,
    ToClient,
}

/// An IP packet with a TCP segment.
#[derive(Clone, Debug)]
pub struct Segment {
    bytes: Vec<u8>,
    tcp: usize,
}

pub const FIN: u8 = 1;
pub const SYN: u8 = 2;
pub const RST: u8 = 4;

/// Kind and ExID of the link report.
const REPORT: [u8; 2] = [0x6c, 0x68];

impl Segment {
    fn of(bytes: Vec<u8>) -> Result<Self, Vec<u8>> {
        let tcp = match bytes.first().map(|first| first >> 4) {
            Some(4) if bytes[9] == 6 => usize::from(bytes[0] & 15) * 4,
            Some(6) if bytes[6] == 6 => 40,
            _ => return Err(bytes),
        };
        Ok(Self { bytes, tcp })
    }

    pub fn flags(&self) -> u8 {
        self.bytes[self.tcp + 13]
    }

    pub fn is_syn(&self) -> bool {
        self.flags() & SYN != 0
    }

    fn options_at(&self) -> Range<usize> {
        self.tcp + 20..self.tcp + usize::from(self.bytes[self.tcp + 12] >> 4) * 4
    }

    pub fn payload(&self) -> usize {
        self.bytes.len() - self.options_at().end
    }

    pub fn packet_bytes(&self) -> usize {
        self.bytes.len()
    }

    pub fn acknowledges(&self) -> u32 {
        u32::from_be_bytes(self.bytes[self.tcp + 8..][..4].try_into().expect("four bytes"))
    }

    pub fn sequence(&self) -> u32 {
        u32::from_be_bytes(self.bytes[self.tcp + 4..][..4].try_into().expect("four bytes"))
    }

    /// The window field.
    pub fn window(&self) -> u16 {
        u16::from_be_bytes([self.bytes[self.tcp + 14], self.bytes[self.tcp + 15]])
    }

    /// The shift that a SYN asks for, if it has the option.
    pub fn window_scale(&self) -> Option<u8> {
        let options = &self.bytes[self.options_at()];
        options.windows(3).find(|option| option[..2] == [3, 3]).map(|option| option[2])
    }

    /// Whether its checksum is right.
    pub fn is_whole(&self) -> bool {
        self.checksum() == 0
    }

    /// Where in the packet the link report is, if there is one.
    pub fn report_at(&self) -> Option<Range<usize>> {
        let Range { start: mut at, end } = self.options_at();
        while at + 1 < end {
            match (self.bytes[at], usize::from(self.bytes[at + 1])) {
                (0, _) => return None,
                (1, _) => at += 1,
                (253, length) if length >= 4 && at + length <= end && self.bytes[at + 2..at + 4] == REPORT => {
                    return Some(at..at + length);
                }
                (_, length) if length >= 2 => at += length,
                _ => return None,
            }
        }
        None
    }

    /// The link report.
    pub fn report(&self) -> Option<&[u8]> {
        Some(&self.bytes[self.report_at()?])
    }

    /// Changes the packet, keeping its length, and puts its checksum right.
    pub fn change(&mut self, change: impl FnOnce(&mut [u8])) {
        change(&mut self.bytes);
        let tcp = self.tcp;
        self.bytes[tcp + 16..tcp + 18].fill(0);
        let sum = self.checksum();
        self.bytes[tcp + 16..tcp + 18].copy_from_slice(&sum.to_be_bytes());
    }

    /// The checksum of the segment as it is: that of a whole one is zero.
    fn checksum(&self) -> u16 {
        let (tcp, length) = (self.tcp, self.bytes.len() - self.tcp);
        let addresses = if tcp == 40 { &self.bytes[8..40] } else { &self.bytes[12..20] };
        let pseudo = addresses.iter().copied().chain([0, 6]).chain((length as u16).to_be_bytes());
        let all: Vec<u8> = pseudo.chain(self.bytes[tcp..].iter().copied()).collect();
        let words = all.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0)));
        let mut sum: u32 = words.sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    /// Overwrites the link report with no-operations, as middleboxes do with options that they do not know.
    pub fn strip_report(&mut self) {
        if let Some(at) = self.report_at() {
            self.change(|bytes| bytes[at].fill(1));
        }
    }
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Forward,
    Lose,
}

/// What has been seen, in order, before it was changed or lost.
pub type Seen = Arc<Mutex<Vec<(Way, Segment)>>>;

/// The two hosts: `a` with 10.77.0.1 and fd77::1 on a0, `b` with 10.78.0.1 and fd78::1 on b0.
pub struct Path {
    pub a: Host,
    pub b: Host,
    pub seen: Seen,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Path {
    /// A path that changes nothing and takes no time.
    pub fn clear() -> Self {
        Self::new(Duration::ZERO, |_, _| Fate::Forward)
    }

    /// A path that takes `delay` each way and does `rule` to each TCP segment.
    pub fn new(delay: Duration, rule: impl FnMut(Way, &mut Segment) -> Fate + Send + 'static) -> Self {
        let (a, b) = (Host::new(), Host::new());
        let ends = [tunnel(&a, "a0", [A4, A6], ["10.78.0.0/24", "fd78::/64"]), {
            tunnel(&b, "b0", [B4, B6], ["10.77.0.0/24", "fd77::/64"])
        }];
        let (seen, stop) = (Seen::default(), Arc::new(AtomicBool::new(false)));
        let (all_seen, stopped) = (Arc::clone(&seen), Arc::clone(&stop));
        let thread = std::thread::spawn(move || carry(ends, delay, rule, &all_seen, &stopped));
        Self { a, b, seen, stop, thread: Some(thread) }
    }

    /// How many segments so far were as wanted.
    pub fn count(&self, wanted: impl Fn(Way, &Segment) -> bool) -> usize {
        self.seen.lock().expect("no panic").iter().filter(|(way, segment)| wanted(*way, segment)).count()
    }

    /// The link reports so far on the segments that go this way.
    pub fn reports(&self, way: Way) -> Vec<Vec<u8>> {
        let seen = self.seen.lock().expect("no panic");
        let this_way = seen.iter().filter(|(went, _)| *went == way);
        this_way.filter_map(|(_, segment)| segment.report().map(<[u8]>::to_vec)).collect()
    }

    /// Forgets what has been seen.
    pub fn forget(&self) {
        self.seen.lock().expect("no panic").clear();
    }
}

impl Drop for Path {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn carry(
    mut ends: [File; 2],
    delay: Duration,
    mut rule: impl FnMut(Way, &mut Segment) -> Fate,
    seen: &Seen,
    stop: &AtomicBool,
) {
    let mut under_way: [VecDeque<(Instant, Vec<u8>)>; 2] = Default::default();
    let mut buffer = vec![0; 65_536];
    while !stop.load(Ordering::Relaxed) {
        let now = Instant::now();
        for (to, queue) in under_way.iter_mut().enumerate() {
            while queue.front().is_some_and(|(due, _)| *due <= now) {
                let (_, packet) = queue.pop_front().expect("just looked at");
                // a host that is going down takes no more packets
                let _ = ends[to].write(&packet);
            }
        }
        let due = under_way.iter().filter_map(|queue| Some(queue.front()?.0)).min();
        let wait = due.map_or(Duration::from_millis(20), |due| due.saturating_duration_since(now));
        let wait = wait.min(Duration::from_millis(20)).as_micros().div_ceil(1000);
        let mut fds = [0, 1].map(|end| PollFd::new(ends[end].as_fd(), PollFlags::POLLIN));
        let _ = poll(&mut fds, PollTimeout::try_from(wait as i32).expect("a short time"));
        for (from, way) in [Way::ToServer, Way::ToClient].into_iter().enumerate() {
            loop {
                let length = match ends[from].read(&mut buffer) {
                    Ok(length) => length,
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    Err(_) => break,
                };
                let packet = match Segment::of(buffer[..length].to_vec()) {
                    Ok(mut segment) => {
                        seen.lock().expect("no panic").push((way, segment.clone()));
                        if rule(way, &mut segment) == Fate::Lose {
                            continue;
                        }
                        segment.bytes
                    }
                    Err(other) => other,
                };
                under_way[1 - from].push_back((Instant::now() + delay, packet));
            }
        }
    }
}

/// A TUN device in a host, up, with these addresses and routes; whoever has the file is the other side.
fn tunnel(host: &Host, name: &str, addresses: [&str; 2], routes: [&str; 2]) -> File {
    host.run(|| {
        let mut open = std::fs::OpenOptions::new();
        let open = open.read(true).write(true).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC);
        let file = open.open("/dev/net/tun").expect("TUN devices");
        // SAFETY: all zeroes is a value of this struct of integers, addresses and pointers.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
        // SAFETY: TUNSETIFF reads and writes one struct ifreq, which `request` is.
        let result = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
        assert_eq!(result, 0, "{name}: {}", std::io::Error::last_os_error());
        run(&format!("ip addr add {}/24 dev {name}", addresses[0]));
        run(&format!("ip addr add {}/64 dev {name} nodad", addresses[1]));
        run(&format!("ip link set {name} txqueuelen 5000 up"));
        routes.iter().for_each(|route| run(&format!("ip route add {route} dev {name}")));
        file
    })
}
