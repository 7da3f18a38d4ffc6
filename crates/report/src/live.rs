//! A run before it ends: what `run`, `compare`, `study` and `exec` leave in [`LIVE_FOLDER`] of their `--out` while they
//! are at work, and the part of a page that shows it.
//!
//! - `log.jsonl`: how many runs there will be, which have begun, and what came out of those that ended.
//! - `run-N.jsonl`: of each run that goes on. Its first line is the result as far as it is known at its begin, with the
//!   names of hosts and flows. Each other line is a [`Sample`].
//!
//! *What it leaves out*: limits, other queues and datagrams, which a result has; a format for other programs.

use crate::going::{Going, Sample, Sampler};
use crate::html;
use lasthop_measure::Sampled;
use lasthop_scenario::{RunResult, Scenario};
use lasthop_units::Time;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// The folder, inside that of the result, for as long as something is at work there.
pub const LIVE_FOLDER: &str = ".lasthop-live";

const LOG: &str = "log.jsonl";
/// The most bytes that are read of a file.
const MOST_BYTES: u64 = 256 << 20;
/// The most runs that a page lists: the last ones.
const MOST_LISTED: usize = 20;

/// A line of the log.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event {
    /// There will be so many runs.
    Planned {
        runs: usize,
    },
    Begun {
        run: usize,
        label: String,
    },
    Ended {
        run: usize,
        label: String,
        goodput_mbps: f64,
        jain_index: Option<f64>,
        rtt_p95_ms: Option<f64>,
        valid: bool,
    },
    /// So many more runs have ended, without their figures.
    Done {
        runs: usize,
    },
}

/// The first line of a run.
#[derive(Debug, Serialize, Deserialize)]
struct Begun {
    label: String,
    result: RunResult,
    /// Whether the result's duration is how long the run takes.
    has_end: bool,
}

/// Writes what a page shows while runs are at work. Nothing that goes wrong here ends a run: a page then shows less.
#[derive(Debug)]
pub struct Live {
    folder: PathBuf,
    log: Mutex<File>,
    begun: AtomicUsize,
}

impl Live {
    /// Begins, in the folder of the result, which must exist. There will be `runs` runs.
    ///
    /// # Errors
    /// The folder or a file in it cannot be made.
    pub fn begin(out: &Path, runs: usize) -> io::Result<Self> {
        let folder = out.join(LIVE_FOLDER);
        fs::create_dir(&folder)?;
        let log = Mutex::new(File::create_new(folder.join(LOG))?);
        let live = Self { folder, log, begun: AtomicUsize::new(0) };
        live.say(&Event::Planned { runs });
        Ok(live)
    }

    /// So many more runs have ended, of which only the number is shown.
    pub fn done(&self, runs: usize) {
        self.say(&Event::Done { runs });
    }

    /// A run begins. `begun`: its result as far as it is known ([`lasthop_measure::begun`]). `has_end`: whether it takes
    /// as long as it says.
    ///
    /// # Errors
    /// Its file cannot be written.
    pub fn run(&self, label: &str, scenario: &Scenario, begun: RunResult, has_end: bool) -> io::Result<LiveRun<'_>> {
        let run = self.begun.fetch_add(1, Ordering::Relaxed);
        let path = self.folder.join(format!("run-{run}.jsonl"));
        let mut file = File::create_new(&path)?;
        let sampler = Sampler::new(scenario);
        writeln!(file, "{}", serde_json::to_string(&Begun { label: label.to_owned(), result: begun, has_end })?)?;
        self.say(&Event::Begun { run, label: label.to_owned() });
        let state = State { begins: file.stream_position()?, file, sampler };
        Ok(LiveRun { live: self, run, label: label.to_owned(), path, state: Mutex::new(state) })
    }

    fn say(&self, event: &Event) {
        let mut line = serde_json::to_string(event).expect("an event is text and numbers");
        line.push('\n');
        let _ = self.log.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes());
    }
}

/// Writes the samples of one run. Its file goes when this does.
#[derive(Debug)]
pub struct LiveRun<'a> {
    live: &'a Live,
    run: usize,
    label: String,
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    file: File,
    /// Where the samples begin in it.
    begins: u64,
    sampler: Sampler,
}

impl LiveRun<'_> {
    /// A sample, in the order of time.
    pub fn on_sample(&self, at: Time, sampled: Sampled<'_>) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).on_sample(at, sampled);
    }

    /// The run has ended with this result.
    pub fn ended(self, result: &RunResult) {
        self.live.say(&Event::Ended {
            run: self.run,
            label: self.label.clone(),
            goodput_mbps: result.aggregate_goodput_mbps,
            jain_index: result.jain_index,
            rtt_p95_ms: result.rtt_ms.map(|rtt| rtt.p95),
            valid: result.valid,
        });
    }
}

impl Drop for LiveRun<'_> {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

impl State {
    fn on_sample(&mut self, at: Time, sampled: Sampled<'_>) {
        if self.sampler.begins_again(at) {
            let _ = self.file.set_len(self.begins).and_then(|()| self.file.seek(SeekFrom::Start(self.begins)));
        }
        if let Some(sample) = self.sampler.on_sample(at, sampled) {
            let mut line = serde_json::to_string(&sample).expect("a sample is numbers");
            line.push('\n');
            let _ = self.file.write_all(line.as_bytes());
        }
    }
}

/// The part of a page about what is at work in this folder; `None` if nothing is, or has not begun.
pub fn live(folder: &Path) -> Option<String> {
    let folder = folder.join(LIVE_FOLDER);
    let events = read(&folder.join(LOG)).ok()?;
    let (mut planned, mut done, mut going, mut ended) = (0, 0, Vec::new(), Vec::new());
    for event in events.split_inclusive('\n').filter_map(|line| serde_json::from_str(line).ok()) {
        match event {
            Event::Planned { runs } => planned = runs,
            Event::Done { runs } => done += runs,
            Event::Begun { run, label } => going.push((run, label)),
            Event::Ended { run, label, goodput_mbps, jain_index, rtt_p95_ms, valid } => {
                going.retain(|(other, _)| *other != run);
                done += 1;
                let shown = |value: Option<f64>, digits: usize| {
                    value.map_or("–".to_owned(), |value| format!("{value:.digits$}"))
                };
                ended.push(json!({
                    "label": label, "goodput": shown(Some(goodput_mbps), 2), "jain": shown(jain_index, 3),
                    "rtt": shown(rtt_p95_ms, 1), "valid": valid,
                }));
            }
        }
    }
    // The one that began last and has samples.
    let run = going.iter().rev().find_map(|(run, _)| read_run(&folder.join(format!("run-{run}.jsonl"))));
    let listed = ended.len().saturating_sub(MOST_LISTED);
    let run = run.map(|run| run.shown());
    Some(html::render(
        "live.html",
        &json!({ "planned": planned, "done": done, "run": run, "ended": &ended[listed..], "not_listed": listed }),
    ))
}

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    lasthop_files::open_to_read(path)?.take(MOST_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

fn read_run(path: &Path) -> Option<Going> {
    let text = read(path).ok()?;
    let mut lines = text.split_inclusive('\n');
    let Begun { label, result, has_end } = serde_json::from_str(lines.next()?).ok()?;
    let mut run = Going::new(&label, result, has_end);
    // A last line that is not whole is left out.
    lines.filter_map(|line| serde_json::from_str::<Sample>(line).ok()).for_each(|sample| run.push(&sample));
    run.has_samples().then_some(run)
}
