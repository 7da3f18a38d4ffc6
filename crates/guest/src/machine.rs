//! The emulated machine: booted once for a kernel and a program, its state kept, and many runs from that state.
//!
//! ```text
//! $XDG_CACHE_HOME/lasthop/machines/
//!   DIGEST/archive, memory, state     of a kernel, a program and an emulator; the memory is read, never written
//!   run-.../                          of a run under way, locked: console, words of the emulator, out/
//! ```

use crate::answers::answer_all;
use crate::architecture::{Architecture, WATCHDOG_SLOT};
use crate::debian::run;
use crate::error::{At as _, Error, Result};
use crate::image::archive;
use crate::kernels::{Kernel, cache, digest};
use crate::monitor::{Monitor, Next};
use crate::program::Program;
use crate::window::{BELL, PIPES, RESERVED};
use crate::work::Work;
use crate::{INIT, image};
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::fs::{self, File};
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// The guest's memory in MiB, which is also the most that a run takes of this machine's: 40 hosts with their servers and a capture.
pub const MEMORY_MIB: u32 = 1024;
/// A nanosecond an instruction; the clock jumps ahead while the processor is idle; and the record, kept nowhere, that
/// holds the emulator's threads apart.
const CLOCK: &str = "shift=0,sleep=off,rr=record,rrfile=/dev/null";
/// By which the guest stops itself: see `stopping`.
const WATCHDOG: &str = "i6300esb";
/// What the programs of a job write: the files beside the console.
pub(crate) const PROGRAMS_SAY: [&str; 2] = ["output", "errors"];
/// A boot that takes longer has failed.
const BOOT_LIMIT: Duration = Duration::from_secs(600);
/// How often the console is looked at, and whether the run is to stop.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// States that are kept: those used last. Each has some 200 MB on disk.
const MOST_STATES: usize = 6;

/// How folders of work begin.
const WORK: &str = "run-";
/// Where a job's files are in the guest, and the name of the folder that it shares with this machine.
pub(crate) const OUT: &str = "/out";
pub(crate) const SHARE: &str = "out";
pub(crate) const CODE_FILE: &str = "exit-code";

/// The job of one run: this program, with arguments and files.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Job {
    /// The arguments of this program in the guest.
    pub arguments: Vec<String>,
    /// Files for it: absolute path, text. What it writes into `/out` is kept.
    pub files: Vec<(String, String)>,
    /// Seeds the guest's random numbers.
    pub seed: u64,
    /// Whether it finds this machine's files, read only, instead of nothing but this program: it then runs in a scratch folder that is
    /// also its HOME, with this PATH.
    pub path: Option<String>,
    /// How many simulated radios it has; 0: none. Only on a machine that was made ready for them.
    #[serde(default)]
    pub radios: u16,
}

