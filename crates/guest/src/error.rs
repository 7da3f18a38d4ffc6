//! Why a guest cannot run.

use crate::architecture::Architecture;
use crate::kernels::{all_names, names};
use std::io;
use std::path::PathBuf;

/// Short for results of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a guest cannot run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// This processor's machine is not emulated.
    #[error("virtual time needs a machine of amd64 or arm64; this is {}", std::env::consts::ARCH)]
    Processor,
    /// There is no program for a kernel of another processor.
    #[error(
        "a kernel for {architecture} runs a lasthop for {architecture}, and {why}: `lasthop kernels program FILE` keeps one, \
         of {build} as this is (the package for {architecture} has it; scripts/test-arm64 builds one)"
    )]
    Foreign {
        /// The kernel's.
        architecture: Architecture,
        /// This build.
        build: String,
        /// Why it is not there.
        why: &'static str,
    },
    /// A guest cannot have this machine's files.
    #[error(
        "kernel {kernel}: its guest cannot have programs of this machine, which exec, an external policy, a law of one's own \
         and iperf3 are or need (accepted: a kernel for amd64, on such a machine)"
    )]
    NoWindow {
        /// The kernel's name.
        kernel: String,
    },
    /// A program is missing.
    #[error("{program} is not here (Debian: apt install {package})")]
    Program {
        /// The program.
        program: String,
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
        "there is no kernel {name:?} here; accepted: {here}; {}",
        if names().any(|(known, _)| known == name) {
            format!("`lasthop kernels fetch {name}` brings it")
        } else {
            format!("`lasthop kernels fetch NAME` brings {}, `build` one of your own", all_names())
        }
    )]
    Kernel {
        /// The name.
        name: String,
        /// Those that are here, in words.
        here: String,
    },
    /// No kernel of this name can be fetched.
    #[error("Debian has no kernel {name:?}; accepted: {}", all_names())]
    Unknown {
        /// The name.
        name: String,
    },
    /// The name is none of a kernel's.
    #[error(
        "{name:?} cannot be the name of a kernel; accepted: small letters, digits, dots, dashes, at most \
         40 (compare alone takes several: A,B)"
    )]
    Name {
        /// The name.
        name: String,
    },
    /// The name is that of a kernel of Debian's.
    #[error("{name} is the name of a kernel that `lasthop kernels fetch` brings; accepted: any other")]
    Taken {
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
    #[error("{what} {}: {reason}", path.display())]
    File {
        /// What was to be done.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason: a part of the text, and so no cause besides.
        reason: io::Error,
    },
    /// There is no folder for the cache.
    #[error("there is no folder for kernels: neither XDG_CACHE_HOME nor HOME is an absolute path")]
    NoCache,
    /// The machine's memory is a file, and no room was left for it.
    #[error("no room is left in {} for the emulated machine's memory (SIGBUS ended the emulator)", folder.display())]
    NoRoom {
        /// The folder.
        folder: PathBuf,
    },
    /// A signal ended the emulator.
    #[error("{signal} ended the emulator{said}")]
    Killed {
        /// Its name.
        signal: String,
        /// As of [`Error::Ended`].
        said: String,
    },
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
        self.map_err(|reason| Error::File { what, path: path.to_owned(), reason })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error as _;

    #[test]
    fn the_reason_of_a_files_error_is_said_once() {
        let error = std::fs::read("/dev/null/x").at("cannot read", std::path::Path::new("/dev/null/x"));
        let error = error.expect_err("it is no folder");
        assert_eq!(error.to_string(), "cannot read /dev/null/x: Not a directory (os error 20)");
        assert!(error.source().is_none());
    }
}
