//! Kernels by name, in the cache folder: Debian's, and those of a user's own.
//!
//! ```text
//! $XDG_CACHE_HOME/lasthop/kernels/NAME/
//!   vmlinuz         as its package or its build has it
//!   modules/*.ko    those that a guest may need, unpacked
//!   kernel.json     release, digest of vmlinuz, order of the modules
//! ```

use crate::architecture::Architecture;
use crate::debian::{Apt, LOOK_EVERY, run_until};
use crate::error::{At as _, Error, Result};
use crate::work::{Work, remove_leftovers};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

/// Debian's kernels: the name, the suite, and the architecture.
const DEBIAN: [(&str, &str, Architecture); 6] = [
    ("debian-6.1", "bookworm", Architecture::Amd64),
    ("debian-6.12", "trixie", Architecture::Amd64),
    ("debian-newest", "sid", Architecture::Amd64),
    ("debian-6.1-arm64", "bookworm", Architecture::Arm64),
    ("debian-6.12-arm64", "trixie", Architecture::Arm64),
    ("debian-newest-arm64", "sid", Architecture::Arm64),
];

/// The names of the kernels that [`Kernels::fetch`] brings, each with its architecture.
pub fn names() -> impl Iterator<Item = (&'static str, Architecture)> {
    DEBIAN.iter().map(|(name, _, architecture)| (*name, *architecture))
}

/// The names, in words.
pub(crate) fn all_names() -> String {
    names().map(|(name, _)| name).collect::<Vec<_>>().join(", ")
}

/// The kernel of a run that names none: one that this machine's programs run under.
pub const DEFAULT_KERNEL: &str = if cfg!(target_arch = "aarch64") { DEBIAN[4].0 } else { DEBIAN[1].0 };

/// Modules that are loaded before a job: the laboratory's devices, what a kernel is asked for its sockets by, the file systems of a job
/// that finds this machine's files, and every congestion control.
const OF_JOBS: &[&str] = &[
    "tun",
    "veth",
    "ipv6",
    "sch_tbf",
    "sch_htb",
    "sch_netem",
    "sch_ingress",
    "sch_fq",
    "cls_u32",
    "act_mirred",
    "ifb",
    "inet_diag",
    "tcp_diag",
    "udp_diag",
    "fuse",
    "overlay",
    "tcp_bbr",
    "tcp_bic",
    "tcp_cdg",
    "tcp_dctcp",
    "tcp_highspeed",
    "tcp_htcp",
    "tcp_hybla",
    "tcp_illinois",
    "tcp_lp",
    "tcp_nv",
    "tcp_scalable",
    "tcp_vegas",
    "tcp_veno",
    "tcp_westwood",
    "tcp_yeah",
];
/// Linux's queue disciplines, of `--queue linux`. They are loaded with those of jobs. A kernel that was kept without them is good for
/// all else, so they are not looked for.
const OF_QUEUES: &[&str] =
    &["sch_codel", "sch_pie", "sch_fq_pie", "sch_fq_codel", "sch_red", "sch_cake", "sch_dualpi2"];
/// How the modules of congestion controls are named. A kernel of a user's own has all of those in its tree.
const OF_CONTROLS: &str = "tcp_";
/// That by which a job comes.
const OF_ARRIVAL: &[&str] = &["qemu_fw_cfg"];
/// Linux's Wi-Fi with simulated radios: loaded only for a job that wants radios.
const OF_RADIOS: &[&str] = &[RADIOS];
/// The module that makes simulated radios.
pub(crate) const RADIOS: &str = "mac80211_hwsim";
/// What programs of a job ask the kernel for, which loads nothing by itself in a guest: other devices, filters, and the ciphers of WPA2.
/// They are loaded only for a job that finds this machine's files. A kernel that was kept without them is good for all else.
const OF_PROGRAMS: &[&str] = &[
    "crc32c_generic",
    "dummy",
    "vrf",
    "bridge",
    "nlmon",
    "nf_conntrack",
    "nf_tables",
    "nft_compat",
    "nft_ct",
    "nft_numgen",
    "ccm",
    "cmac",
    "gcm",
];
/// Those by which its files leave.
const OF_LEAVING: &[&str] = &["virtio_pci", "9pnet_virtio", "9p"];

/// What each guest needs of a kernel: the option, and the module if it may be one.
const NEEDED: [(&str, Option<&str>); 10] = [
    ("CONFIG_9P_FS", Some("9p")),
    ("CONFIG_BPF_SYSCALL", None),
    ("CONFIG_CGROUPS", None),
    ("CONFIG_DEVTMPFS", None),
    ("CONFIG_NET_9P_VIRTIO", Some("9pnet_virtio")),
    // CONFIG_NO_HZ_IDLE and CONFIG_NO_HZ_FULL have it.
    ("CONFIG_NO_HZ_COMMON", None),
    ("CONFIG_PCI", None),
    ("CONFIG_SYSFS", None),
    ("CONFIG_TUN", Some("tun")),
    ("CONFIG_VIRTIO_PCI", Some("virtio_pci")),
];

