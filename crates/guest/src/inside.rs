//! The guest's first process: it makes the machine ready, has its state saved, does one job, and turns it off.

use crate::INIT;
use crate::image::{OF_ARRIVAL, OF_JOBS, OF_LEAVING, OF_PROGRAMS, OF_RADIOS, PROGRAM};
use crate::kernels::{RADIOS, is_control};
use crate::machine::{CODE_FILE, Job, LEFT_OUT, OUT, SHARE};
use crate::machine_files::make_root;
use crate::radios::{OF_ROOT, PROGRAMS};
use crate::stopping::Stopping;
use nix::kmod::{DeleteModuleFlags, ModuleInitFlags, delete_module, finit_module};
use nix::libc::O_NONBLOCK;
use nix::mount::{MsFlags, mount, umount};
use nix::sys::reboot::{RebootMode, reboot};
use nix::sys::termios::{SetArg, cfmakeraw, tcgetattr, tcsetattr};
use nix::unistd::{chdir, chroot};
use std::ffi::{CStr, CString, OsString};
use std::fs::{self, File};
use std::hint::black_box;
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::{OpenOptionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The root of a job that finds this machine's files, and the folder in it that is its own.
const ROOT: &str = "/with-machine";
const SCRATCH: &str = "/run/scratch";
/// The serial ports that this machine writes into files.
const PORTS: [&str; 2] = ["/dev/ttyS1", "/dev/ttyS2"];
/// The firmware's file of the job (docs/specs/fw_cfg.rst).
const JOB: &str = "/sys/firmware/qemu_fw_cfg/by_name/opt/lasthop/job/raw";
/// How long the guest is busy between two stops: 2^30 instructions, each of a nanosecond. See `Machine::boot`.
const BUSY: Duration = Duration::from_nanos(1 << 30);
/// Turns of an empty loop between two looks at the clock.
const TURNS: u32 = 1 << 12;
/// The kernel takes what is written to /dev/urandom into account within a minute (drivers/char/random.c,
/// `CRNG_RESEED_INTERVAL`).
const RESEEDED_WITHIN: Duration = Duration::from_secs(61);

/// The guest's first process. It ends with the machine.
pub fn init() -> ! {
    if std::process::id() != 1 {
        // In a job: the arguments behind the first are its own.
        let error = in_root(std::env::args_os().skip(2));
        eprintln!("guest: {error}");
        std::process::exit(2);
    }
    if let Err(error) = live() {
        eprintln!("guest: {error}");
    }
    let _ = reboot(RebootMode::RB_POWER_OFF);
    // The kernel panics at the end of its first process, and the emulator then ends: -no-reboot.
    std::process::exit(1)
}

fn live() -> io::Result<()> {
    for (kind, to) in [
        ("proc", "/proc"),
        ("sysfs", "/sys"),
        ("devtmpfs", "/dev"),
        ("cgroup2", "/sys/fs/cgroup"),
        ("bpf", "/sys/fs/bpf"),
        ("tmpfs", "/tmp"),
        ("tmpfs", "/run"),
        ("tmpfs", OUT),
    ] {
        mount(Some(kind), to, Some(kind), MsFlags::empty(), None::<&str>)
            .map_err(|error| named(&format!("cannot mount {to}"), error.into()))?;
    }
    // As udev makes them.
    for (name, to) in [("fd", "fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")] {
        symlink(format!("/proc/self/{to}"), Path::new("/dev").join(name)).map_err(|error| named(name, error))?;
    }
    for name in fs::read_to_string(OF_JOBS)?.lines() {
        match load_one(name, c"") {
            // A run does without one of the user's own that is not good.
            Err(error) if is_control(name) => {
                eprintln!("{LEFT_OUT}{name}: {}", kernels_words(name).unwrap_or_else(|| error.to_string()));
            }
            done => done.map_err(|error| not_loaded(name, error))?,
        }
    }
    let job = next_job()?;
    // Each seed has random numbers of its own.
    fs::write("/dev/urandom", job.seed.to_le_bytes())?;
    thread::sleep(RESEEDED_WITHIN);
    for (path, text) in &job.files {
        make_parents(Path::new(path)).and_then(|()| fs::write(path, text)).map_err(|error| named(path, error))?;
    }
    let mut command = Command::new(PROGRAM);
    command.env("HOME", "/").env("PATH", "/");
    if job.radios > 0 {
        load_with(OF_RADIOS, (RADIOS, &CString::new(format!("radios={}", job.radios))?))?;
        command.env("PATH", PROGRAMS);
    }
    if let Some(caller) = &job.caller {
        // A job may do without any.
        for name in fs::read_to_string(OF_PROGRAMS)?.lines() {
            load_one(name, c"").unwrap_or_else(|error| eprintln!("guest: {}", not_loaded(name, error)));
        }
        let ports = File::options().write(true).open("/dev/port");
        let ports =
            ports.map_err(|error| named("cannot ask for this machine's files: /dev/port (CONFIG_DEVPORT)", error))?;
        make_root(ports, ROOT, SCRATCH).map_err(|error| named("cannot bring this machine's files", error))?;
        for file in job.files.iter().map(|(path, _)| path.as_str()).chain([PROGRAM]) {
            let to = format!("{ROOT}{file}");
            let brought = make_parents(Path::new(&to)).and_then(|()| fs::copy(file, to));
            brought.map_err(|error| named(file, error))?;
        }
        for port in PORTS {
            raw(port).map_err(|error| named(port, error))?;
        }
        command.arg(INIT).arg(caller.folder.as_deref().unwrap_or(SCRATCH));
        command.envs(caller.variables.iter().map(|(name, value)| (name, value))).env("HOME", SCRATCH);
        if job.radios > 0 {
            let own = caller.variables.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.as_str());
            command.env("PATH", own.into_iter().chain(OF_ROOT).collect::<Vec<_>>().join(":"));
        }
    }
    // A pipe, so that it writes lines, as for no terminal.
    command.args(&job.arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    io::copy(child.stderr.as_mut().expect("a pipe"), &mut io::stderr())?;
    let status = child.wait()?;
    load(OF_LEAVING)?;
    let to = "/host";
    mount(Some(SHARE), to, Some("9p"), MsFlags::empty(), Some("trans=virtio,version=9p2000.L,msize=512000"))
        .map_err(|error| named("cannot mount the shared folder", error.into()))?;
    copy(Path::new(OUT), Path::new(to))?;
    // The last file: with it, all are there.
    fs::write(Path::new(to).join(CODE_FILE), status.code().unwrap_or(-1).to_string())?;
    Ok(umount(to)?)
}

fn make_parents(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)
}

