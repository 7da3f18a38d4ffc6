//! Errors between us and the kernel.

use crate::mode::Mode;
use std::io;
use std::path::PathBuf;

/// Why a kernel operation failed. Each message names the operation and its object; the sources give the cause.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The mode is unavailable on this kernel or to this user.
    #[error("mode {mode:?} is not possible here: {reason}")]
    Unsupported {
        /// The mode asked for.
        mode: Mode,
        /// The missing features, each with its kernel version or option.
        reason: String,
    },
    /// The last link cannot be reported on this kernel or by this user.
    #[error("the last link cannot be reported here: {reason}")]
    Reporting {
        /// The missing features, each with its kernel version or option.
        reason: String,
    },
    /// The interface cannot be managed.
    #[error("interface {index} cannot be managed: {reason}")]
    Interface {
        /// Its index in this network namespace.
        index: u32,
        /// The reason.
        reason: String,
    },
    /// An option has more or longer entries than the programs can hold.
    #[error("{what}: {reason}")]
    TooMuch {
        /// The option.
        what: &'static str,
        /// The limit that it breaks.
        reason: String,
    },
    /// A cgroup could not be opened.
    #[error("opening the cgroup {}", path.display())]
    Cgroup {
        /// Its directory.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The programs could not be loaded.
    #[error("loading the BPF programs")]
    Load {
        /// The kernel's error, and below it the last lines of libbpf and of the verifier.
        source: io::Error,
    },
    /// A loaded program could not be attached.
    #[error("attaching {what}")]
    Attach {
        /// The target of the attachment.
        what: &'static str,
        /// The kernel's error, and below it the last lines of libbpf, if there are any.
        source: io::Error,
    },
    /// The cgroup has the most programs that the kernel allows.
    #[error(
        "the cgroup has {CGROUP_PROGRAMS_MAX} socket programs already, and Linux lets it have no more (BPF_CGROUP_MAX_PROGS): so many \
         agents can control or report at the same time on one machine. Stop others first"
    )]
    TooManyPrograms,
    /// All our names are taken.
    #[error("all 64 names lasthop, lasthop.2, ... are taken by other agents on this kernel")]
    NoName,
    /// Access to the maps of the programs failed.
    #[error("{doing}")]
    Exchange {
        /// The operation.
        doing: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
}

/// The most programs of one type on a cgroup: BPF_CGROUP_MAX_PROGS of the kernel's include/linux/bpf-cgroup.h.
pub(crate) const CGROUP_PROGRAMS_MAX: usize = 64;

impl Error {
    /// The message and its sources, separated by colons.
    pub(crate) fn in_a_line(&self) -> String {
        let first: &dyn std::error::Error = self;
        let messages = std::iter::successors(Some(first), |error| error.source()).map(ToString::to_string);
        messages.collect::<Vec<_>>().join(": ")
    }

    /// A failure to attach a program to a cgroup.
    pub(crate) fn attach_to_cgroup(error: libbpf_rs::Error) -> Self {
        if error.kind() == libbpf_rs::ErrorKind::TooBig {
            return Self::TooManyPrograms;
        }
        Self::attach("sockops of a cgroup")(error)
    }

    pub(crate) fn exchange(doing: &'static str) -> impl FnOnce(libbpf_rs::Error) -> Self {
        move |error| Self::Exchange { doing, source: io_error(&error) }
    }

    pub(crate) fn exchange_io(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Exchange { doing, source }
    }

    pub(crate) fn load(error: libbpf_rs::Error) -> Self {
        Self::Load { source: with_log(&error) }
    }

    pub(crate) fn attach(what: &'static str) -> impl FnOnce(libbpf_rs::Error) -> Self {
        move |error| Self::Attach { what, source: with_log(&error) }
    }
}

/// Like [`io_error`], with libbpf's last messages below.
fn with_log(error: &libbpf_rs::Error) -> io::Error {
    let (error, log) = (io_error(error), crate::log::tail());
    if log.is_empty() { error } else { io::Error::new(error.kind(), format!("{error}\n{log}")) }
}

/// libbpf-rs's whole error chain, as one standard error of the same kind.
pub(crate) fn io_error(error: &libbpf_rs::Error) -> io::Error {
    use libbpf_rs::ErrorKind;
    let kind = match error.kind() {
        ErrorKind::PermissionDenied => io::ErrorKind::PermissionDenied,
        ErrorKind::AlreadyExists => io::ErrorKind::AlreadyExists,
        ErrorKind::NotFound => io::ErrorKind::NotFound,
        ErrorKind::InvalidInput => io::ErrorKind::InvalidInput,
        ErrorKind::OutOfMemory => io::ErrorKind::OutOfMemory,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, format!("{error:#}"))
}
