//! Points in time and the spans between them.

use crate::rate::{About, digits};
use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

/// A point on the time line of one run, in nanoseconds since the run's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

/// A span of time in nanoseconds; never negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

impl Time {
    /// The start of the run.
    pub const ZERO: Self = Self(0);
    /// Later than anything that can happen.
    pub const MAX: Self = Self(u64::MAX);

    /// The point `nanos` nanoseconds after the start of the run.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the start of the run.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the start of the run.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The span since `earlier`; [`Span::ZERO`] if `earlier` is in fact later.
    pub const fn saturating_since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// This point moved by `span`; [`Time::MAX`] where that is out of range.
    pub const fn saturating_add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl Span {
    /// The empty span.
    pub const ZERO: Self = Self(0);
    /// Longer than any run.
    pub const MAX: Self = Self(u64::MAX);

    /// `nanos` nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// `micros` microseconds. Panics past 584 years.
    pub const fn from_micros(micros: u64) -> Self {
        Self(scaled(micros, 1_000))
    }

    /// `millis` milliseconds. Panics past 584 years.
    pub const fn from_millis(millis: u64) -> Self {
        Self(scaled(millis, 1_000_000))
    }

    /// `secs` seconds. Panics past 584 years.
    pub const fn from_secs(secs: u64) -> Self {
        Self(scaled(secs, 1_000_000_000))
    }

    /// `secs` seconds, rounded to the nanosecond.
    ///
    /// # Panics
    /// If `secs` is negative, not a number, or past 584 years.
    pub fn from_secs_f64(secs: f64) -> Self {
        let nanos = (secs * 1e9).round();
        assert!((0.0..u64::MAX as f64).contains(&nanos), "{secs} s is not a span of 0 to 2^64 ns");
        Self(nanos as u64)
    }

    /// Whole nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whole milliseconds, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// Whole microseconds, rounded down.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// Milliseconds.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// This span minus `other`; [`Span::ZERO`] if `other` is longer.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// This span divided by `least`, such as RTT / lowest RTT (hayakawa eqs. 1 and 5); `None` if `least` is zero.
    pub fn over(self, least: Self) -> Option<f64> {
        (!least.is_zero()).then(|| self.0 as f64 / least.0 as f64)
    }

    /// Whether the span is [`Self::ZERO`].
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

const fn scaled(count: u64, nanos_each: u64) -> u64 {
    match count.checked_mul(nanos_each) {
        Some(nanos) => nanos,
        None => panic!("a span past 584 years"),
    }
}

/// Panics for an operation whose result would leave the range. Not inlined, to keep the common path short.
#[cold]
#[inline(never)]
fn out_of_range(left: impl fmt::Display, between: &str, right: impl fmt::Display, problem: &str) -> ! {
    panic!("{left} {between} {right}{problem}")
}

impl Add<Span> for Time {
    type Output = Self;
    #[inline]
    fn add(self, span: Span) -> Self {
        match self.0.checked_add(span.0) {
            Some(nanos) => Self(nanos),
            None => out_of_range(self, "+", span, " leaves the time line"),
        }
    }
}

impl AddAssign<Span> for Time {
    #[inline]
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Sub<Span> for Time {
    type Output = Self;
    #[inline]
    fn sub(self, span: Span) -> Self {
        match self.0.checked_sub(span.0) {
            Some(nanos) => Self(nanos),
            None => out_of_range(self, "-", span, " is before the start of the run"),
        }
    }
}

impl Sub for Time {
    type Output = Span;
    #[inline]
    fn sub(self, earlier: Self) -> Span {
        match self.0.checked_sub(earlier.0) {
            Some(nanos) => Span(nanos),
            None => out_of_range(self, "is before", earlier, ""),
        }
    }
}

impl Add for Span {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        match self.0.checked_add(other.0) {
            Some(nanos) => Self(nanos),
            None => out_of_range(self, "+", other, " is past 584 years"),
        }
    }
}

impl AddAssign for Span {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Span {
    type Output = Self;
    #[inline]
    fn sub(self, other: Self) -> Self {
        match self.0.checked_sub(other.0) {
            Some(nanos) => Self(nanos),
            None => out_of_range(self, "-", other, " would be negative"),
        }
    }
}

impl SubAssign for Span {
    #[inline]
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Mul<u64> for Span {
    type Output = Self;
    #[inline]
    fn mul(self, count: u64) -> Self {
        match self.0.checked_mul(count) {
            Some(nanos) => Self(nanos),
            None => out_of_range(count, "×", self, " is past 584 years"),
        }
    }
}

impl Mul<f64> for Span {
    type Output = Self;
    /// Rounded to the nanosecond; [`Self::ZERO`] if `times` is negative or not a number, and [`Self::MAX`] where that is
    /// out of range.
    fn mul(self, times: f64) -> Self {
        Self((self.0 as f64 * times).round() as u64)
    }
}

impl Div<u64> for Span {
    type Output = Self;
    #[inline]
    fn div(self, parts: u64) -> Self {
        Self(self.0 / parts)
    }
}

impl std::iter::Sum for Span {
    fn sum<I: Iterator<Item = Self>>(spans: I) -> Self {
        spans.fold(Self::ZERO, |total, span| total + span)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.9} s", self.as_secs_f64())
    }
}

impl Span {
    /// In the unit that one would say.
    fn said(self) -> (f64, &'static str) {
        let nanos = self.0 as f64;
        match self.0 {
            0..10_000 => (nanos, "ns"),
            10_000..10_000_000 => (nanos / 1e3, "us"),
            10_000_000..10_000_000_000 => (nanos / 1e6, "ms"),
            _ => (nanos / 1e9, "s"),
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, unit) = self.said();
        write!(f, "{number} {unit}")
    }
}

impl fmt::Display for About<Span> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, unit) = self.0.said();
        write!(f, "{} {unit}", digits(number, 4))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_and_times_keep_their_units() {
        assert_eq!(Span::from_micros(9).as_nanos(), 9_000);
        assert_eq!(Span::from_millis(256).as_secs_f64(), 0.256);
        assert_eq!(Span::from_secs_f64(0.3), Span::from_millis(300));
        assert_eq!(Time::ZERO + Span::from_secs(2) - Span::from_secs(1), Time::from_nanos(1_000_000_000));
        assert_eq!(Time::from_nanos(5).saturating_since(Time::from_nanos(9)), Span::ZERO);
    }

    #[test]
    fn a_span_prints_in_the_unit_one_would_say() {
        assert_eq!(Span::from_nanos(500).to_string(), "500 ns");
        assert_eq!(Span::from_micros(28).to_string(), "28 us");
        assert_eq!(Span::from_millis(256).to_string(), "256 ms");
        assert_eq!(Span::from_secs(60).to_string(), "60 s");
        assert_eq!(Span::from_nanos(271_338_421).to_string(), "271.338421 ms");
        assert_eq!(About(Span::from_nanos(271_338_421)).to_string(), "271.3 ms");
        assert_eq!(About(Span::from_millis(1500)).to_string(), "1500 ms");
    }

    #[test]
    #[should_panic(expected = "is before")]
    fn a_negative_span_is_a_broken_invariant() {
        let _ = Time::ZERO - Time::from_nanos(1);
    }

    #[test]
    #[should_panic(expected = "is not a span")]
    fn not_a_number_is_no_span() {
        let _ = Span::from_secs_f64(f64::NAN);
    }
}
