//! A guest: any programs on hosts of the scenario, beside the scenario's flows (`lasthop exec`).
//!
//! ```text
//! lasthop                        holds the namespaces, carries the packets
//!  +- lasthop exec-inside        enters the host's network namespace; makes namespaces of mounts and of processes
//!      +- (process 1 in there)   mounts /proc; passes signals on; its end is the end of all processes in there
//!          +- CMD                as the user, with the caller's terminal and process group
//! ```
//!
//! Each of them dies with its parent (PR_SET_PDEATHSIG), and all that CMD has started dies with process 1. So nothing
//! of a guest outlives CMD or `lasthop`, not even after `kill -9`.
//!
//! The guest's server is one more server of the scenario, with [`GUEST_ADDRESSES`] addresses and without flows. The
//! program of `--server` runs there in the same way.
//!
//! *What it leaves out*: options that only sockets have (`hosts.tcp`: nagle, pacing, receive_buffer_kib) do not reach a
//! guest's sockets.

pub(crate) mod inside;
pub(crate) mod queues;

use crate::addresses::{AddressPlan, GUEST_ADDRESSES};
use crate::error::{Doing, Error, Result};
use crate::hosts::has_ipv6;
use crate::namespace::Namespace;
use crate::process::Process;
use inside::{BEGUN, Spec, ended_by, passed};
use nix::fcntl::OFlag;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::{Pid, getpgrp, pipe2, tcgetpgrp, tcsetpgrp};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The exit code of a guest that could not be started.
pub const NOT_BEGUN: i32 = 2;
/// The time limit for a server to listen. It goes on without: the server may begin when it is told to.
const LISTENING_WITHIN: Duration = Duration::from_secs(10);
/// The time that a server has to end after SIGTERM.
const STOPPED_WITHIN: Duration = Duration::from_secs(2);

/// A program to run on a host.
#[derive(Clone, Copy, Debug)]
pub struct Program<'a> {
    /// The host, by its index.
    pub host: u16,
    /// The program and its arguments.
    pub command: &'a [OsString],
}

/// The programs to run on hosts.
pub struct Guest<'a> {
    /// The programs, at least one. One alone has the caller's streams and terminal. Of several each line has the name of its host before
    /// it, and none has an input.
    pub programs: &'a [Program<'a>],
    /// The names of all hosts, by index.
    pub names: &'a [String],
    /// A command line for `sh -c` at the server.
    pub server: Option<&'a str>,
    /// The user of all of them; `None`: the caller.
    pub user: Option<&'a User>,
    /// Where outputs and errors go instead of the caller's streams: no terminal.
    pub streams: Option<[&'a Path; 2]>,
    /// Whether the standard output of the programs is the caller's standard error.
    pub output_to_stderr: bool,
    /// Whether the path leads on to the networks of this machine.
    pub internet: bool,
    /// The name of the first program's network namespace in /run/netns.
    pub netns: Option<&'a str>,
    /// Signals to pass on to the programs: once a flag is set, and it is cleared. A signal
    /// that the whole process group got is not passed on: the command has it.
    pub signals: &'a [(Signal, &'a AtomicBool)],
}

/// Where lines of programs go.
type Sink = Arc<Mutex<dyn Write + Send>>;

impl Guest<'_> {
    /// Those of outputs and of errors.
    fn sinks(&self) -> Result<[Sink; 2]> {
        let file = |path: &Path| -> Result<Sink> {
            let file = File::options().append(true).open(path);
            Ok(Arc::new(Mutex::new(file.doing(format_args!("cannot write to {}", path.display()))?)))
        };
        let errors: Sink = Arc::new(Mutex::new(std::io::stderr()));
        Ok(match self.streams {
            Some([out, errors]) => [file(out)?, file(errors)?],
            None if self.output_to_stderr => [Arc::clone(&errors), errors],
            None => [Arc::new(Mutex::new(std::io::stdout())), errors],
        })
    }
}

/// A user of this machine.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct User {
    /// Its number.
    pub uid: u32,
    /// Its first group.
    pub gid: u32,
    /// All its groups.
    pub groups: Vec<u32>,
    /// Its name.
    pub name: String,
    /// Its folder.
    pub home: String,
    /// Its shell.
    pub shell: String,
}

/// How a guest has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The exit code of each program; 128 and the signal that killed it.
    pub codes: Vec<i32>,
    /// What became of the server, if it ended before the programs with an error.
    pub server: Option<String>,
}

/// The guest of a run, before and after its beginning.
pub(crate) struct Running<'a> {
    guest: &'a Guest<'a>,
    server: Option<Inside>,
    /// By program, once they have begun.
    commands: Vec<Inside>,
    server_failed: Option<String>,
    /// Whether the terminal was the caller's before the command began.
    had_terminal: bool,
}

