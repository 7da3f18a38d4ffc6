//! The values that a key takes, with their Rust type.

use crate::declare::Slot;
use crate::error::Problem;
use crate::kind::{Kind, as_number};
use lasthop_units::{Bytes, Probability, Rate, Span};
use toml::Value;

/// The values that a key takes, and their conversion to its type.
pub struct Takes<T> {
    pub(crate) kind: Kind,
    pub(crate) read: Box<Read<T>>,
}

type Read<T> = dyn Fn(&Value) -> Result<T, Problem>;

impl<T: 'static> Takes<T> {
    /// A kind, and the conversion of a checked value.
    pub fn new(kind: Kind, read: impl Fn(&Value) -> T + 'static) -> Self {
        Self { kind, read: Box::new(move |value| Ok(read(value))) }
    }

    /// Applies a further conversion.
    pub fn map<U>(self, make: impl Fn(T) -> U + 'static) -> Takes<U> {
        self.and_then(move |value| Ok(make(value)))
    }

    /// Applies a further conversion that may fail.
    pub fn and_then<U>(self, make: impl Fn(T) -> Result<U, Problem> + 'static) -> Takes<U> {
        Takes { kind: self.kind, read: Box::new(move |value| make((self.read)(value)?)) }
    }
}

/// Any value that `read` accepts; its error explains a rejection. `accepted` describes the accepted values.
pub fn other<T>(accepted: &'static str, read: impl Fn(&Value) -> Result<T, String> + 'static) -> Takes<T> {
    let read = move |value: &Value| read(value).map_err(|problem| Problem::new(problem, accepted));
    Takes { kind: Kind::Other(accepted), read: Box::new(read) }
}

/// A number in `from..=to`.
pub fn number(from: f64, to: f64) -> Takes<f64> {
    Takes::new(Kind::Number { from, to, above: false }, as_number)
}

/// A number above `from`, up to `to`.
pub fn above(from: f64, to: f64) -> Takes<f64> {
    Takes::new(Kind::Number { from, to, above: true }, as_number)
}

/// A number of seconds.
pub fn seconds(from: f64, to: f64) -> Takes<Span> {
    number(from, to).map(Span::from_secs_f64)
}

/// A number of milliseconds.
pub fn milliseconds(from: f64, to: f64) -> Takes<Span> {
    number(from, to).map(|milliseconds| Span::from_secs_f64(milliseconds / 1e3))
}

/// A number of Mb/s.
pub fn mbps(from: f64, to: f64) -> Takes<Rate> {
    number(from, to).map(Rate::from_mbps)
}

/// A number from 0 to 1.
pub fn probability() -> Takes<Probability> {
    number(0.0, 1.0).map(|number| Probability::new(number).expect("a checked probability is in 0..=1"))
}

/// A number, or a range of numbers to draw from, in `0..=to`: its ends.
pub fn range(to: f64) -> Takes<(f64, f64)> {
    Takes::new(Kind::Range { to }, |value| match value.as_array().map(Vec::as_slice) {
        Some([from, to]) => (as_number(from), as_number(to)),
        _ => (as_number(value), as_number(value)),
    })
}

/// A whole number in `from..=to`.
///
/// # Panics
/// If its type does not hold both bounds.
pub fn integer<T: TryFrom<i64> + 'static>(from: i64, to: i64) -> Takes<T> {
    assert_holds::<T>(from, to);
    Takes::new(Kind::Integer { from, to }, whole)
}

/// A whole number of bytes.
pub fn bytes(from: i64, to: i64) -> Takes<Bytes> {
    integer(from, to).map(Bytes::new)
}

/// A whole number of KiB.
pub fn kib(from: i64, to: i64) -> Takes<Bytes> {
    integer(from, to).map(Bytes::from_kib)
}

/// True or false.
pub fn flag() -> Takes<bool> {
    Takes::new(Kind::Flag, |value| value.as_bool().expect("a checked flag is true or false"))
}

/// One of these words, each with its meaning.
pub fn choice<T: Clone + 'static>(words: &[(&'static str, T)]) -> Takes<T> {
    let (words, meant): (Vec<_>, Vec<T>) = words.iter().cloned().unzip();
    Takes::new(Kind::Choice(words.clone()), move |value| {
        let at = words.iter().position(|word| value.as_str() == Some(word));
        meant[at.expect("a checked word is one of these")].clone()
    })
}

/// A value, or none: of an optional key whose words have one for the latter, so that a run can take back what a file says.
pub struct OrNone<T>(Option<T>);

impl<T> Slot<OrNone<T>> for Option<T> {
    const MAY_BE_ABSENT: bool = true;

    fn fill(value: Option<OrNone<T>>) -> Self {
        value.and_then(|value| value.0)
    }
}

/// "none", which is as the key left out, or one of these words.
pub fn choice_or_none<T: Clone + 'static>(words: &[(&'static str, T)]) -> Takes<OrNone<T>> {
    let words = words.iter().map(|(word, meant)| (*word, Some(meant.clone())));
    choice(&[("none", None)].into_iter().chain(words).collect::<Vec<_>>()).map(OrNone)
}

/// Any text of 1 to `most` characters.
pub fn text(most: usize) -> Takes<String> {
    Takes::new(Kind::Text(most), words)
}

/// Text of 1 to `most` bytes, without control characters.
pub fn line(most: usize) -> Takes<String> {
    Takes::new(Kind::Line(most), words)
}

/// A list of texts.
pub fn texts() -> Takes<Vec<String>> {
    Takes::new(Kind::Texts, |value| value.as_array().into_iter().flatten().map(words).collect())
}

/// The name of a congestion control.
pub fn name() -> Takes<String> {
    Takes::new(Kind::Name, words)
}

/// The name of a node.
pub fn node() -> Takes<String> {
    Takes::new(Kind::Node, words)
}

/// A list of the names of two nodes.
pub fn ends() -> Takes<[String; 2]> {
    Takes::new(Kind::Ends, |value| [0, 1].map(|end| words(&value[end])))
}

/// A list of 1 to 64 whole numbers in `from..=to`.
///
/// # Panics
/// If their type does not hold both bounds.
pub fn integers<T: TryFrom<i64> + 'static>(from: i64, to: i64) -> Takes<Vec<T>> {
    assert_holds::<T>(from, to);
    Takes::new(Kind::Integers { from, to, columns: 1 }, |value| {
        value.as_array().into_iter().flatten().map(whole).collect()
    })
}

/// A list of 1 to 64 rows of whole numbers in `from..=to`, each of the given length.
///
/// # Panics
/// If their type does not hold both bounds.
pub fn rows<T: TryFrom<i64> + 'static, const N: usize>(from: i64, to: i64) -> Takes<Vec<[T; N]>> {
    assert_holds::<T>(from, to);
    let row = |row: &Value| std::array::from_fn(|column| whole(&row[column]));
    Takes::new(Kind::Integers { from, to, columns: N }, move |value| {
        value.as_array().into_iter().flatten().map(row).collect()
    })
}

/// Fails when the section is made, and not only when a user writes a number that does not fit the type.
fn assert_holds<T: TryFrom<i64>>(from: i64, to: i64) {
    let holds = [from, to].into_iter().all(|end| T::try_from(end).is_ok());
    assert!(holds, "a whole number from {from} to {to} is no {}", std::any::type_name::<T>());
}

fn whole<T: TryFrom<i64>>(value: &Value) -> T {
    let number = value.as_integer().and_then(|number| T::try_from(number).ok());
    number.expect("a checked whole number is in its range, which its type holds")
}

fn words(value: &Value) -> String {
    value.as_str().expect("a checked text is one").to_owned()
}
