//! A user's own law, outside the tree: one header over the events of `law.h`. Compiles it with clang, checks it, and
//! loads it into this process.
//!
//! ```text
//!   mine.h --clang--> law.so      dlopen; its functions run on simulated hosts
//!          --clang--> law.bpf.o   the kernel crate loads it, with law.bpf.c around it as around a law of the tree
//! ```
//!
//! Both are products of the same sources: those of the tree, which this program carries, with a `laws.list` of this
//! header alone. They are kept in a folder named by a digest of all that was compiled, so nothing is made twice, and a
//! changed header is another law. A header that changes meanwhile is compiled again. A product ends with a digest of
//! itself, so a damaged one is made again; so is one that others than this user and root may have written.
//!
//! The checks, each with a message that names file and line where there is one: it compiles without a warning; has one
//! entry; keeps at most [`STATE_BYTES`](lasthop_laws::own::STATE_BYTES) bytes for each connection and nothing else; has
//! integers only; calls nothing outside its headers; survives a [trial]. The verifier's check needs a kernel: `lasthop
//! laws build` does it. A division by zero, which is 0 in the kernel, unwinds as a [`DividedByZero`] with file and line.
//!
//! *What it leaves out*: a law that hears reports of the last link.

mod check;
mod error;
mod trial;

pub use error::Error;

use lasthop_laws::LawName;
use lasthop_laws::own::{DIVIDED_BY_ZERO, DividedByZero, OwnLaw, SOURCES, SYMBOL};
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::ffi::{OsString, c_char};
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{LazyLock, Mutex};
use std::thread;
use std::time::{Duration, SystemTime};

/// How long a law's trial may take; it takes a tenth of a second, and more with many parameters.
const TRIAL: Duration = Duration::from_secs(10);
/// How often a header is compiled that is saved meanwhile.
const TRIES: usize = 3;
/// A folder to compile in that is this old is of a build that was killed.
const LEFT_AFTER: Duration = Duration::from_secs(3600);
/// Lines of the compiler that a message has.
const MESSAGE_LINES: usize = 12;
/// The file of the cache with all lines of the last message that had more.
const MESSAGES: &str = "messages.txt";
/// At the end of a product: the digest of what is before it.
const SEAL_BYTES: usize = 32;

