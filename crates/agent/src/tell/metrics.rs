//! What an agent tells a monitoring system: [`list`] has every metric.
//!
//! ```text
//!  agent's loop ──each tick: Sample──> Shown <──when asked── thread "lasthop-metrics" ──> GET /metrics, *.prom
//! ```
//!
//! The loop replaces one pointer and observes one histogram; the thread makes the text ([`crate::tell::exposition`]). Units
//! are seconds, bytes and, where windows are meant, segments. No label names a connection, a peer or an access point,
//! so an agent has the same few series for as long as it runs. A gauge of what is not known has no value.

use crate::clock;
use crate::config::Config;
use crate::tcp::host_tcp::SocketSample;
use crate::tcp::kernel_tcp::ASLEEP;
use crate::tcp::ungoverned;
use crate::tell::exposition::Exposition;
use lasthop_status::record::{Beacons, Totals};
use lasthop_status::{Gain, Status};
use lasthop_units::Span;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, prometheus_text, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::sync::{Arc, Mutex, PoisonError};

/// What every name begins with.
const PREFIX: &str = "lasthop";
/// How many sleepers that have closed are remembered at most, besides twice those that are there.
const MORE_SLEEPERS: u64 = 1000;

/// Upper ends of the histogram's buckets, in s: the excess is some 10 ms where control works and seconds where it is
/// needed.
const EXCESS_BUCKETS: [f64; 12] = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0];

/// A connection when it was told last.
#[derive(Debug)]
struct Counted {
    /// Bytes acknowledged, bytes received and segments retransmitted.
    carried: [u64; 3],
    tick: u64,
    /// It was idle for half the time after which it sleeps: ticks may be some seconds apart.
    dozes: bool,
}

/// The loop's end. Dropping it ends the thread and removes the file.
#[derive(Debug)]
pub(crate) struct Metrics {
    shown: Arc<Shown>,
    /// By cookie.
    counted: HashMap<u64, Counted>,
    /// Counts the calls of [`Metrics::on_flows`].
    tick: u64,
    counts: Counts,
    started_s: f64,
    _exposition: Exposition,
}

/// What nobody else counts.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    failed_ticks: u64,
    /// As `Metrics::counted`, over all connections.
    traffic: [u64; 3],
}

/// An agent's state at a tick.
#[derive(Debug)]
struct Sample {
    status: Status,
    totals: Totals,
    counts: Counts,
    /// Of the agent, and of this sample. Unix times in s.
    started_s: f64,
    taken_s: f64,
}

/// What the thread reads.
pub(crate) struct Shown {
    sample: Mutex<Arc<Sample>>,
    excess: Histogram,
}

impl Metrics {
    /// Begins to tell, as configured; `None`: nothing is. What cannot be had is a warning.
    pub(crate) fn start(config: &Config, status: Status) -> Option<Self> {
        let started_s = wall_s();
        let counts = Counts::default();
        let first = Sample { status, totals: Totals::default(), counts, started_s, taken_s: started_s };
        let sample = Mutex::new(Arc::new(first));
        let shown = Arc::new(Shown { sample, excess: Histogram::new(EXCESS_BUCKETS) });
        let exposition = Exposition::start(&config.metrics, config.lock, Arc::clone(&shown))?;
        Some(Self { shown, counted: HashMap::new(), tick: 0, counts, started_s, _exposition: exposition })
    }

    /// A tick at which nothing was renewed.
    pub(crate) fn on_failed(&mut self) {
        self.counts.failed_ticks += 1;
    }

    /// Counts what these connections carried since the last tick. Those that it has not met begin to count now.
    /// Of each the bool says whether it is sending. `asleep`: how many more there are, which are idle.
    pub(crate) fn on_flows<'f>(&mut self, flows: impl Iterator<Item = (&'f SocketSample, bool)>, asleep: u64) {
        self.tick += 1;
        let mut awake = 0;
        for (flow, busy) in flows {
            awake += 1;
            let now = [flow.tcp.acked.get(), flow.tcp.received.get(), flow.tcp.retransmits];
            let new = Counted { carried: now, tick: self.tick, dozes: flow.idle >= ASLEEP / 2 };
            let before = self.counted.insert(flow.cookie, new).map_or(now, |counted| counted.carried);
            for ((count, now), before) in self.counts.traffic.iter_mut().zip(now).zip(before) {
                *count += now.saturating_sub(before);
            }
            if let (true, Some(rtt), Some(least)) = (busy, flow.tcp.srtt, flow.tcp.min_rtt) {
                self.shown.excess.observe(rtt.saturating_sub(least).as_secs_f64());
            }
        }
        // What is not told has closed, or sleeps if it was idle before. Of sleepers that close nothing is told either.
        let too_many = self.counted.len() as u64 > awake + 2 * asleep + MORE_SLEEPERS;
        let tick = self.tick;
        self.counted.retain(|_, counted| counted.tick == tick || counted.dozes && !too_many);
    }

    /// Shows the agent's state from now on.
    pub(crate) fn show(&self, status: Status, totals: Totals) {
        let Self { counts, started_s, .. } = *self;
        let sample = Arc::new(Sample { status, totals, counts, started_s, taken_s: wall_s() });
        *self.shown.sample.lock().unwrap_or_else(PoisonError::into_inner) = sample;
    }
}

