//! flent's data file (version 4 of its format), as of its test `rrul_var`: `flent -i FILE -f summary`, `-p all_scaled`.
//!
//! Each TCP flow is a stream `TCP upload::…` or `TCP download::…` in Mbits/s of goodput; sums and means of both ways are
//! there as flent computes them. A step without a connection is 0 from the flow's start on: nothing came, where flent's own
//! null says that nothing was measured. Each `ping` flow is a `Ping (ms)::UDP …`. Without one the smoothed round trips of the
//! TCP flows stand there, and their names say so. Each `constant` flow is a `One-way delay (ms)::…`. The test's parameter
//! `labels` has the names of all streams, by which flent finds them for its plots.
//!
//! Samples of a TCP flow also have what flent reads from `ss`, for its plots `tcp_rtt` and `tcp_cwnd`: the smoothed round
//! trip in ms (`tcp_rtt`) and the window in packets (`tcp_cwnd`).
//!
//! Time begins at 1970-01-01: a result does not know when it was measured.
//!
//! Reference: flent 2.3.0, flent/resultset.py, flent/tests/tcp_stats.inc.

use super::{ExportError, Format, Written, is_tcp, name};
use crate::goodput;
use flate2::Compression;
use flate2::write::GzEncoder;
use lasthop_measure::mean;
use lasthop_scenario::{Direction, FlowResult, FlowSample, Pieces, RunResult, Series};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::io::{self, Read as _, Write as _};

/// `FILEFORMAT_VERSION`.
const VERSION: u32 = 4;
/// flent's usual step: samples of shorter intervals are joined.
const STEP_S: f64 = 0.2;
/// Of a step: more than the error of a time in seconds.
const HARDLY: f64 = 1e-6;
const BEGINNING: &str = "1970-01-01T00:00:00.000000Z";

/// One stream of values, one a step.
struct Stream {
    name: String,
    unit: &'static str,
    raw: Vec<Raw>,
    values: Vec<Option<f64>>,
}

/// One value.
struct Raw {
    t_s: f64,
    value: f64,
    /// Of a TCP flow, its smoothed round trip and its window.
    tcp: Option<(Option<f64>, u32)>,
}

impl Raw {
    fn to_json(&self) -> Value {
        let mut row = json!({ "t": self.t_s, "val": self.value });
        if let Some((rtt_ms, cwnd)) = self.tcp {
            row["tcp_cwnd"] = json!(cwnd);
            // Before the first round trip flent's row has none.
            if let Some(rtt_ms) = rtt_ms {
                row["tcp_rtt"] = json!(rtt_ms);
            }
        }
        row
    }
}

/// The steps of the file.
#[derive(Clone, Copy)]
struct Steps {
    step_s: f64,
    count: usize,
}

impl Steps {
    /// Of the intervals between the samples, of 0.2 s at least.
    fn of(result: &RunResult) -> Self {
        let sample_s = result.scenario["sample_ms"].as_f64().map_or(STEP_S, |ms| ms / 1e3);
        let step_s = sample_s * (STEP_S / sample_s).ceil().max(1.0);
        Self { step_s, count: (result.duration_s / step_s).ceil() as usize }
    }

    /// Of samples, each of the time before it.
    fn of_samples(self, name: String, raw: Vec<Raw>) -> Stream {
        self.stream(name, "ms", raw, -HARDLY)
    }

    /// Of the goodput of a connection. From its start on, a step without a connection is one in which nothing came.
    fn of_goodput(self, name: String, raw: Vec<Raw>, means: &[(f64, f64)]) -> Stream {
        let mut values = vec![None; self.count];
        for (middle_s, mbps) in means {
            // Whole bit/s.
            values[(middle_s / self.step_s) as usize] = Some((mbps * 1e6).round() / 1e6);
        }
        Stream { name, unit: "Mbits/s", raw, values }
    }

    /// Of datagrams, each of the moment when it was sent.
    fn of_datagrams(self, name: String, raw: Vec<Raw>) -> Stream {
        self.stream(name, "ms", raw, HARDLY)
    }

    /// The mean of the values in each step. What falls between two steps is in the one that `nudge` says.
    fn stream(self, name: String, unit: &'static str, raw: Vec<Raw>, nudge: f64) -> Stream {
        let mut within = vec![Vec::new(); self.count];
        for &Raw { t_s, value, .. } in &raw {
            let step = (t_s / self.step_s + nudge).floor().max(0.0) as usize;
            within[step.min(self.count - 1)].push(value);
        }
        Stream { name, unit, raw, values: within.iter().map(|values| mean(values)).collect() }
    }
}

const FORMAT: Format = Format {
    program: "flent",
    accepted: "flows of the kinds bulk, on-off, interactive, transfers, video, ping and constant of which something was sampled",
};

