//! How far a run is: a bar on a terminal, plain lines elsewhere; always on standard error.

use crate::tell;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::sync::atomic::{AtomicU64, Ordering};
use units::Span;

/// One plain line for so much of the run.
const LINE_EVERY_PERCENT: u64 = 25;

/// The progress of one run.
pub(crate) enum Progress {
    Bar(ProgressBar),
    Lines { label: String, total: Span, told_percent: AtomicU64 },
}

impl Progress {
    /// A run called `label`, of `total` on the scenario's clock.
    pub(crate) fn new(label: &str, total: Span) -> Self {
        if !std::io::stderr().is_terminal() {
            tell(format_args!("{label}: {} s in real time", total.as_secs_f64()));
            return Self::Lines { label: label.to_owned(), total, told_percent: AtomicU64::new(0) };
        }
        let style = ProgressStyle::with_template("{msg} {wide_bar} {percent:>3} % of {prefix}")
            .expect("the template is well-formed");
        let bar = ProgressBar::new(total.as_micros()).with_style(style);
        bar.set_message(label.to_owned());
        bar.set_prefix(format!("{} s", total.as_secs_f64()));
        Self::Bar(bar)
    }

    /// The run has come so far.
    pub(crate) fn at(&self, elapsed: Span) {
        match self {
            Self::Bar(bar) => bar.set_position(elapsed.as_micros()),
            Self::Lines { label, total, told_percent } => {
                let percent = elapsed.as_micros() * 100 / total.as_micros().max(1);
                let step = percent - percent % LINE_EVERY_PERCENT;
                if told_percent.fetch_max(step, Ordering::Relaxed) < step {
                    tell(format_args!("{label}: {step} %"));
                }
            }
        }
    }

    /// The run is over.
    pub(crate) fn finish(&self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}
