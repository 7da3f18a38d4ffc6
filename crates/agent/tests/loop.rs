//! The agent's loop, on the loopback interface and a TCP that does what the test says: no root needed.
#![allow(missing_docs)]

use crate::common::{Running, fake, sample, wait_for};
use lasthop_agent::Mode;
use lasthop_agent::host_tcp::{Left, SocketSample, StateChange};
use lasthop_connection::{CongestionState, TcpState};
use lasthop_laws::bound::Bound;
use lasthop_status::record::Event;
use lasthop_units::{Span, Time};
use std::time::Duration;

/// Without beacons: the tests run side by side on the same loopback interface.
fn config(interface: &str, policy: &str) -> lasthop_agent::Config {
    let mut config = crate::common::config(interface, policy);
    (config.beacon.ipv4, config.beacon.ipv6) = (false, false);
    config
}

#[test]
fn bounds_are_applied_with_their_lease_and_everything_is_undone_at_the_end() {
    let fake = fake(vec![sample(7, 100, 100), sample(8, 100, 100)]);
    let agent = Running::start(config("lo", "fixed"), fake.clone());
    let tick = agent.wait_for_tick("a tick", |_| true);
    let (summary, events) = agent.stop();
    let summary = summary.expect("a clean stop");

    let fake = fake.lock().expect("the agent is gone");
    assert_eq!((fake.adoptions, fake.releases, fake.dropped), (1, 1, 1));
    let applied = &fake.bounds[0];
    // 64 segments of the host over two busy connections, and for one more: 64 / 3 = 21
    let half = Some(Bound { min_segments: 1, max_segments: 32, ..Bound::default() });
    assert_eq!(applied.flows, [(7, half), (8, half)]);
    assert_eq!(applied.new_flows, Some(Bound { min_segments: 1, max_segments: 21, ..Bound::default() }));
    assert_eq!(applied.lease, Span::from_millis(1500));
    assert_eq!(summary.bounds_changed, 2);
    assert_eq!(summary.flows_enabled, 2);
    assert_eq!(summary.sockets_restored, 1);
    assert!(summary.max_rss_kib > 0);

    assert_eq!(tick.flows[0].bound, half);
    assert!(tick.flows[0].bound_until_ns.expect("it has a lease") >= tick.t_ns + 1_500_000_000);
    assert!(tick.flows[0].enabled && tick.flows[0].busy);
    assert_eq!(tick.flows[0].reason, "the host's 64 segments over 2 connections");
    assert!(matches!(&events[0], Event::Ready(ready) if ready.interface == "lo" && ready.mode == Mode::Control));
    let Some(Event::Stopped(recorded)) = events.last() else { panic!("the last line says that it has stopped") };
    // JSON keeps a number to the last digit but one.
    assert_eq!(lasthop_agent::ExitSummary { cpu_s: summary.cpu_s, ..recorded.clone() }, summary);
}

#[test]
fn observe_and_advise_change_nothing() {
    for mode in [Mode::Observe, Mode::Advise] {
        let fake = fake(vec![sample(7, 100, 100)]);
        let agent = Running::start(lasthop_agent::Config { mode, ..config("lo", "fixed") }, fake.clone());
        let tick = agent.wait_for_tick("a tick", |_| true);
        agent.stop().0.expect("a clean stop");
        let fake = fake.lock().expect("the agent is gone");
        assert_eq!(fake.loaded_for, [("lo".to_owned(), mode)]);
        assert_eq!((fake.adoptions, fake.bounds.len()), (0, 0));
        assert_eq!(tick.flows[0].bound, None);
        assert_eq!(tick.flows[0].advised, (mode == Mode::Advise).then(|| Bound::at_most(64)));
    }
}

#[test]
fn with_the_policy_none_nothing_in_the_kernel_is_touched() {
    let fake = fake(vec![sample(7, 9000, 100)]);
    let agent = Running::start(config("lo", "none"), fake.clone());
    agent.wait_for_tick("a tick", |_| true);
    agent.stop().0.expect("a clean stop");
    let fake = fake.lock().expect("the agent is gone");
    assert_eq!(fake.loaded_for, [("lo".to_owned(), Mode::Observe)]);
    assert_eq!((fake.adoptions, fake.bounds.len()), (0, 0));
}

