//! What can be wrong with a result file.

use std::path::PathBuf;

/// Why a result file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ResultError {
    /// The file cannot be read.
    #[error("cannot read the result {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The text is no result.
    #[error("not a result: {key}: {message}")]
    Format {
        /// Dotted: `flows[0].goodput_mbps`.
        key: String,
        /// What the parser said.
        message: String,
    },
    /// The file was written by a version whose format this one does not know.
    #[error("schema_version {found} is not known here; accepted: {known}")]
    Version {
        /// In the file.
        found: u64,
        /// Ours.
        known: u32,
    },
}
