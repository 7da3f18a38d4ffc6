//! From what was measured to the result and its series.

use crate::agents::AgentReport;
use crate::hosts::{DeviceDrops, has_links};
use crate::laws::LinkSample;
use crate::real_time::{self, QueueSample};
use crate::traffic;
use lasthop_laws::Applied;
use lasthop_scenario::assemble::{Finished, FinishedFlow, RealTime};
use lasthop_scenario::measure::{Bounds, FlowMeter, ShareMeter};
use lasthop_scenario::{
    AgentMode, Build, Direction, FlowSeries, FlowSpec, HostPolicyResult, HostSpec, LastLinkResult, Lateness,
    QueueSeries, RunResult, Scenario, Series,
};
use lasthop_units::{Probability, Rate, Time};
use std::time::Duration;

/// A run whose deliveries were later than this, 99 of 100, is not valid: it is the resolution of the TCP timestamps and
/// a quarter of the shortest path that scenarios use.
const LATE_P99_US: u64 = 1_000;
/// A run with one delivery later than this is not valid: the kernel's shortest retransmission timeout (TCP_RTO_MIN), so
/// that the delay alone could have made a sender time out.
const LATE_MAX_US: u64 = 200_000;

/// Whether this reason why a run is not valid is that the machine was busy with something else, so that running it again may
/// help.
pub fn is_lateness(invalid_reason: &str) -> bool {
    [" late,", " late:", " too late"].iter().any(|words| invalid_reason.contains(words))
}

/// So many flows that failed are told one by one.
const TOLD_FLOWS: usize = 3;

/// All that one run produced.
pub(crate) struct Measured<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) hosts: &'a [HostSpec],
    pub(crate) build: Build,
    pub(crate) medium: real_time::Report,
    pub(crate) traffic: traffic::Report,
    pub(crate) agents: Vec<AgentReport>,
    /// Dropped by full devices after the warm-up.
    pub(crate) device_drops: DeviceDrops,
    /// What servers' laws made of clients' reports, in the order of time.
    pub(crate) links: Vec<LinkSample>,
    pub(crate) wall: Duration,
}

