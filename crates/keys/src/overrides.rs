//! `--set key=value` and `--vary key=a,b,c`.

use crate::error::DocumentError;
use crate::key_path::{Step, steps};
use std::fmt;
use std::path::{Path, PathBuf};
use toml::Value;

/// One `key=value` of the command line, or a flag for one. Messages show it as typed.
#[derive(Clone, Debug, PartialEq)]
pub struct Override {
    /// The steps of the key.
    pub(crate) path: Vec<Step>,
    /// The value, read as TOML, or else as text.
    pub(crate) value: Value,
    /// The value as typed.
    pub(crate) raw: String,
    /// The flag for this key, if it was used: `--policy`.
    flag: Option<String>,
    /// The folder of the file that it stands in; `None`: it is of the command line.
    folder: Option<PathBuf>,
}

/// One key with its values, taken in turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Vary {
    key: String,
    values: Vec<Override>,
}

/// The label of the only case, where nothing varies.
const ONLY_CASE: &str = "scenario";

/// One point of the cross product of several [`Vary`].
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Short and unique among its siblings: `policy=none, rtt_ms=4`.
    pub label: String,
    /// Each varied key and its value in this case, as typed.
    pub settings: Vec<(String, String)>,
    /// The overrides for loading the scenario.
    pub overrides: Vec<Override>,
}

impl Case {
    /// Reads `label: key=value key=value`, with any number of overrides.
    ///
    /// # Errors
    /// If there is no colon or no label before it, or as [`Override::parse`]; in words.
    pub fn parse(text: &str) -> Result<Self, String> {
        let accepted =
            "a label, a colon, and overrides separated by spaces, such as \"bbr: hosts.0.congestion_control=bbr\"";
        let (label, settings) =
            text.split_once(':').ok_or_else(|| format!("there is no colon in it; accepted: {accepted}"))?;
        let label = label.trim();
        if label.is_empty() {
            return Err(format!("there is no label before the colon; accepted: {accepted}"));
        }
        let overrides = settings.split_whitespace().map(Override::parse).collect::<Result<Vec<_>, _>>();
        let overrides = overrides.map_err(|error| error.to_string())?;
        if let Some([one, later]) = Override::without_effect(&overrides) {
            return Err(format!("{one} has no effect before {later}; accepted: each key once"));
        }
        let settings = overrides.iter().map(|setting| (setting.key(), setting.raw().to_owned())).collect();
        Ok(Self { label: label.to_owned(), settings, overrides })
    }
}

impl Override {
    /// Reads `key=value`. Keys are dotted, with array indices as `hosts.0.policy` or `hosts[0].policy`, and
    /// `hosts.*.policy` for every block.
    ///
    /// ```
    /// let bound = lasthop_keys::Override::parse("hosts.*.bound_segments=48").unwrap();
    /// assert_eq!(bound.to_string(), "hosts.*.bound_segments=48");
    /// assert!(lasthop_keys::Override::parse("bound_segments").is_err());
    /// ```
    ///
    /// # Errors
    /// If there is no `=`, or nothing before or after it.
    pub fn parse(text: &str) -> Result<Self, DocumentError> {
        let (key, value) = split(text)?;
        Self::new(text, key, value)
    }

    /// The override that gives a run its seed.
    pub fn seed(seed: u64) -> Self {
        Self {
            path: vec![Step::Key("seed".into())],
            value: i64::try_from(seed).map_or_else(|_| Value::String(seed.to_string()), Value::Integer),
            raw: seed.to_string(),
            flag: None,
            folder: None,
        }
    }

    /// A setting by a dedicated flag: messages show the flag, `--policy fixed`, and not the key.
    ///
    /// # Panics
    /// If the key has an empty part.
    pub fn of_flag(flag: &str, key: &str, value: impl Into<Value>) -> Self {
        let change = Self::of(key, &value.into()).expect("the key of a flag has no empty part");
        Self { flag: Some(flag.to_owned()), ..change }
    }

    /// The override for a key and a TOML value in a file.
    ///
    /// # Errors
    /// If the key has an empty part.
    pub fn of(key: &str, value: &Value) -> Result<Self, DocumentError> {
        Ok(Self::new(&format!("{key}={}", raw(value)), key, "")?.with(value))
    }

