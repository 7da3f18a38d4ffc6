//! What a result says follows from what a habitat measured, and which connections count for fairness.

#[path = "../../scenario/tests/sample/mod.rs"]
mod sample;

use lasthop_measure::{Counted, Finished, Measurement, RealTime, Seen};
use lasthop_scenario::{Build, HostsKind, InvalidKind, Lateness, Message, RunResult, Scenario};
use lasthop_units::{Bytes, Span, Time};
use sample::statistics;
use std::time::Duration;

/// What a second of 1 Mb/s carries.
const MEGABIT: u64 = 125_000;

/// How long the messages of a flow took, and when those were written that were not read.
#[derive(Clone, Default)]
struct Messages {
    took: Vec<Span>,
    undelivered_since_s: Vec<u64>,
}

/// A run of 20 s with 10 s of warm-up whose one host has these flows, each with what it got in Mb/s and its deliveries.
fn run(flows: &[(&str, f64, Messages)], real_time: Option<RealTime>) -> RunResult {
    let blocks: String = flows.iter().map(|(keys, ..)| format!("[[hosts.flows]]\n{keys}\n")).collect();
    let text = format!("duration_s = 20\nwarmup_s = 10\n[[hosts]]\n{blocks}");
    let scenario = Scenario::from_toml("test.toml", &text, &[]).unwrap_or_else(|error| panic!("{error}"));
    let hosts = scenario.expanded_hosts();
    let mut measurement = Measurement::new(&scenario, &hosts, false);
    for (number, (.., deliveries)) in flows.iter().enumerate() {
        let message = |since| Message { since, size: Bytes::new(1), request: Bytes::ZERO };
        // Those are read a second before the end.
        let read = Time::ZERO + Span::from_secs(19);
        let took = |took: &Span| message(Time::ZERO + (Span::from_secs(19) - *took));
        deliveries.took.iter().for_each(|one| measurement.on_delivered(read, number, took(one)));
        let since = |at: &u64| message(Time::ZERO + Span::from_secs(*at));
        deliveries.undelivered_since_s.iter().for_each(|at| measurement.on_undelivered(number, since(at)));
    }
    let counted = flows.iter().map(|(_, mbps, _)| Counted {
        received: Bytes::new((mbps * 10.0 * MEGABIT as f64) as u64),
        ..Counted::default()
    });
    let finished = Finished {
        build: Build::default(),
        flows: counted.collect(),
        statistics: &statistics(),
        device_drops: 7,
        policies: Vec::new(),
        events: 1,
        notes: Vec::new(),
        real_time,
    };
    measurement.into_outcome(finished).0
}

fn real_time(invalid_reasons: &[(InvalidKind, &str)]) -> RealTime {
    RealTime {
        kernel_release: Some("6.12.0".into()),
        lateness: Lateness { p50: 60.0, p99: 250.0, max: 900.0 },
        machine_turnaround: None,
        invalid_reasons: invalid_reasons.iter().map(|(kind, reason)| (*kind, (*reason).to_owned())).collect(),
        wall: Duration::from_secs(40),
    }
}

fn nothing() -> Messages {
    Messages::default()
}

fn undelivered(since_s: u64) -> Messages {
    Messages { undelivered_since_s: vec![since_s], ..nothing() }
}

#[test]
fn only_who_had_something_to_send_all_the_time_counts_for_fairness() {
    for (keys, deliveries, counts) in [
        ("", nothing(), true),
        ("start_s = 10", nothing(), true),
        // 10 s are measured, from 10 to 20: half a second less is 95 %.
        ("start_s = 10.5", nothing(), true),
        ("start_s = 10.501", nothing(), false),
        ("stop_s = 19.5", nothing(), true),
        ("stop_s = 19.499", nothing(), false),
        ("start_s = 10.3\nstop_s = 19.7", nothing(), false),
        ("kind = \"saturated\"", nothing(), true),
        ("kind = \"on-off\"", nothing(), false),
        ("kind = \"interactive\"", undelivered(1), false),
        ("kind = \"transfers\"\ntransfer_kib = 64", undelivered(1), false),
        // Read to its end, in the warm-up or after it; and never.
        ("transfer_kib = 64", nothing(), false),
        ("transfer_kib = 64", undelivered(0), true),
    ] {
        let result = run(&[(keys, 0.0, deliveries)], None);
        assert_eq!((result.flows[0].always_busy, result.fairness_flows), (counts, u32::from(counts)), "{keys}");
        // Who counts and got nothing is starved.
        assert_eq!((result.starved_flows, result.jain_index), (u32::from(counts), None), "{keys}");
    }
}

#[test]
fn only_tcp_and_quic_have_a_congestion_control() {
    for (keys, control) in [
        ("", Some("cubic")),
        ("kind = \"video\"", Some("cubic")),
        ("kind = \"quic\"\ncongestion_control = \"newreno\"", Some("newreno")),
        ("kind = \"ping\"", None),
        ("kind = \"constant\"", None),
        ("kind = \"saturated\"", None),
    ] {
        let result = run(&[(keys, 0.0, nothing())], None);
        assert_eq!(result.flows[0].congestion_control.as_deref(), control, "{keys}");
    }
}

