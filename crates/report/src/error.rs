//! What can go wrong while a report is written or its files are read.

use std::path::PathBuf;

/// Why a file of a report cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The file or folder cannot be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The series cannot be written.
    #[error("cannot write the series {}", path.display())]
    WriteSeries {
        /// The file.
        path: PathBuf,
        /// What the format's library said.
        source: parquet::errors::ParquetError,
    },
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The series cannot be read.
    #[error("cannot read the series {}", path.display())]
    ReadSeries {
        /// The file.
        path: PathBuf,
        /// What the format's library said.
        source: parquet::errors::ParquetError,
    },
    /// The series is of another version or lacks a column.
    #[error("cannot use the series {}: {message}", path.display())]
    Series {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what is accepted.
        message: String,
    },
    /// A result file cannot be used.
    #[error("{}", path.display())]
    Result {
        /// The file.
        path: PathBuf,
        /// Why.
        source: lasthop_scenario::ResultError,
    },
}
