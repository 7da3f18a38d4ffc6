//! Writes the record's lines by a thread of its own, so that a slow disk or a stalled reader delays no decision.
//!
//! Lines that do not fit into its queue, or cannot be written, are dropped and counted. A file then ends with a whole
//! line and continues once there is room. When a pipe's reader is gone, the agent goes on without a record.
//!
//! A file at its size limit becomes FILE.1, replacing an earlier one, and FILE begins anew. After FILE is removed or
//! renamed (logrotate), a new one appears within a second.

use crate::clock;
use crate::config::Config;
use crate::error::{Doing, Result};
use crate::tell::lines::Lines;
use crate::tell::log_limit::LogLimit;
use lasthop_status::record::{Event, RECORD};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::libc::ENXIO;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::warn;

/// Bytes that may wait to be written: some 4 s of 1000 connections.
const QUEUE_BYTES: usize = 4 << 20;
/// At the end, the reader's time to take the remaining lines.
const LAST_WORDS_WITHIN: Duration = Duration::from_secs(3);

/// Time between two checks that the path still leads to the open file.
const LOOK_EACH: Duration = Duration::from_secs(1);

/// Hands lines to the writing thread.
#[derive(Debug)]
pub(crate) struct Recorder {
    lines: Arc<Lines>,
    log_limit: LogLimit,
}

/// The target of the lines.
#[derive(Debug)]
enum Sink {
    /// A pipe, a terminal or a device: written bytes cannot be taken back.
    Stream(File),
    File(Limited),
}

/// A regular file of limited size.
#[derive(Debug)]
struct Limited {
    path: PathBuf,
    limit_bytes: u64,
    /// `None`: it was renamed or removed, and the next one is not open yet.
    file: Option<File>,
    /// Time of the last check of the path.
    looked_at: Instant,
}

impl Recorder {
    /// Opens the configured record, to append to it; `None`: none is configured. For `-` the standard output.
    pub(crate) fn open(config: &Config) -> Result<Option<Self>> {
        let Some(path) = config.record.as_deref() else { return Ok(None) };
        let sink = if path == Path::new("-") {
            // A descriptor of its own: a blocked write holds no lock that others need.
            io::stdout().as_fd().try_clone_to_owned().map(|stdout| Sink::Stream(stdout.into()))
        } else {
            Sink::open(path, config.record_limit_mib << 20)
        };
        let sink = sink.doing(format_args!("cannot write the record to {}", path.display()))?;
        Self::spawn(sink).map(Some)
    }

    fn spawn(sink: Sink) -> Result<Self> {
        let lines = Lines::written_by("lasthop-record", QUEUE_BYTES, |lines| write_lines(sink, lines))
            .doing("cannot start the thread that writes the record")?;
        Ok(Self { lines, log_limit: LogLimit::each_minute() })
    }

    /// Queues a line; never waits.
    pub(crate) fn write(&mut self, event: &Event) {
        if !self.lines.has_ended()
            && !self.lines.push(line(event))
            && let Some(more) = self.log_limit.may_say(clock::monotonic())
        {
            warn!("the record is not taken as fast as it comes: lines are left out{more}");
        }
    }

    /// Lines dropped.
    pub(crate) fn left_out(&self) -> u64 {
        self.lines.left_out()
    }

    /// Writes the remaining lines and this last one. Waits a limited time for a stalled reader.
    pub(crate) fn finish(self, last: &Event) {
        self.lines.push_last(line(last));
        if !self.lines.wait_for_end(LAST_WORDS_WITHIN) {
            warn!("the end of the record was not taken within {LAST_WORDS_WITHIN:?} and is lost");
        }
    }
}

fn line(event: &Event) -> Vec<u8> {
    let mut line = serde_json::to_vec(event).expect("an event is plain data");
    line.push(b'\n');
    line
}

