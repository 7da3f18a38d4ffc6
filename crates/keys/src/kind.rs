//! The kinds of values, and the check of a value against a kind.

use crate::error::Problem;
use crate::key_path::{nearest, shown, wrong_type};
use toml::Value;

/// The values that a key takes.
#[derive(Clone, Debug)]
pub enum Kind {
    /// Any text from 1 to this many characters.
    Text(usize),
    /// Text of 1 to this many bytes, without control characters.
    Line(usize),
    /// A list of texts.
    Texts,
    /// The name of a congestion control: 1..=15 of a-z, 0-9, `_` and `-` (the kernel's TCP_CA_NAME_MAX is 16 with the
    /// terminating zero); or the path of a C header, which ends with `.h`.
    Name,
    /// A number in `from..=to`, or above `from` if `above`.
    Number {
        /// Lowest accepted, or the bound itself with `above`.
        from: f64,
        /// Highest accepted.
        to: f64,
        /// Whether `from` itself is excluded.
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
    Choice(Vec<&'static str>),
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
    /// A list of 1 to 64 whole numbers in `from..=to`; rows of numbers if `columns` is above 1.
    Integers {
        /// Lowest accepted.
        from: i64,
        /// Highest accepted.
        to: i64,
        /// Numbers in a row.
        columns: usize,
    },
    /// A description in words; the key's type checks the value.
    Other(&'static str),
}

impl Kind {
    /// The accepted values, in words.
    pub fn accepted(&self) -> String {
        match self {
            Self::Text(most) => format!("text of 1 to {most} characters"),
            Self::Line(most) => format!("text of 1 to {most} bytes, without control characters"),
            Self::Texts => "a list of texts".into(),
            Self::Name => {
                "the name of a congestion control: up to 15 of a-z, 0-9, _, - and +; or a header, such as ./mine.h"
                    .into()
            }
            Self::Number { from: f64::MIN, to: f64::MAX, .. } => "a number".into(),
            Self::Number { from, to, above: false } => format!("a number from {from} to {to}"),
            Self::Number { from, to, above: true } => format!("a number above {from}, up to {to}"),
            Self::Integer { from, to } => format!("a whole number from {from} to {to}"),
            Self::Choice(words) => words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", "),
            Self::Range { to } => format!("a number from 0 to {to}, or a range [from, to] of such numbers"),
            Self::Flag => "true, false".into(),
            Self::Node => "a name: up to 32 letters, digits, _, - and ., with # for a number".into(),
            Self::Ends => "a list of two names: up to 32 letters, digits, _, - and . each, with # for a number".into(),
            Self::Integers { from, to, columns: 1 } => format!("a list of 1 to 64 whole numbers from {from} to {to}"),
            Self::Integers { from, to, columns } => {
                format!("a list of 1 to 64 lists of {columns} whole numbers from {from} to {to}")
            }
            Self::Other(words) => (*words).into(),
        }
    }

    /// Whether the key takes text. Then `era=2012` on the command line means the text "2012".
    pub const fn takes_text(&self) -> bool {
        matches!(self, Self::Text(_) | Self::Line(_) | Self::Name | Self::Node | Self::Choice(_))
    }

    /// The value in the form from which typed keys are read: numbers as floats, whole numbers as integers.
    ///
    /// # Errors
    /// If the key does not take it.
    pub fn check(&self, value: Value) -> Result<Value, Problem> {
        let problem = |problem: String| {
            let did_you_mean = match (self, &value) {
                (Self::Choice(words), Value::String(word)) => nearest(word, words).map(|word| format!("\"{word}\"")),
                _ => None,
            };
            Err(Problem { problem, accepted: self.accepted(), did_you_mean })
        };
        let fail = |what: &str| problem(format!("{} {what}", shown(&value)));
        let is = |holds: bool, problem: &str| if holds { Ok(value.clone()) } else { fail(problem) };
        match (self, &value) {
            (Self::Text(most), Value::String(text)) => {
                let length = text.trim().chars().count();
                is((1..=*most).contains(&length), &format!("has {length} characters"))
            }
            (Self::Line(most), Value::String(text)) => {
                is((1..=*most).contains(&text.len()) && !text.contains(char::is_control), "is no such text")
            }
            (Self::Texts, Value::Array(texts)) => is(texts.iter().all(Value::is_str), "is no such list"),
            (Self::Name, Value::String(name)) => {
                let legal =
                    |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit() || b"_-+".contains(&letter);
                let is_header = name.ends_with(".h") && !name.contains(char::is_control);
                let holds = is_header || (1..=15).contains(&name.len()) && name.bytes().all(legal);
                is(holds, "cannot be the name of a congestion control")
            }
            (Self::Choice(words), Value::String(word)) => is(words.contains(&word.as_str()), "is not one of the words"),
            (Self::Integer { from, to }, Value::Integer(number)) => {
                is((from..=to).contains(&number), "is out of range")
            }
            (Self::Number { from, to, above }, Value::Integer(_) | Value::Float(_)) => {
                let number = as_number(&value);
                let inside = (*from..=*to).contains(&number) && !(*above && number == *from);
                if inside { Ok(Value::Float(number)) } else { fail("is out of range") }
            }
            (Self::Range { to }, Value::Integer(_) | Value::Float(_)) => {
                let number = as_number(&value);
                if (0.0..=*to).contains(&number) { Ok(Value::Float(number)) } else { fail("is out of range") }
            }
            (Self::Range { to }, Value::Array(ends)) => match ends.as_slice() {
                [from, until] if [from, until].iter().all(|end| end.is_integer() || end.is_float()) => {
                    let (from, until) = (as_number(from), as_number(until));
                    if ![from, until].iter().all(|end| (0.0..=*to).contains(end)) {
                        return fail("is out of range");
                    }
                    if from > until { fail("ends before it begins") } else { Ok(vec![from, until].into()) }
                }
                _ => fail("is not a range of two numbers"),
            },
            (Self::Flag, Value::Boolean(_)) => Ok(value),
            (Self::Node, Value::String(name)) => is(is_node_name(name), "cannot be the name of a node"),
            (Self::Ends, Value::Array(ends)) => {
                let name = |end: &Value| end.as_str().is_some_and(is_node_name);
                is(ends.len() == 2 && ends.iter().all(name), "is no list of two names")
            }
            (Self::Integers { from, to, columns }, Value::Array(rows)) => {
                let inside = |value: &Value| value.as_integer().is_some_and(|number| (*from..=*to).contains(&number));
                let row = |value: &Value| match value.as_array() {
                    Some(numbers) => numbers.len() == *columns && numbers.iter().all(inside),
                    None => *columns == 1 && inside(value),
                };
                is((1..=64).contains(&rows.len()) && rows.iter().all(row), "is no such list")
            }
            (Self::Other(_), _) => Ok(value),
            (_, wrong) => problem(wrong_type(wrong)),
        }
    }
}

fn is_node_name(name: &str) -> bool {
    let legal = |letter: u8| letter.is_ascii_alphanumeric() || b"_-.#".contains(&letter);
    (1..=32).contains(&name.len()) && name.bytes().all(legal)
}

/// The numeric value, whole or not; NaN if it is not a number.
pub(crate) fn as_number(value: &Value) -> f64 {
    match value {
        Value::Integer(number) => *number as f64,
        Value::Float(number) => *number,
        _ => f64::NAN,
    }
}
