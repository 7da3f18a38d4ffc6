//! A run that goes on: its samples as far apart as a picture can show, and the part of a page that shows them.

use crate::{figures, html};
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
    /// Of each flow that has had a connection its place among the flows, goodput since its sample before (Mb/s), smoothed RTT (ms), and
    /// window (segments): the last two of an open connection only.
    flows: Vec<(usize, f64, Option<f64>, Option<u32>)>,
    /// The packets in the access point's queue; with simulated hosts.
    queue: Option<usize>,
    /// The share of the time since the one before in which the channel carried a frame, 0 to 1; with simulated hosts.
    #[serde(default)]
    air: Option<f64>,
}

/// Makes samples from what a run tells while it goes on: 1200 at most, and 600 more for each time that it takes twice as long as planned.
/// Flows in an open loop, which have many connections, are left out.
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
            // A flow that never had a connection of TCP or QUIC has no line.
            Sampled::Connection(connection, _, None) if self.before[connection].0 == Time::ZERO => {}
            Sampled::Connection(connection, received, seen) => {
                let Some(flow) = self.flows[connection] else { return };
                let (since, before) = std::mem::replace(&mut self.before[connection], (at, received));
                let more = Bytes::new(received.get().saturating_sub(before.get()));
                let goodput_mbps = Rate::over(more, at.saturating_since(since)).as_mbps();
                let srtt_ms = seen.and_then(|seen| seen.tcp.srtt).map(Span::as_millis_f64);
                self.sample.t_s = at.as_secs_f64();
                self.sample.flows.push((flow, goodput_mbps, srtt_ms, seen.map(|seen| seen.tcp.cwnd_segments)));
            }
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
            let cwnd_segments = cwnd_segments.unwrap_or(figures::NO_WINDOW);
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

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_measure::Seen;

    const TOML: &str = "duration_s = 60\nwarmup_s = 1\n[access]\npreset = \"2012\"\n[[hosts]]\n[[hosts.flows]]\n";

    fn sampler() -> Sampler {
        Sampler::new(&Scenario::from_toml("scenario.toml", TOML, &[]).expect("a scenario"))
    }

    /// At this tenth of a second: so many bytes received by then, and the air busy for so much of all. Returns the sample before.
    fn tell(sampler: &mut Sampler, tenth: u64, received: u64, [busy_ms, of_ms]: [u64; 2]) -> Option<Sample> {
        let at = Time::ZERO + Span::from_millis(100 * tenth);
        let _again = sampler.begins_again(at);
        let whole = sampler.on_sample(at, Sampled::Connection(0, Bytes::new(received), Some(&Seen::default())));
        sampler.on_sample(at, Sampled::Queue(7));
        let [busy, of] = [busy_ms, of_ms].map(Span::from_millis);
        sampler.on_sample(at, Sampled::Air { busy, of });
        whole
    }

    #[test]
    fn goodput_is_since_the_sample_before_and_the_air_a_mean_of_half_a_second() {
        let mut sampler = sampler();
        assert!(tell(&mut sampler, 0, 0, [0, 0]).is_none());
        for tenth in 1..5 {
            tell(&mut sampler, tenth, 12_500 * tenth, [0, 100 * tenth]);
        }
        tell(&mut sampler, 5, 62_500, [200, 500]);
        let sample = tell(&mut sampler, 6, 75_000, [300, 600]).expect("the one at half a second");
        // 12,500 bytes in 0.1 s; 0.2 of 0.5 s.
        assert_eq!((sample.t_s, sample.queue, sample.air), (0.5, Some(7), Some(0.4)));
        assert_eq!(sample.flows.iter().map(|flow| (flow.0, flow.1)).collect::<Vec<_>>(), [(0, 1.0)]);
        // At the end of the warm-up counts begin anew: no share until half a second after.
        tell(&mut sampler, 10, 125_000, [5, 10]);
        assert_eq!(tell(&mut sampler, 15, 187_500, [255, 510]).expect("at 1 s").air, None);
        assert_eq!(tell(&mut sampler, 16, 200_000, [255, 610]).expect("at 1.5 s").air, Some(0.5));
    }

    #[test]
    fn lines_are_parted_while_no_connection_is_open_and_goodput_is_0_then() {
        let scenario = Scenario::from_toml("scenario.toml", TOML, &[]).expect("a scenario");
        let build = lasthop_scenario::Build { version: "0.1.0".into(), commit: None, dirty: false };
        let begun = lasthop_measure::begun(&scenario, build, lasthop_scenario::HostsKind::Simulated).expect("a run");
        let (mut sampler, mut going) = (sampler(), Going::new("", begun, true));
        // Open from 1 s to 3 s and from 10 s on, at 1 Mb/s; what comes last before the pause no sample of the connection tells.
        let mut received = 0;
        for tenth in 0..=130 {
            let is_open = (10..30).contains(&tenth) || tenth >= 100;
            received += if is_open || tenth == 30 { 12_500 } else { 0 };
            let mut seen = Seen::default();
            (seen.tcp.srtt, seen.tcp.cwnd_segments) = (Some(Span::from_millis(20)), 10);
            let at = Time::ZERO + Span::from_millis(100 * tenth);
            let told = Sampled::Connection(0, Bytes::new(received), is_open.then_some(&seen));
            if let Some(sample) = sampler.on_sample(at, told) {
                going.push(&sample);
            }
        }
        let figures = figures::before_the_end(&going.begun, &going.series, &[]);
        let of = |name: &str| figures.iter().find(|figure| figure.name == name).expect("a figure").svg.as_str();
        let lines = |name: &str| of(name).matches("<polyline data-name=").count();
        assert_eq!((lines("rtt"), lines("cwnd"), lines("goodput-over-time")), (2, 2, 1));
        let flows = &going.series.flows;
        let mbps = |t_s: f64| flows.goodput_mbps[flows.t_s.iter().position(|at| *at == t_s).expect("a sample")];
        assert_eq!([2.0, 3.0, 5.0, 11.0].map(mbps), [1.0, 1.0, 0.0, 1.0]);
    }

    #[test]
    fn a_run_that_is_tried_again_begins_anew_and_a_long_one_has_samples_further_apart() {
        let mut sampler = sampler();
        (0..20).for_each(|tenth| _ = tell(&mut sampler, tenth, tenth, [0, 0]));
        assert!(!sampler.begins_again(Time::ZERO + Span::from_secs(2)) && sampler.begins_again(Time::ZERO));
        // Planned are 600 samples of 0.1 s; here it goes on for ten times as long.
        let kept = (0..6000).filter(|&tenth| tell(&mut sampler, tenth, tenth, [0, 0]).is_some()).count();
        assert!((2500..2600).contains(&kept), "{kept}");
    }
}
