//! `lasthop export`: the files are there, whole, and of the run.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn lasthop(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lasthop"));
    command.args(arguments).current_dir(format!("{}/../..", env!("CARGO_MANIFEST_DIR"))).stdin(Stdio::null());
    command.output().expect("the command starts")
}

#[track_caller]
fn done(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// An ordinary home for 6 s, in this folder.
fn home(out: &str) {
    let short = ["--set", "duration_s=6", "--set", "warmup_s=2", "--json", "--out", out];
    done(&lasthop(&[&["run", "scenarios/home.toml"][..], &short].concat()));
}

#[test]
fn a_run_is_exported_as_tables_for_flent_and_in_the_shape_of_iperf3() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let out = path("out");
    home(&out);
    done(&lasthop(&["export", &out, "--format", "csv", "--out", &path("tables")]));
    for name in ["flows.csv", "series.csv", "queues.csv", "datagrams.csv"] {
        let text = fs::read_to_string(Path::new(&path("tables")).join(name)).expect("a table");
        assert!(text.lines().count() > 5, "{name}: {text}");
    }
    let flows = done(&lasthop(&["export", &out, "--format", "csv"]));
    assert_eq!(flows.lines().count(), 11, "{flows}");
    assert!(flows.starts_with("id,host,direction,kind,") && flows.contains("datagrams_lost_share"), "{flows}");

    done(&lasthop(&["export", &out, "--format", "flent", "--out", &path("home.flent.gz")]));
    let packed = fs::read(path("home.flent.gz")).expect("a file");
    // RFC 1952 §2.3.1.
    assert_eq!(packed[..3], [0x1f, 0x8b, 8]);
    let flent: serde_json::Value =
        serde_json::from_str(&done(&lasthop(&["export", &out, "--format", "flent"]))).expect("JSON");
    let pings = flent["results"]["Ping (ms)::UDP flow 2 (call)"].as_array().expect("the pings");
    assert!(pings.len() == 30 && pings.iter().filter(|ping| ping.is_number()).count() > 5, "{pings:?}");
    assert!(flent["results"]["TCP download::flow 3 (film)"].is_array());

    // Of a result.json alone there are no intervals.
    let alone = path("alone.json");
    fs::copy(Path::new(&out).join("result.json"), &alone).expect("a copy");
    for (from, intervals) in [(&out, 6), (&alone, 0)] {
        let text = done(&lasthop(&["export", from, "--format", "iperf3"]));
        let iperf3: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(iperf3["intervals"].as_array().map(Vec::len), Some(intervals));
        assert_eq!(iperf3["end"]["streams"].as_array().map(Vec::len), Some(7));
    }
}

#[test]
fn what_is_no_run_is_refused_with_what_is_one() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("comparison.json"), "{}").expect("a file");
    let of_several = folder.path().display().to_string();
    for (path, said) in [(of_several.as_str(), "export one of them, a folder in its cases/"), ("nowhere", "nowhere")] {
        let output = lasthop(&["export", path, "--format", "csv"]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && error.contains(said), "{error}");
    }
}

#[test]
fn no_file_of_a_result_or_of_another_run_is_lost() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let out = path("out");
    home(&out);
    let before = fs::read(path("out/result.json")).expect("a result");
    fs::create_dir(path("other")).expect("a folder");
    fs::write(path("other/datagrams.csv"), "of another run").expect("a file");
    fs::remove_file(path("out/datagrams.parquet")).expect("the datagrams");
    for (format, to, said) in [
        ("iperf3", "out/result.json", "has a result"),
        ("flent", "out/new.flent", "has a result"),
        ("csv", "out", "has a result"),
        ("csv", "other", "there is a datagrams.csv already"),
        ("iperf3", "nowhere/file.json", "what was there is as before"),
    ] {
        let output = lasthop(&["export", &out, "--format", format, "--out", &path(to)]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && error.contains(said), "{format} {to}: {error}");
    }
    assert_eq!(fs::read(path("out/result.json")).expect("a result"), before);
    assert_eq!(fs::read_dir(path("other")).expect("a folder").count(), 1);

    fs::remove_file(path("out/series.parquet")).expect("the series");
    let output = lasthop(&["export", &out, "--format", "iperf3", "--out", &path("file.json")]);
    done(&output);
    assert!(String::from_utf8_lossy(&output.stderr).contains("no series.parquet"), "{output:?}");
}
