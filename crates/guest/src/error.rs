//! Why a guest cannot run.

use std::io;
use std::path::PathBuf;

/// Short for results of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a guest cannot run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// This processor's machine is not emulated.
    #[error("virtual time needs an x86-64 machine as yet; this is {}", std::env::consts::ARCH)]
    Processor,
    /// A program is missing.
    #[error("{program} is not here (Debian: apt install {package}; `make setup` does)")]
    Program {
        /// The program.
        program: &'static str,
        /// The package that has it.
        package: &'static str,
    },
    /// A program that a guest with simulated radios needs is missing.
    #[error("{program} is not here, which simulated radios need (Debian: apt install {package})")]
    OfRadios {
        /// The program.
        program: &'static str,
        /// The package that has it.
        package: &'static str,
    },
    /// A program failed.
    #[error("{what} failed: {said}")]
    Failed {
        /// What was to be done.
        what: String,
        /// What the program said.
        said: String,
    },
    /// There is no such kernel.
    #[error(
        "there is no kernel {name:?} here; accepted: {here}; `lasthop kernels fetch NAME` brings {}, `build` one of your own",
        crate::NAMES.join(", ")
    )]
    Kernel {
        /// The name.
        name: String,
        /// Those that are here, in words.
        here: String,
    },
    /// No kernel of this name can be fetched.
    #[error("Debian has no kernel {name:?}; accepted: {}", crate::NAMES.join(", "))]
    Unknown {
        /// The name.
        name: String,
    },
    /// The name is none of a kernel's.
    #[error("{name:?} cannot be the name of a kernel; accepted: small letters, digits, dots, dashes, at most 40")]
    Name {
        /// The name.
        name: String,
    },
    /// A kernel or a state is not what was kept.
    #[error("{}: {problem}", path.display())]
    Kept {
        /// The file or folder.
        path: PathBuf,
        /// The problem, and what to do.
        problem: String,
    },
    /// A file cannot be read or written.
    #[error("{what} {}: {source}", path.display())]
    File {
        /// What was to be done.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// There is no folder for the cache.
    #[error("there is no folder for kernels: neither XDG_CACHE_HOME nor HOME is an absolute path")]
    NoCache,
    /// The machine ended before its job.
    #[error("the emulated machine ended too early{said}")]
    Ended {
        /// The end of its console and of the emulator's own words; with a line break before, or empty.
        said: String,
    },
}

/// Names the file of an error.
pub(crate) trait At<T> {
    fn at(self, what: &'static str, path: &std::path::Path) -> Result<T>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, what: &'static str, path: &std::path::Path) -> Result<T> {
        self.map_err(|source| Error::File { what, path: path.to_owned(), source })
    }
}
