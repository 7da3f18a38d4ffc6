//! A run that goes on: its samples as far apart as a picture can show, and the part of a page that shows them.

use crate::html;
use lasthop_measure::Sampled;
use lasthop_scenario::{ACCESS_POINT, FlowSample, QueueSample, RunResult, Scenario, Series};
use lasthop_units::{Bytes, Rate, Span, Time};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Samples before the next ones are twice as far apart; then after as many halves.
const SAMPLES: u32 = 1200;
/// The air is told as a mean over this time at least: one frame takes longer than some samples are apart.
const AIR: Span = Span::from_millis(500);

/// One sample of a run. As JSON, what `run`, `compare`, `study` and `exec` leave for `lasthop view`.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Sample {
    t_s: f64,
    /// Of each open flow its place among the flows, goodput since its sample before (Mb/s), smoothed RTT (ms), and window (segments).
    flows: Vec<(usize, f64, Option<f64>, u32)>,
    /// The packets in the access point's queue; with simulated hosts.
    queue: Option<usize>,
    /// The share of the time since the one before in which the channel carried a frame, 0 to 1; with simulated hosts.
    #[serde(default)]
    air: Option<f64>,
}

/// Makes samples from what a run tells while it goes on. There are some 1200 at most, however long the run is. Flows in an open loop,
/// which have many connections, are left out.
#[derive(Debug)]
pub struct Sampler {
    /// By connection: its flow's place; `None`: of an open loop.
    flows: Vec<Option<usize>>,
    /// The moment of the sample that comes together, and whether it is kept.
    at: Option<(Time, bool)>,
    next: Time,
    first_step: Span,
    step: Span,
    samples: u32,
    sample: Sample,
    /// By connection: when it was sampled last, and what had been received by then.
    before: Vec<(Time, Bytes)>,
    /// When the air was told last, and its counts then: the time with a frame, and all.
    air: (Time, Span, Span),
}

impl Sampler {
    /// Of a run of this scenario.
    pub fn new(scenario: &Scenario) -> Self {
        let hosts = scenario.expanded_hosts();
        let flows = hosts.iter().flat_map(|host| &host.flows);
        let step = Span::from_secs_f64(scenario.duration.as_secs_f64() / f64::from(SAMPLES / 2));
        Self::of(
            flows.map(|flow| flow.arrival.is_none().then_some(flow.id as usize)).collect(),
            scenario.sample.max(step),
        )
    }

    fn of(flows: Vec<Option<usize>>, step: Span) -> Self {
        Self {
            at: None,
            next: Time::ZERO,
            first_step: step,
            step,
            samples: 0,
            sample: Sample::default(),
            before: vec![(Time::ZERO, Bytes::ZERO); flows.len()],
            air: (Time::ZERO, Span::ZERO, Span::ZERO),
            flows,
        }
    }

    /// Whether time went back: the run is tried once more. What was sampled then counts no more.
    pub fn begins_again(&mut self, at: Time) -> bool {
        let is_again = self.at.is_some_and(|(last, _)| at < last);
        if is_again {
            *self = Self::of(std::mem::take(&mut self.flows), self.first_step);
        }
        is_again
    }

    /// Takes what a run tells, in the order of time. `Some`: the sample that is whole by this, the one before this moment.
    pub fn on_sample(&mut self, at: Time, sampled: Sampled<'_>) -> Option<Sample> {
        let mut whole = None;
        if self.at.is_none_or(|(same, _)| same != at) {
            whole = self.whole();
            let is_due = at >= self.next;
            if is_due {
                self.next = at + self.step;
            }
            self.at = Some((at, is_due));
        }
        if self.at.is_some_and(|(_, is_kept)| is_kept) {
            self.take(at, sampled);
        }
        whole
    }

    fn take(&mut self, at: Time, sampled: Sampled<'_>) {
        match sampled {
            Sampled::Connection(connection, received, Some(seen)) => {
                let Some(flow) = self.flows[connection] else { return };
                let (since, before) = std::mem::replace(&mut self.before[connection], (at, received));
                let more = Bytes::new(received.get().saturating_sub(before.get()));
                let goodput_mbps = Rate::over(more, at.saturating_since(since)).as_mbps();
                let srtt_ms = seen.tcp.srtt.map(Span::as_millis_f64);
                self.sample.t_s = at.as_secs_f64();
                self.sample.flows.push((flow, goodput_mbps, srtt_ms, seen.tcp.cwnd_segments));
            }
            Sampled::Connection(.., None) => {}
            Sampled::Queue(packets) => self.sample.queue = Some(packets),
            Sampled::Air { busy, of } => {
                let (since, busy_before, of_before) = self.air;
                // At the end of the warm-up the counts begin anew.
                let is_anew = of < of_before;
                if is_anew || at.saturating_since(since) >= AIR {
                    self.air = (at, busy, of);
                }
                if !is_anew && at.saturating_since(since) >= AIR && of > of_before {
                    let share = busy.saturating_sub(busy_before).as_secs_f64() / (of - of_before).as_secs_f64();
                    self.sample.air = Some(share.clamp(0.0, 1.0));
                }
            }
        }
    }

    fn whole(&mut self) -> Option<Sample> {
        if self.sample.flows.is_empty() {
            return None;
        }
        self.samples += 1;
        if self.samples == SAMPLES {
            (self.samples, self.step) = (SAMPLES / 2, self.step * 2);
        }
        Some(std::mem::take(&mut self.sample))
    }
}

/// A run that goes on, as far as it has come.
#[derive(Debug)]
pub struct Going {
    label: String,
    begun: RunResult,
    has_end: bool,
    series: Series,
    /// Seconds, and the share of the time before in which the channel carried a frame, 0 to 1.
    air: Vec<(f64, f64)>,
}

impl Going {
    /// Of a run. `begun`: its result as far as it is known at its begin ([`lasthop_measure::begun`]); `has_end`: whether it takes as long
    /// as that says.
    pub fn new(label: &str, begun: RunResult, has_end: bool) -> Self {
        Self { label: label.to_owned(), begun, has_end, series: Series::default(), air: Vec::new() }
    }

    /// Adds a sample.
    pub fn push(&mut self, sample: &Sample) {
        let t_s = sample.t_s;
        for &(flow, goodput_mbps, srtt_ms, cwnd_segments) in &sample.flows {
            let Some(of) = self.begun.flows.get(flow) else { continue };
            let (flow, host) = (of.id, of.host);
            let more = FlowSample { t_s, flow, host, goodput_mbps, srtt_ms, cwnd_segments, ..FlowSample::default() };
            self.series.flows.push(more);
        }
        if let Some(packets) = sample.queue {
            let place = ACCESS_POINT.to_owned();
            self.series.queues.push(QueueSample { t_s, place, packets: packets as u32 });
        }
        self.air.extend(sample.air.map(|share| (t_s, share)));
    }

    /// Whether there is something to see.
    pub fn has_samples(&self) -> bool {
        !self.series.flows.is_empty()
    }

    /// What it has as a part of a page.
    pub fn part(&self) -> String {
        html::render(
            "live.html",
            &json!({ "planned": 1, "done": 0, "run": self.shown(), "ended": [], "not_listed": 0 }),
        )
    }

    /// The run in `live.html`.
    pub(crate) fn shown(&self) -> Value {
        html::going(&self.label, self.begun.clone(), self.has_end, &self.series, &self.air)
    }
}
