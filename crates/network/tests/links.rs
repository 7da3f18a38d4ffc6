//! Nodes and links: worked numbers, where packets are lost, which way they go, and what holds for every such network.

use crate::common::{hosts, packet, run, us};
use lasthop_network::{
    Cause, Config, Delivery, Departure, Destination, DirectionConfig, Discipline, Drops, FqCodelConfig, HostConfig,
    Impairments, LinkConfig, LinksConfig, LossAt, Network, NodeId, Packet, QueueConfig, QueueId, Topology, Way,
};
use lasthop_units::{Bytes, Probability, Rate, Span, Time};
use proptest::prelude::*;

fn direction(mbps: f64, delay_us: u64, queue_packets: usize) -> DirectionConfig {
    DirectionConfig {
        rate: Rate::from_mbps(mbps),
        delay: Span::from_micros(delay_us),
        queue: QueueConfig::fifo(queue_packets),
        loss: Probability::ZERO,
        loss_at: LossAt::AfterQueue,
        impairments: Impairments::NONE,
    }
}

fn link(one: usize, other: usize, direction: DirectionConfig) -> LinkConfig {
    LinkConfig { ends: (one, other), forth: direction, back: direction }
}

/// Hosts on these nodes.
fn links(nodes: usize, attached: &[usize], links: Vec<LinkConfig>) -> Config {
    let topology = Topology::Links(LinksConfig { nodes, attached: attached.to_vec(), links });
    Config::new(hosts(attached.len(), 1000), topology)
}

/// The dumbbell of [utsumi]: N1 and N2 (nodes 0 and 1, with hosts 0 and 1) at 100 Mb/s and 0 ms to R (node 2), from there
/// 10 Mb/s and 20 ms to N3 (node 3, a server). Queues of 50 packets.
fn dumbbell() -> Config {
    let bottleneck = direction(10.0, 20_000, 50);
    let access = direction(100.0, 0, 50);
    links(4, &[0, 1], vec![link(0, 2, access), link(1, 2, access), link(2, 3, bottleneck)])
}

const N3: u16 = 2 + 3;

const FORTH: Way = Way::Forth;
const BACK: Way = Way::Back;

fn place(link: u16, way: Way) -> QueueId {
    QueueId::Link { link, way }
}

fn arrivals(deliveries: &[Delivery<u32>]) -> Vec<(Time, u16, u32)> {
    deliveries.iter().map(|delivery| (delivery.at, delivery.to.0, delivery.packet.payload)).collect()
}

#[test]
fn a_packet_takes_the_serialisation_and_the_delay_of_each_link() {
    let mut network = Network::new(&dumbbell(), 1).unwrap();
    network.offer(Time::ZERO, packet(0, N3, 1500, 1)).unwrap();
    network.offer(Time::ZERO, packet(1, N3, 1500, 2)).unwrap();
    network.offer(Time::ZERO, packet(0, N3, 1500, 3)).unwrap();
    network.offer(us(30_000), packet(N3, 1, 40, 4)).unwrap();
    // 1500 B: 120 us at 100 Mb/s, 1200 us at 10 Mb/s. 1 and 2 are at R at 120, 3 at 240; link 0 goes before link 1.
    // At N3 at 120 + 1200 + 20000, each 1200 after the one before.
    // 40 B back: 32 us and 20000 us at 10 Mb/s, 3.2 us at 100 Mb/s: 30000 + 20032 + 3.2.
    let received = arrivals(&run(&mut network, us(100_000)));
    let back = Time::from_nanos(50_035_200);
    assert_eq!(received, [(us(21_320), N3, 1), (us(22_520), N3, 2), (us(23_720), N3, 3), (back, 1, 4)]);
    let statistics = network.statistics(us(100_000));
    // One event for each packet and link.
    assert_eq!(statistics.events, 8);
    let bottleneck = statistics.links.iter().find(|link| link.place == place(2, FORTH)).unwrap();
    assert_eq!((bottleneck.packets, bottleneck.data, bottleneck.busy), (3, Bytes::new(4500), Span::from_micros(3600)));
    assert!((bottleneck.utilization - 0.036).abs() < 1e-12 && (statistics.utilization - 0.036).abs() < 1e-12);
    // The queue at R: 1 from 120 to 1320, 2 from 120 to 2520, 3 from 240 to 3720: 1200 + 2400 + 3480 us in 100 ms.
    let queue = statistics.queue(place(2, FORTH));
    assert!((queue.mean_packets - 0.0708).abs() < 1e-12, "{queue:?}");
    assert_eq!((queue.max_packets, queue.p95_packets), (3, 0));
    assert_eq!(statistics.drops, []);
}

