//! The JSON Schema of the configuration accepts what the agent reads, and refuses what it refuses for a key's own sake.

use json_schema::{json, violations};
use lasthop_agent::Config;
use lasthop_keys::Keys as _;

#[path = "../../scenario/tests/json_schema/mod.rs"]
mod json_schema;

fn told(toml: &str) -> Vec<String> {
    violations(&Config::section().json_schema("test"), &json(toml), "")
}

#[test]
fn the_packaged_configuration_follows_the_schema_with_and_without_its_commented_keys() {
    let text = include_str!("../../../packaging/agent.toml");
    assert_eq!(told(text), [""; 0]);
    let uncommented = text.replace("\n#= ", "\n");
    assert_ne!(uncommented, text);
    assert_eq!(told(&uncommented), [""; 0]);
}

#[test]
fn mistakes_do_not() {
    for text in [
        "mode = \"contrl\"",
        "tick_ms = 10",
        "interface = \"\"",
        "[beacon]\nprot = 5",
        "[beacon]\ngroup = \"a\\nb\"",
        "[last_link]\npacket_error_rate = -0.1",
        "[policy]\nenable_ratio = \"six\"",
        "leave = [3]",
    ] {
        assert!(!told(text).is_empty(), "{text}");
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("agent.toml");
        std::fs::write(&path, text).expect("written");
        assert!(Config::load(Some(&path), &[]).is_err(), "{text}");
    }
}
