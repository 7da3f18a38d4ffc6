//! Networks that change: a wired link takes a change up at once, a frame on the air ends as it began.

use crate::common::{access_point, hosts, instant_path, packet, run, us, wifi};
use lasthop_network::{
    AccessConfig, Cause, Change, Changed, Config, Delivery, Destination, DirectionChange, DirectionConfig, HostConfig,
    HostPath, Impairments, LinkConfig, LinksConfig, LossAt, Network, NodeId, PathConfig, QueueConfig, QueueId,
    RateControl, Standard, Topology, Way, WifiConfig, WiredAccessConfig,
};
use lasthop_units::{Bytes, Probability, Rate, Span, Time};
use proptest::prelude::*;

const FORTH: QueueId = QueueId::Link { link: 0, way: Way::Forth };

/// A host on node 0, a link of 8 Mb/s and 10 ms to node 1, where 1000 bytes take 1 ms, and room for 100 packets.
fn one_link(changes: Vec<Change>) -> Config {
    let direction = DirectionConfig {
        rate: Rate::from_mbps(8.0),
        delay: Span::from_millis(10),
        queue: QueueConfig::fifo(100),
        loss: Probability::ZERO,
        loss_at: LossAt::AfterQueue,
        impairments: Impairments::NONE,
    };
    let links = vec![LinkConfig { ends: (0, 1), forth: direction, back: direction }];
    let topology = Topology::Links(LinksConfig { nodes: 2, attached: vec![0], links });
    Config { changes, ..Config::new(hosts(1, 1), topology) }
}

const SERVER: u16 = 1 + 1;

fn link(at_us: u64, to: DirectionChange) -> Change {
    Change { at: us(at_us), what: Changed::Link { link: 0, way: Way::Forth, to } }
}

fn rate(mbps: f64) -> DirectionChange {
    DirectionChange { rate: Some(Rate::from_mbps(mbps)), ..DirectionChange::default() }
}

fn delay(micros: u64) -> DirectionChange {
    DirectionChange { delay: Some(Span::from_micros(micros)), ..DirectionChange::default() }
}

fn loss(probability: f64) -> DirectionChange {
    DirectionChange { loss: Some(Probability::new(probability).unwrap()), ..DirectionChange::default() }
}

/// Microseconds at which so many packets of 1000 bytes arrive that are offered at time zero.
fn arrivals(config: &Config, packets: u32) -> Vec<f64> {
    let mut network = Network::new(config, 1).unwrap();
    for number in 0..packets {
        network.offer(Time::ZERO, packet(0, SERVER, 1000, number)).unwrap();
    }
    run(&mut network, us(1_000_000)).iter().map(|delivery| delivery.at.as_nanos() as f64 / 1e3).collect()
}

#[test]
fn what_is_left_of_a_packet_goes_at_the_new_rate() {
    // Half of the second packet has been sent at 1500 us: the rest takes 1 ms at 4 Mb/s, until 2500. A quarter of the third
    // has been sent at 3000; the rest takes 375 us at 16 Mb/s, and the fourth 500.
    let changes = vec![link(1500, rate(4.0)), link(3000, rate(16.0))];
    assert_eq!(arrivals(&one_link(changes), 4), [11_000.0, 12_500.0, 13_375.0, 13_875.0]);
    // Several changes within one packet: 200 bytes at 8 Mb/s, 1 in a millisecond at 8 kb/s, 799 at 16 Mb/s.
    let changes = vec![link(200, rate(0.008)), link(1200, rate(16.0))];
    assert_eq!(arrivals(&one_link(changes), 2), [11_599.5, 12_099.5]);
}

#[test]
fn a_change_comes_before_all_else_of_its_moment() {
    // At 1000 us the first packet has been sent, and the second begins, at 4 Mb/s already.
    assert_eq!(arrivals(&one_link(vec![link(1000, rate(4.0))]), 2), [11_000.0, 13_000.0]);
    // What is offered at 0 finds the link as it is from 0 on.
    assert_eq!(arrivals(&one_link(vec![link(0, rate(4.0))]), 1), [12_000.0]);
}

