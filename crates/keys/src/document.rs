//! A text of keys: read, overridden, checked against its section, and completed with defaults.

use crate::declare::{Keys, Part};
use crate::error::{DocumentError, KeyError, Problem};
use crate::key_path::{Path, Step, line_of, line_of_key, lines_of_keys, nearest};
use crate::overrides::Override;
use crate::section::{Child, Presence, Preset, Section};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use toml::{Table, Value};

/// A checked text: every key is known and has an accepted value, and defaults are filled in.
#[derive(Debug)]
pub struct Document {
    /// All keys.
    pub table: Table,
    /// The keys that the file or table and the overrides set, as written.
    pub(crate) given: Table,
    pub(crate) section: &'static Section,
    source: Arc<Source>,
}

/// Where the keys are from, for messages about them.
#[derive(Debug)]
pub struct Source {
    file: String,
    /// To which paths are relative.
    folder: Option<PathBuf>,
    text: String,
    overrides: Vec<Override>,
    /// The line of each key, once somebody asks for many.
    lines: OnceLock<HashMap<String, usize>>,
}

impl Document {
    /// Reads and checks. `file` is the name of the text in messages.
    ///
    /// # Errors
    /// If it is not TOML, or has an unknown key or a wrong value. The message names the line and the accepted values.
    pub fn read(
        file: &str,
        text: &str,
        overrides: &[Override],
        section: &'static Section,
    ) -> Result<Self, DocumentError> {
        let table: Table = text.parse().map_err(|error: toml::de::Error| DocumentError::Syntax {
            file: file.to_owned(),
            line: error.span().map_or(1, |span| line_of(text, span.start)),
            message: error.message().to_owned(),
        })?;
        let folder = std::path::Path::new(file).parent().unwrap_or(std::path::Path::new(file)).to_owned();
        let (file, overrides) = (file.to_owned(), overrides.to_vec());
        let source = Source { file, folder: Some(folder), text: text.to_owned(), overrides, lines: OnceLock::new() };
        Self::check(source, table, section)
    }

    /// Checks a table without a text, such as the scenario inside a result, with overrides on top.
    ///
    /// # Errors
    /// As [`Document::read`], without lines.
    pub fn from_table(
        file: &str,
        table: Table,
        overrides: &[Override],
        section: &'static Section,
    ) -> Result<Self, DocumentError> {
        let (file, overrides) = (file.to_owned(), overrides.to_vec());
        let source = Source { file, folder: None, text: String::new(), overrides, lines: OnceLock::new() };
        Self::check(source, table, section)
    }

    /// Names the folder to which paths in a table without a text are relative.
    #[must_use]
    pub fn in_folder(mut self, folder: &std::path::Path) -> Self {
        if let Some(source) = Arc::get_mut(&mut self.source) {
            source.folder = Some(folder.to_owned());
        }
        self
    }

    /// Where the keys are from: for errors that are found when the document is gone.
    pub fn source(&self) -> Arc<Source> {
        Arc::clone(&self.source)
    }

    /// The folder of the text's file. `None`: there is none, and paths mean nothing.
    pub fn folder(&self) -> Option<&std::path::Path> {
        self.source.folder.as_deref()
    }

    /// The folder to which the path at this key is relative: that of the file that set it, or where it was typed. `None`: as above.
    pub fn folder_at(&self, key: &Path) -> Option<&std::path::Path> {
        let folder = self.folder()?;
        Some(self.override_of(key).map_or(folder, Override::folder))
    }

    /// The keys that the file or table and the overrides set, as written: without defaults.
    pub fn written(&self) -> &Table {
        &self.given
    }

