//! Kinds of traffic: pings, datagrams at a constant rate, videos, transfers that are asked for.
#![allow(missing_docs)]

mod common;

use common::{run, try_run};
use lasthop_scenario::{DatagramResult, ResultFile as _, RunResult, TransferSample, VideoResult};

/// One host over a wire of 10 Mb/s and a path of 10 ms each way.
const WIRE: &str = "
duration_s = 40
warmup_s = 10
[access]
kind = \"wired\"
rate_mbps = 10
queue_packets = 50
[path]
rtt_ms = 20
rate_mbps = 1000
[[hosts]]
queue_packets = 50
[[hosts.flows]]
";

fn transfers(text: &str, overrides: &[&str]) -> (RunResult, Vec<TransferSample>) {
    let (result, series) = try_run(text, overrides, true).unwrap_or_else(|error| panic!("{error}"));
    (result, series.transfers.rows().collect())
}

fn datagrams(overrides: &[&str]) -> (RunResult, DatagramResult) {
    let result = run(WIRE, overrides);
    let datagrams = result.flows[0].datagrams.expect("the flow is of datagrams");
    (result, datagrams)
}

#[test]
fn a_call_over_an_idle_wire_takes_what_the_wire_takes_and_loses_nothing() {
    for direction in ["hosts.0.flows.0.direction=up", "hosts.0.flows.0.direction=down"] {
        let (result, call) = datagrams(&["hosts.0.flows.0.kind=constant", direction]);
        // 50 in a second for 30 s. The jitter of its sender has the one of the warm-up's end leave before that, and the one of
        // the very end, which is under way then.
        assert_eq!((call.sent, call.received, call.lost, call.lost_share), (1500, 1499, 0, Some(0.0)));
        let delay = call.one_way_ms.expect("delays");
        // 200 bytes: 0.16 ms at 10 Mb/s, 0.0016 ms at 1000 Mb/s, and 10 ms.
        assert!((delay.min - 10.1616).abs() < 1e-3 && (delay.max - 10.1616).abs() < 1e-3, "{direction}: {delay:?}");
        assert!(call.jitter_ms.is_some_and(|jitter| jitter < 1e-6) && call.round_trip_ms.is_none(), "{call:?}");
        // 172 bytes of payload.
        assert!((result.aggregate_goodput_mbps - 0.0688).abs() < 1e-4, "{}", result.aggregate_goodput_mbps);
        assert_eq!((result.datagrams, result.pings, result.rtt_ms), (Some(call), None, None));
        assert!(!result.flows[0].always_busy);
    }
}

#[test]
fn a_ping_comes_back_from_either_end() {
    for direction in ["hosts.0.flows.0.direction=up", "hosts.0.flows.0.direction=down"] {
        let (result, ping) = datagrams(&["hosts.0.flows.0.kind=ping", direction]);
        // Each 200 ms for 30 s, of which the last is under way at the end. 84 bytes: 0.0672 and 0.000672 ms each way.
        assert_eq!((ping.sent, ping.received, ping.lost), (150, 149, 0));
        let trip = ping.round_trip_ms.expect("round trips");
        assert!((trip.min - 20.1357).abs() < 1e-3 && (trip.max - 20.1357).abs() < 1e-3, "{direction}: {trip:?}");
        assert_eq!((result.pings, result.datagrams, ping.one_way_ms), (Some(ping), None, None));
    }
}

#[test]
fn datagrams_at_twice_the_rate_of_the_wire_are_half_lost_behind_a_full_queue() {
    let twice = ["hosts.0.flows.0.kind=constant", "hosts.0.flows.0.rate_mbps=20", "hosts.0.flows.0.packet_bytes=1500"];
    let (result, flood) = datagrams(&twice);
    assert!((flood.lost_share.expect("datagrams") - 0.5).abs() < 0.01, "{flood:?}");
    // 50 packets of 1.2 ms before it, and 10 ms.
    let delay = flood.one_way_ms.expect("delays");
    assert!((68.0..73.0).contains(&delay.p50), "{delay:?}");
    // 1472 bytes of 1500.
    assert!((result.aggregate_goodput_mbps - 9.813).abs() < 0.05, "{}", result.aggregate_goodput_mbps);
    assert!(result.access.uplink_drops > 20_000, "{:?}", result.access);
}

