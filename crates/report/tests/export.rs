//! A run in the formats of other tools.
#![allow(missing_docs)]

mod example;

use lasthop_report::export;
use lasthop_scenario::{DatagramResult, DatagramSample, Direction, FlowSample, RunResult, Series, StateShares};
use serde_json::{Value, json};
use std::io::Read as _;

/// 10 s with a warm-up of 2: an upload of 8 Mb/s, a download of 2, a ping of 30 ms, a call.
fn home() -> (RunResult, Series) {
    let (mut result, _) = example::run(&example::scenario(&[]));
    result.scenario = json!({
        "name": "A home",
        "sample_ms": 100.0,
        "hosts": [{
            "count": 2, "name": "laptop", "tcp": { "mss_bytes": 1460, "timestamps": true },
            "flows": [{ "kind": "constant", "packet_bytes": 200 }],
        }],
    });
    (result.duration_s, result.warmup_s) = (10.0, 2.0);
    let flow = |id: u32, kind: &str, direction, goodput_mbps| {
        let mut flow = result.flows[0].clone();
        (flow.id, flow.host, flow.kind, flow.direction, flow.goodput_mbps) =
            (id, (id % 2) as u16, kind.to_owned(), direction, goodput_mbps);
        flow.started_s = 0.0;
        flow
    };
    let mut call = flow(3, "constant", Direction::Up, 0.0688);
    call.datagrams = Some(DatagramResult {
        sent: 400,
        received: 390,
        lost: 10,
        lost_share: Some(0.025),
        jitter_ms: Some(1.5),
        ..DatagramResult::default()
    });
    result.flows = vec![
        flow(0, "bulk", Direction::Up, 8.0),
        flow(1, "bulk", Direction::Down, 2.0),
        flow(2, "ping", Direction::Up, 0.0),
        call,
    ];
    let mut series = Series::default();
    for sample in 1..=100 {
        let t_s = f64::from(sample) * 0.1;
        for (flow, goodput_mbps) in [(0, 8.0), (1, 2.0)] {
            series.flows.push(FlowSample {
                t_s,
                flow,
                host: flow as u16,
                cwnd_segments: 20,
                srtt_ms: Some(40.0),
                retransmits: u64::from(sample as u32) / 10,
                goodput_mbps,
                ..FlowSample::default()
            });
        }
    }
    for number in 0..50 {
        series.datagrams.push(DatagramSample { t_s: number as f64 * 0.2, flow: 2, host: 0, number, took_ms: 30.0 });
    }
    (result, series)
}

#[test]
fn tables_have_a_line_for_each_flow_and_sample_with_the_names_of_the_results() {
    let (result, series) = home();
    let tables = export::tables(&result, &series, None).expect("tables");
    assert_eq!(tables.iter().map(|table| table.name).collect::<Vec<_>>(), ["flows.csv", "series.csv", "datagrams.csv"]);
    let mut flows = csv::Reader::from_reader(tables[0].text.as_bytes());
    let heads = flows.headers().expect("heads").clone();
    assert_eq!(heads.iter().take(4).collect::<Vec<_>>(), ["id", "host", "direction", "kind"]);
    let rows: Vec<csv::StringRecord> = flows.records().map(|row| row.expect("a row")).collect();
    let cell = |row: usize, head: &str| {
        rows[row]
            .get(heads.iter().position(|name| name == head).unwrap_or_else(|| panic!("no {head}")))
            .expect("a cell")
    };
    assert_eq!(rows.len(), 4);
    assert_eq!((cell(1, "direction"), cell(1, "goodput_mbps")), ("down", "2.0"));
    assert_eq!((cell(3, "datagrams_lost"), cell(0, "datagrams_lost")), ("10", ""));
    assert_eq!(tables[1].text.lines().count(), 201);
    assert!(tables[1].text.starts_with("t_s,flow,host,cwnd_segments,ssthresh_segments,srtt_ms,"), "{}", tables[1].text);
    assert_eq!(tables[2].text.lines().nth(1), Some("0.0,2,0,0,30.0"));
    // Without series there are the flows alone.
    assert_eq!(export::tables(&result, &Series::default(), None).expect("tables").len(), 1);
}

