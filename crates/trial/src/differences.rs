//! Paired differences: a test by random flips of their signs, and the interval that it leaves.
//!
//! In each pair the order is drawn. Without any effect, the difference of a pair could as well have had the other sign. So the mean
//! of the differences is compared with the means under all flips of signs: p is the share of them that is as far out
//! (fisher35). With S the pairs that are flipped, the flipped mean is not below the observed one exactly if the mean over
//! S is not above 0. So the means over all subsets carry the test; and, shifted, the whole interval: it runs from one order statistic
//! of them to another (hartigan69). No distribution is assumed. Above [`EXACT_UP_TO`] pairs, subsets are drawn.
//!
//! [`holm`] keeps the chance of any false verdict over several figures below the level, whatever their dependence (holm79).
//!
//! References: fisher35 = R. A. Fisher, *The Design of Experiments*, 1935, §21; hartigan69 = J. A. Hartigan, *Using subsample values as
//! typical values*, Journal of the American Statistical Association 64, 1969; holm79 = S. Holm, *A simple sequentially rejective multiple
//! test procedure*, Scandinavian Journal of Statistics 6(2), 1979.

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use statrs::distribution::{ContinuousCDF as _, StudentsT};

/// Up to so many pairs, all subsets are looked at: 16,383.
const EXACT_UP_TO: usize = 14;
/// Beyond, so many are drawn: p has an error of 0.0015 at 0.05.
const DRAWN: usize = 19_999;
/// The chance with which an effect of [`Differences::detectable`] is seen.
const POWER: f64 = 0.8;

/// The differences of pairs.
#[derive(Clone, Debug)]
pub struct Differences {
    mean: f64,
    deviation: f64,
    pairs: usize,
    /// The means over subsets of the pairs, sorted.
    subsets: Vec<f64>,
}

impl Differences {
    /// Of these differences; `None`: there are none.
    ///
    /// # Panics
    /// If one is not a number.
    pub fn of(differences: &[f64]) -> Option<Self> {
        let pairs = differences.len();
        if pairs == 0 {
            return None;
        }
        assert!(differences.iter().all(|difference| difference.is_finite()), "differences are numbers");
        let mean = differences.iter().sum::<f64>() / pairs as f64;
        let squares: f64 = differences.iter().map(|difference| (difference - mean).powi(2)).sum();
        let deviation = if pairs > 1 { (squares / (pairs - 1) as f64).sqrt() } else { f64::INFINITY };
        let of_subset = |has: &dyn Fn(usize) -> bool| {
            let (mut sum, mut count) = (0.0, 0_u32);
            for (_, difference) in differences.iter().enumerate().filter(|(index, _)| has(*index)) {
                sum += difference;
                count += 1;
            }
            (count > 0).then(|| sum / f64::from(count))
        };
        let mut subsets: Vec<f64> = if pairs <= EXACT_UP_TO {
            (1..1_u32 << pairs).filter_map(|subset| of_subset(&|index| subset >> index & 1 == 1)).collect()
        } else {
            let mut rng = ChaCha8Rng::seed_from_u64(pairs as u64);
            let mut draw = || {
                let bits: Vec<u64> = (0..pairs.div_ceil(64)).map(|_| rng.random()).collect();
                of_subset(&|index| bits[index / 64] >> (index % 64) & 1 == 1)
            };
            (0..DRAWN).filter_map(|_| draw()).collect()
        };
        subsets.sort_unstable_by(f64::total_cmp);
        Some(Self { mean, deviation, pairs, subsets })
    }

    /// Their mean.
    pub const fn mean(&self) -> f64 {
        self.mean
    }

    /// How many there are.
    pub const fn pairs(&self) -> usize {
        self.pairs
    }

    /// The chance, without any effect, of a mean as far from 0, on either side.
    pub fn p(&self) -> f64 {
        let all = (self.subsets.len() + 1) as f64;
        let not_above = self.subsets.partition_point(|mean| *mean <= 0.0);
        let below = self.subsets.partition_point(|mean| *mean < 0.0);
        let (above, under) = (1 + not_above, 1 + self.subsets.len() - below);
        (2.0 * above.min(under) as f64 / all).min(1.0)
    }

    /// The effects that the test at this level does not rule out; `None`: there are too few pairs to rule any out.
    pub fn interval(&self, level: f64) -> Option<[f64; 2]> {
        let outside = (level / 2.0 * (self.subsets.len() + 1) as f64 + 1e-9).floor() as usize;
        let at = outside.checked_sub(1)?;
        Some([self.subsets[at], self.subsets[self.subsets.len() - 1 - at]])
    }

