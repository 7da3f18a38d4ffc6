//! The declaration of a table, and its struct.

use crate::document::Document;
use crate::error::DocumentError;
use crate::key_path::Path;
use crate::section::{Key, Preset, Section, When};
use crate::takes::Takes;
use toml::{Table, Value};

/// A table of a file, as a struct.
pub trait Keys: Sized {
    /// The same table as data.
    fn section() -> &'static Section;

    /// All keys at their defaults.
    ///
    /// # Panics
    /// If a key is mandatory.
    fn preset() -> Self {
        let document = Document::from_table("the defaults", Table::new(), &[], Self::section());
        let keys = document.and_then(|document| Self::read(&document.top()));
        keys.unwrap_or_else(|error| panic!("{error}"))
    }

    /// Whether a file may have every one of these values.
    ///
    /// # Errors
    /// The first invalid value, with its key and the accepted values; `what` names the whole in the message.
    ///
    /// # Panics
    /// If the struct does not serialize as its keys.
    fn validate(&self, what: &str) -> Result<(), DocumentError>
    where
        Self: serde::Serialize,
    {
        let table = Table::try_from(self).unwrap_or_else(|error| panic!("{what} is TOML: {error}"));
        let document = Document::from_table(what, table, &[], Self::section())?;
        Self::read(&document.top()).map(drop)
    }

    /// The keys of a table of a checked document.
    ///
    /// # Errors
    /// If a conversion rejects a value, or the values contradict each other.
    fn read(part: &Part<'_>) -> Result<Self, DocumentError>;
}

/// A table of a checked document.
#[derive(Clone, Debug)]
pub struct Part<'a> {
    /// The document.
    pub document: &'a Document,
    /// The table.
    pub table: &'a Table,
    /// Its place.
    pub path: Path,
}

/// The field of a key: an `Option` if the key may be absent, else its type.
pub trait Slot<T> {
    /// Whether it is an `Option`.
    const MAY_BE_ABSENT: bool;

    /// The field; `None`: there is no value.
    fn fill(value: Option<T>) -> Self;
}

impl<T> Slot<T> for T {
    const MAY_BE_ABSENT: bool = false;

    fn fill(value: Option<T>) -> Self {
        value.expect("a key that may be absent is an Option")
    }
}

impl<T> Slot<T> for Option<T> {
    const MAY_BE_ABSENT: bool = true;

    fn fill(value: Self) -> Self {
        value
    }
}

/// The field of an inner table: a struct, an `Option` of it if it may be absent, a `Vec` of it for `[[name]]`.
pub trait Tables: Sized {
    /// Whether several are allowed.
    const REPEATED: bool = false;

    /// Its keys and tables.
    fn section() -> &'static Section;

    /// Its value in a table of a checked document.
    ///
    /// # Errors
    /// As [`Keys::read`].
    fn read(around: &Part<'_>, name: &str) -> Result<Self, DocumentError>;
}

impl<T: Keys> Tables for T {
    fn section() -> &'static Section {
        T::section()
    }

    fn read(around: &Part<'_>, name: &str) -> Result<Self, DocumentError> {
        Option::read(around, name).map(|there| there.expect("a table that may be absent is an Option"))
    }
}

impl<T: Keys> Tables for Option<T> {
    fn section() -> &'static Section {
        T::section()
    }

    fn read(around: &Part<'_>, name: &str) -> Result<Self, DocumentError> {
        let Some(Value::Table(table)) = around.table.get(name) else { return Ok(None) };
        T::read(&Part { document: around.document, table, path: around.path.key(name) }).map(Some)
    }
}

impl<T: Keys> Tables for Vec<T> {
    const REPEATED: bool = true;

    fn section() -> &'static Section {
        T::section()
    }

    fn read(around: &Part<'_>, name: &str) -> Result<Self, DocumentError> {
        let blocks = around.table.get(name).and_then(Value::as_array).into_iter().flatten();
        let list = around.path.key(name);
        let block = |(index, block): (usize, &Value)| {
            let table = block.as_table().expect("a checked block is a table");
            T::read(&Part { document: around.document, table, path: list.index(index) })
        };
        blocks.enumerate().map(block).collect()
    }
}

impl Part<'_> {
    /// The value of a key.
    ///
    /// # Errors
    /// If the conversion rejects it.
    pub fn key<F: Slot<T>, T: 'static>(&self, name: &str, takes: &Takes<T>) -> Result<F, DocumentError> {
        let value = self.table.get(name).map(|value| (takes.read)(value)).transpose();
        value.map(F::fill).map_err(|problem| self.document.problem(&self.path.key(name), problem))
    }

    /// An error about a key of this table.
    pub fn error(&self, key: &str, problem: impl Into<String>, accepted: impl Into<String>) -> DocumentError {
        self.document.error(&self.path.key(key), problem, accepted)
    }
}

/// The key of a field of this type.
///
/// # Panics
/// If its type and its default disagree: an `Option` is needed exactly if there may be no value.
#[doc(hidden)]
pub fn key_of<F: Slot<T>, T>(
    name: &'static str,
    takes: Takes<T>,
    default: Preset,
    meaning: &'static str,
    when: Vec<When>,
) -> Key {
    match default {
        Preset::Value(_) | Preset::Required => assert!(!F::MAY_BE_ABSENT, "{name} always has a value: no Option"),
        _ if default.can_be_none() => assert!(F::MAY_BE_ABSENT, "{name} may be absent: an Option"),
        _ => {}
    }
    Key { name, kind: takes.kind, default, meaning, when, may_wait: false }
}

