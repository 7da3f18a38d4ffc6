//! What FQ-CoDel is for, beside drop-tail: a short standing queue under load, sparse flows that do not wait behind bulk, shares
//! that do not depend on round trips.
//!
//! The senders are plain: additive increase by a packet per round trip, half the window once per round trip with losses, which
//! they see as gaps; two seconds without acknowledgements are a timeout. Acknowledgements take the constant round-trip time and
//! are never lost.

use crate::common::{access_point, hosts, instant_path};
use lasthop_network::{
    AccessConfig, CakeConfig, Cause, CodelConfig, Config, Destination, DirectionConfig, Discipline, Impairments,
    LinkConfig, LinksConfig, LossAt, Network, NodeId, Packet, QueueConfig, QueueId, Standard, Statistics, Topology,
    WifiConfig, WiredAccessConfig,
};
use lasthop_units::{Bytes, Ecn, Probability, Rate, Span, Time};
use std::collections::VecDeque;

/// For how long is measured.
const MEASURED: Span = Span::from_secs(60);

/// Who sends what from the server.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// As much as congestion control allows, with this round-trip time without queues.
    Bulk(Span),
    /// A packet of so many bytes each so often, whatever happens.
    Steady(u64, Span),
}

/// A flow from the server to host number `host`.
#[derive(Debug)]
struct Flow {
    host: u16,
    source: Source,
    window: f64,
    slow_start: bool,
    in_flight: u64,
    next: u64,
    expected: u64,
    /// No further reduction before this packet is acknowledged.
    recover: u64,
    /// When the acknowledgement of which packet comes.
    acknowledgements: VecDeque<(Time, u64)>,
    next_steady: Time,
    timeout: Time,
    /// From the end of the warm-up on.
    delays: Vec<Span>,
    bytes: u64,
}

impl Flow {
    fn new(host: u16, source: Source) -> Self {
        Self {
            host,
            source,
            window: 2.0,
            slow_start: true,
            in_flight: 0,
            next: 0,
            expected: 0,
            recover: 0,
            acknowledgements: VecDeque::new(),
            next_steady: Time::ZERO,
            timeout: Time::MAX,
            delays: Vec::new(),
            bytes: 0,
        }
    }

    fn next_event(&self) -> Time {
        match self.source {
            Source::Bulk(_) => self.acknowledgements.front().map_or(self.timeout, |(at, _)| self.timeout.min(*at)),
            Source::Steady(..) => self.next_steady,
        }
    }

    fn on_timeout(&mut self) {
        self.in_flight = 0;
        self.expected = self.next;
        self.window = 2.0;
        self.slow_start = true;
        self.timeout = Time::MAX;
    }

    fn on_acknowledged(&mut self, now: Time, number: u64) {
        if number < self.expected {
            return;
        }
        self.timeout = now + Span::from_secs(2);
        let lost = number - self.expected;
        self.in_flight -= lost + 1;
        self.expected = number + 1;
        if lost > 0 && number >= self.recover {
            self.window = (self.window / 2.0).max(2.0);
            self.slow_start = false;
            self.recover = self.next;
        } else if lost == 0 {
            self.window += if self.slow_start { 1.0 } else { 1.0 / self.window };
        }
    }

    fn mean_delay_ms(&self) -> f64 {
        self.delays.iter().map(|delay| delay.as_millis_f64()).sum::<f64>() / self.delays.len() as f64
    }

    fn mbps(&self) -> f64 {
        Rate::over(Bytes::new(self.bytes), MEASURED).as_mbps()
    }

    fn worst_delay_ms(&self) -> f64 {
        self.delays.iter().max().expect("packets have arrived").as_millis_f64()
    }
}

