//! The key of a run.

use lasthop_scenario::Scenario;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::fmt;

/// The name of a run in a store. Its text has 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key([u8; 32]);

/// Whole numbers up to this are equal to a `f64`.
const EXACT: f64 = 9_007_199_254_740_992.0;

impl Key {
    /// The key of this scenario, computed by this model (`lasthop_version::model`).
    ///
    /// It covers every key of the scenario, defaults and seed included, but not `name`, which changes nothing. Nor does
    /// the order of keys, or whether a number is written as 4 or 4.0. `None` if the run depends on programs of the user,
    /// which may change: such runs are not stored.
    pub fn of(scenario: &Scenario, model: &str) -> Option<Self> {
        if scenario.asks_programs() {
            return None;
        }
        let mut value = scenario.to_json();
        value.as_object_mut().expect("a scenario is a table").remove("name");
        let mut text = format!("{model}\n");
        write(&value, &mut text);
        Some(Self(Sha256::digest(text).into()))
    }

    /// The key of this text.
    pub fn parse(text: &str) -> Option<Self> {
        let is_key = text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let byte = |place: usize| u8::from_str_radix(&text[2 * place..2 * place + 2], 16).ok();
        let bytes: Option<Vec<u8>> = if is_key { (0..32).map(byte).collect() } else { None };
        bytes?.try_into().ok().map(Self)
    }

    pub(super) const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// JSON with its keys in order and one spelling of each number.
fn write(value: &Value, text: &mut String) {
    match value {
        Value::Object(table) => {
            let mut keys: Vec<&String> = table.keys().collect();
            keys.sort_unstable();
            text.push('{');
            for key in keys {
                text.push_str(&Value::from(key.as_str()).to_string());
                text.push(':');
                write(&table[key], text);
                text.push(',');
            }
            text.push('}');
        }
        Value::Array(elements) => {
            text.push('[');
            for element in elements {
                write(element, text);
                text.push(',');
            }
            text.push(']');
        }
        Value::Number(number) => match number.as_f64() {
            Some(near) if near.abs() <= EXACT => text.push_str(&near.to_string()),
            _ => text.push_str(&number.to_string()),
        },
        Value::Null | Value::Bool(_) | Value::String(_) => text.push_str(&value.to_string()),
    }
}