#[test]
fn changes_of_one_moment_happen_in_the_order_of_the_configuration() {
    // At 100 us 900 bytes are left, at 500 us 100: 200 us at 4 Mb/s.
    let changes = vec![link(500, rate(2.0)), link(100, rate(16.0)), link(500, rate(4.0))];
    assert_eq!(arrivals(&one_link(changes), 2), [10_700.0, 12_700.0]);
}

#[test]
fn behind_a_delay_that_falls_nothing_overtakes() {
    // Sent at 1000, 2000, .., 5000; from 2500 on the delay is 8.2 ms: the third could be there at 11.2 ms and arrives right
    // behind the second at 12; the fourth arrives at 12.2. At 4500 the delay rises again.
    let changes = vec![link(2500, delay(8200)), link(4500, delay(20_000))];
    assert_eq!(arrivals(&one_link(changes), 5), [11_000.0, 12_000.0, 12_000.0, 12_200.0, 25_000.0]);
}

#[test]
fn a_link_that_loses_all_for_a_while_carries_again() {
    let config = one_link(vec![link(1500, loss(1.0)), link(3500, loss(0.0))]);
    // The second is lost when it has been sent, at 2000, and the third; the first was there before, the fourth comes after.
    assert_eq!(arrivals(&config, 4), [11_000.0, 14_000.0]);
    let mut network = Network::new(&config, 1).unwrap();
    for number in 0..4 {
        network.offer(Time::ZERO, packet(0, SERVER, 1000, number)).unwrap();
    }
    run(&mut network, us(100_000));
    let statistics = network.statistics(us(100_000));
    assert_eq!(statistics.dropped(FORTH, Cause::RandomLoss), 2);
    assert_eq!((statistics.links[0].packets, statistics.links[0].busy), (4, Span::from_millis(4)));
}

#[test]
fn the_other_direction_and_the_configuration_before_the_change_stay() {
    let config = one_link(vec![link(0, rate(1.0))]);
    let mut network = Network::new(&config, 1).unwrap();
    network.offer(us(5), packet(SERVER, 0, 1000, 0)).unwrap();
    assert_eq!(run(&mut network, us(100_000))[0].at, us(11_005));
    let Topology::Links(links) = &config.topology else { unreachable!() };
    assert_eq!(links.links[0].forth.rate, Rate::from_mbps(8.0));
}

/// A host behind 1 Gb/s (1500 B in 12 us), a path of 12 Mb/s (1500 B in 1 ms) and 100 ms.
fn wired(own: Option<HostPath>, what: Changed, at_us: u64) -> Config {
    let queue = QueueConfig::fifo(100);
    let access = WiredAccessConfig { rate: Rate::from_mbps(1000.0), delay: Span::ZERO, queue };
    let path = PathConfig {
        rtt: Span::from_millis(100),
        rate: Rate::from_mbps(12.0),
        loss: Probability::ZERO,
        queue_packets: 100,
        back_loss: Probability::ZERO,
        impairments: [Impairments::NONE; 2],
    };
    let mut all = hosts(2, 100);
    all[1].path = own;
    let config = access_point(all, AccessConfig::Wired(access), path);
    Config { changes: vec![Change { at: us(at_us), what }], ..config }
}

#[test]
fn a_path_gets_longer_and_slower_but_not_that_of_hosts_with_a_path_of_their_own() {
    let what = Changed::Path {
        rtt: Some(Span::from_millis(300)),
        rate: Some(Rate::from_mbps(6.0)),
        loss: None,
        held: None,
        opportunities: None,
    };
    // From host 0 twice: 12 + 1000 us and 50 ms at first, then, at 200 ms, 12 + 2000 us and 150 ms.
    let mut network = Network::new(&wired(None, what, 100_000), 1).unwrap();
    let mut received = Vec::new();
    for at in [0, 200_000] {
        network.offer(us(at), packet(0, 2, 1500, ())).unwrap();
        received.extend(run(&mut network, us(at + 200_000)).iter().map(|delivery| delivery.at));
    }
    assert_eq!(received, [us(51_012), us(200_000 + 152_012)]);
    // Host 1 with 20 ms of its own: 10 ms each way before and after; both hosts share the rate.
    let own = HostPath { rtt: (Span::from_millis(20), Span::from_millis(20)), change_every: Span::ZERO };
    let config = wired(Some(own), what, 100_000);
    let mut network = Network::new(&config, 1).unwrap();
    for (at, host) in [(0, 0), (0, 1), (200_000, 0), (200_000, 1)] {
        network.offer(us(at), packet(host, 2, 1500, ())).unwrap();
    }
    let received: Vec<_> = run(&mut network, us(1_000_000)).iter().map(|delivery| delivery.at).collect();
    assert_eq!(received, [us(12_012), us(51_012), us(200_000 + 14_012), us(200_000 + 152_012)]);
}

