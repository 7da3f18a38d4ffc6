//! As much of JSON Schema as our schemas use.
#![allow(unreachable_pub, dead_code)] // three crates have tests with it

use regex::Regex;
use serde_json::Value;

/// What the schema has against the value; empty where it accepts it.
pub fn violations(schema: &Value, value: &Value, at: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    for (keyword, rule) in schema.as_object().expect("a schema is an object") {
        let number = |rule: &Value| rule.as_f64().expect("a number");
        let length = || match value {
            Value::String(text) => text.chars().count() as f64,
            Value::Array(list) => list.len() as f64,
            _ => f64::NAN,
        };
        let holds = match keyword.as_str() {
            "$schema" | "title" | "description" | "default" => true,
            "type" => match rule.as_str().expect("one type") {
                "object" => value.is_object(),
                "array" => value.is_array(),
                "string" => value.is_string(),
                "boolean" => value.is_boolean(),
                "integer" => value.is_i64(),
                "number" => value.is_number(),
                other => panic!("no type {other}"),
            },
            "enum" => rule.as_array().expect("a list").contains(value),
            "minimum" => value.as_f64().is_none_or(|value| value >= number(rule)),
            "maximum" => value.as_f64().is_none_or(|value| value <= number(rule)),
            "exclusiveMinimum" => value.as_f64().is_none_or(|value| value > number(rule)),
            "minLength" | "minItems" => length().is_nan() || length() >= number(rule),
            "maxLength" | "maxItems" => length().is_nan() || length() <= number(rule),
            "pattern" => {
                let pattern = Regex::new(rule.as_str().expect("a pattern")).expect("a regular expression");
                value.as_str().is_none_or(|text| pattern.is_match(text))
            }
            "required" => {
                let names = rule.as_array().expect("a list").iter().map(|name| name.as_str().expect("a name"));
                value.as_object().is_none_or(|table| names.into_iter().all(|name| table.contains_key(name)))
            }
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    wrong.extend(violations(rule, item, &format!("{at}[{index}]")));
                }
                true
            }
            "oneOf" => {
                let one = |schema: &&Value| violations(schema, value, at).is_empty();
                rule.as_array().expect("a list").iter().filter(one).count() == 1
            }
            "properties" => {
                for (name, value) in value.as_object().into_iter().flatten() {
                    wrong.extend(
                        rule.get(name).into_iter().flat_map(|rule| violations(rule, value, &format!("{at}.{name}"))),
                    );
                }
                true
            }
            "additionalProperties" => {
                let known = |name: &String| schema["properties"].get(name).is_some();
                value.as_object().is_none_or(|table| table.keys().all(known))
            }
            other => panic!("no keyword {other}"),
        };
        if !holds {
            wrong.push(format!("{at}: {value} against {keyword}: {rule}"));
        }
    }
    wrong
}

/// A file of TOML as a value of JSON.
pub fn json(toml: &str) -> Value {
    let table: toml::Table = toml.parse().expect("TOML");
    serde_json::to_value(table).expect("JSON")
}