/// Becomes this program in the root that has this machine's files, in the folder that is the first argument. Returns only with an error.
fn in_root(mut arguments: impl Iterator<Item = OsString>) -> io::Error {
    let folder = arguments.next().unwrap_or_default();
    let there = chroot(ROOT).and_then(|()| chdir(folder.as_os_str()).or_else(|_| chdir(SCRATCH)));
    match there {
        Ok(()) => Command::new(PROGRAM).args(arguments).exec(),
        Err(error) => error.into(),
    }
}

/// Bytes pass a serial port as they are.
fn raw(port: &str) -> io::Result<()> {
    let port = File::options().read(true).write(true).open(port)?;
    let mut settings = tcgetattr(&port)?;
    cfmakeraw(&mut settings);
    Ok(tcsetattr(&port, SetArg::TCSANOW, &settings)?)
}

/// Stops to have the state saved. Runs on with a job, or again without one: see `Machine::boot`.
fn next_job() -> io::Result<Job> {
    let watchdog = |error| named("the watchdog on the PCI bus, by /sys/bus/pci (CONFIG_PCI, CONFIG_SYSFS)", error);
    let stopping = Stopping::find().map_err(watchdog)?;
    loop {
        stopping.stop().map_err(watchdog)?;
        load(OF_ARRIVAL)?;
        match fs::read(JOB) {
            Ok(job) => return Ok(serde_json::from_slice(&job)?),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(named(JOB, error)),
        }
        for name in fs::read_to_string(OF_ARRIVAL)?.lines() {
            delete_module(&CString::new(name)?, DeleteModuleFlags::empty())?;
        }
        let since = Instant::now();
        while since.elapsed() < BUSY {
            (0..TURNS).for_each(|turn| {
                black_box(turn);
            });
        }
    }
}

/// Loads the modules of a list.
fn load(list: &str) -> io::Result<()> {
    load_with(list, ("", c""))
}

/// The same, one of them with parameters.
fn load_with(list: &str, (one, its): (&str, &CStr)) -> io::Result<()> {
    let load = |name| load_one(name, if name == one { its } else { c"" }).map_err(|error| not_loaded(name, error));
    fs::read_to_string(list)?.lines().try_for_each(load)
}

fn not_loaded(module: &str, error: io::Error) -> io::Error {
    named(&format!("cannot load the module {module}"), error)
}

/// Loads a module. One that is loaded already is no error.
fn load_one(name: &str, parameters: &CStr) -> io::Result<()> {
    let file = File::open(format!("/modules/{name}.ko"))?;
    match finit_module(&file, parameters, ModuleInitFlags::empty()) {
        Ok(()) | Err(nix::Error::EEXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// What the kernel has said of a module, whether or not the console shows it (Documentation/ABI/testing/dev-kmsg).
fn kernels_words(module: &str) -> Option<String> {
    let mut log = File::options().read(true).custom_flags(O_NONBLOCK).open("/dev/kmsg").ok()?;
    let (mut record, mut words) = (vec![0; 8192], Vec::new());
    // Each read is a record; at the end nothing is ready.
    while let Ok(length) = log.read(&mut record) {
        words.extend(of_module(&String::from_utf8_lossy(&record[..length]), module));
    }
    (!words.is_empty()).then(|| words.join("; "))
}

/// What a record of the kernel's log says of a module.
fn of_module(record: &str, module: &str) -> Option<String> {
    let said = record.lines().next()?.split_once(';')?.1;
    said.strip_prefix(module)?.strip_prefix(": ").map(str::to_owned)
}

/// Copies what is in a folder. A file for which there is no room is left out as a whole, so that others find some.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            fs::create_dir(&to)?;
            copy(&entry.path(), &to)?;
        } else if let Err(error) = fs::copy(entry.path(), &to) {
            eprintln!("guest: cannot keep {}: {error}", entry.path().display());
            let _ = fs::remove_file(&to);
        }
    }
    Ok(())
}

fn named(what: &str, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_says_why_it_does_not_take_a_module() {
        let record = "4,712,1217332,-;tcp_mine: Unknown symbol tcp_new (err -2)\n SUBSYSTEM=module\n";
        assert_eq!(of_module(record, "tcp_mine").as_deref(), Some("Unknown symbol tcp_new (err -2)"));
        assert_eq!(of_module(record, "tcp_min"), None);
        assert_eq!(of_module("no record", "tcp_mine"), None);
    }
}
