//! Every key of a scenario file, as data.
//!
//! The reader, the overrides of the command line, the messages about mistakes and the tables of
//! `docs/guide/scenario*.md` all come from here, so that none of them can know a key that the others do not.

mod laws;
mod tables;
mod when;

use lasthop_laws::LawName;
use std::sync::LazyLock;
pub use tables::HOST_OWN;
use tables::{ACCESS, CHANGE, FLOW, HOST, LAST_LINK, LINK, PATH, TCP, TOP};
use toml::Value;
pub use when::{Of, When};

/// One key: what it takes, what it is when left out, what it means.
#[derive(Debug)]
pub struct Key {
    /// As written in the file; the unit is the suffix.
    pub name: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// What it is when left out.
    pub default: Preset,
    /// One or two sentences for the guide.
    pub meaning: &'static str,
}

/// What a key takes.
#[derive(Debug)]
pub enum Kind {
    /// Any text of 1..=200 characters.
    Text,
    /// The name of a congestion control: 1..=15 of a-z, 0-9, `_` and `-` (the kernel's TCP_CA_NAME_MAX is 16 with its
    /// end).
    Name,
    /// A number in `from..=to`, or above `from` if `above`.
    Number {
        /// Lowest accepted, or the bound itself with `above`.
        from: f64,
        /// Highest accepted.
        to: f64,
        /// Whether `from` itself is left out.
        above: bool,
    },
    /// A whole number in `from..=to`.
    Integer {
        /// Lowest accepted.
        from: i64,
        /// Highest accepted.
        to: i64,
    },
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A number, or a range `[from, to]` of numbers to draw from, in `0..=to`.
    Range {
        /// Highest accepted.
        to: f64,
    },
    /// True or false.
    Flag,
    /// The name of a node: 1..=32 of letters, digits, `_`, `-`, `.`, and `#` for the number of the link or host within
    /// its block.
    Node,
    /// A list of two names of nodes.
    Ends,
    /// A list of up to 64 whole numbers in `from..=to`, or of rows of so many if `columns` is above 1.
    Integers {
        /// Lowest accepted.
        from: i64,
        /// Highest accepted.
        to: i64,
        /// Numbers in a row.
        columns: usize,
    },
}

/// What a key is when left out.
#[derive(Debug)]
pub enum Preset {
    /// This text.
    Text(&'static str),
    /// This number.
    Number(f64),
    /// This whole number.
    Integer(i64),
    /// True or false.
    Flag(bool),
    /// A range to draw from.
    Range(f64, f64),
    /// One for hosts of the era "2012", another for "modern".
    ByEra {
        /// With `era = "2012"`.
        y2012: &'static Self,
        /// With `era = "modern"`.
        modern: &'static Self,
    },
    /// Something the reader works out; the text says what, for the guide.
    Derived(&'static str),
    /// Nothing: the key may be absent.
    Absent,
    /// Nothing: the key must be given.
    Required,
}

/// A table of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// Above the first heading.
    Top,
    /// `[access]`.
    Access,
    /// `[path]`.
    Path,
    /// `[[links]]`.
    Link,
    /// `[[changes]]`.
    Change,
    /// `[[hosts]]`.
    Host,
    /// `[hosts.tcp]`.
    Tcp,
    /// `[hosts.last_link]`: what a host knows and says of its own link.
    LastLink,
    /// `[hosts.hd]` and its like: the parameters of a law that has any.
    Law(LawName),
    /// `[[hosts.flows]]`.
    Flow,
}

/// A table inside a table.
#[derive(Debug)]
pub struct Child {
    /// As written in the file.
    pub name: &'static str,
    /// What is in it.
    pub section: Section,
    /// Whether there may be several: `[[name]]` instead of `[name]`.
    pub repeated: bool,
}

static HOST_CHILDREN: LazyLock<Vec<Child>> = LazyLock::new(|| {
    let child = |name, section| Child { name, section, repeated: false };
    let mut children = vec![child("tcp", Section::Tcp), child("last_link", Section::LastLink)];
    children.extend(Section::laws().filter_map(|section| match section {
        Section::Law(law) => Some(child(law.as_str(), section)),
        _ => None,
    }));
    children.push(Child { name: "flows", section: Section::Flow, repeated: true });
    children
});

impl Section {
    /// All, in the order of the file.
    pub fn all() -> impl Iterator<Item = Self> {
        let before =
            [Self::Top, Self::Access, Self::Path, Self::Link, Self::Change, Self::Host, Self::Tcp, Self::LastLink];
        before.into_iter().chain(Self::laws()).chain([Self::Flow])
    }

    /// Those of the laws that have parameters.
    fn laws() -> impl Iterator<Item = Self> {
        LawName::ALL.into_iter().filter(|law| !law.parameters().is_empty()).map(Self::Law)
    }

