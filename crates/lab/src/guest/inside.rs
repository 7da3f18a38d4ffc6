//! What happens inside, between the network namespace and the guest's program. See [`guest`](super).

use super::{NOT_BEGUN, User};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, sigprocmask};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Gid, Pid, Uid, fork, pipe, setgid, setgroups, setuid};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// What is said through the pipe when the program runs. Anything else is why it does not.
pub(super) const BEGUN: &str = "begun";
/// The signals that are passed on to the program. Those of the terminal reach it by themselves.
const PASSED: [Signal; 6] =
    [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGUSR1, Signal::SIGUSR2, INTERRUPT_SENT, QUIT_SENT];
/// SIGINT and SIGQUIT that a process sent to the laboratory alone, on their way to the program: under their own numbers
/// they come from the terminal, too, which has sent them to the program itself.
pub(super) const INTERRUPT_SENT: Signal = Signal::SIGPWR;
pub(super) const QUIT_SENT: Signal = Signal::SIGSYS;
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
            let code = supervise(child, |signal| signal).map_err(told("cannot wait for a guest"));
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
    let as_sent = |signal| match signal {
        INTERRUPT_SENT => Signal::SIGINT,
        QUIT_SENT => Signal::SIGQUIT,
        other => other,
    };
    supervise(Pid::from_raw(child.id() as i32), as_sent).map_err(told("cannot wait for a guest"))
}

/// Waits for the end of a child and returns its exit code. Meanwhile passes signals on, which are blocked, and takes
/// note of the ends of others, of which process 1 is the parent.
fn supervise(child: Pid, passed_as: impl Fn(Signal) -> Signal) -> io::Result<i32> {
    let mut awaited = SigSet::empty();
    awaited.add(Signal::SIGCHLD);
    PASSED.into_iter().for_each(|signal| awaited.add(signal));
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
        if signal != Signal::SIGCHLD {
            let _ = kill(child, passed_as(signal));
        }
    }
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
