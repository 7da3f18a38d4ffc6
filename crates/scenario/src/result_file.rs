//! Results as files: `result.json`, `comparison.json` and `study.json`.

use crate::error::ResultError;
use crate::result::SCHEMA_VERSION;
use lasthop_files::{MOST_RESULT_BYTES, text_of};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A result stored as a JSON file; its field `schema_version` is [`SCHEMA_VERSION`].
pub trait ResultFile: Serialize + DeserializeOwned {
    /// Reads the file.
    ///
    /// # Errors
    /// If it cannot be read, is no such result, or has another schema version.
    fn load(path: &std::path::Path) -> Result<Self, ResultError> {
        let text = text_of(path, MOST_RESULT_BYTES);
        Self::from_json(&text.map_err(|source| ResultError::Read { path: path.to_owned(), source })?)
    }

    /// Reads the text of the file. Checks the version first, so that a newer file is reported as such, and not as a
    /// missing key.
    ///
    /// # Errors
    /// As [`ResultFile::load`].
    fn from_json(text: &str) -> Result<Self, ResultError> {
        let wrong = |key: String, message: String| ResultError::Format { key, message };
        let value: serde_json::Value =
            serde_json::from_str(text).map_err(|error| wrong("(the whole)".into(), error.to_string()))?;
        let found = value.get("schema_version").and_then(serde_json::Value::as_u64);
        let found = found.ok_or_else(|| wrong("schema_version".into(), "there is no such number".into()))?;
        if found != u64::from(SCHEMA_VERSION) {
            return Err(ResultError::Version { found, known: SCHEMA_VERSION });
        }
        serde_path_to_error::deserialize(value)
            .map_err(|error| wrong(error.path().to_string(), error.into_inner().to_string()))
    }

    /// The text of the file.
    ///
    /// # Panics
    /// Never: results are plain data.
    fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("results are plain data");
        text.push('\n');
        text
    }
}

/// For counts omitted from a file if there is nothing to count.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub const fn is_zero(number: &u64) -> bool {
    *number == 0
}
