//! From the observations of a habitat to the [`RunResult`] and [`Series`] of a run.
//!
//! A habitat hands over what only it can know: samples, limits and counters of each connection, what the agents did,
//! and whether real time did harm. Everything that follows from these and from the scenario is computed here. A habitat
//! in virtual time reports while the run goes on. One in real time records, and reports afterwards, limits before
//! samples.

use crate::bounds::Bounds;
use crate::convergence::ShareMeter;
use crate::counted::{access, cells, links, nodes, policies};
use crate::datagrams::{DatagramMeter, datagrams};
use crate::deliveries::{DeliveryMeter, delivered};
use crate::fairness::{jain_index, starved_flows};
use crate::flow_meter::FlowMeter;
use crate::quantiles::{distribution, mean};
use crate::roams::RoamMeter;
use crate::round_trips::RoundTrips;
use crate::transfers::{Transfer, Transfers};
use lasthop_connection::TcpState;
use lasthop_laws::Applied;
use lasthop_network::{Network, QueueId, Statistics};
use lasthop_policy::PolicyName;
use lasthop_scenario::{
    AccessResult, AgentMode, Build, Clock, DatagramResult, DatagramSample, DeliveryResult, FlowResult, FlowSample,
    FlowSpec, HostPolicyResult, HostSpec, HostsKind, InvalidKind, Kind as _, LastLinkResult, Lateness, Message, Pieces,
    QueueSample, QuicLaw, RunResult, SCHEMA_VERSION, Scenario, Series, TrafficKind, TransferSeries, Transport,
    UsedKernel, VideoResult, place_name,
};
use lasthop_units::{Bytes, Probability, Rate, Span, Time};
use std::collections::BTreeSet;
use std::time::Duration;

/// A connection counts for fairness if it had data to send for this ratio of the measured time. Starts that are drawn
/// from a short range then exclude no connection.
const BUSY_SHARE: f64 = 0.95;

/// Collects the observations of one run.
#[derive(Debug)]
pub struct Measurement<'a> {
    scenario: &'a Scenario,
    hosts: &'a [HostSpec],
    warm_at: Time,
    end: Time,
    flows: Vec<Flow<'a>>,
    /// Each connection of the hosts, in their order.
    connections: Vec<Connection>,
    /// Of all flows with transfers.
    transfers: Vec<Transfer>,
    shares: ShareMeter,
    /// If any host roams.
    roams: Option<RoamMeter<'a>>,
    series: Option<Series>,
}

#[derive(Debug)]
struct Flow<'a> {
    spec: &'a FlowSpec,
    meter: FlowMeter,
    round_trips: RoundTrips,
    deliveries: DeliveryMeter,
    datagrams: DatagramMeter,
    video: Option<VideoResult>,
    /// What its receiving applications have got by the last sample.
    received: Bytes,
    /// When the series had its last row, or the flow its start, and what the receiving applications had got by then.
    row: (Time, Bytes),
    /// The same of the row before; and how many connections the last one is of.
    before: (Time, Bytes),
    joined: u32,
}

/// A connection of a flow.
#[derive(Debug)]
struct Connection {
    /// The place of its flow.
    flow: usize,
    bounds: Bounds,
    /// What its last sample had.
    acked: Bytes,
    received: Bytes,
    /// When that was.
    sampled: Time,
}

/// What the sender of a connection reports of its TCP, or its QUIC.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// Its state.
    pub tcp: TcpState,
    /// What its law last made of the client's reports; `None` without reports.
    pub last_link: Option<Applied>,
}

/// What was counted of one connection after the warm-up.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counted {
    /// Bytes that the receiving application got.
    pub received: Bytes,
    /// Segments retransmitted; with QUIC, packets declared lost.
    pub retransmits: u64,
    /// Retransmission timeouts; `None` where they are not counted.
    pub timeouts: Option<u64>,
    /// Segments delivered by ACKs that echo a mark of ECN.
    pub delivered_ce: u64,
    /// What the sender's law made of the client's reports; `None` without reports.
    pub last_link: Option<LastLinkResult>,
}

