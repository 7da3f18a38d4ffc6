//! The network model in real time. It reads packets from the hosts' TUN devices, carries them through the model, and
//! writes them to the destination's device.
//!
//! The model runs on logical time. A packet's next event follows from the scheduled time of its last one, not from the
//! loop's waking time. Lateness therefore does not accumulate inside the model. It enters at the two ends: the loop may
//! write a packet to its host late, or read a host's packet late. Both are recorded: the lateness of every delivery,
//! and the latest waking.
//!
//! A host's answer takes time to reach the model: the loop wakes, writes the packet, the kernel processes it, and the
//! loop reads the answer. This is the machine's own part of the host's turnaround. It is measured, reported, and
//! subtracted from the delay that the model adds for the rest (`hosts.turnaround_us`).
//!
//! Behind an access point, the transmit queue of a host of 2012 is in the kernel. The model has only a small queue for
//! that host, a driver's ring ([`ring_packets`]). The loop reads the host's device only while that queue has room. A
//! station's packets therefore wait for the air in the device, which drops at its tail, as in the phones of 2012. On
//! 802.11n and later the ring has a queue for each access category: a packet whose category has no room holds back all
//! behind it, as in a device with one queue. A modern host's queue is in the model, kept short by the
//! [valves](crate::valve). On links, a host's queue is its first link's, in the model, and the loop reads every device
//! at every turn.

use crate::clock::{Clock, Schedule};
use crate::error::{Doing, Result};
use crate::hosts::Hosts;
use crate::linux_queue::{LinuxQueue, LinuxQueueReport};
use crate::samples::Kept;
use crate::small_queues::Station;
use crate::tun::MTU;
use crate::valve::{Bell, is_waker};
use lasthop_capture::{Capture, Side};
use lasthop_network::{
    AccessConfig, Delivery, Departure, Destination, Network, NodeId, Packet, QueueId, Seen, Standard, Statistics,
};
use lasthop_units::{Bytes, Ecn, Span, Time};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::prctl::set_timerslack;
use nix::sys::time::TimeSpec;
use std::borrow::Cow;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tracing::warn;

/// The driver's ring of a station of 2012 of this standard behind this access, in packets. Where a transmission is one
/// frame, two would
/// suffice for the next frame to be ready at the end of the last; four also cover a slightly late loop. Where it is an
/// aggregate, one is on the air and one is ready, as in ath9k (ATH_AGGR_MIN_QDEPTH).
pub(crate) fn ring_packets(access: &AccessConfig, standard: Option<Standard>) -> usize {
    match access {
        AccessConfig::Wifi(wifi) if standard.unwrap_or(wifi.standard).aggregates() => {
            2 * usize::from(wifi.aggregate_frames)
        }
        _ => 4,
    }
}

/// The loop's maximum sleep, so that it notices a request to stop.
const LONGEST_SLEEP: Span = Span::from_millis(20);

/// The loop's maximum work without a sleep before it gives up its priority. The kernel limits real-time threads to 0.95
/// s in each second, and would stop the loop for 50 ms.
pub(crate) const LONGEST_WORK: Span = Span::from_millis(500);

/// Packets read from one device before the loop looks at the time again.
const READS_IN_A_ROW: usize = 16;

/// The identifier of packets that are in no lane.
const UNCOUNTED: u64 = u64::MAX;

/// The number of answers needed to estimate the machine's own turnaround.
const ENOUGH_ANSWERS: u64 = 100;
/// The interval of that estimate, which takes some tens of microseconds.
const LOOK_EVERY: Span = Span::from_secs(1);

