//! Laws that stay loaded when the loader ends: pinned in a BPF file system.
//!
//! ```text
//! /sys/fs/bpf/lasthop/hd/about        the law, and the version that loaded it
//!                        parameters   its parameters
//!                        counters     totals
//!                        sockets      reading it walks the sockets that have the law
//!                        link         its place in the kernel's list of congestion controls
//!                lastlink/ has besides
//!                        heard        totals of clients' reports
//!                        permits      permissions of clients
//!                        socket_operations    the programs that read and answer reports
//!                        prepare_listeners    reading it enables reports on the reader's listening sockets
//!                        release_listeners    the opposite
//! ```
//!
//! A law is there wholly or not at all: it is built in a folder `loading-hd` and renamed, and it is renamed to
//! A law is present entirely or not at all. It is built in a folder `loading-hd`, which is then renamed. For removal it
//! is renamed to `unloading-hd` and then taken apart. Every change holds a lock on the folder `lasthop`. So anything
//! half done under the lock was left by a killed process, and is removed. The folder itself goes with the last law.
//! Only root may replace a law or hold that lock. So the folder is root's, with mode 700. A folder is refused if others
//! own it, can write in it, or could rename it.

use super::last_link::{self, Clients, Heuristics, LastLink};
use super::loaded::{Handles, Loaded, Name, Options, Walk};
use super::{Error, VERSION};
use crate::layout::{self, About};
use crate::object;
use crate::probe;
use lasthop_laws::{LawName, Parameters};
use libbpf_rs::{Link, MapCore as _, MapHandle};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns};
use nix::sys::statfs::BPF_FS_MAGIC;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, DirBuilder, File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The usual place of a BPF file system.
const USUAL: &str = "/sys/fs/bpf";
/// Our folder in it.
const FOLDER: &str = "lasthop";
/// Timeout for the kernel to forget a link.
const UNREGISTERED_WITHIN: Duration = Duration::from_secs(5);
/// Timeout for the lock. Loading a law takes a tenth of a second.
const LOCKED_WITHIN: Duration = Duration::from_secs(15);

/// The pinned laws of this machine, or of this mount namespace if it has a BPF file system of its own.
#[derive(Clone, Debug)]
pub struct Pins {
    folder: PathBuf,
    prefix: String,
}

/// The state of a law.
#[derive(Debug)]
pub enum Found {
    /// It is not loaded.
    Absent,
    /// The kernel has its name, but it is not pinned here. It was loaded with another BPF file system, or a running
    /// process holds it.
    Elsewhere,
    /// This version loaded it.
    Pinned(Handles),
    /// Another version loaded it. It can be unloaded, but not changed.
    OtherVersion(String),
}

/// The result of [`Pins::unload`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unloaded {
    /// Sockets that keep it until they end or get another law. None are known if another version loaded it.
    pub sockets: Option<usize>,
}

/// A network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefaultOf {
    /// The inode number of its file.
    pub inum: u64,
    /// A file for entering it.
    pub path: PathBuf,
    /// Whether it is the calling thread's.
    pub own: bool,
}

impl fmt::Display for DefaultOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.own {
            write!(f, "this network namespace")
        } else {
            write!(f, "the network namespace {}", self.path.display())
        }
    }
}

impl Pins {
    /// The laws pinned in the BPF file system of this mount namespace. Mounts one if there is none.
    ///
    /// # Errors
    /// If none can be mounted.
    pub fn open() -> Result<Self, Error> {
        let root = match mounted() {
            Some(root) => root,
            None => {
                // By default everybody may make files there.
                mount(Some("bpf"), USUAL, Some("bpf"), MsFlags::empty(), Some("mode=0700"))
                    .map_err(|error| Error::NoFileSystem { source: error.into() })?;
                PathBuf::from(USUAL)
            }
        };
        Ok(Self { folder: root.join(FOLDER), prefix: String::new() })
    }

    /// The same, without mounting. Without a BPF file system no law is pinned.
    pub fn find() -> Self {
        let root = mounted().unwrap_or_else(|| PathBuf::from(USUAL));
        Self { folder: root.join(FOLDER), prefix: String::new() }
    }

    /// In another folder of a BPF file system, with a short prefix before the names in the kernel. For tests, which
    /// must not collide with the machine's loaded laws.
    pub fn at(folder: PathBuf, prefix: &str) -> Self {
        Self { folder, prefix: prefix.to_owned() }
    }

