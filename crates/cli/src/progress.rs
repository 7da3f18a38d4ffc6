//! The progress of runs, on standard error: a bar on a terminal, plain lines elsewhere.

use crate::tell;
use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};
use lasthop_units::Span;
use std::fmt;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Runs shorter than this print no lines in between.
const QUIET_FOR: Duration = Duration::from_secs(2);
/// A plain line is printed each time this part of the run is done.
const LINE_EVERY_PERCENT: u64 = 25;

/// The progress of one run, or of several.
pub(crate) enum Progress {
    /// One run on a terminal.
    Bar(ProgressBar),
    /// Several runs on a terminal.
    Many { bar: ProgressBar, pace: Arc<Mutex<Pace>> },
    /// One run elsewhere.
    Lines { label: String, total: Span, told_percent: AtomicU64, since: Instant },
    /// Several runs elsewhere.
    Count { total: usize, done: AtomicUsize },
    /// None: another bar shows it.
    Silent,
}

impl Progress {
    /// One run named `label`, of `total` in scenario time; `how` that passes, in words.
    pub(crate) fn of_run(label: &str, total: Span, how: &str) -> Self {
        if !std::io::stderr().is_terminal() {
            tell(format_args!("{label}: {} s {how}", total.as_secs_f64()));
            return Self::Lines {
                label: label.to_owned(),
                total,
                told_percent: AtomicU64::new(0),
                since: Instant::now(),
            };
        }
        let style = ProgressStyle::with_template("{msg} {wide_bar} {percent:>3} % of {prefix}")
            .expect("the template is well-formed");
        let bar = ProgressBar::new(total.as_micros()).with_style(style);
        bar.set_message(label.to_owned());
        bar.set_prefix(format!("{} s", total.as_secs_f64()));
        Self::Bar(bar)
    }

    /// `total` runs, several at once.
    pub(crate) fn of_many(total: usize) -> Self {
        if !std::io::stderr().is_terminal() {
            tell(format_args!("{total} runs"));
            return Self::Count { total, done: AtomicUsize::new(0) };
        }
        let pace = Arc::new(Mutex::new(Pace { since: Instant::now(), ran: 0, took_time: 0 }));
        let paced = Arc::clone(&pace);
        let left = move |bar: &ProgressState, out: &mut dyn fmt::Write| {
            let remaining = bar.len().unwrap_or(0).saturating_sub(bar.pos());
            let _ = match locked(&paced).left(remaining, Instant::now()) {
                Some(left) => write!(out, "{:#}", HumanDuration(left)),
                None => out.write_char('?'),
            };
        };
        let style = ProgressStyle::with_template("{pos} of {len} runs {wide_bar} {left} to go")
            .expect("the template is well-formed")
            .with_key("left", left);
        let bar = ProgressBar::new(total as u64).with_style(style);
        bar.tick(); // seen before the first run ends
        Self::Many { bar, pace }
    }

    /// `runs` more of the plan are done. `ran`: how many were done until now and not taken from the store, with those
    /// that searches try.
    pub(crate) fn more(&self, runs: usize, ran: u64) {
        match self {
            Self::Many { bar, pace } => {
                locked(pace).more(runs as u64, ran);
                bar.inc(runs as u64);
            }
            Self::Count { total, done } => {
                let before = done.fetch_add(runs, Ordering::Relaxed);
                let percent = |done: usize| (done * 100 / total) as u64 / LINE_EVERY_PERCENT;
                if percent(before + runs) > percent(before) {
                    tell(format_args!("{} of {total} runs", before + runs));
                }
            }
            Self::Bar(_) | Self::Lines { .. } | Self::Silent => {}
        }
    }

    /// The run has reached this scenario time.
    pub(crate) fn at(&self, elapsed: Span) {
        match self {
            Self::Bar(bar) => bar.set_position(elapsed.as_micros()),
            Self::Lines { label, total, told_percent, since } if since.elapsed() > QUIET_FOR => {
                let percent = elapsed.as_micros() * 100 / total.as_micros().max(1);
                let step = percent - percent % LINE_EVERY_PERCENT;
                if told_percent.fetch_max(step, Ordering::Relaxed) < step {
                    tell(format_args!("{label}: {step} %"));
                }
            }
            Self::Lines { .. } | Self::Many { .. } | Self::Count { .. } | Self::Silent => {}
        }
    }

    /// All is done.
    pub(crate) fn finish(&self) {
        if let Self::Bar(bar) | Self::Many { bar, .. } = self {
            bar.finish_and_clear();
        }
    }
}

/// The time that a run takes. What comes from the store takes none, and does not count.
pub(crate) struct Pace {
    since: Instant,
    /// How many were done by the last call of `more`.
    ran: u64,
    /// The runs of the plan that were not stored.
    took_time: u64,
}

impl Pace {
    fn more(&mut self, runs: u64, ran: u64) {
        if ran > self.ran {
            self.ran = ran;
            self.took_time += runs;
        }
    }

    /// The time of this number of runs, if none of them is stored. `None` before the first one is done.
    fn left(&self, remaining: u64, now: Instant) -> Option<Duration> {
        let mean = now.duration_since(self.since).checked_div(self.took_time.try_into().ok()?)?;
        Some(mean.saturating_mul(remaining.try_into().unwrap_or(u32::MAX)))
    }
}

fn locked(pace: &Mutex<Pace>) -> MutexGuard<'_, Pace> {
    pace.lock().expect("no thread panics while it holds the lock")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_runs_make_the_rest_no_faster() {
        let since = Instant::now();
        let after = |seconds: u64| since + Duration::from_secs(seconds);
        let mut pace = Pace { since, ran: 0, took_time: 0 };
        // 300 of 400 are stored, and come first.
        (0..300).for_each(|_| pace.more(1, 0));
        assert_eq!(pace.left(100, after(0)), None);
        // Ten take 2 s each.
        (1..=10).for_each(|ran| pace.more(1, ran));
        assert_eq!(pace.left(90, after(20)), Some(Duration::from_secs(180)));
        // A search tries 20 values for two runs of the plan.
        pace.more(2, 30);
        assert_eq!(pace.left(88, after(60)), Some(Duration::from_secs(440)));
    }
}
