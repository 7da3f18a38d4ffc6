//! One process and its pipes. Nothing here waits, but for [`Program::wait`].

use lasthop_policy::schema::{Decision, Hello, Line};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::libc;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::prctl::{set_no_new_privs, set_pdeathsig};
use nix::sys::signal::{Signal, killpg};
use nix::sys::time::TimeSpec;
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::{Pid, User, getppid, setsid};
use std::cell::OnceCell;
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The longest line of a program.
const LINE_BYTES_MOST: usize = 1 << 20;
/// The last lines of its standard error that are kept, and of each so many bytes.
const LAST_LINES: usize = 20;
const LAST_LINE_BYTES: usize = 400;
/// Bytes of a wrong line that are shown.
const SHOWN_BYTES: usize = 200;
/// The most letters of what is wrong with a decision.
const PROBLEM_LETTERS: usize = 300;
/// Time between the end of its standard output and its exit, for the status.
const EXITS_WITHIN: Duration = Duration::from_millis(100);
/// Time between SIGKILL and its end. One that waits for a dead file server takes longer, and is then a zombie until
/// this process ends.
const DIES_WITHIN: Duration = Duration::from_millis(200);

/// A user of this machine, looked up at the first start that finds him: that may ask a server.
#[derive(Clone, Debug)]
pub struct Account {
    name: String,
    /// User and group.
    ids: OnceCell<(u32, u32)>,
}

impl Account {
    /// The user of this name.
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), ids: OnceCell::new() }
    }

    fn ids(&self) -> Result<(u32, u32), ProgramError> {
        if let Some(ids) = self.ids.get() {
            return Ok(*ids);
        }
        let user = User::from_name(&self.name).ok().flatten().ok_or_else(|| ProgramError::User(self.name.clone()))?;
        Ok(*self.ids.get_or_init(|| (user.uid.as_raw(), user.gid.as_raw())))
    }
}

/// How a program is started.
#[derive(Clone, Debug)]
pub struct Start {
    /// The program and its arguments. Without a `/` in it, the program is looked for in PATH.
    pub command: Vec<String>,
    /// The user as whom it runs, with no other groups and an environment of PATH, LANG and LC_ALL alone; `None`: as
    /// this process. Changing it needs root with CAP_SETUID and CAP_SETGID.
    pub user: Option<Account>,
    /// Whether runs must be repeatable: Python's hashes of texts are then not drawn at random (PYTHONHASHSEED).
    pub repeatable: bool,
    /// Its first line.
    pub hello: Hello,
    /// How long it may go on after the end of its standard input, when the [`Program`] is dropped; it is killed then.
    pub ends_within: Duration,
}

/// Why a program cannot decide. [`ProgramError::Late`] leaves it as it is; after all others it must be started again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    /// There is no such user.
    #[error("command_user: there is no user \"{0}\" on this machine")]
    User(String),
    /// It cannot be started.
    #[error("cannot start {program}{as_whom}: {problem}")]
    Start {
        /// The first word of the command.
        program: String,
        /// " as nobody", or nothing.
        as_whom: String,
        /// The system's error.
        problem: String,
    },
    /// It has ended.
    #[error("the program has ended ({status}){last_words}")]
    Ended {
        /// Its exit status.
        status: String,
        /// The end of its standard error, or nothing.
        last_words: String,
    },
    /// It wrote a line that is no decision.
    #[error("the program wrote a line that is no decision: {problem}; the line: {line}{last_words}")]
    NoDecision {
        /// The field that is wrong, and why.
        problem: String,
        /// The line, or its beginning.
        line: String,
        /// The end of its standard error, or nothing.
        last_words: String,
    },
    /// It did not decide in time.
    #[error("the program gave no decision within {within:?}{last_words}")]
    Late {
        /// The limit.
        within: Duration,
        /// The end of its standard error, or nothing.
        last_words: String,
    },
    /// A pipe failed.
    #[error("cannot speak with the program: {0}")]
    Pipe(String),
}

