//! One tick: observe, decide, apply, record.

use crate::clock;
use crate::config::{Config, Mode};
use crate::error::{Doing, Error, Result};
use crate::event_loop::Read;
use crate::group::group;
use crate::hearing::Hearing;
use crate::host_tcp::{HostTcp, Loaded, Loader, SocketSample, StateChange, flow_sample};
use crate::interface::Interface;
use crate::kernel_tcp;
use crate::last_link::{LastLink, flow_sight};
use crate::log_limit::LogLimit;
use crate::metrics::Metrics;
use crate::program::Asked;
use crate::record::{
    Enabled, Event, FlowRecord, Joined, LinkReported, ProgramTotals, Ready, ReportCause, State, Tick, Totals,
};
use crate::recorder::Recorder;
use crate::reload::{self, Changes};
use crate::room::make_room;
use crate::rules::{self, RuleStatus};
use crate::status::{self, ProgramStatus, Status, StatusSocket};
use crate::watch::{self, Meter, Neighbour, WatchSocket, Watched};
use crate::wifi::Wifi;
use lasthop_lastlink::FlowSight;
use lasthop_laws::bound::Bound;
use lasthop_peers::{Neighbourhood, Report};
use lasthop_policy::governor::{FlowSample, FlowTurn, Governor, Turn};
use lasthop_policy::{FlowId, FlowObservation, Nothing, Observation, Policy, PolicyName, PolicyState};
use lasthop_units::{Rate, Span, Time};
use nix::poll::PollFlags;
use nix::sys::resource::{UsageWho, getrusage};
use rustc_hash::FxHashSet;
use std::collections::HashSet;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use tracing::{info, warn};

/// New connections are taken over as they are made. Later walks find those whose route has moved to or from the
/// interface.
const ADOPT_AGAIN: Span = Span::from_secs(10);

/// The agent between two events.
pub(crate) struct Agent<'a> {
    config: Config,
    loader: &'a mut Loader<'a>,
    interface: Interface,
    wifi: Wifi,
    /// `None`: the interface was replaced and the programs are not loaded for the new one yet.
    tcp: Option<Box<dyn HostTcp>>,
    mode: Mode,
    governor: Governor,
    /// The program that decides; `None`: the policy is one of our own.
    asked: Option<Asked>,
    /// The tick on which that program has not decided yet.
    seen: Option<Seen>,
    adopt_again_at: Time,
    pub(crate) hearing: Hearing,
    report: Report,
    /// `None`: servers are not told.
    last_link: Option<LastLink>,
    /// The connections at this tick, for `last_link`.
    sights: Vec<FlowSight>,
    recorder: Option<Recorder>,
    /// Where the status socket is; `None`: there is none.
    status_folder: Option<PathBuf>,
    status: Option<StatusSocket>,
    /// Who may use the sockets.
    socket_group: Option<u32>,
    watch: Option<WatchSocket>,
    meter: Meter,
    metrics: Option<Metrics>,
    /// As of the last tick.
    glance: Glance,
    totals: Totals,
    decisions_log: LogLimit,
    late_log: LogLimit,
    trouble_log: LogLimit,
    interface_log: LogLimit,
    room_log: LogLimit,
    /// Those of this tick, kept for its memory.
    met: FxHashSet<u64>,
}

/// What was observed at a tick.
struct Seen {
    now: Time,
    late: Span,
    sockets: Vec<SocketSample>,
    asleep: u64,
    samples: Vec<FlowSample>,
    observations: Vec<FlowObservation>,
    peers: Neighbourhood,
}

/// What the status says of the last tick.
#[derive(Default)]
struct Glance {
    connections: u32,
    asleep: u32,
    bounds_left_out: u32,
    busy: u32,
    peers: u32,
    terminals: u32,
    enabled_at: Option<Time>,
    reason: Option<String>,
    bounds: Vec<Bound>,
    /// How the policy describes this host.
    state: PolicyState,
    rules: Vec<RuleStatus>,
}