/// The measurements of the loop.
#[derive(Debug)]
pub(crate) struct Report {
    /// The model's own figures, without the warm-up.
    pub(crate) statistics: Statistics,
    /// Queue lengths over time, the warm-up included.
    pub(crate) queues: Vec<QueueSample>,
    pub(crate) lateness: Histogram,
    /// From a packet's due time at a host to the arrival of the host's answer in the model.
    pub(crate) turnaround: Histogram,
    /// Packets to an unknown address (the kernel's own traffic), not carried.
    pub(crate) unroutable: u64,
    /// Packets that a host's kernel rejected.
    pub(crate) refused: u64,
    /// Events that the model processed.
    pub(crate) events: u64,
    /// Whether the schedule's end was reached.
    pub(crate) complete: bool,
    /// What Linux's own downlink queue has counted, if there was one.
    pub(crate) linux_queue: Option<LinuxQueueReport>,
}

/// The length of one queue at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueSample {
    pub(crate) at: Time,
    pub(crate) place: QueueId,
    pub(crate) packets: usize,
}

/// Times in microseconds.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    /// The count of each value. The last entry counts all longer times.
    counts: Vec<u64>,
    recorded: u64,
    max_us: u64,
}

impl Histogram {
    /// Longer times are not distinguished: 65 ms exceeds every percentile of interest.
    const COUNTED_US: usize = 1 << 16;

    pub(crate) fn new() -> Self {
        Self { counts: vec![0; Self::COUNTED_US + 1], recorded: 0, max_us: 0 }
    }

    pub(crate) fn record(&mut self, time: Span) {
        self.counts[usize::try_from(time.as_micros()).unwrap_or(usize::MAX).min(Self::COUNTED_US)] += 1;
        self.recorded += 1;
        self.raise_max(time);
    }

    /// Raises the maximum without counting the time.
    fn raise_max(&mut self, time: Span) {
        self.max_us = self.max_us.max(time.as_micros());
    }

    /// The number of recorded times.
    pub(crate) fn count(&self) -> u64 {
        self.recorded
    }

    /// This permille quantile in microseconds; 0 without recorded times.
    pub(crate) fn permille_us(&self, permille: u64) -> u64 {
        let wanted = (self.count() * permille).div_ceil(1000);
        let mut reached = 0;
        let enough = |count: &u64| {
            reached += count;
            reached >= wanted
        };
        let us = self.counts.iter().position(enough).unwrap_or(0);
        if us == Self::COUNTED_US { self.max_us } else { us as u64 }
    }

    pub(crate) fn max_us(&self) -> u64 {
        self.max_us
    }
}

/// A packet delivered to a host with nothing to send. The host's next packet may be the answer.
#[derive(Clone, Copy, Debug)]
struct Asked {
    /// The due time of the packet.
    at: Time,
    /// The loop's turn.
    turn: u64,
}

/// The loop's own state.
pub(crate) struct RealTime<'a> {
    network: Network<Arc<[u8]>>,
    hosts: &'a Hosts,
    /// One for each end, as input to the valves.
    stations: &'a [Station],
    bell: &'a Bell,
    /// The queues whose lengths are sampled.
    places: Vec<QueueId>,
    clock: Clock,
    shortest_sleep: Span,
    epoll: Epoll,
    /// Devices that may have a packet. Set by epoll (edge-triggered), cleared when a read finds none.
    readable: Vec<bool>,
    /// By host: the oldest packet from its device, if its ring has no room for it.
    held: Vec<Option<Packet<Arc<[u8]>>>>,
    /// By end with its queue in the model, and by lane: the bytes in that queue.
    queued: Vec<[u64; 2]>,
    /// The same of those taken from its device since the start, those that the model had no room for included.
    passed: Vec<[u64; 2]>,
    departures: Vec<Departure>,
    deliveries: Vec<Delivery<Arc<[u8]>>>,
    lateness: Histogram,
    /// By host: the oldest unanswered packet.
    asked: Vec<Option<Asked>>,
    turnaround: Histogram,
    turn: u64,
    unroutable: u64,
    refused: u64,
    capture: Option<&'a Mutex<Capture>>,
    seen: Vec<Seen<Arc<[u8]>>>,
    /// The downlink queue, if it is Linux's; its device is behind those of the ends.
    linux_queue: Option<LinuxQueue>,
}

