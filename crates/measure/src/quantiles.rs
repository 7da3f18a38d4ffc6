//! Means, quantiles and distributions of samples.
//!
//! Reference: hyndman96 = R. J. Hyndman, Y. Fan, *Sample quantiles in statistical packages*, The American Statistician 50(4),
//! 1996.

use lasthop_scenario::Distribution;

/// The distribution of samples in any order; `None` without samples. NaN is not counted.
pub fn distribution(samples: &[f64]) -> Option<Distribution> {
    let mut sorted: Vec<f64> = samples.iter().copied().filter(|sample| !sample.is_nan()).collect();
    sorted.sort_by(f64::total_cmp);
    let (min, max) = (*sorted.first()?, *sorted.last()?);
    let at = |quantile| quantile_of_sorted(&sorted, quantile);
    Some(Distribution { min, mean: mean(&sorted)?, p50: at(0.50), p95: at(0.95), p99: at(0.99), max })
}

/// The `quantile` (0..=1) of the samples, by linear interpolation between the two nearest; `None` without samples. This
/// is type 7 of hyndman96, the default of NumPy and R.
///
/// # Panics
/// If `quantile` is not in 0..=1.
pub fn quantile(samples: &[f64], quantile: f64) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    (!sorted.is_empty()).then(|| quantile_of_sorted(&sorted, quantile))
}

/// The mean; `None` without samples.
pub fn mean(samples: &[f64]) -> Option<f64> {
    (!samples.is_empty()).then(|| samples.iter().sum::<f64>() / samples.len() as f64)
}

fn quantile_of_sorted(sorted: &[f64], quantile: f64) -> f64 {
    assert!((0.0..=1.0).contains(&quantile), "{quantile} is not a quantile: it must be between 0 and 1");
    let place = quantile * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    below + (above - below) * place.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    #[test]
    fn quantiles_lie_between_the_two_nearest_samples() {
        // Positions 0, 1, 2, 3: the median at 1.5, p95 at 2.85: 30 + 0.85·(40−30).
        let spread = distribution(&[40.0, 10.0, 30.0, 20.0]).expect("a distribution");
        assert!(close(spread.min, 10.0) && close(spread.max, 40.0) && close(spread.mean, 25.0));
        assert!(close(spread.p50, 25.0) && close(spread.p95, 38.5) && close(spread.p99, 39.7));
        assert_eq!(quantile(&[7.0], 0.95), Some(7.0));
        assert_eq!(distribution(&[]), None);
        assert_eq!(distribution(&[f64::NAN]), None);
    }
}