#[test]
fn packets_for_a_slow_link_are_lost_in_front_of_it() {
    // 100 packets of 1000 B from N1: one each 80 us at R, sent on in 800 us. Packet k comes at 80 k us; the first begins at 80,
    // so at 80 k the (k - 1) / 10 have been sent, and one that has been sent just now still counts. 50 places: by packet 50,
    // 4 have been sent; room runs out when k - 1 - sent = 50: packet 55 (5 sent at 80 × 51 = 4080) is number 50 in the queue, 56
    // finds 50 and is lost. Then one of ten gets in, packet 62 first (at 4960; the sixth was sent at 4880): 62, 72, 82, 92.
    let mut network = Network::new(&dumbbell(), 1).unwrap();
    let mut deliveries = Vec::new();
    for number in 1..=100 {
        // As fast as N1's own link takes them.
        network.offer(us(80 * (number - 1)), packet(0, N3, 1000, number as u32)).unwrap();
        network.advance(us(80 * (number - 1)), &mut deliveries);
    }
    deliveries.extend(run(&mut network, us(1_000_000)));
    let numbers: Vec<_> = deliveries.iter().map(|delivery| delivery.packet.payload).collect();
    let expected: Vec<_> = (1..=55).chain([62, 72, 82, 92]).collect();
    assert_eq!(numbers, expected);
    let drops = network.statistics(us(1_000_000)).drops;
    assert_eq!(drops, [Drops { place: place(2, FORTH), cause: Cause::QueueFull, count: 41 }]);
}

#[test]
fn the_senders_own_link_refuses_what_it_has_no_room_for() {
    let mut network = Network::new(&dumbbell(), 1).unwrap();
    let taken = (0..60).filter(|&number| network.offer(Time::ZERO, packet(0, N3, 1500, number)).is_ok()).count();
    assert_eq!((taken, network.room(NodeId(0)), network.room(NodeId(1))), (50, 0, 50));
    assert_eq!(network.queue_packets(place(0, FORTH)), 50);
    assert_eq!(network.statistics(Time::ZERO).dropped(place(0, FORTH), Cause::QueueFull), 10);
    // R has three links, the fullest of its queues counts; at 1200 us ten packets have come, one of which is being sent on.
    run(&mut network, us(1200));
    assert_eq!((network.room(NodeId(0)), network.room(NodeId(2 + 2))), (10, 40));
    assert_eq!(network.queue_packets(place(2, FORTH)), 10);
}

/// 2 nodes, one link of 12 Mb/s, where 1500 B take 1 ms; packets come every 2 ms.
fn lossy(loss_at: LossAt, queue_packets: usize) -> (Network<u32>, u64) {
    let lossy =
        DirectionConfig { loss: Probability::new(0.1).unwrap(), loss_at, ..direction(12.0, 500, queue_packets) };
    let config = links(2, &[0], vec![LinkConfig { ends: (0, 1), forth: lossy, back: direction(12.0, 500, 10_000) }]);
    let mut network = Network::new(&config, 1).unwrap();
    let mut received = 0;
    for number in 0..10_000 {
        network.offer(us(2000 * number), packet(0, 2, 1500, number as u32)).unwrap();
        received += run(&mut network, us(2000 * number)).len() as u64;
    }
    received += run(&mut network, us(20_000_000)).len() as u64;
    (network, received)
}

#[test]
fn what_is_lost_before_the_queue_takes_no_time_of_the_link() {
    let (network, received) = lossy(LossAt::BeforeQueue, 1);
    let statistics = network.statistics(us(20_000_000));
    let lost = statistics.dropped(place(0, FORTH), Cause::RandomLoss);
    // Binomial(10000, 0.1): mean 1000, standard deviation 30; five of them.
    assert!((850..=1150).contains(&lost), "{lost}");
    assert_eq!(received + lost, 10_000);
    let link = statistics.links[0];
    assert_eq!((link.packets, link.busy), (received, Span::from_millis(received)));
    assert!((statistics.queue(place(0, FORTH)).mean_packets - received as f64 / 20_000.0).abs() < 1e-12);
}

