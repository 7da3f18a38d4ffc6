//! Our own congestion controls in the kernel: the laws of `laws/include`, for any socket of this machine.
//!
//! A loaded law is in the kernel's list of congestion controls. It is chosen as usual: by `setsockopt(TCP_CONGESTION)`,
//! as the default of a network namespace (`net.ipv4.tcp_congestion_control`), or for a route (`ip route ... congctl`).
//! It is loaded in one of two ways:
//!
//! - [`Loaded::load`]: until it is dropped, perhaps under a private name. Nothing is pinned, so nothing outlives the
//!   process. The laboratory uses this.
//! - [`Pins::load`]: until [`Pins::unload`], beyond the end of the process. Links and maps are pinned below `lasthop/`
//!   in a BPF file system. `lasthop laws` uses this.
//!
//! Each law is loaded from an object of its own, with its own parameters, counters and state. After unloading, sockets
//! keep the law until they end or get another, as with all controls in BPF.
//!
//! How a law works with the kernel's recovery: `docs/models/laws-in-the-kernel.md`, and the top of `bpf/law.bpf.c`.

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

/// The version of the laws: that of this crate, with a digest of their source. Another version may use the same numbers
/// with another meaning.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "-", env!("LASTHOP_LAWS_SOURCE"));

/// The objects, by [`LawName::identifier`].
static OBJECTS: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/objects.rs"));

/// The programs of a law; none if it is not [for the kernel](LawName::is_for_the_kernel).
fn object(law: LawName) -> Option<&'static [u8]> {
    if let LawName::Own(own) = law {
        return own.kernel_object();
    }
    OBJECTS.iter().find(|(of, _)| *of == law.identifier()).map(|(_, object)| *object)
}

/// The sources of a law's programs: names with texts. With the headers of `lasthop-laws` they make the object of a law
/// outside the tree, as build.rs makes the others.
pub fn sources() -> impl Iterator<Item = (String, &'static str)> {
    let ours: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/sources.rs"));
    let ours = ours.iter().map(|&(name, text)| (name.to_owned(), text));
    ours.chain(libbpf_sys::API_HEADERS.iter().map(|&(name, text)| (format!("bpf/{name}"), text)))
}

/// The kernel features that laws need.
const NEEDED: [Feature; 4] = [Feature::Privilege, Feature::KernelBtf, Feature::ControlPrograms, Feature::ControlLinks];

/// Whether laws can be loaded here, as far as can be determined without loading one.
///
/// # Errors
/// [`Error::Unsupported`], with the missing features.
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

/// Why a law could not be loaded, unloaded, read or changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// This kernel or this user lacks something.
    #[error("laws cannot be loaded here: missing {reason}")]
    Unsupported {
        /// The missing features, each with its kernel version or option.
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
        /// The version that loaded it.
        theirs: String,
    },
    /// It is for simulated hosts only.
    #[error("{law} is not for the kernel; there are {list}", list = LawName::for_the_kernel().map(LawName::as_str).collect::<Vec<_>>().join(", "))]
    NotForTheKernel {
        /// The law.
        law: LawName,
    },
    /// The name is taken.
    #[error(
        "the kernel has a congestion control {name} already, and it is not pinned in {}: it is held by another mount \
         namespace's BPF file system, or by a program that runs{}",
        place.display(), probe::HIDDEN
    )]
    NameTaken {
        /// The name.
        name: String,
        /// Its place among the pins.
        place: PathBuf,
    },
    /// It is not loaded.
    #[error("{law} is not loaded")]
    NotLoaded {
        /// The law.
        law: LawName,
    },
    /// It is the default of network namespaces: their new sockets would continue to get it.
    #[error(
        "{name} is the default congestion control of {}: new sockets there would go on getting it after it is \
             unloaded. Set another with 'sysctl net.ipv4.tcp_congestion_control' there first, or unload with --force",
        list(namespaces)
    )]
    IsDefault {
        /// The name in the kernel.
        name: String,
        /// The network namespaces.
        namespaces: Vec<DefaultOf>,
    },
    /// It does not receive clients' reports.
    #[error("{law} does not use what clients report: there is nothing to permit; lastlink does")]
    HearsNothing {
        /// The law.
        law: LawName,
    },
    /// There is no room for another entry.
    #[error("there are {most} entries of what clients are permitted already; wider prefixes need fewer")]
    TooManyPermits {
        /// The maximum.
        most: usize,
    },
    /// There is no entry for these clients.
    #[error("there is no entry for {clients}; 'lasthop laws list' shows those there are")]
    NoPermit {
        /// The clients of the request.
        clients: Clients,
    },
    /// No BPF file system is mounted, and mounting one failed.
    #[error(
        "no BPF file system is mounted (try 'mount -t bpf bpf /sys/fs/bpf'), and mounting one at /sys/fs/bpf failed"
    )]
    NoFileSystem {
        /// The reason.
        source: io::Error,
    },
    /// Others could replace the pins.
    #[error(
        "{} must be a folder of root's that nobody else can write in, and it has mode {mode:o} and belongs to user {owner}. What is \
         there may be somebody else's work: look at it, and 'rm -r' it (or 'chown root' and 'chmod 700' it) as root",
        path.display()
    )]
    NotRoots {
        /// The folder.
        path: PathBuf,
        /// Its owner's user id.
        owner: u32,
        /// Its mode.
        mode: u32,
    },
    /// Another process holds the lock of the folder and does not release it.
    #[error(
        "{holder} has locked {} for more than {within:?}: another 'lasthop laws' that hangs, or somebody who wants to hinder this; end it",
        folder.display()
    )]
    Locked {
        /// The folder.
        folder: PathBuf,
        /// The holder.
        holder: String,
        /// How long it was tried.
        within: std::time::Duration,
    },
    /// An operation on the BPF file system failed.
    #[error("{doing} {}", path.display())]
    Pin {
        /// The operation.
        doing: &'static str,
        /// Its object.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The kernel refused.
    #[error(transparent)]
    Kernel(#[from] crate::Error),
}

fn list(namespaces: &[DefaultOf]) -> String {
    namespaces.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
