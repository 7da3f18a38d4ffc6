//! Captures: their counts are those of the result, and tshark finds nothing wrong with them.

use lasthop_capture::Capture;
use lasthop_scenario::{Build, ResultFile as _, RunResult, Scenario};
use lasthop_sim::Options;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

/// Uploads and downloads through full queues of an access point of 802.11ac, with frame errors and agents.
const AGGREGATES: &str = "
duration_s = 1
warmup_s = 0
seed = 3
[access]
standard = \"802.11ac\"
frame_error_rate = 0.1
queue_packets = 60
queue = \"mac80211\"
[path]
rtt_ms = 30
rate_mbps = 200
loss = 0.001
[[hosts]]
count = 3
policy = \"lasthop\"
[[hosts.flows]]
[[hosts]]
count = 2
[[hosts.flows]]
direction = \"down\"
";
/// One frame a transmission.
const FRAMES: &str = "
duration_s = 3
warmup_s = 0
[access]
standard = \"802.11g\"
rate_mbps = 54
queue_packets = 20
frame_error_rate = 0.2
[path]
rtt_ms = 20
[[hosts]]
count = 4
policy = \"lasthop\"
[[hosts.flows]]
[[hosts]]
count = 3
[[hosts.flows]]
direction = \"down\"
";
/// No air.
const WIRE: &str = "
duration_s = 4
warmup_s = 0
[access]
kind = \"wired\"
rate_mbps = 20
queue_packets = 15
[path]
rtt_ms = 20
[[hosts]]
count = 2
[[hosts.flows]]
direction = \"down\"
[[hosts]]
[[hosts.flows]]
";

/// QUIC both ways, beside TCP.
const QUIC: &str = "
duration_s = 3
warmup_s = 0
[access]
queue_packets = 20
[path]
rtt_ms = 20
loss = 0.001
[[hosts]]
[[hosts.flows]]
kind = \"quic\"
[[hosts]]
[[hosts.flows]]
kind = \"quic\"
direction = \"down\"
[[hosts]]
";

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("not poisoned").extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A packet of the file.
struct Shown {
    interface: String,
    at_ns: u64,
    size: u32,
    bytes: Vec<u8>,
    comment: String,
}

fn run(text: &str) -> (RunResult, Vec<u8>) {
    let scenario = Scenario::from_toml("some.toml", text, &[]).unwrap_or_else(|error| panic!("{error}"));
    let stop = AtomicBool::new(false);
    let options = Options { build: Build::default(), series: false, stop: &stop, progress: &|_| {}, on_sample: None };
    let plain = lasthop_sim::run(&scenario, &options).expect("it runs").expect("not stopped").0;
    let file = Shared::default();
    let hosts = scenario.host_names();
    let has_air = !text.contains("wired");
    let mut capture = Capture::new(Box::new(file.clone()), 128, &hosts, has_air);
    let shown = lasthop_sim::run_captured(&scenario, &options, &mut |_| Ok(None), &mut capture);
    let shown = shown.expect("it runs").expect("not stopped").0;
    capture.finish().expect("memory takes everything");
    assert_eq!(plain.to_json(), shown.to_json(), "a capture changes no result");
    let bytes = file.0.lock().expect("not poisoned").clone();
    (shown, bytes)
}

/// Reads the blocks of a pcapng file.
fn read(file: &[u8]) -> Vec<Shown> {
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().expect("four bytes"));
    let half = |at: usize| u16::from_le_bytes(file[at..at + 2].try_into().expect("two bytes"));
    let option = |mut at: usize, end: usize, code: u16| {
        while at < end {
            let (kind, length) = (half(at), usize::from(half(at + 2)));
            if kind == code {
                return String::from_utf8(file[at + 4..at + 4 + length].to_vec()).expect("text");
            }
            at += 4 + length.next_multiple_of(4);
        }
        String::new()
    };
    let (mut at, mut interfaces, mut packets) = (0, Vec::new(), Vec::new());
    while at < file.len() {
        let length = word(at + 4) as usize;
        assert_eq!(word(at + length - 4), word(at + 4), "a block has its length twice");
        let end = at + length - 4;
        match word(at) {
            1 => interfaces.push(option(at + 16, end, 2)),
            6 => {
                let kept = word(at + 20) as usize;
                assert!(kept <= 128, "{kept} bytes are more than the limit");
                packets.push(Shown {
                    interface: interfaces[word(at + 8) as usize].clone(),
                    at_ns: u64::from(word(at + 12)) << 32 | u64::from(word(at + 16)),
                    size: word(at + 24),
                    bytes: file[at + 28..at + 28 + kept].to_vec(),
                    comment: option(at + 28 + kept.next_multiple_of(4), end, 1),
                });
            }
            _ => {}
        }
        at += length;
    }
    assert!(packets.is_sorted_by_key(|packet| packet.at_ns), "time does not go back");
    packets
}