#[test]
fn what_is_lost_after_the_queue_takes_as_much_as_what_arrives() {
    let (network, received) = lossy(LossAt::AfterQueue, 1);
    let statistics = network.statistics(us(20_000_000));
    let lost = statistics.dropped(place(0, FORTH), Cause::RandomLoss);
    assert!((850..=1150).contains(&lost), "{lost}");
    assert_eq!(received + lost, 10_000);
    let link = statistics.links[0];
    assert_eq!((link.packets, link.busy, link.utilization), (10_000, Span::from_secs(10), 0.5));
    assert_eq!(statistics.queue(place(0, FORTH)).mean_packets, 0.5);
}

/// 10,000 packets, one each 2 ms, over 12 Mb/s and 20 ms: when they arrive, with their numbers.
fn impaired(impairments: Impairments, queue: QueueConfig) -> Vec<(Time, u32)> {
    let back = direction(12.0, 20_000, 100);
    let forth = DirectionConfig { queue, impairments, ..back };
    let mut network = Network::new(&links(2, &[0], vec![LinkConfig { ends: (0, 1), forth, back }]), 1).unwrap();
    let mut deliveries = Vec::new();
    for number in 0..10_000 {
        network.offer(us(2000 * number), packet(0, 2, 1500, number as u32)).unwrap();
        network.advance(us(2000 * number), &mut deliveries);
    }
    deliveries.extend(run(&mut network, us(30_000_000)));
    assert_eq!(network.packets_inside(), 0);
    assert!(deliveries.is_sorted_by_key(|delivery| delivery.at));
    deliveries.iter().map(|delivery| (delivery.at, delivery.packet.payload)).collect()
}

#[test]
fn impairments_are_the_same_behind_all_queues() {
    let share = |share| Probability::new(share).unwrap();
    let jitter = Span::from_millis(5);
    let all = Impairments { jitter, reorder: share(0.01), duplicate: share(0.02), ..Impairments::NONE };
    let received = impaired(all, QueueConfig::fifo(100));
    assert_eq!(received, impaired(all, QueueConfig::fq_codel(100)));
    // Binomial(10000, 0.02): mean 200, standard deviation 14; five of them.
    assert!((10_130..=10_270).contains(&received.len()), "{}", received.len());
    // Those of 1 % are sent at 2000 k + 1000, and wait for nobody.
    let at_once = received.iter().filter(|(at, number)| *at == us(2000 * u64::from(*number) + 1000)).count();
    // Binomial(10200, 0.01): mean 102, standard deviation 10; five of them.
    assert!((52..=152).contains(&at_once), "{at_once}");
}

#[test]
fn jitter_keeps_the_order_unless_it_may_reorder() {
    let jitter = Impairments { jitter: Span::from_millis(5), ..Impairments::NONE };
    let late = |received: &[(Time, u32)]| received.windows(2).filter(|pair| pair[0].1 > pair[1].1).count();
    let (kept, free) = (impaired(jitter, QueueConfig::fifo(100)), Impairments { jitter_reorders: true, ..jitter });
    assert_eq!((late(&kept), kept.len()), (0, 10_000));
    let free = impaired(free, QueueConfig::fifo(100));
    // Two neighbours change places where their draws differ by more than 2 ms: with a deviation of 5 √2 ms in 39 % of all, and
    // some more or fewer where a third one comes between them.
    assert!((2500..=4500).contains(&late(&free)) && free.len() == 10_000, "{}", late(&free));
}

#[test]
fn losses_of_one_direction_touch_no_other() {
    let (mut network, _) = lossy(LossAt::AfterQueue, 1);
    for number in 0..1000 {
        network.offer(us(20_000_000), packet(2, 0, 40, number)).unwrap();
    }
    assert_eq!(run(&mut network, us(30_000_000)).len(), 1000);
}

