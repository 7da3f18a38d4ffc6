//! What is kept of a machine that was booted: each file with its size and a checksum, so that one that has changed is not used.
//!
//! CRC-32 sees each change of up to four adjacent bytes, and all but one in 2^32 others: faults of disks and of copies, not
//! those of somebody who means them. A SHA-256 takes three times as long.

use crate::error::{At as _, Error, Result};
use crc32fast::Hasher;
use nix::errno::Errno;
use nix::unistd::{Whence, lseek};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// Those that a run reads.
const FILES: [&str; 3] = ["archive", "memory", "state"];
const KEPT_FILE: &str = "kept.json";
/// What is read at once; a block of zeros counts as a hole.
const BLOCK: usize = 1 << 16;
static ZEROS: [u8; BLOCK] = [0; BLOCK];

/// What was kept.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Kept {
    files: BTreeMap<String, Sum>,
    /// The kernel's congestion controls that it could not load, each with the reason.
    pub(crate) left_out: BTreeMap<String, String>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Sum {
    bytes: u64,
    crc32: u32,
}

impl Kept {
    /// Writes down what the folder of a booted machine has, and that it is whole also after a power cut.
    pub(crate) fn write(folder: &Path, left_out: BTreeMap<String, String>) -> Result<Self> {
        let mut kept = Self { left_out, ..Self::default() };
        for file in FILES {
            kept.files.insert(file.to_owned(), Sum::of(&folder.join(file))?);
        }
        let path = folder.join(KEPT_FILE);
        fs::write(&path, serde_json::to_vec(&kept).expect("plain data")).at("cannot write", &path)?;
        for file in FILES.into_iter().chain([KEPT_FILE, "."]) {
            let path = folder.join(file);
            File::open(&path).and_then(|file| file.sync_all()).at("cannot write", &path)?;
        }
        Ok(kept)
    }

    /// What a folder has, if all is as it was kept. It takes some 0.1 s.
    ///
    /// # Errors
    /// The first file that is not.
    pub(crate) fn check(folder: &Path) -> Result<Self> {
        let kept = Self::read(folder)?;
        for file in FILES {
            if !kept.has_as_it_was(folder, file)? {
                let problem = "it has changed since it was kept".to_owned();
                return Err(Error::Kept { path: folder.join(file), problem });
            }
        }
        Ok(kept)
    }

    /// Whether one file of a folder is as it was kept.
    pub(crate) fn has(folder: &Path, file: &str) -> Result<bool> {
        Self::read(folder)?.has_as_it_was(folder, file)
    }

    fn has_as_it_was(&self, folder: &Path, file: &str) -> Result<bool> {
        Ok(self.files.get(file) == Some(&Sum::of(&folder.join(file))?))
    }

    fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(KEPT_FILE);
        let text = fs::read(&path).at("cannot read", &path)?;
        serde_json::from_slice(&text).map_err(|error| Error::Kept { path, problem: error.to_string() })
    }
}

impl Sum {
    /// Holes are not read, and change nothing: a copy may have others.
    fn of(path: &Path) -> Result<Self> {
        let file = File::open(path).at("cannot read", path)?;
        let bytes = file.metadata().at("cannot read", path)?.len();
        let mut sum = Hasher::new();
        let (mut block, mut at) = (vec![0; BLOCK], 0);
        while at < bytes {
            at = match lseek(&file, at as i64, Whence::SeekData) {
                Ok(data) => data as u64 / BLOCK as u64 * BLOCK as u64,
                Err(Errno::ENXIO) => break,
                Err(error) => return Err(std::io::Error::from(error)).at("cannot read", path),
            };
            let length = (bytes - at).min(BLOCK as u64) as usize;
            let block = &mut block[..length];
            file.read_exact_at(block, at).at("cannot read", path)?;
            if block != &ZEROS[..length] {
                sum.update(&at.to_le_bytes());
                sum.update(block);
            }
            at += length as u64;
        }
        Ok(Self { bytes, crc32: sum.finalize() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_byte_is_seen_and_other_holes_are_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |file: &str| folder.path().join(file);
        for file in FILES {
            fs::write(path(file), file).expect("written");
        }
        // 1 MiB with holes before and behind its only data.
        let memory = File::create(path("memory")).expect("made");
        memory.set_len(1 << 20).expect("set");
        memory.write_all_at(b"data", 300_000).expect("written");
        let left_out = BTreeMap::from([("tcp_mine".to_owned(), "no room".to_owned())]);
        Kept::write(folder.path(), left_out).expect("kept");
        let check = || Kept::check(folder.path());
        assert_eq!(check().expect("as it was").left_out["tcp_mine"], "no room");
        // The same without holes.
        let bytes = fs::read(path("memory")).expect("read");
        fs::write(path("memory"), &bytes).expect("written");
        check().expect("the same bytes");
        // The same data a block later, another byte, and one more.
        let moved = [&bytes[BLOCK..], &bytes[..BLOCK]].concat();
        let mut other = bytes.clone();
        other[1 << 19] = 1;
        for wrong in [&moved[..], &other, &[&bytes[..], b"\0"].concat(), &bytes[1..], b""] {
            fs::write(path("memory"), wrong).expect("written");
            let said = check().expect_err("changed").to_string();
            assert!(said.ends_with("memory: it has changed since it was kept"), "{said}");
        }
        fs::write(path("memory"), &bytes).expect("written");
        fs::remove_file(path("state")).expect("removed");
        assert!(check().expect_err("gone").to_string().contains("state"));
        fs::remove_file(path(KEPT_FILE)).expect("removed");
        assert!(check().expect_err("of an earlier version").to_string().contains(KEPT_FILE));
    }
}