    /// The folder of the pins.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn name(&self, law: LawName) -> String {
        format!("{}{}", self.prefix, law.kernel_name())
    }

    /// Whether the kernel has the law for another reason than a folder of ours, complete or half done.
    fn is_elsewhere(&self, law: LawName) -> bool {
        let folders = [self.place(law), self.half_done("loading", law), self.half_done("unloading", law)];
        !folders.iter().any(|folder| folder.exists()) && is_registered(&self.name(law))
    }

    fn elsewhere(&self, law: LawName) -> Error {
        Error::NameTaken { name: self.name(law), place: self.folder.clone() }
    }

    /// The state of a law that is not pinned here.
    fn absent(&self, law: LawName) -> Error {
        if self.is_elsewhere(law) { self.elsewhere(law) } else { Error::NotLoaded { law } }
    }

    fn place(&self, law: LawName) -> PathBuf {
        self.folder.join(law.as_str())
    }

    fn half_done(&self, what: &str, law: LawName) -> PathBuf {
        self.folder.join(format!("{what}-{law}"))
    }

    /// The state of a law.
    ///
    /// # Errors
    /// If it is pinned but cannot be opened, or others could have changed the pins.
    pub fn look(&self, law: LawName) -> Result<Found, Error> {
        self.check_owner()?;
        let place = self.place(law);
        match fs::metadata(&place) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(if self.is_elsewhere(law) { Found::Elsewhere } else { Found::Absent });
            }
            Err(source) => return Err(pin_error("looking at", &place, source)),
            Ok(_) => {}
        }
        let open = |file: &str| {
            let path = place.join(file);
            MapHandle::from_pinned_path(&path)
                .map_err(|error| pin_error("opening", &path, crate::error::io_error(&error)))
        };
        // an unreadable one was written by another version
        let about: Option<About> =
            object::read(&open("about")?).ok().filter(|about: &About| about.magic == layout::LH_ABOUT_MAGIC);
        let Some(about) = about else { return Ok(Found::OtherVersion("of which nothing is known".into())) };
        let version = layout::unpadded_name(&about.version);
        if version != VERSION || !about.fits() {
            return Ok(Found::OtherVersion(version));
        }
        let last_link = if law.hears_reports() {
            let prepare = Walk::Pinned(place.join(last_link::PREPARE));
            let (heard, permits) = (open(last_link::HEARD.1)?, open(last_link::PERMITS.1)?);
            Some(Box::new(LastLink { heard, permits, prepare }))
        } else {
            None
        };
        Ok(Found::Pinned(Handles {
            law,
            name: layout::unpadded_name(&about.name),
            parameters: open("parameters")?,
            counters: open("counters")?,
            walk: Walk::Pinned(place.join("sockets")),
            last_link,
        }))
    }

    /// The law, if this version loaded it.
    ///
    /// # Errors
    /// If it is not loaded, or another version loaded it.
    pub fn get(&self, law: LawName) -> Result<Handles, Error> {
        match self.look(law)? {
            Found::Pinned(pinned) => Ok(pinned),
            Found::Absent => Err(Error::NotLoaded { law }),
            Found::Elsewhere => Err(self.elsewhere(law)),
            Found::OtherVersion(theirs) => Err(Error::OtherVersion { law, theirs }),
        }
    }

    /// Changes the law's parameters by `change`, with the lock held.
    ///
    /// # Errors
    /// If it is not loaded, another version loaded it, or the kernel refuses. Nothing changes then.
    pub fn change(&self, law: LawName, change: impl FnOnce(Parameters) -> Parameters) -> Result<(), Error> {
        self.changing(law, |handles| handles.set_parameters(&change(handles.parameters()?)))
    }

    /// Permits connections these heuristics from their next report on.
    ///
    /// # Errors
    /// As [`Pins::change`]; and if the law hears nothing, or there are too many entries.
    pub fn permit(&self, law: LawName, clients: &Clients, heuristics: Heuristics) -> Result<(), Error> {
        self.changing(law, |handles| handles.last_link()?.permit(clients, heuristics))
    }

    /// Removes the entries of [`Pins::permit`] for exactly these connections.
    ///
    /// # Errors
    /// As [`Pins::change`]; and if the law hears nothing, or there is no such entry.
    pub fn withdraw(&self, law: LawName, clients: &Clients) -> Result<(), Error> {
        self.changing(law, |handles| handles.last_link()?.withdraw(clients))
    }

    /// Removes all entries of [`Pins::permit`]: all clients are permitted everything again. Returns how many there
    /// were.
    ///
    /// # Errors
    /// As [`Pins::change`]; and if the law hears nothing.
    pub fn withdraw_all(&self, law: LawName) -> Result<usize, Error> {
        self.changing(law, |handles| handles.last_link()?.withdraw_all())
    }

    fn changing<T>(&self, law: LawName, change: impl FnOnce(&Handles) -> Result<T, Error>) -> Result<T, Error> {
        if !self.folder.exists() {
            return Err(self.absent(law));
        }
        let _lock = self.lock()?;
        change(&self.get(law)?)
    }

    /// Enables reports on listening sockets that have the law but listened before it was loaded, or before they got it.
    /// Covers every network namespace that can be found. Later listeners with the law need no help. Does nothing for a
    /// law without reports.
    ///
    /// # Errors
    /// If it is not loaded or another version loaded it.
    pub fn prepare_listeners(&self, law: LawName) -> Result<(), Error> {
        if law.hears_reports() {
            self.get(law)?;
            walk_everywhere(&self.place(law).join(last_link::PREPARE));
        }
        Ok(())
    }

    /// Loads a law for everybody, until [`Pins::unload`].
    ///
    /// # Errors
    /// If this kernel or this user cannot, it is loaded already, its name is taken, or the kernel refuses. Nothing
    /// changes then.
    pub fn load(&self, law: LawName, parameters: Parameters) -> Result<Handles, Error> {
        super::check()?;
        let lock = loop {
            match DirBuilder::new().mode(0o700).create(&self.folder) {
                Err(source) if source.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(pin_error("making", &self.folder, source));
                }
                _ => {}
            }
            if let Some(lock) = self.lock()? {
                break lock;
            }
        };
        let loaded = self.load_locked(law, parameters);
        self.leave(lock);
        loaded
    }

    fn load_locked(&self, law: LawName, parameters: Parameters) -> Result<Handles, Error> {
        self.tidy()?;
        match self.look(law)? {
            // its present owner may release the name: the kernel decides
            Found::Absent | Found::Elsewhere => {}
            Found::Pinned(_) => return Err(Error::AlreadyLoaded { law }),
            Found::OtherVersion(theirs) => return Err(Error::OtherVersion { law, theirs }),
        }
        let staging = self.half_done("loading", law);
        fs::create_dir(&staging).map_err(|source| pin_error("making", &staging, source))?;
        let pinned = self.load_into(law, parameters, &staging);
        if pinned.is_err() {
            // it is no longer registered: load_into() has dropped its link
            remove(&staging)?;
        }
        pinned?;
        let place = self.place(law);
        fs::rename(&staging, &place).map_err(|source| pin_error("renaming", &staging, source))?;
        self.prepare_listeners(law)?;
        self.get(law)
    }

    fn load_into(&self, law: LawName, parameters: Parameters, staging: &Path) -> Result<(), Error> {
        let options = Options { name: Name::Given(self.name(law)), ..Options::new(law, parameters) };
        let mut loaded = Loaded::load(&options).map_err(|error| match error {
            Error::NameTaken { .. } => self.elsewhere(law),
            error => error,
        })?;
        let refused = |path: &Path, error: &libbpf_rs::Error| pin_error("pinning", path, crate::error::io_error(error));
        let maps = [(".rodata.about", "about"), (".data.parameters", "parameters"), (".bss.counters", "counters")];
        let of_last_link = law.hears_reports().then_some([last_link::HEARD, last_link::PERMITS]);
        for (map, file) in maps.into_iter().chain(of_last_link.into_iter().flatten()) {
            let path = staging.join(file);
            let mut map = loaded.object.maps_mut().find(|found| found.name() == map).expect("a map of ours");
            map.pin(&path).map_err(|error| refused(&path, &error))?;
        }
        let pin = |link: &mut Link, file: &str| {
            let path = staging.join(file);
            link.pin(&path).map_err(|error| refused(&path, &error))
        };
        if let Walk::Link(link) = &mut loaded.handles.walk {
            pin(link, "sockets")?;
        }
        if let Some(Walk::Link(link)) = loaded.handles.last_link.as_mut().map(|own| &mut own.prepare) {
            pin(link, last_link::PREPARE)?;
        }
        if let Some(attached) = &mut loaded.attached {
            pin(&mut attached.socket_operations, last_link::SOCKET_OPERATIONS)?;
            pin(&mut attached.release, last_link::RELEASE)?;
        }
        pin(&mut loaded.registration, "link")
    }

    /// Unregisters a law of any version. Sockets that have it keep it.
    ///
    /// # Errors
    /// If it is not loaded, or if it is the default of a network namespace and `even_if_default` is false. Nothing
    /// changes then.
    pub fn unload(&self, law: LawName, even_if_default: bool) -> Result<Unloaded, Error> {
        let Some(lock) = self.lock()? else { return Err(self.absent(law)) };
        let unloaded = self.unload_locked(law, even_if_default);
        self.leave(lock);
        unloaded
    }

    fn unload_locked(&self, law: LawName, even_if_default: bool) -> Result<Unloaded, Error> {
        self.tidy()?;
        let sockets = match self.look(law)? {
            Found::Absent => return Err(Error::NotLoaded { law }),
            Found::Elsewhere => return Err(self.elsewhere(law)),
            Found::Pinned(pinned) => Some(pinned.sockets()?.len()),
            Found::OtherVersion(_) => None,
        };
        let name = self.name(law);
        let namespaces = if even_if_default { Vec::new() } else { namespaces_with_default(&name) };
        if !namespaces.is_empty() {
            return Err(Error::IsDefault { name, namespaces });
        }
        let (place, unloading) = (self.place(law), self.half_done("unloading", law));
        fs::rename(&place, &unloading).map_err(|source| pin_error("renaming", &place, source))?;
        remove(&unloading)?;
        until_unregistered(&name);
        Ok(Unloaded { sockets })
    }

    /// Leftovers of killed loaders, by the names of the folders.
    pub fn leftovers(&self) -> Vec<PathBuf> {
        let half_done = |law| [self.half_done("loading", law), self.half_done("unloading", law)];
        LawName::for_the_kernel().flat_map(half_done).filter(|path| path.exists()).collect()
    }

    /// Removes the leftovers. The caller holds the lock, so nobody is using them.
    fn tidy(&self) -> Result<(), Error> {
        let leftovers = self.leftovers();
        for path in &leftovers {
            remove(path)?;
        }
        if !leftovers.is_empty() {
            LawName::for_the_kernel()
                .filter(|&law| !self.place(law).exists())
                .for_each(|law| until_unregistered(&self.name(law)));
        }
        Ok(())
    }

    /// Locks the folder; `None` if it is absent.
    fn lock(&self) -> Result<Option<Flock<File>>, Error> {
        let deadline = Instant::now() + LOCKED_WITHIN;
        loop {
            self.check_owner()?;
            let folder = match File::open(&self.folder) {
                Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(None),
                folder => folder.map_err(|source| pin_error("opening", &self.folder, source))?,
            };
            let lock = match Flock::lock(folder, FlockArg::LockExclusiveNonblock) {
                Ok(lock) => lock,
                Err((_, Errno::EWOULDBLOCK)) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(20));
                    continue;
                }
                Err((folder, Errno::EWOULDBLOCK)) => {
                    let holder = folder.metadata().ok().and_then(|folder| holder_of(&folder));
                    let holder = holder.map_or("another process".to_owned(), |pid| format!("process {pid}"));
                    return Err(Error::Locked { folder: self.folder.clone(), holder, within: LOCKED_WITHIN });
                }
                Err((_, error)) => return Err(pin_error("locking", &self.folder, error.into())),
            };
            let locked = lock.metadata().map_err(|source| pin_error("reading", &self.folder, source))?;
            // The former holder may have removed the folder, and another process may have made a new one.
            if fs::metadata(&self.folder).is_ok_and(|there| (there.dev(), there.ino()) == (locked.dev(), locked.ino()))
            {
                return Ok(Some(lock));
            }
        }
    }

    /// Refuses a folder that others can change. One that others can only open is closed to them, because opening it
    /// suffices to lock it.
    fn check_owner(&self) -> Result<(), Error> {
        let looking = |path: &Path, source| pin_error("looking at", path, source);
        let folder = match fs::symlink_metadata(&self.folder) {
            Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(()),
            folder => folder.map_err(|source| looking(&self.folder, source))?,
        };
        let refuse = |path: &Path, found: &Metadata| {
            Err(Error::NotRoots { path: path.to_owned(), owner: found.uid(), mode: found.mode() & 0o7777 })
        };
        if !folder.is_dir() || folder.uid() != 0 || folder.mode() & 0o022 != 0 {
            return refuse(&self.folder, &folder);
        }
        if let Some(parent) = self.folder.parent() {
            let found = fs::metadata(parent).map_err(|source| looking(parent, source))?;
            // With the sticky bit others can make files there, but not rename ours.
            if found.uid() != 0 || (found.mode() & 0o022 != 0 && found.mode() & 0o1000 == 0) {
                return refuse(parent, &found);
            }
        }
        if folder.mode() & 0o077 != 0 {
            let closed = fs::set_permissions(&self.folder, Permissions::from_mode(0o700));
            closed.map_err(|source| pin_error("changing the mode of", &self.folder, source))?;
        }
        Ok(())
    }

    /// Releases the lock, and removes the folder if it is empty.
    fn leave(&self, lock: Flock<File>) {
        // it rarely is
        let _ = fs::remove_dir(&self.folder);
        drop(lock);
    }
}

