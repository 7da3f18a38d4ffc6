//! Forged beacons without a group key: their cost to three honest hosts with the policy `lasthop`.
//!
//! The hosts are fluid: they share 20 Mb/s of payload behind a queue of half a second, over a path of 20 ms. Peer
//! table, cadence, beacons and policy are the agent's. With LASTHOP_BELIEVE_ALL=1 in the environment each beacon is
//! believed as if it were signed, and nothing is asserted. The difference is the worth of the rules for unsigned
//! beacons.
#![allow(missing_docs)]

use lasthop_connection::TcpState;
use lasthop_laws::bound::Bound;
use lasthop_peers::beacon::{Beacon, INTERVAL, Receiver};
use lasthop_peers::cadence::{Cadence, Due};
use lasthop_peers::group::Label;
use lasthop_peers::{Arrived, Ear, Limits, Own, PeerId, Report, Word};
use lasthop_policy::governor::{FlowSample, Governor};
use lasthop_policy::{FlowId, PolicyName, PolicySettings};
use lasthop_units::{Bytes, Rate, Span, Time};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

const HOSTS: usize = 3;
/// Payload of all hosts, in bytes per second.
const CAPACITY: f64 = 2.5e6;
const BASE_S: f64 = 0.020;
const MOST_QUEUE_S: f64 = 0.5;
const STEP: Span = Span::from_millis(100);
const STEPS_PER_TICK: u64 = 5;
/// The forger starts after control has settled.
const FROM_S: u64 = 150;

/// The beacons and the load of a forger.
#[derive(Clone, Copy, Debug)]
struct Forger {
    report: Report,
    interval: Span,
    per_second: u64,
    /// The number of identities, used in turn; `None`: a new one each time.
    identities: Option<u64>,
    /// Each identity has a source address of its own.
    spoofs: bool,
    /// It sends over IPv6 from one address, with the hosts' identities in turn; the hosts send over IPv4.
    as_hosts: bool,
    for_s: u64,
}

struct Host {
    governor: Governor,
    ear: Ear,
    pace: Cadence,
    report: Report,
    bound: Option<Bound>,
    acked: f64,
}

fn believes_all() -> bool {
    std::env::var_os("LASTHOP_BELIEVE_ALL").is_some()
}

impl Host {
    fn new(host: usize) -> Self {
        let settings = PolicySettings { policy: PolicyName::Lasthop, ..PolicySettings::default() };
        Self {
            governor: Governor::new(settings.build(), true),
            ear: Ear::new(
                Receiver::new(Label::Link.id(), None),
                Limits { authenticated: believes_all(), ..Limits::default() },
            ),
            pace: Cadence::new(INTERVAL, Time::ZERO, host as f64 / HOSTS as f64),
            report: Report::default(),
            bound: None,
            acked: 0.0,
        }
    }

    fn hear(&mut self, now: Time, from: IpAddr, datagram: &[u8]) {
        // Its own come as well.
        let own = Own { sender: PeerId(u64::MAX), addresses: &[] };
        let _counted = self.ear.on_datagram(own, Arrived { now, wall_ns: 1, from, datagram, relayed: false });
    }

    fn on_tick(&mut self, now: Time, rtt: Span) {
        let sample = FlowSample {
            id: FlowId(1),
            tcp: TcpState {
                srtt: Some(rtt),
                min_rtt: Some(Span::from_secs_f64(BASE_S)),
                newest_rtt: Some(rtt),
                cwnd_segments: 100,
                acked: Bytes::new(self.acked as u64),
                in_flight_segments: 100,
                unsent: Bytes::new(1_000_000),
                mss_bytes: 1448,
                ..TcpState::default()
            },
            controllable: true,
            ..FlowSample::default()
        };
        let peers = self.ear.table.neighbourhood(now);
        let turn = self.governor.on_tick(now, &[sample], &peers);
        self.governor.on_applied(&turn);
        self.report = turn.report;
        self.bound = turn.flows[0].decided.bound;
    }