impl Counted {
    /// Those of several connections.
    fn of_all(each: &[Self]) -> Self {
        let Some((first, others)) = each.split_first() else { return Self::default() };
        others.iter().fold(*first, |sum, one| Self {
            received: sum.received + one.received,
            retransmits: sum.retransmits + one.retransmits,
            timeouts: sum.timeouts.zip(one.timeouts).map(|(sum, one)| sum + one).or(sum.timeouts).or(one.timeouts),
            delivered_ce: sum.delivered_ce + one.delivered_ce,
            last_link: match (sum.last_link, one.last_link) {
                (Some(sum), Some(one)) => Some(LastLinkResult {
                    ignored_losses: sum.ignored_losses + one.ignored_losses,
                    heeded_losses: sum.heeded_losses + one.heeded_losses,
                    initial_segments: one.initial_segments,
                }),
                (sum, one) => one.or(sum),
            },
        })
    }
}

/// A sample of a run while it goes on.
#[derive(Clone, Copy, Debug)]
pub enum Sampled<'a> {
    /// Of a connection: its number, and what [`Measurement::on_sample`] is told.
    Connection(usize, Bytes, Option<&'a Seen>),
    /// Of the access point's queue: packets. Simulated hosts only.
    Queue(usize),
    /// Of the radio channel, since the start or the end of the warm-up: the time with a frame on it, and all. Of cells, of all channels
    /// together. Simulated hosts only.
    Air {
        /// With a frame.
        busy: Span,
        /// In all.
        of: Span,
    },
}

/// Called with each sample of a run while it goes on.
pub type OnSample<'a> = dyn Fn(Time, Sampled<'_>) + Sync + 'a;

/// The result of a run that begins: names and settings, and nothing measured. `None`: the network model rejects its
/// network.
pub fn begun(scenario: &Scenario, build: Build, kind: HostsKind) -> Option<RunResult> {
    let statistics = Network::<()>::new(scenario.network(), scenario.seed).ok()?.statistics(Time::ZERO);
    let hosts = scenario.expanded_hosts();
    let flows = hosts.iter().map(|host| host.flows.len()).sum();
    let finished = Finished {
        build,
        flows: vec![Counted::default(); flows],
        statistics: &statistics,
        device_drops: 0,
        policies: Vec::new(),
        events: 0,
        notes: Vec::new(),
        real_time: None,
    };
    let (result, _) = Measurement::new(scenario, &hosts, false).into_outcome(finished);
    Some(RunResult { hosts_kind: kind, ..result })
}

/// What is known after the end of a run.
#[derive(Clone, Debug)]
pub struct Finished<'a> {
    /// The build of lasthop that ran it.
    pub build: Build,
    /// Each connection, in the order of their numbers.
    pub flows: Vec<Counted>,
    /// What the network counted after the warm-up.
    pub statistics: &'a Statistics,
    /// Packets dropped after the warm-up by full transmit queues outside the network.
    pub device_drops: u64,
    /// What the agent of each host with a policy did.
    pub policies: Vec<HostPolicyResult>,
    /// Number of events in the whole run.
    pub events: u64,
    /// Remarks for the reader that do not make the run invalid.
    pub notes: Vec<String>,
    /// How real time affected kernel hosts; `None` in virtual time.
    pub real_time: Option<RealTime>,
}

/// How real time affected a run.
#[derive(Clone, Debug)]
pub struct RealTime {
    /// `uname -r`.
    pub kernel_release: Option<String>,
    /// How late packets reached their hosts.
    pub lateness: Lateness,
    /// The part of the hosts' turnaround that this machine itself took; `None` where no host was seen to answer.
    pub machine_turnaround: Option<Lateness>,
    /// What could have changed the result; the run is valid if this is empty.
    pub invalid_reasons: Vec<(InvalidKind, String)>,
    /// How long the run took.
    pub wall: Duration,
}