/// A program in namespaces of its own.
struct Inside {
    process: Process,
    /// Says whether the program has begun.
    said: File,
    /// Its exit code, once it has ended.
    code: Option<i32>,
    /// The latest signal that was passed on to it.
    passed_on: Option<Signal>,
    /// Threads that copy its output.
    copies: Vec<thread::JoinHandle<()>>,
}

impl<'a> Running<'a> {
    /// Starts the server, if there is one, and waits until it listens.
    ///
    /// # Errors
    /// If it does not start, or ends at once.
    pub(crate) fn prepare(guest: &'a Guest<'a>, at_server: &Namespace, stop: &AtomicBool) -> Result<Self> {
        let mut running = Self { guest, server: None, commands: Vec::new(), server_failed: None, had_terminal: false };
        let Some(line) = guest.server else { return Ok(running) };
        let command = ["sh", "-c", line].map(OsString::from);
        let host = guest.programs[0].host;
        let mut server = Inside::start(guest, Program { host, command: &command }, at_server, true)?;
        let deadline = Instant::now() + LISTENING_WITHIN;
        while !at_server.run(listens)? && Instant::now() < deadline && !stop.load(Ordering::Relaxed) {
            if let Some(status) = server.process.0.try_wait().doing("cannot wait for the server")? {
                return Err(Error::Child(format!("the server \"{line}\" ended before it listened ({status})")));
            }
            thread::sleep(Duration::from_millis(20));
        }
        running.server = Some(server);
        Ok(running)
    }

    pub(crate) fn has_begun(&self) -> bool {
        !self.commands.is_empty()
    }

    /// Starts the programs on their hosts.
    pub(crate) fn begin(&mut self, hosts: &[Namespace]) -> Result<()> {
        self.had_terminal = has_terminal();
        let sinks = self.guest.sinks()?;
        for program in self.guest.programs {
            let mut inside = Inside::start(self.guest, *program, &hosts[usize::from(program.host)], false)?;
            let name = &self.guest.names[usize::from(program.host)];
            inside.copy((self.guest.programs.len() > 1).then_some(name), &sinks);
            self.commands.push(inside);
        }
        Ok(())
    }

    /// Passes signals on, and looks after the server and the programs. Returns the exit codes when all have ended.
    ///
    /// # Errors
    /// If a program could not be started.
    pub(crate) fn look(&mut self) -> Result<Option<Vec<i32>>> {
        if let (Some(server), None) = (&mut self.server, &self.server_failed)
            && let Some(status) = server.process.0.try_wait().doing("cannot wait for the server")?
            && !status.success()
        {
            self.server_failed = Some(status.to_string());
        }
        for (signal, flag) in self.guest.signals {
            if self.has_begun() && flag.swap(false, Ordering::Relaxed) {
                self.commands
                    .iter_mut()
                    .filter(|command| command.code.is_none())
                    .for_each(|command| command.pass(*signal));
            }
        }
        for command in &mut self.commands {
            if command.code.is_some() {
                continue;
            }
            let Some(status) = command.process.0.try_wait().doing("cannot wait for a command")? else { continue };
            let mut said = String::new();
            command.said.read_to_string(&mut said).doing("cannot read whether a command has begun")?;
            command.code = Some(match said.strip_prefix(BEGUN) {
                Some(_) => code(status),
                None if !said.is_empty() => return Err(Error::Child(said)),
                None => match ended_by(status, command.passed_on) {
                    Some(signal) => 128 + signal as i32,
                    None => return Err(Error::Child(format!("a command did not start ({status})"))),
                },
            });
        }
        let codes: Option<Vec<i32>> = self.commands.iter().map(|command| command.code).collect();
        Ok(codes.filter(|codes| !codes.is_empty()))
    }

    /// Stops the server, after the programs have ended with these codes.
    pub(crate) fn end(mut self, codes: Vec<i32>) -> Ended {
        // All that could write is gone.
        self.commands.drain(..).flat_map(|command| command.copies).for_each(|copy| drop(copy.join()));
        if self.had_terminal && !has_terminal() {
            take_terminal();
        }
        if let Some(server) = &mut self.server {
            server.pass(Signal::SIGTERM);
            let deadline = Instant::now() + STOPPED_WITHIN;
            while matches!(server.process.0.try_wait(), Ok(None)) && Instant::now() < deadline {
                thread::sleep(Duration::from_millis(5));
            }
        }
        Ended { codes, server: self.server_failed.take() }
    }
}

