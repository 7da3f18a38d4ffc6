//! A figure over several seeds: its mean, its deviation, and the 95 % confidence interval of its mean.
//!
//! ```text
//! s    = √(Σ(x − x̄)² / (n − 1))              the sample standard deviation of n runs
//! h    = t · s / √n                           t: the 97.5 % quantile of Student's t with n − 1 degrees of freedom
//! any number                    x̄ − h … x̄ + h
//! at least a, as times, rates   a + (x̄ − a)·exp(−h / (x̄ − a)) … x̄ + h
//! from a to b, as shares        l ± h·(b − a) / ((x̄ − a)(b − x̄)), with l = ln((x̄ − a) / (b − x̄)), and back
//! ```
//!
//! The runs must be independent, as runs with different seeds are. Near a limit of its range an interval has Student's
//! half width on a transformed scale, by the delta method (oehlert92): the logarithm of the distance to a single limit,
//! the logit between two. So no interval leaves the range, and where h is small against the distance to the limits it
//! is Student's. Towards no limit there is no transformation: with two seeds the logarithm would give upper ends of a
//! thousand means. A bootstrap is none: with two seeds its interval has the mean in half of all cases, with five in four
//! fifths (docs/guide/result-measures.md#over-several-seeds).
//!
//! Functions of several means, such as their ratio, get their interval by the jackknife (tukey58). It recomputes the
//! value with each seed left out in turn. From these values θ(i), the standard error is √((n − 1)/n · Σ(θ(i) − θ̄)²).
//! For a single mean this is exactly s/√n. All points of a study share the seeds, and a seed is left out of all points
//! at once. Variation common to two points therefore cancels.
//!
//! *What it leaves out*: the jackknife's bias correction, and levels other than 95 %. The maximum, the minimum and the
//! trend of several figures are not smooth functions of them, so their intervals are only approximate. Skewed figures
//! are covered less often than in 95 % of the cases. Equal figures have an interval without width.
//!
//! References: oehlert92 = G. W. Oehlert, *A note on the delta method*, The American Statistician 46(1), 1992; tukey58 =
//! J. W. Tukey, *Bias and confidence in not-quite large samples*, The Annals of Mathematical Statistics 29(2), 1958;
//! efron81 = B. Efron, C. Stein, *The jackknife estimate of variance*, The Annals of Statistics 9(3), 1981.

use crate::quantiles::mean;
use lasthop_scenario::{Interval, Spread};
use statrs::distribution::{ContinuousCDF as _, StudentsT};
use statrs::statistics::Statistics as _;

/// The values that a quantity can have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The least, or −∞.
    pub least: f64,
    /// The greatest, or ∞.
    pub greatest: f64,
}

impl Range {
    /// Any number, as differences.
    pub const ANY: Self = Self { least: f64::NEG_INFINITY, greatest: f64::INFINITY };
    /// Counts, times and rates.
    pub const POSITIVE: Self = Self { least: 0.0, greatest: f64::INFINITY };
    /// Shares, and Jain's index.
    pub const SHARE: Self = Self { least: 0.0, greatest: 1.0 };

    /// Of a key of `result.json`, as `access.air_shares.idle` or `access_air_shares_idle`: no number of a result is
    /// below 0, and shares are at most 1.
    pub fn of_key(key: &str) -> Self {
        let is_share = ["jain_index", "utilization", "_share", "search.met"].iter().any(|share| key.contains(share));
        if is_share { Self::SHARE } else { Self::POSITIVE }
    }

    /// Of the difference of two such quantities.
    pub fn of_difference(self) -> Self {
        Self { least: self.least - self.greatest, greatest: self.greatest - self.least }
    }

    /// The least range with all of both.
    pub fn or(self, other: Self) -> Self {
        Self { least: self.least.min(other.least), greatest: self.greatest.max(other.greatest) }
    }

