//! The law `lastlink` in whole runs: the gain of a true report over a lossy link, and of a false one beside other
//! flows. docs/models/lastlink.md derives the bounds.
#![allow(missing_docs)]

use lasthop_scenario::{Build, Override, RunResult, Scenario};
use lasthop_sim::Options;
use std::sync::atomic::AtomicBool;

fn run(text: &str, overrides: &[String]) -> RunResult {
    let overrides: Vec<Override> = overrides.iter().map(|text| Override::parse(text).expect("an override")).collect();
    let scenario = Scenario::from_toml("test.toml", text, &overrides).unwrap_or_else(|error| panic!("{error}"));
    let stop = AtomicBool::new(false);
    let options = Options { build: Build::default(), series: false, stop: &stop, progress: &|_| {}, on_sample: None };
    let outcome = lasthop_sim::run(&scenario, &options).unwrap_or_else(|error| panic!("{error}"));
    outcome.expect("the run was not stopped").0
}

/// Goodput of each flow in Mb/s, mean over two seeds.
fn goodputs(text: &str, overrides: &[String]) -> Vec<f64> {
    let runs = [1, 2].map(|seed| run(text, &[overrides, &[format!("seed={seed}")]].concat()));
    let mean = |flow: usize| runs.iter().map(|run| run.flows[flow].goodput_mbps).sum::<f64>() / 2.0;
    (0..runs[0].flows.len()).map(mean).collect()
}

/// A download over a lossy last link, which is also the bottleneck.
const LOSSY: &str = r#"
duration_s = 120
warmup_s = 0
[[links]]
between = ["Client", "ISP"]
rate_mbps = 20
delay_ms = 1
queue_packets = 50
back_loss = 0.005
[[links]]
between = ["ISP", "Server"]
delay_ms = 49
[[hosts]]
node = "Client"
[hosts.last_link]
report = true
[[hosts.flows]]
direction = "down"
to = "Server"
"#;

/// Seven losses of eight are ignored, so the window is at most sqrt(8) = 2.8 times NewReno's, still far from the 20
/// Mb/s. CUBIC gains more: where its window is above Reno's, it falls with the loss rate to the power of 3/4.
#[test]
fn a_true_report_of_half_a_per_cent_doubles_the_goodput() {
    let with = |law: &[&str]| goodputs(LOSSY, &law.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())[0];
    let newreno = with(&["hosts.0.congestion_control=newreno"]);
    let lastlink = with(&["hosts.0.congestion_control=lastlink"]);
    let on_cubic = with(&["hosts.0.congestion_control=lastlink", "hosts.0.lastlink.cubic=true"]);
    assert!((2.0..3.0).contains(&(lastlink / newreno)), "{newreno} {lastlink}");
    assert!(on_cubic > 2.2 * newreno, "{newreno} {on_cubic}");
    let unsaid = with(&["hosts.0.congestion_control=lastlink", "hosts.0.last_link.report=false"]);
    assert_eq!(unsaid, newreno);
}

/// Downloads through one bottleneck of 20 Mb/s. The round trip is 94 ms, so 160 packets are in flight without a queue.
/// The first client claims 1 Gb/s and an error rate of 50 %; its true link has 100 Mb/s and no losses.
const CROWD: &str = r#"
duration_s = 120
warmup_s = 20
[[links]]
between = ["Liar", "A"]
rate_mbps = 100
delay_ms = 1
[[links]]
between = ["A", "B"]
rate_mbps = 20
delay_ms = 45
[[links]]
between = ["Server", "B"]
rate_mbps = 1000
delay_ms = 1
[[links]]
between = ["H#", "A"]
rate_mbps = 100
delay_ms = 1
[[links]]
between = ["h#", "B"]
rate_mbps = 1000
delay_ms = 1
[[hosts]]
node = "Liar"
[hosts.last_link]
report = true
bandwidth_mbps = 1000
packet_error_rate = 0.5
[[hosts.flows]]
direction = "down"
to = "Server"
start_s = [0, 5]
[[hosts]]
node = "H#"
[[hosts.flows]]
direction = "down"
to = "h#"
start_s = [0, 5]
"#;

/// The gain of a lie beside honest flows.
struct Worth {
    /// The liar's goodput, divided by its goodput without a report.
    gain: f64,
    /// The liar's goodput, divided by the mean of the others.
    ratio: f64,
}

fn lie(base: &str, others: usize, queue_packets: u32, guards: &[&str]) -> Worth {
    let of = |own: &[&str]| {
        let count = ["links.3", "links.4", "hosts.1"].map(|block| format!("{block}.count={others}"));
        let common = [
            format!("links.1.queue_packets={queue_packets}"),
            format!("hosts.1.congestion_control={base}"),
            format!("hosts.0.lastlink.cubic={}", base == "cubic"),
        ];
        let own: Vec<String> = own.iter().map(|text| (*text).to_owned()).collect();
        goodputs(CROWD, &[&count[..], &common, &own].concat())
    };
    let own = format!("hosts.0.congestion_control={base}");
    let honest = of(&[&own]);
    let lying = of(&[&["hosts.0.congestion_control=lastlink"], guards].concat());
    let mean = lying[1..].iter().sum::<f64>() / others as f64;
    Worth { gain: lying[0] / honest[0], ratio: lying[0] / mean }
}

/// The law heeds one loss of eight: with NewReno, 8 times the others' goodput where all lose together.
#[test]
fn a_liar_gains_no_more_than_eight_connections_would() {
    // Queues of an eighth of the flight, and of the whole.
    for queue_packets in [20, 160] {
        let Worth { gain, ratio } = lie("newreno", 1, queue_packets, &[]);
        assert!(gain < 2.0 && ratio < 8.0, "beside one, queue {queue_packets}: {gain} {ratio}");
        let Worth { gain, ratio } = lie("newreno", 7, queue_packets, &[]);
        assert!(gain < 5.0 && ratio < 8.0, "beside seven, queue {queue_packets}: {gain} {ratio}");
        assert!(gain > 2.0, "a gain that needs a bound: {gain}");
    }
    let gain = lie("cubic", 7, 40, &[]).gain;
    assert!((2.0..6.0).contains(&gain), "on CUBIC: {gain}");
}

/// While the queue is longer than a round trip, no loss is ignored.
#[test]
fn behind_a_long_queue_a_lie_is_worth_nothing() {
    for base in ["newreno", "cubic"] {
        let gain = lie(base, 1, 320, &[]).gain;
        assert!((0.8..1.25).contains(&gain), "{base}: {gain}");
    }
}

/// With the law of [wu], without our guards, a liar takes everything.
#[test]
fn without_the_guards_a_liar_starves_the_others() {
    let guards =
        ["initial_max_segments", "error_max", "error_deviations", "memory_segments", "ignored_max", "queue_ratio"]
            .map(|guard| format!("hosts.0.lastlink.{guard}=0"));
    let guards: Vec<&str> = guards.iter().map(String::as_str).collect();
    let ratio = lie("newreno", 1, 20, &guards).ratio;
    assert!(ratio > 20.0, "{ratio}");
}
