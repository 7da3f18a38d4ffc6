//! The JSON that `iperf3 --json` prints (of version 3.12), for one protocol: the TCP flows of a run, or if it has none its
//! flows of datagrams at a constant rate.
//!
//! Each flow is a stream; its socket is 5 plus its number. Uploads are what the client sends, and downloads what comes
//! in `--bidir`: `sum_bidir_reverse`, `sum_sent_bidir_reverse`. The warm-up is what iperf3 calls omitted.
//!
//! Bytes are those that the receiving application got, also where iperf3 has the sender's. `target_bitrate` is that of
//! each stream of UDP, null if theirs differ, and 0 of TCP, as iperf3's without a target. What lasthop does not measure is
//! absent, as `rttvar`, `snd_wnd` and `pmtu`, or null where readers look for it: `cpu_utilization_percent`, the jitter of
//! fewer than two datagrams, and `rtt` and `snd_cwnd` in intervals without a connection, in which nothing comes. Flows that
//! have no place are named in `extra_data`.

use super::{ExportError, Format, Written, block, is_tcp, name};
use crate::goodput::between;
use lasthop_scenario::{Direction, FIRST_CLIENT_PORT, FlowResult, Pieces, RunResult, SERVER_PORT, Series};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The socket of flow 0.
const FIRST_SOCKET: u32 = 5;
/// IP, UDP.
const DATAGRAM_HEADERS: u64 = 28;

const FORMAT: Format = Format {
    program: "iperf3",
    accepted: "flows of the kinds bulk, on-off, interactive, transfers and video, or of the kind constant without any of these",
};

/// The document of the flows of these numbers, or of all that it can show. Without series it has no intervals.
///
/// # Errors
/// If none of the flows can be shown, or one of these numbers cannot.
pub fn iperf3(result: &RunResult, series: &Series, numbers: Option<&[u32]>) -> Result<Written, ExportError> {
    let is_udp = !super::wanted(result, numbers)?.into_iter().any(is_tcp);
    let why_not = |flow: &FlowResult| match flow.pieces() {
        Pieces::Datagrams if is_udp && flow.datagrams.is_some() => None,
        Pieces::Datagrams => Some("has no place beside TCP"),
        _ if is_tcp(flow) => None,
        _ => Some("has no place in it"),
    };
    let (flows, left_out) = FORMAT.shown(result, numbers, why_not)?;
    let seconds = result.duration_s - result.warmup_s;
    let ways = [Direction::Up, Direction::Down].map(|way| flows.iter().any(|flow| flow.direction == way));
    let connected = flows.iter().map(|flow| {
        let port = u32::from(FIRST_CLIENT_PORT) + flow.id;
        json!({
            "socket": FIRST_SOCKET + flow.id,
            "local_host": name(result, flow),
            "local_port": port,
            "remote_host": "server",
            "remote_port": if is_udp { port } else { SERVER_PORT.into() },
        })
    });
    let block_bytes =
        flows.first().map_or(0, |flow| if is_udp { datagram_bytes(result, flow) } else { segment_bytes(result, flow) });
    let mut start = json!({
        "connected": connected.collect::<Vec<_>>(),
        "version": format!("lasthop {}", result.build.version),
        "system_info": result.used.kernel_release.clone().unwrap_or_else(|| "simulated hosts".to_owned()),
        "timestamp": { "time": "Thu, 01 Jan 1970 00:00:00 GMT", "timesecs": 0 },
        "connecting_to": { "host": "server", "port": SERVER_PORT },
        "cookie": format!("{}, seed {}", result.name(), result.seed),
        "test_start": {
            "protocol": if is_udp { "UDP" } else { "TCP" },
            "num_streams": flows.len(),
            "blksize": block_bytes,
            "omit": result.warmup_s,
            "duration": seconds,
            "bytes": 0,
            "blocks": 0,
            "reverse": u8::from(ways == [false, true]),
            "tos": 0,
            "bidir": u8::from(ways == [true, true]),
            "target_bitrate": if is_udp { datagram_rate(result, &flows) } else { json!(0) },
        },
    });
    if !is_udp {
        start["tcp_mss_default"] = json!(block_bytes);
    }
    let mut document = json!({
        "start": start,
        "intervals": if is_udp { intervals_of_udp(result, series, &flows) } else { intervals(result, series, &flows) },
        "end": if is_udp { end_of_udp(&flows, seconds) } else { end_of_tcp(result, series, &flows, seconds) },
    });
    if !left_out.is_empty() {
        document["extra_data"] = json!(format!("left out: {}", left_out.join("; ")));
    }
    Ok(Written { document, left_out })
}

