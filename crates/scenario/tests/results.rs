//! Results come back from their files as they were written.

use network::{
    AirTime, Cause, Drops, NodeId, Place, QueueStatistics, StationStatistics, Statistics, WifiLinkStatistics,
};
use scenario::{
    AccessResult, Build, CaseResult, Comparison, Direction, FlowResult, HostPolicyResult, HostsKind, Lateness,
    PoliciesResult, RunResult, SCHEMA_VERSION, Scenario, Vary,
};
use units::{Rate, Span};

fn scenario() -> Scenario {
    Scenario::from_toml("two.toml", "duration_s = 20\n[[hosts]]\ncount = 2\n", &[]).expect("a scenario")
}

fn flow(id: u32, goodput_mbps: f64) -> FlowResult {
    FlowResult {
        id,
        host: id as u16,
        direction: Direction::Up,
        congestion_control: "cubic".into(),
        policy: "none".into(),
        goodput_mbps,
        rtt_ms: None,
        cwnd_mean: 33.25,
        retransmits: 4,
        timeouts: 1,
        controlled_share: 0.5 * f64::from(id),
        started_s: 0.125,
    }
}

fn run(goodputs: [f64; 2], rtt_samples_ms: &[f64]) -> RunResult {
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
        jain_index: None,
        starved_flows: 0,
        rtt_ms: None,
        utilization: 0.875,
        access: AccessResult::default(),
        flows: vec![flow(0, goodputs[0]), flow(1, goodputs[1])],
        policies: PoliciesResult {
            hosts: vec![HostPolicyResult { host: 1, policy: "none".into(), ..HostPolicyResult::default() }],
            ..PoliciesResult::default()
        },
        kernel_release: Some("6.12.0".into()),
        wall_s: 20.5,
        events: 1_000_000,
        simulated_s_per_wall_s: 0.975,
        lateness_us: Some(Lateness { p50: 60.0, p99: 250.0, max: 900.0 }),
        valid: true,
        invalid_reasons: Vec::new(),
    };
    result.summarise(rtt_samples_ms);
    result
}

fn comparison() -> Comparison {
    let varied = [Vary::parse("hosts.0.policy=none,formula").expect("a vary")];
    let cases = Vary::cases(&varied)
        .iter()
        .map(|case| CaseResult::new(case, vec![run([3.0, 1.0], &[10.0, 30.0]), run([4.0, 4.0], &[20.0])]))
        .collect();
    Comparison::new(&scenario(), HostsKind::Kernel, Build::default(), &varied, cases)
}

#[test]
fn a_result_comes_back_as_it_was_written() {
    let result = run([3.0, 1.0], &[10.0, 30.0]);
    assert_eq!(RunResult::from_json(&result.to_json()).expect("a result"), result);
    Scenario::from_json(&result.scenario).expect("the scenario can be run again");
}

#[test]
fn the_headline_figures_follow_from_the_connections() {
    let result = run([3.0, 1.0], &[10.0, 30.0]);
    // (3+1)² / (2·(9+1)) = 16/20.
    assert_eq!((result.aggregate_goodput_mbps, result.jain_index), (4.0, Some(0.8)));
    assert_eq!(result.rtt_ms.map(|rtt| (rtt.min, rtt.mean, rtt.max)), Some((10.0, 20.0, 30.0)));
    // Connection 0 was never controlled, connection 1 half of the time.
    assert_eq!(result.controlled_share(), 0.25);
}

#[test]
fn the_keys_are_those_of_the_contract() {
    let json: serde_json::Value = serde_json::from_str(&run([1.0, 1.0], &[5.0]).to_json()).expect("JSON");
    for key in [
        "schema_version",
        "scenario",
        "hosts_kind",
        "seed",
        "version",
        "commit",
        "dirty",
        "duration_s",
        "warmup_s",
        "aggregate_goodput_mbps",
        "jain_index",
        "starved_flows",
        "rtt_ms",
        "utilization",
        "access",
        "flows",
        "policies",
        "wall_s",
        "events",
        "simulated_s_per_wall_s",
        "lateness_us",
        "valid",
        "invalid_reasons",
    ] {
        assert!(json.get(key).is_some(), "{key}");
    }
    for key in ["downlink_drops", "downlink_queue_mean", "downlink_queue_p95", "uplink_drops", "collisions"] {
        assert!(json["access"].get(key).is_some(), "access.{key}");
    }
    for key in [
        "id",
        "host",
        "direction",
        "congestion_control",
        "policy",
        "goodput_mbps",
        "rtt_ms",
        "cwnd_mean",
        "retransmits",
        "timeouts",
        "controlled_share",
    ] {
        assert!(json["flows"][0].get(key).is_some(), "flows[0].{key}");
    }
    for key in ["min", "mean", "p50", "p95", "p99", "max"] {
        assert!(json["rtt_ms"].get(key).is_some(), "rtt_ms.{key}");
    }
    assert_eq!((json["hosts_kind"].as_str(), json["flows"][0]["direction"].as_str()), (Some("kernel"), Some("up")));
}