/// What it also needs on amd64, to find its devices and to turn itself off.
const OF_AMD64: (&str, Option<&str>) = ("CONFIG_ACPI", None);

/// How folders of work begin.
const WORK: &str = ".work-";
/// Locked by the process that fetches one.
const FETCHING: &str = ".fetching";
const KERNEL_FILE: &str = "kernel.json";
const IMAGE_FILE: &str = "vmlinuz";

/// A kernel that is here.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Its name: of `--kernel`.
    pub name: String,
    /// As `uname -r` says in the guest.
    pub release: String,
    /// The processor that it is for.
    pub architecture: Architecture,
    pub(crate) folder: PathBuf,
    pub(crate) image_digest: String,
    pub(crate) modules: Modules,
    of_this_build: bool,
}

/// Digits of [`Kernel::digest`].
const DIGITS: usize = 16;

/// Modules in the order in which they are loaded, by when.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Modules {
    pub(crate) of_jobs: Vec<String>,
    pub(crate) of_arrival: Vec<String>,
    pub(crate) of_leaving: Vec<String>,
    /// Empty: there are none, or an earlier version of lasthop has kept this kernel.
    #[serde(default)]
    pub(crate) of_radios: Vec<String>,
    /// The same.
    #[serde(default)]
    pub(crate) of_programs: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct KernelFile {
    release: String,
    #[serde(default)]
    architecture: Architecture,
    sha256: String,
    modules: Modules,
    /// The modules that were looked for.
    #[serde(default)]
    wanted: Vec<String>,
}

fn wanted(name: &str) -> Vec<String> {
    let controls = if is_of_debian(name) { &[][..] } else { &[OF_CONTROLS] };
    [OF_JOBS, OF_ARRIVAL, OF_LEAVING, controls].concat().into_iter().map(str::to_owned).collect()
}

/// Whether a module has a congestion control.
pub(crate) fn is_control(module: &str) -> bool {
    module.starts_with(OF_CONTROLS) && module != "tcp_diag"
}

/// Whether a kernel of this name is Debian's.
fn is_of_debian(name: &str) -> bool {
    names().any(|(of_debian, _)| of_debian == name)
}

impl Kernel {
    /// Whether it has the modules that this version looks for. Another one has to be fetched or built again.
    pub fn is_of_this_build(&self) -> bool {
        self.of_this_build
    }

    /// The beginning of a digest of its image and of the modules that a guest loads: two builds of one release differ in it.
    ///
    /// # Errors
    /// If a module cannot be read.
    pub fn digest(&self) -> Result<String> {
        let mut of = Sha256::new_with_prefix(&self.image_digest);
        let Modules { of_jobs, of_arrival, of_leaving, of_radios, of_programs } = &self.modules;
        for name in [of_jobs, of_arrival, of_leaving, of_radios, of_programs].into_iter().flatten() {
            let path = self.module(name);
            of.update(digest(&fs::read(&path).at("cannot read", &path)?));
        }
        Ok(text(&of.finalize())[..DIGITS].to_owned())
    }

    /// Whether a job under it can find this machine's files.
    ///
    /// # Errors
    /// If it cannot.
    pub fn check_files(&self) -> Result<()> {
        let can = self.architecture.has_window() && Architecture::here().is_ok_and(|here| here == self.architecture);
        if can { Ok(()) } else { Err(Error::NoWindow { kernel: self.name.clone() }) }
    }

    pub(crate) fn image(&self) -> PathBuf {
        self.folder.join(IMAGE_FILE)
    }

    pub(crate) fn module(&self, name: &str) -> PathBuf {
        self.folder.join("modules").join(format!("{name}.ko"))
    }
}

/// The folder of kernels.
#[derive(Clone, Debug)]
pub struct Kernels {
    folder: PathBuf,
}

impl Kernels {
    /// Those of the user's cache: `$XDG_CACHE_HOME/lasthop/kernels`, or `~/.cache/lasthop/kernels`.
    ///
    /// # Errors
    /// If neither variable is an absolute path.
    pub fn in_cache() -> Result<Self> {
        Ok(Self { folder: cache()?.join("kernels") })
    }

