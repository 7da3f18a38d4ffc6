//! Sizes of transfers: of one size, lognormal, or by a distribution of points.

use lasthop_units::Bytes;
use rand::{Rng, RngExt as _};
use std::sync::Arc;

const MOST: f64 = Sizes::MOST.get() as f64;

/// The distribution of sizes.
#[derive(Clone, Debug, PartialEq)]
pub enum Sizes {
    /// Lognormal.
    Lognormal {
        /// Their median, at least 1 byte.
        median: Bytes,
        /// The standard deviation of their natural logarithm; 0: all have one size.
        sigma: f64,
    },
    /// By points.
    Points(Points),
}

/// A distribution by points of its cumulative function, with straight lines between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Points(Arc<[(f64, f64)]>);

impl Points {
    /// The most points.
    pub const MOST: usize = 10_000;
    /// What [`Self::new`] takes.
    pub const ACCEPTED: &'static str = "up to 10000 points of bytes from 0 to 1099511627776 and the share of transfers with at most so \
                                        many, neither falling; the last share 1 or 100, the mean at least 1 byte";

    /// The web search of M. Alizadeh and others, *Data Center TCP (DCTCP)*, SIGCOMM 2010, as pFabric's and HPCC's generators have it.
    pub const WEB_SEARCH: &'static [(f64, f64)] = &[
        (0.0, 0.0),
        (10e3, 0.15),
        (20e3, 0.2),
        (30e3, 0.3),
        (50e3, 0.4),
        (80e3, 0.53),
        (200e3, 0.6),
        (1e6, 0.7),
        (2e6, 0.8),
        (5e6, 0.9),
        (10e6, 0.97),
        (30e6, 1.0),
    ];

    /// The data mining of A. Greenberg and others, *VL2*, SIGCOMM 2009, as pFabric's generator has it (M. Alizadeh and others, SIGCOMM
    /// 2013, figure 4).
    pub const DATA_MINING: &'static [(f64, f64)] = &[
        (0.0, 0.0),
        (180.0, 0.1),
        (216.0, 0.2),
        (560.0, 0.3),
        (900.0, 0.4),
        (1_100.0, 0.5),
        (1_870.0, 0.6),
        (3_160.0, 0.7),
        (10e3, 0.8),
        (400e3, 0.9),
        (3.16e6, 0.95),
        (100e6, 0.98),
        (1e9, 1.0),
    ];

    /// The names of the two.
    const NAMES: [(&'static str, &'static [(f64, f64)]); 2] =
        [("web-search", Self::WEB_SEARCH), ("data-mining", Self::DATA_MINING)];

    /// The distribution of this name.
    pub fn of(name: &str) -> Option<Self> {
        let (_, points) = Self::NAMES.into_iter().find(|(known, _)| *known == name)?;
        Some(Self::new(points).expect("points in order"))
    }

    /// A distribution with these points: bytes, and the share or the percentage of transfers with at most so many. Neither goes
    /// back; the last share is the whole, and the mean at least 1 byte.
    ///
    /// # Errors
    /// The number of the first point that is wrong, from 0, and what is wrong with it.
    pub fn new(points: &[(f64, f64)]) -> Result<Self, (usize, String)> {
        let whole = points.last().map_or(0.0, |(_, share)| *share);
        for (number, (bytes, share)) in points.iter().copied().enumerate() {
            let (bytes_before, share_before) = number.checked_sub(1).map_or((0.0, 0.0), |before| points[before]);
            let wrong = if !(0.0..=MOST).contains(&bytes) {
                Some(format!("{bytes} is no size"))
            } else if !(0.0..=100.0).contains(&share) {
                Some(format!("{share} is no share"))
            } else if bytes < bytes_before || share < share_before {
                Some(format!("{bytes} and {share} go back behind {bytes_before} and {share_before}"))
            } else {
                None
            };
            wrong.map_or(Ok(()), |wrong| Err((number, wrong)))?;
        }
        let last = points.len().saturating_sub(1);
        if points.len() > Self::MOST {
            return Err((Self::MOST, format!("there are {} points", points.len())));
        }
        if whole != 1.0 && whole != 100.0 {
            return Err((last, format!("{whole} is the last share")));
        }
        let made = Self(points.iter().map(|(bytes, share)| (*bytes, share / whole)).collect());
        // Nor could a load in bytes come of transfers without any.
        match made.mean() {
            mean if mean < 1.0 => Err((last, format!("{mean} bytes are the mean"))),
            _ => Ok(made),
        }
    }

    /// The size below which this share lies, at least 1 byte.
    fn quantile(&self, share: f64) -> f64 {
        let next = self.0.partition_point(|(_, below)| *below < share).min(self.0.len() - 1);
        let (bytes, below) = self.0[next];
        let (bytes_before, below_before) = next.checked_sub(1).map_or((bytes, 0.0), |before| self.0[before]);
        let part = if below > below_before { (share - below_before) / (below - below_before) } else { 1.0 };
        bytes_before + part * (bytes - bytes_before)
    }

    fn mean(&self) -> f64 {
        let (first, share) = self.0[0];
        let lines = self.0.windows(2).map(|ends| (ends[1].1 - ends[0].1) * (ends[0].0 + ends[1].0) / 2.0);
        first * share + lines.sum::<f64>()
    }
}

