//! This machine's end of the window: its files, read only, with the rights of who runs this.

use crate::error::{At as _, Result};
use crate::window::{Answer, Entry, MOST_BYTES, PIPES, Question, Window};
use nix::fcntl::{FcntlArg, fcntl};
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::{FileExt as _, FileTypeExt as _, MetadataExt as _};
use std::path::Path;
use std::sync::{Arc, Weak};

/// A gate is shut while its pipe is full: of one page, the least that a pipe has.
const FULL: [u8; 4096] = [0; 4096];

/// How often the thread looks whether its guest is gone.
const LOOK_EVERY_MS: u16 = 500;

/// As long as this lives, a guest is answered.
pub(crate) struct Answers(#[expect(dead_code, reason = "it is held")] Arc<()>);

/// Makes the pipes of the bell and the gates in the folder of a run, and answers on a thread of its own.
pub(crate) fn answer_all(work: &Path, memory: &Path) -> Result<Answers> {
    let window = Window(File::options().read(true).write(true).open(memory).at("cannot open", memory)?);
    let pipes = PIPES.iter().map(|name| pipe(work, name)).collect::<io::Result<Vec<File>>>();
    let mut pipes = pipes.at("cannot make a pipe in", work)?;
    let mut gates = pipes.split_off(1);
    for gate in &mut gates {
        gate.write_all(&FULL).at("cannot fill a pipe in", work)?;
    }
    let alive = Arc::new(());
    let guest = Arc::downgrade(&alive);
    std::thread::spawn(move || -> io::Result<()> {
        while one_byte(&mut pipes[0], &guest)? {
            answer(&window)?;
            for gate in &mut gates {
                gate.read_exact(&mut FULL.clone())?;
                // The guest has passed, and it is shut behind it.
                if !one_byte(gate, &guest)? {
                    return Ok(());
                }
                gate.write_all(&FULL)?;
            }
        }
        Ok(())
    });
    Ok(Answers(alive))
}

/// Waits for a byte. Returns whether there was one before the guest was gone.
fn one_byte(pipe: &mut File, guest: &Weak<()>) -> io::Result<bool> {
    while guest.strong_count() > 0 {
        if poll(&mut [PollFd::new(pipe.as_fd(), PollFlags::POLLIN)], LOOK_EVERY_MS)? > 0 {
            return pipe.read_exact(&mut [0]).map(|()| true);
        }
    }
    Ok(false)
}

/// A pipe of the emulator's, into which its chardev `pipe` writes by `NAME.out`.
fn pipe(work: &Path, name: &str) -> io::Result<File> {
    let paths = ["in", "out"].map(|end| work.join(format!("{name}.{end}")));
    for path in &paths {
        mkfifo(path, Mode::S_IRUSR | Mode::S_IWUSR)?;
    }
    let file = File::options().read(true).write(true).open(&paths[1])?;
    fcntl(&file, FcntlArg::F_SETPIPE_SZ(FULL.len() as i32))?;
    Ok(file)
}

/// Answers the question in the window, if there is one.
fn answer(window: &Window) -> io::Result<()> {
    let Some(question) = window.get(true)? else { return Ok(()) };
    let (answer, data) = reply(&question)
        .unwrap_or_else(|error| (Answer::Refused(error.raw_os_error().unwrap_or(nix::libc::EIO)), Vec::new()));
    window.put(false, &answer, &data).or_else(|_| window.put(false, &Answer::Refused(nix::libc::EOVERFLOW), &[]))
}

fn reply(question: &Question) -> io::Result<(Answer, Vec<u8>)> {
    let text = |path: &Path| path.to_str().map(str::to_owned).ok_or(io::ErrorKind::InvalidData);
    let answer = match question {
        Question::Look(path) => {
            let found = fs::symlink_metadata(path)?;
            // Size, links and time of a folder change with what others do in it: /proc has a link for each process.
            let of_file = || (found.size(), found.nlink(), found.mtime().try_into().unwrap_or(0));
            let (size, links, modified_s) = if found.is_dir() { (4096, 1, 0) } else { of_file() };
            // Folders are open to all users of the guest: what the caller may not see, this process is refused.
            let open = if found.is_dir() { 0o555 } else { 0 };
            Answer::Entry(Entry {
                mode: found.mode() | open,
                size,
                modified_s,
                links: u32::try_from(links).unwrap_or(u32::MAX),
                user: found.uid(),
                group: found.gid(),
            })
        }
        Question::List(path) => {
            let mut names = Vec::new();
            for entry in fs::read_dir(path)? {
                let entry = entry?;
                let kind = entry.file_type()?;
                let mode = match () {
                    () if kind.is_dir() => nix::libc::S_IFDIR,
                    () if kind.is_symlink() => nix::libc::S_IFLNK,
                    () if kind.is_file() => nix::libc::S_IFREG,
                    () if kind.is_socket() => nix::libc::S_IFSOCK,
                    () => nix::libc::S_IFIFO,
                };
                names.extend(entry.file_name().to_str().map(|name| (name.to_owned(), mode)));
            }
            names.sort();
            Answer::Names(names)
        }
        Question::Target(path) => Answer::Target(text(&fs::read_link(path)?)?),
        Question::Read { path, at, bytes } => {
            // A pipe would be waited for.
            if !fs::metadata(path)?.is_file() {
                return Err(io::Error::from_raw_os_error(nix::libc::ENODEV));
            }
            let file = File::open(path)?;
            let mut data = vec![0; (*bytes).min(MOST_BYTES) as usize];
            let mut read = 0;
            while read < data.len() {
                match file.read_at(&mut data[read..], at + read as u64)? {
                    0 => break,
                    more => read += more,
                }
            }
            data.truncate(read);
            return Ok((Answer::Read(read as u32), data));
        }
    };
    Ok((answer, Vec::new()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::AT;

    #[test]
    fn a_guest_finds_files_folders_and_links_and_is_told_what_is_missing() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name).display().to_string();
        fs::write(path("text"), "0123456789").expect("written");
        std::os::unix::fs::symlink("text", path("link")).expect("made");
        let memory = folder.path().join("memory");
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&memory).expect("made");
        file.set_len(AT + (16 << 20)).expect("sparse");
        let window = Window(file);
        answer(&window).expect("nothing was asked");
        let ask = |question: Question| {
            window.put(true, &question, &[]).expect("put");
            answer(&window).expect("answered");
            window.get::<Answer>(false).expect("read").expect("an answer")
        };
        assert!(matches!(ask(Question::Look(path("text"))), Answer::Entry(Entry { size: 10, .. })));
        let folder_itself = ask(Question::Look(folder.path().display().to_string()));
        assert!(matches!(folder_itself, Answer::Entry(Entry { size: 4096, links: 1, modified_s: 0, .. })));
        assert!(matches!(ask(Question::Look(path("none"))), Answer::Refused(nix::libc::ENOENT)));
        assert!(matches!(ask(Question::Target(path("link"))), Answer::Target(to) if to == "text"));
        let read = Question::Read { path: path("link"), at: 3, bytes: 100 };
        assert!(matches!(ask(read), Answer::Read(7)));
        assert_eq!(window.data(7).expect("data"), b"3456789");
        let Answer::Names(names) = ask(Question::List(folder.path().display().to_string())) else { panic!("no names") };
        assert_eq!(names.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["link", "memory", "text"]);
    }
}