impl<'a> Agent<'a> {
    /// Loads the TCP programs, adopts the existing sockets and reports readiness.
    pub(crate) fn start(config: &Config, status: Option<&Path>, loader: &'a mut Loader<'a>) -> Result<Self> {
        let interface = Interface::find(config.interface.as_deref()).ok_or_else(|| {
            Error::Refused(match &config.interface {
                Some(name) => format!("there is no interface {name} (see `ip link`)"),
                None => "there is no default route: name the interface (`interface`, --interface)".to_owned(),
            })
        })?;
        if config.mode != Mode::Observe && config.policy.policy == PolicyName::None {
            warn!(
                "mode {} with the policy \"none\" has nothing to decide, so this host is only observed: choose a policy with \
                 --policy, or `policy` in [policy]",
                config.mode
            );
        }
        let socket_group = config.socket_group.as_deref().map(status::group_id).transpose()?;
        let mut hearing = Hearing::new(&config.beacon)?;
        hearing.be_silent(config.mode == Mode::Observe);
        let recorder = Recorder::open(config)?;
        let Loaded { tcp, mode, reporter } = loader(config, &interface, wanted_mode(config))?;
        let mut last_link = LastLink::new(config);
        if let Some(last_link) = &mut last_link {
            last_link.attach(reporter);
        }
        let (policy, asked) = policy(config, mode, ProgramTotals::default());
        let mut agent = Self {
            config: config.clone(),
            loader,
            interface,
            wifi: Wifi::open(),
            tcp: Some(tcp),
            mode,
            governor: Governor::new(policy, mode == Mode::Control),
            asked,
            seen: None,
            adopt_again_at: Time::ZERO,
            hearing,
            report: Report::default(),
            last_link,
            sights: Vec::new(),
            recorder,
            status_folder: status.map(Path::to_owned),
            status: None,
            socket_group,
            watch: None,
            meter: Meter::default(),
            metrics: None,
            glance: Glance::default(),
            totals: Totals::default(),
            decisions_log: LogLimit::new(20, Span::from_secs(10)),
            late_log: LogLimit::each_minute(),
            trouble_log: LogLimit::each_minute(),
            interface_log: LogLimit::each_minute(),
            room_log: LogLimit::new(1, Span::MAX),
            met: FxHashSet::default(),
        };
        agent.adopt()?;
        let now = clock::monotonic();
        agent.follow_group(now);
        agent.hearing.refresh(now, Some(&agent.interface));
        agent.say_ready();
        agent.look_at_link(now, true);
        agent.metrics = Metrics::start(&config.metrics, agent.status(now));
        Ok(agent)
    }

    fn adopt(&mut self) -> Result<()> {
        if let (Mode::Control, Some(tcp)) = (self.mode, &mut self.tcp) {
            self.adopt_again_at = clock::monotonic() + ADOPT_AGAIN;
            tcp.adopt().doing("cannot take over the sockets that are already open")?;
        }
        Ok(())
    }

    /// Has the programs resolve configured paths again; the open sockets follow.
    fn follow(&mut self, now: Time) -> Result<()> {
        let Some(tcp) = &mut self.tcp else { return Ok(()) };
        let others = tcp.refresh().doing("cannot look for the cgroups of the configuration")?;
        if others || now >= self.adopt_again_at { self.adopt() } else { Ok(()) }
    }

