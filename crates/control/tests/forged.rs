//! Forged beacons without a group key: what they cost three honest hosts with the policy `lasthop`.
//!
//! The hosts are fluid: they share 20 Mb/s of payload behind a queue of half a second, over a path of 20 ms. Peer table, pace,
//! beacons and policy are those of the agent.
#![allow(missing_docs)]

use control::beacon::{Beacon, INTERVAL, Receiver};
use control::bound::Bound;
use control::governor::{FlowSample, Governor};
use control::group::Label;
use control::pace::{Due, Pace};
use control::peers::{Limits, PeerId, PeerTable, Report};
use control::policy::{FlowId, PolicyName, PolicySettings};
use std::net::{IpAddr, Ipv4Addr};
use units::{Bytes, Rate, Span, Time};

const HOSTS: usize = 3;
/// Payload of all hosts, in bytes per second.
const CAPACITY: f64 = 2.5e6;
const BASE_S: f64 = 0.020;
const MOST_QUEUE_S: f64 = 0.5;
const STEP: Span = Span::from_millis(100);
const STEPS_PER_TICK: u64 = 5;
/// The forger begins when control has settled.
const FROM_S: u64 = 150;

/// What a forger sends to all hosts.
#[derive(Clone, Copy, Debug)]
struct Forger {
    report: Report,
    interval: Span,
    per_second: u64,
    /// So many identities in turn; `None`: a new one each time.
    identities: Option<u64>,
    /// Each identity has a source address of its own.
    spoofs: bool,
    for_s: u64,
}

struct Host {
    governor: Governor,
    receiver: Receiver,
    table: PeerTable,
    pace: Pace,
    report: Report,
    bound: Option<Bound>,
    acked: f64,
}

impl Host {
    fn new(host: usize) -> Self {
        let settings = PolicySettings { policy: PolicyName::Lasthop, ..PolicySettings::default() };
        Self {
            governor: Governor::new(settings.build(), true),
            receiver: Receiver::new(Label::Link.id(), None),
            table: PeerTable::new(Limits::default()),
            pace: Pace::new(INTERVAL, Time::ZERO, host as f64 / HOSTS as f64),
            report: Report::default(),
            bound: None,
            acked: 0.0,
        }
    }

    fn hear(&mut self, now: Time, from: IpAddr, datagram: &[u8]) {
        if self.table.on_datagram(now).is_ok() {
            let beacon = self.receiver.on_datagram(1, datagram).expect("a beacon");
            let _counted = self.table.on_report(now, from, beacon.sender, beacon.interval, beacon.report);
        }
    }

    fn on_tick(&mut self, now: Time, rtt: Span) {
        let sample = FlowSample {
            id: FlowId(1),
            srtt: Some(rtt),
            min_rtt: Some(Span::from_secs_f64(BASE_S)),
            newest_rtt: Some(rtt),
            cwnd_segments: 100,
            acked: Bytes::new(self.acked as u64),
            in_flight_segments: 100,
            unsent: Bytes::new(1_000_000),
            mss_bytes: 1448,
            controllable: true,
        };
        let peers = self.table.neighbourhood(now);
        let turn = self.governor.on_tick(now, &[sample], &peers);
        self.governor.on_applied(&turn);
        self.report = turn.report;
        self.bound = turn.decisions[0].bound;
    }

    /// What it sends with this RTT, in bytes per second.
    fn offers(&self, rtt_s: f64) -> f64 {
        let free = 2.0 * CAPACITY / HOSTS as f64;
        self.bound.map_or(free, |bound| {
            let pace = bound.max_pacing_rate.as_bps() as f64 / 8.0;
            free.min(pace).min(f64::from(bound.max_segments) * 1448.0 / rtt_s)
        })
    }
}

