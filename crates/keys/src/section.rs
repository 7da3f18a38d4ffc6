//! A table of a file, as data.

use crate::kind::Kind;
use toml::{Table, Value};

/// A table of a file.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// The keys of the table itself, in the order of the guide.
    pub keys: Vec<Key>,
    /// The tables inside it.
    pub children: Vec<Child>,
    /// By the word of its key `preset`: what the table holds where the file does not say.
    pub presets: Vec<(&'static str, Table)>,
    /// Keys of a preset that hold only beside its own value of another key: (key, the other).
    pub preset_pairs: Vec<(&'static str, &'static str)>,
    /// What keys of any other name are, whose names the reader checks. `None`: there are no others.
    pub others: Option<Key>,
}

/// One key: its values, its default, its meaning.
#[derive(Clone, Debug)]
pub struct Key {
    /// As written in the file; the unit is the suffix.
    pub name: &'static str,
    /// The values it takes.
    pub kind: Kind,
    /// Its default.
    pub default: Preset,
    /// One or two sentences for the guide.
    pub meaning: &'static str,
    /// The conditions under which the key is used; all must hold. Empty if it is always used, or refused where it has
    /// no use.
    pub when: Vec<When>,
    /// Whether a file may set the key for those runs that choose to use it.
    pub may_wait: bool,
}

/// A table inside a table.
#[derive(Clone, Debug)]
pub struct Child {
    /// As written in the file.
    pub name: &'static str,
    /// Its keys and tables.
    pub section: &'static Section,
    /// Whether several are allowed: `[[name]]` instead of `[name]`.
    pub repeated: bool,
    /// The most of them, if several are allowed.
    pub most: usize,
    /// When it is present.
    pub presence: Presence,
    /// One or two sentences for the guide.
    pub meaning: &'static str,
}

impl Child {
    /// The most blocks of one name, unless the list has its own limit: so many are read within a second or so.
    pub const MOST: usize = 20_000;
}

/// When an inner table is present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Always: without it, all its keys have their defaults. Of several, one; an empty list is none.
    Always,
    /// If it is given; of several, at least one.
    IfGiven,
    /// Any number of several, and none if it is not given.
    Any,
    /// It is mandatory; of several, at least one.
    Required,
    /// Unless the sibling table of this name is given; then it is refused.
    Unless(&'static str),
    /// If it is given, or this sibling key has this word.
    With(&'static str, &'static str),
}

/// Stands for every other word in [`Preset::ByWord`].
pub const OTHERWISE: &str = "otherwise";

/// The default of a key.
#[derive(Clone, Debug)]
pub enum Preset {
    /// This value.
    Value(Value),
    /// The value for the word of another key, in this table or one around it; that of [`OTHERWISE`], if it is here, for all
    /// words that are not.
    ByWord(&'static str, Vec<(&'static str, Self)>),
    /// A value computed from the other keys of the table, if any. The text says how, for the guide.
    Derived(&'static str, fn(&Table) -> Option<Value>),
    /// None: the key is optional.
    Absent,
    /// None: the key is mandatory.
    Required,
}