/// The payload of a full segment: timestamps take 12 bytes (RFC 7323).
fn segment_bytes(result: &RunResult, flow: &FlowResult) -> u64 {
    let tcp = &block(result, flow)["tcp"];
    let options = if tcp["timestamps"].as_bool().unwrap_or(true) { 12 } else { 0 };
    tcp["mss_bytes"].as_u64().unwrap_or(1_460).saturating_sub(options)
}

/// The payload of the flow's datagrams.
fn datagram_bytes(result: &RunResult, flow: &FlowResult) -> u64 {
    let packet = flow_keys(result, flow).and_then(|keys| keys["packet_bytes"].as_u64());
    packet.unwrap_or(0).saturating_sub(DATAGRAM_HEADERS)
}

/// The rate in bit/s at which each of the flows sends payload; null if they have several.
fn datagram_rate(result: &RunResult, flows: &[&FlowResult]) -> Value {
    let rate = |flow: &&FlowResult| {
        // `rate_mbps` has the headers.
        let keys = flow_keys(result, flow)?;
        let (rate_mbps, packet) = (keys["rate_mbps"].as_f64()?, keys["packet_bytes"].as_f64()?);
        Some((rate_mbps * 1e6 * datagram_bytes(result, flow) as f64 / packet).round() as u64)
    };
    let rates: Vec<Option<u64>> = flows.iter().map(rate).collect();
    rates.first().filter(|first| rates.iter().all(|rate| rate == *first)).map_or(Value::Null, |rate| json!(rate))
}

/// The block `[[hosts.flows]]` of the flow, in the scenario of the result.
fn flow_keys<'a>(result: &'a RunResult, flow: &FlowResult) -> Option<&'a Value> {
    // Numbers ascend through the blocks of a host.
    let before = result.flows.iter().filter(|other| other.host == flow.host && other.id < flow.id).count();
    let flows = block(result, flow)["flows"].as_array().into_iter().flatten();
    let mut each = flows.flat_map(|block| (0..block["count"].as_u64().unwrap_or(1)).map(move |_| block));
    each.nth(before)
}

/// From here to there, with bytes and their rate.
fn amount(start_s: f64, end_s: f64, bytes: f64) -> Map<String, Value> {
    let seconds = end_s - start_s;
    let rate = if seconds > 0.0 { bytes * 8.0 / seconds } else { 0.0 };
    let fields = json!({
        "start": start_s, "end": end_s, "seconds": seconds, "bytes": bytes.round() as u64, "bits_per_second": rate,
    });
    let Value::Object(fields) = fields else { unreachable!("it is an object") };
    fields
}

fn with(mut fields: Map<String, Value>, more: Value) -> Value {
    let Value::Object(more) = more else { unreachable!("only objects are added") };
    fields.extend(more);
    Value::Object(fields)
}

/// The seconds of the warm-up, and from its end on: zero, start and end, and whether iperf3 omits it.
fn seconds(result: &RunResult) -> Vec<(f64, f64, f64, bool)> {
    let warm = result.warmup_s;
    let mut ends = Vec::new();
    for (from, until, is_omitted) in [(0.0, warm, true), (warm, result.duration_s, false)] {
        let count = (until - from).ceil() as u32;
        ends.extend((0..count).map(|second| {
            let start = from + f64::from(second);
            (from, start, (start + 1.0).min(until), is_omitted)
        }));
    }
    ends
}

