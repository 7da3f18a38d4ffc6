//! The agent's Unix socket in `/run/lasthop`, for `lasthop agent status`, `lasthop top` and other programs that watch:
//! its status at once, then its state at each tick, as JSON lines (docs/guide/agent-log.md).
//!
//! A reader of root, or of the agent's own user, may write a line: an order for `lasthop trial`.
//!
//! The agent never waits for a reader. Each has room for one line; while that is not taken, later lines are left out, and
//! `seq` shows the gap. An orderly stop removes the socket. The socket of a killed agent refuses connections, and the
//! interface's next agent replaces it.

use crate::error::{Doing, Error, Result};
use crate::only_one::make_folder;
use lasthop_status::{PREFIX, connect, sockets};
use nix::fcntl::{Flock, FlockArg};
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::geteuid;
use std::fs::{self, File};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// The most readers that stay; later ones get their first line and no more.
const READERS_MOST: usize = 8;
/// The most bytes of a line; a longer one is left out. So all readers together cost 8 MiB at most.
const LINE_BYTES_MOST: usize = 1 << 20;
/// The most bytes of an order.
const ORDER_BYTES_MOST: usize = 1024;
/// A reader that takes nothing for so many ticks is disconnected.
const STALLED_TICKS: u32 = 120;

/// The agent's end.
#[derive(Debug)]
pub(crate) struct Socket {
    named: Named,
    interface: String,
    readers: Vec<Reader>,
    /// The number of the next one.
    next: u64,
}

#[derive(Debug)]
struct Reader {
    number: u64,
    stream: UnixStream,
    /// What it has said; `None`: it may say nothing.
    said: Option<Vec<u8>>,
    /// What it has not taken of its last line.
    rest: Vec<u8>,
    stalled: u32,
}

/// A listening socket with a name, which goes with it.
#[derive(Debug)]
struct Named {
    listener: UnixListener,
    path: PathBuf,
}

/// The number of this group, for [`Named::open`].
pub(crate) fn group_id(name: &str) -> Result<u32> {
    let group = nix::unistd::Group::from_name(name).doing(format_args!("cannot look for the group {name}"))?;
    let unknown = || format!("socket_group: there is no group {name} on this machine (see `getent group`)");
    group.map(|group| group.gid.as_raw()).ok_or_else(|| Error::Refused(unknown()))
}

impl Named {
    /// `watch-IF.sock` in this folder, which is made if absent. If a living agent has that name (another network
    /// namespace, or an observer), `watch-IF-PID.sock`. Only root and, if there is one, this group may connect.
    fn open(folder: &Path, interface: &str, group: Option<u32>) -> Result<Self> {
        make_folder(folder)?;
        // Only the lock's holder may remove stale sockets. Nobody waits for the lock.
        if let Ok(lock) = File::open(folder).map(|folder| Flock::lock(folder, FlockArg::LockExclusiveNonblock))
            && lock.is_ok()
        {
            remove_stale(folder);
        }
        let binding = || format!("cannot make a socket in {}", folder.display());
        // It gets its name once it listens. So a socket of that name refuses connections only if its agent is gone.
        let process = std::process::id();
        let unnamed = folder.join(format!(".{PREFIX}{interface}-{process}"));
        let _ = fs::remove_file(&unnamed);
        let listener = UnixListener::bind(&unnamed).doing(binding())?;
        let names = [format!("{PREFIX}{interface}.sock"), format!("{PREFIX}{interface}-{process}.sock")];
        let mode = if group.is_some() { 0o660 } else { 0o600 };
        let mut named = Err(ErrorKind::AlreadyExists.into());
        for path in names.map(|name| folder.join(name)) {
            named = group
                .map_or(Ok(()), |group| chown(&unnamed, None, Some(group)))
                .and_then(|()| fs::set_permissions(&unnamed, fs::Permissions::from_mode(mode)))
                .and_then(|()| fs::hard_link(&unnamed, &path))
                .map(|()| path);
            if !named.as_ref().is_err_and(|error| error.kind() == ErrorKind::AlreadyExists) {
                break;
            }
        }
        let _ = fs::remove_file(&unnamed);
        let socket = Self { listener, path: named.doing(binding())? };
        socket.listener.set_nonblocking(true).doing(binding())?;
        Ok(socket)
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Whether the other end is root's, or the agent's own user's: its `socket_group` may only watch.
fn may_order(stream: &UnixStream) -> bool {
    getsockopt(stream, PeerCredentials).is_ok_and(|peer| peer.uid() == 0 || peer.uid() == geteuid().as_raw())
}

/// Removes the sockets of killed agents, which refuse connections.
fn remove_stale(folder: &Path) {
    for path in sockets(folder).unwrap_or_default() {
        if connect(&path).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused) {
            let _ = fs::remove_file(&path);
        }
    }
}

impl Socket {
    pub(crate) fn open(folder: &Path, interface: &str, group: Option<u32>) -> Result<Self> {
        let named = Named::open(folder, interface, group)?;
        Ok(Self { named, interface: interface.to_owned(), readers: Vec::new(), next: 0 })
    }

