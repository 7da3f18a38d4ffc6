//! What it costs to carry packets: whole runs of the network alone, with senders that do nothing but send.
//!
//! Times are CPU times of the thread, the best of several runs, so that another load on the machine moves them little. A
//! run takes as long as it needs to deliver some hundred thousand packets; the payload is as large as a TCP segment's header.
#![allow(missing_docs)]

use lasthop_network::{
    AccessConfig, Config, Delivery, Destination, DirectionConfig, HostConfig, HostPath, Impairments, LinkConfig,
    LinksConfig, LossAt, Network, NodeId, Packet, PathConfig, QueueConfig, Standard, Topology, WifiConfig,
};
use lasthop_units::{Bytes, Ecn, Probability, Rate, Span, Time};
use nix::time::{ClockId, clock_gettime};

const RUNS: usize = 7;

type Payload = [u64; 10];

fn main() {
    // `cargo test` runs benchmarks too, without this argument.
    let mut arguments = std::env::args().skip(1);
    if !arguments.any(|argument| argument == "--bench") {
        return;
    }
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    println!("{:42} {:>10} {:>10} {:>9} {:>9} {:>8}", "", "packets/s", "events/s", "ns/event", "ns/hop", "s per s");
    let cases: [Case; 14] = [
        ("802.11g, saturated, 10 stations", || saturated(10)),
        ("802.11n, saturated, 10 stations", || aggregating(Standard::N, 0.0)),
        ("802.11ac, saturated, 10 stations", || aggregating(Standard::Ac, 0.0)),
        ("802.11ac, the same, 5 % errors", || aggregating(Standard::Ac, 0.05)),
        ("802.11ax, saturated, 10 stations", || aggregating(Standard::Ax, 0.0)),
        ("802.11g, 10 stations, paths of their own", own_paths),
        ("802.11g, saturated, 50 stations", || saturated(50)),
        ("802.11g, saturated, 200 stations", || saturated(200)),
        ("802.11g, saturated, 10 of 200 stations", || saturated_among(10, 200)),
        ("802.11g, 200 mostly idle stations", || mostly_idle(200)),
        ("dumbbell of 3 links, 2 senders", || dumbbell(0.0)),
        ("dumbbell of 3 links, 2 senders, 2 % loss", || dumbbell(0.02)),
        ("chain of 2 links", || chain(2, 1)),
        ("chain of 16 links", || chain(16, 1)),
    ];
    for (name, case) in cases.into_iter().filter(|(name, _)| name.contains(&only)) {
        report(name, case);
    }
}

