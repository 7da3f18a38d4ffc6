//! Why a header is no law.

use crate::check::Problem;
use lasthop_laws::own::DividedByZero;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// Why a law could not be made of a header.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such file, or it cannot be read.
    #[error("{}: the header of the law cannot be read", header.display())]
    Header {
        /// The header.
        header: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// There is no compiler.
    #[error(
        "{} is a law of your own, and its compiler {} is not here (Debian: apt install clang); CLANG names another",
        header.display(), clang.display()
    )]
    NoClang {
        /// The compiler.
        clang: OsString,
        /// The header.
        header: PathBuf,
    },
    /// The compiler refuses it.
    #[error("{} does not compile{what}:\n{messages}", header.display())]
    Compile {
        /// The header.
        header: PathBuf,
        /// For what; empty, or with a space before it.
        what: &'static str,
        /// The compiler's messages, with file and line.
        messages: String,
    },
    /// It does what no law may do.
    #[error("{place}: {problem}")]
    Refused {
        /// File and line.
        place: String,
        /// What it does, and what to do about it.
        problem: Problem,
    },
    /// It compiles, and is no law for this program.
    #[error("{}: {problem}", header.display())]
    Law {
        /// The header.
        header: PathBuf,
        /// The reason.
        problem: String,
    },
    /// It divides by zero in its trial.
    #[error("{divided}{with}")]
    DividedByZero {
        /// Where.
        divided: DividedByZero,
        /// With which parameter off its default; empty, or with a comma before it.
        with: String,
    },
    /// The folder of products is another user's, or others may write into it.
    #[error(
        "{}: a law's programs would run from this folder, and others may write into it: delete it, or set XDG_CACHE_HOME",
        cache.display()
    )]
    Untrusted {
        /// The folder.
        cache: PathBuf,
    },
    /// A file or a program could not be used.
    #[error("{doing} {}", path.display())]
    File {
        /// What was tried.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

impl Error {
    pub(crate) fn file(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::File { doing, path: path.to_owned(), source }
    }
}
