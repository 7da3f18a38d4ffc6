//! Errors of a result file.

use std::path::PathBuf;

/// Why a result file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ResultError {
    /// The file cannot be read.
    #[error("cannot read the result {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The text is no result.
    #[error("not a result: {key}: {message}")]
    Format {
        /// Dotted: `flows[0].goodput_mbps`.
        key: String,
        /// The parser's error.
        message: String,
    },
    /// The file's version is unknown to this one.
    #[error("schema_version {found} is not known here; accepted: {known}")]
    Version {
        /// In the file.
        found: u64,
        /// Ours.
        known: u32,
    },
}
