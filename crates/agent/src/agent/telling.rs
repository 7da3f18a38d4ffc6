//! What an agent tells: its log, its record, its status, those who watch, and its metrics.

use super::{ADOPT_AGAIN, Agent, Glance};
use crate::config::Mode;
use crate::gain::Gain;
use crate::group::is_away;
use crate::host_tcp::{Left, SocketSample};
use crate::record::{Enabled, Event, FlowRecord, Tick, Totals};
use crate::recorder::Recorder;
use crate::rules;
use crate::status::{ProgramStatus, Status, StatusSocket};
use crate::ungoverned::{self, Ungoverned};
use crate::watch::{self, Neighbour, WatchSocket, Watched};
use lasthop_laws::bound::Bound;
use lasthop_peers::Neighbourhood;
use lasthop_policy::FlowId;
use lasthop_policy::governor::{FlowTurn, Turn};
use lasthop_units::{Rate, Span, Time};
use std::collections::HashSet;
use std::os::fd::BorrowedFd;
use tracing::{info, warn};

impl Agent<'_> {
    /// Hands this tick's state to those who watch. `None`: nothing could be seen.
    pub(super) fn tell_watchers(&mut self, now: Time, tick: Option<&Tick>, peers: &Neighbourhood) {
        if !self.watch.as_mut().is_some_and(WatchSocket::is_read) {
            return;
        }
        let (flows, flows_left_out) = tick.map(|tick| self.meter.flows(tick)).unwrap_or_default();
        let neighbours = peers.peers().iter().take(watch::PEERS_MOST).map(|peer| Neighbour::of(peer, now));
        let watched = Watched {
            v: watch::VERSION,
            seq: self.totals.ticks,
            t_ns: now.as_nanos(),
            status: self.status(now),
            excess_us: self.glance.state.and_then(|state| state.excess).map(Span::as_micros),
            neighbours: neighbours.collect(),
            flows,
            flows_left_out,
        };
        let mut line = serde_json::to_vec(&watched).expect("a state is JSON");
        line.push(b'\n');
        if let Some(watch) = &mut self.watch {
            watch.write(&line);
        }
    }

    /// Hands this tick's state to the metrics.
    pub(super) fn show_metrics(&mut self, now: Time) {
        if self.metrics.is_some() {
            self.count();
        }
        if let Some(metrics) = &self.metrics {
            metrics.show(self.status(now), self.totals.clone());
        }
    }

    /// Brings the totals up to date.
    pub(super) fn count(&mut self) {
        self.totals.bounds_changed = self.governor.counts().bounds_changed;
        self.totals.flows_enabled = self.governor.counts().flows_enabled;
        self.totals.beacons = self.hearing.beacons();
        self.totals.rejected_by_cause =
            self.hearing.rejections().iter().map(|(cause, count)| (cause.as_str().to_owned(), count)).collect();
        self.totals.lines_left_out = self.recorder.as_ref().map_or(0, Recorder::left_out);
    }

    /// `left_out`: they have no bound of their own, for lack of room.
    pub(super) fn glance_at(
        &self,
        samples: &[SocketSample],
        asleep: u64,
        left_out: &HashSet<FlowId>,
        turn: &Turn,
        peers: &Neighbourhood,
    ) -> Glance {
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let asleep = u32::try_from(asleep).unwrap_or(u32::MAX);
        let is_bounded = |sample: &SocketSample| {
            self.mode == Mode::Advise || sample.controlled && !left_out.contains(&FlowId(sample.cookie))
        };
        let flows = || samples.iter().zip(&turn.flows);
        let governed = || flows().filter(|(sample, _)| self.mode != Mode::Control || sample.controlled);
        let is_busy = |(_, flow): &(&SocketSample, &FlowTurn)| flow.seen.busy;
        let bounds = flows().filter_map(|(sample, flow)| flow.decided.bound.filter(|_| is_bounded(sample)));
        Glance {
            connections: count(samples.len()).saturating_add(asleep),
            asleep,
            bounds_left_out: count(left_out.len()),
            busy: count(turn.flows.iter().filter(|flow| flow.seen.busy).count()),
            peers: count(peers.peers().len()),
            terminals: peers.terminals(),
            enabled_at: governed().filter_map(|(_, flow)| flow.decided.enabled_at()).min(),
            reason: match (governed().find(is_busy), flows().find(is_busy)) {
                (Some((_, FlowTurn { decided, .. })), _) => Some((decided.reason.to_string(), decided.reason.kind())),
                (None, Some((sample, _))) => ungoverned::reason(sample).map(|left| {
                    (format!("no connection that is sending is under control; the first one {left}"), "ungoverned")
                }),
                (None, None) => None,
            },
            ungoverned: Ungoverned::of(flows()),
            bounds: bounds.collect(),
            state: turn.state.filter(|_| samples.iter().any(|sample| sample.controlled)),
            rules: rules::status(&self.config, samples, self.tcp.as_ref().map_or(&[], |tcp| tcp.too_many_cgroups())),
        }
    }

    /// The agent's present state.
    pub(super) fn status(&self, now: Time) -> Status {
        let Self { glance, interface, mode, hearing, config, wifi, .. } = self;
        let group = hearing.label().map(ToString::to_string);
        let windows = || glance.bounds.iter().map(|bound| bound.max_segments).filter(|most| *most > 0);
        let harm = glance.state.and_then(|state| state.harmed);
        let reason = glance.reason.as_ref().filter(|_| *mode != Mode::Observe);
        let paced = |bound: &&Bound| bound.paced && bound.max_pacing_rate == Rate::ZERO;
        let paces = || glance.bounds.iter().map(|bound| bound.max_pacing_rate).filter(|most| *most > Rate::ZERO);
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            interface: interface.name.clone(),
            loaded: self.tcp.is_some(),
            mode: *mode,
            policy: config.policy.policy,
            access_point: group.clone().filter(|_| !is_away(interface, wifi.radio())),
            group,
            peers: glance.peers,
            terminals: glance.terminals,
            connections: glance.connections,
            asleep: glance.asleep,
            bounds_left_out: glance.bounds_left_out,
            busy: glance.busy,
            control_since_s: glance.enabled_at.map(|at| now.saturating_since(at).as_secs_f64()),
            reason: reason.map(|(words, _)| words.clone()),
            reason_kind: reason.map(|(_, kind)| (*kind).to_owned()),
            common_rate_mbps: glance.state.and_then(|state| state.common_rate).map(Rate::as_mbps),
            bounded: u32::try_from(glance.bounds.len()).unwrap_or(u32::MAX),
            window_segments: windows().min().zip(windows().max()).map(|(least, most)| [least, most]),
            paced: u32::try_from(glance.bounds.iter().filter(paced).count()).unwrap_or(u32::MAX),
            pacing_mbps: paces().min().zip(paces().max()).map(|(least, most)| [least.as_mbps(), most.as_mbps()]),
            gain: self.gain(),
            harmed_by: harm.map(|harm| harm.kind().to_owned()),
            harm: harm.map(|harm| harm.to_string()),
            rules: glance.rules.clone(),
            ungoverned: glance.ungoverned.clone(),
            program: self
                .asked
                .as_ref()
                .map(|asked| ProgramStatus { trouble: asked.trouble().map(str::to_owned), totals: asked.totals() }),
        }
    }

    fn gain(&self) -> Gain {
        match self.glance.state {
            Some(state) => state.gain.into(),
            None if self.mode != Mode::Control => Gain::unknown(format!("not known in mode {}", self.mode)),
            None => Gain::default(),
        }
    }

    /// Warns once that control does not help, and again when the cause is another one.
    pub(super) fn log_harm(&mut self, now: Time, turn: &Turn, peers: &Neighbourhood) {
        let harm = turn.state.and_then(|state| state.harmed);
        let kind = harm.map(|harm| harm.kind());
        if std::mem::replace(&mut self.harm, kind) == kind {
            return;
        }
        if let Some(harm) = harm
            && let Some(more) = self.harm_log.may_say(now)
        {
            let alone = if peers.peers().is_empty() { "; no other agent is heard" } else { "" };
            warn!("control does not help now: {harm}{alone}{more}");
        }
    }

    /// Answers status requests.
    pub(crate) fn answer_status(&self, now: Time) {
        if let Some(socket) = &self.status {
            socket.answer(|| serde_json::to_string(&self.status(now)).expect("a status is JSON") + "\n");
        }
    }

    /// The descriptors to wait for, apart from those of the peers.
    pub(crate) fn status_descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.status.as_ref().map(StatusSocket::descriptor)
    }

    /// Opens this interface's status socket, if configured. A failure stops nothing else.
    pub(super) fn open_status(&mut self) {
        let Some(folder) = &self.status_folder else { return };
        if self.status.as_ref().is_some_and(|status| status.is_for(&self.interface.name)) {
            return;
        }
        (self.status, self.watch) = (None, None);
        let (name, group) = (&self.interface.name, self.socket_group);
        match WatchSocket::open(folder, name, group) {
            Ok(watch) => self.watch = Some(watch),
            Err(error) => warn!("`lasthop top` cannot watch this agent: {}", error.in_a_line()),
        }
        match StatusSocket::open(folder, name, group) {
            Ok(status) => self.status = Some(status),
            Err(error) => warn!("`lasthop agent status` cannot ask this agent: {}", error.in_a_line()),
        }
    }

    /// For the service manager.
    pub(crate) fn in_a_line(&self) -> String {
        let loaded = if self.tcp.is_some() { "" } else { ", not loaded" };
        format!("mode {}, policy {}, on {}{loaded}", self.mode, self.config.policy.policy, self.interface.name)
    }

    pub(super) fn log(&mut self, now: Time, samples: &[SocketSample], turn: &Turn) {
        for (flow, enabled) in &turn.enabled {
            if self.totals.enabled.len() < Totals::ENABLED_KEPT {
                self.totals.enabled.push(Enabled { cookie: flow.0, t_ns: enabled.at.as_nanos() });
            }
        }
        // One line for all connections with a reason of one kind.
        let mut lines: Vec<(&str, String, u32)> = Vec::new();
        let mut changed = turn.changed.iter().peekable(); // in the order of the samples
        for (sample, FlowTurn { decided, .. }) in samples.iter().zip(&turn.flows) {
            let is_changed = changed.next_if(|id| **id == decided.id).is_some();
            let is_left = rules::left_by(&self.config.rules, sample).is_some();
            if !is_changed || is_left || self.mode == Mode::Control && !sample.controlled {
                continue;
            }
            let kind = decided.bound.map_or("", |_| decided.reason.kind());
            if let Some((.., others)) = lines.iter_mut().find(|(of, ..)| *of == kind) {
                *others += 1;
                continue;
            }
            let would = if self.mode == Mode::Control { "" } else { "would be " };
            let (local, remote, limits) = (sample.local, sample.remote, decided.bound.unwrap_or_default());
            lines.push((kind, format!("{local} > {remote}: {would}{limits}: {}", decided.reason), 0));
        }
        for (_, line, others) in lines {
            if let Some(more) = self.decisions_log.may_say(now) {
                let others = if others > 0 { format!("; the same for {others} more") } else { String::new() };
                info!("{line}{others}{more}");
            }
        }
    }

    /// Warns once of each way in which connections escape.
    pub(super) fn log_escapes(&mut self, now: Time) {
        let escapes = self.glance.ungoverned.iter().filter(|left| left.escapes);
        let (waits, escapes): (Vec<_>, Vec<_>) = escapes.partition(|left| left.why == ungoverned::word(Left::Yet));
        self.waits_since = waits.first().and(self.waits_since.or(Some(now)));
        // What is new is taken over within some seconds.
        let is_late = self.waits_since.is_some_and(|since| now.saturating_since(since) > ADOPT_AGAIN);
        for left in escapes.into_iter().chain(waits.into_iter().filter(|_| is_late)) {
            let is_said = |control: &String| self.escapes.contains(&(left.why.clone(), control.clone()));
            if !left.congestion_controls.iter().all(is_said)
                && let Some(more) = self.escape_log.may_say(now)
            {
                self.escapes.extend(left.congestion_controls.iter().map(|control| (left.why.clone(), control.clone())));
                warn!("connections escape control: {left}; `lasthop agent status` counts them{more}");
            }
        }
    }

    pub(super) fn flow_record(&self, sample: &SocketSample, flow: &FlowTurn, until: Time) -> FlowRecord {
        let FlowTurn { seen, decided } = flow;
        let applied = self.governor.applied(decided.id);
        let left_by = rules::left_by(&self.config.rules, sample);
        FlowRecord {
            cookie: sample.cookie,
            local: sample.local.to_string(),
            remote: sample.remote.to_string(),
            congestion_control: sample.congestion_control.to_string(),
            controlled: sample.controlled,
            srtt_us: sample.srtt.map(Span::as_micros),
            min_rtt_us: sample.min_rtt.map(Span::as_micros),
            cwnd_segments: sample.cwnd_segments,
            ssthresh_segments: sample.ssthresh_segments,
            state: format!("{:?}", sample.state),
            in_flight_segments: sample.in_flight_segments,
            unsent_bytes: sample.unsent.get(),
            retransmits: sample.retransmits,
            delivery_rate_mbps: sample.delivery_rate.map(|rate| rate.as_mbps()),
            acked_bytes: sample.acked.get(),
            received_bytes: sample.received.get(),
            receive_rtt_us: sample.receive_rtt.map(Span::as_micros),
            mss_bytes: sample.mss.get(),
            busy: seen.busy,
            bound: applied,
            bound_until_ns: applied.map(|_| until.as_nanos()),
            advised: decided.bound.filter(|_| self.mode == Mode::Advise && left_by.is_none()),
            enabled: decided.enabled.is_some(),
            enabled_at_ns: decided.enabled_at().map(Time::as_nanos),
            rule: sample.rule.map(rules::number),
            left: sample.left.map(|left| ungoverned::word(left).to_owned()),
            reason: match self.mode {
                _ if left_by.is_some() => format!("rule {}: left alone", left_by.unwrap_or(0)),
                Mode::Control if sample.left.is_some() => ungoverned::reason(sample).unwrap_or_default(),
                Mode::Observe => "mode observe: nothing is decided".to_owned(),
                Mode::Advise | Mode::Control => decided.reason.to_string(),
            },
        }
    }

    pub(super) fn record(&mut self, event: &Event) {
        if let Some(recorder) = &mut self.recorder {
            recorder.write(event);
        }
    }
}
