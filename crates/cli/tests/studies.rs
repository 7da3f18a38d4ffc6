//! The studies that hold the simulator against theory, with one seed each. All of it: `lasthop study NAME`.
//!
//! `validation/cubic-response` is left out: it takes two minutes of a core even in a release build.

use std::process::Command;

#[track_caller]
fn holds(name: &str) {
    let studies = format!("{}/../../studies", env!("CARGO_MANIFEST_DIR"));
    let arguments = ["study", name, "--studies", &studies, "--seeds", "1", "--json", "--no-store"];
    let output = Command::new(env!("CARGO_BIN_EXE_lasthop")).args(arguments).output().expect("the command starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    let claims = result["claims"].as_array().expect("claims");
    // Exit code 0 alone could also mean that nothing was required.
    let required = claims.iter().filter(|claim| claim["required"] == true);
    assert!(
        required.clone().count() >= 4 && required.into_iter().all(|claim| claim["verdict"] == "holds"),
        "{claims:?}"
    );
}

/// Two scenarios are drawn, each run with and without a bound.
const DRAWN: &str = r#"
title = "drawn"
source = "nobody"
scenarios = 2
seeds = 1
[scenario]
duration_s = 4
warmup_s = 1
[[scenario.hosts]]
[[cases]]
label = "none"
[[cases]]
label = "bounded"
set.hosts.0.policy = "fixed"
set.hosts.0.bound_segments = 4
[[draw]]
name = "uploads"
key = "hosts.0.count"
values = [1, 2, 3]
[[draw]]
name = "rtt"
key = "path.rtt_ms"
log_uniform = [2, 100]
[[claims]]
id = "no-harm"
text = "No harm."
source = "nobody"
at_least = 1
[[claims.conditions]]
label = "goodput"
value = 'at("aggregate_goodput_mbps", case="bounded") / at("aggregate_goodput_mbps", case="none")'
at_least = 2
"#;

#[test]
fn the_worst_scenarios_are_named_with_a_command_that_runs_them_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("drawn.toml");
    std::fs::write(&file, DRAWN).expect("a file");
    let lasthop = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_lasthop")).args(arguments).output().expect("the command starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    let study = |more: &[&str]| {
        let arguments = [&["study", file.to_str().expect("a path")], more].concat();
        lasthop(&arguments)
    };
    let text = study(&["--no-store"]);
    assert!(text.contains("Distributions over the scenarios 1 to 2"), "{text}");
    let of_worst = |scenario| format!("--print 'bounded, scenario={scenario}' | lasthop run /dev/stdin");
    let place = |scenario| text.find(&of_worst(scenario)).unwrap_or_else(|| panic!("{text}"));
    let result: serde_json::Value = serde_json::from_str(&study(&["--no-store", "--json"])).expect("JSON");
    let cells = &result["claims"][0]["cells"];
    let ratio = |cell: usize| cells[cell]["numbers"][0].as_f64().expect("a ratio");
    assert_eq!(place(1) < place(2), ratio(0) < ratio(1), "{text}");
    for (point, name) in ["none, scenario=1", "none, scenario=2", "bounded, scenario=1"].into_iter().enumerate() {
        let printed = folder.path().join("printed.toml");
        std::fs::write(&printed, study(&["--print", name])).expect("a file");
        let run = lasthop(&["run", printed.to_str().expect("a path"), "--json"]);
        let run: serde_json::Value = serde_json::from_str(&run).expect("JSON");
        assert_eq!(run["aggregate_goodput_mbps"], result["points"][point]["measures"][0]["values"][0], "{name}");
    }
}

#[test]
fn saturated_stations_get_what_bianchi_says() {
    holds("validation/bianchi");
}

#[test]
fn one_upload_stays_below_what_the_air_allows_and_contends_as_two_stations() {
    holds("validation/tcp-upper-bound");
}

#[test]
fn newreno_gets_what_pftk_and_mathis_say() {
    holds("validation/newreno-response");
}

#[test]
fn two_newreno_flows_share_the_dumbbell_evenly_at_any_loss() {
    holds("utsumi/fig-07");
}
