//! A running agent that reads its configuration again, and one that is asked what it does. No root needed.
#![allow(missing_docs)]

use crate::common::{Running, fake, sample, wait_for};
use lasthop_agent::{Config, Mode, RuleConfig};
use lasthop_laws::bound::Bound;
use lasthop_policy::PolicyName;
use lasthop_status::record::Event;

/// Without beacons: the tests run side by side on the same loopback interface.
fn config(policy: &str) -> Config {
    let mut config = crate::common::config("lo", policy);
    (config.beacon.ipv4, config.beacon.ipv6) = (false, false);
    config
}

#[test]
fn the_policy_and_its_settings_hold_at_once_and_the_stack_stays() {
    let fake = fake(vec![sample(7, 100, 100)]);
    let agent = Running::start(config("fixed"), fake.clone());
    agent.wait_for_tick("a bound", |tick| tick.flows[0].bound == Some(Bound::at_most(64)));
    let mut half = config("fixed");
    half.policy.bound_segments = Some(32);
    agent.reload(Ok(half));
    agent.wait_for_tick("half of it", |tick| tick.flows[0].bound == Some(Bound::at_most(32)));
    agent.reload(Ok(config("formula")));
    let tick = agent.wait_for_tick("no bound", |tick| tick.flows[0].bound.is_none());
    assert!(!tick.flows[0].enabled);
    let (_, events) = agent.stop();
    let policies = events.iter().filter_map(|event| match event {
        Event::Ready(ready) => Some(ready.policy),
        _ => None,
    });
    assert_eq!(policies.collect::<Vec<_>>(), [PolicyName::Fixed, PolicyName::Fixed, PolicyName::Formula]);
    assert_eq!(fake.lock().expect("the agent is gone").loaded_for.len(), 1);
}

#[test]
fn another_mode_is_another_stack_and_what_the_last_one_did_is_undone() {
    let fake = fake(vec![sample(7, 100, 100)]);
    let agent = Running::start(Config { mode: Mode::Advise, ..config("fixed") }, fake.clone());
    agent.wait_for_tick("an advice", |tick| tick.flows[0].advised.is_some());
    agent.reload(Ok(config("fixed")));
    agent.wait_for_tick("a bound", |tick| tick.flows[0].bound.is_some());
    agent.reload(Ok(Config { mode: Mode::Advise, ..config("fixed") }));
    agent.wait_for_tick("an advice", |tick| tick.flows[0].bound.is_none() && tick.flows[0].advised.is_some());
    agent.stop().0.expect("a clean stop");
    let fake = fake.lock().expect("the agent is gone");
    let modes: Vec<_> = fake.loaded_for.iter().map(|(_, mode)| *mode).collect();
    assert_eq!((modes, fake.dropped), (vec![Mode::Advise, Mode::Control, Mode::Advise], 3));
}

#[test]
fn tcp_is_asked_to_limit_downloads_only_by_a_policy_that_may_and_in_mode_control() {
    let with = |mode, bound_receive_segments| {
        let mut config = Config { mode, ..config("fixed") };
        config.policy.bound_receive_segments = bound_receive_segments;
        config
    };
    let fake = fake(vec![sample(7, 100, 100)]);
    let announced = || fake.lock().expect("no panic").announced;
    let agent = Running::start(with(Mode::Advise, Some(30)), fake.clone());
    agent.wait_for_tick("an advice", |tick| tick.flows[0].advised.is_some());
    agent.reload(Ok(with(Mode::Control, None)));
    agent.wait_for_tick("a bound", |tick| tick.flows[0].bound == Some(Bound::at_most(64)));
    assert_eq!(announced(), 0);
    agent.reload(Ok(with(Mode::Control, Some(30))));
    let receives = |bound: Option<Bound>| bound.is_some_and(|bound| bound.max_receive_bytes > 0);
    agent.wait_for_tick("a limit of downloads", |tick| receives(tick.flows[0].bound));
    assert_eq!(announced(), 1);
    agent.stop().0.expect("a clean stop");
    let agent = Running::start(config("lasthop"), fake.clone());
    agent.wait_for_tick("a tick", |_| true);
    agent.stop().0.expect("a clean stop");
    assert_eq!(announced(), 2);
}

#[test]
fn rules_hold_once_they_are_read_again() {
    let mine = lasthop_agent::host_tcp::SocketSample { rule: Some(0), ..sample(7, 100, 100) };
    let fake = fake(vec![mine]);
    let rule = |govern, most_mbps| {
        let rule = RuleConfig { cgroup: None, user: Some("0".to_owned()), govern, most_mbps };
        Ok(Config { rules: vec![rule], ..config("fixed") })
    };
    let agent = Running::start(config("fixed"), fake.clone());
    agent.wait_for_tick("a bound", |tick| tick.flows[0].bound == Some(Bound::at_most(64)));
    agent.reload(rule(true, Some(3.0)));
    let paced = |tick: &lasthop_status::record::Tick| tick.flows[0].bound.map(|bound| bound.max_pacing_rate.as_mbps());
    agent.wait_for_tick("a pace", |tick| paced(tick) == Some(3.0) && tick.flows[0].rule == Some(1));
    assert_eq!(agent.status().rules[0].rule, "user 0: 3 Mb/s at most together");
    assert_eq!(agent.status().rules[0].connections, 1);
    agent.reload(rule(false, None));
    agent.wait_for_tick("none", |tick| tick.flows[0].reason == "rule 1: left alone");
    agent.reload(Ok(config("fixed")));
    agent.wait_for_tick("the bound of before", |tick| tick.flows[0].bound == Some(Bound::at_most(64)));
    agent.stop().0.expect("a clean stop");
    assert_eq!(fake.lock().expect("the agent is gone").loaded_for.len(), 4);
}