#[test]
fn the_formula_enables_cuts_and_shares() {
    let fake = fake(vec![sample(7, 100, 100)]);
    let agent = Running::start(config("lo", "formula"), fake.clone());
    let tick = agent.wait_for_tick("a tick", |_| true);
    assert_eq!((tick.flows[0].bound, tick.flows[0].enabled), (None, false));
    fake.lock().expect("no panic").samples[0].tcp.srtt = Some(Span::from_millis(700));
    let tick = agent.wait_for_tick("the cut", |tick| tick.flows[0].enabled);
    assert_eq!(tick.flows[0].bound, Some(Bound::at_most(1)));
    fake.lock().expect("no panic").samples[0].tcp.srtt = Some(Span::from_millis(120));
    // 19e6 · 0.12 / 12000 = 190
    let tick = agent.wait_for_tick("the share", |tick| tick.flows[0].bound != Some(Bound::at_most(1)));
    assert_eq!(tick.flows[0].bound, Some(Bound::at_most(190)));
    let summary = agent.stop().0.expect("a clean stop");
    assert_eq!((summary.flows_enabled, summary.enabled.len(), summary.enabled[0].cookie), (1, 1, 7));
}

#[test]
fn what_our_policy_makes_of_the_host_is_in_the_record() {
    let excess = |tick: &lasthop_status::record::Tick| tick.policy_state.as_ref().and_then(|seen| seen.excess_us);
    let host = fake(vec![sample(7, 300, 20)]);
    let agent = Running::start(config("lo", "lasthop"), host.clone());
    let tick = agent.wait_for_tick("its round trip", |tick| excess(tick) == Some(280_000));
    let seen = tick.policy_state.expect("it has a queue");
    assert_eq!(seen.common_rate_mbps, None);
    assert_eq!(seen.free, tick.flows[0].reason.starts_with("free for a while"));
    host.lock().expect("no panic").samples.clear();
    agent.wait_for_tick("nothing to be seen", |tick| tick.policy_state.is_some() && excess(tick).is_none());
    agent.stop().0.expect("a clean stop");
    let (_, events) = {
        let agent = Running::start(config("lo", "formula"), fake(vec![sample(7, 300, 20)]));
        agent.wait_for_tick("a tick", |_| true);
        agent.stop()
    };
    assert!(events.iter().all(|event| !matches!(event, Event::Tick(tick) if tick.policy_state.is_some())));
}

#[test]
fn a_connection_stays_under_control_when_its_rtt_falls() {
    let fake = fake(vec![sample(7, 700, 100)]);
    let agent = Running::start(config("lo", "formula"), fake.clone());
    let tick = agent.wait_for_tick("the cut", |_| true);
    assert_eq!((tick.flows.len(), tick.flows[0].bound), (1, Some(Bound::at_most(1))));
    for sample in &mut fake.lock().expect("no panic").samples {
        sample.tcp.srtt = Some(Span::from_millis(120));
    }
    // 19e6 · 0.12 / 12000 = 190
    let tick = agent.wait_for_tick("the share", |tick| tick.flows[0].bound != Some(Bound::at_most(1)));
    assert_eq!((tick.flows.len(), tick.flows[0].bound), (1, Some(Bound::at_most(190))));
    agent.stop().0.expect("a clean stop");
}

