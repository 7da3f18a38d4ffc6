//! Keys that are set without effect: a user relies on them in vain.

use crate::document::{Document, Scope};
use crate::key_path::Path;
use crate::overrides::Override;
use crate::section::{Key, Of, Section, When};
use std::collections::HashMap;
use std::fmt;
use toml::{Table, Value};

/// A key that is set and never used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IneffectiveKey {
    /// Where it was set: `scenarios/ten-uploads.toml:23`, or "the command line".
    pub set_in: String,
    /// Dotted: `hosts[0].enable_ratio` in a file, as typed on the command line.
    pub key: String,
    /// Why it has no effect: `policy is "fixed", and it is for "formula"`.
    pub why: String,
}

impl fmt::Display for IneffectiveKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} has no effect here: {}", self.set_in, self.key, self.why)
    }
}

/// The place of overrides.
pub const COMMAND_LINE: &str = "the command line";

/// A key that is set.
#[derive(Clone, Debug)]
pub struct Given {
    key: String,
    on_command_line: bool,
    effect: Effect,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Effect {
    Some,
    /// It is set to its default.
    Default,
    None {
        set_in: String,
        why: String,
    },
}

/// The keys without effect in any of these runs, in order of first appearance, each once. A run counts only if it sets
/// the key. Two kinds are excluded: keys set to their defaults, and keys that a file has for runs that choose them
/// ([`Key::may_wait`]).
pub fn ineffective_keys<'a>(runs: impl IntoIterator<Item = &'a [Given]>) -> Vec<IneffectiveKey> {
    let mut keys: Vec<(&Given, bool)> = Vec::new();
    let mut places = HashMap::new();
    for given in runs.into_iter().flatten() {
        let place = *places.entry((given.on_command_line, &given.key)).or_insert(keys.len());
        match (keys.get_mut(place), &given.effect) {
            (None, effect) => keys.push((given, matches!(effect, Effect::Some))),
            (Some((_, effective)), Effect::Some) => *effective = true,
            (Some((known, _)), Effect::None { .. }) if known.effect == Effect::Default => *known = given,
            (Some(_), _) => {}
        }
    }
    keys.into_iter()
        .filter_map(|(given, effective)| match &given.effect {
            Effect::None { set_in, why } if !effective => {
                Some(IneffectiveKey { set_in: set_in.clone(), key: given.key.clone(), why: why.clone() })
            }
            _ => None,
        })
        .collect()
}

impl Document {
    /// Every key set by the file or the command line, and whether anything uses it.
    pub fn given(&self) -> Vec<Given> {
        let mut keys = Vec::new();
        let top = Scope { own: &self.table, around: None };
        self.walk(self.section, &self.given, &top, &Path::default(), &mut keys);
        keys
    }

    fn walk(&self, section: &Section, given: &Table, scope: &Scope<'_>, path: &Path, keys: &mut Vec<Given>) {
        for (name, value) in given {
            let path = path.key(name);
            if let Some(key) = section.key_or_other(name) {
                let change = self.override_of(&path);
                let on_command_line = change.is_some();
                let effect = self.effect(key, name, scope, on_command_line);
                let key = change.map_or_else(|| path.to_string(), Override::key);
                let none = |why| Effect::None { set_in: self.set_in(&path), why };
                keys.push(Given { key, on_command_line, effect: effect.unwrap_or_else(none) });
                continue;
            }
            let (Some(child), Some(whole)) = (section.child(name), scope.own.get(name)) else { continue };
            let mut inside = |path: &Path, own: &Value, given: &Value| {
                let (Some(own), Some(given)) = (own.as_table(), given.as_table()) else { return };
                self.walk(child.section, given, &Scope { own, around: Some(scope) }, path, keys);
            };
            match (value, whole) {
                (Value::Array(given), Value::Array(whole)) => {
                    let blocks = given.iter().zip(whole).enumerate();
                    blocks.for_each(|(index, (given, own))| inside(&path.index(index), own, given));
                }
                (given, own) => inside(&path, own, given),
            }
        }
    }

    /// The reason, as an error.
    fn effect(&self, key: &Key, name: &str, scope: &Scope<'_>, on_command_line: bool) -> Result<Effect, String> {
        if scope.own.get(name) == key.default.value(&|word| scope.word(word)).as_ref() {
            return Ok(Effect::Default);
        }
        if key.may_wait && !on_command_line {
            return Ok(Effect::Some);
        }
        key.when.iter().find_map(|when| self.why_not(when, scope)).map_or(Ok(Effect::Some), Err)
    }

    /// Why the condition fails; `None` if it holds.
    fn why_not(&self, when: &When, scope: &Scope<'_>) -> Option<String> {
        let is = |of: &Of, key: &str| {
            let (table, named) = match of {
                Of::Same => (scope.own, key.to_owned()),
                Of::Around => (scope.around?.own, format!("the block's {key}")),
                Of::Top(table) => (self.table.get(*table)?.as_table()?, format!("{table}.{key}")),
            };
            let value = table.get(key)?;
            Some((value.as_str().map_or_else(|| value.to_string(), str::to_owned), named))
        };
        match when {
            When::Is(of, key, words) => {
                let (is, named) = is(of, key)?;
                let listed = || words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ");
                (!words.contains(&is.as_str())).then(|| format!("{named} is \"{is}\", and it is for {}", listed()))
            }
            When::IsNot(of, key, words) => {
                let (is, named) = is(of, key)?;
                words.contains(&is.as_str()).then(|| format!("{named} is \"{is}\""))
            }
            When::Given(key) => (!scope.own.contains_key(*key)).then(|| format!("there is no {key} beside it")),
            When::NotGiven(key) => scope.own.contains_key(*key).then(|| format!("{key} is there in its place")),
            When::No(table) => self.table.contains_key(*table).then(|| format!("the file has [[{table}]]")),
            When::Not(reason) => reason(scope.own, &self.table),
        }
    }

    /// Where a key was set. Finding the line requires reading the whole file.
    fn set_in(&self, path: &Path) -> String {
        if self.override_of(path).is_some() {
            return COMMAND_LINE.to_owned();
        }
        let (file, line) = self.line_of(path);
        line.map_or_else(|| file.to_owned(), |line| format!("{file}:{line}"))
    }
}