/// The counts of the file are those of the result, which has no warm-up.
fn agrees(result: &RunResult, shown: &[Shown]) {
    let lost = |place: &str, cause: &str| {
        let is_it = |packet: &&Shown| {
            packet.interface == "lost" && packet.comment.starts_with(&format!("lost: {cause} at {place}"))
        };
        shown.iter().filter(is_it).count() as u64
    };
    let access = &result.access;
    assert_eq!(lost("access_point", "queue full") + lost("access_point", "CoDel"), access.downlink_drops);
    assert_eq!(lost("host_", "queue full"), access.uplink_drops);
    let retry_limit = shown.iter().filter(|packet| packet.comment.contains("lost: retry limit")).count() as u64;
    assert_eq!(retry_limit, access.retry_drops);
    let path = |cause: &str| lost("path_up", cause) + lost("path_down", cause);
    assert_eq!(path("queue full") + path("random loss"), access.path_drops);

    let air: Vec<_> = shown.iter().filter(|packet| packet.interface == "air").collect();
    let data = air.iter().filter(|packet| packet.bytes[usize::from(packet.bytes[2])] & 0x0c == 8);
    let retries = data.filter(|packet| packet.bytes[usize::from(packet.bytes[2]) + 1] & 8 > 0).count() as u64;
    assert_eq!(retries, access.retries);
    let collided: BTreeSet<_> =
        air.iter().filter(|packet| packet.comment.starts_with("collision")).map(|packet| packet.at_ns).collect();
    assert_eq!(collided.len() as u64, access.collisions);

    for flow in result.flows.iter().filter(|flow| flow.kind != "quic") {
        let port = 10_000 + flow.id as u16;
        let host = format!("host-{}", flow.host);
        // At the host: the data that it sends or receives. A payload is what is behind the headers.
        let mut seqs: BTreeMap<u32, u32> = BTreeMap::new();
        let mut repeated = 0;
        for packet in shown.iter().filter(|packet| packet.interface == host && packet.bytes[9] == 6) {
            let tcp = &packet.bytes[20..];
            let (from, to) = (u16::from_be_bytes([tcp[0], tcp[1]]), u16::from_be_bytes([tcp[2], tcp[3]]));
            let payload = packet.size - 20 - u32::from(tcp[12] >> 4) * 4;
            let is_data = if flow.direction == lasthop_scenario::Direction::Up { from == port } else { to == port };
            if is_data && payload > 0 {
                let seq = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]);
                repeated += u64::from(seqs.insert(seq, payload).is_some());
            }
        }
        let bytes: u64 = seqs.values().map(|&payload| u64::from(payload)).sum();
        let got = flow.goodput_mbps * 1e6 / 8.0 * result.duration_s;
        if flow.direction == lasthop_scenario::Direction::Up {
            assert_eq!(repeated, flow.retransmits, "flow {}", flow.id);
            assert!(bytes as f64 >= got - 1.0, "flow {}: {bytes} sent, {got} received", flow.id);
        } else {
            // What has arrived behind a gap is not read yet.
            assert!(bytes as f64 >= got - 1.0, "flow {}: {bytes} arrived, {got} read", flow.id);
        }
        assert!(got > 0.0, "flow {} has sent something", flow.id);
    }
}

