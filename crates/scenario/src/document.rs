//! The text of a scenario, read, overridden, checked against the keys and completed with what was left out.

use crate::error::{KeyError, ScenarioError};
use crate::key_path::{Path, Step, line_of, line_of_key, nearest, shown, type_name};
use crate::keys::{Kind, Preset, Section};
use crate::overrides::Override;
use lasthop_laws::LawName;
use toml::{Table, Value};

/// A checked scenario: every key of it is known, has a value that the format accepts, and those left out are filled in.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) table: Table,
    /// What the file and the overrides have given, as they have given it; empty where there is no text.
    pub(crate) given: Table,
    source: Source,
}

/// Where keys came from, for the messages.
#[derive(Debug)]
struct Source {
    file: String,
    text: String,
    overrides: Vec<Override>,
}

impl Document {
    /// Reads and checks. `file` is what messages call the text.
    pub(crate) fn read(file: &str, text: &str, overrides: &[Override]) -> Result<Self, ScenarioError> {
        let table: Table = text.parse().map_err(|error: toml::de::Error| ScenarioError::Syntax {
            file: file.to_owned(),
            line: error.span().map_or(1, |span| line_of(text, span.start)),
            message: error.message().to_owned(),
        })?;
        Self::check(Source { file: file.to_owned(), text: text.to_owned(), overrides: overrides.to_vec() }, table)
    }

    /// Checks a table that has no text, such as the scenario inside a result.
    pub(crate) fn from_table(file: &str, table: Table) -> Result<Self, ScenarioError> {
        Self::check(Source { file: file.to_owned(), text: String::new(), overrides: Vec::new() }, table)
    }

    /// An error about a key of this document.
    pub(crate) fn error(&self, key: &Path, problem: String, accepted: impl Into<String>) -> ScenarioError {
        self.source.error(key, problem, accepted.into(), None)
    }

    /// The same, with what the writer may have meant.
    pub(crate) fn error_with_hint(
        &self,
        key: &Path,
        problem: String,
        accepted: String,
        did_you_mean: Option<String>,
    ) -> ScenarioError {
        self.source.error(key, problem, accepted, did_you_mean)
    }

    fn check(source: Source, mut table: Table) -> Result<Self, ScenarioError> {
        for change in &source.overrides {
            apply(&source, &mut table, change)?;
        }
        let given = if source.text.is_empty() { Table::new() } else { table.clone() };
        let table = complete(&source, Section::Top, table, &Path::default(), "2012")?;
        Ok(Self { table, given, source })
    }

    /// The override that gave the key its value, if one did.
    pub(crate) fn override_of(&self, key: &Path) -> Option<&Override> {
        self.source.override_of(key)
    }

    /// What messages call the text, and the line of the key in it.
    pub(crate) fn line_of(&self, key: &Path) -> (&str, Option<usize>) {
        (&self.source.file, self.source.line(key))
    }
}

impl Source {
    fn error(&self, key: &Path, problem: String, accepted: String, did_you_mean: Option<String>) -> ScenarioError {
        let set = self.override_of(key);
        let line = if set.is_some() { None } else { self.line(key) };
        // A table that the file lacks was made by an override of something in it.
        let into = || self.overrides.iter().rev().find(|change| line.is_none() && change.reaches_into(key));
        let set_by = set.or_else(into).map(ToString::to_string);
        KeyError { file: self.file.clone(), line, set_by, key: key.to_string(), problem, accepted, did_you_mean }.into()
    }

    fn override_of(&self, key: &Path) -> Option<&Override> {
        self.overrides.iter().rev().find(|change| change.touches(key))
    }

    fn unknown(&self, key: &Path, name: &str, section: Section) -> ScenarioError {
        let names = section.names();
        let meant = nearest(name, &names).map(str::to_owned);
        self.error(key, "unknown key".into(), names.join(", "), meant)
    }

    fn line(&self, key: &Path) -> Option<usize> {
        line_of_key(&self.text, key)
    }
}

