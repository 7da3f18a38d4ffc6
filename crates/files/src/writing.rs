//! The rule for the files that a user names and lasthop writes (see the crate's).

use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, open};
use nix::sys::stat::Mode;
use nix::unistd::linkat;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// A kind of file that lasthop writes, by which it knows its own.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// In messages: "a capture".
    pub name: &'static str,
    /// How many bytes of its beginning `is` looks at.
    pub looked_at: u64,
    /// Whether a file that begins so was written by lasthop.
    pub is: fn(&[u8]) -> bool,
}

/// A file that is written, and not yet in its place.
#[derive(Debug)]
pub struct Whole {
    grows: Grows,
    path: PathBuf,
    replaces: bool,
}

/// Where the new file is until it is whole.
#[derive(Debug)]
enum Grows {
    /// It has no name: with the process it is gone.
    Unnamed(File),
    /// In filesystems that have no such files.
    Named(NamedTempFile),
}

/// What is at a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum There {
    Nothing,
    /// A file that may be replaced.
    Ours,
    /// A pipe, a terminal or another device.
    Stream,
}

impl Whole {
    /// Begins a file, to be put at this path. Without a kind only an empty file may be there.
    ///
    /// # Errors
    /// It would not be put there: something else is there, or the folder cannot be written.
    pub fn begin(path: &Path, kind: Option<&Kind>) -> io::Result<Self> {
        let replaces = may_write(path, kind)?;
        let folder = folder_of(path);
        // As of any new file, less what the umask takes.
        let flags = OFlag::O_TMPFILE | OFlag::O_RDWR | OFlag::O_CLOEXEC;
        let grows = match open(folder, flags, Mode::from_bits_truncate(0o666)) {
            Ok(unnamed) => Grows::Unnamed(unnamed.into()),
            Err(_) => {
                let permissions = Permissions::from_mode(0o666);
                Grows::Named(tempfile::Builder::new().permissions(permissions).tempfile_in(folder)?)
            }
        };
        Ok(Self { grows, path: path.to_owned(), replaces })
    }

    /// The file, to be written.
    pub fn file(&self) -> &File {
        match &self.grows {
            Grows::Unnamed(file) => file,
            Grows::Named(file) => file.as_file(),
        }
    }

    /// Where it is put.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether another one is there until it is whole.
    pub fn replaces(&self) -> bool {
        self.replaces
    }

    /// It is whole: it takes its place.
    ///
    /// # Errors
    /// The system's, or something else has come to its place meanwhile. What was there is as before.
    pub fn put_in_place(self) -> io::Result<()> {
        match self.grows {
            Grows::Unnamed(file) if self.replaces => {
                let mut name = std::ffi::OsString::from(".");
                name.push(self.path.file_name().unwrap_or_default());
                name.push(format!(".lasthop-{}", std::process::id()));
                let beside = folder_of(&self.path).join(name);
                link(&file, &beside)?;
                fs::rename(&beside, &self.path).inspect_err(|_| _ = fs::remove_file(&beside))
            }
            Grows::Unnamed(file) => link(&file, &self.path),
            Grows::Named(file) if self.replaces => file.persist(&self.path).map(drop).map_err(|error| error.error),
            Grows::Named(file) => file.persist_noclobber(&self.path).map(drop).map_err(|error| error.error),
        }
    }
}

/// Writes all of it or nothing.
///
/// # Errors
/// As of [`Whole`].
pub fn write(path: &Path, kind: Option<&Kind>, bytes: &[u8]) -> io::Result<()> {
    let whole = Whole::begin(path, kind)?;
    whole.file().write_all(bytes)?;
    whole.put_in_place()
}

/// Whether a file of this kind may be put there; if so, whether it replaces one.
///
/// # Errors
/// It may not. The message says what is there, and what is accepted.
pub fn may_write(path: &Path, kind: Option<&Kind>) -> io::Result<bool> {
    match look(path, kind)? {
        There::Nothing => Ok(false),
        There::Ours => Ok(true),
        There::Stream => Err(refused("a pipe or a device", "a regular file")),
    }
}

/// Whether lines may be appended there, as by [`append`].
///
/// # Errors
/// They may not. The message says what is there, and what is accepted.
pub fn may_append(path: &Path, kind: &Kind) -> io::Result<()> {
    look(path, Some(kind)).map(drop)
}

/// Opens a file to append to; made if it is not there, for its owner alone. A pipe that has a reader is taken, too. The
/// file is one that does not wait.
///
/// # Errors
/// It is a symbolic link or a file of something else, or cannot be opened.
pub fn append(path: &Path, kind: &Kind) -> io::Result<File> {
    may_append(path, kind)?;
    let flags = OFlag::O_NONBLOCK | OFlag::O_NOFOLLOW;
    OpenOptions::new().create(true).append(true).mode(0o600).custom_flags(flags.bits()).open(path)
}

