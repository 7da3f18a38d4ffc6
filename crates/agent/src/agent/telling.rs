//! What an agent tells: its log, its record, its status, those who watch, and its metrics.

use super::{ADOPT_AGAIN, Agent, ready};
use crate::hear::group::is_away;
use crate::program::Asked;
use crate::tcp::host_tcp::{Left, SocketSample};
use crate::tcp::rules;
use crate::tcp::ungoverned;
use crate::tell::recorder::Recorder;
use crate::tell::socket::Socket;
use lasthop_laws::bound::Bound;
use lasthop_peers::Neighbourhood;
use lasthop_policy::FlowId;
use lasthop_policy::governor::{FlowTurn, Turn};
use lasthop_status::Mode;
use lasthop_status::record::{Enabled, Event, FlowRecord, Tick, Totals};
use lasthop_status::{ContainerCounts, Gain, Neighbour, PEERS_MOST, ProgramStatus, Status, Watched, WatchedFlow};
use lasthop_trial::Told;
use lasthop_units::{Bytes, Rate, Span, Time};
use std::collections::{BTreeMap, HashSet};
use std::os::fd::BorrowedFd;
use tracing::{info, warn};

/// Blocks of a trial in a line.
const TOLD_MOST: usize = 1000;

impl Agent<'_> {
    /// Hands this tick's state to those who watch. `None`: nothing could be seen.
    pub(super) fn tell_watchers(&mut self, now: Time, tick: Option<&Tick>, peers: &Neighbourhood) {
        if !self.socket.as_mut().is_some_and(Socket::is_read) {
            return;
        }
        let (flows, left_out) = tick.map(|tick| self.meter.flows(tick)).unwrap_or_default();
        let neighbours = peers.peers().iter().take(PEERS_MOST).map(|peer| Neighbour::of(peer, now)).collect();
        let told = self.trying.part.told();
        // In parts, each tick another one: a line has room for some thousands.
        let parts = told.chunks(TOLD_MOST);
        let part = (self.totals.ticks as usize).checked_rem(parts.len()).and_then(|part| parts.clone().nth(part));
        let line = self.line(now, neighbours, flows, left_out, part.unwrap_or_default());
        if let Some(socket) = &mut self.socket {
            socket.write(&line);
        }
    }

    /// Hands the status to those who have come.
    pub(crate) fn greet(&mut self, now: Time) {
        if let Some(mut socket) = self.socket.take() {
            let awake = self.status.connections.saturating_sub(self.status.asleep);
            socket.greet(|| self.line(now, Vec::new(), Vec::new(), awake, &[]));
            self.socket = Some(socket);
        }
    }

    fn line(
        &self,
        now: Time,
        neighbours: Vec<Neighbour>,
        flows: Vec<WatchedFlow>,
        flows_left_out: u32,
        told: &[Told],
    ) -> Vec<u8> {
        let (seq, t_ns) = (self.totals.ticks, now.as_nanos());
        let status = self.status(now);
        let (v, trial_told) = (lasthop_status::VERSION, told.to_vec());
        let watched = Watched { v, seq, t_ns, status, neighbours, flows, flows_left_out, trial_told };
        let mut line = serde_json::to_vec(&watched).expect("a state is JSON");
        line.push(b'\n');
        line
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
        self.totals.rejected_by_cause = self.rejected();
        self.totals.lines_left_out = self.recorder.as_ref().map_or(0, Recorder::left_out);
    }

    /// Nothing is seen, or nothing yet.
    pub(super) fn see_nothing(&mut self) {
        let Self { interface, mode, config, hearing, wifi, .. } = self;
        let blank = Status::of(&ready(interface, *mode, config, hearing.label()));
        let access_point = blank.group.clone().filter(|_| !is_away(interface, wifi.radio()));
        let loaded = self.tcp.is_some();
        self.status = Status { pid: std::process::id(), loaded, access_point, ..blank };
        self.enabled_at = None;
    }

    /// Puts into the status what a tick has shown. `left_out`: they have no bound of their own, for lack of room.
    pub(super) fn see(
        &mut self,
        samples: &[SocketSample],
        asleep: u64,
        left_out: &HashSet<FlowId>,
        turn: &Turn,
        peers: &Neighbourhood,
    ) {
        let mode = self.mode;
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let asleep = u32::try_from(asleep).unwrap_or(u32::MAX);
        let is_bounded = |sample: &SocketSample| {
            mode == Mode::Advise || sample.controlled && !left_out.contains(&FlowId(sample.cookie))
        };
        let flows = || samples.iter().zip(&turn.flows);
        let governed = || flows().filter(|(sample, _)| mode != Mode::Control || sample.controlled);
        let is_busy = |(_, flow): &(&SocketSample, &FlowTurn)| flow.seen.busy;
        let bounds = flows().filter_map(|(sample, flow)| flow.decided.bound.filter(|_| is_bounded(sample)));
        let bounds: Vec<Bound> = bounds.collect();
        let windows = || bounds.iter().map(|bound| bound.max_segments).filter(|most| *most > 0);
        let paces = || bounds.iter().map(|bound| bound.max_pacing_rate).filter(|most| *most > Rate::ZERO);
        let paced = |bound: &&Bound| bound.paced && bound.max_pacing_rate == Rate::ZERO;
        let reason = match (governed().find(is_busy), flows().find(is_busy)) {
            _ if mode == Mode::Observe => None,
            (Some((_, FlowTurn { decided, .. })), _) => Some((decided.reason.to_string(), decided.reason.kind())),
            (None, Some((sample, _))) => ungoverned::reason(sample).map(|left| {
                (format!("no connection that is sending is under control; the first one {left}"), "ungoverned")
            }),
            (None, None) => None,
        };
        let (reason, reason_kind) = reason.map(|(words, kind)| (words, kind.to_owned())).unzip();
        // How the policy describes this host; not where nothing is controlled.
        let state = turn.state.filter(|_| samples.iter().any(|sample| sample.controlled));
        let harm = state.and_then(|state| state.harmed);
        let gain = match state {
            Some(state) => state.gain.into(),
            None if mode != Mode::Control => Gain::unknown(format!("not known in mode {mode}")),
            None => Gain::default(),
        };
        self.enabled_at = governed().filter_map(|(_, flow)| flow.decided.enabled_at()).min();
        let too_many_cgroups = self.tcp.as_ref().map_or(&[][..], |tcp| tcp.too_many_cgroups());
        self.status = Status {
            peers: count(peers.peers().len()),
            authenticated: peers.is_authenticated(),
            terminals: peers.terminals(),
            connections: count(samples.len()).saturating_add(asleep),
            asleep,
            bounds_left_out: count(left_out.len()),
            busy: count(turn.flows.iter().filter(|flow| flow.seen.busy).count()),
            reason,
            reason_kind,
            common_rate_mbps: state.and_then(|state| state.common_rate).map(Rate::as_mbps),
            bounded: count(bounds.len()),
            window_segments: windows().min().zip(windows().max()).map(|(least, most)| [least, most]),
            paced: count(bounds.iter().filter(paced).count()),
            pacing_mbps: paces().min().zip(paces().max()).map(|(least, most)| [least.as_mbps(), most.as_mbps()]),
            excess_us: state.and_then(|state| state.excess).map(Span::as_micros),
            gain,
            harmed_by: harm.map(|harm| harm.kind().to_owned()),
            harm: harm.map(|harm| harm.to_string()),
            rules: rules::status(&self.config, samples, too_many_cgroups),
            default_control: self.tcp.as_ref().and_then(|tcp| tcp.default_control()).map(str::to_owned),
            ungoverned: ungoverned::of(flows()),
            containers: self.tcp.as_ref().and_then(|tcp| tcp.containers()).map(|found| ContainerCounts {
                governed: count(found.governed),
                closed: count(found.closed),
                hidden: count(found.hidden),
                elsewhere: count(found.elsewhere),
            }),
            ..self.status.clone()
        };
    }

    fn rejected(&self) -> BTreeMap<String, u64> {
        self.hearing.rejections().iter().map(|(cause, count)| (cause.as_str().to_owned(), count)).collect()
    }

    /// The agent's present state.
    pub(super) fn status(&self, now: Time) -> Status {
        let program = |asked: &Asked| {
            let trouble = asked.trouble().map(str::to_owned);
            ProgramStatus { trouble, totals: asked.totals() }
        };
        Status {
            control_since_s: self.enabled_at.map(|at| now.saturating_since(at).as_secs_f64()),
            program: self.asked.as_ref().map(program),
            rts_threshold_bytes: self.rts.threshold().map(Bytes::get),
            trial: self.trying.standing(now),
            rejected: self.rejected(),
            relay: self.hearing.relay(now),
            ..self.status.clone()
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
            let alone = match peers.peers() {
                [] => "; no other agent is heard: `lasthop doctor --network` says why",
                _ => "",
            };
            warn!("control does not help now: {harm}{alone}{more}");
        }
    }

    /// The descriptors to wait for, apart from those of the peers.
    pub(crate) fn socket_descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.socket.as_ref().map(Socket::descriptor)
    }

    /// Opens this interface's socket, if configured. A failure stops nothing else.
    pub(super) fn open_socket(&mut self) {
        let Some(folder) = &self.socket_folder else { return };
        if self.socket.as_ref().is_some_and(|socket| socket.is_for(&self.interface.name)) {
            return;
        }
        self.socket = None;
        match Socket::open(folder, &self.interface.name, self.socket_group) {
            Ok(socket) => self.socket = Some(socket),
            Err(error) => {
                warn!("`lasthop agent status` and `lasthop top` cannot ask this agent: {}", error.in_a_line());
            }
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
        let escapes = self.status.ungoverned.iter().filter(|left| left.escapes);
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
        let tcp = &sample.tcp;
        FlowRecord {
            cookie: sample.cookie,
            local: sample.local.to_string(),
            remote: sample.remote.to_string(),
            congestion_control: sample.congestion_control.to_string(),
            controlled: sample.controlled,
            srtt_us: tcp.srtt.map(Span::as_micros),
            min_rtt_us: tcp.min_rtt.map(Span::as_micros),
            cwnd_segments: tcp.cwnd_segments,
            ssthresh_segments: tcp.ssthresh_segments,
            state: format!("{:?}", tcp.state),
            in_flight_segments: tcp.in_flight_segments,
            unsent_bytes: tcp.unsent.get(),
            retransmits: tcp.retransmits,
            delivery_rate_mbps: sample.delivery_rate.map(|rate| rate.as_mbps()),
            acked_bytes: tcp.acked.get(),
            received_bytes: tcp.received.get(),
            receive_rtt_us: tcp.receive_rtt.map(Span::as_micros),
            mss_bytes: tcp.mss_bytes.into(),
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