#[test]
fn what_the_path_loses_is_counted_and_nothing_else() {
    let lossy = ["hosts.0.flows.0.kind=constant", "hosts.0.flows.0.rate_mbps=0.8", "path.loss=0.1"];
    // 15,000 datagrams: a standard deviation of 0.0024.
    let (_, lost) = datagrams(&lossy);
    assert!((lost.lost_share.expect("datagrams") - 0.1).abs() < 0.01, "{lost:?}");
    assert!(lost.one_way_ms.is_some_and(|delay| delay.max < 10.2), "{lost:?}");
}

#[test]
fn a_ping_beside_uploads_says_how_long_their_queue_is() {
    let queue = |packets: &str| {
        let beside = format!("{WIRE}kind = \"ping\"\n[[hosts.flows]]\n");
        let ping = run(&beside, &[packets]).pings.expect("pings");
        ping.round_trip_ms.expect("round trips").p95
    };
    let (short, long) = (queue("hosts.0.queue_packets=10"), queue("hosts.0.queue_packets=200"));
    // 10 packets are 12 ms, 200 are 240.
    assert!((25.0..45.0).contains(&short) && (200.0..270.0).contains(&long), "{short} {long}");
}

fn video(overrides: &[&str]) -> VideoResult {
    let kind = ["hosts.0.flows.0.kind=video", "hosts.0.flows.0.direction=down"];
    let result = run(WIRE, &[&kind[..], overrides].concat());
    assert_eq!(result.videos, result.flows[0].video);
    assert!(result.flows[0].message_ms.is_some(), "chunks have times");
    result.flows[0].video.expect("a video")
}

#[test]
fn a_video_gets_the_bit_rate_that_its_wire_can_carry() {
    // Ten minutes, so that the beginning does not matter.
    let long = ["duration_s=600", "warmup_s=100"];
    let wide = video(&long);
    // 10 Mb/s carry the highest rate, 5.8 Mb/s.
    assert!(wide.mean_bit_rate_mbps.is_some_and(|mbps| mbps > 5.79), "{wide:?}");
    // A chunk of 4 s each 4 s.
    assert!((124..=126).contains(&wide.chunks), "{wide:?}");
    assert_eq!((wide.stalls, wide.stalled_s, wide.switches), (0, 0.0, 0));
    assert!(wide.startup_s.is_some_and(|startup| startup < 1.0), "{wide:?}");
    let narrow = video(&[&long[..], &["access.rate_mbps=2"]].concat());
    // 2 Mb/s carry 1.9: between the rates 1.75 and 2.35, on the mean what the wire carries.
    assert!(narrow.mean_bit_rate_mbps.is_some_and(|mbps| (1.7..1.95).contains(&mbps)), "{narrow:?}");
    assert_eq!(narrow.stalls, 0, "{narrow:?}");
}

#[test]
fn a_video_stalls_where_the_lowest_rate_is_too_much() {
    let starved = video(&["duration_s=600", "warmup_s=100", "access.rate_mbps=0.15"]);
    // 0.15 Mb/s carry 1448 of 1500 bytes, 0.145: of the lowest rate, 0.235 Mb/s, 62 %. It stands still for the rest.
    let share = starved.stalled_s / 500.0;
    assert!((0.34..0.45).contains(&share), "{starved:?}");
    assert!(starved.stalls > 10 && starved.mean_bit_rate_mbps == Some(0.235), "{starved:?}");
}

#[test]
fn a_video_is_watched_at_either_end_and_ends_with_its_flow() {
    let up = ["hosts.0.flows.0.direction=up", "hosts.0.flows.0.stop_s=30"];
    let result = run(WIRE, &[&["hosts.0.flows.0.kind=video"][..], &up].concat());
    let video = result.flows[0].video.expect("a video");
    assert!(video.chunks > 0 && video.stalls == 0, "{video:?}");
    assert_eq!(result.flows[0].undelivered, 0, "the last chunk was finished");
    let whole = run(WIRE, &["hosts.0.flows.0.kind=video", up[0]]).flows[0].video.expect("a video");
    assert!(video.chunks < whole.chunks, "{video:?} {whole:?}");
}

