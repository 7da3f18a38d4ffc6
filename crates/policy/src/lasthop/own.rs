//! What a host sees of itself: which connections are bulk, what it delivers, and how far round trips have risen.

use super::parts::{LawPart, Parts};
use crate::{FlowId, FlowMap, FlowObservation, Observation};
use lasthop_units::{Bytes, Rate, Span, Time};

/// The host, from tick to tick.
#[derive(Clone, Debug, Default)]
pub(super) struct Own {
    parts: Parts,
    flows: FlowMap<Flow>,
    last: Option<Time>,
    delivered: Rate,
}

/// A connection, from tick to tick.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flow {
    acked: Bytes,
    received: Bytes,
    acked_at: Time,
    /// The lowest RTT since it was last asleep: TCP forgets it after minutes, and would take the queue aimed at for the path.
    pub(super) lowest: Option<Span>,
    /// Parts of the ticks in which it had enough to send, and received.
    full: f64,
    receives: f64,
    arrives: Rate,
    /// It is a bulk upload; a bulk download.
    pub(super) uploads: bool,
    pub(super) downloads: bool,
}

/// The host at a tick.
#[derive(Clone, Copy, Debug)]
pub(super) struct Host {
    pub(super) now: Time,
    pub(super) elapsed: Span,
    /// Payload that it sends and receives.
    pub(super) delivered: Rate,
    /// Its bulk connections.
    pub(super) bulk: u32,
    /// RTT − lowest RTT, and lowest RTT: means over the bulk connections; `None`: no RTT is of now.
    pub(super) queue: Option<Span>,
    pub(super) base: Span,
    /// The payload of a segment, the largest of its bulk uploads; zero: it has none.
    pub(super) segment: Bytes,
}

/// How much a mean keeps of the past, that forgets within `age`.
pub(super) fn kept(elapsed: Span, age: Span) -> f64 {
    libm::exp(-elapsed.as_secs_f64() / age.as_secs_f64())
}

/// `new` in a mean of which `keep` is the past.
pub(super) fn mean(past: Rate, keep: f64, new: Rate) -> Rate {
    past * keep + new * (1.0 - keep)
}

impl Own {
    pub(super) fn new(parts: Parts) -> Self {
        Self { parts, ..Self::default() }
    }

    pub(super) fn flow(&self, id: FlowId) -> Option<&Flow> {
        self.flows.get(&id)
    }

    /// The bulk connections, in the order of their identities.
    pub(super) fn bulk(&self) -> Vec<FlowId> {
        let mut bulk: Vec<_> = self.flows.iter().filter(|(_, flow)| flow.bulk()).map(|(id, _)| *id).collect();
        bulk.sort_unstable();
        bulk
    }

    pub(super) fn on_tick(&mut self, seen: &Observation<'_>) -> Host {
        let now = seen.now;
        let since = self.last.replace(now).map_or(crate::TICK, |last| now.saturating_since(last));
        // A host that hung for minutes has not been idle for minutes.
        let elapsed = since.clamp(Span::from_millis(50), Span::from_secs(2));
        let over = since.max(elapsed);
        let before = std::mem::take(&mut self.flows);
        self.flows.reserve(seen.flows.len());
        let mut got = Bytes::ZERO;
        let mut segment = 0;
        let mut round_trips = Vec::new();
        for flow in seen.flows {
            let (state, moved) = Flow::on_tick(before.get(&flow.id), flow, (now, elapsed, over), self.parts);
            got += moved;
            round_trips.extend(state.round_trips(flow, now, self.parts.constants.recent));
            segment = if state.uploads { segment.max(flow.tcp.mss_bytes) } else { segment };
            self.flows.insert(flow.id, state);
        }
        self.delivered = mean(self.delivered, kept(elapsed, self.parts.constants.delivered_age), Rate::over(got, over));
        let count = round_trips.len() as u64;
        let sum = |of: fn(&(Span, Span)) -> Span| round_trips.iter().map(of).sum::<Span>();
        Host {
            now,
            elapsed,
            delivered: self.delivered,
            bulk: u32::try_from(self.flows.values().filter(|flow| flow.bulk()).count()).unwrap_or(u32::MAX),
            queue: (count > 0).then(|| sum(|(rtt, lowest)| rtt.saturating_sub(*lowest)) / count.max(1)),
            base: sum(|(_, lowest)| *lowest) / count.max(1),
            segment: Bytes::new(u64::from(segment)),
        }
    }
}

impl Flow {
    pub(super) fn bulk(&self) -> bool {
        self.uploads || self.downloads
    }

    /// The connection after this tick, and what it has moved.
    fn on_tick(
        before: Option<&Self>,
        seen: &FlowObservation,
        (now, elapsed, over): (Time, Span, Span),
        parts: Parts,
    ) -> (Self, Bytes) {
        let (acked, received) = (seen.tcp.acked, seen.tcp.received);
        let new = Self { acked, received, acked_at: now, lowest: seen.tcp.min_rtt, ..Self::default() };
        let past = before.unwrap_or(&new);
        let since = |now: Bytes, then: Bytes| Bytes::new(now.get().saturating_sub(then.get()));
        let (sent, arrived) = (since(acked, past.acked), since(received, past.received));
        let keep = kept(elapsed, parts.constants.recent);
        let part = |past: f64, is: bool| past * keep + if is { 1.0 - keep } else { 0.0 };
        let enough = parts.constants.full_segments.min(seen.tcp.cwnd_segments).max(1);
        let buffer = if parts.has(LawPart::SendBuffer) { parts.constants.buffer_segments } else { u32::MAX };
        let is_full = seen.tcp.in_flight_segments >= if seen.tcp.is_backlogged() { enough } else { buffer };
        let (full, receives) = (part(past.full, is_full), part(past.receives, seen.receiving));
        let arrives = mean(past.arrives, keep, Rate::over(arrived, over));
        let flow = Self {
            acked_at: if sent > Bytes::ZERO { now } else { past.acked_at },
            lowest: [past.lowest, seen.tcp.min_rtt].into_iter().flatten().min(),
            full,
            receives,
            arrives,
            uploads: full > parts.constants.bulk,
            downloads: receives > parts.constants.bulk && arrives > parts.constants.least_download,
            ..new
        };
        (flow, sent + arrived)
    }

    /// RTT and lowest RTT of a bulk connection, in each direction that is bulk and whose RTT is of now.
    fn round_trips(&self, seen: &FlowObservation, now: Time, recent: Span) -> impl Iterator<Item = (Span, Span)> {
        let down = seen.tcp.receive_rtt.zip(seen.min_receive_rtt).filter(|_| self.downloads && seen.receiving);
        let is_of_now = now.saturating_since(self.acked_at) < recent;
        let up = seen.tcp.srtt.zip(self.lowest).filter(|_| self.uploads && is_of_now);
        down.into_iter().chain(up)
    }
}