impl<'a> Measurement<'a> {
    /// A run of this scenario, whose [`Scenario::expanded_hosts`] are `hosts`. `series`: whether series are kept.
    pub fn new(scenario: &'a Scenario, hosts: &'a [HostSpec], series: bool) -> Self {
        let overtakes = scenario.network().reorders();
        let (mut flows, mut connections): (Vec<Flow<'_>>, Vec<Connection>) = (Vec::new(), Vec::new());
        for spec in hosts.iter().flat_map(|host| &host.flows) {
            if flows.last().is_none_or(|flow| flow.spec.id != spec.id) {
                flows.push(Flow {
                    spec,
                    meter: FlowMeter::default(),
                    round_trips: RoundTrips::default(),
                    deliveries: DeliveryMeter::default(),
                    datagrams: DatagramMeter::new(overtakes),
                    video: None,
                    received: Bytes::ZERO,
                    row: (spec.start, Bytes::ZERO),
                    before: (spec.start, Bytes::ZERO),
                    joined: 0,
                });
            }
            let (flow, bounds) = (flows.len() - 1, Bounds::default());
            connections.push(Connection {
                flow,
                bounds,
                acked: Bytes::ZERO,
                received: Bytes::ZERO,
                sampled: Time::ZERO,
            });
        }
        Self {
            scenario,
            hosts,
            warm_at: Time::ZERO + scenario.warmup,
            end: Time::ZERO + scenario.duration,
            flows,
            connections,
            transfers: Vec::new(),
            shares: ShareMeter::default(),
            roams: RoamMeter::new(scenario),
            series: series.then(Series::default),
        }
    }

    /// The limits of a connection's data: of its sender, or of its receiver.
    pub fn bounds(&mut self, connection: usize) -> &mut Bounds {
        &mut self.connections[connection].bounds
    }

    fn flow_of(&mut self, connection: usize) -> &mut Flow<'a> {
        &mut self.flows[self.connections[connection].flow]
    }

    /// An ACK gave the sender of a connection this sample of its round trip.
    pub fn on_round_trip(&mut self, now: Time, connection: usize, rtt: Span) {
        if now >= self.warm_at {
            self.flow_of(connection).round_trips.on_sample(rtt);
        }
    }

    /// A message or transfer of this connection was read to its end.
    pub fn on_delivered(&mut self, now: Time, connection: usize, message: Message) {
        if now >= self.warm_at {
            self.flow_of(connection).deliveries.on_delivered(now.saturating_since(message.since));
        }
        self.on_transfer(connection, message, Some(now));
    }

    /// A message or transfer was not read to its end before the run ended.
    pub fn on_undelivered(&mut self, connection: usize, message: Message) {
        self.flow_of(connection).deliveries.on_undelivered(message.since);
        self.on_transfer(connection, message, None);
    }

    fn on_transfer(&mut self, connection: usize, message: Message, read: Option<Time>) {
        if self.flow_of(connection).spec.kind.is_transfer() {
            let flow = self.connections[connection].flow;
            self.transfers.push(Transfer { flow, message, read });
        }
    }

    /// A datagram of this number was sent.
    pub fn on_sent(&mut self, now: Time, connection: usize, number: u64) {
        if now >= self.warm_at {
            self.flow_of(connection).datagrams.on_sent(now, number);
        }
    }

    /// The datagram of this number, sent at `since`, has come; of a ping, the answer to it.
    pub fn on_received(&mut self, now: Time, connection: usize, number: u64, since: Time) {
        let flow = &mut self.flows[self.connections[connection].flow];
        let took = now.saturating_since(since);
        if since >= self.warm_at {
            flow.datagrams.on_received(number, took);
        }
        if let Some(series) = &mut self.series {
            series.datagrams.push(DatagramSample {
                t_s: since.as_secs_f64(),
                flow: flow.spec.id,
                host: flow.spec.host,
                number,
                took_ms: took.as_millis_f64(),
            });
        }
    }

    /// The outcome of a video.
    pub fn on_video(&mut self, connection: usize, video: VideoResult) {
        self.flow_of(connection).video = Some(video);
    }

