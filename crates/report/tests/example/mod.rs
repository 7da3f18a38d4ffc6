//! Made-up runs that look like real ones: every host has a saw-tooth, a queue and now and then a timeout. Nothing is
//! measured here; it is there to draw figures of and to fill tables.
#![allow(dead_code, reason = "each test takes what it needs")]

use lasthop_measure::{distribution, mean};
use lasthop_scenario::{
    AccessResult, Build, Case, Clock, Comparison, FlowResult, FlowSample, FlowSpec, HostPolicyResult, HostSpec,
    HostsKind, Lateness, PoliciesResult, QueueSample, RunResult, SCHEMA_VERSION, Scenario, Series, TransferSample,
    TransferSeries, UsedKernel, Vary, place_name,
};

const TEN_UPLOADS: &str = "\
name = \"Ten stations upload through one 802.11g access point\"
duration_s = 40
[path]
rtt_ms = 256
[[hosts]]
count = 10
send_buffer_kib = 1024
bound_segments = 48
[[hosts.flows]]
start_s = [0.0, 2.0]
";

/// Numbers in 0..1, the same each time.
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// One connection on its way through the run.
struct Flow {
    spec: FlowSpec,
    weight: f64,
    cwnd: f64,
    ssthresh: Option<f64>,
    state: u8,
    state_until_s: f64,
    srtt_ms: f64,
    retransmits: u64,
    timeouts: u64,
    received_mbit: f64,
    cwnds: Vec<f64>,
    rtts: Vec<f64>,
}

pub(crate) fn scenario(overrides: &[&str]) -> Scenario {
    let overrides: Vec<_> =
        overrides.iter().map(|text| lasthop_scenario::Override::parse(text).expect("an override")).collect();
    Scenario::from_toml("ten-uploads.toml", TEN_UPLOADS, &overrides).expect("a scenario")
}

/// A run of this scenario, as it might have been.
pub(crate) fn run(scenario: &Scenario) -> (RunResult, Series) {
    let hosts = scenario.expanded_hosts();
    let mut draws = Draws(0x9E37_79B9_7F4A_7C15 ^ scenario.seed);
    let mut series = Series::default();
    let (duration_s, warmup_s) = (scenario.duration.as_secs_f64(), scenario.warmup.as_secs_f64());
    let step_s = scenario.sample.as_secs_f64();
    let base_ms = scenario.to_json()["path"]["rtt_ms"].as_f64().expect("a path");
    let bound = |host: &HostSpec| match host.kind.policy.policy.as_str() {
        "fixed" => host.kind.policy.bound_segments,
        "formula" => Some((1_000 / hosts.len()).clamp(4, 300) as u32),
        _ => None,
    };
    let mut flows: Vec<Flow> =
        hosts.iter().flat_map(|host| &host.flows).map(|spec| new_flow(spec, &mut draws, hosts.len())).collect();
    let mut queue = 0.0_f64;
    for step in 0..(duration_s / step_s) as usize {
        let t_s = step as f64 * step_s;
        let running: f64 = flows.iter().filter(|flow| flow.spec.start.as_secs_f64() <= t_s).map(Flow::demand).sum();
        for flow in &mut flows {
            if flow.spec.start.as_secs_f64() > t_s {
                continue;
            }
            let host = &hosts[usize::from(flow.spec.host)];
            let limit = bound(host).filter(|_| t_s > 3.0);
            let goodput_mbps = flow.step(t_s, step_s, (base_ms, running), limit, &mut draws);
            if t_s >= warmup_s {
                flow.received_mbit += goodput_mbps * step_s;
                flow.cwnds.push(flow.cwnd);
                flow.rtts.push(flow.srtt_ms);
            }
            series.flows.push(FlowSample {
                t_s,
                flow: flow.spec.id,
                host: flow.spec.host,
                cwnd_segments: flow.cwnd as u32,
                ssthresh_segments: flow.ssthresh.map(|ssthresh| ssthresh as u32),
                srtt_ms: (t_s > flow.spec.start.as_secs_f64() + base_ms / 1e3).then_some(flow.srtt_ms),
                min_rtt_ms: (t_s > flow.spec.start.as_secs_f64() + base_ms / 1e3).then_some(base_ms + 2.0),
                state: flow.state,
                in_flight_segments: flow.cwnd as u32,
                unsent_bytes: 65_536,
                retransmits: flow.retransmits,
                goodput_mbps,
                bound_min: limit.map(|_| 1),
                bound_max: limit,
                pacing_mbps: None,
                bound_pacing_mbps: None,
                reported_bandwidth_mbps: None,
                reported_error_rate: None,
                cwnd_max_segments: None,
                ignored_losses: None,
            });
        }
        let towards = if running > 600.0 { 100.0 } else { running / 8.0 };
        queue = (queue + (towards - queue) * 0.3 + (draws.next() - 0.5) * 30.0).clamp(0.0, 100.0);
        series.queues.push(QueueSample {
            t_s,
            place: place_name(lasthop_network::QueueId::AccessPoint),
            packets: queue as u32,
        });
        series.queues.push(QueueSample { t_s, place: "host_0".into(), packets: flows[0].cwnd as u32 });
    }
    let transfer = |start_s, completion_s: Option<f64>| TransferSample {
        flow: 0,
        host: 0,
        start_s,
        bytes: 65_536,
        completion_s,
        slowdown: completion_s.map(|completion_s| completion_s / 0.5),
    };
    series.transfers =
        TransferSeries::of([transfer(11.5, Some(0.75)), transfer(12.5, Some(2.0)), transfer(13.5, None)]);
    (result(scenario, &hosts, &flows), series)
}

