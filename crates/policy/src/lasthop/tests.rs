//! Hosts in fluid behind one queue: what the law does, alone, beside others, and beside a liar.

use super::own::Own;
use super::*;
use lasthop_connection::TcpState;
use lasthop_peers::{Neighbourhood, Peer, PeerId, Report};
use told::Proposal;

/// What the queue passes, in bytes per second.
const CAPACITY: f64 = 3e6;
const MSS: f64 = 1448.0;
/// The window of a host without bounds, in bytes: ten of them make a queue of a second.
const WINDOW: f64 = 300_000.0;

#[derive(Clone, Copy, PartialEq)]
enum Way {
    Up,
    Down,
}

struct Fluid {
    base: f64,
    hosts: Vec<(Lasthop, Way, f64, Option<Bound>)>,
    /// What hosts without the agent keep in the queue and on the path, in bytes.
    others: f64,
    /// Where the path is all but full the medium passes a fifth, until a quarter of the path is full.
    can_collapse: bool,
    collapsed: bool,
    /// What a stranger says in a beacon.
    stranger: Option<Told>,
    reports: Vec<Report>,
    got: Vec<f64>,
    queue: f64,
    now: Time,
}

impl Fluid {
    fn of(ways: &[Way], base_ms: u64) -> Self {
        let host = |way: &Way| (Lasthop::new(&PolicySettings::default()), *way, WINDOW, None);
        Self {
            base: base_ms as f64 / 1e3,
            hosts: ways.iter().map(host).collect(),
            others: 0.0,
            can_collapse: false,
            collapsed: false,
            stranger: None,
            reports: vec![Report::default(); ways.len()],
            got: vec![0.0; ways.len()],
            queue: 0.0,
            now: Time::ZERO,
        }
    }

    /// The rates of the hosts, in bytes per second, in the mean over the last half of so many seconds.
    fn run(&mut self, seconds: u64) -> Vec<f64> {
        let mut half = Vec::new();
        for tick in 0..2 * seconds {
            if tick == seconds {
                half = self.got.clone();
            }
            self.tick();
        }
        self.got.iter().zip(half).map(|(got, half)| (got - half) / (seconds as f64 / 2.0)).collect()
    }

    fn tick(&mut self) {
        self.now += Span::from_millis(500);
        let windows: Vec<f64> = self.hosts.iter().map(|(_, way, _, bound)| window(*way, *bound)).collect();
        let held: f64 = windows.iter().sum::<f64>() + self.others;
        let fits = CAPACITY * self.base;
        self.collapsed = self.can_collapse && held > if self.collapsed { 0.25 * fits } else { 0.95 * fits };
        let capacity = if self.collapsed { 0.2 * CAPACITY } else { CAPACITY };
        self.queue = (held / capacity - self.base).max(0.0);
        let round_trip = self.base + self.queue;
        let reports = self.reports.clone();
        for (index, (policy, way, moved, bound)) in self.hosts.iter_mut().enumerate() {
            self.got[index] += 0.5 * windows[index] / round_trip;
            *moved += 0.5 * windows[index] / round_trip;
            let peers =
                reports.iter().enumerate().filter(|(peer, _)| *peer != index).map(|(peer, report)| (peer, *report));
            let says = self.stranger.map(|told| (99, Report { word: told.word(), ..Report::default() }));
            let peers =
                peers.chain(says).map(|(id, report)| Peer { id: PeerId(id as u64), report, heard_at: self.now });
            let flow = flow(*way, windows[index], *moved, self.base, round_trip);
            let neighbourhood = Neighbourhood::new(peers.collect());
            let decision = policy.on_tick(&Observation { now: self.now, flows: &[flow], peers: &neighbourhood });
            *bound = decision.flows[0].bound;
            self.reports[index] = Report { word: policy.word(), ..Report::default() };
        }
    }

    fn bounded(&self) -> usize {
        self.hosts.iter().filter(|(_, way, _, bound)| window(*way, *bound) < WINDOW).count()
    }
}

fn window(way: Way, bound: Option<Bound>) -> f64 {
    match (way, bound) {
        (Way::Up, Some(bound)) if bound.max_segments > 0 => WINDOW.min(f64::from(bound.max_segments) * MSS),
        (Way::Down, Some(bound)) if bound.max_receive_bytes > 0 => WINDOW.min(bound.max_receive_bytes as f64),
        _ => WINDOW,
    }
}