    /// The same with this value.
    #[must_use]
    pub fn with(&self, value: &Value) -> Self {
        Self { value: value.clone(), raw: raw(value), ..self.clone() }
    }

    /// The same in a file in this folder, to which paths in its value are then relative.
    #[must_use]
    pub fn in_folder(self, folder: &Path) -> Self {
        Self { folder: Some(folder.to_owned()), ..self }
    }

    /// To what a path in its value is relative: the file's folder, or where it was typed.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.as_deref().unwrap_or(Path::new(""))
    }

    /// The key, dotted.
    pub fn key(&self) -> String {
        let steps: Vec<String> = self.path.iter().map(Step::to_string).collect();
        steps.join(".")
    }

    /// The value, as typed.
    pub fn raw(&self) -> &str {
        &self.raw
    }

    /// The value, read as TOML, or else as text.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Whether nothing is left of the other one, which comes before: it sets the same key, or with `*` the same of all blocks.
    pub fn covers(&self, earlier: &Self) -> bool {
        let same =
            |(one, other): (&Step, &Step)| one == other || (*one == Step::All && matches!(other, Step::Index(_)));
        self.path.len() == earlier.path.len() && self.path.iter().zip(&earlier.path).all(same)
    }

    /// Whether both set the same key of some block, or this one takes the place of a table or list that has the other's.
    pub fn meets(&self, earlier: &Self) -> bool {
        let same = |(one, other): (&Step, &Step)| {
            let is_block = |step: &Step| matches!(step, Step::All | Step::Index(_));
            one == other || (is_block(one) && is_block(other) && [one, other].contains(&&Step::All))
        };
        self.path.len() <= earlier.path.len() && self.path.iter().zip(&earlier.path).all(same)
    }

    /// The first one here of which nothing is left, for a later one covers it; and that one.
    pub fn without_effect(overrides: &[Self]) -> Option<[&Self; 2]> {
        overrides.iter().enumerate().find_map(|(at, one)| {
            let later = overrides[at + 1..].iter().find(|later| later.covers(one));
            later.map(|later| [one, later])
        })
    }

    fn new(text: &str, key: &str, raw: &str) -> Result<Self, DocumentError> {
        let path = steps(key);
        if path.iter().any(|step| matches!(step, Step::Key(name) if name.is_empty())) {
            return Err(nonsense(text, "its key has an empty part; accepted: dotted keys such as hosts.0.policy"));
        }
        Ok(Self { path, value: read(raw), raw: raw.to_owned(), flag: None, folder: None })
    }
}

/// A value as one would type it.
fn raw(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

impl fmt::Display for Override {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.flag {
            Some(flag) => write!(f, "{flag} {}", self.raw),
            None => write!(f, "{}={}", self.key(), self.raw),
        }
    }
}

impl Vary {
    /// Reads `key=a,b,c`; commas inside brackets or quotes do not separate values.
    ///
    /// # Errors
    /// If it is no override, a value is empty, or one is repeated.
    pub fn parse(text: &str) -> Result<Self, DocumentError> {
        let (key, list) = split(text)?;
        let mut values: Vec<Override> = Vec::new();
        for raw in list_items(list) {
            if raw.is_empty() {
                return Err(nonsense(text, "one of its values is empty; accepted: key=a,b,c"));
            }
            if values.iter().any(|value| value.raw == raw) {
                return Err(nonsense(text, &format!("the value {raw} stands twice")));
            }
            values.push(Override::new(text, key, raw)?);
        }
        Ok(Self { key: key.to_owned(), values })
    }

    /// The same from TOML values.
    ///
    /// # Errors
    /// As [`Vary::parse`], or if there are no values.
    pub fn of(key: &str, values: &[Value]) -> Result<Self, DocumentError> {
        let mut read: Vec<Override> = Vec::new();
        for value in values {
            let value = Override::of(key, value)?;
            if read.iter().any(|other| other.raw == value.raw) {
                return Err(nonsense(key, &format!("the value {} stands twice", value.raw)));
            }
            read.push(value);
        }
        if read.is_empty() {
            return Err(nonsense(key, "it has no values; accepted: at least one"));
        }
        Ok(Self { key: key.to_owned(), values: read })
    }

