//! The parameters of each law: one table per law with names, units, ranges and defaults. Scenarios, the command line
//! and the guide read it. The order is that of the C struct.

use super::{LawName, c};

/// One parameter of a law.
#[derive(Debug)]
pub struct Parameter {
    /// In scenarios and on the command line; the unit is the suffix.
    pub name: &'static str,
    /// The law's encoding of the number.
    pub unit: Unit,
    /// Lowest accepted, in the unit of the name.
    pub from: f64,
    /// Highest accepted.
    pub to: f64,
    /// Its default.
    pub default: f64,
    /// Its effect and source, for the guide.
    pub meaning: &'static str,
}

/// The integer encoding of a number, as laws know whole numbers only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Milliseconds, in microseconds.
    Milliseconds,
    /// Seconds, in microseconds.
    Seconds,
    /// A probability, a factor or a ratio, in millionths.
    Ratio,
    /// A whole number.
    Count,
    /// 0 or 1.
    Flag,
}

impl Unit {
    pub(crate) const fn scale(self) -> f64 {
        match self {
            Self::Milliseconds => 1e3,
            Self::Seconds | Self::Ratio => 1e6,
            Self::Count | Self::Flag => 1.0,
        }
    }

    const fn is_whole(self) -> bool {
        matches!(self, Self::Count | Self::Flag)
    }
}

impl Parameter {
    /// The accepted values, in words.
    pub fn accepted(&self) -> String {
        match self.unit {
            Unit::Flag => "true, false".into(),
            Unit::Count => format!("a whole number from {} to {}", self.from, self.to),
            _ => format!("a number from {} to {}", self.from, self.to),
        }
    }
}

/// The parameters of one law, as it reads them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Parameters {
    values: [u32; Self::MAX],
}

/// A parameter that a law does not have, or cannot be set to.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ParameterError {
    /// The law has no parameter of this name.
    #[error("{law} has no parameter {name:?}; it has {known}")]
    Unknown {
        /// The law.
        law: LawName,
        /// The requested name.
        name: String,
        /// Its parameters.
        known: String,
    },
    /// The value is out of range.
    #[error("{law}.{name} = {value}: accepted is {accepted}")]
    OutOfRange {
        /// The law.
        law: LawName,
        /// The parameter.
        name: &'static str,
        /// The requested value.
        value: f64,
        /// The accepted values.
        accepted: String,
    },
}

impl Parameters {
    /// The most parameters of any law.
    pub const MAX: usize = c::LH_PARAMETERS_MAX as usize;

    /// The defaults of a law.
    pub fn of(law: LawName) -> Self {
        let mut values = [0; Self::MAX];
        for (value, parameter) in values.iter_mut().zip(law.parameters()) {
            *value = raw(parameter, parameter.default);
        }
        Self { values }
    }

    /// As the law reads them: the values of [`LawName::parameters`] in its order, then zeros.
    pub const fn values(&self) -> &[u32; Self::MAX] {
        &self.values
    }

    /// The inverse of [`values`](Self::values).
    pub const fn from_values(values: [u32; Self::MAX]) -> Self {
        Self { values }
    }

    pub(crate) fn raw(&self) -> &c::lh_parameters {
        zerocopy::transmute_ref!(&self.values)
    }

    /// A parameter in the unit of its name; flags are 0 and 1. `None`: `law` has no such parameter.
    pub fn get(&self, law: LawName, name: &str) -> Option<f64> {
        let at = law.parameters().iter().position(|parameter| parameter.name == name)?;
        Some(f64::from(self.values[at]) / law.parameters()[at].unit.scale())
    }

    /// Sets a parameter, in the unit of its name; flags are 0 and 1.
    ///
    /// # Errors
    /// If `law` has no such parameter, or does not accept this value; then nothing changes.
    pub fn set(&mut self, law: LawName, name: &str, value: f64) -> Result<(), ParameterError> {
        let Some(at) = law.parameters().iter().position(|parameter| parameter.name == name) else {
            let names: Vec<&str> = law.parameters().iter().map(|parameter| parameter.name).collect();
            let known = if names.is_empty() { "none".into() } else { names.join(", ") };
            return Err(ParameterError::Unknown { law, name: name.to_owned(), known });
        };
        let parameter = &law.parameters()[at];
        let whole = !parameter.unit.is_whole() || value.fract() == 0.0;
        if !(parameter.from..=parameter.to).contains(&value) || !whole {
            let accepted = parameter.accepted();
            return Err(ParameterError::OutOfRange { law, name: parameter.name, value, accepted });
        }
        self.values[at] = raw(parameter, value);
        Ok(())
    }
}

/// The ranges of the tables keep this far below 2^32.
fn raw(parameter: &Parameter, value: f64) -> u32 {
    (value * parameter.unit.scale()).round() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_in_its_range_and_read_back() {
        for law in LawName::ALL {
            let mut parameters = Parameters::of(law);
            assert!(law.parameters().len() <= Parameters::MAX);
            for parameter in law.parameters() {
                let read = parameters.get(law, parameter.name).expect("it is there");
                assert!((read - parameter.default).abs() < 1e-6, "{law}.{}", parameter.name);
                for end in [parameter.from, parameter.to] {
                    parameters.set(law, parameter.name, end).expect("the ends are accepted");
                    assert!((parameters.get(law, parameter.name).expect("it is there") - end).abs() < 1e-6);
                    assert!(end * parameter.unit.scale() <= f64::from(u32::MAX), "{law}.{}", parameter.name);
                }
                let before = parameters;
                for wrong in [parameter.from - 1.0, parameter.to * 2.0 + 1.0, f64::NAN] {
                    parameters.set(law, parameter.name, wrong).expect_err("out of range");
                }
                assert_eq!(parameters, before);
            }
        }
    }

    #[test]
    fn a_mistake_says_what_is_accepted() {
        let mut parameters = Parameters::of(LawName::Hd);
        let message = |result: Result<(), ParameterError>| result.expect_err("a mistake").to_string();
        assert_eq!(
            message(parameters.set(LawName::Hd, "alpha", 1.0)),
            r#"hd has no parameter "alpha"; it has queue_min_ms, queue_threshold_ms, max_probability, rtt_tick_ms"#
        );
        assert_eq!(
            message(parameters.set(LawName::Hd, "max_probability", 1.5)),
            "hd.max_probability = 1.5: accepted is a number from 0 to 1"
        );
        assert_eq!(
            message(parameters.set(LawName::NewReno, "alpha", 1.0)),
            r#"newreno has no parameter "alpha"; it has none"#
        );
    }
}
