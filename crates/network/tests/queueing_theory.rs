//! A link against queueing theory: Poisson arrivals, constant service, one server.

use lasthop_network::random::Streams;
use lasthop_network::{
    Cause, Config, Destination, DirectionConfig, HostConfig, Impairments, LinkConfig, LinksConfig, LossAt, Network,
    NodeId, Packet, QueueConfig, QueueId, QueueStatistics, Topology, Way,
};
use lasthop_units::{Bytes, Ecn, Probability, Rate, Span, Time};
use rand::Rng;

const PACKETS: u64 = 1_000_000;

/// A link that takes 1 ms for a packet, with so much room, at this load. Gives what its queue was like and the share lost.
fn poisson(load: f64, room: usize) -> (QueueStatistics, f64) {
    let direction = DirectionConfig {
        rate: Rate::from_mbps(12.0),
        delay: Span::from_millis(20),
        queue: QueueConfig::fifo(room),
        loss: Probability::ZERO,
        loss_at: LossAt::AfterQueue,
        impairments: Impairments::NONE,
    };
    let links = vec![LinkConfig { ends: (0, 1), forth: direction, back: direction }];
    let topology = Topology::Links(LinksConfig { nodes: 2, attached: vec![0], links });
    let mut network = Network::new(&Config::new(vec![HostConfig::new(1)], topology), 1).unwrap();
    let mut gaps = Streams::new(1).stream("gaps");
    let mut deliveries = Vec::new();
    let mut now = Time::ZERO;
    for _ in 0..PACKETS {
        // (0, 1], so that its logarithm is finite.
        let uniform = ((gaps.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        now += Span::from_secs_f64(-uniform.ln() * 1e-3 / load);
        let to = Destination::Node(NodeId(2));
        let _refused = network.offer(
            now,
            Packet {
                from: NodeId(0),
                to,
                size: Bytes::new(1500),
                flow: 0,
                dscp: 0,
                ecn: Ecn::NotEct,
                id: 0,
                payload: (),
            },
        );
        network.advance(now, &mut deliveries);
        deliveries.clear();
    }
    let statistics = network.statistics(now);
    let place = QueueId::Link { link: 0, way: Way::Forth };
    (statistics.queue(place), statistics.dropped(place, Cause::QueueFull) as f64 / PACKETS as f64)
}

/// M/D/1, Pollaczek and Khinchine: in the system, with the one in service, L = rho + rho^2 / (2 (1 - rho)) packets.
///
/// What passes between two times at which the queue is empty is independent of the rest; at a load of 0.9 that is some ten packets
/// in the mean with a long tail, so that a million packets leave 1 % of statistical error. Three of these.
#[test]
fn the_mean_queue_is_that_of_m_d_1() {
    // 0.5 + 0.25 / 1 = 0.75; 0.8 + 0.64 / 0.4 = 2.4; 0.9 + 0.81 / 0.2 = 4.95.
    for (load, expected) in [(0.5, 0.75), (0.8, 2.4), (0.9, 4.95)] {
        let (queue, lost) = poisson(load, 100_000);
        println!("load {load}: {:.4} packets, M/D/1 {expected}", queue.mean_packets);
        assert!((queue.mean_packets / expected - 1.0).abs() < 0.03, "load {load}: {queue:?}");
        assert_eq!(lost, 0.0);
    }
}

/// M/D/1/K with K = 2, one in service and one waiting: what a departing packet leaves behind is the embedded Markov chain. With
/// a = exp(-rho), nobody comes in a service time with a, so the share p of departures that leave an empty system is a, and P(0), the
/// share of time in which it is empty, is p / (p + rho). Lost is what exceeds the service: 1 - (1 - P(0)) / rho.
#[test]
fn the_loss_of_a_short_queue_is_that_of_m_d_1_k() {
    // rho = 1: a = 0.367879, P(0) = 0.367879 / 1.367879 = 0.268941, lost 0.268941.
    // rho = 0.5: a = 0.606531, P(0) = 0.606531 / 1.106531 = 0.548137, lost 1 - 0.451863 / 0.5 = 0.096274.
    // rho = 2: a = 0.135335, P(0) = 0.135335 / 2.135335 = 0.063379, lost 1 - 0.936621 / 2 = 0.531690.
    // Binomial deviation of a million: at most 0.0005; losses come in bunches, so five times that.
    for (load, expected) in [(1.0, 0.268_941), (0.5, 0.096_274), (2.0, 0.531_690)] {
        let (queue, lost) = poisson(load, 2);
        println!("load {load}: {lost:.5} lost, M/D/1/2 {expected}");
        assert!((lost - expected).abs() < 0.0025, "load {load}: {lost}");
        assert_eq!(queue.max_packets, 2);
    }
}
