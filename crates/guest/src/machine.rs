//! The emulated machine: booted once for a kernel and a program, its state kept, and many runs from that state.
//!
//! ```text
//! $XDG_CACHE_HOME/lasthop/machines/
//!   DIGEST/archive, memory, state     of a kernel, a program and an emulator; the memory is read, never written
//!   DIGEST/kept.json                  checksums of these
//!   booting                           locked by the process that boots one: with which kernel
//!   processor-N                       locked by the process whose emulator has this processor
//!   run-.../                          of a run under way, locked: console, words of the emulator, out/
//! ```

use crate::answers::answer_all;
use crate::architecture::{Architecture, WATCHDOG_SLOT};
use crate::debian::run;
use crate::disk::{state_on, write_disk};
use crate::error::{At as _, Error, Result};
use crate::image::archive;
use crate::kept::Kept;
use crate::kernels::{Kernel, cache, digest};
use crate::monitor::{Monitor, Next, Patience};
use crate::processor::Processor;
use crate::program::Program;
use crate::window::{BELL, PIPES, RESERVED};
use crate::work::Work;
use crate::{INIT, image};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
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
/// A boot that takes longer of a processor has failed.
const BOOT_LIMIT: Duration = Duration::from_secs(600);
/// A state that has not been read by then is none.
const READ_LIMIT: Duration = Duration::from_secs(60);
/// How long an emulator that has said its last may take to end.
const END_LIMIT: Duration = Duration::from_secs(10);
/// How often the console is looked at, and whether the run is to stop.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// States that are kept: those used last. Each has some 200 MB on disk.
const MOST_STATES: usize = 6;

/// In the cache.
pub(crate) const FOLDER: &str = "machines";
/// How folders of work begin.
pub(crate) const WORK: &str = "run-";
const BOOTING: &str = "booting";
/// Where a job's files are in the guest, and the name of the folder that it shares with this machine.
pub(crate) const OUT: &str = "/out";
pub(crate) const SHARE: &str = "out";
pub(crate) const CODE_FILE: &str = "exit-code";
/// How a line of the console begins that names a module without which the guest goes on.
pub(crate) const LEFT_OUT: &str = "guest: without the module ";

/// The job of one run: this program, with arguments and files.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Job {
    /// The arguments of this program in the guest.
    pub arguments: Vec<String>,
    /// Files for it: absolute path, text. What it writes into `/out` is kept.
    pub files: Vec<(String, String)>,
    /// Seeds the guest's random numbers.
    pub seed: u64,
    /// Whose programs it runs: it then finds this machine's files, and keeps changes in memory. `None`: there is nothing but this
    /// program.
    pub caller: Option<Caller>,
    /// How many simulated radios it has; 0: none. Only on a machine that was made ready for them.
    #[serde(default)]
    pub radios: u16,
}

/// What programs in a guest have of who calls for them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Caller {
    /// The working folder, if it has one whose name is text.
    pub folder: Option<String>,
    /// Variables of the environment. HOME is the guest's.
    pub variables: Vec<(String, String)>,
}

impl Caller {
    /// Of this process: its folder, PATH, the compiler of laws, and the language.
    pub fn here() -> Self {
        let folder = std::env::current_dir().ok().and_then(|folder| folder.to_str().map(str::to_owned));
        let variable = |name: &str| Some((name.to_owned(), std::env::var(name).ok()?));
        Self { folder, variables: ["PATH", "CLANG", "LANG", "LC_ALL"].into_iter().filter_map(variable).collect() }
    }
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
    /// The modules of the kernel's congestion controls that it could not load, each with the reason. Runs do without them.
    pub left_out: BTreeMap<String, String>,
    kernel: Kernel,
    /// `machines`.
    folder: PathBuf,
    /// The name of the state's folder.
    state: String,
    /// Says that the state is in use.
    used: Mutex<Option<Flock<File>>>,
}

impl Machine {
    /// Whether this machine can emulate one of an architecture: the emulator's version.
    ///
    /// # Errors
    /// If the emulator is not here, or what ties it to this process.
    pub fn emulator(architecture: Architecture) -> Result<String> {
        let (program, package) = architecture.emulator();
        // By setpriv, as a run has it.
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
        let folder = cache()?.join(FOLDER);
        fs::create_dir_all(&folder).at("cannot make", &folder)?;
        let archive = archive(program, &kernel, beside)?;
        let state = name_of_state(&emulator, &kernel, &archive);
        let left_out = BTreeMap::new();
        let machine = Self { emulator, left_out, kernel, folder, state, used: Mutex::default() };
        let kept = machine.keep_state(&archive, None, stop, say)?;
        Ok(kept.map(|Kept { left_out, .. }| Self { left_out, ..machine }))
    }

