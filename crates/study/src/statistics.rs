//! Trends, power laws and correlations of means. Their confidence intervals: `lasthop_measure::jackknife`.

use lasthop_measure::mean;

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