impl<'a> RealTime<'a> {
    /// Puts the model between the devices of the hosts and servers. Each of these has a station. `shortest_sleep`: the
    /// loop waits this long at least for the model's next event.
    pub(crate) fn new(
        mut network: Network<Arc<[u8]>>,
        hosts: &'a Hosts,
        (stations, bell): (&'a [Station], &'a Bell),
        clock: Clock,
        shortest_sleep: Span,
    ) -> Result<Self> {
        // Agents send beacons as soon as they run. Those from before the run would all be heard at its beginning.
        for device in &hosts.devices {
            while device.read(&mut [0; MTU]).doing("cannot read from a TUN device")?.is_some() {}
        }
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).doing("cannot make an epoll instance")?;
        for (end, device) in hosts.devices.iter().enumerate() {
            let event = EpollEvent::new(EpollFlags::EPOLLIN | EpollFlags::EPOLLET, end as u64);
            epoll.add(device, event).doing("cannot watch a TUN device")?;
        }
        let in_model = || (0..stations.len()).filter(|&end| stations[end].queues_in_model());
        for end in in_model() {
            network.report_departures(hosts.plan.node(end));
        }
        let places = if hosts.queues_in_devices == 0 {
            let has_radios = hosts.access_point.is_some();
            let of_path = |place: &QueueId| !has_radios || matches!(place, QueueId::PathUp | QueueId::PathDown);
            network.queues().into_iter().filter(of_path).collect()
        } else {
            let of_hosts = in_model().map(|host| QueueId::Host(NodeId(host as u16)));
            let shared = network.queues().into_iter().filter(|place| !matches!(place, QueueId::Host(_)));
            shared.chain(of_hosts).collect()
        };
        Ok(Self {
            network,
            hosts,
            stations,
            bell,
            places,
            held: vec![None; hosts.queues_in_devices],
            queued: vec![[0; 2]; stations.len()],
            passed: vec![[0; 2]; stations.len()],
            departures: Vec::new(),
            clock,
            shortest_sleep,
            epoll,
            readable: vec![true; hosts.devices.len()],
            deliveries: Vec::new(),
            lateness: Histogram::new(),
            asked: vec![None; hosts.queues_in_devices],
            turnaround: Histogram::new(),
            turn: 0,
            unroutable: 0,
            refused: 0,
            capture: None,
            seen: Vec::new(),
            linux_queue: None,
        })
    }

    /// Shows all packets, if there is a capture.
    pub(crate) fn showing(mut self, capture: Option<&'a Mutex<Capture>>) -> Self {
        if capture.is_some() {
            self.network.watch();
        }
        Self { capture, ..self }
    }

    /// Puts this queue behind the model's downlink.
    pub(crate) fn with_queue(mut self, queue: Option<LinuxQueue>) -> Result<Self> {
        if let Some(queue) = &queue {
            let event = EpollEvent::new(EpollFlags::EPOLLIN | EpollFlags::EPOLLET, self.readable.len() as u64);
            self.epoll.add(queue.device(), event).doing("cannot watch the TUN device of a queue")?;
            self.readable.push(true);
        }
        Ok(Self { linux_queue: queue, ..self })
    }

    /// Shows what has happened inside the network, and then this packet at a host.
    fn show(&mut self, packet: Option<(Time, NodeId, Side, &[u8])>) {
        let Some(capture) = self.capture else { return };
        let mut capture = capture.lock().unwrap_or_else(PoisonError::into_inner);
        self.network.take_seen(&mut self.seen);
        self.seen.drain(..).for_each(|seen| capture.seen(&seen, &mut |packet| marked(packet).to_vec()));
        if let Some((at, host, side, ip)) = packet {
            capture.packet(at, host, side, ip, ip.len() as u64);
        }
    }

    /// Carries packets until the schedule's end, or until `stop` is set.
    ///
    /// # Errors
    /// If a device fails.
    pub(crate) fn run(mut self, schedule: Schedule, stop: &AtomicBool) -> Result<Report> {
        let end = Time::ZERO + schedule.end;
        let mut warm = Some(Time::ZERO + schedule.warmup);
        let mut next_sample = Time::ZERO;
        let mut queues = Kept::new(|sample: &QueueSample| sample.at, schedule.sample_every, schedule.has_end());
        let mut next_look = Time::ZERO + LOOK_EVERY;
        let mut events = [EpollEvent::empty(); 64];
        let mut slept = Time::ZERO;
        let mut preferred = be_woken_exactly();
        while !stop.load(Ordering::Relaxed) {
            let now = self.clock.now();
            if now >= end {
                break;
            }
            if warm.is_some_and(|warm| now >= warm) {
                warm = None;
                self.network.reset_statistics(now);
                self.lateness = Histogram::new();
                self.turnaround = Histogram::new();
                self.stations.iter().for_each(Station::reset);
                self.linux_queue.iter_mut().for_each(|queue| queue.reset(now));
            }
            if now >= next_sample {
                self.sample_queues(now, &mut queues);
                if now >= next_look && self.turnaround.count() >= ENOUGH_ANSWERS {
                    next_look = now + LOOK_EVERY;
                    self.network.hosts_take(Span::from_micros(self.turnaround.permille_us(500)));
                }
                while next_sample <= now {
                    next_sample += schedule.sample_every;
                }
            }
            self.turn += 1;
            self.deliver(now)?;
            self.deliver_queued()?;
            let more = self.collect()?;
            let wakeup = [self.network.next_wakeup(), Some(next_sample), Some(end), warm].into_iter().flatten().min();
            let free = match wakeup {
                _ if more => Span::ZERO,
                Some(at) => self.clock.until(at),
                None => LONGEST_SLEEP,
            };
            let sleep = if more { free } else { free.max(self.shortest_sleep).min(LONGEST_SLEEP) };
            let planned = self.clock.now() + sleep;
            let woken = wait(&self.epoll, &mut events, sleep).doing("cannot wait for packets")?;
            let now = self.clock.now();
            // A loop that is late is not free, though it sleeps a little.
            if free.is_zero() {
                if preferred && now.saturating_since(slept) > LONGEST_WORK {
                    // The result's lateness will show that this machine cannot run the scenario. The machine must stay
                    // usable.
                    preferred = false;
                    be_ordinary("the medium");
                }
            } else {
                slept = now;
                self.lateness.raise_max(now.saturating_since(planned));
            }
            for event in &events[..woken] {
                self.readable[event.data() as usize] = true;
            }
        }
        // By the clock, as another thread may have ended the loop: the traffic may reach the end first and stop all
        // threads.
        let complete = self.clock.now() >= end;
        let now = self.clock.now().min(end);
        self.deliver(now)?;
        if self.capture.is_some() {
            self.network.take_last_seen(now, &mut self.seen);
            self.show(None);
        }
        let statistics = self.network.statistics(now);
        Ok(Report {
            complete,
            linux_queue: self.linux_queue.map(|queue| queue.report(now)),
            events: statistics.events,
            statistics,
            queues: queues.into_parts().0,
            lateness: self.lateness,
            turnaround: self.turnaround,
            unroutable: self.unroutable,
            refused: self.refused,
        })
    }

    /// Runs the model up to `now` and writes the deliveries to their devices.
    fn deliver(&mut self, now: Time) -> Result<()> {
        self.network.advance(now, &mut self.deliveries);
        let mut deliveries = std::mem::take(&mut self.deliveries);
        for delivery in deliveries.drain(..) {
            let packet = &marked(&delivery.packet);
            self.show(Some((delivery.at, delivery.to, Side::In, packet)));
            let end = self.hosts.plan.end(delivery.to, packet);
            match &mut self.linux_queue {
                Some(queue) if end < self.held.len() && LinuxQueue::takes(&self.hosts.plan, packet) => {
                    self.refused += u64::from(!queue.join(packet)?);
                }
                _ => self.hand_over(delivery.at, end, packet)?,
            }
            self.lateness.record(self.clock.now().saturating_since(delivery.at));
        }
        self.deliveries = deliveries;
        self.count_departures();
        Ok(())
    }

    /// Hands a packet that is due at `at` to an end.
    fn hand_over(&mut self, at: Time, end: usize, packet: &[u8]) -> Result<()> {
        let taken = self.hosts.device(end).write(packet).doing("cannot write to a TUN device")?;
        self.refused += u64::from(!taken);
        if let Some(asked) = self.asked.get_mut(end).filter(|_| !self.readable[end]) {
            let older = asked.filter(|asked| asked.turn == self.turn);
            *asked = older.or(Some(Asked { at, turn: self.turn }));
        }
        Ok(())
    }

    /// Hands over what has left Linux's queue.
    fn deliver_queued(&mut self) -> Result<()> {
        let Some(mut queue) = self.linux_queue.take() else { return Ok(()) };
        let mut buffer = [0; MTU];
        let device = self.hosts.devices.len();
        while self.readable[device] {
            match queue.leave(&mut buffer)? {
                None => self.readable[device] = false,
                Some(length) => {
                    let packet = &buffer[..length];
                    match self.hosts.plan.destination(packet) {
                        Some(Destination::Node(to)) => {
                            let end = self.hosts.plan.end(to, packet);
                            self.hand_over(self.clock.now(), end, packet)?;
                        }
                        _ => self.unroutable += 1,
                    }
                }
            }
        }
        queue.look(self.clock.now())?;
        self.linux_queue = Some(queue);
        Ok(())
    }

    fn count_departures(&mut self) {
        self.network.take_departed(&mut self.departures);
        for departure in self.departures.drain(..) {
            if departure.id == UNCOUNTED {
                continue;
            }
            let queued = &mut self.queued[departure.id as usize / 2][departure.id as usize % 2];
            *queued = queued.saturating_sub(departure.size.get());
        }
    }

    /// Reads from every device with a packet and room in the model. Returns whether one of them has more.
    fn collect(&mut self) -> Result<bool> {
        let mut more = false;
        for device in 0..self.hosts.devices.len() {
            let mut reads = 0;
            while let Some(packet) = self.next_packet(device)? {
                let now = self.clock.now();
                let (size, id) = (packet.size.get(), packet.id);
                // A rejected packet is a drop at the tail of the node's queue, counted by the model.
                let shown = self.capture.is_some().then(|| (packet.from, Arc::clone(&packet.payload)));
                let taken = self.network.offer(now, packet).is_ok();
                if let Some((from, ip)) = shown {
                    self.show(taken.then_some((now, from, Side::Out, &ip[..])));
                }
                if taken && id != UNCOUNTED {
                    self.queued[id as usize / 2][id as usize % 2] += size;
                }
                reads += 1;
                if reads == READS_IN_A_ROW {
                    more = true;
                    break;
                }
            }
        }
        // Offers may cause departures.
        self.count_departures();
        let now = self.clock.now();
        let mut is_missing = false;
        for (end, station) in self.stations.iter().enumerate().filter(|(_, station)| station.queues_in_model()) {
            for &lane in station.lanes() {
                let (queued, passed) = (self.queued[end][lane as usize], self.passed[end][lane as usize]);
                is_missing |= station.report(lane, queued, passed, now);
            }
        }
        if is_missing {
            self.bell.ring();
        }
        Ok(more)
    }

    /// The oldest packet of the device of this number, if the model has room for it. Without radios each end has one device. The model has
    /// the queues of servers, and on links those of hosts, and drops at their tails. A station's queue is its device.
    fn next_packet(&mut self, end: usize) -> Result<Option<Packet<Arc<[u8]>>>> {
        let Some(held) = self.held.get_mut(end) else { return self.read(end) };
        let Some(packet) = held.take().map_or_else(|| self.read(end), |packet| Ok(Some(packet)))? else {
            return Ok(None);
        };
        // A modern station's queue is in the model. What no small queue holds back is dropped at its tail.
        let is_dropped = packet.id == UNCOUNTED && self.stations[end].queues_in_model();
        if is_dropped || self.network.room_for(packet.from, packet.dscp) > 0 {
            return Ok(Some(packet));
        }
        self.held[end] = Some(packet);
        Ok(None)
    }

    fn read(&mut self, device: usize) -> Result<Option<Packet<Arc<[u8]>>>> {
        let mut buffer = [0; MTU];
        while self.readable[device] {
            let read = self.hosts.devices[device].read(&mut buffer);
            let Some(length) = read.doing("cannot read from a TUN device")? else {
                self.readable[device] = false;
                break;
            };
            let packet = &buffer[..length];
            if is_waker(packet) {
                continue;
            }
            // The kernel answers during the write of the packet, so the answer is ready at the next turn.
            let asked = self.asked.get_mut(device).and_then(Option::take);
            if let Some(asked) = asked.filter(|asked| asked.turn + 1 >= self.turn) {
                self.turnaround.record(self.clock.now().saturating_since(asked.at));
            }
            let Some(end) = self.hosts.sender(device, packet) else {
                self.unroutable += 1;
                continue;
            };
            let lane = self.stations[end].lane(packet);
            if let Some(lane) = lane {
                self.passed[end][lane as usize] += length as u64;
            }
            let Some(to) = self.hosts.plan.destination(packet) else {
                self.unroutable += 1;
                continue;
            };
            return Ok(Some(Packet {
                from: self.hosts.plan.node(end),
                to,
                size: Bytes::new(length as u64),
                flow: flow_of(packet),
                dscp: dscp_of(packet),
                ecn: ecn_of(packet),
                id: lane.map_or(UNCOUNTED, |lane| 2 * end as u64 + lane as u64),
                payload: Arc::from(packet),
            }));
        }
        Ok(None)
    }

    fn sample_queues(&self, at: Time, queues: &mut Kept<QueueSample>) {
        for &place in &self.places {
            let of_linux = self.linux_queue.as_ref().filter(|_| place == QueueId::AccessPoint);
            let packets = of_linux.map_or_else(|| self.network.queue_packets(place), LinuxQueue::packets);
            queues.push(QueueSample { at, place, packets });
        }
    }
}

