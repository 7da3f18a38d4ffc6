//! What happens inside, between the network namespace and the guest's program. See [`guest`](super).

use super::{NOT_BEGUN, User};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::libc;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, sigprocmask};
use nix::sys::time::TimeSpec;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Gid, Pid, Uid, fork, getpgid, pipe, setgid, setgroups, setuid};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

/// What is said through the pipe when the program runs. Anything else is why it does not.
pub(super) const BEGUN: &str = "begun";
/// The signals that are passed on to the program, each under a number of its own on its way: under their own numbers they
/// come to the whole process group, too, with the program in it, as from a terminal or timeout(1).
const PASSED: [(Signal, Signal); 4] = [
    (Signal::SIGTERM, Signal::SIGSTKFLT),
    (Signal::SIGHUP, Signal::SIGVTALRM),
    (Signal::SIGINT, Signal::SIGPWR),
    (Signal::SIGQUIT, Signal::SIGSYS),
];
/// A signal that the laboratory passes on within this time of the process group's is the same one.
const SAME_WITHIN: Duration = Duration::from_secs(1);
/// timeout(1) sends a signal to the laboratory and then to its process group.
const GROUP_FOLLOWS_WITHIN: Duration = Duration::from_millis(50);

/// Under which number a signal is passed on; itself: it is not.
pub(super) fn passed(signal: Signal) -> Signal {
    PASSED.into_iter().find(|(sent, _)| *sent == signal).map_or(signal, |(_, passed)| passed)
}

/// The signal that ended a process before its program ran: one that came to its process group, or the one that was passed on to it.
pub(super) fn ended_by(status: ExitStatus, passed_on: Option<Signal>) -> Option<Signal> {
    let by = |signal: Signal| status.signal() == Some(signal as i32);
    let found = PASSED.into_iter().find(|(sent, passed)| by(*sent) || passed_on == Some(*sent) && by(*passed));
    found.map(|(sent, _)| sent)
}

/// A folder that every machine has. What is mounted here is gone before the program runs.
const SCRATCH: &str = "/tmp";

/// What the program finds.
#[derive(serde::Serialize, serde::Deserialize)]
pub(super) struct Spec {
    /// Files that stand in for the machine's own, by path.
    pub(super) files: Vec<(String, String)>,
    /// Variables of the environment.
    pub(super) environment: Vec<(String, String)>,
    pub(super) user: Option<User>,
}

/// Runs a guest's program, in the network namespace of the caller; returns its exit code. `lasthop exec-inside` is
/// this, and nothing else. The two descriptors are those that the laboratory has passed on.
///
/// # Panics
/// If the descriptors or the command are missing: nobody types this command.
pub fn run(spec: RawFd, say: RawFd, command: &[OsString]) -> i32 {
    // SAFETY: the laboratory has left these two open for this process, which has nothing else.
    #[allow(unsafe_code)]
    let (mut spec, mut say) = unsafe { (File::from_raw_fd(spec), File::from_raw_fd(say)) };
    for file in [&spec, &say] {
        // Not for the guest.
        let _ = fcntl(file, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC));
    }
    match enter(&mut spec, &mut say, command) {
        Ok(code) => code,
        Err(reason) => {
            let _ = say.write_all(reason.as_bytes());
            NOT_BEGUN
        }
    }
}

fn enter(spec: &mut File, say: &mut File, command: &[OsString]) -> Result<i32, String> {
    let mut text = String::new();
    spec.rewind().and_then(|()| spec.read_to_string(&mut text)).map_err(told("cannot read what a guest needs"))?;
    let spec: Spec = serde_json::from_str(&text).map_err(|error| format!("cannot read what a guest needs: {error}"))?;
    unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWPID).map_err(told("cannot make namespaces for a guest"))?;
    // What is mounted in here is not seen outside; what is unmounted outside goes in here, too.
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_SLAVE, None::<&str>)
        .map_err(told("cannot make the mounts of a guest its own"))?;
    put_files(&spec.files).map_err(told("cannot put a guest's files in place"))?;
    let mut before = SigSet::empty();
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), Some(&mut before))
        .map_err(told("cannot block signals"))?;
    let (alive, kept) = pipe().map_err(told("cannot make a pipe"))?;
    // SAFETY: this process has one thread.
    #[allow(unsafe_code)]
    match unsafe { fork() }.map_err(told("cannot make a process"))? {
        ForkResult::Parent { child } => {
            let code = supervise(child, PASSED.into_iter().map(|(_, passed)| passed), Some)
                .map_err(told("cannot wait for a guest"));
            drop(kept);
            code
        }
        ForkResult::Child => {
            drop(kept);
            let code = as_first(&alive, &spec, say, command, before).unwrap_or_else(|reason| {
                let _ = say.write_all(reason.as_bytes());
                NOT_BEGUN
            });
            // Its end is the end of all processes in here.
            std::process::exit(code)
        }
    }
}

