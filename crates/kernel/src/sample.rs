//! The kernel's data on its sockets.

use crate::layout::{self, Change, Endpoints, Name, Record};
use lasthop_connection::{CongestionState, TcpState};
use lasthop_laws::{Bound, finite_ssthresh};
use lasthop_units::{Bytes, Rate, Span, Time};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

const AF_INET: u16 = 2;
pub(crate) const UNKNOWN: u32 = u32::MAX;

/// Why a socket of the managed interface is not controlled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Left {
    /// Left alone, as configured: it is outside of the cgroup that control is limited to, or in an excluded one.
    Cgroup,
    /// Left alone by a rule.
    Rule,
    /// Left alone, because its control is on the list of those to leave.
    Name,
    /// It escapes: its application, or another BPF program, has chosen its control.
    Chosen,
    /// It escapes: another agent controls it.
    Agent,
    /// It escapes: its route names a control and locks it.
    Locked,
    /// It escapes, and can be taken over: it is new, or the kernel has refused that.
    Yet,
}

impl Left {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Cgroup, Self::Rule, Self::Name, Self::Chosen, Self::Agent, Self::Locked, Self::Yet];

    /// Whether that is against the configuration: it would be controlled.
    pub const fn escapes(self) -> bool {
        matches!(self, Self::Chosen | Self::Agent | Self::Locked | Self::Yet)
    }

    fn from_kernel(why: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|left| left.in_the_kernel() == u32::from(why))
    }

    const fn in_the_kernel(self) -> u32 {
        match self {
            Self::Cgroup => layout::LH_LEFT_CGROUP,
            Self::Rule => layout::LH_LEFT_RULE,
            Self::Name => layout::LH_LEFT_NAME,
            Self::Chosen => layout::LH_ESCAPES_CHOSEN,
            Self::Agent => layout::LH_ESCAPES_AGENT,
            Self::Locked => layout::LH_ESCAPES_LOCKED,
            Self::Yet => layout::LH_ESCAPES_YET,
        }
    }
}

/// One socket at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct SocketSample {
    /// The kernel's number for the socket (`SO_COOKIE`): unique until the machine restarts.
    pub cookie: u64,
    /// Our end. An IPv4 address mapped into IPv6 is told as IPv4.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// The interface that its packets leave by, in the network namespace of the socket.
    pub interface_index: u32,
    /// Whether its network namespace is another one than ours: then what it receives is not bounded.
    pub in_container: bool,
    /// The name of its congestion control.
    pub congestion_control: Arc<str>,
    /// Whether this loader controls it.
    pub controlled: bool,
    /// Why it does not; `None`: it does, or the mode controls nothing.
    pub left: Option<Left>,
    /// Its state.
    pub tcp: TcpState,
    /// Data retransmitted so far.
    pub retransmitted: Bytes,
    /// The kernel's latest estimate of the delivery rate.
    pub delivery_rate: Option<Rate>,
    /// Segments with data received so far.
    pub received_segments: u64,
    /// Of those, out-of-order ones.
    pub out_of_order_segments: u64,
    /// Time since the latest segment in either direction; at most 71 minutes.
    pub idle: Span,
    /// The bound in force at this moment.
    pub bound: Option<Bound>,
    /// When the lease of that bound ends, on `CLOCK_MONOTONIC`.
    pub bound_until: Option<Time>,
    /// The index of the rule that fits it, in [`Options::rules`](crate::Options::rules).
    pub rule: Option<usize>,
}

/// A change of a socket's congestion state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateChange {
    /// Time of the change, on `CLOCK_MONOTONIC`.
    pub at: Time,
    /// The socket: see [`SocketSample::cookie`].
    pub cookie: u64,
    /// The state before.
    pub from: CongestionState,
    /// The state after.
    pub to: CongestionState,
    /// The congestion window before the change.
    pub cwnd_segments: u32,
    /// The slow start threshold before the change; none if it was never set.
    pub ssthresh_segments: Option<u32>,
}

/// Reads the records of an iterator.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    /// The name of the latest record: most sockets have the same.
    name: Option<(Name, Arc<str>)>,
}

impl Reader {
    /// The length of a record.
    pub(crate) const BYTES: usize = size_of::<Record>();

    /// The sample, and whether something is in flight or waits to be sent.
    pub(crate) fn read(&mut self, bytes: &[u8]) -> Option<(SocketSample, bool)> {
        let record = layout::first::<Record>(bytes)?;
        let name = match &self.name {
            Some((padded, name)) if *padded == record.control => Arc::clone(name),
            _ => Arc::from(layout::unpadded_name(&record.control)),
        };
        self.name = Some((record.control, Arc::clone(&name)));
        let under_way = record.under_way != 0;
        Some((sample(record, name), under_way))
    }
}