/// The upper six bits of what was the type of service (IPv4), or of the traffic class (IPv6).
fn dscp_of(packet: &[u8]) -> u8 {
    if packet[0] >> 4 == 6 { (packet[0] & 0xf) << 2 | packet[1] >> 6 } else { packet[1] >> 2 }
}

/// The two bits below.
fn ecn_of(packet: &[u8]) -> Ecn {
    Ecn::of_bits(if packet[0] >> 4 == 6 { packet[1] >> 4 } else { packet[1] })
}

/// The bytes of a packet with the ECN field that the model has given it. IPv4's checksum changes with it (RFC 1624, eq. 3); IPv6
/// has none, and no transport's covers the field.
fn marked(packet: &Packet<Arc<[u8]>>) -> Cow<'_, [u8]> {
    let ip = &packet.payload[..];
    if ecn_of(ip) == packet.ecn {
        return Cow::Borrowed(ip);
    }
    let mut ip = ip.to_vec();
    if ip[0] >> 4 == 6 {
        ip[1] = ip[1] & !0x30 | packet.ecn.bits() << 4;
        return Cow::Owned(ip);
    }
    let word = |ip: &[u8]| u32::from(u16::from_be_bytes([ip[0], ip[1]]));
    let before = word(&ip);
    ip[1] = ip[1] & !3 | packet.ecn.bits();
    let mut sum = (!word(&ip[10..]) & 0xffff) + (!before & 0xffff) + word(&ip);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    ip[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    Cow::Owned(ip)
}

