//! Asks agents, and watches them: each has a Unix socket in [`FOLDER`] that sends lines of JSON.
//!
//! The first line comes at once, with the status and no connections; then one with all of it at each tick.

use crate::Status;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, socket};
use std::fs;
use std::io::{self, BufRead as _, BufReader, ErrorKind, Read as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The folder of the agents' sockets. Root makes it, and only root may write into it.
pub const FOLDER: &str = "/run/lasthop";
/// What the sockets' names begin with; the interface and `.sock` follow.
pub const PREFIX: &str = "watch-";

/// The most bytes of a status.
const STATUS_BYTES_MOST: u64 = 64 * 1024;
/// A stopped agent (SIGSTOP) does not answer.
const ANSWERED_WITHIN: Duration = Duration::from_secs(2);

/// Why there is no status.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The folder cannot be read.
    #[error("cannot look for agents in {0}")]
    Folder(PathBuf, #[source] io::Error),
    /// An agent does not answer.
    #[error("the agent at {0} does not answer")]
    Silent(PathBuf, #[source] io::Error),
    /// This user may not ask.
    #[error("the agent at {0} only answers root and its `socket_group`")]
    MayNot(PathBuf, #[source] io::Error),
}

/// The agents' sockets in this folder, in alphabetical order; none if there is no folder.
///
/// # Errors
/// If the folder cannot be read.
pub fn sockets(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let is_ours = |name: &str| name.starts_with(PREFIX) && name.ends_with(".sock");
    let named = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut sockets: Vec<_> =
        named.filter(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(is_ours)).collect();
    sockets.sort();
    Ok(sockets)
}

/// Connects without waiting. A full queue (of a stopped agent) is `WouldBlock`; a killed agent's socket refuses.
///
/// # Errors
/// As connect(2).
pub fn connect(path: &Path) -> io::Result<UnixStream> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    nix::sys::socket::connect(socket.as_raw_fd(), &UnixAddr::new(path)?)?;
    Ok(socket.into())
}

/// Each agent's status by its socket, or the error. Sockets of killed agents are skipped.
///
/// # Errors
/// If the folder cannot be read.
pub fn ask_agents(folder: &Path) -> Result<Vec<Result<Status, AskError>>, AskError> {
    let sockets = sockets(folder).map_err(|error| AskError::Folder(folder.to_owned(), error))?;
    let ask = |path: PathBuf| match status(&path) {
        Ok(status) => Some(Ok(status)),
        Err(error) if [ErrorKind::ConnectionRefused, ErrorKind::NotFound].contains(&error.kind()) => None,
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Some(Err(AskError::MayNot(path, error))),
        Err(error) => Some(Err(AskError::Silent(path, error))),
    };
    Ok(sockets.into_iter().filter_map(ask).collect())
}

/// The first line of the agent with this socket.
fn status(path: &Path) -> io::Result<Status> {
    let stream = connect(path)?;
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(ANSWERED_WITHIN))?;
    let mut line = String::new();
    BufReader::new(stream.take(STATUS_BYTES_MOST)).read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}

/// Watches an agent: that of the interface or, without one, the first in alphabetical order. Its lines can be read from
/// the stream.
///
/// # Errors
/// No agent serves such a socket in this folder, or it cannot be opened.
pub fn watch(folder: &Path, interface: Option<&str>) -> io::Result<(PathBuf, UnixStream)> {
    let is_it = |path: &PathBuf| {
        interface.is_none_or(|interface| path.file_stem().is_some_and(|stem| *stem == *format!("{PREFIX}{interface}")))
    };
    let mut trouble = None;
    for path in sockets(folder)?.into_iter().filter(is_it) {
        match connect(&path) {
            Ok(stream) => {
                stream.set_nonblocking(false)?;
                return Ok((path, stream));
            }
            Err(error) => trouble = Some(io::Error::new(error.kind(), format!("{}: {error}", path.display()))),
        }
    }
    Err(trouble.unwrap_or_else(|| {
        let which = interface.map_or(String::new(), |interface| format!(" of {interface}"));
        io::Error::new(ErrorKind::NotFound, format!("no agent{which} serves a socket in {}", folder.display()))
    }))
}