/// Makes laws of headers.
#[derive(Clone, Debug)]
pub struct Workshop {
    /// The folder of products, made if needed: a subfolder for each law.
    pub cache: PathBuf,
    /// The compiler: clang 14 or newer.
    pub clang: OsString,
    /// The sources of the kernel's programs, names with texts. Empty: no law gets an object for the kernel.
    pub kernel_sources: Vec<(String, &'static str)>,
}

/// A law that was made, or found made.
#[derive(Clone, Debug)]
pub struct Built {
    /// The law.
    pub law: LawName,
    /// The folder of its products, `law.so` and perhaps `law.bpf.o`.
    pub folder: PathBuf,
}

/// What this process has made, with the files that it was made of.
static MADE: LazyLock<Mutex<HashMap<PathBuf, Made>>> = LazyLock::new(Mutex::default);

/// A law with the files of its source, as they were.
struct Made {
    files: Vec<(PathBuf, Stamp)>,
    built: Built,
}

type Stamp = Option<(SystemTime, u64)>;

/// Tells whether a file has changed.
fn stamp(path: &Path) -> Stamp {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

const SHARED_OBJECT: &str = "law.so";
const KERNEL_OBJECT: &str = "law.bpf.o";

/// As in the tree (crates/laws/build.rs), but without floating point, which becomes calls that the linker refuses.
const NATIVE: [&str; 15] = [
    "-std=gnu11",
    "-O2",
    "-g",
    "-fPIC",
    "-fwrapv",
    "-fno-finite-loops", // an endless loop must hang, and be refused, not be left out
    "-fexceptions",      // a division by zero unwinds through it
    "-ffreestanding",
    "-fvisibility=hidden",
    "-mgeneral-regs-only",
    "-fsanitize=integer-divide-by-zero",
    "-fno-sanitize-recover=all",
    "-Wextra",
    "-Wno-unused-parameter",
    "own.c",
];
/// As in the tree (crates/kernel/build.rs, and what libbpf-cargo adds).
const FOR_THE_KERNEL: [&str; 12] = [
    "-O2",
    "-g",
    "-target",
    "bpf",
    "-mcpu=v3",
    "-fno-finite-loops",
    "-fno-stack-protector",
    "-fno-crash-diagnostics",
    "-D__TARGET_ARCH_x86", // for registers of traced functions, which no law has
    "-DLH_LAW=0",
    "-Ikernel",
    "kernel/law.bpf.c",
];

impl Workshop {
    /// With the clang of the path, or of the environment's `CLANG`.
    pub fn new(cache: PathBuf, kernel_sources: Vec<(String, &'static str)>) -> Self {
        let clang = std::env::var_os("CLANG").unwrap_or_else(|| "clang".into());
        Self { cache, clang, kernel_sources }
    }

    /// The law of this header. Compiles only what this folder of products lacks.
    ///
    /// # Errors
    /// If there is no clang, or the header fails a check: see the top of this crate.
    pub fn build(&self, header: &Path) -> Result<Built, Error> {
        let of_header = |source| Error::Header { header: header.to_owned(), source };
        let file = fs::canonicalize(header).map_err(of_header)?;
        // It is read several times, so it is no pipe.
        if !fs::metadata(&file).map_err(of_header)?.is_file() {
            let problem = "it is no regular file; accepted: a C header";
            return Err(of_header(io::Error::new(io::ErrorKind::InvalidInput, problem)));
        }
        let mut made = MADE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(made) = made.get(&file)
            && made.built.folder.starts_with(&self.cache)
            && made.files.iter().all(|(path, before)| stamp(path) == *before)
        {
            return Ok(made.built.clone());
        }
        for _ in 0..TRIES {
            let job = Job::begin(self, header, &file)?;
            let source = job.source()?;
            job.check_form(&source)?;
            let folder = self.cache.join(&source.product);
            let same = |made: &&Made| {
                made.built.folder == folder
                    && matches!(made.built.law, LawName::Own(own) if own.digest() == source.digest)
            };
            let known = made.values().find(same).map(|made| made.built.clone());
            let built = match known {
                Some(built) => built,
                None => job.build(&folder, &source.digest)?,
            };
            // the preprocessor, the compiler and the digest have each read the files
            let after = job.source()?;
            if (&after.digest, &after.product) == (&source.digest, &source.product) {
                job.publish(&folder)?;
                made.insert(file, Made { files: source.files, built: built.clone() });
                return Ok(built);
            }
        }
        Err(Error::Law { header: header.to_owned(), problem: "it changes while it is compiled".to_owned() })
    }
}

/// What is compiled.
struct Source {
    /// The files of the user, as they are.
    files: Vec<(PathBuf, Stamp)>,
    /// A digest of them.
    digest: String,
    /// A digest of all that is compiled, the compiler among it.
    product: String,
}

/// One header, with a folder to compile it in.
struct Job<'a> {
    workshop: &'a Workshop,
    /// As the user wrote it.
    header: &'a Path,
    /// The same, from the root.
    file: &'a Path,
    folder: tempfile::TempDir,
}

impl<'a> Job<'a> {
    /// Writes the sources.
    fn begin(workshop: &'a Workshop, header: &'a Path, file: &'a Path) -> Result<Self, Error> {
        let Some(path) = file.to_str().filter(|path| !path.contains(['"', '\n'])) else {
            let source = io::Error::new(io::ErrorKind::InvalidFilename, "its path has a quote, or is not UTF-8");
            return Err(Error::Header { header: header.to_owned(), source });
        };
        let cache = &workshop.cache;
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(cache);
        let folder = made.and_then(|()| tempfile::Builder::new().prefix(".").tempdir_in(cache));
        let folder = folder.map_err(Error::file("making a folder in", cache))?;
        if !is_trusted(cache, folder.path()) {
            return Err(Error::Untrusted { cache: cache.clone() });
        }
        sweep(cache);
        let list = format!("#include \"{path}\"\n#undef LH_LAW_ENTRY\n");
        let kernel = workshop.kernel_sources.iter().map(|(name, text)| (format!("kernel/{name}"), *text));
        let laws = SOURCES.iter().map(|(name, text)| ((*name).to_owned(), *text));
        for (name, text) in laws.chain(kernel).chain([("laws.list".to_owned(), list.as_str())]) {
            let path = folder.path().join(name);
            let parent = path.parent().expect("it is in a folder");
            let written = fs::create_dir_all(parent).and_then(|()| fs::write(&path, text));
            written.map_err(Error::file("writing", &path))?;
        }
        Ok(Self { workshop, header, file, folder })
    }

    /// Runs clang in the folder.
    fn clang(&self, arguments: &[&str]) -> Result<Output, Error> {
        let mut command = Command::new(&self.workshop.clang);
        command.current_dir(self.folder.path()).args(["-Wall", "-Werror", "-I."]).args(arguments);
        command.env("LC_ALL", "C").output().map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => {
                Error::NoClang { clang: self.workshop.clang.clone(), header: self.header.into() }
            }
            _ => Error::File { doing: "running", path: self.workshop.clang.clone().into(), source },
        })
    }