    /// All, by name.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn list(&self) -> Result<Vec<Kernel>> {
        if !self.folder.exists() {
            return Ok(Vec::new());
        }
        let mut kernels = Vec::new();
        for entry in fs::read_dir(&self.folder).at("cannot read", &self.folder)? {
            let entry = entry.at("cannot read", &self.folder)?;
            // A fetch that is under way, or was killed, has a name with a leading dot.
            let name = entry.file_name();
            let is_kept = entry.path().join(KERNEL_FILE).exists();
            if let Some(name) = name.to_str().filter(|name| is_kept && !name.starts_with('.')) {
                kernels.push(self.read(name)?);
            }
        }
        kernels.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(kernels)
    }

    /// The kernel of this name, as it was kept.
    ///
    /// # Errors
    /// If there is none, or another version of lasthop has kept it.
    pub fn find(&self, name: &str) -> Result<Kernel> {
        if !self.folder.join(check_name(name)?).exists() {
            let here: Vec<String> = self.list()?.into_iter().map(|kernel| kernel.name).collect();
            let here = if here.is_empty() { "none is here yet".to_owned() } else { here.join(", ") };
            return Err(Error::Kernel { name: name.to_owned(), here });
        }
        let kernel = self.read(name)?;
        if !kernel.of_this_build {
            let problem =
                "another version of lasthop has kept it, with other modules: fetch or build it again".to_owned();
            return Err(Error::Kept { path: kernel.folder, problem });
        }
        Ok(kernel)
    }

    /// The same, its image checked against the digest that was kept.
    ///
    /// # Errors
    /// Also if it has changed.
    pub fn get(&self, name: &str) -> Result<Kernel> {
        let kernel = self.find(name)?;
        let image = kernel.image();
        let found = digest(&fs::read(&image).at("cannot read", &image)?);
        if found != kernel.image_digest {
            let problem =
                format!("it has changed since it was fetched; `lasthop kernels fetch {name}` brings it again");
            return Err(Error::Kept { path: image, problem });
        }
        Ok(kernel)
    }

    /// Fetches one of Debian's kernels by apt, and unpacks it; installs nothing. Replaces one of the same name.
    ///
    /// # Errors
    /// If there is no such kernel, a program is missing, it cannot be fetched, or `stop` ended that. What was there stays.
    pub fn fetch(&self, name: &str, stop: &AtomicBool, say: &dyn Fn(&str)) -> Result<Kernel> {
        let Some(&(_, suite, architecture)) = DEBIAN.iter().find(|(known, _, _)| *known == name) else {
            return Err(Error::Unknown { name: name.to_owned() });
        };
        fs::create_dir_all(&self.folder).at("cannot make", &self.folder)?;
        // Others may just be fetching the same one.
        let file = self.folder.join(name).join(KERNEL_FILE);
        let when = || fs::metadata(&file).and_then(|file| file.modified()).ok();
        let before = when();
        let (_alone, has_waited) = self.alone(stop, say)?;
        if has_waited && when() != before {
            return self.get(name);
        }
        let work = self.work_folder()?;
        say(&format!("fetching {name} (Debian's {suite}), some 100 MB"));
        fetch_debian(suite, architecture, work.path(), stop)?;
        let unpacked = work.path().join(Apt::UNPACKED);
        let image = find(&unpacked, &|name| name.starts_with("vmlinuz"))?;
        let Some(image) = image else {
            return Err(Error::Failed {
                what: format!("fetching {name}"),
                said: "the package has no kernel".to_owned(),
            });
        };
        self.keep(name, &image, &unpacked, stop)
    }

    /// Keeps a kernel of the user's own: a folder with `bzImage`, `Image` (arm64) or `vmlinuz` and modules, such as a kernel's tree
    /// after `make bzImage modules`. Replaces one of the same name. Its congestion controls are all modules `tcp_*`.
    ///
    /// # Errors
    /// If there is no kernel in it, its modules are another kernel's, its `.config` or `modules.builtin` lacks what a guest needs, the name
    /// is that of a kernel of Debian's, or `stop` ended it.
    pub fn build(&self, name: &str, tree: &Path, stop: &AtomicBool) -> Result<Kernel> {
        if is_of_debian(name) {
            return Err(Error::Taken { name: name.to_owned() });
        }
        let image = find(tree, &|file| matches!(file, "bzImage" | "Image") || file.starts_with("vmlinuz"))?;
        let Some(image) = image else {
            let problem =
                "there is no bzImage, Image or vmlinuz in it: `make bzImage modules` makes them, `make Image modules` for arm64"
                    .to_owned();
            return Err(Error::Kept { path: tree.to_owned(), problem });
        };
        fs::create_dir_all(&self.folder).at("cannot make", &self.folder)?;
        self.keep(name, &image, tree, stop)
    }

    /// Copies image and modules into a folder that then takes its place as a whole.
    fn keep(&self, name: &str, image: &Path, tree: &Path, stop: &AtomicBool) -> Result<Kernel> {
        let to = self.folder.join(check_name(name)?);
        let new = self.work_folder()?;
        let bytes = fs::read(image).at("cannot read", image)?;
        let found = release_of(&bytes).map(|release| (Architecture::Amd64, release));
        let found = found.or_else(|| Some((Architecture::Arm64, release_of_arm64(&bytes)?)));
        let (architecture, release) = found.ok_or_else(|| Error::Kept {
            path: image.to_owned(),
            problem: "it is no kernel for x86-64 (a bzImage) or arm64 (an Image)".to_owned(),
        })?;
        let write = |path: PathBuf, bytes: &[u8]| fs::write(&path, bytes).at("cannot write", &path);
        write(new.path().join(IMAGE_FILE), &bytes)?;
        let folder = new.path().join("modules");
        fs::create_dir(&folder).at("cannot make", &folder)?;
        let found = modules_below(tree, &release)?;
        let unpacking = |known| Unpacking { found: &found, image, release: &release, folder: &folder, known, stop };
        let mut unpacked = unpacking(Vec::new());
        let mut of_jobs = [OF_JOBS, OF_QUEUES].concat();
        if !is_of_debian(name) {
            of_jobs.extend(found.keys().map(String::as_str).filter(|name| name.starts_with(OF_CONTROLS)));
        }
        let of_jobs = unpacked.all(&of_jobs)?;
        let modules = Modules {
            of_arrival: unpacked.all(OF_ARRIVAL)?,
            of_leaving: unpacked.all(OF_LEAVING)?,
            // Whole but for those of jobs: radios come before what is for leaving, and a guest may have none.
            of_radios: unpacking(of_jobs.clone()).all(OF_RADIOS)?,
            of_programs: unpacking(of_jobs.clone()).all(OF_PROGRAMS)?,
            of_jobs,
        };
        let mut lacking = lacking(tree, (&release, architecture), &found)?;
        if modules.of_arrival.is_empty() {
            lacking.push("CONFIG_FW_CFG_SYSFS=m (the module qemu_fw_cfg)".to_owned());
        }
        if !lacking.is_empty() {
            let problem = format!("this kernel lacks what a guest needs: {}", lacking.join(", "));
            return Err(Error::Kept { path: tree.to_owned(), problem });
        }
        let file = KernelFile { release, architecture, sha256: digest(&bytes), modules, wanted: wanted(name) };
        let file = serde_json::to_vec_pretty(&file).expect("plain data");
        write(new.path().join(KERNEL_FILE), &file)?;
        new.take_the_place_of(&to)?;
        self.read(name)
    }

    fn work_folder(&self) -> Result<Work> {
        Work::new(&self.folder, WORK)
    }

    /// Held by the one process that fetches: others that begin meanwhile wait, for it may bring what they want. Returns whether it did.
    fn alone(&self, stop: &AtomicBool, say: &dyn Fn(&str)) -> Result<(Flock<File>, bool)> {
        let path = self.folder.join(FETCHING);
        let mut file = File::create(&path).at("cannot write", &path)?;
        let mut has_waited = false;
        loop {
            file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(alone) => return Ok((alone, has_waited)),
                Err((file, Errno::EWOULDBLOCK)) => file,
                Err((_, error)) => return Err(std::io::Error::from(error)).at("cannot lock", &path),
            };
            if stop.load(Ordering::Relaxed) {
                return Err(Error::Failed { what: "waiting to fetch".to_owned(), said: "interrupted".to_owned() });
            }
            if !has_waited {
                say("waiting for another lasthop, which is fetching a kernel");
            }
            has_waited = true;
            std::thread::sleep(LOOK_EVERY);
        }
    }

    fn read(&self, name: &str) -> Result<Kernel> {
        let folder = self.folder.join(name);
        let path = folder.join(KERNEL_FILE);
        let text = fs::read(&path).at("cannot read", &path)?;
        let file: KernelFile = serde_json::from_slice(&text).map_err(|error| Error::Kept {
            path,
            problem: format!("{error}; remove {} and fetch it again", folder.display()),
        })?;
        let KernelFile { release, architecture, sha256, modules, wanted: looked_for } = file;
        let of_this_build = looked_for == wanted(name);
        let name = name.to_owned();
        Ok(Kernel { name, release, architecture, folder, image_digest: sha256, modules, of_this_build })
    }
}

