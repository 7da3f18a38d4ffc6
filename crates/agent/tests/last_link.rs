//! What servers are told of a host's own link: that it is what is configured or seen, and that it ends with the link.
#![allow(missing_docs)]

use crate::common::{Running, SharedFake, fake, reported, root, two_hosts, wait_for};
use lasthop_agent::host_tcp::Claim;
use lasthop_agent::{Config, LastLinkConfig, Mode};
use lasthop_lastlink::Source;
use lasthop_laws::ReportCounters;
use lasthop_status::record::{LinkTotals, ReportCause};
use std::time::{Duration, Instant};

/// 7 Mb/s and 0.5 %, told anew every two seconds; what is left is 8 s or more until then.
const CONFIGURED: Claim = Claim { bandwidth_kbps: Some(7000), error_ppm: Some(5000), validity_s: 14 };
const NOTHING: Claim = Claim { bandwidth_kbps: None, error_ppm: None, validity_s: 14 };

fn configured(interface: &str) -> Config {
    let mut config = crate::common::config(interface, "none");
    (config.beacon.ipv4, config.beacon.ipv6) = (false, false);
    config.mode = Mode::Observe;
    config.last_link = LastLinkConfig {
        report: true,
        bandwidth_mbps: Some(7.0),
        packet_error_rate: Some(0.005),
        validity_s: 8,
        ..LastLinkConfig::default()
    };
    config
}

/// Waits until the last claim is this one.
fn wait_for_claim(fake: &SharedFake, claim: Claim) {
    wait_for("a claim", || (fake.lock().expect("no panic").claims.last() == Some(&claim)).then_some(()));
}

#[test]
fn what_is_configured_is_claimed_in_every_mode_and_renewed_before_it_lapses() {
    let fake = fake(Vec::new());
    let agent = Running::start(configured("lo"), fake.clone());
    let begun = Instant::now();
    wait_for("two renewals", || (fake.lock().expect("no panic").claims.len() >= 3).then_some(()));
    // Renewed every two seconds, which is a quarter of 8 s, and not at each tick of 50 ms.
    assert!(begun.elapsed() >= Duration::from_secs(2));
    let (summary, events) = agent.stop();
    let claims = fake.lock().expect("the agent is gone").claims.clone();
    let Some((NOTHING, before)) = claims.split_last().map(|(last, before)| (*last, before)) else {
        panic!("retracted at the end: {claims:?}")
    };
    assert!(before.iter().all(|claim| *claim == CONFIGURED));
    let [reported, retracted] = reported(&events)[..] else { panic!("one report, and its renewals are none") };
    assert_eq!((retracted.bandwidth_mbps, retracted.error_rate, retracted.cause), (None, None, ReportCause::Stopped));
    assert_eq!((reported.bandwidth_mbps, reported.bandwidth_source), (Some(7.0), Some(Source::Configuration)));
    assert_eq!((reported.error_rate, reported.error_rate_source), (Some(0.005), Some(Source::Configuration)));
    assert_eq!((reported.validity_s, reported.cause), (8, ReportCause::Estimate));
    let summary = summary.expect("a clean stop");
    let totals = LinkTotals {
        changed: 1,
        retracted: 1,
        counters: ReportCounters { offered: 7, answered: 5, ..ReportCounters::default() },
    };
    assert_eq!(summary.last_link, Some(totals));
    let said = "last link: told anew 1 times, retracted 1 times; 7 SYNs with the option (5 answered, 0 not, 0 lost) and 0 later";
    assert!(summary.to_string().contains(said), "{summary}");
}

#[test]
fn by_default_servers_are_told_nothing() {
    let fake = fake(Vec::new());
    let config = Config { last_link: LastLinkConfig::default(), ..configured("lo") };
    let agent = Running::start(config, fake.clone());
    agent.wait_for_tick("a tick", |_| true);
    let (summary, events) = agent.stop();
    assert_eq!(summary.expect("a clean stop").last_link, None);
    assert!(reported(&events).is_empty() && fake.lock().expect("the agent is gone").claims.is_empty());
}

#[test]
fn a_kernel_that_cannot_tell_servers_or_does_not_for_a_while_ends_nothing() {
    let unable = fake(Vec::new());
    unable.lock().expect("no panic").cannot_report = true;
    let agent = Running::start(configured("lo"), unable.clone());
    agent.wait_for_tick("a tick", |_| true);
    let (summary, events) = agent.stop();
    assert_eq!(summary.expect("a clean stop").last_link, Some(LinkTotals::default()));
    assert!(reported(&events).is_empty());

    let refusing = fake(Vec::new());
    refusing.lock().expect("no panic").refuses_claims = true;
    let agent = Running::start(configured("lo"), refusing.clone());
    agent.wait_for_tick("a tick", |_| true);
    refusing.lock().expect("no panic").refuses_claims = false;
    wait_for_claim(&refusing, CONFIGURED);
    assert_eq!(agent.stop().0.expect("a clean stop").last_link.expect("configured").changed, 1);
}

#[test]
fn a_link_that_is_down_is_retracted_and_told_again_when_it_is_up() {
    if !root() {
        return;
    }
    let (a, _b) = two_hosts();
    let fake = fake(Vec::new());
    let agent = Running::start_on(&a, configured("last"), fake.clone());
    wait_for_claim(&fake, CONFIGURED);
    a.ip("link set last down");
    wait_for_claim(&fake, NOTHING);
    a.ip("link set last up");
    wait_for_claim(&fake, CONFIGURED);
    let (summary, events) = agent.stop();
    let totals = summary.expect("a clean stop").last_link.expect("configured");
    assert_eq!((totals.changed, totals.retracted), (2, 2));
    let causes: Vec<_> = reported(&events).iter().map(|reported| reported.cause).collect();
    use ReportCause::{Estimate, LinkLost, Stopped};
    assert_eq!(causes, [Estimate, LinkLost, Estimate, Stopped]);
}

#[test]
fn what_holds_behind_one_access_point_is_retracted_behind_another() {
    if !root() {
        return;
    }
    let (a, _b) = two_hosts();
    a.ip("route add default via 10.77.0.254");
    let mut config = configured("last");
    config.last_link.access_point = Some("gateway 10.77.0.254".to_owned());
    let fake = fake(Vec::new());
    let agent = Running::start_on(&a, config, fake.clone());
    wait_for_claim(&fake, CONFIGURED);
    a.ip("route replace default via 10.77.0.253");
    wait_for_claim(&fake, NOTHING);
    a.ip("route replace default via 10.77.0.254");
    wait_for_claim(&fake, CONFIGURED);
    let (summary, events) = agent.stop();
    assert_eq!(summary.expect("a clean stop").roamed, 2);
    let causes: Vec<_> = reported(&events).iter().map(|reported| reported.cause).collect();
    use ReportCause::{Estimate, Roamed, Stopped};
    assert_eq!(causes, [Estimate, Roamed, Roamed, Stopped]);
}
