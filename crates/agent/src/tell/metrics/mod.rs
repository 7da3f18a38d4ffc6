//! What an agent tells a monitoring system: [`list`] has every metric.
//!
//! A metric of a number in [`Status`] or [`Totals`] is a line there. One with a number of its own is a file, its `mod`, and a line of
//! [`own`] (docs/guide/new-parts.md).
//!
//! ```text
//!  agent's loop ──each tick: Sample──> Shown <──when asked── thread "lasthop-metrics" ──> GET /metrics, *.prom
//! ```
//!
//! The loop replaces one pointer; the thread makes the text ([`crate::tell::exposition`]). Units
//! are seconds, bytes and, where windows are meant, segments. No label names a connection, a peer or an access point,
//! so an agent has the same few series for as long as it runs. A gauge of what is not known has no value.

mod carried;
mod rtt_excess;
#[cfg(test)]
#[path = "../../../tests/examples/unsent.rs"]
mod unsent;
mod writer;

pub(crate) use writer::Number;

use crate::clock;
use crate::config::Config;
use crate::tcp::host_tcp::SocketSample;
use crate::tcp::ungoverned;
use crate::tell::exposition::Exposition;
use carried::Carried;
use lasthop_policy::governor::FlowTurn;
use lasthop_status::record::{Beacons, Totals};
use lasthop_status::{Gain, Status};
use lasthop_units::Span;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, prometheus_text, text};
use prometheus_client::registry::Registry;
use rtt_excess::RttExcess;
use std::fmt;
use std::fs;
use std::sync::{Arc, Mutex, PoisonError};
#[cfg(test)]
use unsent::Unsent;
use writer::Writer;

/// What every name begins with.
const PREFIX: &str = "lasthop";

/// The metrics that keep their own numbers, in the order of the page.
fn own() -> Vec<Box<dyn Metric>> {
    Vec::from([
        Box::<RttExcess>::default() as Box<dyn Metric>,
        Box::<Carried>::default(),
        #[cfg(test)]
        Box::<Unsent>::default(),
    ])
}

/// What a metric of its own does.
pub(crate) trait Metric: fmt::Debug + Send {
    /// The agent has seen its connections and has decided.
    fn on_tick(&mut self, tick: &Tick<'_>);

    /// Its present numbers.
    fn numbers(&self) -> Vec<Number>;
}

/// What an agent has seen and decided at a tick.
#[derive(Debug)]
pub(crate) struct Tick<'a> {
    /// The connections.
    pub(crate) sockets: &'a [SocketSample],
    /// What the policy sees of each and decides, in their order.
    pub(crate) flows: &'a [FlowTurn],
    /// How many more there are, which are idle.
    pub(crate) asleep: u64,
}

/// The loop's end. Dropping it ends the thread and removes the file.
#[derive(Debug)]
pub(crate) struct Metrics {
    shown: Arc<Shown>,
    own: Vec<Box<dyn Metric>>,
    failed_ticks: u64,
    started_s: f64,
    _exposition: Exposition,
}

/// An agent's state at a tick.
#[derive(Debug)]
struct Sample {
    status: Status,
    totals: Totals,
    failed_ticks: u64,
    own: Vec<Number>,
    /// Of the agent, and of this sample. Unix times in s.
    started_s: f64,
    taken_s: f64,
}

/// What the thread reads.
pub(crate) struct Shown {
    sample: Mutex<Arc<Sample>>,
}

impl Metrics {
    /// Begins to tell, as configured; `None`: nothing is. What cannot be had is a warning.
    pub(crate) fn start(config: &Config, status: Status) -> Option<Self> {
        let started_s = wall_s();
        let own = own();
        let numbers = numbers(&own);
        let totals = Totals::default();
        let first = Sample { status, totals, failed_ticks: 0, own: numbers, started_s, taken_s: started_s };
        let shown = Arc::new(Shown { sample: Mutex::new(Arc::new(first)) });
        let exposition = Exposition::start(&config.metrics, config.lock, Arc::clone(&shown))?;
        Some(Self { shown, own, failed_ticks: 0, started_s, _exposition: exposition })
    }

