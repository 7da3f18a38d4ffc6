//! What the tick shows: the host's own connections and what its peers say, as the few numbers that the control law looks at.

use crate::peers::Report;
use crate::policy::{FlowId, FlowObservation, Observation};
use std::collections::BTreeMap;
use units::{Rate, Span, Time};

/// A peer's word about the queue weighs e^(−age / this), in s: beacons come every 0.3 s where hosts are few.
const AGE_S: f64 = 1.0;
/// What a peer says of its goodput counts for so long, in s.
const DELIVERED_AGE_S: f64 = 1.0;
/// An idle peer's goodput counts from this on, in bytes per second: it waits for a timeout, and has not just asked for something.
const WAITING: f64 = 3000.0;
/// No peer's lowest RTT and no peer's excess are believed above this, in s.
const MOST_BASE_S: f64 = 1.0;
const MOST_EXCESS_S: f64 = 10.0;
/// A tick that comes later than this, in s, is not the later for it: the host was asleep.
const LONGEST_TICK_S: f64 = 2.0;
/// Payload of a segment where no connection tells, in bytes.
const SEGMENT: f64 = 1448.0;

/// What is remembered of the host from one tick to the next.
#[derive(Clone, Debug, Default)]
pub(super) struct Own {
    flows: BTreeMap<FlowId, Flow>,
    last: Option<Time>,
    /// Smoothed goodput of the host, in bytes per second.
    delivered: f64,
    /// Any connection has something to send.
    wants: bool,
    /// The mean excess of the busy connections, in s; `None`: none is busy.
    excess: Option<f64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    acked: u64,
    /// Smoothed excess of the newest segment acknowledged, in s.
    newest_excess: Option<f64>,
}

/// The numbers of one tick. Times in s, rates in bytes of payload per second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Signals {
    pub(super) now: Time,
    /// Since the tick before.
    pub(super) elapsed: f64,
    /// Any connection is busy.
    pub(super) busy: bool,
    /// Any connection has something to send, busy or waiting for a timeout.
    pub(super) wants: bool,
    /// Any busy connection has more to send than has gone.
    pub(super) backlogged: bool,
    /// How many connections are busy, at least 1.
    pub(super) flows: f64,
    /// Payload of a segment.
    pub(super) segment: f64,
    /// The host's own goodput, smoothed, and that of this tick alone.
    pub(super) delivered: f64,
    pub(super) delivered_now: f64,
    /// RTT − lowest RTT: the mean over the busy hosts, the fresher the heavier.
    pub(super) excess: f64,
    /// Lowest RTT: the mean in the same way.
    pub(super) base: f64,
    /// Goodput: the mean over this host and the peers just heard.
    pub(super) mean_delivered: f64,
    /// Busy hosts, this one included.
    pub(super) terminals: u32,
    /// The common rates that were heard since the last tick: their sum and number.
    pub(super) heard: (f64, f64),
    /// The same of all peers that control, however old.
    pub(super) known: (f64, f64),
    /// Peers that control, that have released control, and that find control harmful.
    pub(super) controlling: f64,
    pub(super) released: f64,
    pub(super) harmed: f64,
}

impl Signals {
    pub(super) fn excess_span(&self) -> Span {
        Span::from_secs_f64(self.excess)
    }
}

#[cfg(test)]
impl Signals {
    /// Half a second of one busy, backlogged connection of a host that hears nobody.
    pub(super) fn alone(base: f64, excess: f64, delivered: f64) -> Self {
        Self {
            now: Time::ZERO,
            elapsed: 0.5,
            busy: true,
            wants: true,
            backlogged: true,
            flows: 1.0,
            segment: SEGMENT,
            delivered,
            delivered_now: delivered,
            excess,
            base,
            mean_delivered: delivered,
            terminals: 1,
            heard: (0.0, 0.0),
            known: (0.0, 0.0),
            controlling: 0.0,
            released: 0.0,
            harmed: 0.0,
        }
    }
}