fn flow(way: Way, window: f64, moved: f64, base: f64, round_trip: f64) -> FlowObservation {
    let (rtt, lowest) = (Some(Span::from_secs_f64(round_trip)), Some(Span::from_secs_f64(base)));
    let moved = Bytes::new(moved as u64);
    let segments = (window / MSS) as u32;
    let flow = FlowObservation {
        id: FlowId(1),
        tcp: TcpState { mss_bytes: MSS as u32, min_rtt: lowest, ..TcpState::default() },
        ..FlowObservation::default()
    };
    match way {
        Way::Up => FlowObservation {
            tcp: TcpState {
                srtt: rtt,
                cwnd_segments: segments,
                in_flight_segments: segments,
                unsent: Bytes::new(1),
                acked: moved,
                ..flow.tcp
            },
            ..flow
        },
        Way::Down => FlowObservation {
            min_receive_rtt: lowest,
            tcp: TcpState { receive_rtt: rtt, cwnd_segments: 10, received: moved, ..flow.tcp },
            receiving: true,
            ..flow
        },
    }
}

#[test]
fn uploads_and_downloads_get_equal_rates_and_a_short_queue() {
    for base_ms in [4, 20, 100, 256] {
        for hosts in [2, 5, 10] {
            let ways: Vec<Way> = (0..hosts).map(|host| if host % 2 == 0 { Way::Up } else { Way::Down }).collect();
            let mut fluid = Fluid::of(&ways, base_ms);
            let rates = fluid.run(120);
            let filled = WINDOW * hosts as f64 / CAPACITY - fluid.base;
            let aim = (0.01 + 0.001 * hosts as f64) / 2.0 + 0.1 * fluid.base; // CAPACITY has no aggregates
            if filled < 0.02 + 0.006 * hosts as f64 + 0.2 * fluid.base {
                assert_eq!(fluid.bounded(), 0, "{hosts} over {base_ms} ms: nothing is congested");
                continue;
            }
            assert_eq!(fluid.bounded(), hosts, "{hosts} over {base_ms} ms");
            assert!(rates.iter().sum::<f64>() > 0.97 * CAPACITY, "{hosts} over {base_ms} ms: {rates:?}");
            assert!((0.5 * aim..1.6 * aim).contains(&fluid.queue), "{hosts} over {base_ms} ms: {}", fluid.queue);
            let equal = rates.iter().sum::<f64>() / hosts as f64;
            assert!(rates.iter().all(|rate| (0.9..1.1).contains(&(rate / equal))), "{hosts}, {base_ms} ms: {rates:?}");
        }
    }
}

/// A study may give every number any factor that its key takes.
#[test]
fn no_number_far_off_makes_the_law_panic_or_leave_nine_tenths_unused() {
    for (word, constant) in LawConstant::WORDS {
        for factor in [0.1, 0.45, 10.0] {
            let mut fluid = Fluid::of(&[Way::Up, Way::Down, Way::Up], 20);
            for (policy, ..) in &mut fluid.hosts {
                *policy = Lasthop::new(&PolicySettings::default()).with(Parts::ALL.scaled(*constant, factor));
            }
            let total = fluid.run(60).iter().sum::<f64>() / CAPACITY;
            assert!((0.1..1.01).contains(&total), "{word} times {factor}: {total}");
        }
    }
}

/// As with rates that fall back because of collisions: the way up to the edge takes as long as the way down.
#[test]
fn a_medium_that_collapses_is_kept_below_its_edge() {
    let goodput = |parts| {
        let mut fluid = Fluid::of(&[Way::Up; 10], 256);
        fluid.can_collapse = true;
        fluid.hosts.iter_mut().for_each(|(policy, ..)| {
            *policy = Lasthop::new(&PolicySettings::default()).with(parts);
        });
        fluid.run(400).iter().sum::<f64>() / CAPACITY
    };
    let (with, without) = (goodput(Parts::ALL), goodput(Parts::without(LawPart::Edge)));
    assert!(with > 0.5 && with > 1.5 * without, "{with} {without}");
}

