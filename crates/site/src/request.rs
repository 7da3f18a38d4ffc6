//! What a page asks, and what it is told.

use lasthop_measure::{Sampled, begun};
use lasthop_report::{CaseRun, part_before_the_end, part_of_comparison, part_of_run, set_figure_width};
use lasthop_scenario::{
    ACCESS_POINT, Case, FlowSample, HostsKind, Override, QueueSample, ResultFile as _, RunResult, Scenario, Series,
    ineffective_keys, short_warmups,
};
use lasthop_sim::Options;
use lasthop_study::{CaseError, compared, plan_cases};
use lasthop_units::{Bytes, Rate, Span, Time};
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The name of the scenario in messages.
const NAME: &str = "scenario.toml";
/// Milliseconds between two pictures of a run that goes on.
const PICTURE_MS: f64 = 150.0;
/// The most samples of a flow in such a picture.
const SAMPLES: f64 = 600.0;

/// A scenario, and what is to be done with it.
#[derive(Debug, Deserialize)]
pub struct Request {
    /// The text of the scenario.
    pub toml: String,
    /// As `--case` of `lasthop compare`; none: the scenario alone.
    #[serde(default)]
    pub cases: Vec<String>,
    /// Whether it is run, or only checked.
    pub run: bool,
    /// The room for figures in CSS pixels; left out: as for a large screen.
    #[serde(default = "no_width")]
    pub width: f64,
}

/// What the page is told, in this order: `Checked` or `Mistake`; of each case `Going` any number of times, and `Ended`; `Done`.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Answer<'a> {
    /// It cannot be run; with the words of the command.
    Mistake {
        /// The error and its causes.
        text: &'a str,
    },
    /// It can be run.
    Checked {
        /// What the command notes.
        notes: Vec<String>,
    },
    /// A run goes on.
    Going {
        /// The case's place.
        case: usize,
        /// Its figures until now.
        html: String,
    },
    /// A run has ended.
    Ended {
        /// The case's place.
        case: usize,
        /// Its label; empty without cases.
        label: &'a str,
        /// Its result.json.
        result: String,
    },
    /// All runs have.
    Done {
        /// The report.
        html: String,
    },
    /// The module cannot go on: a mistake in lasthop itself.
    Broken {
        /// The message of the panic.
        text: &'a str,
    },
}

/// What a worker gives.
pub trait Worker {
    /// Tells the page.
    fn say(&self, answer: &Answer<'_>);
    /// Milliseconds since some moment.
    fn now_ms(&self) -> f64;
}

/// Why there is no result, in words.
type Mistake = String;

impl Request {
    /// Does what is asked.
    pub fn answer(&self, worker: &(impl Worker + Sync)) {
        if let Err(text) = self.try_answer(worker) {
            worker.say(&Answer::Mistake { text: &text });
        }
    }

    fn try_answer(&self, worker: &(impl Worker + Sync)) -> Result<(), Mistake> {
        set_figure_width(self.width);
        let base = read(&self.toml, &[])?;
        let cases: Vec<Case> = self.cases.iter().map(|case| Case::parse(case)).collect::<Result<_, _>>()?;
        let planned = match cases.is_empty() {
            true => vec![(0, base.clone())],
            false => {
                plan_cases(&cases, &[], &[base.seed], |overrides| read(&self.toml, overrides)).map_err(|error| {
                    match &error {
                        CaseError::Scenario { error: why, .. } => format!("{error}: {why}"),
                        CaseError::Label(_) | CaseError::Seed => error.to_string(),
                    }
                })?
            }
        };
        let scenarios = || planned.iter().map(|(_, scenario)| scenario);
        let ineffective = ineffective_keys(scenarios()).into_iter().map(|key| key.to_string());
        let notes = ineffective.chain(short_warmups(scenarios()).into_iter().map(|short| short.to_string())).collect();
        worker.say(&Answer::Checked { notes });
        if !self.run {
            return Ok(());
        }
        let label = |case: usize| cases.get(case).map_or("", |case| &case.label);
        let mut runs: Vec<CaseRun> = Vec::new();
        for (case, scenario) in &planned {
            let (result, series) = run(scenario, *case, label(*case), worker)?;
            worker.say(&Answer::Ended { case: *case, label: label(*case), result: result.to_json() });
            runs.push((label(*case).to_owned(), result, series));
        }
        let html = if cases.is_empty() {
            let (_, result, series) = &runs[0];
            part_of_run(result, series)
        } else {
            let results = runs.iter().enumerate().map(|(case, (_, result, _))| (case, result.clone()));
            let build = lasthop_version::build();
            part_of_comparison(&compared(&base, HostsKind::Simulated, build, &[], &cases, results), &runs)
        };
        worker.say(&Answer::Done { html });
        Ok(())
    }
}

/// Reads the scenario with these changes, and checks that it can be run.
fn read(toml: &str, overrides: &[Override]) -> Result<Scenario, Mistake> {
    let scenario = Scenario::from_toml(NAME, toml, overrides).map_err(|error| with_causes(&error))?;
    if scenario.asks_programs() {
        return Err(
            "policy \"external\" is a program, which a browser does not run; accepted: any other policy".to_owned()
        );
    }
    lasthop_sim::check(&scenario).map_err(|error| with_causes(&error))?;
    Ok(scenario)
}

/// Runs one case, and shows it meanwhile.
fn run(
    scenario: &Scenario,
    case: usize,
    label: &str,
    worker: &(impl Worker + Sync),
) -> Result<(RunResult, Series), Mistake> {
    let begin = worker.now_ms();
    let build = lasthop_version::build();
    let so_far = begun(scenario, build.clone(), HostsKind::Simulated);
    let label = if label.is_empty() { &scenario.name } else { label };
    let seen = Mutex::new(Samples::new(scenario, begin));
    let on_sample = |at: Time, sampled: Sampled<'_>| {
        let (Some(result), Ok(mut seen)) = (&so_far, seen.lock()) else { return };
        match sampled {
            Sampled::Connection(flow, received, Some(state)) => {
                let of = &result.flows[flow];
                seen.push(
                    at,
                    flow,
                    received,
                    FlowSample {
                        t_s: at.as_secs_f64(),
                        flow: of.id,
                        host: of.host,
                        srtt_ms: state.tcp.srtt.map(Span::as_millis_f64),
                        cwnd_segments: state.tcp.cwnd_segments,
                        ..FlowSample::default()
                    },
                );
            }
            Sampled::Connection(.., None) => {}
            Sampled::Queue(packets) => seen.push_queue(at, packets),
            Sampled::Air { busy, of } => seen.push_air(at, busy, of),
        }
        let now = worker.now_ms();
        if now - seen.shown_at > PICTURE_MS && !seen.series.flows.is_empty() {
            worker.say(&Answer::Going { case, html: part_before_the_end(label, result, &seen.series, &seen.air) });
            seen.shown_at = worker.now_ms();
        }
    };
    let stop = AtomicBool::new(false);
    let options = Options { build, series: true, stop: &stop, progress: &|_| {}, on_sample: Some(&on_sample) };
    let outcome = lasthop_sim::run(scenario, &options).map_err(|error| with_causes(&error))?;
    let (mut result, series) = outcome.ok_or("the run was stopped")?;
    result.took(Duration::from_secs_f64((worker.now_ms() - begin).max(0.001) / 1e3));
    Ok((result, series))
}

