//! From what happened to the result and its series.

use crate::connection::{Connection, Counts};
use crate::simulation::Payload;
use lasthop_laws::bound::Bound;
use lasthop_network::{Network, Statistics};
use lasthop_scenario::assemble::{Finished, FinishedFlow};
use lasthop_scenario::measure::{Bounds, DeliveryMeter, FlowMeter, Interval, ShareMeter};
use lasthop_scenario::{
    Build, FlowSample, HostPolicyResult, HostSpec, LastLinkResult, QueueSample, RunResult, Scenario, Series,
};
use lasthop_units::{Bytes, Probability, Rate, Span, Time};

/// What is measured while a run goes on.
pub(crate) struct Measurement {
    warm_at: Time,
    sample: Span,
    series: Option<Series>,
    flows: Vec<Flow>,
    shares: ShareMeter,
}

#[derive(Clone, Debug, Default)]
struct Flow {
    meter: FlowMeter,
    bounds: Bounds,
    /// At the end of the warm-up.
    warm: Counts,
    /// What the receiving application had at the sample before.
    received: Bytes,
    deliveries: DeliveryMeter,
}

/// A run at its end.
pub(crate) struct Over<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) hosts: &'a [HostSpec],
    pub(crate) build: Build,
    pub(crate) connections: &'a [Connection],
    pub(crate) statistics: Statistics,
    pub(crate) policies: Vec<HostPolicyResult>,
    /// Those of the network in the warm-up, and all of the hosts' timers.
    pub(crate) other_events: u64,
    pub(crate) notes: Vec<String>,
}

impl Measurement {
    pub(crate) fn new(scenario: &Scenario, connections: usize, series: bool) -> Self {
        Self {
            warm_at: Time::ZERO + scenario.warmup,
            sample: scenario.sample,
            series: series.then(Series::default),
            flows: vec![Flow::default(); connections],
            shares: ShareMeter::default(),
        }
    }

    /// The warm-up is over.
    pub(crate) fn on_warm(&mut self, connections: &[Connection]) {
        for (flow, connection) in self.flows.iter_mut().zip(connections) {
            flow.warm = connection.counts();
        }
    }

    /// The limits of a connection were set; `None`: taken away.
    pub(crate) fn on_bound(&mut self, now: Time, connection: usize, bound: Option<Bound>, lease: Span) {
        self.flows[connection].bounds.push(Interval {
            from: now,
            until: if bound.is_some() { now + lease } else { now },
            // What bound.h takes for no limit.
            min_segments: bound.map(|bound| bound.min_segments).filter(|segments| *segments > 1),
            max_segments: bound.map(|bound| bound.max_segments).filter(|segments| *segments > 0),
            max_pacing_rate: bound.map(|bound| bound.max_pacing_rate).filter(|rate| *rate > Rate::ZERO),
        });
    }

    /// Messages were read to their end, each so long after it was written.
    pub(crate) fn on_messages(&mut self, now: Time, connection: usize, delays: &mut Vec<Span>) {
        for took in delays.drain(..).filter(|_| now >= self.warm_at) {
            self.flows[connection].deliveries.on_delivered(took);
        }
    }

    /// Looks at every connection that is open, and at the queues.
    pub(crate) fn on_sample(&mut self, now: Time, connections: &[Connection], network: &Network<Payload>) {
        let t_s = now.as_secs_f64();
        for (flow, connection) in self.flows.iter_mut().zip(connections) {
            let counts = connection.counts();
            let received_before = std::mem::replace(&mut flow.received, counts.received);
            let info = connection.sender().filter(|sender| sender.is_established()).map(|sender| sender.info());
            let is_busy = |info: &lasthop_tcp::Info| info.unsent_bytes > 0 || info.in_flight_segments > 0;
            let busy = connection.spec.kind.is_greedy() && info.as_ref().is_some_and(is_busy);
            self.shares.on_sample(now, connection.spec.id, connection.spec.host, counts.received, busy);
            let Some(info) = info else { continue };
            let srtt_ms = info.srtt.map(Span::as_millis_f64);
            flow.meter.on_sample(
                now >= self.warm_at,
                Bytes::new(info.acked_bytes),
                srtt_ms,
                info.cwnd_segments,
                info.state as u8,
            );
            let Some(series) = &mut self.series else { continue };
            let limits = flow.bounds.at(now);
            let link = info.last_link;
            series.flows.push(FlowSample {
                t_s,
                flow: connection.spec.id,
                host: connection.spec.host,
                cwnd_segments: info.cwnd_segments,
                ssthresh_segments: info.ssthresh_segments,
                srtt_ms,
                min_rtt_ms: info.min_rtt.map(Span::as_millis_f64),
                state: info.state as u8,
                in_flight_segments: info.in_flight_segments,
                unsent_bytes: info.unsent_bytes,
                retransmits: counts.retransmits,
                goodput_mbps: Rate::over(counts.received - received_before, self.sample).as_mbps(),
                bound_min: limits.min_segments,
                bound_max: limits.max_segments,
                bound_pacing_mbps: limits.max_pacing_rate.map(Rate::as_mbps),
                reported_bandwidth_mbps: link.and_then(|link| link.bandwidth).map(Rate::as_mbps),
                reported_error_rate: link.and_then(|link| link.error_rate).map(Probability::get),
                cwnd_max_segments: link.and_then(|link| link.cwnd_max_segments),
                ignored_losses: link.map(|link| link.ignored_losses),
            });
        }
        if let Some(series) = &mut self.series {
            for place in network.places() {
                let packets = network.queue_packets(place) as u32;
                series.queues.push(QueueSample { t_s, place: lasthop_scenario::place_name(place), packets });
            }
        }
    }

    pub(crate) fn into_outcome(self, over: Over<'_>) -> (RunResult, Series) {
        let flow = |(flow, connection): (Flow, &Connection)| {
            let (counts, warm) = (connection.counts(), flow.warm);
            let mut deliveries = flow.deliveries;
            connection.application.undelivered().for_each(|since| deliveries.on_undelivered(since));
            FinishedFlow {
                meter: flow.meter,
                bounds: flow.bounds,
                deliveries,
                received: counts.received - warm.received,
                retransmits: counts.retransmits - warm.retransmits,
                timeouts: Some(counts.timeouts - warm.timeouts),
                last_link: counts.heard_reports.then(|| LastLinkResult {
                    ignored_losses: counts.ignored_losses - warm.ignored_losses,
                    heeded_losses: counts.heeded_losses - warm.heeded_losses,
                    initial_segments: counts.initial_segments,
                }),
            }
        };
        let finished = Finished {
            scenario: over.scenario,
            hosts: over.hosts,
            build: over.build,
            flows: self.flows.into_iter().zip(over.connections).map(flow).collect(),
            shares: self.shares,
            statistics: &over.statistics,
            device_drops: 0,
            policies: over.policies,
            events: over.statistics.events + over.other_events,
            notes: over.notes,
            real_time: None,
        };
        (finished.into_result(), self.series.unwrap_or_default())
    }
}