#[test]
fn packets_take_the_fewest_links_and_of_equals_the_first() {
    // Nodes 0 to 3 with hosts: 0-1-3 and 0-2-3 have two links each, 0-4-5-3 has three.
    let far = direction(12.0, 0, 10);
    let ends = [(4, 0), (4, 5), (5, 3), (2, 0), (1, 0), (1, 3), (2, 3)];
    let config = links(6, &[0, 1, 2, 3], ends.iter().map(|&(one, other)| link(one, other, far)).collect());
    let mut network = Network::new(&config, 1).unwrap();
    network.offer(Time::ZERO, packet(0, 3, 1500, 1)).unwrap();
    network.offer(Time::ZERO, packet(3, 0, 1500, 2)).unwrap();
    run(&mut network, us(100_000));
    let carried: Vec<_> = network.statistics(us(100_000)).links.iter().map(|link| link.packets).collect();
    // There: 2-0 (link 3, back) stands before 1-0, then 2-3 (link 6, forth). Back: 1-3 (link 5) stands before 2-3; 1-0 (4).
    let mut expected = [0; 14];
    for direction in [2 * 3 + 1, 2 * 6, 2 * 5 + 1, 2 * 4] {
        expected[direction] = 1;
    }
    assert_eq!(carried, expected);
}

#[test]
fn hosts_on_one_node_reach_each_other_at_once_and_broadcasts_stay_there() {
    let config = links(2, &[0, 0, 0, 1], vec![link(0, 1, direction(12.0, 0, 10))]);
    let mut network = Network::new(&config, 1).unwrap();
    (0..3).for_each(|host| network.report_departures(NodeId(host)));
    network.offer(us(5), packet(0, 1, 1500, 1)).unwrap();
    let to = Destination::Broadcast;
    network.offer(us(6), Packet { to, ..packet(1, 0, 1500, 2) }).unwrap();
    // Node 0 itself is 4.
    network.offer(us(7), packet(4, 2, 1500, 3)).unwrap();
    assert_eq!((network.next_wakeup(), network.packets_inside()), (Some(us(5)), 4));
    let mut departed = Vec::new();
    network.take_departed(&mut departed);
    assert_eq!(
        departed,
        [0, 1].map(|node| Departure { node: NodeId(node), flow: 0, id: 0, size: Bytes::new(1500), made_room: false }),
        "each has left at once; node 0 is not asked about"
    );
    let received = arrivals(&run(&mut network, us(100)));
    assert_eq!(received, [(us(5), 1, 1), (us(6), 0, 2), (us(6), 2, 2), (us(7), 2, 3)]);
    assert_eq!((network.next_wakeup(), network.packets_inside()), (None, 0));
}

#[test]
fn a_host_hears_when_its_packets_have_left_the_first_queue() {
    let mut config = dumbbell();
    config.hosts[0].reports_departures = true;
    let mut network = Network::new(&config, 1).unwrap();
    network.report_departures(NodeId(N3));
    for number in 0..2 {
        network.offer(Time::ZERO, packet(0, N3, 1500, number)).unwrap();
        network.offer(Time::ZERO, packet(1, N3, 1500, number)).unwrap();
        network.offer(Time::ZERO, packet(N3, 0, 1500, number)).unwrap();
    }
    let (mut deliveries, mut departed, mut heard) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(now) = network.next_wakeup() {
        network.advance(now, &mut deliveries);
        network.take_departed(&mut departed);
        heard.extend(departed.drain(..).map(|departure| (now, departure.node.0)));
    }
    // 120 us each at N1's link, 1200 us each at N3's. Of N2's packets nobody is told, nor of N1's when they leave R.
    assert_eq!(heard, [(us(120), 0), (us(240), 0), (us(1200), N3), (us(2400), N3)]);
    assert_eq!(deliveries.len(), 6);
}