#[test]
fn a_run_in_which_nothing_arrived_is_still_a_result() {
    let result = run([0.0, 0.0], &[]);
    assert_eq!((result.jain_index, result.starved_flows, result.rtt_ms), (None, 2, None));
    assert_eq!(RunResult::from_json(&result.to_json()).expect("a result"), result);
}

#[test]
fn a_result_of_another_version_is_refused_by_its_number() {
    let newer = run([1.0, 1.0], &[]).to_json().replace("\"schema_version\": 1", "\"schema_version\": 2");
    let error = RunResult::from_json(&newer).expect_err("version 2").to_string();
    assert_eq!(error, "schema_version 2 is not known here; accepted: 1");
}

#[test]
fn a_damaged_result_names_the_key() {
    let damaged = run([1.0, 1.0], &[]).to_json().replace("\"retransmits\": 4", "\"retransmits\": \"4\"");
    let error = RunResult::from_json(&damaged).expect_err("text").to_string();
    assert!(error.starts_with("not a result: flows[0].retransmits: "), "{error}");
    assert!(RunResult::from_json("{}").expect_err("empty").to_string().contains("schema_version"));
}

#[test]
fn a_comparison_comes_back_with_the_spread_over_its_seeds() {
    let comparison = comparison();
    assert_eq!(Comparison::from_json(&comparison.to_json()).expect("a comparison"), comparison);
    let summary = &comparison.cases[1].summary;
    let goodput = summary.aggregate_goodput_mbps;
    assert_eq!((goodput.mean, goodput.min, goodput.max), (6.0, 4.0, 8.0));
    // Means of 10, 30 and of 20 are both 20.
    assert_eq!(summary.rtt_mean_ms.map(|rtt| (rtt.min, rtt.max)), Some((20.0, 20.0)));
    assert_eq!((comparison.cases[1].label.as_str(), comparison.varied[0].values.len()), ("policy=formula", 2));
    assert!(comparison.valid);
}

#[test]
fn drops_are_told_by_where_and_why() {
    let host = Place::Host(NodeId(0));
    let drops = [
        (host, Cause::QueueFull, 1),
        (host, Cause::RetryLimit, 2),
        (Place::AccessPoint, Cause::QueueFull, 4),
        (Place::AccessPoint, Cause::RetryLimit, 8),
        (Place::AccessPoint, Cause::FrameError, 16),
        (Place::PathUp, Cause::RandomLoss, 32),
        (Place::PathDown, Cause::QueueFull, 64),
    ];
    let up = WifiLinkStatistics { mean_phy_rate: Rate::from_mbps(48.0), retries: 5, ..WifiLinkStatistics::default() };
    let statistics = Statistics {
        elapsed: Span::from_secs(10),
        events: 1,
        air: AirTime { idle: Span::from_secs(2), success: Span::from_secs(8), ..AirTime::default() },
        utilization: 0.8,
        collisions: 7,
        retries: 9,
        transmissions: 100,
        broadcasts: 0,
        drops: drops.map(|(place, cause, count)| Drops { place, cause, count }).to_vec(),
        queues: vec![QueueStatistics {
            place: Place::AccessPoint,
            mean_packets: 40.5,
            p95_packets: 99,
            max_packets: 100,
        }],
        stations: vec![StationStatistics { node: NodeId(0), up, down: WifiLinkStatistics::default() }],
    };
    let access = AccessResult::of(&statistics);
    assert_eq!((access.uplink_drops, access.downlink_drops, access.retry_drops), (1, 4, 10));
    assert_eq!((access.path_drops, access.broadcast_losses), (96, 16));
    assert_eq!((access.downlink_queue_mean, access.downlink_queue_p95, access.downlink_queue_max), (40.5, 99.0, 100));
    assert_eq!((access.air_shares["idle"], access.air_shares["success"]), (0.2, 0.8));
    assert_eq!((access.stations[0].up_phy_rate_mbps, access.stations[0].up_retries), (48.0, 5));
}