/// An identifier without the `r#` of a Rust keyword.
#[doc(hidden)]
pub const fn plain(identifier: &'static str) -> &'static str {
    match identifier.as_bytes() {
        [b'r', b'#', ..] => identifier.split_at(2).1,
        _ => identifier,
    }
}

/// The lines of a doc comment as one text.
#[doc(hidden)]
pub const fn meaning(lines: &'static str) -> &'static str {
    lines.trim_ascii()
}

/// The conditions of a key, if it has any.
#[doc(hidden)]
pub fn conditions<const N: usize>(of_key: [Vec<When>; N]) -> Vec<When> {
    of_key.into_iter().flatten().collect()
}

/// Declares tables of a file, each as a struct that is [`Keys`](crate::Keys).
///
/// - A key: `/// meaning`, `name: Type = TAKES, DEFAULT when CONDITIONS;`. `TAKES` is a [`Takes`](crate::Takes), and
///   `DEFAULT` converts to a [`Preset`](crate::Preset). The type is that of `TAKES`, or an `Option` of it if there is
///   no default. The conditions are a `Vec` of [`When`](crate::When); without them the key is always used.
/// - `tables { /// meaning  name: Type, PRESENCE; }`: tables inside it, each a struct, an `Option` of one, or a `Vec`.
/// - `with { /// meaning  field: Type; }`: structs with keys in the same table.
/// - `adjust FUNCTION;`: a final change to the section, by a function of `&mut Section`.
/// - `check FUNCTION;`: the conditions between keys, by a function of the struct and its [`Part`](crate::Part).
#[macro_export]
macro_rules! keys {
    ($(
        $(#[$about:meta])*
        $vis:vis struct $name:ident {
            $($(#[doc = $meaning:literal])+ $key:ident: $type:ty = $takes:expr, $default:expr $(, when $when:expr)?;)*
            $(tables { $($(#[doc = $of_child:literal])+ $child:ident: $table:ty, $presence:expr;)+ })?
            $(with { $($(#[doc = $of_part:literal])+ $part:ident: $also:ty;)+ })?
            $(adjust $adjust:expr;)?
            $(check $check:expr;)?
        }
    )+) => {$(
        $(#[$about])*
        $vis struct $name {
            $($(#[doc = $meaning])+ pub $key: $type,)*
            $($($(#[doc = $of_child])+ pub $child: $table,)+)?
            $($($(#[doc = $of_part])+ pub $part: $also,)+)?
        }

        impl $crate::Keys for $name {
            fn section() -> &'static $crate::Section {
                static SECTION: std::sync::LazyLock<$crate::Section> = std::sync::LazyLock::new(|| {
                    #[allow(unused_mut, reason = "not every table has all parts")]
                    let mut section = $crate::Section {
                        keys: vec![$($crate::key_of::<$type, _>(
                            $crate::plain(stringify!($key)),
                            $takes,
                            $crate::Preset::from($default),
                            const { $crate::meaning(concat!($($meaning),+)) },
                            $crate::conditions([$($when)?]),
                        )),*],
                        children: vec![$($($crate::Child {
                            name: $crate::plain(stringify!($child)),
                            section: <$table as $crate::Tables>::section(),
                            repeated: <$table as $crate::Tables>::REPEATED,
                            most: $crate::Child::MOST,
                            presence: $presence,
                            meaning: const { $crate::meaning(concat!($($of_child),+)) },
                        }),+)?],
                        presets: Vec::new(),
                        preset_pairs: Vec::new(),
                        others: None,
                    };
                    $($(
                        section.keys.extend_from_slice(&<$also as $crate::Keys>::section().keys);
                        section.children.extend_from_slice(&<$also as $crate::Keys>::section().children);
                    )+)?
                    $(
                        let adjust: fn(&mut $crate::Section) = $adjust;
                        adjust(&mut section);
                    )?
                    section
                });
                &SECTION
            }

            fn read(part: &$crate::Part<'_>) -> Result<Self, $crate::DocumentError> {
                let keys = Self {
                    $($key: part.key($crate::plain(stringify!($key)), &$takes)?,)*
                    $($($child: <$table as $crate::Tables>::read(part, stringify!($child))?,)+)?
                    $($($part: <$also as $crate::Keys>::read(part)?,)+)?
                };
                $($check(&keys, part)?;)?
                Ok(keys)
            }
        }
    )+};
}

/// The name of a key, checked against its struct: `key!(HostKeys, count)`.
#[macro_export]
macro_rules! key {
    ($keys:ty, $key:ident) => {{
        let _ = |keys: &$keys| _ = &keys.$key;
        $crate::plain(stringify!($key))
    }};
}

/// Declares enums whose variants are words of a file: `Variant = "word"`.
///
/// They are `Copy`, and compared, displayed and serialized by their words. They have `WORDS`, for
/// [`choice`](crate::choice), and `as_str`.
#[macro_export]
macro_rules! words {
    ($(
        $(#[$about:meta])*
        $vis:vis enum $name:ident { $($(#[$of_variant:meta])* $variant:ident = $word:literal),+ $(,)? }
    )+) => {$(
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, $crate::serde::Serialize, $crate::serde::Deserialize)]
        #[serde(crate = "lasthop_keys::serde")]
        $vis enum $name {
            $($(#[$of_variant])* #[serde(rename = $word)] $variant),+
        }

        impl $name {
            /// Every word with its variant.
            pub const WORDS: &'static [(&'static str, Self)] = &[$(($word, Self::$variant)),+];

            /// The word in the file.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    )+};
}