#[test]
fn a_transfer_that_is_asked_for_begins_a_round_trip_later() {
    let took = |overrides: &[&str]| {
        let kind = ["hosts.0.flows.0.kind=transfers", "hosts.0.flows.0.transfer_kib=1", "hosts.0.flows.0.off_s=0.5"];
        let result = run(WIRE, &[&kind[..], overrides].concat());
        let transfers = result.transfers.expect("transfers");
        assert!(transfers.delivered > 30 && transfers.undelivered == 0, "{transfers:?}");
        transfers.took_ms.expect("times").p50
    };
    let asked = "hosts.0.flows.0.request_bytes=400";
    // Up: SYN and SYN-ACK 20 ms, data 10 ms; with a request 20 ms more for the ACK and the request.
    let (plain, late) = (took(&[]), took(&[asked]));
    assert!((30.0..34.0).contains(&plain) && (50.0..54.0).contains(&late), "{plain} {late}");
    // Down: the request comes with the ACK that the server waits for anyhow.
    let down = "hosts.0.flows.0.direction=down";
    let (plain, late) = (took(&[down]), took(&[down, asked]));
    assert!((40.0..44.0).contains(&plain) && (40.0..44.0).contains(&late), "{plain} {late}");
}

#[test]
fn an_ordinary_home_has_all_of_them_and_the_same_bytes_each_time() {
    let home = include_str!("../../../scenarios/home.toml");
    let (once, again) = (run(home, &[]), run(home, &[]));
    assert_eq!(once.to_json(), again.to_json());
    let (call, ping) = (once.datagrams.expect("a call"), once.pings.expect("pings"));
    // 60 s of 50 packets each way, and of 5 pings.
    assert_eq!((call.sent, ping.sent), (6_000, 300));
    let video = once.videos.expect("a film");
    assert!(video.chunks > 0 && video.mean_bit_rate_mbps.is_some_and(|mbps| mbps > 0.2), "{video:?}");
    assert!(once.transfers.expect("pages").delivered > 0);
    // Two uploads fill the queue of the phones, not that of the call.
    assert!(once.flows.iter().filter(|flow| flow.always_busy).count() == 2);
    let better = run(home, &["access.queue=fq_codel"]);
    let mean = |result: &RunResult| result.datagrams.and_then(|call| call.one_way_ms).expect("a call").mean;
    assert!(mean(&better) < mean(&once), "{} {}", mean(&better), mean(&once));
}

/// Four equal flows of pings into one full queue.
#[test]
fn equal_pings_share_a_full_queue_because_their_senders_have_a_jitter() {
    let answered = |jitter: &str| {
        let overrides = ["hosts.0.count=4", "hosts.0.flows.0.kind=ping", "hosts.0.flows.0.gap_ms=1", jitter];
        let large = ["hosts.0.flows.0.packet_bytes=1500", "hosts.0.flows.0.direction=down"];
        let result = run(WIRE, &[&overrides[..], &large].concat());
        let mut answered: Vec<u64> = result.flows.iter().map(|flow| flow.datagrams.expect("pings").received).collect();
        answered.sort_unstable();
        answered
    };
    // 10 Mb/s carry 833 packets a second in 30 s: 6250 for each.
    let with_jitter = answered("hosts.0.flows.0.jitter_us=50");
    assert!(with_jitter[0] > 5_600 && with_jitter[3] < 6_900, "{with_jitter:?}");
    let locked = answered("hosts.0.flows.0.jitter_us=0");
    assert!(locked[3] > 5 * locked[0], "{locked:?}");
}