fn write_lines(mut sink: Sink, lines: &Lines) {
    let mut told = lines.left_out();
    let (mut trouble, mut again) = (LogLimit::each_minute(), LogLimit::each_minute());
    while let Some(line) = lines.take() {
        match sink.write(&line) {
            Ok(()) => {
                let left_out = lines.left_out();
                if left_out > told && again.may_say(clock::monotonic()).is_some() {
                    warn!("the record goes on: {} lines of it were left out", left_out - told);
                    told = left_out;
                }
            }
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                warn!("the record ends here: {error}");
                return;
            }
            Err(error) => {
                lines.lose();
                if let Some(more) = trouble.may_say(clock::monotonic()) {
                    warn!("the record cannot be written, so lines are left out until it can: {error}{more}");
                }
            }
        }
    }
}

impl Sink {
    fn open(path: &Path, limit_bytes: u64) -> io::Result<Self> {
        let file = match append_to(path) {
            Err(error) if error.raw_os_error() == Some(ENXIO) => {
                return Err(io::Error::other("nobody has opened this pipe to read it"));
            }
            file => file?,
        };
        if !file.metadata()?.is_file() {
            return Ok(Self::Stream(file));
        }
        end_last_line(path, &file)?;
        Ok(Self::File(Limited { path: path.to_owned(), limit_bytes, file: Some(file), looked_at: Instant::now() }))
    }

    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        match self {
            Self::Stream(stream) => stream.write_all(line),
            Self::File(file) => file.write(line),
        }
    }
}

impl Limited {
    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        let mut file = match self.file.take() {
            Some(file) if !self.is_time_to_look() || is_named(&file, &self.path) => file,
            _ => append_to(&self.path)?,
        };
        // Read each time: another process may have truncated it.
        let mut before = file.metadata()?.len();
        let is_full = |length: u64| length > 0 && length.saturating_add(line.len() as u64) > self.limit_bytes;
        if is_full(before) && !is_named(&file, &self.path) {
            file = append_to(&self.path)?;
            before = file.metadata()?.len();
        }
        if is_full(before) {
            if let Err(error) = self.set_aside() {
                self.file = Some(file);
                let full = format!("it has reached `record_limit_mib` and cannot be renamed: {error}");
                return Err(io::Error::new(error.kind(), full));
            }
            file = append_to(&self.path)?;
            before = file.metadata()?.len();
        }
        let written = file.write_all(line);
        if written.is_err() {
            // Leave no half line. Truncating a file needs no room.
            let _ = file.set_len(before);
        }
        self.file = Some(file);
        written
    }

    fn is_time_to_look(&mut self) -> bool {
        let is_time = self.looked_at.elapsed() >= LOOK_EACH;
        if is_time {
            self.looked_at = Instant::now();
        }
        is_time
    }

    fn set_aside(&self) -> io::Result<()> {
        let mut aside = self.path.clone().into_os_string();
        aside.push(".1");
        lasthop_files::may_write(Path::new(&aside), Some(&RECORD))?;
        fs::rename(&self.path, aside)
    }
}

/// Whether this open file is the one at the path; assumed true if that cannot be determined.
fn is_named(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::metadata(path)) {
        (Ok(open), Ok(there)) => (open.dev(), open.ino()) == (there.dev(), there.ino()),
        (_, Err(error)) => error.kind() != ErrorKind::NotFound,
        _ => true,
    }
}

/// The record names every host that this one talks to, so only the owner may read a new file.
fn append_to(path: &Path) -> io::Result<File> {
    // Opened without waiting: a FIFO would wait for its reader.
    let file = lasthop_files::append(path, &RECORD)?;
    fcntl(&file, FcntlArg::F_SETFL(OFlag::O_APPEND))?;
    Ok(file)
}