/// Before the last lines of its standard error.
const LAST_WORDS: &str = "; its standard error ends with:";

impl ProgramError {
    /// In one line, without the end of its standard error.
    pub fn in_brief(&self) -> String {
        let text = self.to_string();
        text.split(LAST_WORDS).next().unwrap_or_default().to_owned()
    }
}

/// A running program. Dropping it ends the process group.
#[derive(Debug)]
pub struct Program {
    child: Child,
    /// `None`: it reads no more.
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    stderr: Option<ChildStderr>,
    ends_within: Duration,
    /// Since when it should end.
    closed_at: Option<Instant>,
    /// What could not be written yet.
    unsent: VecDeque<u8>,
    /// What was read of its standard output, up to a line's end.
    unread: Vec<u8>,
    has_ended: bool,
    /// Observations without an answer.
    owed: u32,
    /// The last lines of its standard error.
    last: VecDeque<Vec<u8>>,
    last_is_whole: bool,
}

impl Program {
    /// Starts it, and says hello. Does not wait for it to begin.
    ///
    /// # Errors
    /// [`ProgramError::User`], [`ProgramError::Start`].
    ///
    /// # Panics
    /// If the command is empty.
    pub fn start(start: &Start) -> Result<Self, ProgramError> {
        let (program, arguments) = start.command.split_first().expect("a checked command names a program");
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if start.repeatable && std::env::var_os("PYTHONHASHSEED").is_none() {
            command.env("PYTHONHASHSEED", "0");
        }
        if let Some(account) = &start.user {
            let (user, group) = account.ids()?;
            command.uid(user).gid(group).env_clear();
            for name in ["PATH", "LANG", "LC_ALL"] {
                if let Some(value) = std::env::var_os(name) {
                    command.env(name, value);
                }
            }
        }
        let parent = Pid::this();
        // SAFETY: between fork and exec there are only async-signal-safe system calls: setsid, prctl, getppid and
        // close_range.
        #[allow(unsafe_code)]
        unsafe {
            command.pre_exec(move || {
                // A session and group of its own: no terminal to type into, and Ctrl-C reaches it through this process
                // alone.
                setsid()?;
                // After the change of the user, which clears it.
                set_pdeathsig(Signal::SIGKILL)?;
                if getppid() != parent {
                    // The parent died between the fork and the line above.
                    return Err(ErrorKind::Interrupted.into());
                }
                set_no_new_privs()?;
                // Descriptors that others have left open over exec, such as that of an agent's configuration in memory.
                // Kernels before 5.11 lack the flag; our own are closed anyway.
                libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
                Ok(())
            });
        }
        let mut child = command.spawn().map_err(|error| ProgramError::Start {
            program: program.clone(),
            as_whom: start.user.as_ref().map_or_else(String::new, |user| format!(" as {}", user.name)),
            problem: error.to_string(),
        })?;
        let stdin = child.stdin.take().expect("it is a pipe");
        let stdout = child.stdout.take().expect("it is a pipe");
        let stderr = child.stderr.take().expect("it is a pipe");
        for end in [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()] {
            fcntl(end, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).map_err(|error| ProgramError::Pipe(error.to_string()))?;
        }
        let mut program = Self {
            child,
            stdin: Some(stdin),
            stdout,
            stderr: Some(stderr),
            ends_within: start.ends_within,
            closed_at: None,
            unsent: VecDeque::new(),
            unread: Vec::new(),
            has_ended: false,
            owed: 0,
            last: VecDeque::new(),
            last_is_whole: true,
        };
        program.send(&Line::Hello(start.hello.clone()));
        Ok(program)
    }

    /// Sends an observation, as far as the program reads; [`Self::poll`] sends the rest.
    ///
    /// # Errors
    /// If the program has written something that nobody had asked for: each of its decisions would be one tick old.
    pub fn ask(&mut self, observation: lasthop_policy::schema::Observation) -> Result<(), ProgramError> {
        self.read();
        if self.owed == 0 && !self.unread.is_empty() {
            return Err(self.unasked());
        }
        self.owed += 1;
        self.send(&Line::Observation(observation));
        Ok(())
    }