#[test]
fn a_wired_access_changes_both_ways() {
    let what = Changed::Wired {
        rate: Some(Rate::from_mbps(12.0)),
        delay: Some(Span::from_millis(5)),
        held: None,
        opportunities: None,
    };
    let mut network = Network::new(&wired(None, what, 100), 1).unwrap();
    network.offer(us(200), packet(0, 2, 1500, ())).unwrap();
    network.offer(us(200), packet(2, 0, 1500, ())).unwrap();
    let received: Vec<_> = run(&mut network, us(200_000)).iter().map(|delivery| delivery.at).collect();
    // 1 ms and 5 ms of access, 1 ms and 50 ms of path, in either order.
    assert_eq!(received, [us(57_200), us(57_200)]);
}

#[test]
fn path_and_wired_access_take_up_a_rate_in_the_middle_of_a_packet() {
    let received = |from, to, what, at| {
        let mut network = Network::new(&wired(None, what, at), 1).unwrap();
        network.offer(us(0), packet(from, to, 1500, ())).unwrap();
        run(&mut network, us(200_000))[0].at
    };
    // On the path from 12 to 1012 us; from 512 on half of it is left, for 1 ms at 6 Mb/s.
    let path = |mbps| Changed::Path {
        rtt: None,
        rate: Some(Rate::from_mbps(mbps)),
        loss: None,
        held: None,
        opportunities: None,
    };
    assert_eq!(received(0, 2, path(6.0), 512), us(1512 + 50_000));
    // The other way the path is first, from 0 to 1000 us.
    assert_eq!(received(2, 0, path(6.0), 500), us(1500 + 50_000 + 12));
    // On the access from 0 to 12 us; half of it takes 6 ms at 1 Mb/s. Then 1 ms and 50 ms of path.
    let access =
        |mbps| Changed::Wired { rate: Some(Rate::from_mbps(mbps)), delay: None, held: None, opportunities: None };
    assert_eq!(received(0, 2, access(1.0), 6), us(6 + 6000 + 51_000));
    assert_eq!(received(2, 0, access(1.0), 51_006), us(51_006 + 6000));
}

fn station(at_us: u64, host: usize, mbps: Option<f64>, errors: Option<f64>) -> Change {
    let frame_error_rate = errors.map(|errors| Probability::new(errors).unwrap());
    Change {
        at: us(at_us),
        what: Changed::Station {
            host,
            rate: mbps.map(Rate::from_mbps),
            mcs: None,
            frame_error_rate,
            snr_db: None,
            held: None,
        },
    }
}

/// ```text
///       0                  254   298
///  AP   |###### 54 ########|.|aaa|      to station 0: a frame that begins later takes 2078 us at 6 Mb/s
/// ```
#[test]
fn the_frame_on_the_air_ends_at_its_rate() {
    let config = wifi(1, 10, WifiConfig::new(Standard::G));
    let config = Config { changes: vec![station(100, 0, Some(6.0), None)], ..config };
    let mut network = Network::new(&config, 1).unwrap();
    network.offer(Time::ZERO, packet(0, 1, 1500, ())).unwrap();
    let first = run(&mut network, us(5000))[0].at;
    assert_eq!(first, us(254) + Span::from_nanos(120));
    network.offer(us(5000), packet(0, 1, 1500, ())).unwrap();
    assert_eq!(run(&mut network, us(10_000))[0].at, us(5000 + 2078) + Span::from_nanos(120));
    // Down as well.
    network.offer(us(10_000), packet(1, 0, 1500, ())).unwrap();
    assert_eq!(run(&mut network, us(20_000))[0].at, us(10_000 + 2078) + Span::from_nanos(120));
}

