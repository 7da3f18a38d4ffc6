//! Files of `[[hosts.flows]]`: what they say takes the place of their paths, and what is said of a wrong one.
#![allow(missing_docs)]

use lasthop_scenario::{Override, Scenario};
use lasthop_units::{Span, Time};
use std::fs;

/// A scenario of one download in an open loop with this file beside it.
fn read(keys: &str, (name, text): (&str, &str), overrides: &[&str]) -> Result<Scenario, String> {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join(name), text).expect("written");
    let path = folder.path().join("some.toml");
    let scenario = format!("duration_s = 20\nwarmup_s = 1\n[[hosts]]\n[[hosts.flows]]\nkind = \"transfers\"\n{keys}\n");
    fs::write(&path, scenario).expect("written");
    let overrides: Vec<Override> = overrides.iter().map(|text| Override::parse(text).expect("a setting")).collect();
    let read = Scenario::load(&path, &overrides).map_err(|error| error.to_string());
    read.map_err(|error| error.replace(&format!("{}/", folder.path().display()), ""))
}

fn starts(scenario: &Scenario) -> Vec<Time> {
    scenario.expanded_hosts()[0].flows.iter().map(|flow| flow.start).collect()
}

#[test]
fn the_times_of_a_file_are_in_the_scenario_of_a_result_and_those_behind_its_end_are_not() {
    let at = |ms: u64| Time::ZERO + Span::from_millis(ms);
    for text in ["at_s,bytes\n0.5, 1000\n# a pause\n3,\n30,7\n", "bytes at_s\n1000 0.5\n2048 3\n7 30\n", "0.5\n3\n30\n"]
    {
        let scenario = read("transfer_kib = 2\narrivals = \"times.csv\"", ("times.csv", text), &[]).expect(text);
        assert_eq!(starts(&scenario), [at(500), at(3000)], "{text}");
        let written = scenario.to_toml();
        assert!(!written.contains("times.csv") && written.contains("arrivals_s = \"0.5"), "{written}");
        let again = Scenario::from_json(&scenario.to_json()).expect("a scenario");
        assert_eq!(again.expanded_hosts(), scenario.expanded_hosts());
    }
}

#[test]
fn a_distribution_of_a_file_is_as_if_its_points_were_written() {
    let text = "# bytes, percent\n1000 0\n2000 50\n8000 100\n";
    let keys = "arrivals_per_s = 3\ntransfer_sizes = \"sizes.txt\"";
    let scenario = read(keys, ("sizes.txt", text), &[]).expect("a scenario");
    let points = "arrivals_per_s = 3\ntransfer_points = \"1000:0 2000:50 8000:100\"";
    let typed = read(points, ("unused", ""), &[]).expect("a scenario");
    assert_eq!(scenario.expanded_hosts(), typed.expanded_hosts());
    assert!(scenario.expanded_hosts()[0].flows.len() > 20);
    assert!(scenario.to_toml().contains("transfer_points"), "{}", scenario.to_toml());
}

#[track_caller]
fn refused(keys: &str, text: &str, said: &str) {
    let error = read(keys, ("file", text), &[]).expect_err(said);
    assert!(error.contains(said) && error.contains("accepted"), "{keys}: {error}");
}

#[test]
fn a_row_has_as_many_cells_as_the_header_or_the_first_one() {
    let (sizes, times) = ("transfer_sizes = \"file\"", "transfer_kib = 1\narrivals = \"file\"");
    for (keys, text, said) in [
        (times, "at_s,bytes\n1,2,3\n", "file:2: arrivals: the row has 3 cells; accepted: 2 cells"),
        (times, "at_s,bytes\n1\n", "file:2: arrivals: the row has 1 cell; accepted: 2 cells"),
        (times, "at_s\n1\n2,5\n", "file:3: arrivals: \"2,5\" is no number"),
        (times, "at_s\n1\n2 5\n", "file:3: arrivals: the row has 2 cells; accepted: 1 cell"),
        (times, "1\n2 5\n", "file:2: arrivals: the row has 2 cells; accepted: 1 cell"),
        (times, "1 7\n2\n", "file:2: arrivals: the row has 1 cell; accepted: 2 cells"),
        (times, "1;7;9\n", "file:1: arrivals: the row has 3 cells; accepted: 2 cells"),
        (sizes, "10 0 7\n20 1\n", "file:1: transfer_sizes: the row has 3 cells; accepted: 2 cells"),
        (sizes, "20\n", "file:1: transfer_sizes: the row has 1 cell; accepted: 2 cells"),
        (sizes, "share,bytes\n0,10\n1\n", "file:3: transfer_sizes: the row has 1 cell; accepted: 2 cells"),
        (times, "at_s,at_s\n1,2\n", "file:1: arrivals: at_s,at_s are no columns; accepted: at_s, or at_s and bytes"),
        (
            sizes,
            "bytes share share\n1 1 1\n",
            "file:1: transfer_sizes: bytes share share are no columns; accepted: bytes and share",
        ),
    ] {
        refused(keys, text, said);
    }
}

