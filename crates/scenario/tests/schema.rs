//! The JSON Schema accepts what the reader accepts, and refuses what it refuses for a key's own sake.

use json_schema::{json, violations};
use lasthop_scenario::Scenario;

mod json_schema;

fn told(toml: &str) -> Vec<String> {
    violations(&Scenario::section().json_schema("test"), &json(toml), "")
}

#[test]
fn every_ready_scenario_follows_the_schema() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("the folder of scenarios") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let text = std::fs::read_to_string(&path).expect("a readable file");
            assert_eq!(told(&text), [""; 0], "{}", path.display());
            let whole = Scenario::load(&path, &[]).expect("a scenario").to_toml();
            assert_eq!(told(&whole), [""; 0], "{}, whole", path.display());
            count += 1;
        }
    }
    assert!(count >= 14, "only {count} scenarios in {folder}");
}

#[test]
fn mistakes_do_not() {
    for text in [
        "",
        "[[hosts]]\ncuont = 2",
        "[[hosts]]\ncount = 2.5",
        "[[hosts]]\npolicy = \"fromula\"",
        "[[hosts]]\nturnaround_us = [1, 2, 3]",
        "[[hosts]]\n[hosts.tcp]\nsack = 1",
        "duration_s = 0\n[[hosts]]",
        "[[hosts]]\n[[changes]]\nat_s = -1\nrtt_ms = 4",
        "[[hosts]]\nwindow_rows = [[0, 1]]",
        "hosts = 3",
        "[[hosts]]\ncongestion_control = \"New Reno\"",
        "[[links]]\nends = [\"a b\", \"c\"]\n[[hosts]]",
    ] {
        assert!(!told(text).is_empty(), "{text}");
        assert!(Scenario::from_toml("test.toml", text, &[]).is_err(), "{text}");
    }
    assert_eq!(told("[[hosts]]"), [""; 0]);
}

#[test]
fn an_editor_is_told_meaning_range_and_default() {
    let schema = Scenario::section().json_schema("A scenario");
    let rtt = &schema["properties"]["path"]["properties"]["rtt_ms"];
    assert_eq!((&rtt["type"], &rtt["minimum"], &rtt["maximum"]), (&"number".into(), &0.0.into(), &60_000.0.into()));
    assert_eq!(rtt["default"], 20.0);
    let said = rtt["description"].as_str().expect("a text");
    assert!(said.starts_with("Delay between the access point") && said.ends_with("Default: `20`."), "{said}");
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(schema["required"][0], "hosts");
}
