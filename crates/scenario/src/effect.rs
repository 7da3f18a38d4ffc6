//! Keys that are set and change nothing: what a user believes to have said, and has not.

use crate::document::Document;
use crate::key_path::Path;
use crate::keys::{Key, Of, Section, When};
use crate::overrides::Override;
use crate::scenario::Scenario;
use lasthop_policy::PolicyName;
use std::fmt;
use toml::{Table, Value};

/// A key that somebody has set, which nothing in the scenario looks at.
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

/// Where overrides are.
pub const COMMAND_LINE: &str = "the command line";

/// A key that somebody has set.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    key: String,
    on_command_line: bool,
    effect: Effect,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Effect {
    Some,
    /// It is set to what it would be anyway.
    Default,
    None {
        set_in: String,
        why: String,
    },
}

/// The keys that have no effect in any of these runs, in the order in which they are met; each once. A key that only some of the
/// runs set counts where it is set. What is set to its default is not among them, nor is what a file has for runs that choose it
/// ([`Section::may_wait`]).
pub fn ineffective_keys<'a>(runs: impl IntoIterator<Item = &'a Scenario>) -> Vec<IneffectiveKey> {
    let mut keys: Vec<(&Given, bool)> = Vec::new();
    for given in runs.into_iter().flat_map(|run| &run.given) {
        let known =
            keys.iter_mut().find(|(known, _)| known.on_command_line == given.on_command_line && known.key == given.key);
        match (known, &given.effect) {
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

/// Every key that the file or the command line sets, in a scenario that is otherwise complete.
pub(crate) fn given(document: &Document) -> Vec<Given> {
    let mut keys = Vec::new();
    let at = Place { path: Path::default(), own: &document.table, host: None };
    walk(document, Section::Top, &document.given, &at, &mut keys);
    keys
}

/// Where in the complete scenario a table is.
struct Place<'a> {
    path: Path,
    own: &'a Table,
    host: Option<&'a Table>,
}

fn walk(document: &Document, section: Section, given: &Table, at: &Place<'_>, keys: &mut Vec<Given>) {
    for (name, value) in given {
        let path = at.path.key(name);
        if let Some(key) = section.key(name) {
            let change = document.override_of(&path);
            let key_as_set = change.map_or_else(|| path.to_string(), Override::key);
            let on_command_line = change.is_some();
            let effect = match effect(document, section, key, at, on_command_line) {
                Ok(effect) => effect,
                Err(why) => Effect::None { set_in: set_in(document, &path), why },
            };
            keys.push(Given { key: key_as_set, on_command_line, effect });
            continue;
        }
        let (Some(child), Some(whole)) = (section.child(name), at.own.get(name)) else { continue };
        let inside = |path: Path, own: &Value, given: &Value, keys: &mut Vec<Given>| {
            let (Some(own), Some(given)) = (own.as_table(), given.as_table()) else { return };
            let host = if child.section == Section::Host { Some(own) } else { at.host };
            walk(document, child.section, given, &Place { path, own, host }, keys);
        };
        match (value, whole) {
            (Value::Array(given), Value::Array(whole)) => {
                for (index, (given, own)) in given.iter().zip(whole).enumerate() {
                    inside(path.index(index), own, given, keys);
                }
            }
            (given, own) => inside(path, own, given, keys),
        }
    }
}

/// Why it has none, as an error.
fn effect(
    document: &Document,
    section: Section,
    key: &Key,
    at: &Place<'_>,
    on_command_line: bool,
) -> Result<Effect, String> {
    let era = at.host.and_then(|host| host.get("era")).and_then(Value::as_str).unwrap_or("2012");
    if at.own.get(key.name) == key.default.value(era).as_ref() {
        return Ok(Effect::Default);
    }
    if section.may_wait(key.name) && !on_command_line {
        return Ok(Effect::Some);
    }
    let why = section.when(key.name).into_iter().find_map(|when| why_not(&document.table, key.name, &when, at));
    why.map_or(Ok(Effect::Some), Err)
}

/// Why the condition is not met; `None` if it is.
fn why_not(top: &Table, key: &str, when: &When, at: &Place<'_>) -> Option<String> {
    let table = |of: &Of| match of {
        Of::Same => Some(at.own),
        Of::Host => at.host,
        Of::Access => top.get("access").and_then(Value::as_table),
    };
    let named = |of: &Of, key: &str| match of {
        Of::Same => key.to_owned(),
        Of::Host => format!("the host's {key}"),
        Of::Access => format!("access.{key}"),
    };
    let listed = |words: &[&str]| words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ");
    let is = |of: &Of, key: &str| table(of).and_then(|table| table.get(key)).map(word);
    match when {
        When::Is(of, key, words) => {
            let is = is(of, key)?;
            (!words.contains(&is.as_str()))
                .then(|| format!("{} is \"{is}\", and it is for {}", named(of, key), listed(words)))
        }
        When::IsNot(of, key, words) => {
            let is = is(of, key)?;
            words.contains(&is.as_str()).then(|| format!("{} is \"{is}\"", named(of, key)))
        }
        When::Given(key) => (!at.own.contains_key(*key)).then(|| format!("there is no {key} beside it")),
        When::NotGiven(key) => at.own.contains_key(*key).then(|| format!("{key} is there in its place")),
        When::NoLinks => top.contains_key("links").then(|| "the scenario has [[links]]".to_owned()),
        When::Law(law) => {
            let is = at.host?.get("congestion_control").map(word)?;
            (is != law.as_str()).then(|| format!("the host's congestion_control is \"{is}\", not \"{law}\""))
        }
        When::Policy => {
            let is: PolicyName = word(at.own.get("policy")?).parse().ok()?;
            let of: Vec<&str> =
                PolicyName::ALL.iter().filter(|policy| policy.looks_at(key)).map(|policy| policy.as_str()).collect();
            (!is.looks_at(key)).then(|| format!("policy is \"{is}\", and it is for {}", listed(&of)))
        }
        When::Changes => {
            let (of, access) = (word(at.own.get("of")?), word(top.get("access")?.as_table()?.get("kind")?));
            let vain = matches!((of.as_str(), access.as_str()), ("hosts", "wired") | ("access", "wifi"));
            vain.then(|| format!("it changes \"{of}\", and access.kind is \"{access}\""))
        }
    }
}

fn word(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Where a key was set. Looking for the line takes as long as reading the whole file.
fn set_in(document: &Document, path: &Path) -> String {
    if document.override_of(path).is_some() {
        return COMMAND_LINE.to_owned();
    }
    let (file, line) = document.line_of(path);
    line.map_or_else(|| file.to_owned(), |line| format!("{file}:{line}"))
}