impl Inside {
    fn start(guest: &Guest<'_>, program: Program<'_>, namespace: &Namespace, is_server: bool) -> Result<Self> {
        let spec = serde_json::to_vec(&spec(guest, program.host)).expect("text and numbers");
        let file = memfd_create(c"lasthop-exec", MFdFlags::MFD_CLOEXEC).doing("cannot make a file in memory")?;
        let mut file = File::from(file);
        file.write_all(&spec).doing("cannot write what a guest needs")?;
        let (said, say) = pipe2(OFlag::O_CLOEXEC).doing("cannot make a pipe")?;
        // This same program, even if its file has been replaced since.
        let mut inside = Command::new("/proc/self/exe");
        let descriptors = [file.as_raw_fd(), say.as_raw_fd()];
        inside.arg0("lasthop").arg("exec-inside").args(descriptors.map(|fd| fd.to_string())).arg("--");
        inside.args(program.command);
        let is_copied = !is_server && (guest.programs.len() > 1 || guest.streams.is_some());
        if is_server || is_copied {
            inside.stdin(Stdio::null());
        }
        if is_copied {
            inside.stdout(Stdio::piped()).stderr(Stdio::piped());
        } else if is_server || guest.output_to_stderr {
            inside.stdout(stderr()?);
        }
        let spawn = if is_server { Process::spawn } else { Process::spawn_in_group };
        let process = spawn(inside, namespace, &descriptors).doing("cannot start a program in a host's namespace")?;
        Ok(Self { process, said: said.into(), code: None, passed_on: None, copies: Vec::new() })
    }

    /// Copies what the program writes, if it does not have the caller's streams; with `name` by lines, with this before each.
    fn copy(&mut self, name: Option<&str>, [out, errors]: &[Sink; 2]) {
        let output = self.process.0.stdout.take().map(|from| copy(name, from, Arc::clone(out)));
        let errors = self.process.0.stderr.take().map(|from| copy(name, from, Arc::clone(errors)));
        self.copies.extend(output.into_iter().chain(errors));
    }

    /// Passes a signal on to the program.
    fn pass(&mut self, signal: Signal) {
        self.passed_on = Some(signal);
        let _ = kill(Pid::from_raw(self.process.0.id() as i32), passed(signal));
    }
}

/// Copies what a program writes: as it comes, or line by line with the name of its host before each.
fn copy(name: Option<&str>, mut from: impl Read + Send + 'static, to: Sink) -> thread::JoinHandle<()> {
    let before = name.map(|name| format!("{name} | "));
    thread::spawn(move || {
        let Some(before) = before else {
            let mut some = [0; 1 << 13];
            while let Ok(count @ 1..) = from.read(&mut some) {
                let mut to = to.lock().unwrap_or_else(PoisonError::into_inner);
                let _ = to.write_all(&some[..count]).and_then(|()| to.flush());
            }
            return;
        };
        let mut from = BufReader::new(from);
        let mut line = before.clone().into_bytes();
        while from.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            if line.last() != Some(&b'\n') {
                line.push(b'\n');
            }
            // Whole, whatever others write. A closed pipe is no error of the run.
            let mut to = to.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = to.write_all(&line).and_then(|()| to.flush());
            line.truncate(before.len());
        }
    })
}

/// Whether this process group is in the foreground of its terminal.
fn has_terminal() -> bool {
    tcgetpgrp(std::io::stdin()).is_ok_and(|group| group == getpgrp())
}

/// Brings this process group to the foreground. A shell that has ended cannot: in its namespace of processes this group
/// has no number.
fn take_terminal() {
    let mut stop = SigSet::empty();
    stop.add(Signal::SIGTTOU);
    // The signal would stop a group in the background that does this.
    if stop.thread_block().is_ok() {
        let _ = tcsetpgrp(std::io::stdin(), getpgrp());
        let _ = stop.thread_unblock();
    }
}

fn stderr() -> Result<OwnedFd> {
    std::io::stderr().as_fd().try_clone_to_owned().doing("cannot duplicate standard error")
}

fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

/// What a program of the guest finds: files, environment, user.
fn spec(guest: &Guest<'_>, host: u16) -> Spec {
    let (first, first6) = AddressPlan::guest_server(0);
    let mut environment = vec![
        ("LASTHOP_SERVER".to_owned(), first.to_string()),
        ("LASTHOP_HOST".to_owned(), guest.names[usize::from(host)].clone()),
    ];
    if has_ipv6() {
        environment.push(("LASTHOP_SERVER6".to_owned(), first6.to_string()));
    }
    if let Some(user) = guest.user {
        for (key, value) in
            [("HOME", &user.home), ("USER", &user.name), ("LOGNAME", &user.name), ("SHELL", &user.shell)]
        {
            environment.push((key.to_owned(), value.clone()));
        }
    }
    let files = vec![
        ("/etc/hosts".to_owned(), hosts_file(guest.names)),
        ("/etc/resolv.conf".to_owned(), resolv_conf(guest.internet)),
        ("/etc/nsswitch.conf".to_owned(), nsswitch_conf(&read("/etc/nsswitch.conf"))),
    ];
    Spec { files, environment, user: guest.user.cloned() }
}

