//! Errors in writing a report or reading its files.

use std::path::PathBuf;

/// A file of a report cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The file or folder cannot be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The series cannot be written.
    #[error("cannot write the series {}", path.display())]
    WriteSeries {
        /// The file.
        path: PathBuf,
        /// The Parquet library's error.
        source: parquet::errors::ParquetError,
    },
    /// A figure cannot be made in its format.
    #[error("cannot make {}: {message}", path.display())]
    Figure {
        /// The file.
        path: PathBuf,
        /// The problem.
        message: String,
    },
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The series cannot be read.
    #[error("cannot read the series {}", path.display())]
    ReadSeries {
        /// The file.
        path: PathBuf,
        /// The Parquet library's error.
        source: parquet::errors::ParquetError,
    },
    /// The series has another version or lacks a column.
    #[error("cannot use the series {}: {message}", path.display())]
    Series {
        /// The file.
        path: PathBuf,
        /// The problem, with the accepted alternative.
        message: String,
    },
    /// A folder has no result.
    #[error(
        "{} has no result: none of result.json, comparison.json and study.json; `lasthop run`, `compare` and `study` write one \
         with `--out`",
        path.display()
    )]
    NoResult {
        /// The folder.
        path: PathBuf,
    },
    /// A result file cannot be used.
    #[error("{}", path.display())]
    Result {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: lasthop_scenario::ResultError,
    },
}