/// What was not measured is an empty field and not 0.
#[test]
fn a_flow_that_never_connected_has_empty_fields() {
    let (mut result, series) = home();
    result.flows[1].state_shares = Some(StateShares { open: 0.75, recovery: 0.25, ..StateShares::default() });
    for flow in [0, 1] {
        result.flows[flow].datagrams = None;
    }
    (result.flows[0].rtt_ms, result.flows[0].cwnd_mean) = (None, None);
    result.flows[3].datagrams = Some(DatagramResult::default());
    let tables = export::tables(&result, &series, None).expect("tables");
    let mut rows = tables[0].text.lines().map(|row| row.split(',').collect::<Vec<_>>());
    let heads = rows.next().expect("names");
    let rows: Vec<_> = rows.collect();
    let of = |flow: usize, column: &str| {
        rows[flow][heads.iter().position(|head| *head == column).unwrap_or_else(|| panic!("{column}: {heads:?}"))]
    };
    for state in ["open", "disorder", "cwr", "recovery", "loss"] {
        assert_eq!(of(0, &format!("state_shares_{state}")), "");
    }
    assert_eq!((of(1, "state_shares_open"), of(1, "state_shares_loss")), ("0.75", "0.0"));
    assert_eq!((of(0, "rtt_ms_p95"), of(0, "cwnd_mean"), of(0, "goodput_mbps")), ("", "", "8.0"));
    // Nothing was sent: nothing is known of losses.
    assert_eq!(of(3, "datagrams_sent"), "0");
    assert!(!heads.contains(&"datagrams_lost_share"), "{heads:?}");
    let call = export::iperf3(&result, &series, Some(&[3])).expect("a document").document;
    assert_eq!(call["end"]["sum"]["lost_percent"], Value::Null);
}

#[test]
fn flents_file_has_a_stream_for_each_flow_and_their_sums() {
    let (result, series) = home();
    let flent = export::flent(&result, &series, None).expect("a file").document;
    // 10 s in steps of 0.2 s.
    assert_eq!((flent["version"].clone(), flent["x_values"].as_array().map(Vec::len)), (json!(4), Some(50)));
    let results = flent["results"].as_object().expect("streams");
    for (name, value) in [
        ("TCP upload::flow 0 (laptop-1)", 8.0),
        ("TCP download::flow 1 (laptop-2)", 2.0),
        ("TCP upload sum", 8.0),
        ("TCP upload avg", 8.0),
        ("TCP download sum", 2.0),
        ("TCP download avg", 2.0),
        ("TCP totals", 10.0),
        ("Ping (ms)::UDP flow 2 (laptop-1)", 30.0),
        ("Ping (ms) avg", 30.0),
    ] {
        let values = results.get(name).and_then(Value::as_array).unwrap_or_else(|| panic!("no {name} in {results:?}"));
        assert!(values.len() == 50 && values.iter().all(|at| at == &json!(value)), "{name}: {values:?}");
    }
    for key in ["NAME", "TITLE", "TIME", "T0", "LENGTH", "TOTAL_LENGTH", "STEP_SIZE", "TEST_PARAMETERS", "SERIES_META"]
    {
        assert!(!flent["metadata"][key].is_null(), "{key}");
    }
    assert_eq!(flent["raw_values"]["Ping (ms)::UDP flow 2 (laptop-1)"][1], json!({ "t": 0.2, "val": 30.0 }));
    // What flent reads from `ss`, beside the goodput of the sample.
    let sample = json!({ "t": 0.1, "val": 8.0, "tcp_cwnd": 20, "tcp_rtt": 40.0 });
    assert_eq!(flent["raw_values"]["TCP upload::flow 0 (laptop-1)"][0], sample);
    // Where nobody pings, TCP's own round trips are shown, and called so.
    let (mut without, _) = home();
    without.flows.remove(2);
    let flent = export::flent(&without, &series, None).expect("a file").document;
    assert_eq!(flent["results"]["Ping (ms)::UDP TCP RTT of flow 0 (laptop-1)"][0], json!(40.0));
    let text = flent.to_string();
    let mut back = String::new();
    let packed = export::gzip(&text).expect("compressed");
    flate2::read::GzDecoder::new(&packed[..]).read_to_string(&mut back).expect("gzip");
    assert_eq!(back, text);
}

/// The paths of all values below a list or an object, of lists the first element's.
fn shape(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(inside) => inside.iter().for_each(|(key, value)| shape(value, &format!("{path}.{key}"), found)),
        Value::Array(list) => list.first().into_iter().for_each(|first| shape(first, &format!("{path}[]"), found)),
        _ => found.push(path.to_owned()),
    }
}

