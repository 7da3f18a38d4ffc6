//! Pacing alike on simulated and on kernel hosts: the rate itself from the series, the spacing of packets from the capture, and what
//! small queues let wait below the sender from the length of its host's queue.

use crate::common::{can_emulate, in_virtual_time, lasthop, result, say};
use std::path::Path;

/// Bounds each connection to WINDOW segments, and has TCP pace it if PACED is true.
const PROGRAM: &str = r#"
import json, sys
sys.stdin.readline()
for line in sys.stdin:
    limits = {"max_segments": WINDOW, "paced": PACED}
    seen = json.loads(line)["flows"]
    print(json.dumps({"flows": [{"id": flow["id"]} | limits for flow in seen], "new_flows": limits}), flush=True)
"#;

/// What pacing does to one upload.
#[derive(Debug)]
struct Paced {
    /// The pacing rate in windows a smoothed round trip, over what it is to be: 2 in the first half of slow start, else 1.2.
    rate: f64,
    /// Packets that leave within 10 ms, the mean over all of them.
    in_10_ms: f64,
    /// The same over what the pacing rate carries in that time.
    spread: f64,
    /// What waits in the host's queue, the mean, over what small queues permit: two packets of 8 ms of the pacing rate.
    queued: f64,
    goodput_mbps: f64,
}

/// When data packets left host 0 after the warm-up, in seconds, from a capture as docs/guide/export.md has it.
fn departures(capture: &Path, warmup_s: f64) -> Vec<f64> {
    let bytes = std::fs::read(capture).expect("a capture");
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    let (mut at, mut interfaces, mut times) = (0, Vec::new(), Vec::new());
    while at < bytes.len() {
        let block = &bytes[at..at + word(at + 4) as usize];
        match word(at) {
            1 => interfaces.push(block.windows(6).any(|name| name == b"host-0")),
            // Its address is 10.77.0.1; what is shorter carries no data.
            6 if interfaces[word(at + 8) as usize] && block[40..44] == [10, 77, 0, 1] && word(at + 24) > 1000 => {
                times.push((u64::from(word(at + 12)) << 32 | u64::from(word(at + 16))) as f64 / 1e9);
            }
            _ => {}
        }
        at += block.len();
    }
    times.retain(|at| *at > warmup_s);
    times
}

/// One upload of a host of today under an external policy.
fn paced(on_kernel: bool, window: u32, paced: bool, rtt_ms: u32) -> Paced {
    const WARMUP_S: f64 = 3.0;
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let program = PROGRAM.replace("WINDOW", &window.to_string()).replace("PACED", if paced { "True" } else { "False" });
    let settings = [
        "hosts.0.count=1".into(),
        "hosts.0.era=modern".into(),
        "hosts.0.tcp.tsq_pacing_shift=7".into(),
        "hosts.0.flows.0.start_s=0".into(),
        "hosts.0.policy=external".into(),
        format!("hosts.0.command={:?}", ["python3", "-c", &program]),
        format!("path.rtt_ms={rtt_ms}"),
        "duration_s=8".into(),
        format!("warmup_s={WARMUP_S}"),
    ];
    let (out, capture) = (path("out"), path("packets.pcapng"));
    let mut arguments = vec!["run", "scenarios/ten-uploads.toml", "--json", "--out", &out, "--pcap", &capture];
    settings.iter().for_each(|setting: &String| arguments.extend(["--set", setting]));
    let run = if on_kernel {
        in_virtual_time(&arguments)
    } else {
        result(&lasthop(&arguments).output().expect("the command starts"))
    };
    let series = lasthop_report::read_run(Path::new(&out)).expect("a result and its series").1;
    let flows = &series.flows;
    let rows = || (0..flows.len()).filter(|row| flows.t_s[*row] > WARMUP_S);
    let rates = rows().map(|row| {
        let window_bits = f64::from(flows.cwnd_segments[row].max(flows.in_flight_segments[row])) * 1448.0 * 8.0;
        let windows =
            flows.pacing_mbps[row].expect("a rate") * 1e3 * flows.srtt_ms[row].expect("round trips") / window_bits;
        let in_slow_start = flows.ssthresh_segments[row].is_none_or(|ssthresh| flows.cwnd_segments[row] < ssthresh / 2);
        windows / if in_slow_start { 2.0 } else { 1.2 }
    });
    let mut rates: Vec<f64> = rates.collect();
    rates.sort_by(f64::total_cmp);
    let pacing_bps = rows().filter_map(|row| flows.pacing_mbps[row]).sum::<f64>() * 1e6 / rates.len() as f64;
    let times = departures(Path::new(&capture), WARMUP_S);
    let soon = |at: &f64| times.iter().filter(|time| (*at..at + 0.01).contains(time)).count() as f64;
    let queue: Vec<f64> =
        series.queues.of_place("host_0").filter(|(t_s, _)| *t_s > WARMUP_S).map(|(_, n)| n.into()).collect();
    let in_10_ms = times.iter().map(soon).sum::<f64>() / times.len() as f64;
    Paced {
        rate: rates[rates.len() / 2],
        in_10_ms,
        spread: in_10_ms / (pacing_bps * 0.01 / (8.0 * 1448.0)),
        queued: queue.iter().sum::<f64>() / queue.len() as f64 * 1500.0 * 8.0 / (2.0 * pacing_bps / 128.0),
        goodput_mbps: run.aggregate_goodput_mbps,
    }
}

