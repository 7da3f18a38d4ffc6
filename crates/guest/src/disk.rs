//! The disk on which the emulator saves a state (docs/interop/qcow2.txt).

use crate::error::{At as _, Error, Result};
use std::fs;
use std::path::Path;

/// The size of a cluster of the disk for the state, which has all of it in one.
const CLUSTER: usize = 1 << 21;
const CLUSTER_BITS: u32 = 21;

/// An empty disk that the emulator can save a state on (docs/interop/qcow2.txt, version 2).
pub(crate) fn write_disk(path: &Path) -> Result<()> {
    let cluster = CLUSTER as u64;
    let mut disk = vec![0_u8; 4 * CLUSTER];
    let mut put = |at: usize, bytes: &[u8]| disk[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, b"QFI\xfb");
    put(4, &2_u32.to_be_bytes()); // version
    put(20, &CLUSTER_BITS.to_be_bytes());
    put(24, &(1_u64 << 20).to_be_bytes()); // size
    put(36, &1_u32.to_be_bytes()); // entries of the first table
    put(40, &(3 * cluster).to_be_bytes()); // where that is
    put(48, &cluster.to_be_bytes()); // where the table of reference counts is
    put(56, &1_u32.to_be_bytes()); // its clusters
    put(CLUSTER, &(2 * cluster).to_be_bytes()); // the block of reference counts
    for cluster in 0..4 {
        put(2 * CLUSTER + 2 * cluster, &1_u16.to_be_bytes());
    }
    fs::write(path, disk).at("cannot write", path)
}

/// The cluster with the state that was saved on a disk: it begins with the stream of a migration.
pub(crate) fn state_on(disk: &Path) -> Result<Vec<u8>> {
    const BEGINNING: &[u8] = b"QEVM";
    let bytes = fs::read(disk).at("cannot read", disk)?;
    let wrong = |problem: String| Error::Kept { path: disk.to_owned(), problem };
    let size = saved_bytes(&bytes).ok_or_else(|| wrong("the emulator has saved no state on it".to_owned()))?;
    if size > CLUSTER {
        return Err(wrong(format!(
            "the machine's state has {size} bytes, and {CLUSTER} are the most that can be kept"
        )));
    }
    let state = bytes.chunks(CLUSTER).find(|cluster| cluster.starts_with(BEGINNING));
    let mut state = state.ok_or_else(|| wrong("the state on it has no beginning".to_owned()))?.to_vec();
    // The last cluster may be cut; a state that is kept is known to be whole by its size.
    state.resize(CLUSTER, 0);
    Ok(state)
}

/// The size of the first state that is saved on a disk (docs/interop/qcow2.txt, snapshots).
fn saved_bytes(disk: &[u8]) -> Option<usize> {
    let number = |at: usize, bytes: usize| -> Option<usize> {
        Some(disk.get(at..at + bytes)?.iter().fold(0, |number, byte| number << 8 | usize::from(*byte)))
    };
    let (count, table) = (number(60, 4)?, number(64, 8)?);
    if count == 0 {
        return None;
    }
    number(table + 32, 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk whose table of snapshots has one with a state of this size.
    fn disk_with(size: u32) -> Vec<u8> {
        let mut disk = vec![0; 3 * CLUSTER];
        let mut put = |at: usize, bytes: &[u8]| disk[at..at + bytes.len()].copy_from_slice(bytes);
        put(60, &1_u32.to_be_bytes());
        put(64, &(CLUSTER as u64).to_be_bytes());
        put(CLUSTER + 32, &size.to_be_bytes());
        put(2 * CLUSTER, b"QEVM state");
        disk
    }

    #[test]
    fn a_state_that_does_not_fit_one_cluster_is_an_error_in_words() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("disk");
        fs::write(&path, disk_with(1000)).expect("written");
        assert!(state_on(&path).expect("a state").starts_with(b"QEVM state"));
        fs::write(&path, disk_with(3_000_000)).expect("written");
        let error = state_on(&path).expect_err("too large").to_string();
        assert!(error.contains("has 3000000 bytes"), "{error}");
        write_disk(&path).expect("written");
        assert!(state_on(&path).expect_err("empty").to_string().contains("no state"));
    }
}
