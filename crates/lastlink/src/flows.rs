//! Queues and losses on the path, as the host's connections show them.

use super::evidence::{Counts, Interval};
use lasthop_connection::TcpState;
use lasthop_units::{Bytes, Rate, Span, Time};
use std::collections::BTreeMap;

/// A queue at least this long is not caused by a single burst.
const STANDING: Span = Span::from_millis(20);
/// Aggregates of a radio and interrupts of a network card come closer together than this.
const PAUSE: Span = Span::from_millis(10);

/// A connection at one moment. Counts are since it opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowSight {
    /// A number that no other connection of this host ever has.
    pub id: u64,
    /// Its state.
    pub tcp: TcpState,
    /// Data segments received.
    pub received_segments: u64,
    /// Data segments received out of order.
    pub out_of_order_segments: u64,
    /// Time since the latest data segment was received.
    pub idle: Span,
}

/// All connections, and the observations made on them.
#[derive(Clone, Debug, Default)]
pub(super) struct Flows {
    known: BTreeMap<u64, Known>,
    taken: Time,
    out_of_order: Counts,
    retransmitted: Counts,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    last: FlowSight,
    least_receive_rtt: Option<Span>,
}

impl Flows {
    /// Takes new observations. Returns the data that arrived on connections with a standing queue.
    pub(super) fn take(&mut self, now: Time, flows: &[FlowSight]) -> Bytes {
        let elapsed = now.saturating_since(std::mem::replace(&mut self.taken, now));
        let mut queued = Bytes::ZERO;
        let (mut received, mut out_of_order, mut sent, mut retransmits) = (0, 0, 0, 0);
        let mut known = BTreeMap::new();
        for flow in flows {
            let before = self.known.get(&flow.id);
            let least = before.and_then(|known| known.least_receive_rtt);
            let least_receive_rtt = least.min(flow.tcp.receive_rtt).or(least).or(flow.tcp.receive_rtt);
            known.insert(flow.id, Known { last: *flow, least_receive_rtt });
            let Some(Known { last, .. }) = before else { continue };
            let rise = |of: fn(&FlowSight) -> u64| of(flow).saturating_sub(of(last));
            if is_raised(flow.tcp.receive_rtt, least_receive_rtt) {
                let data = rise(|flow| flow.tcp.received.get());
                if stands(flow, least_receive_rtt) && !pauses(flow, data, elapsed) {
                    queued += Bytes::new(data);
                }
            } else {
                received += rise(|flow| flow.received_segments);
                out_of_order += rise(|flow| flow.out_of_order_segments);
            }
            // Losses beside a standing queue may be caused by the queue.
            if !is_raised(flow.tcp.srtt, flow.tcp.min_rtt) {
                sent += rise(|flow| flow.tcp.sent_segments);
                retransmits += rise(|flow| flow.tcp.retransmits);
            }
        }
        self.known = known;
        self.out_of_order.push(now, received, out_of_order);
        self.retransmitted.push(now, sent, retransmits);
        queued
    }

    /// Takes the counts of the next observation as the beginning.
    pub(super) fn begin_anew(&mut self) {
        self.known.clear();
    }

    /// The share of received segments that arrived out of order, without a standing queue.
    pub(super) fn out_of_order(&self, now: Time, validity: Span) -> Option<Interval> {
        self.out_of_order.share(now, validity)
    }

    /// The share of sent segments that were retransmissions, without a standing queue.
    pub(super) fn retransmitted(&self, now: Time, validity: Span) -> Option<Interval> {
        self.retransmitted.share(now, validity)
    }
}

/// Whether the connection has a standing queue, 20 ms or longer, rather than a burst.
fn stands(flow: &FlowSight, least: Option<Span>) -> bool {
    matches!((flow.tcp.receive_rtt, least), (Some(rtt), Some(least)) if rtt.saturating_sub(least) >= STANDING)
}

/// Whether the sender seems to pause. On a full link packets arrive back to back. `data`: bytes received in `elapsed`.
fn pauses(flow: &FlowSight, data: u64, elapsed: Span) -> bool {
    let two_packets = Rate::over(Bytes::new(data), elapsed).transmission_time(Bytes::new(2 * 1500));
    flow.idle > two_packets.max(PAUSE)
}

/// Whether the RTT indicates a queue: a quarter above the lowest.
fn is_raised(rtt: Option<Span>, least: Option<Span>) -> bool {
    matches!((rtt, least), (Some(rtt), Some(least)) if rtt.as_nanos().saturating_mul(4) >= least.as_nanos().saturating_mul(5))
}