/// The data file as JSON, with the flows of these numbers, or all that it can show.
///
/// # Errors
/// If none of the flows can be shown, or one of these numbers cannot.
pub fn flent(result: &RunResult, series: &Series, numbers: Option<&[u32]>) -> Result<Written, ExportError> {
    let of_connections: BTreeSet<u32> = series.flows.flow.iter().copied().collect();
    let of_datagrams: BTreeSet<u32> = series.datagrams.flow.iter().copied().collect();
    let why_not = |flow: &FlowResult| {
        let sampled = match flow.pieces() {
            Pieces::Pings | Pieces::Datagrams => of_datagrams.contains(&flow.id),
            _ if is_tcp(flow) => of_connections.contains(&flow.id),
            _ => return Some("has no place in it"),
        };
        (!sampled).then_some("has no samples")
    };
    let (shown, left_out) = FORMAT.shown(result, numbers, why_not)?;
    let steps = Steps::of(result);
    let samples = |id| {
        let tcp = |sample: &FlowSample| Some((sample.srtt_ms, sample.cwnd_segments));
        let raw = |sample: FlowSample| Raw { t_s: sample.t_s, value: sample.goodput_mbps, tcp: tcp(&sample) };
        series.flows.of_flow(id).map(raw).collect()
    };
    let srtt = |id| {
        let raw = |sample: FlowSample| Some(Raw { t_s: sample.t_s, value: sample.srtt_ms?, tcp: None });
        series.flows.of_flow(id).filter_map(raw).collect()
    };
    let took = |id| {
        let of_flow = series.datagrams.rows().filter(move |sample| sample.flow == id);
        of_flow.map(|sample| Raw { t_s: sample.t_s, value: sample.took_ms, tcp: None }).collect()
    };
    let pings = shown.iter().any(|flow| flow.pieces() == Pieces::Pings);
    let mut streams = Vec::new();
    for flow in shown {
        let of = name(result, flow);
        let way = match flow.direction {
            Direction::Up => "upload",
            Direction::Down => "download",
        };
        match flow.pieces() {
            Pieces::Pings => streams.push(steps.of_datagrams(format!("Ping (ms)::UDP {of}"), took(flow.id))),
            Pieces::Datagrams => {
                streams.push(steps.of_datagrams(format!("One-way delay (ms)::{of} {}", flow.direction), took(flow.id)));
            }
            _ if is_tcp(flow) => {
                let means = goodput::means(result, series, flow, steps.step_s);
                streams.push(steps.of_goodput(format!("TCP {way}::{of}"), samples(flow.id), &means));
                if !pings {
                    streams.push(steps.of_samples(format!("Ping (ms)::UDP TCP RTT of {of}"), srtt(flow.id)));
                }
            }
            _ => {}
        }
    }
    let labels: Vec<String> = streams.iter().filter_map(|stream| label(&stream.name).map(str::to_owned)).collect();
    let of_all = [
        ("TCP upload avg", "TCP upload::", false),
        ("TCP upload sum", "TCP upload::", true),
        ("TCP download avg", "TCP download::", false),
        ("TCP download sum", "TCP download::", true),
        ("TCP totals", "TCP ", true),
        ("Ping (ms) avg", "Ping (ms)::", false),
    ];
    let computed = of_all.map(|(name, of, is_sum)| computed(&streams, name, of, is_sum));
    streams.extend(computed.into_iter().flatten());
    let map = |value: &dyn Fn(&Stream) -> Value| -> Map<String, Value> {
        streams.iter().map(|stream| (stream.name.clone(), value(stream))).collect()
    };
    let raw = |stream: &Stream| stream.raw.iter().map(Raw::to_json).collect::<Value>();
    let mut note = format!("lasthop {}, {:?} hosts, seed {}", result.build.version, result.hosts_kind, result.seed);
    left_out.iter().for_each(|flow| note.push_str(&format!("; left out: {flow}")));
    let document = json!({
        "version": VERSION,
        "metadata": {
            "NAME": "rrul_var",
            "TITLE": result.name(),
            "NOTE": note,
            "HOST": "server",
            "HOSTS": ["server"],
            "LOCAL_HOST": "lasthop",
            "TIME": BEGINNING,
            "T0": BEGINNING,
            "LENGTH": result.duration_s,
            "TOTAL_LENGTH": result.duration_s,
            "STEP_SIZE": steps.step_s,
            "IP_VERSION": 4,
            "FAILED_RUNNERS": 0,
            "TEST_PARAMETERS": { "bidir_streams": labels.len().to_string(), "labels": labels.join(",") },
            "SERIES_META": map(&|stream| json!({ "UNITS": stream.unit })),
        },
        "x_values": (0..steps.count).map(|step| step as f64 * steps.step_s).collect::<Vec<f64>>(),
        "results": map(&|stream| json!(stream.values)),
        "raw_values": map(&raw),
    });
    Ok(Written { document, left_out })
}

/// What flent calls a stream's label.
fn label(name: &str) -> Option<&str> {
    ["TCP upload::", "TCP download::", "Ping (ms)::UDP "].iter().find_map(|kind| name.strip_prefix(kind))
}

/// The sums or means of these streams; `None` if there are none.
fn computed(streams: &[Stream], name: &str, of: &str, is_sum: bool) -> Option<Stream> {
    let of: Vec<&Stream> = streams.iter().filter(|stream| stream.name.starts_with(of)).collect();
    let at = |step: usize| {
        let values: Vec<f64> = of.iter().filter_map(|stream| stream.values[step]).collect();
        if is_sum { (!values.is_empty()).then(|| values.iter().sum()) } else { mean(&values) }
    };
    let first = of.first()?;
    let values = (0..first.values.len()).map(at).collect();
    Some(Stream { name: name.to_owned(), unit: first.unit, raw: Vec::new(), values })
}

/// Compressed, as `FILE.flent.gz`.
///
/// # Errors
/// Never in practice: it is compressed in memory.
pub fn gzip(text: &str) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_bytes())?;
    encoder.finish()
}

/// Whether this is the whole text of an export to one file, as [`flent`] and [`iperf3`](super::iperf3) write it.
pub fn is_export(bytes: &[u8]) -> bool {
    const MARK: &[u8] = b"\"lasthop";
    let mut text = Vec::new();
    // What is compressed may be a thousand times as long.
    let read = flate2::read::GzDecoder::new(bytes).take(256 << 20).read_to_end(&mut text);
    let text = if read.is_ok() { &text } else { bytes };
    text.starts_with(b"{") && text.windows(MARK.len()).any(|part| part == MARK)
}
