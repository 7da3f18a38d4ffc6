//! A table that is being read: each key once, with its line when it is wrong.

use crate::keys::Section;
use crate::measure::Problem;
use crate::{Formula, StudyError};
use lasthop_keys::KeyError;
use lasthop_keys::{Path, line_of_key, shown, type_name};
use toml::{Table, Value};

/// Where keys came from, for the messages.
pub(crate) struct Source<'a> {
    pub(super) file: &'a str,
    pub(super) text: &'a str,
}

impl Source<'_> {
    pub(crate) fn error(&self, path: &Path, problem: Problem) -> StudyError {
        KeyError {
            file: self.file.to_owned(),
            line: line_of_key(self.text, path),
            set_by: None,
            key: path.to_string(),
            problem: problem.problem,
            accepted: problem.accepted,
            did_you_mean: problem.did_you_mean,
        }
        .into()
    }
}

/// One table that is being read.
pub(super) struct Entries<'a> {
    pub(super) source: &'a Source<'a>,
    section: Section,
    pub(super) path: Path,
    pub(super) table: Table,
}

impl<'a> Entries<'a> {
    pub(super) fn new(source: &'a Source<'a>, section: Section, path: Path, value: Value) -> Result<Self, StudyError> {
        let Value::Table(table) = value else {
            let accepted = format!("a table with the keys {}", section.names().join(", "));
            return Err(source.error(&path, Problem::new(format!("{} is no table", shown(&value)), accepted)));
        };
        let names = section.names();
        if let Some(unknown) = table.keys().find(|name| !names.contains(&name.as_str())) {
            return Err(source.error(&path.key(unknown), Problem::unknown("unknown key", unknown, &names)));
        }
        Ok(Self { source, section, path, table })
    }

    /// An error about a key, which says what the key takes.
    pub(super) fn error(&self, key: &str, problem: impl Into<String>) -> StudyError {
        self.source.error(&self.path.key(key), Problem::new(problem, self.section.key(key).takes))
    }

    pub(super) fn wrong(&self, key: &str, value: &Value) -> StudyError {
        self.error(key, format!("{} is {}", shown(value), type_name(value)))
    }

    pub(super) fn missing(&self, key: &str) -> StudyError {
        // There is no line of what is not there; that of its table says where to put it.
        KeyError {
            file: self.source.file.to_owned(),
            line: line_of_key(self.source.text, &self.path),
            set_by: None,
            key: self.path.key(key).to_string(),
            problem: "is not there".into(),
            accepted: self.section.key(key).takes.to_owned(),
            did_you_mean: None,
        }
        .into()
    }

    pub(super) fn text(&mut self, key: &str, most: usize) -> Result<Option<String>, StudyError> {
        let Some(value) = self.table.remove(key) else { return Ok(None) };
        match value {
            Value::String(text) => {
                let text = text.trim();
                let length = text.chars().count();
                if (1..=most).contains(&length) {
                    Ok(Some(text.to_owned()))
                } else {
                    Err(self.error(key, format!("has {length} characters")))
                }
            }
            value => Err(self.wrong(key, &value)),
        }
    }

    pub(super) fn needed_text(&mut self, key: &str, most: usize) -> Result<String, StudyError> {
        self.text(key, most)?.ok_or_else(|| self.missing(key))
    }

    /// An expression, compiled.
    pub(super) fn formula(&mut self, key: &str, most: usize) -> Result<Option<Formula>, StudyError> {
        let Some(text) = self.text(key, most)? else { return Ok(None) };
        Formula::new(text).map(Some).map_err(|problem| self.source.error(&self.path.key(key), problem))
    }

    pub(super) fn needed_formula(&mut self, key: &str) -> Result<Formula, StudyError> {
        self.formula(key, 1_000)?.ok_or_else(|| self.missing(key))
    }

    /// A word of these letters.
    pub(super) fn word(&mut self, key: &str, most: usize, legal: fn(char) -> bool) -> Result<String, StudyError> {
        let word = self.needed_text(key, 1_000)?;
        let fits = word.len() <= most
            && word.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || legal(letter));
        if fits { Ok(word) } else { Err(self.error(key, format!("\"{word}\" is no such word"))) }
    }

    pub(super) fn number(&mut self, key: &str) -> Result<Option<f64>, StudyError> {
        match self.table.remove(key) {
            None => Ok(None),
            Some(Value::Integer(number)) => Ok(Some(number as f64)),
            Some(Value::Float(number)) if number.is_finite() => Ok(Some(number)),
            Some(Value::Float(number)) => Err(self.error(key, format!("{number} is no finite number"))),
            Some(value) => Err(self.wrong(key, &value)),
        }
    }

    pub(super) fn whole(&mut self, key: &str, from: u64, to: u64) -> Result<Option<u64>, StudyError> {
        match self.table.remove(key) {
            None => Ok(None),
            Some(Value::Integer(number)) => match u64::try_from(number) {
                Ok(number) if (from..=to).contains(&number) => Ok(Some(number)),
                _ => Err(self.error(key, format!("{number} is out of range"))),
            },
            Some(value) => Err(self.wrong(key, &value)),
        }
    }

    pub(super) fn flag(&mut self, key: &str) -> Result<bool, StudyError> {
        match self.table.remove(key) {
            None => Ok(false),
            Some(Value::Boolean(flag)) => Ok(flag),
            Some(value) => Err(self.wrong(key, &value)),
        }
    }

    pub(super) fn list(&mut self, key: &str) -> Result<Option<Vec<Value>>, StudyError> {
        match self.table.remove(key) {
            None => Ok(None),
            Some(Value::Array(values)) if !values.is_empty() => Ok(Some(values)),
            Some(Value::Array(_)) => Err(self.error(key, "the list is empty")),
            Some(value) => Err(self.wrong(key, &value)),
        }
    }

    /// The blocks of this name, each with its section.
    pub(super) fn blocks(&mut self, key: &str, section: Section) -> Result<Vec<Self>, StudyError> {
        let path = self.path.key(key);
        let blocks = match self.table.remove(key) {
            None => return Ok(Vec::new()),
            Some(Value::Array(blocks)) => blocks,
            Some(value) => return Err(self.wrong(key, &value)),
        };
        let source = self.source;
        let entries = |(index, block)| Entries::new(source, section, path.index(index), block);
        blocks.into_iter().enumerate().map(entries).collect()
    }
}