/// A condition for a key to be used.
#[derive(Clone, Debug)]
pub enum When {
    /// A key is one of these words.
    Is(Of, &'static str, Vec<&'static str>),
    /// A key is none of these words.
    IsNot(Of, &'static str, Vec<&'static str>),
    /// A sibling key is present.
    Given(&'static str),
    /// A sibling key is absent.
    NotGiven(&'static str),
    /// The file has no table of this name.
    No(&'static str),
    /// A function of the key's own table and the whole file finds no reason against it.
    Not(fn(&Table, &Table) -> Option<String>),
}

/// The table of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// The same table.
    Same,
    /// The table around it.
    Around,
    /// The table of this name at the top of the file.
    Top(&'static str),
}

impl Section {
    /// The key of this name.
    pub fn key(&self, name: &str) -> Option<&Key> {
        self.keys.iter().find(|key| key.name == name)
    }

    /// The key of this name, or what keys of other names are.
    pub(crate) fn key_or_other(&self, name: &str) -> Option<&Key> {
        self.key(name).or_else(|| self.others.as_ref().filter(|_| self.child(name).is_none()))
    }

    /// The key of this name, to adjust it.
    ///
    /// # Panics
    /// If there is none.
    pub fn key_mut(&mut self, name: &str) -> &mut Key {
        self.keys.iter_mut().find(|key| key.name == name).unwrap_or_else(|| panic!("there is a key {name}"))
    }

    /// The table of this name.
    pub fn child(&self, name: &str) -> Option<&Child> {
        self.children.iter().find(|child| child.name == name)
    }

    /// Every name allowed in the table.
    pub fn names(&self) -> Vec<&'static str> {
        self.keys.iter().map(|key| key.name).chain(self.children.iter().map(|child| child.name)).collect()
    }

    /// This table and all inside it, outer before inner, with the headings of the file: `[hosts.tcp]`.
    pub fn walk(&self) -> Vec<(String, &Self)> {
        let mut all = vec![(String::new(), self)];
        self.walk_into("", &mut all);
        all
    }

    fn walk_into<'a>(&'a self, before: &str, all: &mut Vec<(String, &'a Self)>) {
        for child in &self.children {
            let name = format!("{before}{}", child.name);
            all.push((if child.repeated { format!("[[{name}]]") } else { format!("[{name}]") }, child.section));
            child.section.walk_into(&format!("{name}."), all);
        }
    }
}

impl Preset {
    /// An empty list.
    pub fn none() -> Self {
        Self::Value(Value::Array(Vec::new()))
    }

    /// The default, if it depends on words only; `word` gives a key's word.
    pub fn value<'a>(&self, word: &dyn Fn(&str) -> Option<&'a str>) -> Option<Value> {
        match self {
            Self::Value(value) => Some(value.clone()),
            Self::ByWord(key, presets) => {
                let word = word(key)?;
                let of = |wanted: &str| presets.iter().find(|(of, _)| *of == wanted);
                of(word).or_else(|| of(OTHERWISE))?.1.value(&|_| None)
            }
            Self::Derived(..) | Self::Absent | Self::Required => None,
        }
    }

    /// Whether the default itself can be none.
    pub(crate) fn can_be_none(&self) -> bool {
        match self {
            Self::Absent => true,
            Self::ByWord(_, presets) => presets.iter().any(|(_, preset)| preset.can_be_none()),
            Self::Value(_) | Self::Derived(..) | Self::Required => false,
        }
    }

    /// In words, for the guide.
    pub fn describe(&self) -> String {
        match self {
            Self::Value(Value::Float(number)) => format!("`{number}`"),
            Self::Value(Value::Array(ends)) => {
                let numbers = ends.iter().map(|end| end.as_float().unwrap_or(f64::NAN).to_string());
                format!("`[{}]`", numbers.collect::<Vec<_>>().join(", "))
            }
            Self::Value(value) => format!("`{value}`"),
            Self::ByWord(_, presets) => {
                let say = |(word, preset): &(&str, Self)| format!("{} ({word})", preset.describe());
                presets.iter().map(say).collect::<Vec<_>>().join(", ")
            }
            Self::Derived(words, _) => (*words).into(),
            Self::Absent => "none".into(),
            Self::Required => "must be given".into(),
        }
    }
}

/// A default chosen by the word of another key.
pub fn by_word<T: Into<Preset>, const N: usize>(key: &'static str, presets: [(&'static str, T); N]) -> Preset {
    Preset::ByWord(key, presets.map(|(word, preset)| (word, preset.into())).into())
}

/// A default computed from the other keys of the table.
pub fn derived(words: &'static str, from: fn(&Table) -> Option<Value>) -> Preset {
    Preset::Derived(words, from)
}

macro_rules! preset_from {
    ($($type:ty)+) => {
        $(impl From<$type> for Preset {
            fn from(value: $type) -> Self {
                Self::Value(value.into())
            }
        })+
    };
}
preset_from!(f64 i64 bool &str);

impl From<(f64, f64)> for Preset {
    fn from((from, to): (f64, f64)) -> Self {
        Self::Value(Value::Array(vec![from.into(), to.into()]))
    }
}
