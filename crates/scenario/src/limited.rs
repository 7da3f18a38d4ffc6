//! Files of text with a greatest size: `/dev/zero` and its like have no end.

use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal as _, Read as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

/// The most bytes of a file that a user writes: a scenario, a study. A MiB has some 20,000 lines.
pub const MOST_TYPED_BYTES: u64 = 16 << 20;
/// The most bytes of a file that a run writes.
pub const MOST_RESULT_BYTES: u64 = 4 << 30;

/// The text of a file, a pipe or a terminal.
///
/// # Errors
/// It cannot be read, is no UTF-8, is a device, or has more than `most` bytes.
pub fn text_of(path: &Path, most: u64) -> io::Result<String> {
    let file = open(path)?;
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

/// Opens a file, a pipe or a terminal.
///
/// # Errors
/// It cannot be opened, or is a device.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    let kind = file.metadata()?.file_type();
    if (kind.is_char_device() || kind.is_block_device()) && !file.is_terminal() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "it is a device; accepted: a file or a pipe"));
    }
    Ok(file)
}

fn is_longer(path: &Path, most: u64) -> bool {
    std::fs::metadata(path).is_ok_and(|data| data.len() > most)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(error, "it is a device; accepted: a file or a pipe");
    }
}