    /// A sample of a connection, in order of time. `received`: what its receiving application got since the run began;
    /// `seen`: what its sender reports, `None` while the connection is not open.
    pub fn on_sample(&mut self, at: Time, connection: usize, received: Bytes, seen: Option<&Seen>) {
        let connection = &mut self.connections[connection];
        let flow = &mut self.flows[connection.flow];
        let waits = seen.is_some_and(|seen| seen.tcp.has_data());
        let busy = flow.spec.kind.is_greedy() && waits;
        if let Some(roams) = &mut self.roams {
            let (delivered, before) = (received - connection.received, connection.sampled);
            roams.on_sample((before, at), flow.spec.host, delivered, at > self.warm_at);
        }
        connection.sampled = at;
        flow.received = flow.received + received - connection.received;
        connection.received = received;
        self.shares.on_sample(at, flow.spec.id, flow.spec.host, flow.received, busy);
        let Some(Seen { tcp, last_link: link }) = seen else { return };
        flow.meter.on_sample(at >= self.warm_at, tcp, connection.acked);
        connection.acked = tcp.acked;
        let Some(series) = &mut self.series else { return };
        // What came since without a row, as the end of a transfer, is in this one.
        if flow.joined == 0 || at > flow.row.0 {
            (flow.before, flow.joined) = (flow.row, 0);
        }
        (flow.row, flow.joined) = ((at, flow.received), flow.joined + 1);
        let goodput = Rate::over(flow.received - flow.before.1, at.saturating_since(flow.before.0));
        let bound = connection.bounds.at(at);
        let sample = FlowSample {
            t_s: at.as_secs_f64(),
            flow: flow.spec.id,
            host: flow.spec.host,
            cwnd_segments: tcp.cwnd_segments,
            ssthresh_segments: tcp.ssthresh_segments,
            srtt_ms: tcp.srtt.map(Span::as_millis_f64),
            min_rtt_ms: tcp.min_rtt.map(Span::as_millis_f64),
            state: tcp.state as u8,
            in_flight_segments: tcp.in_flight_segments,
            unsent_bytes: tcp.unsent.get(),
            retransmits: tcp.retransmits,
            goodput_mbps: goodput.as_mbps(),
            pacing_mbps: tcp.pacing_rate.map(Rate::as_mbps),
            // The values that mean "no limit" in `bound.h` are no values here.
            bound_min: Some(bound.min_segments).filter(|segments| *segments > 1),
            bound_max: Some(bound.max_segments).filter(|segments| *segments > 0),
            bound_pacing_mbps: Some(bound.max_pacing_rate).filter(|rate| *rate > Rate::ZERO).map(Rate::as_mbps),
            reported_bandwidth_mbps: link.and_then(|link| link.bandwidth).map(Rate::as_mbps),
            reported_error_rate: link.and_then(|link| link.error_rate).map(Probability::get),
            cwnd_max_segments: link.and_then(|link| link.cwnd_max_segments),
            ignored_losses: link.map(|link| link.ignored_losses),
        };
        match flow.joined {
            1 => series.flows.push(sample),
            joined => series.flows.join(sample, joined),
        }
    }

    /// The length of a queue.
    pub fn on_queue(&mut self, at: Time, place: QueueId, packets: usize) {
        if let Some(series) = &mut self.series {
            let sample = QueueSample { t_s: at.as_secs_f64(), place: place_name(place), packets: packets as u32 };
            series.queues.push(sample);
        }
    }