    fn say_ready(&mut self) {
        self.open_status();
        let Self { interface, wifi, mode, config, .. } = self;
        let congestion_control = self.tcp.as_ref().and_then(|tcp| tcp.congestion_control()).map(str::to_owned);
        info!("ready on {}: mode {mode}, policy {}", interface.name, config.policy.policy);
        if let Some(link) = wifi.link() {
            info!("{link}");
        }
        let ready = Ready {
            t_ns: clock::monotonic().as_nanos(),
            unix_ms: Some(clock::wall_ns() / 1_000_000),
            interface: interface.name.clone(),
            congestion_control,
            mode: *mode,
            policy: config.policy.policy,
            group: self.hearing.label().map(ToString::to_string),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        self.record(&Event::Ready(ready));
    }

    /// Checks whether the interface is still the same, and reads its addresses.
    pub(crate) fn refresh(&mut self, now: Time) {
        let found = Interface::find(self.config.interface.as_deref());
        self.hearing.refresh(now, found.as_ref());
        let Some(found) = found else {
            if let Some(more) = self.interface_log.may_say(now) {
                match &self.config.interface {
                    Some(name) => warn!("interface {name} is gone: waiting for it{more}"),
                    None => warn!("there is no default route any more: waiting for one{more}"),
                }
            }
            self.look_at_link(now, false);
            return;
        };
        let replaced = found.index != self.interface.index;
        self.interface = found;
        self.follow_group(now);
        if replaced || self.tcp.is_none() {
            self.reload(now);
        } else if let Err(error) = self.follow(now)
            && let Some(more) = self.trouble_log.may_say(now)
        {
            warn!("the programs do not follow the addresses of {}: {}{more}", self.interface.name, error.in_a_line());
        }
        self.look_at_link(now, true);
    }

    /// Reads the state of the interface's link, if the interface exists.
    fn look_at_link(&mut self, now: Time, is_there: bool) {
        let Self { interface, wifi, hearing, last_link, .. } = self;
        let interface = is_there.then_some(&*interface);
        let look = |last_link: &mut LastLink| last_link.on_refresh(now, interface, wifi.radio(), hearing.label());
        let reported = last_link.as_mut().and_then(look);
        self.record_report(reported);
    }

    /// Determines the access point.
    fn follow_group(&mut self, now: Time) {
        if let Err(error) = self.wifi.refresh(self.interface.index)
            && let Some(more) = self.trouble_log.may_say(now)
        {
            warn!("what the interface says of its access point is old: {}{more}", error.in_a_line());
        }
        let Some(label) = group(&self.interface, self.wifi.radio(), self.config.beacon.group.as_deref()) else {
            return;
        };
        if self.hearing.label() == Some(&label) {
            return;
        }
        let moved = self.hearing.label().is_some();
        self.hearing.join(now, label.clone());
        if moved {
            // RTTs and peers belong to the old place. The connections stay.
            info!("behind another access point now: {label}");
            self.totals.roamed += 1;
            self.begin_policy_anew();
            self.record(&Event::Joined(Joined { t_ns: now.as_nanos(), group: label.to_string() }));
            self.look_at_link(now, true);
            self.forget_link(now, ReportCause::Roamed);
        } else {
            info!("behind the access point \"{label}\"");
        }
    }

    /// The machine was suspended and may have moved.
    pub(crate) fn on_resumed(&mut self, now: Time, suspended: Span) {
        info!("the machine was suspended for {suspended}: peers and decisions begin anew");
        self.totals.resumed += 1;
        self.hearing.begin_anew(now);
        self.begin_policy_anew();
        self.refresh(now);
        self.forget_link(now, ReportCause::Resumed);
    }

    /// Forgets what the policy remembers. A program is started again.
    fn begin_policy_anew(&mut self) {
        self.seen = None;
        let totals = self.asked.take().map_or_else(ProgramTotals::default, |asked| asked.totals());
        let (policy, asked) = policy(&self.config, self.mode, totals);
        self.governor.restart(policy, self.mode == Mode::Control);
        self.asked = asked;
    }

    /// Forgets what it saw of the last link: it may belong to another place.
    fn forget_link(&mut self, now: Time, cause: ReportCause) {
        let reported = self.last_link.as_mut().and_then(|last_link| last_link.on_moved(now, cause));
        self.record_report(reported);
    }

    fn record_report(&mut self, reported: Option<LinkReported>) {
        if let Some(reported) = reported {
            self.record(&Event::LastLink(reported));
        }
    }

    /// Loads the TCP programs for the interface in its present state.
    fn reload(&mut self, now: Time) {
        match self.load() {
            Ok(()) => self.say_ready(),
            Err(error) => {
                if let Some(more) = self.interface_log.may_say(now) {
                    warn!(
                        "cannot work on interface {}, trying again: {}{more}",
                        self.interface.name,
                        error.in_a_line()
                    );
                }
            }
        }
    }

    /// Undoes the changes to TCP.
    fn unload(&mut self) {
        self.tcp = None;
        if let Some(last_link) = &mut self.last_link {
            last_link.detach();
        }
        self.governor.forget_flows();
        self.seen = None;
    }

    /// Undoes the changes to TCP, then loads the programs again. `None` if that fails.
    fn load(&mut self) -> Result<()> {
        self.unload(); // on the old interface, before loading on the new one
        let Loaded { tcp, mode, reporter } = (self.loader)(&self.config, &self.interface, wanted_mode(&self.config))?;
        self.tcp = Some(tcp);
        if let Some(last_link) = &mut self.last_link {
            last_link.attach(reporter);
        }
        self.mode = mode;
        self.begin_policy_anew();
        let adopted = self.adopt();
        if adopted.is_err() {
            self.tcp = None;
        }
        adopted
    }

    /// Applies the configuration that `read` gives, as far as a running agent can, and logs the result. An invalid
    /// configuration is logged and changes nothing.
    pub(crate) fn on_reload(&mut self, now: Time, read: &Read<'_>) -> String {
        match self.take_over(now, read) {
            Ok(()) => self.in_a_line(),
            Err(error) => {
                warn!(
                    "the configuration was read again and is not accepted, so nothing changes: {}",
                    error.in_a_line()
                );
                format!("{}; the configuration was not accepted: {}", self.in_a_line(), error.in_a_line())
            }
        }
    }

    fn take_over(&mut self, now: Time, read: &Read<'_>) -> Result<()> {
        let new = read().map_err(Error::Reload)?;
        new.validate()?;
        kernel_tcp::check_cgroups(&new)?;
        rules::in_the_kernel(&new)?;
        let changes = Changes::between(&self.config, &new);
        let hearing = changes.touch(&["beacon"]).then(|| Hearing::new(&new.beacon)).transpose()?;
        let new = reload::in_force(&self.config, &new);
        let reloads = wanted_mode(&self.config) != wanted_mode(&new)
            || changes.touch(&["cgroup", "excluded_cgroups", "leave", "rules"]);
        let old = std::mem::replace(&mut self.config, new);
        let found = Interface::find(self.config.interface.as_deref());
        if reloads && found.as_ref().is_none_or(|found| found.index != self.interface.index) {
            self.unload(); // `refresh` loads the programs once there is an interface
        } else if reloads && let Err(error) = self.load() {
            self.config = old;
            self.reload(now);
            return Err(error);
        }
        // Nothing can fail from here on.
        if let Some(mut hearing) = hearing {
            hearing.count_on(&self.hearing);
            self.hearing = hearing;
        }
        let list = |keys: &[String]| if keys.is_empty() { "none".to_owned() } else { keys.join(", ") };
        info!(
            "the configuration was read again. Keys that hold now: {}; that need a restart: {}",
            list(&changes.live),
            list(&changes.at_restart)
        );
        self.hearing.be_silent(self.config.mode == Mode::Observe);
        self.hearing.refresh(now, found.as_ref());
        self.follow_group(now);
        if reloads {
            if self.tcp.is_some() {
                self.say_ready();
            }
        } else if changes.touch(&["policy", "beacon"]) {
            self.begin_policy_anew();
            self.say_ready();
        }
        Ok(())
    }

    /// Sends the last tick's observations to the peers when a beacon is due.
    pub(crate) fn poll_beacon(&mut self, now: Time) {
        self.hearing.poll_send(now, self.report);
    }

    /// Observes, decides and applies. Errors are logged and left to the next tick; the leases of the bounds run on.
    pub(crate) fn on_tick(&mut self, now: Time, late: Span) {
        if let Some(asked) = &mut self.asked {
            asked.give_up();
            self.poll_program(now);
        }
        self.totals.ticks += 1;
        if late > Span::from_nanos(self.config.tick().as_nanos() / 2) {
            self.totals.late_ticks += 1;
            if let Some(more) = self.late_log.may_say(now) {
                warn!("this tick is {late} late: is the machine overloaded?{more}");
            }
        }
        let done = self.observe(now, late).and_then(|seen| match seen {
            Some(seen) => self.ask_or_decide(seen),
            None => Ok(()),
        });
        if let Err(error) = done {
            self.on_trouble(now, &error);
        }
        let Self { last_link, sights, .. } = self;
        let reported = last_link.as_mut().and_then(|last_link| last_link.on_tick(now, sights));
        self.record_report(reported);
    }

    fn on_trouble(&mut self, now: Time, error: &Error) {
        if let Some(metrics) = &mut self.metrics {
            metrics.on_failed();
        }
        self.show_metrics(now);
        if let Some(more) = self.trouble_log.may_say(now) {
            warn!("nothing was renewed at this tick, so bounds lapse with their lease: {}{more}", error.in_a_line());
        }
    }

    /// The first half of a tick; `None`: no programs are loaded.
    fn observe(&mut self, now: Time, late: Span) -> Result<Option<Seen>> {
        self.sights.clear();
        let sockets = match self.sample() {
            Ok(Some(sockets)) => sockets,
            nothing => {
                // Peers are not told an earlier tick's observations.
                self.report = Report::default();
                self.glance = Glance::default();
                self.tell_watchers(now, None, &Neighbourhood::default());
                self.show_metrics(now);
                return nothing.map(|_| None);
            }
        };
        if self.last_link.is_some() {
            self.sights.extend(sockets.iter().map(flow_sight));
        }
        let peers = self.hearing.neighbourhood(now);
        let samples: Vec<_> = sockets.iter().map(|socket| flow_sample(socket, &self.config.rules)).collect();
        let observations = self.governor.observe(now, &samples);
        let asleep = self.tcp.as_ref().map_or(0, |tcp| tcp.asleep());
        Ok(Some(Seen { now, late, sockets, asleep, samples, observations, peers }))
    }

    fn sample(&mut self) -> Result<Option<Vec<SocketSample>>> {
        let Some(tcp) = self.tcp.as_mut() else { return Ok(None) };
        let recorder = &mut self.recorder;
        self.totals.state_changes_lost +=
            tcp.poll_state_changes(&mut |StateChange { at, cookie, from, to, .. }| {
                if let Some(recorder) = recorder {
                    let (from, to) = (format!("{from:?}"), format!("{to:?}"));
                    recorder.write(&Event::State(State { t_ns: at.as_nanos(), cookie, from, to }));
                }
            })?;
        let mut sockets = tcp.sample()?;
        // A walk over a changing table may return a socket twice. The policy needs each once.
        self.met.clear();
        sockets.retain(|socket| self.met.insert(socket.cookie));
        Ok(Some(sockets))
    }

    /// Decides at once, or asks the program.
    fn ask_or_decide(&mut self, seen: Seen) -> Result<()> {
        let Some(asked) = &mut self.asked else { return self.decide(seen) };
        let Seen { now, observations, peers, .. } = &seen;
        asked.ask(*now, &Observation { now: *now, flows: observations, peers });
        self.seen = Some(seen);
        Ok(())
    }

    /// Ends the tick when the program has decided, or its time is over. Never waits.
    pub(crate) fn poll_program(&mut self, now: Time) {
        let Some(asked) = &mut self.asked else { return };
        let is_done = asked.poll(now);
        for event in asked.take_events() {
            self.record(&event);
        }
        if is_done
            && let Some(seen) = self.seen.take()
            && let Err(error) = self.decide(seen)
        {
            self.on_trouble(now, &error);
        }
    }

    /// When the program's time is over; `None`: it is not asked.
    pub(crate) fn program_due_at(&self) -> Option<Time> {
        self.asked.as_ref()?.due_at()
    }

    /// The descriptors of the program that is asked.
    pub(crate) fn program_descriptors(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        self.asked.iter().flat_map(Asked::descriptors)
    }

    /// The second half of a tick.
    fn decide(&mut self, seen: Seen) -> Result<()> {
        let Seen { now, late, sockets, asleep, samples, observations, peers } = seen;
        let mut turn = self.governor.decide(now, &samples, observations, &peers);
        if let Some(asked) = &mut self.asked {
            asked.on_taken(now, turn.failure.as_deref());
        }
        self.report = turn.report;
        self.glance = Glance::default();
        let (until, left_out) = self.apply(now, &sockets, &mut turn)?;
        self.log(now, &sockets, &turn);
        self.glance = self.glance_at(&sockets, asleep, &left_out, &turn, &peers);
        if let Some(metrics) = &mut self.metrics {
            metrics.on_flows(sockets.iter().zip(turn.flows.iter().map(|flow| flow.seen.busy)), asleep);
        }
        self.show_metrics(now);
        let is_watched = self.watch.as_mut().is_some_and(WatchSocket::is_read);
        if self.recorder.is_some() || is_watched {
            let tick = Tick {
                t_ns: now.as_nanos(),
                late_ns: late.as_nanos(),
                terminals: peers.terminals(),
                flows: sockets
                    .iter()
                    .zip(&turn.flows)
                    .map(|(sample, flow)| self.flow_record(sample, flow, until))
                    .collect(),
                beacons: self.hearing.beacons(),
                wifi: self.wifi.link().cloned(),
                policy_state: turn.state.map(Into::into),
            };
            if is_watched {
                self.tell_watchers(now, Some(&tick), &peers);
            }
            self.record(&Event::Tick(tick));
        }
        Ok(())
    }

    /// Hands this tick's state to those who watch. `None`: nothing could be seen.
    fn tell_watchers(&mut self, now: Time, tick: Option<&Tick>, peers: &Neighbourhood) {
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
            excess_us: self.glance.state.excess.map(Span::as_micros),
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
    fn show_metrics(&mut self, now: Time) {
        if self.metrics.is_some() {
            self.count();
        }
        if let Some(metrics) = &self.metrics {
            metrics.show(self.status(now), self.totals.clone());
        }
    }

    /// Brings the totals up to date.
    fn count(&mut self) {
        self.totals.bounds_changed = self.governor.counts().bounds_changed;
        self.totals.flows_enabled = self.governor.counts().flows_enabled;
        self.totals.beacons = self.hearing.beacons();
        self.totals.rejected_by_cause =
            self.hearing.rejections().iter().map(|(cause, count)| (cause.as_str().to_owned(), count)).collect();
        self.totals.lines_left_out = self.recorder.as_ref().map_or(0, Recorder::left_out);
    }

    /// `left_out`: they have no bound of their own, for lack of room.
    fn glance_at(
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
        let flows = samples.iter().zip(&turn.flows);
        let bounds = flows.filter_map(|(sample, flow)| flow.decided.bound.filter(|_| is_bounded(sample)));
        Glance {
            connections: count(samples.len()).saturating_add(asleep),
            asleep,
            bounds_left_out: count(left_out.len()),
            busy: count(turn.flows.iter().filter(|flow| flow.seen.busy).count()),
            peers: count(peers.peers().len()),
            terminals: peers.terminals(),
            enabled_at: turn.flows.iter().filter_map(|flow| flow.decided.enabled_at()).min(),
            reason: turn.flows.iter().find(|flow| flow.seen.busy).map(|flow| flow.decided.reason.to_string()),
            bounds: bounds.collect(),
            state: turn.state.filter(|_| samples.iter().any(|sample| sample.controlled)).unwrap_or_default(),
            rules: rules::status(&self.config.rules, samples),
        }
    }

    /// The agent's present state.
    fn status(&self, now: Time) -> Status {
        let Self { glance, interface, mode, hearing, config, .. } = self;
        let windows = || glance.bounds.iter().map(|bound| bound.max_segments).filter(|most| *most > 0);
        let paces = || glance.bounds.iter().map(|bound| bound.max_pacing_rate).filter(|most| *most > Rate::ZERO);
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            interface: interface.name.clone(),
            loaded: self.tcp.is_some(),
            mode: *mode,
            policy: config.policy.policy,
            access_point: hearing.label().map(ToString::to_string),
            peers: glance.peers,
            terminals: glance.terminals,
            connections: glance.connections,
            asleep: glance.asleep,
            bounds_left_out: glance.bounds_left_out,
            busy: glance.busy,
            control_since_s: glance.enabled_at.map(|at| now.saturating_since(at).as_secs_f64()),
            reason: glance.reason.clone().filter(|_| *mode != Mode::Observe),
            common_rate_mbps: glance.state.common_rate.map(Rate::as_mbps),
            bounded: u32::try_from(glance.bounds.len()).unwrap_or(u32::MAX),
            window_segments: windows().min().zip(windows().max()).map(|(least, most)| [least, most]),
            pacing_mbps: paces().min().zip(paces().max()).map(|(least, most)| [least.as_mbps(), most.as_mbps()]),
            delivered_mbps: glance.state.delivered.filter(|_| glance.busy > 0).map(Rate::as_mbps),
            free_mbps: glance.state.free.map(Rate::as_mbps),
            rules: glance.rules.clone(),
            program: self
                .asked
                .as_ref()
                .map(|asked| ProgramStatus { trouble: asked.trouble().map(str::to_owned), totals: asked.totals() }),
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
    fn open_status(&mut self) {
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

    /// Time between two decisions.
    pub(crate) fn tick(&self) -> Span {
        self.config.tick()
    }

    /// In mode control, hands the decision to the kernel. Returns the end of its lease, and the connections that
    /// got no bound of their own for lack of room.
    fn apply(&mut self, now: Time, sockets: &[SocketSample], turn: &mut Turn) -> Result<(Time, HashSet<FlowId>)> {
        let lease = self.config.lease();
        let Some(tcp) = self.tcp.as_mut().filter(|_| self.mode == Mode::Control) else {
            return Ok((now, HashSet::new()));
        };
        let most = tcp.bounds_most();
        let idle = sockets.iter().zip(&turn.flows).map(|(socket, flow)| {
            let idle = if flow.seen.busy { Span::ZERO } else { socket.idle };
            (FlowId(socket.cookie), idle)
        });
        let left_out = make_room(&mut turn.bounds, most, idle);
        let bounds: Vec<(u64, Option<Bound>)> = turn.bounds.iter().map(|(flow, bound)| (flow.0, *bound)).collect();
        let until = clock::monotonic().saturating_add(lease);
        tcp.set_bounds(turn.new_flows, &bounds, lease).doing("cannot hand the bounds to the kernel")?;
        turn.bounds.extend(left_out.iter().map(|id| (*id, None)));
        self.governor.on_applied(turn);
        if !left_out.is_empty()
            && let Some(more) = self.room_log.may_say(now)
        {
            warn!(
                "more connections need a bound of their own than the {most} that can have one: those that are idle for longest \
                 have that of new connections; `lasthop agent status` counts them{more}"
            );
        }
        Ok((until, left_out.into_iter().collect()))
    }

    fn log(&mut self, now: Time, samples: &[SocketSample], turn: &Turn) {
        for (flow, enabled) in &turn.enabled {
            if self.totals.enabled.len() < Totals::ENABLED_KEPT {
                self.totals.enabled.push(Enabled { cookie: flow.0, t_ns: enabled.at.as_nanos() });
            }
        }
        let mut changed = turn.changed.iter().peekable(); // in the order of the samples
        for (sample, FlowTurn { decided, .. }) in samples.iter().zip(&turn.flows) {
            let is_changed = changed.next_if(|id| **id == decided.id).is_some();
            if !is_changed || rules::left_by(&self.config.rules, sample).is_some() {
                continue;
            }
            let would = if self.mode == Mode::Control && sample.controlled { "" } else { "would be " };
            if let Some(more) = self.decisions_log.may_say(now) {
                let limits = decided.bound.unwrap_or_default();
                info!("{} > {}: {would}{limits}: {}{more}", sample.local, sample.remote, decided.reason);
            }
        }
    }

    fn flow_record(&self, sample: &SocketSample, flow: &FlowTurn, until: Time) -> FlowRecord {
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
            reason: match self.mode {
                _ if left_by.is_some() => format!("rule {}: left alone", left_by.unwrap_or(0)),
                Mode::Observe => "mode observe: nothing is decided".to_owned(),
                Mode::Advise | Mode::Control => decided.reason.to_string(),
            },
        }
    }

    fn record(&mut self, event: &Event) {
        if let Some(recorder) = &mut self.recorder {
            recorder.write(event);
        }
    }

    /// Retracts the reports to servers. Returns whether the connections need time to send the retraction.
    pub(crate) fn retract(&mut self, now: Time) -> bool {
        let Some(last_link) = &mut self.last_link else { return false };
        let retracted = last_link.retract(now);
        let is_heard = retracted.is_some() && last_link.is_heard();
        self.record_report(retracted);
        is_heard
    }

    /// Gives the sockets their own congestion control back and writes the totals.
    pub(crate) fn stop(mut self) -> Result<Totals> {
        let restored = match &mut self.tcp {
            Some(tcp) => tcp.release(),
            None => Ok(0),
        };
        self.tcp = None;
        self.totals.last_link = self.last_link.as_mut().map(LastLink::totals);
        self.totals.program = self.asked.take().map(|asked| asked.totals());
        self.totals.sockets_restored = *restored.as_ref().unwrap_or(&0);
        self.count();
        if let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) {
            let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
            self.totals.cpu_s = seconds(usage.user_time()) + seconds(usage.system_time());
            self.totals.max_rss_kib = u64::try_from(usage.max_rss()).unwrap_or(0);
        }
        self.totals.t_ns = clock::monotonic().as_nanos();
        if let Some(recorder) = self.recorder.take() {
            recorder.finish(&Event::Stopped(self.totals.clone()));
        }
        restored.doing("cannot give every socket its own congestion control back")?;
        Ok(self.totals)
    }
}

/// The policy `none` applies nothing, so it changes nothing in the kernel.
fn wanted_mode(config: &Config) -> Mode {
    if config.policy.policy == PolicyName::None { Mode::Observe } else { config.mode }
}

/// The policy, and the program that it takes its decisions from, if any. `totals`: of an earlier program.
fn policy(config: &Config, mode: Mode, totals: ProgramTotals) -> (Box<dyn Policy + Send>, Option<Asked>) {
    if mode == Mode::Observe {
        return (Box::new(Nothing), None);
    }
    match Asked::start(config, clock::monotonic(), totals) {
        Some((asked, policy)) => (policy, Some(asked)),
        None => (config.policy.build(), None),
    }
}
