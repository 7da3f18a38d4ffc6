//! How long data need when nothing else is on the way.
//!
//! A transfer of N packets over hops i: f_i(s) is the time of a packet of size s at a hop, g_i(s) from one of several to the next,
//! F a full packet, L the last one. Each hop sends a packet on when it has all of it, and nobody waits for anything else:
//!
//! ```text
//! T = sum of delays + max over j of  sum i<=j of f_i(F) + (N - 2) max i<=j of g_i(F) + g_j(L) + sum i>j of f_i(L)
//! T = sum of delays + sum of f_i(L)                                                                       where N = 1
//! ```
//!
//! | hop | f(s) | g(s) |
//! | --- | --- | --- |
//! | a wire | 8 s / rate | the same |
//! | Wi-Fi | the frame on the air, with RTS and CTS if it has them, and the host's least turnaround | 8 F / bandwidth - f(F) + f(s) |
//!
//! Bandwidth is one station's alone (`last_hop`), with contention, acknowledgements of the MAC and aggregates; the first frame finds
//! the medium silent, and goes at once.
//!
//! Leaves out: losses of wires, jitter, other packets, among them TCP's acknowledgements on the same medium.

use crate::config::{AccessConfig, Config, Topology};
use crate::packet::NodeId;
use crate::wifi::{AirHop, air_hop};
use lasthop_units::{Bytes, Rate, Span};

/// The way from one node to another in an empty network.
#[derive(Clone, Debug)]
pub struct EmptyWay {
    hops: Vec<Hop>,
    delay: Span,
}

#[derive(Clone, Debug)]
enum Hop {
    Wire(Rate),
    Air(Box<AirHop>),
}

/// How a transport cuts data into packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Framing {
    /// Data in a full packet, more than zero.
    pub payload: Bytes,
    /// Its headers.
    pub headers: Bytes,
}

impl Config {
    /// The way from one node to another, before any change of the network; of a round-trip time that is drawn the shortest. [`Config::at`]
    /// gives the network at a later time.
    ///
    /// # Panics
    /// If there is no such node; behind an access point, if both are hosts or servers.
    pub fn empty_way(&self, from: NodeId, to: NodeId) -> EmptyWay {
        match &self.topology {
            Topology::AccessPoint { access, path } => {
                let is_up = from.index() < self.hosts.len();
                let host = if is_up { from } else { to };
                assert_ne!(is_up, to.index() < self.hosts.len(), "between a host and a server");
                let config = &self.hosts[host.index()];
                let of_cell = self.cells.as_ref().and_then(|cells| cells.path_rtt(cells.of_host[host.index()]));
                let rtt = config.path.map_or(of_cell.unwrap_or(path.rtt), |own| own.rtt.0);
                // As `host_path` halves it.
                let half = if is_up { rtt / 2 } else { rtt - rtt / 2 };
                let turnaround = if is_up { Span::ZERO } else { config.turnaround.0 };
                let (last, delay) = match access {
                    AccessConfig::Wifi(wifi) => {
                        (Hop::Air(Box::new(air_hop(wifi, &self.hosts, host.index()))), turnaround)
                    }
                    AccessConfig::Wired(wired) => (Hop::Wire(wired.rate), wired.delay),
                };
                let mut hops = vec![last, Hop::Wire(path.rate)];
                if !is_up {
                    hops.reverse();
                }
                EmptyWay { hops, delay: half + delay }
            }
            Topology::Links(links) => {
                let (mut seat, goal) = (links.seat(from), links.seat(to));
                let routes = links.routes();
                let (mut hops, mut delay) = (Vec::new(), Span::ZERO);
                while seat != goal {
                    let direction = routes.next(seat, goal);
                    let link = &links.links[direction / 2];
                    let (way, end) = match direction.is_multiple_of(2) {
                        true => (link.forth, link.ends.1),
                        false => (link.back, link.ends.0),
                    };
                    hops.push(Hop::Wire(way.rate));
                    delay += way.delay;
                    seat = end;
                }
                EmptyWay { hops, delay }
            }
        }
    }
}

impl EmptyWay {
    /// From the first bit of the first packet to the last one's arrival. Zero of no data, and between ends on one node;
    /// [`Span::MAX`] where nothing gets through.
    pub fn time(&self, data: Bytes, framing: Framing) -> Span {
        let Framing { payload, headers } = framing;
        let Some(full) = data.get().div_ceil(payload.get()).checked_sub(1) else { return Span::ZERO };
        let last = Bytes::new(data.get() - full * payload.get()) + headers;
        let firsts = |hops: &[Hop]| hops.iter().map(|hop| hop.first(last)).fold(0, u64::saturating_add);
        let delay = self.delay.as_nanos();
        let Some(before) = full.checked_sub(1) else {
            return Span::from_nanos(firsts(&self.hops).saturating_add(delay));
        };
        let (mut longest, mut until, mut slowest) = (0, 0_u64, 0);
        for (number, hop) in self.hops.iter().enumerate() {
            until = until.saturating_add(hop.first(payload + headers));
            slowest = slowest.max(hop.next(payload + headers));
            let parts = [slowest.saturating_mul(before), hop.next(last), firsts(&self.hops[number + 1..])];
            longest = longest.max(parts.into_iter().fold(until, u64::saturating_add));
        }
        Span::from_nanos(longest.saturating_add(delay))
    }
}