    /// The load that it offers with this RTT, in bytes per second.
    fn offers(&self, rtt_s: f64) -> f64 {
        let free = 2.0 * CAPACITY / HOSTS as f64;
        self.bound.map_or(free, |bound| {
            assert_eq!(bound.max_pacing_rate, Rate::ZERO);
            free.min(f64::from(bound.max_segments) * 1448.0 / rtt_s)
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
                let sender = if forger.as_hosts { number % HOSTS as u64 } else { sender };
                let from = match forger {
                    Forger { as_hosts: true, .. } => Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 9).into(),
                    Forger { spoofs: true, .. } => IpAddr::from(Ipv4Addr::from(sender as u32)),
                    _ => Ipv4Addr::new(10, 0, 0, 9).into(),
                };
                let beacon = Beacon {
                    sender: PeerId(sender),
                    timestamp_ns: 0,
                    group: Label::Link.id(),
                    interval: forger.interval,
                    report: forger.report,
                };
                let datagram = beacon.encode(None);
                // A host does not hear its own identity.
                let others = hosts.iter_mut().enumerate().filter(|(host, _)| *host as u64 != sender);
                others.for_each(|(_, host)| host.hear(now, from, &datagram));
            }
            forged = due;
        }
        for speaker in 0..HOSTS {
            let others = hosts[speaker].ear.table.crowd(now);
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
        // The queue passes on everything until it is empty.
        let backlog = queue_s * CAPACITY;
        let out = (sum * step_s + backlog).min(CAPACITY * step_s);
        queue_s = (queue_s + step_s * (sum / CAPACITY - 1.0)).clamp(0.0, MOST_QUEUE_S);
        for (number, (host, offered)) in hosts.iter_mut().zip(offered).enumerate() {
            let bytes = out * offered / sum;
            host.acked += bytes;
            got[(step / 10) as usize][number] += bytes / (CAPACITY / HOSTS as f64);
        }
    }
    got
}

/// The word of the policy `lasthop`, in its own layout (crates/policy/src/lasthop/told.rs).
#[derive(Clone, Copy, Default)]
struct Says {
    /// In units of 128 bytes per second, 24 bits each; and so the two that follow.
    rate: u32,
    delivered: u32,
    free: u32,
    /// In units of 0.1 ms.
    base: u16,
    /// In units of 0.1 ms, and 1.
    excess: u16,
    /// In units of 0.1 ms; [`u16::MAX`]: no control.
    aim: u16,
}

impl Says {
    /// He has something to send.
    fn word(self) -> Option<Word> {
        let mut bytes = Vec::new();
        for rate in [self.rate, self.delivered, self.free] {
            bytes.extend(&rate.min(0x00ff_ffff).to_be_bytes()[1..]);
        }
        bytes.extend([self.base, self.excess, self.aim].map(u16::to_be_bytes).as_flattened());
        bytes.push(1);
        Some(Word::new(2, bytes.try_into().expect("16 bytes")))
    }
}

fn mean(got: &[[f64; HOSTS]]) -> f64 {
    got.iter().flatten().sum::<f64>() / (HOSTS * got.len()) as f64
}

/// The false reports worth trying, by name.
fn lies() -> Vec<(&'static str, Report)> {
    let says = |word: Option<Word>| Report {
        busy_flows: u16::MAX,
        srtt: Some(Span::from_secs(1000)),
        min_rtt: Some(Span::from_secs(1)),
        controlling: true,
        congested: true,
        word,
        ..Report::default()
    };
    let (most, no_end) = (u32::MAX, u16::MAX);
    let least = Says { rate: 1, excess: no_end, base: 200, aim: 1, ..Says::default() };
    vec![
        ("the least rate and an endless queue", says(least.word())),
        ("the same over no path", says(Says { base: 0, ..least }.word())),
        ("the greatest numbers", says(Says { rate: most, delivered: most, free: most, ..least }.word())),
        ("control does harm", says(Says { free: most, ..least }.word())),
        ("control is given up", says(Says { rate: 0, free: most, aim: no_end, ..least }.word())),
        ("the least rate and no queue", says(Says { excess: 1, ..least }.word())),
        ("the least rate and no opinion", says(Says { excess: 1, aim: 0, ..least }.word())),
        ("an endless queue", says(Says { rate: 0, aim: 0, ..least }.word())),
        ("an endless queue is aimed at", says(Says { aim: no_end - 1, ..least }.word())),
    ]
}