    /// The number of observations that it has not answered.
    pub const fn owed(&self) -> u32 {
        self.owed
    }

    /// The next decision, if it is there. Never waits longer than 100 ms, and that only if the program has ended.
    ///
    /// # Errors
    /// If the program has ended, or has written something else.
    pub fn poll(&mut self) -> Result<Option<Decision>, ProgramError> {
        self.flush();
        self.read();
        if let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
            if self.owed == 0 {
                return Err(self.unasked());
            }
            let line: Vec<u8> = self.unread.drain(..=end).collect();
            if !self.unsent.is_empty() {
                return Err(self.no_decision("it has not read what it answers".to_owned(), &line[..end]));
            }
            self.owed -= 1;
            return decision(&line[..end]).map(Some).map_err(|problem| self.no_decision(problem, &line[..end]));
        }
        if self.unread.len() >= LINE_BYTES_MOST {
            let line = std::mem::take(&mut self.unread);
            return Err(self.no_decision(format!("it is longer than {LINE_BYTES_MOST} bytes"), &line));
        }
        if self.has_ended { Err(self.ended()) } else { Ok(None) }
    }

    /// Waits until there is something to [`poll`](Self::poll), at most for this long.
    ///
    /// # Errors
    /// If the kernel does not let it wait.
    pub fn wait(&self, longest: Duration) -> Result<(), ProgramError> {
        let mut polled: Vec<PollFd<'_>> = self.descriptors().map(|(end, flags)| PollFd::new(end, flags)).collect();
        match ppoll(&mut polled, Some(TimeSpec::from(longest)), None) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(error) => Err(ProgramError::Pipe(error.to_string())),
        }
    }

    /// Ends its standard input, after which it has its time to end ([`Start::ends_within`]). Does not wait for it.
    pub fn close(&mut self) {
        self.stdin = None;
        self.closed_at.get_or_insert_with(Instant::now);
    }

    /// What to wait for, for a caller with descriptors of its own.
    pub fn descriptors(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        let stdin = self.stdin.as_ref().filter(|_| !self.unsent.is_empty());
        let stdin = stdin.map(|stdin| (stdin.as_fd(), PollFlags::POLLOUT));
        let stdout = Some((self.stdout.as_fd(), PollFlags::POLLIN));
        let stderr = self.stderr.as_ref().map(|stderr| (stderr.as_fd(), PollFlags::POLLIN));
        stdin.into_iter().chain(stdout).chain(stderr)
    }

    /// That it gave no decision within this time, with the end of its standard error.
    pub fn late(&self, within: Duration) -> ProgramError {
        ProgramError::Late { within, last_words: self.last_words() }
    }

    /// The process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    fn send(&mut self, line: &Line) {
        self.unsent.extend(serde_json::to_vec(line).expect("plain data"));
        self.unsent.push_back(b'\n');
        self.flush();
    }

    fn flush(&mut self) {
        while let (Some(stdin), false) = (&mut self.stdin, self.unsent.is_empty()) {
            match stdin.write(self.unsent.as_slices().0) {
                Ok(written) => drop(self.unsent.drain(..written)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // It reads no more. Its standard output says whether it has ended.
                Err(_) => self.stdin = None,
            }
        }
        if self.stdin.is_none() {
            self.unsent.clear();
        }
    }

    /// Reads what is there.
    fn read(&mut self) {
        if let Some(stderr) = &mut self.stderr {
            let mut text = Vec::new();
            if read_all(stderr, &mut text, LINE_BYTES_MOST) {
                self.stderr = None;
            }
            self.keep(&text);
        }
        self.has_ended |= read_all(&mut self.stdout, &mut self.unread, LINE_BYTES_MOST);
    }

    /// Keeps the last lines of its standard error.
    fn keep(&mut self, text: &[u8]) {
        for part in text.split_inclusive(|byte| *byte == b'\n') {
            if self.last_is_whole {
                self.last.push_back(Vec::new());
            }
            let line = self.last.back_mut().expect("there is one");
            self.last_is_whole = part.ends_with(b"\n");
            let room = LAST_LINE_BYTES.saturating_sub(line.len());
            line.extend(part.iter().filter(|byte| **byte != b'\n').take(room));
        }
        let surplus = self.last.len().saturating_sub(LAST_LINES);
        self.last.drain(..surplus);
    }

    fn last_words(&self) -> String {
        let mut words = String::new();
        if !self.last.is_empty() {
            words.push_str(LAST_WORDS);
        }
        for line in &self.last {
            let _ = write!(words, "\n  | {}", printable(&String::from_utf8_lossy(line)));
        }
        words
    }

    fn no_decision(&self, problem: String, line: &[u8]) -> ProgramError {
        let shown = printable(&String::from_utf8_lossy(&line[..line.len().min(SHOWN_BYTES)]));
        // It may quote the line.
        let problem = printable(&problem.chars().take(PROBLEM_LETTERS).collect::<String>());
        let more = if line.len() > SHOWN_BYTES { "…" } else { "" };
        ProgramError::NoDecision { problem, line: shown + more, last_words: self.last_words() }
    }

    fn unasked(&mut self) -> ProgramError {
        let text = std::mem::take(&mut self.unread);
        let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
        self.no_decision("nothing was asked".to_owned(), line)
    }

    fn ended(&mut self) -> ProgramError {
        let status = self.exit_within(EXITS_WITHIN);
        self.read();
        let status = match status {
            Some(WaitStatus::Exited(_, code)) => format!("exit code {code}"),
            Some(WaitStatus::Signaled(_, signal, _)) => format!("by {signal}"),
            _ => "it closed its standard output".to_owned(),
        };
        ProgramError::Ended { status, last_words: self.last_words() }
    }

    /// How it has ended, as soon as it has. Leaves it to be reaped, so that its number stays its own.
    fn exit_within(&self, limit: Duration) -> Option<WaitStatus> {
        let begun = Instant::now();
        let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        loop {
            match waitid(Id::Pid(self.group()), look) {
                Ok(WaitStatus::StillAlive) if begun.elapsed() < limit => thread::sleep(Duration::from_millis(1)),
                outcome => return outcome.ok().filter(|status| *status != WaitStatus::StillAlive),
            }
        }
    }

    /// The process, which is the first of its group.
    fn group(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.close();
        let closed_for = self.closed_at.map_or(Duration::ZERO, |at| at.elapsed());
        self.exit_within(self.ends_within.saturating_sub(closed_for));
        // With what the program may have started.
        let _ = killpg(self.group(), Signal::SIGKILL);
        if self.exit_within(DIES_WITHIN).is_some() {
            let _ = self.child.wait();
        }
    }
}

/// Text of a program, without what a terminal would obey.
fn printable(text: &str) -> String {
    let escaped = |letter: char| if letter.is_control() { letter.escape_default().to_string() } else { letter.into() };
    text.chars().map(escaped).collect()
}

/// Reads what is there, up to `most` bytes in all. Whether it has come to the end.
fn read_all(from: &mut impl Read, into: &mut Vec<u8>, most: usize) -> bool {
    let mut part = [0; 1 << 14];
    while into.len() < most {
        match from.read(&mut part) {
            Ok(0) => return true,
            Ok(read) => into.extend(&part[..read]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return error.kind() != ErrorKind::WouldBlock,
        }
    }
    false
}

/// The decision in this line.
///
/// # Errors
/// If it is none: the field that is wrong, and why, in words.
pub fn decision(line: &[u8]) -> Result<Decision, String> {
    let mut reader = serde_json::Deserializer::from_slice(line);
    let decision = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let path = error.path().to_string();
        if path == "." { error.inner().to_string() } else { format!("{path}: {}", error.inner()) }
    })?;
    reader.end().map_err(|error: serde_json::Error| error.to_string())?;
    Ok(decision)
}