#[test]
fn connections_of_another_control_are_not_bounded_and_those_that_are_gone_are_forgotten() {
    let alien = SocketSample {
        controlled: false,
        left: Some(Left::Chosen),
        congestion_control: "bbr".into(),
        ..sample(8, 100, 100)
    };
    let fake = fake(vec![sample(7, 100, 100), alien]);
    let agent = Running::start(config("lo", "fixed"), fake.clone());
    agent.wait_for_tick("both", |tick| tick.flows.len() == 2);
    fake.lock().expect("no panic").samples.remove(0);
    let tick = agent.wait_for_tick("one", |tick| tick.flows.len() == 1);
    let chosen = "its application, or a BPF program, has chosen bbr";
    assert_eq!(tick.flows[0].left.as_deref(), Some("chosen"));
    assert_eq!(tick.flows[0].reason, format!("escapes control: {chosen}"));
    let status = wait_for("a status", || Some(agent.status()).filter(|status| status.connections == 1));
    assert_eq!((status.control_since_s, status.bounded), (None, 0));
    let why = format!("no connection that is sending is under control; the first one escapes control: {chosen}");
    assert_eq!(status.reason, Some(why));
    let said = status.to_string();
    assert!(said.contains("\n  control  off: no connection"), "{said}");
    assert!(said.ends_with(&format!("\n  escaped  1 connection, 1 of them sending: {chosen}")), "{said}");
    agent.stop().0.expect("a clean stop");
    let fake = fake.lock().expect("the agent is gone");
    // The host's 64 segments are not split over one that would not obey.
    assert_eq!(fake.bounds[0].flows, [(7, Some(Bound::at_most(64)))]);
    let taken_away = fake.bounds.iter().filter(|applied| applied.flows == [(7, None)]).count();
    assert_eq!(taken_away, 1);
}

#[test]
fn what_is_received_counts_as_bounded_only_where_it_can_be() {
    let of_a_container = SocketSample { in_container: true, ..sample(8, 100, 100) };
    let fake = fake(vec![sample(7, 100, 100), of_a_container]);
    let mut config = config("lo", "fixed");
    config.policy.bound_receive_segments = Some(30);
    let agent = Running::start(config, fake.clone());
    let both = Some(Bound { max_receive_bytes: 30 * 1448, ..Bound::at_most(32) });
    let bounds = |tick: &lasthop_status::record::Tick| tick.flows.iter().map(|flow| flow.bound).collect::<Vec<_>>();
    agent.wait_for_tick("not the container's", |tick| bounds(tick) == [both, Some(Bound::at_most(32))]);
    fake.lock().expect("no panic").receives_freely = true;
    agent.wait_for_tick("an old kernel", |tick| bounds(tick) == [Some(Bound::at_most(32)); 2]);
    agent.stop().0.expect("a clean stop");
}

#[test]
fn a_connection_that_takes_another_control_loses_its_bound() {
    let fake = fake(vec![sample(7, 100, 100)]);
    let agent = Running::start(config("lo", "fixed"), fake.clone());
    let tick = agent.wait_for_tick("a bound", |tick| tick.flows[0].controlled);
    assert_eq!(tick.flows[0].bound, Some(Bound::at_most(64)));
    fake.lock().expect("no panic").samples[0].controlled = false;
    let tick = agent.wait_for_tick("another control", |tick| !tick.flows[0].controlled);
    assert_eq!((tick.flows[0].bound, tick.flows[0].bound_until_ns), (None, None));
    agent.stop().0.expect("a clean stop");
    let fake = fake.lock().expect("the agent is gone");
    let taken_away = fake.bounds.iter().filter(|applied| applied.flows == [(7, None)]).count();
    assert_eq!(taken_away, 1);
}

