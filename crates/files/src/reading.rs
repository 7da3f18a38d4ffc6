//! One rule for the files that a user names and lasthop reads: a regular file, a pipe into which somebody writes, or a
//! terminal. Nothing waits for a writer to come, and nothing reads what has no end.

#[cfg(unix)]
use nix::errno::Errno;
#[cfg(unix)]
use nix::fcntl::{FcntlArg, OFlag, SpliceFFlags, fcntl, tee};
use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::path::Path;

/// The most bytes of a file that a user writes: a scenario, a study. A MiB has some 20,000 lines.
pub const MOST_TYPED_BYTES: u64 = 16 << 20;
/// The most bytes of a file that a run writes.
pub const MOST_RESULT_BYTES: u64 = 4 << 30;

/// The text of a file that is opened as by [`open_to_read`].
///
/// # Errors
/// It cannot be opened or read, is no UTF-8, or has more than `most` bytes.
pub fn text_of(path: &Path, most: u64) -> io::Result<String> {
    let file = open_to_read(path)?;
    let mut text = String::new();
    // One more than allowed tells that there are more; it may be a part of a letter.
    let read = file.take(most + 1).read_to_string(&mut text);
    if text.len() as u64 > most
        || read.as_ref().is_err_and(|error| error.kind() == ErrorKind::InvalidData && is_longer(path, most))
    {
        let size = if most >= 1 << 20 { format!("{} MiB", most >> 20) } else { format!("{most} bytes") };
        return Err(io::Error::new(ErrorKind::FileTooLarge, format!("it has more than {size}, the most that is read")));
    }
    read.map(|_| text)
}

/// Opens a file, a pipe into which somebody writes, or a terminal.
///
/// # Errors
/// It cannot be opened, is a device (`/dev/zero` has no end), or is a pipe that nobody writes into, which would be waited for
/// without end.
#[cfg(unix)]
pub fn open_to_read(path: &Path) -> io::Result<File> {
    use std::io::IsTerminal as _;
    use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
    // To open a pipe otherwise would wait for a writer.
    let file = File::options().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path)?;
    let of = file.metadata()?.file_type();
    let refused = |what| {
        let accepted = "a file, or a pipe that somebody writes into";
        Err(io::Error::new(ErrorKind::InvalidInput, format!("it is {what}; accepted: {accepted}")))
    };
    if (of.is_char_device() || of.is_block_device()) && !file.is_terminal() {
        return refused("a device");
    }
    if of.is_fifo() && !is_written(&file)? {
        return refused("a pipe that nobody writes into");
    }
    let flags = OFlag::from_bits_retain(fcntl(&file, FcntlArg::F_GETFL)?);
    fcntl(&file, FcntlArg::F_SETFL(flags.difference(OFlag::O_NONBLOCK)))?;
    Ok(file)
}

/// Opens a file, where there are files.
///
/// # Errors
/// It cannot be opened: always, in a browser.
#[cfg(not(unix))]
pub fn open_to_read(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Whether a pipe has data or a writer. tee(2) takes nothing out of it, and returns 0 where no more can come.
#[cfg(unix)]
fn is_written(pipe: &File) -> io::Result<bool> {
    let (_reader, writer) = io::pipe()?;
    match tee(pipe, &writer, 1, SpliceFFlags::SPLICE_F_NONBLOCK) {
        Ok(copied) => Ok(copied > 0),
        Err(Errno::EAGAIN) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

fn is_longer(path: &Path, most: u64) -> bool {
    std::fs::metadata(path).is_ok_and(|data| data.len() > most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn a_file_has_a_greatest_size_and_a_device_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a");
        std::fs::write(&path, "four").expect("written");
        assert_eq!(text_of(&path, 4).expect("it fits"), "four");
        let error = text_of(&path, 3).expect_err("too long").to_string();
        assert_eq!(error, "it has more than 3 bytes, the most that is read");
        std::fs::write(&path, "aaaö").expect("written");
        assert!(text_of(&path, 3).expect_err("too long").to_string().contains("more than 3 bytes"));
        let error = text_of(Path::new("/dev/zero"), 3).expect_err("endless").to_string();
        assert_eq!(error, "it is a device; accepted: a file, or a pipe that somebody writes into");
    }

    #[test]
    fn a_pipe_is_read_to_its_end_and_refused_at_once_if_nobody_writes_into_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("pipe");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        let refused = || {
            let error = text_of(&path, 9).expect_err("nobody writes").to_string();
            assert_eq!(
                error,
                "it is a pipe that nobody writes into; accepted: a file, or a pipe that somebody writes into"
            );
        };
        refused();
        // Opened for both, a pipe waits for nobody (fifo(7)).
        let open = || File::options().read(true).write(true).open(&path).expect("a pipe");
        let writer = open();
        // It has a writer, and no data yet.
        let mut reader = open_to_read(&path).expect("a writer");
        (&writer).write_all(b"four").expect("written");
        drop(writer);
        let mut text = String::new();
        reader.read_to_string(&mut text).expect("read");
        assert_eq!(text, "four");
        drop(reader);
        refused();
    }
}
