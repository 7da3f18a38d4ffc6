//! The log: to standard error, by a thread of its own. Logging never waits and never fails, even if the reader stalls,
//! the terminal is gone or the disk is full. Lines that cannot be written are dropped, and their number is logged
//! later.

use crate::tell::lines::Lines;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::time::Duration;

/// Bytes that may wait for a reader: some two thousand lines.
const QUEUE_BYTES: usize = 256 * 1024;
/// At the end, the reader's time to take the remaining lines.
const LAST_WORDS_WITHIN: Duration = Duration::from_secs(1);

/// Takes one line per call of [`Write::write`], and never waits or fails. Its clones are the same log.
#[derive(Clone, Debug)]
pub struct LogWriter {
    lines: Arc<Lines>,
}

impl LogWriter {
    /// A log on standard error.
    ///
    /// # Errors
    /// If the thread that writes it cannot be started.
    pub fn to_stderr() -> io::Result<Self> {
        // A descriptor of its own: a blocked write holds no lock that others need.
        Self::spawn(File::from(io::stderr().as_fd().try_clone_to_owned()?))
    }

    fn spawn(sink: impl Write + Send + 'static) -> io::Result<Self> {
        Ok(Self { lines: Lines::written_by("lasthop-log", QUEUE_BYTES, |lines| write_lines(sink, lines))? })
    }

    /// Writes the remaining lines, waiting at most a second for the reader. Later lines are dropped.
    pub fn finish(&self) {
        self.lines.close();
        self.lines.wait_for_end(LAST_WORDS_WITHIN);
    }
}

impl Write for LogWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.lines.push(line.to_vec());
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write_lines(mut sink: impl Write, lines: &Lines) {
    let mut told = 0;
    let mut is_whole = true;
    while let Some(line) = lines.take() {
        let left_out = lines.left_out() - told;
        if left_out > 0 {
            let end = if is_whole { "" } else { "\n" };
            let notice = format!("{end}{left_out} lines of this log were left out: nobody took them\n");
            if sink.write_all(notice.as_bytes()).is_ok() {
                (told, is_whole) = (told + left_out, true);
            }
        }
        // The line may be cut: its target was full (ENOSPC), or its reader gone (EPIPE).
        if sink.write_all(&line).is_err() {
            lines.lose();
            is_whole = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead as _, BufReader};
    use std::thread;

    #[test]
    fn a_reader_that_stalls_and_reads_again_is_told_how_many_lines_it_has_missed() {
        let (reader, writer) = io::pipe().expect("a pipe");
        let mut log = LogWriter::spawn(writer).expect("a thread");
        // The pipe holds 64 KiB and the queue 256: 10,000 lines of 100 bytes do not fit. No call waits.
        for number in 0..10_000 {
            log.write_all(format!("{number:>99}\n").as_bytes()).expect("it never fails");
        }
        let missed = log.lines.left_out();
        assert!(missed > 6000, "{missed}");
        let text =
            thread::spawn(move || BufReader::new(reader).lines().map(|line| line.expect("text")).collect::<Vec<_>>());
        while log.lines.bytes() > 0 {
            thread::sleep(Duration::from_millis(1));
        }
        log.write_all(b"and on\n").expect("it never fails");
        log.finish();
        let text = text.join().expect("no panic");
        let told = |line: &String| {
            line.strip_suffix(" lines of this log were left out: nobody took them")?.parse::<u64>().ok()
        };
        assert_eq!(text.iter().filter_map(told).sum::<u64>(), missed);
        assert_eq!(text.iter().filter(|line| told(line).is_none()).count() as u64, 10_001 - missed);
        assert_eq!(text.last().map(String::as_str), Some("and on"));
    }

    #[test]
    fn a_log_on_a_full_disk_fails_nobody() {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
        let mut log = LogWriter::spawn(full).expect("a thread");
        for _ in 0..10 {
            log.write_all(b"a line\n").expect("it never fails");
        }
        log.finish();
        assert!(log.lines.has_ended());
        assert_eq!(log.lines.left_out(), 10);
    }
}