/// What came of each flow of datagrams in each second.
fn intervals_of_udp(result: &RunResult, series: &Series, flows: &[&FlowResult]) -> Vec<Value> {
    if series.datagrams.t_s.is_empty() {
        return Vec::new();
    }
    let mut came: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for datagram in series.datagrams.rows() {
        came.entry(datagram.flow).or_default().push(datagram.t_s + datagram.took_ms / 1e3);
    }
    let interval = |(zero, start, end, is_omitted): (f64, f64, f64, bool)| {
        let ways = [Direction::Up, Direction::Down].map(|way| {
            let of_way = flows.iter().filter(move |flow| flow.direction == way);
            let stream = |flow: &&FlowResult| {
                let came = came.get(&flow.id).map_or(&[][..], Vec::as_slice);
                let packets = came.partition_point(|at| *at <= end) - came.partition_point(|at| *at <= start);
                (flow.id, packets as u64, packets as u64 * datagram_bytes(result, flow))
            };
            of_way.map(stream).collect::<Vec<_>>()
        });
        let mut interval = json!({ "streams": [] });
        let both = ways.iter().all(|of_way| !of_way.is_empty());
        let mut streams = Vec::new();
        for (of_way, is_up) in ways.iter().zip([true, false]) {
            let fields = |packets: u64, bytes: u64| {
                let more = json!({ "packets": packets, "omitted": is_omitted, "sender": is_up });
                with(amount(start - zero, end - zero, bytes as f64), more)
            };
            streams.extend(of_way.iter().map(|&(id, packets, bytes)| {
                let mut stream = fields(packets, bytes);
                stream["socket"] = json!(FIRST_SOCKET + id);
                stream
            }));
            if !of_way.is_empty() {
                let name = if both && !is_up { "sum_bidir_reverse" } else { "sum" };
                let sum = |of: fn(&(u32, u64, u64)) -> u64| of_way.iter().map(of).sum();
                interval[name] = fields(sum(|all| all.1), sum(|all| all.2));
            }
        }
        interval["streams"] = json!(streams);
        interval
    };
    seconds(result).into_iter().map(interval).collect()
}

/// What each TCP flow did in each second.
fn intervals(result: &RunResult, series: &Series, flows: &[&FlowResult]) -> Vec<Value> {
    if series.flows.is_empty() {
        return Vec::new();
    }
    let seconds = seconds(result);
    let moments: Vec<f64> = seconds.iter().map(|(_, start, ..)| *start).chain([result.duration_s]).collect();
    let samples: Vec<Vec<_>> = flows.iter().map(|flow| series.flows.of_flow(flow.id).collect()).collect();
    let came: Vec<Vec<f64>> = flows.iter().map(|flow| between(result, series, flow, &moments)).collect();
    let ways = [Direction::Up, Direction::Down].map(|way| flows.iter().any(|flow| flow.direction == way));
    let interval = |(second, (zero, start, end, is_omitted)): (usize, (f64, f64, f64, bool))| {
        let mut streams = Vec::new();
        let mut sums = [(0.0, 0); 2];
        for ((flow, samples), came) in flows.iter().zip(&samples).zip(&came) {
            let within = samples.partition_point(|sample| sample.t_s <= start)
                ..samples.partition_point(|sample| sample.t_s <= end);
            let before = within.start.checked_sub(1).map_or(0, |before| samples[before].retransmits);
            // Without a connection there is none, and nothing comes; iperf3's streams are in each interval.
            let last = samples[within].last();
            let bytes = came[second] * 1e6 / 8.0;
            // A next connection counts from 0 again.
            let retransmits = last.map_or(0, |last| last.retransmits.checked_sub(before).unwrap_or(last.retransmits));
            let sum = &mut sums[usize::from(flow.direction == Direction::Down)];
            *sum = (sum.0 + bytes, sum.1 + retransmits);
            let srtt_ms = last.and_then(|last| last.srtt_ms);
            let more = json!({
                "socket": FIRST_SOCKET + flow.id,
                "retransmits": retransmits,
                "snd_cwnd": last.map(|last| u64::from(last.cwnd_segments) * segment_bytes(result, flow)),
                "rtt": srtt_ms.map(|srtt_ms| (srtt_ms * 1e3).round() as u64),
                "omitted": is_omitted,
                "sender": flow.direction == Direction::Up,
            });
            streams.push(with(amount(start - zero, end - zero, bytes), more));
        }
        let mut interval = json!({ "streams": streams });
        let both = ways == [true, true];
        for (((bytes, retransmits), any), is_up) in sums.into_iter().zip(ways).zip([true, false]) {
            let more = json!({ "retransmits": retransmits, "omitted": is_omitted, "sender": is_up });
            if any {
                let name = if both && !is_up { "sum_bidir_reverse" } else { "sum" };
                interval[name] = with(amount(start - zero, end - zero, bytes), more);
            }
        }
        interval
    };
    seconds.into_iter().enumerate().map(interval).collect()
}

fn bytes_of(flow: &FlowResult, seconds: f64) -> f64 {
    flow.goodput_mbps * 1e6 / 8.0 * seconds
}