impl Shown {
    fn sample(&self) -> Arc<Sample> {
        Arc::clone(&self.sample.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The tick that is shown.
    pub(crate) fn tick(&self) -> u64 {
        self.sample().totals.ticks
    }
}

/// Every metric with its present value, as text.
#[derive(Debug)]
pub(crate) struct Page(Registry);

impl Page {
    pub(crate) fn new(shown: Arc<Shown>) -> Self {
        let mut registry = Registry::with_prefix(PREFIX);
        registry.register_collector(Box::new(shown));
        Self(registry)
    }

    /// OpenMetrics 1.0.
    pub(crate) fn openmetrics(&self) -> String {
        let mut page = String::new();
        text::encode(&mut page, &self.0).expect("a string takes all");
        page
    }

    /// The text format of Prometheus, 0.0.4.
    pub(crate) fn prometheus(&self) -> String {
        let mut page = String::new();
        prometheus_text::encode(&mut page, &self.0).expect("a string takes all");
        page
    }
}

impl Collector for Shown {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        list(&self.sample(), &self.excess, &mut Writer(encoder))
    }
}

impl fmt::Debug for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shown").finish_non_exhaustive()
    }
}

/// Every metric: its name without unit and suffix, what it is, its unit and its value.
fn list(sample: &Sample, excess: &Histogram, to: &mut Writer<'_>) -> fmt::Result {
    let Sample { status, totals, counts, started_s, taken_s } = sample;
    let [acked, received, retransmitted] = counts.traffic;
    let Beacons { sent, unsent, heard, rejected } = totals.beacons;
    let program = status.program.as_ref().map(|program| program.totals);
    let of = |index: usize| status.window_segments.map(|limits| f64::from(limits[index]));
    let pacing = |index: usize| status.pacing_mbps.map(|limits| bytes_per_second(limits[index]));

    to.info("build", "Version of the agent", &[("version", &status.version)])?;
    let labels =
        [("interface", &*status.interface), ("mode", status.mode.as_str()), ("policy", status.policy.as_str())];
    to.info("agent", "What it manages, and how", &labels)?;

    to.gauge(
        "loaded",
        "1: it sees and controls connections. 0: it cannot use the interface, and tries again",
        "",
        status.loaded,
    )?;
    to.gauge(
        "controlled",
        "1: some connection is under control; in mode advise: would be. 0: none",
        "",
        status.control_since_s.is_some(),
    )?;
    let kind = status.reason_kind.as_deref().unwrap_or("none");
    to.info("decision", "Why the first sending connection is limited or not, in one word", &[("kind", kind)])?;
    to.gauge("peers", "Other agents heard", "", status.peers)?;
    to.gauge("terminals", "Hosts with data to send, including this one if it has", "", status.terminals)?;
    let idle = status.connections.saturating_sub(status.busy);
    to.gauges(
        "connections",
        "TCP connections on the interface, by whether they are sending",
        "state",
        [("busy", status.busy), ("idle", idle)],
    )?;
    to.gauge(
        "bounded_connections",
        "Connections with a limit; in mode advise, those that would have one",
        "",
        status.bounded,
    )?;
    let not_governed = |escapes| {
        let count =
            |word: &str| status.ungoverned.iter().find(|left| left.why == word).map_or(0, |left| left.connections);
        ungoverned::words(escapes).map(move |word| (word, count(word)))
    };
    to.gauges(
        "escaped_connections",
        "Connections that are to be controlled and are not, by why, without idle ones",
        "why",
        not_governed(true),
    )?;
    to.gauges(
        "left_connections",
        "Connections that the configuration leaves alone, by why, without idle ones",
        "why",
        not_governed(false),
    )?;
    to.gauge(
        "common_rate",
        "Fair sending rate of each host, payload; no value: not controlled",
        PER_SECOND,
        status.common_rate_mbps.map(bytes_per_second),
    )?;
    let Gain { delivered_mbps, free_mbps, gain_ratio, group_delivered_mbps, group_free_mbps, .. } = status.gain;
    let Gain { group_gain_ratio, round_trip_ms, free_round_trip_ms, .. } = status.gain;
    let known = |mbps: Option<f64>| mbps.map(bytes_per_second);
    let seconds = |ms: Option<f64>| ms.map(|ms| ms / 1e3);
    to.gauge(
        "delivered",
        "This host's goodput, payload sent and received, in mode control; no value: unknown",
        PER_SECOND,
        known(delivered_mbps),
    )?;
    to.gauge(
        "free",
        "This host's goodput while free, before the limits that hold now; no value: unknown, or nothing is limited",
        PER_SECOND,
        known(free_mbps),
    )?;
    to.gauge(
        "gain",
        "This host's goodput now over its goodput while free; no value: they do not compare",
        "ratio",
        gain_ratio,
    )?;
    to.gauge(
        "group_delivered",
        "Goodput of all hosts behind the access point that say so, together; no value: unknown",
        PER_SECOND,
        known(group_delivered_mbps),
    )?;
    to.gauge(
        "group_free",
        "The same while free, before the limits that hold now; no value: unknown, or nothing is limited",
        PER_SECOND,
        known(group_free_mbps),
    )?;
    to.gauge(
        "group_gain",
        "Goodput of all hosts now over their goodput while free; no value: they do not compare",
        "ratio",
        group_gain_ratio,
    )?;
    to.gauge(
        "round_trip",
        "Mean round trip of this host's bulk connections; no value: unknown",
        "seconds",
        seconds(round_trip_ms),
    )?;
    to.gauge(
        "free_round_trip",
        "The same while free, before the limits that hold now; no value: unknown, or nothing is limited",
        "seconds",
        seconds(free_round_trip_ms),
    )?;
    let harmed = |kind| u32::from(status.harmed_by.as_deref() == Some(kind));
    to.gauges(
        "harmed",
        "1: the policy has found that control does not help, by cause: all hosts get less, something unlimited fills the queue, or \
         most other hosts have found so",
        "cause",
        lasthop_policy::Harm::KINDS.map(|kind| (kind, harmed(kind))),
    )?;
    to.gauge("least_window_limit", "Least upper limit of a window; no value: there is none", "segments", of(0))?;
    to.gauge("largest_window_limit", "Largest upper limit of a window; no value: there is none", "segments", of(1))?;
    to.gauge("least_pacing_limit", "Least limit of a pacing rate; no value: there is none", PER_SECOND, pacing(0))?;
    to.gauge("largest_pacing_limit", "Largest limit of a pacing rate; no value: there is none", PER_SECOND, pacing(1))?;
    to.histogram(
        "rtt_excess",
        "Smoothed round trip above the connection's lowest, of each sending connection at each tick",
        "seconds",
        excess,
    )?;

    to.counter(
        "acked",
        "Payload that others acknowledged, counted from the first to the last tick of a connection",
        "bytes",
        acked,
    )?;
    to.counter("received", "Payload received, counted likewise", "bytes", received)?;
    to.counter("retransmitted_segments", "Segments retransmitted, counted likewise", "", retransmitted)?;

    to.counter("ticks", "Looks at the connections, one each 0.5 s unless configured otherwise", "", totals.ticks)?;
    to.counter("late_ticks", "Ticks that began more than half a tick late", "", totals.late_ticks)?;
    to.counter("failed_ticks", "Ticks at which an error kept bounds from being renewed", "", counts.failed_ticks)?;
    to.counter("bound_changes", "Limits set, changed or removed", "", totals.bounds_changed)?;
    to.counter(
        "enabled_connections",
        "Connections that came under control; in mode advise: would have",
        "",
        totals.flows_enabled,
    )?;
    to.counter("roams", "Changes of the access point", "", totals.roamed)?;
    to.counter("resumes", "Suspensions of the machine", "", totals.resumed)?;

    let beacons = [("sent", sent), ("unsent", unsent), ("heard", heard), ("rejected", rejected)];
    to.counters("beacons", "Messages between agents, by what became of them", "result", beacons)?;
    let causes = totals.rejected_by_cause.iter().map(|(cause, count)| (&**cause, *count));
    to.counters("rejected_beacons", "Rejected messages, by cause", "cause", causes)?;

    let decisions = program.map(|program| [("in-time", program.decisions), ("late", program.late)]);
    to.counters(
        "program_decisions",
        "Ticks by whether the program of the policy external decided; none: another policy",
        "result",
        decisions.into_iter().flatten(),
    )?;
    to.counter(
        "program_failures",
        "Times that this program could not be started, ended, hung, or wrote nonsense",
        "",
        program.map(|program| program.failures),
    )?;
    to.counter("program_starts", "Times that this program was started", "", program.map(|program| program.starts))?;

    to.counter(
        "lost_state_changes",
        "Changes of congestion states that the kernel dropped for lack of room",
        "",
        totals.state_changes_lost,
    )?;
    to.counter(
        "lost_record_lines",
        "Lines dropped from the record, unread in time or unwritable",
        "",
        totals.lines_left_out,
    )?;
    to.gauge("last_tick_timestamp", "Unix time of the tick that is told here", "seconds", *taken_s)?;
    to.counter("process_cpu", "CPU time of the process, in user and kernel mode", "seconds", cpu_s())?;
    to.gauge("process_resident_memory", "Resident memory of the process", "bytes", resident_bytes())?;
    to.gauge("process_start_time", "Unix time of the agent's start", "seconds", *started_s)
}