/// Runs the flows for a warm-up of 10 s and then [`MEASURED`]; delays are from the server to the host.
fn run(bottleneck: Bottleneck, queue: QueueConfig, flows: Vec<Flow>) -> (Vec<Flow>, Statistics) {
    let count = flows.iter().map(|flow| flow.host + 1).max().expect("there are flows");
    let server = count;
    let mut network = Network::new(&bottleneck(count.into(), queue), 1).unwrap();
    let mut flows = flows;
    let mut deliveries = Vec::new();
    let warm = Time::ZERO + Span::from_secs(10);
    let end = warm + MEASURED;
    let mut now = Time::ZERO;
    let mut is_warm = false;
    while now <= end {
        if !is_warm && now >= warm {
            network.reset_statistics(warm);
            is_warm = true;
        }
        network.advance(now, &mut deliveries);
        for delivery in deliveries.drain(..) {
            let (index, number, offered) = delivery.packet.payload;
            let flow: &mut Flow = &mut flows[index];
            if is_warm {
                flow.delays.push(delivery.at - offered);
                flow.bytes += delivery.packet.size.get();
            }
            if let Source::Bulk(rtt) = flow.source {
                flow.acknowledgements.push_back((delivery.at + rtt, number));
            }
        }
        for (index, flow) in flows.iter_mut().enumerate() {
            while let Some(&(at, number)) = flow.acknowledgements.front()
                && at <= now
            {
                flow.acknowledgements.pop_front();
                flow.on_acknowledged(now, number);
            }
            if flow.timeout <= now {
                flow.on_timeout();
            }
            loop {
                let size = match flow.source {
                    Source::Bulk(_) if (flow.in_flight as f64) < flow.window.floor() => 1500,
                    Source::Steady(bytes, gap) if flow.next_steady <= now => {
                        flow.next_steady += gap;
                        bytes
                    }
                    _ => break,
                };
                let to = Destination::Node(NodeId(flow.host));
                let payload = (index, flow.next, now);
                let packet = Packet {
                    from: NodeId(server),
                    to,
                    size: Bytes::new(size),
                    flow: index as u32,
                    dscp: 0,
                    ecn: Ecn::NotEct,
                    id: 0,
                    payload,
                };
                network.offer(now, packet).expect("the server's own queue is long");
                flow.next += 1;
                flow.in_flight += 1;
                if flow.timeout == Time::MAX {
                    flow.timeout = now + Span::from_secs(2);
                }
            }
        }
        let next = flows.iter().map(Flow::next_event).min().expect("there are flows");
        now = network.next_wakeup().map_or(next, |at| at.max(now).min(next));
    }
    let statistics = network.statistics(end);
    (flows, statistics)
}

/// What is between the server and so many hosts, with this queue where it is narrow.
type Bottleneck = fn(usize, QueueConfig) -> Config;

/// 1500 bytes take a millisecond.
fn wired(count: usize, queue: QueueConfig) -> Config {
    let access = WiredAccessConfig { rate: Rate::from_mbps(12.0), delay: Span::ZERO, queue };
    access_point(hosts(count, 1000), AccessConfig::Wired(access), instant_path())
}

fn wifi(count: usize, queue: QueueConfig) -> Config {
    let access = WifiConfig { access_point_queue: queue, ..WifiConfig::new(Standard::G) };
    access_point(hosts(count, 1000), AccessConfig::Wifi(access), instant_path())
}

/// The server on node 0, a fast link, node 1, a link as above, and all hosts on node 2.
fn links(count: usize, queue: QueueConfig) -> Config {
    let direction = |mbps, queue| DirectionConfig {
        rate: Rate::from_mbps(mbps),
        delay: Span::ZERO,
        queue,
        loss: Probability::ZERO,
        loss_at: LossAt::AfterQueue,
        impairments: Impairments::NONE,
    };
    let link = |ends, mbps, queue| LinkConfig { ends, forth: direction(mbps, queue), back: direction(mbps, queue) };
    let links = vec![link((0, 1), 100_000.0, QueueConfig::fifo(1000)), link((1, 2), 12.0, queue)];
    let links = LinksConfig { nodes: 3, attached: vec![2; count], links };
    Config::new(hosts(count, 1000), Topology::Links(links))
}

