//! Simulated hosts against kernel hosts: the same scenario in both habitats. Needs root; in real time.
//!
//! Host queues of 300 packets and send buffers out of the way, so that both TCPs are limited by the same queue: how many
//! segments a send buffer holds is a matter of the kernel's memory accounting (docs/models/tcp.md). A kernel host's
//! run does not repeat exactly and is compared with the mean over the seeds of the simulated ones.

mod common;

use common::{can_run, lasthop, result, say, valid_run};
use scenario::RunResult;

const SEEDS: u64 = 5;
/// Runs of kernel hosts at most.
const RUNS: usize = 5;

/// The middle one of an odd number of figures.
fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// Compares kernel hosts with simulated ones: one run, and on a machine where that is apart the median of three or of
/// five, for what disturbs the hosts' own threads is not all seen in a run's lateness.
fn compare(hosts: u32, rtt_ms: u32, policy: &str) {
    if !can_run() {
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
    let arguments = ["run", "scenarios/ten-uploads.toml", "--json"].into_iter();
    let arguments: Vec<&str> =
        arguments.chain(settings.iter().flat_map(|setting| ["--set", setting.as_str()])).collect();
    let of = |result: &RunResult| (result.aggregate_goodput_mbps, result.rtt_ms.expect("it was measured").p50);
    let simulated: Vec<(f64, f64)> = (1..=SEEDS)
        .map(|seed| {
            let output = lasthop(&arguments).args(["--seed", &seed.to_string()]).output().expect("the command starts");
            of(&result(&output))
        })
        .collect();
    let mean = |figure: fn(&(f64, f64)) -> f64| simulated.iter().map(figure).sum::<f64>() / SEEDS as f64;
    let (goodput, rtt) = (mean(|figures| figures.0), mean(|figures| figures.1));
    let mut runs: Vec<(f64, f64)> = Vec::new();
    loop {
        let Some(run) = valid_run(&arguments) else { return };
        runs.push(of(&run));
        if runs.len().is_multiple_of(2) {
            continue;
        }
        let kernel_goodput = median(runs.iter().map(|figures| figures.0));
        let kernel_rtt = median(runs.iter().map(|figures| figures.1));
        println!("| {hosts} | {rtt_ms} | {policy} | {kernel_goodput:.1} | {goodput:.1} | {kernel_rtt:.0} | {rtt:.0} |");
        let apart = |ours: f64, theirs: f64| (ours / theirs - 1.0).abs();
        if apart(goodput, kernel_goodput) <= 0.10 && apart(rtt, kernel_rtt) <= 0.25 {
            return;
        }
        let told = format!(
            "goodput {goodput} against the kernel's {kernel_goodput} Mb/s, median round trip {rtt} against {kernel_rtt} ms"
        );
        assert!(runs.len() < RUNS, "{told}");
        say(&format!("tried again: {told}"));
    }
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
