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
    for name in ["flows.csv", "series.csv", "queues.csv", "datagrams.csv", "transfers.csv"] {
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
fn the_help_names_each_table_and_both_formats_for_other_tools() {
    let help = done(&lasthop(&["export", "--help"]));
    let tables = lasthop_report::export::TABLES.map(|name| name.trim_end_matches(".csv"));
    for word in tables.into_iter().chain(["flent", "iperf3"]) {
        assert!(help.contains(word), "{word}: {help}");
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
    fs::write(path("mine.json"), "{ \"mine\": 1 }").expect("a file");
    fs::write(path("mine.flent.gz"), [0x1f, 0x8b, 8]).expect("a file");
    nix::unistd::mkfifo(path("pipe").as_str(), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    for (format, to, said) in [
        ("iperf3", "out/result.json", "has a result"),
        ("flent", "out/new.flent", "has a result"),
        ("csv", "out", "has a result"),
        ("csv", "other", "there is a datagrams.csv already"),
        ("iperf3", "nowhere/file.json", "what was there is as before"),
        ("iperf3", "mine.json", "it is something else, which lasthop does not replace"),
        ("flent", "mine.flent.gz", "it is something else, which lasthop does not replace"),
        ("flent", "pipe", "it is a pipe or a device"),
        ("csv", "mine.json", "mine.json"),
    ] {
        let output = lasthop(&["export", &out, "--format", format, "--out", &path(to)]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && error.contains(said), "{format} {to}: {error}");
    }
    assert_eq!(fs::read(path("out/result.json")).expect("a result"), before);
    assert_eq!(fs::read_dir(path("other")).expect("a folder").count(), 1);

    assert_eq!(fs::read_to_string(path("mine.json")).expect("there"), "{ \"mine\": 1 }");
    // Its own are replaced, compressed or not.
    for (format, to) in [("iperf3", "a.json"), ("flent", "a.flent"), ("flent", "a.flent.gz")] {
        let written = ["", "again"].map(|_| {
            done(&lasthop(&["export", &out, "--format", format, "--out", &path(to)]));
            fs::read(path(to)).expect("an export")
        });
        assert_eq!(written[0], written[1]);
    }

    fs::remove_file(path("out/series.parquet")).expect("the series");
    let output = lasthop(&["export", &out, "--format", "iperf3", "--out", &path("file.json")]);
    done(&output);
    assert!(String::from_utf8_lossy(&output.stderr).contains("no series.parquet"), "{output:?}");
}

#[test]
fn a_result_beside_the_series_of_another_run_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out").display().to_string();
    home(&out);
    let result = fs::read_to_string(Path::new(&out).join("result.json")).expect("a result");
    let other = folder.path().join("out/other.json");
    fs::write(&other, result.replacen("\"seed\": 1", "\"seed\": 2", 9)).expect("a file");
    let output = lasthop(&["export", &other.display().to_string(), "--format", "iperf3"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && error.contains("series.parquet: it is of another run"), "{error}");
}

/// Each kind of traffic as a block of flows, and whether flent's and iperf3's formats have a place for it.
const KINDS: [(&str, &str, bool, bool); 9] = [
    ("bulk", "", true, true),
    ("on-off", "on_s = 1\noff_s = 1", true, true),
    ("interactive", "", true, true),
    ("transfers", "transfer_kib = 20\noff_s = 0.2", true, true),
    ("video", "direction = \"down\"", true, true),
    ("ping", "", true, false),
    ("constant", "", true, true),
    ("quic", "", false, false),
    ("saturated", "", false, false),
];

fn flows_of(kind: &str, keys: &str) -> String {
    format!("[[hosts.flows]]\nkind = \"{kind}\"\n{keys}\n")
}

/// The flow of this number and kind is in what `export` writes, or it is refused by name with the kinds that there are.
fn shown_or_refused(out: &str, number: usize, kind: &str, format: &str, has_place: bool) {
    let output = lasthop(&["export", out, "--format", format, "--flows", &number.to_string()]);
    let (text, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(!text.contains("-0.0"), "{format}, {kind}: {text}");
    if has_place {
        assert_eq!(output.status.code(), Some(0), "{format}, {kind}: {error}");
        let document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let flow = format!("flow {number} (");
        if format == "flent" {
            let results = document["results"].as_object().expect("streams");
            let mut of_flow = results.iter().filter(|(name, _)| name.contains(&flow));
            let has_values =
                |values: &serde_json::Value| values.as_array().is_some_and(|all| all.iter().any(|of| of.is_number()));
            assert!(of_flow.any(|(_, values)| has_values(values)), "{kind}: {text}");
        } else {
            let streams = document["end"]["streams"].as_array().expect("streams");
            assert!(text.contains(&flow) && streams.len() == 1, "{kind}: {text}");
            let end = &streams[0][if kind == "constant" { "udp" } else { "receiver" }];
            assert!(end["bytes"].as_u64() > Some(0) && end["bits_per_second"].as_f64() > Some(0.0), "{kind}: {end}");
            let target = &document["start"]["test_start"]["target_bitrate"];
            assert_eq!(target.as_u64() > Some(0), kind == "constant", "{kind}: {target}");
        }
    } else {
        assert!(output.status.code() == Some(2) && text.is_empty(), "{format}, {kind}: {text} {error}");
        for word in [&format!("flow {number} ("), &format!("of kind {kind}"), format, "bulk", "accepted"] {
            assert!(error.contains(word), "{format}, {kind}: no {word} in {error}");
        }
    }
}

/// What is 0 or absent of a flow in flows.csv: nothing that flows of its kind do not have.
fn assert_csv(out: &str, number: usize, kind: &str) {
    let text = done(&lasthop(&["export", out, "--format", "csv", "--flows", &number.to_string()]));
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    let [heads, row] = rows.as_slice() else { panic!("{kind}: {text}") };
    let cell = |name: &str| heads.iter().position(|head| *head == name).map_or("", |at| row[at]);
    assert_eq!((cell("id"), cell("kind")), (number.to_string().as_str(), kind));
    assert_eq!(cell("goodput_mbps").is_empty(), kind == "ping", "{text}");
    let is_udp = ["ping", "constant", "saturated"].contains(&kind);
    assert_eq!(cell("retransmits").is_empty(), is_udp, "{text}");
    assert_eq!(cell("datagrams_sent").is_empty(), !["ping", "constant"].contains(&kind), "{text}");
}

/// Cites ../shared/cases/empty-export: pings alone gave iperf3's format -0.0 bit/s and exit code 0.
#[test]
fn each_format_shows_a_flow_of_each_kind_or_names_it() {
    let folder = tempfile::tempdir().expect("a folder");
    for (kind, keys, flent, iperf3) in KINDS {
        let file = folder.path().join(format!("{kind}.toml"));
        let text = format!("duration_s = 6\nwarmup_s = 2\n[[hosts]]\n{}", flows_of(kind, keys));
        fs::write(&file, text).expect("a file");
        let out = folder.path().join(kind).display().to_string();
        done(&lasthop(&["run", &file.display().to_string(), "--json", "--out", &out]));
        shown_or_refused(&out, 0, kind, "flent", flent);
        shown_or_refused(&out, 0, kind, "iperf3", iperf3);
        assert_csv(&out, 0, kind);
        // Without samples flent has nothing to show.
        fs::remove_file(Path::new(&out).join("series.parquet")).expect("the series");
        shown_or_refused(&out, 0, kind, "flent", false);
    }
}

#[test]
fn each_format_shows_a_flow_of_each_kind_of_kernel_hosts() {
    if !crate::common::can_run() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    // The others are of simulated hosts alone.
    let kinds = || KINDS.into_iter().filter(|(kind, ..)| *kind != "quic" && *kind != "saturated");
    let flows: String = kinds().map(|(kind, keys, ..)| flows_of(kind, keys)).collect();
    let file = folder.path().join("all.toml");
    fs::write(&file, format!("duration_s = 6\nwarmup_s = 2\n[[hosts]]\n{flows}")).expect("a file");
    let out = folder.path().join("out").display().to_string();
    let run = crate::common::on_kernel_hosts(&["run", &file.display().to_string(), "--json", "--out", &out]).output();
    // A late run has the flows as well.
    let run = run.expect("the command starts");
    assert!(matches!(run.status.code(), Some(0 | 1)), "{}", String::from_utf8_lossy(&run.stderr));
    for (number, (kind, _, flent, iperf3)) in kinds().enumerate() {
        shown_or_refused(&out, number, kind, "flent", flent);
        shown_or_refused(&out, number, kind, "iperf3", iperf3);
        assert_csv(&out, number, kind);
    }
}

#[test]
fn what_is_left_out_is_named_and_flows_can_be_picked() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out").display().to_string();
    home(&out);
    let output = lasthop(&["export", &out, "--format", "iperf3"]);
    let text = done(&output);
    let said = String::from_utf8_lossy(&output.stderr);
    for flow in ["flow 0 (call) of kind constant", "flow 1 (call) of kind constant", "flow 2 (call) of kind ping"] {
        assert!(said.contains(&format!("left out: {flow}")) && text.contains(flow), "{flow}: {said}");
    }
    // The calls alone are UDP.
    let text = done(&lasthop(&["export", &out, "--format", "iperf3", "--flows", "0,1"]));
    let document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let start = &document["start"]["test_start"];
    // 172 bytes of 200, 50 times a second.
    assert_eq!((start["protocol"].as_str(), start["target_bitrate"].as_u64()), (Some("UDP"), Some(68_800)));
    for (flows, said) in
        [("7,99", "there is no flow 99; accepted: 0 to 9"), ("2", "flow 2 (call) of kind ping"), ("x", "--flows")]
    {
        let output = lasthop(&["export", &out, "--format", "iperf3", "--flows", flows]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && error.contains(said), "{flows}: {error}");
    }
}
