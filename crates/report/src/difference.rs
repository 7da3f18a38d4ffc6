//! What a case differs by from the first one: the mean over the seeds that both have, with its 95 % confidence interval.
//!
//! Runs of one seed have the same draws, so their differences vary less than the runs themselves.

use lasthop_measure::{Range, interval, mean};
use lasthop_scenario::{CaseResult, RunResult};

/// A figure of a run, and the values that it can have.
pub(crate) type Figure = (fn(&RunResult) -> Option<f64>, Range);

/// A difference to the first case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Difference {
    /// In the unit of the figure.
    pub(crate) mean: f64,
    /// Both ends are the mean with a single seed.
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// The figure of the first case, mean over the same seeds.
    pub(crate) first: f64,
}

impl Difference {
    /// `None` if no seed has the figure in both cases.
    pub(crate) fn of(first: &CaseResult, case: &CaseResult, (figure, range): Figure) -> Option<Self> {
        let pair = |run: &RunResult| {
            let before = first.runs.iter().find(|other| other.seed == run.seed)?;
            Some((figure(before)?, figure(run)?))
        };
        let (before, differences): (Vec<f64>, Vec<f64>) =
            case.runs.iter().filter_map(pair).map(|(before, after)| (before, after - before)).unzip();
        let (before, difference) = (mean(&before)?, mean(&differences)?);
        let (low, high) = interval(&differences, range.of_difference())
            .map_or((difference, difference), |ends| (ends.low, ends.high));
        Some(Self { mean: difference, low, high, first: before })
    }

    /// With its sign: `-959 ± 12`.
    pub(crate) fn text(&self) -> String {
        let digits = digits(self.mean.abs().max(self.high - self.low));
        let mean = signed(self.mean, digits);
        if self.high <= self.low {
            return mean;
        }
        let half = format!("{:.digits$}", self.high - self.mean);
        if half == format!("{:.digits$}", self.mean - self.low) {
            format!("{mean} ± {half}")
        } else {
            format!("{mean} ({} to {})", signed(self.low, digits), signed(self.high, digits))
        }
    }

    /// In per cent of the first case, with its sign: `-92 %`; `None` if that has 0.
    pub(crate) fn percentage(&self) -> Option<String> {
        (self.first > 0.0).then(|| format!("{} %", signed(100.0 * self.mean / self.first, 0)))
    }
}

/// Two or three digits that say something.
fn digits(magnitude: f64) -> usize {
    [100.0, 10.0, 1.0].iter().filter(|from| magnitude < **from).count()
}

/// `+0.5`, `−0.5`, `0.0`.
fn signed(value: f64, digits: usize) -> String {
    let text = format!("{:.digits$}", value.abs());
    match text.parse() {
        Ok(0.0) => text,
        _ if value < 0.0 => format!("−{text}"),
        _ => format!("+{text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_have_their_sign_and_the_digits_that_say_something() {
        let of = |mean: f64, half: f64, first: f64| Difference { mean, low: mean - half, high: mean + half, first };
        assert_eq!(of(-958.6, 0.0, 1038.6).text(), "−959");
        assert_eq!(of(-958.6, 0.0, 1038.6).percentage().expect("there is one"), "−92 %");
        assert_eq!(of(1.5, 12.0, 0.0).percentage(), None);
        assert_eq!(of(0.0712, 0.004, 0.0).text(), "+0.071 ± 0.004");
        assert_eq!(
            (of(1.5, 12.0, 0.0).text(), of(0.002, 0.0, 1.0).percentage()),
            ("+1.5 ± 12.0".into(), Some("0 %".into()))
        );
    }
}
