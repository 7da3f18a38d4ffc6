//! A simulated host's agent, on ticks of virtual time: the policies of [`lasthop_policy`], the peer table and the
//! beacon codec of [`lasthop_peers`].
//!
//! Every 0.5 s it observes the host's connections, decides, and sets bounds with a lease. Every 0.3 s, or less often
//! with many hosts ([`lasthop_peers::cadence`]), it sends a beacon: a packet that takes air time and can be lost. The
//! phases of both are random, because hosts are not switched on at the same moment.
//!
//! A host that roams forgets its peers and what its policy remembers, and is a new peer of those who share its new access point, as
//! the agent does when its link has another access point. A program of an external policy goes on, and is told of new peers.
//!
//! *What it leaves out*: group keys and other groups (no broadcast leaves an access point), the random tenth of an interval, IPv6
//! beacons beside the IPv4 ones, a wall clock that differs from the simulation's.

use crate::{PolicyOf, SimError};
use lasthop_laws::bound::Bound;
use lasthop_network::NodeId;
use lasthop_network::random::Streams;
use lasthop_peers::beacon::{Beacon, Receiver};
use lasthop_peers::cadence::{Cadence, Due};
use lasthop_peers::group::Label;
use lasthop_peers::{Arrived, Ear, Limits, Own, PeerId, Report};
use lasthop_policy::governor::{FlowSample, Governor};
use lasthop_policy::{FlowId, Nothing, Policy, PolicyName, Rts, RtsRule, rts_threshold};
use lasthop_scenario::{AgentMode, HostPolicyResult, HostSpec};
use lasthop_units::{Bytes, Span, Time};
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use std::net::{IpAddr, Ipv4Addr};

/// Datagrams of each beacon: one, over IPv4.
const DATAGRAMS: usize = 1;

/// The bytes of a beacon.
pub(crate) type Datagram = Box<[u8]>;

/// The agent of one host.
pub(crate) struct Agent {
    governor: Governor,
    ear: Ear,
    sender: PeerId,
    report: Report,
    rts_rule: RtsRule,
    sets_rts: bool,
    cadence: Cadence,
    /// It only observes, and sends no beacons.
    is_silent: bool,
    /// The time of the first tick.
    pub(crate) first_tick: Time,
    new_flows: Option<(Bound, Time)>,
    sent: u64,
    policy: PolicyName,
    /// Whether its policy is one of ours, which forgets what it knew when the host roams.
    begins_anew: bool,
    /// Of its phases and identities.
    stream: ChaCha8Rng,
    ticks: u64,
}

/// The policy of this host, if it is one of ours, with nothing to remember.
fn own_policy(host: &HostSpec) -> Box<dyn Policy + Send> {
    match host.kind.agent {
        AgentMode::Observe => Box::new(Nothing),
        _ => host.kind.policy.build_with(host.kind.parts),
    }
}

/// An end of a connection on this host, as the agent sees it.
pub(crate) fn flow_sample(id: FlowId, info: &lasthop_tcp::Info) -> FlowSample {
    FlowSample { id, tcp: info.tcp, controllable: true, left_alone: false, receives_freely: false, limit: None }
}

impl Agent {
    /// The agent of this host; `None` without one in the scenario.
    pub(crate) fn new(
        host: &HostSpec,
        streams: Streams,
        policies: &mut PolicyOf<'_>,
    ) -> Result<Option<Self>, SimError> {
        let mode = host.kind.agent;
        if mode == AgentMode::Off {
            return Ok(None);
        }
        let settings = &host.kind.policy;
        let given = if mode == AgentMode::Observe { Ok(None) } else { policies(host) };
        let given = given.map_err(|problem| SimError::PolicyStart { host: host.index, problem })?;
        let name = if given.is_some() { PolicyName::External } else { settings.policy };
        let begins_anew = given.is_none();
        let policy = given.unwrap_or_else(|| own_policy(host));
        let mut stream = streams.stream(&format!("agent/host-{}", host.number));
        let mut phase = |interval: Span| Time::from_nanos(stream.random_range(0..interval.as_nanos()));
        let first_tick = phase(lasthop_policy::TICK);
        let first_beacon = phase(lasthop_peers::beacon::INTERVAL) - Time::ZERO;
        let of_an_interval = first_beacon.as_secs_f64() / lasthop_peers::beacon::INTERVAL.as_secs_f64();
        Ok(Some(Self {
            governor: Governor::new(policy, mode == AgentMode::Control),
            ear: Ear::new(Receiver::new(Label::Link.id(), None), Limits::default()),
            sender: PeerId(stream.random()),
            report: Report::default(),
            rts_rule: RtsRule::default(),
            sets_rts: mode == AgentMode::Control && host.kind.rts == Rts::Auto,
            cadence: Cadence::new(lasthop_peers::beacon::INTERVAL, Time::ZERO, of_an_interval),
            is_silent: mode == AgentMode::Observe,
            first_tick,
            new_flows: None,
            sent: 0,
            policy: name,
            begins_anew,
            stream,
            ticks: 0,
        }))
    }

