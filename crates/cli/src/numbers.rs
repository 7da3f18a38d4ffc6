//! Numbers on the command line: a wrong one is refused with what is accepted, as a key of a file is.

use std::fmt::Display;
use std::num::NonZero;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// The greatest seed: that of the scenario's key.
pub(crate) const MOST_SEED: u64 = i64::MAX as u64;
/// The most runs at once.
pub(crate) const MOST_JOBS: NonZero<usize> = NonZero::new(65_535).expect("not zero");

/// Reads a whole number of this range.
pub(crate) fn whole<T>(range: RangeInclusive<T>) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: FromStr + PartialOrd + Display + Clone + Send + Sync + 'static,
{
    move |text| {
        let read = text.parse().ok().filter(|number| range.contains(number));
        read.ok_or_else(|| format!("accepted: a whole number from {} to {}", range.start(), range.end()))
    }
}

/// Reads a number of this range, with decimals or without.
pub(crate) fn decimal(
    range: RangeInclusive<f64>,
) -> impl Fn(&str) -> Result<f64, String> + Clone + Send + Sync + 'static {
    move |text| {
        let read = text.parse().ok().filter(|number| range.contains(number));
        read.ok_or_else(|| format!("accepted: a number from {} to {}", range.start(), range.end()))
    }
}

#[cfg(test)]
mod tests {
    use super::{decimal, whole};
    use std::num::NonZero;

    #[test]
    fn what_is_no_number_of_the_range_is_refused_with_the_range() {
        let jobs = whole(NonZero::<usize>::MIN..=NonZero::new(8).expect("not zero"));
        assert_eq!(jobs("8").map(NonZero::get), Ok(8));
        for text in ["0", "9", "x", "1.5", "-1", "1e3", "", "99999999999999999999999"] {
            assert_eq!(jobs(text), Err("accepted: a whole number from 1 to 8".to_owned()), "{text}");
        }
        let minutes = decimal(0.001..=1440.0);
        assert_eq!(minutes("0.5"), Ok(0.5));
        for text in ["0", "1441", "nan", "inf", "x", "-1"] {
            assert_eq!(minutes(text), Err("accepted: a number from 0.001 to 1440".to_owned()), "{text}");
        }
    }
}