/// The process that has locked this file: proc(5), /proc/locks.
fn holder_of(file: &Metadata) -> Option<u32> {
    let (major, minor) = (nix::sys::stat::major(file.dev()), nix::sys::stat::minor(file.dev()));
    let place = format!("{major:02x}:{minor:02x}:{}", file.ino());
    let locks = fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|line| {
        let columns: Vec<_> = line.split_whitespace().collect();
        let [_, "FLOCK", _, _, pid, at, ..] = columns[..] else { return None };
        (at == place).then(|| pid.parse().ok())?
    })
}

fn pin_error(doing: &'static str, path: &Path, source: io::Error) -> Error {
    Error::Pin { doing, path: path.to_owned(), source }
}

/// The BPF file system of this mount namespace, the usual place first.
fn mounted() -> Option<PathBuf> {
    let mounts = probe::mounts_of("bpf", BPF_FS_MAGIC);
    let usual = mounts.iter().find(|path| path.as_path() == Path::new(USUAL)).cloned();
    usual.or_else(|| mounts.into_iter().next())
}

/// Removes a law's folder. The link goes first, then the enabling of listeners, and at last the disabling.
fn remove(folder: &Path) -> Result<(), Error> {
    for file in ["link", last_link::SOCKET_OPERATIONS] {
        // a failed removal is tried again below
        let _ = fs::remove_file(folder.join(file));
    }
    let release = folder.join(last_link::RELEASE);
    if release.exists() {
        walk_everywhere(&release);
    }
    let mut files = Vec::new();
    let entries = fs::read_dir(folder).map_err(|source| pin_error("reading", folder, source))?;
    files.extend(entries.filter_map(|entry| Some(entry.ok()?.path())));
    for file in files {
        match fs::remove_file(&file) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                return Err(pin_error("removing", &file, source));
            }
            _ => {}
        }
    }
    fs::remove_dir(folder).map_err(|source| pin_error("removing", folder, source))
}

