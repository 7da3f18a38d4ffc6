//! A file of a store.
//!
//! ```text
//! "lasthop run 1\n"     the format
//! 32 bytes              SHA-256 of the key and the rest
//! the rest              JSON, compressed by Zstandard
//! ```

use super::Key;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};

const FORMAT: &[u8] = b"lasthop run 1\n";
const CHECKSUM_BYTES: usize = 32;
/// Zstandard's own default: 5 kB for a run of ten connections.
const LEVEL: i32 = 3;

pub(super) fn encode(key: &Key, value: &impl Serialize) -> Vec<u8> {
    let json = serde_json::to_vec(value).expect("results are plain data");
    let content = zstd::encode_all(&json[..], LEVEL).expect("memory takes all that is written");
    [FORMAT, &checksum(key, &content), &content].concat()
}

/// The compressed part; `None` if it is not what was written under this key.
pub(super) fn content<'a>(key: &Key, bytes: &'a [u8]) -> Option<&'a [u8]> {
    let (sum, content) = bytes.strip_prefix(FORMAT)?.split_at_checked(CHECKSUM_BYTES)?;
    (sum == checksum(key, content)).then_some(content)
}

pub(super) fn decode<T: DeserializeOwned>(key: &Key, bytes: &[u8]) -> Option<T> {
    let json = zstd::decode_all(content(key, bytes)?).ok()?;
    serde_json::from_slice(&json).ok()
}

fn checksum(key: &Key, content: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let mut hash = Sha256::new();
    hash.update(key.as_bytes());
    hash.update(content);
    hash.finalize().into()
}
