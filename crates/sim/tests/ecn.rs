//! Marks of ECN, from the queue to the sender.

use lasthop_capture::Capture;
use lasthop_scenario::{Build, Override, RunResult, Scenario};
use lasthop_sim::Options;
use std::io::{self, Write};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

/// Two downloads through 20 Mb/s.
const BOTTLENECK: &str = "
duration_s = 12
warmup_s = 2
[access]
kind = \"wired\"
rate_mbps = 20
queue = \"fq_codel\"
queue_packets = 1000
[path]
rtt_ms = 30
[[hosts]]
count = 2
era = \"modern\"
[hosts.tcp]
ecn = \"on\"
[[hosts.flows]]
direction = \"down\"
";

fn scenario(overrides: &[&str]) -> Scenario {
    let overrides: Vec<Override> = overrides.iter().map(|text| Override::parse(text).expect("an override")).collect();
    Scenario::from_toml("ecn.toml", BOTTLENECK, &overrides).unwrap_or_else(|error| panic!("{error}"))
}

fn options(stop: &AtomicBool) -> Options<'_> {
    Options { build: Build::default(), series: false, stop, progress: &|_| {}, on_sample: None }
}

fn run(overrides: &[&str]) -> RunResult {
    let (scenario, stop) = (scenario(overrides), AtomicBool::new(false));
    let outcome = lasthop_sim::run(&scenario, &options(&stop)).unwrap_or_else(|error| panic!("{error}"));
    outcome.expect("the run was not stopped").0
}

/// Segments sent again, and those that echoes of a mark delivered.
fn told(result: &RunResult) -> (u64, u64) {
    result.flows.iter().fold((0, 0), |(again, ce), flow| (again + flow.retransmits, ce + flow.delivered_ce))
}

/// PIE marks below a drop probability of 10 % only, and slow start goes beyond that.
#[test]
fn a_queue_that_manages_itself_marks_instead_of_dropping_and_nothing_is_sent_again() {
    for queue in ["codel", "fq_codel", "pie", "fq_pie", "red", "cake"] {
        let queue = format!("access.queue={queue}");
        let [with, without] = ["on", "off"].map(|ecn| run(&[&queue, &format!("hosts.0.tcp.ecn={ecn}")]));
        let ((again, echoed), (again_without, _)) = (told(&with), told(&without));
        assert!(with.access.downlink_marks > 0 && with.access.downlink_drops == 0, "{queue}: {:?}", with.access);
        assert!(again == 0 && echoed >= with.access.downlink_marks, "{queue}: {again}, {echoed}");
        assert!(with.utilization > 0.93, "{queue}: {}", with.utilization);
        assert!(without.access.downlink_marks == 0 && without.access.downlink_drops > 0, "{queue}");
        assert!(again_without > 0 && told(&without).1 == 0, "{queue}");
    }
}

#[test]
fn a_fifo_never_marks_and_a_full_queue_drops_what_could_be_marked() {
    for (queue, packets, marks) in [("fifo", 30, false), ("fq_codel", 12, true)] {
        let result = run(&[&format!("access.queue={queue}"), &format!("access.queue_packets={packets}")]);
        assert!(result.access.downlink_drops > 0, "{queue}");
        assert_eq!(result.access.downlink_marks > 0, marks, "{queue}");
    }
}

#[test]
fn a_path_that_bleaches_lets_nobody_be_told_so_the_queue_drops() {
    let result = run(&["path.bleach_ecn=true"]);
    assert!(result.access.downlink_marks == 0 && result.access.downlink_drops > 0, "{:?}", result.access);
    assert_eq!(told(&result).1, 0);
}

#[test]
fn a_threshold_marks_below_codels_target() {
    let [plain, threshold] = [vec![], vec!["access.ce_threshold_ms=1"]].map(|more| run(&more));
    assert!(threshold.access.downlink_marks > 2 * plain.access.downlink_marks, "{:?}", threshold.access);
    let queue = |result: &RunResult| result.access.downlink_queue_mean.expect("a queue");
    assert!(queue(&threshold) < queue(&plain));
}

#[test]
fn stations_of_wifi_are_told_as_well() {
    let wifi = [
        "access.kind=wifi",
        "access.standard=802.11ac",
        "access.rate_mbps=866.7",
        "access.queue=mac80211",
        "access.queue_packets=8192",
    ];
    let result = run(&[&wifi[..2], &wifi[3..], &["path.rtt_ms=60"]].concat());
    assert!(result.access.downlink_marks > 0, "{:?}", result.access);
    assert!(told(&result).1 > 0);
}

/// RFC 8257 §3.1: a threshold K, here of 20 packets of 1500 bytes at 100 Mb/s.
#[test]
fn dctcp_holds_the_queue_at_the_threshold_and_keeps_the_link() {
    let network = ["access.rate_mbps=100", "path.rtt_ms=8", "access.queue=codel", "access.ce_threshold_ms=2.4"];
    let with = |law: &str, count: u32| {
        let hosts = [format!("hosts.0.congestion_control={law}"), format!("hosts.0.count={count}")];
        let result = run(&[&network[..], &[&hosts[0], &hosts[1]]].concat());
        let access = &result.access;
        (access.downlink_queue_mean.expect("a queue"), access.downlink_queue_p95.expect("a queue"), result.utilization)
    };
    for count in [1, 2, 4] {
        let (mean, p95, utilization) = with("dctcp", count);
        assert!((10.0..=30.0).contains(&mean) && p95 <= 40.0, "{count}: {mean}, {p95}");
        assert!(utilization > 0.98, "{count}: {utilization}");
    }
    // A law that takes a mark for a loss empties the queue time and again.
    let (mean, _, _) = with("newreno", 1);
    assert!(mean < with("dctcp", 1).0, "{mean}");
}