#[test]
fn what_is_not_accepted_changes_nothing() {
    let fake = fake(vec![sample(7, 100, 100)]);
    let agent = Running::start(config("fixed"), fake.clone());
    agent.wait_for_tick("a bound", |tick| tick.flows[0].bound.is_some());
    let mut out_of_range = config("formula");
    out_of_range.policy.exponent = Some(3.0);
    let mut no_key = config("formula");
    no_key.beacon.group_key_file = Some("/nonexistent/group.key".into());
    let no_cgroup = Config { excluded_cgroups: vec!["/proc".into()], ..config("formula") };
    let rule =
        RuleConfig { cgroup: None, user: Some("nobody-of-this-name".to_owned()), govern: false, most_mbps: None };
    let no_user = Config { rules: vec![rule], ..config("formula") };
    let wrong = [Err("no TOML at all".to_owned()), Ok(out_of_range), Ok(no_key), Ok(no_cgroup), Ok(no_user)];
    for wrong in wrong {
        agent.reload(wrong);
        let tick = agent.wait_for_tick("the same bound", |_| true);
        assert_eq!(tick.flows[0].bound, Some(Bound::at_most(64)));
    }
    agent.stop().0.expect("a clean stop");
    assert_eq!(fake.lock().expect("the agent is gone").loaded_for.len(), 1);
}

#[test]
fn a_mode_that_cannot_be_loaded_leaves_the_agent_with_the_one_that_it_had() {
    let fake = fake(vec![sample(7, 100, 100)]);
    let agent = Running::start(Config { mode: Mode::Advise, ..config("fixed") }, fake.clone());
    agent.wait_for_tick("an advice", |tick| tick.flows[0].advised.is_some());
    fake.lock().expect("no panic").refuses = vec![Mode::Control];
    agent.reload(Ok(config("fixed")));
    wait_for("both to be tried", || (fake.lock().expect("no panic").loaded_for.len() == 3).then_some(()));
    agent.wait_for_tick("an advice still", |tick| tick.flows[0].advised == Some(Bound::at_most(64)));
    let status = agent.status();
    assert_eq!((status.mode, status.loaded), (Mode::Advise, true));
    // Where the old one cannot be had any more either, the status says so, and the agent tries again.
    fake.lock().expect("no panic").refuses = vec![Mode::Control, Mode::Advise];
    agent.reload(Ok(config("fixed")));
    wait_for("the status", || Some(agent.status()).filter(|status| !status.loaded));
    fake.lock().expect("no panic").refuses = Vec::new();
    agent.wait_for_tick("an advice again", |tick| tick.flows.first().is_some_and(|flow| flow.advised.is_some()));
    assert!(agent.status().loaded);
    agent.stop().0.expect("a clean stop");
    let modes: Vec<_> = fake.lock().expect("the agent is gone").loaded_for.iter().map(|(_, mode)| *mode).collect();
    assert_eq!(modes[..3], [Mode::Advise, Mode::Control, Mode::Advise]);
    assert_eq!(modes.last(), Some(&Mode::Advise));
}

#[test]
fn what_needs_a_restart_stays_as_it_was() {
    let fake = fake(vec![sample(7, 100, 100)]);
    let agent = Running::start(config("fixed"), fake.clone());
    agent.wait_for_tick("a bound", |tick| tick.flows[0].bound.is_some());
    let mut other = Config { interface: Some("lh-nosuch0".to_owned()), ..config("fixed") };
    other.policy.bound_segments = Some(32);
    agent.reload(Ok(other));
    agent.wait_for_tick("the bound that was read with it", |tick| tick.flows[0].bound == Some(Bound::at_most(32)));
    assert_eq!(agent.status().interface, "lo");
    agent.stop().0.expect("a clean stop");
    assert_eq!(fake.lock().expect("the agent is gone").loaded_for, [("lo".to_owned(), Mode::Control)]);
}

#[test]
fn the_status_says_what_the_agent_does_now() {
    let fake = fake(vec![sample(7, 100, 100), sample(8, 100, 100)]);
    let agent = Running::start(config("fixed"), fake);
    agent.wait_for_tick("a bound", |tick| tick.flows[0].bound.is_some());
    let status = agent.status();
    assert_eq!((status.interface.as_str(), status.mode, status.policy), ("lo", Mode::Control, PolicyName::Fixed));
    assert_eq!((status.peers, status.connections, status.busy, status.bounded), (0, 2, 2, 2));
    assert_eq!((status.window_segments, status.pacing_mbps), (Some([32, 32]), None));
    assert_eq!(status.reason.as_deref(), Some("the host's 64 segments over 2 connections"));
    assert!(status.control_since_s.is_some_and(|seconds| seconds >= 0.0));
    // This policy measures nothing.
    assert_eq!((status.common_rate_mbps, status.gain.gain_ratio), (None, None));
    assert_eq!(status.to_string().lines().count(), 6);
    agent.stop().0.expect("a clean stop");
}

#[test]
fn the_status_of_our_policy_tells_what_the_host_gets_and_whether_that_is_known() {
    let fake = fake(vec![sample(7, 100, 100)]);
    let agent = Running::start(config("lasthop"), fake);
    agent.wait_for_tick("a tick", |tick| tick.flows[0].busy);
    let status =
        wait_for("what it gets", || Some(agent.status()).filter(|status| status.gain.delivered_mbps.is_some()));
    assert_eq!((status.common_rate_mbps, status.control_since_s, status.bounded), (None, None, 0));
    assert!(status.to_string().contains("\n  control  off: "), "{status}");
    assert!(status.to_string().contains(" now; nothing is limited\n  delay    "), "{status}");
    agent.stop().0.expect("a clean stop");
}
