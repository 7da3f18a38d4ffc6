//! One tick: observe, decide, apply, record.

mod following;
mod telling;
mod trying;

use crate::clock;
use crate::config::Config;
use crate::error::{Doing, Error, Result};
use crate::hear::hearing::Hearing;
use crate::link::interface::Interface;
use crate::link::last_link::{LastLink, flow_sight};
use crate::link::rts::RtsThreshold;
use crate::link::wifi::Wifi;
use crate::program::Asked;
use crate::tcp::host_tcp::{HostTcp, Left, Loaded, Loader, SocketSample, StateChange, flow_sample};
use crate::tcp::room::make_room;
use crate::tcp::ungoverned;
use crate::tell::log_limit::LogLimit;
use crate::tell::metrics::{self, Metrics};
use crate::tell::recorder::Recorder;
use crate::tell::socket::{self, Socket};
use lasthop_lastlink::FlowSight;
use lasthop_laws::bound::Bound;
use lasthop_peers::group::Label;
use lasthop_peers::{Neighbourhood, Report};
use lasthop_policy::governor::{FlowSample, Governor, Turn};
use lasthop_policy::{FlowId, FlowObservation, Nothing, Observation, Policy, PolicyName, Rts, RtsRule};
use lasthop_status::Mode;
use lasthop_status::record::{Event, ProgramTotals, Ready, State, Tick, Totals};
use lasthop_status::{Meter, Status};
use lasthop_units::{About, Span, Time};
use nix::poll::PollFlags;
use nix::sys::resource::{UsageWho, getrusage};
use std::collections::{BTreeSet, HashSet};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tracing::{info, warn};

/// New connections are taken over as they are made. Later walks find those whose route has moved to or from the
/// interface. Where a connection is seen that can be taken over, the next one comes at once.
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
    rts_rule: RtsRule,
    rts: RtsThreshold,
    pub(crate) hearing: Hearing,
    report: Report,
    /// `None`: servers are not told.
    last_link: Option<LastLink>,
    /// The connections at this tick, for `last_link`.
    sights: Vec<FlowSight>,
    recorder: Option<Recorder>,
    /// Where the socket is; `None`: there is none.
    socket_folder: Option<PathBuf>,
    /// Who may use it.
    socket_group: Option<u32>,
    socket: Option<Socket>,
    meter: Meter,
    metrics: Option<Metrics>,
    /// As of the last tick.
    status: Status,
    enabled_at: Option<Time>,
    totals: Totals,
    decisions_log: LogLimit,
    late_log: LogLimit,
    trouble_log: LogLimit,
    interface_log: LogLimit,
    room_log: LogLimit,
    harm_log: LogLimit,
    /// The kind of harm that was said.
    harm: Option<&'static str>,
    escape_log: LogLimit,
    /// Why, and with which congestion control, connections that were said escape.
    escapes: BTreeSet<(String, String)>,
    /// Since when some connection can be taken over and has not been.
    waits_since: Option<Time>,
    trying: trying::Trying,
}

/// What was observed at a tick.
struct Seen {
    now: Time,
    late: Span,
    sockets: Arc<Vec<SocketSample>>,
    asleep: u64,
    samples: Vec<FlowSample>,
    observations: Vec<FlowObservation>,
    peers: Neighbourhood,
}

impl<'a> Agent<'a> {
    /// Loads the TCP programs, adopts the existing sockets and reports readiness.
    pub(crate) fn start(config: &Config, sockets: Option<&Path>, loader: &'a mut Loader<'a>) -> Result<Self> {
        let interface = interface(config)?;
        if config.mode != Mode::Observe && config.policy.policy == PolicyName::None {
            warn!(
                "mode {} with the policy \"none\" has nothing to decide, so this host is only observed: choose a policy with \
                 --policy, or `policy` in [policy]",
                config.mode
            );
        }
        // Without a lock it is alone in a network of its own, as in the laboratory.
        if config.mode == Mode::Control && config.beacon.group_key_file.is_none() && config.lock {
            warn!(
                "mode control without a group key: anybody on the network can claim a part of the rate; `lasthop key` makes one"
            );
        }
        let socket_group = config.socket_group.as_deref().map(socket::group_id).transpose()?;
        let mut hearing = Hearing::new(&config.beacon)?;
        hearing.be_silent(config.mode == Mode::Observe);
        let recorder = Recorder::open(config)?;
        let Loaded { tcp, mode, reporter } = loader(config, &interface, wanted_mode(config))?;
        let mut last_link = LastLink::new(config);
        if let Some(last_link) = &mut last_link {
            last_link.attach(reporter);
        }
        let (policy, asked) = policy(config, mode, ProgramTotals::default());
        let status = Status::of(&ready(&interface, mode, config, None));
        let mut agent = Self {
            config: config.clone(),
            loader,
            interface,
            wifi: Wifi::default(),
            tcp: Some(tcp),
            mode,
            governor: Governor::new(policy, mode == Mode::Control),
            asked,
            seen: None,
            adopt_again_at: Time::ZERO,
            rts_rule: RtsRule::default(),
            rts: RtsThreshold::default(),
            hearing,
            report: Report::default(),
            last_link,
            sights: Vec::new(),
            recorder,
            socket_folder: sockets.map(Path::to_owned),
            socket_group,
            socket: None,
            meter: Meter::default(),
            metrics: None,
            status,
            enabled_at: None,
            totals: Totals::default(),
            decisions_log: LogLimit::new(20, Span::from_secs(10)),
            late_log: LogLimit::each_minute(),
            trouble_log: LogLimit::each_minute(),
            interface_log: LogLimit::each_minute(),
            room_log: LogLimit::new(1, Span::MAX),
            harm_log: LogLimit::each_minute(),
            harm: None,
            escape_log: LogLimit::new(4, Span::from_secs(60)),
            escapes: BTreeSet::new(),
            waits_since: None,
            trying: trying::Trying::default(),
        };
        agent.adopt()?;
        let now = clock::monotonic();
        agent.follow_group(now);
        agent.hearing.refresh(now, Some(&agent.interface));
        agent.say_ready();
        agent.look_at_link(now, true);
        agent.metrics = Metrics::start(config, agent.status(now));
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
        let may = self.status.ungoverned.iter().any(|left| left.why == ungoverned::word(Left::Yet));
        if others || may || now >= self.adopt_again_at { self.adopt() } else { Ok(()) }
    }