    /// The table at the top.
    pub fn top(&self) -> Part<'_> {
        Part { document: self, table: &self.table, path: Path::default() }
    }

    /// An error about a key of this document.
    pub fn error(&self, key: &Path, problem: impl Into<String>, accepted: impl Into<String>) -> DocumentError {
        self.problem(key, Problem::new(problem, accepted))
    }

    /// An error about a key of the table at `table`, with the values that the key takes.
    pub fn refuse<K: Keys>(&self, table: &Path, key: &str, problem: impl Into<String>) -> DocumentError {
        let accepted = K::section().key(key).map_or_else(String::new, |key| key.kind.accepted());
        self.error(&table.key(key), problem, accepted)
    }

    /// An error about the value of a key of this document.
    pub fn problem(&self, key: &Path, problem: Problem) -> DocumentError {
        self.source.error(key, problem).into()
    }

    /// The override that gave the key its value, if one did.
    pub fn override_of(&self, key: &Path) -> Option<&Override> {
        self.source.override_of(key)
    }

    /// The text's name in messages, and the line of the key.
    pub fn line_of(&self, key: &Path) -> (&str, Option<usize>) {
        let lines = self.source.lines.get_or_init(|| lines_of_keys(&self.source.text));
        (&self.source.file, lines.get(&key.to_string()).copied())
    }

    fn check(source: Source, mut table: Table, section: &'static Section) -> Result<Self, DocumentError> {
        for change in &source.overrides {
            apply(&source, section, &mut table, change, &change.path, &Path::default())?;
        }
        let given = table.clone();
        let table = complete(&source, section, table, &Path::default(), None)?;
        Ok(Self { table, given, section, source: Arc::new(source) })
    }
}

impl Source {
    /// An error about a key, with its file and line.
    pub fn error(&self, key: &Path, problem: Problem) -> KeyError {
        let Problem { problem, accepted, did_you_mean } = problem;
        let mut line = line_of_key(&self.text, key);
        // A table absent from the file was made by an override of one of its keys.
        let into = || self.overrides.iter().rev().find(|change| line.is_none() && change.reaches_into(key));
        let set_by = self.override_of(key).or_else(into).map(ToString::to_string);
        // An absent key has no line. Its table's line shows where to add it.
        let mut around = key.clone();
        while line.is_none() && around.0.pop().is_some() {
            line = line_of_key(&self.text, &around);
        }
        line = line.filter(|_| set_by.is_none());
        KeyError { file: self.file.clone(), line, set_by, key: key.to_string(), problem, accepted, did_you_mean }
    }

    fn override_of(&self, key: &Path) -> Option<&Override> {
        self.overrides.iter().rev().find(|change| change.touches(key))
    }
}

impl Override {
    /// Whether this override set `key`.
    fn touches(&self, key: &Path) -> bool {
        self.path.len() == key.0.len() && self.begins_with(key)
    }

