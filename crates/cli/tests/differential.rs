//! Simulated hosts against kernel hosts: the same scenario in both habitats. Needs root; in real time.
//!
//! Host queues of 300 packets and send buffers out of the way, so that both TCPs are limited by the same queue: how many
//! segments a send buffer holds is a matter of the kernel's memory accounting (docs/models/tcp.md). A kernel host's
//! run does not repeat exactly and is compared with the mean over the seeds of the simulated ones.

use scenario::RunResult;
use std::process::{Command, Stdio};

const SEEDS: u64 = 5;

fn run(arguments: &[String]) -> (Option<i32>, Result<RunResult, String>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lasthop"));
    command.args(["run", "scenarios/ten-uploads.toml", "--json"]).args(arguments);
    command.current_dir(format!("{}/../..", env!("CARGO_MANIFEST_DIR"))).stdin(Stdio::null());
    let output = command.output().expect("the command starts");
    let result = RunResult::from_json(&String::from_utf8_lossy(&output.stdout));
    (output.status.code(), result.map_err(|_| String::from_utf8_lossy(&output.stderr).into_owned()))
}

/// One run that is valid. One that was not for lateness alone, because the machine was busy, is tried again, twice.
fn on_kernel_hosts(settings: &[String]) -> RunResult {
    let arguments = [settings, &["--hosts".into(), "kernel".into()]].concat();
    for _ in 0..3 {
        let (code, result) = run(&arguments);
        let result = result.unwrap_or_else(|said| panic!("{said}"));
        if code == Some(0) {
            return result;
        }
        assert!(result.invalid_reasons.iter().all(|reason| reason.contains("late")), "{:?}", result.invalid_reasons);
        eprintln!("tried again: {:?}", result.invalid_reasons);
    }
    panic!("three runs were not valid: this machine is too busy for real time");
}

fn compare(hosts: u32, rtt_ms: u32, policy: &str) {
    if !nix::unistd::geteuid().is_root() {
        assert!(std::env::var_os("LASTHOP_REQUIRE_ROOT_TESTS").is_none(), "kernel hosts need root");
        eprintln!("skipped: kernel hosts need root");
        return;
    }
    let settings = [
        format!("hosts.0.count={hosts}"),
        format!("path.rtt_ms={rtt_ms}"),
        format!("hosts.0.policy={policy}"),
        "hosts.0.queue_packets=300".into(),
        "hosts.0.send_buffer_kib=4096".into(),
        "duration_s=30".into(),
    ];
    let settings: Vec<String> = settings.iter().flat_map(|setting| ["--set".to_owned(), setting.clone()]).collect();
    let of = |result: &RunResult| (result.aggregate_goodput_mbps, result.rtt_ms.expect("it was measured").p50);
    let simulated: Vec<(f64, f64)> = (1..=SEEDS)
        .map(|seed| {
            let (_, result) = run(&[&settings[..], &["--seed".into(), seed.to_string()]].concat());
            of(&result.unwrap_or_else(|said| panic!("{said}")))
        })
        .collect();
    let mean = |figure: fn(&(f64, f64)) -> f64| simulated.iter().map(figure).sum::<f64>() / SEEDS as f64;
    let (goodput, rtt) = (mean(|figures| figures.0), mean(|figures| figures.1));
    let (kernel_goodput, kernel_rtt) = of(&on_kernel_hosts(&settings));
    println!("| {hosts} | {rtt_ms} | {policy} | {kernel_goodput:.1} | {goodput:.1} | {kernel_rtt:.0} | {rtt:.0} |");
    let apart = |ours: f64, theirs: f64| (ours / theirs - 1.0).abs();
    assert!(apart(goodput, kernel_goodput) <= 0.10, "goodput {goodput} against the kernel's {kernel_goodput} Mb/s");
    assert!(apart(rtt, kernel_rtt) <= 0.25, "median round trip {rtt} against the kernel's {kernel_rtt} ms");
}

#[test]
fn one_upload_over_a_short_path() {
    compare(1, 4, "none");
}

#[test]
fn one_upload_over_a_long_path() {
    compare(1, 256, "none");
}

#[test]
fn three_uploads_over_a_short_path() {
    compare(3, 4, "none");
}

#[test]
fn ten_uploads_over_a_short_path() {
    compare(10, 4, "none");
}

#[test]
fn three_uploads_with_the_formula() {
    compare(3, 256, "formula");
}

#[test]
fn ten_uploads_with_the_formula() {
    compare(10, 256, "formula");
}