/// The user's cache folder of lasthop.
pub(crate) fn cache() -> Result<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    Ok(cache.ok_or(Error::NoCache)?.join("lasthop"))
}

pub(crate) fn digest(bytes: &[u8]) -> String {
    text(&Sha256::digest(bytes))
}

fn text(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Removes what commands that were killed have left: of kernels, programs and runs.
///
/// # Errors
/// If there is no folder for the cache.
pub fn remove_what_is_left() -> Result<()> {
    let cache = cache()?;
    for (folder, work) in
        [("kernels", WORK), (crate::program::FOLDER, WORK), (crate::machine::FOLDER, crate::machine::WORK)]
    {
        remove_leftovers(&cache.join(folder), work);
    }
    Ok(())
}

fn check_name(name: &str) -> Result<&str> {
    let is_one = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-".contains(&byte);
    let is_name = (1..=40).contains(&name.len()) && !name.starts_with('.') && name.bytes().all(is_one);
    if is_name { Ok(name) } else { Err(Error::Name { name: name.to_owned() }) }
}

/// The release of a bzImage for 64 bits: Documentation/arch/x86/boot.rst, `kernel_version` and `xloadflags`.
fn release_of(image: &[u8]) -> Option<String> {
    const MAGIC_AT: usize = 0x202;
    const VERSION_AT: usize = 0x20e;
    const LOAD_FLAGS_AT: usize = 0x236;
    const XLF_KERNEL_64: u8 = 1;
    if image.get(MAGIC_AT..MAGIC_AT + 4)? != b"HdrS" || image.get(LOAD_FLAGS_AT)? & XLF_KERNEL_64 == 0 {
        return None;
    }
    let at = usize::from(u16::from_le_bytes([*image.get(VERSION_AT)?, *image.get(VERSION_AT + 1)?])) + 0x200;
    let text: Vec<u8> = image.get(at..)?.iter().copied().take_while(|byte| !b"\0 ".contains(byte)).collect();
    String::from_utf8(text).ok().filter(|release| !release.is_empty())
}

/// The release of an arm64 Image (Documentation/arch/arm64/booting.rst): of the words that it boots with.
fn release_of_arm64(image: &[u8]) -> Option<String> {
    const MAGIC_AT: usize = 0x38;
    const WORDS: &[u8] = b"Linux version ";
    if image.get(MAGIC_AT..MAGIC_AT + 4)? != b"ARM\x64" {
        return None;
    }
    // The same words come with a placeholder for the release too.
    let places = image.windows(WORDS.len()).enumerate().filter(|(_, bytes)| *bytes == WORDS);
    let releases = places.map(|(at, _)| image[at + WORDS.len()..].iter().copied().take_while(u8::is_ascii_graphic));
    releases
        .map(Iterator::collect)
        .filter_map(|text| String::from_utf8(text).ok())
        .find(|text| text.starts_with(|first: char| first.is_ascii_digit()))
}

/// The first regular file below a folder whose name is one, in the order of paths.
fn find(folder: &Path, is_it: &dyn Fn(&str) -> bool) -> Result<Option<PathBuf>> {
    let mut found = None;
    walk(folder, &mut |path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if found.is_none() && is_it(name) {
            found = Some(path.to_owned());
        }
    })?;
    Ok(found)
}