    /// The result and the series. In virtual time the caller fills in [`RunResult::took`].
    ///
    /// # Panics
    /// If the number of connections differs from that of the hosts' flows.
    pub fn into_outcome(mut self, finished: Finished<'_>) -> (RunResult, Series) {
        assert_eq!(self.connections.len(), finished.flows.len(), "each connection of the scenario was measured");
        let transfers = {
            let specs: Vec<&FlowSpec> = self.flows.iter().map(|flow| flow.spec).collect();
            Transfers::new(
                self.scenario,
                (self.hosts, &specs),
                std::mem::take(&mut self.transfers),
                (self.warm_at, self.end),
            )
        };
        let pooled = |of_kind: fn(&TrafficKind) -> bool| {
            let of_kind = self.flows.iter().filter(|flow| of_kind(&flow.spec.kind));
            let meters: Vec<&DeliveryMeter> = of_kind.map(|flow| &flow.deliveries).collect();
            (!meters.is_empty()).then(|| delivered(meters, self.end))
        };
        let access = access(finished.statistics, self.scenario.network().aggregates());
        let mut result = RunResult {
            schema_version: SCHEMA_VERSION,
            scenario: self.scenario.to_json(),
            hosts_kind: if finished.real_time.is_some() { HostsKind::Kernel } else { HostsKind::Simulated },
            seed: self.scenario.seed,
            duration_s: self.scenario.duration.as_secs_f64(),
            warmup_s: self.scenario.warmup.as_secs_f64(),
            aggregate_goodput_mbps: 0.0,
            fairness_flows: 0,
            jain_index: None,
            starved_flows: 0,
            rtt_ms: None,
            rtt_per_ack_ms: RoundTrips::of_all(self.flows.iter().map(|flow| &flow.round_trips)).distribution(),
            messages: pooled(|kind| kind.name().pieces() == Pieces::Messages),
            transfers: pooled(TrafficKind::is_transfer)
                .map(|pooled| DeliveryResult { slowdown: transfers.slowdown(), ..pooled }),
            slowdowns: transfers.by_size(),
            pings: self.datagrams(Pieces::Pings),
            datagrams: self.datagrams(Pieces::Datagrams),
            videos: videos(self.flows.iter().filter_map(|flow| flow.video)),
            utilization: finished.statistics.utilization,
            access: AccessResult { uplink_drops: access.uplink_drops + finished.device_drops, ..access },
            cells: Vec::new(),
            nodes: nodes(self.scenario),
            roams: Vec::new(),
            links: links(self.scenario, finished.statistics),
            flows: (0..self.flows.len()).map(|flow| self.flow(flow, &finished.flows)).collect(),
            convergence: self.shares.convergence(self.warm_at, self.end, &self.scenario.network_changes()),
            build: finished.build,
            policies: policies(finished.policies),
            used: UsedKernel::default(),
            wall_s: 0.0,
            events: finished.events,
            simulated_s_per_wall_s: 0.0,
            lateness_us: None,
            machine_turnaround_us: None,
            valid: true,
            invalid_reasons: Vec::new(),
            invalid_kinds: BTreeSet::new(),
            notes: finished.notes,
        };
        if let Some(real_time) = finished.real_time {
            result.used.kernel_release = real_time.kernel_release;
            result.used.clock = Some(Clock::Real);
            result.lateness_us = Some(real_time.lateness);
            result.machine_turnaround_us = real_time.machine_turnaround;
            result.valid = real_time.invalid_reasons.is_empty();
            (result.invalid_kinds, result.invalid_reasons) = real_time.invalid_reasons.into_iter().unzip();
            result.took(real_time.wall);
        }
        result.cells = cells(self.scenario, finished.statistics, &self.goodputs_by_cell(&result));
        result.roams = self.roams.as_ref().map_or_else(Vec::new, |roams| roams.results(self.scenario));
        let rtts: Vec<f64> = self.flows.iter().flat_map(|flow| flow.meter.rtts_ms().iter().copied()).collect();
        summarise(&mut result, &rtts);
        let series = self.series.map(|series| Series { transfers: TransferSeries::of(transfers.rows), ..series });
        (result, series.unwrap_or_default())
    }

    /// In Mb/s; empty without cells.
    fn goodputs_by_cell(&self, result: &RunResult) -> Vec<f64> {
        let Some(layout) = self.scenario.layout() else { return Vec::new() };
        let mut of_hosts = vec![0.0; layout.hosts.len()];
        result.flows.iter().for_each(|flow| of_hosts[usize::from(flow.host)] += flow.goodput_mbps);
        let mut of_cells = vec![0.0; layout.access_points.len()];
        for (number, (host, goodput)) in layout.hosts.iter().zip(of_hosts).enumerate() {
            match &self.roams {
                None => of_cells[usize::from(host.cell)] += goodput,
                Some(roams) => {
                    of_cells.iter_mut().zip(roams.goodputs(number, goodput)).for_each(|(cell, part)| *cell += part);
                }
            }
        }
        of_cells
    }

    /// The datagrams of all flows in these pieces; `None` without any.
    fn datagrams(&self, pieces: Pieces) -> Option<DatagramResult> {
        let in_pieces: Vec<_> = self.flows.iter().filter(|flow| flow.spec.kind.name().pieces() == pieces).collect();
        let meters = in_pieces.iter().map(|flow| &flow.datagrams);
        (!in_pieces.is_empty()).then(|| datagrams(meters, self.end, pieces == Pieces::Pings))
    }

