//! The progress of runs, on standard error: a bar on a terminal, plain lines elsewhere.

use crate::tell;
use indicatif::{ProgressBar, ProgressStyle};
use lasthop_scenario::HostsKind;
use lasthop_units::Span;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Runs shorter than this print no lines in between.
const QUIET_FOR: Duration = Duration::from_secs(2);
/// A plain line is printed each time this part of the run is done.
const LINE_EVERY_PERCENT: u64 = 25;

/// The progress of one run, or of several.
pub(crate) enum Progress {
    /// One run, or several, on a terminal.
    Bar(ProgressBar),
    /// One run elsewhere.
    Lines { label: String, total: Span, told_percent: AtomicU64, since: Instant },
    /// Several runs elsewhere.
    Count { total: usize, done: AtomicUsize },
    /// None: another bar shows it.
    Silent,
}

impl Progress {
    /// One run named `label`, of `total` in scenario time.
    pub(crate) fn of_run(label: &str, total: Span, hosts: HostsKind) -> Self {
        if !std::io::stderr().is_terminal() {
            let how = match hosts {
                HostsKind::Simulated => "of virtual time",
                HostsKind::Kernel => "in real time",
            };
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
        let style = ProgressStyle::with_template("{pos} of {len} runs {wide_bar} {eta} to go")
            .expect("the template is well-formed");
        Self::Bar(ProgressBar::new(total as u64).with_style(style))
    }

    /// One of the runs is done.
    pub(crate) fn one_more(&self) {
        match self {
            Self::Bar(bar) => bar.inc(1),
            Self::Count { total, done } => {
                let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                let percent = |done: usize| (done * 100 / total) as u64 / LINE_EVERY_PERCENT;
                if percent(done) > percent(done - 1) {
                    tell(format_args!("{done} of {total} runs"));
                }
            }
            Self::Lines { .. } | Self::Silent => {}
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
            Self::Lines { .. } | Self::Count { .. } | Self::Silent => {}
        }
    }

    /// All is done.
    pub(crate) fn finish(&self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}