/// The case found/slow-fqcodel-saturated of issue 37, for a tenth of its time: a queue that drops up to 64 packets at once beside a
/// sender that keeps it full.
#[test]
fn what_a_full_queue_of_flows_drops_is_not_replaced_before_it_sends() {
    let scenario = "duration_s = 0.1\nwarmup_s = 0\n[[links]]\nbetween = [\"a\", \"b\"]\nrate_mbps = 0.4\nqueue = \"fq_codel\"\n\
        queue_packets = 4000\n[[hosts]]\ncount = 2\nnode = \"a\"\n[[hosts.flows]]\nto = \"b\"\nkind = \"constant\"\nrate_mbps = 1000\n\
        packet_bytes = 200\n[[hosts.flows]]\nto = \"b\"\nkind = \"saturated\"\npacket_bytes = 28\n";
    let result = run(scenario, &[]);
    let offered: u64 = result.flows.iter().filter_map(|flow| flow.datagrams).map(|calls| calls.sent).sum();
    // 625 packets a millisecond from each host.
    assert!((124_000..126_000).contains(&offered), "{offered}");
    let dropped = result.links[0].queue_drops;
    assert!(dropped > offered / 2 && dropped < 2 * offered, "{dropped} drops of {offered} packets");
    assert!(result.events < 4 * offered, "{} events", result.events);
}

/// The wire with one transfer of eight segments, which an initial window holds.
const ONE_TRANSFER: &[&str] = &["hosts.0.flows.0.transfer_kib=11", "hosts.0.era=2012", "warmup_s=0", "duration_s=5"];

#[test]
fn a_lone_transfer_takes_the_handshake_and_what_its_data_need_in_the_empty_network() {
    for direction in ["up", "down"] {
        let (result, rows) =
            transfers(WIRE, &[ONE_TRANSFER, &[&format!("hosts.0.flows.0.direction={direction}")]].concat());
        let [transfer] = rows.as_slice() else { panic!("{rows:?}") };
        assert_eq!((transfer.flow, transfer.start_s, transfer.bytes), (0, 0.0, 11 * 1024));
        // Seven segments of 1448 bytes and one of 1128 in packets of 1500 and 1180: 9.344 ms at 10 Mb/s. Up, the last one takes
        // 9.44 us more at 1 Gb/s; down, the first one 12 us.
        let wire_ms = (7.0 * 1500.0 + 1180.0) * 8.0 / 1e4;
        let least_ms = 10.0 + wire_ms + if direction == "up" { 0.00944 } else { 0.012 };
        let completion_ms = 1e3 * transfer.completion_s.expect("it is complete");
        let slowdown = transfer.slowdown.expect("it is complete");
        assert!((completion_ms / slowdown - least_ms).abs() < 1e-6, "{direction}: {transfer:?}, {least_ms}");
        // SYN and SYN-ACK of 60 bytes. The third one of an upload has data; a download waits for it, of 52 bytes.
        let [syn, ack] = [60.0, 52.0].map(|bytes| 10.0 + bytes * 8.0 / 1e4 + bytes * 8.0 / 1e6);
        let handshake_ms = if direction == "up" { 2.0 * syn } else { 2.0 * syn + ack };
        assert!((completion_ms - handshake_ms - least_ms).abs() < 1e-3, "{direction}: {completion_ms}, {handshake_ms}");
        let over_all = result.transfers.and_then(|transfers| transfers.slowdown).expect("one");
        assert_eq!((over_all.min, over_all.max), (slowdown, slowdown));
        assert_eq!((result.slowdowns[0].above_bytes, result.slowdowns[0].up_to_bytes), (10_000, Some(100_000)));
        assert_eq!((result.slowdowns.len(), result.slowdowns[0].transfers), (1, 1));
    }
}

#[test]
fn the_slowdown_of_a_transfer_is_that_over_the_network_at_its_start() {
    // The wire has a tenth of its rate from 2 s on, when the second host begins.
    let text = WIRE.replace("[path]", "[[changes]]\nof = \"access\"\nat_s = 2\nrate_mbps = 1\n[path]");
    let text = format!("{text}[[hosts]]\nera = \"2012\"\n[[hosts.flows]]\nstart_s = 3\ntransfer_kib = 11\n");
    let (_, rows) = transfers(&text, ONE_TRANSFER);
    let least = |row: usize| rows[row].completion_s.expect("complete") / rows[row].slowdown.expect("complete");
    assert!((least(1) - 0.010 - 10.0 * (least(0) - 0.010)).abs() < 1e-4, "{rows:?}");
}

