//! A result of two hosts and a comparison of two cases, with everything in them that a result can have.
#![allow(dead_code, reason = "each test takes what it needs")]

use lasthop_network::{
    AirTime, Cause, Destination, Drops, Network, NodeId, Packet, QueueId, QueueStatistics, StationStatistics,
    Statistics, WifiLinkStatistics,
};
use lasthop_scenario::{
    Build, Clock, Comparison, Direction, FlowResult, HostPolicyResult, HostsKind, LastLinkResult, Lateness, LinkResult,
    PoliciesResult, RunResult, SCHEMA_VERSION, Scenario, UsedKernel, Vary,
};
use lasthop_units::{Bytes, Ecn, Rate, Span, Time};

fn scenario() -> Scenario {
    Scenario::from_toml("two.toml", "duration_s = 20\n[[hosts]]\ncount = 2\n", &[]).expect("a scenario")
}

fn flow(id: u32, goodput_mbps: f64) -> FlowResult {
    FlowResult {
        id,
        host: id as u16,
        direction: Direction::Up,
        kind: "bulk".into(),
        congestion_control: Some("cubic".into()),
        policy: "none".into(),
        always_busy: true,
        goodput_mbps,
        rtt_ms: None,
        rtt_per_ack_ms: None,
        cwnd_mean: Some(33.25),
        state_shares: None,
        retransmits: 4,
        timeouts: Some(1),
        delivered_ce: 4,
        controlled_share: 0.5 * f64::from(id),
        started_s: 0.125,
        last_link: Some(LastLinkResult { ignored_losses: 3, heeded_losses: 1, initial_segments: Some(87) }),
        messages: 0,
        undelivered: 0,
        message_ms: None,
        datagrams: None,
        video: None,
    }
}

pub(crate) fn run(goodputs: [f64; 2], rtt_samples_ms: &[f64]) -> RunResult {
    let scenario = scenario();
    let mut result = RunResult {
        schema_version: SCHEMA_VERSION,
        scenario: scenario.to_json(),
        hosts_kind: HostsKind::Kernel,
        seed: scenario.seed,
        build: Build { version: "0.1.0".into(), commit: Some("7b32f07".into()), dirty: true },
        duration_s: 20.0,
        warmup_s: 10.0,
        aggregate_goodput_mbps: 0.0,
        fairness_flows: 0,
        jain_index: None,
        starved_flows: 0,
        rtt_ms: None,
        rtt_per_ack_ms: None,
        messages: None,
        transfers: None,
        slowdowns: Vec::new(),
        pings: None,
        datagrams: None,
        videos: None,
        utilization: 0.875,
        access: lasthop_measure::access(&statistics(), true),
        cells: Vec::new(),
        nodes: Vec::new(),
        roams: Vec::new(),
        links: links(),
        flows: vec![flow(0, goodputs[0]), flow(1, goodputs[1])],
        convergence: Vec::new(),
        policies: PoliciesResult {
            hosts: vec![HostPolicyResult { host: 1, policy: "none".into(), ..HostPolicyResult::default() }],
            ..PoliciesResult::default()
        },
        used: UsedKernel {
            kernel_release: Some("6.12.0".into()),
            clock: Some(Clock::Virtual),
            kernel: Some("debian-6.12".into()),
            kernel_digest: Some("0123456789abcdef".into()),
            emulator: Some("QEMU emulator version 7.2.22".into()),
            wifi: None,
            queue: None,
        },
        wall_s: 20.5,
        events: 1_000_000,
        simulated_s_per_wall_s: 0.975,
        lateness_us: Some(Lateness { p50: 60.0, p99: 250.0, max: 900.0 }),
        machine_turnaround_us: Some(Lateness { p50: 70.0, p99: 300.0, max: 950.0 }),
        valid: true,
        invalid_reasons: Vec::new(),
        invalid_kinds: Default::default(),
        notes: Vec::new(),
    };
    lasthop_measure::summarise(&mut result, rtt_samples_ms);
    result
}

/// What the links of a chain carried in a second in which one packet of 1250 bytes crossed it.
pub(crate) fn links() -> Vec<LinkResult> {
    let text = "\
[[links]]
between = [\"A\", \"R\"]
[[links]]
between = [\"B\", \"R\"]
rate_mbps = 10
back_loss = 1.0
[[hosts]]
node = \"A\"
[[hosts.flows]]
to = \"B\"
";
    let scenario = Scenario::from_toml("chain.toml", text, &[]).expect("a scenario");
    let mut network = Network::new(scenario.network(), 1).expect("a network");
    let to = Destination::Node(scenario.expanded_hosts()[0].flows[0].server);
    let packet =
        Packet { from: NodeId(0), to, size: Bytes::new(1_250), flow: 0, dscp: 0, ecn: Ecn::NotEct, id: 0, payload: () };
    network.offer(Time::ZERO, packet).expect("the queue is empty");
    let end = Time::ZERO + Span::from_secs(1);
    network.advance(end, &mut Vec::new());
    lasthop_measure::links(&scenario, &network.statistics(end))
}

pub(crate) fn comparison() -> Comparison {
    let varied = [Vary::parse("hosts.0.policy=none,formula").expect("a vary")];
    let cases = Vary::cases(&varied)
        .iter()
        .map(|case| lasthop_measure::case(case, vec![run([3.0, 1.0], &[10.0, 30.0]), run([4.0, 4.0], &[20.0])]))
        .collect();
    lasthop_measure::comparison(&scenario(), HostsKind::Kernel, Build::default(), &varied, cases)
}

/// What a network might have counted.
pub(crate) fn statistics() -> Statistics {
    let host = QueueId::Host(NodeId(0));
    let drops = [
        (host, Cause::QueueFull, 1),
        (host, Cause::RetryLimit, 2),
        (QueueId::AccessPoint, Cause::QueueFull, 4),
        (QueueId::AccessPoint, Cause::RetryLimit, 8),
        (QueueId::AccessPoint, Cause::FrameError, 16),
        (QueueId::PathUp, Cause::RandomLoss, 32),
        (QueueId::PathDown, Cause::QueueFull, 64),
    ];
    let up = WifiLinkStatistics { mean_phy_rate: Rate::from_mbps(48.0), retries: 5, ..WifiLinkStatistics::default() };
    Statistics {
        elapsed: Span::from_secs(10),
        events: 1,
        air: AirTime { idle: Span::from_secs(2), success: Span::from_secs(8), ..AirTime::default() },
        utilization: 0.8,
        collisions: 7,
        retries: 9,
        transmissions: 100,
        broadcasts: 0,
        to_all: Span::from_millis(250),
        drops: drops.map(|(place, cause, count)| Drops { place, cause, count }).to_vec(),
        queues: vec![QueueStatistics {
            place: QueueId::AccessPoint,
            mean_packets: 40.5,
            p95_packets: 99,
            max_packets: 100,
            marks: 7,
        }],
        cells: Vec::new(),
        links: Vec::new(),
        stations: vec![StationStatistics { node: NodeId(0), up, down: WifiLinkStatistics::default() }],
    }
}