#[test]
fn without_room_for_all_the_connections_that_are_idle_for_longest_have_no_bound_of_their_own() {
    let idle = |cookie, seconds| SocketSample {
        idle: Span::from_secs(seconds),
        tcp: TcpState { in_flight_segments: 0, ..sample(cookie, 100, 100).tcp },
        ..sample(cookie, 100, 100)
    };
    // The first one sends, and waits for an ACK.
    let waits = SocketSample { idle: Span::from_secs(29), ..sample(1, 29_000, 100) };
    let fake = fake(vec![waits, idle(2, 20), idle(3, 4), idle(4, 28)]);
    (fake.lock().expect("no panic").room, fake.lock().expect("no panic").asleep) = (Some(2), 70_000);
    let agent = Running::start(config("lo", "fixed"), fake.clone());
    let tick = agent.wait_for_tick("a tick", |_| true);
    let bound = Some(Bound::at_most(64));
    let own = |tick: &lasthop_status::record::Tick| tick.flows.iter().map(|flow| flow.bound).collect::<Vec<_>>();
    assert_eq!(own(&tick), [bound, None, bound, None]);
    let status = agent.status();
    assert_eq!((status.connections, status.asleep, status.bounded, status.bounds_left_out), (70_004, 70_000, 2, 2));
    fake.lock().expect("no panic").samples[1].idle = Span::ZERO;
    agent.wait_for_tick("another one's turn", |tick| own(tick) == [bound, bound, None, None]);
    fake.lock().expect("no panic").room = None;
    agent.wait_for_tick("room for all", |tick| own(tick) == [bound; 4]);
    wait_for("a status", || (agent.status().bounds_left_out == 0).then_some(()));
    agent.stop().0.expect("a clean stop");
    let fake = fake.lock().expect("the agent is gone");
    assert_eq!(fake.bounds[0].flows, [(1, bound), (3, bound)]);
}

#[test]
fn a_kernel_that_does_not_answer_for_a_while_ends_nothing() {
    let fake = fake(vec![sample(7, 100, 100)]);
    let agent = Running::start(config("lo", "fixed"), fake.clone());
    agent.wait_for_tick("a tick", |_| true);
    fake.lock().expect("no panic").fails = true;
    let three_more = || {
        let asked = fake.lock().expect("no panic").asked;
        wait_for("three ticks", || (fake.lock().expect("no panic").asked >= asked + 3).then_some(()));
        fake.lock().expect("no panic").bounds.len()
    };
    // The tick that was under way may still have renewed them.
    let renewed = three_more();
    assert_eq!(three_more(), renewed);
    fake.lock().expect("no panic").fails = false;
    wait_for("new bounds", || (fake.lock().expect("no panic").bounds.len() > renewed).then_some(()));
    agent.stop().0.expect("a clean stop");
}

#[test]
fn a_tick_that_is_late_is_counted_and_renews_the_bounds() {
    let fake = fake(vec![sample(7, 100, 100)]);
    let agent = Running::start(config("lo", "fixed"), fake.clone());
    agent.wait_for_tick("a tick", |_| true);
    fake.lock().expect("no panic").stalls = Duration::from_millis(300);
    let late = agent.wait_for_tick("the one after the stall", |tick| tick.late_ns >= 200_000_000);
    assert_eq!(late.flows[0].bound, Some(Bound::at_most(64)));
    let summary = agent.stop().0.expect("a clean stop");
    assert!(summary.late_ticks >= 1);
    assert_eq!(summary.bounds_changed, 1);
    assert_eq!(summary.ticks, fake.lock().expect("the agent is gone").bounds.len() as u64);
}

#[test]
fn changes_of_state_are_recorded() {
    let fake = fake(Vec::new());
    let change = StateChange {
        at: Time::from_nanos(4),
        cookie: 7,
        from: CongestionState::Open,
        to: CongestionState::Recovery,
        cwnd_segments: 10,
        ssthresh_segments: None,
    };
    fake.lock().expect("no panic").state_changes = vec![change];
    let agent = Running::start(config("lo", "fixed"), fake);
    agent.wait_for_tick("a tick", |_| true);
    let (_, events) = agent.stop();
    assert!(events.iter().any(|event| matches!(event, Event::State(state) if state.to == "Recovery")));
}

#[test]
fn an_interface_that_does_not_exist_is_named() {
    let (summary, _) = Running::start(config("lh-nosuch0", "none"), fake(Vec::new())).stop();
    let error = summary.expect_err("there is none").in_a_line().to_string();
    assert!(error.contains("lh-nosuch0"), "{error}");
}

#[test]
fn a_configuration_out_of_range_is_refused() {
    let mut config = config("lo", "none");
    config.policy.exponent = Some(3.0);
    let (summary, _) = Running::start(config, fake(Vec::new())).stop();
    let error = summary.expect_err("refused").to_string();
    assert!(error.contains("policy.exponent") && error.contains("from -2 to 0"), "{error}");
}