impl Measured<'_> {
    /// The result and the series.
    pub(crate) fn into_outcome(self) -> (RunResult, Series) {
        let bounds = self.bounds();
        let series = Series { flows: self.flow_series(&bounds), queues: queue_series(&self.medium.queues) };
        let flows = self.flow_results(bounds);
        let spread = |times: &real_time::Histogram| Lateness {
            p50: times.permille_us(500) as f64,
            p99: times.permille_us(990) as f64,
            max: times.max_us() as f64,
        };
        let turnaround = &self.medium.turnaround;
        let real_time = RealTime {
            kernel_release: nix::sys::utsname::uname().ok().map(|uname| uname.release().to_string_lossy().into_owned()),
            lateness: spread(&self.medium.lateness),
            machine_turnaround: (turnaround.count() > 0).then(|| spread(turnaround)),
            invalid_reasons: self.invalid_reasons(),
            wall: self.wall,
        };
        let finished = Finished {
            scenario: self.scenario,
            hosts: self.hosts,
            build: self.build.clone(),
            flows,
            shares: self.shares(),
            statistics: &self.medium.statistics,
            // A station of 2012 has its queue, and so its drops, in the device.
            device_drops: self.device_drops.queued,
            policies: self.deciding_agents().map(policy_result).collect(),
            events: self.medium.events,
            notes: self.notes(),
            real_time: Some(real_time),
        };
        (finished.into_result(), series)
    }

    fn flows(&self) -> impl Iterator<Item = (&HostSpec, &FlowSpec)> {
        self.hosts.iter().flat_map(|host| host.flows.iter().map(move |flow| (host, flow)))
    }

    /// Those that the scenario asks for; not those that are there for nothing but to report a last link.
    fn deciding_agents(&self) -> impl Iterator<Item = &AgentReport> {
        self.agents.iter().filter(|agent| self.hosts[usize::from(agent.host)].kind.agent != AgentMode::Off)
    }

    fn warmup_end(&self) -> Time {
        Time::ZERO + self.scenario.warmup
    }

    /// The limits of each flow over time; a download is sent by the server, which no agent limits: a
    /// limit on the host's end is one on what it would send.
    fn bounds(&self) -> Vec<Bounds> {
        let is_up: Vec<bool> = self.flows().map(|(_, flow)| flow.direction == Direction::Up).collect();
        let mut bounds = vec![Bounds::default(); is_up.len()];
        for agent in &self.agents {
            for (flow, interval) in agent.intervals.iter().filter(|(flow, _)| is_up.get(*flow) == Some(&true)) {
                bounds[*flow].push(*interval);
            }
            if let Some(stopped) = agent.stopped {
                let of_host = self.flows().enumerate().filter(|(_, (host, _))| host.index == agent.host);
                let flows: Vec<usize> = of_host.map(|(flow, _)| flow).collect();
                flows.into_iter().for_each(|flow| bounds[flow].end(stopped));
            }
        }
        bounds
    }

    fn flow_series(&self, bounds: &[Bounds]) -> FlowSeries {
        let flows: Vec<(u16, u32)> = self.flows().map(|(host, flow)| (host.index, flow.id)).collect();
        let mut before = vec![None::<traffic::FlowSample>; flows.len()];
        let mut series = FlowSeries::default();
        for sample in &self.traffic.samples {
            let since = before[sample.flow].replace(*sample);
            let goodput = since.map_or(Rate::ZERO, |since| {
                Rate::over(sample.received - since.received, sample.at.saturating_since(since.at))
            });
            let limits = bounds[sample.flow].at(sample.at);
            let (host, flow) = flows[sample.flow];
            let info = &sample.info;
            let link = self.link_at(sample.flow, sample.at);
            series.push(lasthop_scenario::FlowSample {
                t_s: sample.at.as_secs_f64(),
                flow,
                host,
                cwnd_segments: info.cwnd_segments,
                ssthresh_segments: info.ssthresh_segments,
                srtt_ms: info.srtt.map(|srtt| srtt.as_millis_f64()),
                min_rtt_ms: info.min_rtt.map(|min_rtt| min_rtt.as_millis_f64()),
                state: info.ca_state,
                in_flight_segments: info.in_flight_segments,
                unsent_bytes: info.unsent_bytes.into(),
                retransmits: info.retransmits.into(),
                goodput_mbps: goodput.as_mbps(),
                bound_min: limits.min_segments,
                bound_max: limits.max_segments,
                bound_pacing_mbps: limits.max_pacing_rate.map(Rate::as_mbps),
                reported_bandwidth_mbps: link.and_then(|link| link.bandwidth).map(Rate::as_mbps),
                reported_error_rate: link.and_then(|link| link.error_rate).map(Probability::get),
                cwnd_max_segments: link.and_then(|link| link.cwnd_max_segments),
                ignored_losses: link.map(|link| link.ignored_losses),
            });
        }
        series
    }

    /// What the law of a flow's server last made of the client's reports until then.
    fn link_at(&self, flow: usize, at: Time) -> Option<&Applied> {
        let until = &self.links[..self.links.partition_point(|sample| sample.at <= at)];
        until.iter().rfind(|sample| sample.flow == flow).map(|sample| &sample.applied)
    }

    /// What it made of them after the warm-up.
    fn last_link(&self, flow: usize, end: Time) -> Option<LastLinkResult> {
        let last = self.link_at(flow, end)?;
        let warm = self.link_at(flow, self.warmup_end());
        let (ignored, heeded) = warm.map_or((0, 0), |warm| (warm.ignored_losses, warm.heeded_losses()));
        Some(LastLinkResult {
            ignored_losses: (last.ignored_losses - ignored).into(),
            heeded_losses: (last.heeded_losses() - heeded).into(),
            initial_segments: last.initial_segments,
        })
    }

    /// What follows from the samples of each flow.
    fn meters(&self) -> Vec<FlowMeter> {
        let mut meters = vec![FlowMeter::default(); self.traffic.flows.len()];
        for sample in &self.traffic.samples {
            let info = &sample.info;
            let srtt_ms = info.srtt.map(|srtt| srtt.as_millis_f64());
            let counts = sample.at >= self.warmup_end();
            meters[sample.flow].on_sample(counts, info.acked, srtt_ms, info.cwnd_segments, info.ca_state);
        }
        meters
    }

    /// Who was busy when, and what each got.
    fn shares(&self) -> ShareMeter {
        let flows: Vec<&FlowSpec> = self.flows().map(|(_, flow)| flow).collect();
        let mut shares = ShareMeter::default();
        for sample in &self.traffic.samples {
            let (flow, info) = (flows[sample.flow], &sample.info);
            let busy = flow.kind.is_greedy() && (info.unsent_bytes > 0 || info.in_flight_segments > 0);
            shares.on_sample(sample.at, flow.id, flow.host, sample.received, busy);
        }
        shares
    }

    fn flow_results(&self, bounds: Vec<Bounds>) -> Vec<FinishedFlow> {
        let end = Time::ZERO + self.scenario.duration;
        let measured = self.meters().into_iter().zip(bounds).zip(&self.traffic.flows).enumerate();
        let flow =
            |(number, ((meter, bounds), report)): (usize, ((FlowMeter, Bounds), &traffic::FlowReport))| FinishedFlow {
                meter,
                bounds,
                deliveries: report.transfer.clone(),
                received: report.received,
                retransmits: report.retransmits.into(),
                timeouts: report.timeouts.map(u64::from),
                last_link: self.last_link(number, end),
            };
        measured.map(flow).collect()
    }

    /// What a reader should know that does not make the run invalid.
    fn notes(&self) -> Vec<String> {
        let unconnected = self.traffic.flows.iter().filter(|flow| flow.unconnected).count();
        let of = self.traffic.flows.len();
        let mut notes = Vec::new();
        if unconnected > 0 {
            notes.push(format!("{unconnected} of {of} flows did not connect within the run"));
        }
        if has_links(self.scenario) && self.deciding_agents().next().is_some() {
            notes.push(lasthop_scenario::NO_PEERS_OVER_LINKS.to_owned());
        }
        notes
    }

    fn invalid_reasons(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        let (p99_us, max_us) = (self.medium.lateness.permille_us(990), self.medium.lateness.max_us());
        if p99_us > LATE_P99_US {
            reasons.push(format!("99 % of the deliveries were up to {p99_us} us late, more than {LATE_P99_US} us"));
        }
        if max_us > LATE_MAX_US {
            reasons.push(format!("one delivery was {max_us} us late, more than the shortest timeout of TCP"));
        }
        let traffic_us = self.traffic.late.as_micros();
        if traffic_us > LATE_MAX_US {
            reasons.push(format!("the applications were {traffic_us} us late, more than the shortest timeout of TCP"));
        }
        let failed = self.flows().zip(&self.traffic.flows).filter_map(|((_, flow), report)| {
            report.failed.as_ref().map(|failed| format!("flow {} of host {}: {failed}", flow.id, flow.host))
        });
        let failed: Vec<String> = failed.collect();
        reasons.extend(failed.iter().take(TOLD_FLOWS).cloned());
        if failed.len() > TOLD_FLOWS {
            reasons.push(format!("and {} more of {} flows", failed.len() - TOLD_FLOWS, self.traffic.flows.len()));
        }
        for agent in &self.agents {
            if let Some(failed) = &agent.failed {
                reasons.push(format!("the agent of host {}: {failed}", agent.host));
            }
            let decides = self.deciding_agents().any(|deciding| deciding.host == agent.host);
            if decides && agent.late > AgentReport::late_most() {
                let late_ms = agent.late.as_millis();
                reasons.push(format!("the agent of host {} was {late_ms} ms late: its bounds had lapsed", agent.host));
            }
        }
        if self.device_drops.unread > 0 {
            reasons.push(format!("devices dropped {} packets that were read too late", self.device_drops.unread));
        }
        if self.medium.refused > 0 {
            reasons.push(format!("{} packets were refused by a host's kernel", self.medium.refused));
        }
        reasons
    }
}

fn policy_result(agent: &AgentReport) -> HostPolicyResult {
    HostPolicyResult {
        host: agent.host,
        policy: agent.policy.clone(),
        beacons_sent: agent.beacons.sent,
        beacons_heard: agent.beacons.heard,
        beacons_rejected: agent.beacons.rejected,
        terminals_max: agent.terminals_max,
        control_enabled_at_s: agent.enabled_at.map(Time::as_secs_f64),
        bounds_changed: agent.bounds_changed,
    }
}

fn queue_series(samples: &[QueueSample]) -> QueueSeries {
    let mut series = QueueSeries::default();
    for sample in samples {
        series.push(lasthop_scenario::QueueSample {
            t_s: sample.at.as_secs_f64(),
            place: lasthop_scenario::place_name(sample.place),
            packets: sample.packets as u32,
        });
    }
    series
}