/// What is heard of a guest while it runs.
#[derive(Debug)]
pub enum Heard<'a> {
    /// A line of its console: what this program in it says.
    Line(&'a str),
    /// Standard output of the programs that it starts.
    Output(&'a [u8]),
    /// Their standard error.
    Errors(&'a [u8]),
}

/// What a job has left.
#[derive(Debug)]
pub struct Output {
    /// Its exit code; -1 if a signal ended it.
    pub code: i32,
    /// What it wrote to standard error.
    pub said: String,
    work: Work,
}

impl Output {
    /// The folder with what it wrote into `/out`. It goes when this goes.
    pub fn folder(&self) -> PathBuf {
        self.work.path().join(SHARE)
    }
}

/// A machine that can run jobs.
#[derive(Debug)]
pub struct Machine {
    /// The emulator's version, as it says it: a part of what a run depends on.
    pub emulator: String,
    kernel: Kernel,
    /// `machines`.
    folder: PathBuf,
    /// The name of the state's folder.
    state: String,
    /// Says that the state is in use.
    used: Option<Flock<File>>,
}

impl Machine {
    /// Whether this machine can emulate one of an architecture: the emulator's version.
    ///
    /// # Errors
    /// If the emulator is not here.
    pub fn emulator(architecture: Architecture) -> Result<String> {
        let (program, package) = architecture.emulator();
        let said = run(Command::new(program).arg("--version"), package)?;
        let said = String::from_utf8_lossy(&said).into_owned();
        Ok(said.lines().next().unwrap_or_default().trim().to_owned())
    }

    /// Makes a machine ready with a kernel and a program, which then is [`init`](crate::init) for [`INIT`]. Boots it if
    /// no state is kept; `say` is told so. `None` if `stop` ended that. `beside`: for jobs with simulated radios, the programs that such a
    /// job finds in its PATH.
    ///
    /// # Errors
    /// If the emulator is missing, files cannot be written, the kernel has no simulated radios, or the guest does not come up.
    pub fn ready(
        kernel: Kernel,
        program: &Program,
        beside: Option<&[PathBuf]>,
        stop: &AtomicBool,
        say: &dyn Fn(&str),
    ) -> Result<Option<Self>> {
        let emulator = Self::emulator(kernel.architecture)?;
        let folder = cache()?.join("machines");
        fs::create_dir_all(&folder).at("cannot make", &folder)?;
        let archive = archive(program, &kernel, beside)?;
        let of = [
            emulator.as_bytes(),
            kernel.image_digest.as_bytes(),
            kernel.architecture.kernel_arguments().as_bytes(),
            reserved(kernel.architecture).as_bytes(),
            CLOCK.as_bytes(),
            WATCHDOG.as_bytes(),
            &archive,
        ];
        let state = digest(&of.concat())[..32].to_owned();
        let mut machine = Self { emulator, kernel, folder, state, used: None };
        let to = machine.folder.join(&machine.state);
        if to.join("state").exists() {
            machine.hold(&to)?;
            return Ok(Some(machine));
        }
        say(&format!("booting {} once, and keeping its state (some 20 s)", machine.kernel.name));
        let new = machine.work_folder()?;
        fs::write(new.path().join("archive"), archive).at("cannot write", new.path())?;
        if !machine.boot(new.path(), stop).map_err(|error| with_words(error, new.path()))? {
            return Ok(None);
        }
        for file in ["console", "words", SHARE, "disk", PROGRAMS_SAY[0], PROGRAMS_SAY[1]] {
            let path = new.path().join(file);
            let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        }
        match fs::rename(new.path(), &to) {
            Ok(()) => new.moved(),
            // Another process was faster.
            Err(_) if to.join("state").exists() => {}
            Err(source) => return Err(Error::File { what: "cannot write", path: to, source }),
        }
        machine.hold(&to)?;
        machine.shrink();
        Ok(Some(machine))
    }

    /// Keeps the state from being removed while this lives, and for longest afterwards.
    fn hold(&mut self, state: &Path) -> Result<()> {
        let file = File::options().write(true).open(state.join("state")).at("cannot open", state)?;
        file.set_modified(SystemTime::now()).at("cannot touch", state)?;
        let locked = Flock::lock(file, FlockArg::LockShared).map_err(|(_, error)| std::io::Error::from(error));
        self.used = Some(locked.at("cannot lock", state)?);
        Ok(())
    }

    /// The kernel.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Does a job from the saved state. `hear` gets what the guest says. `None` if `stop` ended it.
    ///
    /// # Errors
    /// If the machine ends before the job, or files cannot be written.
    pub fn run(&self, job: &Job, stop: &AtomicBool, hear: &mut dyn FnMut(Heard<'_>)) -> Result<Option<Output>> {
        if job.path.is_some() && !self.kernel.architecture.has_window() {
            return Err(Error::NoWindow { architecture: self.kernel.architecture.name() });
        }
        let work = self.work_folder()?;
        let file = serde_json::to_vec(job).expect("plain data");
        fs::write(work.path().join("job"), file).at("cannot write", work.path())?;
        let state = format!("../{}", self.state);
        // A memory of its own has the window through which it asks.
        let memory = work.path().join("memory");
        if job.path.is_some() {
            let from = self.folder.join(&self.state).join("memory");
            run(Command::new("cp").args(["--sparse=always", "--reflink=auto"]).arg(from).arg(&memory), "coreutils")?;
            answer_all(work.path(), &memory)?;
        }
        let held = match job.path {
            Some(_) => Memory { at: ".", shared: true, asks: true },
            None => Memory { at: &state, shared: false, asks: false },
        };
        let mut process = self.start(work.path(), &state, held, |command| {
            command.args(["-incoming", "defer", "-fw_cfg", "name=opt/lasthop/job,file=job"]);
        })?;
        let mut console = Console::of(work.path());
        let mut programs = PROGRAMS_SAY.map(|file| Follow::of(work.path().join(file)));
        let outcome = (|| {
            let monitor = &mut process.monitor;
            monitor.run("migrate-incoming", &json!({ "uri": format!("exec:cat {state}/state") }))?;
            while monitor.run("query-status", &json!({}))?["status"] == "inmigrate" {
                std::thread::sleep(Duration::from_millis(5));
            }
            monitor.run("cont", &json!({}))?;
            loop {
                let next = process.monitor.next(LOOK_EVERY);
                console.lines(hear);
                programs[0].more(&mut |bytes| hear(Heard::Output(bytes)));
                programs[1].more(&mut |bytes| hear(Heard::Errors(bytes)));
                if stop.load(Ordering::Relaxed) {
                    return Ok(false);
                }
                match next {
                    Next::End => return Ok(true),
                    // It has found no job, and waits for another state to be saved.
                    Next::Event(event) if event == "STOP" => return Err(Error::Ended { said: String::new() }),
                    Next::Event(_) | Next::Nothing => {}
                }
            }
        })();
        drop(process);
        let out = work.path().join(SHARE);
        let code = fs::read_to_string(out.join(CODE_FILE)).ok().and_then(|code| code.parse().ok());
        match (outcome, code) {
            (Ok(false), _) => Ok(None),
            (Ok(true), Some(code)) => Ok(Some(Output { code, said: console.text, work })),
            (Ok(true), None) => Err(Error::Ended { said: words(work.path()) }),
            (Err(error), _) => Err(with_words(error, work.path())),
        }
    }

    /// Boots until the guest stops itself, and saves its state. Returns whether it did, or was stopped.
    ///
    /// Recording from a state needs the number of instructions, modulo 2^32, to be below 2^31, for the emulator counts
    /// the difference to zero in 32 bits (replay_advance_current_icount). The guest runs on until that holds.
    fn boot(&self, work: &Path, stop: &AtomicBool) -> Result<bool> {
        write_disk(&work.join("disk"))?;
        let mut process = self.start(work, ".", Memory { at: ".", shared: true, asks: false }, |command| {
            command.args(["-drive", "file=disk,if=none,id=disk,format=qcow2"]);
        })?;
        let since = Instant::now();
        let monitor = &mut process.monitor;
        loop {
            match monitor.next(LOOK_EVERY) {
                Next::Event(event) if event == "STOP" => {
                    let instructions = monitor.run("query-replay", &json!({}))?["icount"].as_u64().unwrap_or(0);
                    if instructions & 1 << 31 == 0 {
                        break;
                    }
                    monitor.run("cont", &json!({}))?;
                }
                Next::End => return Err(Error::Ended { said: String::new() }),
                Next::Event(_) | Next::Nothing => {}
            }
            if stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            if since.elapsed() > BOOT_LIMIT {
                return Err(Error::Ended {
                    said: format!(": it did not come up in {} s{}", BOOT_LIMIT.as_secs(), words(work)),
                });
            }
        }
        monitor.say("savevm state")?;
        drop(process);
        let state = state_on(&work.join("disk"))?;
        // The last file: a folder with it is whole.
        fs::write(work.join("state"), state).at("cannot write", work)?;
        Ok(true)
    }

    /// Starts the emulator in `work`, with the archive of the folder `state`.
    fn start(&self, work: &Path, state: &str, held: Memory<'_>, more: impl FnOnce(&mut Command)) -> Result<Process> {
        fs::create_dir(work.join(SHARE)).at("cannot make", work)?;
        let words = File::create(work.join("words")).at("cannot write", work)?;
        let (memory, share) = (held.at, if held.shared { "on" } else { "off" });
        // setpriv has the kernel end the emulator with the thread that started it.
        let mut command = Command::new("setpriv");
        let architecture = self.kernel.architecture;
        command.args(["--pdeathsig", "KILL", architecture.emulator().0, "-accel", "tcg"]);
        command.args(["-cpu", architecture.processor(), "-smp", "1"]);
        command.args(["-m", &MEMORY_MIB.to_string(), "-object"]);
        command.arg(format!("memory-backend-file,id=ram,size={MEMORY_MIB}M,mem-path={memory}/memory,share={share}"));
        command.args(["-machine", architecture.board(), "-icount", CLOCK, "-seed", "1"]);
        command.args(["-rtc", "base=2026-01-01T00:00:00,clock=vm", "-nodefaults", "-nic", "none", "-no-reboot"]);
        let watchdog = format!("{WATCHDOG},addr={WATCHDOG_SLOT:#x}");
        command.args(["-display", "none", "-device", &watchdog, "-action", "watchdog=pause"]);
        command.args(["-serial", "file:console"]);
        if architecture.has_window() {
            for (port, pipe) in (BELL..).zip(PIPES) {
                let to = if held.asks { format!("pipe,id={pipe},path={pipe}") } else { format!("null,id={pipe}") };
                command.args(["-chardev", &to, "-device", &format!("isa-debugcon,iobase={port},chardev={pipe}")]);
            }
            command.args(PROGRAMS_SAY.map(|file| ["-serial".to_owned(), format!("file:{file}")]).concat());
        }
        command.args(["-chardev", "stdio,id=monitor,signal=off", "-mon", "chardev=monitor,mode=control"]);
        command.args(["-fsdev", &format!("local,id=out,path={SHARE},security_model=none")]);
        command.args(["-device", &format!("virtio-9p-pci,fsdev=out,mount_tag={SHARE}")]);
        command.arg("-kernel").arg(self.kernel.image()).args(["-initrd", &format!("{state}/archive")]);
        let (arguments, reserved) = (architecture.kernel_arguments(), reserved(architecture));
        command.arg("-append").arg(format!("{arguments} {reserved} rdinit={} -- {INIT}", image::PROGRAM));
        more(&mut command);
        command.current_dir(work).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(words);
        // A Ctrl-C at the terminal is lasthop's.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn().map_err(|error| match error.kind() {
            ErrorKind::NotFound => Error::Program { program: "setpriv", package: "util-linux" },
            _ => Error::Failed { what: "starting the emulator".to_owned(), said: error.to_string() },
        })?;
        let mut process = Process { monitor: Monitor::of(&mut child), child };
        let begun = process.monitor.run("qmp_capabilities", &json!({})).and_then(|_| {
            let capabilities = json!([{ "capability": "x-ignore-shared", "state": true }]);
            process.monitor.run("migrate-set-capabilities", &json!({ "capabilities": capabilities }))
        });
        begun.map(|_| process).map_err(|error| with_words(error, work))
    }

    fn work_folder(&self) -> Result<Work> {
        Work::new(&self.folder, WORK)
    }

    /// Removes the states that were not used for longest.
    fn shrink(&self) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let mut states: Vec<(SystemTime, PathBuf)> = paths
            .filter_map(|path| Some((fs::metadata(path.join("state")).ok()?.modified().ok()?, path)))
            .filter(|(_, path)| !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(WORK)))
            .collect();
        states.sort();
        let most = states.len().saturating_sub(MOST_STATES);
        for (_, path) in &states[..most] {
            let held = File::open(path.join("state")).map(|file| Flock::lock(file, FlockArg::LockExclusiveNonblock));
            // A folder of work, which goes with this process or is a leftover: never half a state.
            if let (Ok(Ok(_free)), Ok(work)) = (held, self.work_folder()) {
                let _ = fs::rename(path, work.path().join("old"));
            }
        }
    }
}