/// The goodput of each host in each second, over its part of the capacity.
fn goodput(forger: Option<Forger>, seconds: u64) -> Vec<[f64; HOSTS]> {
    let mut hosts: Vec<Host> = (0..HOSTS).map(Host::new).collect();
    let (mut queue_s, mut random, mut forged) = (0.0_f64, 1_u64, 0);
    let mut got = vec![[0.0; HOSTS]; seconds as usize];
    for step in 0..seconds * 10 {
        let now = Time::ZERO + Span::from_nanos(STEP.as_nanos() * step);
        let step_s = STEP.as_secs_f64();
        if let Some(forger) = forger.filter(|forger| (10 * FROM_S..10 * (FROM_S + forger.for_s)).contains(&step)) {
            let due = (step + 1 - 10 * FROM_S) * forger.per_second / 10;
            for number in forged..due {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let sender = forger.identities.map_or(random, |identities| 1000 + number % identities);
                let from = if forger.spoofs { Ipv4Addr::from(sender as u32) } else { Ipv4Addr::new(10, 0, 0, 9) };
                let beacon = Beacon {
                    sender: PeerId(sender),
                    timestamp_ns: 0,
                    group: Label::Link.id(),
                    interval: forger.interval,
                    report: forger.report,
                };
                let datagram = beacon.encode(None);
                hosts.iter_mut().for_each(|host| host.hear(now, from.into(), &datagram));
            }
            forged = due;
        }
        for speaker in 0..HOSTS {
            let others = hosts[speaker].table.crowd(now);
            let report = hosts[speaker].report;
            if let Some(Due { interval }) = hosts[speaker].pace.poll(now, others, 1, &report, 0.5) {
                let sender = PeerId(speaker as u64);
                let beacon = Beacon { sender, timestamp_ns: 0, group: Label::Link.id(), interval, report };
                let (from, datagram) = (Ipv4Addr::new(10, 0, 0, speaker as u8).into(), beacon.encode(None));
                let others = hosts.iter_mut().enumerate().filter(|(host, _)| *host != speaker);
                others.for_each(|(_, host)| host.hear(now, from, &datagram));
            }
        }
        let rtt_s = BASE_S + queue_s;
        for (number, host) in hosts.iter_mut().enumerate() {
            if step % STEPS_PER_TICK == number as u64 {
                host.on_tick(now, Span::from_secs_f64(rtt_s));
            }
        }
        let offered: Vec<f64> = hosts.iter().map(|host| host.offers(rtt_s)).collect();
        let sum: f64 = offered.iter().sum();
        let passed = if queue_s > 0.0 || sum > CAPACITY { (CAPACITY / sum).min(1.0) } else { 1.0 };
        // A queue passes on what there is until it is empty.
        let backlog = queue_s * CAPACITY;
        let out = (sum * step_s + backlog).min(CAPACITY * step_s);
        queue_s = (queue_s + step_s * (sum / CAPACITY - 1.0)).clamp(0.0, MOST_QUEUE_S);
        let _ = passed;
        for (host, offered) in
            hosts.iter_mut().zip(offered).enumerate().map(|(number, (host, offered))| ((number, host), offered))
        {
            let (number, host) = host;
            let bytes = out * offered / sum;
            host.acked += bytes;
            got[(step / 10) as usize][number] += bytes / (CAPACITY / HOSTS as f64);
        }
    }
    got
}

/// "The worst": a byte a second for each, and a queue without end.
fn worst() -> Report {
    Report {
        busy_flows: u16::MAX,
        srtt: Some(Span::from_secs(1000)),
        min_rtt: Some(Span::from_secs(1)),
        controlling: true,
        congested: true,
        common_rate: Rate::from_bps(8),
        excess: Some(Span::from_secs(4000)),
        ..Report::default()
    }
}

fn mean(got: &[[f64; HOSTS]]) -> f64 {
    got.iter().flatten().sum::<f64>() / (HOSTS * got.len()) as f64
}

fn least(got: &[[f64; HOSTS]]) -> f64 {
    (0..HOSTS)
        .map(|host| got.iter().map(|second| second[host]).sum::<f64>() / got.len() as f64)
        .fold(f64::INFINITY, f64::min)
}

#[test]
fn explore() {
    let big = Rate::from_bps(8 * u64::from(u32::MAX));
    let extreme = Report { common_rate: big, delivered: big, free: big, ..worst() };
    let harmed = Report { free: big, harmed: true, ..worst() };
    let released = Report { common_rate: Rate::ZERO, free: big, released: true, delivered: big, ..worst() };
    let careful = Report { careful: true, ..worst() };
    let low = Report { excess: Some(Span::ZERO), min_rtt: Some(Span::from_millis(20)), ..worst() };
    let queue = Report { common_rate: Rate::ZERO, ..worst() };
    let reports = [
        ("worst", worst()),
        ("extreme", extreme),
        ("harmed", harmed),
        ("released", released),
        ("careful", careful),
        ("low", low),
        ("queue", queue),
    ];
    let none = goodput(None, 400);
    println!("none {:.2} {:.2}", mean(&none[FROM_S as usize..]), least(&none[FROM_S as usize..]));
    for (name, report) in reports {
        for (ids, spoofs, per_second, for_s) in [
            (None, false, 6, 120),
            (Some(1), false, 6, 120),
            (None, true, 6, 120),
            (Some(2), true, 6, 120),
            (None, false, 5000, 12),
            (None, true, 5000, 12),
        ] {
            for interval in [INTERVAL, Span::MAX] {
                let got = goodput(Some(Forger { report, interval, per_second, identities: ids, spoofs, for_s }), 500);
                let (from, to) = (FROM_S as usize, (FROM_S + for_s) as usize);
                print!(
                    "{name:9} ids {ids:?} spoofs {spoofs} {per_second}/s interval {interval}: during {:.2} (least {:.2}), +10 s {:.2}, +60 s {:.2}, rest {:.2}  |",
                    mean(&got[from..to]),
                    least(&got[from..to]),
                    mean(&got[to..to + 10]),
                    mean(&got[to + 10..to + 60]),
                    mean(&got[to + 60..])
                );
                for second in got[from..].chunks(10) {
                    print!(" {:.1}", mean(second));
                }
                println!();
            }
        }
    }
}