impl Sizes {
    /// A transfer has at most this size: 1 TiB.
    pub const MOST: Bytes = Bytes::new(1 << 40);

    /// One of them, of 1 byte to 1 TiB. The normal number of a lognormal one is drawn by the polar method (G. Marsaglia and T. A.
    /// Bray, 1964).
    pub(crate) fn draw(&self, stream: &mut impl Rng) -> Bytes {
        let bytes = match self {
            Self::Lognormal { median, sigma: 0.0 } => return *median,
            Self::Lognormal { median, sigma } => {
                let normal = loop {
                    let [x, y] = [0; 2].map(|_| 2.0 * stream.random::<f64>() - 1.0);
                    let square = x * x + y * y;
                    if square > 0.0 && square < 1.0 {
                        break x * (-2.0 * libm::log(square) / square).sqrt();
                    }
                };
                median.get() as f64 * libm::exp(sigma * normal)
            }
            Self::Points(points) => points.quantile(stream.random()),
        };
        Bytes::new(bytes.clamp(1.0, MOST) as u64)
    }

    /// Their mean in bytes, without the limits of a draw.
    pub(crate) fn mean(&self) -> f64 {
        match self {
            Self::Lognormal { median, sigma } => median.get() as f64 * libm::exp(sigma * sigma / 2.0),
            Self::Points(points) => points.mean(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng as _;
    use rand_chacha::ChaCha8Rng;

    fn of(points: &[(f64, f64)]) -> Points {
        Points::new(points).unwrap_or_else(|wrong| panic!("{wrong:?}"))
    }

    #[test]
    fn a_quantile_lies_on_the_line_between_two_points() {
        let points = of(&[(100.0, 0.0), (200.0, 50.0), (200.0, 75.0), (1000.0, 100.0)]);
        // Half of the first line, the step, a quarter of the last line.
        let quantiles = [0.25, 0.5, 0.6, 0.8125].map(|share| points.quantile(share));
        assert_eq!(quantiles, [150.0, 200.0, 200.0, 400.0]);
        // 0.5 · 150 + 0.25 · 200 + 0.25 · 600.
        assert_eq!(points.mean(), 275.0);
        // A first point with a share is a step.
        assert_eq!((of(&[(8.0, 0.5), (10.0, 1.0)]).quantile(0.1), of(&[(8.0, 1.0)]).mean()), (8.0, 8.0));
    }

    #[test]
    fn the_distributions_of_the_literature_have_their_means_and_shares() {
        // 0.15 · 5e3 + 0.05 · 15e3 + 0.1 · 25e3 + 0.1 · 40e3 + 0.13 · 65e3 + 0.07 · 140e3 + 0.1 · 600e3 + 0.1 · 1.5e6 + 0.1 · 3.5e6
        // + 0.07 · 7.5e6 + 0.03 · 20e6: 1.71 MB, of which most is in the 30 % above 1 MB.
        let search = of(Points::WEB_SEARCH);
        assert!((search.mean() - 1_711_250.0).abs() < 1.0, "{}", search.mean());
        // 0.02 · 550e6 + 0.03 · 51.58e6 + 0.05 · 1.78e6 + 0.1 · 205e3 and less.
        let mining = of(Points::DATA_MINING);
        assert!((mining.mean() / 12.658e6 - 1.0).abs() < 1e-3, "{}", mining.mean());
        let mut stream = ChaCha8Rng::seed_from_u64(1);
        let draws = 20_000;
        for (points, size, share) in [(search, 80_000.0, 0.53), (mining, 10_000.0, 0.8)] {
            let sizes = Sizes::Points(points);
            let small = (0..draws).filter(|_| sizes.draw(&mut stream).get() as f64 <= size).count();
            // Five deviations of a binomial share are 0.018 at most.
            assert!((small as f64 / f64::from(draws) - share).abs() < 0.018, "{small} of {size}");
        }
    }

    #[test]
    fn points_that_go_back_or_do_not_end_with_all_are_refused_with_their_number() {
        let wrong = |points: &[(f64, f64)]| Points::new(points).expect_err("wrong");
        assert_eq!(wrong(&[(1.0, 0.5), (2.0, 0.4), (3.0, 1.0)]).0, 1);
        assert_eq!(wrong(&[(5.0, 0.5), (2.0, 1.0)]).0, 1);
        assert_eq!(wrong(&[(-1.0, 1.0)]).0, 0);
        // As many as there may be with one more: the last of these is named.
        assert_eq!(wrong(&vec![(1.0, 1.0); Points::MOST + 1]), (Points::MOST, "there are 10001 points".to_owned()));
        for points in [&[(0.0, 1.0)][..], &[(0.0, 0.0), (0.0, 100.0)], &[(0.0, 1.0), (1e6, 1.0)]] {
            assert_eq!(wrong(points), (points.len() - 1, "0 bytes are the mean".to_owned()), "{points:?}");
        }
        for points in [&[(1.0, 0.5), (2.0, 0.9)][..], &[]] {
            assert!(wrong(points).1.contains("is the last share"), "{points:?}");
        }
    }
}