    pub(crate) fn is_for(&self, interface: &str) -> bool {
        self.interface == interface
    }

    /// The descriptor to wait for: somebody has come.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.named.listener.as_fd()
    }

    /// Takes those in who have come, and hands each this line.
    pub(crate) fn greet(&mut self, line: impl Fn() -> Vec<u8>) {
        for _ in 0..READERS_MOST {
            let Ok((stream, _)) = self.named.listener.accept() else { return };
            self.next += 1;
            let said = may_order(&stream).then(Vec::new);
            let mut reader = Reader { number: self.next, stream, said, rest: Vec::new(), stalled: 0 };
            let stays = reader.stream.set_nonblocking(true).is_ok() && reader.write(&line());
            // One that has left frees its place, even if it had not taken its last line.
            self.readers.retain_mut(|reader| !reader.is_gone());
            if stays && self.readers.len() < READERS_MOST {
                self.readers.push(reader);
            }
        }
    }

    /// Whether anybody watches: else no line need be made.
    pub(crate) fn is_read(&mut self) -> bool {
        self.readers.retain_mut(|reader| !reader.is_gone());
        !self.readers.is_empty()
    }

    /// An order, as [`Self::is_read`] has found it, and the number of the reader that gave it.
    pub(crate) fn take_order(&mut self) -> Option<(u64, String)> {
        self.readers.iter_mut().find_map(|reader| Some((reader.number, reader.take_order()?)))
    }

    /// Whether this reader is still there.
    pub(crate) fn has(&self, number: u64) -> bool {
        self.readers.iter().any(|reader| reader.number == number)
    }

    /// Hands the line to each reader that has taken its last one. Never waits.
    pub(crate) fn write(&mut self, line: &[u8]) {
        self.readers.retain_mut(|reader| reader.write(line));
    }
}

impl Reader {
    fn is_gone(&mut self) -> bool {
        let mut buffer = [0; 512];
        match self.stream.read(&mut buffer) {
            Ok(read) => {
                // What is too long, or said by one who has nothing to say, is discarded.
                if let Some(said) = self.said.as_mut().filter(|said| said.len() < ORDER_BYTES_MOST) {
                    said.extend_from_slice(&buffer[..read]);
                }
                read == 0
            }
            Err(error) => error.kind() != ErrorKind::WouldBlock,
        }
    }

    fn take_order(&mut self) -> Option<String> {
        let said = self.said.as_mut()?;
        let end = said.iter().position(|byte| *byte == b'\n')?;
        String::from_utf8(said.drain(..=end).collect()).ok()
    }

    /// `false`: it is to be disconnected.
    fn write(&mut self, line: &[u8]) -> bool {
        let mut rest = std::mem::take(&mut self.rest);
        if !self.push(&mut rest) {
            return false;
        }
        if rest.is_empty() && line.len() <= LINE_BYTES_MOST {
            rest = line.to_vec();
            if !self.push(&mut rest) {
                return false;
            }
        }
        rest.shrink_to_fit();
        self.rest = rest;
        self.stalled < STALLED_TICKS
    }