    /// The folder of the state.
    fn kept(&self) -> PathBuf {
        self.folder.join(&self.state)
    }

    /// Has a state: that which is kept, if it is as it was and not the bad one, or that of a boot. `None` if `stop` ended that.
    fn keep_state(
        &self,
        archive: &[u8],
        bad: Option<u64>,
        stop: &AtomicBool,
        say: &dyn Fn(&str),
    ) -> Result<Option<Kept>> {
        let to = self.kept();
        let (mut bad, mut alone, mut waits) = (bad, None, false);
        loop {
            let found = number(&to);
            if found.is_some() && found != bad {
                self.hold(&to, say);
                match Kept::check(&to) {
                    Ok(kept) => return Ok(Some(kept)),
                    Err(why) => say(&format!("the state that was kept cannot be used: {why}")),
                }
                bad = found;
            }
            if alone.is_some() {
                break;
            }
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            // Another one may have booted it meanwhile: it is looked for once more.
            alone = alone_in(&self.folder, &self.kernel.name)?;
            if alone.is_none() && !waits {
                let what = fs::read_to_string(self.folder.join(BOOTING)).unwrap_or_default();
                say(&format!("waiting for another lasthop, which is booting {what}"));
                waits = true;
            }
        }
        say(&format!("booting {} once, and keeping its state (some 20 s)", self.kernel.name));
        let new = self.work_folder()?;
        if !self.boot(new.path(), archive, stop)? {
            return Ok(None);
        }
        let left_out = left_out_in(&console_of(new.path()));
        for (module, reason) in &left_out {
            let kernel = &self.kernel.name;
            say(&format!("{kernel} cannot load its congestion control {module}, and does without: {reason}"));
        }
        for file in ["console", "words", SHARE, "disk", PROGRAMS_SAY[0], PROGRAMS_SAY[1]] {
            let path = new.path().join(file);
            let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        }
        let kept = Kept::write(new.path(), left_out)?;
        new.take_the_place_of(&to)?;
        self.hold(&to, say);
        self.shrink();
        Ok(Some(kept))
    }

    /// Keeps the state from being removed while this lives, and for longest afterwards. A run does without.
    fn hold(&self, state: &Path, say: &dyn Fn(&str)) {
        let held = File::open(state.join("state")).and_then(|file| {
            // It may be another user's.
            let _ = file.set_modified(SystemTime::now());
            Flock::lock(file, FlockArg::LockShared).map_err(|(_, error)| error.into())
        });
        match held {
            Ok(held) => *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Some(held),
            Err(error) => say(&format!("another lasthop may remove the state {}: {error}", state.display())),
        }
    }

