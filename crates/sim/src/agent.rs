//! A simulated host's agent: the policies, the peer table and the beacon codec of [`control`], on the ticks of virtual
//! time.
//!
//! Every 0.5 s it looks at the host's connections, decides and sets bounds with a lease; every 0.3 s it sends a beacon,
//! which is a real packet that takes air time and can be lost. The phases of both are drawn, because hosts
//! are not switched on at the same moment.
//!
//! *What it leaves out*: group keys, IPv6 beacons beside the IPv4 ones, and a wall clock apart from the simulation's.

use control::activity::{Activity, ActivitySample};
use control::beacon::{Beacon, Receiver};
use control::bound::Bound;
use control::peers::{Limits, PeerId, PeerTable, Report};
use control::policy::{Decision, FlowDecision, FlowId, FlowObservation, Nothing, Observation, Policy, PolicyName};
use network::random::Streams;
use rand::RngExt as _;
use scenario::{AgentMode, HostPolicyResult, HostSpec};
use std::collections::BTreeMap;
use units::{Bytes, Span, Time};

/// Bytes of an IPv4 packet with a beacon: 20 of IP, 8 of UDP, and the beacon.
pub(crate) const BEACON_PACKET: Bytes = Bytes::new(20 + 8 + control::beacon::PLAIN_BYTES as u64);

/// One datagram of a beacon.
pub(crate) type Datagram = [u8; control::beacon::PLAIN_BYTES];

/// The agent of one host.
pub(crate) struct Agent {
    mode: AgentMode,
    policy: Box<dyn Policy + Send>,
    receiver: Receiver,
    table: PeerTable,
    sender: PeerId,
    report: Report,
    flows: BTreeMap<FlowId, Flow>,
    /// Where the first tick and the first beacon lie.
    pub(crate) first: (Time, Time),
    new_flows: Option<(Bound, Time)>,
    sent: u64,
    enabled_at: Option<Time>,
    terminals_max: u32,
    bounds_changed: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    activity: Activity,
    applied: Option<Bound>,
}

/// One of the host's own ends of a connection, as the agent sees it.
pub(crate) struct Seen {
    pub(crate) id: FlowId,
    pub(crate) info: tcp::Info,
}

impl Agent {
    /// The agent of this host; `None` where the scenario has none.
    pub(crate) fn new(host: &HostSpec, streams: Streams) -> Option<Self> {
        let mode = host.kind.agent;
        if mode == AgentMode::Off {
            return None;
        }
        let settings = &host.kind.policy;
        let decides = mode != AgentMode::Observe && settings.policy != PolicyName::None;
        let mut stream = streams.stream(&format!("agent/host-{}", host.index));
        let mut phase = |interval: Span| Time::from_nanos(stream.random_range(0..interval.as_nanos()));
        let first = (phase(control::policy::TICK), phase(control::beacon::INTERVAL));
        Some(Self {
            mode,
            policy: if decides { settings.build() } else { Box::new(Nothing) },
            receiver: Receiver::new(None),
            table: PeerTable::new(Limits::default()),
            sender: PeerId(stream.random()),
            report: Report::default(),
            flows: BTreeMap::new(),
            first,
            new_flows: None,
            sent: 0,
            enabled_at: None,
            terminals_max: 0,
            bounds_changed: 0,
        })
    }

    /// Looks and decides; the bound of each connection in their order, for those that get another or a renewed one.
    pub(crate) fn on_tick(&mut self, now: Time, seen: &[Seen], mut apply: impl FnMut(usize, Option<Bound>)) {
        let mut known = std::mem::take(&mut self.flows);
        let mut observations = Vec::with_capacity(seen.len());
        for Seen { id, info } in seen {
            let mut flow = known.remove(id).unwrap_or_default();
            let busy = flow.activity.on_sample(ActivitySample {
                now,
                acked: Bytes::new(info.acked_bytes),
                in_flight_segments: info.in_flight_segments,
                unsent: Bytes::new(info.unsent_bytes),
                srtt: info.srtt,
            });
            self.flows.insert(*id, flow);
            observations.push(FlowObservation {
                id: *id,
                srtt: info.srtt,
                min_rtt: info.min_rtt,
                cwnd_segments: info.cwnd_segments,
                busy,
            });
        }
        let peers = self.table.neighbourhood(now);
        self.terminals_max = self.terminals_max.max(peers.terminals());
        let Decision { flows, new_flows } =
            self.policy.on_tick(&Observation { now, flows: &observations, peers: &peers });
        let enabled = flows.iter().filter_map(|flow| flow.enabled);
        self.enabled_at = self.enabled_at.or(flows.iter().filter_map(FlowDecision::enabled_at).min());
        let controls = self.mode == AgentMode::Control;
        self.report = Report::of(&observations, enabled.filter(|_| controls).map(|enabled| enabled.by));
        if !controls {
            return;
        }
        self.new_flows = new_flows.map(|bound| (bound, now + control::policy::LEASE));
        for (index, decided) in flows.iter().enumerate() {
            let flow = self.flows.get_mut(&decided.id).expect("every decision is of a connection that was seen");
            if decided.bound.is_some() || flow.applied.is_some() {
                self.bounds_changed += u64::from(flow.applied != decided.bound);
                flow.applied = decided.bound;
                apply(index, decided.bound);
            }
        }
    }

    /// The bound of a connection that opens now, and until when it holds.
    pub(crate) fn bound_of_new_flow(&self, now: Time) -> Option<(Bound, Span)> {
        self.new_flows.filter(|(_, until)| now < *until).map(|(bound, until)| (bound, until - now))
    }

    /// The beacon to send now.
    pub(crate) fn beacon(&mut self, now: Time) -> Datagram {
        self.sent += 1;
        // The wall clock of a simulated host begins at 1: beacons of a sender must rise from 0.
        let beacon = Beacon { sender: self.sender, timestamp_ns: now.as_nanos() + 1, report: self.report };
        beacon.encode(None).try_into().expect("a beacon without a tag has its fixed length")
    }

    /// Hears a beacon. What is not believed is counted by the table.
    pub(crate) fn on_beacon(&mut self, now: Time, datagram: &Datagram) {
        if self.table.on_datagram(now).is_err() {
            return;
        }
        let _counted = match self.receiver.on_datagram(now.as_nanos() + 1, datagram) {
            Ok(beacon) if beacon.sender == self.sender => Ok(()),
            Ok(beacon) => self.table.on_report(now, beacon.sender, beacon.report),
            Err(cause) => Err(self.table.reject(cause)),
        };
    }

    /// What it did, for the result.
    pub(crate) fn result(&self, host: &HostSpec) -> HostPolicyResult {
        HostPolicyResult {
            host: host.index,
            policy: host.kind.policy.policy.as_str().to_owned(),
            beacons_sent: self.sent,
            beacons_heard: self.table.heard(),
            beacons_rejected: self.table.rejections().total(),
            terminals_max: self.terminals_max,
            control_enabled_at_s: self.enabled_at.map(Time::as_secs_f64),
            bounds_changed: self.bounds_changed,
        }
    }
}