const PER_SECOND: &str = "bytes_per_second";

fn bytes_per_second(mbps: f64) -> f64 {
    mbps * 1e6 / 8.0
}

/// Numbers of gauges and counters; `None`: no value. f64 is exact up to 2^53, which 9 PB of payload exceed.
struct Value(Option<f64>);

macro_rules! value_from {
    ($($number:ty => $convert:expr),*) => {
        $(
            impl From<$number> for Value {
                fn from(number: $number) -> Self {
                    Self(Some($convert(number)))
                }
            }
        )*
    };
}
value_from!(bool => f64::from, u32 => f64::from, u64 => |number| number as f64, f64 => |number| number);

impl<T> From<Option<T>> for Value
where
    Self: From<T>,
{
    fn from(value: Option<T>) -> Self {
        value.map_or(Self(None), Self::from)
    }
}

/// Writes metrics. An empty unit is none.
struct Writer<'e>(DescriptorEncoder<'e>);

impl Writer<'_> {
    fn info(&mut self, name: &str, help: &str, labels: &[(&'static str, &str)]) -> fmt::Result {
        let labels: Vec<_> = labels.iter().map(|(label, value)| (*label, (*value).to_owned())).collect();
        let info = Info::new(labels);
        info.encode(self.0.encode_descriptor(name, help, None, MetricType::Info)?)
    }

    fn gauge(&mut self, name: &str, help: &str, unit: &str, value: impl Into<Value>) -> fmt::Result {
        let (Value(value), unit) = (value.into(), named(unit));
        let encoder = self.0.encode_descriptor(name, help, unit.as_ref(), MetricType::Gauge)?;
        value.map_or(Ok(()), |value| ConstGauge::new(value).encode(encoder))
    }

    fn gauges<'w>(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        values: impl IntoIterator<Item = (&'w str, u32)>,
    ) -> fmt::Result {
        let mut encoder = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        values
            .into_iter()
            .try_for_each(|(word, value)| ConstGauge::new(value).encode(encoder.encode_family(&[(label, word)])?))
    }

    fn counter(&mut self, name: &str, help: &str, unit: &str, value: impl Into<Value>) -> fmt::Result {
        let (Value(value), unit) = (value.into(), named(unit));
        let encoder = self.0.encode_descriptor(name, help, unit.as_ref(), MetricType::Counter)?;
        value.map_or(Ok(()), |value| ConstCounter::new(value).encode(encoder))
    }

    fn counters<'v>(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        values: impl IntoIterator<Item = (&'v str, u64)>,
    ) -> fmt::Result {
        let mut encoder = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        values
            .into_iter()
            .try_for_each(|(word, value)| ConstCounter::new(value).encode(encoder.encode_family(&[(label, word)])?))
    }

    fn histogram(&mut self, name: &str, help: &str, unit: &str, histogram: &Histogram) -> fmt::Result {
        histogram.encode(self.0.encode_descriptor(name, help, named(unit).as_ref(), MetricType::Histogram)?)
    }
}

fn named(unit: &str) -> Option<Unit> {
    (!unit.is_empty()).then(|| Unit::Other(unit.to_owned()))
}

fn wall_s() -> f64 {
    Span::from_nanos(clock::wall_ns()).as_secs_f64()
}

fn cpu_s() -> Option<f64> {
    let seconds = |time: TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    let usage = getrusage(UsageWho::RUSAGE_SELF).ok()?;
    Some(seconds(usage.user_time()) + seconds(usage.system_time()))
}

fn resident_bytes() -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let kib = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.split_whitespace().next()?;
    Some(1024.0 * kib.parse::<f64>().ok()?)
}