/// Gives an unnamed file its name.
fn link(file: &File, path: &Path) -> io::Result<()> {
    let from = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(linkat(AT_FDCWD, from.as_str(), AT_FDCWD, path, AtFlags::AT_SYMLINK_FOLLOW)?)
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn look(path: &Path, kind: Option<&Kind>) -> io::Result<There> {
    let data = match fs::symlink_metadata(path) {
        Ok(data) => data,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(There::Nothing),
        Err(error) => return Err(error),
    };
    let of = data.file_type();
    if of.is_symlink() {
        return Err(refused("a symbolic link", "the file that it leads to"));
    }
    if of.is_dir() || of.is_block_device() || of.is_socket() {
        return Err(refused(if of.is_dir() { "a folder" } else { "a device or a socket" }, "a regular file"));
    }
    if !of.is_file() {
        return Ok(There::Stream);
    }
    if data.len() == 0 {
        return Ok(There::Ours);
    }
    let Some(kind) = kind else { return Err(foreign("it is there already", "a file")) };
    let flags = OFlag::O_NONBLOCK | OFlag::O_NOFOLLOW;
    let mut begin = Vec::new();
    let opened = OpenOptions::new().read(true).custom_flags(flags.bits()).open(path)?;
    opened.take(kind.looked_at).read_to_end(&mut begin)?;
    if (kind.is)(&begin) { Ok(There::Ours) } else { Err(foreign("it is something else", kind.name)) }
}

fn refused(what: &str, accepted: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, format!("it is {what}; accepted: {accepted}"))
}

fn foreign(what: &str, kind: &str) -> io::Error {
    let text = format!("{what}, which lasthop does not replace; accepted: {kind} that is new, empty, or lasthop's own");
    io::Error::new(ErrorKind::AlreadyExists, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::unistd::mkfifo;
    use std::os::unix::fs::symlink;

    const LIST: Kind = Kind { name: "a list", looked_at: 5, is: |begin| begin == b"list:" };

    fn names(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.file_name());
        let mut names: Vec<_> = names.map(|name| name.to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn what_is_new_empty_or_its_own_is_written_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a");
        for before in [None, Some(""), Some("list: 1")] {
            if let Some(before) = before {
                fs::write(&path, before).expect("written");
            }
            write(&path, Some(&LIST), b"list: 2").expect("written");
            assert_eq!(fs::read(&path).expect("there"), b"list: 2");
            assert_eq!(names(folder.path()), ["a"]);
            fs::remove_file(&path).expect("there");
        }
        fs::write(&path, "mine").expect("written");
        for kind in [None, Some(&LIST)] {
            let error = write(&path, kind, b"list: 2").expect_err("foreign").to_string();
            assert!(error.contains("does not replace; accepted: a "), "{error}");
        }
        assert!(append(&path, &LIST).is_err());
        assert_eq!(fs::read(&path).expect("there"), b"mine");
    }

    #[test]
    fn links_pipes_devices_and_folders_are_refused_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let [link, pipe, target] = ["link", "pipe", "target"].map(|name| folder.path().join(name));
        symlink(&target, &link).expect("a link");
        mkfifo(&pipe, Mode::S_IRWXU).expect("a pipe");
        for (path, said) in [(&*link, "a symbolic link"), (&pipe, "a pipe or a device"), (folder.path(), "a folder")] {
            let error = write(path, Some(&LIST), b"list: 2").expect_err(said).to_string();
            assert!(error.contains(said) && error.contains("accepted: "), "{error}");
        }
        assert!(append(&link, &LIST).is_err() && !target.exists(), "nothing is made where a link leads to");
        // A link to a file of its own is a link as well.
        fs::write(&target, "list: 1").expect("written");
        assert!(append(&link, &LIST).is_err());
    }

    #[test]
    fn what_is_not_whole_leaves_what_was_there_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a");
        fs::write(&path, "list: 1").expect("written");
        let whole = Whole::begin(&path, Some(&LIST)).expect("begun");
        whole.file().write_all(b"list: ").expect("written");
        assert!(whole.replaces());
        drop(whole);
        assert_eq!(
            (fs::read(&path).expect("there"), names(folder.path())),
            (b"list: 1".to_vec(), vec!["a".to_owned()])
        );
        // What has come meanwhile is not replaced either.
        let new = folder.path().join("b");
        let whole = Whole::begin(&new, Some(&LIST)).expect("begun");
        fs::write(&new, "mine").expect("written");
        whole.put_in_place().expect_err("foreign");
        assert_eq!(fs::read(&new).expect("there"), b"mine");
    }

    #[test]
    fn what_is_appended_to_grows() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a");
        for text in ["list: 1\n", "2\n"] {
            append(&path, &LIST).expect("opened").write_all(text.as_bytes()).expect("written");
        }
        assert_eq!(fs::read_to_string(&path).expect("there"), "list: 1\n2\n");
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
    }
}
