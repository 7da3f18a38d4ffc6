//! Lines that wait for a writing thread. The queue is bounded in bytes. Its callers never wait: when the reader stops,
//! lines are dropped and counted.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// The queue.
#[derive(Debug)]
pub(crate) struct Lines {
    most_bytes: usize,
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    lines: VecDeque<Box<[u8]>>,
    bytes: usize,
    left_out: u64,
    /// No more lines are accepted.
    closed: bool,
    /// The writer has ended.
    ended: bool,
}

impl Lines {
    /// Holds lines of `most_bytes` together. A longer line fits only into an empty queue.
    pub(crate) fn new(most_bytes: usize) -> Self {
        Self { most_bytes, waiting: Mutex::default(), changed: Condvar::new() }
    }

    /// The same with a thread of this name that writes them, without capabilities.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub(crate) fn written_by(
        name: &str,
        most_bytes: usize,
        write: impl FnOnce(&Self) + Send + 'static,
    ) -> io::Result<Arc<Self>> {
        let lines = Arc::new(Self::new(most_bytes));
        let of_thread = Arc::clone(&lines);
        let run = move || {
            crate::privilege::keep_none();
            write(&of_thread);
            of_thread.end();
        };
        thread::Builder::new().name(name.to_owned()).spawn(run)?;
        Ok(lines)
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a line; `false`: there is no room, and the line is dropped.
    pub(crate) fn push(&self, line: Vec<u8>) -> bool {
        let line = line.into_boxed_slice();
        let mut waiting = self.waiting();
        let has_room = waiting.lines.is_empty() || waiting.bytes + line.len() <= self.most_bytes;
        if waiting.closed || !has_room {
            waiting.left_out += 1;
            return false;
        }
        self.add(waiting, line);
        true
    }

    /// Queues the last line regardless of room, and closes the queue.
    pub(crate) fn push_last(&self, line: Vec<u8>) {
        let mut waiting = self.waiting();
        if !waiting.closed {
            waiting.closed = true;
            self.add(waiting, line.into_boxed_slice());
        }
    }

    fn add(&self, mut waiting: MutexGuard<'_, Waiting>, line: Box<[u8]>) {
        waiting.bytes += line.len();
        waiting.lines.push_back(line);
        drop(waiting);
        self.changed.notify_all();
    }

    /// Closes the queue; waiting lines are still written.
    pub(crate) fn close(&self) {
        self.waiting().closed = true;
        self.changed.notify_all();
    }

    /// Waits for the next line; `None`: the queue is closed and empty.
    pub(crate) fn take(&self) -> Option<Box<[u8]>> {
        let waiting = self.waiting();
        let idle = |waiting: &mut Waiting| waiting.lines.is_empty() && !waiting.closed;
        let mut waiting = self.changed.wait_while(waiting, idle).unwrap_or_else(PoisonError::into_inner);
        let line = waiting.lines.pop_front()?;
        waiting.bytes -= line.len();
        Some(line)
    }

    /// Counts a line that was queued but could not be written.
    pub(crate) fn lose(&self) {
        self.waiting().left_out += 1;
    }

    /// Lines dropped since the beginning.
    pub(crate) fn left_out(&self) -> u64 {
        self.waiting().left_out
    }

    /// Bytes waiting.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.waiting().bytes
    }

    /// The writer ends: no waiting or later line will be written.
    pub(crate) fn end(&self) {
        let mut waiting = self.waiting();
        (waiting.closed, waiting.ended) = (true, true);
        waiting.lines.clear();
        waiting.bytes = 0;
        drop(waiting);
        self.changed.notify_all();
    }

    /// Whether the writer has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.waiting().ended
    }

    /// Waits for the writer to end, at most this long. Returns whether it did.
    pub(crate) fn wait_for_end(&self, within: Duration) -> bool {
        let waiting = self.waiting();
        let goes_on = |waiting: &mut Waiting| !waiting.ended;
        let waited = self.changed.wait_timeout_while(waiting, within, goes_on);
        waited.unwrap_or_else(PoisonError::into_inner).0.ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_beyond_the_bytes_are_left_out_and_counted_and_the_others_keep_their_order() {
        let lines = Lines::new(10);
        let said: Vec<_> = ["1234", "5678", "abc", "de"].map(|line| lines.push(line.into())).into();
        assert_eq!((said, lines.bytes(), lines.left_out()), (vec![true, true, false, true], 10, 1));
        lines.push_last(b"the last one".to_vec());
        assert!(!lines.push(b"x".to_vec()));
        let taken: Vec<_> =
            std::iter::from_fn(|| lines.take()).map(|line| String::from_utf8_lossy(&line).into_owned()).collect();
        assert_eq!(taken, ["1234", "5678", "de", "the last one"]);
        assert_eq!((lines.bytes(), lines.left_out()), (0, 2));
    }

    #[test]
    fn a_line_that_is_longer_than_the_queue_passes_when_nothing_else_waits() {
        let lines = Lines::new(10);
        assert!(lines.push(vec![b'x'; 100]));
        assert!(!lines.push(vec![b'x'; 1]));
        assert_eq!(lines.take().map(|line| line.len()), Some(100));
        assert!(lines.push(vec![b'x'; 1]));
    }
}
