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