/// Each module below a folder, by its name without `.ko` and what follows; of several that of the folder of this release, else the
/// first.
fn modules_below(folder: &Path, release: &str) -> Result<BTreeMap<String, PathBuf>> {
    let mut modules: BTreeMap<String, PathBuf> = BTreeMap::new();
    walk(folder, &mut |path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if let Some((name, "" | ".xz" | ".zst" | ".gz")) = name.split_once(".ko") {
            let kept = modules.entry(name.replace('-', "_")).or_insert_with(|| path.to_owned());
            if is_below(path, folder, release) && !is_below(kept, folder, release) {
                path.clone_into(kept);
            }
        }
    })?;
    Ok(modules)
}

/// Whether a path leads from a tree through a folder of this name.
fn is_below(path: &Path, tree: &Path, folder: &str) -> bool {
    path.strip_prefix(tree).is_ok_and(|path| path.components().any(|part| part.as_os_str() == folder))
}

pub(crate) fn walk(folder: &Path, each: &mut dyn FnMut(&Path)) -> Result<()> {
    let entries = fs::read_dir(folder).at("cannot read", folder)?;
    let mut paths = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<std::io::Result<Vec<_>>>()
        .at("cannot read", folder)?;
    paths.sort();
    for path in paths {
        let kind = fs::symlink_metadata(&path).at("cannot read", &path)?.file_type();
        if kind.is_dir() {
            walk(&path, each)?;
        } else if kind.is_file() {
            each(&path);
        }
    }
    Ok(())
}

