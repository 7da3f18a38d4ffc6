//! Who wants to hear of it is told when its packets have left its own transmit queue: what TCP small queues need.

use crate::common::{access_point, hosts, instant_path, us, wifi};
use lasthop_network::{
    AccessConfig, Config, Departure, Network, NodeId, Packet, PathConfig, QueueConfig, Standard, WifiConfig,
    WiredAccessConfig,
};
use lasthop_units::{Bytes, Probability, Rate, Span, Time};

/// Number 1 is of flow 11, and known by 21, and so on.
fn packet(from: u16, to: u16, bytes: u64, number: u32) -> Packet<u32> {
    Packet { flow: 10 + number, id: u64::from(number) + 20, ..crate::common::packet(from, to, bytes, number) }
}

/// Runs until nothing happens any more; gives who was told when, and of which flow.
fn departures(network: &mut Network<u32>) -> Vec<(Time, u16, u32)> {
    let (mut deliveries, mut departed, mut heard) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(now) = network.next_wakeup() {
        network.advance(now, &mut deliveries);
        network.take_departed(&mut departed);
        heard.extend(departed.drain(..).map(|departure| {
            assert_eq!(departure.id, u64::from(departure.flow) + 10);
            (now, departure.node.0, departure.flow)
        }));
    }
    heard
}

fn reporting(mut config: Config, hosts: &[usize]) -> Config {
    for &host in hosts {
        config.hosts[host].reports_departures = true;
    }
    config
}

#[test]
fn over_the_air_a_packet_has_left_when_it_is_acknowledged() {
    // The timeline `on_an_idle_medium_a_frame_goes_at_once_if_the_timer_has_ended`: seed 3, 254 us and 44 of SIFS and ACK.
    let config = reporting(wifi(2, 10, WifiConfig::new(Standard::G)), &[0]);
    let mut network = Network::new(&config, 3).unwrap();
    network.offer(us(100), packet(0, 2, 1500, 1)).unwrap();
    assert_eq!(departures(&mut network), [(us(398), 0, 11)]);
    // What happens while another packet is offered is told late, but is told.
    network.offer(us(1000), packet(0, 2, 1500, 2)).unwrap();
    network.offer(us(2000), packet(1, 2, 1500, 3)).unwrap();
    let mut deliveries = Vec::new();
    network.advance(us(2000), &mut deliveries);
    assert_eq!((deliveries.len(), network.next_wakeup()), (1, Some(us(2000))), "a departure waits");
    let mut departed = Vec::new();
    network.take_departed(&mut departed);
    let second = Departure { node: NodeId(0), flow: 12, id: 22, size: Bytes::new(1500), made_room: false };
    assert_eq!((departed, network.next_wakeup()), (vec![second], Some(us(2254))));
    assert_eq!(departures(&mut network), [], "nobody asked about station 1");
}

#[test]
fn over_the_air_a_packet_has_left_when_it_is_given_up() {
    // The timeline `a_frame_is_given_up_after_as_many_transmissions_as_the_limit_says`.
    let unlucky = WifiConfig { frame_error_rate: Probability::ONE, retry_limit: 3, ..WifiConfig::new(Standard::G) };
    let mut network = Network::new(&reporting(wifi(1, 10, unlucky), &[0]), 3).unwrap();
    network.offer(Time::ZERO, packet(0, 1, 1500, 1)).unwrap();
    assert_eq!(departures(&mut network), [(us(932), 0, 11)]);
}

#[test]
fn what_is_refused_does_not_leave() {
    let mut network = Network::new(&reporting(wifi(1, 2, WifiConfig::new(Standard::G)), &[0]), 3).unwrap();
    let taken = (0..5).filter(|&number| network.offer(Time::ZERO, packet(0, 1, 1500, number)).is_ok()).count();
    assert_eq!((taken, departures(&mut network).len()), (2, 2));
}

#[test]
fn over_a_wire_a_packet_has_left_when_it_has_been_sent() {
    // 100 Mb/s up: 120 us each, in turn. 10 Mb/s on the path: 1200 us each from the server, which asks for it by name.
    let queue = QueueConfig::fifo(10);
    let access = WiredAccessConfig { rate: Rate::from_mbps(100.0), delay: Span::from_millis(1), queue };
    let path = PathConfig { rate: Rate::from_mbps(10.0), ..instant_path() };
    let config = reporting(access_point(hosts(2, 10), AccessConfig::Wired(access), path), &[0]);
    let mut network = Network::new(&config, 1).unwrap();
    network.report_departures(NodeId(2));
    for number in 0..2 {
        for host in 0..2 {
            network.offer(Time::ZERO, packet(host, 2, 1500, number)).unwrap();
        }
        network.offer(Time::ZERO, packet(2, 1, 1500, number)).unwrap();
    }
    // Host 0, 1, 0, 1 at 120, 240, 360, 480.
    assert_eq!(departures(&mut network), [(us(120), 0, 10), (us(360), 0, 11), (us(1200), 2, 10), (us(2400), 2, 11)]);
}

#[test]
fn asking_changes_no_delivery() {
    let config =
        wifi(3, 5, WifiConfig { frame_error_rate: Probability::new(0.3).unwrap(), ..WifiConfig::new(Standard::Bg) });
    let run = |asked: bool| {
        let mut network = Network::new(&config, 1).unwrap();
        if asked {
            (0..4).for_each(|node| network.report_departures(NodeId(node)));
        }
        let mut deliveries = Vec::new();
        let mut departed = Vec::new();
        for number in 0..300_u32 {
            let now = us(u64::from(number) * 700);
            network.advance(now, &mut deliveries);
            let to = if number % 4 == 3 { number % 3 } else { 3 };
            let _refused = network.offer(now, packet((number % 4) as u16, to as u16, 1500, number));
        }
        while let Some(at) = network.next_wakeup() {
            network.advance(at, &mut deliveries);
            network.take_departed(&mut departed);
        }
        (deliveries, departed.len())
    };
    let (plain, nobody) = run(false);
    let (asked, told) = run(true);
    assert_eq!((plain, nobody), (asked, 0));
    assert!(told > 200, "{told}");
}
