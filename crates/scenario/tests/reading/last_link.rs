//! What a client knows of its last link, and what it says.

use crate::read;
use lasthop_units::{Probability, Rate, Span};

/// What the host of a scenario says, as (seconds, Mb/s, error rate).
fn reports(text: &str, overrides: &[&str]) -> Vec<(f64, Option<f64>, Option<f64>)> {
    let scenario = read(text, overrides);
    let host = &scenario.expanded_hosts()[0];
    let told = scenario.link_reports(host, &host.flows[0]);
    let parts = told.iter().map(|(at, report)| {
        assert_eq!(report.validity, Span::from_secs(32));
        (at.as_secs_f64(), report.bandwidth.map(Rate::as_mbps), report.error_rate.map(Probability::get))
    });
    parts.collect()
}

const CLIENT: &str = "\
[[links]]
between = [\"Client\", \"R\"]
rate_mbps = 2
back_rate_mbps = 8
back_loss = 0.25
[[links]]
between = [\"R\", \"Server\"]
rate_mbps = 45
loss = 0.5
[[changes]]
at_s = 5
between = [\"R\", \"Server\"]
rate_mbps = 1
[[changes]]
at_s = 10
between = [\"R\", \"Client\"]
rate_mbps = 4
[[changes]]
at_s = 10
between = [\"Client\", \"R\"]
back_loss = 0.5
[[hosts]]
node = \"Client\"
[hosts.last_link]
report = true
[[hosts.flows]]
to = \"Server\"
direction = \"down\"
";

#[test]
fn a_host_that_knows_says_what_its_own_link_is_and_becomes() {
    let (first, later) = ((0.0, Some(8.0), Some(0.25)), (10.0, Some(4.0), Some(0.5)));
    assert_eq!(reports(CLIENT, &[]), [first, later]);
    assert_eq!(reports(CLIENT, &["hosts.0.last_link.report=false"]), []);
    assert_eq!(read(CLIENT, &["hosts.0.last_link.report=false"]).hosts[0].kind.last_link, None);
    assert_eq!(reports(CLIENT, &["changes.1.at_s=0", "changes.2.at_s=0"]), [(0.0, Some(4.0), Some(0.5))]);
}

#[test]
fn a_host_may_know_half_be_late_be_wrong_or_lie() {
    let said = |key: &str| reports(CLIENT, &[&format!("hosts.0.last_link.{key}")]);
    assert_eq!(said("knowledge=bandwidth"), [(0.0, Some(8.0), None), (10.0, Some(4.0), None)]);
    assert_eq!(said("knowledge=error-rate"), [(0.0, None, Some(0.25)), (10.0, None, Some(0.5))]);
    assert_eq!(said("knowledge=measured"), []);
    assert_eq!(said("delay_s=2.5"), [(0.0, Some(8.0), Some(0.25)), (12.5, Some(4.0), Some(0.5))]);
    assert_eq!(said("bandwidth_factor=1.5"), [(0.0, Some(12.0), Some(0.25)), (10.0, Some(6.0), Some(0.5))]);
    assert_eq!(said("error_factor=3"), [(0.0, Some(8.0), Some(0.75)), (10.0, Some(4.0), Some(1.0))]);
    assert_eq!(said("bandwidth_mbps=70"), [(0.0, Some(70.0), Some(0.25)), (10.0, Some(70.0), Some(0.5))]);
    assert_eq!(said("packet_error_rate=0"), [(0.0, Some(8.0), Some(0.0)), (10.0, Some(4.0), Some(0.0))]);
    let lie = ["hosts.0.last_link.bandwidth_mbps=70", "hosts.0.last_link.packet_error_rate=0.5"];
    assert_eq!(reports(CLIENT, &lie), [(0.0, Some(70.0), Some(0.5))]);
}

#[test]
fn a_station_knows_what_it_would_get_alone() {
    let text = "[[changes]]\nat_s = 3\nhosts = [0]\nrate_mbps = 6\nframe_error_rate = 0.5\n\
                [[hosts]]\n[hosts.last_link]\nreport = true\n";
    let told = reports(text, &["access.retry_limit=3"]);
    // 12000 bits in DIFS 28 + 7.5 slots of 9 us + 254 + 44 us at 54 Mb/s.
    assert!((told[0].1.unwrap() - 12_000.0 / 393.5).abs() < 1e-3 && told[0].2 == Some(0.0), "{told:?}");
    // At 6 Mb/s an eighth is lost, and of the rest it has less than a half of 5.4 Mb/s: 1.75 transmissions for 7 of 8.
    assert!(told[1].0 == 3.0 && (2.4..2.7).contains(&told[1].1.unwrap()), "{told:?}");
    assert_eq!(told[1].2, Some(0.125));
    assert_eq!(reports(text, &["access.kind=wired"]), [(0.0, Some(100.0), Some(0.0))]);
}
