//! The keys of a user's file: names, kinds, ranges, defaults, docs; and the messages about mistakes.
//!
//! A table of a file is declared once, by [`keys!`]. That makes
//!
//! - a struct with a typed field for each key, whose doc comment is the key's meaning in the guide,
//! - the same as data, a [`Section`]: from it come the check of a text, the defaults, the hints, the tables of the
//!   guide and the JSON Schema for editors ([`Section::json_schema`]),
//! - the reading of the struct from a text that has been checked.
//!
//! ```
//! use lasthop_keys::{Document, Keys, Override, integer, keys, milliseconds};
//! use lasthop_units::Span;
//!
//! keys! {
//!     /// `[path]`.
//!     pub struct Path {
//!         /// Delay there and back in milliseconds.
//!         rtt_ms: Span = milliseconds(0.0, 60_000.0), 20.0;
//!         /// The queue at each end in packets.
//!         queue_packets: usize = integer(1, 1_000_000), 1_000;
//!     }
//! }
//!
//! let set = Override::parse("queue_packets=7").unwrap();
//! let document = Document::read("path.toml", "rtt_ms = 4", &[set], Path::section()).unwrap();
//! let path = Path::read(&document.top()).unwrap();
//! assert_eq!((path.rtt_ms, path.queue_packets), (Span::from_millis(4), 7));
//!
//! let error = Document::read("path.toml", "rtt_ms = -4", &[], Path::section()).unwrap_err();
//! assert_eq!(error.to_string(), "path.toml:1: rtt_ms: -4 is out of range; accepted: a number from 0 to 60000");
//! ```
//!
//! The reader checks conditions between keys and reports them by [`Document::error`].
//!
//! ```text
//!   text --TOML--> table --overrides--> table --check against the Section--> Document (every key known, in range, and there)
//!                                                                               | Part: one table of it, with its place
//!                                                                               v
//!                                                             struct: each key by its Takes (a Kind, and a conversion)
//! ```
//!
//! [`Preset`] is the default of a key, [`When`] a condition of its use, [`Presence`] the condition of a table.
#![deny(clippy::disallowed_methods)]

mod declare;
mod document;
mod effect;
mod error;
mod key_path;
mod kind;
mod overrides;
mod schema;
mod section;
mod spelling;
mod takes;

#[doc(hidden)]
pub use serde;

pub use declare::{Keys, Part, Slot, Tables};
#[doc(hidden)]
pub use declare::{conditions, key_of, meaning, plain};
pub use document::{Document, Source};
pub use effect::{COMMAND_LINE, Given, IneffectiveKey, ineffective_keys};
pub use error::{DocumentError, KeyError, Problem};
pub use key_path::{Path, line_of_key, nearest, shown, wrong_type};
pub use kind::Kind;
pub use overrides::{Case, Override, Vary};
pub use section::{Child, Key, OTHERWISE, Of, Presence, Preset, Section, When, by_word, derived};
pub use spelling::nearest_names;
pub use takes::{
    OrNone, Takes, above, bytes, choice, choice_or_none, ends, flag, integer, integers, kib, line, mbps, milliseconds,
    name, node, number, other, probability, range, rows, seconds, text, texts,
};
