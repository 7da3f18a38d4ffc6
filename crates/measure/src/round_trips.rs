//! Every round trip that a connection measured: of each ACK that gave TCP a sample.
//!
//! Least, mean and greatest are exact. Quantiles are those of an HDR histogram with two significant digits: at most 1 %
//! too long or too short, whatever the number of samples, in some 10 kB.

use hdrhistogram::Histogram;
use lasthop_scenario::Distribution;
use lasthop_units::Span;

/// The digits of a quantile that are exact.
const DIGITS: u8 = 2;

/// The round trips of a connection, or of several together.
#[derive(Clone, Debug, Default)]
pub struct RoundTrips(Option<Box<Seen>>);

#[derive(Clone, Debug)]
struct Seen {
    least: Span,
    greatest: Span,
    /// Nanoseconds.
    sum: u128,
    count: u64,
    microseconds: Histogram<u32>,
}

impl Default for Seen {
    fn default() -> Self {
        let microseconds = Histogram::new(DIGITS).expect("a number of digits from 0 to 5");
        Self { least: Span::MAX, greatest: Span::ZERO, sum: 0, count: 0, microseconds }
    }
}

impl RoundTrips {
    /// An ACK gave this sample.
    pub fn on_sample(&mut self, rtt: Span) {
        let seen = self.0.get_or_insert_default();
        seen.least = seen.least.min(rtt);
        seen.greatest = seen.greatest.max(rtt);
        seen.sum += u128::from(rtt.as_nanos());
        seen.count += 1;
        seen.microseconds.record(rtt.as_micros()).expect("a histogram that grows");
    }

    /// The round trips of all of these.
    pub fn of_all<'a>(each: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut all: Option<Box<Seen>> = None;
        for seen in each.into_iter().filter_map(|of| of.0.as_deref()) {
            let all = all.get_or_insert_default();
            all.least = all.least.min(seen.least);
            all.greatest = all.greatest.max(seen.greatest);
            all.sum += seen.sum;
            all.count += seen.count;
            all.microseconds.add(&seen.microseconds).expect("a histogram that grows");
        }
        Self(all)
    }

    /// In ms; `None` without any.
    pub fn distribution(&self) -> Option<Distribution> {
        let seen = self.0.as_deref()?;
        let (min, max) = (seen.least.as_millis_f64(), seen.greatest.as_millis_f64());
        let at = |quantile: f64| (seen.microseconds.value_at_quantile(quantile) as f64 / 1e3).clamp(min, max);
        let mean = seen.sum as f64 / seen.count as f64 / 1e6;
        Some(Distribution { min, mean, p50: at(0.50), p95: at(0.95), p99: at(0.99), max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_right_to_a_hundredth_and_the_rest_exactly() {
        let (mut up, mut down) = (RoundTrips::default(), RoundTrips::default());
        for us in 1..=100_000 {
            let half = if us % 2 == 0 { &mut up } else { &mut down };
            half.on_sample(Span::from_micros(us * 10));
        }
        let both = RoundTrips::of_all([&up, &down, &RoundTrips::default()]).distribution().expect("samples");
        assert_eq!((both.min, both.mean, both.max), (0.01, 500.005, 1_000.0));
        for (quantile, right) in [(both.p50, 500.0), (both.p95, 950.0), (both.p99, 990.0)] {
            assert!((quantile / right - 1.0).abs() < 0.01, "{quantile}, not {right}");
        }
        assert_eq!(RoundTrips::default().distribution(), None);
        let mut one = RoundTrips::default();
        one.on_sample(Span::from_micros(12_345));
        let one = one.distribution().expect("a sample");
        assert_eq!((one.p50, one.p99, one.max), (12.345, 12.345, 12.345));
    }
}