fn trickle() -> Forger {
    let report = Report::default();
    Forger { report, interval: INTERVAL, per_second: 6, identities: None, spoofs: false, as_hosts: false, for_s: 120 }
}

/// The goodput of all hosts without a forger.
fn honest() -> f64 {
    static HONEST: LazyLock<f64> = LazyLock::new(|| mean(&goodput(None, FROM_S + 150)[FROM_S as usize..]));
    *HONEST
}

/// For each lie: the goodput of all hosts over that without it must be at least `during` as long as the forger speaks, and
/// `after` in the 10 s after.
fn leaves(during: f64, after: f64, forger: Forger) {
    let from = FROM_S as usize;
    let to = from + forger.for_s as usize;
    let mut fail = Vec::new();
    for (lie, report) in lies() {
        let got = goodput(Some(Forger { report, ..forger }), to as u64 + 10);
        let parts = (mean(&got[from..to]) / honest(), mean(&got[to..]) / honest());
        println!("{lie}: {:.2}, then {:.2}", parts.0, parts.1);
        if parts.0 <= during || parts.1 <= after {
            fail.push((lie, parts));
        }
    }
    assert!(fail.is_empty() || believes_all(), "{forger:?}: {fail:?}");
}

#[test]
fn without_a_forger_hosts_use_what_there_is() {
    println!("{:.2}", honest());
    assert!(honest() > 0.9, "{}", honest());
}

#[test]
fn six_datagrams_a_second_from_one_address_leave_four_fifths() {
    for identities in [None, Some(1)] {
        leaves(0.8, 0.8, Forger { identities, interval: Span::MAX, ..trickle() });
    }
}

#[test]
fn a_flood_from_one_address_leaves_four_fifths() {
    leaves(0.8, 0.8, Forger { per_second: 2500, for_s: 12, ..trickle() });
}

#[test]
fn an_address_of_the_other_family_that_speaks_as_the_hosts_do_leaves_all() {
    leaves(0.95, 0.95, Forger { as_hosts: true, per_second: 60, ..trickle() });
}

/// Hosts do what most propose. So they lose much to a crowd, as long as that is there.
#[test]
fn six_datagrams_a_second_from_forged_addresses_leave_nearly_a_fifth_and_hosts_have_all_again_at_once() {
    for identities in [None, Some(2), Some(12)] {
        leaves(0.19, 0.9, Forger { identities, spoofs: true, ..trickle() });
    }
}

/// Of a minute's capacity, for each lie.
#[test]
fn a_flood_from_forged_addresses_costs_most_of_what_there_is_and_hosts_have_all_again_at_once() {
    for (lie, report) in lies() {
        let forger = Forger { report, spoofs: true, per_second: 2500, for_s: 60, ..trickle() };
        let got = goodput(Some(forger), FROM_S + 70);
        let (during, after) = got[FROM_S as usize..].split_at(60);
        let lost_s: f64 = during.iter().map(|second| 1.0 - mean(&[*second])).sum();
        let after = mean(after) / honest();
        println!("{lie}: a minute costs {lost_s:.0} s of the capacity, then {after:.2}");
        assert!((lost_s < 54.0 && after > 0.8) || believes_all(), "{lie}: {lost_s}, then {after}");
    }
}