#[test]
fn what_leaves_by_another_link_or_in_another_order_is_named_by_its_flow() {
    // One node with a slow link to 1 (12 ms for 1500 bytes) and a fast one to 2 (120 us), and FQ-CoDel on the fast one: flow 7
    // begins while flow 6 has a queue, and goes before it.
    let fq_codel = Discipline::FqCodel(FqCodelConfig::default());
    let queue = QueueConfig { discipline: fq_codel, ..QueueConfig::fifo(10) };
    let fast = DirectionConfig { queue, ..direction(100.0, 0, 10) };
    let config = links(3, &[0, 1, 2], vec![link(0, 1, direction(1.0, 0, 10)), link(0, 2, fast)]);
    let mut network = Network::new(&config, 1).unwrap();
    network.report_departures(NodeId(0));
    for (to, flow) in [(1, 5), (2, 6), (2, 6), (2, 6), (2, 7)] {
        network.offer(Time::ZERO, Packet { flow, ..packet(0, to, 1500, flow) }).unwrap();
    }
    let (mut deliveries, mut departed, mut heard) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(now) = network.next_wakeup() {
        network.advance(now, &mut deliveries);
        network.take_departed(&mut departed);
        heard.extend(departed.drain(..).map(|departure| (now, departure.flow)));
    }
    let expected = [(us(120), 6), (us(240), 7), (us(360), 6), (us(480), 6), (us(12_000), 5)];
    assert_eq!(heard, expected);
}

#[test]
fn a_departure_that_happened_while_a_packet_was_offered_wakes_at_once() {
    let mut config = dumbbell();
    config.hosts[0].reports_departures = true;
    let mut network = Network::new(&config, 1).unwrap();
    network.offer(Time::ZERO, packet(0, N3, 1500, 1)).unwrap();
    network.offer(us(500), packet(1, N3, 1500, 2)).unwrap();
    assert_eq!(network.next_wakeup(), Some(us(500)));
    let mut departed = Vec::new();
    network.take_departed(&mut departed);
    assert_eq!(
        (departed, network.next_wakeup()),
        (vec![Departure { node: NodeId(0), flow: 0, id: 0, size: Bytes::new(1500), made_room: false }], Some(us(620)))
    );
}

#[test]
fn a_config_error_names_what_is_wrong() {
    let error = |change: &dyn Fn(&mut Config, &mut LinksConfig)| {
        let mut config = dumbbell();
        let Topology::Links(mut links) = config.topology.clone() else { unreachable!("a dumbbell has links") };
        change(&mut config, &mut links);
        config.topology = Topology::Links(links);
        Network::<()>::new(&config, 1).unwrap_err().to_string()
    };
    assert_eq!(error(&|_, links| links.nodes = 1), "nodes is 1 nodes; accepted: 2 to 1024 nodes");
    assert_eq!(
        error(&|_, links| links.attached.truncate(1)),
        "attached is for 1 hosts; accepted: a node for each of the 2 hosts"
    );
    assert_eq!(error(&|_, links| links.attached[1] = 4), "attached is node 4 for host 1; accepted: nodes 0 to 3");
    assert_eq!(
        error(&|_, links| links.links[1].ends = (1, 1)),
        "links[1].ends is nodes 1 and 1; accepted: two different ones of nodes 0 to 3"
    );
    assert_eq!(
        error(&|_, links| links.links[1].ends = (0, 2)),
        "links is without a way from node 0 to node 1; accepted: links that connect every node with every other"
    );
    assert_eq!(
        error(&|_, links| links.links[2].back.rate = Rate::ZERO),
        "links[2].back.rate is 0 Mb/s; accepted: more than 0 Mb/s"
    );
    assert_eq!(
        error(&|_, links| links.links[2].forth.queue.packets = 0),
        "links[2].forth.queue.packets is 0; accepted: 1 packet or more"
    );
    assert_eq!(
        error(&|config, _| config.hosts[1].rate = Some(Rate::from_mbps(54.0))),
        "hosts[1].rate is 54 Mb/s; accepted: none, for hosts on a node send at the rates of its links"
    );
    let rtt = (Span::from_millis(4), Span::from_millis(8));
    assert_eq!(
        error(&|config, _| config.hosts[0].path = Some(lasthop_network::HostPath { rtt, change_every: Span::ZERO })),
        "hosts[0].path is 4 ms to 8 ms; accepted: none, for the delays of links are theirs"
    );
    assert_eq!(
        error(&|config, _| config.hosts = vec![HostConfig::new(1); 65_532]),
        "hosts is 65532 hosts; accepted: 1 to 65531 hosts"
    );
}