    /// A tick at which nothing was renewed.
    pub(crate) fn on_failed(&mut self) {
        self.failed_ticks += 1;
    }

    /// A tick at which the agent has decided.
    pub(crate) fn on_tick(&mut self, tick: &Tick<'_>) {
        self.own.iter_mut().for_each(|metric| metric.on_tick(tick));
    }

    /// Shows the agent's state from now on.
    pub(crate) fn show(&self, status: Status, totals: Totals) {
        let Self { failed_ticks, started_s, .. } = *self;
        let own = numbers(&self.own);
        let sample = Arc::new(Sample { status, totals, failed_ticks, own, started_s, taken_s: wall_s() });
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
        list(&self.sample(), &mut Writer(encoder))
    }
}

impl fmt::Debug for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shown").finish_non_exhaustive()
    }
}

fn numbers(own: &[Box<dyn Metric>]) -> Vec<Number> {
    own.iter().flat_map(|metric| metric.numbers()).collect()
}

/// Every metric: its name without unit and suffix, what it is, its unit and its value.
fn list(sample: &Sample, to: &mut Writer<'_>) -> fmt::Result {
    let Sample { status, totals, failed_ticks, own, started_s, taken_s } = sample;
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
    own.iter().try_for_each(|number| to.number(number))?;

    to.counter("ticks", "Looks at the connections, one each 0.5 s unless configured otherwise", "", totals.ticks)?;
    to.counter("late_ticks", "Ticks that began more than half a tick late", "", totals.late_ticks)?;
    to.counter("failed_ticks", "Ticks at which an error kept bounds from being renewed", "", *failed_ticks)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_connection::TcpState;
    use lasthop_units::Bytes;
    use std::net::{Ipv4Addr, SocketAddr};

    fn socket(cookie: u64, unsent: u64) -> SocketSample {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        SocketSample {
            cookie,
            tcp: TcpState { unsent: Bytes::new(unsent), ..TcpState::default() },
            local: address,
            remote: address,
            interface_index: 1,
            in_container: false,
            congestion_control: "lasthop".into(),
            controlled: true,
            left: None,
            retransmitted: Bytes::ZERO,
            delivery_rate: None,
            received_segments: 0,
            out_of_order_segments: 0,
            idle: Span::ZERO,
            bound: None,
            bound_until: None,
            rule: None,
        }
    }

    #[test]
    fn the_example_is_on_the_page_with_what_all_connections_have_unsent() {
        let mut own = own();
        let ready = lasthop_status::record::Ready {
            t_ns: 0,
            unix_ms: None,
            interface: "wlan0".to_owned(),
            congestion_control: None,
            mode: lasthop_status::Mode::Control,
            policy: lasthop_policy::PolicyName::Lasthop,
            group: None,
            version: String::new(),
        };
        let mut page = |sockets: &[SocketSample]| {
            let tick = Tick { sockets, flows: &[], asleep: 0 };
            own.iter_mut().for_each(|metric| metric.on_tick(&tick));
            let (status, totals) = (Status::of(&ready), Totals::default());
            let sample = Sample { status, totals, failed_ticks: 0, own: numbers(&own), started_s: 0.0, taken_s: 0.0 };
            Page::new(Arc::new(Shown { sample: Mutex::new(Arc::new(sample)) })).openmetrics()
        };
        let full = page(&[socket(1, 1000), socket(2, 500)]);
        assert!(
            full.contains("# TYPE lasthop_unsent_bytes gauge\n") && full.contains("\nlasthop_unsent_bytes 1500"),
            "{full}"
        );
        assert!(page(&[]).contains("\nlasthop_unsent_bytes 0"));
    }

    #[test]
    fn the_page_about_new_parts_has_the_example_as_it_is_compiled() {
        let page = include_str!("../../../../../docs/guide/new-parts.md");
        let example = include_str!("../../../tests/examples/unsent.rs");
        assert!(page.contains(example), "crates/agent/tests/examples/unsent.rs");
    }
}