/// The argument by which a kernel leaves the window alone.
fn reserved(architecture: Architecture) -> &'static str {
    if architecture.has_window() { RESERVED } else { "" }
}

/// The guest's memory.
struct Memory<'a> {
    at: &'a str,
    /// Whether it is written there: to a run's own, and at the boot.
    shared: bool,
    /// Whether questions in its window are answered.
    asks: bool,
}

/// An emulator that runs. It ends when this goes.
struct Process {
    child: Child,
    monitor: Monitor,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A file that grows.
struct Follow {
    path: PathBuf,
    file: Option<File>,
}

impl Follow {
    fn of(path: PathBuf) -> Self {
        Self { path, file: None }
    }

    /// Tells what is new.
    fn more(&mut self, tell: &mut dyn FnMut(&[u8])) {
        self.file = self.file.take().or_else(|| File::open(&self.path).ok());
        let mut bytes = Vec::new();
        if let Some(file) = &mut self.file
            && file.read_to_end(&mut bytes).is_ok_and(|more| more > 0)
        {
            tell(&bytes);
        }
    }
}

/// What the guest has written to its console.
struct Console {
    path: PathBuf,
    text: String,
    told: usize,
}

impl Console {
    fn of(work: &Path) -> Self {
        Self { path: work.join("console"), text: String::new(), told: 0 }
    }

