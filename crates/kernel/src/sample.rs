//! The kernel's data on its sockets.

use crate::layout::{self, Change, Endpoints, Name, Record};
use lasthop_laws::Bound;
use lasthop_units::{Bytes, Rate, Span, Time};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

const AF_INET: u16 = 2;
/// include/net/tcp.h: `TCP_INFINITE_SSTHRESH`.
const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;
pub(crate) const UNKNOWN: u32 = u32::MAX;

/// The kernel's states of congestion control (`TCP_CA_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CongestionState {
    /// Nothing suspicious.
    Open,
    /// Out-of-order delivery: duplicate or selective acknowledgements, no loss concluded.
    Disorder,
    /// Window being reduced without a loss: ECN, a full local queue, or a probe that found a loss.
    Cwr,
    /// Window being reduced and lost segments being retransmitted.
    Recovery,
    /// Recovering from a retransmission timeout.
    Loss,
}

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
    /// The interface that its packets leave by.
    pub interface_index: u32,
    /// The name of its congestion control.
    pub congestion_control: Arc<str>,
    /// Whether this loader controls it.
    pub controlled: bool,
    /// Why it does not; `None`: it does, or the mode controls nothing.
    pub left: Option<Left>,
    /// The congestion window.
    pub cwnd_segments: u32,
    /// The slow start threshold; none before the first loss or HyStart.
    pub ssthresh_segments: Option<u32>,
    /// The smoothed round-trip time.
    pub srtt: Option<Span>,
    /// The smallest round-trip time of the kernel's window (5 minutes by default).
    pub min_rtt: Option<Span>,
    /// The round-trip time of the newest acknowledged segment, without the receiver's wait for a second one.
    pub newest_rtt: Option<Span>,
    /// The state of its congestion control.
    pub state: CongestionState,
    /// Segments sent and neither acknowledged, nor SACKed, nor thought lost.
    pub in_flight_segments: u32,
    /// Data that the application has written and TCP has not sent yet.
    pub unsent: Bytes,
    /// Segments retransmitted so far.
    pub retransmits: u64,
    /// Data retransmitted so far.
    pub retransmitted: Bytes,
    /// Segments with data sent so far, retransmissions among them.
    pub sent_segments: u64,
    /// Retransmission timeouts so far; `None` if the kernel does not count them (before 6.7).
    pub timeouts: Option<u64>,
    /// The kernel's latest estimate of the delivery rate.
    pub delivery_rate: Option<Rate>,
    /// The kernel's pacing rate, or its value if pacing were on, in bit/s of payload; `None` before the first RTT
    /// sample.
    pub pacing_rate: Option<Rate>,
    /// The largest segment sent, without headers.
    pub mss: Bytes,
    /// Data acknowledged so far.
    pub acked: Bytes,
    /// Data received in order so far.
    pub received: Bytes,
    /// Segments with data received so far.
    pub received_segments: u64,
    /// Of those, out-of-order ones.
    pub out_of_order_segments: u64,
    /// The receiver's estimate of the RTT: from an acknowledgement to the data that it permits.
    pub receive_rtt: Option<Span>,
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

impl CongestionState {
    pub(crate) fn from_kernel(state: u8) -> Self {
        match state {
            0 => Self::Open,
            1 => Self::Disorder,
            2 => Self::Cwr,
            3 => Self::Recovery,
            // The kernel has had five states since 2.4.
            _ => Self::Loss,
        }
    }
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
        from: CongestionState::from_kernel(change.from),
        to: CongestionState::from_kernel(change.to),
        cwnd_segments: change.cwnd_segments,
        ssthresh_segments: ssthresh(change.ssthresh_segments),
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
        congestion_control,
        controlled: record.controlled != 0,
        left: Left::from_kernel(record.left),
        cwnd_segments: record.cwnd_segments,
        ssthresh_segments: ssthresh(record.ssthresh_segments),
        srtt: (record.srtt_us != 0).then(|| Span::from_micros(record.srtt_us.into())),
        newest_rtt: (record.newest_rtt_us != 0).then(|| Span::from_micros(record.newest_rtt_us.into())),
        min_rtt: (record.min_rtt_us != UNKNOWN).then(|| Span::from_micros(record.min_rtt_us.into())),
        state: CongestionState::from_kernel(record.ca_state),
        in_flight_segments: record.in_flight_segments,
        unsent: Bytes::new(record.unsent_bytes.into()),
        retransmits: record.total_retrans.into(),
        retransmitted: Bytes::new(record.bytes_retrans),
        timeouts: (record.timeouts != UNKNOWN).then(|| record.timeouts.into()),
        delivery_rate: delivery_rate(&record),
        pacing_rate: record.pacing_rate.checked_mul(8).map(Rate::from_bps),
        mss: Bytes::new(record.mss_bytes.into()),
        acked: Bytes::new(record.bytes_acked),
        sent_segments: record.segments_sent.into(),
        received: Bytes::new(record.bytes_received),
        received_segments: record.segments_received.into(),
        out_of_order_segments: record.segments_out_of_order.into(),
        idle: Span::from_micros(record.idle_us.into()),
        receive_rtt: (record.receive_rtt_us != 0).then(|| Span::from_micros(record.receive_rtt_us.into())),
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

pub(crate) fn ssthresh(segments: u32) -> Option<u32> {
    (segments < INFINITE_SSTHRESH).then_some(segments)
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
        assert_eq!(ssthresh(0x7fff_ffff), None);
        assert_eq!(ssthresh(12), Some(12));
    }
}
