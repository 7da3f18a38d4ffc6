//! This program as a guest runs it. A guest whose kernel is for another processor runs one for that, which the user has given once.
//!
//! ```text
//! $XDG_CACHE_HOME/lasthop/programs/arm64/
//!   lasthop         without what only debuggers read
//!   root/           the C library that it needs, as it stands in the guest
//! ```

use crate::architecture::Architecture;
use crate::debian::{Apt, SUITE_OF_PROGRAMS};
use crate::error::{At as _, Error, Result};
use crate::image::{Elf, without_sections};
use crate::kernels::{cache, walk};
use crate::work::Work;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// In the cache.
pub(crate) const FOLDER: &str = "programs";
const FILE: &str = "lasthop";
const ROOT: &str = "root";
const WORK: &str = ".work-";
/// What a build for Linux needs beside itself (ldd), of which some are within the first since glibc 2.34.
const LIBRARIES: [&str; 7] =
    ["libc.so.6", "libm.so.6", "libgcc_s.so.1", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libutil.so.1"];
const PACKAGES: [&str; 2] = ["libc6", "libgcc-s1"];

/// This program, for a guest.
#[derive(Debug)]
pub struct Program {
    pub(crate) file: PathBuf,
    /// The files that it needs, as they stand in the guest; `None`: this machine's.
    pub(crate) root: Option<PathBuf>,
}

impl Program {
    /// The one that runs under a kernel of this architecture: the running one, or one that was kept. `build`: what this build says of
    /// itself, which the other one must say too.
    ///
    /// # Errors
    /// If none was kept, or it is of another build.
    pub fn of(architecture: Architecture, build: &str) -> Result<Self> {
        if Architecture::here()? == architecture {
            let file = std::env::current_exe().at("cannot tell which program this is:", Path::new("/proc/self/exe"))?;
            return Ok(Self { file, root: None });
        }
        let folder = folder()?.join(architecture.name());
        let file = folder.join(FILE);
        let missing = |why| Error::Foreign { architecture, build: build.to_owned(), why };
        match fs::read(&file) {
            Ok(bytes) if says(&bytes, build) => Ok(Self { file, root: Some(folder.join(ROOT)) }),
            Ok(_) => Err(missing("the one that was kept is of another build")),
            Err(_) => Err(missing("none is here")),
        }
    }

    /// Keeps a program for guests of another architecture, which it returns, with the C library that it needs: fetched from Debian by apt.
    /// Replaces the one that was kept.
    ///
    /// # Errors
    /// If it is none, or of another build; or what it needs cannot be fetched, or `stop` ended that. What was there stays.
    pub fn keep(file: &Path, build: &str, stop: &AtomicBool, say: &dyn Fn(&str)) -> Result<Architecture> {
        let bytes = fs::read(file).at("cannot read", file)?;
        let wrong = |problem: String| Error::Kept { path: file.to_owned(), problem };
        let here = Architecture::here()?;
        let others = [Architecture::Amd64, Architecture::Arm64].into_iter().filter(|other| *other != here);
        let found = others.filter_map(|other| Some((other, Elf::of(&bytes, other)?))).next();
        let Some((architecture, elf)) = found else {
            let accepted = if here == Architecture::Amd64 { Architecture::Arm64 } else { Architecture::Amd64 };
            return Err(wrong(format!(
                "it is no program for another processor than this one's (accepted: {accepted})"
            )));
        };
        if !says(&bytes, build) {
            return Err(wrong(format!("it is no lasthop of this build, {build}")));
        }
        let folder = folder()?;
        fs::create_dir_all(&folder).at("cannot make", &folder)?;
        let new = Work::new(&folder, WORK)?;
        let root = new.path().join(ROOT);
        fs::create_dir(&root).at("cannot make", &root)?;
        if let Some(loader) = &elf.loader {
            say(&format!("fetching the C library for {architecture} (Debian's {SUITE_OF_PROGRAMS})"));
            let work = Work::new(&folder, WORK)?;
            Apt::of(SUITE_OF_PROGRAMS, architecture, work.path(), stop)?.unpack(&PACKAGES.map(str::to_owned))?;
            lay_out(&work.path().join(Apt::UNPACKED), &root, loader)?;
        }
        let to = new.path().join(FILE);
        fs::write(&to, without_sections(&bytes, &elf)).at("cannot write", &to)?;
        new.take_the_place_of(&folder.join(architecture.name()))?;
        Ok(architecture)
    }
}

/// Copies loader and libraries of unpacked packages to where a guest has them.
fn lay_out(unpacked: &Path, root: &Path, loader: &str) -> Result<()> {
    let mut found = Vec::new();
    walk(unpacked, &mut |path| found.push(path.to_owned()))?;
    let loader = Path::new(loader);
    let to = |name: &Path| root.join(name.strip_prefix("/").unwrap_or(name));
    for name in LIBRARIES.map(Path::new).into_iter().chain(loader.file_name().map(Path::new)) {
        let from =
            found.iter().find(|path| path.file_name() == Some(name.as_os_str())).ok_or_else(|| Error::Failed {
                what: format!("fetching the C library ({})", PACKAGES.join(", ")),
                said: format!("the packages have no {}", name.display()),
            })?;
        // The loader looks in /lib.
        let to =
            if Some(name.as_os_str()) == loader.file_name() { to(loader) } else { to(&Path::new("lib").join(name)) };
        let parent = to.parent().expect("below the root");
        fs::create_dir_all(parent).at("cannot make", parent)?;
        fs::copy(from, &to).at("cannot write", &to)?;
    }
    Ok(())
}

fn folder() -> Result<PathBuf> {
    Ok(cache()?.join(FOLDER))
}

/// Whether a program has this text, as that of which build it is.
fn says(program: &[u8], build: &str) -> bool {
    // As `windows`, but fast also where nothing is optimised: of each place with the first byte.
    let build = build.as_bytes();
    let mut rest = program;
    while let Some(at) = rest.iter().position(|byte| Some(byte) == build.first()) {
        if rest[at..].starts_with(build) {
            return true;
        }
        rest = &rest[at + 1..];
    }
    false
}
