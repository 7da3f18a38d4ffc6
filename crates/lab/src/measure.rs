//! Converts the measurements to the result and its series.

use crate::agents::AgentReport;
use crate::hosts::{DeviceDrops, has_links};
use crate::laws::LinkSample;
use crate::linux_queue::LinuxQueueReport;
use crate::medium::MediumReport;
use crate::radios;
use crate::real_time;
use crate::traffic;
use lasthop_laws::Applied;
use lasthop_measure::{Counted, Finished, Measurement, RealTime};
use lasthop_scenario::{
    AccessResult, AgentMode, Build, Direction, FlowSpec, HostPolicyResult, HostSpec, InvalidKind, LastLinkResult,
    Lateness, Queue, RunResult, Scenario, Series, Wifi,
};
use lasthop_units::{Span, Time};
use std::time::Duration;

/// The maximum 99th percentile of delivery lateness in a valid run. It is the resolution of TCP timestamps, and a
/// quarter of the scenarios' shortest path.
pub(crate) const LATE_P99_US: u64 = 1_000;
/// The maximum delivery lateness in a valid run: the kernel's minimum retransmission timeout (TCP_RTO_MIN). A longer
/// delay alone could have caused a timeout.
const LATE_MAX_US: u64 = 200_000;

/// The share of the time for which a valve may hold senders back in a valid run, in percent: their goodput falls by no more.
const HELD_PERCENT: f64 = 10.0;

/// A program of a policy may be late at one tick in this many; nothing is bounded then.
const PROGRAM_LATE_ONE_IN: u64 = 100;

/// The maximum number of failed flows to report individually.
const TOLD_FLOWS: usize = 3;

/// All output of one run.
pub(crate) struct Measured<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) hosts: &'a [HostSpec],
    pub(crate) build: Build,
    pub(crate) medium: real_time::Report,
    pub(crate) traffic: traffic::Report,
    pub(crate) agents: Vec<AgentReport>,
    /// Packets dropped by full devices after the warm-up.
    pub(crate) device_drops: DeviceDrops,
    /// By end: for how long its valve held senders back after the warm-up.
    pub(crate) held: Vec<Span>,
    /// The state that servers' laws derived from clients' reports, in order of time.
    pub(crate) links: Vec<LinkSample>,
    /// What the medium of radios has counted, if there was one.
    pub(crate) radios: Option<MediumReport>,
    pub(crate) wall: Duration,
}