fn new_flow(spec: &FlowSpec, draws: &mut Draws, hosts: usize) -> Flow {
    Flow {
        spec: spec.clone(),
        weight: if hosts > 2 && spec.host == 6 { 0.02 } else { 0.35 + 1.3 * draws.next() },
        cwnd: 10.0,
        ssthresh: None,
        state: 0,
        state_until_s: 0.0,
        srtt_ms: 0.0,
        retransmits: 0,
        timeouts: 0,
        received_mbit: 0.0,
        cwnds: Vec::new(),
        rtts: Vec::new(),
    }
}

impl Flow {
    /// What it has in flight at the most.
    fn demand(&self) -> f64 {
        self.cwnd
    }

    /// One sampling interval; what the receiver got in it, in Mb/s.
    fn step(&mut self, t_s: f64, step_s: f64, path: (f64, f64), limit: Option<u32>, draws: &mut Draws) -> f64 {
        let (base_ms, running) = path;
        // 21 Mb/s are some 1750 segments/s: what is in flight beyond the path's share of it waits.
        let room = 1_750.0 * base_ms / 1e3;
        let own = if limit.is_some() { 1.0 } else { 0.5 + 0.6 * self.weight };
        let target_ms = base_ms * (running / room).max(1.02).powf(2.5) * own * (1.0 + 0.4 * (draws.next() - 0.5));
        self.srtt_ms = if self.srtt_ms == 0.0 { target_ms } else { self.srtt_ms + (target_ms - self.srtt_ms) / 8.0 };
        let rounds = step_s * 1e3 / self.srtt_ms;
        let most = limit.map_or(690.0, f64::from);
        let open = self.state == 0;
        let grown = if self.ssthresh.is_none() { self.cwnd * 2_f64.powf(rounds) } else { self.cwnd + 6.0 * rounds };
        self.cwnd = if open { grown.min(most) } else { self.cwnd.min(most) };
        if !open && t_s >= self.state_until_s {
            self.state = 0;
        }
        let pressure = ((running / room - 1.2) * 0.02).clamp(0.0, 0.05) / self.weight.max(0.2);
        if self.state == 0 && draws.next() < pressure {
            self.lose(t_s, draws);
        }
        let fair_mbps = 21.0 * self.cwnd * self.weight / running.max(room * self.weight);
        let stalled = if self.state == 4 { 0.1 } else { 1.0 };
        let full = if limit.is_some() { fair_mbps / self.weight.max(0.8) } else { fair_mbps };
        full * stalled * (0.85 + 0.3 * draws.next())
    }

    fn lose(&mut self, t_s: f64, draws: &mut Draws) {
        self.ssthresh = Some((self.cwnd * 0.7).max(2.0));
        self.retransmits += 1 + (self.cwnd * 0.2 * draws.next()) as u64;
        if draws.next() < 0.2 {
            self.state = 4;
            self.timeouts += 1;
            self.cwnd = 1.0;
            self.ssthresh = Some(20.0);
        } else {
            self.state = if draws.next() < 0.3 { 1 } else { 3 };
            self.cwnd *= 0.7;
        }
        self.state_until_s = t_s + self.srtt_ms / 1e3 * (0.5 + draws.next());
    }
}

