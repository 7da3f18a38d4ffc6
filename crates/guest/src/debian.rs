//! Debian's packages, fetched by an apt with lists of its own, and unpacked: nothing is installed.

use crate::architecture::Architecture;
use crate::error::{At as _, Error, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The suite of the C library for a program.
pub(crate) const SUITE_OF_PROGRAMS: &str = "trixie";

/// An apt in a folder of work.
pub(crate) struct Apt {
    work: PathBuf,
}

impl Apt {
    /// Where packages are unpacked, in the folder of work.
    pub(crate) const UNPACKED: &str = "unpacked";

    /// With the newest lists of a suite and an architecture.
    pub(crate) fn of(suite: &str, architecture: Architecture, work: &Path) -> Result<Self> {
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
        let apt = Self { work: work.to_owned() };
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
                run(Command::new("dpkg").arg("-x").arg(&path).arg(self.work.join(Self::UNPACKED)), "dpkg")?;
            }
        }
        Ok(())
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&self.work).env("APT_CONFIG", self.work.join("conf")).env("LC_ALL", "C");
        run(&mut command, "apt").map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// What a program prints.
pub(crate) fn run(command: &mut Command, package: &'static str) -> Result<Vec<u8>> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = match command.output() {
        Ok(output) => output,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(Error::Failed {
                what: program,
                said: format!("it is not here (Debian: apt install {package}; `make setup` does)"),
            });
        }
        Err(error) => return Err(Error::Failed { what: program, said: error.to_string() }),
    };
    if output.status.success() {
        return Ok(output.stdout);
    }
    let arguments: Vec<_> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(Error::Failed { what: format!("{program} {}", arguments.join(" ")), said })
}