fn end_of_tcp(result: &RunResult, series: &Series, flows: &[&FlowResult], seconds: f64) -> Value {
    let stream = |flow: &&FlowResult| {
        let (bytes, is_up) = (bytes_of(flow, seconds), flow.direction == Direction::Up);
        let ends = json!({ "socket": FIRST_SOCKET + flow.id, "sender": is_up });
        let mut sender = with(amount(0.0, seconds, bytes), ends.clone());
        sender["retransmits"] = json!(flow.retransmits);
        let samples = series.flows.of_flow(flow.id).filter(|sample| sample.t_s > result.warmup_s);
        if let Some(most) = samples.map(|sample| sample.cwnd_segments).max() {
            sender["max_snd_cwnd"] = json!(u64::from(most) * segment_bytes(result, flow));
        }
        if let Some(rtt) = flow.rtt_ms {
            for (name, ms) in [("max_rtt", rtt.max), ("min_rtt", rtt.min), ("mean_rtt", rtt.mean)] {
                sender[name] = json!((ms * 1e3).round() as u64);
            }
        }
        json!({ "sender": sender, "receiver": with(amount(0.0, seconds, bytes), ends) })
    };
    let control = flows.first().and_then(|flow| flow.congestion_control.as_deref()).unwrap_or_default();
    let mut end = json!({
        "streams": flows.iter().map(stream).collect::<Vec<_>>(),
        "cpu_utilization_percent": no_cpu(),
        "sender_tcp_congestion": control,
        "receiver_tcp_congestion": control,
    });
    let ways: Vec<Direction> = [Direction::Up, Direction::Down]
        .into_iter()
        .filter(|way| flows.iter().any(|flow| flow.direction == *way))
        .collect();
    for &way in &ways {
        let of_way = || flows.iter().filter(|flow| flow.direction == way);
        let bytes = of_way().map(|flow| bytes_of(flow, seconds)).sum::<f64>();
        let retransmits = of_way().map(|flow| flow.retransmits).sum::<u64>();
        let suffix = if ways.len() == 2 && way == Direction::Down { "_bidir_reverse" } else { "" };
        let sender = json!({ "sender": way == Direction::Up });
        end[format!("sum_received{suffix}")] = with(amount(0.0, seconds, bytes), sender.clone());
        end[format!("sum_sent{suffix}")] = with(amount(0.0, seconds, bytes), sender);
        end[format!("sum_sent{suffix}")]["retransmits"] = json!(retransmits);
    }
    end
}

fn end_of_udp(flows: &[&FlowResult], seconds: f64) -> Value {
    let counts = |flow: &FlowResult| flow.datagrams.unwrap_or_default();
    let fields = |lost: u64, received: u64, jitter_ms: Option<f64>| {
        let packets = lost + received;
        let lost_percent = (packets > 0).then(|| 100.0 * lost as f64 / packets as f64);
        json!({ "jitter_ms": jitter_ms, "lost_packets": lost, "packets": packets, "lost_percent": lost_percent })
    };
    let stream = |flow: &&FlowResult| {
        let datagrams = counts(flow);
        let more = fields(datagrams.lost, datagrams.received, datagrams.jitter_ms);
        let mut udp = with(amount(0.0, seconds, bytes_of(flow, seconds)), more);
        udp["socket"] = json!(FIRST_SOCKET + flow.id);
        udp["sender"] = json!(flow.direction == Direction::Up);
        json!({ "udp": udp })
    };
    let total = |of: fn(&lasthop_scenario::DatagramResult) -> u64| flows.iter().map(|flow| of(&counts(flow))).sum();
    let jitters: Vec<f64> = flows.iter().filter_map(|flow| counts(flow).jitter_ms).collect();
    let all = fields(total(|all| all.lost), total(|all| all.received), lasthop_measure::mean(&jitters));
    let sum = with(amount(0.0, seconds, flows.iter().map(|flow| bytes_of(flow, seconds)).sum::<f64>()), all);
    let mut end = json!({
        "streams": flows.iter().map(stream).collect::<Vec<_>>(),
        "cpu_utilization_percent": no_cpu(),
    });
    for (name, is_sender) in [("sum", true), ("sum_sent", true), ("sum_received", false)] {
        end[name] = sum.clone();
        end[name]["sender"] = json!(is_sender);
    }
    end
}

/// Readers of iperf3's JSON look for it. It is not measured.
fn no_cpu() -> Value {
    let names = ["host_total", "host_user", "host_system", "remote_total", "remote_user", "remote_system"];
    names.iter().map(|name| ((*name).to_owned(), Value::Null)).collect::<Map<String, Value>>().into()
}
