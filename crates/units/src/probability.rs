//! Probabilities.

use std::fmt;

/// A probability in 0..=1.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Probability(f64);

/// A number outside 0..=1, or not a number, given as a probability.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProbabilityError(f64);

impl Probability {
    /// Never.
    pub const ZERO: Self = Self(0.0);
    /// Always.
    pub const ONE: Self = Self(1.0);

    /// A probability of `value`.
    ///
    /// # Errors
    /// If `value` is not in 0..=1 or not a number.
    pub fn new(value: f64) -> Result<Self, ProbabilityError> {
        if (0.0..=1.0).contains(&value) { Ok(Self(value)) } else { Err(ProbabilityError(value)) }
    }

    /// The value, in 0..=1.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Probability {
    type Error = ProbabilityError;
    fn try_from(value: f64) -> Result<Self, ProbabilityError> {
        Self::new(value)
    }
}

impl fmt::Display for ProbabilityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not a probability: it must be between 0 and 1", self.0)
    }
}

impl std::error::Error for ProbabilityError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_zero_to_one_is_a_probability() {
        assert_eq!(Probability::new(0.25).map(Probability::get), Ok(0.25));
        assert!(Probability::new(-0.0).is_ok());
        for nonsense in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            assert!(Probability::new(nonsense).is_err(), "{nonsense}");
        }
    }
}
