//! Means over seeds and their confidence intervals.
//!
//! The 95 % confidence interval of the mean x̄ of n runs with standard deviation s is x̄ ± t·s/√n. Here t is the 97.5 %
//! quantile of Student's t with n − 1 degrees of freedom. The runs must be independent, as runs with different seeds
//! are.
//!
//! Functions of several means, such as their ratio, get their interval by the jackknife (tukey58). It recomputes the
//! value with each seed left out in turn. From these values θ(i), the standard error is √((n − 1)/n · Σ(θ(i) − θ̄)²).
//! For a single mean this is exactly s/√n. All points of a study share the seeds, and a seed is left out of all points
//! at once. Variation common to two points therefore cancels.
//!
//! *What it leaves out*: the jackknife's bias correction, and levels other than 95 %. The maximum, the minimum and the
//! trend of several figures are not smooth functions of them, so their intervals are only approximate.
//!
//! References: tukey58 = J. W. Tukey, *Bias and confidence in not-quite large samples*, The Annals of Mathematical Statistics
//! 29(2), 1958; efron81 = B. Efron, C. Stein, *The jackknife estimate of variance*, The Annals of Statistics 9(3), 1981.

use lasthop_measure::mean;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF as _, StudentsT};

/// A 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    /// The interval of the mean of these figures; `None` for fewer than two.
    pub fn of_mean(figures: &[f64]) -> Option<Self> {
        let centre = mean(figures)?;
        let squares: f64 = figures.iter().map(|figure| (figure - centre).powi(2)).sum();
        let freedom = figures.len().checked_sub(1).filter(|freedom| *freedom > 0)? as f64;
        // s² = Σ(x − x̄)² / (n − 1)
        Some(Self::around(centre, (squares / freedom / figures.len() as f64).sqrt(), freedom))
    }

    /// The interval of a value computed from all seeds, given the value without each seed in turn. `None` for fewer
    /// than two.
    pub fn jackknife(value: f64, without: &[f64]) -> Option<Self> {
        let centre = mean(without)?;
        let freedom = without.len().checked_sub(1).filter(|freedom| *freedom > 0)? as f64;
        let squares: f64 = without.iter().map(|left| (left - centre).powi(2)).sum();
        Some(Self::around(value, (squares * freedom / without.len() as f64).sqrt(), freedom))
    }

    /// Half the width.
    pub fn half(&self) -> f64 {
        (self.high - self.low) / 2.0
    }

    fn around(centre: f64, standard_error: f64, freedom: f64) -> Self {
        let half = student_t_97_5(freedom) * standard_error;
        Self { low: centre - half, high: centre + half }
    }
}

/// The 97.5 % quantile of Student's t: 2.5 % on either side of the interval.
fn student_t_97_5(freedom: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom).expect("at least one degree of freedom").inverse_cdf(0.975)
}

/// Kendall's τ of these figures against their order: the share of rising pairs minus the share of falling pairs. It is
/// 1 for increasing figures and −1 for decreasing ones; `None` for fewer than two.
pub(crate) fn trend(figures: &[f64]) -> Option<f64> {
    let pairs = figures.len() * figures.len().saturating_sub(1) / 2;
    let of_pair = |(at, later): (usize, &f64)| {
        figures[..at]
            .iter()
            .map(|earlier| later.partial_cmp(earlier).map_or(f64::NAN, |order| f64::from(order as i8)))
            .sum::<f64>()
    };
    (pairs > 0).then(|| figures.iter().enumerate().map(of_pair).sum::<f64>() / pairs as f64)
}

/// The exponent b of the power law y = a·x^b: the least-squares slope of ln y over ln x. `None` for fewer than two
/// different x; NaN if an x or y is not above 0.
pub(crate) fn exponent(points: &[(f64, f64)]) -> Option<f64> {
    let logs: Vec<(f64, f64)> = points.iter().map(|(x, y)| (x.ln(), y.ln())).collect();
    let x_mean = mean(&logs.iter().map(|(x, _)| *x).collect::<Vec<_>>())?;
    let y_mean = mean(&logs.iter().map(|(_, y)| *y).collect::<Vec<_>>())?;
    let spread: f64 = logs.iter().map(|(x, _)| (x - x_mean).powi(2)).sum();
    let both: f64 = logs.iter().map(|(x, y)| (x - x_mean) * (y - y_mean)).sum();
    (spread != 0.0).then(|| both / spread)
}