    /// Whether this override set a key inside the table `key`.
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

fn apply(
    source: &Source,
    section: &Section,
    table: &mut Table,
    change: &Override,
    rest: &[Step],
    path: &Path,
) -> Result<(), DocumentError> {
    let fail = |message: String| Err(DocumentError::Override { text: change.to_string(), message });
    let [Step::Key(name), rest @ ..] = rest else {
        return fail(format!("{path} is a table, not a value; one of its keys: {}", section.names().join(", ")));
    };
    let here = path.key(name);
    if let Some(key) = section.key_or_other(name) {
        if !rest.is_empty() {
            return fail(format!("{here} holds a value and has no parts"));
        }
        let as_text = key.kind.takes_text() && !change.value.is_str();
        let value = if as_text { Value::String(change.raw.clone()) } else { change.value.clone() };
        table.insert(name.clone(), value);
        return Ok(());
    }
    let Some(child) = section.child(name) else {
        let meant = nearest(name, &section.names()).map(|name| format!("; did you mean {}?", path.key(name)));
        let names = section.names().join(", ");
        return fail(format!("unknown key {here}{}; accepted: {names}", meant.unwrap_or_default()));
    };
    if !child.repeated {
        let inner = table.entry(child.name).or_insert_with(|| Value::Table(Table::new()));
        let inner = inner.as_table_mut().ok_or_else(|| wrong_shape(source, &here, child.repeated))?;
        return apply(source, child.section, inner, change, rest, &here);
    }
    let in_its_place = section.instead_of(child.name);
    if !in_its_place.is_empty() && !table.contains_key(child.name) {
        return fail(format!("there are no [[{here}]]; accepted: keys of {}", in_its_place.join(" and ")));
    }
    if rest.is_empty() && change.value.is_array() {
        table.insert(child.name.to_owned(), change.value.clone());
        return Ok(());
    }
    // An omitted list has one block: the one filled in here.
    let blocks = table.entry(child.name).or_insert_with(|| Value::Array(vec![Value::Table(Table::new())]));
    let blocks = blocks.as_array_mut().ok_or_else(|| wrong_shape(source, &here, child.repeated))?;
    let count = blocks.len();
    let (chosen, rest) = match rest {
        [Step::All, rest @ ..] => (0..count, rest),
        [Step::Index(index), rest @ ..] if *index < count => (*index..index + 1, rest),
        [Step::Index(index), ..] => {
            let there = match count {
                1 => format!("one block, {here}[0]"),
                _ => format!("{count} blocks, {here}[0] to {here}[{}]", count.saturating_sub(1)),
            };
            return fail(format!("there is no {here}[{index}]: there is {there}"));
        }
        _ => {
            return fail(format!("{here} may be there several times; accepted: {here}.0.KEY, or {here}.*.KEY for all"));
        }
    };
    for index in chosen {
        let here = here.index(index);
        let inner = blocks[index].as_table_mut().ok_or_else(|| wrong_shape(source, &here, false))?;
        apply(source, child.section, inner, change, rest, &here)?;
    }
    Ok(())
}

fn wrong_shape(source: &Source, path: &Path, repeated: bool) -> DocumentError {
    let problem = match repeated {
        true => Problem::new("is no list of blocks", format!("blocks that begin with [[{path}]]")),
        false => Problem::new("is not a table", format!("a table [{path}]")),
    };
    source.error(path, problem).into()
}

impl Section {
    /// The headings of the tables that exclude this one.
    fn instead_of(&self, name: &str) -> Vec<String> {
        let instead = |child: &&Child| matches!(child.presence, Presence::Unless(other) if other == name);
        self.children.iter().filter(instead).map(|child| format!("[{}]", child.name)).collect()
    }
}

/// A table with those around it, for looking up words.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    pub(crate) own: &'a Table,
    pub(crate) around: Option<&'a Self>,
}

impl<'a> Scope<'a> {
    /// The word of a key in this table, or in the nearest one around it that has the key.
    pub(crate) fn word(&self, key: &str) -> Option<&'a str> {
        self.own.get(key).map_or_else(|| self.around?.word(key), Value::as_str)
    }
}