#[test]
fn rate_control_begins_anew_below_the_new_rate() {
    for control in [RateControl::Arf, RateControl::Aarf, RateControl::Minstrel] {
        let access = WifiConfig { rate_control: control, ..WifiConfig::new(Standard::G) };
        let second = 1_000_000;
        let config = Config { changes: vec![station(2 * second, 0, Some(12.0), None)], ..wifi(1, 1000, access) };
        let mut network = Network::new(&config, 1).unwrap();
        let mean_rate = |network: &mut Network<()>, from: u64| {
            network.reset_statistics(us(from));
            for tenth in 0..10 {
                let now = us(from + tenth * second / 10);
                run(network, now);
                while network.room(NodeId(0)) > 0 {
                    network.offer(now, packet(0, 1, 1500, ())).unwrap();
                }
            }
            run(network, us(from + second));
            network.statistics(us(from + second)).stations[0].up.mean_phy_rate.as_mbps()
        };
        mean_rate(&mut network, 0);
        assert!(mean_rate(&mut network, second) > 45.0, "{control:?}");
        let after = mean_rate(&mut network, 2 * second);
        assert!((9.0..=12.1).contains(&after), "{control:?}: {after}");
    }
}

/// What of 20000 packets of the server each of these stations gets, and the frames in error each way.
fn received_by(config: &Config) -> (Vec<usize>, Vec<u64>) {
    let mut network = Network::new(config, 1).unwrap();
    let stations = config.hosts.len() as u16;
    let mut received = vec![0; config.hosts.len()];
    let mut deliveries: Vec<Delivery<()>> = Vec::new();
    for number in 0..20_000 {
        let now = us(2000 * number);
        network.advance(now, &mut deliveries);
        network.offer(now, packet(stations, (number % u64::from(stations)) as u16, 100, ())).unwrap();
    }
    network.advance(us(41_000_000), &mut deliveries);
    deliveries.iter().for_each(|delivery| received[usize::from(delivery.to.0)] += 1);
    let errors = network.statistics(us(41_000_000)).stations.iter().map(|station| station.down.errors).collect();
    (received, errors)
}

#[test]
fn frames_are_lost_by_the_station_that_they_are_for() {
    let access =
        WifiConfig { retry_limit: 2, frame_error_rate: Probability::new(0.1).unwrap(), ..WifiConfig::new(Standard::G) };
    let mut config = wifi(3, 10, access);
    config.hosts[1].frame_error_rate = Some(Probability::new(0.5).unwrap());
    config.hosts[2].frame_error_rate = Some(Probability::ZERO);
    let (received, errors) = received_by(&config);
    // Two transmissions each: of 6667 packets 1 %, a quarter and none are lost: 67 and 1667, standard deviations 8 and 35.
    assert!((6560..=6640).contains(&received[0]) && (4825..=5175).contains(&received[1]), "{received:?}");
    // In error: 1 in 10, and half of the rest again: 667 + 67, 3333 + 1667.
    assert!((600..=860).contains(&errors[0]) && (4700..=5300).contains(&errors[1]), "{errors:?}");
    assert_eq!((received[2], errors[2]), (6666, 0));
    // The same from the middle of the run on: half as many of station 1's, all of station 0's.
    config.changes = vec![station(20_000_000, 0, None, Some(0.0)), station(20_000_000, 1, None, Some(0.1))];
    config.hosts[0].frame_error_rate = Some(Probability::ONE);
    let (received, _) = received_by(&config);
    assert!((3330..=3336).contains(&received[0]), "{received:?}");
    assert!((2500 - 130 + 3300..=2500 + 130 + 3300).contains(&received[1]), "{received:?}");
}

#[test]
fn broadcasts_are_lost_by_each_receivers_own_errors() {
    let mut config = wifi(3, 10, WifiConfig::new(Standard::G));
    config.hosts[1].frame_error_rate = Some(Probability::ONE);
    let mut network = Network::new(&config, 1).unwrap();
    let mut to_all = packet(3, 0, 100, ());
    to_all.to = Destination::Broadcast;
    network.offer(Time::ZERO, to_all).unwrap();
    let receivers: Vec<_> = run(&mut network, us(10_000)).iter().map(|delivery| delivery.to.0).collect();
    assert_eq!(receivers, [0, 2]);
}