/// Pearson's r of these pairs: ±1 on a line, 0 without a linear relation. `None` for fewer than two pairs, or if x or y
/// is constant.
pub(crate) fn correlation(pairs: &[(f64, f64)]) -> Option<f64> {
    let x_mean = mean(&pairs.iter().map(|(x, _)| *x).collect::<Vec<_>>())?;
    let y_mean = mean(&pairs.iter().map(|(_, y)| *y).collect::<Vec<_>>())?;
    let sum = |of: fn(f64, f64) -> f64| pairs.iter().map(|(x, y)| of(x - x_mean, y - y_mean)).sum::<f64>();
    let spread = (sum(|x, _| x * x) * sum(|_, y| y * y)).sqrt();
    (spread > 0.0).then(|| sum(|x, y| x * y) / spread)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let interval = Interval::of_mean(&[2.0, 4.0, 6.0]).expect("an interval");
        assert!(close(interval.half(), 4.9683, 1e-4), "{interval:?}");
        assert!(close(interval.low + interval.high, 8.0, 1e-12), "{interval:?}");
        // 1, 2: mean 1.5, s² = 0.5, s/√2 = 0.5; t(1) = 12.7062; half 6.3531.
        assert!(close(Interval::of_mean(&[1.0, 2.0]).expect("an interval").half(), 6.3531, 1e-4));
    }

    #[test]
    fn one_figure_has_no_interval_and_equal_figures_one_without_width() {
        assert_eq!(Interval::of_mean(&[3.0]), None);
        assert_eq!(Interval::of_mean(&[]), None);
        assert_eq!(Interval::jackknife(3.0, &[3.0]), None);
        assert_eq!(Interval::of_mean(&[3.0; 5]), Some(Interval { low: 3.0, high: 3.0 }));
    }

    #[test]
    fn of_one_mean_the_jackknife_is_students_interval() {
        // Without each of 2, 4, 6: 5, 4, 3.
        let (plain, jackknife) = (Interval::of_mean(&[2.0, 4.0, 6.0]), Interval::jackknife(4.0, &[5.0, 4.0, 3.0]));
        let (plain, jackknife) = (plain.expect("an interval"), jackknife.expect("an interval"));
        assert!(close(plain.low, jackknife.low, 1e-12) && close(plain.high, jackknife.high, 1e-12));
    }

    #[test]
    fn a_ratio_whose_ends_move_together_is_sure() {
        // 1, 2, 3 over 2, 4, 6: without any of the seeds the ratio of the means is still a half.
        assert_eq!(
            Interval::jackknife(0.5, &[2.5 / 5.0, 2.0 / 4.0, 1.5 / 3.0]),
            Some(Interval { low: 0.5, high: 0.5 })
        );
    }

    #[test]
    fn a_trend_counts_pairs() {
        assert_eq!(trend(&[5.0, 4.0, 3.0, 1.0]), Some(-1.0));
        assert_eq!(trend(&[1.0, 2.0, 4.0]), Some(1.0));
        // 1 2, 1 4 rise twice, 1 3, 2 4, 2 3 rise, 4 3 falls: (5 − 1)/6.
        assert!(close(trend(&[1.0, 2.0, 4.0, 3.0]).expect("a trend"), 4.0 / 6.0, 1e-12));
        assert_eq!(trend(&[2.0, 2.0]), Some(0.0));
        assert_eq!(trend(&[2.0]), None);
        assert!(trend(&[2.0, f64::NAN]).expect("a trend").is_nan());
    }

    #[test]
    fn a_correlation_worked_by_hand() {
        assert!(close(correlation(&[(1.0, 6.0), (2.0, 4.0), (3.0, 2.0)]).expect("an r"), -1.0, 1e-12));
        // x − 2: −1, 0, 1; y − 3: −2, 2, 0; Σxy = 2, Σx² = 2, Σy² = 8: 2/√16.
        assert!(close(correlation(&[(1.0, 1.0), (2.0, 5.0), (3.0, 3.0)]).expect("an r"), 0.5, 1e-12));
        assert_eq!(correlation(&[(1.0, 3.0), (2.0, 3.0)]), None);
        assert_eq!(correlation(&[(1.0, 3.0)]), None);
    }

    #[test]
    fn the_exponent_of_a_power_law_is_found() {
        // y = 3·x^−0.5 at 1, 4, 16: 3, 1.5, 0.75.
        assert!(close(exponent(&[(1.0, 3.0), (4.0, 1.5), (16.0, 0.75)]).expect("an exponent"), -0.5, 1e-12));
        assert_eq!(exponent(&[(2.0, 3.0), (2.0, 4.0)]), None);
        assert!(!exponent(&[(1.0, 3.0), (2.0, 0.0)]).expect("an exponent").is_finite());
    }
}