    /// Output of clang that succeeds.
    fn compile(&self, what: &'static str, arguments: &[&str]) -> Result<Vec<u8>, Error> {
        let output = self.clang(arguments)?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        Err(self.refused(what, &output))
    }

    fn refused(&self, what: &'static str, output: &Output) -> Error {
        let all = self.readable(&output.stderr);
        // what LLVM writes behind its reason is for those who mend LLVM
        let lines = all.lines().take_while(|line| !line.starts_with("fatal error: error in backend"));
        let mut messages = lines.take(MESSAGE_LINES).collect::<Vec<_>>().join("\n");
        if messages.len() < all.len() {
            let file = self.workshop.cache.join(MESSAGES);
            if fs::write(&file, &all).is_ok() {
                messages += &format!("\n({} lines in all: {})", all.lines().count(), file.display());
            }
        }
        Error::Compile { header: self.header.to_owned(), what, messages }
    }

    /// A compiler's messages with the user's name of the header.
    fn readable(&self, messages: &[u8]) -> String {
        let folder = format!("{}/", self.folder.path().display());
        let messages = String::from_utf8_lossy(messages).replace(&folder, "");
        messages.replace(&*self.file.to_string_lossy(), &self.header.to_string_lossy()).trim_end().to_owned()
    }

    fn programs(&self) -> Vec<&'static [&'static str]> {
        let kernel: &[&[&str]] = if self.workshop.kernel_sources.is_empty() { &[] } else { &[&FOR_THE_KERNEL] };
        [&[&NATIVE[..]], kernel].concat()
    }

    fn source(&self) -> Result<Source, Error> {
        let mut product = Sha256::new();
        product.update(self.compile("", &["--version"])?);
        let mut files: Vec<PathBuf> = Vec::new();
        for program in self.programs() {
            program.iter().for_each(|argument| product.update(argument));
            let text = self.compile("", &[&["-E"], program].concat())?;
            for line in text.split(|byte| *byte == b'\n') {
                // # 1 "/home/me/mine.h" 1, and a last 3 or 4 at a system's header
                let Some(marker) = line.strip_prefix(b"# ") else {
                    product.update(line);
                    product.update("\n");
                    continue;
                };
                let marker = String::from_utf8_lossy(marker);
                let [_, path, flags] = marker.split('"').collect::<Vec<_>>()[..] else { continue };
                let path = PathBuf::from(path);
                let is_users = path.is_absolute() && !path.starts_with(self.folder.path()) && !flags.contains('3');
                if is_users && !files.contains(&path) {
                    files.push(path);
                }
            }
        }
        let mut digest = Sha256::new();
        for file in &files {
            digest.update(fs::read(file).map_err(Error::file("reading", file))?);
        }
        let files = files.into_iter().map(|path| (path.clone(), stamp(&path))).collect();
        Ok(Source { files, digest: hexadecimal(digest), product: hexadecimal(product) })
    }

    /// Refuses a law of both forms, or of none, in words: to the compiler these are macros.
    fn check_form(&self, source: &Source) -> Result<(), Error> {
        let mut text = String::new();
        for (path, _) in &source.files {
            text += &fs::read_to_string(path).map_err(Error::file("reading", path))?;
        }
        let refuse =
            |problem: check::Problem| Error::Law { header: self.header.to_owned(), problem: problem.to_string() };
        check::form(&text).map_or(Ok(()), |problem| Err(refuse(problem)))
    }

    fn build(&self, products: &Path, digest: &str) -> Result<Built, Error> {
        let shared = self.product(products, SHARED_OBJECT, |name| self.compile_natively(name))?;
        let refuse = |problem| Error::Law { header: self.header.to_owned(), problem };
        let mut own = load(&shared, digest.to_owned()).map_err(refuse)?;
        if own.wants_the_kernel() && !self.workshop.kernel_sources.is_empty() {
            own = own.with_kernel_object(self.kernel_object(products)?);
        }
        let law = own.keep();
        // The thread of a law that hangs ends with the process.
        let (tells, told) = mpsc::channel();
        let header = self.header.to_owned();
        thread::spawn(move || _ = tells.send(trial::survives(law, &header)));
        told.recv_timeout(TRIAL).map_err(|error| match error {
            RecvTimeoutError::Timeout => refuse(format!(
                "its trial does not end within {} s: a loop has no end, or this machine is busy",
                TRIAL.as_secs()
            )),
            RecvTimeoutError::Disconnected => {
                refuse("its trial broke off: the simulated TCP cannot go on with what it sets".to_owned())
            }
        })??;
        Ok(Built { law, folder: products.to_owned() })
    }

    fn kernel_object(&self, products: &Path) -> Result<Vec<u8>, Error> {
        let object = self.product(products, KERNEL_OBJECT, |name| {
            let arguments = [&FOR_THE_KERNEL[..], &["-c", "-o", name]].concat();
            self.compile(" for the kernel", &arguments)?;
            // libbpf finds no types for the section that LLVM makes of constants of these sizes
            self.refuse_symbol(name, check::small_table, check::Problem::SmallTable)
        })?;
        let mut bytes = fs::read(&object).map_err(Error::file("reading", &object))?;
        bytes.truncate(bytes.len() - SEAL_BYTES);
        Ok(bytes)
    }

    /// A product of the cache, if it is there and whole; otherwise made, in the folder of this job.
    fn product(
        &self,
        products: &Path,
        name: &str,
        make: impl FnOnce(&str) -> Result<(), Error>,
    ) -> Result<PathBuf, Error> {
        let kept = products.join(name);
        if is_trusted(products, self.folder.path()) && is_trusted(&kept, self.folder.path()) && is_whole(&kept) {
            return Ok(kept);
        }
        make(name)?;
        let made = self.folder.path().join(name);
        seal(&made).map_err(Error::file("writing", &made))?;
        Ok(made)
    }

    /// Moves what this job has made into the cache.
    fn publish(&self, products: &Path) -> Result<(), Error> {
        for name in [SHARED_OBJECT, KERNEL_OBJECT] {
            let made = self.folder.path().join(name);
            if !made.exists() {
                continue;
            }
            let folder = fs::DirBuilder::new().recursive(true).mode(0o700).create(products);
            let folder = folder.and_then(|()| fs::set_permissions(products, fs::Permissions::from_mode(0o700)));
            let moved = folder.and_then(|()| fs::rename(&made, products.join(name)));
            moved.map_err(Error::file("writing", products))?;
        }
        Ok(())
    }

    fn compile_natively(&self, shared: &str) -> Result<(), Error> {
        self.compile(" for this machine", &[&NATIVE[..], &["-c", "-o", "own.o"]].concat())?;
        let link = ["-shared", "-nostdlib", "-Wl,-z,defs", "own.o", "-o", shared];
        let output = self.clang(&link)?;
        if !output.status.success() {
            let undefined = check::undefined(&self.readable(&output.stderr));
            let refused = |(place, problem)| Error::Refused { place, problem };
            return Err(undefined.map_or_else(|| self.refused(" to a shared object", &output), refused));
        }
        self.refuse_symbol("own.o", check::variable, check::Problem::Variable)
    }

    /// Refuses an object with such a symbol, at its line.
    fn refuse_symbol(
        &self,
        object: &str,
        find: fn(&str) -> Option<String>,
        problem: fn(String) -> check::Problem,
    ) -> Result<(), Error> {
        let object = self.folder.path().join(object);
        let symbols = Command::new("nm").args(["--format=sysv".as_ref(), object.as_os_str()]).output();
        let symbols = symbols.and_then(|output| match output.status.success() {
            true => Ok(output.stdout),
            false => Err(io::Error::other(self.readable(&output.stderr))),
        });
        let symbols = symbols.map_err(Error::file("running", Path::new("nm")))?;
        let Some(name) = find(&String::from_utf8_lossy(&symbols)) else { return Ok(()) };
        let text = fs::read_to_string(self.file).map_err(Error::file("reading", self.file))?;
        let line = check::line_of(&text, &name).map_or_else(String::new, |line| format!(":{line}"));
        Err(Error::Refused { place: format!("{}{line}", self.header.display()), problem: problem(name) })
    }
}