impl Override {
    /// Whether this override gave `key` its value.
    fn touches(&self, key: &Path) -> bool {
        self.path.len() == key.0.len() && self.begins_with(key)
    }

    /// Whether this override gave something inside the table `key` its value.
    fn reaches_into(&self, key: &Path) -> bool {
        self.path.len() > key.0.len() && self.begins_with(key)
    }

    fn begins_with(&self, key: &Path) -> bool {
        self.path.iter().zip(&key.0).all(|(mine, theirs)| match mine {
            Step::All => matches!(theirs, Step::Index(_) | Step::All),
            mine => mine == theirs,
        })
    }
}

fn apply(source: &Source, table: &mut Table, change: &Override) -> Result<(), ScenarioError> {
    apply_at(source, Section::Top, table, change, &change.path, &Path::default())
}

fn apply_at(
    source: &Source,
    section: Section,
    table: &mut Table,
    change: &Override,
    rest: &[Step],
    path: &Path,
) -> Result<(), ScenarioError> {
    let [Step::Key(name), rest @ ..] = rest else {
        let accepted = format!("one of its keys: {}", section.names().join(", "));
        return Err(override_error(change, &format!("{path} is a table, not a value; {accepted}")));
    };
    let here = path.key(name);
    if let Some(key) = section.key(name) {
        if !rest.is_empty() {
            return Err(override_error(change, &format!("{here} holds a value and has no parts")));
        }
        let as_text = key.kind.takes_text() && !change.value.is_str();
        let value = if as_text { Value::String(change.raw.clone()) } else { change.value.clone() };
        table.insert(name.clone(), value);
        return Ok(());
    }
    let Some(child) = section.child(name) else {
        let meant = nearest(name, &section.names()).map(|name| format!("; did you mean {}?", path.key(name)));
        let message =
            format!("unknown key {here}{}; accepted: {}", meant.unwrap_or_default(), section.names().join(", "));
        return Err(override_error(change, &message));
    };
    if !child.repeated {
        let inner = table.entry(child.name).or_insert_with(|| Value::Table(Table::new()));
        let inner = inner.as_table_mut().ok_or_else(|| wrong_shape(source, &here, child.repeated))?;
        return apply_at(source, child.section, inner, change, rest, &here);
    }
    if child.section == Section::Link && !table.contains_key(child.name) {
        return Err(override_error(change, "the scenario has no [[links]]; accepted: keys of its [access] and [path]"));
    }
    // A block without flows has one: the same that the reader fills in.
    let blocks = table.entry(child.name).or_insert_with(|| Value::Array(vec![Value::Table(Table::new())]));
    let blocks = blocks.as_array_mut().ok_or_else(|| wrong_shape(source, &here, child.repeated))?;
    let count = blocks.len();
    let (chosen, rest) = match rest {
        [Step::All, rest @ ..] => (0..count, rest),
        [Step::Index(index), rest @ ..] if *index < count => (*index..index + 1, rest),
        [Step::Index(index), ..] => {
            let message = format!("there is no {here}[{index}]: the scenario has {}", counted(count, &here));
            return Err(override_error(change, &message));
        }
        _ => {
            let message = format!("{here} may be there several times; accepted: {here}.0.KEY, or {here}.*.KEY for all");
            return Err(override_error(change, &message));
        }
    };
    for index in chosen {
        let here = here.index(index);
        let inner = blocks[index].as_table_mut().ok_or_else(|| wrong_shape(source, &here, false))?;
        apply_at(source, child.section, inner, change, rest, &here)?;
    }
    Ok(())
}

fn counted(count: usize, path: &Path) -> String {
    if count == 1 {
        format!("one block, {path}[0]")
    } else {
        format!("{count} blocks, {path}[0] to {path}[{}]", count - 1)
    }
}

fn override_error(change: &Override, message: &str) -> ScenarioError {
    ScenarioError::Override { text: change.to_string(), message: message.to_owned() }
}