/// The packet's flow: FNV-1a over protocol and addresses, and for TCP and UDP over the ports. `packet` has at least a
/// whole header of IPv4 or IPv6; behind extension headers of IPv6 no ports are looked for.
fn flow_of(packet: &[u8]) -> u32 {
    const OFFSET_BASIS: u32 = 0x811c_9dc5;
    const PRIME: u32 = 0x0100_0193;
    const UDP: u8 = 17;
    const TCP: u8 = 6;
    let (protocol_at, addresses, header_bytes) =
        if packet[0] >> 4 == 6 { (6, 8..40, 40) } else { (9, 12..20, usize::from(packet[0] & 0xf) * 4) };
    let ports = match packet[protocol_at] {
        TCP | UDP => packet.get(header_bytes..header_bytes + 4).unwrap_or_default(),
        _ => &[],
    };
    let bytes = packet[protocol_at..=protocol_at].iter().chain(&packet[addresses]).chain(ports);
    bytes.fold(OFFSET_BASIS, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(PRIME))
}

/// Asks the kernel to run this thread as soon as its sleep ends; returns whether it has priority now. It has no timer
/// slack (prctl(2), PR_SET_TIMERSLACK) and precedes every ordinary thread (sched(7), SCHED_FIFO). Measured with three
/// busy processes on two cores, 99 % of the deliveries were at most 0.1 ms late. With a nice value of -15 they were up
/// to 11 ms late.
pub(crate) fn be_woken_exactly() -> bool {
    // Some containers refuse both. Lateness is measured anyway.
    let _ = set_timerslack(1);
    Scheduling { policy: libc::SCHED_FIFO, priority: 1 }.take()
}