/// What iperf 3.12 prints for `-P 2 --bidir --json`, without what it knows of its sockets alone.
const IPERF3_TCP: &str = "
.start.connected[].socket .start.connected[].local_host .start.connected[].local_port .start.connected[].remote_host
.start.connected[].remote_port .start.version .start.system_info .start.timestamp.time .start.timestamp.timesecs
.start.connecting_to.host .start.connecting_to.port .start.cookie .start.tcp_mss_default .start.test_start.protocol
.start.test_start.num_streams .start.test_start.blksize .start.test_start.omit .start.test_start.duration
.start.test_start.bytes .start.test_start.blocks .start.test_start.reverse .start.test_start.tos
.start.test_start.target_bitrate
.intervals[].streams[].socket .intervals[].streams[].start .intervals[].streams[].end .intervals[].streams[].seconds
.intervals[].streams[].bytes .intervals[].streams[].bits_per_second .intervals[].streams[].retransmits
.intervals[].streams[].snd_cwnd .intervals[].streams[].rtt .intervals[].streams[].omitted .intervals[].streams[].sender
.intervals[].sum.start .intervals[].sum.end .intervals[].sum.seconds .intervals[].sum.bytes
.intervals[].sum.bits_per_second .intervals[].sum.retransmits .intervals[].sum.omitted .intervals[].sum.sender
.intervals[].sum_bidir_reverse.bytes .intervals[].sum_bidir_reverse.bits_per_second
.end.streams[].sender.socket .end.streams[].sender.start .end.streams[].sender.end .end.streams[].sender.seconds
.end.streams[].sender.bytes .end.streams[].sender.bits_per_second .end.streams[].sender.retransmits
.end.streams[].sender.max_snd_cwnd .end.streams[].sender.max_rtt .end.streams[].sender.min_rtt
.end.streams[].sender.mean_rtt .end.streams[].sender.sender .end.streams[].receiver.socket
.end.streams[].receiver.bytes .end.streams[].receiver.bits_per_second .end.streams[].receiver.sender
.end.sum_sent.start .end.sum_sent.end .end.sum_sent.seconds .end.sum_sent.bytes .end.sum_sent.bits_per_second
.end.sum_sent.retransmits .end.sum_sent.sender .end.sum_received.bytes .end.sum_received.bits_per_second
.end.sum_received.sender .end.sum_sent_bidir_reverse.bytes .end.sum_sent_bidir_reverse.retransmits
.end.sum_received_bidir_reverse.bytes .end.cpu_utilization_percent.host_total
.end.cpu_utilization_percent.remote_system .end.sender_tcp_congestion .end.receiver_tcp_congestion";

/// The same for `-u`.
const IPERF3_UDP: &str = "
.start.test_start.protocol .end.streams[].udp.socket .end.streams[].udp.start .end.streams[].udp.end
.end.streams[].udp.seconds .end.streams[].udp.bytes .end.streams[].udp.bits_per_second .end.streams[].udp.jitter_ms
.end.streams[].udp.lost_packets .end.streams[].udp.packets .end.streams[].udp.lost_percent .end.streams[].udp.sender
.end.sum.bytes .end.sum.bits_per_second .end.sum.jitter_ms .end.sum.lost_packets .end.sum.packets .end.sum.lost_percent
.end.sum.sender .end.sum_sent.bytes .end.sum_received.bytes .end.cpu_utilization_percent.host_total";

fn assert_has(document: &Value, expected: &str) {
    let mut found = Vec::new();
    shape(document, "", &mut found);
    let missing: Vec<&str> = expected.split_whitespace().filter(|path| !found.iter().any(|at| at == path)).collect();
    assert!(missing.is_empty(), "iperf3 has {missing:?}");
}

#[test]
fn iperf3s_document_has_its_keys_and_the_bytes_of_each_second() {
    let (result, series) = home();
    let document = export::iperf3(&result, &series, None).expect("a document").document;
    assert_has(&document, IPERF3_TCP);
    let intervals = document["intervals"].as_array().expect("intervals");
    assert_eq!(intervals.len(), 10);
    assert_eq!(intervals.iter().filter(|interval| interval["sum"]["omitted"] == json!(true)).count(), 2);
    // 8 Mb/s for a second, and a window of 20 segments.
    let first = &intervals[2]["streams"][0];
    assert_eq!((&first["bytes"], &first["start"], &first["end"]), (&json!(1_000_000), &json!(0.0), &json!(1.0)));
    assert_eq!((&first["snd_cwnd"], &first["rtt"], &first["retransmits"]), (&json!(28_960), &json!(40_000), &json!(1)));
    let end = &document["end"];
    assert_eq!((&end["sum_sent"]["bytes"], &end["sum_sent"]["sender"]), (&json!(8_000_000), &json!(true)));
    assert_eq!(end["sum_received_bidir_reverse"]["bytes"], json!(2_000_000));
    assert_eq!(document["start"]["test_start"]["bidir"], json!(1));
}