#[test]
fn a_transfer_that_is_not_complete_at_the_end_has_a_row_without_an_end() {
    let endless = ["hosts.0.flows.0.transfer_kib=1000000", "duration_s=20"];
    let (result, rows) = transfers(WIRE, &endless);
    let [transfer] = rows.as_slice() else { panic!("{rows:?}") };
    assert_eq!((transfer.bytes, transfer.completion_s, transfer.slowdown), (1_024_000_000, None, None));
    // Its age, 20 s of the 849 s that 1 GB need at 10 Mb/s with headers, is no slowdown: none is below 1.
    let over_all = result.transfers.expect("one has begun").slowdown;
    assert!(result.slowdowns.is_empty() && over_all.is_none(), "{:?}, {over_all:?}", result.slowdowns);
}

/// A download in an open loop, and what its test says.
const OPEN: &[&str] = &[
    "hosts.0.flows.0.kind=transfers",
    "hosts.0.flows.0.direction=down",
    "warmup_s=0",
    "duration_s=30",
    "hosts.0.era=modern",
];

#[test]
fn an_open_loop_goes_on_whatever_becomes_of_those_before() {
    // 256,000 bytes take 0.21 s at 10 Mb/s, and come each 0.1 s: they pile up. In a closed loop they would wait.
    let every = ["hosts.0.flows.0.transfer_kib=250", "hosts.0.flows.0.arrivals_s=0 0.1 0.2 0.3 0.4"];
    let (result, rows) = transfers(WIRE, &[OPEN, &every].concat());
    let starts: Vec<f64> = rows.iter().map(|row| row.start_s).collect();
    assert_eq!(starts, [0.0, 0.1, 0.2, 0.3, 0.4]);
    let ends: Vec<f64> = rows.iter().map(|row| row.start_s + row.completion_s.expect("complete")).collect();
    assert!(ends[0] > 0.2 && ends[4] > 5.0 * 0.21, "others began before the first had ended: {ends:?}");
    assert!(rows.iter().all(|row| row.slowdown.is_some_and(|slowdown| slowdown > 1.0)), "{rows:?}");
    // One flow, with what all of them got: 5 · 256000 bytes in 30 s.
    let [flow] = result.flows.as_slice() else { panic!("{:?}", result.flows) };
    assert_eq!((flow.messages, flow.undelivered, flow.kind.as_str()), (5, 0, "transfers"));
    assert!((flow.goodput_mbps - 5.0 * 256_000.0 * 8.0 / 30.0 / 1e6).abs() < 1e-6, "{}", flow.goodput_mbps);
    assert_eq!((result.notes.len(), result.flows[0].id), (0, 0));
}

#[test]
fn arrivals_of_a_load_carry_it_and_are_the_same_with_each_flow_beside_them() {
    let load = ["hosts.0.flows.0.transfer_kib=100", "hosts.0.flows.0.arrivals_mbps=4", "duration_s=60"];
    let settings = [OPEN, &load].concat();
    let (alone, rows) = transfers(WIRE, &settings);
    // 4 Mb/s of 819200 bits are 293 in a minute, ± 5 · 17.
    assert!(rows.len().abs_diff(293) < 86, "{}", rows.len());
    assert!((alone.aggregate_goodput_mbps / 4.0 - 1.0).abs() < 0.3, "{}", alone.aggregate_goodput_mbps);
    let slowdown = |result: &RunResult| result.transfers.expect("transfers").slowdown.expect("some").p50;
    let beside: Vec<String> = settings.iter().map(|set| set.replace("flows.0", "flows.1")).collect();
    let text = WIRE.replace("[[hosts.flows]]\n", "[[hosts.flows]]\ndirection = \"down\"\n[[hosts.flows]]\n");
    let beside: Vec<&str> = beside.iter().map(String::as_str).collect();
    let (both, rows_beside) = transfers(&text, &beside);
    assert!(slowdown(&both) > slowdown(&alone), "{} and {}", slowdown(&both), slowdown(&alone));
    assert!(rows_beside.iter().all(|row| row.flow == 1), "{rows_beside:?}");
    // One row for each flow and moment, whose goodputs are all that came.
    let (_, series) = try_run(WIRE, &settings, true).unwrap_or_else(|error| panic!("{error}"));
    assert!(series.flows.t_s.is_sorted_by(|one, next| one < next), "{:?}", series.flows.t_s);
    let (mut before, mut came) = (0.0, 0.0);
    for row in series.flows.of_flow(0) {
        came += row.goodput_mbps * (row.t_s - before);
        before = row.t_s;
    }
    assert!((came / 60.0 / alone.aggregate_goodput_mbps - 1.0).abs() < 0.02, "{came}");
    assert_eq!(both.flows.len(), 2);
}

