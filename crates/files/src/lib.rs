//! One rule for the files that a user names and lasthop writes, and one for those that it reads (`reading`).
//!
//! What is written (Unix alone: a browser has no files):
//!
//! 1. *Regular files.* No symbolic link at the end of the path is followed, and no pipe, device or folder is written to.
//!    (A record may go into a pipe: [`append`].)
//! 2. *Nothing foreign is replaced*: only what is empty, or of the kind that is written ([`Kind`]).
//! 3. *Whole or not at all.* The file grows without a name, in its folder, and takes its place when it is whole
//!    ([`Whole`]). What was there stays until then, and a killed process leaves nothing.
//!
//! *What it leaves out*: fsync; folders of results, which have a list of their files (`out_folder.rs` of the command);
//! folders of lasthop's own, such as the store of runs.
#![forbid(unsafe_code)]

mod reading;
#[cfg(unix)]
mod writing;

pub use reading::{MOST_RESULT_BYTES, MOST_TYPED_BYTES, open_to_read, text_of};
#[cfg(unix)]
pub use writing::{Kind, Whole, append, may_append, may_write, write};