#[test]
fn what_a_station_alone_gets_is_what_its_last_hop_says() {
    for (mbps, errors, retry_limit) in [(54.0, 0.0, 7), (54.0, 0.3, 7), (6.0, 0.5, 2), (24.0, 0.8, 4)] {
        let access =
            WifiConfig { retry_limit, access_point_queue: QueueConfig::fifo(3000), ..WifiConfig::new(Standard::G) };
        let mut config = wifi(1, 10, access);
        config.hosts[0].rate = Some(Rate::from_mbps(mbps));
        config.hosts[0].frame_error_rate = Some(Probability::new(errors).unwrap());
        let expected = config.last_hop(NodeId(0), NodeId(1));
        let mut network = Network::new(&config, 1).unwrap();
        let mut received = 0;
        let seconds = 20;
        for tenth in 0..10 * seconds {
            let now = us(100_000 * tenth);
            received += run(&mut network, now).len() as u64;
            let inside = network.packets_inside();
            (inside..1000).for_each(|_| network.offer(now, packet(1, 0, 1500, ())).unwrap());
        }
        let end = us(1_000_000 * seconds);
        received += run(&mut network, end).len() as u64;
        let measured = Rate::over(Bytes::new(1500 * received), Span::from_secs(seconds)).as_mbps();
        let ratio = measured / expected.bandwidth.as_mbps();
        // Some 4000 frames at least, with a standard deviation of a frame's time below its mean: 1.6 %, three of them.
        assert!((0.95..=1.05).contains(&ratio), "{mbps} {errors}: {measured} of {expected:?}");
        let given_up = network.statistics(end).dropped(QueueId::AccessPoint, Cause::RetryLimit) as f64;
        let loss = given_up / (given_up + received as f64);
        assert!((loss - expected.loss.get()).abs() < 0.03, "{mbps} {errors}: {loss} of {expected:?}");
    }
}