/// What tshark shows of each packet, by field; says why not where it is not installed.
fn tshark(file: &[u8]) -> Option<Vec<Vec<String>>> {
    if Command::new("tshark").arg("--version").output().is_err() {
        let _ = writeln!(io::stderr(), "skipped: tshark is not installed; the counts were read without it");
        return None;
    }
    let mut path = std::env::temp_dir();
    path.push(format!("lasthop-{}-{}.pcapng", std::process::id(), file.len()));
    std::fs::write(&path, file).expect("a file");
    let kept = Removed(path);
    let mut command = Command::new("tshark");
    command.arg("-r").arg(&kept.0).args(["-T", "fields", "-E", "separator=|"]);
    for field in FIELDS {
        command.args(["-e", field]);
    }
    for protocol in ["ip", "tcp", "udp"] {
        command.args(["-o", &format!("{protocol}.check_checksum:TRUE")]);
    }
    let output = command.output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    let said: Vec<&str> = said.lines().filter(|line| !line.contains("Running as user")).collect();
    assert!(output.status.success() && said.is_empty(), "{said:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    Some(text.lines().map(|line| line.split('|').map(str::to_owned).collect()).collect())
}

/// The fields: those of the packet, and then what may be wrong with it.
const FIELDS: [&str; 9] = [
    "frame.interface_name",
    "frame.comment",
    "frame.time_epoch",
    "wlan.fc.retry",
    "_ws.expert.severity",
    "_ws.malformed",
    "ip.checksum.status",
    "tcp.checksum.status",
    "udp.checksum.status",
];
/// PI_ERROR of Wireshark.
const ERROR: u32 = 0x0080_0000;

/// A file that is removed at the end.
struct Removed(std::path::PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn holds(text: &str) {
    let (result, file) = run(text);
    let shown = read(&file);
    agrees(&result, &shown);
    let Some(packets) = tshark(&file) else { return };
    assert_eq!(packets.len(), shown.len());
    for (number, packet) in packets.iter().enumerate() {
        let severity = packet[4].split(',').filter_map(|severity| severity.parse::<u32>().ok()).max();
        let bad_sum = packet[6..9].iter().any(|status| status == "0" || status == "Bad");
        let is_wrong = severity >= Some(ERROR) || !packet[5].is_empty() || bad_sum;
        assert!(!is_wrong, "tshark finds fault with packet {}: {packet:?}", number + 1);
    }
    let access = &result.access;
    let on_air: Vec<_> = packets.iter().filter(|packet| packet[0] == "air").collect();
    assert_eq!(on_air.iter().filter(|packet| packet[3] == "1").count() as u64, access.retries);
    let collided = on_air.iter().filter(|packet| packet[1].starts_with("collision")).map(|packet| &packet[2]);
    assert_eq!(collided.collect::<BTreeSet<_>>().len() as u64, access.collisions);
    let given_up = packets.iter().filter(|packet| packet[1].starts_with("lost: retry limit"));
    assert_eq!(given_up.count() as u64, access.retry_drops);
}

#[test]
fn a_capture_of_aggregates_agrees_with_the_result() {
    holds(AGGREGATES);
}

#[test]
fn a_capture_of_single_frames_agrees_with_the_result() {
    holds(FRAMES);
}

#[test]
fn a_capture_of_quic_has_its_datagrams() {
    holds(QUIC);
    let (result, file) = run(QUIC);
    let shown = read(&file);
    for flow in &result.flows[..2] {
        let host = format!("host-{}", flow.host);
        let of_host = shown.iter().filter(|packet| packet.interface == host);
        let ports = |packet: &&Shown| [20, 22].map(|at| u16::from_be_bytes([packet.bytes[at], packet.bytes[at + 1]]));
        let [up, down]: [Vec<u32>; 2] = [0, 1].map(|end| {
            let is_it = |packet: &&Shown| packet.bytes[9] == 17 && ports(packet)[end] == 10_000 + flow.id as u16;
            of_host.clone().filter(is_it).map(|packet| packet.size).collect()
        });
        // The client's Initial, with the headers of IP and UDP; as far as the search for the MTU has come.
        assert_eq!((up[0], down[0]), (1_228, 1_228));
        let data = if flow.direction == lasthop_scenario::Direction::Up { &up } else { &down };
        assert!(data.iter().max().is_some_and(|most| (1_300..=1_480).contains(most)), "{:?}", data.iter().max());
        // Some 32 bytes of each datagram are no data, and 28 more are headers.
        let got = flow.goodput_mbps * 1e6 / 8.0 * result.duration_s;
        let sent: f64 = data.iter().map(|&size| f64::from(size)).sum();
        assert!((1.03..1.5).contains(&(sent / got)), "flow {}: {sent} in packets, {got} received", flow.id);
    }
}

#[test]
fn a_capture_without_air_agrees_with_the_result() {
    holds(WIRE);
}