type Case = (&'static str, fn() -> Run);

/// What a run carried.
struct Run {
    simulated: Span,
    packets: u64,
    /// Transmissions over a link or the air that brought a delivered packet closer.
    hops: u64,
    events: u64,
}

fn report(name: &str, case: fn() -> Run) {
    let timed = || {
        let started = cpu_time_s();
        let run = case();
        (cpu_time_s() - started, run)
    };
    let runs = (0..RUNS).map(|_| timed());
    let (seconds, run) = runs.min_by(|one, other| one.0.total_cmp(&other.0)).expect("there are several runs");
    println!(
        "{name:42} {:>10.2e} {:>10.2e} {:>9.1} {:>9.1} {:>8.0}",
        run.packets as f64 / seconds,
        run.events as f64 / seconds,
        seconds * 1e9 / run.events as f64,
        seconds * 1e9 / run.hops as f64,
        run.simulated.as_secs_f64() / seconds
    );
}

fn cpu_time_s() -> f64 {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("Linux has this clock");
    time.tv_sec() as f64 + time.tv_nsec() as f64 * 1e-9
}

fn packet(from: u16, to: u16, bytes: u64) -> Packet<Payload> {
    Packet {
        from: NodeId(from),
        to: Destination::Node(NodeId(to)),
        size: Bytes::new(bytes),
        flow: from.into(),
        dscp: 0,
        ecn: Ecn::NotEct,
        id: 0,
        payload: [0; 10],
    }
}

fn access_point(stations: u16) -> Network<Payload> {
    Network::new(&access_point_config(stations), 1).expect("a network")
}

fn access_point_config(stations: u16) -> Config {
    let wifi = WifiConfig { access_point_queue: QueueConfig::fifo(1000), ..WifiConfig::new(Standard::G) };
    let path = PathConfig {
        rtt: Span::from_millis(10),
        rate: Rate::from_mbps(1000.0),
        loss: Probability::ZERO,
        queue_packets: 1000,
        back_loss: Probability::ZERO,
        impairments: [Impairments::NONE; 2],
    };
    let topology = Topology::AccessPoint { access: AccessConfig::Wifi(wifi), path };
    Config::new(vec![HostConfig::new(8); stations.into()], topology)
}

/// Runs until `end`, and lets `react` to each delivery.
fn drive(network: &mut Network<Payload>, end: Time, mut react: impl FnMut(&mut Network<Payload>, &Delivery<Payload>)) {
    let mut deliveries = Vec::new();
    while let Some(now) = network.next_wakeup().filter(|&now| now <= end) {
        network.advance(now, &mut deliveries);
        for delivery in deliveries.drain(..) {
            react(network, &delivery);
        }
    }
}

fn saturated(stations: u16) -> Run {
    saturated_among(stations, stations)
}

/// Ten stations that send as long A-MPDUs as they may.
fn aggregating(standard: Standard, errors: f64) -> Run {
    let mut config = access_point_config(10);
    config.hosts.fill(HostConfig::new(600));
    let Topology::AccessPoint { access, .. } = &mut config.topology else { unreachable!("an access point") };
    let frame_error_rate = Probability::new(errors).expect("a probability");
    *access = AccessConfig::Wifi(WifiConfig { frame_error_rate, ..WifiConfig::new(standard) });
    upload(10, Network::new(&config, 1).expect("a network"), 10)
}

/// Ten stations whose round-trip times are drawn anew each second.
fn own_paths() -> Run {
    let mut config = access_point_config(10);
    for host in &mut config.hosts {
        let rtt = (Span::from_millis(4), Span::from_millis(256));
        host.path = Some(HostPath { rtt, change_every: Span::from_secs(1) });
    }
    upload(10, Network::new(&config, 1).expect("a network"), 10)
}

/// So many stations that always have a packet for the server, among others that have none.
fn saturated_among(stations: u16, all: u16) -> Run {
    upload(stations, access_point(all), all)
}

/// The first stations always have a packet for the server, which is this node.
fn upload(stations: u16, mut network: Network<Payload>, server: u16) -> Run {
    let refill = |network: &mut Network<Payload>, now, station| {
        while network.room(NodeId(station)) > 0 {
            let _refused = network.offer(now, packet(station, server, 1500));
        }
    };
    for station in 0..stations {
        refill(&mut network, Time::ZERO, station);
    }
    let simulated = Span::from_secs(100);
    let mut packets = 0;
    drive(&mut network, Time::ZERO + simulated, |network, delivery| {
        packets += 1;
        refill(network, delivery.at, delivery.packet.from.0);
    });
    Run { simulated, packets, hops: 2 * packets, events: network.statistics(Time::ZERO).events }
}

/// Stations that send a packet each second, which the server answers.
fn mostly_idle(stations: u16) -> Run {
    let mut network = access_point(stations);
    let simulated = Span::from_secs(300);
    let end = Time::ZERO + simulated;
    let gap = Span::from_secs(1) / u64::from(stations);
    let mut deliveries = Vec::new();
    let mut packets = 0;
    let (mut next, mut station) = (Time::ZERO, 0);
    loop {
        let now = network.next_wakeup().map_or(next, |at| at.min(next));
        if now > end {
            break;
        }
        network.advance(now, &mut deliveries);
        for delivery in deliveries.drain(..) {
            packets += 1;
            if delivery.to.0 == stations {
                let _refused = network.offer(now, packet(stations, delivery.packet.from.0, 52));
            }
        }
        if now == next {
            let _refused = network.offer(now, packet(station, stations, 1500));
            station = (station + 1) % stations;
            next += gap;
        }
    }
    Run { simulated, packets, hops: 2 * packets, events: network.statistics(Time::ZERO).events }
}

fn direction(mbps: f64, delay_ms: u64, loss: f64) -> DirectionConfig {
    DirectionConfig {
        rate: Rate::from_mbps(mbps),
        delay: Span::from_millis(delay_ms),
        queue: QueueConfig::fifo(50),
        loss: Probability::new(loss).expect("a probability"),
        loss_at: LossAt::AfterQueue,
        impairments: Impairments::NONE,
    }
}

fn linked(nodes: usize, attached: Vec<usize>, links: Vec<LinkConfig>) -> Network<Payload> {
    let hosts = vec![HostConfig::new(1000); attached.len()];
    let topology = Topology::Links(LinksConfig { nodes, attached, links });
    Network::new(&Config::new(hosts, topology), 1).expect("a network")
}

/// [utsumi]'s: two senders over 100 Mb/s each into 10 Mb/s of 20 ms, windows of 40 packets of 1000 B, acknowledged one by one.
fn dumbbell(loss: f64) -> Run {
    let access = direction(100.0, 0, 0.0);
    let link = |one, other| LinkConfig { ends: (one, other), forth: access, back: access };
    let bottleneck = LinkConfig { ends: (2, 3), forth: direction(10.0, 20, loss), back: direction(10.0, 20, 0.0) };
    let mut network = linked(4, vec![0, 1], vec![link(0, 2), link(1, 2), bottleneck]);
    let server = 2 + 3;
    let simulated = Span::from_secs(1000);
    let mut packets = 0;
    for sender in [0, 1].into_iter().cycle().take(80) {
        network.offer(Time::ZERO, packet(sender, server, 1000)).expect("room for a window");
    }
    let (mut lost, mut seen) = (0, 0);
    drive(&mut network, Time::ZERO + simulated, |network, delivery| {
        packets += 1;
        if delivery.to.0 == server {
            network.offer(delivery.at, packet(server, delivery.packet.from.0, 52)).expect("room for an answer");
            return;
        }
        // What was lost is missing in the window: now and then the window is filled up.
        network.offer(delivery.at, packet(delivery.to.0, server, 1000)).expect("room for a window");
        seen += 1;
        if seen == 1000 {
            seen = 0;
            let drops: u64 = network.statistics(delivery.at).drops.iter().map(|drops| drops.count).sum();
            for sender in [0, 1].into_iter().cycle().take((drops - lost) as usize) {
                network.offer(delivery.at, packet(sender, server, 1000)).expect("room for a window");
            }
            lost = drops;
        }
    });
    Run { simulated, packets, hops: 2 * packets, events: network.statistics(Time::ZERO).events }
}

/// So many links of 100 Mb/s and 1 ms in a row, so many senders, windows of 40 packets at each end.
fn chain(links: usize, senders: u16) -> Run {
    let both = direction(100.0, 1, 0.0);
    let row = (0..links).map(|node| LinkConfig { ends: (node, node + 1), forth: both, back: both });
    let mut network = linked(links + 1, vec![0; senders.into()], row.collect());
    let server = senders + links as u16;
    let simulated = Span::from_secs(if links > 8 { 20 } else { 100 });
    let mut packets = 0;
    for _ in 0..40 {
        for sender in 0..senders {
            network.offer(Time::ZERO, packet(sender, server, 1500)).expect("room for a window");
        }
    }
    drive(&mut network, Time::ZERO + simulated, |network, delivery| {
        packets += 1;
        let size = if delivery.to.0 == server { 52 } else { 1500 };
        network.offer(delivery.at, packet(delivery.to.0, delivery.packet.from.0, size)).expect("room for an answer");
    });
    Run { simulated, packets, hops: packets * links as u64, events: network.statistics(Time::ZERO).events }
}