fn wrong_shape(source: &Source, path: &Path, repeated: bool) -> ScenarioError {
    let accepted = if repeated { format!("blocks that begin with [[{path}]]") } else { format!("a table [{path}]") };
    let problem = if repeated { "is no list of blocks" } else { "is not a table" };
    source.error(path, problem.into(), accepted, None)
}

/// Checks one table and fills in what was left out.
///
/// `era` is that of the host that the table belongs to.
fn complete(
    source: &Source,
    section: Section,
    mut given: Table,
    path: &Path,
    era: &str,
) -> Result<Table, ScenarioError> {
    if let Some(unknown) = given.keys().find(|name| !section.names().contains(&name.as_str())) {
        return Err(source.unknown(&path.key(unknown), unknown, section));
    }
    let mut whole = Table::new();
    let own_era = given.get("era").and_then(Value::as_str).map(str::to_owned);
    let era = own_era.as_deref().unwrap_or(era);
    let links = section == Section::Top && given.contains_key("links");
    if let Some(other) = ["access", "path"].into_iter().find(|other| links && given.contains_key(*other)) {
        let accepted = "[[links]] alone, or [access] and [path] without them";
        return Err(source.error(&path.key(other), "cannot be beside [[links]]".into(), accepted.into(), None));
    }
    for key in section.keys() {
        let value = match given.remove(key.name) {
            Some(value) => Some(checked(source, &key.kind, value, &path.key(key.name))?),
            None if matches!(key.default, Preset::Required) => {
                return Err(source.error(&path.key(key.name), "is not there".into(), key.kind.accepted(), None));
            }
            None => key.default.value(era),
        };
        if let Some(value) = value {
            whole.insert(key.name.to_owned(), value);
        }
    }
    for child in section.children() {
        match child.section {
            Section::Access | Section::Path if links => continue,
            Section::Link if !links => continue,
            Section::Change | Section::LastLink if !given.contains_key(child.name) => continue,
            // What another law is to be told may stand there, so that laws can be compared.
            Section::Law(law) if !given.contains_key(child.name) && !is_chosen(&whole, law) => continue,
            _ => {}
        }
        let here = path.key(child.name);
        let value = match (given.remove(child.name), child.repeated) {
            (Some(Value::Table(table)), false) => Value::Table(complete(source, child.section, table, &here, era)?),
            (None, false) => Value::Table(complete(source, child.section, Table::new(), &here, era)?),
            (Some(Value::Array(blocks)), true) if !blocks.is_empty() => {
                Value::Array(complete_all(source, child.section, blocks, &here, era)?)
            }
            // One bulk upload from each host is what a block without flows means; without hosts nothing happens at all.
            (None, true) if child.section == Section::Flow => {
                Value::Array(complete_all(source, child.section, vec![Value::Table(Table::new())], &here, era)?)
            }
            (None | Some(Value::Array(_)), true) => {
                let accepted = format!("at least one block [[{here}]]");
                return Err(source.error(&here, "there is none".into(), accepted, None));
            }
            (Some(_), repeated) => return Err(wrong_shape(source, &here, repeated)),
        };
        whole.insert(child.name.to_owned(), value);
    }
    Ok(whole)
}

/// Whether a host, whose own keys are checked, has this law.
fn is_chosen(host: &Table, law: LawName) -> bool {
    host.get("congestion_control").and_then(Value::as_str) == Some(law.as_str())
}

fn complete_all(
    source: &Source,
    section: Section,
    blocks: Vec<Value>,
    path: &Path,
    era: &str,
) -> Result<Vec<Value>, ScenarioError> {
    let mut whole = Vec::with_capacity(blocks.len());
    for (index, block) in blocks.into_iter().enumerate() {
        let here = path.index(index);
        let Value::Table(table) = block else { return Err(wrong_shape(source, &here, false)) };
        whole.push(Value::Table(complete(source, section, table, &here, era)?));
    }
    Ok(whole)
}