    /// The varied key, as typed.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Its values, as typed.
    pub fn values(&self) -> Vec<String> {
        self.values.iter().map(|value| value.raw.clone()).collect()
    }

    /// Every combination; the last `Vary` changes fastest. Without anything to vary, one case without settings.
    pub fn cases(varied: &[Self]) -> Vec<Case> {
        let label = if varied.is_empty() { ONLY_CASE.to_owned() } else { String::new() };
        let mut cases = vec![Case { label, settings: Vec::new(), overrides: Vec::new() }];
        for vary in varied {
            let name = vary.short_name(varied);
            cases = cases
                .iter()
                .flat_map(|case| {
                    vary.values.iter().map(|value| {
                        let mut case = case.clone();
                        let comma = if case.label.is_empty() { "" } else { ", " };
                        case.label = format!("{}{comma}{name}={}", case.label, value.raw);
                        case.settings.push((vary.key.clone(), value.raw.clone()));
                        case.overrides.push(value.clone());
                        case
                    })
                })
                .collect();
        }
        cases
    }

    /// Each case with each of these values of something that is no key of the file, which changes fastest. Without values the cases as
    /// they are.
    pub fn also(cases: Vec<Case>, what: &str, values: &[&str]) -> Vec<Case> {
        if values.is_empty() {
            return cases;
        }
        let of = |case: &Case, value: &str| {
            let before = if case.label == ONLY_CASE { String::new() } else { format!("{}, ", case.label) };
            Case { label: format!("{before}{what}={value}"), ..case.clone() }
        };
        cases.iter().flat_map(|case| values.iter().map(|value| of(case, value))).collect()
    }

    /// The last part of the key; the whole key if another varied key has the same ending.
    fn short_name(&self, varied: &[Self]) -> &str {
        let last = |key: &'_ str| key.rsplit('.').next().map_or(0, str::len);
        let short = &self.key[self.key.len() - last(&self.key)..];
        let alike = varied.iter().filter(|other| other.key[other.key.len() - last(&other.key)..] == *short).count();
        if alike > 1 { &self.key } else { short }
    }
}

fn nonsense(text: &str, message: &str) -> DocumentError {
    DocumentError::Override { text: text.to_owned(), message: message.to_owned() }
}

fn split(text: &str) -> Result<(&str, &str), DocumentError> {
    let (key, value) = text
        .split_once('=')
        .ok_or_else(|| nonsense(text, "there is no `=` in it; accepted: key=value, such as hosts.0.policy=formula"))?;
    match (key.trim(), value.trim()) {
        ("", _) => Err(nonsense(text, "there is no key before the `=`; accepted: key=value")),
        (_, "") => Err(nonsense(text, "there is no value after the `=`; accepted: key=value")),
        parts => Ok(parts),
    }
}

/// A value as TOML, or else as text: `formula`, `802.11g`.
fn read(raw: &str) -> Value {
    let document = format!("value = {raw}");
    match document.parse::<toml::Table>() {
        Ok(mut table) if table.len() == 1 => table.remove("value").unwrap_or_else(|| Value::String(raw.to_owned())),
        _ => Value::String(raw.to_owned()),
    }
}