    /// Writes what fits and leaves the rest. `false`: the reader has gone.
    fn push(&mut self, bytes: &mut Vec<u8>) -> bool {
        while !bytes.is_empty() {
            match self.stream.write(bytes) {
                Ok(written) => {
                    bytes.drain(..written);
                    self.stalled = 0;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.stalled += 1;
                    return true;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_policy::PolicyName;
    use lasthop_status::record::Ready;
    use lasthop_status::{Mode, Status, ask_agents, watch};
    use std::io::{BufRead as _, BufReader};
    use std::os::unix::fs::MetadataExt;
    use std::time::{Duration, Instant};

    fn socket(folder: &Path) -> Socket {
        Socket::open(&folder.join("lasthop"), "wlan0", None).expect("a socket")
    }

    fn status(interface: &str) -> Vec<u8> {
        let ready = Ready {
            t_ns: 0,
            unix_ms: None,
            interface: interface.to_owned(),
            congestion_control: None,
            mode: Mode::Advise,
            policy: PolicyName::Lasthop,
            group: None,
            version: "1.2.3".to_owned(),
        };
        serde_json::to_vec(&Status::of(&ready)).map(|line| [line, vec![b'\n']].concat()).expect("JSON")
    }

    /// Answers as an agent does, until all of these clients have asked.
    fn asked(sockets: &mut [Socket], folder: &Path) -> Vec<Status> {
        std::thread::scope(|scope| {
            let asks = scope.spawn(|| ask_agents(folder).expect("the folder is there"));
            while !asks.is_finished() {
                for (number, socket) in sockets.iter_mut().enumerate() {
                    let status = status(&format!("{} {number}", socket.interface));
                    socket.greet(|| status.clone());
                }
            }
            asks.join().expect("no panic").into_iter().map(|status| status.expect("an answer")).collect()
        })
    }

    #[test]
    fn each_agent_says_what_it_does_and_leaves_no_socket() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().join("lasthop");
        let open = |interface| Socket::open(&folder, interface, None).expect("a socket");
        // The second one beside the first one's.
        let mut open = ["wlan0", "wlan0", "eth0"].map(open);
        assert!(open[0].is_for("wlan0") && !open[0].is_for("eth0"));
        assert_eq!(fs::metadata(&folder).expect("it is there").mode() & 0o7777, 0o755);
        assert_eq!(fs::metadata(folder.join("watch-eth0.sock")).expect("it is there").mode() & 0o777, 0o600);
        let mut told: Vec<_> = asked(&mut open, &folder).into_iter().map(|status| status.interface).collect();
        told.sort();
        assert_eq!(told, ["eth0 2", "wlan0 0", "wlan0 1"]);
        drop(open);
        assert_eq!(sockets(&folder).expect("readable").len(), 0);
    }

    #[test]
    fn more_readers_than_there_is_room_for_get_the_first_line_all_the_same() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut open = [socket(folder.path())];
        let folder = folder.path().join("lasthop");
        let watching: Vec<_> = (0..READERS_MOST).map(|_| watch(&folder, None).expect("served")).collect();
        open[0].greet(|| status("wlan0"));
        assert_eq!((asked(&mut open, &folder).len(), open[0].readers.len()), (1, READERS_MOST));
        drop(watching);
        assert!(!open[0].is_read());
    }

    #[test]
    fn a_reader_that_stalls_delays_nobody_and_costs_one_line_and_later_finds_whole_lines() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut socket = socket(folder.path());
        let stalled = watch(&folder.path().join("lasthop"), Some("wlan0")).expect("served").1;
        socket.greet(|| b"{\"seq\":0}\n".to_vec());
        assert!(socket.is_read());
        let line = |seq: u64| format!("{{\"seq\":{seq},\"pad\":\"{}\"}}\n", "x".repeat(300_000)).into_bytes();
        let begun = Instant::now();
        for seq in 0..50 {
            socket.write(&line(seq));
            assert!(socket.readers[0].rest.len() <= 300_100);
        }
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        let mut lines = BufReader::new(stalled).lines();
        let mut seqs = Vec::new();
        for seq in 50..53 {
            std::thread::scope(|scope| {
                let read = scope.spawn(|| lines.next().expect("a line").expect("text"));
                while !read.is_finished() {
                    socket.write(&line(seq));
                    std::thread::sleep(Duration::from_millis(2));
                }
                let value: serde_json::Value = serde_json::from_str(&read.join().expect("read")).expect("whole");
                seqs.push(value["seq"].as_u64().expect("a number"));
            });
        }
        // The first line, the one that did not fit, and none of those in between.
        assert_eq!(seqs[..2], [0, 0]);
        assert!(seqs[2] >= 50, "{seqs:?}");
    }

    #[test]
    fn a_reader_that_never_reads_is_disconnected_and_one_that_has_gone_is_forgotten() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut socket = socket(folder.path());
        let folder = folder.path().join("lasthop");
        let (_stalled, gone) = (watch(&folder, None).expect("served"), watch(&folder, None).expect("served"));
        socket.greet(|| b"{}\n".to_vec());
        drop(gone);
        assert!(socket.is_read());
        assert_eq!(socket.readers.len(), 1);
        for _ in 0..=STALLED_TICKS + 1 {
            socket.write(&vec![b'x'; LINE_BYTES_MOST]);
        }
        assert!(!socket.is_read());
        let error = watch(&folder, Some("eth0")).expect_err("nobody").to_string();
        assert!(error.starts_with("no agent of eth0 serves a socket in "), "{error}");
    }

    #[test]
    fn the_socket_of_a_killed_agent_is_passed_over_and_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().join("lasthop");
        fs::create_dir(&folder).expect("a folder");
        for name in ["watch-wlan0.sock", "watch-gone0-7.sock"] {
            drop(UnixListener::bind(folder.join(name)).expect("a socket")); // its file stays
        }
        assert_eq!(ask_agents(&folder).expect("readable").len(), 0);
        let mut open = [Socket::open(&folder, "wlan0", None).expect("a socket")];
        assert_eq!(sockets(&folder).expect("readable"), [folder.join("watch-wlan0.sock")]);
        assert_eq!(asked(&mut open, &folder).len(), 1);
    }

    #[test]
    fn a_stopped_agent_whose_queue_is_full_keeps_its_socket_and_holds_up_nobody() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().join("lasthop");
        let stopped = Socket::open(&folder, "wlan0", None).expect("a socket");
        let mut waiting = Vec::new();
        while let Ok(one) = connect(&stopped.named.path) {
            waiting.push(one);
        }
        let next = Socket::open(&folder, "eth0", None).expect("a socket");
        assert_eq!(sockets(&folder).expect("readable"), [next.named.path.clone(), stopped.named.path.clone()]);
        drop(next);
        let told = ask_agents(&folder).expect("readable");
        assert!(matches!(&told[..], [Err(error)] if error.to_string().contains("does not answer")), "{told:?}");
    }

    #[test]
    fn a_folder_that_others_may_write_to_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).expect("it is ours");
        let error = Socket::open(folder.path(), "wlan0", None).expect_err("refused").to_string();
        assert!(error.contains("nobody else can write in, and it has mode 777"), "{error}");
    }
}
