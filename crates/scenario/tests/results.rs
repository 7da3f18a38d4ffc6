//! Results come back from their files as they were written.

mod sample;

use lasthop_scenario::{Comparison, ResultFile as _, RunResult, Scenario};
use sample::{comparison, links, run, statistics};

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
    assert_eq!(lasthop_measure::summary(&[result]).controlled_share.mean, 0.25);
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
    let access = lasthop_measure::access(&statistics(), true);
    assert_eq!((access.uplink_drops, access.downlink_drops, access.retry_drops), (1, 4, 10));
    assert_eq!((access.path_drops, access.broadcast_losses), (96, Some(16)));
    assert_eq!(access.downlink_marks, 7);
    assert_eq!((access.downlink_queue_mean, access.downlink_queue_p95), (Some(40.5), Some(99.0)));
    assert_eq!((access.air_shares["idle"], access.air_shares["success"]), (0.2, 0.8));
    assert_eq!(access.to_all_share, Some(0.025)); // 250 ms of 10 s
    assert_eq!((access.stations[0].up_phy_rate_mbps, access.stations[0].up_retries), (Some(48.0), 5));
}

#[test]
fn each_direction_of_a_link_is_told_by_its_nodes() {
    let links = links();
    let names: Vec<_> = links.iter().map(|link| (link.place.as_str(), link.from.as_str(), link.to.as_str())).collect();
    let expected =
        [("link_0_forth", "A", "R"), ("link_0_back", "R", "A"), ("link_1_forth", "B", "R"), ("link_1_back", "R", "B")];
    assert_eq!(names, expected);
    // 10,000 bits in a second: 0.01 Mb/s; at 100 Mb/s they take 0.1 ms of it, at 10 Mb/s a whole one.
    let figures =
        |link: usize| (links[link].sent_mbps, links[link].packets, links[link].utilization, links[link].losses);
    assert_eq!((figures(0), figures(1)), ((0.01, 1, 1e-4, 0), (0.0, 0, 0.0, 0)));
    // The last link sent the packet and lost it.
    assert_eq!(figures(3), (0.01, 1, 1e-3, 1));
    assert_eq!((links[3].queue_max, links[3].queue_mean, links[3].queue_drops), (1, 1e-3, 0));
}

#[test]
fn without_an_access_point_its_figures_are_zero_and_losses_on_links_are_the_paths() {
    let link = lasthop_network::QueueId::Link { link: 0, way: lasthop_network::Way::Forth };
    let mut counted = statistics();
    counted.queues.clear();
    counted.drops = vec![lasthop_network::Drops { place: link, cause: lasthop_network::Cause::RandomLoss, count: 3 }];
    let access = lasthop_measure::access(&counted, false);
    assert_eq!((access.downlink_queue_max, access.downlink_drops, access.path_drops), (None, 0, 3));
}

#[test]
fn hosts_are_told_by_their_names() {
    let mut run = sample::run([1.0, 1.0], &[5.0]);
    run.scenario["hosts"] =
        serde_json::json!([{ "count": 2, "name": "laptop" }, { "count": 1 }, { "count": 1, "name": "far" }]);
    let names: Vec<_> = (0..5).map(|host| run.host_name(host)).collect();
    let named = |name: &str| Some(name.to_owned());
    assert_eq!(names, [named("laptop-1"), named("laptop-2"), None, named("far"), None]);
}