impl Hop {
    /// f, in ns.
    fn first(&self, packet: Bytes) -> u64 {
        match self {
            Self::Wire(rate) => rate.transmission_time(packet).as_nanos(),
            Self::Air(hop) => hop.first(packet).as_nanos(),
        }
    }

    /// g, in ns.
    fn next(&self, packet: Bytes) -> u64 {
        match self {
            Self::Wire(_) => self.first(packet),
            Self::Air(hop) => hop.next(packet).as_nanos(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{DirectionConfig, HostConfig, LinkConfig, LinksConfig, LossAt, PathConfig, WifiConfig};
    use crate::impairments::Impairments;
    use crate::packet::{Destination, Packet};
    use crate::queue::QueueConfig;
    use crate::topology::Network;
    use crate::wifi::Standard;
    use lasthop_units::{Ecn, Probability, Time};

    const FRAMING: Framing = Framing { payload: Bytes::new(1448), headers: Bytes::new(52) };

    /// Host 0 on node A and three links from A to D of these rates in Mb/s, with 3 ms each.
    fn chain(rates: [f64; 3]) -> Config {
        let way = |mbps| DirectionConfig {
            rate: Rate::from_mbps(mbps),
            delay: Span::from_millis(3),
            queue: QueueConfig::fifo(10_000),
            loss: Probability::ZERO,
            loss_at: LossAt::AfterQueue,
            impairments: Impairments::NONE,
        };
        let link = |(number, mbps)| LinkConfig { ends: (number, number + 1), forth: way(mbps), back: way(1.0) };
        let links = rates.into_iter().enumerate().map(link).collect();
        let topology = Topology::Links(LinksConfig { nodes: 4, attached: vec![0], links });
        Config::new(vec![HostConfig::new(100)], topology)
    }

    /// When the last packet of these data comes, which are all offered at once.
    fn carried(config: &Config, from: NodeId, to: NodeId, data: u64) -> Time {
        let mut network = Network::new(config, 1).expect("a network");
        for at in (0..data).step_by(1448) {
            let size = Bytes::new((data - at).min(1448)) + FRAMING.headers;
            let packet = Packet {
                from,
                to: Destination::Node(to),
                size,
                flow: 0,
                dscp: 0,
                ecn: Ecn::NotEct,
                id: 0,
                payload: (),
            };
            network.offer(Time::ZERO, packet).expect("room");
        }
        let mut deliveries = Vec::new();
        network.advance(Time::ZERO + Span::from_secs(100), &mut deliveries);
        deliveries.iter().map(|delivery| delivery.at).max().expect("all came")
    }

    #[test]
    fn over_wires_it_is_what_the_network_takes_to_the_nanosecond() {
        for rates in [[10.0, 10.0, 10.0], [100.0, 7.0, 13.0], [3.0, 1000.0, 2.0], [1.0, 2.0, 3.0]] {
            let config = chain(rates);
            let (from, to) = (NodeId(0), NodeId(1 + 3));
            for data in [1, 1448, 1449, 2896, 3000, 100_000] {
                let computed = config.empty_way(from, to).time(Bytes::new(data), FRAMING);
                assert_eq!(Time::ZERO + computed, carried(&config, from, to, data), "{rates:?}, {data}");
            }
        }
        // 3000 bytes at 10 Mb/s over three hops: two packets of 1500 and one of 156: 3 · 1.2 + 1.2 + 0.1248 ms, and 9 ms.
        let time = |to| chain([10.0; 3]).empty_way(NodeId(0), NodeId(to)).time(Bytes::new(3000), FRAMING);
        assert_eq!(time(4), Span::from_nanos(9_000_000 + 4 * 1_200_000 + 124_800));
        assert_eq!(time(1), Span::ZERO, "on the host's own node");
    }

    fn wifi(standard: Standard) -> Config {
        let path = PathConfig {
            rtt: Span::from_millis(20),
            rate: Rate::from_mbps(1000.0),
            loss: Probability::ZERO,
            back_loss: Probability::ZERO,
            queue_packets: 10_000,
            impairments: [Impairments::NONE; 2],
        };
        let mut wifi = WifiConfig::new(standard);
        wifi.access_point_queue.packets = 10_000;
        let access = AccessConfig::Wifi(wifi);
        Config::new(vec![HostConfig::new(10_000)], Topology::AccessPoint { access, path })
    }

    #[test]
    fn over_wifi_one_packet_is_exact_and_many_are_near() {
        for standard in [Standard::B, Standard::G, Standard::N, Standard::Ac, Standard::Ax] {
            let config = wifi(standard);
            for (from, to) in [(NodeId(0), NodeId(1)), (NodeId(1), NodeId(0))] {
                let of = |data| {
                    let computed = config.empty_way(from, to).time(Bytes::new(data), FRAMING);
                    let took = carried(&config, from, to, data).saturating_since(Time::ZERO);
                    took.as_secs_f64() / computed.as_secs_f64()
                };
                // 100 bytes wait for nothing. Of 4 MB the backoffs are near their mean, and the last aggregate may be short.
                assert!((of(100) - 1.0).abs() < 1e-9, "{standard:?}, {from:?}: {}", of(100));
                assert!((0.95..1.05).contains(&of(4_000_000)), "{standard:?}, {from:?}: {}", of(4_000_000));
            }
        }
    }
}
