//! The runs of a study: on all cores, or sequentially in real time. The caller defines a run.

use crate::parallel::in_order;
use crate::{Found, PlannedRun, Study, StudyError};
use lasthop_scenario::{HostsKind, RunResult, Scenario};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// The results of all runs of a study.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// In the order of the plan.
    pub runs: Vec<RunResult>,
    /// The outcome of the search, by point. The runs of such a point have the value found.
    pub searches: BTreeMap<usize, Found>,
    /// The number of repeated runs: the machine was too busy for real time.
    pub repeated_runs: u64,
}

impl From<Vec<RunResult>> for Outcome {
    fn from(runs: Vec<RunResult>) -> Self {
        Self { runs, ..Self::default() }
    }
}

/// Why there is no outcome. The verdict on a study needs all its runs.
#[derive(Debug)]
pub enum RunError<E> {
    /// The study was stopped.
    Interrupted,
    /// A scenario of a search cannot run.
    Study(StudyError),
    /// A run failed.
    Run {
        /// The run, in words.
        place: String,
        /// The error.
        error: E,
    },
}

/// Runs a scenario; `None` if it was stopped.
pub type RunOne<'a, E> = &'a (dyn Fn(&Scenario) -> Result<Option<RunResult>, E> + Sync);

/// The execution of parallel runs.
pub struct AtOnce<'a, E> {
    /// Does one run.
    pub run: RunOne<'a, E>,
    /// The number of parallel runs.
    pub jobs: NonZero<usize>,
    /// Once set, no new run starts.
    pub stop: &'a AtomicBool,
    /// Called with the number of runs of the plan that have just been done.
    pub done: &'a (dyn Fn(usize) + Sync),
}

/// One of several parts of a plan, of about equal length: every `of`-th job, from this one on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// 1..=`of`.
    number: usize,
    of: usize,
}

impl Part {
    /// The only part: the whole plan.
    pub const WHOLE: Self = Self { number: 1, of: 1 };

    /// Reads `I/N`, with I of 1 to N.
    ///
    /// # Errors
    /// If it is none, in words.
    pub fn parse(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        let part = numbers.map(|(number, of)| Self { number, of });
        part.filter(|part| (1..=part.of).contains(&part.number))
            .ok_or_else(|| "accepted: I/N with I from 1 to N, such as 2/8".to_owned())
    }

    fn of(self, jobs: Vec<Job>) -> Vec<Job> {
        jobs.into_iter().skip(self.number - 1).step_by(self.of).collect()
    }
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

/// What there is to do of a plan. The runs of unfinished searches are estimated.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Survey {
    /// Runs that are stored.
    pub stored: u64,
    /// Runs that are missing.
    pub missing: u64,
    /// What the stored runs took, in seconds of a core.
    pub stored_wall_s: f64,
    /// The scenario time of the stored runs, in seconds.
    pub stored_simulated_s: f64,
    /// The scenario time of the missing runs of simulated hosts, in seconds.
    pub missing_simulated_s: f64,
    /// The same of kernel hosts, which is real time.
    pub missing_real_s: f64,
}

/// About the number of values that a search tries.
const TRIED_BY_A_SEARCH: u64 = 20;

/// One thread's unit of work: a run of the plan, or the searches of a family of points.
struct Job {
    /// The index of its first run in the plan.
    place: usize,
    points: Option<Vec<usize>>,
}

impl Job {
    /// Its runs of the plan.
    fn runs(&self, seeds: usize) -> usize {
        self.points.as_ref().map_or(1, |points| points.len() * seeds)
    }
}

/// The runs of one job, each with its index in the plan, and the outcomes of its searches.
type Done = (Vec<(usize, RunResult)>, Vec<(usize, Found)>);

impl Study {
    /// Does every run of this plan, with any number of threads.
    ///
    /// # Errors
    /// The first error in the order of the plan, or that the study was stopped.
    ///
    /// # Panics
    /// If the plan belongs to another study.
    pub fn run_at_once<E: Send>(&self, planned: &[PlannedRun], how: &AtOnce<'_, E>) -> Result<Outcome, RunError<E>> {
        let outcomes = self.do_jobs(planned, &self.jobs(planned), how, |done| done);
        let mut runs: Vec<Option<RunResult>> = planned.iter().map(|_| None).collect();
        let mut searches = BTreeMap::new();
        for (done, found) in first_failure(outcomes)? {
            done.into_iter().for_each(|(place, result)| runs[place] = Some(result));
            searches.extend(found);
        }
        let runs = runs.into_iter().map(|run| run.expect("every point was run")).collect();
        Ok(Outcome { runs, searches, repeated_runs: 0 })
    }