/// Gives up the priority: a thread that never sleeps would starve the rest of the machine. `what`: what it does.
pub(crate) fn be_ordinary(what: &str) {
    warn!("{what} cannot keep up with this scenario in real time; it goes on as an ordinary thread");
    Scheduling { policy: libc::SCHED_OTHER, priority: 0 }.take();
}

/// A scheduling policy and its priority (sched(7)).
#[derive(Clone, Copy)]
pub(crate) struct Scheduling {
    policy: libc::c_int,
    priority: libc::c_int,
}

impl Scheduling {
    /// Precedes what [`be_woken_exactly`].
    pub(crate) const BEFORE_NETWORKS: Self = Self { policy: libc::SCHED_FIFO, priority: 2 };

    /// The calling thread's.
    pub(crate) fn here() -> Self {
        let mut priority = libc::sched_param { sched_priority: 0 };
        // SAFETY: 0 is the calling thread, and the parameter outlives the calls, which cannot fail for it.
        #[allow(unsafe_code)]
        let policy = unsafe {
            libc::sched_getparam(0, &raw mut priority);
            libc::sched_getscheduler(0)
        };
        Self { policy, priority: priority.sched_priority }
    }

    /// The calling thread takes it. Returns whether the kernel allows that. One system call, without memory.
    pub(crate) fn take(self) -> bool {
        let priority = libc::sched_param { sched_priority: self.priority };
        // SAFETY: 0 is the calling thread, and the parameter outlives the call.
        #[allow(unsafe_code)]
        unsafe {
            libc::sched_setscheduler(0, self.policy, &raw const priority) == 0
        }
    }
}

