//! The guest's end of the window: a file system (FUSE, linux/fuse.h, version 7.31) that has this machine's files, read only.
//!
//! The kernel keeps what it has seen, for nothing changes during a run: a path is asked for once.

use crate::window::{Answer, BELL, Entry, MOST_BYTES, PIPES, Question, Window};
use nix::libc::{EINVAL, EIO, ENOENT, ENOSYS};
use nix::mount::{MsFlags, mount};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// Mounts this machine's root at `to`, and serves it until the guest ends.
pub(crate) fn serve(ports: File, to: &str) -> io::Result<()> {
    let device = File::options().read(true).write(true).open("/dev/fuse")?;
    let options = format!("fd={},rootmode=40000,user_id=0,group_id=0,allow_other", device.as_raw_fd());
    mount(Some("machine"), to, Some("fuse"), MsFlags::MS_RDONLY | MsFlags::MS_NODEV, Some(options.as_str()))?;
    let window = Window(File::options().read(true).write(true).open("/dev/mem")?);
    let mut files = Files { window, ports, paths: vec![String::new(), "/".to_owned()], numbers: BTreeMap::new() };
    std::thread::spawn(move || {
        if let Err(error) = files.answer_all(&device) {
            eprintln!("guest: this machine's files: {error}");
        }
    });
    Ok(())
}

struct Files {
    window: Window,
    ports: File,
    /// By node number; the root is 1.
    paths: Vec<String>,
    numbers: BTreeMap<String, u64>,
}

/// A request's head and arguments.
struct Request<'a> {
    code: u32,
    unique: u64,
    node: u64,
    arguments: &'a [u8],
}

const HEAD: usize = 40;
/// For how long the kernel keeps an answer, in seconds.
const KEPT_S: u64 = 1 << 30;
/// FUSE_ASYNC_READ, FUSE_BIG_WRITES, FUSE_NO_OPEN_SUPPORT, FUSE_MAX_PAGES, FUSE_CACHE_SYMLINKS, FUSE_NO_OPENDIR_SUPPORT.
const FLAGS: u32 = 1 | 1 << 5 | 1 << 17 | 1 << 22 | 1 << 23 | 1 << 24;

impl Files {
    fn answer_all(&mut self, mut device: &File) -> io::Result<()> {
        let mut buffer = vec![0; (MOST_BYTES + 4096) as usize];
        loop {
            let length = device.read(&mut buffer)?;
            let number = |at: usize, bytes: usize| number(&buffer[..length], at, bytes);
            let request = Request {
                code: number(4, 4) as u32,
                unique: number(8, 8),
                node: number(16, 8),
                arguments: &buffer[HEAD.min(length)..length],
            };
            let (error, body) = match self.reply(&request) {
                Ok(Some(body)) => (0, body),
                Ok(None) => continue,
                Err(error) => (-error.raw_os_error().unwrap_or(EIO), Vec::new()),
            };
            let mut out = Body::default();
            out.u32((16 + body.len()) as u32).u32(error as u32).u64(request.unique);
            out.0.extend(body);
            match device.write_all(&out.0) {
                // It was interrupted, and waits no more.
                Err(error) if error.raw_os_error() == Some(ENOENT) => {}
                done => done?,
            }
        }
    }

    /// The body of an answer; `None` where there is none.
    fn reply(&mut self, request: &Request<'_>) -> io::Result<Option<Vec<u8>>> {
        let mut out = Body::default();
        let argument = |at, bytes| number(request.arguments, at, bytes);
        let path =
            self.paths.get(request.node as usize).cloned().ok_or_else(|| io::Error::from_raw_os_error(ENOENT))?;
        match request.code {
            // LOOKUP
            1 => {
                let name = request.arguments.strip_suffix(b"\0").and_then(|name| std::str::from_utf8(name).ok());
                let name = name.ok_or_else(|| io::Error::from_raw_os_error(ENOENT))?;
                let path = if path == "/" { format!("/{name}") } else { format!("{path}/{name}") };
                match self.ask(Question::Look(path.clone())) {
                    Ok(Answer::Entry(entry)) => {
                        let node = self.node(path);
                        out.u64(node).u64(0).u64(KEPT_S).u64(KEPT_S).u32(0).u32(0).entry(node, &entry);
                    }
                    // The kernel keeps also that there is nothing.
                    Err(error) if error.raw_os_error() == Some(ENOENT) => {
                        out.u64(0).u64(0).u64(KEPT_S).u64(KEPT_S).u32(0).u32(0).0.resize(128, 0);
                    }
                    other => return Err(unexpected(other)),
                }
            }
            // GETATTR
            3 => match self.ask(Question::Look(path)) {
                Ok(Answer::Entry(entry)) => {
                    out.u64(KEPT_S).u32(0).u32(0).entry(request.node, &entry);
                }
                other => return Err(unexpected(other)),
            },
            // READLINK
            5 => match self.ask(Question::Target(path)) {
                Ok(Answer::Target(to)) => out.0.extend(to.bytes()),
                other => return Err(unexpected(other)),
            },
            // READ
            15 => match self.ask(Question::Read { path, at: argument(8, 8), bytes: argument(16, 4) as u32 }) {
                Ok(Answer::Read(bytes)) => out.0 = self.window.data(bytes)?,
                other => return Err(unexpected(other)),
            },
            // STATFS: blocks of 4096 bytes, of which none is free, and names of 255.
            17 => {
                out.0.resize(40, 0);
                out.u32(4096).u32(255).u32(4096).0.resize(80, 0);
            }
            // INIT
            26 => {
                out.u32(7).u32(31).u32(MOST_BYTES).u32(FLAGS & argument(12, 4) as u32);
                // Requests in the background, and of these too many; then writes, nanoseconds of times, pages of a read.
                out.u32(1 | 1 << 16).u32(4096).u32(1).u32(MOST_BYTES / 4096).0.resize(64, 0);
            }
            // READDIR
            28 => match self.ask(Question::List(path)) {
                Ok(Answer::Names(names)) => {
                    let (from, most) = (argument(8, 8), argument(16, 4) as usize);
                    let dots = [".", ".."].map(|name| (name.to_owned(), nix::libc::S_IFDIR));
                    for (at, (name, mode)) in dots.into_iter().chain(names).enumerate().skip(from as usize) {
                        if out.0.len() + 24 + name.len().next_multiple_of(8) > most {
                            break;
                        }
                        // Any number but 0: stat says the node's.
                        out.u64(at as u64 + 2).u64(at as u64 + 1).u32(name.len() as u32).u32(mode >> 12);
                        out.0.extend(name.bytes());
                        out.0.resize(out.0.len().next_multiple_of(8), 0);
                    }
                }
                other => return Err(unexpected(other)),
            },
            // FORGET, INTERRUPT, BATCH_FORGET
            2 | 36 | 42 => return Ok(None),
            // OPEN and OPENDIR among others: the kernel then does without.
            _ => return Err(io::Error::from_raw_os_error(ENOSYS)),
        }
        Ok(Some(out.0))
    }

