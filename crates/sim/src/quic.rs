//! QUIC connections of the scenario: their datagrams travel as UDP packets, both ways, through all that the network has.
//!
//! Agents neither see nor bound them, and reports of a last link do not go with them.

use crate::connection::{Ends, OfBoth, Role};
use crate::packet::{Payload, Tag};
use crate::simulation::{DATAGRAM_HEADERS, Owner, Simulation, offer};
use lasthop_connection::TcpState;
use lasthop_laws::LawName;
use lasthop_measure::Seen;
use lasthop_network::random::Streams;
use lasthop_network::{Destination, Packet};
use lasthop_quic::{Config, Datagram, End, LEAST_DATAGRAM, Law};
use lasthop_scenario::{HostKind, QuicLaw};
use lasthop_tcp::EcnMode;
use lasthop_units::{Bytes, Ecn, Time};
use rand::RngExt as _;

/// What quinn looks for at most: 1500 bytes without the headers of IPv6 and UDP.
const MOST_DATAGRAM: u64 = 1_452;
/// The headers of TCP, which IP packets of [`lasthop_tcp::Config::mss`] have where those of UDP have 8.
const TCP_HEADERS_MORE: u64 = 12;

/// Whether packets of this host's size carry QUIC at all.
pub(crate) fn fits(host: &HostKind) -> bool {
    host.tcp.mss.get() + TCP_HEADERS_MORE >= LEAST_DATAGRAM.into()
}

/// The congestion control of such a connection; `None`: that of the host, which QUIC cannot have.
pub(crate) fn law(host: &HostKind, law: QuicLaw) -> Option<Law> {
    match law {
        QuicLaw::Cubic => Some(Law::Cubic),
        QuicLaw::NewReno => Some(Law::NewReno),
        QuicLaw::Host => host.law.and_then(Law::ours),
        other => other.as_str().parse::<LawName>().ok().and_then(Law::ours),
    }
}

/// The ends of a connection of this host.
fn config(host: &HostKind, law: QuicLaw) -> Config {
    Config {
        law: self::law(host, law).expect("checked, or a law that QUIC can have: see the tests"),
        ecn: host.tcp.ecn != EcnMode::Off,
        datagram_bytes: (host.tcp.mss.get() + TCP_HEADERS_MORE).min(MOST_DATAGRAM) as u16,
        receive_buffer: host.tcp.receive_buffer,
        send_buffer: host.tcp.send_buffer,
    }
}

/// The state of this sending end, if the connection is open.
pub(crate) fn seen(sender: &End, lost_packets: u64, delivered_ce: u64) -> Option<Seen> {
    let info = sender.info().filter(|_| sender.is_established())?;
    let full = u64::from(info.datagram_bytes);
    let segments = |bytes: Bytes| u32::try_from(bytes.get() / full).unwrap_or(u32::MAX);
    let tcp = TcpState {
        acked: info.acked,
        cwnd_segments: segments(info.cwnd),
        ssthresh_segments: info.ssthresh.map(segments),
        srtt: Some(info.srtt),
        min_rtt: Some(info.min_rtt),
        // What an ACK of a single datagram leaves is under way, too.
        in_flight_segments: info.in_flight.get().div_ceil(full) as u32,
        mss_bytes: info.datagram_bytes.into(),
        retransmits: lost_packets,
        delivered_ce,
        ..TcpState::default()
    };
    Some(Seen { tcp, last_link: None })
}

impl Simulation<'_> {
    pub(crate) fn open_quic(&mut self, now: Time, connection: usize, law: QuicLaw) {
        let flow = &mut self.connections[connection];
        let config = config(&self.hosts[usize::from(flow.spec.host)].kind, law);
        let name = format!("quic/flow-{}/{}", flow.spec.id, flow.incarnation);
        let mut seeds = Streams::new(self.scenario.seed).stream(&name);
        let [client, server] = [(); 2].map(|()| seeds.random());
        flow.open(Ends::Quic(Box::new(OfBoth([End::connect(now, &config, client), End::listen(&config, server)]))));
    }

    /// A datagram has reached one end.
    pub(crate) fn on_quic(&mut self, now: Time, connection: usize, sender: Tag, payload: Datagram, field: Ecn) {
        let Tag { incarnation, role, .. } = sender.answering();
        let flow = &mut self.connections[connection];
        let (Ends::Quic(ends), true) = (&mut flow.ends, flow.incarnation == incarnation) else {
            self.strays += 1;
            return;
        };
        ends[role].on_datagram(now, payload, field);
        self.on_read(now, connection, role);
        self.flush(now, connection, role);
    }

    /// Sends the datagrams of one end until it has none or its socket is full, and sets its timer. What a full queue drops is lost.
    pub(crate) fn flush_quic(&mut self, now: Time, connection: usize, role: Role) {
        let flow = &mut self.connections[connection];
        let (from, to) = (flow.nodes[role], Destination::Node(flow.nodes[role.other()]));
        let (number, incarnation, dscp) = (connection as u32, flow.incarnation, flow.spec.dscp);
        let id = Tag { incarnation, role, number: 0 }.id();
        let Ends::Quic(ends) = &mut flow.ends else { return };
        let end = &mut ends[role];
        while let Some((datagram, ecn)) = end.poll_transmit(now) {
            let size = DATAGRAM_HEADERS + Bytes::new(datagram.len() as u64);
            let payload = Payload::Quic(datagram);
            let packet = Packet { from, to, size, flow: number, dscp, ecn, id, payload };
            if offer(&mut self.network, &mut self.capture, now, packet).is_err() {
                end.on_departed();
            }
        }
        self.timers.set(self.slots.of(Owner::End { connection, role }), end.next_timeout());
    }
}