/// Waits at most `timeout` for readable devices or sockets, with nanosecond resolution, which epoll itself lacks.
pub(crate) fn wait(epoll: &Epoll, events: &mut [EpollEvent], timeout: Span) -> nix::Result<usize> {
    let mut waiting = [PollFd::new(epoll.0.as_fd(), PollFlags::POLLIN)];
    match ppoll(&mut waiting, Some(TimeSpec::from_duration(Duration::from_nanos(timeout.as_nanos()))), None) {
        Ok(0) | Err(Errno::EINTR) => Ok(0),
        Ok(_) => epoll.wait(events, EpollTimeout::ZERO),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first 20 bytes of an IPv4 packet from 0.0.0.0 to 10.77.0.2.
    fn header() -> Vec<u8> {
        let mut header = vec![0; 20];
        header[0] = 0x45;
        header[16..20].copy_from_slice(&[10, 77, 0, 2]);
        header
    }

    #[test]
    fn a_flow_is_told_by_protocol_addresses_and_ports() {
        let packet = |protocol: u8, ports: [u8; 4], payload: u8| {
            let mut packet = header();
            packet[9] = protocol;
            packet.extend(ports);
            packet.push(payload);
            flow_of(&packet)
        };
        let tcp = packet(6, [1, 2, 3, 4], 0);
        assert_eq!(tcp, packet(6, [1, 2, 3, 4], 9));
        assert_ne!(tcp, packet(17, [1, 2, 3, 4], 0));
        assert_ne!(tcp, packet(6, [1, 2, 3, 5], 0));
        // ICMP has no ports: all ICMP between two addresses is one flow. A header without its payload has no ports,
        // either.
        assert_eq!(packet(1, [1, 2, 3, 4], 0), packet(1, [1, 2, 3, 5], 0));
        let mut cut = header();
        cut[9] = 6;
        assert_ne!(flow_of(&cut), tcp);
        // Protocol 6, 10 bytes 0.0.0.0 -> 10.77.0.2, by hand from the definition of FNV-1a.
        assert_eq!(flow_of(&cut), 0x2675_db22);
    }

    #[test]
    fn ipv6_has_its_class_and_its_flows_where_rfc_8200_puts_them() {
        // Version 6, traffic class 0xb8 (EF: 46), next header UDP.
        let packet = |port: u8| {
            let mut packet = vec![0; 44];
            (packet[0], packet[1], packet[6], packet[41]) = (0x6b, 0x80, 17, port);
            packet
        };
        assert_eq!(dscp_of(&packet(1)), 46);
        assert_ne!(flow_of(&packet(1)), flow_of(&packet(2)));
        assert_eq!(dscp_of(&[0x45, 0xb8]), 46);
    }

    #[test]
    fn a_mark_changes_the_field_and_the_checksum_of_the_header() {
        let packet = |bytes: Vec<u8>, ecn| {
            let to = lasthop_network::Destination::Node(NodeId(1));
            let size = Bytes::new(bytes.len() as u64);
            Packet { from: NodeId(0), to, size, flow: 0, dscp: 0, ecn, id: 0, payload: Arc::from(bytes) }
        };
        // The header of RFC 1071's usual example, 45 00 00 73 .. b8 61, with EF and ECT(0): 0xb861 - 0xba = 0xb7a7; with CE one less.
        let mut ip: Vec<u8> = vec![0x45, 0xba, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0xb7, 0xa7, 0xc0, 0xa8, 0, 1];
        ip.extend([0xc0, 0xa8, 0, 0xc7]);
        assert_eq!((dscp_of(&ip), ecn_of(&ip)), (46, Ecn::Ect0));
        assert_eq!(&*marked(&packet(ip.clone(), Ecn::Ect0)), &ip[..]);
        let with_mark = marked(&packet(ip.clone(), Ecn::Ce)).to_vec();
        assert_eq!((with_mark[1], &with_mark[10..12]), (0xbb, &[0xb7, 0xa6][..]));
        assert_eq!(marked(&packet(with_mark, Ecn::NotEct))[10..12], [0xb7, 0xa9]);
        // IPv6: traffic class 0xba, flow label 0x12345.
        let mut ip = vec![0x6b, 0xa1, 0x23, 0x45];
        ip.resize(44, 0);
        assert_eq!((dscp_of(&ip), ecn_of(&ip)), (46, Ecn::Ect0));
        assert_eq!(marked(&packet(ip, Ecn::Ce))[..4], [0x6b, 0xb1, 0x23, 0x45]);
    }

    #[test]
    fn lateness_is_told_by_rank() {
        let mut lateness = Histogram::new();
        assert_eq!((lateness.permille_us(990), lateness.max_us()), (0, 0));
        for us in 1..=100 {
            lateness.record(Span::from_micros(us));
        }
        assert_eq!((lateness.permille_us(500), lateness.permille_us(990)), (50, 99));
        lateness.record(Span::from_secs(1));
        lateness.raise_max(Span::from_secs(2));
        assert_eq!((lateness.permille_us(1000), lateness.max_us()), (2_000_000, 2_000_000));
    }
}
