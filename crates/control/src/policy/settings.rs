//! The numbers that a policy may be given, and what is accepted.

use super::{Fixed, Formula, Nothing, Policy};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Which policy decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyName {
    /// Bounds nothing.
    #[default]
    None,
    /// A constant upper limit per host.
    Fixed,
    /// The formula of hayakawa.
    Formula,
}

/// Which RTT the formula takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RttReading {
    /// The connection's smoothed RTT at the tick: what hayakawa eq. 2 prints.
    #[default]
    Current,
    /// The lowest RTT seen on the connection: asks for no standing queue.
    Minimum,
}

/// What a policy is built from. Each key has a default; those of `formula` are the paper's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PolicySettings {
    /// Which policy decides.
    pub policy: PolicyName,
    /// `fixed`: the upper limit of the whole host, split over its busy connections. Required there, 1 to 1,000,000.
    pub bound_segments: Option<u32>,
    /// The lower limit of each connection's window, and the floor under every upper limit. 1 to 65,535.
    pub minimum_segments: u32,
    /// `formula`: control of a connection is enabled when its ratio exceeds this. 1 or more.
    pub enable_ratio: f64,
    /// `formula`: while control is enabled, a ratio above this cuts the window to the minimum. 1 or more.
    pub cut_ratio: f64,
    /// `formula`: control is disabled again when the ratio falls below this. 1 up to `enable_ratio`, or absent: control
    /// lasts until the connection ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release_ratio: Option<f64>,
    /// `formula`: how the bandwidth falls with the number of terminals (hayakawa eq. 4). −2 to 0.
    pub exponent: f64,
    /// `formula`: the goodput that one terminal reaches alone, in Mb/s. Above 0, at most 100,000.
    pub bandwidth_max_mbps: f64,
    /// `formula`: which RTT the window is computed from.
    pub rtt: RttReading,
    /// `formula`: what counts as one segment, in bytes of IP packet. 64 to 65,535.
    pub segment_bytes: u32,
    /// `formula`: a share is never computed for more terminals than this, whatever the beacons say. 1 to 1,024.
    pub maximum_terminals: u32,
}

/// A setting that is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{key}` = {value} is not accepted: it must be {accepted}")]
pub struct SettingsError {
    /// The key, one of [`PolicySettings::KEYS`].
    pub key: &'static str,
    /// The value that was given.
    pub value: String,
    /// What would be accepted.
    pub accepted: String,
}

impl PolicyName {
    /// Every policy there is.
    pub const ALL: &'static [Self] = &[Self::None, Self::Fixed, Self::Formula];

    /// The name as it is written in a scenario or a configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Fixed => "fixed",
            Self::Formula => "formula",
        }
    }
}

impl fmt::Display for PolicyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for PolicyName {
    type Err = SettingsError;
    fn from_str(name: &str) -> Result<Self, SettingsError> {
        Self::ALL.iter().copied().find(|policy| policy.as_str() == name).ok_or_else(|| SettingsError {
            key: "policy",
            value: format!("\"{name}\""),
            accepted: Self::ALL.iter().map(|policy| policy.as_str()).collect::<Vec<_>>().join(", "),
        })
    }
}

impl Default for PolicySettings {
    fn default() -> Self {
        Self {
            policy: PolicyName::None,
            bound_segments: None,
            minimum_segments: 1,
            enable_ratio: 6.0,        // hayakawa §Proposed: "If ratio rtt is greater than 6.0"
            cut_ratio: 5.0,           // hayakawa §Proposed: "greater than 5.0 with the control enabled"
            release_ratio: None,      // hayakawa gives no end of the control
            exponent: -0.15,          // hayakawa eq. 4
            bandwidth_max_mbps: 19.0, // hayakawa §Evaluation: "BWmax is 19 Mbps in this environment"
            rtt: RttReading::Current, // hayakawa eq. 2
            segment_bytes: 1500,      // hayakawa eq. 2: "Segment size(1.5Kbyte)"
            maximum_terminals: 64,    // ours: bounds what forged beacons can do
        }
    }
}