#[test]
fn the_index_and_the_starved_are_of_those_that_count() {
    let typed = Messages { took: vec![Span::from_millis(30)], ..nothing() };
    let flows = [
        ("", 3.0, nothing()),
        ("", 1.0, nothing()),
        ("transfer_kib = 2000", 0.0, nothing()),
        ("kind = \"interactive\"", 0.001, typed),
    ];
    for real_time in [None, Some(real_time(&[]))] {
        let result = run(&flows, real_time);
        // (3+1)² / (2·(9+1)) = 16/20.
        assert_eq!((result.fairness_flows, result.jain_index, result.starved_flows), (2, Some(0.8), 0));
        assert!((result.aggregate_goodput_mbps - 4.001).abs() < 1e-6, "{}", result.aggregate_goodput_mbps);
        let kinds: Vec<&str> = result.flows.iter().map(|flow| flow.kind.as_str()).collect();
        assert_eq!(kinds, ["bulk", "bulk", "bulk", "interactive"]);
    }
}

#[test]
fn messages_and_transfers_are_told_apart_and_of_each_connection() {
    let messages = Messages { took: vec![Span::from_secs(1)], ..undelivered(5) };
    let flows = [
        ("kind = \"interactive\"", 0.0, messages),
        ("transfer_kib = 64", 0.0, undelivered(12)),
        ("kind = \"transfers\"\ntransfer_kib = 64", 0.0, nothing()),
    ];
    let result = run(&flows, None);
    let messages = result.messages.expect("a connection with messages");
    assert_eq!((messages.delivered, messages.undelivered), (1, 1));
    // 1 s, and 20 - 5.
    assert_eq!(messages.took_ms.map(|took| (took.min, took.max)), Some((1_000.0, 15_000.0)));
    let transfers = result.transfers.expect("connections with transfers");
    assert_eq!((transfers.delivered, transfers.undelivered), (0, 1));
    assert_eq!(transfers.took_ms.map(|took| took.mean), Some(8_000.0)); // 20 - 12 s
    let flow = &result.flows[0];
    assert_eq!((flow.messages, flow.undelivered, flow.message_ms), (1, 1, messages.took_ms));
    assert_eq!((result.flows[2].messages, result.flows[2].message_ms), (0, None));
    let bulk = run(&[("", 1.0, nothing())], None);
    assert_eq!((bulk.messages, bulk.transfers), (None, None));
}

#[test]
fn what_comes_without_a_connection_is_in_the_next_row_of_the_series() {
    let text = "[[hosts]]\n[[hosts.flows]]\nkind = \"transfers\"\ntransfer_kib = 64\nstart_s = 0.5\n";
    let scenario = Scenario::from_toml("test.toml", text, &[]).unwrap_or_else(|error| panic!("{error}"));
    let hosts = scenario.expanded_hosts();
    let mut measurement = Measurement::new(&scenario, &hosts, true);
    // At 1 s a connection is open, at 2 s it has delivered the rest and is closed, at 3 s the next one is open.
    for (second, megabits, is_open) in [(0, 0, false), (1, 1, true), (2, 3, false), (3, 4, true)] {
        let (at, received) = (Time::ZERO + Span::from_secs(second), Bytes::new(megabits * MEGABIT));
        measurement.on_sample(at, 0, received, is_open.then(Seen::default).as_ref());
    }
    let finished = Finished {
        build: Build::default(),
        flows: vec![Counted::default()],
        statistics: &statistics(),
        device_drops: 0,
        policies: Vec::new(),
        events: 1,
        notes: Vec::new(),
        real_time: None,
    };
    let (_, series) = measurement.into_outcome(finished);
    // 1 Mb from the start at 0.5 s, and 3 in 2 s.
    assert_eq!((series.flows.t_s, series.flows.goodput_mbps), (vec![1.0, 3.0], vec![2.0, 1.5]));
}

#[test]
fn real_time_makes_kernel_hosts_and_can_make_a_run_invalid() {
    let simulated = run(&[("", 1.0, nothing())], None);
    assert_eq!((simulated.hosts_kind, simulated.valid, simulated.lateness_us), (HostsKind::Simulated, true, None));
    let kernel = run(&[("", 1.0, nothing())], Some(real_time(&[(InvalidKind::Late, "late")])));
    assert_eq!((kernel.hosts_kind, kernel.valid, kernel.is_only_late()), (HostsKind::Kernel, false, true));
    let both = [(InvalidKind::Late, "late"), (InvalidKind::Failed, "gone")];
    assert!(!run(&[("", 1.0, nothing())], Some(real_time(&both))).is_only_late());
    assert_eq!((kernel.used.kernel_release.as_deref(), kernel.simulated_s_per_wall_s), (Some("6.12.0"), 0.5));
    // Those of the network's queues, and the device's.
    assert_eq!(kernel.access.uplink_drops, 1 + 7);
}