/// Whether the kernel has a congestion control of this name.
fn is_registered(name: &str) -> bool {
    probe::registered_controls().iter().any(|registered| registered == name)
}

/// The kernel unregisters a control shortly after the last descriptor of its link is closed.
fn until_unregistered(name: &str) {
    let deadline = Instant::now() + UNREGISTERED_WITHIN;
    while is_registered(name) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Reads a pinned walk without output, in every network namespace that can be found.
fn walk_everywhere(walk: &Path) {
    for namespace in namespaces() {
        // a namespace that ends meanwhile, or cannot be entered, has no sockets of concern
        let _ = within(&namespace, || fs::read(walk));
    }
}

/// The network namespaces with this default, among those found by a process or a name.
fn namespaces_with_default(name: &str) -> Vec<DefaultOf> {
    let default_of =
        |namespace: &DefaultOf| within(namespace, || fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control"));
    let found = namespaces().into_iter();
    found.filter(|namespace| default_of(namespace).is_ok_and(|default| default.trim() == name)).collect()
}

/// The network namespaces found by a process or a name.
fn namespaces() -> Vec<DefaultOf> {
    const OWN: &str = "/proc/thread-self/ns/net";
    let own = fs::metadata(OWN).map(|found| found.ino()).unwrap_or_default();
    let entries =
        |folder: &str| fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let of_processes = entries("/proc").map(|process| process.join("ns/net"));
    let named = entries("/run/netns").chain(entries("/var/run/netns"));
    let mut found = BTreeMap::new();
    // a name says more than a process
    for path in named.chain(of_processes).chain([PathBuf::from(OWN)]) {
        if let Ok(metadata) = fs::metadata(&path) {
            found.entry(metadata.ino()).or_insert(path);
        }
    }
    found.into_iter().map(|(inum, path)| DefaultOf { inum, path, own: inum == own }).collect()
}

/// Does `work` in a network namespace, on a thread of its own that need not return to the old one.
fn within<T: Send>(namespace: &DefaultOf, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    let file = File::open(&namespace.path)?;
    std::thread::scope(|scope| {
        let worker = scope.spawn(move || {
            setns(&file, CloneFlags::CLONE_NEWNET)?;
            work()
        });
        worker.join().unwrap_or_else(|_| Err(Errno::EIO.into()))
    })
}