impl Measured<'_> {
    /// The result and the series.
    pub(crate) fn into_outcome(self) -> (RunResult, Series) {
        let mut measurement = Measurement::new(self.scenario, self.hosts, true);
        self.tell_bounds(&mut measurement);
        for sample in &self.traffic.samples {
            let seen = sample.seen(self.link_at(sample.flow, sample.at).copied());
            measurement.on_sample(sample.at, sample.flow, sample.received, seen.as_ref());
        }
        for sample in &self.medium.queues {
            measurement.on_queue(sample.at, sample.place, sample.packets);
        }
        for (flow, report) in self.traffic.flows.iter().enumerate() {
            report.delivered.iter().for_each(|(at, message)| measurement.on_delivered(*at, flow, *message));
            report.undelivered.iter().for_each(|message| measurement.on_undelivered(flow, *message));
            report.sent.iter().for_each(|(at, number)| measurement.on_sent(*at, flow, *number));
            report.video.into_iter().for_each(|video| measurement.on_video(flow, video));
        }
        for came in &self.traffic.came {
            measurement.on_received(came.at, came.flow, came.number, came.sent_at);
        }
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
        let end = Time::ZERO + self.scenario.duration;
        let counted = |(flow, report): (usize, &traffic::FlowReport)| Counted {
            received: report.received,
            retransmits: report.retransmits,
            timeouts: report.timeouts,
            delivered_ce: report.delivered_ce,
            last_link: self.last_link(flow, end),
        };
        let (mut result, series) = measurement.into_outcome(Finished {
            build: self.build.clone(),
            flows: self.traffic.flows.iter().enumerate().map(counted).collect(),
            statistics: &self.medium.statistics,
            // A station of era 2012 has its queue, and therefore its drops, in the device.
            device_drops: self.device_drops.queued,
            policies: self.deciding_agents().map(policy_result).collect(),
            events: self.medium.events,
            notes: self.notes(),
            real_time: Some(real_time),
        });
        if let Some(LinuxQueueReport { queue, drops, utilization }) = self.medium.linux_queue {
            result.used.queue = Some(Queue::Linux);
            result.access = AccessResult {
                downlink_drops: drops,
                downlink_marks: queue.marks,
                downlink_queue_mean: Some(queue.mean_packets),
                downlink_queue_p95: Some(queue.p95_packets as f64),
                downlink_queue_max: Some(queue.max_packets as u64),
                ..result.access
            };
            // The model's is that of its way up.
            result.utilization = result.utilization.max(utilization);
        }
        if let Some(medium) = &self.radios {
            result.used.wifi = Some(Wifi::Mac80211);
            result.access = radios::access(medium, self.device_drops, result.access.path_drops);
            result.utilization = radios::busy(medium);
        }
        (result, series)
    }

    fn flows(&self) -> impl Iterator<Item = (&HostSpec, &FlowSpec)> {
        self.hosts.iter().flat_map(|host| host.flows.iter().map(move |flow| (host, flow)))
    }

    /// The agents requested by the scenario, without those that only report a last link.
    fn deciding_agents(&self) -> impl Iterator<Item = &AgentReport> {
        self.agents.iter().filter(|agent| self.hosts[usize::from(agent.host)].kind.agent != AgentMode::Off)
    }

    fn warmup_end(&self) -> Time {
        Time::ZERO + self.scenario.warmup
    }

    /// The limits of each flow over time: those that the host's agent puts on its sender, or in a download on its
    /// receiver.
    fn tell_bounds(&self, measurement: &mut Measurement<'_>) {
        let directions: Vec<Direction> = self.flows().map(|(_, flow)| flow.direction).collect();
        for agent in &self.agents {
            for (flow, interval) in &agent.bounds {
                match directions.get(*flow) {
                    Some(Direction::Up) => measurement.bounds(*flow).push(interval.of_sender()),
                    Some(Direction::Down) => measurement.bounds(*flow).push(interval.of_receiver()),
                    None => {}
                }
            }
            if let Some(stopped) = agent.stopped {
                let of_host = self.flows().enumerate().filter(|(_, (host, _))| host.index == agent.host);
                of_host.for_each(|(flow, _)| measurement.bounds(flow).end(stopped));
            }
        }
    }

    /// The last state that the flow's server law derived from the client's reports by this time.
    fn link_at(&self, flow: usize, at: Time) -> Option<&Applied> {
        let until = &self.links[..self.links.partition_point(|sample| sample.at <= at)];
        until.iter().rfind(|sample| sample.flow == flow).map(|sample| &sample.applied)
    }

    /// The last link's effect on the flow after the warm-up.
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

    /// Notes for the reader that do not invalidate the run.
    fn notes(&self) -> Vec<String> {
        let unconnected = self.traffic.flows.iter().filter(|flow| flow.unconnected).count();
        let of = self.traffic.flows.len();
        let mut notes = Vec::new();
        if unconnected > 0 {
            notes.push(format!("{unconnected} of {of} flows did not connect within the run"));
        }
        if self.traffic.every > 1 {
            notes.push(format!(
                "the run was long: of {} samples one was kept, in round trips, windows and figures over time",
                self.traffic.every
            ));
        }
        let broken = self.traffic.flows.iter().filter(|flow| flow.broken).count();
        if broken > 0 {
            notes.push(format!(
                "{broken} of {of} flows lost a connection to an error; transfers and videos go on with the next"
            ));
        }
        if let Some(medium) = &self.radios {
            notes.extend(radios::notes(self.hosts, medium));
        }
        if has_links(self.scenario) && self.deciding_agents().next().is_some() {
            notes.push(lasthop_scenario::NO_PEERS_OVER_LINKS.to_owned());
        }
        if !self.scenario.roams().is_empty() && self.deciding_agents().next().is_some() {
            notes.push(
                "the agents are not told that their hosts roam: they hear new peers, and old ones age out".to_owned(),
            );
        }
        notes
    }

    fn invalid_reasons(&self) -> Vec<(InvalidKind, String)> {
        use InvalidKind::{Failed, Late};
        let mut reasons = Vec::new();
        let (p99_us, max_us) = (self.medium.lateness.permille_us(990), self.medium.lateness.max_us());
        if p99_us > LATE_P99_US {
            reasons.push((
                Late,
                format!("99 % of the deliveries were up to {p99_us} us late, more than {LATE_P99_US} us"),
            ));
        }
        if max_us > LATE_MAX_US {
            reasons.push((Late, format!("one delivery was {max_us} us late, more than the shortest timeout of TCP")));
        }
        let traffic_us = self.traffic.late.as_micros();
        if traffic_us > LATE_MAX_US {
            reasons.push((
                Late,
                format!("the applications were {traffic_us} us late, more than the shortest timeout of TCP"),
            ));
        }
        if let Some((end, percent)) = most_held(&self.held, self.scenario.duration - self.scenario.warmup) {
            let who = match end.checked_sub(self.hosts.len()) {
                Some(server) => format!("server {server}"),
                None => format!("host {end}"),
            };
            reasons.push((
                Late,
                format!(
                    "the laboratory, not TCP, held {who} back for {percent:.0} % of the time: its valve was shut while less than \
                     half of what TCP small queues permit was queued"
                ),
            ));
        }
        let failed = self.flows().zip(&self.traffic.flows).filter_map(|((_, flow), report)| {
            report.failed.as_ref().map(|failed| (Failed, format!("flow {} of host {}: {failed}", flow.id, flow.host)))
        });
        let failed: Vec<_> = failed.collect();
        reasons.extend(failed.iter().take(TOLD_FLOWS).cloned());
        if failed.len() > TOLD_FLOWS {
            reasons.push((
                Failed,
                format!("and {} more of {} flows", failed.len() - TOLD_FLOWS, self.traffic.flows.len()),
            ));
        }
        for agent in &self.agents {
            if let Some(failed) = &agent.failed {
                reasons.push((Failed, format!("the agent of host {}: {failed}", agent.host)));
            }
            if let Some(program) =
                agent.program.filter(|program| program.late * PROGRAM_LATE_ONE_IN > program.decisions)
            {
                // Late at most ticks is the program's own slowness, which no quieter machine mends.
                let slow = program.late > program.decisions;
                let (kind, how) = if slow {
                    (Failed, "is slower than its deadline, command_deadline_ms: late at more than half of the ticks")
                } else {
                    (Late, "was late now and then")
                };
                let host = agent.host;
                reasons.push((
                    kind,
                    format!("the program of the policy of host {host} {how}, and bounded nothing then: {program}"),
                ));
            }
            let decides = self.deciding_agents().any(|deciding| deciding.host == agent.host);
            if decides && agent.late > AgentReport::late_most() {
                let late_ms = agent.late.as_millis();
                reasons.push((
                    Late,
                    format!("the agent of host {} was {late_ms} ms late: its bounds had lapsed", agent.host),
                ));
            }
        }
        if let Some(medium) = &self.radios {
            if medium.late {
                let late_us = medium.lateness_us.p99;
                reasons
                    .push((Late, format!("99 % of what the radios were due to be told came up to {late_us} us late")));
            }
            if medium.unread > 0 {
                reasons.push((Late, format!("{} times frames of radios were not read in time", medium.unread)));
            }
            if medium.foreign_rates > 0 {
                let frames = medium.foreign_rates;
                reasons.push((Failed, format!("{frames} frames had rates that the scenario's standard does not have")));
            }
        }
        if self.device_drops.unread > 0 {
            reasons
                .push((Late, format!("devices dropped {} packets that were read too late", self.device_drops.unread)));
        }
        if self.medium.refused > 0 {
            reasons.push((Failed, format!("{} packets were refused by a host's kernel", self.medium.refused)));
        }
        reasons
    }
}

/// The end that its valve has held back longest, and for how many percent of the measured time, if that is too much.
fn most_held(held: &[Span], measured: Span) -> Option<(usize, f64)> {
    let (end, longest) = held.iter().enumerate().max_by_key(|(_, held)| **held)?;
    let percent = 100.0 * longest.as_secs_f64() / measured.as_secs_f64();
    (percent > HELD_PERCENT).then_some((end, percent))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_not_valid_whose_valve_held_one_end_for_more_than_a_tenth_of_the_time() {
        let ms = Span::from_millis;
        assert_eq!(most_held(&[ms(0), ms(1500), ms(300)], ms(15_000)), None);
        assert_eq!(most_held(&[ms(0), ms(300), ms(3000)], ms(15_000)), Some((2, 20.0)));
        // A guest that ended within the warm-up; a run without modern ends.
        assert_eq!((most_held(&[ms(0)], ms(0)), most_held(&[], ms(15_000))), (None, None));
    }
}
