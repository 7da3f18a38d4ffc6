//! The guest's first file system: this program with its libraries, and the kernel's modules. The same files give the
//! same bytes.

use crate::architecture::Architecture;
use crate::debian::run;
use crate::error::{At as _, Error, Result};
use crate::kernels::{Kernel, RADIOS, walk};
use crate::program::Program;
use crate::radios::{self, PROGRAMS};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where this program stands in the guest.
pub(crate) const PROGRAM: &str = "/lasthop";
/// The lists of modules in the guest, a name a line.
pub(crate) const OF_JOBS: &str = "/modules/of-jobs";
pub(crate) const OF_ARRIVAL: &str = "/modules/of-arrival";
pub(crate) const OF_LEAVING: &str = "/modules/of-leaving";
pub(crate) const OF_RADIOS: &str = "/modules/of-radios";
pub(crate) const OF_PROGRAMS: &str = "/modules/of-programs";

const FOLDERS: [&str; 8] = ["dev", "etc", "host", "modules", "out", "proc", "sys", "run"];
const FILE: u32 = 0o100_755;
const FOLDER: u32 = 0o040_755;
const DEVICE: u32 = 0o020_600;

/// The archive that the kernel unpacks. `beside`: the programs beside simulated radios, for a guest that can have these.
pub(crate) fn archive(program: &Program, kernel: &Kernel, beside: Option<&[PathBuf]>) -> Result<Vec<u8>> {
    let mut archive = Archive { architecture: kernel.architecture, ..Archive::default() };
    FOLDERS.iter().for_each(|folder| archive.folder(folder));
    archive.folder("tmp");
    // The kernel opens it for the first process.
    archive.entry("dev/console", DEVICE, (5, 1), &[]);
    archive.file("etc/passwd", b"root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n");
    match &program.root {
        None => archive.program(&program.file, PROGRAM)?,
        Some(root) => {
            archive.file(&PROGRAM[1..], &fs::read(&program.file).at("cannot read", &program.file)?);
            archive.below(root)?;
        }
    }
    let modules = &kernel.modules;
    if let Some(programs) = beside {
        let of_radios = radios::module(kernel)?;
        archive.folder(&PROGRAMS[1..]);
        for program in programs {
            let name = program.file_name().unwrap_or_default().to_string_lossy();
            archive.program(program, &format!("{PROGRAMS}/{name}"))?;
        }
        archive.file(&OF_RADIOS[1..], modules.of_radios.join("\n").as_bytes());
        for name in &modules.of_radios {
            let path = kernel.module(name);
            let bytes = if name == RADIOS { of_radios.clone() } else { fs::read(&path).at("cannot read", &path)? };
            archive.file(&format!("modules/{name}.ko"), &bytes);
        }
    }
    for (list, names) in [
        (OF_JOBS, &modules.of_jobs),
        (OF_ARRIVAL, &modules.of_arrival),
        (OF_LEAVING, &modules.of_leaving),
        (OF_PROGRAMS, &modules.of_programs),
    ] {
        archive.file(&list[1..], lines(names.iter()).as_bytes());
        for name in names {
            let path = kernel.module(name);
            archive.file(&format!("modules/{name}.ko"), &fs::read(&path).at("cannot read", &path)?);
        }
    }
    Ok(archive.end())
}

fn lines<'a>(names: impl Iterator<Item = &'a String>) -> String {
    names.map(String::as_str).collect::<Vec<_>>().join("\n")
}

/// The dynamic loader and the libraries of a program, as the loader finds them.
fn libraries(loader: &str, program: &Path) -> Result<Vec<PathBuf>> {
    let listed = run(Command::new(loader).arg("--list").arg(program), "libc6")?;
    let listed = String::from_utf8_lossy(&listed).into_owned();
    let paths = listed.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from);
    let all: BTreeSet<PathBuf> = paths.chain([PathBuf::from(loader)]).collect();
    Ok(all.into_iter().collect())
}

/// What the kernel and the loader read of a program.
pub(crate) struct Elf {
    /// The dynamic loader; a static program has none.
    pub(crate) loader: Option<String>,
    /// Where what is loaded ends in the file.
    end: usize,
}

impl Elf {
    /// Reads the program headers of a 64-bit file (elf(5)).
    pub(crate) fn of(file: &[u8], architecture: Architecture) -> Option<Self> {
        const LOAD: u64 = 1;
        const INTERPRETER: u64 = 3;
        let number = |at: usize, bytes: usize| -> Option<u64> {
            file.get(at..at + bytes).map(|part| part.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte)))
        };
        if file.get(..5)? != b"\x7fELF\x02" || number(18, 2)? != architecture.elf_machine() {
            return None;
        }
        let usize_at = |at, bytes| number(at, bytes).and_then(|number| usize::try_from(number).ok());
        let (table, size, count) = (usize_at(32, 8)?, usize_at(54, 2)?, usize_at(56, 2)?);
        let mut elf = Self { loader: None, end: table + size * count };
        for at in (0..count).map(|header| table + header * size) {
            let (begin, length) = (usize_at(at + 8, 8)?, usize_at(at + 32, 8)?);
            match number(at, 4)? {
                LOAD => elf.end = elf.end.max(begin + length),
                INTERPRETER => {
                    let text = file.get(begin..begin + length)?.strip_suffix(b"\0")?;
                    elf.loader = Some(String::from_utf8(text.to_vec()).ok()?);
                }
                _ => {}
            }
        }
        (elf.end <= file.len()).then_some(elf)
    }
}

