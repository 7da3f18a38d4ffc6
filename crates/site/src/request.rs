//! What a page asks, and what it is told.

use lasthop_measure::{Sampled, begun};
use lasthop_report::{CaseRun, Going, Sampler, part_of_comparison, part_of_run, set_figure_width};
use lasthop_scenario::{
    Case, HostsKind, Override, ResultFile as _, RunResult, Scenario, Series, ineffective_keys, short_warmups,
};
use lasthop_sim::Options;
use lasthop_study::{CaseError, compared, plan_cases};
use lasthop_units::Time;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The name of the scenario in messages.
const NAME: &str = "scenario.toml";
/// Milliseconds at least from one picture of a run that goes on to the next; and so many times what it took to draw: a tenth of the time.
const PICTURE_MS: f64 = 150.0;
const TIMES_DRAWN: f64 = 9.0;

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
                        CaseError::Label(_) | CaseError::Covered(..) | CaseError::Seed => error.to_string(),
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
    let label = if label.is_empty() { &scenario.name } else { label };
    let shown = begun(scenario, build.clone(), HostsKind::Simulated)
        .map(|begun| Mutex::new((Sampler::new(scenario), Going::new(label, begun, true), begin + PICTURE_MS)));
    let on_sample = |at: Time, sampled: Sampled<'_>| {
        let Some(mut shown) = shown.as_ref().and_then(|shown| shown.lock().ok()) else { return };
        let (sampler, going, next) = &mut *shown;
        let Some(sample) = sampler.on_sample(at, sampled) else { return };
        going.push(&sample);
        let now = worker.now_ms();
        if now >= *next {
            worker.say(&Answer::Going { case, html: going.part() });
            let drawn = worker.now_ms();
            *next = drawn + PICTURE_MS.max(TIMES_DRAWN * (drawn - now));
        }
    };
    let stop = AtomicBool::new(false);
    let options = Options { build, series: true, stop: &stop, progress: &|_| {}, on_sample: Some(&on_sample) };
    let outcome = lasthop_sim::run(scenario, &options).map_err(|error| with_causes(&error))?;
    let (mut result, series) = outcome.ok_or("the run was stopped")?;
    result.took(Duration::from_secs_f64((worker.now_ms() - begin).max(0.001) / 1e3));
    Ok((result, series))
}

fn no_width() -> f64 {
    f64::INFINITY
}

fn with_causes(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