    /// The effect that a trial like this sees in four of five cases at this level, where less than `least` is none, by Student's t;
    /// `None`: there are too few pairs for any.
    pub fn detectable(&self, level: f64, least: f64) -> Option<f64> {
        self.interval(level)?;
        let t = StudentsT::new(0.0, 1.0, (self.pairs - 1) as f64).ok()?;
        let error = self.deviation / (self.pairs as f64).sqrt();
        Some((t.inverse_cdf(1.0 - level / 2.0) * error).max(least) + t.inverse_cdf(POWER) * error)
    }

    /// The fewest pairs that can have a p of this level.
    pub fn least_pairs(level: f64) -> u32 {
        libm::log2(2.0 / level).ceil() as u32
    }
}

/// The p of several figures, each so raised that a verdict where it is below the level is false with a chance below that
/// level, over all figures together.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let mut raised = vec![1.0; p.len()];
    let mut least: f64 = 0.0;
    for (rank, index) in order.into_iter().enumerate() {
        least = least.max((p[index] * (p.len() - rank) as f64).min(1.0));
        raised[index] = least;
    }
    raised
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// By the definition: all flips of signs.
    fn by_definition(differences: &[f64], effect: f64) -> f64 {
        let shifted: Vec<f64> = differences.iter().map(|difference| difference - effect).collect();
        let observed: f64 = shifted.iter().sum();
        let (mut above, mut under) = (0_u32, 0_u32);
        let all = 1_u32 << shifted.len();
        for flips in 0..all {
            let sum: f64 = shifted.iter().enumerate().map(|(i, d)| if flips >> i & 1 == 1 { -d } else { *d }).sum();
            above += u32::from(sum >= observed - 1e-9);
            under += u32::from(sum <= observed + 1e-9);
        }
        (2.0 * f64::from(above.min(under)) / f64::from(all)).min(1.0)
    }

    #[test]
    fn fishers_example_of_darwins_maize() {
        // fisher35 §21: heights of 15 pairs of plants, in eighths of an inch; 863 of 32,768 flips have a total as great as the
        // observed 314, so 5.267 % on both sides. Beyond 14 pairs they are drawn here.
        let differences = [49.0, -67.0, 8.0, 16.0, 6.0, 23.0, 28.0, 41.0, 14.0, 29.0, 56.0, 24.0, 75.0, 60.0, -48.0];
        let found = Differences::of(&differences).expect("15 pairs");
        assert_eq!(found.mean() * 15.0, 314.0);
        // Four deviations of 19,999 draws.
        assert!((found.p() - 0.05267).abs() < 0.0065, "{}", found.p());
        assert!((by_definition(&differences, 0.0) - 0.05267).abs() < 1e-5);
    }

    #[test]
    fn few_pairs_rule_nothing_out() {
        let six = Differences::of(&[1.0, 1.1, 1.2, 0.9, 0.8, 1.0]).expect("six");
        assert_eq!((six.p(), six.interval(0.03)), (2.0 / 64.0, None));
        assert!(six.interval(0.05).is_some());
        assert_eq!((Differences::least_pairs(0.05), Differences::least_pairs(0.05 / 3.0)), (6, 7));
        assert!(Differences::of(&[]).is_none());
    }

    #[test]
    fn holms_own_rule() {
        // 0.01 · 4, 0.02 · 3, 0.03 · 2 (but not below the one before), 0.9
        let raised = holm(&[0.03, 0.01, 0.9, 0.02]);
        let expected = [0.06, 0.04, 0.9, 0.06];
        assert!(raised.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{raised:?}");
    }

    proptest! {
        #[test]
        fn subsets_and_flips_are_the_same_test(differences in prop::collection::vec(-100..100_i32, 1..9), effect in -50..50_i32) {
            let differences: Vec<f64> = differences.into_iter().map(f64::from).collect();
            let found = Differences::of(&differences).expect("some");
            prop_assert!((found.p() - by_definition(&differences, 0.0)).abs() < 1e-9);
            // The interval has the effects that the test does not rule out.
            if let Some([low, high]) = found.interval(0.05) {
                let effect = f64::from(effect) + 0.5; // between whole numbers: on no limit
                let inside = low <= effect && effect <= high;
                let near = (effect - low).abs() < 1e-6 || (effect - high).abs() < 1e-6;
                prop_assert!(near || inside == (by_definition(&differences, effect) > 0.05));
            }
        }
    }
}