/// The options that a kernel lacks, as far as its folder tells: by `.config` or `config-RELEASE`, else by `modules.builtin`. Without
/// these nothing is known: what is no module may be built in.
fn lacking(
    tree: &Path,
    (release, architecture): (&str, Architecture),
    modules: &BTreeMap<String, PathBuf>,
) -> Result<Vec<String>> {
    let read = |path: &Path| fs::read_to_string(path).at("cannot read", path);
    let of_release = format!("config-{release}");
    let own = Some(tree.join(".config")).filter(|path| path.is_file());
    let config = own.map_or_else(|| find(tree, &|name| name == of_release), |own| Ok(Some(own)))?;
    let config = config.map(|path| read(&path)).transpose()?;
    let mut lists = Vec::new();
    walk(tree, &mut |path| lists.extend(path.ends_with("modules.builtin").then(|| path.to_owned())))?;
    let built_in = lists.iter().find(|path| is_below(path, tree, release)).or(lists.first());
    let built_in = built_in.map(|path| read(path)).transpose()?;
    let is_built_in = |module: &str| {
        let mut files = built_in.iter().flat_map(|lines| lines.lines()).filter_map(|line| line.rsplit('/').next());
        files.any(|file| file.strip_suffix(".ko").is_some_and(|name| name.replace('-', "_") == module))
    };
    let of = |&(option, module): &(&str, Option<&str>)| {
        let has_module = module.is_some_and(|module| modules.contains_key(module));
        let value = config.as_ref().map(|config| {
            config.lines().find_map(|line| line.strip_prefix(option)?.strip_prefix('=')).unwrap_or_default()
        });
        match (value, module) {
            (Some("y"), _) => None,
            (Some("m"), Some(module)) => (!has_module).then(|| format!("the module {module} of {option}=m")),
            (Some(_), _) => Some(option.to_owned()),
            (None, Some(module)) if built_in.is_some() && !has_module && !is_built_in(module) => {
                Some(option.to_owned())
            }
            (None, _) => None,
        }
    };
    let of_processor = (architecture == Architecture::Amd64).then_some(&OF_AMD64);
    Ok(NEEDED.iter().chain(of_processor).filter_map(of).collect())
}

/// What unpacks a kernel's modules into a folder.
struct Unpacking<'a> {
    found: &'a BTreeMap<String, PathBuf>,
    image: &'a Path,
    /// The image's.
    release: &'a str,
    folder: &'a Path,
    /// Those that are unpacked.
    known: Vec<String>,
    stop: &'a AtomicBool,
}

impl Unpacking<'_> {
    /// Unpacks modules, and those that they need. Returns the order in which they can be loaded.
    fn all(&mut self, names: &[&str]) -> Result<Vec<String>> {
        let mut order = Vec::new();
        names.iter().try_for_each(|name| self.one(name, &mut order))?;
        Ok(order)
    }

    /// Unpacks a module after those that it needs. One that is not there is built in, or the guest says what is missing.
    fn one(&mut self, name: &str, order: &mut Vec<String>) -> Result<()> {
        let name = name.replace('-', "_");
        let Some(path) = self.found.get(&name).filter(|_| !self.known.contains(&name)) else { return Ok(()) };
        if self.stop.load(Ordering::Relaxed) {
            return Err(Error::Failed { what: "unpacking modules".to_owned(), said: "interrupted".to_owned() });
        }
        self.known.push(name.clone());
        let unpacked =
            |program, words, package| run_until(Command::new(program).arg(words).arg(path), package, self.stop);
        let bytes = match path.extension().and_then(|extension| extension.to_str()) {
            Some("xz") => unpacked("xz", "-dc", "xz-utils")?,
            Some("zst") => unpacked("zstd", "-dcq", "zstd")?,
            Some("gz") => unpacked("gzip", "-dc", "gzip")?,
            _ => fs::read(path).at("cannot read", path)?,
        };
        let magic = said_of(&bytes, b"\0vermagic=");
        if let Some(other) = magic.split(' ').next().filter(|other| !["", self.release].contains(other)) {
            let problem =
                format!("it is a module of the kernel {other}, and {} is {}", self.image.display(), self.release);
            return Err(Error::Kept { path: path.clone(), problem });
        }
        for needed in needs(&bytes) {
            self.one(&needed, order)?;
        }
        let to = self.folder.join(format!("{name}.ko"));
        fs::write(&to, bytes).at("cannot write", &to)?;
        order.push(name);
        Ok(())
    }
}