    /// The kernel.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Does a job from the saved state. `hear` gets what the guest says. `None` if `stop` ended it. A state that cannot be read is
    /// replaced once.
    ///
    /// # Errors
    /// If the machine ends before the job, or files cannot be written.
    pub fn run(&self, job: &Job, stop: &AtomicBool, hear: &mut dyn FnMut(Heard<'_>)) -> Result<Option<Output>> {
        if job.caller.is_some() {
            self.kernel.check_files()?;
        }
        let state = number(&self.kept());
        let mut is_reading = false;
        match self.try_run(job, stop, hear, &mut is_reading) {
            Err(why @ (Error::Ended { .. } | Error::Failed { .. } | Error::Killed { .. })) if is_reading => {
                let telling = RefCell::new(&mut *hear);
                let say = |said: &str| telling.borrow_mut()(Heard::Line(&format!("guest: {said}")));
                say(&why.to_string());
                let path = self.kept().join("archive");
                let archive = fs::read(&path).at("cannot read", &path)?;
                if !Kept::has(&self.kept(), "archive")? {
                    let problem = "it is damaged: remove its folder".to_owned();
                    return Err(Error::Kept { path, problem });
                }
                match self.keep_state(&archive, state, stop, &say)? {
                    Some(_) => self.try_run(job, stop, hear, &mut is_reading),
                    None => Ok(None),
                }
            }
            outcome => outcome,
        }
    }

    /// Does a job. `is_reading` is true while the state is read.
    fn try_run(
        &self,
        job: &Job,
        stop: &AtomicBool,
        hear: &mut dyn FnMut(Heard<'_>),
        is_reading: &mut bool,
    ) -> Result<Option<Output>> {
        let work = self.work_folder()?;
        let file = serde_json::to_vec(job).expect("plain data");
        write(&work.path().join("job"), &file)?;
        let state = format!("../{}", self.state);
        // A memory of its own has the window through which it asks.
        let memory = work.path().join("memory");
        let mut _answers = None;
        if job.caller.is_some() {
            let from = self.kept().join("memory");
            run(Command::new("cp").args(["--sparse=always", "--reflink=auto"]).arg(from).arg(&memory), "coreutils")?;
            _answers = Some(answer_all(work.path(), &memory)?);
        }
        let held = match job.caller {
            Some(_) => Memory { at: ".", shared: true, asks: true },
            None => Memory { at: &state, shared: false, asks: false },
        };
        let mut process = self.start(work.path(), &state, held, |command| {
            command.args(["-incoming", "defer", "-fw_cfg", "name=opt/lasthop/job,file=job"]);
        })?;
        *is_reading = true;
        let mut console = Console::of(work.path());
        let mut programs = PROGRAMS_SAY.map(|file| Follow::of(work.path().join(file)));
        let outcome = (|| {
            let monitor = &mut process.monitor;
            monitor.run("migrate-incoming", &json!({ "uri": format!("exec:cat {state}/state") }))?;
            let patience = Patience::with(monitor.process, READ_LIMIT);
            while monitor.run("query-status", &json!({}))?["status"] == "inmigrate" {
                if stop.load(Ordering::Relaxed) {
                    return Ok(false);
                }
                if patience.is_over() {
                    let said = format!(": its state was not read in {} s of a processor", READ_LIMIT.as_secs());
                    return Err(Error::Ended { said });
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            monitor.run("cont", &json!({}))?;
            *is_reading = false;
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
                    Next::Event(event) if event == "STOP" => return Err(Error::Ended { said: words(work.path()) }),
                    Next::Event(_) | Next::Nothing => {}
                }
            }
        })();
        let code = || fs::read_to_string(work.path().join(SHARE).join(CODE_FILE)).ok()?.parse().ok();
        match outcome {
            Ok(false) => Ok(None),
            Ok(true) => match code() {
                Some(code) => {
                    drop(process);
                    Ok(Some(Output { code, said: console.text, work }))
                }
                None => Err(process.explained(Error::Ended { said: String::new() }, work.path())),
            },
            Err(error) => Err(process.explained(error, work.path())),
        }
    }

    /// Boots until the guest stops itself, and saves its state. Returns whether it did, or was stopped.
    ///
    /// Recording from a state needs the number of instructions, modulo 2^32, to be below 2^31, for the emulator counts
    /// the difference to zero in 32 bits (replay_advance_current_icount). The guest runs on until that holds.
    fn boot(&self, work: &Path, archive: &[u8], stop: &AtomicBool) -> Result<bool> {
        write(&work.join("archive"), archive)?;
        write_disk(&work.join("disk"))?;
        let mut process = self.start(work, ".", Memory { at: ".", shared: true, asks: false }, |command| {
            command.args(["-drive", "file=disk,if=none,id=disk,format=qcow2"]);
        })?;
        let outcome = Self::until_saved(&mut process.monitor, work, stop);
        if !outcome.map_err(|error| process.explained(error, work))? {
            return Ok(false);
        }
        drop(process);
        let state = state_on(&work.join("disk"))?;
        // The last file.
        write(&work.join("state"), &state)?;
        Ok(true)
    }

    /// The conversation of a boot.
    fn until_saved(monitor: &mut Monitor, work: &Path, stop: &AtomicBool) -> Result<bool> {
        let patience = Patience::with(monitor.process, BOOT_LIMIT);
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
            if patience.is_over() {
                return Err(Error::Ended {
                    said: format!(": it did not come up in {} s of a processor{}", BOOT_LIMIT.as_secs(), words(work)),
                });
            }
        }
        monitor.say("savevm state")?;
        Ok(true)
    }

    /// Starts the emulator in `work`, with the archive of the folder `state`.
    fn start(&self, work: &Path, state: &str, held: Memory<'_>, more: impl FnOnce(&mut Command)) -> Result<Process> {
        let (shared, words) = (work.join(SHARE), work.join("words"));
        fs::create_dir(&shared).at("cannot make", &shared)?;
        let words = File::create(&words).at("cannot write", &words)?;
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
        command.args(["-append", &format!("{arguments} {reserved} rdinit={} -- {INIT}", image::PROGRAM)]);
        more(&mut command);
        command.current_dir(work).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(words);
        // A Ctrl-C at the terminal is lasthop's.
        command.process_group(0);
        let processor = Processor::choose(&self.folder);
        let spawned = match &processor {
            Some(processor) => processor.only(|| command.spawn()),
            None => command.spawn(),
        };
        let mut child = spawned.map_err(|error| match error.kind() {
            ErrorKind::NotFound => Error::Program { program: "setpriv".to_owned(), package: "util-linux" },
            _ => Error::Failed { what: "starting the emulator".to_owned(), said: error.to_string() },
        })?;
        let mut process = Process { monitor: Monitor::of(&mut child), child, _processor: processor };
        let begun = process.monitor.run("qmp_capabilities", &json!({})).and_then(|_| {
            let capabilities = json!([{ "capability": "x-ignore-shared", "state": true }]);
            process.monitor.run("migrate-set-capabilities", &json!({ "capabilities": capabilities }))
        });
        match begun {
            Ok(_) => Ok(process),
            Err(error) => Err(process.explained(error, work)),
        }
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

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).at("cannot write", path)
}

/// What tells a state from one that takes its place.
fn number(state: &Path) -> Option<u64> {
    fs::metadata(state.join("state")).ok().map(|file| file.ino())
}

/// Held by the one process that boots a machine: others that begin at the same time wait for its state instead of booting the same.
/// It says with which kernel. `None` after a moment, if another holds it.
fn alone_in(machines: &Path, kernel: &str) -> Result<Option<Flock<File>>> {
    let path = machines.join(BOOTING);
    let file = File::options().create(true).truncate(false).write(true).open(&path).at("cannot write", &path)?;
    match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        Ok(mut alone) => {
            alone
                .write_all(kernel.as_bytes())
                .and_then(|()| alone.set_len(kernel.len() as u64))
                .at("cannot write", &path)?;
            Ok(Some(alone))
        }
        Err((_, Errno::EWOULDBLOCK)) => {
            std::thread::sleep(LOOK_EVERY);
            Ok(None)
        }
        Err((_, error)) => Err(std::io::Error::from(error)).at("cannot lock", &path),
    }
}

