//! Debian's packages, fetched by an apt with lists of its own, and unpacked: nothing is installed.

use crate::architecture::Architecture;
use crate::error::{At as _, Error, Result};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// The suite of the C library for a program.
pub(crate) const SUITE_OF_PROGRAMS: &str = "trixie";

/// How often a program is asked whether it is to stop.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(50);

/// As `dpkg -x` does, whose tar would go on without it.
const UNPACK: &str = r#"set -o pipefail; dpkg-deb --fsys-tarfile "$0" | setpriv --pdeathsig KILL tar -x -f - -C "$1""#;

/// An apt in a folder of work.
pub(crate) struct Apt<'a> {
    work: PathBuf,
    stop: &'a AtomicBool,
}

impl<'a> Apt<'a> {
    /// Where packages are unpacked, in the folder of work.
    pub(crate) const UNPACKED: &'static str = "unpacked";

    /// With the newest lists of a suite and an architecture. `stop` ends its programs.
    pub(crate) fn of(suite: &str, architecture: Architecture, work: &Path, stop: &'a AtomicBool) -> Result<Self> {
        let make = |path: &Path| fs::create_dir_all(path).at("cannot make", path);
        let write = |name: &str, text: String| {
            let path = work.join(name);
            fs::write(&path, text).at("cannot write", &path)
        };
        for folder in ["lists/partial", "archives/partial", Self::UNPACKED] {
            make(&work.join(folder))?;
        }
        let here = work.display();
        write("status", String::new())?;
        write(
            "sources.list",
            format!(
                "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian {suite} main\n"
            ),
        )?;
        write(
            "conf",
            format!(
                "Dir::Etc::sourcelist \"{here}/sources.list\";\nDir::Etc::sourceparts \"-\";\nDir::State::Lists \"{here}/lists\";\n\
                 Dir::State::status \"{here}/status\";\nDir::Cache::Archives \"{here}/archives\";\nDir::Cache::pkgcache \"\";\n\
                 Dir::Cache::srcpkgcache \"\";\nAPT::Architecture \"{architecture}\";\nAPT::Architectures \"{architecture}\";\n\
                 APT::Sandbox::User \"\";\nAPT::Update::Error-Mode \"any\";\n"
            ),
        )?;
        let apt = Self { work: work.to_owned(), stop };
        apt.run("apt-get", &["update", "-qq"])?;
        Ok(apt)
    }

    /// The packages that a package depends on, of those whose names begin so.
    pub(crate) fn depends(&self, of: &str, on: &[&str]) -> Result<Vec<String>> {
        let said = self.run("apt-cache", &["depends", of])?;
        let names = said.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
        Ok(names.filter(|name| on.iter().any(|begin| name.starts_with(begin))).map(str::to_owned).collect())
    }

    /// Fetches packages, and unpacks them into [`UNPACKED`](Self::UNPACKED).
    pub(crate) fn unpack(&self, packages: &[String]) -> Result<()> {
        for package in packages {
            self.run("apt-get", &["download", "-qq", package])?;
        }
        for entry in fs::read_dir(&self.work).at("cannot read", &self.work)? {
            let path = entry.at("cannot read", &self.work)?.path();
            if path.extension().is_some_and(|extension| extension == "deb") {
                let mut command = Command::new("bash");
                command.args(["-c", UNPACK]).arg(&path).arg(self.work.join(Self::UNPACKED));
                run_until(&mut command, "dpkg", self.stop)?;
            }
        }
        Ok(())
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&self.work).env("APT_CONFIG", self.work.join("conf")).env("LC_ALL", "C");
        run_until(&mut command, "apt", self.stop).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// What a program prints.
pub(crate) fn run(command: &mut Command, package: &'static str) -> Result<Vec<u8>> {
    static NEVER: AtomicBool = AtomicBool::new(false);
    run_until(command, package, &NEVER)
}

/// The same, for as long as `stop` does not end it. It ends with the thread that started it too.
pub(crate) fn run_until(command: &mut Command, package: &'static str, stop: &AtomicBool) -> Result<Vec<u8>> {
    let program = command.get_program().to_string_lossy().into_owned();
    let failed = |said: String| Error::Failed { what: program.clone(), said };
    if !is_here(&program) {
        return Err(Error::Program { program, package });
    }
    let mut tied = Command::new("setpriv");
    tied.args(["--pdeathsig", "KILL"]).arg(&program).args(command.get_args());
    for (name, value) in command.get_envs() {
        value.map(|value| tied.env(name, value));
    }
    command.get_current_dir().map(|folder| tied.current_dir(folder));
    // A Ctrl-C at the terminal is lasthop's.
    tied.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = tied.spawn().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Error::Program { program: "setpriv".to_owned(), package: "util-linux" },
        _ => failed(error.to_string()),
    })?;
    let group = Pid::from_raw(child.id() as i32);
    let (send, ended) = channel();
    std::thread::spawn(move || send.send(child.wait_with_output()));
    let output = loop {
        match ended.recv_timeout(LOOK_EVERY) {
            Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) => {
                let _ = killpg(group, Signal::SIGKILL);
            }
            Err(RecvTimeoutError::Timeout) => {}
            outcome => break outcome.expect("it sends before it ends").map_err(|error| failed(error.to_string()))?,
        }
    };
    if output.status.success() {
        return Ok(output.stdout);
    }
    let arguments: Vec<_> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(Error::Failed { what: format!("{program} {}", arguments.join(" ")), said })
}

/// Whether a program is in the PATH, or at its path.
fn is_here(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    program.contains('/') || std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_program_says_what_it_prints_or_why_it_failed_and_ends_when_it_is_to_stop() {
        assert_eq!(run(Command::new("echo").arg("words"), "coreutils").expect("it runs"), b"words\n");
        let error = run(Command::new("ls").arg("/nonexistent").env("LC_ALL", "C"), "coreutils").expect_err("none");
        assert!(error.to_string().contains("ls /nonexistent failed: ls: cannot access"), "{error}");
        let error = run(&mut Command::new("no-such-program"), "its-package").expect_err("none").to_string();
        assert_eq!(error, "no-such-program is not here (Debian: apt install its-package)");
        // The shell's own child ends too.
        let since = Instant::now();
        let ended = run_until(Command::new("sh").args(["-c", "sleep 600; true"]), "dash", &AtomicBool::new(true));
        assert!(ended.is_err() && since.elapsed() < Duration::from_secs(300));
    }
}