/// The modules that a module needs.
fn needs(module: &[u8]) -> Vec<String> {
    let value = said_of(module, b"\0depends=");
    value.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// What a module's section `.modinfo` says; empty: nothing.
fn said_of(module: &[u8], key: &[u8]) -> String {
    let at = module.windows(key.len()).position(|window| window == key);
    let value = at.map(|at| module[at + key.len()..].split(|byte| *byte == 0).next().unwrap_or_default());
    String::from_utf8_lossy(value.unwrap_or_default()).into_owned()
}

/// The packages of a suite's kernel, unpacked into `work`.
fn fetch_debian(suite: &str, architecture: Architecture, work: &Path, stop: &AtomicBool) -> Result<()> {
    let apt = Apt::of(suite, architecture, work, stop)?;
    // linux-image-amd64 depends on the newest, and that, in sid, on the packages with the binary and the modules.
    let newest = format!("linux-image-{architecture}");
    let image = apt.depends(&newest, &["linux-image-"])?.into_iter().next().unwrap_or(newest);
    let parts = apt.depends(&image, &["linux-binary-", "linux-modules-"])?;
    apt.unpack(&if parts.is_empty() { vec![image] } else { parts })
}

#[cfg(test)]
mod tests {
    use super::*;

    static GO_ON: AtomicBool = AtomicBool::new(false);

    /// What names a kernel for 64 bits.
    fn bz_image(version: &str) -> Vec<u8> {
        let mut image = vec![0_u8; 0x500];
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x20e..0x210].copy_from_slice(&0x100_u16.to_le_bytes());
        image[0x236] = 1;
        image[0x300..0x300 + version.len()].copy_from_slice(version.as_bytes());
        image
    }

    #[test]
    fn a_module_needs_what_its_information_says() {
        let module = b"\x7fELF\0alias=x\0depends=netfs,9pnet\0name=9p\0";
        assert_eq!(needs(module), ["netfs", "9pnet"]);
        assert!(needs(b"\0depends=\0name=tun\0").is_empty());
        assert!(needs(b"no module").is_empty());
    }

    #[test]
    fn a_kernel_says_its_release_in_its_header() {
        let mut image = bz_image("6.12.117+deb13 (build)");
        assert_eq!(release_of(&image).as_deref(), Some("6.12.117+deb13"));
        assert_eq!(release_of(&image[..0x204]), None);
        assert_eq!(release_of(b"\x7fELF"), None);
        image[0x236] = 0; // for 32 bits
        assert_eq!(release_of(&image), None);
    }

    #[test]
    fn a_kernel_lacks_the_options_that_neither_its_configuration_nor_its_modules_have() {
        let tree = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| fs::write(tree.path().join(name), text).expect("written");
        let modules = |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), PathBuf::new())).collect();
        let of = |architecture, names: &[&str]| {
            lacking(tree.path(), ("6.99", architecture), &modules(names)).expect("readable")
        };
        let lacks = |names: &[&str]| of(Architecture::Arm64, names);
        // Nothing is known.
        assert!(lacks(&[]).is_empty());
        write("modules.builtin", "kernel/drivers/virtio/virtio-pci.ko\nkernel/drivers/net/tun.ko\n");
        assert_eq!(lacks(&["9p"]), ["CONFIG_NET_9P_VIRTIO"]);
        assert!(lacks(&["9p", "9pnet_virtio"]).is_empty());
        // Of several, that of this release.
        fs::create_dir_all(tree.path().join("z/6.99")).expect("made");
        write("z/6.99/modules.builtin", "kernel/fs/9p/9p.ko\n");
        assert_eq!(lacks(&["9pnet_virtio", "tun"]), ["CONFIG_VIRTIO_PCI"]);
        let all: String = NEEDED.iter().map(|(option, _)| format!("{option}=y\n")).collect();
        write("config-6.98", "");
        write("config-6.99", &all);
        assert!(lacks(&[]).is_empty());
        assert_eq!(of(Architecture::Amd64, &[]), ["CONFIG_ACPI"]);
        let without = all.replace("CONFIG_CGROUPS=y", "# CONFIG_CGROUPS is not set");
        write(".config", &without.replace("CONFIG_9P_FS=y", "CONFIG_9P_FS=m"));
        assert_eq!(lacks(&["9pnet"]), ["the module 9p of CONFIG_9P_FS=m", "CONFIG_CGROUPS"]);
        assert_eq!(lacks(&["9p"]), ["CONFIG_CGROUPS"]);
    }

    #[test]
    fn an_arm64_kernel_says_its_release_in_its_words() {
        let mut image = vec![0_u8; 0x40];
        image[0x38..0x3c].copy_from_slice(b"ARM\x64");
        image.extend_from_slice(b"Linux version %s\n\0Linux version 6.12.117+deb13-arm64 (build)");
        assert_eq!(release_of_arm64(&image).as_deref(), Some("6.12.117+deb13-arm64"));
        assert_eq!(release_of_arm64(&image[..0x50]), None);
        assert_eq!(release_of_arm64(&[0; 0x80]), None);
        assert_eq!(release_of(&image), None);
    }

    #[test]
    fn one_fetches_at_a_time_and_the_next_one_knows_that_it_has_waited() {
        let folder = tempfile::tempdir().expect("a folder");
        let kernels = Kernels { folder: folder.path().to_owned() };
        let (first, has_waited) = kernels.alone(&GO_ON, &|said| panic!("{said}")).expect("nobody fetches");
        assert!(!has_waited);
        assert!(kernels.alone(&AtomicBool::new(true), &|said| panic!("{said}")).is_err());
        let first = std::sync::Mutex::new(Some(first));
        // It ends once the other one is heard to wait.
        let ends = |_: &str| drop(first.lock().expect("no panic").take());
        assert!(kernels.alone(&GO_ON, &ends).expect("nobody fetches any more").1);
    }

    #[test]
    fn names_that_lead_out_of_the_folder_are_refused() {
        for name in ["", ".", "..", "a/b", "../x", "A", "a b", &"x".repeat(41)] {
            assert!(matches!(check_name(name), Err(Error::Name { .. })), "{name:?}");
        }
        assert!(check_name("debian-6.12").is_ok());
    }

    #[test]
    fn a_tree_without_a_kernel_is_refused_and_one_with_it_is_kept_with_its_modules_in_order() {
        let folder = tempfile::tempdir().expect("a folder");
        let kernels = Kernels { folder: folder.path().join("kernels") };
        let tree = folder.path().join("tree");
        fs::create_dir_all(tree.join("drivers")).expect("made");
        let build = || kernels.build("mine", &tree, &GO_ON);
        let refused = || build().expect_err("refused").to_string();
        assert!(refused().contains("bzImage") && refused().contains(&*tree.to_string_lossy()), "{}", refused());
        let write = |name: &str, bytes: &[u8]| fs::write(tree.join(name), bytes).expect("written");
        write("bzImage", &bz_image("6.99 "));
        assert!(refused().contains("CONFIG_FW_CFG_SYSFS=m"), "{}", refused());
        write("drivers/qemu_fw_cfg.ko", b"\0depends=\0");
        write("modules.builtin", b"kernel/drivers/net/tun.ko\n");
        assert!(refused().ends_with("needs: CONFIG_9P_FS, CONFIG_NET_9P_VIRTIO, CONFIG_VIRTIO_PCI"), "{}", refused());
        fs::remove_file(tree.join("modules.builtin")).expect("removed");
        write("drivers/9p.ko", b"\0depends=9pnet\0");
        write("drivers/9pnet.ko", b"\0depends=\0vermagic=6.99 SMP\0");
        let kernel = build().expect("kept");
        assert_eq!(kernel.release, "6.99");
        assert_eq!(kernel.modules.of_leaving, ["9pnet", "9p"]);
        assert_eq!(kernels.list().expect("listed").len(), 1);
        // What is below another release's folder is another kernel's.
        for (release, needs) in [("6.1.0", "x"), ("6.99", "9pnet")] {
            fs::create_dir_all(tree.join("a").join(release)).expect("made");
            write(&format!("a/{release}/9p.ko"), format!("\0depends={needs}\0vermagic={release} SMP\0").as_bytes());
        }
        assert_eq!(build().expect("kept").modules.of_leaving, ["9pnet", "9p"]);
        fs::remove_dir_all(tree.join("a")).expect("removed");
        // A congestion control of one's own, behind those that each kernel may have.
        write("drivers/tcp_mine.ko", b"\0depends=\0");
        write("drivers/tcp_yeah.ko", b"\0depends=tcp_vegas\0");
        write("drivers/tcp_vegas.ko", b"\0depends=\0");
        let with_mine = build().expect("kept");
        assert_eq!(with_mine.modules.of_jobs, ["tcp_vegas", "tcp_yeah", "tcp_mine"]);
        let digests = [&kernel, &with_mine].map(|kernel| kernel.digest().expect("readable"));
        assert!(digests[0] != digests[1] && digests[0].len() == DIGITS, "{digests:?}");
        assert_eq!(build().expect("kept").digest().expect("readable"), digests[1]);
        write("drivers/tcp_mine.ko", b"\0vermagic=6.1.0 SMP\0");
        assert!(
            refused().contains("a module of the kernel 6.1.0, and") && refused().ends_with(" is 6.99"),
            "{}",
            refused()
        );
        let taken = kernels.build("debian-6.12", &tree, &GO_ON).expect_err("Debian's").to_string();
        assert!(taken.contains("kernels fetch"), "{taken}");
        write("drivers/tcp_mine.ko", b"\0depends=\0");
        let stopped = kernels.build("mine", &tree, &AtomicBool::new(true)).expect_err("stopped").to_string();
        assert!(stopped.contains("interrupted"), "{stopped}");
        assert_eq!(fs::read_dir(&kernels.folder).expect("readable").count(), 1);
        fs::write(kernel.image(), b"something else").expect("written");
        let changed = kernels.get("mine").expect_err("changed").to_string();
        assert!(changed.contains("has changed"), "{changed}");
        let unknown = kernels.get("theirs").expect_err("not there").to_string();
        assert!(unknown.contains("mine") && unknown.contains("debian-6.12"), "{unknown}");
    }
}