impl PolicySettings {
    /// Every key, in the order of the fields.
    pub const KEYS: &'static [&'static str] = &[
        "policy",
        "bound_segments",
        "minimum_segments",
        "enable_ratio",
        "cut_ratio",
        "release_ratio",
        "exponent",
        "bandwidth_max_mbps",
        "rtt",
        "segment_bytes",
        "maximum_terminals",
    ];

    /// Whether every number lies in its range.
    ///
    /// # Errors
    /// The first setting that does not, with its key, its value and what is accepted.
    pub fn validate(&self) -> Result<(), SettingsError> {
        integer("minimum_segments", self.minimum_segments, 1, 65_535)?;
        match self.bound_segments {
            Some(segments) => integer("bound_segments", segments, self.minimum_segments, 1_000_000)?,
            None if self.policy == PolicyName::Fixed => {
                return Err(SettingsError {
                    key: "bound_segments",
                    value: "(absent)".to_owned(),
                    accepted: "given with policy \"fixed\", from `minimum_segments` to 1000000".to_owned(),
                });
            }
            None => {}
        }
        number("enable_ratio", self.enable_ratio, 1.0, 1e6)?;
        number("cut_ratio", self.cut_ratio, 1.0, 1e6)?;
        if let Some(ratio) = self.release_ratio {
            number("release_ratio", ratio, 1.0, self.enable_ratio)?;
        }
        number("exponent", self.exponent, -2.0, 0.0)?;
        number("bandwidth_max_mbps", self.bandwidth_max_mbps, 1e-3, 1e5)?;
        integer("segment_bytes", self.segment_bytes, 64, 65_535)?;
        integer("maximum_terminals", self.maximum_terminals, 1, 1024)
    }

    /// The policy with these settings.
    ///
    /// # Panics
    /// If the settings are not [valid](Self::validate).
    pub fn build(&self) -> Box<dyn Policy + Send> {
        if let Err(error) = self.validate() {
            panic!("a policy is built from valid settings only: {error}");
        }
        match self.policy {
            PolicyName::None => Box::new(Nothing),
            PolicyName::Fixed => Box::new(Fixed::new(self)),
            PolicyName::Formula => Box::new(Formula::new(self)),
        }
    }
}

fn integer(key: &'static str, value: u32, lowest: u32, highest: u32) -> Result<(), SettingsError> {
    if (lowest..=highest).contains(&value) {
        return Ok(());
    }
    Err(SettingsError { key, value: value.to_string(), accepted: format!("a whole number from {lowest} to {highest}") })
}

fn number(key: &'static str, value: f64, lowest: f64, highest: f64) -> Result<(), SettingsError> {
    if (lowest..=highest).contains(&value) {
        return Ok(());
    }
    Err(SettingsError { key, value: value.to_string(), accepted: format!("a number from {lowest} to {highest}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rejected(settings: &PolicySettings) -> SettingsError {
        settings.validate().expect_err("these settings must not be accepted")
    }

    #[test]
    fn the_defaults_are_valid_and_bound_nothing() {
        let settings = PolicySettings::default();
        assert_eq!(settings.validate(), Ok(()));
        assert_eq!(settings.build().name(), "none");
    }

    #[test]
    fn every_field_has_its_key_and_no_other_is_accepted() {
        let settings =
            PolicySettings { bound_segments: Some(64), release_ratio: Some(2.0), ..PolicySettings::default() };
        let json = serde_json::to_value(&settings).expect("settings are plain data");
        let mut keys: Vec<_> = json.as_object().expect("a table").keys().map(String::as_str).collect();
        let mut listed = PolicySettings::KEYS.to_vec();
        keys.sort_unstable();
        listed.sort_unstable();
        assert_eq!(keys, listed);
        let error = serde_json::from_str::<PolicySettings>(r#"{"enable_rato": 6}"#).expect_err("a misspelt key");
        assert!(error.to_string().contains("enable_rato"), "{error}");
        assert!(error.to_string().contains("enable_ratio"), "{error}");
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for name in PolicyName::ALL {
            assert_eq!(name.to_string().parse(), Ok(*name));
            assert_eq!(serde_json::to_value(name).expect("a name"), name.as_str());
        }
        let error = "fromula".parse::<PolicyName>().expect_err("a misspelt name");
        assert_eq!(error.to_string(), "`policy` = \"fromula\" is not accepted: it must be none, fixed, formula");
    }

    #[test]
    fn a_setting_out_of_range_is_named_with_its_value_and_what_is_accepted() {
        let error = rejected(&PolicySettings { exponent: 0.15, ..PolicySettings::default() });
        assert_eq!(error.to_string(), "`exponent` = 0.15 is not accepted: it must be a number from -2 to 0");
        let nonsense = [
            PolicySettings { minimum_segments: 0, ..PolicySettings::default() },
            PolicySettings { bound_segments: Some(0), ..PolicySettings::default() },
            PolicySettings { bound_segments: Some(4), minimum_segments: 5, ..PolicySettings::default() },
            PolicySettings { policy: PolicyName::Fixed, ..PolicySettings::default() },
            PolicySettings { enable_ratio: f64::NAN, ..PolicySettings::default() },
            PolicySettings { cut_ratio: 0.5, ..PolicySettings::default() },
            PolicySettings { release_ratio: Some(6.5), ..PolicySettings::default() },
            PolicySettings { bandwidth_max_mbps: 0.0, ..PolicySettings::default() },
            PolicySettings { bandwidth_max_mbps: f64::INFINITY, ..PolicySettings::default() },
            PolicySettings { segment_bytes: 0, ..PolicySettings::default() },
            PolicySettings { maximum_terminals: 0, ..PolicySettings::default() },
        ];
        for settings in nonsense {
            assert!(PolicySettings::KEYS.contains(&rejected(&settings).key));
        }
    }

    #[test]
    #[should_panic(expected = "valid settings only")]
    fn a_policy_is_not_built_from_nonsense() {
        let _ = PolicySettings { segment_bytes: 0, ..PolicySettings::default() }.build();
    }
}
