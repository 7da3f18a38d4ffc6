//! Amounts of data and how fast they move.

use crate::Span;
use std::fmt;
use std::ops::{Add, AddAssign, Mul, Sub};

/// An amount of data in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(u64);

/// A rate in bit/s; may be zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

impl Bytes {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// `bytes` bytes.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// `kib` kibibytes (1024 bytes). Panics past 2^64 bytes.
    pub const fn from_kib(kib: u64) -> Self {
        match kib.checked_mul(1024) {
            Some(bytes) => Self(bytes),
            None => panic!("more than 2^64 bytes"),
        }
    }

    /// The number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number of bits. Panics past 2^64 bits.
    pub const fn bits(self) -> u64 {
        match self.0.checked_mul(8) {
            Some(bits) => bits,
            None => panic!("more than 2^64 bits"),
        }
    }
}

impl Rate {
    /// No data moves.
    pub const ZERO: Self = Self(0);

    /// `bps` bit/s.
    pub const fn from_bps(bps: u64) -> Self {
        Self(bps)
    }

    /// `mbps` Mbit/s (10^6 bit/s), rounded to the bit/s.
    ///
    /// # Panics
    /// If `mbps` is negative, not a number, or past 2^64 bit/s.
    pub fn from_mbps(mbps: f64) -> Self {
        let bps = (mbps * 1e6).round();
        assert!((0.0..u64::MAX as f64).contains(&bps), "{mbps} Mb/s is not a rate of 0 to 2^64 bit/s");
        Self(bps as u64)
    }

    /// The rate of `data` in `span`; zero for an empty span.
    pub fn over(data: Bytes, span: Span) -> Self {
        if span.is_zero() {
            return Self::ZERO;
        }
        let bps = u128::from(data.0) * 8 * 1_000_000_000 / u128::from(span.as_nanos());
        Self(u64::try_from(bps).unwrap_or(u64::MAX))
    }

    /// The rate in bit/s.
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// The rate in Mbit/s.
    pub fn as_mbps(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The time that `data` takes at this rate, rounded up to the nanosecond; [`Span::MAX`] at rate zero.
    #[inline]
    pub fn transmission_time(self, data: Bytes) -> Span {
        if self.0 == 0 {
            return Span::MAX;
        }
        // Amounts up to 2.3 GB fit into 64 bits.
        if let Some(bits_times_1e9) = data.0.checked_mul(8 * 1_000_000_000) {
            return Span::from_nanos(bits_times_1e9.div_ceil(self.0));
        }
        let nanos = (u128::from(data.0) * 8 * 1_000_000_000).div_ceil(u128::from(self.0));
        u64::try_from(nanos).map_or(Span::MAX, Span::from_nanos)
    }
}

impl Add for Bytes {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0.checked_add(other.0).unwrap_or_else(|| panic!("{self} + {other} is past 2^64 bytes")))
    }
}

impl AddAssign for Bytes {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Bytes {
    type Output = Self;
    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(self.0.checked_sub(other.0).unwrap_or_else(|| panic!("{self} - {other} would be negative")))
    }
}

impl std::iter::Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, |total, amount| total + amount)
    }
}

impl Mul<f64> for Rate {
    type Output = Self;
    /// Rounded to the bit/s; [`Self::ZERO`] if `times` is negative or not a number, and at most 2^64 − 1 bit/s.
    fn mul(self, times: f64) -> Self {
        Self((self.0 as f64 * times).round() as u64)
    }
}

impl Mul<Span> for Rate {
    type Output = Bytes;
    /// What moves at this rate in `span`, in whole bytes, rounded down; at most 2^64 − 1 bytes.
    fn mul(self, span: Span) -> Bytes {
        let bytes = u128::from(self.0) * u128::from(span.as_nanos()) / 8_000_000_000;
        Bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
    }
}

impl Add for Rate {
    type Output = Self;
    /// At most 2^64 − 1 bit/s.
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl std::iter::Sum for Rate {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} B", self.0)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} Mb/s", self.as_mbps())
    }
}

/// A rate or a span that was measured or computed, as people are told it: rounded to three or four digits. Without it both
/// print exactly, as what a user has typed must.
#[derive(Clone, Copy, Debug)]
pub struct About<T>(pub T);

impl fmt::Display for About<Rate> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.0 {
            1..1_000 => write!(f, "{} bit/s", self.0.0),
            0..999_500_000 => write!(f, "{} Mb/s", digits(self.0.as_mbps(), 3)),
            _ => write!(f, "{} Gb/s", digits(self.0.as_mbps() / 1e3, 3)),
        }
    }
}

/// A number rounded to so many digits, of which none before the point is lost, without zeros at its end.
pub(crate) fn digits(number: f64, digits: i32) -> String {
    let scientific = format!("{number:e}");
    let exponent = scientific.split_once('e').and_then(|(_, exponent)| exponent.parse().ok());
    let before = exponent.unwrap_or(0) + 1;
    let decimals = (digits - before).max(0) as usize;
    let said = format!("{number:.decimals$}");
    if decimals == 0 { said } else { said.trim_end_matches('0').trim_end_matches('.').to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_frame_at_a_gigabit_takes_twelve_microseconds() {
        assert_eq!(Rate::from_mbps(1000.0).transmission_time(Bytes::new(1500)), Span::from_micros(12));
    }

    #[test]
    fn a_rate_is_told_with_three_digits_and_prints_exactly() {
        let said = |bps| About(Rate::from_bps(bps)).to_string();
        assert_eq!(Rate::from_bps(4_740_179).to_string(), "4.740179 Mb/s");
        assert_eq!(["0 Mb/s", "3 bit/s", "0.032 Mb/s"], [0, 3, 32_000].map(said).each_ref().map(String::as_str));
        assert_eq!(["4.74 Mb/s", "6 Mb/s"], [4_740_179, 6_000_000].map(said).each_ref().map(String::as_str));
        assert_eq!(["24.7 Mb/s", "100 Mb/s"], [24_700_001, 99_999_999].map(said).each_ref().map(String::as_str));
        assert_eq!(["1 Gb/s", "1.23 Gb/s"], [999_999_999, 1_234_567_890].map(said).each_ref().map(String::as_str));
        assert_eq!(said(10_000_000_000), "10 Gb/s");
    }

    #[test]
    fn a_transmission_time_is_never_rounded_down() {
        // 1 byte at 3 bit/s: 8/3 s = 2.666666666(6) s.
        assert_eq!(Rate::from_bps(3).transmission_time(Bytes::new(1)), Span::from_nanos(2_666_666_667));
        assert_eq!(Rate::ZERO.transmission_time(Bytes::new(1)), Span::MAX);
        // Both sides of 2^64 / (8 × 10^9) = 2305843009.2 bytes: 8 × 2305843009 / 10^6 s = 18446.744072 s, then 8 us
        // more.
        let megabit = Rate::from_mbps(1.0);
        assert_eq!(megabit.transmission_time(Bytes::new(2_305_843_009)), Span::from_micros(18_446_744_072));
        assert_eq!(megabit.transmission_time(Bytes::new(2_305_843_010)), Span::from_micros(18_446_744_080));
    }

    #[test]
    fn a_rate_is_data_over_time() {
        assert_eq!(Rate::over(Bytes::new(1_250_000), Span::from_secs(1)), Rate::from_mbps(10.0));
        assert_eq!(Rate::over(Bytes::new(1), Span::ZERO), Rate::ZERO);
    }
}