    /// The number of runs of the plan in this part.
    ///
    /// # Panics
    /// If the plan belongs to another study.
    pub fn runs_of(&self, planned: &[PlannedRun], part: Part) -> usize {
        let seeds = planned.len() / self.points();
        part.of(self.jobs(planned)).iter().map(|job| job.runs(seeds)).sum()
    }

    /// Does one of the parts of this plan, for its runs to be stored. A search with all its runs is in one part.
    ///
    /// # Errors
    /// As [`Study::run_at_once`].
    ///
    /// # Panics
    /// As [`Study::run_at_once`].
    pub fn run_part<E: Send>(
        &self,
        planned: &[PlannedRun],
        part: Part,
        how: &AtOnce<'_, E>,
    ) -> Result<(), RunError<E>> {
        let outcomes = self.do_jobs(planned, &part.of(self.jobs(planned)), how, drop);
        first_failure(outcomes).map(drop)
    }

    /// What of this part of a plan is stored; `stored` looks for a run.
    ///
    /// # Errors
    /// If a scenario of a search cannot run.
    ///
    /// # Panics
    /// If the plan belongs to another study.
    pub fn survey(
        &self,
        planned: &[PlannedRun],
        of_study: HostsKind,
        part: Part,
        stored: &(dyn Fn(&Scenario) -> Option<RunResult> + Sync),
    ) -> Result<Survey, StudyError> {
        let seeds = (planned.len() / self.points()) as u64;
        let survey = Mutex::new(Survey::default());
        let counted = || survey.lock().expect("no thread panics while it holds the lock");
        let look = |scenario: &Scenario| {
            let run = stored(scenario);
            if let Some(run) = &run {
                let mut survey = counted();
                survey.stored += 1;
                survey.stored_wall_s += run.wall_s;
                survey.stored_simulated_s += run.duration_s;
            }
            Ok::<_, Infallible>(run)
        };
        for job in part.of(self.jobs(planned)) {
            let before = counted().stored;
            let missing = match self.do_job(planned, &job, &look) {
                Ok(_) => 0,
                Err(RunError::Study(error)) => return Err(error),
                Err(RunError::Run { error, .. }) => match error {},
                Err(RunError::Interrupted) if job.points.is_none() => 1,
                Err(RunError::Interrupted) => {
                    let stored = counted().stored - before;
                    (TRIED_BY_A_SEARCH * seeds).saturating_sub(stored).max(1)
                }
            };
            let mut survey = counted();
            survey.missing += missing;
            let run = &planned[job.place];
            let scenario_s = missing as f64 * run.scenario.duration.as_secs_f64();
            match run.hosts.unwrap_or(of_study) {
                HostsKind::Kernel => survey.missing_real_s += scenario_s,
                HostsKind::Simulated => survey.missing_simulated_s += scenario_s,
            }
        }
        Ok(survey.into_inner().expect("no thread panics while it holds the lock"))
    }

    /// In the order of the plan. A family stands at its first point.
    fn jobs(&self, planned: &[PlannedRun]) -> Vec<Job> {
        let seeds = planned.len() / self.points();
        let families = self.searched_points();
        let job = |(place, run): (usize, &PlannedRun)| match run.searched {
            false => Some(Job { place, points: None }),
            true if !place.is_multiple_of(seeds) => None,
            true => families
                .iter()
                .find(|family| family[0] == run.point)
                .map(|points| Job { place, points: Some(points.clone()) }),
        };
        planned.iter().enumerate().filter_map(job).collect()
    }

    fn do_jobs<E: Send, R: Send>(
        &self,
        planned: &[PlannedRun],
        jobs: &[Job],
        how: &AtOnce<'_, E>,
        keep: impl Fn(Done) -> R + Sync,
    ) -> Vec<Result<R, RunError<E>>> {
        let seeds = planned.len() / self.points();
        let failed = AtomicBool::new(false);
        in_order(jobs, how.jobs, |job| {
            // After a failure no new run starts.
            if how.stop.load(Ordering::Relaxed) || failed.load(Ordering::Relaxed) {
                return Err(RunError::Interrupted);
            }
            let outcome = self.do_job(planned, job, how.run);
            failed.fetch_or(outcome.is_err(), Ordering::Relaxed);
            if outcome.is_ok() {
                (how.done)(job.runs(seeds));
            }
            outcome.map(&keep)
        })
    }