    /// The host is behind another access point from now on.
    pub(crate) fn on_roamed(&mut self, now: Time, host: &HostSpec) {
        self.ear.table.forget_all();
        self.sender = PeerId(self.stream.random());
        self.cadence = Cadence::new(lasthop_peers::beacon::INTERVAL, now, self.stream.random());
        self.rts_rule = RtsRule::default();
        self.governor.on_moved(now);
        if self.begins_anew {
            self.governor.restart(own_policy(host), host.kind.agent == AgentMode::Control);
        }
    }

    /// Observes and decides; returns the bounds to set, renew or remove.
    ///
    /// # Errors
    /// If the policy says that it failed.
    pub(crate) fn on_tick(
        &mut self,
        now: Time,
        host: &HostSpec,
        samples: &[FlowSample],
    ) -> Result<Vec<(FlowId, Option<Bound>)>, SimError> {
        let peers = self.ear.table.neighbourhood(now);
        let turn = self.governor.on_tick(now, samples, &peers);
        if let Some(problem) = turn.failure {
            let command = host.kind.policy.program().to_vec();
            return Err(SimError::Policy { host: host.index, command, tick: self.ticks, at: now, problem });
        }
        self.ticks += 1;
        self.governor.on_applied(&turn); // simulated TCP takes every bound
        self.report = turn.report;
        self.rts_rule.on_tick(now, &turn, &peers);
        self.new_flows = turn.new_flows.map(|bound| (bound, now + lasthop_laws::bound::LEASE));
        Ok(turn.bounds)
    }

    /// What the station's RTS threshold is to be until the next tick, where it is `before` without an agent; `None`: the agent
    /// leaves it alone.
    pub(crate) fn rts_threshold(&self, now: Time, before: Option<Bytes>) -> Option<Option<Bytes>> {
        let threshold = if self.rts_rule.holds(now) { Some(rts_threshold(before)) } else { before };
        self.sets_rts.then_some(threshold)
    }

    /// The bound of a connection that opens now, and its lease.
    pub(crate) fn bound_of_new_flow(&self, now: Time) -> Option<(Bound, Span)> {
        self.new_flows.filter(|(_, until)| now < *until).map(|(bound, until)| (bound, until - now))
    }

    /// The beacon to send now, if one is due.
    pub(crate) fn poll_beacon(&mut self, now: Time) -> Option<Datagram> {
        if self.is_silent {
            return None;
        }
        let Due { interval } = self.cadence.poll(now, self.ear.table.crowd(now), DATAGRAMS, &self.report, 0.5)?;
        self.sent += 1;
        let beacon = Beacon {
            sender: self.sender,
            // Simulated wall clocks start at 1, because a sender's timestamps must rise from 0.
            timestamp_ns: now.as_nanos() + 1,
            group: Label::Link.id(),
            interval,
            report: self.report,
        };
        Some(beacon.encode(None).into())
    }

    /// When to call [`Self::poll_beacon`] next, as of now.
    pub(crate) fn next_beacon_at(&mut self, now: Time) -> Time {
        if self.is_silent {
            return Time::MAX;
        }
        self.cadence.due_at(self.ear.table.crowd(now), DATAGRAMS).max(now)
    }

    /// Hears a beacon. The table counts rejected ones.
    pub(crate) fn on_beacon(&mut self, now: Time, from: NodeId, datagram: &[u8]) {
        let own = Own { sender: self.sender, addresses: &[] };
        let arrived = Arrived { now, wall_ns: now.as_nanos() + 1, from: address(from), datagram, relayed: false };
        let _counted = self.ear.on_datagram(own, arrived);
    }

    /// The agent's part of the result.
    pub(crate) fn result(&self, host: &HostSpec) -> HostPolicyResult {
        let counts = self.governor.counts();
        HostPolicyResult {
            host: host.index,
            policy: self.policy.as_str().to_owned(),
            beacons_sent: self.sent,
            beacons_heard: self.ear.table.heard(),
            beacons_rejected: self.ear.table.rejections().total(),
            terminals_max: counts.terminals_max,
            control_enabled_at_s: counts.first_enabled.map(Time::as_secs_f64),
            bounds_changed: counts.bounds_changed,
        }
    }
}

/// The source address of a simulated host's beacons; each host has its own.
fn address(host: NodeId) -> IpAddr {
    let [high, low] = host.0.to_be_bytes();
    Ipv4Addr::new(10, 0, high, low).into()
}