    fn flow(&self, number: usize, counted: &[Counted]) -> FlowResult {
        let flow = &self.flows[number];
        let (warm_at, end, spec) = (self.warm_at, self.end, flow.spec);
        let first = self.connections.partition_point(|connection| connection.flow < number);
        let connections = self.connections[first..].iter().take_while(|connection| connection.flow == number);
        let counted = Counted::of_all(&counted[first..first + connections.clone().count()]);
        let kind = &self.hosts[usize::from(spec.host)].kind;
        let policy = if kind.agent == AgentMode::Off { PolicyName::None } else { kind.policy.policy };
        let deliveries = delivered([&flow.deliveries], end);
        FlowResult {
            id: spec.id,
            host: spec.host,
            direction: spec.direction,
            kind: spec.kind.as_str().to_owned(),
            congestion_control: match spec.kind.name().transport() {
                Transport::Tcp => Some(kind.congestion_control.clone()),
                Transport::Quic | Transport::Udp => spec.kind.quic_law().map(|law| match law {
                    QuicLaw::Host => kind.congestion_control.clone(),
                    law => law.as_str().to_owned(),
                }),
            },
            policy: policy.as_str().to_owned(),
            always_busy: is_always_busy(spec, warm_at, end, flow.deliveries.is_all_read()),
            goodput_mbps: Rate::over(counted.received, end - warm_at).as_mbps(),
            rtt_ms: flow.meter.rtt_ms(),
            rtt_per_ack_ms: flow.round_trips.distribution(),
            cwnd_mean: flow.meter.cwnd_mean(),
            state_shares: flow.meter.state_shares().filter(|_| spec.kind.name().transport() == Transport::Tcp),
            retransmits: counted.retransmits,
            timeouts: counted.timeouts,
            delivered_ce: counted.delivered_ce,
            controlled_share: connections.map(|one| one.bounds.controlled_share(warm_at, end)).sum::<f64>().min(1.0),
            started_s: spec.start.as_secs_f64(),
            last_link: counted.last_link,
            messages: deliveries.delivered,
            undelivered: deliveries.undelivered,
            message_ms: deliveries.took_ms,
            datagrams: (spec.kind.name())
                .is_datagrams()
                .then(|| datagrams([&flow.datagrams], end, spec.kind.name().pieces() == Pieces::Pings)),
            video: flow.video,
        }
    }
}

/// Whether the application had data to send for at least [`BUSY_SHARE`] of `from..until`. Only what is endless can, and a
/// bulk transfer of limited size, which must not have been read to its end (`all_read`). Whether data got
/// through does not matter.
fn is_always_busy(flow: &FlowSpec, from: Time, until: Time, all_read: bool) -> bool {
    let has_more = flow.kind.is_endless() || flow.kind.is_greedy() && flow.kind.is_transfer() && !all_read;
    let busy_until = flow.stop.map_or(until, |stop| stop.min(until));
    let busy = busy_until.saturating_since(flow.start.max(from));
    has_more && busy.as_secs_f64() >= BUSY_SHARE * until.saturating_since(from).as_secs_f64()
}

/// What the viewers of these videos saw together; `None` without any.
fn videos(each: impl Iterator<Item = VideoResult>) -> Option<VideoResult> {
    let each: Vec<VideoResult> = each.collect();
    let chunks = each.iter().map(|video| video.chunks).sum();
    let played = each.iter().map(|video| video.mean_bit_rate_mbps.unwrap_or(0.0) * video.chunks as f64).sum::<f64>();
    let startups: Vec<f64> = each.iter().filter_map(|video| video.startup_s).collect();
    (!each.is_empty()).then(|| VideoResult {
        chunks,
        mean_bit_rate_mbps: (chunks > 0).then(|| played / chunks as f64),
        switches: each.iter().map(|video| video.switches).sum(),
        stalls: each.iter().map(|video| video.stalls).sum(),
        stalled_s: each.iter().map(|video| video.stalled_s).sum(),
        startup_s: mean(&startups),
    })
}

/// Sets the figures that follow from all connections: goodput and RTTs of all, fairness of those that were always busy.
pub fn summarise(result: &mut RunResult, rtt_samples_ms: &[f64]) {
    // A sum of none is -0.
    result.aggregate_goodput_mbps = result.flows.iter().map(|flow| flow.goodput_mbps).fold(0.0, |sum, more| sum + more);
    let busy = result.flows.iter().filter(|flow| flow.always_busy);
    let goodputs: Vec<f64> = busy.map(|flow| flow.goodput_mbps).collect();
    result.fairness_flows = u32::try_from(goodputs.len()).unwrap_or(u32::MAX);
    result.jain_index = jain_index(&goodputs);
    result.starved_flows = starved_flows(&goodputs);
    result.rtt_ms = distribution(rtt_samples_ms);
}
