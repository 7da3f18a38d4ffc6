//! How far a run is: a bar on a terminal, plain lines elsewhere; always on standard error.

use crate::tell;
use indicatif::{ProgressBar, ProgressStyle};
use lasthop_scenario::HostsKind;
use lasthop_units::Span;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A run that is over so soon needs no lines in between.
const QUIET_FOR: Duration = Duration::from_secs(2);
/// One plain line for so much of the run.
const LINE_EVERY_PERCENT: u64 = 25;

/// The progress of one run, or of many.
pub(crate) enum Progress {
    /// One run, or many, on a terminal.
    Bar(ProgressBar),
    /// One run elsewhere.
    Lines { label: String, total: Span, told_percent: AtomicU64, since: Instant },
    /// Many runs elsewhere.
    Count { total: usize, done: AtomicUsize },
    /// Somebody else tells.
    Silent,
}

impl Progress {
    /// A run called `label`, of `total` on the scenario's clock.
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

    /// So many runs, done several at a time.
    pub(crate) fn of_many(total: usize) -> Self {
        if !std::io::stderr().is_terminal() {
            tell(format_args!("{total} runs"));
            return Self::Count { total, done: AtomicUsize::new(0) };
        }
        let style = ProgressStyle::with_template("{pos} of {len} runs {wide_bar} {eta} to go")
            .expect("the template is well-formed");
        Self::Bar(ProgressBar::new(total as u64).with_style(style))
    }

    /// One of many runs is done.
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

    /// The run has come so far.
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

    /// It is over.
    pub(crate) fn finish(&self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}
