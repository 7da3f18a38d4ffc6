//! From what happened to the result and its series.

use crate::connection::{Connection, Counts};
use crate::simulation::Payload;
use control::bound::Bound;
use control::policy::PolicyName;
use network::{Network, Statistics};
use scenario::measure::{Bounds, Distribution, FlowMeter, Interval, ShareMeter};
use scenario::{
    AccessResult, AgentMode, Build, FlowResult, FlowSample, HostPolicyResult, HostSpec, HostsKind, LastLinkResult,
    LinkResult, PoliciesResult, QueueSample, RunResult, SCHEMA_VERSION, Scenario, Series,
};
use units::{Bytes, Probability, Rate, Span, Time};

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
    /// From writing a message to reading its last byte, in ms.
    delays_ms: Vec<f64>,
}

/// A run at its end.
pub(crate) struct Finished<'a> {
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
        let limit = |segments: u32| (segments > 0).then_some(segments);
        self.flows[connection].bounds.push(Interval {
            from: now,
            until: if bound.is_some() { now + lease } else { now },
            min_segments: bound.and_then(|bound| limit(bound.min_segments)),
            max_segments: bound.and_then(|bound| limit(bound.max_segments)),
            max_pacing_rate: bound.map(|bound| bound.max_pacing_rate).filter(|rate| *rate > Rate::ZERO),
        });
    }

    /// Messages were read to their end, each so long after it was written.
    pub(crate) fn on_messages(&mut self, now: Time, connection: usize, delays: &mut Vec<Span>) {
        let delays = delays.drain(..).map(Span::as_millis_f64);
        if now >= self.warm_at {
            self.flows[connection].delays_ms.extend(delays);
        }
    }

    /// Looks at every connection that is open, and at the queues.
    pub(crate) fn on_sample(&mut self, now: Time, connections: &[Connection], network: &Network<Payload>) {
        let t_s = now.as_secs_f64();
        for (flow, connection) in self.flows.iter_mut().zip(connections) {
            let counts = connection.counts();
            let received_before = std::mem::replace(&mut flow.received, counts.received);
            let info = connection.sender().filter(|sender| sender.is_established()).map(|sender| sender.info());
            let is_busy = |info: &tcp::Info| info.unsent_bytes > 0 || info.in_flight_segments > 0;
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
                series.queues.push(QueueSample { t_s, place: scenario::place_name(place), packets });
            }
        }
    }

    pub(crate) fn into_outcome(self, finished: Finished<'_>) -> (RunResult, Series) {
        let Finished { scenario, hosts, build, connections, statistics, policies, other_events, notes } = finished;
        let measured = scenario.duration - scenario.warmup;
        let end = Time::ZERO + scenario.duration;
        let rtts: Vec<f64> = self.flows.iter().flat_map(|flow| flow.meter.rtts_ms().iter().copied()).collect();
        let flows = self.flows.iter().zip(connections.iter()).map(|(flow, connection)| {
            let spec = &connection.spec;
            let kind = &hosts[usize::from(spec.host)].kind;
            let policy = if kind.agent == AgentMode::Off { PolicyName::None } else { kind.policy.policy };
            let counts = connection.counts();
            FlowResult {
                id: spec.id,
                host: spec.host,
                direction: spec.direction,
                congestion_control: kind.congestion_control.clone(),
                policy: policy.as_str().to_owned(),
                goodput_mbps: Rate::over(counts.received - flow.warm.received, measured).as_mbps(),
                rtt_ms: flow.meter.rtt_ms(),
                cwnd_mean: flow.meter.cwnd_mean(),
                state_shares: flow.meter.state_shares(),
                retransmits: counts.retransmits - flow.warm.retransmits,
                timeouts: Some(counts.timeouts - flow.warm.timeouts),
                controlled_share: flow.bounds.controlled_share(self.warm_at, end),
                started_s: spec.start.as_secs_f64(),
                last_link: counts.heard_reports.then(|| LastLinkResult {
                    ignored_losses: counts.ignored_losses - flow.warm.ignored_losses,
                    heeded_losses: counts.heeded_losses - flow.warm.heeded_losses,
                    initial_segments: counts.initial_segments,
                }),
                message_ms: Distribution::of(&flow.delays_ms),
                messages: flow.delays_ms.len() as u64,
            }
        });
        let mut result = RunResult {
            schema_version: SCHEMA_VERSION,
            scenario: scenario.to_json(),
            hosts_kind: HostsKind::Simulated,
            seed: scenario.seed,
            build,
            duration_s: scenario.duration.as_secs_f64(),
            warmup_s: scenario.warmup.as_secs_f64(),
            aggregate_goodput_mbps: 0.0,
            jain_index: None,
            starved_flows: 0,
            rtt_ms: None,
            utilization: statistics.utilization,
            access: AccessResult::of(&statistics),
            links: LinkResult::all(scenario, &statistics),
            flows: flows.collect(),
            convergence: self.shares.convergence(self.warm_at, end, &scenario.network_changes()),
            policies: PoliciesResult::of(policies),
            kernel_release: None,
            wall_s: 0.0,
            events: statistics.events + other_events,
            simulated_s_per_wall_s: 0.0,
            lateness_us: None,
            machine_turnaround_us: None,
            valid: true,
            invalid_reasons: Vec::new(),
            notes,
        };
        result.summarise(&rtts);
        (result, self.series.unwrap_or_default())
    }
}