#[test]
fn while_a_queue_is_looked_at_the_reason_counts_the_seconds_down() {
    let mut policy = Lasthop::new(&PolicySettings::default());
    let reasons: Vec<String> = (1..40_u32)
        .map(|tick| {
            let now = Time::ZERO + Span::from_millis(500) * u64::from(tick);
            let flow = flow(Way::Up, WINDOW, f64::from(tick) * 0.5 * WINDOW / 0.182, 0.02, 0.182);
            let decision = policy.on_tick(&Observation { now, flows: &[flow], peers: &Neighbourhood::alone() });
            decision.flows[0].reason.to_string()
        })
        .collect();
    let begins = reasons.iter().position(|reason| reason.contains("for each of")).expect("limits begin");
    let waits: Vec<&str> =
        reasons[..begins].iter().map(String::as_str).skip_while(|reason| !reason.contains("limits begin")).collect();
    let seconds = |left: u32, word: &str| {
        format!("RTTs are 162 ms above the lowest: limits begin after {left} more {word} of that")
    };
    for said in [seconds(5, "seconds"), seconds(2, "seconds"), seconds(1, "second")] {
        assert!(waits.contains(&said.as_str()), "{said}: {reasons:#?}");
    }
    assert!(waits.len() >= 9 && waits.iter().all(|reason| reason.contains("limits begin")), "{reasons:#?}");
}

/// What they leave, the others take: each step shows it. They go back, and wait longer after each: soon five minutes. So
/// it is where bounds held before the others came.
#[test]
fn beside_hosts_that_fill_the_queue_trials_are_few_and_short() {
    for alone_s in [0, 100] {
        let mut fluid = Fluid::of(&[Way::Up; 5], 20);
        fluid.run(alone_s);
        let all_wait = |fluid: &Fluid| fluid.hosts.iter().all(|(_, way, _, bound)| window(*way, *bound) < 0.5 * WINDOW);
        assert_eq!(all_wait(&fluid), alone_s > 0);
        // The others keep the queue as long as it was.
        let filled = 10.0 * WINDOW;
        let (mut bounded, mut got) = (Vec::new(), 0.0);
        for tick in 0..4000 {
            let held: f64 = fluid.hosts.iter().map(|(_, way, _, bound)| window(*way, *bound)).sum();
            fluid.others = filled - held;
            let before: f64 = fluid.got.iter().sum();
            fluid.tick();
            got += fluid.got.iter().sum::<f64>() - before;
            // More than half of the windows is a step back, or no bounds.
            if all_wait(&fluid) {
                bounded.push(tick);
            }
        }
        assert!(got / 2000.0 > 0.9 * CAPACITY / 2.0, "{alone_s}: {}", got / 2000.0);
        let trials: Vec<_> = bounded.chunk_by(|one, next| next - one == 1).map(|trial| trial[0]).collect();
        assert!((3..8).contains(&trials.len()), "{alone_s}: {trials:?}");
        let waits: Vec<_> = trials.windows(2).map(|pair| pair[1] - pair[0]).collect();
        println!("{alone_s}: {trials:?}");
        assert!(waits[0] > 2 * 80 && waits[1..].iter().all(|wait| *wait > 2 * 300), "{alone_s}: {trials:?}");
    }
}

/// Others that stay, but leave hosts nearly all they had, end one wait early, and no more.
#[test]
fn beside_few_others_that_stay_a_wait_ends_early_once() {
    let trials = |parts| {
        let mut fluid = Fluid::of(&[Way::Up; 5], 20);
        fluid.hosts.iter_mut().for_each(|(policy, ..)| {
            *policy = Lasthop::new(&PolicySettings::default()).with(parts);
        });
        fluid.run(100);
        assert_eq!(fluid.bounded(), 5);
        fluid.others = 0.4 * WINDOW;
        let bounded: Vec<bool> = (0..4000)
            .map(|_| {
                fluid.tick();
                fluid.bounded() == 5
            })
            .collect();
        bounded.windows(2).filter(|pair| !pair[0] && pair[1]).count()
    };
    let (with, without) = (trials(Parts::ALL), trials(Parts::without(LawPart::Return)));
    println!("{with} and {without} trials");
    assert!(with > 0 && with <= without + 1, "{with} and {without}");
}