fn alike(what: &str, kernel: f64, simulated: f64, most: f64) {
    let ratio = kernel / simulated;
    assert!((1.0 / most..=most).contains(&ratio), "{what}: {kernel} on kernel hosts, {simulated} on simulated ones");
}

/// Forty segments on a path of 100 ms, less than it carries: they leave spread over the round trip, and wait nowhere.
#[test]
fn a_paced_window_is_spread_alike_in_both_habitats() {
    if !can_emulate() {
        return;
    }
    let unpaced = paced(false, 40, false, 100);
    let simulated = paced(false, 40, true, 100);
    let kernel = paced(true, 40, true, 100);
    say(&format!("unpaced {unpaced:?}\nsimulated {simulated:?}\nkernel {kernel:?}"));
    assert!([simulated.rate, kernel.rate].iter().all(|rate| (rate - 1.0).abs() < 0.02), "{kernel:?}, {simulated:?}");
    // A kernel host takes time to answer, which spreads them further.
    alike("packets in 10 ms over what the rate carries", kernel.spread, simulated.spread, 1.5);
    alike("goodput", kernel.goodput_mbps, simulated.goodput_mbps, 1.05);
    assert!(kernel.in_10_ms.max(simulated.in_10_ms) < 0.75 * unpaced.in_10_ms, "{kernel:?} and unpaced {unpaced:?}");
    assert!(kernel.queued < 0.5 && simulated.queued < 0.5, "{kernel:?}, {simulated:?}");
}

/// Two hundred segments on a path of 20 ms, several times what it carries: small queues let twice 8 ms of the pacing rate wait at the
/// host, no more, whatever the window is.
#[test]
#[ignore = "long: make test-virtual-time"]
fn small_queues_hold_back_a_paced_window_alike_in_both_habitats() {
    if !can_emulate() {
        return;
    }
    let simulated = paced(false, 200, true, 20);
    let kernel = paced(true, 200, true, 20);
    say(&format!("simulated {simulated:?}\nkernel {kernel:?}"));
    assert!([simulated.rate, kernel.rate].iter().all(|rate| (rate - 1.0).abs() < 0.02), "{kernel:?}, {simulated:?}");
    // The valve before a kernel host's device lets more through when a quarter is missing. Unlimited it would be several times as
    // much.
    assert!(
        [simulated.queued, kernel.queued].iter().all(|share| (0.5..=1.1).contains(share)),
        "{kernel:?}, {simulated:?}"
    );
    alike("goodput", kernel.goodput_mbps, simulated.goodput_mbps, 1.1);
}