/// The name of the state of a machine: a digest of all that it depends on.
fn name_of_state(emulator: &str, kernel: &Kernel, archive: &[u8]) -> String {
    let of = [
        emulator.as_bytes(),
        kernel.image_digest.as_bytes(),
        kernel.architecture.kernel_arguments().as_bytes(),
        reserved(kernel.architecture).as_bytes(),
        CLOCK.as_bytes(),
        WATCHDOG.as_bytes(),
        archive,
    ];
    digest(&of.concat())[..32].to_owned()
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
    _processor: Option<Processor>,
}

impl Process {
    /// Gives an end without words those of the console and of the emulator, and the signal if one was its cause.
    fn explained(&mut self, error: Error, work: &Path) -> Error {
        match error {
            Error::Ended { said } if said.is_empty() => match self.signal() {
                Some(Signal::SIGBUS) => Error::NoRoom { folder: work.parent().unwrap_or(work).to_owned() },
                Some(signal) => Error::Killed { signal: signal.to_string(), said: words(work) },
                None => Error::Ended { said: words(work) },
            },
            other => other,
        }
    }

    /// The signal that has ended an emulator that ends by itself.
    fn signal(&mut self) -> Option<Signal> {
        let since = Instant::now();
        while since.elapsed() < END_LIMIT {
            match self.child.try_wait() {
                Ok(Some(status)) => return Signal::try_from(status.signal()?).ok(),
                Ok(None) => std::thread::sleep(Duration::from_millis(5)),
                Err(_) => break,
            }
        }
        None
    }
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

fn console_of(work: &Path) -> String {
    String::from_utf8_lossy(&fs::read(work.join("console")).unwrap_or_default()).replace('\r', "")
}

/// The modules that a guest does without, each with the reason.
fn left_out_in(console: &str) -> BTreeMap<String, String> {
    let said = console.lines().filter_map(|line| line.strip_prefix(LEFT_OUT)?.split_once(": "));
    said.map(|(module, reason)| (module.to_owned(), reason.to_owned())).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_a_guest_does_without_is_known_with_the_reasons() {
        let console = format!(
            "[    0.900000] x: y\n{LEFT_OUT}tcp_mine: Unknown symbol tcp_new (err -2)\n\
             guest: cannot load the module tun: x\n{LEFT_OUT}tcp_other: No such file or directory (os error 2)\n"
        );
        let expected =
            [("tcp_mine", "Unknown symbol tcp_new (err -2)"), ("tcp_other", "No such file or directory (os error 2)")];
        let expected = expected.map(|(module, reason)| (module.to_owned(), reason.to_owned()));
        assert_eq!(left_out_in(&console), BTreeMap::from(expected));
    }

    #[test]
    fn one_of_two_is_alone_and_says_with_which_kernel() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = alone_in(folder.path(), "a-kernel-with-a-long-name").expect("writable").expect("nobody holds it");
        assert!(alone_in(folder.path(), "other").expect("writable").is_none());
        let says = || fs::read_to_string(folder.path().join(BOOTING)).expect("readable");
        assert_eq!(says(), "a-kernel-with-a-long-name");
        drop(first);
        let _second = alone_in(folder.path(), "other").expect("writable").expect("nobody holds it");
        assert_eq!(says(), "other");
    }
}