fn bulk(host: u16, rtt_ms: u64) -> Flow {
    Flow::new(host, Source::Bulk(Span::from_millis(rtt_ms)))
}

fn steady(host: u16, bytes: u64, gap_us: u64) -> Flow {
    Flow::new(host, Source::Steady(bytes, Span::from_micros(gap_us)))
}

/// Without any queue at all a window moves between the half of what fills the link and the whole: 75 % of 12 Mb/s.
#[test]
fn a_bulk_flow_leaves_a_standing_queue_near_target_and_still_fills_the_link() {
    for rtt_ms in [20, 50, 100, 200] {
        let measure = |queue| {
            let (flows, statistics) = run(wired, queue, vec![bulk(0, rtt_ms)]);
            let (delay, rate) = (flows[0].mean_delay_ms() - 1.0, flows[0].mbps());
            println!("{queue:?}, {rtt_ms} ms: {delay:.1} ms of queue, {rate:.2} Mb/s, {:?}", statistics.drops);
            (delay, rate, statistics)
        };
        let (delay, rate, statistics) = measure(QueueConfig::fq_codel(1000));
        assert!(delay < 5.0 && rate > 9.0, "{rtt_ms} ms: {delay} ms, {rate} Mb/s");
        assert_eq!(statistics.dropped(QueueId::AccessPoint, Cause::QueueFull), 0);
        assert!(statistics.dropped(QueueId::AccessPoint, Cause::CoDel) > 0);
        let (fifo_delay, ..) = measure(QueueConfig::fifo(100));
        assert!(fifo_delay > 5.0 * delay, "{rtt_ms} ms: {fifo_delay} ms");
    }
}

/// 10 packets a second too many: where the control law's drops are 100 ms apart, count = 100, it is in balance.
#[test]
fn a_small_overload_that_does_not_react_is_dropped_at_about_target() {
    let overload = || vec![steady(0, 1500, 990)];
    let (flows, statistics) = run(wired, QueueConfig::fq_codel(1000), overload());
    let delay = flows[0].mean_delay_ms() - 1.0;
    println!("{delay:.1} ms of queue, {:?}", statistics.drops);
    assert!((4.0..10.0).contains(&delay), "{delay} ms");
    let dropped = statistics.dropped(QueueId::AccessPoint, Cause::CoDel);
    // 60 s × 1000 × (1 / 0.99 - 1) = 606.
    assert!((570..=640).contains(&dropped), "{dropped} dropped");
    let (flows, _) = run(wired, QueueConfig::fifo(100), overload());
    println!("drop-tail: {:.1} ms of queue", flows[0].mean_delay_ms() - 1.0);
    assert!(flows[0].mean_delay_ms() > 95.0, "drop-tail: {} ms", flows[0].mean_delay_ms());
}

#[test]
fn a_sparse_flow_does_not_wait_behind_bulk() {
    for (name, bottleneck, frame_ms) in [
        ("wired", wired as Bottleneck, 1.0),
        ("links", links, 1.0),
        // 254 + 44 + 28 us, and 15 slots at most with nobody else there.
        ("802.11g", wifi, 0.461),
    ] {
        let flows = || vec![bulk(0, 20), bulk(1, 100), steady(2, 200, 19_990)];
        let (fair, _) = run(bottleneck, QueueConfig::fq_codel(1000), flows());
        let (fifo, _) = run(bottleneck, QueueConfig::fifo(100), flows());
        let [fair, fifo] = [&fair[2], &fifo[2]];
        println!("{name}: worst {:.2} ms, drop-tail mean {:.2} ms", fair.worst_delay_ms(), fifo.mean_delay_ms());
        // The frame being sent, one of each bulk flow that happens to be new as well, then its own.
        assert!(fair.worst_delay_ms() < 3.2 * frame_ms, "{name}: {} ms", fair.worst_delay_ms());
        assert!(fair.delays.len() >= 3000, "{name}: none is lost");
        assert!(fifo.mean_delay_ms() > 20.0 * frame_ms, "{name}, drop-tail: {} ms", fifo.mean_delay_ms());
    }
}