fn list_items(list: &str) -> Vec<&str> {
    let (mut items, mut start, mut depth, mut quoted) = (Vec::new(), 0, 0_usize, false);
    for (at, letter) in list.char_indices() {
        match letter {
            '"' => quoted = !quoted,
            '[' | '{' if !quoted => depth += 1,
            ']' | '}' if !quoted => depth = depth.saturating_sub(1),
            ',' if !quoted && depth == 0 => {
                items.push(list[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    items.push(list[start..].trim());
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vary(text: &str) -> Vary {
        Vary::parse(text).expect("a vary")
    }

    #[test]
    fn a_value_is_toml_or_else_text() {
        let value = |text: &str| Override::parse(text).expect("an override").value;
        assert_eq!(value("path.rtt_ms=4"), Value::Integer(4));
        assert_eq!(value("path.loss=1e-3"), Value::Float(1e-3));
        assert_eq!(value("hosts.0.policy=formula"), Value::String("formula".into()));
        assert_eq!(value("access.standard=802.11g"), Value::String("802.11g".into()));
        assert_eq!(value("name=\"a = b\""), Value::String("a = b".into()));
        assert_eq!(value("name=one\ntwo=3"), Value::String("one\ntwo=3".into()));
        assert_eq!(value("x=[0, 2.5]"), Value::Array(vec![Value::Integer(0), Value::Float(2.5)]));
    }

    #[test]
    fn both_spellings_of_an_index_are_the_same_key() {
        let dotted = Override::parse("hosts.0.flows.1.count=2").expect("an override");
        let bracketed = Override::parse("hosts[0].flows[1].count=2").expect("an override");
        assert_eq!(dotted, bracketed);
    }

    #[test]
    fn nonsense_is_told_apart() {
        for (text, word) in
            [("policy", "no `=`"), ("=3", "no key"), ("seed=", "no value"), ("hosts..policy=none", "empty part")]
        {
            let message = Override::parse(text).expect_err(text).to_string();
            assert!(message.contains(word) && message.contains("accepted"), "{message}");
        }
        assert!(Vary::parse("seed=1,,2").is_err());
        assert!(Vary::parse("seed=1,1").is_err());
        let message = Case::parse("a: hosts.0.era=2012 hosts[*].era=modern").expect_err("of nothing is left");
        assert_eq!(message, "hosts.0.era=2012 has no effect before hosts.*.era=modern; accepted: each key once");
    }

    #[test]
    fn a_key_that_a_later_one_sets_in_every_case_is_found() {
        let first = |keys: [&str; 2]| {
            let cases = Vary::cases(&keys.map(|key| vary(&format!("{key}=1,2"))));
            cases.iter().all(|case| Override::without_effect(&case.overrides).is_some())
        };
        assert!(first(["path.rtt_ms", "path.rtt_ms"]) && first(["hosts.0.count", "hosts[*].count"]));
        // Of the other blocks it stays.
        assert!(!first(["hosts.*.count", "hosts.0.count"]));
        assert!(!first(["path.rtt_ms", "path.loss"]) && !first(["hosts.0.count", "hosts.1.count"]));
    }

    #[test]
    fn cases_are_the_cross_product_and_the_last_changes_fastest() {
        let cases = Vary::cases(&[vary("hosts.*.policy=none,formula"), vary("path.rtt_ms=4,256")]);
        let labels: Vec<&str> = cases.iter().map(|case| case.label.as_str()).collect();
        assert_eq!(
            labels,
            [
                "policy=none, rtt_ms=4",
                "policy=none, rtt_ms=256",
                "policy=formula, rtt_ms=4",
                "policy=formula, rtt_ms=256"
            ]
        );
        assert_eq!(cases[3].settings[1], ("path.rtt_ms".into(), "256".into()));
        assert_eq!(Vary::cases(&[]).len(), 1);
    }

    #[test]
    fn each_case_gets_each_value_of_what_is_no_key() {
        let labels = |cases: Vec<Case>| cases.into_iter().map(|case| case.label).collect::<Vec<_>>();
        assert_eq!(labels(Vary::also(Vary::cases(&[]), "kernel", &["a", "b"])), ["kernel=a", "kernel=b"]);
        let cases = Vary::also(Vary::cases(&[vary("path.rtt_ms=4,256")]), "kernel", &["a", "b"]);
        assert_eq!((&cases[1].settings, &cases[1].overrides), (&cases[0].settings, &cases[0].overrides));
        assert_eq!(labels(cases)[1..3], ["rtt_ms=4, kernel=b", "rtt_ms=256, kernel=a"]);
        assert_eq!(labels(Vary::also(Vary::cases(&[]), "kernel", &[])), ["scenario"]);
    }

    #[test]
    fn keys_that_end_alike_are_told_in_full() {
        let cases = Vary::cases(&[vary("access.queue_packets=10"), vary("path.queue_packets=20")]);
        assert_eq!(cases[0].label, "access.queue_packets=10, path.queue_packets=20");
    }

    #[test]
    fn a_range_is_one_value() {
        assert_eq!(vary("hosts.0.flows.0.start_s=0,[0, 2]").values(), ["0", "[0, 2]"]);
    }
}