#[test]
fn a_row_of_a_flow_counts_for_the_time_since_the_one_before() {
    let (mut result, _) = home();
    result.flows.truncate(1);
    result.flows[0].started_s = 0.4;
    let mut series = Series::default();
    // 8 Mb/s for 0.1 s, then nothing is sampled until 2.3; the last one is late.
    for t_s in [0.5, 2.3, 2.4, 2.55] {
        series.flows.push(FlowSample { t_s, goodput_mbps: 8.0, ..FlowSample::default() });
    }
    let document = export::iperf3(&result, &series, None).expect("a document").document;
    let sums = document["intervals"].as_array().expect("intervals").iter();
    let bytes: Vec<u64> = sums.filter_map(|interval| interval["sum"]["bytes"].as_u64()).collect();
    assert_eq!(bytes, [100_000, 0, 2_050_000, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn seconds_without_a_connection_are_in_the_files_of_others_and_nothing_came_in_them() {
    let (mut result, _) = home();
    result.flows.truncate(2);
    (result.flows[0].started_s, result.flows[1].started_s) = (1.0, 0.0);
    let mut series = Series::default();
    // The upload's only second is that until 4 s, at 8 Mb/s. The download has no connection.
    for sample in 0..=10 {
        let goodput_mbps = if sample == 0 { 0.0 } else { 8.0 };
        let t_s = 3.0 + f64::from(sample) * 0.1;
        series.flows.push(FlowSample { t_s, cwnd_segments: 20, goodput_mbps, ..FlowSample::default() });
    }
    let document = export::iperf3(&result, &series, None).expect("a document").document;
    let intervals = document["intervals"].as_array().expect("intervals");
    assert_eq!(intervals.len(), 10);
    for (second, interval) in intervals.iter().enumerate() {
        let bytes = if second == 3 { 1_000_000 } else { 0 };
        let sums = [&interval["sum"]["bytes"], &interval["sum_bidir_reverse"]["bytes"]];
        assert_eq!(sums, [&json!(bytes), &json!(0)], "{second}: {interval}");
        assert_eq!(interval["streams"].as_array().map(Vec::len), Some(2), "{second}: {interval}");
        let windows = [0, 1].map(|stream| interval["streams"][stream]["snd_cwnd"].clone());
        // The row at 3 s is of the second before.
        let upload = if [2, 3].contains(&second) { json!(28_960) } else { Value::Null };
        assert_eq!(windows, [upload, Value::Null], "{second}: {interval}");
    }
    let flent = export::flent(&result, &series, Some(&[0])).expect("a file").document;
    let steps = flent["results"]["TCP upload sum"].as_array().expect("steps");
    // Steps of 0.2 s, from the start at 1 s on.
    let expected = |step: usize| match step {
        0..5 => Value::Null,
        15..20 => json!(8.0),
        _ => json!(0.0),
    };
    assert_eq!(*steps, (0..50).map(expected).collect::<Vec<_>>());
}

#[test]
fn datagrams_alone_are_iperf3s_udp() {
    let (mut result, _) = home();
    result.flows.retain(|flow| flow.kind == "constant");
    let document = export::iperf3(&result, &Series::default(), None).expect("a document").document;
    assert_has(&document, IPERF3_UDP);
    let sum = &document["end"]["sum"];
    assert_eq!((&sum["packets"], &sum["lost_packets"], &sum["lost_percent"]), (&json!(400), &json!(10), &json!(2.5)));
    assert_eq!((&sum["jitter_ms"], &document["start"]["test_start"]["blksize"]), (&json!(1.5), &json!(172)));
}

#[test]
fn each_flow_of_datagrams_has_its_own_size_and_the_packets_of_each_second() {
    let (mut result, _) = home();
    result.flows.truncate(3);
    for ((flow, kind), way) in result.flows.iter_mut().zip(["ping", "constant", "constant"]).zip([0, 0, 1]) {
        (flow.host, flow.kind) = (0, kind.to_owned());
        flow.datagrams = Some(DatagramResult::default());
        flow.direction = [Direction::Up, Direction::Down][way];
    }
    result.scenario["hosts"][0]["flows"] = json!([
        { "kind": "ping", "count": 1, "packet_bytes": 84 },
        { "kind": "constant", "count": 1, "packet_bytes": 1028 },
        { "kind": "constant", "count": 1, "packet_bytes": 228 },
    ]);
    let mut series = Series::default();
    for number in 0..40 {
        let t_s = number as f64 * 0.25;
        for flow in [0, 1, 2] {
            series.datagrams.push(DatagramSample { t_s, flow, host: 0, number, took_ms: 50.0 });
        }
    }
    let document = export::iperf3(&result, &series, None).expect("a document").document;
    assert_eq!(document["start"]["test_start"]["blksize"], json!(1000));
    let intervals = document["intervals"].as_array().expect("intervals");
    assert_eq!(intervals.len(), 10);
    let of = |value: &Value| ["packets", "bytes", "socket", "sender"].map(|key| value[key].clone());
    for interval in intervals {
        let streams: Vec<_> = interval["streams"].as_array().expect("streams").iter().map(of).collect();
        let [up, down] =
            [[json!(4), json!(4000), json!(6), json!(true)], [json!(4), json!(800), json!(7), json!(false)]];
        assert_eq!(streams, [up, down]);
        assert_eq!(interval["sum_bidir_reverse"]["bytes"], json!(800));
    }
}