/// The names of the server and of the hosts, before this machine's own.
fn hosts_file(names: &[String]) -> String {
    let mut text = String::from("127.0.0.1 localhost\n::1 localhost ip6-localhost\n");
    let mut add = |address: IpAddr, names: &str| {
        if address.is_ipv4() || has_ipv6() {
            let _ = writeln!(text, "{address} {names}");
        }
    };
    for number in 0..GUEST_ADDRESSES {
        let (address, address6) = AddressPlan::guest_server(number);
        let name = format!("{}server-{}", if number == 0 { "server " } else { "" }, number + 1);
        add(address.into(), &name);
        add(address6.into(), &name);
    }
    for (index, name) in (0..).zip(names) {
        add(AddressPlan::host(index).into(), name);
        add(AddressPlan::host6(index).into(), name);
    }
    text + &read("/etc/hosts")
}

/// Without the internet, the only name server there can be is one of the user's at the server.
fn resolv_conf(internet: bool) -> String {
    let (server, _) = AddressPlan::guest_server(0);
    if !internet {
        return format!("nameserver {server}\noptions timeout:2 attempts:1\n");
    }
    name_servers(&read("/etc/resolv.conf"))
        .or_else(|| name_servers(&read("/run/systemd/resolve/resolv.conf")))
        .unwrap_or_default()
}

/// This machine's file, without name servers of its own: its loopback device is not a guest's. `None` if none is left.
fn name_servers(text: &str) -> Option<String> {
    let is_other = |line: &&str| {
        let address = line.strip_prefix("nameserver").and_then(|rest| rest.trim().parse::<IpAddr>().ok());
        address.is_none_or(|address| !address.is_loopback() && address.is_ipv4())
    };
    let left: Vec<&str> = text.lines().filter(is_other).collect();
    left.iter().any(|line| line.starts_with("nameserver")).then(|| left.join("\n") + "\n")
}

/// The machine's own, with host names from files and DNS alone: other modules ask programs outside.
fn nsswitch_conf(text: &str) -> String {
    let others = text.lines().filter(|line| !line.trim_start().starts_with("hosts:"));
    others.chain(["hosts: files dns", ""]).collect::<Vec<_>>().join("\n")
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Whether a program listens in the calling thread's namespace, on TCP or UDP.
fn listens() -> Result<bool> {
    const LISTEN: &str = "0A";
    let states = |table: &str| -> Vec<String> {
        let text = read(&format!("/proc/thread-self/net/{table}"));
        text.lines().skip(1).filter_map(|row| Some(row.split_whitespace().nth(3)?.to_owned())).collect()
    };
    let tcp = || ["tcp", "tcp6"].iter().any(|table| states(table).iter().any(|state| state == LISTEN));
    let udp = || ["udp", "udp6"].iter().any(|table| !states(table).is_empty());
    Ok(tcp() || udp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_and_the_hosts_have_names_before_the_machines_own() {
        let names = ["laptop-1", "laptop-2", "host-2"].map(str::to_owned);
        let text = hosts_file(&names);
        let rows: Vec<&str> = text.lines().collect();
        assert!(rows.contains(&"10.79.0.1 server server-1"), "{text}");
        assert!(rows.contains(&"10.79.0.8 server-8"), "{text}");
        assert!(rows.contains(&"10.77.0.2 laptop-2"), "{text}");
        if has_ipv6() {
            assert!(rows.contains(&"fd79::1 server server-1") && rows.contains(&"fd77::3 host-2"), "{text}");
        }
    }

    #[test]
    fn names_are_asked_where_the_guest_can_ask() {
        assert!(resolv_conf(false).starts_with("nameserver 10.79.0.1\n"));
        let left = name_servers("search home\nnameserver 127.0.0.53\nnameserver 192.0.2.1\n");
        assert_eq!(left.as_deref(), Some("search home\nnameserver 192.0.2.1\n"));
        assert_eq!(name_servers("nameserver 127.0.0.53\n"), None);
        let text = nsswitch_conf("passwd: files\nhosts: mymachines resolve [!UNAVAIL=return] files\n");
        assert_eq!(text, "passwd: files\nhosts: files dns\n");
    }

    #[test]
    fn a_command_that_a_signal_ends_before_it_runs_has_the_code_of_that_signal() {
        let term = Some(Signal::SIGTERM);
        let cases = [
            (passed(Signal::SIGTERM), term, term),
            (passed(Signal::SIGTERM), None, None),
            (Signal::SIGTERM, None, term),
            (Signal::SIGKILL, term, None),
        ];
        for (signal, passed_on, expected) in cases {
            let kill = format!("kill -{} $$", signal as i32);
            let status = Command::new("sh").args(["-c", &kill]).status().expect("it runs");
            assert_eq!(ended_by(status, passed_on), expected, "{signal}");
        }
    }
}