/// Trees of up to 8 nodes with some links more, hosts anywhere.
fn configs(disciplines: bool) -> impl Strategy<Value = Config> {
    let discipline = if disciplines {
        prop_oneof![3 => Just(Discipline::Fifo), 1 => Just(Discipline::FqCodel(lasthop_network::FqCodelConfig::default()))]
            .boxed()
    } else {
        Just(Discipline::Fifo).boxed()
    };
    let loss = prop_oneof![2 => Just(0.0), 1 => 0.0..0.4];
    // Round rates, so that much happens at the same time.
    let rate = prop_oneof![Just(1.0), Just(10.0), Just(100.0), 0.5..200.0];
    let direction = (rate, prop_oneof![Just(0), 0..3000_u64], 1..8_usize, discipline, loss, any::<bool>());
    let direction = direction.prop_map(|(mbps, delay_us, packets, discipline, loss, before)| DirectionConfig {
        queue: QueueConfig::of(discipline, packets),
        loss: Probability::new(loss).unwrap(),
        loss_at: if before { LossAt::BeforeQueue } else { LossAt::AfterQueue },
        impairments: Impairments::NONE,
        ..self::direction(mbps, delay_us, 1)
    });
    let link = (any::<usize>(), any::<usize>(), direction.clone(), direction);
    (2..8_usize, prop::collection::vec(link, 7..12), prop::collection::vec(any::<usize>(), 1..6)).prop_map(
        |(nodes, all, attached)| {
            let links = all.into_iter().enumerate().map(|(index, (one, other, forth, back))| {
                // Node k + 1 hangs on one of the nodes before it; what is left is anywhere.
                let (one, other) =
                    if index + 1 < nodes { (index + 1, other % (index + 1)) } else { (one % nodes, other % nodes) };
                LinkConfig { ends: (one, if one == other { (one + 1) % nodes } else { other }), forth, back }
            });
            let attached: Vec<_> = attached.into_iter().map(|node| node % nodes).collect();
            self::links(nodes, &attached, links.collect())
        },
    )
}

type Offers = Vec<(u64, u16, u16, u64)>;

fn offers() -> impl Strategy<Value = Offers> {
    let gaps = prop_oneof![3 => Just(0), 3 => 0..200_000_u64, 1 => 0..20_000_000_u64];
    let sizes = prop_oneof![Just(1500), Just(1000), 1..1500_u64];
    prop::collection::vec((gaps, any::<u16>(), any::<u16>(), sizes), 0..80)
}

/// How many senders and receivers there are: hosts, and the nodes themselves.
fn network_nodes(config: &Config) -> u16 {
    let Topology::Links(links) = &config.topology else { unreachable!("these networks have links") };
    (config.hosts.len() + links.nodes) as u16
}

/// The offers as packets numbered in order, unicast between any two nodes, with their times.
fn packets(config: &Config, offers: &Offers) -> Vec<(Time, Packet<usize>)> {
    let nodes = network_nodes(config);
    let mut now = Time::ZERO;
    let numbered = offers.iter().enumerate();
    let packets = numbered.map(|(number, &(gap, from, to, bytes))| {
        now += Span::from_nanos(gap);
        (now, Packet { flow: u32::from(from), ..packet(from % nodes, to % nodes, bytes, number) })
    });
    packets.collect()
}

