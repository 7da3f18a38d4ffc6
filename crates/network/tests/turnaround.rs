//! Hosts take time, and what the medium does with an answer that comes at a certain moment.
//!
//! 802.11g at 54 Mb/s: 1500 B take 254 us, SIFS and ACK 44 us, DIFS 28 us, a slot 9 us. The path adds 120 ns to 1500 B. The timers
//! are those of seed 3 (tests/timelines.rs): station 0 draws 1 slot first.

use crate::common::{packet, run, us, wifi, wifi_of};
use lasthop_network::{
    Config, Delivery, Field, HostField, Network, NodeId, Packet, QueueConfig, Standard, WifiConfig, WifiRules,
};
use lasthop_units::{Span, Time};

const SEED: u64 = 3;
const PATH: Span = Span::from_nanos(120);

fn config(stations: usize, turnaround_us: (u64, u64), rules: WifiRules) -> Config {
    let mut config = wifi(stations, 1000, WifiConfig { rules, ..WifiConfig::new(Standard::G) });
    let turnaround = (Span::from_micros(turnaround_us.0), Span::from_micros(turnaround_us.1));
    config.hosts.iter_mut().for_each(|host| host.turnaround = turnaround);
    config
}

/// Station 0 gets a packet at once and answers it when it has it. When the answer has come to the access point.
fn answered_at(turnaround_us: u64, rules: WifiRules) -> Span {
    let mut network = Network::new(&config(1, (turnaround_us, turnaround_us), rules), SEED).unwrap();
    network.offer(Time::ZERO, packet(1, 0, 1500, ())).unwrap();
    let mut deliveries = Vec::new();
    while deliveries.is_empty() {
        let at = network.next_wakeup().expect("the packet arrives");
        network.advance(at, &mut deliveries);
    }
    let received: Delivery<()> = deliveries.remove(0);
    assert_eq!(received.at, us(254 + turnaround_us) + PATH);
    network.offer(received.at, packet(0, 1, 1500, ())).unwrap();
    let answer = run(&mut network, us(100_000));
    assert_eq!((answer.len(), answer[0].to), (1, NodeId(1)));
    // It came down and went up the path.
    answer[0].at - Time::ZERO - PATH * 2
}

/// ```text
///           0        254  298   326 335          580  589
///  AP       |#########|    |.....|
///  0, busy            |aaaa|     |-|##############|       the medium is busy: 1 slot
///  0, idle            |aaaa|     |############|           no backoff
///                     ^ answer at once
/// ```
#[test]
fn an_answer_at_the_instant_of_reception_draws_a_timer_unless_that_counts_as_idle() {
    assert_eq!(answered_at(0, WifiRules::default()), Span::from_micros(589));
    let idle = WifiRules { idle_before_acknowledgement: true, ..WifiRules::default() };
    assert_eq!(answered_at(0, idle), Span::from_micros(580));
    // The acknowledgement begins a SIFS after the reception, and from then on the medium is busy for its sender too.
    assert_eq!(answered_at(9, idle), Span::from_micros(580));
    assert_eq!(answered_at(10, idle), Span::from_micros(589));
}

/// ```text
///           0        254  298   326     354        580     608
///  0, 50 us           |aaaa| ^   |##################|               within DIFS: no backoff
///  0, 100 us          |aaaa|     .       |####################|     the medium is idle: at once
/// ```
#[test]
fn an_answer_within_the_inter_frame_space_goes_without_backoff() {
    for rules in [WifiRules::default(), WifiRules { idle_before_acknowledgement: true, ..WifiRules::default() }] {
        assert_eq!(answered_at(50, rules), Span::from_micros(580));
        assert_eq!(answered_at(100, rules), Span::from_micros(608));
    }
}

/// ```text
///       0        254  282               536
///  0, 1 |#########|...............               collide, and wait for their time-outs until 321
///  2                ^ ...|#################|     silent for DIFS: no backoff; with EIFS it would wait until 342
/// ```
#[test]
fn bystanders_of_a_collision_wait_eifs_or_difs() {
    let first = |rules| {
        let mut network = Network::new(&config(3, (0, 0), rules), SEED).unwrap();
        for (at, from) in [(0, 0), (0, 1), (260, 2)] {
            network.offer(us(at), packet(from, 3, 1500, ())).unwrap();
        }
        let first = run(&mut network, us(100_000)).remove(0);
        (first.at - Time::ZERO - PATH, first.packet.from)
    };
    let difs = WifiRules { difs_after_collision: true, ..WifiRules::default() };
    assert_eq!(first(difs), (Span::from_micros(536), NodeId(2)));
    assert_eq!(first(WifiRules::default()).1, NodeId(0));
}

#[test]
fn each_packet_draws_its_own_turnaround_and_none_overtakes() {
    // Received every 335 us or so; between 100 and 1100 us later with TCP.
    let deliveries = |turnaround_us| {
        let mut config = config(1, turnaround_us, WifiRules::default());
        wifi_of(&mut config).access_point_queue = QueueConfig::fifo(1000);
        let mut network = Network::new(&config, SEED).unwrap();
        for number in 0..500 {
            network.offer(Time::ZERO, packet(1, 0, 1500, number)).unwrap();
        }
        run(&mut network, us(1_000_000))
    };
    let (received, delivered) = (deliveries((0, 0)), deliveries((100, 1100)));
    let numbers = |deliveries: &[Delivery<u32>]| -> Vec<u32> {
        deliveries.iter().map(|Delivery { packet: Packet { payload, .. }, .. }| *payload).collect()
    };
    assert_eq!(numbers(&delivered), (0..500).collect::<Vec<_>>());
    assert_eq!(numbers(&received), numbers(&delivered));
    let took: Vec<u64> =
        received.iter().zip(&delivered).map(|(at_mac, with_tcp)| (with_tcp.at - at_mac.at).as_micros()).collect();
    assert!(took.iter().all(|took| (100..=1100).contains(took)), "{took:?}");
    // Uniform, then held back by packets before: the mean is above 600, and both ends occur.
    let mean = took.iter().sum::<u64>() as f64 / 500.0;
    assert!((600.0..900.0).contains(&mean), "{mean}");
    assert!(took.iter().any(|took| *took < 200) && took.iter().any(|took| *took > 1000));
}

#[test]
fn a_range_that_begins_after_its_end_is_refused() {
    let error = config(2, (300, 200), WifiRules::default()).validate().unwrap_err();
    assert_eq!(error.field, Field::Host(0, HostField::Turnaround));
}