/// The program without what only debuggers read, most of it.
pub(crate) fn without_sections(whole: &[u8], elf: &Elf) -> Vec<u8> {
    let mut program = whole[..elf.end].to_vec();
    program[40..48].fill(0); // where the table of sections is
    program[60..64].fill(0); // how many, and which has their names
    program
}

/// A cpio archive (Documentation/driver-api/early-userspace/buffer-format.rst), without times and owners.
#[derive(Default)]
struct Archive {
    /// Of its programs.
    architecture: Architecture,
    bytes: Vec<u8>,
    entries: u32,
    folders: BTreeSet<PathBuf>,
    libraries: BTreeSet<PathBuf>,
}

impl Archive {
    /// A program, with those of its libraries that are not there yet.
    fn program(&mut self, program: &Path, to: &str) -> Result<()> {
        let whole = fs::read(program).at("cannot read", program)?;
        let elf = Elf::of(&whole, self.architecture).ok_or_else(|| Error::Kept {
            path: program.to_owned(),
            problem: format!("it is no program for Linux on {}, as a guest needs", self.architecture),
        })?;
        self.file(&to[1..], &without_sections(&whole, &elf));
        let Some(loader) = &elf.loader else { return Ok(()) };
        for library in libraries(loader, program)? {
            if self.libraries.insert(library.clone()) {
                self.parents(&library);
                let bytes = fs::read(&library).at("cannot read", &library)?;
                self.file(&library.to_string_lossy()[1..], &bytes);
            }
        }
        Ok(())
    }

    /// The files below a folder, as it is the root.
    fn below(&mut self, root: &Path) -> Result<()> {
        let mut files = Vec::new();
        walk(root, &mut |path| files.push(path.to_owned()))?;
        for file in files {
            let there = Path::new("/").join(file.strip_prefix(root).expect("below it"));
            self.parents(&there);
            self.file(&there.to_string_lossy()[1..], &fs::read(&file).at("cannot read", &file)?);
        }
        Ok(())
    }

    fn folder(&mut self, name: &str) {
        self.entry(name, FOLDER, (0, 0), &[]);
    }

    fn file(&mut self, name: &str, content: &[u8]) {
        self.entry(name, FILE, (0, 0), content);
    }

    /// The folders above an absolute path.
    fn parents(&mut self, path: &Path) {
        let above: Vec<&Path> = path.ancestors().skip(1).filter(|folder| folder.parent().is_some()).collect();
        for folder in above.into_iter().rev() {
            if self.folders.insert(folder.to_owned()) {
                self.folder(&folder.to_string_lossy()[1..]);
            }
        }
    }

    fn entry(&mut self, name: &str, mode: u32, device: (u32, u32), content: &[u8]) {
        self.entries += 1;
        let size = u32::try_from(content.len()).expect("programs and modules have less than 4 GiB");
        let length = u32::try_from(name.len() + 1).expect("names are short");
        let fields = [self.entries, mode, 0, 0, 1, 0, size, 0, 0, device.0, device.1, length, 0];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.align();
        self.bytes.extend_from_slice(content);
        self.align();
    }

    fn align(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn end(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, (0, 0), &[]);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_test_is_a_program_and_runs_without_its_sections() {
        let this = std::env::current_exe().expect("known");
        let whole = fs::read(&this).expect("readable");
        let elf = Elf::of(&whole, Architecture::here().expect("known")).expect("a program");
        let cut = without_sections(&whole, &elf);
        assert!(cut.len() < whole.len());
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("cut");
        fs::write(&path, &cut).expect("written");
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&path, executable).expect("set");
        let listed = Command::new(&path).arg("--list").output().expect("runs");
        assert!(String::from_utf8_lossy(&listed.stdout).contains("this_test_is_a_program"));
        let libraries = libraries(&elf.loader.expect("dynamic"), &path).expect("listed");
        assert!(libraries.iter().any(|library| library.to_string_lossy().contains("libc.so")));
    }

    #[test]
    fn what_is_no_program_of_this_processor_is_refused() {
        for bytes in [&b"#!/bin/sh"[..], b"\x7fELF\x01", &[]] {
            assert!(Elf::of(bytes, Architecture::Amd64).is_none());
        }
    }
}