#[test]
fn a_wrong_file_is_named_with_its_line_and_what_it_takes() {
    for (keys, text, said) in [
        ("transfer_sizes = \"file\"", "1000 0\n2000 x\n", "file:2: transfer_sizes: \"x\" is no number"),
        ("transfer_sizes = \"file\"", "bytes,part\n1000,1\n", "file:1: transfer_sizes: bytes,part are no columns"),
        ("transfer_sizes = \"file\"", "1000 0\n2000 0.5\n", "file:2: transfer_sizes: 0.5 is the last share"),
        ("transfer_sizes = \"file\"", "1000 0\n# two\n2000 2\n", "file:3: transfer_sizes: 2 is the last share"),
        (
            "transfer_sizes = \"file\"",
            "bytes,share\n1000,0.5\n2000,0.4\n3000,1\n",
            "file:3: transfer_sizes: 2000 and 0.4 go back behind 1000 and 0.5; accepted: up to 10000 points of bytes from 0 to \
             1099511627776",
        ),
        ("transfer_sizes = \"file\"", "1000 0\n1e18 1\n", "file:2: transfer_sizes: 1000000000000000000 is no size"),
        (
            "arrivals_mbps = 1\ntransfer_sizes = \"file\"",
            "0 0\n0 1\n",
            "file:2: transfer_sizes: 0 bytes are the mean; accepted",
        ),
        (
            "transfer_kib = 1\ntransfer_sizes = \"file\"",
            "10 1\n",
            "flows[0].transfer_sizes: cannot be beside transfer_kib",
        ),
        (
            "transfer_points = \"1:1\"\ntransfer_sizes = \"file\"",
            "10 1\n",
            "flows[0].transfer_sizes: cannot be beside transfer_points",
        ),
        ("transfer_sizes = \"file\"", "", "file has no row"),
        ("transfer_sizes = \"other\"", "1 1\n", "other cannot be read"),
        ("transfer_kib = 1\narrivals = \"file\"", "at_s,size\n1,7\n", "file:1: arrivals: at_s,size are no columns"),
        ("arrivals = \"file\"", "1,1.5\n", "file:1: arrivals: 1.5 is no size in bytes"),
        ("transfer_kib = 1\narrivals = \"file\"", "-1\n", "file:1: arrivals: -1 is below 0"),
        ("transfer_kib = 1\narrivals = \"file\"", "30\n", "file has no time before the end of the run"),
        ("transfer_kib = 1\narrivals = \"file\"", "3\n2\n", "file:2: arrivals: 2 is below 3"),
        ("transfer_kib = 1\narrivals = \"file\"", "at_s bytes\n3 0\n", "file:2: arrivals: 0 is no size in bytes"),
        (
            // One byte more than 1 TiB, which the largest transfer_kib is.
            "arrivals = \"file\"",
            "at_s,bytes\n0,1099511627776\n1,1099511627777\n",
            "file:3: arrivals: 1099511627777 is no size in bytes; accepted: seconds from 0 to 86400, ascending, each with whole \
             bytes from 1 to 1099511627776",
        ),
        (
            "transfer_kib = 1\narrivals_per_s = 1\narrivals = \"file\"",
            "1\n",
            "flows[0].arrivals: cannot be beside arrivals_per_s",
        ),
        (
            "transfer_kib = 1\narrivals_s = \"1\"\narrivals = \"file\"",
            "1\n",
            "flows[0].arrivals: cannot be beside arrivals_s",
        ),
        (
            "arrivals = \"file\"",
            "at_s,bytes\n1,10\n2,\n",
            "file:3: arrivals: the row has no bytes; accepted: bytes in each row",
        ),
        ("arrivals = \"file\"", "1\n2\n", "transfer_kib: is not there"),
    ] {
        refused(keys, text, said);
    }
    let result = serde_json::json!({ "hosts": [{ "flows": [{ "kind": "transfers", "transfer_sizes": "file" }] }] });
    let error = Scenario::from_json(&result).expect_err("no folder").to_string();
    assert!(error.contains("\"file\" is a file, and this scenario is in no folder"), "{error}");
}

#[test]
fn a_file_without_end_is_refused_before_it_fills_the_memory() {
    let rows = "5,1000000\n".repeat(200_000);
    let error = read("transfer_kib = 1\narrivals = \"file\"", ("file", &rows), &[]).expect_err("a megabyte");
    assert!(error.contains("more than 1000000 characters") && error.starts_with("file:"), "{error}");
}

#[test]
fn more_transfers_than_there_are_ports_are_refused_with_what_makes_fewer() {
    let error = read("transfer_kib = 1\narrivals_per_s = 3000", ("unused", ""), &[]).expect_err("60000 transfers");
    assert!(error.contains("hosts[0].flows[0]") && error.contains("some 60000 transfers"), "{error}");
    assert!(error.contains("at most 54000 connections in all: a lower rate"), "{error}");
    assert!(read("transfer_kib = 1\narrivals_per_s = 2600", ("unused", ""), &[]).is_ok());
}

#[test]
fn what_an_open_loop_does_not_look_at_is_named() {
    let scenario = read("transfer_kib = 1\narrivals_per_s = 3\noff_s = 4", ("unused", ""), &[]).expect("a scenario");
    let told: Vec<String> = lasthop_scenario::ineffective_keys([&scenario]).iter().map(ToString::to_string).collect();
    assert!(
        told.len() == 1 && told[0].ends_with("off_s has no effect here: arrivals_per_s is there in its place"),
        "{told:?}"
    );
    let scenario =
        read("transfer_sizes = \"web-search\"\ntransfer_sigma = 1", ("unused", ""), &[]).expect("a scenario");
    let told: Vec<String> = lasthop_scenario::ineffective_keys([&scenario]).iter().map(ToString::to_string).collect();
    assert!(told.len() == 1 && told[0].contains("transfer_sigma has no effect here: transfer_sizes"), "{told:?}");
}