    fn do_job<E>(&self, planned: &[PlannedRun], job: &Job, run: RunOne<'_, E>) -> Result<Done, RunError<E>> {
        let seeds = planned.len() / self.points();
        match &job.points {
            None => run_one(run, &planned[job.place].scenario, || place(&planned[job.place]))
                .map(|result| (vec![(job.place, result)], Vec::new())),
            Some(points) => self.search_all(points, &planned[job.place..job.place + seeds], run),
        }
    }

    /// Searches at these points, which share their scenarios. Each scenario runs once with each seed of `first`, the
    /// plan of the first point.
    fn search_all<E>(&self, points: &[usize], first: &[PlannedRun], run: RunOne<'_, E>) -> Result<Done, RunError<E>> {
        // By value.
        let mut known: Vec<(f64, Vec<RunResult>)> = Vec::new();
        let (mut runs, mut searches) = (Vec::new(), Vec::new());
        for point in points {
            let mut hunt = self.hunt(*point);
            while let Some(value) = hunt.next() {
                if known.iter().all(|(other, _)| *other != value) {
                    let try_with = |planned: &PlannedRun| {
                        let scenario = self.candidate(*point, planned.scenario.seed, value).map_err(RunError::Study)?;
                        run_one(run, &scenario, || format!("{}, {}={value}", place(planned), hunt.key()))
                    };
                    known.push((value, first.iter().map(try_with).collect::<Result<_, _>>()?));
                }
                hunt.on_tried(self.tried(*point, value, of_value(&known, value)));
            }
            let found = hunt.found();
            runs.extend((point * first.len()..).zip(of_value(&known, found.value).iter().cloned()));
            searches.push((*point, found));
        }
        Ok((runs, searches))
    }
}

/// The first failure, or all outcomes. Runs not started because of a failure do not hide it.
fn first_failure<R, E>(outcomes: Vec<Result<R, RunError<E>>>) -> Result<Vec<R>, RunError<E>> {
    let (left_out, finished): (Vec<_>, Vec<_>) =
        outcomes.into_iter().partition(|outcome| matches!(outcome, Err(RunError::Interrupted)));
    finished.into_iter().chain(left_out).collect()
}

fn of_value(known: &[(f64, Vec<RunResult>)], value: f64) -> &[RunResult] {
    known.iter().find(|(other, _)| *other == value).map_or(&[], |(_, results)| results)
}

fn run_one<E>(run: RunOne<'_, E>, scenario: &Scenario, place: impl Fn() -> String) -> Result<RunResult, RunError<E>> {
    run(scenario).map_err(|error| RunError::Run { place: place(), error })?.ok_or(RunError::Interrupted)
}

/// Does the runs sequentially, in real time. `run` gets the name of the run. A run invalid only for lateness is
/// repeated up to `retries` times; `again` is called before each repetition.
///
/// # Errors
/// The first error of a run, or that the study was stopped.
pub fn run_in_turn<E>(
    planned: &[PlannedRun],
    retries: u64,
    run: impl Fn(&str, &PlannedRun) -> Result<Option<RunResult>, E>,
    again: impl Fn(&str, &RunResult),
) -> Result<Outcome, RunError<E>> {
    let mut outcome = Outcome::default();
    for (number, planned_run) in (1_usize..).zip(planned) {
        let place = place(planned_run);
        let label = format!("[{number}/{}] {place}", planned.len());
        let once = || run(&label, planned_run);
        let done = until_not_late(retries, |run| run, once, |run| again(&label, run));
        let (run, repeats) = done.map_err(|error| RunError::Run { place, error })?.ok_or(RunError::Interrupted)?;
        outcome.repeated_runs += repeats;
        outcome.runs.push(run);
    }
    Ok(outcome)
}

/// Repeats a run until its result is not late, at most `retries` times. A briefly busy machine then costs time but no
/// result. Returns the last result and the number of repetitions; `again` is called before each. `None` if stopped. A
/// result invalid for another reason is not repeated.
///
/// # Errors
/// Those of `run`.
pub fn until_not_late<T, E>(
    retries: u64,
    result_of: impl Fn(&T) -> &RunResult,
    mut run: impl FnMut() -> Result<Option<T>, E>,
    again: impl Fn(&RunResult),
) -> Result<Option<(T, u64)>, E> {
    let mut repeats = 0;
    loop {
        let Some(outcome) = run()? else { return Ok(None) };
        let result = result_of(&outcome);
        if !result.is_only_late() || repeats == retries {
            return Ok(Some((outcome, repeats)));
        }
        repeats += 1;
        again(result);
    }
}

/// The name of the run, in words.
fn place(planned: &PlannedRun) -> String {
    let seed = format!("seed {}", planned.scenario.seed);
    if planned.label.is_empty() { seed } else { format!("at {}, {seed}", planned.label) }
}