    /// Tells the lines that are new.
    fn lines(&mut self, hear: &mut dyn FnMut(Heard<'_>)) {
        let Ok(bytes) = fs::read(&self.path) else { return };
        self.text = String::from_utf8_lossy(&bytes).replace('\r', "");
        while let Some(length) = self.text[self.told..].find('\n') {
            hear(Heard::Line(&self.text[self.told..self.told + length]));
            self.told += length + 1;
        }
    }
}

/// Gives an end without words those of the console and of the emulator.
fn with_words(error: Error, work: &Path) -> Error {
    match error {
        Error::Ended { said } if said.is_empty() => Error::Ended { said: words(work) },
        other => other,
    }
}

/// The last lines of the console and of the emulator, each on a line of its own.
fn words(work: &Path) -> String {
    const MOST_LINES: usize = 12;
    let text = ["words", "console"].map(|file| {
        let bytes = fs::read(work.join(file)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).replace('\r', "")
    });
    let lines: Vec<&str> = text.iter().flat_map(|text| text.lines()).filter(|line| !line.trim().is_empty()).collect();
    let first = lines.len().saturating_sub(MOST_LINES);
    lines[first..].iter().map(|line| format!("\n  {line}")).collect()
}

/// The size of a cluster of the disk for the state, which has all of it in one.
const CLUSTER: usize = 1 << 21;
const CLUSTER_BITS: u32 = 21;

/// An empty disk that the emulator can save a state on (docs/interop/qcow2.txt, version 2).
fn write_disk(path: &Path) -> Result<()> {
    let cluster = CLUSTER as u64;
    let mut disk = vec![0_u8; 4 * CLUSTER];
    let mut put = |at: usize, bytes: &[u8]| disk[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, b"QFI\xfb");
    put(4, &2_u32.to_be_bytes()); // version
    put(20, &CLUSTER_BITS.to_be_bytes());
    put(24, &(1_u64 << 20).to_be_bytes()); // size
    put(36, &1_u32.to_be_bytes()); // entries of the first table
    put(40, &(3 * cluster).to_be_bytes()); // where that is
    put(48, &cluster.to_be_bytes()); // where the table of reference counts is
    put(56, &1_u32.to_be_bytes()); // its clusters
    put(CLUSTER, &(2 * cluster).to_be_bytes()); // the block of reference counts
    for cluster in 0..4 {
        put(2 * CLUSTER + 2 * cluster, &1_u16.to_be_bytes());
    }
    fs::write(path, disk).at("cannot write", path)
}

/// The state that was saved on a disk: the stream of a migration, at the beginning of a cluster.
fn state_on(disk: &Path) -> Result<Vec<u8>> {
    const BEGINNING: &[u8] = b"QEVM";
    let bytes = fs::read(disk).at("cannot read", disk)?;
    let wrong = |problem: String| Error::Kept { path: disk.to_owned(), problem };
    let size = saved_bytes(&bytes).ok_or_else(|| wrong("the emulator has saved no state on it".to_owned()))?;
    if size > CLUSTER {
        return Err(wrong(format!(
            "the machine's state has {size} bytes, and {CLUSTER} are the most that can be kept"
        )));
    }
    let state = bytes.chunks(CLUSTER).find(|cluster| cluster.starts_with(BEGINNING));
    state.map(<[u8]>::to_vec).ok_or_else(|| wrong("the state on it has no beginning".to_owned()))
}

/// The size of the first state that is saved on a disk (docs/interop/qcow2.txt, snapshots).
fn saved_bytes(disk: &[u8]) -> Option<usize> {
    let number = |at: usize, bytes: usize| -> Option<usize> {
        Some(disk.get(at..at + bytes)?.iter().fold(0, |number, byte| number << 8 | usize::from(*byte)))
    };
    let (count, table) = (number(60, 4)?, number(64, 8)?);
    if count == 0 {
        return None;
    }
    number(table + 32, 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk whose table of snapshots has one with a state of this size.
    fn disk_with(size: u32) -> Vec<u8> {
        let mut disk = vec![0; 3 * CLUSTER];
        let mut put = |at: usize, bytes: &[u8]| disk[at..at + bytes.len()].copy_from_slice(bytes);
        put(60, &1_u32.to_be_bytes());
        put(64, &(CLUSTER as u64).to_be_bytes());
        put(CLUSTER + 32, &size.to_be_bytes());
        put(2 * CLUSTER, b"QEVM state");
        disk
    }

    #[test]
    fn a_state_that_does_not_fit_one_cluster_is_an_error_in_words() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("disk");
        fs::write(&path, disk_with(1000)).expect("written");
        assert!(state_on(&path).expect("a state").starts_with(b"QEVM state"));
        fs::write(&path, disk_with(3_000_000)).expect("written");
        let error = state_on(&path).expect_err("too large").to_string();
        assert!(error.contains("has 3000000 bytes"), "{error}");
        write_disk(&path).expect("written");
        assert!(state_on(&path).expect_err("empty").to_string().contains("no state"));
    }
}