fn result(scenario: &Scenario, hosts: &[HostSpec], flows: &[Flow]) -> RunResult {
    let measured_s = scenario.duration.as_secs_f64() - scenario.warmup.as_secs_f64();
    let policy = |flow: &Flow| hosts[usize::from(flow.spec.host)].kind.policy.policy.as_str();
    let flow_result = |flow: &Flow| FlowResult {
        id: flow.spec.id,
        host: flow.spec.host,
        direction: flow.spec.direction,
        kind: flow.spec.kind.as_str().to_owned(),
        congestion_control: Some(hosts[usize::from(flow.spec.host)].kind.congestion_control.clone()),
        policy: policy(flow).to_owned(),
        always_busy: true,
        goodput_mbps: flow.received_mbit / measured_s,
        rtt_ms: distribution(&flow.rtts),
        rtt_per_ack_ms: None,
        cwnd_mean: mean(&flow.cwnds),
        state_shares: None,
        retransmits: flow.retransmits,
        timeouts: Some(flow.timeouts),
        delivered_ce: 0,
        controlled_share: if policy(flow) == "none" { 0.0 } else { 1.0 },
        started_s: flow.spec.start.as_secs_f64(),
        last_link: None,
        messages: 0,
        undelivered: 0,
        message_ms: None,
        datagrams: None,
        video: None,
    };
    let losses: u64 = flows.iter().map(|flow| flow.retransmits).sum();
    let controlled = flows.iter().any(|flow| policy(flow) != "none");
    let mut result = RunResult {
        schema_version: SCHEMA_VERSION,
        scenario: scenario.to_json(),
        hosts_kind: HostsKind::Kernel,
        seed: scenario.seed,
        build: Build { version: "0.1.0".into(), commit: Some("7b32f07a1c2d".into()), dirty: false },
        duration_s: scenario.duration.as_secs_f64(),
        warmup_s: scenario.warmup.as_secs_f64(),
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
        utilization: 0.93,
        cells: Vec::new(),
        nodes: Vec::new(),
        roams: Vec::new(),
        links: Vec::new(),
        access: AccessResult { downlink_drops: losses * 3, downlink_queue_p95: Some(99.0), ..AccessResult::default() },
        flows: flows.iter().map(flow_result).collect(),
        convergence: Vec::new(),
        policies: PoliciesResult {
            beacons_sent: 133 * hosts.len() as u64,
            control_enabled_at_s: controlled.then_some(3.0),
            hosts: vec![HostPolicyResult::default()],
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
        wall_s: 40.3,
        events: 412_345,
        simulated_s_per_wall_s: 0.99,
        lateness_us: Some(Lateness { p50: 58.0, p99: 240.0, max: 1_900.0 }),
        machine_turnaround_us: Some(Lateness { p50: 75.0, p99: 310.0, max: 2_100.0 }),
        valid: true,
        invalid_reasons: Vec::new(),
        invalid_kinds: Default::default(),
        notes: Vec::new(),
    };
    let rtts: Vec<f64> = flows.iter().flat_map(|flow| flow.rtts.iter().copied()).collect();
    lasthop_measure::summarise(&mut result, &rtts);
    result
}

pub(crate) type Runs = Vec<(String, RunResult, Series)>;

/// A comparison over what is varied, with so many seeds.
pub(crate) fn comparison(vary: &[&str], seeds: u64) -> (Comparison, Runs) {
    let varied: Vec<Vary> = vary.iter().map(|text| Vary::parse(text).expect("a vary")).collect();
    of_cases(&Vary::cases(&varied), &varied, seeds)
}

/// The demo's cases.
pub(crate) fn demo() -> (Comparison, Runs) {
    let case = |label: &str, settings: &[&str]| {
        let overrides: Vec<_> =
            settings.iter().map(|text| lasthop_scenario::Override::parse(text).expect("an override")).collect();
        let settings = overrides.iter().map(|set| (set.key(), set.raw().to_owned())).collect();
        Case { label: label.into(), settings, overrides }
    };
    let cases = [
        case("no agent", &["hosts.0.policy=none"]),
        case("agent, formula", &["hosts.0.policy=formula"]),
        case("agent, fixed bound 48", &["hosts.0.policy=fixed", "hosts.0.bound_segments=48"]),
        case("no agent, bbr", &["hosts.0.policy=none", "hosts.0.congestion_control=bbr"]),
    ];
    of_cases(&cases, &[], 1)
}

fn of_cases(cases: &[Case], varied: &[Vary], seeds: u64) -> (Comparison, Runs) {
    let mut runs: Runs = Vec::new();
    for (index, case) in cases.iter().enumerate() {
        for seed in 1..=seeds {
            let mut settings: Vec<String> = case.overrides.iter().map(ToString::to_string).collect();
            settings.push(format!("seed={}", seed + 10 * index as u64));
            let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
            let (mut result, series) = run(&scenario(&settings));
            result.seed = seed;
            runs.push((case.label.clone(), result, series));
        }
    }
    let results = cases.iter().map(|case| {
        let of_case = runs.iter().filter(|(label, ..)| *label == case.label);
        lasthop_measure::case(case, of_case.map(|(_, result, _)| result.clone()).collect())
    });
    let build = Build { version: "0.1.0".into(), commit: Some("7b32f07a1c2d".into()), dirty: false };
    (lasthop_measure::comparison(&scenario(&[]), HostsKind::Kernel, build, varied, results.collect()), runs)
}
