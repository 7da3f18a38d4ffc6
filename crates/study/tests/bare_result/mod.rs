//! A result for tests that give it numbers of their own.

use lasthop_scenario::{
    AccessResult, Build, HostsKind, PoliciesResult, RunResult, SCHEMA_VERSION, Scenario, UsedKernel,
};

/// A run without connections, whose numbers are 0.
pub(crate) fn bare_result(scenario: &Scenario) -> RunResult {
    RunResult {
        schema_version: SCHEMA_VERSION,
        scenario: scenario.to_json(),
        hosts_kind: HostsKind::Simulated,
        seed: scenario.seed,
        build: Build::default(),
        duration_s: scenario.duration.as_secs_f64(),
        warmup_s: 0.0,
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
        utilization: 0.0,
        access: AccessResult::default(),
        cells: Vec::new(),
        nodes: Vec::new(),
        roams: Vec::new(),
        links: Vec::new(),
        flows: Vec::new(),
        convergence: Vec::new(),
        policies: PoliciesResult::default(),
        used: UsedKernel::default(),
        wall_s: 0.0,
        events: 0,
        simulated_s_per_wall_s: 0.0,
        lateness_us: None,
        machine_turnaround_us: None,
        valid: true,
        invalid_reasons: Vec::new(),
        invalid_kinds: Default::default(),
        notes: Vec::new(),
    }
}