impl Own {
    /// Takes the tick. With `sparse` windows are so small that the receiver's delayed acknowledgements are in the smoothed RTT,
    /// and the newest segment's is taken. What peers said of their state before `since` does not count: it is from before this
    /// host's latest change. What they take for the common rate counts for twice `rate` at most, and for half of it at least.
    pub(super) fn on_tick(
        &mut self,
        observation: &Observation<'_>,
        sparse: bool,
        since: Time,
        rate: Option<f64>,
    ) -> Signals {
        let Observation { now, flows, peers } = *observation;
        let elapsed =
            self.last.map_or(0.5, |last| now.saturating_since(last).as_secs_f64()).clamp(1e-3, LONGEST_TICK_S);
        self.last = Some(now);
        let mut known = std::mem::take(&mut self.flows);
        let (mut acked, mut excess, mut base, mut busy) = (0_u64, 0.0, 0.0, 0.0);
        let (mut segment, mut wants, mut backlogged) = (SEGMENT, false, false);
        for flow in flows {
            let before = known.remove(&flow.id).unwrap_or(Flow { acked: flow.acked.get(), newest_excess: None });
            let mut entry = Flow { acked: flow.acked.get(), ..before };
            acked += entry.acked.saturating_sub(before.acked);
            wants |= flow.in_flight_segments > 0 || flow.backlogged;
            if let (true, Some(srtt), Some(lowest)) = (flow.busy, flow.srtt, flow.min_rtt) {
                entry.newest_excess = Some(newest_excess(flow, srtt, lowest, before.newest_excess));
                let smoothed = srtt.saturating_sub(lowest).as_secs_f64();
                excess += if sparse { entry.newest_excess.unwrap_or(smoothed) } else { smoothed };
                base += lowest.as_secs_f64();
                busy += 1.0;
                segment = segment_of(flow);
                backlogged |= flow.backlogged;
            }
            self.flows.insert(flow.id, entry);
        }
        let any = busy > 0.0;
        let flows = f64::max(busy, 1.0);
        (excess, base) = (excess / flows, base / flows);
        (self.excess, self.wants) = (any.then_some(excess), wants);
        let horizon = 1.0 + 2.0 * (excess + base);
        let delivered_now = acked as f64 / elapsed;
        self.delivered += (delivered_now - self.delivered) * (elapsed / horizon).min(1.0);
        let mut signals = Signals {
            now,
            elapsed,
            busy: any,
            wants,
            backlogged,
            flows,
            segment,
            delivered: self.delivered,
            delivered_now,
            excess: 0.0,
            base: 0.0,
            mean_delivered: self.delivered,
            terminals: peers.terminals(),
            heard: (0.0, 0.0),
            known: (0.0, 0.0),
            controlling: 0.0,
            released: 0.0,
            harmed: 0.0,
        };
        let mut weights = if any { 1.0 } else { 0.0 };
        let mut reports = 1.0;
        for peer in peers.peers() {
            let report = &peer.report;
            let age = now.saturating_since(peer.heard_at).as_secs_f64();
            // Also of those that wait for a timeout: without them the mean of an unfair medium is too good.
            let delivered = bytes_per_second(report.delivered);
            if age < DELIVERED_AGE_S && (report.excess.is_some() || delivered > WAITING) {
                signals.mean_delivered += delivered;
                reports += 1.0;
            }
            if report.busy_flows == 0 {
                continue;
            }
            if let (Some(theirs), Some(lowest)) = (report.excess, report.min_rtt) {
                let weight = (-age / AGE_S).exp();
                excess += theirs.as_secs_f64().min(MOST_EXCESS_S) * weight;
                base += lowest.as_secs_f64().min(MOST_BASE_S) * weight;
                weights += weight;
            }
            if peer.heard_at < since {
                continue;
            }
            let theirs = bytes_per_second(report.common_rate);
            let controls = theirs > 0.0 && !report.released;
            signals.controlling += f64::from(u8::from(controls));
            signals.released += f64::from(u8::from(report.released));
            signals.harmed += f64::from(u8::from(controls && report.harmed));
            if controls {
                let believed = rate.map_or(theirs, |own| theirs.clamp(own / 2.0, 2.0 * own));
                signals.known = (signals.known.0 + believed, signals.known.1 + 1.0);
                if age <= elapsed {
                    signals.heard = (signals.heard.0 + believed, signals.heard.1 + 1.0);
                }
            }
        }
        signals.mean_delivered /= reports;
        if weights > 0.0 {
            (signals.excess, signals.base) = (excess / weights, base / weights);
        }
        signals
    }

    /// What peers are told of this host. One that has nothing to send delivers nothing: the smoothed goodput would count it among
    /// those that want a share for seconds more, and look as if the medium had collapsed.
    pub(super) fn tell(&self, report: &mut Report) {
        report.delivered = if self.wants { rate(self.delivered) } else { Rate::ZERO };
        report.excess = self.excess.map(Span::from_secs_f64);
    }
}

fn newest_excess(flow: &FlowObservation, srtt: Span, lowest: Span, before: Option<f64>) -> f64 {
    let excess = flow.newest_rtt.unwrap_or(srtt).saturating_sub(lowest).as_secs_f64();
    before.map_or(excess, |before| (before + excess) / 2.0)
}

/// Payload of a full segment of this connection, in bytes.
pub(super) fn segment_of(flow: &FlowObservation) -> f64 {
    if flow.mss_bytes == 0 { SEGMENT } else { flow.mss_bytes.into() }
}

pub(super) fn bytes_per_second(rate: Rate) -> f64 {
    rate.as_bps() as f64 / 8.0
}

pub(super) fn rate(bytes_per_second: f64) -> Rate {
    Rate::from_bps((bytes_per_second * 8.0) as u64)
}