/// The value in the one form that the typed scenario reads: numbers as floats, whole numbers as integers.
fn checked(source: &Source, kind: &Kind, value: Value, path: &Path) -> Result<Value, ScenarioError> {
    let fail = |problem: &str| {
        source.error(path, format!("{} {problem}", shown(&value)), kind.accepted(), misspelt(kind, &value))
    };
    match (kind, &value) {
        (Kind::Text, Value::String(text)) => {
            let length = text.chars().count();
            if (1..=200).contains(&length) { Ok(value) } else { Err(fail(&format!("has {length} characters"))) }
        }
        (Kind::Name, Value::String(name)) => {
            let legal = |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit() || b"_-".contains(&letter);
            if (1..=15).contains(&name.len()) && name.bytes().all(legal) {
                Ok(value)
            } else {
                Err(fail("cannot be the name of a congestion control"))
            }
        }
        (Kind::Choice(words), Value::String(word)) => {
            if words.contains(&word.as_str()) {
                Ok(value)
            } else {
                Err(fail("is not one of the words"))
            }
        }
        (Kind::Integer { from, to }, Value::Integer(number)) => {
            if (from..=to).contains(&number) {
                Ok(value)
            } else {
                Err(fail("is out of range"))
            }
        }
        (Kind::Number { from, to, above }, Value::Integer(_) | Value::Float(_)) => {
            let number = as_number(&value);
            let inside = (*from..=*to).contains(&number) && !(*above && number == *from);
            if inside { Ok(Value::Float(number)) } else { Err(fail("is out of range")) }
        }
        (Kind::Range { to }, Value::Integer(_) | Value::Float(_)) => {
            let number = as_number(&value);
            if (0.0..=*to).contains(&number) { Ok(Value::Float(number)) } else { Err(fail("is out of range")) }
        }
        (Kind::Range { to }, Value::Array(ends)) => {
            let [from, until] = ends.as_slice() else { return Err(fail("is not a range of two numbers")) };
            if ![from, until].iter().all(|end| end.is_integer() || end.is_float()) {
                return Err(fail("is not a range of two numbers"));
            }
            let (from, until) = (as_number(from), as_number(until));
            if ![from, until].iter().all(|end| (0.0..=*to).contains(end)) {
                return Err(fail("is out of range"));
            }
            if from > until {
                return Err(fail("ends before it begins"));
            }
            Ok(Value::Array(vec![Value::Float(from), Value::Float(until)]))
        }
        (Kind::Flag, Value::Boolean(_)) => Ok(value),
        (Kind::Node, Value::String(name)) => {
            if is_node_name(name) {
                Ok(value)
            } else {
                Err(fail("cannot be the name of a node"))
            }
        }
        (Kind::Ends, Value::Array(ends)) => match ends.as_slice() {
            [Value::String(one), Value::String(other)] if is_node_name(one) && is_node_name(other) => Ok(value),
            _ => Err(fail("is no list of two names")),
        },
        (Kind::Integers { from, to, columns }, Value::Array(rows)) => {
            let inside = |value: &Value| value.as_integer().is_some_and(|number| (*from..=*to).contains(&number));
            let row = |value: &Value| match value.as_array() {
                Some(numbers) => numbers.len() == *columns && numbers.iter().all(inside),
                None => *columns == 1 && inside(value),
            };
            if rows.len() <= 64 && rows.iter().all(row) { Ok(value) } else { Err(fail("is no such list")) }
        }
        (_, wrong) => Err(fail(&format!("is {}", type_name(wrong)))),
    }
}

fn is_node_name(name: &str) -> bool {
    let legal = |letter: u8| letter.is_ascii_alphanumeric() || b"_-.#".contains(&letter);
    (1..=32).contains(&name.len()) && name.bytes().all(legal)
}

fn misspelt(kind: &Kind, value: &Value) -> Option<String> {
    match (kind, value) {
        (Kind::Choice(words), Value::String(word)) => nearest(word, words).map(|word| format!("\"{word}\"")),
        _ => None,
    }
}

fn as_number(value: &Value) -> f64 {
    match value {
        Value::Integer(number) => *number as f64,
        Value::Float(number) => *number,
        _ => f64::NAN,
    }
}