/// The others are gone after 15 s, and all get again what they did: nobody waits for the end of a minute.
#[test]
fn after_a_burst_of_others_bounds_are_back_within_seconds() {
    let until_back = |parts| {
        let mut fluid = Fluid::of(&[Way::Up; 5], 20);
        fluid.hosts.iter_mut().for_each(|(policy, ..)| {
            *policy = Lasthop::new(&PolicySettings::default()).with(parts);
        });
        fluid.run(100);
        assert_eq!(fluid.bounded(), 5);
        for _ in 0..30 {
            let held: f64 = fluid.hosts.iter().map(|(_, way, _, bound)| window(*way, *bound)).sum();
            fluid.others = 10.0 * WINDOW - held;
            fluid.tick();
        }
        assert_eq!(fluid.bounded(), 0, "they gave up");
        fluid.others = 0.0;
        (1..400).find(|_| {
            fluid.tick();
            fluid.bounded() == 5
        })
    };
    let (with, without) = (until_back(Parts::ALL), until_back(Parts::without(LawPart::Return)));
    println!("{with:?} and {without:?} ticks");
    assert!(with.is_some_and(|ticks| ticks <= 10), "{with:?}");
    assert!(without.is_some_and(|ticks| ticks > 40), "{without:?}");
}

/// One liar of ten takes at most a tenth of what the others would have.
#[test]
fn one_liar_of_ten_takes_at_most_a_tenth() {
    let rate = Rate::from_mbps;
    let honest = Told {
        rate: rate(2.4),
        delivered: rate(2.4),
        base: Span::from_millis(20),
        queue: Some(Span::from_millis(20)),
        bulk: true,
        ..Told::default()
    };
    let aim = |ms| Some(Proposal::Aim(Span::from_millis(ms)));
    let lies = [
        ("a tiny rate", Told { rate: Rate::from_bps(1), ..honest }),
        ("a huge rate", Told { rate: rate(17_000.0), ..honest }),
        ("a long queue", Told { queue: Some(Span::from_secs(6)), ..honest }),
        ("no queue", Told { queue: Some(Span::ZERO), ..honest }),
        ("a long path", Told { base: Span::from_secs(6), ..honest }),
        ("goodput", Told { delivered: rate(17_000.0), ..honest }),
        ("what was free", Told { free: rate(17_000.0), ..honest }),
        ("no bounds", Told { proposal: Some(Proposal::Free), ..honest }),
        ("the least aim", Told { proposal: aim(0), ..honest }),
        ("a great aim", Told { proposal: aim(6000), ..honest }),
    ];
    for (what, lie) in lies {
        for after in [0, 60] {
            let mut fluid = Fluid::of(&[Way::Up; 9], 20);
            fluid.run(after);
            fluid.stranger = Some(lie);
            let rates = fluid.run(60);
            let least = rates.iter().copied().fold(f64::MAX, f64::min);
            assert!(least > 0.9 * CAPACITY / 9.0, "{what}, after {after} s: {rates:?}");
        }
    }
}

#[test]
fn one_host_that_proposes_an_aim_begins_nothing_for_silent_ones() {
    let begun = |parts| {
        let mut fluid = Fluid::of(&[Way::Up; 2], 256);
        fluid.hosts.iter_mut().for_each(|(policy, ..)| {
            *policy = Lasthop::new(&PolicySettings::default()).with(parts);
        });
        let queue = Some(Span::from_millis(20));
        let proposal = Some(Proposal::Aim(Span::from_millis(20)));
        fluid.stranger = Some(Told { queue, proposal, bulk: true, ..Told::default() });
        // Before the first words of the others no host is silent. The bounds that begin then are bad; the wait ends after 40 s.
        fluid.run(20);
        let mut bounded = |_| {
            fluid.tick();
            fluid.hosts.iter().filter(|(.., bound)| bound.is_some()).count()
        };
        (0..80).map(&mut bounded).max()
    };
    assert_eq!((begun(Parts::ALL), begun(Parts::without(LawPart::Majority))), (Some(0), Some(2)));
}

