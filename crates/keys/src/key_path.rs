//! The place of a key in a file, and the display of keys and values in messages.

use std::collections::HashMap;
use std::fmt::{self, Write as _};
use toml::Value;
use toml::de::{DeTable, DeValue};

/// A dotted key: `hosts[0].flows[0].start_s`.
#[derive(Clone, Debug, Default)]
pub struct Path(pub(crate) Vec<Step>);

impl Path {
    /// A key at the top of the file.
    pub fn top(key: &str) -> Self {
        Self::default().key(key)
    }

    /// A dotted key, as after `--set`, inside a table of the file.
    pub fn inside(table: &str, key: &str) -> Self {
        let steps = steps(key).into_iter().filter(|step| *step != Step::All);
        Self([Step::Key(table.to_owned())].into_iter().chain(steps).collect())
    }

    /// A dotted key, as in messages: `hosts[0].tcp.mss_bytes`.
    pub fn dotted(key: &str) -> Self {
        Self(steps(key))
    }

    /// A key of this table.
    pub fn key(&self, name: &str) -> Self {
        self.then(Step::Key(name.to_owned()))
    }

    /// An element of this list, counted from 0.
    pub fn index(&self, index: usize) -> Self {
        self.then(Step::Index(index))
    }

    fn then(&self, step: Step) -> Self {
        let mut path = self.clone();
        path.0.push(step);
        path
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.0.iter().enumerate() {
            match step {
                Step::Key(name) if at == 0 => f.write_str(name)?,
                Step::Key(name) => write!(f, ".{name}")?,
                Step::Index(index) => write!(f, "[{index}]")?,
                Step::All => f.write_str("[*]")?,
            }
        }
        Ok(())
    }
}

/// One step of a dotted key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Key(String),
    Index(usize),
    All,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(name) => f.write_str(name),
            Self::Index(index) => write!(f, "{index}"),
            Self::All => f.write_str("*"),
        }
    }
}

pub(crate) fn steps(key: &str) -> Vec<Step> {
    key.replace('[', ".")
        .replace(']', "")
        .split('.')
        .map(|part| match part.trim() {
            "*" => Step::All,
            part => part.parse().map_or_else(|_| Step::Key(part.to_owned()), Step::Index),
        })
        .collect()
}

/// The line of a key in a TOML text, counted from 1.
pub fn line_of_key(text: &str, key: &Path) -> Option<usize> {
    let root = DeTable::parse(text).ok()?;
    let mut table = Some(root.get_ref());
    let mut array = None;
    let mut at = None;
    for step in &key.0 {
        let value = match step {
            Step::Key(name) => {
                let (found, value) = table?.iter().find(|(found, _)| found.get_ref() == name)?;
                at = Some(found.span().start);
                value
            }
            Step::Index(index) => {
                let value = array.take().and_then(|array: &toml::de::DeArray<'_>| array.get(*index))?;
                at = Some(value.span().start);
                value
            }
            Step::All => return None,
        };
        table = value.get_ref().as_table();
        array = match value.get_ref() {
            DeValue::Array(array) => Some(array),
            _ => None,
        };
    }
    at.map(|at| line_of(text, at))
}

/// The line of each key and each block in a TOML text, by its path; none if it is no TOML.
pub(crate) fn lines_of_keys(text: &str) -> HashMap<String, usize> {
    let mut places = Vec::new();
    if let Ok(root) = DeTable::parse(text) {
        places_in(root.get_ref(), &Path::default(), &mut places);
    }
    places.sort_unstable_by_key(|(at, _)| *at);
    let (mut line, mut counted) = (1, 0);
    let number = |(at, key): (usize, String)| {
        line += text.as_bytes()[counted..at].iter().filter(|byte| **byte == b'\n').count();
        counted = at;
        (key, line)
    };
    places.into_iter().map(number).collect()
}

fn places_in(table: &DeTable<'_>, path: &Path, places: &mut Vec<(usize, String)>) {
    for (name, value) in table {
        let here = path.key(name.get_ref());
        places.push((name.span().start, here.to_string()));
        match value.get_ref() {
            DeValue::Table(table) => places_in(table, &here, places),
            DeValue::Array(blocks) => {
                for (index, block) in blocks.iter().enumerate() {
                    let here = here.index(index);
                    places.push((block.span().start, here.to_string()));
                    if let DeValue::Table(table) = block.get_ref() {
                        places_in(table, &here, places);
                    }
                }
            }
            _ => {}
        }
    }
}

/// The line of a byte of a text, counted from 1.
pub(crate) fn line_of(text: &str, at: usize) -> usize {
    1 + text.as_bytes()[..at.min(text.len())].iter().filter(|byte| **byte == b'\n').count()
}

/// The name that the writer probably meant.
pub fn nearest<'a>(name: &str, names: &[&'a str]) -> Option<&'a str> {
    crate::spelling::nearest_names(name, names, 1).first().copied()
}

/// A value's type, in words.
fn type_name(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "text",
        Value::Integer(_) => "a whole number",
        Value::Float(_) => "a number with a fraction",
        Value::Boolean(_) => "true or false",
        Value::Datetime(_) => "a date",
        Value::Array(_) => "a list",
        Value::Table(_) => "a table",
    }
}

/// The message that a value has a wrong type: `3 is a whole number`.
pub fn wrong_type(value: &Value) -> String {
    format!("{} is {}", shown(value), type_name(value))
}

/// A value as the writer typed it, shortened if long.
pub fn shown(value: &Value) -> String {
    let mut text = String::new();
    let _ = write!(text, "{value}");
    if text.chars().count() > 60 { text.chars().take(57).chain("...".chars()).collect() } else { text }
}
