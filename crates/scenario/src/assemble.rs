//! A [`RunResult`] from what a habitat has measured, the same for every habitat.
//!
//! A habitat hands over what only it can know: counters, samples and limits of each connection, what the agents did, and
//! whether real time did any harm. What follows from that and from the scenario is decided here.

use crate::bounds::Bounds;
use crate::convergence::ShareMeter;
use crate::deliveries::{DeliveryMeter, DeliveryResult};
use crate::measure::FlowMeter;
use crate::result::{
    AccessResult, Build, FlowResult, HostPolicyResult, HostsKind, LastLinkResult, Lateness, LinkResult, PoliciesResult,
    RunResult, SCHEMA_VERSION,
};
use crate::scenario::{AgentMode, HostSpec, Scenario};
use crate::traffic::{FlowSpec, TrafficKind};
use lasthop_network::Statistics;
use lasthop_policy::PolicyName;
use lasthop_units::{Bytes, Rate, Time};
use std::time::Duration;

/// A run at its end.
#[derive(Clone, Debug)]
pub struct Finished<'a> {
    /// What was run.
    pub scenario: &'a Scenario,
    /// [`Scenario::expanded_hosts`].
    pub hosts: &'a [HostSpec],
    /// Which build of lasthop ran it.
    pub build: Build,
    /// Each connection, in the order of their numbers.
    pub flows: Vec<FinishedFlow>,
    /// Who was busy when, and what each got.
    pub shares: ShareMeter,
    /// What the network counted after the warm-up.
    pub statistics: &'a Statistics,
    /// Packets that found a transmit queue full which is not the network's, after the warm-up.
    pub device_drops: u64,
    /// What the agent of each host with a policy did.
    pub policies: Vec<HostPolicyResult>,
    /// Events of the whole run.
    pub events: u64,
    /// What a reader should know that does not make the run invalid.
    pub notes: Vec<String>,
    /// Of kernel hosts; `None` in virtual time.
    pub real_time: Option<RealTime>,
}

/// What real time did to a run.
#[derive(Clone, Debug)]
pub struct RealTime {
    /// `uname -r`.
    pub kernel_release: Option<String>,
    /// How late packets reached their hosts.
    pub lateness: Lateness,
    /// What this machine took by itself of its hosts' turnaround; `None` where no host was seen to answer.
    pub machine_turnaround: Option<Lateness>,
    /// What could have changed the result; empty: the run is valid.
    pub invalid_reasons: Vec<String>,
    /// How long the run took.
    pub wall: Duration,
}

/// What a habitat has measured of one connection. Counters are those after the warm-up.
#[derive(Clone, Debug, Default)]
pub struct FinishedFlow {
    /// From its samples.
    pub meter: FlowMeter,
    /// The limits that its sender had.
    pub bounds: Bounds,
    /// What became of its messages or transfers.
    pub deliveries: DeliveryMeter,
    /// What the receiving application got.
    pub received: Bytes,
    /// Segments sent again.
    pub retransmits: u64,
    /// Retransmission timeouts; `None` where nobody counts them.
    pub timeouts: Option<u64>,
    /// What its sender's law made of the client's reports; `None` where it has heard none.
    pub last_link: Option<LastLinkResult>,
}

impl Finished<'_> {
    /// The result. In virtual time [`RunResult::took`] is left to whoever has a clock.
    ///
    /// # Panics
    /// If there is another number of connections than the hosts have.
    pub fn into_result(self) -> RunResult {
        let (warm_at, end) = (Time::ZERO + self.scenario.warmup, Time::ZERO + self.scenario.duration);
        let specs: Vec<&FlowSpec> = self.hosts.iter().flat_map(|host| &host.flows).collect();
        assert_eq!(specs.len(), self.flows.len(), "each connection of the scenario was measured");
        let rtts: Vec<f64> = self.flows.iter().flat_map(|flow| flow.meter.rtts_ms().iter().copied()).collect();
        let pooled = |of_kind: fn(TrafficKind) -> bool| {
            let both = specs.iter().zip(&self.flows).filter(|(spec, _)| of_kind(spec.kind));
            let meters: Vec<&DeliveryMeter> = both.map(|(_, flow)| &flow.deliveries).collect();
            (!meters.is_empty()).then(|| DeliveryResult::of(meters, end))
        };
        let access = AccessResult::of(self.statistics);
        let mut result = RunResult {
            schema_version: SCHEMA_VERSION,
            scenario: self.scenario.to_json(),
            hosts_kind: if self.real_time.is_some() { HostsKind::Kernel } else { HostsKind::Simulated },
            seed: self.scenario.seed,
            duration_s: self.scenario.duration.as_secs_f64(),
            warmup_s: self.scenario.warmup.as_secs_f64(),
            aggregate_goodput_mbps: 0.0,
            fairness_flows: 0,
            jain_index: None,
            starved_flows: 0,
            rtt_ms: None,
            messages: pooled(|kind| matches!(kind, TrafficKind::Interactive { .. })),
            transfers: pooled(TrafficKind::is_transfer),
            utilization: self.statistics.utilization,
            access: AccessResult { uplink_drops: access.uplink_drops + self.device_drops, ..access },
            links: LinkResult::all(self.scenario, self.statistics),
            flows: specs.iter().zip(&self.flows).map(|(spec, flow)| self.flow(spec, flow)).collect(),
            convergence: self.shares.convergence(warm_at, end, &self.scenario.network_changes()),
            build: self.build,
            policies: PoliciesResult::of(self.policies),
            kernel_release: None,
            wall_s: 0.0,
            events: self.events,
            simulated_s_per_wall_s: 0.0,
            lateness_us: None,
            machine_turnaround_us: None,
            valid: true,
            invalid_reasons: Vec::new(),
            notes: self.notes,
        };
        if let Some(real_time) = self.real_time {
            result.kernel_release = real_time.kernel_release;
            result.lateness_us = Some(real_time.lateness);
            result.machine_turnaround_us = real_time.machine_turnaround;
            result.valid = real_time.invalid_reasons.is_empty();
            result.invalid_reasons = real_time.invalid_reasons;
            result.took(real_time.wall);
        }
        result.summarise(&rtts);
        result
    }

    fn flow(&self, spec: &FlowSpec, flow: &FinishedFlow) -> FlowResult {
        let (warm_at, end) = (Time::ZERO + self.scenario.warmup, Time::ZERO + self.scenario.duration);
        let kind = &self.hosts[usize::from(spec.host)].kind;
        let policy = if kind.agent == AgentMode::Off { PolicyName::None } else { kind.policy.policy };
        let deliveries = DeliveryResult::of([&flow.deliveries], end);
        FlowResult {
            id: spec.id,
            host: spec.host,
            direction: spec.direction,
            kind: spec.kind.as_str().to_owned(),
            congestion_control: kind.congestion_control.clone(),
            policy: policy.as_str().to_owned(),
            always_busy: spec.is_always_busy(warm_at, end, flow.deliveries.is_all_read()),
            goodput_mbps: Rate::over(flow.received, end - warm_at).as_mbps(),
            rtt_ms: flow.meter.rtt_ms(),
            cwnd_mean: flow.meter.cwnd_mean(),
            state_shares: flow.meter.state_shares(),
            retransmits: flow.retransmits,
            timeouts: flow.timeouts,
            controlled_share: flow.bounds.controlled_share(warm_at, end),
            started_s: spec.start.as_secs_f64(),
            last_link: flow.last_link,
            messages: deliveries.delivered,
            undelivered: deliveries.undelivered,
            message_ms: deliveries.took_ms,
        }
    }
}