    fn say_ready(&mut self) {
        self.open_socket();
        let Self { interface, wifi, mode, config, tcp, .. } = self;
        let congestion_control = tcp.as_ref().and_then(|tcp| tcp.congestion_control()).map(str::to_owned);
        info!("ready on {}: mode {mode}, policy {}", interface.name, config.policy.policy);
        if let Some(link) = wifi.link() {
            info!("{link}");
        }
        if let (Mode::Control, Some(tcp)) = (*mode, tcp)
            && config.policy.may_limit_received()
        {
            tcp.will_bound_received();
        }
        let ready = ready(interface, *mode, config, self.hearing.label());
        self.record(&Event::Ready(Ready { congestion_control, ..ready }));
        self.see_nothing();
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
                warn!("this tick is {} late: is the machine overloaded?{more}", About(late));
            }
        }
        self.follow_trial(now);
        let done = self.observe(now, late).and_then(|seen| match seen {
            Some(seen) => {
                self.measure_trial(now, &seen);
                self.ask_or_decide(seen)
            }
            None => Ok(()),
        });
        if let Err(error) = done {
            self.on_trouble(now, &error);
        }
        let may_set = self.mode == Mode::Control && self.config.radio.rts == Rts::Auto && self.tcp.is_some();
        self.rts.follow(self.interface.index, may_set && self.rts_rule.holds(now));
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
                self.see_nothing();
                self.tell_watchers(now, None, &Neighbourhood::default());
                self.show_metrics(now);
                return nothing.map(|_| None);
            }
        };
        if self.last_link.is_some() {
            self.sights.extend(sockets.iter().map(flow_sight));
        }
        let peers = self.hearing.neighbourhood(now);
        let bounds_received = self.tcp.as_ref().is_some_and(|tcp| tcp.bounds_received());
        let sample = |socket| flow_sample(socket, &self.config.rules, bounds_received);
        let samples: Vec<_> = sockets.iter().map(sample).collect();
        let observations = self.governor.observe(now, &samples);
        let asleep = self.tcp.as_ref().map_or(0, |tcp| tcp.asleep());
        Ok(Some(Seen { now, late, sockets, asleep, samples, observations, peers }))
    }

    fn sample(&mut self) -> Result<Option<Arc<Vec<SocketSample>>>> {
        let Some(tcp) = self.tcp.as_mut() else { return Ok(None) };
        let recorder = &mut self.recorder;
        self.totals.state_changes_lost +=
            tcp.poll_state_changes(&mut |StateChange { at, cookie, from, to, .. }| {
                if let Some(recorder) = recorder {
                    let (from, to) = (format!("{from:?}"), format!("{to:?}"));
                    recorder.write(&Event::State(State { t_ns: at.as_nanos(), cookie, from, to }));
                }
            })?;
        tcp.sample().map(Some)
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
        self.see_nothing();
        let (until, left_out) = self.apply(now, &sockets, &mut turn)?;
        self.rts_rule.on_tick(now, &turn, &peers);
        self.log(now, &sockets, &turn);
        self.log_harm(now, &turn, &peers);
        self.see(&sockets, asleep, &left_out, &turn, &peers);
        self.log_escapes(now);
        if let Some(metrics) = &mut self.metrics {
            metrics.on_tick(&metrics::Tick { sockets: &sockets, flows: &turn.flows, asleep });
        }
        self.show_metrics(now);
        let is_watched = self.socket.as_mut().is_some_and(Socket::is_read);
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

    /// Retracts the reports to servers. Returns whether the connections need time to send the retraction.
    pub(crate) fn retract(&mut self, now: Time) -> bool {
        let Some(last_link) = &mut self.last_link else { return false };
        let retracted = last_link.retract(now);
        let is_heard = retracted.is_some() && last_link.is_heard();
        self.record_report(retracted);
        is_heard
    }

    /// Gives the radio its RTS threshold and the sockets their own congestion control back, and writes the totals.
    pub(crate) fn stop(mut self) -> Result<Totals> {
        self.rts.give_back();
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

/// The interface to manage.
pub(crate) fn interface(config: &Config) -> Result<Interface> {
    Interface::of(config).ok_or_else(|| {
        Error::Refused(match &config.interface {
            Some(name) => format!("interface: there is no interface {name} (see `ip link`)"),
            None => "there is no default route: name the interface (`interface`, --interface)".to_owned(),
        })
    })
}

/// What an agent on this interface says of itself as it begins.
fn ready(interface: &Interface, mode: Mode, config: &Config, label: Option<&Label>) -> Ready {
    Ready {
        t_ns: clock::monotonic().as_nanos(),
        unix_ms: Some(clock::wall_ns() / 1_000_000),
        interface: interface.name.clone(),
        congestion_control: None,
        mode,
        policy: config.policy.policy,
        group: label.map(ToString::to_string),
        version: env!("CARGO_PKG_VERSION").to_owned(),
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
