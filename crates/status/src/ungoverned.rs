//! Connections that are not under control.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Connections that are not under control for one reason, without idle ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ungoverned {
    /// The reason in one word, such as "chosen" or "leave".
    pub why: String,
    /// The same in words.
    #[serde(default)]
    pub because: String,
    /// Whether the configuration would have them controlled; `false`: it leaves them alone.
    pub escapes: bool,
    /// Their congestion controls.
    pub congestion_controls: Vec<String>,
    /// How many there are.
    pub connections: u32,
    /// Of those, the ones that are sending.
    pub busy: u32,
}

/// Many connections: `2 connections, 1 of them sending: ...`.
impl fmt::Display for Ungoverned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { connections, busy, because, .. } = self;
        let plural = if *connections == 1 { "" } else { "s" };
        write!(f, "{connections} connection{plural}, {busy} of them sending: {because}")
    }
}