pub(crate) fn state_change(bytes: &[u8]) -> Option<StateChange> {
    let change: Change = layout::first(bytes)?;
    Some(StateChange {
        at: Time::from_nanos(change.at_ns),
        cookie: change.cookie,
        from: CongestionState::from_linux(change.from),
        to: CongestionState::from_linux(change.to),
        cwnd_segments: change.cwnd_segments,
        ssthresh_segments: finite_ssthresh(change.ssthresh_segments),
    })
}

fn sample(record: Record, congestion_control: Arc<str>) -> SocketSample {
    let bound = Bound {
        min_segments: record.bound_min_segments,
        max_segments: record.bound_max_segments,
        max_pacing_rate: Rate::from_bps(record.bound_max_pacing_rate.saturating_mul(8)),
        max_receive_bytes: record.bound_max_receive_bytes,
        paced: record.bound_pace & layout::LH_PACE_OWN != 0,
        at_once: record.bound_pace & layout::LH_PACE_AT_ONCE != 0,
    };
    let bounded = bound != Bound::default();
    SocketSample {
        cookie: record.cookie,
        local: record.ends.local(),
        remote: record.ends.remote(),
        interface_index: record.interface_index,
        in_container: record.in_container != 0,
        congestion_control,
        controlled: record.controlled != 0,
        left: Left::from_kernel(record.left),
        tcp: TcpState {
            state: CongestionState::from_linux(record.ca_state),
            cwnd_segments: record.cwnd_segments,
            ssthresh_segments: finite_ssthresh(record.ssthresh_segments),
            srtt: span(record.srtt_us),
            min_rtt: span(record.min_rtt_us),
            newest_rtt: span(record.newest_rtt_us),
            receive_rtt: span(record.receive_rtt_us),
            in_flight_segments: record.in_flight_segments,
            mss_bytes: record.mss_bytes,
            unsent: Bytes::new(record.unsent_bytes.into()),
            acked: Bytes::new(record.bytes_acked),
            received: Bytes::new(record.bytes_received),
            sent_segments: record.segments_sent.into(),
            retransmits: record.total_retrans.into(),
            timeouts: (record.timeouts != UNKNOWN).then(|| record.timeouts.into()),
            delivered_ce: 0, // not read here
            pacing_rate: pacing_rate(record.pacing_rate),
        },
        retransmitted: Bytes::new(record.bytes_retrans),
        delivery_rate: delivery_rate(&record),
        received_segments: record.segments_received.into(),
        out_of_order_segments: record.segments_out_of_order.into(),
        idle: Span::from_micros(record.idle_us.into()),
        bound: bounded.then_some(bound),
        bound_until: bounded.then(|| Time::from_nanos(record.bound_expires_ns)),
        rule: (record.rule != 0).then(|| record.rule.trailing_zeros() as usize),
    }
}

impl Endpoints {
    pub(crate) fn local(&self) -> SocketAddr {
        address(self.family, self.local, self.local_port)
    }

    pub(crate) fn remote(&self) -> SocketAddr {
        address(self.family, self.remote, self.remote_port)
    }
}

/// A round trip in the kernel's microseconds; `None` before the first sample.
pub(crate) fn span(us: u32) -> Option<Span> {
    (us != 0 && us != UNKNOWN).then(|| Span::from_micros(us.into()))
}

/// The kernel's bytes a second, which are "no limit" before the first sample of the round trip.
pub(crate) fn pacing_rate(bytes: u64) -> Option<Rate> {
    bytes.checked_mul(8).map(Rate::from_bps)
}

/// net/ipv4/tcp.c `tcp_compute_delivery_rate()`: segments of one MSS over the interval.
fn delivery_rate(record: &Record) -> Option<Rate> {
    let data = u64::from(record.rate_delivered) * u64::from(record.mss_bytes);
    let known = record.rate_delivered != 0 && record.rate_interval_us != 0;
    known.then(|| Rate::over(Bytes::new(data), Span::from_micros(record.rate_interval_us.into())))
}

fn address(family: u16, octets: [u8; 16], port: u16) -> SocketAddr {
    let ip = if family == AF_INET {
        IpAddr::V4(Ipv4Addr::new(octets[0], octets[1], octets[2], octets[3]))
    } else {
        IpAddr::V6(Ipv6Addr::from(octets)).to_canonical()
    };
    SocketAddr::new(ip, port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv4_address_mapped_into_ipv6_is_told_as_ipv4() {
        let mapped = Ipv4Addr::new(10, 77, 0, 1).to_ipv6_mapped().octets();
        assert_eq!(address(10, mapped, 5001).to_string(), "10.77.0.1:5001");
        let mut plain = [0; 16];
        plain[..4].copy_from_slice(&[10, 77, 0, 1]);
        assert_eq!(address(2, plain, 80).to_string(), "10.77.0.1:80");
        assert_eq!(address(10, Ipv6Addr::LOCALHOST.octets(), 80).to_string(), "[::1]:80");
    }

    #[test]
    fn an_infinite_threshold_is_none() {
        assert_eq!(finite_ssthresh(0x7fff_ffff), None);
        assert_eq!(finite_ssthresh(12), Some(12));
    }
}