    fn node(&mut self, path: String) -> u64 {
        let next = self.paths.len() as u64;
        *self.numbers.entry(path).or_insert_with_key(|path| {
            self.paths.push(path.clone());
            next
        })
    }

    /// An error is this machine's.
    fn ask(&self, question: Question) -> io::Result<Answer> {
        self.window.put(true, &question, &[])?;
        self.ports.write_all_at(&[1; PIPES.len()], BELL)?;
        match self.window.get(false)?.ok_or(io::ErrorKind::UnexpectedEof)? {
            Answer::Refused(number) => Err(io::Error::from_raw_os_error(number)),
            answer => Ok(answer),
        }
    }
}

fn unexpected(answer: io::Result<Answer>) -> io::Error {
    answer.err().unwrap_or_else(|| io::Error::from_raw_os_error(EINVAL))
}

/// A number of a request, in the machine's order; 0 where it ends.
fn number(request: &[u8], at: usize, bytes: usize) -> u64 {
    let part = request.get(at..at + bytes).unwrap_or_default();
    part.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// The body of an answer as it grows.
#[derive(Default)]
struct Body(Vec<u8>);

impl Body {
    fn u32(&mut self, number: u32) -> &mut Self {
        self.0.extend(number.to_le_bytes());
        self
    }

    fn u64(&mut self, number: u64) -> &mut Self {
        self.0.extend(number.to_le_bytes());
        self
    }

    /// `struct fuse_attr`.
    fn entry(&mut self, node: u64, entry: &Entry) -> &mut Self {
        let Entry { mode, size, modified_s, links, user, group } = entry;
        self.u64(node).u64(*size).u64(size.div_ceil(512));
        self.u64(*modified_s).u64(*modified_s).u64(*modified_s).u32(0).u32(0).u32(0);
        self.u32(*mode).u32(*links).u32(*user).u32(*group).u32(0).u32(4096).u32(0)
    }
}

/// Makes a root that has this machine's files, changes kept in memory, and the guest's own devices and processes.
pub(crate) fn make_root(ports: File, root: &str, scratch: &str) -> io::Result<()> {
    const LOWER: &str = "/machine";
    const CHANGES: &str = "/changes";
    for folder in [LOWER, CHANGES, root] {
        std::fs::create_dir_all(folder)?;
    }
    serve(ports, LOWER)?;
    mount(Some("tmpfs"), CHANGES, Some("tmpfs"), MsFlags::empty(), None::<&str>)?;
    for folder in ["upper", "work"] {
        std::fs::create_dir(Path::new(CHANGES).join(folder))?;
    }
    let options = format!("lowerdir={LOWER},upperdir={CHANGES}/upper,workdir={CHANGES}/work");
    mount(Some("overlay"), root, Some("overlay"), MsFlags::empty(), Some(options.as_str()))?;
    for folder in ["proc", "sys", "dev", "run", "out"] {
        let to = format!("{root}/{folder}");
        std::fs::create_dir_all(&to)?;
        let from = format!("/{folder}");
        mount(Some(from.as_str()), to.as_str(), None::<&str>, MsFlags::MS_BIND | MsFlags::MS_REC, None::<&str>)?;
    }
    std::fs::create_dir_all(format!("{root}{scratch}"))
}