/// Checks one table and fills in defaults.
fn complete(
    source: &Source,
    section: &Section,
    mut given: Table,
    path: &Path,
    around: Option<&Scope<'_>>,
) -> Result<Table, DocumentError> {
    let names = section.names();
    let is_unknown = |name: &&String| section.others.is_none() && !names.contains(&name.as_str());
    if let Some(unknown) = given.keys().find(is_unknown) {
        let did_you_mean = nearest(unknown, &names).map(str::to_owned);
        let problem = Problem { did_you_mean, ..Problem::new("unknown key", names.join(", ")) };
        return Err(source.error(&path.key(unknown), problem).into());
    }
    if let Some(word) = given.get("preset").and_then(Value::as_str)
        && let Some((_, preset)) = section.presets.iter().find(|(name, _)| *name == word)
    {
        let mut preset = preset.clone();
        for (key, other) in &section.preset_pairs {
            if given.get(*other).is_some_and(|value| preset.get(*other) != Some(value)) {
                preset.remove(*key);
            }
        }
        fill_in(&mut given, &preset);
    }
    for Child { name, presence, .. } in &section.children {
        if let Presence::Unless(other) = presence
            && given.contains_key(*name)
            && given.contains_key(*other)
        {
            let beside = section.instead_of(other).join(" and ");
            let accepted = format!("[[{other}]] alone, or {beside} without them");
            return Err(source
                .error(&path.key(name), Problem::new(format!("cannot be beside [[{other}]]"), accepted))
                .into());
        }
    }
    let mut whole = Table::new();
    for key in &section.keys {
        let here = || path.key(key.name);
        let value = match (given.remove(key.name), &key.default) {
            (Some(value), _) => Some(key.kind.check(value).map_err(|problem| source.error(&here(), problem))?),
            (None, Preset::Required) => {
                return Err(source.error(&here(), Problem::new("is not there", key.kind.accepted())).into());
            }
            (None, default) => default.value(&|word| Scope { own: &whole, around }.word(word)),
        };
        whole.extend(value.map(|value| (key.name.to_owned(), value)));
    }
    for key in &section.keys {
        if let Preset::Derived(_, from) = key.default
            && !whole.contains_key(key.name)
        {
            whole.extend(from(&whole).map(|value| (key.name.to_owned(), value)));
        }
    }
    for child in &section.children {
        let here = path.key(child.name);
        let inside = Scope { own: &whole, around };
        let one = |block: Value, here: &Path| match block {
            Value::Table(table) => complete(source, child.section, table, here, Some(&inside)).map(Value::Table),
            _ => Err(wrong_shape(source, here, false)),
        };
        let empty = match child.presence {
            Presence::Always => true,
            Presence::IfGiven | Presence::Any | Presence::Required => false,
            Presence::Unless(other) => !given.contains_key(other) && !whole.contains_key(other),
            Presence::With(key, word) => whole.get(key).and_then(Value::as_str) == Some(word),
        };
        let value = match (given.remove(child.name), child.repeated) {
            (Some(block), false) => one(block, &here)?,
            (Some(Value::Array(blocks)), true) if blocks.len() > child.most => {
                let problem = format!("there are {}, which is too many", blocks.len());
                return Err(source
                    .error(&here, Problem::new(problem, format!("at most {} blocks", child.most)))
                    .into());
            }
            (Some(Value::Array(blocks)), true) if !blocks.is_empty() => {
                let blocks = blocks.into_iter().enumerate().map(|(index, block)| one(block, &here.index(index)));
                Value::Array(blocks.collect::<Result<_, _>>()?)
            }
            (Some(Value::Array(_)), true) if matches!(child.presence, Presence::Always | Presence::Any) => {
                Value::Array(Vec::new())
            }
            (Some(Value::Array(_)), true) => return Err(none(source, child, &here)),
            (Some(_), true) => return Err(wrong_shape(source, &here, true)),
            (None, _) if child.presence == Presence::Required => return Err(none(source, child, &here)),
            (None, _) if !empty => continue,
            (None, false) => one(Value::Table(Table::new()), &here)?,
            (None, true) => Value::Array(vec![one(Value::Table(Table::new()), &here.index(0))?]),
        };
        whole.insert(child.name.to_owned(), value);
    }
    // the rest: of other names, if the section has any
    for (name, value) in given {
        let key = section.others.as_ref().expect("unknown keys are refused above");
        let value = key.kind.check(value).map_err(|problem| source.error(&path.key(&name), problem))?;
        whole.insert(name, value);
    }
    Ok(whole)
}

/// Adds what is not there, inside its tables too.
fn fill_in(table: &mut Table, preset: &Table) {
    for (name, value) in preset {
        match (table.get_mut(name), value) {
            (Some(Value::Table(table)), Value::Table(preset)) => fill_in(table, preset),
            (Some(_), _) => {}
            (None, value) => _ = table.insert(name.clone(), value.clone()),
        }
    }
}

fn none(source: &Source, child: &Child, here: &Path) -> DocumentError {
    let accepted = if child.repeated { format!("at least one block [[{here}]]") } else { format!("a table [{here}]") };
    source.error(here, Problem::new("there is none", accepted)).into()
}