/// The samples of a run that goes on, as far apart as a picture can show.
struct Samples {
    series: Series,
    shown_at: f64,
    step: Span,
    /// By flow: when the next is taken, and when the last one was, with what had been received by then.
    flows: Vec<(Time, Time, Bytes)>,
    /// When the next of the queue is taken.
    next_of_queue: Time,
    /// Seconds, and the share of the time since the one before with a frame on the air.
    air: Vec<(f64, f64)>,
    /// The next of these, and the counts at the last one.
    next_of_air: Time,
    air_before: (Span, Span),
}

impl Samples {
    fn new(scenario: &Scenario, now_ms: f64) -> Self {
        let step = Span::from_secs_f64(scenario.duration.as_secs_f64() / SAMPLES).max(scenario.sample);
        let flows = scenario.expanded_hosts().iter().map(|host| host.flows.len()).sum();
        Self {
            series: Series::default(),
            shown_at: now_ms,
            step,
            flows: vec![(Time::ZERO, Time::ZERO, Bytes::ZERO); flows],
            next_of_queue: Time::ZERO,
            air: Vec::new(),
            next_of_air: Time::ZERO,
            air_before: (Span::ZERO, Span::ZERO),
        }
    }

    fn push(&mut self, at: Time, flow: usize, received: Bytes, sample: FlowSample) {
        let (next, since, before) = self.flows[flow];
        if at < next {
            return;
        }
        let more = Bytes::new(received.get().saturating_sub(before.get()));
        let goodput_mbps = Rate::over(more, at.saturating_since(since)).as_mbps();
        self.flows[flow] = (at + self.step, at, received);
        self.series.flows.push(FlowSample { goodput_mbps, ..sample });
    }

    fn push_queue(&mut self, at: Time, packets: usize) {
        if at >= self.next_of_queue {
            self.next_of_queue = at + self.step;
            let place = ACCESS_POINT.to_owned();
            self.series.queues.push(QueueSample { t_s: at.as_secs_f64(), place, packets: packets as u32 });
        }
    }

    /// The means of half seconds at least: one frame takes longer than some steps.
    fn push_air(&mut self, at: Time, busy: Span, of: Span) {
        let (busy_before, of_before) = self.air_before;
        let is_new = of < of_before;
        if !is_new && at < self.next_of_air {
            return;
        }
        self.next_of_air = at + self.step.max(Span::from_secs_f64(0.5));
        self.air_before = (busy, of);
        // At the end of the warm-up the counts begin anew.
        if !is_new && of > of_before {
            let share = busy.saturating_sub(busy_before).as_secs_f64() / (of - of_before).as_secs_f64();
            self.air.push((at.as_secs_f64(), share.clamp(0.0, 1.0)));
        }
    }
}

fn no_width() -> f64 {
    f64::INFINITY
}

fn with_causes(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
