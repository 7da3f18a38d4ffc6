//! `lasthop trial simulate` and `trial read`: the truth is that of the scenario.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn lasthop(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lasthop"));
    command.args(arguments).current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    command.output().expect("the command starts")
}

/// A trial of five uploads over 20 ms whose send buffers hold 48 KiB, in seven pairs of blocks of 6 s: enough for a policy that bounds
/// at once. It is kept in this file. Returns what it printed, and what `trial read` says of it.
fn simulated(settings: &[&str], bundle: &Path) -> (Value, String) {
    let bundle = bundle.to_str().expect("UTF-8");
    let mut words = vec![
        "trial",
        "simulate",
        "ten-uploads",
        "--minutes",
        "1.4",
        "--block-s",
        "6",
        "--seed",
        "1",
        "--json",
        "--bundle",
        bundle,
    ];
    for setting in
        ["hosts.0.count=5", "path.rtt_ms=20", "warmup_s=5", "hosts.0.send_buffer_kib=48", "hosts.0.policy=fixed"]
            .iter()
            .chain(settings)
    {
        words.extend(["--set", setting]);
    }
    let output = lasthop(&words);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read = lasthop(&["trial", "read", bundle, bundle]);
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    (serde_json::from_slice(&output.stdout).expect("JSON"), String::from_utf8_lossy(&read.stdout).into_owned())
}

#[test]
fn a_simulated_trial_finds_the_effect_of_a_bound_and_none_of_one_that_never_binds() {
    let folder = tempfile::tempdir().expect("a folder");
    let (found, read) = simulated(&["hosts.0.bound_segments=8"], &folder.path().join("effect.json"));
    assert_eq!((&found["verdict"], &found["pairs"]), (&"helps".into(), &7.into()), "{found}");
    let rtt = found["effects"].as_array().and_then(|all| all.iter().find(|effect| effect["figure"] == "rtt_p95_ms"));
    let of = |key: &str| rtt.expect("it was measured")[key].as_f64().expect("a number");
    // 5 · 8 segments of 1500 B are 24 ms of the 20 Mb/s here; 5 · 32, the buffers, 96 ms.
    assert!(of("control") < 0.5 * of("free"), "{found}");
    assert_eq!(found["hosts"].as_array().map(Vec::len), Some(5));
    assert!(read.lines().all(|line| line.contains(": 5 hosts, 7 pairs; helps: p95 round trip ")), "{read}");

    let (found, _) = simulated(&["hosts.0.bound_segments=1000000"], &folder.path().join("nothing.json"));
    assert_eq!((&found["verdict"], &found["kernel"]), (&"no_effect".into(), &"simulated hosts".into()), "{found}");
}

#[test]
fn a_scenario_without_a_policy_has_nobody_to_take_part() {
    let output = lasthop(&["trial", "simulate", "ten-uploads", "--minutes", "1", "--block-s", "5"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("no host of the scenario has a policy"), "{said}");
}

#[test]
fn a_host_whose_agent_does_not_control_takes_no_part() {
    for agent in ["off", "observe"] {
        let agent = format!("hosts.0.agent={agent}");
        let words = [
            "trial",
            "simulate",
            "ten-uploads",
            "--minutes",
            "1",
            "--block-s",
            "6",
            "--set",
            "hosts.0.policy=lasthop",
            "--set",
            &agent,
        ];
        let output = lasthop(&words);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("an agent that controls; accepted: one or more"), "{said}");
    }
}

#[test]
fn a_trial_lasts_as_long_as_its_plan_with_all_that_a_file_says_of_that_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    // The link slows down behind the end of the scenario's run, and behind that of `--set`.
    std::fs::write(path("rate.csv"), "at_s,rate_mbps\n0,10\n16,1\n").expect("a file");
    let text = "duration_s = 10\nwarmup_s = 2\n[access]\nkind = \"wired\"\n[[hosts]]\npolicy = \"fixed\"\nbound_segments = 8\n\
                [[changes]]\nof = \"access\"\ntrace = \"rate.csv\"\n";
    std::fs::write(path("typed.toml"), text).expect("a file");
    let (scenario, bundle) = (path("typed.toml"), path("bundle.json"));
    let plan = ["--minutes", "0.4", "--block-s", "12", "--seed", "1", "--set", "duration_s=12", "--bundle", &bundle];
    let output = lasthop(&[&["trial", "simulate", &scenario][..], &plan].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("note: --set duration_s=12 has no effect"), "{said}");
    let bundle: Value = serde_json::from_slice(&std::fs::read(&bundle).expect("a file")).expect("JSON");
    let told = bundle["told"].as_array().expect("what was told");
    let sent: Vec<u64> = told.iter().filter_map(|told| told["block"]["sent_bytes"].as_u64()).collect();
    // The second block is from 14 s to 26 s, and measured in its last seconds.
    assert!(sent.len() == 2 && sent[1] > 0 && sent[1] < sent[0] / 2, "{bundle}");
}

/// A file that somebody has changed: neither its version nor its shares are believed.
#[test]
fn what_a_bundle_cannot_say_is_refused_or_held_to_its_range() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("odd.json");
    let read = |version: u32, pairs: u16| {
        let block = |block| format!("\"block\":{block},\"lasted_ms\":9000,\"sent_bytes\":9000000,\"received_bytes\":0");
        let sums =
            "\"rtt_p50_us\":20000,\"rtt_p95_us\":30000,\"rtts\":9,\"segments\":1,\"retransmitted\":5,\"timeouts\":0";
        let told: Vec<String> =
            (0..16).map(|of| format!("{{\"host\":1,\"block\":{{{},{sums}}}}}", block(of))).collect();
        let text = format!(
            "{{\"lasthop_trial\":{version},\"version\":\"0.1.0\",\"kernel\":\"6.12\",\"plan\":{{\"id\":1,\"seed\":1,\
             \"pairs\":{pairs},\"block_s\":9}},\"ended\":null,\"agents_heard\":0,\"told\":[{}],\"probes\":[]}}",
            told.join(",")
        );
        std::fs::write(&file, text).expect("a file");
        let output = lasthop(&["trial", "read", &file.display().to_string()]);
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(said).expect("text"))
    };
    for (version, pairs, words) in
        [(2, 8, "accepted: lasthop_trial 1"), (1, 0, "plan: has 0 pairs of blocks of 9 s; accepted: ")]
    {
        let (code, said) = read(version, pairs);
        assert!(code == Some(2) && said.contains(words), "{said}");
    }
    let (code, said) = read(1, 8);
    let again = said.lines().find(|line| line.starts_with("sent again")).expect("it was measured");
    assert!(code == Some(0) && again.contains(" 100 %") && !again.contains("500"), "{said}");
}