    /// The interval around a value with this standard error.
    fn around(self, value: f64, standard_error: f64, freedom: f64) -> Interval {
        let half = student_t_97_5(freedom) * standard_error;
        let (above, below) = (value - self.least, self.greatest - value);
        if half == 0.0 {
            return Interval { low: value, high: value };
        }
        // On a limit, or beyond, the transformation has no value.
        match (above.is_finite() && above > 0.0, below.is_finite() && below > 0.0) {
            (false, false) => Interval { low: value - half, high: value + half },
            (true, false) => Interval { low: self.least + above * libm::exp(-half / above), high: value + half },
            (false, true) => Interval { low: value - half, high: self.greatest - below * libm::exp(-half / below) },
            (true, true) => {
                let (logit, half) = (libm::log(above / below), half * (above + below) / (above * below));
                let back = |logit: f64| self.least + (above + below) / (1.0 + libm::exp(-logit));
                Interval { low: back(logit - half), high: back(logit + half) }
            }
        }
    }
}

/// A figure of several runs, each with its own seed; `None` without any.
pub fn spread(figures: impl IntoIterator<Item = f64>, range: Range) -> Option<Spread> {
    let figures: Vec<f64> = figures.into_iter().collect();
    Some(Spread {
        mean: mean(&figures)?,
        min: figures.iter().copied().fold(f64::INFINITY, f64::min),
        max: figures.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        seeds: u32::try_from(figures.len()).unwrap_or(u32::MAX),
        deviation: deviation(&figures),
        ci95: interval(&figures, range),
    })
}

/// The sample standard deviation, with n − 1; `None` for fewer than two.
pub fn deviation(figures: &[f64]) -> Option<f64> {
    freedom(figures)?;
    // As they are summed up, equal figures could differ by a rounding.
    let first = figures[0];
    Some(if figures.iter().all(|figure| *figure == first) { 0.0 } else { figures.iter().std_dev() })
}

/// The 95 % confidence interval of the mean of these figures, within their range; `None` for fewer than two.
pub fn interval(figures: &[f64], range: Range) -> Option<Interval> {
    let standard_error = deviation(figures)? / (figures.len() as f64).sqrt();
    Some(range.around(mean(figures)?, standard_error, freedom(figures)?))
}

/// The 95 % confidence interval of a value computed from all seeds, given the value without each seed in turn. `None`
/// for fewer than two.
pub fn jackknife(value: f64, without: &[f64], range: Range) -> Option<Interval> {
    let freedom = freedom(without)?;
    // (n − 1)/n · Σ(θ(i) − θ̄)² = (n − 1)²/n · s²
    let standard_error = deviation(without)? * freedom / (without.len() as f64).sqrt();
    Some(range.around(value, standard_error, freedom))
}

fn freedom(figures: &[f64]) -> Option<f64> {
    figures.len().checked_sub(1).filter(|freedom| *freedom > 0).map(|freedom| freedom as f64)
}

