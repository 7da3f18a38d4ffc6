//! Linux's own queue at a wired access point, in virtual time. All disciplines at length: `scripts/queues-table`.

use crate::common::{can_emulate, lasthop};
use serde_json::Value;

/// Datagrams at 1.2 times the rate: whatever PIE drops slows nobody down, so both have the same to do.
const SCENARIO: &str = "duration_s = 10\nwarmup_s = 5\n[access]\nkind = \"wired\"\nrate_mbps = 10\nqueue = \"pie\"\n\
                        [path]\nrtt_ms = 20\n[[hosts]]\ncount = 2\nera = \"modern\"\n[[hosts.flows]]\ndirection = \"down\"\n\
                        kind = \"constant\"\nrate_mbps = 6\npacket_bytes = 1500\njitter_us = 500\n";

#[test]
fn linuxs_pie_has_the_delay_and_the_drops_of_the_models() {
    if !can_emulate() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("pie.toml");
    std::fs::write(&file, SCENARIO).expect("the scenario");
    let file = file.to_str().expect("a path");
    let linux = ["run", file, "--json", "--hosts", "kernel", "--clock", "virtual", "--queue", "linux"];
    let mut output = lasthop(&linux).output().expect("the command starts");
    // A kernel that was kept before disciplines were brought with it.
    if String::from_utf8_lossy(&output.stderr).contains("is to be fetched again") {
        assert!(lasthop(&["kernels", "fetch", "debian-6.12"]).status().expect("the command starts").success());
        output = lasthop(&linux).output().expect("the command starts");
    }
    let read = |stdout: &[u8]| serde_json::from_slice::<Value>(stdout).expect("a result");
    let linux = read(&output.stdout);
    let model = read(&lasthop(&["run", file, "--json"]).output().expect("the command starts").stdout);
    assert_eq!((&linux["queue"], &linux["valid"]), (&"linux".into(), &true.into()), "{linux}");
    assert_eq!(model["queue"], Value::Null);
    // Of 1000 packets a second 833 find room on the wire. PIE still swings about its target: 13.7 packets, Linux 11.5.
    for (what, most) in [("downlink_drops", 0.05), ("downlink_queue_mean", 0.3)] {
        let [ours, kernels] = [&model, &linux].map(|result| result["access"][what].as_f64().expect(what));
        assert!((ours / kernels - 1.0).abs() < most, "{what}: {ours}, and Linux's {kernels}");
    }
}