/// RFC 9332: both get the same at the same round trip, and L4S waits a millisecond or two.
#[test]
fn prague_and_cubic_share_a_link_behind_dualpi2_and_prague_hardly_waits() {
    let second = "count=1\nera=\"modern\"\ncongestion_control=\"prague\"\n[[hosts.flows]]\ndirection=\"down\"\n";
    let text = format!("{BOTTLENECK}[[hosts]]\n{second}");
    for ecn in ["off", "on"] {
        let settings = [
            "duration_s=40",
            "warmup_s=10",
            "access.rate_mbps=40",
            "access.queue=dualpi2",
            "access.queue_packets=10000",
            "path.rtt_ms=20",
            "hosts.0.count=1",
            &format!("hosts.0.tcp.ecn={ecn}"),
        ];
        let settings = settings.map(|text| Override::parse(text).expect("an override"));
        let results = [1, 2, 3, 4, 5, 6, 7, 8].map(|seed| {
            let settings = [&settings[..], &[Override::parse(&format!("seed={seed}")).expect("an override")]].concat();
            let scenario = Scenario::from_toml("l4s.toml", &text, &settings).unwrap_or_else(|error| panic!("{error}"));
            let stop = AtomicBool::new(false);
            lasthop_sim::run(&scenario, &options(&stop)).expect("it runs").expect("not stopped").0
        });
        let shares =
            [0, 1].map(|flow| results.iter().map(|result| result.flows[flow].goodput_mbps / 40.0 / 8.0).sum::<f64>());
        let [cubic, prague] = shares;
        assert!(cubic >= 0.31 && prague >= 0.35 && cubic + prague > 0.94, "{ecn}: {cubic}, {prague}");
        for result in &results {
            let rtt = result.flows[1].rtt_per_ack_ms.expect("it was measured");
            assert!(rtt.p99 - 20.0 < 5.0, "{ecn}: {rtt:?}");
            assert_eq!(result.flows[1].retransmits, 0, "{ecn}");
        }
    }
}

/// Below 12 Mb/s a full frame takes longer than DualPI2's step; without RFC 9332's Th_len Prague alone had 0.16 of 10 Mb/s.
#[test]
fn prague_alone_fills_slow_links_behind_dualpi2() {
    for mbps in [2, 4, 10] {
        let settings = [
            "access.queue=\"dualpi2\"",
            "hosts.0.congestion_control=\"prague\"",
            "hosts.0.count=1",
            "hosts.0.tcp.ecn=\"accurate\"",
        ];
        let rate = format!("access.rate_mbps={mbps}");
        let result = run(&[&settings[..], &[&rate]].concat());
        assert!(result.aggregate_goodput_mbps > 0.85 * f64::from(mbps), "{mbps}: {}", result.aggregate_goodput_mbps);
    }
}

/// CoDel's threshold marks all that wait. Each flow still has two segments, and so the link is full and shared.
#[test]
fn a_queue_that_marks_everything_brings_no_prague_flow_to_a_stand() {
    let network = ["access.rate_mbps=2", "path.rtt_ms=2", "access.queue=codel", "access.ce_threshold_ms=0.001"];
    let result = run(&[&network[..], &["hosts.0.congestion_control=prague", "hosts.0.count=40"]].concat());
    let shares = result.flows.iter().map(|flow| flow.goodput_mbps * 40.0 / 2.0);
    let (least, most) = shares.fold((f64::MAX, 0.0_f64), |(least, most), share| (least.min(share), most.max(share)));
    assert!(result.utilization > 0.98 && least > 0.7 && most < 1.3, "{}, {least}, {most}", result.utilization);
}

/// Keeps what is written to it.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no writer has panicked").extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_capture_shows_fields_and_flags() {
    let (kept, stop) = (Kept::default(), AtomicBool::new(false));
    let scenario = scenario(&["duration_s=3"]);
    let names = scenario.host_names();
    let mut capture = Capture::new(Box::new(kept.clone()), 64, &names, false);
    let done = lasthop_sim::run_captured(&scenario, &options(&stop), &mut |_| Ok(None), &mut capture);
    let (result, _) = done.unwrap_or_else(|error| panic!("{error}")).expect("the run was not stopped");
    capture.finish().expect("memory takes all");
    let bytes = kept.0.lock().expect("no writer has panicked").clone();
    // IPv4 headers of TCP: version and length, field, ..., time to live 64, protocol 6.
    let headers = bytes.windows(40).filter(|at| at[0] == 0x45 && at[8] == 64 && at[9] == 6);
    let mut seen = [0_u64; 4];
    let mut flags = [0_u64; 4];
    for header in headers {
        seen[usize::from(header[1] & 3)] += 1;
        flags[usize::from(header[33] >> 6)] += 1;
    }
    // Not-ECT ACKs, ECT(0) data, some with CE; ECE, CWR, and both in each SYN, shown once, for the servers are no hosts.
    assert!(seen[0] > 0 && seen[1] == 0 && seen[2] > seen[3] && seen[3] >= result.access.downlink_marks, "{seen:?}");
    assert!(flags[1] > 0 && flags[2] > 0 && flags[3] == 2, "{flags:?}");
}
