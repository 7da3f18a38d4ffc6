//! Our own congestion controls in the kernel: the laws of `laws/include`, for any socket of this machine.
//!
//! A law that is loaded is in the kernel's list of congestion controls, and whoever may choose one may choose it: by
//! `setsockopt(TCP_CONGESTION)`, as the default of a network namespace (`net.ipv4.tcp_congestion_control`), or for a route
//! (`ip route ... congctl`). It is loaded in one of two ways:
//!
//! - [`Loaded::load`]: until it is dropped, perhaps under a private name. Nothing is pinned, so nothing outlives the
//!   process. What the laboratory does.
//! - [`Pins::load`]: until [`Pins::unload`], whoever ends. Links and maps are pinned below `lasthop/` in a BPF file system.
//!   What `lasthop laws` does.
//!
//! Each law is loaded from an object of its own, with its own parameters, counters and state. Sockets keep a law that is
//! unloaded until they end or get another; that is the kernel's way with all controls in BPF.
//!
//! How a law lives with the kernel's recovery: `docs/models/laws-in-the-kernel.md`, and the top of `bpf/law.bpf.c`.

mod fields;
mod last_link;
mod loaded;
mod pins;

pub use fields::{Field, Value};
pub use last_link::{Clients, Heard, Heuristics, Prefix};
pub use loaded::{Counters, Handles, Loaded, Name, Options, SocketState};
pub use pins::{DefaultOf, Found, Pins, Unloaded};

use crate::probe::{self, Feature};
use lasthop_laws::LawName;
use std::io;
use std::path::PathBuf;

/// Which laws these are: the version of this crate, and a digest of their source. Laws of another version may mean something
/// else by the same numbers.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "-", env!("LASTHOP_LAWS_SOURCE"));

/// The objects, by [`LawName::identifier`].
static OBJECTS: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/objects.rs"));

/// The programs of a law; none of one that is not [for the kernel](LawName::is_for_the_kernel).
fn object(law: LawName) -> Option<&'static [u8]> {
    OBJECTS.iter().find(|(of, _)| *of == law.identifier()).map(|(_, object)| *object)
}

/// What of the kernel the laws need.
const NEEDED: [Feature; 4] = [Feature::Privilege, Feature::KernelBtf, Feature::ControlPrograms, Feature::ControlLinks];

/// Whether laws can be loaded here, as far as that can be told without loading one.
///
/// # Errors
/// [`Error::Unsupported`], with what is missing.
pub fn check() -> Result<(), Error> {
    let missing = probe::missing(&NEEDED);
    let reason = match missing.first() {
        None => return Ok(()),
        // without the right to load programs the rest is guesswork
        Some(Feature::Privilege) => Feature::Privilege.description().to_owned(),
        Some(_) => missing.iter().map(|feature| feature.lack()).collect::<Vec<_>>().join("; "),
    };
    Err(Error::Unsupported { reason })
}

/// Why a law could not be loaded, unloaded, looked at or changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// This kernel, or this user, cannot.
    #[error("laws cannot be loaded here: missing {reason}")]
    Unsupported {
        /// The missing features, each with what has it.
        reason: String,
    },
    /// It is loaded already.
    #[error("{law} is loaded already, as {}", law.kernel_name())]
    AlreadyLoaded {
        /// The law.
        law: LawName,
    },
    /// It was loaded by another version of this program.
    #[error(
        "{law} was loaded by another version of lasthop ({theirs}; this is {VERSION}): 'lasthop laws unload {law}' first"
    )]
    OtherVersion {
        /// The law.
        law: LawName,
        /// Which version.
        theirs: String,
    },
    /// It is for simulated hosts only.
    #[error("{law} is not for the kernel; there are {list}", list = LawName::for_the_kernel().map(LawName::as_str).collect::<Vec<_>>().join(", "))]
    NotForTheKernel {
        /// The law.
        law: LawName,
    },
    /// Somebody else has the name.
    #[error(
        "the kernel has a congestion control {name} already, and it is not pinned in {}: it is held by another mount \
         namespace's BPF file system, or by a program that runs{}",
        place.display(), probe::HIDDEN
    )]
    NameTaken {
        /// The name.
        name: String,
        /// Where it would be pinned.
        place: PathBuf,
    },
    /// It is not loaded.
    #[error("{law} is not loaded")]
    NotLoaded {
        /// The law.
        law: LawName,
    },
    /// It is the default of network namespaces, whose new sockets would go on getting it.
    #[error(
        "{name} is the default congestion control of {}: new sockets there would go on getting it after it is \
             unloaded. Set another with 'sysctl net.ipv4.tcp_congestion_control' there first, or unload with --force",
        list(namespaces)
    )]
    IsDefault {
        /// The name in the kernel.
        name: String,
        /// Where.
        namespaces: Vec<DefaultOf>,
    },
    /// It does not hear what clients report.
    #[error("{law} does not use what clients report: there is nothing to permit; lastlink does")]
    HearsNothing {
        /// The law.
        law: LawName,
    },
    /// There is no room for another entry.
    #[error("there are {most} entries of what clients are permitted already; wider prefixes need fewer")]
    TooManyPermits {
        /// How many there can be.
        most: usize,
    },
    /// Nothing is said of these clients.
    #[error("there is no entry for {clients}; 'lasthop laws list' shows those there are")]
    NoPermit {
        /// Of whom.
        clients: Clients,
    },
    /// No BPF file system is mounted, and none could be.
    #[error(
        "no BPF file system is mounted (try 'mount -t bpf bpf /sys/fs/bpf'), and mounting one at /sys/fs/bpf failed"
    )]
    NoFileSystem {
        /// Why not.
        source: io::Error,
    },
    /// Somebody else could put something in the place of what is pinned.
    #[error(
        "{} must be a folder of root's that nobody else can write in, and it has mode {mode:o} and belongs to user {owner}. What is \
         there may be somebody else's work: look at it, and 'rm -r' it (or 'chown root' and 'chmod 700' it) as root",
        path.display()
    )]
    NotRoots {
        /// The folder.
        path: PathBuf,
        /// Its owner's number.
        owner: u32,
        /// Its mode.
        mode: u32,
    },
    /// Somebody else holds the lock of the folder, and does not let it go.
    #[error(
        "{holder} has locked {} for more than {within:?}: another 'lasthop laws' that hangs, or somebody who wants to hinder this; end it",
        folder.display()
    )]
    Locked {
        /// The folder.
        folder: PathBuf,
        /// Who.
        holder: String,
        /// For how long it was tried.
        within: std::time::Duration,
    },
    /// Something in the BPF file system.
    #[error("{doing} {}", path.display())]
    Pin {
        /// What was being done.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The kernel refused.
    #[error(transparent)]
    Kernel(#[from] crate::Error),
}

fn list(namespaces: &[DefaultOf]) -> String {
    namespaces.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