/// Process 1 of the new namespace.
fn as_first(
    alive: &OwnedFd,
    spec: &Spec,
    say: &mut File,
    command: &[OsString],
    signals: SigSet,
) -> Result<i32, String> {
    set_pdeathsig(Signal::SIGKILL).map_err(told("cannot be bound to the laboratory"))?;
    // The parent may have died before that line: it has no number in here by which to tell.
    let mut pipe = [PollFd::new(alive.as_fd(), PollFlags::POLLIN)];
    if poll(&mut pipe, PollTimeout::ZERO).map_err(told("cannot look after the laboratory"))? > 0 {
        return Ok(NOT_BEGUN);
    }
    mount(
        Some("proc"),
        "/proc",
        Some("proc"),
        MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC,
        None::<&str>,
    )
    .map_err(told("cannot mount /proc for a guest"))?;
    let (program, arguments) = command.split_first().expect("a guest has a program");
    let mut program_of_guest = Command::new(program);
    program_of_guest.args(arguments).envs(spec.environment.iter().cloned());
    let user = spec.user.clone();
    let groups: Vec<Gid> = user.iter().flat_map(|user| &user.groups).map(|&group| Gid::from_raw(group)).collect();
    // SAFETY: only async-signal-safe system calls between fork and exec; what they need is allocated before.
    #[allow(unsafe_code)]
    unsafe {
        program_of_guest.pre_exec(move || {
            if let Some(user) = &user {
                setgroups(&groups)?;
                setgid(Gid::from_raw(user.gid))?;
                setuid(Uid::from_raw(user.uid))?;
            }
            sigprocmask(SigmaskHow::SIG_SETMASK, Some(&signals), None)?;
            Ok(())
        });
    }
    let child = program_of_guest.spawn().map_err(|error| format!("cannot run {}: {error}", program.display()))?;
    say.write_all(BEGUN.as_bytes()).map_err(told("cannot say that the guest runs"))?;
    let child = Pid::from_raw(child.id() as i32);
    let mut of_group = Vec::new();
    let passed_as = |signal| {
        let Some((sent, _)) = PASSED.into_iter().find(|(_, passed)| *passed == signal) else {
            of_group.push((signal, Instant::now()));
            return None;
        };
        // A shell has process groups of its own: the signals of ours do not reach it.
        if getpgid(Some(child)) != getpgid(None) {
            return Some(sent);
        }
        of_group.retain(|(_, at)| at.elapsed() < SAME_WITHIN);
        if !of_group.iter().any(|(got, _)| *got == sent) {
            if !comes(sent, GROUP_FOLLOWS_WITHIN) {
                return Some(sent);
            }
            of_group.push((sent, Instant::now()));
        }
        None
    };
    let awaited = PASSED.into_iter().flat_map(|(sent, passed)| [sent, passed]);
    supervise(child, awaited, passed_as).map_err(told("cannot wait for a guest"))
}

/// Waits for the end of a child and returns its exit code. Meanwhile passes signals on, which are blocked, and takes
/// note of the ends of others, of which process 1 is the parent.
fn supervise(
    child: Pid,
    signals: impl Iterator<Item = Signal>,
    mut passed_as: impl FnMut(Signal) -> Option<Signal>,
) -> io::Result<i32> {
    let awaited: SigSet = signals.chain([Signal::SIGCHLD]).collect();
    loop {
        loop {
            match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(ended, code)) if ended == child => return Ok(code),
                Ok(WaitStatus::Signaled(ended, signal, _)) if ended == child => return Ok(128 + signal as i32),
                Ok(WaitStatus::StillAlive) => break,
                Ok(_) | Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let signal = awaited.wait()?;
        if signal != Signal::SIGCHLD
            && let Some(signal) = passed_as(signal)
        {
            let _ = kill(child, signal);
        }
    }
}

/// Takes a signal that is blocked, if it comes within this time.
fn comes(signal: Signal, within: Duration) -> bool {
    let within = TimeSpec::from_duration(within);
    let signals = SigSet::from_iter([signal]);
    // SAFETY: the set and the time outlive the call, which needs no more than these.
    #[allow(unsafe_code)]
    let got = unsafe { libc::sigtimedwait(signals.as_ref(), std::ptr::null_mut(), within.as_ref()) };
    got == signal as i32
}

/// Puts files in the place of the machine's, for this namespace of mounts alone. Those that the machine does not have
/// are left out: nothing is made in its folders.
fn put_files(files: &[(String, String)]) -> io::Result<()> {
    mount(Some("lasthop"), SCRATCH, Some("tmpfs"), MsFlags::empty(), Some("mode=755"))?;
    for (number, (path, text)) in files.iter().enumerate() {
        if !Path::new(path).exists() {
            continue;
        }
        let source = format!("{SCRATCH}/{number}");
        fs::write(&source, text)?;
        mount(Some(source.as_str()), path.as_str(), None::<&str>, MsFlags::MS_BIND, None::<&str>)?;
    }
    umount2(SCRATCH, MntFlags::MNT_DETACH)?;
    Ok(())
}

fn told<E: std::fmt::Display>(doing: &'static str) -> impl FnOnce(E) -> String {
    move |error| format!("{doing}: {error}")
}