#[test]
fn a_last_hop_is_the_last_link_on_the_way_to_the_host() {
    let direction = |mbps: f64, loss: f64| DirectionConfig {
        rate: Rate::from_mbps(mbps),
        delay: Span::ZERO,
        queue: QueueConfig::fifo(10),
        loss: Probability::new(loss).unwrap(),
        loss_at: LossAt::AfterQueue,
        impairments: Impairments::NONE,
    };
    // 0 --- 1 --- 2, and 3 on 0 as well: host 0 on node 0.
    let links = vec![
        LinkConfig { ends: (0, 1), forth: direction(1.0, 0.1), back: direction(7.0, 0.2) },
        LinkConfig { ends: (1, 2), forth: direction(45.0, 0.0), back: direction(45.0, 0.0) },
        LinkConfig { ends: (3, 0), forth: direction(3.0, 0.3), back: direction(4.0, 0.4) },
    ];
    let topology = Topology::Links(LinksConfig { nodes: 4, attached: vec![0], links });
    let change = Change {
        at: us(5),
        what: Changed::Link {
            link: 0,
            way: Way::Back,
            to: DirectionChange { rate: Some(Rate::from_mbps(2.0)), ..loss(0.5) },
        },
    };
    let config = Config { changes: vec![change], ..Config::new(vec![HostConfig::new(1)], topology) };
    let of = |config: &Config, node: u16| {
        let hop = config.last_hop(NodeId(0), NodeId(1 + node));
        (hop.bandwidth.as_mbps(), hop.loss.get())
    };
    assert_eq!([of(&config, 2), of(&config, 1), of(&config, 3)], [(7.0, 0.2), (7.0, 0.2), (3.0, 0.3)]);
    assert_eq!([of(&config.at(us(4)), 2), of(&config.at(us(5)), 2)], [(7.0, 0.2), (2.0, 0.5)]);
    // Out of order, two at once, and one at the beginning.
    let to = |rate: f64, at: Time| {
        let to = DirectionChange { rate: Some(Rate::from_mbps(rate)), ..loss(0.5) };
        Change { at, what: Changed::Link { link: 0, way: Way::Back, to } }
    };
    let changes = vec![to(3.0, us(9)), to(4.0, us(2)), to(5.0, us(9)), to(6.0, Time::ZERO)];
    let several = Config { changes, ..config.clone() };
    let mut states = Vec::new();
    several.each_state(|at, state| {
        assert_eq!(*state, several.at(at));
        states.push((at, of(state, 2).0));
    });
    assert_eq!(states, [(Time::ZERO, 6.0), (us(2), 4.0), (us(9), 5.0)]);
    let wired = access_point(
        hosts(1, 1),
        AccessConfig::Wired(WiredAccessConfig {
            rate: Rate::from_mbps(16.0),
            delay: Span::ZERO,
            queue: QueueConfig::fifo(1),
        }),
        instant_path(),
    );
    assert_eq!(of(&wired, 0), (16.0, 0.0));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// What is offered from outside comes after all that is due, so nothing ties.
    #[test]
    fn a_link_that_changes_to_what_it_is_is_as_one_that_never_does(
        gaps in prop::collection::vec(0..2000_u64, 1..200),
        lost in 0.0..0.5_f64,
        room in 1..20_usize,
    ) {
        let mut plain = one_link(Vec::new());
        let Topology::Links(links) = &mut plain.topology else { unreachable!() };
        links.links[0].forth.loss = Probability::new(lost).unwrap();
        links.links[0].forth.queue = QueueConfig::fifo(room);
        let same = DirectionChange { rate: Some(Rate::from_mbps(8.0)), delay: Some(Span::from_millis(10)), loss: None, held: None, opportunities: None };
        let changing = Config { changes: vec![link(50_000, same), link(3_000, same)], ..plain.clone() };
        let carried = |config: &Config| {
            let mut network = Network::new(config, 1).unwrap();
            let (mut now, mut deliveries) = (Time::from_nanos(1), Vec::new());
            for (number, gap) in gaps.iter().enumerate() {
                now += Span::from_micros(*gap);
                network.advance(now, &mut deliveries);
                let _dropped = network.offer(now, packet(0, SERVER, 2 * (250 + number as u64), number));
            }
            let end = now + Span::from_secs(1);
            network.advance(end, &mut deliveries);
            let statistics = network.statistics(end);
            (deliveries, statistics.drops, statistics.queues, statistics.links)
        };
        prop_assert_eq!(carried(&plain), carried(&changing));
    }

    #[test]
    fn stepping_and_leaping_over_changes_give_the_same(
        seed in any::<u64>(),
        changes in prop::collection::vec((0..200_000_u64, 0..3_usize, 0..4_usize, 0.0..0.9_f64), 0..8),
        gaps in prop::collection::vec((0..3000_u64, 0..4_u16, 0..4_u16), 1..150),
    ) {
        let rates = [6.0, 12.0, 24.0, 54.0];
        let on_wifi = changes.iter().map(|&(at, host, rate, errors)| station(at, host, Some(rates[rate]), Some(errors)));
        let access = WifiConfig { rate_control: RateControl::Minstrel, ..WifiConfig::new(Standard::G) };
        let of_stations = Config { changes: on_wifi.collect(), ..wifi(3, 10, access) };
        let to_output = || {
            let mut network = Network::new(&of_stations, seed).unwrap();
            let (mut now, mut deliveries, mut some) = (Time::ZERO, Vec::new(), Vec::new());
            for (number, &(gap, from, to)) in gaps.iter().enumerate() {
                now += Span::from_micros(gap);
                while let Some(at) = network.advance_to_output(now, &mut some) {
                    assert!(some.iter().all(|delivery| delivery.at == at), "one moment at a time");
                    deliveries.append(&mut some);
                }
                let _dropped = network.offer(now, packet(from, to, 1500, number));
            }
            while network.advance_to_output(now + Span::from_secs(10), &mut some).is_some() {
                deliveries.append(&mut some);
            }
            deliveries
        };
        let stepped = |by_steps: bool| {
            let mut network = Network::new(&of_stations, seed).unwrap();
            let (mut now, mut deliveries) = (Time::ZERO, Vec::new());
            for (number, &(gap, from, to)) in gaps.iter().enumerate() {
                now += Span::from_micros(gap);
                while by_steps && network.next_wakeup().is_some_and(|at| at <= now) {
                    let at = network.next_wakeup().unwrap();
                    network.advance(at, &mut deliveries);
                }
                let _dropped = network.offer(now, packet(from, to, 1500, number));
            }
            network.advance(now + Span::from_secs(10), &mut deliveries);
            deliveries
        };
        prop_assert_eq!(stepped(true), stepped(false));
        prop_assert_eq!(to_output(), stepped(false));
    }
}
