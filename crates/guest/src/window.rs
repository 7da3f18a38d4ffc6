//! A window of the guest's memory through which it asks this machine something, and waits for no time.
//!
//! ```text
//!  guest: writes its question, rings ──► this machine: reads it, writes the answer, opens gate 1, shuts it, opens gate 2, shuts it
//!         waits at gate 1, at gate 2 ◄──
//! ```
//!
//! The bell and the gates are ports of the emulator whose bytes go into pipes (isa-debugcon). A gate's pipe is full while it is shut: the
//! emulator then stays within the instruction until there is room. The guest's clock counts instructions and stands still
//! meanwhile, so that no answer comes at a moment that this machine's clock decides. With one gate alone the guest could be there again before it is shut.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

/// The ports: the bell and both gates, one behind the other.
pub(crate) const BELL: u64 = 0x2a0;
/// Their pipes.
pub(crate) const PIPES: [&str; 3] = ["bell", "gate1", "gate2"];

/// Where the window is in the guest's memory; its kernel leaves that part alone (`memmap=`).
pub(crate) const AT: u64 = 0x2000_0000;
/// The argument of the kernel that says so: the size is that of words and data.
pub(crate) const RESERVED: &str = "memmap=16M$0x20000000";
/// First whether this is a question, then the length of its JSON; then the JSON, and at this place the bytes of a file.
const DATA: u64 = 8 << 20;
const WORDS: u64 = 8;
/// The most bytes of a file in one answer: the guest's kernel does nothing else while it copies them, a nanosecond a byte.
pub(crate) const MOST_BYTES: u32 = 1 << 16;

/// What the guest asks of this machine's files.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Question {
    /// What there is at a path.
    Look(String),
    /// The names in a folder.
    List(String),
    /// Where a symbolic link leads.
    Target(String),
    /// A part of a file.
    Read { path: String, at: u64, bytes: u32 },
}

/// The answers, in the order of the questions, or an error's number.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    Entry(Entry),
    /// Each with the kind in its mode.
    Names(Vec<(String, u32)>),
    Target(String),
    /// So many bytes are in the window.
    Read(u32),
    Refused(i32),
}

/// As of stat(2).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) mode: u32,
    pub(crate) size: u64,
    pub(crate) modified_s: u64,
    pub(crate) links: u32,
    pub(crate) user: u32,
    pub(crate) group: u32,
}

/// One end of the window.
pub(crate) struct Window(pub(crate) File);

impl Window {
    /// Puts a question or an answer into it.
    pub(crate) fn put(&self, is_question: bool, what: &impl Serialize, data: &[u8]) -> io::Result<()> {
        let json = serde_json::to_vec(what)?;
        let length = u32::try_from(json.len()).ok().filter(|length| u64::from(*length) < DATA - WORDS);
        let length = length.ok_or_else(|| io::Error::other("a folder has too many names"))?;
        self.0.write_all_at(data, AT + DATA)?;
        self.0.write_all_at(&json, AT + WORDS)?;
        self.0.write_all_at(&length.to_le_bytes(), AT + 4)?;
        self.0.write_all_at(&u32::from(is_question).to_le_bytes(), AT)
    }

    /// The question or answer in it; `None` if it is the other.
    pub(crate) fn get<T: DeserializeOwned>(&self, is_question: bool) -> io::Result<Option<T>> {
        let word = |at: u64| {
            let mut word = [0; 4];
            self.0.read_exact_at(&mut word, AT + at).map(|()| u32::from_le_bytes(word))
        };
        if word(0)? != u32::from(is_question) {
            return Ok(None);
        }
        let mut json = vec![0; word(4)? as usize];
        self.0.read_exact_at(&mut json, AT + WORDS)?;
        Ok(Some(serde_json::from_slice(&json)?))
    }

    /// The bytes of an answer.
    pub(crate) fn data(&self, bytes: u32) -> io::Result<Vec<u8>> {
        let mut data = vec![0; bytes as usize];
        self.0.read_exact_at(&mut data, AT + DATA).map(|()| data)
    }
}