/// The 97.5 % quantile of Student's t: 2.5 % on either side of the interval.
fn student_t_97_5(freedom: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom).expect("at least one degree of freedom").inverse_cdf(0.975)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngExt as _;
    use rand::SeedableRng as _;
    use rand_chacha::ChaCha8Rng;
    use statrs::distribution::{Exp, LogNormal, Normal};

    fn close(a: f64, b: f64, by: f64) -> bool {
        (a - b).abs() < by
    }

    /// Quantiles from the usual tables of Student's t, two-sided 95 %.
    #[test]
    fn the_quantiles_are_those_of_the_printed_tables() {
        for (freedom, printed) in
            [(1.0, 12.706), (2.0, 4.303), (4.0, 2.776), (9.0, 2.262), (29.0, 2.045), (1_000.0, 1.962)]
        {
            let ours = student_t_97_5(freedom);
            assert!(close(ours, printed, 5e-4), "{freedom}: {ours}, not {printed}");
        }
    }

    #[test]
    fn an_interval_worked_by_hand() {
        // 2, 4, 6: mean 4, s² = (4 + 0 + 4)/2 = 4, s/√3 = 1.1547; t(2) = 4.30265; half 4.9683.
        let ends = interval(&[2.0, 4.0, 6.0], Range::ANY).expect("an interval");
        assert!(close((ends.high - ends.low) / 2.0, 4.9683, 1e-4), "{ends:?}");
        assert!(close(ends.low + ends.high, 8.0, 1e-12), "{ends:?}");
        // 1, 2: mean 1.5, s² = 0.5, s/√2 = 0.5; t(1) = 12.7062; half 6.3531.
        let half = |figures: &[f64]| interval(figures, Range::ANY).map_or(0.0, |ends| (ends.high - ends.low) / 2.0);
        assert!(close(half(&[1.0, 2.0]), 6.3531, 1e-4));
    }

    #[test]
    fn one_figure_has_no_interval_and_equal_figures_one_without_width() {
        assert_eq!(interval(&[3.0], Range::ANY), None);
        assert_eq!(interval(&[], Range::ANY), None);
        assert_eq!(jackknife(3.0, &[3.0], Range::ANY), None);
        assert_eq!(interval(&[3.0; 5], Range::ANY), Some(Interval { low: 3.0, high: 3.0 }));
    }

    #[test]
    fn of_one_mean_the_jackknife_is_students_interval() {
        // Without each of 2, 4, 6: 5, 4, 3.
        let (plain, knife) = (interval(&[2.0, 4.0, 6.0], Range::ANY), jackknife(4.0, &[5.0, 4.0, 3.0], Range::ANY));
        let (plain, knife) = (plain.expect("an interval"), knife.expect("an interval"));
        assert!(close(plain.low, knife.low, 1e-12) && close(plain.high, knife.high, 1e-12));
    }

    #[test]
    fn a_ratio_whose_ends_move_together_is_sure() {
        // 1, 2, 3 over 2, 4, 6: without any of the seeds the ratio of the means is still a half.
        assert_eq!(
            jackknife(0.5, &[2.5 / 5.0, 2.0 / 4.0, 1.5 / 3.0], Range::ANY),
            Some(Interval { low: 0.5, high: 0.5 })
        );
    }

    #[test]
    fn an_interval_stays_within_the_range_of_its_quantity() {
        // Two seeds that differ much: Student's interval would be 50 ± 12.706·40 and 0.9 ± 12.706·0.08.
        let ms = interval(&[10.0, 90.0], Range::POSITIVE).expect("an interval");
        assert!(ms.low > 0.0 && ms.low < 10.0, "{ms:?}");
        assert!(close(ms.high, 50.0 + 12.7062 * 40.0, 0.01), "{ms:?}");
        let jain = interval(&[0.82, 0.98], Range::SHARE).expect("an interval");
        assert!(jain.low > 0.0 && jain.low < 0.82 && jain.high > 0.98 && jain.high < 1.0, "{jain:?}");
        // 0 and 1: as far as a share can vary.
        let share = interval(&[0.0, 1.0], Range::SHARE).expect("an interval");
        assert!(share.low >= 0.0 && share.high <= 1.0 && share.high - share.low > 0.99, "{share:?}");
        // On a limit nothing varies.
        assert_eq!(interval(&[1.0; 5], Range::SHARE), Some(Interval { low: 1.0, high: 1.0 }));
        assert_eq!(interval(&[0.0; 5], Range::POSITIVE), Some(Interval { low: 0.0, high: 0.0 }));
        let apart = Range::SHARE.of_difference();
        let difference = interval(&[0.9, -0.1], apart).expect("an interval");
        assert!(difference.low > -1.0 && difference.high < 1.0, "{difference:?}");
    }

    #[test]
    fn far_from_the_limits_it_is_students_interval() {
        // Mean 100, s = 1, n = 3: half 2.4842. The logarithm moves the lower end by h²/(2·100) = 0.031.
        let figures = [99.0, 100.0, 101.0];
        let (plain, kept) = (interval(&figures, Range::ANY), interval(&figures, Range::POSITIVE));
        let (plain, kept) = (plain.expect("an interval"), kept.expect("an interval"));
        assert!(close(plain.high, kept.high, 1e-12) && close(kept.low - plain.low, 0.031, 5e-4), "{plain:?} {kept:?}");
    }

    #[test]
    fn a_spread_has_what_the_figures_have() {
        let over = spread([2.0, 4.0, 6.0], Range::POSITIVE).expect("a spread");
        assert_eq!((over.mean, over.min, over.max, over.seeds, over.deviation), (4.0, 2.0, 6.0, 3, Some(2.0)));
        let one = spread([2.0], Range::POSITIVE).expect("a spread");
        assert_eq!((one.seeds, one.deviation, one.ci95), (1, None, None));
        assert_eq!(spread([], Range::POSITIVE), None);
    }

    /// A quantity: its name, its range, its mean, and its value where its distribution function has this.
    type Quantity = (&'static str, Range, f64, Box<dyn Fn(f64) -> f64>);

    fn quantities() -> [Quantity; 6] {
        let normal = |deviation: f64| {
            let of = Normal::new(10.0, deviation).expect("a distribution");
            Box::new(move |u| of.inverse_cdf(u))
        };
        let skewed = LogNormal::new(0.0, 0.5).expect("a distribution");
        let exponential = Exp::new(1.0).expect("a distribution");
        [
            ("normal, deviation 10 %", Range::POSITIVE, 10.0, normal(1.0)),
            ("normal, deviation 30 %", Range::POSITIVE, 10.0, normal(3.0)),
            ("lognormal, sigma 0.5", Range::POSITIVE, libm::exp(0.125), Box::new(move |u| skewed.inverse_cdf(u))),
            ("exponential", Range::POSITIVE, 1.0, Box::new(move |u| exponential.inverse_cdf(u))),
            // u^(1/20) has the density 20 x^19 and the mean 20/21: near 1, as Jain's index is.
            ("share, 20 x^19", Range::SHARE, 20.0 / 21.0, Box::new(|u| libm::pow(u, 0.05))),
            ("share, uniform", Range::SHARE, 0.5, Box::new(|u| u)),
        ]
    }

    /// How many per cent of the intervals have the mean, with 2, 3, 5 and 10 seeds. docs/guide/result-measures.md has
    /// the least and the greatest. Of 4000 intervals 95 % have a deviation of 0.35, 88 % of 0.5.
    const COVERED: [[f64; 4]; 6] = [
        [95.0, 95.0, 95.0, 95.0],
        [95.0, 94.5, 94.0, 94.0],
        [93.5, 92.0, 91.5, 91.5],
        [90.5, 88.5, 87.5, 89.0],
        [95.0, 94.5, 93.5, 93.5],
        [95.5, 95.5, 96.0, 96.0],
    ];

    #[test]
    fn intervals_have_the_mean_as_often_as_the_guide_says() {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        for ((name, range, mean, value), says) in quantities().iter().zip(COVERED) {
            for (seeds, says) in [2, 3, 5, 10].into_iter().zip(says) {
                let mut covered = 0;
                for _ in 0..4_000 {
                    let figures: Vec<f64> = (0..seeds).map(|_| value(random.random())).collect();
                    let ends = interval(&figures, *range).expect("an interval");
                    assert!(range.least <= ends.low && ends.high <= range.greatest, "{name}, {figures:?}: {ends:?}");
                    covered += u32::from(ends.low <= *mean && *mean <= ends.high);
                }
                let per_cent = f64::from(covered) / 40.0;
                assert!((per_cent - says).abs() < 1.5, "{name}, {seeds} seeds: {per_cent} %, not {says} %");
            }
        }
    }
}