#[test]
fn a_law_has_another_seed_in_each_transfer_of_an_open_loop_and_runs_are_repeated() {
    let load = [
        "hosts.0.flows.0.transfer_sizes=web-search",
        "hosts.0.flows.0.arrivals_per_s=2",
        "hosts.0.congestion_control=cdg",
    ];
    let settings = [OPEN, &load].concat();
    let (once, rows) = transfers(WIRE, &settings);
    let (again, rows_again) = transfers(WIRE, &settings);
    assert_eq!((once.to_json(), &rows), (again.to_json(), &rows_again));
    let more = [&settings[..], &["hosts.0.flows.0.stop_s=15"]].concat();
    let (_, stopped) = transfers(WIRE, &more);
    let until: Vec<_> = rows.iter().filter(|row| row.start_s < 15.0).map(|row| (row.start_s, row.bytes)).collect();
    assert_eq!(stopped.iter().map(|row| (row.start_s, row.bytes)).collect::<Vec<_>>(), until);
}

#[test]
fn of_a_datagram_that_comes_twice_only_the_first_counts() {
    for (kind, direction) in [("constant", "up"), ("constant", "down"), ("ping", "up"), ("saturated", "up")] {
        let flow = [&format!("hosts.0.flows.0.kind={kind}")[..], &format!("hosts.0.flows.0.direction={direction}")];
        let twice = [&flow[..], &["path.duplicate=1", "path.back_duplicate=1"]].concat();
        let of = |overrides: &[&str]| {
            let (result, series) = try_run(WIRE, overrides, true).unwrap_or_else(|error| panic!("{error}"));
            let numbers = series.datagrams.number;
            let all: std::collections::BTreeSet<u64> = numbers.iter().copied().collect();
            assert_eq!(all.len(), numbers.len(), "{kind} {direction}: a row each");
            (
                result.aggregate_goodput_mbps,
                result.flows[0].datagrams.map(|of| (of.sent, of.received, of.lost)),
                numbers.len(),
            )
        };
        let (once, copied) = (of(&flow), of(&twice));
        assert!((copied.0 / once.0 - 1.0).abs() < 1e-3, "{kind} {direction}: {copied:?} and {once:?}");
        assert_eq!((once.1, once.2), (copied.1, copied.2), "{kind} {direction}");
    }
}

#[test]
fn what_is_under_way_while_others_overtake_it_is_not_lost() {
    // A packet in ten does not wait for the 500 ms. Until the end 25 of the others are under way.
    let reorder = ["path.rtt_ms=1000", "path.reorder=0.1", "hosts.0.flows.0.kind=constant"];
    let (_, call) = datagrams(&reorder);
    assert_eq!(call.lost, 0, "{call:?}");
    assert!((20..30).contains(&(call.sent - call.received)), "{call:?}");
    let lossy = [&reorder[..], &["path.loss=0.05"]].concat();
    let (_, lossy) = datagrams(&lossy);
    assert!(lossy.lost_share.is_some_and(|share| (share - 0.05).abs() < 0.02), "{lossy:?}");
}