#[test]
fn shares_depend_little_on_round_trips() {
    for (name, bottleneck) in [("wired", wired as Bottleneck), ("links", links), ("802.11g", wifi)] {
        let ratio = |queue| {
            let (flows, _) = run(bottleneck, queue, vec![bulk(0, 20), bulk(1, 100)]);
            let [near, far] = [flows[0].mbps(), flows[1].mbps()];
            println!("{name}, {queue:?}: 20 ms {near:.2} Mb/s, 100 ms {far:.2} Mb/s");
            near / far
        };
        // What the far one misses of its half is what halving costs it without a queue of its own (above): 0.75 of 1/2 at worst.
        assert!(ratio(QueueConfig::fq_codel(1000)) < 1.0 / 0.6);
        assert!(ratio(QueueConfig::fifo(100)) > 2.0);
    }
}

/// Two bulk flows beside 120 % of the link that react to nothing: these lose what they have too much, at the limit too.
#[test]
fn a_flow_that_reacts_to_nothing_harms_itself() {
    let flows = || vec![bulk(0, 20), bulk(1, 20), steady(2, 1500, 833), steady(3, 200, 20_000)];
    let (fair, statistics) = run(wired, QueueConfig::fq_codel(200), flows());
    let rates: Vec<_> = fair.iter().map(Flow::mbps).collect();
    println!("{rates:?} Mb/s, {:?}", statistics.drops);
    // A third of 11.9 Mb/s each; drops cost the reacting ones some of it.
    assert!(rates[..2].iter().all(|rate| *rate > 0.8 * 11.9 / 3.0), "{rates:?}");
    assert!(statistics.dropped(QueueId::AccessPoint, Cause::QueueFull) > 0);
    assert_eq!(fair[3].delays.len(), 3000, "the sparse flow loses nothing");
    let (fifo, _) = run(wired, QueueConfig::fifo(200), flows());
    println!("drop-tail: {:?} Mb/s", fifo.iter().map(Flow::mbps).collect::<Vec<_>>());
    assert!(fifo[..2].iter().all(|flow| flow.mbps() < 0.5), "drop-tail: {:?} {:?}", fifo[0].mbps(), fifo[1].mbps());
}

/// The same flow as above, under each management of one queue.
#[test]
fn codel_and_pie_hold_a_bulk_flows_delay_and_red_its_average() {
    let measure = |discipline, packets| {
        let (flows, statistics) = run(wired, QueueConfig::of(discipline, packets), vec![bulk(0, 50)]);
        let (delay, rate) = (flows[0].mean_delay_ms() - 1.0, flows[0].mbps());
        println!("{discipline:?}: {delay:.1} ms of queue, {rate:.2} Mb/s, {:?}", statistics.drops);
        let early: u64 =
            [Cause::CoDel, Cause::Early].map(|cause| statistics.dropped(QueueId::AccessPoint, cause)).iter().sum();
        assert!(early > 0 && statistics.dropped(QueueId::AccessPoint, Cause::QueueFull) == 0);
        (delay, rate)
    };
    // A target of 5 ms; one of 15 ms; between thresholds of 8 and 25 packets, which take a millisecond each.
    for (discipline, packets, most_ms) in [
        (Discipline::Codel(CodelConfig::DEFAULT), 1000, 5.0),
        (Discipline::Pie, 1000, 15.0),
        (Discipline::FqPie, 10_240, 15.0),
        (Discipline::Red, 100, 25.0),
        (Discipline::Cake(CakeConfig::DEFAULT), 10_240, 5.0),
    ] {
        let (delay, rate) = measure(discipline, packets);
        assert!(delay < most_ms && rate > 9.0, "{discipline:?}: {delay} ms, {rate} Mb/s");
    }
}