#[test]
fn a_host_that_starts_late_gets_the_rate_of_the_others() {
    let mut fluid = Fluid::of(&[Way::Up; 4], 20);
    fluid.run(60);
    fluid.hosts.push((Lasthop::new(&PolicySettings::default()), Way::Up, 0.0, None));
    fluid.reports.push(Report::default());
    fluid.got.push(0.0);
    for _ in 0..12 {
        fluid.tick();
    }
    let rates = fluid.run(20);
    let equal = CAPACITY / 5.0;
    assert!(rates.iter().all(|rate| (0.85..1.15).contains(&(rate / equal))), "{rates:?}");
}

/// The connection of a host that bounds its uploads, and the same host's other connections.
fn beside_bulk(other: FlowObservation) -> Option<Bound> {
    let mut policy = Lasthop::new(&PolicySettings::default());
    let mut bound = None;
    for tick in 1..60_u64 {
        let moved = |bytes: Bytes| Bytes::new(bytes.get() * tick);
        let bulk = flow(Way::Up, WINDOW, 1e6 * tick as f64, 0.02, 0.5);
        let other = FlowObservation {
            id: FlowId(2),
            tcp: TcpState { acked: moved(other.tcp.acked), received: moved(other.tcp.received), ..other.tcp },
            ..other
        };
        let now = Time::ZERO + Span::from_millis(500) * tick;
        let decision = policy.on_tick(&Observation { now, flows: &[bulk, other], peers: &Neighbourhood::alone() });
        bound = decision.flows[1].bound.or(bound);
    }
    bound
}

#[test]
fn typing_calls_and_cameras_are_not_bounded_and_a_starved_upload_is_bulk() {
    let quiet = flow(Way::Up, 0.0, 0.0, 0.02, 0.5);
    let up = |acked, cwnd_segments, in_flight_segments, unsent| FlowObservation {
        tcp: TcpState {
            acked: Bytes::new(acked),
            cwnd_segments,
            in_flight_segments,
            unsent: Bytes::new(unsent),
            ..quiet.tcp
        },
        ..quiet
    };
    let typing = up(100, 10, 1, 1); // Nagle: one segment in flight, the rest waits
    let camera = up(100_000, 60, 20, 0);
    let mut call = FlowObservation { receiving: true, ..up(4000, 10, 1, 0) };
    call.tcp.received = Bytes::new(4000);
    for (what, flow) in [("typing", typing), ("camera", camera), ("call", call)] {
        assert_eq!(beside_bulk(flow), None, "{what}");
    }
    assert!(beside_bulk(up(1448, 1, 1, 1)).is_some(), "a window of one segment, and it is in flight");
    assert!(beside_bulk(up(100_000, 40, 40, 0)).is_some(), "a send buffer that is all in the network");
}

/// 64 kb/s, below what makes a download bulk.
#[test]
fn a_call_is_not_bulk_however_long_a_tick_is() {
    for tick_ms in [500, 2000, 10_000] {
        let mut own = Own::default();
        for tick in 1..20 {
            let received = Bytes::new(8 * tick_ms * tick);
            let mut call = FlowObservation { receiving: true, ..flow(Way::Up, 0.0, 0.0, 0.02, 0.5) };
            call.tcp.received = received;
            let now = Time::ZERO + Span::from_millis(tick_ms) * tick;
            let host = own.on_tick(&Observation { now, flows: &[call], peers: &Neighbourhood::alone() });
            assert_eq!(host.bulk, 0, "ticks of {tick_ms} ms");
        }
    }
}

#[test]
fn windows_come_back_when_bounds_end() {
    let mut policy = Lasthop::new(&PolicySettings::default());
    let (mut raised, mut was_bounded) = (None, false);
    for tick in 1..120_u64 {
        let now = Time::ZERO + Span::from_millis(500) * tick;
        // Bounds cost nearly everything.
        let (window, moved) = if was_bounded { (3000.0, 1e7) } else { (WINDOW, 1e6 * tick as f64) };
        let seen = flow(Way::Up, window, moved, 0.02, 0.5);
        let decision = policy.on_tick(&Observation { now, flows: &[seen], peers: &Neighbourhood::alone() });
        let bound = decision.flows[0].bound;
        was_bounded |= bound.is_some_and(|bound| bound.max_segments > 0);
        raised = raised.or(bound.filter(|bound| was_bounded && bound.max_segments == 0));
    }
    assert_eq!(raised, Some(Bound { min_segments: (WINDOW / MSS) as u32, ..Bound::default() }));
}