    /// As it stands in the file.
    pub fn heading(self) -> &'static str {
        match self {
            Self::Top => "",
            Self::Access => "[access]",
            Self::Path => "[path]",
            Self::Link => "[[links]]",
            Self::Change => "[[changes]]",
            Self::Host => "[[hosts]]",
            Self::Tcp => "[hosts.tcp]",
            Self::LastLink => "[hosts.last_link]",
            Self::Law(law) => laws::heading(law),
            Self::Flow => "[[hosts.flows]]",
        }
    }

    /// The keys of the table itself.
    pub fn keys(self) -> &'static [Key] {
        match self {
            Self::Top => TOP,
            Self::Access => ACCESS,
            Self::Path => PATH,
            Self::Link => LINK,
            Self::Change => CHANGE,
            Self::Host => HOST,
            Self::Tcp => TCP,
            Self::LastLink => LAST_LINK,
            Self::Law(law) => laws::keys(law),
            Self::Flow => FLOW,
        }
    }

    /// The tables inside it.
    pub fn children(self) -> &'static [Child] {
        match self {
            Self::Top => &[
                Child { name: "access", section: Self::Access, repeated: false },
                Child { name: "path", section: Self::Path, repeated: false },
                Child { name: "links", section: Self::Link, repeated: true },
                Child { name: "changes", section: Self::Change, repeated: true },
                Child { name: "hosts", section: Self::Host, repeated: true },
            ],
            Self::Host => &HOST_CHILDREN,
            _ => &[],
        }
    }

    /// The key of this name.
    pub fn key(self, name: &str) -> Option<&'static Key> {
        self.keys().iter().find(|key| key.name == name)
    }

    /// The table of this name.
    pub fn child(self, name: &str) -> Option<&'static Child> {
        self.children().iter().find(|child| child.name == name)
    }

    /// Every name that may stand in the table.
    pub fn names(self) -> Vec<&'static str> {
        self.keys().iter().map(|key| key.name).chain(self.children().iter().map(|child| child.name)).collect()
    }
}

impl Kind {
    /// What is accepted, in words.
    pub fn accepted(&self) -> String {
        match self {
            Self::Text => "text of 1 to 200 characters".into(),
            Self::Name => "the name of a congestion control: up to 15 of a-z, 0-9, _ and -".into(),
            Self::Number { from, to, above: false } => format!("a number from {from} to {to}"),
            Self::Number { from, to, above: true } => format!("a number above {from}, up to {to}"),
            Self::Integer { from, to } => format!("a whole number from {from} to {to}"),
            Self::Choice(words) => words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", "),
            Self::Range { to } => format!("a number from 0 to {to}, or a range [from, to] of such numbers"),
            Self::Flag => "true, false".into(),
            Self::Node => "a name: up to 32 letters, digits, _, - and ., with # for a number".into(),
            Self::Ends => "a list of two names: up to 32 letters, digits, _, - and . each, with # for a number".into(),
            Self::Integers { from, to, columns: 1 } => format!("a list of up to 64 whole numbers from {from} to {to}"),
            Self::Integers { from, to, columns } => {
                format!("a list of up to 64 lists of {columns} whole numbers from {from} to {to}")
            }
        }
    }

    /// Whether the key takes text, so that `era=2012` on the command line means the text "2012".
    pub const fn takes_text(&self) -> bool {
        matches!(self, Self::Text | Self::Name | Self::Node | Self::Choice(_))
    }
}

impl Preset {
    /// The value, if there is one that does not depend on anything but the era.
    pub fn value(&self, era: &str) -> Option<Value> {
        match self {
            Self::Text(text) => Some(Value::String((*text).into())),
            Self::Number(number) => Some(Value::Float(*number)),
            Self::Integer(number) => Some(Value::Integer(*number)),
            Self::Flag(flag) => Some(Value::Boolean(*flag)),
            Self::Range(from, to) => Some(Value::Array(vec![Value::Float(*from), Value::Float(*to)])),
            Self::ByEra { y2012, modern } => if era == "modern" { modern } else { y2012 }.value(era),
            Self::Derived(_) | Self::Absent | Self::Required => None,
        }
    }

    /// In words, for the guide.
    pub fn describe(&self) -> String {
        match self {
            Self::Text(text) => format!("`\"{text}\"`"),
            Self::Number(number) => format!("`{number}`"),
            Self::Integer(number) => format!("`{number}`"),
            Self::Flag(flag) => format!("`{flag}`"),
            Self::Range(from, to) => format!("`[{from}, {to}]`"),
            Self::ByEra { y2012, modern } => format!("{} (2012), {} (modern)", y2012.describe(), modern.describe()),
            Self::Derived(words) => (*words).into(),
            Self::Absent => "none".into(),
            Self::Required => "must be given".into(),
        }
    }
}