/// Offers everything, and calls `advance` at each wakeup or, with `late`, only at the offers and at the end.
fn drive(config: &Config, seed: u64, offers: &Offers, late: bool) -> (Network<usize>, Vec<Delivery<usize>>) {
    let mut network = Network::new(config, seed).unwrap();
    let mut deliveries = Vec::new();
    let (mut accepted, mut refused) = (0, 0);
    for (now, packet) in packets(config, offers) {
        while let Some(at) = network.next_wakeup().filter(|&at| at <= now && !late) {
            network.advance(at, &mut deliveries);
            // Packets are conserved at every step.
            let lost: u64 = network.statistics(at).drops.iter().map(|drops| drops.count).sum();
            let inside = network.packets_inside() as u64;
            assert_eq!(accepted + refused, deliveries.len() as u64 + lost + inside);
        }
        match network.offer(now, packet) {
            Ok(()) => accepted += 1,
            Err(_) => refused += 1,
        }
        let Topology::Links(links) = &config.topology else { unreachable!("these networks have links") };
        for (index, link) in links.links.iter().enumerate() {
            for (way, direction) in [(FORTH, link.forth), (BACK, link.back)] {
                assert!(network.queue_packets(place(index as u16, way)) <= direction.queue.packets);
            }
        }
    }
    network.advance(Time::ZERO + Span::from_secs(1_000_000), &mut deliveries);
    (network, deliveries)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn packets_are_delivered_or_counted_as_lost(config in configs(true), seed: u64, offers in offers()) {
        let (network, deliveries) = drive(&config, seed, &offers, false);
        prop_assert_eq!(network.packets_inside(), 0);
        prop_assert_eq!(network.next_wakeup(), None);
        let lost: u64 = network.statistics(Time::ZERO).drops.iter().map(|drops| drops.count).sum();
        prop_assert_eq!(deliveries.len() as u64 + lost, offers.len() as u64);
        let packets = packets(&config, &offers);
        let mut numbers: Vec<_> = deliveries.iter().map(|delivery| delivery.packet.payload).collect();
        for delivery in &deliveries {
            let (offered, packet) = &packets[delivery.packet.payload];
            prop_assert_eq!(&delivery.packet, packet);
            prop_assert_eq!(packet.to, Destination::Node(delivery.to));
            prop_assert!(delivery.at >= *offered);
        }
        prop_assert!(deliveries.is_sorted_by_key(|delivery| delivery.at));
        numbers.sort_unstable();
        prop_assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "nothing arrives twice");
    }

    #[test]
    fn packets_from_one_node_to_another_arrive_in_order(config in configs(false), seed: u64, offers in offers()) {
        let (_, deliveries) = drive(&config, seed, &offers, false);
        for first in &deliveries {
            let between = |delivery: &&Delivery<usize>| {
                (delivery.packet.from, delivery.to) == (first.packet.from, first.to)
            };
            let numbers = deliveries.iter().filter(between).map(|delivery| delivery.packet.payload);
            prop_assert!(numbers.is_sorted());
        }
    }

    #[test]
    fn what_was_accepted_leaves_the_first_queue_once(config in configs(true), seed: u64, offers in offers()) {
        let mut network = Network::new(&config, seed).unwrap();
        let nodes = network_nodes(&config);
        (0..nodes).for_each(|node| network.report_departures(NodeId(node)));
        let mut accepted = vec![0; nodes.into()];
        let (mut deliveries, mut departed) = (Vec::new(), Vec::new());
        for (now, packet) in packets(&config, &offers) {
            let from = packet.from.index();
            accepted[from] += usize::from(network.offer(now, packet).is_ok());
        }
        while let Some(now) = network.next_wakeup() {
            network.advance(now, &mut deliveries);
            network.take_departed(&mut departed);
        }
        for (node, accepted) in accepted.into_iter().enumerate() {
            prop_assert_eq!(departed.iter().filter(|departed| departed.node.index() == node).count(), accepted);
        }
    }

    #[test]
    fn stepping_and_leaping_give_the_same(config in configs(true), seed: u64, offers in offers()) {
        let (stepped, step_by_step) = drive(&config, seed, &offers, false);
        let (leapt, in_leaps) = drive(&config, seed, &offers, true);
        prop_assert_eq!(step_by_step, in_leaps);
        let at = Time::ZERO + Span::from_secs(2_000_000);
        prop_assert_eq!(stepped.statistics(at), leapt.statistics(at));
    }

    #[test]
    fn the_busy_time_of_a_link_is_what_its_packets_take(config in configs(true), seed: u64, offers in offers()) {
        let (network, _) = drive(&config, seed, &offers, false);
        let Topology::Links(links) = &config.topology else { unreachable!("these networks have links") };
        let statistics = network.statistics(Time::ZERO);
        for carried in &statistics.links {
            let QueueId::Link { link, way } = carried.place else { unreachable!("these networks have links") };
            let LinkConfig { forth, back, .. } = links.links[usize::from(link)];
            let rate = if way == FORTH { forth.rate } else { back.rate };
            let together = rate.transmission_time(carried.data);
            // Each packet's time is rounded up to the nanosecond.
            let most = together + Span::from_nanos(carried.packets);
            prop_assert!((together..=most).contains(&(carried.busy + Span::from_nanos(1))) || carried.busy == together);
        }
    }
}