/// An earlier writer may have been killed within a line.
fn end_last_line(path: &Path, mut file: &File) -> io::Result<()> {
    if file.metadata()?.len() == 0 {
        return Ok(());
    }
    let mut last = [0];
    let read = File::open(path).and_then(|mut file| {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)
    });
    if read.is_err() || last != *b"\n" {
        file.write_all(b"\n")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_status::record::State;
    use nix::mount::{MntFlags, MsFlags, mount, umount2};
    use std::fs::OpenOptions;
    use std::io::{BufRead, BufReader, PipeWriter};
    use std::os::fd::OwnedFd;
    use std::os::unix::fs::PermissionsExt as _;
    use std::thread;
    use std::time::Instant;

    fn state(cookie: u64) -> Event {
        Event::State(State { t_ns: 4, cookie, from: "Open".to_owned(), to: "Recovery".to_owned() })
    }

    fn to_pipe(writer: PipeWriter) -> Recorder {
        Recorder::spawn(Sink::Stream(File::from(OwnedFd::from(writer)))).expect("a thread")
    }

    fn cookies(text: &str) -> Vec<u64> {
        let event = |line| match serde_json::from_str(line) {
            Ok(Event::State(state)) => state.cookie,
            other => panic!("{other:?}: {line}"),
        };
        text.lines().map(event).collect()
    }

    #[test]
    fn every_line_arrives_in_order() {
        let (reader, writer) = io::pipe().expect("a pipe");
        let mut recorder = to_pipe(writer);
        for cookie in 0..100 {
            recorder.write(&state(cookie));
        }
        recorder.finish(&state(100));
        let mut text = String::new();
        BufReader::new(reader).read_to_string(&mut text).expect("text");
        assert_eq!(cookies(&text), (0..=100).collect::<Vec<_>>());
    }

    #[test]
    fn a_reader_that_is_gone_ends_the_record_and_nothing_else() {
        let (reader, writer) = io::pipe().expect("a pipe");
        let mut recorder = to_pipe(writer);
        drop(reader);
        let begun = Instant::now();
        while !recorder.lines.has_ended() && begun.elapsed() < Duration::from_secs(180) {
            recorder.write(&state(1));
            thread::yield_now();
        }
        assert!(recorder.lines.has_ended());
        recorder.finish(&state(2));
    }

    #[test]
    fn a_reader_that_does_not_read_delays_nobody_and_costs_no_more_memory_than_the_queue() {
        let (reader, writer) = io::pipe().expect("a pipe");
        let mut recorder = to_pipe(writer);
        // As long as a tick's line with 1000 connections of 500 bytes each. 100 such lines are 50 MB.
        let long = |cookie| Event::State(State { t_ns: 4, cookie, from: "x".repeat(500_000), to: String::new() });
        for cookie in 0..100 {
            recorder.write(&long(cookie));
            assert!(recorder.lines.bytes() <= QUEUE_BYTES, "{} bytes wait", recorder.lines.bytes());
        }
        // The queue has room for eight of them, and one is being written.
        assert!((91..=92).contains(&recorder.left_out()), "{} left out", recorder.left_out());
        // The last line is queued regardless, in case the reader resumes.
        let read = thread::spawn(move || {
            let mut lines = BufReader::new(reader).lines().map(|line| line.expect("text"));
            lines.by_ref().last()
        });
        recorder.finish(&state(7));
        assert_eq!(cookies(&read.join().expect("no panic").expect("lines")), [7]);
    }

    #[test]
    fn a_file_that_cannot_be_written_is_named() {
        let config = Config { record: Some("/nonexistent/record.jsonl".into()), ..Config::default() };
        let error = Recorder::open(&config).expect_err("no such folder");
        assert!(error.to_string().contains("/nonexistent/record.jsonl"), "{error}");
    }

    #[test]
    fn a_pipe_that_nobody_has_opened_is_named_and_not_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let fifo = folder.path().join("fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).expect("made");
        let config = Config { record: Some(fifo.clone()), ..Config::default() };
        let error = Recorder::open(&config).expect_err("nobody reads it").in_a_line().to_string();
        assert_eq!(
            error,
            format!("cannot write the record to {}: nobody has opened this pipe to read it", fifo.display())
        );
    }

    /// The reviewers' link, which somebody else had planted: root's agent wrote where it led to.
    #[test]
    fn a_record_follows_no_link_and_goes_into_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let [link, mine, planted] = ["link", "mine", "planted"].map(|name| folder.path().join(name));
        std::os::unix::fs::symlink(&planted, &link).expect("a link");
        fs::write(&mine, "# mine\n").expect("a file");
        for (path, said) in [(&link, "it is a symbolic link"), (&mine, "it is something else")] {
            let config = Config { record: Some(path.clone()), ..Config::default() };
            let refused = [Recorder::open(&config).map(drop), crate::can_start(&config)];
            for error in refused.map(|refused| refused.expect_err(said).in_a_line().to_string()) {
                assert!(error.contains(said) && error.contains("accepted: "), "{error}");
            }
        }
        assert!(!planted.exists() && fs::read_to_string(&mine).expect("there") == "# mine\n");
        // Nor is a file of something else in the place of the record that is set aside.
        let path = folder.path().join("record.jsonl");
        fs::write(folder.path().join("record.jsonl.1"), "mine").expect("a file");
        let mut sink = Sink::open(&path, line(&state(1)).len() as u64).expect("a file");
        sink.write(&line(&state(1))).expect("written");
        assert!(sink.write(&line(&state(2))).is_err());
        assert_eq!(fs::read_to_string(folder.path().join("record.jsonl.1")).expect("there"), "mine");
    }

    #[test]
    fn a_record_is_nobody_else_s_to_read_and_begins_on_a_line_of_its_own() {
        let folder = tempfile::tempdir().expect("a folder");
        let config = Config { record: Some(folder.path().join("record.jsonl")), ..Config::default() };
        let path = config.record.as_deref().expect("just set");
        let open = || Recorder::open(&config).expect("it can be written").expect("configured");
        open().finish(&state(1));
        assert_eq!(fs::metadata(path).expect("there").permissions().mode() & 0o777, 0o600);
        let mut file = OpenOptions::new().append(true).open(path).expect("there");
        file.write_all(br#"{"event":"sta"#).expect("written");
        open().finish(&state(2));
        let text = fs::read_to_string(path).expect("there");
        let lines: Vec<_> = text.lines().collect();
        assert_eq!((lines.len(), lines[1]), (3, r#"{"event":"sta"#));
        assert_eq!((cookies(lines[0]), cookies(lines[2])), (vec![1], vec![2]));
    }

    #[test]
    fn a_record_at_its_limit_is_set_aside_and_both_files_keep_to_the_limit() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("record.jsonl");
        let one = line(&state(1000)).len() as u64;
        let mut recorder = Recorder::spawn(Sink::open(&path, 10 * one).expect("a file")).expect("a thread");
        for cookie in 1000..1024 {
            recorder.write(&state(cookie));
        }
        recorder.finish(&state(1024));
        let read = |name: &str| cookies(&fs::read_to_string(folder.path().join(name)).expect("there"));
        assert_eq!(read("record.jsonl.1"), (1010..1020).collect::<Vec<_>>());
        assert_eq!(read("record.jsonl"), (1020..=1024).collect::<Vec<_>>());
    }

    /// The file, as if its path had last been checked long ago.
    fn long_ago(sink: &mut Sink) -> &mut Limited {
        let Sink::File(file) = sink else { panic!("a regular file") };
        file.looked_at = Instant::now().checked_sub(LOOK_EACH).expect("the machine has run for longer");
        file
    }

    #[test]
    fn a_record_that_was_removed_or_renamed_begins_anew_under_its_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("record.jsonl");
        let read = |name: &str| cookies(&fs::read_to_string(folder.path().join(name)).expect("there"));
        let mut sink = Sink::open(&path, 1 << 20).expect("a file");
        sink.write(&line(&state(1))).expect("written");
        fs::remove_file(&path).expect("there");
        long_ago(&mut sink).write(&line(&state(2))).expect("written");
        assert_eq!(read("record.jsonl"), [2]);
        // As logrotate does with `create`.
        fs::rename(&path, folder.path().join("old")).expect("there");
        File::create(&path).expect("made");
        long_ago(&mut sink).write(&line(&state(3))).expect("written");
        sink.write(&line(&state(4))).expect("written");
        assert_eq!((read("old"), read("record.jsonl")), (vec![2], vec![3, 4]));
    }

    #[test]
    fn a_record_at_its_limit_that_is_no_longer_under_its_name_is_not_renamed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("record.jsonl");
        let read = |name: &str| cookies(&fs::read_to_string(folder.path().join(name)).expect("there"));
        let mut sink = Sink::open(&path, line(&state(1)).len() as u64).expect("a file");
        sink.write(&line(&state(1))).expect("written");
        fs::remove_file(&path).expect("there");
        sink.write(&line(&state(2))).expect("written, though nothing is there to be renamed");
        assert_eq!(read("record.jsonl"), [2]);
        fs::rename(&path, folder.path().join("old")).expect("there");
        File::create(&path).expect("made");
        sink.write(&line(&state(3))).expect("written");
        assert_eq!((read("old"), read("record.jsonl")), (vec![2], vec![3]));
        assert!(!folder.path().join("record.jsonl.1").exists());
    }

    /// A disk for this test alone.
    struct Disk(tempfile::TempDir);

    impl Disk {
        /// Only root can make one. Otherwise it reports the skipped test, or fails if skipping is forbidden.
        fn new(bytes: u32) -> Option<Self> {
            if !nix::unistd::geteuid().is_root() {
                let required = std::env::var_os("LASTHOP_REQUIRE_ROOT_TESTS").is_some_and(|value| value == "1");
                assert!(!required, "LASTHOP_REQUIRE_ROOT_TESTS=1, but this is not root");
                // Bypasses the test harness, which captures output.
                let _ = writeln!(io::stderr(), "skipped: a disk of its own needs root");
                return None;
            }
            let folder = tempfile::tempdir().expect("a folder");
            let size = format!("size={bytes}");
            mount(Some("tmpfs"), folder.path(), Some("tmpfs"), MsFlags::empty(), Some(size.as_str()))
                .expect("root may");
            Some(Self(folder))
        }
    }

    impl Drop for Disk {
        fn drop(&mut self) {
            let _ = umount2(self.0.path(), MntFlags::MNT_DETACH);
        }
    }

    #[test]
    fn a_record_on_a_full_disk_goes_on_with_a_whole_line_when_there_is_room_again() {
        let Some(disk) = Disk::new(64 * 1024) else { return };
        let path = disk.0.path().join("record.jsonl");
        let ballast = disk.0.path().join("ballast");
        fs::write(&ballast, vec![0; 40 * 1024]).expect("there is room");
        let mut recorder = Recorder::spawn(Sink::open(&path, 1 << 20).expect("a file")).expect("a thread");
        let written = || fs::metadata(&path).expect("there").len();
        let begun = Instant::now();
        let until = |done: &dyn Fn() -> bool| {
            while !done() && begun.elapsed() < Duration::from_secs(180) {
                thread::sleep(Duration::from_millis(1));
            }
            assert!(done());
        };
        // 42 KB of lines: more than the free 24 KiB, less than the disk. A page of it ends within a line.
        for cookie in 0..600 {
            recorder.write(&state(cookie));
        }
        until(&|| recorder.left_out() > 0);
        fs::remove_file(&ballast).expect("there");
        let full = written();
        until(&|| recorder.lines.bytes() == 0);
        recorder.write(&state(5000));
        until(&|| written() > full);
        recorder.finish(&state(5001));
        let text = fs::read_to_string(&path).expect("there");
        let cookies = cookies(&text); // whole lines only
        assert_eq!(cookies[cookies.len() - 2..], [5000, 5001]);
        assert!(cookies.is_sorted());
    }
}