/// Whether nobody but this user and root may have written it, or owns a folder above it. `own`: something that this
/// process has made.
fn is_trusted(path: &Path, own: &Path) -> bool {
    let (Ok(of), Ok(own)) = (fs::metadata(path), fs::metadata(own)) else { return false };
    let is_ours = |path: &Path| fs::metadata(path).is_ok_and(|of| [own.uid(), 0].contains(&of.uid()));
    let mut above = path.ancestors().filter(|folder| !folder.as_os_str().is_empty());
    of.mode() & 0o022 == 0 && above.all(is_ours)
}

/// Writes behind a product its digest, and lets others read it.
fn seal(product: &Path) -> io::Result<()> {
    let digest = Sha256::digest(fs::read(product)?);
    fs::OpenOptions::new().append(true).open(product)?.write_all(&digest)?;
    fs::set_permissions(product, fs::Permissions::from_mode(0o644))
}

/// Whether it ends with its digest. What loads objects does not look behind their end.
fn is_whole(product: &Path) -> bool {
    let bytes = fs::read(product).unwrap_or_default();
    bytes.split_last_chunk::<SEAL_BYTES>().is_some_and(|(product, seal)| Sha256::digest(product)[..] == seal[..])
}

/// Deletes the folders of builds that were killed.
fn sweep(cache: &Path) {
    for entry in fs::read_dir(cache).into_iter().flatten().flatten() {
        let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        let age = entry.metadata().and_then(|metadata| metadata.modified()).map(|modified| modified.elapsed());
        if is_hidden && age.is_ok_and(|age| age.is_ok_and(|age| age > LEFT_AFTER)) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Loads a shared object for the rest of the process.
fn load(shared: &Path, digest: String) -> Result<OwnLaw, String> {
    // SAFETY: own.c has no code that runs at loading, and a variable of this type. The object was made by build(), of own.c
    // and a header that calls nothing and has no variables, and this process keeps it loaded.
    #[allow(unsafe_code)]
    let own = unsafe {
        let library = libloading::Library::new(shared).map_err(|error| error.to_string())?;
        let library = Box::leak(Box::new(library));
        let symbol = library.get::<*const std::ffi::c_void>(SYMBOL.as_bytes()).map_err(|error| error.to_string())?;
        let address = symbol.try_as_raw_ptr().ok_or("it has no law")?;
        let told = library.get::<*mut extern "C-unwind" fn(*const c_char, u32)>(DIVIDED_BY_ZERO.as_bytes());
        **told.map_err(|error| error.to_string())? = divided_by_zero;
        OwnLaw::from_symbol(address, digest)
    };
    own.map_err(|error| error.to_string())
}

/// In place of the processor's trap.
extern "C-unwind" fn divided_by_zero(file: *const c_char, line: u32) {
    // SAFETY: clang passes the name of a source, which stays.
    #[allow(unsafe_code)]
    let file = unsafe { std::ffi::CStr::from_ptr(file) };
    let place = format!("{}:{line}", file.to_string_lossy());
    // Without a message of the panic hook: own::caught() makes an error of it.
    std::panic::resume_unwind(Box::new(DividedByZero { place }));
}

fn hexadecimal(digest: Sha256) -> String {
    digest.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
